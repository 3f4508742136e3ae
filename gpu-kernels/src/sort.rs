//! Sorting pairs of a whole array by their keys: stable, least significant digit first, 8 bits at a time.
//!
//! [`histogram`] counts the keys' digits, all of them in one reading, and [`offsets`] turns the counts into where each digit's keys
//! begin; then a [`pass`] for each digit in which keys differ moves the pairs, reading and writing each once: a block ranks the keys of
//! its tile, learns from the blocks before it how many of each digit they have by decoupled look-back, and writes its pairs, sorted,
//! to where they belong (A. Adinets and D. Merrill, Onesweep: A Faster Least Significant Digit Radix Sort for GPUs, 2022,
//! <https://arxiv.org/abs/2206.01784>). Digits that are the same in all keys cost a launch and no more, and which they are no host
//! needs to know: the sorted pairs lie in the same place whatever the number of passes.
//!
//! **Random keys of 64 bits**, as hashes are, differ in their upper bits already. Where all digits of long keys take about as many values,
//! and these are shared out as unevenly as up to half a million different keys would, the upper ones alone are sorted by first, and [`check`] looks whether that put the whole keys into order; if it did, equal keys
//! stand as they stood, and the passes by all digits have nothing left to do. If not, they start again from the input.
//!
//! Keys are compared as what they are: unsigned or signed integers, or floats, of which all NaNs become one, the last, and zeros of
//! both signs one (see [`Key::ordered`]). A warp ranks its keys by votes: lanes whose digits agree in all bits find each other.
//!
//! **What is published validates itself**, as in [`scan`](crate::scan), whose counters, epochs and workspaces these are: a word holds
//! a count and, in its upper half, the launch's epoch and whether the count is the tile's own or that of all up to it.

use warpfold_monoid::{Plain, Sum};
use warpfold_simt::{
    atomic,
    global::{self, hint::NoAllocate},
    grid,
    hint::{cold_path, nounroll, opaque, pinned},
    shared::Shared,
    thread::{block_idx_x, grid_dim_x, sync_threads, sync_threads_count, thread_idx_x},
    warp::{FULL, shuffle_idx, sync_warp, warp_vote_any, warp_vote_ballot},
};

use crate::{
    block,
    scan::{draw, prefix_tag, value_tag},
    segments::tile::Word,
};

/// What keys are.
pub mod kind {
    /// Unsigned integers.
    pub const UNSIGNED: u32 = 0;
    /// Signed integers.
    pub const SIGNED: u32 = 1;
    /// Floats.
    pub const FLOAT: u32 = 2;
}

/// Values of a digit.
pub const BINS: usize = 256;

/// Bits of a digit.
const DIGIT_BITS: u32 = 8;

/// Threads of a block, a bin each.
pub const THREADS: u32 = BINS as u32;

/// The lanes of a warp, and the warps of a block.
const LANES: u32 = 32;
const WARPS: usize = BINS / LANES as usize;

/// Pairs of a thread.
const ITEMS: usize = 16;

/// Pairs of a tile.
pub const TILE: u32 = THREADS * ITEMS as u32;

/// Keys that a thread of [`histogram`] asks for at once.
const IN_FLIGHT: usize = 8;

/// Pairs of a thread of [`gather`].
const GATHERED: usize = 4;

/// Keys of a block of [`histogram`], at the least.
pub const COUNTED: u32 = THREADS * IN_FLIGHT as u32;

/// Items of a block of [`gather`].
pub const GATHER_TILE: u32 = THREADS * GATHERED as u32;

/// Pairs of words that the records of so many tiles need.
pub const fn record_pairs(tiles: u64) -> u64 {
    tiles * (BINS as u64 / 2)
}

