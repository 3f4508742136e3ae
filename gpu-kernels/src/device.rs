//! Reductions of a whole array.
//!
//! One block folds a short array ([`reduce_one`]). A longer one is cut into chunks, a block each
//! ([`reduce_chunks`]); the last block to finish folds the chunks' values, in the same launch.

use warpfold_monoid::{Monoid, Plain, fingerprint, tree::FOLD_LANES};
use warpfold_simt::{
    atomic, fence, global,
    shared::Shared,
    thread::{block_idx_x, thread_idx_x},
    warp::shuffle_idx,
};

use crate::{
    block, lanes,
    warp::{self, FULL},
};

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
    /// The operator.
    pub op: Op,
}

/// Vectors that a thread has in flight.
pub const VECTORS_IN_FLIGHT: usize = 4;

/// Reduces an array of at most one chunk in one block of `max(groups, 32)` threads.
///
/// # Safety
///
/// `input` has `n` readable items and `output` is writable; `groups` is that of the array's
/// [`Shape`](warpfold_monoid::tree::Shape).
#[inline(always)]
pub unsafe fn reduce_one<Op: Monoid, const V: usize>(params: &ReduceParams<Op>, shared: Shared<Op::Acc>) {
    let thread = thread_idx_x();
    // SAFETY: the caller's promise.
    let acc = unsafe { chunk_value::<Op, V>(params, 0, params.n, shared) };
    if thread == 0 {
        let acc = if params.n == 0 { params.op.identity() } else { acc };
        // SAFETY: the caller's promise.
        unsafe { global::store(params.output, params.op.finish(acc)) };
    }
}

/// Reduces an array of several chunks, one block of `groups` threads (at least 64) a chunk.
///
/// # Safety
///
/// As for [`reduce_one`]; `partials` has room for `chunks` values, which with `ticket` (0 at the start) belong to
/// this launch alone.
#[inline(always)]
pub unsafe fn reduce_chunks<Op: Monoid, const V: usize>(params: &ReduceParams<Op>, shared: Shared<Op::Acc>) {
    let thread = thread_idx_x();
    let chunk = block_idx_x();
    let start = chunk as u64 * params.chunk;
    let len = params.chunk.min(params.n - start);
    // SAFETY: the caller's promise.
    let acc = unsafe { chunk_value::<Op, V>(params, start, len, shared) };
    if thread >= 32 {
        return;
    }
    let mut finished = 0;
    if thread == 0 {
        // SAFETY: one block, one partial. The fence orders it before the ticket.
        unsafe { global::store(params.partials.wrapping_add(chunk as usize), acc) };
        fence::acq_rel_gpu();
        // SAFETY: the caller's promise.
        finished = unsafe { atomic::fetch_add_relaxed_gpu(params.ticket, 1) };
    }
    if shuffle_idx(FULL, finished, 0) != params.chunks - 1 {
        return;
    }
    // Every other block took its ticket before, after its fence: this one makes their values visible here.
    fence::acq_rel_gpu();
    let merge = Merge { op: params.op };
    // SAFETY: `chunks` values, all written.
    let lanes = unsafe {
        lanes::fold::<_, 1, 8>(&merge, params.partials, 0, params.chunks as u64, thread, FOLD_LANES)
    };
    let acc = warp::reduce(&params.op, lanes.acc[0], thread, FOLD_LANES, params.chunks.min(FOLD_LANES));
    if thread == 0 {
        // SAFETY: the caller's promise.
        unsafe {
            global::store(params.output, params.op.finish(acc));
            global::store(params.ticket, 0);
        }
    }
}

/// The value of items `start .. start + len`, in thread 0.
///
/// # Safety
///
/// They are readable.
#[inline(always)]
unsafe fn chunk_value<Op: Monoid, const V: usize>(
    params: &ReduceParams<Op>,
    start: u64,
    len: u64,
    shared: Shared<Op::Acc>,
) -> Op::Acc {
    let (op, thread, groups) = (&params.op, thread_idx_x(), params.groups);
    let items = params.input.wrapping_add(start as usize);
    let lanes = if thread < groups {
        // SAFETY: the caller's promise.
        unsafe { lanes::fold::<Op, V, VECTORS_IN_FLIGHT>(op, items, start, len, thread, groups) }
    } else {
        lanes::Lanes { acc: [op.identity(); V], head: 0 }
    };
    let acc = if groups > 32 {
        lanes::unshift_block(lanes, thread, groups, shared)
    } else {
        lanes::unshift_warp(lanes, thread & (groups - 1), groups)
    };
    let present = len.min(groups as u64 * V as u64) as u32;
    let acc = lanes::combine_slots(op, acc, thread, present);
    block::reduce(op, acc, thread, groups, present.div_ceil(V as u32), shared)
}

/// The operator on values that are already accumulators.
#[repr(C)]
#[derive(Clone, Copy)]
struct Merge<Op> {
    op: Op,
}

// SAFETY: repr(C) with one plain field.
unsafe impl<Op: Plain> Plain for Merge<Op> {
    const LAYOUT: u64 = fingerprint(&[Op::LAYOUT]);
}

impl<Op: Monoid> Monoid for Merge<Op> {
    type Item = Op::Acc;
    type Acc = Op::Acc;
    type Output = Op::Acc;
    type Empty = Op::Empty;
    const COMMUTATIVE: bool = Op::COMMUTATIVE;
    #[inline(always)]
    fn identity(&self) -> Op::Acc {
        self.op.identity()
    }
    #[inline(always)]
    fn lift(&self, item: Op::Acc, _index: u64) -> Op::Acc {
        item
    }
    #[inline(always)]
    fn combine(&self, left: Op::Acc, right: Op::Acc) -> Op::Acc {
        self.op.combine(left, right)
    }
    #[inline(always)]
    fn finish(&self, acc: Op::Acc) -> Op::Acc {
        acc
    }
}
