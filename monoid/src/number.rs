//! Number types: what the built-in operators take, and the accumulators that sums and products of them use.

use half::{bf16, f16};
use num_complex::Complex;

use crate::{
    Atomic, DoubleDouble, Plain, ProductAccumulator, SumAccumulator, fingerprint, fused::Parts2, math,
    norms::sum_of_bytes,
};

/// A number type with sums and products.
///
/// | type | sum accumulates in | product accumulates in |
/// | --- | --- | --- |
/// | integers of 8 to 64 bits | the type itself, wrapping | the type itself, wrapping |
/// | `f16`, `bf16`, `f32` | `f64` | `f64` |
/// | `f64` | [`DoubleDouble`] | `f64` |
/// | `Complex<f32>` | `Complex<f64>` | `Complex<f64>` |
/// | `Complex<f64>` | a [`DoubleDouble`] for each part | `Complex<f64>` |
pub trait Number: Plain {
    /// The default accumulator of [`Sum`](crate::Sum).
    type SumAcc: SumAccumulator<Self, Output = Self>;
    /// The default accumulator of [`Product`](crate::Product).
    type ProductAcc: ProductAccumulator<Self, Output = Self>;
}

/// A type with an order: integers, floats, `bool`.
pub trait Element: Plain {
    /// Holds the order of values in its own: `u32`, or `u64` for types of 64 bits.
    type Rank: Rank;
    /// The largest value, infinity for floats.
    const HIGHEST: Self;
    /// The lowest value, minus infinity for floats.
    const LOWEST: Self;
    /// The lesser; a NaN if either is one; -0.0 is less than +0.0 (IEEE 754-2019 `minimum`).
    fn minimum(self, other: Self) -> Self;
    /// The greater; a NaN if either is one; +0.0 is greater than -0.0 (IEEE 754-2019 `maximum`).
    fn maximum(self, other: Self) -> Self;
    /// The value itself, any NaN as the one canonical quiet NaN.
    fn canonical(self) -> Self;
    /// Is this a NaN? Never, but for floats.
    fn is_nan(self) -> bool;
    /// The rank whose every bit is set: no value has a greater one.
    const TOP: Self::Rank;
    /// A number that is greater for greater values, in the order of [`maximum`](Element::maximum). Numbers take no more
    /// bits than the type has. Those of NaNs, which have no place in the order, only lead back to a NaN.
    fn rank(self) -> Self::Rank;
    /// The value of a rank.
    fn of_rank(rank: Self::Rank) -> Self;
    /// Of types of one or two bytes: the bits.
    #[doc(hidden)]
    #[inline(always)]
    fn low_bits(self) -> u32 {
        0
    }
    /// Of types of one or two bytes: [`TOP`](Element::TOP) in every place of a word.
    #[doc(hidden)]
    const TOPS: u32 = u32::MAX;
    /// Of types of one or two bytes: the ranks of the items in a word, each in its place.
    #[doc(hidden)]
    #[inline(always)]
    fn ranks_in(word: u32) -> u32 {
        word
    }
    /// The same: all bits in the places of NaNs.
    #[doc(hidden)]
    #[inline(always)]
    fn nans_in(_word: u32) -> u32 {
        0
    }
    /// The [`minimum`](Element::minimum) of some vectors of items, at least one.
    #[inline(always)]
    fn least_of<const N: usize, const U: usize>(vectors: [[Self; N]; U]) -> Self {
        fold_all(vectors, |item| item, Self::minimum)
    }
    /// The [`maximum`](Element::maximum) of some vectors of items, at least one.
    #[inline(always)]
    fn greatest_of<const N: usize, const U: usize>(vectors: [[Self; N]; U]) -> Self {
        fold_all(vectors, |item| item, Self::maximum)
    }
}

/// One after the other.
#[inline(always)]
fn fold_all<T: Copy, K, const N: usize, const U: usize>(
    vectors: [[T; N]; U],
    key: impl Fn(T) -> K,
    combine: impl Fn(K, K) -> K,
) -> K {
    let mut acc = key(vectors[0][0]);
    let mut i = 1;
    while i < U * N {
        acc = combine(acc, key(vectors[i / N][i % N]));
        i += 1;
    }
    acc
}

