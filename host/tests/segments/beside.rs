//! Operators that are told which segment they are at work on, arrays that are read beside items, and maps that are written:
//! every strategy against the definition, whose operands are computed and not read.

use warpfold_gpu_kernels::{
    beside::{Along, AlongMut, Beside, OwnOperator, PerSegment, Ragged, RaggedMut, Writing},
    segment_kernels,
    source::Zip2,
};
use warpfold_host::{
    Backend, Engine, Error, Schedule, SimOptions,
    module::Kernels,
    plan::segments::SegmentStrategy,
    segments::{Axis, Layout, SegmentPlan, Side},
};
use warpfold_monoid::{GivesIdentity, Map, MapFn, Max, Monoid, Plain, Sum, WithInitial, fused::Parts2, tree};

use super::{Grouping, numbers, shapes, with};

/// Item `x` with what is beside it.
type Item = Parts2<u32, Parts2<u32, u32>>;

/// As [`Grouping`], seeded with the segment's number.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Seeded<const COMMUTATIVE: bool> {
    seed: u64,
}

// SAFETY: repr(C), one number.
unsafe impl<const COMMUTATIVE: bool> Plain for Seeded<COMMUTATIVE> {}

impl<const COMMUTATIVE: bool> Seeded<COMMUTATIVE> {
    fn grouping(&self) -> Grouping<u64, COMMUTATIVE> {
        Grouping::new()
    }

    fn worth(&self, item: Item) -> u64 {
        let (x, beside) = item.get();
        let (b, c) = beside.get();
        (x as u64 | (b as u64) << 32) ^ (c as u64).rotate_left(50) ^ self.seed.rotate_left(21)
    }
}

impl<const COMMUTATIVE: bool> Monoid for Seeded<COMMUTATIVE> {
    type Item = Item;
    type Acc = u64;
    type Output = u64;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = COMMUTATIVE;
    const PER_SEGMENT: bool = true;
    fn for_segment(&self, k: u64) -> Self {
        assert_eq!(self.seed, UNTOLD, "told twice");
        Seeded { seed: k }
    }
    fn identity(&self) -> u64 {
        self.grouping().identity()
    }
    fn lift(&self, item: Item, index: u64) -> u64 {
        self.grouping().lift(self.worth(item), index)
    }
    fn push(&self, acc: u64, item: Item, index: u64) -> u64 {
        self.grouping().push(acc, self.worth(item), index)
    }
    fn combine(&self, left: u64, right: u64) -> u64 {
        // Segments' values never meet.
        let value = self.grouping().combine(left, right);
        if value == u64::MAX { value } else { value ^ self.seed << 1 }
    }
    fn finish(&self, acc: u64) -> u64 {
        acc ^ self.seed
    }
}

/// The seed before any segment is known.
const UNTOLD: u64 = 1 << 60;

/// Everything of an item in one number.
#[derive(Clone, Copy, Plain)]
struct All;

impl MapFn for All {
    type From = Item;
    type To = u64;
    fn map(&self, item: Item, index: u64) -> u64 {
        Seeded::<true> { seed: index }.worth(item)
    }
}

/// `x * b`, of 64 bits.
#[derive(Clone, Copy, Plain)]
struct Times;

impl MapFn for Times {
    type From = Parts2<u32, u32>;
    type To = u64;
    fn map(&self, pair: Parts2<u32, u32>, _index: u64) -> u64 {
        let (x, b) = pair.get();
        x as u64 * b as u64
    }
}

type Sides = Zip2<Along<u32, 2>, PerSegment<u32>>;
type Written<const COMMUTATIVE: bool> = Beside<Writing<Seeded<COMMUTATIVE>, All, AlongMut<u64>>, Sides>;

segment_kernels! {
    static TABLE:
    written => Written<true>,
    written_in_order => Written<false>,
    of_any_lengths => Beside<Writing<Seeded<true>, All, RaggedMut<u64>>, Zip2<Ragged<u32>, PerSegment<u32>>>,
    weighted => Beside<Map<Sum<u64>, Times>, Along<u32>>,
    floored => WithInitial<Max<u32>>,
    floored_apart => OwnOperator<WithInitial<Max<u32>>>,
}

