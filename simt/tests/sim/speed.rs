//! A budget for the simulator: tests of kernels run thousands of launches.

use std::time::{Duration, Instant};

use warpfold_simt::warp::{self, FULL};
use warpfold_simt::{global, shared, thread};

use crate::common::{Ptr, run};

/// 64 blocks of 512 threads, each of which loads, shuffles five times, meets at a barrier and writes.
#[test]
fn a_small_reduction_stays_within_its_budget() {
    const BLOCKS: usize = 64;
    const THREADS: usize = 512;
    let mut input: Vec<u32> = (0..(BLOCKS * THREADS * 4) as u32).collect();
    let mut sums = vec![0_u32; BLOCKS];
    let (from, to) = (Ptr::of(&mut input), Ptr::of(&mut sums));
    let kernel = || {
        let tile = shared!([u32; 16]);
        let (t, block) = (thread::thread_idx_x() as usize, thread::block_idx_x() as usize);
        // SAFETY: indices stay below the lengths; a barrier lies between writes and reads.
        unsafe {
            let mut sum = 0_u32;
            for i in 0..4 {
                sum = sum.wrapping_add(global::load(from.at((block * 4 + i) * THREADS + t)));
            }
            for delta in [16, 8, 4, 2, 1] {
                sum = sum.wrapping_add(warp::shuffle_down(FULL, sum, delta));
            }
            if t.is_multiple_of(32) {
                tile.write(t / 32, sum);
            }
            thread::sync_threads();
            if t == 0 {
                let sum = (0..THREADS / 32).fold(0_u32, |sum, i| sum.wrapping_add(tile.read(i)));
                global::store(to.at(block), sum);
            }
        }
    };
    let best = (0..5).map(|_| {
        let start = Instant::now();
        run(BLOCKS as u32, THREADS as u32, kernel);
        start.elapsed()
    });
    let best = best.min().unwrap();
    println!("64 blocks of 512 threads: {best:?}");
    for (block, sum) in sums.into_iter().enumerate() {
        let own = &input[block * 4 * THREADS..(block + 1) * 4 * THREADS];
        assert_eq!(sum, own.iter().fold(0, |a: u32, b| a.wrapping_add(*b)));
    }
    // 30 ms on an idle machine; a shared one may take several times as long.
    assert!(best < Duration::from_millis(300), "{best:?}");
}
