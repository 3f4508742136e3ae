//! Operators made from others: an order that must be kept, no identity, a start value, a map in front, small arrays.
//!
//! Each is an operator like any other, to be exported and reduced with under its own type. None costs anything that it
//! does not say.

use crate::{Atomic, GivesIdentity, GivesNone, Monoid, OnEmpty, Plain, Value, fingerprint, zeroed};

/// The same operator, but never reordered: operands are combined in the order of the input.
///
/// For an operator that is commutative only nearly (ties, rounding), or to compare the two paths.
///
/// ```
/// use warpfold_monoid::{Monoid, Ordered, Sum, tree};
///
/// let op = Ordered(Sum::<u32>::new());
/// assert!(!Ordered::<Sum<u32>>::COMMUTATIVE);
/// assert_eq!(tree::reduce(&op, &[1, 2, 3]), 6);
/// ```
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ordered<Op>(pub Op);

// SAFETY: repr(transparent) over plain data.
unsafe impl<Op: Plain> Plain for Ordered<Op> {
    const LAYOUT: u64 = Op::LAYOUT;
}

impl<Op: Monoid> Monoid for Ordered<Op> {
    type Item = Op::Item;
    type Acc = Op::Acc;
    type Output = Op::Output;
    type Empty = Op::Empty;
    const COMMUTATIVE: bool = false;
    const USES_INDEX: bool = Op::USES_INDEX;
    const PER_SEGMENT: bool = Op::PER_SEGMENT;
    #[inline(always)]
    fn for_segment(&self, k: u64) -> Self {
        Ordered(self.0.for_segment(k))
    }
    #[inline(always)]
    fn identity(&self) -> Op::Acc {
        self.0.identity()
    }
    #[inline(always)]
    fn lift(&self, item: Op::Item, index: u64) -> Op::Acc {
        self.0.lift(item, index)
    }
    #[inline(always)]
    fn combine(&self, left: Op::Acc, right: Op::Acc) -> Op::Acc {
        self.0.combine(left, right)
    }
    #[inline(always)]
    fn push(&self, acc: Op::Acc, item: Op::Item, index: u64) -> Op::Acc {
        self.0.push(acc, item, index)
    }
    #[inline(always)]
    fn finish(&self, acc: Op::Acc) -> Op::Output {
        self.0.finish(acc)
    }
    #[inline(always)]
    fn finish_empty(&self) -> Op::Output {
        self.0.finish_empty()
    }
}

/// The same operator in any order: its bits are given up for time.
///
/// It says that it has [any order](Monoid::ANY_ORDER) although it rounds. Kernels then start their vectors where memory has
/// them, instead of at the first item, and a thread keeps one accumulator, not a vector's worth. Results are as accurate as
/// ever and the same in every run on the same data at the same address, but another backend, address or strategy may
/// give other last bits. So may another run of a scan, which takes what the tiles before have published by then, and by tag, where
/// values are [gathered](Monoid::ATOMIC) by atomic updates and a sum of nothing but negative zeros is a positive one. Only for operators that commute: others do not compile.
///
/// ```
/// use warpfold_monoid::{Fast, Monoid, Sum, tree};
///
/// assert!(Fast::<Sum<f32>>::ANY_ORDER);
/// assert_eq!(tree::reduce(&Fast(Sum::<f32>::new()), &[1.0, 2.5]), 3.5);
/// ```
///
/// ```compile_fail
/// use warpfold_monoid::{Compose, Fast, Monoid};
///
/// const ANY_ORDER: bool = Fast::<Compose<f32>>::ANY_ORDER;
/// ```
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fast<Op>(pub Op);

// SAFETY: repr(transparent) over plain data.
unsafe impl<Op: Plain> Plain for Fast<Op> {
    const LAYOUT: u64 = Op::LAYOUT;
}

