//! Reductions of one array on a GPU: time by CUDA events, on a stream and in graph replay.
//!
//! `cargo bench --features cuda --bench reduce`, or `./run.sh bench` in a bundle. Each call reads the next slot of a
//! 4 GiB buffer, so that from 2^20 `f32` on its input has left the L2 cache again; the rival program
//! `benches/peers/cub.cu` does the same and is run in the same call. Beside criterion's reports the medians go to
//! standard output as CSV, and to `reduce.csv` in the folder that `WARPFOLD_OUT` names.

use std::{cell::RefCell, error::Error, io::Write, ptr, time::Duration};

use criterion::{
    Criterion, Throughput,
    measurement::{Measurement, ValueFormatter},
};
use warpfold::{
    Any, ArgMax, Compose, Dot, DoubleDouble, Engine, Max, MaxSegmentSum, Min, Monoid, Plain, Reducer, Sum,
    cuda::{
        DeviceArray, DeviceView, DeviceViewMut, StreamRef,
        cust::sys::{
            self, CUgraph, CUgraphExec, CUstream, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        },
    },
    monoid::fused::Parts2,
    source::{Array, Over, Position, Zip2},
};

use device::{Done, Events, copy, describe};
use support::matrix;

#[path = "support/device.rs"]
mod device;

#[path = "../tests/support"]
#[allow(dead_code, reason = "benches have items of their own")]
mod support {
    pub mod matrix;
    pub mod random;
}

/// Bytes of the buffer whose slots the calls read in turn.
const BUFFER: usize = 4 << 30;
/// The most slots.
const SLOTS: usize = 64;
/// Launches in a captured graph.
const GRAPH: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let Some((engine, _context)) = device::gpu()? else { return Ok(()) };
    let mut criterion = Criterion::default()
        .with_measurement(Events::new()?)
        .warm_up_time(Duration::from_millis(60))
        .measurement_time(Duration::from_millis(250))
        .sample_size(15)
        .without_plots()
        .configure_from_args();
    let bench = Bench::new(&engine)?;

    let sum = engine.reducer(Sum::<f32>::new())?;
    for log in (10..=30).step_by(2) {
        bench.stream(&mut criterion, "sum_f32", &sum, 1 << log)?;
        bench.graph(&mut criterion, "sum_f32", &sum, 1 << log)?;
    }
    // Short arrays by operators that have one kernel for all but long ones.
    let (argmax, any) = (engine.reducer(ArgMax::<f32>::new())?, engine.reducer(Any::<f32>::new())?);
    for log in [5, 10, 14, 20] {
        bench.stream(&mut criterion, "argmax_f32", &argmax, 1 << log)?;
        bench.graph(&mut criterion, "argmax_f32", &argmax, 1 << log)?;
        bench.stream(&mut criterion, "any_f32", &any, 1 << log)?;
        bench.graph(&mut criterion, "any_f32", &any, 1 << log)?;
    }
    // Operators of one's own kind: order that matters, several at once.
    macro_rules! at {
        ($($name:literal: $op:expr, $log:expr;)*) => {$(
            let reducer = engine.reducer($op)?;
            bench.stream(&mut criterion, $name, &reducer, 1 << $log)?;
            bench.graph(&mut criterion, $name, &reducer, 1 << $log)?;
        )*};
    }
    at! {
        "compose_f32": Compose::<f32>::new(), 26;
        "mss_i32": MaxSegmentSum::<i32>::new(), 26;
        "sum_f32": Sum::<f32>::new(), 28;
        "summinmax_f32": (Sum::<f32>::new(), Min::<f32>::new(), Max::<f32>::new()), 28;
        "sum_f32_exact": Sum::<f32, DoubleDouble>::new(), 28;
    }
    bench.every_operator(&mut criterion)?;
    criterion.final_summary();
    bench.report()
}

/// What the measurements share.
struct Bench<'a> {
    engine: &'a Engine,
    buffer: DeviceArray<f32>,
    output: u64,
    _outputs: DeviceArray<f64>,
    stream: CUstream,
    rows: RefCell<Vec<Row>>,
}

/// One measurement.
struct Row {
    name: String,
    item_bytes: usize,
    n: usize,
    how: &'static str,
    /// Nanoseconds a call.
    samples: Vec<f64>,
}

