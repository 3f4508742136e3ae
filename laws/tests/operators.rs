//! Every operator on every type keeps its laws: one line for each.
//!
//! Exact operators are compared to the bit, on any values; where floats round, on values that do not cancel, to a few units
//! in the last place.

use std::any::type_name;
use std::fmt::Debug;

use half::{bf16, f16};
use num_complex::Complex;
use proptest::prelude::{Just, Strategy};
use proptest::strategy::{BoxedStrategy, Union};
use warpfold_laws::{Laws, same_bits};
use warpfold_monoid::fused::Parts2;
use warpfold_monoid::{
    Affine, All, And, Any, ArgMax, ArgMaxBy, ArgMin, ArgMinBy, CheckedProduct, CheckedSum, Compose, Count,
    Dot, DoubleDouble, Float, IgnoreNan, L1, L2, Linf, LogSumExp, Magnitude, Max, MaxNonEmptySegmentSum,
    MaxOf, MaxSegmentSum, Mean, Min, MinMax, MinOf, Monoid, NanMax, NanMin, NanMinMax, NanProduct, NanSum,
    NeutralIdentity, Or, Plain, Product, ProductOf, StdDev, Sum, SumOf, SumSquares, Variance, Xor,
};

type Items<T> = BoxedStrategy<T>;
type Same<Op> = fn(&<Op as Monoid>::Output, &<Op as Monoid>::Output) -> bool;

fn keeps<Op: Monoid<Item: Debug, Output: Debug> + Default>(
    laws: Laws,
    items: Items<Op::Item>,
    same: Same<Op>,
) {
    if let Err(violation) = laws.cases(48).longest(12).check(&Op::default(), items, same) {
        panic!("{}: {violation}", type_name::<Op>());
    }
}

/// The laws that every operator keeps.
fn check<Op: Monoid<Item: Debug, Output: Debug> + Default>(items: Items<Op::Item>, same: Same<Op>) {
    keeps::<Op>(Laws::new(), items, same);
}

/// And a neutral identity, which `IgnoreNan` relies on; a zero may lose its minus.
fn neutral<Op: NeutralIdentity<Item: Debug, Output: Debug> + Default>(
    items: Items<Op::Item>,
    same: Same<Op>,
) {
    keeps::<Op>(Laws::new().neutral_identity(true), items, same);
}

/// A type with items to try.
trait Data: Plain + Debug {
    /// Any value, extreme ones and equal ones often.
    fn any() -> Items<Self>;
    /// Small whole numbers of both signs and, of floats, now and then what is not finite.
    fn whole() -> Items<Self>;
}

macro_rules! integers {
    ($($type:ident)*) => {$(
        impl Data for $type {
            fn any() -> Items<Self> {
                let special = [0, 1, $type::MIN, $type::MAX, (0 as $type).wrapping_sub(1)].map(|x| Just(x).boxed());
                Union::new(special.into_iter().chain([proptest::prelude::any::<$type>().boxed()])).boxed()
            }
            fn whole() -> Items<Self> {
                // The sum of no list passes 127.
                (($type::MIN.max((0 as $type).wrapping_sub(9).min(0)))..10).boxed()
            }
        }
    )*};
}
integers!(i8 u8 i16 u16 i32 u32 i64 u64);

impl Data for bool {
    fn any() -> Items<Self> {
        proptest::prelude::any::<bool>().boxed()
    }
    fn whole() -> Items<Self> {
        Self::any()
    }
}

macro_rules! floats {
    ($($type:ident $bits:ident)*) => {$(
        impl Data for $type {
            fn any() -> Items<Self> {
                let zero = 0 as $bits;
                let special = [zero, 1 << ($bits::BITS - 1), $type::INFINITY.to_bits(), $type::NEG_INFINITY.to_bits(),
                    $type::NAN.to_bits(), $type::NEG_INFINITY.to_bits() + 1];
                let special = special.map(|bits| Just($type::from_bits(bits)).boxed());
                let all = proptest::prelude::any::<$bits>().prop_map($type::from_bits).boxed();
                Union::new(special.into_iter().chain([all])).boxed()
            }
            fn whole() -> Items<Self> {
                let special = [$type::INFINITY, $type::NEG_INFINITY, $type::NAN].map(|x| (1, Just(x).boxed()));
                let whole = (-9i32..10).prop_map(|x| <$type>::of_f64(x.into())).boxed();
                Union::new_weighted(special.into_iter().chain([(20, whole)]).collect()).boxed()
            }
        }
    )*};
}
floats!(f16 u16 bf16 u16 f32 u32 f64 u64);

impl<T: Data> Data for Complex<T> {
    fn any() -> Items<Self> {
        (T::any(), T::any()).prop_map(|(re, im)| Complex { re, im }).boxed()
    }
    fn whole() -> Items<Self> {
        (T::whole(), T::whole()).prop_map(|(re, im)| Complex { re, im }).boxed()
    }
}