/// Of items of one byte: words, each with an item on top, one after the other. What lies below decides nothing but between equals.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn fold_tops<T: Element, K, const N: usize, const U: usize>(
    vectors: [[T; N]; U],
    key: impl Fn(u32) -> K,
    combine: impl Fn(K, K) -> K,
) -> Option<K> {
    if size_of::<T>() != 1 || !N.is_multiple_of(4) {
        return None;
    }
    let mut acc = None;
    let mut i = 0;
    while i < U * N {
        let (vector, first) = (vectors[i / N], i % N);
        let word = (0..4).fold(0, |word, k| word | vector[first + k].low_bits() << (8 * k));
        let mut k = 0;
        while k < 4 {
            let top = key(word << (24 - 8 * k));
            acc = Some(match acc {
                Some(acc) => combine(acc, top),
                None => top,
            });
            k += 1;
        }
        i += 4;
    }
    acc
}

/// What [`Element::rank`] gives: `u32` or `u64`.
pub trait Rank: Plain + Ord + core::ops::BitXor<Output = Self> {
    /// Zero.
    const ZERO: Self;
    /// A rank of 16 bits at most.
    fn of_low(low: u32) -> Self;
}

macro_rules! ranks {
    ($($rank:ty),*) => {$(
        impl Rank for $rank {
            const ZERO: $rank = 0;
            #[inline(always)]
            fn of_low(low: u32) -> $rank { low as $rank }
        }
    )*};
}
ranks!(u32, u64);

/// An integer of 8 to 64 bits.
pub trait Integer: Element + Number + Eq + Ord {
    /// `i64` for signed types, `u64` for unsigned ones: what sums and products are widened to.
    type Wide: Integer<Wide = Self::Wide>
        + SumAccumulator<Self, Output = Self::Wide>
        + ProductAccumulator<Self, Output = Self::Wide>;
    /// The unsigned type of as many bits, which holds every magnitude.
    type Unsigned: Integer<Wide = u64>;
    /// The value, widened.
    fn wide(self) -> Self::Wide;
    /// The value.
    fn to_i128(self) -> i128;
    /// The distance from 0.
    fn magnitude(self) -> Self::Unsigned;
    /// The magnitude, widened.
    fn magnitude_u64(self) -> u64;
    /// The value with all other bits cut off: what wrapping arithmetic leaves.
    fn wrap(value: u64) -> Self;
    /// The bits, sign-extended.
    fn bits(self) -> u64;
}

/// A floating-point [`Element`].
pub trait Float: Element + Number {
    /// The canonical quiet NaN.
    const NAN: Self;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// The value, exactly.
    fn to_f64(self) -> f64;
    /// The nearest value, ties to even; a NaN becomes the canonical one.
    fn of_f64(value: f64) -> Self;
    /// The distance from 0.
    fn magnitude(self) -> Self;
    /// The lesser; the other one if either is a NaN (IEEE 754-2019 `minimumNumber`).
    #[inline(always)]
    fn minimum_number(self, other: Self) -> Self {
        if self.is_nan() {
            other
        } else if other.is_nan() {
            self
        } else {
            self.minimum(other)
        }
    }
    /// The greater; the other one if either is a NaN (IEEE 754-2019 `maximumNumber`).
    #[inline(always)]
    fn maximum_number(self, other: Self) -> Self {
        if self.is_nan() {
            other
        } else if other.is_nan() {
            self
        } else {
            self.maximum(other)
        }
    }
    /// The [`minimum_number`](Float::minimum_number) of some vectors of items, at least one.
    #[inline(always)]
    fn least_number_of<const N: usize, const U: usize>(vectors: [[Self; N]; U]) -> Self {
        fold_all(vectors, |item| item, Self::minimum_number)
    }
    /// The [`maximum_number`](Float::maximum_number) of some vectors of items, at least one.
    #[inline(always)]
    fn greatest_number_of<const N: usize, const U: usize>(vectors: [[Self; N]; U]) -> Self {
        fold_all(vectors, |item| item, Self::maximum_number)
    }
}

// SAFETY: repr(transparent) over u16; zero bytes are +0.0.
unsafe impl Plain for f16 {
    const LAYOUT: u64 = fingerprint(&[16, 2]);
}

// SAFETY: repr(transparent) over u16; zero bytes are +0.0.
unsafe impl Plain for bf16 {
    const LAYOUT: u64 = fingerprint(&[17, 2]);
}

