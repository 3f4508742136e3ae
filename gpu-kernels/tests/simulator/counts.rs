//! What the papers say of their kernels, counted: conflicts of banks, divergence, work, coalescing. And what this library says
//! of its own. Numbers expected are worked out from the papers' descriptions, not from the kernels.

use std::ptr;

use warpfold_gpu_kernels::{
    device::{Part, ReduceParams},
    ladder::{
        pass::PassParams,
        patel,
        scan::{self, LadderParams, PADDED, SWEEP_THREADS, TILE},
        transpose::{self, TransposeParams},
    },
    scan::{Room, Rows, ScanParams, forward, stage_words, sums, vectors},
    segments::{
        THREADS,
        columns::{self, ColumnParams},
        rows::{self, RowParams},
        tile::{TILE_WORDS, Word},
        wide,
    },
};
use warpfold_monoid::{GivesIdentity, Monoid, Plain, Sum, scan::Tiling, tree::Shape};
use warpfold_simt::{
    global, shared,
    sim::{self, Buffer, Counts, GlobalCounts, Launch, Options, Schedule, SharedCounts},
    thread::thread_idx_x,
};

/// A sum of 4-byte integers whose combinations count.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Counted;

// SAFETY: no bytes.
unsafe impl Plain for Counted {}

impl Monoid for Counted {
    type Item = u32;
    type Acc = u32;
    type Output = u32;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;

    fn identity(&self) -> u32 {
        0
    }

    fn lift(&self, item: u32, _: u64) -> u32 {
        item
    }

    fn combine(&self, left: u32, right: u32) -> u32 {
        sim::count_combine();
        left.wrapping_add(right)
    }

    fn finish(&self, acc: u32) -> u32 {
        acc
    }
}

