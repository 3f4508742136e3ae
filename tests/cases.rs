//! Faults that users of other libraries reported, of reductions of one array: each test names its case and holds the whole
//! kind. On every backend at hand that has a kernel for the operator; the CPU needs none.

use std::fmt::Debug;
use std::io::{self, Write};

use half::{bf16, f16};
use num_complex::Complex;
use warpfold::{
    All, Any, ArgMax, ArgMaxBy, ArgMin, Backend, CountIf, Element, Engine, Error, Float, IgnoreNan, Indexed,
    Items, L1, Linf, LogSumExp, Magnitude, Map, MapFn, Max, Mean, Min, Monoid, NanMax, NanMin, NonEmpty,
    Plain, Product, Semigroup, StdDev, Sum, Value, Variance, Xor, math, tree,
};

use crate::support::{engines, takes};

/// Runs an operator on every engine that has it, and `check`s what comes out.
fn on_all<Op: Monoid>(case: &str, op: Op, items: &[Op::Item], check: impl Fn(Value<Op>)) {
    for engine in engines().into_iter().filter(|engine| takes(engine, items.len())) {
        match engine.reducer(op) {
            Ok(reducer) => check(reducer.reduce(items).unwrap()),
            Err(error @ Error::NoKernel { .. }) => {
                assert!(engine.backend() != Backend::Cpu, "{case}: {error}");
                note(case, &engine, &error);
            }
            Err(error) => panic!("{case} on {}: {error}", engine.backend()),
        }
    }
}

/// The runner holds back what passing tests print, but not this.
fn note(case: &str, engine: &Engine, error: &Error) {
    let text = error.to_string();
    let line = format!(
        "note: {case} does not run on {}: {}\n",
        engine.backend(),
        text.split(':').next().unwrap_or("")
    );
    io::stderr().write_all(line.as_bytes()).expect("standard error takes a line");
}

/// The same result everywhere.
fn is<Op: Monoid>(case: &str, op: Op, items: &[Op::Item], expected: Value<Op>)
where
    Value<Op>: PartialEq + Debug,
{
    on_all(case, op, items, |value| assert_eq!(value, expected, "{case}, {} items", items.len()));
}

/// The same result, or NaN for NaN.
fn is_float<Op: Monoid>(case: &str, op: Op, items: &[Op::Item], expected: f64)
where
    Value<Op>: Into<Option<Op::Output>>,
    Op::Output: Float,
{
    on_all(case, op, items, |value| {
        let value = value.into().map_or(f64::MAX, Float::to_f64);
        assert!(
            value == expected || (value.is_nan() && expected.is_nan()),
            "{case}: {value}, should be {expected}"
        );
    });
}

fn index_is<T: Element, Op: Monoid<Item = T, Output = Indexed<T>>>(
    case: &str,
    op: Op,
    items: &[T],
    expected: impl Into<Option<u64>>,
) where
    Value<Op>: Into<Option<Indexed<T>>>,
{
    let expected = expected.into();
    on_all(case, op, items, |value| {
        assert_eq!(value.into().map(|place| place.index()), expected, "{case}, {} items", items.len());
    });
}

fn halves(values: impl IntoIterator<Item = f64>) -> Vec<f16> {
    values.into_iter().map(f16::from_f64).collect()
}

/// Items that are computed as they are read.
struct Made<F> {
    n: u64,
    item: F,
}

impl<T: Plain, F: Fn(u64) -> T + Sync> Items<T> for Made<F> {
    fn len(&self) -> u64 {
        self.n
    }
    fn get(&self, index: u64) -> T {
        (self.item)(index)
    }
}

fn made<Op: Monoid>(op: Op, n: u64, item: impl Fn(u64) -> Op::Item + Sync) -> Value<Op> {
    Engine::cpu().reducer(op).unwrap().reduce_items(&Made { n, item }).unwrap()
}

