//! Least and greatest, and where they stand: for every type, against a plain search by `Ordering`, to the bit.

use std::cmp::Ordering::{Greater, Less};

use crate::data::{Probe, Random, SIZES, extreme, lists};
use half::{bf16, f16};
use warpfold_monoid::{
    ArgMax, ArgMaxBy, ArgMin, ArgMinBy, Extent, Float, IgnoreNan, Indexed, Magnitude, MapFn, Max, MaybeNan,
    Min, MinMax, Monoid, NanMax, NanMin, NanMinMax, tree,
};

type Place = Option<(usize, u64)>;

fn place<T: Probe>(found: Option<Indexed<T>>) -> Place {
    found.map(|found| (found.index() as usize, found.value().to_bits()))
}

fn extent<T: Probe>(found: Option<Extent<T>>) -> Option<(u64, u64)> {
    found.map(|found| (found.min.to_bits(), found.max.to_bits()))
}

fn bits(place: Place) -> Option<u64> {
    place.map(|place| place.1)
}

fn every_list<T: Probe>(mut check: impl FnMut(&[T])) {
    let mut random = Random(11);
    for n in SIZES {
        lists::<T>(n, &mut random).iter().for_each(|list| check(list));
    }
}

fn agree<T: Probe>() {
    every_list::<T>(|x| {
        let (least, greatest) = (extreme(x, Less, false), extreme(x, Greater, false));
        let n = x.len();
        assert_eq!(tree::reduce(&Min::<T>::new(), x).map(T::to_bits), bits(least), "{n} items");
        assert_eq!(tree::reduce(&Max::<T>::new(), x).map(T::to_bits), bits(greatest), "{n} items");
        let both = bits(least).zip(bits(greatest));
        assert_eq!(extent(tree::reduce(&MinMax::<T>::new(), x)), both, "{n} items");
        assert_eq!(place(tree::reduce(&ArgMin::<T>::new(), x)), least, "{n} items");
        assert_eq!(place(tree::reduce(&ArgMax::<T>::new(), x)), greatest, "{n} items");
    });
    // Nothing has no place, on the device neither.
    assert_eq!(ArgMin::<T>::new().finish_empty().index(), u64::MAX);
    assert_eq!(ArgMax::<T>::new().finish_empty().index(), u64::MAX);
    let nothing = MinMax::<T>::new().finish_empty();
    assert_eq!((nothing.min.to_bits(), nothing.max.to_bits()), (T::HIGHEST.to_bits(), T::LOWEST.to_bits()));
}

#[test]
fn extremes_and_their_places_agree() {
    agree::<i8>();
    agree::<u8>();
    agree::<i16>();
    agree::<u16>();
    agree::<i32>();
    agree::<u32>();
    agree::<i64>();
    agree::<u64>();
    agree::<bool>();
    agree::<f16>();
    agree::<bf16>();
    agree::<f32>();
    agree::<f64>();
}

fn nans_are_passed_over<T: Probe + Float + MaybeNan>() {
    every_list::<T>(|x| {
        let (least, greatest) = (extreme(x, Less, true), extreme(x, Greater, true));
        assert_eq!(place(tree::reduce(&IgnoreNan(ArgMin::<T>::new()), x)), least);
        assert_eq!(place(tree::reduce(&IgnoreNan(ArgMax::<T>::new()), x)), greatest);
        // Of nothing but NaNs the least is a NaN; of nothing it is nothing.
        let or_nan = |place: Place| {
            if x.is_empty() { None } else { Some(bits(place).unwrap_or(Probe::to_bits(T::NAN))) }
        };
        let (least, greatest) = (or_nan(least), or_nan(greatest));
        assert_eq!(tree::reduce(&NanMin::<T>::new(), x).map(Probe::to_bits), least);
        assert_eq!(tree::reduce(&NanMax::<T>::new(), x).map(Probe::to_bits), greatest);
        assert_eq!(extent(tree::reduce(&NanMinMax::<T>::new(), x)), least.zip(greatest));
    });
}

#[test]
fn nans_have_no_place_where_they_are_ignored() {
    nans_are_passed_over::<f16>();
    nans_are_passed_over::<bf16>();
    nans_are_passed_over::<f32>();
    nans_are_passed_over::<f64>();
}

