//! Regular segmented reductions as R. W. Larsen's thesis has them: Generating Efficient Code for Futhark's Segmented Redomap,
//! DIKU, University of Copenhagen, 2017 (chapters 4 to 6); in short, R. W. Larsen and T. Henriksen, Strategies for Regular
//! Segmented Reductions on GPU, FHPC 2017. `[segments][length]` items, a result for each segment.
//!
//! | kernel | who takes a segment | where it pays, says the thesis |
//! | --- | --- | --- |
//! | [`large`] | one group or several, of which each thread folds a chunk | segments longer than half a group |
//! | [`small`] | as many threads as it has items; several segments in a group | shorter ones |
//! | [`loop_in_map`] | one thread | very many segments |
//! | [`mark`], [`scan_runs`], [`propagate`], [`gather`] | nobody: a scan with flags over all of them, as NESL flattens it | the baseline |
//!
//! With one segment, [`large`] is chapter 4's reduction of an array: a first kernel over chunks, a second one over the groups'
//! partial values ([`split`] says how many groups and how long the chunks are). Where chunks are read side by side
//! ([`CONTIGUOUS`]) the lanes of a warp read far apart; so the thesis reads [`STRIDED`] where the operator commutes, and else
//! transposes the whole array first ([`transpose`](super::transpose)) and reads [`TRANSPOSED`]. With chunks of one item none of
//! that is needed (section 6.2.1). [`choose`] is its choice between the strategies.
//!
//! A group's values are combined in shared memory within warps, then across them ([`WAVES`]), by every second, fourth, ... thread.
//! Three other ways stand beside it, for the question of what divergence costs.
//!
//! What is not there counts as the operator's identity, and is combined, as in the thesis. Every thread that folds a chunk has the
//! loads of four items on their way at once, whatever the operator: what a compiler unrolls decides nothing here.
//!
//! # Errata
//!
//! - The scan within a warp, and the reduction within a warp, run without barriers as printed: since Volta their steps need
//!   `__syncwarp`, between reading a neighbour's value and writing one's own too.
//! - A thread of the small kernel is the last of its segment if its place there is `segment_size - 1`: the listing leaves the
//!   `- 1` out.
//! - The second step of *large* over few partial values is *small* over **those**, with the operator alone. The compiler's source
//!   of early 2017 (`Segmented.hs`) gives it the items and the function that maps them, with the partial values' lengths.
//!
//! Where chunks are transposed the chunk must divide the length here; Futhark pads.

use warpfold_monoid::{Monoid, Plain};
use warpfold_simt::{
    global,
    hint::nounroll,
    shared::{Shared, dynamic_shared},
    thread::{block_dim_x, block_idx_x, grid_dim_x, sync_threads, thread_idx_x},
    warp::{FULL, sync_warp},
};

use crate::{block, segments::tile::Word};

/// Item `j` of a thread's chunk lies `j` times the segment's threads behind its first one: only for operators that commute.
pub const STRIDED: u32 = 0;
/// Chunks lie one behind the other.
pub const CONTIGUOUS: u32 = 1;
/// The same in an array that was transposed as rows of a chunk each: items `j` of all threads lie side by side.
pub const TRANSPOSED: u32 = 2;

/// A group's values are combined in each warp without barriers, every other thread resting, then across warps: the thesis's way.
pub const WAVES: u32 = 0;
/// By a tree over the whole group with a barrier a level, in which every second, then fourth, ... thread combines.
pub const INTERLEAVED: u32 = 1;
/// The same tree with its work in the group's first threads: no warp diverges but the last.
pub const COMPACT: u32 = 2;
/// By shuffles: this library's [`block::reduce`].
pub const SHUFFLES: u32 = 3;

/// The parameters of [`large`], [`small`] and [`loop_in_map`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ThesisParams<Op: Monoid> {
    /// The items of all segments.
    pub items: *const Op::Item,
    /// Or what an earlier step left in their place.
    pub partials: *const Op::Acc,
    /// A result for each segment; null if there are several groups a segment.
    pub output: *mut Op::Output,
    /// Then: a value for each group.
    pub values: *mut Op::Acc,
    /// How many segments.
    pub segments: u64,
    /// How many items each has, at least 1.
    pub length: u64,
    /// How many groups of threads take a segment.
    pub groups: u64,
    /// How many items a thread takes, where they are not [`STRIDED`].
    pub chunk: u64,
    /// [`STRIDED`], [`CONTIGUOUS`] or [`TRANSPOSED`].
    pub loading: u32,
    /// The operator.
    pub op: Op,
}

