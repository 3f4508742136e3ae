//! Scans of many segments in one launch: of short rows, several to a block, and of segments of any lengths.
//!
//! Each segment has the order, and so the bits, of being scanned alone. **Rows** that are no longer than a tile are packed:
//! a block takes as many as its shared memory holds. **Segments of any lengths** are cut by where they lie: a block has a
//! cell of the array, and scans what begins there: the tile of a segment that began in an earlier cell, if one does (tiles
//! are longer than cells, so no second one can), the segments that begin there, packed, and the first tile of the last of
//! them, if they are too many for a tile together. So every block has at most two tiles' worth of items, whatever the
//! lengths are, and the blocks' shares add up to the array. Tiles of a long segment look back as those of an array do.
//!
//! A packed segment's strips begin at its own first item, which is anywhere. A thread has the strips that begin in its piece
//! of the tile, one strip long: at most one that continues a segment (they are a strip apart), and before all others. So
//! the strips of a long segment belong to neighbouring threads, which scan their values in shared memory, at the distances
//! that lanes have in a tile of the segment's own.

use core::mem::MaybeUninit;

use warpfold_monoid::{
    Monoid, Plain,
    scan::{GROUP, LANES, Reversed, Tiling},
    tree::{VECTOR_BYTES, vector_len},
};
use warpfold_simt::{
    global::{self, hint::NoAllocate},
    grid,
    hint::nounroll,
    shared::{STATIC_LIMIT, Shared},
    thread::{block_idx_x, grid_dim_x, sync_threads, sync_threads_or, thread_idx_x},
    warp::{FULL, shuffle_down, shuffle_up, warp_vote_ballot},
};

use super::{Form, Ledger, Part, Room, Word, draw, get, is_word, put, record_pairs, scan_tile, stage_words};

/// The parameters of the kernels. The host fills it, the kernel receives it by value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SegmentParams<Op: Monoid> {
    /// The array's first item; aligned to the item.
    pub input: *const Op::Item,
    /// Where its result goes, if it belongs to a segment. May be the input.
    pub output: *mut Op::Output,
    /// Items of the array.
    pub len: u64,
    /// Where each segment begins and, one more, where the last one ends; null for rows of `n` items side by side.
    pub offsets: *const u64,
    /// How many segments there are; null where `segments` says it.
    pub count: *const u64,
    /// How many there are.
    pub segments: u64,
    /// Items of a row, at most a tile.
    pub n: u64,
    /// As of [`ScanParams`](super::ScanParams); unused for rows.
    pub counter: *mut u64,
    /// [`cell_pairs`] for each cell.
    pub records: *mut [u64; 2],
    /// Pairs of words that there is room for, used or not.
    pub capacity: u64,
    /// Rows of a block.
    pub rows: u32,
    /// 1 if a result leaves out its own item.
    pub exclusive: u32,
    /// 1 if `initial` stands before the first item of each segment.
    pub has_initial: u32,
    /// No bytes without a meaning.
    pub padding: u32,
    /// The start value.
    pub initial: Op::Acc,
    /// The operator.
    pub op: Op,
}

impl<Op: Monoid> SegmentParams<Op> {
    #[inline(always)]
    fn form(&self) -> Form<Op::Acc> {
        Form {
            exclusive: self.exclusive != 0,
            has_initial: self.has_initial != 0,
            initial: self.initial,
            ends_early: false,
        }
    }
}

/// Records of a cell: of the first tile of a segment, of a later one, and of a group of tiles that ends there.
const CELL_RECORDS: u64 = 3;

/// Items of a cell: less than a tile's, so that segments that begin there and end a little behind it are packed with the
/// others.
pub const fn cell<Op: Monoid>() -> u64 {
    let tile = Tiling::of::<Op>().tile();
    tile - tile / 8
}

/// Pairs of words that a cell needs.
pub const fn cell_pairs(acc_bytes: usize) -> u64 {
    CELL_RECORDS * record_pairs(acc_bytes) as u64
}

/// Bytes of stack that an entry may use.
pub const STACK: u32 = 128;

/// Items that a thread asks shared memory for at once.
const BATCH: usize = 4;

/// Vectors that a thread has in flight while a tile is filled.
const fn in_flight<T>() -> usize {
    // A register for each item, however narrow.
    let vectors = 16 / vector_len(size_of::<T>());
    if vectors > 4 { 4 } else { vectors }
}

