//! Sinks, and arrays that come in chunks: on the CPU and in the simulator against the order that `docs/numerics.md` describes.
//!
//! The operators show any other order: one commutes as little as it is associative, so its bits are those of one tree alone.

use warpfold_gpu_kernels::{kernels, tag_kernels};
use warpfold_host::{Engine, Error, Reducer, SegmentPlan, Sink, module::Kernels};
use warpfold_monoid::{
    ArgMax, GivesIdentity, Max, Monoid, Plain, Sum,
    tree::{self, PIECE_CHUNKS, Shape},
};

/// An item that makes no vector: 2048 of them are a chunk.
type Odd = [u8; 3];

/// Shows grouping, order, indices, and `push` in place of `combine`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Grouping<const COMMUTATIVE: bool> {
    salt: u64,
}

// SAFETY: repr(C), one u64.
unsafe impl<const COMMUTATIVE: bool> Plain for Grouping<COMMUTATIVE> {}

fn mix(i: u64) -> u64 {
    let mut z = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 27)
}

impl<const COMMUTATIVE: bool> Monoid for Grouping<COMMUTATIVE> {
    type Item = Odd;
    type Acc = [u64; 2];
    type Output = u64;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = COMMUTATIVE;
    fn identity(&self) -> [u64; 2] {
        [u64::MAX; 2]
    }
    fn lift(&self, item: Odd, index: u64) -> [u64; 2] {
        assert!(item != [13; 3], "unlucky");
        [mix(item[0] as u64 ^ index << 8), item[1] as u64 ^ self.salt]
    }
    fn push(&self, acc: [u64; 2], item: Odd, index: u64) -> [u64; 2] {
        assert_ne!(acc, [u64::MAX; 2], "an absent operand");
        [mix(acc[0] ^ item[0] as u64), acc[1].wrapping_mul(31).wrapping_add(index + item[2] as u64)]
    }
    fn combine(&self, a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
        assert!(a != [u64::MAX; 2] && b != [u64::MAX; 2], "an absent operand");
        [mix(a[0]).wrapping_add(b[0]), a[1].wrapping_mul(17) ^ b[1]]
    }
    fn finish(&self, acc: [u64; 2]) -> u64 {
        acc[0] ^ acc[1].rotate_left(20)
    }
}

kernels! {
    static TABLE:
    grouping => Grouping<true>,
    grouping_in_order => Grouping<false>,
    arg_max_u8 => ArgMax<u8>,
}

tag_kernels! {
    static TAGS:
    grouping_tags => Grouping<true>,
}

const CHUNK: u64 = 2048;
const PIECE: u64 = CHUNK * PIECE_CHUNKS;

fn engines() -> [Engine; 2] {
    let sim = Engine::sim();
    sim.load(Kernels { table: &TABLE, modules: &[] });
    sim.load(Kernels { table: &TAGS, modules: &[] });
    [Engine::cpu(), sim]
}

fn odd(i: u64) -> Odd {
    let [a, b, c, ..] = mix(i).to_le_bytes();
    [a, b & 127, c]
}

fn items(n: u64) -> Vec<Odd> {
    (0..n).map(odd).collect()
}

/// What a stream is defined to give.
fn defined<Op: Monoid<Item = Odd, Output = u64>>(op: &Op, items: &[Odd]) -> u64 {
    let acc = tree::fold_stream(op, items.len() as u64, &|i| items[i as usize]);
    op.finish(acc.unwrap_or_else(|| op.identity()))
}

/// Cuts of a length, from a seed: short and long ones, empty ones too.
fn cuts(n: usize, seed: u64) -> Vec<usize> {
    let (mut cuts, mut left) = (Vec::new(), n);
    while left > 0 {
        let bits = mix(seed ^ (cuts.len() as u64) << 32);
        let longest = [1, 40, CHUNK, CHUNK + 1, 5 * CHUNK][bits as usize % 5];
        let cut = ((bits >> 8) % (longest + 1)) as usize;
        cuts.push(cut.min(left));
        left -= cut.min(left);
    }
    cuts
}

fn push_in_cuts<Op: Monoid<Item = Odd>>(sink: &Sink<Op>, mut items: &[Odd], seed: u64) {
    for cut in cuts(items.len(), seed) {
        let (batch, rest) = items.split_at(cut);
        sink.push(batch).unwrap();
        items = rest;
    }
}

