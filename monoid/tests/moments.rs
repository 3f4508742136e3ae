//! Means and variances against exact fractions: data far from zero, outliers, extreme integers, what is not finite; and the
//! same in every grouping.

use crate::data::{Probe, Random, SIZES, narrowed};
use crate::exact::{BF16, Exact, F16, F32, F64, Format, parts, scale};
use half::{bf16, f16};
use num_bigint::{BigInt, BigUint};
use num_complex::Complex;
use warpfold_monoid::{Averaged, Float, IgnoreNan, Integer, Mean, Moments, Monoid, StdDev, Variance, tree};

/// The exact mean of integers times `2^exp`.
fn mean_of(x: &[BigInt], exp: i64) -> Exact {
    let sum = x.iter().sum::<BigInt>();
    Exact { num: sum, den: BigUint::from(x.len()), exp }
}

/// The exact variance of integers times `2^exp`: `(n Q - S^2) / (n (n - ddof))`.
fn variance_of(x: &[BigInt], exp: i64, ddof: usize) -> Exact {
    let n = x.len();
    let (sum, squares) = (x.iter().sum::<BigInt>(), x.iter().map(|x| x * x).sum::<BigInt>());
    Exact { num: squares * n - &sum * &sum, den: BigUint::from(n) * (n - ddof), exp: 2 * exp }
}

/// Floats as integers times a power of two.
fn whole(x: &[f64]) -> (Vec<BigInt>, i64) {
    let parts: Vec<_> = x.iter().map(|&x| parts(x)).collect();
    let exp = parts.iter().filter(|part| part.0 != 0).map(|part| part.1).min().unwrap_or(0);
    let whole =
        parts.into_iter().map(|(m, e)| if m == 0 { m.into() } else { BigInt::from(m) << (e - exp) as u64 });
    (whole.collect(), exp)
}

fn exact_variance(x: &[f64], ddof: usize) -> Exact {
    let (whole, exp) = whole(x);
    variance_of(&whole, exp, ddof)
}

fn variance(x: &[f64]) -> f64 {
    tree::reduce(&Variance::<f64>::default(), x).unwrap()
}

/// Combines in a random grouping, operands in order.
fn grouped<Op: Monoid>(op: &Op, x: &[Op::Item], first: u64, random: &mut Random) -> Op::Acc {
    if x.len() <= 1 + random.below(9) {
        let mut acc = op.lift(x[0], first);
        for (i, &x) in x.iter().enumerate().skip(1) {
            acc = op.push(acc, x, first + i as u64);
        }
        return acc;
    }
    let cut = 1 + random.below(x.len() - 1);
    let (left, right) =
        (grouped(op, &x[..cut], first, random), grouped(op, &x[cut..], first + cut as u64, random));
    // Some in the other order: the operator is commutative.
    if random.below(4) == 0 { op.combine(right, left) } else { op.combine(left, right) }
}

/// The tree's result and those of many groupings are right to `tolerance`, relatively.
fn right_in_every_grouping(what: &str, x: &[f64], tolerance: f64) {
    let exact = exact_variance(x, 0);
    let op = Variance::<f64>::default();
    let n = x.len();
    let error = exact.relative_error(variance(x));
    assert!(error <= tolerance, "{what}, {n} items: off by {error:e}");
    let mut random = Random(n as u64);
    for round in 0..if n > 10_000 { 3 } else { 20 } {
        let error = exact.relative_error(op.finish(grouped(&op, x, 0, &mut random)));
        assert!(error <= tolerance, "{what}, {n} items, grouping {round}: off by {error:e}");
    }
    // Combined one by one, from either end.
    let mut left = op.lift(x[0], 0);
    let mut right = op.lift(x[n - 1], 0);
    for i in 1..n {
        left = op.combine(left, op.lift(x[i], 0));
        right = op.combine(op.lift(x[n - 1 - i], 0), right);
    }
    let error = exact.relative_error(op.finish(left)).max(exact.relative_error(op.finish(right)));
    assert!(error <= tolerance, "{what}, {n} items, one by one: off by {error:e}");
    let deviation = exact.root().relative_error(tree::reduce(&StdDev::<f64>::default(), x).unwrap());
    assert!(deviation <= tolerance, "{what}, {n} items: standard deviation off by {deviation:e}");
}

