//! The kernels for segments in the simulator: every strategy, around every boundary, against the definition of the
//! canonical tree, item by item, with every access checked.

use warpfold_gpu_kernels::segment_kernels;
use warpfold_host::{
    Engine, Schedule, SegmentReducer, SimOptions,
    module::Kernels,
    plan::segments::{SegmentSettings, SegmentStrategy},
    segments::{Axis, Layout, SegmentPlan},
};
use warpfold_monoid::{GivesIdentity, Max, Monoid, Plain, tree};

#[path = "segments/beside.rs"]
mod beside;

/// Neither associative nor commutative, whatever it says: its results show any other grouping, any other order, and
/// `push` in place of `combine`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Grouping<T, const COMMUTATIVE: bool>(core::marker::PhantomData<fn() -> T>);

// SAFETY: no bytes.
unsafe impl<T: Copy + 'static, const COMMUTATIVE: bool> Plain for Grouping<T, COMMUTATIVE> {}

impl<T, const COMMUTATIVE: bool> Grouping<T, COMMUTATIVE> {
    fn new() -> Self {
        Grouping(core::marker::PhantomData)
    }
}

/// What an item is worth.
trait Worth: Plain {
    fn worth(self) -> u64;
    fn of(number: u64) -> Self;
}

macro_rules! worth {
    ($($type:ty)*) => {$(
        impl Worth for $type {
            fn worth(self) -> u64 { self as u64 }
            fn of(number: u64) -> Self { number as $type }
        }
    )*};
}
worth!(u8 u32 u64);

/// An item that makes no vector.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Triple([u32; 3]);

// SAFETY: repr(C), 12 bytes.
unsafe impl Plain for Triple {}

impl Worth for Triple {
    fn worth(self) -> u64 {
        self.0[0] as u64 ^ (self.0[1] as u64) << 16 ^ (self.0[2] as u64) << 32
    }
    fn of(number: u64) -> Self {
        Triple([number as u32, (number >> 7) as u32, (number >> 13) as u32])
    }
}

impl<T: Worth, const COMMUTATIVE: bool> Monoid for Grouping<T, COMMUTATIVE> {
    type Item = T;
    type Acc = u64;
    type Output = u64;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = COMMUTATIVE;

    fn identity(&self) -> u64 {
        u64::MAX
    }

    fn lift(&self, item: T, index: u64) -> u64 {
        (item.worth() << 20 ^ index).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
    }

    fn push(&self, acc: u64, item: T, index: u64) -> u64 {
        assert!(acc != u64::MAX, "an absent operand");
        (acc.rotate_left(11) ^ item.worth() ^ index << 40).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1
    }

    fn combine(&self, left: u64, right: u64) -> u64 {
        // Lanes whose result nobody reads may combine what is not there; then so is their result.
        if left == u64::MAX || right == u64::MAX {
            return u64::MAX;
        }
        (left ^ left >> 29).wrapping_mul(0x94d0_49bb_1331_11eb).wrapping_add(right.rotate_left(17)) | 1
    }

    fn finish(&self, acc: u64) -> u64 {
        acc
    }
}

segment_kernels! {
    static TABLE:
    grouping_u8 => Grouping<u8, true>,
    grouping_u32 => Grouping<u32, true>,
    grouping_u64 => Grouping<u64, true>,
    grouping_12 => Grouping<Triple, true>,
    order_u8 => Grouping<u8, false>,
    order_u32 => Grouping<u32, false>,
    order_12 => Grouping<Triple, false>,
    max_u16 => Max<u16>,
}

fn engine(seed: u64) -> Engine {
    let schedule = Schedule::Concurrent { seed };
    let engine = Engine::sim_with(SimOptions { schedule, ..SimOptions::default() });
    engine.load(Kernels { table: &TABLE, modules: &[] });
    engine
}

fn numbers<T: Worth>(count: usize) -> Vec<T> {
    (0..count as u64).map(|i| T::of((i + 1).wrapping_mul(0xd134_2543_de82_ef95) >> 29)).collect()
}

