//! Scans on every backend at hand, against exact serial folds, and those cases of `cases.json` that are about scans: each
//! broke another library, and is named by its id.

use ndarray::{Array2, Array3, Axis, ShapeBuilder, array, s};
use num_complex::Complex;
use warpfold::{
    Affine, ArgMax, Compose, Engine, GivesIdentity, Max, Min, Monoid, NanMax, NanMin, Plain, Product,
    Scanner, SegmentPlan, Sum,
};

use crate::support::engines;

/// The CPU, the simulator, and a GPU if there is one, for built-in operators.
fn on_each(check: impl Fn(&Engine)) {
    engines().iter().for_each(check);
}

fn scanner<Op: Monoid>(engine: &Engine, op: Op) -> Scanner<Op> {
    engine.scanner(op).unwrap()
}

/// Serial, exact.
fn running(items: &[i64]) -> Vec<i64> {
    items
        .iter()
        .scan(0_i64, |sum, &item| {
            *sum = sum.wrapping_add(item);
            Some(*sum)
        })
        .collect()
}

#[test]
fn sums_of_integers_are_serial_ones() {
    let items: Vec<i32> = (0..20_000).map(|i: i32| i.wrapping_mul(0x9e37_79b1_u32 as i32) >> 3).collect();
    let wide: Vec<i64> = items.iter().map(|&item| item.into()).collect();
    on_each(|engine| {
        for n in [0, 1, 31, 900, 7168, 7169, 20_000] {
            let expected = running(&wide[..n]);
            let sums = scanner(engine, Sum::<i32, i64>::new());
            assert!(sums.scan(&items[..n]).unwrap() == expected, "{n} items on {engine:?}");
            let narrow: Vec<i32> = expected.iter().map(|&sum| sum as i32).collect();
            let sums = scanner(engine, Sum::<i32>::new());
            assert!(sums.scan(&items[..n]).unwrap() == narrow, "{n} items on {engine:?}");
            let before: Vec<i32> = [0].iter().chain(&narrow).copied().take(n).collect();
            assert!(sums.exclusive().scan(&items[..n]).unwrap() == before, "{n} items on {engine:?}");
        }
    });
}

/// Each sum of `f32` is the exact one correctly rounded, as a reduction's is.
#[test]
fn sums_of_f32_are_correctly_rounded() {
    // Multiples of 2^-20 below 16, whose sums `i64` holds.
    let exact: Vec<i64> = (0..20_000_i64).map(|i| (i * 7_919_777) % (1 << 24) - (1 << 22)).collect();
    let items: Vec<f32> = exact.iter().map(|&item| item as f32 / (1 << 20) as f32).collect();
    let expected: Vec<f32> =
        running(&exact).iter().map(|&sum| (sum as f64 / (1 << 20) as f64) as f32).collect();
    on_each(|engine| {
        assert!(scanner(engine, Sum::<f32>::new()).scan(&items).unwrap() == expected, "{engine:?}")
    });
}

/// I07: an axis of one item is the identity map, however many lines there are.
#[test]
fn i07_an_axis_of_one_item() {
    let cube = Array3::from_shape_fn((3, 1, 500), |(o, _, i)| ((o + i) % 3) as u8);
    on_each(|engine| {
        let found = scanner(engine, Sum::<u8, u64>::new()).scan_axis(&cube, Axis(1)).unwrap();
        assert_eq!(found, cube.mapv(u64::from));
    });
}

/// I09, R04, R02: many rows in place of one, none of which sees another.
#[test]
fn r04_rows_longer_than_a_tile() {
    let rows = Array2::from_shape_fn((3, 20_000), |(_, c)| ((13 * c) % 97) as f32);
    on_each(|engine| {
        let found = scanner(engine, Sum::<f32>::new()).scan_axis(&rows, Axis(1)).unwrap();
        for row in found.rows() {
            assert_eq!([row[2047], row[2048], row[19_999]], [98_200.0, 98_246.0, 959_864.0]);
        }
    });
}

#[test]
fn r02_running_maxima_with_their_places() {
    let row = [3.0_f32, 2.0, 2.0, 2.0, 6.0, 4.0, 7.0, 6.0, 1.0, 3.0];
    on_each(|engine| {
        let found = scanner(engine, ArgMax::<f32>::new()).scan_rows(&row.repeat(4), 10).unwrap();
        for row in found.chunks(10) {
            let (values, places): (Vec<_>, Vec<_>) = row.iter().map(|it| (it.value(), it.index())).unzip();
            assert_eq!(values, [3.0, 3.0, 3.0, 3.0, 6.0, 6.0, 7.0, 7.0, 7.0, 7.0]);
            assert_eq!(places, [0, 0, 0, 0, 4, 4, 6, 6, 6, 6]);
        }
    });
}

