//! Operators whose order does not matter take a path of their own, and no definition says in which order it combines. So
//! the operators here see for themselves what it must keep to: each item once, at its own index, and nothing that is not
//! there. Every access is checked against the buffers of the launch, which end where the items do.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering};

use warpfold_gpu_kernels::kernels;
use warpfold_gpu_kernels::source::{Over, Position, Source};
use warpfold_monoid::tree::{self, MAX_GROUPS, SHORT_GROUPS, Shape};
use warpfold_monoid::{Element, GivesIdentity, GivesNone, Max, Min, Monoid, Plain, Sum};
use warpfold_simt::sim::Schedule;

use super::{Input, lengths, simulate, simulate_as};

/// What a ledger has been shown. Sums of hashes: the order does not matter, any item that is missing, counted twice or
/// at another index does.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    count: u64,
    hashes: u64,
}

// SAFETY: repr(C), two words.
unsafe impl Plain for Entry {}

/// Enters every item at its index. Its identity is no neutral element: it refuses to combine what nobody lifted.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Ledger<T>(PhantomData<fn() -> T>);

impl<T> Default for Ledger<T> {
    fn default() -> Self {
        Ledger(PhantomData)
    }
}

// SAFETY: no bytes.
unsafe impl<T: Copy + 'static> Plain for Ledger<T> {}

fn hash<T: Plain>(item: T, index: u64) -> u64 {
    // SAFETY: plain data has no padding.
    let bytes = unsafe { std::slice::from_raw_parts((&raw const item).cast::<u8>(), size_of::<T>()) };
    let mut hash = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for &byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(23);
    }
    hash ^ hash >> 31
}

impl<T: Plain> Monoid for Ledger<T> {
    type Item = T;
    type Acc = Entry;
    type Output = Entry;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    const ANY_ORDER: bool = true;

    fn identity(&self) -> Entry {
        Entry { count: 0, hashes: u64::MAX }
    }

    fn lift(&self, item: T, index: u64) -> Entry {
        Entry { count: 1, hashes: hash(item, index) }
    }

    fn combine(&self, left: Entry, right: Entry) -> Entry {
        assert!(left.count > 0 && right.count > 0, "an absent operand: {left:?} with {right:?}");
        Entry { count: left.count + right.count, hashes: left.hashes.wrapping_add(right.hashes) }
    }

    fn push(&self, _: Entry, _: T, _: u64) -> Entry {
        panic!("neighbours are folded together");
    }

    fn fold_many<const N: usize>(&self, items: [T; N], index: u64) -> Entry {
        let vector = tree::vector_len(size_of::<T>());
        assert_eq!(N, vector, "a whole vector");
        let hashes = (index..).zip(items).map(|(index, item)| hash(item, index)).fold(0, u64::wrapping_add);
        Entry { count: N as u64, hashes }
    }

    fn finish(&self, acc: Entry) -> Entry {
        acc
    }
}

/// The same in eight bytes, which take the shortest way where a block's items fill all its vectors.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct ShortLedger<T>(PhantomData<fn() -> T>);

impl<T> Default for ShortLedger<T> {
    fn default() -> Self {
        ShortLedger(PhantomData)
    }
}

// SAFETY: no bytes.
unsafe impl<T: Copy + 'static> Plain for ShortLedger<T> {}

impl<T: Plain> Monoid for ShortLedger<T> {
    type Item = T;
    type Acc = [u32; 2];
    type Output = [u32; 2];
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    const ANY_ORDER: bool = true;

    fn identity(&self) -> [u32; 2] {
        [0, u32::MAX]
    }

    fn lift(&self, item: T, index: u64) -> [u32; 2] {
        [1, hash(item, index) as u32]
    }

    fn combine(&self, left: [u32; 2], right: [u32; 2]) -> [u32; 2] {
        assert!(left[0] > 0 && right[0] > 0, "an absent operand: {left:?} with {right:?}");
        [left[0] + right[0], left[1].wrapping_add(right[1])]
    }

    fn finish(&self, acc: [u32; 2]) -> [u32; 2] {
        acc
    }
}

/// The greatest item and where it stands first.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Found {
    rank: u64,
    index: u64,
}

// SAFETY: repr(C), two words.
unsafe impl Plain for Found {}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct ArgMax<T>(PhantomData<fn() -> T>);

impl<T> Default for ArgMax<T> {
    fn default() -> Self {
        ArgMax(PhantomData)
    }
}

// SAFETY: no bytes.
unsafe impl<T: Copy + 'static> Plain for ArgMax<T> {}