/// Lengths around the boundaries for items of that size, each with a number of segments.
fn shapes(item_bytes: usize) -> Vec<(usize, usize)> {
    let vector = tree::vector_len(item_bytes);
    let mut lengths = vec![1, 2, 3];
    for groups in [1, 2, 8, 32] {
        let most = 4 * vector * groups;
        lengths.extend([most - 1, most, most + 1, most / 2 + vector]);
    }
    // The most items of 64 groups of which a thread takes two, and one more.
    lengths.extend([160 * vector, 160 * vector + 1]);
    // Two groups a thread, in two warps.
    lengths.push(260 * vector + 3);
    lengths.push(200 * vector + 5);
    lengths.push(2048 * vector);
    lengths.push(2048 * vector + 1);
    lengths.push(3 * 1024 * vector + 70);
    lengths.sort();
    lengths.dedup();
    lengths.into_iter().flat_map(|n| [1, 5, 70 / (n / 40 + 1) + 2].map(|m| (m, n))).collect()
}

fn with(strategy: Option<SegmentStrategy>) -> SegmentSettings {
    let mut settings = SegmentSettings::default();
    settings.strategy = strategy;
    settings
}

/// Every segment of a layout on its own, by the definition.
fn defined<Op: Monoid>(op: &Op, items: &[Op::Item], base: i64, layout: &Layout) -> Vec<Op::Output> {
    let place = |axes: &[Axis], number: u64| {
        let (mut rest, mut at) = (number, 0);
        for axis in axes.iter().rev() {
            at += (rest % axis.len) as i64 * axis.stride;
            rest /= axis.len;
        }
        at
    };
    let n = layout.segment_len();
    (0..layout.segments())
        .map(|k| {
            let start = base + place(&layout.kept, k);
            match tree::fold(op, n, &|i| items[(start + place(&layout.reduced, i)) as usize]) {
                Some(acc) => op.finish(acc),
                None => op.finish_empty(),
            }
        })
        .collect()
}

/// Reduces with every strategy that takes the segments, and with the chooser's; returns how many took them.
fn check<Op: Monoid>(op: Op, items: &[Op::Item], base: i64, layout: &Layout) -> Vec<SegmentStrategy>
where
    Op::Output: PartialEq + std::fmt::Debug,
{
    let expected = defined(&op, items, base, layout);
    let reducer: SegmentReducer<Op> = engine(layout.segment_len()).segments(op).unwrap();
    let mut taken = Vec::new();
    for strategy in [None].into_iter().chain(SegmentStrategy::ALL.map(Some)) {
        let reducer = reducer.with_settings(with(strategy));
        let plan = match reducer.plan(layout) {
            Ok(plan) => plan,
            Err(_) if strategy.is_some() => continue,
            Err(error) => panic!("{error}"),
        };
        let mut found = vec![op.finish_empty(); expected.len()];
        // SAFETY: the layouts here lead to items of the slice.
        unsafe { reducer.reduce_layout_into(items.as_ptr().offset(base as isize), layout, &mut found) }
            .unwrap_or_else(|error| panic!("{plan}\n{error}"));
        assert!(found == expected, "{plan}\n{found:?}\n{expected:?}");
        taken.extend(strategy);
    }
    taken
}

fn rows<Op: Monoid<Output: PartialEq + std::fmt::Debug>>(op: Op, make: fn(usize) -> Vec<Op::Item>) {
    let mut taken = std::collections::HashSet::new();
    for (m, n) in shapes(size_of::<Op::Item>()) {
        // At a start that is aligned, and at one that is not; side by side, and with gaps.
        let items = make(m * (n + 3) + 5);
        taken.extend(check(op, &items, 0, &Layout::rows(m as u64, n as u64)));
        taken.extend(check(op, &items, 1, &Layout::rows(m as u64, n as u64)));
        let gaps = Layout {
            kept: vec![Axis { len: m as u64, stride: n as i64 + 3 }],
            reduced: vec![Axis { len: n as u64, stride: 1 }],
        };
        check(op, &items, 2, &gaps);
    }
    for strategy in SegmentStrategy::ALL {
        assert!(
            taken.contains(&strategy)
                || [
                    SegmentStrategy::Columns,
                    SegmentStrategy::Narrow,
                    SegmentStrategy::Wide,
                    SegmentStrategy::Flat
                ]
                .contains(&strategy),
            "{strategy} took none"
        );
    }
}