fn numbers(n: usize) -> Vec<u32> {
    (0..n as u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect()
}

/// What a kernel counts that runs with these parameters, over these buffers.
fn counted<P>(
    blocks: u32,
    threads: u32,
    params: &P,
    buffers: Vec<Buffer>,
    kernel: impl Fn(&P) + Sync,
) -> Counts {
    let options = Options { schedule: Schedule::Seeded(5), buffers, ..Options::default() }.counted();
    let address = ptr::from_ref(params).expose_provenance();
    let done = sim::launch(&Launch::new("counted", blocks, threads), &options, || {
        // SAFETY: parameters that outlive the launch.
        kernel(unsafe { &*ptr::with_exposed_provenance::<P>(address) });
    });
    done.unwrap_or_else(|fault| panic!("{fault}")).counts.expect("counts")
}

/// A scan of this many tiles, each for itself, checked.
fn tiles(tiles: usize, threads: u32, kernel: impl Fn(&LadderParams<Counted>) + Sync) -> Counts {
    let items = numbers(tiles * TILE);
    let (mut found, mut totals) = (vec![0; items.len()], vec![0; tiles]);
    let mut params = LadderParams {
        items: items.as_ptr(),
        values: ptr::null(),
        output: found.as_mut_ptr(),
        totals: ptr::null_mut(),
        befores: ptr::null(),
        n: items.len() as u64,
        op: Counted,
    };
    if tiles > 1 {
        params.totals = totals.as_mut_ptr();
    }
    let buffers = vec![
        Buffer::read_only("items", &items),
        Buffer::writable("output", &mut found),
        Buffer::writable("totals", &mut totals),
    ];
    let counts = counted(tiles as u32, threads, &params, buffers, kernel);
    assert!(items.chunks(TILE).flat_map(running).eq(found));
    counts
}

/// Every prefix's sum.
fn running(items: &[u32]) -> Vec<u32> {
    items
        .iter()
        .scan(0_u32, |sum, item| {
            *sum = sum.wrapping_add(*item);
            Some(*sum)
        })
        .collect()
}

/// `shared!` has a name of its own that is [`TILE`].
const ITEMS: usize = TILE;

fn blelloch(of: usize) -> Counts {
    // SAFETY: a block of the threads asked for a tile, shared memory as long as one.
    tiles(of, SWEEP_THREADS, |params| unsafe { scan::blelloch(params, shared!([u32; ITEMS])) })
}

fn blelloch_padded(of: usize) -> Counts {
    // SAFETY: as above.
    tiles(of, SWEEP_THREADS, |params| unsafe { scan::blelloch_padded(params, shared!([u32; PADDED])) })
}

/// What Nsight Compute read from the counters of an H200 for the same launch (`benches/record/h200/2026-11-28-ladder-counts.csv`):
/// two tiles, each of which leaves its value.
#[test]
fn a_card_counts_the_same() {
    let of = |counts: Counts| {
        let (reads, writes) = (counts.shared_reads, counts.shared_writes);
        let (loads, stores) = (counts.loads, counts.stores);
        [
            [reads.conflicts(), writes.conflicts(), reads.wavefronts, writes.wavefronts],
            [loads.accesses, stores.accesses, loads.sectors, stores.sectors],
        ]
    };
    assert_eq!(of(blelloch(2)), [[600, 450, 792, 604], [32, 34, 128, 130]]);
    assert_eq!(of(blelloch_padded(2)), [[0, 0, 192, 154], [32, 34, 128, 130]]);
}

/// The papers' claim: nodes `2 d` words apart meet in as many banks fewer, until all threads of a step meet in one; a place
/// left out after every 32 words parts them.
#[test]
fn padding_frees_the_tree_of_conflicts() {
    let mut conflicts = 0;
    for step in 0..TILE.ilog2() {
        let (distance, nodes) = (1_u64 << step, TILE as u64 >> (step + 1));
        let (lanes, warps) = (nodes.min(32), nodes.div_ceil(32));
        let banks = (32 / (2 * distance).min(32)).max(1);
        // Up: both children are read, one is written. Down: both are read and written.
        conflicts += (3 + 4) * warps * (lanes.div_ceil(banks) - 1);
    }
    let (plain, padded) = (blelloch(1).shared(), blelloch_padded(1).shared());
    assert_eq!((plain.conflicts(), plain.max_degree()), (conflicts, 16));
    assert_eq!((padded.conflicts(), padded.max_degree()), (0, 1));
    assert_eq!((plain.accesses, plain.lanes), (padded.accesses, padded.lanes), "the same work");
}

/// Hillis and Steele combine in each round all but those that stand before the distance; Blelloch each node twice, and here
/// once more for each item, so that results include it.
#[test]
fn one_scan_does_n_log_n_combinations_and_the_other_two_n() {
    // SAFETY: a block of the threads asked for, parameters of a tile, shared memory as long.
    let flat = tiles(1, TILE as u32, |params| unsafe {
        scan::hillis_steele(params, shared!([u32; 2 * ITEMS]));
    });
    let (n, rounds) = (TILE as u64, u64::from(TILE.ilog2()));
    assert_eq!(flat.combines.lanes, n * rounds - (n - 1));
    assert_eq!(flat.barriers, 1 + rounds);
    for tree in [blelloch(1), blelloch_padded(1)] {
        assert_eq!(tree.combines.lanes, 2 * (n - 1) + n);
        assert_eq!(tree.barriers, 2 * rounds + 2);
    }
}

const MOST: usize = patel::MAX_THREADS;

/// The first launch of a version over `blocks` tiles of `per` items for each of 1024 threads, checked.
fn reduced(blocks: usize, per: usize, kernel: impl Fn(&PassParams<Counted>) + Sync) -> Counts {
    let items = numbers(blocks * per * MOST);
    let mut results = vec![0; blocks];
    let buffers = vec![Buffer::read_only("items", &items), Buffer::writable("results", &mut results)];
    let params = PassParams {
        items: items.as_ptr(),
        values: ptr::null(),
        results: results.as_mut_ptr(),
        n: items.len() as u64,
        op: Counted,
    };
    let counts = counted(blocks as u32, MOST as u32, &params, buffers, kernel);
    let sum = |items: &[u32]| items.iter().fold(0, |sum: u32, item| sum.wrapping_add(*item));
    assert!(items.chunks(per * MOST).map(sum).eq(results));
    assert_eq!(counts.loads.sectors, counts.loads.ideal_sectors);
    counts
}

/// A version of one item a thread, by one block.
macro_rules! version {
    ($version:ident) => {
        // SAFETY: a block of the threads asked for, a slot each.
        reduced(1, 1, |params| unsafe { patel::$version::<_, false>(params, shared!([u32; MOST])) })
    };
}

/// Harris's and Patel's steps: threads found by modulo diverge in every round, in each warp that has work; the same places by
/// the first threads diverge only where these are fewer than a warp, but meet in the banks; halves on halves do neither.
#[test]
fn each_of_the_trees_in_shared_memory_mends_one_thing() {
    let rounds = MOST.ilog2();
    let (modulo, strided, halves) = (version!(version1), version!(version2), version!(version3));
    let working = |round: u32| if round < 5 { MOST as u64 / 32 } else { MOST as u64 >> (round + 1) };
    // One thread writes the result: that divides the first warp once more.
    let (every, below_a_warp) = ((0..rounds).map(working).sum::<u64>() + 1, 5 + 1);
    assert_eq!([modulo, strided, halves].map(|counts| counts.divergent), [every, below_a_warp, below_a_warp]);
    assert_eq!([modulo, strided, halves].map(|counts| counts.combines.lanes), [MOST as u64 - 1; 3]);
    assert_eq!([modulo, strided, halves].map(|counts| counts.barriers), [1 + u64::from(rounds); 3]);
    // Two lanes of a warp and more are at work for as long as there are so many: full warps leave none idle.
    assert!(modulo.combines.lanes_a_call() < strided.combines.lanes_a_call() / 3.0);
    assert_eq!(strided.combines, halves.combines);
    // Slots 32 apart: a warp's 32 lanes in one bank, twice to read and once to write.
    assert_eq!(strided.shared().max_degree(), 32);
    assert_eq!(strided.shared().by_degree[31], 3);
    assert_eq!([modulo, halves].map(|counts| counts.shared().conflicts()), [0, 0]);
}

/// Half of the threads never combine anything once the tree begins, unless all of them do so while they load: of as many
/// items, half as many thread-rounds are idle.
#[test]
fn the_first_addition_while_loading_halves_the_idle_threads() {
    // SAFETY: blocks of the threads asked for, a slot each.
    let before = reduced(2, 1, |params| unsafe {
        patel::version3::<_, false>(params, shared!([u32; MOST]));
    });
    // SAFETY: as above.
    let after = reduced(1, 2, |params| unsafe {
        patel::version4::<_, false>(params, shared!([u32; MOST]));
    });
    // The first barrier of a block is behind the loads.
    let idle = |counts: &Counts, rounds: u64| rounds * MOST as u64 - counts.combines.lanes;
    let (idle_before, idle_after) =
        (idle(&before, before.barriers - 2), idle(&after, after.barriers - 1 + 1));
    assert_eq!(idle_after * 2, idle_before);
}

fn ideal(counts: &GlobalCounts) -> bool {
    (counts.sectors, counts.lines) == (counts.ideal_sectors, counts.ideal_lines)
}

fn without_conflicts(counts: &SharedCounts) -> bool {
    counts.accesses > 0 && counts.conflicts() == 0
}

/// The thesis's loop in a map: a thread that walks its own row is far from its neighbour; transposed, they are side by side.
#[test]
fn rows_a_thread_each_are_coalesced_once_transposed() {
    const SIDE: usize = 32;
    let items = numbers(SIDE * SIDE);
    let fold = |thread_stride: usize, stride: usize| {
        let buffers = vec![Buffer::read_only("items", &items)];
        let params = items.as_ptr();
        let counts = counted(1, SIDE as u32, &params, buffers, |items| {
            let first = items.wrapping_add(thread_idx_x() as usize * thread_stride);
            for i in 0..SIDE {
                // SAFETY: below the number of items.
                unsafe { global::load(first.wrapping_add(i * stride)) };
            }
        });
        counts.loads
    };
    let (as_is, transposed) = (fold(SIDE, 1), fold(1, SIDE));
    assert_eq!((as_is.accesses, transposed.accesses), (32, 32));
    assert_eq!((as_is.sectors, transposed.sectors), (32 * 32, 32 * 4));
    assert_eq!((as_is.lines, transposed.lines), (32 * 32, 32));
    assert!(!ideal(&as_is) && ideal(&transposed));
}

const SLOTS: [usize; 2] = [transpose::slots(16), transpose::slots(32)];

/// Transposes of 64 by 96, checked.
fn transposed(blocks: u32, kernel: impl Fn(&TransposeParams<u32>) + Sync) -> Counts {
    let (height, width) = (64, 96);
    let items = numbers(height * width);
    let mut output = vec![0; items.len()];
    let buffers = vec![Buffer::read_only("items", &items), Buffer::writable("output", &mut output)];
    let params = TransposeParams {
        input: items.as_ptr(),
        output: output.as_mut_ptr(),
        height: height as u64,
        width: width as u64,
    };
    let counts = counted(blocks, 256, &params, buffers, kernel);
    let bytes = 4 * items.len() as u64;
    assert_eq!((counts.loads.bytes, counts.stores.bytes), (bytes, bytes));
    assert!((0..items.len()).all(|i| output[i] == items[i % height * width + i / height]));
    counts
}

/// A transpose reads and writes in order of addresses, and turns tiles in shared memory, whose rows are one longer than they
/// need be: without that place, a warp reads a column from one bank. Of tiles of 16 a warp takes two rows at a time: whole
/// sectors, but halves of lines, and two of its lanes meet in one bank.
#[test]
fn transposes_are_coalesced_on_both_sides() {
    // SAFETY: a block for each of six tiles, eight rows of threads, the slots asked for.
    let counts = transposed(6, |params| unsafe {
        transpose::tiles::<u32, 32, 8>(params, shared!([u32; SLOTS[1]]));
    });
    assert!(ideal(&counts.loads) && ideal(&counts.stores), "{:?} {:?}", counts.loads, counts.stores);
    assert!(without_conflicts(&counts.shared()), "{:?}", counts.shared());
    // SAFETY: a block for each of 24 tiles, a thread an element, the slots asked for.
    let counts = transposed(24, |params| unsafe {
        transpose::tiles::<u32, 16, 16>(params, shared!([u32; SLOTS[0]]));
    });
    for side in [counts.loads, counts.stores] {
        assert_eq!((side.sectors, side.lines), (side.ideal_sectors, 2 * side.ideal_lines));
    }
    assert_eq!(counts.shared().by_degree[1], counts.shared().accesses);
}

/// Rows through a tile in shared memory: loads are wide and coalesced, whatever the length. Those of odd lengths meet in no
/// bank either.
#[test]
fn rows_through_a_tile_are_coalesced() {
    for n in [5, 7, 9, 13] {
        let m = 2 * THREADS as usize;
        let (items, mut output) = (numbers(n * m), vec![0; m]);
        let buffers = vec![Buffer::read_only("items", &items), Buffer::writable("output", &mut output)];
        let params = row_params(&items, &mut output, n, 1);
        // SAFETY: two blocks of the threads asked for, a row each; the rows fit a tile, the tile the words.
        let counts = counted(2, THREADS, &params, buffers, |params| unsafe {
            rows::thread::<_, 4>(params, shared!([Word; TILE_WORDS]));
        });
        assert!(ideal(&counts.loads) && ideal(&counts.stores), "{n}: {:?}", counts.loads);
        // All but what fills no vector.
        assert!(counts.loads.accesses as usize <= n * m / 128 + 2, "{n}: {:?}", counts.loads);
        assert_eq!(counts.loads.bytes as usize, 4 * n * m);
        assert!(without_conflicts(&counts.shared()), "{n}: {:?}", counts.shared());
        assert_eq!(counts.combines.lanes as usize, (n - 1) * m);
        assert!(items.chunks(n).map(|row| row.iter().fold(0, |s: u32, i| s.wrapping_add(*i))).eq(output));
    }
}

fn row_params(items: &[u32], output: &mut [u32], n: usize, groups: u32) -> RowParams<Counted> {
    RowParams {
        input: items.as_ptr(),
        stride: n as i64,
        m: output.len() as u64,
        n: n as u64,
        output: output.as_mut_ptr(),
        partials: ptr::null_mut(),
        tickets: ptr::null_mut(),
        chunk: Shape::new(n as u64, 4).chunk,
        chunks: 1,
        groups,
        rows: THREADS / groups,
        chunks_a_block: 1,
        op: Counted,
    }
}

/// Rows a warp each, from global memory: neighbouring lanes load neighbouring vectors.
#[test]
fn rows_a_warp_each_are_coalesced() {
    let (n, m) = (512, THREADS as usize / 32);
    assert_eq!(Shape::new(n as u64, 4).groups, 32);
    let (items, mut output) = (numbers(n * m), vec![0; m]);
    let buffers = vec![Buffer::read_only("items", &items), Buffer::writable("output", &mut output)];
    let params = row_params(&items, &mut output, n, 32);
    // SAFETY: a block of the threads asked for, a warp a row.
    let counts = counted(1, THREADS, &params, buffers, |params| unsafe { rows::warp::<_, 4, 4>(params) });
    assert!(ideal(&counts.loads), "{:?}", counts.loads);
    assert_eq!(counts.loads.bytes as usize, 4 * n * m);
    assert_eq!(counts.shared(), SharedCounts::default());
    // Each combination of warps' lanes is one shuffle.
    assert_eq!(counts.shuffles as usize, 5 * m);
    assert!(items.chunks(n).map(|row| row.iter().fold(0, |s: u32, i| s.wrapping_add(*i))).eq(output));
}

/// Columns: nothing is transposed, and yet loads are coalesced. Threads that share columns meet in no bank.
#[test]
fn columns_are_coalesced_as_they_lie() {
    let (n, inner) = (64_usize, 64_usize);
    let items = numbers(n * inner);
    let shape = Shape::new(n as u64, 4);
    let parts = shape.groups;
    let mut output = vec![0; inner];
    let buffers = vec![Buffer::read_only("items", &items), Buffer::writable("output", &mut output)];
    let params = ColumnParams {
        input: items.as_ptr(),
        stride: inner as i64,
        outer_stride: 0,
        outer: 1,
        inner: inner as u64,
        n: n as u64,
        output: output.as_mut_ptr(),
        partials: ptr::null_mut(),
        tickets: ptr::null_mut(),
        chunk: shape.chunk,
        chunks: shape.chunks as u32,
        groups: shape.groups,
        width: 32,
        parts,
        splits: 1,
        padding: 0,
        tiles: inner.div_ceil(32) as u64,
        op: Counted,
    };
    // SAFETY: a block a tile, `width * parts` threads, a slot each.
    let counts = counted(2, 32 * parts, &params, buffers, |params| unsafe {
        columns::columns::<_, 4>(params, shared!([u32; wide::slots::<Counted>(1)]), shared!([u32; 1]));
    });
    assert!(ideal(&counts.loads) && ideal(&counts.stores), "{parts}: {:?}", counts.loads);
    assert_eq!(counts.loads.bytes as usize, 4 * n * inner);
    assert_eq!(counts.shared().conflicts(), 0, "{parts}: {:?}", counts.shared());
    assert_eq!(counts.combines.lanes as usize, (n - 1) * inner);
    let sum = |c: usize| (0..n).fold(0, |sum: u32, i| sum.wrapping_add(items[i * inner + c]));
    assert!((0..inner).map(sum).eq(output));
}

/// Columns by vectors, of a last chunk whose groups leave the counter's digits full, part full and empty: each value is combined
/// once, and nothing else is.
#[test]
fn columns_of_every_number_of_rounds() {
    let (chunk, groups, inner) = (4096_u64, 256_u32, 128_usize);
    for rounds in [1, 3, 4, 5, 7, 8, 13, 16, 17, 20, 21, 29, 31, 32] {
        // Eight groups of four rows a round, the last of three.
        let n = chunk as usize + rounds * 32 - 1;
        let items = numbers(n * inner);
        let mut output = vec![0; inner];
        let (mut partials, mut tickets) = (vec![0; 4 * inner], vec![0; wide::tickets(2) as usize]);
        assert_eq!(2 + wide::lane_values(2), 4);
        let params = ColumnParams {
            input: items.as_ptr(),
            stride: inner as i64,
            outer_stride: 0,
            outer: 1,
            inner: inner as u64,
            n: n as u64,
            output: output.as_mut_ptr(),
            partials: partials.as_mut_ptr(),
            tickets: tickets.as_mut_ptr(),
            chunk,
            chunks: 2,
            groups,
            width: 128,
            parts: 8,
            splits: 1,
            padding: 0,
            tiles: 1,
            op: Counted,
        };
        let buffers = vec![
            Buffer::read_only("items", &items),
            Buffer::writable("output", &mut output),
            Buffer::writable("partials", &mut partials),
            Buffer::writable("tickets", &mut tickets),
        ];
        // SAFETY: a block a chunk, of 32 vectors by 8 groups.
        let counts = counted(2, 256, &params, buffers, |params| unsafe {
            const SLOTS: usize = wide::slots_of::<Counted>();
            wide::wide::<_, 4, { wide::abreast_of::<Counted>() }>(
                params,
                shared!([u32; SLOTS]),
                shared!([u32; 1]),
            );
        });
        let sum = |c: usize| (0..n).fold(0, |sum: u32, i| sum.wrapping_add(items[i * inner + c]));
        assert!((0..inner).map(sum).eq(output), "{rounds} rounds");
        assert_eq!(counts.combines.lanes as usize, (n - 1) * inner, "{rounds} rounds");
        assert!(tickets.iter().all(|&ticket| ticket == 0), "{rounds} rounds");
    }
}

const STAGE: usize = stage_words::<Counted>();
const SUMS: usize = sums::<Counted>();
const STRIP: usize = vectors::<Counted>(4);

/// Scans: items and results come and go in whole vectors, and strips in shared memory lie so that the lanes of a warp find
/// theirs in different banks.
#[test]
fn a_scan_s_strips_are_coalesced_and_meet_in_no_bank() {
    let tiling = const { Tiling::of::<Counted>() };
    let items = numbers(tiling.tile() as usize);
    let mut output = vec![0; items.len()];
    let buffers = vec![Buffer::read_only("items", &items), Buffer::writable("output", &mut output)];
    let params = ScanParams {
        input: items.as_ptr(),
        output: output.as_mut_ptr(),
        n: tiling.tile(),
        rows: Rows { stride: 1, inner_stride: 1, outer_stride: 0, inner: 1 },
        counter: ptr::null_mut(),
        records: ptr::null_mut(),
        capacity: 0,
        tiles: 1,
        total: 1,
        exclusive: 0,
        has_initial: 0,
        initial: 0,
        op: Counted,
    };
    let counts = counted(1, tiling.threads, &params, buffers, |params| {
        let (stage, sums, drawn) = (shared!([Word; STAGE]), shared!([u32; SUMS]), shared!([u64; 1]));
        // SAFETY: a block of the threads asked for, a row of one tile, room as large as that.
        unsafe { forward::<_, 4, STRIP, 4, STRIP>(params, Room { stage, sums, drawn }) }
    });
    assert!(ideal(&counts.loads) && ideal(&counts.stores), "{:?} {:?}", counts.loads, counts.stores);
    // 16 bytes a lane.
    assert_eq!(counts.loads.accesses, tiling.tile() / 128);
    assert_eq!(counts.stores.accesses, tiling.tile() / 128);
    assert!(without_conflicts(&counts.shared()), "{:?}", counts.shared());
    assert_eq!(counts.barriers, 2);
    assert!(output == running(&items));
}

/// Whole arrays, by the kernel of one block: vectors side by side.
#[test]
fn one_array_is_loaded_in_vectors_side_by_side() {
    let items: Vec<f32> = (0..1 << 14).map(|i| i as f32).collect();
    let shape = Shape::new(items.len() as u64, 4);
    let (mut output, op) = ([0_f32], Sum::<f32>::default());
    let blocks = shape.chunks as u32;
    let mut partials = vec![op.identity(); blocks as usize];
    let mut ticket = [0_u32];
    let buffers = vec![
        Buffer::read_only("items", &items),
        Buffer::writable("output", &mut output),
        Buffer::writable("partials", &mut partials),
        Buffer::writable("ticket", &mut ticket),
    ];
    let params = ReduceParams {
        input: items.as_ptr(),
        n: shape.n,
        output: output.as_mut_ptr(),
        partials: partials.as_mut_ptr(),
        ticket: ticket.as_mut_ptr(),
        chunk: shape.chunk,
        chunks: blocks,
        groups: shape.groups,
        part: Part::WHOLE,
        op,
    };
    let kernel = match shape.groups {
        _ if blocks == 1 => "reduce_one",
        warpfold_monoid::tree::SHORT_GROUPS => "reduce_short",
        _ => "reduce_long",
    };
    let export = super::TABLE.find::<Sum<f32>>().expect("an exported operator");
    let entry = export.entries.iter().find(|entry| entry.kernel == kernel).expect("a kernel");
    let counts = counted(blocks, shape.groups.max(32), &params, buffers, |params| {
        // SAFETY: that kernel's parameters and shape.
        unsafe { (entry.simulate)(ptr::from_ref(params).cast()) }
    });
    let of_items = 4 * items.len() as u64;
    assert!(counts.loads.bytes >= of_items);
    // What else is loaded are a value for each block, and there are few.
    assert!(counts.loads.sectors - of_items / 32 <= 2 * u64::from(blocks), "{kernel}: {:?}", counts.loads);
    assert_eq!(counts.atomics.accesses, if blocks > 1 { u64::from(blocks) } else { 0 });
    assert_eq!(counts.shared().conflicts(), 0);
}
