//! The kernels for scans in the simulator: every form, around every boundary, under adversarial orders of blocks, against
//! the order that `docs/numerics.md` describes, written once more from there; and the CPU against the same.

use std::{marker::PhantomData, ptr};

use warpfold_gpu_kernels::{
    export::Family,
    key_kernels,
    scan::{
        Rows, ScanParams,
        flags::{flag_pairs, scouts},
        persistent::{stage_bytes, threads},
        row_pairs,
        segments::SegmentParams,
    },
    scan_kernels, scan_line_kernels,
};
use warpfold_host::{
    Engine, Equality, Error, KeyScanner, Scanner, Schedule, SegmentPlan, SimOptions, module::Kernels,
    plan::DeviceFacts,
};
use warpfold_monoid::{
    ArgMax, GivesIdentity, Monoid, Plain, Sum,
    keyed::{Heads, RunEnds, RunTiling},
    scan::{self, Form, Tiling},
};
use warpfold_simt::sim::{self, Buffer, Launch, Options};

/// Neither associative nor commutative, whatever it says: its results show any other grouping, any other order, and `push`
/// in place of `combine`. The accumulator is as many words.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Grouping<T, const COMMUTATIVE: bool, const WORDS: usize>(PhantomData<fn() -> T>);

// SAFETY: no bytes.
unsafe impl<T: Copy + 'static, const C: bool, const W: usize> Plain for Grouping<T, C, W> {}

fn grouping<T, const C: bool, const W: usize>() -> Grouping<T, C, W> {
    Grouping(PhantomData)
}

/// What an item is worth.
trait Worth: Plain {
    fn worth(self) -> u32;
    fn of(number: u32) -> Self;
}

macro_rules! worth {
    ($($type:ty)*) => {$(
        impl Worth for $type {
            fn worth(self) -> u32 { self as u32 }
            fn of(number: u32) -> Self { number as $type }
        }
    )*};
}
worth!(u8 u16 u32 u64);

/// An item that makes no vector.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Triple([u32; 3]);

// SAFETY: repr(C), 12 bytes.
unsafe impl Plain for Triple {}

impl Worth for Triple {
    fn worth(self) -> u32 {
        self.0[0] ^ self.0[1].rotate_left(9) ^ self.0[2].rotate_left(18)
    }
    fn of(number: u32) -> Self {
        Triple([number, number >> 7, number >> 13])
    }
}

/// What a slot of the accumulator has that holds nothing.
const NOTHING: u32 = u32::MAX;

fn mix(a: u32, b: u32) -> u32 {
    (a.rotate_left(7) ^ b).wrapping_mul(0x9e37_79b1).rotate_left(11).wrapping_add(b) & !(1 << 31)
}

impl<T: Worth, const C: bool, const W: usize> Monoid for Grouping<T, C, W> {
    type Item = T;
    type Acc = [u32; W];
    type Output = u64;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = C;

    fn identity(&self) -> [u32; W] {
        [NOTHING; W]
    }

    fn lift(&self, item: T, index: u64) -> [u32; W] {
        core::array::from_fn(|k| mix(mix(item.worth(), index as u32), k as u32))
    }

    fn push(&self, acc: [u32; W], item: T, index: u64) -> [u32; W] {
        assert!(!acc.contains(&NOTHING), "an absent operand");
        acc.map(|acc| mix(mix(item.worth(), acc), index as u32 + 5))
    }

    fn combine(&self, left: [u32; W], right: [u32; W]) -> [u32; W] {
        assert!(!left.contains(&NOTHING) && !right.contains(&NOTHING), "an absent operand");
        core::array::from_fn(|k| mix(left[k], right[(k + 1) % W]))
    }

    fn finish(&self, acc: [u32; W]) -> u64 {
        acc.iter().fold(1, |sum: u64, &word| sum.rotate_left(5).wrapping_mul(3) ^ word as u64)
    }

    fn finish_empty(&self) -> u64 {
        u64::MAX
    }
}

/// Joins intervals that touch, and nothing else: a reorder, a repeat or a gap leaves poison. With `ANY` it is regrouped at
/// will; scans keep the order all the same.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Join<const ANY: bool, const WORDS: usize>;

// SAFETY: no bytes.
unsafe impl<const ANY: bool, const W: usize> Plain for Join<ANY, W> {}

impl<const ANY: bool, const W: usize> Monoid for Join<ANY, W> {
    type Item = [i32; W];
    type Acc = [i32; 2];
    type Output = [i32; 2];
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = ANY;
    const ANY_ORDER: bool = ANY;
    fn identity(&self) -> [i32; 2] {
        [1, 0]
    }
    fn lift(&self, item: [i32; W], _index: u64) -> [i32; 2] {
        [item[0], item[1]]
    }
    fn combine(&self, left: [i32; 2], right: [i32; 2]) -> [i32; 2] {
        if left[1] + 1 == right[0] { [left[0], right[1]] } else { [-9, -9] }
    }
    fn finish(&self, acc: [i32; 2]) -> [i32; 2] {
        acc
    }
}

type Bytes = Grouping<u8, true, 1>;
type Words = Grouping<u32, false, 2>;
type Wide = Grouping<u16, false, 9>;
type Triples = Grouping<Triple, true, 3>;
type Same = Grouping<u64, false, 1>;