fn any<T: Data>() -> Items<T> {
    T::any()
}

fn whole<T: Data>() -> Items<T> {
    T::whole()
}

/// Half of them 1, -1 and 0, so that not every product overflows.
fn factors<T: Data + From<bool> + std::ops::Not<Output = T>>() -> Items<T> {
    Union::new([T::any(), Just(T::from(true)).boxed(), Just(!T::from(false)).boxed()]).boxed()
}

/// A type with numbers near 1.
trait Rough: Plain + Debug {
    fn of(re: f64, im: f64) -> Self;
}

macro_rules! rough {
    ($($type:ident)*) => {$(
        impl Rough for $type {
            fn of(re: f64, _: f64) -> $type {
                $type::of_f64(re)
            }
        }
    )*};
}
rough!(f16 bf16 f32 f64);

impl<T: Float + Debug> Rough for Complex<T> {
    fn of(re: f64, im: f64) -> Self {
        Complex { re: T::of_f64(re), im: T::of_f64(im) }
    }
}

/// Numbers from 0.5 to 2, with digits that sums and products lose.
fn rough<T: Rough>() -> Items<T> {
    // The imaginary parts are so small that none of a product's parts cancels.
    (0.5..2.0, 0.005..0.02).prop_map(|(re, im)| T::of(re, im)).boxed()
}

fn rough_or_nan<T: Rough + Float>() -> Items<T> {
    Union::new([rough(), Just(T::NAN).boxed()]).boxed()
}

fn pairs<T: Plain + Debug>(items: Items<T>) -> Items<Parts2<T, T>> {
    (items.clone(), items).prop_map(|(a, b)| Parts2::new(a, b)).boxed()
}

fn steps<T: Plain + Debug>(items: Items<T>) -> Items<Affine<T>> {
    (items.clone(), items).prop_map(|(scale, shift)| Affine { scale, shift }).boxed()
}

/// Steps that keep whole numbers small.
fn signs<T: Float + Debug>() -> Items<Affine<T>> {
    let number = |x: i32| T::of_f64(x.into());
    (-1i32..2, -9i32..10).prop_map(move |(a, b)| Affine { scale: number(a), shift: number(b) }).boxed()
}

/// The same but for a few units in the last place, or the same infinity, or both no numbers.
trait Close {
    fn is_close(&self, other: &Self) -> bool;
}

macro_rules! close {
    ($($type:ident $tolerance:expr;)*) => {$(
        impl Close for $type {
            fn is_close(&self, other: &$type) -> bool {
                let (a, b) = (Float::to_f64(*self), Float::to_f64(*other));
                a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= $tolerance * a.abs().max(b.abs()) + $tolerance * 1e-6
            }
        }
    )*};
}
// One unit of the narrow types, for which all is computed in f64; of f64, what a dozen roundings make.
close! {
    f16 1e-3;
    bf16 8e-3;
    f32 1.2e-7;
    f64 1e-13;
}

impl<T: Close> Close for Complex<T> {
    fn is_close(&self, other: &Self) -> bool {
        self.re.is_close(&other.re) && self.im.is_close(&other.im)
    }
}

fn close<T: Close>(left: &T, right: &T) -> bool {
    left.is_close(right)
}

/// Integers wrap; floats, of one sign, round.
#[test]
fn sums() {
    neutral::<Sum<i8>>(any(), same_bits);
    neutral::<Sum<u8>>(any(), same_bits);
    neutral::<Sum<i16>>(any(), same_bits);
    neutral::<Sum<u16>>(any(), same_bits);
    neutral::<Sum<i32>>(any(), same_bits);
    neutral::<Sum<u32>>(any(), same_bits);
    neutral::<Sum<i64>>(any(), same_bits);
    neutral::<Sum<u64>>(any(), same_bits);
    neutral::<Sum<i8, i64>>(any(), same_bits);
    neutral::<Sum<u8, u64>>(any(), same_bits);
    neutral::<Sum<i16, i64>>(any(), same_bits);
    neutral::<Sum<u16, u64>>(any(), same_bits);
    neutral::<Sum<i32, i64>>(any(), same_bits);
    neutral::<Sum<u32, u64>>(any(), same_bits);
    neutral::<Sum<f16>>(rough(), close);
    neutral::<Sum<bf16>>(rough(), close);
    neutral::<Sum<f32>>(rough(), close);
    neutral::<Sum<f64>>(rough(), close);
    neutral::<Sum<Complex<f32>>>(rough(), close);
    neutral::<Sum<Complex<f64>>>(rough(), close);
    neutral::<Sum<f16, DoubleDouble>>(rough(), close);
    neutral::<Sum<bf16, DoubleDouble>>(rough(), close);
    neutral::<Sum<f32, DoubleDouble>>(rough(), close);
    check::<IgnoreNan<Sum<f16>>>(rough_or_nan(), close);
    check::<IgnoreNan<Sum<bf16>>>(rough_or_nan(), close);
    check::<IgnoreNan<Sum<f32>>>(rough_or_nan(), close);
    check::<IgnoreNan<Sum<f64>>>(rough_or_nan(), close);
    check::<NanSum<f16>>(rough_or_nan(), close);
    check::<NanSum<bf16>>(rough_or_nan(), close);
    check::<NanSum<f32>>(rough_or_nan(), close);
    check::<NanSum<f64>>(rough_or_nan(), close);
    check::<CheckedSum<i8>>(any(), same_bits);
    check::<CheckedSum<u8>>(any(), same_bits);
    check::<CheckedSum<i16>>(any(), same_bits);
    check::<CheckedSum<u16>>(any(), same_bits);
    check::<CheckedSum<i32>>(any(), same_bits);
    check::<CheckedSum<u32>>(any(), same_bits);
    check::<CheckedSum<i64>>(any(), same_bits);
    check::<CheckedSum<u64>>(any(), same_bits);
}

