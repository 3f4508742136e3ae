//! Builds a Rust kernel crate to PTX modules, from a build script, with plain rustc and LLVM's tools.
//!
//! ```no_run
//! // build.rs
//! use warpfold_ptx_builder::{Arch, CudaBuilder};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let build = CudaBuilder::new("kernels").archs([Arch::Sm80, Arch::Sm90]).cubin([Arch::Sm90]).build()?;
//!     let out = std::env::var("OUT_DIR")?;
//!     build.write_modules(std::path::Path::new(&out).join("modules.rs"), "crate::module")?;
//!     Ok(())
//! }
//! ```
//!
//! # Kernel crates
//!
//! A kernel crate is a `no_std` library whose exported kernels are
//! `#[unsafe(no_mangle)] pub extern "ptx-kernel" fn`. It needs no special manifest and no nightly compiler, only
//! `#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, stdarch_nvptx))]` and a panic handler for that target.
//!
//! **Groups.** Each group of kernels becomes a module of its own, so that using one does not load all. The group is
//! what stands before the first double underscore of the name: `sum_f32__rows` and `sum_f32__all` are two entries of
//! group `sum_f32`; a kernel without a double underscore is a group by itself. Exported statics named the same way
//! (`sum_f32__descriptor`) go into the module of their group and can be read with `cuModuleGetGlobal`. Kernels that a
//! dependency exports do not become entries.
//!
//! **Shared memory** is a `static mut` with `#[unsafe(link_section = ".shared")]` and no initial value
//! (`MaybeUninit::uninit()`); one of type `[u8; 0]` is the block's dynamic shared memory.
//!
//! **Launch bounds.** An export `static <entry>__launch_bounds: u32 = threads | blocks << 16` becomes the entry's
//! `.maxntid` and (unless `blocks` is 0) `.minnctapersm`, and no part of the module. 0 bounds nothing. With the highest bit
//! set it bounds nothing either, but says how many threads a block will have: a build in which so many do not find the
//! registers that they need fails, rather than a launch.
//!
//! **Architectures.** The crate is compiled once for each architecture, so `cfg!(target_feature = "sm_80")` holds on
//! sm_80 and later ones. Text for older ones may be made from that ([`CudaBuilder::older`]).
//!
//! **Floats** are never contracted: `a * b + c` rounds twice, as on the host.
//!
//! How the toolchain and `ptxas` are found is told in [`toolchain`] and [`ptxas`].

mod arch;
mod compile;
mod error;
mod ir;
mod link;
mod older;
pub mod ptxas;
mod record;
mod split;
pub mod toolchain;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

pub use crate::arch::{Arch, UnknownArch};
pub use crate::error::Error;
pub use crate::ptxas::Resources;
use crate::toolchain::Toolchain;

/// Builds a kernel crate; see the [crate documentation](crate) for an example.
#[derive(Clone, Debug)]
#[must_use = "nothing is built before `build`"]
pub struct CudaBuilder {
    crate_folder: PathBuf,
    archs: Vec<Arch>,
    older: Vec<Arch>,
    cubin: Vec<Arch>,
    assemble_only: Vec<Arch>,
    profile: compile::Profile,
    ptx_version: Option<u32>,
    strict: bool,
    allow_stack: BTreeMap<String, u32>,
    out_dir: Option<PathBuf>,
    target_dir: Option<PathBuf>,
    ptxas_search: Vec<PathBuf>,
    cargo_directives: bool,
}

impl CudaBuilder {
    /// Starts from the folder of the kernel crate, relative to the current folder (in a build script: the package's).
    ///
    /// Unless told otherwise it builds PTX for [`Arch::Sm80`], optimised, with the crate's default features.
    pub fn new(kernel_crate: impl Into<PathBuf>) -> CudaBuilder {
        CudaBuilder {
            crate_folder: kernel_crate.into(),
            archs: vec![Arch::Sm80],
            older: Vec::new(),
            cubin: Vec::new(),
            assemble_only: Vec::new(),
            profile: compile::Profile {
                release: true,
                default_features: true,
                features: Vec::new(),
                immediate_abort: true,
                opt_level: 3,
                groups: None,
            },
            ptx_version: None,
            strict: false,
            allow_stack: BTreeMap::new(),
            out_dir: None,
            target_dir: None,
            ptxas_search: Vec::new(),
            cargo_directives: true,
        }
    }

