//! The CPU backend: the canonical tree, chunks in parallel, lanes in one array of accumulators that vectorises.

mod level;
pub(crate) mod runs;
pub(crate) mod scans;
mod segments;
pub(crate) mod stream;
#[cfg(target_arch = "x86_64")]
mod sums;
pub(crate) mod tags;
mod tasks;
mod walk;

use std::ops::Range;

use warpfold_monoid::{
    Monoid, OnEmpty, Plain, Value,
    tree::{FOLD_LANES, Shape},
};

pub(crate) use self::segments::{Operators, reduce_numbered, reduce_segments};
use self::{
    level::Level,
    tasks::Places,
    walk::{Piece, Scratch, values},
};
use crate::Items;

/// Bytes of input from which on several threads are worth waking.
const PARALLEL_BYTES: u64 = 4 << 20;

/// Bytes of input that a task has at least.
const TASK_BYTES: u64 = 128 << 10;

/// Reduces in the canonical order: the same bits as [`warpfold_monoid::tree::reduce`], and as every other backend.
///
/// ```
/// use warpfold_host::cpu;
/// use warpfold_monoid::Sum;
///
/// assert_eq!(cpu::reduce(&Sum::<i64>::new(), &[1, 2, 3][..]), 6);
/// ```
pub fn reduce<Op: Monoid, S: Items<Op::Item> + ?Sized>(op: &Op, items: &S) -> Value<Op> {
    reduce_at(Level::best(), op, &ByReference(items))
}

/// Items of any kind behind one pointer: an operator's code is compiled once, not once for each kind of items.
struct ByReference<'a, S: ?Sized>(&'a S);

impl<T: Plain, S: Items<T> + ?Sized> Items<T> for ByReference<'_, S> {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn get(&self, index: u64) -> T {
        self.0.get(index)
    }

    fn run<'a>(&'a self, range: Range<u64>, scratch: &'a mut Vec<T>) -> &'a [T] {
        self.0.run(range, scratch)
    }
}

/// Reduces with the instructions of a level that the machine has.
fn reduce_at<Op: Monoid>(level: Level, op: &Op, items: &dyn Items<Op::Item>) -> Value<Op> {
    let shape = Shape::new(items.len(), size_of::<Op::Item>());
    if shape.chunks == 0 {
        return Op::Empty::value(op.finish_empty(), true);
    }
    let mut value = [op.identity()];
    if shape.chunks == 1 {
        let piece = Piece { start: 0, len: shape.n, index: 0 };
        values(level, op, items, &[piece], Some(&shape), &mut Scratch::new(), &mut value);
    } else {
        fold(level, std::slice::from_ref(op), &shape, Chunks::Of(items), &mut |_, acc| value[0] = acc);
    }
    Op::Empty::value(op.finish(value[0]), false)
}

/// Where the chunks of long arrays come from.
#[derive(Clone, Copy)]
enum Chunks<'a, T> {
    /// One array.
    Of(&'a dyn Items<T>),
    /// Several of one length, whose chunks are gathered side by side; the call says how far apart they are then.
    Gathered(&'a (dyn Fn(Range<u64>, &mut Vec<T>) -> u64 + Sync)),
}

/// Work on a chunk: which array's, which of its chunks, and where its items lie.
type ChunkWork<'a, T> = Box<dyn FnMut(usize, usize, &dyn Items<T>, Piece) + 'a>;

/// Operators at work on chunks, for those who know their items only.
trait OnChunks<T>: Sync {
    /// How many there are, each with an array.
    fn count(&self) -> usize;
    /// What a thread does.
    fn worker<'a>(&'a self) -> ChunkWork<'a, T>;
}

struct Chunked<'a, Op: Monoid> {
    level: Level,
    ops: &'a [Op],
    shape: &'a Shape,
    /// The values, array after array.
    values: Places<'a, Op::Acc>,
}

