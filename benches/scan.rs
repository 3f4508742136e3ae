//! Scans on a GPU: by CUDA events on a stream and in graph replay.
//!
//! `cargo bench --features cuda --bench scan`, or `bin/bench-scan` of a bundle; words after `--` choose sections (`types`,
//! `forms`, `rows`, `columns`, `segments`). Calls read slots of a 4 GiB buffer in turn and write to one place, as the CUB program's do. CSV goes to
//! standard output, and to `scan.csv` in the folder that `WARPFOLD_OUT` names. The limit is what `benches/peers/cub.cu`
//! measures in the same call; `copy` is a copy on the device of as many bytes.

use std::{error::Error, fmt::Write as _, io::Write as _, ptr};

use device::{Done, Events, copy, describe, wants};
use warpfold::{
    Compose, Engine, Fast, Max, Monoid, Scanner, Sum,
    cuda::{
        DeviceArray, DeviceView, DeviceViewMut, StreamRef,
        cust::sys::{
            self, CUgraph, CUgraphExec, CUstream, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        },
    },
};

#[path = "support/device.rs"]
mod device;

/// Bytes of the buffer whose slots the calls read in turn.
const BUFFER: usize = 4 << 30;
/// The most slots.
const SLOTS: usize = 64;
/// Launches in a captured graph.
const GRAPH: usize = 20;
/// Bytes of the results' buffer.
const OUTPUT: usize = 2 << 30;

fn main() -> Result<(), Box<dyn Error>> {
    let Some((engine, _context)) = device::gpu()? else { return Ok(()) };
    let mut bench = Bench::new(&engine)?;
    let sum = engine.scanner(Sum::<f32>::new())?;
    if wants("types") {
        for log in (10..=28).step_by(2) {
            bench.scan("types", "sum_f32", &sum, log, Shape::Whole)?;
        }
        for log in [20, 26, 28] {
            bench.copy("copy_f32", 4 << log, 1 << log)?;
            bench.scan(
                "types",
                "fast_sum_f32",
                &engine.scanner(Fast(Sum::<f32>::new()))?,
                log,
                Shape::Whole,
            )?;
            bench.scan(
                "types",
                "fast_sum_f64",
                &engine.scanner(Fast(Sum::<f64>::new()))?,
                log,
                Shape::Whole,
            )?;
            bench.scan("types", "sum_i32", &engine.scanner(Sum::<i32>::new())?, log, Shape::Whole)?;
            bench.scan("types", "sum_f64", &engine.scanner(Sum::<f64>::new())?, log, Shape::Whole)?;
            bench.scan("types", "sum_u8_u32", &engine.scanner(Sum::<u8, u32>::new())?, log, Shape::Whole)?;
            bench.scan("types", "max_f32", &engine.scanner(Max::<f32>::new())?, log, Shape::Whole)?;
            bench.scan("types", "compose_f32", &engine.scanner(Compose::<f32>::new())?, log, Shape::Whole)?;
        }
    }
    if wants("forms") {
        for log in [20, 26] {
            bench.scan("forms", "exclusive", &sum.exclusive(), log, Shape::Whole)?;
            bench.scan("forms", "reverse", &sum.reverse(), log, Shape::Whole)?;
            bench.scan("forms", "exclusive_reverse", &sum.exclusive().reverse(), log, Shape::Whole)?;
            bench.scan("forms", "in_place", &sum, log, Shape::InPlace)?;
            bench.scan("forms", "misaligned", &sum, log, Shape::Misaligned)?;
        }
    }
    if wants("rows") {
        for log in 0..=26 {
            bench.scan("rows", "sum_f32", &sum, 26, Shape::Rows { n: 1 << log, inner: 1 })?;
        }
        for n in [3, 5, 7, 17, 31, 33, 63, 100, 129, 500, 1000, 1023, 1025, 4097] {
            bench.scan("rows", "sum_f32", &sum, 26, Shape::Rows { n, inner: 1 })?;
        }
        let (wide, bytes) = (engine.scanner(Sum::<f64>::new())?, engine.scanner(Sum::<u8, u32>::new())?);
        for n in [4, 64, 1024] {
            bench.scan("rows", "sum_f64", &wide, 26, Shape::Rows { n, inner: 1 })?;
            bench.scan("rows", "sum_u8_u32", &bytes, 26, Shape::Rows { n, inner: 1 })?;
        }
    }
    if wants("columns") {
        for (n, inner) in [
            (1 << 3, 1 << 20),
            (1 << 6, 1 << 20),
            (1 << 10, 1 << 16),
            (1 << 13, 1 << 13),
            (1 << 16, 1 << 10),
            (1 << 20, 64),
            (1 << 22, 16),
            (1 << 23, 8),
            (1 << 24, 4),
            (1 << 25, 2),
            (1 << 10, 2),
            (1 << 4, 4),
            (8191, 8193),
        ] {
            bench.scan("columns", "sum_f32", &sum, 26, Shape::Rows { n, inner })?;
        }
        let wide = engine.scanner(Sum::<f64>::new())?;
        bench.scan("columns", "sum_f64", &wide, 26, Shape::Rows { n: 1 << 13, inner: 1 << 13 })?;
    }
    if wants("segments") {
        let integers = engine.scanner(Sum::<i32>::new())?;
        for log in [8, 12, 16, 18, 20, 22, 24] {
            bench.scan("segments", "sum_f32", &sum, 26, Shape::Segments { count: 1 << log })?;
            bench.scan("segments", "sum_i32", &integers, 26, Shape::Segments { count: 1 << log })?;
        }
        let one = 1 << 26;
        bench.scan("segments", "one_long", &sum, 26, Shape::Long { n: one - 1000 })?;
        bench.scan("segments", "half_long", &sum, 26, Shape::Long { n: one / 2 })?;
    }
    bench.report()
}