// SAFETY: repr(C), two fields of one type: no padding.
unsafe impl<T: Plain> Plain for Complex<T> {
    const LAYOUT: u64 = fingerprint(&[18, T::LAYOUT, T::LAYOUT, size_of::<T>() as u64]);
}

macro_rules! integers {
    ($($type:ident $unsigned:ident $wide:ident $rank:ident, [$($acc:ty),+];)*) => {$(
        impl Number for $type {
            type SumAcc = $type;
            type ProductAcc = $type;
        }
        impl Element for $type {
            type Rank = $rank;
            const TOP: $rank = <$unsigned>::MAX as $rank;
            const HIGHEST: $type = <$type>::MAX;
            const LOWEST: $type = <$type>::MIN;
            #[inline(always)]
            fn minimum(self, other: Self) -> Self { if other < self { other } else { self } }
            #[inline(always)]
            fn maximum(self, other: Self) -> Self { if other > self { other } else { self } }
            #[inline(always)]
            fn canonical(self) -> Self { self }
            #[inline(always)]
            fn is_nan(self) -> bool { false }
            #[inline(always)]
            fn rank(self) -> $rank { (self as $unsigned ^ <$type>::MIN as $unsigned) as $rank }
            #[inline(always)]
            fn of_rank(rank: $rank) -> Self { (rank as $unsigned ^ <$type>::MIN as $unsigned) as $type }
            #[inline(always)]
            fn low_bits(self) -> u32 { self as $unsigned as u32 }
            #[inline(always)]
            fn ranks_in(word: u32) -> u32 {
                let one = <$type>::MIN as $unsigned as u32;
                word ^ if size_of::<$type>() == 1 { one.wrapping_mul(0x0101_0101) } else { one.wrapping_mul(0x0001_0001) }
            }
            #[cfg(target_arch = "nvptx64")]
            #[inline(always)]
            fn least_of<const N: usize, const U: usize>(vectors: [[Self; N]; U]) -> Self {
                let top = if <$type>::MIN == 0 {
                    fold_tops(vectors, |top| top, u32::min).map(|top| (top >> 24) as $type)
                } else {
                    fold_tops(vectors, |top| top as i32, i32::min).map(|top| (top >> 24) as $type)
                };
                match top {
                    Some(least) => least,
                    None => fold_all(vectors, |item| item, Self::minimum),
                }
            }
            #[cfg(target_arch = "nvptx64")]
            #[inline(always)]
            fn greatest_of<const N: usize, const U: usize>(vectors: [[Self; N]; U]) -> Self {
                let top = if <$type>::MIN == 0 {
                    fold_tops(vectors, |top| top, u32::max).map(|top| (top >> 24) as $type)
                } else {
                    fold_tops(vectors, |top| top as i32, i32::max).map(|top| (top >> 24) as $type)
                };
                match top {
                    Some(greatest) => greatest,
                    None => fold_all(vectors, |item| item, Self::maximum),
                }
            }
        }
        impl Integer for $type {
            type Wide = $wide;
            type Unsigned = $unsigned;
            #[inline(always)]
            fn wide(self) -> $wide { self as $wide }
            #[inline(always)]
            fn to_i128(self) -> i128 { self as i128 }
            // Of an unsigned number the wide one may look negative.
            #[inline(always)]
            fn magnitude(self) -> $unsigned {
                let signed = <$type>::HIGHEST as $unsigned != $unsigned::MAX;
                match size_of::<$type>() {
                    _ if !signed => self as $unsigned,
                    // On a GPU 64 bits take twice the instructions.
                    ..=4 => (self as i32).unsigned_abs() as $unsigned,
                    _ => (self as i64).unsigned_abs() as $unsigned,
                }
            }
            #[inline(always)]
            fn magnitude_u64(self) -> u64 { self.magnitude() as u64 }
            #[inline(always)]
            fn wrap(value: u64) -> $type { value as $type }
            #[inline(always)]
            fn bits(self) -> u64 { self as $wide as u64 }
        }
        $(
            impl SumAccumulator<$type> for $acc {
                type Output = $acc;
                const ZERO: $acc = 0;
                const ANY_ORDER: bool = true;
                const ATOMIC: Atomic = Atomic::Add.of_size(size_of::<$acc>());
                #[inline(always)]
                fn lift(item: $type) -> $acc { item as $acc }
                #[inline(always)]
                fn push(self, item: $type) -> $acc { self.wrapping_add(item as $acc) }
                #[inline(always)]
                fn merge(self, right: $acc) -> $acc { self.wrapping_add(right) }
                #[inline(always)]
                fn lift_many<const N: usize>(items: [$type; N]) -> $acc {
                    if let (4.., Some(sum)) = (size_of::<$acc>(), sum_of_bytes(items, 1, <$type>::MIN != 0)) {
                        return sum as $acc;
                    }
                    // A few items of up to 16 bits in 32 bits, where nothing wraps.
                    if size_of::<$type>() <= 2 && size_of::<$acc>() == 8 && N <= 256 {
                        return items.into_iter().fold(0_i32, |sum, item| sum + item as i32) as $acc;
                    }
                    items[1..].iter().fold(items[0] as $acc, |sum, &item| sum.push(item))
                }
                #[inline(always)]
                fn finish(self) -> $acc { self }
            }
            impl ProductAccumulator<$type> for $acc {
                type Output = $acc;
                const ONE: $acc = 1;
                const ANY_ORDER: bool = true;
                #[inline(always)]
                fn lift(item: $type) -> $acc { item as $acc }
                #[inline(always)]
                fn merge(self, right: $acc) -> $acc { self.wrapping_mul(right) }
                #[inline(always)]
                fn lift_many<const N: usize>(items: [$type; N]) -> $acc {
                    // Four bytes or two numbers of 16 bits have a product of 32 bits.
                    let together = 4 / size_of::<$type>();
                    if size_of::<$type>() > 2 || size_of::<$acc>() < 8 || N % together != 0 {
                        return items[1..].iter().fold(items[0] as $acc, |product, &item| product.wrapping_mul(item as $acc));
                    }
                    let mut product: $acc = 1;
                    let mut i = 0;
                    while i < N {
                        let few = items[i..i + together].iter();
                        product = product.wrapping_mul(if <$type>::MIN == 0 {
                            few.fold(1_u32, |few, &item| few.wrapping_mul(item as u32)) as $acc
                        } else {
                            few.fold(1_i32, |few, &item| few.wrapping_mul(item as i32)) as $acc
                        });
                        i += together;
                    }
                    product
                }
                #[inline(always)]
                fn finish(self) -> $acc { self }
            }
        )*
    )*};
}

