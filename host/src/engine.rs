//! A place to compute.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use warpfold_monoid::Monoid;

#[cfg(feature = "cuda")]
use crate::cuda::{Context, Gpu};
use crate::{Error, Reducer, module::Kernels, plan::DeviceFacts};

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
///
/// On a GPU, an engine keeps loaded kernels, workspaces and pinned memory for results; clones share them. They are
/// freed when the last clone, reducer, and captured graph is gone, after the device's work has been waited for. Drop
/// the last one while no stream of the context is being captured: waiting for a device invalidates captures.
#[derive(Clone, Debug)]
pub struct Engine {
    kernels: Arc<RwLock<Vec<Kernels>>>,
    /// Forged ones, if any.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only devices have facts"))]
    facts: Option<DeviceFacts>,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Cpu,
    #[cfg(feature = "cuda")]
    Cuda(Arc<Gpu>),
}

impl Engine {
    /// The first GPU if there is one (and the feature `cuda`), else the CPU.
    ///
    /// # Errors
    ///
    /// What went wrong in setting up a GPU that is there.
    pub fn new() -> Result<Engine, Error> {
        match Engine::cuda(0) {
            Err(Error::CudaNotBuilt | Error::NoDriver | Error::NoDevice) => Ok(Engine::cpu()),
            engine => engine,
        }
    }

    /// The CPU, all its cores (rayon's thread pool).
    pub fn cpu() -> Engine {
        Engine::at(Place::Cpu)
    }

    fn at(place: Place) -> Engine {
        Engine { kernels: Arc::default(), facts: None, place }
    }

    /// GPU number `ordinal`, with the device's primary context, which other CUDA libraries use as well.
    ///
    /// # Errors
    ///
    /// [`Error::CudaNotBuilt`] without the feature `cuda`; [`Error::NoDriver`], [`Error::NoDevice`],
    /// [`Error::NoSuchDevice`]; or what the driver says.
    #[cfg(feature = "cuda")]
    pub fn cuda(ordinal: u32) -> Result<Engine, Error> {
        Ok(Engine::at(Place::Cuda(Gpu::new(Context::primary(ordinal)?))))
    }

    /// GPU number `ordinal`.
    ///
    /// # Errors
    ///
    /// [`Error::CudaNotBuilt`], because the feature `cuda` is off.
    #[cfg(not(feature = "cuda"))]
    pub fn cuda(_ordinal: u32) -> Result<Engine, Error> {
        Err(Error::CudaNotBuilt)
    }

    /// The GPU of a context that the program already made with cust. The engine keeps a reference to it of its own.
    ///
    /// # Errors
    ///
    /// What the driver says.
    #[cfg(feature = "cuda")]
    pub fn from_context(context: &cust::context::Context) -> Result<Engine, Error> {
        // SAFETY: a live context, and the primary one of its device: a reference to it is retained.
        unsafe { Engine::from_raw_context(context.as_raw()) }
    }

    /// The GPU of a context made with any CUDA library.
    ///
    /// # Errors
    ///
    /// What the driver says.
    ///
    /// # Safety
    ///
    /// The context is live. If it is not its device's primary context (to which a reference is retained), it outlives
    /// the engine and everything made with it.
    #[cfg(feature = "cuda")]
    pub unsafe fn from_raw_context(context: cust::sys::CUcontext) -> Result<Engine, Error> {
        // SAFETY: the caller's promise.
        Ok(Engine::at(Place::Cuda(Gpu::new(unsafe { Context::adopt(context)? }))))
    }

    /// The same engine planning for other facts than its device's own: to see, and to test, what another device would
    /// do. Bits never depend on it.
    #[must_use = "the engine itself does not change"]
    pub fn with_facts(&self, facts: DeviceFacts) -> Engine {
        Engine { facts: Some(facts), ..self.clone() }
    }

    /// The facts that it plans with; `None` on the CPU.
    pub fn facts(&self) -> Option<DeviceFacts> {
        match &self.place {
            Place::Cpu => None,
            #[cfg(feature = "cuda")]
            Place::Cuda(gpu) => Some(self.facts.unwrap_or(gpu.context.facts)),
        }
    }

    /// Makes a kernel crate's operators known to this engine and its clones. Nothing reaches the device before a
    /// reducer is made.
    pub fn load(&self, kernels: Kernels) {
        self.kernels.write().unwrap_or_else(PoisonError::into_inner).push(kernels);
    }