/// Places of a tile's items in shared memory, and words that they take.
const fn image_words<T>(items: usize) -> usize {
    let places = swizzled::<T>(items - 1) + 1;
    (places * size_of::<T>()).div_ceil(size_of::<Word>())
}

/// Where item `i` lies in shared memory: some are left out every 128 bytes, so that threads whose items are a strip apart, or
/// a little more, find them in different banks. Five of 4 bytes: no fewer would do for 28 items and for 29 to 33.
#[inline(always)]
const fn swizzled<T>(i: usize) -> usize {
    let size = size_of::<T>();
    if size == 0 || size > 16 || !size.is_power_of_two() {
        return i;
    }
    let skipped = match size {
        1 | 2 => 4 / size,
        4 => 5,
        _ => 1,
    };
    i + i / (128 / size) * skipped
}

const fn shares_image<Op: Monoid>() -> bool {
    size_of::<Op::Item>() == size_of::<Op::Output>()
}

/// Words of shared memory for a tile's items and results, packed or not.
pub const fn packed_words<Op: Monoid>() -> usize {
    if !fits::<Op>() { 1 } else { words::<Op>() }
}

const fn words<Op: Monoid>() -> usize {
    let tile = Tiling::of::<Op>().tile() as usize;
    let (items, results) = (image_words::<Op::Item>(tile), image_words::<Op::Output>(tile));
    let images = if !shares_image::<Op>() {
        items + results
    } else if items > results {
        items
    } else {
        results
    };
    let tile = stage_words::<Op>();
    if images > tile { images } else { tile }
}

/// Accumulators of threads in shared memory.
pub const fn strip_values<Op: Monoid>() -> usize {
    if fits::<Op>() { 3 * Tiling::of::<Op>().threads as usize } else { 1 }
}

/// Words of four marks each, of segments of any lengths.
pub const fn mark_words<Op: Monoid>() -> usize {
    if fits::<Op>() { Tiling::of::<Op>().tile() as usize / 4 } else { 1 }
}

/// Do tiles, and what threads have of them, fit in shared memory? Other operators have no such kernels, only their names.
pub const fn fits<Op: Monoid>() -> bool {
    let tiling = Tiling::of::<Op>();
    let values = 3 * tiling.threads as usize + super::sums::<Op>();
    let bytes =
        words::<Op>() * size_of::<Word>() + values * size_of::<Op::Acc>() + tiling.tile() as usize + 128;
    bytes <= STATIC_LIMIT && size_of::<Op::Acc>() <= 16
}

/// The launch bounds of kernels for rows: as many blocks a multiprocessor as those of arrays have.
pub const fn rows_bounds<Op: Monoid>() -> u32 {
    bounds::<Op>(5)
}

/// Those of kernels for segments of any lengths, which have more to keep.
pub const fn cells_bounds<Op: Monoid>() -> u32 {
    bounds::<Op>(3)
}

const fn bounds<Op: Monoid>(blocks: u32) -> u32 {
    let blocks = if size_of::<Op::Acc>() <= 8 { blocks } else { blocks - 1 };
    Tiling::of::<Op>().threads | blocks << 16
}

/// What shared memory a block has.
#[derive(Clone, Copy, Debug)]
pub struct SegmentRoom<A> {
    /// What a tile needs, with [`packed_words`] for its stage.
    pub tile: Room<A>,
    /// [`strip_values`].
    pub strips: Shared<A>,
    /// [`mark_words`].
    pub marks: Shared<u32>,
    /// For each warp, the last beginning among its items and the first.
    pub warps: Shared<u32>,
    /// Two: which bounds the cell's ends lie behind.
    pub found: Shared<u64>,
}

/// Where segments begin and end, as positions in the order of the scan.
#[derive(Clone, Copy)]
struct Bounds<const REVERSE: bool> {
    offsets: *const u64,
    count: u64,
    n: u64,
    len: u64,
}

impl<const REVERSE: bool> Bounds<REVERSE> {
    /// Where segment `j` begins, and the one before it ends.
    ///
    /// # Safety
    ///
    /// `j` is at most `count`.
    #[inline(always)]
    unsafe fn at(&self, j: u64) -> u64 {
        if self.offsets.is_null() {
            return j * self.n;
        }
        let j = if REVERSE { self.count - j } else { j };
        // SAFETY: one of the `count + 1` offsets.
        let offset = unsafe { global::load(self.offsets.wrapping_add(j as usize)) };
        if REVERSE { self.len - offset } else { offset }
    }

