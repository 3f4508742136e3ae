//! Reductions by tag, by key and by group on the GPU give the bits of the CPU's: every kind of operator, around every boundary, from every start,
//! on many streams at once and in graphs that are replayed, past 2^32 items, and with guards around what is written.

use std::ptr;

use warpfold::{
    ArgMax, Compose, Engine, Error, Fast, Max, Mean, Monoid, Plain, Sum, Tag,
    cuda::{
        DeviceArray, DeviceViewMut, StreamRef,
        cust::{
            context::Context,
            device::Device,
            stream::{Stream, StreamFlags},
            sys::{self, CUgraph, CUgraphExec, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL},
        },
    },
    keys::DeviceKey,
    monoid::keyed::{Equal, RunTiling, TagShape},
};

use crate::support::{Random, apart, bytes, gpu, matrix::Data, ordinary};

/// Bytes before and after results.
const GUARD: usize = 64;
/// What they are filled with.
const GUARD_BYTE: u8 = 0xa5;

/// Room for results on the device, between guards.
struct Guarded {
    array: DeviceArray<u8>,
    at: usize,
    len: usize,
}

impl Guarded {
    fn new<T: Plain>(gpu: &Engine, len: usize, offset: usize) -> Self {
        let (at, len) = (GUARD + offset * size_of::<T>(), len * size_of::<T>());
        let array = DeviceArray::from_slice(gpu, &vec![GUARD_BYTE; at + len + GUARD]).unwrap();
        Guarded { array, at, len }
    }

    fn view<T: Plain>(&self) -> DeviceViewMut<'_, T> {
        // SAFETY: within the array; nobody else writes to it meanwhile.
        unsafe {
            DeviceViewMut::from_raw(self.array.address() + self.at as u64, (self.len / size_of::<T>()) as u64)
        }
    }

    /// What has been written, the first so many bytes; the others are as they were.
    fn written(&self, bytes: usize) -> Vec<u8> {
        let all = self.array.to_vec().unwrap();
        let rest = all[..self.at].iter().chain(&all[self.at + bytes..]);
        assert!(rest.copied().all(|byte| byte == GUARD_BYTE), "a guard was overwritten");
        all[self.at..self.at + bytes].to_vec()
    }
}

fn tags_of(n: usize, k: u64, seed: u64) -> Vec<i32> {
    let mut random = Random::new(seed);
    // Some tags often, most seldom, some never, and now and then rows of one.
    (0..n)
        .map(|i| match random.below(8) {
            _ if i / 160 % 8 == 7 => (k / 2) as i32,
            0 => 0,
            1 => (k - 1) as i32,
            2 => (random.below(k.min(3))) as i32,
            _ => (random.below(k) / 2 * 2) as i32,
        })
        .collect()
}

fn by_tag<Op: Monoid>(op: Op)
where
    Op::Item: Data,
{
    let Some(gpu) = gpu() else { return };
    for k in [1, 2, 16, 63, 64, 65, 300, 4096, 20_000] {
        let chunk = TagShape::of::<Op>(1 << 22, k).chunk as usize;
        let (on, cpu) = (gpu.by_tag(op, k).unwrap(), Engine::cpu().by_tag(op, k).unwrap());
        for (round, n) in
            [0, 1, 31, 127, 129, 515, 2047, 2049, 5 * chunk + 77, 600 * 2048 + 3].into_iter().enumerate()
        {
            let all: Vec<Op::Item> = ordinary(n + 3, k + n as u64);
            let tags = tags_of(n + 3, k, n as u64);
            let (values_on, tags_on) =
                (DeviceArray::from_slice(&gpu, &all).unwrap(), DeviceArray::from_slice(&gpu, &tags).unwrap());
            for (from, tags_from) in [(0, 0), (round % 4, (round / 4 + round) % 4)] {
                let (from, tags_from) = (from.min(3), tags_from.min(3));
                let values = values_on.view().slice(from as u64..(from + n) as u64).unwrap();
                let tags_view = tags_on.view().slice(tags_from as u64..(tags_from + n) as u64).unwrap();
                let results = Guarded::new::<Op::Output>(&gpu, k as usize, round % 3);
                // SAFETY: left alone until the copy, which waits.
                unsafe {
                    on.enqueue::<i32, _, _, _>(
                        &tags_view,
                        &values,
                        &mut results.view::<Op::Output>(),
                        StreamRef::default_stream(),
                    )
                    .unwrap();
                }
                let expected = cpu.reduce(&tags[tags_from..tags_from + n], &all[from..from + n]).unwrap();
                assert!(
                    results.written(results.len) == bytes(&expected),
                    "{n} by {k} from {from} and {tags_from}"
                );
            }
        }
    }
    let (values, tags) = (ordinary::<Op::Item>(70_000, 5), tags_of(70_000, 40, 6));
    let expected = Engine::cpu().by_tag(op, 40).unwrap().reduce(&tags, &values).unwrap();
    let found = gpu.by_tag(op, 40).unwrap().reduce(&tags, &values).unwrap();
    assert!(bytes(&found) == bytes(&expected), "from host memory");
}

