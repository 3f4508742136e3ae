//! Engines, reducers and plans of warpfold: the host side.
//!
//! An [`Engine`] is a place to compute: the CPU, with the feature `cuda` an NVIDIA GPU, or the simulator, which runs the
//! GPU's kernels on the host and checks their every access. It makes [`Reducer`]s, one
//! per operator, which take host slices, `ndarray` views and device memory. Every backend combines in the order of
//! [`warpfold_monoid::tree`], so the bits of a result depend on the data and the operator alone.
//!
//! What a reduction will do is a [`plan::ReducePlan`]: plain data, computed without touching a device.
//!
//! ```
//! use warpfold_host::Engine;
//! use warpfold_monoid::{Min, Sum};
//!
//! # fn main() -> Result<(), warpfold_host::Error> {
//! let engine = Engine::cpu();
//! assert_eq!(engine.reducer(Sum::<f32>::new())?.reduce(&[1.5, 2.5])?, 4.0);
//! assert_eq!(engine.reducer(Min::<i32>::new())?.reduce(&Vec::new())?, None);
//! # Ok(())
//! # }
//! ```

mod chunks;
mod columns;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
mod engine;
mod erased;
mod error;
mod input;
pub mod keys;
pub mod module;
pub mod plan;
mod reducer;
pub mod scans;
pub mod segments;
mod sim;
mod sink;

pub use columns::{Columns, ColumnsMut, Preparation};
pub use engine::{Backend, DeviceInfo, Engine, EngineInfo, cuda_devices};
pub use error::Error;
pub use input::{Input, Items, Source, Strided};
pub use keys::{ByKey, Equal, Equality, GroupKey, GroupReducer, Groups, KeyReducer, Tag, TagReducer};
pub use reducer::Reducer;
pub use scans::{KeyScanner, Scanner};
pub use segments::{SegmentPlan, SegmentReducer};
pub use sim::{Schedule, SimOptions};
pub use sink::{Sink, TaggedSink};
pub use warpfold_gpu_kernels::{beside, source};
