//! Columns side by side, by vectors of neighbours: `[outer][n][inner]`, reduced along `n`.
//!
//! A thread folds a group of lanes of each of `W` neighbouring columns, whose items are one vector in memory. Neighbouring
//! threads have neighbouring vectors of a row, and then the next group, so that what a block reads at once lies side by side,
//! some kilobytes of it: if threads took groups that lie apart, each would open a page of memory of its own. With one column to a
//! thread it is what [`columns`](super::columns::columns()) runs where order does not matter. The values of groups meet in shared memory, `FOLD` neighbours at a time: a counter to that base whose
//! digits are what a level has, which is the tree that groups combine in.

use core::mem::MaybeUninit;

use warpfold_monoid::{
    Monoid,
    tree::{FOLD_LANES, vector_len},
};
use warpfold_simt::{
    atomic::{self, AcqRel, Gpu},
    global::{
        self,
        hint::{Cg, NoAllocate, Plainly},
    },
    grid,
    hint::{cold_path, nounroll, opaque},
    shared::Shared,
    thread::{block_dim_x, block_idx_x, sync_threads, thread_idx_x},
};

use super::{
    THREADS,
    columns::{ColumnParams, Counter, MAX_SPLITS, Place, divided},
    let_next_start, operator,
};
use crate::{export, lanes};

/// Neighbours that combine at once.
pub const FOLD: u32 = 4;

/// Digits of the counter: a block has up to `FOLD^LEVELS` rounds.
const LEVELS: usize = 3;

/// The most rounds of a block: groups of a split over groups that it folds at once.
pub const MAX_ROUNDS: u32 = FOLD.pow(LEVELS as u32);

/// Rows of each lane that are asked for before any is used: 64 bytes, unless those are more than 16 vectors.
const fn ahead<T, const V: usize, const W: usize>() -> usize {
    let mut rows = AHEAD;
    while rows > 1 && (rows * size_of::<[[T; W]; V]>() > 64 || rows * V > 16) {
        rows /= 2;
    }
    rows
}

/// The most of them.
const AHEAD: usize = 4;

/// Those rows, of each lane a vector.
type Ahead<T, const V: usize, const W: usize> = [[MaybeUninit<[T; W]>; V]; AHEAD];

/// Rows of which items are asked for one by one at once.
const ROWS: usize = 4;

/// Neighbouring columns that a thread folds, 1 where there is no such kernel: their items are a vector, and their accumulators
/// leave registers for those items.
pub const fn abreast(item_bytes: usize, acc_bytes: usize, commutative: bool, any_order: bool) -> u32 {
    // Of items of one byte a thread would have too many lanes.
    if !commutative || !item_bytes.is_power_of_two() || item_bytes < 2 {
        return 1;
    }
    let acc = if acc_bytes == 0 { 1 } else { acc_bytes };
    let held = if any_order { acc } else { acc * vector_len(item_bytes) };
    let mut abreast = 4;
    while abreast > 1 && (abreast * item_bytes > 16 || abreast * acc > 32 || abreast * held > 160) {
        abreast /= 2;
    }
    abreast as u32
}

/// [`abreast`] of an operator.
pub const fn abreast_of<Op: Monoid>() -> usize {
    abreast(size_of::<Op::Item>(), size_of::<Op::Acc>(), Op::COMMUTATIVE, Op::ANY_ORDER) as usize
}

/// Values in shared memory for each that a thread has at once: two rounds', and a level's each.
const fn buffers(any_order: bool) -> usize {
    if any_order { 1 } else { 2 + LEVELS }
}

/// The most threads in a block whose threads have `abreast` columns each: a power of two, as shared memory has room for.
pub const fn threads(acc_bytes: usize, any_order: bool, abreast: u32) -> u32 {
    let bytes = acc_bytes * abreast as usize * buffers(any_order);
    let mut threads = THREADS;
    while threads > 1 && bytes * threads as usize > 40 << 10 {
        threads /= 2;
    }
    threads
}

/// Values in shared memory, of threads that have `abreast` columns each.
pub const fn slots<Op: Monoid>(abreast: u32) -> usize {
    let threads = threads(size_of::<Op::Acc>(), Op::ANY_ORDER, abreast);
    buffers(Op::ANY_ORDER) * (threads * abreast) as usize
}

/// The same of [`abreast_of`] the operator; one if there is no such kernel.
pub const fn slots_of<Op: Monoid>() -> usize {
    match abreast_of::<Op>() {
        1 => 1,
        abreast => slots::<Op>(abreast as u32),
    }
}

