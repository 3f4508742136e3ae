//! Reductions of small sets by one block, each a step further: after Timcheck's comparison of block-wide reductions (2017).
//!
//! Sets of [`SET`] integers are summed by one block of 32 to 1024 threads, **in place**: a set's sum replaces its first item.
//! The block takes one set after the other, sets that nobody touched before, and notes for each how many cycles passed between
//! two reads of the clock register, a barrier in front of each: `block_sets` blocks do what he timed on every multiprocessor.
//!
//! | kernel | where partial sums are | threads of a step | first sum while loading |
//! | --- | --- | --- | --- |
//! | [`naive`] | global memory | every second, fourth, ...: warps diverge | no |
//! | [`non_divergent`] | global memory | the first ones, on the same items | no |
//! | [`sequential_global`] | global memory | the first ones, on neighbouring items | no |
//! | [`sequential_shared`] | shared memory | the same | yes |
//! | [`shuffles`] | registers, then shared memory for the warps' sums | warps | yes |
//! | [`shuffles_atomic`] | registers; each warp adds its sum to the result | warps | yes |
//! | [`library_pieces`] | those of [`block::reduce`] | warps | yes |
//! | [`library`] | the same; each thread first adds up its share of the set | warps | all of it |
//! | [`library_unrolled`] | the same, of a block size known when it is compiled: all loads at once | warps | all of it |
//!
//! Where a block has fewer threads than a step has items, all kernels but the last two go through the set piece by piece, and
//! the sums of pieces are added to the result atomically.
//!
//! # Errata
//!
//! Done in place, the step with shuffles and atomics can add a warp's sum to the set's first item before the first warp has
//! read that item: its sum takes the item's place first, and a barrier belongs before the others add theirs.

use warpfold_monoid::Sum;
use warpfold_simt::{
    atomic::fetch_add_relaxed_gpu,
    global,
    shared::Shared,
    thread::{block_dim_x, block_idx_x, clock64, grid_dim_x, sync_threads, thread_idx_x},
    warp::{FULL, shuffle_down},
};

use crate::block;

/// Items of a set.
pub const SET: u32 = 1024;

/// The parameters of the kernels.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SetParams {
    /// The sets, one behind the other; set `t * blocks + b` is block `b`'s in its trial `t`.
    pub data: *mut i32,
    /// Where the cycles of each set go.
    pub cycles: *mut u64,
    /// How many sets each block takes.
    pub trials: u32,
}

/// Takes each set of the block, and notes the cycles.
///
/// # Safety
///
/// As for [`naive`]; `reduce` is that of a set, by the whole block.
#[inline(always)]
unsafe fn trials(params: &SetParams, reduce: impl Fn(*mut i32)) {
    let mut trial = 0;
    while trial < params.trials {
        let set = u64::from(trial) * u64::from(grid_dim_x()) + u64::from(block_idx_x());
        let data = params.data.wrapping_add(set as usize * SET as usize);
        sync_threads();
        let start = clock64();
        reduce(data);
        sync_threads();
        let end = clock64();
        if thread_idx_x() == 0 {
            // SAFETY: a set that there is, one thread.
            unsafe { global::store(params.cycles.wrapping_add(set as usize), end.wrapping_sub(start)) };
        }
        trial += 1;
    }
}

/// Adds the right one of two places to the left one.
///
/// # Safety
///
/// Both are the block's, and no other thread's in this step.
#[inline(always)]
unsafe fn add(left: *mut i32, right: *mut i32) {
    // SAFETY: the caller's promise.
    unsafe {
        global::store(left, global::load(left.cast_const()).wrapping_add(global::load(right.cast_const())))
    }
}

/// Goes through a set in pieces of one item a thread; `step` sums a piece into its first place.
///
/// # Safety
///
/// The whole block calls.
#[inline(always)]
unsafe fn pieces(data: *mut i32, step: impl Fn(*mut i32, u32, u32)) {
    let (thread, threads) = (thread_idx_x(), block_dim_x());
    let mut first = 0;
    while first < SET {
        let piece = data.wrapping_add(first as usize);
        step(piece, thread, threads);
        if thread == 0 && first > 0 {
            // SAFETY: the last step ended at a barrier; nobody else touches the set's first place now.
            unsafe { fetch_add_relaxed_gpu(data, global::load(piece.cast_const())) };
        }
        first += threads;
    }
}

