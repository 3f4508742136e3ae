//! A place to compute.

use std::{fmt, sync::Arc};

use warpfold_monoid::Monoid;

use crate::{Error, Reducer};

/// What an engine computes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// The host's own cores.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Cpu => "cpu",
            Backend::Cuda => "cuda",
        })
    }
}

/// A place to compute: the CPU or a GPU. Cheap to clone, usable from any thread.
#[derive(Clone, Debug)]
pub struct Engine {
    inner: Arc<Inner>,
}

#[derive(Debug)]
enum Inner {
    Cpu,
}

impl Engine {
    /// The GPU if there is one (and the feature `cuda`), else the CPU.
    ///
    /// # Errors
    ///
    /// What went wrong in setting up a GPU that is there.
    pub fn new() -> Result<Engine, Error> {
        Ok(Engine::cpu())
    }

    /// The CPU, all its cores.
    pub fn cpu() -> Engine {
        Engine { inner: Arc::new(Inner::Cpu) }
    }

    /// GPU number `ordinal`, with the device's primary context.
    ///
    /// # Errors
    ///
    /// [`Error::CudaNotBuilt`] without the feature `cuda`.
    pub fn cuda(_ordinal: u32) -> Result<Engine, Error> {
        Err(Error::CudaNotBuilt)
    }

    /// What it computes on.
    pub fn backend(&self) -> Backend {
        match *self.inner {
            Inner::Cpu => Backend::Cpu,
        }
    }

    /// What it computes on, in detail.
    pub fn info(&self) -> EngineInfo {
        match *self.inner {
            Inner::Cpu => {
                EngineInfo { backend: Backend::Cpu, threads: rayon::current_num_threads(), device: None }
            }
        }
    }

    /// A reducer for an operator.
    ///
    /// # Errors
    ///
    /// None on the CPU, which runs any operator.
    pub fn reducer<Op: Monoid>(&self, op: Op) -> Result<Reducer<Op>, Error> {
        Ok(Reducer::new(self.clone(), op))
    }
}

/// A description of an engine.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EngineInfo {
    /// What it computes on.
    pub backend: Backend,
    /// Host threads that the CPU backend uses.
    pub threads: usize,
    /// The GPU, if that is what it computes on.
    pub device: Option<DeviceInfo>,
}

impl fmt::Display for EngineInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.device {
            None => write!(f, "{}: {} threads", self.backend, self.threads),
            Some(device) => write!(f, "{}: {device}", self.backend),
        }
    }
}

/// A description of a GPU.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Its number, as [`Engine::cuda`] takes it.
    pub ordinal: u32,
    /// Its name.
    pub name: String,
    /// Compute capability, major and minor.
    pub compute_capability: (u32, u32),
    /// Bytes of memory in all.
    pub memory_bytes: u64,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// The CUDA version that the driver supports, major and minor.
    pub driver: (u32, u32),
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceInfo { ordinal, name, compute_capability: (major, minor), driver, .. } = self;
        let gib = self.memory_bytes as f64 / (1u64 << 30) as f64;
        write!(
            f,
            "device {ordinal}: {name}, compute capability {major}.{minor}, {} multiprocessors, {gib:.1} GiB, CUDA {}.{}",
            self.multiprocessors, driver.0, driver.1
        )
    }
}

/// The GPUs that the driver offers.
///
/// # Errors
///
/// [`Error::CudaNotBuilt`] without the feature `cuda`.
pub fn cuda_devices() -> Result<Vec<DeviceInfo>, Error> {
    Err(Error::CudaNotBuilt)
}
