//! Block-wide reductions by key: sums of `i32`, 16 keys, an item a thread; a block on every multiprocessor, each with 50 sets of
//! its own.
//!
//! Columns: the kernel; how keys are distributed (`uniform`, or `one`: all the same); threads; cycles of a set on average, by the
//! multiprocessor's clock, from before it is read until its results are written; how many times as fast as `sorted_tree` that
//! is; the cycles of a sink's flush at the end of all sets, which combines the blocks too. Of a sink a set's cycles are those of a
//! push: it leaves its values in shared memory.
//!
//! `benches/peers/keyed.cu` has CUB's way under the same rules.

use warpfold_gpu_kernels::{
    block::Meeting,
    ladder::keyed::{KeyedParams, SinkParams},
};
use warpfold_monoid::Sum;

use crate::harness::{Failure, Gpu, Report, check, values};

const KEYS: u32 = 16;
const SETS: u32 = 50;

pub fn run(gpu: &Gpu) -> Result<(), Failure> {
    let columns = "kernel,keys,threads,cycles,speedup,flush_cycles";
    let what = "sums of i32 by 16 keys in a block; cycles of a set, means";
    let mut report = Report::new(gpu, "keyed", what, columns);
    let blocks = gpu.multiprocessors;
    for (distribution, keys_of) in
        [("uniform", (|i| i.wrapping_mul(0x9e37_79b1) >> 28) as fn(u32) -> u32), ("one", |_| 11)]
    {
        for threads in [128_u32, 256, 512, 1024] {
            let sets = (blocks * SETS) as usize;
            let n = sets * threads as usize;
            let keys: Vec<u32> = (0..n as u32).map(keys_of).collect();
            let items = values(n);
            let mut expected = vec![0_i32; sets * KEYS as usize];
            for (i, (key, item)) in keys.iter().zip(&items).enumerate() {
                let sum = &mut expected[i / threads as usize * KEYS as usize + *key as usize];
                *sum = sum.wrapping_add(*item);
            }
            let of_all: Vec<i32> = (0..KEYS as usize)
                .map(|key| {
                    expected[key..].iter().step_by(KEYS as usize).fold(0_i32, |a, b| a.wrapping_add(*b))
                })
                .collect();
            let keys = gpu.upload(&keys)?;
            let items = gpu.upload(&items)?;
            let found = gpu.zeros::<i32>(sets * KEYS as usize)?;
            let cycles = gpu.zeros::<u64>(sets)?;
            let params = KeyedParams {
                keys: keys.ptr(),
                items: items.ptr(),
                values: found.ptr(),
                cycles: cycles.ptr(),
                sets: SETS,
                k: KEYS,
                op: Sum::<i32>::new(),
            };
            let mean = |cycles: &[u64]| cycles.iter().sum::<u64>() as f64 / cycles.len() as f64;
            let mut base = None;
            for name in ["sorted_tree", "warp_sorted", "per_key"] {
                let kernel = gpu.kernel("keyed", name)?;
                gpu.clear(&found)?;
                // The first launch finds neither code nor data in caches.
                for _ in 0..2 {
                    // SAFETY: the entry's parameters, whose memory is as long as they say.
                    unsafe { kernel.launch(blocks as u64, threads, &params)? };
                }
                check(
                    format!("{name}, {threads} threads"),
                    found.read(gpu, 0, found.len())? == expected,
                    true,
                )?;
                let took = mean(&cycles.read(gpu, 0, sets)?);
                let speedup = *base.get_or_insert(took) / took;
                report.row(format_args!("{name},{distribution},{threads},{took:.0},{speedup:.2},"));
            }
            let places = (blocks * KEYS) as usize;
            let (partials, present) = (gpu.zeros::<i32>(places)?, gpu.zeros::<u32>(places)?);
            let (ticket, output) = (gpu.zeros::<u32>(1)?, gpu.zeros::<i32>(KEYS as usize)?);
            let flushed = gpu.zeros::<u64>(blocks as usize)?;
            let meeting = Meeting {
                partials: partials.ptr(),
                present: present.ptr(),
                ticket: ticket.ptr(),
                output: output.ptr(),
            };
            let params = SinkParams { sets: params, meeting, flushed: flushed.ptr() };
            let kernel = gpu.kernel("keyed", "sink")?;
            for _ in 0..2 {
                // SAFETY: as above.
                unsafe { kernel.launch(blocks as u64, threads, &params)? };
            }
            check(format!("sink, {threads} threads"), output.read(gpu, 0, KEYS as usize)?, of_all)?;
            let took = mean(&cycles.read(gpu, 0, sets)?);
            let flush = mean(&flushed.read(gpu, 0, blocks as usize)?);
            let speedup = base.unwrap_or(took) / took;
            report.row(format_args!("sink,{distribution},{threads},{took:.0},{speedup:.2},{flush:.0}"));
        }
    }
    report.finish()
}
