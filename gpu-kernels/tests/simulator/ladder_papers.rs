//! The literature's reductions at every size around a boundary: of functions whose order shows where a kernel promises order,
//! else of a sum that shows an item twice, left out, or at another place.

use std::{fmt::Debug, ptr};

use warpfold_gpu_kernels::ladder::{
    harris,
    moderngpu::{self, Ascending, Descending, Fused, GroupParams, Redux, Shuffles},
    one_array::{self, LastBlockParams},
    pass::PassParams,
    patel,
    timcheck::{self, SET, SetParams},
};
use warpfold_monoid::{GivesIdentity, Monoid, Plain, Sum};
use warpfold_simt::{
    shared,
    sim::{self, Buffer, Launch, Options, Schedule},
};

use super::{Affine, Compose, Sentinel};

/// A sum that commutes, of items mixed with their places.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Placed;

// SAFETY: no bytes.
unsafe impl Plain for Placed {}

impl Monoid for Placed {
    type Item = u32;
    type Acc = u64;
    type Output = u64;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;

    fn identity(&self) -> u64 {
        0
    }

    fn lift(&self, item: u32, index: u64) -> u64 {
        (u64::from(item) << 32 | index).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
    }

    fn combine(&self, left: u64, right: u64) -> u64 {
        left.wrapping_add(right)
    }

    fn finish(&self, acc: u64) -> u64 {
        acc
    }
}

fn words(n: usize) -> Vec<u32> {
    (0..n as u32).map(|i| i.wrapping_mul(0x9e37_79b9) ^ i >> 3).collect()
}

fn functions(n: usize) -> Vec<Affine> {
    words(n).into_iter().zip(0..).map(|(word, i)| Affine { a: word | 1, b: i ^ 0x55 }).collect()
}

/// Left to right; the identity takes no part.
fn folded<Op: Monoid>(op: &Op, items: &[Op::Item]) -> Op::Acc {
    let lifted = items.iter().zip(0..).map(|(item, i)| op.lift(*item, i));
    lifted.reduce(|left, right| op.combine(left, right)).unwrap_or(op.identity())
}

/// Runs a kernel over parameters that name these buffers.
fn launch<P>(
    name: &str,
    blocks: u32,
    threads: u32,
    params: &P,
    buffers: &[Buffer],
    kernel: impl Fn(&P) + Sync,
) {
    let schedules =
        [Schedule::Seeded(u64::from(blocks) << 32 | u64::from(threads)), Schedule::Concurrent { seed: 7 }];
    let options =
        Options { schedule: schedules[blocks as usize % 2], buffers: buffers.to_vec(), ..Options::default() };
    let address = ptr::from_ref(params).expose_provenance();
    let done = sim::launch(&Launch::new(name, blocks, threads), &options, || {
        // SAFETY: parameters that outlive the launch.
        kernel(unsafe { &*ptr::with_exposed_provenance::<P>(address) });
    });
    done.unwrap_or_else(|fault| panic!("{name}, {blocks} blocks of {threads}: {fault:?}"));
}

/// A kernel that is launched as it asks for, of these parameters.
macro_rules! kernel {
    ($params:ident: $ty:ty => $body:expr) => {
        (|$params: &$ty| {
            // SAFETY: the tests' launches are of the shapes that the kernels document, over buffers as long as they say.
            unsafe { $body }
        }) as fn(&$ty)
    };
}

/// Launches over the items, then over what the blocks left, until one value is left. `blocks` says how many there are for so
/// many items or values, of so many threads, and whether it is the first time.
fn passes<Op: Monoid<Acc: PartialEq + Debug>>(
    name: &str,
    op: Op,
    items: &[Op::Item],
    shape: impl Fn(u64, bool) -> (u32, u32),
    kernel: impl Fn(&PassParams<Op>, bool) + Sync,
) {
    let mut values: Vec<Op::Acc> = Vec::new();
    let mut n = items.len() as u64;
    let mut first = true;
    while first || n > 1 {
        let (blocks, threads) = shape(n, first);
        let mut results = vec![op.identity(); blocks as usize];
        let mut buffers = vec![Buffer::writable("results", &mut results)];
        let mut params =
            PassParams { items: ptr::null(), values: values.as_ptr(), results: results.as_mut_ptr(), n, op };
        if first {
            params.items = items.as_ptr();
            buffers.push(Buffer::read_only("items", items));
        } else {
            buffers.push(Buffer::read_only("values", &values));
        }
        launch(name, blocks, threads, &params, &buffers, |params| kernel(params, first));
        (values, n, first) = (results, blocks.into(), false);
    }
    assert_eq!(values, [folded(&op, items)], "{name}, {} items", items.len());
}

