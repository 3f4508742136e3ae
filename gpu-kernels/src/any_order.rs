//! One block folds a contiguous run of items in whatever order suits: operators that say that theirs does not matter
//! ([`Monoid::ANY_ORDER`]).
//!
//! A thread holds one accumulator, not a vector's worth of lanes: it folds a vector by [`Monoid::fold_many`] and combines.
//! Code and registers stay small however narrow the items are. The body of the loop stands there once; a batch that is
//! not whole is the same body with some loads switched off.
//!
//! Where items start off a 16-byte boundary, the vectors start at the next one. The items before them and after, fewer
//! than two vectors, go to a thread each.

use core::mem::MaybeUninit;

use warpfold_monoid::{Monoid, Plain};
use warpfold_simt::{
    global::{
        self,
        hint::{NoAllocate, Plainly},
    },
    hint::{cold_path, nounroll, opaque},
    shared::Shared,
    thread::sync_threads,
    warp::{FULL, shuffle_down},
};

use crate::device::VECTORS_IN_FLIGHT;

/// The value of some of a block's items.
pub struct Share<A> {
    /// This thread's. Those of the first [`present`](Share::present) threads are values; others must not be combined.
    pub acc: A,
    /// How many threads have a value.
    pub present: u32,
}

/// Folds items `start .. start + len` of an array, each thread its share.
///
/// `threads` (a power of two, at least 32) work together, of which this is number `thread`; each has `U` vectors in
/// flight.
///
/// # Safety
///
/// `items` points to item `start`, with `len` items readable behind it.
#[inline(always)]
pub unsafe fn fold<Op: Monoid, const V: usize, const U: usize>(
    op: &Op,
    items: *const Op::Item,
    start: u64,
    len: u64,
    thread: u32,
    threads: u32,
) -> Share<Op::Acc> {
    let size = size_of::<Op::Item>();
    // Where not even the items lie at multiples of their size, no start is better than another.
    let astray = align_of::<Op::Item>() < size && !items.addr().is_multiple_of(size);
    // Items without bytes lie anywhere.
    let aligned = V == 1 || size == 0 || items.addr().is_multiple_of(size_of::<[Op::Item; V]>());
    let stride = threads as usize * V;
    if size_of::<Op::Acc>() <= 8 && aligned && !astray && len == (VECTORS_IN_FLIGHT * stride) as u64 {
        // What most blocks of all but long arrays have, and bound by the instructions that they fetch: the shortest way.
        let first = thread as usize * V;
        // SAFETY: each thread has as many vectors.
        let acc = unsafe {
            fold_batch::<Op, V, VECTORS_IN_FLIGHT>(
                op,
                items.wrapping_add(first),
                start + first as u64,
                stride,
            )
        };
        return Share { acc, present: threads };
    }
    let mut acc = op.identity();
    let mut begun = false;

    // What lies before the vectors and after them: an item for each of the first threads, which is asked for first and
    // taken last, so that its latency is hidden. Elsewhere the way to the first load is short.
    let (mut head, mut edges, mut edge, mut edge_item) = (0, 0, 0, MaybeUninit::uninit());
    let mut vectors = len / V as u64;
    if V > 1 && !(aligned && len.is_multiple_of(V as u64)) {
        cold_path();
        if !astray && size > 0 {
            head = (((items.addr() / size).wrapping_neg() % V) as u64).min(len) as u32;
        }
        let rest = len - head as u64;
        vectors = rest / V as u64;
        edges = head + (rest % V as u64) as u32;
        edge = if thread < head { thread as u64 } else { thread as u64 + vectors * V as u64 };
        // SAFETY: `edges` items lie outside the vectors.
        edge_item = unsafe {
            global::load_if::<Plainly, Op::Item>(thread < edges, items.wrapping_add(edge as usize))
        };
    }

    // This thread's vectors are `thread`, `thread + threads`, ...: `left` in all.
    let mut left = ((vectors + (threads - 1 - thread) as u64) >> threads.trailing_zeros()) as u32;
    let first = head as usize + thread as usize * V;
    let (mut next, mut index) = (items.wrapping_add(first), start + first as u64);
    while left > 0 {
        nounroll();
        // Items without bytes are positions in sources, which read when they are folded: behind conditions of their own
        // they would wait for each other. So there are either all of a batch or one.
        let count = if size > 0 || left >= U as u32 { left.min(U as u32) } else { 1 };
        // SAFETY: `left` vectors are there.
        let vectors = unsafe { load_up_to::<Op::Item, V, U>(next, stride, count, astray) };
        let value = op.fold_vectors::<V, U>(vectors, count, index, stride as u64);
        acc = if begun { op.combine(acc, value) } else { value };
        // The compiler is not to peel off a first round.
        begun = opaque(1) != 0;
        // Past the end once there is none left.
        let step = if size > 0 { U } else { count as usize };
        next = next.wrapping_add(step * stride);
        index += (step * stride) as u64;
        left -= count;
    }

    if V > 1 && thread < edges {
        cold_path();
        // SAFETY: asked for under the same condition.
        let value = op.lift(unsafe { edge_item.assume_init() }, start + edge);
        acc = if begun { op.combine(acc, value) } else { value };
    }
    Share { acc, present: vectors.max(edges as u64).min(threads as u64) as u32 }
}

