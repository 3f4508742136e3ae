//! Segments of any lengths, given by where each begins and ends.
//!
//! The work is cut on the host, once: short segments that lie one behind the other into [tiles](Tile) of so many items and
//! so many segments, long ones into [units](Unit) of a chunk. So the time depends on the number of items and of segments,
//! and not on how they are distributed.

use core::mem::offset_of;

use warpfold_monoid::{
    Monoid, Plain,
    tree::{VECTORS_A_GROUP, vector_len},
};
use warpfold_simt::{
    global, grid,
    hint::nounroll,
    shared::Shared,
    thread::{block_idx_x, sync_threads, thread_idx_x},
    warp::{FULL, warp_vote_all},
};

use super::{
    THREADS, let_next_start, operator, rows,
    tile::{self, TILE_BYTES, Word},
};
use crate::{
    device::{self, ReduceParams},
    lanes::Reach,
};

/// The most segments in a tile.
pub const TILE_SEGMENTS: usize = 1023;

/// The most items of a segment in a tile: what a warp folds in one go, and a quarter of a tile.
pub const fn tile_limit(item_bytes: usize) -> u64 {
    let by_tile = (TILE_BYTES / 4 / if item_bytes == 0 { 1 } else { item_bytes }) as u64;
    let by_warp = 4 * SHORT_GROUPS * VECTORS_A_GROUP * vector_len(item_bytes) as u64;
    if by_warp < by_tile { by_warp } else { by_tile }
}

/// The most items of a segment that is always in a tile. What is longer keeps a quarter of a warp's threads busy at least, so that a
/// warp of its own, which neither stages nor sorts, is faster, unless it would cut the tiles of its neighbours short.
pub const fn short_limit(item_bytes: usize) -> u64 {
    let by_warp = SHORT_GROUPS * VECTORS_A_GROUP * vector_len(item_bytes) as u64;
    let limit = tile_limit(item_bytes);
    if by_warp < limit { by_warp } else { limit }
}

/// Groups of the longest such segment.
const SHORT_GROUPS: u64 = 8;

/// Warps of a block.
pub const WARPS: usize = THREADS as usize / 32;

/// Neighbouring segments whose items lie one behind the other.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// The first of the segments.
    pub segment: u64,
    /// The first item.
    pub start: u64,
    /// Where its part of the list begins, which has each of its segments.
    pub listed: u64,
    /// Where its tasks begin that are not among the first.
    pub task: u64,
    /// Items.
    pub items: u32,
    /// Segments.
    pub segments: u32,
    /// Segments of more groups than one: the first in the list.
    pub shared: u32,
    /// Their tasks. What is left of the list is taken 32 at a time, a lane each.
    pub tasks: u32,
    /// The first task of each warp: to be found without a look at the rest.
    pub first: [Task; WARPS],
}

// SAFETY: repr(C), no padding.
unsafe impl Plain for Tile {}

/// A segment of a tile: which it is, and where in the tile its items lie.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed(u64);

// SAFETY: a word.
unsafe impl Plain for Listed {}

/// Bits of a number of items in a tile.
const PLACE_BITS: u32 = TILE_BYTES.ilog2() + 1;

impl Listed {
    /// Segment number `segment`, counted from the tile's first, with `n` items from number `first` of the tile on.
    pub const fn new(segment: u32, first: u32, n: u32) -> Self {
        Listed((segment as u64) << 32 | (n << PLACE_BITS | first) as u64)
    }

