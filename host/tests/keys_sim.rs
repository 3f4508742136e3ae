//! The kernels for reductions by tag and by key in the simulator, and the CPU, against the order that the documentation describes,
//! written once more from there: every kind of operator, around every boundary, under adversarial orders of blocks.

#[path = "keys/gathered.rs"]
mod gathered;
#[path = "keys/groups.rs"]
mod groups;

use std::marker::PhantomData;

use warpfold_gpu_kernels::{export::Family, key_kernels, sort_kernels, tag_kernels};
use warpfold_host::{Engine, Error, Schedule, SimOptions, Tag, TagReducer, module::Kernels};
use warpfold_monoid::{
    Fast, GivesIdentity, Max, Monoid, Plain, Sum, Xor,
    keyed::{Equal, Equality, RunTiling, TagShape},
};

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
worth!(u8 u32 u64);

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

type Bytes = Grouping<u8, true, 1>;
type Words = Grouping<u32, false, 2>;
type Wide = Grouping<u64, true, 9>;
type Triples = Grouping<Triple, true, 3>;

tag_kernels! {
    static TAGS:
    bytes => Bytes,
    words => Words,
    wide => Wide,
    triples => Triples,
    sum => Sum<u32>,
    wide_sum => Sum<u64>,
    greatest => Max<f32>,
    flips => Xor<u64>,
    fast_sum => Fast<Sum<f32>>,
}

/// No further apart than so much.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Near(u32);

// SAFETY: repr(C), one word.
unsafe impl Plain for Near {}

impl Equality<[u8; 3]> for Near {
    fn same(&self, earlier: [u8; 3], later: [u8; 3]) -> bool {
        earlier[0].abs_diff(later[0]) as u32 <= self.0
    }
}

key_kernels! {
    static KEYS:
    words_by_u32 => (u32, Words),
    bytes_by_array => ([u8; 1], Bytes),
    bytes_by_i32 => (i32, Bytes),
    wide_by_f64 => (f64, Wide),
    triples_by_triple => ([u8; 3], Triples, Near),
    sum_by_i64 => (i64, Sum<u32>),
    words_by_i32 => (i32, Words),
    words_by_i64 => (i64, Words),
    triples_by_i32 => (i32, Triples),
    sums_by_i32 => (i32, Sum<u64>),
    sums_by_i64 => (i64, Sum<u64>),
}

sort_kernels! {
    static SORTS:
    sort_u32_u32 => (u32, u32),
    sort_u32_u64 => (u32, u64),
    sort_u64_u32 => (u64, u32),
    sort_u64_u64 => (u64, u64),
}

fn sim(schedule: Schedule) -> Engine {
    let engine = Engine::sim_with(SimOptions { schedule, ..SimOptions::default() });
    engine.load(Kernels { table: &TAGS, modules: &[] });
    engine.load(Kernels { table: &KEYS, modules: &[] });
    engine.load(Kernels { table: &SORTS, modules: &[] });
    engine
}

fn random(seed: u64) -> impl FnMut() -> u32 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    }
}

/// Combines pairwise, neighbours first, what is there; the others keep their places.
fn pairwise<Op: Monoid>(op: &Op, values: &[Option<Op::Acc>]) -> Option<Op::Acc> {
    if values.len() <= 1 {
        return values.first().copied().flatten();
    }
    let (left, right) = values.split_at(values.len().next_power_of_two() / 2);
    in_order(op, &[pairwise(op, left), pairwise(op, right)])
}

/// Combines what is there from left to right.
fn in_order<Op: Monoid>(op: &Op, values: &[Option<Op::Acc>]) -> Option<Op::Acc> {
    values.iter().copied().flatten().reduce(|left, right| op.combine(left, right))
}

