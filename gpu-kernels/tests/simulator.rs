//! The kernels' own source in the simulator, against the definition of the canonical tree, item by item: every length
//! around a boundary, every misaligned start, and every access checked against the buffers that the launch has.

#[path = "simulator/any_order.rs"]
mod any_order;
#[path = "simulator/counts.rs"]
mod counts;
#[path = "simulator/ladder.rs"]
mod ladder;
#[path = "simulator/ladder_keyed.rs"]
mod ladder_keyed;
#[path = "simulator/ladder_ordered.rs"]
mod ladder_ordered;
#[path = "simulator/ladder_papers.rs"]
mod ladder_papers;
#[path = "simulator/ladder_thesis.rs"]
mod ladder_thesis;
#[path = "simulator/ladder_transpose.rs"]
mod ladder_transpose;
#[path = "simulator/long_lanes.rs"]
mod long_lanes;
#[path = "simulator/sort.rs"]
mod sort;
#[path = "simulator/tags.rs"]
mod tags;

use warpfold_gpu_kernels::device::{Part, ReduceParams};
use warpfold_gpu_kernels::export::Table;
use warpfold_gpu_kernels::kernels;
use warpfold_monoid::tree::{self, FOLD_LANES, MAX_GROUPS, SHORT_GROUPS, Shape};
use warpfold_monoid::{GivesIdentity, Min, Monoid, Plain, Sum};
use warpfold_simt::sim::{self, Buffer, Launch, Options, Schedule};

/// The function `x -> a * x + b` modulo 2^32: composition does not commute, and shows any operand out of place.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Affine {
    a: u32,
    b: u32,
}

// SAFETY: repr(C), two 4-byte fields.
unsafe impl Plain for Affine {}

/// Composes functions, the first item innermost. If it says that it commutes, which it does not, its results show every
/// operand that is not where the tree for operators that do has it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Compose<const COMMUTATIVE: bool>;

// SAFETY: no bytes.
unsafe impl<const COMMUTATIVE: bool> Plain for Compose<COMMUTATIVE> {}

impl<const COMMUTATIVE: bool> Monoid for Compose<COMMUTATIVE> {
    type Item = Affine;
    type Acc = Affine;
    type Output = Affine;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = COMMUTATIVE;

    fn identity(&self) -> Affine {
        Affine { a: 1, b: 0 }
    }

    fn lift(&self, item: Affine, index: u64) -> Affine {
        Affine { a: item.a, b: item.b.wrapping_add(index as u32) }
    }

    fn combine(&self, left: Affine, right: Affine) -> Affine {
        let b = right.a.wrapping_mul(left.b).wrapping_add(right.b);
        Affine { a: right.a.wrapping_mul(left.a), b }
    }

    fn finish(&self, acc: Affine) -> Affine {
        acc
    }
}

/// Counts items, and refuses to combine or push into what nobody lifted: absent operands are skipped.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Sentinel<const COMMUTATIVE: bool>;

// SAFETY: no bytes.
unsafe impl<const COMMUTATIVE: bool> Plain for Sentinel<COMMUTATIVE> {}

impl<const COMMUTATIVE: bool> Monoid for Sentinel<COMMUTATIVE> {
    type Item = u16;
    type Acc = u32;
    type Output = u32;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = COMMUTATIVE;

    fn identity(&self) -> u32 {
        0
    }

    fn lift(&self, _: u16, _: u64) -> u32 {
        1
    }

    fn combine(&self, left: u32, right: u32) -> u32 {
        assert!(left > 0 && right > 0, "an absent operand: {left} with {right}");
        left + right
    }

    fn finish(&self, acc: u32) -> u32 {
        acc
    }
}

/// Neither associative nor commutative, whatever it says: its results show any other grouping, and `push` in place of
/// `combine`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Grouping<const COMMUTATIVE: bool>;

// SAFETY: no bytes.
unsafe impl<const COMMUTATIVE: bool> Plain for Grouping<COMMUTATIVE> {}

impl<const COMMUTATIVE: bool> Monoid for Grouping<COMMUTATIVE> {
    type Item = u32;
    type Acc = u64;
    type Output = u64;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = COMMUTATIVE;

