//! What R. W. Larsen's thesis (2017) leaves to future work, as kernels: see [`thesis`] for what they stand beside.
//!
//! | kernel | in place of |
//! | --- | --- |
//! | [`small_by_flags`] | *small*'s scan: a tree, each of whose nodes knows whether a segment begins in it |
//! | [`small_by_index`] | the same: a tree in each segment, whose threads know their place by arithmetic |
//! | [`loop_in_map_parts`] | a thread a segment: several, each of which takes a part of it |
//! | [`large_vectors`] | an item a load |

use warpfold_monoid::Monoid;
use warpfold_simt::{
    global,
    shared::{Shared, dynamic_shared},
    thread::{block_dim_x, block_idx_x, sync_threads, thread_idx_x},
};

use super::thesis::{self, Seat, Share, ThesisParams};
use crate::segments::tile::Word;

/// A tree in each segment: the thread at every second place takes in the next, at every fourth the one two places on, ...
///
/// # Safety
///
/// As for [`small`](thesis::small).
#[inline(always)]
pub unsafe fn small_by_index<Op: Monoid>(params: &ThesisParams<Op>) {
    let at = Seat::here(params.segments, params.length);
    let thread = thread_idx_x() as usize;
    // SAFETY: the caller's promise; barriers lie between levels.
    unsafe {
        let mut value = at.value::<Op, false>(params);
        let (values, _) = thesis::room::<Op::Acc>();
        values.write(thread, value);
        let mut distance = 1;
        while distance < at.length {
            sync_threads();
            // The partner's place is below the length, so it is a thread of the same segment.
            if at.is_active && at.index.is_multiple_of(2 * distance) && at.index + distance < at.length {
                value = params.op.combine(value, values.read(thread + distance as usize));
                values.write(thread, value);
            }
            distance *= 2;
        }
        if at.is_active && at.index == 0 {
            params.put(at.segment, at.segment, value);
        }
    }
}

/// Bytes of dynamic shared memory of [`small_by_flags`].
pub const fn flags_bytes<Acc>(threads: usize) -> usize {
    (2 * value_words::<Acc>(threads) + 2 * threads.div_ceil(size_of::<Word>())) * size_of::<Word>()
}

const fn value_words<Acc>(threads: usize) -> usize {
    (threads * size_of::<Acc>()).div_ceil(size_of::<Word>())
}

/// A tree over the group, in which a node has what stands before the first begin of a segment in it, and what stands behind the last
/// one. Where a node with a begin meets another on its right, a segment is complete, and is written.
///
/// It combines at most as often as there are items, where a scan does so for every thread at every level.
///
/// # Safety
///
/// As for [`small`](thesis::small), with [`flags_bytes`] of dynamic shared memory.
#[inline(always)]
pub unsafe fn small_by_flags<Op: Monoid>(params: &ThesisParams<Op>) {
    let at = Seat::here(params.segments, params.length);
    let (thread, threads) = (thread_idx_x() as usize, block_dim_x() as usize);
    let op = &params.op;
    // SAFETY: the caller's promise; a node is its first thread's, and barriers lie between levels.
    unsafe {
        let words = value_words::<Op::Acc>(threads);
        let all = dynamic_shared::<Word>(flags_bytes::<Op::Acc>(threads) / size_of::<Word>());
        let befores = all.first(words).cast::<Op::Acc>();
        let behinds = all.from(words).first(words).cast::<Op::Acc>();
        let flags = all.from(2 * words).cast::<u8>();
        // Does a segment begin in the node; does one begin with it?
        let (begins, opens) = (flags.first(threads), flags.from(threads.next_multiple_of(size_of::<Word>())));

        // Threads without an item are each a segment of their own, which nobody writes.
        let is_first = at.index == 0 || !at.is_active;
        let mut begin = is_first;
        let mut behind = at.value::<Op, false>(params);
        befores.write(thread, behind);
        behinds.write(thread, behind);
        begins.write(thread, begin as u8);
        opens.write(thread, is_first as u8);
        let mut distance = 1;
        while distance < threads {
            sync_threads();
            let right = thread + distance;
            if thread.is_multiple_of(2 * distance) && right < threads {
                if begins.read(right) != 0 {
                    // The piece that ends where the first segment of the right node begins.
                    let piece =
                        if opens.read(right) != 0 { behind } else { op.combine(behind, befores.read(right)) };
                    if begin {
                        write_piece(params, &at, right - 1, piece);
                    } else {
                        befores.write(thread, piece);
                    }
                    begin = true;
                    behind = behinds.read(right);
                } else {
                    behind = op.combine(behind, behinds.read(right));
                }
                begins.write(thread, begin as u8);
                behinds.write(thread, behind);
            }
            distance *= 2;
        }
        if thread == 0 {
            write_piece(params, &at, threads - 1, behind);
        }
    }
}