/// By magnitude: the key is that of another type for signed integers, the value the item's own.
fn by_magnitude<T: Probe, K: Probe>(key: fn(T) -> K)
where
    Magnitude<T>: MapFn<From = T, To = K>,
{
    every_list::<T>(|x| {
        let keys: Vec<K> = x.iter().map(|&x| key(x)).collect();
        let expected = |sought| {
            let found = extreme(&keys, sought, false);
            found.map(|(i, _)| (i, if x[i].nan() { T::nans()[0].to_bits() } else { x[i].to_bits() }))
        };
        let by = Magnitude::<T>::new();
        assert_eq!(place(tree::reduce(&ArgMaxBy::new(by), x)), expected(Greater));
        assert_eq!(place(tree::reduce(&ArgMinBy::new(by), x)), expected(Less));
    });
}

#[test]
fn extremes_by_magnitude() {
    by_magnitude(i8::unsigned_abs);
    by_magnitude(i16::unsigned_abs);
    by_magnitude(i32::unsigned_abs);
    by_magnitude(i64::unsigned_abs);
    by_magnitude(|x: u8| x);
    by_magnitude(|x: u64| x);
    by_magnitude(|x: f16| f16::from_bits(x.to_bits() & 0x7fff));
    by_magnitude(|x: bf16| bf16::from_bits(x.to_bits() & 0x7fff));
    by_magnitude(f32::abs);
    by_magnitude(f64::abs);
}

#[test]
fn nans_ignored_by_magnitude() {
    let x = [f64::NAN, -3.0, f64::NAN, 3.0, -2.0];
    let by = Magnitude::<f64>::new();
    assert_eq!(tree::reduce(&IgnoreNan(ArgMaxBy::new(by)), &x), Some(Indexed::new(1, -3.0)));
    assert_eq!(tree::reduce(&IgnoreNan(ArgMinBy::new(by)), &x), Some(Indexed::new(4, -2.0)));
    assert_eq!(tree::reduce(&IgnoreNan(ArgMinBy::new(by)), &[f64::NAN; 3]), None);
}

/// Ties straddle every edge: the lowest position wins whichever lanes hold it.
#[test]
fn the_first_of_equal_ones_wins() {
    fn one<T: Probe>(low: T, high: T) {
        let edges = [31, 32, 63, 64, 255, 256, 1023, 1024, 2047, 2048, 8191, 8192, 65535, 65536, 99_999];
        for first in 0..edges.len() {
            let mut x = vec![low; 100_003];
            edges[first..].iter().for_each(|&i| x[i] = high);
            assert_eq!(place(tree::reduce(&ArgMax::<T>::new(), &x)), Some((edges[first], high.to_bits())));
            edges[first..].iter().for_each(|&i| x[i] = low);
            for (i, x) in x.iter_mut().enumerate() {
                *x = if edges[first..].contains(&i) { low } else { high };
            }
            assert_eq!(place(tree::reduce(&ArgMin::<T>::new(), &x)), Some((edges[first], low.to_bits())));
        }
    }
    one(false, true);
    one(-128i8, -127);
    one(f16::NEG_INFINITY, f16::from_f32(-1.0));
    one(-0.0f64, 0.0);
}

/// Positions over 2^32, and the same whatever the order.
#[test]
fn positions_have_64_bits() {
    let op = ArgMax::<u8>::new();
    let far = (1u64 << 40) + 3;
    let (a, b) = (op.lift(7, 5), op.fold_many([1, 7, 9, 9], far));
    for acc in [op.combine(a, b), op.combine(b, a)] {
        assert_eq!(op.finish(acc), Indexed::new(far + 2, 9));
    }
    let tie = op.lift(9, 1 << 33);
    for acc in [op.combine(tie, b), op.combine(b, tie)] {
        assert_eq!(op.finish(acc), Indexed::new(1 << 33, 9));
    }
}

/// In one pass both agree as they do apart, whatever zeros and NaNs there are.
#[test]
fn fused_extremes_agree() {
    let op = (Max::<f64>::new(), ArgMax::<f64>::new(), Min::<f64>::new(), ArgMin::<f64>::new());
    for x in lists::<f64>(1000, &mut Random(5)) {
        let (greatest, at, least, least_at) = tree::reduce(&op, &x);
        assert_eq!(greatest.map(f64::to_bits), at.map(|at| at.value().to_bits()));
        assert_eq!(least.map(f64::to_bits), least_at.map(|at| at.value().to_bits()));
    }
    assert_eq!(tree::reduce(&op, &[]), (None, None, None, None));
}
