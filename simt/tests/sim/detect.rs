//! One kernel, broken on purpose, for each thing that the simulator finds; the report must name the right thread, the
//! right call and the right line. Every schedule must find it.

// Every block here breaks a promise on purpose: the test says which.
#![allow(clippy::undocumented_unsafe_blocks, clippy::if_same_then_else)]

use std::panic::Location;

use warpfold_simt::atomic::{self, AcqRel, Gpu, Relaxed};
use warpfold_simt::shared::{commit_copies, dynamic_shared, wait_copies};
use warpfold_simt::sim::{self, Buffer, Fault, FaultKind, LaneState, Launch, Options, Place};
use warpfold_simt::warp::{self, FULL};
use warpfold_simt::{global, shared, shared_array, thread};

use crate::common::{Ptr, launch, schedules};

/// Runs a broken kernel under every schedule; the fault of the sequential one.
fn fault(block: u32, kernel: impl Fn() + Sync) -> Fault {
    fault_with(block, &Options::default(), kernel)
}

fn fault_with(block: u32, options: &Options, kernel: impl Fn() + Sync) -> Fault {
    let faults: Vec<Fault> = schedules()
        .map(|schedule| {
            let options = Options { schedule, ..options.clone() };
            let outcome = sim::launch(&Launch::new("broken", 3, block), &options, &kernel);
            outcome.expect_err(&format!("{schedule:?} finds nothing"))
        })
        .collect();
    for fault in &faults {
        assert_eq!(fault.kernel, "broken");
        assert_eq!(
            std::mem::discriminant(&fault.kind),
            std::mem::discriminant(&faults[0].kind),
            "{fault}\n{}",
            faults[0]
        );
    }
    faults.into_iter().next().unwrap()
}

fn place(fault: &Fault) -> &Place {
    fault.place.as_deref().expect("a thread")
}

/// The line of a call, for comparison with a report: `line() + 1` is the line after.
#[track_caller]
fn line() -> u32 {
    Location::caller().line()
}

#[track_caller]
fn is_at(fault: &Fault, call: &str, line: u32) {
    let place = place(fault);
    assert_eq!(place.call, call, "{fault}");
    let site = place.site.as_ref().expect("a source line");
    assert_eq!(site.line, line, "{fault}");
    assert!(site.file.ends_with("detect.rs"), "{fault}");
}

#[test]
fn a_shuffle_that_names_a_lane_that_has_returned() {
    let mut at = 0;
    let at_ptr = Ptr::of(std::slice::from_mut(&mut at));
    let fault = fault(64, || {
        if thread::thread_idx_x() == 40 {
            return;
        }
        unsafe {
            *at_ptr.at(0) = line() + 1;
            warp::shuffle_down(FULL, 1.0_f64, 1);
        }
    });
    is_at(&fault, "warp::shuffle_down", at);
    assert_eq!((place(&fault).warp, place(&fault).lane), (1, 0));
    assert_eq!(fault.kind, FaultKind::AbsentLane { mask: FULL, lane: 8, state: LaneState::Returned });
}

#[test]
fn a_vote_of_lanes_past_the_end_of_the_block() {
    let fault = fault(40, || {
        unsafe { warp::warp_vote_all(FULL, true) };
    });
    assert_eq!(fault.kind, FaultKind::AbsentLane { mask: FULL, lane: 8, state: LaneState::Missing });
    assert_eq!((place(&fault).warp, place(&fault).call), (1, "warp::warp_vote_all"));
}

#[test]
fn a_shuffle_in_divergent_code() {
    let fault = fault(32, || {
        let lane = thread::thread_idx_x();
        let value = if lane < 16 {
            unsafe { warp::shuffle_xor(FULL, lane, 1) }
        } else {
            unsafe { warp::shuffle_xor(FULL, lane, 2) }
        };
        std::hint::black_box(value);
    });
    let FaultKind::AbsentLane { mask: FULL, lane: 16, state: LaneState::Waiting { call, site } } =
        &fault.kind
    else {
        panic!("{fault}")
    };
    assert_eq!(*call, "warp::shuffle_xor");
    assert!(site.line > place(&fault).site.as_ref().unwrap().line);
}