scan_kernels! {
    static TABLE:
    bytes => Bytes,
    words => Words,
    wide => Wide,
    triples => Triples,
    same => Same,
    join => Join<false, 2>,
    join_any => Join<true, 2>,
    join_wide => Join<false, 64>,
    join_wide_any => Join<true, 64>,
    sum => Sum<u32>,
    argmax => ArgMax<f32>,
}

scan_line_kernels! {
    static LINES:
    bytes_lines => Bytes,
    words_lines => Words,
    triples_lines => Triples,
    same_lines => Same,
    sum_lines => Sum<u32>,
    join_lines => Join<true, 64>,
}

key_kernels! {
    static KEYS:
    ends_by_i32 => (i32, RunEnds),
    ends_by_flag => (u8, RunEnds, Heads),
}

fn engine(seed: u64) -> Engine {
    resident(seed, 2 + seed as usize % 5)
}

fn resident(seed: u64, resident_blocks: usize) -> Engine {
    let schedule = Schedule::Concurrent { seed };
    let engine = Engine::sim_with(SimOptions { schedule, resident_blocks, ..SimOptions::default() });
    engine.load(Kernels { table: &TABLE, modules: &[] });
    engine.load(Kernels { table: &LINES, modules: &[] });
    engine.load(Kernels { table: &KEYS, modules: &[] });
    // Many blocks, or two that scan tile after tile.
    let mut facts = DeviceFacts::H100;
    if !seed.is_multiple_of(2) {
        facts.multiprocessors = 1;
    }
    engine.with_facts(facts)
}

fn numbers<T: Worth>(count: usize) -> Vec<T> {
    (0..count as u32).map(|i| T::of((i + 1).wrapping_mul(0xd134_2543) >> 3)).collect()
}

/// `docs/numerics.md`, from the definition of each quantity rather than by walking: slow, and shares nothing with what it
/// tests but the tiling.
fn defined<Op: Monoid>(op: &Op, items: &[Op::Item], form: Form, initial: Option<Op::Acc>) -> Vec<Op::Output> {
    let (n, tiling) = (items.len(), Tiling::of::<Op>());
    let (strip, warp, tile) = (tiling.strip as usize, tiling.warp() as usize, tiling.tile() as usize);
    let index = |p: usize| if form.reverse { n - 1 - p } else { p };
    let combine = |left, right| if form.reverse { op.combine(right, left) } else { op.combine(left, right) };
    let after = |before: Option<Op::Acc>, value| before.map_or(value, |before| combine(before, value));
    let push = |acc, p: usize| {
        let (item, index) = (items[index(p)], index(p) as u64);
        if form.reverse && !Op::COMMUTATIVE {
            op.combine(op.lift(item, index), acc)
        } else {
            op.push(acc, item, index)
        }
    };
    let lift = |p: usize| op.lift(items[index(p)], index(p) as u64);
    // Hillis and Steele, each value anew from the round before.
    let scanned = |mut values: Vec<Op::Acc>| {
        for distance in [1, 2, 4, 8, 16] {
            values = (0..values.len())
                .map(|i| if i >= distance { combine(values[i - distance], values[i]) } else { values[i] })
                .collect();
        }
        values
    };
    let strips = |from: usize| -> Vec<Op::Acc> {
        let end = n.min(from + warp);
        scanned((from..end).step_by(strip).map(|s| (s + 1..end.min(s + strip)).fold(lift(s), push)).collect())
    };
    let (mut results, mut before_tile) = (Vec::new(), initial);
    let (mut before_group, mut group, last_warp) = (initial, Vec::new(), tile / warp - 1);
    for t in (0..n).step_by(tile) {
        let within: Vec<_> = (t..n.min(t + tile)).step_by(warp).map(strips).collect();
        let warps = scanned(within.iter().map(|strips| strips[strips.len() - 1]).collect());
        group.push(warps[warps.len() - 1]);
        let behind_tile = after(before_group, scanned(group.clone())[group.len() - 1]);
        if group.len() == 32 {
            (before_group, group) = (Some(behind_tile), Vec::new());
        }
        for (w, strips) in within.iter().enumerate() {
            let before_warp = if w == 0 { before_tile } else { Some(after(before_tile, warps[w - 1])) };
            for k in 0..strips.len() {
                let first = t + w * warp + k * strip;
                let mut before = if k == 0 { before_warp } else { Some(after(before_warp, strips[k - 1])) };
                for p in first..n.min(first + strip) {
                    let with = if p + 1 < first + strip {
                        before.map_or_else(|| lift(p), |before| push(before, p))
                    } else if k < 31 {
                        after(before_warp, strips[k])
                    } else {
                        if w == last_warp { behind_tile } else { after(before_tile, warps[w]) }
                    };
                    results.push(match before {
                        _ if !form.exclusive => op.finish(with),
                        Some(before) => op.finish(before),
                        None => op.finish_empty(),
                    });
                    before = Some(with);
                }
            }
        }
        before_tile = Some(behind_tile);
    }
    if form.reverse {
        results.reverse();
    }
    results
}

const FORMS: [Form; 4] = [
    Form { exclusive: false, reverse: false },
    Form { exclusive: true, reverse: false },
    Form { exclusive: false, reverse: true },
    Form { exclusive: true, reverse: true },
];