/// The results by tag, one tag at a time, as `keyed` describes them.
fn tag_oracle<Op: Monoid>(op: &Op, k: u64, tags: &[i64], values: &[Op::Item]) -> Vec<Op::Output> {
    let shape = TagShape::of::<Op>(values.len() as u64, k);
    if shape.sorted {
        let mut order: Vec<usize> = (0..tags.len()).filter(|&i| (0..k as i64).contains(&tags[i])).collect();
        order.sort_by_key(|&i| tags[i]);
        let keys: Vec<i32> = order.iter().map(|&i| tags[i] as i32).collect();
        let values: Vec<Op::Item> = order.iter().map(|&i| values[i]).collect();
        let (keys, results) = run_oracle(&Equal, op, &keys, &values, &|i| order[i] as u64);
        return (0..k as i32)
            .map(|tag| keys.binary_search(&tag).map_or_else(|_| op.finish_empty(), |run| results[run]))
            .collect();
    }
    let chunk = shape.chunk as usize;
    (0..k as i64)
        .map(|tag| {
            let chunks: Vec<_> = (0..values.len().div_ceil(chunk))
                .map(|c| {
                    let items: Vec<usize> = (c * chunk..values.len().min((c + 1) * chunk)).collect();
                    let here = |items: &mut dyn Iterator<Item = usize>| {
                        items.filter(|&i| tags[i] == tag).collect::<Vec<_>>()
                    };
                    if shape.few {
                        let lanes: Vec<_> = (0..32)
                            .map(|lane| {
                                let mine = here(
                                    &mut items.iter().copied().filter(|i| (i - c * chunk) / 4 % 32 == lane),
                                );
                                mine.iter().fold(None, |acc, &i| {
                                    Some(match acc {
                                        Some(acc) => op.push(acc, values[i], i as u64),
                                        None => op.lift(values[i], i as u64),
                                    })
                                })
                            })
                            .collect();
                        return pairwise(op, &lanes);
                    }
                    let rows: Vec<_> = items
                        .chunks(32)
                        .map(|row| {
                            let peers = here(&mut row.iter().copied());
                            let lifted: Vec<_> =
                                peers.iter().map(|&i| Some(op.lift(values[i], i as u64))).collect();
                            pairwise(op, &lifted)
                        })
                        .collect();
                    in_order(op, &rows)
                })
                .collect();
            let lanes = if chunks.len() > 512 { 256 } else { 32 };
            let runs: Vec<_> =
                chunks.chunks(chunks.len().div_ceil(lanes).max(1)).map(|run| in_order(op, run)).collect();
            pairwise(op, &runs).map_or_else(|| op.finish_empty(), |acc| op.finish(acc))
        })
        .collect()
}

fn check_tags<Op: Monoid>(op: Op, ks: &[u64], sizes: &[usize], skip: usize)
where
    Op::Item: Worth,
    Op::Output: PartialEq + std::fmt::Debug,
{
    let engines = [Engine::cpu(), sim(Schedule::Concurrent { seed: 3 })];
    for &k in ks {
        for &n in sizes {
            let mut next = random(k * 1_000_003 + n as u64);
            // Some of each tag, many of one, some of none, and now and then rows of one.
            let tags: Vec<i64> = (0..n + skip)
                .map(|i| match next() % 8 {
                    _ if i / 160 % 4 == 3 => k as i64 / 2,
                    0 => 0,
                    1 if k > 2 => k as i64 - 1,
                    _ => (next() as u64 % k) as i64,
                })
                .collect();
            let values: Vec<Op::Item> = (0..n + skip).map(|_| Op::Item::of(next())).collect();
            let (tags, values) = (&tags[skip..], &values[skip..]);
            let expected = tag_oracle(&op, k, tags, values);
            let narrow: Vec<u32> =
                std::iter::repeat_n(0, skip).chain(tags.iter().map(|&tag| tag as u32)).collect();
            for engine in &engines {
                let reducer = engine.by_tag(op, k).unwrap();
                let backend = engine.backend();
                assert_eq!(
                    reducer.reduce(&narrow[skip..], values).unwrap(),
                    expected,
                    "{n} by {k} on {backend}"
                );
                if n < 300 {
                    assert_eq!(reducer.reduce(tags, values).unwrap(), expected, "{n} by {k} on {backend}");
                }
            }
        }
    }
}

#[test]
fn few_tags_have_columns() {
    let sizes = [0, 1, 3, 4, 5, 127, 128, 129, 511, 512, 2047, 2048, 2049, 9000];
    check_tags(Bytes::default(), &[1, 2, 16, 63, 64], &sizes, 0);
    check_tags(grouping::<Triple, true, 3>(), &[7], &[130, 5000], 3);
    check_tags(Sum::<u32>::new(), &[5], &[2100, 4097], 1);
}