impl<Op: Monoid> ThesisParams<Op> {
    /// A thread's share: `count` items from place `first` on, which the operator is told have the given indices. Four are on
    /// their way at once.
    ///
    /// # Safety
    ///
    /// The places are those of items, or of an earlier step's values.
    #[inline(always)]
    pub(super) unsafe fn fold<const PARTIALS: bool>(&self, share: Share) -> Op::Acc {
        if PARTIALS {
            let load = |place: usize| {
                // SAFETY: the caller's promise.
                unsafe { global::load(self.partials.wrapping_add(place)) }
            };
            let push =
                |acc: Option<Op::Acc>, value, _| Some(acc.map_or(value, |acc| self.op.combine(acc, value)));
            share.fold(load, push).unwrap_or_else(|| self.op.identity())
        } else {
            let load = |place: usize| {
                // SAFETY: the caller's promise.
                unsafe { global::load(self.items.wrapping_add(place)) }
            };
            let push = |acc: Option<Op::Acc>, item, i| {
                Some(acc.map_or_else(|| self.op.lift(item, i), |acc| self.op.push(acc, item, i)))
            };
            share.fold(load, push).unwrap_or_else(|| self.op.identity())
        }
    }

    /// Where the items of a thread lie, of so many threads of a segment.
    #[inline(always)]
    fn share(&self, segment: u64, thread: u64, threads: u64) -> Share {
        let (length, chunk) = (self.length, self.chunk);
        if self.loading == STRIDED {
            let count = if thread < length { (length - thread).div_ceil(threads) } else { 0 };
            let first = segment * length + thread;
            return Share { first, step: threads, count, index: thread, index_step: threads };
        }
        let index = thread * chunk;
        let count = if index < length { chunk.min(length - index) } else { 0 };
        let (first, step) = if self.loading == CONTIGUOUS {
            (segment * length + index, 1)
        } else {
            let rows = length / chunk;
            (segment * rows + thread, self.segments * rows)
        };
        Share { first, step, count, index, index_step: 1 }
    }

    /// # Safety
    ///
    /// The segment's result, or the group's value, is this thread's to write.
    #[inline(always)]
    pub(super) unsafe fn put(&self, segment: u64, group: u64, value: Op::Acc) {
        // SAFETY: the caller's promise.
        unsafe {
            if self.output.is_null() {
                global::store(self.values.wrapping_add(group as usize), value);
            } else {
                global::store(self.output.wrapping_add(segment as usize), self.op.finish(value));
            }
        }
    }
}

/// Places and indices of a thread's items.
#[derive(Clone, Copy)]
pub(super) struct Share {
    pub(super) first: u64,
    pub(super) step: u64,
    pub(super) count: u64,
    pub(super) index: u64,
    pub(super) index_step: u64,
}

impl Share {
    /// Loads and takes in one after the other, with the loads of four ahead.
    #[inline(always)]
    fn fold<T: Copy, A>(
        &self,
        load: impl Fn(usize) -> T,
        push: impl Fn(Option<A>, T, u64) -> Option<A>,
    ) -> Option<A> {
        let (mut place, mut index) = (self.first, self.index);
        let (mut acc, mut left) = (None, self.count);
        while left >= 4 {
            nounroll();
            let items = [0, 1, 2, 3].map(|k| load((place + k * self.step) as usize));
            let mut k = 0;
            while k < 4 {
                acc = push(acc, items[k], index + k as u64 * self.index_step);
                k += 1;
            }
            (place, index, left) = (place + 4 * self.step, index + 4 * self.index_step, left - 4);
        }
        while left > 0 {
            acc = push(acc, load(place as usize), index);
            (place, index, left) = (place + self.step, index + self.index_step, left - 1);
        }
        acc
    }
}

