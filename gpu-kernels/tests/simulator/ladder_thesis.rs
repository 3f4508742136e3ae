//! The thesis's segmented reductions and what it leaves to future work: lengths around those of warps and groups, groups that are
//! not full, segments that straddle groups, functions whose order shows, and items whose index does.

use std::ptr;

use warpfold_gpu_kernels::ladder::future::{
    PartsParams, flags_bytes, large_vectors, loop_in_map_parts, small_by_flags, small_by_index,
};
use warpfold_gpu_kernels::ladder::thesis::{
    COMPACT, CONTIGUOUS, INTERLEAVED, SHUFFLES, STRIDED, ScanParams, Strategy, TRANSPOSED, ThesisParams,
    Thresholds, WAVES, choose, gather, large, loop_in_map, mark, propagate, room_bytes, scan_runs,
    segments_of_group, small, split,
};
use warpfold_monoid::{GivesIdentity, Monoid, Plain};
use warpfold_simt::sim::{self, Buffer, Launch, Options, Schedule};

use super::{Affine, Compose};

/// Sums items, each times a number that its index makes: it commutes, and shows any item that is told a wrong index.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Weighted;

// SAFETY: no bytes.
unsafe impl Plain for Weighted {}

impl Monoid for Weighted {
    type Item = u32;
    type Acc = u32;
    type Output = u32;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;

    fn identity(&self) -> u32 {
        0
    }

    fn lift(&self, item: u32, index: u64) -> u32 {
        item.wrapping_mul((index as u32).wrapping_mul(0x9e37_79b1) | 1)
    }

    fn combine(&self, left: u32, right: u32) -> u32 {
        left.wrapping_add(right)
    }

    fn finish(&self, acc: u32) -> u32 {
        acc ^ 0x1234
    }
}

fn affines(n: u64) -> Vec<Affine> {
    (0..n as u32).map(|i| Affine { a: i.wrapping_mul(0x9e37_79b9) | 1, b: i ^ 0x55 }).collect()
}

fn numbers(n: u64) -> Vec<u32> {
    (0..n as u32).map(|i| i.wrapping_mul(0x85eb_ca6b) >> 3).collect()
}

/// One item after the other, a segment after the other.
fn expected<Op: Monoid>(op: &Op, items: &[Op::Item], length: u64) -> Vec<Op::Output> {
    let of_segment = |items: &[Op::Item]| {
        let lifted = items.iter().zip(0..).map(|(&item, i)| op.lift(item, i));
        op.finish(lifted.reduce(|left, right| op.combine(left, right)).unwrap())
    };
    items.chunks_exact(length as usize).map(of_segment).collect()
}

/// Rows become columns.
fn transposed<T: Copy>(items: &[T], width: u64) -> Vec<T> {
    let width = width as usize;
    (0..width).flat_map(|x| (0..items.len() / width).map(move |y| items[y * width + x])).collect()
}

/// Runs a kernel over parameters, which name the buffers.
fn run<P: Sync>(
    name: &str,
    (grid, threads, bytes): (u64, u32, usize),
    buffers: Vec<Buffer>,
    params: &P,
    kernel: impl Fn(&P) + Sync,
) {
    let options = Options { schedule: Schedule::Seeded(grid), buffers, ..Options::default() };
    let launch = Launch::new(name, grid as u32, threads).with_dynamic_shared(bytes);
    let address = ptr::from_ref(params).expose_provenance();
    sim::launch(&launch, &options, || {
        // SAFETY: parameters that outlive the launch.
        kernel(unsafe { &*ptr::with_exposed_provenance::<P>(address) })
    })
    .unwrap_or_else(|fault| panic!("{name}, {grid} groups of {threads}: {fault:?}"));
}

/// Parameters are shared with simulated threads, of which one runs at a time.
struct Args<Op: Monoid>(ThesisParams<Op>);

// SAFETY: the simulator runs its threads on the calling one.
unsafe impl<Op: Monoid> Sync for Args<Op> {}

fn params<Op: Monoid>(op: Op, items: &[Op::Item], segments: u64, length: u64) -> ThesisParams<Op> {
    ThesisParams {
        items: items.as_ptr(),
        partials: ptr::null(),
        output: ptr::null_mut(),
        values: ptr::null_mut(),
        segments,
        length,
        groups: 1,
        chunk: length,
        loading: CONTIGUOUS,
        op,
    }
}

