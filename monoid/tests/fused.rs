//! Fused operators must give what each gives alone, in every arity and shape, with its own push, index, identity and
//! parameters, and say so of order and of nothing.

use crate::support::{Affine, Calls, LENGTHS, OrOfBytes, Over, counts, numbers};
use warpfold_monoid::fused::{Fuse, Fused2, Fused3, Parts2, Parts3};
use warpfold_monoid::{
    Max, Min, Monoid, Ordered, Plain, Product, Sum, Unaligned, Value, WithInitial, fused, tree,
};

/// What the eight operators below give for these items.
#[allow(clippy::type_complexity)]
fn oracle(x: &[u32]) -> (u32, Option<u32>, Option<u32>, u32, u64, u32, u32, u64) {
    (
        x.iter().fold(0, |a, &x| a.wrapping_add(x)),
        x.iter().copied().min(),
        x.iter().copied().max(),
        x.iter().fold(1, |a, &x| a.wrapping_mul(x | 1)),
        x.iter().map(|&x| x as u64).sum(),
        x.iter().filter(|&&x| x > 200).count() as u32,
        x.iter().copied().max().unwrap_or(0).max(1 << 31),
        x.iter().fold(1, |a, &x| a.wrapping_mul((x | 1) as u64)),
    )
}

/// The product of odd numbers: wrapping products of others soon are 0.
#[derive(Clone, Copy, Debug, Default, Plain)]
struct MakeOdd;

impl warpfold_monoid::MapFn for MakeOdd {
    type From = u32;
    type To = u32;
    fn map(&self, from: u32, _index: u64) -> u32 {
        from | 1
    }
}

type OddProduct<A> = warpfold_monoid::Map<Product<u32, A>, MakeOdd>;

/// Compares a tuple with the first so many entries of the oracle, bare and fused, with and without alignment.
macro_rules! compare {
    ($x:expr, $op:expr, $($i:tt),+) => {{
        let (x, op, expected) = ($x, $op, oracle($x));
        let expected = ($(expected.$i,)+);
        assert_eq!(tree::reduce(&op, x), expected);
        assert_eq!(tree::reduce(&op.fuse(), x), expected);
        assert_eq!(tree::reduce(&Unaligned(op), x), expected);
        assert_eq!(tree::reduce(&Unaligned(op.fuse()), x), expected);
    }};
}

#[test]
fn every_arity_gives_what_its_parts_give() {
    let (a, b, c) = (Sum::<u32>::new(), Min::<u32>::new(), Max::<u32>::new());
    let (d, e) = (OddProduct::<u32>::default(), Sum::<u32, u64>::new());
    let h = OddProduct::<u64>::default();
    let (f, g) = (Over { threshold: 200 }, WithInitial::new(Max::<u32>::new(), 1 << 31));
    for n in LENGTHS.into_iter().chain([0, 20_000]) {
        let x = &numbers(n)[..];
        compare!(x, (a, b), 0, 1);
        compare!(x, (a, b, c), 0, 1, 2);
        compare!(x, (a, b, c, d), 0, 1, 2, 3);
        compare!(x, (a, b, c, d, e), 0, 1, 2, 3, 4);
        compare!(x, (a, b, c, d, e, h), 0, 1, 2, 3, 4, 7);
        compare!(x, (a, b, c, d, e, h, a), 0, 1, 2, 3, 4, 7, 0);
        compare!(x, (a, b, c, d, e, h, a, b), 0, 1, 2, 3, 4, 7, 0, 1);
        assert_eq!(tree::reduce(&fused((a, b, c, d, e, f, g, h)), x), oracle(x));
    }
}

#[test]
fn each_part_pushes_in_its_own_way() {
    for n in LENGTHS {
        let x = numbers(n);
        let expected = Some(counts(&x, 4));
        assert_eq!(tree::reduce(&(Calls, Sum::<u32>::new(), Calls), &x).0, expected);
        let (count, .., last) = tree::reduce(&fused((Over { threshold: 0 }, Min::new(), Calls)), &x);
        assert_eq!((count, last), (x.iter().filter(|&&x| x > 0).count() as u32, expected));
    }
}

