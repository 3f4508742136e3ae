//! A GPU's sinks give the CPU's bits, wherever batches lie and however they are cut; and so do arrays that are sent there in
//! pieces, with however little room.

use warpfold::{
    Affine, Compose, Engine, Error, Monoid, SegmentPlan, Sink, Sum, Value,
    cuda::{
        DeviceArray, DeviceView, StreamRef,
        cust::{
            context::Context,
            device::Device,
            stream::{Stream, StreamFlags},
        },
    },
};

use crate::support::{Bits, Random, gpu};

fn floats(n: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..n).map(|_| (random.bits() >> 40) as f32 * 2f32.powi((random.bits() % 30) as i32 - 20)).collect()
}

/// Steps close to the identity, so that a long chain of them stays finite.
fn steps(n: usize, seed: u64) -> Vec<Affine<f32>> {
    let mut random = Random::new(seed);
    let mut near = move |spread: f32| ((random.bits() >> 40) as f32 / (1u64 << 24) as f32 - 0.5) * spread;
    (0..n).map(|_| Affine { scale: 1.0 + near(1e-3), shift: near(1.0) }).collect()
}

fn stream() -> (Context, Stream) {
    let context = Context::new(Device::get_device(0).unwrap()).unwrap();
    (context, Stream::new(StreamFlags::DEFAULT, None).unwrap())
}

fn result<Op: Monoid>(sink: &Sink<Op>) -> Option<u64>
where
    Value<Op>: Bits,
{
    sink.result().unwrap().bits()
}

/// Batches of lengths that begin and end wherever they like in chunks, and of whole chunks.
const CUTS: [usize; 12] = [8192, 65_536, 3, 8189, 100_000, 0, 1, 16_384 * 5, 8191, 40_000, 2_000_003, 7];

fn all_ways<Op: Monoid>(engine: &Engine, op: Op, items: &[Op::Item])
where
    Value<Op>: Bits,
{
    let (cpu, gpu) = (Engine::cpu().sink(op).unwrap(), engine.sink(op).unwrap());
    let array = DeviceArray::from_slice(engine, items).unwrap();
    let (_context, first) = stream();
    let streams = [first, Stream::new(StreamFlags::DEFAULT, None).unwrap()];
    let mut start = 0;
    let part = |start: usize, len: usize| -> DeviceView<'_, Op::Item> {
        array.view().slice(start as u64..(start + len) as u64).unwrap()
    };
    for round in 0..40 {
        let len = CUTS[round % CUTS.len()].min(items.len() - start);
        let end = start + len;
        // SAFETY: the array outlives the sinks' work, which results wait for below; streams are those of the context.
        unsafe {
            match round % 5 {
                0 => gpu.push(&items[start..end]).unwrap(),
                1 => gpu.push_on(&part(start, len), &streams[0]).unwrap(),
                2 => gpu.push_on(&part(start, len), &streams[1]).unwrap(),
                3 => gpu.push(&part(start, len)).unwrap(),
                _ => {
                    let mut batches = Vec::new();
                    let mut at = start;
                    while at < end {
                        let step = (end - at).min(30_000);
                        batches.push(part(at, step));
                        at += step;
                    }
                    gpu.push_all_on(&batches, StreamRef::from(&streams[round % 2])).unwrap();
                }
            }
        }
        cpu.push(&items[start..end]).unwrap();
        start = end;
        if round % 3 == 0 {
            assert_eq!(result(&gpu), result(&cpu), "round {round}, {end} items");
        }
    }
    // From one to the other and back.
    cpu.push(&items[start..]).unwrap();
    gpu.push(&items[start..]).unwrap();
    let saved = gpu.save().unwrap();
    assert_eq!(saved, cpu.save().unwrap());
    // SAFETY: saved just now.
    let (on_cpu, on_gpu) = unsafe {
        (Engine::cpu().restore_sink(op, &saved).unwrap(), engine.restore_sink(op, &saved).unwrap())
    };
    for sink in [&on_cpu, &on_gpu] {
        sink.push(&items[..20_000]).unwrap();
        sink.push(&items[..items.len() / 2]).unwrap();
    }
    assert_eq!(result(&on_gpu), result(&on_cpu));
}

