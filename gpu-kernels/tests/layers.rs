//! The warp and block layers as a kernel of one's own calls them, in the simulator: blocks of any size, partial warps,
//! partial tiles. The oracle is a plain fold from left to right; operators are those that show an operand out of place,
//! one combined twice, or one that is not there.

use std::cell::Cell;

use warpfold_gpu_kernels::block;
use warpfold_gpu_kernels::warp::{self, Present};
use warpfold_monoid::{GivesIdentity, Monoid, Plain, tree};
use warpfold_simt::shared::Shared;
use warpfold_simt::sim::{self, Buffer, FaultKind, Launch, Options, Schedule};
use warpfold_simt::{global, shared, thread, warp as lanes};

/// Around every boundary of warps and blocks.
const SIZES: [u32; 18] = [1, 2, 31, 32, 33, 63, 64, 65, 96, 100, 127, 128, 129, 500, 512, 1000, 1023, 1024];

const SCHEDULES: [Schedule; 3] =
    [Schedule::Sequential, Schedule::Seeded(3), Schedule::Concurrent { seed: 4 }];

/// An operator whose accumulators these tests make by themselves.
trait Tested: Monoid<Acc: PartialEq + std::fmt::Debug> + Default {
    /// The value of thread `i`.
    fn value(i: u32) -> Self::Acc;
}

/// The parts of a [`Monoid`] that no layer looks at.
macro_rules! not_lifted {
    ($acc:ty) => {
        type Item = $acc;
        type Acc = $acc;
        type Output = $acc;
        type Empty = GivesIdentity;
        const COMMUTATIVE: bool = false;

        fn lift(&self, item: $acc, _: u64) -> $acc {
            item
        }

        fn finish(&self, acc: $acc) -> $acc {
            acc
        }
    };
}

/// Composition of `x -> a * x + b` modulo 2^32, the first innermost.
#[derive(Clone, Copy, Debug, Default, Plain)]
#[repr(C)]
struct Compose;

#[derive(Clone, Copy, Debug, PartialEq, Plain)]
#[repr(C)]
struct Affine {
    a: u32,
    b: u32,
}

impl Monoid for Compose {
    not_lifted!(Affine);

    fn identity(&self) -> Affine {
        Affine { a: 1, b: 0 }
    }

    fn combine(&self, left: Affine, right: Affine) -> Affine {
        Affine { a: right.a.wrapping_mul(left.a), b: right.a.wrapping_mul(left.b).wrapping_add(right.b) }
    }
}

impl Tested for Compose {
    fn value(i: u32) -> Affine {
        Affine { a: 2 * i + 3, b: i ^ 0x5555 }
    }
}

thread_local! {
    /// Calls of [`Spans::combine`]: the simulator's threads all run on the one that launches.
    static COMBINED: Cell<u32> = const { Cell::new(0) };
}

/// Joins neighbours, and refuses everything else: the identity, gaps, overlaps.
#[derive(Clone, Copy, Debug, Default, Plain)]
#[repr(C)]
struct Spans;

/// 12 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Plain)]
#[repr(C)]
struct Span {
    first: u32,
    len: u32,
    sum: u32,
}

impl Monoid for Spans {
    not_lifted!(Span);

    fn identity(&self) -> Span {
        Span { first: 0, len: 0, sum: 0 }
    }

    fn combine(&self, left: Span, right: Span) -> Span {
        assert!(left.len > 0 && right.len > 0, "an absent operand: {left:?} with {right:?}");
        assert_eq!(left.first + left.len, right.first, "no neighbours: {left:?} with {right:?}");
        COMBINED.set(COMBINED.get() + 1);
        Span { first: left.first, len: left.len + right.len, sum: left.sum.wrapping_add(right.sum) }
    }
}

impl Tested for Spans {
    fn value(i: u32) -> Span {
        Span { first: i, len: 1, sum: i * i + 1 }
    }
}

/// Products of matrices modulo 2^32, counted: 20 bytes.
#[derive(Clone, Copy, Debug, Default, Plain)]
#[repr(C)]
struct Products;