/// N09: a NaN makes all that follow NaN, or none.
#[test]
fn n09_nans_propagate_or_are_passed_over() {
    let mut items: Vec<f32> = [1.0, 3.0, 2.0, 5.0, 4.0].repeat(2000);
    items[5002] = f32::NAN;
    on_each(|engine| {
        let max = scanner(engine, Max::<f32>::new()).scan(&items).unwrap();
        let min = scanner(engine, Min::<f32>::new()).scan(&items).unwrap();
        assert!(max[4..5002].iter().all(|&max| max == 5.0) && max[5002..].iter().all(|max| max.is_nan()));
        assert!(min[..5002].iter().all(|&min| min == 1.0) && min[5002..].iter().all(|min| min.is_nan()));
    });
    let few = [1.0, 3.0, f32::NAN, 5.0, 4.0];
    let cpu = Engine::cpu();
    assert_eq!(scanner(&cpu, NanMax::<f32>::new()).scan(&few).unwrap(), [1.0, 3.0, 3.0, 5.0, 5.0]);
    assert_eq!(scanner(&cpu, NanMin::<f32>::new()).scan(&few).unwrap(), [1.0; 5]);
}

/// D14: the minimum of infinities is infinite.
#[test]
fn d14_infinities_are_no_sentinels() {
    let mut items = vec![f64::INFINITY; 10_000];
    items[9_999] = 5.0;
    on_each(|engine| {
        let found = scanner(engine, Min::<f64>::new()).scan(&items).unwrap();
        assert!(found[..9_999].iter().all(|&min| min == f64::INFINITY) && found[9_999] == 5.0);
    });
}

/// Z04: nothing is combined with an identity, so a zero keeps its minus.
#[test]
fn z04_zeros_keep_their_minus() {
    let items: Vec<Complex<f32>> = (0..8).map(|i| Complex::new(1.7 + i as f32, -0.0)).collect();
    let found = scanner(&Engine::cpu(), Sum::<Complex<f32>>::new()).scan(&items).unwrap();
    assert!(found.iter().all(|sum| sum.im.to_bits() == (-0.0_f32).to_bits()), "{found:?}");
    on_each(|engine| {
        let found = scanner(engine, Sum::<f32>::new()).scan(&[-0.0_f32; 9000]).unwrap();
        assert!(found.iter().all(|sum| sum.to_bits() == (-0.0_f32).to_bits()));
    });
}

/// ZL01, ZL05: one item, and none.
#[test]
fn zl01_one_item_and_none() {
    on_each(|engine| {
        let sum = scanner(engine, Sum::<i32>::new());
        assert_eq!(sum.scan(&[42]).unwrap(), [42]);
        assert!(sum.scan(&[]).unwrap().is_empty());
        let none = SegmentPlan::from_keys::<i32>(&[]);
        assert!(sum.scan_segments(&[], &none).unwrap().is_empty());
        let mut untouched = [777; 3];
        sum.scan_into(&[], &mut untouched[1..1]).unwrap();
        assert_eq!(untouched, [777; 3]);
    });
}

/// A01, A03, A05, A07: what is added up in which width.
#[test]
fn a01_sums_have_the_width_that_their_type_says() {
    let flags: Vec<u8> = (0..10_000).map(|i| u8::from(i % 3 == 0)).collect();
    on_each(|engine| {
        let wide = scanner(engine, Sum::<u8, u32>::new());
        assert_eq!(wide.scan(&[1; 300]).unwrap()[299], 300);
        let found = wide.scan(&flags).unwrap();
        assert_eq!((found[381], found[9_999]), (128, 3334));
        let exclusive = scanner(engine, Sum::<f64>::new()).exclusive();
        assert_eq!(exclusive.scan(&[0.5, 1.25, 2.5]).unwrap(), [0.0, 0.5, 1.75]);
        let exclusive = scanner(engine, Sum::<i64>::new()).exclusive();
        assert_eq!(exclusive.scan(&[i32::MAX as i64, 2, 3]).unwrap(), [0, 2_147_483_647, 2_147_483_649]);
    });
    let cpu = Engine::cpu();
    assert_eq!(scanner(&cpu, Sum::<u8>::new()).scan(&[1; 300]).unwrap()[299], 44);
    let found = scanner(&cpu, Sum::<i16>::new()).scan(&[30_000, 10_000, -20_000]).unwrap();
    assert_eq!(found, [30_000, -25_536, 20_000]);
}