integers! {
    i8 u8 i64 u32, [i8, i64];
    u8 u8 u64 u32, [u8, u32, u64];
    i16 u16 i64 u32, [i16, i64];
    u16 u16 u64 u32, [u16, u64];
    i32 u32 i64 u32, [i32, i64];
    u32 u32 u64 u32, [u32, u64];
    i64 u64 i64 u64, [i64];
    u64 u64 u64 u64, [u64];
}

impl Element for bool {
    type Rank = u32;
    const TOP: u32 = 1;
    const HIGHEST: bool = true;
    const LOWEST: bool = false;
    #[inline(always)]
    fn minimum(self, other: bool) -> bool {
        self & other
    }
    #[inline(always)]
    fn maximum(self, other: bool) -> bool {
        self | other
    }
    #[inline(always)]
    fn canonical(self) -> bool {
        self
    }
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
    #[inline(always)]
    fn rank(self) -> u32 {
        self as u32
    }
    #[inline(always)]
    fn of_rank(rank: u32) -> bool {
        rank != 0
    }
    #[inline(always)]
    fn low_bits(self) -> u32 {
        self as u32
    }
    const TOPS: u32 = 0x0101_0101;
}

/// What floats of every width have in common: `$bits` is the unsigned integer of as many bits.
macro_rules! float {
    ($type:ident, $bits:ident, $rank:ident, $sum:ty, zero $zero:expr, one $one:expr,
     lt $lt:expr, to_f64 $to_f64:expr, of_f64 $of_f64:expr $(, halves $infinity:expr)? $(, numbers $least:ident $greatest:ident)?) => {
        impl Number for $type {
            type SumAcc = $sum;
            type ProductAcc = f64;
        }
        impl Element for $type {
            type Rank = $rank;
            const TOP: $rank = $bits::MAX as $rank;
            const HIGHEST: $type = $type::INFINITY;
            const LOWEST: $type = $type::NEG_INFINITY;
            // Without branches, so that a loop of them vectorises. Equal values differ at most in a zero's sign: `or`
            // of their bits keeps a minus, `and` a plus. A NaN's bits `or` any others are a NaN's.
            #[inline(always)]
            fn minimum(self, other: Self) -> Self {
                #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
                if size_of::<$type>() == 4 {
                    return $type::from_bits(math::least_f32(self.to_bits() as u32, other.to_bits() as u32) as $bits);
                }
                let lesser = if $lt(self, other) { self } else { other };
                let alike = !$lt(self, other) & !$lt(other, self);
                $type::from_bits(lesser.to_bits() | if alike { self.to_bits() } else { 0 })
            }
            #[inline(always)]
            fn maximum(self, other: Self) -> Self {
                #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
                if size_of::<$type>() == 4 {
                    return $type::from_bits(math::greatest_f32(self.to_bits() as u32, other.to_bits() as u32) as $bits);
                }
                let left = if $lt(other, self) { self } else { other };
                let right = if $lt(self, other) { other } else { self };
                let nan = if self.is_nan() | other.is_nan() { !0 } else { 0 };
                $type::from_bits((left.to_bits() & right.to_bits()) | nan)
            }
            #[inline(always)]
            fn canonical(self) -> Self {
                if self.is_nan() { $type::NAN } else { self }
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                $type::is_nan(self)
            }
            #[inline(always)]
            fn rank(self) -> $rank {
                let bits = self.to_bits();
                let negative = (0 as $bits).wrapping_sub(bits >> ($bits::BITS - 1));
                (bits ^ (negative | 1 << ($bits::BITS - 1))) as $rank
            }
            #[inline(always)]
            fn of_rank(rank: $rank) -> Self {
                let rank = rank as $bits;
                let negative = rank >> ($bits::BITS - 1) == 0;
                $type::from_bits(rank ^ if negative { $bits::MAX } else { 1 << ($bits::BITS - 1) })
            }
            $(
                #[inline(always)]
                fn low_bits(self) -> u32 {
                    self.to_bits() as u32
                }
                #[inline(always)]
                fn ranks_in(word: u32) -> u32 {
                    word ^ (math::pick_bytes(word, 0, math::SIGNS_OF_HALVES) | 0x8000_8000)
                }
                #[inline(always)]
                fn nans_in(word: u32) -> u32 {
                    let beyond = (word & 0x7fff_7fff) + (0x7fff - $infinity as u32) * 0x0001_0001;
                    math::pick_bytes(beyond, 0, math::SIGNS_OF_HALVES)
                }
                #[inline(always)]
                fn least_of<const N: usize, const U: usize>(vectors: [[Self; N]; U]) -> Self {
                    $type::from_bits(Halves::of(vectors, $type::to_bits).least($infinity))
                }
                #[inline(always)]
                fn greatest_of<const N: usize, const U: usize>(vectors: [[Self; N]; U]) -> Self {
                    $type::from_bits(Halves::of(vectors, $type::to_bits).greatest($infinity))
                }
            )?
        }
        impl Float for $type {
            const NAN: $type = $type::NAN;
            const ZERO: $type = $zero;
            const ONE: $type = $one;
            #[inline(always)]
            fn to_f64(self) -> f64 {
                $to_f64(self)
            }
            #[inline(always)]
            fn of_f64(value: f64) -> $type {
                $of_f64(value)
            }
            #[inline(always)]
            fn magnitude(self) -> $type {
                $type::from_bits(self.to_bits() & ($bits::MAX >> 1))
            }
            $(
                #[cfg(target_arch = "nvptx64")]
                #[inline(always)]
                fn minimum_number(self, other: Self) -> Self {
                    math::$least(self, other)
                }
                #[cfg(target_arch = "nvptx64")]
                #[inline(always)]
                fn maximum_number(self, other: Self) -> Self {
                    math::$greatest(self, other)
                }
            )?
            $(
                #[cfg(target_arch = "nvptx64")]
                #[inline(always)]
                fn least_number_of<const N: usize, const U: usize>(vectors: [[Self; N]; U]) -> Self {
                    Half::narrowed(fold_all(vectors, Half::widened, math::least_number_f32))
                }
                #[cfg(target_arch = "nvptx64")]
                #[inline(always)]
                fn greatest_number_of<const N: usize, const U: usize>(vectors: [[Self; N]; U]) -> Self {
                    Half::narrowed(fold_all(vectors, Half::widened, math::greatest_number_f32))
                }
                #[cfg(not(target_arch = "nvptx64"))]
                #[inline(always)]
                fn least_number_of<const N: usize, const U: usize>(vectors: [[Self; N]; U]) -> Self {
                    let key = |x: $type| {
                        let key = half_key(x.to_bits());
                        if key >= !$infinity { key } else { i32::MAX }
                    };
                    let least = fold_all(vectors, key, Ord::min);
                    if least > $infinity { Self::NAN } else { $type::from_bits(half_of_key(least)) }
                }
                #[cfg(not(target_arch = "nvptx64"))]
                #[inline(always)]
                fn greatest_number_of<const N: usize, const U: usize>(vectors: [[Self; N]; U]) -> Self {
                    let key = |x: $type| {
                        let key = half_key(x.to_bits());
                        if key <= $infinity { key } else { i32::MIN }
                    };
                    let greatest = fold_all(vectors, key, Ord::max);
                    if greatest < !$infinity { Self::NAN } else { $type::from_bits(half_of_key(greatest)) }
                }
            )?
        }
        impl ProductAccumulator<$type> for f64 {
            type Output = $type;
            const ONE: f64 = 1.0;
            #[inline(always)]
            fn lift(item: $type) -> f64 {
                Float::to_f64(item)
            }
            #[inline(always)]
            fn merge(self, right: f64) -> f64 {
                self * right
            }
            #[inline(always)]
            fn finish(self) -> $type {
                $type::of_f64(self)
            }
        }
    };
}

