//! Mean, variance and standard deviation.

use half::{bf16, f16};
use num_complex::Complex;

use crate::{
    DoubleDouble, Float, GivesNone, Integer, Monoid, NeutralIdentity, Number, Plain, SumAccumulator,
    accumulator::two_sum,
    fingerprint, math,
    norms::{Words, of_words, sum_of_bytes, sum_of_squares, unsigned_to_f64, words},
    ops::operator,
};

/// How many items, and what else is known of them.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counted<A> {
    count: u64,
    acc: A,
}

// SAFETY: repr(C), 8 bytes and then whole words of 8, as every implementor of `Averaged` and `Moments` promises by its type.
unsafe impl<A: Plain> Plain for Counted<A> {
    const LAYOUT: u64 = {
        assert!(size_of::<Counted<A>>() == 8 + size_of::<A>() && align_of::<A>() <= 8);
        fingerprint(&[50, A::LAYOUT, size_of::<A>() as u64])
    };
}

/// A type that has means: how items are summed, and what a sum over a count is.
pub trait Averaged: Plain {
    /// What the sum is taken in.
    type Sum: Plain;
    /// The mean.
    type Mean: Plain;
    /// Has the sum the same bits in any order?
    const ANY_ORDER: bool;
    /// The sum of nothing.
    const ZERO: Self::Sum;
    /// One item.
    fn lift(item: Self) -> Self::Sum;
    /// Adds one item.
    fn push(sum: Self::Sum, item: Self) -> Self::Sum;
    /// Adds a sum that stood to the right.
    fn merge(left: Self::Sum, right: Self::Sum) -> Self::Sum;
    /// The sum of several items.
    #[inline(always)]
    fn lift_many<const N: usize>(items: [Self; N]) -> Self::Sum {
        let mut sum = Self::lift(items[0]);
        let mut i = 1;
        while i < N {
            sum = Self::push(sum, items[i]);
            i += 1;
        }
        sum
    }
    /// The mean; NaN where the count is 0.
    fn mean(sum: Self::Sum, count: u64) -> Self::Mean;
}

operator! {
    /// The arithmetic mean. Floats and complex numbers give their own type, from sums as in [`Sum`](crate::Sum) (so `f16`
    /// means of large items do not overflow), integers give an `f64`, from their exact sum. `None` for no items; device
    /// memory then receives NaN.
    ///
    /// ```
    /// use warpfold_monoid::{Mean, tree};
    ///
    /// assert_eq!(tree::reduce(&Mean::<u8>::new(), &[255, 255, 0]), Some(170.0));
    /// assert_eq!(tree::reduce(&Mean::<f32>::new(), &[1.0, 2.5]), Some(1.75));
    /// assert_eq!(tree::reduce(&Mean::<f32>::new(), &[]), None);
    /// ```
    Mean<T>, 51
}

impl<T: Averaged> Monoid for Mean<T> {
    type Item = T;
    type Acc = Counted<T::Sum>;
    type Output = T::Mean;
    type Empty = GivesNone;
    const COMMUTATIVE: bool = true;
    const USES_INDEX: bool = false;
    const ANY_ORDER: bool = T::ANY_ORDER;
    const LANE_BYTES: usize = size_of::<T::Sum>();
    #[inline(always)]
    fn identity(&self) -> Self::Acc {
        Counted { count: 0, acc: T::ZERO }
    }
    #[inline(always)]
    fn lift(&self, item: T, _index: u64) -> Self::Acc {
        Counted { count: 1, acc: T::lift(item) }
    }
    #[inline(always)]
    fn combine(&self, left: Self::Acc, right: Self::Acc) -> Self::Acc {
        Counted { count: left.count + right.count, acc: T::merge(left.acc, right.acc) }
    }
    #[inline(always)]
    fn push(&self, acc: Self::Acc, item: T, _index: u64) -> Self::Acc {
        Counted { count: acc.count + 1, acc: T::push(acc.acc, item) }
    }
    #[inline(always)]
    fn fold_many<const N: usize>(&self, items: [T; N], _index: u64) -> Self::Acc {
        Counted { count: N as u64, acc: T::lift_many(items) }
    }
    #[inline(always)]
    fn finish(&self, acc: Self::Acc) -> T::Mean {
        T::mean(acc.acc, acc.count)
    }
}
impl<T: Averaged> NeutralIdentity for Mean<T> {}