impl<T: Element<Rank: Into<u64>>> Monoid for ArgMax<T> {
    type Item = T;
    type Acc = Found;
    type Output = Found;
    type Empty = GivesNone;
    const COMMUTATIVE: bool = true;
    const ANY_ORDER: bool = true;

    fn identity(&self) -> Found {
        Found { rank: u64::MAX, index: u64::MAX }
    }

    fn lift(&self, item: T, index: u64) -> Found {
        Found { rank: item.rank().into(), index }
    }

    fn combine(&self, left: Found, right: Found) -> Found {
        let right_wins = right.rank > left.rank || right.rank == left.rank && right.index < left.index;
        if right_wins { right } else { left }
    }

    fn finish(&self, acc: Found) -> Found {
        acc
    }
}

/// How often each position was asked for.
static ASKED: [AtomicU8; 10_000] = [const { AtomicU8::new(0) }; 10_000];

/// Positions, which must be asked for once each.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Once;

// SAFETY: no bytes.
unsafe impl Plain for Once {}

impl Source for Once {
    type Item = u64;
    unsafe fn get(&self, index: u64) -> u64 {
        ASKED[index as usize].fetch_add(1, Ordering::Relaxed);
        index
    }
}

/// [`Over`] with a default.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
struct Asking(Over<Sum<u64>, Once>);

impl Default for Asking {
    fn default() -> Self {
        // SAFETY: no arrays.
        Asking(unsafe { Over::new(Sum::new(), Once) })
    }
}

// SAFETY: repr(transparent) over plain data.
unsafe impl Plain for Asking {}

impl Monoid for Asking {
    type Item = Position;
    type Acc = u64;
    type Output = u64;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    const ANY_ORDER: bool = true;

    fn identity(&self) -> u64 {
        0
    }

    fn lift(&self, item: Position, index: u64) -> u64 {
        self.0.lift(item, index)
    }

    fn fold_many<const N: usize>(&self, items: [Position; N], index: u64) -> u64 {
        self.0.fold_many(items, index)
    }

    fn combine(&self, left: u64, right: u64) -> u64 {
        self.0.combine(left, right)
    }

    fn finish(&self, acc: u64) -> u64 {
        acc
    }
}

kernels! {
    static TABLE:
    ledger_1 => Ledger<u8>,
    ledger_2 => Ledger<u16>,
    ledger_2_bytes => Ledger<[u8; 2]>,
    ledger_3 => Ledger<[u8; 3]>,
    ledger_4 => Ledger<u32>,
    ledger_8 => Ledger<u64>,
    ledger_8_words => Ledger<[u32; 2]>,
    ledger_12 => Ledger<[u32; 3]>,
    ledger_16 => Ledger<[u64; 2]>,
    ledger_16_words => Ledger<[u32; 4]>,
    ledger_20 => Ledger<[u32; 5]>,
    short_1 => ShortLedger<u8>,
    short_4 => ShortLedger<u32>,
    short_8_words => ShortLedger<[u32; 2]>,
    short_12 => ShortLedger<[u32; 3]>,
    argmax_u8 => ArgMax<u8>,
    argmax_f32 => ArgMax<f32>,
    sum_u8 => Sum<u8>,
    sum_i16_i64 => Sum<i16, i64>,
    min_u8 => Min<u8>,
    max_i8 => Max<i8>,
    max_i64 => Max<i64>,
    asking => Asking,
}

/// Orders of execution take turns.
fn turn(n: usize) -> Schedule {
    match n % 3 {
        0 => Schedule::Sequential,
        1 => Schedule::Seeded(n as u64),
        _ => Schedule::Concurrent { seed: n as u64 },
    }
}

fn entered<T: Plain>(items: &[T]) -> Entry {
    let hashes = items.iter().enumerate().map(|(i, &item)| hash(item, i as u64)).fold(0, u64::wrapping_add);
    let entry = Entry { count: items.len() as u64, hashes };
    if items.is_empty() { Ledger::<T>::default().identity() } else { entry }
}

/// Every length around a boundary up to `most`, from every start within a vector.
fn check_ledger<T: Plain>(most: usize, item: impl Fn(usize) -> T) {
    let input = Input::new(most, item);
    let starts = tree::vector_len(size_of::<T>());
    let around_vectors = (0..8).map(|vectors| 32 * vectors * starts);
    let mut lengths = lengths(size_of::<T>(), most);
    lengths.extend(around_vectors.flat_map(|edge| [edge.saturating_sub(1), edge, edge + 1]));
    for n in lengths {
        for offset in 0..starts {
            let items = input.slice(offset, n);
            let found = simulate::<Ledger<T>>(&TABLE, items, turn(n + offset));
            assert_eq!(found, entered(items), "n = {n}, start + {offset}");
        }
    }
}

