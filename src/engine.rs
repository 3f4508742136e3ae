//! Engines that know the built-in operators.

use std::ops::Deref;

use crate::{Error, SimOptions, module::Kernels, plan::DeviceFacts};

#[cfg(feature = "cuda")]
mod core {
    include!(concat!(env!("OUT_DIR"), "/core.rs"));
}

#[cfg(feature = "cuda")]
mod more {
    include!(concat!(env!("OUT_DIR"), "/more.rs"));
}

#[cfg(feature = "cuda")]
mod segments {
    include!(concat!(env!("OUT_DIR"), "/segments.rs"));
}

#[cfg(feature = "cuda")]
mod scans {
    include!(concat!(env!("OUT_DIR"), "/scans.rs"));
}

#[cfg(feature = "cuda")]
mod keys {
    include!(concat!(env!("OUT_DIR"), "/keys.rs"));
}

#[cfg(feature = "cuda")]
mod lines {
    include!(concat!(env!("OUT_DIR"), "/lines.rs"));
}

#[cfg(feature = "cuda")]
mod compiled {
    pub use super::keys::MODULES as KEYS;
    pub use super::lines::MODULES as SCAN_LINES;
    pub use super::scans::MODULES as SCANS;
    pub use super::segments::MODULES as SEGMENTS;
    use super::{core, more};
    use crate::module::Module;

    const COUNT: usize = core::MODULES.len() + more::MODULES.len();
    const NONE: Module = Module { name: "", entries: &[], images: &[] };

    static ALL: [Module; COUNT] = {
        let mut all = [NONE; COUNT];
        let (core, more) = all.split_at_mut(core::MODULES.len());
        core.copy_from_slice(core::MODULES);
        more.copy_from_slice(more::MODULES);
        all
    };

    pub static MODULES: &[Module] = &ALL;
}

#[cfg(not(feature = "cuda"))]
mod compiled {
    pub static MODULES: &[crate::module::Module] = &[];
    pub static KEYS: &[crate::module::Module] = &[];
    pub static SCANS: &[crate::module::Module] = &[];
    pub static SCAN_LINES: &[crate::module::Module] = &[];
    pub static SEGMENTS: &[crate::module::Module] = &[];
}

/// The built-in operators and, with the feature `cuda`, their compiled modules.
pub static BUILTINS: Kernels = Kernels { table: &warpfold_builtins::TABLE, modules: compiled::MODULES };

/// The same for reductions of segments.
pub static SEGMENTS: Kernels = Kernels { table: &warpfold_builtins::SEGMENTS, modules: compiled::SEGMENTS };

/// The same for scans.
pub static SCANS: Kernels = Kernels { table: &warpfold_builtins::SCANS, modules: compiled::SCANS };

/// The same for reductions by tag.
pub static TAGS: Kernels = Kernels { table: &warpfold_builtins::TAGS, modules: compiled::KEYS };

/// The same for reductions by key.
pub static KEYS: Kernels = Kernels { table: &warpfold_builtins::KEYS, modules: compiled::KEYS };

/// The same for sorts of pairs, which groups are made by.
pub static SORTS: Kernels = Kernels { table: &warpfold_builtins::SORTS, modules: compiled::KEYS };

/// The same for scans of many lines at once.
pub static SCAN_LINES: Kernels =
    Kernels { table: &warpfold_builtins::SCAN_LINES, modules: compiled::SCAN_LINES };

/// A place to compute, the CPU, a GPU or the simulator, that knows the built-in operators. Cheap to clone, usable from any thread.
///
/// Everything but its making is in [`host::Engine`](crate::host::Engine), which it dereferences to:
/// [`reducer`](crate::host::Engine::reducer) above all.
///
/// ```
/// use warpfold::{Engine, Max};
///
/// # fn main() -> Result<(), warpfold::Error> {
/// let engine = Engine::cpu();
/// assert_eq!(engine.reducer(Max::<u64>::new())?.reduce(&[3, 9, 4])?, Some(9));
/// println!("{}", engine.info());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Engine(warpfold_host::Engine);

