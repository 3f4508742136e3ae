//! Strategies for one array, forced by name.
//!
//! Columns: the strategy; the item (`f32` is added in `f64`); the logarithm of the number of items; threads and blocks of the
//! first launch; microseconds of a call, with all its launches and clears, on a stream; 10^9 bytes a second. Calls read copies
//! of the array in turn: from 2^18 items on they are not found in L2. `_wave` has as many blocks as the card holds at once,
//! `_one` one for each multiprocessor, where the array is long enough for so many.

use std::{fmt::Debug, ptr};

use warpfold_gpu_kernels::ladder::{moderngpu::tile, one_array::LastBlockParams, pass::PassParams};
use warpfold_monoid::{Monoid, Plain, Sum};

use crate::harness::{Array, Failure, Gpu, Report, check, values};

/// Threads of a block, but of tiles.
const THREADS: u32 = 512;

/// Items that a thread has at least: four vectors of four.
const LEAST: u64 = 16;

pub fn run(gpu: &Gpu) -> Result<(), Failure> {
    let mut report = Report::new(
        gpu,
        "one_array",
        "sums; microseconds a call, medians",
        "strategy,type,log2_n,threads,blocks,us,gbps",
    );
    for log in (10..=28).step_by(2) {
        let items = values(1 << log);
        let sum = items.iter().map(|item| i64::from(*item)).sum::<i64>();
        all::<i32, i32>(gpu, &mut report, "i32", log, &items, sum as i32)?;
        // Integers below 2^24, and sums below 2^53: exact in any order.
        let floats: Vec<f32> = items.iter().map(|item| *item as f32).collect();
        all::<f32, f64>(gpu, &mut report, "f32", log, &floats, sum as f64)?;
    }
    report.finish()
}

/// A strategy's launches, of call number so and so.
type Call<'a> = &'a dyn Fn(usize) -> Result<(), Failure>;

/// Each strategy, over copies of the items.
fn all<T: Plain, A: Plain + PartialEq + Debug>(
    gpu: &Gpu,
    report: &mut Report,
    name: &str,
    log: u32,
    items: &[T],
    expected: A,
) -> Result<(), Failure>
where
    Sum<T, A>: Monoid<Item = T, Acc = A> + Default,
{
    let n = items.len() as u64;
    let copies = gpu.rotation(items)?;
    let kernel = |kernel: &str| gpu.kernel("one_array", &format!("{kernel}_{name}"));
    let (last_block, of_blocks, atomics) = (kernel("last_block")?, kernel("blocks")?, kernel("atomics")?);
    let (tiles, rest) = (kernel("tiles")?, kernel("tiles_of_values")?);
    let mut time = |strategy: &str, threads: u32, blocks: u64, result: &Array<A>, call: Call| {
        call(0)?;
        check(format!("{strategy}, 2^{log} {name}"), result.read(gpu, 0, 1)?[0], expected)?;
        let time = gpu.time(call)?;
        let gbps = size_of_val(items) as f64 / time / 1e3;
        report.row(format_args!("{strategy},{name},{log},{threads},{blocks},{time:.2},{gbps:.1}"));
        Ok::<(), Failure>(())
    };
    let over = |call: usize, results: &Array<A>| PassParams::<Sum<T, A>> {
        items: copies[call % copies.len()].ptr(),
        values: ptr::null(),
        results: results.ptr(),
        n,
        op: Default::default(),
    };
    let (one, ticket) = (gpu.zeros::<A>(1)?, gpu.zeros::<u32>(1)?);
    for (grid, each) in [("wave", of_blocks.resident(THREADS)?), ("one", 1)] {
        let most = n.div_ceil(LEAST * u64::from(THREADS));
        let blocks = u64::from(each * gpu.multiprocessors).min(most);
        let results = gpu.zeros::<A>(blocks as usize)?;
        time(&format!("last_block_{grid}"), THREADS, blocks, &results, &|call| {
            let params = LastBlockParams { pass: over(call, &results), ticket: ticket.ptr() };
            // SAFETY: the entry's parameters, whose memory is ours and as long as they say; the ticket is 0, and is again
            // afterwards.
            unsafe { last_block.launch(blocks, THREADS, &params) }
        })?;
        time(&format!("two_launches_{grid}"), THREADS, blocks, &one, &|call| {
            let first = over(call, &results);
            let second =
                PassParams { items: ptr::null(), values: results.ptr(), n: blocks, ..over(call, &one) };
            // SAFETY: as above.
            unsafe {
                of_blocks.launch(blocks, THREADS, &first)?;
                of_blocks.launch(1, THREADS, &second)
            }
        })?;
        time(&format!("atomics_{grid}"), THREADS, blocks, &one, &|call| {
            gpu.clear(&one)?;
            // SAFETY: as above.
            unsafe { atomics.launch(blocks, THREADS, &over(call, &one)) }
        })?;
        // A short array has one grid.
        if blocks == most {
            break;
        }
    }
    let mut levels = vec![gpu.zeros::<A>(n.div_ceil(tile(128, 8)) as usize)?];
    while levels[levels.len() - 1].len() > 1 {
        levels.push(gpu.zeros(levels[levels.len() - 1].len().div_ceil(tile(512, 4) as usize))?);
    }
    time("recursive", 128, levels[0].len() as u64, &levels[levels.len() - 1], &|call| {
        let mut params = over(call, &levels[0]);
        // SAFETY: as above.
        unsafe {
            tiles.launch(levels[0].len() as u64, 128, &params)?;
            for pair in levels.windows(2) {
                (params.items, params.values) = (ptr::null(), pair[0].ptr());
                (params.n, params.results) = (pair[0].len() as u64, pair[1].ptr());
                rest.launch(pair[1].len() as u64, 512, &params)?;
            }
        }
        Ok(())
    })
}