    fn identity(&self) -> u64 {
        u64::MAX
    }

    fn lift(&self, item: u32, index: u64) -> u64 {
        (u64::from(item) << 32 | index).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn push(&self, acc: u64, item: u32, index: u64) -> u64 {
        (acc.rotate_left(11) ^ u64::from(item) ^ index << 40).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    fn combine(&self, left: u64, right: u64) -> u64 {
        (left ^ left >> 29).wrapping_mul(0x94d0_49bb_1331_11eb).wrapping_add(right.rotate_left(17))
    }

    fn finish(&self, acc: u64) -> u64 {
        acc
    }
}

/// Text of up to eight bytes: items of an odd size, joined in order. What is longer is a checksum of the text.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Text {
    len: u64,
    sum: u64,
    power: u64,
}

// SAFETY: repr(C), three words.
unsafe impl Plain for Text {}

/// Joins text of items whose size is `N`; on saying that it commutes see [`Compose`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Join<const N: usize, const COMMUTATIVE: bool = false>;

// SAFETY: no bytes.
unsafe impl<const N: usize, const COMMUTATIVE: bool> Plain for Join<N, COMMUTATIVE> {}

impl<const N: usize, const COMMUTATIVE: bool> Monoid for Join<N, COMMUTATIVE> {
    type Item = [u8; N];
    type Acc = Text;
    type Output = Text;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = COMMUTATIVE;

    fn identity(&self) -> Text {
        Text { len: 0, sum: 0, power: 1 }
    }

    fn lift(&self, item: [u8; N], _: u64) -> Text {
        let sum = item.iter().fold(0_u64, |sum, &byte| sum.wrapping_mul(257).wrapping_add(byte.into()));
        Text { len: N as u64, sum, power: 257_u64.wrapping_pow(N as u32) }
    }

    fn combine(&self, left: Text, right: Text) -> Text {
        assert!(left.len > 0 && right.len > 0, "an absent operand: {left:?} with {right:?}");
        Text {
            len: left.len + right.len,
            sum: left.sum.wrapping_mul(right.power).wrapping_add(right.sum),
            power: left.power.wrapping_mul(right.power),
        }
    }

    fn finish(&self, acc: Text) -> Text {
        acc
    }
}

kernels! {
    static TABLE:
    sum_f32 => Sum<f32>,
    sum_f64 => Sum<f64>,
    min_f32 => Min<f32>,
    compose => Compose<false>,
    compose_lanes => Compose<true>,
    grouping => Grouping<false>,
    grouping_lanes => Grouping<true>,
    sentinel => Sentinel<false>,
    sentinel_lanes => Sentinel<true>,
    join_1 => Join<1>,
    join_2 => Join<2>,
    join_4 => Join<4>,
    join_20 => Join<20>,
    join_20_lanes => Join<20, true>,
}

warpfold_gpu_kernels::compact_kernels! {
    /// One kernel for all but long arrays.
    static COMPACT:
    compact_sum_f32 => Sum<f32>,
    compact_compose => Compose<false>,
    compact_sum_u8 => Sum<u8, u64>,
}

/// Items enough for `n` of them at any start within a vector, aligned to one.
struct Input<T> {
    items: Vec<T>,
    first: usize,
}

impl<T: Plain> Input<T> {
    fn new(len: usize, make: impl Fn(usize) -> T) -> Self {
        let slots = tree::vector_len(size_of::<T>());
        let items: Vec<T> = (0..len + 2 * slots).map(make).collect();
        let any = slots == 1;
        let first = (0..slots).find(|&i| any || items[i..].as_ptr().addr().is_multiple_of(16));
        Input { first: first.expect("a start aligned to 16 bytes"), items }
    }