    /// The first `j` whose bound is not less than a position; `count + 1` if there is none.
    ///
    /// # Safety
    ///
    /// The whole warp calls.
    #[inline(always)]
    unsafe fn first_from(&self, position: u64, lane: u32) -> u64 {
        let (mut low, mut high) = (0, self.count + 1);
        while low < high {
            nounroll();
            let step = (high - low).div_ceil(LANES as u64);
            let probe = low + (lane as u64 + 1) * step - 1;
            // SAFETY: below `high`, a bound.
            let less = probe < high && unsafe { self.at(probe) } < position;
            // SAFETY: all lanes are here.
            let below = unsafe { warp_vote_ballot(FULL, less) }.trailing_ones() as u64;
            high = high.min(low + (below + 1) * step - 1);
            low = high.min(low + below * step);
        }
        low
    }
}

/// The records of the tiles of a segment that begins at a position.
#[derive(Clone, Copy)]
struct CellLedger {
    records: *mut [u64; 2],
    begin: u64,
    tile: u64,
    cell: u64,
    /// Of a cell.
    pairs: u64,
    /// Of a record.
    each: u64,
}

impl CellLedger {
    #[inline(always)]
    fn of(&self, tile: u32, which: u64) -> *mut [u64; 2] {
        let cell = (self.begin + tile as u64 * self.tile) / self.cell;
        self.records.wrapping_add((cell * self.pairs + which * self.each) as usize)
    }
}

impl Ledger for CellLedger {
    #[inline(always)]
    fn tile(&self, tile: u32) -> *mut [u64; 2] {
        self.of(tile, if tile > 0 { 1 } else { 0 })
    }
    #[inline(always)]
    fn group(&self, group: u32) -> *mut [u64; 2] {
        self.of(group * GROUP + GROUP - 1, 2)
    }
}

/// Scans short rows from left to right, [`SegmentParams::rows`] to a block.
///
/// # Safety
///
/// The operator [`fits`]. The whole block of [`Tiling::threads`] calls, and the grid has a block for each
/// [`SegmentParams::rows`] rows, of at most a tile together. Items are readable and results writable; unless they are the
/// same memory, item for item, they do not overlap. `room` is not in use.
#[inline(always)]
pub unsafe fn rows_forward<Op: Monoid, const V: usize, const U: usize, const VO: usize, const UO: usize>(
    params: &SegmentParams<Op>,
    room: SegmentRoom<Op::Acc>,
) {
    // SAFETY: the caller's promise.
    unsafe { rows::<Op, Op, V, U, VO, UO, false>(params, &params.op, room) }
}

/// The same from right to left.
///
/// # Safety
///
/// As for [`rows_forward`].
#[inline(always)]
pub unsafe fn rows_reverse<Op: Monoid, const V: usize, const U: usize, const VO: usize, const UO: usize>(
    params: &SegmentParams<Op>,
    room: SegmentRoom<Op::Acc>,
) {
    // SAFETY: the caller's promise.
    unsafe { rows::<Op, Reversed<Op>, V, U, VO, UO, true>(params, &Reversed(params.op), room) }
}

/// Scans segments of any lengths from left to right, a cell to a block.
///
/// # Safety
///
/// The operator [`fits`]. The whole block of [`Tiling::threads`] calls, and the grid has a block for each
/// [`cell`] of items. Items are readable and results writable; unless they are the
/// same memory, item for item, they do not overlap. Offsets never decrease, and none is more than `len`. `counter` and
/// `records` belong to this launch alone. `room` is not in use.
#[inline(always)]
pub unsafe fn segments_forward<
    Op: Monoid,
    const V: usize,
    const U: usize,
    const VO: usize,
    const UO: usize,
>(
    params: &SegmentParams<Op>,
    room: SegmentRoom<Op::Acc>,
) {
    // SAFETY: the caller's promise.
    unsafe { cells::<Op, Op, V, U, VO, UO, false>(params, &params.op, room) }
}

/// The same from right to left.
///
/// # Safety
///
/// As for [`segments_forward`].
#[inline(always)]
pub unsafe fn segments_reverse<
    Op: Monoid,
    const V: usize,
    const U: usize,
    const VO: usize,
    const UO: usize,
