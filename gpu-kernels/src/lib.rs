//! The reduction algorithms of warpfold as GPU kernels, generic over the operator.
//!
//! The layers, each calling only downwards: [`warp`] (shuffles) <- [`block`] (shared memory) <- [`lanes`] (one
//! thread's share of the canonical tree) and [`ordered`] (one warp's, where order matters) <- [`device`] (whole arrays). The kernel entry points are emitted by
//! [`kernels!`] in a leaf crate; libraries never emit entries.
//!
//! Everything here follows [`warpfold_monoid::tree`] to the bit.
#![no_std]

pub mod block;
pub mod device;
pub mod export;
pub mod lanes;
pub mod ordered;
pub mod source;
pub mod warp;

#[doc(hidden)]
pub use warpfold_monoid as monoid;
#[doc(hidden)]
pub use warpfold_simt as simt;
