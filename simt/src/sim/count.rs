//! Counting: what a launch asks of the hardware, from the calls that its lanes make. [`Counts`] has the contract: what is
//! counted, and what is an approximation.

use std::collections::HashMap;
use std::ops::Add;

use super::context::{Op, Source};

/// What a launch asked of the hardware.
///
/// Part of a launch's [`Report`](super::Report) if [`Options::count`](super::Options::count) is set. Counted are calls of this
/// crate: arithmetic, registers and accesses through raw pointers are not.
///
/// **Which lanes act together.** Simulated lanes run one after the other, each up to its next barrier, warp function or return.
/// What the lanes of a warp do from one such stop to the next is an *interval*. Within it, the lanes' `n`-th calls of one
/// function from one place in the source, with one size, are one instruction of the warp. That is what hardware does at best:
/// lanes that went different ways join again wherever their calls are the same, and may do so later or not at all. A function
/// of the kernel's own that makes the call is one place, however many callers it has: lanes that leave out one of two such
/// calls are taken to have left out the second. Counts do not depend on the schedule, but for kernels that poll:
/// there every attempt counts, and an interval goes on until no lane of the warp polls.
///
/// **Accesses** of more than 16 bytes, or than the type is aligned to, are several instructions of that width, as the device's
/// are. The compiler may join what is aligned by chance, and leave out what it knows already.
///
/// **Shared memory** has 32 banks of 4 bytes. An instruction takes its lanes in parts: all at once if they access 4 bytes or
/// fewer each, 16 lanes if 8, 8 lanes if 16. A part's *degree* is the most different words that it wants of one bank; so many
/// wavefronts it takes. Lanes that want one word share it. Hardware may join parts that want the same words.
///
/// **Global memory** is moved in sectors of 32 bytes, four to a line of 128. Counted is what an instruction touches, whether
/// a cache has it or not. A registered [`Buffer`](super::Buffer) is taken to start where a device's allocation does, at a multiple of
/// 256 bytes (and as far beyond it as the host's lies beyond a multiple of 16). Without buffers, the host's addresses count.
///
/// **Divergence**: an interval is divergent if a call in it was made by some of the lanes that had not returned when it began,
/// and not by others. Loads behind a predicate, [`load_if`](crate::global::load_if) and its like, are made by all who reach
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Reads of shared memory.
    pub shared_reads: SharedCounts,
    /// Writes to shared memory.
    pub shared_writes: SharedCounts,
    /// Loads from global memory.
    pub loads: GlobalCounts,
    /// Stores to global memory.
    pub stores: GlobalCounts,
    /// Atomic updates of global memory. Lanes that update one word are not told apart from others.
    pub atomics: GlobalCounts,
    /// Barriers that blocks passed: of a block, not of its warps.
    pub barriers: u64,
    /// [`sync_warp`](crate::warp::sync_warp)s, each of the lanes of one mask; so are the next five.
    pub warp_syncs: u64,
    /// Shuffles.
    pub shuffles: u64,
    /// Shuffles' instructions, of 4 bytes each.
    pub shuffle_words: u64,
    /// Votes and ballots.
    pub votes: u64,
    /// Matches.
    pub matches: u64,
    /// Reductions by [`warp_reduce`](crate::warp::warp_reduce).
    pub reductions: u64,
    /// Calls of [`count_combine`](super::count_combine).
    pub combines: LaneCounts,
    /// Calls of all kinds: accesses, functions of the warp, barriers, combinations.
    pub calls: LaneCounts,
    /// Intervals of warps in which there was a call.
    pub intervals: u64,
    /// Those in which a call was not made by all lanes.
    pub divergent: u64,
}

impl Counts {
    /// Reads and writes of shared memory.
    pub fn shared(&self) -> SharedCounts {
        self.shared_reads + self.shared_writes
    }
}

/// Calls, by lanes and by warps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LaneCounts {
    /// Calls that a lane made.
    pub lanes: u64,
    /// Instructions of warps that those are.
    pub warps: u64,
}

impl LaneCounts {
    /// How many of a warp's 32 lanes took part on average; 0 if there was no call.
    pub fn lanes_a_call(&self) -> f64 {
        if self.warps == 0 { 0.0 } else { self.lanes as f64 / self.warps as f64 }
    }
}

/// Accesses to shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SharedCounts {
    /// Instructions of warps.
    pub accesses: u64,
    /// The lanes that took part in them, in all.
    pub lanes: u64,
    /// The parts that they were made in: the fewest wavefronts that there can be.
    pub parts: u64,
    /// Wavefronts.
    pub wavefronts: u64,
    /// Parts by degree: how many were free of conflicts (`by_degree[0]`), took two wavefronts (`by_degree[1]`), and so on up to 32.
    pub by_degree: [u64; 32],
}