impl<Op: Monoid> OnChunks<Op::Item> for Chunked<'_, Op> {
    fn count(&self) -> usize {
        self.ops.len()
    }

    fn worker<'a>(&'a self) -> ChunkWork<'a, Op::Item> {
        let mut scratch = Scratch::new();
        Box::new(move |j, k, items, piece| {
            let op = &self.ops[j];
            let mut value = [op.identity()];
            values(self.level, op, items, &[piece], Some(self.shape), &mut scratch, &mut value);
            // SAFETY: each chunk is asked for once.
            unsafe { self.values.put(j * self.shape.chunks as usize + k, value[0]) };
        })
    }
}

/// The unfinished values of arrays of several chunks, as many as there are operators, each with its own.
fn fold<Op: Monoid>(
    level: Level,
    ops: &[Op],
    shape: &Shape,
    arrays: Chunks<'_, Op::Item>,
    put: &mut dyn FnMut(usize, Op::Acc),
) {
    let chunks = shape.chunks as usize;
    let mut all = vec![ops[0].identity(); ops.len() * chunks];
    each_chunk(&Chunked { level, ops, shape, values: Places::new(&mut all) }, shape, arrays, 0);
    for (j, op) in ops.iter().enumerate() {
        put(j, fold_chunks(op, all[j * chunks..][..chunks].to_vec(), shape));
    }
}

/// Has every chunk of every array folded, several at once. The arrays' first items have that index.
fn each_chunk<T: Plain>(folder: &dyn OnChunks<T>, shape: &Shape, arrays: Chunks<'_, T>, index: u64) {
    let count = folder.count();
    let worker = || -> Box<dyn FnMut(usize) + '_> {
        let (mut worker, mut gathered) = (folder.worker(), Vec::new());
        Box::new(move |k| {
            let range = shape.chunk_range(k as u64);
            let (start, pitch) = match arrays {
                Chunks::Of(_) => (range.start, 0),
                Chunks::Gathered(gather) => (0, gather(range.clone(), &mut gathered)),
            };
            let side_by_side = ByReference(&gathered[..]);
            let items: &dyn Items<T> = match arrays {
                Chunks::Of(items) => items,
                Chunks::Gathered(_) => &side_by_side,
            };
            for j in 0..count {
                let start = start + j as u64 * pitch;
                let len = range.end - range.start;
                worker(j, k, items, Piece { start, len, index: index + range.start });
            }
        })
    };
    let bytes_each = (count * size_of::<T>()) as u64;
    tasks::each(shape.chunks as usize, least_chunks(shape, bytes_each), &worker);
}

/// Chunks of `bytes_each` bytes for every item that a task should have.
fn least_chunks(shape: &Shape, bytes_each: u64) -> usize {
    let least = if shape.n.saturating_mul(bytes_each) < PARALLEL_BYTES {
        shape.chunks
    } else {
        (TASK_BYTES / (shape.chunk * bytes_each).max(1)).max(1)
    };
    least as usize
}

/// The value of an array from those of its chunks, of which there is one at least.
fn fold_chunks<Op: Monoid>(op: &Op, values: Vec<Op::Acc>, shape: &Shape) -> Op::Acc {
    if const { Op::ANY_ORDER } {
        values[1..].iter().fold(values[0], |acc, &value| op.combine(acc, value))
    } else if const { Op::COMMUTATIVE } {
        fold_values(op, values)
    } else {
        fold_runs(op, &values, shape.run())
    }
}

/// Combines neighbours until one value is left, which an odd one out reaches unchanged. `values` has at least one;
/// what is in both afterwards is of no use.
///
/// Like all that is inlined into the walks it loops over places: much of what iterators stand on is no candidate for
/// inlining where a crate's units are optimised each alone.
#[inline(always)]
fn pairwise<Op: Monoid>(op: &Op, values: &mut [Op::Acc], other: &mut Vec<Op::Acc>) -> Op::Acc {
    let mut len = values.len();
    if other.len() < len / 2 + 1 {
        other.resize(len / 2 + 1, values[0]);
    }
    let (mut from, mut to) = (values, &mut other[..]);
    while len > 1 {
        let half = len / 2;
        {
            let (pairs, to) = (&from[..2 * half], &mut to[..half]);
            for k in 0..half {
                to[k] = op.combine(pairs[2 * k], pairs[2 * k + 1]);
            }
        }
        if len > 2 * half {
            to[half] = from[len - 1];
        }
        len = len.div_ceil(2);
        std::mem::swap(&mut from, &mut to);
    }
    from[0]
}