/// How a kernel of one step is called.
#[derive(Clone, Copy, Debug, PartialEq)]
enum OneStep {
    Small,
    SmallByIndex,
    SmallByFlags,
    LoopInMap,
    Parts(u32),
}

fn one_step<Op: Monoid<Output: PartialEq + std::fmt::Debug>>(
    op: Op,
    items: &[Op::Item],
    length: u64,
    threads: u32,
    how: OneStep,
    loading: u32,
) {
    let segments = items.len() as u64 / length;
    let laid_out = if loading == TRANSPOSED { transposed(items, length) } else { items.to_vec() };
    let mut output = vec![op.finish(op.identity()); segments as usize];
    let mut params = params(op, &laid_out, segments, length);
    (params.output, params.loading) = (output.as_mut_ptr(), loading);
    let buffers = vec![Buffer::read_only("items", &laid_out), Buffer::writable("output", &mut output)];
    let of_group = match how {
        OneStep::LoopInMap => threads as u64,
        OneStep::Parts(parts) => (threads / parts) as u64,
        _ => segments_of_group(threads as u64, length),
    };
    let bytes = match how {
        OneStep::SmallByFlags => flags_bytes::<Op::Acc>(threads as usize),
        _ => room_bytes::<Op::Acc>(threads as usize),
    };
    let name = format!("{how:?}, {segments} of {length}");
    run(&name, (segments.div_ceil(of_group), threads, bytes), buffers, &Args(params), |Args(params)| {
        // SAFETY: parameters as the kernels ask for.
        unsafe {
            match how {
                OneStep::Small => small::<Op, false>(params),
                OneStep::SmallByIndex => small_by_index(params),
                OneStep::SmallByFlags => small_by_flags(params),
                OneStep::LoopInMap => loop_in_map(params),
                OneStep::Parts(parts) => loop_in_map_parts(&PartsParams { of: *params, parts }),
            }
        }
    });
    assert_eq!(output, expected(&op, items, length), "{name}, groups of {threads}");
}

#[test]
fn several_segments_share_a_group() {
    for threads in [32, 96, 128, 256] {
        for length in [1, 2, 3, 5, 31, 32, 33, 48, 64, 100, 128, 255] {
            if length > threads as u64 {
                continue;
            }
            let of_group = segments_of_group(threads as u64, length);
            // One; a group that is not full; full groups and one more segment.
            for segments in [1, of_group.div_ceil(2), 2 * of_group, 2 * of_group + 1] {
                let n = segments * length;
                for how in [OneStep::Small, OneStep::SmallByIndex, OneStep::SmallByFlags] {
                    one_step(Compose::<false>, &affines(n), length, threads, how, CONTIGUOUS);
                    one_step(Weighted, &numbers(n), length, threads, how, CONTIGUOUS);
                }
            }
        }
    }
}

#[test]
fn a_thread_or_several_take_a_segment() {
    for (segments, length) in [(1, 1), (1, 70), (31, 2), (33, 17), (200, 3), (257, 8)] {
        let items = affines(segments * length);
        for how in [OneStep::LoopInMap, OneStep::Parts(1), OneStep::Parts(4), OneStep::Parts(32)] {
            one_step(Compose::<false>, &items, length, 64, how, TRANSPOSED);
            one_step(Weighted, &numbers(segments * length), length, 64, how, TRANSPOSED);
        }
        one_step(Compose::<false>, &items, length, 64, OneStep::LoopInMap, CONTIGUOUS);
    }
}

fn run_large<Op: Monoid>(
    params: ThesisParams<Op>,
    threads: u32,
    combine: u32,
    buffers: Vec<Buffer>,
    partials: bool,
) {
    let grid = params.segments * params.groups;
    let bytes = room_bytes::<Op::Acc>(threads as usize);
    let name = format!("large, {} of {}, {combine}, partials: {partials}", params.segments, params.length);
    run(&name, (grid, threads, bytes), buffers, &Args(params), |Args(params)| {
        // SAFETY: parameters as the kernel asks for.
        unsafe {
            match (partials, combine) {
                (false, INTERLEAVED) => large::<Op, false, INTERLEAVED>(params),
                (false, COMPACT) => large::<Op, false, COMPACT>(params),
                (false, SHUFFLES) => large::<Op, false, SHUFFLES>(params),
                (false, _) => large::<Op, false, WAVES>(params),
                (true, _) => large::<Op, true, WAVES>(params),
            }
        }
    });
}

