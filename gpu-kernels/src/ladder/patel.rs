//! Five versions of a block's tree in shared memory, after Patel's, which follow Harris's (M. Harris, Optimizing Parallel
//! Reduction in CUDA, NVIDIA, 2007).
//!
//! | kernel | step | order kept |
//! | --- | --- | --- |
//! | [`version1`] | interleaved: threads whose number is a multiple of `2^k`, by modulo; warps diverge | yes |
//! | [`version2`] | the same places by the first threads: no divergence, but conflicts of banks | yes |
//! | [`version3`] | sequential addressing: halves on halves; no conflicts | no |
//! | [`version4`] | the same, and the first step is made while loading: half the blocks | no |
//! | [`version5`] | the same, and the last warp goes on without barriers of the block | no |
//!
//! Each has a form for grids of any size, whose threads first go through the array in strides of the grid (`STRIDED`); no such
//! form keeps the order. An array takes several launches, each over the block values of the one before.
//!
//! # Errata
//!
//! - As printed all versions write the blocks' values over the input, which other blocks may not have read yet: here they go
//!   elsewhere.
//! - The loop of version 5 is cut off in print: it is `distance > 32`, halved each time.
//! - The last warp of version 5 relies on lanes that proceed in step, which they need not since Volta: between what a lane
//!   writes and another reads belongs a barrier of the warp, and one between reading and writing.

use warpfold_monoid::Monoid;
use warpfold_simt::{
    shared::Shared,
    thread::{block_dim_x, block_idx_x, grid_dim_x, sync_threads, thread_idx_x},
    warp::{FULL, sync_warp},
};

use super::pass::PassParams;

/// The most threads of a block.
pub const MAX_THREADS: usize = 1024;

/// The fewest, of [`version5`].
pub const MIN_UNROLLED: u32 = 64;

/// What a thread brings to the tree: with `PER` 1 its item, with 2 its item and the one a block's size on; if `STRIDED`,
/// of every such piece of the array that is the block's.
///
/// # Safety
///
/// As for [`version1`].
#[inline(always)]
unsafe fn loaded<Op: Monoid, const PER: u64, const STRIDED: bool>(params: &PassParams<Op>) -> Op::Acc {
    let (thread, threads) = (u64::from(thread_idx_x()), u64::from(block_dim_x()));
    let mut at = u64::from(block_idx_x()) * threads * PER + thread;
    let of_piece = |at: u64| {
        // SAFETY: the caller's promise.
        unsafe {
            let first = params.value(at);
            if PER == 1 { first } else { params.op.combine(first, params.value(at + threads)) }
        }
    };
    if !STRIDED {
        return of_piece(at);
    }
    let mut all = params.op.identity();
    while at < params.n {
        all = params.op.combine(all, of_piece(at));
        at += u64::from(grid_dim_x()) * threads * PER;
    }
    all
}

/// Loads, folds the tree by `fold`, and writes the block's value.
///
/// # Safety
///
/// As for [`version1`]; `fold` leaves the tree's value in the first slot, for thread 0 to read.
#[inline(always)]
unsafe fn block<Op: Monoid, const PER: u64, const STRIDED: bool>(
    params: &PassParams<Op>,
    tree: Shared<Op::Acc>,
    fold: impl FnOnce(u32, u32),
) {
    let (thread, threads) = (thread_idx_x(), block_dim_x());
    // SAFETY: the thread's own slot, then the first one behind a barrier.
    unsafe {
        tree.write(thread as usize, loaded::<Op, PER, STRIDED>(params));
        sync_threads();
        fold(thread, threads);
        if thread == 0 {
            params.put(block_idx_x(), tree.read(0));
        }
    }
}

/// Combines a slot with one further on, into the first.
///
/// # Safety
///
/// Both slots are written, and this thread's alone in this step.
#[inline(always)]
unsafe fn step<Op: Monoid>(op: &Op, tree: Shared<Op::Acc>, slot: u32, distance: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        let (left, right) = (tree.read(slot as usize), tree.read((slot + distance) as usize));
        tree.write(slot as usize, op.combine(left, right));
    }
}

