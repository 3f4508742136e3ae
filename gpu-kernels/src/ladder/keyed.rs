//! Block-wide reductions by key: the two of Timcheck's thesis (2017), in which streams of tagged items end in a reduction by tag, and
//! two to stand beside them.
//!
//! | kernel | of a set of an item a thread |
//! | --- | --- |
//! | [`sorted_tree`] | the block sorts by key; each key's values are combined by an interleaved tree in shared memory |
//! | [`warp_sorted`] | each warp sorts by key and reduces by key with shuffles; a block reduction for each key combines the warps |
//! | [`per_key`] | nothing is sorted: a block reduction for each key, to which other threads give the identity |
//! | [`sink`] | this library's [`TaggedSink`]: lanes with the same key find each other |
//!
//! A block folds one set after the other, none of which it meets again, and notes the multiprocessor's cycles that each took: from
//! before the set is read until its results are written.
//!
//! Keys are below `k`; a key that no item has gives the identity, which combines with whatever other warps have.
//!
//! # Errata
//!
//! - The interleaved loop as printed has no barrier between a round's reads and the next one's writes; warps that run ahead
//!   combine values that are not complete.
//!
//! Here a key's values are counted from its first one, so that a run may begin anywhere.

use warpfold_monoid::{Monoid, Plain};
use warpfold_simt::{
    global,
    shared::Shared,
    thread::{block_dim_x, block_idx_x, clock64, sync_threads, thread_idx_x},
    warp::{FULL, shuffle_down, shuffle_up, sync_warp},
};

use crate::{
    block::{self, Meeting, SortRoom, TaggedSink},
    warp,
};

/// The parameters of the kernels.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KeyedParams<Op: Monoid> {
    /// A key for each item.
    pub keys: *const u32,
    /// The items: a set for each block and round, of as many as a block has threads.
    pub items: *const Op::Item,
    /// A value for each set and key.
    pub values: *mut Op::Acc,
    /// For each set, how many cycles it took.
    pub cycles: *mut u64,
    /// Sets of a block.
    pub sets: u32,
    /// How many keys, at most as many as a block has threads.
    pub k: u32,
    /// The operator.
    pub op: Op,
}

/// Folds the block's sets: `fold` is given a thread's key and value, and leaves the keys' values in the table.
///
/// # Safety
///
/// The whole grid calls. `table` has a slot a key.
#[inline(always)]
unsafe fn over_sets<Op: Monoid>(
    params: &KeyedParams<Op>,
    table: Shared<Op::Acc>,
    fold: impl Fn(u32, Op::Acc),
) {
    let (block, thread, threads) = (block_idx_x(), thread_idx_x(), block_dim_x());
    let mut round = 0;
    while round < params.sets {
        let set = block as usize * params.sets as usize + round as usize;
        sync_threads();
        let start = clock64();
        if thread < params.k {
            // SAFETY: a thread's own slot; barriers lie around.
            unsafe { table.write(thread as usize, params.op.identity()) };
        }
        sync_threads();
        let place = set * threads as usize + thread as usize;
        // SAFETY: an item that there is.
        let (key, item) = unsafe {
            (global::load(params.keys.wrapping_add(place)), global::load(params.items.wrapping_add(place)))
        };
        fold(key, params.op.lift(item, place as u64));
        sync_threads();
        if thread < params.k {
            // SAFETY: written before the barrier; the set's own values.
            unsafe {
                let value = table.read(thread as usize);
                global::store(params.values.wrapping_add(set * params.k as usize + thread as usize), value);
            }
        }
        sync_threads();
        if thread == 0 {
            // SAFETY: the set's own place.
            unsafe { global::store(params.cycles.wrapping_add(set), clock64() - start) };
        }
        round += 1;
    }
}

/// The block sorts its items by key; then each key's values are combined by a tree over their places: every second one takes in
/// the next, every fourth the one two places on, and so on.
///
/// # Safety
///
/// The whole grid calls, of as many blocks as the sets are for. `room` has a slot a thread, `table` one a key, and nothing
/// else uses them. Keys are below `k`.
#[inline(always)]
pub unsafe fn sorted_tree<Op: Monoid>(
    params: &KeyedParams<Op>,
    room: SortRoom<u32, Op::Acc>,
    table: Shared<Op::Acc>,
) {
    let (thread, threads) = (thread_idx_x() as usize, block_dim_x() as usize);
    let fold = |key: u32, value: Op::Acc| {
        // SAFETY: the whole block; a thread's own slots, and others' behind barriers.
        unsafe {
            let (key, mut value) = block::sort_pairs(key, value, None, |a, b| a < b, room);
            room.keys.write(thread, key);
            room.values.write(thread, value);
            sync_threads();
            let place = thread - first_of(room.keys, key, thread);
            let mut distance = 1;
            while distance < threads {
                let partner = thread + distance;
                if place.is_multiple_of(2 * distance) && partner < threads && room.keys.read(partner) == key {
                    // Its place is no multiple of twice the distance: it does not write in this round.
                    value = params.op.combine(value, room.values.read(partner));
                    room.values.write(thread, value);
                }
                sync_threads();
                distance *= 2;
            }
            if place == 0 {
                table.write(key as usize, value);
            }
        }
    };
    // SAFETY: the caller's promise.
    unsafe { over_sets(params, table, fold) }
}

