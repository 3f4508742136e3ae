//! Segments have the bits of reducing each alone: rows, columns and every other axis, of any strides, and segments of
//! any lengths. The oracle is the definition of the tree, `tree::fold`, on a copy of each segment's items.

use ndarray::{Array, ArrayD, ArrayViewD, Axis, Dimension, IxDyn, ShapeBuilder, Slice};
use proptest::prelude::*;
use warpfold::segments::{self, Layout, SegmentPlan};
use warpfold::{
    ArgMax, Compose, Engine, Error, GivesIdentity, Map, Max, MaxSegmentSum, Min, Monoid, Plain, Sum,
    WithInitial, tree,
};

use crate::support::Random;

/// Its bits show any other order, grouping or index of the items, and that a segment met another's.
#[repr(C)]
#[derive(Clone, Copy, Plain)]
pub struct Trace<const COMMUTATIVE: bool>;

fn mix(i: u64) -> u64 {
    let mut z = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 27)
}

impl<const COMMUTATIVE: bool> Monoid for Trace<COMMUTATIVE> {
    type Item = u32;
    type Acc = [u64; 3];
    type Output = u64;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = COMMUTATIVE;
    fn identity(&self) -> [u64; 3] {
        [7; 3]
    }
    fn lift(&self, item: u32, index: u64) -> [u64; 3] {
        [mix(item as u64), mix(index), 1]
    }
    fn push(&self, acc: [u64; 3], item: u32, index: u64) -> [u64; 3] {
        [mix(acc[0] ^ item as u64), acc[1].wrapping_mul(31).wrapping_add(index), acc[2] + 1]
    }
    fn combine(&self, a: [u64; 3], b: [u64; 3]) -> [u64; 3] {
        assert!(a != [7; 3] && b != [7; 3], "nothing is ever combined with an identity");
        [mix(a[0]).wrapping_add(b[0]), a[1].wrapping_mul(17) ^ b[1], a[2] + b[2]]
    }
    fn finish(&self, acc: [u64; 3]) -> u64 {
        acc[0] ^ acc[1].rotate_left(20) ^ acc[2].rotate_left(40)
    }
}

/// The result of a segment that is all there is.
pub fn alone<Op: Monoid>(op: Op, items: &[Op::Item]) -> Op::Output {
    match tree::fold(&op, items.len() as u64, &|i| items[i as usize]) {
        Some(acc) => op.finish(acc),
        None => op.finish_empty(),
    }
}

fn bytes<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: plain data has no padding.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

#[track_caller]
pub fn same<Op: Monoid>(op: Op, results: &[Op::Output], segments: &[Vec<Op::Item>], what: &str) {
    assert_eq!(results.len(), segments.len(), "{what}");
    for (k, (result, items)) in results.iter().zip(segments).enumerate() {
        let expected = alone(op, items);
        let name = std::any::type_name::<Op>();
        assert_eq!(bytes(result), bytes(&expected), "{name}, {what}: segment {k} of {} items", items.len());
    }
}

pub fn on_cpu<Op: Monoid>(op: Op) -> segments::SegmentReducer<Op> {
    Engine::cpu().segments(op).unwrap()
}

/// Lengths around every boundary of the trees of short and long segments.
const LENGTHS: [usize; 31] = [
    1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 511, 512, 513, 2047, 2048,
    2049, 8191, 8192, 8193, 16_500, 40_000,
];

/// Rows and columns of `[m][n]`.
fn regular<Op: Monoid>(op: Op, item: impl Fn(u64) -> Op::Item) {
    let reducer = on_cpu(op);
    for n in LENGTHS {
        let many = (20_000 / n).max(3);
        for m in [0, 1, 2, 7, many] {
            if m * n > 150_000 {
                continue;
            }
            let items: Vec<Op::Item> = (0..(m * n) as u64).map(&item).collect();
            let rows: Vec<Vec<Op::Item>> = items.chunks(n).map(<[_]>::to_vec).collect();
            let results = reducer.reduce_rows(&items, n as u64).unwrap();
            same(op, &results, &rows, &format!("rows of [{m}][{n}]"));

            let layout = Layout::new(&[n, m], &[m as isize, 1], &[0]).unwrap();
            let columns: Vec<Vec<Op::Item>> =
                (0..m).map(|j| items.iter().skip(j).step_by(m).copied().collect()).collect();
            // SAFETY: n rows of m items.
            let results = unsafe { reducer.reduce_layout(items.as_ptr(), &layout).unwrap() };
            same(op, &results, &columns, &format!("columns of [{n}][{m}]"));
        }
    }
}