/// A lane's sums start at a negative zero, which is neutral and no result of nothing.
#[test]
fn few_tags_of_floats_and_out_of_range() {
    let op = Fast(Sum::<f32>::new());
    let mut next = random(8);
    // Of the third tag there are negative zeros alone, of the fourth zeros of both signs, of the last nothing. Whole rows, which are
    // read by vectors.
    let mut tags: Vec<i64> = (0..31 * 128).map(|_| (next() % 6) as i64).collect();
    let values: Vec<f32> = tags
        .iter()
        .map(|&tag| match (tag, next()) {
            (2, _) => -0.0,
            (3, number) => [0.0, -0.0][number as usize % 2],
            (_, number) => number as i32 as f32,
        })
        .collect();
    for (at, bad) in [(3967, 7), (2050, u32::MAX), (1000, 7), (513, 9), (2, 7), (0, 8)] {
        for engine in [Engine::cpu(), sim(Schedule::Concurrent { seed: at })] {
            let words: Vec<u32> = tags.iter().map(|&tag| tag as u32).collect();
            let bits = |sums: Vec<f32>| sums.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            let expected = bits(tag_oracle(&op, 7, &tags, &values));
            assert_eq!((expected[2], expected[6]), ((-0.0_f32).to_bits(), 0));
            let sums = engine.by_tag(op, 7).unwrap().ignore_out_of_range();
            assert_eq!(bits(sums.reduce(&words, &values).unwrap()), expected);
        }
        tags[at as usize] = bad as i64;
        let words: Vec<u32> = tags.iter().map(|&tag| tag as u32).collect();
        let error = sim(Schedule::default()).by_tag(op, 7).unwrap().reduce(&words, &values).unwrap_err();
        assert_eq!(error, Error::TagOutOfRange { index: at, tag: bad.into(), tags: 7 });
    }
}

impl<T, const C: bool, const W: usize> Default for Grouping<T, C, W> {
    fn default() -> Self {
        grouping()
    }
}

#[test]
fn many_tags_and_operands_that_keep_their_order() {
    let sizes = [0, 1, 31, 32, 33, 128, 129, 2048, 2081, 7000];
    check_tags(Words::default(), &[1, 3, 64, 1000], &sizes, 0);
    check_tags(Bytes::default(), &[65, 300], &[100, 5003], 2);
}

/// More than one warp keeps.
#[test]
fn tags_that_are_sorted() {
    check_tags(Wide::default(), &[1400], &[0, 1, 33, 6000], 1);
    check_tags(Words::default(), &[5440, 5441, 1 << 20], &[1, 4097, 9000], 0);
    // Those out of range change no result, and the first of them is found.
    let mut next = random(4);
    let mut tags: Vec<i64> = (0..7000).map(|_| (next() % 6000) as i64).collect();
    let values: Vec<u32> = (0..7000).map(|_| next()).collect();
    for (at, bad) in [(6999, 6000), (5000, -1), (4097, i64::MIN), (4096, 1 << 32), (700, 6000)] {
        tags[at] = bad;
        let words: Vec<i32> = tags.iter().map(|&tag| i32::try_from(tag).unwrap_or(i32::MAX)).collect();
        let expected = tag_oracle(&Words::default(), 6000, &tags, &values);
        for engine in [Engine::cpu(), sim(Schedule::default())] {
            let reducer = engine.by_tag(Words::default(), 6000).unwrap();
            let error = reducer.reduce(&tags, &values).unwrap_err();
            assert_eq!(error, Error::TagOutOfRange { index: at as u64, tag: bad.into(), tags: 6000 });
            let error = reducer.reduce(&words, &values).unwrap_err();
            assert!(matches!(error, Error::TagOutOfRange { index, .. } if index == at as u64), "{error}");
            let reducer = reducer.ignore_out_of_range();
            assert_eq!(reducer.reduce(&tags, &values).unwrap(), expected);
            assert_eq!(reducer.reduce(&words, &values).unwrap(), expected);
        }
    }
    let narrow: Vec<u16> = tags.iter().map(|&tag| tag.clamp(0, 6000) as u16).collect();
    let [cpu, sim] = [Engine::cpu(), sim(Schedule::default())].map(|engine| {
        engine.by_tag(Words::default(), 6000).unwrap().ignore_out_of_range().reduce(&narrow, &values).unwrap()
    });
    assert_eq!(cpu, sim);
    // Without sorts it says so.
    let engine = Engine::sim();
    engine.load(Kernels { table: &TAGS, modules: &[] });
    let error = engine.by_tag(Words::default(), 6000).unwrap().reduce(&tags, &values).unwrap_err();
    assert!(matches!(error, Error::NoKernel { list: "sort_kernels!", .. }), "{error}");
}

