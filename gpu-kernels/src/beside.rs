//! Arrays beside the items of segments: parameters of each segment, inputs of lower rank, results of a fused map.
//!
//! A kernel reads the items that it reduces itself, in whichever way is fastest. What lies beside them is part of the
//! operator: [`Beside`] hands each item on with what a [`Source`] has for it, [`Writing`] writes what a map makes of each
//! item to a [`Sink`], [`OwnOperator`] reads each segment's operator from an array of them. The sources and sinks here know
//! where a segment's part begins, because kernels tell operators which segment they are at work on
//! ([`Monoid::for_segment`]).
//!
//! | `x[k][i]` beside | is | item `i` of segment `k` |
//! | --- | --- | --- |
//! | `bs[i]` | [`Along::items`] | `bs[i]` |
//! | `c[k]` | [`PerSegment`] | `c[k]`, read once a segment |
//! | `y[k][i]`, `z[i][k]`, ... | [`Along::rows`], [`Along::new`] | wherever its axes lead; a stride of 0 broadcasts along an axis |
//! | `y[begins[k] + i]` | [`Ragged`] | for segments of any lengths |
//!
//! ```
//! use warpfold_gpu_kernels::{beside::{Along, Beside, PerSegment}, segment_kernels, source::Zip2};
//! use warpfold_monoid::{Map, MapFn, Plain, Sum, fused::Parts2};
//!
//! /// `x * b + c`.
//! #[derive(Clone, Copy, Plain)]
//! struct Affine;
//! impl MapFn for Affine {
//!     type From = Parts2<f32, Parts2<f32, f32>>;
//!     type To = f32;
//!     fn map(&self, item: Parts2<f32, Parts2<f32, f32>>, _index: u64) -> f32 {
//!         let (x, beside) = item.get();
//!         let (b, c) = beside.get();
//!         x * b + c
//!     }
//! }
//!
//! segment_kernels! {
//!     /// The sums of `x[k][i] * bs[i] + cs[k]` over `i`.
//!     pub static SEGMENTS:
//!     affine_rows => Beside<Map<Sum<f32>, Affine>, Zip2<Along<f32>, PerSegment<f32>>>,
//! }
//! ```
//!
//! On the host, `Engine::segments_beside` of `warpfold-host` does the rest. R. W. Larsen and T. Henriksen call the operands
//! that do not change along an axis *invariant variables* (Strategies for Regular Segmented Reductions on GPU, 2017).

use warpfold_monoid::{MapFn, Monoid, Plain, fingerprint, fused::Parts2, zeroed};

pub use crate::segments::gather::Axis;
use crate::source::{Array, ArrayMut, Sink, Source};

/// How far the position of that number on some axes, the last one running fastest, is from the first.
#[inline(always)]
fn distance<const AXES: usize>(axes: &[Axis; AXES], number: u64) -> i64 {
    let mut rest = number;
    let mut distance = 0_i64;
    let mut left = AXES;
    while left > 0 {
        left -= 1;
        let Axis { len, stride } = axes[left];
        let mut at = rest;
        if left > 0 {
            // Division of 64 bits takes several times as long.
            rest = if (rest | len) >> 32 == 0 {
                (rest as u32).checked_div(len as u32).unwrap_or(0) as u64
            } else {
                rest.checked_div(len).unwrap_or(0)
            };
            at -= rest * len;
        }
        distance = distance.wrapping_add((at as i64).wrapping_mul(stride));
    }
    distance
}

macro_rules! along {
    ($(#[$meta:meta])* $name:ident, $array:ident, $what:literal) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name<T, const AXES: usize = 1> {
            array: $array<T>,
            kept: [Axis; AXES],
            reduced: [Axis; AXES],
        }

        // SAFETY: repr(C), words.
        unsafe impl<T: Plain, const AXES: usize> Plain for $name<T, AXES> {
            const LAYOUT: u64 = fingerprint(&[$array::<T>::LAYOUT, AXES as u64]);
        }

        impl<T: Plain, const AXES: usize> $name<T, AXES> {
            #[doc = concat!($what, " whose item for position `k` on the kept axes and `i` on the reduced ones, the last axis")]
            /// of either running fastest, lies as many strides from the array's beginning. Axes that are not needed come
            /// first, with length 1.
            pub const fn new(array: $array<T>, kept: [Axis; AXES], reduced: [Axis; AXES]) -> Self {
                $name { array, kept, reduced }
            }
        }

        impl<T: Plain> $name<T> {
            /// Rows side by side, of `n` items each.
            pub const fn rows(array: $array<T>, n: u64) -> Self {
                let kept = Axis { len: 1, stride: n as i64 };
                $name { array, kept: [kept], reduced: [Axis { len: n, stride: 1 }] }
            }
        }
    };
}

