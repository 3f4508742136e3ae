//! What long reductions do beside the others: whole batches by a way of their own, whatever follows, lanes of wide accumulators
//! few at once, and narrow items of a source two neighbours at a time. The operators see who is combined with whom, in which order.

use std::fmt::Debug;

use warpfold_gpu_kernels::kernels;
use warpfold_gpu_kernels::source::{Over, Position, Source};
use warpfold_monoid::tree::{self, MAX_GROUPS, Shape};
use warpfold_monoid::{GivesIdentity, Monoid, Plain};
use warpfold_simt::sim::Schedule;

use super::{Input, simulate_as};

/// Another number for every pair.
fn mixed(left: u32, right: u32) -> u32 {
    (left.wrapping_mul(0x9e37_79b1).rotate_left(13) ^ right).wrapping_mul(0x85eb_ca6b)
}

/// Neither commutative nor associative: the definition of the tree says what comes out. `WORDS` of eight bytes an accumulator.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Mix<T, const WORDS: usize>(std::marker::PhantomData<fn() -> T>);

impl<T, const WORDS: usize> Default for Mix<T, WORDS> {
    fn default() -> Self {
        Mix(std::marker::PhantomData)
    }
}

// SAFETY: no bytes.
unsafe impl<T: Copy + 'static, const WORDS: usize> Plain for Mix<T, WORDS> {}

impl<T: Plain + Into<u32>, const WORDS: usize> Monoid for Mix<T, WORDS> {
    type Item = T;
    type Acc = [u64; WORDS];
    type Output = [u64; WORDS];
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    // As those of a mean, which has its count in common with the others.
    const LANE_BYTES: usize = 8;
    fn identity(&self) -> Self::Acc {
        [u64::MAX; WORDS]
    }
    fn lift(&self, item: T, index: u64) -> Self::Acc {
        [mixed(item.into(), index as u32).into(); WORDS]
    }
    fn combine(&self, left: Self::Acc, right: Self::Acc) -> Self::Acc {
        assert!(!left.contains(&u64::MAX) && !right.contains(&u64::MAX), "combined what is not there");
        std::array::from_fn(|i| mixed(left[i] as u32, right[i] as u32).into())
    }
    fn finish(&self, acc: Self::Acc) -> Self::Output {
        acc
    }
}

/// Items that say that they are narrow, and whether neighbours are vectors.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Narrow<const VECTORS: bool>;

// SAFETY: no bytes.
unsafe impl<const VECTORS: bool> Plain for Narrow<VECTORS> {}

impl<const VECTORS: bool> Source for Narrow<VECTORS> {
    type Item = u32;
    const AT_ONCE: usize = 8;
    unsafe fn get(&self, index: u64) -> u32 {
        mixed(index as u32, 5)
    }
    fn has_vector<const N: usize>(&self, index: u64) -> bool {
        assert!(index.is_multiple_of(N as u64), "{N} neighbours from {index} on");
        VECTORS
    }
}

/// [`Over`] with a default.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
struct Read<const VECTORS: bool>(Over<Mix<u32, 1>, Narrow<VECTORS>>);

impl<const VECTORS: bool> Default for Read<VECTORS> {
    fn default() -> Self {
        // SAFETY: no arrays.
        Read(unsafe { Over::new(Mix::default(), Narrow) })
    }
}

// SAFETY: repr(transparent) over plain data.
unsafe impl<const VECTORS: bool> Plain for Read<VECTORS> {}

impl<const VECTORS: bool> Monoid for Read<VECTORS> {
    type Item = Position;
    type Acc = [u64; 1];
    type Output = [u64; 1];
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    const AT_ONCE: usize = 8;
    fn identity(&self) -> [u64; 1] {
        self.0.identity()
    }
    fn lift(&self, item: Position, index: u64) -> [u64; 1] {
        self.0.lift(item, index)
    }
    fn combine(&self, left: [u64; 1], right: [u64; 1]) -> [u64; 1] {
        self.0.combine(left, right)
    }
    fn fold_rows<const V: usize, const U: usize>(
        &self,
        lanes: Option<[[u64; 1]; V]>,
        rows: [[Position; V]; U],
        index: u64,
        stride: u64,
    ) -> [[u64; 1]; V] {
        self.0.fold_rows(lanes, rows, index, stride)
    }
    fn finish(&self, acc: [u64; 1]) -> [u64; 1] {
        acc
    }
}

kernels! {
    static TABLE:
    mix_u32 => Mix<u32, 1>,
    mix_u16_wide => Mix<u16, 2>,
    read => Read<false>,
    read_vectors => Read<true>,
}

/// Two chunks of so many rows and a part of another.
fn check<Op: Monoid<Output: PartialEq + Debug> + Default>(
    make: impl Fn(usize) -> Op::Item,
    rows: &[u64],
    offsets: &[usize],
) {
    let vector = tree::vector_len(size_of::<Op::Item>()) as u64;
    let row = MAX_GROUPS as u64 * vector;
    for &rows in rows {
        let chunk = rows * row;
        for last in [1, row - 1, 4 * row, 8 * row + vector, 16 * row + 1, chunk - 1, chunk] {
            let n = 2 * chunk + last.min(chunk);
            let shape = Shape { n, vector: vector as u32, groups: MAX_GROUPS, chunk, chunks: 3 };
            let input = Input::new(n as usize, &make);
            for &offset in offsets {
                let items = input.slice(offset, n as usize);
                let op = Op::default();
                let expected =
                    tree::fold_shape(&op, &shape, &|i| items[i as usize]).map(|acc| op.finish(acc));
                let found = simulate_as::<Op>(&TABLE, items, shape, Schedule::Seeded(n));
                assert_eq!(Some(found), expected, "{rows} rows, n = {n}, start + {offset}");
            }
        }
    }
}

#[test]
fn small_lanes() {
    check::<Mix<u32, 1>>(|i| i as u32 * 31, &[4, 13], &[0, 1]);
}

#[test]
fn wide_lanes() {
    check::<Mix<u16, 2>>(|i| (i * 31) as u16, &[6], &[0, 3]);
}

#[test]
fn narrow_positions() {
    check::<Read<false>>(|_| Position, &[4, 37], &[0]);
    check::<Read<true>>(|_| Position, &[4, 37], &[0]);
}
