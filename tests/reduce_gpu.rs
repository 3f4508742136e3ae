//! The GPU gives the CPU's bits, whatever the size, the start, the stream, the run, the graph, the facts, the thread;
//! and what pending work uses outlives it.

use std::{ffi::c_void, ptr, time::Instant};

use warpfold::{
    BUILTINS, Engine, Error, Input, Max, Min, Monoid, Product, Reducer, Sum, Value,
    cuda::{
        DeviceArray, DeviceView, DeviceViewMut, StreamRef,
        cust::{
            context::Context,
            device::Device,
            memory::{CopyDestination, DeviceBox, DeviceBuffer},
            stream::{Stream, StreamFlags},
            sys::{
                self, CUgraph, CUgraphExec, CUstream,
                CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            },
        },
    },
    module::{ImageKind, Kernels, Module},
    plan::DeviceFacts,
};

use crate::support::{Bits, Random, apart, gpu, matrix::Data};

/// Items before and after.
const GUARD: usize = 32;

/// An item type, and what a reduction must never read, for it would change every result, and never overwrite.
trait Guarded: Data + Bits {
    const GUARD: Self;
}

macro_rules! guarded {
    ($($type:ty: $guard:expr;)*) => {$(
        impl Guarded for $type {
            const GUARD: $type = $guard;
        }
    )*};
}
guarded! {
    i32: 0x5a5a_5a5a;
    u32: 0x5a5a_5a5a;
    f32: 1e30;
    f64: 1e30;
}

/// Ordinary items, the same for the same seed.
fn items<T: Guarded>(n: usize, seed: u64) -> Vec<T> {
    let mut random = Random::new(seed);
    (0..n).map(|_| T::ordinary(&mut random)).collect()
}

fn upload<T: Guarded>(engine: &Engine, items: &[T]) -> DeviceArray<T> {
    let mut all = vec![T::GUARD; GUARD];
    all.extend(items);
    all.extend([T::GUARD; GUARD]);
    DeviceArray::from_slice(engine, &all).unwrap()
}

fn part<T: Guarded>(array: &DeviceArray<T>, start: usize, len: usize) -> DeviceView<'_, T> {
    let start = (GUARD + start) as u64;
    array.view().slice(start..start + len as u64).unwrap()
}

fn bits<Op: Monoid>(reducer: &Reducer<Op>, input: &impl Input<Op::Item>) -> Option<u64>
where
    Value<Op>: Bits,
{
    reducer.reduce(input).unwrap().bits()
}

#[test]
fn host_slices_give_the_same_bits() {
    let Some(engine) = gpu() else { return };
    let items = items::<f64>(20_000_000, 3);
    let (cpu, gpu) =
        (Engine::cpu().reducer(Sum::<f64>::new()).unwrap(), engine.reducer(Sum::<f64>::new()).unwrap());
    // Beyond what is kept of the input buffer, and below again.
    for n in [0, 1, 1000, 100_000, items.len(), 77] {
        assert_eq!(bits(&gpu, &&items[..n]), bits(&cpu, &&items[..n]), "{n} items");
        assert_eq!(bits(&gpu, &&items[n / 3..n]), bits(&cpu, &&items[n / 3..n]), "{n} items");
    }
}

#[test]
fn runs_and_facts_do_not_change_bits() {
    let Some(engine) = gpu() else { return };
    let items = items::<f32>(3_000_001, 4);
    let array = upload(&engine, &items);
    let cpu = Engine::cpu().reducer(Sum::<f32>::new()).unwrap();
    for n in [1000, 8193, 200_000, 3_000_001] {
        let expected = bits(&cpu, &&items[..n]);
        let gpu = engine.reducer(Sum::<f32>::new()).unwrap();
        for run in 0..200 {
            assert_eq!(bits(&gpu, &part(&array, 0, n)), expected, "run {run} of {n} items");
        }
        for multiprocessors in [1, 20, 80, 132, 144] {
            for threads in [1024, 1536, 2048] {
                let mut facts = DeviceFacts::H100;
                facts.multiprocessors = multiprocessors;
                facts.max_threads_per_multiprocessor = threads;
                let forged = engine.with_facts(facts).reducer(Sum::<f32>::new()).unwrap();
                assert_eq!(bits(&forged, &part(&array, 0, n)), expected, "{multiprocessors} x {threads}");
            }
        }
    }
}