macro_rules! averaged_floats {
    ($($type:ty, $mean:expr;)*) => {$(
        impl Averaged for $type {
            type Sum = <$type as Number>::SumAcc;
            type Mean = $type;
            const ANY_ORDER: bool = false;
            const ZERO: Self::Sum = <Self::Sum as SumAccumulator<$type>>::ZERO;
            #[inline(always)]
            fn lift(item: $type) -> Self::Sum {
                SumAccumulator::<$type>::lift(item)
            }
            #[inline(always)]
            fn push(sum: Self::Sum, item: $type) -> Self::Sum {
                SumAccumulator::<$type>::push(sum, item)
            }
            #[inline(always)]
            fn merge(left: Self::Sum, right: Self::Sum) -> Self::Sum {
                SumAccumulator::<$type>::merge(left, right)
            }
            #[inline(always)]
            fn mean(sum: Self::Sum, count: u64) -> $type {
                $mean(sum, count as f64)
            }
        }
    )*};
}
averaged_floats! {
    f16, |sum: f64, n| f16::of_f64(sum / n);
    bf16, |sum: f64, n| bf16::of_f64(sum / n);
    f32, |sum: f64, n| f32::of_f64(sum / n);
    f64, |sum: DoubleDouble, n| quotient(sum, n);
    Complex<f32>, |sum: Complex<f64>, n| Complex { re: f32::of_f64(sum.re / n), im: f32::of_f64(sum.im / n) };
    Complex<f64>, |sum: Complex<DoubleDouble>, n| Complex { re: quotient(sum.re, n), im: quotient(sum.im, n) };
}

/// A sum over a count, rounded.
#[inline(always)]
fn quotient(sum: DoubleDouble, count: f64) -> f64 {
    f64::of_f64(sum.rounded() / count)
}

/// Means of integers: sums in 64 bits for types of up to 16, which have room for 2^48 items, else in 128 bits.
macro_rules! averaged_integers {
    (short: $($short:ident),*; long: $($long:ident),*) => {
        $(impl Averaged for $short {
            type Sum = i64;
            type Mean = f64;
            const ANY_ORDER: bool = true;
            const ZERO: i64 = 0;
            #[inline(always)]
            fn lift(item: $short) -> i64 {
                item as i64
            }
            #[inline(always)]
            fn push(sum: i64, item: $short) -> i64 {
                sum + item as i64
            }
            #[inline(always)]
            fn merge(left: i64, right: i64) -> i64 {
                left + right
            }
            #[inline(always)]
            fn lift_many<const N: usize>(items: [$short; N]) -> i64 {
                const { assert!(N <= 1 << 15) };
                if let Some(sum) = sum_of_bytes(items, 1, <$short>::MIN != 0) {
                    return sum as i64;
                }
                let mut sum = items[0] as i32;
                let mut i = 1;
                while i < N {
                    sum += items[i] as i32;
                    i += 1;
                }
                sum as i64
            }
            #[inline(always)]
            fn mean(sum: i64, count: u64) -> f64 {
                f64::of_f64(sum as f64 / count as f64)
            }
        })*
        $(impl Averaged for $long {
            type Sum = Words;
            type Mean = f64;
            const ANY_ORDER: bool = true;
            const ZERO: Words = [0, 0];
            #[inline(always)]
            fn lift(item: $long) -> Words {
                words(item as i128)
            }
            #[inline(always)]
            fn push(sum: Words, item: $long) -> Words {
                words(of_words(sum) + item as i128)
            }
            #[inline(always)]
            fn merge(left: Words, right: Words) -> Words {
                words(of_words(left) + of_words(right))
            }
            #[inline(always)]
            fn lift_many<const N: usize>(items: [$long; N]) -> Words {
                if <$long>::BITS < 64 {
                    let mut sum = items[0] as i64;
                    let mut i = 1;
                    while i < N {
                        sum += items[i] as i64;
                        i += 1;
                    }
                    return words(sum as i128);
                }
                let mut sum = items[0] as i128;
                let mut i = 1;
                while i < N {
                    sum += items[i] as i128;
                    i += 1;
                }
                words(sum)
            }
            #[inline(always)]
            fn mean(sum: Words, count: u64) -> f64 {
                f64::of_f64(signed_to_f64(of_words(sum)) / count as f64)
            }
        })*
    };
}
averaged_integers!(short: i8, u8, i16, u16; long: i32, u32, i64, u64);

