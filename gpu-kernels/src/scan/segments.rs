//! Scans of many segments in one launch: of short rows, several to a block, and of segments of any lengths.
//!
//! Each segment has the order, and so the bits, of being scanned alone. **Rows** that are no longer than half a tile are packed:
//! of long ones a thread has a strip each, of short ones as many whole rows as make a strip. **Segments of any lengths** are cut by
//! where they lie: a block has a cell of the array, and scans what begins there: the tile of a segment that began in an earlier
//! cell, if one does (tiles are longer than cells, so no second one can), the segments that begin there, packed, and the first
//! tile of the last of them, if they are too many for a tile together. So every block has at most two tiles' worth of items,
//! whatever the lengths are, and the blocks' shares add up to the array. Tiles of a long segment look back as those of an array
//! do.
//!
//! A packed segment's strips begin at its own first item, which is anywhere. Threads have pieces of the tile that are a strip
//! long, and pass on what they have of a strip that ends in the next thread's piece: so each has the same to do.

use core::mem::MaybeUninit;

use warpfold_monoid::{
    Monoid, Plain,
    scan::{GROUP, LANES, Reversed, Tiling},
    tree::{VECTOR_BYTES, vector_len},
    zeroed,
};
use warpfold_simt::{
    global, grid,
    hint::{nounroll, pinned},
    shared::{STATIC_LIMIT, Shared},
    thread::{block_dim_x, block_idx_x, grid_dim_x, sync_threads, sync_threads_or, thread_idx_x},
    warp::{FULL, shuffle_idx, shuffle_up, warp_vote_ballot},
};

use super::{
    Form, Ledger, Part, Room, Word,
    copy::{empty, fill, pad},
    draw, flags, get, inverse, item, pitch, place_of, put, quotient, record_pairs, scan_tile, stage_vector,
    stage_words, staged_vectors, unrelated,
};

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
    /// [`cell_pairs`] for each cell, or [`flag_pairs`](flags::flag_pairs).
    pub records: *mut [u64; 2],
    /// Pairs of words that there is room for, used or not.
    pub capacity: u64,
    /// Rows of a block; of segments of any lengths, [`scouts`](flags::scouts).
    pub rows: u32,
    /// 1 if a result leaves out its own item.
    pub exclusive: u32,
    /// 1 if `initial` stands before the first item of each segment.
    pub has_initial: u32,
    /// Items of which rows make what the strips are cut of: [`Packing::unit`].
    pub unit: u32,
    /// The start value.
    pub initial: Op::Acc,
    /// The operator.
    pub op: Op,
}

/// How short rows are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Rows of a block.
    pub rows: u32,
    /// Items of a row whose strips belong to neighbouring threads; or of several rows together that are one thread's.
    pub unit: u32,
}