/// The launch bounds: two blocks to a multiprocessor at least, if accumulators are small and nothing is kept for each segment.
pub const fn bounds<Op: Monoid>() -> u32 {
    if Op::PER_SEGMENT || !small::<Op>() { export::bounds::<Op>(THREADS) } else { THREADS | 2 << 16 }
}

/// Columns side by side, `W` to a thread. Does nothing where order matters.
///
/// # Safety
///
/// There are `outer * chunks * splits * tiles` blocks, of `parts * width / W` threads, at most [`threads`]; `width` is a multiple of
/// `W`, and `parts` a power of two: as many as a split has groups (`groups / splits`), or from [`FOLD`] on fewer, up to [`MAX_ROUNDS`]
/// times. Items are readable and results writable; chunks and groups are those of a column's
/// [`Shape`](warpfold_monoid::tree::Shape). Partials, `[outer][pieces + lane_values][inner]` of them, and tickets, [`tickets`] for each
/// tile, belong to this launch alone. `slots` has [`slots`], `flag` one.
#[inline(always)]
pub unsafe fn wide<Op: Monoid, const V: usize, const W: usize>(
    params: &ColumnParams<Op>,
    slots: Shared<Op::Acc>,
    flag: Shared<u32>,
) {
    grid::wait_for_previous();
    if !Op::COMMUTATIVE {
        return;
    }
    let (thread, width, parts) = (thread_idx_x(), params.width, params.parts);
    let vectors = width / W as u32;
    // As a thread that folds groups: its row and vector.
    let (row, vector) = (thread / vectors, thread % vectors);
    // As one that folds values: which neighbours, and of which column. Values lie so that threads of a row write side by side.
    let (part, x) = (thread / width, thread % width);
    let of_tile = x % vectors * W as u32 + x / vectors;
    let folders = (parts / FOLD).max(1);
    let place = Place { x, part, width, parts: folders, slots };
    let a_split = params.groups / params.splits;
    let pieces = params.chunks * params.splits;
    let tiles = params.tiles;
    // Blocks are no more than a grid has, so 32 bits will do.
    let (rest, tile) = divided(block_idx_x() as u64, tiles, 0);
    let (outer, piece) = divided(rest, pieces as u64, 0);
    let (k, split) = (piece as u32 / params.splits, piece as u32 % params.splits);
    let start = k as u64 * params.chunk;
    let len = params.chunk.min(params.n - start);
    let first_column = tile * width as u64;
    let column = first_column + of_tile as u64;
    let there = part < folders && column < params.inner;
    let op = &operator(&params.op, outer * params.inner + column, there);
    let first_group = split * a_split;
    let present = present_groups::<V>(params, len).saturating_sub(first_group).min(a_split);
    let folding = Folding { place, op, there, rows: parts };
    let mine = Mine {
        column: first_column + (vector * W as u32) as u64,
        outer,
        start,
        len,
        group: first_group + row,
        at: (row * width + vector) as usize,
        apart: vectors as usize,
    };
    // SAFETY: the whole block, and the slots are free.
    let (from, count) = unsafe { fold_groups::<Op, V, W>(params, &folding, &mine, present) };
    let mut acc = op.identity();
    sync_threads();
    if there && part * FOLD < count {
        // SAFETY: values of this column, written before the barrier.
        acc = unsafe { folding.neighbours(from, count) };
    }
    sync_threads();
    // SAFETY: the whole block; what was in the slots has been read.
    let acc = unsafe { place.combine(op, acc, count.div_ceil(FOLD)) };
    let piece = Piece { outer, tile, k, split, column, there, some: present > 0 };
    // SAFETY: the whole block; two barriers since the slots were read.
    unsafe { finish::<Op, V, false>(params, &place, op, acc, &piece, flag) };
    let_next_start();
}

/// What a block has folded of a tile of columns, and a thread's column.
pub(super) struct Piece {
    pub(super) outer: u64,
    pub(super) tile: u64,
    /// The chunk, and which of the blocks that share it.
    pub(super) k: u32,
    pub(super) split: u32,
    /// The column, if it is there: the first of its threads has the piece's value.
    pub(super) column: u64,
    pub(super) there: bool,
    /// Has the piece any items?
    pub(super) some: bool,
}