#[test]
fn a_shuffle_while_another_lane_is_at_a_barrier() {
    let fault = fault(64, || {
        if thread::thread_idx_x() != 5 {
            unsafe { warp::sync_warp(FULL) };
        }
        thread::sync_threads();
    });
    let FaultKind::AbsentLane {
        lane: 5, state: LaneState::Waiting { call: "thread::sync_threads", .. }, ..
    } = fault.kind
    else {
        panic!("{fault}")
    };
    assert_eq!(place(&fault).call, "warp::sync_warp");
}

#[test]
fn masks_that_differ() {
    let fault = fault(32, || {
        let mask = if thread::thread_idx_x() == 3 { 0b1111 } else { FULL };
        unsafe { warp::warp_vote_ballot(mask, true) };
    });
    assert!(matches!(fault.kind, FaultKind::AbsentLane { .. }), "{fault}");
}

#[test]
fn a_mask_without_the_caller() {
    let fault = fault(32, || {
        unsafe { warp::warp_match_any(0x5555_5555, 1_u32) };
    });
    assert_eq!(fault.kind, FaultKind::CallerNotInMask { mask: 0x5555_5555 });
    assert_eq!((place(&fault).lane, place(&fault).call), (1, "warp::warp_match_any"));
}

#[test]
fn a_shuffle_from_a_lane_that_the_mask_does_not_name() {
    let fault = fault(32, || {
        if thread::thread_idx_x() < 16 {
            unsafe { warp::shuffle_down(0xffff, 1_u32, 1) };
        }
    });
    assert_eq!(fault.kind, FaultKind::UnnamedSource { mask: 0xffff, lane: 16 });
    assert_eq!(place(&fault).lane, 15);
}

#[test]
fn a_width_that_is_no_power_of_two() {
    for width in [0, 3, 24] {
        let fault = fault(32, || unsafe {
            warp::shuffle_up_width(FULL, 1_u32, 1, width);
        });
        assert_eq!(fault.kind, FaultKind::Width { width });
    }
}

#[test]
fn a_barrier_that_a_thread_has_left() {
    let fault = fault(96, || {
        if thread::thread_idx_x() != 70 {
            thread::sync_threads();
        }
    });
    let expected = FaultKind::BarrierNotReached {
        waiting: 95,
        threads: 96,
        thread: (70, 0, 0).into(),
        state: LaneState::Returned,
    };
    assert_eq!(fault.kind, expected);
    assert_eq!(place(&fault).call, "thread::sync_threads");
}

#[test]
fn two_barriers_in_two_branches() {
    let fault = fault(64, || {
        if thread::thread_idx_x() < 10 {
            thread::sync_threads();
        } else {
            thread::sync_threads();
        }
    });
    let FaultKind::BarrierNotReached {
        waiting: 10,
        threads: 64,
        thread,
        state: LaneState::Waiting { site, .. },
    } = &fault.kind
    else {
        panic!("{fault}")
    };
    assert_eq!(*thread, (10, 0, 0).into());
    assert_eq!(site.line, place(&fault).site.as_ref().unwrap().line + 2);
}

#[test]
fn a_read_of_shared_memory_that_nobody_wrote() {
    let fault = fault(64, || {
        let tile = shared!([f64; 33]);
        let t = thread::thread_idx_x() as usize;
        unsafe {
            if t < 32 {
                tile.write(t, 1.0);
            }
            thread::sync_threads();
            if t < 33 {
                tile.read(t);
            }
        }
    });
    assert_eq!(fault.kind, FaultKind::UnwrittenShared { index: 32, len: 33 });
    assert_eq!((place(&fault).thread, place(&fault).call), ((32, 0, 0).into(), "Shared::read"));
}

