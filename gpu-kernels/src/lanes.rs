//! One group of threads folds a contiguous run of items into the lanes of the canonical tree.
//!
//! A thread holds a *group* of `V` neighbouring lanes, the slots of one 16-byte vector. Where the items start off a
//! 16-byte boundary, the first `head` items come before the first aligned vector, and a vector's slots hold lanes
//! shifted by `head`: lanes go by index, not by address, so the shift is undone before the lanes combine.

use core::mem::MaybeUninit;

use warpfold_monoid::{Monoid, Plain, tree::VECTOR_BYTES};
use warpfold_simt::{
    global::{
        self,
        hint::{NoAllocate, Plainly},
    },
    hint::{cold_path, nounroll, opaque},
    shared::Shared,
    thread::sync_threads,
    warp::{FULL, lane_id, shuffle_idx, shuffle_up, warp_vote_any},
};

use crate::{device::VECTORS_IN_FLIGHT, ordered::shift_words, warp::Present};

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
    // Where not even the items lie at multiples of their size, no start is better than another.
    let astray = align_of::<Op::Item>() < size && !(items as usize).is_multiple_of(size);
    let head = if V == 1 || astray {
        0
    } else {
        let past = (items as usize / size) % V;
        (((V - past) % V) as u64).min(len) as u32
    };
    let astray = astray && global::is_vector::<Op::Item, V>();
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
    let vectors = (rest / V as u64) as u32;
    let tail = (rest % V as u64) as u32;

    // The tail's items are asked for first and taken last, so that their latency is hidden.
    let owns_tail = tail > 0 && thread == vectors & (groups - 1);
    let mut tail_items = [None; V];
    if owns_tail {
        let items = body.wrapping_add(vectors as usize * V);
        let mut slot = 0;
        while slot < V {
            if (slot as u32) < tail {
                // SAFETY: vectors * V + slot < rest.
                tail_items[slot] = Some(unsafe { global::load(items.wrapping_add(slot)) });
            }
            slot += 1;
        }
    }

    if thread < vectors {
        // This thread's vectors are `thread`, `thread + groups`, ...: `left` in all.
        let mut left = ((vectors - thread - 1) >> groups.trailing_zeros()) + 1;
        let stride = groups as usize * V;
        let mut next = body.wrapping_add(thread as usize * V);
        let mut index = base + (thread as usize * V) as u64;
        let mut all_begun = false;
        // One body for the first batch, whole ones and the last, so that code stays small.
        while left > 0 {
            nounroll();
            let count = left.min(U as u32);
            // SAFETY: `left` vectors follow.
            let batch = unsafe { load_up_to::<Op::Item, V, U>(next, stride, count, astray) };
            // SAFETY: `count` is at least 1.
            let first = unsafe { batch[0].assume_init() };
            let mut slot = 0;
            while slot < V {
                acc[slot] = if all_begun || begun[slot] {
                    op.push(acc[slot], first[slot], index + slot as u64)
                } else {
                    op.lift(first[slot], index + slot as u64)
                };
                slot += 1;
            }
            let mut u = 1;
            while u < U {
                if (u as u32) < count {
                    // SAFETY: vector `u` is there.
                    let vector = unsafe { batch[u].assume_init() };
                    acc = push_vector(op, acc, vector, index + (u * stride) as u64);
                }
                u += 1;
            }
            // Not known to be true, or else the first round would get a body of its own.
            all_begun = opaque(1) != 0;
            next = next.wrapping_add(U * stride);
            index += (U * stride) as u64;
            left -= count;
        }
        begun = [true; V];
    }

    let mut slot = 0;
    while slot < V {
        if let Some(item) = tail_items[slot] {
            let index = base + vectors as u64 * V as u64 + slot as u64;
            acc[slot] = if begun[slot] { op.push(acc[slot], item, index) } else { op.lift(item, index) };
        }
        slot += 1;
    }
    Lanes { acc, head }
}