impl<Op: Monoid> Monoid for Fast<Op> {
    type Item = Op::Item;
    type Acc = Op::Acc;
    type Output = Op::Output;
    type Empty = Op::Empty;
    const COMMUTATIVE: bool = true;
    const USES_INDEX: bool = Op::USES_INDEX;
    const ANY_ORDER: bool = {
        assert!(Op::COMMUTATIVE, "`Fast` reorders: its operator must commute");
        true
    };
    const ATOMIC: Atomic = Op::ATOMIC;
    const VECTORISE: bool = Op::VECTORISE;
    const PER_SEGMENT: bool = Op::PER_SEGMENT;
    #[inline(always)]
    fn for_segment(&self, k: u64) -> Self {
        Fast(self.0.for_segment(k))
    }
    #[inline(always)]
    fn identity(&self) -> Op::Acc {
        self.0.identity()
    }
    #[inline(always)]
    fn lift(&self, item: Op::Item, index: u64) -> Op::Acc {
        self.0.lift(item, index)
    }
    #[inline(always)]
    fn combine(&self, left: Op::Acc, right: Op::Acc) -> Op::Acc {
        self.0.combine(left, right)
    }
    #[inline(always)]
    fn push(&self, acc: Op::Acc, item: Op::Item, index: u64) -> Op::Acc {
        self.0.push(acc, item, index)
    }
    #[inline(always)]
    fn finish(&self, acc: Op::Acc) -> Op::Output {
        self.0.finish(acc)
    }
    #[inline(always)]
    fn finish_empty(&self) -> Op::Output {
        self.0.finish_empty()
    }
}

/// An associative operator without an identity: it has no value for nothing.
///
/// [`NonEmpty`] makes an operator of it. The methods are those of [`Monoid`], under the same laws.
///
/// ```
/// use warpfold_monoid::{NonEmpty, Plain, Semigroup, tree};
///
/// /// The first item.
/// #[derive(Clone, Copy, Plain)]
/// struct First;
///
/// impl Semigroup for First {
///     type Item = f32;
///     type Acc = f32;
///     type Output = f32;
///     const COMMUTATIVE: bool = false;
///     fn lift(&self, item: f32, _index: u64) -> f32 { item }
///     fn combine(&self, left: f32, _right: f32) -> f32 { left }
///     fn finish(&self, acc: f32) -> f32 { acc }
/// }
///
/// assert_eq!(tree::reduce(&NonEmpty(First), &[2.5, 7.0]), Some(2.5));
/// assert_eq!(tree::reduce(&NonEmpty(First), &[]), None);
/// ```
pub trait Semigroup: Plain {
    /// What lies in memory.
    type Item: Plain;
    /// What is combined.
    type Acc: Plain;
    /// What a reduction writes to device memory.
    type Output: Plain;
    /// May operands be reordered?
    const COMMUTATIVE: bool;
    /// Has the result the same bits in any order and grouping? See [`Monoid::ANY_ORDER`].
    const ANY_ORDER: bool = false;
    /// Is [`for_segment`](Semigroup::for_segment) anything but the semigroup itself? See [`Monoid::PER_SEGMENT`].
    const PER_SEGMENT: bool = false;

    /// That of segment `k`: see [`Monoid::for_segment`].
    #[inline(always)]
    fn for_segment(&self, _k: u64) -> Self {
        *self
    }

    /// Maps one item; `index` is its position in the segment being reduced.
    fn lift(&self, item: Self::Item, index: u64) -> Self::Acc;

    /// Combines two neighbouring values, `left` standing before `right` in the input.
    fn combine(&self, left: Self::Acc, right: Self::Acc) -> Self::Acc;

    /// Takes one item into an accumulator that already holds at least one.
    #[inline(always)]
    fn push(&self, acc: Self::Acc, item: Self::Item, index: u64) -> Self::Acc {
        self.combine(acc, self.lift(item, index))
    }

    /// Turns the last accumulator into the result.
    fn finish(&self, acc: Self::Acc) -> Self::Output;
}

/// The operator that a [`Semigroup`] is.
///
/// A reduction of nothing is `None` on the host, and device memory then receives an output of **zero bytes**. Nothing else
/// is different from an operator with an identity, and nothing costs more: a reduction never combines an identity. Zero
/// bytes ([`zeroed`]) stand where one is asked for; the semigroup's methods never see them.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NonEmpty<S>(pub S);

// SAFETY: repr(transparent) over plain data.
unsafe impl<S: Plain> Plain for NonEmpty<S> {
    const LAYOUT: u64 = S::LAYOUT;
}

