//! The literature's scans.
//!
//! | kernel | of a tile | source |
//! | --- | --- | --- |
//! | [`hillis_steele`] | `n log n` combinations, double-buffered | W. D. Hillis and G. L. Steele, Data Parallel Algorithms, CACM 29(12), 1986 |
//! | [`blelloch`] | up-sweep and down-sweep: `2 n` | G. E. Blelloch, Prefix Sums and Their Applications, CMU-CS-90-190, 1990 |
//! | [`blelloch_padded`] | the same, its bank conflicts padded away | M. Harris, S. Sengupta and J. D. Owens, Parallel Prefix Sum (Scan) with CUDA, GPU Gems 3, chapter 39, 2007 |
//! | [`warp_shuffle`] | warps by shuffles, their values by a warp | after S. Sengupta, M. Harris, Y. Zhang and J. D. Owens, Scan Primitives for GPU Computing, Graphics Hardware 2007, whose warps use shared memory |
//!
//! Each scans tiles of [`TILE`] items. Arrays take three phases: **scan, then propagate** scans the tiles, scans their
//! values in the same way, and has [`propagate`] combine what stands before each tile into all its results, which reads and
//! writes everything twice. **Reduce, then scan** keeps only the tiles' values in the first phase, and scans in the third
//! with what stands before: a third read in place of the second write, `3 n` in all. One pass with look-back
//! ([`scan`](crate::scan)) needs `2 n`.
//!
//! # Errata of the listings
//!
//! - GPU Gems 3, Example 39-1 (Hillis and Steele, double-buffered) adds to what the *output* buffer still holds from two
//!   rounds ago (`temp[pout*n+thid] += temp[pin*n+thid-offset]`); both operands are the input buffer's. Its last line
//!   writes `temp[pout*n+thid1]`.
//! - Algorithm 1 and 2 of that chapter let element `k` take part in round `d` from `k >= 2^d` on: it must be `2^(d-1)`, else
//!   half of each round's elements are never combined.
//! - Example 39-2 and Blelloch's own text write the down-sweep's step as `t + parent`, which only commutative operators
//!   forgive: what stands before comes first, `parent + t`.
//! - Its padding adds `n >> NUM_BANKS + n >> (2 * LOG_NUM_BANKS)`, in which C adds before it shifts; `i / banks` suffices.

use warpfold_monoid::Monoid;
use warpfold_simt::{
    global,
    shared::Shared,
    thread::{block_idx_x, sync_threads, thread_idx_x},
    warp::{FULL, shuffle_up, sync_warp},
};

use super::pass::value_at;

/// Items of a tile.
pub const TILE: usize = 512;

/// Threads of a block: of [`blelloch`] and [`blelloch_padded`], half of a tile's items.
pub const SWEEP_THREADS: u32 = TILE as u32 / 2;

/// The parameters of the kernels.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LadderParams<Op: Monoid> {
    /// The items; null if `values` are scanned.
    pub items: *const Op::Item,
    /// What an earlier phase left, if there are no items.
    pub values: *const Op::Acc,
    /// Where the scan goes; null if only the tiles' values are wanted.
    pub output: *mut Op::Acc,
    /// Where each tile's value goes; null if there is only one.
    pub totals: *mut Op::Acc,
    /// What stands behind each tile but the last; null if that comes later, or never.
    pub befores: *const Op::Acc,
    /// How many there are.
    pub n: u64,
    /// The operator.
    pub op: Op,
}

impl<Op: Monoid> LadderParams<Op> {
    /// The value at a place, or of nothing behind the last.
    ///
    /// # Safety
    ///
    /// The items, or the values, are readable.
    #[inline(always)]
    unsafe fn value(&self, i: u64) -> Op::Acc {
        if i >= self.n {
            return self.op.identity();
        }
        // SAFETY: below `n`.
        unsafe { value_at(&self.op, self.items, self.values, i) }
    }

    /// Writes the result of a tile's place, and the tile's value where that is the last place.
    ///
    /// # Safety
    ///
    /// The parameters' memory is writable, and what stands before readable.
    #[inline(always)]
    unsafe fn put(&self, tile: u64, place: usize, scanned: Op::Acc) {
        let i = tile * TILE as u64 + place as u64;
        // SAFETY: the caller's promise; a place below `n`, a tile that there is.
        unsafe {
            if place == TILE - 1 && !self.totals.is_null() {
                global::store(self.totals.wrapping_add(tile as usize), scanned);
            }
            if i < self.n && !self.output.is_null() {
                let mut result = scanned;
                if tile > 0 && !self.befores.is_null() {
                    let before = global::load(self.befores.wrapping_add(tile as usize - 1));
                    result = self.op.combine(before, scanned);
                }
                global::store(self.output.wrapping_add(i as usize), result);
            }
        }
    }
}

/// Each round, every element takes in the one at twice the last round's distance. Two buffers: one is read while the other
/// is written.
///
/// # Safety
///
/// The whole block of [`TILE`] threads calls, a block for each tile. The parameters' memory is as their documentation has
/// it, and `buffers` are two tiles' accumulators, not in use.
#[inline(always)]
pub unsafe fn hillis_steele<Op: Monoid>(params: &LadderParams<Op>, buffers: Shared<Op::Acc>) {
    let (tile, thread) = (block_idx_x() as u64, thread_idx_x() as usize);
    // SAFETY: the thread's own place; others' are read behind barriers.
    unsafe {
        let (mut now, mut then) = (buffers, buffers.from(TILE));
        let mut value = params.value(tile * TILE as u64 + thread as u64);
        now.write(thread, value);
        sync_threads();
        let mut distance = 1;
        while distance < TILE {
            if thread >= distance {
                value = params.op.combine(now.read(thread - distance), value);
            }
            then.write(thread, value);
            sync_threads();
            (now, then) = (then, now);
            distance *= 2;
        }
        params.put(tile, thread, value);
    }
}