/// Folds the pieces of columns: the last block to come here of all that have one writes the results.
///
/// Pieces of chunks of one lane of the fold over chunks meet first, then lanes: so neither takes long, where a chunk has few blocks or
/// many.
///
/// Many splits, more than [`MAX_SPLITS`], are folded by all threads of a column, if `MANY`.
///
/// # Safety
///
/// As for [`wide`]; the whole block calls, and two barriers lie since the slots were read.
#[inline(always)]
pub(super) unsafe fn finish<Op: Monoid, const V: usize, const MANY: bool>(
    params: &ColumnParams<Op>,
    place: &Place<Op::Acc>,
    op: &Op,
    mut acc: Op::Acc,
    piece: &Piece,
    flag: Shared<u32>,
) {
    let Place { part, parts, .. } = *place;
    let Piece { outer, tile, k, split, column, there, some } = *piece;
    let (pieces, piece) = (params.chunks * params.splits, k * params.splits + split);
    let writes = part == 0 && there;
    let lanes = params.chunks.min(FOLD_LANES);
    let lane = k % FOLD_LANES;
    let of_lane = ((params.chunks - lane - 1) / FOLD_LANES + 1) * params.splits;
    let tickets =
        params.tickets.wrapping_add(((outer * params.tiles + tile) * tickets(params.chunks)) as usize);
    let values = outer * (pieces as u64 + lane_values(params.chunks)) * params.inner + column;
    let values = params.partials.wrapping_add(values as usize);
    let lane_values = values.wrapping_add((pieces as u64 * params.inner) as usize);
    let apart = params.inner as usize;
    if of_lane > 1 {
        // A split beyond the chunk's end has no value, and nobody reads its place.
        if writes && some {
            // SAFETY: one thread a column's piece.
            unsafe { global::store(values.wrapping_add(piece as usize * apart), acc) };
        }
        // SAFETY: the whole block, and tickets of this launch.
        if !unsafe { is_last(tickets.wrapping_add(lane as usize + 1), of_lane, flag) } {
            return;
        }
        let a_split = params.groups / params.splits;
        let splits = |k: u32| {
            let len = params.chunk.min(params.n - k as u64 * params.chunk);
            present_groups::<V>(params, len).div_ceil(a_split)
        };
        if MANY {
            // SAFETY: all values of this lane's chunks are written; the whole block, barriers since the slots were read.
            acc = unsafe { fold_lane_together(params, place, op, (lane, of_lane), values, there, splits) };
        } else if writes {
            // SAFETY: all values of this lane's chunks are written.
            acc = unsafe { fold_lane(params, op, lane, of_lane, values, splits) };
        }
    }
    if lanes > 1 {
        if writes {
            // SAFETY: one thread a column's lane.
            unsafe { global::store(lane_values.wrapping_add(lane as usize * apart), acc) };
        }
        // SAFETY: as above.
        if !unsafe { is_last(tickets, lanes, flag) } {
            return;
        }
        // SAFETY: all lanes' values are written.
        let (mine, present) = unsafe { fold_lanes(op, (part, parts), (lane_values, apart), lanes, there) };
        // SAFETY: the whole block; two barriers since the slots were read.
        acc = unsafe { place.combine(op, mine, present) };
    }
    if writes {
        let at = outer * params.inner + column;
        // SAFETY: one thread a column.
        unsafe { global::store(params.output.wrapping_add(at as usize), op.finish(acc)) };
    }
}

/// Counters of a tile of columns: one for its lanes of chunks, and each of those.
pub const fn tickets(chunks: u32) -> u64 {
    1 + lane_values(chunks)
}

/// Room for lanes' values of a column, behind that for its pieces.
pub const fn lane_values(chunks: u32) -> u64 {
    if chunks > FOLD_LANES { FOLD_LANES as u64 } else { chunks as u64 }
}

/// Is this block the last of `count` to come here? Its values are visible to the last, which sets the counter back.
///
/// # Safety
///
/// The whole block calls; `ticket` is one of this launch.
#[inline(always)]
unsafe fn is_last(ticket: *mut u32, count: u32, flag: Shared<u32>) -> bool {
    // All partials of the block are written before its ticket is counted, and the flag was read.
    sync_threads();
    if thread_idx_x() == 0 {
        // SAFETY: the caller's promise; release and acquire as for the partials of one array.
        let done = unsafe { atomic::fetch_add(ticket, 1, AcqRel, Gpu) };
        if done + 1 == count {
            // SAFETY: the last to use it.
            unsafe { global::store(ticket, 0) };
        }
        // SAFETY: one thread, and a barrier since the last reading.
        unsafe { flag.write(0, done) };
    }
    sync_threads();
    // SAFETY: written before the barrier.
    unsafe { flag.read(0) + 1 == count }
}

