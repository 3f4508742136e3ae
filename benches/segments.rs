//! Reductions of many segments on a GPU: every shape of 2^26 and 2^20 items, every strategy that takes it, by CUDA events
//! on a stream and in graph replay.
//!
//! `cargo bench --features cuda --bench segments`, or `bin/bench-segments` of a bundle; words after `--` choose
//! sections (`rows`, `odd`, `columns`, `irregular`, `mss`, `small`, `ops`). Calls read slots of a 4 GiB buffer in turn.
//! CSV goes to standard output, and to `segments.csv` in the folder that `WARPFOLD_OUT` names. The limit is what
//! `benches/peers/cub.cu` measures in the same call.

use std::{error::Error, fmt::Write as _, io::Write as _, ptr};

use device::{Done, Events, copy, describe, wants};
use warpfold::{
    ArgMax, Compose, Engine, Max, MaxSegmentSum, Mean, Monoid, SegmentPlan, SegmentReducer, Sum,
    cuda::{
        DeviceArray, DeviceView, DeviceViewMut, StreamRef,
        cust::sys::{
            self, CUgraph, CUgraphExec, CUstream, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        },
    },
    plan::segments::{SegmentSettings, SegmentStrategy},
    segments::Layout,
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
const OUTPUT: usize = 1 << 30;

fn main() -> Result<(), Box<dyn Error>> {
    let Some((engine, _context)) = device::gpu()? else { return Ok(()) };
    let mut bench = Bench::new(&engine)?;
    let sum = engine.segments(Sum::<f32>::new())?;
    if wants("rows") {
        for log in 0..=26 {
            bench.regular("rows", "sum_f32", &sum, &Layout::rows(1 << log, 1 << (26 - log)), true)?;
        }
    }
    if wants("small") {
        for log in 0..=20 {
            bench.regular("rows", "sum_f32", &sum, &Layout::rows(1 << log, 1 << (20 - log)), true)?;
        }
    }
    if wants("odd") {
        for n in [3, 5, 7, 17, 31, 33, 63, 100, 129, 150, 201, 257, 333, 511, 1000, 1023, 1025, 4097] {
            bench.regular("odd", "sum_f32", &sum, &Layout::rows((1 << 26) / n, n), true)?;
        }
    }
    if wants("columns") {
        for log in 0..=26 {
            let (n, inner) = (1usize << log, 1usize << (26 - log));
            let outer = Layout::new(&[n, inner], &[inner as isize, 1], &[0])?;
            bench.regular("columns", "sum_f32", &sum, &outer, true)?;
        }
        for inner in [
            5, 6, 7, 12, 24, 33, 40, 48, 60, 100, 129, 200, 257, 290, 301, 447, 511, 601, 667, 750, 1000,
            1001, 1023, 8191,
        ] {
            let n = (1 << 26) / inner;
            let outer = Layout::new(&[n, inner], &[inner as isize, 1], &[0])?;
            bench.regular("columns", "sum_f32", &sum, &outer, true)?;
        }
        for (outer, n, inner) in [
            (64, 1024, 1024),
            (1024, 64, 1024),
            (1024, 1024, 64),
            (4096, 4096, 4),
            (5461, 4096, 3),
            (16384, 2048, 2),
            (16, 1 << 18, 16),
            (64, 8001, 131),
        ] {
            let strides = [(n * inner) as isize, inner as isize, 1];
            let middle = Layout::new(&[outer, n, inner], &strides, &[1])?;
            bench.regular("middle", "sum_f32", &sum, &middle, true)?;
        }
    }
    if wants("mss") {
        let mss = engine.segments(MaxSegmentSum::<i32>::new())?;
        for log in (0..=26).step_by(2) {
            bench.regular("rows", "mss_i32", &mss, &Layout::rows(1 << log, 1 << (26 - log)), true)?;
        }
    }
    if wants("ops") {
        let rows = |log: u32| Layout::rows(1 << log, 1 << (26 - log));
        for log in [4, 10, 16, 20, 22] {
            bench.regular("rows", "max_f32", &engine.segments(Max::<f32>::new())?, &rows(log), false)?;
            bench.regular(
                "rows",
                "argmax_f32",
                &engine.segments(ArgMax::<f32>::new())?,
                &rows(log),
                false,
            )?;
            bench.regular("rows", "mean_f32", &engine.segments(Mean::<f32>::new())?, &rows(log), false)?;
            bench.regular("rows", "sum_f64", &engine.segments(Sum::<f64>::new())?, &rows(log), false)?;
            bench.regular("rows", "sum_i32", &engine.segments(Sum::<i32>::new())?, &rows(log), false)?;
            bench.regular(
                "rows",
                "compose_f32",
                &engine.segments(Compose::<f32>::new())?,
                &rows(log),
                false,
            )?;
        }
    }
    if wants("column_ops") {
        for inner in [16usize, 256, 1 << 14] {
            let n = (1usize << 26) / inner;
            let columns = Layout::new(&[n, inner], &[inner as isize, 1], &[0])?;
            bench.regular("columns", "max_f32", &engine.segments(Max::<f32>::new())?, &columns, true)?;
            bench.regular(
                "columns",
                "argmax_f32",
                &engine.segments(ArgMax::<f32>::new())?,
                &columns,
                true,
            )?;
            bench.regular("columns", "mean_f32", &engine.segments(Mean::<f32>::new())?, &columns, true)?;
            bench.regular("columns", "sum_f64", &engine.segments(Sum::<f64>::new())?, &columns, true)?;
            bench.regular("columns", "sum_i32", &engine.segments(Sum::<i32>::new())?, &columns, true)?;
            bench.regular(
                "columns",
                "sum_f16",
                &engine.segments(Sum::<half::f16>::new())?,
                &columns,
                true,
            )?;
        }
    }
    if wants("irregular") {
        for log in [0, 4, 8, 12, 16, 20, 24] {
            for (name, lengths) in distributions(1 << 26, 1 << log) {
                bench.irregular(name, &sum, &lengths)?;
            }
        }
    }
    bench.report()
}

/// Lengths of `m` segments, `total` in all.
fn distributions(total: usize, m: usize) -> Vec<(&'static str, Vec<usize>)> {
    let mut state = 11u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    // Weights, scaled to the total, what is left over to the last.
    let scaled = |weights: Vec<f64>| {
        let sum: f64 = weights.iter().sum();
        let mut lengths: Vec<usize> =
            weights.iter().map(|weight| (weight / sum * total as f64) as usize).collect();
        let left = total - lengths.iter().sum::<usize>();
        if let Some(last) = lengths.last_mut() {
            *last += left;
        }
        lengths
    };
    let uniform = scaled((0..m).map(|_| 0.5 + random()).collect());
    let power = scaled((0..m).map(|_| random().max(1e-9).powf(-0.8)).collect());
    let mut giant = vec![0; m];
    giant[m / 2] = total;
    let mut alternating = Vec::new();
    let mut left = total;
    while alternating.len() < m && left > 0 {
        let len = if alternating.len() % 2 == 0 { 1 } else { 100_000 }.min(left);
        alternating.push(len);
        left -= len;
    }
    vec![("uniform", uniform), ("power", power), ("giant", giant), ("alternating", alternating)]
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
        // As in `reduce`.
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
        let text = "section,operation,segments,length,strategy,how,stream_us,graph_us\n".to_owned();
        Ok(Bench { engine, buffer, output, stream, events: Events::new()?, text })
    }

    /// Times a shape with the chooser's strategy, and with every other if `all`.
    fn regular<Op: Monoid>(
        &mut self,
        section: &str,
        name: &str,
        reducer: &SegmentReducer<Op>,
        layout: &Layout,
        all: bool,
    ) -> Result<(), Box<dyn Error>> {
        let (m, n) = (layout.segments(), layout.segment_len());
        let strategies = SegmentStrategy::ALL.into_iter().map(Some).filter(|_| all);
        let mut first = Vec::new();
        for strategy in [None].into_iter().chain(strategies) {
            let mut settings = SegmentSettings::default();
            settings.strategy = strategy;
            let reducer = reducer.with_settings(settings);
            let Ok(plan) = reducer.plan(layout) else { continue };
            // What is out of the question: a block each for millions of tiny segments.
            let slow = match plan.strategy {
                SegmentStrategy::Block => m > 1 << 17 && n < 512,
                SegmentStrategy::Large => m * plan.shape.chunks > 1 << 18,
                SegmentStrategy::Gather => true,
                _ => false,
            };
            if strategy.is_some() && slow {
                continue;
            }
            let enqueue = |call: usize, bench: &Bench<'_>| -> Result<(), Box<dyn Error>> {
                // Arrays start where allocations do.
                let bytes = ((m * n) as usize * size_of::<Op::Item>()).next_multiple_of(256);
                let slot = call % (BUFFER / bytes).clamp(1, SLOTS);
                // SAFETY: a slot of the buffer, and the results; both live as long, and nobody looks meanwhile.
                unsafe {
                    let items = DeviceView::<Op::Item>::from_raw(
                        bench.buffer.address() + (slot * bytes) as u64,
                        m * n,
                    );
                    let mut results = DeviceViewMut::<Op::Output>::from_raw(bench.output.address(), m);
                    reducer.enqueue(&items, 0, layout, &mut results, StreamRef::from_raw(bench.stream))?;
                }
                Ok(())
            };
            let stream = self.time_stream(&enqueue)?;
            let warm_up = || reducer.warm_up(layout);
            let graph = self.time_graph(&enqueue, plan.tickets > 0, warm_up)?;
            let how = if strategy.is_some() { "forced" } else { "chosen" };
            let strategy = plan.strategy;
            enqueue(0, self)?;
            let found = self.results(m as usize * size_of::<Op::Output>())?;
            if first.is_empty() {
                first = found;
            } else if found != first {
                return Err(format!("{name} of {m} segments of {n}: {strategy} has other bits").into());
            }
            writeln!(self.text, "{section},{name},{m},{n},{strategy},{how},{stream:.2},{graph:.2}")?;
        }
        Ok(())
    }

    /// The last call's results, or the first of them.
    fn results(&self, bytes: usize) -> Result<Vec<u8>, Box<dyn Error>> {
        let mut found = vec![0u8; bytes.min(1 << 16)];
        // SAFETY: a live stream; as many bytes of the results' buffer.
        unsafe {
            sys::cuStreamSynchronize(self.stream).done()?;
            sys::cuMemcpyDtoH_v2(found.as_mut_ptr().cast(), self.output.address(), found.len()).done()?;
        }
        Ok(found)
    }

    fn irregular(
        &mut self,
        distribution: &str,
        reducer: &SegmentReducer<Sum<f32>>,
        lengths: &[usize],
    ) -> Result<(), Box<dyn Error>> {
        let plan = SegmentPlan::from_lengths(lengths)?;
        let prepared = reducer.prepare(&plan)?;
        let (m, end) = (plan.segments(), plan.end());
        let enqueue = |call: usize, bench: &Bench<'_>| -> Result<(), Box<dyn Error>> {
            let bytes = end as usize * 4;
            let slot = call % (BUFFER / bytes).clamp(1, SLOTS);
            // SAFETY: as above.
            unsafe {
                let items = DeviceView::<f32>::from_raw(bench.buffer.address() + (slot * bytes) as u64, end);
                let mut results = DeviceViewMut::<f32>::from_raw(bench.output.address(), m);
                reducer.enqueue_segments(
                    &items,
                    &prepared,
                    &mut results,
                    StreamRef::from_raw(bench.stream),
                )?;
            }
            Ok(())
        };
        let stream = self.time_stream(&enqueue)?;
        writeln!(self.text, "irregular,sum_f32,{m},{end},{distribution},chosen,{stream:.2},")?;
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
        let first = some(3)?;
        let count = ((2e3 / first) as usize).clamp(2, 60);
        let mut samples = Vec::new();
        for _ in 0..5 {
            samples.push(some(count)?);
        }
        samples.sort_by(f64::total_cmp);
        Ok(samples[samples.len() / 2])
    }

    /// The same in graph replay.
    fn time_graph(
        &self,
        enqueue: &Enqueue<'_>,
        needs_room: bool,
        warm_up: impl Fn() -> Result<(), warpfold::Error>,
    ) -> Result<f64, Box<dyn Error>> {
        if needs_room {
            warm_up()?;
        }
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
        for _ in 0..6 {
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
            let path = std::path::Path::new(&folder).join("segments.csv");
            std::fs::File::create(path)?.write_all(text.as_bytes())?;
        }
        Ok(())
    }
}
