//! Segments of any lengths, given by where each begins and ends.
//!
//! The work is cut on the host, once: short segments that lie one behind the other into [tiles](Tile) of so many items and
//! so many segments, long ones into [units](Unit) of a chunk. So the time depends on the number of items and of segments,
//! and not on how they are distributed.

use warpfold_monoid::{
    Monoid, Plain, Sum,
    tree::{VECTORS_A_GROUP, vector_len},
};
use warpfold_simt::{
    global, grid,
    hint::nounroll,
    shared::Shared,
    thread::{block_idx_x, grid_dim_x, sync_threads, sync_threads_or, thread_idx_x},
    warp::{FULL, warp_vote_all},
};

use super::{
    THREADS, let_next_start, operator, rows,
    tile::{self, TILE_BYTES, Word},
};
use crate::{
    block,
    device::{self, ReduceParams},
    lanes::Reach,
};

/// The most segments in a tile.
pub const TILE_SEGMENTS: usize = (1 << BITS) - 1;

/// The most items of a segment in a tile: what a quarter of a warp folds in one go, and a quarter of a tile. A warp that has
/// a longer one to itself need not stage and sort it.
pub const fn tile_limit(item_bytes: usize) -> u64 {
    let by_warp = TILE_GROUPS * VECTORS_A_GROUP * vector_len(item_bytes) as u64;
    let by_tile = (TILE_BYTES / 4 / if item_bytes == 0 { 1 } else { item_bytes }) as u64;
    if by_warp < by_tile { by_warp } else { by_tile }
}

/// The most groups of a segment in a tile, a power of two.
const TILE_GROUPS: u64 = 8;

/// Neighbouring segments whose items lie one behind the other.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// The first of the segments.
    pub segment: u64,
    /// The first item.
    pub start: u64,
    /// Items.
    pub items: u32,
    /// Segments.
    pub segments: u32,
}

// SAFETY: repr(C), no padding.
unsafe impl Plain for Tile {}

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
    /// Where each segment begins.
    pub begins: *const u64,
    /// Where each segment ends.
    pub ends: *const u64,
    /// Where the results go.
    pub output: *mut Op::Output,
    /// The tiles, for [`tiles`].
    pub tiles: *const Tile,
    /// The units, for [`units`].
    pub units: *const Unit,
    /// How many of either.
    pub count: u64,
    /// Values of chunks, for [`units`].
    pub partials: *mut Op::Acc,
    /// How many chunks of each segment of several are done: 0 before and after every launch; for [`units`].
    pub tickets: *mut u32,
    /// Threads that share a chunk, for [`units`].
    pub groups: u32,
    /// Nothing.
    pub padding: u32,
    /// The operator.
    pub op: Op,
}

/// A segment of a tile, in the order of classes. Small, so that many blocks have room for their lists.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    extent: Extent,
    /// Its number, counted from the tile's first.
    segment: u32,
}

// SAFETY: repr(C), no padding.
unsafe impl Plain for Listed {}

/// Where in a tile a segment's items lie.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
struct Extent(u32);

/// Bits of a place in a tile.
const PLACE_BITS: u32 = TILE_BYTES.ilog2();

const _: () = assert!(TILE_BYTES.is_power_of_two() && tile_limit(1) < 1 << (32 - PLACE_BITS));

impl Extent {
    /// None.
    const NONE: Extent = Extent(0);

    /// `n` items from number `first` of the tile on, which has no more items than bytes.
    #[inline(always)]
    fn new(first: u32, n: u32) -> Self {
        Extent(n << PLACE_BITS | first)
    }

    /// Its first item, counted from the tile's.
    #[inline(always)]
    fn first(self) -> u32 {
        self.0 & ((1 << PLACE_BITS) - 1)
    }

    /// Its items.
    #[inline(always)]
    fn n(self) -> u32 {
        self.0 >> PLACE_BITS
    }
}

