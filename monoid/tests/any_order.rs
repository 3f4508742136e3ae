//! Operators whose order does not matter give the same bits however items come in: one by one, combined either way round, or
//! several at once by `fold_many`, at every length that a thread loads at once, and by `fold_vectors`.

use std::fmt::Debug;

use crate::data::{Probe, Random, bytes, lists};
use half::{bf16, f16};
use num_complex::Complex;
use warpfold_monoid::{
    All, And, Any, ArgMax, ArgMaxBy, ArgMin, ArgMinBy, Averaged, Bits, CheckedProduct, CheckedSum, Count,
    Dot, Element, Float, GreatestMagnitude, IgnoreNan, Integer, L1, L2, Linf, Magnitude, Magnitudes, MapFn,
    Max, MaybeNan, Mean, Min, MinMax, Moments, Monoid, NanMax, NanMin, NanMinMax, Or, Plain, Product,
    Products, Squares, SquaresUnderRoot, StdDev, Sum, SumSquares, Summed, Truth, Variance, Xor,
    fused::Parts2,
};

/// `N` items at once: all that is compiled for every `N`.
fn at_once<Op: Monoid, const N: usize>(op: &Op, items: &[Op::Item], index: u64) -> Op::Acc {
    op.fold_many::<N>(std::array::from_fn(|i| items[i]), index)
}

type AtOnce<Op> = fn(&Op, &[<Op as Monoid>::Item], u64) -> <Op as Monoid>::Acc;

/// All but the first and the last item at once, `index` the position of the second, against the definition.
#[inline(never)]
fn check<Op: Monoid<Output: Plain>>(op: &Op, x: &[Op::Item], index: u64, fold_many: AtOnce<Op>) {
    let items = &x[1..x.len() - 1];
    let many = fold_many(op, items, index);
    let mut pushed = op.lift(items[0], index);
    let mut combined = pushed;
    for (i, &item) in items.iter().enumerate().skip(1) {
        let at = index + i as u64;
        pushed = op.push(pushed, item, at);
        // From the right, if the order does not matter.
        combined = op.combine(op.lift(item, at), combined);
    }
    let (name, n) = (std::any::type_name::<Op>(), items.len());
    let expected = bytes(&op.finish(pushed));
    assert!(bytes(&op.finish(many)) == expected, "{name}: {n} at once");
    assert!(bytes(&op.finish(combined)) == expected, "{name}: {n} the other way round");
    // Among others.
    let after = index + n as u64;
    let last = op.lift(x[n + 1], after);
    let around = |acc| bytes(&op.finish(op.combine(op.combine(op.lift(x[0], index - 1), acc), last)));
    assert!(around(many) == around(pushed), "{name}: {n} at once, among others");
    let one_more = bytes(&op.finish(op.push(many, x[n + 1], after)));
    assert!(one_more == bytes(&op.finish(op.combine(pushed, last))), "{name}: {n} at once and one more");
}

#[inline(never)]
fn any_order<Op: Monoid<Output: Plain>>(op: Op, lists: &[Vec<Op::Item>]) {
    assert!(Op::ANY_ORDER && Op::COMMUTATIVE, "{}", std::any::type_name::<Op>());
    let lengths: [(usize, AtOnce<Op>); 6] = [
        (1, at_once::<Op, 1>),
        (2, at_once::<Op, 2>),
        (3, at_once::<Op, 3>),
        (4, at_once::<Op, 4>),
        (8, at_once::<Op, 8>),
        (16, at_once::<Op, 16>),
    ];
    for x in lists {
        for start in (0..x.len()).step_by(7) {
            let (x, index) = (&x[start..], 1 + (start as u64) * 0x1_0000_0001);
            if x.len() >= 12 {
                check_vectors(&op, x, index);
            }
            for &(n, fold_many) in lengths.iter().filter(|length| length.0 + 2 <= x.len()) {
                check(&op, &x[..n + 2], index, fold_many);
            }
        }
    }
}

/// Vectors that lie apart, of which the last may be a copy of the first.
#[inline(never)]
fn check_vectors<Op: Monoid<Output: Plain>>(op: &Op, x: &[Op::Item], index: u64) {
    const STRIDE: usize = 4;
    for count in 1..=3 {
        let first = |u: usize| if u < count { u * STRIDE } else { 0 };
        let vectors: [[Op::Item; 2]; 3] = std::array::from_fn(|u| std::array::from_fn(|i| x[first(u) + i]));
        let at_once = op.fold_vectors(vectors, count as u32, index, STRIDE as u64);
        let mut pushed = op.lift(x[0], index);
        for i in (1..count * STRIDE).filter(|i| i % STRIDE < 2) {
            pushed = op.push(pushed, x[i], index + i as u64);
        }
        let name = std::any::type_name::<Op>();
        assert!(bytes(&op.finish(at_once)) == bytes(&op.finish(pushed)), "{name}: {count} vectors");
    }
}

/// More at once than the shortcuts for narrow items are made for.
#[test]
fn very_many_at_once() {
    fn one<Op: Monoid<Output: Plain>>(op: Op, lists: &[Vec<Op::Item>]) {
        for x in lists.iter().filter(|x| x.len() >= 300) {
            check(&op, &x[..258], 1, at_once::<Op, 256>);
            check(&op, &x[..259], 1, at_once::<Op, 257>);
        }
    }
    let x = &items::<u8>();
    one(ArgMax::<u8>::new(), x);
    one(Count::<u8>::new(), x);
    one(L1::<u8>::new(), x);
    one(SumSquares::<u8>::new(), x);
    one(Variance::<u8>::default(), x);
    one(ArgMin::<f16>::new(), &items());
    one(L1::<i16>::new(), &items());
    one(Mean::<i16>::new(), &items());
}