fn float(i: u64) -> f32 {
    let bits = mix(i);
    ((bits >> 40) as f32 / (1 << 24) as f32 - 0.5) * 2f32.powi((bits % 40) as i32 - 20)
}

#[test]
fn rows_and_columns_of_floats() {
    regular(Sum::<f32>::new(), float);
    regular(Sum::<f64>::new(), |i| float(i).into());
}

#[test]
fn rows_and_columns_of_integers() {
    regular(Sum::<u8, u64>::new(), |i| mix(i) as u8);
    regular(Min::<i16>::new(), |i| mix(i) as i16);
    regular(ArgMax::<f32>::new(), |i| float(i / 3));
}

#[test]
fn rows_and_columns_whose_order_matters() {
    regular(Trace::<true>, |i| mix(i) as u32);
    regular(Trace::<false>, |i| mix(i) as u32);
    regular(MaxSegmentSum::<i32>::new(), |i| mix(i) as i32 % 1000);
}

#[test]
fn special_values() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let sum = on_cpu(Sum::<f32>::new());
    let rows = [-0.0, -0.0, -0.0, -0.0, 0.0, -0.0, inf, -inf, 1.0, nan, 1.0, 2.0, inf, inf, 1.0];
    let bits: Vec<u32> = sum.reduce_rows(&rows, 3).unwrap().into_iter().map(f32::to_bits).collect();
    assert_eq!(bits, [-0.0, 0.0, nan, nan, inf].map(f32::to_bits));
    let min = on_cpu(Min::<f32>::new()).reduce_rows(&[0.0, -0.0, inf, inf, nan, 1.0], 2).unwrap();
    assert_eq!((min[0].to_bits(), min[1], min[2].to_bits()), ((-0.0f32).to_bits(), inf, nan.to_bits()));
}

#[test]
fn empty_segments_give_the_value_of_nothing() {
    let plan = SegmentPlan::from_offsets(&[0, 0, 2, 2]).unwrap();
    assert_eq!(
        on_cpu(Min::<f32>::new()).reduce_segments(&[3.0, 4.0], &plan).unwrap(),
        [f32::INFINITY, 3.0, f32::INFINITY]
    );
    assert_eq!(on_cpu(Max::<i8>::new()).reduce_segments(&[3, 4], &plan).unwrap(), [-128, 4, -128]);
    assert_eq!(on_cpu(Sum::<i8, i64>::new()).reduce_segments(&[3, 4], &plan).unwrap(), [0, 7, 0]);
    let place = on_cpu(ArgMax::<f32>::new()).reduce_segments(&[3.0, 4.0], &plan).unwrap();
    assert_eq!(place.iter().map(|place| place.index()).collect::<Vec<_>>(), [u64::MAX, 1, u64::MAX]);
    let floor = WithInitial::new(Max::<i32>::new(), 5);
    assert_eq!(on_cpu(floor).reduce_segments(&[3, 9], &plan).unwrap(), [5, 9, 5]);
    // An empty axis: as many results as the others say.
    let empty = Array::<f32, _>::zeros((1000, 0));
    assert_eq!(
        on_cpu(Min::<f32>::new()).reduce_axis(&empty, Axis(1)).unwrap(),
        Array::from_elem(1000, f32::INFINITY)
    );
    assert_eq!(on_cpu(Min::<f32>::new()).reduce_axis(&empty, Axis(0)).unwrap().len(), 0);
    // SAFETY: there is no item.
    let rows = unsafe { on_cpu(Max::<i32>::new()).reduce_layout(std::ptr::dangling(), &Layout::rows(3, 0)) };
    assert_eq!(rows.unwrap(), [i32::MIN; 3]);
}

/// Every item of a view's segments, by ndarray's own account of its axes.
fn segments_of<T: Copy>(view: &ArrayViewD<'_, T>, axes: &[Axis]) -> (Vec<usize>, Vec<Vec<T>>) {
    let all: Vec<usize> = (0..view.ndim()).collect();
    let (reduced, kept): (Vec<usize>, Vec<usize>) = all.iter().partition(|&&axis| axes.contains(&Axis(axis)));
    let shape = kept.iter().map(|&axis| view.shape()[axis]).collect::<Vec<_>>();
    let inner: Vec<usize> = reduced.iter().map(|&axis| view.shape()[axis]).collect();
    let mut segments = vec![];
    for position in ndarray::indices(IxDyn(&shape)) {
        let mut items = vec![];
        for within in ndarray::indices(IxDyn(&inner)) {
            let mut at = vec![0; view.ndim()];
            kept.iter().zip(position.as_array_view()).for_each(|(&axis, &place)| at[axis] = place);
            reduced.iter().zip(within.as_array_view()).for_each(|(&axis, &place)| at[axis] = place);
            items.push(view[IxDyn(&at)]);
        }
        segments.push(items);
    }
    (shape, segments)
}