/// What a pass does: nothing, or these bits.
mod step {
    /// It moves pairs.
    pub(super) const RUNS: u32 = 1;
    /// From the input.
    pub(super) const FROM_INPUT: u32 = 2;
    /// To the room aside, and not to where the last pass writes.
    pub(super) const ASIDE: u32 = 4;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// The bits of a key: `u32` or `u64`.
pub trait Key: Plain + Ord + sealed::Sealed {
    /// Its digits.
    const DIGITS: u32;
    /// The first of those by which alone it may be sorted first; [`DIGITS`](Key::DIGITS) if by none.
    const UPPER: u32;
    /// The last in order.
    const LAST: Self;
    /// Bits that compare as keys of a [`kind`] do. Of floats a NaN is the positive quiet one, and a zero positive.
    fn ordered(self, kind: u32) -> Self;
    /// The key of such bits.
    fn native(self, kind: u32) -> Self;
    /// What tells ordered bits of integers apart from the keys'.
    fn flips(kind: u32) -> Self;
    /// The same bits, but for these.
    fn flipped(self, flips: Self) -> Self;
    /// Digit number `digit`, the lowest being 0.
    fn digit(self, digit: u32) -> u32;
}

macro_rules! keys {
    ($($bits:ident, $float:ident, $upper:literal;)*) => {$(
        impl Key for $bits {
            const DIGITS: u32 = $bits::BITS / DIGIT_BITS;
            // 40 bits tell 10^5 random keys apart in 99 of 100 cases, and more in most places.
            const UPPER: u32 = $upper;
            const LAST: Self = $bits::MAX;

            #[inline(always)]
            fn ordered(self, kind: u32) -> Self {
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                const INFINITY: $bits = $float::INFINITY.to_bits();
                const NAN: $bits = $float::NAN.to_bits() & !SIGN;
                if kind != kind::FLOAT {
                    return self ^ Self::flips(kind);
                }
                let magnitude = self & !SIGN;
                let bits = if magnitude > INFINITY { NAN } else { self };
                let bits = if magnitude == 0 { 0 } else { bits };
                if bits & SIGN == 0 { bits | SIGN } else { !bits }
            }

            #[inline(always)]
            fn native(self, kind: u32) -> Self {
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                match kind {
                    kind::FLOAT if self & SIGN == 0 => !self,
                    kind::FLOAT => self ^ SIGN,
                    _ => self ^ Self::flips(kind),
                }
            }

            #[inline(always)]
            fn flips(kind: u32) -> Self {
                if kind == kind::SIGNED { 1 << ($bits::BITS - 1) } else { 0 }
            }

            #[inline(always)]
            fn flipped(self, flips: Self) -> Self {
                self ^ flips
            }

            #[inline(always)]
            fn digit(self, digit: u32) -> u32 {
                (self >> (digit * DIGIT_BITS)) as u32 & (BINS as u32 - 1)
            }
        }
    )*};
}
keys! { u32, f32, 4; u64, f64, 3; }

/// What travels with a key: 4 or 8 bytes.
pub trait Payload: Plain + sealed::Sealed {
    /// A position.
    fn of_index(index: u32) -> Self;
}

impl Payload for u32 {
    #[inline(always)]
    fn of_index(index: u32) -> Self {
        index
    }
}

impl Payload for u64 {
    #[inline(always)]
    fn of_index(index: u32) -> Self {
        index as u64
    }
}

/// The name of the kernels that sort pairs of such keys and values.
#[derive(Clone, Copy, Debug)]
pub struct Pairs<K, V>(core::marker::PhantomData<fn() -> (K, V)>);

/// The parameters of the kernels that sort. The host fills it, the kernel receives it by value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SortParams<K: Key, V: Payload> {
    /// The keys.
    pub keys: *const K,
    /// As many values; null for positions.
    pub values: *const V,
    /// How many, at least 1 and less than 2^32.
    pub n: u64,
    /// Receives the sorted keys, and has room for as many aside.
    pub sorted_keys: [*mut K; 2],
    /// The same of values.
    pub sorted_values: [*mut V; 2],
    /// [`BINS`] for each digit, zero before [`histogram`]: how many keys have it.
    pub counts: *mut u32,
    /// As many: where they begin.
    pub offsets: *mut u32,
    /// [`steps`]: for each digit what its pass does that sorts by upper digits alone, and what that by all; and whether those are needed.
    pub steps: *mut u32,
    /// As in [`ScanParams::counter`](crate::scan::ScanParams::counter).
    pub counter: *mut u64,
    /// [`record_pairs`].
    pub records: *mut [u64; 2],
    /// Pairs of words that there is room for, used or not.
    pub capacity: u64,
    /// Tiles.
    pub tiles: u32,
    /// Which digit a pass sorts by.
    pub digit: u32,
    /// Which [`kind`] keys are.
    pub kind: u32,
    /// 1 for the passes by all digits.
    pub all: u32,
}