along! {
    /// An array that is read along with the items of segments, broadcast along axes that it does not have.
    Along, Array, "An array"
}

along! {
    /// An array that is written along with the items of segments.
    AlongMut, ArrayMut, "An array"
}

impl<T: Plain> Along<T> {
    /// The same items for every segment: item `i` is the array's.
    pub const fn items(array: Array<T>) -> Self {
        Along { array, kept: [Axis { len: 1, stride: 0 }], reduced: [Axis { len: 1, stride: 1 }] }
    }
}

impl<T: Plain, const AXES: usize> Source for Along<T, AXES> {
    type Item = T;
    const PER_SEGMENT: bool = true;
    #[inline(always)]
    fn for_segment(&self, k: u64) -> Self {
        Along { array: self.array.moved(distance(&self.kept, k)), ..*self }
    }
    #[inline(always)]
    unsafe fn get(&self, index: u64) -> T {
        // SAFETY: the caller's promise.
        unsafe { self.array.moved(distance(&self.reduced, index)).get(0) }
    }
}

impl<T: Plain, const AXES: usize> Sink for AlongMut<T, AXES> {
    type Item = T;
    const PER_SEGMENT: bool = true;
    #[inline(always)]
    fn for_segment(&self, k: u64) -> Self {
        AlongMut { array: self.array.moved(distance(&self.kept, k)), ..*self }
    }
    #[inline(always)]
    unsafe fn put(&self, index: u64, item: T) {
        // SAFETY: the caller's promise.
        unsafe { self.array.moved(distance(&self.reduced, index)).put(0, item) }
    }
}

/// An array with an item for each segment, which is read once: every item of segment `k` has item `k` beside it.
#[repr(C, packed)]
#[derive(Clone, Copy, Debug)]
pub struct PerSegment<T> {
    array: Array<T>,
    value: T,
}

impl<T: Plain> PerSegment<T> {
    /// The items of that array.
    pub const fn new(array: Array<T>) -> Self {
        PerSegment { array, value: zeroed() }
    }
}

// SAFETY: repr(C, packed), plain fields: no padding.
unsafe impl<T: Plain> Plain for PerSegment<T> {
    const LAYOUT: u64 = fingerprint(&[1, Array::<T>::LAYOUT]);
}

impl<T: Plain> Source for PerSegment<T> {
    type Item = T;
    const PER_SEGMENT: bool = true;
    #[inline(always)]
    fn for_segment(&self, k: u64) -> Self {
        let PerSegment { array, .. } = *self;
        // SAFETY: what uses sources promises an item for each segment that is there.
        PerSegment { array, value: unsafe { array.get(k) } }
    }
    #[inline(always)]
    unsafe fn get(&self, _index: u64) -> T {
        self.value
    }
}

macro_rules! ragged {
    ($(#[$meta:meta])* $name:ident, $array:ident) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name<T> {
            array: $array<T>,
            begins: Array<u64>,
        }

        // SAFETY: repr(C), words.
        unsafe impl<T: Plain> Plain for $name<T> {
            const LAYOUT: u64 = fingerprint(&[2, $array::<T>::LAYOUT]);
        }

        impl<T: Plain> $name<T> {
            /// The items of an array whose segment `k` begins at item `begins[k]`.
            pub const fn new(array: $array<T>, begins: Array<u64>) -> Self {
                $name { array, begins }
            }

            #[inline(always)]
            fn at(&self, k: u64) -> Self {
                // SAFETY: what uses sources and sinks promises a begin for each segment that is there.
                let begin = unsafe { self.begins.get(k) };
                $name { array: self.array.moved(begin as i64), ..*self }
            }
        }
    };
}

ragged! {
    /// An array that is read along with segments of any lengths.
    Ragged, Array
}