/// A stream of cust's, with the primary context current in this thread as cust wants it.
fn stream() -> (Context, Stream) {
    let context = Context::new(Device::get_device(0).unwrap()).unwrap();
    (context, Stream::new(StreamFlags::DEFAULT, None).unwrap())
}

#[test]
fn streams_have_workspaces_of_their_own() {
    let Some(engine) = gpu() else { return };
    // Trimming waits for the device, too.
    let _apart = apart();
    let n = 2_000_003;
    let items = items::<f64>(n, 5);
    let array = upload(&engine, &items);
    let (_context, first) = stream();
    let streams: Vec<Stream> =
        [first].into_iter().chain((0..7).map(|_| Stream::new(StreamFlags::DEFAULT, None).unwrap())).collect();
    let (sum, max) = (engine.reducer(Sum::<f64>::new()).unwrap(), engine.reducer(Max::<f64>::new()).unwrap());
    let cpu = Engine::cpu();
    let rounds = 20;
    let mut outputs: Vec<_> = (0..streams.len())
        .map(|_| DeviceArray::from_slice(&engine, &vec![0f64; 2 * rounds]).unwrap())
        .collect();
    for round in 0..rounds {
        for (k, stream) in streams.iter().enumerate() {
            let view = part(&array, k, n - 10 * k);
            let address = outputs[k].view_mut().address() + 16 * round as u64;
            // SAFETY: two places of the outputs each, left alone until the streams have been waited for.
            unsafe {
                sum.reduce_into(&view, &mut DeviceViewMut::from_raw(address, 1), stream).unwrap();
                max.reduce_into(&view, &mut DeviceViewMut::from_raw(address + 8, 1), stream).unwrap();
            }
        }
    }
    for (k, stream) in streams.iter().enumerate() {
        stream.synchronize().unwrap();
        let slice = &items[k..k + n - 10 * k];
        let sum = cpu.reducer(Sum::<f64>::new()).unwrap().reduce(slice).unwrap();
        let max = cpu.reducer(Max::<f64>::new()).unwrap().reduce(slice).unwrap().unwrap();
        let found: Vec<u64> = outputs[k].to_vec().unwrap().iter().map(|v| v.to_bits()).collect();
        assert_eq!(found, [sum.to_bits(), max.to_bits()].repeat(rounds), "stream {k}");
    }
    let on = sum.reduce_on(&part(&array, 0, n), &streams[0]).unwrap();
    assert_eq!(on.bits(), cpu.reducer(Sum::<f64>::new()).unwrap().reduce(&items).unwrap().bits());
    engine.trim().unwrap();
    assert_eq!(
        bits(&sum, &part(&array, 0, n)),
        cpu.reducer(Sum::<f64>::new()).unwrap().reduce(&items).unwrap().bits()
    );
}

#[test]
fn cust_memory_and_contexts_are_taken_as_they_are() {
    if gpu().is_none() {
        return;
    }
    let _apart = apart();
    let (context, stream) = stream();
    let engine = Engine::from_context(&context).unwrap();
    let items = items::<f32>(100_000, 6);
    let buffer = DeviceBuffer::from_slice(&items).unwrap();
    let sum = engine.reducer(Sum::<f32>::new()).unwrap();
    let cpu = Engine::cpu().reducer(Sum::<f32>::new()).unwrap();
    assert_eq!(bits(&sum, &buffer), cpu.reduce(&items).unwrap().bits());
    assert_eq!(bits(&sum, &buffer.index(100..70_001)), cpu.reduce(&items[100..70_001]).unwrap().bits());
    let mut total = DeviceBox::new(&0f32).unwrap();
    engine.scope(&stream, |scope| scope.reduce_into(&sum, &buffer, &mut total)).unwrap().unwrap();
    assert_eq!(total.as_host_value().unwrap().bits(), cpu.reduce(&items).unwrap().bits());
    let mut totals = DeviceBuffer::from_slice(&[0f32, 7.0]).unwrap();
    engine.scope(&stream, |scope| scope.reduce_into(&sum, buffer.as_slice(), &mut totals)).unwrap().unwrap();
    let mut host = [0f32; 2];
    totals.copy_to(&mut host).unwrap();
    assert_eq!(
        (host[0].bits(), host[1]),
        (cpu.reduce(&items).unwrap().bits(), 7.0),
        "only the first is written"
    );
    // The engine outlives the program's handle of the context.
    drop((buffer, total, totals, stream));
    drop(context);
    assert_eq!(bits(&sum, &items), cpu.reduce(&items).unwrap().bits());
}