impl Averaged for bool {
    type Sum = i64;
    type Mean = f64;
    const ANY_ORDER: bool = true;
    const ZERO: i64 = 0;
    #[inline(always)]
    fn lift(item: bool) -> i64 {
        item as i64
    }
    #[inline(always)]
    fn push(sum: i64, item: bool) -> i64 {
        sum + item as i64
    }
    #[inline(always)]
    fn merge(left: i64, right: i64) -> i64 {
        left + right
    }
    #[inline(always)]
    fn mean(sum: i64, count: u64) -> f64 {
        f64::of_f64(sum as f64 / count as f64)
    }
}

#[inline(always)]
fn signed_to_f64(value: i128) -> f64 {
    let magnitude = unsigned_to_f64(value.unsigned_abs());
    if value < 0 { -magnitude } else { magnitude }
}

/// A type that has variances: what is known of some items, and their sum of squared deviations from their mean.
pub trait Moments: Plain {
    /// What is known of some items.
    type Acc: Plain;
    /// The type of the variance.
    type Output: Plain;
    /// Has it the same bits in any order?
    const ANY_ORDER: bool;
    /// What is known of nothing.
    const NOTHING: Self::Acc;
    /// One item.
    fn lift(item: Self) -> Self::Acc;
    /// One item more.
    fn push(acc: Self::Acc, item: Self) -> Self::Acc;
    /// More items, which stood to the right.
    fn merge(left: Self::Acc, right: Self::Acc) -> Self::Acc;
    /// Several items.
    #[inline(always)]
    fn lift_many<const N: usize>(items: [Self; N]) -> Self::Acc {
        let mut acc = Self::lift(items[0]);
        let mut i = 1;
        while i < N {
            acc = Self::push(acc, items[i]);
            i += 1;
        }
        acc
    }
    /// The sum of squared deviations, and how many items there are.
    fn deviations(acc: Self::Acc) -> (f64, u64);
    /// Rounds.
    fn round(value: f64) -> Self::Output;
}

/// An operator with the parameter `ddof`.
macro_rules! with_ddof {
    ($(#[$doc:meta])* $name:ident, $root:literal) => {
        $(#[$doc])*
        #[repr(C)]
        pub struct $name<T> {
            ddof: f64,
            /// Whether the square root is taken, which the type says as well: so one kernel serves both.
            root: u64,
            items: core::marker::PhantomData<fn() -> T>,
        }

        impl<T> $name<T> {
            /// With so many degrees of freedom taken off the number of items: 0 for the data's own, 1 for the estimate from
            /// a sample.
            pub const fn new(ddof: f64) -> Self {
                $name { ddof, root: $root, items: core::marker::PhantomData }
            }

            /// The degrees of freedom taken off.
            pub const fn ddof(&self) -> f64 {
                self.ddof
            }
        }

        /// The data's own: `ddof` 0.
        impl<T> Default for $name<T> {
            fn default() -> Self {
                Self::new(0.0)
            }
        }

        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $name<T> {}

        impl<T> core::fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, concat!(stringify!($name), "(ddof {})"), self.ddof)
            }
        }

        // SAFETY: repr(C), an f64 and a u64.
        unsafe impl<T: 'static> Plain for $name<T> {
            const LAYOUT: u64 = fingerprint(&[52, f64::LAYOUT, u64::LAYOUT]);
        }

        impl<T: Moments> Monoid for $name<T> {
            type Item = T;
            type Acc = T::Acc;
            type Output = T::Output;
            type Empty = GivesNone;
            const COMMUTATIVE: bool = true;
            const USES_INDEX: bool = false;
            const ANY_ORDER: bool = T::ANY_ORDER;
            const LANE_BYTES: usize = size_of::<T::Acc>() - size_of::<u64>();
            #[inline(always)]
            fn identity(&self) -> T::Acc {
                T::NOTHING
            }
            #[inline(always)]
            fn lift(&self, item: T, _index: u64) -> T::Acc {
                T::lift(item)
            }
            #[inline(always)]
            fn combine(&self, left: T::Acc, right: T::Acc) -> T::Acc {
                T::merge(left, right)
            }
            #[inline(always)]
            fn push(&self, acc: T::Acc, item: T, _index: u64) -> T::Acc {
                T::push(acc, item)
            }
            #[inline(always)]
            fn fold_many<const N: usize>(&self, items: [T; N], _index: u64) -> T::Acc {
                T::lift_many(items)
            }
            #[inline(always)]
            fn finish(&self, acc: T::Acc) -> T::Output {
                let (deviations, count) = T::deviations(acc);
                let freedom = count as f64 - self.ddof;
                let variance = if freedom > 0.0 { deviations / freedom } else { f64::NAN };
                T::round(if self.root != 0 { math::sqrt(variance) } else { variance })
            }
        }
        impl<T: Moments> NeutralIdentity for $name<T> {}
    };
}

