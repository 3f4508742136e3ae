//! What every operator builds on: half floats convert exactly and round once, ranks keep the order, extremes of special
//! values are those of IEEE 754-2019.

use std::cmp::Ordering;

use crate::data::{Probe, Random};
use crate::exact::{BF16, Exact, F16, F32, Format};
use half::{bf16, f16};
use warpfold_monoid::{Element, Float, Integer, MaybeNan, Rank, Truth, fused::Parts2};

/// Every float of 16 bits.
fn all<T: Probe>() -> impl Iterator<Item = T> {
    (0..=u16::MAX as u64).map(T::of_bits)
}

fn converts_exactly<T: Probe + Float>(value: fn(T) -> f64) {
    for x in all::<T>() {
        let wide = x.to_f64();
        if x.nan() {
            assert!(wide.is_nan() && Element::is_nan(x), "{x:?}");
            assert_eq!(T::of_f64(wide).to_bits(), T::NAN.to_bits(), "{x:?}");
            assert_eq!(x.canonical().to_bits(), T::NAN.to_bits(), "{x:?}");
        } else {
            assert_eq!(wide.to_bits(), value(x).to_bits(), "{x:?}");
            assert_eq!(T::of_f64(wide).to_bits(), Probe::to_bits(x), "{x:?}");
            assert_eq!(x.canonical().to_bits(), Probe::to_bits(x));
            assert!(!Element::is_nan(x));
        }
    }
}

#[test]
fn half_floats_convert_exactly() {
    converts_exactly::<f16>(|x| x.to_f64());
    converts_exactly::<bf16>(|x| x.to_f64());
    // As their definition has it, independent of any conversion.
    for x in all::<f16>().filter(|x| x.is_finite()) {
        let (e, m) = ((x.to_bits() >> 10 & 31) as i32, (x.to_bits() & 0x3ff) as f64);
        let magnitude = if e == 0 { m * 2f64.powi(-24) } else { (m + 1024.0) * 2f64.powi(e - 25) };
        assert_eq!(Float::to_f64(x).abs(), magnitude);
    }
}

fn neighbours(x: f64) -> [f64; 2] {
    // Of positive numbers.
    [f64::from_bits(x.to_bits() - 1), f64::from_bits(x.to_bits() + 1)]
}

/// Between every two neighbours there is a tie, which goes to the even one, and what lies an `f64`'s last bit off does not.
fn rounds_at_every_midpoint<T: Probe + Float>(infinity: u64, after_greatest: f64) {
    let value = |bits: u64| if bits == infinity { after_greatest } else { T::of_bits(bits).to_f64() };
    for below in 0..infinity {
        let middle = (value(below) + value(below + 1)) / 2.0;
        let even = below + (below & 1);
        let [less, more] = neighbours(middle);
        for (x, bits) in [(middle, even), (less, below), (more, below + 1)] {
            assert_eq!(Probe::to_bits(T::of_f64(x)), bits, "{x:e}");
            let negative = Probe::to_bits(T::of_f64(-x));
            assert_eq!(negative, bits | 0x8000, "{:e}", -x);
        }
    }
}

#[test]
fn half_floats_round_once_ties_to_even() {
    rounds_at_every_midpoint::<f16>(0x7c00, 65536.0);
    rounds_at_every_midpoint::<bf16>(0x7f80, 2f64.powi(128));
}

