//! Reductions by tag, by key and by group through the public API, on every backend at hand that has a kernel for the operator: what the
//! handed cases about keys say, against plain loops, from views of any strides, and what is refused.

use std::collections::BTreeMap;

use ndarray::{Array2, s};
use warpfold::{
    ByKey, Engine, Error, Fast, GroupKey, Map, MapFn, Max, Mean, Monoid, NonEmpty, Plain, Semigroup, Sum,
};

use crate::support::{Random, engines};

/// Reduces by key on every engine that has a kernel, the CPU at least.
fn on_all<K: Plain + PartialEq, Op: Monoid>(
    case: &str,
    op: Op,
    keys: &[K],
    values: &[Op::Item],
    check: impl Fn(ByKey<K, Op::Output>),
) {
    for engine in engines() {
        match engine.by_key::<K, _>(op) {
            Ok(reducer) => check(reducer.reduce(keys, values).unwrap()),
            Err(Error::NoKernel { .. }) => assert_ne!(engine.backend(), warpfold::Backend::Cpu, "{case}"),
            Err(error) => panic!("{case} on {}: {error}", engine.backend()),
        }
    }
}

#[test]
fn zl05_no_items_have_no_runs() {
    on_all("ZL05", Sum::<f32>::new(), &[0_i32; 0], &[], |runs| {
        assert!(runs.keys.is_empty() && runs.values.is_empty());
    });
}

/// Of two places the one of lesser degree.
#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct LeastDegree;

impl LeastDegree {
    fn degree(place: i32) -> i32 {
        assert!((0..1000).contains(&place), "no place {place}");
        if place == 777 { 1 } else { 5 + 7 * place % 13 }
    }
}

impl Semigroup for LeastDegree {
    type Item = i32;
    type Acc = i32;
    type Output = i32;
    const COMMUTATIVE: bool = true;
    fn lift(&self, item: i32, _index: u64) -> i32 {
        item
    }
    fn combine(&self, left: i32, right: i32) -> i32 {
        if (Self::degree(left), left) <= (Self::degree(right), right) { left } else { right }
    }
    fn finish(&self, acc: i32) -> i32 {
        acc
    }
}

#[test]
fn q03_nothing_but_items_is_ever_combined() {
    let values: Vec<i32> = (0..1000).collect();
    on_all("Q03", NonEmpty(LeastDegree), &[4_i32; 1000], &values, |runs| assert_eq!(runs.values, [777]));
}

/// Sums of arrays in the numbers' own type.
#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct Lanes<T: Plain, const N: usize>(std::marker::PhantomData<fn() -> T>);

impl<T: Plain + std::ops::Add<Output = T>, const N: usize> Semigroup for Lanes<T, N> {
    type Item = [T; N];
    type Acc = [T; N];
    type Output = [T; N];
    const COMMUTATIVE: bool = true;
    fn lift(&self, item: [T; N], _index: u64) -> [T; N] {
        item
    }
    fn combine(&self, left: [T; N], right: [T; N]) -> [T; N] {
        std::array::from_fn(|k| left[k] + right[k])
    }
    fn finish(&self, acc: [T; N]) -> [T; N] {
        acc
    }
}

#[test]
fn u02_large_items() {
    fn one<T: Plain + PartialEq + std::fmt::Debug + std::ops::Add<Output = T>, const N: usize>(
        of: fn(u32) -> T,
    ) {
        let values: Vec<[T; N]> =
            (0..10_007).map(|i| std::array::from_fn(|k| of(i % 7 + k as u32))).collect();
        let keys: Vec<i32> = (0..10_007).map(|i| i / 100).collect();
        on_all("U02", NonEmpty(Lanes::<T, N>(std::marker::PhantomData)), &keys, &values, |runs| {
            assert_eq!(runs.values.len(), 101);
            let lane: u32 = (300..400).map(|i| i % 7).sum();
            assert_eq!(runs.values[3], std::array::from_fn(|k| of(lane + 100 * k as u32)));
        });
    }
    assert_eq!((300..400).map(|i| i % 7).sum::<u32>(), 300);
    one::<f32, 16>(|number| number as f32);
    one::<f32, 33>(|number| number as f32);
    one::<f64, 32>(|number| number as f64);
}

