//! The algebra of warpfold: plain data, associative operators, the canonical reduction tree.
//!
//! Nothing here knows of GPUs. An operator is a [`Monoid`]; [`tree`] says in which order its operands combine, a
//! function of their number and of the operator alone, which every backend follows to the bit.
#![no_std]

// Under this name the derive macro finds the crate, here too.
extern crate self as warpfold_monoid;

mod accumulator;
pub mod adapters;
pub mod fused;
pub mod limits;
mod monoid;
mod number;
mod ops;
mod plain;
mod sequence;
pub mod tree;

pub use accumulator::{DoubleDouble, ProductAccumulator, SumAccumulator};
pub use adapters::{Elementwise, Map, MapFn, NonEmpty, Ordered, Semigroup, WithInitial};
pub use fused::{Unaligned, fused};
pub use monoid::{GivesIdentity, GivesNone, Monoid, OnEmpty, Value};
pub use number::{Element, Float, Integer, MaybeNan, Number, Rank, Truth};
pub use ops::{Max, Min, NanMax, NanMin, NanProduct, NanSum, Product, Sum};
pub use plain::{Plain, fingerprint, zeroed};
pub use sequence::{Affine, Compose, MaxSegmentSum, Scalar, SegmentAccumulator, SegmentSums};
#[cfg(feature = "derive")]
pub use warpfold_monoid_derive::Plain;