#[test]
fn tags_of_every_width_and_out_of_range() {
    fn check<T: Tag + TryFrom<i64>>(reducer: &TagReducer<Words>, bad: &[i64]) {
        let mut next = random(9);
        let mut tags: Vec<i64> = (0..700).map(|_| (next() % 90) as i64).collect();
        let values: Vec<u32> = (0..700).map(|_| next()).collect();
        let of = |tags: &[i64]| tags.iter().map(|&tag| T::try_from(tag).ok().unwrap()).collect::<Vec<T>>();
        let expected = tag_oracle(reducer.operator(), 90, &tags, &values);
        assert_eq!(reducer.reduce(&of(&tags), &values).unwrap(), expected);
        for (at, &tag) in [650, 600, 333].into_iter().zip(bad) {
            tags[at] = tag;
            let error = reducer.reduce(&of(&tags), &values).unwrap_err();
            assert_eq!(error, Error::TagOutOfRange { index: at as u64, tag: tag.into(), tags: 90 });
        }
        let expected = tag_oracle(reducer.operator(), 90, &tags, &values);
        assert_eq!(reducer.ignore_out_of_range().reduce(&of(&tags), &values).unwrap(), expected);
    }
    for engine in [Engine::cpu(), sim(Schedule::default())] {
        let words = engine.by_tag(Words::default(), 90).unwrap();
        check::<u8>(&words, &[90, 255]);
        check::<i8>(&words, &[90, -1, -128]);
        check::<u16>(&words, &[90, 65535]);
        check::<i16>(&words, &[-1, 32767, -32768]);
        check::<u32>(&words, &[90, 1 << 31, u32::MAX as i64]);
        check::<i32>(&words, &[-1, i32::MIN as i64, i32::MAX as i64]);
        check::<u64>(&words, &[1 << 32, 90, i64::MAX]);
        check::<i64>(&words, &[-1, i64::MIN, 5 << 32]);
        let few = engine.by_tag(Sum::<u32>::new(), 2).unwrap();
        let error = few.reduce(&[0_u8, 1, 2, 3, 7], &[1_u32; 5]).unwrap_err();
        assert_eq!(error, Error::TagOutOfRange { index: 2, tag: 2, tags: 2 });
        assert_eq!(few.ignore_out_of_range().reduce(&[0_u8, 1, 2, 0, 7], &[1_u32; 5]).unwrap(), [2, 1]);
        let error = few.reduce(&[0_u8; 3], &[1_u32; 4]).unwrap_err();
        assert_eq!(error, Error::ColumnLengths { first: 3, other: 4 });
        let none = engine.by_tag(Sum::<u32>::new(), 0).unwrap();
        assert_eq!(none.reduce::<u8, _, _>(&[], &[]).unwrap(), []);
        let none_in_order = engine.by_tag(Words::default(), 0).unwrap();
        for error in
            [none.reduce(&[0_u8], &[1]).unwrap_err(), none_in_order.reduce(&[0_u8], &[1]).unwrap_err()]
        {
            assert!(matches!(error, Error::TagOutOfRange { index: 0, .. }));
        }
    }
    assert!(TAGS.find_in::<Words>(Family::Tags).is_some());
}

/// What an operand of the scan by key is: how many runs begin, and the value since the last.
type SoFar<A> = (u64, A);

/// The scan by distances of 1, 2, 4, ...
fn distances<T: Copy>(values: &mut [T], join: impl Fn(T, T) -> T) {
    let mut distance = 1;
    while distance < values.len() {
        let before = values.to_vec();
        for i in distance..values.len() {
            values[i] = join(before[i - distance], before[i]);
        }
        distance *= 2;
    }
}

