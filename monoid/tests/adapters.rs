//! Adapters must hand every call through (push, index, parameters included), add what they say exactly once, and never
//! combine a placeholder.

use std::cell::Cell;

use crate::support::{Affine, Calls, LENGTHS, Over, counts, counts_in_order, numbers};
use warpfold_monoid::{
    Elementwise, Map, MapFn, Max, Min, Monoid, NonEmpty, Ordered, Plain, Product, Semigroup, Sum,
    WithInitial, fused, tree,
};

#[test]
fn every_adapter_hands_calls_through() {
    #[derive(Clone, Copy, Plain)]
    struct Same;
    impl MapFn for Same {
        type From = u32;
        type To = u32;
        fn map(&self, from: u32, _index: u64) -> u32 {
            from
        }
    }
    for n in LENGTHS {
        let x = numbers(n);
        let expected = counts(&x, 4);
        assert_eq!(tree::reduce(&Calls, &x), Some(expected));
        assert_eq!(tree::reduce(&Ordered(Calls), &x), Some(counts_in_order(&x)));
        assert_eq!(tree::reduce(&Map::new(Calls, Same), &x), Some(expected));
        let started = tree::reduce(&WithInitial::new(Calls, Calls.identity()), &x);
        assert_eq!(started, expected);
        let rows: Vec<[u32; 3]> = x.iter().map(|&x| [x, 1, 2]).collect();
        let expected = counts(&x, 12);
        assert_eq!(tree::reduce(&Elementwise::<Calls, 3>(Calls), &rows)[0], Some(expected));
    }
}

#[test]
fn ordered_differs_in_its_claim_alone() {
    const { assert!(!Ordered::<Sum<u32>>::COMMUTATIVE && Sum::<u32>::COMMUTATIVE) };
    assert_eq!(tree::reduce(&Ordered(Min::<u32>::new()), &[]), None);
    assert_eq!(tree::reduce(&Ordered(Over { threshold: 4 }), &[3, 4, 5, 6]), 2);
}

/// The last item, and how often it was asked to combine; panics on anything that was not lifted.
#[derive(Clone, Copy, Debug, Plain)]
struct Last;

thread_local! {
    static COMBINED: Cell<u32> = const { Cell::new(0) };
}

impl Semigroup for Last {
    type Item = u32;
    type Acc = [u32; 3];
    type Output = [u32; 2];
    const COMMUTATIVE: bool = false;
    fn lift(&self, item: u32, index: u64) -> [u32; 3] {
        [0xfeed, item, index as u32]
    }
    fn combine(&self, left: [u32; 3], right: [u32; 3]) -> [u32; 3] {
        assert_eq!((left[0], right[0]), (0xfeed, 0xfeed), "a placeholder was combined");
        COMBINED.set(COMBINED.get() + 1);
        right
    }
    fn finish(&self, acc: [u32; 3]) -> [u32; 2] {
        assert_eq!(acc[0], 0xfeed, "a placeholder was finished");
        [acc[1], acc[2]]
    }
}

#[test]
fn a_semigroup_never_sees_its_placeholder() {
    let op = NonEmpty(Last);
    assert_eq!(tree::reduce(&op, &[]), None);
    assert_eq!(op.finish_empty(), [0, 0]);
    // 12 bytes an accumulator, but items of 4: up to 4 items lie in as many lanes, in order.
    for n in 1..=4 {
        let x = numbers(n);
        assert_eq!(tree::reduce(&op, &x), Some([x[n - 1], n as u32 - 1]));
    }
    COMBINED.set(0);
    assert!(tree::reduce(&op, &numbers(1000)).is_some());
    assert_eq!(COMBINED.get(), 999, "one combine fewer than items, and no other");
}