ragged! {
    /// An array that is written along with segments of any lengths, none of which overlap.
    RaggedMut, ArrayMut
}

impl<T: Plain> Source for Ragged<T> {
    type Item = T;
    const PER_SEGMENT: bool = true;
    #[inline(always)]
    fn for_segment(&self, k: u64) -> Self {
        self.at(k)
    }
    #[inline(always)]
    unsafe fn get(&self, index: u64) -> T {
        // SAFETY: the caller's promise.
        unsafe { self.array.get(index) }
    }
}

impl<T: Plain> Sink for RaggedMut<T> {
    type Item = T;
    const PER_SEGMENT: bool = true;
    #[inline(always)]
    fn for_segment(&self, k: u64) -> Self {
        self.at(k)
    }
    #[inline(always)]
    unsafe fn put(&self, index: u64, item: T) {
        // SAFETY: the caller's promise.
        unsafe { self.array.put(index, item) }
    }
}

/// The methods that an adapter hands on to the operator in it.
macro_rules! handed_on {
    () => {
        type Acc = Op::Acc;
        type Output = Op::Output;
        type Empty = Op::Empty;
        const COMMUTATIVE: bool = Op::COMMUTATIVE;
        const ANY_ORDER: bool = Op::ANY_ORDER;
        #[inline(always)]
        fn identity(&self) -> Op::Acc {
            self.op().identity()
        }
        #[inline(always)]
        fn combine(&self, left: Op::Acc, right: Op::Acc) -> Op::Acc {
            self.op().combine(left, right)
        }
        #[inline(always)]
        fn finish(&self, acc: Op::Acc) -> Op::Output {
            self.op().finish(acc)
        }
        #[inline(always)]
        fn finish_empty(&self) -> Op::Output {
            self.op().finish_empty()
        }
    };
}

/// An operator over pairs of an item and what a source has beside it. Its own items are those of the array that is reduced,
/// and so is the canonical tree.
///
/// ```
/// use warpfold_gpu_kernels::{beside::{Along, Beside}, source::Array};
/// use warpfold_monoid::{Dot, Monoid, tree};
/// # use warpfold_monoid::{Map, MapFn, Plain, Sum, fused::Parts2};
/// # #[derive(Clone, Copy, Plain)]
/// # struct Times;
/// # impl MapFn for Times {
/// #     type From = Parts2<i32, i32>;
/// #     type To = i32;
/// #     fn map(&self, pair: Parts2<i32, i32>, _index: u64) -> i32 { pair.get().0 * pair.get().1 }
/// # }
///
/// // Rows times a matrix of the same shape; `Times` multiplies pairs.
/// let factors = [1, 10, 100, 7, 7, 7];
/// let factors = Along::rows(Array::at(factors.as_ptr().expose_provenance() as u64), 3);
/// // SAFETY: two rows of three.
/// let op = unsafe { Beside::new(Map::new(Sum::<i32>::new(), Times), factors) };
/// assert_eq!(tree::reduce(&op.for_segment(0), &[1, 2, 3]), 321);
/// assert_eq!(tree::reduce(&op.for_segment(1), &[1, 2, 3]), 42);
/// ```
#[repr(C, packed)]
#[derive(Clone, Copy, Debug)]
pub struct Beside<Op, S> {
    // Addresses first: behind parameters of four bytes they would not be aligned.
    source: S,
    op: Op,
}

impl<Op: Monoid, S: Source> Beside<Op, S> {
    /// `op` over items, each with what `source` has for it.
    ///
    /// # Safety
    ///
    /// Whenever this reduces segments, the source has something for every item of each, in memory of the reducing backend,
    /// which nothing writes meanwhile. The same holds of all numbers of segments and indices that its methods are called
    /// with.
    pub const unsafe fn new(op: Op, source: S) -> Self {
        Beside { source, op }
    }

    #[inline(always)]
    fn op(&self) -> Op {
        self.op
    }
}

// SAFETY: repr(C, packed), plain parts: no padding.
unsafe impl<Op: Plain, S: Plain> Plain for Beside<Op, S> {
    const LAYOUT: u64 = fingerprint(&[3, size_of::<S>() as u64, S::LAYOUT, Op::LAYOUT]);
}

