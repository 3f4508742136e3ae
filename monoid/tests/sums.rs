//! Sums and products of every number type.

use crate::data::{Probe, Random, SIZES, narrowed};
use crate::exact::{BF16, Exact, F16, F32, F64, Format};
use half::{bf16, f16};
use num_complex::Complex;
use warpfold_monoid::{
    DoubleDouble, Float, IgnoreNan, Integer, MaybeNan, NanProduct, NanSum, Number, Product,
    ProductAccumulator, Sum, SumAccumulator, tree,
};

fn integers<T: Probe + Integer>()
where
    T::SumAcc: SumAccumulator<T, Output = T>,
{
    let mut random = Random(1);
    for n in SIZES {
        let any: Vec<T> = (0..n).map(|_| T::of_bits(random.bits())).collect();
        let odd: Vec<T> = (0..n).map(|_| T::of_bits(random.bits() | 1)).collect();
        for x in [any, odd, vec![T::LOWEST; n], vec![T::HIGHEST; n]] {
            let sum = x.iter().fold(0u64, |sum, x| sum.wrapping_add(x.to_i128() as u64));
            let product = x.iter().fold(1u64, |product, x| product.wrapping_mul(x.to_i128() as u64));
            assert_eq!(tree::reduce(&Sum::<T>::new(), &x), T::wrap(sum), "{n} items");
            assert_eq!(tree::reduce(&Product::<T>::new(), &x), T::wrap(product), "{n} items");
            assert_eq!(tree::reduce(&Sum::<T, T::Wide>::new(), &x).bits(), sum, "{n} items");
            assert_eq!(tree::reduce(&Product::<T, T::Wide>::new(), &x).bits(), product, "{n} items");
        }
    }
}

#[test]
fn integers_wrap_in_their_own_width_or_in_64_bits() {
    integers::<i8>();
    integers::<u8>();
    integers::<i16>();
    integers::<u16>();
    integers::<i32>();
    integers::<u32>();
    integers::<i64>();
    integers::<u64>();
}

fn narrow<T: Probe + Float + MaybeNan>(format: Format)
where
    DoubleDouble: SumAccumulator<T, Output = T>,
{
    let mut random = Random(2);
    for n in SIZES {
        for (low, high) in [
            (0, 0),
            (format.least as i32, format.end as i32 - 2),
            (format.least as i32, format.least as i32 + 2),
        ] {
            let x: Vec<T> = narrowed((0..n).map(|_| random.float(low, high)));
            let exact = Exact::sum(x.iter().map(|x| x.to_f64()));
            // In double-double the exact sum is rounded correctly.
            let right = tree::reduce(&Sum::<T, DoubleDouble>::new(), &x);
            assert_eq!(right.to_f64(), exact.nearest(format), "{n} items");
            let sum = tree::reduce(&Sum::<T>::new(), &x).to_f64();
            if sum.is_finite() {
                // The condition number is what remains between f64 and the type.
                let magnitudes = x.iter().map(|x| x.to_f64().abs()).sum::<f64>();
                let error = (sum - exact.nearest(F64)).abs();
                assert!(exact.ulps(sum, format) <= 0.5001 || error <= magnitudes * 1e-14, "{n} items");
            }
            let some: Vec<T> =
                x.iter().enumerate().map(|(i, &x)| if i % 3 == 1 { T::NAN } else { x }).collect();
            let rest: Vec<T> = some.iter().map(|&x| if x.nan() { T::ZERO } else { x }).collect();
            let skipped = tree::reduce(&NanSum::<T>::new(), &some);
            assert_eq!(Probe::to_bits(skipped), Probe::to_bits(tree::reduce(&Sum::<T>::new(), &rest)));
            let ignored = tree::reduce(&IgnoreNan(Sum::<T>::new()), &some).to_f64();
            assert_eq!(ignored, skipped.to_f64());
        }
    }
}

#[test]
fn narrow_sums_round_once() {
    narrow::<f16>(F16);
    narrow::<bf16>(BF16);
    narrow::<f32>(F32);
    // FR01: partial sums beyond the type.
    let x: Vec<f16> = narrowed([32000.0; 4].into_iter().chain([-32000.0; 4]));
    assert_eq!(tree::reduce(&Sum::<f16>::new(), &x).to_bits(), 0);
    let x = [f16::ONE; 8193];
    assert_eq!(tree::reduce(&Sum::<f16>::new(), &x).to_f32(), 8192.0);
    let x = [f16::from_f32(-0.0); 33];
    assert_eq!(tree::reduce(&Sum::<f16>::new(), &x).to_bits(), 0x8000);
    assert_eq!(tree::reduce(&Sum::<bf16>::new(), &[bf16::MAX; 2]), bf16::INFINITY);
}

