//! Norms and dot products against exact sums, over the whole range of every type.

use crate::data::{Probe, Random, SIZES, narrowed};
use crate::exact::{BF16, Exact, F16, F32, F64, Format};
use half::{bf16, f16};
use num_bigint::BigInt;
use num_complex::Complex;
use warpfold_monoid::{
    Dot, Float, GreatestMagnitude, IgnoreNan, Integer, L1, L2, Linf, Magnitudes, Monoid, Products, Squares,
    SquaresUnderRoot, SumSquares, Summed, fused::Parts2, tree,
};

/// What 64 bits keep of an integer.
fn low_bits(value: i128) -> u64 {
    value as u64
}

fn integers<T>(root_ulps: f64)
where
    T: Probe
        + Integer
        + Summed<Squares, Output = u64>
        + Summed<Magnitudes, Output = u64>
        + Summed<SquaresUnderRoot, Output = f64>
        + Summed<GreatestMagnitude, Output = T::Unsigned>,
    [T; 2]: Summed<Products, Output = T::Wide>,
{
    let mut random = Random(1);
    let specials = T::specials();
    for n in SIZES {
        let any: Vec<T> = (0..n).map(|_| T::of_bits(random.bits())).collect();
        let few: Vec<T> = (0..n).map(|_| specials[random.below(specials.len())]).collect();
        let other: Vec<T> = (0..n).map(|_| T::of_bits(random.bits())).collect();
        for x in [any, few, vec![T::LOWEST; n], vec![T::HIGHEST; n]] {
            let wide = || x.iter().map(|x| x.to_i128());
            let squares = wide().fold(0i128, |sum, x| sum.wrapping_add(x.wrapping_mul(x)));
            assert_eq!(tree::reduce(&SumSquares::<T>::new(), &x), low_bits(squares), "{n} items");
            assert_eq!(tree::reduce(&L1::<T>::new(), &x), low_bits(wide().map(i128::abs).sum()), "{n} items");
            let greatest = wide().map(i128::abs).max().unwrap_or(0);
            assert_eq!(tree::reduce(&Linf::<T>::new(), &x).to_i128(), greatest, "{n} items");
            let exact = Exact::integer(wide().map(|x| BigInt::from(x) * x).sum::<BigInt>());
            let error = exact.root().ulps(tree::reduce(&L2::<T>::new(), &x), F64);
            assert!(error <= root_ulps, "{n} items: 2-norm off by {error} units");
            let pairs: Vec<[T; 2]> = x.iter().zip(&other).map(|(&a, &b)| [a, b]).collect();
            let dot =
                wide().zip(&other).fold(0i128, |sum, (a, b)| sum.wrapping_add(a.wrapping_mul(b.to_i128())));
            assert_eq!(tree::reduce(&Dot::<T>::new(), &parts(&pairs)).bits(), low_bits(dot), "{n} items");
        }
    }
}

#[test]
fn integers_wrap_in_64_bits() {
    integers::<i8>(1.0);
    integers::<u8>(1.0);
    integers::<i16>(1.0);
    integers::<u16>(1.0);
    integers::<i32>(1.0);
    integers::<u32>(1.0);
    integers::<i64>(1.5);
    integers::<u64>(1.5);
}

