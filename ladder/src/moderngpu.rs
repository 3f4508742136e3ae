//! moderngpu's reduction.
//!
//! Part `array`: 128 threads of 7, 8, 9 or 11 values each, then 512 of 4 over what their tiles left, and so on. Columns: the
//! shuffles; the first launch's shape; the logarithm of the number of items; microseconds of the whole, and 10^9 bytes a
//! second. Calls read copies of the array in turn.
//!
//! Parts `one_warp` and `all_warps`: groups of lanes that fold a value each, round after round, where each round waits for the
//! one before: one warp alone, or 64 on every multiprocessor. Columns: the shuffles; the lanes of a group, and how many of
//! them have a value, as `lanes/count`; nothing; nanoseconds of a round; nothing.

use std::ptr;

use warpfold_gpu_kernels::ladder::{
    moderngpu::{GroupParams, tile},
    pass::PassParams,
};
use warpfold_monoid::Sum;

use crate::harness::{Failure, Gpu, Report, check, sum, values};

/// The shape of all launches but the first.
const REST: (u32, u32) = (512, 4);

pub fn run(gpu: &Gpu) -> Result<(), Failure> {
    let mut report = Report::new(
        gpu,
        "moderngpu",
        "sums of i32; microseconds a call, medians; of groups, nanoseconds a round",
        "part,shuffles,shape,log2_n,time,gbps",
    );
    arrays(gpu, &mut report)?;
    for how in ["ascending", "descending", "fused", "redux"] {
        for width in [2, 4, 8, 16, 32] {
            groups(gpu, &mut report, how, width, width)?;
        }
        if how == "ascending" || how == "descending" {
            groups(gpu, &mut report, how, 32, 20)?;
        }
    }
    report.finish()
}

fn arrays(gpu: &Gpu, report: &mut Report) -> Result<(), Failure> {
    let rest = gpu.kernel("moderngpu", "ascending_512x4")?;
    for log in (10..=28).step_by(2) {
        let items = values(1 << log);
        let (expected, copies) = (sum(&items), gpu.rotation(&items)?);
        let forms = [
            ("ascending", 7),
            ("ascending", 8),
            ("ascending", 9),
            ("ascending", 11),
            ("descending", 8),
            ("fused", 8),
            ("redux", 8),
        ];
        for (how, vt) in forms {
            let first = gpu.kernel("moderngpu", &format!("{how}_128x{vt}"))?;
            let mut levels = vec![gpu.zeros::<i32>(items.len().div_ceil(tile(128, vt) as usize))?];
            while levels[levels.len() - 1].len() > 1 {
                let len = levels[levels.len() - 1].len().div_ceil(tile(REST.0, REST.1) as usize);
                levels.push(gpu.zeros(len)?);
            }
            let call = |call: usize| -> Result<(), Failure> {
                let mut params = PassParams::<Sum<i32>> {
                    items: copies[call % copies.len()].ptr(),
                    values: ptr::null(),
                    results: levels[0].ptr(),
                    n: items.len() as u64,
                    op: Sum::new(),
                };
                // SAFETY: the entries' parameters, whose memory is ours and as long as they say.
                unsafe {
                    first.launch(levels[0].len() as u64, 128, &params)?;
                    for pair in levels.windows(2) {
                        (params.items, params.values) = (ptr::null(), pair[0].ptr());
                        (params.n, params.results) = (pair[0].len() as u64, pair[1].ptr());
                        rest.launch(pair[1].len() as u64, REST.0, &params)?;
                    }
                }
                Ok(())
            };
            call(0)?;
            let found = levels[levels.len() - 1].read(gpu, 0, 1)?[0];
            check(format!("{how}, 128x{vt}, 2^{log}"), found, expected)?;
            let time = gpu.time(&call)?;
            let gbps = size_of_val(&items[..]) as f64 / time / 1e3;
            report.row(format_args!("array,{how},128x{vt},{log},{time:.2},{gbps:.1}"));
        }
    }
    Ok(())
}

/// Rounds of the shorter and of the longer of two launches, whose difference counts.
const ROUNDS: [u32; 2] = [1 << 10, 1 << 14];

fn groups(gpu: &Gpu, report: &mut Report, how: &str, width: u32, count: u32) -> Result<(), Failure> {
    let kernel = gpu.kernel("moderngpu", &format!("groups_{how}_{width}"))?;
    for (part, blocks, threads) in [("one_warp", 1, 32), ("all_warps", 8 * gpu.multiprocessors, 256)] {
        let groups = u64::from(blocks * threads / width);
        let items = values((groups * u64::from(count)) as usize);
        let (data, results) = (gpu.upload(&items)?, gpu.zeros::<i32>(groups as usize)?);
        let mut params = GroupParams::<Sum<i32>> {
            items: data.ptr(),
            results: results.ptr(),
            groups,
            count,
            rounds: 3,
            op: Sum::new(),
        };
        // SAFETY: the entry's parameters, whose memory is ours.
        let call = |params: &GroupParams<Sum<i32>>| unsafe { kernel.launch(blocks.into(), threads, params) };
        call(&params)?;
        // Each round adds all but the first once more.
        let expected: Vec<i32> = items
            .chunks(count as usize)
            .map(|own| own[0].wrapping_add(sum(&own[1..]).wrapping_mul(params.rounds as i32)))
            .collect();
        let wrong =
            results.read(gpu, 0, groups as usize)?.iter().zip(&expected).filter(|(a, b)| a != b).count();
        check(format!("{how}, {count} of {width} lanes: groups that are"), wrong, 0)?;
        let mut times = [0.0; 2];
        for (time, rounds) in times.iter_mut().zip(ROUNDS) {
            params.rounds = rounds;
            *time = gpu.time(&|_| call(&params))?;
        }
        let round = (times[1] - times[0]) * 1e3 / f64::from(ROUNDS[1] - ROUNDS[0]);
        report.row(format_args!("{part},{how},{width}/{count},,{round:.3},"));
    }
    Ok(())
}
