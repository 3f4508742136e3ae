//! Sums of squares, norms and the dot product.

use half::{bf16, f16};
use num_complex::Complex;

use crate::{
    DoubleDouble, Element, Float, GivesIdentity, Integer, MaybeNan, Monoid, NeutralIdentity, Number, Plain,
    SumAccumulator, accumulator::two_products, fingerprint, fused::Parts2, math, number::words_of_bytes,
    ops::operator,
};

/// What a sum over items is made of: how one item comes in, how sums merge, what comes out.
///
/// `Of` tells the sums apart that one item type has: [`Squares`], [`Magnitudes`], ...
pub trait Summed<Of>: Plain {
    /// What is added up.
    type Acc: Plain;
    /// What comes out.
    type Output: Plain;
    /// Has the sum the same bits in any order? See [`Monoid::ANY_ORDER`].
    const ANY_ORDER: bool;
    /// The sum of nothing.
    const ZERO: Self::Acc;
    /// One item.
    fn lift(item: Self) -> Self::Acc;
    /// Adds one item.
    fn push(acc: Self::Acc, item: Self) -> Self::Acc;
    /// Adds one item, unless it is a NaN.
    #[inline(always)]
    fn push_number(acc: Self::Acc, item: Self) -> Self::Acc
    where
        Self: MaybeNan,
    {
        let pushed = Self::push(acc, item);
        if item.is_nan_value() { acc } else { pushed }
    }
    /// Adds a sum that stood to the right.
    fn merge(left: Self::Acc, right: Self::Acc) -> Self::Acc;
    /// Rounds.
    fn finish(acc: Self::Acc) -> Self::Output;
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
}

macro_rules! summed {
    ($($name:ident: $of:ident;)*) => {$(
        impl<T: Summed<$of>> Monoid for $name<T> {
            type Item = T;
            type Acc = T::Acc;
            type Output = T::Output;
            type Empty = GivesIdentity;
            const COMMUTATIVE: bool = true;
            const USES_INDEX: bool = false;
            const ANY_ORDER: bool = T::ANY_ORDER;
            const VECTORISE: bool = false;
            #[inline(always)]
            fn identity(&self) -> T::Acc {
                T::ZERO
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
                T::finish(acc)
            }
        }
        impl<T: Summed<$of>> NeutralIdentity for $name<T> {
            #[inline(always)]
            fn push_number(&self, acc: T::Acc, item: T, _index: u64) -> T::Acc
            where
                T: MaybeNan,
            {
                T::push_number(acc, item)
            }
        }
    )*};
}

operator! {
    /// The sum of squares. Integers give a `u64`, which wraps; `f16`, `bf16` and `f32` are squared (exactly) and summed in
    /// `f64`, `f64` in double-double. Of a complex number the square of the modulus counts. 0 of nothing.
    ///
    /// ```
    /// use warpfold_monoid::{SumSquares, tree};
    ///
    /// assert_eq!(tree::reduce(&SumSquares::<i8>::new(), &[-128, 3]), 16393);
    /// assert_eq!(tree::reduce(&SumSquares::<f32>::new(), &[1e-30, 2.0]), 4.0);
    /// ```
    SumSquares<T>, 40
}

operator! {
    /// The 1-norm: the sum of the distances from 0. Integers give a `u64`, which wraps; accumulators of floats as in
    /// [`Sum`](crate::Sum). Of a complex number the modulus counts. 0 of nothing.
    ///
    /// ```
    /// use warpfold_monoid::{L1, tree};
    ///
    /// assert_eq!(tree::reduce(&L1::<i8>::new(), &[-128, 3]), 131);
    /// ```
    L1<T>, 41
}

