//! Columns side by side, by vectors of neighbours: `[outer][n][inner]`, reduced along `n`.
//!
//! A thread folds a group of lanes of each of `W` neighbouring columns, whose items are one vector in memory. Neighbouring
//! threads have neighbouring vectors of a row, and then the next group, so that what a block reads at once lies side by side,
//! some kilobytes of it: where threads took groups apart, as [`columns`](super::columns) does, each would open a page of
//! memory of its own. The values of groups meet in shared memory, `FOLD` neighbours at a time: a counter to that base whose
//! digits are what a level has, which is the tree that groups combine in.

use core::mem::MaybeUninit;

use warpfold_monoid::{Monoid, tree::vector_len};
use warpfold_simt::{
    atomic::{self, AcqRel, Gpu},
    global::{
        self,
        hint::{NoAllocate, Plainly},
    },
    grid,
    hint::{cold_path, nounroll, opaque},
    shared::Shared,
    thread::{block_dim_x, block_idx_x, sync_threads, thread_idx_x},
};

use super::{
    THREADS,
    columns::{ColumnParams, Place, divided, fold_chunks},
    let_next_start, operator,
};
use crate::{export, lanes};

/// Neighbours that combine at once.
pub const FOLD: u32 = 4;

/// Digits of the counter: a block has up to `FOLD^LEVELS` rounds.
const LEVELS: usize = 3;

/// The most rounds of a block: groups of a split over groups that it folds at once.
pub const MAX_ROUNDS: u32 = FOLD.pow(LEVELS as u32);

/// Rounds of items that are asked for before any is used, at most.
const IN_FLIGHT: usize = 4;

/// Rows of which items are asked for one by one at once.
const ROWS: usize = 4;

/// Rounds in flight where vectors have so many lanes.
const fn in_flight(vector: usize) -> usize {
    match vector {
        ..=2 => IN_FLIGHT,
        ..=4 => IN_FLIGHT / 2,
        _ => 1,
    }
}

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

/// Values in shared memory: two rounds', and a level's each.
pub const fn slots<Op: Monoid>() -> usize {
    match abreast_of::<Op>() {
        1 => 1,
        abreast => (if Op::ANY_ORDER { 1 } else { 2 + LEVELS }) * THREADS as usize * abreast,
    }
}

/// The launch bounds: two blocks to a multiprocessor at least.
pub const fn bounds<Op: Monoid>() -> u32 {
    export::resident::<Op>(THREADS, 2)
}