fn engines() -> [Engine; 2] {
    let schedule = Schedule::Concurrent { seed: 5 };
    let sim = Engine::sim_with(SimOptions { schedule, ..SimOptions::default() });
    sim.load(Kernels { table: &TABLE, modules: &[] });
    [Engine::cpu(), sim]
}

/// What lies at a place of an array that is broadcast.
fn at(place: u64) -> u32 {
    (place as u32).wrapping_mul(0x9e37_79b9) >> 3
}

/// [`Seeded`] over the items alone: what is beside item `i` of segment `k` is computed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Defined<const COMMUTATIVE: bool> {
    k: u64,
    /// Segments side by side, and how far apart they and their items are in the array beside.
    inner: u64,
    across: u64,
    along: u64,
}

// SAFETY: repr(C), numbers.
unsafe impl<const COMMUTATIVE: bool> Plain for Defined<COMMUTATIVE> {}

impl<const COMMUTATIVE: bool> Defined<COMMUTATIVE> {
    fn of(&self) -> Seeded<COMMUTATIVE> {
        Seeded { seed: self.k }
    }

    fn item(&self, x: u32, index: u64) -> Item {
        let b = at(self.k % self.inner * self.across + index * self.along);
        Parts2::new(x, Parts2::new(b, at(self.k + 77)))
    }
}

impl<const COMMUTATIVE: bool> Monoid for Defined<COMMUTATIVE> {
    type Item = u32;
    type Acc = u64;
    type Output = u64;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = COMMUTATIVE;
    fn identity(&self) -> u64 {
        self.of().identity()
    }
    fn lift(&self, x: u32, index: u64) -> u64 {
        self.of().lift(self.item(x, index), index)
    }
    fn push(&self, acc: u64, x: u32, index: u64) -> u64 {
        self.of().push(acc, self.item(x, index), index)
    }
    fn combine(&self, left: u64, right: u64) -> u64 {
        self.of().combine(left, right)
    }
    fn finish(&self, acc: u64) -> u64 {
        self.of().finish(acc)
    }
}

/// Reduces a layout, `inner` of whose segments lie side by side, on the CPU and with every strategy of the simulator.
fn check<const COMMUTATIVE: bool>(layout: &Layout, items: &[u32], inner: u64) -> Vec<SegmentStrategy> {
    let (m, n) = (layout.segments(), layout.segment_len());
    // Broadcast along the outer segments; or along all of them.
    let defined = |k| Defined::<COMMUTATIVE> {
        k,
        inner,
        across: (inner > 1) as u64,
        along: if inner > 1 { inner } else { 3 },
    };
    let Defined { across, along, .. } = defined(0);
    let beside: Vec<u32> = (0..(inner - 1) * across + (n.max(1) - 1) * along + 1).map(at).collect();
    let summands: Vec<u32> = (0..m).map(|k| at(k + 77)).collect();
    let place = |axes: &[Axis], number: u64| {
        let (mut rest, mut place) = (number, 0);
        for axis in axes.iter().rev() {
            place += rest % axis.len * axis.stride as u64;
            rest /= axis.len;
        }
        place as usize
    };
    let item = |k: u64, i: u64| items[place(&layout.kept, k) + place(&layout.reduced, i)];
    let expected: Vec<u64> = (0..m)
        .map(|k| {
            let op = defined(k);
            op.finish(tree::fold(&op, n, &|i| item(k, i)).unwrap_or(op.identity()))
        })
        .collect();
    let mapped: Vec<u64> =
        (0..m).flat_map(|k| (0..n).map(move |i| All.map(defined(k).item(item(k, i), i), i))).collect();
    let kept = [Axis { len: m / inner, stride: 0 }, Axis { len: inner, stride: across as i64 }];
    let reduced = [Axis { len: 1, stride: 0 }, Axis { len: n, stride: along as i64 }];
    let mut taken = Vec::new();
    for engine in engines() {
        let forced = SegmentStrategy::ALL.map(Some).into_iter().filter(|_| engine.backend() == Backend::Sim);
        for strategy in [None].into_iter().chain(forced) {
            let mut written = vec![0; (m * n) as usize];
            let sides = (Side::axes(&beside, kept, reduced), Side::segments(&summands));
            let out = Side::rows(&mut written, m, n);
            let op = Seeded::<COMMUTATIVE> { seed: UNTOLD };
            let reducer = engine.segments_beside_writing(op, All, sides, out).unwrap();
            let mut reducer = reducer.with_settings(with(strategy));
            let plan = match reducer.plan(layout) {
                Ok(plan) => plan,
                Err(_) if strategy.is_some() => continue,
                Err(error) => panic!("{error}"),
            };
            // SAFETY: the layouts here lead to items of the slice.
            let found = unsafe { reducer.reduce_layout(items.as_ptr(), layout) };
            drop(reducer);
            assert!(found.unwrap_or_else(|error| panic!("{plan}\n{error}")) == expected, "{plan}");
            assert!(written == mapped, "what was written: {plan}");
            taken.extend(strategy);
        }
    }
    taken
}