fn columns<Op: Monoid<Output: PartialEq + std::fmt::Debug>>(op: Op, make: fn(usize) -> Vec<Op::Item>) {
    let vector = tree::vector_len(size_of::<Op::Item>());
    for (outer, n, inner) in [
        (1, 1, 300),
        (3, 5, 7),
        (2, 4 * vector + 1, 33),
        (1, 64 * vector + 3, 9),
        (2, 700 * vector + 1, 2),
        (40, 3 * vector - 1, 2),
        (5, 4 * vector - 1, 70),
        (1, vector + 1, 600),
        (4, 13 * vector, 65),
        (1, 20 * vector + 1, 2100),
        (300, 4 * vector * 8, 4),
        (9, vector * 60 + 1, 3),
        (2, 100 * vector + 3, 8),
        (1, 2048 * vector + 9, 8),
        (1, 2048 * vector + 5, 3),
        (2, 2100 * vector, 2),
    ] {
        let items = make(outer * n * inner + 1);
        let layout =
            Layout::new(&[outer, n, inner], &[(n * inner) as isize, inner as isize, 1], &[1]).unwrap();
        let taken = check(op, &items, 1, &layout);
        assert!(taken.contains(&SegmentStrategy::Columns) || n == 1, "{outer} {n} {inner}");
    }
}

fn axes<Op: Monoid<Output: PartialEq + std::fmt::Debug>>(op: Op, make: fn(usize) -> Vec<Op::Item>) {
    let items = make(5 * 6 * 70 * 3);
    let shape = [5, 6, 70, 3];
    let strides: [isize; 4] = [6 * 70 * 3, -70 * 3, 3, -1];
    let base = 5 * 70 * 3 + 2;
    for reduced in [&[0][..], &[1], &[2], &[3], &[0, 2], &[1, 3], &[0, 1, 2], &[0, 1, 2, 3]] {
        check(op, &items, base, &Layout::new(&shape, &strides, reduced).unwrap());
    }
    // Broadcast, and empty ones.
    check(op, &items, 7, &Layout::new(&[4, 100], &[0, 1], &[1]).unwrap());
    check(op, &items, 7, &Layout::new(&[4, 100], &[1, 0], &[1]).unwrap());
    check(op, &items, 0, &Layout::new(&[4, 0], &[1, 1], &[1]).unwrap());
    check(op, &items, 0, &Layout::new(&[0, 4], &[1, 1], &[1]).unwrap());
}

#[test]
fn rows_of_grouped_items() {
    rows(Grouping::<u32, true>::new(), numbers);
    rows(Grouping::<u8, true>::new(), numbers);
}

#[test]
fn rows_of_other_sizes() {
    rows(Grouping::<u64, true>::new(), numbers);
    rows(Grouping::<Triple, true>::new(), numbers);
}

#[test]
fn rows_in_order() {
    rows(Grouping::<u32, false>::new(), numbers);
    rows(Grouping::<Triple, false>::new(), numbers);
    rows(Grouping::<u8, false>::new(), numbers);
}

fn sixteen(count: usize) -> Vec<u16> {
    numbers::<u32>(count).into_iter().map(|number| number as u16).collect()
}

#[test]
fn rows_in_any_order() {
    rows(Max::<u16>::new(), sixteen);
}