#[test]
fn a_copy_that_is_not_waited_for_has_not_arrived() {
    let items: Vec<u128> = (0..64).collect();
    let ptr = items.as_ptr() as usize;
    // Two groups, of which each lane waits for the first, or for both.
    let run = |what: usize| {
        let kernel = || {
            let tile = shared!([u128; 64]);
            let (t, from) = (thread::thread_idx_x() as usize, ptr as *const u128);
            unsafe {
                tile.copy_async(t, from.add(t));
                commit_copies();
                tile.copy_async(32 + t, from.add(32 + t));
                commit_copies();
                wait_copies::<1>();
                match what {
                    0 => _ = tile.read(32 + t),
                    1 => _ = tile.read(t ^ 1),
                    _ => {
                        assert_eq!(tile.read(t), t as u128);
                        warp::sync_warp(FULL);
                        assert_eq!(tile.read(t ^ 1), (t ^ 1) as u128);
                        wait_copies::<0>();
                        assert_eq!(tile.read(32 + t), 32 + t as u128);
                    }
                }
            }
        };
        sim::launch(&Launch::new("copies", 1, 32), &Options::default(), kernel)
    };
    run(2).unwrap();
    let kind = run(0).unwrap_err().kind;
    assert!(matches!(kind, FaultKind::UnwrittenShared { index: 32.., len: 64 }), "{kind}");
    // A neighbour's is on its way, or has arrived without a barrier since.
    let kind = run(1).unwrap_err().kind;
    assert!(matches!(kind, FaultKind::UnwrittenShared { .. } | FaultKind::SharedRace { .. }), "{kind}");
}

#[test]
fn what_an_earlier_block_wrote_is_not_written() {
    let fault = fault(32, || {
        let tile = shared!([u32; 1]);
        unsafe {
            if thread::block_idx_x() == 0 && thread::thread_idx_x() == 0 {
                tile.write(0, 1);
            }
            thread::sync_threads();
            tile.read(0);
        }
    });
    assert_eq!(fault.kind, FaultKind::UnwrittenShared { index: 0, len: 1 });
    assert_ne!(place(&fault).block.x, 0);
}

#[test]
fn a_race_by_a_missing_barrier() {
    // The first pass is right; in the second, the barrier between reading and writing again is missing.
    let fault = fault(128, || {
        let tile = shared!([u32; 128]);
        let t = thread::thread_idx_x() as usize;
        unsafe {
            tile.write(t, 1);
            thread::sync_threads();
            let other = tile.read((t + 64) % 128);
            tile.write(t, other);
        }
    });
    let FaultKind::SharedRace { index, write: _, other, other_write, .. } = fault.kind else {
        panic!("{fault}")
    };
    assert!(index < 128 && !other_write || other != place(&fault).thread);
}

#[test]
fn two_writes_of_one_element() {
    let fault = fault(64, || {
        let flag = shared!([u8; 2]);
        unsafe {
            if thread::thread_idx_x().is_multiple_of(32) {
                flag.write(1, 7);
            }
        }
    });
    let FaultKind::SharedRace { index: 1, write: true, other_write: true, other, .. } = fault.kind else {
        panic!("{fault}")
    };
    assert_eq!((other, place(&fault).thread), ((0, 0, 0).into(), (32, 0, 0).into()));
}

#[test]
fn neighbouring_bytes_are_no_race() {
    let kernel = || {
        let bytes = shared!([u8; 64]);
        unsafe { bytes.write(thread::thread_idx_x() as usize, 1) };
    };
    launch(2, 64, kernel).unwrap();
}

#[test]
fn lanes_of_one_warp_race_without_sync_warp() {
    // A shuffle brings the lanes together, and yet orders no memory.
    let fault = fault(32, || {
        let tile = shared!([u32; 32]);
        let lane = thread::thread_idx_x() as usize;
        unsafe {
            tile.write(lane, 1);
            warp::shuffle_idx(FULL, 0_u32, 0);
            tile.read(lane ^ 1);
        }
    });
    assert!(matches!(fault.kind, FaultKind::SharedRace { write: false, other_write: true, .. }), "{fault}");
}

#[test]
fn sync_warp_orders_only_the_lanes_it_names() {
    let fault = fault(32, || {
        let tile = shared!([u32; 1]);
        let lane = thread::thread_idx_x();
        unsafe {
            if lane == 0 {
                tile.write(0, 1);
            }
            warp::sync_warp(if lane < 16 { 0xffff } else { 0xffff_0000 });
            // Keeps the lanes together, so that the write comes first under every schedule.
            warp::warp_vote_all(FULL, true);
            if lane == 31 || lane == 3 {
                tile.read(0);
            }
        }
    });
    let FaultKind::SharedRace { index: 0, write: false, other_write: true, .. } = fault.kind else {
        panic!("{fault}")
    };
    assert_eq!(place(&fault).lane, 31);
}

