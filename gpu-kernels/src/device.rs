//! Reductions of a whole array.
//!
//! One block folds a short array ([`reduce_one`]). A longer one is cut into chunks, a block each
//! (`reduce_short` and `reduce_long`: [`reduce_chunks`]); the last block to finish folds the chunks' values, in the same launch.

use core::ptr;

use warpfold_monoid::{
    Monoid,
    tree::{FOLD_LANES, MAX_GROUPS, VECTOR_BYTES, VECTORS_A_GROUP},
};
use warpfold_simt::{
    atomic::{self, AcqRel, Gpu},
    global, grid,
    hint::{cold_path, nounroll},
    shared::Shared,
    thread::{block_idx_x, sync_threads, thread_idx_x},
    warp::{FULL, shuffle_idx, sync_warp},
};

use crate::{any_order, block, export, lanes, ordered, warp};

/// Which part of more a launch of `reduce_long` reduces: see [`reduce_chunks`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The index of the launch's first item, as operators are told.
    pub base: u64,
    /// The addresses of its chunks' items, where those do not lie side by side at `input`; else null.
    pub table: *const u64,
    /// The number of its first chunk.
    pub first: u32,
    /// What becomes of the value of all chunks: [`FINISH`], [`KEEP`] or [`ADD`].
    pub end: u32,
}

impl Part {
    /// All there is.
    pub const WHOLE: Part = Part { base: 0, table: ptr::null(), first: 0, end: FINISH };
}

/// The value is finished, and the result goes to `output`.
pub const FINISH: u32 = 0;

/// The value goes to `output`, where there is room for an accumulator, as it is.
pub const KEEP: u32 = 1;

/// The value at `output`, an accumulator, takes it in, on its right.
pub const ADD: u32 = 2;

/// The parameters of both kernels. The host fills it from a plan, the kernel receives it by value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ReduceParams<Op: Monoid> {
    /// The array; aligned to the item.
    pub input: *const Op::Item,
    /// Items in it.
    pub n: u64,
    /// Where the result goes.
    pub output: *mut Op::Output,
    /// One value a chunk; unused by one block.
    pub partials: *mut Op::Acc,
    /// How many blocks have finished: 0 before and after every launch; unused by one block.
    pub ticket: *mut u32,
    /// Items in a chunk: [`Shape::chunk`](warpfold_monoid::tree::Shape::chunk).
    pub chunk: u64,
    /// Chunks, the grid's size.
    pub chunks: u32,
    /// Threads that share a chunk: [`Shape::groups`](warpfold_monoid::tree::Shape::groups).
    pub groups: u32,
    /// Which part of more this is; only `reduce_long` reads it.
    pub part: Part,
    /// The operator.
    pub op: Op,
}

/// Vectors that a thread has in flight.
pub const VECTORS_IN_FLIGHT: usize = VECTORS_A_GROUP as usize;

/// The same in long reductions, where small accumulators leave registers for it.
const LONG_BATCH: usize = 2 * VECTORS_IN_FLIGHT;

/// The same where accumulators leave few registers.
const FEW: usize = VECTORS_IN_FLIGHT / 2;

/// The same of narrow items that a source reads one by one.
const MANY: usize = 4 * VECTORS_IN_FLIGHT;

/// Reduces an array of at most one chunk in one block of `max(groups, 32)` threads.
///
/// # Safety
///
/// `input` has `n` readable items and `output` is writable; `groups` is that of the array's
/// [`Shape`](warpfold_monoid::tree::Shape).
#[inline(always)]
pub unsafe fn reduce_one<Op: Monoid, const V: usize, const U: usize>(
    params: &ReduceParams<Op>,
    shared: Shared<Op::Acc>,
) {
    grid::let_next_start();
    grid::wait_for_previous();
    let thread = thread_idx_x();
    let whole = ReduceParams { part: Part::WHOLE, ..*params };
    // SAFETY: the caller's promise.
    let acc = unsafe { chunk_value::<Op, V, U>(&whole, 0, params.n, params.groups, false, shared) };
    if thread == 0 {
        let output = if params.n == 0 { params.op.finish_empty() } else { params.op.finish(acc) };
        // SAFETY: the caller's promise.
        unsafe { global::store(params.output, output) };
    }
}