impl<X: Plain, Op: Monoid<Item = Parts2<X, S::Item>>, S: Source> Monoid for Beside<Op, S> {
    type Item = X;
    handed_on!();
    const PER_SEGMENT: bool = Op::PER_SEGMENT || S::PER_SEGMENT;
    #[inline(always)]
    fn for_segment(&self, k: u64) -> Self {
        let Beside { op, source } = *self;
        Beside { op: op.for_segment(k), source: source.for_segment(k) }
    }
    #[inline(always)]
    fn lift(&self, item: X, index: u64) -> Op::Acc {
        let Beside { op, source } = *self;
        // SAFETY: promised when this was made.
        op.lift(Parts2::new(item, unsafe { source.get(index) }), index)
    }
    #[inline(always)]
    fn push(&self, acc: Op::Acc, item: X, index: u64) -> Op::Acc {
        let Beside { op, source } = *self;
        // SAFETY: promised when this was made.
        op.push(acc, Parts2::new(item, unsafe { source.get(index) }), index)
    }
    #[inline(always)]
    fn fold_many<const N: usize>(&self, items: [X; N], index: u64) -> Op::Acc {
        let Beside { op, source } = *self;
        // SAFETY: promised when this was made.
        let pair = |i: usize| Parts2::new(items[i], unsafe { source.get(index + i as u64) });
        op.fold_many(core::array::from_fn::<_, N, _>(pair), index)
    }
}

/// An operator that also writes what a map makes of each item to a sink: *map-out* over segments.
///
/// The reduction is of the items as they are; let the operator be a [`Map`](warpfold_monoid::Map) with the same function to
/// reduce the results. With arrays beside the items, put this into a [`Beside`]: the map then has the pairs.
///
/// ```
/// use warpfold_gpu_kernels::{beside::{AlongMut, Writing}, source::ArrayMut};
/// use warpfold_monoid::{MapFn, Monoid, Plain, Sum, tree};
///
/// #[derive(Clone, Copy, Plain)]
/// struct Square;
/// impl MapFn for Square {
///     type From = i32;
///     type To = i32;
///     fn map(&self, item: i32, _index: u64) -> i32 { item * item }
/// }
///
/// let mut squares = [0; 4];
/// let sink = AlongMut::rows(ArrayMut::at(squares.as_mut_ptr().expose_provenance() as u64), 2);
/// // SAFETY: two rows of two, and nobody looks meanwhile.
/// let op = unsafe { Writing::new(Sum::<i32>::new(), Square, sink) };
/// assert_eq!(tree::reduce(&op.for_segment(0), &[1, 2]), 3);
/// assert_eq!(tree::reduce(&op.for_segment(1), &[3, 4]), 7);
/// assert_eq!(squares, [1, 4, 9, 16]);
/// ```
#[repr(C, packed)]
#[derive(Clone, Copy, Debug)]
pub struct Writing<Op, F, D> {
    // Addresses first: behind parameters of four bytes they would not be aligned.
    sink: D,
    map: F,
    op: Op,
}

impl<Op: Monoid, F: MapFn<From = Op::Item>, D: Sink<Item = F::To>> Writing<Op, F, D> {
    /// `op`, which also writes what `map` makes of its items to `sink`.
    ///
    /// # Safety
    ///
    /// Whenever this reduces segments, the sink has a place for every item of each, in memory of the reducing backend, which
    /// nothing else uses meanwhile. The same holds of all numbers of segments and indices that its methods are called with.
    pub const unsafe fn new(op: Op, map: F, sink: D) -> Self {
        Writing { sink, map, op }
    }
}

impl<Op: Monoid, F: MapFn<From = Op::Item>, D: Sink<Item = F::To>> Writing<Op, F, D> {
    #[inline(always)]
    fn op(&self) -> Op {
        self.op
    }

    #[inline(always)]
    fn write(&self, item: Op::Item, index: u64) {
        let Writing { sink, map, .. } = *self;
        // SAFETY: promised when this was made; each item is lifted or pushed once.
        unsafe { sink.put(index, map.map(item, index)) }
    }
}

// SAFETY: repr(C, packed), plain parts: no padding.
unsafe impl<Op: Plain, F: Plain, D: Plain> Plain for Writing<Op, F, D> {
    const LAYOUT: u64 =
        fingerprint(&[4, size_of::<D>() as u64, D::LAYOUT, size_of::<F>() as u64, F::LAYOUT, Op::LAYOUT]);
}