/// Numbers of groups that a segment in a tile may have: 1, 2, 4, 8.
const CLASSES: usize = TILE_GROUPS.ilog2() as usize + 1;

/// Bits of one class's count among those of all classes in one number.
const BITS: u32 = 10;

const _: () = assert!(CLASSES * BITS as usize <= 64);

/// Segments that each thread sorts into classes.
const SORTED: usize = TILE_SEGMENTS.div_ceil(THREADS as usize);

/// Tiles of short segments, a block each.
///
/// # Safety
///
/// Blocks of [`THREADS`]; what the tables say is true: every segment of a tile lies within its items, which are readable,
/// at most [`TILE_BYTES`], and of at most [`tile_limit`] items; results are writable. `list` has [`TILE_SEGMENTS`] slots,
/// `sums` one a warp, `last` one.
#[inline(always)]
pub unsafe fn tiles<Op: Monoid, const V: usize>(
    params: &IrregularParams<Op>,
    words: Shared<Word>,
    list: Shared<Listed>,
    sums: Shared<u64>,
    last: Shared<u64>,
) {
    grid::wait_for_previous();
    let thread = thread_idx_x();
    let mut next = block_idx_x() as u64;
    while next < params.count {
        nounroll();
        // SAFETY: a tile.
        let Tile { segment, start, items, segments } =
            unsafe { global::load(params.tiles.wrapping_add(next as usize)) };
        // SAFETY: the whole block; the items fit.
        let tile = unsafe {
            tile::Tile::fill::<V>(params.input.wrapping_add(start as usize), items, thread, THREADS, words)
        };
        // Which of this thread's segments are of which class: a count for each class, in one number.
        let mut found = [Extent::NONE; SORTED];
        let mut counts = 0_u64;
        let mut i = 0;
        while i < SORTED {
            let s = thread + i as u32 * THREADS;
            if s < segments {
                let at = (segment + s as u64) as usize;
                // SAFETY: a segment of the tile.
                let (begin, end) = unsafe {
                    (global::load(params.begins.wrapping_add(at)), global::load(params.ends.wrapping_add(at)))
                };
                let n = (end - begin) as u32;
                if n == 0 {
                    // SAFETY: one thread a segment.
                    unsafe {
                        let op = operator(&params.op, at as u64, true);
                        global::store(params.output.wrapping_add(at), op.finish_empty());
                    }
                } else {
                    found[i] = Extent::new(begin.wrapping_sub(start) as u32, n);
                    counts += 1 << (class::<V>(n) * BITS);
                }
            }
            i += 1;
        }
        // Where a thread holds all lanes of any of them, there is nothing to sort.
        if sync_threads_or((counts >> BITS != 0) as u32) == 0 {
            let mut i = 0;
            while i < SORTED {
                let (first, n) = (found[i].first(), found[i].n());
                if n > 0 {
                    let s = thread + i as u32 * THREADS;
                    let op = &operator(&params.op, segment + s as u64, true);
                    let in_words = tile.in_words::<V>(n) && first.is_multiple_of(V as u32);
                    // SAFETY: a segment of the tile, written before the barrier.
                    let acc = unsafe { tile::group_value::<Op, V>(op, &tile, first, n, 0, 1, in_words) };
                    // SAFETY: one thread a segment.
                    unsafe {
                        let at = (segment + s as u64) as usize;
                        global::store(params.output.wrapping_add(at), op.finish(acc));
                    }
                }
                i += 1;
            }
            next += grid_dim_x() as u64;
            if next < params.count {
                sync_threads();
            }
            continue;
        }
        // SAFETY: the whole block; the slots are free.
        let before = unsafe { block::scan_exclusive(&Sum::<u64>::new(), counts, None, sums) };
        let before = before.unwrap_or(0);
        if thread == THREADS - 1 {
            // SAFETY: one thread; read before the last barrier.
            unsafe { last.write(0, before + counts) };
        }
        sync_threads();
        // SAFETY: written before the barrier.
        let totals = unsafe { last.read(0) };
        let count = |all: u64, class: u32| (all >> (class * BITS)) as u32 & ((1 << BITS) - 1);
        // The largest first: then the threads of every segment stand at a multiple of their number.
        let mut taken = before;
        let mut i = 0;
        while i < SORTED {
            let n = found[i].n();
            if n > 0 {
                let class = class::<V>(n);
                let mut place = count(taken, class);
                let mut larger = CLASSES as u32 - 1;
                while larger > class {
                    nounroll();
                    place += count(totals, larger);
                    larger -= 1;
                }
                taken += 1 << (class * BITS);
                let s = thread + i as u32 * THREADS;
                // SAFETY: a place for each segment that is not empty.
                unsafe { list.write(place as usize, Listed { extent: found[i], segment: s }) };
            }
            i += 1;
        }
        sync_threads();
        let mut most = 0;
        let mut threads = 0;
        let mut class = 0;
        while class < CLASSES as u32 {
            let here = count(totals, class);
            threads += here << class;
            if here > 0 {
                most = class;
            }
            class += 1;
        }
        let mut pass = 0;
        while pass < threads {
            nounroll();
            // Whose segment's is this thread? Classes from the largest on, each with so many threads.
            let mut left = pass + thread;
            let there = left < threads;
            let mut class = most;
            let mut place = 0;
            while there && left >= count(totals, class) << class {
                nounroll();
                left -= count(totals, class) << class;
                place += count(totals, class);
                class -= 1;
            }
            let groups = 1 << class;
            let group = left & (groups - 1);
            let mut listed = Listed { extent: Extent::NONE, segment: 0 };
            if there {
                // SAFETY: written before the barrier.
                listed = unsafe { list.read((place + (left >> class)) as usize) };
            }
            let Listed { extent, segment: s } = listed;
            let (first, n) = (extent.first(), extent.n());
            let op = &operator(&params.op, segment + s as u64, there);
            let whole = tile.in_words::<V>(n) && first.is_multiple_of(V as u32);
            // SAFETY: the whole warp is here.
            let in_words = unsafe { warp_vote_all(FULL, whole || !there) };
            let mut acc = op.identity();
            if there {
                // SAFETY: a segment of the tile, written before the barrier.
                acc = unsafe { tile::group_value::<Op, V>(op, &tile, first, n, group, groups, in_words) };
            }
            if most > 0 {
                let present = tile::present::<Op, V>(n, groups, in_words);
                // SAFETY: the whole warp is here; segments stand at multiples of their number of threads.
                acc = unsafe { tile::combine_groups(op, acc, group, groups, present, 1 << most) };
            }
            if group == 0 && there {
                // SAFETY: one thread a segment.
                unsafe {
                    let at = (segment + s as u64) as usize;
                    global::store(params.output.wrapping_add(at), op.finish(acc));
                }
            }
            pass += THREADS;
        }
        next += grid_dim_x() as u64;
        if next < params.count {
            sync_threads();
        }
    }
    let_next_start();
}

/// The class of a segment of `n` items, at least 1: the logarithm of its number of groups.
#[inline(always)]
fn class<const V: usize>(n: u32) -> u32 {
    let groups = n.div_ceil(V as u32 * VECTORS_A_GROUP as u32);
    32 - (groups - 1).leading_zeros()
}

/// Chunks of long segments of one class, a block each.
///
/// # Safety
///
/// `count` blocks of `max(groups, 32)` threads; what the table says is true: the units' items are readable, their chunks and the
/// groups are those of the segments' [`Shape`](warpfold_monoid::tree::Shape)s; results are writable; partials and tickets
/// belong to this launch alone. `shared` has a slot a warp.
#[inline(always)]
pub unsafe fn units<Op: Monoid, const V: usize, const U: usize>(
    params: &IrregularParams<Op>,
    shared: Shared<Op::Acc>,
) {
    grid::wait_for_previous();
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
    let_next_start();
}