operator! {
    /// The 2-norm: the square root of the sum of squares. Integers give an `f64` (those of 8 to 32 bits from the exact
    /// sum); floats neither overflow nor underflow on the way, because `f16`, `bf16` and `f32` are squared in `f64` and very
    /// large and very small `f64` are scaled (J. L. Blue, A Portable Fortran Program to Find the Euclidean Norm of a Vector,
    /// ACM TOMS 4(1), 1978). The norm of `f64` is within a unit in the last place where it is made by items between 2^-450 and
    /// 2^480, whose squares are summed in double-double; those of others are summed in `f64`. 0 of nothing.
    ///
    /// ```
    /// use warpfold_monoid::{L2, tree};
    ///
    /// assert_eq!(tree::reduce(&L2::<f32>::new(), &[3e38, -1e38]), 3.1622777e38);
    /// assert_eq!(tree::reduce(&L2::<f64>::new(), &[3e300, 4e300]), 5e300);
    /// assert_eq!(tree::reduce(&L2::<u8>::new(), &[3, 4]), 5.0);
    /// ```
    L2<T>, 42
}

operator! {
    /// The maximum norm: the greatest distance from 0. Integers give the unsigned type of as many bits, which has room for
    /// that of the lowest value. Any NaN makes the result NaN. Of a complex number the modulus counts. 0 of nothing.
    ///
    /// ```
    /// use warpfold_monoid::{Linf, tree};
    ///
    /// assert_eq!(tree::reduce(&Linf::<i8>::new(), &[-128, 3]), 128_u8);
    /// assert_eq!(tree::reduce(&Linf::<f32>::new(), &[-2.5, 1.0]), 2.5);
    /// ```
    Linf<T>, 43
}

operator! {
    /// The sum of products of pairs. Integers widen to 64 bits and wrap there; products of `f16`, `bf16` and `f32` are exact
    /// in `f64` and summed there, those of `f64` exact in double-double and summed there. Complex numbers are not
    /// conjugated. 0 of nothing.
    ///
    /// An item is a pair, as two arrays side by side have them: `Engine::reduce_columns` of `warpfold-host`.
    ///
    /// ```
    /// use warpfold_monoid::{Dot, fused::Parts2, tree};
    ///
    /// assert_eq!(tree::reduce(&Dot::<i8>::new(), &[Parts2::new(100, 100), Parts2::new(-1, 5)]), 9995_i64);
    /// assert_eq!(tree::reduce(&Dot::<f64>::new(), &[Parts2::new(1e200, 1e-200), Parts2::new(2.0, 3.0)]), 7.0);
    /// ```
    Dot<T>, 44
}

/// The squares of items: see [`SumSquares`].
pub enum Squares {}
/// The distances from 0: see [`L1`].
pub enum Magnitudes {}
/// Squares under a root: see [`L2`].
pub enum SquaresUnderRoot {}
/// The greatest distance from 0: see [`Linf`].
pub enum GreatestMagnitude {}
/// Products of pairs: see [`Dot`].
pub enum Products {}

summed! {
    SumSquares: Squares;
    L1: Magnitudes;
    L2: SquaresUnderRoot;
    Linf: GreatestMagnitude;
}

impl<T: Plain> Monoid for Dot<T>
where
    [T; 2]: Summed<Products>,
{
    type Item = Parts2<T, T>;
    type Acc = <[T; 2] as Summed<Products>>::Acc;
    type Output = <[T; 2] as Summed<Products>>::Output;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    const USES_INDEX: bool = false;
    const ANY_ORDER: bool = <[T; 2] as Summed<Products>>::ANY_ORDER;
    const VECTORISE: bool = false;
    #[inline(always)]
    fn identity(&self) -> Self::Acc {
        <[T; 2]>::ZERO
    }
    #[inline(always)]
    fn lift(&self, item: Parts2<T, T>, _index: u64) -> Self::Acc {
        <[T; 2]>::lift(item.get().into())
    }
    #[inline(always)]
    fn combine(&self, left: Self::Acc, right: Self::Acc) -> Self::Acc {
        <[T; 2]>::merge(left, right)
    }
    #[inline(always)]
    fn push(&self, acc: Self::Acc, item: Parts2<T, T>, _index: u64) -> Self::Acc {
        <[T; 2]>::push(acc, item.get().into())
    }
    #[inline(always)]
    fn fold_many<const N: usize>(&self, items: [Parts2<T, T>; N], _index: u64) -> Self::Acc {
        <[T; 2]>::lift_many(items.map(|item| item.get().into()))
    }
    #[inline(always)]
    fn finish(&self, acc: Self::Acc) -> Self::Output {
        <[T; 2]>::finish(acc)
    }
}