/// A non-blocking stream: other tests use the default stream (cust's copies do), which would otherwise belong to a
/// capture.
struct Apart {
    raw: CUstream,
    _context: Context,
}

impl Apart {
    fn new() -> Apart {
        let context = Context::new(Device::get_device(0).unwrap()).unwrap();
        let mut raw = ptr::null_mut();
        // SAFETY: a valid place for the answer; a context is current.
        unsafe { sys::cuStreamCreate(&mut raw, 1).ok() };
        Apart { raw, _context: context }
    }

    fn stream(&self) -> StreamRef<'_> {
        // SAFETY: lives as long as this does.
        unsafe { StreamRef::from_raw(self.raw) }
    }

    fn synchronize(&self) {
        // SAFETY: a live stream.
        unsafe { sys::cuStreamSynchronize(self.raw).ok() };
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        // SAFETY: ours.
        unsafe { sys::cuStreamDestroy_v2(self.raw).ok() };
    }
}

/// A captured graph, ready to run.
struct Graph {
    graph: CUgraph,
    executable: CUgraphExec,
}

impl Graph {
    /// Captures what `body` enqueues on the stream.
    fn capture(stream: CUstream, body: impl FnOnce()) -> Graph {
        let (mut graph, mut executable) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: a live stream, valid places for the answers.
        unsafe {
            sys::cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).ok();
            body();
            sys::cuStreamEndCapture(stream, &mut graph).ok();
            sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0).ok();
        }
        Graph { graph, executable }
    }

    fn launch(&self, stream: CUstream) {
        // SAFETY: a live executable and stream.
        unsafe { sys::cuGraphLaunch(self.executable, stream).ok() };
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: both are ours.
        unsafe {
            sys::cuGraphExecDestroy(self.executable).ok();
            sys::cuGraphDestroy(self.graph).ok();
        }
    }
}

trait Ok {
    fn ok(self);
}

impl Ok for sys::CUresult {
    #[track_caller]
    fn ok(self) {
        assert_eq!(self, sys::CUresult::CUDA_SUCCESS);
    }
}

#[test]
fn graphs_replay_with_the_same_bits_and_own_their_workspace() {
    let Some(engine) = gpu() else { return };
    let _apart = apart();
    let stream = Apart::new();
    let raw = stream.raw;
    let cpu = Engine::cpu().reducer(Sum::<f32>::new()).unwrap();
    let sum = engine.reducer(Sum::<f32>::new()).unwrap();
    for n in [100, 8193, 1_000_000, 5_000_000] {
        let first = items::<f32>(n, 8);
        let second = items::<f32>(n, 9);
        let mut array = DeviceArray::from_slice(&engine, &first).unwrap();
        let mut output = DeviceArray::from_slice(&engine, &[0f32; 2]).unwrap();
        sum.warm_up(n as u64).unwrap();
        let address = output.view_mut().address();
        let graph = Graph::capture(raw, || {
            for k in 0..2 {
                // SAFETY: input and output live as long as the graph, and are left alone while it runs.
                unsafe {
                    let mut place = DeviceViewMut::<f32>::from_raw(address + 4 * k, 1);
                    sum.reduce_into(&array, &mut place, stream.stream()).unwrap();
                }
            }
        });
        for (items, runs) in [(&first, 20), (&second, 3)] {
            array.copy_from_slice(items).unwrap();
            let expected = cpu.reduce(items).unwrap().bits();
            for run in 0..runs {
                output.copy_from_slice(&[0.0; 2]).unwrap();
                graph.launch(raw);
                // Beside the graph, on the same data: the stream's own workspace.
                assert_eq!(bits(&sum, &array), expected);
                stream.synchronize();
                let found = output.to_vec().unwrap();
                assert_eq!(
                    (found[0].bits(), found[1].bits()),
                    (expected, expected),
                    "run {run} of {n} items"
                );
            }
        }
    }
}