fn any_cuts<const C: bool>() {
    let op = Grouping::<C> { salt: 77 };
    let all = items(5 * CHUNK + 1);
    for engine in engines() {
        for n in [0, 1, 2, 33, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 700, 5 * CHUNK + 1] {
            let items = &all[..n as usize];
            let whole = engine.sink(op).unwrap();
            whole.push(items).unwrap();
            assert_eq!(whole.finish().unwrap(), defined(&op, items), "{n} items on {}", engine.backend());
            let sink = engine.sink(op).unwrap();
            push_in_cuts(&sink, &items[..n as usize / 2], n);
            assert_eq!(sink.result().unwrap(), defined(&op, &items[..n as usize / 2]));
            push_in_cuts(&sink, &items[n as usize / 2..], n + 1);
            assert_eq!(sink.len(), n);
            assert_eq!(
                sink.result().unwrap(),
                defined(&op, items),
                "{n} items in cuts on {}",
                engine.backend()
            );
        }
    }
}

#[test]
fn a_streams_bits_do_not_depend_on_its_cuts() {
    any_cuts::<true>();
    any_cuts::<false>();
}

/// Pieces are long: the CPU goes up to where one ends, and the simulator goes on from what it saved.
fn across_pieces<const C: bool>() {
    let op = Grouping::<C> { salt: 1 };
    let all = items(2 * PIECE + 2 * CHUNK + 5);
    let [cpu, sim] = engines();
    let sink = cpu.sink(op).unwrap();
    let mut done = 0;
    for (before, after) in [(PIECE - CHUNK - 9, PIECE + 7), (2 * PIECE - 1, 2 * PIECE + 2 * CHUNK + 5)] {
        sink.push(&all[done..before as usize]).unwrap();
        // SAFETY: saved just now.
        let simulated = unsafe { sim.restore_sink(op, &sink.save().unwrap()).unwrap() };
        assert_eq!(simulated.len(), before);
        let rest = &all[before as usize..after as usize];
        push_in_cuts(&simulated, rest, before);
        push_in_cuts(&sink, rest, after);
        done = after as usize;
        let expected = defined(&op, &all[..done]);
        assert_eq!(simulated.result().unwrap(), expected, "simulated up to {after}");
        assert_eq!(sink.result().unwrap(), expected, "on the CPU up to {after}");
        // Both know the same, to the last bit.
        assert_eq!(simulated.save().unwrap(), sink.save().unwrap());
    }
}

#[test]
fn pieces_fold_from_left_to_right() {
    across_pieces::<true>();
    across_pieces::<false>();
}

#[test]
fn nothing_has_no_greatest_and_indices_count_over_the_stream() {
    for engine in engines() {
        let sink = engine.sink(ArgMax::<u8>::new()).unwrap();
        assert_eq!(sink.result().unwrap(), None);
        sink.push(&[0; 0]).unwrap();
        assert!(sink.is_empty() && sink.result().unwrap().is_none());
        let long = vec![3; 70_000];
        sink.push(&long).unwrap();
        sink.push(&[9]).unwrap();
        sink.push(&long).unwrap();
        let found = sink.finish().unwrap().unwrap();
        assert_eq!((found.value(), found.index()), (9, 70_000));
    }
}

#[test]
fn threads_push_to_one_sink() {
    let sink = Engine::cpu().sink(Sum::<u64>::new()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let sink = &sink;
            scope.spawn(move || {
                for k in 0..200 {
                    sink.push(&vec![thread; 10 * k]).unwrap();
                    sink.result().unwrap();
                }
            });
        }
    });
    assert_eq!(sink.finish().unwrap(), 6 * 10 * 199 * 200 / 2);
}

