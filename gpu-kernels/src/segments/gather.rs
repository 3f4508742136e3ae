//! Segments of an array of any axes: some are kept, some reduced, at whatever distances their items lie.
//!
//! Each item's place is computed from its number. Where the axes make [`rows`] or
//! [`columns`](super::columns), those are faster; this serves all else: several axes with gaps between, reversed and
//! broadcast ones.

use warpfold_monoid::{
    Monoid, Plain,
    tree::{FOLD_LANES, VECTORS_A_GROUP},
};
use warpfold_simt::{
    global::{self, hint::Plainly},
    grid,
    hint::nounroll,
    shared::Shared,
    thread::{block_idx_x, grid_dim_x, sync_threads, thread_idx_x},
};

use super::{THREADS, let_next_start, operator, rows};
use crate::{
    block,
    device::{Part, ReduceParams},
    lanes, warp,
};

/// The most axes, of those kept and of those reduced.
pub const MAX_AXES: usize = 6;

/// So many items, so far apart.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Axis {
    /// Items along it, at least 1.
    pub len: u64,
    /// Items from one to the next; may be negative or 0.
    pub stride: i64,
}

/// Several axes, outermost first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Axes {
    /// The axes; those past `count` are not looked at.
    pub axes: [Axis; MAX_AXES],
    /// How many there are; none stands for one of length 1.
    pub count: u32,
    /// Nothing.
    pub padding: u32,
}

impl Axes {
    /// Thread `first + i` of a block copies axis `i` to shared memory, where it can be looked up by its number.
    ///
    /// # Safety
    ///
    /// `table` has [`MAX_AXES`] slots, which are not in use.
    #[inline(always)]
    unsafe fn copy(&self, table: Shared<Axis>, first: u32) {
        let thread = thread_idx_x();
        let mut i = 0;
        while i < MAX_AXES {
            if thread == first + i as u32 {
                // SAFETY: one thread, one slot.
                unsafe { table.write(i, self.axes[i]) };
            }
            i += 1;
        }
    }
}

/// How far item `index` of `all`, counted with the last axis running fastest, is from the first.
///
/// # Safety
///
/// The table has `count` axes, of `all` items, and a barrier lies since they were written.
#[inline(always)]
unsafe fn offset(table: Shared<Axis>, count: u32, index: u64, all: u64) -> i64 {
    // The same for all threads, so that they stay together.
    let narrow = all >> 32 == 0;
    let mut rest = index;
    let mut offset = 0_i64;
    let mut left = count;
    while left > 0 {
        nounroll();
        left -= 1;
        // SAFETY: the caller's promise.
        let Axis { len, stride } = unsafe { table.read(left as usize) };
        let outer = if left == 0 {
            0
        } else if narrow {
            // Division of 64 bits takes several times as long.
            (rest as u32).checked_div(len as u32).unwrap_or(0) as u64
        } else {
            rest.checked_div(len).unwrap_or(0)
        };
        let at = rest - outer * len;
        rest = outer;
        offset = offset.wrapping_add((at as i64).wrapping_mul(stride));
    }
    offset
}

/// The parameters of [`gather`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GatherParams<Op: Monoid> {
    /// The item at index 0 of every axis; aligned to the item.
    pub input: *const Op::Item,
    /// Segments: the product of the kept axes.
    pub m: u64,
    /// Items in each: the product of the reduced axes.
    pub n: u64,
    /// Where the results go, a segment's after the other.
    pub output: *mut Op::Output,
    /// One value for each chunk of each segment; unused for one chunk.
    pub partials: *mut Op::Acc,
    /// For each segment how many of its chunks are done: 0 before and after every launch; unused for one chunk.
    pub tickets: *mut u32,
    /// Items in a chunk: [`Shape::chunk`](warpfold_monoid::tree::Shape::chunk).
    pub chunk: u64,
    /// Chunks in a segment.
    pub chunks: u32,
    /// Threads that share a chunk: [`Shape::groups`](warpfold_monoid::tree::Shape::groups).
    pub groups: u32,
    /// Where segments begin.
    pub kept: Axes,
    /// Where their items lie from there.
    pub reduced: Axes,
    /// The operator.
    pub op: Op,
}