fn rows<const COMMUTATIVE: bool>() {
    let mut taken = std::collections::HashSet::new();
    for (m, n) in shapes(4).into_iter().filter(|&(m, n)| m > 1 && m * n < 40_000) {
        let layout = Layout::rows(m as u64, n as u64);
        taken.extend(check::<COMMUTATIVE>(&layout, &numbers(m * n), 1));
    }
    // So many that a thread folds several neighbours, which are vectors or none.
    for (n, inner) in [(3, 21_847), (3, 21_848), (7, 21_848)] {
        let layout = Layout::new(&[3, n, inner], &[(n * inner) as isize, inner as isize, 1], &[1]).unwrap();
        if COMMUTATIVE {
            check::<COMMUTATIVE>(&layout, &numbers(3 * n * inner), inner as u64);
        }
    }
    for (outer, n, inner) in [(3, 5, 7), (2, 70, 33), (5, 9, 2), (2, 1000, 3), (1, 9000, 4), (4, 52, 65)] {
        let strides = [(n * inner) as isize, inner as isize, 1];
        let layout = Layout::new(&[outer, n, inner], &strides, &[1]).unwrap();
        taken.extend(check::<COMMUTATIVE>(&layout, &numbers(outer * n * inner), inner as u64));
    }
    let missing = SegmentStrategy::ALL.into_iter().find(|strategy| !taken.contains(strategy));
    assert_eq!(missing, if COMMUTATIVE { None } else { Some(SegmentStrategy::Narrow) });
}

#[test]
fn operands_of_each_segment_reach_every_strategy() {
    rows::<true>();
}

#[test]
fn operands_of_each_segment_keep_their_order() {
    rows::<false>();
}

#[test]
fn segments_of_any_lengths_have_theirs() {
    let lengths: Vec<u64> = (0..700)
        .map(|k| [0, 1, 3, 16, 17, 60, 0, 130][k % 8])
        .chain([513, 9000, 0, 2, 600, 3000, 0])
        .collect();
    let plan = SegmentPlan::from_lengths(&lengths).unwrap();
    let items = numbers::<u32>(plan.items() as usize);
    let beside: Vec<u32> = (0..plan.items()).map(at).collect();
    let summands: Vec<u32> = (0..plan.segments()).map(|k| at(k + 77)).collect();
    for engine in engines() {
        let mut written = vec![0; items.len()];
        let sides = (Side::places(&beside, &plan), Side::segments(&summands));
        let op = Seeded::<true> { seed: UNTOLD };
        let mut reducer =
            engine.segments_beside_writing(op, All, sides, Side::places(&mut written, &plan)).unwrap();
        let found = reducer.reduce_segments(&items, &plan).unwrap();
        // Again, into the same places.
        assert_eq!(reducer.reduce_segments(&items, &plan).unwrap(), found);
        drop(reducer);
        for (k, found) in (0..).zip(found) {
            let range = plan.range(k);
            // Of one segment, so that what is beside is where its items are.
            let shifted = |i: u64| {
                let place = (range.start + i) as usize;
                Parts2::new(items[place], Parts2::new(at(place as u64), at(k + 77)))
            };
            let op = Seeded::<true> { seed: k };
            let expected = fold_like(&op, range.end - range.start, &shifted);
            assert_eq!(found, op.finish(expected), "segment {k}, {range:?}");
            for i in 0..range.end - range.start {
                assert_eq!(written[(range.start + i) as usize], All.map(shifted(i), i), "item {i} of {k}");
            }
        }
    }
}