>(
    params: &SegmentParams<Op>,
    room: SegmentRoom<Op::Acc>,
) {
    // SAFETY: the caller's promise.
    unsafe { cells::<Op, Reversed<Op>, V, U, VO, UO, true>(params, &Reversed(params.op), room) }
}

/// # Safety
///
/// As for [`rows_forward`]; `op` combines as rows are walked.
#[inline(always)]
unsafe fn rows<Op, O, const V: usize, const U: usize, const VO: usize, const UO: usize, const REVERSE: bool>(
    params: &SegmentParams<Op>,
    op: &O,
    room: SegmentRoom<Op::Acc>,
) where
    Op: Monoid,
    O: Monoid<Item = Op::Item, Acc = Op::Acc, Output = Op::Output>,
{
    if !const { fits::<Op>() } {
        return;
    }
    grid::let_next_start();
    grid::wait_for_previous();
    let SegmentParams { input, output, len, n, segments: count, rows, .. } = *params;
    let bounds = Bounds::<REVERSE> { offsets: core::ptr::null(), count, n, len };
    let from = block_idx_x() as u64 * rows as u64;
    let to = count.min(from + rows as u64);
    let (begin, end) = (from * n, to * n);
    let memory = if REVERSE { len - end } else { begin } as usize;
    let ends = (input.wrapping_add(memory), output.wrapping_add(memory));
    // SAFETY: the caller's promise; the whole block is here.
    unsafe {
        pack::<Op, O, V, VO, REVERSE, true>(op, params.form(), bounds, (from, to), (begin, end), ends, room)
    }
}

/// # Safety
///
/// As for [`segments_forward`]; `op` combines as segments are walked.
#[inline(always)]
unsafe fn cells<
    Op,
    O,
    const V: usize,
    const U: usize,
    const VO: usize,
    const UO: usize,
    const REVERSE: bool,
>(
    params: &SegmentParams<Op>,
    op: &O,
    room: SegmentRoom<Op::Acc>,
) where
    Op: Monoid,
    O: Monoid<Item = Op::Item, Acc = Op::Acc, Output = Op::Output>,
{
    if !const { fits::<Op>() } {
        return;
    }
    grid::wait_for_previous();
    let tile = const { Tiling::of::<Op>() }.tile();
    let SegmentParams { input, output, len, offsets, n, .. } = *params;
    // SAFETY: a number in device memory.
    let count = if params.count.is_null() { params.segments } else { unsafe { global::load(params.count) } };
    let bounds = Bounds::<REVERSE> { offsets, count, n, len };
    let form = params.form();
    // The segments that are packed, and between which positions they lie.
    let (mut begin, mut end) = (0, 0);
    let (from, mut to);
    let thread = thread_idx_x();
    let (warp, lane) = (thread / LANES, thread % LANES);
    let each = const { record_pairs(size_of::<Op::Acc>()) } as u64;
    let used = grid_dim_x() as u64 * CELL_RECORDS * each;
    // SAFETY: the launch's own counter and records; the whole block is here.
    let (number, epoch) =
        unsafe { draw(params.counter, (params.records, params.capacity), used, room.tile.drawn) };
    let size = const { cell::<Op>() };
    let first = number as u64 * size;
    let last = len.min(first + size);
    let warps = const { Tiling::of::<Op>() }.warps();
    let mut which = warp;
    while which < 2 {
        nounroll();
        // SAFETY: the whole warp is here; a slot of its own.
        unsafe {
            let found = bounds.first_from(if which == 0 { first } else { last }, lane);
            if lane == 0 {
                room.found.write(which as usize, found);
            }
        }
        which += warps;
    }
    sync_threads();
    // SAFETY: written before the barrier; at most `count`.
    unsafe {
        from = room.found.read(0);
        to = room.found.read(1);
        let behind = to.min(count);
        if from < behind {
            (begin, end) = (bounds.at(from), bounds.at(behind));
        }
        // More than a tile: the last of them, which ends behind the cell, by itself.
        let split = end - begin > tile;
        let continues = from > 0 && from <= count;
        let (own, of_last) = (number as u64 * CELL_RECORDS * each, if split { bounds.at(to - 1) } else { 0 });
        let (of_earlier, its_end) =
            if continues { (bounds.at(from - 1), bounds.at(from)) } else { (first, first) };
        if thread == 0 {
            // What earlier launches left is gone, whatever this one has to say.
            let mut which = 0;
            while which < CELL_RECORDS {
                let record = params.records.wrapping_add((own + which * each) as usize);
                global::store_pair_relaxed_gpu(record, [0; 2]);
                which += 1;
            }
        }
        let mut phase = 0;
        while phase < 2 {
            nounroll();
            // First the tile that waits for none.
            let (row, row_end, number) = if phase == 0 {
                (of_last, if split { end } else { of_last }, 0)
            } else {
                (of_earlier, its_end, (first - of_earlier).div_ceil(tile))
            };
            let at = row + number * tile;
            if at < row_end && at < last {
                let n = row_end - row;
                let memory = if REVERSE { len - row_end } else { row } as usize;
                let part = Part {
                    items: input.wrapping_add(memory),
                    results: output.wrapping_add(memory),
                    n,
                    stride: 1,
                    tile: number as u32,
                    tiles: n.div_ceil(tile) as u32,
                    epoch,
                };
                let ledger = CellLedger {
                    records: params.records,
                    begin: row,
                    tile,
                    cell: size,
                    pairs: CELL_RECORDS * each,
                    each,
                };
                scan_tile::<Op, O, _, V, U, VO, UO, REVERSE>(op, form, part, ledger, room.tile);
            }
            sync_threads();
            phase += 1;
        }
        if split {
            (to, end) = (to - 1, of_last);
        }
        to = to.min(count);
    }
    if begin < end {
        let memory = if REVERSE { len - end } else { begin } as usize;
        let ends = (input.wrapping_add(memory), output.wrapping_add(memory));
        // SAFETY: the caller's promise; the whole block is here, and shared memory is free since the barrier.
        unsafe {
            pack::<Op, O, V, VO, REVERSE, false>(op, form, bounds, (from, to), (begin, end), ends, room)
        }
    }
}