#[test]
fn variances_of_data_far_from_zero() {
    let mut random = Random(3);
    for n in SIZES.into_iter().filter(|&n| n > 1) {
        let mut items = |f: &dyn Fn(usize, f64) -> f64| -> Vec<f64> {
            (0..n).map(|i| f(i, random.unit() - 0.5)).collect()
        };
        for (what, x) in [
            ("mean 1e8, spread 1", items(&|_, u| 1e8 + u)),
            ("mean -1e8, spread 1", items(&|_, u| -1e8 + u)),
            ("mean 1e12, spread 1e-3", items(&|i, u| 1e12 + 1e-3 * u + if i % 2 == 0 { 1e-3 } else { 0.0 })),
            ("mean 0", items(&|_, u| u)),
            ("1e8 + 0, 1, 2", items(&|i, _| 1e8 + (i % 3) as f64)),
            ("all but one the same", items(&|i, _| if i == n / 2 { 1e15 + 1.0 } else { 1e15 })),
            ("the first an outlier of 1e8 spreads", items(&|i, u| if i == 0 { 1e8 } else { u })),
            ("the last an outlier of 1e8 spreads", items(&|i, u| if i == n - 1 { 1e8 } else { u })),
            ("a trend", items(&|i, u| 1e6 * i as f64 + u)),
            ("two clusters", items(&|i, u| if i < n / 2 { 1e9 + u } else { u })),
            ("near 1e150", items(&|_, u| 1e150 * (1.0 + u))),
            ("near 1e-150", items(&|_, u| 1e-150 * (1.0 + u))),
            ("of any size", items(&|_, u| scale(u, (u * 1000.0).round() as i64 % 100))),
        ] {
            right_in_every_grouping(what, &x, 1e-12);
        }
    }
}

#[test]
fn constant_data_has_variance_exactly_zero() {
    for value in [0.1, 1e8 + 0.3, -1e300, f64::MAX, 5e-324, 0.0, -0.0] {
        for n in SIZES.into_iter().filter(|&n| n > 0) {
            let x = vec![value; n];
            assert_eq!(variance(&x).to_bits(), 0, "{value:e}, {n} items");
            let op = Variance::<f64>::default();
            let mut random = Random(n as u64);
            assert_eq!(op.finish(grouped(&op, &x, 0, &mut random)), 0.0, "{value:e}, {n} items");
        }
    }
    for n in [1, 2, 33, 8193] {
        assert_eq!(tree::reduce(&Variance::<f32>::default(), &vec![0.1f32; n]), Some(0.0));
        assert_eq!(tree::reduce(&Variance::<f16>::default(), &vec![f16::MAX; n]), Some(f16::ZERO));
        assert_eq!(tree::reduce(&Variance::<i64>::default(), &vec![i64::MIN; n]), Some(0.0));
        assert_eq!(tree::reduce(&Variance::<u64>::default(), &vec![u64::MAX; n]), Some(0.0));
        assert_eq!(tree::reduce(&StdDev::<u32>::default(), &vec![u32::MAX; n]), Some(0.0));
        let z = Complex::new(0.1, -1e9);
        assert_eq!(tree::reduce(&Variance::<Complex<f64>>::default(), &vec![z; n]), Some(0.0));
    }
}

/// The narrow types' results are the exact ones rounded, give or take what `f64` loses.
fn narrow<T: Probe + Float + Moments<Output = T> + Averaged<Mean = T>>(
    format: Format,
    values: impl Fn(&mut Random) -> f64,
) {
    let mut random = Random(7);
    for n in SIZES.into_iter().filter(|&n| n > 1) {
        let x: Vec<T> = narrowed((0..n).map(|_| values(&mut random)));
        let wide: Vec<f64> = x.iter().map(|x| x.to_f64()).collect();
        let check = |what, result: T, exact: &Exact| {
            if exact.nearest(format).is_infinite() {
                assert_eq!(result.to_f64(), f64::INFINITY, "{what}");
            } else {
                let error = exact.ulps(result.to_f64(), format);
                assert!(error <= 0.5001, "{what}, {n} items: {result:?} is off by {error} units");
            }
        };
        let exact = exact_variance(&wide, 0);
        check("variance", tree::reduce(&Variance::<T>::default(), &x).unwrap(), &exact);
        check("deviation", tree::reduce(&StdDev::<T>::default(), &x).unwrap(), &exact.root());
        let (whole, exp) = whole(&wide);
        check("mean", tree::reduce(&Mean::<T>::new(), &x).unwrap(), &mean_of(&whole, exp));
    }
}

