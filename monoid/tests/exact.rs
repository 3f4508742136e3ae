//! Exact arithmetic on floats, the oracle of most tests here: fractions of big integers, and how far off a float is.

use num_bigint::{BigInt, BigUint};

/// `num / den * 2^exp`, with `den` positive.
#[derive(Clone, Debug)]
pub struct Exact {
    pub num: BigInt,
    pub den: BigUint,
    pub exp: i64,
}

/// A binary format: significant bits, and the exponent of its least subnormal number.
#[derive(Clone, Copy)]
pub struct Format {
    pub precision: i64,
    pub least: i64,
    /// From this power of two on, numbers overflow.
    pub end: i64,
}

pub const F16: Format = Format { precision: 11, least: -24, end: 16 };
pub const BF16: Format = Format { precision: 8, least: -133, end: 128 };
pub const F32: Format = Format { precision: 24, least: -149, end: 128 };
pub const F64: Format = Format { precision: 53, least: -1074, end: 1024 };

/// Mantissa and exponent of a finite number.
pub fn parts(x: f64) -> (i64, i64) {
    assert!(x.is_finite(), "{x}");
    let bits = x.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i64, (bits & ((1 << 52) - 1)) as i64);
    let (mantissa, exp) =
        if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    (if x.is_sign_negative() { -mantissa } else { mantissa }, exp)
}

/// `x * 2^exp`; exact where the result is a normal number.
pub fn scale(mut x: f64, mut exp: i64) -> f64 {
    while exp != 0 {
        let step = exp.clamp(-1000, 1000);
        x *= 2f64.powi(step as i32);
        exp -= step;
    }
    x
}

/// `num / den * 2^exp` to about 60 bits.
fn approximate(num: &BigUint, den: &BigUint, exp: i64) -> f64 {
    if *num == BigUint::ZERO {
        return 0.0;
    }
    let shift = 64 - (num.bits() as i64 - den.bits() as i64);
    let quotient = if shift >= 0 { (num << shift as u64) / den } else { num / (den << (-shift) as u64) };
    scale(u128::try_from(&quotient).expect("65 bits") as f64, exp - shift)
}

impl Exact {
    pub fn of(x: f64) -> Exact {
        let (mantissa, exp) = parts(x);
        Exact { num: mantissa.into(), den: 1u32.into(), exp }
    }

    pub fn integer(value: impl Into<BigInt>) -> Exact {
        Exact { num: value.into(), den: 1u32.into(), exp: 0 }
    }

    /// The sum of products of two numbers (each with its mantissa and exponent).
    pub fn sum_of_products(pairs: impl IntoIterator<Item = (f64, f64)>) -> Exact {
        let terms: Vec<(i128, i64)> = pairs
            .into_iter()
            .map(|(a, b)| (parts(a), parts(b)))
            .map(|((a, i), (b, j))| (a as i128 * b as i128, i + j))
            .collect();
        let exp = terms.iter().filter(|term| term.0 != 0).map(|term| term.1).min().unwrap_or(0);
        // A wide counter for each exponent, so that big integers are few.
        let mut bins = std::collections::BTreeMap::<i64, BigInt>::new();
        for (mantissa, e) in terms {
            *bins.entry(e).or_default() += mantissa;
        }
        let num = bins
            .into_iter()
            .filter(|bin| bin.1 != BigInt::ZERO)
            .fold(BigInt::ZERO, |sum, (e, count)| sum + (count << (e - exp) as u64));
        Exact { num, den: 1u32.into(), exp }
    }

    pub fn sum(values: impl IntoIterator<Item = f64>) -> Exact {
        Exact::sum_of_products(values.into_iter().map(|x| (x, 1.0)))
    }

    pub fn is_zero(&self) -> bool {
        self.num == BigInt::ZERO
    }

    pub fn over(self, divisor: impl Into<BigUint>) -> Exact {
        Exact { den: self.den * divisor.into(), ..self }
    }