impl<S: Semigroup> Monoid for NonEmpty<S> {
    type Item = S::Item;
    type Acc = S::Acc;
    type Output = S::Output;
    type Empty = GivesNone;
    const COMMUTATIVE: bool = S::COMMUTATIVE;
    const ANY_ORDER: bool = S::ANY_ORDER;
    const PER_SEGMENT: bool = S::PER_SEGMENT;
    #[inline(always)]
    fn for_segment(&self, k: u64) -> Self {
        NonEmpty(self.0.for_segment(k))
    }
    #[inline(always)]
    fn identity(&self) -> S::Acc {
        zeroed()
    }
    #[inline(always)]
    fn lift(&self, item: S::Item, index: u64) -> S::Acc {
        self.0.lift(item, index)
    }
    #[inline(always)]
    fn combine(&self, left: S::Acc, right: S::Acc) -> S::Acc {
        self.0.combine(left, right)
    }
    #[inline(always)]
    fn push(&self, acc: S::Acc, item: S::Item, index: u64) -> S::Acc {
        self.0.push(acc, item, index)
    }
    #[inline(always)]
    fn finish(&self, acc: S::Acc) -> S::Output {
        self.0.finish(acc)
    }
    #[inline(always)]
    fn finish_empty(&self) -> S::Output {
        zeroed()
    }
}

/// The same operator with a start value, which stands before all items and is combined exactly once, at the end.
///
/// A reduction of nothing is the start value, so the host's result is never an `Option`. (Fused operators give a
/// [`Parts2`](crate::fused::Parts2) here; put the start values on the parts to get a tuple.)
///
/// ```
/// use warpfold_monoid::{Min, Sum, WithInitial, tree};
///
/// let op = WithInitial::new(Sum::<i32>::new(), 100);
/// assert_eq!(tree::reduce(&op, &[1, 2]), 103);
/// let op = WithInitial::of_item(Min::<f32>::new(), 0.5);
/// assert_eq!(tree::reduce(&op, &[]), 0.5);
/// ```
#[repr(C, packed)]
#[derive(Clone, Copy, Debug)]
pub struct WithInitial<Op: Monoid> {
    op: Op,
    initial: Op::Acc,
}

impl<Op: Monoid> WithInitial<Op> {
    /// Starts with an accumulator, such as an earlier reduction left.
    pub const fn new(op: Op, initial: Op::Acc) -> Self {
        WithInitial { op, initial }
    }

    /// Starts with an item, lifted with index 0.
    pub fn of_item(op: Op, item: Op::Item) -> Self {
        WithInitial { op, initial: op.lift(item, 0) }
    }

    /// The operator without its start value.
    #[inline(always)]
    pub const fn op(&self) -> Op {
        self.op
    }

    /// The start value.
    #[inline(always)]
    pub const fn initial(&self) -> Op::Acc {
        self.initial
    }
}

// SAFETY: repr(C, packed), plain fields: no padding.
unsafe impl<Op: Monoid> Plain for WithInitial<Op> {
    const LAYOUT: u64 = fingerprint(&[size_of::<Op>() as u64, Op::LAYOUT, Op::Acc::LAYOUT]);
}

impl<Op: Monoid> Monoid for WithInitial<Op> {
    type Item = Op::Item;
    type Acc = Op::Acc;
    type Output = Op::Output;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = Op::COMMUTATIVE;
    const USES_INDEX: bool = Op::USES_INDEX;
    const ANY_ORDER: bool = Op::ANY_ORDER;
    const PER_SEGMENT: bool = Op::PER_SEGMENT;
    #[inline(always)]
    fn for_segment(&self, k: u64) -> Self {
        WithInitial { op: self.op().for_segment(k), initial: self.initial() }
    }
    #[inline(always)]
    fn identity(&self) -> Op::Acc {
        self.op().identity()
    }
    #[inline(always)]
    fn lift(&self, item: Op::Item, index: u64) -> Op::Acc {
        self.op().lift(item, index)
    }
    #[inline(always)]
    fn combine(&self, left: Op::Acc, right: Op::Acc) -> Op::Acc {
        self.op().combine(left, right)
    }
    #[inline(always)]
    fn push(&self, acc: Op::Acc, item: Op::Item, index: u64) -> Op::Acc {
        self.op().push(acc, item, index)
    }
    #[inline(always)]
    fn fold_many<const N: usize>(&self, items: [Op::Item; N], index: u64) -> Op::Acc {
        self.op().fold_many(items, index)
    }
    #[inline(always)]
    fn finish(&self, acc: Op::Acc) -> Op::Output {
        let op = self.op();
        op.finish(op.combine(self.initial(), acc))
    }
    #[inline(always)]
    fn finish_empty(&self) -> Op::Output {
        self.op().finish(self.initial())
    }
}

