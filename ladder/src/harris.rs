//! Harris's last kernel, at the sizes of the Futhark thesis's appendix A, over how many elements a thread has.
//!
//! Columns: the logarithm of the number of items; threads of a block; elements of a thread; blocks of the first launch (one
//! more block follows over what they left, if there are several); microseconds of the whole; 10^9 bytes a second. Calls read
//! copies of the array in turn: 2^20 and 2^25 items are not found in L2, 2^10 are.

use crate::{
    harness::{Failure, Gpu, Report, check, sum, values},
    patel::Levels,
};

pub fn run(gpu: &Gpu) -> Result<(), Failure> {
    let mut report = Report::new(
        gpu,
        "harris",
        "sums of i32; microseconds a call, medians",
        "log2_n,threads,elements,blocks,us,gbps",
    );
    for (log, sizes) in [(10, &[128, 256, 512, 1024][..]), (20, &[128, 256, 512, 1024]), (25, &[1024])] {
        let items = values(1 << log);
        let (expected, copies) = (sum(&items), gpu.rotation(&items)?);
        for &threads in sizes {
            let kernel = gpu.kernel("harris", &format!("unrolled_{threads}"))?;
            for elements in (1..=9).map(|log| 1_u64 << log) {
                let blocks = items.len() as u64 / (elements * u64::from(threads));
                if blocks == 0 {
                    continue;
                }
                let levels = Levels::new(gpu, blocks, |_| 1)?;
                let call = |call: usize| {
                    levels.reduce(&copies[call % copies.len()], threads, &kernel, &kernel, usize::MAX)
                };
                call(0)?;
                check(format!("2^{log}, {blocks} blocks of {threads}"), levels.result(gpu)?, expected)?;
                let time = gpu.time(&call)?;
                let gbps = size_of_val(&items[..]) as f64 / time / 1e3;
                report.row(format_args!("{log},{threads},{elements},{blocks},{time:.2},{gbps:.1}"));
            }
        }
    }
    report.finish()
}