/// What lies where.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Whole,
    InPlace,
    Misaligned,
    Rows {
        n: u64,
        inner: u64,
    },
    /// So many of random lengths.
    Segments {
        count: usize,
    },
    /// One of so many items, behind it segments of one item each.
    Long {
        n: u64,
    },
}

impl Shape {
    /// Where segments of so many items begin and end, if that is what it is.
    fn offsets(self, items: u64) -> Option<Vec<u64>> {
        match self {
            Shape::Segments { count } => {
                let mut state = 5u64;
                let mut offsets: Vec<u64> = (1..count)
                    .map(|_| {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        (state >> 32) % items
                    })
                    .chain([0, items])
                    .collect();
                offsets.sort_unstable();
                Some(offsets)
            }
            Shape::Long { n } => Some([0].into_iter().chain(n..=items).collect()),
            _ => None,
        }
    }
}

/// Enqueues call number so many.
type Enqueue<'a> = dyn Fn(usize, &Bench<'_>) -> Result<(), Box<dyn Error>> + 'a;

/// What the measurements share.
struct Bench<'a> {
    engine: &'a Engine,
    buffer: DeviceArray<f32>,
    output: DeviceArray<f32>,
    stream: CUstream,
    events: Events,
    text: String,
}

impl<'a> Bench<'a> {
    fn new(engine: &'a Engine) -> Result<Self, Box<dyn Error>> {
        let mut state = 7u64;
        let block: Vec<f32> = (0..1 << 24)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 48) as f32 / (1 << 15) as f32 - 1.0
            })
            .collect();
        // SAFETY: filled right below, before anything reads it; results are written before they are read.
        let (buffer, output) = unsafe {
            (DeviceArray::<f32>::uninit(engine, BUFFER / 4)?, DeviceArray::<f32>::uninit(engine, OUTPUT / 4)?)
        };
        for start in (0..BUFFER / 4).step_by(block.len()) {
            // SAFETY: a part of the buffer, which nothing else uses.
            unsafe { copy(buffer.address() + 4 * start as u64, &block)? };
        }
        let mut stream = ptr::null_mut();
        // SAFETY: a valid place for the answer; a context is current.
        unsafe { sys::cuStreamCreate(&mut stream, 1) }.done()?;
        let text = "section,operation,log2_n,n,inner,stream_us,graph_us\n".to_owned();
        Ok(Bench { engine, buffer, output, stream, events: Events::new()?, text })
    }

    fn scan<Op: Monoid>(
        &mut self,
        section: &str,
        name: &str,
        scanner: &Scanner<Op>,
        log: u32,
        shape: Shape,
    ) -> Result<(), Box<dyn Error>> {
        let whole = 1u64 << log;
        // Whole lines only.
        let items =
            if let Shape::Rows { n, inner } = shape { whole / (n * inner) * (n * inner) } else { whole };
        let offsets = shape.offsets(items);
        let offsets = offsets.map(|offsets| DeviceArray::from_slice(self.engine, &offsets)).transpose()?;
        let enqueue = |call: usize, bench: &Bench<'_>| -> Result<(), Box<dyn Error>> {
            let bytes = items as usize * size_of::<Op::Item>();
            let slot = call % (BUFFER / bytes.max(256)).clamp(1, SLOTS);
            let skip = if shape == Shape::Misaligned { 1 } else { 0 };
            let from = bench.buffer.address() + (slot * bytes) as u64 + skip * size_of::<Op::Item>() as u64;
            let to = if shape == Shape::InPlace { from } else { bench.output.address() };
            let (n, inner) = match shape {
                Shape::Rows { n, inner } => (n, inner),
                _ => (items - skip, 1),
            };
            // SAFETY: a slot of the buffer, and the results; both live as long, and nobody looks meanwhile.
            unsafe {
                let input = DeviceView::<Op::Item>::from_raw(from, items - skip);
                let mut results = DeviceViewMut::<Op::Output>::from_raw(to, items - skip);
                let stream = StreamRef::from_raw(bench.stream);
                match &offsets {
                    Some(offsets) => {
                        scanner.enqueue_segments(&input, offsets, None, &mut results, stream)?;
                    }
                    None => scanner.enqueue_axis(&input, n, inner, &mut results, stream)?,
                }
            }
            Ok(())
        };
        let stream = self.time_stream(&enqueue)?;
        scanner.warm_up(items + (1 << 14))?;
        let graph = match shape {
            Shape::Rows { .. } | Shape::Segments { .. } | Shape::Long { .. } => f64::NAN,
            _ => self.time_graph(&enqueue)?,
        };
        let (n, inner) = match shape {
            Shape::Rows { n, inner } => (n, inner),
            // How many segments there are stands for the length.
            Shape::Segments { count } => (count as u64, 1),
            Shape::Long { n } => (n, 1),
            _ => (items, 1),
        };
        writeln!(self.text, "{section},{name},{log},{n},{inner},{stream:.2},{graph:.2}")?;
        Ok(())
    }

    /// A copy of so many bytes on the device.
    fn copy(&mut self, name: &str, bytes: usize, n: usize) -> Result<(), Box<dyn Error>> {
        let enqueue = |call: usize, bench: &Bench<'_>| -> Result<(), Box<dyn Error>> {
            let slot = call % (BUFFER / bytes).clamp(1, SLOTS);
            let from = bench.buffer.address() + (slot * bytes) as u64;
            // SAFETY: a slot of the buffer, and the results' buffer.
            unsafe { sys::cuMemcpyDtoDAsync_v2(bench.output.address(), from, bytes, bench.stream) }.done()?;
            Ok(())
        };
        let stream = self.time_stream(&enqueue)?;
        let graph = self.time_graph(&enqueue)?;
        writeln!(self.text, "types,{name},{},{n},1,{stream:.2},{graph:.2}", n.ilog2())?;
        Ok(())
    }

    /// The median time of a call, in microseconds, of calls one behind the other.
    fn time_stream(&self, enqueue: &Enqueue<'_>) -> Result<f64, Box<dyn Error>> {
        let mut call = 0;
        let mut some = |count: usize| -> Result<f64, Box<dyn Error>> {
            self.events.record(0, self.stream);
            for _ in 0..count {
                enqueue(call, self)?;
                call += 1;
            }
            self.events.record(1, self.stream);
            Ok(self.events.nanoseconds() / 1e3 / count as f64)
        };
        some(3)?;
        let first = some(3)?;
        let count = ((8e3 / first) as usize).clamp(5, 1000);
        let mut samples = Vec::new();
        for _ in 0..7 {
            samples.push(some(count)?);
        }
        samples.sort_by(f64::total_cmp);
        Ok(samples[samples.len() / 2])
    }

    /// The same in graph replay.
    fn time_graph(&self, enqueue: &Enqueue<'_>) -> Result<f64, Box<dyn Error>> {
        let (mut graph, mut executable): (CUgraph, CUgraphExec) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: a live stream, valid places for the answers.
        unsafe {
            sys::cuStreamBeginCapture_v2(self.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).done()?;
            for call in 0..GRAPH {
                enqueue(call, self)?;
            }
            sys::cuStreamEndCapture(self.stream, &mut graph).done()?;
            sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0).done()?;
        }
        let mut samples = Vec::new();
        for _ in 0..10 {
            self.events.record(0, self.stream);
            // SAFETY: a live executable and stream.
            unsafe { sys::cuGraphLaunch(executable, self.stream) }.done()?;
            self.events.record(1, self.stream);
            samples.push(self.events.nanoseconds() / 1e3 / GRAPH as f64);
        }
        // SAFETY: both are ours, and the stream has been waited for.
        unsafe {
            sys::cuGraphExecDestroy(executable).done()?;
            sys::cuGraphDestroy(graph).done()?;
        }
        samples.sort_by(f64::total_cmp);
        Ok(samples[samples.len() / 2])
    }

    fn report(&self) -> Result<(), Box<dyn Error>> {
        let text = format!("# {}; {}\n{}", describe()?, self.engine.info(), self.text);
        print!("{text}");
        if let Some(folder) = std::env::var_os("WARPFOLD_OUT") {
            let path = std::path::Path::new(&folder).join("scan.csv");
            std::fs::File::create(path)?.write_all(text.as_bytes())?;
        }
        Ok(())
    }
}