    fn slice(&self, offset: usize, n: usize) -> &[T] {
        &self.items[self.first + offset..][..n]
    }
}

/// Reduces in the simulator with the kernel that a plan would choose.
fn simulate<Op: Monoid + Default>(table: &Table, items: &[Op::Item], schedule: Schedule) -> Op::Output {
    simulate_as::<Op>(table, items, Shape::new(items.len() as u64, size_of::<Op::Item>()), schedule)
}

/// The same with a shape that may differ from the plan's.
fn simulate_as<Op: Monoid + Default>(
    table: &Table,
    items: &[Op::Item],
    shape: Shape,
    schedule: Schedule,
) -> Op::Output {
    let op = Op::default();
    let (kernel, grid, block) = match (shape.chunks, shape.groups) {
        (0 | 1, groups) => ("reduce_one", 1, groups.max(32)),
        (chunks, SHORT_GROUPS) => ("reduce_short", chunks as u32, SHORT_GROUPS),
        (chunks, MAX_GROUPS) => ("reduce_long", chunks as u32, MAX_GROUPS),
        (_, groups) => panic!("no kernel for {groups} groups"),
    };
    let mut output = [op.finish(op.identity())];
    let mut partials = vec![op.identity(); shape.chunks as usize];
    let mut ticket = [0_u32];
    let options = Options::with_schedule(schedule)
        .buffer(Buffer::read_only("input", items))
        .buffer(Buffer::writable("output", &mut output))
        .buffer(Buffer::writable("partials", &mut partials))
        .buffer(Buffer::writable("ticket", &mut ticket));
    let params = ReduceParams {
        input: items.as_ptr(),
        n: shape.n,
        output: output.as_mut_ptr(),
        partials: partials.as_mut_ptr(),
        ticket: ticket.as_mut_ptr(),
        chunk: shape.chunk,
        chunks: shape.chunks as u32,
        groups: shape.groups,
        part: Part::WHOLE,
        op,
    };
    let export = table.find::<Op>().expect("an exported operator");
    let entry = &export.entries[export.position(kernel).expect("a kernel that serves")];
    let params = (&raw const params).addr();
    sim::launch(&Launch::new(format!("{}__{kernel}", export.name), grid, block), &options, || {
        // SAFETY: the parameters of this operator's kernels, as their documentation asks for.
        unsafe { (entry.simulate)(params as *const u8) }
    })
    .unwrap_or_else(|fault| panic!("n = {}: {fault}", items.len()));
    assert_eq!(ticket, [0], "the ticket is reset");
    output[0]
}

/// Lengths around every boundary of the tree up to `most` items.
fn lengths(item: usize, most: usize) -> Vec<usize> {
    let vector = tree::vector_len(item);
    let groups = (0..10).map(|power| (1_usize << power) * vector * 4);
    let chunks = [SHORT_GROUPS, MAX_GROUPS].map(|groups| groups as usize * vector * 4);
    let several = [1, 2, 3, FOLD_LANES as usize, FOLD_LANES as usize + 1].map(|k| k * chunks[0]);
    // A last chunk of half a batch is as regular as a whole one; in one of 40 vectors, some warps hold nothing and
    // one holds a part.
    let last = [chunks[0] * 5 / 2, chunks[0] * 2 + 40 * vector];
    let edges = groups
        .chain(chunks)
        .chain(several)
        .chain(last)
        .flat_map(|edge| [edge - 1, edge, edge + 1, edge + vector]);
    let mut lengths: Vec<usize> = (0..40).chain(edges).filter(|&n| n <= most).collect();
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// Compares the bits of the simulator's results with the definition's.
fn check<Op: Monoid + Default>(
    most: usize,
    make: impl Fn(usize) -> Op::Item,
    bits: impl Fn(Op::Output) -> u64,
) {
    check_in::<Op>(&TABLE, most, make, bits);
}

fn check_in<Op: Monoid + Default>(
    table: &Table,
    most: usize,
    make: impl Fn(usize) -> Op::Item,
    bits: impl Fn(Op::Output) -> u64,
) {
    let op = Op::default();
    let input = Input::new(most, make);
    for n in lengths(size_of::<Op::Item>(), most) {
        let starts = tree::vector_len(size_of::<Op::Item>());
        for offset in 0..starts {
            let items = input.slice(offset, n);
            let acc = tree::fold(&op, n as u64, &|i| items[i as usize]);
            let expected = op.finish(acc.unwrap_or_else(|| op.identity()));
            // Orders of execution take turns.
            let schedule = match (n + offset) % 3 {
                0 => Schedule::Sequential,
                1 => Schedule::Seeded(n as u64),
                _ => Schedule::Concurrent { seed: n as u64 },
            };
            let found = simulate::<Op>(table, items, schedule);
            assert_eq!(bits(found), bits(expected), "n = {n}, start + {offset}, {schedule:?}");
        }
    }
}

#[test]
fn sums_of_f32() {
    check::<Sum<f32>>(140_000, |i| ((i * 7919 % 1013) as f32).sqrt() - 15.0, |x| x.to_bits().into());
}

#[test]
fn sums_of_f64() {
    check::<Sum<f64>>(70_000, |i| ((i * 7919 % 1013) as f64).sqrt() - 15.0, f64::to_bits);
}

#[test]
fn one_kernel_for_few_chunks() {
    let make = |i: usize| ((i * 7919 % 1013) as f32).sqrt() - 15.0;
    check_in::<Sum<f32>>(&COMPACT, 20_000, make, |x| x.to_bits().into());
    check_in::<Compose<false>>(&COMPACT, 20_000, affine, affine_bits);
    check_in::<Sum<u8, u64>>(&COMPACT, 40_000, |i| (i * 7919 % 251) as u8, |x| x);
}

#[test]
fn minima_with_signed_zeros_and_nans() {
    let values = [0.0, -0.0, 1.0, f32::INFINITY];
    check::<Min<f32>>(20_000, |i| values[i * 31 % 4], |x| x.to_bits().into());
    let with_nan = |i: usize| if i % 4001 == 4000 { f32::NAN } else { i as f32 };
    check::<Min<f32>>(5_000, with_nan, |x| x.to_bits().into());
}

fn affine(i: usize) -> Affine {
    Affine { a: i as u32 * 2 + 1, b: i as u32 ^ 0x5555 }
}

fn affine_bits(f: Affine) -> u64 {
    u64::from(f.a) << 32 | u64::from(f.b)
}

#[test]
fn compositions_in_order() {
    check::<Compose<false>>(70_000, affine, affine_bits);
}

#[test]
fn compositions_over_lanes() {
    check::<Compose<true>>(70_000, affine, affine_bits);
}

#[test]
fn operands_are_grouped_as_defined() {
    check::<Grouping<false>>(140_000, |i| i as u32 * 7 + 1, |x| x);
    check::<Grouping<true>>(140_000, |i| i as u32 * 7 + 1, |x| x);
    // Runs of two chunks, at whose end one of three would begin another way.
    let items: Vec<u32> = (0..64 * 4 * SHORT_GROUPS * 4).map(|i| i * 7 + 1).collect();
    let shape = Shape::new(items.len() as u64, 4);
    assert_eq!((shape.chunks, shape.run()), (64, 2));
    let expected = tree::fold(&Grouping::<false>, shape.n, &|i| items[i as usize]);
    assert_eq!(Some(simulate::<Grouping<false>>(&TABLE, &items, Schedule::Sequential)), expected);
}

fn text<const N: usize>(i: usize) -> [u8; N] {
    std::array::from_fn(|k| (i * 31 + k * 7) as u8)
}

fn check_text<const N: usize, const COMMUTATIVE: bool>(most: usize) {
    check::<Join<N, COMMUTATIVE>>(most, text::<N>, |text| text.sum ^ text.power ^ text.len << 40);
}

/// Vectors of sixteen, eight and four items, and items that make none.
#[test]
fn text_of_any_item_size() {
    check_text::<1, false>(40_000);
    check_text::<2, false>(40_000);
    check_text::<4, false>(20_000);
    check_text::<20, false>(10_000);
    check_text::<20, true>(10_000);
}

/// Against an oracle that knows of no tree: the text itself.
#[test]
fn joined_text_is_the_text() {
    let items: Vec<[u8; 4]> = (0..9_000).map(text).collect();
    for n in [1, 5, 512, 513, 9_000] {
        let bytes = items[..n].as_flattened();
        let sum = bytes.iter().fold(0_u64, |sum, &byte| sum.wrapping_mul(257).wrapping_add(byte.into()));
        let found = simulate::<Join<4>>(&TABLE, &items[..n], Schedule::Seeded(1));
        assert_eq!((found.len, found.sum), (4 * n as u64, sum), "n = {n}");
    }
}

/// Items of eight bytes at addresses that are no multiples of eight.
#[test]
fn items_that_lie_astray() {
    let words: Vec<u32> = (0..40_010).map(|i| i * 7 + 1).collect();
    for start in 0..4 {
        for n in [1, 31, 256, 257, 513, 2_049, 20_000] {
            let words = &words[start..][..2 * n];
            // SAFETY: pairs of words are an `Affine`, aligned to a word.
            let items = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<Affine>(), n) };
            let expected = |acc: Option<Affine>| acc.expect("items");
            let item = |i: u64| items[i as usize];
            let schedule = Schedule::Seeded(n as u64);
            assert_eq!(
                simulate::<Compose<false>>(&TABLE, items, schedule),
                expected(tree::fold(&Compose::<false>, n as u64, &item)),
                "in order, n = {n}, start {start}"
            );
            assert_eq!(
                simulate::<Compose<true>>(&TABLE, items, schedule),
                expected(tree::fold(&Compose::<true>, n as u64, &item)),
                "over lanes, n = {n}, start {start}"
            );
        }
    }
}