#[derive(Clone, Copy, Debug, PartialEq, Plain)]
#[repr(C)]
struct Product {
    matrix: [[u32; 2]; 2],
    factors: u32,
}

impl Monoid for Products {
    not_lifted!(Product);

    fn identity(&self) -> Product {
        Product { matrix: [[1, 0], [0, 1]], factors: 0 }
    }

    fn combine(&self, left: Product, right: Product) -> Product {
        assert!(left.factors > 0 && right.factors > 0, "an absent operand: {left:?} with {right:?}");
        let (a, b) = (left.matrix, right.matrix);
        let entry =
            |i: usize, k: usize| a[i][0].wrapping_mul(b[0][k]).wrapping_add(a[i][1].wrapping_mul(b[1][k]));
        Product {
            matrix: [[entry(0, 0), entry(0, 1)], [entry(1, 0), entry(1, 1)]],
            factors: left.factors + right.factors,
        }
    }
}

impl Tested for Products {
    fn value(i: u32) -> Product {
        Product { matrix: [[i + 1, 1], [i ^ 7, 3]], factors: 1 }
    }
}

/// Not associative: its value tells how operands were grouped.
#[derive(Clone, Copy, Debug, Default, Plain)]
#[repr(C)]
struct Grouping;

impl Monoid for Grouping {
    not_lifted!(u64);

    fn identity(&self) -> u64 {
        0
    }

    fn combine(&self, left: u64, right: u64) -> u64 {
        (left.rotate_left(7) ^ right).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(left)
    }
}

impl Tested for Grouping {
    fn value(i: u32) -> u64 {
        u64::from(i) << 32 | 1
    }
}

/// What each thread received from each function: `None` where it received nothing.
struct Received<A> {
    reduced: Vec<Option<A>>,
    scanned: Vec<Option<A>>,
    before: Vec<Option<A>>,
}

/// Where a kernel leaves an `Option`: whether there is one, and which.
struct Output<A> {
    given: Vec<u32>,
    values: Vec<A>,
}

impl<A: Plain> Output<A> {
    fn new(threads: usize, fill: A) -> Self {
        Output { given: vec![7; threads], values: vec![fill; threads] }
    }

    fn register(&mut self, options: Options) -> Options {
        options
            .buffer(Buffer::writable("given", &mut self.given))
            .buffer(Buffer::writable("values", &mut self.values))
    }

    fn addresses(&mut self) -> (usize, usize) {
        (self.given.as_mut_ptr().expose_provenance(), self.values.as_mut_ptr().expose_provenance())
    }

    fn read(self) -> Vec<Option<A>> {
        assert!(self.given.iter().all(|&given| given < 2), "every thread came to its end");
        self.given.into_iter().zip(self.values).map(|(given, value)| (given == 1).then_some(value)).collect()
    }
}

/// Writes what this thread received.
fn put<A: Plain>((given, values): (usize, usize), received: Option<A>) {
    let at = thread::index_1d() as usize;
    let (given, values) = (given as *mut u32, values as *mut A);
    // SAFETY: arrays with an element for each thread of the grid.
    unsafe {
        global::store(given.wrapping_add(at), received.is_some().into());
        if let Some(value) = received {
            global::store(values.wrapping_add(at), value);
        }
    }
}

/// Runs `kernel` in a grid, one block for each of `presents`, with this thread's value (the identity beyond `present`).
fn launch<Op: Tested>(
    threads: u32,
    presents: &[Present],
    schedule: Schedule,
    kernel: impl Fn(&Op, Op::Acc, Present) -> [Option<Op::Acc>; 3] + Sync,
) -> Received<Op::Acc> {
    let op = Op::default();
    let all = presents.len() * threads as usize;
    let mut outputs: [Output<Op::Acc>; 3] = std::array::from_fn(|_| Output::new(all, op.identity()));
    let options = outputs.iter_mut().fold(Options::with_schedule(schedule), |options, o| o.register(options));
    let addresses = outputs.each_mut().map(Output::addresses);
    sim::launch(&Launch::new("layers", presents.len() as u32, threads), &options, || {
        let thread = thread::thread_idx_x();
        let present = presents[thread::block_idx_x() as usize];
        let here = present.is_none_or(|count| thread < count);
        let value = if here { Op::value(thread) } else { op.identity() };
        for (to, received) in addresses.into_iter().zip(kernel(&op, value, present)) {
            put(to, received);
        }
    })
    .unwrap_or_else(|fault| panic!("{threads} threads, {presents:?}, {schedule:?}: {fault}"));
    let [reduced, scanned, before] = outputs.map(Output::read);
    Received { reduced, scanned, before }
}

