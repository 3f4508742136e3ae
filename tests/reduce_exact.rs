//! Against exact arithmetic: f32 sums must equal the correctly rounded sum and f64 sums be within one unit in the last
//! place, at condition numbers up to 2^25 and 2^50; integers must wrap as whole numbers modulo a power of two do.

use num_bigint::BigInt;
use warpfold::{DoubleDouble, Engine, Monoid, Number, Product, Sum};

use crate::support::{
    Bits, Random, engines,
    exact::{Exact, error_in_ulps, nearest_f32},
    sizes, takes,
};

/// Values that nearly cancel in pairs: their magnitudes add up to about `2^condition` times their sum. Exponents range
/// over `range` either way.
fn ill_conditioned(n: usize, condition: i32, range: i32, narrow: impl Fn(f64) -> f64, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    let mut values = Vec::with_capacity(n);
    if n % 2 == 1 {
        values.push(narrow((0.5 + random.unit()) * 2f64.powi(-condition)));
    }
    while values.len() < n {
        let value = narrow(random.spread(range));
        let rest = value.abs() * (0.5 + random.unit()) * 2f64.powi(1 - condition);
        values.extend([value, narrow(rest - value)]);
    }
    random.shuffle(&mut values);
    values
}

/// Panics unless the data is what a test wants.
fn check_condition(values: &[f64], sum: &BigInt, wanted: i32, limit: f64) {
    let found = condition(values, sum);
    assert!(found < limit, "condition 2^{found:.1}");
    assert!(
        values.len() < 10 || found > wanted as f64 - 2.0,
        "{} items, condition 2^{found:.1}",
        values.len()
    );
}

/// The binary logarithm of the sum of magnitudes over the magnitude of the sum.
fn condition(values: &[f64], sum: &BigInt) -> f64 {
    let magnitudes = Exact::of(values.iter().map(|value| value.abs()));
    let log2 = |value: &BigInt| {
        let bits = value.magnitude().bits();
        let top = value.magnitude() >> bits.saturating_sub(60);
        (u64::try_from(top).unwrap() as f64).log2() + bits.saturating_sub(60) as f64
    };
    log2(&magnitudes) - log2(sum)
}

const SIZES: [usize; 10] = [1, 3, 10, 100, 1000, 2049, 8193, 20_000, 100_003, 600_000];

#[test]
fn f32_sums_are_correctly_rounded() {
    let engines = engines();
    for (k, wanted) in [0, 5, 10, 15, 20, 23].into_iter().enumerate() {
        for (j, n) in SIZES.into_iter().enumerate() {
            for range in [3, 30] {
                let seed = (k * 100 + j * 10) as u64 + range as u64;
                let values = ill_conditioned(n, wanted, range, |value| value as f32 as f64, seed);
                let sum = Exact::of(values.iter().copied());
                check_condition(&values, &sum, wanted, 25.0);
                let items: Vec<f32> = values.iter().map(|&value| value as f32).collect();
                check(&engines, Sum::<f32>::new(), &items, |result| {
                    assert_eq!(
                        result.to_bits(),
                        nearest_f32(&sum).to_bits(),
                        "{n} items, condition 2^{:.1}",
                        condition(&values, &sum)
                    );
                });
                check(&engines, Sum::<f32, DoubleDouble>::new(), &items, |result| {
                    assert_eq!(result.to_bits(), nearest_f32(&sum).to_bits(), "{n} items, exactly");
                });
            }
        }
    }
}

/// Sums next to the midpoint of two `f32`: what tips the balance is far below the last place of an `f64`.
#[test]
fn exact_f32_sums_are_correctly_rounded_next_to_midpoints() {
    let engines = engines();
    let ulp = f32::EPSILON;
    for exponent in [-100, -30, 0, 40] {
        let scale = 2f32.powi(exponent);
        for tip in [0.0, 2f32.powi(-90), -2f32.powi(-90), 2f32.powi(-60), -2f32.powi(-31)] {
            for base in [1.0, 1.0 + ulp, -1.0, 1.0 - ulp] {
                let tip = if exponent < 0 { tip * 2f32.powi(40) } else { tip };
                for n in [3, 100, 10_000] {
                    let mut items = vec![0.0; n];
                    items[0] = base * scale;
                    items[n / 2] = ulp / 2.0 * scale;
                    items[n - 1] = tip * scale;
                    let sum = Exact::of(items.iter().map(|&item| item as f64));
                    check(&engines, Sum::<f32, DoubleDouble>::new(), &items, |result| {
                        assert_eq!(result.to_bits(), nearest_f32(&sum).to_bits(), "{items:?}");
                    });
                }
            }
        }
    }
}