#[test]
#[ignore = "large: 2^31 items a time"]
fn i01_sums_of_more_than_2_31_items() {
    let op = Sum::<u8, u64>::new();
    let item = |i| if i < 1 << 31 { 1 } else { 3 };
    assert_eq!(made(op, (1 << 31) + 7, item), 2_147_483_669);
    assert_eq!(made(op, 1 << 31, item), 1 << 31);
    assert_eq!(made(op, (1 << 31) - 1, item), (1 << 31) - 1);
}

#[test]
#[ignore = "large: 2^32 items"]
fn i03_the_last_of_2_32_items_is_the_greatest() {
    let last = |i| u8::from(i == (1 << 32) - 1);
    assert_eq!(made(Max::<u8>::new(), 1 << 32, last), Some(1));
    assert_eq!(made(ArgMax::<u8>::new(), 1 << 32, last), Some(Indexed::new((1 << 32) - 1, 1)));
}

#[test]
#[ignore = "large: 2^31 and 2^32 items"]
fn i11_whole_multiples_of_a_chunk() {
    for n in [2_147_483_647, 4_294_967_294] {
        assert_eq!(made(Sum::<u8, u64>::new(), n, |_| 1), n);
    }
}

#[test]
#[ignore = "large: 5e9 items"]
fn i13_parity_of_5e9_items() {
    assert_eq!(made(Xor::<u8>::new(), 5_000_000_000, |i| (i % 251) as u8), 1);
}

#[test]
fn n01_the_least_beside_nans() {
    let mut x = vec![0.0; 10_000];
    for i in [100, 200, 300] {
        x[i] = f64::NAN;
    }
    (x[44], x[705]) = (-1.0, -0.5);
    is_float("N01", Min::<f64>::new(), &x, f64::NAN);
    is_float("N01", NanMin::<f64>::new(), &x, -1.0);
}

#[test]
fn n05_no_index_of_nothing_escapes() {
    let (nan, zero) = ([f32::NAN; 50], [0.0; 50]);
    let (all, first, last) = ([nan, nan].concat(), [nan, zero].concat(), [zero, nan].concat());
    for (x, propagate, skip) in [(&all, 0, None), (&first, 0, Some(50)), (&last, 50, Some(0))] {
        index_is("N05", ArgMin::<f32>::new(), x, propagate);
        index_is("N05", ArgMax::<f32>::new(), x, propagate);
        index_is("N05", IgnoreNan(ArgMin::<f32>::new()), x, skip);
        index_is("N05", IgnoreNan(ArgMax::<f32>::new()), x, skip);
    }
}

#[test]
fn n07_the_least_and_its_index_agree_beside_nans() {
    let nan = f32::NAN;
    for (x, skip, value, propagate) in
        [([1.0, nan, 5.0, 0.1], 3, 0.1, 1), ([nan, -0.5, nan, 0.0], 1, -0.5, 0)]
    {
        is("N07", IgnoreNan(ArgMin::<f32>::new()), &x, Some(Indexed::new(skip, value)));
        is("N07", NanMin::<f32>::new(), &x, Some(value));
        index_is("N07", ArgMin::<f32>::new(), &x, propagate);
        is_float("N07", Min::<f32>::new(), &x, f64::NAN);
    }
}

#[test]
fn n11_the_index_of_a_nan() {
    let x = [1.0, 2.0, f32::NAN, 3.0];
    index_is("N11", ArgMax::<f32>::new(), &x, 2);
    is_float("N11", Max::<f32>::new(), &x, f64::NAN);
    is("N11", IgnoreNan(ArgMax::<f32>::new()), &x, Some(Indexed::new(3, 3.0)));
    is("N11", NanMax::<f32>::new(), &x, Some(3.0));
}

#[test]
fn t01_the_first_of_equal_items() {
    for k in -10..10 {
        is("T01", ArgMax::<i64>::new(), &[k; 16], Some(Indexed::new(0, k)));
        is("T01", ArgMin::<i64>::new(), &[k; 16], Some(Indexed::new(0, k)));
    }
}