#[test]
fn a_capture_without_a_workspace_says_warm_up_first() {
    if gpu().is_none() {
        return;
    }
    let _apart = apart();
    let stream = Apart::new();
    // Of its own: it ends before the graph.
    let engine = Engine::cuda(0).unwrap();
    let sum = engine.reducer(Sum::<f32>::new()).unwrap();
    let cpu = Engine::cpu().reducer(Sum::<f32>::new()).unwrap();
    let items = items::<f32>(100_000, 10);
    let array = DeviceArray::from_slice(&engine, &items).unwrap();
    let mut output = DeviceArray::from_slice(&engine, &[0f32]).unwrap();
    // Warm on the stream, which is not enough: the graph needs one of its own.
    // SAFETY: left alone until waited for.
    unsafe { sum.reduce_into(&array, &mut output, stream.stream()).unwrap() };
    stream.synchronize();
    let bytes = sum.plan(items.len() as u64).unwrap().workspace_bytes;
    let workspace = sum.workspace(items.len() as u64).unwrap();
    let small = engine.reducer(Sum::<f32>::new()).unwrap().workspace(1).unwrap();
    assert!(small.bytes() >= bytes, "a workspace has a least size");
    let graph = Graph::capture(stream.raw, || {
        // SAFETY: as above, while the graph runs; the workspace is used by the graph alone.
        unsafe {
            let error = sum.reduce_into(&array, &mut output, stream.stream()).unwrap_err();
            assert_eq!(error, Error::WarmUpFirst { bytes });
            assert!(error.to_string().contains("warm_up"), "{error}");
            let error = engine.scope(stream.stream(), |_| ()).unwrap_err();
            assert_eq!(error, Error::Capturing);
            sum.reduce_into_with(&array, &mut output, stream.stream(), &workspace).unwrap();
        }
    });
    // The graph keeps them.
    drop((workspace, sum, engine));
    for _ in 0..3 {
        output.copy_from_slice(&[0.0]).unwrap();
        graph.launch(stream.raw);
        stream.synchronize();
        assert_eq!(output.to_vec().unwrap()[0].bits(), cpu.reduce(&items).unwrap().bits());
    }
}

#[test]
fn loading_and_allocating_do_not_disturb_captures_elsewhere() {
    let Some(engine) = gpu() else { return };
    let _apart = apart();
    let stream = Apart::new();
    let array = DeviceArray::from_slice(&engine, &[1f32; 100]).unwrap();
    let mut output = DeviceArray::from_slice(&engine, &[0f32]).unwrap();
    let sum = engine.reducer(Sum::<f32>::new()).unwrap();
    let graph = Graph::capture(stream.raw, || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let other = Engine::cuda(0).unwrap();
                let product = other.reducer(Product::<i64>::new()).unwrap();
                assert_eq!(product.reduce(&[3, 5]).unwrap(), 15);
                drop(product.workspace(1 << 30).unwrap());
                std::mem::forget(other);
            });
        });
        // SAFETY: left alone until the graph has run.
        unsafe { sum.reduce_into(&array, &mut output, stream.stream()).unwrap() };
    });
    graph.launch(stream.raw);
    stream.synchronize();
    assert_eq!(output.to_vec().unwrap(), [100.0]);
}

#[test]
fn explicit_workspaces_are_checked() {
    let Some(engine) = gpu() else { return };
    let _apart = apart();
    let sum = engine.reducer(Sum::<f64>::new()).unwrap();
    let array = DeviceArray::from_slice(&engine, &vec![1f64; 1 << 20]).unwrap();
    let mut output = DeviceArray::from_slice(&engine, &[0f64]).unwrap();
    let stream = StreamRef::default_stream();
    let other = Engine::cuda(0).unwrap();
    let foreign = other.reducer(Sum::<f64>::new()).unwrap().workspace(1 << 20).unwrap();
    // SAFETY: refused, or waited for by the copy below.
    unsafe {
        let error = sum.reduce_into_with(&array, &mut output, stream, &foreign).unwrap_err();
        assert_eq!(error, Error::ForeignWorkspace);
        let own = sum.workspace(1 << 20).unwrap();
        sum.reduce_into_with(&array, &mut output, stream, &own).unwrap();
        assert_eq!(output.to_vec().unwrap(), [(1 << 20) as f64]);
    }
}

#[test]
fn the_steady_state_allocates_nothing() {
    let Some(engine) = gpu() else { return };
    let (_context, stream) = stream();
    let sum = engine.reducer(Sum::<f32>::new()).unwrap();
    let array = upload(&engine, &items::<f32>(5_000_000, 11));
    let mut output = DeviceArray::from_slice(&engine, &[0f32]).unwrap();
    let mut reduce = |n: usize| {
        // SAFETY: waited for below.
        unsafe { sum.reduce_into(&part(&array, 0, n), &mut output, &stream).unwrap() };
    };
    let free = || {
        stream.synchronize().unwrap();
        let (mut free, mut total) = (0, 0);
        // SAFETY: valid places for the answers; a context is current.
        unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total).ok() };
        free
    };
    reduce(5_000_000);
    let before = free();
    let start = Instant::now();
    for k in 0..2000 {
        reduce([100, 10_000, 1_000_000, 5_000_000][k % 4]);
    }
    let each = start.elapsed() / 2000;
    // Other tests allocate at the same time: only a leak of the kind that grows would show for sure.
    println!("{each:?} a call, {} bytes less free after 2000 calls", before.saturating_sub(free()));
}

