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

pub use engine::{BUILTINS, Engine};
#[cfg(feature = "cuda")]
pub use warpfold_host::cuda;
pub use warpfold_host::{
    Backend, Columns, ColumnsMut, DeviceInfo, EngineInfo, Error, Input, Items, Reducer, Schedule, SimOptions,
    Source, Strided, cpu, cuda_devices, module, plan, source,
};
pub use warpfold_monoid as monoid;
pub use warpfold_monoid::{
    Affine, Compose, DoubleDouble, Element, Elementwise, Float, GivesIdentity, GivesNone, Integer, Map,
    MapFn, Max, MaxSegmentSum, MaybeNan, Min, Monoid, NanMax, NanMin, NanProduct, NanSum, NonEmpty, Number,
    OnEmpty, Ordered, Plain, Product, ProductAccumulator, Scalar, SegmentAccumulator, SegmentSums, Semigroup,
    Sum, SumAccumulator, Truth, Unaligned, Value, WithInitial, adapters, fused, limits, tree,
};

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// Engines that know no operators yet: for programs that bring all their kernels themselves.
pub use warpfold_host as host;
