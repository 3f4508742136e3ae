//! The last kernel of M. Harris, Optimizing Parallel Reduction in CUDA (NVIDIA, 2007): fully unrolled for a block size that is
//! known when it is compiled, several elements a thread. The Futhark thesis measures itself against it in its appendix A.
//!
//! # Errata
//!
//! The printed loop reads `g_idata[i + blockSize]` whenever `i` is below `n`: past the end, unless `n` is a multiple of twice the
//! block's size. Its last warp relies on lanes in step, as [`patel`](super::patel) says.

use warpfold_monoid::Monoid;
use warpfold_simt::{
    shared::Shared,
    thread::{block_idx_x, grid_dim_x, sync_threads, thread_idx_x},
};

use super::{pass::PassParams, patel::last_warp};

/// Threads go through the array in strides of the grid, two items each time; the block's tree has no loop.
///
/// # Safety
///
/// The whole block calls, of `BLOCK` threads: 64, 128, 256, 512 or 1024. The operator commutes; the parameters' memory is as
/// their documentation has it; `tree` has a slot a thread, not in use.
#[inline(always)]
pub unsafe fn unrolled<Op: Monoid, const BLOCK: u32>(params: &PassParams<Op>, tree: Shared<Op::Acc>) {
    let (thread, op) = (thread_idx_x(), &params.op);
    // SAFETY: slots below the number of threads, a barrier between steps.
    unsafe {
        let mut at = u64::from(block_idx_x()) * 2 * u64::from(BLOCK) + u64::from(thread);
        let stride = 2 * u64::from(BLOCK) * u64::from(grid_dim_x());
        let mut all = op.identity();
        while at < params.n {
            all = op.combine(all, op.combine(params.value_inside(at), params.value(at + u64::from(BLOCK))));
            at += stride;
        }
        tree.write(thread as usize, all);
        sync_threads();
        macro_rules! steps {
            ($($distance:literal)*) => {$(
                if BLOCK >= 2 * $distance {
                    if thread < $distance {
                        let (left, right) =
                            (tree.read(thread as usize), tree.read(thread as usize + $distance));
                        tree.write(thread as usize, op.combine(left, right));
                    }
                    sync_threads();
                }
            )*};
        }
        steps!(512 256 128 64);
        if thread < 32 {
            last_warp(op, tree, thread);
        }
        if thread == 0 {
            params.put(block_idx_x(), tree.read(0));
        }
    }
}