/// A function from what lies in memory to an operator's items, for [`Map`]: a type, with its parameters as fields.
pub trait MapFn: Plain {
    /// What lies in memory.
    type From: Plain;
    /// The operator's item.
    type To: Plain;
    /// Is [`for_segment`](MapFn::for_segment) anything but the function itself?
    const PER_SEGMENT: bool = false;

    /// The function for segment `k`: see [`Monoid::for_segment`].
    #[inline(always)]
    fn for_segment(&self, _k: u64) -> Self {
        *self
    }

    /// Maps one item; `index` is its position in the segment being reduced.
    fn map(&self, from: Self::From, index: u64) -> Self::To;
}

/// An operator over mapped items, the map fused in front: no mapped array is ever written.
///
/// The sum of squares of one field of a struct, relative to a centre:
///
/// ```
/// use warpfold_monoid::{Map, MapFn, Plain, Sum, tree};
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Plain)]
/// struct Particle { mass: f32, position: [f32; 3] }
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Plain)]
/// struct SquaredHeight { ground: f32 }
///
/// impl MapFn for SquaredHeight {
///     type From = Particle;
///     type To = f32;
///     fn map(&self, from: Particle, _index: u64) -> f32 {
///         let height = from.position[2] - self.ground;
///         height * height
///     }
/// }
///
/// let op = Map::new(Sum::<f32>::new(), SquaredHeight { ground: 1.0 });
/// let particles = [3.0, 5.0].map(|z| Particle { mass: 1.0, position: [0.0, 0.0, z] });
/// assert_eq!(tree::reduce(&op, &particles), 20.0);
/// ```
#[repr(C, packed)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Map<Op, F> {
    op: Op,
    map: F,
}

impl<Op: Copy, F: Copy> Map<Op, F> {
    /// `op` over what `map` makes of the items.
    pub const fn new(op: Op, map: F) -> Self {
        Map { op, map }
    }

    /// The operator behind the map.
    #[inline(always)]
    pub const fn op(&self) -> Op {
        self.op
    }

    /// The map.
    #[inline(always)]
    pub const fn map(&self) -> F {
        self.map
    }
}

// SAFETY: repr(C, packed), plain fields: no padding.
unsafe impl<Op: Plain, F: Plain> Plain for Map<Op, F> {
    const LAYOUT: u64 = fingerprint(&[size_of::<Op>() as u64, Op::LAYOUT, F::LAYOUT]);
}

impl<Op: Monoid, F: MapFn<To = Op::Item>> Monoid for Map<Op, F> {
    type Item = F::From;
    type Acc = Op::Acc;
    type Output = Op::Output;
    type Empty = Op::Empty;
    const COMMUTATIVE: bool = Op::COMMUTATIVE;
    const ANY_ORDER: bool = Op::ANY_ORDER;
    const ATOMIC: Atomic = Op::ATOMIC;
    const PER_SEGMENT: bool = Op::PER_SEGMENT || F::PER_SEGMENT;
    #[inline(always)]
    fn for_segment(&self, k: u64) -> Self {
        Map { op: self.op().for_segment(k), map: self.map().for_segment(k) }
    }
    #[inline(always)]
    fn identity(&self) -> Op::Acc {
        self.op().identity()
    }
    #[inline(always)]
    fn lift(&self, item: F::From, index: u64) -> Op::Acc {
        self.op().lift(self.map().map(item, index), index)
    }
    #[inline(always)]
    fn combine(&self, left: Op::Acc, right: Op::Acc) -> Op::Acc {
        self.op().combine(left, right)
    }
    #[inline(always)]
    fn push(&self, acc: Op::Acc, item: F::From, index: u64) -> Op::Acc {
        self.op().push(acc, self.map().map(item, index), index)
    }
    #[inline(always)]
    fn fold_many<const N: usize>(&self, items: [F::From; N], index: u64) -> Op::Acc {
        self.op()
            .fold_many(core::array::from_fn::<_, N, _>(|i| self.map().map(items[i], index + i as u64)), index)
    }
    #[inline(always)]
    fn finish(&self, acc: Op::Acc) -> Op::Output {
        self.op().finish(acc)
    }
    #[inline(always)]
    fn finish_empty(&self) -> Op::Output {
        self.op().finish_empty()
    }
}