/// Integers wrap; floats, near 1, round.
#[test]
fn products() {
    neutral::<Product<i8>>(any(), same_bits);
    neutral::<Product<u8>>(any(), same_bits);
    neutral::<Product<i16>>(any(), same_bits);
    neutral::<Product<u16>>(any(), same_bits);
    neutral::<Product<i32>>(any(), same_bits);
    neutral::<Product<u32>>(any(), same_bits);
    neutral::<Product<i64>>(any(), same_bits);
    neutral::<Product<u64>>(any(), same_bits);
    neutral::<Product<i8, i64>>(any(), same_bits);
    neutral::<Product<u8, u64>>(any(), same_bits);
    neutral::<Product<i16, i64>>(any(), same_bits);
    neutral::<Product<u16, u64>>(any(), same_bits);
    neutral::<Product<i32, i64>>(any(), same_bits);
    neutral::<Product<u32, u64>>(any(), same_bits);
    neutral::<Product<f16>>(rough(), close);
    neutral::<Product<bf16>>(rough(), close);
    neutral::<Product<f32>>(rough(), close);
    neutral::<Product<f64>>(rough(), close);
    neutral::<Product<Complex<f32>>>(rough(), close);
    neutral::<Product<Complex<f64>>>(rough(), close);
    check::<IgnoreNan<Product<f16>>>(rough_or_nan(), close);
    check::<IgnoreNan<Product<bf16>>>(rough_or_nan(), close);
    check::<IgnoreNan<Product<f32>>>(rough_or_nan(), close);
    check::<IgnoreNan<Product<f64>>>(rough_or_nan(), close);
    check::<NanProduct<f16>>(rough_or_nan(), close);
    check::<NanProduct<bf16>>(rough_or_nan(), close);
    check::<NanProduct<f32>>(rough_or_nan(), close);
    check::<NanProduct<f64>>(rough_or_nan(), close);
    check::<CheckedProduct<i8>>(factors(), same_bits);
    check::<CheckedProduct<u8>>(factors(), same_bits);
    check::<CheckedProduct<i16>>(factors(), same_bits);
    check::<CheckedProduct<u16>>(factors(), same_bits);
    check::<CheckedProduct<i32>>(factors(), same_bits);
    check::<CheckedProduct<u32>>(factors(), same_bits);
    check::<CheckedProduct<i64>>(factors(), same_bits);
    check::<CheckedProduct<u64>>(factors(), same_bits);
}