#[test]
fn narrow_floats_are_right_to_half_a_unit() {
    narrow::<f32>(F32, |random| 1e6 + random.unit());
    narrow::<f32>(F32, |random| 9e37 * (1.0 + random.unit()));
    narrow::<f32>(F32, |random| random.float(-149, 100));
    narrow::<f16>(F16, |random| 1000.0 + random.unit());
    narrow::<f16>(F16, |random| 40_000.0 + 20_000.0 * random.unit());
    narrow::<f16>(F16, |random| random.float(-26, 7));
    narrow::<bf16>(BF16, |random| 1e30 * (1.0 + random.unit()));
    narrow::<bf16>(BF16, |random| random.float(-130, 60));
}

/// FR07: the variance fits `f32`, the sum of squared deviations does not.
#[test]
fn squares_of_f32_may_overflow() {
    let x: Vec<f32> = (0..1000).map(|i| if i % 2 == 0 { 9e19 } else { 1.1e20 }).collect();
    let variance = tree::reduce(&Variance::<f32>::default(), &x).unwrap();
    let deviation = tree::reduce(&StdDev::<f32>::default(), &x).unwrap();
    assert!((variance / 1e38 - 1.0).abs() < 1e-5 && (deviation / 1e19 - 1.0).abs() < 1e-5);
}

#[test]
fn means_of_half_floats_fit_where_sums_do_not() {
    // FR03.
    assert_eq!(tree::reduce(&Mean::<f16>::new(), &[f16::from_f32(40_000.0); 3]).unwrap().to_f32(), 40_000.0);
    assert_eq!(tree::reduce(&Mean::<f32>::new(), &[f32::MAX; 100]), Some(f32::MAX));
    assert_eq!(tree::reduce(&Mean::<bf16>::new(), &[bf16::MAX; 1000]), Some(bf16::MAX));
}

#[test]
fn means_of_f64_are_right_to_a_unit() {
    let mut random = Random(5);
    for n in SIZES.into_iter().filter(|&n| n > 0) {
        for (low, high) in [(0, 0), (-30, 30), (-1070, -1050), (900, 1000)] {
            let x: Vec<f64> = (0..n).map(|_| random.float(low, high)).collect();
            let exact = Exact::sum(x.iter().copied()).over(n);
            let error = exact.ulps(tree::reduce(&Mean::<f64>::new(), &x).unwrap(), F64);
            assert!(error <= 1.0, "{n} items: off by {error} units");
        }
    }
    assert_eq!(tree::reduce(&Mean::<f64>::new(), &[]), None);
    assert!(Mean::<f64>::new().finish_empty().to_bits() == f64::NAN.to_bits());
}