#[test]
fn threads_share_engines_reducers_and_streams() {
    let Some(engine) = gpu() else { return };
    let n = 1_000_003;
    let items = items::<f64>(n, 12);
    let array = upload(&engine, &items);
    let expected = Engine::cpu().reducer(Sum::<f64>::new()).unwrap().reduce(&items).unwrap().bits();
    let sum = engine.reducer(Sum::<f64>::new()).unwrap();
    let (_context, shared) = stream();
    std::thread::scope(|scope| {
        for k in 0..8 {
            let (engine, sum, array, shared, items) = (&engine, &sum, &array, &shared, &items);
            scope.spawn(move || {
                let view = part(array, 0, n);
                for _ in 0..20 {
                    assert_eq!(bits(sum, &view), expected);
                    let mut output = DeviceArray::from_slice(engine, &[0f64]).unwrap();
                    engine
                        .scope(shared, |scope| scope.reduce_into(sum, &view, &mut output))
                        .unwrap()
                        .unwrap();
                    assert_eq!(output.to_vec().unwrap()[0].bits(), expected, "thread {k}");
                }
                assert_eq!(bits(sum, items), expected);
                let least = engine.reducer(Min::<f64>::new()).unwrap();
                assert!(least.reduce(&view).unwrap().is_some());
            });
        }
    });
}