#[test]
fn by_tag_sums() {
    by_tag(Sum::<f32>::new());
    by_tag(Sum::<i32>::new());
    by_tag(Sum::<i64>::new());
}

#[test]
fn by_tag_wide_accumulators_and_extremes() {
    by_tag(Sum::<f64>::new());
    by_tag(Mean::<f32>::new());
    by_tag(Max::<f32>::new());
}

#[test]
fn by_tag_fast_sums_are_as_accurate_as_others() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random::new(77);
    // In shared memory, in one block's alone, by ranges of tags, in global memory, and by lists.
    for (round, k) in [1_u64, 40, 4000, 10_000, 60_000, 300_000, 301_000].into_iter().enumerate() {
        let n = round + if round < 6 { 1_300_000 } else { 9_000_000 };
        let tags = tags_of(n, k, k);
        let values: Vec<f32> = (0..n)
            .map(|_| {
                // Most of one magnitude, or all of any.
                let magnitude = match random.below(if round % 2 == 0 { 500 } else { 4 }) {
                    0 => 1e-30,
                    1 => 0.0,
                    2 => 1e20,
                    _ => 1.0,
                };
                (random.below(1 << 24) as f32 / (1 << 23) as f32 - 1.0) * magnitude
            })
            .collect();
        let mut sums = vec![(0.0_f64, 0.0_f64); k as usize];
        for (&tag, &value) in tags.iter().zip(&values).skip(round % 3) {
            let (sum, magnitudes) = &mut sums[tag as usize];
            (*sum, *magnitudes) = (*sum + value as f64, *magnitudes + value.abs() as f64);
        }
        let from = round as u64 % 3..n as u64;
        let (tags_on, values_on) =
            (DeviceArray::from_slice(&gpu, &tags).unwrap(), DeviceArray::from_slice(&gpu, &values).unwrap());
        let (tags_on, values_on) = (tags_on.view(), values_on.view());
        let fast = gpu.by_tag(Fast(Sum::<f32>::new()), k).unwrap();
        let found =
            fast.reduce(&tags_on.slice(from.clone()).unwrap(), &values_on.slice(from).unwrap()).unwrap();
        for (tag, (&found, &(sum, magnitudes))) in found.iter().zip(&sums).enumerate() {
            let error = (found as f64 - sum).abs();
            assert!(error <= 1.2e-7 * sum.abs() + 1e-12 * magnitudes, "tag {tag} of {k}: {found}, not {sum}");
        }
    }
}