fn formed<Op: Monoid>(scanner: &Scanner<Op>, form: Form, initial: Option<Op::Acc>) -> Scanner<Op> {
    let mut scanner = scanner.clone();
    if form.exclusive {
        scanner = scanner.exclusive();
    }
    if form.reverse {
        scanner = scanner.reverse();
    }
    initial.map_or(scanner.clone(), |initial| scanner.with_initial(initial))
}

/// Around every boundary.
fn lengths(tiling: Tiling) -> Vec<usize> {
    let (strip, warp, tile) = (tiling.strip as usize, tiling.warp() as usize, tiling.tile() as usize);
    vec![
        0,
        1,
        2,
        strip,
        strip + 1,
        warp - 1,
        warp,
        warp + 1,
        2 * warp + strip + 3,
        tile - 1,
        tile,
        tile + 1,
        3 * tile + warp + 5,
        // Two groups of tiles, and some.
        70 * tile + 9,
    ]
}

fn check<Op: Monoid<Item: Worth>>(op: Op)
where
    Op::Output: PartialEq + core::fmt::Debug,
{
    let cpu = Engine::cpu().scanner(op).unwrap();
    let initial = op.lift(Op::Item::of(77), 99);
    for (k, n) in lengths(Tiling::of::<Op>()).into_iter().enumerate() {
        // From a misaligned start, between what must not be touched: the simulator knows the slice alone.
        let offset = k % 5;
        let all = numbers::<Op::Item>(n + offset);
        let items = &all[offset..];
        for form in FORMS {
            for initial in [None, Some(initial)] {
                let many = n > 9 * Tiling::of::<Op>().tile() as usize;
                if initial.is_some() && k % 3 != 0 || many && (form.exclusive || initial.is_some()) {
                    continue;
                }
                let expected = defined(&op, items, form, initial);
                let seed = (k * 7 + form.exclusive as usize) as u64;
                let sim = formed(&engine(seed).scanner(op).unwrap(), form, initial);
                let mut room = vec![op.finish_empty(); n + 3];
                sim.scan_into(items, &mut room[1..n + 1]).unwrap();
                assert!(room[1..n + 1] == expected, "{n} items, {form:?}: the simulator");
                assert!(
                    formed(&cpu, form, initial).scan(items).unwrap() == expected,
                    "{n} items, {form:?}: the CPU"
                );
                scan::scan(&op, items, form, initial, &mut room[..n]);
                assert!(room[..n] == expected, "{n} items, {form:?}: the definition");
            }
        }
    }
}

#[test]
fn bytes_to_wide_results() {
    check::<Bytes>(grouping());
}

#[test]
fn words_whose_order_matters() {
    check::<Words>(grouping());
}

#[test]
fn wide_accumulators() {
    check::<Wide>(grouping());
}

#[test]
fn items_that_make_no_vector() {
    check::<Triples>(grouping());
}

#[test]
fn results_in_the_place_of_items() {
    let op: Same = grouping();
    let (cpu, tile) = (Engine::cpu().scanner(op).unwrap(), Tiling::of::<Same>().tile() as usize);
    for n in [0, 1, 100, tile, 3 * tile + 11] {
        let items: Vec<u64> = numbers(n);
        for form in FORMS {
            let expected = defined(&op, &items, form, None);
            for scanner in [&cpu, &engine(n as u64).scanner(op).unwrap()] {
                let mut all = [&[7, 7, 7], &items[..], &[7, 7]].concat();
                formed(scanner, form, None).scan_in_place(&mut all[3..n + 3]).unwrap();
                assert!(all[3..n + 3] == expected, "{n} items, {form:?}, {scanner:?}");
                assert!(all[..3] == [7; 3] && all[n + 3..] == [7; 2]);
            }
        }
    }
}

#[test]
fn a_result_depends_on_no_item_behind_it_and_exclusive_ones_are_inclusive_ones() {
    let op: Words = grouping();
    let items: Vec<u32> = numbers(4 * Tiling::of::<Words>().tile() as usize);
    for scanner in [Engine::cpu().scanner(op).unwrap(), engine(3).scanner(op).unwrap()] {
        let all = scanner.scan(&items).unwrap();
        assert!(scanner.exclusive().scan(&items).unwrap()[1..] == all[..items.len() - 1]);
        for n in [1, 31, 1000, 5000, 12_000] {
            assert!(scanner.scan(&items[..n]).unwrap() == all[..n], "{n} items");
        }
    }
}

/// NC06 of `cases.json`: intervals that touch, from the left and from the right.
#[test]
fn no_operand_is_lost_repeated_or_moved() {
    let tile = Tiling::of::<Join<false, 2>>().tile() as usize;
    for (seed, n) in [(1, 571), (2, 600), (3, 40 * tile + 17)] {
        touching(Join::<false, 2>, &resident(seed, 3), n);
        touching(Join::<true, 2>, &resident(seed, 3), n);
    }
}

/// All tiles that there is room for say what they have before the first one does: in any order they look back over more
/// than two windows of 32, in the fixed one over more than two groups.
#[test]
fn nor_where_the_first_tile_is_the_last_to_tell() {
    let tile = Tiling::of::<Join<true, 64>>();
    assert_eq!((tile.threads, tile.tile()), (64, 128), "few stacks");
    let options =
        SimOptions { schedule: Schedule::Late { seed: 5 }, resident_blocks: 128, ..SimOptions::default() };
    let engine = Engine::sim_with(options);
    engine.load(Kernels { table: &TABLE, modules: &[] });
    touching(Join::<true, 64>, &engine, 131 * 128 + 9);
    touching(Join::<false, 64>, &engine, 131 * 128 + 9);
}