#[test]
fn dropping_early_is_safe() {
    let Some(outer) = gpu() else { return };
    let _apart = apart();
    let n = 16_000_000;
    let items = items::<f32>(n, 13);
    let array = DeviceArray::from_slice(&outer, &items).unwrap();
    let mut output = DeviceArray::from_slice(&outer, &[0f32]).unwrap();
    let expected = Engine::cpu().reducer(Sum::<f32>::new()).unwrap().reduce(&items).unwrap().bits();
    let (_context, stream) = stream();
    for _ in 0..5 {
        output.copy_from_slice(&[0.0]).unwrap();
        let engine = Engine::cuda(0).unwrap();
        let sum = engine.reducer(Sum::<f32>::new()).unwrap();
        for _ in 0..50 {
            // SAFETY: left alone until waited for. The engine, with workspace and module, goes before.
            unsafe { sum.reduce_into(&array, &mut output, &stream).unwrap() };
        }
        drop((engine, sum));
        stream.synchronize().unwrap();
        assert_eq!(output.to_vec().unwrap()[0].bits(), expected);
    }
    // A scope whose closure panics has waited when the panic comes out.
    let sum = outer.reducer(Sum::<f32>::new()).unwrap();
    output.copy_from_slice(&[0.0]).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        outer.scope(&stream, |scope| {
            scope.reduce_into(&sum, &array, &mut output).unwrap();
            panic!("on purpose");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(output.to_vec().unwrap()[0].bits(), expected);
}

#[test]
fn contexts_of_callers_are_left_as_they_were() {
    let Some(engine) = gpu() else { return };
    std::thread::spawn(move || {
        let current = || {
            let mut current = ptr::null_mut();
            // SAFETY: a valid place for the answer.
            unsafe { sys::cuCtxGetCurrent(&mut current).ok() };
            current
        };
        assert!(current().is_null());
        let sum = engine.reducer(Sum::<u64>::new()).unwrap();
        let array = DeviceArray::from_slice(&engine, &vec![1u64; 100_000]).unwrap();
        assert_eq!(sum.reduce(&array).unwrap(), 100_000);
        assert_eq!(sum.reduce(&[1, 2]).unwrap(), 3);
        drop(array);
        assert!(current().is_null(), "no context is left current");
        let context = Context::new(Device::get_device(0).unwrap()).unwrap();
        assert_eq!(sum.reduce(&[1, 2]).unwrap(), 3);
        assert_eq!(current(), context.as_raw());
    })
    .join()
    .unwrap();
}

#[test]
fn outputs_are_checked() {
    let Some(engine) = gpu() else { return };
    let sum = engine.reducer(Sum::<f64>::new()).unwrap();
    let array = DeviceArray::from_slice(&engine, &[1f64; 4]).unwrap();
    let mut none = DeviceArray::<f64>::from_slice(&engine, &[]).unwrap();
    let stream = StreamRef::default_stream();
    let error =
        engine.scope(stream, |scope| scope.reduce_into(&sum, &array, &mut none)).unwrap().unwrap_err();
    assert_eq!(error, Error::NoRoomForResult);
    let mut item = 0f64;
    // SAFETY: refused before anything is written.
    let mut host =
        unsafe { DeviceViewMut::<f64>::from_raw(ptr::from_mut(&mut item).cast::<c_void>() as u64, 1) };
    let error =
        engine.scope(stream, |scope| scope.reduce_into(&sum, &array, &mut host)).unwrap().unwrap_err();
    assert!(matches!(error, Error::NotDeviceMemory { .. }), "{error:?}");
}

/// Printed for the record: a process that runs this test alone measures the first use.
#[test]
fn the_first_use_is_timed() {
    let Some(engine) = gpu() else { return };
    let array = DeviceArray::from_slice(&engine, &vec![1f32; 1 << 20]).unwrap();
    let start = Instant::now();
    let sum = engine.reducer(Sum::<f32>::new()).unwrap();
    let loaded = start.elapsed();
    assert_eq!(sum.reduce(&array).unwrap(), (1 << 20) as f32);
    println!("first sum of f32: {loaded:?} to load, {:?} to the result", start.elapsed());
}

/// The same for a card that no machine code is embedded for: the driver compiles PTX, unless it has it in its cache
/// (`CUDA_CACHE_DISABLE=1` keeps it from looking).
#[test]
fn ptx_alone_will_do() {
    if gpu().is_none() {
        return;
    }
    let engine = warpfold::host::Engine::cuda(0).unwrap();
    let name = BUILTINS.table.find::<Sum<f32>>().unwrap().name;
    let module = BUILTINS.modules.iter().find(|module| module.name == name).unwrap();
    let images: Vec<_> = module.images.iter().copied().filter(|image| image.kind == ImageKind::Ptx).collect();
    let module = Module { images: images.leak(), ..*module };
    engine.load(Kernels { modules: vec![module].leak(), ..BUILTINS });
    let array = DeviceArray::from_slice(&engine, &vec![1f32; 1 << 20]).unwrap();
    let start = Instant::now();
    let sum = engine.reducer(Sum::<f32>::new()).unwrap();
    let loaded = start.elapsed();
    assert_eq!(sum.reduce(&array).unwrap(), (1 << 20) as f32);
    println!("first sum of f32 from PTX: {loaded:?} to compile, {:?} to the result", start.elapsed());
}

#[test]
fn more_than_2_to_the_32_items_are_counted_in_64_bits() {
    let Some(engine) = gpu() else { return };
    let _apart = apart();
    const N: usize = (1 << 32) + 5;
    // SAFETY: filled before anything reads it.
    let mut items = match unsafe { DeviceArray::<i32>::uninit(&engine, N) } {
        Ok(items) => items,
        Err(error) => {
            eprintln!("skipped: 16 GiB of device memory are not free: {error}");
            return;
        }
    };
    let address = items.view_mut().address();
    let _context = Context::new(Device::get_device(0).unwrap()).unwrap();
    // SAFETY: the array's own memory, which nothing else uses.
    unsafe {
        sys::cuMemsetD32_v2(address, 1, N).ok();
        // Where 32-bit counts begin again, and at the very end.
        sys::cuMemsetD32_v2(address + (4 << 32), 3, 1).ok();
        sys::cuMemsetD32_v2(address + 4 * (N as u64 - 1), 3, 1).ok();
        sys::cuCtxSynchronize().ok();
    }
    let expected = N as i64 + 4;
    assert_eq!(engine.reducer(Sum::<i32, i64>::new()).unwrap().reduce(&items).unwrap(), expected);
    assert_eq!(engine.reducer(Sum::<i32>::new()).unwrap().reduce(&items).unwrap(), expected as i32);
    assert_eq!(engine.reducer(Max::<i32>::new()).unwrap().reduce(&items).unwrap(), Some(3));
    // SAFETY: the last item alone.
    unsafe { sys::cuMemsetD32_v2(address + 4 * (N as u64 - 1), -7i32 as u32, 1).ok() };
    assert_eq!(engine.reducer(Min::<i32>::new()).unwrap().reduce(&items).unwrap(), Some(-7));
}