/// Both steps: the second one, over the groups' values, by a group a segment or by segments that share one.
fn two_steps<Op: Monoid<Output: PartialEq + std::fmt::Debug>>(
    op: Op,
    items: &[Op::Item],
    (segments, length): (u64, u64),
    (threads, combine): (u32, u32),
    (groups, chunk, loading): (u64, u64, u32),
    seconds: &[Strategy],
) {
    let laid_out = if loading == TRANSPOSED { transposed(items, chunk) } else { items.to_vec() };
    let mut output = vec![op.finish(op.identity()); segments as usize];
    let mut values = vec![op.identity(); (segments * groups) as usize];
    let mut first = params(op, &laid_out, segments, length);
    (first.groups, first.chunk, first.loading) = (groups, chunk, loading);
    let place = values.as_mut_ptr();
    if groups == 1 {
        first.output = output.as_mut_ptr();
    } else {
        first.values = place;
    }
    let buffers = vec![
        Buffer::read_only("items", &laid_out),
        Buffer::writable("output", &mut output),
        Buffer::writable("values", &mut values),
    ];
    run_large(first, threads, combine, buffers.clone(), false);
    let what = format!("{segments} of {length}, {groups} groups of {threads}, chunks of {chunk}, {loading}");
    if groups == 1 {
        assert_eq!(output, expected(&op, items, length), "{what}");
        return;
    }
    for second in seconds {
        let mut params = params(op, &laid_out, segments, groups);
        (params.items, params.partials) = (ptr::null(), place);
        params.output = output.as_mut_ptr();
        params.chunk = groups.div_ceil(threads as u64);
        if *second == Strategy::Large {
            run_large(params, threads, WAVES, buffers.clone(), true);
        } else {
            let grid = segments.div_ceil(segments_of_group(threads as u64, groups));
            let bytes = room_bytes::<Op::Acc>(threads as usize);
            run("second", (grid, threads, bytes), buffers.clone(), &Args(params), |Args(params)| {
                // SAFETY: parameters as the kernel asks for.
                unsafe { small::<Op, true>(params) }
            });
        }
        assert_eq!(output, expected(&op, items, length), "{what}, {second:?}");
        output.fill(op.finish(op.identity()));
    }
}

#[test]
fn groups_take_segments_in_two_steps() {
    let both = [Strategy::Large, Strategy::Small];
    for threads in [32, 64, 96, 256] {
        for length in [1, 33, 95, 256, 257, 700, 1024, 3000] {
            for segments in [1, 3] {
                let items = affines(segments * length);
                for hint in [1, 4, 12] {
                    let (groups, chunk) = split(segments, length, threads as u64, hint);
                    let second = if groups <= threads as u64 { &both[..] } else { &both[..1] };
                    for combine in [WAVES, INTERLEAVED, COMPACT, SHUFFLES] {
                        let (of, at) = ((segments, length), (threads, combine));
                        two_steps(
                            Weighted,
                            &numbers(segments * length),
                            of,
                            at,
                            (groups, chunk, STRIDED),
                            second,
                        );
                        two_steps(Compose::<false>, &items, of, at, (groups, chunk, CONTIGUOUS), second);
                        if length.is_multiple_of(chunk) {
                            two_steps(Compose::<false>, &items, of, at, (groups, chunk, TRANSPOSED), second);
                        }
                    }
                }
                // A thread an item needs no transpose, and more partial values than a group has threads.
                let groups = length.div_ceil(threads as u64);
                let second = if groups <= threads as u64 { &both[..] } else { &both[..1] };
                let of = (segments, length);
                two_steps(Compose::<false>, &items, of, (threads, WAVES), (groups, 1, CONTIGUOUS), second);
            }
        }
    }
}