    /// Makes modules of these groups of kernels alone; of those that the crate does not have, none. By default all groups become
    /// modules.
    pub fn groups<S: Into<String>>(mut self, groups: impl IntoIterator<Item = S>) -> CudaBuilder {
        self.profile.groups = Some(groups.into_iter().map(Into::into).collect());
        self
    }

    /// Builds PTX for this architecture alone.
    pub fn arch(self, arch: Arch) -> CudaBuilder {
        self.archs([arch])
    }

    /// Builds PTX for these architectures. The crate is compiled once for each.
    pub fn archs(mut self, archs: impl IntoIterator<Item = Arch>) -> CudaBuilder {
        self.archs = sorted(archs);
        self
    }

    /// Makes PTX for these architectures from the text for the oldest one of [`archs`](Self::archs), which is newer, instead of
    /// compiling the crate once more, which takes twice as long as all else.
    ///
    /// Only for kernels that have of the newer architecture what older ones can do without: waits for the grid ahead
    /// (`griddepcontrol`) are left out, and `cp.async` copies of 16 bytes are done at once. A kernel with anything else that
    /// the older lacks is an error that names it. What the crate decides by `cfg!(target_feature)` is as for the newer, and so is
    /// what kernels hold in registers: local memory on these is not looked at.
    pub fn older(mut self, archs: impl IntoIterator<Item = Arch>) -> CudaBuilder {
        self.older = sorted(archs);
        self
    }

    /// Assembles machine code for these architectures too, if `ptxas` is found (a warning says when it is not). Each
    /// is made from the PTX of the newest built architecture that is not newer.
    pub fn cubin(mut self, archs: impl IntoIterator<Item = Arch>) -> CudaBuilder {
        self.cubin = sorted(archs);
        self
    }

    /// Assembles for these architectures as a check and throws the machine code away, if `ptxas` is found.
    pub fn assemble_only(mut self, archs: impl IntoIterator<Item = Arch>) -> CudaBuilder {
        self.assemble_only = sorted(archs);
        self
    }

    /// Without `release`, debug assertions and overflow checks are on; the optimiser runs all the same. On by default.
    pub fn release(mut self, release: bool) -> CudaBuilder {
        self.profile.release = release;
        self
    }

    /// Turns on features of the kernel crate.
    pub fn features<S: Into<String>>(mut self, features: impl IntoIterator<Item = S>) -> CudaBuilder {
        self.profile.features.extend(features.into_iter().map(Into::into));
        self
    }

    /// Turns off the kernel crate's default features.
    pub fn no_default_features(mut self) -> CudaBuilder {
        self.profile.default_features = false;
        self
    }

    /// Whether a panic is a trap on the spot (the default), which keeps message formatting out of the kernels, or a
    /// call of the crate's panic handler.
    pub fn panic_immediate_abort(mut self, immediate: bool) -> CudaBuilder {
        self.profile.immediate_abort = immediate;
        self
    }

    /// rustc's level of optimisation for the kernel crate, 1 to 3: of its own (MIR) optimisations only, among which inlining begins
    /// at 2. LLVM's run afterwards, always at their highest level. 3 unless told otherwise, whatever the workspace's profile says of
    /// the crate's build for the host.
    ///
    /// # Panics
    ///
    /// If it is not one of these: at 0 rustc does not say how long its variables live, and kernels would keep them on the stack.
    pub fn opt_level(mut self, level: u8) -> CudaBuilder {
        assert!((1..=3).contains(&level), "an optimisation level of 1 to 3, not {level}");
        self.profile.opt_level = level;
        self
    }

    /// The PTX ISA version as LLVM counts it (`78` for 7.8). By default the oldest one that knows the architecture and
    /// the cache hints of loads: at least 7.4, which drivers accept from CUDA 11.4 on.
    pub fn ptx_version(mut self, version: u32) -> CudaBuilder {
        self.ptx_version = Some(version);
        self
    }

    /// Makes local memory (stack frames, register spills) beyond the allowances an error and not a warning. It can only
    /// be seen where `ptxas` is found and [`cubin`](Self::cubin) or [`assemble_only`](Self::assemble_only) asks for an
    /// architecture.
    pub fn strict(mut self, strict: bool) -> CudaBuilder {
        self.strict = strict;
        self
    }

    /// Allows the function (an entry, or one that entries call) this many bytes of stack, and of spills.
    ///
    /// A kernel crate can also allow an entry its own: an export `static <entry>__allow_stack: u32 = bytes`. It does
    /// not become part of the module.
    pub fn allow_stack(mut self, function: impl Into<String>, bytes: u32) -> CudaBuilder {
        self.allow_stack.insert(function.into(), bytes);
        self
    }