/// Values that are asked for at once, where they are small.
const BATCH: usize = MAX_SPLITS as usize;

/// Are they?
const fn small<Op: Monoid>() -> bool {
    size_of::<Op::Acc>() <= 16
}

/// The value of a lane of the fold over chunks: of `count` pieces, splits of its chunks pairwise, and those from left to right.
///
/// # Safety
///
/// All are written and visible; there are as many of a chunk as `splits` says.
#[inline(always)]
unsafe fn fold_lane<Op: Monoid>(
    params: &ColumnParams<Op>,
    op: &Op,
    lane: u32,
    count: u32,
    values: *const Op::Acc,
    splits: impl Fn(u32) -> u32,
) -> Op::Acc {
    let a_chunk = params.splits;
    let place = |piece: u32| {
        let (k, split) = (lane + piece / a_chunk * FOLD_LANES, piece % a_chunk);
        let there = piece < count && (split == 0 || split < splits(k));
        (there, values.wrapping_add((k * a_chunk + split) as usize * params.inner as usize))
    };
    let mut total = op.identity();
    let mut piece = 0;
    if !small::<Op>() {
        while piece < count {
            nounroll();
            let mut counter = Counter::<Op, 3>::new(op);
            let mut split = 0;
            while split < a_chunk {
                nounroll();
                let (there, from) = place(piece + split);
                if there {
                    // SAFETY: a value.
                    counter.push(op, unsafe { global::load_cg(from) });
                }
                split += 1;
            }
            let value = counter.total(op);
            total = if piece == 0 { value } else { op.combine(total, value) };
            piece += a_chunk;
        }
        return total;
    }
    while piece < count {
        nounroll();
        let batch: [_; BATCH] = core::array::from_fn(|j| {
            let (there, from) = place(piece + j as u32);
            // SAFETY: a value, if there.
            (there, unsafe { global::load_if::<Cg, Op::Acc>(there, from) })
        });
        let mut values: [Op::Acc; BATCH] = core::array::from_fn(|j| {
            let (there, value) = batch[j];
            // SAFETY: loaded under the same condition.
            if there { unsafe { value.assume_init() } } else { op.identity() }
        });
        // Those that are not there are never combined.
        let mut distance = 1;
        while distance < BATCH {
            if (distance as u32) < a_chunk {
                let mut j = 0;
                while j < BATCH {
                    if batch[j + distance].0 {
                        values[j] = op.combine(values[j], values[j + distance]);
                    }
                    j += 2 * distance;
                }
            }
            distance *= 2;
        }
        let mut j = 0;
        while j < BATCH {
            if (j as u32).is_multiple_of(a_chunk) && batch[j].0 {
                total = if piece == 0 && j == 0 { values[0] } else { op.combine(total, values[j]) };
            }
            j += 1;
        }
        piece += BATCH as u32;
    }
    total
}

/// The same by all threads of a column, a chunk each at a time; the value is in the first.
///
/// # Safety
///
/// As there; the whole block calls, and the slots are free.
#[inline(always)]
unsafe fn fold_lane_together<Op: Monoid>(
    params: &ColumnParams<Op>,
    place: &Place<Op::Acc>,
    op: &Op,
    (lane, count): (u32, u32),
    values: *const Op::Acc,
    there: bool,
    splits: impl Fn(u32) -> u32,
) -> Op::Acc {
    let Place { x, part, width, parts, slots } = *place;
    let chunks = count / params.splits;
    let mut total = op.identity();
    let mut first = 0;
    while first < chunks {
        nounroll();
        let here = parts.min(chunks - first);
        let mut acc = op.identity();
        if there && part < here {
            let k = lane + (first + part) * FOLD_LANES;
            let from = values.wrapping_add((k * params.splits) as usize * params.inner as usize);
            let present = splits(k);
            // Batches are trees, and meet in a counter.
            let mut counter = Counter::<Op, 3>::new(op);
            let mut split = 0;
            while split < present {
                nounroll();
                let batch: [_; BATCH] = core::array::from_fn(|j| {
                    let at = split + j as u32;
                    let from = from.wrapping_add(at as usize * params.inner as usize);
                    // SAFETY: a value, if there.
                    unsafe { global::load_if::<Cg, Op::Acc>(at < present, from) }
                });
                let values: [Op::Acc; BATCH] = core::array::from_fn(|j| {
                    if split + (j as u32) < present {
                        // SAFETY: loaded under the same condition.
                        unsafe { batch[j].assume_init() }
                    } else {
                        op.identity()
                    }
                });
                counter.push(op, lanes::combine_slots(op, values, split / BATCH as u32, Some(present)));
                split += BATCH as u32;
            }
            acc = counter.total(op);
        }
        if part > 0 && part < here && there {
            // SAFETY: one thread, one slot.
            unsafe { slots.write((part * width + x) as usize, acc) };
        }
        sync_threads();
        if part == 0 && there {
            total = if first == 0 { acc } else { op.combine(total, acc) };
            let mut next = 1;
            while next < here {
                nounroll();
                // SAFETY: written before the barrier.
                total = op.combine(total, unsafe { slots.read((next * width + x) as usize) });
                next += 1;
            }
        }
        sync_threads();
        first += parts;
    }
    total
}

