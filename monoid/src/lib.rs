//! The algebra of warpfold: plain data, associative operators, the canonical reduction tree.
//!
//! Nothing here knows of GPUs. An operator is a [`Monoid`]; [`tree`] says in which order its operands combine, a
//! function of their number and of the operator alone, which every backend follows to the bit.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(f16, link_llvm_intrinsics))]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features, incomplete_features))]

// Under this name the derive macro finds the crate, here too.
extern crate self as warpfold_monoid;

mod accumulator;
pub mod adapters;
mod bits;
mod checked;
pub mod fused;
mod generic;
pub mod keyed;
pub mod limits;
mod logsumexp;
pub mod math;
mod moments;
mod monoid;
mod norms;
mod number;
mod ops;
mod plain;
pub mod scan;
mod select;
mod sequence;
pub mod tree;

pub use accumulator::{DoubleDouble, ProductAccumulator, SumAccumulator};
pub use adapters::{Elementwise, Fast, Map, MapFn, NonEmpty, Ordered, Semigroup, WithInitial};
pub use bits::{All, And, Any, Bits, Count, CountIf, Or, Xor};
pub use checked::{Checked, CheckedProduct, CheckedSum, GivesChecked, Overflow, SignedMagnitude};
pub use fused::{Unaligned, fused};
pub use generic::{MaxOf, MinOf, ProductOf, SumOf};
pub use logsumexp::{LogSumExp, ScaledSum};
pub use moments::{Averaged, Counted, Deviations, ExactSums, Mean, Moments, StdDev, Variance};
pub use monoid::{Atomic, GivesIdentity, GivesNone, Monoid, NeutralIdentity, OnEmpty, Value};
pub use norms::{
    Dot, GreatestMagnitude, L1, L2, Linf, Magnitudes, Products, ScaledSquares, Squares, SquaresUnderRoot,
    SumSquares, Summed,
};
pub use number::{Element, Float, Integer, MaybeNan, Number, Rank, Truth};
pub use ops::{Max, Min, NanMax, NanMin, NanProduct, NanSum, Product, Sum};
pub use plain::{Plain, fingerprint, zeroed};
pub use select::{
    ArgMax, ArgMaxBy, ArgMin, ArgMinBy, Candidate, Extent, GivesPlace, IgnoreNan, Indexed, KeyedCandidate,
    Magnitude, MinMax, NOWHERE, NanMinMax,
};
pub use sequence::{
    Affine, Compose, MaxNonEmptySegmentSum, MaxSegmentSum, Scalar, SegmentAccumulator, SegmentSums, Segmented,
};
#[cfg(feature = "derive")]
pub use warpfold_monoid_derive::Plain;