    /// The folder for everything that is written; `OUT_DIR` by default.
    pub fn out_dir(mut self, folder: impl Into<PathBuf>) -> CudaBuilder {
        self.out_dir = Some(folder.into());
        self
    }

    /// The target folder of the inner cargo, which builds of several kernel crates may share (`core` is built once
    /// then). By default it is `warpfold-ptx` in the target folder that the output folder lies in, else within the
    /// output folder itself.
    pub fn target_dir(mut self, folder: impl Into<PathBuf>) -> CudaBuilder {
        self.target_dir = Some(folder.into());
        self
    }

    /// Also looks for the PyPI wheel's `ptxas` below this folder; see [`ptxas::find`].
    pub fn ptxas_search(mut self, folder: impl Into<PathBuf>) -> CudaBuilder {
        self.ptxas_search.push(folder.into());
        self
    }

    /// Whether to print `cargo:` lines for the outer cargo (warnings, what to watch). On by default; turn it off
    /// outside build scripts.
    pub fn cargo_directives(mut self, print: bool) -> CudaBuilder {
        self.cargo_directives = print;
        self
    }

    /// Builds the kernels, or returns what an earlier call built if neither the crate's files, nor those of its path
    /// dependencies, nor the options or tools have changed since.
    ///
    /// # Errors
    ///
    /// Every variant of [`Error`] but [`Error::NoModule`]. The kernel crate's own compile errors go to standard error
    /// as cargo prints them, before [`Error::Compile`] is returned.
    pub fn build(mut self) -> Result<Build, Error> {
        // The inner cargo runs in the kernel crate's folder, where relative paths would mean something else.
        let folders = [Some(&mut self.crate_folder), self.target_dir.as_mut(), self.out_dir.as_mut()];
        for folder in folders.into_iter().flatten() {
            *folder = std::path::absolute(&*folder).map_err(|source| Error::io("find", folder, source))?;
        }
        let build = self.build_or_reuse();
        if self.cargo_directives {
            self.print_directives(&build);
        }
        build
    }

    fn print_directives(&self, build: &Result<Build, Error>) {
        for variable in [toolchain::VARIABLE, ptxas::VARIABLE] {
            println!("cargo:rerun-if-env-changed={variable}");
        }
        // After a failure too: the script may go on without kernels, and should then run again when they change.
        let fallback = [self.crate_folder.join("src"), self.crate_folder.join("Cargo.toml")];
        let inputs = build.as_ref().map_or(&fallback[..], |build| &build.inputs);
        for input in inputs {
            println!("cargo:rerun-if-changed={}", input.display());
        }
        for warning in build.as_ref().map_or(&[][..], |build| &build.warnings) {
            println!("cargo:warning={warning}");
        }
    }

