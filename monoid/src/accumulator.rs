//! Accumulators for sums and products.

use half::{bf16, f16};
use num_complex::Complex;

use crate::{Atomic, Element, Float, Plain};

/// An accumulator for sums of `T`.
pub trait SumAccumulator<T>: Plain {
    /// What the sum comes out as.
    type Output: Plain;
    /// The sum of nothing.
    const ZERO: Self;
    /// Has the sum the same bits in any order and grouping? See [`Monoid::ANY_ORDER`](crate::Monoid::ANY_ORDER).
    const ANY_ORDER: bool = false;
    /// How sums are gathered by atomic updates: see [`Monoid::ATOMIC`](crate::Monoid::ATOMIC).
    const ATOMIC: Atomic = Atomic::No;
    /// One item.
    fn lift(item: T) -> Self;
    /// Adds one item.
    fn push(self, item: T) -> Self;
    /// Adds another sum, which stood to the right.
    fn merge(self, right: Self) -> Self;
    /// Several items, at least one.
    #[inline(always)]
    fn lift_many<const N: usize>(items: [T; N]) -> Self
    where
        T: Copy,
    {
        let mut acc = Self::lift(items[0]);
        let mut i = 1;
        while i < N {
            acc = acc.push(items[i]);
            i += 1;
        }
        acc
    }
    /// Rounds to the output type.
    fn finish(self) -> Self::Output;
}

/// An accumulator for products of `T`.
pub trait ProductAccumulator<T>: Plain {
    /// What the product comes out as.
    type Output: Plain;
    /// The product of nothing.
    const ONE: Self;
    /// Has the product the same bits in any order and grouping? See [`Monoid::ANY_ORDER`](crate::Monoid::ANY_ORDER).
    const ANY_ORDER: bool = false;
    /// One item.
    fn lift(item: T) -> Self;
    /// Multiplies by another product, which stood to the right.
    fn merge(self, right: Self) -> Self;
    /// Several items, at least one.
    #[inline(always)]
    fn lift_many<const N: usize>(items: [T; N]) -> Self
    where
        T: Copy,
    {
        let mut acc = Self::lift(items[0]);
        let mut i = 1;
        while i < N {
            acc = acc.merge(Self::lift(items[i]));
            i += 1;
        }
        acc
    }
    /// Rounds to the output type.
    fn finish(self) -> Self::Output;
}

/// An unevaluated sum of two `f64`: about 106 significant bits.
///
/// `hi` is the ordinary running sum and `lo` gathers its rounding errors, each computed exactly (Knuth's two-sum).
/// Where `hi` is not finite the value *is* `hi`, whatever `lo` holds.
///
/// ```
/// use warpfold_monoid::{DoubleDouble, SumAccumulator};
///
/// let sum = DoubleDouble::lift(1e16f64).push(1.0f64).push(-1e16f64);
/// assert_eq!(SumAccumulator::<f64>::finish(sum), 1.0);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DoubleDouble {
    /// The rounded sum.
    pub hi: f64,
    /// The sum of what rounding took away.
    pub lo: f64,
}

// SAFETY: repr(C), two f64, no padding.
unsafe impl Plain for DoubleDouble {
    const LAYOUT: u64 = crate::fingerprint(&[f64::LAYOUT, f64::LAYOUT, 0, 8]);
}

impl DoubleDouble {
    /// A number.
    #[inline(always)]
    pub const fn new(value: f64) -> DoubleDouble {
        // Minus zero as the error of nothing: it leaves the sign of a zero sum alone.
        DoubleDouble { hi: value, lo: -0.0 }
    }

    /// Adds a number.
    #[inline(always)]
    pub fn plus(self, value: f64) -> DoubleDouble {
        let (hi, error) = two_sum(self.hi, value);
        DoubleDouble { hi, lo: self.lo + error }
    }

    /// Adds the exact product of two numbers; of one under 2^-969 to the nearest multiples of 2^-1074, the least `f64`.
    #[inline(always)]
    pub fn plus_product(self, a: f64, b: f64) -> DoubleDouble {
        self.plus_rounded(two_product(a, b))
    }