with_ddof! {
    /// The variance, in one pass: the mean square of the deviations from the mean, divided by the number of items less
    /// [`ddof`](Variance::new). Floats give their own type, integers an `f64`, complex numbers the type of their parts. NaN
    /// where there are no more items than `ddof`; `None` for no items.
    ///
    /// A lane sums deviations from its own first item and their squares, which costs no division; where lanes combine, sums
    /// go over to the common mean (T. F. Chan, G. H. Golub and R. J. LeVeque, Updating Formulae and a Pairwise Algorithm for
    /// Computing Sample Variances, 1979), kept as a number and what it lacks. So a mean far from zero costs no digits: the
    /// variance of items around 1e8 with spread 1 is right to 1e-12, and `f32` data whose squares overflow have one. Integers
    /// of up to 32 bits are summed exactly. NaN if an item is not finite; infinity where a variance of finite items is beyond
    /// its type, or the sum of squared deviations of `f64` beyond `f64`.
    ///
    /// ```
    /// use warpfold_monoid::{Variance, tree};
    ///
    /// assert_eq!(tree::reduce(&Variance::<f64>::default(), &[1e8 + 1.0, 1e8 + 2.0, 1e8 + 3.0]), Some(2.0 / 3.0));
    /// assert_eq!(tree::reduce(&Variance::<i32>::new(1.0), &[1, 2, 3]), Some(1.0));
    /// assert!(tree::reduce(&Variance::<f32>::new(1.0), &[3.0]).unwrap().is_nan());
    /// ```
    Variance, 0
}

with_ddof! {
    /// The standard deviation: the square root of the [`Variance`], taken before rounding to the type.
    ///
    /// ```
    /// use warpfold_monoid::{StdDev, tree};
    ///
    /// assert_eq!(tree::reduce(&StdDev::<u8>::default(), &[2, 4, 4, 4, 5, 5, 7, 9]), Some(2.0));
    /// ```
    StdDev, 1
}

impl<T> StdDev<T> {
    /// The same under the variance's type: for programs that choose between the two at run time, and would have the code of
    /// both.
    ///
    /// ```
    /// use warpfold_monoid::{StdDev, tree};
    ///
    /// assert_eq!(tree::reduce(&StdDev::<i32>::new(1.0).as_variance(), &[1, 3, 5]), Some(2.0));
    /// ```
    pub const fn as_variance(self) -> Variance<T> {
        Variance { ddof: self.ddof, root: self.root, items: core::marker::PhantomData }
    }
}

/// A count, a pivot, and the sums of deviations from it and of their squares.
///
/// Invariant, up to rounding: `first = sum of (x - pivot)` and `second = sum of |x - pivot|^2` over the items. After
/// merging, the pivot is the mean as near as its type has it, so neither sum is much larger than it must be.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deviations<P, F> {
    pivot: P,
    first: F,
    second: f64,
}

// SAFETY: repr(C), fields of whole words of 8 bytes (numbers of 64 bits and pairs of them): no padding.
unsafe impl<P: Plain, F: Plain> Plain for Deviations<P, F> {
    const LAYOUT: u64 = {
        assert!(size_of::<Self>() == size_of::<P>() + size_of::<F>() + 8);
        fingerprint(&[54, P::LAYOUT, F::LAYOUT])
    };
}

/// What merging takes of two counts, of which none is 0. A division takes a GPU as long as all else of a merge, and merges follow
/// each other: one serves all, to within some units in the last place.
struct Shares {
    /// One by the first count, by the second, and by both.
    by: [f64; 2],
    by_both: f64,
    both: f64,
    product: f64,
}