/// Folds the chunks' values over [`FOLD_LANES`] lanes.
fn fold_values<Op: Monoid>(op: &Op, mut values: Vec<Op::Acc>) -> Op::Acc {
    let lanes = values.len().min(FOLD_LANES as usize);
    let (acc, rest) = values.split_at_mut(lanes);
    for row in rest.chunks(lanes) {
        for (acc, &value) in acc.iter_mut().zip(row) {
            *acc = op.combine(*acc, value);
        }
    }
    values.truncate(lanes);
    pairwise(op, &mut values, &mut Vec::new())
}

/// Folds the chunks' values in runs of `run` neighbours, and those pairwise.
fn fold_runs<Op: Monoid>(op: &Op, values: &[Op::Acc], run: u64) -> Op::Acc {
    let mut lanes: Vec<Op::Acc> = values
        .chunks(run as usize)
        .map(|run| run[1..].iter().fold(run[0], |acc, &value| op.combine(acc, value)))
        .collect();
    pairwise(op, &mut lanes, &mut Vec::new())
}

#[cfg(test)]
mod tests {
    //! Held to the definition, `monoid::tree::reduce`, bit for bit.

    use super::*;
    use warpfold_monoid::{
        DoubleDouble, GivesIdentity, Max, Min, NanMax, NanMin, NanProduct, NanSum, Plain, Product, Sum, tree,
    };

    fn reduce_at<Op: Monoid, S: Items<Op::Item> + ?Sized>(level: Level, op: &Op, items: &S) -> Value<Op> {
        super::reduce_at(level, op, &ByReference(items))
    }

    /// Sizes around every boundary of the tree for items of `bytes` bytes.
    fn sizes(bytes: usize) -> Vec<u64> {
        let vector = tree::vector_len(bytes) as u64;
        let mut sizes = vec![];
        for around in [0, 32, 256, 1024, 2048, 4096, 8192, 16384, 65536] {
            let n = around * vector;
            sizes.extend([n.saturating_sub(vector + 1), n.saturating_sub(1), n, n + 1, n + vector + 1]);
        }
        sizes.extend([100_003, 3_000_000]);
        sizes.sort();
        sizes.dedup();
        sizes
    }

    fn mix(i: u64) -> u64 {
        let mut z = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^ (z >> 27)
    }

    fn check<Op: Monoid>(op: Op, item: impl Fn(u64) -> Op::Item, bits: impl Fn(Value<Op>) -> u64) {
        let sizes = sizes(size_of::<Op::Item>());
        let items: Vec<Op::Item> = (0..*sizes.last().unwrap()).map(item).collect();
        for n in sizes {
            let items = &items[..n as usize];
            let defined = bits(tree::reduce(&op, items));
            for level in Level::all() {
                let ours = bits(reduce_at(level, &op, items));
                assert_eq!(ours, defined, "{} of {n} items, {level:?}", std::any::type_name::<Op>());
            }
        }
    }

    fn float(i: u64) -> f64 {
        let bits = mix(i);
        let scale = (2.0f64).powi((bits % 40) as i32 - 20);
        ((bits >> 11) as f64 / (1u64 << 53) as f64 - 0.5) * scale
    }

