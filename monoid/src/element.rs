//! Number types, and the accumulators that sums and products of them use.

use crate::Plain;

/// An accumulator for sums of `T`.
pub trait SumAccumulator<T>: Plain {
    /// What the sum comes out as.
    type Output: Plain;
    /// The sum of nothing.
    const ZERO: Self;
    /// Has the sum the same bits in any order and grouping? See [`Monoid::ANY_ORDER`](crate::Monoid::ANY_ORDER).
    const ANY_ORDER: bool = false;
    /// One item.
    fn lift(item: T) -> Self;
    /// Adds one item.
    fn push(self, item: T) -> Self;
    /// Adds another sum, which stood to the right.
    fn merge(self, right: Self) -> Self;
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
    /// Rounds to the output type.
    fn finish(self) -> Self::Output;
}

/// A number type that the built-in operators take.
///
/// | type | sum accumulates in | product accumulates in |
/// | --- | --- | --- |
/// | `i32`, `u32`, `i64`, `u64` | the type itself, wrapping | the type itself, wrapping |
/// | `f32` | `f64` | `f64` |
/// | `f64` | [`DoubleDouble`] | `f64` |
pub trait Element: Plain {
    /// The default accumulator of [`Sum`](crate::Sum).
    type SumAcc: SumAccumulator<Self, Output = Self>;
    /// The default accumulator of [`Product`](crate::Product).
    type ProductAcc: ProductAccumulator<Self, Output = Self>;
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
}

/// A floating-point [`Element`].
pub trait Float: Element {
    /// The canonical quiet NaN.
    const NAN: Self;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Is this a NaN?
    fn is_nan(self) -> bool;
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
}

macro_rules! integer {
    ($($type:ty => $($acc:ty),*;)*) => {$(
        impl Element for $type {
            type SumAcc = $type;
            type ProductAcc = $type;
            const HIGHEST: $type = <$type>::MAX;
            const LOWEST: $type = <$type>::MIN;
            #[inline(always)]
            fn minimum(self, other: Self) -> Self { if other < self { other } else { self } }
            #[inline(always)]
            fn maximum(self, other: Self) -> Self { if other > self { other } else { self } }
            #[inline(always)]
            fn canonical(self) -> Self { self }
        }
        $(
            impl SumAccumulator<$type> for $acc {
                type Output = $acc;
                const ZERO: $acc = 0;
                const ANY_ORDER: bool = true;
                #[inline(always)]
                fn lift(item: $type) -> $acc { item as $acc }
                #[inline(always)]
                fn push(self, item: $type) -> $acc { self.wrapping_add(item as $acc) }
                #[inline(always)]
                fn merge(self, right: $acc) -> $acc { self.wrapping_add(right) }
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
                fn finish(self) -> $acc { self }
            }
        )*
    )*};
}

integer! {
    i32 => i32, i64;
    u32 => u32, u64;
    i64 => i64;
    u64 => u64;
}

macro_rules! float {
    ($($type:ident, $sum:ty;)*) => {$(
        impl Element for $type {
            type SumAcc = $sum;
            type ProductAcc = f64;
            const HIGHEST: $type = $type::INFINITY;
            const LOWEST: $type = $type::NEG_INFINITY;
            // Without branches, so that a loop of them vectorises. Equal values differ at most in a zero's sign: `or`
            // of their bits keeps a minus, `and` a plus. A NaN's bits `or` any others are a NaN's.
            #[inline(always)]
            fn minimum(self, other: Self) -> Self {
                let lesser = if self < other { self } else { other };
                let alike = self == other || self.is_nan() || other.is_nan();
                $type::from_bits(lesser.to_bits() | if alike { self.to_bits() } else { 0 })
            }
            #[inline(always)]
            fn maximum(self, other: Self) -> Self {
                let left = if self > other { self } else { other };
                let right = if other > self { other } else { self };
                let nan = if self.is_nan() || other.is_nan() { !0 } else { 0 };
                $type::from_bits((left.to_bits() & right.to_bits()) | nan)
            }
            #[inline(always)]
            fn canonical(self) -> Self { if self.is_nan() { $type::NAN } else { self } }
        }
        impl Float for $type {
            const NAN: $type = $type::NAN;
            const ZERO: $type = 0.0;
            const ONE: $type = 1.0;
            #[inline(always)]
            fn is_nan(self) -> bool { $type::is_nan(self) }
        }
        impl ProductAccumulator<$type> for f64 {
            type Output = $type;
            const ONE: f64 = 1.0;
            #[inline(always)]
            fn lift(item: $type) -> f64 { item as f64 }
            #[inline(always)]
            fn merge(self, right: f64) -> f64 { self * right }
            #[inline(always)]
            fn finish(self) -> $type { (self as $type).canonical() }
        }
    )*};
}