#[track_caller]
fn check_view(view: &ArrayViewD<'_, u32>, axes: &[Axis], what: &str) {
    let (shape, segments) = segments_of(view, axes);
    let results = on_cpu(Trace::<false>).reduce_axes(view, axes).unwrap();
    let what = format!("{what}: shape {:?}, strides {:?}, axes {axes:?}", view.shape(), view.strides());
    assert_eq!(results.shape(), shape, "{what}");
    same(Trace::<false>, results.as_slice().unwrap(), &segments, &what);
    if let [axis] = axes {
        assert_eq!(on_cpu(Trace::<false>).reduce_axis(view, *axis).unwrap(), results, "{what}");
        assert_eq!(Engine::cpu().reducer(Trace::<false>).unwrap().reduce_axis(view, *axis).unwrap(), results);
    }
    let mut into = vec![0; results.len()];
    on_cpu(Trace::<false>).reduce_axes_into(view, axes, &mut into).unwrap();
    assert_eq!(into, results.as_slice().unwrap(), "{what}");
}

/// Every set of axes of a view.
fn check_axes(view: &ArrayViewD<'_, u32>, what: &str) {
    for set in 1..1u32 << view.ndim() {
        let axes: Vec<Axis> = (0..view.ndim()).filter(|axis| set >> axis & 1 == 1).map(Axis).collect();
        check_view(view, &axes, what);
        let backwards: Vec<Axis> = axes.iter().rev().copied().collect();
        check_view(view, &backwards, what);
    }
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![vec![]];
    }
    let shorter = permutations(n - 1);
    let insert = |p: &Vec<usize>, at: usize| {
        let mut p = p.clone();
        p.insert(at, n - 1);
        p
    };
    shorter.iter().flat_map(|p| (0..n).map(move |at| insert(p, at))).collect()
}

fn numbered(shape: &[usize], fortran: bool) -> ArrayD<u32> {
    let n: usize = shape.iter().product();
    let items = (0..n as u64).map(|i| mix(i) as u32).collect();
    Array::from_shape_vec(IxDyn(shape).set_f(fortran), items).unwrap()
}

#[test]
fn every_axis_of_every_permutation() {
    for (shape, fortran) in
        [(&[3, 20, 7][..], false), (&[3, 20, 7], true), (&[2, 5, 3, 9], false), (&[6, 1, 4, 2], true)]
    {
        let array = numbered(shape, fortran);
        for order in permutations(shape.len()) {
            let mut view = array.view().permuted_axes(IxDyn(&order));
            check_axes(&view, "permuted");
            view.invert_axis(Axis(0));
            check_axes(&view, "the first axis reversed");
            view.invert_axis(Axis(shape.len() - 1));
            view.slice_axis_inplace(Axis(1), Slice::new(0, None, 2));
            check_axes(&view, "the last axis reversed as well, the second one's every other item");
        }
    }
}

#[test]
fn broadcast_axes() {
    let array = numbered(&[3, 1, 5], false);
    check_axes(&array.broadcast(IxDyn(&[3, 4, 5])).unwrap(), "the middle axis broadcast");
    check_axes(&array.broadcast(IxDyn(&[2, 3, 70, 5])).unwrap(), "two axes broadcast");
    let one = numbered(&[1], false);
    check_axes(&one.broadcast(IxDyn(&[40, 50])).unwrap(), "one item");
}

/// Longer than a chunk, in every layout.
#[test]
fn long_segments_of_every_layout() {
    for fortran in [false, true] {
        let array = numbered(&[20_011, 2, 5], fortran);
        for order in [[0, 1, 2], [1, 0, 2], [2, 1, 0]] {
            let view = array.view().permuted_axes(IxDyn(&order));
            for axis in 0..3 {
                check_view(&view, &[Axis(axis)], "long");
            }
            check_view(&view, &[Axis(0), Axis(1)], "long");
            check_view(&view, &[Axis(0), Axis(2)], "long");
            check_view(&view, &[Axis(0), Axis(1), Axis(2)], "long");
        }
    }
    let wide = numbered(&[9000, 70], false);
    check_view(&wide.view(), &[Axis(0)], "a cache line of columns and a rest");
}

fn ranges(plan: &SegmentPlan, items: &[u32]) -> Vec<Vec<u32>> {
    (0..plan.segments())
        .map(|k| {
            let range = plan.range(k);
            items[range.start as usize..range.end as usize].to_vec()
        })
        .collect()
}

