//! A pipeline in one kernel: a source, a filter that drops, an expander that multiplies, and at its end a sink with a result
//! for each tag. Nothing in between is ever in memory.
//!
//! The source is an array of packets. A packet whose check bit is wrong is dropped; each other one has one to four samples,
//! each of a channel. [`TaggedSink`] sums the samples by channel: a warp pushes what its lanes have, many or few.

use warpfold_gpu_kernels::block::{Meeting, TaggedSink};
use warpfold_monoid::Sum;
use warpfold_simt::prelude::*;

/// The kernel for GPUs from sm_80 on; its entry is `pipeline`.
#[cfg(feature = "cuda")]
pub const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/pipeline.ptx"));

/// Channels, and results.
pub const CHANNELS: usize = 16;

/// The most threads of a block.
pub const THREADS: u32 = 256;

/// Samples are 32 bits, their sums 64.
type Op = Sum<u32, u64>;

/// Is a packet whole? Its ones are even in number.
pub fn is_whole(packet: u64) -> bool {
    packet.count_ones().is_multiple_of(2)
}

/// How many samples a packet has.
pub fn samples(packet: u64) -> u32 {
    1 + (packet & 3) as u32
}

/// A packet's sample `k`: its channel and its value.
pub fn sample(packet: u64, k: u32) -> (u32, u32) {
    let bits = (packet >> (2 + 15 * k)) as u32;
    (bits % CHANNELS as u32, bits >> 4 & 0x7ff)
}

/// Sums the samples of `n` packets by channel.
///
/// # Safety
///
/// Grid and block have one dimension, the block whole warps. `packets` points to `n` readable packets, `sums` to [`CHANNELS`]
/// writable numbers, `partials` and `present` to as many for each block, `ticket` to a zero, which it is again afterwards;
/// nothing else uses them.
#[kernel(max_threads = 256, min_blocks = 1)]
pub unsafe fn pipeline(
    packets: *const u64,
    n: usize,
    partials: *mut u64,
    present: *mut u32,
    ticket: *mut u32,
    sums: *mut u64,
) {
    let accs = shared!([u64; CHANNELS * THREADS as usize / 32]);
    let there = shared!([u32; CHANNELS * THREADS as usize / 32]);
    let op = Op::new();
    // SAFETY: the whole block, with room for its warps.
    let mut sink = unsafe { TaggedSink::new(&op, CHANNELS as u32, accs, there) };
    let step = (thread::grid_dim_x() * thread::block_dim_x()) as usize;
    let mut first =
        (thread::block_idx_x() * thread::block_dim_x() + thread::thread_idx_x() / 32 * 32) as usize;
    // A warp goes on while any of its lanes has a packet.
    while first < n {
        let i = first + thread::thread_idx_x() as usize % 32;
        // The source.
        // SAFETY: within it.
        let packet = (i < n).then(|| unsafe { global::load(packets.wrapping_add(i)) });
        // The filter.
        let packet = packet.filter(|&packet| is_whole(packet));
        let (packet, mine) = packet.map_or((0, 0), |packet| (packet, samples(packet)));
        // The expander: as many rounds as the warp's longest packet has samples.
        let mut k = 0;
        // SAFETY: the whole warp is here, and agrees.
        while unsafe { warp::warp_vote_any(warp::FULL, k < mine) } {
            let item = (k < mine).then(|| sample(packet, k));
            // SAFETY: as above.
            unsafe { sink.push(item, i as u64) };
            k += 1;
        }
        first += step;
    }
    let meeting = Meeting::<Op> { partials, present, ticket, output: sums };
    // SAFETY: the whole grid, and its memory.
    unsafe { sink.flush(&meeting, shared!([u32; 1])) };
}
