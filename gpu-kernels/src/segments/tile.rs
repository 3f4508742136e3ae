//! A contiguous run of items in shared memory, and what small groups of threads fold from there.

use warpfold_monoid::{Monoid, Plain, tree::VECTORS_A_GROUP};
use warpfold_simt::{
    global::{self, hint::NoAllocate},
    hint::{cold_path, nounroll},
    shared::Shared,
    warp::{FULL, shuffle_down},
};

use crate::lanes;

/// 16 bytes of shared memory, accessed at once.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub struct Word([u32; 4]);

// SAFETY: repr(C), no padding.
unsafe impl Plain for Word {}

/// Bytes of items that a tile holds.
pub const TILE_BYTES: usize = 16 << 10;

/// Words of shared memory that a tile takes: its items need not start at a word's start.
pub const TILE_WORDS: usize = TILE_BYTES / size_of::<Word>() + 2;

/// Vectors that a thread has in flight while it fills a tile.
const IN_FLIGHT: usize = 4;

/// Vectors of a group, as a number of loop rounds.
const ROUNDS: u32 = VECTORS_A_GROUP as u32;

/// Items in shared memory: item `i` lies at place `past + i`.
#[derive(Clone, Copy, Debug)]
pub struct Tile<T> {
    items: Shared<T>,
    words: Shared<Word>,
    past: u32,
}

impl<T: Plain> Tile<T> {
    /// A block copies `count` items to shared memory. They may be read after a barrier.
    ///
    /// # Safety
    ///
    /// The whole block of `threads` calls, with the same arguments but for `thread`; `items` points to `count` readable
    /// items, at most [`TILE_BYTES`] of them; nothing else uses `words`, and a barrier lies since it did.
    #[inline(always)]
    pub unsafe fn fill<const V: usize>(
        items: *const T,
        count: u32,
        thread: u32,
        threads: u32,
        words: Shared<Word>,
    ) -> Tile<T> {
        let size = size_of::<T>();
        // SAFETY: plain data, aligned to 16 bytes at most.
        let places = unsafe { words.cast::<T>() };
        if !is_word::<T, V>() || !items.addr().is_multiple_of(size) {
            cold_path();
            let mut i = thread;
            while i < count {
                nounroll();
                // SAFETY: below `count`.
                unsafe { places.write(i as usize, global::load(items.wrapping_add(i as usize))) };
                i += threads;
            }
            return Tile { items: places, words, past: 0 };
        }
        // Vector `w` holds places `V * w ..`; those at the edges are not all there.
        let past = (items.addr() / size % V) as u32;
        let body = if past > 0 { V as u32 - past } else { 0 };
        let head = body.min(count);
        let vectors = (count - head) / V as u32;
        let edges = count - vectors * V as u32;
        let first_word = past.div_ceil(V as u32);
        let from = items.wrapping_add(head as usize);
        let mut next = thread;
        while next < vectors {
            nounroll();
            let mut batch = [core::mem::MaybeUninit::<[T; V]>::uninit(); IN_FLIGHT];
            let mut u = 0;
            while u < IN_FLIGHT {
                let w = next + u as u32 * threads;
                // SAFETY: `vectors` aligned vectors are there; nothing is read twice.
                batch[u] = unsafe {
                    global::load_neighbours_if::<NoAllocate, T, V>(
                        w < vectors,
                        from.wrapping_add(w as usize * V),
                    )
                };
                u += 1;
            }
            let mut u = 0;
            while u < IN_FLIGHT {
                let w = next + u as u32 * threads;
                if w < vectors {
                    // SAFETY: loaded under the same condition; 16 bytes either way.
                    let word = unsafe { core::mem::transmute_copy::<_, Word>(&batch[u]) };
                    // SAFETY: within the tile's words, by the caller's promise.
                    unsafe { words.write((first_word + w) as usize, word) };
                }
                u += 1;
            }
            next += IN_FLIGHT as u32 * threads;
        }
        if thread < edges {
            let i = if thread < head { thread } else { thread + vectors * V as u32 };
            // SAFETY: an item outside the vectors, in a word of which no vector is written.
            unsafe { places.write((past + i) as usize, global::load(items.wrapping_add(i as usize))) };
        }
        Tile { items: places, words, past }
    }

    /// Do runs of items that start at multiples of `n` start at words' starts, and are they whole words?
    #[inline(always)]
    pub fn in_words<const V: usize>(&self, n: u32) -> bool {
        is_word::<T, V>() && self.past == 0 && n.is_multiple_of(V as u32)
    }

    /// Item `i`.
    ///
    /// # Safety
    ///
    /// It has been written, and a barrier lies since.
    #[inline(always)]
    unsafe fn item(&self, i: u32) -> T {
        // SAFETY: the caller's promise.
        unsafe { self.items.read((self.past + i) as usize) }
    }

    /// Items `i .. i + V`, which are a word.
    ///
    /// # Safety
    ///
    /// As for [`item`](Tile::item); `past` is 0 and `i` a multiple of `V`.
    #[inline(always)]
    unsafe fn vector<const V: usize>(&self, i: u32) -> [T; V] {
        // SAFETY: the caller's promise; a word holds `V` items.
        unsafe { core::mem::transmute_copy::<Word, [T; V]>(&self.words.read((i / V as u32) as usize)) }
    }
}

/// Do `V` items fill a word?
const fn is_word<T, const V: usize>() -> bool {
    size_of::<[T; V]>() == size_of::<Word>()
}