/// Interleaved and divergent: in step `k`, threads whose number is a multiple of `2^k` add what is `2^(k-1)` above.
///
/// # Safety
///
/// The whole block calls, of a power of two from 32 to [`SET`] threads. The parameters' memory is as their documentation
/// has it, and this launch's alone.
#[inline(always)]
pub unsafe fn naive(params: &SetParams) {
    // SAFETY: places below the piece's end, each one thread's in a step; barriers between steps.
    unsafe {
        trials(params, |data| {
            pieces(data, |piece, thread, threads| {
                let mut distance = 1;
                while distance < threads {
                    if thread % (2 * distance) == 0 {
                        let place = piece.wrapping_add(thread as usize);
                        add(place, place.wrapping_add(distance as usize));
                    }
                    sync_threads();
                    distance *= 2;
                }
            });
        });
    }
}

/// The same sums by the first threads, so that whole warps are idle and none diverges before the last five steps.
///
/// # Safety
///
/// As for [`naive`].
#[inline(always)]
pub unsafe fn non_divergent(params: &SetParams) {
    // SAFETY: as in `naive`.
    unsafe {
        trials(params, |data| {
            pieces(data, |piece, thread, threads| {
                let mut distance = 1;
                while distance < threads {
                    let at = 2 * distance * thread;
                    if at < threads {
                        let place = piece.wrapping_add(at as usize);
                        add(place, place.wrapping_add(distance as usize));
                    }
                    sync_threads();
                    distance *= 2;
                }
            });
        });
    }
}

/// Sequential addressing: the first half adds the second half, then the first quarter the second, and so on.
///
/// # Safety
///
/// As for [`naive`].
#[inline(always)]
pub unsafe fn sequential_global(params: &SetParams) {
    // SAFETY: as in `naive`.
    unsafe {
        trials(params, |data| {
            pieces(data, |piece, thread, threads| {
                let mut distance = threads / 2;
                while distance > 0 {
                    if thread < distance {
                        let place = piece.wrapping_add(thread as usize);
                        add(place, place.wrapping_add(distance as usize));
                    }
                    sync_threads();
                    distance /= 2;
                }
            });
        });
    }
}

/// Goes through a set in pieces of two items a thread. Thread 0 of the block has the sum of a piece from `step`, which is
/// given the sum of the thread's two, and how many threads have any, and which leaves what it used behind a barrier.
///
/// # Safety
///
/// The whole block calls, and `step` is right.
#[inline(always)]
unsafe fn pairs(data: *mut i32, step: impl Fn(i32, u32, u32) -> i32) {
    let (thread, threads) = (thread_idx_x(), block_dim_x());
    let half = threads.min(SET / 2);
    let mut first = 0;
    while first < SET {
        let piece = data.wrapping_add(first as usize);
        let mut value = 0;
        if thread < half {
            let place = piece.wrapping_add(thread as usize).cast_const();
            // SAFETY: both below the set's end.
            value =
                unsafe { global::load(place).wrapping_add(global::load(place.wrapping_add(half as usize))) };
        }
        let sum = step(value, thread, half);
        if thread == 0 {
            // SAFETY: one thread, which alone reads the set's first item.
            unsafe {
                if first == 0 {
                    global::store(data, sum);
                } else {
                    fetch_add_relaxed_gpu(data, sum);
                }
            }
        }
        first += 2 * half;
    }
}

/// Sequential addressing in shared memory; the first sum is made while loading.
///
/// # Safety
///
/// As for [`naive`]; `tree` has half a set's slots, not in use.
#[inline(always)]
pub unsafe fn sequential_shared(params: &SetParams, tree: Shared<i32>) {
    // SAFETY: slots below the number of threads that have a value, with barriers between threads.
    unsafe {
        trials(params, |data| {
            pairs(data, |value, thread, half| {
                if thread < half {
                    tree.write(thread as usize, value);
                }
                sync_threads();
                let mut distance = half / 2;
                while distance > 0 {
                    if thread < distance {
                        let (left, right) =
                            (tree.read(thread as usize), tree.read((thread + distance) as usize));
                        tree.write(thread as usize, left.wrapping_add(right));
                    }
                    sync_threads();
                    distance /= 2;
                }
                // Read by the thread that will write it next.
                if thread == 0 { tree.read(0) } else { 0 }
            });
        });
    }
}

/// The sum of a warp, in its first lane.
///
/// # Safety
///
/// All lanes of the warp call.
#[inline(always)]
unsafe fn within_warp(mut value: i32, lanes: u32) -> i32 {
    let mut distance = lanes / 2;
    while distance > 0 {
        // SAFETY: the caller's promise.
        value = value.wrapping_add(unsafe { shuffle_down(FULL, value, distance) });
        distance /= 2;
    }
    value
}