    /// Its number, counted from the tile's first.
    #[inline(always)]
    pub const fn segment(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Its first item, counted from the tile's.
    #[inline(always)]
    pub const fn first(self) -> u32 {
        self.0 as u32 & ((1 << PLACE_BITS) - 1)
    }

    /// Its items.
    #[inline(always)]
    pub const fn n(self) -> u32 {
        self.0 as u32 >> PLACE_BITS
    }
}

const _: () = assert!(tile_limit(1) < 1 << (32 - PLACE_BITS));

/// What a warp does at once: segments that have equally many groups of lanes, neighbours in the list.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task(u32);

// SAFETY: a word.
unsafe impl Plain for Task {}

impl Task {
    /// `count` segments, of `1 << class` groups each, from place `place` of the tile's part of the list on.
    pub const fn new(place: u32, class: u32, count: u32) -> Self {
        Task(place << 16 | class << 8 | count)
    }

    /// Where in the tile's part of the list they begin.
    #[inline(always)]
    pub const fn place(self) -> u32 {
        self.0 >> 16
    }

    /// The logarithm of the number of groups of each.
    #[inline(always)]
    pub const fn class(self) -> u32 {
        self.0 >> 8 & 0xff
    }

    /// How many segments there are, at most 32 groups in all.
    #[inline(always)]
    pub const fn count(self) -> u32 {
        self.0 & 0xff
    }
}

/// The class of a segment of `n` items of that size: the logarithm of its number of groups, at most 5 in a tile.
pub const fn class(n: u32, item_bytes: usize) -> u32 {
    let groups = n.div_ceil(vector_len(item_bytes) as u32 * VECTORS_A_GROUP as u32);
    if groups < 2 { 0 } else { 32 - (groups - 1).leading_zeros() }
}

/// Numbers of groups that a segment in a tile may have: 1, 2, 4, 8, 16, 32.
pub const CLASSES: usize = 6;

/// One chunk of a segment.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The segment.
    pub segment: u64,
    /// The segment's first item.
    pub start: u64,
    /// Items in the segment.
    pub n: u64,
    /// Items in a chunk of it.
    pub chunk: u64,
    /// Where the segment's partials begin.
    pub partials: u64,
    /// Which chunk.
    pub index: u32,
    /// Chunks of the segment.
    pub chunks: u32,
    /// The segment's ticket.
    pub ticket: u32,
    /// Nothing.
    pub padding: u32,
}

// SAFETY: repr(C), no padding.
unsafe impl Plain for Unit {}

/// The parameters of [`tiles`] and [`units`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IrregularParams<Op: Monoid> {
    /// The array; aligned to the item.
    pub input: *const Op::Item,
    /// Items in it.
    pub len: u64,
    /// Where the results go.
    pub output: *mut Op::Output,
    /// The tiles, for [`tiles`].
    pub tiles: *const Tile,
    /// Their segments: a tile's side by side, those of one class in a row.
    pub listed: *const Listed,
    /// What their warps do.
    pub tasks: *const Task,
    /// The units, for [`units`].
    pub units: *const Unit,
    /// Values of chunks, for [`units`].
    pub partials: *mut Op::Acc,
    /// How many chunks of each segment of several are done: 0 before and after every launch; for [`units`].
    pub tickets: *mut u32,
    /// Threads that share a chunk, for [`units`].
    pub groups: u32,
    /// Does another kernel of the same reduction come before this one? 1, or 0.
    pub follows: u32,
    /// The operator.
    pub op: Op,
}

