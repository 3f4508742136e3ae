//! The kernels' own source in the simulator, at length (`operators.rs` has every operator): the bits of the CPU backend at every
//! boundary of the tree and every start within a vector, in each order of execution. The simulator holds each access
//! against the buffers of the launch; guard words around the input show what it could not see.

use warpfold::{
    Affine, Compose, DoubleDouble, Engine, Error, GivesIdentity, Max, MaxSegmentSum, Min, Monoid, NanMax,
    NanMin, NanProduct, NanSum, Plain, Product, Schedule, SimOptions, Sum, Value,
};

use crate::support::{Bits, Random, sizes};

/// Lengths that are walked at every start; then those at one start alone.
const SIZES: [usize; 29] = [
    0, 1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025,
    2049, 4095, 4096, 4097,
];
const LONG: [usize; 5] = [8191, 8192, 8193, 12_289, 100_000];

/// Items on either side of the input.
const GUARDS: usize = 8;

fn schedules(seed: u64) -> [Schedule; 3] {
    [Schedule::Sequential, Schedule::Seeded(seed), Schedule::Concurrent { seed }]
}

fn sim(schedule: Schedule) -> Engine {
    Engine::sim_with(SimOptions { schedule, ..SimOptions::default() })
}

/// Reduces `n` items that start `start` items past a multiple of 16 bytes, in the simulator and on the CPU.
fn compare<Op: Monoid>(op: Op, items: &[Op::Item], start: usize, n: usize, schedule: Schedule)
where
    Value<Op>: Bits,
    Op::Item: Bits,
{
    // A copy of its own, so that what lies around it is known.
    let slots = 16 / size_of::<Op::Item>();
    let mut memory = items[..n + start + 2 * GUARDS + slots].to_vec();
    let aligned = (GUARDS..).find(|&i| memory[i..].as_ptr().addr().is_multiple_of(16)).unwrap();
    let first = aligned + start;
    memory.truncate(first + n + GUARDS);
    let before: Vec<_> = memory.iter().map(Bits::bits).collect();
    let input = &memory[first..first + n];
    let found = sim(schedule).reducer(op).unwrap().reduce(input);
    let what = format!("{} of {n} items, start + {start}, {schedule:?}", std::any::type_name::<Op>());
    let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
    let expected = Engine::cpu().reducer(op).unwrap().reduce(input).unwrap();
    assert_eq!(found.bits(), expected.bits(), "{what}");
    assert!(memory.iter().map(Bits::bits).eq(before), "{what}: the input or what lies around it was written");
}

/// Walks all lengths and starts, the schedules taking turns.
fn walk<Op: Monoid>(op: Op, make: impl Fn(&mut Random) -> Op::Item)
where
    Value<Op>: Bits,
    Op::Item: Bits,
{
    let mut random = Random::new(11);
    let items: Vec<Op::Item> = (0..100_100).map(|_| make(&mut random)).collect();
    let starts = 16 / size_of::<Op::Item>();
    let schedules = schedules(5);
    for (i, n) in SIZES.into_iter().enumerate() {
        for start in 0..starts {
            compare(op, &items, start, n, schedules[(i + start) % 3]);
        }
    }
    for (i, n) in LONG.into_iter().enumerate() {
        compare(op, &items, i % starts, n, schedules[i % 3]);
    }
}

/// Signs, zeros of both signs, and exponents that differ.
fn float(random: &mut Random) -> f64 {
    match random.below(50) {
        0 => 0.0,
        1 => -0.0,
        _ => random.spread(20),
    }
}

fn near_one(random: &mut Random) -> f64 {
    1.0 + (random.unit() - 0.5) * 1e-3
}

/// Every fifth is no number.
fn holes(random: &mut Random, value: fn(&mut Random) -> f64) -> f64 {
    if random.below(5) == 0 { f64::NAN } else { value(random) }
}

macro_rules! walked {
    ($($test:ident { $($op:ty: $make:expr,)+ })+) => {
        $(#[test]
        fn $test() {
            $(walk(<$op>::default(), $make);)+
        })+
    };
}