fn touching<const ANY: bool, const W: usize>(op: Join<ANY, W>, engine: &Engine, n: usize) {
    let items: Vec<[i32; W]> = (0..n as i32).map(|i| [i; W]).collect();
    let scanner = engine.scanner(op).unwrap();
    let left = scanner.scan(&items).unwrap();
    assert!(left.iter().enumerate().all(|(i, &found)| found == [0, i as i32]), "{n} items");
    // From the right items that commute are pushed as from the left.
    if !ANY {
        let right = scanner.reverse().scan(&items).unwrap();
        let expected = |i: usize| [i as i32, n as i32 - 1];
        assert!(right.iter().enumerate().all(|(i, &found)| found == expected(i)), "{n} items");
    }
    let initial = scanner.with_initial([-3, -1]).scan(&items).unwrap();
    assert!(initial.iter().enumerate().all(|(i, &found)| found == [-3, i as i32]), "{n} items");
}

/// Runs begin where `heads` says, whatever kernels find them.
fn check_runs<K: Plain, E: Equality<K>>(
    engine: &Engine,
    find: impl Fn(&Scanner<Words>) -> KeyScanner<K, Words, E>,
    keys: &[K],
    heads: &[bool],
) {
    let n = keys.len();
    let scanner = engine.scanner::<Words>(grouping()).unwrap();
    let found = find(&scanner).plan(keys).unwrap();
    assert!(found == SegmentPlan::from_heads(heads), "{n} keys: {engine:?}");
    let (items, scanner) = (numbers(n), scanner.reverse().exclusive());
    let expected = scanner.scan_segments(&items, &found).unwrap();
    assert!(find(&scanner).scan(keys, &items).unwrap() == expected, "{n} keys: {engine:?}");
}

#[test]
fn runs_of_equal_keys_and_those_that_flags_begin() {
    let tiling = RunTiling::of::<i32, RunEnds>();
    let (strip, warp, tile) = (tiling.strip as usize, tiling.warp() as usize, tiling.tile() as usize);
    for (k, n) in
        [0, 1, strip + 1, warp, warp + 1, tile - 1, tile, 3 * tile + warp + 5].into_iter().enumerate()
    {
        // A run for each key, some of them longer than a tile, and one run.
        for shift in [0, 3, 13, 31] {
            // Neighbouring runs differ where their numbers do, in the lowest byte.
            let keys: Vec<i32> = (0..n).map(|i| ((i >> shift) * 97 + i / 5000) as i32).collect();
            let heads: Vec<bool> = (0..n).map(|i| i == 0 || keys[i] != keys[i - 1]).collect();
            let narrow: Vec<u8> = keys.iter().map(|&key| key as u8).collect();
            let begins: Vec<bool> = (0..n).map(|i| i == 0 || narrow[i] != narrow[i - 1]).collect();
            // Of the first item the flag does not matter.
            let flags: Vec<u8> =
                (0..n).map(|i| if i > 0 && heads[i] { 1 + (i % 255) as u8 } else { 0 }).collect();
            for engine in [Engine::cpu(), engine(k as u64 + shift as u64)] {
                check_runs(&engine, |scanner| scanner.by_key().unwrap(), &keys, &heads);
                check_runs(&engine, |scanner| scanner.by_key().unwrap(), &narrow, &begins);
                check_runs(&engine, |scanner| scanner.by_heads().unwrap(), &flags, &heads);
            }
        }
    }
    let sum = engine(1).scanner(Sum::<u32>::new()).unwrap();
    let Error::NoKernel { line, list, .. } = sum.by_key::<i64>().unwrap_err() else { panic!("no kernel") };
    assert_eq!((line.as_str(), list), ("my_operator_by_key => (i64, RunEnds),", "key_kernels!"));
    let error = sum.by_key().unwrap().scan(&[1, 2], &[3]).unwrap_err();
    assert_eq!(error, Error::ColumnLengths { first: 2, other: 1 });
}

/// Results that make no vector.
#[test]
fn running_maxima_with_their_places() {
    for n in [8, 500, 9000] {
        let items: Vec<f32> = numbers::<u32>(n).into_iter().map(|item| (item % 1000) as f32).collect();
        for scanner in
            [Engine::cpu().scanner(ArgMax::<f32>::new()).unwrap(), engine(1).scanner(ArgMax::new()).unwrap()]
        {
            let found = scanner.scan(&items).unwrap();
            let mut best = 0;
            for (i, found) in found.iter().enumerate() {
                if items[i] > items[best] {
                    best = i;
                }
                assert_eq!(
                    (found.value(), found.index()),
                    (items[best], best as u64),
                    "{n} items, {scanner:?}"
                );
            }
        }
    }
}

