//! Reductions of many pairs by many tags, any order, on the GPU: by lists where tags differ from place to place, and where they are where they
//! repeat, as the device chooses; with tags out of range, on streams at once, and in a graph whose tags change from run to run.

use std::ptr;

use warpfold::{
    Error, Sum,
    cuda::{
        DeviceArray,
        cust::{
            context::Context,
            device::Device,
            stream::{Stream, StreamFlags},
            sys::{self, CUgraph, CUgraphExec, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL},
        },
    },
};

use crate::support::{Random, apart, gpu};

/// More than lists are worth on any card with up to 256 multiprocessors.
const N: usize = 8_400_001;
const K: usize = 300_000;

/// Any tags, one, half of them one, in order, and each a few times.
fn tags_of(shape: usize, seed: u64) -> Vec<i32> {
    let mut random = Random::new(seed);
    let mut last = 0;
    (0..N)
        .map(|i| {
            let any = random.below(2 * K as u64) as i32;
            last = if i % 5 == 0 { any / 2 } else { last };
            match shape {
                0 => any / 2,
                1 => K as i32 - 1,
                2 if any % 2 == 0 => 7,
                2 => any / 2,
                3 => (i as u64 * K as u64 / N as u64) as i32,
                _ => last,
            }
        })
        .collect()
}

fn sums_of(tags: &[i32], values: &[i32]) -> Vec<i32> {
    let mut sums = vec![0_i32; K];
    for (&tag, &value) in tags.iter().zip(values) {
        if (0..K as i32).contains(&tag) {
            sums[tag as usize] = sums[tag as usize].wrapping_add(value);
        }
    }
    sums
}

#[test]
fn many_tags_whatever_the_device_chooses() {
    let Some(gpu) = gpu() else { return };
    let _apart = apart();
    let _context = Context::new(Device::get_device(0).unwrap()).unwrap();
    let mut random = Random::new(3);
    let values: Vec<i32> = (0..N).map(|_| random.below(1 << 32) as u32 as i32).collect();
    let values_on = DeviceArray::from_slice(&gpu, &values).unwrap();
    let sums = gpu.by_tag(Sum::<i32>::new(), K as u64).unwrap();
    let mut inputs = Vec::new();
    for shape in 0..5 {
        let mut tags = tags_of(shape, shape as u64);
        let on = DeviceArray::from_slice(&gpu, &tags).unwrap();
        assert!(sums.reduce(&on, &values_on).unwrap() == sums_of(&tags, &values), "shape {shape}");
        let bad = N - 1000 * shape - 1;
        (tags[bad], tags[N - 1]) = (-1, K as i32);
        let on = DeviceArray::from_slice(&gpu, &tags).unwrap();
        let error = sums.reduce(&on, &values_on).unwrap_err();
        let tag = tags[bad] as i128;
        assert_eq!(error, Error::TagOutOfRange { index: bad as u64, tag, tags: K as u64 });
        let expected = sums_of(&tags, &values);
        inputs.push((on, tags, bad as u64, expected));
    }

    // Streams at once, of which some choose one way, and some the other.
    let streams: Vec<Stream> =
        (0..5).map(|_| Stream::new(StreamFlags::NON_BLOCKING, None).unwrap()).collect();
    let mut outputs: Vec<_> = (0..5)
        .map(|_| {
            let results = DeviceArray::from_slice(&gpu, &vec![1_i32; K]).unwrap();
            (results, DeviceArray::from_slice(&gpu, &[0_u64]).unwrap())
        })
        .collect();
    for round in 0..6 {
        for (i, (results, first)) in outputs.iter_mut().enumerate() {
            let on = &inputs[(i + round) % 5].0;
            // SAFETY: left alone until the streams have been waited for.
            unsafe {
                sums.enqueue_checked::<i32, _, _, _, _>(on, &values_on, results, first, &streams[i]).unwrap();
            }
        }
        streams.iter().for_each(|stream| stream.synchronize().unwrap());
        for (i, (results, first)) in outputs.iter().enumerate() {
            let (_, _, bad, expected) = &inputs[(i + round) % 5];
            assert!(results.to_vec().unwrap() == *expected, "round {round}, stream {i}");
            assert_eq!(first.to_vec().unwrap(), [*bad], "round {round}, stream {i}");
        }
    }

    // A graph, which knows nothing of what its tags will be.
    let (mut graph, mut executable): (CUgraph, CUgraphExec) = (ptr::null_mut(), ptr::null_mut());
    let mut tags_on = DeviceArray::from_slice(&gpu, &inputs[0].1).unwrap();
    let ((results, first), stream) = (&mut outputs[0], &streams[0]);
    // SAFETY: a live stream, valid places for the answers; the arrays outlive the graph.
    unsafe {
        sums.warm_up(N as u64).unwrap();
        let begun = sys::cuStreamBeginCapture_v2(stream.as_inner(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
        assert_eq!(begun as u32, 0);
        sums.enqueue_checked::<i32, _, _, _, _>(&tags_on, &values_on, results, first, stream).unwrap();
        assert_eq!(sys::cuStreamEndCapture(stream.as_inner(), &mut graph) as u32, 0);
        assert_eq!(sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0) as u32, 0);
    }
    for (round, (_, tags, bad, expected)) in inputs.iter().cycle().take(10).enumerate() {
        tags_on.copy_from_slice(tags).unwrap();
        // SAFETY: a live executable and stream.
        assert_eq!(unsafe { sys::cuGraphLaunch(executable, stream.as_inner()) } as u32, 0);
        stream.synchronize().unwrap();
        assert!(results.to_vec().unwrap() == *expected, "round {round}");
        assert_eq!(first.to_vec().unwrap(), [*bad], "round {round}");
    }
    // SAFETY: ours, and the stream has been waited for.
    unsafe {
        sys::cuGraphExecDestroy(executable);
        sys::cuGraphDestroy(graph);
    }
}