impl Shares {
    #[inline(always)]
    fn of(n: u64, m: u64) -> Shares {
        let (n, m) = (n as f64, m as f64);
        let (both, product) = (n + m, n * m);
        // Far from the ends of the range: counts are less than 2^64.
        let inverse = 1.0 / (product * both);
        Shares { by: [m * both * inverse, n * both * inverse], by_both: product * inverse, both, product }
    }

    /// Merges two sums of squared deviations of items whose means are `distance` apart.
    #[inline(always)]
    fn merged(&self, left: f64, right: f64, distance: f64) -> f64 {
        left + right + distance * distance * (self.product * self.by_both)
    }
}

/// Squared deviations from the mean, of those from a pivot.
#[inline(always)]
fn about_mean(second: f64, first: f64, n: f64) -> f64 {
    second - first * (first / n)
}

type Acc<P, F> = Counted<Deviations<P, F>>;

/// Floats: everything in `f64`.
macro_rules! float_moments {
    ($($type:ty, $push:ident, $merge:ident, $about_mean:ident;)*) => {$(
        impl Moments for $type {
            type Acc = Acc<f64, f64>;
            type Output = $type;
            const ANY_ORDER: bool = false;
            const NOTHING: Self::Acc = Counted { count: 0, acc: Deviations { pivot: 0.0, first: 0.0, second: 0.0 } };
            #[inline(always)]
            fn lift(item: $type) -> Self::Acc {
                lift_f64(Float::to_f64(item))
            }
            #[inline(always)]
            fn push(acc: Self::Acc, item: $type) -> Self::Acc {
                $push(acc, Float::to_f64(item))
            }
            #[inline(always)]
            fn merge(left: Self::Acc, right: Self::Acc) -> Self::Acc {
                $merge(left, right)
            }
            #[inline(always)]
            fn deviations(acc: Self::Acc) -> (f64, u64) {
                ($about_mean(acc.acc.second, acc.acc.first, acc.count as f64), acc.count)
            }
            #[inline(always)]
            fn round(value: f64) -> $type {
                Float::of_f64(value)
            }
        }
    )*};
}
float_moments! {
    f16, push_f64, merge_f64, about_mean;
    bf16, push_f64, merge_f64, about_mean;
    f32, push_f64, merge_f64, about_mean;
    f64, push_wide, merge_wide, about_mean_wide;
}

#[inline(always)]
fn lift_f64(item: f64) -> Acc<f64, f64> {
    // What is not finite has no deviation from itself: NaN.
    let zero = if item.is_finite() { 0.0 } else { f64::NAN };
    Counted { count: 1, acc: Deviations { pivot: item, first: zero, second: zero } }
}

#[inline(always)]
fn push_f64(acc: Acc<f64, f64>, item: f64) -> Acc<f64, f64> {
    let Counted { count, acc: Deviations { pivot, first, second } } = acc;
    let pivot = if count == 0 { item } else { pivot };
    let deviation = item - pivot;
    let acc = Deviations { pivot, first: first + deviation, second: second + deviation * deviation };
    Counted { count: count + 1, acc }
}

#[inline(always)]
fn merge_f64(left: Acc<f64, f64>, right: Acc<f64, f64>) -> Acc<f64, f64> {
    if right.count == 0 {
        return left;
    }
    if left.count == 0 {
        return right;
    }
    let (a, b) = (left.acc, right.acc);
    let shares = Shares::of(left.count, right.count);
    let (mean_a, mean_b) = (a.first * shares.by[0], b.first * shares.by[1]);
    let (apart, lost) = two_sum(b.pivot, -a.pivot);
    let distance = apart + (lost + (mean_b - mean_a));
    let squares = shares.merged(a.second - a.first * mean_a, b.second - b.first * mean_b, distance);
    let (pivot, lacks) = two_sum(a.pivot, mean_a + distance * (right.count as f64 * shares.by_both));
    let first = lacks * shares.both;
    Counted {
        count: left.count + right.count,
        acc: Deviations { pivot, first, second: squares + lacks * first },
    }
}

// Squares of `f64`, unlike those of narrower types, may pass the range of `f64`. The sum of squares then is infinity, or
// NaN if an item was not finite; it tells all there is to know, and the other sums mean nothing.