#[test]
fn rows_and_axes_have_the_bits_of_lines_alone() {
    fn check<Op: Monoid<Item: Worth>>(op: Op, shapes: &[(usize, usize)])
    where
        Op::Output: PartialEq + std::fmt::Debug,
    {
        for scanner in [Engine::cpu().scanner(op).unwrap(), engine(5).scanner(op).unwrap()] {
            for &(m, n) in shapes {
                let items: Vec<Op::Item> = numbers(m * n);
                for form in FORMS {
                    let scanner = formed(&scanner, form, None);
                    let expected: Vec<Op::Output> =
                        items.chunks(n).flat_map(|row| defined(&op, row, form, None)).collect();
                    assert!(
                        scanner.scan_rows(&items, n as u64).unwrap() == expected,
                        "{m} rows of {n}, {form:?}"
                    );
                }
            }
            let error = scanner.scan_rows(&numbers(3), 2).unwrap_err();
            assert_eq!(error, Error::RaggedRows { items: 3, n: 2 });
        }
    }
    let tile = Tiling::of::<Words>().tile() as usize;
    check::<Words>(grouping(), &[(3, 1), (5, 33), (2, tile), (3, 2 * tile + 9)]);
    // By blocks that stay, from aligned starts: what is left of the last tile of a row gives way to the first of another.
    check::<Same>(grouping(), &[(3, 8 * Tiling::of::<Same>().tile() as usize - 100)]);
}

#[test]
fn segments_have_the_bits_of_segments_alone() {
    let op: Words = grouping();
    let lengths = [3, 0, 700, 700, 700, 1, 1, 9000, 0, 0, 40];
    let items: Vec<u32> = numbers(lengths.iter().sum::<usize>());
    let plan = SegmentPlan::from_lengths(&lengths.map(|n| n as u64)).unwrap();
    let mut rest = &items[..];
    let mut expected = Vec::new();
    for n in lengths {
        let (segment, behind) = rest.split_at(n);
        expected.extend(defined(&op, segment, Form::default(), None));
        rest = behind;
    }
    for scanner in [Engine::cpu().scanner(op).unwrap(), engine(6).scanner(op).unwrap()] {
        assert!(scanner.scan_segments(&items, &plan).unwrap() == expected, "{scanner:?}");
        let error = scanner.scan_segments(&items[1..], &plan).unwrap_err();
        assert!(matches!(error, Error::SegmentOutOfRange { .. }), "{error}");
    }
}

#[test]
fn what_earlier_launches_left_is_never_taken_for_this_one_s() {
    let tiling = Tiling::of::<Sum<u32>>();
    let n = 6 * tiling.tile();
    let items: Vec<u32> = numbers(n as usize);
    let export = TABLE.find_in::<Sum<u32>>(Family::Scans).unwrap();
    let pairs = row_pairs(4, 6) as usize + 5;
    let mut records = vec![[0_u64; 2]; pairs];
    // The last two epochs, and the first ones after them.
    let mut counter = [((1_u64 << 31) - 3) << 32];
    // Long and short ones in turn: the short ones leave old records behind theirs.
    for (launch, tiles) in [6, 2, 6, 3, 2, 6, 5, 6].into_iter().enumerate() {
        // A tile to a block, or tile after tile to fewer or as many; those after one another too.
        let (kernel, blocks) = [
            ("forward", tiles),
            ("persistent_forward", 2),
            ("persistent_forward", tiles),
            ("forward", tiles),
        ][launch % 4];
        let entry = export.entries.iter().find(|entry| entry.kernel == kernel).unwrap();
        let len = tiles as u64 * tiling.tile();
        let (items, mut sums) = (&items[..len as usize], vec![0_u32; len as usize]);
        let params = ScanParams {
            input: items.as_ptr(),
            output: sums.as_mut_ptr(),
            n: len,
            rows: Rows { stride: 1, inner_stride: 1, outer_stride: 0, inner: 1 },
            counter: counter.as_mut_ptr(),
            records: records.as_mut_ptr(),
            capacity: pairs as u64,
            tiles,
            total: tiles,
            exclusive: 0,
            has_initial: 1,
            // Another one each time, so that stale sums are wrong sums.
            initial: launch as u32,
            op: Sum::<u32>::new(),
        };
        let options = Options {
            schedule: Schedule::Concurrent { seed: launch as u64 },
            resident_blocks: 3,
            ..Options::default()
        }
        .buffer(Buffer::read_only("input", items))
        .buffer(Buffer::writable("output", &mut sums))
        .buffer(Buffer::writable("counter", &mut counter))
        .buffer(Buffer::writable("records", &mut records));
        let address = (&raw const params).expose_provenance();
        let shape = if kernel == "forward" {
            Launch::new(kernel, blocks, tiling.threads)
        } else {
            Launch::new(kernel, blocks, threads::<Sum<u32>>()).with_dynamic_shared(stage_bytes::<Sum<u32>>())
        };
        sim::launch(&shape, &options, || {
            // SAFETY: the parameters of that kernel, which outlive the launch.
            unsafe { (entry.simulate)(ptr::with_exposed_provenance(address)) }
        })
        .unwrap();
        let mut sum = launch as u32;
        for (i, &item) in items.iter().enumerate() {
            sum = sum.wrapping_add(item);
            assert_eq!(sums[i], sum, "launch {launch}, item {i}");
        }
        let epoch = ((1_u64 << 31) - 3 + launch as u64 + 1) % ((1 << 31) - 1);
        assert_eq!(counter, [epoch << 32], "launch {launch}");
    }
}

