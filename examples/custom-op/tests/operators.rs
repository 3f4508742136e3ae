//! Every operator on every backend, against plain loops that share nothing with it but the definition.
//!
//! Where there is no GPU, its tests say so on standard error and do nothing; with `WARPFOLD_REQUIRE_GPU=1` they fail.

use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::thread;

use custom_op::{
    KERNELS,
    ops::{
        AffineMap, Axpy, Bounds, Compose, CountOver, LongestRun, Matrix, MatrixProduct, MaxSegmentSum, Mean,
        Particle, Seen, Squared, SquaredNorm, SumOfSquaredHeights,
    },
};
use warpfold::source::{Array, InitialAt};
use warpfold::{Backend, Engine, Error, Monoid, NonEmpty, Schedule, SimOptions, Sum, Value};

fn load(engine: Engine) -> Engine {
    engine.load(KERNELS);
    engine
}

/// The GPU, if there is one; else a line on standard error, past the capture of passing tests' output.
fn gpu() -> Option<Engine> {
    // One for all tests: they run at the same time.
    static GPU: OnceLock<Result<Engine, Error>> = OnceLock::new();
    match GPU.get_or_init(|| Engine::cuda(0).map(load)) {
        Ok(engine) => Some(engine.clone()),
        Err(error @ (Error::CudaNotBuilt | Error::NoDevice | Error::NoDriver)) => {
            assert!(std::env::var_os("WARPFOLD_REQUIRE_GPU").is_none_or(|value| value != "1"), "{error}");
            let thread = thread::current();
            let line = format!("skipped: {}: {error}\n", thread.name().unwrap_or("a test"));
            io::stderr().write_all(line.as_bytes()).expect("standard error takes a line");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Makes three tests of a check.
macro_rules! on_every_backend {
    ($($check:ident: $cpu:ident, $sim:ident, $cuda:ident;)+) => {$(
        #[test]
        fn $cpu() {
            $check(&load(Engine::cpu()));
        }

        #[test]
        fn $sim() {
            for schedule in [Schedule::Sequential, Schedule::Concurrent { seed: 1 }] {
                $check(&load(Engine::sim_with(SimOptions { schedule, ..SimOptions::default() })));
            }
        }

        #[test]
        #[cfg_attr(not(feature = "cuda"), ignore = "needs the feature `cuda`")]
        fn $cuda() {
            if let Some(engine) = gpu() {
                $check(&engine);
            }
        }
    )+};
}

on_every_backend! {
    affine: affine_on_cpu, affine_on_sim, affine_on_cuda;
    affine_after: affine_after_on_cpu, affine_after_on_sim, affine_after_on_cuda;
    affine_rounded: affine_rounded_on_cpu, affine_rounded_on_sim, affine_rounded_on_cuda;
    axpy_and_norm: axpy_and_norm_on_cpu, axpy_and_norm_on_sim, axpy_and_norm_on_cuda;
    bounds: bounds_on_cpu, bounds_on_sim, bounds_on_cuda;
    count_over: count_over_on_cpu, count_over_on_sim, count_over_on_cuda;
    heights: heights_on_cpu, heights_on_sim, heights_on_cuda;
    longest_run: longest_run_on_cpu, longest_run_on_sim, longest_run_on_cuda;
    matrix: matrix_on_cpu, matrix_on_sim, matrix_on_cuda;
    max_segment: max_segment_on_cpu, max_segment_on_sim, max_segment_on_cuda;
    mean: mean_on_cpu, mean_on_sim, mean_on_cuda;
}

/// Lengths around those where the work is cut differently: a warp, a block, one chunk, several.
const LENGTHS: [usize; 19] =
    [0, 1, 2, 3, 31, 32, 33, 127, 1000, 1024, 2047, 2049, 4095, 4096, 4097, 8191, 8193, 12_289, 20_011];

/// For the backends that are fast enough.
const LONG: [usize; 2] = [100_003, 1_100_000];

/// The most items that a test needs.
const MOST: usize = LONG[1] + 3;

fn lengths(engine: &Engine) -> Vec<usize> {
    let long = if engine.backend() == Backend::Sim { &[] } else { &LONG[..] };
    [&LENGTHS[..], long].concat()
}

/// Reduces arrays of every length, which begin at different addresses, and compares with `expected`.
fn compare<Op: Monoid>(
    engine: &Engine,
    op: Op,
    items: &[Op::Item],
    expected: impl Fn(&[Op::Item]) -> Value<Op>,
) where
    Value<Op>: Debug + PartialEq,
{
    let reducer = engine.reducer(op).unwrap();
    for n in lengths(engine) {
        let items = &items[n % 3..][..n];
        let result = reducer.reduce(items).unwrap();
        assert_eq!(result, expected(items), "{n} items on {}", engine.backend());
    }
}

/// Items made of the numbers of the generator splitmix64, the same every time.
fn items<T>(seed: u64, make: impl Fn(u64) -> T) -> Vec<T> {
    let mut state = seed;
    let mut bits = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    (0..MOST).map(|_| make(bits())).collect()
}

/// From -1 up to 1, on a grid that `f32` holds exactly.
fn unit(bits: u64) -> f32 {
    (bits >> 41) as f32 / (1 << 22) as f32 - 1.0
}

/// What a chain of maps does to 0 and to 1 says what map it is. Whole numbers, so that nothing rounds.
fn affine(engine: &Engine) {
    let maps = items(1, |bits| AffineMap {
        scale: if bits & 1 == 0 { 1.0 } else { -1.0 },
        shift: (bits >> 60) as f32 - 8.0,
    });
    compare(engine, Compose, &maps, |maps| {
        let follow = |x: i64| maps.iter().fold(x, |x, map| map.scale as i64 * x + map.shift as i64);
        let (zero, one) = (follow(0), follow(1));
        AffineMap { scale: (one - zero) as f32, shift: zero as f32 }
    });
}

/// A start value in the backend's memory is the first map, and applied once.
fn affine_after(engine: &Engine) {
    let maps = items(18, |bits| AffineMap {
        scale: if bits & 1 == 0 { 1.0 } else { -1.0 },
        shift: (bits >> 60) as f32,
    });
    let start = [AffineMap { scale: 3.0, shift: -5.0 }];
    let expected = |maps: &[AffineMap]| {
        let follow = |x: i64| maps.iter().fold(3 * x - 5, |x, map| map.scale as i64 * x + map.shift as i64);
        let (zero, one) = (follow(0), follow(1));
        AffineMap { scale: (one - zero) as f32, shift: zero as f32 }
    };
    // SAFETY: the value outlives the reductions.
    let check = |address: u64| {
        compare(engine, unsafe { InitialAt::new(Compose, Array::at(address)) }, &maps, expected)
    };
    match engine.backend() {
        Backend::Cpu => check(start.as_ptr().expose_provenance() as u64),
        #[cfg(feature = "cuda")]
        Backend::Cuda => {
            let start = warpfold::cuda::DeviceArray::from_slice(engine, &start).unwrap();
            check(start.address());
        }
        // Memory that the launch does not know: the simulator reads it as the host does.
        _ => check(start.as_ptr().expose_provenance() as u64),
    }
}

/// Where something rounds: close to the exact chain, and the CPU's bits on every backend.
fn affine_rounded(engine: &Engine) {
    // Contracting, so that a rounding error fades instead of growing.
    let maps = items(2, |bits| AffineMap { scale: 0.75 + 0.125 * unit(bits), shift: unit(bits << 23) });
    let cpu = load(Engine::cpu()).reducer(Compose).unwrap();
    let reducer = engine.reducer(Compose).unwrap();
    for n in lengths(engine) {
        let maps = &maps[n % 3..][..n];
        let found = reducer.reduce(maps).unwrap();
        let exact = maps.iter().fold(0.0, |x, map| map.scale as f64 * x + map.shift as f64);
        assert!((found.shift as f64 - exact).abs() < 1e-5, "{n} maps: {found:?}, exactly {exact}");
        let expected = cpu.reduce(maps).unwrap();
        assert_eq!(
            (found.scale.to_bits(), found.shift.to_bits()),
            (expected.scale.to_bits(), expected.shift.to_bits()),
            "{n} maps on {}",
            engine.backend()
        );
    }
}

/// Two arrays in, one out, and a sum, in one pass. Whole numbers, so that nothing rounds.
fn axpy_and_norm(engine: &Engine) {
    let whole = |bits: u64| (bits % 33) as f32 - 16.0;
    let (xs, ys) = (items(14, whole), items(15, whole));
    let axpy = Axpy { factor: 3.0 };
    let norm = SquaredNorm::new(Sum::new(), Squared(axpy));
    for n in lengths(engine) {
        // At most 2^24: sums up to there are exact in `f32` too.
        let n = n.min(3000);
        let (xs, ys) = (&xs[n % 3..][..n], &ys[n % 5..][..n]);
        let expected: Vec<f32> = xs.iter().zip(ys).map(|(x, y)| 3.0 * x + y).collect();
        let squares: u64 = expected.iter().map(|&value| (value as i64 * value as i64) as u64).sum();
        let what = format!("{n} pairs on {}", engine.backend());
        assert_eq!(engine.reduce_columns(norm, (xs, ys)).unwrap(), squares as f32, "{what}");
        let mut written = vec![f32::NAN; n];
        let found = engine.map_reduce_columns(norm, axpy, (xs, ys), &mut written).unwrap();
        assert_eq!((found, written), (squares as f32, expected), "{what}");
    }
    // Long ones: every backend has the CPU's bits.
    if engine.backend() != Backend::Sim {
        let (xs, ys) = (&items(16, unit)[..LONG[1]], &items(17, unit)[..LONG[1]]);
        let cpu = load(Engine::cpu());
        let (mut ours, mut theirs) = (vec![0.0; xs.len()], vec![0.0; xs.len()]);
        let found = engine.map_reduce_columns(norm, axpy, (xs, ys), &mut ours).unwrap();
        let expected = cpu.map_reduce_columns(norm, axpy, (xs, ys), &mut theirs).unwrap();
        assert_eq!(found.to_bits(), expected.to_bits());
        assert!(ours.iter().zip(&theirs).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
}

fn bounds(engine: &Engine) {
    let points = items(3, |bits| match bits % 50 {
        0 => [f32::NAN, unit(bits)],
        1 => [unit(bits), f32::NAN],
        _ => [10.0 * unit(bits), unit(bits << 23)],
    });
    compare(engine, Bounds, &points, |points| {
        let seen: Vec<_> = points.iter().filter(|[x, y]| !x.is_nan() && !y.is_nan()).collect();
        let of = |axis: usize, from: f32, pick: fn(f32, f32) -> f32| {
            seen.iter().map(|point| point[axis]).fold(from, pick)
        };
        let seen = Seen {
            low: [0, 1].map(|axis| of(axis, f32::INFINITY, f32::min)),
            high: [0, 1].map(|axis| of(axis, f32::NEG_INFINITY, f32::max)),
            points: seen.len() as u32,
        };
        (!points.is_empty()).then_some(seen)
    });
}

fn count_over(engine: &Engine) {
    let values = items(4, |bits| if bits % 7 == 0 { f32::NAN } else { unit(bits) });
    for threshold in [-2.0, 0.0, 0.9, 2.0] {
        compare(engine, CountOver { threshold }, &values, |values| {
            let mut count = 0;
            for &value in values {
                if value > threshold {
                    count += 1;
                }
            }
            count
        });
    }
}

fn heights(engine: &Engine) {
    // Whole numbers whose squares add up exactly, beside fields that must not count.
    let particles =
        items(5, |bits| Particle { mass: 1e9, position: [f32::NAN, 1e9, (bits % 257) as f32 - 128.0] });
    compare(engine, SumOfSquaredHeights::default(), &particles, |particles| {
        let mut sum = 0u64;
        for particle in particles {
            let height = particle.position[2] as i64;
            sum += (height * height) as u64;
        }
        sum as f32
    });
}

fn longest_run(engine: &Engine) {
    // Mostly short runs, and one that is longer than any block of threads sees.
    let mut values = items(6, |bits| (bits % 2) as i32);
    values[900..7000].fill(5);
    values[40_000..90_000].fill(-1);
    let longest = |values: &[i32]| {
        let (mut longest, mut run, mut before) = (0, 0, None);
        for &value in values {
            run = if before == Some(value) { run + 1 } else { 1 };
            before = Some(value);
            longest = longest.max(run);
        }
        longest
    };
    compare(engine, LongestRun, &values, longest);
    compare(engine, LongestRun, &vec![7; MOST], longest);
    compare(engine, LongestRun, &items(7, |bits| (bits % 3) as i32), longest);
}

fn matrix(engine: &Engine) {
    // Odd determinants: no product loses information, so every item and its place count.
    let matrices = items(8, |bits| {
        let [a, b, c] = [bits as u32 | 1, (bits >> 32) as u32 & !1, (bits >> 20) as u32];
        Matrix([[a, b], [c, a.wrapping_add(2)]])
    });
    // Row by row: a vector that passes through all matrices.
    let product = |matrices: &[Matrix]| {
        Matrix([[1u64, 0], [0, 1]].map(|mut row| {
            for Matrix([[a, b], [c, d]]) in matrices {
                let [x, y] = row;
                let [a, b, c, d] = [a, b, c, d].map(|&element| u64::from(element));
                row = [(x * a % M + y * c % M) % M, (x * b % M + y * d % M) % M];
            }
            row.map(|element| element as u32)
        }))
    };
    const M: u64 = 1 << 32;
    compare(engine, MatrixProduct, &matrices, product);
}

fn mean(engine: &Engine) {
    // Multiples of 2^-22 that add up exactly.
    compare(engine, Mean, &items(13, unit), |values| {
        let steps: i64 = values.iter().map(|&value| (value * (1 << 22) as f32) as i64).sum();
        (!values.is_empty()).then(|| steps as f64 / (1 << 22) as f64 / values.len() as f64)
    });
}

/// Kadane's loop.
fn greatest_segment(values: &[i32]) -> Option<i64> {
    let mut best = None;
    let mut ending_here = 0;
    for &value in values {
        ending_here = i64::from(value) + ending_here.max(0);
        best = best.max(Some(ending_here));
    }
    best
}

fn max_segment(engine: &Engine) {
    let op = NonEmpty(MaxSegmentSum);
    compare(engine, op, &items(9, |bits| (bits % 201) as i32 - 100), greatest_segment);
    compare(engine, op, &items(10, |bits| bits as i32), greatest_segment);
    // None of which is worth having.
    compare(engine, op, &items(11, |bits| -1 - (bits % 100) as i32), greatest_segment);
}

/// The one oracle that is not obvious, against the definition.
#[test]
fn kadane_is_right() {
    let values = items(12, |bits| (bits % 21) as i32 - 10);
    for values in values[..240].chunks(40) {
        let segments = (0..values.len()).flat_map(|i| (i + 1..=values.len()).map(move |j| &values[i..j]));
        let best = segments.map(|segment| segment.iter().map(|&value| i64::from(value)).sum()).max();
        assert_eq!(greatest_segment(values), best);
    }
}