#[test]
fn a_write_after_the_last_sync_warp() {
    let fault = fault(32, || {
        let tile = shared!([u32; 1]);
        let lane = thread::thread_idx_x();
        unsafe {
            warp::sync_warp(FULL);
            if lane == 0 {
                tile.write(0, 1);
            }
            warp::warp_vote_all(FULL, true);
            if lane == 1 {
                tile.read(0);
            }
        }
    });
    assert!(matches!(fault.kind, FaultKind::SharedRace { write: false, .. }), "{fault}");
}

#[test]
fn a_write_after_another_lane_has_read() {
    // The writer has read too: its own read must not hide those of the other lanes.
    for writer in [0, 31] {
        let fault = fault(32, || {
            let tile = shared!([u32; 1]);
            let lane = thread::thread_idx_x();
            unsafe {
                if lane == 0 {
                    tile.write(0, 1);
                }
                thread::sync_threads();
                if lane == writer || lane == 5 {
                    tile.read(0);
                }
                warp::warp_vote_all(FULL, true);
                if lane == writer {
                    tile.write(0, 2);
                }
            }
        });
        let FaultKind::SharedRace { write: true, other_write: false, other, .. } = fault.kind else {
            panic!("{fault}")
        };
        assert_eq!((other.x, place(&fault).lane), (5, writer));
    }
}

#[test]
fn a_write_after_another_warp_has_read() {
    let fault = fault(64, || {
        let tile = shared!([u32; 1]);
        let t = thread::thread_idx_x();
        unsafe {
            if t == 0 {
                tile.write(0, 1);
            }
            thread::sync_threads();
            if t == 0 || t == 32 {
                tile.read(0);
            }
            if t == 0 {
                // Long enough for the other warp to read first under any schedule.
                for _ in 0..200 {
                    thread::nanosleep(1);
                }
                tile.write(0, 2);
            }
        }
    });
    let FaultKind::SharedRace { write: true, other_write: false, other, .. } = fault.kind else {
        panic!("{fault}")
    };
    assert_eq!((other.x, place(&fault).thread.x), (32, 0));
}

#[test]
fn a_write_after_many_have_read() {
    for writer in [0, 7, 40] {
        let fault = fault(64, || {
            let tile = shared!([u32; 1]);
            let t = thread::thread_idx_x();
            unsafe {
                if t == 0 {
                    tile.write(0, 1);
                }
                thread::sync_threads();
                tile.read(0);
                warp::sync_warp(1 << (t % 32));
                if t == writer {
                    tile.write(0, 2);
                }
            }
        });
        assert!(matches!(fault.kind, FaultKind::SharedRace { .. }), "{fault}");
    }
}

#[test]
fn an_index_past_a_shared_array() {
    let fault = fault(33, || {
        let tile = shared!([u16; 32]);
        unsafe { tile.write(thread::thread_idx_x() as usize, 1) };
    });
    assert_eq!(fault.kind, FaultKind::SharedOutOfBounds { index: 32, len: 32 });
    assert_eq!(place(&fault).thread.x, 32);
}

#[test]
fn more_shared_memory_than_there_is() {
    let fault_static = fault(32, || {
        shared!([u8; 40_000]);
        shared!([f64; 2000]);
    });
    let expected = FaultKind::SharedExhausted { what: "static", asked: 56_000, available: 49_152 };
    assert_eq!(fault_static.kind, expected);
    let fault_dynamic = fault(32, || unsafe {
        dynamic_shared::<u32>(8);
    });
    let expected = FaultKind::SharedExhausted { what: "dynamic", asked: 32, available: 0 };
    assert_eq!(fault_dynamic.kind, expected);
}

