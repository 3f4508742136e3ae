//! Sinks and long host arrays on a GPU, beside what they are measured by, in the same call.
//!
//! `cargo bench --features cuda --bench sink`. CSV goes to standard output, and to `sink.csv` in the folder that `WARPFOLD_OUT`
//! names. Pushes read slots of a 4 GiB buffer in turn; times are the medians of seven runs, by CUDA events. Host memory is
//! timed by the clock, from the call to the result.

use std::{error::Error, fmt::Write as _, io::Write as _, ptr, time::Instant};

use device::{Done, Events, copy, describe};
use warpfold::{
    Engine, Sum,
    cuda::{
        DeviceArray, DeviceView, DeviceViewMut, StreamRef,
        cust::sys::{self, CUstream},
    },
};

#[path = "support/device.rs"]
mod device;

/// Bytes of the buffer of batches.
const BUFFER: usize = 4 << 30;
/// Batches pushed in a run.
const PUSHES: usize = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let Some((engine, _context)) = device::gpu()? else { return Ok(()) };
    let mut text = format!("# {}; {}\nsection,operation,items_each,calls,us\n", describe()?, engine.info());
    pushes(&engine, &mut text)?;
    host(&engine, &mut text)?;
    print!("{text}");
    if let Some(folder) = std::env::var_os("WARPFOLD_OUT") {
        let path = std::path::Path::new(&folder).join("sink.csv");
        std::fs::File::create(path)?.write_all(text.as_bytes())?;
    }
    Ok(())
}

fn values(n: usize) -> Vec<f32> {
    let mut state = 7u64;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 48) as f32 / (1 << 15) as f32 - 1.0
        })
        .collect()
}

fn median(mut run: impl FnMut() -> Result<f64, Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    run()?;
    let mut samples = (0..7).map(|_| run()).collect::<Result<Vec<_>, _>>()?;
    samples.sort_by(f64::total_cmp);
    Ok(samples[samples.len() / 2])
}

/// Pushes of device memory, and reductions of as much.
fn pushes(engine: &Engine, text: &mut String) -> Result<(), Box<dyn Error>> {
    let block = values(1 << 24);
    // SAFETY: filled right below, before anything reads it.
    let buffer = unsafe { DeviceArray::<f32>::uninit(engine, BUFFER / 4)? };
    for start in (0..BUFFER / 4).step_by(block.len()) {
        // SAFETY: a part of the buffer, which nothing else uses.
        unsafe { copy(buffer.address() + 4 * start as u64, &block)? };
    }
    let mut raw: CUstream = ptr::null_mut();
    // SAFETY: a valid place for the answer; a context is current.
    unsafe { sys::cuStreamCreate(&mut raw, 1) }.done()?;
    // SAFETY: lives to the end.
    let stream = unsafe { StreamRef::from_raw(raw) };
    let events = Events::new()?;
    let timed = |work: &mut dyn FnMut() -> Result<(), Box<dyn Error>>| -> Result<f64, Box<dyn Error>> {
        median(|| {
            events.record(0, raw);
            work()?;
            events.record(1, raw);
            Ok(events.nanoseconds() / 1e3)
        })
    };
    let sum = engine.reducer(Sum::<f32>::new())?;
    let mut output = DeviceArray::from_slice(engine, &[0f32])?;
    for (name, items, skip) in
        [("whole", 1usize << 16, 0), ("astray", (1 << 16) - 100, 0), ("whole", 1 << 20, 0)]
    {
        let slots = BUFFER / 4 / items - 1;
        let view = |call: usize| {
            let at = buffer.address() + 4 * (call % slots * items + skip) as u64;
            // SAFETY: a part of the buffer, which lives as long and is not written.
            unsafe { DeviceView::<f32>::from_raw(at, items as u64) }
        };
        let views: Vec<_> = (0..PUSHES).map(view).collect();
        let reductions = timed(&mut || {
            for view in &views {
                // SAFETY: the buffer and the output, which live as long; nobody looks meanwhile.
                unsafe {
                    let mut output = DeviceViewMut::<f32>::from_raw(output.address(), 1);
                    sum.reduce_into(view, &mut output, stream)?;
                }
            }
            Ok(())
        })?;
        let sink = engine.sink(Sum::<f32>::new())?;
        let one_by_one = timed(&mut || {
            for view in &views {
                // SAFETY: as above.
                unsafe { sink.push_on(view, stream)? };
            }
            Ok(())
        })?;
        let queued = timed(&mut || {
            // SAFETY: as above.
            unsafe { sink.push_all_on(&views, stream)? };
            Ok(())
        })?;
        sink.finish()?;
        let all = (items * PUSHES).min(BUFFER / 4);
        let at_once = timed(&mut || {
            // SAFETY: as above.
            unsafe {
                let view = DeviceView::<f32>::from_raw(buffer.address(), all as u64);
                sum.reduce_into(&view, &mut output, stream)?;
            }
            Ok(())
        })?;
        for (operation, calls, us) in [
            ("reduce_into", PUSHES, reductions),
            ("push_on", PUSHES, one_by_one),
            ("push_all_on", PUSHES, queued),
            ("reduce_into_all", 1, at_once),
        ] {
            writeln!(text, "device_{name},{operation},{items},{calls},{us:.1}")?;
        }
    }
    Ok(())
}