impl SharedCounts {
    /// Wavefronts beyond the fewest.
    pub fn conflicts(&self) -> u64 {
        self.wavefronts - self.parts
    }

    /// The worst degree of all: 1 if nothing conflicts, 0 if there are no accesses.
    pub fn max_degree(&self) -> u32 {
        (1..=32).rev().find(|&degree| self.by_degree[degree as usize - 1] > 0).unwrap_or(0)
    }

    /// One instruction: lanes' byte addresses, aligned to the `width` that each accesses.
    fn add_access(&mut self, active: u32, addresses: &[u64; 32], width: u64) {
        let words = (width / 4).max(1);
        let lanes_a_part = 32 / words as usize;
        self.accesses += 1;
        self.lanes += u64::from(active.count_ones());
        for first in (0..32).step_by(lanes_a_part) {
            let lanes = (first..first + lanes_a_part).filter(|lane| active >> lane & 1 == 1);
            let mut wanted: Vec<u64> =
                lanes.flat_map(|lane| (0..words).map(move |word| addresses[lane] / 4 + word)).collect();
            wanted.sort_unstable();
            wanted.dedup();
            let mut banks = [0_usize; 32];
            for word in wanted {
                banks[(word % 32) as usize] += 1;
            }
            let degree = banks.into_iter().max().unwrap_or(0);
            if degree > 0 {
                self.parts += 1;
                self.wavefronts += degree as u64;
                self.by_degree[degree - 1] += 1;
            }
        }
    }
}

impl Add for SharedCounts {
    type Output = SharedCounts;

    fn add(self, other: SharedCounts) -> SharedCounts {
        SharedCounts {
            accesses: self.accesses + other.accesses,
            lanes: self.lanes + other.lanes,
            parts: self.parts + other.parts,
            wavefronts: self.wavefronts + other.wavefronts,
            by_degree: std::array::from_fn(|i| self.by_degree[i] + other.by_degree[i]),
        }
    }
}

/// Accesses to global memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct GlobalCounts {
    /// Instructions of warps.
    pub accesses: u64,
    /// The lanes that took part in them, in all.
    pub lanes: u64,
    /// The different bytes that each instruction wanted, in all.
    pub bytes: u64,
    /// Sectors of 32 bytes that each touched, in all.
    pub sectors: u64,
    /// The fewest sectors that could hold each one's bytes, in all.
    pub ideal_sectors: u64,
    /// Lines of 128 bytes that each touched, in all.
    pub lines: u64,
    /// The fewest lines that could hold each one's bytes, in all.
    pub ideal_lines: u64,
}

impl GlobalCounts {
    /// One instruction: lanes' byte addresses, aligned to the `width` that each accesses.
    fn add_access(&mut self, active: u32, addresses: &[u64; 32], width: u64) {
        let lanes = (0..32).filter(|lane| active >> lane & 1 == 1);
        let mut wanted: Vec<u64> = lanes.map(|lane| addresses[lane]).collect();
        self.accesses += 1;
        self.lanes += wanted.len() as u64;
        wanted.sort_unstable();
        wanted.dedup();
        let bytes = wanted.len() as u64 * width;
        let touched = |unit: u64| {
            // Aligned and sixteen bytes at most, each lies in one unit.
            let mut units: Vec<u64> = wanted.iter().map(|address| address / unit).collect();
            units.dedup();
            (units.len() as u64, bytes.div_ceil(unit))
        };
        let ((sectors, ideal_sectors), (lines, ideal_lines)) = (touched(32), touched(128));
        self.bytes += bytes;
        self.sectors += sectors;
        self.ideal_sectors += ideal_sectors;
        self.lines += lines;
        self.ideal_lines += ideal_lines;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    SharedRead,
    SharedWrite,
    Load,
    Store,
    Atomic,
    Combine,
    /// A barrier or a function of the warp.
    Meet,
}

/// A call as a lane makes it.
#[derive(Clone, Copy)]
pub(super) struct Event {
    pub(super) kind: Kind,
    pub(super) call: &'static str,
    pub(super) site: Source,
    pub(super) bytes: usize,
    pub(super) align: usize,
    /// None of a call that accesses nothing, or of a lane whose predicate is false.
    pub(super) address: Option<u64>,
}

impl Event {
    /// A call that accesses no memory.
    pub(super) fn call(kind: Kind, call: &'static str, site: Source) -> Self {
        Event { kind, call, site, bytes: 0, align: 1, address: None }
    }
}

/// What calls have in common that may be one instruction. Places compare by value: each instance of a generic function has
/// its own.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    kind: Kind,
    call: &'static str,
    site: Source,
    bytes: usize,
    align: usize,
}