#[inline(always)]
fn push_wide(acc: Acc<f64, f64>, item: f64) -> Acc<f64, f64> {
    let mut acc = push_f64(acc, item);
    acc.acc.second += unless_finite(item);
    acc
}

#[inline(always)]
fn merge_wide(left: Acc<f64, f64>, right: Acc<f64, f64>) -> Acc<f64, f64> {
    let merged = merge_f64(left, right);
    if merged.acc.second.is_finite() || left.count == 0 || right.count == 0 {
        return merged;
    }
    let second = beyond(left.acc.second, right.acc.second);
    Counted { count: merged.count, acc: Deviations { pivot: 0.0, first: 0.0, second } }
}

#[inline(always)]
fn about_mean_wide(second: f64, first: f64, n: f64) -> f64 {
    if second.is_finite() { about_mean(second, first, n) } else { second }
}

/// NaN for what is not finite, else 0.
#[inline(always)]
fn unless_finite(item: f64) -> f64 {
    if item.is_finite() { 0.0 } else { f64::NAN }
}

/// The sum of two sums of squares that is not finite.
#[inline(always)]
fn beyond(left: f64, right: f64) -> f64 {
    if left.is_nan() | right.is_nan() { f64::NAN } else { f64::INFINITY }
}

/// Complex numbers: the two parts have pivots of their own, their squared deviations add up.
macro_rules! complex_moments {
    ($($part:ty, $unless_finite:expr, $merge:ident, $about_mean:ident;)*) => {$(
        impl Moments for Complex<$part> {
            type Acc = Counted<Deviations<Complex<f64>, Complex<f64>>>;
            type Output = $part;
            const ANY_ORDER: bool = false;
            const NOTHING: Self::Acc = Counted {
                count: 0,
                acc: Deviations {
                    pivot: Complex { re: 0.0, im: 0.0 },
                    first: Complex { re: 0.0, im: 0.0 },
                    second: 0.0,
                },
            };
            #[inline(always)]
            fn lift(item: Complex<$part>) -> Self::Acc {
                <Self as Moments>::push(Self::NOTHING, item)
            }
            #[inline(always)]
            fn push(acc: Self::Acc, item: Complex<$part>) -> Self::Acc {
                let Counted { count, acc: Deviations { pivot, first, second } } = acc;
                let item = Complex { re: Float::to_f64(item.re), im: Float::to_f64(item.im) };
                let pivot = if count == 0 { item } else { pivot };
                let (re, im) = (item.re - pivot.re, item.im - pivot.im);
                let first = Complex { re: first.re + re, im: first.im + im };
                let second = $unless_finite(item, second + (re * re + im * im));
                Counted { count: count + 1, acc: Deviations { pivot, first, second } }
            }
            #[inline(always)]
            fn merge(left: Self::Acc, right: Self::Acc) -> Self::Acc {
                $merge(left, right)
            }
            #[inline(always)]
            fn deviations(acc: Self::Acc) -> (f64, u64) {
                let (Deviations { first, second, .. }, n) = (acc.acc, acc.count as f64);
                ($about_mean($about_mean(second, first.re, n), first.im, n), acc.count)
            }
            #[inline(always)]
            fn round(value: f64) -> $part {
                Float::of_f64(value)
            }
        }
    )*};
}
complex_moments! {
    f32, |_, second: f64| second, merge_complex, about_mean;
    f64, |item: Complex<f64>, second: f64| second + (unless_finite(item.re) + unless_finite(item.im)),
        merge_complex_wide, about_mean_wide;
}

type ComplexAcc = Acc<Complex<f64>, Complex<f64>>;

#[inline(always)]
fn merge_complex(left: ComplexAcc, right: ComplexAcc) -> ComplexAcc {
    if right.count == 0 {
        return left;
    }
    if left.count == 0 {
        return right;
    }
    // The squares go with the real parts; they count once.
    let part = |acc: ComplexAcc, pivot, first, second| Counted {
        count: acc.count,
        acc: Deviations { pivot, first, second },
    };
    let (a, b) = (left.acc, right.acc);
    let re = merge_f64(
        part(left, a.pivot.re, a.first.re, a.second),
        part(right, b.pivot.re, b.first.re, b.second),
    );
    let im = merge_f64(part(left, a.pivot.im, a.first.im, 0.0), part(right, b.pivot.im, b.first.im, 0.0));
    Counted {
        count: re.count,
        acc: Deviations {
            pivot: Complex { re: re.acc.pivot, im: im.acc.pivot },
            first: Complex { re: re.acc.first, im: im.acc.first },
            second: re.acc.second + im.acc.second,
        },
    }
}