/// All three functions of the block, one after the other with the same slots.
fn launch_block<Op: Tested>(
    threads: u32,
    presents: &[Present],
    schedule: Schedule,
    slots: impl Fn() -> Shared<Op::Acc> + Sync,
) -> Received<Op::Acc> {
    launch::<Op>(threads, presents, schedule, |op, value, present| {
        let slots = slots();
        // SAFETY: the whole block calls; barriers keep the calls apart.
        unsafe {
            let reduced = block::reduce(op, value, present, slots);
            thread::sync_threads();
            let scanned = block::scan(op, value, present, slots);
            thread::sync_threads();
            [reduced, scanned, block::scan_exclusive(op, value, present, slots)]
        }
    })
}

/// Every way to fill a block of so many threads, around each boundary.
fn presents(threads: u32) -> Vec<Present> {
    let edges = [0, 32, 64, 96, threads / 2, threads.saturating_sub(32), threads];
    let mut counts: Vec<u32> = edges.iter().flat_map(|&edge| edge.saturating_sub(1)..=edge + 1).collect();
    counts.push(5000);
    counts.sort_unstable();
    counts.dedup();
    [None].into_iter().chain(counts.into_iter().map(Some)).collect()
}

/// The values of threads `0..=i`, folded from left to right.
fn running<Op: Tested>(count: u32) -> Vec<Op::Acc> {
    let op = Op::default();
    let next = |acc: &mut Option<Op::Acc>, i| {
        *acc = Some(acc.map_or(Op::value(i), |acc| op.combine(acc, Op::value(i))));
        *acc
    };
    (0..count).scan(None, next).collect()
}

/// Compares what blocks (or warps) of `threads` received with the fold from left to right.
fn compare<A: Plain + PartialEq + std::fmt::Debug>(
    what: &str,
    threads: u32,
    presents: &[Present],
    received: &Received<A>,
    expected: &[A],
) {
    for (b, &present) in presents.iter().enumerate() {
        let count = present.unwrap_or(threads).min(threads) as usize;
        for t in 0..threads as usize {
            let at = b * threads as usize + t;
            let words = || format!("{what}, thread {t} of {threads}, {count} present");
            let total = (t == 0 && count > 0).then(|| expected[count - 1]);
            assert_eq!(received.reduced[at], total, "reduce: {}", words());
            let own = (t < count).then(|| expected[t]);
            assert_eq!(received.scanned[at], own, "scan: {}", words());
            let before = (t > 0 && t < count).then(|| expected[t - 1]);
            assert_eq!(received.before[at], before, "scan_exclusive: {}", words());
        }
    }
}

fn check_blocks<Op: Tested>(slots: impl Fn() -> Shared<Op::Acc> + Sync) {
    for threads in SIZES {
        let (presents, expected) = (presents(threads), running::<Op>(threads));
        for schedule in SCHEDULES {
            let received = launch_block::<Op>(threads, &presents, schedule, &slots);
            compare(&format!("{schedule:?}"), threads, &presents, &received, &expected);
        }
    }
}

#[test]
fn blocks_of_any_size_keep_the_order() {
    check_blocks::<Compose>(|| shared!([Affine; block::SHARED]));
}

#[test]
fn blocks_of_any_size_combine_only_what_is_there() {
    check_blocks::<Spans>(|| shared!([Span; block::SHARED]));
}

#[test]
fn blocks_take_accumulators_of_an_odd_size() {
    check_blocks::<Products>(|| shared!([Product; block::SHARED]));
}