    /// The square root, to 200 bits.
    pub fn root(&self) -> Exact {
        if self.is_zero() {
            return self.clone();
        }
        let mut shift = 400 - (self.num.bits() as i64 - self.den.bits() as i64);
        if (self.exp - shift) % 2 != 0 {
            shift += 1;
        }
        let magnitude = self.num.magnitude();
        let square = if shift >= 0 {
            (magnitude << shift as u64) / &self.den
        } else {
            magnitude / (&self.den << (-shift) as u64)
        };
        Exact { num: square.sqrt().into(), den: 1u32.into(), exp: (self.exp - shift) / 2 }
    }

    /// The exponent of the power of two that is no more than the magnitude; the number is not 0.
    fn exponent(&self) -> i64 {
        let mut e = self.num.bits() as i64 - self.den.bits() as i64;
        let (mut num, mut den) = (self.num.magnitude().clone(), self.den.clone());
        if e >= 0 {
            den <<= e as u64;
        } else {
            num <<= (-e) as u64;
        }
        if num < den {
            e -= 1;
        }
        e + self.exp
    }

    /// How far `value` is off, in units in the last place of the exact number in that format.
    pub fn ulps(&self, value: f64, format: Format) -> f64 {
        let place = if self.is_zero() {
            format.least
        } else {
            (self.exponent() - format.precision + 1).max(format.least)
        };
        let (difference, exp) = self.difference(value);
        approximate(&difference, &self.den, exp - place)
    }

    /// How far `value` is off, relative to the exact number.
    pub fn relative_error(&self, value: f64) -> f64 {
        let (difference, exp) = self.difference(value);
        if difference == BigUint::ZERO {
            return 0.0;
        }
        approximate(&difference, self.num.magnitude(), exp - self.exp)
    }

    /// The distance of `value`, over `den`.
    fn difference(&self, value: f64) -> (BigUint, i64) {
        let (mantissa, e) = parts(value);
        let exp = e.min(self.exp);
        let value = (BigInt::from(mantissa) << (e - exp) as u64) * BigInt::from(self.den.clone());
        ((value - (&self.num << (self.exp - exp) as u64)).magnitude().clone(), exp)
    }

    /// The nearest number of a format, ties to even, as an `f64`, which holds it.
    pub fn nearest(&self, format: Format) -> f64 {
        if self.is_zero() {
            return 0.0;
        }
        let place = (self.exponent() - format.precision + 1).max(format.least);
        let (mut num, mut den) = (self.num.magnitude().clone(), self.den.clone());
        if self.exp >= place {
            num <<= (self.exp - place) as u64;
        } else {
            den <<= (place - self.exp) as u64;
        }
        let mut mantissa = &num / &den;
        let twice = (num - &mantissa * &den) * 2u32;
        if twice > den || (twice == den && mantissa.bit(0)) {
            mantissa += 1u32;
        }
        let mantissa = u64::try_from(mantissa).expect("54 bits");
        let value = if mantissa as f64 >= scale(1.0, (format.end - place).min(1000)) {
            f64::INFINITY
        } else {
            scale(mantissa as f64, place)
        };
        if self.num < BigInt::ZERO { -value } else { value }
    }
}

#[test]
fn the_oracle_itself() {
    let third = Exact::integer(1).over(3u32);
    assert_eq!(third.nearest(F64), 1.0 / 3.0);
    assert_eq!(third.nearest(F32), f64::from(1.0f32 / 3.0));
    assert!((third.ulps(1.0 / 3.0, F64) - 1.0 / 3.0).abs() < 1e-12);
    assert!((Exact::integer(2).root().ulps(2f64.sqrt(), F64)) < 0.5);
    assert_eq!(Exact::of(65519.999).nearest(F16), 65504.0);
    assert_eq!(Exact::of(65520.0).nearest(F16), f64::INFINITY);
    assert_eq!(Exact::sum([1e308, 5e-324, -1e308]).nearest(F64), 5e-324);
    assert_eq!(Exact::sum_of_products([(1e200, 1e-200), (-1.0, 1.0)]).relative_error(0.0), 1.0);
    assert!((Exact::integer(1000).relative_error(1001.0) - 1e-3).abs() < 1e-12);
}