fn integers<T: Probe + Integer + Averaged<Mean = f64> + Moments<Output = f64>>(
    mean_ulps: f64,
    variance_error: f64,
) {
    let mut random = Random(9);
    let specials = T::specials();
    for n in SIZES.into_iter().filter(|&n| n > 0) {
        let any: Vec<T> = (0..n).map(|_| T::of_bits(random.bits())).collect();
        let few: Vec<T> = (0..n).map(|_| specials[random.below(specials.len())]).collect();
        let near = |edge: u64, random: &mut Random| -> Vec<T> {
            (0..n).map(|_| T::wrap(edge.wrapping_add(random.below(3) as u64))).collect()
        };
        let low = near(T::LOWEST.bits(), &mut random);
        let high = near(T::HIGHEST.bits().wrapping_sub(2), &mut random);
        // Means next to an integer, just under and just over it.
        let but_one = |usual: u64, other: u64| -> Vec<T> {
            (0..n).map(|i| T::wrap(if i == n / 3 { other } else { usual })).collect()
        };
        let (end, before) = (T::HIGHEST.bits(), T::HIGHEST.bits() - 1);
        for x in
            [any, few, low, high, but_one(end, before), but_one(before, end), but_one(7, 8), but_one(8, 7)]
        {
            let whole: Vec<BigInt> = x.iter().map(|x| x.to_i128().into()).collect();
            let error = mean_of(&whole, 0).ulps(tree::reduce(&Mean::<T>::new(), &x).unwrap(), F64);
            assert!(error <= mean_ulps, "{n} items: mean off by {error} units");
            let exact = variance_of(&whole, 0, 0);
            for op in [Variance::<T>::default(), Variance::new(1.0)] {
                let ddof = op.ddof() as usize;
                if n <= ddof {
                    continue;
                }
                let exact = variance_of(&whole, 0, ddof);
                let mut random = Random(n as u64);
                for result in [tree::reduce(&op, &x).unwrap(), op.finish(grouped(&op, &x, 0, &mut random))] {
                    let error = if exact.is_zero() { result } else { exact.relative_error(result) };
                    assert!(error <= variance_error, "{n} items, {op:?}: off by {error:e}");
                }
            }
            let deviation = tree::reduce(&StdDev::<T>::default(), &x).unwrap();
            let error = if exact.is_zero() { deviation } else { exact.root().relative_error(deviation) };
            assert!(error <= variance_error, "{n} items: standard deviation off by {error:e}");
        }
    }
}

#[test]
fn integers_of_up_to_32_bits_are_exact_to_a_unit() {
    let unit = 2f64.powi(-52);
    integers::<i8>(0.5, unit);
    integers::<u8>(0.5, unit);
    integers::<i16>(0.5, unit);
    integers::<u16>(0.5, unit);
    integers::<i32>(1.0, unit);
    integers::<u32>(1.0, unit);
}

#[test]
fn integers_of_64_bits_at_the_ends_of_their_range() {
    integers::<i64>(1.5, 1e-12);
    integers::<u64>(1.5, 1e-12);
    // Distances that i64 does not hold.
    let x = [i64::MIN, i64::MAX];
    assert_eq!(tree::reduce(&Variance::<i64>::default(), &x), Some(2f64.powi(126)));
    assert_eq!(tree::reduce(&StdDev::<u64>::default(), &[0, u64::MAX]), Some(2f64.powi(63)));
    assert_eq!(tree::reduce(&Mean::<i64>::new(), &x), Some(-0.5));
}

#[test]
fn means_of_truth_values_are_frequencies() {
    let x: Vec<bool> = (0..1000).map(|i| i % 8 == 0).collect();
    assert_eq!(tree::reduce(&Mean::<bool>::new(), &x), Some(0.125));
    assert_eq!(tree::reduce(&Mean::<bool>::new(), &[]), None);
}

#[test]
fn complex_variances_are_those_of_the_parts_together() {
    let mut random = Random(13);
    for n in SIZES.into_iter().filter(|&n| n > 1) {
        for (re, im) in [(0.0, 0.0), (1e8, -1e8), (1e12, 3.0)] {
            let mut x: Vec<Complex<f64>> =
                (0..n).map(|_| Complex::new(re + random.unit(), im + random.unit())).collect();
            x[0].im += 1e6;
            let parts =
                |part: fn(&Complex<f64>) -> f64| exact_variance(&x.iter().map(part).collect::<Vec<_>>(), 0);
            let (a, b) = (parts(|z| z.re), parts(|z| z.im));
            let exp = a.exp.min(b.exp);
            let num = (a.num << (a.exp - exp) as u64) + (b.num << (b.exp - exp) as u64);
            let exact = Exact { num, den: a.den, exp };
            let op = Variance::<Complex<f64>>::default();
            for result in [tree::reduce(&op, &x).unwrap(), op.finish(grouped(&op, &x, 0, &mut random))] {
                let error = exact.relative_error(result);
                assert!(error <= 1e-12, "{n} items: off by {error:e}");
            }
            let narrow: Vec<Complex<f32>> =
                x.iter().map(|z| Complex::new(z.re as f32, z.im as f32)).collect();
            let part = |part: fn(&Complex<f32>) -> f32| {
                exact_variance(&narrow.iter().map(|z| f64::from(part(z))).collect::<Vec<_>>(), 0).nearest(F64)
            };
            let exact = part(|z| z.re) + part(|z| z.im);
            let deviation = tree::reduce(&StdDev::<Complex<f32>>::default(), &narrow).unwrap();
            assert!((f64::from(deviation) / exact.sqrt() - 1.0).abs() < 1e-7);
            let mean = tree::reduce(&Mean::<Complex<f64>>::new(), &x).unwrap();
            let exact = Exact::sum(x.iter().map(|z| z.im)).over(n);
            assert!(exact.ulps(mean.im, F64) <= 1.0);
        }
    }
}