/// A slot a warp is what the documentation asks for; the simulator reports an access beyond.
#[test]
fn a_slot_for_each_warp_is_enough() {
    for threads in SIZES {
        let presents = presents(threads);
        let received = launch_block::<Compose>(threads, &presents, Schedule::Seeded(1), || {
            shared!([Affine; block::SHARED]).first(threads.div_ceil(32) as usize)
        });
        compare("few slots", threads, &presents, &received, &running::<Compose>(threads));
    }
}

/// Blocks reduce in the order of the canonical tree whatever their size, and a scan's groups depend on the thread
/// alone.
#[test]
fn the_grouping_is_the_documented_one() {
    let op = Grouping;
    // In a warp, thread `t` of a scan holds the last `width` values, and takes in those before.
    fn warp_scan(op: &Grouping, t: u32, width: u32, value: &dyn Fn(u32) -> u64) -> u64 {
        if width == 1 {
            return value(t);
        }
        let own = warp_scan(op, t, width / 2, value);
        match t.checked_sub(width / 2) {
            Some(left) => op.combine(warp_scan(op, left, width / 2, value), own),
            None => own,
        }
    }
    let in_warp = |w: u32, lane: u32| warp_scan(&op, lane, 32, &|lane| Grouping::value(32 * w + lane));
    let warps = |w: u32| warp_scan(&op, w, 32, &|w| in_warp(w, 31));
    let scanned: Vec<u64> = (0..1024)
        .map(|t| match (t / 32, t % 32) {
            (0, lane) => in_warp(0, lane),
            (w, 31) => warps(w),
            (w, lane) => op.combine(warps(w - 1), in_warp(w, lane)),
        })
        .collect();
    let tree = |len: u32| tree::pairwise(&op, len.into(), &|i| Grouping::value(i as u32));
    for power in 0..=10 {
        assert_eq!(
            scanned[(1 << power) - 1],
            tree(1 << power),
            "a scan's last of 2^{power} is the reduction"
        );
    }
    for threads in SIZES {
        let presents = presents(threads);
        let received = launch_block::<Grouping>(threads, &presents, Schedule::Seeded(5), || {
            shared!([u64; block::SHARED])
        });
        for (b, &present) in presents.iter().enumerate() {
            let count = present.unwrap_or(threads).min(threads);
            let at = b * threads as usize;
            let words = || format!("{threads} threads, {count} present");
            assert_eq!(received.reduced[at], (count > 0).then(|| tree(count)), "{}", words());
            for t in 0..count as usize {
                assert_eq!(received.scanned[at + t], Some(scanned[t]), "thread {t}, {}", words());
                let before = t.checked_sub(1).map(|t| scanned[t]);
                assert_eq!(received.before[at + t], before, "before thread {t}, {}", words());
            }
        }
    }
}

/// A reduction calls `combine` once less than there are values.
#[test]
fn nothing_is_combined_twice() {
    for threads in SIZES {
        for present in presents(threads) {
            COMBINED.set(0);
            launch::<Spans>(threads, &[present], Schedule::Sequential, |op, value, present| {
                // SAFETY: the whole block calls, once.
                [unsafe { block::reduce(op, value, present, shared!([Span; block::SHARED])) }, None, None]
            });
            let count = present.unwrap_or(threads).min(threads);
            assert_eq!(COMBINED.get(), count.saturating_sub(1), "{threads} threads, {present:?}");
        }
    }
}

fn check_warps<Op: Tested>() {
    let presents: Vec<Present> = [None].into_iter().chain((0..=33).map(Some)).collect();
    for size in 1..=32 {
        for schedule in SCHEDULES {
            // One block of one warp each, so that threads are lanes.
            let received = launch::<Op>(size, &presents, schedule, |op, value, present| {
                let here = warp::lanes_here();
                // SAFETY: every lane of the warp calls.
                unsafe {
                    [
                        warp::reduce(op, value, here, present),
                        warp::scan(op, value, here, present),
                        warp::scan_exclusive(op, value, here, present),
                    ]
                }
            });
            compare(&format!("warp, {schedule:?}"), size, &presents, &received, &running::<Op>(size));
        }
    }
}

#[test]
fn warps_of_any_size_keep_the_order() {
    check_warps::<Compose>();
}

