//! Errors of a build.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::Arch;
use crate::toolchain::NotFound;

/// Why a kernel crate could not be built.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no compiler for the device.
    #[error(transparent)]
    Toolchain(#[from] NotFound),
    /// Neither a build script nor told where to write.
    #[error("OUT_DIR is not set: call this from a build script, or name a folder with CudaBuilder::out_dir")]
    NoOutDir,
    /// The builder was given values that do not fit together.
    #[error("{0}")]
    Options(String),
    /// A file or program could not be used.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The folder does not hold a usable kernel crate.
    #[error("{} is not a kernel crate that can be built: {reason}", .folder.display())]
    KernelCrate {
        /// The folder.
        folder: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The kernel crate does not compile; cargo has said why on standard error.
    #[error(
        "kernel crate `{name}` does not compile for {arch} ({status}); the compiler's messages are above"
    )]
    Compile {
        /// The crate.
        name: String,
        /// The architecture.
        arch: Arch,
        /// How cargo ended.
        status: String,
    },
    /// An LLVM tool failed.
    #[error("{} failed ({status}): {message}", .tool.display())]
    Tool {
        /// The tool.
        tool: PathBuf,
        /// How it ended.
        status: String,
        /// Its standard error.
        message: String,
    },
    /// A shared static has an initial value, which shared memory cannot have.
    #[error(
        "the shared static `{name}` starts as `{initializer}`, but shared memory starts undefined: \
         make it MaybeUninit::uninit() and write it in the kernel"
    )]
    SharedInitializer {
        /// The static.
        name: String,
        /// Its initial value in LLVM's notation.
        initializer: String,
    },
    /// The kernel crate exports no kernels.
    #[error(
        "kernel crate `{0}` exports no kernels: give it functions with #[unsafe(no_mangle)] and extern \"ptx-kernel\""
    )]
    NoEntries(String),
    /// `ptxas` refused a module.
    #[error("{} does not assemble for {arch}: {message}", .ptx.display())]
    Assemble {
        /// The module.
        ptx: PathBuf,
        /// The architecture.
        arch: Arch,
        /// What ptxas said.
        message: String,
    },
    /// Kernels use more stack than allowed, or spill registers.
    #[error("kernels use local memory (allow it with CudaBuilder::allow_stack):\n  {}", .0.join("\n  "))]
    LocalMemory(Vec<String>),
    /// Kernels use more registers than blocks of as many threads as they say have.
    #[error("kernels that no block could run (bound them: `static <entry>__launch_bounds: u32 = threads`):\n  {}", .0.join("\n  "))]
    Registers(Vec<String>),
    /// There is no such module in the build.
    #[error("no PTX of group `{group}` for {arch}; there are: {}", .available.join(", "))]
    NoModule {
        /// The group asked for.
        group: String,
        /// The architecture asked for.
        arch: Arch,
        /// What there is, as `group (sm_XX)`.
        available: Vec<String>,
    },
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Error {
        Error::Io { action, path: path.to_path_buf(), source }
    }
}

/// The same text as `Display`: a build script that returns the error from `main` shows it so.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
