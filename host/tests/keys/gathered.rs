//! Reductions by tag of operators whose order is free: in one block's table, in several copies, by ranges of tags, and in global memory,
//! as forged devices have them; against plain loops.

use warpfold_host::{Engine, Error, Schedule, Tag, plan::DeviceFacts};
use warpfold_monoid::{Fast, Max, Monoid, Sum, Xor};

use super::{random, sim};

/// A device of which a block has at most so many bytes of shared memory, so small that short arrays are long ones.
fn device(most: u32) -> DeviceFacts {
    let mut facts = DeviceFacts::H100;
    (facts.multiprocessors, facts.most_shared_bytes_per_block) = (1, most);
    facts.shared_bytes_per_multiprocessor = most + 1024;
    facts
}

/// Tags below `k`: any, all one, half of them one, in order, and in turn.
fn tags(k: u32, shape: u32, n: usize) -> Vec<u32> {
    let mut next = random(k as u64 + shape as u64);
    (0..n)
        .map(|i| match (shape, next() % k) {
            (1, _) => k / 2,
            (2, _) if i % 2 == 0 => k - 1,
            (3, _) => (i as u64 * k as u64 / n as u64) as u32,
            (4, _) => i as u32 % k,
            (_, any) => any,
        })
        .collect()
}

fn check<T: Tag + TryFrom<u32>, Op: Monoid>(
    op: Op,
    (facts, k, shape, n): (DeviceFacts, u32, u32, usize),
    value: impl Fn(u32) -> Op::Item,
    same: impl Fn(Op::Output, Op::Output, &[Op::Item]) -> bool,
) {
    let mut next = random(n as u64 * 31 + k as u64);
    let tags = tags(k, shape, n);
    let values: Vec<Op::Item> = (0..n).map(|_| value(next())).collect();
    let narrow: Vec<T> = tags.iter().map(|&tag| T::try_from(tag).ok().unwrap()).collect();
    // From the second on, where no vector begins.
    let from = shape as usize % 2;
    let engine = sim(Schedule::Concurrent { seed: k as u64 }).with_facts(facts);
    let found = engine.by_tag(op, k as u64).unwrap().reduce(&narrow[from..], &values[from..]).unwrap();
    for (tag, &found) in found.iter().enumerate() {
        let mine: Vec<Op::Item> = (from..n).filter(|&i| tags[i] as usize == tag).map(|i| values[i]).collect();
        let sum = mine.iter().enumerate().fold(None, |sum, (i, &item)| {
            let lifted = op.lift(item, i as u64);
            Some(sum.map_or(lifted, |sum| op.combine(sum, lifted)))
        });
        let expected = sum.map_or_else(|| op.finish_empty(), |sum| op.finish(sum));
        assert!(same(found, expected, &mine), "tag {tag} of {k}, shape {shape}, of {n} items");
    }
}

/// Numbers of nearly one magnitude, and at times zero, or far out of scale.
fn float(number: u32) -> f32 {
    match number % 64 {
        0 => 0.0,
        1 => number as f32 * 1e20,
        2 => number as f32 * -1e-30,
        _ => number as f32 / (1 << 20) as f32 - 1024.0,
    }
}

fn near(found: f32, expected: f32, items: &[f32]) -> bool {
    let magnitudes: f64 = items.iter().map(|item| item.abs() as f64).sum();
    (found as f64 - expected as f64).abs() <= 1.2e-7 * expected.abs() as f64 + 1e-12 * magnitudes
}

/// Two blocks, one block, ranges, and global memory: bytes of shared memory for tags that take 4, 8 or 16.
const PLACES: [(u32, u32); 6] = [(1, 8192), (3, 8192), (70, 8192), (300, 2200), (500, 1100), (1000, 600)];

#[test]
fn integers_and_extremes_are_exact() {
    for (i, (k, most)) in PLACES.into_iter().enumerate() {
        let facts = device(most);
        for shape in [i as u32 % 5, (i as u32 + 1) % 5] {
            let n = 4096 + 13 * k as usize % 70;
            check::<i32, _>(Sum::<u32>::new(), (facts, k, shape, n), |number| number << 7, |a, b, _| a == b);
            let wide = |number| ((number as u64) << 33) | (number as u64 * 3);
            check::<u64, _>(Sum::<u64>::new(), (facts, k, shape, n), wide, |a, b, _| a == b);
            check::<u32, _>(Max::<f32>::new(), (facts, k, shape, n), float, |a, b, _| {
                a.to_bits() == b.to_bits()
            });
        }
    }
    check::<u8, _>(Xor::<u64>::new(), (device(4096), 200, 0, 5000), |number| number as u64, |a, b, _| a == b);
}