float! {
    f64, u64, u64, DoubleDouble, zero 0.0, one 1.0,
    lt |a: f64, b: f64| a < b, to_f64 |x: f64| x, of_f64 |x: f64| x.canonical()
}
float! {
    f32, u32, u32, f64, zero 0.0, one 1.0,
    lt |a: f32, b: f32| a < b, to_f64 |x: f32| x as f64, of_f64 |x: f64| (x as f32).canonical(), numbers least_number_f32 greatest_number_f32
}
float! {
    f16, u16, u32, f64, zero f16::ZERO, one f16::ONE,
    lt |a: f16, b: f16| half_to_f32::<10>(a.to_bits()) < half_to_f32::<10>(b.to_bits()),
    to_f64 |x: f16| half_to_f64::<10>(x.to_bits()),
    of_f64 |x: f64| f16::from_bits(half_of_f64::<10>(x)), halves 0x7c00_i32
}
float! {
    bf16, u16, u32, f64, zero bf16::ZERO, one bf16::ONE,
    lt |a: bf16, b: bf16| half_to_f32::<7>(a.to_bits()) < half_to_f32::<7>(b.to_bits()),
    to_f64 |x: bf16| f32::from_bits((x.to_bits() as u32) << 16) as f64,
    of_f64 |x: f64| bf16::from_bits(half_of_f64::<7>(x)), halves 0x7f80_i32
}

