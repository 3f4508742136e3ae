//! The kernels' own source in the simulator, against the definition of the canonical tree, item by item: every length
//! around a boundary, every misaligned start, and every access checked against the buffers that the launch has.

use warpfold_gpu_kernels::device::ReduceParams;
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

/// Composes functions, the first item innermost.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Compose;

// SAFETY: no bytes.
unsafe impl Plain for Compose {}

impl Monoid for Compose {
    type Item = Affine;
    type Acc = Affine;
    type Output = Affine;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = false;

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
struct Sentinel;

// SAFETY: no bytes.
unsafe impl Plain for Sentinel {}

impl Monoid for Sentinel {
    type Item = u16;
    type Acc = u32;
    type Output = u32;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = false;

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

kernels! {
    static TABLE:
    sum_f32 => Sum<f32>,
    sum_f64 => Sum<f64>,
    min_f32 => Min<f32>,
    compose => Compose,
    sentinel => Sentinel,
}

/// Items enough for `n` of them at any start within a vector, aligned to one.
struct Input<T> {
    items: Vec<T>,
    first: usize,
}

impl<T: Plain> Input<T> {
    fn new(len: usize, make: impl Fn(usize) -> T) -> Self {
        let slots = 16 / size_of::<T>();
        let items: Vec<T> = (0..len + 2 * slots).map(make).collect();
        let first = (0..slots).find(|&i| items[i..].as_ptr().addr().is_multiple_of(16));
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
        op,
    };
    let export = table.find::<Op>().expect("an exported operator");
    let entry = export.entries.iter().find(|entry| entry.kernel == kernel).expect("a kernel of that name");
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
            let found = simulate::<Op>(&TABLE, items, schedule);
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
fn minima_with_signed_zeros_and_nans() {
    let values = [0.0, -0.0, 1.0, f32::INFINITY];
    check::<Min<f32>>(20_000, |i| values[i * 31 % 4], |x| x.to_bits().into());
    let with_nan = |i: usize| if i % 4001 == 4000 { f32::NAN } else { i as f32 };
    check::<Min<f32>>(5_000, with_nan, |x| x.to_bits().into());
}

#[test]
fn compositions_that_do_not_commute() {
    let make = |i: usize| Affine { a: i as u32 * 2 + 1, b: i as u32 ^ 0x5555 };
    check::<Compose>(70_000, make, |f| u64::from(f.a) << 32 | u64::from(f.b));
}

/// Arrays so long that their chunks take several batches, and the kernel of the largest blocks.
#[test]
fn chunks_of_several_batches() {
    let vector = tree::vector_len(size_of::<Affine>());
    // 129 chunks, each two batches of four vectors a thread.
    let (chunk, longest) = (8 * MAX_GROUPS as usize * vector, 128 * 8 * MAX_GROUPS as usize * vector);
    let input = Input::new(longest + chunk, |i| Affine { a: i as u32 * 2 + 1, b: i as u32 ^ 0x5555 });
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
        let expected = tree::fold(&Compose, n as u64, &|i| items[i as usize]).expect("items");
        let found = simulate::<Compose>(&TABLE, items, Schedule::Concurrent { seed: n as u64 });
        assert_eq!(found, expected, "n = {n}, start + {offset}");
    }
}

/// More chunks than the last block loads at once. Plans have as many only for arrays of a gigabyte, so the chunks
/// here are shorter than a plan's.
#[test]
fn more_partials_than_one_batch() {
    let vector = tree::vector_len(size_of::<Affine>()) as u64;
    let chunk = 2 * SHORT_GROUPS as u64 * vector;
    let n = 300 * chunk + 5;
    let input = Input::new(n as usize, |i| Affine { a: i as u32 * 2 + 1, b: i as u32 ^ 0x5555 });
    let items = input.slice(0, n as usize);
    let shape = Shape { n, vector: vector as u32, groups: SHORT_GROUPS, chunk, chunks: 301 };
    let op = Compose;
    let lift = |i: u64| op.lift(items[i as usize], i);
    let partials: Vec<Affine> = (0..shape.chunks)
        .map(|k| {
            let range = shape.chunk_range(k);
            tree::pairwise(&op, shape.lanes().min(range.end - range.start), &|lane| {
                let lane = (range.start + lane..range.end).step_by(shape.lanes() as usize);
                lane.map(lift).reduce(|left, right| op.combine(left, right)).expect("a present lane")
            })
        })
        .collect();
    let expected = tree::pairwise(&op, FOLD_LANES as u64, &|lane| {
        let lane = partials.iter().skip(lane as usize).step_by(FOLD_LANES as usize).copied();
        lane.reduce(|left, right| op.combine(left, right)).expect("a partial a lane")
    });
    let found = simulate_as::<Compose>(&TABLE, items, shape, Schedule::Seeded(7));
    assert_eq!(found, expected, "n = {n}");
}

#[test]
fn absent_operands_are_never_combined() {
    check::<Sentinel>(140_000, |i| i as u16, u64::from);
}