fn narrow<T>(format: Format)
where
    T: Probe
        + Float
        + Summed<Squares, Output = T>
        + Summed<Magnitudes, Output = T>
        + Summed<SquaresUnderRoot, Output = T>
        + Summed<GreatestMagnitude, Output = T>,
    [T; 2]: Summed<Products, Output = T>,
{
    let mut random = Random(2);
    let (low, high) = (format.least as i32, format.end as i32 - 2);
    for n in SIZES {
        for (low, high) in [(0, 0), (low, high), (low, low + 4), (high - 2, high)] {
            let x: Vec<T> = narrowed((0..n).map(|_| random.float(low, high)));
            let y: Vec<T> = narrowed((0..n).map(|_| random.float(-3, 3).abs()));
            let wide: Vec<f64> = x.iter().map(|x| x.to_f64()).collect();
            let check = |what: &str, result: T, exact: &Exact| {
                if exact.nearest(format).is_infinite() {
                    assert_eq!(result.to_f64().abs(), f64::INFINITY, "{what}");
                } else {
                    let error = exact.ulps(result.to_f64(), format);
                    assert!(error <= 0.5001, "{what}, {n} items: {result:?} off by {error} units");
                }
            };
            let squares = Exact::sum_of_products(wide.iter().map(|&x| (x, x)));
            check("squares", tree::reduce(&SumSquares::<T>::new(), &x), &squares);
            check("2-norm", tree::reduce(&L2::<T>::new(), &x), &squares.root());
            check("1-norm", tree::reduce(&L1::<T>::new(), &x), &Exact::sum(wide.iter().map(|x| x.abs())));
            let greatest = wide.iter().fold(0.0f64, |greatest, x| greatest.max(x.abs()));
            assert_eq!(tree::reduce(&Linf::<T>::new(), &x).to_f64(), greatest);
            // Of one sign, so that nothing cancels.
            let pairs: Vec<[T; 2]> = x.iter().zip(&y).map(|(&a, &b)| [Float::magnitude(a), b]).collect();
            let dot = Exact::sum_of_products(pairs.iter().map(|[a, b]| (a.to_f64(), b.to_f64())));
            check("dot", tree::reduce(&Dot::<T>::new(), &parts(&pairs)), &dot);
        }
    }
}

#[test]
fn narrow_floats_are_right_to_half_a_unit() {
    narrow::<f16>(F16);
    narrow::<bf16>(BF16);
    narrow::<f32>(F32);
}

fn norms_of(what: &str, x: &[f64]) {
    let n = x.len();
    let squares = Exact::sum_of_products(x.iter().map(|&x| (x, x)));
    let error = squares.root().ulps(tree::reduce(&L2::<f64>::new(), x), F64);
    // Squares of extreme items are summed without compensation.
    let plain = |x: f64| x != 0.0 && !(2f64.powi(-440)..2f64.powi(480)).contains(&x);
    let ulps = if plain(squares.root().nearest(F64)) { 3.0 } else { 1.0 };
    assert!(error <= ulps, "{what}, {n} items: 2-norm off by {error} units");
    let sum = tree::reduce(&SumSquares::<f64>::new(), x);
    if squares.nearest(F64).is_infinite() {
        assert_eq!(sum, f64::INFINITY, "{what}");
    } else {
        // A square under 2^-969 has bits under the least f64: half of that is lost for each, at most.
        let lost = x.iter().filter(|x| x.abs() < 2f64.powi(-484)).count() as f64;
        let error = squares.ulps(sum, F64);
        assert!(error <= 1.0 + lost, "{what}, {n} items: sum of squares off by {error} units");
        assert!(lost == 0.0 || sum < 2f64.powi(-900) || error <= 1.0, "{what}, {n} items: {error} units");
    }
    let magnitudes = Exact::sum(x.iter().map(|x| x.abs()));
    if magnitudes.nearest(F64).is_finite() {
        let error = magnitudes.ulps(tree::reduce(&L1::<f64>::new(), x), F64);
        assert!(error <= 1.0, "{what}, {n} items: 1-norm off by {error} units");
    }
    let greatest = x.iter().fold(0.0f64, |greatest, x| greatest.max(x.abs()));
    assert_eq!(tree::reduce(&Linf::<f64>::new(), x), greatest, "{what}");
}