#[test]
fn accesses_outside_registered_buffers() {
    let (mut input, mut out) = (vec![1.0_f32; 100], vec![0.0_f32; 50]);
    let options = Options::default()
        .buffer(Buffer::read_only("input", &input))
        .buffer(Buffer::writable("out", &mut out));
    let (from, to) = (Ptr::of(&mut input), Ptr::of(&mut out));

    // Past the end.
    let past = fault_with(32, &options, || unsafe {
        global::load(from.at(thread::index_1d() as usize + 37));
    });
    let FaultKind::OutOfBounds { bytes: 4, detail, .. } = &past.kind else { panic!("{past}") };
    assert!(detail.contains("byte 400 of `input`, which has 400 bytes"), "{past}");
    assert_eq!((place(&past).block.x, place(&past).thread.x), (1, 31));

    // Before the start.
    let before = fault_with(32, &options, || unsafe {
        global::store(to.at(thread::index_1d() as usize).wrapping_sub(1), 1.0);
    });
    assert!(before.to_string().contains("4 bytes before `out`"), "{before}");

    // The last element of a vector.
    let vector = fault_with(1, &options, || unsafe {
        let last = (46..50).find(|&i| to.at(i).addr().is_multiple_of(16)).unwrap_or(50);
        global::store_vector(to.at(last + 4 * usize::from(last < 47)), [0.0; 4]);
    });
    assert!(matches!(vector.kind, FaultKind::OutOfBounds { bytes: 16, .. }), "{vector}");

    // A write to what is only read, an atomic too.
    let read_only = fault_with(32, &options, || unsafe {
        global::store(from.at(3), 1.0);
    });
    assert!(read_only.to_string().contains("byte 12 of `input`, which is read-only"), "{read_only}");
    let update = fault_with(32, &options, || unsafe {
        atomic::fetch_add(from.at(3), 1.0, Relaxed, Gpu);
    });
    assert!(update.to_string().contains("atomic::fetch_add"), "{update}");

    // Neither registered nor global.
    let mut stray = 0_u32;
    let stray = Ptr::of(std::slice::from_mut(&mut stray));
    let elsewhere = fault_with(32, &options, || unsafe {
        global::load_relaxed_gpu(stray.at(0));
    });
    assert!(matches!(elsewhere.kind, FaultKind::OutOfBounds { .. }), "{elsewhere}");
    let in_shared = fault(32, || unsafe {
        global::store(shared_array![u32; 1], 1);
    });
    assert!(in_shared.to_string().contains("shared memory"), "{in_shared}");
    let null = fault(32, || unsafe {
        global::load(std::ptr::null::<u64>());
    });
    assert!(null.to_string().contains("a null pointer"), "{null}");
}

#[test]
fn a_misaligned_vector() {
    let mut input = vec![1.0_f32; 16];
    let from = Ptr::of(&mut input);
    let first = (0..4).find(|&i| from.at(i).addr().is_multiple_of(16)).unwrap();
    let fault = fault(32, || unsafe {
        global::load_vector::<f32, 4>(from.at(first + 1));
    });
    assert!(matches!(fault.kind, FaultKind::Misaligned { align: 16, .. }), "{fault}");
    assert_eq!(place(&fault).call, "global::load_vector");
}

#[test]
fn a_flag_that_nobody_sets() {
    let mut flag = [0_u32];
    let flag = Ptr::of(&mut flag);
    let fault = fault(64, || unsafe { while global::load_acquire_gpu(flag.at(0)) == 0 {} });
    assert!(matches!(fault.kind, FaultKind::Deadlock { .. }), "{fault}");
    assert_eq!(place(&fault).call, "global::load_acquire_gpu");
}

#[test]
fn a_sleeper_who_votes() {
    // Like a look-back whose predecessor never publishes: the warp meets again and again, and nothing changes.
    let mut flag = [0_u32];
    let flag = Ptr::of(&mut flag);
    let fault = fault(32, || unsafe {
        while warp::warp_vote_all(FULL, global::load_volatile(flag.at(0)) == 0) {
            thread::nanosleep(20);
        }
    });
    assert!(matches!(fault.kind, FaultKind::Deadlock { .. }), "{fault}");
}

#[test]
fn waiting_for_a_thread_that_waits_at_a_barrier() {
    let mut flag = [0_u32];
    let flag = Ptr::of(&mut flag);
    let fault = fault(64, || unsafe {
        if thread::thread_idx_x() == 0 {
            thread::sync_threads();
            global::store_release_gpu(flag.at(0), 1);
        } else {
            while global::load_acquire_gpu(flag.at(0)) == 0 {}
            thread::sync_threads();
        }
    });
    assert!(matches!(fault.kind, FaultKind::Deadlock { .. }), "{fault}");
}