    fn build_or_reuse(&self) -> Result<Build, Error> {
        if self.archs.is_empty() {
            return Err(Error::Options(
                "no architecture to build for: CudaBuilder::archs was given none".into(),
            ));
        }
        if let Some(arch) = self.older.iter().find(|arch| **arch >= self.archs[0]) {
            return Err(Error::Options(format!(
                "{arch} is not older than {}: CudaBuilder::older is for those that the crate is not compiled for",
                self.archs[0]
            )));
        }
        let out = match &self.out_dir {
            Some(folder) => folder.clone(),
            None => env::var_os("OUT_DIR").map(PathBuf::from).ok_or(Error::NoOutDir)?,
        };
        fs::create_dir_all(&out).map_err(|source| Error::io("create", &out, source))?;
        let ptxas = ptxas::find(&self.ptxas_search);
        let options = record::options_key(self, ptxas.as_deref());
        let folder = out.join("ptx").join(self.variant());
        let record = folder.join("build.json");
        if let Some(build) = record::load(&record, &options) {
            return Ok(build);
        }
        // Whatever happens now, the old record no longer describes what lies here.
        match fs::remove_file(&record) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &record, error));
            }
            _ => {}
        }
        let toolchain = Toolchain::find()?;
        let description = compile::describe(&toolchain, &self.crate_folder, &self.profile)?;
        // Taken before compiling, so that an edit meanwhile is not missed.
        let stamp = record::stamp(&description.inputs);
        let build = self.build_anew(&toolchain, &description, ptxas, &folder, &out)?;
        let mut tools: Vec<PathBuf> = toolchain.files().map(Path::to_path_buf).collect();
        tools.extend(build.ptxas.clone());
        record::store(&record, &options, &stamp, &tools, &build)?;
        Ok(build)
    }

    /// A folder name for this crate and its options, so that builds with other ones do not overwrite each other.
    fn variant(&self) -> String {
        let name = self.crate_folder.file_name().unwrap_or_default().to_string_lossy();
        let name = if name.is_empty() { "kernels".into() } else { name };
        format!("{name}-{:016x}", record::hash(&(&self.crate_folder, format!("{:?}", self.profile))))
    }

    fn build_anew(
        &self,
        toolchain: &Toolchain,
        description: &compile::KernelCrate,
        ptxas: Option<PathBuf>,
        folder: &Path,
        out: &Path,
    ) -> Result<Build, Error> {
        let target_dir = self.target_dir.clone().unwrap_or_else(|| default_target_dir(out));
        let mut warnings = Vec::new();
        let modules_folder = folder.join("modules");
        fs::create_dir_all(&modules_folder).map_err(|source| Error::io("create", &modules_folder, source))?;
        let file = |group: &str, arch: Arch, extension: &str| {
            let safe = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '-' };
            let plain: String = group.chars().map(safe).collect();
            let unique =
                if plain == group { plain } else { format!("{plain}-{:016x}", record::hash(&group)) };
            modules_folder.join(format!("{unique}.{arch}.{extension}"))
        };
        // rustc and the linker use one core, so the groups of one architecture are lowered while the next compiles.
        let mut linked = Vec::new();
        let compile = |ready: &dyn Fn((Arch, Arc<link::Linked>, usize))| {
            for &arch in &self.archs {
                let folder = folder.join(arch.to_string());
                let bitcode = compile::compile(
                    toolchain,
                    &self.crate_folder,
                    description,
                    &self.profile,
                    arch,
                    &folder,
                    &target_dir,
                )?;
                let mut kernels = link::link_kernels(toolchain, &bitcode, arch, &folder)?;
                if let Some(wanted) = &self.profile.groups {
                    kernels.groups.retain(|group| wanted.contains(&group.name));
                }
                let kernels = Arc::new(kernels);
                if kernels.groups.is_empty() {
                    return Err(Error::NoEntries(description.name.clone()));
                }
                (0..kernels.groups.len()).for_each(|group| ready((arch, Arc::clone(&kernels), group)));
                linked.push((arch, kernels));
            }
            Ok(())
        };
        in_parallel_as_they_come(compile, |(arch, linked, group)| {
            let group = &linked.groups[*group];
            let ptx = file(&group.name, *arch, "ptx");
            link::lower(toolchain, linked, group, *arch, self.ptx_version, &ptx)?;
            for &older in self.older.iter().filter(|_| *arch == self.archs[0]) {
                let text = fs::read_to_string(&ptx).map_err(|source| Error::io("read", &ptx, source))?;
                let text = older::derive(&text, older, self.ptx_version.unwrap_or(link::least_ptx(older)))?;
                let to = file(&group.name, older, "ptx");
                fs::write(&to, text).map_err(|source| Error::io("write", &to, source))?;
            }
            Ok(())
        })?;
        let zeroed: std::collections::BTreeSet<&String> =
            linked.iter().flat_map(|(_, l)| &l.zeroed).collect();
        warnings.extend(zeroed.into_iter().map(|name| {
            format!("shared static `{name}` asks for zeros, but shared memory starts undefined; use MaybeUninit::uninit()")
        }));

        let mut modules: BTreeMap<&str, Module> = BTreeMap::new();
        for (arch, group) in
            linked.iter().flat_map(|(arch, l)| l.groups.iter().map(move |group| (arch, group)))
        {
            let module = modules.entry(&group.name).or_insert_with(|| Module::new(&group.name));
            for (names, new) in [(&mut module.entries, &group.entries), (&mut module.globals, &group.globals)]
            {
                names.extend(new.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
            }
            let older = self.older.iter().filter(|_| *arch == self.archs[0]);
            module.images.extend(older.chain([arch]).map(|&arch| {
                let path = file(&group.name, arch, "ptx");
                Image { arch, kind: ImageKind::Ptx, path }
            }));
        }

        let mut allowances: BTreeMap<String, u32> = BTreeMap::new();
        for (name, bytes) in linked.iter().flat_map(|(_, linked)| &linked.allowances).chain(&self.allow_stack)
        {
            let most = allowances.entry(name.clone()).or_default();
            *most = (*most).max(*bytes);
        }
        let wanted = sorted(self.cubin.iter().chain(&self.assemble_only).copied());
        match &ptxas {
            None if !wanted.is_empty() => {
                let names: Vec<String> = wanted.iter().map(Arch::to_string).collect();
                warnings.push(format!(
                    "ptxas was not found: no machine code and no check for {}; name it with {}",
                    names.join(", "),
                    ptxas::VARIABLE
                ));
            }
            None => {}
            Some(ptxas) => {
                let mut jobs = Vec::new();
                for module in modules.values() {
                    for &arch in &wanted {
                        let Some(ptx) = module.ptx_for(arch) else {
                            return Err(Error::Options(format!(
                                "group `{}` has no PTX that {arch} can run: the oldest architecture built is {}",
                                module.group,
                                self.older.first().unwrap_or(&self.archs[0])
                            )));
                        };
                        jobs.push((module.group.clone(), arch, ptx.to_path_buf()));
                    }
                }
                let reports = in_parallel(&jobs, |(group, arch, ptx)| {
                    let cubin = file(group, *arch, "cubin");
                    let report = ptxas::assemble(ptxas, ptx, *arch, &cubin)?;
                    if !self.cubin.contains(arch) {
                        fs::remove_file(&cubin).map_err(|source| Error::io("remove", &cubin, source))?;
                    }
                    Ok(report)
                })?;
                let bounds: BTreeMap<&String, u32> = linked
                    .iter()
                    .flat_map(|(_, linked)| &linked.bounds)
                    .map(|(name, &bound)| (name, bound))
                    .collect();
                let (mut excess, mut too_many) = (Vec::new(), Vec::new());
                for ((group, arch, _), report) in jobs.iter().zip(reports) {
                    if !self.older.contains(arch) {
                        excess.extend(
                            report.iter().filter_map(|used| over_allowance(used, *arch, &allowances)),
                        );
                    }
                    too_many.extend(
                        report
                            .iter()
                            .filter_map(|used| over_registers(used, *arch, *bounds.get(&used.function)?)),
                    );
                    let Some(module) = modules.get_mut(group.as_str()) else { continue };
                    if self.cubin.contains(arch) {
                        let path = file(group, *arch, "cubin");
                        module.images.push(Image { arch: *arch, kind: ImageKind::Cubin, path });
                    }
                    module.resources.extend(report.into_iter().map(|used| (*arch, used)));
                }
                if !too_many.is_empty() {
                    return Err(Error::Registers(too_many));
                }
                match excess.is_empty() {
                    false if self.strict => return Err(Error::LocalMemory(excess)),
                    _ => warnings.extend(excess),
                }
            }
        }
        Ok(Build {
            modules: modules.into_values().collect(),
            warnings,
            ptxas,
            toolchain: format!("rustc {}, LLVM {} ({})", toolchain.version, toolchain.llvm, toolchain.origin),
            reused: false,
            inputs: description.inputs.clone(),
        })
    }
}

