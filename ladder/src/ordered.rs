//! Reading in order what is to be folded in order, of an array of 2^26 or 2^20 items of `i32`.
//!
//! Columns: the operator (`ordered`: a sum that keeps to the order; `mss`); the logarithm of the number of items; the way; threads
//! of a group; groups; items that a thread takes from one window; microseconds of all launches without the transpose, where there
//! is one, and with it.
//!
//! `neighbours` is what all others avoid: each thread reads its chunk as it lies. `global_transpose` is Futhark's way in 2017,
//! `in_block` Modern GPU's (a tile a group as it has it, or as many groups as the card holds), `sliding` Accelerate's, `chunk_1`
//! the thesis's section 6.2.1.

use std::ptr;

use warpfold_gpu_kernels::ladder::{
    ordered::{OrderedParams, tile_bytes},
    thesis::{CONTIGUOUS, TRANSPOSED, room_bytes},
};
use warpfold_monoid::{MaxSegmentSum, Ordered, Sum};

use crate::{
    harness::{Failure, Gpu, Report},
    thesis::{Bench, Exported, Params, Plan, Step, oracles},
};

pub fn run(gpu: &Gpu) -> Result<(), Failure> {
    let columns = "op,log2_n,way,group,groups,items,raw_us,final_us";
    let mut report = Report::new(gpu, "ordered", "items of i32; microseconds a call, medians", columns);
    for log in [20, 26] {
        ways::<Ordered<Sum<i32>>>(gpu, log, "sum", &mut report)?;
        ways::<MaxSegmentSum<i32>>(gpu, log, "mss", &mut report)?;
    }
    report.finish()
}

fn ways<Op: Exported>(gpu: &Gpu, log: u32, prefix: &str, report: &mut Report) -> Result<(), Failure> {
    let bench = Bench::<Op>::new(gpu, log)?;
    let expected = oracles::<Op>(&bench.host, 1);
    let mut row = |way: &str, threads: u32, groups: u64, items: u64, plan: Plan<Op>| {
        let [raw, last] = plan.times(&format!("{way}, {groups} groups of {threads}"), &expected)?;
        report.row(format_args!("{},{log},{way},{threads},{groups},{items},{raw:.2},{last:.2}", Op::NAME));
        Ok::<(), Failure>(())
    };
    for threads in [128_u32, 256, 512] {
        let size = threads as u64;
        let shared = room_bytes::<Op::Acc>(threads as usize);
        let of_card = |resident: u32| resident as u64 * gpu.multiprocessors as u64;
        let held = of_card(bench.kernel("large")?.resident_with(threads, shared)?);
        let chunk = bench.n.div_ceil(held * size).next_power_of_two();
        let groups = bench.n.div_ceil(chunk * size);
        let large = |groups, chunk, loading| bench.large("large", 1, threads, (groups, chunk), loading);
        row("neighbours", threads, groups, chunk, large(groups, chunk, CONTIGUOUS)?)?;
        row("global_transpose", threads, groups, chunk, large(groups, chunk, TRANSPOSED)?)?;
        let ones = bench.n.div_ceil(size);
        row("chunk_1", threads, ones, 1, large(ones, 1, CONTIGUOUS)?)?;
        for items in [1_u64, 7, 8, 11] {
            let (name, shared) = if items == 1 {
                (format!("{prefix}_sliding"), 0)
            } else {
                let bytes = tile_bytes::<Op>(threads as usize, items as usize);
                (format!("{prefix}_in_block_{items}"), bytes)
            };
            // Beyond what a launch may ask for without more ado.
            if shared > 48 << 10 {
                continue;
            }
            let kernel = gpu.kernel("ordered", &name)?;
            let held = of_card(kernel.resident_with(threads, shared)?);
            let tile = size * items;
            let spread = bench.n.div_ceil(held).next_multiple_of(tile);
            for (way, run) in [("tile", tile), ("spread", spread)] {
                if items == 1 && way == "tile" {
                    continue;
                }
                let groups = bench.n.div_ceil(run);
                let params = OrderedParams {
                    items: ptr::null(),
                    values: bench.partials.ptr(),
                    n: bench.n,
                    run,
                    op: Op::default(),
                };
                let first = Step {
                    kernel: kernel.clone(),
                    blocks: groups,
                    threads,
                    shared,
                    params: Params::Runs(params),
                };
                let steps = vec![first, bench.second(1, groups, threads)?];
                let name = if items == 1 { "sliding".to_owned() } else { format!("in_block_{way}") };
                row(&name, threads, groups, items, Plan::of(&bench, None, steps))?;
            }
        }
    }
    Ok(())
}