/// Rows of several chunks, of which blocks fold one, some or all; of more than a block keeps; and by blocks of the most threads.
#[test]
fn rows_of_several_chunks() {
    fn several<Op: Monoid<Output: PartialEq + std::fmt::Debug>>(op: Op, make: fn(usize) -> Vec<Op::Item>) {
        let vector = tree::vector_len(size_of::<Op::Item>());
        let lengths =
            [3 * 1024 * vector + 70, 4 * 1024 * vector, 34 * 1024 * vector + 5, 1024 * 256 * vector + 2];
        for (n, chunks_a_block, start) in [
            (lengths[0], 1, 0),
            (lengths[0], 2, 1),
            (lengths[0], 3, 0),
            (lengths[0], 4, 0),
            (lengths[1], 4, 0),
            (lengths[2], 32, 0),
            (lengths[2], 9, 0),
            (lengths[3], 32, 0),
        ] {
            let m = if n == lengths[3] { 1 } else { 2 };
            let items = make(m * n + start);
            let layout = Layout::rows(m as u64, n as u64);
            let mut settings = with(Some(SegmentStrategy::Large));
            settings.chunks_a_block = Some(chunks_a_block);
            let reducer = engine(5).segments(op).unwrap().with_settings(settings);
            let plan = reducer.plan(&layout).unwrap();
            assert_eq!((plan.kernel(), plan.chunks_a_block), ("rows_short", chunks_a_block));
            // SAFETY: as above.
            let found = unsafe { reducer.reduce_layout(items.as_ptr().add(start), &layout) }.unwrap();
            assert!(found == defined(&op, &items, start as i64, &layout), "{plan}");
        }
    }
    several(Grouping::<u64, true>::new(), numbers);
}

/// Columns of which a thread folds several: so many that forcing every other strategy on them would take long.
#[test]
fn many_columns_of_few_items() {
    fn many<Op: Monoid<Output: PartialEq + std::fmt::Debug>>(op: Op, make: fn(usize) -> Vec<Op::Item>) {
        for (outer, n, inner, start) in [
            (1, 2, 65_537, 0),
            (3, 5, 21_847, 1),
            (2, 16, 32_768, 0),
            (1, 3, 65_536, 1),
            (1, 3, 65_536, 0),
            (1, 4, 65_536, 0),
            (3, 2, 21_848, 0),
            (40_000, 2, 6, 0),
            (1, 7, 65_536, 0),
            (1, 37, 65_536, 0),
            (3, 131, 21_862, 0),
            (1, 131, 65_536, 1),
            (1, 300, 32_768, 0),
        ] {
            let items = make(outer * n * inner + start);
            let strides = [(n * inner) as isize, inner as isize, 1];
            let layout = Layout::new(&[outer, n, inner], &strides, &[1]).unwrap();
            let reducer = engine(3).segments(op).unwrap();
            let plan = reducer.plan(&layout).unwrap();
            assert_eq!(plan.kernel(), if inner % 2 == 0 { "columns_few" } else { "columns_short" }, "{plan}");
            // SAFETY: as above.
            let found = unsafe { reducer.reduce_layout(items.as_ptr().add(start), &layout) }.unwrap();
            assert!(found == defined(&op, &items, start as i64, &layout), "{plan}");
        }
        // Rows of whole vectors, whose last is beside the columns.
        let items = make(3 * 65_538);
        let layout = Layout::new(&[3, 65_537], &[65_538, 1], &[0]).unwrap();
        let reducer = engine(3).segments(op).unwrap();
        // SAFETY: as above.
        let found = unsafe { reducer.reduce_layout(items.as_ptr(), &layout) }.unwrap();
        assert!(found == defined(&op, &items, 0, &layout));
    }
    many(Grouping::<u32, true>::new(), numbers);
    many(Grouping::<u64, true>::new(), numbers);
}