fn rounds_as_the_oracle<T: Probe + Float>(format: Format) {
    let mut random = Random(1);
    let low = (format.least - 4) as i32;
    let check = |x: f64| {
        let expected = Exact::of(x).nearest(format);
        let expected = if expected == 0.0 { expected.copysign(x) } else { expected };
        assert_eq!(T::of_f64(x).to_f64().to_bits(), expected.to_bits(), "{x:e}");
    };
    for _ in 0..20_000 {
        check(random.float(low, format.end as i32 + 1));
        check(random.float(-1022, 1023));
        // The last of the 52 bits beside a tie, and beside a number.
        let x = random.float(low, format.end as i32 - 1);
        let narrow = T::of_f64(x).to_f64();
        if narrow != 0.0 && narrow.is_finite() {
            check(f64::from_bits(narrow.to_bits() + 1));
            check(f64::from_bits(narrow.to_bits() - 1));
        }
    }
    for x in [f64::MIN_POSITIVE, 5e-324, f64::MAX, -5e-324, 0.0, -0.0, f64::MIN_POSITIVE / 2.0] {
        check(x);
    }
    for x in [f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(T::of_f64(x).to_f64(), x);
    }
    for bits in [0x7ff8_0000_0000_0000, 0xfff8_0000_0000_0000, 0x7ff0_0000_0000_0001, 0xffff_ffff_ffff_ffff] {
        assert_eq!(Probe::to_bits(T::of_f64(f64::from_bits(bits))), Probe::to_bits(T::NAN), "{bits:x}");
    }
}

#[test]
fn floats_round_once_from_f64() {
    rounds_as_the_oracle::<f16>(F16);
    rounds_as_the_oracle::<bf16>(BF16);
    rounds_as_the_oracle::<f32>(F32);
    for nan in f64::nans() {
        assert_eq!(f64::of_f64(nan).to_bits(), f64::NAN.to_bits());
    }
    assert_eq!(f64::of_f64(-0.0).to_bits(), (-0.0f64).to_bits());
}

/// Ranks of sorted values rise; they lead back to the value; the greater of two is that of the greater rank.
fn ranks_keep_the_order<T: Probe>(mut values: Vec<T>) {
    values.retain(|x| !x.nan());
    values.sort_by(|a, b| a.order(*b));
    values.dedup_by_key(|x| x.to_bits());
    for pair in values.windows(2) {
        let (a, b) = (pair[0], pair[1]);
        assert!(a.rank() < b.rank(), "{a:?} {b:?}");
        assert_eq!(a.maximum(b).to_bits(), b.to_bits(), "{a:?} {b:?}");
        assert_eq!(b.maximum(a).to_bits(), b.to_bits(), "{a:?} {b:?}");
        assert_eq!(a.minimum(b).to_bits(), a.to_bits(), "{a:?} {b:?}");
        assert_eq!(b.minimum(a).to_bits(), a.to_bits(), "{a:?} {b:?}");
    }
    for &x in &values {
        assert_eq!(T::of_rank(x.rank()).to_bits(), x.to_bits(), "{x:?}");
        assert!(x.rank() <= T::TOP);
        assert!(size_of::<T>() > 2 || x.rank() <= Rank::of_low(0xffff));
    }
    for nan in T::nans() {
        assert!(T::of_rank(nan.rank()).nan());
        assert!(nan.rank() <= T::TOP);
    }
    assert!(T::of_rank(T::TOP).nan() || T::of_rank(T::TOP).to_bits() == T::HIGHEST.to_bits());
    assert!(values.iter().all(|x| x.order(T::HIGHEST) != Ordering::Greater));
    assert!(values.iter().all(|x| x.order(T::LOWEST) != Ordering::Less));
}

fn some<T: Probe>() -> Vec<T> {
    let mut random = Random(2);
    let mut values = T::specials();
    values.extend((0..20_000).map(|_| T::of_bits(random.bits())));
    // Neighbours, and small numbers.
    values.extend((0..2000).map(|i| T::of_bits(i as u64)));
    values
}

#[test]
fn ranks() {
    ranks_keep_the_order::<f16>(all().collect());
    ranks_keep_the_order::<bf16>(all().collect());
    ranks_keep_the_order::<i16>(all().collect());
    ranks_keep_the_order::<u16>(all().collect());
    ranks_keep_the_order::<i8>(all().collect());
    ranks_keep_the_order::<u8>(all().collect());
    ranks_keep_the_order::<bool>(all().collect());
    ranks_keep_the_order::<i32>(some());
    ranks_keep_the_order::<u32>(some());
    ranks_keep_the_order::<i64>(some());
    ranks_keep_the_order::<u64>(some());
    ranks_keep_the_order::<f32>(some());
    ranks_keep_the_order::<f64>(some());
}

