//! A place to compute.

use std::{
    any::{TypeId, type_name},
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use warpfold_gpu_kernels::{
    export::{Export, Family},
    sort,
};
use warpfold_monoid::{
    Monoid, Plain,
    keyed::{Equal, Equality, KeyClass, Runs},
    limits,
};

#[cfg(feature = "cuda")]
use crate::cuda::{
    Context, Gpu, GroupLauncher, Loaded, RunLauncher, ScanLauncher, SegmentLauncher, SortLauncher,
    TagLauncher,
};
#[cfg(feature = "cuda")]
use crate::plan::tags::SortedPlan;
use crate::{
    Error, GroupReducer, KeyReducer, Reducer, Scanner, SegmentReducer, TagReducer,
    erased::Types,
    keys,
    module::Kernels,
    plan::DeviceFacts,
    reducer, scans, segments,
    sim::{
        RunSimulator, ScanSimulator, SegmentSimulator, SimOptions, Simulator, SortSimulator, TagSimulator,
    },
};

/// What an engine computes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// The host's own cores.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// The GPU's kernels on simulated threads of the host.
    Sim,
}

/// An operator by its type's identity and names, and what launches need to know of it.
#[derive(Clone, Copy)]
struct Named {
    id: TypeId,
    name: &'static str,
    item: &'static str,
    types: &'static Types,
}

impl Named {
    fn of<Op: Monoid>() -> Named {
        Named {
            id: TypeId::of::<Op>(),
            name: type_name::<Op>(),
            item: type_name::<Op::Item>(),
            types: Types::of::<Op>(),
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Cpu => "cpu",
            Backend::Cuda => "cuda",
            Backend::Sim => "sim",
        })
    }
}

/// A place to compute: the CPU, a GPU or the simulator. Cheap to clone, usable from any thread.
///
/// On a GPU, an engine keeps loaded kernels, workspaces and pinned memory for results; clones share them. They are
/// freed when the last clone, reducer, and captured graph is gone, after the device's work has been waited for. Drop
/// the last one while no stream of the context is being captured: waiting for a device invalidates captures.
#[derive(Clone, Debug)]
pub struct Engine {
    kernels: Arc<RwLock<Vec<Kernels>>>,
    /// Forged ones, if any.
    facts: Option<DeviceFacts>,
    /// Device memory that host arrays may take, if it is limited.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    device_bytes: Option<u64>,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Cpu,
    Sim(SimOptions),
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