/// Any values, NaNs and zeros of both signs among them, to the bit.
#[test]
fn extremes() {
    check::<Min<i8>>(any(), same_bits);
    check::<Min<u8>>(any(), same_bits);
    check::<Min<i16>>(any(), same_bits);
    check::<Min<u16>>(any(), same_bits);
    check::<Min<i32>>(any(), same_bits);
    check::<Min<u32>>(any(), same_bits);
    check::<Min<i64>>(any(), same_bits);
    check::<Min<u64>>(any(), same_bits);
    check::<Min<bool>>(any(), same_bits);
    check::<Min<f16>>(any(), same_bits);
    check::<Min<bf16>>(any(), same_bits);
    check::<Min<f32>>(any(), same_bits);
    check::<Min<f64>>(any(), same_bits);
    check::<Max<i8>>(any(), same_bits);
    check::<Max<u8>>(any(), same_bits);
    check::<Max<i16>>(any(), same_bits);
    check::<Max<u16>>(any(), same_bits);
    check::<Max<i32>>(any(), same_bits);
    check::<Max<u32>>(any(), same_bits);
    check::<Max<i64>>(any(), same_bits);
    check::<Max<u64>>(any(), same_bits);
    check::<Max<bool>>(any(), same_bits);
    check::<Max<f16>>(any(), same_bits);
    check::<Max<bf16>>(any(), same_bits);
    check::<Max<f32>>(any(), same_bits);
    check::<Max<f64>>(any(), same_bits);
    check::<MinMax<i8>>(any(), same_bits);
    check::<MinMax<u8>>(any(), same_bits);
    check::<MinMax<i16>>(any(), same_bits);
    check::<MinMax<u16>>(any(), same_bits);
    check::<MinMax<i32>>(any(), same_bits);
    check::<MinMax<u32>>(any(), same_bits);
    check::<MinMax<i64>>(any(), same_bits);
    check::<MinMax<u64>>(any(), same_bits);
    check::<MinMax<bool>>(any(), same_bits);
    check::<MinMax<f16>>(any(), same_bits);
    check::<MinMax<bf16>>(any(), same_bits);
    check::<MinMax<f32>>(any(), same_bits);
    check::<MinMax<f64>>(any(), same_bits);
    check::<NanMin<f16>>(any(), same_bits);
    check::<NanMin<bf16>>(any(), same_bits);
    check::<NanMin<f32>>(any(), same_bits);
    check::<NanMin<f64>>(any(), same_bits);
    check::<NanMax<f16>>(any(), same_bits);
    check::<NanMax<bf16>>(any(), same_bits);
    check::<NanMax<f32>>(any(), same_bits);
    check::<NanMax<f64>>(any(), same_bits);
    check::<NanMinMax<f16>>(any(), same_bits);
    check::<NanMinMax<bf16>>(any(), same_bits);
    check::<NanMinMax<f32>>(any(), same_bits);
    check::<NanMinMax<f64>>(any(), same_bits);
}

/// Values with many ties.
#[test]
fn places_of_extremes() {
    neutral::<ArgMin<i8>>(any(), same_bits);
    neutral::<ArgMin<u8>>(any(), same_bits);
    neutral::<ArgMin<i16>>(any(), same_bits);
    neutral::<ArgMin<u16>>(any(), same_bits);
    neutral::<ArgMin<i32>>(any(), same_bits);
    neutral::<ArgMin<u32>>(any(), same_bits);
    neutral::<ArgMin<i64>>(any(), same_bits);
    neutral::<ArgMin<u64>>(any(), same_bits);
    neutral::<ArgMin<bool>>(any(), same_bits);
    neutral::<ArgMin<f16>>(any(), same_bits);
    neutral::<ArgMin<bf16>>(any(), same_bits);
    neutral::<ArgMin<f32>>(any(), same_bits);
    neutral::<ArgMin<f64>>(any(), same_bits);
    neutral::<ArgMax<i8>>(any(), same_bits);
    neutral::<ArgMax<u8>>(any(), same_bits);
    neutral::<ArgMax<i16>>(any(), same_bits);
    neutral::<ArgMax<u16>>(any(), same_bits);
    neutral::<ArgMax<i32>>(any(), same_bits);
    neutral::<ArgMax<u32>>(any(), same_bits);
    neutral::<ArgMax<i64>>(any(), same_bits);
    neutral::<ArgMax<u64>>(any(), same_bits);
    neutral::<ArgMax<bool>>(any(), same_bits);
    neutral::<ArgMax<f16>>(any(), same_bits);
    neutral::<ArgMax<bf16>>(any(), same_bits);
    neutral::<ArgMax<f32>>(any(), same_bits);
    neutral::<ArgMax<f64>>(any(), same_bits);
    check::<IgnoreNan<ArgMin<f16>>>(any(), same_bits);
    check::<IgnoreNan<ArgMin<bf16>>>(any(), same_bits);
    check::<IgnoreNan<ArgMin<f32>>>(any(), same_bits);
    check::<IgnoreNan<ArgMin<f64>>>(any(), same_bits);
    check::<IgnoreNan<ArgMax<f16>>>(any(), same_bits);
    check::<IgnoreNan<ArgMax<bf16>>>(any(), same_bits);
    check::<IgnoreNan<ArgMax<f32>>>(any(), same_bits);
    check::<IgnoreNan<ArgMax<f64>>>(any(), same_bits);
    neutral::<ArgMinBy<Magnitude<i8>>>(any(), same_bits);
    neutral::<ArgMinBy<Magnitude<u8>>>(any(), same_bits);
    neutral::<ArgMinBy<Magnitude<i16>>>(any(), same_bits);
    neutral::<ArgMinBy<Magnitude<u16>>>(any(), same_bits);
    neutral::<ArgMinBy<Magnitude<i32>>>(any(), same_bits);
    neutral::<ArgMinBy<Magnitude<u32>>>(any(), same_bits);
    neutral::<ArgMinBy<Magnitude<i64>>>(any(), same_bits);
    neutral::<ArgMinBy<Magnitude<u64>>>(any(), same_bits);
    neutral::<ArgMinBy<Magnitude<f16>>>(any(), same_bits);
    neutral::<ArgMinBy<Magnitude<bf16>>>(any(), same_bits);
    neutral::<ArgMinBy<Magnitude<f32>>>(any(), same_bits);
    neutral::<ArgMinBy<Magnitude<f64>>>(any(), same_bits);
    neutral::<ArgMaxBy<Magnitude<i8>>>(any(), same_bits);
    neutral::<ArgMaxBy<Magnitude<u8>>>(any(), same_bits);
    neutral::<ArgMaxBy<Magnitude<i16>>>(any(), same_bits);
    neutral::<ArgMaxBy<Magnitude<u16>>>(any(), same_bits);
    neutral::<ArgMaxBy<Magnitude<i32>>>(any(), same_bits);
    neutral::<ArgMaxBy<Magnitude<u32>>>(any(), same_bits);
    neutral::<ArgMaxBy<Magnitude<i64>>>(any(), same_bits);
    neutral::<ArgMaxBy<Magnitude<u64>>>(any(), same_bits);
    neutral::<ArgMaxBy<Magnitude<f16>>>(any(), same_bits);
    neutral::<ArgMaxBy<Magnitude<bf16>>>(any(), same_bits);
    neutral::<ArgMaxBy<Magnitude<f32>>>(any(), same_bits);
    neutral::<ArgMaxBy<Magnitude<f64>>>(any(), same_bits);
}