/// A block scans neighbouring segments, at most a tile together.
///
/// # Safety
///
/// The whole block calls, with the same arguments: segments `from .. to`, which lie between the positions `begin .. end`, in
/// memory from `input` and `output` on, of which the former are readable and the latter writable. `room` is not in use.
#[inline(always)]
unsafe fn pack<Op, O, const V: usize, const VO: usize, const REVERSE: bool, const REGULAR: bool>(
    op: &O,
    form: Form<Op::Acc>,
    bounds: Bounds<REVERSE>,
    (from, to): (u64, u64),
    (begin, end): (u64, u64),
    (input, output): (*const Op::Item, *mut Op::Output),
    room: SegmentRoom<Op::Acc>,
) where
    Op: Monoid,
    O: Monoid<Item = Op::Item, Acc = Op::Acc, Output = Op::Output>,
{
    let Tiling { threads, strip } = const { Tiling::of::<Op>() };
    let warps = const { Tiling::of::<Op>() }.warps();
    let thread = thread_idx_x();
    let SegmentRoom { tile: Room { stage, .. }, strips, marks, warps: edges, .. } = room;
    let size = (end - begin) as u32;
    let results = if const { shares_image::<Op>() } {
        stage
    } else {
        stage.from(const { image_words::<Op::Item>(Tiling::of::<Op>().tile() as usize) })
    };
    let place = |p: u32| if REVERSE { size - 1 - p } else { p } as usize;

    let n = bounds.n as u32;
    let piece = thread * strip;
    let piece_end = size.min(piece + strip);
    let there = piece < size;

    // The items; and of the thread's piece the first beginning in it and the last, as numbers from 1, the last one before it,
    // and where the next one is.
    let (mut mask, mut first, mut last, mut before) = (0_u32, u32::MAX, 0, 0);
    let mut next_begin = size;
    let marks = if REGULAR {
        // SAFETY: the caller's promise.
        unsafe { fill::<Op::Item, V>(input, size, thread, threads, stage) };
        sync_threads();
        if there {
            let at = piece.div_ceil(n) * n;
            if at < piece_end {
                (first, last) = (at + 1, (piece_end - 1) / n * n + 1);
            }
            before = if piece > 0 { (piece - 1) / n * n + 1 } else { 0 };
            next_begin = piece_end.div_ceil(n) * n;
        }
        // SAFETY: a byte is plain data, and less aligned.
        unsafe { marks.cast::<u8>() }
    } else {
        // A mark for each item that a segment begins at.
        let mut i = thread;
        while i < size.div_ceil(4) {
            nounroll();
            // SAFETY: the thread's own words.
            unsafe { marks.write(i as usize, 0) };
            i += threads;
        }
        // SAFETY: the caller's promise.
        unsafe { fill::<Op::Item, V>(input, size, thread, threads, stage) };
        // SAFETY: a byte is plain data, and less aligned.
        let marks = unsafe { marks.cast::<u8>() };
        sync_threads();
        let mut j = from + thread as u64;
        while j < to {
            nounroll();
            // SAFETY: `to` is at most the count; the mark of an item between `begin` and `end`, which one segment begins at.
            unsafe {
                let at = bounds.at(j);
                if at < bounds.at(j + 1) {
                    marks.write((at - begin) as usize, 1);
                }
            }
            j += threads as u64;
        }
        sync_threads();
        let mut i = 0;
        while i < strip {
            // SAFETY: of an item; written before the barrier.
            if piece + i < size && unsafe { marks.read((piece + i) as usize) } != 0 {
                last = piece + i + 1;
                first = first.min(last);
                if strip <= 32 {
                    mask |= 1 << i;
                }
            }
            i += 1;
        }
        let following;
        // SAFETY: the whole block is here.
        (before, following) = unsafe { around(first, last, warps, edges) };
        if following != u32::MAX {
            next_begin = following - 1;
        }
        marks
    };
    // Does a segment begin at an item of the thread's? None does behind its piece, but where its last strip ends.
    let is_head = |p: u32| {
        if strip <= 32 {
            p < piece_end && mask >> (p - piece) & 1 != 0
        } else {
            // SAFETY: of an item; written before the barrier.
            unsafe { marks.read(p as usize) != 0 }
        }
    };
    // Where the segment that begins at a place ends: only reverse scans count from there.
    let end_from = |p: u32| {
        if !REVERSE {
            return 0;
        }
        if REGULAR {
            return p + n;
        }
        let mut q = p + 1;
        while q < piece_end && !is_head(q) {
            q += 1;
        }
        if q < piece_end { q } else { next_begin }
    };

    // The strip that continues a segment, and the first one of the last that begins here.
    let index = |p: u32, begin: u32, end: u32| if REVERSE { end - 1 - p } else { p - begin } as u64;
    // SAFETY: an item that there is.
    let item = |p: u32| unsafe { get::<Op::Item>(stage, swizzled::<Op::Item>(place(p))) };
    let fold = |p: u32, len: u32, begin: u32, end: u32| {
        let mut acc = op.lift(item(p), index(p, begin, end));
        let mut i = 1;
        while i < len {
            nounroll();
            let batch: [Op::Item; BATCH] = core::array::from_fn(|k| item(p + (i + k as u32).min(len - 1)));
            let mut k = 0;
            while k < BATCH {
                if i < len {
                    acc = op.push(acc, batch[k], index(p + i, begin, end));
                }
                i += 1;
                k += 1;
            }
        }
        acc
    };
    let earlier = before.saturating_sub(1);
    let earlier_end = if last > 0 { first - 1 } else { next_begin };
    let sub = earlier + (piece - earlier).div_ceil(strip) * strip;
    let continues = there && before > 0 && sub < earlier_end.min(piece + strip);
    let begins = last > 0;
    let head = last.saturating_sub(1);
    let mut value = op.identity();
    let (mut len, mut number) = (0, 0);
    if continues {
        number = (sub - earlier) / strip;
        len = strip.min(earlier_end - sub);
        value = fold(sub, len, earlier, earlier_end);
    }
    let continued_whole = len == strip;
    let (mut first_value, mut head_len) = (op.identity(), 0);
    if begins {
        head_len = strip.min(next_begin - head);
        if head_len == strip {
            first_value = fold(head, strip, head, next_begin);
        }
    }
    let begun_whole = head_len == strip;

    // What stands before the one, and behind both.
    let after = |value: Op::Acc| if form.has_initial { op.combine(form.initial, value) } else { value };
    let (mut before_continued, mut behind_continued) = (value, value);
    if sync_threads_or(continues.into()) != 0 {
        let firsts = strips.from(2 * threads as usize);
        let at = thread as usize;
        // SAFETY: slots of the thread's own, and of neighbours that wrote them before a barrier: those of the same segment's
        // strips.
        unsafe {
            if continues {
                strips.write(at, value);
            }
            if begun_whole {
                firsts.write(at, first_value);
            }
            sync_threads();
            let (mut now, mut then) = (strips, strips.from(threads as usize));
            let within = number % LANES;
            let mut distance = 1;
            let most = if REGULAR { n.div_ceil(strip) } else { LANES * warps };
            while distance < most {
                nounroll();
                let combines = if distance < LANES {
                    within >= distance
                } else {
                    within == LANES - 1 && number >= distance
                };
                if continues {
                    if combines {
                        let from = at - distance as usize;
                        let left = if number == distance { firsts.read(from) } else { now.read(from) };
                        value = op.combine(left, value);
                    }
                    then.write(at, value);
                }
                sync_threads();
                (now, then) = (then, now);
                distance *= 2;
            }
            if continues {
                // Before its warp of strips, and before it.
                let first_warp = number < LANES;
                let before_warp =
                    if first_warp { form.initial } else { after(now.read(at - within as usize - 1)) };
                let there = !first_warp || form.has_initial;
                before_continued = before_warp;
                if within > 0 {
                    let left = if number == 1 { firsts.read(at - 1) } else { now.read(at - 1) };
                    before_continued = if there { op.combine(before_warp, left) } else { left };
                }
                behind_continued = if within == LANES - 1 {
                    after(value)
                } else if there {
                    op.combine(before_warp, value)
                } else {
                    value
                };
            }
        }
    }
    let behind_begun = if begun_whole { after(first_value) } else { first_value };

    // From there on it goes alone: from its first strip to the end of its last. Behind a whole strip stands what is known
    // already: there are two at most.
    let mut p = if continues { sub } else { first.saturating_sub(1).min(size) };
    let stop = if begins {
        head + head_len
    } else if continues {
        sub + len
    } else {
        p
    };
    let nowhere = (u32::MAX, behind_begun);
    let second = if begun_whole { (head + strip - 1, behind_begun) } else { nowhere };
    let mut known = if continued_whole { (sub + strip - 1, behind_continued) } else { second };
    let mut running = before_continued;
    let (mut segment, mut segment_end, mut next) = (earlier, earlier_end, first.saturating_sub(1));
    while p < stop {
        nounroll();
        let batch: [Op::Item; BATCH] = core::array::from_fn(|k| item((p + k as u32).min(stop - 1)));
        let mut k = 0;
        while k < BATCH {
            if p < stop {
                let starts = if REGULAR { p == next } else { is_head(p) };
                if starts {
                    (segment, segment_end) = (p, end_from(p));
                    running = form.initial;
                    next += n;
                }
                let fresh = starts && !form.has_initial;
                let at = index(p, segment, segment_end);
                let with = if p == known.0 {
                    core::mem::replace(&mut known, second).1
                } else if fresh {
                    op.lift(batch[k], at)
                } else {
                    op.push(running, batch[k], at)
                };
                let result = if !form.exclusive {
                    op.finish(with)
                } else if fresh {
                    op.finish_empty()
                } else {
                    op.finish(running)
                };
                // SAFETY: the place of an item of the thread's own, which has been read.
                unsafe { put(results, swizzled::<Op::Output>(place(p)), result) };
                running = with;
                p += 1;
            }
            k += 1;
        }
    }
    sync_threads();
    // SAFETY: the caller's promise; a result for each item, written before the barrier.
    unsafe { empty::<Op::Output, VO>(output, size, thread, threads, results) };
}