impl<T: Plain> NeutralIdentity for Dot<T> where [T; 2]: Summed<Products> {}

/// 128 bits as two words, the lower first: plain data of 8 bytes' alignment.
pub(crate) type Words = [u64; 2];

#[inline(always)]
pub(crate) const fn words(value: i128) -> Words {
    [value as u64, (value >> 64) as u64]
}

#[inline(always)]
pub(crate) const fn of_words(words: Words) -> i128 {
    words[0] as i128 | (words[1] as i128) << 64
}

/// A number of 128 bits (not negative) as an `f64`, from its halves: one rounding each and one of their sum.
#[inline(always)]
pub(crate) fn unsigned_to_f64(value: u128) -> f64 {
    (value >> 64) as u64 as f64 * 18_446_744_073_709_551_616.0 + value as u64 as f64
}

/// Sums in 64 bits, which wrap. Several items of up to 16 bits are summed in 32 bits first, where they fit.
macro_rules! wrapping {
    ($type:ty, $of:ident, $acc:ty, $output:ty, $narrow:expr, $words:expr, $value:expr) => {
        impl Summed<$of> for $type {
            type Acc = $acc;
            type Output = $output;
            const ANY_ORDER: bool = true;
            const ZERO: $acc = 0;
            #[inline(always)]
            fn lift(item: $type) -> $acc {
                $value(item)
            }
            #[inline(always)]
            fn push(acc: $acc, item: $type) -> $acc {
                acc.wrapping_add($value(item))
            }
            #[inline(always)]
            fn merge(left: $acc, right: $acc) -> $acc {
                left.wrapping_add(right)
            }
            #[inline(always)]
            fn lift_many<const N: usize>(items: [$type; N]) -> $acc {
                if let Some(sum) = $words(items) {
                    return sum as $acc;
                }
                if $narrow && N <= 256 {
                    let mut acc = $value(items[0]) as i32;
                    let mut i = 1;
                    while i < N {
                        acc += $value(items[i]) as i32;
                        i += 1;
                    }
                    return acc as $acc;
                }
                let mut acc = $value(items[0]);
                let mut i = 1;
                while i < N {
                    acc = acc.wrapping_add($value(items[i]));
                    i += 1;
                }
                acc
            }
            #[inline(always)]
            fn finish(acc: $acc) -> $output {
                acc
            }
        }
    };
}

/// The distances from 0 of signed bytes, four in a word: less each its sign and turned over where that is set.
#[inline(always)]
fn magnitudes_of_bytes(word: u32) -> u32 {
    let negative = word >> 7 & 0x0101_0101;
    (word ^ (negative * 0xff)) + negative
}

/// The sum of the distances from 0 of signed bytes.
#[inline(always)]
fn sum_of_magnitudes<T: Plain, const N: usize>(items: [T; N]) -> Option<u32> {
    let halves = words_of_bytes(items)?
        .map(magnitudes_of_bytes)
        .fold(0, |halves, word| halves + (word & 0x00ff_00ff) + (word >> 8 & 0x00ff_00ff));
    Some((halves & 0xffff) + (halves >> 16))
}

/// The greatest distance from 0 of signed bytes.
#[inline(always)]
fn greatest_magnitude<T: Plain, const N: usize>(items: [T; N]) -> Option<u32> {
    let words = words_of_bytes(items)?.map(magnitudes_of_bytes);
    Some(words.flat_map(u32::to_le_bytes).fold(0, |greatest, byte| greatest.max(byte as u32)))
}

