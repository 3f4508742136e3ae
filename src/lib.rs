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

pub use warpfold_host::*;
pub use warpfold_monoid as monoid;
pub use warpfold_monoid::{
    DoubleDouble, Max, Min, Monoid, NanMax, NanMin, NanProduct, NanSum, Plain, Product, Sum, Value,
};