/// The greatest value and where it stood; ties keep the left one, which is associative and not commutative.
#[derive(Clone, Copy, Plain)]
struct KeepLeft;

#[repr(C)]
#[derive(Clone, Copy, Plain)]
struct Tagged {
    value: f32,
    place: u32,
}

impl Semigroup for KeepLeft {
    type Item = f32;
    type Acc = Tagged;
    type Output = u32;
    const COMMUTATIVE: bool = false;
    fn lift(&self, value: f32, index: u64) -> Tagged {
        Tagged { value, place: index as u32 }
    }
    fn combine(&self, left: Tagged, right: Tagged) -> Tagged {
        if right.value > left.value { right } else { left }
    }
    fn finish(&self, acc: Tagged) -> u32 {
        acc.place
    }
}

#[test]
fn t03_ties_keep_the_left_one() {
    let mut x = vec![0.0; 1_000_000];
    (x[1], x[163_840]) = (1.0, 1.0);
    index_is("T03", ArgMax::<f32>::new(), &x, 1);
    is("T03", NonEmpty(KeepLeft), &x, Some(1));
}

#[test]
fn t05_the_lowest_i16_has_the_greatest_magnitude() {
    let mut x = vec![0_i16; 1000];
    (x[17], x[40], x[900]) = (i16::MIN, i16::MAX, i16::MIN);
    is("T05", ArgMaxBy::new(Magnitude::<i16>::new()), &x, Some(Indexed::new(17, i16::MIN)));
}

#[test]
fn t07_ties_across_every_edge() {
    let mut x = vec![0_i32; 200_000];
    for i in [31, 32, 255, 256, 1023, 1024, 65535, 65536] {
        x[i] = 9;
    }
    index_is("T07", ArgMax::<i32>::new(), &x, 31);
    let negated: Vec<i32> = x.iter().map(|x| -x).collect();
    index_is("T07", ArgMin::<i32>::new(), &negated, 31);
}

#[test]
fn v02_no_integer_goes_through_a_float() {
    let high = 1_u64 << 63;
    is("V02", Max::<u64>::new(), &[0, 9_223_372_036_854_775], Some(9_223_372_036_854_775));
    for x in [[high, high + 1].as_slice(), &[u64::MAX - 1, u64::MAX, u64::MAX - 1]] {
        is("V02", Max::<u64>::new(), x, Some(x[1]));
        is("V02", ArgMax::<u64>::new(), x, Some(Indexed::new(1, x[1])));
    }
}

#[test]
fn d02_extremes_of_infinities() {
    fn one<T: Float>() {
        is_float("D02", Min::<T>::new(), &[T::HIGHEST; 10], f64::INFINITY);
        is_float("D02", Max::<T>::new(), &[T::LOWEST; 10], f64::NEG_INFINITY);
    }
    one::<f16>();
    one::<bf16>();
    one::<f32>();
    one::<f64>();
}

#[test]
fn d04_arrays_of_the_identity() {
    fn one<T: Element>(value: T) {
        index_is("D04", ArgMax::<T>::new(), &[value; 3], 0);
        index_is("D04", ArgMin::<T>::new(), &[value; 3], 0);
    }
    one(0_u32);
    one(u32::MAX);
    one(f64::MAX);
    one(f64::INFINITY);
    one(f64::NEG_INFINITY);
    one(i8::MIN);
    one(i8::MAX);
    one(i64::MIN);
}

#[test]
fn d06_the_least_of_unsigned_numbers() {
    is("D06", Min::<u32>::new(), &(0..64).collect::<Vec<_>>(), Some(0));
    is("D06", Min::<u64>::new(), &(0..64).collect::<Vec<_>>(), Some(0));
}

#[test]
fn d08_negative_half_floats() {
    for n in [3, 40_000] {
        let x = halves((0..n).map(|i| [-3.0, -1.0, -2.0][i % 3]));
        index_is("D08", ArgMax::<f16>::new(), &x, 1);
    }
}