/// IA01: what is infinite stays so.
#[test]
fn ia01_infinite_sums_stay_infinite() {
    on_each(|engine| {
        let found = scanner(engine, Sum::<f64>::new()).scan(&[1e306; 400]).unwrap();
        assert!(found[..179].iter().all(|sum| sum.is_finite()));
        assert!(found[179..].iter().all(|&sum| sum == f64::INFINITY));
    });
}

/// NC04, NC10: functions, whose order matters, in one run and in runs of equal keys.
#[test]
fn nc04_by_key_and_nc10_a_recurrence() {
    let element = |i: u32| Affine { scale: (2 * ((37 * i) % 50) + 1) as i32, shift: (101 * i) as i32 };
    let keys: Vec<u32> = (0..1000).map(|i| i / 37).collect();
    let items: Vec<_> = (0..1000).map(element).collect();
    on_each(|engine| {
        let compose = scanner(engine, Compose::<i32>::new());
        let found = compose.scan_segments(&items, &SegmentPlan::from_keys(&keys)).unwrap();
        for (i, scale, shift) in [
            (36, 1_127_524_113_u32, 2_473_624_816_u32),
            (37, 39, 3737),
            (500, 1_010_326_201, 258_861_508),
            (999, 27, 100_899),
        ] {
            assert_eq!(found[i], Affine { scale: scale as i32, shift: shift as i32 }, "item {i}");
        }
        let steps: Vec<_> = (0..5000).map(|i| Affine { scale: 3, shift: i }).collect();
        let found = compose.scan(&steps).unwrap();
        assert_eq!((found[9].shift, found[4999].shift as u32), (14_757, 1_215_107_620));
    });
}

/// Longest run that never decreases.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct LongestRun;

// SAFETY: no bytes.
unsafe impl Plain for LongestRun {}

/// `best, prefix, suffix, len, first, last`
type Run = [i32; 6];

impl Monoid for LongestRun {
    type Item = i32;
    type Acc = Run;
    type Output = i32;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = false;
    fn identity(&self) -> Run {
        [0; 6]
    }
    fn lift(&self, item: i32, _index: u64) -> Run {
        [1, 1, 1, 1, item, item]
    }
    fn combine(&self, left: Run, right: Run) -> Run {
        let joins = left[5] <= right[4];
        let joined = if joins { left[2] + right[1] } else { 0 };
        [
            left[0].max(right[0]).max(joined),
            if joins && left[1] == left[3] { left[3] + right[1] } else { left[1] },
            if joins && right[2] == right[3] { right[3] + left[2] } else { right[2] },
            left[3] + right[3],
            left[4],
            right[5],
        ]
    }
    fn finish(&self, acc: Run) -> i32 {
        acc[0]
    }
}

/// NC08: a state of 24 bytes. (In the simulator and on the GPU, host/tests/scan_sim.rs has wider ones.)
#[test]
fn nc08_the_longest_run() {
    let items: Vec<i32> = (0..10_000_i64)
        .map(|i| if (3900..4600).contains(&i) { i as i32 } else { ((31 * i * i + i / 7) % 1009) as i32 })
        .collect();
    let scanner = scanner(&Engine::cpu(), LongestRun);
    assert_eq!(scanner.scan(&items).unwrap()[9_999], 701);
    let sorted: Vec<i32> = (0..10_000).map(|i| i / 100).collect();
    assert!(scanner.scan(&sorted).unwrap().into_iter().eq(1..=10_000));
}

/// SC01: what stands at a block's end is counted.
#[test]
fn sc01_carries_over_every_boundary() {
    on_each(|engine| {
        let mut items = vec![0; 1024];
        (items[511], items[599]) = (1, 1);
        let found = scanner(engine, Sum::<i32>::new()).exclusive().scan(&items).unwrap();
        assert_eq!([510, 511, 512, 599, 600, 1023].map(|i| found[i]), [0, 0, 1, 1, 2, 2]);
    });
}