#[test]
fn every_way_to_reduce_sets_in_place_is_right_for_every_block() {
    const HALF: usize = SET as usize / 2;
    let kernels = [
        ("naive", kernel!(p: SetParams => timcheck::naive(p))),
        ("non_divergent", kernel!(p: SetParams => timcheck::non_divergent(p))),
        ("sequential_global", kernel!(p: SetParams => timcheck::sequential_global(p))),
        ("sequential_shared", kernel!(p: SetParams => timcheck::sequential_shared(p, shared!([i32; HALF])))),
        ("shuffles", kernel!(p: SetParams => timcheck::shuffles(p, shared!([i32; 16])))),
        ("shuffles_atomic", kernel!(p: SetParams => timcheck::shuffles_atomic(p))),
        ("library_pieces", kernel!(p: SetParams => timcheck::library_pieces(p, shared!([i32; 32])))),
        ("library", kernel!(p: SetParams => timcheck::library(p, shared!([i32; 32])))),
    ];
    let unrolled = [
        kernel!(p: SetParams => timcheck::library_unrolled::<32>(p, shared!([i32; 32]))),
        kernel!(p: SetParams => timcheck::library_unrolled::<16>(p, shared!([i32; 32]))),
        kernel!(p: SetParams => timcheck::library_unrolled::<8>(p, shared!([i32; 32]))),
        kernel!(p: SetParams => timcheck::library_unrolled::<4>(p, shared!([i32; 32]))),
        kernel!(p: SetParams => timcheck::library_unrolled::<2>(p, shared!([i32; 32]))),
        kernel!(p: SetParams => timcheck::library_unrolled::<1>(p, shared!([i32; 32]))),
    ];
    let (blocks, trials) = (2, 2);
    let sets = blocks as usize * trials as usize;
    let kernels = kernels.into_iter().map(|(name, kernel)| (name, [kernel; 6]));
    for (name, kernels) in kernels.chain([("library_unrolled", unrolled)]) {
        for (threads, kernel) in [32, 64, 128, 256, 512, 1024].into_iter().zip(kernels) {
            let items: Vec<i32> = words(sets * SET as usize).into_iter().map(|word| word as i32).collect();
            let mut data = items.clone();
            let mut cycles = vec![0_u64; sets];
            let buffers = [Buffer::writable("data", &mut data), Buffer::writable("cycles", &mut cycles)];
            let params = SetParams { data: data.as_mut_ptr(), cycles: cycles.as_mut_ptr(), trials };
            launch(name, blocks, threads, &params, &buffers, kernel);
            for (s, set) in items.chunks(SET as usize).enumerate() {
                let sum = set.iter().fold(0_i32, |sum, item| sum.wrapping_add(*item));
                assert_eq!(data[s * SET as usize], sum, "{name}, {threads} threads, set {s}");
            }
            assert!(cycles.iter().all(|count| *count > 0), "{name}, {threads} threads: {cycles:?}");
        }
    }
}

/// Patel's versions of one operator, with the items that a thread brings and the fewest threads.
macro_rules! versions {
    ($op:ty, $strided:literal) => {
        [
            ("version1", 1, 32, versions!(version1, $op, $strided)),
            ("version2", 1, 32, versions!(version2, $op, $strided)),
            ("version3", 1, 32, versions!(version3, $op, $strided)),
            ("version4", 2, 32, versions!(version4, $op, $strided)),
            ("version5", 2, 64, versions!(version5, $op, $strided)),
        ]
    };
    ($version:ident, $op:ty, $strided:literal) => {
        kernel!(p: PassParams<$op> => patel::$version::<_, $strided>(p, shared!([<$op as Monoid>::Acc; 1024])))
    };
}

