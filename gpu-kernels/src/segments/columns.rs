//! Columns: segments whose items lie at one distance, with neighbouring segments side by side: `[outer][n][inner]`,
//! reduced along `n`.
//!
//! Threads that are neighbours read neighbouring columns, so that loads are coalesced and nothing is transposed. Where order does
//! not matter, long columns are those of [`wide`](mod@wide), one to a thread; of short ones a thread folds one lane of the canonical
//! tree after the other, a few at once, whose values meet in a binary counter of partial results, which is the tree that they
//! combine in. Where order matters a thread has a part of a column's chunk, and those of `parts` threads combine through shared
//! memory.

use core::mem::MaybeUninit;

use warpfold_monoid::{
    Monoid, Plain,
    tree::{FOLD_LANES, VECTORS_A_GROUP},
};
use warpfold_simt::{
    atomic::{self, AcqRel, Gpu},
    global::{
        self,
        hint::{NoAllocate, Plainly},
    },
    grid,
    hint::{cold_path, nounroll, opaque, pinned},
    shared::Shared,
    thread::{block_idx_x, grid_dim_x, sync_threads, thread_idx_x},
};

use super::{THREADS, let_next_start, operator, wide};
use crate::{export, lanes};

/// The parameters of [`columns`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ColumnParams<Op: Monoid> {
    /// The first item of the first column; aligned to the item.
    pub input: *const Op::Item,
    /// Items from one item of a column to the next; may be negative.
    pub stride: i64,
    /// Items from one group of `inner` columns to the next.
    pub outer_stride: i64,
    /// Groups of columns.
    pub outer: u64,
    /// Columns in a group, which lie side by side.
    pub inner: u64,
    /// Items in a column, at least 1.
    pub n: u64,
    /// Where the results go: `[outer][inner]`.
    pub output: *mut Op::Output,
    /// `[outer][chunks][inner]` values; [`wide`](wide::wide) has its own. Unused for one chunk of one split.
    pub partials: *mut Op::Acc,
    /// For each group of columns and each tile of it how many chunks are done: 0 before and after every launch; [`wide`](wide::wide)
    /// has its own. Unused for one chunk of one split.
    pub tickets: *mut u32,
    /// Items in a chunk: [`Shape::chunk`](warpfold_monoid::tree::Shape::chunk).
    pub chunk: u64,
    /// Chunks in a column.
    pub chunks: u32,
    /// Groups of lanes: [`Shape::groups`](warpfold_monoid::tree::Shape::groups).
    pub groups: u32,
    /// Neighbouring columns that a block takes: a tile.
    pub width: u32,
    /// Threads of a block that share a column's chunk, a power of two.
    pub parts: u32,
    /// Blocks that share a column's chunk, a power of two up to [`MAX_SPLITS`]; 1 where order matters.
    pub splits: u32,
    /// Nothing.
    pub padding: u32,
    /// Tiles of each group of columns: `inner.div_ceil(width)`.
    pub tiles: u64,
    /// The operator.
    pub op: Op,
}

/// The most threads in a block where order matters, which each need a slot in shared memory.
pub const fn threads<Op: Monoid>() -> u32 {
    let fit = (32 << 10) / if size_of::<Op::Acc>() == 0 { 1 } else { size_of::<Op::Acc>() };
    if fit < THREADS as usize { fit as u32 } else { THREADS }
}

/// The launch bounds.
pub const fn bounds<Op: Monoid>() -> u32 {
    if Op::COMMUTATIVE { wide::bounds::<Op>() } else { export::resident::<Op>(THREADS, 2) }
}

/// Slots in shared memory.
pub const fn slots<Op: Monoid>() -> usize {
    if Op::COMMUTATIVE { wide::slots::<Op>(1) } else { threads::<Op>() as usize }
}

/// The most blocks that share a chunk.
pub const MAX_SPLITS: u32 = 8;

/// Lanes that a thread folds at once.
const LANES: usize = 4;

/// Items of each that are in flight at most.
const ROUNDS: usize = 4;

/// Items of each that are in flight: large accumulators leave registers for fewer.
const fn rounds<Op: Monoid>() -> usize {
    if size_of::<Op::Acc>() <= 8 { ROUNDS } else { ROUNDS / 2 }
}