/// Any bits.
#[test]
fn bits_and_truth() {
    neutral::<And<i8>>(any(), same_bits);
    neutral::<And<u8>>(any(), same_bits);
    neutral::<And<i16>>(any(), same_bits);
    neutral::<And<u16>>(any(), same_bits);
    neutral::<And<i32>>(any(), same_bits);
    neutral::<And<u32>>(any(), same_bits);
    neutral::<And<i64>>(any(), same_bits);
    neutral::<And<u64>>(any(), same_bits);
    neutral::<And<bool>>(any(), same_bits);
    neutral::<Or<i8>>(any(), same_bits);
    neutral::<Or<u8>>(any(), same_bits);
    neutral::<Or<i16>>(any(), same_bits);
    neutral::<Or<u16>>(any(), same_bits);
    neutral::<Or<i32>>(any(), same_bits);
    neutral::<Or<u32>>(any(), same_bits);
    neutral::<Or<i64>>(any(), same_bits);
    neutral::<Or<u64>>(any(), same_bits);
    neutral::<Or<bool>>(any(), same_bits);
    neutral::<Xor<i8>>(any(), same_bits);
    neutral::<Xor<u8>>(any(), same_bits);
    neutral::<Xor<i16>>(any(), same_bits);
    neutral::<Xor<u16>>(any(), same_bits);
    neutral::<Xor<i32>>(any(), same_bits);
    neutral::<Xor<u32>>(any(), same_bits);
    neutral::<Xor<i64>>(any(), same_bits);
    neutral::<Xor<u64>>(any(), same_bits);
    neutral::<Xor<bool>>(any(), same_bits);
    neutral::<All<i8>>(any(), same_bits);
    neutral::<All<u8>>(any(), same_bits);
    neutral::<All<i16>>(any(), same_bits);
    neutral::<All<u16>>(any(), same_bits);
    neutral::<All<i32>>(any(), same_bits);
    neutral::<All<u32>>(any(), same_bits);
    neutral::<All<i64>>(any(), same_bits);
    neutral::<All<u64>>(any(), same_bits);
    neutral::<All<bool>>(any(), same_bits);
    neutral::<All<f16>>(any(), same_bits);
    neutral::<All<bf16>>(any(), same_bits);
    neutral::<All<f32>>(any(), same_bits);
    neutral::<All<f64>>(any(), same_bits);
    neutral::<All<Complex<f32>>>(any(), same_bits);
    neutral::<All<Complex<f64>>>(any(), same_bits);
    neutral::<Any<i8>>(any(), same_bits);
    neutral::<Any<u8>>(any(), same_bits);
    neutral::<Any<i16>>(any(), same_bits);
    neutral::<Any<u16>>(any(), same_bits);
    neutral::<Any<i32>>(any(), same_bits);
    neutral::<Any<u32>>(any(), same_bits);
    neutral::<Any<i64>>(any(), same_bits);
    neutral::<Any<u64>>(any(), same_bits);
    neutral::<Any<bool>>(any(), same_bits);
    neutral::<Any<f16>>(any(), same_bits);
    neutral::<Any<bf16>>(any(), same_bits);
    neutral::<Any<f32>>(any(), same_bits);
    neutral::<Any<f64>>(any(), same_bits);
    neutral::<Any<Complex<f32>>>(any(), same_bits);
    neutral::<Any<Complex<f64>>>(any(), same_bits);
    neutral::<Count<i8>>(any(), same_bits);
    neutral::<Count<u8>>(any(), same_bits);
    neutral::<Count<i16>>(any(), same_bits);
    neutral::<Count<u16>>(any(), same_bits);
    neutral::<Count<i32>>(any(), same_bits);
    neutral::<Count<u32>>(any(), same_bits);
    neutral::<Count<i64>>(any(), same_bits);
    neutral::<Count<u64>>(any(), same_bits);
    neutral::<Count<bool>>(any(), same_bits);
    neutral::<Count<f16>>(any(), same_bits);
    neutral::<Count<bf16>>(any(), same_bits);
    neutral::<Count<f32>>(any(), same_bits);
    neutral::<Count<f64>>(any(), same_bits);
    neutral::<Count<Complex<f32>>>(any(), same_bits);
    neutral::<Count<Complex<f64>>>(any(), same_bits);
}