/// What one of the threads that share a column has of its lanes' values, and how many of them have something: thread `part` of
/// `parts`, a power of two.
///
/// # Safety
///
/// All values are written and visible.
#[inline(always)]
unsafe fn fold_lanes<Op: Monoid>(
    op: &Op,
    (part, parts): (u32, u32),
    (values, apart): (*const Op::Acc, usize),
    lanes: u32,
    there: bool,
) -> (Op::Acc, u32) {
    let parts = parts.min(FOLD_LANES);
    let mine = FOLD_LANES / parts;
    let mut lane = part * mine;
    let end = if there && part < parts { lanes.min(lane + mine) } else { 0 };
    let value = if !small::<Op>() {
        let mut counter = Counter::<Op, 5>::new(op);
        while lane < end {
            nounroll();
            // SAFETY: a lane's value.
            counter.push(op, unsafe { global::load_cg(values.wrapping_add(lane as usize * apart)) });
            lane += 1;
        }
        counter.total(op)
    } else {
        // Batches are trees, and meet in the counter.
        let mut counter = Counter::<Op, 2>::new(op);
        while lane < end {
            nounroll();
            let batch: [_; BATCH] = core::array::from_fn(|j| {
                let at = lane as usize + j;
                // SAFETY: a value, if there.
                unsafe { global::load_if::<Cg, Op::Acc>(at < end as usize, values.wrapping_add(at * apart)) }
            });
            let values: [Op::Acc; BATCH] = core::array::from_fn(|j| {
                if lane + (j as u32) < end {
                    // SAFETY: loaded under the same condition.
                    unsafe { batch[j].assume_init() }
                } else {
                    op.identity()
                }
            });
            counter.push(op, lanes::combine_slots(op, values, 0, Some(end - lane)));
            lane += BATCH as u32;
        }
        counter.total(op)
    };
    (value, lanes.div_ceil(mine))
}

/// Groups of a chunk of `len` items that have any.
#[inline(always)]
fn present_groups<const V: usize>(params: &ColumnParams<impl Monoid>, len: u64) -> u32 {
    (len.min(params.groups as u64 * V as u64) as u32).div_ceil(V as u32)
}

/// What a thread folds, and where its values go.
struct Mine {
    /// The first of its columns.
    column: u64,
    outer: u64,
    /// The chunk: its first item's index in the column, and its length.
    start: u64,
    len: u64,
    /// The first of its groups.
    group: u32,
    /// Its slot for the first column, and from one column's to the next.
    at: usize,
    apart: usize,
}

/// A thread as one that folds values.
struct Folding<'a, Op: Monoid> {
    place: Place<Op::Acc>,
    op: &'a Op,
    /// Does it fold any?
    there: bool,
    /// Values of a column that are folded at once.
    rows: u32,
}

impl<Op: Monoid> Folding<'_, Op> {
    /// The value of this thread's neighbours among `[count][width]`.
    ///
    /// # Safety
    ///
    /// `count` values of each column are written and visible, and of this thread's there is one at least.
    #[inline(always)]
    unsafe fn neighbours(&self, from: Shared<Op::Acc>, count: u32) -> Op::Acc {
        let Place { x, part, width, .. } = self.place;
        let here = count - part * FOLD;
        // SAFETY: the caller's promise.
        let value = |k: u32| unsafe { from.read(((part * FOLD + k) * width + x) as usize) };
        let mut left = value(0);
        if here > 1 {
            left = self.op.combine(left, value(1));
        }
        if here > 2 {
            let mut right = value(2);
            if here > 3 {
                right = self.op.combine(right, value(3));
            }
            left = self.op.combine(left, right);
        }
        left
    }

    /// Takes the values of a round into the counter's digit `level`, as its number `fill`.
    ///
    /// # Safety
    ///
    /// As for [`neighbours`](Self::neighbours), but that there may be none; nobody reads or writes that part of the level.
    #[inline(always)]
    unsafe fn carry(&self, from: Shared<Op::Acc>, count: u32, to: Shared<Op::Acc>, fill: u32) {
        let Place { x, part, width, parts, .. } = self.place;
        if self.there && part * FOLD < count {
            // SAFETY: the caller's promise.
            let value = unsafe { self.neighbours(from, count) };
            // SAFETY: one thread, one slot.
            unsafe { to.write(((fill * parts + part) * width + x) as usize, value) };
        }
    }
}