#[test]
fn each_item_is_taken_once_at_its_index() {
    check_ledger::<u8>(40_000, |i| (i * 31) as u8);
    check_ledger::<u16>(40_000, |i| (i * 31) as u16);
    check_ledger::<u32>(80_000, |i| i as u32 * 31);
    check_ledger::<u64>(80_000, |i| i as u64 * 31);
}

#[test]
fn small_accumulators() {
    check_short::<u8>(40_000, |i| (i * 31) as u8);
    check_short::<u32>(40_000, |i| i as u32 * 31);
    check_short::<[u32; 2]>(20_000, |i| [i as u32, 7]);
    check_short::<[u32; 3]>(10_000, |i| [i as u32, 7, !i as u32]);
}

fn check_short<T: Plain>(most: usize, item: impl Fn(usize) -> T) {
    let input = Input::new(most, item);
    let starts = tree::vector_len(size_of::<T>());
    for n in lengths(size_of::<T>(), most) {
        for offset in 0..starts {
            let items = input.slice(offset, n);
            let entry = entered(items);
            let expected = if n == 0 { [0, u32::MAX] } else { [entry.count as u32, entry.hashes as u32] };
            let found = simulate::<ShortLedger<T>>(&TABLE, items, turn(n + offset));
            assert_eq!(found, expected, "n = {n}, start + {offset}");
        }
    }
}

#[test]
fn items_that_make_no_vectors() {
    check_ledger::<[u8; 3]>(10_000, |i| [i as u8, (i >> 8) as u8, 7]);
    check_ledger::<[u32; 3]>(10_000, |i| [i as u32, 7, !i as u32]);
    check_ledger::<[u32; 4]>(10_000, |i| [i as u32, 7, 8, !i as u32]);
    check_ledger::<[u64; 2]>(40_000, |i| [i as u64, !i as u64]);
    check_ledger::<[u32; 5]>(10_000, |i| [i as u32, 7, 8, 9, !i as u32]);
}

/// Items of eight and of sixteen bytes at addresses that are no multiples of that, and of two at odd ones.
#[test]
fn items_that_lie_astray() {
    let words: Vec<u32> = (0..40_010).map(|i| i * 7 + 1).collect();
    for start in 0..4 {
        for n in [0, 1, 31, 64, 65, 256, 257, 513, 2_049, 8_193, 20_000] {
            let words = &words[start..][..2 * n];
            let items = words.as_chunks::<2>().0;
            let (entry, short) = (entered(items), simulate::<ShortLedger<[u32; 2]>>(&TABLE, items, turn(n)));
            assert_eq!(simulate::<Ledger<[u32; 2]>>(&TABLE, items, turn(n)), entry, "n = {n}");
            assert!(n == 0 || short == [entry.count as u32, entry.hashes as u32], "n = {n}");
            let items = words.as_chunks::<4>().0;
            assert_eq!(simulate::<Ledger<[u32; 4]>>(&TABLE, items, turn(n)), entered(items), "n = {n} / 2");
            // SAFETY: four bytes a word.
            let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), 4 * words.len()) };
            for offset in 0..bytes.len().min(2) {
                let items = bytes[offset..].as_chunks::<2>().0;
                let found = simulate::<Ledger<[u8; 2]>>(&TABLE, items, turn(n));
                assert_eq!(found, entered(items), "{} pairs from {start} + {offset}", items.len());
            }
        }
    }
}

/// Chunks of several batches, the last of them of any length: shorter arrays than a plan would give the kernel of the
/// largest blocks.
#[test]
fn chunks_of_several_batches() {
    check_batches::<u8>(|i| (i * 31) as u8);
    check_batches::<u32>(|i| i as u32 * 31);
    check_batches::<[u32; 2]>(|i| [i as u32, 7]);
    check_batches::<[u32; 3]>(|i| [i as u32, 7, !i as u32]);
    check_batches::<[u32; 5]>(|i| [i as u32, 7, 8, 9, !i as u32]);
}