/// Where in sorted keys the first one of a value is, which also is at `at`.
///
/// # Safety
///
/// The keys are written, and a barrier lies in between.
#[inline(always)]
unsafe fn first_of<K: Plain + PartialOrd>(keys: Shared<K>, key: K, at: usize) -> usize {
    let (mut low, mut high) = (0, at);
    while low < high {
        let middle = (low + high) / 2;
        // SAFETY: below `at`.
        if unsafe { keys.read(middle) } < key {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Each warp sorts its items by key and reduces by key with shuffles; for each key, a block reduction combines what the warps
/// have.
///
/// # Safety
///
/// As for [`sorted_tree`], of whole warps, with a slot for each warp and key in `warps` and [`block::SHARED`] `slots`.
#[inline(always)]
pub unsafe fn warp_sorted<Op: Monoid>(
    params: &KeyedParams<Op>,
    warps: Shared<Op::Acc>,
    slots: Shared<Op::Acc>,
    table: Shared<Op::Acc>,
) {
    let (thread, count) = (thread_idx_x(), block_dim_x() / 32);
    let (warp, lane, k) = (thread / 32, thread % 32, params.k);
    let op = &params.op;
    let fold = |key: u32, value: Op::Acc| {
        // SAFETY: whole warps; a warp's own slots, and others' behind a barrier.
        unsafe {
            let mut slot = lane;
            while slot < k {
                warps.write((warp * k + slot) as usize, op.identity());
                slot += 32;
            }
            let (key, mut value) = warp::sort_pairs(key, value, 32, None, |a, b| a < b);
            let mut distance = 1;
            while distance < 32 {
                let (other, of) = (shuffle_down(FULL, value, distance), shuffle_down(FULL, key, distance));
                if lane + distance < 32 && of == key {
                    value = op.combine(value, other);
                }
                distance *= 2;
            }
            let before = shuffle_up(FULL, key, 1);
            sync_warp(FULL);
            if lane == 0 || before != key {
                warps.write((warp * k + key) as usize, value);
            }
            sync_threads();
            let mut key = 0;
            while key < k {
                let value = warps.read((thread.min(count - 1) * k + key) as usize);
                if let Some(total) = block::reduce(op, value, Some(count), slots) {
                    table.write(key as usize, total);
                }
                sync_threads();
                key += 1;
            }
        }
    };
    // SAFETY: the caller's promise.
    unsafe { over_sets(params, table, fold) }
}

/// For each key a block reduction, to which threads with another key give the identity.
///
/// # Safety
///
/// As for [`sorted_tree`], with [`block::SHARED`] `slots`.
#[inline(always)]
pub unsafe fn per_key<Op: Monoid>(params: &KeyedParams<Op>, slots: Shared<Op::Acc>, table: Shared<Op::Acc>) {
    let op = &params.op;
    let fold = |key: u32, value: Op::Acc| {
        let mut now = 0;
        while now < params.k {
            let value = if key == now { value } else { op.identity() };
            // SAFETY: the whole block; a barrier lies between uses of the slots.
            if let Some(total) = unsafe { block::reduce(op, value, None, slots) } {
                // SAFETY: thread 0 alone.
                unsafe { table.write(now as usize, total) };
            }
            sync_threads();
            now += 1;
        }
    };
    // SAFETY: the caller's promise.
    unsafe { over_sets(params, table, fold) }
}

/// The parameters of [`sink`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SinkParams<Op: Monoid> {
    /// The sets; no values are written for them.
    pub sets: KeyedParams<Op>,
    /// Where the grid's blocks meet at the end.
    pub meeting: Meeting<Op>,
    /// For each block, how many cycles its flush took.
    pub flushed: *mut u64,
}

/// All sets are pushed to a sink, which keeps a value for each key and warp; the cycles noted are those of a push. At the end
/// comes a flush, in which the last block combines all.
///
/// # Safety
///
/// The whole grid calls, of as many blocks as the sets are for, of whole warps. `accs` and `there` have a slot for each warp and
/// key, `last` one, and the meeting leads to room for the grid and `k` keys; nothing else uses them.
#[inline(always)]
pub unsafe fn sink<Op: Monoid>(
    params: &SinkParams<Op>,
    accs: Shared<Op::Acc>,
    there: Shared<u32>,
    last: Shared<u32>,
) {
    let SinkParams { sets: params, meeting, flushed } = params;
    let (block, thread, threads) = (block_idx_x() as usize, thread_idx_x() as usize, block_dim_x() as usize);
    // SAFETY: the caller's promise.
    unsafe {
        let mut sink = TaggedSink::new(&params.op, params.k, accs, there);
        let mut round = 0;
        while round < params.sets {
            let set = block * params.sets as usize + round as usize;
            sync_threads();
            let start = clock64();
            let place = set * threads + thread;
            let key = global::load(params.keys.wrapping_add(place));
            let item = global::load(params.items.wrapping_add(place));
            sink.push(Some((key, item)), place as u64);
            sync_threads();
            if thread == 0 {
                global::store(params.cycles.wrapping_add(set), clock64() - start);
            }
            round += 1;
        }
        sync_threads();
        let start = clock64();
        sink.flush(meeting, last);
        sync_threads();
        if thread == 0 {
            global::store(flushed.wrapping_add(block), clock64() - start);
        }
    }
}