#[test]
fn tags_of_every_width_and_those_out_of_range() {
    fn check<T: Tag + TryFrom<i64>>(gpu: &Engine, bad: i64) {
        for k in [50, 120] {
            let (on, cpu) = (
                gpu.by_tag(Sum::<f32>::new(), k).unwrap(),
                Engine::cpu().by_tag(Sum::<f32>::new(), k).unwrap(),
            );
            let values: Vec<f32> = ordinary(9001, k);
            let mut tags: Vec<T> =
                tags_of(9001, k, 8).into_iter().map(|tag| T::try_from(tag.into()).ok().unwrap()).collect();
            let expected = cpu.reduce(&tags, &values).unwrap();
            assert!(bytes(&on.reduce(&tags, &values).unwrap()) == bytes(&expected));
            for at in [9000, 4321, 4320, 5] {
                tags[at] = T::try_from(bad).ok().unwrap();
                let error = on.reduce(&tags, &values).unwrap_err();
                assert_eq!(error, Error::TagOutOfRange { index: at as u64, tag: bad.into(), tags: k });
                let on_device = DeviceArray::from_slice(gpu, &tags).unwrap();
                let values_on = DeviceArray::from_slice(gpu, &values).unwrap();
                assert_eq!(on.reduce(&on_device, &values_on).unwrap_err(), error);
            }
            let expected = cpu.ignore_out_of_range().reduce(&tags, &values).unwrap();
            assert!(bytes(&on.ignore_out_of_range().reduce(&tags, &values).unwrap()) == bytes(&expected));
        }
    }
    let Some(gpu) = gpu() else { return };
    check::<u8>(&gpu, 255);
    check::<i8>(&gpu, -1);
    check::<u16>(&gpu, 120);
    check::<i16>(&gpu, -5);
    check::<u32>(&gpu, u32::MAX as i64);
    check::<i32>(&gpu, i32::MIN as i64);
    check::<u64>(&gpu, 1 << 32);
    check::<i64>(&gpu, -1);
}

/// Keys whose runs are of up to so many.
fn keys_of(n: usize, longest: u64, seed: u64) -> Vec<i32> {
    let mut random = Random::new(seed);
    let mut keys = Vec::new();
    let mut key = 0;
    while keys.len() < n {
        let run = 1 + random.below(longest) as usize;
        key = (key + 1) % 1000;
        keys.extend(std::iter::repeat_n(key - 500, run.min(n - keys.len())));
    }
    keys
}

fn by_key<K: Plain + PartialEq, Op: Monoid>(op: Op, key: impl Fn(i32) -> K)
where
    Op::Item: Data,
{
    let Some(gpu) = gpu() else { return };
    let tiling = RunTiling::of_keys::<K, Equal, Op>();
    let (warp, tile) = (tiling.warp() as usize, tiling.tile() as usize);
    let (on, cpu) = (gpu.by_key::<K, _>(op).unwrap(), Engine::cpu().by_key::<K, _>(op).unwrap());
    for (round, n) in
        [0, 1, 33, warp - 1, warp, warp + 1, tile - 1, tile, tile + 1, 3 * tile + 7, 300 * tile + 11]
            .into_iter()
            .enumerate()
    {
        let all: Vec<Op::Item> = ordinary(n + 3, n as u64);
        let values_on = DeviceArray::from_slice(&gpu, &all).unwrap();
        for longest in [1, 2, 30, 5000, 1 << 40] {
            let keys: Vec<K> = keys_of(n + 3, longest, n as u64).into_iter().map(&key).collect();
            let keys_on = DeviceArray::from_slice(&gpu, &keys).unwrap();
            for (from, keys_from) in [(0, 0), (round % 4, (round / 4 + round) % 4)] {
                let (from, keys_from) = (from.min(3), keys_from.min(3));
                let values = values_on.view().slice(from as u64..(from + n) as u64).unwrap();
                let keys_view = keys_on.view().slice(keys_from as u64..(keys_from + n) as u64).unwrap();
                let out_keys = Guarded::new::<K>(&gpu, n, round % 3);
                let results = Guarded::new::<Op::Output>(&gpu, n, round % 2);
                let count = Guarded::new::<u64>(&gpu, 1, 0);
                // SAFETY: left alone until the copies, which wait.
                unsafe {
                    on.enqueue(
                        &keys_view,
                        &values,
                        &mut out_keys.view::<K>(),
                        &mut results.view::<Op::Output>(),
                        &mut count.view::<u64>(),
                        StreamRef::default_stream(),
                    )
                    .unwrap();
                }
                let expected = cpu.reduce(&keys[keys_from..keys_from + n], &all[from..from + n]).unwrap();
                let place = format!("{n}, runs of up to {longest}, from {from} and {keys_from}");
                assert!(count.written(8) == bytes(&[expected.keys.len() as u64]), "the count of {place}");
                assert!(
                    out_keys.written(size_of_val(&expected.keys[..])) == bytes(&expected.keys),
                    "the keys of {place}"
                );
                assert!(
                    results.written(size_of_val(&expected.values[..])) == bytes(&expected.values),
                    "the results of {place}"
                );
            }
        }
    }
    let (keys, values) =
        (keys_of(50_000, 100, 3).into_iter().map(key).collect::<Vec<K>>(), ordinary::<Op::Item>(50_000, 4));
    let (found, expected) = (on.reduce(&keys, &values).unwrap(), cpu.reduce(&keys, &values).unwrap());
    assert!(
        found.keys == expected.keys && bytes(&found.values) == bytes(&expected.values),
        "from host memory"
    );
}