/// Folds a run of items that fills every lane: aligned to a vector, and `batches` times `U` vectors for every group.
///
/// Slot `s` of the result holds lane `V * thread + s`. The same order as [`fold`], in far fewer instructions: short
/// reductions are bound by fetching those.
///
/// # Safety
///
/// `items` points to item `start` and is aligned to a vector; `batches` (at least 1) times `U * V * groups` items are
/// readable behind it.
#[inline(always)]
pub unsafe fn fold_whole<Op: Monoid, const V: usize, const U: usize>(
    op: &Op,
    items: *const Op::Item,
    start: u64,
    batches: u32,
    thread: u32,
    groups: u32,
) -> [Op::Acc; V] {
    let stride = groups as usize * V;
    let mut next = items.wrapping_add(thread as usize * V);
    let mut index = start + (thread as usize * V) as u64;
    // SAFETY: the first batch.
    let batch = unsafe { load_batch::<Op::Item, V, U>(next, stride) };
    let mut acc = op.fold_rows(None, batch, index, stride as u64);
    let mut left = batches - 1;
    while left > 0 {
        nounroll();
        next = next.wrapping_add(U * stride);
        index += (U * stride) as u64;
        // SAFETY: `left` batches follow.
        let batch = unsafe { load_batch::<Op::Item, V, U>(next, stride) };
        acc = op.fold_rows(Some(acc), batch, index, stride as u64);
        left -= 1;
    }
    acc
}

/// Takes what follows into lanes that all hold something: the lanes that [`fold_whole`] gave, and `len` items behind its own.
///
/// # Safety
///
/// `items` points to item `start` and is aligned to a vector, with `len` items readable behind it.
#[inline(always)]
pub unsafe fn fold_rest<Op: Monoid, const V: usize>(
    op: &Op,
    mut acc: [Op::Acc; V],
    items: *const Op::Item,
    start: u64,
    len: u64,
    thread: u32,
    groups: u32,
) -> [Op::Acc; V] {
    let (vectors, tail) = ((len / V as u64) as u32, len % V as u64);
    let mut w = thread;
    while w < vectors {
        nounroll();
        let first = w as usize * V;
        // SAFETY: a vector of the items.
        let row = unsafe { load_batch::<Op::Item, V, 1>(items.wrapping_add(first), 0) };
        acc = op.fold_rows(Some(acc), row, start + first as u64, 0);
        w += groups;
    }
    if V > 1 && tail > 0 && thread == vectors & (groups - 1) {
        let first = vectors as usize * V;
        let mut slot = 0;
        while slot < V {
            if (slot as u64) < tail {
                // SAFETY: behind the last whole vector, before the end.
                let item = unsafe { global::load(items.wrapping_add(first + slot)) };
                acc[slot] = op.push(acc[slot], item, start + (first + slot) as u64);
            }
            slot += 1;
        }
    }
    acc
}

/// Memory that may be read: from an address to another.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// The first byte.
    pub start: usize,
    /// Behind the last.
    pub end: usize,
}