/// Integers wrap or are exact; floats round.
#[test]
fn norms() {
    neutral::<SumSquares<i8>>(any(), same_bits);
    neutral::<SumSquares<u8>>(any(), same_bits);
    neutral::<SumSquares<i16>>(any(), same_bits);
    neutral::<SumSquares<u16>>(any(), same_bits);
    neutral::<SumSquares<i32>>(any(), same_bits);
    neutral::<SumSquares<u32>>(any(), same_bits);
    neutral::<SumSquares<i64>>(any(), same_bits);
    neutral::<SumSquares<u64>>(any(), same_bits);
    neutral::<L1<i8>>(any(), same_bits);
    neutral::<L1<u8>>(any(), same_bits);
    neutral::<L1<i16>>(any(), same_bits);
    neutral::<L1<u16>>(any(), same_bits);
    neutral::<L1<i32>>(any(), same_bits);
    neutral::<L1<u32>>(any(), same_bits);
    neutral::<L1<i64>>(any(), same_bits);
    neutral::<L1<u64>>(any(), same_bits);
    neutral::<Linf<i8>>(any(), same_bits);
    neutral::<Linf<u8>>(any(), same_bits);
    neutral::<Linf<i16>>(any(), same_bits);
    neutral::<Linf<u16>>(any(), same_bits);
    neutral::<Linf<i32>>(any(), same_bits);
    neutral::<Linf<u32>>(any(), same_bits);
    neutral::<Linf<i64>>(any(), same_bits);
    neutral::<Linf<u64>>(any(), same_bits);
    neutral::<L2<i8>>(any(), same_bits);
    neutral::<L2<u8>>(any(), same_bits);
    neutral::<L2<i16>>(any(), same_bits);
    neutral::<L2<u16>>(any(), same_bits);
    neutral::<L2<i32>>(any(), same_bits);
    neutral::<L2<u32>>(any(), same_bits);
    neutral::<L2<i64>>(any(), close);
    neutral::<L2<u64>>(any(), close);
    neutral::<SumSquares<f16>>(rough(), close);
    neutral::<SumSquares<bf16>>(rough(), close);
    neutral::<SumSquares<f32>>(rough(), close);
    neutral::<SumSquares<f64>>(rough(), close);
    neutral::<SumSquares<Complex<f32>>>(rough(), close);
    neutral::<SumSquares<Complex<f64>>>(rough(), close);
    neutral::<L1<f16>>(rough(), close);
    neutral::<L1<bf16>>(rough(), close);
    neutral::<L1<f32>>(rough(), close);
    neutral::<L1<f64>>(rough(), close);
    neutral::<L1<Complex<f32>>>(rough(), close);
    neutral::<L1<Complex<f64>>>(rough(), close);
    neutral::<L2<f16>>(rough(), close);
    neutral::<L2<bf16>>(rough(), close);
    neutral::<L2<f32>>(rough(), close);
    neutral::<L2<f64>>(rough(), close);
    neutral::<L2<Complex<f32>>>(rough(), close);
    neutral::<L2<Complex<f64>>>(rough(), close);
    neutral::<Linf<f16>>(any(), same_bits);
    neutral::<Linf<bf16>>(any(), same_bits);
    neutral::<Linf<f32>>(any(), same_bits);
    neutral::<Linf<f64>>(any(), same_bits);
    neutral::<Linf<Complex<f32>>>(any(), same_bits);
    neutral::<Linf<Complex<f64>>>(any(), same_bits);
    check::<IgnoreNan<L2<f16>>>(rough_or_nan(), close);
    check::<IgnoreNan<L2<bf16>>>(rough_or_nan(), close);
    check::<IgnoreNan<L2<f32>>>(rough_or_nan(), close);
    check::<IgnoreNan<L2<f64>>>(rough_or_nan(), close);
    neutral::<Dot<i8>>(pairs(any()), same_bits);
    neutral::<Dot<u8>>(pairs(any()), same_bits);
    neutral::<Dot<i16>>(pairs(any()), same_bits);
    neutral::<Dot<u16>>(pairs(any()), same_bits);
    neutral::<Dot<i32>>(pairs(any()), same_bits);
    neutral::<Dot<u32>>(pairs(any()), same_bits);
    neutral::<Dot<i64>>(pairs(any()), same_bits);
    neutral::<Dot<u64>>(pairs(any()), same_bits);
    neutral::<Dot<f16>>(pairs(rough()), close);
    neutral::<Dot<bf16>>(pairs(rough()), close);
    neutral::<Dot<f32>>(pairs(rough()), close);
    neutral::<Dot<f64>>(pairs(rough()), close);
    neutral::<Dot<Complex<f32>>>(pairs(whole()), close);
    neutral::<Dot<Complex<f64>>>(pairs(whole()), close);
}

