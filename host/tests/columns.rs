//! Several arrays read side by side, maps written in the same pass, and ranges, on the CPU and in the simulator, against
//! plain loops.

use warpfold_gpu_kernels::kernels;
use warpfold_host::module::Kernels;
use warpfold_host::source::{Array, ArrayMut, Count, MapOut, Over, Position, Zip2, Zip3};
use warpfold_host::{Engine, Error, Schedule, SimOptions};
use warpfold_monoid::fused::{Parts2, Parts3};
use warpfold_monoid::{Compose, GivesIdentity, Map, MapFn, Max, Monoid, Plain, Sum};

/// The product of a pair.
#[derive(Clone, Copy, Plain)]
struct Times;

impl MapFn for Times {
    type From = Parts2<i32, i64>;
    type To = i64;
    fn map(&self, pair: Parts2<i32, i64>, _: u64) -> i64 {
        let (a, b) = pair.get();
        i64::from(a).wrapping_mul(b)
    }
}

type Dot = Map<Sum<i64>, Times>;

/// What it is written out as: the sum and the difference, and the position.
#[repr(C)]
#[derive(Clone, Copy, Plain)]
struct Both {
    offset: i64,
}

impl MapFn for Both {
    type From = Parts2<i32, i64>;
    type To = Parts3<i64, i32, u64>;
    fn map(&self, pair: Parts2<i32, i64>, index: u64) -> Parts3<i64, i32, u64> {
        let (a, b) = pair.get();
        Parts3::new(b.wrapping_add(self.offset), a.wrapping_neg(), index)
    }
}

#[derive(Clone, Copy, Plain)]
struct Double;

impl MapFn for Double {
    type From = i32;
    type To = i32;
    fn map(&self, item: i32, _: u64) -> i32 {
        item.wrapping_mul(2)
    }
}

/// Joins the steps of two arrays in order: a checksum that no other order has.
#[derive(Clone, Copy, Plain)]
struct Steps;

impl Monoid for Steps {
    type Item = Parts2<u32, u32>;
    type Acc = [u32; 2];
    type Output = [u32; 2];
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = false;
    fn identity(&self) -> [u32; 2] {
        [1, 0]
    }
    fn lift(&self, item: Parts2<u32, u32>, _: u64) -> [u32; 2] {
        let (scale, shift) = item.get();
        [scale, shift]
    }
    fn combine(&self, [a, b]: [u32; 2], [c, d]: [u32; 2]) -> [u32; 2] {
        [a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d)]
    }
    fn finish(&self, acc: [u32; 2]) -> [u32; 2] {
        acc
    }
}

kernels! {
    static TABLE:
    dot => Over<Dot, Zip2<Array<i32>, Array<i64>>>,
    dot_both => Over<Dot, MapOut<Zip2<Array<i32>, Array<i64>>, Both, Zip3<ArrayMut<i64>, ArrayMut<i32>, ArrayMut<u64>>>>,
    max_double => Over<Max<i32>, MapOut<Array<i32>, Double, ArrayMut<i32>>>,
    steps => Over<Steps, Zip2<Array<u32>, Array<u32>>>,
    count => Over<Sum<u64>, Count>,
    compose => Compose<u32>,
}

fn engines() -> Vec<Engine> {
    let sim = |schedule| Engine::sim_with(SimOptions { schedule, ..SimOptions::default() });
    let engines = vec![
        Engine::cpu(),
        sim(Schedule::Sequential),
        sim(Schedule::Seeded(3)),
        sim(Schedule::Concurrent { seed: 9 }),
    ];
    for engine in &engines {
        engine.load(Kernels { table: &TABLE, modules: &[] });
    }
    engines
}

const SIZES: [usize; 14] = [0, 1, 2, 31, 32, 33, 127, 128, 129, 2047, 2048, 2049, 4097, 9000];

#[test]
fn columns_are_read_side_by_side() {
    for engine in engines() {
        for n in SIZES {
            let a: Vec<i32> = (0..n as i32).map(|i| i.wrapping_mul(0x1234_5679)).collect();
            let b: Vec<i64> = (0..n as i64).map(|i| i.wrapping_mul(0x1234_5678_9abc_def1)).collect();
            let expected =
                a.iter().zip(&b).fold(0i64, |sum, (&a, &b)| sum.wrapping_add(i64::from(a).wrapping_mul(b)));
            let dot = Dot::new(Sum::new(), Times);
            assert_eq!(
                engine.reduce_columns(dot, (&a, &b)).unwrap(),
                expected,
                "{n} on {}",
                engine.backend()
            );
        }
    }
}

#[test]
fn their_order_is_kept() {
    for engine in engines() {
        for n in SIZES {
            let a: Vec<u32> = (0..n as u32).map(|i| i * 2 + 1).collect();
            let b: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(77) ^ 0x5555).collect();
            let expected = a.iter().zip(&b).fold([1u32, 0u32], |[s, t], (&a, &b)| {
                [s.wrapping_mul(a), t.wrapping_mul(a).wrapping_add(b)]
            });
            assert_eq!(
                engine.reduce_columns(Steps, (&a, &b)).unwrap(),
                expected,
                "{n} on {}",
                engine.backend()
            );
        }
    }
}

#[test]
fn maps_are_written_in_the_same_pass() {
    for engine in engines() {
        for n in SIZES {
            let a: Vec<i32> = (0..n as i32).map(|i| i.wrapping_mul(0x1234_5679)).collect();
            let b: Vec<i64> = (0..n as i64).map(|i| i * 1_000_003).collect();
            let (mut sums, mut negated, mut places) = (vec![7; n], vec![7; n], vec![7; n]);
            let dot = Dot::new(Sum::new(), Times);
            let outputs = (&mut sums, &mut negated, &mut places);
            let found = engine.map_reduce_columns(dot, Both { offset: 5 }, (&a, &b), outputs).unwrap();
            let what = format!("{n} on {}", engine.backend());
            assert_eq!(found, engine.reduce_columns(dot, (&a, &b)).unwrap(), "{what}");
            assert!(sums.iter().zip(&b).all(|(sum, b)| *sum == b + 5), "{what}");
            assert!(negated.iter().zip(&a).all(|(negated, a)| *negated == a.wrapping_neg()), "{what}");
            assert!(places.iter().zip(0..).all(|(&place, i)| place == i), "{what}");

            let mut doubled = vec![7; n];
            let greatest = engine.map_reduce_columns(Max::<i32>::new(), Double, &a, &mut doubled).unwrap();
            assert_eq!(greatest, a.iter().copied().max(), "{what}");
            assert!(doubled.iter().zip(&a).all(|(doubled, a)| *doubled == a.wrapping_mul(2)), "{what}");
        }
    }
}

#[test]
fn positions_are_items_too() {
    for engine in engines() {
        // SAFETY: no arrays.
        let op = unsafe { Over::new(Sum::<u64>::new(), Count) };
        for n in SIZES {
            let sum = engine.reducer(op).unwrap().reduce(Position::before(n)).unwrap();
            assert_eq!(sum, (0..n as u64).sum::<u64>(), "{n} on {}", engine.backend());
        }
    }
}

#[test]
fn lengths_must_agree() {
    let dot = Dot::new(Sum::new(), Times);
    for engine in engines() {
        let error = engine.reduce_columns(dot, (&vec![1, 2, 3], &vec![1, 2])).unwrap_err();
        assert_eq!(error, Error::ColumnLengths { first: 3, other: 2 });
    }
}