/// SC03, SA03, G03: columns, of arrays in any order, however many there are.
#[test]
fn sc03_columns_in_any_order() {
    on_each(|engine| {
        let sum = scanner(engine, Sum::<f32>::new());
        for (rows, columns) in [(1023, 2), (1024, 5), (2049, 2)] {
            for fortran in [false, true] {
                let ones = Array2::<f32>::ones((rows, columns).set_f(fortran));
                let found = sum.scan_axis(&ones, Axis(0)).unwrap();
                assert!(
                    found.indexed_iter().all(|((r, _), &sum)| sum == (r + 1) as f32),
                    "{rows} x {columns}"
                );
            }
        }
        let parent = array![[1.0_f32, 2.0], [3.0, 4.0]];
        let transposed = parent.t();
        assert_eq!(sum.scan_axis(&transposed, Axis(1)).unwrap(), array![[1.0, 4.0], [2.0, 6.0]]);
        assert_eq!(sum.scan_axis(&transposed, Axis(0)).unwrap(), array![[1.0, 3.0], [3.0, 7.0]]);
        let reversed = parent.slice(s![.., ..;-1]);
        assert_eq!(sum.scan_axis(&reversed, Axis(1)).unwrap(), array![[2.0, 3.0], [4.0, 7.0]]);
        assert!(sum.scan_axis(&parent, Axis(2)).unwrap_err().to_string().contains("no axis 2"));
    });
    let planes = Array3::from_shape_fn((2, 200, 200), |(k, i, j)| ((k + 1) * ((i + j) % 7)) as i32);
    let found = scanner(&Engine::cpu(), Sum::<i32>::new()).scan_axis(&planes, Axis(0)).unwrap();
    assert!(found.indexed_iter().all(|((k, i, j), &sum)| sum as usize == [1, 3][k] * ((i + j) % 7)));
}

/// Q01: one item calls no operator.
#[test]
fn q01_one_item_is_combined_with_nothing() {
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Refuses;
    // SAFETY: no bytes.
    unsafe impl Plain for Refuses {}
    impl Monoid for Refuses {
        type Item = i32;
        type Acc = i32;
        type Output = i32;
        type Empty = GivesIdentity;
        const COMMUTATIVE: bool = false;
        fn identity(&self) -> i32 {
            0
        }
        fn lift(&self, item: i32, _index: u64) -> i32 {
            item
        }
        fn combine(&self, _left: i32, _right: i32) -> i32 {
            panic!("called")
        }
        fn finish(&self, acc: i32) -> i32 {
            acc
        }
    }
    let plan = SegmentPlan::from_keys(&[0]);
    assert_eq!(scanner(&Engine::cpu(), Refuses).scan_segments(&[0], &plan).unwrap(), [0]);
}

/// MA02: a start that is aligned to an item and nothing more, behind what must not be read.
#[test]
fn ma02_misaligned_starts() {
    on_each(|engine| {
        let (sum, bytes) = (scanner(engine, Sum::<f32>::new()), scanner(engine, Sum::<u8, u64>::new()));
        for k in [1, 2, 3, 5] {
            let items: Vec<f32> = (0..9003).map(|i| if i >= k { 1.0 } else { f32::NAN }).collect();
            let found = sum.scan(&items[k..]).unwrap();
            assert!(found.iter().enumerate().all(|(i, &sum)| sum == (i + 1) as f32), "from {k}");
            let items: Vec<u8> = (0..9003).map(|i| if i >= k { 1 } else { 200 }).collect();
            let found = bytes.scan(&items[k..]).unwrap();
            assert!(found.iter().enumerate().all(|(i, &sum)| sum == (i + 1) as u64), "from {k}");
        }
    });
}

/// R06: every length.
#[test]
fn r06_every_length() {
    let items: Vec<i64> = (1..=2049).collect();
    let sum = scanner(&Engine::cpu(), Sum::<i64>::new());
    let all = sum.scan(&items).unwrap();
    for n in 1..=2049_usize {
        let found = sum.scan(&items[..n]).unwrap();
        assert!(found == all[..n] && found[n - 1] as usize == n * (n + 1) / 2, "{n} items");
    }
}

/// X03: products of complex numbers.
#[test]
fn x03_products_of_complex_numbers() {
    let found = scanner(&Engine::cpu(), Product::<Complex<f64>>::new())
        .scan(&vec![Complex::new(0.0, 1.0); 1001])
        .unwrap();
    let turns = [(0.0, 1.0), (-1.0, 0.0), (0.0, -1.0), (1.0, 0.0)];
    assert!(found.iter().enumerate().all(|(i, found)| (found.re, found.im) == turns[i % 4]));
}

/// P01: results in the place of the items.
#[test]
fn p01_in_place() {
    on_each(|engine| {
        let mut items = vec![1; 20_000];
        scanner(engine, Sum::<i32>::new()).exclusive().scan_in_place(&mut items).unwrap();
        assert!(items.iter().enumerate().all(|(i, &sum)| sum as usize == i), "{engine:?}");
    });
}