#[test]
fn norms_of_f64_over_the_whole_range() {
    let mut random = Random(3);
    for n in SIZES {
        let mut items =
            |low: i32, high: i32| -> Vec<f64> { (0..n).map(|_| random.float(low, high)).collect() };
        // From 2^480 on and under 2^-450 squares are scaled.
        for (low, high) in [
            (0, 0),
            (-30, 30),
            (-1074, 1000),
            (-1074, -1074),
            (-1074, -1040),
            (-540, -520),
            (-486, -480),
            (-460, -440),
            (-452, -448),
            (478, 482),
            (479, 480),
            (400, 1000),
            (990, 1003),
            (-450, 480),
        ] {
            norms_of(&format!("2^{low} to 2^{high}"), &items(low, high));
        }
        for value in [1e300, 1e-300, 3.0, 5e-324, 1e-310, 1e154, 1e-154, 2f64.powi(480), 2f64.powi(-450)] {
            norms_of(&format!("all {value:e}"), &vec![value; n]);
            let mut mixed = vec![value; n];
            for (i, x) in mixed.iter_mut().enumerate() {
                *x *= if i % 3 == 1 { -1.0 } else { 1.0 };
                *x = if i % 5 == 2 { 1e-200 } else { *x };
            }
            norms_of(&format!("{value:e} and 1e-200"), &mixed);
        }
    }
    // Single items, to the bit.
    for x in f64::specials().into_iter().filter(|x| x.is_finite()) {
        assert_eq!(tree::reduce(&L2::<f64>::new(), &[x]).to_bits(), x.abs().to_bits(), "{x:e}");
    }
    for _ in 0..5000 {
        let x = random.float(-1074, 1023);
        assert_eq!(tree::reduce(&L2::<f64>::new(), &[x]), x.abs(), "{x:e}");
    }
    assert_eq!(tree::reduce(&L2::<f64>::new(), &[f64::MAX, f64::MAX]), f64::INFINITY);
    assert_eq!(tree::reduce(&L2::<f64>::new(), &[f64::MAX, 1.0, 5e-324]), f64::MAX);
}

/// Pairs as the operator takes them.
fn parts<T: Copy>(pairs: &[[T; 2]]) -> Vec<Parts2<T, T>> {
    pairs.iter().map(|&[a, b]| Parts2::new(a, b)).collect()
}

fn dot_of(what: &str, pairs: &[[f64; 2]], ulps: f64) {
    let exact = Exact::sum_of_products(pairs.iter().map(|&[a, b]| (a, b)));
    let error = exact.ulps(tree::reduce(&Dot::<f64>::new(), &parts(pairs)), F64);
    assert!(error <= ulps, "{what}, {} pairs: off by {error} units", pairs.len());
}

#[test]
fn dot_products_of_f64_cancel_without_loss() {
    let mut random = Random(4);
    for n in SIZES.into_iter().filter(|&n| n > 1) {
        // Each product has its negative somewhere, but for one: the condition number is about n * 2^scale.
        for scale in [0, 20, 30] {
            let mut pairs = vec![[0.0; 2]; n];
            for i in 0..n / 2 {
                let (a, b) = (random.float(scale - 1, scale), random.float(-1, 1));
                pairs[i] = [a, b];
                pairs[n - 1 - i] = [-b, a];
            }
            pairs[n / 3] = [random.float(0, 0), random.float(0, 0)];
            dot_of(&format!("scale {scale}"), &pairs, 1.0);
        }
        let mut any = |low, high| -> Vec<[f64; 2]> {
            (0..n).map(|_| [random.float(low, high), random.float(low, high)]).collect()
        };
        let positive =
            |pairs: Vec<[f64; 2]>| -> Vec<[f64; 2]> { pairs.into_iter().map(|p| p.map(f64::abs)).collect() };
        dot_of("around 1", &any(-2, 2), 1.0);
        dot_of("positive", &positive(any(-200, 200)), 1.0);
        dot_of("large", &positive(any(400, 500)), 1.0);
        dot_of("small", &positive(any(-480, -440)), 1.0);
    }
}