#[test]
fn d10_the_greatest_of_negative_numbers() {
    for n in [4, 5, 37, 4097] {
        let x: Vec<i32> = (0..n).map(|i| -(3 + (i * 5) % 11)).collect();
        is("D10", Max::<i32>::new(), &x, Some(-3));
        let x: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        is("D10", Max::<f32>::new(), &x, Some(-3.0));
    }
}

#[test]
fn d12_magnitudes_of_unsigned_numbers() {
    is("D12", Linf::<u32>::new(), &[3, 7, 2], 7);
    is("D12", L1::<u32>::new(), &[3, 7, 2], 12);
    is("D12", Map::new(Max::<u32>::new(), Magnitude::<u32>::new()), &[3, 7, 2], Some(7));
}

#[test]
fn z02_the_greatest_zero_and_its_index_agree() {
    for n in [4, 70_000] {
        let mut x = vec![-3.0_f32; n];
        x[..4].copy_from_slice(&[-1.0, -0.0, 0.0, -2.0]);
        index_is("Z02", ArgMax::<f32>::new(), &x, 2);
        on_all("Z02", Max::<f32>::new(), &x, |value| {
            assert_eq!(value.map(f32::to_bits), Some(x[2].to_bits()))
        });
    }
}

#[test]
fn zl01_one_item() {
    is("ZL01", Sum::<i32>::new(), &[42], 42);
    is("ZL01", Max::<i32>::new(), &[42], Some(42));
    is("ZL01", ArgMax::<i32>::new(), &[42], Some(Indexed::new(0, 42)));
}

#[test]
fn zl03_no_items_have_no_index() {
    is("ZL03", ArgMin::<f32>::new(), &[], None);
    is("ZL03", ArgMax::<f32>::new(), &[], None);
}

#[test]
fn a01_sums_of_bytes_wrap_or_widen_as_asked() {
    is("A01", Sum::<u8>::new(), &[1; 300], 44);
    is("A01", Sum::<u8, u64>::new(), &[1; 300], 300);
}

#[test]
fn a09_products_of_truth_values() {
    let mut x = [false; 256];
    is("A09", All::<bool>::new(), &x, false);
    x = [true; 256];
    is("A09", All::<bool>::new(), &x, true);
    x[200] = false;
    is("A09", All::<bool>::new(), &x, false);
}

#[test]
fn fr01_partial_sums_beyond_f16() {
    is("FR01", Sum::<f16>::new(), &halves([[32_000.0; 4], [-32_000.0; 4]].concat()), f16::ZERO);
}

#[test]
fn fr03_means_of_large_f16() {
    is("FR03", Mean::<f16>::new(), &halves([40_000.0; 3]), Some(f16::from_f32(40_000.0)));
}

#[test]
fn fr05_sums_of_f16_lose_no_item() {
    is("FR05", Sum::<f16>::new(), &halves([3.0; 2000]), f16::from_f32(6000.0));
}

#[test]
fn fr07_squares_beyond_f32() {
    let x: Vec<f32> = (0..1000).map(|i| if i % 2 == 0 { 9e19 } else { 1.1e20 }).collect();
    on_all("FR07", Variance::<f32>::default(), &x, |value| {
        assert!((value.unwrap() / 1e38 - 1.0).abs() < 1e-5)
    });
    on_all("FR07", StdDev::<f32>::default(), &x, |value| assert!((value.unwrap() / 1e19 - 1.0).abs() < 1e-5));
}

/// Is it a NaN?
#[derive(Clone, Copy, Plain)]
struct IsNan;

impl MapFn for IsNan {
    type From = f16;
    type To = bool;
    fn map(&self, from: f16, _index: u64) -> bool {
        Element::is_nan(from)
    }
}