#[test]
fn trees_in_shared_memory_are_right_at_every_size() {
    for threads in [32, 64, 256, 1024] {
        for (name, per, least, kernel) in versions!(Placed, false) {
            if threads < least {
                continue;
            }
            let tile = per * threads as usize;
            for n in [1, 2, tile - 1, tile, tile + 1, 3 * tile + 5] {
                let shape = |n: u64, _| (n.div_ceil(tile as u64) as u32, threads);
                passes(name, Placed, &words(n), shape, |params, _| kernel(params));
            }
        }
    }
    // A block of values that are blocks of values.
    for (name, per, _, kernel) in versions!(Placed, false) {
        let tile = per * 64;
        let shape = |n: u64, _| (n.div_ceil(tile) as u32, 64);
        passes(name, Placed, &words((tile * tile) as usize + 1), shape, |params, _| kernel(params));
    }
}

#[test]
fn trees_in_strides_of_the_grid_are_right_at_every_size() {
    for threads in [64, 512] {
        for (name, per, _, kernel) in versions!(Placed, true) {
            let tile = per * threads as usize;
            for n in [1, tile - 1, tile + 1, 3 * tile, 3 * tile + 1, 10 * tile + 7] {
                let shape = |_, first| (if first { 3 } else { 1 }, threads);
                passes(name, Placed, &words(n), shape, |params, _| kernel(params));
            }
        }
    }
}

#[test]
fn interleaved_addressing_keeps_the_order() {
    type Op = Compose<false>;
    for (name, per, _, kernel) in &versions!(Op, false)[..2] {
        assert_eq!(*per, 1);
        for threads in [32, 128] {
            for n in [1, 2, 31, 33, 127, 128, 129, 3 * 128 + 5, 128 * 128 + 1] {
                let shape = |n: u64, _| (n.div_ceil(threads) as u32, threads as u32);
                passes(name, Compose, &functions(n), shape, |params, _| kernel(params));
            }
        }
    }
}

#[test]
fn harris_s_last_kernel_is_right_at_every_size() {
    fn all<const BLOCK: u32>() {
        let tile = 2 * BLOCK as usize;
        for n in [1, BLOCK as usize, BLOCK as usize + 1, tile - 1, tile, tile + 1, 6 * tile, 7 * tile + 3] {
            let shape = |_, first| (if first { 3 } else { 1 }, BLOCK);
            passes("harris", Placed, &words(n), shape, |params, _| {
                // SAFETY: blocks of that size, an operator that commutes.
                unsafe { harris::unrolled::<Placed, BLOCK>(params, shared!([u64; 1024])) }
            });
        }
    }
    all::<64>();
    all::<128>();
    all::<256>();
    all::<512>();
    all::<1024>();
}

/// moderngpu's launch over items, and over what their tiles leave.
fn recursive<Op: Monoid<Acc: PartialEq + Debug>, How: Shuffles<Op>, const NT: u32, const VT: u32>(
    name: &str,
    op: Op,
    items: &[Op::Item],
    slots: fn() -> shared::Shared<Op::Acc>,
) {
    let shape = |n: u64, first| match first {
        true => (n.div_ceil(moderngpu::tile(NT, VT)) as u32, NT),
        false => (n.div_ceil(moderngpu::tile(512, 4)) as u32, 512),
    };
    passes(name, op, items, shape, |params, first| {
        // SAFETY: a block for each tile, of so many threads; an operator that commutes.
        unsafe {
            match first {
                true => moderngpu::reduce::<Op, How, NT, VT>(params, slots()),
                false => moderngpu::reduce::<Op, How, 512, 4>(params, slots()),
            }
        }
    });
}