float! {
    f32, f64;
    f64, DoubleDouble;
}

impl SumAccumulator<f32> for f64 {
    type Output = f32;
    const ZERO: f64 = 0.0;
    #[inline(always)]
    fn lift(item: f32) -> f64 {
        item as f64
    }
    #[inline(always)]
    fn push(self, item: f32) -> f64 {
        self + item as f64
    }
    #[inline(always)]
    fn merge(self, right: f64) -> f64 {
        self + right
    }
    #[inline(always)]
    fn finish(self) -> f32 {
        (self as f32).canonical()
    }
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

/// `a + b` rounded, and the error of that rounding, exactly (D. E. Knuth, The Art of Computer Programming, vol. 2,
/// 4.2.2, theorem B). Holds for any two finite numbers whose sum does not overflow.
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    let a_part = sum - b_part;
    (sum, (a - a_part) + (b - b_part))
}

/// Sums of `f32` that come out as the exact sum correctly rounded: see [`Sum`](crate::Sum).
impl SumAccumulator<f32> for DoubleDouble {
    type Output = f32;
    const ZERO: DoubleDouble = DoubleDouble { hi: 0.0, lo: 0.0 };
    #[inline(always)]
    fn lift(item: f32) -> DoubleDouble {
        <DoubleDouble as SumAccumulator<f64>>::lift(item as f64)
    }
    #[inline(always)]
    fn push(self, item: f32) -> DoubleDouble {
        <DoubleDouble as SumAccumulator<f64>>::push(self, item as f64)
    }
    #[inline(always)]
    fn merge(self, right: DoubleDouble) -> DoubleDouble {
        <DoubleDouble as SumAccumulator<f64>>::merge(self, right)
    }
    #[inline(always)]
    fn finish(self) -> f32 {
        if !self.hi.is_finite() {
            return (self.hi as f32).canonical();
        }
        if self.hi == 0.0 && self.lo == 0.0 {
            return self.hi as f32;
        }
        let (sum, error) = two_sum(self.hi, self.lo);
        // Rounded to odd, so that rounding again rounds as if at once: S. Boldo and G. Melquiond, Emulation of a FMA
        // and correctly rounded sums: proved algorithms using rounding to odd, IEEE Trans. Computers 57(4), 2008.
        let bits = sum.to_bits();
        let odd = match (error == 0.0 || bits & 1 == 1, (error > 0.0) == (sum > 0.0)) {
            (true, _) => bits,
            (false, true) => bits + 1,
            (false, false) => bits - 1,
        };
        (f64::from_bits(odd) as f32).canonical()
    }
}

impl SumAccumulator<f64> for DoubleDouble {
    type Output = f64;
    const ZERO: DoubleDouble = DoubleDouble { hi: 0.0, lo: 0.0 };
    #[inline(always)]
    fn lift(item: f64) -> DoubleDouble {
        // Minus zero as the error of nothing: it leaves the sign of a zero sum alone.
        DoubleDouble { hi: item, lo: -0.0 }
    }
    #[inline(always)]
    fn push(self, item: f64) -> DoubleDouble {
        let (hi, error) = two_sum(self.hi, item);
        DoubleDouble { hi, lo: self.lo + error }
    }
    #[inline(always)]
    fn merge(self, right: DoubleDouble) -> DoubleDouble {
        let (hi, error) = two_sum(self.hi, right.hi);
        DoubleDouble { hi, lo: (self.lo + right.lo) + error }
    }
    #[inline(always)]
    fn finish(self) -> f64 {
        if !self.hi.is_finite() {
            return self.hi.canonical();
        }
        if self.hi == 0.0 && self.lo == 0.0 {
            return self.hi;
        }
        self.hi + self.lo
    }
}