#[test]
fn h04_runs_of_three() {
    let values: Vec<f32> = (1..9).map(|i| i as f32).collect();
    on_all("H04", Sum::<f32>::new(), &[0_i32, 0, 1, 1, 1, 2, 2, 0], &values, |runs| {
        assert_eq!((runs.keys, runs.values), (vec![0, 1, 2, 0], vec![3.0, 12.0, 13.0, 8.0]));
    });
    let keys: Vec<i32> = (0..100_000).map(|i| i / 3).collect();
    on_all("H04", Sum::<f32>::new(), &keys, &vec![1.0; 100_000], |runs| {
        assert_eq!(runs.values.len(), 33_334);
        assert!(runs.values[..33_333].iter().all(|&sum| sum == 3.0));
        assert_eq!(runs.values[33_333], 1.0);
    });
}

#[test]
fn e02_the_same_bits_each_time() {
    let values = vec![0.1; 250_000];
    let by_key = Engine::cpu().by_key(Sum::<f64>::new()).unwrap();
    let sums: Vec<f64> =
        (0..100).map(|_| by_key.reduce(&[0.5_f64; 250_000], &values).unwrap().values[0]).collect();
    assert!((sums[0] - 25_000.0).abs() <= 1e-6);
    assert!(sums.iter().all(|sum| sum.to_bits() == sums[0].to_bits()));
}

#[test]
fn y02_runs_are_no_groups() {
    on_all("Y02", Sum::<u32>::new(), &[1_u32, 3, 3, 3, 2, 2, 1], &[9, 8, 7, 6, 5, 4, 3], |runs| {
        assert_eq!((runs.keys, runs.values), (vec![1, 3, 2, 1], vec![9, 21, 9, 3]));
    });
}

#[derive(Clone, Copy, Plain)]
struct NotZero;

impl MapFn for NotZero {
    type From = u32;
    type To = u32;
    fn map(&self, item: u32, _index: u64) -> u32 {
        (item != 0) as u32
    }
}

#[test]
fn y04_partial_counts_are_not_mapped_again() {
    for n in [1, 127, 128, 129, 255, 256, 257, 16_385] {
        let count = Map::new(Sum::<u32>::new(), NotZero);
        on_all("Y04", count, &vec![6_u32; n], &vec![5; n], |runs| assert_eq!(runs.values, [n as u32]));
    }
}

#[derive(Clone, Copy, Plain)]
struct NanIsNothing;

impl MapFn for NanIsNothing {
    type From = f64;
    type To = f64;
    fn map(&self, item: f64, _index: u64) -> f64 {
        if item.is_nan() { 0.0 } else { item }
    }
}

#[test]
fn y06_the_first_item_of_a_run_is_mapped_too() {
    let expected = [(2, [3.0, 9.0, 13.0, 8.0]), (5, [3.0, 12.0, 7.0, 8.0]), (7, [3.0, 12.0, 13.0, 0.0])];
    for (at, sums) in expected {
        let mut values: Vec<f64> = (1..9).map(f64::from).collect();
        values[at] = f64::NAN;
        let keys = [0_u32, 0, 1, 1, 1, 2, 2, 0];
        on_all("Y06", Map::new(Sum::<f64>::new(), NanIsNothing), &keys, &values, |runs| {
            assert_eq!(runs.values, sums);
        });
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Plain)]
struct Pair {
    a: i32,
    b: i32,
}

#[test]
fn y08_keys_of_two_fields() {
    for n in [10, 4099] {
        let keys: Vec<Pair> = (0..n).map(|i| Pair { a: i, b: i }).collect();
        on_all("Y08", Sum::<i32>::new(), &keys, &vec![1; n as usize], |runs| {
            assert!(runs.keys == keys && runs.values == vec![1; n as usize]);
        });
    }
}

