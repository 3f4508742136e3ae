//! Faults that users of other libraries reported, of reductions of segments and along axes: each test names its case and
//! holds the whole kind.

use half::f16;
use ndarray::{Array, Array2, Array3, Axis, IxDyn, ShapeBuilder, array, s};
use warpfold::segments::{Layout, SegmentPlan};
use warpfold::{
    Affine, All, Any, ArgMax, ArgMin, Compose, Float, GivesIdentity, Indexed, Map, MapFn, Max, Min, Monoid,
    NanMax, NanMin, Plain, Sum, math,
};

use crate::segments::{alone, on_cpu};

/// Row and row length each fit 32 bits, their product does not.
#[test]
#[ignore = "large: 3.2 GB"]
fn i05_more_than_2_31_items_in_rows() {
    let mut items = vec![0u8; 16_000_000 * 200];
    for (r, row) in items.chunks_mut(200).enumerate() {
        row[..r % 97].fill(1);
    }
    let sums = on_cpu(Sum::<u8, u64>::new()).reduce_rows(&items, 200).unwrap();
    assert_eq!((sums[0], sums[10_737_419], sums[15_999_999]), (0, 4, 43));
    assert_eq!(sums.iter().sum::<u64>(), 767_998_834);
}

/// More segments than 31 bits count.
#[test]
#[ignore = "large: 2 GiB"]
fn more_than_2_31_segments() {
    let items = [3u8, 1, 2, 9];
    let segments = (1 << 31) + 5;
    let layout = Layout::new(&[segments, 4], &[0, 1], &[1]).unwrap();
    // SAFETY: four items, again and again.
    let results = unsafe { on_cpu(Max::<u8>::new()).reduce_layout(items.as_ptr(), &layout).unwrap() };
    assert_eq!(results.len(), segments);
    assert!(results.iter().all(|&result| result == 9));
}

#[test]
fn n03_the_place_of_a_nan_in_a_segment_does_not_matter() {
    let nan = f32::NAN;
    let items = [1.0, nan, 3.0, nan, 1.0, 3.0, 1.0, 3.0, nan, 3.0, nan, 1.0, 1.0, nan, 3.0, 2.0];
    let plan = SegmentPlan::from_offsets(&[0, 3, 6, 9, 12, 16]).unwrap();
    assert!(on_cpu(Min::<f32>::new()).reduce_segments(&items, &plan).unwrap().iter().all(|x| x.is_nan()));
    assert!(on_cpu(Max::<f32>::new()).reduce_segments(&items, &plan).unwrap().iter().all(|x| x.is_nan()));
    assert_eq!(on_cpu(NanMin::<f32>::new()).reduce_segments(&items, &plan).unwrap(), [1.0; 5]);
    assert_eq!(on_cpu(NanMax::<f32>::new()).reduce_segments(&items, &plan).unwrap(), [3.0; 5]);
}

#[test]
fn d02_extremes_of_infinities_in_segments() {
    fn one<T: Float + PartialEq + std::fmt::Debug>() {
        let (high, low) = (T::of_f64(f64::INFINITY), T::of_f64(f64::NEG_INFINITY));
        assert_eq!(on_cpu(Min::<T>::new()).reduce_rows(&[high; 20], 10).unwrap(), [high; 2]);
        assert_eq!(on_cpu(Max::<T>::new()).reduce_rows(&[low; 20], 10).unwrap(), [low; 2]);
    }
    one::<f16>();
    one::<f32>();
}

/// The greatest value and where it stood; nothing is minus infinity at -1.
#[repr(C)]
#[derive(Clone, Copy, Plain)]
struct Greatest;

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Plain)]
struct Place {
    value: f32,
    at: i32,
}

impl Monoid for Greatest {
    type Item = Place;
    type Acc = Place;
    type Output = Place;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = false;
    fn identity(&self) -> Place {
        Place { value: f32::NEG_INFINITY, at: -1 }
    }
    fn lift(&self, item: Place, _index: u64) -> Place {
        item
    }
    fn combine(&self, left: Place, right: Place) -> Place {
        if right.value > left.value { right } else { left }
    }
    fn finish(&self, acc: Place) -> Place {
        acc
    }
}

#[test]
fn es02_pairs_of_value_and_place_by_segment() {
    let items: Vec<Place> = (0..).zip([1.0, 5.0, 5.0, 2.0]).map(|(at, value)| Place { value, at }).collect();
    let plan = SegmentPlan::from_offsets(&[0, 0, 2, 2, 4, 4]).unwrap();
    let found = on_cpu(Greatest).reduce_segments(&items, &plan).unwrap();
    let nothing = Greatest.identity();
    let expected = [nothing, Place { value: 5.0, at: 1 }, nothing, Place { value: 5.0, at: 2 }, nothing];
    assert_eq!(found, expected);
}

