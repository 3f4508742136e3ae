//! One array, and how the blocks' values become one: the strategies of the literature, with the same loads in front.
//!
//! | strategy | launches | what follows the blocks |
//! | --- | --- | --- |
//! | [`last_block`] | 1 | the last block to finish folds the values of all (the CUDA samples' `threadFenceReduction`) |
//! | [`blocks`], then [`blocks`] over the values by one block | 2 | CUB's way |
//! | tiles, and tiles of their values, and so on | `log n` | moderngpu's way: [`super::moderngpu::reduce`] |
//! | [`atomics`] | 1, behind one that clears the result | each block adds its value to the result |
//!
//! Blocks go through the array in strides of the grid, 16 bytes a thread in flight four times, and fold by
//! [`block::reduce`]: so all need an operator that commutes. The last need one whose accumulator an instruction adds, and give
//! floats another sum each time.

use warpfold_monoid::Monoid;
use warpfold_simt::{
    atomic::{self, AcqRel, Additive, Gpu},
    global,
    shared::Shared,
    thread::{block_dim_x, block_idx_x, grid_dim_x, sync_threads, thread_idx_x},
};

use super::pass::PassParams;
use crate::block;

/// Loads that each thread has in flight.
const IN_FLIGHT: usize = 4;

/// The parameters of [`last_block`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LastBlockParams<Op: Monoid> {
    /// The array; its results are the blocks' values, of which the first becomes that of all.
    pub pass: PassParams<Op>,
    /// How many blocks are done: 0 before the launch, and after it.
    pub ticket: *mut u32,
}

/// What a thread folds of the array: vectors of `V` items in strides of the grid, then of what is behind the last vector an
/// item.
///
/// # Safety
///
/// As for [`blocks`].
#[inline(always)]
unsafe fn folded<Op: Monoid, const V: usize>(params: &PassParams<Op>) -> Op::Acc {
    let op = &params.op;
    let threads = u64::from(block_dim_x()) * u64::from(grid_dim_x());
    let thread = u64::from(block_idx_x()) * u64::from(block_dim_x()) + u64::from(thread_idx_x());
    let mut all = op.identity();
    // SAFETY: vectors and items below the array's end.
    unsafe {
        if params.items.is_null() {
            let mut at = thread;
            while at < params.n {
                all = op.combine(all, global::load_cg(params.values.wrapping_add(at as usize)));
                at += threads;
            }
            return all;
        }
        let load =
            |vector: u64| global::load_vector::<Op::Item, V>(params.items.wrapping_add(vector as usize * V));
        let mut push = |vector: u64, items: [Op::Item; V]| {
            let mut v = 0;
            while v < V {
                all = op.push(all, items[v], vector * V as u64 + v as u64);
                v += 1;
            }
        };
        let vectors = params.n / V as u64;
        let mut at = thread;
        while at + (IN_FLIGHT as u64 - 1) * threads < vectors {
            let items = [load(at), load(at + threads), load(at + 2 * threads), load(at + 3 * threads)];
            let mut k = 0;
            while k < IN_FLIGHT {
                push(at + k as u64 * threads, items[k]);
                k += 1;
            }
            at += IN_FLIGHT as u64 * threads;
        }
        while at < vectors {
            push(at, load(at));
            at += threads;
        }
        let rest = vectors * V as u64 + thread;
        if rest < params.n {
            all = op.combine(all, params.value_inside(rest));
        }
    }
    all
}

/// Each block leaves its value. The first launch of two; and the second, over values, by one block.
///
/// # Safety
///
/// The whole block calls, of whole warps; the grid has at least `V` threads, as every block does. The operator commutes; the
/// parameters' memory is as their documentation has it, and items are aligned to `V` of them; `slots` has one a warp, not in
/// use.
#[inline(always)]
pub unsafe fn blocks<Op: Monoid, const V: usize>(params: &PassParams<Op>, slots: Shared<Op::Acc>) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(value) = block::reduce(&params.op, folded::<Op, V>(params), None, slots) {
            params.put(block_idx_x(), value);
        }
    }
}

/// Each block leaves its value, and the last to finish folds all.
///
/// # Safety
///
/// As for [`blocks`]. The ticket is 0 and belongs to this launch, as the results do; `slots` has one a warp and `last` one,
/// not in use.
#[inline(always)]
pub unsafe fn last_block<Op: Monoid, const V: usize>(
    params: &LastBlockParams<Op>,
    slots: Shared<Op::Acc>,
    last: Shared<u32>,
) {
    let (pass, blocks) = (&params.pass, grid_dim_x());
    // SAFETY: the caller's promise; barriers keep the uses of the slots apart.
    unsafe {
        if let Some(value) = block::reduce(&pass.op, folded::<Op, V>(pass), None, slots) {
            pass.put(block_idx_x(), value);
            // Release: the value is visible before the ticket is. Acquire: who draws the last one sees all values. It counts
            // over again by itself.
            let drawn = atomic::increment_wrapping(params.ticket, blocks - 1, AcqRel, Gpu);
            last.write(0, u32::from(drawn == blocks - 1));
        }
        sync_threads();
        if last.read(0) == 0 {
            return;
        }
        let mut all = pass.op.identity();
        let mut at = thread_idx_x();
        while at < blocks {
            let value = global::load_cg(pass.results.wrapping_add(at as usize).cast_const());
            all = pass.op.combine(all, value);
            at += block_dim_x();
        }
        if let Some(value) = block::reduce(&pass.op, all, None, slots) {
            pass.put(0, value);
        }
    }
}

/// Each block adds its value to the one result.
///
/// # Safety
///
/// As for [`blocks`]; the operator adds as its accumulator's instruction does, and the result is 0 at first.
#[inline(always)]
pub unsafe fn atomics<Op: Monoid<Acc: Additive>, const V: usize>(
    params: &PassParams<Op>,
    slots: Shared<Op::Acc>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(value) = block::reduce(&params.op, folded::<Op, V>(params), None, slots) {
            atomic::fetch_add_relaxed_gpu(params.results, value);
        }
    }
}