#[test]
fn what_was_saved_must_be_the_operators() {
    let engine = Engine::cpu();
    let op = Grouping::<true> { salt: 3 };
    let sink = engine.sink(op).unwrap();
    sink.push(&items(CHUNK + 3)).unwrap();
    let saved = sink.save().unwrap();
    // SAFETY: what a sink saved, but for what the checksum shows.
    let restore = |op, saved: &[u8]| unsafe { engine.restore_sink::<Grouping<true>>(op, saved).unwrap_err() };
    let other_salt = restore(Grouping { salt: 4 }, &saved);
    assert!(matches!(other_salt, Error::SavedOperator { .. }), "{other_salt}");
    // SAFETY: as above.
    let other = unsafe { engine.restore_sink(Max::<i32>::new(), &saved).unwrap_err() };
    let text = other.to_string();
    assert!(text.contains("Grouping<true>") && text.contains("Max<i32>"), "{text}");
    for cut in [0, 5, 12, 40, saved.len() - 1] {
        let error = restore(op, &saved[..cut]);
        assert!(matches!(error, Error::SavedBytes { bytes, .. } if bytes == cut as u64), "{error}");
    }
    for at in [0, 20, saved.len() / 2, saved.len() - 1] {
        let mut damaged = saved.clone();
        damaged[at] ^= 1;
        let error = restore(op, &damaged);
        assert!(matches!(error, Error::SavedBytes { .. }), "{at}: {error}");
    }
}

#[test]
fn a_sink_is_broken_by_an_error_and_says_so() {
    let [cpu, sim] = engines();
    let op = Grouping::<true> { salt: 0 };
    let mut unlucky = items(CHUNK);
    unlucky[100] = [13; 3];
    let sink = sim.sink(op).unwrap();
    let error = sink.push(&unlucky).unwrap_err();
    assert!(error.to_string().contains("unlucky"), "{error}");
    assert_eq!(sink.push(&items(1)).unwrap_err(), error);
    assert_eq!(sink.result().unwrap_err(), error);
    let sink = cpu.sink(op).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sink.push(&unlucky)));
    assert!(panicked.is_err());
    assert_eq!(sink.result().unwrap_err(), Error::SinkPanicked);
}

/// Arrays of several chunks, and of few items more than the last length that is cut otherwise.
fn in_chunks<const C: bool>(lengths: &[u64]) {
    let op = Grouping::<C> { salt: 9 };
    let all = items(*lengths.last().unwrap());
    for engine in engines() {
        let reducer: Reducer<Grouping<C>> = engine.reducer(op).unwrap();
        for &n in lengths {
            let items = &all[..n as usize];
            let defined_so = tree::reduce(&op, items);
            let mut rest = items;
            let chunks: Vec<&[Odd]> = cuts(items.len(), n)
                .into_iter()
                .map(|cut| {
                    let chunk;
                    (chunk, rest) = rest.split_at(cut);
                    chunk
                })
                .collect();
            let found = reducer.reduce_chunks_of(n, &chunks).unwrap();
            assert_eq!(found, defined_so, "{n} items on {}", engine.backend());
            let found = reducer.reduce_chunks_of(n, [items]).unwrap();
            assert_eq!(found, defined_so, "{n} items at once on {}", engine.backend());
        }
        let n = lengths[0];
        let streamed = reducer.reduce_chunks(all[..n as usize].chunks(999)).unwrap();
        assert_eq!(streamed, defined(&op, &all[..n as usize]));
        for wrong in [n - 1, n + 1] {
            let error = reducer.reduce_chunks_of(n, [&all[..wrong as usize]]).unwrap_err();
            assert!(
                matches!(error, Error::LengthMismatch { expected, found } if expected == n && found == wrong)
            );
        }
    }
}

#[test]
fn arrays_in_chunks_have_the_bits_of_arrays() {
    // Where chunks of 2048 items begin, and where those of 4096 do.
    let long = 1 << 18;
    in_chunks::<true>(&[10_000, long + 1, 2 * long + CHUNK + 5]);
    in_chunks::<false>(&[10_000, long + 1]);
    assert_eq!(Shape::new(2 * long + CHUNK + 5, 3).chunk, 2 * CHUNK);
}