impl Packing {
    /// That of rows of `n` items, at most a tile.
    pub const fn of<Op: Monoid>(n: u64) -> Packing {
        let Tiling { threads, strip } = Tiling::of::<Op>();
        let n = n as u32;
        if 2 * n > strip {
            return Packing { rows: threads / n.div_ceil(strip), unit: n };
        }
        // As many as a strip has room for, or a few less if those are whole vectors.
        let (most, vector) = (strip / n, vector_len(size_of::<Op::Item>()) as u32);
        let mut each = most;
        while each > 0 && !(each * n).is_multiple_of(vector) {
            each -= 1;
        }
        if 3 * each < 2 * most {
            each = most;
        }
        Packing { rows: threads * each, unit: each * n }
    }
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
pub const STACK: u32 = 256;

/// Words of shared memory for a tile's items, and later for its results.
pub const fn packed_words<Op: Monoid>() -> usize {
    if fits::<Op>() { stage_words::<Op>() } else { 1 }
}

/// Accumulators of threads in shared memory.
pub const fn strip_values<Op: Monoid>() -> usize {
    if fits::<Op>() { 3 * Tiling::of::<Op>().threads as usize } else { 1 }
}

/// Words of marks, of segments of any lengths: of four items each, or of a [flagged](flags::fits) scan's strip.
pub const fn mark_words<Op: Monoid>() -> usize {
    let tiling = Tiling::of::<Op>();
    match fits::<Op>() {
        true if flags::fits::<Op>() => tiling.threads as usize,
        true => tiling.tile() as usize / 4,
        false => 1,
    }
}

/// Do tiles, and what threads have of them, fit in shared memory? Other operators have no such kernels, only their names.
pub const fn fits<Op: Monoid>() -> bool {
    let tiling = Tiling::of::<Op>();
    let values = 3 * tiling.threads as usize + super::sums::<Op>();
    let bytes = stage_words::<Op>() * size_of::<Word>()
        + values * size_of::<Op::Acc>()
        + tiling.tile() as usize
        + 128;
    bytes <= STATIC_LIMIT && size_of::<Op::Acc>() <= 16
}

/// The launch bounds of kernels for rows: as many blocks a multiprocessor as those of arrays have.
pub const fn rows_bounds<Op: Monoid>() -> u32 {
    bounds::<Op>(4)
}

/// Those of kernels for segments of any lengths, which have more to keep unless it is a bit for each item.
pub const fn cells_bounds<Op: Monoid>() -> u32 {
    bounds::<Op>(if flags::fits::<Op>() { 4 } else { 3 })
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
pub(super) struct Bounds<const REVERSE: bool> {
    offsets: *const u64,
    pub(super) count: u64,
    n: u64,
    len: u64,
}

impl<const REVERSE: bool> Bounds<REVERSE> {
    /// Those of a launch.
    #[inline(always)]
    pub(super) fn of<Op: Monoid>(params: &SegmentParams<Op>) -> Self {
        let SegmentParams { offsets, count, segments, n, len, .. } = *params;
        // SAFETY: a number in device memory.
        let count = if count.is_null() { segments } else { unsafe { global::load(count) } };
        Bounds { offsets, count, n, len }
    }

    /// Where segment `j` begins, and the one before it ends.
    ///
    /// # Safety
    ///
    /// `j` is at most `count`.
    #[inline(always)]
    pub(super) unsafe fn at(&self, j: u64) -> u64 {
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
    pub(super) unsafe fn first_from(&self, position: u64, lane: u32) -> u64 {
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

    /// The same, a thread by itself.
    #[inline(always)]
    pub(super) fn first_from_alone(&self, position: u64) -> u64 {
        const WAYS: u64 = 8;
        let (mut low, mut high) = (0, self.count + 1);
        while low < high {
            nounroll();
            let step = (high - low).div_ceil(WAYS);
            let (mut below, mut k) = (0, 1);
            while k <= WAYS {
                let probe = low + k * step - 1;
                // All asked for before any is used.
                // SAFETY: below `high`, a bound.
                let less = unsafe { self.at(probe.min(high - 1)) } < position;
                below += (less && probe < high) as u64;
                k += 1;
            }
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
/// [`cell`] of items; where [`flags::fits`], for each tile, and [`SegmentParams::rows`] more. Items are readable and results writable; unless they are the
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
    let from = block_idx_x() as u64 * rows as u64;
    let to = count.min(from + rows as u64);
    let (begin, end) = (from * n, to * n);
    let memory = if REVERSE { len - end } else { begin } as usize;
    let ends = (input.wrapping_add(memory), output.wrapping_add(memory));
    // SAFETY: the caller's promise; the whole block is here.
    unsafe {
        pack_rows::<Op, O, V, U, VO, UO, REVERSE>(op, params.form(), params, (end - begin) as u32, ends, room)
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
    if const { flags::fits::<Op>() } {
        // SAFETY: the caller's promise.
        unsafe { flags::scan::<Op, O, V, U, VO, UO, REVERSE>(params, op, room) };
        return;
    }
    grid::wait_for_previous();
    let tile = const { Tiling::of::<Op>() }.tile();
    let SegmentParams { input, output, len, .. } = *params;
    let bounds = Bounds::<REVERSE>::of(params);
    let count = bounds.count;
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
            pack::<Op, O, V, U, VO, UO, REVERSE>(op, form, bounds, (from, to), (begin, end), ends, room)
        }
    }
}

/// Which items of a piece segments begin at: a bit for each.
#[derive(Clone, Copy)]
struct Heads([u32; 4]);

impl Heads {
    const NONE: Heads = Heads([0; 4]);

    /// Those of a piece that have a mark.
    ///
    /// # Safety
    ///
    /// The marks of the piece have been written, and a barrier lies since.
    #[inline(always)]
    unsafe fn marked(marks: Shared<u32>, piece: u32, strip: u32) -> Heads {
        let mut heads = Heads::NONE;
        if strip.is_multiple_of(4) {
            let mut i = 0;
            while i < strip {
                // Bytes of 0 or 1 become neighbouring bits.
                // SAFETY: the caller's promise.
                let four = unsafe { marks.read(((piece + i) / 4) as usize) }.wrapping_mul(0x1020_4080) >> 28;
                heads.0[(i / 32) as usize] |= four << (i % 32);
                i += 4;
            }
            return heads;
        }
        // SAFETY: a byte is plain data, and less aligned.
        let marks = unsafe { marks.cast::<u8>() };
        let mut i = 0;
        while i < strip {
            // SAFETY: the caller's promise.
            let one = unsafe { marks.read((piece + i) as usize) } as u32;
            heads.0[(i / 32) as usize] |= one << (i % 32);
            i += 1;
        }
        heads
    }

    #[inline(always)]
    fn has(&self, i: u32) -> bool {
        self.0[(i / 32) as usize] >> (i % 32) & 1 != 0
    }

    /// The first from `i` on; a large number if there is none.
    #[inline(always)]
    fn from(&self, i: u32) -> u32 {
        let mut word = 4;
        let mut found = u32::MAX;
        while word > 0 {
            word -= 1;
            let above = i.saturating_sub(32 * word);
            let bits = if above < 32 { self.0[word as usize] & u32::MAX << above } else { 0 };
            if bits != 0 {
                found = 32 * word + bits.trailing_zeros();
            }
        }
        found
    }

    /// The last one.
    #[inline(always)]
    fn last(&self) -> Option<u32> {
        let mut found = None;
        let mut word = 0;
        while word < 4 {
            if self.0[word as usize] != 0 {
                found = Some(32 * word + 31 - self.0[word as usize].leading_zeros());
            }
            word += 1;
        }
        found
    }
}

/// A block scans neighbouring segments, at most a tile together.
///
/// Each thread has a piece of the tile, as long as a strip, wherever strips begin: at least one does in a piece that is all
/// there, and at most one that is whole ends in it. A strip goes on in the next thread's piece, which takes over its value so
/// far. So all have the same to do, whatever the lengths are; and where a vector of the array begins, a piece does.
///
/// # Safety
///
/// The whole block calls, with the same arguments: segments `from .. to`, which lie between the positions `begin .. end`, in
/// memory from `input` and `output` on, of which the former are readable and the latter writable. `room` is not in use.
#[inline(always)]
unsafe fn pack<Op, O, const V: usize, const U: usize, const VO: usize, const UO: usize, const REVERSE: bool>(
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
    let thread = thread_idx_x();
    let (warp, lane) = (thread / LANES, thread % LANES);
    let SegmentRoom { tile: Room { stage, .. }, strips, marks, warps: edges, .. } = room;
    let size = (end - begin) as u32;
    let slots = threads * strip;
    let same = const { size_of::<Op::Item>() == size_of::<Op::Output>() };

    // Positions are counted from the first piece's beginning; there are items at those from `low` to `high`.
    let pad = pad::<Op::Item, V>(input, size, slots);
    let (slot, by_vectors) = (|i: u32| pad + i, |head: u32, vector: u32| (pad + head).is_multiple_of(vector));
    let low = if REVERSE { slots - pad - size } else { pad };
    let high = low + size;
    let piece = thread * strip;
    let there = piece < high && piece + strip > low;
    let limit = if there { (high - piece).min(strip) } else { 0 };
    let line = if REVERSE { threads - 1 - thread } else { thread }.min((pad + size - 1) / strip);

    // Where segments begin in the piece, and the last that began before it; and where the next one does that begins behind it,
    // from which reverse scans count.
    let mut i = thread;
    while i < slots.div_ceil(4) {
        nounroll();
        // SAFETY: the thread's own words.
        unsafe { marks.write(i as usize, 0) };
        i += threads;
    }
    // Lines are read as a whole: places before and behind the items get the first one.
    let mut i = thread;
    while i < pad + (pad + size).next_multiple_of(strip) - (pad + size) {
        nounroll();
        let at = if i < pad { i } else { size + i };
        // SAFETY: a place that no item has; there is one item at least.
        unsafe { put(stage, place_of::<Op::Item>(at, strip), global::load(input)) };
        i += threads;
    }
    // SAFETY: the caller's promise; a byte is plain data, and less aligned.
    let bytes = unsafe {
        fill::<Op::Item, V>(input, size, by_vectors, |i| place_of::<Op::Item>(slot(i), strip), stage);
        marks.cast::<u8>()
    };
    sync_threads();
    let mut j = from + thread as u64;
    while j < to {
        nounroll();
        // SAFETY: `to` is at most the count; the mark of an item between `begin` and `end`, which one segment begins at.
        unsafe {
            let at = bounds.at(j);
            if at < bounds.at(j + 1) {
                bytes.write(low as usize + (at - begin) as usize, 1);
            }
        }
        j += threads as u64;
    }
    sync_threads();
    // SAFETY: written before the barrier.
    let heads = unsafe { Heads::marked(marks, piece, strip) };
    let (begins, ends) = (heads.from(0), heads.last());
    let begins = if begins < strip { piece + begins + 1 } else { u32::MAX };
    // SAFETY: the whole block is here.
    let (before, following) =
        unsafe { around::<REVERSE>(begins, ends.map_or(0, |last| piece + last + 1), edges) };
    let earlier = if before > 0 { before - 1 } else { low };
    let next_begin = if following < u32::MAX { following - 1 } else { high };

    // The strip that comes in from the left ends before the first that begins here.
    let head = heads.from(0).min(limit);
    let enters = there && piece > low;
    let over = (piece - earlier.min(piece)) % strip;
    let ends = if over > 0 { strip - over } else { 0 };
    let first = if enters { ends.min(head) } else { head };
    let carried = if enters { first } else { 0 };
    // One that is whole and ends here.
    let whole = if first > 0 { enters && ends <= head } else { limit == strip && heads.from(1) >= strip };
    let number = if !whole || !enters || first == 0 && head == 0 {
        0
    } else if first > 0 {
        (piece + ends - earlier) / strip - 1
    } else {
        (piece - earlier) / strip
    };

    // What the operator is told of an item of a segment that begins here or there.
    let end_from = |i: u32| {
        let next = heads.from(i);
        if next < strip { piece + next } else { next_begin }
    };
    let index = |i: u32, begin: u32, end: u32| {
        let position = piece + i.min(limit.saturating_sub(1));
        let from = if REVERSE { end.wrapping_sub(position + 1) } else { position.wrapping_sub(begin) };
        from as u64
    };
    let earlier_end = if REVERSE { end_from(0) } else { 0 };

    // The last strip that begins here, up to the piece's end. What stands before or behind it may be pushed too where nobody
    // looks: lines hold items where the tile has none.
    // SAFETY: written before the barrier.
    let vectors = unsafe { staged_vectors::<Op::Item, V, U>(stage, line, strip) };
    let mut acc = op.identity();
    if there {
        let (last, begin, end) = match heads.last() {
            Some(last) => (last, piece + last, next_begin),
            None => (first.min(strip - 1), earlier, earlier_end),
        };
        let at = line as usize * const { pitch::<Op::Item>(Tiling::of::<Op>().strip as usize) }
            + (if REVERSE { strip - 1 - last } else { last }) as usize;
        // SAFETY: an item, written before the barrier.
        acc = op.lift(unsafe { get::<Op::Item>(stage, at) }, index(last, begin, end));
        let mut i = 1;
        while i < strip {
            if i > last {
                acc = op.push(acc, item::<_, V, U, REVERSE>(&vectors, i as usize), index(i, begin, end));
            }
            i += 1;
        }
    }
    // SAFETY: slots that are not in use, written before a barrier where another warp's are read; all lanes are here.
    let mut value = unsafe { from_left(acc, behinds(strips), warp, lane) };
    let mut i = 0;
    while i < strip {
        if i < carried {
            let here = item::<_, V, U, REVERSE>(&vectors, i as usize);
            value = op.push(value, here, index(i, earlier, earlier_end));
        }
        i += 1;
    }
    if first == 0 {
        value = acc;
    }

    // SAFETY: the caller's promise: strips are not in use.
    let behind = unsafe { scan_whole(op, &form, value, whole, number, strips) };

    // From there on all go alone: first from the first strip that begins here, then to where that ends which came in.
    let continues = enters && first < limit && first < head;
    let mut running = form.initial;
    if continues {
        running = behind;
        if first == 0 {
            // SAFETY: written before the barrier: the strip before this one is whole.
            running = unsafe { behinds(strips).read(thread as usize - 1) };
        }
    }
    // SAFETY: as before.
    let vectors = unsafe { staged_vectors::<Op::Item, V, U>(stage, line, strip) };
    let mut results = [[MaybeUninit::<Op::Output>::uninit(); VO]; UO];
    let (mut segment, mut segment_end) = (earlier, earlier_end);
    let mut i = 0;
    while i < strip {
        let here = item::<_, V, U, REVERSE>(&vectors, i as usize);
        let to = if REVERSE { strip - 1 - i } else { i } as usize;
        if same {
            // What is not scanned yet waits in the result's place.
            // SAFETY: as many bytes.
            results[to / VO][to % VO] = unsafe { core::mem::transmute_copy(&here) };
        }
        // On a GPU what stands behind the last item is pushed as well, on whatever there is.
        if i >= first && i < (if cfg!(target_arch = "nvptx64") { strip } else { limit }) {
            let starts = heads.has(i);
            if starts {
                (segment, segment_end) = (piece + i, if REVERSE { end_from(i + 1) } else { 0 });
                running = form.initial;
            }
            let fresh = starts && !form.has_initial;
            let index = index(i, segment, segment_end);
            let with = if i + 1 == strip && first == 0 && whole {
                behind
            } else if fresh {
                op.lift(here, index)
            } else {
                op.push(running, here, index)
            };
            let mut result = op.finish(if form.exclusive { running } else { with });
            if fresh && form.exclusive {
                result = op.finish_empty();
            }
            results[to / VO][to % VO].write(result);
            running = with;
        }
        i += 1;
    }
    // SAFETY: as before: nobody reads the strips' values any more.
    let mut running = unsafe { from_left(running, strips, warp, lane) };
    let mut i = 0;
    while i < strip {
        let to = if REVERSE { strip - 1 - i } else { i } as usize;
        if i < carried {
            let here = if same {
                // SAFETY: the item that waits there.
                unsafe { core::mem::transmute_copy(&results[to / VO][to % VO]) }
            } else {
                item::<_, V, U, REVERSE>(&vectors, i as usize)
            };
            let with = if i + 1 == first && whole {
                behind
            } else {
                op.push(running, here, index(i, earlier, earlier_end))
            };
            results[to / VO][to % VO].write(op.finish(if form.exclusive { running } else { with }));
            running = with;
        }
        i += 1;
    }
    if there {
        // SAFETY: the thread's own line, which it has read; where lines of results lie elsewhere, all have, before a barrier.
        unsafe {
            let mut u = 0;
            while u < UO {
                let vector = core::mem::transmute_copy::<_, [Op::Output; VO]>(&results[u]);
                stage_vector::<Op::Output, VO>(stage, line, u, strip, vector);
                u += 1;
            }
        }
    }
    sync_threads();
    // SAFETY: the caller's promise; a result for each item, written before the barrier.
    unsafe {
        empty::<Op::Output, VO>(output, size, by_vectors, |i| place_of::<Op::Output>(slot(i), strip), stage)
    };
}

/// Scans the values of whole strips, those of one segment being neighbouring threads', number 0 and so on; returns what stands
/// behind the thread's own, and puts that where [`behinds`] says.
///
/// # Safety
///
/// The whole block calls; `strips` are not in use, and are read by others after a barrier.
#[inline(always)]
unsafe fn scan_whole<Op: Monoid>(
    op: &Op,
    form: &Form<Op::Acc>,
    mut value: Op::Acc,
    whole: bool,
    number: u32,
    strips: Shared<Op::Acc>,
) -> Op::Acc {
    let (at, threads) = (thread_idx_x() as usize, block_dim_x() as usize);
    let within = number % LANES;
    let (mut now, mut then) = (strips, strips.from(threads));
    // Not known to be the same on both sides of a barrier, lest there be one for each case.
    let whole = whole as u32;
    let is = || pinned(whole) != 0;
    if is() {
        // SAFETY: the thread's own slot.
        unsafe { now.write(at, value) };
    }
    let mut distance = 1;
    loop {
        nounroll();
        let far =
            if distance < LANES { within >= distance } else { within == LANES - 1 && number >= distance };
        let combines = pinned(whole & far as u32);
        if sync_threads_or(combines) == 0 {
            break;
        }
        if is() {
            // SAFETY: slots of the thread's own, and of one that has a strip of the same segment and wrote it before the barrier.
            unsafe {
                if far {
                    value = op.combine(now.read(at - distance as usize), value);
                }
                then.write(at, value);
            }
        }
        (now, then) = (then, now);
        distance *= 2;
    }
    let mut behind = value;
    if is() {
        let first_warp = number < LANES;
        let mut before_warp = form.initial;
        if !first_warp {
            // SAFETY: written before the barrier.
            before_warp = unsafe { now.read(at - within as usize - 1) };
            if form.has_initial {
                before_warp = op.combine(form.initial, before_warp);
            }
        }
        if within == LANES - 1 {
            // All warps of strips up to this one are in the value.
            if form.has_initial {
                behind = op.combine(form.initial, value);
            }
        } else if !first_warp || form.has_initial {
            behind = op.combine(before_warp, value);
        }
        // SAFETY: the thread's own slot.
        unsafe { behinds(strips).write(at, behind) };
    }
    sync_threads();
    behind
}

/// Where threads put what stands behind their strips, of all that they have there.
#[inline(always)]
fn behinds<A: Plain>(strips: Shared<A>) -> Shared<A> {
    strips.from(2 * block_dim_x() as usize)
}

/// A block scans neighbouring rows of one length, at most a tile together: of long ones each thread has a strip, of short ones
/// several rows.
///
/// # Safety
///
/// The whole block calls, with the same arguments: rows of [`SegmentParams::n`] items, `size` together, in memory from `input` and
/// `output` on, of which the former are readable and the latter writable. `room` is not in use.
#[inline(always)]
unsafe fn pack_rows<
    Op,
    O,
    const V: usize,
    const U: usize,
    const VO: usize,
    const UO: usize,
    const REVERSE: bool,
>(
    op: &O,
    form: Form<Op::Acc>,
    params: &SegmentParams<Op>,
    size: u32,
    (input, output): (*const Op::Item, *mut Op::Output),
    room: SegmentRoom<Op::Acc>,
) where
    Op: Monoid,
    O: Monoid<Item = Op::Item, Acc = Op::Acc, Output = Op::Output>,
{
    let Tiling { threads, strip } = const { Tiling::of::<Op>() };
    let thread = thread_idx_x();
    let SegmentRoom { tile: Room { stage, .. }, strips, .. } = room;
    let (n, unit) = (params.n as u32, params.unit);
    let same = const { size_of::<Op::Item>() == size_of::<Op::Output>() };

    // Each strip has a line of shared memory, and each unit lines of its own: some places at its end are left out. A product with the
    // inverse is the quotient of what is less than a tile.
    let each = unit.div_ceil(strip);
    let (by_unit, over) = (inverse(unit), each * strip - unit);
    let ahead = threads * strip - size;
    let slot = |i: u32| {
        if REVERSE {
            ahead + i - quotient(size - 1 - i, by_unit) * over
        } else {
            i + quotient(i, by_unit) * over
        }
    };
    let by_vectors = |head: u32, vector: u32| {
        head == 0 && unit.is_multiple_of(vector) && (!REVERSE || ahead.is_multiple_of(vector))
    };
    // SAFETY: the caller's promise.
    unsafe { fill::<Op::Item, V>(input, size, by_vectors, |i| place_of::<Op::Item>(slot(i), strip), stage) };

    // The thread's strip, in the order of the scan, and its line.
    let (unit_at, k) = (thread / each, thread % each);
    let first = unit_at * unit + k * strip;
    let there = first < size;
    let mine = if there { (size - first).min(unit - k * strip).min(strip) } else { 0 };
    let line = if REVERSE { threads - 1 - thread } else { thread };
    if cfg!(not(target_arch = "nvptx64")) {
        // Lines are read as a whole: a GPU takes what it finds, and leaves it.
        let mut i = mine;
        while there && i < strip {
            let at = line * strip + if REVERSE { strip - 1 - i } else { i };
            // SAFETY: a place of the thread's own; there is an item.
            unsafe { put(stage, place_of::<Op::Item>(at, strip), global::load(input)) };
            i += 1;
        }
    }
    sync_threads();
    // The same of lines that nobody has written.
    let vectors = if there || cfg!(target_arch = "nvptx64") {
        // SAFETY: written before the barrier.
        unsafe { staged_vectors::<Op::Item, V, U>(stage, line, strip) }
    } else {
        [[zeroed(); V]; U]
    };
    let from_start = item::<_, V, U, REVERSE>(&vectors, 0);
    let here = |i: u32| if i < mine { item::<_, V, U, REVERSE>(&vectors, i as usize) } else { from_start };
    // Of what stands for an item that is not there the operator is told a place that is.
    let index = |from: u32, i: u32| {
        let position = from + i.min(mine.saturating_sub(1));
        (if REVERSE { n.wrapping_sub(position + 1) } else { position }) as u64
    };

    let mut results = [[MaybeUninit::<Op::Output>::uninit(); VO]; UO];
    let (long, several) = (n >= strip, unit != n);
    let whole = mine == strip && long;
    let mut running = form.initial;
    let mut behind = running;
    if long {
        let mut value = op.lift(from_start, index(k * strip, 0));
        let mut i = 1;
        while i < strip {
            value = op.push(value, here(i), index(k * strip, i));
            i += 1;
        }
        // SAFETY: the whole block is here: all have the same rows. The strip before is whole, and a barrier lies since.
        unsafe {
            behind = scan_whole(op, &form, value, whole, k, strips);
            if k > 0 && there {
                running = behinds(strips).read(thread as usize - 1);
            }
        }
    }
    let put = |i: u32, result| {
        let to = if REVERSE { strip - 1 - i } else { i } as usize;
        results[to / VO][to % VO].write(result);
    };
    let known = if whole { Some(behind) } else { None };
    let walk = Walk { form: &form, n, strip, mine, there, begun: k > 0, known };
    if several {
        let index = |i: u32| (if REVERSE { n - 1 - i } else { i }) as u64;
        walk.go::<Op, O, true>(op, running, |i| unrelated(here(i)), index, put);
    } else {
        walk.go::<Op, O, false>(op, running, |i| unrelated(here(i)), |i| index(k * strip, i), put);
    }
    if !same {
        // Lines of results lie elsewhere.
        sync_threads();
    }
    if there {
        let mut u = 0;
        while u < UO {
            // SAFETY: the thread's own line, which it has read. What is not written is not copied out.
            unsafe {
                let vector = core::mem::transmute_copy::<_, [Op::Output; VO]>(&results[u]);
                stage_vector::<Op::Output, VO>(stage, line, u, strip, vector);
            }
            u += 1;
        }
    }
    sync_threads();
    // SAFETY: the caller's promise; all results have been staged before the barrier.
    unsafe {
        empty::<Op::Output, VO>(output, size, by_vectors, |i| place_of::<Op::Output>(slot(i), strip), stage)
    };
}

/// A thread's way through its strip, once it is known what stands before it.
#[derive(Clone, Copy)]
struct Walk<'a, A> {
    form: &'a Form<A>,
    /// Items of a row.
    n: u32,
    /// Items of a whole strip, and of this one.
    strip: u32,
    mine: u32,
    /// Is there one at all?
    there: bool,
    /// Does something of the row stand before it?
    begun: bool,
    /// What stands behind it, if it is whole and not the only one of its row.
    known: Option<A>,
}

impl<A: Plain> Walk<'_, A> {
    /// Tells `put` the results. `running` stands before the first item, if anything does; of `SEVERAL` rows, before each. `index` is
    /// told positions in the strip, or in its rows.
    #[inline(always)]
    fn go<Op: Monoid<Acc = A>, O, const SEVERAL: bool>(
        self,
        op: &O,
        mut running: A,
        item: impl Fn(u32) -> Op::Item,
        index: impl Fn(u32) -> u64,
        mut put: impl FnMut(u32, Op::Output),
    ) where
        O: Monoid<Item = Op::Item, Acc = A, Output = Op::Output>,
    {
        let Walk { form, n, strip, mine, there, begun, known } = self;
        let Form { exclusive, has_initial, initial, .. } = *form;
        let begun = begun || has_initial;
        // What an exclusive scan shows next.
        let start = if begun && exclusive && there { op.finish(running) } else { op.finish_empty() };
        let mut shown = start;
        let (mut next, mut i) = (0, 0);
        while i < strip {
            let starts = if SEVERAL { i == next } else { i == 0 };
            if SEVERAL && starts {
                next += n;
                (running, shown) = (initial, start);
            }
            // On a GPU others are walked too, over whatever stands for them.
            if i < mine || cfg!(target_arch = "nvptx64") {
                let (item, index) = (item(i), index(if SEVERAL { i + n - next } else { i }));
                let mut with =
                    if starts && !begun { op.lift(item, index) } else { op.push(running, item, index) };
                if !SEVERAL && i + 1 == strip {
                    with = known.unwrap_or(with);
                }
                let result = op.finish(with);
                put(i, if exclusive { shown } else { result });
                (running, shown) = (with, result);
            }
            i += 1;
        }
    }
}

/// What the thread to the left has; of the block's first one, anything.
///
/// # Safety
///
/// The whole block calls. `edges`, one for each of its warps, are not in use.
#[inline(always)]
unsafe fn from_left<A: Plain>(value: A, edges: Shared<A>, warp: u32, lane: u32) -> A {
    // SAFETY: the caller's promise: a slot of the warp's own, and one that has been written before the barrier.
    unsafe {
        if lane == LANES - 1 {
            edges.write(warp as usize, value);
        }
        let left = shuffle_up(FULL, value, 1);
        sync_threads();
        if lane == 0 && warp > 0 { edges.read(warp as usize - 1) } else { left }
    }
}

/// The last beginning before a thread's piece, and, if it is asked for, the first behind it, given those in it: all as
/// numbers from 1.
///
/// # Safety
///
/// The whole block calls; `edges`, two for each of its warps, are not in use.
#[inline(always)]
unsafe fn around<const FOLLOWING: bool>(first: u32, last: u32, edges: Shared<u32>) -> (u32, u32) {
    let (warp, lane) = (thread_idx_x() / LANES, thread_idx_x() % LANES);
    // SAFETY: all lanes are here; slots of the warp's own.
    let (mut before, mut following) = unsafe {
        let lanes = warp_vote_ballot(FULL, last > 0);
        let below = lanes & ((1 << lane) - 1);
        let left = shuffle_idx(FULL, last, 31 - (below | 1).leading_zeros());
        let mut right = u32::MAX;
        if FOLLOWING {
            let above = lanes & !((2_u32 << lane).wrapping_sub(1));
            let next = shuffle_idx(FULL, first, (above | 1 << 31).trailing_zeros());
            right = if above != 0 { next } else { u32::MAX };
            if lane == (lanes | 1 << 31).trailing_zeros() {
                edges.write(2 * warp as usize + 1, first);
            }
        }
        if lane == 31 - (lanes | 1).leading_zeros() {
            edges.write(2 * warp as usize, last);
        }
        (if below != 0 { left } else { 0 }, right)
    };
    sync_threads();
    let warps = block_dim_x() / LANES;
    if before == 0 {
        let mut w = warp;
        while w > 0 && before == 0 {
            w -= 1;
            // SAFETY: written before the barrier.
            before = unsafe { edges.read(2 * w as usize) };
        }
    }
    if FOLLOWING && following == u32::MAX {
        let mut w = warp + 1;
        while w < warps && following == u32::MAX {
            // SAFETY: written before the barrier.
            following = unsafe { edges.read(2 * w as usize + 1) };
            w += 1;
        }
    }
    (before, following)
}

const _: () = assert!(VECTOR_BYTES == size_of::<Word>() && vector_len(4) == 4);
