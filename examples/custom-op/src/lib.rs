//! The operators of `custom-op-kernels`, ready for an engine.
//!
//! ```
//! use custom_op::{KERNELS, ops::CountOver};
//! use warpfold::Engine;
//!
//! # fn main() -> Result<(), warpfold::Error> {
//! let engine = Engine::new()?; // the GPU if there is one (feature `cuda`), else the CPU
//! engine.load(KERNELS);
//! let over = engine.reducer(CountOver { threshold: 1.0 })?;
//! assert_eq!(over.reduce(&[0.5, 1.5, 2.5])?, 2);
//! # Ok(())
//! # }
//! ```

pub use custom_op_kernels as ops;
use warpfold::module::Kernels;

/// The chapter on operators of one's own: its examples are compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/custom-operators.md")]
mod chapter {}

/// What the build script compiled.
#[cfg(feature = "cuda")]
mod compiled {
    include!(concat!(env!("OUT_DIR"), "/modules.rs"));
}

/// Nothing: the CPU needs no kernels, and the simulator runs those of the table.
#[cfg(not(feature = "cuda"))]
mod compiled {
    pub static MODULES: &[warpfold::module::Module] = &[];
}

/// For [`Engine::load`](warpfold::host::Engine::load).
pub static KERNELS: Kernels = Kernels { table: &ops::TABLE, modules: compiled::MODULES };