impl Engine {
    /// The first GPU if there is one (and the feature `cuda`), else the CPU.
    ///
    /// # Errors
    ///
    /// What went wrong in setting up a GPU that is there.
    pub fn new() -> Result<Engine, Error> {
        warpfold_host::Engine::new().map(Engine::with_builtins)
    }

    /// The CPU, all its cores.
    pub fn cpu() -> Engine {
        Engine::with_builtins(warpfold_host::Engine::cpu())
    }

    /// The simulator: the GPU's kernels on simulated threads of the host, every access checked, for tests and
    /// debugging. See [`host::Engine::sim`](crate::host::Engine::sim).
    ///
    /// ```
    /// use warpfold::{Engine, Sum};
    ///
    /// # fn main() -> Result<(), warpfold::Error> {
    /// assert_eq!(Engine::sim().reducer(Sum::<f32>::new())?.reduce(&[1.5, 2.5])?, 4.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sim() -> Engine {
        Engine::with_builtins(warpfold_host::Engine::sim())
    }

    /// The simulator with an order of execution of one's own choice.
    pub fn sim_with(options: SimOptions) -> Engine {
        Engine::with_builtins(warpfold_host::Engine::sim_with(options))
    }

    /// GPU number `ordinal`, with the device's primary context, which other CUDA libraries use as well.
    ///
    /// # Errors
    ///
    /// [`Error::CudaNotBuilt`] without the feature `cuda`; [`Error::NoDriver`], [`Error::NoDevice`],
    /// [`Error::NoSuchDevice`]; or what the driver says.
    pub fn cuda(ordinal: u32) -> Result<Engine, Error> {
        warpfold_host::Engine::cuda(ordinal).map(Engine::with_builtins)
    }

    /// The GPU of a context that the program already made with cust.
    ///
    /// # Errors
    ///
    /// What the driver says.
    #[cfg(feature = "cuda")]
    pub fn from_context(context: &crate::cuda::cust::context::Context) -> Result<Engine, Error> {
        warpfold_host::Engine::from_context(context).map(Engine::with_builtins)
    }

    /// The GPU of a context made with any CUDA library.
    ///
    /// # Errors
    ///
    /// What the driver says.
    ///
    /// # Safety
    ///
    /// As for [`host::Engine::from_raw_context`](crate::host::Engine::from_raw_context).
    #[cfg(feature = "cuda")]
    pub unsafe fn from_raw_context(context: crate::cuda::cust::sys::CUcontext) -> Result<Engine, Error> {
        // SAFETY: the caller's promise.
        unsafe { warpfold_host::Engine::from_raw_context(context) }.map(Engine::with_builtins)
    }

    /// The same engine planning for other facts than its device's own.
    #[must_use = "the engine itself does not change"]
    pub fn with_facts(&self, facts: DeviceFacts) -> Engine {
        Engine(self.0.with_facts(facts))
    }

    /// The same engine taking no more than so many bytes of its device's memory for items of long host arrays: see
    /// [`host::Engine::with_device_bytes`](crate::host::Engine::with_device_bytes).
    #[must_use = "the engine itself does not change"]
    pub fn with_device_bytes(&self, limit: u64) -> Engine {
        Engine(self.0.with_device_bytes(limit))
    }

    fn with_builtins(engine: warpfold_host::Engine) -> Engine {
        engine.load(BUILTINS);
        engine.load(SEGMENTS);
        engine.load(SCANS);
        engine.load(TAGS);
        engine.load(KEYS);
        engine.load(SORTS);
        engine.load(SCAN_LINES);
        Engine(engine)
    }
}

impl Deref for Engine {
    type Target = warpfold_host::Engine;

    fn deref(&self) -> &warpfold_host::Engine {
        &self.0
    }
}