/// The last beginning before a thread's piece, and the first behind it, given those in it: all as numbers from 1.
///
/// # Safety
///
/// The whole block calls; `edges`, two for each of its warps, are not in use.
#[inline(always)]
unsafe fn around(first: u32, last: u32, warps: u32, edges: Shared<u32>) -> (u32, u32) {
    let (warp, lane) = (thread_idx_x() / LANES, thread_idx_x() % LANES);
    let (mut before, mut following) = (last, first);
    let mut step = 1;
    while step < LANES {
        // SAFETY: all lanes are here.
        let (left, right) = unsafe { (shuffle_up(FULL, before, step), shuffle_down(FULL, following, step)) };
        if lane >= step {
            before = before.max(left);
        }
        if lane + step < LANES {
            following = following.min(right);
        }
        step *= 2;
    }
    // SAFETY: slots of the warp's own.
    unsafe {
        if lane == LANES - 1 {
            edges.write(2 * warp as usize, before);
        }
        if lane == 0 {
            edges.write(2 * warp as usize + 1, following);
        }
    }
    // SAFETY: all lanes are here.
    let (left, right) = unsafe { (shuffle_up(FULL, before, 1), shuffle_down(FULL, following, 1)) };
    before = if lane > 0 { left } else { 0 };
    following = if lane < LANES - 1 { right } else { u32::MAX };
    sync_threads();
    let mut w = 0;
    while w < warps {
        // SAFETY: written before the barrier.
        let (theirs_last, theirs_first) =
            unsafe { (edges.read(2 * w as usize), edges.read(2 * w as usize + 1)) };
        if w < warp {
            before = before.max(theirs_last);
        }
        if w > warp {
            following = following.min(theirs_first);
        }
        w += 1;
    }
    (before, following)
}