/// Folds `U` vectors, `stride` items apart; `index` is that of the first item.
///
/// # Safety
///
/// They are readable, and `first` is aligned to a vector (to an item, where its items make none).
#[inline(always)]
unsafe fn fold_batch<Op: Monoid, const V: usize, const U: usize>(
    op: &Op,
    first: *const Op::Item,
    index: u64,
    stride: usize,
) -> Op::Acc {
    // SAFETY: the caller's promise.
    let batch: [[Op::Item; V]; U] = core::array::from_fn(|u| unsafe {
        global::load_neighbours_with::<NoAllocate, Op::Item, V>(first.wrapping_add(u * stride))
    });
    op.fold_vectors::<V, U>(batch, U as u32, index, stride as u64)
}

/// Loads the first `count` (at least 1) of `U` vectors, `stride` items apart, all in flight together, and the first again for the
/// others.
///
/// # Safety
///
/// They are readable, and `first` is aligned to a vector (to an item, where its items make none, or it is `astray`).
#[inline(always)]
unsafe fn load_up_to<T: Plain, const V: usize, const U: usize>(
    first: *const T,
    stride: usize,
    count: u32,
    astray: bool,
) -> [[T; V]; U] {
    // Where the loads stand, or the assembler would move them to their uses.
    let load = |astray: bool, u: usize| {
        let vector = first.wrapping_add(u * stride);
        // SAFETY: the caller's promise.
        unsafe {
            if astray {
                global::load_if::<Plainly, [T; V]>(true, vector.cast()).assume_init()
            } else {
                global::load_neighbours_if::<NoAllocate, T, V>(true, vector).assume_init()
            }
        }
    };
    let there = |u: usize| if (u as u32) < count { u } else { 0 };
    // Before the batch is used, and so in a place of their own.
    if astray && global::is_vector::<T, V>() {
        cold_path();
        return core::array::from_fn(|u| load(true, there(u)));
    }
    // Nothing is read twice.
    if count == U as u32 {
        core::array::from_fn(|u| load(false, u))
    } else {
        core::array::from_fn(|u| load(false, there(u)))
    }
}

/// Combines the values of a block's threads, at least one; the result is in thread 0.
///
/// # Safety
///
/// All `threads` of the block call (a power of two, at least 32), with the same `present`; `shared` has a slot a warp,
/// which are not in use.
#[inline(always)]
pub unsafe fn reduce<Op: Monoid>(
    op: &Op,
    share: Share<Op::Acc>,
    thread: u32,
    threads: u32,
    shared: Shared<Op::Acc>,
) -> Op::Acc {
    let (warp, lane) = (thread / 32, thread % 32);
    let all = share.present == threads;
    // SAFETY: all lanes of the warp are here.
    let acc = unsafe { reduce_warp(op, share.acc, 32, all, share.present.saturating_sub(thread)) };
    if threads <= 32 {
        return acc;
    }
    if lane == 0 {
        // SAFETY: one warp, one slot; the caller keeps other uses a barrier away.
        unsafe { shared.write(warp as usize, acc) };
    }
    sync_threads();
    if warp != 0 {
        return acc;
    }
    let warps = threads / 32;
    // SAFETY: written before the barrier by warps that exist.
    let acc = unsafe { shared.read((lane & (warps - 1)) as usize) };
    // SAFETY: the whole first warp is here.
    unsafe { reduce_warp(op, acc, warps, all, share.present.div_ceil(32).saturating_sub(lane)) }
}

/// Combines the values of a warp's first `width` lanes (a power of two), neighbours first; the result is in lane 0.
///
/// If not `all` are there, only values of which `above` counts some: those that stand at this lane and behind it.
///
/// # Safety
///
/// All 32 lanes of the warp call, together, with the same `width` and `all`.
#[inline(always)]
unsafe fn reduce_warp<Op: Monoid>(op: &Op, mut acc: Op::Acc, width: u32, all: bool, above: u32) -> Op::Acc {
    // The lanes between combine too, harmlessly: nobody reads them.
    if all {
        let mut distance = 1;
        while distance < width {
            // SAFETY: all lanes are here.
            acc = op.combine(acc, unsafe { shuffle_down(FULL, acc, distance) });
            distance *= 2;
        }
        return acc;
    }
    // Rare, and so in little code.
    cold_path();
    let (mut distance, end) = (1, opaque(width));
    while distance < end {
        nounroll();
        // SAFETY: all lanes are here.
        let other = unsafe { shuffle_down(FULL, acc, distance) };
        if distance < above {
            acc = op.combine(acc, other);
        }
        distance *= 2;
    }
    acc
}