#[track_caller]
fn check_plan(items: &[u32], plan: &SegmentPlan, what: &str) {
    let segments = ranges(plan, items);
    let results = on_cpu(Trace::<false>).reduce_segments(items, plan).unwrap();
    same(Trace::<false>, &results, &segments, what);
    let mut results = vec![0; segments.len()];
    on_cpu(Trace::<true>).reduce_segments_into(items, plan, &mut results).unwrap();
    same(Trace::<true>, &results, &segments, what);
}

#[test]
fn irregular_segments() {
    let items: Vec<u32> = (0..400_000).map(|i| mix(i) as u32).collect();
    let check = |lengths: &[u64], what: &str| {
        check_plan(&items, &SegmentPlan::from_lengths(lengths).unwrap(), what);
    };
    check(&[], "none");
    check(&[0], "an empty one");
    check(&[0, 5, 0, 0, 9, 0], "empty ones first, in between and last");
    check(&[0; 3000], "nothing but empty ones");
    let mut giant = vec![0; 1000];
    giant[500] = 300_001;
    check(&giant, "a giant among empty ones");
    giant[500] = 8193;
    check(&giant, "one of two chunks among empty ones");
    let alternating: Vec<u64> = (0..6).map(|k| if k % 2 == 0 { 1 } else { 100_000 }).collect();
    check(&alternating, "1 and 100000 in turn");
    check(&LENGTHS.map(|n| n as u64), "every boundary");
    let mut random = Random::new(6);
    let uniform: Vec<u64> = (0..5000).map(|_| random.below(80)).collect();
    check(&uniform, "uniform");
    let skewed: Vec<u64> = (0..3000).map(|_| (2.0 / (random.unit() + 1e-4)) as u64).collect();
    check(&skewed[..skewed.len().min(3000)], "a power law");

    let begins: Vec<u64> = (0..3000).map(|_| random.below(390_000)).collect();
    let ends: Vec<u64> = begins.iter().map(|begin| begin + random.below(100)).collect();
    check_plan(&items, &SegmentPlan::from_ranges(&begins, &ends).unwrap(), "overlaps, gaps, no order");
    let offsets: Vec<u64> = (0..100).map(|k| 1000 + 37 * k).collect();
    check_plan(&items, &SegmentPlan::from_offsets(&offsets).unwrap(), "not from the first item on");
}

/// A strided source is read as the slice that it stands for.
#[test]
fn views_as_sources() {
    let array = numbered(&[60, 50], false);
    let view = array.t();
    let logical: Vec<u32> = view.slice_axis(Axis(0), Slice::new(0, None, 2)).iter().copied().collect();
    let sparse = view.slice_axis(Axis(0), Slice::new(0, None, 2));
    let trace = on_cpu(Trace::<false>);
    assert_eq!(trace.reduce_rows(&sparse, 30).unwrap(), trace.reduce_rows(&logical, 30).unwrap());
    let plan = SegmentPlan::from_lengths(&[3, 0, 1000]).unwrap();
    assert_eq!(
        trace.reduce_segments(&sparse, &plan).unwrap(),
        trace.reduce_segments(&logical, &plan).unwrap()
    );
}

/// Counts items over a threshold: an operator with a parameter.
#[repr(C)]
#[derive(Clone, Copy, Plain)]
struct Over {
    threshold: f32,
}

impl warpfold::MapFn for Over {
    type From = f32;
    type To = u32;
    fn map(&self, from: f32, _index: u64) -> u32 {
        (from > self.threshold).into()
    }
}

#[test]
fn each_row_may_have_its_own_parameter() {
    for (m, n) in [(1, 5), (700, 3), (90, 100), (3, 9001)] {
        let items: Vec<f32> = (0..(m * n) as u64).map(float).collect();
        let op = |k: u64| Map::new(Sum::<u32>::new(), Over { threshold: float(k) / 100.0 });
        let results = on_cpu(op(0)).reduce_rows_with(&items, n as u64, op).unwrap();
        for (k, (row, result)) in items.chunks(n).zip(results).enumerate() {
            assert_eq!(result, alone(op(k as u64), row), "row {k} of [{m}][{n}]");
        }
    }
}

