//! Built-in operators that the order of items matters to.

use crate::{
    Element, Float, GivesIdentity, GivesNone, Monoid, NeutralIdentity, Plain, fingerprint,
    monoid::item_by_item, ops::operator,
};

/// The function `x -> scale * x + shift`: an item of [`Compose`].
///
/// ```
/// use warpfold_monoid::Affine;
///
/// assert_eq!(Affine { scale: 2.0, shift: 1.0 }.apply(3.0), 7.0);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Affine<T> {
    /// The factor.
    pub scale: T,
    /// The summand.
    pub shift: T,
}

// SAFETY: repr(C), two fields of one type: no padding.
unsafe impl<T: Plain> Plain for Affine<T> {
    const LAYOUT: u64 = fingerprint(&[T::LAYOUT, T::LAYOUT, 0, size_of::<T>() as u64]);
}

/// A number type that [`Affine`] functions are over: integers wrap, floats round every multiplication and addition.
pub trait Scalar: Element {
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// `self * factor + summand`, not fused.
    fn scale_and_shift(self, factor: Self, summand: Self) -> Self;
    /// The product.
    fn times(self, factor: Self) -> Self;
}

macro_rules! scalars {
    ($($type:ty, $zero:literal, $one:literal, $times:expr, $plus:expr;)*) => {$(
        impl Scalar for $type {
            const ZERO: $type = $zero;
            const ONE: $type = $one;
            #[inline(always)]
            fn scale_and_shift(self, factor: $type, summand: $type) -> $type {
                $plus($times(self, factor), summand)
            }
            #[inline(always)]
            fn times(self, factor: $type) -> $type {
                $times(self, factor)
            }
        }
    )*};
}

scalars! {
    i32, 0, 1, i32::wrapping_mul, i32::wrapping_add;
    u32, 0, 1, u32::wrapping_mul, u32::wrapping_add;
    i64, 0, 1, i64::wrapping_mul, i64::wrapping_add;
    u64, 0, 1, u64::wrapping_mul, u64::wrapping_add;
    f32, 0.0, 1.0, |a: f32, b: f32| a * b, |a: f32, b: f32| a + b;
    f64, 0.0, 1.0, |a: f64, b: f64| a * b, |a: f64, b: f64| a + b;
}

impl<T: Scalar> Affine<T> {
    /// The function's value.
    #[inline(always)]
    pub fn apply(self, x: T) -> T {
        x.scale_and_shift(self.scale, self.shift)
    }

    /// The function that applies `self` first and `then` to its value.
    #[inline(always)]
    pub fn then(self, then: Affine<T>) -> Affine<T> {
        Affine { scale: self.scale.times(then.scale), shift: then.apply(self.shift) }
    }
}

operator! {
    /// The composition of [`Affine`] functions, the first item applied first: what a linear recurrence
    /// `x[i + 1] = scale[i] * x[i] + shift[i]` does over all its steps (G. E. Blelloch, Prefix Sums and Their
    /// Applications, CMU-CS-90-190, 1990, section 1.4). Not commutative. The composition of nothing is the identity.
    ///
    /// ```
    /// use warpfold_monoid::{Affine, Compose, tree};
    ///
    /// let steps = [Affine { scale: 2, shift: 1 }, Affine { scale: 3, shift: 0 }];
    /// let all = tree::reduce(&Compose::<i32>::new(), &steps);
    /// assert_eq!(all.apply(5), 33);
    /// ```
    Compose<T>, 9
}

impl<T: Scalar> Monoid for Compose<T> {
    type Item = Affine<T>;
    type Acc = Affine<T>;
    type Output = Affine<T>;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = false;
    const USES_INDEX: bool = false;
    #[inline(always)]
    fn identity(&self) -> Affine<T> {
        Affine { scale: T::ONE, shift: T::ZERO }
    }
    #[inline(always)]
    fn lift(&self, item: Affine<T>, _index: u64) -> Affine<T> {
        item
    }
    #[inline(always)]
    fn combine(&self, left: Affine<T>, right: Affine<T>) -> Affine<T> {
        left.then(right)
    }
    #[inline(always)]
    fn finish(&self, acc: Affine<T>) -> Affine<T> {
        Affine { scale: acc.scale.canonical(), shift: acc.shift.canonical() }
    }
}

