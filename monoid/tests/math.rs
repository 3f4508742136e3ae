//! The functions that every device shares, against the host's and against exact roots.

use crate::data::{Probe, Random};
use crate::exact::{Exact, F32, F64};
use warpfold_monoid::math;

/// How far apart, in units in the last place of the second.
fn ulps(value: f64, right: f64) -> f64 {
    if value.to_bits() == right.to_bits() || (value.is_nan() && right.is_nan()) {
        return 0.0;
    }
    if value.is_finite() && right.is_finite() { Exact::of(right).ulps(value, F64) } else { f64::INFINITY }
}

#[test]
fn exponentials_of_f64() {
    let mut random = Random(1);
    let check = |x: f64| {
        let error = ulps(math::exp(x), x.exp());
        assert!(error <= 2.0, "exp({x:e}) is off by {error} units");
    };
    for _ in 0..100_000 {
        check(random.float(-60, 11));
        check(1500.0 * (random.unit() - 0.5));
        // Where the result is subnormal, or next to overflow.
        check(-708.0 - 40.0 * random.unit());
        check(709.0 + random.unit());
    }
    f64::specials().into_iter().chain(f64::nans()).for_each(check);
    for k in -1080..1030 {
        let x = f64::from(k) * std::f64::consts::LN_2;
        [x, f64::from_bits(x.to_bits() + 1), f64::from_bits(x.to_bits().max(1) - 1)]
            .into_iter()
            .for_each(check);
        check(x + 0.5 * std::f64::consts::LN_2);
    }
    let ends = [
        709.782712893384,
        709.7827128933841,
        710.0,
        1e308,
        -745.1332191019411,
        -745.1332191019412,
        -746.0,
        -1e308,
    ];
    ends.into_iter().for_each(check);
    assert_eq!(
        (math::exp(f64::INFINITY), math::exp(f64::NEG_INFINITY), math::exp(-0.0)),
        (f64::INFINITY, 0.0, 1.0)
    );
}

#[test]
fn other_functions() {
    let mut random = Random(2);
    for _ in 0..20_000 {
        let x = random.float(-1074, 1023).abs();
        assert!(ulps(math::ln(x), x.ln()) <= 1.0, "ln({x:e})");
        assert_eq!(math::sqrt(x), Exact::of(x).root().nearest(F64), "sqrt({x:e})");
        let x = random.float(-149, 127).abs() as f32;
        assert_eq!(f64::from(math::sqrtf(x)), Exact::of(x.into()).root().nearest(F32), "sqrtf({x:e})");
        assert!(Exact::of(f64::from(x).ln()).ulps(math::lnf(x).into(), F32) <= 1.0, "lnf({x:e})");
        let x = random.float(-30, 5) as f32;
        assert!(Exact::of(f64::from(x).exp()).ulps(math::expf(x).into(), F32) <= 1.0, "expf({x:e})");
        let (low, high) =
            [(-1074, 1023), (-1074, -1000), (-460, -440), (470, 490), (1000, 1022)][random.below(5)];
        let (re, im) = (random.float(low, high), random.float(low, high));
        let exact = Exact::sum_of_products([(re, re), (im, im)]).root();
        let modulus = math::modulus(re, im);
        if exact.nearest(F64).is_infinite() {
            assert_eq!(modulus, f64::INFINITY);
        } else {
            assert!(exact.ulps(modulus, F64) <= 1.5, "modulus({re:e}, {im:e})");
        }
    }
    for x in [0.0, -0.0, f64::INFINITY] {
        assert_eq!(math::sqrt(x).to_bits(), x.to_bits());
    }
    assert!(math::sqrt(-1.0).is_nan() && math::ln(-1.0).is_nan() && math::ln(0.0) == f64::NEG_INFINITY);
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    assert_eq!(
        (math::modulus(-inf, 1.0), math::modulus(0.0, -inf), math::modulus(-0.0, 0.0)),
        (inf, inf, 0.0)
    );
    assert!(
        math::modulus(nan, inf).is_nan()
            && math::modulus(-inf, nan).is_nan()
            && math::modulus(nan, 1.0).is_nan()
    );
}
