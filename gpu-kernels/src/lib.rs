//! The reduction algorithms of warpfold as GPU kernels, generic over the operator.
//!
//! The layers, each calling only downwards: [`warp`] (shuffles) <- [`block`] (shared memory) <- [`lanes`] (one thread's
//! share of the canonical tree), [`ordered`] (one warp's, where order matters) and [`any_order`] (a block's, where no
//! order does) <- [`device`] (whole arrays). [`segments`], [`scan`] and [`tags`] stand beside [`device`], and [`ladder`] apart:
//! kernels of the papers. The kernel entry points are emitted by [`kernels!`] in a leaf crate;
//! libraries never emit entries.
//!
//! A kernel of one's own calls the two lowest:
//!
//! | function | who calls, together | where the result is |
//! | --- | --- | --- |
//! | [`warp::reduce`] | the first lanes of a warp, any number of them | lane 0 |
//! | [`warp::scan`], [`warp::scan_exclusive`] | the same | every lane with a value; exclusive: but the first |
//! | [`block::reduce`] | a block of any size | thread 0 |
//! | [`block::scan`], [`block::scan_exclusive`] | the same | every thread with a value; exclusive: but the first |
//! | [`block::broadcast`] | the same | every thread |
//! | [`warp::sort_pairs`], [`block::sort_pairs`] | as for the reductions | every lane, or thread, with a pair |
//! | [`block::Sink`], [`block::TaggedSink`] | threads that have an item, at any time | global memory, at the end |
//!
//! `examples/softmax` is such a kernel, compiled for GPUs and run in the simulator.
//!
//! Everything here follows [`warpfold_monoid::tree`] to the bit; where an operator has the same bits in any order
//! ([`ANY_ORDER`](monoid::Monoid::ANY_ORDER)), in another order.
#![no_std]

pub mod any_order;
pub mod beside;
pub mod block;
pub mod device;
pub mod export;
pub mod ladder;
pub mod lanes;
pub mod ordered;
pub mod scan;
pub mod segments;
pub mod sink;
pub mod sort;
pub mod source;
pub mod tags;
pub mod warp;

#[doc(hidden)]
pub use warpfold_monoid as monoid;
#[doc(hidden)]
pub use warpfold_simt as simt;
