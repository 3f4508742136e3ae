//! Coordinates, block barriers that carry a predicate, and launches that cannot be.

use std::collections::BTreeSet;
use std::sync::Mutex;

use warpfold_simt::sim::{self, FaultKind, Launch, Options};
use warpfold_simt::thread::{self, Vec3};
use warpfold_simt::warp;

use crate::common::{Ptr, launch, run, schedules};

#[test]
fn every_thread_runs_once_with_its_coordinates() {
    for schedule in schedules() {
        let seen = Mutex::new(BTreeSet::new());
        let launch = Launch::new("coordinates", (3, 2, 2), (5, 4, 3));
        let report = sim::launch(&launch, &Options::with_schedule(schedule), || {
            let (t, b) = (thread::thread_idx(), thread::block_idx());
            let dims = (thread::block_dim(), thread::grid_dim());
            assert_eq!(dims, (Vec3 { x: 5, y: 4, z: 3 }, Vec3 { x: 3, y: 2, z: 2 }));
            let linear = t.x + 5 * (t.y + 4 * t.z);
            assert_eq!(warp::lane_id(), linear % 32);
            assert_eq!(thread::index(), linear + 60 * (b.x + 3 * (b.y + 2 * b.z)));
            assert_eq!(thread::index_1d(), b.x * 5 + t.x);
            let (two, three) = (thread::index_2d(), thread::index_3d());
            assert_eq!((two.x, two.y), (b.x * 5 + t.x, b.y * 4 + t.y));
            assert_eq!((three.x, three.y, three.z), (two.x, two.y, b.z * 3 + t.z));
            assert_eq!(thread::first(), thread::index() == 0);
            assert!(seen.lock().unwrap().insert(thread::index()));
        });
        let report = report.unwrap();
        assert_eq!((report.blocks, report.threads), (12, 720));
        assert!(seen.into_inner().unwrap().into_iter().eq(0..720));
    }
}

#[test]
fn barriers_count_all_and_any() {
    let mut out = vec![[0u32; 3]; 100];
    let ptr = Ptr::of(&mut out);
    for limit in [0, 1, 37, 99, 100] {
        let report = run(1, 100, || {
            let t = thread::thread_idx_x();
            let holds = u32::from(t < limit) * 7;
            let results = [
                thread::sync_threads_count(holds),
                thread::sync_threads_and(holds),
                thread::sync_threads_or(holds),
            ];
            // SAFETY: one element a thread.
            unsafe { *ptr.at(t as usize) = results };
        });
        assert_eq!(report.barriers, 3);
        let expected = [limit, u32::from(limit == 100), u32::from(limit > 0)];
        assert!(out.iter().all(|&found| found == expected), "{limit}");
    }
}

#[test]
fn launches_that_cannot_be_are_refused() {
    for (grid, block) in [((1, 1), (1025, 1)), ((1, 1), (0, 1)), ((0, 1), (32, 1)), ((1, 1), (64, 32))] {
        let fault = launch(grid, block, || unreachable!()).unwrap_err();
        assert!(matches!(fault.kind, FaultKind::Launch { .. }), "{fault}");
        assert_eq!(fault.place, None);
    }
}

#[test]
#[should_panic(expected = "outside `sim::launch`")]
fn device_functions_need_a_launch() {
    thread::thread_idx_x();
}

#[test]
fn a_launch_after_a_fault_is_a_fresh_one() {
    for _ in 0..3 {
        launch(2, 64, || {
            if thread::thread_idx_x() == 63 {
                thread::trap();
            }
            thread::sync_threads();
        })
        .unwrap_err();
        assert_eq!(run(2, 64, thread::sync_threads).barriers, 2);
    }
}