#[inline(always)]
fn merge_complex_wide(left: ComplexAcc, right: ComplexAcc) -> ComplexAcc {
    let merged = merge_complex(left, right);
    if merged.acc.second.is_finite() || left.count == 0 || right.count == 0 {
        return merged;
    }
    let zero = Complex { re: 0.0, im: 0.0 };
    let second = beyond(left.acc.second, right.acc.second);
    Counted { count: merged.count, acc: Deviations { pivot: zero, first: zero, second } }
}

/// Integers of 64 bits: the pivot is one too, so that no digit of theirs is lost; deviations are `f64`.
macro_rules! long_moments {
    ($($type:ident),*) => {$(
        impl Moments for $type {
            type Acc = Acc<i64, f64>;
            type Output = f64;
            const ANY_ORDER: bool = false;
            const NOTHING: Self::Acc = Counted { count: 0, acc: Deviations { pivot: 0, first: 0.0, second: 0.0 } };
            #[inline(always)]
            fn lift(item: $type) -> Self::Acc {
                Counted { count: 1, acc: Deviations { pivot: signed(item), first: 0.0, second: 0.0 } }
            }
            #[inline(always)]
            fn push(acc: Self::Acc, item: $type) -> Self::Acc {
                let Counted { count, acc: Deviations { pivot, first, second } } = acc;
                let item = signed(item);
                let pivot = if count == 0 { item } else { pivot };
                let deviation = difference(item, pivot);
                let acc = Deviations { pivot, first: first + deviation, second: second + deviation * deviation };
                Counted { count: count + 1, acc }
            }
            #[inline(always)]
            fn merge(left: Self::Acc, right: Self::Acc) -> Self::Acc {
                merge_i64(left, right)
            }
            #[inline(always)]
            fn deviations(acc: Self::Acc) -> (f64, u64) {
                (about_mean(acc.acc.second, acc.acc.first, acc.count as f64), acc.count)
            }
            #[inline(always)]
            fn round(value: f64) -> f64 {
                Float::of_f64(value)
            }
        }
    )*};
}
long_moments!(i64, u64);

/// An integer as a signed one at the same distances from all others.
#[inline(always)]
fn signed<T: Integer>(item: T) -> i64 {
    let flip = if T::LOWEST == T::wrap(0) { 1 << 63 } else { 0 };
    (item.bits() ^ flip) as i64
}

#[inline(always)]
fn difference(a: i64, b: i64) -> f64 {
    match a.checked_sub(b) {
        Some(difference) => difference as f64,
        None => a as f64 - b as f64,
    }
}

#[inline(always)]
fn merge_i64(left: Acc<i64, f64>, right: Acc<i64, f64>) -> Acc<i64, f64> {
    if right.count == 0 {
        return left;
    }
    if left.count == 0 {
        return right;
    }
    let (a, b) = (left.acc, right.acc);
    let shares = Shares::of(left.count, right.count);
    let (mean_a, mean_b) = (a.first * shares.by[0], b.first * shares.by[1]);
    let distance = difference(b.pivot, a.pivot) + (mean_b - mean_a);
    let squares = shares.merged(a.second - a.first * mean_a, b.second - b.first * mean_b, distance);
    // The mean lies between items, so that the pivot, the integer nearest to it, does not overflow but by rounding. From
    // one further off, `n` times the square of that would be taken from sums that may be much less.
    let shift = mean_a + distance * (right.count as f64 * shares.by_both);
    let whole = (shift + if shift < 0.0 { -0.5 } else { 0.5 }) as i64;
    let pivot = a.pivot.saturating_add(whole);
    let lacks = shift - difference(pivot, a.pivot);
    let first = lacks * shares.both;
    Counted {
        count: left.count + right.count,
        acc: Deviations { pivot, first, second: squares + lacks * first },
    }
}

/// A sum and a sum of squares, both exact.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactSums {
    sum: Words,
    squares: Words,
}