#[test]
fn by_key_sums() {
    by_key(Sum::<f32>::new(), |key| key);
    by_key(Sum::<i64>::new(), |key| key as i64 * 5_000_000_000);
}

/// Kernels for `i32` widen them.
#[test]
fn by_key_of_narrow_integers() {
    by_key(Sum::<f32>::new(), |key| key as u8);
    by_key(Mean::<f32>::new(), |key| key as i16 - 9);
}

#[test]
fn positions_in_the_order_of_keys() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random::new(5);
    let keys: Vec<i64> = (0..3_000_000).map(|_| random.bits() as i64 >> 44).collect();
    let expected = Engine::cpu().order(&keys).unwrap();
    assert!(gpu.order(&keys).unwrap() == expected);
    assert!(gpu.order(&DeviceArray::from_slice(&gpu, &keys).unwrap()).unwrap() == expected);
    assert!(gpu.with_device_bytes(1 << 20).order(&keys).unwrap() == expected);
}

#[test]
fn by_key_means_and_functions_whose_order_matters() {
    by_key(Mean::<f32>::new(), |key| key);
    by_key(Compose::<f32>::new(), |key| key);
}

#[test]
fn by_key_on_many_streams_at_once_never_hangs_and_never_differs() {
    let Some(gpu) = gpu() else { return };
    let _context = Context::new(Device::get_device(0).unwrap()).unwrap();
    let n = 200_001;
    let (keys, values, tags) = (keys_of(n, 40, 1), ordinary::<f32>(n, 2), tags_of(n, 100, 3));
    let cpu = Engine::cpu();
    let expected = cpu.by_key(Sum::<f32>::new()).unwrap().reduce(&keys, &values).unwrap();
    let expected_tags = cpu.by_tag(Sum::<f32>::new(), 100).unwrap().reduce(&tags, &values).unwrap();
    let (runs, by_tag) =
        (gpu.by_key(Sum::<f32>::new()).unwrap(), gpu.by_tag(Sum::<f32>::new(), 100).unwrap());
    let (keys, values, tags) = (
        DeviceArray::from_slice(&gpu, &keys).unwrap(),
        DeviceArray::from_slice(&gpu, &values).unwrap(),
        DeviceArray::from_slice(&gpu, &tags).unwrap(),
    );
    let streams: Vec<Stream> =
        (0..32).map(|_| Stream::new(StreamFlags::NON_BLOCKING, None).unwrap()).collect();
    // SAFETY: written before they are read.
    let mut outputs: Vec<_> = (0..32)
        .map(|_| unsafe {
            (
                DeviceArray::<i32>::uninit(&gpu, n).unwrap(),
                DeviceArray::<f32>::uninit(&gpu, n).unwrap(),
                DeviceArray::<u64>::uninit(&gpu, 1).unwrap(),
                DeviceArray::<f32>::uninit(&gpu, 100).unwrap(),
            )
        })
        .collect();
    for round in 0..6 {
        for _ in 0..2 {
            for (stream, (out_keys, results, count, tagged)) in streams.iter().zip(&mut outputs) {
                // SAFETY: left alone until the streams have been waited for.
                unsafe {
                    runs.enqueue(&keys, &values, out_keys, results, count, stream).unwrap();
                    by_tag.enqueue::<i32, _, _, _>(&tags, &values, tagged, stream).unwrap();
                }
            }
        }
        streams.iter().for_each(|stream| stream.synchronize().unwrap());
        for (k, (out_keys, results, count, tagged)) in outputs.iter().enumerate() {
            if (k + round) % 4 == 0 {
                let len = expected.keys.len();
                assert_eq!(count.to_vec().unwrap(), [len as u64], "round {round}, stream {k}");
                assert!(out_keys.to_vec().unwrap()[..len] == expected.keys, "round {round}, stream {k}");
                assert!(
                    bytes(&results.to_vec().unwrap()[..len]) == bytes(&expected.values),
                    "round {round}, stream {k}"
                );
                assert!(
                    bytes(&tagged.to_vec().unwrap()) == bytes(&expected_tags),
                    "round {round}, stream {k}"
                );
            }
        }
    }
}

