//! Reductions within a block.

use warpfold_monoid::Monoid;
use warpfold_simt::{shared::Shared, thread::sync_threads};

use crate::warp::{self, Present};

/// Values of shared memory that [`reduce`] and [`crate::lanes::unshift_block`] need: one a warp.
pub const SHARED: usize = 32;

/// Combines the values of the block's first `width` threads pairwise, neighbours first; the result is in thread 0.
/// The values of threads that `present` leaves out are never combined.
///
/// `width` is a power of two, at most the block's size; where it is less than 32, `present` must not be `None`.
///
/// # Safety
///
/// All threads of the block call, with the same `width`; the block is a whole number of warps; and `shared` has a
/// slot a warp, which are not in use (a barrier apart from earlier uses).
#[inline(always)]
pub unsafe fn reduce<Op: Monoid>(
    op: &Op,
    acc: Op::Acc,
    thread: u32,
    width: u32,
    present: Present,
    shared: Shared<Op::Acc>,
) -> Op::Acc {
    let (warp_index, lane) = (thread / 32, thread % 32);
    let here = present.map(|count| if thread < width { count.saturating_sub(warp_index * 32) } else { 0 });
    // SAFETY: all threads call, so all lanes of this warp do.
    let acc = unsafe { warp::reduce(op, acc, lane, width.min(32), here) };
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
    // SAFETY: written before the barrier by warps that exist.
    let acc = unsafe { shared.read((lane & (warps - 1)) as usize) };
    let here = present.map(|count| if lane < warps { count.div_ceil(32) } else { 0 });
    // SAFETY: the whole first warp is here.
    unsafe { warp::reduce(op, acc, lane, warps, here) }
}