/// Warps sum in registers by shuffles; the first warp does the same to the warps' sums.
///
/// # Safety
///
/// As for [`naive`]; `warps` has a slot for each warp of a block of half a set's threads, not in use.
#[inline(always)]
pub unsafe fn shuffles(params: &SetParams, warps: Shared<i32>) {
    // SAFETY: all lanes are at each shuffle; a barrier lies between writes and reads of others' slots.
    unsafe {
        trials(params, |data| {
            pairs(data, |value, thread, half| {
                let (warp, lane, count) = (thread / 32, thread % 32, half / 32);
                let sum = within_warp(value, 32);
                if lane == 0 && warp < count {
                    warps.write(warp as usize, sum);
                }
                sync_threads();
                let mut all = sum;
                if warp == 0 {
                    let of_warp = if lane < count { warps.read(lane as usize) } else { 0 };
                    all = within_warp(of_warp, count);
                }
                // The slots of one piece are written again for the next.
                sync_threads();
                all
            });
        });
    }
}

/// Each warp sums in registers and adds its sum to the result atomically: no shared memory at all.
///
/// # Safety
///
/// As for [`naive`].
#[inline(always)]
pub unsafe fn shuffles_atomic(params: &SetParams) {
    // SAFETY: all lanes are at each shuffle; the first warp's sum takes the first item's place before any other is added.
    unsafe {
        trials(params, |data| {
            let (thread, threads) = (thread_idx_x(), block_dim_x());
            let half = threads.min(SET / 2);
            let mut first = 0;
            while first < SET {
                let mut value = 0;
                if thread < half {
                    let place = data.wrapping_add((first + thread) as usize).cast_const();
                    value = global::load(place).wrapping_add(global::load(place.wrapping_add(half as usize)));
                }
                let sum = within_warp(value, 32);
                if first == 0 {
                    if thread == 0 {
                        global::store(data, sum);
                    }
                    sync_threads();
                }
                if thread % 32 == 0 && thread < half && (first > 0 || thread > 0) {
                    fetch_add_relaxed_gpu(data, sum);
                }
                first += 2 * half;
            }
        });
    }
}

/// This library's block reduction in the same harness, piece by piece.
///
/// # Safety
///
/// As for [`naive`]; `slots` has a slot for each warp, not in use.
#[inline(always)]
pub unsafe fn library_pieces(params: &SetParams, slots: Shared<i32>) {
    let op = Sum::<i32>::new();
    // SAFETY: the whole block calls, a barrier apart.
    unsafe {
        trials(params, |data| {
            pairs(data, |value, _, half| {
                let sum = block::reduce(&op, value, Some(half), slots);
                sync_threads();
                sum.unwrap_or(0)
            });
        });
    }
}

/// This library's block reduction as one would call it: each thread adds up its share of the set first, and there is one
/// reduction a set.
///
/// # Safety
///
/// As for [`library_pieces`].
#[inline(always)]
pub unsafe fn library(params: &SetParams, slots: Shared<i32>) {
    let op = Sum::<i32>::new();
    // SAFETY: items below the set's end, of which thread 0 alone reads the first; the whole block calls, a barrier apart.
    unsafe {
        trials(params, |data| {
            let (thread, threads) = (thread_idx_x(), block_dim_x());
            let mut value: i32 = 0;
            let mut at = thread;
            while at < SET {
                value = value.wrapping_add(global::load(data.wrapping_add(at as usize).cast_const()));
                at += threads;
            }
            if let Some(sum) = block::reduce(&op, value, None, slots) {
                global::store(data, sum);
            }
        });
    }
}

/// The same where the size of the block is known when it is compiled, as whole arrays' kernels have it: a thread loads all `PER`
/// items of its share before it adds the first.
///
/// # Safety
///
/// As for [`library_pieces`]; the block has `SET / PER` threads.
#[inline(always)]
pub unsafe fn library_unrolled<const PER: usize>(params: &SetParams, slots: Shared<i32>) {
    let op = Sum::<i32>::new();
    // SAFETY: as in `library`; a power of two threads, whole warps.
    unsafe {
        trials(params, |data| {
            let (thread, threads) = (thread_idx_x(), SET / PER as u32);
            let mut values = [0_i32; PER];
            let mut i = 0;
            while i < PER {
                let at = thread + i as u32 * threads;
                values[i] = global::load(data.wrapping_add(at as usize).cast_const());
                i += 1;
            }
            let value = values.into_iter().fold(0_i32, i32::wrapping_add);
            let sum = block::reduce_width(&op, value, thread, threads, None, slots);
            if thread == 0 {
                global::store(data, sum);
            }
        });
    }
}