/// However the items are cut: to the bit what the array's scan gives.
#[test]
fn chunks_have_the_bits_of_the_array() {
    fn check<Op: Monoid<Item: Worth>>(op: Op)
    where
        Op::Output: PartialEq + std::fmt::Debug,
    {
        let tile = Tiling::of::<Op>().tile() as usize;
        let items = numbers::<Op::Item>(34 * tile + 77);
        let scanner = Engine::cpu().scanner(op).unwrap();
        let initial = op.lift(items[0], 7);
        for scanner in [scanner.clone(), scanner.exclusive(), scanner.with_initial(initial).exclusive()] {
            let expected = scanner.scan(&items).unwrap();
            for cuts in [vec![tile], vec![1, 0, tile - 1, 3, 2 * tile, tile / 2], vec![33 * tile + 1]] {
                let mut rest = &items[..];
                let chunks = cuts.iter().cycle().map_while(|&cut| {
                    let chunk;
                    (chunk, rest) = rest.split_at(cut.min(rest.len()));
                    (!chunk.is_empty() || cut == 0).then_some(chunk)
                });
                let found: Result<Vec<_>, _> = scanner.scan_chunks(chunks).unwrap().collect();
                let found = found.unwrap().concat();
                let differs = found.iter().zip(&expected).position(|(a, b)| a != b);
                assert_eq!((differs, found.len()), (None, expected.len()), "{cuts:?}");
            }
        }
        let error = scanner.reverse().scan_chunks([&items]).err().unwrap();
        assert_eq!(error, Error::ReverseOfChunks);
    }
    check(grouping::<u32, false, 2>());
    check(Sum::<u32>::new());
}

#[test]
fn lengths_that_differ_are_refused() {
    let scanner = Engine::cpu().scanner(Sum::<u32>::new()).unwrap();
    let error = scanner.scan_into(&[1, 2, 3], &mut [0; 2]).unwrap_err();
    assert_eq!(error, Error::ResultsLength { items: 3, room: 2 });
    let error = Engine::sim().scanner(Sum::<u32>::new()).unwrap_err();
    assert!(
        error.to_string().contains("`my_operator_scan => Sum<u32, u32>,` to the `scan_kernels!`"),
        "{error}"
    );
}

/// Scans with and without a start value, in every form, and compares with segments scanned alone.
fn check_lines<Op: Monoid<Item: Worth>>(
    op: Op,
    what: &str,
    lines: &[Vec<Op::Item>],
    forms: &[Form],
    scan: impl Fn(&Scanner<Op>) -> Vec<Vec<Op::Output>>,
) where
    Op::Output: PartialEq + core::fmt::Debug,
{
    let start = op.lift(Op::Item::of(77), 99);
    for (k, &form) in forms.iter().enumerate() {
        let initial = (k % 2 == 1).then_some(start);
        let seed = (lines.len() * 31 + k) as u64;
        let found = scan(&formed(&engine(seed).scanner(op).unwrap(), form, initial));
        for (i, (line, found)) in lines.iter().zip(&found).enumerate() {
            let expected = defined(&op, line, form, initial);
            let differs = found.iter().zip(&expected).position(|(found, expected)| found != expected);
            assert_eq!(differs, None, "{what}, {form:?}, start {}, line {i} of {}", k % 2, line.len());
        }
    }
}

#[test]
fn short_rows_have_the_bits_of_rows_alone() {
    fn check<Op: Monoid<Item: Worth>>(op: Op, factors: &[(usize, usize)])
    where
        Op::Output: PartialEq + core::fmt::Debug,
    {
        for (k, &(m, n)) in factors.iter().enumerate() {
            let all = numbers::<Op::Item>(m * n + k % 4);
            let items = &all[k % 4..];
            let rows: Vec<_> = items.chunks(n).map(<[_]>::to_vec).collect();
            check_lines(op, &format!("rows of {n}"), &rows, &FORMS[k % 2..][..3], |scanner| {
                let mut room = vec![op.finish_empty(); m * n + 3];
                let place = &mut room[k % 3..][..m * n];
                place.copy_from_slice(&scanner.scan_rows(items, n as u64).unwrap());
                place.chunks(n).map(<[_]>::to_vec).collect()
            });
        }
    }
    // A strip is 12 items, a warp 384, a tile 3072.
    let words = [
        (4000, 1),
        (1700, 2),
        (300, 11),
        (600, 12),
        (300, 13),
        (130, 24),
        (140, 25),
        (20, 383),
        (9, 384),
        (9, 385),
        (5, 769),
        (3, 1535),
        (5, 1536),
    ];
    check::<Words>(grouping(), &words);
    check::<Bytes>(grouping(), &[(700, 7), (90, 48), (5, 700)]);
    check::<Triples>(grouping(), &[(700, 1), (90, 31)]);
    check::<Same>(grouping(), &[(700, 3), (40, 100)]);
}