/// Segments that lie within chunks, go on over several, and are long; with gaps, and without items.
#[test]
fn segments_of_what_comes_in_chunks() {
    let op = Sum::<f32>::new();
    // More than is kept of a segment that is not whole.
    let long = 9_000_000_u64;
    let all: Vec<f32> =
        (0..long + 40_000).map(|i| (mix(i) >> 40) as f32 * 1e-3 + 1e7 * (i % 3) as f32).collect();
    let n = all.len() as u64;
    let plans = [
        SegmentPlan::from_lengths(&[3, 0, 5000, 1, 0, 20_000, long, 7, 0]).unwrap(),
        SegmentPlan::from_offsets(&[100, 100, 101, 30_000]).unwrap(),
        SegmentPlan::from_ranges(&[0, 9, 11, 2, n], &[7, 10, 20_000, 2, n]).unwrap(),
        SegmentPlan::from_offsets(&[0, n]).unwrap(),
        SegmentPlan::from_offsets(&[n, n]).unwrap(),
        SegmentPlan::from_lengths::<u8>(&[]).unwrap(),
    ];
    let engine = Engine::cpu();
    let sums = engine.segments(op).unwrap();
    for (p, plan) in plans.iter().enumerate() {
        let bits = |sums: Vec<f32>| sums.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        let expected = bits(sums.reduce_segments(&all, plan).unwrap());
        for seed in 1..3 {
            let mut rest = &all[..];
            let chunks = cuts(all.len(), seed).into_iter().map(|cut| {
                let chunk;
                (chunk, rest) = rest.split_at(cut);
                chunk
            });
            assert_eq!(bits(sums.reduce_chunks(plan, chunks).unwrap()), expected, "plan {p}, cuts {seed}");
        }
        assert_eq!(bits(sums.reduce_chunks(plan, [&all]).unwrap()), expected, "plan {p}");
    }
    let error = sums.reduce_chunks(&plans[3], [&all[1..]]).unwrap_err();
    assert!(matches!(error, Error::SegmentOutOfRange { index: 0, .. }), "{error}");
    let backwards = SegmentPlan::from_ranges(&[5, 0], &[7, 6]).unwrap();
    let error = sums.reduce_chunks(&backwards, [&all]).unwrap_err();
    assert_eq!(error, Error::SegmentsNotInOrder { index: 1, start: 0, end: 7 });
}

#[test]
fn by_tag_of_what_comes_in_chunks() {
    let op = Grouping::<true> { salt: 5 };
    let all = items(700);
    let tags: Vec<u8> = (0..700).map(|i| (mix(i) % 5) as u8).collect();
    for engine in engines() {
        let sink = engine.tagged_sink(op, 4).unwrap().ignore_out_of_range();
        tags.chunks(99).zip(all.chunks(99)).for_each(|(tags, items)| sink.push(tags, items).unwrap());
        let by_tag = engine.by_tag(op, 4).unwrap();
        let chunks = || tags.chunks(99).zip(all.chunks(99));
        let found = by_tag.ignore_out_of_range().reduce_chunks(chunks()).unwrap();
        assert_eq!(found, sink.finish().unwrap());
        assert!(matches!(by_tag.reduce_chunks(chunks()), Err(Error::TagOutOfRange { tag: 4, .. })));
    }
}

#[test]
fn tagged_sinks_add_batch_by_batch() {
    let op = Grouping::<true> { salt: 5 };
    let all = items(9000);
    for k in [1_u64, 3, 16, 700] {
        let [cpu, sim] = engines().map(|engine| engine.tagged_sink(op, k).unwrap());
        // What is known of the order: a batch is reduced by tag, and batches combine from left to right.
        let mut expected = vec![None::<[u64; 2]>; k as usize];
        let mut start = 0;
        for cut in [0, 1, 40, 3000, 959, 5000] {
            let items = &all[start..start + cut];
            let tags: Vec<u32> = (start..start + cut).map(|i| (mix(i as u64 ^ k) % k) as u32).collect();
            // A tag with one item only shows its index and its order among batches.
            cpu.push(&tags, items).unwrap();
            sim.push(&tags, items).unwrap();
            if cut <= 1 {
                for (i, &tag) in (start as u64..).zip(&tags) {
                    let value = op.lift(all[i as usize], i);
                    let place = &mut expected[tag as usize];
                    *place = Some(place.map_or(value, |acc| op.combine(acc, value)));
                }
                let finish =
                    |value: &Option<_>| value.map_or_else(|| op.finish_empty(), |acc| op.finish(acc));
                let expected: Vec<u64> = expected.iter().map(finish).collect();
                assert_eq!(cpu.results().unwrap(), expected);
            }
            assert_eq!(sim.results().unwrap(), cpu.results().unwrap(), "{k} tags, {cut} items from {start}");
            start += cut;
        }
        assert_eq!((cpu.len(), sim.len()), (9000, 9000));
        // From one to the other and back; of many tags some have no value.
        let saved = sim.save().unwrap();
        assert_eq!(saved, cpu.save().unwrap());
        // SAFETY: saved just now.
        let restored = engines().map(|engine| unsafe { engine.restore_tagged_sink(op, k, &saved).unwrap() });
        for sink in restored.iter().chain([&cpu]) {
            sink.push(&[0_u8, (k - 1).min(255) as u8, 0], &all[..3]).unwrap();
            assert_eq!((sink.len(), sink.results().unwrap()), (9003, restored[0].results().unwrap()));
        }
    }
}