#[test]
fn f64_sums_are_within_one_unit_in_the_last_place() {
    let engines = engines();
    for (k, wanted) in [0, 10, 20, 30, 40, 48].into_iter().enumerate() {
        for (j, n) in SIZES.into_iter().enumerate() {
            for range in [3, 30, 300] {
                let seed = 7000 + (k * 100 + j * 10) as u64 + range as u64;
                let values = ill_conditioned(n, wanted, range, |value| value, seed);
                let sum = Exact::of(values.iter().copied());
                check_condition(&values, &sum, wanted, 50.0);
                check(&engines, Sum::<f64>::new(), &values, |result| {
                    let error = error_in_ulps(result, &sum);
                    assert!(
                        error <= 1.0,
                        "{n} items, condition 2^{:.1}: {error} units off",
                        condition(&values, &sum)
                    );
                });
            }
        }
    }
}

#[test]
fn exact_cancellation_is_exactly_zero() {
    let engines = engines();
    for n in [2, 100, 8192, 300_000] {
        let mut random = Random::new(n as u64);
        let mut values: Vec<f64> = (0..n / 2).map(|_| random.spread(10)).collect();
        values.extend(values.clone().iter().map(|value| -value));
        random.shuffle(&mut values);
        check(&engines, Sum::<f64>::new(), &values, |result| assert_eq!(result, 0.0, "{n} items"));
        let narrow: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        check(&engines, Sum::<f32>::new(), &narrow, |result| assert_eq!(result, 0.0, "{n} items"));
    }
}

fn check<Op: Monoid>(engines: &[Engine], op: Op, items: &[Op::Item], test: impl Fn(warpfold::Value<Op>)) {
    for engine in engines.iter().filter(|engine| takes(engine, items.len())) {
        test(engine.reducer(op).unwrap().reduce(items).unwrap());
    }
}

/// Sums and products of integers against whole numbers.
macro_rules! wraps {
    ($($name:ident: $item:ty => $acc:ty;)*) => {$(
        #[test]
        fn $name() {
            let engines = engines();
            let mut random = Random::new(3);
            let items: Vec<$item> = (0..300_000).map(|_| random.bits() as $item).collect();
            for n in sizes(size_of::<$item>(), items.len() as u64) {
                let items = &items[..n as usize];
                // Truncation of a whole number is its value modulo a power of two.
                let sum = items.iter().map(|&item| item as i128).sum::<i128>() as $acc;
                check(&engines, Sum::<$item, $acc>::new(), items, |r| assert_eq!(r, sum, "sum of {n}"));
            }
            for n in [0, 1, 2, 33, 1000, 10_000] {
                let items = &items[..n];
                let product = items.iter().fold(BigInt::from(1), |product, &item| {
                    (product * BigInt::from(item)) & BigInt::from(u64::MAX)
                });
                let product = u64::try_from(product).unwrap() as $acc;
                let op = Product::<$item, $acc>::new();
                check(&engines, op, items, |r| assert_eq!(r, product, "product of {n}"));
            }
        }
    )*};
}

wraps! {
    i32_wraps: i32 => i32;
    u32_wraps: u32 => u32;
    i64_wraps: i64 => i64;
    u64_wraps: u64 => u64;
    i32_widens: i32 => i64;
    u32_widens: u32 => u64;
}

/// Products of powers of two are exact, whatever the order.
#[test]
fn products_of_powers_of_two_are_exact() {
    let mut random = Random::new(5);
    let mut exponent = 0i32;
    let items: Vec<f64> = (0..100_000)
        .map(|_| {
            let step = if exponent > 20 {
                -1
            } else if exponent < -20 {
                1
            } else {
                random.below(3) as i32 - 1
            };
            exponent += step;
            2f64.powi(step)
        })
        .collect();
    for n in [1, 10, 1000, 8193, items.len()] {
        let expected = 2f64.powi(items[..n].iter().map(|item| item.log2() as i32).sum());
        check(&engines(), Product::<f64>::new(), &items[..n], |r| assert_eq!(r.bits(), expected.bits()));
    }
}

#[test]
fn the_default_accumulators_are_those_documented() {
    fn same<A: 'static, B: 'static>() -> bool {
        std::any::TypeId::of::<A>() == std::any::TypeId::of::<B>()
    }
    assert!(same::<<f32 as Number>::SumAcc, f64>());
    assert!(same::<<f64 as Number>::SumAcc, warpfold::DoubleDouble>());
    assert!(same::<<i32 as Number>::SumAcc, i32>());
}