/// Integers of up to 32 bits are exact; others round.
#[test]
fn moments() {
    neutral::<Mean<i8>>(any(), same_bits);
    neutral::<Mean<u8>>(any(), same_bits);
    neutral::<Mean<i16>>(any(), same_bits);
    neutral::<Mean<u16>>(any(), same_bits);
    neutral::<Mean<i32>>(any(), same_bits);
    neutral::<Mean<u32>>(any(), same_bits);
    neutral::<Mean<i64>>(any(), same_bits);
    neutral::<Mean<u64>>(any(), same_bits);
    neutral::<Mean<bool>>(any(), same_bits);
    neutral::<Mean<f16>>(rough(), close);
    neutral::<Mean<bf16>>(rough(), close);
    neutral::<Mean<f32>>(rough(), close);
    neutral::<Mean<f64>>(rough(), close);
    neutral::<Mean<Complex<f32>>>(rough(), close);
    neutral::<Mean<Complex<f64>>>(rough(), close);
    check::<IgnoreNan<Mean<f16>>>(rough_or_nan(), close);
    check::<IgnoreNan<Mean<bf16>>>(rough_or_nan(), close);
    check::<IgnoreNan<Mean<f32>>>(rough_or_nan(), close);
    check::<IgnoreNan<Mean<f64>>>(rough_or_nan(), close);
    neutral::<Variance<i8>>(any(), same_bits);
    neutral::<Variance<u8>>(any(), same_bits);
    neutral::<Variance<i16>>(any(), same_bits);
    neutral::<Variance<u16>>(any(), same_bits);
    neutral::<Variance<i32>>(any(), same_bits);
    neutral::<Variance<u32>>(any(), same_bits);
    neutral::<StdDev<i8>>(any(), same_bits);
    neutral::<StdDev<u8>>(any(), same_bits);
    neutral::<StdDev<i16>>(any(), same_bits);
    neutral::<StdDev<u16>>(any(), same_bits);
    neutral::<StdDev<i32>>(any(), same_bits);
    neutral::<StdDev<u32>>(any(), same_bits);
    neutral::<Variance<i64>>(any(), close);
    neutral::<Variance<u64>>(any(), close);
    neutral::<StdDev<i64>>(any(), close);
    neutral::<StdDev<u64>>(any(), close);
    neutral::<Variance<f16>>(rough(), close);
    neutral::<Variance<bf16>>(rough(), close);
    neutral::<Variance<f32>>(rough(), close);
    neutral::<Variance<f64>>(rough(), close);
    neutral::<Variance<Complex<f32>>>(rough(), close);
    neutral::<Variance<Complex<f64>>>(rough(), close);
    neutral::<StdDev<f16>>(rough(), close);
    neutral::<StdDev<bf16>>(rough(), close);
    neutral::<StdDev<f32>>(rough(), close);
    neutral::<StdDev<f64>>(rough(), close);
    neutral::<StdDev<Complex<f32>>>(rough(), close);
    neutral::<StdDev<Complex<f64>>>(rough(), close);
    check::<IgnoreNan<Variance<f16>>>(rough_or_nan(), close);
    check::<IgnoreNan<Variance<bf16>>>(rough_or_nan(), close);
    check::<IgnoreNan<Variance<f32>>>(rough_or_nan(), close);
    check::<IgnoreNan<Variance<f64>>>(rough_or_nan(), close);
    check::<IgnoreNan<StdDev<f16>>>(rough_or_nan(), close);
    check::<IgnoreNan<StdDev<bf16>>>(rough_or_nan(), close);
    check::<IgnoreNan<StdDev<f32>>>(rough_or_nan(), close);
    check::<IgnoreNan<StdDev<f64>>>(rough_or_nan(), close);
}