fn sorted(archs: impl IntoIterator<Item = Arch>) -> Vec<Arch> {
    let mut archs: Vec<Arch> = archs.into_iter().collect();
    archs.sort();
    archs.dedup();
    archs
}

/// `warpfold-ptx` in the target folder that `out` lies in: cargo marks its target folders with a `CACHEDIR.TAG`.
fn default_target_dir(out: &Path) -> PathBuf {
    let target = out.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    target.map_or_else(|| out.join("target"), |folder| folder.join("warpfold-ptx"))
}

/// Local memory beyond what is allowed, in words.
fn over_allowance(used: &Resources, arch: Arch, allowances: &BTreeMap<String, u32>) -> Option<String> {
    let allowed = allowances.get(&used.function).copied().unwrap_or(0);
    let most = used.stack_bytes.max(used.spill_store_bytes).max(used.spill_load_bytes);
    (most > allowed).then(|| {
        format!(
            "`{}` on {arch}: {} bytes of stack, {} bytes of spill stores, {} bytes of spill loads; allowed: {allowed}",
            used.function, used.stack_bytes, used.spill_store_bytes, used.spill_load_bytes
        )
    })
}

/// Registers of a multiprocessor, of every architecture, and for how many at a time a thread is given them.
const REGISTERS: u32 = 1 << 16;
const REGISTERS_AT_ONCE: u32 = 8;

/// More registers than the threads of a block can have, in words.
fn over_registers(used: &Resources, arch: Arch, bound: u32) -> Option<String> {
    let threads = bound & 0xffff;
    let most = REGISTERS / threads.max(1);
    (used.registers.next_multiple_of(REGISTERS_AT_ONCE) > most).then(|| {
        format!(
            "`{}` on {arch}: {} registers, of which a block of {threads} threads has {most} for each",
            used.function, used.registers
        )
    })
}