/// Arrays so long that their chunks take several batches, and the kernel of the largest blocks.
#[test]
fn chunks_of_several_batches() {
    check_several_batches::<Compose<false>>();
    check_several_batches::<Compose<true>>();
}

fn check_several_batches<Op: Monoid<Item = Affine, Output = Affine, Acc = Affine> + Default>() {
    let vector = tree::vector_len(size_of::<Affine>());
    // 129 chunks, each two batches of four vectors a thread.
    let (chunk, longest) = (8 * MAX_GROUPS as usize * vector, 128 * 8 * MAX_GROUPS as usize * vector);
    let input = Input::new(longest + chunk, affine);
    // The last chunk is one item, one vector a thread more than a batch, and whole; starts take turns.
    for (n, offset) in [
        (longest / 2 + 1, 0),
        (longest + 1, 0),
        (longest + chunk * 5 / 8, 0),
        (longest + chunk * 7 / 8 - 1, 1),
        (longest + chunk, 0),
    ] {
        let items = input.slice(offset, n);
        let shape = Shape::new(n as u64, size_of::<Affine>());
        assert_eq!((shape.groups, shape.chunks >= 129), (MAX_GROUPS, true), "n = {n}");
        let expected = tree::fold(&Op::default(), n as u64, &|i| items[i as usize]).expect("items");
        let found = simulate::<Op>(&TABLE, items, Schedule::Concurrent { seed: n as u64 });
        assert_eq!(found, expected, "n = {n}, start + {offset}");
    }
}

/// More chunks than the last block loads at once, which no plan has: shorter chunks than a plan's.
#[test]
fn more_partials_than_one_batch() {
    let vector = tree::vector_len(size_of::<Affine>()) as u64;
    let chunk = 4 * SHORT_GROUPS as u64 * vector;
    let n = 299 * chunk + 5;
    let input = Input::new(n as usize, affine);
    let items = input.slice(0, n as usize);
    let shape = Shape { n, vector: vector as u32, groups: SHORT_GROUPS, chunk, chunks: 300 };
    let found = simulate_as::<Compose<true>>(&TABLE, items, shape, Schedule::Seeded(7));
    assert_eq!(Some(found), tree::fold_shape(&Compose::<true>, &shape, &|i| items[i as usize]), "over lanes");
    let found = simulate_as::<Compose<false>>(&TABLE, items, shape, Schedule::Seeded(7));
    assert_eq!(Some(found), tree::fold_shape(&Compose::<false>, &shape, &|i| items[i as usize]), "in order");
}

#[test]
fn absent_operands_are_never_combined() {
    check::<Sentinel<true>>(140_000, |i| i as u16, u64::from);
    check::<Sentinel<false>>(140_000, |i| i as u16, u64::from);
}
