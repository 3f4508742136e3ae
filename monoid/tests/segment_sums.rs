//! The greatest sum of neighbours against Kadane's algorithm on exact integers, the empty run allowed and not.

use crate::data::{Probe, Random, SIZES, narrowed};
use crate::exact::{Exact, F64, parts};
use half::{bf16, f16};
use num_bigint::BigInt;
use warpfold_monoid::{
    Element, Float, IgnoreNan, Integer, MaxNonEmptySegmentSum, MaxSegmentSum, Monoid, SegmentAccumulator,
    Segmented, tree,
};

/// The greatest sum of a run that is not empty.
fn kadane<T: Clone + Ord + for<'a> std::ops::Add<&'a T, Output = T>>(x: &[T], zero: &T) -> Option<T> {
    let mut best: Option<T> = None;
    let mut here = zero.clone();
    for x in x {
        here = here.max(zero.clone()) + x;
        best = Some(best.map_or(here.clone(), |best| best.max(here.clone())));
    }
    best
}

/// Items so small that no sum wraps in the type itself.
fn integers<T: Probe + Integer + Segmented<Acc = T> + SegmentAccumulator<T, Output = T>>()
where
    T::Wide: SegmentAccumulator<T, Output = T::Wide>,
{
    let mut random = Random(1);
    for n in SIZES {
        let wide: Vec<T> = (0..n).map(|_| T::of_bits(random.bits())).collect();
        // All negative; mostly negative; two items per sign.
        let signed = T::LOWEST.to_i128() < 0;
        let negative: Vec<T> =
            (0..n).map(|_| T::wrap(if signed { -1 - random.below(100) as i64 } else { 0 } as u64)).collect();
        let few: Vec<T> =
            (0..n).map(|_| T::wrap(if signed { random.below(3) as i64 - 1 } else { 1 } as u64)).collect();
        for (what, x) in [("any", wide), ("negative", negative), ("few", few), ("lowest", vec![T::LOWEST; n])]
        {
            let exact: Vec<i128> = x.iter().map(|x| x.to_i128()).collect();
            let best = kadane(&exact, &0);
            let sum: i128 = exact.iter().map(|x| x.abs()).sum();
            let fits = |highest: i128| sum <= highest;
            if fits(T::HIGHEST.to_i128()) {
                let narrow = MaxSegmentSum::<T>::new();
                assert_eq!(
                    tree::reduce(&narrow, &x).to_i128(),
                    best.unwrap_or(0).max(0),
                    "{what}, {n} items"
                );
                let narrow = MaxNonEmptySegmentSum::<T>::new();
                assert_eq!(tree::reduce(&narrow, &x).map(|x| x.to_i128()), best, "{what}, {n} items");
            }
            if fits(T::Wide::HIGHEST.to_i128()) {
                let wide = MaxSegmentSum::<T, T::Wide>::new();
                assert_eq!(tree::reduce(&wide, &x).to_i128(), best.unwrap_or(0).max(0), "{what}, {n} items");
                let wide = MaxNonEmptySegmentSum::<T, T::Wide>::new();
                assert_eq!(tree::reduce(&wide, &x).map(|x| x.to_i128()), best, "{what}, {n} items");
            }
        }
    }
}

#[test]
fn sums_of_integers() {
    integers::<i8>();
    integers::<u8>();
    integers::<i16>();
    integers::<u16>();
    integers::<i32>();
    integers::<u32>();
    integers::<i64>();
    integers::<u64>();
}

/// Exact where `f64` is; off by rounding elsewhere.
fn floats<T: Probe + Float + Segmented<Acc = f64>>()
where
    f64: SegmentAccumulator<T, Output = T>,
{
    let mut random = Random(2);
    for n in SIZES {
        let whole: Vec<T> = narrowed((0..n).map(|_| random.below(41) as f64 - 20.0));
        let any: Vec<T> = narrowed((0..n).map(|_| random.float(-6, 6)));
        let negative: Vec<T> = narrowed((0..n).map(|_| -random.float(-6, 6).abs()));
        for (what, x) in [("whole", whole), ("any", any), ("negative", negative)] {
            let units: Vec<BigInt> = x
                .iter()
                .map(|x| parts(x.to_f64()))
                .map(|(m, e)| if m == 0 { BigInt::ZERO } else { BigInt::from(m) << (e + 1074) as u64 })
                .collect();
            let best = kadane(&units, &BigInt::ZERO).map(|num| Exact { num, den: 1u32.into(), exp: -1074 });
            let close = |result: T, exact: &Exact| {
                let rounded = T::of_f64(exact.nearest(F64));
                let near = size_of::<T>() == 8 && exact.relative_error(result.to_f64()) < 1e-12;
                assert!(
                    near || Probe::to_bits(result) == Probe::to_bits(rounded),
                    "{what}, {n} items: {result:?} {rounded:?}"
                );
            };
            match &best {
                None => {
                    assert!(tree::reduce(&MaxNonEmptySegmentSum::<T>::new(), &x).is_none());
                    assert_eq!(Probe::to_bits(tree::reduce(&MaxSegmentSum::<T>::new(), &x)), 0);
                }
                Some(best) => {
                    close(tree::reduce(&MaxNonEmptySegmentSum::<T>::new(), &x).unwrap(), best);
                    let allowed = if best.num < BigInt::ZERO { &Exact::integer(0) } else { best };
                    close(tree::reduce(&MaxSegmentSum::<T>::new(), &x), allowed);
                }
            }
        }
    }
}