/// Columns side by side.
///
/// # Safety
///
/// As for [`columns`](super::columns::columns), but for blocks: there are `outer * chunks * splits * tiles`; `width` is a multiple of `W`, and blocks have `parts * width / W`
/// threads, at most [`THREADS`]; `parts` is a power of two from [`FOLD`] to as many groups as a split has
/// (`groups / splits`), which are at most [`MAX_ROUNDS`] times as many. `W` is [`abreast_of`] the operator; `slots` has
/// [`slots`], `flag` one.
#[inline(always)]
pub unsafe fn wide<Op: Monoid, const V: usize, const W: usize>(
    params: &ColumnParams<Op>,
    slots: Shared<Op::Acc>,
    flag: Shared<u32>,
) {
    grid::wait_for_previous();
    if W == 1 || !Op::COMMUTATIVE {
        return;
    }
    let (thread, width, parts) = (thread_idx_x(), params.width, params.parts);
    let vectors = width / W as u32;
    // As a thread that folds groups: its row and vector.
    let (row, vector) = (thread / vectors, thread % vectors);
    // As one that folds values: which neighbours, and of which column. Values lie so that threads of a row write side by side.
    let (part, x) = (thread / width, thread % width);
    let of_tile = x % vectors * W as u32 + x / vectors;
    let folders = parts / FOLD;
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
    let at = outer * params.inner + column;
    if pieces == 1 {
        if part == 0 && there {
            // SAFETY: one thread a column.
            unsafe { global::store(params.output.wrapping_add(at as usize), op.finish(acc)) };
        }
    } else {
        let values = params.partials.wrapping_add((outer * pieces as u64 * params.inner + column) as usize);
        // A split beyond the chunk's end has no value, and nobody reads its place.
        if part == 0 && there && present > 0 {
            let to = values.wrapping_add((piece * params.inner) as usize);
            // SAFETY: one thread a column's piece.
            unsafe { global::store(to, acc) };
        }
        // All partials of the block are written before its ticket is counted.
        sync_threads();
        let ticket = params.tickets.wrapping_add((outer * tiles + tile) as usize);
        if thread == 0 {
            // SAFETY: a ticket of this launch; release and acquire as for the partials of one array.
            let done = unsafe { atomic::fetch_add(ticket, 1, AcqRel, Gpu) };
            // SAFETY: one thread, and a barrier since the last reading.
            unsafe { flag.write(0, done) };
        }
        sync_threads();
        // SAFETY: written before the barrier.
        if unsafe { flag.read(0) } + 1 == pieces {
            let splits = |len| present_groups::<V>(params, len).div_ceil(a_split);
            // SAFETY: all chunks of these columns are done.
            let (acc, present) = unsafe { fold_chunks(params, op, (part, folders), values, there, splits) };
            // SAFETY: the whole block; two barriers since the slots were read.
            let acc = unsafe { place.combine(op, acc, present) };
            if part == 0 && there {
                // SAFETY: one thread a column.
                unsafe { global::store(params.output.wrapping_add(at as usize), op.finish(acc)) };
            }
            if thread == 0 {
                // SAFETY: the last to use it.
                unsafe { global::store(ticket, 0) };
            }
        }
    }
    let_next_start();
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
            && (params.stride as usize).is_multiple_of(W)
            && items.addr().is_multiple_of(size_of::<[Op::Item; W]>()),
    };
    let lanes_there = (mine.len.min(rows.lanes)) as u32;
    let lanes_there = if lanes_there as u64 == rows.lanes { None } else { Some(lanes_there) };
    let rounds = present.div_ceil(a_round);
    let mut acc = [[params.op.identity(); V]; W];
    let mut begun = false;
    let mut round = 0;
    while round < rounds {
        nounroll();
        let group = mine.group + round * a_round;
        if here > 0 {
            // SAFETY: items of these columns, from this group's first row on.
            begun = unsafe { rows.fold(&ops, &mut acc, begun, items, group) };
        }
        items = items.wrapping_offset((a_round as i64 * V as i64).wrapping_mul(params.stride) as isize);
        round += 1;
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
    /// Folds the rows of a group; of any order, on to what is there already. Is there anything now?
    ///
    /// # Safety
    ///
    /// `items` leads to the group's first row; rows before the chunk's end are readable.
    #[inline(always)]
    unsafe fn fold<Op: Monoid, const V: usize, const W: usize>(
        &self,
        ops: &[Op; W],
        acc: &mut [[Op::Acc; V]; W],
        mut begun: bool,
        items: *const Op::Item,
        group: u32,
    ) -> bool {
        let step =
            |from: *const Op::Item, rows: i64| from.wrapping_offset(rows.wrapping_mul(self.stride) as isize);
        let slot = |lane: usize| if Op::ANY_ORDER { 0 } else { lane };
        let mut row = group as u64 * V as u64;
        let mut next = items;
        while row < self.len {
            nounroll();
            let count = in_flight(V);
            if self.vectors && row + (count as u64 - 1) * self.lanes + V as u64 <= self.len {
                // All there: nothing to ask.
                let mut from = next;
                let mut batch = [[MaybeUninit::uninit(); V]; IN_FLIGHT];
                let mut j = 0;
                while j < count {
                    let mut lane = 0;
                    while lane < V {
                        // SAFETY: an aligned vector of the row. Nothing is read twice.
                        batch[j][lane] = MaybeUninit::new(unsafe {
                            global::load_neighbours_with::<NoAllocate, Op::Item, W>(step(from, lane as i64))
                        });
                        lane += 1;
                    }
                    from = step(from, self.lanes as i64);
                    j += 1;
                }
                let mut j = 0;
                while j < count {
                    let mut lane = 0;
                    while lane < V {
                        // SAFETY: loaded.
                        let items: [Op::Item; W] = unsafe { batch[j][lane].assume_init() };
                        let index = self.start + row + j as u64 * self.lanes + lane as u64;
                        let to = slot(lane);
                        let mut c = 0;
                        while c < W {
                            acc[c][to] = if begun || j > 0 || to < lane {
                                ops[c].push(acc[c][to], items[c], index)
                            } else {
                                ops[c].lift(items[c], index)
                            };
                            c += 1;
                        }
                        lane += 1;
                    }
                    j += 1;
                }
                next = from;
                row += count as u64 * self.lanes;
            } else {
                cold_path();
                // One round, of the rows that there are, item by item: L1 has what a load leaves of its lines for the next.
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
                        let to = slot(lane);
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
            }
            // Not known to be true, or else the first round would get a body of its own.
            begun = opaque(1) != 0;
        }
        begun
    }
}