#[test]
fn fr09_nans_are_looked_for_one_by_one() {
    for mut x in [halves((0..10_000).map(|i| if i % 2 == 0 { 59.0 } else { -59.0 })), halves([59.0; 10_000])]
    {
        is("FR09", Map::new(Any::<bool>::new(), IsNan), &x, false);
        x[9_999] = f16::NAN;
        is("FR09", Map::new(Any::<bool>::new(), IsNan), &x, true);
        let count: CountIf<IsNan> = Map::new(Default::default(), IsNan);
        is("FR09", count, &x, 1);
    }
}

#[test]
fn ia03_infinite_exponents() {
    is("IA03", LogSumExp::<f32>::new(), &[f32::NEG_INFINITY; 5], f32::NEG_INFINITY);
    is("IA03", LogSumExp::<f32>::new(), &[f32::INFINITY, 1.0], f32::INFINITY);
}

/// `exp(x - greatest)`.
#[repr(C)]
#[derive(Clone, Copy, Plain)]
struct Scaled {
    greatest: f32,
}

impl MapFn for Scaled {
    type From = f32;
    type To = f32;
    fn map(&self, from: f32, _index: u64) -> f32 {
        math::expf(from - self.greatest)
    }
}

#[test]
fn ia05_rows_narrower_than_a_block() {
    for row in 0..4 {
        let x = [-1000.0 * row as f32; 37];
        is("IA05", Max::<f32>::new(), &x, Some(x[0]));
        is("IA05", Map::new(Sum::<f32>::new(), Scaled { greatest: x[0] }), &x, 37.0);
        is("IA05", LogSumExp::<f32>::new(), &x, (f64::from(x[0]) + 37_f64.ln()) as f32);
    }
}

/// The longest run that does not decrease: 24 bytes, not commutative, without an identity.
#[derive(Clone, Copy, Plain)]
struct LongestRun;

#[repr(C)]
#[derive(Clone, Copy, Plain)]
struct Run {
    best: i32,
    prefix: i32,
    suffix: i32,
    len: i32,
    first: i32,
    last: i32,
}

impl Semigroup for LongestRun {
    type Item = i32;
    type Acc = Run;
    type Output = i32;
    const COMMUTATIVE: bool = false;
    fn lift(&self, item: i32, _index: u64) -> Run {
        Run { best: 1, prefix: 1, suffix: 1, len: 1, first: item, last: item }
    }
    fn combine(&self, left: Run, right: Run) -> Run {
        let joined = left.last <= right.first;
        let across = if joined { left.suffix + right.prefix } else { 0 };
        Run {
            best: left.best.max(right.best).max(across),
            prefix: left.prefix + if joined && left.prefix == left.len { right.prefix } else { 0 },
            suffix: right.suffix + if joined && right.suffix == right.len { left.suffix } else { 0 },
            len: left.len + right.len,
            first: left.first,
            last: right.last,
        }
    }
    fn finish(&self, acc: Run) -> i32 {
        acc.best
    }
}

#[test]
fn nc08_the_longest_run_that_does_not_decrease() {
    let x: Vec<i32> = (0..10_000_i64)
        .map(|i| if (3900..4600).contains(&i) { i as i32 } else { ((31 * i * i + i / 7) % 1009) as i32 })
        .collect();
    is("NC08", NonEmpty(LongestRun), &x, Some(701));
    let sorted: Vec<i32> = (0..10_000).map(|i| i / 100).collect();
    is("NC08", NonEmpty(LongestRun), &sorted, Some(10_000));
}

#[test]
fn q05_nothing_pads_the_last_block() {
    for n in [12_345, 1_000_003] {
        let x: Vec<f64> = (0..n).map(|i| 5.0 + (i % 7) as f64).collect();
        is("Q05", Min::<f64>::new(), &x, Some(5.0));
        is("Q05", Product::<f64>::new(), &vec![1.0; n], 1.0);
    }
}

#[test]
fn l01_tails_are_not_dropped() {
    for (n, place) in [(1500, 1400), (48, 40)] {
        let mut x = vec![0.0_f32; n];
        x[place] = 1.0;
        index_is("L01", ArgMax::<f32>::new(), &x, place as u64);
    }
}

