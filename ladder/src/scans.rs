//! Scans: the literature's, sums of `i32`.
//!
//! Columns: the form; the logarithm of the number of items; microseconds a call, on a stream. Forms of one tile kernel each scan the
//! tiles, then propagate what stands before them; `reduce_then_scan` keeps the tiles' sums alone in its first phase. The single
//! pass with look-back is recorded beside the library's other scans (`scan.csv`).

use std::ptr;

use warpfold_gpu_kernels::ladder::scan::{LadderParams, SWEEP_THREADS, TILE};
use warpfold_monoid::Sum;

use crate::harness::{Array, Failure, Gpu, Kernel, Report, check, sum, values};

type Op = Sum<i32>;

pub fn run(gpu: &Gpu) -> Result<(), Failure> {
    let mut report =
        Report::new(gpu, "scans", "sums of i32; microseconds a call, medians", "form,log2_n,stream_us");
    let forms = [
        ("hillis_steele", "hillis_steele", TILE as u32, false),
        ("blelloch", "blelloch", SWEEP_THREADS, false),
        ("blelloch_padded", "blelloch_padded", SWEEP_THREADS, false),
        ("warp_shuffle", "warp_shuffle", TILE as u32, false),
        ("reduce_then_scan", "warp_shuffle", TILE as u32, true),
    ];
    for log in [10, 16, 20, 24, 26] {
        let scans = Scans::new(gpu, 1 << log)?;
        for (name, tile, threads, reduces) in forms {
            let form = Form { tile: gpu.kernel("scans", tile)?, threads, reduces };
            scans.scan(&form, 0)?;
            let found = |at: usize| scans.levels[0].read(gpu, at, 1);
            let n = 1 << log;
            check(
                format!("{name}, {n} items"),
                [found(n / 2)?, found(n - 1)?].concat(),
                scans.expected.into(),
            )?;
            let time = gpu.time(&|_| scans.scan(&form, 0))?;
            report.row(format_args!("{name},{log},{time:.2}"));
        }
    }
    report.finish()
}

struct Form<'a> {
    tile: Kernel<'a>,
    threads: u32,
    reduces: bool,
}

/// An array, and room for its scan, its tiles' values, theirs, and so on.
struct Scans<'a> {
    propagate: Kernel<'a>,
    items: Array<i32>,
    levels: Vec<Array<i32>>,
    /// In the middle, at the end.
    expected: [i32; 2],
}

impl<'a> Scans<'a> {
    fn new(gpu: &'a Gpu, n: usize) -> Result<Self, Failure> {
        let values = values(n);
        let mut levels = vec![gpu.zeros(n)?];
        let mut len = n;
        while len > 1 {
            len = len.div_ceil(TILE);
            levels.push(gpu.zeros(len)?);
        }
        Ok(Scans {
            propagate: gpu.kernel("scans", "propagate")?,
            items: gpu.upload(&values)?,
            levels,
            expected: [sum(&values[..n / 2 + 1]), sum(&values)],
        })
    }

    /// Scans a level in its place; the first one from the items.
    fn scan(&self, form: &Form, level: usize) -> Result<(), Failure> {
        let (place, n) = (self.levels[level].ptr(), self.levels[level].len());
        let (single, blocks) = (n <= TILE, n.div_ceil(TILE) as u64);
        let totals = if single { ptr::null_mut() } else { self.levels[level + 1].ptr() };
        let mut params = LadderParams {
            items: if level == 0 { self.items.ptr() } else { ptr::null() },
            values: place,
            output: if form.reduces && !single { ptr::null_mut() } else { place },
            totals,
            befores: ptr::null(),
            n: n as u64,
            op: Op::new(),
        };
        // SAFETY: the entry's parameters, whose memory is ours and as long as they say.
        unsafe {
            form.tile.launch(blocks, form.threads, &params)?;
            if single {
                return Ok(());
            }
            self.scan(form, level + 1)?;
            (params.output, params.totals, params.befores) = (place, ptr::null_mut(), totals);
            if form.reduces {
                return form.tile.launch(blocks, form.threads, &params);
            }
            params.items = ptr::null();
            self.propagate.launch(blocks, TILE as u32, &params)
        }
    }
}