#[test]
fn sinks_give_the_cpus_bits() {
    let Some(engine) = gpu() else { return };
    // More than two pieces.
    all_ways(&engine, Sum::<f32>::new(), &floats(20_000_000, 1));
    all_ways(&engine, Compose::<f32>::new(), &steps(9_000_000, 2));
}

#[test]
fn threads_push_what_is_theirs() {
    let Some(engine) = gpu() else { return };
    let sink = engine.sink(Sum::<u64>::new()).unwrap();
    let batch = DeviceArray::from_slice(&engine, &vec![1_u64; 100_000]).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (sink, batch) = (&sink, &batch);
            scope.spawn(move || {
                for k in 0..50 {
                    match k % 2 {
                        0 => sink.push(&vec![thread; 1000 * k]).unwrap(),
                        _ => sink.push(batch).unwrap(),
                    }
                }
            });
        }
    });
    let of_hosts: u64 = (0..50).step_by(2).map(|k| 1000 * k * 6).sum();
    assert_eq!(sink.finish().unwrap(), of_hosts + 4 * 25 * 100_000);
}

#[test]
fn a_sink_that_is_dropped_waits_for_its_work() {
    let Some(engine) = gpu() else { return };
    let items = floats(3_000_000, 3);
    for _ in 0..20 {
        let sink = engine.sink(Sum::<f32>::new()).unwrap();
        sink.push(&items).unwrap();
    }
}

#[test]
fn long_host_arrays_give_the_same_bits_with_however_little_room() {
    let Some(engine) = gpu() else { return };
    let floats = floats(50_000_011, 4);
    let steps = steps(20_000_003, 5);
    let sum = Engine::cpu().reducer(Sum::<f32>::new()).unwrap().reduce(&floats).unwrap().bits();
    let chain = Engine::cpu().reducer(Compose::<f32>::new()).unwrap().reduce(&steps).unwrap().bits();
    // Chunks of 1 MiB: as they come, in windows of several, in two of one each.
    for limit in [u64::MAX, 64 << 20, 9 << 20, 2 << 20] {
        let engine = engine.with_device_bytes(limit);
        let reducer = engine.reducer(Sum::<f32>::new()).unwrap();
        for run in 0..3 {
            assert_eq!(reducer.reduce(&floats).unwrap().bits(), sum, "run {run} with {limit} bytes");
        }
        let n = floats.len() as u64;
        assert_eq!(reducer.reduce_chunks_of(n, floats.chunks(1_000_003)).unwrap().bits(), sum);
        assert_eq!(engine.reducer(Compose::<f32>::new()).unwrap().reduce(&steps).unwrap().bits(), chain);
    }
    let error =
        engine.with_device_bytes(1 << 20).reducer(Sum::<f32>::new()).unwrap().reduce(&floats).unwrap_err();
    assert_eq!(error, Error::DeviceMemory { needed: 2 << 20, free: 1 << 20, total: 1 << 20 });
    // Streams and arrays of a known length agree where they should: with the CPU.
    let gpu = engine.reducer(Sum::<f32>::new()).unwrap().reduce_chunks(floats.chunks(70_001)).unwrap();
    let cpu =
        Engine::cpu().reducer(Sum::<f32>::new()).unwrap().reduce_chunks(floats.chunks(999_999)).unwrap();
    assert_eq!(gpu.bits(), cpu.bits());
}