/// The sum of products of pairs of bytes: on a GPU four at a time.
#[inline(always)]
fn sum_of_products<T: Plain, const N: usize>(_pairs: [[T; 2]; N], _signed: bool) -> Option<i32> {
    #[cfg(target_arch = "nvptx64")]
    {
        let a = words_of_bytes(_pairs.map(|[a, _]| a))?;
        let b = words_of_bytes(_pairs.map(|[_, b]| b))?;
        return Some(a.zip(b).fold(0, |sum, (a, b)| math::plus_products_of_bytes(sum, a, b, _signed)));
    }
    #[cfg(not(target_arch = "nvptx64"))]
    None
}

/// The sum of squares of bytes: on a GPU four at a time.
#[inline(always)]
pub(crate) fn sum_of_squares<T: Plain, const N: usize>(items: [T; N], signed: bool) -> Option<i32> {
    // Before pairs of no use are made: compilers do not always see that they are not.
    if size_of::<T>() != 1 || cfg!(not(target_arch = "nvptx64")) {
        return None;
    }
    sum_of_products(items.map(|item| [item, item]), signed)
}

/// The sum of bytes, if `one` is 1: on a GPU four at a time.
#[inline(always)]
pub(crate) fn sum_of_bytes<T: Plain, const N: usize>(items: [T; N], one: T, signed: bool) -> Option<i32> {
    if size_of::<T>() != 1 || cfg!(not(target_arch = "nvptx64")) {
        return None;
    }
    sum_of_products(items.map(|item| [item, one]), signed)
}

/// A product in 64 bits. On a GPU one of 32 bits takes fewer instructions, where it fits.
macro_rules! wide_product {
    ($type:ty, $wide:ty, $a:expr, $b:expr) => {
        match (size_of::<$type>() <= 2, <$type>::MIN == 0) {
            (true, true) => ($a as u32).wrapping_mul($b as u32) as $wide,
            (true, false) => ($a as i32).wrapping_mul($b as i32) as $wide,
            (false, _) => ($a as $wide).wrapping_mul($b as $wide),
        }
    };
}

macro_rules! integers {
    ($($type:ident $wide:ident $byte:expr, $short:expr;)*) => {$(
        wrapping!($type, Squares, u64, u64, $byte, |items| sum_of_squares(items, <$type>::MIN != 0), |x: $type| {
            wide_product!($type, $wide, x, x) as u64
        });
        wrapping!($type, Magnitudes, u64, u64, $short, |items| {
            if <$type>::MIN == 0 { None } else { sum_of_magnitudes(items) }
        }, |x: $type| Integer::magnitude_u64(x));
        wrapping!([$type; 2], Products, $wide, $wide, $byte, |items| {
            sum_of_products(items, <$type>::MIN != 0)
        }, |[a, b]: [$type; 2]| wide_product!($type, $wide, a, b));
        impl Summed<GreatestMagnitude> for $type {
            type Acc = <$type as Integer>::Unsigned;
            type Output = Self::Acc;
            const ANY_ORDER: bool = true;
            const ZERO: Self::Acc = 0;
            #[inline(always)]
            fn lift(item: $type) -> Self::Acc {
                Integer::magnitude(item)
            }
            #[inline(always)]
            fn push(acc: Self::Acc, item: $type) -> Self::Acc {
                acc.max(Integer::magnitude(item))
            }
            #[inline(always)]
            fn merge(left: Self::Acc, right: Self::Acc) -> Self::Acc {
                left.max(right)
            }
            #[inline(always)]
            fn lift_many<const N: usize>(items: [$type; N]) -> Self::Acc {
                // On a GPU narrow numbers are masked after every step.
                if let (true, Some(greatest)) = (<$type>::MIN != 0, greatest_magnitude(items)) {
                    return greatest as Self::Acc;
                }
                if size_of::<$type>() <= 2 {
                    let greatest = |greatest: u32, item| greatest.max(Integer::magnitude(item) as u32);
                    return items.into_iter().fold(0, greatest) as Self::Acc;
                }
                items.into_iter().fold(0, |greatest: Self::Acc, item| greatest.max(Integer::magnitude(item)))
            }
            #[inline(always)]
            fn finish(acc: Self::Acc) -> Self::Output {
                acc
            }
        }
    )*};
}
integers! {
    i8 i64 true, true;
    u8 u64 true, true;
    i16 i64 false, true;
    u16 u64 false, true;
    i32 i64 false, false;
    u32 u64 false, false;
    i64 i64 false, false;
    u64 u64 false, false;
}

