//! The thesis's future work, measured.
//!
//! Columns: the table; the operator or the type of the items; logarithms of the number of items and of segments; the kernel; threads
//! of a group; threads of a segment (`parts`) or items of a load (`vectors`), else 1; microseconds without the transpose, where
//! there is one, and with it.
//!
//! | table | rows |
//! | --- | --- |
//! | `small` | segments that share a group, by a scan (as published), a tree with flags, a tree by index arithmetic |
//! | `parts` | loop-in-map with several threads a segment |
//! | `vectors` | sums of one segment of 2^28 bytes, an item a load and 16 bytes a load |

use std::{fmt::Debug, ptr};

use half::f16;
use warpfold_gpu_kernels::ladder::{
    future::{PartsParams, flags_bytes},
    thesis::{CONTIGUOUS, STRIDED, TRANSPOSED, ThesisParams, room_bytes, segments_of_group},
};
use warpfold_monoid::{MaxSegmentSum, Monoid, Sum};

use crate::{
    harness::{Failure, Gpu, Report, check, values},
    thesis::{Bench, Exported, Params, Plan, Step, oracles},
};

pub fn run(gpu: &Gpu) -> Result<(), Failure> {
    let columns = "table,what,log2_n,log2_m,kernel,group,width,raw_us,final_us";
    let mut report = Report::new(gpu, "future", "microseconds a call, medians", columns);
    of_segments::<Sum<i32>>(gpu, "sum", &mut report)?;
    of_segments::<MaxSegmentSum<i32>>(gpu, "mss", &mut report)?;
    let summed = |items: &[i32]| items.iter().map(|item| i64::from(*item)).sum::<i64>();
    vectors(gpu, "f64", 2, Sum::<f64>::new(), f64::from, |items| summed(items) as f64, &mut report)?;
    vectors(gpu, "i32", 4, Sum::<i32>::new(), |item| item, |items| summed(items) as i32, &mut report)?;
    let of_f16 = |items: &[i32]| f16::from_f64(summed(items) as f64);
    vectors(gpu, "f16", 8, Sum::<f16>::new(), |item| f16::from_f64(item.into()), of_f16, &mut report)?;
    vectors(gpu, "u8", 16, Sum::<u8>::new(), |item| item as u8, |items| summed(items) as u8, &mut report)?;
    report.finish()
}

fn of_segments<Op: Exported>(gpu: &Gpu, prefix: &str, report: &mut Report) -> Result<(), Failure> {
    let log = 26;
    let bench = Bench::<Op>::new(gpu, log)?;
    for log_m in (6..=log).step_by(2) {
        let (m, length) = (1_u64 << log_m, bench.n >> log_m);
        let expected = oracles::<Op>(&bench.host, m as usize);
        let mut row = |table: &str, kernel: &str, threads: u32, width: u32, plan: Plan<Op>| {
            let [raw, last] =
                plan.times(&format!("{kernel}, {m} of {length}, {threads}, {width}"), &expected)?;
            report.row(format_args!(
                "{table},{},{log},{log_m},{kernel},{threads},{width},{raw:.2},{last:.2}",
                Op::NAME
            ));
            Ok::<(), Failure>(())
        };
        for threads in [128_u32, 256, 1024] {
            if length > threads as u64 {
                continue;
            }
            let at = (threads, segments_of_group(threads as u64, length));
            let room = room_bytes::<Op::Acc>(threads as usize);
            let plan = bench.single(bench.kernel("small")?, m, at, CONTIGUOUS, room);
            row("small", "scan", threads, 1, plan)?;
            for (name, bytes) in [("flags", flags_bytes::<Op::Acc>(threads as usize)), ("index", room)] {
                let kernel = gpu.kernel("future", &format!("{prefix}_small_by_{name}"))?;
                row("small", name, threads, 1, bench.single(kernel, m, at, CONTIGUOUS, bytes))?;
            }
        }
        let threads = 256_u32;
        for parts in [1_u32, 2, 4, 8, 16, 32] {
            if length < parts as u64 || length / parts as u64 > 1 << 16 {
                continue;
            }
            let mut of = bench.params(m);
            of.loading = TRANSPOSED;
            let step = Step {
                kernel: gpu.kernel("future", &format!("{prefix}_parts"))?,
                blocks: m.div_ceil((threads / parts) as u64),
                threads,
                shared: room_bytes::<Op::Acc>(threads as usize),
                params: Params::Parts(PartsParams { of, parts }),
            };
            row("parts", "loop_in_map", threads, parts, Plan::of(&bench, Some([m, length]), vec![step]))?;
        }
    }
    Ok(())
}

/// Sums of one segment, by items and by vectors of 16 bytes.
fn vectors<Op: Monoid<Output: PartialEq + Debug>>(
    gpu: &Gpu,
    name: &str,
    width: u32,
    op: Op,
    item: impl Fn(i32) -> Op::Item,
    oracle: impl Fn(&[i32]) -> Op::Output,
    report: &mut Report,
) -> Result<(), Failure> {
    let n = (1 << 28) / size_of::<Op::Item>();
    // Each with its negative next to it, but for the first one: no sum leaves any type.
    let mut numbers: Vec<i32> =
        values(n / 2).into_iter().flat_map(|value| [value % 17, -(value % 17)]).collect();
    numbers[0] += 37;
    let expected = oracle(&numbers);
    let items = gpu.upload(&numbers.into_iter().map(item).collect::<Vec<_>>())?;
    let output = gpu.zeros::<Op::Output>(1)?;
    for threads in [128_u32, 256, 512] {
        let shared = room_bytes::<Op::Acc>(threads as usize);
        for (kernel, of_load) in [("items", 1), ("vectors", width)] {
            let first = gpu.kernel("future", &format!("{name}_{kernel}"))?;
            let second = gpu.kernel("future", &format!("{name}_partials"))?;
            let groups = first.resident_with(threads, shared)? as u64 * gpu.multiprocessors as u64;
            let partials = gpu.zeros::<Op::Acc>(groups as usize)?;
            let params = ThesisParams {
                items: items.ptr(),
                partials: ptr::null(),
                output: ptr::null_mut(),
                values: partials.ptr(),
                segments: 1,
                length: n as u64,
                groups,
                chunk: 1,
                loading: STRIDED,
                op,
            };
            let folded = ThesisParams {
                partials: partials.ptr(),
                output: output.ptr(),
                length: groups,
                groups: 1,
                ..params
            };
            let call = || {
                // SAFETY: the entries' parameters, whose memory is as long as they say.
                unsafe {
                    first.launch_with(groups, threads, shared, &params)?;
                    second.launch_with(1, threads, shared, &folded)
                }
            };
            gpu.clear(&output)?;
            call()?;
            let found = output.read(gpu, 0, 1)?;
            check(format!("{name} by {kernel}, groups of {threads}"), &found[0], &expected)?;
            let time = gpu.time_for(5e3, &|_| call())?;
            let log = n.ilog2();
            report
                .row(format_args!("vectors,{name},{log},0,{kernel},{threads},{of_load},{time:.2},{time:.2}"));
        }
    }
    Ok(())
}