/// Factors too large to be split, beside small ones; products that are subnormal.
#[test]
fn dot_products_of_f64_at_the_ends_of_the_range() {
    let mut random = Random(5);
    for (low, high) in [(1000, 1023), (996, 1000), (990, 996)] {
        for n in [1, 2, 3, 33, 1000] {
            let pairs: Vec<[f64; 2]> = (0..n)
                .map(|i| {
                    let (a, b) = (random.float(low, high).abs(), random.float(-1074, -30).abs());
                    if i % 2 == 0 { [a, b] } else { [b, a] }
                })
                .collect();
            dot_of("large by small", &pairs, 1.0);
        }
    }
    assert_eq!(tree::reduce(&Dot::<f64>::new(), &parts(&[[1e305, 1e-10], [f64::MAX, 0.0]])), 1e305 * 1e-10);
    assert_eq!(tree::reduce(&Dot::<f64>::new(), &parts(&[[f64::MAX, 1.0], [5e-324, f64::MAX]])), f64::MAX);
    assert_eq!(tree::reduce(&Dot::<f64>::new(), &parts(&[[f64::MAX, 2.0]])), f64::INFINITY);
    // The halves of these round up, and their product overflows.
    let root = f64::MAX.sqrt();
    assert_eq!(tree::reduce(&SumSquares::<f64>::new(), &[root, 1e-3]), root * root);
    let most = f64::MAX * (1.0 - 1e-15);
    for factor in [root, 1.0, 2.0, 3.0, 1e-300, 5e-324, f64::MAX] {
        dot_of("next to overflow", &[[most / factor.max(1.0), factor], [1.0, 1.0]], 1.0);
        dot_of("next to overflow", &[[factor, -most / factor.max(1.0)], [1e280, 1e9]], 1.0);
    }
    assert_eq!(tree::reduce(&Dot::<f64>::new(), &parts(&[[-f64::MAX, f64::MAX]])), f64::NEG_INFINITY);
    for _ in 0..20_000 {
        dot_of("one small product", &[[random.float(-540, -480), random.float(-540, -480)]], 1.0);
    }
}

#[test]
fn what_is_not_finite_goes_through_norms() {
    let nan = f64::NAN.to_bits();
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for n in [1, 2, 3, 33, 1000] {
            for place in [0, n / 2, n - 1] {
                let mut x = vec![1e-300; n];
                x[n / 3] = 1e300;
                x[place] = bad;
                let expected = if bad.is_nan() { nan } else { f64::INFINITY.to_bits() };
                assert_eq!(tree::reduce(&L2::<f64>::new(), &x).to_bits(), expected);
                assert_eq!(tree::reduce(&L1::<f64>::new(), &x).to_bits(), expected);
                assert_eq!(tree::reduce(&Linf::<f64>::new(), &x).to_bits(), expected);
                assert_eq!(tree::reduce(&SumSquares::<f64>::new(), &x).to_bits(), expected);
                let narrow: Vec<f16> = narrowed(x.iter().copied());
                assert_eq!(tree::reduce(&L2::<f16>::new(), &narrow).to_f64().is_nan(), bad.is_nan());
                assert_eq!(tree::reduce(&Linf::<f16>::new(), &narrow).to_f64().is_nan(), bad.is_nan());
                let (narrow, wide) = (narrowed::<f32>(x.iter().copied()), IgnoreNan(L2::<f32>::new()));
                let infinite = place != n / 3 || !bad.is_nan();
                assert_eq!(tree::reduce(&wide, &narrow) == f32::INFINITY, infinite, "1e300 is beyond f32");
            }
        }
    }
    // A NaN beside an infinity.
    for x in [[f64::NAN, f64::INFINITY], [f64::INFINITY, f64::NAN]] {
        assert_eq!(tree::reduce(&L2::<f64>::new(), &x).to_bits(), nan);
        assert_eq!(tree::reduce(&Linf::<f64>::new(), &x).to_bits(), nan);
        assert_eq!(tree::reduce(&L1::<f64>::new(), &x).to_bits(), nan);
        assert_eq!(tree::reduce(&IgnoreNan(L2::<f64>::new()), &x), f64::INFINITY);
        assert_eq!(tree::reduce(&IgnoreNan(Linf::<f64>::new()), &x), f64::INFINITY);
        let z = Complex::new(x[0], x[1]);
        assert_eq!(tree::reduce(&Linf::<Complex<f64>>::new(), &[z]).to_bits(), nan);
        assert_eq!(tree::reduce(&L1::<Complex<f64>>::new(), &[z]).to_bits(), nan);
        assert_eq!(tree::reduce(&L2::<Complex<f64>>::new(), &[z]).to_bits(), nan);
        let z = Complex::new(x[0] as f32, x[1] as f32);
        assert!(tree::reduce(&Linf::<Complex<f32>>::new(), &[z]).is_nan());
        assert!(tree::reduce(&L1::<Complex<f32>>::new(), &[z]).is_nan());
        assert!(tree::reduce(&L2::<Complex<f32>>::new(), &[z]).is_nan());
    }
    let dot = Dot::<f64>::new();
    assert_eq!(tree::reduce(&dot, &parts(&[[0.0, f64::INFINITY]])).to_bits(), nan);
    assert_eq!(tree::reduce(&dot, &parts(&[[1.0, f64::INFINITY], [1.0, f64::NEG_INFINITY]])).to_bits(), nan);
    assert_eq!(tree::reduce(&dot, &parts(&[[f64::INFINITY, -2.0], [1.0, 1.0]])), f64::NEG_INFINITY);
    assert_eq!(tree::reduce(&IgnoreNan(dot), &parts(&[[f64::NAN, 1.0], [3.0, 2.0], [1.0, f64::NAN]])), 6.0);
    assert_eq!(tree::reduce(&IgnoreNan(dot), &parts(&[[f64::NAN, 1.0]])), 0.0);
}