/// How many items lie before the first vector, and how many vectors there are.
#[inline(always)]
fn vectors_of<T, const V: usize>(first: *const T, count: u32) -> (u32, u32) {
    let size = size_of::<T>();
    if !is_word::<T>() || !first.addr().is_multiple_of(size) {
        return (count, 0);
    }
    let past = (first.addr() / size % V) as u32;
    let head = if past > 0 { (V as u32 - past).min(count) } else { 0 };
    (head, (count - head) / V as u32)
}

/// A block copies items to shared memory. They may be read after a barrier.
///
/// # Safety
///
/// The whole block calls; `items` points to `count` readable items, at most a tile; `stage` is not in use.
#[inline(always)]
unsafe fn fill<T: Plain, const V: usize>(
    items: *const T,
    count: u32,
    thread: u32,
    threads: u32,
    stage: Shared<Word>,
) {
    let (head, vectors) = vectors_of::<T, V>(items, count);
    let from = items.wrapping_add(head as usize);
    let mut next = thread;
    while next < vectors {
        nounroll();
        let in_flight = const { in_flight::<T>() };
        let mut batch = [MaybeUninit::<[T; V]>::uninit(); 4];
        let mut u = 0;
        while u < in_flight {
            let w = next + u as u32 * threads;
            let first = from.wrapping_add(w as usize * V);
            // SAFETY: an aligned vector that there is.
            batch[u] = unsafe { global::load_neighbours_if::<NoAllocate, T, V>(w < vectors, first) };
            u += 1;
        }
        let mut u = 0;
        while u < in_flight {
            let w = next + u as u32 * threads;
            if w < vectors {
                // SAFETY: loaded under the same condition.
                let vector = unsafe { batch[u].assume_init() };
                let mut slot = 0;
                while slot < V {
                    let i = head as usize + w as usize * V + slot;
                    // SAFETY: the item's own place.
                    unsafe { put(stage, swizzled::<T>(i), vector[slot]) };
                    slot += 1;
                }
            }
            u += 1;
        }
        next += in_flight as u32 * threads;
    }
    let mut i = thread;
    while i < count - vectors * V as u32 {
        nounroll();
        let i_th = if i < head { i } else { i + vectors * V as u32 } as usize;
        // SAFETY: an item that there is, and its own place.
        unsafe { put(stage, swizzled::<T>(i_th), global::load(items.wrapping_add(i_th))) };
        i += threads;
    }
}