impl<Op: Monoid, F: MapFn<From = Op::Item>, D: Sink<Item = F::To>> Monoid for Writing<Op, F, D> {
    type Item = Op::Item;
    handed_on!();
    const PER_SEGMENT: bool = Op::PER_SEGMENT || F::PER_SEGMENT || D::PER_SEGMENT;
    #[inline(always)]
    fn for_segment(&self, k: u64) -> Self {
        let Writing { sink, map, op } = *self;
        Writing { sink: sink.for_segment(k), map: map.for_segment(k), op: op.for_segment(k) }
    }
    #[inline(always)]
    fn lift(&self, item: Op::Item, index: u64) -> Op::Acc {
        self.write(item, index);
        self.op().lift(item, index)
    }
    #[inline(always)]
    fn push(&self, acc: Op::Acc, item: Op::Item, index: u64) -> Op::Acc {
        self.write(item, index);
        self.op().push(acc, item, index)
    }
    #[inline(always)]
    fn fold_many<const N: usize>(&self, items: [Op::Item; N], index: u64) -> Op::Acc {
        let mut i = 0;
        while i < N {
            self.write(items[i], index + i as u64);
            i += 1;
        }
        self.op().fold_many(items, index)
    }
}

/// A [`Writing`] whose items have others beside them, all of which the map has.
pub type WritingBeside<Op, F, D, S> = Beside<Writing<Op, F, D>, S>;

/// An operator of each segment's own: that of segment `k` is item `k` of an array of operators.
///
/// ```
/// use warpfold_gpu_kernels::{beside::OwnOperator, source::Array};
/// use warpfold_monoid::{Max, Monoid, WithInitial, tree};
///
/// // The greatest item of each segment, but no less than the segment's own floor.
/// let floors = [0, 5].map(|floor| WithInitial::of_item(Max::<i32>::new(), floor));
/// let array = Array::at(floors.as_ptr().expose_provenance() as u64);
/// // SAFETY: two segments at most, and the operators live as long.
/// let op = unsafe { OwnOperator::new(floors[0], array) };
/// assert_eq!([0, 1].map(|k| tree::reduce(&op.for_segment(k), &[1, 2])), [2, 5]);
/// ```
#[repr(C, packed)]
#[derive(Clone, Copy, Debug)]
pub struct OwnOperator<Op> {
    operators: Array<Op>,
    op: Op,
}

impl<Op: Monoid> OwnOperator<Op> {
    /// The operators of that array, one for each segment; `op` is any of their type, and gives identities.
    ///
    /// # Safety
    ///
    /// Whenever this reduces segments, the array has an operator for each of them, aligned, in memory of the reducing
    /// backend, which nothing writes meanwhile. The same holds of all numbers that
    /// [`for_segment`](Monoid::for_segment) is called with.
    pub const unsafe fn new(op: Op, operators: Array<Op>) -> Self {
        OwnOperator { operators, op }
    }

    #[inline(always)]
    fn op(&self) -> Op {
        self.op
    }
}

// SAFETY: repr(C, packed), plain parts: no padding.
unsafe impl<Op: Plain> Plain for OwnOperator<Op> {
    const LAYOUT: u64 = fingerprint(&[5, size_of::<Op>() as u64, Op::LAYOUT]);
}

impl<Op: Monoid> Monoid for OwnOperator<Op> {
    type Item = Op::Item;
    handed_on!();
    const PER_SEGMENT: bool = true;
    #[inline(always)]
    fn for_segment(&self, k: u64) -> Self {
        let OwnOperator { operators, .. } = *self;
        // SAFETY: promised when this was made.
        OwnOperator { operators, op: unsafe { operators.get(k) }.for_segment(k) }
    }
    #[inline(always)]
    fn lift(&self, item: Op::Item, index: u64) -> Op::Acc {
        self.op().lift(item, index)
    }
    #[inline(always)]
    fn push(&self, acc: Op::Acc, item: Op::Item, index: u64) -> Op::Acc {
        self.op().push(acc, item, index)
    }
    #[inline(always)]
    fn fold_many<const N: usize>(&self, items: [Op::Item; N], index: u64) -> Op::Acc {
        self.op().fold_many(items, index)
    }
}