/// Folds items `start .. start + len` of an array into lanes, as [`fold`]: at most [`VECTORS_IN_FLIGHT`] vectors for each
/// thread.
///
/// Slot `s` of the result holds lane `V * thread + s`, wherever the items start. From off a 16-byte boundary, items of four
/// bytes and more are read one by one: what one load of a warp leaves of the lines that it touches, the next ones find in
/// L1. Of smaller ones a thread reads the two aligned vectors that its items lie in and shifts their words; the second comes
/// from L1, where the next thread's load brings it, too.
///
/// # Safety
///
/// `items` points to item `start`, with `len` items readable behind it; all of `reach` is readable.
#[inline(always)]
pub unsafe fn fold_in_place<Op: Monoid, const V: usize>(
    op: &Op,
    reach: Reach,
    items: *const Op::Item,
    start: u64,
    len: u32,
    thread: u32,
    groups: u32,
) -> [Op::Acc; V] {
    let mut acc = [op.identity(); V];
    let vectors = len / V as u32;
    let stride = groups as usize * V;
    let first = thread as usize * V;
    let (mut next, mut index) = (items.wrapping_add(first), start + first as u64);
    let mut w = thread;
    if !global::is_vector::<Op::Item, V>() || items.addr().is_multiple_of(size_of::<[Op::Item; V]>()) {
        let batch: [_; VECTORS_IN_FLIGHT] = core::array::from_fn(|u| {
            // SAFETY: a vector of the array. Nothing is read twice.
            unsafe {
                global::load_neighbours_if::<NoAllocate, Op::Item, V>(
                    w + u as u32 * groups < vectors,
                    next.wrapping_add(u * stride),
                )
            }
        });
        let mut u = 0;
        while u < VECTORS_IN_FLIGHT {
            if w + (u as u32 * groups) < vectors {
                // SAFETY: loaded under the same condition.
                let vector = unsafe { batch[u].assume_init() };
                let index = index + (u * stride) as u64;
                acc =
                    if u == 0 { lift_vector(op, vector, index) } else { push_vector(op, acc, vector, index) };
            }
            u += 1;
        }
    } else if size_of::<Op::Item>() >= 4 {
        cold_path();
        let batch: [[_; V]; VECTORS_IN_FLIGHT] = core::array::from_fn(|u| {
            let there = w + (u as u32 * groups) < vectors;
            // SAFETY: items of the array.
            core::array::from_fn(|slot| unsafe {
                global::load_if::<Plainly, Op::Item>(there, next.wrapping_add(u * stride + slot))
            })
        });
        let mut u = 0;
        while u < VECTORS_IN_FLIGHT {
            if w + (u as u32 * groups) < vectors {
                // SAFETY: loaded under the same condition.
                let vector = core::array::from_fn(|slot| unsafe { batch[u][slot].assume_init() });
                let index = index + (u * stride) as u64;
                acc =
                    if u == 0 { lift_vector(op, vector, index) } else { push_vector(op, acc, vector, index) };
            }
            u += 1;
        }
    } else {
        cold_path();
        let mut begun = false;
        while w < vectors {
            nounroll();
            // Two at once; the last stands in for a second one that is not there.
            let both = w + groups < vectors;
            let second = next.wrapping_add(if both { stride } else { 0 });
            // SAFETY: vectors of the array.
            let [a, b] = unsafe { load_astray::<Op::Item, V>(reach, [next, second]) };
            acc = if begun { push_vector(op, acc, a, index) } else { lift_vector(op, a, index) };
            if both {
                acc = push_vector(op, acc, b, index + stride as u64);
            }
            begun = opaque(1) != 0;
            w += 2 * groups;
            next = next.wrapping_add(2 * stride);
            index += 2 * stride as u64;
        }
    }
    let tail = len % V as u32;
    if V > 1 && tail > 0 && thread == vectors & (groups - 1) {
        cold_path();
        let begun = vectors >= groups;
        let at = vectors as usize * V;
        let mut slot = 0;
        while slot < V {
            if (slot as u32) < tail {
                // SAFETY: behind the last whole vector, before the end.
                let item = unsafe { global::load(items.wrapping_add(at + slot)) };
                let index = start + (at + slot) as u64;
                acc[slot] = if begun { op.push(acc[slot], item, index) } else { op.lift(item, index) };
            }
            slot += 1;
        }
    }
    acc
}

/// Loads `V` neighbours from each of two addresses that are off a 16-byte boundary by the same.
///
/// # Safety
///
/// They are readable, and so is all of `reach`.
#[inline(always)]
unsafe fn load_astray<T: Plain, const V: usize>(reach: Reach, items: [*const T; 2]) -> [[T; V]; 2] {
    const WORDS: usize = 8;
    let shift = items[0].addr() % VECTOR_BYTES;
    let first = items.map(|items| items.cast::<u8>().wrapping_sub(shift));
    let inside = first[0].addr() >= reach.start && first[1].addr() + 2 * VECTOR_BYTES <= reach.end;
    if size_of::<[T; V]>() == VECTOR_BYTES && inside {
        let words: [[[u32; 4]; 2]; 2] = core::array::from_fn(|i| {
            core::array::from_fn(|half| {
                let from = first[i].wrapping_add(half * VECTOR_BYTES).cast::<u32>();
                // SAFETY: an aligned vector that may be read: the addresses rise.
                unsafe { global::load_vector(from) }
            })
        });
        return words.map(|[a, b]| {
            let mut words: [u32; WORDS] = [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]];
            shift_words::<2, WORDS>(&mut words, shift & 8 != 0);
            shift_words::<1, WORDS>(&mut words, shift & 4 != 0);
            let bits = (shift as u32 & 3) * 8;
            if align_of::<T>() < 4 && bits != 0 {
                let mut i = 0;
                while i < WORDS - 1 {
                    words[i] = words[i] >> bits | words[i + 1] << (32 - bits);
                    i += 1;
                }
            }
            // SAFETY: `V` items of plain data are the first 16 bytes.
            unsafe { core::mem::transmute_copy::<[u32; WORDS], [T; V]>(&words) }
        });
    }
    cold_path();
    // SAFETY: the caller's promise.
    items.map(|items| core::array::from_fn(|slot| unsafe { global::load(items.wrapping_add(slot)) }))
}

