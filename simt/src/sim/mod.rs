//! The simulator: runs a kernel's own source on threads of its own making, and finds what a GPU hides.
//!
//! [`launch`] takes the shape of a grid and a closure that calls the kernel. Each simulated thread is a coroutine;
//! the threads of a warp are resumed together, a barrier or shuffle suspends them until the others are there. Global
//! memory is the host's own: pointers are ordinary pointers. A kernel can be stepped through in a debugger, and a
//! panic in it, an index out of bounds say, is reported with its place.
//!
//! The simulator reports, as a [`Fault`] that names kernel, block, thread, warp, lane, call and source line:
//!
//! - a shuffle, vote, match or `sync_warp` whose mask names a lane that has returned, does not exist or waits
//!   elsewhere, or does not name the caller, and a shuffle that reads a lane its mask does not name;
//! - a barrier that some threads of the block do not reach, or reach at another place in the source;
//! - a read of shared memory that nobody wrote, an index past the end of a shared array;
//! - two accesses to one byte of shared memory, at least one a write, with neither barrier nor `sync_warp` between;
//! - an access to global memory outside the registered [`Buffer`]s or misaligned, a write to a read-only one;
//! - a deadlock: all threads wait, or poll for what no other thread will write;
//! - a panic or trap of the kernel.
//!
//! It does not find a missing fence (memory is in order here), a race in global memory, or an access through a raw
//! pointer dereferenced in the kernel itself. Threads of a block that order their accesses to shared memory by a flag,
//! and not by a barrier, are reported as a race. A loop that waits for another thread goes on for ever unless it calls
//! [`nanosleep`](crate::thread::nanosleep), an atomic or a load made for polling, which let the others run. It needs
//! `panic = "unwind"`.
//!
//! It also counts, where [`Options::count`] asks for it, what a GPU's time depends on: bank conflicts, sectors of global memory,
//! barriers, shuffles, divergence. [`Counts`] says how far that is what hardware does.
//!
//! ```
//! use warpfold_simt::sim::{self, FaultKind, Launch, Options};
//! use warpfold_simt::{shared, thread};
//!
//! let fault = sim::launch(&Launch::new("neighbours", 1, 64), &Options::default(), || {
//!     let tile = shared!([u32; 64]);
//!     let t = thread::thread_idx_x() as usize;
//!     // SAFETY: indices below 64. The barrier that belongs between the two is missing.
//!     unsafe {
//!         tile.write(t, 1);
//!         tile.read((t + 1) % 64);
//!     }
//! })
//! .unwrap_err();
//! assert!(matches!(fault.kind, FaultKind::UnwrittenShared { .. } | FaultKind::SharedRace { .. }));
//! ```

mod context;
mod count;
mod fault;
mod memory;
pub(crate) mod primitives;
mod schedule;
mod stack;

pub use count::{Counts, GlobalCounts, LaneCounts, SharedCounts};
pub use fault::{Fault, FaultKind, LaneState, Place, Site};

use warpfold_monoid::Plain;

use crate::shared::Shared;
use crate::thread::Vec3;

/// The most threads that a block may have.
pub const MAX_BLOCK_THREADS: u32 = 1024;

/// The shape of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The kernel's name, for reports.
    pub name: String,
    /// Blocks in the grid.
    pub grid: Vec3,
    /// Threads in a block, [`MAX_BLOCK_THREADS`] at most.
    pub block: Vec3,
    /// Bytes of dynamic shared memory for each block.
    pub dynamic_shared: usize,
}

impl Launch {
    /// A launch of `grid` blocks of `block` threads, each a number or a tuple of two or three, without dynamic shared
    /// memory.
    ///
    /// ```
    /// use warpfold_simt::sim::Launch;
    ///
    /// let launch = Launch::new("transpose", (4, 2), (32, 8));
    /// assert_eq!((launch.grid.x, launch.grid.y, launch.grid.z), (4, 2, 1));
    /// ```
    pub fn new(name: impl Into<String>, grid: impl Into<Vec3>, block: impl Into<Vec3>) -> Self {
        Launch { name: name.into(), grid: grid.into(), block: block.into(), dynamic_shared: 0 }
    }

    /// The same launch with `bytes` of dynamic shared memory for each block.
    pub fn with_dynamic_shared(mut self, bytes: usize) -> Self {
        self.dynamic_shared = bytes;
        self
    }
}

/// In which order blocks, warps and lanes run. Results of a right kernel do not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Schedule {
    /// One block after the other, warps and lanes in order.
    #[default]
    Sequential,
    /// One block after the other in random order; so are the warps of a block and the lanes of a warp.
    Seeded(u64),
    /// Several blocks at once, interleaved at random: for kernels whose blocks wait for each other.
    Concurrent {
        /// Where the random order starts from.
        seed: u64,
    },
    /// The same, but one block at a time is late: it runs before any other up to its first barrier, so that a number that it
    /// draws there is the lowest, and not again until all others that are on the device wait in vain.
    Late {
        /// Where the random order starts from.
        seed: u64,
    },
}

