//! Exact sums of floats, as whole multiples of the smallest subnormal, and how they round.

use num_bigint::{BigInt, BigUint, Sign};

/// The exponent of the unit: the smallest positive f64 is 2^-1074.
const UNIT: i64 = -1074;

/// An exact sum of f64 (and so of f32): one wide counter an exponent.
pub struct Exact {
    bins: Vec<i128>,
}

impl Exact {
    pub fn new() -> Self {
        Exact { bins: vec![0; 2048] }
    }

    pub fn of(values: impl IntoIterator<Item = f64>) -> BigInt {
        let mut sum = Exact::new();
        values.into_iter().for_each(|value| sum.add(value));
        sum.total()
    }

    pub fn add(&mut self, value: f64) {
        assert!(value.is_finite());
        let bits = value.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as usize;
        let fraction = bits & ((1 << 52) - 1);
        // Subnormals have the exponent of the smallest normal numbers and no hidden bit.
        let (mantissa, bin) = if exponent == 0 { (fraction, 0) } else { (fraction | 1 << 52, exponent - 1) };
        let mantissa = mantissa as i128;
        self.bins[bin] += if bits >> 63 == 1 { -mantissa } else { mantissa };
    }

    /// The sum in units of 2^-1074.
    pub fn total(&self) -> BigInt {
        self.bins
            .iter()
            .enumerate()
            .fold(BigInt::ZERO, |sum, (bin, &count)| sum + (BigInt::from(count) << bin))
    }
}

/// The float nearest to a number of units, ties to even, with that many significant bits and no bit below
/// 2^`least`. The result is an f64 that the narrower type holds exactly, unless it overflows.
fn nearest(units: &BigInt, precision: u64, least: i64) -> f64 {
    let magnitude: &BigUint = units.magnitude();
    let dropped = (magnitude.bits() as i64 - precision as i64).max(least - UNIT).max(0) as u64;
    let mut kept = magnitude >> dropped;
    let rest = magnitude - (&kept << dropped);
    if dropped > 0 {
        let half = BigUint::from(1u32) << (dropped - 1);
        if rest > half || (rest == half && kept.bit(0)) {
            kept += 1u32;
        }
    }
    let mantissa = u64::try_from(kept).expect("at most 54 bits") as f64;
    let exponent = dropped as i64 + UNIT;
    // In two steps, each exact: the first stays normal.
    let half = exponent / 2;
    let value = mantissa * 2f64.powi(half as i32) * 2f64.powi((exponent - half) as i32);
    if units.sign() == Sign::Minus { -value } else { value }
}

pub fn nearest_f32(units: &BigInt) -> f32 {
    nearest(units, 24, -149) as f32
}

pub fn nearest_f64(units: &BigInt) -> f64 {
    nearest(units, 53, UNIT)
}

/// How far `value` is from an exact sum, in units in the last place of the nearest f64.
pub fn error_in_ulps(value: f64, units: &BigInt) -> f64 {
    let difference = Exact::of([value]) - units;
    let place = (units.magnitude().bits() as i64 - 53).max(0) as u64;
    let ulp = BigInt::from(1) << place;
    // Two decimal places are plenty.
    let hundredths: BigInt = difference * 100 / ulp;
    let hundredths = hundredths.magnitude().iter_u64_digits().fold(0.0, |sum, digit| sum + digit as f64);
    hundredths / 100.0
}

#[test]
fn sums_round_as_the_standard_says() {
    let tiny = 2f64.powi(-149);
    let ulp = 2f64.powi(-23);
    let cases: [(&[f64], f32); 7] = [
        (&[1.0, ulp / 2.0], 1.0),
        (&[1.0, ulp / 2.0, 1e-30], 1.0 + f32::EPSILON),
        (&[1.0, ulp, ulp / 2.0], 1.0 + 2.0 * f32::EPSILON),
        (&[1e300, 1.0, -1e300], 1.0),
        (&[-tiny, -tiny / 2.0], -2.0 * tiny as f32),
        (&[tiny / 2.0], 0.0),
        (&[f32::MAX as f64, -1.0], f32::MAX),
    ];
    for (values, expected) in cases {
        assert_eq!(
            nearest_f32(&Exact::of(values.iter().copied())).to_bits(),
            expected.to_bits(),
            "{values:?}"
        );
    }
    let mut random = crate::support::Random::new(1);
    for _ in 0..10_000 {
        let value = f64::from_bits(random.bits());
        if value.is_finite() {
            let exact = Exact::of([value]);
            assert_eq!(nearest_f64(&exact), value);
            assert_eq!(nearest_f32(&exact), value as f32, "{value:e}");
            // One addition of the hardware is correctly rounded.
            let other = value * (random.unit() - 0.5);
            if (value + other).is_finite() {
                assert_eq!(nearest_f64(&Exact::of([value, other])), value + other, "{value:e} + {other:e}");
            }
        }
    }
    let third = Exact::of([1.0, 2f64.powi(-53)]);
    assert_eq!((error_in_ulps(1.0, &third), error_in_ulps(1.0 + 2f64.powi(-52), &third)), (0.5, 0.5));
}
