//! Each counter on a kernel so small that one can count by hand. Every schedule must count the same.

// The kernels are of one shape each, with arrays as long as they ask for, and barriers where threads exchange something. Some
// branches do the same at different places, on purpose.
#![allow(clippy::undocumented_unsafe_blocks, clippy::if_same_then_else)]

use warpfold_simt::atomic::{self, Gpu, Relaxed};
use warpfold_simt::global::{self, hint::Plainly};
use warpfold_simt::sim::{self, Buffer, Counts, Launch, Options};
use warpfold_simt::warp::{self, FULL, WarpReductionOp};
use warpfold_simt::{shared, thread};

use crate::common::{Ptr, schedules};

/// What a kernel counts, in two blocks, under every schedule.
fn counted(block: u32, buffers: &[Buffer], kernel: impl Fn() + Sync) -> Counts {
    let mut all = schedules().map(|schedule| {
        let options = Options { schedule, buffers: buffers.to_vec(), count: true, ..Options::default() };
        let report = sim::launch(&Launch::new("counted", 2, block), &options, &kernel);
        report.unwrap_or_else(|fault| panic!("{fault}")).counts.expect("counts")
    });
    let first = all.next().expect("a schedule");
    all.for_each(|other| assert_eq!(other, first));
    first
}

fn lane() -> usize {
    thread::thread_idx_x() as usize
}

#[test]
fn nothing_is_counted_unless_asked_for() {
    let report = sim::launch(&Launch::new("kernel", 1, 32), &Options::default(), thread::sync_threads);
    assert_eq!(report.expect("no fault").counts, None);
}

#[test]
fn words_at_a_stride_conflict_by_its_power_of_two() {
    for (stride, degree) in
        [(1, 1), (2, 2), (3, 1), (4, 4), (6, 2), (8, 8), (16, 16), (31, 1), (32, 32), (33, 1)]
    {
        let counts = counted(32, &[], || {
            let tile = shared!([u32; 33 * 32]);
            unsafe { tile.write(stride * lane(), 1) };
        });
        let writes = counts.shared_writes;
        assert_eq!((writes.accesses, writes.lanes, writes.parts), (2, 64, 2));
        assert_eq!(
            (writes.wavefronts, writes.conflicts()),
            (2 * degree, 2 * (degree - 1)),
            "stride {stride}"
        );
        assert_eq!(writes.max_degree() as u64, degree, "stride {stride}");
        assert_eq!(writes.by_degree[degree as usize - 1], 2);
        assert_eq!(counts.shared_reads, Default::default());
        assert_eq!(counts.shared(), writes);
    }
}

#[test]
fn lanes_that_read_one_word_share_it() {
    let counts = counted(32, &[], || {
        let tile = shared!([u32; 64]);
        let bytes = unsafe { tile.cast::<u8>() };
        unsafe {
            tile.write(lane(), 1);
            tile.write(lane() + 32, 1);
            thread::sync_threads();
            // One word; two words of one bank; four lanes a word.
            tile.read(5);
            tile.read(32 * (lane() % 2));
            bytes.read(lane());
        }
    });
    let reads = counts.shared_reads;
    assert_eq!((reads.accesses, reads.parts, reads.wavefronts), (6, 6, 8));
    assert_eq!(reads.by_degree[..3], [4, 2, 0]);
}

#[test]
fn wide_accesses_are_made_in_parts() {
    let counts = counted(32, &[], || {
        let (two, four) = (shared!([u64; 64]), shared!([u128; 64]));
        unsafe {
            two.write(lane(), 1);
            four.write(lane(), 1);
            thread::sync_threads();
            two.write(2 * lane(), 1);
            four.write(2 * lane(), 1);
        }
    });
    let writes = counts.shared_writes;
    // Halves and quarters, each of which all banks serve at once; at twice the distance half of the banks do.
    assert_eq!((writes.accesses, writes.parts), (8, 2 * (2 + 2 + 4 + 4)));
    assert_eq!(writes.by_degree[..3], [12, 12, 0]);
}

