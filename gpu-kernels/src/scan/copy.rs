//! A block copies neighbouring items to shared memory, and results from there: by vectors, which are vectors there too or are
//! taken apart.

use core::mem::MaybeUninit;

use warpfold_monoid::{Plain, tree::vector_len};
use warpfold_simt::{
    global::{self, hint::NoAllocate},
    hint::nounroll,
    shared::Shared,
    thread::{block_dim_x, thread_idx_x},
};

use super::{Word, get, is_word, put};

/// Vectors that a thread has in flight while a tile is filled.
const fn in_flight<T>() -> usize {
    // A register for each item, however narrow.
    let vectors = 32 / vector_len(size_of::<T>());
    if vectors > 8 { 8 } else { vectors }
}

/// How many items an address lies behind that of a vector, if it is one of an item.
#[inline(always)]
fn past<T, const V: usize>(first: *const T) -> Option<u32> {
    let size = size_of::<T>();
    if !is_word::<T>() || !first.addr().is_multiple_of(size) {
        return None;
    }
    Some((first.addr() / size % V) as u32)
}

/// How many items lie before the first vector, and how many vectors there are.
#[inline(always)]
fn vectors_of<T, const V: usize>(first: *const T, count: u32) -> (u32, u32) {
    let Some(past) = past::<T, V>(first) else { return (count, 0) };
    let head = if past > 0 { (V as u32 - past).min(count) } else { 0 };
    (head, (count - head) / V as u32)
}

/// Places that are left out before the items, so that vectors in memory are vectors in shared memory, if there is room.
#[inline(always)]
pub(super) fn pad<T, const V: usize>(items: *const T, size: u32, slots: u32) -> u32 {
    match past::<T, V>(items) {
        Some(past) if past + size <= slots => past,
        _ => 0,
    }
}

/// A block copies items to shared memory, item `i` to `place(i)`. They may be read after a barrier. `whole` says whether vectors, if so
/// many items lie before the first, are vectors there too.
///
/// # Safety
///
/// The whole block calls; `items` points to `count` readable items; their places are in `stage`, which is not in use.
#[inline(always)]
pub(super) unsafe fn fill<T: Plain, const V: usize>(
    items: *const T,
    count: u32,
    whole: impl Fn(u32, u32) -> bool,
    place: impl Fn(u32) -> usize,
    stage: Shared<Word>,
) {
    let (thread, threads) = (thread_idx_x(), block_dim_x());
    let (head, vectors) = vectors_of::<T, V>(items, count);
    let whole = whole(head, V as u32);
    let from = items.wrapping_add(head as usize);
    let mut next = thread;
    while next < vectors {
        nounroll();
        let in_flight = const { in_flight::<T>() };
        let mut batch = [MaybeUninit::<[T; V]>::uninit(); 8];
        let mut u = 0;
        while u < in_flight {
            let w = next + u as u32 * threads;
            let first = from.wrapping_add(w as usize * V);
            // SAFETY: an aligned vector that there is.
            batch[u] = unsafe { global::load_neighbours_if::<NoAllocate, T, V>(w < vectors, first) };
            u += 1;
        }
        let mut u = 0;
        while u < in_flight {
            let w = next + u as u32 * threads;
            if w < vectors {
                // SAFETY: loaded under the same condition.
                let vector = unsafe { batch[u].assume_init() };
                let i = head + w * V as u32;
                if whole {
                    // SAFETY: 16 bytes either way, as there are vectors; the vector's own place.
                    unsafe {
                        stage.write(place(i) / V, core::mem::transmute_copy::<[T; V], Word>(&vector));
                    }
                } else {
                    let mut j = 0;
                    while j < V {
                        // SAFETY: the item's own place.
                        unsafe { put(stage, place(i + j as u32), vector[j]) };
                        j += 1;
                    }
                }
            }
            u += 1;
        }
        next += in_flight as u32 * threads;
    }
    let mut i = thread;
    while i < count - vectors * V as u32 {
        nounroll();
        let number = if i < head { i } else { i + vectors * V as u32 };
        // SAFETY: an item that there is, and its own place.
        unsafe { put(stage, place(number), global::load(items.wrapping_add(number as usize))) };
        i += threads;
    }
}

/// The other way: a block copies results from shared memory.
///
/// # Safety
///
/// The whole block calls; `results` points to `count` writable places; they have been staged, and a barrier lies since.
#[inline(always)]
pub(super) unsafe fn empty<T: Plain, const V: usize>(
    results: *mut T,
    count: u32,
    whole: impl Fn(u32, u32) -> bool,
    place: impl Fn(u32) -> usize,
    stage: Shared<Word>,
) {
    let (thread, threads) = (thread_idx_x(), block_dim_x());
    let (head, vectors) = vectors_of::<T, V>(results, count);
    let whole = whole(head, V as u32);
    let to = results.wrapping_add(head as usize);
    let mut w = thread;
    while w < vectors {
        nounroll();
        // SAFETY: results that there are; an aligned vector, 16 bytes either way.
        unsafe {
            let i = head + w * V as u32;
            let word = if whole {
                stage.read(place(i) / V)
            } else {
                let vector: [T; V] = core::array::from_fn(|j| get::<T>(stage, place(i + j as u32)));
                core::mem::transmute_copy(&vector)
            };
            global::store(to.wrapping_add(w as usize * V).cast::<Word>(), word);
        }
        w += threads;
    }
    let mut i = thread;
    while i < count - vectors * V as u32 {
        nounroll();
        let number = if i < head { i } else { i + vectors * V as u32 };
        // SAFETY: a result that there is.
        unsafe { global::store(results.wrapping_add(number as usize), get::<T>(stage, place(number))) };
        i += threads;
    }
}
