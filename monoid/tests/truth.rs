//! Bits and truth values, against plain folds.

use crate::data::{Probe, Random, SIZES, lists};
use half::{bf16, f16};
use num_complex::Complex;
use warpfold_monoid::{All, And, Any, Bits, Count, CountIf, Map, MapFn, Or, Plain, Truth, Xor, tree};

fn bitwise<T: Probe + Bits>() {
    let mut random = Random(1);
    let mask = T::ONES.to_bits();
    for n in SIZES {
        for x in lists::<T>(n, &mut random) {
            let bits = || x.iter().map(|x| x.to_bits());
            assert_eq!(tree::reduce(&And::<T>::new(), &x).to_bits(), bits().fold(mask, |a, b| a & b));
            assert_eq!(tree::reduce(&Or::<T>::new(), &x).to_bits(), bits().fold(0, |a, b| a | b));
            assert_eq!(tree::reduce(&Xor::<T>::new(), &x).to_bits(), bits().fold(0, |a, b| a ^ b));
        }
    }
}

#[test]
fn bits_of_every_type() {
    bitwise::<i8>();
    bitwise::<u8>();
    bitwise::<i16>();
    bitwise::<u16>();
    bitwise::<i32>();
    bitwise::<u32>();
    bitwise::<i64>();
    bitwise::<u64>();
    bitwise::<bool>();
    assert_eq!((tree::reduce(&And::<i32>::new(), &[]), tree::reduce(&And::<bool>::new(), &[])), (-1, true));
}

fn truths<T: Probe + Truth>() {
    let mut random = Random(2);
    let zeros: Vec<T> = T::specials().into_iter().filter(|x| is_zero(*x)).collect();
    let check = |x: &[T]| {
        let count = x.iter().filter(|x| !is_zero(**x)).count();
        assert_eq!(tree::reduce(&Count::<T>::new(), x), count as u64);
        assert_eq!(tree::reduce(&All::<T>::new(), x), count == x.len());
        assert_eq!(tree::reduce(&Any::<T>::new(), x), count > 0);
    };
    for n in SIZES {
        lists::<T>(n, &mut random).iter().for_each(|list| check(list));
        // Zeros of either sign, and one that is none at every end.
        let mut x: Vec<T> = (0..n).map(|_| zeros[random.below(zeros.len())]).collect();
        check(&x);
        for place in [0, n / 2, n.saturating_sub(1)] {
            if n > 0 {
                for special in T::specials().into_iter().chain(T::nans()).take(if n > 1000 { 4 } else { 99 })
                {
                    let zero = std::mem::replace(&mut x[place], special);
                    check(&x);
                    x[place] = zero;
                }
            }
        }
    }
}

/// Has the value nothing but a sign?
fn is_zero<T: Probe>(x: T) -> bool {
    let zero = T::of_bits(0);
    !x.nan()
        && (x.to_bits() == 0 || (!T::nans().is_empty() && x.to_bits() == 1 << (8 * size_of_val(&zero) - 1)))
}

#[test]
fn everything_but_zero_counts() {
    truths::<i8>();
    truths::<u8>();
    truths::<i16>();
    truths::<u16>();
    truths::<i32>();
    truths::<u32>();
    truths::<i64>();
    truths::<u64>();
    truths::<bool>();
    truths::<f16>();
    truths::<bf16>();
    truths::<f32>();
    truths::<f64>();
    let z = [Complex::new(0.0, -0.0), Complex::new(0.0, 1e-320), Complex::new(f64::NAN, 0.0)];
    assert_eq!(tree::reduce(&Count::<Complex<f64>>::new(), &z), 2);
    assert!(tree::reduce(&Any::<Complex<f64>>::new(), &z) && !tree::reduce(&All::<Complex<f64>>::new(), &z));
}

#[test]
fn nothing() {
    assert!(tree::reduce(&All::<f32>::new(), &[]) && !tree::reduce(&Any::<f32>::new(), &[]));
    assert_eq!(tree::reduce(&Count::<u8>::new(), &[]), 0);
}

#[test]
fn counts_of_a_predicate_see_the_index() {
    #[repr(C)]
    #[derive(Clone, Copy, Plain)]
    struct Before {
        end: u64,
        value: u32,
        rest: u32,
    }
    impl MapFn for Before {
        type From = u32;
        type To = bool;
        fn map(&self, from: u32, index: u64) -> bool {
            index < self.end && from % self.value == self.rest
        }
    }
    for n in SIZES {
        let x: Vec<u32> = (0..n as u32).collect();
        let op: CountIf<Before> = Map::new(Count::new(), Before { end: 5000, value: 7, rest: 3 });
        let expected = (0..n.min(5000)).filter(|i| i % 7 == 3).count();
        assert_eq!(tree::reduce(&op, &x), expected as u64);
    }
}