#[test]
fn l03_last_warps_that_are_not_full() {
    for n in [1, 16, 31, 33, 45, 48, 63, 65, 97, 1000] {
        let x: Vec<f64> = (1..=n).map(f64::from).collect();
        let narrow: Vec<f32> = (1..=n).map(|i| i as f32).collect();
        let sum = f64::from(n * (n + 1) / 2);
        is("L03", Sum::<f64>::new(), &x, sum);
        is("L03", Max::<f64>::new(), &x, Some(n.into()));
        is("L03", Min::<f64>::new(), &x, Some(1.0));
        is("L03", Sum::<f32>::new(), &narrow, sum as f32);
        is("L03", Max::<f32>::new(), &narrow, Some(n as f32));
        is("L03", Min::<f32>::new(), &narrow, Some(1.0));
    }
}

#[test]
fn l07_three_items() {
    is("L07", Sum::<f32>::new(), &[4.0, 1.0, 0.0], 5.0);
    for n in [5, 7, 9] {
        is("L07", Sum::<f32>::new(), &vec![1.0; n], n as f32);
    }
}

#[test]
fn ma02_slices_from_any_item_on() {
    // The simulator takes what a slice of a short array shows.
    for n in [1_000_003, 5003] {
        for k in 0..18 {
            let rest = n - k;
            let floats: Vec<f32> = (0..n).map(|i| if i < k { f32::NAN } else { 1.0 }).collect();
            is("MA02", Sum::<f32>::new(), &floats[k..], rest as f32);
            is("MA02", ArgMax::<f32>::new(), &floats[k..], Some(Indexed::new(0, 1.0)));
            let narrow: Vec<f16> = floats.iter().map(|&x| f16::from_f32(x)).collect();
            is("MA02", Sum::<f16>::new(), &narrow[k..], f16::from_f32(rest as f32));
            is("MA02", Max::<f16>::new(), &narrow[k..], Some(f16::ONE));
            index_is("MA02", ArgMax::<f16>::new(), &narrow[k..], 0);
            let bytes: Vec<u8> = (0..n).map(|i| if i < k { 200 } else { 1 }).collect();
            is("MA02", Sum::<u8, u64>::new(), &bytes[k..], rest as u64);
            is("MA02", Max::<u8>::new(), &bytes[k..], Some(1));
            index_is("MA02", ArgMax::<u8>::new(), &bytes[k..], 0);
            let words: Vec<i16> = bytes.iter().map(|&x| x.into()).collect();
            is("MA02", Sum::<i16, i64>::new(), &words[k..], rest as i64);
            is("MA02", Max::<i16>::new(), &words[k..], Some(1));
            index_is("MA02", ArgMax::<i16>::new(), &words[k..], 0);
        }
    }
}

#[test]
fn ma04_extremes_of_half_floats() {
    for n in (1..600).chain([600, 4097, 100_003]) {
        let x = halves((0..n).map(|i| ((7 * i) % 1000) as f64 - 500.0));
        let (least, greatest) =
            (0..n).map(|i| (7 * i) % 1000).fold((1000, 0), |(a, b), x| (x.min(a), x.max(b)));
        is_float("MA04", Min::<f16>::new(), &x, f64::from(least) - 500.0);
        is_float("MA04", Max::<f16>::new(), &x, f64::from(greatest) - 500.0);
        match n {
            600 => assert_eq!((least, greatest), (0, 997)),
            3 => assert_eq!(greatest, 14),
            _ => {}
        }
    }
}

/// Sums of arrays in the numbers' own type.
#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct Lanes<T: Plain, const N: usize>(std::marker::PhantomData<fn() -> T>);