/// Reduces an array of several chunks, one block of `groups` threads a chunk.
///
/// `groups` is the array's [`Shape::groups`](warpfold_monoid::tree::Shape::groups). Kernels give it as a constant, because
/// short reductions are bound by the instructions that they fetch.
///
/// With [`MAX_GROUPS`], a launch may be one of several that together reduce `chunks` chunks, in any order and at once:
/// `input`, `n` and the grid are then those of its own [part](Part), and whichever block is the last of all folds all the
/// chunks' values.
///
/// # Safety
///
/// As for [`reduce_one`]; `partials` has room for `chunks` values, which with `ticket` (0 at the start) belong to
/// this launch alone, or to those that reduce parts of the same. What [`Part`] points to is readable, and where the value
/// is to be added, a value is at `output`.
#[inline(always)]
pub unsafe fn reduce_chunks<Op: Monoid, const V: usize, const U: usize>(
    params: &ReduceParams<Op>,
    groups: u32,
    shared: Shared<Op::Acc>,
) {
    // Blocks of the next grid that start early wait in what room this one leaves. Where they run long, that would crowd
    // them together on some multiprocessors: they start when this grid is all but done.
    let early = groups < MAX_GROUPS;
    if early {
        grid::let_next_start();
    }
    grid::wait_for_previous();
    let chunk = block_idx_x();
    let start = chunk as u64 * params.chunk;
    let len = params.chunk.min(params.n - start);
    let acc = if early {
        let whole = ReduceParams { part: Part::WHOLE, ..*params };
        // SAFETY: the caller's promise.
        unsafe { chunk_value::<Op, V, U>(&whole, start, len, groups, false, shared) }
    } else {
        let Part { base, table, .. } = params.part;
        let input = if table.is_null() {
            params.input.wrapping_add(start as usize)
        } else {
            // SAFETY: the caller's promise.
            let address = unsafe { global::load(table.wrapping_add(chunk as usize)) };
            ptr::with_exposed_provenance(address as usize)
        };
        let part = Part { base: base + start, ..Part::WHOLE };
        let array = ReduceParams { input, n: len, part, ..*params };
        // SAFETY: the caller's promise.
        let acc = unsafe { chunk_value::<Op, V, U>(&array, 0, len, groups, true, shared) };
        grid::let_next_start();
        acc
    };
    let chunk = if early { chunk } else { params.part.first + chunk };
    // SAFETY: the caller's promise; the value of a chunk that is this block's alone.
    unsafe { meet(params, acc, chunk, early) };
}

/// Reduces an array of one chunk, or of several that are short: [`reduce_one`] and [`reduce_chunks`] in one kernel, for who would
/// rather compile and carry two thirds. Blocks of `max(groups, 32)` threads, one a chunk.
///
/// # Safety
///
/// As for [`reduce_one`] where there is one chunk, else as for [`reduce_chunks`]; the groups are fewer than [`MAX_GROUPS`] where
/// there are several.
#[inline(always)]
pub unsafe fn reduce_few<Op: Monoid, const V: usize, const U: usize>(
    params: &ReduceParams<Op>,
    shared: Shared<Op::Acc>,
) {
    grid::let_next_start();
    grid::wait_for_previous();
    let chunk = block_idx_x();
    let start = chunk as u64 * params.chunk;
    let len = params.chunk.min(params.n - start);
    let whole = ReduceParams { part: Part::WHOLE, ..*params };
    // SAFETY: the caller's promise.
    let acc = unsafe { chunk_value::<Op, V, U>(&whole, start, len, params.groups, false, shared) };
    if params.chunks > 1 {
        // SAFETY: the caller's promise; the value of a chunk that is this block's alone.
        unsafe { meet(params, acc, chunk, true) };
    } else if thread_idx_x() == 0 {
        let output = if params.n == 0 { params.op.finish_empty() } else { params.op.finish(acc) };
        // SAFETY: the caller's promise.
        unsafe { global::store(params.output, output) };
    }
}