/// Writes the value of the segment to which a thread of this group belongs, if there is one.
///
/// # Safety
///
/// The value is complete.
#[inline(always)]
unsafe fn write_piece<Op: Monoid>(params: &ThesisParams<Op>, at: &Seat, thread: usize, value: Op::Acc) {
    let of_group = block_dim_x() / at.length;
    let place = thread as u32 / at.length;
    let segment = block_idx_x() as u64 * of_group as u64 + place as u64;
    if place < of_group && segment < params.segments {
        // SAFETY: the caller's promise.
        unsafe { params.put(segment, segment, value) };
    }
}

/// The parameters of [`loop_in_map_parts`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PartsParams<Op: Monoid> {
    /// Of one thread a segment.
    pub of: ThesisParams<Op>,
    /// Threads that take a segment: a power of two.
    pub parts: u32,
}

/// `parts` threads take a segment of a [`TRANSPOSED`](thesis::TRANSPOSED) array, each a run of neighbouring items; those of
/// neighbouring segments read side by side. A tree combines the parts, in order.
///
/// # Safety
///
/// The grid has `parts` threads for each segment; `parts` divides the group. It has
/// [`room_bytes`](thesis::room_bytes) of dynamic shared memory. The rest as for [`loop_in_map`](thesis::loop_in_map).
#[inline(always)]
pub unsafe fn loop_in_map_parts<Op: Monoid>(params: &PartsParams<Op>) {
    let PartsParams { of: params, parts } = *params;
    let (thread, beside) = (thread_idx_x(), block_dim_x() / parts);
    let part = thread / beside;
    let segment = block_idx_x() as u64 * beside as u64 + (thread % beside) as u64;
    let is_there = segment < params.segments;
    let chunk = params.length.div_ceil(parts as u64);
    let index = part as u64 * chunk;
    let count = if is_there && index < params.length { chunk.min(params.length - index) } else { 0 };
    let (first, step) = (index * params.segments + segment, params.segments);
    // SAFETY: the caller's promise; barriers lie between levels.
    unsafe {
        let mut value = params.fold::<false>(Share { first, step, count, index, index_step: 1 });
        let (values, _) = thesis::room::<Op::Acc>();
        values.write(thread as usize, value);
        let mut distance = 1;
        while distance < parts {
            sync_threads();
            if part.is_multiple_of(2 * distance) && part + distance < parts {
                value = params.op.combine(value, values.read((thread + distance * beside) as usize));
                values.write(thread as usize, value);
            }
            distance *= 2;
        }
        if is_there && part == 0 {
            params.put(segment, segment, value);
        }
    }
}

/// [`large`](thesis::large), [`STRIDED`](thesis::STRIDED), by vectors of `V` items.
///
/// # Safety
///
/// As for [`large`](thesis::large). `V` divides the length, and the items are aligned to vectors of `V`.
#[inline(always)]
pub unsafe fn large_vectors<Op: Monoid, const V: usize>(params: &ThesisParams<Op>) {
    let (group, threads) = (block_idx_x() as u64, block_dim_x() as u64);
    let (segment, part) = (group / params.groups, group % params.groups);
    let op = &params.op;
    let mut acc = None;
    let mut vector = part * threads + thread_idx_x() as u64;
    while vector < params.length / V as u64 {
        let index = vector * V as u64;
        let place = (segment * params.length + index) as usize;
        // SAFETY: items that there are, aligned.
        let items = unsafe { global::load_vector::<Op::Item, V>(params.items.wrapping_add(place)) };
        let mut k = 0;
        while k < V {
            let i = index + k as u64;
            acc = Some(acc.map_or_else(|| op.lift(items[k], i), |acc| op.push(acc, items[k], i)));
            k += 1;
        }
        vector += threads * params.groups;
    }
    let value = acc.unwrap_or_else(|| op.identity());
    // SAFETY: the caller's promise; the result is thread 0's.
    unsafe {
        let (values, _): (Shared<Op::Acc>, _) = thesis::room();
        let value = thesis::group_reduce::<Op, { thesis::WAVES }>(op, value, values);
        if thread_idx_x() == 0 {
            params.put(segment, group, value);
        }
    }
}