/// How many groups of `group` threads take a segment, and how long a thread's chunk is, if about `hint` groups are wanted in all.
///
/// Where a thread would get a single item there are only as many groups as there are items for.
pub const fn split(segments: u64, length: u64, group: u64, hint: u64) -> (u64, u64) {
    let groups = hint.div_ceil(segments);
    let chunk = length.div_ceil(group * groups);
    if chunk == 1 { (length.div_ceil(group), 1) } else { (groups, chunk) }
}

/// How segments are reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// By [`large`].
    Large,
    /// By [`small`].
    Small,
    /// By [`loop_in_map`].
    LoopInMap,
}

/// The two parameters of [`choose`], which belong to a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// From so many segments on, a thread takes one.
    pub many: u64,
    /// Up to this length (the thesis: half a group), several segments share a group.
    pub short: u64,
}

/// Which strategy is taken, after listing 5.4: by comparisons alone, so that generated code can choose when it runs.
pub const fn choose(segments: u64, length: u64, at: Thresholds) -> Strategy {
    if segments >= at.many {
        Strategy::LoopInMap
    } else if length <= at.short {
        Strategy::Small
    } else {
        Strategy::Large
    }
}

/// Segments that share a group of so many threads in [`small`].
pub const fn segments_of_group(group: u64, length: u64) -> u64 {
    group / length
}

/// Slots behind those of the threads: one a warp.
const WARPS: usize = 32;

/// Bytes of dynamic shared memory that groups of so many threads take.
pub const fn room_bytes<Acc>(threads: usize) -> usize {
    let slots = threads + WARPS;
    ((slots * size_of::<Acc>()).div_ceil(size_of::<Word>()) + slots.div_ceil(size_of::<Word>()))
        * size_of::<Word>()
}

/// A group's shared memory: a value and a flag a thread, and a warp.
///
/// # Safety
///
/// The launch asked for [`room_bytes`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) unsafe fn room<Acc: Plain>() -> (Shared<Acc>, Shared<u8>) {
    let slots = block_dim_x() as usize + WARPS;
    let words = (slots * size_of::<Acc>()).div_ceil(size_of::<Word>());
    // SAFETY: the caller's promise; words are aligned as any accumulator is.
    unsafe {
        let all = dynamic_shared::<Word>(words + slots.div_ceil(size_of::<Word>()));
        (all.first(words).cast::<Acc>().first(slots), all.from(words).cast::<u8>().first(slots))
    }
}

/// A segment is taken by one group or several; the threads fold their chunks, and the group what they have.
///
/// # Safety
///
/// The whole grid of `segments * groups` groups calls, of whole warps, with [`room_bytes`] of dynamic shared memory. The
/// parameters' memory is as their documentation has it. If [`STRIDED`], the operator commutes; else `groups` groups of
/// chunks cover a segment, and if [`TRANSPOSED`], the chunk divides the length.
#[inline(always)]
pub unsafe fn large<Op: Monoid, const PARTIALS: bool, const COMBINE: u32>(params: &ThesisParams<Op>) {
    let (group, threads) = (block_idx_x() as u64, block_dim_x() as u64);
    let (segment, part) = (group / params.groups, group % params.groups);
    let thread = part * threads + thread_idx_x() as u64;
    // SAFETY: the caller's promise; the result is thread 0's.
    unsafe {
        let value = params.fold::<PARTIALS>(params.share(segment, thread, threads * params.groups));
        let (values, _) = room::<Op::Acc>();
        let value = group_reduce::<Op, COMBINE>(&params.op, value, values);
        if thread_idx_x() == 0 {
            params.put(segment, group, value);
        }
    }
}