/// Around 1, where nothing cancels.
#[test]
fn logarithms() {
    neutral::<LogSumExp<f16>>(rough(), close);
    neutral::<LogSumExp<bf16>>(rough(), close);
    neutral::<LogSumExp<f32>>(rough(), close);
    neutral::<LogSumExp<f64>>(rough(), close);
    check::<IgnoreNan<LogSumExp<f16>>>(rough_or_nan(), close);
    check::<IgnoreNan<LogSumExp<bf16>>>(rough_or_nan(), close);
    check::<IgnoreNan<LogSumExp<f32>>>(rough_or_nan(), close);
    check::<IgnoreNan<LogSumExp<f64>>>(rough_or_nan(), close);
}

/// Whole numbers, where floats are exact, with what is not finite.
#[test]
fn sequences() {
    check::<Compose<i32>>(steps(any()), same_bits);
    check::<Compose<u32>>(steps(any()), same_bits);
    check::<Compose<i64>>(steps(any()), same_bits);
    check::<Compose<u64>>(steps(any()), same_bits);
    check::<Compose<f32>>(signs(), same_bits);
    check::<Compose<f64>>(signs(), same_bits);
    neutral::<MaxSegmentSum<i8>>(whole(), same_bits);
    neutral::<MaxSegmentSum<u8>>(whole(), same_bits);
    neutral::<MaxSegmentSum<i16>>(whole(), same_bits);
    neutral::<MaxSegmentSum<u16>>(whole(), same_bits);
    neutral::<MaxSegmentSum<i32>>(whole(), same_bits);
    neutral::<MaxSegmentSum<u32>>(whole(), same_bits);
    neutral::<MaxSegmentSum<i64>>(whole(), same_bits);
    neutral::<MaxSegmentSum<u64>>(whole(), same_bits);
    neutral::<MaxSegmentSum<f16>>(whole(), same_bits);
    neutral::<MaxSegmentSum<bf16>>(whole(), same_bits);
    neutral::<MaxSegmentSum<f32>>(whole(), same_bits);
    neutral::<MaxSegmentSum<f64>>(whole(), same_bits);
    neutral::<MaxSegmentSum<i8, i64>>(any(), same_bits);
    neutral::<MaxSegmentSum<u8, u64>>(any(), same_bits);
    neutral::<MaxSegmentSum<i16, i64>>(any(), same_bits);
    neutral::<MaxSegmentSum<u16, u64>>(any(), same_bits);
    neutral::<MaxSegmentSum<i32, i64>>(any(), same_bits);
    neutral::<MaxSegmentSum<u32, u64>>(any(), same_bits);
    check::<MaxNonEmptySegmentSum<i8>>(whole(), same_bits);
    check::<MaxNonEmptySegmentSum<u8>>(whole(), same_bits);
    check::<MaxNonEmptySegmentSum<i16>>(whole(), same_bits);
    check::<MaxNonEmptySegmentSum<u16>>(whole(), same_bits);
    check::<MaxNonEmptySegmentSum<i32>>(whole(), same_bits);
    check::<MaxNonEmptySegmentSum<u32>>(whole(), same_bits);
    check::<MaxNonEmptySegmentSum<i64>>(whole(), same_bits);
    check::<MaxNonEmptySegmentSum<u64>>(whole(), same_bits);
    check::<MaxNonEmptySegmentSum<f16>>(whole(), same_bits);
    check::<MaxNonEmptySegmentSum<bf16>>(whole(), same_bits);
    check::<MaxNonEmptySegmentSum<f32>>(whole(), same_bits);
    check::<MaxNonEmptySegmentSum<f64>>(whole(), same_bits);
    check::<MaxNonEmptySegmentSum<i8, i64>>(any(), same_bits);
    check::<MaxNonEmptySegmentSum<u8, u64>>(any(), same_bits);
    check::<MaxNonEmptySegmentSum<i16, i64>>(any(), same_bits);
    check::<MaxNonEmptySegmentSum<u16, u64>>(any(), same_bits);
    check::<MaxNonEmptySegmentSum<i32, i64>>(any(), same_bits);
    check::<MaxNonEmptySegmentSum<u32, u64>>(any(), same_bits);
    check::<IgnoreNan<MaxSegmentSum<f16>>>(whole(), same_bits);
    check::<IgnoreNan<MaxSegmentSum<bf16>>>(whole(), same_bits);
    check::<IgnoreNan<MaxSegmentSum<f32>>>(whole(), same_bits);
    check::<IgnoreNan<MaxSegmentSum<f64>>>(whole(), same_bits);
}

/// By the traits of `num-traits`.
#[test]
fn types_of_a_user() {
    check::<SumOf<i64>>(whole(), same_bits);
    check::<SumOf<f64>>(rough(), close);
    check::<ProductOf<f64>>(rough(), close);
    check::<MinOf<i64>>(any(), same_bits);
    check::<MaxOf<u8>>(any(), same_bits);
}