/// What is known of a run of items while their [`MaxSegmentSum`] is sought.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSums<A> {
    /// The greatest sum of neighbours, anywhere.
    pub best: A,
    /// The greatest sum of neighbours from the first item on.
    pub prefix: A,
    /// The greatest sum of neighbours up to the last item.
    pub suffix: A,
    /// The sum of all.
    pub total: A,
}

// SAFETY: repr(C), four fields of one type: no padding.
unsafe impl<A: Plain> Plain for SegmentSums<A> {
    const LAYOUT: u64 = fingerprint(&[A::LAYOUT, 4, size_of::<A>() as u64]);
}

/// A type that [`MaxSegmentSum`] adds items of type `T` up in: an integer, wrapping, or `f64`.
pub trait SegmentAccumulator<T>: Plain {
    /// What the greatest sum comes out as.
    type Output: Plain;
    /// Zero.
    const ZERO: Self;
    /// The item, widened.
    fn of(item: T) -> Self;
    /// The sum.
    fn plus(self, other: Self) -> Self;
    /// The greater; a NaN if either is one.
    fn greater(self, other: Self) -> Self;
    /// The greater of this, which is neither less than zero nor -0.0, and of another. Of NaNs nothing is promised.
    #[inline(always)]
    fn raised_to(self, other: Self) -> Self {
        self.greater(other)
    }
    /// Is this a NaN? Never, but for floats.
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
    /// The [`LANE_BYTES`](Monoid::LANE_BYTES) of [`MaxSegmentSum`].
    const LANE_BYTES: usize = 4 * size_of::<Self>();
    /// What [`MaxSegmentSum`] knows of several items side by side, where there is a faster way than one by one to the same bits.
    #[inline(always)]
    fn of_strip<const V: usize, const U: usize>(_vectors: [[T; V]; U]) -> Option<SegmentSums<Self>> {
        None
    }
    /// Rounds to the output type.
    fn finish(self) -> Self::Output;
}

impl<A> SegmentSums<A> {
    /// The greatest sum. A sum that is a NaN is the greatest of all: some run has one just if all items together do, while
    /// the other three may have dropped an infinity that makes one.
    #[inline(always)]
    fn finish<T>(self) -> A::Output
    where
        A: SegmentAccumulator<T>,
    {
        if self.total.is_nan() { self.total.finish() } else { self.best.finish() }
    }
}

/// A type that has greatest sums of neighbours, and what they are taken in unless the operator says otherwise: integers in
/// their own type, floats in `f64`.
pub trait Segmented: Plain {
    /// The accumulator.
    type Acc: SegmentAccumulator<Self>;
}