#[test]
fn nothing_has_norm_zero() {
    assert_eq!(tree::reduce(&L2::<f64>::new(), &[]).to_bits(), 0);
    assert_eq!(tree::reduce(&L1::<f16>::new(), &[]).to_bits(), 0);
    assert_eq!(tree::reduce(&Linf::<bf16>::new(), &[]).to_bits(), 0);
    assert_eq!(tree::reduce(&Linf::<u8>::new(), &[]), 0);
    assert_eq!(tree::reduce(&SumSquares::<f32>::new(), &[]).to_bits(), 0);
    assert_eq!(tree::reduce(&Dot::<f64>::new(), &[]).to_bits(), 0);
    assert_eq!(tree::reduce(&L2::<i64>::new(), &[]), 0.0);
    assert_eq!(tree::reduce(&L2::<Complex<f64>>::new(), &[]), 0.0);
    // Norms have no sign.
    assert_eq!(tree::reduce(&L1::<f64>::new(), &[-0.0]).to_bits(), 0);
    assert_eq!(tree::reduce(&Linf::<f32>::new(), &[-0.0]).to_bits(), 0);
    assert_eq!(tree::reduce(&L2::<f64>::new(), &[-0.0]).to_bits(), 0);
}

#[test]
fn complex_norms_are_those_of_the_moduli() {
    let mut random = Random(6);
    for n in SIZES {
        for (low, high) in [(-20, 20), (-1074, -1040), (480, 1000), (-1074, 1000)] {
            let x: Vec<Complex<f64>> =
                (0..n).map(|_| Complex::new(random.float(low, high), random.float(low, high))).collect();
            let parts: Vec<f64> = x.iter().flat_map(|z| [z.re, z.im]).collect();
            let squares = Exact::sum_of_products(parts.iter().map(|&x| (x, x)));
            let error = squares.root().ulps(tree::reduce(&L2::<Complex<f64>>::new(), &x), F64);
            assert!(error <= 1.0, "{n} items: off by {error} units");
            let modulus =
                |z: &Complex<f64>| Exact::sum_of_products([(z.re, z.re), (z.im, z.im)]).root().nearest(F64);
            if n <= 1000 {
                let moduli: Vec<f64> = x.iter().map(modulus).collect();
                let greatest = moduli.iter().fold(0.0f64, |a, &b| a.max(b));
                let linf = tree::reduce(&Linf::<Complex<f64>>::new(), &x);
                assert!(
                    (linf - greatest).abs() <= 2.0 * greatest * f64::EPSILON
                        || (linf - greatest).abs() <= 5e-324
                );
                let error = Exact::sum(moduli).ulps(tree::reduce(&L1::<Complex<f64>>::new(), &x), F64);
                assert!(error <= 2.0 || low == -1074, "{n} items: 1-norm off by {error} units");
            }
        }
        let x: Vec<Complex<f32>> = (0..n)
            .map(|_| Complex::new(random.float(-40, 100) as f32, random.float(-40, 100) as f32))
            .collect();
        let squares =
            Exact::sum_of_products(x.iter().flat_map(|z| [z.re, z.im]).map(|x| (f64::from(x), f64::from(x))));
        assert!(squares.root().ulps(tree::reduce(&L2::<Complex<f32>>::new(), &x).into(), F32) <= 0.5001);
        let sum = tree::reduce(&SumSquares::<Complex<f32>>::new(), &x);
        assert!(if squares.nearest(F32).is_infinite() {
            sum.is_infinite()
        } else {
            squares.ulps(sum.into(), F32) <= 0.5001
        });
    }
    assert_eq!(tree::reduce(&Linf::<Complex<f64>>::new(), &[Complex::new(3e300, -4e300)]), 5e300);
    assert_eq!(
        tree::reduce(&Linf::<Complex<f64>>::new(), &[Complex::new(f64::NEG_INFINITY, 1.0)]),
        f64::INFINITY
    );
}