/// 2-norms of integers up to 32 bits: the exact sum of squares in 128 bits.
macro_rules! exact_roots {
    ($($type:ident $narrow:expr;)*) => {$(
        impl Summed<SquaresUnderRoot> for $type {
            type Acc = Words;
            type Output = f64;
            const ANY_ORDER: bool = true;
            const ZERO: Words = [0, 0];
            #[inline(always)]
            fn lift(item: $type) -> Words {
                let square = Integer::magnitude_u64(item) * Integer::magnitude_u64(item);
                [square, 0]
            }
            #[inline(always)]
            fn push(acc: Words, item: $type) -> Words {
                words(of_words(acc) + of_words(<Self as Summed<SquaresUnderRoot>>::lift(item)))
            }
            #[inline(always)]
            fn merge(left: Words, right: Words) -> Words {
                words(of_words(left) + of_words(right))
            }
            #[inline(always)]
            fn lift_many<const N: usize>(items: [$type; N]) -> Words {
                // Up to two squares of 32-bit numbers fit into 64 bits, very many of narrower ones.
                if !$narrow && N > 1 {
                    let mut acc = <Self as Summed<SquaresUnderRoot>>::lift(items[0]);
                    let mut i = 1;
                    while i < N {
                        acc = <Self as Summed<SquaresUnderRoot>>::push(acc, items[i]);
                        i += 1;
                    }
                    return acc;
                }
                [<Self as Summed<Squares>>::lift_many(items), 0]
            }
            #[inline(always)]
            fn finish(acc: Words) -> f64 {
                math::sqrt(unsigned_to_f64(of_words(acc) as u128))
            }
        }
    )*};
}
exact_roots! {
    i8 true;
    u8 true;
    i16 true;
    u16 true;
    i32 false;
    u32 false;
}

/// 2-norms of integers of 64 bits: their magnitudes as `f64`, in double-double.
macro_rules! rounded_roots {
    ($($type:ident),*) => {$(
        impl Summed<SquaresUnderRoot> for $type {
            type Acc = DoubleDouble;
            type Output = f64;
            const ANY_ORDER: bool = false;
            const ZERO: DoubleDouble = DoubleDouble { hi: 0.0, lo: 0.0 };
            #[inline(always)]
            fn lift(item: $type) -> DoubleDouble {
                <Self as Summed<SquaresUnderRoot>>::push(<Self as Summed<SquaresUnderRoot>>::ZERO, item)
            }
            #[inline(always)]
            fn push(acc: DoubleDouble, item: $type) -> DoubleDouble {
                let magnitude = Integer::magnitude_u64(item) as f64;
                acc.plus_middling_square(magnitude)
            }
            #[inline(always)]
            fn merge(left: DoubleDouble, right: DoubleDouble) -> DoubleDouble {
                left.plus_sum(right)
            }
            #[inline(always)]
            fn finish(acc: DoubleDouble) -> f64 {
                math::sqrt(acc.rounded())
            }
        }
    )*};
}
rounded_roots!(i64, u64);

/// Sums in `f64` of a function of the item, which is exact there.
macro_rules! in_f64 {
    ($type:ty, $of:ident, $output:ty, $value:expr, $finish:expr) => {
        impl Summed<$of> for $type {
            type Acc = f64;
            type Output = $output;
            const ANY_ORDER: bool = false;
            const ZERO: f64 = 0.0;
            #[inline(always)]
            fn lift(item: $type) -> f64 {
                $value(item)
            }
            #[inline(always)]
            fn push(acc: f64, item: $type) -> f64 {
                acc + $value(item)
            }
            #[inline(always)]
            fn merge(left: f64, right: f64) -> f64 {
                left + right
            }
            #[inline(always)]
            fn finish(acc: f64) -> $output {
                $finish(acc)
            }
        }
    };
}