impl<'a> Bench<'a> {
    fn new(engine: &'a Engine) -> Result<Self, Box<dyn Error>> {
        // Values in [-1, 1) with 16 random bits, as in the rival's buffer: what the bits are bears on the memory's speed.
        // Pairs of them are finite `f64` too.
        let mut state = 7u64;
        let block: Vec<f32> = (0..1 << 24)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 48) as f32 / (1 << 15) as f32 - 1.0
            })
            .collect();
        // SAFETY: filled right below, before anything reads it.
        let mut buffer = unsafe { DeviceArray::<f32>::uninit(engine, BUFFER / 4)? };
        let address = buffer.view_mut().address();
        for start in (0..BUFFER / 4).step_by(block.len()) {
            // SAFETY: a part of the buffer, which nothing else uses.
            unsafe { copy(address + 4 * start as u64, &block)? };
        }
        let mut outputs = DeviceArray::from_slice(engine, &[0f64; 4])?;
        let mut stream = ptr::null_mut();
        // SAFETY: a valid place for the answer; a context is current.
        unsafe { sys::cuStreamCreate(&mut stream, 1) }.done()?;
        let output = outputs.view_mut().address();
        let rows = RefCell::new(Vec::new());
        Ok(Bench { engine, buffer, output, _outputs: outputs, stream, rows })
    }

    /// Enqueues reduction number `call`.
    fn enqueue<Op: Monoid>(
        &self,
        reducer: &Reducer<Op>,
        n: usize,
        call: usize,
    ) -> Result<(), warpfold::Error> {
        let bytes = n * size_of::<Op::Item>();
        let slots = (BUFFER / bytes.max(256)).clamp(1, SLOTS);
        let address = self.buffer.address() + (call % slots * bytes.max(256)) as u64;
        // SAFETY: a slot of the buffer and the output live as long as this; nothing writes the one, and nobody reads
        // the other before the stream is waited for.
        unsafe {
            let items = DeviceView::<Op::Item>::from_raw(address, n as u64);
            let mut output = DeviceViewMut::<Op::Output>::from_raw(self.output, 1);
            reducer.reduce_into(&items, &mut output, StreamRef::from_raw(self.stream))
        }
    }

    /// The same of an operator that reads by itself, over positions.
    fn positions<Op: Monoid<Item = Position>>(
        &self,
        reducer: &Reducer<Op>,
        n: usize,
    ) -> Result<(), warpfold::Error> {
        // SAFETY: positions have no bytes; the output lives as long as this, and nobody reads it before the stream is waited
        // for.
        unsafe {
            let items = DeviceView::<Position>::from_raw(self.output, n as u64);
            let mut output = DeviceViewMut::<Op::Output>::from_raw(self.output, 1);
            reducer.reduce_into(&items, &mut output, StreamRef::from_raw(self.stream))
        }
    }

    fn stream<Op: Monoid>(
        &self,
        criterion: &mut Criterion<Events>,
        name: &str,
        reducer: &Reducer<Op>,
        n: usize,
    ) -> Result<(), Box<dyn Error>> {
        self.enqueue(reducer, n, 0)?;
        let mut call = 0;
        self.measure::<Op>(criterion, name, n, "stream", |_| {
            call += 1;
            self.enqueue(reducer, n, call).expect("what was enqueued before");
            1
        });
        Ok(())
    }

    fn graph<Op: Monoid>(
        &self,
        criterion: &mut Criterion<Events>,
        name: &str,
        reducer: &Reducer<Op>,
        n: usize,
    ) -> Result<(), Box<dyn Error>> {
        reducer.warm_up(n as u64)?;
        let (mut graph, mut executable): (CUgraph, CUgraphExec) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: a live stream, valid places for the answers.
        unsafe {
            sys::cuStreamBeginCapture_v2(self.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).done()?;
            for call in 0..GRAPH {
                self.enqueue(reducer, n, call)?;
            }
            sys::cuStreamEndCapture(self.stream, &mut graph).done()?;
            sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0).done()?;
        }
        self.measure::<Op>(criterion, name, n, "graph", |stream| {
            // SAFETY: a live executable and stream.
            unsafe { sys::cuGraphLaunch(executable, stream) }.done().expect("what was launched before");
            GRAPH
        });
        // SAFETY: both are ours, and the stream has been waited for.
        unsafe {
            sys::cuGraphExecDestroy(executable).done()?;
            sys::cuGraphDestroy(graph).done()?;
        }
        Ok(())
    }

    /// `body` enqueues once and says how many reductions that were.
    fn measure<Op: Monoid>(
        &self,
        criterion: &mut Criterion<Events>,
        name: &str,
        n: usize,
        how: &'static str,
        mut body: impl FnMut(CUstream) -> usize,
    ) {
        let mut samples = Vec::new();
        let mut group = criterion.benchmark_group(format!("{name}/{how}"));
        group.throughput(Throughput::Bytes((n * size_of::<Op::Item>()) as u64));
        group.bench_function(n.to_string(), |bencher| {
            bencher.iter_custom(|iterations| {
                let events = Events::new().expect("a context is current");
                let (mut calls, mut nanoseconds) = (0, 0.0);
                if how == "graph" {
                    // Each replay by itself, as the rival's program does.
                    for _ in 0..iterations {
                        events.record(0, self.stream);
                        let replayed = body(self.stream);
                        events.record(1, self.stream);
                        let replay = events.nanoseconds();
                        samples.push(replay / replayed as f64);
                        calls += replayed;
                        nanoseconds += replay;
                    }
                } else {
                    events.record(0, self.stream);
                    for _ in 0..iterations {
                        calls += body(self.stream);
                    }
                    events.record(1, self.stream);
                    nanoseconds = events.nanoseconds();
                    samples.push(nanoseconds / calls as f64);
                }
                nanoseconds / calls as f64 * iterations as f64
            });
        });
        group.finish();
        // Criterion's first samples warm up, with few calls each.
        let samples = samples.split_off(samples.len() / 3);
        if !samples.is_empty() {
            let item_bytes = size_of::<Op::Item>();
            self.rows.borrow_mut().push(Row { name: name.to_owned(), item_bytes, n, how, samples });
        }
    }

    /// Every operator and type over 1 GiB.
    fn every_operator(&self, criterion: &mut Criterion<Events>) -> Result<(), Box<dyn Error>> {
        let mut every = Every { bench: self, criterion, outcome: Ok(()) };
        matrix::every(&mut every);
        every.outcome
    }

    fn report(&self) -> Result<(), Box<dyn Error>> {
        let mut text = format!("# {}\n", describe()?);
        text += "operation,length,item_bytes,launch,microseconds,gigabytes_per_second\n";
        for Row { name, item_bytes, n, how, samples } in self.rows.borrow_mut().iter_mut() {
            samples.sort_by(f64::total_cmp);
            let median = samples[samples.len() / 2];
            let rate = (*n * *item_bytes) as f64 / median;
            text += &format!("{name},{n},{item_bytes},{how},{:.3},{rate:.1}\n", median / 1e3);
        }
        print!("{text}");
        if let Some(folder) = std::env::var_os("WARPFOLD_OUT") {
            let path = std::path::Path::new(&folder).join("reduce.csv");
            std::fs::File::create(path)?.write_all(text.as_bytes())?;
        }
        Ok(())
    }
}