#[test]
fn sums_of_floats() {
    floats::<f16>();
    floats::<bf16>();
    floats::<f32>();
    floats::<f64>();
}

/// A NaN, or infinities of both signs, give NaN wherever they stand and however the items are grouped.
#[test]
fn runs_without_a_sum() {
    fn groupings<Op: Monoid<Item = f64>>(op: &Op, x: &[f64], seen: &mut dyn FnMut(Op::Output)) {
        // Every way to cut the list in three.
        let fold = |x: &[f64]| x[1..].iter().fold(op.lift(x[0], 0), |acc, &x| op.push(acc, x, 0));
        for i in 1..x.len() {
            seen(op.finish(op.combine(fold(&x[..i]), fold(&x[i..]))));
            for j in i + 1..x.len() {
                let (a, b, c) = (fold(&x[..i]), fold(&x[i..j]), fold(&x[j..]));
                seen(op.finish(op.combine(a, op.combine(b, c))));
                seen(op.finish(op.combine(op.combine(a, b), c)));
            }
        }
        seen(op.finish(fold(x)));
    }
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let mut lists = vec![
        vec![-inf, 1.0, inf],
        vec![0.0, -inf, 1.0, inf],
        vec![inf, -1.0, -1.0, -inf],
        vec![-inf, inf],
        vec![inf, -inf, 5.0, 5.0],
        vec![nan, 1.0],
        vec![-5.0, nan],
        vec![1.0, -3.0, nan, -3.0, 1.0],
        vec![inf, 0.0, nan],
    ];
    for list in &lists {
        let expect = |result: f64| assert_eq!(result.to_bits(), nan.to_bits(), "{list:?}");
        groupings(&MaxSegmentSum::<f64>::new(), list, &mut { expect });
        groupings(&MaxNonEmptySegmentSum::<f64>::new(), list, &mut { expect });
        expect(tree::reduce(&MaxSegmentSum::<f64>::new(), list));
        expect(tree::reduce(&MaxNonEmptySegmentSum::<f64>::new(), list).unwrap());
        let narrow: Vec<f32> = list.iter().map(|&x| x as f32).collect();
        assert!(tree::reduce(&MaxSegmentSum::<f32>::new(), &narrow).is_nan());
    }
    // An infinity of one sign is a sum like any other.
    lists = vec![vec![1.0, inf, -3.0], vec![-1.0, -2.0, inf], vec![inf, inf]];
    for list in &lists {
        groupings(&MaxSegmentSum::<f64>::new(), list, &mut |result| assert_eq!(result, inf, "{list:?}"));
        groupings(&MaxNonEmptySegmentSum::<f64>::new(), list, &mut |result| {
            assert_eq!(result, inf, "{list:?}")
        });
    }
    groupings(&MaxSegmentSum::<f64>::new(), &[-inf, 2.0, 3.0, -inf, -1.0], &mut |result| {
        assert_eq!(result, 5.0)
    });
    groupings(&MaxSegmentSum::<f64>::new(), &[-inf, -inf], &mut |result| assert_eq!(result.to_bits(), 0));
    groupings(&MaxNonEmptySegmentSum::<f64>::new(), &[-inf, -inf], &mut |result| assert_eq!(result, -inf));
    groupings(&MaxNonEmptySegmentSum::<f64>::new(), &[-inf, -2.0, -inf], &mut |result| {
        assert_eq!(result, -2.0)
    });
    assert_eq!(tree::reduce(&IgnoreNan(MaxSegmentSum::<f64>::new()), &[1.0, nan, 2.0, -9.0, nan]), 3.0);
}