/// Columns of any length, tiles of neighbours.
///
/// # Safety
///
/// `slots` has [`slots`], `flag` one. If the operator commutes, as for [`wide()`](wide::wide) with one column to a thread. Else
/// blocks of `width * parts` threads, at most [`threads`]; items are readable and results writable; chunks and groups are those of a column's [`Shape`](warpfold_monoid::tree::Shape); partials and tickets belong to this launch alone.
#[inline(always)]
pub unsafe fn columns<Op: Monoid, const V: usize>(
    params: &ColumnParams<Op>,
    slots: Shared<Op::Acc>,
    flag: Shared<u32>,
) {
    if Op::COMMUTATIVE {
        // SAFETY: the caller's promise.
        return unsafe { wide::wide::<Op, V, 1>(params, slots, flag) };
    }
    grid::wait_for_previous();
    let (thread, width, parts) = (thread_idx_x(), params.width, params.parts);
    let (part, x) = (thread / width, thread % width);
    let place = Place { x, part, width, parts, slots };
    let tiles = params.tiles;
    let chunks = params.chunks;
    let work = params.outer * chunks as u64 * tiles;
    let mut next = block_idx_x() as u64;
    while next < work {
        nounroll();
        let (rest, tile) = divided(next, tiles, work);
        let (outer, k) = divided(rest, chunks as u64, work);
        let column = tile * width as u64 + x as u64;
        let there = column < params.inner;
        let op = &operator(&params.op, outer * params.inner + column, there);
        let start = k * params.chunk;
        let len = params.chunk.min(params.n - start);
        let first = (outer as i64).wrapping_mul(params.outer_stride).wrapping_add(column as i64);
        let items = params.input.wrapping_offset(first as isize);
        let chunk = items.wrapping_offset((start as i64).wrapping_mul(params.stride) as isize);
        let (acc, present) = if there {
            // SAFETY: a column's items.
            unsafe { part_value::<Op, V>(params, op, part, start, len, chunk) }
        } else {
            (op.identity(), 0)
        };
        // SAFETY: the whole block, and the slots are free.
        let acc = unsafe { place.combine(op, acc, present) };
        let at = outer * params.inner + column;
        if chunks == 1 {
            if part == 0 && there {
                // SAFETY: one thread a column.
                unsafe { global::store(params.output.wrapping_add(at as usize), op.finish(acc)) };
            }
        } else {
            let values =
                params.partials.wrapping_add((outer * chunks as u64 * params.inner + column) as usize);
            if part == 0 && there {
                // SAFETY: one thread a column's chunk.
                unsafe { global::store(values.wrapping_add((k * params.inner) as usize), acc) };
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
            if unsafe { flag.read(0) } + 1 == chunks {
                // SAFETY: all chunks of these columns are done.
                let (acc, present) = unsafe { fold_chunks(params, op, part, values, there) };
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
        next += grid_dim_x() as u64;
        if next < work {
            sync_threads();
        }
    }
    let_next_start();
}

/// The most lanes of a column that [`short`] takes.
pub const SHORT_LANES: u64 = (LANES as u64) << SHORT_LEVELS;

/// Of how many lanes, `LANES << SHORT_LEVELS`, a thread has values at most.
const SHORT_LEVELS: usize = 4;

/// Short columns whose order does not matter, a thread each: the same in fewer registers, so that more blocks run at once.
///
/// # Safety
///
/// As for [`columns`], with blocks of [`THREADS`] threads, as many as all columns take; `chunks`, `parts` and `splits` are 1,
/// columns have at most [`SHORT_LANES`] lanes, and the operator commutes.
#[inline(always)]
pub unsafe fn short<Op: Monoid, const V: usize>(params: &ColumnParams<Op>) {
    grid::wait_for_previous();
    if !Op::COMMUTATIVE {
        return;
    }
    let all = params.outer * params.inner;
    let at = block_idx_x() as u64 * THREADS as u64 + thread_idx_x() as u64;
    if at < all {
        let (outer, column) = divided(at, params.inner, all);
        let first = (outer as i64).wrapping_mul(params.outer_stride).wrapping_add(column as i64);
        let items = params.input.wrapping_offset(first as isize);
        let op = &operator(&params.op, at, true);
        // SAFETY: a column's items.
        let acc = unsafe { column_value::<Op, V, SHORT_LEVELS>(params, op, items) };
        // SAFETY: one thread a column.
        unsafe { global::store(params.output.wrapping_add(at as usize), op.finish(acc)) };
    }
    let_next_start();
}

/// Neighbouring columns that a thread of [`few`] folds: a vector of their items, where accumulators leave registers for it;
/// 1 where there is no such kernel.
pub const fn abreast(item_bytes: usize, acc_bytes: usize) -> u32 {
    match (item_bytes, acc_bytes) {
        (4, ..=4) => 4,
        (4, ..=8) | (8, ..=8) => 2,
        _ => 1,
    }
}

/// Columns of no more items than a thread folds of a row, several neighbours a thread: what there is of a column is a few
/// bytes, so that one a thread would wait for memory most of the time.
///
/// # Safety
///
/// As for [`columns`], with as many threads in blocks of [`THREADS`] as there are groups of `W` neighbours (or a thread for [`least`]
/// of them, if columns are no longer than a vector); `chunks` and `splits` are 1, `parts` is as many threads as share lanes,
/// [`FEW_LANES`] each, with so many times the threads; the operator commutes, and `W` is [`abreast`], more than 1. `slots` has [`few_slots`].
#[inline(always)]
pub unsafe fn few<Op: Monoid, const V: usize, const W: usize>(
    params: &ColumnParams<Op>,
    slots: Shared<Op::Acc>,
) {
    grid::wait_for_previous();
    if !Op::COMMUTATIVE || W == 1 {
        return;
    }
    let a_group = params.inner.div_ceil(W as u64);
    let all = params.outer * a_group;
    let mine = if params.n <= V as u64 { least(params.n, W) } else { 1 };
    let first = block_idx_x() as u64 * (THREADS * mine) as u64 + thread_idx_x() as u64;
    // SAFETY: the caller's promise; so many items, or at most as many.
    let done = all >> 32 == 0
        && unsafe {
            match params.n {
                2 if V >= 2 && W == 2 => shortest::<Op, V, W, 2, 4, true>(params, a_group, all, first),
                2 if V >= 2 => shortest::<Op, V, W, 2, 2, true>(params, a_group, all, first),
                4 if V == 4 => shortest::<Op, V, W, 4, 2, true>(params, a_group, all, first),
                n if n <= V as u64 => shortest::<Op, V, W, V, 2, false>(params, a_group, all, first),
                n if V == 4 && n <= 8 => shortest::<Op, V, W, 8, 1, false>(params, a_group, all, first),
                n if V == 2 && n <= 4 => shortest::<Op, V, W, 4, 1, false>(params, a_group, all, first),
                _ => by_lanes::<Op, V, W>(params, slots, a_group, all, first),
            }
        };
    if !done {
        cold_path();
        // Column by column, each from its place on: there are few registers.
        let first = block_idx_x() as u64 * (THREADS * mine) as u64 + pinned(thread_idx_x()) as u64;
        let (first, part) = shared_by(params.parts, first);
        let mut i = 0;
        while i < mine * W as u32 {
            nounroll();
            let at = first + (i / W as u32 * THREADS) as u64;
            let (outer, group) = divided(at, a_group, all);
            let column = group * W as u64 + (i % W as u32) as u64;
            if at < all && column < params.inner && part == 0 {
                let from = (outer as i64).wrapping_mul(params.outer_stride).wrapping_add(column as i64);
                let result = outer * params.inner + column;
                let op = &operator(&params.op, result, true);
                // SAFETY: a column's items.
                let acc = unsafe {
                    let from = params.input.wrapping_offset(from as isize);
                    column_value::<Op, V, FEW_SHORT_LEVELS>(params, op, from)
                };
                // SAFETY: one thread a column.
                unsafe { global::store(params.output.wrapping_add(result as usize), op.finish(acc)) };
            }
            i += 1;
        }
    }
    let_next_start();
}

/// A group of neighbours of a thread of [`few`], of more items than a vector's, if they are a vector: else it is not done.
///
/// Two lanes at a time, all their items at once, whose values combine as they come: so few accumulators are kept.
///
/// # Safety
///
/// As there; `at` is one of `all`.
#[inline(always)]
unsafe fn by_lanes<Op: Monoid, const V: usize, const W: usize>(
    params: &ColumnParams<Op>,
    slots: Shared<Op::Acc>,
    a_group: u64,
    all: u64,
    at: u64,
) -> bool {
    let (at, part) = shared_by(params.parts, at);
    let (result, here, items) = neighbours::<Op, W>(params, a_group, all, at);
    let (there, whole) = (at < all, is_whole::<Op, W>(params, items, result, here));
    let ops: [Op; W] = core::array::from_fn(|c| operator(&params.op, result + c as u64, there && whole));
    let (n, lanes) = (params.n as u32, params.groups * V as u32);
    let mine = lanes / params.parts;
    let end = if there && whole { (part + 1) * mine } else { 0 };
    let apart = (lanes as i64).wrapping_mul(params.stride) as isize;
    // Level `k` has the value of `2^k` pairs of lanes that waits for that of as many.
    let mut levels = [[params.op.identity(); FEW_LEVELS]; W];
    let mut values = [params.op.identity(); W];
    let mut lane = part * mine;
    while lane < end {
        nounroll();
        let mut acc = [[params.op.identity(); 2]; W];
        // Pinned, so that the loop keeps one place and not all of them.
        let mut from = items.wrapping_offset((pinned(lane) as i64).wrapping_mul(params.stride) as isize);
        let mut first = 0;
        while first < ROUNDS {
            let mut batch = [[MaybeUninit::uninit(); 2]; ROUNDS];
            let mut j = first;
            while j < first + rounds_of_few(W) {
                let mut b = 0;
                while b < 2 {
                    let there = j == 0 || lane + b as u32 + j as u32 * lanes < n;
                    let place = from.wrapping_offset(b as isize * params.stride as isize);
                    // SAFETY: a vector of neighbours in a row.
                    batch[j][b] =
                        unsafe { global::load_neighbours_if::<NoAllocate, Op::Item, W>(there, place) };
                    b += 1;
                }
                from = from.wrapping_offset(apart);
                j += 1;
            }
            let mut j = first;
            while j < first + rounds_of_few(W) {
                let mut b = 0;
                while b < 2 {
                    let index = lane + b as u32 + j as u32 * lanes;
                    if j == 0 || index < n {
                        // SAFETY: loaded under the same condition.
                        let vector = unsafe { batch[j][b].assume_init() };
                        let mut c = 0;
                        while c < W {
                            acc[c][b] = if j == 0 {
                                ops[c].lift(vector[c], index as u64)
                            } else {
                                ops[c].push(acc[c][b], vector[c], index as u64)
                            };
                            c += 1;
                        }
                    }
                    b += 1;
                }
                j += 1;
            }
            first += rounds_of_few(W);
        }
        let pair = (lane / 2) % (1 << FEW_LEVELS);
        let mut c = 0;
        while c < W {
            // Columns have more items than lanes, so that all lanes have one.
            values[c] = ops[c].combine(acc[c][0], acc[c][1]);
            let mut carries = true;
            let mut level = 0;
            while level < FEW_LEVELS {
                if carries {
                    carries = pair >> level & 1 != 0;
                    if carries {
                        values[c] = ops[c].combine(levels[c][level], values[c]);
                    } else {
                        levels[c][level] = values[c];
                    }
                }
                level += 1;
            }
            c += 1;
        }
        lane += 2;
    }
    let mut distance = 1;
    while distance < params.parts {
        nounroll();
        let place = |c: usize, warps: u32| c * THREADS as usize + (thread_idx_x() + 32 * warps) as usize;
        if part & (2 * distance - 1) == distance {
            let mut c = 0;
            while c < W {
                // SAFETY: its own slots, once.
                unsafe { slots.write(place(c, 0), values[c]) };
                c += 1;
            }
        }
        sync_threads();
        if part & (2 * distance - 1) == 0 {
            let mut c = 0;
            while c < W {
                // SAFETY: written before the barrier. Columns have more items than lanes, so that all parts have some.
                values[c] = ops[c].combine(values[c], unsafe { slots.read(place(c, distance)) });
                c += 1;
            }
        }
        distance *= 2;
    }
    if there && whole && part == 0 {
        let values: [Op::Output; W] = core::array::from_fn(|c| ops[c].finish(values[c]));
        // SAFETY: one thread so many columns.
        unsafe { global::store_neighbours(params.output.wrapping_add(result as usize), values) };
    }
    !there || whole
}

/// Which group of neighbours thread `at` of [`few`] has, and which part of its lanes, if threads of as many warps share one.
#[inline(always)]
fn shared_by(parts: u32, at: u64) -> (u64, u32) {
    let (warp, lane) = (at / 32, at % 32);
    // A power of two.
    (((warp >> parts.trailing_zeros()) << 5) | lane, warp as u32 & (parts - 1))
}

/// Values in shared memory: where threads share columns, those of each.
pub const fn few_slots<Op: Monoid>() -> usize {
    match abreast(size_of::<Op::Item>(), size_of::<Op::Acc>()) {
        1 => 1,
        abreast if Op::COMMUTATIVE => (abreast * THREADS) as usize,
        _ => 1,
    }
}

/// Of how many pairs of lanes, `1 << FEW_LEVELS`, a thread of [`few`] has values at most.
const FEW_LEVELS: usize = 4;

/// The most lanes of a column that a thread of [`few`] takes; threads of as many warps, up to [`FEW_PARTS`], share those of one that has more.
pub const FEW_LANES: u64 = 2 << FEW_LEVELS;

/// The most threads that share a column in [`few`].
pub const FEW_PARTS: u64 = 8;

/// Of how many lanes, `LANES << FEW_SHORT_LEVELS`, a thread of [`few`] has values where neighbours are no vectors.
const FEW_SHORT_LEVELS: usize = (FEW_LANES * FEW_PARTS).ilog2() as usize - LANES.ilog2() as usize;

/// Blocks of [`few`] that a multiprocessor is to hold: fewer where vectors of neighbours take four registers.
pub const fn few_blocks<Op: Monoid>() -> u32 {
    let item = size_of::<Op::Item>();
    if item * abreast(item, size_of::<Op::Acc>()) as usize > 8 { 3 } else { 4 }
}

/// Rounds of two lanes that a thread of [`few`] asks for at once, of so many neighbours: where they are more, their items leave
/// registers for fewer.
const fn rounds_of_few(abreast: usize) -> usize {
    if abreast > 2 { ROUNDS / 2 } else { ROUNDS }
}

/// Groups of so many neighbours that a thread has where columns are no longer than a vector: so that enough is asked for at once.
pub const fn least(n: u64, abreast: usize) -> u32 {
    if n == 2 && abreast == 2 { 4 } else { 2 }
}

/// Columns of `N` items, or, if not `ALL`, of at most as many (no more than two vectors of them), so many groups of `W` neighbours a thread; not done if some are no vector.
/// (Columns of few items are bound by instructions: hence constants, and no long division.)
///
/// # Safety
///
/// As for [`few`], with a thread for so many groups of `W` neighbours; `all` is less than 2^32, and `first` one of them.
#[inline(always)]
unsafe fn shortest<
    Op: Monoid,
    const V: usize,
    const W: usize,
    const N: usize,
    const GROUPS: usize,
    const ALL: bool,
>(
    params: &ColumnParams<Op>,
    a_group: u64,
    all: u64,
    first: u64,
) -> bool {
    let n = if ALL { N as u32 } else { params.n as u32 };
    let places: [_; GROUPS] = core::array::from_fn(|k| {
        let at = (first as u32).wrapping_add(k as u32 * THREADS);
        let there = first + ((k as u32 * THREADS) as u64) < all;
        let outer = if params.outer == 1 { 0 } else { at.checked_div(a_group as u32).unwrap_or(0) };
        let column = at.wrapping_sub(outer.wrapping_mul(a_group as u32)) as u64 * W as u64;
        let here = if there { (params.inner - column).min(W as u64) as u32 } else { 0 };
        let items = (outer as i64).wrapping_mul(params.outer_stride).wrapping_add(column as i64);
        let (result, items) =
            (outer as u64 * params.inner + column, params.input.wrapping_offset(items as isize));
        (result, here, items, is_whole::<Op, W>(params, items, result, here))
    });
    if places.iter().any(|&(_, here, _, whole)| here > 0 && !whole) {
        return false;
    }
    let batch: [[_; N]; GROUPS] = core::array::from_fn(|k| {
        let (_, _, items, whole) = places[k];
        core::array::from_fn(|lane| {
            let from = items.wrapping_offset((lane as i64).wrapping_mul(params.stride) as isize);
            let wanted = whole && (ALL || (lane as u32) < n);
            // SAFETY: a vector of neighbours in a row.
            unsafe { global::load_neighbours_if::<NoAllocate, Op::Item, W>(wanted, from) }
        })
    });
    let mut k = 0;
    while k < GROUPS {
        let (result, _, _, whole) = places[k];
        if whole {
            let values: [Op::Output; W] = core::array::from_fn(|c| {
                let op = &operator(&params.op, result + c as u64, true);
                // SAFETY: loaded under the same condition.
                let item = |i: usize| unsafe { batch[k][i].assume_init() }[c];
                let acc: [_; V] = core::array::from_fn(|lane| {
                    if lane < N && (ALL || (lane as u32) < n) {
                        let acc = op.lift(item(lane), lane as u64);
                        let next = lane + V;
                        if next < N && (next as u32) < n {
                            op.push(acc, item(next), next as u64)
                        } else {
                            acc
                        }
                    } else {
                        op.identity()
                    }
                });
                let present = Some(n.min(V as u32));
                op.finish(lanes::combine_slots(op, acc, 0, present))
            });
            // SAFETY: one thread so many columns.
            unsafe { global::store_neighbours(params.output.wrapping_add(result as usize), values) };
        }
        k += 1;
    }
    true
}

/// The number of the first of group `at` of `W` neighbours, how many are there, and where its items begin.
#[inline(always)]
fn neighbours<Op: Monoid, const W: usize>(
    params: &ColumnParams<Op>,
    a_group: u64,
    all: u64,
    at: u64,
) -> (u64, u32, *const Op::Item) {
    let (outer, column) = divided(at, a_group, all);
    let column = column * W as u64;
    let first = (outer as i64).wrapping_mul(params.outer_stride).wrapping_add(column as i64);
    let here = (params.inner - column).min(W as u64) as u32;
    (outer * params.inner + column, here, params.input.wrapping_offset(first as isize))
}

/// Are all `W` neighbours there, and their items and results aligned vectors?
#[inline(always)]
fn is_whole<Op: Monoid, const W: usize>(
    params: &ColumnParams<Op>,
    items: *const Op::Item,
    result: u64,
    here: u32,
) -> bool {
    let to = params.output.wrapping_add(result as usize);
    here == W as u32
        && (params.stride as usize).is_multiple_of(W)
        && items.addr().is_multiple_of(size_of::<[Op::Item; W]>())
        && (!global::is_vector::<Op::Output, W>() || to.addr().is_multiple_of(size_of::<[Op::Output; W]>()))
}

/// Quotient and remainder of numbers that are no more than `most`, the same for all threads: short columns are bound by
/// instructions, and a division of 64 bits takes a hundred.
#[inline(always)]
pub(super) fn divided(number: u64, by: u64, most: u64) -> (u64, u64) {
    if by <= 1 {
        (number, 0)
    } else if most >> 32 == 0 {
        let quotient = (number as u32).checked_div(by as u32).unwrap_or(0);
        (quotient as u64, (number as u32 - quotient * by as u32) as u64)
    } else {
        let quotient = number.checked_div(by).unwrap_or(0);
        (quotient, number - quotient * by)
    }
}

/// Where order matters: items in a part of a chunk.
#[inline(always)]
fn part_of<Op: Monoid, const V: usize>(params: &ColumnParams<Op>) -> u64 {
    if params.chunks <= 1 {
        FOLD_LANES as u64 * VECTORS_A_GROUP * V as u64
    } else {
        params.chunk / (params.groups / FOLD_LANES) as u64
    }
}

/// What one of the threads that share a column's chunk has of it, where order matters, and how many of them have something.
///
/// # Safety
///
/// `items` leads to the chunk's first item; item `i < len` of it, `i * stride` away, is readable.
#[inline(always)]
unsafe fn part_value<Op: Monoid, const V: usize>(
    params: &ColumnParams<Op>,
    op: &Op,
    part: u32,
    start: u64,
    len: u64,
    items: *const Op::Item,
) -> (Op::Acc, u32) {
    let present = len.div_ceil(part_of::<Op, V>(params)) as u32;
    let place = |i: u64| items.wrapping_offset((i as i64).wrapping_mul(params.stride) as isize);
    let step = |from: *const Op::Item, items: i64| from.wrapping_offset(items as isize);
    // SAFETY: an item of the chunk, if wanted.
    let load =
        |from: *const Op::Item, wanted: bool| unsafe { global::load_if::<Plainly, Op::Item>(wanted, from) };
    // A part each: its tiles from left to right, their strips pairwise.
    let strip = VECTORS_A_GROUP * V as u64;
    let tile = FOLD_LANES as u64 * strip;
    let whole = if params.chunks <= 1 { tile } else { params.chunk / (params.groups / FOLD_LANES) as u64 };
    let first = part as u64 * whole;
    let end = len.min(first + whole);
    let mut total = op.identity();
    let mut tile_start = first;
    let mut next = place(first);
    while tile_start < end {
        nounroll();
        let tile_end = end.min(tile_start + tile);
        let mut counter = Counter::<Op, 5>::new(op);
        let mut i = tile_start;
        while i < tile_end {
            nounroll();
            let strip_end = tile_end.min(i + strip);
            let mut acc = op.identity();
            let mut begun = false;
            while i < strip_end {
                nounroll();
                const BATCH: u64 = 8;
                let taken = if i + BATCH <= strip_end {
                    // All there: nothing to ask.
                    let batch: [_; BATCH as usize] = core::array::from_fn(|_| {
                        let item = load(next, true);
                        next = step(next, params.stride);
                        item
                    });
                    let mut u = 0;
                    while u < BATCH as usize {
                        // SAFETY: loaded.
                        let item = unsafe { batch[u].assume_init() };
                        let index = start + i + u as u64;
                        acc = if begun || u > 0 { op.push(acc, item, index) } else { op.lift(item, index) };
                        u += 1;
                    }
                    BATCH
                } else {
                    cold_path();
                    // SAFETY: loaded.
                    let item = unsafe { load(next, true).assume_init() };
                    acc = if begun { op.push(acc, item, start + i) } else { op.lift(item, start + i) };
                    next = step(next, params.stride);
                    1
                };
                begun = opaque(1) != 0;
                i += taken;
            }
            counter.push(op, acc);
        }
        let value = counter.total(op);
        total = if tile_start == first { value } else { op.combine(total, value) };
        tile_start += tile;
    }
    (total, present)
}

/// The value of a column of one chunk, where order does not matter.
///
/// # Safety
///
/// `items` leads to the column's first item; item `i < n`, `i * stride` away, is readable.
#[inline(always)]
unsafe fn column_value<Op: Monoid, const V: usize, const LEVELS: usize>(
    params: &ColumnParams<Op>,
    op: &Op,
    items: *const Op::Item,
) -> Op::Acc {
    let len = params.n;
    let place = |i: u64| items.wrapping_offset((i as i64).wrapping_mul(params.stride) as isize);
    let step = |from: *const Op::Item, items: i64| from.wrapping_offset(items as isize);
    // SAFETY: an item of the column, if wanted.
    let load =
        |from: *const Op::Item, wanted: bool| unsafe { global::load_if::<Plainly, Op::Item>(wanted, from) };
    if Op::ANY_ORDER {
        const BATCH: usize = LANES * ROUNDS / 2;
        let apart = params.stride;
        let mut acc = op.identity();
        let mut i = 0u64;
        let mut next = place(i);
        let mut begun = false;
        while i < len {
            nounroll();
            if i + (BATCH as u64 - 1) < len {
                // All there: nothing to ask.
                let mut from = next;
                let batch: [_; BATCH] = core::array::from_fn(|_| {
                    let item = load(from, true);
                    from = step(from, apart);
                    item
                });
                let mut u = 0;
                while u < BATCH {
                    // SAFETY: loaded.
                    let item = unsafe { batch[u].assume_init() };
                    let index = i + u as u64;
                    acc = if begun || u > 0 { op.push(acc, item, index) } else { op.lift(item, index) };
                    u += 1;
                }
                next = from;
                i += BATCH as u64;
            } else {
                cold_path();
                // SAFETY: loaded.
                let item = unsafe { load(next, true).assume_init() };
                acc = if begun { op.push(acc, item, i) } else { op.lift(item, i) };
                next = step(next, apart);
                i += 1;
            }
            begun = opaque(1) != 0;
        }
        return acc;
    }
    let lanes = params.groups * V as u32;
    // Not known to be all, which would have the assembler put off loads.
    let mine = lanes / params.splits;
    let apart = (lanes as i64).wrapping_mul(params.stride);
    let mut lane = 0;
    let end = ((lanes as u64).min(len) as u32).min(lane + mine);
    let mut counter = Counter::<Op, LEVELS>::new(op);
    while lane < end {
        nounroll();
        let here = (end - lane).min(LANES as u32);
        let mut acc = [op.identity(); LANES];
        let mut round = lane as u64;
        let mut next = place(round);
        let mut begun = false;
        let count = rounds::<Op>();
        while round < len {
            nounroll();
            let last = round + (count as u64 - 1) * lanes as u64 + LANES as u64 - 1;
            if here == LANES as u32 && last < len {
                // All there: nothing to ask.
                let mut batch = [[MaybeUninit::uninit(); LANES]; ROUNDS];
                let mut row = next;
                let mut j = 0;
                while j < count {
                    let mut from = row;
                    let mut b = 0;
                    while b < LANES {
                        batch[j][b] = load(from, true);
                        from = step(from, params.stride);
                        b += 1;
                    }
                    row = step(row, apart);
                    j += 1;
                }
                let mut j = 0;
                while j < count {
                    let mut b = 0;
                    while b < LANES {
                        // SAFETY: loaded.
                        let item = unsafe { batch[j][b].assume_init() };
                        let index = round + j as u64 * lanes as u64 + b as u64;
                        acc[b] =
                            if begun || j > 0 { op.push(acc[b], item, index) } else { op.lift(item, index) };
                        b += 1;
                    }
                    j += 1;
                }
                next = row;
                round += count as u64 * lanes as u64;
            } else {
                cold_path();
                // One round, of the lanes that have an item in it.
                let left = (len - round).min(here as u64) as u32;
                let mut from = next;
                let batch: [_; LANES] = core::array::from_fn(|b| {
                    let item = load(from, (b as u32) < left);
                    from = step(from, params.stride);
                    item
                });
                let mut b = 0;
                while b < LANES {
                    if (b as u32) < left {
                        // SAFETY: loaded under the same condition.
                        let item = unsafe { batch[b].assume_init() };
                        let index = round + b as u64;
                        acc[b] = if begun { op.push(acc[b], item, index) } else { op.lift(item, index) };
                    }
                    b += 1;
                }
                next = step(next, apart);
                round += lanes as u64;
            }
            begun = opaque(1) != 0;
        }
        if here > 1 {
            acc[0] = op.combine(acc[0], acc[1]);
        }
        if here > 3 {
            acc[2] = op.combine(acc[2], acc[3]);
        }
        if here > 2 {
            acc[0] = op.combine(acc[0], acc[2]);
        }
        counter.push(op, acc[0]);
        lane += LANES as u32;
    }
    counter.total(op)
}

/// What one of the threads that share a column has of its chunks' values, and how many of them have something.
///
/// # Safety
///
/// All values are written and visible.
#[inline(always)]
unsafe fn fold_chunks<Op: Monoid>(
    params: &ColumnParams<Op>,
    op: &Op,
    part: u32,
    values: *const Op::Acc,
    there: bool,
) -> (Op::Acc, u32) {
    let parts = params.parts.min(FOLD_LANES);
    let mine = FOLD_LANES / parts;
    // A lane has a run of neighbours.
    let run = params.chunks.div_ceil(FOLD_LANES);
    let lanes = params.chunks.div_ceil(run);
    let mut counter = Counter::<Op, 5>::new(op);
    if there && part < parts {
        let mut lane = part * mine;
        let end = lanes.min(lane + mine);
        while lane < end {
            nounroll();
            let (mut k, last) = (lane * run, params.chunks.min((lane + 1) * run));
            // SAFETY: a chunk's value.
            let value =
                |k: u32| unsafe { global::load_cg(values.wrapping_add((k as u64 * params.inner) as usize)) };
            let mut acc = value(k);
            k += 1;
            while k < last {
                nounroll();
                acc = op.combine(acc, value(k));
                k += 1;
            }
            counter.push(op, acc);
            lane += 1;
        }
    }
    (counter.total(op), if there { lanes.div_ceil(mine) } else { 0 })
}

/// Values that combine pairwise, neighbours first, as they come: after `2^k` of them level `k` holds their tree. Up to
/// `2^LEVELS` values.
pub(super) struct Counter<Op: Monoid, const LEVELS: usize> {
    levels: [Op::Acc; LEVELS],
    top: Op::Acc,
    count: u32,
}

impl<Op: Monoid, const LEVELS: usize> Counter<Op, LEVELS> {
    #[inline(always)]
    pub(super) fn new(op: &Op) -> Self {
        Counter { levels: [op.identity(); LEVELS], top: op.identity(), count: 0 }
    }

    /// Takes the next value, which carries like a bit that is added.
    #[inline(always)]
    pub(super) fn push(&mut self, op: &Op, mut value: Op::Acc) {
        let mut level = 0;
        let mut carries = true;
        while level < LEVELS {
            if carries {
                if self.count >> level & 1 == 0 {
                    self.levels[level] = value;
                    carries = false;
                } else {
                    value = op.combine(self.levels[level], value);
                }
            }
            level += 1;
        }
        if carries {
            self.top = value;
        }
        self.count += 1;
    }

    /// The value of all: later, shorter trees are the right operands.
    #[inline(always)]
    pub(super) fn total(&self, op: &Op) -> Op::Acc {
        let mut total = self.top;
        let mut begun = self.count >> LEVELS != 0;
        if begun {
            // A full counter, and nothing below.
            return total;
        }
        let mut level = 0;
        while level < LEVELS {
            if self.count >> level & 1 != 0 {
                total = if begun { op.combine(self.levels[level], total) } else { self.levels[level] };
                begun = true;
            }
            level += 1;
        }
        total
    }
}

/// Where a thread stands among those of its column.
#[derive(Clone, Copy)]
pub(super) struct Place<A> {
    pub(super) x: u32,
    pub(super) part: u32,
    pub(super) width: u32,
    pub(super) parts: u32,
    pub(super) slots: Shared<A>,
}

impl<A: Plain> Place<A> {
    /// Combines the values of the first `present` threads of each column pairwise, neighbours first; the result is in the
    /// first.
    ///
    /// # Safety
    ///
    /// The whole block calls; the slots are not in use.
    #[inline(always)]
    pub(super) unsafe fn combine<Op: Monoid<Acc = A>>(&self, op: &Op, mut acc: A, present: u32) -> A {
        let Place { x, part, width, parts, slots } = *self;
        let mut distance = 1;
        while distance < parts {
            nounroll();
            if part & (2 * distance - 1) == distance {
                // SAFETY: its own slot, once.
                unsafe { slots.write((part * width + x) as usize, acc) };
            }
            sync_threads();
            if part & (2 * distance - 1) == 0 && part + distance < present {
                // SAFETY: written before the barrier.
                acc = op.combine(acc, unsafe { slots.read(((part + distance) * width + x) as usize) });
            }
            distance *= 2;
        }
        acc
    }
}