/// Host memory: reduced, pushed, and copied from pinned memory by the driver alone.
fn host(engine: &Engine, text: &mut String) -> Result<(), Box<dyn Error>> {
    let items = values(1 << 30);
    let bytes = 4usize << 30;
    let pinned_bytes = 1usize << 30;
    let (mut pinned, mut device, mut stream) = (ptr::null_mut(), 0, ptr::null_mut());
    // SAFETY: valid places for the answers.
    unsafe {
        sys::cuMemHostAlloc(&mut pinned, pinned_bytes, 0).done()?;
        sys::cuMemAlloc_v2(&mut device, pinned_bytes).done()?;
        sys::cuStreamCreate(&mut stream, 1).done()?;
        pinned.cast::<u8>().write_bytes(1, pinned_bytes);
    }
    let clock = |work: &mut dyn FnMut() -> Result<(), Box<dyn Error>>| {
        median(|| {
            let start = Instant::now();
            work()?;
            Ok(start.elapsed().as_nanos() as f64 / 1e3)
        })
    };
    let copied = clock(&mut || {
        for _ in 0..bytes / pinned_bytes {
            // SAFETY: both have as many bytes.
            unsafe { sys::cuMemcpyHtoDAsync_v2(device, pinned, pinned_bytes, stream) }.done()?;
        }
        // SAFETY: a live stream.
        unsafe { sys::cuStreamSynchronize(stream) }.done()
    })?;
    // SAFETY: ours.
    unsafe {
        sys::cuMemFreeHost(pinned).done()?;
        sys::cuMemFree_v2(device).done()?;
    }
    let sum = engine.reducer(Sum::<f32>::new())?;
    let reduced = clock(&mut || {
        sum.reduce(&items)?;
        Ok(())
    })?;
    let limited = engine.with_device_bytes(64 << 20).reducer(Sum::<f32>::new())?;
    let with_little = clock(&mut || {
        limited.reduce(&items)?;
        Ok(())
    })?;
    let chunks = clock(&mut || {
        sum.reduce_chunks(items.chunks(1 << 20))?;
        Ok(())
    })?;
    let known = clock(&mut || {
        sum.reduce_chunks_of(items.len() as u64, items.chunks(1 << 20))?;
        Ok(())
    })?;
    for (operation, us) in [
        ("pinned_copy", copied),
        ("reduce", reduced),
        ("reduce_with_64_MiB", with_little),
        ("reduce_chunks_of_4_MiB", chunks),
        ("reduce_chunks_of_4_MiB_known", known),
    ] {
        writeln!(text, "host_4_GiB,{operation},{},1,{us:.1}", items.len())?;
    }
    let part = &items[..1 << 25];
    let short = clock(&mut || {
        sum.reduce(part)?;
        Ok(())
    })?;
    writeln!(text, "host_128_MiB,reduce,{},1,{short:.1}", part.len())?;
    Ok(())
}