/// The other way: a block copies results from shared memory.
///
/// # Safety
///
/// The whole block calls; `results` points to `count` writable places; they have been staged, and a barrier lies since.
#[inline(always)]
unsafe fn empty<T: Plain, const V: usize>(
    results: *mut T,
    count: u32,
    thread: u32,
    threads: u32,
    stage: Shared<Word>,
) {
    let (head, vectors) = vectors_of::<T, V>(results, count);
    let to = results.wrapping_add(head as usize);
    let mut w = thread;
    while w < vectors {
        nounroll();
        // SAFETY: results that there are; an aligned vector.
        unsafe {
            let vector: [T; V] = core::array::from_fn(|slot| {
                get::<T>(stage, swizzled::<T>(head as usize + w as usize * V + slot))
            });
            global::store(to.wrapping_add(w as usize * V).cast::<Word>(), core::mem::transmute_copy(&vector));
        }
        w += threads;
    }
    let mut i = thread;
    while i < count - vectors * V as u32 {
        nounroll();
        let i_th = if i < head { i } else { i + vectors * V as u32 } as usize;
        // SAFETY: a result that there is.
        unsafe { global::store(results.wrapping_add(i_th), get::<T>(stage, swizzled::<T>(i_th))) };
        i += threads;
    }
}

const _: () = assert!(VECTOR_BYTES == size_of::<Word>() && vector_len(4) == 4);
