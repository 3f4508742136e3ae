//! Checked sums and products against big integers.

use crate::data::{Probe, Random, SIZES};
use num_bigint::BigInt;
use warpfold_monoid::{CheckedProduct, CheckedSum, Integer, Monoid, Overflow, tree};

fn sums<T: Probe + Integer>() {
    let mut random = Random(1);
    let (specials, bits) = (T::specials(), 8 * size_of::<T>() as u32);
    for n in SIZES {
        let any: Vec<T> = (0..n).map(|_| T::of_bits(random.bits())).collect();
        let few: Vec<T> = (0..n).map(|_| specials[random.below(specials.len())]).collect();
        // Partial sums far beyond the type, the whole within it: the second half takes the first one back.
        let mut back = any.clone();
        let (first, second) = back.split_at_mut(n / 2);
        second.iter_mut().zip(first.iter()).for_each(|(x, y)| *x = T::wrap(!y.bits()));
        for x in [any, few, back, vec![T::LOWEST; n], vec![T::HIGHEST; n], vec![T::wrap(1); n]] {
            let exact: i128 = x.iter().map(|x| x.to_i128()).sum();
            let fits = (T::LOWEST.to_i128()..=T::HIGHEST.to_i128()).contains(&exact);
            match tree::reduce(&CheckedSum::<T>::new(), &x) {
                Ok(sum) => assert!(fits && sum.to_i128() == exact, "{n} items: {sum:?}, should be {exact}"),
                Err(error) => {
                    assert!(!fits);
                    assert_eq!(error, Overflow { exact: Some(exact), bits });
                }
            }
        }
    }
    let one = T::wrap(1);
    assert!(tree::reduce(&CheckedSum::<T>::new(), &[T::HIGHEST, one]).is_err());
    assert_eq!(tree::reduce(&CheckedSum::<T>::new(), &[T::HIGHEST]), Ok(T::HIGHEST));
    assert_eq!(tree::reduce(&CheckedSum::<T>::new(), &[T::LOWEST]), Ok(T::LOWEST));
    assert_eq!(tree::reduce(&CheckedSum::<T>::new(), &[]), Ok(T::wrap(0)));
}

#[test]
fn sums_are_right_or_overflow() {
    sums::<i8>();
    sums::<u8>();
    sums::<i16>();
    sums::<u16>();
    sums::<i32>();
    sums::<u32>();
    sums::<i64>();
    sums::<u64>();
}

fn product_is_right<T: Probe + Integer>(x: &[T]) {
    // Without zeros the exact product is as long as all factors together: enough is known from 200 bits on.
    let zero = x.iter().any(|x| x.to_i128() == 0);
    let mut exact = BigInt::from(if zero { 0 } else { 1 });
    let mut huge = false;
    for x in x.iter().filter(|_| !zero) {
        let negative = x.to_i128() < 0;
        exact = if huge { if negative { -exact } else { exact } } else { exact * x.to_i128() };
        huge |= exact.bits() > 200;
    }
    let fits = exact >= T::LOWEST.to_i128().into() && exact <= T::HIGHEST.to_i128().into();
    let op = CheckedProduct::<T>::new();
    let mut reversed = x.to_vec();
    reversed.reverse();
    for x in [x, &reversed] {
        match tree::reduce(&op, x) {
            Ok(product) => {
                assert!(fits && exact == product.to_i128().into(), "{x:?}: {product:?}, should be {exact}")
            }
            Err(error) => {
                assert!(!fits, "{x:?}");
                let known = error.exact.map(BigInt::from);
                assert!(known.as_ref().is_none_or(|known| *known == exact), "{x:?}: {error}");
                assert!(known.is_some() || exact.bits() > 64, "{x:?}: {error}, it is {exact}");
                assert_eq!(error.bits, 8 * size_of::<T>() as u32);
            }
        }
    }
}

fn products<T: Probe + Integer>() {
    let mut random = Random(2);
    let specials = T::specials();
    for n in SIZES.into_iter().filter(|&n| n <= 8193) {
        let any: Vec<T> = (0..n).map(|_| T::of_bits(random.bits())).collect();
        let few: Vec<T> = (0..n).map(|_| specials[random.below(specials.len())]).collect();
        let ones: Vec<T> =
            (0..n).map(|_| if random.below(2) == 0 { T::wrap(1) } else { T::wrap(u64::MAX) }).collect();
        let mut twos = ones.clone();
        for _ in 0..8 * size_of::<T>() - 2 {
            if n > 0 {
                twos[random.below(n)] = T::wrap(2);
            }
        }
        for list in [any, few, ones, twos, vec![T::LOWEST; n], vec![T::HIGHEST; n]] {
            product_is_right(&list);
            for place in [0, n / 2, n.saturating_sub(1)] {
                let mut list = list.clone();
                if let Some(x) = list.get_mut(place) {
                    *x = T::wrap(0);
                }
                product_is_right(&list);
            }
        }
    }
    for &a in &specials {
        for &b in &specials {
            product_is_right(&[a, b]);
            for &c in &specials {
                product_is_right(&[a, b, c]);
            }
        }
    }
    assert_eq!(tree::reduce(&CheckedProduct::<T>::new(), &[]), Ok(T::wrap(1)));
}

#[test]
fn products_are_right_or_overflow() {
    products::<i8>();
    products::<u8>();
    products::<i16>();
    products::<u16>();
    products::<i32>();
    products::<u32>();
    products::<i64>();
    products::<u64>();
}

#[test]
fn the_lowest_value_is_a_product_and_its_negative_is_not() {
    let op = CheckedProduct::<i64>::new();
    assert_eq!(tree::reduce(&op, &[i64::MIN]), Ok(i64::MIN));
    assert_eq!(tree::reduce(&op, &[i64::MIN, 1]), Ok(i64::MIN));
    assert_eq!(tree::reduce(&op, &[i64::MIN, -1]).unwrap_err().exact, Some(1 << 63));
    assert_eq!(tree::reduce(&op, &[i64::MIN, i64::MIN]).unwrap_err().exact, None);
    assert_eq!(tree::reduce(&op, &[1 << 62, -2]), Ok(i64::MIN));
    // Zeros between factors that overflow, combined in every grouping.
    let x = [i64::MIN, i64::MAX, 0, i64::MIN];
    let lift = |i: usize| op.lift(x[i], i as u64);
    let all = [
        op.combine(op.combine(lift(0), lift(1)), op.combine(lift(2), lift(3))),
        op.combine(lift(0), op.combine(lift(1), op.combine(lift(2), lift(3)))),
        op.combine(op.combine(op.combine(lift(0), lift(1)), lift(2)), lift(3)),
        op.combine(lift(2), op.combine(lift(1), op.combine(lift(0), lift(3)))),
    ];
    assert_eq!(all.map(|acc| op.finish(acc).get()), [Ok(0); 4]);
}

#[test]
fn overflows_say_what_happened() {
    let error = tree::reduce(&CheckedSum::<u8>::new(), &[255, 1]).unwrap_err();
    assert_eq!(error.to_string(), "the result is 256, which an integer of 8 bits cannot hold");
    let error = tree::reduce(&CheckedProduct::<u64>::new(), &[u64::MAX, u64::MAX]).unwrap_err();
    assert_eq!(error.to_string(), "the result is too large for an integer of 64 bits");
}
