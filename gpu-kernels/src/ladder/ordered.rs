//! Reading in order what a thread is to fold in order: four ways, after R. W. Larsen's thesis (2017, chapter 6), which names
//! their sources.
//!
//! A thread that folds neighbours reads far from the next thread, and a warp's load touches 32 lines. Ways out:
//!
//! | way | kernel | costs |
//! | --- | --- | --- |
//! | transpose all items first (Futhark, 2017) | [`thesis::large`](super::thesis::large), [`TRANSPOSED`](super::thesis::TRANSPOSED) | a read and a write more of everything |
//! | turn a tile in shared memory (S. Baxter, Modern GPU, 2013) | [`in_block`] | a write and a read of shared memory |
//! | slide a window over the items and reduce each (Accelerate; Futhark since 2018) | [`sliding`] | a group reduction for each item of a thread |
//! | one item a thread | [`thesis::large`](super::thesis::large), chunks of 1 | many groups and partial values |
//!
//! Each group takes a run of neighbouring items and leaves a value; [`thesis::large`](super::thesis::large) over partial values
//! combines those.

use warpfold_monoid::Monoid;
use warpfold_simt::{
    global,
    shared::{Shared, dynamic_shared},
    thread::{block_dim_x, block_idx_x, sync_threads, thread_idx_x},
};

use crate::{block, segments::tile::Word};

/// The parameters of the kernels.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OrderedParams<Op: Monoid> {
    /// The items.
    pub items: *const Op::Item,
    /// A value for each group.
    pub values: *mut Op::Acc,
    /// How many items.
    pub n: u64,
    /// How many of them a group takes.
    pub run: u64,
    /// The operator.
    pub op: Op,
}

/// Bytes of dynamic shared memory that [`in_block`] takes.
pub const fn tile_bytes<Op: Monoid>(threads: usize, vt: usize) -> usize {
    (tile_words::<Op>(threads, vt) + (block::SHARED * size_of::<Op::Acc>()).div_ceil(size_of::<Word>()))
        * size_of::<Word>()
}

const fn tile_words<Op: Monoid>(threads: usize, vt: usize) -> usize {
    (threads * vt * size_of::<Op::Item>()).div_ceil(size_of::<Word>())
}

/// Tiles of `VT` items a thread are read side by side, laid down in shared memory and taken up as neighbours. An odd `VT` keeps the
/// lanes of a warp in different banks.
///
/// # Safety
///
/// The whole grid calls, a group for each run, of whole warps, with [`tile_bytes`] of dynamic shared memory. The parameters'
/// memory is as their documentation has it.
#[inline(always)]
pub unsafe fn in_block<Op: Monoid, const VT: usize>(params: &OrderedParams<Op>) {
    let (thread, threads) = (thread_idx_x() as usize, block_dim_x() as usize);
    let words = tile_words::<Op>(threads, VT);
    // SAFETY: the caller's promise; words are aligned as any item and accumulator are.
    let (tile, slots) = unsafe {
        let all = dynamic_shared::<Word>(tile_bytes::<Op>(threads, VT) / size_of::<Word>());
        (all.first(words).cast::<Op::Item>(), all.from(words).cast::<Op::Acc>())
    };
    let op = &params.op;
    let fold = |start: u64, end: u64| {
        // SAFETY: items that there are; a barrier lies between laying down and taking up.
        unsafe {
            let mut k = 0;
            while k < VT {
                let place = k * threads + thread;
                if start + (place as u64) < end {
                    let item = global::load(params.items.wrapping_add(start as usize + place));
                    tile.write(place, item);
                }
                k += 1;
            }
            sync_threads();
            let mut acc = None;
            let mut k = 0;
            while k < VT {
                let place = thread * VT + k;
                let i = start + place as u64;
                if i < end {
                    let item = tile.read(place);
                    acc = Some(acc.map_or_else(|| op.lift(item, i), |acc| op.push(acc, item, i)));
                }
                k += 1;
            }
            acc.unwrap_or_else(|| op.identity())
        }
    };
    // SAFETY: the caller's promise.
    unsafe { over_run(params, (threads * VT) as u64, VT as u64, slots, fold) }
}

/// A window of an item a thread slides over the run; the values of each are reduced by the whole group.
///
/// # Safety
///
/// As for [`in_block`], with `slots` ([`block::SHARED`] of them) in place of dynamic shared memory.
#[inline(always)]
pub unsafe fn sliding<Op: Monoid>(params: &OrderedParams<Op>, slots: Shared<Op::Acc>) {
    let (thread, op) = (thread_idx_x() as u64, &params.op);
    let fold = |start: u64, end: u64| {
        let i = start + thread;
        if i >= end {
            return op.identity();
        }
        // SAFETY: an item that there is.
        op.lift(unsafe { global::load(params.items.wrapping_add(i as usize)) }, i)
    };
    // SAFETY: the caller's promise.
    unsafe { over_run(params, block_dim_x() as u64, 1, slots, fold) }
}

/// Goes over the group's run by windows of so many items, so many a thread, and leaves the group's value.
///
/// # Safety
///
/// The whole group calls; `slots` are not in use.
#[inline(always)]
unsafe fn over_run<Op: Monoid>(
    params: &OrderedParams<Op>,
    window: u64,
    of_thread: u64,
    slots: Shared<Op::Acc>,
    fold: impl Fn(u64, u64) -> Op::Acc,
) {
    let group = block_idx_x() as u64;
    let mut start = group * params.run;
    let end = params.n.min(start + params.run);
    let mut total = None;
    while start < end {
        let value = fold(start, end);
        let present = (end - start).min(window).div_ceil(of_thread) as u32;
        // SAFETY: the whole group; a barrier lies between uses of the slots.
        let value = unsafe { block::reduce(&params.op, value, Some(present), slots) };
        total = match (total, value) {
            (Some(total), Some(value)) => Some(params.op.combine(total, value)),
            (total, value) => total.or(value),
        };
        sync_threads();
        start += window;
    }
    if thread_idx_x() == 0 {
        let total = total.unwrap_or_else(|| params.op.identity());
        // SAFETY: the group's own value.
        unsafe { global::store(params.values.wrapping_add(group as usize), total) };
    }
}