#[test]
fn vectors_are_items_too() {
    for (segments, length, groups) in [(1, 4, 1), (2, 256, 1), (3, 1028, 3), (1, 5000, 4)] {
        let items = numbers(segments * length);
        // A vector needs its alignment.
        let mut aligned = vec![[0_u128; 1]; items.len() / 4];
        // SAFETY: as many bytes as the items have.
        let room = unsafe { std::slice::from_raw_parts_mut(aligned.as_mut_ptr().cast::<u32>(), items.len()) };
        room.copy_from_slice(&items);
        let mut values = vec![0_u32; (segments * groups) as usize];
        let mut params = params(Weighted, room, segments, length);
        (params.values, params.groups) = (values.as_mut_ptr(), groups);
        let buffers = vec![Buffer::read_only("items", room), Buffer::writable("values", &mut values)];
        let shape = (segments * groups, 64, room_bytes::<u32>(64));
        run("vectors", shape, buffers, &Args(params), |Args(params)| {
            // SAFETY: parameters as the kernel asks for.
            unsafe { large_vectors::<Weighted, 4>(params) }
        });
        let sums = values.chunks(groups as usize);
        let found: Vec<u32> =
            sums.map(|of| Weighted.finish(of.iter().fold(0, |a, b| a.wrapping_add(*b)))).collect();
        assert_eq!(found, expected(&Weighted, &items, length), "{segments} of {length}");
    }
}

struct ScanArgs(ScanParams<Compose<false>>);

// SAFETY: as for `Args`.
unsafe impl Sync for ScanArgs {}

#[test]
fn a_scan_with_flags_reduces_segments() {
    for threads in [32_u32, 128] {
        for (segments, length) in
            [(1, 1), (1, 1000), (1000, 1), (7, 37), (5, 128), (3, 129), (40, 64), (2, 700)]
        {
            for groups in [1_u64, 3, 8] {
                let op = Compose::<false>;
                let n = segments * length;
                let items = affines(n);
                let run_length = n.div_ceil(groups);
                let groups = n.div_ceil(run_length);
                let (mut values, mut totals) =
                    (vec![op.identity(); n as usize], vec![op.identity(); groups as usize]);
                let (mut flags, mut total_flags) = (vec![7_u8; n as usize], vec![7_u8; groups as usize]);
                let mut output = vec![op.identity(); segments as usize];
                let buffers = vec![
                    Buffer::read_only("items", &items),
                    Buffer::writable("values", &mut values),
                    Buffer::writable("totals", &mut totals),
                    Buffer::writable("flags", &mut flags),
                    Buffer::writable("total flags", &mut total_flags),
                    Buffer::writable("output", &mut output),
                ];
                let scan = ScanParams {
                    items: items.as_ptr(),
                    flags: flags.as_mut_ptr(),
                    values: values.as_mut_ptr(),
                    totals: totals.as_mut_ptr(),
                    total_flags: total_flags.as_mut_ptr(),
                    output: output.as_mut_ptr(),
                    n,
                    length,
                    run: run_length,
                    op,
                };
                let of_totals = ScanParams {
                    items: ptr::null(),
                    flags: scan.total_flags,
                    values: scan.totals,
                    totals: ptr::null_mut(),
                    n: groups,
                    run: groups,
                    ..scan
                };
                let bytes = room_bytes::<Affine>(threads as usize);
                // SAFETY: parameters as the kernels ask for.
                unsafe {
                    let step = |name: &str, grid, params, kernel: unsafe fn(&ScanParams<Compose<false>>)| {
                        run(name, (grid, threads, bytes), buffers.clone(), &ScanArgs(params), |params| {
                            kernel(&params.0)
                        });
                    };
                    step("mark", 2, scan, |params| mark(params));
                    step("scan", groups, scan, |params| scan_runs(params));
                    step("scan of totals", 1, of_totals, |params| scan_runs(params));
                    step("propagate", groups, scan, |params| propagate(params));
                    step("gather", segments.div_ceil(threads as u64), scan, |params| gather(params));
                }
                assert_eq!(
                    output,
                    expected(&op, &items, length),
                    "{segments} of {length}, {groups} groups of {threads}"
                );
            }
        }
    }
}

#[test]
fn groups_and_chunks_cover_every_segment() {
    for length in [1, 2, 127, 128, 129, 1000, 1 << 20] {
        for group in [128, 1024] {
            for (segments, hint) in [(1, 1), (1, 1056), (7, 100), (1056, 1056), (5000, 1056)] {
                let (groups, chunk) = split(segments, length, group, hint);
                assert!(groups * group * chunk >= length);
                assert!(chunk > 1 || (groups - 1) * group < length, "no group is without items");
            }
        }
    }
}

#[test]
fn the_choice_compares_twice() {
    let at = Thresholds { many: 4096, short: 128 };
    assert_eq!(choose(4096, 1, at), Strategy::LoopInMap);
    assert_eq!(choose(4095, 128, at), Strategy::Small);
    assert_eq!(choose(4095, 129, at), Strategy::Large);
}