/// Folds a split's groups of a tile of columns: where their values are then, `[count][width]`, after a barrier, and how many there
/// are of each column.
///
/// # Safety
///
/// As for [`wide`]; the whole block calls, and the slots are free.
#[inline(always)]
unsafe fn fold_groups<Op: Monoid, const V: usize, const W: usize>(
    params: &ColumnParams<Op>,
    folding: &Folding<'_, Op>,
    mine: &Mine,
    present: u32,
) -> (Shared<Op::Acc>, u32) {
    let a_round = folding.rows;
    let slots = folding.place.slots;
    let buffer = |number: usize| slots.from(number * (block_dim_x() as usize * W));
    let level = |number: usize| buffer(2 + number);
    let here = params.inner.saturating_sub(mine.column).min(W as u64) as u32;
    let ops: [Op; W] = core::array::from_fn(|c| {
        let segment = mine.outer * params.inner + mine.column + c as u64;
        operator(&params.op, segment, (c as u32) < here)
    });
    let first = (mine.outer as i64).wrapping_mul(params.outer_stride).wrapping_add(mine.column as i64);
    let row = mine.start as i64 + mine.group as i64 * V as i64;
    let mut items =
        params.input.wrapping_offset(first.wrapping_add(row.wrapping_mul(params.stride)) as isize);
    let rows = Rows {
        stride: params.stride,
        lanes: params.groups as u64 * V as u64,
        start: mine.start,
        len: mine.len,
        here,
        vectors: here == W as u32
            && (W == 1
                || (params.stride as usize).is_multiple_of(W)
                    && items.addr().is_multiple_of(size_of::<[Op::Item; W]>())),
    };
    let lanes_there = (mine.len.min(rows.lanes)) as u32;
    let lanes_there = if lanes_there as u64 == rows.lanes { None } else { Some(lanes_there) };
    let rounds = present.div_ceil(a_round);
    let mut acc = [[params.op.identity(); V]; W];
    let mut begun = false;
    let mut round = 0;
    // SAFETY: the first group's first rows.
    let mut ahead = unsafe { rows.ask::<Op, V, W>(rows.of::<V>(mine.group), items) };
    while round < rounds {
        nounroll();
        let group = mine.group + round * a_round;
        round += 1;
        let after = items.wrapping_offset((a_round as i64 * V as i64).wrapping_mul(params.stride) as isize);
        let after_row = if round < rounds { rows.of::<V>(group + a_round) } else { rows.len };
        if rows.vectors {
            // SAFETY: items of these columns, from this group's first row on, of which the first have been asked for.
            begun = unsafe {
                rows.fold(&ops, &mut acc, begun, (rows.of::<V>(group), items), &mut ahead, (after_row, after))
            };
        } else if here > 0 {
            cold_path();
            // SAFETY: the same, but that nothing has been asked for.
            begun = unsafe { rows.fold_part(&ops, &mut acc, begun, items, group) };
        }
        items = after;
        if !Op::ANY_ORDER {
            let to = buffer((round & 1) as usize);
            if (group as u64 * V as u64) < mine.len {
                let mut c = 0;
                while c < W {
                    if (c as u32) < here {
                        let value = lanes::combine_slots(&ops[c], acc[c], group, lanes_there);
                        // SAFETY: one thread, one slot; what was there was read before the last barrier.
                        unsafe { to.write(mine.at + c * mine.apart, value) };
                    }
                    c += 1;
                }
            }
            begun = false;
            sync_threads();
            // SAFETY: written before the barrier; the level's part was read before it.
            unsafe {
                folding.carry(
                    to,
                    (present - (round - 1) * a_round).min(a_round),
                    level(0),
                    (round - 1) % FOLD,
                )
            };
            // Full digits carry.
            let (mut digit, mut count, mut values) = (0, round, present);
            while count % FOLD == 0 && digit + 1 < LEVELS {
                nounroll();
                values = values.div_ceil(FOLD);
                sync_threads();
                // SAFETY: as above.
                unsafe {
                    folding.carry(
                        level(digit),
                        (values - (count / FOLD - 1) * a_round).min(a_round),
                        level(digit + 1),
                        (count / FOLD - 1) % FOLD,
                    )
                };
                count /= FOLD;
                digit += 1;
            }
        }
    }
    if Op::ANY_ORDER {
        let there = present.min(a_round);
        let mut c = 0;
        while c < W {
            if (c as u32) < here && begun {
                // SAFETY: one thread, one slot.
                unsafe { slots.write(mine.at + c * mine.apart, acc[c][0]) };
            }
            c += 1;
        }
        return (slots, there);
    }
    // Digits that are not full carry too, until one has all there is.
    let (mut digit, mut count, mut values, mut full) = (0, rounds, present.div_ceil(FOLD), true);
    while count > FOLD || (count == FOLD && full && digit + 1 < LEVELS) {
        nounroll();
        let above = values.div_ceil(FOLD);
        full &= count % FOLD == 0;
        if !full {
            sync_threads();
            let before = (count - 1) / FOLD;
            // SAFETY: as above.
            unsafe {
                folding.carry(level(digit), values - before * a_round, level(digit + 1), before % FOLD)
            };
        }
        count = count.div_ceil(FOLD);
        values = above;
        digit += 1;
    }
    (level(digit), values)
}

