//! Array views of every kind, against the items that ndarray's own iterators give, in the order documented: memory
//! order where the items lie side by side, else logical order. The operators show order: one mixes every item with its
//! index, the other's rounding depends on which items meet.
#![cfg(feature = "ndarray")]

use ndarray::{Array, Array1, Array2, ArrayView, Axis, Dimension, IxDyn, ShapeBuilder, s};
use warpfold_host::Engine;
use warpfold_monoid::{GivesIdentity, Monoid, Plain, Sum, tree};

/// A sum of hashes of (item, index).
#[repr(C)]
#[derive(Clone, Copy)]
struct Indexed;

// SAFETY: zero bytes.
unsafe impl Plain for Indexed {}

fn mix(i: u64) -> u64 {
    let mut z = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 27)
}

impl Monoid for Indexed {
    type Item = f64;
    type Acc = u64;
    type Output = u64;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    fn identity(&self) -> u64 {
        0
    }
    fn lift(&self, item: f64, index: u64) -> u64 {
        mix(item.to_bits() ^ mix(index))
    }
    fn combine(&self, left: u64, right: u64) -> u64 {
        left.wrapping_add(right)
    }
    fn finish(&self, acc: u64) -> u64 {
        acc
    }
}

fn item(i: usize) -> f64 {
    let bits = mix(i as u64);
    ((bits >> 11) as f64 - (1u64 << 52) as f64) * 2f64.powi((bits % 60) as i32 - 30)
}

fn items(n: usize) -> Vec<f64> {
    (0..n).map(item).collect()
}

/// Reduces a view, and the items that it should reduce, one after the other.
#[track_caller]
fn check<D: Dimension>(view: ArrayView<'_, f64, D>, expected: Vec<f64>) {
    let engine = Engine::cpu();
    let ours = engine.reducer(Indexed).unwrap().reduce(&view).unwrap();
    assert_eq!(ours, tree::reduce(&Indexed, &expected), "items and indices");
    let ours = engine.reducer(Sum::<f64>::new()).unwrap().reduce(&view).unwrap();
    assert_eq!(ours.to_bits(), tree::reduce(&Sum::<f64>::new(), &expected).to_bits(), "grouping");
}

#[track_caller]
fn check_logical<D: Dimension>(view: ArrayView<'_, f64, D>) {
    check(view.view(), view.iter().copied().collect());
}

#[test]
fn contiguous_in_any_order_of_axes_is_memory_order() {
    let n = 5 * 70 * 90;
    let fortran = Array::from_shape_vec((5, 70, 90).f(), items(n)).unwrap();
    check(fortran.view(), items(n));
    let mixed = Array::from_shape_vec((5, 70, 90), items(n)).unwrap();
    check(mixed.view().permuted_axes([1, 0, 2]), items(n));
    check(mixed.view().permuted_axes([2, 0, 1]), items(n));
    check(mixed.view().reversed_axes(), items(n));
    check(mixed.slice(s![2, .., ..]).reversed_axes(), items(n)[2 * 6300..3 * 6300].to_vec());
}

#[test]
fn one_axis_with_steps_of_every_size_and_sign() {
    let array = Array1::from(items(40_000));
    for step in [-7, -3, -2, -1, 2, 3, 7, 64] {
        check_logical(array.slice(s![..;step]));
        check_logical(array.slice(s![13..39_001;step]));
    }
}

#[test]
fn planes_with_gaps() {
    let array = Array2::from_shape_vec((211, 307), items(211 * 307)).unwrap();
    check_logical(array.slice(s![.., 1..]));
    check_logical(array.slice(s![.., ..300;3]));
    check_logical(array.slice(s![..;2, ..]));
    check_logical(array.slice(s![..;-2, ..;-1]));
    check_logical(array.slice(s![..;-1, ..]));
    check_logical(array.slice(s![.., ..;-1]));
    check_logical(array.column(5));
    check_logical(array.slice(s![3..200, 5..6]));
    let turned = array.t();
    check_logical(turned.slice(s![1.., ..]));
    check_logical(turned.slice(s![..;-3, 2..;2]));
}

#[test]
fn more_axes() {
    let array = Array::from_shape_vec(IxDyn(&[3, 4, 5, 6, 7, 8]), items(20_160)).unwrap();
    let mut view = array.view();
    for axis in [5, 0, 3] {
        view.slice_axis_inplace(Axis(axis), (1..).into());
        check_logical(view.view());
    }
    view.invert_axis(Axis(2));
    check_logical(view.view());
    view.swap_axes(1, 4);
    check_logical(view.view());
    view.swap_axes(0, 5);
    check_logical(view.view());
}

#[test]
fn broadcasts() {
    let row = Array1::from(items(83));
    check_logical(row.broadcast((120, 83)).unwrap());
    check_logical(row.view().insert_axis(Axis(1)).broadcast((83, 97)).unwrap());
    check_logical(Array1::from(items(1)).broadcast((30_000,)).unwrap());
}

#[test]
fn nothing_and_single_items() {
    let array = Array2::from_shape_vec((6, 7), items(42)).unwrap();
    check_logical(array.slice(s![6.., ..]));
    check_logical(array.slice(s![.., 3..3;2]));
    check_logical(array.slice(s![2..3, 4..5]));
    check_logical(array.slice(s![5, 6]));
    check_logical(array.slice(s![..;-5, ..;-6]));
}