/// The runs, as `keyed` and `scan` describe their order.
fn run_oracle<K: Plain, E: Equality<K>, Op: Monoid>(
    equality: &E,
    op: &Op,
    keys: &[K],
    values: &[Op::Item],
    index: &dyn Fn(usize) -> u64,
) -> (Vec<K>, Vec<Op::Output>) {
    let tiling = RunTiling::of_keys::<K, E, Op>();
    let (strip, warp, tile) = (tiling.strip as usize, tiling.warp() as usize, tiling.tile() as usize);
    let n = keys.len();
    let begins = |i: usize| i == 0 || !equality.same(keys[i - 1], keys[i]);
    let join = |left: SoFar<Op::Acc>, right: SoFar<Op::Acc>| {
        (left.0 + right.0, if right.0 > 0 { right.1 } else { op.combine(left.1, right.1) })
    };
    let step = |before: Option<SoFar<Op::Acc>>, i: usize| match (before, begins(i)) {
        (Some((heads, value)), false) => (heads, op.push(value, values[i], index(i))),
        (before, begins) => {
            (before.map_or(0, |before| before.0) + begins as u64, op.lift(values[i], index(i)))
        }
    };
    let pieces = |start: usize, end: usize, len: usize| {
        (start..end).step_by(len).map(move |at| (at, end.min(at + len)))
    };
    // Scanned strips of warps, and warps of tiles.
    let strips: Vec<Vec<SoFar<Op::Acc>>> = pieces(0, n, warp)
        .map(|(start, end)| {
            let fold = |(start, end): (usize, usize)| {
                (start..end).fold(None, |before, i| Some(step(before, i))).unwrap()
            };
            let mut strips: Vec<_> = pieces(start, end, strip).map(fold).collect();
            distances(&mut strips, join);
            strips
        })
        .collect();
    let warps: Vec<Vec<SoFar<Op::Acc>>> = strips
        .chunks(tile / warp)
        .map(|warps| {
            let mut values: Vec<_> = warps.iter().map(|strips| *strips.last().unwrap()).collect();
            distances(&mut values, join);
            values
        })
        .collect();
    let after =
        |before: Option<SoFar<Op::Acc>>, value| Some(before.map_or(value, |before| join(before, value)));
    let (mut out_keys, mut results) = (Vec::new(), Vec::new());
    let (mut before_group, mut last) = (None, None);
    for (g, group) in warps.chunks(32).enumerate() {
        let mut tiles: Vec<_> = group.iter().map(|warps| *warps.last().unwrap()).collect();
        distances(&mut tiles, join);
        for t in 0..group.len() {
            let before_tile = if t > 0 { after(before_group, tiles[t - 1]) } else { before_group };
            let number = g * 32 + t;
            for w in 0..group[t].len() {
                let before_warp = if w > 0 { after(before_tile, group[t][w - 1]) } else { before_tile };
                let scanned = &strips[number * (tile / warp) + w];
                for s in 0..scanned.len() {
                    let before = if s > 0 { after(before_warp, scanned[s - 1]) } else { before_warp };
                    let start = number * tile + w * warp + s * strip;
                    // What the strip has come to by itself.
                    let mut own = None;
                    let end = n.min(start + strip).min(number * tile + (w + 1) * warp);
                    for (i, &key) in keys.iter().enumerate().take(end).skip(start) {
                        if begins(i) {
                            out_keys.push(key);
                            let ended = own.map_or(before, |own| after(before, own));
                            results.extend(ended.map(|ended: SoFar<Op::Acc>| op.finish(ended.1)));
                        }
                        own = Some(step(own, i));
                    }
                }
            }
            last = after(before_group, tiles[t]);
        }
        before_group = last;
    }
    results.extend(last.map(|last| op.finish(last.1)));
    (out_keys, results)
}

fn check_runs<K, E, Op>(op: Op, equality: E, key: impl Fn(u32) -> K, sizes: &[usize], skip: usize)
where
    K: Plain + std::fmt::Debug,
    E: Equality<K>,
    Op: Monoid,
    Op::Item: Worth,
    Op::Output: PartialEq + std::fmt::Debug,
{
    let engines = [Engine::cpu(), sim(Schedule::Concurrent { seed: 11 })];
    for &n in sizes {
        for longest in [1, 2, 50, 3000, u32::MAX] {
            let mut next = random(n as u64 + longest as u64);
            let mut keys = Vec::new();
            let mut number = 0;
            while keys.len() < n + skip {
                let run = 1 + next() % longest;
                number = (number + 1) % 200;
                let left = n + skip - keys.len();
                keys.extend(std::iter::repeat_n(key(number), left.min(run as usize)));
            }
            let values: Vec<Op::Item> = (0..n + skip).map(|_| Op::Item::of(next())).collect();
            let (keys, values) = (&keys[skip..], &values[skip..]);
            let (expected_keys, expected) = run_oracle(&equality, &op, keys, values, &|i| i as u64);
            for engine in &engines {
                let backend = engine.backend();
                let runs = engine.by_key_with(op, equality).unwrap().reduce(keys, values).unwrap();
                // As text: a NaN is a NaN.
                assert_eq!(
                    format!("{:?}", runs.keys),
                    format!("{expected_keys:?}"),
                    "{n}, {longest}, {backend}"
                );
                assert_eq!(runs.values, expected, "{n}, {longest}, {backend}");
            }
        }
    }
}