    /// Adds the exact square of a number: as [`plus_product`](DoubleDouble::plus_product) does, and faster.
    #[inline(always)]
    pub fn plus_square(self, value: f64) -> DoubleDouble {
        self.plus_rounded(two_square(value))
    }

    /// The same of zero, a NaN, or a number from 2^-450 to 2^480: without a question on GPUs.
    #[inline(always)]
    pub(crate) fn plus_middling_square(self, value: f64) -> DoubleDouble {
        #[cfg(target_arch = "nvptx64")]
        {
            let square = value * value;
            self.plus_rounded((square, crate::math::fused_multiply_add(value, value, -square)))
        }
        #[cfg(not(target_arch = "nvptx64"))]
        self.plus_square(value)
    }

    /// Adds a rounded number and the error of its rounding.
    #[inline(always)]
    pub(crate) fn plus_rounded(self, (product, error): (f64, f64)) -> DoubleDouble {
        let (hi, sum_error) = two_sum(self.hi, product);
        DoubleDouble { hi, lo: self.lo + (sum_error + error) }
    }

    /// Adds another.
    #[inline(always)]
    pub fn plus_sum(self, right: DoubleDouble) -> DoubleDouble {
        let (hi, error) = two_sum(self.hi, right.hi);
        DoubleDouble { hi, lo: (self.lo + right.lo) + error }
    }

    /// The nearest `f64`; the canonical quiet NaN for a NaN.
    #[inline(always)]
    pub fn rounded(self) -> f64 {
        if !self.hi.is_finite() {
            return self.hi.canonical();
        }
        if self.hi == 0.0 && self.lo == 0.0 {
            return self.hi;
        }
        self.hi + self.lo
    }

    /// Rounded to odd, so that rounding it again to a narrower type rounds as if at once: S. Boldo and G. Melquiond,
    /// Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd, IEEE Trans. Computers
    /// 57(4), 2008.
    #[inline(always)]
    fn rounded_to_odd(self) -> f64 {
        if !self.hi.is_finite() || (self.hi == 0.0 && self.lo == 0.0) {
            return self.hi;
        }
        let (sum, error) = two_sum(self.hi, self.lo);
        let bits = sum.to_bits();
        f64::from_bits(match (error == 0.0 || bits & 1 == 1, (error > 0.0) == (sum > 0.0)) {
            (true, _) => bits,
            (false, true) => bits + 1,
            (false, false) => bits - 1,
        })
    }
}

/// `a + b` rounded, and the error of that rounding, exactly (D. E. Knuth, The Art of Computer Programming, vol. 2,
/// 4.2.2, theorem B). Holds for any two finite numbers whose sum does not overflow.
#[inline(always)]
pub(crate) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    let a_part = sum - b_part;
    (sum, (a - a_part) + (b - b_part))
}

/// `a * b` rounded, and the error of that rounding, exactly, without a fused multiply-add (T. J. Dekker, A
/// floating-point technique for extending the available precision, Numer. Math. 18, 1971). The error of a product under
/// 2^-969 may be off by two units of 2^-1074; that of one within 2^-25 of overflow may be lost.
#[inline(always)]
pub(crate) fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    #[cfg(target_arch = "nvptx64")]
    if let Some(error) = error_by_fma(a, b, product) {
        return (product, error);
    }
    (product, error_of_product(a, b, product))
}

/// The same of several products.
#[inline(always)]
pub(crate) fn two_products<const K: usize>(a: [f64; K], b: [f64; K]) -> [(f64, f64); K] {
    // A GPU asks once about all.
    #[cfg(target_arch = "nvptx64")]
    {
        let products: [f64; K] = core::array::from_fn(|k| a[k] * b[k]);
        if products.iter().fold(true, |all, &product| all & has_error_by_fma(product)) {
            let error = |k: usize| crate::math::fused_multiply_add(a[k], b[k], -products[k]);
            return core::array::from_fn(|k| (products[k], error(k)));
        }
    }
    core::array::from_fn(|k| two_product(a[k], b[k]))
}

