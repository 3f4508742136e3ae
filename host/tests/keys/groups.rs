//! Group-bys, against a stable sort of the host's and the oracle of runs.

use std::fmt::Debug;

use warpfold_gpu_kernels::sort::TILE;
use warpfold_host::{Engine, Error, GroupKey, Groups, Schedule};
use warpfold_monoid::{Monoid, Plain, Sum, keyed::Equal};

use super::{Triples, Words, Worth, random, run_oracle, sim};

/// The groups: sorted, and first seen.
fn oracle<R: Plain + PartialEq, K: GroupKey, Op: Monoid>(
    op: &Op,
    run: impl Fn(usize) -> R,
    keys: &[K],
    values: &[Op::Item],
) -> [(Vec<K>, Vec<Op::Output>); 2] {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|&a, &b| keys[a].id().cmp(&keys[b].id()));
    let (mut runs, mut firsts) = (Vec::new(), Vec::new());
    for (place, &i) in order.iter().enumerate() {
        if place == 0 || keys[order[place - 1]].id() != keys[i].id() {
            firsts.push(i);
        }
        runs.push(run(firsts.len()));
    }
    let in_order: Vec<Op::Item> = order.iter().map(|&i| values[i]).collect();
    let results = run_oracle(&Equal, op, &runs, &in_order, &|i| order[i] as u64).1;
    let mut seen: Vec<usize> = (0..firsts.len()).collect();
    seen.sort_by_key(|&group| firsts[group]);
    [(0..firsts.len()).collect(), seen].map(|groups: Vec<usize>| {
        let keys = groups.iter().map(|&group| keys[firsts[group]].clone()).collect();
        (keys, groups.iter().map(|&group| results[group]).collect())
    })
}

fn check<R: Plain + PartialEq, K: GroupKey + Debug, Op: Monoid>(
    op: Op,
    run: impl Fn(usize) -> R,
    key: impl Fn(u32) -> K,
    sizes: &[usize],
) where
    Op::Item: Worth,
    Op::Output: PartialEq + Debug,
{
    let engines = [Engine::cpu(), sim(Schedule::Concurrent { seed: 5 })];
    for &n in sizes {
        for distinct in [1, 7, 1 << 30] {
            let mut next = random(n as u64 + distinct as u64);
            let keys: Vec<K> = (0..n).map(|_| key(next() % distinct)).collect();
            let values: Vec<Op::Item> = (0..n).map(|_| Op::Item::of(next())).collect();
            let expected = oracle(&op, &run, &keys, &values);
            for engine in &engines {
                let groups = engine.group_by(op).unwrap();
                for (reducer, (keys_expected, expected)) in [groups.sorted(), groups].iter().zip(&expected) {
                    let place = format!("{n}, {distinct}, {}", engine.backend());
                    let Groups { keys, values } = reducer.reduce(&keys, &values).unwrap();
                    assert_eq!(format!("{keys:?}"), format!("{keys_expected:?}"), "{place}");
                    assert_eq!(&values, expected, "{place}");
                }
            }
        }
    }
}

const ABOUT_A_TILE: [usize; 6] = [0, 1, 33, TILE as usize - 1, TILE as usize, TILE as usize + 1];

#[test]
fn operators_that_tell_order_and_position() {
    check(Words::default(), |k| k as i32, |key| key as i32 - 3, &ABOUT_A_TILE);
    check(Words::default(), |k| k as i64, |key| (key as u64) << 31, &[3 * TILE as usize + 5]);
    check(Triples::default(), |k| k as i32, |key| key as i16, &[700]);
}

#[test]
fn values_that_travel_with_their_keys() {
    check(Sum::<u64>::new(), |k| k as i32, |key| key, &[2 * TILE as usize + 77]);
    check(Sum::<u32>::new(), |k| k as i64, |key| (key as i64 - 3) << 33, &[TILE as usize + 1]);
    check(Sum::<u64>::new(), |k| k as i64, |key| key as f64 - 4.5, &[900]);
}

#[test]
fn keys_of_every_kind() {
    let values: Vec<u32> = (0..600).collect();
    fn on_all<K: GroupKey + Debug>(values: &[u32], key: impl Fn(u32) -> K) {
        check(Words::default(), |k| k as i32, key, &[values.len()]);
    }
    on_all(&values, |key| key as u8);
    on_all(&values, |key| key as i8);
    on_all(&values, |key| key as u16);
    on_all(&values, |key| key % 3 == 1);
    on_all(&values, |key| char::from_u32(key % 0xd000).unwrap());
    on_all(&values, |key| f32::from_bits(key.wrapping_mul(0x9e37_79b9) & 0xbf7f_ffff | 1));
    on_all(&values, |key| key as u128);
    on_all(&values, |key| format!("{key}"));
    on_all(&values, |key| (key % 5, key as i64));
    check(Words::default(), |k| k as i64, |key| key as usize, &[600]);
    check(Words::default(), |k| k as i64, |key| -(key as isize), &[600]);
}