#[test]
fn degrees_of_freedom() {
    let x = [1.0, 2.0, 4.0, 9.0];
    for ddof in 0..4 {
        let error =
            exact_variance(&x, ddof).ulps(tree::reduce(&Variance::<f64>::new(ddof as f64), &x).unwrap(), F64);
        assert!(error <= 1.0, "ddof {ddof}");
    }
    for ddof in [4.0, 5.0, 1e9, f64::INFINITY, f64::NAN] {
        let nan = f64::NAN.to_bits();
        assert_eq!(tree::reduce(&Variance::<f64>::new(ddof), &x).unwrap().to_bits(), nan, "ddof {ddof}");
        assert_eq!(tree::reduce(&StdDev::<i32>::new(ddof), &[1, 2, 3, 4]).unwrap().to_bits(), nan);
        assert_eq!(tree::reduce(&Variance::<i64>::new(ddof), &[1, 2, 3, 4]).unwrap().to_bits(), nan);
    }
    assert_eq!(tree::reduce(&Variance::<f64>::new(1.0), &[]), None);
    assert_eq!(tree::reduce(&Variance::<u8>::new(0.0), &[]), None);
    assert!(
        Variance::<f64>::default().finish_empty().is_nan() && StdDev::<i8>::default().finish_empty().is_nan()
    );
    // Three and a half items' worth.
    assert_eq!(tree::reduce(&Variance::<i32>::new(0.5), &[0, 0, 6, 6]), Some(36.0 / 3.5));
}

/// A NaN or an infinity anywhere makes NaN, pushed or lifted, in any type.
#[test]
fn what_is_not_finite_has_no_variance() {
    fn one<T: Probe + Float + Moments<Output = T> + Averaged<Mean = T>>() {
        let mut awkward = T::nans();
        awkward.extend([T::HIGHEST, T::LOWEST]);
        for n in [1, 2, 3, 33, 1000] {
            for &bad in &awkward {
                for place in [0, n / 2, n - 1] {
                    let mut x = vec![T::ONE; n];
                    x[place] = bad;
                    let nan = Probe::to_bits(T::NAN);
                    let variance = tree::reduce(&Variance::<T>::default(), &x).unwrap();
                    assert_eq!(Probe::to_bits(variance), nan, "{bad:?} at {place} of {n}");
                    let deviation = tree::reduce(&StdDev::<T>::default(), &x).unwrap();
                    assert_eq!(Probe::to_bits(deviation), nan, "{bad:?} at {place} of {n}");
                    let mean = tree::reduce(&Mean::<T>::new(), &x).unwrap();
                    let expected = if bad.nan() { nan } else { Probe::to_bits(bad) };
                    assert_eq!(Probe::to_bits(mean), expected, "{bad:?} at {place} of {n}");
                    let op = Variance::<T>::default();
                    let mut random = Random(place as u64);
                    assert!(op.finish(grouped(&op, &x, 0, &mut random)).nan());
                }
            }
            let mut both = vec![T::HIGHEST; n];
            both[n / 2] = T::LOWEST;
            assert!(n == 1 || tree::reduce(&Mean::<T>::new(), &both).unwrap().nan());
            assert!(tree::reduce(&Variance::<T>::default(), &both).unwrap().nan());
        }
    }
    one::<f16>();
    one::<bf16>();
    one::<f32>();
    one::<f64>();
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for z in [Complex::new(bad, 0.0), Complex::new(1.0, bad)] {
            for n in [1, 2, 33] {
                let mut x = vec![Complex::new(1.0, 0.0); n];
                x[n / 2] = z;
                assert!(tree::reduce(&Variance::<Complex<f64>>::default(), &x).unwrap().is_nan());
                let x: Vec<_> = x.iter().map(|z| Complex::new(z.re as f32, z.im as f32)).collect();
                assert!(tree::reduce(&Variance::<Complex<f32>>::default(), &x).unwrap().is_nan());
            }
        }
    }
}