/// The error of a product, by splitting its factors. A function of its own on a GPU, which seldom comes here.
#[cfg_attr(target_arch = "nvptx64", cold, inline(never))]
#[cfg_attr(not(target_arch = "nvptx64"), inline(always))]
fn error_of_product(a: f64, b: f64, product: f64) -> f64 {
    // Splitting a factor of 2^996 would overflow, so it hands some of its scale to the other one, which is exact unless
    // the product overflows.
    let (a, b) = if a.abs() >= UNSPLITTABLE {
        (a * DOWN, b * UP)
    } else if b.abs() >= UNSPLITTABLE {
        (a * UP, b * DOWN)
    } else {
        (a, b)
    };
    let ((a_high, a_low), (b_high, b_low)) = (split(a), split(b));
    known(product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low))
}

/// The same of a square, which overflows long before its root cannot be split.
#[inline(always)]
pub(crate) fn two_square(x: f64) -> (f64, f64) {
    let product = x * x;
    #[cfg(target_arch = "nvptx64")]
    if let Some(error) = error_by_fma(x, x, product) {
        return (product, error);
    }
    (product, error_of_square(x, product))
}

/// The same of a square.
#[cfg_attr(target_arch = "nvptx64", cold, inline(never))]
#[cfg_attr(not(target_arch = "nvptx64"), inline(always))]
fn error_of_square(x: f64, product: f64) -> f64 {
    let (high, low) = split(x);
    known(product, low * low - ((product - high * high) - 2.0 * low * high))
}

/// The error of a product by one fused multiply-add, where both ways have the same bits, so that those of a GPU are those
/// of a CPU without the instruction: from 2^-960 to 2^1000, where nothing overflows on the way and the error is no less than the
/// least `f64`, and under 2^-1020, where it counts as [unknown](known). The zero of an exact product may have another sign,
/// which no sum that began as +0.0 shows.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn error_by_fma(a: f64, b: f64, product: f64) -> Option<f64> {
    const NONE: u32 = (1023 - 1020) << 20;
    let magnitude = (product.to_bits() >> 32) as u32 & 0x7fff_ffff;
    if magnitude < NONE {
        return Some(0.0);
    }
    has_error_by_fma(product).then(|| crate::math::fused_multiply_add(a, b, -product))
}

/// Is it from 2^-960 to 2^1000?
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn has_error_by_fma(product: f64) -> bool {
    const LEAST: u32 = (1023 - 960) << 20;
    const MOST: u32 = (1023 + 1000) << 20;
    let magnitude = (product.to_bits() >> 32) as u32 & 0x7fff_ffff;
    magnitude.wrapping_sub(LEAST) < MOST - LEAST
}

/// Two halves of a number, of 26 bits each.
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    let scaled = 134_217_729.0 * x;
    let high = scaled - (scaled - x);
    (high, x - high)
}

/// The error of a product, if it is known. That of a subnormal product is less than the least `f64`, and what was computed for
/// it is itself rounding. It is not finite if the product of the rounded-up halves overflows; of such products two overflow
/// together, so that one half of a last place is all that a sum loses.
#[inline(always)]
fn known(product: f64, error: f64) -> f64 {
    if product.abs() < LEAST_WITH_ERROR || !error.is_finite() { 0.0 } else { error }
}

/// 2^996.
const UNSPLITTABLE: f64 = f64::from_bits((1023 + 996) << 52);

/// 2^-64 and 2^64.
const DOWN: f64 = f64::from_bits((1023 - 64) << 52);
const UP: f64 = f64::from_bits((1023 + 64) << 52);

/// 2^-1020.
const LEAST_WITH_ERROR: f64 = f64::from_bits((1023 - 1020) << 52);