/// Times what it visits.
struct Every<'a, 'b> {
    bench: &'a Bench<'b>,
    criterion: &'a mut Criterion<Events>,
    outcome: Result<(), Box<dyn Error>>,
}

impl matrix::Visit for Every<'_, '_> {
    fn op<Op: Monoid + Default>(&mut self, name: &'static str) {
        let run = |criterion: &mut Criterion<Events>| {
            let reducer = self.bench.engine.reducer(Op::default())?;
            self.bench.stream(criterion, name, &reducer, (1 << 30) / size_of::<Op::Item>())
        };
        if self.outcome.is_ok() {
            self.outcome = run(self.criterion);
        }
    }

    fn dot<T: Plain>(&mut self, name: &'static str)
    where
        Dot<T>: Monoid<Item = Parts2<T, T>>,
    {
        let run = |criterion: &mut Criterion<Events>| {
            // Two arrays of half the bytes each, one behind the other.
            let n = (1 << 29) / size_of::<T>();
            let reducers = [0, 1, 2, 3].map(|slot| {
                let [x, y] =
                    [0, 1 << 29].map(|at| Array::<T>::at(self.bench.buffer.address() + (slot << 30) + at));
                // SAFETY: parts of the buffer, which lives as long and is written by nobody.
                self.bench.engine.reducer(unsafe { Over::new(Dot::<T>::new(), Zip2::new(x, y)) })
            });
            let [a, b, c, d] = reducers;
            let reducers = [a?, b?, c?, d?];
            self.bench.positions(&reducers[0], n)?;
            let mut call = 0;
            self.bench.measure::<Dot<T>>(criterion, name, n, "stream", |_| {
                call += 1;
                self.bench.positions(&reducers[call % 4], n).expect("what was enqueued before");
                1
            });
            Ok(())
        };
        if self.outcome.is_ok() {
            self.outcome = run(self.criterion);
        }
    }
}

impl Measurement for Events {
    type Intermediate = ();
    /// Nanoseconds.
    type Value = f64;
    fn start(&self) {
        self.record(0, ptr::null_mut());
    }
    fn end(&self, (): ()) -> f64 {
        self.record(1, ptr::null_mut());
        self.nanoseconds()
    }
    fn add(&self, a: &f64, b: &f64) -> f64 {
        a + b
    }
    fn zero(&self) -> f64 {
        0.0
    }
    fn to_f64(&self, value: &f64) -> f64 {
        *value
    }
    fn formatter(&self) -> &dyn ValueFormatter {
        &Microseconds
    }
}

struct Microseconds;

impl ValueFormatter for Microseconds {
    fn scale_values(&self, _typical: f64, values: &mut [f64]) -> &'static str {
        values.iter_mut().for_each(|value| *value /= 1e3);
        "us"
    }
    fn scale_throughputs(&self, _typical: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        let bytes = match *throughput {
            Throughput::Bytes(bytes) => bytes as f64,
            _ => return "",
        };
        values.iter_mut().for_each(|value| *value = bytes / *value);
        "GB/s"
    }
    fn scale_for_machines(&self, _values: &mut [f64]) -> &'static str {
        "ns"
    }
}