fn check_batches<T: Plain>(item: impl Fn(usize) -> T) {
    let vector = tree::vector_len(size_of::<T>());
    for (groups, vectors_a_thread) in [(SHORT_GROUPS, 4), (MAX_GROUPS, 4), (MAX_GROUPS, 8), (MAX_GROUPS, 21)]
    {
        let row = groups as usize * vector;
        let chunk = vectors_a_thread * row;
        let input = Input::new(3 * chunk, &item);
        for last in [1, vector + 1, row - 1, row + 1, 4 * row - 1, chunk.min(9 * row), chunk - vector, chunk]
        {
            for offset in [0, 1, vector - 1] {
                let items = input.slice(offset % vector, 2 * chunk + last.min(chunk));
                let shape = Shape {
                    n: items.len() as u64,
                    vector: vector as u32,
                    groups,
                    chunk: chunk as u64,
                    chunks: 3,
                };
                let found = simulate_as::<Ledger<T>>(&TABLE, items, shape, turn(last));
                assert_eq!(found, entered(items), "{groups} groups, n = {}, start + {offset}", items.len());
            }
        }
    }
}

/// Of equal items the first wins, wherever it and the others stand.
#[test]
fn the_first_of_equal_items() {
    let bytes = Input::new(40_000, |i| if i % 1009 == 1008 { 200_u8 } else { (i % 200) as u8 });
    let floats = Input::new(20_000, |i| if i % 1009 == 1008 { 7.5 } else { -(i as f32) });
    for n in [1, 15, 16, 17, 63, 1_009, 1_025, 2_019, 16_385, 20_000] {
        for offset in 0..4 {
            let items = bytes.slice(offset * 5, n);
            let greatest = items.iter().max().expect("items");
            let first = items.iter().position(|item| item == greatest).expect("the greatest");
            let found = simulate::<ArgMax<u8>>(&TABLE, items, turn(n));
            assert_eq!(found.index, first as u64, "bytes, n = {n}, start + {}", 5 * offset);
            let items = floats.slice(offset, n);
            let expected = if n + offset >= 1009 { 1008 - offset } else { 0 };
            let found = simulate::<ArgMax<f32>>(&TABLE, items, turn(n));
            assert_eq!(found.index, expected as u64, "floats, n = {n}, start + {offset}");
        }
    }
}

/// Built-in operators on narrow items, against the definition and against loops of their own.
#[test]
fn narrow_integers() {
    let input = Input::new(20_000, |i| (i * 7919 % 251) as u8);
    for n in [0, 1, 2, 15, 16, 17, 511, 2_000, 16_385, 20_000] {
        for offset in 0..16 {
            let bytes = input.slice(offset, n);
            let sum = bytes.iter().fold(0_u8, |sum, &item| sum.wrapping_add(item));
            assert_eq!(simulate::<Sum<u8>>(&TABLE, bytes, turn(n)), sum, "n = {n}");
            let min = bytes.iter().copied().min().unwrap_or(u8::MAX);
            assert_eq!(simulate::<Min<u8>>(&TABLE, bytes, turn(n)), min, "n = {n}");
            // SAFETY: any byte is an `i8`.
            let signed = unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<i8>(), n) };
            let max = signed.iter().copied().max().unwrap_or(i8::MIN);
            assert_eq!(simulate::<Max<i8>>(&TABLE, signed, turn(n)), max, "n = {n}");
        }
    }
    let halves = Input::new(20_000, |i| (i * 7919) as i16);
    let longs = Input::new(20_000, |i| (i as i64).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64));
    for n in [0, 1, 7, 8, 9, 8_193, 20_000] {
        let items = halves.slice(n % 8, n);
        let sum: i64 = items.iter().map(|&item| i64::from(item)).sum();
        assert_eq!(simulate::<Sum<i16, i64>>(&TABLE, items, turn(n)), sum, "n = {n}");
        let items = longs.slice(n % 2, n);
        let max = items.iter().copied().max().unwrap_or(i64::MIN);
        assert_eq!(simulate::<Max<i64>>(&TABLE, items, turn(n)), max, "n = {n}");
    }
}

/// A source may write where it reads: it is asked for each position once.
#[test]
fn sources_are_asked_once() {
    for n in [0, 1, 31, 33, 127, 128, 129, 2_047, 2_048, 2_049, 4_097, 9_999] {
        let sum = simulate::<Asking>(&TABLE, Position::before(n), turn(n));
        assert_eq!(sum, (0..n as u64).sum::<u64>(), "n = {n}");
        for (index, asked) in ASKED.iter().enumerate() {
            let times = asked.swap(0, Ordering::Relaxed);
            assert_eq!(times, u8::from(index < n), "position {index} of {n}");
        }
    }
}