/// Sums of floats of up to 32 bits: in `f64`, or in double-double, which rounds the exact sum correctly (see
/// [`Sum`](crate::Sum)).
macro_rules! narrow {
    ($($type:ty),*) => {$(
        impl SumAccumulator<$type> for f64 {
            type Output = $type;
            const ZERO: f64 = 0.0;
            const ATOMIC: Atomic = Atomic::AddFloat;
            #[inline(always)]
            fn lift(item: $type) -> f64 { Float::to_f64(item) }
            #[inline(always)]
            fn push(self, item: $type) -> f64 { self + Float::to_f64(item) }
            #[inline(always)]
            fn merge(self, right: f64) -> f64 { self + right }
            #[inline(always)]
            fn finish(self) -> $type { Float::of_f64(self) }
        }
        impl SumAccumulator<$type> for DoubleDouble {
            type Output = $type;
            const ZERO: DoubleDouble = DoubleDouble { hi: 0.0, lo: 0.0 };
            #[inline(always)]
            fn lift(item: $type) -> DoubleDouble { DoubleDouble::new(Float::to_f64(item)) }
            #[inline(always)]
            fn push(self, item: $type) -> DoubleDouble { self.plus(Float::to_f64(item)) }
            #[inline(always)]
            fn merge(self, right: DoubleDouble) -> DoubleDouble { self.plus_sum(right) }
            #[inline(always)]
            fn finish(self) -> $type { Float::of_f64(self.rounded_to_odd()) }
        }
    )*};
}
narrow!(f16, bf16, f32);

impl SumAccumulator<f64> for DoubleDouble {
    type Output = f64;
    const ZERO: DoubleDouble = DoubleDouble { hi: 0.0, lo: 0.0 };
    #[inline(always)]
    fn lift(item: f64) -> DoubleDouble {
        DoubleDouble::new(item)
    }
    #[inline(always)]
    fn push(self, item: f64) -> DoubleDouble {
        self.plus(item)
    }
    #[inline(always)]
    fn merge(self, right: DoubleDouble) -> DoubleDouble {
        self.plus_sum(right)
    }
    #[inline(always)]
    fn finish(self) -> f64 {
        self.rounded()
    }
}

/// Sums of complex numbers: of the two parts.
macro_rules! complex {
    ($($part:ty, $acc:ty;)*) => {$(
        impl crate::Number for Complex<$part> {
            type SumAcc = Complex<$acc>;
            type ProductAcc = Complex<f64>;
        }
        impl SumAccumulator<Complex<$part>> for Complex<$acc> {
            type Output = Complex<$part>;
            const ZERO: Self = Complex {
                re: <$acc as SumAccumulator<$part>>::ZERO,
                im: <$acc as SumAccumulator<$part>>::ZERO,
            };
            #[inline(always)]
            fn lift(item: Complex<$part>) -> Self {
                Complex {
                    re: <$acc as SumAccumulator<$part>>::lift(item.re),
                    im: <$acc as SumAccumulator<$part>>::lift(item.im),
                }
            }
            #[inline(always)]
            fn push(self, item: Complex<$part>) -> Self {
                Complex {
                    re: SumAccumulator::<$part>::push(self.re, item.re),
                    im: SumAccumulator::<$part>::push(self.im, item.im),
                }
            }
            #[inline(always)]
            fn merge(self, right: Self) -> Self {
                Complex {
                    re: SumAccumulator::<$part>::merge(self.re, right.re),
                    im: SumAccumulator::<$part>::merge(self.im, right.im),
                }
            }
            #[inline(always)]
            fn finish(self) -> Complex<$part> {
                Complex {
                    re: SumAccumulator::<$part>::finish(self.re),
                    im: SumAccumulator::<$part>::finish(self.im),
                }
            }
        }
        impl ProductAccumulator<Complex<$part>> for Complex<f64> {
            type Output = Complex<$part>;
            const ONE: Self = Complex { re: 1.0, im: 0.0 };
            #[inline(always)]
            fn lift(item: Complex<$part>) -> Self {
                Complex { re: Float::to_f64(item.re), im: Float::to_f64(item.im) }
            }
            #[inline(always)]
            fn merge(self, right: Self) -> Self {
                Complex {
                    re: self.re * right.re - self.im * right.im,
                    im: self.re * right.im + self.im * right.re,
                }
            }
            #[inline(always)]
            fn finish(self) -> Complex<$part> {
                Complex { re: Float::of_f64(self.re), im: Float::of_f64(self.im) }
            }
        }
    )*};
}
complex! {
    f32, f64;
    f64, DoubleDouble;
}
