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
    hint::{nounroll, opaque},
    shared::Shared,
    thread::sync_threads,
    warp::{FULL, shuffle_down},
};

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
    let head = if V == 1 || astray {
        0
    } else {
        (((items.addr() / size).wrapping_neg() % V) as u64).min(len) as u32
    };
    let rest = len - head as u64;
    let vectors = rest / V as u64;
    let edges = head + (rest % V as u64) as u32;
    let mut acc = op.identity();

    // One item before the vectors or after them: asked for first and taken last, so that its latency is hidden.
    let edge = if thread < head { thread as u64 } else { thread as u64 + vectors * V as u64 };
    // SAFETY: `edges` items lie outside the vectors.
    let edge_item = unsafe {
        global::load_if::<Plainly, Op::Item>(V > 1 && thread < edges, items.wrapping_add(edge as usize))
    };

    // This thread's vectors are `thread`, `thread + threads`, ...: `left` in all.
    let mut left = ((vectors + (threads - 1 - thread) as u64) >> threads.trailing_zeros()) as u32;
    let stride = threads as usize * V;
    let first = head as usize + thread as usize * V;
    let (mut next, mut index) = (items.wrapping_add(first), start + first as u64);
    let mut begun = false;
    while left > 0 {
        nounroll();
        // Items without bytes are positions in sources, which read when they are folded: behind conditions of their own
        // they would wait for each other. So there are either all of a batch or one.
        let count = if size > 0 || left >= U as u32 { left.min(U as u32) } else { 1 };
        // SAFETY: `left` vectors are there.
        let batch = unsafe { load_up_to::<Op::Item, V, U>(next, stride, count, astray) };
        // SAFETY: `count` is at least 1.
        let mut value = op.fold_many(unsafe { batch[0].assume_init() }, index);
        let mut u = 1;
        while u < U {
            if (u as u32) < count {
                // SAFETY: vector `u` is there.
                let vector = unsafe { batch[u].assume_init() };
                value = op.combine(value, op.fold_many(vector, index + (u * stride) as u64));
            }
            u += 1;
        }
        acc = if begun { op.combine(acc, value) } else { value };
        begun = opaque(1) != 0;
        // Past the end once there is none left.
        let step = if size > 0 { U } else { count as usize };
        next = next.wrapping_add(step * stride);
        index += (step * stride) as u64;
        left -= count;
    }

    if V > 1 && thread < edges {
        // SAFETY: asked for under the same condition.
        let value = op.lift(unsafe { edge_item.assume_init() }, start + edge);
        acc = if begun { op.combine(acc, value) } else { value };
    }
    Share { acc, present: vectors.max(edges as u64).min(threads as u64) as u32 }
}

/// Loads the first `count` of `U` vectors, `stride` items apart, all in flight together.
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
) -> [MaybeUninit<[T; V]>; U] {
    let vector = |u: usize| ((u as u32) < count, first.wrapping_add(u * stride));
    if astray && global::is_vector::<T, V>() {
        return core::array::from_fn(|u| {
            let (wanted, vector) = vector(u);
            // SAFETY: the caller's promise.
            unsafe { global::load_if::<Plainly, [T; V]>(wanted, vector.cast()) }
        });
    }
    core::array::from_fn(|u| {
        let (wanted, vector) = vector(u);
        // Nothing is read twice.
        // SAFETY: the caller's promise.
        unsafe { global::load_neighbours_if::<NoAllocate, T, V>(wanted, vector) }
    })
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
    // SAFETY: all lanes of the warp are here.
    let acc = unsafe { reduce_warp(op, share.acc, share.present.saturating_sub(thread)) };
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
    // SAFETY: written before the barrier by warps that exist.
    let acc = unsafe { shared.read((lane & (threads / 32 - 1)) as usize) };
    // SAFETY: the whole first warp is here.
    unsafe { reduce_warp(op, acc, share.present.div_ceil(32).saturating_sub(lane)) }
}

/// Combines the values of a warp's lanes, neighbours first; the result is in lane 0. `above` counts the threads with a
/// value from this lane on, in this warp and behind it.
///
/// # Safety
///
/// All 32 lanes of the warp call, together.
#[inline(always)]
unsafe fn reduce_warp<Op: Monoid>(op: &Op, mut acc: Op::Acc, above: u32) -> Op::Acc {
    let mut distance = 1;
    while distance < 32 {
        // SAFETY: all lanes are here.
        let other = unsafe { shuffle_down(FULL, acc, distance) };
        // The lanes between combine too, harmlessly: nobody reads them.
        if distance < above {
            acc = op.combine(acc, other);
        }
        distance *= 2;
    }
    acc
}
