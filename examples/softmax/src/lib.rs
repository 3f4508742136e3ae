//! Softmax of every row of a matrix: a kernel that is no reduction, made of two.
//!
//! Row `x` becomes `exp(x[i] - max) / sum`, where `max` is the row's maximum and `sum` that of all `exp(x[k] - max)`.
//! No exponential exceeds 1, so none overflows; the sum is at least 1, so nothing is divided by zero.
//!
//! One block takes one row. Its threads take items side by side in turns, and [`block::reduce`] combines what each has:
//! first the maximum, then the sum, with operators that warpfold has (a user's own would do as well). Blocks and rows
//! may have any size. The same source runs on the GPU, compiled by `build.rs` with the feature `cuda`, and in the
//! simulator, where `tests/softmax.rs` checks it.
//!
//! [`pipeline`] is another: a source, a filter, an expander and a sink in one kernel.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

pub mod pipeline;

use warpfold_gpu_kernels::block;
use warpfold_monoid::{Max, Monoid, Sum};
use warpfold_simt::prelude::*;

#[cfg(target_arch = "nvptx64")]
warpfold_simt::device_panic_handler!();

/// The kernel for GPUs from sm_80 on; its entry is `softmax`.
#[cfg(feature = "cuda")]
pub const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/softmax.ptx"));

/// Writes the softmax of each row of `input`, a matrix of `gridDim.x` rows that lie one behind the other, to the same
/// place of `output`.
///
/// A row with a NaN or with positive infinity becomes NaN throughout, and so does one of nothing but negative infinity;
/// elsewhere negative infinity becomes 0.
///
/// # Safety
///
/// Grid and block have one dimension. `input` points to `gridDim.x * columns` readable items of global memory,
/// `output` to as many writable ones, which are the same or do not overlap.
#[kernel(max_threads = 1024, min_blocks = 1)]
pub unsafe fn softmax(input: *const f32, output: *mut f32, columns: usize) {
    let start = thread::block_idx_x() as usize * columns;
    let (input, output) = (input.wrapping_add(start), output.wrapping_add(start));
    // SAFETY: this block's row.
    let item = |i: usize| unsafe { global::load(input.wrapping_add(i)) };

    let slots = (shared!([f32; block::SHARED]), shared!([f32; 1]));
    // SAFETY: the whole block calls, and nothing else uses the slots.
    let max = unsafe { reduce_row(&Max::<f32>::new(), columns, item, slots) };

    let slots = (shared!([f64; block::SHARED]), shared!([f64; 1]));
    // SAFETY: the same.
    let sum = unsafe { reduce_row(&Sum::<f32>::new(), columns, |i| exp(item(i) - max), slots) };

    let scale = 1.0 / sum;
    for_each_column(columns, |i| {
        let y = (exp(item(i) - max) as f64 * scale) as f32;
        // SAFETY: this block's row; item `i` is read and written by this thread alone.
        unsafe { global::store(output.wrapping_add(i), y) };
    });
}

/// Combines a row's items and gives the value, not finished yet, to every thread; of no items, the identity.
///
/// # Safety
///
/// The whole block calls. Of `slots`, the first are for the reduction and one is for the result; a barrier lies between
/// any other use of them and this one.
#[inline(always)]
unsafe fn reduce_row<Op: Monoid<Item = f32>>(
    op: &Op,
    columns: usize,
    item: impl Fn(usize) -> f32,
    slots: (Shared<Op::Acc>, Shared<Op::Acc>),
) -> Op::Acc {
    let mut acc = None;
    for_each_column(columns, |i| {
        acc = Some(match acc {
            None => op.lift(item(i), i as u64),
            Some(acc) => op.push(acc, item(i), i as u64),
        });
    });
    let acc = acc.unwrap_or(op.identity());
    // In a row shorter than the block only the first threads have something.
    let present = columns.min(thread::block_dim_x() as usize) as u32;
    // SAFETY: the caller's promise.
    let total = unsafe { block::reduce(op, acc, Some(present), slots.0) };
    // SAFETY: the caller's promise.
    unsafe { block::broadcast(total.unwrap_or(acc), 0, slots.1) }
}

/// Calls `f` with the columns that fall to this thread: neighbouring threads take neighbouring ones.
#[inline(always)]
fn for_each_column(columns: usize, mut f: impl FnMut(usize)) {
    let mut i = thread::thread_idx_x() as usize;
    while i < columns {
        f(i);
        i += thread::block_dim_x() as usize;
    }
}

/// The exponential of a number that is not positive, with the same bits on every machine: libm's, computed by plain
/// arithmetic, but for results too small for a normal number, which are 0.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // libm raises the inexact and underflow flags at the ends of its range by writing to memory. GPUs have no such
    // flags, and a thread's memory is slow: these branches, which the comparisons below leave dead, must not be there.
    match x.to_bits() & 0x7fff_ffff {
        // Down to 2^-14, where 1 + x is rounded right.
        ..=0x3900_0000 => 1.0 + x,
        // From ln(2^-126) on.
        0x42ae_ac50..=0x7f80_0000 => 0.0,
        _ => libm::expf(x),
    }
}