/// Combines the values of all threads of a group, in order; thread 0 has the result.
///
/// # Safety
///
/// The whole group calls, of whole warps; `values` has a slot a thread, not in use.
#[inline(always)]
pub(super) unsafe fn group_reduce<Op: Monoid, const COMBINE: u32>(
    op: &Op,
    value: Op::Acc,
    values: Shared<Op::Acc>,
) -> Op::Acc {
    let (thread, threads) = (thread_idx_x() as usize, block_dim_x() as usize);
    let mut value = value;
    // SAFETY: barriers, of the warp or of the group, lie between what one thread writes and another reads.
    unsafe {
        match COMBINE {
            WAVES => {
                values.write(thread, value);
                sync_warp(FULL);
                let mut distance = 1;
                while distance < 32 {
                    if thread & (2 * distance - 1) == 0 {
                        value = op.combine(value, values.read(thread + distance));
                        values.write(thread, value);
                    }
                    sync_warp(FULL);
                    distance *= 2;
                }
                while distance < threads {
                    sync_threads();
                    if thread & (2 * distance - 1) == 0 && thread + distance < threads {
                        value = op.combine(value, values.read(thread + distance));
                        values.write(thread, value);
                    }
                    distance *= 2;
                }
            }
            INTERLEAVED => {
                values.write(thread, value);
                let mut distance = 1;
                while distance < threads {
                    sync_threads();
                    if thread.is_multiple_of(2 * distance) && thread + distance < threads {
                        value = op.combine(value, values.read(thread + distance));
                        values.write(thread, value);
                    }
                    distance *= 2;
                }
            }
            COMPACT => {
                values.write(thread, value);
                let mut distance = 1;
                while distance < threads {
                    sync_threads();
                    let place = 2 * distance * thread;
                    if place + distance < threads {
                        value = op.combine(values.read(place), values.read(place + distance));
                        values.write(place, value);
                    }
                    distance *= 2;
                }
            }
            _ => {
                if let Some(total) = block::reduce(op, value, None, values) {
                    value = total;
                }
            }
        }
    }
    value
}

/// Segments no longer than a group share it, as many as fit whole: a thread takes an item, a scan with flags combines, and the last
/// thread of each segment has its result.
///
/// # Safety
///
/// The whole grid calls, a group for each [`segments_of_group`] of the segments, of whole warps, with [`room_bytes`] of dynamic
/// shared memory; no segment is longer than a group. The parameters' memory is as their documentation has it; `output` is
/// there.
#[inline(always)]
pub unsafe fn small<Op: Monoid, const PARTIALS: bool>(params: &ThesisParams<Op>) {
    let at = Seat::here(params.segments, params.length);
    // SAFETY: the caller's promise; a result is the last thread's.
    unsafe {
        let value = at.value::<Op, PARTIALS>(params);
        let (values, flags) = room::<Op::Acc>();
        let (_, value) = group_scan(&params.op, (at.index == 0, value), values, flags);
        if at.is_active && at.index == at.length - 1 {
            params.put(at.segment, at.segment, value);
        }
    }
}

/// Where a thread of a small kernel sits.
#[derive(Clone, Copy)]
pub(super) struct Seat {
    /// Its segment.
    pub(super) segment: u64,
    /// Its place there.
    pub(super) index: u32,
    /// The segments' length.
    pub(super) length: u32,
    /// Whether there is such a segment.
    pub(super) is_active: bool,
}

impl Seat {
    /// Of the calling thread.
    #[inline(always)]
    pub(super) fn here(segments: u64, length: u64) -> Seat {
        let (thread, length) = (thread_idx_x(), length as u32);
        let of_group = block_dim_x() / length;
        let segment = block_idx_x() as u64 * of_group as u64 + (thread / length) as u64;
        let is_active = thread < of_group * length && segment < segments;
        Seat { segment, index: thread % length, length, is_active }
    }

    /// The thread's item, if it has one.
    ///
    /// # Safety
    ///
    /// As for [`small`].
    #[inline(always)]
    pub(super) unsafe fn value<Op: Monoid, const PARTIALS: bool>(
        &self,
        params: &ThesisParams<Op>,
    ) -> Op::Acc {
        let first = self.segment * self.length as u64 + self.index as u64;
        let count = self.is_active as u64;
        // SAFETY: an item that there is.
        unsafe {
            params.fold::<PARTIALS>(Share { first, step: 0, count, index: self.index as u64, index_step: 0 })
        }
    }
}

/// A value and whether a segment begins in what it stands for.
type Flagged<Op> = (bool, <Op as Monoid>::Acc);

/// The operator of a segmented scan (J. T. Schwartz, Ultracomputers, 1980): what stands before a segment's begin is forgotten.
#[inline(always)]
fn flagged<Op: Monoid>(op: &Op, left: Flagged<Op>, right: Flagged<Op>) -> Flagged<Op> {
    (left.0 || right.0, if right.0 { right.1 } else { op.combine(left.1, right.1) })
}