/// A float of 16 bits on a GPU, which widens it in one instruction.
#[cfg(target_arch = "nvptx64")]
trait Half: Copy {
    /// The value as an `f32`.
    fn widened(self) -> f32;
    /// Of a value of the type or a NaN.
    fn narrowed(value: f32) -> Self;
}

#[cfg(target_arch = "nvptx64")]
impl Half for f16 {
    #[inline(always)]
    fn widened(self) -> f32 {
        math::f16_to_f32(self.to_bits())
    }
    #[inline(always)]
    fn narrowed(value: f32) -> f16 {
        f16::from_bits(math::f32_to_f16(value))
    }
}

#[cfg(target_arch = "nvptx64")]
impl Half for bf16 {
    #[inline(always)]
    fn widened(self) -> f32 {
        f32::from_bits((self.to_bits() as u32) << 16)
    }
    #[inline(always)]
    fn narrowed(value: f32) -> bf16 {
        bf16::from_bits((value.to_bits() >> 16) as u16)
    }
}

/// The extremes of the bits of several floats of 16 bits, as numbers with and without a sign: what it takes to know the
/// extremes of the floats, at two or three instructions an item.
struct Halves {
    /// The greatest with a sign: if it has none, the greatest float, or a NaN.
    high: i32,
    /// The least with a sign: of floats below zero, the one nearest to it; else the least.
    low: i32,
    /// The greatest without a sign: of floats below zero, the one farthest from it, or a NaN.
    top: i32,
}

