//! Few columns: `[outer][n][inner]` without gaps, `inner` from 2 to 4, reduced along `n`.
//!
//! Neighbouring threads that read neighbouring columns would read too few bytes at once. Here a group of threads reads all
//! columns as the one array that they are, and each thread keeps its lanes of every column apart: what is a vector of
//! lanes in [`rows`](super::rows) is as many vectors as there are columns, which lie one behind the other.

use core::mem::MaybeUninit;

use warpfold_monoid::{
    Monoid, Plain,
    tree::{MAX_GROUPS, VECTOR_BYTES},
};
use warpfold_simt::{
    atomic::{self, AcqRel, Gpu},
    global::{self, hint::Plainly},
    grid,
    hint::{cold_path, nounroll, opaque},
    shared::Shared,
    thread::{block_idx_x, sync_threads, thread_idx_x},
    warp::{FULL, shuffle_idx, sync_warp},
};

use super::{THREADS, columns::ColumnParams, let_next_start, operator};
use crate::{block, device, export, lanes, warp};

/// The most columns.
pub const MAX_INNER: usize = 4;

/// Is there a kernel for so many columns?
pub const fn is_narrow(inner: u64) -> bool {
    matches!(inner, 2..=4)
}

/// Bytes of accumulators that a thread holds at most.
pub const MAX_HELD: usize = 160;

/// Slots in shared memory, one a warp for each column that a thread can hold.
pub const fn slots<Op: Monoid>() -> usize {
    let size = size_of::<Op::Acc>();
    let columns = if size == 0 || MAX_HELD / size > MAX_INNER {
        MAX_INNER
    } else if size > MAX_HELD {
        1
    } else {
        MAX_HELD / size
    };
    columns * block::SHARED
}

/// The launch bounds: two of the largest blocks to a multiprocessor, if accumulators are small.
pub const fn bounds<Op: Monoid>() -> u32 {
    if size_of::<Op::Acc>() <= 8 {
        export::resident::<Op>(MAX_GROUPS, 2)
    } else {
        export::bounds::<Op>(MAX_GROUPS)
    }
}

/// The most items in a vector: a thread's items of all columns stay in registers.
pub const MAX_VECTOR: usize = 8;

/// How many accumulators a thread holds for each column.
const fn held<Op: Monoid>(vector: usize) -> usize {
    if Op::ANY_ORDER { 1 } else { vector }
}

/// The parameters' columns, as many as they say.
///
/// # Safety
///
/// As for [`columns`](super::columns::columns) but for blocks and partials: blocks of [`THREADS`] where `groups` are at
/// most 32, `outer.div_ceil(THREADS / groups)` of them, else of `groups`, `outer * chunks` of them; `partials` are
/// `[outer][inner][chunks]`, and there is a ticket for each of `outer`. The columns have no gaps, the operator commutes,
/// `inner` is one that [`is_narrow`] knows, `V` at most [`MAX_VECTOR`], and a thread's accumulators take no more than
/// [`MAX_HELD`] bytes. `shared` has [`slots`].
#[inline(always)]
pub unsafe fn narrow<Op: Monoid, const V: usize>(params: &ColumnParams<Op>, shared: Shared<Op::Acc>) {
    grid::wait_for_previous();
    // SAFETY: the caller's promise.
    unsafe {
        match params.inner {
            2 => of::<Op, V, 2>(params, shared),
            3 => of::<Op, V, 3>(params, shared),
            _ => of::<Op, V, 4>(params, shared),
        }
    }
    let_next_start();
}