#[test]
fn runs_of_equal_keys() {
    let tile = RunTiling::of::<u32, Words>().tile() as usize;
    let warp = RunTiling::of::<u32, Words>().warp() as usize;
    let sizes = [0, 1, 2, 31, warp - 1, warp, warp + 1, tile - 1, tile, tile + 1, 2 * tile + warp + 3];
    check_runs(Words::default(), Equal, |key| key, &sizes, 0);
    check_runs(Words::default(), Equal, |key| key, &[5 * warp + 7], 1);
}

/// The only one in its warp: as a thread's vector of keys begins, and a warp's, a tile's; and elsewhere.
#[test]
fn runs_that_begin_where_a_vector_does() {
    let tiling = RunTiling::of::<u32, Words>();
    let (warp, tile) = (tiling.warp() as usize, tiling.tile() as usize);
    let values: Vec<u32> = (0..2 * tile as u32).collect();
    let [cpu, sim] = [Engine::cpu(), sim(Schedule::default())].map(|on| on.by_key(Words::default()).unwrap());
    for head in [warp + 64, warp + 128, warp + 67, tile, tile + 5 * warp] {
        let keys: Vec<u32> = (0..values.len()).map(|i| (i >= head).into()).collect();
        let found = sim.reduce(&keys, &values).unwrap();
        assert_eq!(found.keys, [0, 1], "{head}");
        assert_eq!(found, cpu.reduce(&keys, &values).unwrap(), "{head}");
    }
}

#[test]
fn runs_over_many_groups_of_tiles() {
    let tile = RunTiling::of::<f64, Wide>().tile() as usize;
    let key = |key: u32| if key.is_multiple_of(5) { f64::NAN } else { key as f64 };
    check_runs(Wide::default(), Equal, key, &[tile, 66 * tile + 5], 0);
}

#[test]
fn runs_of_bytes_and_of_an_equality_of_ones_own() {
    let tile = RunTiling::of::<[u8; 1], Bytes>().tile() as usize;
    check_runs(Bytes::default(), Equal, |key| [key as u8], &[77, tile + 1000], 3);
    let tile = RunTiling::of::<[u8; 3], Triples>().tile() as usize;
    check_runs(
        Triples::default(),
        Near(1),
        |key| [(key * 7 % 11) as u8, key as u8, 0],
        &[50, 2 * tile + 9],
        2,
    );
}

/// By kernels for `i32` and `i64`, aligned to as little as they are.
#[test]
fn runs_of_integers_of_any_width() {
    let tile = RunTiling::of::<i32, Words>().tile() as usize;
    check_runs(Words::default(), Equal, |key| key as u8, &[1, 700, tile + 33], 3);
    check_runs(Words::default(), Equal, |key| (key as i8).wrapping_sub(100), &[700], 0);
    check_runs(Words::default(), Equal, |key| (key * 257) as u16, &[31, tile + 600], 1);
    check_runs(Words::default(), Equal, |key| -(key as i16 * 128), &[tile - 1], 2);
    check_runs(Words::default(), Equal, |key| key % 3 == 0, &[500], 1);
    check_runs(Bytes::default(), Equal, |key| key as u8, &[3000], 5);
    check_runs(Words::default(), Equal, |key| (key as u64) << 33, &[700], 1);
    check_runs(Triples::default(), Equal, |key| key << 24, &[700], 1);
}

#[test]
fn sums_by_signed_keys() {
    let tile = RunTiling::of::<i64, Sum<u32>>().tile() as usize;
    check_runs(Sum::<u32>::new(), Equal, |key| key as i64 - (1 << 40), &[3 * tile - 1], 0);
    let error = Engine::cpu().by_key(Sum::<u32>::new()).unwrap().reduce(&[0_i64], &[]).unwrap_err();
    assert_eq!(error, Error::ColumnLengths { first: 1, other: 0 });
    let error = sim(Schedule::default()).by_key::<i8, _>(Sum::<u32>::new()).unwrap_err();
    let Error::NoKernel { line, list, .. } = error else { panic!("{error}") };
    assert_eq!((line.as_str(), list), ("my_operator_by_key => (i32, Sum<u32, u32>),", "key_kernels!"));
    let error = sim(Schedule::default()).by_key::<u128, _>(Sum::<u32>::new()).unwrap_err();
    let Error::NoKernel { line, .. } = error else { panic!("{error}") };
    assert_eq!(line, "my_operator_by_key => (u128, Sum<u32, u32>),");
}