#[test]
fn a_lock_that_is_never_released() {
    let mut lock = [0_u32];
    let lock = Ptr::of(&mut lock);
    let fault =
        fault(32, || unsafe { while atomic::compare_exchange(lock.at(0), 0, 1, AcqRel, Gpu) != 0 {} });
    assert!(matches!(fault.kind, FaultKind::Deadlock { .. }), "{fault}");
}

#[test]
fn a_loop_that_never_polls() {
    let mut flag = [0_u32];
    let flag = Ptr::of(&mut flag);
    let options = Options { step_limit: 10_000, ..Options::default() };
    let fault = fault_with(32, &options, || unsafe { while global::load(flag.at(0)) == 0 {} });
    assert_eq!(fault.kind, FaultKind::Runaway { steps: 10_001 });
}

#[test]
fn a_panic_in_the_kernel() {
    let data: &[u32] = std::hint::black_box(&[1; 50]);
    let fault = fault(64, || {
        let i = thread::thread_idx_x() as usize;
        std::hint::black_box(data[i]);
    });
    let FaultKind::Panic { message } = &fault.kind else { panic!("{fault}") };
    assert_eq!(message, "index out of bounds: the len is 50 but the index is 50");
    assert_eq!(place(&fault).thread.x, 50);
    assert!(place(&fault).site.as_ref().unwrap().file.ends_with("detect.rs"));
}

#[test]
fn a_trap() {
    let fault = fault(64, || {
        if thread::thread_idx_x() == 33 {
            thread::trap();
        }
    });
    assert_eq!((&fault.kind, place(&fault).warp, place(&fault).lane), (&FaultKind::Trap, 1, 1));
    let text = fault.to_string();
    assert!(
        text.starts_with("broken: block (0, 0, 0), thread (33, 0, 0) (warp 1, lane 1), thread::trap at "),
        "{text}"
    );
    assert!(text.ends_with(": the kernel trapped"), "{text}");
}

#[test]
fn what_suspended_threads_own_is_dropped() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    launch(1, 64, || {
        let _owned = Counted;
        thread::sync_threads();
        if thread::thread_idx_x() == 20 {
            thread::trap();
        }
        thread::sync_threads();
    })
    .unwrap_err();
    assert_eq!(DROPPED.load(Ordering::Relaxed), 64);
}

#[test]
fn additions_to_shared_memory_race_with_other_accesses_alone() {
    let run = |body: fn(u32, warpfold_simt::shared::Shared<u32>)| {
        sim::launch(&Launch::new("adds", 1, 64), &Options::default(), move || {
            let counts = shared!([u32; 2]);
            let thread = thread::thread_idx_x();
            if thread < 2 {
                // SAFETY: a slot a thread.
                unsafe { counts.write(thread as usize, 0) };
            }
            thread::sync_threads();
            body(thread, counts);
        })
    };
    let counted = run(|thread, counts| {
        // SAFETY: written before the barrier; read behind another.
        unsafe {
            counts.add(thread as usize % 2, thread);
            thread::sync_threads();
            assert_eq!((counts.read(0), counts.read(1)), (32 * 31, 32 * 32));
        }
    });
    assert!(counted.is_ok(), "{counted:?}");
    let updated = run(|thread, counts| {
        // SAFETY: the same.
        unsafe {
            counts.update(0, |most| most.max(thread));
            thread::sync_threads();
            assert_eq!(counts.read(0), 63);
        }
    });
    assert!(updated.is_ok(), "{updated:?}");
    // SAFETY: broken on purpose: updates and additions are not in order among each other.
    let fault = run(|thread, counts| unsafe {
        if thread == 1 {
            counts.update(0, |most| most + 1);
        } else {
            counts.add(0, 1);
        }
    });
    assert!(matches!(fault.unwrap_err().kind, FaultKind::SharedRace { .. }));
    // SAFETY: broken on purpose, as the simulator is to find.
    let fault = run(|thread, counts| unsafe {
        counts.add(0, 1);
        if thread == 40 {
            counts.read(0);
        }
    });
    assert!(matches!(fault.unwrap_err().kind, FaultKind::SharedRace { .. }));
}