/// Words of [`SortParams::steps`].
pub const fn steps<K: Key>() -> usize {
    2 * K::DIGITS as usize + 1
}

/// Counts the digits of all keys.
///
/// # Safety
///
/// Blocks of [`THREADS`], any number. The keys are readable, the counts writable. `counts` has [`BINS`] for each digit, and is not
/// in use.
#[inline(always)]
pub unsafe fn histogram<K: Key, V: Payload>(params: &SortParams<K, V>, counts: Shared<u32>) {
    let thread = thread_idx_x();
    let bins = const { BINS * K::DIGITS as usize };
    let mut bin = thread as usize;
    while bin < bins {
        // SAFETY: a thread's own bins.
        unsafe { counts.write(bin, 0) };
        bin += THREADS as usize;
    }
    sync_threads();
    grid::wait_for_previous();
    // One question for all keys, and not one for each: loads would wait for the answers.
    let (floats, flips) = (params.kind == kind::FLOAT, K::flips(params.kind));
    let stride = grid_dim_x() as u64 * THREADS as u64;
    let mut at = block_idx_x() as u64 * THREADS as u64 + thread as u64;
    while at < params.n {
        nounroll();
        // All asked for before any is counted; the last stands in for those that are not there.
        let mut asked: [K; IN_FLIGHT] = core::array::from_fn(|k| {
            let at = (at + k as u64 * stride).min(params.n - 1);
            // SAFETY: a key that there is.
            unsafe { global::load_with::<NoAllocate, K>(params.keys.wrapping_add(at as usize)) }
        });
        asked = if floats {
            asked.map(|key| key.ordered(kind::FLOAT))
        } else {
            asked.map(|key| key.flipped(flips))
        };
        let mut k = 0;
        while k < IN_FLIGHT {
            if at + (k as u64) * stride < params.n {
                let key = asked[k];
                let mut digit = 0;
                while digit < K::DIGITS {
                    // SAFETY: a bin that there is.
                    unsafe { counts.add(digit as usize * BINS + key.digit(digit) as usize, 1) };
                    digit += 1;
                }
            }
            k += 1;
        }
        at += IN_FLIGHT as u64 * stride;
    }
    sync_threads();
    grid::let_next_start();
    let mut bin = thread as usize;
    while bin < bins {
        // SAFETY: counted before the barrier; the launch's own counts.
        unsafe {
            let count = counts.read(bin);
            if count > 0 {
                atomic::fetch_add_relaxed_gpu(params.counts.wrapping_add(bin), count);
            }
        }
        bin += THREADS as usize;
    }
}

/// Finds where each digit's keys begin, and which passes there are.
///
/// # Safety
///
/// One block of [`THREADS`]. Counts are readable, offsets and steps writable. `sums` has [`block::SHARED`] slots that are not in
/// use.
#[inline(always)]
pub unsafe fn offsets<K: Key, V: Payload>(params: &SortParams<K, V>, sums: Shared<u32>) {
    grid::wait_for_previous();
    let thread = thread_idx_x();
    let (mut differ, mut least, mut most, mut digit) = (0_u32, BINS as u32, 0, 0);
    let mut uneven = 0;
    while digit < K::DIGITS {
        nounroll();
        let bin = digit as usize * BINS + thread as usize;
        // SAFETY: counted by the launch before.
        let count = unsafe { global::load(params.counts.wrapping_add(bin).cast_const()) };
        // It also stands between the use of the slots and the one before.
        let occupied = sync_threads_count((count > 0).into());
        differ |= ((occupied > 1) as u32) << digit;
        most = if occupied > most { occupied } else { most };
        least = if digit >= K::UPPER && occupied < least { occupied } else { least };
        // `k` random keys share the values of a digit out with a standard deviation of `sqrt(BINS / k)` of what each would have.
        let off = (count as u64 * BINS as u64).abs_diff(params.n);
        let here = sync_threads_count((64 * off > params.n).into());
        uneven += if digit >= K::UPPER { here } else { 0 };
        // SAFETY: the whole block is here.
        let before = unsafe { block::scan_exclusive(&Sum::<u32>::new(), count, None, sums) };
        // SAFETY: a place that there is.
        unsafe { global::store(params.offsets.wrapping_add(bin), before.unwrap_or(0)) };
        digit += 1;
    }
    let all = (1 << K::DIGITS) - 1;
    let upper = all >> K::UPPER << K::UPPER;
    // Do the upper digits seem to say as much as the lower ones? And are half of the counts uneven by a 64th, as those of
    // up to half a million keys are? Among more, two are too likely to have the upper ones in common.
    let halves = (K::DIGITS - K::UPPER) * BINS as u32 / 2;
    let tries = upper != 0 && differ == all && 4 * least >= 3 * most && uneven >= halves;
    // One at least, so that the pairs come to where they are looked for, and floats become one where they are one key.
    let by_all = if differ == 0 { 1 } else { differ };
    if thread < steps::<K>() as u32 {
        let (runs, digit) = if thread < K::DIGITS {
            (if tries { upper } else { 0 }, thread)
        } else {
            (by_all, (thread - K::DIGITS) % K::DIGITS)
        };
        let later = (runs >> digit >> 1).count_ones();
        let mut step = 0;
        if runs >> digit & 1 != 0 {
            step = step::RUNS;
            step |= if runs & ((1 << digit) - 1) == 0 { step::FROM_INPUT } else { 0 };
            step |= if later & 1 != 0 { step::ASIDE } else { 0 };
        }
        if thread == 2 * K::DIGITS {
            step = !tries as u32;
        }
        // SAFETY: a place that there is.
        unsafe { global::store(params.steps.wrapping_add(thread as usize), step) };
    }
}