/// The same, of a number of columns that is known.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn of<Op: Monoid, const V: usize, const INNER: usize>(
    params: &ColumnParams<Op>,
    shared: Shared<Op::Acc>,
) {
    if held::<Op>(V) * INNER * size_of::<Op::Acc>() > MAX_HELD || V > MAX_VECTOR || !Op::COMMUTATIVE {
        return;
    }
    let (thread, groups) = (thread_idx_x(), params.groups);
    let several = groups <= 32;
    let (outer, k, there) = if several {
        let outer = block_idx_x() as u64 * (THREADS / groups) as u64 + (thread / groups) as u64;
        (outer, 0, outer < params.outer)
    } else {
        ((block_idx_x() / params.chunks) as u64, block_idx_x() % params.chunks, true)
    };
    let group = thread & (groups - 1);
    let start = k as u64 * params.chunk;
    let len = params.chunk.min(params.n - start);
    let first = (outer * params.n + start) * INNER as u64;
    let of_column = |c: usize| operator(&params.op, outer * INNER as u64 + c as u64, there);
    let ops: [Op; INNER] = core::array::from_fn(of_column);
    let mut acc = [[params.op.identity(); V]; INNER];
    if there {
        let items = params.input.wrapping_add(first as usize);
        // SAFETY: the chunk's items.
        acc = unsafe { fold::<Op, V, INNER>(&ops, items, start, len, group, groups) };
    }
    // How many lanes, and so groups, there are.
    let (lanes_there, present) = if Op::ANY_ORDER {
        (None, len.div_ceil(V as u64).min(groups as u64) as u32)
    } else {
        let lanes = len.min(groups as u64 * V as u64) as u32;
        (Some(lanes), lanes.div_ceil(V as u32))
    };
    let output = params.output.wrapping_add((outer * INNER as u64) as usize);
    let partials = params.partials.wrapping_add((outer * INNER as u64 * params.chunks as u64) as usize);
    let values_of = |c: usize| partials.wrapping_add(c * params.chunks as usize);
    // A warp's value of each column; that of all lanes, where a warp holds them.
    let (warp, lane, warps) = (thread / 32, thread % 32, groups / 32);
    let here = if several { present } else { present.saturating_sub(warp * 32) };
    let mut values = [params.op.identity(); INNER];
    let mut c = 0;
    while c < INNER {
        let acc =
            if Op::ANY_ORDER { acc[c][0] } else { lanes::combine_slots(&ops[c], acc[c], group, lanes_there) };
        // SAFETY: the whole warp.
        values[c] = unsafe { warp::reduce_width(&ops[c], acc, lane, groups.min(32), Some(here)) };
        c += 1;
    }
    if several {
        if group == 0 && there {
            let mut c = 0;
            while c < INNER {
                // SAFETY: one thread a column.
                unsafe { global::store(output.wrapping_add(c), ops[c].finish(values[c])) };
                c += 1;
            }
        }
        return;
    }
    if lane == 0 {
        let mut c = 0;
        while c < INNER {
            // SAFETY: one warp, one slot of each column.
            unsafe { shared.write(c * block::SHARED + warp as usize, values[c]) };
            c += 1;
        }
    }
    sync_threads();
    // A column to each warp.
    let mut c = warp as usize;
    while c < INNER {
        nounroll();
        let op = &of_column(c);
        // SAFETY: written before the barrier by warps that exist.
        let acc = unsafe { shared.read(c * block::SHARED + (lane & (warps - 1)) as usize) };
        let here = if lane < warps { present.div_ceil(32) } else { 0 };
        // SAFETY: the whole warp.
        let acc = unsafe { warp::reduce_width(op, acc, lane, warps, Some(here)) };
        if lane == 0 {
            // SAFETY: one thread a column, or its chunk.
            unsafe {
                if params.chunks == 1 {
                    global::store(output.wrapping_add(c), op.finish(acc));
                } else {
                    global::store(values_of(c).wrapping_add(k as usize), acc);
                }
            }
        }
        c += warps as usize;
    }
    if params.chunks == 1 {
        return;
    }
    // As in `rows`: the partials are visible before the ticket is.
    sync_threads();
    if thread >= 32 {
        return;
    }
    let mut finished = 0;
    let ticket = params.tickets.wrapping_add(outer as usize);
    if thread == 0 {
        // SAFETY: a ticket of this launch.
        finished = unsafe { atomic::fetch_add(ticket, 1, AcqRel, Gpu) };
    }
    // SAFETY: the whole first warp is here.
    if unsafe { shuffle_idx(FULL, finished, 0) } + 1 != params.chunks {
        return;
    }
    // SAFETY: the whole first warp is here.
    unsafe { sync_warp(FULL) };
    let mut c = 0;
    while c < INNER {
        nounroll();
        let op = &of_column(c);
        // SAFETY: all chunks' values are written.
        let acc = unsafe { device::fold_partials(op, values_of(c), params.chunks, thread) };
        if thread == 0 {
            // SAFETY: one thread a column.
            unsafe { global::store(output.wrapping_add(c), op.finish(acc)) };
        }
        c += 1;
    }
    if thread == 0 {
        // SAFETY: the last to use it.
        unsafe { global::store(ticket, 0) };
    }
}