    /// The simulator: the kernels that a GPU would run, compiled for the host, on simulated threads, one after the other.
    /// It checks every access to memory and every barrier, and is far slower than the CPU backend: for tests, and for
    /// stepping through an operator in a debugger.
    ///
    /// It knows the operators of the tables that [`load`](Engine::load) is given, whose modules it does not need. The
    /// program must unwind on panics, as Rust programs do by default.
    ///
    /// ```
    /// use warpfold_gpu_kernels::kernels;
    /// use warpfold_host::{Engine, module::Kernels};
    /// use warpfold_monoid::Sum;
    ///
    /// kernels! { static TABLE: sum_u32 => Sum<u32> }
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let engine = Engine::sim();
    /// engine.load(Kernels { table: &TABLE, modules: &[] });
    /// assert_eq!(engine.reducer(Sum::<u32>::new())?.reduce(&[1, 2, 3])?, 6);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sim() -> Engine {
        Engine::sim_with(SimOptions::default())
    }

    /// The simulator with an order of execution, and a room for threads, of one's own choice.
    pub fn sim_with(options: SimOptions) -> Engine {
        Engine::at(Place::Sim(options))
    }

    fn at(place: Place) -> Engine {
        Engine { kernels: Arc::default(), facts: None, device_bytes: None, place }
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

    /// The same engine taking no more than so many bytes of its device's memory for items of long arrays that it is given in
    /// host memory, which it sends there piece by piece: for devices that others use too, and for tests. Without a limit it takes
    /// 128 MiB, and more only where an array's chunks are longer: four of its up to 256.
    ///
    /// Bits do not depend on it. Where even two of an array's chunks take more, reductions give [`Error::DeviceMemory`].
    ///
    /// Segments of any lengths of longer host arrays are sent part by part too. Other work on more than that, or than the device has
    /// memory for, is done on the host: segments that are longer, reductions by tag unless any order gives the same bits,
    /// by key and by group, and scans.
    #[must_use = "the engine itself does not change"]
    pub fn with_device_bytes(&self, limit: u64) -> Engine {
        Engine { device_bytes: Some(limit), ..self.clone() }
    }

    /// The facts that it plans with; `None` on the CPU. The simulator passes for an H100.
    pub fn facts(&self) -> Option<DeviceFacts> {
        match &self.place {
            Place::Cpu => None,
            Place::Sim(_) => Some(self.facts.unwrap_or(DeviceFacts::H100)),
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
            Place::Sim(_) => Backend::Sim,
            #[cfg(feature = "cuda")]
            Place::Cuda(_) => Backend::Cuda,
        }
    }

    /// What it computes on, in detail.
    pub fn info(&self) -> EngineInfo {
        let threads = rayon::current_num_threads();
        match &self.place {
            Place::Cpu => EngineInfo { backend: Backend::Cpu, threads, device: None },
            Place::Sim(_) => EngineInfo { backend: Backend::Sim, threads, device: None },
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
    /// None on the CPU, which runs any operator. On a GPU and in the simulator [`Error::NoKernel`] if no loaded table
    /// exports it, [`Error::LayoutMismatch`] if it was built from other types, [`Error::OperatorTooLarge`]. On a GPU
    /// also [`Error::NotCompiled`] or [`Error::NoImage`] if its module is missing or was built for other devices, or
    /// what the driver says.
    pub fn reducer<Op: Monoid>(&self, op: Op) -> Result<Reducer<Op>, Error> {
        const { limits::check::<Op>() };
        Ok(Reducer::new(self.clone(), op, self.array_place(Named::of::<Op>())?))
    }

    /// A reducer of segments for an operator: of rows, along axes, of ranges of any lengths.
    ///
    /// # Errors
    ///
    /// As for [`reducer`](Engine::reducer).
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sum = Engine::cpu().segments(Sum::<i32>::new())?;
    /// assert_eq!(sum.reduce_rows(&[1, 2, 3, 4], 2)?, [3, 7]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn segments<Op: Monoid>(&self, op: Op) -> Result<SegmentReducer<Op>, Error> {
        const { limits::check::<Op>() };
        Ok(SegmentReducer::new(self.clone(), op, self.segment_place(Named::of::<Op>())?))
    }

    /// A scanner for an operator: running results of arrays, of rows, along axes, of segments of any lengths.
    ///
    /// # Errors
    ///
    /// As for [`reducer`](Engine::reducer).
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sum = Engine::cpu().scanner(Sum::<i32>::new())?;
    /// assert_eq!(sum.scan(&[1, 2, 3, 4])?, [1, 3, 6, 10]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scanner<Op: Monoid>(&self, op: Op) -> Result<Scanner<Op>, Error> {
        const { limits::check::<Op>() };
        let place = match &self.place {
            Place::Cpu => scans::Place::Cpu,
            Place::Sim(options) => {
                let facts = self.facts.unwrap_or(DeviceFacts::H100);
                let export = self.find_in::<Op>(Family::Scans)?.1;
                let lines = self.find_in::<Op>(Family::ScanLines).ok().map(|found| found.1);
                scans::Place::Sim(ScanSimulator::new::<Op>(*options, export, lines, facts)?)
            }
            #[cfg(feature = "cuda")]
            Place::Cuda(gpu) => {
                let find = || self.find_in::<Op>(Family::Scans);
                let loaded = gpu.kernels(TypeId::of::<Op>(), Family::Scans, &find)?;
                let facts = self.facts.unwrap_or(gpu.context.facts);
                let lines = self.find_in::<Op>(Family::ScanLines).ok();
                scans::Place::Cuda(ScanLauncher::new::<Op>(gpu.clone(), loaded, lines, facts)?)
            }
        };
        Ok(Scanner::new(self.clone(), op, place))
    }

    /// A reducer by tag for an operator: `k` results, and tags in any order that say which of them an item belongs to.
    ///
    /// # Errors
    ///
    /// As for [`reducer`](Engine::reducer), and [`Error::TooManyTags`] from 2^31 tags on. Where the items are
    /// [sorted](warpfold_monoid::keyed::TagShape::sorted) on a device, its calls need [sorts](warpfold_gpu_kernels::sort_kernels) to be
    /// loaded, and give [`Error::NoKernel`] if there are none.
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sum = Engine::cpu().by_tag(Sum::<i32>::new(), 3)?;
    /// assert_eq!(sum.reduce(&[2u8, 0, 2, 2], &[1, 10, 100, 1000])?, [10, 0, 1101]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn by_tag<Op: Monoid>(&self, op: Op, k: u64) -> Result<TagReducer<Op>, Error> {
        const { limits::check::<Op>() };
        let limit = i32::MAX as u64;
        if k > limit {
            return Err(Error::TooManyTags { tags: k, limit });
        }
        let place = match &self.place {
            Place::Cpu => keys::TagPlace::Cpu,
            Place::Sim(options) => {
                let facts = self.facts.unwrap_or(DeviceFacts::H100);
                let export = self.find(Named::of::<Op>(), Family::Tags)?.1;
                let sorts = match keys::Travels::of::<Op>(false) {
                    keys::Travels::Long => self.sort_simulator::<u32, u64>(),
                    keys::Travels::Word | keys::Travels::Position => self.sort_simulator::<u32, u32>(),
                };
                keys::TagPlace::Sim(TagSimulator::new::<Op>(*options, export, facts, sorts)?)
            }
            #[cfg(feature = "cuda")]
            Place::Cuda(gpu) => {
                let loaded = self.kernels(gpu, Named::of::<Op>(), Family::Tags)?;
                let facts = self.facts.unwrap_or(gpu.context.facts);
                let groups = SortedPlan::of::<Op>(1, k, &facts).map(|_| {
                    let runs = RunLauncher::new::<i32, Equal, Op>(gpu.clone(), loaded.clone(), facts)?;
                    self.group_launcher_of::<u32>(runs, keys::Travels::of::<Op>(false))
                });
                keys::TagPlace::Cuda(TagLauncher::new::<Op>(gpu.clone(), loaded, facts, groups)?)
            }
        };
        Ok(TagReducer::new(self.clone(), op, k, place))
    }

    /// A reducer by key for an operator: a result for each run of neighbours whose keys are equal.
    ///
    /// # Errors
    ///
    /// As for [`reducer`](Engine::reducer).
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let runs = Engine::cpu().by_key(Sum::<i32>::new())?.reduce(&[5u64, 5, 9, 5], &[1, 10, 100, 1000])?;
    /// assert_eq!((runs.keys, runs.values), (vec![5, 9, 5], vec![11, 100, 1000]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn by_key<K: Plain + PartialEq, Op: Monoid>(&self, op: Op) -> Result<KeyReducer<K, Op>, Error> {
        self.by_key_with(op, Equal)
    }

    /// The same with an equality of one's own, of which kernels are exported with the operator's.
    ///
    /// # Errors
    ///
    /// As for [`by_key`](Engine::by_key).
    pub fn by_key_with<K, E, Op>(&self, op: Op, equality: E) -> Result<KeyReducer<K, Op, E>, Error>
    where
        K: Plain,
        E: Equality<K>,
        Op: Monoid,
    {
        const {
            limits::check::<Op>();
            limits::check_derived::<Runs<K, E, Op>>();
        }
        let place = match &self.place {
            Place::Cpu => keys::KeyPlace::Cpu,
            Place::Sim(options) => {
                let facts = self.facts.unwrap_or(DeviceFacts::H100);
                let export = self.find_by_key::<K, E, Op>()?.1;
                keys::KeyPlace::Sim(RunSimulator::new::<K, E, Op>(*options, export, facts)?)
            }
            #[cfg(feature = "cuda")]
            Place::Cuda(gpu) => {
                let found = self.find_by_key::<K, E, Op>()?;
                let loaded = gpu.kernels(found.1.operator, Family::Keys, &|| Ok(found))?;
                let facts = self.facts.unwrap_or(gpu.context.facts);
                keys::KeyPlace::Cuda(RunLauncher::new::<K, E, Op>(gpu.clone(), loaded, facts)?)
            }
        };
        Ok(KeyReducer::new(self.clone(), op, equality, place))
    }

    /// A reducer by group for an operator: a result for the items of each key, wherever they stand.
    ///
    /// # Errors
    ///
    /// As for [`by_key`](Engine::by_key), with whose kernels it works: those of keys of the type `i64` or `i32`.
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let groups = Engine::cpu().group_by(Sum::<i32>::new())?.reduce(&["x", "y", "x"], &[1, 10, 100])?;
    /// assert_eq!((groups.keys, groups.values), (vec!["x", "y"], vec![101, 10]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn group_by<Op: Monoid>(&self, op: Op) -> Result<GroupReducer<Op>, Error> {
        const { limits::check::<Op>() };
        if self.sorts() {
            self.find_runs::<i64, Op>().or_else(|_| self.find_runs::<i32, Op>())?;
        }
        Ok(GroupReducer::new(self.clone(), op))
    }

    /// Device memory that host arrays may take, if it is limited.
    pub(crate) fn device_bytes(&self) -> Option<u64> {
        self.device_bytes
    }

    /// May a host array of so many bytes, with its results, be on the device as a whole?
    #[cfg(feature = "cuda")]
    pub(crate) fn check_device_bytes(&self, needed: u64) -> Result<(), Error> {
        match self.device_bytes {
            Some(limit) if needed > limit => Err(Error::DeviceMemory { needed, free: limit, total: limit }),
            _ => Ok(()),
        }
    }

    /// Are there kernels that sort?
    pub(crate) fn sorts(&self) -> bool {
        !matches!(self.place, Place::Cpu)
    }

    /// The kernels that serve reductions by keys of a type.
    fn find_by_key<K: Plain, E: Equality<K>, Op: Monoid>(&self) -> Result<(Kernels, &'static Export), Error> {
        let own = || self.find(Named::of::<Runs<K, E, Op>>(), Family::Keys);
        if TypeId::of::<E>() != TypeId::of::<Equal>() {
            return own();
        }
        match KeyClass::of::<K>() {
            KeyClass::Own => own(),
            KeyClass::Narrow => self.find_runs::<i32, Op>(),
            KeyClass::Word => own().or_else(|_| self.find_runs::<i32, Op>()),
            KeyClass::Long => own().or_else(|_| self.find_runs::<i64, Op>()),
        }
    }

    /// The kernels of reductions by key.
    ///
    /// By the name of the type alone: it may be one that no kernels are made for, whose layout does not compile.
    fn find_runs<K: Plain, Op: Monoid>(&self) -> Result<(Kernels, &'static Export), Error> {
        let (id, name) = (TypeId::of::<Runs<K, Equal, Op>>(), type_name::<Runs<K, Equal, Op>>());
        self.find_by_id(id, Family::Keys, name, type_name::<Op::Item>())
    }

    /// Where groups' runs are reduced.
    pub(crate) fn run_place<K: Plain + PartialEq, Op: Monoid>(&self) -> Result<keys::KeyPlace, Error> {
        Ok(match &self.place {
            Place::Cpu => keys::KeyPlace::Cpu,
            Place::Sim(options) => {
                let facts = self.facts.unwrap_or(DeviceFacts::H100);
                keys::KeyPlace::Sim(RunSimulator::of_export(*options, self.find_runs::<K, Op>()?.1, facts))
            }
            #[cfg(feature = "cuda")]
            Place::Cuda(gpu) => {
                let id = TypeId::of::<Runs<K, Equal, Op>>();
                let loaded = gpu.kernels(id, Family::Keys, &|| self.find_runs::<K, Op>())?;
                let facts = self.facts.unwrap_or(gpu.context.facts);
                keys::KeyPlace::Cuda(RunLauncher::new::<K, Equal, Op>(gpu.clone(), loaded, facts)?)
            }
        })
    }

    /// The kernels that sort pairs.
    fn find_sorts<K: sort::Key, V: sort::Payload>(&self) -> Result<(Kernels, &'static Export), Error> {
        let (id, name) = (TypeId::of::<sort::Pairs<K, V>>(), type_name::<sort::Pairs<K, V>>());
        self.find_by_id(id, Family::Sorts, name, type_name::<V>())
    }

    /// What sorts in the simulator.
    pub(crate) fn sort_simulator<K: sort::Key, V: sort::Payload>(&self) -> Result<SortSimulator, Error> {
        let Place::Sim(options) = &self.place else {
            return Err(Error::NeedsCuda { what: "sorting on a device" });
        };
        let facts = self.facts.unwrap_or(DeviceFacts::H100);
        Ok(SortSimulator::new(*options, self.find_sorts::<K, V>()?.1, facts))
    }

    /// What groups on a GPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn group_launcher<K: keys::RunKey, Op: Monoid>(
        &self,
        travels: keys::Travels,
    ) -> Result<GroupLauncher<K>, Error> {
        let keys::KeyPlace::Cuda(runs) = self.run_place::<K::Run, Op>()? else {
            return Err(Error::NeedsCuda { what: "sorting on a device" });
        };
        self.group_launcher_of(runs, travels)
    }

    /// The same with what reduces runs.
    #[cfg(feature = "cuda")]
    fn group_launcher_of<K: keys::RunKey>(
        &self,
        runs: RunLauncher,
        travels: keys::Travels,
    ) -> Result<GroupLauncher<K>, Error> {
        let sorts = match travels {
            keys::Travels::Long => self.sort_launcher::<K, u64>()?,
            keys::Travels::Word | keys::Travels::Position => self.sort_launcher::<K, u32>()?,
        };
        Ok(GroupLauncher::new(sorts, runs, travels))
    }

    /// What sorts on a GPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn sort_launcher<K: keys::RunKey, V: sort::Payload>(&self) -> Result<SortLauncher<K>, Error> {
        let gpu = self.gpu("sorting on a device")?;
        let id = TypeId::of::<sort::Pairs<K, V>>();
        let loaded = gpu.kernels(id, Family::Sorts, &|| self.find_sorts::<K, V>())?;
        let facts = self.facts.unwrap_or(gpu.context.facts);
        Ok(SortLauncher::new(gpu.clone(), loaded, facts))
    }

    /// Where whole arrays are reduced, with what it takes.
    fn array_place(&self, operator: Named) -> Result<reducer::Place, Error> {
        Ok(match &self.place {
            Place::Cpu => reducer::Place::Cpu,
            Place::Sim(options) => {
                let facts = self.facts.unwrap_or(DeviceFacts::H100);
                let export = self.find(operator, Family::Arrays)?.1;
                reducer::Place::Sim(Simulator::new(*options, export, facts, operator.types)?)
            }
            #[cfg(feature = "cuda")]
            Place::Cuda(gpu) => {
                let loaded = self.kernels(gpu, operator, Family::Arrays)?;
                let facts = self.facts.unwrap_or(gpu.context.facts);
                reducer::Place::Cuda(crate::cuda::Launcher::new(
                    gpu.clone(),
                    loaded,
                    facts,
                    operator.types,
                    self.device_bytes,
                )?)
            }
        })
    }

    /// Where segments are reduced, with what it takes.
    fn segment_place(&self, operator: Named) -> Result<segments::Place, Error> {
        Ok(match &self.place {
            Place::Cpu => segments::Place::Cpu,
            Place::Sim(options) => {
                let facts = self.facts.unwrap_or(DeviceFacts::H100);
                let export = self.find(operator, Family::Segments)?.1;
                segments::Place::Sim(SegmentSimulator::new(*options, export, facts, operator.types)?)
            }
            #[cfg(feature = "cuda")]
            Place::Cuda(gpu) => {
                let loaded = self.kernels(gpu, operator, Family::Segments)?;
                let facts = self.facts.unwrap_or(gpu.context.facts);
                segments::Place::Cuda(SegmentLauncher::new(gpu.clone(), loaded, facts, operator.types)?)
            }
        })
    }

    #[cfg(feature = "cuda")]
    fn kernels(&self, gpu: &Gpu, operator: Named, family: Family) -> Result<Arc<Loaded>, Error> {
        gpu.kernels(operator.id, family, &|| self.find(operator, family))
    }

    /// The export of an operator's kernels of a family among what has been loaded.
    fn find(&self, operator: Named, family: Family) -> Result<(Kernels, &'static Export), Error> {
        self.find_by_id(operator.id, family, operator.name, operator.item)
    }

    /// The same for any family of kernels.
    fn find_in<Op: Monoid>(&self, family: Family) -> Result<(Kernels, &'static Export), Error> {
        self.find(Named::of::<Op>(), family)
    }

    fn find_by_id(
        &self,
        id: TypeId,
        family: Family,
        operator: &'static str,
        item: &'static str,
    ) -> Result<(Kernels, &'static Export), Error> {
        let find = |kernels: Kernels| Some((kernels, kernels.table.find_by_id(id, family)?));
        let found = self.loaded().into_iter().find_map(find);
        found.ok_or_else(|| no_kernel(family, operator, item))
    }

    /// The error that says that an operator has no kernels of a family.
    #[cfg(feature = "cuda")]
    pub(crate) fn without_kernels<Op: Monoid>(&self, family: Family) -> Error {
        no_kernel(family, type_name::<Op>(), type_name::<Op::Item>())
    }

    /// Frees the workspaces that launches no longer need, those ready for captures, and what long host arrays are sent
    /// through. Waits for the device; not to be called while any of the context's streams is being captured.
    ///
    /// # Errors
    ///
    /// [`Error::NeedsCuda`] without a GPU, or what the driver says.
    #[cfg(feature = "cuda")]
    pub fn trim(&self) -> Result<(), Error> {
        let gpu = self.gpu("trimming workspaces")?;
        let _current = gpu.context.enter_or_error()?;
        gpu.trim_pumps();
        gpu.pool.trim()?;
        gpu.segment_pool.trim()?;
        gpu.tag_pool.trim()?;
        gpu.scan_pool.trim()
    }

    /// Is that memory of its GPU, and aligned?
    #[cfg(feature = "cuda")]
    pub(crate) fn check_address(
        &self,
        address: u64,
        len: u64,
        size: usize,
        align: usize,
    ) -> Result<(), Error> {
        let gpu = self.gpu("device memory")?;
        if !address.is_multiple_of(align as u64) {
            return Err(Error::Misaligned { address, align });
        }
        if len == 0 || size == 0 {
            return Ok(());
        }
        let _current = gpu.context.enter_or_error()?;
        gpu.context.check_address(address)
    }

    /// What it keeps for its GPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn gpu(&self, what: &'static str) -> Result<&Arc<Gpu>, Error> {
        match &self.place {
            Place::Cpu | Place::Sim(_) => Err(Error::NeedsCuda { what }),
            Place::Cuda(gpu) => Ok(gpu),
        }
    }
}