/// How to run a launch.
#[derive(Debug, Clone)]
pub struct Options {
    /// The order of execution.
    pub schedule: Schedule,
    /// The buffers that the kernel may touch. If there are any, every access to global memory must lie in one.
    pub buffers: Vec<Buffer>,
    /// How many blocks are on the device at once under [`Schedule::Concurrent`] and [`Schedule::Late`].
    pub resident_blocks: usize,
    /// How often a thread may poll, with nothing changing anywhere, until that counts as a deadlock.
    pub spin_limit: u32,
    /// How many memory accesses a thread may make without once waiting or polling.
    pub step_limit: u64,
    /// Bytes of stack for each thread. A kernel that overflows it crashes the process.
    pub stack_bytes: usize,
    /// Whether to count what the launch does: its report then has [`Counts`].
    pub count: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            schedule: Schedule::Sequential,
            buffers: Vec::new(),
            resident_blocks: 8,
            spin_limit: 1000,
            step_limit: 200_000_000,
            stack_bytes: 128 * 1024,
            count: false,
        }
    }
}

impl Options {
    /// The default options with this schedule.
    pub fn with_schedule(schedule: Schedule) -> Self {
        Options { schedule, ..Options::default() }
    }

    /// The same options, and the launch is counted.
    ///
    /// ```
    /// use warpfold_simt::sim::{self, Launch, Options};
    /// use warpfold_simt::{shared, thread};
    ///
    /// # fn main() -> Result<(), sim::Fault> {
    /// let report = sim::launch(&Launch::new("strided", 1, 32), &Options::default().counted(), || {
    ///     let tile = shared!([u32; 1024]);
    ///     // SAFETY: an element a thread.
    ///     unsafe { tile.write(32 * thread::thread_idx_x() as usize, 1) };
    /// })?;
    /// let counts = report.counts.expect("asked for");
    /// assert_eq!(counts.shared_writes.max_degree(), 32);
    /// # Ok(())
    /// # }
    /// ```
    pub fn counted(mut self) -> Self {
        self.count = true;
        self
    }

    /// The same options with one more registered buffer.
    pub fn buffer(mut self, buffer: Buffer) -> Self {
        self.buffers.push(buffer);
        self
    }
}

/// A range of memory that a kernel may access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// Its name, for reports.
    pub name: String,
    /// The address of its first byte.
    pub start: usize,
    /// Its length in bytes.
    pub bytes: usize,
    /// Whether the kernel may write to it.
    pub writable: bool,
}

impl Buffer {
    /// A buffer that the kernel only reads.
    ///
    /// ```
    /// use warpfold_simt::sim::Buffer;
    ///
    /// let input = [1.0f32; 8];
    /// assert_eq!(Buffer::read_only("input", &input).bytes, 32);
    /// ```
    pub fn read_only<T: Plain>(name: impl Into<String>, slice: &[T]) -> Self {
        Buffer { name: name.into(), start: slice.as_ptr().addr(), bytes: size_of_val(slice), writable: false }
    }

    /// A buffer that the kernel reads and writes.
    pub fn writable<T: Plain>(name: impl Into<String>, slice: &mut [T]) -> Self {
        Buffer { name: name.into(), start: slice.as_ptr().addr(), bytes: size_of_val(slice), writable: true }
    }
}

/// What a finished launch did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Report {
    /// Blocks that ran.
    pub blocks: u64,
    /// Threads that ran.
    pub threads: u64,
    /// Barriers that a block passed.
    pub barriers: u64,
    /// Shuffles, votes, matches and synchronisations of warps.
    pub meetings: u64,
    /// How often a thread was resumed.
    pub switches: u64,
    /// What it asked of the hardware, if [`Options::count`] is set.
    pub counts: Option<Counts>,
}

/// Runs `kernel` on every thread of the launch, on the calling OS thread, and returns when all have returned.
///
/// # Errors
///
/// The first [`Fault`] stops the launch: no thread runs on after it. Memory that the kernel wrote up to then stays
/// written.
///
/// # Panics
///
/// If called from inside a kernel.
pub fn launch(launch: &Launch, options: &Options, kernel: impl Fn() + Sync) -> Result<Report, Fault> {
    schedule::run(launch, options, &kernel)
}

/// Tells the simulator that the thread combines two values, for [`Counts::combines`]: a call for the operators of tests. Outside
/// a launch, as in an oracle that uses the same operator, it does nothing.
#[track_caller]
pub fn count_combine() {
    primitives::count_combine();
}

/// A place in the source that declares a shared array; made by [`shared!`](crate::shared!).
#[derive(Debug)]
pub struct SharedSite {
    // Not zero-sized, so that each site has an address of its own.
    _distinct: u8,
}

impl SharedSite {
    /// For use in a `static`.
    #[doc(hidden)]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        SharedSite { _distinct: 0 }
    }

    /// The calling block's array for this site.
    #[doc(hidden)]
    #[track_caller]
    pub fn array<T: Plain>(&'static self, len: usize) -> Shared<T> {
        let ptr = primitives::shared_array(std::ptr::from_ref(self).addr(), len);
        // SAFETY: the block's memory holds `len` elements at `ptr`.
        unsafe { Shared::from_raw(ptr, len) }
    }
}