macro_rules! integer_segments {
    ($($item:ident: $($acc:ident)+;)*) => {$(
        impl Segmented for $item {
            type Acc = $item;
        }
        $(impl SegmentAccumulator<$item> for $acc {
            type Output = $acc;
            const ZERO: $acc = 0;
            #[inline(always)]
            fn of(item: $item) -> $acc {
                item.into()
            }
            #[inline(always)]
            fn plus(self, other: $acc) -> $acc {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn greater(self, other: $acc) -> $acc {
                self.max(other)
            }
            // Narrow items fold in 32 bits.
            const LANE_BYTES: usize = 4 * if size_of::<$item>() <= 2 { 4 } else { size_of::<$acc>() };
            #[inline(always)]
            fn of_strip<const V: usize, const U: usize>(vectors: [[$item; V]; U]) -> Option<SegmentSums<$acc>> {
                if size_of::<$item>() < size_of::<$acc>() && <$item>::MIN == 0 && U * V <= 256 {
                    // None is negative, and nothing wraps.
                    let (mut narrow, mut total, mut i) = (0_u32, 0, 0);
                    while i < U * V {
                        let item = vectors[i / V][i % V];
                        if size_of::<$item>() <= 2 {
                            narrow += item as u32;
                        } else {
                            total += item as $acc;
                        }
                        i += 1;
                    }
                    total += narrow as $acc;
                    return Some(SegmentSums { best: total, prefix: total, suffix: total, total });
                }
                // A few items of up to 16 bits in 32 bits, where nothing wraps.
                if size_of::<$item>() > 2 || size_of::<$acc>() < 8 || U * V > 256 {
                    return None;
                }
                let op = MaxSegmentSum::<i32>::new();
                let sums = op.fold_strip(vectors.map(|vector| vector.map(|item| item as i32)), 0);
                Some(SegmentSums {
                    best: sums.best as $acc,
                    prefix: sums.prefix as $acc,
                    suffix: sums.suffix as $acc,
                    total: sums.total as $acc,
                })
            }
            #[inline(always)]
            fn finish(self) -> $acc {
                self
            }
        })+
    )*};
}
integer_segments! {
    i8: i8 i64;
    u8: u8 u64;
    i16: i16 i64;
    u16: u16 u64;
    i32: i32 i64;
    u32: u32 u64;
    i64: i64;
    u64: u64;
}

macro_rules! float_segments {
    ($($item:ty),*) => {$(
        impl Segmented for $item {
            type Acc = f64;
        }
        impl SegmentAccumulator<$item> for f64 {
            type Output = $item;
            const ZERO: f64 = 0.0;
            #[inline(always)]
            fn of(item: $item) -> f64 {
                Float::to_f64(item)
            }
            #[inline(always)]
            fn plus(self, other: f64) -> f64 {
                self + other
            }
            #[inline(always)]
            fn greater(self, other: f64) -> f64 {
                Element::maximum(self, other)
            }
            #[inline(always)]
            fn raised_to(self, other: f64) -> f64 {
                // A third of the instructions.
                if other > self { other } else { self }
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                f64::is_nan(self)
            }
            #[inline(always)]
            fn finish(self) -> $item {
                Float::of_f64(self)
            }
        }
    )*};
}
float_segments!(half::f16, half::bf16, f32, f64);

/// What is known of two neighbouring runs together.
#[inline(always)]
fn joined<T, A: SegmentAccumulator<T>>(
    left: SegmentSums<A>,
    right: SegmentSums<A>,
    greater: impl Fn(A, A) -> A,
) -> SegmentSums<A> {
    SegmentSums {
        best: greater(greater(left.best, right.best), left.suffix.plus(right.prefix)),
        prefix: greater(left.prefix, left.total.plus(right.prefix)),
        suffix: greater(right.suffix, left.suffix.plus(right.total)),
        total: left.total.plus(right.total),
    }
}

operator! {
    /// The greatest sum of neighbouring items, the empty run included: 0 where all items are negative, and of nothing.
    ///
    /// Sums of integers are taken in `A` and wrap there; nothing wraps where the sum of all magnitudes fits.
    /// `MaxSegmentSum<i32, i64>` widens. Sums of floats are taken in `f64`; a NaN, or infinities of both signs wherever they
    /// stand, give NaN: there is a run that has no sum. Not commutative. The operator is Bentley's divide and conquer
    /// (J. Bentley, Programming Pearls: Algorithm Design Techniques, CACM 27(9), 1984) as a monoid of four sums.
    ///
    /// ```
    /// use warpfold_monoid::{MaxSegmentSum, tree};
    ///
    /// let op = MaxSegmentSum::<i32>::new();
    /// assert_eq!(tree::reduce(&op, &[31, -41, 59, 26, -53, 58, 97, -93, -23, 84]), 187);
    /// assert_eq!(tree::reduce(&op, &[-3, -1]), 0);
    /// ```
    MaxSegmentSum<T, A = <T as Segmented>::Acc>, 10
}

impl<T: Plain, A: SegmentAccumulator<T>> Monoid for MaxSegmentSum<T, A> {
    type Item = T;
    type Acc = SegmentSums<A>;
    type Output = A::Output;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = false;
    const USES_INDEX: bool = false;
    const LANE_BYTES: usize = A::LANE_BYTES;
    #[inline(always)]
    fn identity(&self) -> SegmentSums<A> {
        SegmentSums { best: A::ZERO, prefix: A::ZERO, suffix: A::ZERO, total: A::ZERO }
    }
    #[inline(always)]
    fn lift(&self, item: T, _index: u64) -> SegmentSums<A> {
        let total = A::of(item);
        // All but the total are zero or more here, and wherever one is a NaN the total is.
        let positive = A::ZERO.raised_to(total);
        SegmentSums { best: positive, prefix: positive, suffix: positive, total }
    }
    #[inline(always)]
    fn combine(&self, left: SegmentSums<A>, right: SegmentSums<A>) -> SegmentSums<A> {
        joined(left, right, A::raised_to)
    }
    #[inline(always)]
    fn push(&self, acc: SegmentSums<A>, item: T, _index: u64) -> SegmentSums<A> {
        let item = A::of(item);
        let total = acc.total.plus(item);
        let suffix = A::ZERO.raised_to(acc.suffix.plus(item));
        SegmentSums { best: acc.best.raised_to(suffix), prefix: acc.prefix.raised_to(total), suffix, total }
    }
    #[inline(always)]
    fn fold_strip<const V: usize, const U: usize>(&self, vectors: [[T; V]; U], index: u64) -> SegmentSums<A> {
        A::of_strip(vectors).unwrap_or_else(|| item_by_item(self, vectors, index))
    }
    #[inline(always)]
    fn finish(&self, acc: SegmentSums<A>) -> A::Output {
        acc.finish()
    }
}

impl<T: Plain, A: SegmentAccumulator<T>> NeutralIdentity for MaxSegmentSum<T, A> {}

operator! {
    /// The greatest sum of neighbouring items, of at least one: where all are negative, the greatest of them. `None` for no
    /// items; device memory then receives 0. Everything else as in [`MaxSegmentSum`].
    ///
    /// ```
    /// use warpfold_monoid::{MaxNonEmptySegmentSum, tree};
    ///
    /// let op = MaxNonEmptySegmentSum::<i32>::new();
    /// assert_eq!(tree::reduce(&op, &[-3, -1, -2]), Some(-1));
    /// assert_eq!(tree::reduce(&op, &[]), None);
    /// ```
    MaxNonEmptySegmentSum<T, A = <T as Segmented>::Acc>, 11
}

impl<T: Plain, A: SegmentAccumulator<T>> Monoid for MaxNonEmptySegmentSum<T, A> {
    type Item = T;
    type Acc = SegmentSums<A>;
    type Output = A::Output;
    type Empty = GivesNone;
    const COMMUTATIVE: bool = false;
    const USES_INDEX: bool = false;
    #[inline(always)]
    fn identity(&self) -> SegmentSums<A> {
        SegmentSums { best: A::ZERO, prefix: A::ZERO, suffix: A::ZERO, total: A::ZERO }
    }
    #[inline(always)]
    fn lift(&self, item: T, _index: u64) -> SegmentSums<A> {
        let item = A::of(item);
        SegmentSums { best: item, prefix: item, suffix: item, total: item }
    }
    #[inline(always)]
    fn combine(&self, left: SegmentSums<A>, right: SegmentSums<A>) -> SegmentSums<A> {
        joined(left, right, A::greater)
    }
    #[inline(always)]
    fn finish(&self, acc: SegmentSums<A>) -> A::Output {
        acc.finish()
    }
}
