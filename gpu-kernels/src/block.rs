//! Reductions within a block.

use warpfold_monoid::Monoid;
use warpfold_simt::{shared::Shared, thread::sync_threads};

use crate::warp;

/// Values of shared memory that [`reduce`] and the rotation of [`crate::lanes`] need: one a warp.
pub const SHARED: usize = 32;

/// Combines the values of the block's first `width` threads pairwise, neighbours first; the result is in thread 0.
/// `present` is how many threads hold a value (a prefix); the others' values are never combined.
///
/// `width` is a power of two, at most the block's size; all threads of the block must call, and `shared` must not be
/// in use (a barrier apart from earlier uses).
#[inline(always)]
pub fn reduce<Op: Monoid>(
    op: &Op,
    acc: Op::Acc,
    thread: u32,
    width: u32,
    present: u32,
    shared: Shared<Op::Acc>,
) -> Op::Acc {
    let (warp_index, lane) = (thread / 32, thread % 32);
    let present_here = if thread < width { present.saturating_sub(warp_index * 32) } else { 0 };
    let acc = warp::reduce(op, acc, lane, width.min(32), present_here);
    if width <= 32 {
        return acc;
    }
    if lane == 0 {
        // SAFETY: one warp, one slot; the caller keeps earlier uses a barrier away.
        unsafe { shared.write(warp_index as usize, acc) };
    }
    sync_threads();
    if warp_index != 0 {
        return acc;
    }
    let warps = width / 32;
    let present = if lane < warps { present.div_ceil(32) } else { 0 };
    // SAFETY: written before the barrier by warps that exist.
    let acc = if lane < warps { unsafe { shared.read(lane as usize) } } else { acc };
    warp::reduce(op, acc, lane, warps, present)
}