/// Runs `work` over all jobs on as many threads as the machine has; results in the order of the jobs, or the first
/// error.
fn in_parallel<J: Sync, R: Send>(
    jobs: &[J],
    work: impl Fn(&J) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let produce = |ready: &dyn Fn(usize)| {
        (0..jobs.len()).for_each(ready);
        Ok(())
    };
    in_parallel_as_they_come(produce, |&index| work(&jobs[index]))
}

/// The same for jobs that `produce`, on the calling thread, hands over one by one. Once a job or `produce` itself has
/// failed, no further job is started.
fn in_parallel_as_they_come<J: Send, R: Send>(
    produce: impl FnOnce(&dyn Fn(J)) -> Result<(), Error>,
    work: impl Fn(&J) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let (sender, receiver) = mpsc::channel();
    let receiver = Mutex::new(receiver);
    let failed = AtomicBool::new(false);
    let done: Mutex<Vec<(usize, Result<R, Error>)>> = Mutex::new(Vec::new());
    let produced = thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((index, job)) = next else { break };
                    if failed.load(Ordering::Relaxed) {
                        continue;
                    }
                    let result = work(&job);
                    failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
                }
            });
        }
        let count = Cell::new(0);
        let produced = produce(&|job| {
            // The receiver outlives the scope.
            let _ = sender.send((count.replace(count.get() + 1), job));
        });
        failed.fetch_or(produced.is_err(), Ordering::Relaxed);
        // The threads end when there is no more to come.
        drop(sender);
        produced
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    let results = done.into_iter().map(|(_, result)| result).collect::<Result<Vec<R>, Error>>()?;
    produced.map(|()| results)
}

/// What a build made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Build {
    /// The modules, sorted by group.
    pub modules: Vec<Module>,
    /// What the user should know; printed as `cargo:warning` lines in build scripts.
    pub warnings: Vec<String>,
    /// The `ptxas` that was found. Without one, nothing was assembled.
    pub ptxas: Option<PathBuf>,
    /// The compiler and LLVM that built the kernels, in words.
    pub toolchain: String,
    /// Whether nothing had changed, so that an earlier build was taken.
    pub reused: bool,
    /// Files and folders that the build depends on: the crate's and its path dependencies'.
    pub inputs: Vec<PathBuf>,
}

/// A group of entry points that are loaded together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Module {
    /// The group's name.
    pub group: String,
    /// The kernels, sorted.
    pub entries: Vec<String>,
    /// The exported variables, sorted.
    pub globals: Vec<String>,
    /// PTX by architecture, oldest first, then machine code by architecture.
    pub images: Vec<Image>,
    /// What each function takes on each architecture that was assembled.
    pub resources: Vec<(Arch, Resources)>,
}

/// One file that holds a module.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Image {
    /// The architecture it was built for.
    pub arch: Arch,
    /// What the file holds.
    pub kind: ImageKind,
    /// The file.
    pub path: PathBuf,
}

/// What an image holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageKind {
    /// PTX text, without a NUL at its end. Runs on its architecture and all later ones.
    Ptx,
    /// Machine code. Runs on its architecture, and on those of the same major version with a later minor one.
    Cubin,
}

impl Module {
    fn new(group: &str) -> Module {
        Module {
            group: group.to_owned(),
            entries: Vec::new(),
            globals: Vec::new(),
            images: Vec::new(),
            resources: Vec::new(),
        }
    }

    /// The PTX of the newest architecture that is not newer than `arch`.
    fn ptx_for(&self, arch: Arch) -> Option<&Path> {
        let usable = self.images.iter().filter(|image| image.kind == ImageKind::Ptx && image.arch <= arch);
        usable.max_by_key(|image| image.arch).map(|image| &*image.path)
    }
}

impl Build {
    /// The PTX text of a group, built for exactly `arch`: for tests that hold what must appear in it.
    ///
    /// # Errors
    ///
    /// [`Error::NoModule`] with what there is, or [`Error::Io`].
    pub fn ptx(&self, group: &str, arch: Arch) -> Result<String, Error> {
        let ptx = self.images().filter(|(_, image)| image.kind == ImageKind::Ptx);
        let Some((_, image)) =
            ptx.clone().find(|(module, image)| module.group == group && image.arch == arch)
        else {
            let available = ptx.map(|(module, image)| format!("{} ({})", module.group, image.arch)).collect();
            return Err(Error::NoModule { group: group.to_owned(), arch, available });
        };
        fs::read_to_string(&image.path).map_err(|source| Error::io("read", &image.path, source))
    }

