//! The CUDA backend: device memory, streams, workspaces, scopes.
//!
//! Everything here works from any thread: each call makes the engine's context current for its own duration and puts
//! back what was current before.

mod array;
mod context;
mod driver;
mod gpu;
mod kernels;
mod memory;
mod reduce;
mod runs;
mod scans;
mod scope;
mod segments;
mod sink;
mod sorts;
mod stream;
mod tagged;
mod tags;
mod transfer;
mod workspace;

/// The version of cust whose types are taken here.
pub use cust;
pub use memory::{DeviceArray, DeviceInput, DeviceOutput, DeviceView, DeviceViewMut};
pub use scope::Scope;
pub use stream::StreamRef;
pub use workspace::Workspace;

pub(crate) use array::CudaArray;
pub(crate) use context::{Context, devices};
pub(crate) use gpu::Gpu;
pub(crate) use kernels::Loaded;
pub(crate) use reduce::Launcher;
pub(crate) use runs::RunLauncher;
pub(crate) use scans::ScanLauncher;
pub use segments::DeviceSegments;
pub(crate) use segments::SegmentLauncher;
pub(crate) use sink::CudaStream;
pub(crate) use sorts::{GroupLauncher, SortLauncher};
pub(crate) use tagged::CudaTags;
pub(crate) use tags::{From, TagLauncher};
pub(crate) use workspace::Block;