#[test]
fn es04_any_and_all_of_empty_segments() {
    let items = [0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0].map(|bit| bit == 1);
    let plan = SegmentPlan::from_offsets(&[0, 2, 4, 6, 9, 9, 10, 11]).unwrap();
    let any = on_cpu(Any::<bool>::new()).reduce_segments(&items, &plan).unwrap();
    let all = on_cpu(All::<bool>::new()).reduce_segments(&items, &plan).unwrap();
    assert_eq!(any, [false, true, true, true, false, true, false]);
    assert_eq!(all, [false, true, false, false, true, true, false]);
}

#[test]
fn fr01_halves_along_an_axis() {
    let items: Vec<f16> = [32000.0, 32000.0, 32000.0, 32000.0, -32000.0, -32000.0, -32000.0, -32000.0]
        .map(f16::from_f32)
        .to_vec();
    let column = Array2::from_shape_vec((8, 1), items.clone()).unwrap();
    let sum = on_cpu(Sum::<f16>::new());
    assert_eq!(sum.reduce_axis(&column, Axis(0)).unwrap(), array![f16::ZERO]);
    assert_eq!(sum.reduce_rows(&items, 8).unwrap(), [f16::ZERO]);
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
fn ia05_softmax_of_rows_narrower_than_a_block() {
    let rows = Array2::from_shape_fn((4, 37), |(r, _)| -1000.0 * r as f32);
    let greatest = on_cpu(Max::<f32>::new()).reduce_axis(&rows, Axis(1)).unwrap();
    let of = |k: u64| Map::new(Sum::<f32>::new(), Scaled { greatest: greatest[k as usize] });
    assert_eq!(on_cpu(of(0)).reduce_rows_with(&rows, 37, of).unwrap(), [37.0; 4]);
}

#[test]
fn nc02_columns_of_functions_top_to_bottom() {
    let function =
        |i: u32, c: u32| Affine { scale: 2 * ((37 * i + 11 * c) % 50) + 1, shift: 101 * i + 7 * c };
    let rows = Array2::from_shape_fn((512, 32), |(i, c)| function(i as u32, c as u32));
    let columns = on_cpu(Compose::<u32>::new()).reduce_axis(&rows, Axis(0)).unwrap();
    assert_eq!(columns[0], Affine { scale: 581_176_309, shift: 3_965_068_732 });
    assert_eq!(columns[31], Affine { scale: 54_463_205, shift: 324_843_916 });
}

/// The result of an axis of length 1 is written over what was there, once.
#[test]
fn k02_results_overwrite() {
    let column = Array2::from_shape_fn((16, 1), |(r, _)| r as f64 + 1.0);
    let mut results = [1.0; 16];
    on_cpu(Sum::<f64>::new()).reduce_axes_into(&column, &[Axis(1)], &mut results).unwrap();
    assert!(results.iter().zip(1..).all(|(&result, k)| result == f64::from(k)));
}

#[test]
fn l05_rows_shorter_than_a_warp() {
    for (m, n) in [(49, 7), (1000, 7), (33, 3)] {
        let rows = Array2::from_shape_fn((m, n), |(r, _)| r as i32);
        let sums = on_cpu(Sum::<i32>::new()).reduce_axis(&rows, Axis(1)).unwrap();
        assert!(sums.iter().zip(0..).all(|(&sum, r)| sum == n as i32 * r), "[{m}][{n}]");
    }
}

#[test]
fn l09_odd_lengths_of_halves() {
    for n in [16_383, 16_384, 16_385, 1, 3] {
        let ones = Array3::from_elem((2, n, 1), f16::ONE);
        let least = on_cpu(Min::<f16>::new()).reduce_axes(&ones, &[Axis(1), Axis(2)]).unwrap();
        assert_eq!(least, array![f16::ONE, f16::ONE].into_dyn(), "{n} items");
    }
}

#[test]
fn sa01_indices_are_logical_whatever_the_order_in_memory() {
    for fortran in [false, true] {
        let mut matrix = Array2::zeros((2, 2).set_f(fortran));
        matrix.assign(&array![[3i64, 1], [4, 2]]);
        let all = [Axis(0), Axis(1)];
        let max = on_cpu(ArgMax::<i64>::new()).reduce_axes(&matrix, &all).unwrap();
        let min = on_cpu(ArgMin::<i64>::new()).reduce_axes(&matrix, &all).unwrap();
        assert_eq!((max[IxDyn(&[])], min[IxDyn(&[])]), (Indexed::new(2, 4), Indexed::new(1, 1)));
    }
}

#[test]
fn sa05_the_index_along_an_axis_of_length_1_is_0() {
    let row = array![[1i64, 2, 3]];
    let max = on_cpu(ArgMax::<i64>::new());
    let index = |axis| max.reduce_axis(&row, axis).unwrap().mapv(|found| found.index());
    assert_eq!(index(Axis(0)), array![0, 0, 0]);
    assert_eq!(index(Axis(1)), array![2]);
}

#[test]
fn sa07_a_permuted_layout_then_a_flat_index() {
    let value =
        |(n, c, h, w): (usize, usize, usize, usize)| ((131 * n + 37 * c + 17 * h + 5 * w + 29) % 101) as i32;
    // Channels last.
    let stored = Array::from_shape_fn((4, 8, 8, 4), |(n, h, w, c)| value((n, c, h, w)));
    let images = stored.permuted_axes([0, 3, 1, 2]);
    assert_eq!(images.strides(), [256, 1, 32, 4]);
    let sums = on_cpu(Sum::<i32>::new()).reduce_axis(&images, Axis(3)).unwrap();
    let all = [Axis(0), Axis(1), Axis(2)];
    let max = on_cpu(ArgMax::<i32>::new()).reduce_axes(&sums, &all).unwrap()[IxDyn(&[])];
    let min = on_cpu(ArgMin::<i32>::new()).reduce_axes(&sums, &all).unwrap()[IxDyn(&[])];
    assert_eq!((max, min.index()), (Indexed::new(2, 644), 16));
}

#[test]
fn sa09_a_broadcast_axis_is_no_contiguous_one() {
    let items = Array3::from_shape_vec((3, 1, 2), (0..6).collect()).unwrap();
    let wide = items.broadcast((3, 4, 2)).unwrap();
    let sum = on_cpu(Sum::<i32>::new());
    assert_eq!(sum.reduce_axis(&wide, Axis(0)).unwrap(), array![[6, 9], [6, 9], [6, 9], [6, 9]]);
    assert_eq!(sum.reduce_axis(&wide, Axis(1)).unwrap(), array![[0, 4], [8, 12], [16, 20]]);
    assert_eq!(sum.reduce_axes(&wide, &[Axis(0), Axis(1)]).unwrap(), array![24, 36].into_dyn());
}

#[test]
fn g01_more_columns_than_a_grid_has_rows_of_blocks() {
    let sum = on_cpu(Sum::<f32>::new());
    let items = Array2::from_shape_fn((3, 524_281), |(r, c)| ((r + 1) * (c % 10)) as f32);
    let one = sum.reduce_axis(&items.slice(s![..1, ..]), Axis(0)).unwrap();
    let three = sum.reduce_axis(&items, Axis(0)).unwrap();
    assert_eq!((one[524_280], three[524_279], three[524_280]), (0.0, 54.0, 0.0));
    assert!(three.iter().zip(0..).all(|(&sum, c)| sum == (6 * (c % 10)) as f32));
}

#[test]
fn g05_a_long_kept_axis() {
    let items = Array3::from_shape_fn((1_000_000, 1, 3), |(i, _, k)| (i % 5 + k) as f32);
    let sums = on_cpu(Sum::<f32>::new()).reduce_axes(&items, &[Axis(1), Axis(2)]).unwrap();
    assert_eq!((sums[[0]], sums[[999_999]]), (3.0, 15.0));
    assert!(sums.iter().zip(0..).all(|(&sum, i)| sum == (i % 5 * 3 + 3) as f32));
}

#[test]
fn of03_a_giant_among_short_and_empty_ones() {
    let mut lengths = vec![0u32; 100_000];
    lengths.push(1_000_003);
    lengths.extend([1; 100_000]);
    lengths.extend([0; 5]);
    let plan = SegmentPlan::from_lengths(&lengths).unwrap();
    assert_eq!((plan.segments(), plan.items()), (200_006, 1_100_003));
    let sums = on_cpu(Sum::<i32>::new()).reduce_segments(&vec![1; 1_100_003], &plan).unwrap();
    assert!(sums.iter().zip(&lengths).all(|(&sum, &length)| sum == length as i32));
}

#[test]
fn of05_indices_in_rows_around_a_chunk() {
    let max = on_cpu(ArgMax::<f32>::new());
    for n in
        [1, 2, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 8191, 8192, 8193, 1_000_003]
    {
        let mut rows = Array2::<f32>::zeros((3, n));
        for r in 0..3 {
            rows[[r, n - 1]] = r as f32 + 1.0;
        }
        let found = max.reduce_axis(&rows, Axis(1)).unwrap();
        let last = n as u64 - 1;
        let expected = array![Indexed::new(last, 1.0), Indexed::new(last, 2.0), Indexed::new(last, 3.0)];
        assert_eq!(found, expected, "rows of {n}");
        assert_eq!(found[0], alone(ArgMax::<f32>::new(), rows.row(0).as_slice().unwrap()));
    }
}