fn groups<K: DeviceKey + std::fmt::Debug, Op: Monoid>(op: Op, sizes: &[usize], key: impl Fn(u64) -> K)
where
    Op::Item: Data,
    Op::Output: PartialEq,
{
    let Some(gpu) = gpu() else { return };
    let (on, cpu) = (gpu.group_by(op).unwrap(), Engine::cpu().group_by(op).unwrap());
    for (round, &n) in sizes.iter().enumerate() {
        let all: Vec<Op::Item> = ordinary(n + 3, n as u64);
        let values_on = DeviceArray::from_slice(&gpu, &all).unwrap();
        // The references take their time.
        let distinct: &[u64] = if n > 1_000_000 { &[30] } else { &[1, 30, 100_000, u64::MAX] };
        for &distinct in distinct {
            let mut random = Random::new(n as u64);
            let keys: Vec<K> = (0..n + 3).map(|_| key(random.below(distinct))).collect();
            let keys_on = DeviceArray::from_slice(&gpu, &keys).unwrap();
            let (from, keys_from) = (round % 4, (round / 4 + round) % 4);
            let (from, keys_from) = (from.min(3), keys_from.min(3));
            let values = values_on.view().slice(from as u64..(from + n) as u64).unwrap();
            let keys_view = keys_on.view().slice(keys_from as u64..(keys_from + n) as u64).unwrap();
            let out_keys = Guarded::new::<K>(&gpu, n, round % 3);
            let results = Guarded::new::<Op::Output>(&gpu, n, round % 2);
            let count = Guarded::new::<u64>(&gpu, 1, 0);
            // SAFETY: left alone until the copies, which wait.
            unsafe {
                on.enqueue(
                    &keys_view,
                    &values,
                    &mut out_keys.view::<K>(),
                    &mut results.view::<Op::Output>(),
                    &mut count.view::<u64>(),
                    StreamRef::default_stream(),
                )
                .unwrap();
            }
            let (keys, all) = (&keys[keys_from..keys_from + n], &all[from..from + n]);
            let expected = cpu.sorted().reduce(keys, all).unwrap();
            let place = format!("{n}, {distinct} keys, from {from} and {keys_from}");
            assert!(count.written(8) == bytes(&[expected.keys.len() as u64]), "the count of {place}");
            assert!(
                out_keys.written(size_of_val(&expected.keys[..])) == bytes(&expected.keys),
                "the keys of {place}"
            );
            assert!(
                results.written(size_of_val(&expected.values[..])) == bytes(&expected.values),
                "the results of {place}"
            );
            // To host memory, in either order, from there and from the device.
            let expected_seen = cpu.reduce(keys, all).unwrap();
            let found = [
                on.sorted().reduce(keys, all).unwrap(),
                on.sorted().reduce(&keys_view, &values).unwrap(),
                on.reduce(keys, all).unwrap(),
                on.reduce(&keys_view, &values).unwrap(),
            ];
            for (found, expected) in found.iter().zip([&expected, &expected, &expected_seen, &expected_seen])
            {
                assert!(bytes(&found.keys) == bytes(&expected.keys), "the keys of {place}");
                assert!(bytes(&found.values) == bytes(&expected.values), "the results of {place}");
            }
        }
    }
}