/// Scans what a group's threads have, in shared memory: each warp, then the warps' last values by the first one.
///
/// # Safety
///
/// The whole group calls, of whole warps. `values` and `flags` have a slot a thread and one a warp, not in use; they may be in use
/// when this returns.
#[inline(always)]
pub(super) unsafe fn group_scan<Op: Monoid>(
    op: &Op,
    own: Flagged<Op>,
    values: Shared<Op::Acc>,
    flags: Shared<u8>,
) -> Flagged<Op> {
    let (thread, threads) = (thread_idx_x() as usize, block_dim_x() as usize);
    let (warp, lane, warps) = (thread / 32, thread % 32, threads / 32);
    // SAFETY: barriers, of the warp or of the group, lie between accesses of different threads.
    unsafe {
        let mut own = within_warp(op, own, thread, lane, values, flags);
        if warps == 1 {
            return own;
        }
        if lane == 31 {
            values.write(threads + warp, own.1);
            flags.write(threads + warp, own.0 as u8);
        }
        sync_threads();
        if warp == 0 {
            let slot = threads + lane.min(warps - 1);
            let total = (flags.read(slot) != 0, values.read(slot));
            // Lanes that have no warp scan the last one's value again, in slots of their own.
            let scanned = within_warp(op, total, lane, lane, values, flags);
            if lane < warps {
                values.write(threads + lane, scanned.1);
                flags.write(threads + lane, scanned.0 as u8);
            }
        }
        sync_threads();
        if warp > 0 {
            let slot = threads + warp - 1;
            own = flagged(op, (flags.read(slot) != 0, values.read(slot)), own);
        }
        own
    }
}

/// # Safety
///
/// The whole warp calls, with slots of its own from that of its first lane on.
#[inline(always)]
unsafe fn within_warp<Op: Monoid>(
    op: &Op,
    mut own: Flagged<Op>,
    slot: usize,
    lane: usize,
    values: Shared<Op::Acc>,
    flags: Shared<u8>,
) -> Flagged<Op> {
    // SAFETY: the lane's own slot, and others' behind a barrier of the warp.
    unsafe {
        sync_warp(FULL);
        values.write(slot, own.1);
        flags.write(slot, own.0 as u8);
        let mut distance = 1;
        while distance < 32 {
            sync_warp(FULL);
            if lane >= distance {
                let from = slot - distance;
                own = flagged(op, (flags.read(from) != 0, values.read(from)), own);
            }
            sync_warp(FULL);
            values.write(slot, own.1);
            flags.write(slot, own.0 as u8);
            distance *= 2;
        }
        sync_warp(FULL);
    }
    own
}

/// A thread takes a segment, one item after the other: [`TRANSPOSED`] (as `[segment][item]`, so that threads read side by side) or
/// [`CONTIGUOUS`].
///
/// # Safety
///
/// The grid has a thread for each segment. The parameters' memory is as their documentation has it; `output` is there, and
/// `chunk` is `length`.
#[inline(always)]
pub unsafe fn loop_in_map<Op: Monoid>(params: &ThesisParams<Op>) {
    let segment = block_idx_x() as u64 * block_dim_x() as u64 + thread_idx_x() as u64;
    if segment < params.segments {
        // SAFETY: the caller's promise; the result is this thread's.
        unsafe {
            let value = params.fold::<false>(params.share(segment, 0, 1));
            params.put(segment, segment, value);
        }
    }
}

/// The parameters of the scan with flags and of what is around it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ScanParams<Op: Monoid> {
    /// The items; null if what an earlier step left is scanned in its place.
    pub items: *const Op::Item,
    /// Where segments begin (1) or do not (0). Behind the scan: whether one began in the run of the group up to here.
    pub flags: *mut u8,
    /// Where the scan goes.
    pub values: *mut Op::Acc,
    /// Where each group's value goes; null if there is one group. For [`propagate`]: what stands behind each group.
    pub totals: *mut Op::Acc,
    /// And its flag.
    pub total_flags: *mut u8,
    /// A result for each segment.
    pub output: *mut Op::Output,
    /// Items in all.
    pub n: u64,
    /// Items of a segment.
    pub length: u64,
    /// Items of a group.
    pub run: u64,
    /// The operator.
    pub op: Op,
}