/// A thread's lanes of every column; of any order, a value for each in slot 0.
///
/// # Safety
///
/// `items` leads to `len * INNER` readable ones, the first of which has index `start` in its column.
#[inline(always)]
unsafe fn fold<Op: Monoid, const V: usize, const INNER: usize>(
    ops: &[Op; INNER],
    items: *const Op::Item,
    start: u64,
    len: u64,
    group: u32,
    groups: u32,
) -> [[Op::Acc; V]; INNER] {
    // 16384 arrays of two columns of 2048 `f64` would take 218 us in place of 163; sums of `f16` have eight accumulators a column.
    if const { size_of::<Op::Acc>() > 8 && size_of::<Op::Item>() > 4 || V > 4 && !Op::ANY_ORDER } {
        // SAFETY: the caller's promise.
        return unsafe { fold_large(ops, items, start, len, group, groups) };
    }
    let mut acc = [[ops[0].identity(); V]; INNER];
    let aligned = !global::is_vector::<Op::Item, V>() || items.addr().is_multiple_of(VECTOR_BYTES);
    let first = group as u64 * V as u64;
    let step = groups as u64 * V as u64;
    // Whole rows that are read by vectors.
    let whole = if aligned && first + V as u64 <= len {
        ((len - V as u64 - first) >> step.trailing_zeros()) as u32 + 1
    } else {
        0
    };
    let apart = step as usize * INNER;
    let mut from = items.wrapping_add(first as usize * INNER);
    // Two rows of two columns, else one: as many bytes, all the time.
    let ahead = const { if INNER == 2 { 2 } else { 1 } };
    let mut batch: [Row<Op::Item, V, INNER>; 2] = core::array::from_fn(|j| {
        let wanted = j < ahead && (j as u32) < whole;
        // SAFETY: a row of the chunk, if it is whole.
        core::array::from_fn(|v| unsafe { ask(from.wrapping_add(j * apart), v, wanted) })
    });
    let mut taken = 0;
    let mut begun = false;
    while taken < whole {
        nounroll();
        let mut j = 0;
        while j < ahead {
            if j == 0 || taken + (j as u32) < whole {
                let index = start + first + (taken + j as u32) as u64 * step;
                let next = from.wrapping_add((ahead + j) * apart);
                let wanted = taken + ((ahead + j) as u32) < whole;
                let mut v = 0;
                while v < INNER {
                    // SAFETY: asked for.
                    let items = unsafe { batch[j][v].assume_init() };
                    let mut i = 0;
                    while i < V {
                        // Item `slot * INNER + c` of a row is slot `slot` of column `c`.
                        let (slot, c) = ((v * V + i) / INNER, (v * V + i) % INNER);
                        let index = index + slot as u64;
                        let to = if Op::ANY_ORDER { 0 } else { slot };
                        acc[c][to] = if begun || j > 0 || (Op::ANY_ORDER && slot > 0) {
                            ops[c].push(acc[c][to], items[i], index)
                        } else {
                            ops[c].lift(items[i], index)
                        };
                        i += 1;
                    }
                    // In its place, as soon as there is room.
                    // SAFETY: a row of the chunk, if it is whole.
                    batch[j][v] = unsafe { ask(next, v, wanted) };
                    v += 1;
                }
            }
            j += 1;
        }
        // Not known to be true, or else the first rows would get a body of their own.
        begun = opaque(1) != 0;
        from = from.wrapping_add(ahead * apart);
        taken += ahead as u32;
    }
    // What is no vectors.
    let mut row = first + whole as u64 * step;
    while row < len {
        nounroll();
        cold_path();
        let from = items.wrapping_add((row * INNER as u64) as usize);
        let there = (len - row).min(V as u64) as u32;
        let batch: [[MaybeUninit<Op::Item>; INNER]; V] = core::array::from_fn(|slot| {
            core::array::from_fn(|c| {
                // SAFETY: an item of the chunk.
                unsafe {
                    global::load_if::<Plainly, Op::Item>(
                        (slot as u32) < there,
                        from.wrapping_add(slot * INNER + c),
                    )
                }
            })
        });
        let mut slot = 0;
        while slot < V {
            if (slot as u32) < there {
                let index = start + row + slot as u64;
                let mut c = 0;
                while c < INNER {
                    // SAFETY: loaded under the same condition.
                    let item = unsafe { batch[slot][c].assume_init() };
                    let to = if Op::ANY_ORDER { 0 } else { slot };
                    acc[c][to] = if row != first || (Op::ANY_ORDER && slot > 0) {
                        ops[c].push(acc[c][to], item, index)
                    } else {
                        ops[c].lift(item, index)
                    };
                    c += 1;
                }
            }
            slot += 1;
        }
        row += step;
    }
    acc
}

/// A thread's lanes of all columns in one row: as many vectors as there are columns.
type Row<T, const V: usize, const INNER: usize> = [MaybeUninit<[T; V]>; INNER];