/// How a list of kernels has `Runs<Key, Equality, Operator>`.
fn by_key(runs: &str) -> String {
    let inner = runs.strip_prefix("Runs<").and_then(|parts| parts.strip_suffix('>')).unwrap_or(runs);
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in inner.chars() {
        match c {
            ',' if depth == 0 => parts.push(String::new()),
            _ => {
                depth += matches!(c, '<' | '(' | '[') as i32 - matches!(c, '>' | ')' | ']') as i32;
                parts.last_mut().into_iter().for_each(|part| part.push(c));
            }
        }
    }
    match parts.iter().map(|part| part.trim()).collect::<Vec<_>>()[..] {
        [key, "Equal", op] => format!("({key}, {op})"),
        [key, equality, op] => format!("({key}, {op}, {equality})"),
        _ => runs.into(),
    }
}

fn no_kernel(family: Family, operator: &'static str, item: &'static str) -> Error {
    let (ending, list) = match family {
        Family::Arrays => ("", "kernels!"),
        Family::Segments => ("_segments", "segment_kernels!"),
        Family::Scans => ("_scan", "scan_kernels!"),
        Family::ScanLines => ("_lines", "scan_line_kernels!"),
        Family::Tags => ("_tags", "tag_kernels!"),
        Family::Keys => ("_by_key", "key_kernels!"),
        Family::Sorts => ("_sort", "sort_kernels!"),
    };
    let operator_in_list = match family {
        Family::Keys => by_key(&short(operator)),
        Family::Sorts => short(operator).replace("Pairs<", "(").replace('>', ")"),
        _ => short(operator),
    };
    Error::NoKernel { operator, item, line: format!("my_operator{ending} => {operator_in_list},"), list }
}

/// A type's name without the paths in it.
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
            None if self.backend == Backend::Sim => write!(f, "{}: simulated threads", self.backend),
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