/// Sums in double-double: how an item is added.
macro_rules! in_double_double {
    ($type:ty, $of:ident, $output:ty, $push:expr, $finish:expr) => {
        impl Summed<$of> for $type {
            type Acc = DoubleDouble;
            type Output = $output;
            const ANY_ORDER: bool = false;
            const ZERO: DoubleDouble = DoubleDouble { hi: 0.0, lo: 0.0 };
            #[inline(always)]
            fn lift(item: $type) -> DoubleDouble {
                $push(<Self as Summed<$of>>::ZERO, item)
            }
            #[inline(always)]
            fn push(acc: DoubleDouble, item: $type) -> DoubleDouble {
                $push(acc, item)
            }
            #[inline(always)]
            fn merge(left: DoubleDouble, right: DoubleDouble) -> DoubleDouble {
                left.plus_sum(right)
            }
            #[inline(always)]
            fn finish(acc: DoubleDouble) -> $output {
                $finish(acc)
            }
        }
    };
}

macro_rules! greatest {
    ($($type:ty, $output:ty, $acc:ty, $value:expr, $finish:expr;)*) => {$(
        impl Summed<GreatestMagnitude> for $type {
            type Acc = $acc;
            type Output = $output;
            const ANY_ORDER: bool = true;
            const ZERO: $acc = <$acc as Float>::ZERO;
            #[inline(always)]
            fn lift(item: $type) -> $acc {
                $value(item)
            }
            #[inline(always)]
            fn push(acc: $acc, item: $type) -> $acc {
                Element::maximum(acc, $value(item))
            }
            #[inline(always)]
            fn merge(left: $acc, right: $acc) -> $acc {
                Element::maximum(left, right)
            }
            #[inline(always)]
            fn lift_many<const N: usize>(items: [$type; N]) -> $acc {
                Element::greatest_of([items.map($value)])
            }
            #[inline(always)]
            fn finish(acc: $acc) -> $output {
                $finish(acc)
            }
        }
    )*};
}
greatest! {
    f16, f16, f16, |x: f16| Float::magnitude(x), |x: f16| x.canonical();
    bf16, bf16, bf16, |x: bf16| Float::magnitude(x), |x: bf16| x.canonical();
    f32, f32, f32, |x: f32| x.abs(), |x: f32| x.canonical();
    f64, f64, f64, |x: f64| x.abs(), |x: f64| x.canonical();
    Complex<f32>, f32, f64, square_of_modulus, |x: f64| f32::of_f64(math::sqrt(x));
    Complex<f64>, f64, f64, |z: Complex<f64>| math::modulus(z.re, z.im), |x: f64| x.canonical();
}

macro_rules! narrow_floats {
    ($($type:ty, $product:expr;)*) => {$(
        in_f64!($type, Squares, $type, |x: $type| $product(x, x), Float::of_f64);
        in_f64!($type, Magnitudes, $type, |x: $type| Float::to_f64(x).abs(), Float::of_f64);
        in_f64!($type, SquaresUnderRoot, $type, |x: $type| $product(x, x), |acc| {
            Float::of_f64(math::sqrt(acc))
        });
        in_f64!([$type; 2], Products, $type, |[a, b]: [$type; 2]| $product(a, b), Float::of_f64);
    )*};
}
narrow_floats! {
    f16, product_of_f16;
    bf16, |a: bf16, b: bf16| Float::to_f64(a) * Float::to_f64(b);
    f32, |a: f32, b: f32| a as f64 * b as f64;
}

/// Exact in `f32` already, from where a GPU takes one conversion.
#[inline(always)]
fn product_of_f16(a: f16, b: f16) -> f64 {
    #[cfg(target_arch = "nvptx64")]
    return (math::f16_to_f32(a.to_bits()) * math::f16_to_f32(b.to_bits())) as f64;
    #[cfg(not(target_arch = "nvptx64"))]
    return Float::to_f64(a) * Float::to_f64(b);
}