/// How the rows of a chunk lie.
struct Rows {
    stride: i64,
    /// Rows from one item of a lane to the next.
    lanes: u64,
    start: u64,
    len: u64,
    /// Columns that are there.
    here: u32,
    /// Are all, and aligned vectors?
    vectors: bool,
}

impl Rows {
    /// A group's first row.
    #[inline(always)]
    fn of<const V: usize>(&self, group: u32) -> u64 {
        group as u64 * V as u64
    }

    /// Rows of the chunk from `row` on, or as many of them as matter.
    #[inline(always)]
    fn left(&self, row: u64) -> u32 {
        self.len.saturating_sub(row).min(u32::MAX as u64) as u32
    }

    /// Asks for rows of each of a group's lanes from `row` on, those that are there. The loads stand behind predicates, or else the
    /// assembler would move each to the branch that uses it.
    ///
    /// # Safety
    ///
    /// If there are vectors, those of rows in the chunk are aligned and may be read.
    #[inline(always)]
    unsafe fn ask<Op: Monoid, const V: usize, const W: usize>(
        &self,
        row: u64,
        items: *const Op::Item,
    ) -> Ahead<Op::Item, V, W> {
        let left = if self.vectors { self.left(row) } else { 0 };
        let mut rows = [[MaybeUninit::uninit(); V]; AHEAD];
        let mut first = items;
        let mut j = 0;
        while j < ahead::<Op::Item, V, W>() {
            let mut from = first;
            let mut lane = 0;
            while lane < V {
                let there = j as u32 * self.lanes as u32 + (lane as u32) < left;
                // SAFETY: the caller's promise. Nothing is read twice.
                rows[j][lane] = unsafe { global::load_neighbours_if::<NoAllocate, Op::Item, W>(there, from) };
                from = from.wrapping_offset(self.stride as isize);
                lane += 1;
            }
            first = first.wrapping_offset((self.lanes as i64).wrapping_mul(self.stride) as isize);
            j += 1;
        }
        rows
    }

    /// Folds the rows of a group; of any order, on to what is there already. Is there anything now? Its lanes' first rows have been
    /// asked for, and are `rows_ahead`, which then is those of the next group.
    ///
    /// # Safety
    ///
    /// `row` and `items` are the group's first, `after` the next group's, or the row is behind the chunk's end; rows before that are
    /// aligned vectors that may be read.
    #[inline(always)]
    unsafe fn fold<Op: Monoid, const V: usize, const W: usize>(
        &self,
        ops: &[Op; W],
        acc: &mut [[Op::Acc; V]; W],
        mut begun: bool,
        (mut row, mut items): (u64, *const Op::Item),
        rows_ahead: &mut Ahead<Op::Item, V, W>,
        after: (u64, *const Op::Item),
    ) -> bool {
        let count = ahead::<Op::Item, V, W>() as u32;
        let rows_a_step = count as u64 * self.lanes;
        let apart = (rows_a_step as i64).wrapping_mul(self.stride) as isize;
        while row < self.len {
            nounroll();
            let rows = *rows_ahead;
            let left = self.left(row);
            let next = (row + rows_a_step, items.wrapping_offset(apart));
            let next = if next.0 < self.len { next } else { after };
            // SAFETY: the same lanes' next rows, or the next group's first.
            *rows_ahead = unsafe { self.ask::<Op, V, W>(next.0, next.1) };
            let index = self.start + row;
            // SAFETY: asked for before, as many as there are.
            unsafe {
                if V <= 4 && (count - 1) * self.lanes as u32 + (V as u32) <= left {
                    self.push::<Op, V, W, true>(ops, acc, begun, &rows, index, left);
                } else {
                    cold_path();
                    self.push::<Op, V, W, false>(ops, acc, begun, &rows, index, left);
                }
            }
            // Not known to be true, or else the first rows would get a body of its own.
            begun = opaque(1) != 0;
            row += rows_a_step;
            items = next.1;
        }
        begun
    }