/// Writes the flags: 1 where a segment begins.
///
/// # Safety
///
/// `flags` is writable.
#[inline(always)]
pub unsafe fn mark<Op: Monoid>(params: &ScanParams<Op>) {
    let step = grid_dim_x() as u64 * block_dim_x() as u64;
    let mut i = block_idx_x() as u64 * block_dim_x() as u64 + thread_idx_x() as u64;
    while i < params.n {
        // SAFETY: below the number of items.
        unsafe {
            global::store(params.flags.wrapping_add(i as usize), i.is_multiple_of(params.length) as u8)
        };
        i += step;
    }
}

/// Each group scans its run, a window of one item a thread after the other, and carries its last value along.
///
/// # Safety
///
/// The whole grid calls, a group for each run, of whole warps, with [`room_bytes`] of dynamic shared memory. The parameters'
/// memory is as their documentation has it.
#[inline(always)]
pub unsafe fn scan_runs<Op: Monoid>(params: &ScanParams<Op>) {
    let (group, threads) = (block_idx_x() as u64, block_dim_x() as u64);
    let (thread, op) = (thread_idx_x() as u64, &params.op);
    let start = group * params.run;
    let end = params.n.min(start + params.run);
    // SAFETY: the caller's promise; between uses of the slots lie barriers.
    unsafe {
        let (values, flags) = room::<Op::Acc>();
        let mut carry: Flagged<Op> = (false, op.identity());
        let mut window = start;
        while window < end {
            let i = window + thread;
            let place = i as usize;
            let mut own: Flagged<Op> = (false, op.identity());
            if i < end {
                own.0 = global::load(params.flags.wrapping_add(place)) != 0;
                own.1 = if params.items.is_null() {
                    global::load(params.values.wrapping_add(place))
                } else {
                    op.lift(global::load(params.items.wrapping_add(place)), i % params.length)
                };
            }
            let own = group_scan(op, own, values, flags);
            let own = flagged(op, carry, own);
            if i < end {
                global::store(params.values.wrapping_add(place), own.1);
                global::store(params.flags.wrapping_add(place), own.0 as u8);
            }
            // Every warp is done with the slots of the scan.
            sync_threads();
            let last = threads as usize - 1;
            if thread as usize == last {
                values.write(last, own.1);
                flags.write(last, own.0 as u8);
            }
            sync_threads();
            carry = (flags.read(last) != 0, values.read(last));
            sync_threads();
            window += threads;
        }
        if thread == 0 && !params.totals.is_null() {
            global::store(params.totals.wrapping_add(group as usize), carry.1);
            global::store(params.total_flags.wrapping_add(group as usize), carry.0 as u8);
        }
    }
}

/// Combines what stands before a group's run into its results, up to where a segment begins.
///
/// # Safety
///
/// As for [`scan_runs`], behind it and the scan of its totals.
#[inline(always)]
pub unsafe fn propagate<Op: Monoid>(params: &ScanParams<Op>) {
    let group = block_idx_x() as u64;
    if group == 0 {
        return;
    }
    let start = group * params.run;
    let end = params.n.min(start + params.run);
    // SAFETY: the caller's promise; each thread has places of its own.
    unsafe {
        let before = global::load(params.totals.cast_const().wrapping_add(group as usize - 1));
        let mut i = start + thread_idx_x() as u64;
        while i < end {
            let place = i as usize;
            if global::load(params.flags.cast_const().wrapping_add(place)) == 0 {
                let value = global::load(params.values.cast_const().wrapping_add(place));
                global::store(params.values.wrapping_add(place), params.op.combine(before, value));
            }
            i += block_dim_x() as u64;
        }
    }
}

/// Picks the last value of each segment.
///
/// # Safety
///
/// The grid has a thread for each segment. `values` is readable, `output` writable.
#[inline(always)]
pub unsafe fn gather<Op: Monoid>(params: &ScanParams<Op>) {
    let segment = block_idx_x() as u64 * block_dim_x() as u64 + thread_idx_x() as u64;
    if segment < params.n / params.length {
        let last = (segment + 1) * params.length - 1;
        // SAFETY: a segment that there is.
        unsafe {
            let value = global::load(params.values.cast_const().wrapping_add(last as usize));
            global::store(params.output.wrapping_add(segment as usize), params.op.finish(value));
        }
    }
}