/// Segments of any length, wherever their items lie.
///
/// # Safety
///
/// Blocks of [`THREADS`] where `groups` are at most 32, else of `groups`; all items are readable and results writable;
/// chunks and groups are those of a segment's [`Shape`](warpfold_monoid::tree::Shape); partials and tickets belong to this
/// launch alone. `shared` has a slot a warp, `axes` two times [`MAX_AXES`].
#[inline(always)]
pub unsafe fn gather<Op: Monoid, const V: usize>(
    params: &GatherParams<Op>,
    shared: Shared<Op::Acc>,
    axes: Shared<Axis>,
) {
    grid::wait_for_previous();
    let (thread, groups) = (thread_idx_x(), params.groups);
    // SAFETY: not in use; a block has at least 64 threads.
    unsafe {
        params.kept.copy(axes, 0);
        params.reduced.copy(axes.from(MAX_AXES), 32);
    }
    sync_threads();
    if groups <= 32 {
        let (lane, group) = (thread % 32, thread & (groups - 1));
        let a_block = (THREADS >> groups.trailing_zeros()) as u64;
        // The first segment of this warp's: the whole warp goes on until none of its segments is left.
        let mut first =
            block_idx_x() as u64 * a_block + ((thread / 32 * 32) >> groups.trailing_zeros()) as u64;
        while first < params.m {
            nounroll();
            let segment = first + (lane >> groups.trailing_zeros()) as u64;
            let there = segment < params.m;
            let op = &operator(&params.op, segment, there);
            // The last segment stands in for those that are not there, unless its operator would see items twice.
            let n = if Op::PER_SEGMENT && !there { 0 } else { params.n };
            // SAFETY: a segment; the whole warp is here.
            let acc =
                unsafe { share::<Op, V>(params, op, axes, segment.min(params.m - 1), 0, n, group, groups) };
            // SAFETY: the whole warp is here.
            let acc = unsafe { warp::reduce_width(op, acc.0, lane, groups, Some(acc.1)) };
            if group == 0 && there {
                // SAFETY: one thread a segment.
                unsafe {
                    let output = if params.n == 0 { op.finish_empty() } else { op.finish(acc) };
                    global::store(params.output.wrapping_add(segment as usize), output);
                }
            }
            first += grid_dim_x() as u64 * a_block;
        }
    } else {
        let work = params.m * params.chunks as u64;
        let mut next = block_idx_x() as u64;
        while next < work {
            nounroll();
            let (segment, k) = (next / params.chunks as u64, next % params.chunks as u64);
            let start = k * params.chunk;
            let len = params.chunk.min(params.n - start);
            let op = operator(&params.op, segment, true);
            // SAFETY: a chunk of a segment; the whole block is here.
            let acc = unsafe { chunk_value::<Op, V>(params, &op, axes, segment, start, len, shared) };
            if params.chunks == 1 {
                if thread == 0 {
                    // SAFETY: one thread a segment.
                    unsafe { global::store(params.output.wrapping_add(segment as usize), op.finish(acc)) };
                }
            } else {
                let array = ReduceParams {
                    input: params.input,
                    n: params.n,
                    output: params.output.wrapping_add(segment as usize),
                    partials: params.partials.wrapping_add((segment * params.chunks as u64) as usize),
                    ticket: params.tickets.wrapping_add(segment as usize),
                    chunk: params.chunk,
                    chunks: params.chunks,
                    groups,
                    part: Part::WHOLE,
                    op,
                };
                if thread == 0 {
                    // SAFETY: one block, one partial.
                    unsafe { global::store(array.partials.wrapping_add(k as usize), acc) };
                }
                // SAFETY: the whole block; one more chunk is done.
                unsafe { rows::finish_chunks(&array, 1) };
            }
            next += grid_dim_x() as u64;
            if next < work {
                sync_threads();
            }
        }
    }
    let_next_start();
}

/// The value of items `start .. start + len` of a segment, in thread 0.
///
/// # Safety
///
/// The whole block of `groups` threads, more than 32, calls.
#[inline(always)]
unsafe fn chunk_value<Op: Monoid, const V: usize>(
    params: &GatherParams<Op>,
    op: &Op,
    axes: Shared<Axis>,
    segment: u64,
    start: u64,
    len: u64,
    shared: Shared<Op::Acc>,
) -> Op::Acc {
    let (thread, groups) = (thread_idx_x(), params.groups);
    if Op::COMMUTATIVE {
        // SAFETY: the caller's promise.
        let (acc, present) = unsafe { share::<Op, V>(params, op, axes, segment, start, len, thread, groups) };
        // SAFETY: the whole block.
        return unsafe { block::reduce_width(op, acc, thread, groups, Some(present), shared) };
    }
    // A warp a part: its tiles from left to right.
    let (warp_index, lane) = (thread / 32, thread % 32);
    let tile = FOLD_LANES as u64 * VECTORS_A_GROUP * V as u64;
    let part = if params.chunks <= 1 { tile } else { params.chunk / (groups / FOLD_LANES) as u64 };
    let first = warp_index as u64 * part;
    let end = len.min(first + part);
    let mut total = op.identity();
    let mut at = first;
    while at < end {
        nounroll();
        // SAFETY: a tile of the segment; the whole warp.
        let (acc, present) =
            unsafe { share::<Op, V>(params, op, axes, segment, start + at, tile.min(end - at), lane, 32) };
        // SAFETY: the whole warp.
        let acc = unsafe { warp::reduce_width(op, acc, lane, 32, Some(present)) };
        total = if at == first { acc } else { op.combine(total, acc) };
        at += tile;
    }
    // SAFETY: the whole block; the first threads of the warps have the parts' values.
    unsafe { parts_value(op, total, len.div_ceil(part) as u32, thread, groups, shared) }
}