/// Starts the lanes with one vector; `index` is that of its first item.
#[inline(always)]
pub(crate) fn lift_vector<Op: Monoid, const V: usize>(
    op: &Op,
    vector: [Op::Item; V],
    index: u64,
) -> [Op::Acc; V] {
    core::array::from_fn(|slot| op.lift(vector[slot], index + slot as u64))
}

/// Takes one vector into the lanes; `index` is that of its first item.
#[inline(always)]
pub(crate) fn push_vector<Op: Monoid, const V: usize>(
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

/// Loads `U` vectors, `stride` items apart, all in flight together.
///
/// # Safety
///
/// `first` is aligned to a vector (to an item, where its items make none), and all of them are readable.
#[inline(always)]
unsafe fn load_batch<T: Plain, const V: usize, const U: usize>(
    first: *const T,
    stride: usize,
) -> [[T; V]; U] {
    // Nothing is read twice.
    // SAFETY: the caller's promise.
    core::array::from_fn(|u| unsafe {
        global::load_neighbours_with::<NoAllocate, T, V>(first.wrapping_add(u * stride))
    })
}

/// The same of the first `count` (at least 1). Loads of vectors stand behind predicates, or else the assembler would move each
/// to the branch that uses it, where it waits for the one before. (Those of items of 16 bytes and more it leaves in place, and
/// gets by with the last one for the rest.)
///
/// # Safety
///
/// `first` is aligned to a vector (to an item, where its items make none, or it is `astray`), and `count` vectors are
/// readable.
#[inline(always)]
unsafe fn load_up_to<T: Plain, const V: usize, const U: usize>(
    first: *const T,
    stride: usize,
    count: u32,
    astray: bool,
) -> [MaybeUninit<[T; V]>; U] {
    core::array::from_fn(|u| {
        if V == 1 {
            let item = first.wrapping_add((u as u32).min(count - 1) as usize * stride);
            // SAFETY: the caller's promise; indices stay below `count`.
            return MaybeUninit::new([unsafe { global::load(item) }; V]);
        }
        let (wanted, vector) = ((u as u32) < count, first.wrapping_add(u * stride));
        if astray {
            cold_path();
            // SAFETY: the caller's promise.
            unsafe { global::load_if::<Plainly, [T; V]>(wanted, vector.cast()) }
        } else {
            // SAFETY: the caller's promise.
            unsafe { global::load_neighbours_if::<Plainly, T, V>(wanted, vector) }
        }
    })
}

/// Combines a thread's own slots pairwise, neighbours first: the value of lanes `V * thread ..`. The slots of lanes
/// that `present` (counted over all threads) leaves out are never combined.
#[inline(always)]
pub fn combine_slots<Op: Monoid, const V: usize>(
    op: &Op,
    mut acc: [Op::Acc; V],
    thread: u32,
    present: Present,
) -> Op::Acc {
    let first = thread * V as u32;
    let mut distance = 1;
    while distance < V {
        let mut slot = 0;
        while slot + distance < V {
            if present.is_none_or(|count| first + ((slot + distance) as u32) < count) {
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
/// position among them.
///
/// # Safety
///
/// All 32 lanes of the warp call, with the same `groups`; `head` is the same in a group.
#[inline(always)]
pub unsafe fn unshift_warp<A: Plain, const V: usize>(lanes: Lanes<A, V>, thread: u32, groups: u32) -> [A; V] {
    let Lanes { mut acc, head } = lanes;
    // SAFETY: all lanes are here.
    if V == 1 || !unsafe { warp_vote_any(FULL, head > 0) } {
        return acc;
    }
    let lane = lane_id();
    let source = lane - thread + (thread.wrapping_sub(1) & (groups - 1));
    let mut shift = 0;
    while shift < V as u32 - 1 {
        nounroll();
        // SAFETY: all lanes are here.
        let carried = unsafe { shuffle_idx(FULL, acc[V - 1], source) };
        if shift < head {
            rotate(&mut acc, carried);
        }
        shift += 1;
    }
    acc
}

/// The same across a block of `groups` threads (a power of two, more than 32).
///
/// # Safety
///
/// All threads of the block call, with the same `head`; `shared` has a slot a warp, which are not in use before and
/// are free again after.
#[inline(always)]
pub unsafe fn unshift_block<A: Plain, const V: usize>(
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
        // SAFETY: all threads are here.
        let mut carried = unsafe { shuffle_up(FULL, acc[V - 1], 1) };
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