/// Interleaved addressing, found by modulo.
///
/// # Safety
///
/// The whole block calls, of a power of two threads, up to [`MAX_THREADS`]. Unless `STRIDED`, the blocks cover the array, a
/// thread an item. The parameters' memory is as their documentation has it; `tree` has a slot a thread, not in use.
#[inline(always)]
pub unsafe fn version1<Op: Monoid, const STRIDED: bool>(params: &PassParams<Op>, tree: Shared<Op::Acc>) {
    // SAFETY: slots below the number of threads, barriers between steps.
    unsafe {
        block::<Op, 1, STRIDED>(params, tree, |thread, threads| {
            let mut distance = 1;
            while distance < threads {
                if thread % (2 * distance) == 0 {
                    step(&params.op, tree, thread, distance);
                }
                sync_threads();
                distance *= 2;
            }
        });
    }
}

/// Interleaved addressing by a strided index.
///
/// # Safety
///
/// As for [`version1`].
#[inline(always)]
pub unsafe fn version2<Op: Monoid, const STRIDED: bool>(params: &PassParams<Op>, tree: Shared<Op::Acc>) {
    // SAFETY: as in `version1`.
    unsafe {
        block::<Op, 1, STRIDED>(params, tree, |thread, threads| {
            let mut distance = 1;
            while distance < threads {
                let slot = 2 * distance * thread;
                if slot < threads {
                    step(&params.op, tree, slot, distance);
                }
                sync_threads();
                distance *= 2;
            }
        });
    }
}

/// Halves on halves, down to `last` threads.
///
/// # Safety
///
/// As in [`version1`].
#[inline(always)]
unsafe fn halves<Op: Monoid>(op: &Op, tree: Shared<Op::Acc>, thread: u32, threads: u32, last: u32) {
    let mut distance = threads / 2;
    while distance > last {
        if thread < distance {
            // SAFETY: the caller's promise.
            unsafe { step(op, tree, thread, distance) };
        }
        sync_threads();
        distance /= 2;
    }
}

/// Sequential addressing.
///
/// # Safety
///
/// As for [`version1`]; the operator commutes.
#[inline(always)]
pub unsafe fn version3<Op: Monoid, const STRIDED: bool>(params: &PassParams<Op>, tree: Shared<Op::Acc>) {
    // SAFETY: as in `version1`.
    unsafe {
        block::<Op, 1, STRIDED>(params, tree, |thread, threads| halves(&params.op, tree, thread, threads, 0))
    }
}

/// Sequential addressing, the first step while loading.
///
/// # Safety
///
/// As for [`version3`], two items a thread.
#[inline(always)]
pub unsafe fn version4<Op: Monoid, const STRIDED: bool>(params: &PassParams<Op>, tree: Shared<Op::Acc>) {
    // SAFETY: as in `version1`.
    unsafe {
        block::<Op, 2, STRIDED>(params, tree, |thread, threads| halves(&params.op, tree, thread, threads, 0))
    }
}

/// The same, with the last warp's steps unrolled.
///
/// # Safety
///
/// As for [`version4`], [`MIN_UNROLLED`] threads or more.
#[inline(always)]
pub unsafe fn version5<Op: Monoid, const STRIDED: bool>(params: &PassParams<Op>, tree: Shared<Op::Acc>) {
    // SAFETY: as in `version1`; the first warp is whole.
    unsafe {
        block::<Op, 2, STRIDED>(params, tree, |thread, threads| {
            halves(&params.op, tree, thread, threads, 32);
            if thread < 32 {
                last_warp(&params.op, tree, thread);
            }
        });
    }
}

/// Folds the first 64 slots by one warp, without barriers of the block.
///
/// # Safety
///
/// The first warp calls, all its lanes; 64 slots are written, a barrier apart.
#[inline(always)]
pub(super) unsafe fn last_warp<Op: Monoid>(op: &Op, tree: Shared<Op::Acc>, thread: u32) {
    macro_rules! steps {
        ($($distance:literal)*) => {$(
            // Lanes above the distance go on too, with slots that nobody wants any more.
            let (left, right) = (tree.read(thread as usize), tree.read(thread as usize + $distance));
            sync_warp(FULL);
            tree.write(thread as usize, op.combine(left, right));
            sync_warp(FULL);
        )*};
    }
    // SAFETY: slots below 64; a barrier of the warp between reads and writes.
    unsafe {
        steps!(32 16 8 4 2 1);
    }
}
