//! What is special: no items, one item, NaN, signed zeros, infinities. On every backend, with the odd item at every
//! place that matters.

use warpfold::{Engine, Max, Min, NanMax, NanMin, NanProduct, NanSum, Product, Sum};

use crate::support::{Bits, engines};

fn reduce<Op: warpfold::Monoid>(engine: &Engine, op: Op, items: &[Op::Item]) -> warpfold::Value<Op> {
    engine.reducer(op).unwrap().reduce(items).unwrap()
}

#[test]
fn nothing_and_one_thing() {
    for engine in engines() {
        assert_eq!(reduce(&engine, Sum::<f32>::new(), &[]).bits(), 0f32.bits());
        assert_eq!(reduce(&engine, Product::<i64>::new(), &[]), 1);
        assert_eq!(reduce(&engine, Min::<i32>::new(), &[]), None);
        assert_eq!(reduce(&engine, Max::<f64>::new(), &[]), None);
        assert_eq!(reduce(&engine, NanMin::<f64>::new(), &[]), None);
        assert_eq!(reduce(&engine, NanSum::<f64>::new(), &[]).bits(), 0f64.bits());
        assert_eq!(reduce(&engine, NanProduct::<f32>::new(), &[]), 1.0);
        assert_eq!(reduce(&engine, Sum::<f64>::new(), &[-0.0]).bits(), (-0f64).bits());
        assert_eq!(reduce(&engine, Sum::<f32>::new(), &[-0.0]).bits(), (-0f32).bits());
        assert_eq!(reduce(&engine, Max::<u64>::new(), &[7]), Some(7));
        assert_eq!(reduce(&engine, Product::<f64>::new(), &[f64::MIN_POSITIVE]), f64::MIN_POSITIVE);
    }
}

/// Places of an array of `n` items where one that is lost or read twice would show.
fn places(n: usize) -> Vec<usize> {
    let mut places: Vec<usize> =
        [0, 1, 3, 4, 31, 127, 2047, 8191, 8192, n / 2].into_iter().chain([n - 2, n - 1]).collect();
    places.retain(|&place| place < n);
    places
}

const SIZES: [usize; 6] = [2, 33, 1000, 8192, 8193, 100_000];

macro_rules! nan_rules {
    ($($name:ident, $type:ident;)*) => {$(
        #[test]
        fn $name() {
            // A payload and a sign that must not come through.
            let odd = -$type::from_bits($type::NAN.to_bits() | 12345);
            assert!(odd.is_nan());
            let canonical = Some($type::NAN).bits();
            for engine in engines() {
                for n in SIZES {
                    for place in places(n) {
                        let mut items: Vec<$type> = (0..n).map(|i| (i % 100) as $type + 1.0).collect();
                        items[place] = odd;
                        let what = format!("NaN at {place} of {n} on {}", engine.backend());
                        assert_eq!(reduce(&engine, Sum::<$type>::new(), &items).bits(), canonical, "sum, {what}");
                        assert_eq!(reduce(&engine, Product::<$type>::new(), &items).bits(), canonical, "product, {what}");
                        assert_eq!(reduce(&engine, Min::<$type>::new(), &items).bits(), canonical, "min, {what}");
                        assert_eq!(reduce(&engine, Max::<$type>::new(), &items).bits(), canonical, "max, {what}");
                        let rest = || items.iter().copied().filter(|item| !item.is_nan());
                        let least = rest().fold($type::INFINITY, |a, b| if b < a { b } else { a });
                        let greatest = rest().fold(0.0, |a, b| if b > a { b } else { a });
                        // Whole numbers: exact in any order.
                        let sum = rest().map(|item| item as i64).sum::<i64>() as $type;
                        assert_eq!(reduce(&engine, NanMin::<$type>::new(), &items), Some(least), "{what}");
                        assert_eq!(reduce(&engine, NanMax::<$type>::new(), &items), Some(greatest), "{what}");
                        assert_eq!(reduce(&engine, NanSum::<$type>::new(), &items), sum, "{what}");
                    }
                    let all = vec![odd; n];
                    assert_eq!(reduce(&engine, NanMin::<$type>::new(), &all).bits(), canonical);
                    assert_eq!(reduce(&engine, NanMax::<$type>::new(), &all).bits(), canonical);
                    assert_eq!(reduce(&engine, NanSum::<$type>::new(), &all).bits(), Some((0.0 as $type).to_bits() as u64));
                    assert_eq!(reduce(&engine, NanProduct::<$type>::new(), &all), 1.0);
                }
            }
        }
    )*};
}

nan_rules! {
    nan_f32, f32;
    nan_f64, f64;
}

#[test]
fn zeros_keep_their_order_and_sign() {
    for engine in engines() {
        for n in SIZES {
            for place in places(n) {
                let mut items = vec![0.0f64; n];
                items[place] = -0.0;
                assert_eq!(reduce(&engine, Min::<f64>::new(), &items).bits(), (-0f64).bits());
                assert_eq!(reduce(&engine, Max::<f64>::new(), &items).bits(), 0f64.bits());
                assert_eq!(reduce(&engine, Sum::<f64>::new(), &items).bits(), 0f64.bits());
                let mut items = vec![-0.0f32; n];
                items[place] = 0.0;
                assert_eq!(reduce(&engine, Min::<f32>::new(), &items).bits(), (-0f32).bits());
                assert_eq!(reduce(&engine, Max::<f32>::new(), &items).bits(), 0f32.bits());
                assert_eq!(reduce(&engine, Sum::<f32>::new(), &items).bits(), 0f32.bits());
            }
            assert_eq!(reduce(&engine, Sum::<f64>::new(), &vec![-0.0; n]).bits(), (-0f64).bits());
            assert_eq!(reduce(&engine, Sum::<f32>::new(), &vec![-0.0; n]).bits(), (-0f32).bits());
        }
    }
}

#[test]
fn infinities() {
    for engine in engines() {
        for n in SIZES {
            for place in places(n) {
                let mut items = vec![1.0f64; n];
                items[place] = f64::NEG_INFINITY;
                assert_eq!(reduce(&engine, Sum::<f64>::new(), &items), f64::NEG_INFINITY);
                assert_eq!(reduce(&engine, Min::<f64>::new(), &items), Some(f64::NEG_INFINITY));
                assert_eq!(reduce(&engine, Max::<f64>::new(), &items), Some(1.0));
                items[(place + 1) % n] = f64::INFINITY;
                assert_eq!(reduce(&engine, Sum::<f64>::new(), &items).bits(), f64::NAN.bits());
            }
        }
        assert_eq!(reduce(&engine, Sum::<f32>::new(), &[f32::MAX, f32::MAX]), f32::INFINITY);
        // In f64 on the way, back within range at the end.
        assert_eq!(reduce(&engine, Sum::<f32>::new(), &[f32::MAX, f32::MAX, -f32::MAX]), f32::MAX);
        assert_eq!(reduce(&engine, Min::<f32>::new(), &[f32::INFINITY]), Some(f32::INFINITY));
    }
}
