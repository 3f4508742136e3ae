//! What went wrong, and where.

use std::fmt;
use std::panic::Location;

use crate::thread::Vec3;

/// A place in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The file, as the compiler was given it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl From<&Location<'_>> for Site {
    fn from(location: &Location<'_>) -> Self {
        Site { file: location.file().to_owned(), line: location.line(), column: location.column() }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A thread, and what it was about to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The block's coordinates in the grid.
    pub block: Vec3,
    /// The thread's coordinates in the block.
    pub thread: Vec3,
    /// The thread's warp in the block.
    pub warp: u32,
    /// The thread's lane in the warp.
    pub lane: u32,
    /// The call it made; empty for a panic in the kernel's own code.
    pub call: &'static str,
    /// Where in the source, if known.
    pub site: Option<Site>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}, thread {} (warp {}, lane {})", self.block, self.thread, self.warp, self.lane)?;
        if !self.call.is_empty() {
            write!(f, ", {}", self.call)?;
        }
        match &self.site {
            Some(site) => write!(f, " at {site}"),
            None => Ok(()),
        }
    }
}

/// What a thread does that others wait for in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaneState {
    /// It has returned from the kernel.
    Returned,
    /// There is no such thread: the block ends before this lane.
    Missing,
    /// It waits elsewhere.
    Waiting {
        /// In this call.
        call: &'static str,
        /// At this place in the source.
        site: Site,
    },
}

impl fmt::Display for LaneState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaneState::Returned => write!(f, "has returned"),
            LaneState::Missing => write!(f, "does not exist"),
            LaneState::Waiting { call, site } => write!(f, "is in {call} at {site}"),
        }
    }
}

/// What a kernel did wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// The launch itself is not possible.
    #[error("cannot launch: {reason}")]
    Launch {
        /// Why not.
        reason: String,
    },
    /// A warp function was called by a lane that its mask does not name.
    #[error("the mask {mask:#010x} does not name the calling lane")]
    CallerNotInMask {
        /// The mask.
        mask: u32,
    },
    /// A warp function waits for a lane that does not come.
    #[error("the mask {mask:#010x} names lane {lane}, which {state}")]
    AbsentLane {
        /// The mask.
        mask: u32,
        /// The lane that does not come.
        lane: u32,
        /// What it does instead.
        state: LaneState,
    },
    /// A shuffle reads from a lane that takes no part in it: the value is whatever a register holds.
    #[error(
        "it reads lane {lane}, which the mask {mask:#010x} does not name; use a full mask or a narrower width"
    )]
    UnnamedSource {
        /// The mask.
        mask: u32,
        /// The lane that it would read.
        lane: u32,
    },
    /// A shuffle's width is not a power of two up to 32.
    #[error("the width {width} is not a power of two from 1 to 32")]
    Width {
        /// The width.
        width: u32,
    },
    /// Some threads wait at a barrier that others do not reach.
    #[error("{waiting} of the block's {threads} threads wait here, but thread {thread} {state}")]
    BarrierNotReached {
        /// The threads that wait at this barrier.
        waiting: u32,
        /// The threads of the block.
        threads: u32,
        /// One that does not come.
        thread: Vec3,
        /// What it does instead.
        state: LaneState,
    },
    /// A read of shared memory that no thread of this block has written.
    #[error("element {index} of a shared array of {len} was never written")]
    UnwrittenShared {
        /// The element.
        index: usize,
        /// The array's length.
        len: usize,
    },
    /// Two accesses to the same shared memory, one of them a write, that nothing orders.
    #[error(
        "{} element {index} of a shared array, which thread {other} {} at {other_site} with no barrier between",
        if *.write { "it writes" } else { "it reads" },
        if *.other_write { "wrote" } else { "read" }
    )]
    SharedRace {
        /// The element that this access names.
        index: usize,
        /// Whether this access writes.
        write: bool,
        /// The thread of the earlier access.
        other: Vec3,
        /// Whether the earlier access wrote.
        other_write: bool,
        /// Where the earlier access is.
        other_site: Site,
    },
    /// An index past the end of a shared array.
    #[error("index {index} of a shared array of {len}")]
    SharedOutOfBounds {
        /// The index.
        index: usize,
        /// The array's length.
        len: usize,
    },
    /// A block's shared arrays do not fit.
    #[error("{asked} bytes of {what} shared memory, of which a block has {available}")]
    SharedExhausted {
        /// Static or dynamic.
        what: &'static str,
        /// The bytes asked for so far, with this array.
        asked: usize,
        /// The bytes that there are.
        available: usize,
    },
    /// An access to global memory outside every registered buffer.
    #[error("{bytes} bytes at {address:#x}: {detail}")]
    OutOfBounds {
        /// The first byte's address.
        address: usize,
        /// The bytes accessed.
        bytes: usize,
        /// How it lies to the nearest registered buffer.
        detail: String,
    },
    /// An access to global memory at an address that is not a multiple of its size.
    #[error("the address {address:#x} is not a multiple of {align}")]
    Misaligned {
        /// The address.
        address: usize,
        /// What it should be a multiple of.
        align: usize,
    },
    /// No thread can go on.
    #[error("deadlock: {detail}")]
    Deadlock {
        /// Who waits for what.
        detail: String,
    },
    /// A thread makes access after access and never waits or polls.
    #[error("{steps} memory accesses without once waiting or polling: an endless loop?")]
    Runaway {
        /// The accesses made.
        steps: u64,
    },
    /// The kernel panicked.
    #[error("panic: {message}")]
    Panic {
        /// The panic's message.
        message: String,
    },
    /// The kernel stopped the grid.
    #[error("the kernel trapped")]
    Trap,
}

/// A fault in a simulated kernel.
///
/// ```
/// use warpfold_simt::sim::{self, Launch, Options};
/// use warpfold_simt::thread;
///
/// let fault = sim::launch(&Launch::new("half_a_barrier", 1, 64), &Options::default(), || {
///     if thread::thread_idx_x() < 32 {
///         thread::sync_threads();
///     }
/// })
/// .unwrap_err();
/// let text = fault.to_string();
/// assert!(text.starts_with("half_a_barrier: block (0, 0, 0), thread (0, 0, 0) (warp 0, lane 0), thread::sync_threads"));
/// assert!(text.ends_with("32 of the block's 64 threads wait here, but thread (32, 0, 0) has returned"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The kernel, as the launch names it.
    pub kernel: String,
    /// The thread and its call; `None` if no thread ran.
    pub place: Option<Box<Place>>,
    /// What went wrong.
    pub kind: FaultKind,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{}: {place}: {}", self.kernel, self.kind),
            None => write!(f, "{}: {}", self.kernel, self.kind),
        }
    }
}

impl std::error::Error for Fault {}
