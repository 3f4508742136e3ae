//! The pipeline against the same in plain Rust: in the simulator, and on a GPU with the feature `cuda`.

use softmax::pipeline::{CHANNELS, is_whole, pipeline, sample, samples};
use warpfold_simt::sim::{self, Buffer, Launch, Options, Schedule};

fn packets(n: usize) -> Vec<u64> {
    (1..=n as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i << 17).collect()
}

fn expected(packets: &[u64]) -> Vec<u64> {
    let mut sums = vec![0; CHANNELS];
    for &packet in packets.iter().filter(|&&packet| is_whole(packet)) {
        for k in 0..samples(packet) {
            let (channel, value) = sample(packet, k);
            sums[channel as usize] += value as u64;
        }
    }
    sums
}

const SIZES: [usize; 8] = [0, 1, 31, 33, 64, 1000, 4096, 20_011];

#[test]
fn the_simulator_sums_what_is_left() {
    let schedules = [Schedule::Sequential, Schedule::Seeded(1), Schedule::Concurrent { seed: 2 }];
    for (round, n) in SIZES.into_iter().enumerate() {
        for (blocks, threads) in [(1, 32), (3, 96), (40, 256)] {
            let packets = packets(n);
            let (mut partials, mut present) =
                (vec![0_u64; blocks * CHANNELS], vec![0_u32; blocks * CHANNELS]);
            let (mut ticket, mut sums) = ([0_u32], vec![7_u64; CHANNELS]);
            let options = Options::with_schedule(schedules[round % 3])
                .buffer(Buffer::read_only("packets", &packets))
                .buffer(Buffer::writable("partials", &mut partials))
                .buffer(Buffer::writable("present", &mut present))
                .buffer(Buffer::writable("ticket", &mut ticket))
                .buffer(Buffer::writable("sums", &mut sums));
            let from = packets.as_ptr().expose_provenance();
            let to = [partials.as_mut_ptr(), sums.as_mut_ptr()].map(|to| to.expose_provenance());
            let words = [present.as_mut_ptr(), ticket.as_mut_ptr()].map(|to| to.expose_provenance());
            sim::launch(&Launch::new("pipeline", blocks as u32, threads), &options, || {
                // SAFETY: the packets, and room for the grid.
                unsafe {
                    let [present, ticket] = words.map(|word| word as *mut u32);
                    pipeline(from as *const u64, n, to[0] as *mut u64, present, ticket, to[1] as *mut u64);
                }
            })
            .unwrap_or_else(|fault| panic!("{n} packets, {blocks} blocks of {threads}: {fault}"));
            assert_eq!(sums, expected(&packets), "{n} packets, {blocks} blocks of {threads}");
            assert_eq!(ticket, [0]);
        }
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
    use softmax::pipeline::PTX;

    use super::*;

    #[test]
    fn the_gpu_sums_what_is_left() -> Result<(), Box<dyn Error>> {
        let _context = match cust::quick_init() {
            Ok(context) => context,
            Err(error @ CudaError::NoDevice) => {
                let required = std::env::var_os("WARPFOLD_REQUIRE_GPU").is_some_and(|value| value == "1");
                assert!(!required, "{error:?}");
                // Past the capture of passing tests' output.
                writeln!(io::stderr(), "skipped: the_gpu_sums_what_is_left: {error:?}")?;
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let module = Module::from_ptx(PTX, &[])?;
        let kernel = module.get_function("pipeline")?;
        let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
        for n in SIZES.into_iter().chain([3_000_000]) {
            for (blocks, threads) in [(1_u32, 32_u32), (3, 96), (264, 256)] {
                let packets = packets(n);
                let room = blocks as usize * CHANNELS;
                let from = DeviceBuffer::from_slice(&[packets.as_slice(), &[0]].concat())?;
                let partials = DeviceBuffer::from_slice(&vec![0_u64; room])?;
                let present = DeviceBuffer::from_slice(&vec![0_u32; room])?;
                let ticket = DeviceBuffer::from_slice(&[0_u32])?;
                let output = DeviceBuffer::from_slice(&[7_u64; CHANNELS])?;
                // SAFETY: the packets, and room for the grid; the stream is waited for before they go.
                unsafe {
                    launch!(kernel<<<blocks, threads, 0, stream>>>(
                        from.as_device_ptr(),
                        n,
                        partials.as_device_ptr(),
                        present.as_device_ptr(),
                        ticket.as_device_ptr(),
                        output.as_device_ptr()
                    ))?;
                }
                stream.synchronize()?;
                let (mut sums, mut left) = ([0; CHANNELS], [1]);
                output.copy_to(&mut sums)?;
                ticket.copy_to(&mut left)?;
                assert_eq!(sums.as_slice(), expected(&packets), "{n} packets, {blocks} blocks of {threads}");
                assert_eq!(left, [0]);
            }
        }
        Ok(())
    }
}