    #[test]
    fn floats() {
        check(Sum::<f32>::new(), |i| float(i) as f32, |v| v.to_bits() as u64);
        check(Sum::<f32, DoubleDouble>::new(), |i| float(i) as f32, |v| v.to_bits() as u64);
        check(Sum::<f64>::new(), float, f64::to_bits);
        let near_one = |i| 1.0 + float(i) * 1e-8;
        check(Product::<f32>::new(), |i| near_one(i) as f32, |v| v.to_bits() as u64);
        check(Product::<f64>::new(), near_one, f64::to_bits);
        let option = |v: Option<f64>| v.map_or(1, f64::to_bits);
        check(Min::<f64>::new(), float, option);
        check(Max::<f64>::new(), float, option);
        let holes = |i| if mix(i).is_multiple_of(5) { f64::NAN } else { float(i) };
        check(NanMin::<f64>::new(), holes, option);
        check(NanMax::<f64>::new(), holes, option);
        check(NanSum::<f64>::new(), holes, f64::to_bits);
        check(
            NanProduct::<f64>::new(),
            |i| if i.is_multiple_of(3) { f64::NAN } else { near_one(i) },
            f64::to_bits,
        );
    }

    #[test]
    fn integers() {
        check(Sum::<i32>::new(), |i| mix(i) as i32, |v| v as u64);
        check(Sum::<i32, i64>::new(), |i| mix(i) as i32, |v| v as u64);
        check(Sum::<u64>::new(), mix, |v| v);
        check(Product::<u32>::new(), |i| mix(i) as u32 | 1, |v| v as u64);
        check(Product::<i64>::new(), |i| mix(i) as i64 | 1, |v| v as u64);
        check(Min::<i64>::new(), |i| mix(i) as i64, |v| v.unwrap_or(1) as u64);
        check(Max::<u32>::new(), |i| mix(i) as u32, |v| v.unwrap_or(1) as u64);
    }

    /// Segments of more go by their numbers among all: their results, and operators of their own.
    #[test]
    fn some_segments_of_more() {
        use crate::segments::{SegmentPlan, Segments};
        let items = [3, 9, 4, 20, 1];
        let plan = SegmentPlan::from_ranges(&[3, 0], &[5, 2]).unwrap();
        let initial = |k: u64| warpfold_monoid::WithInitial::new(Sum::<i32>::new(), 100 * k as i32);
        let mut results = [-1; 4];
        // SAFETY: the segments are the array's.
        unsafe {
            let segments = Segments::Irregular { items: &items, plan: &plan };
            reduce_numbered(Operators::Each(&initial), segments, Some(&[1, 3]), &mut results);
        }
        assert_eq!(results, [-1, 121, -1, 312]);
    }

    /// Every level at every length up to 2500, from starts at any distance from a vector's alignment.
    fn check_short<Op: Monoid>(op: Op, item: impl Fn(u64) -> Op::Item, bits: impl Fn(Value<Op>) -> u64) {
        let items: Vec<Op::Item> = (0..2516).map(item).collect();
        for n in 0..=2500 {
            let items = &items[n % 17..][..n];
            let defined = bits(tree::reduce(&op, items));
            for level in Level::all() {
                let ours = bits(reduce_at(level, &op, items));
                assert_eq!(ours, defined, "{} of {n} items, {level:?}", std::any::type_name::<Op>());
            }
        }
    }

    #[test]
    fn every_short_length_and_alignment() {
        check_short(Sum::<f32>::new(), |i| float(i) as f32, |v| v.to_bits() as u64);
        check_short(Sum::<f64>::new(), float, f64::to_bits);
        check_short(NanSum::<f64>::new(), float, f64::to_bits);
        check_short(Sum::<i32>::new(), |i| mix(i) as i32, |v| v as u64);
        check_short(Min::<f32>::new(), |i| float(i) as f32, |v| v.map_or(1, |v| v.to_bits() as u64));
        check_short(Max::<f64>::new(), float, |v| v.map_or(1, f64::to_bits));
    }