#[test]
fn segments_of_any_lengths_in_one_launch() {
    let op: Words = grouping();
    let tile = Tiling::of::<Words>().tile() as usize;
    let mixed: Vec<usize> =
        (0..400).map(|i: usize| [0, 1, 2, 30, 7, 12, 13, 100, 0, 600][i * i % 10] + i % 3).collect();
    let long = [5, 3 * tile + 100, 0, 0, 40 * tile + 3, 1, tile, tile + 1, 2 * tile, 17, 900, tile - 1, 0];
    let cell = tile - tile / 8;
    let at_cells = [cell, cell, 2 * cell, cell - 1, 1, 3 * cell, 1, tile, cell / 2, cell / 2, tile];
    let halves = [900, 1000, 1100, 1200, 1300, 1400, 1500, 1600, 1700, 1800, 2000, 2500, 2700];
    for (k, lengths) in [&mixed[..], &long, &at_cells, &halves, &[0, 0, 5, 0]].into_iter().enumerate() {
        // Behind and before what belongs to no segment.
        let total: usize = lengths.iter().sum();
        let all = numbers::<u32>(total + 7 + k);
        let mut offsets = vec![3 + k as u64];
        lengths.iter().for_each(|&n| offsets.push(offsets[offsets.len() - 1] + n as u64));
        let plan = SegmentPlan::from_offsets(&offsets).unwrap();
        let lines: Vec<Vec<u32>> =
            offsets.windows(2).map(|ends| all[ends[0] as usize..ends[1] as usize].to_vec()).collect();
        let forms = if k == 1 { &FORMS[1..3] } else { &FORMS };
        check_lines(op, &format!("segments {k}"), &lines, forms, |scanner| {
            let found = scanner.scan_segments(&all, &plan).unwrap();
            assert_eq!(found.len(), total);
            offsets
                .windows(2)
                .map(|ends| found[(ends[0] - offsets[0]) as usize..(ends[1] - offsets[0]) as usize].to_vec())
                .collect()
        });
    }
}

/// A launch for segments in any order.
#[derive(Clone, Copy, Debug)]
struct Flagged {
    form: Form,
    initial: Option<u32>,
    /// Blocks that search for the others.
    scouts: u32,
    in_place: bool,
    schedule: Schedule,
    /// How many blocks are on the device at once.
    resident: usize,
    /// Items and results begin so far behind a vector.
    skip: usize,
}

/// Sums of segments in one launch, which have to be right where segments lie, and nowhere else written.
fn check_flagged(what: &str, offsets: &[u64], len: usize, how: Flagged) {
    const UNTOUCHED: u32 = 0xdead_beef;
    let Flagged { form, initial, scouts, in_place, schedule, resident, skip } = how;
    let tiling = Tiling::of::<Sum<u32>>();
    let tiles = tiling.tiles(len as u64);
    let all: Vec<u32> = numbers(len + skip);
    let items = &all[skip..];
    let mut room = if in_place { all.clone() } else { vec![UNTOUCHED; len + skip] };
    let mut expected = room[skip..].to_vec();
    for ends in offsets.windows(2) {
        let mut sum = initial.unwrap_or(0);
        let segment = ends[0] as usize..ends[1] as usize;
        let mut add = |i: usize| {
            let before = sum;
            sum = sum.wrapping_add(items[i]);
            expected[i] = if form.exclusive { before } else { sum };
        };
        if form.reverse { segment.rev().for_each(&mut add) } else { segment.for_each(&mut add) }
    }
    let entries = &LINES.find_in::<Sum<u32>>(Family::ScanLines).unwrap().entries;
    let name = if form.reverse { "segments_reverse" } else { "segments_forward" };
    let entry = entries.iter().find(|entry| entry.kernel == name).unwrap();
    let mut records = vec![[0_u64; 2]; flag_pairs(4, tiles) as usize];
    let (mut counter, count) = ([7_u64 << 32], [offsets.len() as u64 - 1]);
    let output = room[skip..].as_mut_ptr();
    let params = SegmentParams {
        input: if in_place { output.cast_const() } else { items.as_ptr() },
        output,
        len: len as u64,
        offsets: offsets.as_ptr(),
        count: if in_place { count.as_ptr() } else { ptr::null() },
        segments: if in_place { 0 } else { count[0] },
        n: 0,
        counter: counter.as_mut_ptr(),
        capacity: records.len() as u64,
        records: records.as_mut_ptr(),
        rows: scouts,
        exclusive: form.exclusive.into(),
        has_initial: initial.is_some().into(),
        unit: 0,
        initial: initial.unwrap_or(0),
        op: Sum::<u32>::new(),
    };
    let mut options = Options { schedule, resident_blocks: resident, ..Options::default() }
        .buffer(Buffer::read_only("offsets", offsets))
        .buffer(Buffer::read_only("count", &count))
        .buffer(Buffer::writable("output", &mut room[skip..]))
        .buffer(Buffer::writable("counter", &mut counter))
        .buffer(Buffer::writable("records", &mut records));
    if !in_place {
        options = options.buffer(Buffer::read_only("input", items));
    }
    let address = (&raw const params).expose_provenance();
    sim::launch(&Launch::new(name, tiles as u32 + scouts, tiling.threads), &options, || {
        // SAFETY: the parameters of that kernel, which outlive the launch.
        unsafe { (entry.simulate)(ptr::with_exposed_provenance(address)) }
    })
    .unwrap();
    let differs = (0..len).find(|&i| room[skip + i] != expected[i]);
    assert_eq!(differs, None, "{what}: {len} items, {how:?}");
    assert_eq!(counter, [8 << 32], "{what}");
}