#[test]
fn what_is_not_aligned_to_its_size_is_several_accesses() {
    let mut data = vec![[0_u32; 3]; 64];
    let out = Ptr::of(&mut data);
    let counts = counted(32, &[Buffer::writable("data", &mut data)], || {
        let tile = shared!([[u32; 2]; 32]);
        unsafe {
            tile.write(lane(), [1, 2]);
            global::store(out.at(lane()), [1, 2, 3]);
        }
    });
    let writes = counts.shared_writes;
    assert_eq!((writes.accesses, writes.by_degree[1]), (4, 4), "two words each, two apart");
    let stores = counts.stores;
    assert_eq!((stores.accesses, stores.lanes, stores.bytes), (6, 192, 768));
    // 32 words, 12 bytes apart: 384 bytes.
    assert_eq!((stores.sectors, stores.ideal_sectors), (6 * 12, 6 * 4));
    assert_eq!((stores.lines, stores.ideal_lines), (6 * 3, 6));
}

#[test]
fn sectors_and_lines_of_loads() {
    let mut data = vec![0_f32; 4096];
    let from = Ptr::of(&mut data);
    let buffers = [Buffer::read_only("data", &data)];
    let of = |place: fn(usize) -> usize| {
        let loads = counted(32, &buffers, || unsafe {
            global::load(from.at(place(lane())).cast_const());
        })
        .loads;
        assert_eq!((loads.accesses, loads.lanes), (2, 64));
        [loads.bytes, loads.sectors, loads.ideal_sectors, loads.lines, loads.ideal_lines]
            .map(|count| count / 2)
    };
    assert_eq!(of(|lane| lane), [128, 4, 4, 1, 1]);
    assert_eq!(of(|lane| 31 - lane), [128, 4, 4, 1, 1]);
    assert_eq!(of(|lane| lane + 1), [128, 5, 4, 2, 1]);
    assert_eq!(of(|lane| lane + 8), [128, 4, 4, 2, 1]);
    assert_eq!(of(|lane| 2 * lane), [128, 8, 4, 2, 1]);
    assert_eq!(of(|lane| 32 * lane), [128, 32, 4, 32, 1]);
    assert_eq!(of(|_| 7), [4, 1, 1, 1, 1]);
    let vectors = counted(32, &buffers, || unsafe {
        global::load_vector::<f32, 4>(from.at(4 * lane()).cast_const());
    })
    .loads;
    assert_eq!((vectors.accesses, vectors.bytes, vectors.sectors, vectors.lines), (2, 1024, 32, 8));
    assert_eq!((vectors.ideal_sectors, vectors.ideal_lines), (32, 8));
}

#[test]
fn a_predicate_that_is_false_loads_nothing_and_does_not_diverge() {
    let mut data = vec![0_u32; 32];
    let from = Ptr::of(&mut data);
    let buffers = [Buffer::read_only("data", &data)];
    let counts = counted(32, &buffers, || unsafe {
        global::load_if::<Plainly, u32>(lane() < 8, from.at(lane()).cast_const());
        global::load_if::<Plainly, u32>(false, from.at(lane()).cast_const());
    });
    assert_eq!((counts.loads.accesses, counts.loads.lanes, counts.loads.sectors), (2, 16, 2));
    assert_eq!((counts.intervals, counts.divergent), (2, 0));
}

#[test]
fn atomics_are_counted_apart_from_stores() {
    let mut data = vec![0_u32; 32];
    let to = Ptr::of(&mut data);
    let counts = counted(64, &[Buffer::writable("data", &mut data)], || unsafe {
        if lane().is_multiple_of(32) {
            atomic::fetch_add(to.at(0), 1, Relaxed, Gpu);
        }
        // A lane that has gone the longer way meets the others here.
        global::store_relaxed_gpu(to.at(lane() % 32), 1);
    });
    assert_eq!((counts.atomics.accesses, counts.atomics.lanes, counts.atomics.sectors), (4, 4, 4));
    assert_eq!((counts.stores.accesses, counts.stores.lanes, counts.stores.sectors), (4, 128, 16));
    assert_eq!(counts.loads, Default::default());
    assert_eq!((counts.intervals, counts.divergent), (4, 4));
}