#[test]
fn groups_of_strings_floats_and_pairs() {
    let mut random = Random::new(4);
    let values: Vec<i64> = (0..3000).map(|_| random.below(1000) as i64 - 500).collect();
    let numbers: Vec<usize> = (0..3000).map(|_| random.below(40) as usize).collect();
    fn check<K: GroupKey + PartialEq + std::fmt::Debug>(values: &[i64], numbers: &[usize], names: &[K]) {
        let keys: Vec<K> = numbers.iter().map(|&number| names[number].clone()).collect();
        let sums = Engine::cpu().group_by(Sum::<i64>::new()).unwrap();
        let mut first_seen: Vec<usize> = Vec::new();
        numbers.iter().for_each(|number| {
            if !first_seen.contains(number) {
                first_seen.push(*number);
            }
        });
        let sum = |number| (0..values.len()).filter(|&i| numbers[i] == number).map(|i| values[i]).sum();
        let seen = sums.reduce(&keys, values).unwrap();
        assert_eq!(seen.values, first_seen.iter().map(|&number| sum(number)).collect::<Vec<i64>>());
        assert_eq!(seen.keys, first_seen.iter().map(|&number| names[number].clone()).collect::<Vec<_>>());
        let sorted = sums.sorted().reduce(&keys, values).unwrap();
        assert_eq!(sorted.keys, names);
        assert_eq!(sorted.values, (0..names.len()).map(sum).collect::<Vec<i64>>());
    }
    let names: Vec<String> = (0..40).map(|i| format!("station {i:02}")).collect();
    check(&values, &numbers, &names);
    check(&values, &numbers, &names.iter().map(String::as_str).collect::<Vec<_>>());
    check(&values, &numbers, &(0..40).map(|i| (i / 7, (i % 7) as f32 - 3.5)).collect::<Vec<(i32, f32)>>());
    check(&values, &numbers, &(0..40).map(|i| [i as f64 * 1e300 - 2e301, 0.0]).collect::<Vec<_>>());
}

#[test]
fn float_groups_know_one_zero_and_one_nan() {
    let keys = [0.0_f32, f32::NAN, -0.0, -f32::NAN, f32::NEG_INFINITY, 1.0, f32::INFINITY];
    let groups =
        Engine::cpu().group_by(Sum::<u32>::new()).unwrap().sorted().reduce(&keys, &[1, 2, 4, 8, 16, 32, 64]);
    let groups = groups.unwrap();
    assert_eq!(groups.values, [16, 5, 32, 64, 10]);
    assert_eq!(format!("{:?}", groups.keys), "[-inf, 0.0, 1.0, inf, NaN]");
}

#[test]
fn by_tag_against_plain_loops_from_any_strides() {
    let mut random = Random::new(9);
    let values = Array2::from_shape_fn((300, 4), |_| random.below(1 << 20) as i32);
    let tags = Array2::from_shape_fn((2, 300), |_| random.below(50) as i32);
    let mut expected = BTreeMap::new();
    (0..300).for_each(|i| *expected.entry(tags[[1, i]]).or_insert(0_i32) += values[[i, 2]]);
    for engine in engines() {
        let sums = engine.by_tag(Sum::<i32>::new(), 60).unwrap();
        let found = sums.reduce(&tags.slice(s![1, ..]), &values.slice(s![.., 2])).unwrap();
        (0..60).for_each(|tag| assert_eq!(found[tag as usize], expected.get(&tag).copied().unwrap_or(0)));
        let means = engine.by_tag(Mean::<f32>::new(), 3).unwrap();
        let found = means.reduce(&[2_u8, 0, 2], &[1.0, 5.0, 2.0]).unwrap();
        assert_eq!((found[0], found[2]), (5.0, 1.5));
        assert!(found[1].is_nan());
        let fast = engine.by_tag(Fast(Sum::<f32>::new()), 3).unwrap();
        assert_eq!(fast.reduce(&[2_u8, 0, 2], &[1.0, 5.0, 2.5]).unwrap(), [5.0, 0.0, 3.5]);
    }
    assert_eq!(
        Engine::cpu().by_tag(Max::<f32>::new(), 1 << 31).unwrap_err(),
        Error::TooManyTags { tags: 1 << 31, limit: (1 << 31) - 1 }
    );
}