#[test]
fn segments_in_any_order_are_one_scan_of_flags() {
    let tiling = Tiling::of::<Sum<u32>>();
    let (strip, warp, tile) = (tiling.strip as u64, tiling.warp() as u64, tiling.tile());
    let many: Vec<u64> =
        (0..3000).map(|i: u64| [0, 1, 2, 0, 7, 12, 0, 3, 5, 1][(i * i % 10) as usize]).collect();
    let around: Vec<u64> = (1..6).flat_map(|k| [k * tile - 1, k * tile, k * tile + 1]).collect();
    let lines: Vec<u64> = (1..40).flat_map(|k| [k * strip - 1, k * strip, k * warp, k * warp + 1]).collect();
    let from_lengths = |first: u64, lengths: &[u64]| {
        let mut offsets = vec![first];
        lengths.iter().for_each(|n| offsets.push(offsets[offsets.len() - 1] + n));
        offsets
    };
    let sorted = |mut ends: Vec<u64>, first: u64, last: u64| {
        ends.retain(|&end| end > first && end < last);
        ends.extend([first, last]);
        ends.sort_unstable();
        ends
    };
    // Where segments begin, and items: before the first and behind the last there may be others.
    let cases = [
        ("many", from_lengths(3, &many), 12000),
        ("around tiles", sorted(around, 0, 6 * tile), 6 * tile),
        ("around strips and warps", sorted(lines, 5, 5 * tile - 9), 5 * tile),
        ("one", vec![0, 5 * tile + 7], 5 * tile + 7),
        ("one among others", vec![2 * tile - 1, 2 * tile - 1, 4 * tile + 1, 4 * tile + 1], 5 * tile),
        (
            "a giant behind many",
            from_lengths(0, &[&[1; 900][..], &[0; 700], &[4 * tile], &[2, 0]].concat()),
            5 * tile,
        ),
        ("nothing", vec![tile + 9; 5], 2 * tile),
        ("one item", vec![tile, tile + 1], 2 * tile),
        ("a tile", vec![tile, 2 * tile], 3 * tile),
        ("no segment", vec![4], 900),
    ];
    let mut seed = 0;
    for (what, offsets, len) in &cases {
        for form in FORMS {
            seed += 1;
            let how = Flagged {
                form,
                initial: (seed % 2 == 1).then_some(1000 + seed as u32),
                scouts: seed as u32 % 3 / 2,
                in_place: seed % 5 > 2,
                schedule: if seed % 4 == 0 { Schedule::Late { seed } } else { Schedule::Concurrent { seed } },
                resident: 2 + seed as usize % 5,
                skip: [0, 0, 1, 3][seed as usize % 7 % 4],
            };
            check_flagged(what, offsets, *len as usize, how);
        }
    }
    assert_eq!((scouts::<Sum<u32>>(512), scouts::<Sum<u32>>(513), scouts::<Sum<u32>>(1024)), (0, 3, 5));
}

/// A giant among others, whose tiles look back over two windows of 32, with all that there is room for telling what they have before
/// the first one does.
#[test]
fn a_segment_of_many_tiles_begins_late() {
    let options =
        SimOptions { schedule: Schedule::Late { seed: 5 }, resident_blocks: 128, ..SimOptions::default() };
    let engine = Engine::sim_with(options);
    engine.load(Kernels { table: &TABLE, modules: &[] });
    engine.load(Kernels { table: &LINES, modules: &[] });
    let scanner = engine.scanner(Join::<true, 64>).unwrap();
    let lengths = [1, 126, 0, 2, 127, 97 * 128, 5, 0, 300, 128, 7];
    let plan = SegmentPlan::from_lengths(&lengths).unwrap();
    let items: Vec<[i32; 64]> = (0..lengths.iter().sum::<u64>() as i32).map(|i| [i; 64]).collect();
    let (found, later) = (
        scanner.scan_segments(&items, &plan).unwrap(),
        scanner.exclusive().scan_segments(&items, &plan).unwrap(),
    );
    let mut begin = 0;
    for n in lengths {
        for i in begin..begin + n as i32 {
            assert_eq!(found[i as usize], [begin, i], "{n} items from {begin}");
            let before = if i == begin { [1, 0] } else { [begin, i - 1] };
            assert_eq!(later[i as usize], before, "{n} items from {begin}");
        }
        begin += n as i32;
    }
}

#[test]
fn columns_have_the_bits_of_columns_alone() {
    fn check<Op: Monoid<Item: Worth>>(op: Op, shapes: &[(usize, usize, usize)])
    where
        Op::Output: PartialEq + core::fmt::Debug,
    {
        for (k, &(outer, n, inner)) in shapes.iter().enumerate() {
            let items = numbers::<Op::Item>(outer * n * inner);
            let at = |line: usize, i: usize| line / inner * n * inner + i * inner + line % inner;
            let lines: Vec<Vec<_>> =
                (0..outer * inner).map(|line| (0..n).map(|i| items[at(line, i)]).collect()).collect();
            let forms = if n > 3000 { &FORMS[1..3] } else { &FORMS[..] };
            check_lines(op, &format!("{k}: {outer} x {n} x {inner}"), &lines, forms, |scanner| {
                let found = scanner.scan_lines(&items, n as u64, inner as u64).unwrap();
                (0..outer * inner).map(|line| (0..n).map(|i| found[at(line, i)]).collect()).collect()
            });
        }
    }
    // A strip is 12 items, a window 384, a tile 3072.
    let shapes = [
        (3, 1, 5),
        (300, 4, 3),
        (2, 12, 40),
        (2, 13, 70),
        (1, 100, 33),
        (3, 384, 2),
        (2, 385, 3),
        (1, 1000, 17),
        (2, 3072, 2),
        (1, 3 * 3072 + 500, 5),
        (1, 34 * 3072 + 7, 1 + 1),
    ];
    check::<Words>(grouping(), &shapes);
    check::<Bytes>(grouping(), &[(2, 50, 3), (1, 1500, 4)]);
    check::<Triples>(grouping(), &[(2, 9, 3), (1, 300, 4)]);
}