#[test]
fn warps_of_any_size_combine_only_what_is_there() {
    check_warps::<Spans>();
    check_warps::<Products>();
}

/// The first lanes alone, while the others are elsewhere.
#[test]
fn some_lanes_of_a_warp_may_stay_away() {
    let expected = running::<Spans>(32);
    for calling in 1..=32 {
        let received = launch::<Spans>(32, &[None], Schedule::Seeded(calling.into()), |op, value, _| {
            if lanes::lane_id() >= calling {
                return [None; 3];
            }
            // SAFETY: the first `calling` lanes are here.
            unsafe {
                [
                    warp::reduce(op, value, calling, None),
                    warp::scan(op, value, calling, None),
                    warp::scan_exclusive(op, value, calling, None),
                ]
            }
        });
        compare("first lanes", 32, &[Some(calling)], &received, &expected);
    }
}

/// In a block of any shape, and not only of one dimension.
#[test]
fn lanes_are_counted_in_every_shape_of_block() {
    for shape in [(105, 1, 1), (5, 3, 7), (1, 33, 1), (2, 2, 16), (1, 1, 1), (31, 33, 1)] {
        sim::launch(&Launch::new("shape", 1, shape), &Options::default(), || {
            let (dim, at) = (thread::block_dim(), thread::thread_idx());
            let linear = at.x + dim.x * (at.y + dim.y * at.z);
            let all = shape.0 * shape.1 * shape.2;
            let expected = (0..all).filter(|&other| other / 32 == linear / 32).count() as u32;
            assert_eq!(warp::lanes_here(), expected);
            // SAFETY: every lane calls.
            let sum = unsafe { warp::reduce(&Spans, Spans::value(linear), warp::lanes_here(), None) };
            assert_eq!(sum.map(|span| span.len), (linear % 32 == 0).then_some(expected));
        })
        .unwrap_or_else(|fault| panic!("{shape:?}: {fault}"));
    }
}

#[test]
fn a_broadcast_reaches_every_thread() {
    for threads in SIZES {
        for from in [0, threads / 2, threads - 1] {
            sim::launch(&Launch::new("broadcast", 2, threads), &Options::default(), || {
                let (slot, thread) = (shared!([Product; 1]), thread::thread_idx_x());
                // SAFETY: the whole block calls.
                let value = unsafe { block::broadcast(Products::value(thread), from, slot) };
                assert_eq!(value, Products::value(from));
            })
            .unwrap_or_else(|fault| panic!("{threads} threads, from {from}: {fault}"));
        }
    }
}

/// The contract's barrier between two uses of the same slots: without it the simulator reports a race.
#[test]
fn slots_used_again_without_a_barrier_are_found() {
    let again = |first: fn(Shared<Affine>), second: fn(Shared<Affine>)| {
        let fault = sim::launch(&Launch::new("again", 1, 100), &Options::default(), || {
            let slots = shared!([Affine; block::SHARED]);
            first(slots);
            second(slots);
        });
        matches!(fault.unwrap_err().kind, FaultKind::SharedRace { .. })
    };
    fn reduce(slots: Shared<Affine>) {
        // SAFETY: the whole block calls; the missing barrier is what this is about.
        unsafe { block::reduce(&Compose, Compose::value(thread::thread_idx_x()), None, slots) };
    }
    fn scan(slots: Shared<Affine>) {
        // SAFETY: as above.
        unsafe { block::scan(&Compose, Compose::value(thread::thread_idx_x()), None, slots) };
    }
    assert!(again(reduce, reduce) && again(reduce, scan) && again(scan, scan) && again(scan, reduce));
}

