//! GPU reductions in Rust, with the same bits on every GPU and on the CPU.
//!
//! ```
//! use warpfold::{Engine, Min, Sum};
//!
//! # fn main() -> Result<(), warpfold::Error> {
//! let engine = Engine::new()?; // the GPU if there is one, else the CPU
//! let values = vec![1.5f32, 2.5, -1.0];
//! let total: f32 = engine.reducer(Sum::<f32>::new())?.reduce(&values)?;
//! let least: Option<f32> = engine.reducer(Min::<f32>::new())?.reduce(&values)?;
//! assert_eq!((total, least), (3.0, Some(-1.0)));
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! - `cuda`: the NVIDIA backend. Building it takes a device toolchain (see `warpfold-ptx-builder`), running it the
//!   driver's `libcuda.so.1`.
//! - `ndarray` (on by default): arrays and views of that crate as inputs.

mod engine;

pub use engine::{BUILTINS, Engine, KEYS, SCAN_LINES, SCANS, SEGMENTS, SORTS, TAGS};
#[cfg(feature = "cuda")]
pub use warpfold_host::cuda;
pub use warpfold_host::{
    Backend, ByKey, Columns, ColumnsMut, DeviceInfo, EngineInfo, Equal, Equality, Error, GroupKey,
    GroupReducer, Groups, Input, Items, KeyReducer, KeyScanner, Reducer, Scanner, Schedule, SegmentPlan,
    SegmentReducer, SimOptions, Sink, Source, Strided, Tag, TagReducer, TaggedSink, beside, cpu,
    cuda_devices, keys, module, plan, scans, segments, source,
};
pub use warpfold_monoid as monoid;
pub use warpfold_monoid::{
    Affine, All, And, Any, ArgMax, ArgMaxBy, ArgMin, ArgMinBy, Atomic, Averaged, Bits, Checked,
    CheckedProduct, CheckedSum, Compose, Count, CountIf, Dot, DoubleDouble, Element, Elementwise, Extent,
    Fast, Float, GivesChecked, GivesIdentity, GivesNone, GivesPlace, IgnoreNan, Indexed, Integer, L1, L2,
    Linf, LogSumExp, Magnitude, Map, MapFn, Max, MaxNonEmptySegmentSum, MaxOf, MaxSegmentSum, MaybeNan, Mean,
    Min, MinMax, MinOf, Moments, Monoid, NOWHERE, NanMax, NanMin, NanMinMax, NanProduct, NanSum,
    NeutralIdentity, NonEmpty, Number, OnEmpty, Or, Ordered, Overflow, Plain, Product, ProductAccumulator,
    ProductOf, Scalar, SegmentAccumulator, SegmentSums, Segmented, Semigroup, StdDev, Sum, SumAccumulator,
    SumOf, SumSquares, Truth, Unaligned, Value, Variance, WithInitial, Xor, adapters, fused, limits, math,
    tree,
};

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// Engines that know no operators yet: for programs that bring all their kernels themselves.
pub use warpfold_host as host;