/// The last of the blocks that come here folds all chunks' values, and ends as its launch asks for; `early` ones always finish.
///
/// # Safety
///
/// As for [`reduce_chunks`]. The whole block is here, with its chunk's value in thread 0, and every chunk has a block.
#[inline(always)]
unsafe fn meet<Op: Monoid>(params: &ReduceParams<Op>, acc: Op::Acc, chunk: u32, early: bool) {
    let thread = thread_idx_x();
    if thread >= 32 {
        return;
    }
    let mut finished = 0;
    if thread == 0 {
        // SAFETY: one block, one partial.
        unsafe { global::store(params.partials.wrapping_add(chunk as usize), acc) };
        // Release: the partial is visible before the ticket is. Acquire: whoever takes the last ticket sees all.
        // SAFETY: the caller's promise.
        finished = unsafe { atomic::fetch_add(params.ticket, 1, AcqRel, Gpu) };
    }
    // SAFETY: the whole first warp is here.
    if unsafe { shuffle_idx(FULL, finished, 0) } != params.chunks - 1 {
        return;
    }
    // What thread 0 acquired, its warp may read from here on.
    // SAFETY: the whole first warp is here.
    unsafe { sync_warp(FULL) };
    // SAFETY: `chunks` values, all written.
    let acc = unsafe { fold_partials(&params.op, params.partials, params.chunks, thread) };
    if thread == 0 {
        // SAFETY: the caller's promise.
        unsafe {
            if early || params.part.end == FINISH {
                global::store(params.output, params.op.finish(acc));
            } else {
                let kept = params.output.cast::<Op::Acc>();
                let add = params.part.end == ADD;
                global::store(kept, if add { params.op.combine(global::load_cg(kept), acc) } else { acc });
            }
            global::store(params.ticket, 0);
        }
    }
}

/// [`reduce_chunks`] for the simulator, where one copy serves blocks of every size.
///
/// # Safety
///
/// As there.
#[cfg(not(target_arch = "nvptx64"))]
pub unsafe fn simulate_chunks<Op: Monoid, const V: usize, const U: usize>(
    params: &ReduceParams<Op>,
    shared: Shared<Op::Acc>,
) {
    // SAFETY: the caller's promise.
    unsafe { reduce_chunks::<Op, V, U>(params, params.groups, shared) };
}

/// Folds the chunks' values in one warp, the result in its first lane.
///
/// # Safety
///
/// The whole warp calls; `count` (at least 1) values are readable, and every write of them is visible to it.
#[inline(always)]
pub(crate) unsafe fn fold_partials<Op: Monoid>(
    op: &Op,
    partials: *const Op::Acc,
    count: u32,
    lane: u32,
) -> Op::Acc {
    // As many at once as a thread has registers for.
    // SAFETY: the caller's promise.
    unsafe {
        match size_of::<Op::Acc>() {
            ..=16 => fold_partials_by::<Op, 8>(op, partials, count, lane),
            _ => fold_partials_by::<Op, 2>(op, partials, count, lane),
        }
    }
}

/// The same with so many loads in flight.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn fold_partials_by<Op: Monoid, const BATCH: usize>(
    op: &Op,
    partials: *const Op::Acc,
    count: u32,
    lane: u32,
) -> Op::Acc {
    // A lane takes the values `first`, `first + step`, ... before `end`.
    let (first, step, end, present) = if Op::COMMUTATIVE {
        (lane, FOLD_LANES, count, count.min(FOLD_LANES))
    } else {
        let run = count.div_ceil(FOLD_LANES);
        (lane * run, 1, count.min((lane + 1) * run), count.div_ceil(run))
    };
    let mut acc = op.identity();
    let mut next = first;
    while next < end {
        nounroll();
        // The last value stands in for those that are not there, so that no load waits for a branch.
        // SAFETY: clamped to what is there.
        let batch: [Op::Acc; BATCH] = core::array::from_fn(|u| unsafe {
            global::load_cg(partials.wrapping_add((next + u as u32 * step).min(end - 1) as usize))
        });
        let mut u = 0;
        while u < BATCH {
            let position = next + u as u32 * step;
            if position == first {
                acc = batch[0];
            } else if position < end {
                acc = op.combine(acc, batch[u]);
            }
            u += 1;
        }
        next += BATCH as u32 * step;
    }
    // SAFETY: the whole warp is here.
    unsafe { warp::reduce_width(op, acc, lane, FOLD_LANES, Some(present)) }
}