in_double_double!(f64, Squares, f64, |acc: DoubleDouble, x| acc.plus_square(x), DoubleDouble::rounded);
in_double_double!(f64, Magnitudes, f64, |acc: DoubleDouble, x: f64| acc.plus(x.abs()), DoubleDouble::rounded);
in_double_double!(
    [f64; 2],
    Products,
    f64,
    |acc: DoubleDouble, [a, b]: [f64; 2]| acc.plus_product(a, b),
    DoubleDouble::rounded
);

/// The square of the modulus: each square is exact.
#[inline(always)]
fn square_of_modulus(z: Complex<f32>) -> f64 {
    z.re as f64 * z.re as f64 + z.im as f64 * z.im as f64
}

in_f64!(Complex<f32>, Squares, f32, square_of_modulus, f32::of_f64);
in_f64!(Complex<f32>, SquaresUnderRoot, f32, square_of_modulus, |acc| f32::of_f64(math::sqrt(acc)));
in_f64!(Complex<f32>, Magnitudes, f32, |z| math::sqrt(square_of_modulus(z)), f32::of_f64);
in_double_double!(
    Complex<f64>,
    Squares,
    f64,
    |acc: DoubleDouble, z: Complex<f64>| acc.plus_square(z.re).plus_square(z.im),
    DoubleDouble::rounded
);
in_double_double!(
    Complex<f64>,
    Magnitudes,
    f64,
    |acc: DoubleDouble, z: Complex<f64>| acc.plus(math::modulus(z.re, z.im)),
    DoubleDouble::rounded
);

/// Squares of `f64` in three sums, so that none overflows and none that counts underflows.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaledSquares {
    /// Of numbers from 2^-450 to 2^480.
    middle: DoubleDouble,
    /// Of greater ones, times 2^-600.
    huge: f64,
    /// Of lesser ones, times 2^600.
    tiny: f64,
}

// SAFETY: repr(C), four f64.
unsafe impl Plain for ScaledSquares {
    const LAYOUT: u64 = fingerprint(&[45, f64::LAYOUT]);
}

impl ScaledSquares {
    const ZERO: Self = ScaledSquares { middle: DoubleDouble { hi: 0.0, lo: 0.0 }, huge: 0.0, tiny: 0.0 };

    /// Adds a square. A NaN goes in the middle; or, of `NUMBERS` alone, a zero, which changes no bit there.
    #[inline(always)]
    fn push<const NUMBERS: bool>(self, x: f64) -> Self {
        let magnitude = x.abs();
        let (huge, tiny) = (magnitude > math::HUGE, magnitude < math::TINY);
        // An infinity, which the bits do not tell from a NaN here, is huge.
        let none = NUMBERS && (magnitude.to_bits() >> 32) as u32 >= 0x7ff0_0000;
        let middle = if huge | tiny | none { 0.0 } else { magnitude };
        let down = if huge { magnitude * math::DOWN } else { 0.0 };
        let up = if tiny { magnitude * math::UP } else { 0.0 };
        ScaledSquares {
            middle: self.middle.plus_middling_square(middle),
            huge: self.huge + down * down,
            tiny: self.tiny + up * up,
        }
    }

    #[inline(always)]
    fn plus_sum(self, right: Self) -> Self {
        ScaledSquares {
            middle: self.middle.plus_sum(right.middle),
            huge: self.huge + right.huge,
            tiny: self.tiny + right.tiny,
        }
    }

    #[inline(always)]
    fn root(self) -> f64 {
        let middle = self.middle.rounded();
        // A NaN, which is neither huge nor tiny, is in the middle.
        let root = if middle.is_nan() {
            middle
        } else if self.huge > 0.0 {
            math::sqrt(self.huge + middle * math::DOWN * math::DOWN) * math::UP
        } else if middle > 0.0 {
            math::sqrt(middle + self.tiny * math::DOWN * math::DOWN)
        } else {
            math::sqrt(self.tiny) * math::DOWN
        };
        root.canonical()
    }
}