/// An operator over small arrays, element by element: with [`Sum`](crate::Sum), the addition of vectors.
///
/// All elements of one item have the item's index. The [limits](crate::limits) hold for the arrays as a whole.
///
/// ```
/// use warpfold_monoid::{Elementwise, Max, Sum, tree};
///
/// let op = Elementwise::<Sum<f32>, 3>::default();
/// assert_eq!(tree::reduce(&op, &[[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]), [11.0, 22.0, 33.0]);
/// assert_eq!(tree::reduce(&Elementwise::<Max<i32>, 2>::default(), &[]), [None, None]);
/// ```
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elementwise<Op, const K: usize>(pub Op);

// SAFETY: repr(transparent) over plain data.
unsafe impl<Op: Plain, const K: usize> Plain for Elementwise<Op, K> {
    const LAYOUT: u64 = Op::LAYOUT;
}

impl<Op: Monoid, const K: usize> Monoid for Elementwise<Op, K> {
    type Item = [Op::Item; K];
    type Acc = [Op::Acc; K];
    type Output = [Op::Output; K];
    type Empty = ElementsEmpty<Op>;
    const COMMUTATIVE: bool = Op::COMMUTATIVE;
    const USES_INDEX: bool = Op::USES_INDEX;
    const ANY_ORDER: bool = Op::ANY_ORDER;
    const PER_SEGMENT: bool = Op::PER_SEGMENT;
    #[inline(always)]
    fn for_segment(&self, k: u64) -> Self {
        Elementwise(self.0.for_segment(k))
    }
    #[inline(always)]
    fn identity(&self) -> Self::Acc {
        [self.0.identity(); K]
    }
    #[inline(always)]
    fn lift(&self, item: Self::Item, index: u64) -> Self::Acc {
        core::array::from_fn(|k| self.0.lift(item[k], index))
    }
    #[inline(always)]
    fn combine(&self, left: Self::Acc, right: Self::Acc) -> Self::Acc {
        core::array::from_fn(|k| self.0.combine(left[k], right[k]))
    }
    #[inline(always)]
    fn push(&self, acc: Self::Acc, item: Self::Item, index: u64) -> Self::Acc {
        core::array::from_fn(|k| self.0.push(acc[k], item[k], index))
    }
    #[inline(always)]
    fn fold_many<const N: usize>(&self, items: [Self::Item; N], index: u64) -> Self::Acc {
        core::array::from_fn(|k| self.0.fold_many(core::array::from_fn::<_, N, _>(|i| items[i][k]), index))
    }
    #[inline(always)]
    fn finish(&self, acc: Self::Acc) -> Self::Output {
        acc.map(|acc| self.0.finish(acc))
    }
    #[inline(always)]
    fn finish_empty(&self) -> Self::Output {
        [self.0.finish_empty(); K]
    }
}

/// What [`Elementwise`] gives for no items: an array of what its operator gives.
pub struct ElementsEmpty<Op>(core::marker::PhantomData<fn() -> Op>);

impl<Op: Monoid, const K: usize> OnEmpty<[Op::Output; K]> for ElementsEmpty<Op> {
    type Value = [Value<Op>; K];
    #[inline(always)]
    fn value(output: [Op::Output; K], empty: bool) -> Self::Value {
        output.map(|output| Op::Empty::value(output, empty))
    }
}