#[test]
fn errors_say_what_does_not_fit() {
    let sum = on_cpu(Sum::<i32>::new());
    let ragged = |items, n| Err(Error::RaggedRows { items, n });
    assert_eq!(sum.reduce_rows(&[1, 2, 3], 2), ragged(3, 2));
    assert_eq!(sum.reduce_rows(&[1, 2, 3], 0), ragged(3, 0));
    assert_eq!(sum.reduce_rows(&[], 0), ragged(0, 0));
    assert_eq!(sum.reduce_rows(&[], 7), Ok(vec![]));
    let short = Error::OutputLength { segments: 2, room: 3 };
    assert_eq!(sum.reduce_rows_into(&[1, 2, 3, 4], 2, &mut [0; 3]), Err(short.clone()));
    let plan = SegmentPlan::from_lengths(&[1, 1]).unwrap();
    assert_eq!(sum.reduce_segments_into(&[1, 2], &plan, &mut [0; 3]), Err(short));
    let beyond = Error::SegmentOutOfRange { index: 1, start: 1, end: 2, len: 1 };
    assert_eq!(sum.reduce_segments(&[1], &plan), Err(beyond));
    let array = numbered(&[2, 3], false);
    let trace = on_cpu(Trace::<true>);
    assert_eq!(trace.reduce_axis(&array, Axis(2)), Err(Error::AxisOutOfRange { axis: 2, dimensions: 2 }));
    assert_eq!(trace.reduce_axes(&array, &[]), Err(Error::NoAxis { dimensions: 2 }));
    assert_eq!(trace.reduce_axes(&array, &[Axis(1), Axis(1)]), Err(Error::AxisTwice { axis: 1 }));
    let endless = Layout::new(&[1 << 60, 1], &[0, 0], &[1]).unwrap();
    let item = 1;
    // SAFETY: every position is the one item.
    let error = unsafe { sum.reduce_layout(&item, &endless) }.unwrap_err();
    assert_eq!(error, Error::HostMemory { needed: 1 << 62 });
}

proptest! {
    /// Any shape, any strides, any axes.
    #[test]
    fn any_layout(
        axes in prop::collection::vec((0..9usize, -40..40isize, any::<bool>()), 1..6),
    ) {
        let shape: Vec<usize> = axes.iter().map(|axis| axis.0).collect();
        let strides: Vec<isize> = axes.iter().map(|axis| axis.1).collect();
        let mut reduced: Vec<usize> = (0..axes.len()).filter(|&axis| axes[axis].2).collect();
        if reduced.is_empty() {
            reduced.push(axes.len() - 1);
        }
        let reach: usize = axes.iter().map(|axis| axis.0 * axis.1.unsigned_abs()).sum();
        let items: Vec<u32> = (0..2 * reach as u64 + 1).map(|i| mix(i) as u32).collect();
        let at = |positions: &[(usize, usize)]| {
            let offset: isize = positions.iter().map(|&(axis, place)| place as isize * strides[axis]).sum();
            items[reach.wrapping_add_signed(offset)]
        };
        let kept: Vec<usize> = (0..axes.len()).filter(|axis| !reduced.contains(axis)).collect();
        let positions = |of: &[usize]| {
            of.iter().fold(vec![vec![]], |all: Vec<Vec<(usize, usize)>>, &axis| {
                all.iter()
                    .flat_map(|one| (0..shape[axis]).map(move |place| [&one[..], &[(axis, place)]].concat()))
                    .collect()
            })
        };
        let within = positions(&reduced);
        let segments: Vec<Vec<u32>> = positions(&kept)
            .iter()
            .map(|position| within.iter().map(|within| at(&[&position[..], &within[..]].concat())).collect())
            .collect();
        let layout = Layout::new(&shape, &strides, &reduced).unwrap();
        prop_assert_eq!(layout.segments(), segments.len() as u64);
        prop_assert_eq!(layout.segment_len(), within.len() as u64);
        // SAFETY: no position is further from the middle than `reach`.
        let results = unsafe { on_cpu(Trace::<false>).reduce_layout(&items[reach], &layout).unwrap() };
        same(Trace::<false>, &results, &segments, "any layout");
    }

    #[test]
    fn any_lengths(lengths in prop::collection::vec(prop_oneof![0..4u16, 0..70u16, 0..9000u16], 0..60)) {
        let plan = SegmentPlan::from_lengths(&lengths).unwrap();
        let items: Vec<u32> = (0..plan.items()).map(|i| mix(i) as u32).collect();
        check_plan(&items, &plan, "any lengths");
    }
}

/// `Compose` has structs for items and for results.
#[test]
fn structs() {
    let items: Vec<_> =
        (0..3000).map(|i| warpfold::Affine { scale: 1.0 + float(i) * 1e-3, shift: float(i + 1) }).collect();
    for n in [1, 3, 20, 100, 1500] {
        let rows: Vec<_> = items.chunks(n).map(<[_]>::to_vec).collect();
        let op = Compose::<f32>::new();
        same(op, &on_cpu(op).reduce_rows(&items, n as u64).unwrap(), &rows, "functions");
    }
}