    /// What has been made known by [`load`](Engine::load).
    pub fn loaded(&self) -> Vec<Kernels> {
        self.kernels.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What it computes on.
    pub fn backend(&self) -> Backend {
        match &self.place {
            Place::Cpu => Backend::Cpu,
            #[cfg(feature = "cuda")]
            Place::Cuda(_) => Backend::Cuda,
        }
    }

    /// What it computes on, in detail.
    pub fn info(&self) -> EngineInfo {
        let threads = rayon::current_num_threads();
        match &self.place {
            Place::Cpu => EngineInfo { backend: Backend::Cpu, threads, device: None },
            #[cfg(feature = "cuda")]
            Place::Cuda(gpu) => {
                EngineInfo { backend: Backend::Cuda, threads, device: Some(gpu.context.info.clone()) }
            }
        }
    }

    /// A reducer for an operator. On a GPU, loads the operator's kernels the first time.
    ///
    /// # Errors
    ///
    /// None on the CPU, which runs any operator. On a GPU [`Error::NoKernel`] if no loaded table exports it,
    /// [`Error::NotCompiled`] or [`Error::NoImage`] if its module is missing or was built for other devices,
    /// [`Error::LayoutMismatch`] if it was built from other types, or what the driver says.
    pub fn reducer<Op: Monoid>(&self, op: Op) -> Result<Reducer<Op>, Error> {
        match &self.place {
            Place::Cpu => Ok(Reducer::on_cpu(self.clone(), op)),
            #[cfg(feature = "cuda")]
            Place::Cuda(gpu) => {
                let loaded = gpu.kernels(std::any::TypeId::of::<Op>(), || self.find::<Op>())?;
                let facts = self.facts.unwrap_or(gpu.context.facts);
                let launcher = crate::cuda::Launcher::new::<Op>(gpu.clone(), loaded, facts)?;
                Ok(Reducer::on_gpu(self.clone(), op, launcher))
            }
        }
    }

    /// The export of an operator among what has been loaded.
    #[cfg(feature = "cuda")]
    fn find<Op: Monoid>(&self) -> Result<(Kernels, &'static warpfold_gpu_kernels::export::Export), Error> {
        let found =
            self.loaded().into_iter().find_map(|kernels| Some((kernels, kernels.table.find::<Op>()?)));
        found.ok_or_else(|| {
            let operator = std::any::type_name::<Op>();
            Error::NoKernel {
                operator,
                item: std::any::type_name::<Op::Item>(),
                line: format!("my_operator => {},", short(operator)),
            }
        })
    }

    /// Frees the workspaces that launches no longer need, and those ready for captures. Waits for the device; not to
    /// be called while any of the context's streams is being captured.
    ///
    /// # Errors
    ///
    /// [`Error::NeedsCuda`] on the CPU, or what the driver says.
    #[cfg(feature = "cuda")]
    pub fn trim(&self) -> Result<(), Error> {
        let gpu = self.gpu("trimming workspaces")?;
        let _current = gpu.context.enter_or_error()?;
        gpu.pool.trim()
    }

    /// What it keeps for its GPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn gpu(&self, what: &'static str) -> Result<&Arc<Gpu>, Error> {
        match &self.place {
            Place::Cpu => Err(Error::NeedsCuda { what }),
            Place::Cuda(gpu) => Ok(gpu),
        }
    }
}

/// A type's name without the paths in it.
#[cfg(any(feature = "cuda", test))]
fn short(type_name: &str) -> String {
    let mut short = String::new();
    for part in type_name.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_' && c != ':') {
        short.push_str(part.rsplit("::").next().unwrap_or(part));
    }
    short
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
/// [`Error::CudaNotBuilt`] without the feature `cuda`; [`Error::NoDriver`] or [`Error::NoDevice`] if there is none; or
/// what the driver says.
pub fn cuda_devices() -> Result<Vec<DeviceInfo>, Error> {
    #[cfg(feature = "cuda")]
    return crate::cuda::devices();
    #[cfg(not(feature = "cuda"))]
    Err(Error::CudaNotBuilt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cut_from_type_names() {
        assert_eq!(short("warpfold_monoid::ops::Sum<i32, a::b::Acc<[f64; 2]>>"), "Sum<i32, Acc<[f64; 2]>>");
        assert_eq!(short(std::any::type_name::<Option<Vec<u8>>>()), "Option<Vec<u8>>");
    }

    #[test]
    fn engines_and_reducers_travel() {
        fn travels<T: Send + Sync + Clone>() {}
        travels::<Engine>();
        travels::<Reducer<warpfold_monoid::Sum<f32>>>();
    }
}
