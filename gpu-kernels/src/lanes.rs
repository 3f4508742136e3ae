//! One group of threads folds a contiguous run of items into the lanes of the canonical tree.
//!
//! A thread holds a *group* of `V` neighbouring lanes, the slots of one 16-byte vector. Where the items start off a
//! 16-byte boundary, the first `head` items come before the first aligned vector, and a vector's slots hold lanes
//! shifted by `head`: lanes go by index, not by address, so the shift is undone before the lanes combine.

use warpfold_monoid::{Monoid, Plain};
use warpfold_simt::{
    global,
    shared::Shared,
    thread::sync_threads,
    warp::{shuffle_idx, shuffle_up, warp_vote_any},
};

use crate::warp::FULL;

/// The lanes of one thread.
pub struct Lanes<A, const V: usize> {
    /// The accumulators. Slot `s` of thread `t` holds lane `(head + V * t + s) % (V * groups)`.
    pub acc: [A; V],
    /// Items before the first aligned vector.
    pub head: u32,
}

/// Folds items `start .. start + len` of an array into lanes.
///
/// `groups` threads work together, of which this is number `thread`; `U` vectors are loaded at once. Lanes beyond
/// `len` hold the identity and must not be combined.
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
    groups: u32,
) -> Lanes<Op::Acc, V> {
    let size = size_of::<Op::Item>();
    let head = if V == 1 {
        0
    } else {
        let past = (items as usize / size) % V;
        (((V - past) % V) as u64).min(len) as u32
    };
    let mut acc = [op.identity(); V];
    let mut begun = [false; V];
    let last_group = groups - 1;
    if head > 0 && thread == last_group {
        // The last thread's upper slots hold the first lanes, whose first items stand in the head.
        let mut slot = 0;
        while slot < V {
            let lane = (slot + head as usize).wrapping_sub(V);
            if lane < head as usize {
                // SAFETY: lane < head <= len.
                let item = unsafe { global::load(items.wrapping_add(lane)) };
                acc[slot] = op.lift(item, start + lane as u64);
                begun[slot] = true;
            }
            slot += 1;
        }
    }
    let body = items.wrapping_add(head as usize);
    let base = start + head as u64;
    let rest = len - head as u64;
    let vectors = rest / V as u64;
    let tail = (rest % V as u64) as u32;
    let step = groups as u64;

    // The tail's items are asked for first and taken last, so that their latency is hidden.
    let owns_tail = tail > 0 && thread as u64 == vectors % step;
    let mut tail_items = [None; V];
    if owns_tail {
        let mut slot = 0;
        while slot < V {
            if (slot as u32) < tail {
                // SAFETY: vectors * V + slot < rest.
                tail_items[slot] =
                    Some(unsafe { global::load(body.wrapping_add(vectors as usize * V + slot)) });
            }
            slot += 1;
        }
    }

    let mut next = thread as u64;
    if next < vectors {
        // SAFETY: vector indices are clamped to the last whole vector.
        let batch = unsafe { load_clamped::<Op::Item, V, U>(body, next, step, vectors - 1) };
        let mut u = 0;
        while u < U {
            let vector = next + u as u64 * step;
            if vector < vectors {
                let mut slot = 0;
                while slot < V {
                    let index = base + vector * V as u64 + slot as u64;
                    acc[slot] = if u > 0 || begun[slot] {
                        op.push(acc[slot], batch[u][slot], index)
                    } else {
                        op.lift(batch[u][slot], index)
                    };
                    slot += 1;
                }
            }
            u += 1;
        }
        begun = [true; V];
        next += U as u64 * step;
        while next + (U as u64 - 1) * step < vectors {
            // SAFETY: the last of the batch is a whole vector.
            let batch = unsafe { load_batch::<Op::Item, V, U>(body, next, step) };
            let mut u = 0;
            while u < U {
                acc = push_vector(op, acc, batch[u], base + (next + u as u64 * step) * V as u64);
                u += 1;
            }
            next += U as u64 * step;
        }
        if next < vectors {
            // SAFETY: vector indices are clamped to the last whole vector.
            let batch = unsafe { load_clamped::<Op::Item, V, U>(body, next, step, vectors - 1) };
            let mut u = 0;
            while u < U {
                let vector = next + u as u64 * step;
                if vector < vectors {
                    acc = push_vector(op, acc, batch[u], base + vector * V as u64);
                }
                u += 1;
            }
        }
    }

    let mut slot = 0;
    while slot < V {
        if let Some(item) = tail_items[slot] {
            let index = base + vectors * V as u64 + slot as u64;
            acc[slot] = if begun[slot] { op.push(acc[slot], item, index) } else { op.lift(item, index) };
        }
        slot += 1;
    }
    Lanes { acc, head }
}