/// Columns without gaps as one array: vectors that columns share, aligned or not; rounds of lanes that leave every digit of the counter
/// full, part full and empty, in whole chunks and in the last, which ends within a vector; blocks that share a chunk, few and many.
#[test]
fn columns_as_one_array() {
    fn flat<Op: Monoid<Output: PartialEq + std::fmt::Debug>>(
        op: Op,
        make: fn(usize) -> Vec<Op::Item>,
        cases: &[(usize, usize, usize, usize, usize)],
    ) {
        for &(outer, n, inner, start, splits) in cases {
            let items = make(outer * n * inner + start);
            let strides = [(n * inner) as isize, inner as isize, 1];
            let layout = Layout::new(&[outer, n, inner], &strides, &[1]).unwrap();
            let reducer = engine(n as u64).segments(op).unwrap();
            let reducer = reducer.with_settings(with(Some(SegmentStrategy::Flat)));
            let plan = reducer.plan(&layout).unwrap();
            assert_eq!((plan.kernel(), plan.splits as usize), ("flat", splits), "{plan}");
            // SAFETY: as above.
            let found = unsafe { reducer.reduce_layout(items.as_ptr().add(start), &layout) }.unwrap();
            assert!(found == defined(&op, &items, start as i64, &layout), "{plan}");
        }
    }
    let cases = [
        (1, 33, 7, 0, 1),
        (2, 1000, 12, 0, 1),
        (3, 1001, 33, 0, 4),
        (1, 2050, 257, 1, 32),
        (1, 3 * 4096 + 2011, 33, 0, 16),
        (1, 33 * 4096 + 7, 2, 3, 1),
        (1, 1501, 291, 0, 16),
        (2, 4096 + 1033, 1023, 0, 16),
        (1, 1023, 302, 1, 8),
        (3, 41, 1000, 0, 1),
        // Every lane has as many items: several rounds of a thread's own groups, aligned or not, and of tiles.
        (2, 1024, 100, 0, 8),
        (1, 1024, 48, 1, 4),
        (2, 64, 1000, 0, 1),
    ];
    flat(Grouping::<u32, true>::new(), numbers, &cases);
    flat(Grouping::<u64, true>::new(), numbers, &[(1, 4301, 35, 0, 16), (2, 700, 3, 1, 1)]);
    flat(Max::<u16>::new(), sixteen, &[(2, 701, 100, 1, 4)]);
}

/// Columns by vectors of neighbours: rounds of groups that leave every digit of the counter full, part full and empty, in whole
/// chunks and in the last; vectors, and columns that are none; blocks that share a chunk.
#[test]
fn columns_side_by_side() {
    fn side_by_side<Op: Monoid<Output: PartialEq + std::fmt::Debug>>(
        op: Op,
        make: fn(usize) -> Vec<Op::Item>,
        cases: &[(usize, usize, usize, usize, u32)],
    ) {
        let vector = tree::vector_len(size_of::<Op::Item>());
        let chunk = 1024 * vector;
        for &(chunks, groups, inner, start, width) in cases {
            // The last chunk's groups are not whole, and some have one item.
            let n = chunks * chunk + groups * vector - usize::from(chunks > 0);
            let items = make(n * inner + start);
            let layout = Layout::new(&[n, inner], &[inner as isize, 1], &[0]).unwrap();
            let mut settings = with(Some(SegmentStrategy::Wide));
            settings.width = (width > 0).then_some(width);
            let reducer = engine(groups as u64).segments(op).unwrap().with_settings(settings);
            let plan = reducer.plan(&layout).unwrap();
            assert_eq!(plan.kernel(), "wide");
            // SAFETY: as above.
            let found = unsafe { reducer.reduce_layout(items.as_ptr().add(start), &layout) }.unwrap();
            assert!(found == defined(&op, &items, start as i64, &layout), "{plan}");
        }
    }
    // Whole columns of 16 to 2048 groups' vectors, then chunks with a last of 13, 20, 29, 61 and other numbers of rounds.
    let cases = [
        (0, 16, 8, 0, 0),
        (0, 67, 44, 0, 0),
        (0, 100, 20, 1, 8),
        (0, 1024, 12, 0, 0),
        (2, 1, 8, 0, 0),
        (2, 104, 128, 0, 0),
        (2, 161, 100, 0, 100),
        (3, 230, 36, 0, 0),
        (4, 100, 5, 1, 0),
    ];
    side_by_side(Grouping::<u32, true>::new(), numbers, &cases);
    side_by_side(
        Grouping::<u64, true>::new(),
        numbers,
        &[(0, 40, 66, 0, 0), (2, 230, 6, 0, 0), (2, 99, 64, 0, 64)],
    );
    side_by_side(Max::<u16>::new(), sixteen, &[(0, 77, 260, 0, 0), (2, 230, 9, 1, 0), (1, 900, 32, 0, 8)]);
    // 2048 vectors in 512 groups, 64 rounds of them; and in the last chunk of several that long 61, 29 and 13.
    let long: usize = 256 * 1024 + 1;
    for groups in [8 * 61, 8 * 28 + 1, 8 * 13] {
        let vectors = long.next_multiple_of(2048) + groups;
        side_by_side(Grouping::<u32, true>::new(), numbers, &[(0, vectors, 4, 0, 0)]);
    }
}