#[test]
fn floats_keep_the_bits_that_they_have_alone() {
    let x: Vec<f64> = numbers(30_000).iter().map(|&x| (x as f64 - 2e9) * 1e-3).collect();
    let (sum, min) = tree::reduce(&(Sum::<f64>::new(), Min::<f64>::new()), &x);
    assert_eq!(sum.to_bits(), tree::reduce(&Sum::<f64>::new(), &x).to_bits());
    assert_eq!(min, x.iter().copied().reduce(f64::min));
    // -0.0 survives, so nothing was padded with an identity.
    let (sum, max) = tree::reduce(&(Sum::<f32>::new(), Max::<f32>::new()), &[-0.0; 9]);
    assert_eq!((sum.to_bits(), max.map(f32::to_bits)), (1 << 31, Some(1 << 31)));
}

#[test]
fn one_ordered_part_makes_all_ordered() {
    fn commutative<Op: Monoid>(_: &Op) -> bool {
        Op::COMMUTATIVE
    }
    let (sum, max) = (Sum::<u32>::new(), Max::<u32>::new());
    assert!(commutative(&(sum, max)));
    assert!(!commutative(&(sum, Ordered(max))));
    assert!(!commutative(&fused((Ordered(sum), max))));
    assert!(!commutative(&Unaligned((Affine, Affine))));
}

#[test]
fn operands_keep_their_sides() {
    let op = (Affine, Affine);
    let maps = [[3, 5], [7, 11], [13, 17]].map(|map| op.lift(map, 0));
    let composed = op.combine(op.combine(maps[0], maps[1]), maps[2]);
    // x -> 13 * (7 * (3 x + 5) + 11) + 17
    assert_eq!(op.finish(composed).get(), ([273, 615], [273, 615]));
}

#[test]
fn tuples_nest() {
    let op = ((Sum::<u32>::new(), Min::<u32>::new()), Max::<u32>::new());
    assert_eq!(tree::reduce(&op, &[4, 6]), ((10, Some(4)), Some(6)));
}

#[test]
fn accumulators_lie_side_by_side() {
    type Acc<T> = <T as Monoid>::Acc;
    type Statistics = (Min<f32>, Sum<f32>, Max<f32>);
    assert_eq!((size_of::<Acc<Statistics>>(), align_of::<Acc<Statistics>>()), (16, 4));
    assert_eq!(size_of::<Statistics>(), 0);
    assert_eq!(size_of::<Fused2<Over, WithInitial<Sum<f32>>>>(), 9);
    assert_eq!(size_of::<Acc<Unaligned<(OrOfBytes, Sum<u32>)>>>(), 5);
    let x = numbers(100);
    let expected = x.iter().fold(0, |a, &x| a | x as u8);
    assert_eq!(tree::reduce(&Unaligned((OrOfBytes, Max::new())), &x), (expected, x.iter().copied().max()));
    // Four single bytes fill a word.
    let op = (OrOfBytes, OrOfBytes, OrOfBytes, OrOfBytes, Min::<u32>::new());
    assert_eq!(tree::reduce(&op, &x).3, expected);
}

#[test]
fn parts_convert() {
    let parts = Parts3::new(1u32, 2.0f64, [3u8; 4]);
    assert_eq!(parts.get(), (1, 2.0, [3; 4]));
    assert_eq!(Parts3::from(parts.get()), parts);
    assert_eq!(<(u32, f64, [u8; 4])>::from(parts), parts.get());
    assert_eq!(format!("{parts:?}"), "(1, 2.0, [3, 3, 3, 3])");
    assert_ne!(Parts2::new(1, 2), Parts2::new(1, 3));
    let op: Fused3<_, _, _> = fused((Over { threshold: 1 }, Over { threshold: 2 }, Over { threshold: 3 }));
    assert_eq!(op.get().1.threshold, 2);
}

#[test]
fn layouts_tell_the_parts_apart() {
    let layouts = [
        <(Sum<f32>, Min<f32>)>::LAYOUT,
        <(Min<f32>, Sum<f32>)>::LAYOUT,
        <Fused2<Sum<f32>, Min<f32>>>::LAYOUT,
        <Parts2<f32, f64>>::LAYOUT,
        <Parts2<f64, f32>>::LAYOUT,
        <Fused2<f64, f32>>::LAYOUT,
    ];
    for (i, layout) in layouts.iter().enumerate() {
        assert!(!layouts[..i].contains(layout), "{i}");
    }
}

#[test]
fn the_value_is_a_tuple() {
    let value: Value<(Sum<f32>, Min<f32>, Max<f32>)> =
        tree::reduce(&<(Sum<f32>, Min<f32>, Max<f32>)>::default(), &[2.0, 1.0]);
    let (sum, min, max): (f32, Option<f32>, Option<f32>) = value;
    assert_eq!((sum, min, max), (3.0, Some(1.0), Some(2.0)));
}