/// Asks for a vector of a row, if it is `wanted`. The load stands behind a predicate, or else the assembler would use one row before it
/// asks for the next.
///
/// # Safety
///
/// It may be read then, and is aligned.
#[inline(always)]
unsafe fn ask<T: Plain, const V: usize>(row: *const T, v: usize, wanted: bool) -> MaybeUninit<[T; V]> {
    // SAFETY: the caller's promise.
    unsafe { global::load_neighbours_if::<Plainly, T, V>(wanted, row.wrapping_add(v * V)) }
}

/// The same where the next rows would take registers that accumulators need.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn fold_large<Op: Monoid, const V: usize, const INNER: usize>(
    ops: &[Op; INNER],
    items: *const Op::Item,
    start: u64,
    len: u64,
    group: u32,
    groups: u32,
) -> [[Op::Acc; V]; INNER] {
    let mut acc = [[ops[0].identity(); V]; INNER];
    let aligned = !global::is_vector::<Op::Item, V>() || items.addr().is_multiple_of(VECTOR_BYTES);
    let mut row = group as u64 * V as u64;
    let step = groups as u64 * V as u64;
    let first = row;
    // Two rows at once, where accumulators leave registers for them: of more columns, sums and maxima would spill some.
    let two = const { INNER == 2 && held::<Op>(V) * INNER * size_of::<Op::Acc>() <= 64 };
    while two && aligned && row + step + V as u64 <= len {
        nounroll();
        let batch: [[[Op::Item; V]; INNER]; 2] = core::array::from_fn(|j| {
            let from = items.wrapping_add(((row + j as u64 * step) * INNER as u64) as usize);
            // SAFETY: as many vectors as there are columns.
            core::array::from_fn(|v| unsafe { global::load_neighbours(from.wrapping_add(v * V)) })
        });
        let mut j = 0;
        while j < 2 {
            let mut slot = 0;
            while slot < V {
                let index = start + row + j as u64 * step + slot as u64;
                let mut c = 0;
                while c < INNER {
                    let at = slot * INNER + c;
                    let item = batch[j][at / V][at % V];
                    let to = if Op::ANY_ORDER { 0 } else { slot };
                    let begun = row != first || j > 0 || (Op::ANY_ORDER && slot > 0);
                    acc[c][to] =
                        if begun { ops[c].push(acc[c][to], item, index) } else { ops[c].lift(item, index) };
                    c += 1;
                }
                slot += 1;
            }
            j += 1;
        }
        row += 2 * step;
    }
    while row < len {
        nounroll();
        let from = items.wrapping_add((row * INNER as u64) as usize);
        let whole = row + V as u64 <= len;
        // Item `slot * INNER + c` of these is slot `slot` of column `c`.
        if whole {
            let batch: [[Op::Item; V]; INNER] = if aligned {
                // SAFETY: as many vectors as there are columns.
                core::array::from_fn(|v| unsafe { global::load_neighbours(from.wrapping_add(v * V)) })
            } else {
                cold_path();
                core::array::from_fn(|v| {
                    // SAFETY: items of the chunk.
                    core::array::from_fn(|i| unsafe { global::load(from.wrapping_add(v * V + i)) })
                })
            };
            let mut slot = 0;
            while slot < V {
                let index = start + row + slot as u64;
                let mut c = 0;
                while c < INNER {
                    let at = slot * INNER + c;
                    let item = batch[at / V][at % V];
                    let to = if Op::ANY_ORDER { 0 } else { slot };
                    let begun = row != first || (Op::ANY_ORDER && slot > 0);
                    acc[c][to] =
                        if begun { ops[c].push(acc[c][to], item, index) } else { ops[c].lift(item, index) };
                    c += 1;
                }
                slot += 1;
            }
        } else {
            cold_path();
            let mut slot = 0;
            while slot < V {
                let index = start + row + slot as u64;
                if row + (slot as u64) < len {
                    let mut c = 0;
                    while c < INNER {
                        // SAFETY: an item of the chunk.
                        let item = unsafe { global::load(from.wrapping_add(slot * INNER + c)) };
                        let to = if Op::ANY_ORDER { 0 } else { slot };
                        let begun = row != first || (Op::ANY_ORDER && slot > 0);
                        acc[c][to] = if begun {
                            ops[c].push(acc[c][to], item, index)
                        } else {
                            ops[c].lift(item, index)
                        };
                        c += 1;
                    }
                }
                slot += 1;
            }
        }
        row += step;
    }
    acc
}