/// `minimum`, `maximum`, `minimumNumber` and `maximumNumber` of two values.
fn extremes_of_pair<T: Probe + Float>(a: T, b: T) {
    let same = |result: T, expected: T| {
        assert_eq!(Probe::to_bits(result.canonical()), Probe::to_bits(expected), "{a:?} {b:?}");
        // A number's bits are untouched.
        assert!(expected.nan() || Probe::to_bits(result) == Probe::to_bits(expected));
    };
    let (lesser, greater) = if a.nan() || b.nan() {
        let number = if a.nan() { b } else { a };
        same(a.minimum(b), T::NAN);
        same(a.maximum(b), T::NAN);
        let number = if number.nan() { T::NAN } else { number };
        (number, number)
    } else {
        let (lesser, greater) = if a.order(b) == Ordering::Greater { (b, a) } else { (a, b) };
        same(a.minimum(b), lesser);
        same(a.maximum(b), greater);
        (lesser, greater)
    };
    same(a.minimum_number(b), lesser);
    same(a.maximum_number(b), greater);
}

fn extremes_of_special_pairs<T: Probe + Float>(others: &[T]) {
    let special: Vec<T> = T::specials().into_iter().chain(T::nans()).collect();
    for &a in &special {
        for &b in special.iter().chain(others) {
            extremes_of_pair(a, b);
            extremes_of_pair(b, a);
        }
    }
}

#[test]
fn extremes_of_pairs_follow_ieee_754_2019() {
    extremes_of_special_pairs::<f16>(&all().collect::<Vec<_>>());
    extremes_of_special_pairs::<bf16>(&all().collect::<Vec<_>>());
    extremes_of_special_pairs::<f32>(&some());
    extremes_of_special_pairs::<f64>(&some());
}

#[test]
fn magnitudes_drop_the_sign() {
    for x in all::<f16>() {
        assert_eq!(Float::magnitude(x).to_bits(), x.to_bits() & 0x7fff);
    }
    for x in f64::specials() {
        assert_eq!(Float::magnitude(x).to_bits(), x.abs().to_bits());
    }
    for x in i8::MIN..=i8::MAX {
        assert_eq!((x.magnitude(), x.magnitude_u64()), (x.unsigned_abs(), x.unsigned_abs().into()));
    }
    for x in i64::specials() {
        assert_eq!((x.magnitude(), x.magnitude_u64()), (x.unsigned_abs(), x.unsigned_abs()));
        assert_eq!((x.to_i128(), x.bits(), i64::wrap(x.bits())), (x.into(), x as u64, x));
    }
    for x in u64::specials() {
        assert_eq!((x.magnitude(), x.magnitude_u64(), x.to_i128(), x.bits()), (x, x, x.into(), x));
    }
    for x in i32::specials() {
        assert_eq!(
            (x.magnitude(), x.wide(), x.bits()),
            (x.unsigned_abs(), i64::from(x), i64::from(x) as u64)
        );
    }
    for x in u32::specials() {
        assert_eq!((x.magnitude(), x.wide(), x.bits()), (x, u64::from(x), u64::from(x)));
    }
}

#[test]
fn everything_but_zero_is_true() {
    for x in all::<f16>() {
        assert_eq!(x.is_true(), x.to_f64() != 0.0 || x.is_nan(), "{x:?}");
    }
    for x in f64::specials().into_iter().chain(f64::nans()) {
        assert_eq!(x.is_true(), x != 0.0);
        assert_eq!(x.is_nan_value(), x.nan());
    }
    for x in all::<i16>() {
        assert_eq!(x.is_true(), x != 0);
    }
    assert!((256i32.is_true(), u64::MAX.is_true(), i64::MIN.is_true()) == (true, true, true));
    assert!(num_complex::Complex::new(0.0f32, f32::NAN).is_true());
    assert!(!num_complex::Complex::new(-0.0f32, 0.0).is_true());
    assert!(
        Parts2::new(1.0f32, f32::NAN).is_nan_value() && !num_complex::Complex::new(1.0, 2.0).is_nan_value()
    );
}
