//! Every kind of input gives the bits of a slice of the same items: vectors, arrays, ndarray views in both orders,
//! items read one by one.

use ndarray::{Array2, Array3, ArrayD, Axis, IxDyn, ShapeBuilder, s};
use warpfold::{Items, Sum};

use crate::support::{Bits, Random, engines, takes};

fn data(n: usize) -> Vec<f32> {
    let mut random = Random::new(n as u64);
    (0..n).map(|_| random.spread(20) as f32).collect()
}

#[test]
fn contiguous_arrays_are_reduced_in_memory_order() {
    let items = data(60_000);
    for engine in engines() {
        let sum = engine.reducer(Sum::<f32>::new()).unwrap();
        let expected = sum.reduce(&items).unwrap().bits();
        assert_eq!(sum.reduce(&items[..]).unwrap().bits(), expected);
        assert_eq!(sum.reduce(items.first_chunk::<60_000>().unwrap()).unwrap().bits(), expected);
        let row_major = Array2::from_shape_vec((200, 300), items.clone()).unwrap();
        assert_eq!(sum.reduce(&row_major).unwrap().bits(), expected);
        assert_eq!(sum.reduce(&row_major.view()).unwrap().bits(), expected);
        assert_eq!(sum.reduce(&row_major.t()).unwrap().bits(), expected, "the same memory");
        let column_major = Array2::from_shape_vec((200, 300).f(), items.clone()).unwrap();
        assert_eq!(sum.reduce(&column_major).unwrap().bits(), expected);
        let permuted = Array3::from_shape_vec((20, 30, 100), items.clone()).unwrap().permuted_axes([1, 2, 0]);
        assert_eq!(sum.reduce(&permuted).unwrap().bits(), expected);
        let dynamic = ArrayD::from_shape_vec(IxDyn(&[60, 1, 1000]), items.clone()).unwrap();
        assert_eq!(sum.reduce(&dynamic).unwrap().bits(), expected);
        let rows = sum.reduce(&row_major.slice(s![10..50, ..])).unwrap();
        assert_eq!(rows.bits(), sum.reduce(&items[3000..15_000]).unwrap().bits());
    }
}

#[test]
fn gaps_reversals_and_broadcasts_are_reduced_in_logical_order() {
    let array = Array2::from_shape_vec((200, 300), data(60_000)).unwrap();
    for engine in engines() {
        let sum = engine.reducer(Sum::<f32>::new()).unwrap();
        let mut reversed = array.view();
        reversed.invert_axis(Axis(1));
        for view in [
            array.slice(s![.., ..299]),
            array.slice(s![..;2, ..]),
            array.slice(s![..;-3, ..;7]),
            array.t().slice_move(s![1.., ..]),
            reversed,
            array.row(7).broadcast((150, 300)).unwrap(),
        ] {
            let logical: Vec<f32> = view.iter().copied().collect();
            assert_eq!(sum.reduce(&view).unwrap().bits(), sum.reduce(&logical).unwrap().bits(), "{view:?}");
        }
        // Nothing and one thing.
        assert_eq!(sum.reduce(&array.slice(s![..0, ..;7])).unwrap(), 0.0);
        assert_eq!(sum.reduce(&array.slice(s![3..4, 5..6])).unwrap(), array[[3, 5]]);
    }
}

/// Every other one, with swapped bytes.
struct Swapped<'a>(&'a [u32]);

impl Items<f32> for Swapped<'_> {
    fn len(&self) -> u64 {
        self.0.len() as u64 / 2
    }

    fn get(&self, index: u64) -> f32 {
        f32::from_bits(self.0[2 * index as usize + 1].swap_bytes())
    }
}

#[test]
fn items_read_one_by_one_give_the_same_bits() {
    let items = data(1_200_000);
    let swapped: Vec<u32> =
        items.iter().flat_map(|item| [0xdead_beef, item.to_bits().swap_bytes()]).collect();
    for engine in engines() {
        let sum = engine.reducer(Sum::<f32>::new()).unwrap();
        for n in [0, 1, 33, 2048, 8192, 8193, 100_000, 1_200_000] {
            if !takes(&engine, n) {
                continue;
            }
            let read = sum.reduce_items(&Swapped(&swapped[..2 * n])).unwrap();
            assert_eq!(read.bits(), sum.reduce(&items[..n]).unwrap().bits(), "{n} items");
            assert_eq!(read.bits(), sum.reduce_items(&items[..n]).unwrap().bits(), "{n} items");
        }
    }
}

#[test]
fn engines_are_used_from_many_threads() {
    let items = data(300_000);
    for engine in engines() {
        let sum = engine.reducer(Sum::<f32>::new()).unwrap();
        let items = if takes(&engine, items.len()) { &items[..] } else { &items[..10_000] };
        let expected = sum.reduce(items).unwrap().bits();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        assert_eq!(sum.reduce(items).unwrap().bits(), expected);
                        let fresh = engine.reducer(Sum::<f32>::new()).unwrap();
                        assert_eq!(fresh.reduce(items).unwrap().bits(), expected);
                    }
                });
            }
        });
    }
}