#[test]
fn a_start_value_counts_once() {
    let sum = |n: usize| numbers(n).iter().fold(0u64, |sum, &x| sum + x as u64);
    for n in LENGTHS.into_iter().chain([0, 50_000]) {
        let op = WithInitial::new(Sum::<u32, u64>::new(), 1000);
        assert_eq!(tree::reduce(&op, &numbers(n)), sum(n) + 1000, "{n} items");
    }
    assert_eq!(tree::reduce(&WithInitial::of_item(Max::<i32>::new(), 7), &[3, 9]), 9);
    assert_eq!(tree::reduce(&WithInitial::of_item(Max::<i32>::new(), 7), &[]), 7);
    // Nothing but the start value: a combined identity would make it +0.0.
    let op = WithInitial::of_item(Sum::<f32>::new(), -0.0);
    assert_eq!(tree::reduce(&op, &[]).to_bits(), (-0.0f32).to_bits());
}

#[test]
fn a_start_value_stands_on_the_left() {
    let op = WithInitial::new(Affine, [2, 1]);
    // First x -> 2 x + 1, then x -> 3 x + 5.
    assert_eq!(tree::reduce(&op, &[[3, 5]]), [6, 8]);
    assert_eq!(tree::reduce(&op, &[]), [2, 1]);
    assert_eq!((op.op(), op.initial()), (Affine, [2, 1]));
}

#[test]
fn start_values_and_maps_work_within_others() {
    let op = fused((WithInitial::new(Sum::<u32>::new(), 5), Sum::<u32>::new(), NonEmpty(Last)));
    assert_eq!(tree::reduce(&op, &[]), (5, 0, None));
    assert_eq!(tree::reduce(&op, &[1, 2]), (8, 3, Some([2, 1])));
    let op = WithInitial::new((Sum::<u32>::new(), Max::<u32>::new()), (5, 9).into());
    assert_eq!(tree::reduce(&op, &[1, 2]).get(), (8, 9));
    let twice = WithInitial::new(WithInitial::new(Sum::<u32>::new(), 5), 6);
    assert_eq!((tree::reduce(&twice, &[]), tree::reduce(&twice, &[1])), (11, 12));
    let op = Elementwise::<_, 2>(WithInitial::new(Product::<i32>::new(), 3));
    assert_eq!((tree::reduce(&op, &[]), tree::reduce(&op, &[[1, 2]])), ([3, 3], [3, 6]));
}

/// A struct of odd size.
#[repr(C)]
#[derive(Clone, Copy, Plain)]
struct Sample {
    value: i32,
    weight: i32,
    key: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Plain)]
struct WeightedFrom {
    bias: i64,
    first: u64,
}

impl MapFn for WeightedFrom {
    type From = Sample;
    type To = i64;
    fn map(&self, from: Sample, index: u64) -> i64 {
        if index < self.first { 0 } else { from.value as i64 * from.weight as i64 + self.bias }
    }
}

#[test]
fn a_map_has_parameters_and_sees_the_index() {
    for n in LENGTHS {
        let samples: Vec<Sample> = numbers(n)
            .iter()
            .map(|&x| Sample { value: x as i32, weight: (x >> 20) as i32 - 2000, key: x })
            .collect();
        let mut expected = 0i64;
        for sample in samples.iter().skip(3) {
            expected += sample.value as i64 * sample.weight as i64 + 17;
        }
        let op = Map::new(Sum::<i64>::new(), WeightedFrom { bias: 17, first: 3 });
        assert_eq!(tree::reduce(&op, &samples), expected, "{n} items");
        assert!(samples[0].key == 0 || op.map().bias == 17);
    }
    let op = Map::new(Min::<i64>::new(), WeightedFrom { bias: 0, first: 0 });
    assert_eq!(tree::reduce(&op, &[]), None);
}

#[test]
fn vectors_add_element_by_element() {
    let rows: Vec<[u32; 5]> = numbers(3000).iter().map(|&x| [x, x >> 3, !x, x ^ 5, 1]).collect();
    let mut expected = [0u32; 5];
    for row in &rows {
        for (sum, x) in expected.iter_mut().zip(row) {
            *sum = sum.wrapping_add(*x);
        }
    }
    assert_eq!(tree::reduce(&Elementwise::<Sum<u32>, 5>::default(), &rows), expected);
    assert_eq!(tree::reduce(&Elementwise::<Sum<u32>, 5>::default(), &[]), [0; 5]);
}