/// Looks whether the sort by upper digits alone, if there was one, has sorted the keys; [`TILE`] of them to a block.
///
/// # Safety
///
/// Blocks of [`THREADS`] for all keys, after the passes by upper digits. Sorted keys are readable, steps writable.
#[inline(always)]
pub unsafe fn check<K: Key, V: Payload>(params: &SortParams<K, V>) {
    grid::wait_for_previous();
    grid::let_next_start();
    let needed = params.steps.wrapping_add(2 * K::DIGITS as usize);
    // SAFETY: a word of the launch's.
    if unsafe { global::load_relaxed_gpu(needed.cast_const()) } != 0 {
        return;
    }
    let (floats, flips) = (params.kind == kind::FLOAT, K::flips(params.kind));
    let keys = params.sorted_keys[0].cast_const();
    let start = block_idx_x() as u64 * TILE as u64 + thread_idx_x() as u64;
    let mut i = 0;
    while i < ITEMS {
        nounroll();
        // All asked for before any is looked at; the last stands in for those that are not there.
        let mut pairs: [[K; 2]; IN_FLIGHT] = core::array::from_fn(|k| {
            core::array::from_fn(|next| {
                let at = start + ((i + k) as u64 * THREADS as u64) + next as u64;
                // SAFETY: a key that there is.
                unsafe { global::load(keys.wrapping_add(at.min(params.n - 1) as usize)) }
            })
        });
        pairs = if floats {
            pairs.map(|pair| pair.map(|key| key.ordered(kind::FLOAT)))
        } else {
            pairs.map(|pair| pair.map(|key| key.flipped(flips)))
        };
        if pairs.iter().any(|[left, right]| left > right) {
            cold_path();
            // SAFETY: as above; all who write it write the same.
            unsafe { global::store_relaxed_gpu(needed, 1) };
        }
        i += IN_FLIGHT;
    }
}

/// What shared memory a block of [`pass`] has.
#[derive(Clone, Copy, Debug)]
pub struct PassRoom {
    /// [`stage_words`]: the tile's keys, and later its values.
    pub stage: Shared<u64>,
    /// [`BINS`] for each warp.
    pub counts: Shared<u32>,
    /// [`BINS`].
    pub bases: Shared<u32>,
    /// [`block::SHARED`].
    pub sums: Shared<u32>,
    /// One: what has been drawn from the counter.
    pub drawn: Shared<u64>,
}

/// Words of [`PassRoom::stage`].
pub const fn stage_words<K, V>() -> usize {
    let most = if size_of::<K>() > size_of::<V>() { size_of::<K>() } else { size_of::<V>() };
    TILE as usize * most / size_of::<u64>()
}

/// Counters of [`PassRoom::counts`].
pub const COUNTERS: usize = BINS * WARPS;