/// Tiles of short segments, a block each: staged in shared memory as they lie, and folded from there by warps, each of which has
/// segments of one class at a time, so that its lanes do the same. Which those are is part of the tables.
///
/// # Safety
///
/// A block of [`THREADS`] for each tile; what the tables say is true: every segment of a tile is in its part of the list, those of
/// several groups in one of its tasks too, and lies within its items, which are readable, at most [`TILE_BYTES`], and of at most
/// [`tile_limit`] items; results are writable.
#[inline(always)]
pub unsafe fn tiles<Op: Monoid, const V: usize>(params: &IrregularParams<Op>, words: Shared<Word>) {
    begin(params);
    let thread = thread_idx_x();
    let (warp, lane) = (thread / 32, thread % 32);
    let at = params.tiles.wrapping_add(block_idx_x() as usize);
    // SAFETY: a tile, whose warps have a first task each, be it an empty one.
    let first = unsafe {
        let firsts = at.cast::<Task>().wrapping_add(offset_of!(Tile, first) / size_of::<Task>());
        global::load(firsts.wrapping_add(warp as usize))
    };
    // SAFETY: the same tile.
    let Tile { segment, start, listed, task: rest, items, segments, shared, tasks, .. } =
        unsafe { global::load(at) };
    let listed = params.listed.wrapping_add(listed as usize);
    let rest = params.tasks.wrapping_add(rest as usize);
    // Task number `number`, if there is one.
    let task_at = |number: u32| {
        if number < tasks {
            if number < WARPS as u32 {
                return first;
            }
            // SAFETY: below the number of tasks; the first ones are elsewhere.
            return unsafe { global::load(rest.wrapping_add(number as usize - WARPS)) };
        }
        let place = shared + 32 * (number - tasks);
        Task::new(place, 0, if place < segments { (segments - place).min(32) } else { 0 })
    };
    let mut number = warp;
    let mut task = task_at(number);
    // What the first task is about is asked for along with the items.
    // SAFETY: a task of the tile.
    let mut mine = unsafe { part_of(listed, task, lane) };
    // SAFETY: the whole block; the items fit.
    let tile = unsafe {
        tile::Tile::fill::<V>(params.input.wrapping_add(start as usize), items, thread, THREADS, words)
    };
    let output = params.output.wrapping_add(segment as usize);
    sync_threads();
    while task.count() > 0 {
        nounroll();
        let (class, now) = (task.class(), mine);
        let there = lane >> class < task.count();
        // What the next task is about is asked for before this one is done.
        number += WARPS as u32;
        task = task_at(number);
        // SAFETY: a task of the tile.
        mine = unsafe { part_of(listed, task, lane) };
        let op = &operator(&params.op, segment + now.segment() as u64, there);
        // SAFETY: the whole warp is here; a segment of the tile, written before the barrier.
        let result = unsafe { fold::<Op, V>(op, &tile, now, class, lane, there) };
        if lane & ((1 << class) - 1) == 0 && there {
            // SAFETY: one thread a segment.
            unsafe { global::store(output.wrapping_add(now.segment() as usize), result) };
        }
    }
    end(params);
}

/// What comes first in a kernel of several that do one reduction and overlap. Only the first of them waits for what is ahead of it in
/// the stream: when another starts, all blocks of those before it are done or in [`end`], and so that has ended.
#[inline(always)]
fn begin<Op: Monoid>(params: &IrregularParams<Op>) {
    if params.follows == 0 {
        grid::wait_for_previous();
    }
}

/// What comes last: a kernel ends only after those before it, so that who waits for the last of them waits for all.
#[inline(always)]
fn end<Op: Monoid>(params: &IrregularParams<Op>) {
    let_next_start();
    if params.follows != 0 {
        grid::wait_for_previous();
    }
}

/// The segment of a task that a lane has a part in; one without items where there is none.
///
/// # Safety
///
/// The task is one of a tile whose list this is.
#[inline(always)]
unsafe fn part_of(listed: *const Listed, task: Task, lane: u32) -> Listed {
    let number = lane >> task.class();
    if number < task.count() {
        // SAFETY: one of the task's segments.
        unsafe { global::load(listed.wrapping_add((task.place() + number) as usize)) }
    } else {
        Listed::new(0, 0, 0)
    }
}

