//! The logarithm of a sum of exponentials, against the same taken in two passes: the maximum first, then a sorted and
//! compensated sum.

use crate::data::{Probe, Random, SIZES, narrowed};
use half::{bf16, f16};
use warpfold_monoid::{Float, IgnoreNan, LogSumExp, Monoid, tree};

fn oracle(x: &[f64]) -> f64 {
    if x.iter().any(|x| x.is_nan()) {
        return f64::NAN;
    }
    let greatest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if greatest.is_infinite() {
        return greatest;
    }
    let mut terms: Vec<f64> = x.iter().map(|x| (x - greatest).exp()).collect();
    terms.sort_by(f64::total_cmp);
    let (mut sum, mut lost) = (0.0, 0.0);
    for term in terms {
        let next: f64 = sum + term;
        lost += if sum > term { (sum - next) + term } else { (term - next) + sum };
        sum = next;
    }
    greatest + (sum + lost).ln()
}

fn check(what: &str, x: &[f64]) {
    let (result, expected) = (tree::reduce(&LogSumExp::<f64>::new(), x), oracle(x));
    let error = (result - expected).abs();
    assert!(
        result.to_bits() == expected.canonical_bits() || error <= 4e-16 * expected.abs() + 4e-15,
        "{what}, {} items: {result:e}, should be {expected:e}",
        x.len()
    );
}

trait CanonicalBits {
    fn canonical_bits(self) -> u64;
}

impl CanonicalBits for f64 {
    fn canonical_bits(self) -> u64 {
        if self.is_nan() { f64::NAN.to_bits() } else { self.to_bits() }
    }
}

#[test]
fn sums_of_exponentials() {
    let mut random = Random(1);
    for n in SIZES {
        for (what, low, high) in [
            ("around 0", -2, 1),
            ("up to 1e4", 5, 13),
            ("any", -1074, 1023),
            ("up to 50", -3, 5),
            ("far under 0", 9, 9),
        ] {
            let mut x: Vec<f64> = (0..n).map(|_| random.float(low, high)).collect();
            check(what, &x);
            x.sort_by(f64::total_cmp);
            check(what, &x);
            x.reverse();
            check(what, &x);
            x.iter_mut().for_each(|x| *x = -x.abs());
            check(what, &x);
            for i in (0..n).step_by(3) {
                x[i] = f64::NEG_INFINITY;
            }
            check(what, &x);
        }
        check("all -1000", &vec![-1000.0; n]);
        check("all 1e300", &vec![1e300; n]);
        check("all -inf", &vec![f64::NEG_INFINITY; n]);
        check("all inf", &vec![f64::INFINITY; n]);
    }
}

#[test]
fn special_items_wherever_they_stand() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    for n in [1, 2, 3, 31, 32, 33, 1000] {
        for place in [0, n / 2, n - 1] {
            for other in [0.0, -inf, 1e4, inf] {
                let mut x = vec![other; n];
                for bad in [inf, nan, -nan, f64::from_bits(0x7ff0_0000_0000_0001)] {
                    x[place] = bad;
                    check("one special item", &x);
                    x[n - 1 - place] = inf;
                    check("and an infinity", &x);
                    x[n - 1 - place] = other;
                }
            }
        }
    }
    let op = LogSumExp::<f64>::new();
    assert_eq!(tree::reduce(&op, &[]), -inf);
    assert_eq!(op.finish_empty(), -inf);
    // One item is itself, to the bit.
    for x in f64::specials() {
        assert_eq!(tree::reduce(&op, &[x]), x, "{x:e}");
    }
    let ignoring = IgnoreNan(op);
    assert_eq!(tree::reduce(&ignoring, &[nan, nan]), -inf);
    assert_eq!(tree::reduce(&ignoring, &[nan, 2.0, nan]), 2.0);
    assert_eq!(tree::reduce(&ignoring, &[nan, -inf, nan]), -inf);
    assert_eq!(tree::reduce(&ignoring, &[nan, -inf, 3.0, inf]), inf);
}

/// IA03 and the like in narrow types: the result is the `f64` one, rounded.
#[test]
fn narrow_floats() {
    fn one<T: Probe + Float>(high: i32, tolerance: f64) {
        let mut random = Random(2);
        for n in SIZES {
            let mut x: Vec<T> = narrowed((0..n).map(|_| random.float(-3, high)));
            for round in 0..2 {
                let expected = oracle(&x.iter().map(|x| x.to_f64()).collect::<Vec<_>>());
                let result = tree::reduce(&LogSumExp::<T>::new(), &x).to_f64();
                let error = (result - expected).abs();
                let fits = T::of_f64(expected).to_f64();
                assert!(
                    result == fits || error <= tolerance * expected.abs(),
                    "{n} items, {round}: {result} {expected}"
                );
                x.iter_mut().step_by(2).for_each(|x| *x = T::LOWEST);
            }
        }
        assert_eq!(tree::reduce(&LogSumExp::<T>::new(), &[T::LOWEST; 5]).to_f64(), f64::NEG_INFINITY);
        let infinite = [T::HIGHEST, T::ONE];
        assert_eq!(tree::reduce(&LogSumExp::<T>::new(), &infinite).to_f64(), f64::INFINITY);
    }
    one::<f16>(14, 2f64.powi(-11));
    one::<bf16>(14, 2f64.powi(-8));
    one::<f32>(14, 2f64.powi(-24));
}