impl Halves {
    #[inline(always)]
    fn of<T: Copy, const N: usize, const U: usize>(vectors: [[T; N]; U], bits: impl Fn(T) -> u16) -> Self {
        let (mut high, mut low, mut top) = (i32::MIN, i32::MAX, 0);
        // In the upper halves of words. What is in the lower half decides nothing but between equals.
        let mut take = |word: u32| {
            high = high.max(word as i32);
            low = low.min(word as i32);
            top = top.max(word);
        };
        let bits = |i: usize| bits(vectors[i / N][i % N]) as u32;
        let mut i = 0;
        while i + 1 < U * N {
            let word = bits(i) | bits(i + 1) << 16;
            take(word << 16);
            take(word);
            i += 2;
        }
        if i < U * N {
            take(bits(i) << 16);
        }
        Halves { high: high >> 16, low: low >> 16, top: (top >> 16) as i32 }
    }

    /// A NaN if there is one, to which `infinity` has the bits next.
    #[inline(always)]
    fn or_nan(&self, infinity: i32, value: i32) -> u16 {
        if self.high > infinity || self.top > infinity + 0x8000 { u16::MAX } else { value as u16 }
    }

    #[inline(always)]
    fn least(&self, infinity: i32) -> u16 {
        self.or_nan(infinity, if self.top >= 0x8000 { self.top } else { self.low })
    }

    #[inline(always)]
    fn greatest(&self, infinity: i32) -> u16 {
        self.or_nan(infinity, if self.high >= 0 { self.high } else { self.low })
    }
}

/// A number that is greater for greater floats of 16 bits; beyond those of the infinities, of NaNs. Its own inverse.
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
fn half_key(bits: u16) -> i32 {
    let bits = bits as i16 as i32;
    bits ^ (bits >> 31 & 0x7fff)
}

/// The bits of such a number.
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
fn half_of_key(key: i32) -> u16 {
    half_key(key as u16) as u16
}

/// The value of a float of 16 bits with `M` bits of mantissa, as an `f64`: exact, by shifting the bits into place and
/// scaling by a power of two, which takes a few instructions and vectorises.
#[inline(always)]
fn half_to_f64<const M: u32>(bits: u16) -> f64 {
    // One instruction on a GPU.
    #[cfg(target_arch = "nvptx64")]
    if M == 10 {
        return math::f16_to_f64(bits);
    }
    let exponent_bits = 15 - M;
    let (bias, top) = ((1_u32 << (exponent_bits - 1)) - 1, (1_u32 << exponent_bits) - 1);
    let magnitude = bits as u32 & 0x7fff;
    let mut high = magnitude << (20 - M);
    // Infinities and NaNs: the largest exponent, which the scaling leaves alone.
    if magnitude >= top << M {
        high |= 0x7ff0_0000;
    }
    let high = high | (bits as u32 & 0x8000) << 16;
    f64::from_bits((high as u64) << 32) * f64::from_bits(((2046 - bias) as u64) << 52)
}

/// The same as an `f32`.
#[inline(always)]
fn half_to_f32<const M: u32>(bits: u16) -> f32 {
    if M == 7 {
        return f32::from_bits((bits as u32) << 16);
    }
    #[cfg(target_arch = "nvptx64")]
    if M == 10 {
        return math::f16_to_f32(bits);
    }
    let exponent_bits = 15 - M;
    let (bias, top) = ((1_u32 << (exponent_bits - 1)) - 1, (1_u32 << exponent_bits) - 1);
    let magnitude = bits as u32 & 0x7fff;
    let mut shifted = magnitude << (23 - M);
    if magnitude >= top << M {
        shifted |= 0x7f80_0000;
    }
    f32::from_bits(shifted | (bits as u32 & 0x8000) << 16) * f32::from_bits((254 - bias) << 23)
}