/// Sorts keys with few values by warp and by block: pairs in order, equal keys as they stood, and the others where they are.
#[test]
fn sorts_are_stable_and_leave_what_is_not_there() {
    for threads in SIZES {
        for present in [0, 1, threads / 2, threads - 1, threads] {
            let n = threads as usize;
            let keys: Vec<u16> = (0..threads).map(|i| (i * 7919 % 1013 / 60) as u16).collect();
            let (mut warps, mut block) = (vec![[0_u32; 2]; n], vec![[0_u32; 2]; n]);
            let options = Options { schedule: Schedule::Seeded(5), ..Options::default() }
                .buffer(Buffer::read_only("keys", &keys))
                .buffer(Buffer::writable("warps", &mut warps))
                .buffer(Buffer::writable("block", &mut block));
            let (input, out_warps, out_block) =
                (keys.as_ptr() as usize, warps.as_mut_ptr() as usize, block.as_mut_ptr() as usize);
            sim::launch(&Launch::new("sort", 1, threads), &options, || {
                let room = block::SortRoom {
                    keys: shared!([u16; 1024]),
                    values: shared!([u32; 1024]),
                    from: shared!([u32; 1024]),
                };
                let t = thread::thread_idx_x();
                let put = |to: usize, (key, value): (u16, u32)| {
                    // SAFETY: a pair a thread.
                    unsafe {
                        global::store((to as *mut [u32; 2]).wrapping_add(t as usize), [key as u32, value])
                    };
                };
                // SAFETY: as many keys as threads; all of them call.
                unsafe {
                    let key = global::load((input as *const u16).wrapping_add(t as usize));
                    let here = present.saturating_sub(t / 32 * 32);
                    let less = |a: u16, b: u16| a < b;
                    put(out_warps, warp::sort_pairs(key, t, warp::lanes_here(), Some(here), less));
                    put(out_block, block::sort_pairs(key, t, Some(present), less, room));
                }
            })
            .unwrap();
            let expected = |width: usize| -> Vec<[u32; 2]> {
                let mut pairs: Vec<_> = (0..n).map(|i| [keys[i] as u32, i as u32]).collect();
                let there = present as usize;
                pairs[..there].chunks_mut(width).for_each(|pairs| pairs.sort_by_key(|pair| pair[0]));
                pairs
            };
            assert_eq!(warps, expected(32), "{present} of {threads}");
            assert_eq!(block, expected(1024), "{present} of {threads}");
        }
    }
}

/// Does a thread of the grid have an item in a round, and of which tag?
fn drawn(thread: u32, round: u32, tags: u32) -> Option<u32> {
    let bits = (thread * 37 + round * 101 + 11).wrapping_mul(0x9e37_79b1) >> 8;
    // Some warps and threads have nothing at all.
    (thread % 7 != 3 && thread / 32 % 5 != 2 && !bits.is_multiple_of(3))
        .then_some(bits / 3 % (tags + tags / 8))
}

/// What sinks are documented to do with the places of a warp, the warps of a block and the runs of blocks: neighbours first,
/// skipping what is not there.
fn pairwise_present(mut values: Vec<Option<u64>>) -> Option<u64> {
    let mut distance = 1;
    while distance < values.len() {
        for place in (0..values.len() - distance).step_by(2 * distance) {
            let both = [values[place], values[place + distance]].into_iter().flatten();
            values[place] = both.reduce(|left, right| Grouping.combine(left, right));
        }
        distance *= 2;
    }
    values.first().copied().flatten()
}

fn left_to_right(values: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    values.flatten().reduce(|left, right| Grouping.combine(left, right))
}

fn over_blocks(blocks: Vec<Option<u64>>) -> u64 {
    let run = blocks.len().div_ceil(32);
    pairwise_present(blocks.chunks(run).map(|run| left_to_right(run.iter().copied())).collect()).unwrap_or(0)
}

const ROUNDS: u32 = 4;

/// Runs a kernel whose grid meets at its end; what it writes for each tag.
fn launch_sink(
    blocks: u32,
    threads: u32,
    tags: u32,
    schedule: Schedule,
    kernel: impl Fn(&block::Meeting<Grouping>) + Sync,
) -> Vec<u64> {
    let room = (blocks * tags) as usize;
    let (mut partials, mut present) = (vec![0_u64; room], vec![0_u32; room]);
    let (mut ticket, mut output) = ([0_u32], vec![77_u64; tags as usize]);
    let options = Options::with_schedule(schedule)
        .buffer(Buffer::writable("partials", &mut partials))
        .buffer(Buffer::writable("present", &mut present))
        .buffer(Buffer::writable("ticket", &mut ticket))
        .buffer(Buffer::writable("output", &mut output));
    let at = [partials.as_mut_ptr(), output.as_mut_ptr()].map(|at| at.expose_provenance());
    let words = [present.as_mut_ptr(), ticket.as_mut_ptr()].map(|at| at.expose_provenance());
    sim::launch(&Launch::new("sink", blocks, threads), &options, || {
        kernel(&block::Meeting {
            partials: at[0] as *mut u64,
            present: words[0] as *mut u32,
            ticket: words[1] as *mut u32,
            output: at[1] as *mut u64,
        });
    })
    .unwrap_or_else(|fault| panic!("{blocks} blocks of {threads}, {tags} tags: {fault}"));
    assert_eq!(ticket, [0]);
    output
}