/// Takes one vector into the lanes; `index` is that of its first item.
#[inline(always)]
fn push_vector<Op: Monoid, const V: usize>(
    op: &Op,
    mut acc: [Op::Acc; V],
    vector: [Op::Item; V],
    index: u64,
) -> [Op::Acc; V] {
    let mut slot = 0;
    while slot < V {
        acc[slot] = op.push(acc[slot], vector[slot], index + slot as u64);
        slot += 1;
    }
    acc
}

/// Loads vectors `next`, `next + step`, ...: `U` of them, all in flight together.
///
/// # Safety
///
/// `body` is aligned to a vector, and all of them are readable.
#[inline(always)]
unsafe fn load_batch<T: Plain, const V: usize, const U: usize>(
    body: *const T,
    next: u64,
    step: u64,
) -> [[T; V]; U] {
    core::array::from_fn(|u| {
        let vector = (next + u as u64 * step) as usize;
        // SAFETY: the caller's promise.
        unsafe { global::load_vector(body.wrapping_add(vector * V)) }
    })
}

/// The same, with indices beyond `last` replaced by it.
///
/// # Safety
///
/// `body` is aligned to a vector, and vectors up to `last` are readable.
#[inline(always)]
unsafe fn load_clamped<T: Plain, const V: usize, const U: usize>(
    body: *const T,
    next: u64,
    step: u64,
    last: u64,
) -> [[T; V]; U] {
    core::array::from_fn(|u| {
        let vector = (next + u as u64 * step).min(last) as usize;
        // SAFETY: clamped to readable vectors.
        unsafe { global::load_vector(body.wrapping_add(vector * V)) }
    })
}

/// Combines a thread's own slots pairwise, neighbours first: the value of lanes `V * thread ..`, of which `present`
/// (of the whole chunk, a prefix) hold a value.
#[inline(always)]
pub fn combine_slots<Op: Monoid, const V: usize>(
    op: &Op,
    mut acc: [Op::Acc; V],
    thread: u32,
    present: u32,
) -> Op::Acc {
    let first = thread * V as u32;
    let mut distance = 1;
    while distance < V {
        let mut slot = 0;
        while slot + distance < V {
            if first + ((slot + distance) as u32) < present {
                acc[slot] = op.combine(acc[slot], acc[slot + distance]);
            }
            slot += 2 * distance;
        }
        distance *= 2;
    }
    acc[0]
}

/// Undoes the shift of a misaligned start within a warp: after it, slot `s` of thread `t` holds lane `V * t + s`.
///
/// `groups` threads (a power of two up to 32) that are neighbours in the warp share the lanes; `thread` is the
/// position among them. All 32 lanes of the warp must call with the same `groups`; `head` is the same in a group.
#[inline(always)]
pub fn unshift_warp<A: Plain, const V: usize>(lanes: Lanes<A, V>, thread: u32, groups: u32) -> [A; V] {
    let Lanes { mut acc, head } = lanes;
    if V == 1 || !warp_vote_any(FULL, head > 0) {
        return acc;
    }
    let lane = warpfold_simt::warp::lane_id();
    let source = lane - thread + (thread.wrapping_sub(1) & (groups - 1));
    let mut shift = 0;
    while shift < V as u32 - 1 {
        let carried = shuffle_idx(FULL, acc[V - 1], source);
        if shift < head {
            rotate(&mut acc, carried);
        }
        shift += 1;
    }
    acc
}

/// The same across a block of `groups` threads (a power of two, more than 32).
///
/// All threads call with the same `head`. `shared` must not be in use before, and is free again after.
#[inline(always)]
pub fn unshift_block<A: Plain, const V: usize>(
    lanes: Lanes<A, V>,
    thread: u32,
    groups: u32,
    shared: Shared<A>,
) -> [A; V] {
    let Lanes { mut acc, head } = lanes;
    let (warp_index, lane) = (thread / 32, thread % 32);
    let before = warp_index.wrapping_sub(1) & (groups / 32 - 1);
    let mut shift = 0;
    while shift < head {
        let mut carried = shuffle_up(FULL, acc[V - 1], 1);
        if lane == 31 {
            // SAFETY: one warp, one slot; the reads of the last round lie before its closing barrier.
            unsafe { shared.write(warp_index as usize, acc[V - 1]) };
        }
        sync_threads();
        if lane == 0 {
            // SAFETY: written before the barrier.
            carried = unsafe { shared.read(before as usize) };
        }
        sync_threads();
        rotate(&mut acc, carried);
        shift += 1;
    }
    acc
}

/// Moves every slot up by one and puts `carried` in the first.
#[inline(always)]
fn rotate<A: Copy, const V: usize>(acc: &mut [A; V], carried: A) {
    let mut slot = V - 1;
    while slot > 0 {
        acc[slot] = acc[slot - 1];
        slot -= 1;
    }
    acc[0] = carried;
}