/// The nearest float of 16 bits with `M` bits of mantissa, ties to even, rounded once. (`half`'s own conversion looks at
/// the upper half of the bits only.)
#[inline(always)]
fn half_of_f64<const M: u32>(value: f64) -> u16 {
    let exponent_bits = 15 - M;
    let (bias, top) = ((1_u64 << (exponent_bits - 1)) - 1, (1_u64 << exponent_bits) - 1);
    let sign = (value.to_bits() >> 48) as u16 & 0x8000;
    let magnitude = value.to_bits() & (u64::MAX >> 1);
    if magnitude > 0x7ff0 << 48 {
        return (top << M | 1 << (M - 1)) as u16;
    }
    let least_normal = (1023 + 1 - bias) << 52;
    let bits = if magnitude < least_normal {
        // A multiple of the least subnormal number: 2^52 and such a multiple round to an integer, whose bits it is.
        let scaled = f64::from_bits(magnitude) * f64::from_bits((1023 + bias - 1 + M as u64) << 52);
        (scaled + 4_503_599_627_370_496.0).to_bits() & 0xffff
    } else {
        let odd = magnitude >> (52 - M) & 1;
        let rounded = (magnitude + (1 << (51 - M)) - 1 + odd) >> (52 - M);
        (rounded - ((1023 - bias) << M)).min(top << M)
    };
    bits as u16 | sign
}

/// Whether a value counts as true: everything but zero does, a NaN too.
pub trait Truth: Plain {
    /// Is it true?
    fn is_true(self) -> bool;
    /// How many of some are.
    #[inline(always)]
    fn count_true<const N: usize>(items: [Self; N]) -> u32 {
        let (mut count, mut i) = (0, 0);
        while i < N {
            count += items[i].is_true() as u32;
            i += 1;
        }
        count
    }
}

/// A word with the uppermost bit of each byte that is not zero.
#[inline(always)]
fn tops_of_true_bytes(word: u32) -> u32 {
    (((word & 0x7f7f_7f7f) + 0x7f7f_7f7f) | word) & 0x8080_8080
}

/// Items of a byte each, as words of four: for no other items, nor any number of them that is not a multiple of four up to 256.
#[inline(always)]
pub(crate) fn words_of_bytes<T: Plain, const N: usize>(items: [T; N]) -> Option<impl Iterator<Item = u32>> {
    if size_of::<T>() != 1 || !N.is_multiple_of(4) || N > 256 {
        return None;
    }
    // As numbers: a type with less values would have the compiler ask for one that is none.
    // SAFETY: plain data of a byte.
    let bytes = items.map(|item| unsafe { core::mem::transmute_copy::<T, u8>(&item) });
    let word = move |i: usize| u32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
    Some((0..N).step_by(4).map(word))
}

/// A type whose values can be NaNs, for operators that ignore those: see [`IgnoreNan`](crate::IgnoreNan).
pub trait MaybeNan: Plain {
    /// Is this a NaN (a complex number, a pair: is one of its parts)?
    fn is_nan_value(self) -> bool;
}

macro_rules! truth {
    ($($type:ty),*; $($float:ty),*) => {
        $(impl Truth for $type {
            #[inline(always)]
            fn is_true(self) -> bool { self != 0 }
            #[inline(always)]
            fn count_true<const N: usize>(items: [Self; N]) -> u32 {
                match words_of_bytes(items) {
                    Some(words) => words.map(tops_of_true_bytes).fold(0, math::plus_bytes) / 0x80,
                    None => items.into_iter().fold(0, |count, item| count + item.is_true() as u32),
                }
            }
        })*
        $(impl Truth for $float {
            #[inline(always)]
            fn is_true(self) -> bool { self.to_bits() << 1 != 0 }
        }
        impl MaybeNan for $float {
            #[inline(always)]
            fn is_nan_value(self) -> bool { self.is_nan() }
        })*
    };
}
truth!(i8, u8, i16, u16, i32, u32, i64, u64; f16, bf16, f32, f64);

impl Truth for bool {
    #[inline(always)]
    fn is_true(self) -> bool {
        self
    }
}

impl<T: Truth> Truth for Complex<T> {
    #[inline(always)]
    fn is_true(self) -> bool {
        self.re.is_true() | self.im.is_true()
    }
}

impl<A: MaybeNan, B: MaybeNan> MaybeNan for Parts2<A, B> {
    #[inline(always)]
    fn is_nan_value(self) -> bool {
        let (a, b) = self.get();
        a.is_nan_value() | b.is_nan_value()
    }
}

impl<T: MaybeNan> MaybeNan for Complex<T> {
    #[inline(always)]
    fn is_nan_value(self) -> bool {
        self.re.is_nan_value() | self.im.is_nan_value()
    }
}