/// A tree of partial values is built in place (the up-sweep), its root replaced by nothing, and what stands before each node
/// handed down (the down-sweep).
///
/// # Safety
///
/// The whole block of [`SWEEP_THREADS`] calls, a block for each tile. The parameters' memory is as their documentation has
/// it, and `tree` is a tile's accumulators, not in use.
#[inline(always)]
pub unsafe fn blelloch<Op: Monoid>(params: &LadderParams<Op>, tree: Shared<Op::Acc>) {
    // SAFETY: the caller's promise.
    unsafe { sweeps(params, tree, |i| i) }
}

/// The same with a place left out after every 32, so that threads whose nodes are a power of two apart find them in
/// different banks.
///
/// # Safety
///
/// As for [`blelloch`], with [`PADDED`] accumulators.
#[inline(always)]
pub unsafe fn blelloch_padded<Op: Monoid>(params: &LadderParams<Op>, tree: Shared<Op::Acc>) {
    // SAFETY: the caller's promise.
    unsafe { sweeps(params, tree, |i| i + i / 32) }
}

/// Places of a padded tile.
pub const PADDED: usize = TILE + TILE / 32;

/// # Safety
///
/// As for [`blelloch`], with room for all places.
#[inline(always)]
unsafe fn sweeps<Op: Monoid>(
    params: &LadderParams<Op>,
    tree: Shared<Op::Acc>,
    place: impl Fn(usize) -> usize,
) {
    let (tile, thread, op) = (block_idx_x() as u64, thread_idx_x() as usize, &params.op);
    let (a, b) = (thread, thread + TILE / 2);
    // SAFETY: places below a tile's; between accesses of different threads lie barriers.
    unsafe {
        let start = tile * TILE as u64;
        let (first, second) = (params.value(start + a as u64), params.value(start + b as u64));
        tree.write(place(a), first);
        tree.write(place(b), second);
        let (mut nodes, mut distance) = (TILE / 2, 1);
        while nodes > 0 {
            sync_threads();
            if thread < nodes {
                let (left, right) = (distance * (2 * thread + 1) - 1, distance * (2 * thread + 2) - 1);
                let value = op.combine(tree.read(place(left)), tree.read(place(right)));
                tree.write(place(right), value);
            }
            (nodes, distance) = (nodes / 2, distance * 2);
        }
        sync_threads();
        if thread == 0 {
            tree.write(place(TILE - 1), op.identity());
        }
        let mut nodes = 1;
        while nodes < TILE {
            distance /= 2;
            sync_threads();
            if thread < nodes {
                let (left, right) = (distance * (2 * thread + 1) - 1, distance * (2 * thread + 2) - 1);
                let (of_left, before) = (tree.read(place(left)), tree.read(place(right)));
                tree.write(place(left), before);
                tree.write(place(right), op.combine(before, of_left));
            }
            nodes *= 2;
        }
        sync_threads();
        // Exclusive so far.
        let (before_first, before_second) = (tree.read(place(a)), tree.read(place(b)));
        params.put(tile, a, op.combine(before_first, first));
        params.put(tile, b, op.combine(before_second, second));
    }
}

/// Each warp scans by shuffles; the first one scans the warps' values.
///
/// # Safety
///
/// As for [`hillis_steele`], with an accumulator for each warp.
#[inline(always)]
pub unsafe fn warp_shuffle<Op: Monoid>(params: &LadderParams<Op>, warps: Shared<Op::Acc>) {
    let (tile, thread, op) = (block_idx_x() as u64, thread_idx_x(), &params.op);
    let (warp, lane) = (thread / 32, thread % 32);
    let count = TILE as u32 / 32;
    // SAFETY: all lanes are at each shuffle, and a barrier lies between writes and reads of others' slots.
    unsafe {
        let mut value = within_warp(op, params.value(tile * TILE as u64 + thread as u64), lane);
        if lane == 31 {
            warps.write(warp as usize, value);
        }
        sync_threads();
        if warp == 0 {
            let of_warps = within_warp(op, warps.read(lane.min(count - 1) as usize), lane);
            sync_warp(FULL);
            if lane < count {
                warps.write(lane as usize, of_warps);
            }
        }
        sync_threads();
        if warp > 0 {
            value = op.combine(warps.read(warp as usize - 1), value);
        }
        params.put(tile, thread as usize, value);
    }
}

/// # Safety
///
/// All lanes of the warp call.
#[inline(always)]
unsafe fn within_warp<Op: Monoid>(op: &Op, mut value: Op::Acc, lane: u32) -> Op::Acc {
    let mut distance = 1;
    while distance < 32 {
        // SAFETY: the caller's promise.
        let left = unsafe { shuffle_up(FULL, value, distance) };
        if lane >= distance {
            value = op.combine(left, value);
        }
        distance *= 2;
    }
    value
}

/// The last phase of scan, then propagate: what stands before each tile is combined into its results, in place.
///
/// # Safety
///
/// As for [`hillis_steele`]; `values` and `output` may be the same.
#[inline(always)]
pub unsafe fn propagate<Op: Monoid>(params: &LadderParams<Op>) {
    let (tile, thread) = (block_idx_x() as u64, thread_idx_x() as usize);
    // SAFETY: the caller's promise.
    unsafe {
        let value = params.value(tile * TILE as u64 + thread as u64);
        params.put(tile, thread, value);
    }
}