#[test]
fn floats_have_one_zero_and_one_nan() {
    let quiet = f32::from_bits(f32::NAN.to_bits() | 77);
    let keys = [-0.0_f32, quiet, f32::INFINITY, 0.0, -f32::NAN, -1.0, -0.0, f32::NEG_INFINITY, 1e-40];
    let values: Vec<u64> = (0..9).map(|k| 1 << k).collect();
    for engine in [Engine::cpu(), sim(Schedule::default())] {
        let sums = engine.group_by(Sum::<u64>::new()).unwrap();
        let sorted = sums.sorted().reduce(&keys, &values).unwrap();
        assert_eq!(format!("{:?}", sorted.keys), "[-inf, -1.0, 0.0, 1e-40, inf, NaN]");
        assert_eq!(sorted.values, [128, 32, 73, 256, 4, 18]);
        let seen = sums.reduce(&keys, &values).unwrap();
        assert_eq!(format!("{:?}", seen.keys), "[0.0, NaN, inf, -1.0, -inf, 1e-40]");
        assert_eq!(seen.keys[1].to_bits(), f32::NAN.to_bits());
        assert_eq!(seen.values, [73, 18, 4, 32, 128, 256]);
        // All of one key, whatever its bits.
        let nans = [quiet as f64, -f64::NAN, f64::NAN];
        let one = sums.sorted().reduce(&nans, &[1, 2, 4]).unwrap();
        assert_eq!((one.keys.len(), one.values), (1, vec![7]));
    }
}

#[test]
fn positions_in_the_order_of_keys() {
    fn check<K: GroupKey>(keys: &[K]) {
        let mut expected: Vec<u64> = (0..keys.len() as u64).collect();
        expected.sort_by(|&a, &b| keys[a as usize].id().cmp(&keys[b as usize].id()));
        for engine in [Engine::cpu(), sim(Schedule::Concurrent { seed: 7 })] {
            assert_eq!(engine.order(keys).unwrap(), expected, "{} on {}", keys.len(), engine.backend());
        }
    }
    for n in [0, 1, 700, TILE + 1] {
        let mut next = random(n as u64);
        let numbers: Vec<u32> = (0..n).map(|_| next()).collect();
        let of = |number: &u32| (*number as i64 - (1 << 31)) << (number % 30);
        check(&numbers.iter().map(of).collect::<Vec<_>>());
        check(&numbers.iter().map(|number| *number as i8).collect::<Vec<_>>());
        check(&numbers.iter().map(|number| f32::from_bits(*number)).collect::<Vec<_>>());
        check(&numbers.iter().map(|number| format!("{}", number % 10)).collect::<Vec<_>>());
    }
    let engine = Engine::sim();
    assert!(matches!(engine.order(&[1_u32]), Err(Error::NoKernel { list: "sort_kernels!", .. })));
}

#[test]
fn what_no_kernel_serves() {
    // Any accumulator on the CPU.
    let most = Engine::cpu().group_by(warpfold_monoid::Max::<u8>::new()).unwrap().sorted();
    let groups = most.reduce(&["x", "y", "x"], &[3, 1, 2]).unwrap();
    assert_eq!((groups.keys, groups.values), (vec!["x", "y"], vec![3, 1]));
    let simulated = sim(Schedule::default());
    let error = simulated.group_by(Sum::<i16>::new()).unwrap_err();
    assert!(matches!(error, Error::NoKernel { list: "key_kernels!", .. }), "{error}");
    // Sorts are of a table of their own.
    let engine = Engine::sim();
    engine.load(warpfold_host::module::Kernels { table: &super::KEYS, modules: &[] });
    let error = engine.group_by(Sum::<u64>::new()).unwrap().reduce(&[1_u32], &[1]).unwrap_err();
    let Error::NoKernel { line, list, .. } = error else { panic!("{error}") };
    assert_eq!((line.as_str(), list), ("my_operator_sort => (u32, u32),", "sort_kernels!"));
    let error = simulated.group_by(Sum::<u64>::new()).unwrap().reduce(&[1_u32], &[1, 2]).unwrap_err();
    assert_eq!(error, Error::ColumnLengths { first: 1, other: 2 });
}