/// About a tile, and more of them than are at work at once.
const GROUP_SIZES: [usize; 9] = [0, 1, 33, 4095, 4096, 4097, 12_295, 100_003, 2_000_011];

#[test]
fn groups_of_values_that_travel_with_their_keys() {
    groups(Sum::<f32>::new(), &GROUP_SIZES, |key| key as i64 - 7);
    groups(Sum::<i64>::new(), &GROUP_SIZES, |key| (key as f64 - 5e4) * 1e-3);
    groups(Mean::<f32>::new(), &GROUP_SIZES[..8], |key| key as u32);
}

#[test]
fn groups_of_operators_that_tell_order_and_position() {
    groups(ArgMax::<f32>::new(), &GROUP_SIZES, |key| key << 40);
    groups(Compose::<f32>::new(), &GROUP_SIZES[..8], |key| f32::from_bits(key as u32));
}

#[test]
fn groups_by_names_and_errors() {
    let Some(gpu) = gpu() else { return };
    let (on, cpu) =
        (gpu.group_by(Sum::<f32>::new()).unwrap(), Engine::cpu().group_by(Sum::<f32>::new()).unwrap());
    let values: Vec<f32> = ordinary(20_000, 1);
    let names: Vec<String> = (0..20_000_u64).map(|i| format!("station {}", i * i % 311)).collect();
    for (on, cpu) in [(&on, &cpu), (&on.sorted(), &cpu.sorted())] {
        let (found, expected) = (on.reduce(&names, &values).unwrap(), cpu.reduce(&names, &values).unwrap());
        assert!(found.keys == expected.keys && bytes(&found.values) == bytes(&expected.values));
    }
    let keys_on = DeviceArray::from_slice(&gpu, &[1_i64; 4]).unwrap();
    assert_eq!(on.reduce(&keys_on, &values[..5]).unwrap_err(), Error::ColumnLengths { first: 4, other: 5 });
    let error = cpu.reduce(&keys_on, &values[..4]).unwrap_err();
    assert_eq!(error, Error::NeedsCuda { what: "device memory" });
}

