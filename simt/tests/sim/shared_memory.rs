//! Shared memory that is used rightly: each declaration an array of its own, one for each block, ordered by barriers
//! and `sync_warp`.

use warpfold_monoid::Plain;
use warpfold_simt::shared::{Shared, dynamic_shared, dynamic_shared_mem};
use warpfold_simt::sim::{self, Launch, Options};
use warpfold_simt::{shared, shared_array, thread, warp};

use crate::common::{Ptr, run, schedules};

#[test]
fn blocks_have_their_own_and_declarations_too() {
    for schedule in schedules() {
        let mut out = vec![0u64; 8 * 64];
        let ptr = Ptr::of(&mut out);
        let options = Options::with_schedule(schedule);
        sim::launch(&Launch::new("two_arrays", 8, 64), &options, || {
            let (first, second) = (shared!([u64; 64]), shared!([u16; 64]));
            let (t, block) = (thread::thread_idx_x() as usize, thread::block_idx_x() as usize);
            // SAFETY: indices below 64, a barrier between writes and reads, one element of the output a thread.
            unsafe {
                first.write(t, (block * 1000 + t) as u64);
                second.write(63 - t, t as u16);
                thread::sync_threads();
                *ptr.at(block * 64 + t) = first.read(63 - t) * 100 + u64::from(second.read(t));
            }
        })
        .unwrap();
        for (i, &value) in out.iter().enumerate() {
            let (block, t) = (i / 64, i % 64);
            assert_eq!(value, ((block * 1000 + 63 - t) * 100 + 63 - t) as u64);
        }
    }
}

/// A generic function over a handle that the entry declared.
unsafe fn exchange<T: Plain>(tile: Shared<T>, value: T) -> T {
    let t = thread::thread_idx_x() as usize;
    // SAFETY: `t` is below 64; the lanes of a warp exchange with `sync_warp` between.
    unsafe {
        tile.write(t, value);
        warp::sync_warp(warp::FULL);
        let other = tile.read(t ^ 1);
        warp::sync_warp(warp::FULL);
        tile.write(t, other);
        warp::sync_warp(warp::FULL);
        tile.read(t ^ 1)
    }
}

#[test]
fn sync_warp_orders_the_lanes_of_a_warp() {
    for schedule in schedules() {
        let options = Options::with_schedule(schedule);
        sim::launch(&Launch::new("exchange", 2, 64), &options, || {
            let tile = shared!([u32; 64]);
            // SAFETY: 64 threads.
            assert_eq!(unsafe { exchange(tile, thread::index_1d()) }, thread::index_1d());
        })
        .unwrap();
    }
}

#[test]
fn many_may_read_what_one_wrote() {
    run(1, 256, || {
        let tile = shared!([[f32; 3]; 4]);
        assert_eq!((tile.len(), tile.is_empty(), tile.first(2).len(), tile.first(9).len()), (4, false, 2, 4));
        let t = thread::thread_idx_x() as usize;
        for round in 0..3 {
            // SAFETY: barriers on both sides of the one thread's writes.
            unsafe {
                if t == 100 * round {
                    tile.write(1, [round as f32; 3]);
                }
                thread::sync_threads();
                assert_eq!(tile.read(1), [round as f32; 3]);
                thread::sync_threads();
            }
        }
    });
}

#[test]
fn pointers_into_shared_memory_work_unchecked() {
    let mut out = vec![0u32; 128];
    let ptr = Ptr::of(&mut out);
    run(1, 128, || {
        let tile = shared_array![u32; 128];
        let t = thread::thread_idx_x() as usize;
        // SAFETY: one element a thread, a barrier between.
        unsafe {
            *tile.add(t) = t as u32;
            thread::sync_threads();
            *ptr.at(t) = *tile.add(127 - t);
        }
    });
    assert!(out.iter().rev().copied().eq(0..128));
}

#[test]
fn dynamic_shared_memory_is_as_large_as_asked() {
    let launch = Launch::new("dynamic", 3, 1024).with_dynamic_shared(64 * 1024);
    sim::launch(&launch, &Options::default(), || {
        let t = thread::thread_idx_x() as usize;
        // SAFETY: 64 KB for 1024 times 64 bytes; each thread keeps to its own, then reads its neighbour's.
        unsafe {
            let tile = dynamic_shared::<[u64; 8]>(1024);
            tile.write(t, [t as u64; 8]);
            thread::sync_threads();
            assert_eq!(tile.read(t ^ 1), [t as u64 ^ 1; 8]);
            assert_eq!(*dynamic_shared_mem::<u64>().add(8), 1);
        }
    })
    .unwrap();
}
