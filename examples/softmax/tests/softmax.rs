//! The kernel against the definition in double precision: in the simulator, and on a GPU with the feature `cuda`.
//!
//! Where there is no GPU its test says so on standard error and does nothing; with `WARPFOLD_REQUIRE_GPU=1` it fails.

use softmax::softmax;
use warpfold_simt::sim::{self, Buffer, Launch, Options, Schedule};

/// Runs the kernel in the simulator.
fn simulate(input: &[f32], rows: usize, threads: u32, schedule: Schedule) -> Vec<f32> {
    let mut output = vec![-1.0; input.len()];
    let options = Options::with_schedule(schedule)
        .buffer(Buffer::read_only("input", input))
        .buffer(Buffer::writable("output", &mut output));
    let (from, to) = (input.as_ptr().expose_provenance(), output.as_mut_ptr().expose_provenance());
    sim::launch(&Launch::new("softmax", rows as u32, threads), &options, || {
        // SAFETY: `rows` rows are there, and as many may be written.
        unsafe { softmax(from as *const f32, to as *mut f32, input.len() / rows) }
    })
    .unwrap_or_else(|fault| panic!("{} items in {rows} rows, {threads} threads: {fault}", input.len()));
    output
}

/// Numbers whose exponentials overflow in single precision, and whose spread is up to `spread`.
fn matrix(rows: usize, columns: usize, spread: f32) -> Vec<f32> {
    let noise = |i: usize| (i * 7919 % 10_007) as f32 / 10_007.0;
    (0..rows * columns).map(|i| 200.0 * (i / columns) as f32 + spread * noise(i)).collect()
}

/// Holds every item to what rounding allows: that of `x - max` in single precision counts `|x - max|` times.
fn check(input: &[f32], output: &[f32], columns: usize, words: &str) {
    const EPSILON: f64 = f32::EPSILON as f64;
    for (x, y) in input.chunks(columns).zip(output.chunks(columns)) {
        let max = x.iter().copied().fold(f32::NEG_INFINITY, f32::max) as f64;
        let sum: f64 = x.iter().map(|&x| (x as f64 - max).exp()).sum();
        for (i, (&x, &y)) in x.iter().zip(y).enumerate() {
            let distance = max - x as f64;
            let expected = (-distance).exp() / sum;
            let allowed = expected * EPSILON * (2.0 + distance) + f32::MIN_POSITIVE as f64;
            assert!((y as f64 - expected).abs() <= allowed, "{words}, column {i}: {y} for {expected}");
        }
    }
}

const COLUMNS: [usize; 12] = [1, 2, 31, 32, 33, 100, 255, 256, 257, 1000, 1025, 4097];

#[test]
fn rows_and_blocks_of_any_length() {
    let schedules = [Schedule::Sequential, Schedule::Seeded(1), Schedule::Concurrent { seed: 2 }];
    for columns in COLUMNS {
        for (k, threads) in [1, 7, 32, 33, 100, 256, 1000, 1024].into_iter().enumerate() {
            let input = matrix(4, columns, [1e-4, 1.0, 30.0, 120.0][k % 4]);
            let output = simulate(&input, 4, threads, schedules[k % 3]);
            check(&input, &output, columns, &format!("{columns} columns, {threads} threads"));
        }
    }
}

#[test]
fn no_columns_are_no_items() {
    assert!(simulate(&[], 3, 64, Schedule::Sequential).is_empty());
}

/// Infinities and NaN, as the kernel documents them.
#[test]
fn special_values() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let rows = [[1.0, -inf, 1.0], [1.0, nan, 2.0], [1.0, inf, 2.0], [-inf, -inf, -inf], [-0.0, 0.0, -1e30]];
    for threads in [1, 2, 40] {
        let output = simulate(rows.as_flattened(), rows.len(), threads, Schedule::Seeded(9));
        assert_eq!(output[..3], [0.5, 0.0, 0.5]);
        assert!(output[3..12].iter().all(|y| y.is_nan()), "{output:?}");
        assert_eq!(output[12..], [0.5, 0.5, 0.0]);
    }
}

#[cfg(feature = "cuda")]
mod gpu {
    use std::error::Error;
    use std::io::{self, Write};

    use cust::error::CudaError;
    use cust::launch;
    use cust::memory::{CopyDestination, DeviceBuffer};
    use cust::module::Module;
    use cust::stream::{Stream, StreamFlags};

    use super::*;

    /// The GPU's bits are the simulator's: both run the same source, and add in the same order.
    #[test]
    fn the_gpu_gives_the_simulators_bits() -> Result<(), Box<dyn Error>> {
        let _context = match cust::quick_init() {
            Ok(context) => context,
            Err(error @ CudaError::NoDevice) => {
                let required = std::env::var_os("WARPFOLD_REQUIRE_GPU").is_some_and(|value| value == "1");
                assert!(!required, "{error:?}");
                // Past the capture of passing tests' output.
                writeln!(io::stderr(), "skipped: the_gpu_gives_the_simulators_bits: {error:?}")?;
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let module = Module::from_ptx(softmax::PTX, &[])?;
        let kernel = module.get_function("softmax")?;
        let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
        for columns in COLUMNS {
            for threads in [1, 33, 100, 256, 1024] {
                let input = matrix(4, columns, 50.0);
                let from = DeviceBuffer::from_slice(&input)?;
                let to = DeviceBuffer::from_slice(&vec![-1.0_f32; input.len()])?;
                // SAFETY: four rows in either buffer; the stream is waited for before they go.
                unsafe {
                    launch!(kernel<<<4, threads, 0, stream>>>(
                        from.as_device_ptr(),
                        to.as_device_ptr(),
                        columns
                    ))?;
                }
                stream.synchronize()?;
                let mut output = vec![0.0; input.len()];
                to.copy_to(&mut output)?;
                check(&input, &output, columns, &format!("GPU, {columns} columns, {threads} threads"));
                let simulated = simulate(&input, 4, threads, Schedule::Sequential);
                let bits = |values: &[f32]| values.iter().map(|y| y.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&output), bits(&simulated), "{columns} columns, {threads} threads");
            }
        }
        Ok(())
    }
}