fn items<T: Probe>() -> Vec<Vec<T>> {
    let mut random = Random(1);
    [3, 10, 40, 300].into_iter().flat_map(|n| lists(n, &mut random)).collect()
}

/// Each item with its successor.
fn pairs<T: Copy>(lists: &[Vec<T>]) -> Vec<Vec<Parts2<T, T>>> {
    lists.iter().map(|list| list.windows(2).map(|pair| Parts2::new(pair[0], pair[1])).collect()).collect()
}

fn elements<T: Probe>(x: &[Vec<T>]) {
    any_order(Min::<T>::new(), x);
    any_order(Max::<T>::new(), x);
    any_order(MinMax::<T>::new(), x);
    any_order(ArgMin::<T>::new(), x);
    any_order(ArgMax::<T>::new(), x);
}

fn bits<T: Probe + Bits + Averaged>(x: &[Vec<T>]) {
    any_order(And::<T>::new(), x);
    any_order(Or::<T>::new(), x);
    any_order(Xor::<T>::new(), x);
    any_order(Mean::<T>::new(), x);
}

fn truths<T: Plain + Truth>(x: &[Vec<T>]) {
    any_order(All::<T>::new(), x);
    any_order(Any::<T>::new(), x);
    any_order(Count::<T>::new(), x);
}

fn integers<T>()
where
    T: Probe
        + Integer
        + Bits
        + Truth
        + Averaged
        + Summed<Squares>
        + Summed<Magnitudes>
        + Summed<GreatestMagnitude>,
    [T; 2]: Summed<Products>,
    Magnitude<T>: MapFn<From = T, To: Element>,
{
    let x = &items::<T>();
    elements(x);
    bits(x);
    truths(x);
    any_order(Sum::<T>::new(), x);
    any_order(Product::<T>::new(), x);
    any_order(Sum::<T, T::Wide>::new(), x);
    any_order(Product::<T, T::Wide>::new(), x);
    any_order(SumSquares::<T>::new(), x);
    any_order(L1::<T>::new(), x);
    any_order(Linf::<T>::new(), x);
    any_order(Dot::<T>::new(), &pairs(x));
    any_order(CheckedSum::<T>::new(), x);
    any_order(CheckedProduct::<T>::new(), x);
    any_order(ArgMaxBy::new(Magnitude::<T>::new()), x);
    any_order(ArgMinBy::new(Magnitude::<T>::new()), x);
}

/// Integers of up to 32 bits: exact sums of squares.
fn short<T: Probe + Moments<Output = f64> + Summed<SquaresUnderRoot>>() {
    let x = &items::<T>();
    any_order(Variance::<T>::default(), x);
    any_order(StdDev::<T>::new(1.0), x);
    any_order(L2::<T>::new(), x);
}

#[test]
fn integers_come_in_in_any_order() {
    integers::<i8>();
    integers::<u8>();
    integers::<i16>();
    integers::<u16>();
    integers::<i32>();
    integers::<u32>();
    integers::<i64>();
    integers::<u64>();
    short::<i8>();
    short::<u8>();
    short::<i16>();
    short::<u16>();
    short::<i32>();
    short::<u32>();
    let x = &items::<bool>();
    elements(x);
    bits(x);
    truths(x);
}

fn floats<T: Probe + Float + MaybeNan + Truth + Summed<GreatestMagnitude>>()
where
    Magnitude<T>: MapFn<From = T, To: Element>,
{
    let x = &items::<T>();
    elements(x);
    truths(x);
    any_order(NanMin::<T>::new(), x);
    any_order(NanMax::<T>::new(), x);
    any_order(NanMinMax::<T>::new(), x);
    any_order(IgnoreNan(ArgMin::<T>::new()), x);
    any_order(IgnoreNan(ArgMax::<T>::new()), x);
    any_order(IgnoreNan(Count::<T>::new()), x);
    any_order(ArgMaxBy::new(Magnitude::<T>::new()), x);
    any_order(IgnoreNan(ArgMinBy::new(Magnitude::<T>::new())), x);
    any_order(Linf::<T>::new(), x);
}

#[test]
fn what_floats_select_comes_in_in_any_order() {
    floats::<f16>();
    floats::<bf16>();
    floats::<f32>();
    floats::<f64>();
    let complex = |x: &[Vec<f64>]| -> Vec<Vec<Complex<f64>>> {
        x.iter().map(|list| list.windows(2).map(|pair| Complex::new(pair[0], pair[1])).collect()).collect()
    };
    let x = complex(&items::<f64>());
    truths(&x);
    any_order(Linf::<Complex<f64>>::new(), &x);
    let narrow: Vec<Vec<Complex<f32>>> =
        x.iter().map(|list| list.iter().map(|z| Complex::new(z.re as f32, z.im as f32)).collect()).collect();
    any_order(Linf::<Complex<f32>>::new(), &narrow);
}

/// Where the order matters the operator says so.
#[test]
fn what_rounds_makes_no_such_claim() {
    fn no<Op: Monoid<Output: Debug>>(_: Op) -> bool {
        !Op::ANY_ORDER
    }
    assert!(no(Sum::<f32>::new()) && no(Sum::<f64>::new()) && no(Product::<f16>::new()));
    assert!(no(Mean::<f32>::new()) && no(Variance::<f64>::default()) && no(Variance::<i64>::default()));
    assert!(
        no(L2::<i64>::new()) && no(L1::<f64>::new()) && no(SumSquares::<f16>::new()) && no(Dot::<f32>::new())
    );
    assert!(no(IgnoreNan(Sum::<f32>::new())));
}