    #[test]
    fn random_lengths_and_starts() {
        let f64s: Vec<f64> = (0..1_500_000).map(float).collect();
        let f32s: Vec<f32> = f64s.iter().map(|&x| x as f32).collect();
        for i in 0..40 {
            let n = (mix(i) % (1 << (i % 21))) as usize;
            let start = (mix(i + 1000) % 33) as usize;
            let (narrow, wide) = (&f32s[start..][..n], &f64s[start..][..n]);
            let (op32, op64) = (Sum::<f32>::new(), Sum::<f64>::new());
            let defined = (tree::reduce(&op32, narrow).to_bits(), tree::reduce(&op64, wide).to_bits());
            for level in Level::all() {
                let ours =
                    (reduce_at(level, &op32, narrow).to_bits(), reduce_at(level, &op64, wide).to_bits());
                assert_eq!(ours, defined, "{n} items from {start}, {level:?}");
            }
        }
    }

    /// Values that vectorised minima get wrong, anywhere: against an oracle of its own, the total order of the bits.
    #[test]
    fn zeros_of_both_signs_infinities_and_nans() {
        let special =
            [0.0, -0.0, 1.0, -1.0, 5e-324, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN];
        // Few values at a time, or else every minimum is minus infinity, and mostly without a NaN.
        let palettes: [&[usize]; 8] =
            [&[0, 1], &[1, 0, 2], &[3, 1, 0], &[6, 0, 4], &[7, 5], &[8, 0, 1], &[9, 3], &[0, 1, 2, 3, 6, 8]];
        let option = |v: Option<f64>| v.map(f64::to_bits);
        for (seed, palette) in (0u64..).zip(palettes.iter().cycle()).take(40) {
            for n in [1, 2, 31, 33, 64, 100, 1000, 8193] {
                let pick = |i| palette[(mix(i ^ (seed << 32)) % palette.len() as u64) as usize];
                let wide: Vec<f64> = (0..n).map(|i| special[pick(i)]).collect();
                let narrow: Vec<f32> = wide.iter().map(|&x| x as f32).collect();
                let numbers = || wide.iter().copied().filter(|x| !x.is_nan());
                let (least, greatest) = (numbers().min_by(f64::total_cmp), numbers().max_by(f64::total_cmp));
                let nan = wide.iter().any(|x| x.is_nan()).then_some(f64::NAN);
                let expected = [
                    option(nan.or(least)),
                    option(nan.or(greatest)),
                    option(least.or(nan)),
                    option(greatest.or(nan)),
                ];
                // 5e-324 is zero in f32, and f64::MAX infinity: not the same order of special values.
                let as_f32 = !palette.iter().any(|p| [4, 5].contains(p));
                for level in Level::all() {
                    let ours = [
                        option(reduce_at(level, &Min::<f64>::new(), &wide[..])),
                        option(reduce_at(level, &Max::<f64>::new(), &wide[..])),
                        option(reduce_at(level, &NanMin::<f64>::new(), &wide[..])),
                        option(reduce_at(level, &NanMax::<f64>::new(), &wide[..])),
                    ];
                    assert_eq!(ours, expected, "{wide:?}, {level:?}");
                    let ours = [
                        option(reduce_at(level, &Min::<f32>::new(), &narrow[..]).map(f64::from)),
                        option(reduce_at(level, &Max::<f32>::new(), &narrow[..]).map(f64::from)),
                        option(reduce_at(level, &NanMin::<f32>::new(), &narrow[..]).map(f64::from)),
                        option(reduce_at(level, &NanMax::<f32>::new(), &narrow[..]).map(f64::from)),
                    ];
                    assert!(
                        !as_f32 || ours == expected,
                        "{narrow:?}, {level:?}: {ours:x?}, not {expected:x?}"
                    );
                }
                check_special_sums(&wide, &narrow);
            }
        }
    }

    fn check_special_sums(wide: &[f64], narrow: &[f32]) {
        let (op32, op64) = (Sum::<f32>::new(), Sum::<f64>::new());
        let defined = (tree::reduce(&op32, narrow).to_bits(), tree::reduce(&op64, wide).to_bits());
        for level in Level::all() {
            let ours = (reduce_at(level, &op32, narrow).to_bits(), reduce_at(level, &op64, wide).to_bits());
            assert_eq!(ours, defined, "{wide:?}, {level:?}");
        }
    }

