//! Timcheck's comparison of block-wide reductions: sets of 1024 integers, one after the other, by one block on each
//! multiprocessor.
//!
//! Columns: the kernel; threads of a block; where the sets are before (`l2`: just written; `dram`: L2 was filled with
//! something else); cycles from set to sum, the average of all sets, the median of three launches; how many times as fast as
//! `naive` with as many threads, from the same memory.
//!
//! `benches/peers/block.cu` has CUB's block reductions in the same harness.

use warpfold_gpu_kernels::ladder::timcheck::{SET, SetParams};

use crate::harness::{Failure, Gpu, Report, check, median, sum, values};

/// Sets that each block takes, as his trials.
const TRIALS: u32 = 50;

/// Blocks of more threads than a set has items have nothing to do.
const THREADS: [u32; 6] = [32, 64, 128, 256, 512, 1024];

const KERNELS: [&str; 9] = [
    "naive",
    "non_divergent",
    "sequential_global",
    "sequential_shared",
    "shuffles",
    "shuffles_atomic",
    "library_pieces",
    "library",
    "library_unrolled",
];

pub fn run(gpu: &Gpu) -> Result<(), Failure> {
    let mut report = Report::new(
        gpu,
        "timcheck",
        "sets of 1024 int, 50 by each of as many blocks as multiprocessors; cycles a set, averages",
        "kernel,threads,memory,cycles,speedup",
    );
    let sets = (gpu.multiprocessors * TRIALS) as usize;
    let items = values(sets * SET as usize);
    let expected: Vec<i32> = items.chunks(SET as usize).map(sum).collect();
    let data = gpu.zeros(items.len())?;
    let cycles = gpu.zeros::<u64>(sets)?;
    let other = gpu.zeros::<u32>(64 << 20)?;
    let params = SetParams { data: data.ptr(), cycles: cycles.ptr(), trials: TRIALS };
    for memory in ["l2", "dram"] {
        let mut naive = [0.0; THREADS.len()];
        for name in KERNELS {
            for (threads, naive) in THREADS.into_iter().zip(&mut naive) {
                let kernel = match name {
                    "library_unrolled" => gpu.kernel("timcheck", &format!("{name}_{threads}"))?,
                    _ => gpu.kernel("timcheck", name)?,
                };
                let mut averages = Vec::new();
                for _ in 0..3 {
                    data.write(0, &items)?;
                    if memory == "dram" {
                        gpu.clear(&other)?;
                    }
                    // SAFETY: the entry's parameters, whose memory is ours.
                    unsafe { kernel.launch(gpu.multiprocessors.into(), threads, &params)? };
                    let found = data.read(gpu, 0, data.len())?;
                    let wrong =
                        found.iter().step_by(SET as usize).zip(&expected).filter(|(a, b)| a != b).count();
                    check(format!("{name}, {threads} threads: sets that are"), wrong, 0)?;
                    let counts = cycles.read(gpu, 0, sets)?;
                    averages.push(counts.iter().sum::<u64>() as f64 / sets as f64);
                }
                let average = median(averages);
                if name == "naive" {
                    *naive = average;
                }
                report.row(format_args!("{name},{threads},{memory},{average:.0},{:.2}", *naive / average));
            }
        }
    }
    report.finish()
}
