//! Kernels whose blocks depend on each other give the same results under every schedule: a last-block reduction, and
//! a look-back, which only makes progress where its predecessors do.

use std::collections::BTreeSet;
use std::sync::Mutex;

use warpfold_simt::atomic::{self, AcqRel, Gpu, Relaxed};
use warpfold_simt::shared::Shared;
use warpfold_simt::sim::{self, FaultKind, Launch, Options, Schedule};
use warpfold_simt::warp::{self, FULL};
use warpfold_simt::{fence, global, shared, thread};

use crate::common::{Ptr, schedules};

unsafe fn block_sum(mut value: u64, tile: Shared<u64>) -> u64 {
    let t = thread::thread_idx_x() as usize;
    // SAFETY: whole warps, at most 32 of them, a barrier between writes and reads.
    unsafe {
        for delta in [1, 2, 4, 8, 16] {
            value += warp::shuffle_down(FULL, value, delta);
        }
        if t.is_multiple_of(32) {
            tile.write(t / 32, value);
        }
        thread::sync_threads();
        let warps = thread::block_dim_x() as usize / 32;
        if t < 32 {
            value = if t < warps { tile.read(t) } else { 0 };
            for delta in [1, 2, 4, 8, 16] {
                value += warp::shuffle_down(FULL, value, delta);
            }
        }
        value
    }
}

#[test]
fn a_last_block_reduction() {
    let mut input: Vec<u64> = (0..10_000).map(|i| i * i).collect();
    let expected: u64 = input.iter().sum();
    for schedule in schedules() {
        let (mut out, mut partials, mut ticket) = ([0_u64], vec![0_u64; 13], [0_u32]);
        let from = Ptr::of(&mut input);
        let (out_ptr, partials_ptr, ticket_ptr) =
            (Ptr::of(&mut out), Ptr::of(&mut partials), Ptr::of(&mut ticket));
        let report = sim::launch(&Launch::new("sum", 13, 96), &Options::with_schedule(schedule), || {
            let (tile, last) = (shared!([u64; 32]), shared!([u32; 1]));
            let t = thread::thread_idx_x() as usize;
            let (block, grid) = (thread::block_idx_x(), thread::grid_dim_x());
            // SAFETY: indices stay below the lengths; barriers lie between uses of the tile.
            unsafe {
                let mut value = 0;
                for i in (thread::index_1d() as usize..10_000).step_by(13 * 96) {
                    value += global::load(from.at(i));
                }
                let value = block_sum(value, tile);
                if t == 0 {
                    global::store(partials_ptr.at(block as usize), value);
                    fence::acq_rel_gpu();
                    let drawn = atomic::increment_wrapping(ticket_ptr.at(0), grid - 1, Relaxed, Gpu);
                    fence::acq_rel_gpu();
                    last.write(0, u32::from(drawn == grid - 1));
                }
                thread::sync_threads();
                if last.read(0) == 1 {
                    let value = if t < grid as usize { global::load_cg(partials_ptr.at(t)) } else { 0 };
                    let value = block_sum(value, tile);
                    if t == 0 {
                        global::store(out_ptr.at(0), value);
                    }
                }
            }
        });
        assert_eq!(report.unwrap().barriers, 2 * 13 + 1);
        assert_eq!((out, ticket), ([expected], [0]), "{schedule:?}");
    }
}

/// Each block draws its tile, waits for the running total up to it and publishes its own.
fn look_back(options: &Options, by_ticket: bool) -> Result<Vec<u64>, sim::Fault> {
    let (mut totals, mut ready, mut ticket) = (vec![0_u64; 40], vec![0_u32; 40], [0_u32]);
    let (totals_ptr, ready_ptr, ticket_ptr) =
        (Ptr::of(&mut totals), Ptr::of(&mut ready), Ptr::of(&mut ticket));
    sim::launch(&Launch::new("look_back", 40, 64), options, || {
        let shared_tile = shared!([u32; 1]);
        // SAFETY: tiles below 40; barriers around the shared word.
        unsafe {
            if thread::thread_idx_x() == 0 {
                let drawn = atomic::fetch_add(ticket_ptr.at(0), 1, AcqRel, Gpu);
                shared_tile.write(0, if by_ticket { drawn } else { thread::block_idx_x() });
            }
            thread::sync_threads();
            let tile = shared_tile.read(0) as usize;
            if thread::thread_idx_x() == 0 {
                let mut total = tile as u64 + 1;
                if tile > 0 {
                    while global::load_acquire_gpu(ready_ptr.at(tile - 1)) == 0 {
                        thread::nanosleep(10);
                    }
                    total += global::load_cg(totals_ptr.at(tile - 1));
                }
                global::store(totals_ptr.at(tile), total);
                global::store_release_gpu(ready_ptr.at(tile), 1);
            }
            thread::sync_threads();
        }
    })?;
    Ok(totals)
}

#[test]
fn a_look_back_makes_progress_in_any_order() {
    for schedule in schedules() {
        for resident_blocks in [1, 3, 100] {
            let options = Options { resident_blocks, ..Options::with_schedule(schedule) };
            let totals = look_back(&options, true).unwrap_or_else(|fault| panic!("{schedule:?}: {fault}"));
            assert!(totals.into_iter().eq((1..=40).map(|n| n * (n + 1) / 2)));
        }
    }
}

#[test]
fn waiting_for_a_block_that_may_not_have_started_is_found() {
    // Tiles by block index: a device may start blocks in any order, and then has no room for those waited for.
    let found = (0..8).filter_map(|seed| {
        let options = Options { resident_blocks: 2, ..Options::with_schedule(Schedule::Concurrent { seed }) };
        look_back(&options, false).err()
    });
    let faults: Vec<_> = found.collect();
    assert!(!faults.is_empty());
    for fault in faults {
        let FaultKind::Deadlock { detail } = &fault.kind else { panic!("{fault}") };
        assert!(detail.contains("have not started"), "{fault}");
    }
}

#[test]
fn schedules_differ_and_repeat() {
    let order = |schedule| {
        let seen = Mutex::new(Vec::new());
        sim::launch(&Launch::new("order", 9, 128), &Options::with_schedule(schedule), || {
            seen.lock().unwrap().push(thread::index_1d());
        })
        .unwrap();
        seen.into_inner().unwrap()
    };
    assert!(order(Schedule::Sequential).into_iter().eq(0..9 * 128));
    let mut orders = BTreeSet::new();
    for schedule in schedules() {
        let one = order(schedule);
        assert_eq!(one, order(schedule), "{schedule:?}");
        let mut sorted = one.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..9 * 128));
        orders.insert(one);
    }
    assert_eq!(orders.len(), schedules().count());
}