/// Combines the values that the first lanes of a block's warps have; the result is in thread 0.
///
/// # Safety
///
/// The whole block calls; the slots are not in use.
#[inline(always)]
unsafe fn parts_value<Op: Monoid>(
    op: &Op,
    value: Op::Acc,
    parts: u32,
    thread: u32,
    groups: u32,
    shared: Shared<Op::Acc>,
) -> Op::Acc {
    let (warp_index, lane) = (thread / 32, thread % 32);
    if lane == 0 && warp_index < parts {
        // SAFETY: one warp, one slot.
        unsafe { shared.write(warp_index as usize, value) };
    }
    sync_threads();
    if warp_index != 0 {
        return value;
    }
    // SAFETY: written before the barrier, by the warps that have a part.
    let acc = unsafe { shared.read(lane.min(parts - 1) as usize) };
    // SAFETY: the whole first warp is here.
    unsafe { warp::reduce_width(op, acc, lane, groups / 32, Some(parts)) }
}

/// What one of `groups` threads has of items `start .. start + len` of a segment, and how many of them have something:
/// its lanes, its strip, or some of them.
///
/// # Safety
///
/// The items are readable.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn share<Op: Monoid, const V: usize>(
    params: &GatherParams<Op>,
    op: &Op,
    axes: Shared<Axis>,
    segment: u64,
    start: u64,
    len: u64,
    group: u32,
    groups: u32,
) -> (Op::Acc, u32) {
    // SAFETY: the tables were written before a barrier.
    let first = unsafe { offset(axes, params.kept.count, segment, params.m) };
    let items = params.input.wrapping_offset(first as isize);
    let last = params.n.saturating_sub(1);
    // The last item stands in for those that are not there, but is not read: threads stay together.
    // SAFETY: as above; an item of the segment.
    let load = |i: u64, wanted: bool| unsafe {
        let offset = offset(axes.from(MAX_AXES), params.reduced.count, (start + i).min(last), params.n);
        global::load_if::<Plainly, Op::Item>(wanted, items.wrapping_offset(offset as isize))
    };
    let width = V as u64;
    if Op::ANY_ORDER || !Op::COMMUTATIVE {
        // Every so many, or a strip of neighbours.
        let (first, step, end) = if Op::ANY_ORDER {
            (group as u64, groups as u64, len)
        } else {
            let strip = VECTORS_A_GROUP * width;
            (group as u64 * strip, 1, len.min((group as u64 + 1) * strip))
        };
        let mut acc = op.identity();
        let mut i = first;
        while i < end {
            nounroll();
            let batch: [_; 4] = core::array::from_fn(|u| {
                let at = i + u as u64 * step;
                load(at, at < end)
            });
            let mut u = 0;
            while u < 4 {
                let at = i + u as u64 * step;
                if at < end {
                    // SAFETY: loaded under the same condition.
                    let item = unsafe { batch[u].assume_init() };
                    acc = if u == 0 && i == first {
                        op.lift(item, start + at)
                    } else {
                        op.push(acc, item, start + at)
                    };
                }
                u += 1;
            }
            i += 4 * step;
        }
        let present = if Op::ANY_ORDER { len } else { len.div_ceil(VECTORS_A_GROUP * width) };
        return (acc, present.min(groups as u64) as u32);
    }
    let lanes = groups as u64 * width;
    let mut acc = [op.identity(); V];
    let mut i = group as u64 * width;
    let first = i;
    while i < len {
        nounroll();
        let batch: [_; V] = core::array::from_fn(|slot| load(i + slot as u64, i + (slot as u64) < len));
        let mut slot = 0;
        while slot < V {
            let at = i + slot as u64;
            if at < len {
                // SAFETY: loaded under the same condition.
                let item = unsafe { batch[slot].assume_init() };
                acc[slot] =
                    if i == first { op.lift(item, start + at) } else { op.push(acc[slot], item, start + at) };
            }
            slot += 1;
        }
        i += lanes;
    }
    let present = len.min(lanes) as u32;
    (lanes::combine_slots(op, acc, group, Some(present)), present.div_ceil(V as u32))
}

// SAFETY: repr(C), 16 bytes.
unsafe impl Plain for Axis {}