    /// Commutative only up to what is asked of it: its bits show any other grouping, and `push` differs from
    /// `combine`, so that using one for the other shows too. Indices count as well.
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Grouping<const COMMUTATIVE: bool> {
        salt: u64,
    }

    // SAFETY: repr(C), one u64.
    unsafe impl<const COMMUTATIVE: bool> Plain for Grouping<COMMUTATIVE> {}

    impl<const COMMUTATIVE: bool> Monoid for Grouping<COMMUTATIVE> {
        type Item = [u8; 3];
        type Acc = [u64; 3];
        type Output = u64;
        type Empty = GivesIdentity;
        const COMMUTATIVE: bool = COMMUTATIVE;
        fn identity(&self) -> [u64; 3] {
            [u64::MAX; 3]
        }
        fn lift(&self, item: [u8; 3], index: u64) -> [u64; 3] {
            [item[0] as u64 ^ mix(index), item[1] as u64 ^ self.salt, item[2] as u64]
        }
        fn push(&self, acc: [u64; 3], item: [u8; 3], index: u64) -> [u64; 3] {
            [
                mix(acc[0] ^ item[0] as u64),
                acc[1].wrapping_mul(31).wrapping_add(index),
                acc[2] + item[2] as u64,
            ]
        }
        fn combine(&self, a: [u64; 3], b: [u64; 3]) -> [u64; 3] {
            [mix(a[0]).wrapping_add(b[0]), a[1].wrapping_mul(17) ^ b[1], a[2] + b[2]]
        }
        fn finish(&self, acc: [u64; 3]) -> u64 {
            acc[0] ^ acc[1].rotate_left(20) ^ acc[2].rotate_left(40)
        }
    }

    #[test]
    fn a_custom_operator_with_odd_sizes_and_parameters() {
        check(Grouping::<true> { salt: 77 }, |i| mix(i).to_le_bytes()[..3].try_into().unwrap(), |v| v);
        check(Grouping::<false> { salt: 77 }, |i| mix(i).to_le_bytes()[..3].try_into().unwrap(), |v| v);
    }

    /// Panics when it meets its identity: absent operands must be skipped, never padded.
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Sentinel;

    // SAFETY: zero bytes.
    unsafe impl Plain for Sentinel {}

    impl Monoid for Sentinel {
        type Item = u8;
        type Acc = u32;
        type Output = u32;
        type Empty = GivesIdentity;
        const COMMUTATIVE: bool = true;
        fn identity(&self) -> u32 {
            u32::MAX
        }
        fn lift(&self, item: u8, _index: u64) -> u32 {
            item as u32
        }
        fn combine(&self, left: u32, right: u32) -> u32 {
            assert!(left != u32::MAX && right != u32::MAX, "met the identity");
            left.wrapping_add(right) & 0xffff
        }
        fn finish(&self, acc: u32) -> u32 {
            acc
        }
    }

    #[test]
    fn padding_is_never_seen() {
        check(Sentinel, |i| mix(i) as u8, |v| v as u64);
    }

    #[test]
    fn read_items_give_the_bits_of_a_slice() {
        struct Strided<'a>(&'a [f32]);
        impl Items<f32> for Strided<'_> {
            fn len(&self) -> u64 {
                self.0.len() as u64 / 2
            }
            fn get(&self, index: u64) -> f32 {
                self.0[2 * index as usize]
            }
        }
        let op = Sum::<f32>::new();
        let wide: Vec<f32> = (0..400_000).map(|i| float(i) as f32).collect();
        for n in [0, 1, 33, 2049, 8192, 8193, 200_000] {
            let packed: Vec<f32> = wide.iter().copied().step_by(2).take(n).collect();
            let read = reduce(&op, &Strided(&wide[..2 * n]));
            assert_eq!(read.to_bits(), tree::reduce(&op, &packed).to_bits(), "n = {n}");
        }
    }
}