const GRIDS: [(u32, u32); 5] = [(1, 32), (2, 96), (5, 256), (33, 64), (70, 32)];

#[test]
fn sinks_combine_threads_warps_and_blocks_in_their_order() {
    for (k, (blocks, threads)) in GRIDS.into_iter().enumerate() {
        let found = launch_sink(blocks, threads, 1, SCHEDULES[k % 3], |meeting| {
            let slots = (shared!([u64; block::SHARED]), shared!([u32; block::SHARED]), shared!([u32; 1]));
            let mut sink = block::Sink::new(&Grouping);
            for round in 0..ROUNDS {
                if drawn(thread::index_1d(), round, 1).is_some() {
                    sink.push(Grouping::value(thread::index_1d() * ROUNDS + round), 0);
                }
            }
            // SAFETY: the whole grid, whose memory this is.
            unsafe { sink.flush(meeting, slots.0, slots.1, slots.2) };
        });
        let of_thread = |t: u32| {
            left_to_right(
                (0..ROUNDS).map(|round| drawn(t, round, 1).map(|_| Grouping::value(t * ROUNDS + round))),
            )
        };
        let of_warp = |warp: u32| pairwise_present((warp * 32..warp * 32 + 32).map(of_thread).collect());
        let of_block = |block: u32| {
            let warps = threads / 32;
            pairwise_present((block * warps..(block + 1) * warps).map(of_warp).collect())
        };
        assert_eq!(found, [over_blocks((0..blocks).map(of_block).collect())], "{blocks} blocks of {threads}");
    }
}

#[test]
fn tagged_sinks_combine_lanes_warps_and_blocks_in_their_order() {
    for (k, (blocks, threads)) in GRIDS.into_iter().enumerate() {
        for tags in [1_u32, 16, 40] {
            let found = launch_sink(blocks, threads, tags, SCHEDULES[k % 3], |meeting| {
                let slots = (shared!([u64; 8 * 40]), shared!([u32; 8 * 40]), shared!([u32; 1]));
                // SAFETY: the whole block, with room for its warps.
                let mut sink = unsafe { block::TaggedSink::new(&Grouping, tags, slots.0, slots.1) };
                for round in 0..ROUNDS {
                    let item = drawn(thread::index_1d(), round, tags)
                        .map(|tag| (tag, Grouping::value(thread::index_1d() * ROUNDS + round)));
                    // SAFETY: the whole warp.
                    unsafe { sink.push(item, 0) };
                }
                // SAFETY: the whole grid, whose memory this is.
                unsafe { sink.flush(meeting, slots.2) };
            });
            let of_warp = |warp: u32, tag: u32| {
                left_to_right((0..ROUNDS).map(|round| {
                    let mine = (warp * 32..warp * 32 + 32).filter(|&t| drawn(t, round, tags) == Some(tag));
                    pairwise_present(mine.map(|t| Some(Grouping::value(t * ROUNDS + round))).collect())
                }))
            };
            for tag in 0..tags {
                let of_block = |block: u32| {
                    let warps = threads / 32;
                    left_to_right((block * warps..(block + 1) * warps).map(|warp| of_warp(warp, tag)))
                };
                let expected = over_blocks((0..blocks).map(of_block).collect());
                assert_eq!(
                    found[tag as usize], expected,
                    "tag {tag} of {tags}, {blocks} blocks of {threads}"
                );
            }
        }
    }
}