#[test]
fn raking_blocks_are_right_at_every_size() {
    fn all<const NT: u32, const VT: u32>() {
        let tile = moderngpu::tile(NT, VT) as usize;
        let nt = NT as usize;
        for n in [1, 2, 31, 32, 33, nt - 1, nt, nt + 1, tile - 1, tile, tile + 1, 2 * tile + nt + 1] {
            let (items, slots) = (words(n), || shared!([u64; 512]));
            recursive::<_, Ascending, NT, VT>("ascending", Placed, &items, slots);
            recursive::<_, Descending, NT, VT>("descending", Placed, &items, slots);
            recursive::<_, Fused, NT, VT>("fused", Placed, &items, slots);
            let items: Vec<i32> = items.into_iter().map(|item| item as i32).collect();
            let sum = Sum::<i32>::new();
            recursive::<_, Redux, NT, VT>("redux", sum, &items, || shared!([i32; 512]));
        }
    }
    all::<32, 1>();
    all::<128, 8>();
    all::<128, 7>();
    all::<256, 9>();
    all::<512, 11>();
}

#[test]
fn what_is_not_there_is_skipped() {
    fn all<const NT: u32, const VT: u32>() {
        let tile = moderngpu::tile(NT, VT) as usize;
        for n in [1, 2, 31, 33, NT as usize - 1, NT as usize + 1, tile - 1, tile, tile + 1] {
            let (items, op) = (vec![0_u16; n], Sentinel::<true>);
            recursive::<_, Ascending, NT, VT>("ascending", op, &items, || shared!([u32; 512]));
            recursive::<_, Descending, NT, VT>("descending", op, &items, || shared!([u32; 512]));
            recursive::<_, Fused, NT, VT>("fused", op, &items, || shared!([u32; 512]));
        }
    }
    all::<32, 3>();
    all::<128, 8>();
}

#[test]
fn tiles_of_tiles_are_right() {
    let n = 2048 * 32 + 1;
    recursive::<_, Ascending, 32, 1>("recursive", Placed, &words(n), || shared!([u64; 512]));
}

/// Groups of lanes over some items each, and the same for several rounds.
fn groups<Op: Monoid<Acc: PartialEq + Debug>, How: Shuffles<Op>, const WIDTH: u32>(
    name: &str,
    op: Op,
    items: impl Fn(usize) -> Vec<Op::Item>,
) {
    let count = 70 / WIDTH as usize + 1;
    for each in 1..=WIDTH {
        if each < WIDTH && !How::PARTIAL {
            continue;
        }
        for rounds in [1, 3] {
            let items = items(count * each as usize);
            let mut results = vec![op.identity(); count];
            let buffers = [Buffer::read_only("items", &items), Buffer::writable("results", &mut results)];
            let params = GroupParams {
                items: items.as_ptr(),
                results: results.as_mut_ptr(),
                groups: count as u64,
                count: each,
                rounds,
                op,
            };
            let blocks = (count as u32 * WIDTH).div_ceil(64);
            launch(name, blocks, 64, &params, &buffers, |params| {
                // SAFETY: whole warps, lanes enough for all groups.
                unsafe { moderngpu::groups::<Op, How, WIDTH>(params) }
            });
            let expected: Vec<Op::Acc> = items
                .chunks(each as usize)
                .map(|own| {
                    let mut first = op.lift(own[0], 0);
                    for _ in 0..rounds {
                        let rest = own.iter().zip(0..).skip(1);
                        first = rest.fold(first, |acc, (item, i)| op.combine(acc, op.lift(*item, i)));
                    }
                    first
                })
                .collect();
            assert_eq!(results, expected, "{name}, {each} of {WIDTH} lanes, {rounds} rounds");
        }
    }
}

#[test]
fn groups_of_lanes_are_right_at_every_count() {
    fn all<const WIDTH: u32>() {
        groups::<_, Ascending, WIDTH>("ascending", Compose::<false>, functions);
        groups::<_, Fused, WIDTH>("fused", Compose::<false>, functions);
        groups::<_, Descending, WIDTH>("descending", Placed, words);
        let integers = |n| words(n).into_iter().map(|word| word as i32).collect();
        groups::<_, Redux, WIDTH>("redux", Sum::<i32>::new(), integers);
    }
    all::<1>();
    all::<2>();
    all::<4>();
    all::<8>();
    all::<16>();
    all::<32>();
}