/// Finite items whose variance is beyond `f64`: infinity, as numpy has it, however they are grouped.
#[test]
fn variances_beyond_the_range_are_infinite() {
    for x in [[0.0, 1e160], [-1e200, 1e200], [f64::MAX, -f64::MAX]] {
        for n in [2, 3, 33, 1000] {
            let x: Vec<f64> = (0..n).map(|i| x[i % 2]).collect();
            assert_eq!(variance(&x), f64::INFINITY, "{x:?}");
            assert_eq!(tree::reduce(&StdDev::<f64>::default(), &x), Some(f64::INFINITY));
            let z: Vec<_> = x.iter().map(|&x| Complex::new(1.0, x)).collect();
            assert_eq!(tree::reduce(&Variance::<Complex<f64>>::default(), &z), Some(f64::INFINITY));
            let op = Variance::<f64>::default();
            for seed in 0..10 {
                assert_eq!(op.finish(grouped(&op, &x, 0, &mut Random(seed))), f64::INFINITY);
            }
            let mut bad = x.clone();
            bad[n / 2] = f64::INFINITY;
            for seed in 0..10 {
                assert!(op.finish(grouped(&op, &bad, 0, &mut Random(seed))).is_nan());
            }
        }
    }
    let wide = [f16::MIN, f16::MAX].repeat(10);
    assert_eq!(tree::reduce(&Variance::<f16>::default(), &wide), Some(f16::INFINITY));
    assert_eq!(tree::reduce(&StdDev::<f16>::default(), &wide), Some(f16::MAX));
}

#[test]
fn nans_can_be_passed_over() {
    let mut random = Random(17);
    for n in SIZES {
        let all: Vec<f64> =
            (0..n).map(|_| if random.below(3) == 0 { f64::NAN } else { 1e8 + random.unit() }).collect();
        let some: Vec<f64> = all.iter().copied().filter(|x| !x.is_nan()).collect();
        let result = tree::reduce(&IgnoreNan(Variance::<f64>::default()), &all);
        let mean = tree::reduce(&IgnoreNan(Mean::<f64>::new()), &all);
        if n == 0 {
            assert_eq!((result, mean), (None, None));
        } else if some.is_empty() {
            assert!(result.unwrap().is_nan() && mean.unwrap().is_nan());
        } else {
            let exact = exact_variance(&some, 0);
            let result = result.unwrap();
            assert!(if exact.is_zero() { result == 0.0 } else { exact.relative_error(result) < 1e-12 });
            assert!(Exact::sum(some.iter().copied()).over(some.len()).ulps(mean.unwrap(), F64) <= 1.0);
        }
    }
    let x = vec![f64::NAN; 100];
    assert!(tree::reduce(&IgnoreNan(StdDev::<f64>::default()), &x).unwrap().is_nan());
    assert!(
        tree::reduce(&IgnoreNan(Variance::<f64>::default()), &[f64::NAN, f64::INFINITY]).unwrap().is_nan()
    );
    let z = [Complex::new(f64::NAN, 1.0), Complex::new(1.0, 1.0), Complex::new(3.0, 1.0)];
    assert_eq!(tree::reduce(&IgnoreNan(Variance::<Complex<f64>>::default()), &z), Some(1.0));
}