#[test]
fn columns_of_all_kinds() {
    columns(Grouping::<u32, true>::new(), numbers);
    columns(Grouping::<u32, false>::new(), numbers);
    columns(Grouping::<Triple, true>::new(), numbers);
    columns(Max::<u16>::new(), sixteen);
}

#[test]
fn axes_of_all_kinds() {
    axes(Grouping::<u32, true>::new(), numbers);
    axes(Grouping::<u32, false>::new(), numbers);
    axes(Max::<u16>::new(), sixteen);
}

#[test]
fn segments_of_any_lengths() {
    fn irregular<Op: Monoid<Output: PartialEq + std::fmt::Debug>>(op: Op, make: fn(usize) -> Vec<Op::Item>) {
        let vector = tree::vector_len(size_of::<Op::Item>());
        let long = [4 * vector * 32 + 1, 2048 * vector + 1, 300 * vector, 5000 * vector];
        let mut lengths: Vec<usize> =
            (0..2500).map(|k| [0, 1, 2, 3, 4 * vector, 17, 60, 0, 8][k % 9]).collect();
        lengths.extend(long);
        lengths.extend([0, 0, 4 * vector * 32, 1, 4 * vector * 8 + 1, 4 * vector * 2]);
        let items = make(lengths.iter().sum::<usize>() + 3);
        let plan = SegmentPlan::from_lengths(&lengths).unwrap();
        let ranges = {
            let begins: Vec<usize> = (0..200).map(|k| k * 37 % 150).collect();
            let ends: Vec<usize> = (0..200).map(|k| k * 37 % 150 + k % 5 * k).collect();
            SegmentPlan::from_ranges(&begins, &ends).unwrap()
        };
        // A warp's each, from any start.
        let middling: Vec<usize> =
            (0..70).map(|k| if k == 9 { 0 } else { 32 * vector + 1 + k * 29 % (96 * vector) }).collect();
        let middling = SegmentPlan::from_lengths(&middling).unwrap();
        let items = [make(70 * 128 * vector), items].concat();
        let reducer = engine(7).segments(op).unwrap();
        for plan in [plan, ranges, middling] {
            let found = reducer.reduce_segments(&items, &plan).unwrap();
            for (k, found) in (0..).zip(found) {
                let range = plan.range(k);
                let segment = &items[range.start as usize..range.end as usize];
                let expected = match tree::fold(&op, segment.len() as u64, &|i| segment[i as usize]) {
                    Some(acc) => op.finish(acc),
                    None => op.finish_empty(),
                };
                assert_eq!(found, expected, "segment {k}, {range:?}");
            }
        }
    }
    irregular(Grouping::<u32, true>::new(), numbers);
    irregular(Grouping::<u8, true>::new(), numbers);
    irregular(Grouping::<u32, false>::new(), numbers);
    irregular(Grouping::<Triple, true>::new(), numbers);
    irregular(Max::<u16>::new(), sixteen);
}