macro_rules! scaled_roots {
    ($($type:ty, $push:expr $(, numbers $push_number:expr)?;)*) => {$(
        impl Summed<SquaresUnderRoot> for $type {
            type Acc = ScaledSquares;
            type Output = f64;
            const ANY_ORDER: bool = false;
            const ZERO: ScaledSquares = ScaledSquares::ZERO;
            #[inline(always)]
            fn lift(item: $type) -> ScaledSquares {
                $push(ScaledSquares::ZERO, item)
            }
            #[inline(always)]
            fn push(acc: ScaledSquares, item: $type) -> ScaledSquares {
                $push(acc, item)
            }
            $(
                #[inline(always)]
                fn push_number(acc: ScaledSquares, item: $type) -> ScaledSquares {
                    $push_number(acc, item)
                }
            )?
            #[inline(always)]
            fn merge(left: ScaledSquares, right: ScaledSquares) -> ScaledSquares {
                left.plus_sum(right)
            }
            #[inline(always)]
            fn finish(acc: ScaledSquares) -> f64 {
                acc.root()
            }
        }
    )*};
}
scaled_roots! {
    f64, ScaledSquares::push::<false>, numbers ScaledSquares::push::<true>;
    Complex<f64>, |acc: ScaledSquares, z: Complex<f64>| acc.push::<false>(z.re).push::<false>(z.im);
}

/// Products of complex numbers, not conjugated.
impl Summed<Products> for [Complex<f32>; 2] {
    type Acc = Complex<f64>;
    type Output = Complex<f32>;
    const ANY_ORDER: bool = false;
    const ZERO: Complex<f64> = Complex { re: 0.0, im: 0.0 };
    #[inline(always)]
    fn lift([a, b]: Self) -> Complex<f64> {
        let (a, b) = (Complex::new(a.re as f64, a.im as f64), Complex::new(b.re as f64, b.im as f64));
        Complex { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re }
    }
    #[inline(always)]
    fn push(acc: Complex<f64>, item: Self) -> Complex<f64> {
        Self::merge(acc, Self::lift(item))
    }
    #[inline(always)]
    fn merge(left: Complex<f64>, right: Complex<f64>) -> Complex<f64> {
        Complex { re: left.re + right.re, im: left.im + right.im }
    }
    #[inline(always)]
    fn finish(acc: Complex<f64>) -> Complex<f32> {
        Complex { re: f32::of_f64(acc.re), im: f32::of_f64(acc.im) }
    }
}

/// Products of complex numbers, not conjugated.
impl Summed<Products> for [Complex<f64>; 2] {
    type Acc = <Complex<f64> as Number>::SumAcc;
    type Output = Complex<f64>;
    const ANY_ORDER: bool = false;
    const ZERO: Self::Acc =
        Complex { re: DoubleDouble { hi: 0.0, lo: 0.0 }, im: DoubleDouble { hi: 0.0, lo: 0.0 } };
    #[inline(always)]
    fn lift(item: Self) -> Self::Acc {
        Self::push(Self::ZERO, item)
    }
    #[inline(always)]
    fn push(acc: Self::Acc, [a, b]: Self) -> Self::Acc {
        let [re, less, im, more] = two_products([a.re, -a.im, a.re, a.im], [b.re, b.im, b.im, b.re]);
        Complex {
            re: acc.re.plus_rounded(re).plus_rounded(less),
            im: acc.im.plus_rounded(im).plus_rounded(more),
        }
    }
    #[inline(always)]
    fn merge(left: Self::Acc, right: Self::Acc) -> Self::Acc {
        SumAccumulator::<Complex<f64>>::merge(left, right)
    }
    #[inline(always)]
    fn finish(acc: Self::Acc) -> Complex<f64> {
        SumAccumulator::<Complex<f64>>::finish(acc)
    }
}