    /// Takes rows of each lane into its accumulator, the first of which is `index` in its column: of those of which `left` are
    /// there, `ALL` or not.
    ///
    /// # Safety
    ///
    /// Those that are there have been asked for.
    #[inline(always)]
    unsafe fn push<Op: Monoid, const V: usize, const W: usize, const ALL: bool>(
        &self,
        ops: &[Op; W],
        acc: &mut [[Op::Acc; V]; W],
        begun: bool,
        rows: &Ahead<Op::Item, V, W>,
        index: u64,
        left: u32,
    ) {
        let mut j = 0;
        while j < ahead::<Op::Item, V, W>() {
            let mut lane = 0;
            while lane < V {
                let at = j as u32 * self.lanes as u32 + lane as u32;
                if ALL || at < left {
                    // SAFETY: asked for.
                    let items: [Op::Item; W] = unsafe { rows[j][lane].assume_init() };
                    let to = if Op::ANY_ORDER { 0 } else { lane };
                    let index = index + at as u64;
                    let mut c = 0;
                    while c < W {
                        acc[c][to] = if begun || j > 0 || to < lane {
                            ops[c].push(acc[c][to], items[c], index)
                        } else {
                            ops[c].lift(items[c], index)
                        };
                        c += 1;
                    }
                }
                lane += 1;
            }
            j += 1;
        }
    }

    /// Folds what there is of the rows of a group, item by item, in the same way. Is there anything now?
    ///
    /// # Safety
    ///
    /// `items` leads to the group's first row; rows before the chunk's end are readable.
    #[inline(always)]
    unsafe fn fold_part<Op: Monoid, const V: usize, const W: usize>(
        &self,
        ops: &[Op; W],
        acc: &mut [[Op::Acc; V]; W],
        mut begun: bool,
        items: *const Op::Item,
        group: u32,
    ) -> bool {
        let step =
            |from: *const Op::Item, rows: i64| from.wrapping_offset(rows.wrapping_mul(self.stride) as isize);
        let mut row = group as u64 * V as u64;
        let mut next = items;
        while row < self.len {
            nounroll();
            // The rows that there are: L1 has what a load leaves of its lines for the next.
            let left = (self.len - row).min(V as u64) as u32;
            let mut first = 0;
            while first < V {
                let batch: [[_; W]; ROWS] = core::array::from_fn(|j| {
                    let lane = first + j;
                    let from = step(next, lane as i64);
                    core::array::from_fn(|c| {
                        let there = lane < V && (lane as u32) < left && (c as u32) < self.here;
                        // SAFETY: an item of the chunk, if it is there.
                        unsafe { global::load_if::<Plainly, Op::Item>(there, from.wrapping_add(c)) }
                    })
                });
                let mut j = 0;
                while j < ROWS && first + j < V {
                    let lane = first + j;
                    let index = self.start + row + lane as u64;
                    let to = if Op::ANY_ORDER { 0 } else { lane };
                    let mut c = 0;
                    while c < W {
                        if (lane as u32) < left && (c as u32) < self.here {
                            // SAFETY: loaded under the same condition.
                            let item = unsafe { batch[j][c].assume_init() };
                            acc[c][to] = if begun || to < lane {
                                ops[c].push(acc[c][to], item, index)
                            } else {
                                ops[c].lift(item, index)
                            };
                        }
                        c += 1;
                    }
                    j += 1;
                }
                first += ROWS;
            }
            next = step(next, self.lanes as i64);
            row += self.lanes;
            begun = opaque(1) != 0;
        }
        begun
    }
}