#[test]
fn special_items_in_sums_and_products() {
    fn one<T: Probe + Float + MaybeNan>() {
        let nan = Probe::to_bits(T::NAN);
        for n in [1, 2, 3, 33, 1000] {
            for &bad in &T::nans() {
                for place in [0, n / 2, n - 1] {
                    let mut x = vec![T::ONE; n];
                    x[place] = bad;
                    assert_eq!(Probe::to_bits(tree::reduce(&Sum::<T>::new(), &x)), nan);
                    assert_eq!(Probe::to_bits(tree::reduce(&Product::<T>::new(), &x)), nan);
                    assert_eq!(tree::reduce(&NanProduct::<T>::new(), &x).to_f64(), 1.0);
                    assert_eq!(
                        tree::reduce(&NanSum::<T>::new(), &x).to_f64(),
                        T::of_f64(n as f64 - 1.0).to_f64()
                    );
                }
            }
            let all = vec![T::nans()[0]; n];
            assert_eq!(Probe::to_bits(tree::reduce(&NanSum::<T>::new(), &all)), 0);
            assert_eq!(tree::reduce(&IgnoreNan(Sum::<T>::new()), &all).to_f64(), 0.0);
            assert_eq!(tree::reduce(&IgnoreNan(Product::<T>::new()), &all).to_f64(), 1.0);
        }
        let both = [T::HIGHEST, T::LOWEST];
        assert_eq!(Probe::to_bits(tree::reduce(&Sum::<T>::new(), &both)), nan);
        assert_eq!(Probe::to_bits(tree::reduce(&NanSum::<T>::new(), &both)), nan);
        assert_eq!(Probe::to_bits(tree::reduce(&Product::<T>::new(), &[T::ZERO, T::HIGHEST])), nan);
        assert_eq!(tree::reduce(&Product::<T>::new(), &both).to_f64(), f64::NEG_INFINITY);
        assert_eq!(tree::reduce(&Sum::<T>::new(), &[T::HIGHEST, T::ONE]).to_f64(), f64::INFINITY);
        assert_eq!(
            (tree::reduce(&Sum::<T>::new(), &[]).to_f64(), tree::reduce(&Product::<T>::new(), &[]).to_f64()),
            (0.0, 1.0)
        );
    }
    one::<f16>();
    one::<bf16>();
    one::<f32>();
    one::<f64>();
}

#[test]
fn complex_numbers_sum_by_part_and_multiply() {
    fn parts<T: Float>(x: &[Complex<T>], part: fn(&Complex<T>) -> T) -> Exact {
        Exact::sum(x.iter().map(|z| part(z).to_f64()))
    }
    let mut random = Random(3);
    for n in SIZES {
        let x: Vec<Complex<f64>> =
            (0..n).map(|_| Complex::new(random.float(-20, 20), random.float(-200, 200))).collect();
        let sum = tree::reduce(&Sum::<Complex<f64>>::new(), &x);
        assert!(parts(&x, |z| z.re).ulps(sum.re, F64) <= 1.0 && parts(&x, |z| z.im).ulps(sum.im, F64) <= 1.0);
        let x: Vec<Complex<f32>> = x.iter().map(|z| Complex::new(z.re.abs() as f32, 1.0)).collect();
        let sum = tree::reduce(&Sum::<Complex<f32>>::new(), &x);
        assert!(parts(&x, |z| z.re).ulps(sum.re.into(), F32) <= 0.5001);
        assert_eq!(sum.im, n as f32);
        // X03: i^n.
        let i = vec![Complex::new(0.0f32, 1.0); n];
        let expected = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)][n % 4];
        let product = tree::reduce(&Product::<Complex<f32>>::new(), &i);
        assert_eq!((product.re, product.im), expected, "{n} items");
        let product = tree::reduce(&Product::<Complex<f64>>::new(), &vec![Complex::new(0.0, 1.0); n]);
        assert_eq!((product.re as f32, product.im as f32), expected, "{n} items");
    }
    let nan =
        tree::reduce(&Sum::<Complex<f64>>::new(), &[Complex::new(-f64::NAN, 1.0), Complex::new(1.0, 2.0)]);
    assert_eq!((nan.re.to_bits(), nan.im), (f64::NAN.to_bits(), 3.0));
    let data = [Complex::new(f64::NAN, 1.0), Complex::new(1.0, 2.0), Complex::new(5.0, f64::NAN)];
    assert_eq!(tree::reduce(&IgnoreNan(Sum::<Complex<f64>>::new()), &data), Complex::new(1.0, 2.0));
    assert_eq!(tree::reduce(&Sum::<Complex<f64>>::new(), &[]), Complex::new(0.0, 0.0));
    assert_eq!(tree::reduce(&Product::<Complex<f64>>::new(), &[]), Complex::new(1.0, 0.0));
    // Minus zeros stay (Z04).
    let x = [Complex::new(1.5f32, -0.0); 33];
    assert_eq!(tree::reduce(&Sum::<Complex<f32>>::new(), &x).im.to_bits(), (-0.0f32).to_bits());
}

#[test]
fn accumulators_are_those_that_are_written_down() {
    fn same<A: 'static, B: 'static>() -> bool {
        std::any::TypeId::of::<A>() == std::any::TypeId::of::<B>()
    }
    assert!(same::<<f16 as Number>::SumAcc, f64>() && same::<<bf16 as Number>::SumAcc, f64>());
    assert!(same::<<f32 as Number>::SumAcc, f64>() && same::<<f64 as Number>::SumAcc, DoubleDouble>());
    assert!(same::<<i8 as Number>::SumAcc, i8>() && same::<<u64 as Number>::ProductAcc, u64>());
    assert!(same::<<f64 as Number>::ProductAcc, f64>() && same::<<f16 as Number>::ProductAcc, f64>());
    assert!(same::<<Complex<f64> as Number>::SumAcc, Complex<DoubleDouble>>());
    let wide: f64 = ProductAccumulator::<f16>::lift(f16::MAX);
    assert_eq!(wide, 65504.0);
}