// SAFETY: repr(C), four u64.
unsafe impl Plain for ExactSums {
    const LAYOUT: u64 = fingerprint(&[55, u64::LAYOUT]);
}

/// Integers of up to 32 bits: exact sums in 128 bits, so any order will do.
macro_rules! short_moments {
    ($($type:ident),*) => {$(
        impl Moments for $type {
            type Acc = Counted<ExactSums>;
            type Output = f64;
            const ANY_ORDER: bool = true;
            const NOTHING: Self::Acc = Counted { count: 0, acc: ExactSums { sum: [0, 0], squares: [0, 0] } };
            #[inline(always)]
            fn lift(item: $type) -> Self::Acc {
                let square = item.magnitude_u64() * item.magnitude_u64();
                Counted { count: 1, acc: ExactSums { sum: words(item as i128), squares: [square, 0] } }
            }
            #[inline(always)]
            fn push(acc: Self::Acc, item: $type) -> Self::Acc {
                <$type as Moments>::merge(acc, <$type as Moments>::lift(item))
            }
            #[inline(always)]
            fn merge(left: Self::Acc, right: Self::Acc) -> Self::Acc {
                let (a, b) = (left.acc, right.acc);
                let add = |a, b| words(of_words(a) + of_words(b));
                Counted {
                    count: left.count + right.count,
                    acc: ExactSums { sum: add(a.sum, b.sum), squares: add(a.squares, b.squares) },
                }
            }
            #[inline(always)]
            fn lift_many<const N: usize>(items: [$type; N]) -> Self::Acc {
                // Sums of few numbers of up to 16 bits, and of squares of bytes, stay within 32 bits, others within 64 (four
                // squares of 32-bit numbers do not).
                const { assert!(N <= 1 << 15) };
                let (mut sum, mut squares, mut carry) = (0_i64, 0_u64, 0_u64);
                let mut i = 0;
                let signed = <$type>::MIN != 0;
                if let (Some(few), Some(squared)) = (
                    sum_of_bytes(items, 1, signed),
                    sum_of_squares(items, signed),
                ) {
                    (sum, squares, i) = (few as i64, squared as u64, N);
                } else if size_of::<$type>() <= 2 {
                    let (mut short_sum, mut short_squares) = (0_i32, 0_u32);
                    while i < N {
                        let item = items[i] as i32;
                        let square = item.wrapping_mul(item) as u32;
                        short_sum += item;
                        if size_of::<$type>() == 1 {
                            short_squares += square;
                        } else {
                            squares += square as u64;
                        }
                        i += 1;
                    }
                    sum = short_sum as i64;
                    squares += short_squares as u64;
                }
                while i < N {
                    let (item, magnitude) = (items[i] as i64, items[i].magnitude_u64());
                    sum += item;
                    let (total, over) = squares.overflowing_add(magnitude * magnitude);
                    (squares, carry) = (total, carry + over as u64);
                    i += 1;
                }
                let acc = ExactSums { sum: words(sum as i128), squares: [squares, carry] };
                Counted { count: N as u64, acc }
            }
            #[inline(always)]
            fn deviations(acc: Self::Acc) -> (f64, u64) {
                (exact_deviations(acc), acc.count)
            }
            #[inline(always)]
            fn round(value: f64) -> f64 {
                Float::of_f64(value)
            }
        }
    )*};
}
short_moments!(i8, u8, i16, u16, i32, u32);

/// The sum of squared deviations from the mean, of exact sums.
///
/// With any integer `m` and `rest = sum - count * m` it is `Q - rest^2 / count`, where `Q = sum of (x - m)^2` is an
/// integer; with `m` next to the mean nothing cancels, for `Q >= rest`.
#[inline]
fn exact_deviations(acc: Counted<ExactSums>) -> f64 {
    let Counted { count, acc: ExactSums { sum, squares } } = acc;
    if count == 0 {
        return 0.0;
    }
    let (sum, squares) = (of_words(sum), of_words(squares));
    let mean = signed_to_f64(sum) / count as f64;
    let below = mean as i64 as i128 - (mean < 0.0) as i128;
    let n = count as i128;
    let rest = sum - n * below;
    let about = squares - 2 * below * sum + n * below * below;
    let cross = signed_to_f64(rest) * (signed_to_f64(n - rest) / count as f64);
    signed_to_f64(about - rest) + cross
}