/// Sizes around those at which a grid of so many threads, four items a vector, goes on.
fn sizes(threads: usize) -> Vec<usize> {
    let around = |at: usize| [at - 1, at, at + 1, at + 3];
    let mut sizes = vec![1, 2, 3, 4, 5, 7];
    sizes.extend([1, 4, 5, 16, 20, 33].into_iter().flat_map(|times| around(times * threads)));
    sizes
}

#[repr(align(16))]
#[derive(Clone, Copy)]
struct Vector<T>([T; 4]);

/// Items at the beginning of a vector.
fn aligned<T: Plain>(items: &[T]) -> Vec<Vector<T>> {
    items.chunks(4).map(|some| Vector(std::array::from_fn(|i| some[i.min(some.len() - 1)]))).collect()
}

#[test]
fn every_strategy_for_one_array_is_right_at_every_size() {
    for (blocks, threads) in [(1, 32), (2, 64), (3, 128), (5, 32)] {
        for n in sizes((blocks * threads) as usize) {
            let items = words(n);
            let expected = folded(&Placed, &items);
            let vectors = aligned(&items);
            let items = vectors.as_ptr().cast::<u32>();
            // SAFETY: as many items, of vectors that live on.
            let slice = unsafe { std::slice::from_raw_parts(items, n) };
            let mut results = vec![0_u64; blocks as usize];
            let mut one = [0_u64];
            let mut ticket = [0_u32];
            let buffers = [
                Buffer::read_only("items", slice),
                Buffer::writable("results", &mut results),
                Buffer::writable("one", &mut one),
                Buffer::writable("ticket", &mut ticket),
            ];
            let mut params = PassParams {
                items,
                values: ptr::null(),
                results: results.as_mut_ptr(),
                n: n as u64,
                op: Placed,
            };
            // Twice: the ticket is as it was.
            let last = LastBlockParams { pass: params, ticket: ticket.as_mut_ptr() };
            for _ in 0..2 {
                results.fill(0);
                launch("last_block", blocks, threads, &last, &buffers, |params| {
                    // SAFETY: whole warps, aligned items, a ticket of its own.
                    unsafe { one_array::last_block::<_, 4>(params, shared!([u64; 32]), shared!([u32; 1])) };
                });
                assert_eq!(
                    (results[0], ticket[0]),
                    (expected, 0),
                    "last_block, {n} by {blocks} of {threads}"
                );
            }
            let kernel = kernel!(p: PassParams<Placed> => one_array::blocks::<_, 4>(p, shared!([u64; 32])));
            launch("blocks", blocks, threads, &params, &buffers, kernel);
            (params.items, params.values) = (ptr::null(), results.as_ptr());
            (params.n, params.results) = (blocks.into(), one.as_mut_ptr());
            launch("blocks, second", 1, 32, &params, &buffers, kernel);
            assert_eq!(one[0], expected, "two launches, {n} by {blocks} of {threads}");
        }
    }
}

#[test]
fn blocks_that_add_to_one_result_are_right_at_every_size() {
    let op = Sum::<i32>::new();
    for (blocks, threads) in [(1, 32), (3, 64)] {
        for n in sizes((blocks * threads) as usize) {
            let items: Vec<i32> = words(n).into_iter().map(|word| word as i32).collect();
            let vectors = aligned(&items);
            let first = vectors.as_ptr().cast::<i32>();
            // SAFETY: as many items, of vectors that live on.
            let slice = unsafe { std::slice::from_raw_parts(first, n) };
            let mut result = [0_i32];
            let buffers = [Buffer::read_only("items", slice), Buffer::writable("result", &mut result)];
            let params = PassParams {
                items: first,
                values: ptr::null(),
                results: result.as_mut_ptr(),
                n: n as u64,
                op,
            };
            launch("atomics", blocks, threads, &params, &buffers, |params| {
                // SAFETY: whole warps, aligned items, a result that is 0.
                unsafe { one_array::atomics::<_, 4>(params, shared!([i32; 32])) };
            });
            assert_eq!(result[0], folded(&op, &items), "{n} by {blocks} of {threads}");
        }
    }
}