#[test]
fn host_arrays_that_do_not_fit_give_the_same_bits() {
    let Some(gpu) = gpu() else { return };
    let limited = gpu.with_device_bytes(1 << 20);
    let cpu = Engine::cpu();
    let values = floats(1_500_000, 7);
    let n = values.len();
    let keys: Vec<i64> = (0..n as i64).map(|i| i * i % 1009 - 500).collect();
    let tags: Vec<u16> = (0..n).map(|i| (i * 7919 % 10_007 % 300) as u16).collect();
    let runs: Vec<i32> = (0..n).map(|i| (i / 700) as i32).collect();
    let whole: Vec<i64> = values.iter().map(|&value| (value * 1e4) as i64).collect();
    let on = |engine: &Engine| {
        let bits = |floats: Vec<f32>| floats.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        let sum = Sum::<f32>::new();
        let by_key = engine.by_key(sum).unwrap().reduce(&runs, &values).unwrap();
        let groups = engine.group_by(sum).unwrap().reduce(&keys, &values).unwrap();
        let scanner = engine.scanner(sum).unwrap();
        let mut in_place = values.clone();
        scanner.reverse().scan_in_place(&mut in_place).unwrap();
        // Some segments fit, and one does not.
        let lengths = [100, 0, 250_000, 3, 900_000, 249_000, 5];
        let plan = SegmentPlan::from_lengths(&lengths).unwrap();
        let segments = engine.segments(sum).unwrap();
        let chunks: Result<Vec<_>, _> = scanner.scan_chunks(values.chunks(70_001)).unwrap().collect();
        let floats = [
            engine.by_tag(sum, 300).unwrap().reduce(&tags, &values).unwrap(),
            by_key.values,
            groups.values,
            scanner.scan(&values).unwrap(),
            in_place,
            chunks.unwrap().concat(),
            segments.reduce_segments(&values, &plan).unwrap(),
            segments.reduce_chunks(&plan, values.chunks(99_999)).unwrap(),
            segments.reduce_rows(&values, 1000).unwrap(),
        ];
        let exact = engine.by_tag(Sum::<i64>::new(), 300).unwrap().reduce(&tags, &whole).unwrap();
        (floats.map(bits), by_key.keys, groups.keys, exact)
    };
    let expected = on(&cpu);
    assert!(on(&gpu) == expected);
    assert!(on(&limited) == expected);
}

#[test]
fn tagged_sinks_give_the_cpus_bits() {
    let Some(engine) = gpu() else { return };
    let values = floats(3_000_000, 6);
    let on_device = DeviceArray::from_slice(&engine, &values).unwrap();
    let (_context, stream) = stream();
    for k in [1_u64, 16, 3000] {
        let op = Sum::<f32>::new();
        let (cpu, gpu) = (Engine::cpu().tagged_sink(op, k).unwrap(), engine.tagged_sink(op, k).unwrap());
        let tags: Vec<u32> = (0..values.len() as u64).map(|i| (i * 7919 % 10_007 % k) as u32).collect();
        let device_tags = DeviceArray::from_slice(&engine, &tags).unwrap();
        let mut start = 0;
        for (round, cut) in [1, 70_000, 999, 1_200_003, 0, 500_000, 33].into_iter().enumerate() {
            let range = start..start + cut;
            cpu.push(&tags[range.clone()], &values[range.clone()]).unwrap();
            if round % 2 == 0 {
                gpu.push(&tags[range.clone()], &values[range]).unwrap();
            } else {
                let range = start as u64..(start + cut) as u64;
                let (tags, values) = (
                    device_tags.view().slice(range.clone()).unwrap(),
                    on_device.view().slice(range).unwrap(),
                );
                // SAFETY: the arrays outlive the work, which the results wait for.
                unsafe { gpu.push_on(&tags, &values, &stream).unwrap() };
            }
            start += cut;
            if round > 1 {
                let bits = |sums: Vec<f32>| sums.into_iter().map(f32::to_bits).collect::<Vec<_>>();
                assert_eq!(
                    bits(gpu.results().unwrap()),
                    bits(cpu.results().unwrap()),
                    "{k} tags, {start} items"
                );
            }
        }
        // From one to the other and back.
        let saved = gpu.save().unwrap();
        assert_eq!(saved, cpu.save().unwrap());
        // SAFETY: saved just now.
        let restored = unsafe { engine.restore_tagged_sink(op, k, &saved).unwrap() };
        restored.push(&tags[..999], &values[..999]).unwrap();
        // SAFETY: as above.
        let on_cpu = unsafe { Engine::cpu().restore_tagged_sink(op, k, &saved).unwrap() };
        on_cpu.push(&tags[..999], &values[..999]).unwrap();
        assert_eq!(restored.save().unwrap(), on_cpu.save().unwrap());
        let bad = DeviceArray::from_slice(&engine, &[0_u32, k as u32, 0]).unwrap();
        // SAFETY: as above.
        unsafe { gpu.push_on(&bad, &on_device.view().slice(..3).unwrap(), &stream).unwrap() };
        let index = start as u64 + 1;
        assert_eq!(gpu.results().unwrap_err(), Error::TagOfStream { index, tags: k });
    }
}