#[test]
fn what_a_tagged_sink_saved_must_be_its_own() {
    let [cpu, sim] = engines();
    let op = Grouping::<true> { salt: 3 };
    let sink = cpu.tagged_sink(op, 5).unwrap();
    sink.push(&[1_u8, 4, 1], &items(3)).unwrap();
    let saved = sink.save().unwrap();
    // SAFETY: what a sink saved, but for what the checksum shows.
    let restore = |op, k, saved: &[u8]| unsafe { sim.restore_tagged_sink::<Grouping<true>>(op, k, saved) };
    assert_eq!(restore(op, 5, &saved).unwrap().results().unwrap(), sink.results().unwrap());
    assert_eq!(restore(op, 6, &saved).unwrap_err(), Error::SavedTags { saved: 5, tags: 6 });
    let other_salt = restore(Grouping { salt: 4 }, 5, &saved).unwrap_err();
    assert!(matches!(other_salt, Error::SavedOperator { .. }), "{other_salt}");
    // SAFETY: as above.
    let other = unsafe { cpu.restore_tagged_sink(Max::<i32>::new(), 5, &saved).unwrap_err() };
    assert!(matches!(other, Error::SavedOperator { .. }), "{other}");
    // Neither kind is taken for the other.
    // SAFETY: as above.
    let untagged = unsafe { cpu.restore_sink(op, &saved).unwrap_err() };
    assert!(untagged.to_string().contains("TaggedSink<"), "{untagged}");
    let error = restore(op, 5, &cpu.sink(op).unwrap().save().unwrap()).unwrap_err();
    assert!(matches!(error, Error::SavedOperator { .. }), "{error}");
    for at in [0, 20, saved.len() / 2, saved.len() - 1] {
        let mut damaged = saved.clone();
        damaged[at] ^= 1;
        let found = [restore(op, 5, &damaged), restore(op, 5, &saved[..at])];
        assert!(found.iter().all(|found| matches!(found, Err(Error::SavedBytes { .. }))), "{at}: {found:?}");
    }
}

#[test]
fn tagged_sinks_count_and_refuse() {
    let sink = Engine::cpu().tagged_sink(Sum::<u64>::new(), 3).unwrap();
    let values: Vec<u64> = (0..3_000_000).collect();
    let tags: Vec<u8> = values.iter().map(|i| (i % 3) as u8).collect();
    std::thread::scope(|scope| {
        for (tags, values) in tags.chunks(999_999).zip(values.chunks(999_999)) {
            let sink = &sink;
            scope.spawn(move || sink.push(tags, values).unwrap());
        }
    });
    let sum_of = |tag: u64| (0..1_000_000).map(|i| 3 * i + tag).sum::<u64>();
    assert_eq!(sink.results().unwrap(), [sum_of(0), sum_of(1), sum_of(2)]);
    let error = sink.push(&[0_i32, 2, -1, 7], &[1; 4]).unwrap_err();
    assert_eq!(error, Error::TagOutOfRange { index: 2, tag: -1, tags: 3 });
    assert!(matches!(sink.push(&[0_u8; 2], &[1; 3]), Err(Error::ColumnLengths { .. })));
    // Nothing of it was taken in, and it goes on.
    let sink = sink.ignore_out_of_range();
    sink.push(&[0_i32, 2, -1, 7], &[1, 2, 4, 8]).unwrap();
    assert_eq!(sink.finish().unwrap(), [sum_of(0) + 1, sum_of(1), sum_of(2) + 2]);
}