/// The value of items `start .. start + len`, in thread 0. A `long` one is worth more code.
///
/// # Safety
///
/// They are readable, and the whole block calls.
#[inline(always)]
pub(crate) unsafe fn chunk_value<Op: Monoid, const V: usize, const U: usize>(
    params: &ReduceParams<Op>,
    start: u64,
    len: u64,
    groups: u32,
    long: bool,
    shared: Shared<Op::Acc>,
) -> Op::Acc {
    if Op::ANY_ORDER {
        // SAFETY: the caller's promise.
        return unsafe { chunk_value_in_any_order::<Op, V, U>(params, start, len, groups, long, shared) };
    }
    if !Op::COMMUTATIVE {
        // SAFETY: the caller's promise.
        return unsafe { chunk_value_in_order::<Op, V, U>(params, start, len, groups, shared) };
    }
    let (op, thread) = (&params.op, thread_idx_x());
    let items = params.input.wrapping_add(start as usize);
    let start = params.part.base + start;
    // Worth code of its own where that is little, few lanes of small accumulators, or where there is much to do.
    let small = V <= 4 && size_of::<Op::Acc>() <= 8;
    if (small || long) && groups >= 32 && is_vector_aligned::<Op::Item, V>(items) {
        let positions = size_of::<Op::Item>() == 0;
        let rows = len >> (V as u64 * groups as u64).trailing_zeros();
        // SAFETY: the caller's promise, and all that the other functions ask for.
        let acc = unsafe {
            if positions && long && Op::AT_ONCE >= 8 && V == 1 {
                // Narrow items of a source: a thread reads two neighbours at once, for there is no room for as many loads in
                // flight as would take to get at memory's speed by one.
                begin::<Op, 2, MANY>(op, items, start, len, rows, thread, groups / 2, long)
            } else if long
                && (V * Op::LANE_BYTES > 96 || (positions && Op::AT_ONCE == 1 && size_of::<Op::Acc>() > 16))
            {
                // Wide lanes, or wide items of a source, leave registers for few.
                begin::<Op, V, FEW>(op, items, start, len, rows, thread, groups, long)
            } else if small && long && U == VECTORS_IN_FLIGHT && rows >= LONG_BATCH as u64 {
                begin::<Op, V, LONG_BATCH>(op, items, start, len, rows, thread, groups, long)
            } else {
                begin::<Op, V, U>(op, items, start, len, rows, thread, groups, long)
            }
        };
        if let Some((acc, holders)) = acc {
            // Threads that hold nothing must not combine that.
            let present = if holders < groups { Some(holders) } else { None };
            // SAFETY: the whole block is here: alignment and length are the same for all its threads.
            return unsafe { block::reduce_width(op, acc, thread, holders, present, shared) };
        }
    }
    if small || long {
        cold_path();
    }
    let lanes = if thread < groups {
        // SAFETY: the caller's promise.
        unsafe {
            // This way lanes share nothing.
            if long && size_of::<Op::Item>() == 0 && size_of::<Op::Acc>() > 16 {
                lanes::fold::<Op, V, 1>(op, items, start, len, thread, groups)
            } else if long && V * size_of::<Op::Acc>() > 64 && export::holds_two::<Op>() {
                lanes::fold::<Op, V, FEW>(op, items, start, len, thread, groups)
            } else {
                lanes::fold::<Op, V, U>(op, items, start, len, thread, groups)
            }
        }
    } else {
        lanes::Lanes { acc: [op.identity(); V], head: 0 }
    };
    let acc = if groups > 32 {
        // SAFETY: the whole block is here, and all its threads fold the same items.
        unsafe { lanes::unshift_block(lanes, thread, groups, shared) }
    } else {
        // SAFETY: the whole block, one warp, is here.
        unsafe { lanes::unshift_warp(lanes, thread & (groups - 1), groups) }
    };
    let present = len.min(groups as u64 * V as u64) as u32;
    let acc = lanes::combine_slots(op, acc, thread, Some(present));
    // SAFETY: the whole block is here.
    unsafe { block::reduce_width(op, acc, thread, groups, Some(present.div_ceil(V as u32)), shared) }
}