#[test]
fn fast_sums_of_floats_are_as_accurate_as_others() {
    for (i, (k, most)) in PLACES.into_iter().enumerate() {
        for shape in [i as u32 % 5, (i as u32 + 2) % 5] {
            check::<i32, _>(Fast(Sum::<f32>::new()), (device(most), k, shape, 4500), float, near);
        }
    }
    // In scale a block's sums are exact, whatever cancels.
    let tiny = |number: u32| [3.0, 0.25, -3.0][number as usize % 3];
    let exact = |a: f32, b: f32, _: &[f32]| a.to_bits() == b.to_bits();
    check::<i32, _>(Fast(Sum::<f32>::new()), (device(8192), 16, 0, 5000), tiny, exact);
}

#[test]
fn what_is_not_finite_and_out_of_range() {
    let engine = sim(Schedule::default()).with_facts(device(8192));
    let mut tags: Vec<i32> = (0..6000).map(|i| i % 4).collect();
    let mut values: Vec<f32> = (0..6000).map(|i| (i % 5) as f32).collect();
    (values[40], values[41], values[5001], values[42]) =
        (f32::INFINITY, f32::INFINITY, f32::NEG_INFINITY, f32::NAN);
    let sums = engine.by_tag(Fast(Sum::<f32>::new()), 5).unwrap().reduce(&tags, &values).unwrap();
    assert_eq!((sums[0], sums[4]), (f32::INFINITY, 0.0));
    assert!(sums[1].is_nan() && sums[2].is_nan() && sums[3].is_finite());
    for (most, k) in [(8192, 5), (100, 500)] {
        let counts = sim(Schedule::default()).with_facts(device(most)).by_tag(Sum::<u32>::new(), k).unwrap();
        let ones = vec![1_u32; 6000];
        (tags[4999], tags[5500]) = (-1, k as i32);
        let error = counts.reduce(&tags, &ones).unwrap_err();
        assert_eq!(error, Error::TagOutOfRange { index: 4999, tag: -1, tags: k });
        let found = counts.ignore_out_of_range().reduce(&tags, &ones).unwrap();
        assert_eq!(found[..5], [1499, 1500, 1500, 1499, 0]);
        (tags[4999], tags[5500]) = (3, 0);
    }
    assert_eq!(
        Engine::cpu().by_tag(Fast(Sum::<f32>::new()), 2).unwrap().reduce(&[1_u8, 1], &[0.5, 1.0]).unwrap(),
        [0.0, 1.5]
    );
}

/// Lists of pairs whose tags fit into a table: of a device with room for a tile, where no few ranges of tags have them.
#[test]
fn pairs_that_are_split() {
    let facts = device(60_000);
    let mut next = random(5);
    // The first has more tiles than a block of threads has warps, so that lanes of a warp look at several pieces.
    for (shape, k, n) in [(0, 17_000, 203_001), (3, 16_400, 66_000), (1, 15_000, 60_003), (2, 20_000, 80_000)]
    {
        let mut tags = tags(k, shape, n);
        let bad = n - 7000 - shape as usize;
        (tags[bad], tags[n - 1]) = (k, u32::MAX);
        // From the second on, where no vector begins.
        let from = shape as usize % 2;
        let ints: Vec<u32> = (0..n).map(|_| next()).collect();
        let floats: Vec<f32> = ints.iter().map(|&number| float(number)).collect();
        let engine = sim(Schedule::Concurrent { seed: k as u64 }).with_facts(facts);
        let (mut sums, mut total, mut magnitude) =
            (vec![0_u64; k as usize], vec![0_f64; k as usize], vec![0_f64; k as usize]);
        for i in (from..n).filter(|&i| tags[i] < k) {
            let tag = tags[i] as usize;
            sums[tag] = sums[tag].wrapping_add((ints[i] as u64) << 20);
            total[tag] += floats[i] as f64;
            magnitude[tag] += floats[i].abs() as f64;
        }
        let long: Vec<u64> = ints.iter().map(|&number| (number as u64) << 20).collect();
        let exact = engine.by_tag(Sum::<u64>::new(), k as u64).unwrap();
        let error = exact.reduce(&tags[from..], &long[from..]).unwrap_err();
        assert_eq!(error, Error::TagOutOfRange { index: (bad - from) as u64, tag: k.into(), tags: k.into() });
        assert_eq!(exact.ignore_out_of_range().reduce(&tags[from..], &long[from..]).unwrap(), sums);
        let fast = engine.by_tag(Fast(Sum::<f32>::new()), k as u64).unwrap().ignore_out_of_range();
        let found = fast.reduce(&tags[from..], &floats[from..]).unwrap();
        for tag in 0..k as usize {
            let off = (found[tag] as f64 - total[tag]).abs();
            assert!(off <= 1.2e-7 * total[tag].abs() + 1e-12 * magnitude[tag], "tag {tag} of {k}");
        }
    }
}