/// The launch bounds of [`pass`]: a block's threads, and how many blocks a multiprocessor is to hold.
pub const fn pass_bounds<K, V>() -> u32 {
    if size_of::<K>() + size_of::<V>() <= 8 { THREADS | 4 << 16 } else { THREADS | 3 << 16 }
}

/// Bytes of stack that [`pass`] may have.
pub const STACK: u32 = 8;

/// Does something for each of a thread's pairs. Spelled out rather than looped over: with constant places what a thread has of them
/// dissolves into registers, whatever the unroller thinks of the loop.
macro_rules! each_item {
    (|$i:ident| $body:block) => {
        each_item!(@ $i $body 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (@ $i:ident $body:block $($number:literal)*) => {$({
        let $i: usize = $number;
        $body
    })*};
}

/// Sorts by one digit, a tile to a block.
///
/// # Safety
///
/// `tiles` blocks of [`THREADS`], after [`histogram`], [`offsets`] and the passes of lower digits. Keys and values are readable, the
/// places of sorted ones writable, and they do not overlap. `counter` and `records` belong to this launch alone. `room` is not in use.
#[inline(always)]
pub unsafe fn pass<K: Key, V: Payload>(params: &SortParams<K, V>, room: PassRoom) {
    let PassRoom { stage, counts, bases, sums, drawn } = room;
    let (digit, kind, thread) = (params.digit, params.kind, thread_idx_x());
    let (floats, flips) = (kind == kind::FLOAT, K::flips(kind));
    let (warp, lane) = (thread / LANES, thread % LANES);
    let row = counts.from(warp as usize * BINS).first(BINS);
    grid::wait_for_previous();
    // SAFETY: written by earlier launches.
    let (step, needed) = unsafe {
        let number = digit + params.all * K::DIGITS;
        (
            global::load(params.steps.wrapping_add(number as usize).cast_const()),
            global::load(params.steps.wrapping_add(2 * K::DIGITS as usize).cast_const()),
        )
    };
    if step == 0 || (params.all != 0 && needed == 0) {
        return;
    }
    let from_input = step & step::FROM_INPUT != 0;
    // Chosen, not indexed: parameters whose places are not known while compiling would lie in memory.
    let ([keys_0, keys_1], [values_0, values_1]) = (params.sorted_keys, params.sorted_values);
    let (mut keys, mut values, mut to_keys, mut to_values) = (keys_1, values_1, keys_0, values_0);
    if step & step::ASIDE != 0 {
        (keys, values, to_keys, to_values) = (keys_0, values_0, keys_1, values_1);
    }
    let (mut keys, mut values) = (keys.cast_const(), values.cast_const());
    if from_input {
        (keys, values) = (params.keys, params.values);
    }
    let mut bin = lane as usize;
    while bin < BINS {
        // SAFETY: the warp's own row; the barrier of the draw lies behind.
        unsafe { row.write(bin, 0) };
        bin += LANES as usize;
    }
    let end = record_pairs(params.tiles as u64);
    // SAFETY: the launch's own; the whole block is here.
    let (tile, epoch) = unsafe { draw(params.counter, (params.records, params.capacity), end, drawn) };

    // Neighbours in neighbouring lanes; a warp's part of the tile is one piece.
    let start = tile as u64 * TILE as u64;
    let there = (params.n - start).min(TILE as u64) as u32;
    let mine = warp * (LANES * ITEMS as u32) + lane;
    let place = |i: usize| mine + i as u32 * LANES;
    let whole = there == TILE;
    let mut key = [K::LAST; ITEMS];
    // SAFETY: the keys of the tile.
    unsafe {
        if whole {
            let first = keys.wrapping_add(start as usize).wrapping_add(mine as usize);
            each_item!(|i| { key[i] = load_once(first.wrapping_add(i * LANES as usize)) });
            // One question for all keys, and not one for each: loads would wait for the answers.
            if floats {
                each_item!(|i| { key[i] = key[i].ordered(kind::FLOAT) });
            } else {
                each_item!(|i| { key[i] = key[i].flipped(flips) });
            }
        } else {
            cold_path();
            // What is not there comes behind all that is, in order and by place.
            each_item!(|i| {
                if place(i) < there {
                    key[i] = load_once(keys.wrapping_add(start as usize + place(i) as usize)).ordered(kind);
                }
            });
        }
    }

    // How many of the warp's earlier keys have a key's digit.
    let below = (1_u32 << lane) - 1;
    let mut rank = Ranks([0; ITEMS / 2]);
    // Zero, which compilers cannot know: or else they would begin with all votes, for whose results there are no registers.
    let mut zero = 0;
    each_item!(|i| {
        let digit = key[i].digit(digit) + zero;
        // SAFETY: all lanes are here; their row, which one lane for each digit changes between barriers.
        unsafe {
            let alike = alike(digit);
            let leader = alike.trailing_zeros();
            let mut before = 0;
            if lane == leader {
                before = row.read(digit as usize);
                row.write(digit as usize, before + alike.count_ones());
            }
            let before = shuffle_idx(FULL, before, leader);
            if i % 2 == 1 {
                zero = before >> 31;
            }
            rank.set(i, before + (alike & below).count_ones());
            sync_warp(FULL);
        }
    });
    let _ = zero;
    sync_threads();

    // Of the digit that is this thread's number: how many the tile has, and where in it they begin.
    let counter = |warp: usize| warp * BINS + thread as usize;
    // SAFETY: counted before the barrier.
    let [a, b, c, d, e, f, g, h]: [u32; WARPS] =
        core::array::from_fn(|warp| unsafe { counts.read(counter(warp)) });
    let count = a + b + c + d + e + f + g + h;
    let record = |tile: u32| {
        let word = tile as usize * BINS + thread as usize;
        params.records.cast::<u64>().wrapping_add(word)
    };
    let publish = |tag: u32, count: u32| {
        // SAFETY: the thread's own record of its tile.
        unsafe { global::store_relaxed_gpu(record(tile), (tag as u64) << 32 | count as u64) }
    };
    publish(if tile == 0 { prefix_tag(epoch) } else { value_tag(epoch) }, count);
    // SAFETY: the whole block is here.
    let first = unsafe { block::scan_exclusive(&Sum::<u32>::new(), count, None, sums) }.unwrap_or(0);
    let mut next = first;
    macro_rules! in_warps {
        ($($warp:literal $count:ident)*) => {$(
            // SAFETY: this thread alone uses the digit's counters between the barriers.
            unsafe { counts.write(counter($warp), next) };
            next += $count;
        )*};
    }
    in_warps!(0 a 1 b 2 c 3 d 4 e 5 f 6 g 7 h);
    let _ = next;
    sync_threads();
    let in_order = as_items::<K>(stage);
    // The digits anew, and later once more: they and their places would fill the registers meanwhile.
    let digit = opaque(digit);
    each_item!(|i| {
        // SAFETY: written before the barrier; each key has a place of its own.
        unsafe {
            let place = rank.get(i) + row.read(key[i].digit(digit) as usize);
            rank.set(i, place);
            in_order.write(place as usize, key[i]);
        }
    });
    // On their way while the tiles before are asked.
    let mut value = [V::of_index(0); ITEMS];
    // SAFETY: the values of the tile.
    unsafe {
        if from_input && params.values.is_null() {
            each_item!(|i| { value[i] = V::of_index(start as u32 + place(i)) });
        } else if whole {
            let first = values.wrapping_add(start as usize).wrapping_add(mine as usize);
            each_item!(|i| { value[i] = load_once(first.wrapping_add(i * LANES as usize)) });
        } else {
            cold_path();
            each_item!(|i| {
                if place(i) < there {
                    value[i] = load_once(values.wrapping_add(start as usize + place(i) as usize));
                }
            });
        }
    }

    // How many keys with that digit the tiles before have.
    let (mut before, mut at, mut waits) = (0_u32, tile, tile > 0);
    // SAFETY: all lanes are here.
    while unsafe { warp_vote_any(FULL, waits) } {
        if waits {
            // SAFETY: records of the launch's; those that are not there have the first one's in their place.
            let words: [u64; 4] = core::array::from_fn(|k| unsafe {
                global::load_relaxed_gpu(record(at.saturating_sub(k as u32 + 1)).cast_const())
            });
            let mut goes_on = true;
            macro_rules! words {
                ($($k:literal)*) => {$(
                    let tag = (words[$k] >> 32) as u32;
                    let knows_all = tag == prefix_tag(epoch);
                    let takes = goes_on && (knows_all || tag == value_tag(epoch));
                    before += if takes { words[$k] as u32 } else { 0 };
                    at -= takes as u32;
                    waits = waits && !(takes && knows_all);
                    goes_on = takes && !knows_all;
                )*};
            }
            words!(0 1 2 3);
            let _ = goes_on;
        }
    }
    if tile > 0 {
        publish(prefix_tag(epoch), before + count);
    }
    // SAFETY: the launch before last's; the thread's own slot.
    unsafe {
        let offset = params.offsets.wrapping_add(digit as usize * BINS + thread as usize);
        let base = global::load(offset.cast_const()).wrapping_add(before).wrapping_sub(first);
        bases.write(thread as usize, base);
    }
    sync_threads();
    grid::let_next_start();

    let (digit, kind) = (opaque(digit), opaque(params.kind));
    let (floats, flips) = (kind == kind::FLOAT, K::flips(kind));
    // Where in the tile's order the thread's next ones are: neighbours in neighbouring threads.
    let ordered = |i: usize| thread + i as u32 * THREADS;
    let mut to = [0_u32; ITEMS];
    // SAFETY: written before the barrier; a place that no other pair has.
    let place_of = |i: usize| unsafe {
        let key = in_order.read(ordered(i) as usize);
        (key, bases.read(key.digit(digit) as usize).wrapping_add(ordered(i)))
    };
    // SAFETY: as above.
    let move_key = |key: K, to: u32| unsafe {
        global::store(to_keys.wrapping_add(to as usize), key);
        pinned(to)
    };
    if whole && floats {
        each_item!(|i| {
            let (key, place) = place_of(i);
            to[i] = move_key(key.native(kind::FLOAT), place);
        });
    } else if whole {
        each_item!(|i| {
            let (key, place) = place_of(i);
            to[i] = move_key(key.flipped(flips), place);
        });
    } else {
        cold_path();
        each_item!(|i| {
            if ordered(i) < there {
                let (key, place) = place_of(i);
                to[i] = move_key(key.native(kind), place);
            }
        });
    }
    sync_threads();
    let in_order = as_items::<V>(stage);
    each_item!(|i| {
        // SAFETY: the pair's own place; the keys have been read.
        unsafe { in_order.write(rank.get(i) as usize, value[i]) };
    });
    sync_threads();
    // SAFETY: as above.
    let move_value = |i: usize, to: u32| unsafe {
        global::store(to_values.wrapping_add(to as usize), in_order.read(ordered(i) as usize));
    };
    if whole {
        each_item!(|i| { move_value(i, to[i]) });
    } else {
        cold_path();
        each_item!(|i| {
            if ordered(i) < there {
                move_value(i, to[i]);
            }
        });
    }
}

/// A thread's ranks in a tile, two to a register.
struct Ranks([u32; ITEMS / 2]);

impl Ranks {
    #[inline(always)]
    fn get(&self, i: usize) -> u32 {
        if i < ITEMS / 2 { self.0[i] & 0xffff } else { self.0[i - ITEMS / 2] >> 16 }
    }

    #[inline(always)]
    fn set(&mut self, i: usize, rank: u32) {
        if i < ITEMS / 2 {
            self.0[i] = pinned(self.0[i] & !0xffff | rank);
        } else {
            let i = i - ITEMS / 2;
            self.0[i] = pinned(self.0[i] & 0xffff | rank << 16);
        }
    }
}

/// Reads what nobody reads again.
///
/// # Safety
///
/// It is there.
#[inline(always)]
unsafe fn load_once<T: Plain>(from: *const T) -> T {
    // SAFETY: the caller's promise.
    unsafe { global::load_with::<NoAllocate, T>(from) }
}

/// The same memory for keys, or values.
#[inline(always)]
fn as_items<T: Plain>(stage: Shared<u64>) -> Shared<T> {
    // SAFETY: plain data of 4 or 8 bytes, which is written before it is read.
    unsafe { stage.cast::<T>() }
}

/// The lanes that have the same digit.
///
/// # Safety
///
/// All lanes of the warp call.
#[inline(always)]
unsafe fn alike(digit: u32) -> u32 {
    let mut alike = FULL;
    macro_rules! bits {
        ($($bit:literal)*) => {$(
            let set = digit >> $bit & 1 != 0;
            // SAFETY: all lanes are here.
            let vote = unsafe { warp_vote_ballot(FULL, set) };
            alike &= if set { vote } else { !vote };
        )*};
    }
    bits!(0 1 2 3 4 5 6 7);
    alike
}

/// The parameters of [`gather`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GatherParams {
    /// Items, of `units` times `unit` bytes, aligned to a unit.
    pub from: *const u8,
    /// Receives them in the order of `index`.
    pub to: *mut u8,
    /// Which item comes where.
    pub index: *const u32,
    /// How many.
    pub n: u64,
    /// Bytes of a unit: 1, 2, 4, 8 or 16.
    pub unit: u32,
    /// Units of an item.
    pub units: u32,
}

/// Brings items into an order, [`GATHER_TILE`] to a block.
///
/// # Safety
///
/// Blocks of [`THREADS`] for all items. Indices and the items that they name are readable, the places writable, and they do not
/// overlap.
#[inline(always)]
pub unsafe fn gather(params: &GatherParams) {
    grid::wait_for_previous();
    grid::let_next_start();
    // SAFETY: the caller's promise.
    unsafe {
        match params.unit {
            1 => gather_units::<u8>(params),
            2 => gather_units::<u16>(params),
            4 => gather_units::<u32>(params),
            8 => gather_units::<u64>(params),
            _ => gather_units::<Word>(params),
        }
    }
}

/// # Safety
///
/// As for [`gather`]; a unit is a `T`.
#[inline(always)]
unsafe fn gather_units<T: Plain>(params: &GatherParams) {
    let start = block_idx_x() as u64 * GATHER_TILE as u64 + thread_idx_x() as u64;
    let place = |k: usize| start + k as u64 * THREADS as u64;
    let (from, to, units) = (params.from.cast::<T>(), params.to.cast::<T>(), params.units as usize);
    // All asked for before any is used; the last stands in for those that are not there.
    let index: [u32; GATHERED] = core::array::from_fn(|k| {
        // SAFETY: an index that there is.
        unsafe { global::load(params.index.wrapping_add(place(k).min(params.n - 1) as usize)) }
    });
    let mut unit = 0;
    while unit < units {
        nounroll();
        let items: [T; GATHERED] = core::array::from_fn(|k| {
            // SAFETY: an item that there is.
            unsafe { global::load_with::<NoAllocate, T>(from.wrapping_add(index[k] as usize * units + unit)) }
        });
        let mut k = 0;
        while k < GATHERED {
            if place(k) < params.n {
                // SAFETY: the item's own place.
                unsafe { global::store(to.wrapping_add(place(k) as usize * units + unit), items[k]) };
            }
            k += 1;
        }
        unit += 1;
    }
}

/// The parameters of [`firsts`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FirstParams<K: Key> {
    /// Sorted keys.
    pub keys: *const K,
    /// What travelled with them: positions.
    pub index: *const u32,
    /// How many, at least 1.
    pub n: u64,
    /// Some of the keys, each once.
    pub groups: *const K,
    /// How many.
    pub count: u64,
    /// Receives for each of these the position that stands first.
    pub firsts: *mut u32,
    /// Which [`kind`] keys are.
    pub kind: u32,
    /// No bytes without a meaning.
    pub padding: u32,
}

/// Finds what stands first of each key, a thread for each.
///
/// # Safety
///
/// Blocks of [`THREADS`] for all groups. Keys, positions and groups are readable, and `firsts` writable.
#[inline(always)]
pub unsafe fn firsts<K: Key>(params: &FirstParams<K>) {
    grid::wait_for_previous();
    let group = block_idx_x() as u64 * THREADS as u64 + thread_idx_x() as u64;
    if group >= params.count {
        return;
    }
    let load = |keys: *const K, at: u64| {
        // SAFETY: a key that there is.
        unsafe { global::load(keys.wrapping_add(at as usize)) }.ordered(params.kind)
    };
    let sought = load(params.groups, group);
    // The first that is not less lies in between, or at the end.
    let (mut low, mut high) = (0, params.n - 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if load(params.keys, middle) < sought {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    // SAFETY: a position that there is; the group's own place.
    unsafe {
        let first = global::load(params.index.wrapping_add(low as usize));
        global::store(params.firsts.wrapping_add(group as usize), first);
    }
}
