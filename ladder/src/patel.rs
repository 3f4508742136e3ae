//! Patel's five versions over 32 MB of integers.
//!
//! Columns: the version; `covered` (a thread for each item, or two) or `strided` (as many blocks as the card holds at once);
//! threads and blocks of the first launch; microseconds of that launch and of the whole reduction, which launches again over
//! what the blocks left; 10^9 bytes a second that the first launch reads, and the whole. Calls read copies of the array in turn,
//! so that it is not found in L2.

use std::ptr;

use warpfold_gpu_kernels::ladder::pass::PassParams;
use warpfold_monoid::Sum;

use crate::harness::{Array, Failure, Gpu, Kernel, Report, check, sum, values};

const BYTES: usize = 32 << 20;

pub fn run(gpu: &Gpu) -> Result<(), Failure> {
    let mut report = Report::new(
        gpu,
        "patel",
        "sum of 32 MB of i32; microseconds, medians",
        "version,form,threads,blocks,first_us,whole_us,first_gbps,whole_gbps",
    );
    let items = values(BYTES / size_of::<i32>());
    let expected = sum(&items);
    let copies = gpu.rotation(&items)?;
    let n = items.len() as u64;
    for version in 1..=5 {
        let per = if version < 4 { 1 } else { 2 };
        for form in ["covered", "strided"] {
            for threads in [128, 256, 512, 1024] {
                let suffix = if form == "strided" { "_strided" } else { "" };
                let kernel = gpu.kernel("patel", &format!("version{version}{suffix}"))?;
                let covering = n.div_ceil(per * u64::from(threads));
                let blocks = match form {
                    "strided" => u64::from(kernel.resident(threads)? * gpu.multiprocessors).min(covering),
                    _ => covering,
                };
                // Over values: as the form has it, by one block or by as many as cover them.
                let next = |n: u64| match form {
                    "strided" => 1,
                    _ => n.div_ceil(per * u64::from(threads)),
                };
                let levels = Levels::new(gpu, blocks, next)?;
                let passes = |call: usize, whole: bool| {
                    let items = &copies[call % copies.len()];
                    levels.reduce(items, threads, &kernel, &kernel, if whole { usize::MAX } else { 1 })
                };
                passes(0, true)?;
                check(
                    format!("version {version}, {form}, {threads} threads"),
                    levels.result(gpu)?,
                    expected,
                )?;
                let first = gpu.time(&|call| passes(call, false))?;
                let whole = gpu.time(&|call| passes(call, true))?;
                let gbps = |time: f64| BYTES as f64 / time / 1e3;
                report.row(format_args!(
                    "version{version},{form},{threads},{blocks},{first:.2},{whole:.2},{:.0},{:.0}",
                    gbps(first),
                    gbps(whole)
                ));
            }
        }
    }
    report.finish()
}

/// Where the values of the blocks of each launch go: the last has one.
pub struct Levels {
    values: Vec<Array<i32>>,
}

impl Levels {
    /// Of a first launch of so many blocks, each of the others of as many as `next` says.
    pub fn new(gpu: &Gpu, blocks: u64, next: impl Fn(u64) -> u64) -> Result<Levels, Failure> {
        let mut values = vec![gpu.zeros(blocks as usize)?];
        let mut n = blocks;
        while n > 1 {
            n = next(n);
            values.push(gpu.zeros(n as usize)?);
        }
        Ok(Levels { values })
    }

    /// At most so many launches, of one kernel over the items and of another over values, the same threads in each block.
    pub fn reduce(
        &self,
        items: &Array<i32>,
        threads: u32,
        first: &Kernel,
        next: &Kernel,
        most: usize,
    ) -> Result<(), Failure> {
        let mut params = PassParams::<Sum<i32>> {
            items: items.ptr(),
            values: ptr::null(),
            results: ptr::null_mut(),
            n: items.len() as u64,
            op: Sum::new(),
        };
        for (level, values) in self.values.iter().enumerate().take(most) {
            let kernel = if level == 0 { first } else { next };
            params.results = values.ptr();
            // SAFETY: the entries' parameters, whose memory is ours and as long as they say.
            unsafe { kernel.launch(values.len() as u64, threads, &params)? };
            (params.items, params.values, params.n) = (ptr::null(), values.ptr(), values.len() as u64);
        }
        Ok(())
    }

    /// What the last launch left.
    pub fn result(&self, gpu: &Gpu) -> Result<i32, Failure> {
        let last = self.values.last().ok_or("no launch")?;
        Ok(last.read(gpu, 0, 1)?[0])
    }
}
