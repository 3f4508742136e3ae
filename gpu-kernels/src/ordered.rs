//! One warp folds a contiguous run of items whose order matters.
//!
//! The order is that of [`warpfold_monoid::tree`] for operators that do not commute. A lane reads its `U` vectors side
//! by side, so that the loads of a warp lie `U` vectors apart; together they take whole cache lines, which L1 holds
//! between them. Nothing is transposed.
//!
//! Where items start off a 16-byte boundary, a lane reads the `U + 1` aligned vectors that its items lie in and shifts
//! their words: what lies where depends on the address, which item a lane folds does not.

use warpfold_monoid::{Monoid, Plain};
use warpfold_simt::{
    global,
    hint::{cold_path, nounroll, opaque},
};

use crate::warp;

/// Bytes of an aligned vector.
const VECTOR: usize = 16;

/// The words that a lane shifts at most.
const WORDS: usize = 20;

/// Folds items `start .. start + len` of an array, `len` at least 1, from left to right in tiles of `32 * U * V`; the
/// result is in lane 0. The operator is told indices that count from `base`, where the array begins.
///
/// # Safety
///
/// The whole warp calls, with the same arguments but for `lane`; `array` points to at least `start + len` readable
/// items.
#[inline(always)]
pub unsafe fn fold<Op: Monoid, const V: usize, const U: usize>(
    op: &Op,
    array: *const Op::Item,
    n: u64,
    start: u64,
    base: u64,
    len: u64,
    lane: u32,
) -> Op::Acc {
    let strip = U * V;
    let tile = 32 * strip as u64;
    let mut acc = op.identity();
    let first = start + (lane as usize * strip) as u64;
    let mut strip_items = array.wrapping_add(first as usize);
    let mut index = base + first;
    let mut tiles = (len / tile) as u32;
    let left = (len % tile) as u32;
    let mut begun = false;
    let aligned = is_aligned::<Op::Item, V>(array.wrapping_add(start as usize));
    while tiles > 0 {
        nounroll();
        let items = if aligned {
            // SAFETY: a whole tile is left.
            unsafe { load_strip::<Op::Item, V, U>(strip_items) }
        } else {
            cold_path();
            // SAFETY: a whole tile is left.
            unsafe { load_shifted::<Op::Item, V, U>(array, n, strip_items) }
        };
        let value = op.fold_strip::<V, U>(items, index);
        // SAFETY: the whole warp is here.
        let value = unsafe { warp::reduce_width(op, value, lane, 32, None) };
        if lane == 0 {
            acc = if begun { op.combine(acc, value) } else { value };
        }
        // The compiler is not to peel off a first round.
        begun = opaque(1) != 0;
        index += tile;
        strip_items = strip_items.wrapping_add(tile as usize);
        tiles -= 1;
    }
    if left > 0 {
        cold_path();
        let mine = left.saturating_sub(lane * strip as u32).min(strip as u32);
        let mut value = op.identity();
        let mut i = 0;
        while i < mine {
            nounroll();
            // SAFETY: this lane has `mine` items in the last tile.
            let item = unsafe { global::load(strip_items.wrapping_add(i as usize)) };
            let position = index + i as u64;
            value = if i == 0 { op.lift(item, position) } else { op.push(value, item, position) };
            i += 1;
        }
        // SAFETY: the whole warp is here.
        let value = unsafe { warp::reduce_width(op, value, lane, 32, Some(left.div_ceil(strip as u32))) };
        if lane == 0 {
            acc = if begun { op.combine(acc, value) } else { value };
        }
    }
    acc
}

/// One lane folds `len` items (1 to `U * V`) that lie side by side, of which the first has that index.
///
/// # Safety
///
/// `array` points to at least `start + len` readable items.
#[inline(always)]
pub unsafe fn strip<Op: Monoid, const V: usize, const U: usize>(
    op: &Op,
    array: *const Op::Item,
    start: u64,
    len: u64,
) -> Op::Acc {
    let items = array.wrapping_add(start as usize);
    if len == (U * V) as u64 && is_aligned::<Op::Item, V>(items) {
        // SAFETY: a whole strip.
        let items = unsafe { load_strip::<Op::Item, V, U>(items) };
        return op.fold_strip::<V, U>(items, start);
    }
    // SAFETY: below `len`.
    let item = |i: u64| unsafe { global::load(items.wrapping_add(i as usize)) };
    let mut value = op.lift(item(0), start);
    let mut i = 1;
    while i < len {
        nounroll();
        value = op.push(value, item(i), start + i);
        i += 1;
    }
    value
}

/// Can vectors of `V` items be loaded from here on?
#[inline(always)]
fn is_aligned<T, const V: usize>(items: *const T) -> bool {
    !global::is_vector::<T, V>() || items.addr().is_multiple_of(size_of::<[T; V]>())
}

/// Loads `U` vectors that lie side by side.
///
/// # Safety
///
/// They are readable, and aligned as [`global::load_neighbours`] asks.
#[inline(always)]
unsafe fn load_strip<T: Plain, const V: usize, const U: usize>(items: *const T) -> [[T; V]; U] {
    // SAFETY: the caller's promise.
    core::array::from_fn(|u| unsafe { global::load_neighbours(items.wrapping_add(u * V)) })
}

/// The same from any address: by aligned vectors where those lie within the array of `n` items, else one by one.
///
/// # Safety
///
/// The `U * V` items are readable and a vector; `array` and `n` say what else is.
#[inline(always)]
unsafe fn load_shifted<T: Plain, const V: usize, const U: usize>(
    array: *const T,
    n: u64,
    items: *const T,
) -> [[T; V]; U] {
    let shift = items.addr() % VECTOR;
    let first = items.cast::<u8>().wrapping_sub(shift);
    let end = array.wrapping_add(n as usize).addr();
    // The lanes at the array's ends differ from the rest: no shuffle, no barrier depends on this.
    let inside = first.addr() >= array.addr() && first.addr() + (U + 1) * VECTOR <= end;
    if size_of::<[T; V]>() == VECTOR && (U + 1) * 4 <= WORDS && inside {
        let mut words = [0_u32; WORDS];
        let mut u = 0;
        while u <= U {
            // SAFETY: an aligned vector within the array.
            let four: [u32; 4] = unsafe { global::load_vector(first.wrapping_add(u * VECTOR).cast::<u32>()) };
            words[4 * u] = four[0];
            words[4 * u + 1] = four[1];
            words[4 * u + 2] = four[2];
            words[4 * u + 3] = four[3];
            u += 1;
        }
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
        // SAFETY: `U * V` items of plain data are the first `U * 16` bytes.
        return unsafe { core::mem::transmute_copy::<[u32; WORDS], [[T; V]; U]>(&words) };
    }
    core::array::from_fn(|u| {
        // SAFETY: the caller's promise.
        core::array::from_fn(|slot| unsafe { global::load(items.wrapping_add(u * V + slot)) })
    })
}

/// Moves all words down by `BY`, if asked to.
#[inline(always)]
pub(crate) fn shift_words<const BY: usize, const WORDS: usize>(words: &mut [u32; WORDS], shift: bool) {
    // By arithmetic: a choice between two places of the array would keep it in memory.
    let mask = 0_u32.wrapping_sub(shift as u32);
    let mut i = 0;
    while i + BY < WORDS {
        words[i] ^= (words[i] ^ words[i + BY]) & mask;
        i += 1;
    }
}
