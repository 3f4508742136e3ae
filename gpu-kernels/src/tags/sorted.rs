//! Reductions by tag in the order of a reduction by group: what stands around [the sort](crate::sort) and [the runs](crate::scan::runs).
//!
//! [`number`] gives all tags the result of nothing and makes tags of any width keys of 32 bits; [`spread`] puts the runs' results where their
//! tags are. Tags that are out of range sort behind all others, and so change no result; their runs are dropped.

use warpfold_monoid::Monoid;
use warpfold_simt::{
    global, grid,
    hint::nounroll,
    thread::{block_idx_x, grid_dim_x, thread_idx_x},
};

use super::{gather, load_tag, note_bad};

/// The parameters of both kernels. The host fills it, the kernel receives it by value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SortedParams<Op: Monoid> {
    /// The tags, of [`width`](SortedParams::width); aligned to it.
    pub tags: *const u8,
    /// How many.
    pub n: u64,
    /// Null, or receives as many keys: tags, and [`k`](SortedParams::k) in place of one that is out of range.
    pub keys: *mut u32,
    /// A result for each tag.
    pub output: *mut Op::Output,
    /// Null, or `u64::MAX`: receives the least index of a tag that is out of range.
    pub first_bad: *mut u64,
    /// A key for each run.
    pub run_keys: *const u32,
    /// As many results.
    pub run_values: *const Op::Output,
    /// How many runs there are.
    pub count: *const u64,
    /// Tags, less than 2^31.
    pub k: u32,
    /// Which integers the tags are: one of [`width`](super::width).
    pub width: u32,
    /// The operator.
    pub op: Op,
}

/// Threads of a block.
pub const THREADS: u32 = 256;

/// Tags that a thread asks for at once.
pub const IN_FLIGHT: usize = 4;

/// Does this operator need it? Those that are gathered are not sorted; others are, if runs of them can be reduced.
pub const fn serves<Op: Monoid>() -> bool {
    !gather::serves::<Op>() && size_of::<Op::Acc>().is_multiple_of(size_of::<u32>())
}

/// Makes results and keys ready.
///
/// # Safety
///
/// Blocks of [`THREADS`], any number. Tags are readable; `output`, and keys if there are any, writable, and with `first_bad` this
/// launch's alone.
#[inline(always)]
pub unsafe fn number<Op: Monoid>(params: &SortedParams<Op>) {
    grid::wait_for_previous();
    grid::let_next_start();
    let first = block_idx_x() as u64 * THREADS as u64 + thread_idx_x() as u64;
    let stride = grid_dim_x() as u64 * THREADS as u64;
    let mut tag = first;
    while tag < params.k as u64 {
        nounroll();
        // SAFETY: the tag's own result.
        unsafe { global::store(params.output.wrapping_add(tag as usize), params.op.finish_empty()) };
        tag += stride;
    }
    if params.keys.is_null() && params.first_bad.is_null() {
        return;
    }
    let mut at = first;
    while at < params.n {
        nounroll();
        // All asked for before any is used; the last stands in for those that are not there.
        let tags: [u32; IN_FLIGHT] = core::array::from_fn(|u| {
            // SAFETY: a tag that there is.
            unsafe { load_tag(params.tags, params.width, (at + u as u64 * stride).min(params.n - 1)) }
        });
        let mut u = 0;
        while u < IN_FLIGHT {
            let index = at + u as u64 * stride;
            if index < params.n {
                // SAFETY: the caller's promise; the item's own key.
                unsafe {
                    if tags[u] >= params.k {
                        note_bad(params.first_bad, index);
                    }
                    if !params.keys.is_null() {
                        global::store(params.keys.wrapping_add(index as usize), tags[u].min(params.k));
                    }
                }
            }
            u += 1;
        }
        at += IN_FLIGHT as u64 * stride;
    }
}

/// Puts the runs' results at their tags.
///
/// # Safety
///
/// Blocks of [`THREADS`], any number. The count, and as many keys, no two of which are the same, and results are readable, `output` is
/// writable.
#[inline(always)]
pub unsafe fn spread<Op: Monoid>(params: &SortedParams<Op>) {
    grid::wait_for_previous();
    grid::let_next_start();
    // SAFETY: the caller's promise.
    let count = unsafe { global::load(params.count) };
    let mut run = block_idx_x() as u64 * THREADS as u64 + thread_idx_x() as u64;
    while run < count {
        nounroll();
        // SAFETY: a run that there is; the tag's own result.
        unsafe {
            let tag = global::load(params.run_keys.wrapping_add(run as usize));
            if tag < params.k {
                let result = global::load(params.run_values.wrapping_add(run as usize));
                global::store(params.output.wrapping_add(tag as usize), result);
            }
        }
        run += grid_dim_x() as u64 * THREADS as u64;
    }
}