/// The result of a segment of `1 << class` groups, in the first of as many lanes.
///
/// # Safety
///
/// The whole warp calls, with the same class; `listed` is a segment of the tile, which has been written, and a barrier lies since.
#[inline(always)]
unsafe fn fold<Op: Monoid, const V: usize>(
    op: &Op,
    tile: &tile::Tile<Op::Item>,
    listed: Listed,
    class: u32,
    lane: u32,
    there: bool,
) -> Op::Output {
    let (first, n) = (listed.first(), listed.n());
    let whole = tile.in_words::<V>(n) && first.is_multiple_of(V as u32);
    // SAFETY: the whole warp is here.
    let in_words = unsafe { warp_vote_all(FULL, whole || !there) };
    let mut acc = op.identity();
    if class == 0 {
        if n == 0 {
            return op.finish_empty();
        }
        // SAFETY: the caller's promise.
        acc = unsafe { tile::group_value::<Op, V>(op, tile, first, n, 0, 1, in_words) };
        return op.finish(acc);
    }
    let groups = 1 << class;
    // SAFETY: the class is not 0, and at most 5.
    unsafe { core::hint::assert_unchecked(groups > 1) };
    let group = lane & (groups - 1);
    if n > 0 {
        // SAFETY: the caller's promise.
        acc = unsafe { tile::group_value::<Op, V>(op, tile, first, n, group, groups, in_words) };
    }
    let present = tile::present::<Op, V>(n, groups, in_words);
    // SAFETY: the whole warp is here; segments stand at multiples of their number of threads.
    acc = unsafe { tile::combine_groups(op, acc, group, groups, present) };
    op.finish(acc)
}

/// Chunks of long segments of one class, a block each.
///
/// # Safety
///
/// A block of `max(groups, 32)` threads for each unit; what the table says is true: the units' items are readable, their chunks and the
/// groups are those of the segments' [`Shape`](warpfold_monoid::tree::Shape)s; results are writable; partials and tickets
/// belong to this launch alone. `shared` has a slot a warp.
#[inline(always)]
pub unsafe fn units<Op: Monoid, const V: usize, const U: usize>(
    params: &IrregularParams<Op>,
    shared: Shared<Op::Acc>,
) {
    begin(params);
    // SAFETY: a unit.
    let unit = unsafe { global::load(params.units.wrapping_add(block_idx_x() as usize)) };
    let array = ReduceParams {
        input: params.input.wrapping_add(unit.start as usize),
        n: unit.n,
        output: params.output.wrapping_add(unit.segment as usize),
        partials: params.partials.wrapping_add(unit.partials as usize),
        ticket: params.tickets.wrapping_add(unit.ticket as usize),
        chunk: unit.chunk,
        chunks: unit.chunks,
        groups: params.groups,
        part: device::Part::WHOLE,
        op: operator(&params.op, unit.segment, true),
    };
    let first = unit.index as u64 * unit.chunk;
    let len = unit.chunk.min(unit.n - first);
    // All but the chunks of very long segments are a few vectors to each thread, which takes fewer registers to say.
    let once = unit.chunk <= VECTORS_A_GROUP * params.groups as u64 * V as u64 || unit.chunks == 1;
    let acc = if Op::ANY_ORDER || !Op::COMMUTATIVE || !once {
        // SAFETY: the whole block; a chunk of the segment.
        unsafe { device::chunk_value::<Op, V, U>(&array, first, len, params.groups, false, shared) }
    } else {
        // Around a segment lies more of the array, but how much is not known here.
        let reach =
            Reach { start: array.input.addr(), end: array.input.wrapping_add(unit.n as usize).addr() };
        // SAFETY: the whole block; a chunk of the segment.
        unsafe {
            rows::in_place::<Op, V>(&array.op, reach, array.input, first, len as u32, params.groups, shared)
        }
    };
    if unit.chunks == 1 {
        if thread_idx_x() == 0 {
            // SAFETY: one thread a segment.
            unsafe { global::store(array.output, array.op.finish(acc)) };
        }
    } else {
        if thread_idx_x() == 0 {
            // SAFETY: one block, one partial.
            unsafe { global::store(array.partials.wrapping_add(unit.index as usize), acc) };
        }
        // SAFETY: the whole block; one more chunk is done.
        unsafe { rows::finish_chunks(&array, 1) };
    }
    end(params);
}