    fn images(&self) -> impl Iterator<Item = (&Module, &Image)> + Clone {
        self.modules.iter().flat_map(|module| module.images.iter().map(move |image| (module, image)))
    }

    /// The module of a group.
    pub fn module(&self, group: &str) -> Option<&Module> {
        self.modules.iter().find(|module| module.group == group)
    }

    /// Writes a Rust file to `include!`, which embeds all modules:
    /// `pub static MODULES: &[<types>::Module]`.
    ///
    /// `types` is the path of a module that the including crate sees, with types of this shape:
    ///
    /// ```
    /// pub struct Module {
    ///     pub name: &'static str,
    ///     pub entries: &'static [&'static str],
    ///     pub images: &'static [Image],
    /// }
    /// pub struct Image {
    ///     /// 90 for sm_90.
    ///     pub arch: u32,
    ///     pub kind: ImageKind,
    ///     /// The image, compressed: raw deflate (RFC 1951).
    ///     pub deflated: &'static [u8],
    ///     /// Its bytes when inflated.
    ///     pub len: usize,
    /// }
    /// pub enum ImageKind {
    ///     Ptx,
    ///     Cubin,
    /// }
    /// ```
    ///
    /// The file is left untouched where it would not change.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file, or a compressed image beside it, cannot be written.
    pub fn write_modules(&self, file: impl AsRef<Path>, types: &str) -> Result<(), Error> {
        let file = file.as_ref();
        let text = self.modules_source(types, &file.with_extension("images"))?;
        if fs::read_to_string(file).is_ok_and(|old| old == text) {
            return Ok(());
        }
        fs::write(file, text).map_err(|source| Error::io("write", file, source))
    }

    /// The text of the file; the compressed images go into `folder`.
    fn modules_source(&self, types: &str, folder: &Path) -> Result<String, Error> {
        let lengths = self.deflate(folder)?;
        let mut text = format!(
            "// Written by warpfold-ptx-builder: {}.\n/// The kernels that were built in, by group.\n\
             pub static MODULES: &[{types}::Module] = &[\n",
            self.toolchain
        );
        let mut lengths = lengths.into_iter();
        for module in &self.modules {
            let _ = write!(
                text,
                "    {types}::Module {{\n        name: {:?},\n        entries: &{:?},\n        images: &[\n",
                module.group, module.entries
            );
            for (image, len) in module.images.iter().zip(&mut lengths) {
                let kind = image.kind;
                let path = folder.join(deflated_name(module, image));
                let _ = writeln!(
                    text,
                    "            {types}::Image {{ arch: {}, kind: {types}::ImageKind::{kind:?}, \
                     deflated: include_bytes!({path:?}), len: {len} }},",
                    image.arch.number(),
                );
            }
            text.push_str("        ],\n    },\n");
        }
        text.push_str("];\n");
        Ok(text)
    }

    /// Compresses the images that have changed since they were last compressed into `folder`. Returns the length of
    /// every image.
    fn deflate(&self, folder: &Path) -> Result<Vec<u64>, Error> {
        fs::create_dir_all(folder).map_err(|source| Error::io("create", folder, source))?;
        let record = folder.join("stamps");
        let old = fs::read_to_string(&record).unwrap_or_default();
        // What it says stops holding with the first file that is written.
        let _ = fs::remove_file(&record);
        let old: std::collections::HashSet<&str> = old.lines().collect();
        let images: Vec<(&Module, &Image)> = self.images().collect();
        let done = in_parallel(&images, |(module, image)| {
            let name = deflated_name(module, image);
            // Taken before reading, so that a change meanwhile is seen the next time.
            let stamp = format!("{name} {} {:?}", record::file_stamp(&image.path), image.path);
            let path = folder.join(name);
            if old.contains(&*stamp) && path.is_file() {
                let data = fs::metadata(&image.path);
                return data.map(|data| (stamp, data.len())).map_err(|e| Error::io("read", &image.path, e));
            }
            let bytes = fs::read(&image.path).map_err(|source| Error::io("read", &image.path, source))?;
            // Level 6: PTX shrinks about tenfold, and higher levels gain a few percent in several times as long.
            let deflated = miniz_oxide::deflate::compress_to_vec(&bytes, 6);
            if fs::read(&path).ok().as_ref() != Some(&deflated) {
                fs::write(&path, deflated).map_err(|source| Error::io("write", &path, source))?;
            }
            Ok((stamp, bytes.len() as u64))
        })?;
        let (stamps, lengths): (Vec<String>, Vec<u64>) = done.into_iter().unzip();
        fs::write(&record, stamps.join("\n")).map_err(|source| Error::io("write", &record, source))?;
        Ok(lengths)
    }
}