walked! {
    sums_of_integers {
        Sum<i32>: |r| r.bits() as i32,
        Sum<u32>: |r| r.bits() as u32,
        Sum<i64>: |r| r.bits() as i64,
        Sum<u64>: |r| r.bits(),
        Sum<i32, i64>: |r| r.bits() as i32,
        Sum<u32, u64>: |r| r.bits() as u32,
    }
    products_of_integers {
        Product<i32>: |r| r.bits() as i32 | 1,
        Product<u32>: |r| r.bits() as u32 | 1,
        Product<i64>: |r| r.bits() as i64 | 1,
        Product<u64>: |r| r.bits() | 1,
        Product<i32, i64>: |r| r.bits() as i32 | 1,
        Product<u32, u64>: |r| r.bits() as u32 | 1,
    }
    extremes_of_integers {
        Min<i32>: |r| r.bits() as i32,
        Min<u32>: |r| r.bits() as u32,
        Min<i64>: |r| r.bits() as i64,
        Min<u64>: |r| r.bits(),
        Max<i32>: |r| r.bits() as i32,
        Max<u32>: |r| r.bits() as u32,
        Max<i64>: |r| r.bits() as i64,
        Max<u64>: |r| r.bits(),
    }
    sums_and_products_of_floats {
        Sum<f32>: |r| float(r) as f32,
        Sum<f64>: float,
        Product<f32>: |r| near_one(r) as f32,
        Product<f64>: near_one,
    }
    extremes_of_floats {
        Min<f32>: |r| float(r) as f32,
        Min<f64>: float,
        Max<f32>: |r| float(r) as f32,
        Max<f64>: float,
    }
    floats_with_holes {
        NanSum<f32>: |r| holes(r, float) as f32,
        NanSum<f64>: |r| holes(r, float),
        NanProduct<f32>: |r| holes(r, near_one) as f32,
        NanProduct<f64>: |r| holes(r, near_one),
        NanMin<f32>: |r| holes(r, float) as f32,
        NanMin<f64>: |r| holes(r, float),
        NanMax<f32>: |r| holes(r, float) as f32,
        NanMax<f64>: |r| holes(r, float),
    }
    exact_and_fused {
        Sum<f32, DoubleDouble>: |r| float(r) as f32,
        (Sum<f32>, Min<f32>, Max<f32>): |r| float(r) as f32,
    }
    order_that_matters {
        Compose<f32>: |r| Affine { scale: near_one(r) as f32, shift: float(r) as f32 },
        Compose<f64>: |r| Affine { scale: near_one(r), shift: float(r) },
        MaxSegmentSum<i32>: |r| r.bits() as i32 >> 12,
        MaxSegmentSum<i32, i64>: |r| r.bits() as i32,
        MaxSegmentSum<i64>: |r| r.bits() as i64 >> 20,
    }
}

#[test]
fn every_boundary_of_the_tree_in_every_order() {
    let mut random = Random::new(21);
    let items: Vec<f32> = (0..21_000).map(|_| random.spread(20) as f32).collect();
    for n in sizes(4, 20_000) {
        for schedule in schedules(n) {
            compare(Sum::<f32>::new(), &items, n as usize % 4, n as usize, schedule);
        }
    }
}

#[test]
fn long_arrays_take_the_kernel_for_them() {
    let mut random = Random::new(31);
    let n = (1 << 20) + 8195;
    let items: Vec<f32> = (0..n + 100).map(|_| random.spread(20) as f32).collect();
    let plan = Engine::sim().reducer(Sum::<f32>::new()).unwrap().plan(n as u64).unwrap();
    assert_eq!(plan.strategy.kernel(), "reduce_long");
    for (start, schedule) in [0, 1, 3].into_iter().zip(schedules(3)) {
        compare(Sum::<f32>::new(), &items, start, n, schedule);
    }
    let items: Vec<i32> = (0..n + 100).map(|_| random.bits() as i32 >> 12).collect();
    for (start, schedule) in [0, 1, 3].into_iter().zip(schedules(4)) {
        compare(MaxSegmentSum::<i32>::new(), &items, start, n, schedule);
    }
}

/// Like a sum, but exported by nobody.
#[repr(C)]
#[derive(Clone, Copy)]
struct Unexported;

// SAFETY: zero bytes.
unsafe impl Plain for Unexported {}

impl Monoid for Unexported {
    type Item = u32;
    type Acc = u32;
    type Output = u32;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    fn identity(&self) -> u32 {
        0
    }
    fn lift(&self, item: u32, _index: u64) -> u32 {
        item
    }
    fn combine(&self, left: u32, right: u32) -> u32 {
        left ^ right
    }
    fn finish(&self, acc: u32) -> u32 {
        acc
    }
}

#[test]
fn a_missing_kernel_names_the_line_that_adds_it() {
    let error = Engine::sim().reducer(Unexported).unwrap_err();
    assert!(matches!(error, Error::NoKernel { .. }), "{error:?}");
    assert!(error.to_string().contains("my_operator => Unexported,"), "{error}");
}