#[test]
fn complex_dot_products_are_not_conjugated() {
    let mut random = Random(7);
    for n in SIZES.into_iter().filter(|&n| n > 0) {
        let mut number = || Complex::new(random.float(-3, 3), random.float(-3, 3));
        let pairs: Vec<[Complex<f64>; 2]> = (0..n).map(|_| [number(), number()]).collect();
        let re = Exact::sum_of_products(pairs.iter().flat_map(|[a, b]| [(a.re, b.re), (-a.im, b.im)]));
        let im = Exact::sum_of_products(pairs.iter().flat_map(|[a, b]| [(a.re, b.im), (a.im, b.re)]));
        let dot = tree::reduce(&Dot::<Complex<f64>>::new(), &parts(&pairs));
        assert!(re.ulps(dot.re, F64) <= 1.0 && im.ulps(dot.im, F64) <= 1.0, "{n} pairs");
        let pairs: Vec<[Complex<f32>; 2]> =
            pairs.iter().map(|pair| pair.map(|z| Complex::new((z.re as f32).abs(), z.im as f32))).collect();
        let im = Exact::sum_of_products(
            pairs
                .iter()
                .flat_map(|[a, b]| [(f64::from(a.re), f64::from(b.im)), (f64::from(a.im), f64::from(b.re))]),
        );
        let dot = tree::reduce(&Dot::<Complex<f32>>::new(), &parts(&pairs));
        assert!(im.ulps(dot.im.into(), F32) <= 0.51, "{n} pairs");
    }
    let i = Complex::new(0.0, 1.0);
    assert_eq!(tree::reduce(&Dot::<Complex<f64>>::new(), &parts(&[[i, i]])), Complex::new(-1.0, 0.0));
}

/// The operator in front of which squares are taken twice would be found out here.
#[test]
fn squares_are_taken_once() {
    let op = SumSquares::<i32>::new();
    let acc = op.combine(op.lift(3, 0), op.lift(4, 1));
    assert_eq!(op.finish(op.combine(acc, op.lift(5, 2))), 50);
    assert_eq!(op.finish(op.push(acc, 5, 2)), 50);
}

/// Passing over a NaN leaves every bit as it is.
#[test]
fn what_ignores_nans_has_the_bits_of_the_others() {
    let op = IgnoreNan(L2::<f64>::new());
    let mut random = Random(6);
    let numbers: Vec<f64> = f64::specials().into_iter().filter(|x| x.is_finite()).collect();
    for case in 0..500 {
        let mut item = || match random.below(4) {
            0 => numbers[random.below(numbers.len())],
            _ => random.float([-1000, -3][case % 2], [1000, 3][case % 2]),
        };
        let x: Vec<f64> = (0..20).map(|_| item()).collect();
        let mut with = op.lift(x[0], 0);
        let mut without = with;
        for (&item, nan) in x[1..].iter().zip(f64::nans().into_iter().cycle()) {
            with = op.push(op.push(with, item, 0), nan, 0);
            without = op.push(without, item, 0);
        }
        assert_eq!(crate::data::bytes(&with), crate::data::bytes(&without), "{x:?}");
    }
}