#[test]
fn groups_on_many_streams_and_in_replayed_graphs() {
    let Some(gpu) = gpu() else { return };
    let _apart = apart();
    let _context = Context::new(Device::get_device(0).unwrap()).unwrap();
    let n = 200_001;
    let (keys, values) = (tags_of(n, 5000, 1), ordinary::<f32>(n, 2));
    let expected =
        Engine::cpu().group_by(Sum::<f32>::new()).unwrap().sorted().reduce(&keys, &values).unwrap();
    let sums = gpu.group_by(Sum::<f32>::new()).unwrap();
    let (keys, values) =
        (DeviceArray::from_slice(&gpu, &keys).unwrap(), DeviceArray::from_slice(&gpu, &values).unwrap());
    let streams: Vec<Stream> =
        (0..16).map(|_| Stream::new(StreamFlags::NON_BLOCKING, None).unwrap()).collect();
    // SAFETY: written before they are read.
    let mut outputs: Vec<_> = (0..16)
        .map(|_| unsafe {
            (
                DeviceArray::<i32>::uninit(&gpu, n).unwrap(),
                DeviceArray::<f32>::uninit(&gpu, n).unwrap(),
                DeviceArray::<u64>::uninit(&gpu, 1).unwrap(),
            )
        })
        .collect();
    let check = |(out_keys, results, count): &(DeviceArray<i32>, DeviceArray<f32>, DeviceArray<u64>)| {
        let len = expected.keys.len();
        assert_eq!(count.to_vec().unwrap(), [len as u64]);
        assert!(out_keys.to_vec().unwrap()[..len] == expected.keys);
        assert!(bytes(&results.to_vec().unwrap()[..len]) == bytes(&expected.values));
    };
    for _ in 0..3 {
        for (stream, (out_keys, results, count)) in streams.iter().zip(&mut outputs) {
            // SAFETY: left alone until the streams have been waited for.
            unsafe { sums.enqueue(&keys, &values, out_keys, results, count, stream).unwrap() };
        }
        streams.iter().for_each(|stream| stream.synchronize().unwrap());
        outputs.iter().for_each(check);
    }
    let (mut graph, mut executable): (CUgraph, CUgraphExec) = (ptr::null_mut(), ptr::null_mut());
    let (stream, output) = (&streams[0], &mut outputs[0]);
    // SAFETY: a live stream, valid places for the answers; the arrays outlive the graph.
    unsafe {
        sums.warm_up::<i32>(n as u64).unwrap();
        let begun = sys::cuStreamBeginCapture_v2(stream.as_inner(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
        assert_eq!(begun, sys::CUresult::CUDA_SUCCESS);
        let enqueued = sums.enqueue(&keys, &values, &mut output.0, &mut output.1, &mut output.2, stream);
        let ended = sys::cuStreamEndCapture(stream.as_inner(), &mut graph);
        assert_eq!((enqueued, ended), (Ok(()), sys::CUresult::CUDA_SUCCESS));
        let made = sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0);
        assert_eq!(made, sys::CUresult::CUDA_SUCCESS);
        for _ in 0..5 {
            output.2.copy_from_slice(&[0]).unwrap();
            assert_eq!(sys::cuGraphLaunch(executable, stream.as_inner()), sys::CUresult::CUDA_SUCCESS);
            stream.synchronize().unwrap();
            check(output);
        }
        sys::cuGraphExecDestroy(executable);
        sys::cuGraphDestroy(graph);
    }
}

#[test]
fn replayed_graphs_of_reductions_by_tag_and_by_key() {
    let Some(gpu) = gpu() else { return };
    let _apart = apart();
    let _context = Context::new(Device::get_device(0).unwrap()).unwrap();
    let (runs, by_tag) = (gpu.by_key(Sum::<f32>::new()).unwrap(), gpu.by_tag(Sum::<f32>::new(), 16).unwrap());
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None).unwrap();
    let n = 100_000;
    let (keys, values, tags) = (keys_of(n, 9, 1), ordinary::<f32>(n, 2), tags_of(n, 16, 3));
    let (mut keys_on, values_on, mut tags_on) = (
        DeviceArray::from_slice(&gpu, &keys).unwrap(),
        DeviceArray::from_slice(&gpu, &values).unwrap(),
        DeviceArray::from_slice(&gpu, &tags).unwrap(),
    );
    let mut out_keys = DeviceArray::from_slice(&gpu, &vec![0_i32; n]).unwrap();
    let mut results = DeviceArray::from_slice(&gpu, &vec![0_f32; n]).unwrap();
    let mut count = DeviceArray::from_slice(&gpu, &[0_u64]).unwrap();
    let mut tagged = DeviceArray::from_slice(&gpu, &[0_f32; 16]).unwrap();
    let mut first = DeviceArray::from_slice(&gpu, &[0_u64]).unwrap();
    let (mut graph, mut executable): (CUgraph, CUgraphExec) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: a live stream, valid places for the answers; the arrays outlive the graph.
    unsafe {
        let begin = || sys::cuStreamBeginCapture_v2(stream.as_inner(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
        runs.warm_up(n as u64).unwrap();
        by_tag.warm_up(n as u64).unwrap();
        assert_eq!(begin() as u32, 0);
        runs.enqueue(&keys_on, &values_on, &mut out_keys, &mut results, &mut count, &stream).unwrap();
        by_tag
            .enqueue_checked::<i32, _, _, _, _>(&tags_on, &values_on, &mut tagged, &mut first, &stream)
            .unwrap();
        assert_eq!(sys::cuStreamEndCapture(stream.as_inner(), &mut graph) as u32, 0);
        assert_eq!(sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0) as u32, 0);
    }
    let cpu = (
        Engine::cpu().by_key(Sum::<f32>::new()).unwrap(),
        Engine::cpu().by_tag(Sum::<f32>::new(), 16).unwrap(),
    );
    for round in 0..30 {
        // Others each time, so that what is stale is wrong.
        let keys = keys_of(n, 1 + round % 7, round);
        let mut tags = tags_of(n, 16, round);
        if round % 3 == 1 {
            tags[999 * round as usize] = 16;
        }
        keys_on.copy_from_slice(&keys).unwrap();
        tags_on.copy_from_slice(&tags).unwrap();
        // SAFETY: a live executable and stream.
        assert_eq!(unsafe { sys::cuGraphLaunch(executable, stream.as_inner()) } as u32, 0);
        stream.synchronize().unwrap();
        let expected = cpu.0.reduce(&keys, &values).unwrap();
        let len = expected.keys.len();
        assert_eq!(count.to_vec().unwrap(), [len as u64], "round {round}");
        assert!(out_keys.to_vec().unwrap()[..len] == expected.keys, "round {round}");
        assert!(bytes(&results.to_vec().unwrap()[..len]) == bytes(&expected.values), "round {round}");
        let expected = cpu.1.ignore_out_of_range().reduce(&tags, &values).unwrap();
        assert!(bytes(&tagged.to_vec().unwrap()) == bytes(&expected), "round {round}");
        let bad = if round % 3 == 1 { 999 * round } else { u64::MAX };
        assert_eq!(first.to_vec().unwrap(), [bad], "round {round}");
    }
    // SAFETY: ours, and the stream has been waited for.
    unsafe {
        sys::cuGraphExecDestroy(executable);
        sys::cuGraphDestroy(graph);
    }
}

#[test]
fn more_than_2_to_the_32_runs() {
    let Some(gpu) = gpu() else { return };
    let runs = gpu.by_key::<i32, _>(Sum::<f32>::new()).unwrap();
    let n = (1_usize << 32) + 12_345;
    // SAFETY: filled below, or written before it is read.
    let room = unsafe {
        (
            DeviceArray::<i32>::uninit(&gpu, n),
            DeviceArray::<f32>::uninit(&gpu, n),
            DeviceArray::<i32>::uninit(&gpu, n),
            DeviceArray::<f32>::uninit(&gpu, n),
        )
    };
    let (Ok(keys), Ok(values), Ok(mut out_keys), Ok(mut results)) = room else {
        eprintln!("skipped: 69 GiB of device memory are not free");
        return;
    };
    let mut count = DeviceArray::from_slice(&gpu, &[0_u64]).unwrap();
    let _context = Context::new(Device::get_device(0).unwrap()).unwrap();
    // SAFETY: the arrays' own bytes, and left alone until the copies, which wait.
    unsafe {
        // Every other key is 7, the others 0; the last 100 have one key.
        assert_eq!(sys::cuMemsetD32_v2(keys.address(), 0, n) as u32, 0);
        assert_eq!(sys::cuMemsetD2D32_v2(keys.address(), 8, 7, 1, n / 2) as u32, 0);
        assert_eq!(sys::cuMemsetD32_v2(keys.address() + 4 * (n as u64 - 100), 9, 100) as u32, 0);
        assert_eq!(sys::cuMemsetD32_v2(values.address(), 2.5_f32.to_bits(), n) as u32, 0);
        runs.enqueue(&keys, &values, &mut out_keys, &mut results, &mut count, StreamRef::default_stream())
            .unwrap();
        assert_eq!(sys::cuCtxSynchronize() as u32, 0);
    }
    assert_eq!(count.to_vec().unwrap(), [n as u64 - 99]);
    for start in [0, (1 << 31) - 50, (1_usize << 32) - 50, n - 199] {
        let (mut some_keys, mut some) = ([0_i32; 100], [0_f32; 100]);
        let at = 4 * start as u64;
        // SAFETY: within the arrays.
        unsafe {
            assert_eq!(
                sys::cuMemcpyDtoH_v2(some_keys.as_mut_ptr().cast(), out_keys.address() + at, 400) as u32,
                0
            );
            assert_eq!(sys::cuMemcpyDtoH_v2(some.as_mut_ptr().cast(), results.address() + at, 400) as u32, 0);
        }
        for i in 0..100 {
            let last = start + i == n - 100;
            let expected = if last { (9, 250.0) } else { ([7, 0][(start + i) % 2], 2.5) };
            assert_eq!((some_keys[i], some[i]), expected, "run {}", start + i);
        }
    }
}