/// The value of items as those of four bytes have it, whatever theirs are.
fn fold_like(op: &Seeded<true>, n: u64, item: &dyn Fn(u64) -> Item) -> u64 {
    thread_local! {
        static ITEMS: std::cell::RefCell<Vec<Item>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    /// Looks its items up by their index.
    #[derive(Clone, Copy)]
    struct Looked(Seeded<true>);
    // SAFETY: as the operator in it.
    unsafe impl Plain for Looked {}
    impl Monoid for Looked {
        type Item = u32;
        type Acc = u64;
        type Output = u64;
        type Empty = GivesIdentity;
        const COMMUTATIVE: bool = true;
        fn identity(&self) -> u64 {
            self.0.identity()
        }
        fn lift(&self, _: u32, index: u64) -> u64 {
            self.0.lift(ITEMS.with_borrow(|items| items[index as usize]), index)
        }
        fn push(&self, acc: u64, _: u32, index: u64) -> u64 {
            self.0.push(acc, ITEMS.with_borrow(|items| items[index as usize]), index)
        }
        fn combine(&self, left: u64, right: u64) -> u64 {
            self.0.combine(left, right)
        }
        fn finish(&self, acc: u64) -> u64 {
            acc
        }
    }
    ITEMS.set((0..n).map(item).collect());
    tree::fold(&Looked(*op), n, &|_| 0).unwrap_or(op.identity())
}

#[test]
fn sums_of_products_in_any_order() {
    for (m, n) in [(1, 1), (300, 7), (40, 100), (9, 513), (2, 9001)] {
        let items = numbers::<u32>(m * n);
        let factors: Vec<u32> = (0..n as u64).map(at).collect();
        let expected: Vec<u64> = (0..m)
            .map(|k| (0..n).map(|i| items[k * n + i] as u64 * factors[i] as u64).fold(0, u64::wrapping_add))
            .collect();
        for engine in engines() {
            let op = Map::new(Sum::<u64>::new(), Times);
            let mut sums = engine.segments_beside(op, Side::items(&factors)).unwrap();
            assert_eq!(sums.reduce_rows(&items, n as u64).unwrap(), expected);
        }
    }
}

#[test]
fn rows_with_operators_of_their_own() {
    let items = numbers::<u32>(900).into_iter().map(|item| item % 1000).collect::<Vec<_>>();
    let floor = |k: u32| if k.is_multiple_of(3) { 2000 + k } else { 0 };
    let operator = |k: u64| WithInitial::of_item(Max::<u32>::new(), floor(k as u32));
    let expected: Vec<u32> =
        items.chunks(9).zip(0u32..).map(|(row, k)| floor(k).max(*row.iter().max().unwrap())).collect();
    for engine in engines() {
        let reducer = engine.segments(operator(0)).unwrap();
        assert_eq!(reducer.reduce_rows_with(&items, 9, operator).unwrap(), expected);
        assert_eq!(reducer.reduce_rows(&items[..9], 9).unwrap(), expected[..1], "the first one's for all");
    }
    let kernels = engines()[1].segments(Max::<u32>::new()).unwrap_err();
    assert!(matches!(kernels, Error::NoKernel { .. }), "{kernels}");
}

#[test]
fn arrays_that_do_not_fit_are_named() {
    let engine = Engine::cpu();
    let op = || Map::new(Sum::<u64>::new(), Times);
    let (three, items) = ([1u32, 2, 3], [0u32; 8]);
    let mut sums = engine.segments_beside(op(), Side::items(&three[..])).unwrap();
    let unfit = |number, what, has, needed| Error::BesideUnfit { number, what, has, needed };
    assert_eq!(sums.reduce_rows(&items, 4), Err(unfit(0, "items of a segment", 3, 4)));
    assert_eq!(sums.reduce_rows(&items, 2), Err(unfit(0, "items of a segment", 3, 2)));
    assert_eq!(sums.reduce_segments(&items, &SegmentPlan::from_lengths(&[2, 3]).unwrap()), Ok(vec![0, 0]));
    let longer = SegmentPlan::from_lengths(&[2, 4]).unwrap();
    assert_eq!(sums.reduce_segments(&items, &longer), Err(unfit(0, "items of a segment", 3, 4)));
    let mut sums = engine.segments_beside(op(), Side::segments(&three[..])).unwrap();
    assert_eq!(sums.reduce_rows(&items, 4), Err(unfit(0, "segments", 3, 2)));
    let out = |kept, reduced| engine.segments_beside(op(), Side::axes(&three[..], kept, reduced)).map(|_| ());
    let axis = |len, stride| [Axis { len, stride }];
    assert_eq!(out(axis(2, 0), axis(3, 1)), Ok(()));
    assert_eq!(out(axis(2, 1), axis(3, 1)), Err(unfit(0, "places of its axes", 3, 4)));
    assert_eq!(out(axis(2, -1), axis(1, 1)), Err(unfit(0, "places of its axes", 3, u64::MAX)));
    let mut sums = engine.segments_beside(op(), Side::places(&items[..], &longer)).unwrap();
    let other = SegmentPlan::from_lengths(&[4, 2]).unwrap();
    assert_eq!(sums.reduce_segments(&items, &other), Err(Error::BesideOtherSegments { number: 0 }));
    assert_eq!(sums.reduce_rows(&items, 4), Err(Error::BesideOtherSegments { number: 0 }));
    assert_eq!(sums.reduce_segments(&items, &longer), Ok(vec![0, 0]));
}

#[test]
fn places_are_written_once() {
    #[derive(Clone, Copy, Plain)]
    struct Same;
    impl MapFn for Same {
        type From = u32;
        type To = u32;
        fn map(&self, item: u32, _index: u64) -> u32 {
            item
        }
    }
    let engine = Engine::cpu();
    let mut out = [0u32; 12];
    let axis = |len, stride| [Axis { len, stride }];
    let mut shared = |kept, reduced| {
        let side = Side::axes(&mut out[..], kept, reduced);
        engine.segments_writing(Sum::<u32>::new(), Same, side).map(|_| ())
    };
    assert_eq!(shared(axis(3, 1), axis(4, 3)), Ok(()));
    assert_eq!(shared(axis(3, 4), axis(4, 1)), Ok(()));
    assert_eq!(shared(axis(1, 0), axis(4, 1)), Ok(()));
    let steps = |at| Err(Error::SharedPlaces { what: "axis steps", at });
    assert_eq!(shared(axis(3, 2), axis(4, 1)), steps(2));
    assert_eq!(shared(axis(3, 0), axis(4, 1)), steps(0));
    let overlapping = SegmentPlan::from_ranges(&[4, 0, 7], &[8, 3, 9]).unwrap();
    let side = Side::places(&mut out[..], &overlapping);
    let error = engine.segments_writing(Sum::<u32>::new(), Same, side).map(|_| ()).unwrap_err();
    assert_eq!(error, Error::SharedPlaces { what: "segments meet at item", at: 7 });
    let apart = SegmentPlan::from_ranges(&[4, 0, 8], &[8, 3, 9]).unwrap();
    let side = Side::places(&mut out[..], &apart);
    let mut sums = engine.segments_writing(Sum::<u32>::new(), Same, side).unwrap();
    assert_eq!(sums.reduce_segments(&[1, 2, 3, 4, 5, 6, 7, 8, 9], &apart).unwrap(), [26, 6, 9]);
    drop(sums);
    assert_eq!(out, [1, 2, 3, 0, 5, 6, 7, 8, 9, 0, 0, 0]);
}
