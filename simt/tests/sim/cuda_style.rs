//! The kernels that `golden.rs` compiles to PTX, written to cuda_std's API, run here from the same source.

#[path = "../fixtures/kernels/src/cuda_style.rs"]
mod kernels;

use warpfold_simt::sim::{self, Launch, Options};

use crate::common::{Ptr, schedules};

#[test]
fn add() {
    for schedule in schedules() {
        let a: Vec<f32> = (0..1000_u16).map(f32::from).collect();
        let b: Vec<f32> = a.iter().map(|x| x * 0.5).collect();
        let mut c = vec![0.0; 1000];
        let out = Ptr::of(&mut c);
        // SAFETY: as many elements as `a`.
        sim::launch(&Launch::new("add", 8, 128), &Options::with_schedule(schedule), || unsafe {
            kernels::add(&a, &b, out.at(0))
        })
        .unwrap();
        assert!(c.iter().zip(&a).all(|(c, a)| *c == a * 1.5));
    }
}

#[test]
fn reverse() {
    let mut data: Vec<f32> = (0..200_u16).map(f32::from).collect();
    let ptr = Ptr::of(&mut data);
    // SAFETY: 200 elements, 200 threads.
    sim::launch(&Launch::new("reverse", 1, 200), &Options::default(), || unsafe {
        kernels::reverse(ptr.at(0), 200)
    })
    .unwrap();
    assert!(data.iter().rev().copied().eq((0..200_u16).map(f32::from)));
}

#[test]
fn warp_sum() {
    let mut input: Vec<f32> = (0..96_u16).map(f32::from).collect();
    let (mut sums, mut counts) = (vec![0.0; 3], vec![0; 3]);
    let (input, sums_ptr, counts_ptr) = (Ptr::of(&mut input), Ptr::of(&mut sums), Ptr::of(&mut counts));
    // SAFETY: three blocks of 32 threads.
    sim::launch(&Launch::new("warp_sum", 3, 32), &Options::default(), || unsafe {
        kernels::warp_sum(input.at(0), 40.5, sums_ptr.at(0), counts_ptr.at(0))
    })
    .unwrap();
    assert_eq!(sums, [496.0, 1520.0, 2544.0]);
    assert_eq!(counts, [0, 23, 32]);
}