/// One group's part of a segment of `n` items whose first is item `first` of the tile.
///
/// The value of the group's lanes; of its strip, where order matters; of some items, where no order does. `groups` (a
/// power of two, at most 32) share the segment, of which this is number `group`. The first [`present`] groups have a
/// value, the others must not be combined.
///
/// # Safety
///
/// The tile's items have been written, and a barrier lies since; `in_words` only if [`Tile::in_words`] says so and
/// `first` is a multiple of `n`; `n` items are at most `4 * V` for each group, and more than half as many where there are several
/// groups, as the canonical tree has it.
#[inline(always)]
pub unsafe fn group_value<Op: Monoid, const V: usize>(
    op: &Op,
    tile: &Tile<Op::Item>,
    first: u32,
    n: u32,
    group: u32,
    groups: u32,
    in_words: bool,
) -> Op::Acc {
    let width = V as u32;
    let in_words = in_words && is_word::<Op::Item, V>();
    // SAFETY: within the segment.
    let item = |i: u32| unsafe { tile.item(first + i) };
    // SAFETY: a whole word of the segment.
    let vector = |i: u32| unsafe { tile.vector::<V>(first + i) };
    if Op::ANY_ORDER {
        let mut acc = op.identity();
        if in_words {
            let mut i = group * width;
            if i < n {
                acc = op.fold_many(vector(i), i as u64);
                i += groups * width;
                while i < n {
                    nounroll();
                    acc = op.combine(acc, op.fold_many(vector(i), i as u64));
                    i += groups * width;
                }
            }
        } else if group < n {
            acc = op.lift(item(group), group as u64);
            let mut i = group + groups;
            while i < n {
                acc = op.push(acc, item(i), i as u64);
                i += groups;
            }
        }
        return acc;
    }
    if !Op::COMMUTATIVE {
        let mut i = group * ROUNDS * width;
        let end = n.min(i + ROUNDS * width);
        let mut acc = op.identity();
        let mut begun = false;
        while i < end {
            nounroll();
            if in_words {
                let items = vector(i);
                let mut slot = 0;
                while slot < V {
                    let index = i as u64 + slot as u64;
                    acc = if begun || slot > 0 {
                        op.push(acc, items[slot], index)
                    } else {
                        op.lift(items[slot], index)
                    };
                    slot += 1;
                }
                i += width;
            } else {
                acc = if begun { op.push(acc, item(i), i as u64) } else { op.lift(item(i), i as u64) };
                i += 1;
            }
            begun = true;
        }
        return acc;
    }
    let mut acc = [op.identity(); V];
    let stride = groups * width;
    let mine = group * width;
    if in_words {
        // All asked for before any is used; the last stands in for those that are not there.
        let batch: [[Op::Item; V]; ROUNDS as usize] =
            core::array::from_fn(|j| vector((mine + j as u32 * stride).min(n - width)));
        let mut j = 0;
        while j < ROUNDS as usize {
            let at = mine + j as u32 * stride;
            if at < n {
                let mut slot = 0;
                while slot < V {
                    let index = at as u64 + slot as u64;
                    let item = batch[j][slot];
                    acc[slot] = if j == 0 { op.lift(item, index) } else { op.push(acc[slot], item, index) };
                    slot += 1;
                }
            }
            j += 1;
        }
    } else {
        let mut at = mine;
        if groups > 1 {
            // More than half of the items that so many groups can hold are there: two rounds are whole.
            let mut j = 0;
            while j < 2 {
                let items: [Op::Item; V] = core::array::from_fn(|slot| item(at + slot as u32));
                let mut slot = 0;
                while slot < V {
                    let index = at as u64 + slot as u64;
                    acc[slot] = if j == 0 {
                        op.lift(items[slot], index)
                    } else {
                        op.push(acc[slot], items[slot], index)
                    };
                    slot += 1;
                }
                at += stride;
                j += 1;
            }
        } else {
            let mut slot = 0;
            while slot < V {
                let i = at + slot as u32;
                if i < n {
                    acc[slot] = op.lift(item(i), i as u64);
                }
                slot += 1;
            }
            at += stride;
        }
        while at < n {
            nounroll();
            let mut slot = 0;
            while slot < V {
                let i = at + slot as u32;
                if i < n {
                    acc[slot] = op.push(acc[slot], item(i), i as u64);
                }
                slot += 1;
            }
            at += stride;
        }
    }
    // Where there are several groups, each has all its lanes.
    if groups > 1 {
        return lanes::combine_slots(op, acc, group, None);
    }
    lanes::combine_slots(op, acc, group, Some(n.min(width)))
}

/// How many groups have a value in [`group_value`].
#[inline(always)]
pub fn present<Op: Monoid, const V: usize>(n: u32, groups: u32, in_words: bool) -> u32 {
    if Op::ANY_ORDER {
        groups.min(if in_words { n / V as u32 } else { n })
    } else if Op::COMMUTATIVE {
        groups.min(n)
    } else {
        n.div_ceil(ROUNDS * V as u32)
    }
}

/// Combines the values of each segment's `groups` neighbouring lanes of a warp, of which the first `present` have one; the result is in
/// the first of them. All segments of the warp have as many.
///
/// # Safety
///
/// All 32 lanes of the warp call, with the same `groups`, a power of two.
#[inline(always)]
pub unsafe fn combine_groups<Op: Monoid>(
    op: &Op,
    mut acc: Op::Acc,
    group: u32,
    groups: u32,
    present: u32,
) -> Op::Acc {
    let mut distance = 1;
    while distance < groups {
        nounroll();
        // SAFETY: all lanes are here.
        let other = unsafe { shuffle_down(FULL, acc, distance) };
        // Lane `g` has groups `g .. g + distance`, as far as they are there, whether or not its value is used again.
        if group + distance < present {
            acc = op.combine(acc, other);
        }
        distance *= 2;
    }
    acc
}