impl<T: Float + std::ops::Add<Output = T>, const N: usize> Semigroup for Lanes<T, N> {
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

/// 64, 132 and 256 bytes an item.
#[test]
fn u02_large_items() {
    fn one<T: Float + std::ops::Add<Output = T>, const N: usize>() {
        let x: Vec<[T; N]> =
            (0..10_007).map(|i| std::array::from_fn(|k| T::of_f64((i % 7 + k) as f64))).collect();
        on_all("U02", NonEmpty(Lanes::<T, N>(std::marker::PhantomData)), &x, |sums| {
            // Of the first number 30015; each later one is 1 more in each of the 10007 items.
            for (k, sum) in sums.unwrap().into_iter().enumerate() {
                assert_eq!(sum.to_f64(), 30_015.0 + 10_007.0 * k as f64);
            }
        });
    }
    one::<f32, 16>();
    one::<f32, 33>();
    one::<f64, 32>();
}

/// A count of one byte, which wraps, beside a number of eight.
#[repr(C)]
#[derive(Clone, Copy, Plain)]
struct Padded {
    value: f64,
    count: u8,
    rest: [u8; 7],
}

#[derive(Clone, Copy, Plain)]
struct SumPadded;

impl Semigroup for SumPadded {
    type Item = Padded;
    type Acc = Padded;
    type Output = Padded;
    const COMMUTATIVE: bool = true;
    fn lift(&self, item: Padded, _index: u64) -> Padded {
        item
    }
    fn combine(&self, left: Padded, right: Padded) -> Padded {
        // The padding carries no meaning: here it is spoilt.
        let count = left.count.wrapping_add(right.count);
        Padded { value: left.value + right.value, count, rest: [count; 7] }
    }
    fn finish(&self, acc: Padded) -> Padded {
        acc
    }
}

#[test]
fn u04_a_byte_beside_a_double() {
    let x = [Padded { value: 0.5, count: 1, rest: [255; 7] }; 4099];
    on_all("U04", NonEmpty(SumPadded), &x, |sum| {
        let sum = sum.unwrap();
        assert_eq!((sum.value, sum.count), (2049.5, 3));
    });
    is("U04", Sum::<u8>::new(), &[1; 4099], 3);
    is("U04", Sum::<f64>::new(), &[0.5; 4099], 2049.5);
}

#[test]
fn h02_float_bits_are_moved_unchanged() {
    let x: Vec<f32> = (0..1025).map(|i| if i % 2 == 0 { 0.5 } else { -0.25 }).collect();
    is("H02", Sum::<f32>::new(), &x, 128.5);
    is("H02", Min::<f32>::new(), &x, Some(-0.25));
}

#[test]
fn b02_small_values_are_true() {
    fn one<T: warpfold::Truth>(value: T) {
        is("B02", All::<T>::new(), &[value; 4], true);
        is("B02", Any::<T>::new(), &[value; 4], true);
    }
    one(0.5_f32);
    one(1e-40_f32);
    one(256_i32);
    one(1e-320_f64);
    one(f16::from_bits(1));
    one(1_u64 << 32);
}

#[test]
fn b04_any_is_no_sum_that_wraps() {
    is("B04", Any::<u8>::new(), &[1; 256], true);
    is("B04", Any::<u8>::new(), &vec![1; 65_536], true);
}

#[test]
fn x03_products_of_complex_numbers() {
    on_all("X03", Product::<Complex<f32>>::new(), &[Complex::new(0.0, 1.0); 1001], |z| {
        assert_eq!((z.re, z.im), (0.0, 1.0));
    });
    on_all("X03", Product::<Complex<f64>>::new(), &[Complex::new(0.0, 1.0); 1001], |z| {
        assert_eq!((z.re, z.im), (0.0, 1.0));
    });
}

#[test]
fn e04_the_same_bits_on_every_engine() {
    let item = |i: u64| (i * 2_654_435_761 % (1 << 32)) as f64 / 2f64.powi(32) - 0.5;
    for n in [1_000_003, 19_997] {
        let x: Vec<f32> = (0..n).map(|i| item(i) as f32).collect();
        let expected = tree::reduce(&Sum::<f32>::new(), &x).to_bits();
        on_all("E04", Sum::<f32>::new(), &x, |sum| assert_eq!(sum.to_bits(), expected));
    }
}