#[test]
fn barriers_and_functions_of_the_warp() {
    let counts = counted(64, &[], || unsafe {
        thread::sync_threads();
        thread::sync_threads_count(1);
        warp::sync_warp(FULL);
        warp::shuffle_down(FULL, 1_u32, 1);
        warp::shuffle_xor(FULL, [1_u32; 3], 1);
        warp::shuffle_up(FULL, 1_u8, 1);
        warp::warp_vote_any(FULL, true);
        warp::warp_vote_ballot(FULL, true);
        warp::warp_match_any(FULL, 1_u64);
        warp::warp_reduce(FULL, 1_u32, WarpReductionOp::Add);
    });
    // Two blocks of two warps.
    assert_eq!((counts.barriers, counts.warp_syncs), (4, 4));
    assert_eq!((counts.shuffles, counts.shuffle_words), (12, 20));
    assert_eq!((counts.votes, counts.matches, counts.reductions), (8, 4, 4));
    assert_eq!((counts.calls.warps, counts.calls.lanes), (40, 40 * 32));
    assert_eq!((counts.intervals, counts.divergent), (40, 0));
}

#[test]
fn lanes_that_go_different_ways_diverge() {
    let of = |kernel: fn(usize)| {
        // The second warp has 16 lanes.
        let counts = counted(48, &[], || kernel(lane()));
        (counts.intervals, counts.divergent)
    };
    assert_eq!(of(|_| ()), (0, 0));
    assert_eq!(of(|_| sim::count_combine()), (4, 0));
    // A branch that divides the first warp, one that divides none.
    assert_eq!(
        of(|lane| if lane < 16 {
            sim::count_combine()
        }),
        (2, 2)
    );
    assert_eq!(
        of(|lane| if lane < 32 {
            sim::count_combine()
        }),
        (2, 0)
    );
    // Different places, each with its lanes.
    assert_eq!(of(|lane| if lane % 2 == 0 { sim::count_combine() } else { sim::count_combine() }), (4, 4));
    // Different numbers of rounds.
    assert_eq!(of(|lane| (0..lane / 32).for_each(|_| sim::count_combine())), (2, 0));
    assert_eq!(of(|lane| (0..lane / 8).for_each(|_| sim::count_combine())), (4, 4));
    // Lanes that have returned do not count; those that wait do.
    let counts = counted(32, &[], || {
        if lane() >= 16 {
            return;
        }
        unsafe { warp::sync_warp(0xffff) };
        sim::count_combine();
    });
    assert_eq!((counts.intervals, counts.divergent), (4, 2));
    let counts = counted(32, &[], || {
        if lane() < 16 {
            unsafe { warp::sync_warp(0xffff) };
        }
        thread::sync_threads();
    });
    assert_eq!((counts.intervals, counts.divergent), (4, 4));
    // Halves of a warp that do the same at the same time.
    let counts = counted(32, &[], || {
        let mask = if lane() < 16 { 0xffff } else { 0xffff_0000 };
        unsafe { warp::sync_warp(mask) };
        sim::count_combine();
    });
    assert_eq!((counts.warp_syncs, counts.intervals, counts.divergent), (4, 4, 0));
    assert_eq!((counts.combines.warps, counts.combines.lanes), (2, 64));
}

#[test]
fn rounds_of_a_loop_are_calls_of_their_own() {
    let counts = counted(32, &[], || {
        let tile = shared!([u32; 32 * 32]);
        // The lanes' k-th accesses are 32 words apart, though one lane makes all its own before the next begins.
        for k in 0..8 {
            unsafe { tile.write(32 * lane() + k, 1) };
        }
        for _ in 0..=lane() % 4 {
            sim::count_combine();
        }
    });
    assert_eq!(counts.shared_writes.accesses, 16);
    assert_eq!(counts.shared_writes.by_degree[31], 16);
    assert_eq!((counts.combines.warps, counts.combines.lanes), (8, 2 * 8 * (1 + 2 + 3 + 4)));
    assert!((counts.combines.lanes_a_call() - 20.0).abs() < 1e-9);
}

#[test]
fn combinations_outside_of_launches_do_not_count() {
    sim::count_combine();
    let counts = counted(32, &[], sim::count_combine);
    assert_eq!((counts.combines.warps, counts.combines.lanes), (2, 64));
    assert_eq!(counts.combines, counts.calls);
}