/// The lanes' `n`-th calls of one key.
struct Group {
    lanes: u32,
    active: u32,
    addresses: [u64; 32],
}

#[derive(Default)]
struct Calls {
    made: [u32; 32],
    groups: Vec<Group>,
}

/// A warp's interval.
#[derive(Default)]
struct Interval {
    /// The lanes that had not returned when it began; none if it has not.
    live: u32,
    events: usize,
    calls: HashMap<Key, Calls>,
}

/// An interval of so many calls ends even though a lane polls.
const MAX_EVENTS: usize = 1 << 16;

/// The counting of one launch.
pub(super) struct Counter {
    pub(super) counts: Counts,
    intervals: Vec<Interval>,
    current: usize,
}

impl Counter {
    /// For so many warps on the device at once.
    pub(super) fn new(warps: usize) -> Self {
        let intervals = std::iter::repeat_with(Interval::default).take(warps).collect();
        Counter { counts: Counts::default(), intervals, current: 0 }
    }

    /// Lanes of a warp run, each to its next stop.
    pub(super) fn begin(&mut self, warp: usize, live: u32) {
        self.current = warp;
        let interval = &mut self.intervals[warp];
        if interval.live == 0 {
            interval.live = live;
        }
    }

    pub(super) fn record(&mut self, lane: u32, event: Event) {
        let Event { kind, call, site, bytes, align, address } = event;
        let interval = &mut self.intervals[self.current];
        interval.events += 1;
        let calls = interval.calls.entry(Key { kind, call, site, bytes, align }).or_default();
        let n = calls.made[lane as usize] as usize;
        calls.made[lane as usize] += 1;
        if n == calls.groups.len() {
            calls.groups.push(Group { lanes: 0, active: 0, addresses: [0; 32] });
        }
        let group = &mut calls.groups[n];
        group.lanes |= 1 << lane;
        if let Some(address) = address {
            group.active |= 1 << lane;
            group.addresses[lane as usize] = address;
        }
    }

    /// All lanes that could run have stopped; some of them to poll, if `polling`.
    pub(super) fn end(&mut self, polling: bool) {
        let interval = &mut self.intervals[self.current];
        if polling && interval.events < MAX_EVENTS {
            return;
        }
        let counts = &mut self.counts;
        let live = std::mem::take(&mut interval.live);
        if std::mem::take(&mut interval.events) == 0 {
            return;
        }
        let mut divergent = false;
        for (key, calls) in interval.calls.drain() {
            for group in calls.groups {
                divergent |= group.lanes != live;
                counts.calls.add_call(group.lanes);
                if key.kind == Kind::Combine {
                    counts.combines.add_call(group.lanes);
                }
                if group.active != 0 {
                    counts.add_accesses(&key, group);
                }
            }
        }
        counts.intervals += 1;
        counts.divergent += u64::from(divergent);
    }

    /// Lanes have met.
    pub(super) fn meeting(&mut self, op: &Op) {
        let counts = &mut self.counts;
        match op {
            Op::Sync => counts.warp_syncs += 1,
            Op::Shuffle { size, .. } => {
                counts.shuffles += 1;
                counts.shuffle_words += size.div_ceil(4) as u64;
            }
            Op::All(_) | Op::Any(_) | Op::Uni(_) | Op::Ballot(_) => counts.votes += 1,
            Op::Match(_) => counts.matches += 1,
            Op::Redux(..) => counts.reductions += 1,
        }
    }
}

impl LaneCounts {
    fn add_call(&mut self, lanes: u32) {
        self.lanes += u64::from(lanes.count_ones());
        self.warps += 1;
    }
}

impl Counts {
    /// An access, in as many instructions as it takes.
    fn add_accesses(&mut self, key: &Key, mut group: Group) {
        let width = key.align.min(16) as u64;
        for _ in 0..key.bytes as u64 / width {
            let (active, addresses) = (group.active, &group.addresses);
            match key.kind {
                Kind::SharedRead => self.shared_reads.add_access(active, addresses, width),
                Kind::SharedWrite => self.shared_writes.add_access(active, addresses, width),
                Kind::Load => self.loads.add_access(active, addresses, width),
                Kind::Store => self.stores.add_access(active, addresses, width),
                Kind::Atomic => self.atomics.add_access(active, addresses, width),
                Kind::Combine | Kind::Meet => {}
            }
            for address in &mut group.addresses {
                *address += width;
            }
        }
    }
}