/// A thread's value of items that fill all lanes at least `U` times, aligned to a vector, and how many threads have one; of
/// others none, nor, unless `long`, of those that are not whole batches.
///
/// # Safety
///
/// As for [`lanes::fold_whole`]; the lanes have `rows` rows of the items.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn begin<Op: Monoid, const V: usize, const U: usize>(
    op: &Op,
    items: *const Op::Item,
    start: u64,
    len: u64,
    rows: u64,
    thread: u32,
    groups: u32,
    long: bool,
) -> Option<(Op::Acc, u32)> {
    let batches = rows / U as u64;
    let done = (batches * U as u64) << (V as u64 * groups as u64).trailing_zeros();
    if batches == 0 || !(long || done == len) {
        return None;
    }
    if thread >= groups {
        return Some((op.identity(), groups));
    }
    // SAFETY: the caller's promise.
    let mut lanes =
        unsafe { lanes::fold_whole::<Op, V, U>(op, items, start, batches as u32, thread, groups) };
    if long && done < len {
        cold_path();
        let items = items.wrapping_add(done as usize);
        // SAFETY: the caller's promise.
        lanes =
            unsafe { lanes::fold_rest::<Op, V>(op, lanes, items, start + done, len - done, thread, groups) };
    }
    Some((lanes::combine_slots(op, lanes, thread, None), groups))
}

/// The same where the order does not matter.
///
/// # Safety
///
/// As for [`chunk_value`].
#[inline(always)]
unsafe fn chunk_value_in_any_order<Op: Monoid, const V: usize, const U: usize>(
    params: &ReduceParams<Op>,
    start: u64,
    len: u64,
    groups: u32,
    long: bool,
    shared: Shared<Op::Acc>,
) -> Op::Acc {
    let (op, thread, threads) = (&params.op, thread_idx_x(), groups.max(32));
    let items = params.input.wrapping_add(start as usize);
    let start = params.part.base + start;
    // Positions bring a vector of each of several arrays.
    let size = size_of::<Op::Item>();
    let twice = long && U == VECTORS_IN_FLIGHT && size > 0 && size <= VECTOR_BYTES;
    // SAFETY: the caller's promise; the block has `threads` threads.
    unsafe {
        let share = if twice {
            any_order::fold::<Op, V, LONG_BATCH>(op, items, start, len, thread, threads)
        } else {
            any_order::fold::<Op, V, U>(op, items, start, len, thread, threads)
        };
        any_order::reduce(op, share, thread, threads, shared)
    }
}

/// The same with every operand in its place: each warp folds a part of the chunk.
///
/// # Safety
///
/// As for [`chunk_value`].
#[inline(always)]
unsafe fn chunk_value_in_order<Op: Monoid, const V: usize, const U: usize>(
    params: &ReduceParams<Op>,
    start: u64,
    len: u64,
    groups: u32,
    shared: Shared<Op::Acc>,
) -> Op::Acc {
    let (op, thread) = (&params.op, thread_idx_x());
    let (warp_index, lane) = (thread / 32, thread % 32);
    let part = if params.chunks <= 1 { 32 * (U * V) as u64 } else { params.chunk / (groups / 32) as u64 };
    let first = warp_index as u64 * part;
    let mut acc = op.identity();
    if first < len {
        // SAFETY: the caller's promise; the same for the whole warp.
        acc = unsafe {
            let (start, len) = (start + first, part.min(len - first));
            ordered::fold::<Op, V, U>(op, params.input, params.n, start, params.part.base, len, lane)
        };
    }
    if groups <= 32 {
        return acc;
    }
    if lane == 0 && first < len {
        // SAFETY: one warp, one slot, not used before.
        unsafe { shared.write(warp_index as usize, acc) };
    }
    sync_threads();
    if warp_index != 0 {
        return acc;
    }
    let parts = len.div_ceil(part) as u32;
    // SAFETY: written before the barrier, by the warps that have a part.
    let acc = unsafe { shared.read(lane.min(parts - 1) as usize) };
    // SAFETY: the whole first warp is here.
    unsafe { warp::reduce_width(op, acc, lane, groups / 32, Some(parts)) }
}

/// Can a vector of `V` items be loaded from here in one piece?
#[inline(always)]
fn is_vector_aligned<T, const V: usize>(items: *const T) -> bool {
    !global::is_vector::<T, V>() || (items as usize).is_multiple_of(size_of::<[T; V]>())
}