/// The name of an image's compressed file.
fn deflated_name(module: &Module, image: &Image) -> String {
    format!("{}-{}-{:?}", module.group, image.arch.number(), image.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_needs_registers_for_all_its_threads() {
        let used = |registers| Resources { function: "k".into(), registers, ..Resources::default() };
        assert!(over_registers(&used(128), Arch::Sm90, 512).is_none());
        // Given out by eights.
        let words = over_registers(&used(129), Arch::Sm90, 512 | ir::UNBOUNDED).unwrap();
        assert_eq!(words, "`k` on sm_90: 129 registers, of which a block of 512 threads has 128 for each");
        assert!(over_registers(&used(255), Arch::Sm90, 256).is_none());
    }

    #[test]
    fn local_memory_counts_against_the_allowance() {
        let mut used = Resources { function: "k".into(), stack_bytes: 8, ..Resources::default() };
        let allow = |bytes| BTreeMap::from([("k".to_owned(), bytes)]);
        assert!(over_allowance(&used, Arch::Sm90, &allow(8)).is_none());
        assert!(over_allowance(&used, Arch::Sm90, &allow(7)).unwrap().contains("8 bytes of stack"));
        used.spill_load_bytes = 12;
        assert!(over_allowance(&used, Arch::Sm90, &allow(8)).is_some());
        assert!(over_allowance(&used, Arch::Sm90, &BTreeMap::new()).is_some());
    }

    #[test]
    fn parallel_results_keep_their_order_and_errors_come_through() {
        let jobs: Vec<u32> = (0..100).collect();
        assert_eq!(
            in_parallel(&jobs, |job| Ok(job * 2)).unwrap(),
            (0..100).map(|j| j * 2).collect::<Vec<_>>()
        );
        let failed = in_parallel(&jobs, |&job| if job == 7 { Err(Error::NoOutDir) } else { Ok(()) });
        assert!(matches!(failed, Err(Error::NoOutDir)));
        assert!(in_parallel(&[] as &[u32], |_| Ok(())).unwrap().is_empty());
    }

    #[test]
    fn what_was_handed_over_before_a_failure_does_not_hide_it() {
        let produce = |ready: &dyn Fn(u32)| {
            ready(1);
            Err(Error::NoOutDir)
        };
        let failed = in_parallel_as_they_come(produce, |job| Ok(*job));
        assert!(matches!(failed, Err(Error::NoOutDir)));
    }

    #[test]
    fn images_are_compressed_again_when_they_or_their_place_change() {
        let root = tempfile::tempdir().unwrap();
        let (one, two) = (root.path().join("one.ptx"), root.path().join("two.ptx"));
        fs::write(&one, "one".repeat(100)).unwrap();
        fs::write(&two, "two".repeat(100)).unwrap();
        let build = |path: &Path| {
            let image = Image { arch: Arch::Sm90, kind: ImageKind::Ptx, path: path.to_path_buf() };
            Build {
                modules: vec![Module { images: vec![image], ..Module::new("g") }],
                warnings: Vec::new(),
                ptxas: None,
                toolchain: "t".into(),
                reused: false,
                inputs: Vec::new(),
            }
        };
        let deflated = root.path().join("modules.images/g-90-Ptx");
        let holds = |path: &Path, expected: String| {
            build(path).write_modules(root.path().join("modules.rs"), "x").unwrap();
            let bytes = miniz_oxide::inflate::decompress_to_vec(&fs::read(&deflated).unwrap()).unwrap();
            assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        };
        holds(&one, "one".repeat(100));
        holds(&two, "two".repeat(100));
        holds(&one, "one".repeat(100));
        // What is there and fresh is left alone, even where it would come out differently.
        fs::write(&deflated, miniz_oxide::deflate::compress_to_vec(b"kept", 6)).unwrap();
        holds(&one, "kept".into());
        fs::write(&one, "three".repeat(100)).unwrap();
        holds(&one, "three".repeat(100));
        fs::remove_file(&deflated).unwrap();
        holds(&one, "three".repeat(100));
    }

    #[test]
    fn no_architecture_is_an_error() {
        let error = CudaBuilder::new("x").archs([]).cargo_directives(false).build().unwrap_err();
        assert!(matches!(error, Error::Options(_)));
    }
}
