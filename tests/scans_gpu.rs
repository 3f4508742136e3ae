//! Scans on the GPU give the bits of the CPU's: every kind of operator, every form, around every boundary, from every start,
//! on many streams at once and in graphs that are replayed, past 2^32 items, and with guards around what is written.

use std::ptr;

use warpfold::{
    ArgMax, Compose, Engine, Error, Max, Monoid, Plain, Product, Reducer, Scanner, SegmentPlan, Sum,
    cuda::{
        DeviceArray, DeviceView, DeviceViewMut, StreamRef,
        cust::{
            context::Context,
            device::Device,
            stream::{Stream, StreamFlags},
            sys::{self, CUgraph, CUgraphExec, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL},
        },
    },
    monoid::scan::Tiling,
};

use crate::support::{Random, apart, bytes, gpu, matrix::Data, ordinary};

/// Bytes before and after results.
const GUARD: usize = 64;
/// What they are filled with.
const GUARD_BYTE: u8 = 0xa5;

/// Scans on the device between guards, the result beginning `offset` results behind an aligned address.
fn scan<Op: Monoid>(
    gpu: &Engine,
    scanner: &Scanner<Op>,
    items: DeviceView<'_, Op::Item>,
    (n, inner): (u64, u64),
    offset: usize,
) -> Vec<u8> {
    let size = size_of::<Op::Output>();
    let (at, len) = (GUARD + offset * size, items.len() as usize * size);
    let array = DeviceArray::from_slice(gpu, &vec![GUARD_BYTE; at + len + GUARD]).unwrap();
    // SAFETY: within the array, which lives until the results have been copied, which waits.
    unsafe {
        let mut results = DeviceViewMut::from_raw(array.address() + at as u64, items.len());
        scanner.enqueue_axis(&items, n, inner, &mut results, StreamRef::default_stream()).unwrap();
    }
    let all = array.to_vec().unwrap();
    let guards = all[..at].iter().chain(&all[at + len..]);
    assert!(guards.copied().all(|byte| byte == GUARD_BYTE), "a guard was overwritten");
    all[at..at + len].to_vec()
}

fn forms<Op: Monoid>(scanner: &Scanner<Op>, initial: Op::Acc) -> [Scanner<Op>; 5] {
    let (exclusive, reverse) = (scanner.exclusive(), scanner.reverse());
    [scanner.clone(), reverse.exclusive(), exclusive.with_initial(initial), exclusive, reverse]
}

/// The same device, as if it had so few multiprocessors: blocks that stay have many tiles each.
fn with_few(gpu: &Engine, multiprocessors: u32) -> Engine {
    let mut facts = gpu.facts().unwrap();
    facts.multiprocessors = multiprocessors;
    gpu.with_facts(facts)
}

fn check<Op: Monoid>(op: Op)
where
    Op::Item: Data,
{
    let Some(gpu) = gpu() else { return };
    let tiling = Tiling::of::<Op>();
    let (strip, warp, tile) = (tiling.strip as usize, tiling.warp() as usize, tiling.tile() as usize);
    let on = forms(&gpu.scanner(op).unwrap(), op.lift(ordinary(1, 3)[0], 5));
    let few = forms(&with_few(&gpu, 20).scanner(op).unwrap(), op.lift(ordinary(1, 3)[0], 5));
    let cpu = forms(&Engine::cpu().scanner(op).unwrap(), op.lift(ordinary(1, 3)[0], 5));
    let lengths = [
        1,
        strip,
        strip + 1,
        warp - 1,
        warp,
        warp + 1,
        tile - 1,
        tile,
        tile + 1,
        3 * tile + 7,
        300 * tile + 11,
    ];
    for (k, n) in lengths.into_iter().enumerate() {
        let all: Vec<Op::Item> = ordinary(n + 3, k as u64);
        let array = DeviceArray::from_slice(&gpu, &all).unwrap();
        for offset in 0..4 {
            if offset > 1 && n > 4 * tile {
                continue;
            }
            let items = &all[offset.min(3)..n + offset.min(3)];
            let view = array.view().slice(offset.min(3) as u64..(n + offset.min(3)) as u64).unwrap();
            for (f, (gpu_form, cpu_form)) in on.iter().zip(&cpu).enumerate() {
                // Some starts for some forms: all together for the first.
                if f > 0 && (offset + f) % 4 > 1 {
                    continue;
                }
                let expected = cpu_form.scan(items).unwrap();
                let size = size_of::<Op::Output>();
                for gpu_form in [gpu_form, &few[f]].into_iter().take(1 + usize::from(n > 4 * tile)) {
                    let found = scan(&gpu, gpu_form, view, (n as u64, 1), (offset * 3 + f) % 4);
                    let mut pairs = found.chunks(size).zip(bytes(&expected).chunks(size)).enumerate();
                    let differs = pairs.find(|(_, (found, expected))| found != expected);
                    assert_eq!(differs, None, "the first of {n} from {offset}, {:?}", gpu_form.form());
                }
            }
        }
    }
    let items = ordinary(2 * tile + 3, 8);
    assert!(bytes(&on[0].scan(&items).unwrap()) == bytes(&cpu[0].scan(&items).unwrap()), "from host memory");
}

#[test]
fn sums_of_f32() {
    check(Sum::<f32>::new());
}

#[test]
fn sums_of_f64() {
    check(Sum::<f64>::new());
}

#[test]
fn sums_of_integers() {
    check(Sum::<i32>::new());
    check(Sum::<i64>::new());
}

#[test]
fn sums_of_bytes_in_wider_types() {
    check(Sum::<u8, u32>::new());
    check(Sum::<u8, u64>::new());
}

#[test]
fn extremes_and_products() {
    check(Max::<f64>::new());
    check(ArgMax::<f32>::new());
    check(Product::<f32>::new());
}

#[test]
fn functions_whose_order_matters() {
    check(Compose::<f32>::new());
}

/// As many tiles as make blocks stay on the whole device, again and again, and rows of several tiles each.
#[test]
fn long_arrays_and_many_rows_by_blocks_that_stay() {
    fn check<Op: Monoid>(gpu: &Engine, op: Op)
    where
        Op::Item: Data,
    {
        let tile = Tiling::of::<Op>().tile() as usize;
        let (on, cpu) = (gpu.scanner(op).unwrap(), Engine::cpu().scanner(op).unwrap());
        let n = 3000 * tile + tile / 2;
        let items: Vec<Op::Item> = ordinary(n, 12);
        let array = DeviceArray::from_slice(gpu, &items).unwrap();
        for (on, cpu) in [(on.clone(), cpu.clone()), (on.reverse().exclusive(), cpu.reverse().exclusive())] {
            let expected = cpu.scan(&items).unwrap();
            for _ in 0..3 {
                assert!(
                    scan(gpu, &on, array.view(), (n as u64, 1), 0) == bytes(&expected),
                    "{:?}",
                    on.form()
                );
            }
        }
        let n = 9 * tile - 5;
        let rows = items.len() / n;
        let items = &items[..rows * n];
        let array = DeviceArray::from_slice(gpu, items).unwrap();
        let found = scan(gpu, &on, array.view(), (n as u64, 1), 0);
        for (k, (row, found)) in items.chunks(n).zip(found.chunks(n * size_of::<Op::Output>())).enumerate() {
            assert!(found == bytes(&cpu.scan(row).unwrap()), "row {k}");
        }
    }
    let Some(gpu) = gpu() else { return };
    check(&gpu, Sum::<f32>::new());
    check(&gpu, Sum::<u8, u32>::new());
    check(&gpu, Compose::<f32>::new());
}

#[test]
fn rows_columns_and_places_of_their_own() {
    let Some(gpu) = gpu() else { return };
    let (on, cpu) =
        (gpu.scanner(Sum::<f32>::new()).unwrap(), Engine::cpu().scanner(Sum::<f32>::new()).unwrap());
    for (outer, n, inner) in
        [(1, 5, 3), (7, 100, 1), (3, 20_000, 1), (1, 9000, 5), (4, 8000, 3), (3000, 3, 2)]
    {
        let items: Vec<f32> = ordinary(outer * n * inner, 9);
        let array = DeviceArray::from_slice(&gpu, &items).unwrap();
        let found = scan(&gpu, &on, array.view(), (n as u64, inner as u64), 0);
        let mut expected = vec![0.0_f32; items.len()];
        for line in 0..outer * inner {
            let at = |i: usize| line / inner * n * inner + i * inner + line % inner;
            let alone: Vec<f32> = (0..n).map(|i| items[at(i)]).collect();
            for (i, sum) in cpu.scan(&alone).unwrap().into_iter().enumerate() {
                expected[at(i)] = sum;
            }
        }
        assert!(found == bytes(&expected), "{outer} x {n} x {inner}");
    }
    for n in [1, 7168, 100_000] {
        let items: Vec<f32> = ordinary(n, 4);
        let mut array = DeviceArray::from_slice(&gpu, &items).unwrap();
        // SAFETY: left alone until the copy, which waits.
        unsafe { on.reverse().enqueue_in_place(&mut array, StreamRef::default_stream()).unwrap() };
        assert!(
            bytes(&array.to_vec().unwrap()) == bytes(&cpu.reverse().scan(&items).unwrap()),
            "{n} in place"
        );
        let mut copied = items.clone();
        on.scan_in_place(&mut copied).unwrap();
        assert!(bytes(&copied) == bytes(&cpu.scan(&items).unwrap()), "{n} in place from host memory");
    }
}

/// How often each stream scans.
const ROUNDS: usize = 1000;
/// Scans at a time.
const STREAMS: usize = 64;

/// What a stream scans in each round: at the end, the sums of all rounds' results, bit by bit, are what the CPU's are.
struct Strand<'a, Op: Monoid> {
    scanner: Scanner<Op>,
    items: DeviceView<'a, Op::Item>,
    results: DeviceArray<Op::Output>,
    expected: u64,
}

/// A strand, whatever it scans.
trait Scans {
    /// Scans once, and adds up the results as 64-bit numbers.
    ///
    /// # Safety
    ///
    /// The strand and the sum are left alone until the stream has been waited for.
    unsafe fn go(&mut self, add: &Reducer<Sum<u64>>, sum: &mut DeviceViewMut<'_, u64>, stream: &Stream);
    fn expected(&self) -> u64;
}

impl<'a, Op: Monoid<Item: Data>> Strand<'a, Op> {
    fn new(
        gpu: &Engine,
        op: Op,
        form: impl Fn(&Scanner<Op>) -> Scanner<Op>,
        items: &'a Items<Op::Item>,
    ) -> Self {
        let expected = form(&Engine::cpu().scanner(op).unwrap()).scan(&items.host).unwrap();
        let words = bytes(&expected).as_chunks::<8>().0;
        Strand {
            scanner: form(&gpu.scanner(op).unwrap()),
            items: items.device.view(),
            // SAFETY: written before they are read.
            results: unsafe { DeviceArray::uninit(gpu, items.host.len()).unwrap() },
            expected: words.iter().fold(0, |sum, &word| sum.wrapping_add(u64::from_le_bytes(word))),
        }
    }
}

impl<Op: Monoid> Scans for Strand<'_, Op> {
    unsafe fn go(&mut self, add: &Reducer<Sum<u64>>, sum: &mut DeviceViewMut<'_, u64>, stream: &Stream) {
        let words = (self.results.view().len() as usize * size_of::<Op::Output>() / 8) as u64;
        // SAFETY: the caller's promise; the results' own bytes.
        unsafe {
            self.scanner.enqueue(&self.items, &mut self.results, stream).unwrap();
            let words = DeviceView::<u64>::from_raw(self.results.address(), words);
            add.reduce_into(&words, sum, stream).unwrap();
        }
    }

    fn expected(&self) -> u64 {
        self.expected
    }
}

/// Items here and there.
struct Items<T: Plain> {
    host: Vec<T>,
    device: DeviceArray<T>,
}

impl<T: Data> Items<T> {
    fn new(gpu: &Engine, n: usize) -> Self {
        let host = ordinary(n, n as u64);
        Items { device: DeviceArray::from_slice(gpu, &host).unwrap(), host }
    }
}

/// 64 000 scans of many kinds and lengths, 64 at a time, beside one that fills the device again and again.
#[test]
fn many_streams_at_once_never_hang_and_never_differ() {
    let Some(gpu) = gpu() else { return };
    let _context = Context::new(Device::get_device(0).unwrap()).unwrap();
    let lengths = [150_002, 7168 * 33 + 6, 40_000, 7168 * 2];
    let doubles = lengths.map(|n| Items::<f64>::new(&gpu, n));
    let maps = lengths.map(|n| Items::new(&gpu, n));
    let singles = lengths.map(|n| Items::<f32>::new(&gpu, n));
    let numbers = lengths.map(|n| Items::<i32>::new(&gpu, n));
    let small = lengths.map(|n| Items::<u8>::new(&gpu, n));
    let few = with_few(&gpu, 2);
    let strands = (0..STREAMS).map(|k| -> Box<dyn Scans + '_> {
        let at = k / 6 % 4;
        // On a small device's plan the longer ones have blocks that stay.
        let gpu = if k / 24 % 2 > 0 { &few } else { &gpu };
        match k % 6 {
            0 => Box::new(Strand::new(gpu, Sum::<f64>::new(), Clone::clone, &doubles[at])),
            1 => Box::new(Strand::new(gpu, Compose::<f32>::new(), Clone::clone, &maps[at])),
            2 => Box::new(Strand::new(gpu, Sum::<f32>::new(), Scanner::reverse, &singles[at])),
            3 => Box::new(Strand::new(gpu, Sum::<i32>::new(), Clone::clone, &numbers[at])),
            4 => Box::new(Strand::new(gpu, Sum::<u8, u64>::new(), Scanner::exclusive, &small[at])),
            _ => Box::new(Strand::new(gpu, Max::<f32>::new(), Clone::clone, &singles[at])),
        }
    });
    let mut strands: Vec<_> = strands.collect();
    let stream = || Stream::new(StreamFlags::NON_BLOCKING, None).unwrap();
    let (streams, beside): (Vec<Stream>, Stream) = ((0..STREAMS).map(|_| stream()).collect(), stream());
    let add = gpu.reducer(Sum::<u64>::new()).unwrap();
    let sums = DeviceArray::from_slice(&gpu, &vec![0_u64; STREAMS * ROUNDS]).unwrap();
    let (long, sum) = (Items::<f32>::new(&gpu, 1 << 24), gpu.scanner(Sum::<f32>::new()).unwrap());
    // SAFETY: nobody reads them.
    let mut others = unsafe { DeviceArray::<f32>::uninit(&gpu, 1 << 24).unwrap() };
    for round in 0..ROUNDS {
        // SAFETY: all are left alone until the streams have been waited for; each sum has a place.
        unsafe {
            if round % 8 == 0 {
                sum.enqueue(&long.device, &mut others, &beside).unwrap();
            }
            for (k, (stream, strand)) in streams.iter().zip(&mut strands).enumerate() {
                let at = sums.address() + 8 * (round * STREAMS + k) as u64;
                strand.go(&add, &mut DeviceViewMut::from_raw(at, 1), stream);
            }
        }
    }
    streams.iter().chain([&beside]).for_each(|stream| stream.synchronize().unwrap());
    for (at, found) in sums.to_vec().unwrap().into_iter().enumerate() {
        assert_eq!(
            found,
            strands[at % STREAMS].expected(),
            "round {}, stream {}",
            at / STREAMS,
            at % STREAMS
        );
    }
}

/// F02: a scan while the stream is being captured neither waits, reads back nor allocates.
#[test]
fn replayed_graphs_never_take_what_earlier_runs_left() {
    let Some(gpu) = gpu() else { return };
    let _apart = apart();
    let _context = Context::new(Device::get_device(0).unwrap()).unwrap();
    // So that blocks stay: four for the 28 tiles of the long one.
    let sum = with_few(&gpu, 2).scanner(Sum::<i32>::new()).unwrap();
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None).unwrap();
    let (long, short) = (200_000, 50_000);
    let items: Vec<i32> = ordinary(long, 6);
    let mut array = DeviceArray::from_slice(&gpu, &items).unwrap();
    let mut first = DeviceArray::from_slice(&gpu, &vec![0_i32; long]).unwrap();
    let mut second = DeviceArray::from_slice(&gpu, &vec![0_i32; short]).unwrap();
    let (mut graph, mut executable): (CUgraph, CUgraphExec) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: a live stream, valid places for the answers; the arrays outlive the graph.
    unsafe {
        let begin = || sys::cuStreamBeginCapture_v2(stream.as_inner(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
        assert_eq!(begin() as u32, 0);
        let error = sum.enqueue(&array, &mut first, &stream).unwrap_err();
        assert!(matches!(error, Error::WarmUpFirst { .. }), "{error}");
        assert_eq!(sys::cuStreamEndCapture(stream.as_inner(), &mut graph) as u32, 0);
        sys::cuGraphDestroy(graph);
        sum.warm_up(long as u64).unwrap();
        assert_eq!(begin() as u32, 0);
        sum.enqueue(&array, &mut first, &stream).unwrap();
        sum.reverse().enqueue(&array.view().slice(..short as u64).unwrap(), &mut second, &stream).unwrap();
        assert_eq!(sys::cuStreamEndCapture(stream.as_inner(), &mut graph) as u32, 0);
        assert_eq!(sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0) as u32, 0);
    }
    let cpu = Engine::cpu().scanner(Sum::<i32>::new()).unwrap();
    for round in 0..50 {
        // Other items each time, so that what is stale is wrong.
        let items: Vec<i32> = items.iter().map(|item| item.wrapping_add(round)).collect();
        array.copy_from_slice(&items).unwrap();
        // SAFETY: a live executable and stream.
        assert_eq!(unsafe { sys::cuGraphLaunch(executable, stream.as_inner()) } as u32, 0);
        stream.synchronize().unwrap();
        assert!(first.to_vec().unwrap() == cpu.scan(&items).unwrap(), "round {round}");
        assert!(second.to_vec().unwrap() == cpu.reverse().scan(&items[..short]).unwrap(), "round {round}");
    }
    // SAFETY: ours, and the stream has been waited for.
    unsafe {
        sys::cuGraphExecDestroy(executable);
        sys::cuGraphDestroy(graph);
    }
}

/// A run has the bits of being scanned alone: keys of all widths, flags, enqueued and captured, with room that is used again.
#[test]
fn runs_of_equal_keys_on_the_device_and_in_replayed_graphs() {
    let Some(gpu) = gpu() else { return };
    let _apart = apart();
    let _context = Context::new(Device::get_device(0).unwrap()).unwrap();
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None).unwrap();
    let (most, op) = (300_000, Sum::<f32>::new());
    let on = gpu.scanner(op).unwrap().exclusive();
    let cpu = Engine::cpu().scanner(op).unwrap().exclusive();
    let (by_key, by_byte, by_heads) =
        (on.by_key::<i64>().unwrap(), on.reverse().by_key::<u8>().unwrap(), on.by_heads().unwrap());
    // Some runs are longer than a tile, most are short.
    let keys_of = |n: usize, seed: u64| -> Vec<i64> {
        let mut random = Random::new(seed);
        let (mut key, mut keys) = (0, Vec::new());
        while keys.len() < n {
            let most = if random.below(40) == 0 { 30_000 } else { 1 + 9 * (seed % 4) };
            keys.resize(n.min(keys.len() + 1 + random.below(most) as usize), key);
            key += 1 + 7_000_000_000 * (random.below(3) as i64);
        }
        keys
    };
    let flags_of = |keys: &[i64]| -> Vec<u8> {
        (0..keys.len())
            .map(|i| if i > 0 && keys[i] != keys[i - 1] { 1 + (i % 200) as u8 } else { 0 })
            .collect()
    };
    let items: Vec<f32> = ordinary(most, 3);
    let array = DeviceArray::from_slice(&gpu, &items).unwrap();
    let mut results = [0; 3].map(|_| DeviceArray::from_slice(&gpu, &vec![0_f32; most]).unwrap());
    for (seed, n) in [(0, 0), (0, 1), (1, 6000), (2, most), (3, 70_001), (0, most)] {
        let keys = keys_of(n, seed);
        let (bytes_of, flags): (Vec<u8>, _) = (keys.iter().map(|&key| key as u8).collect(), flags_of(&keys));
        let (long, narrow, heads) = (
            DeviceArray::from_slice(&gpu, &keys).unwrap(),
            DeviceArray::from_slice(&gpu, &bytes_of).unwrap(),
            DeviceArray::from_slice(&gpu, &flags).unwrap(),
        );
        let view = array.view().slice(..n as u64).unwrap();
        // SAFETY: all are left alone until the stream has been waited for.
        unsafe {
            by_key.enqueue(&long, &view, &mut results[0], &stream).unwrap();
            by_byte.enqueue(&narrow, &view, &mut results[1], &stream).unwrap();
            by_heads.enqueue(&heads, &view, &mut results[2], &stream).unwrap();
        }
        stream.synchronize().unwrap();
        let plan = SegmentPlan::from_keys(&keys);
        let expected = cpu.scan_segments(&items[..n], &plan).unwrap();
        let of_bytes = cpu.reverse().scan_segments(&items[..n], &SegmentPlan::from_keys(&bytes_of)).unwrap();
        for (k, expected) in [&expected, &of_bytes, &expected].into_iter().enumerate() {
            assert!(bytes(&results[k].to_vec().unwrap()[..n]) == bytes(expected), "{n} items, scan {k}");
        }
        assert_eq!(by_key.plan(&long).unwrap(), plan, "{n} items");
        assert!(
            bytes(&by_key.scan(&keys, &items[..n]).unwrap()) == bytes(&expected),
            "{n} items, host memory"
        );
    }
    let error = gpu.scanner(Max::<i32>::new()).unwrap().by_key::<i32>().unwrap();
    let (keys, numbers) = (
        DeviceArray::from_slice(&gpu, &[0_i32; 3]).unwrap(),
        DeviceArray::from_slice(&gpu, &[0_i32; 3]).unwrap(),
    );
    let mut output = DeviceArray::from_slice(&gpu, &[0_i32; 3]).unwrap();
    // SAFETY: nothing is enqueued.
    let error = unsafe { error.enqueue(&keys, &numbers, &mut output, &stream) }.unwrap_err();
    let Error::NoKernel { line, list, .. } = error else { panic!("{error}") };
    assert_eq!((line.as_str(), list), ("my_operator_lines => Max<i32>,", "scan_line_kernels!"));

    let mut keys = DeviceArray::from_slice(&gpu, &keys_of(most, 1)).unwrap();
    let (mut graph, mut executable): (CUgraph, CUgraphExec) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: a live stream, valid places for the answers; the arrays outlive the graph.
    unsafe {
        by_key.warm_up(most as u64).unwrap();
        let mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        assert_eq!(sys::cuStreamBeginCapture_v2(stream.as_inner(), mode) as u32, 0);
        by_key.enqueue(&keys, &array, &mut results[0], &stream).unwrap();
        assert_eq!(sys::cuStreamEndCapture(stream.as_inner(), &mut graph) as u32, 0);
        assert_eq!(sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0) as u32, 0);
    }
    for round in 0..12 {
        // Other runs each time, so that what is stale is wrong.
        let now = keys_of(most, round);
        keys.copy_from_slice(&now).unwrap();
        // SAFETY: a live executable and stream.
        assert_eq!(unsafe { sys::cuGraphLaunch(executable, stream.as_inner()) } as u32, 0);
        stream.synchronize().unwrap();
        let expected = cpu.scan_segments(&items, &SegmentPlan::from_keys(&now)).unwrap();
        assert!(bytes(&results[0].to_vec().unwrap()) == bytes(&expected), "round {round}");
    }
    // SAFETY: ours, and the stream has been waited for.
    unsafe {
        sys::cuGraphExecDestroy(executable);
        sys::cuGraphDestroy(graph);
    }
}

#[test]
fn more_than_2_to_the_32_items() {
    let Some(gpu) = gpu() else { return };
    let sum = gpu.scanner(Sum::<u8, u32>::new()).unwrap();
    let n = (1_usize << 32) + 12_345;
    // SAFETY: filled below, and written before it is read.
    let room = unsafe { (DeviceArray::<u8>::uninit(&gpu, n), DeviceArray::<u32>::uninit(&gpu, n)) };
    let (Ok(items), Ok(mut sums)) = room else {
        eprintln!("skipped: 20 GiB of device memory are not free");
        return;
    };
    let _context = Context::new(Device::get_device(0).unwrap()).unwrap();
    // SAFETY: the array's own bytes, and left alone until the copies, which wait.
    unsafe {
        assert_eq!(sys::cuMemsetD8_v2(items.address(), 3, n) as u32, 0);
        sum.enqueue(&items, &mut sums, StreamRef::default_stream()).unwrap();
        assert_eq!(sys::cuCtxSynchronize() as u32, 0);
    }
    for start in [0, (1 << 31) - 50, (1_usize << 32) - 50, n - 100] {
        let mut some = [0_u32; 100];
        let from = sums.address() + 4 * start as u64;
        // SAFETY: within the array.
        assert_eq!(unsafe { sys::cuMemcpyDtoH_v2(some.as_mut_ptr().cast(), from, 400) } as u32, 0);
        for (i, found) in some.into_iter().enumerate() {
            assert_eq!(found, 3_u32.wrapping_mul((start + i + 1) as u32), "result {}", start + i);
        }
    }
}

/// Rows, columns and segments, whose bits are those of the CPU, between guards.
fn check_lines<Op: Monoid>(op: Op)
where
    Op::Item: Data,
{
    let Some(gpu) = gpu() else { return };
    let start = op.lift(ordinary(1, 3)[0], 5);
    let on = forms(&gpu.scanner(op).unwrap(), start);
    let cpu = forms(&Engine::cpu().scanner(op).unwrap(), start);
    let tile = Tiling::of::<Op>().tile() as usize;
    let differs = |found: &[u8], expected: &[Op::Output]| {
        let size = size_of::<Op::Output>();
        found.chunks(size).zip(bytes(expected).chunks(size)).position(|(found, expected)| found != expected)
    };
    let mut shapes: Vec<(usize, usize, usize)> =
        [1, 2, 3, 7, 13, 16, 28, 29, 33, 100, 511, 512, 896, 897, 1025, 3584]
            .into_iter()
            .filter(|&n| n <= tile / 2)
            .map(|n| (60_000 / n + 2, n, 1))
            .collect();
    shapes.extend([(5, 1, 77), (300, 5, 7), (1, 28, 5000), (3, 29, 700), (2, 900, 40), (1, 1800, 300)]);
    shapes.extend([(1, 20_000, 33), (1, 300_000, 3), (2, 9000, 16), (1, 7, 100_000), (70, 100, 2)]);
    for (k, (outer, n, inner)) in shapes.into_iter().enumerate() {
        let all: Vec<Op::Item> = ordinary(outer * n * inner + 3, k as u64);
        let array = DeviceArray::from_slice(&gpu, &all).unwrap();
        for (f, (on, cpu)) in on.iter().zip(&cpu).enumerate() {
            let offset = (k + f) % 4;
            let items = &all[offset..][..outer * n * inner];
            let view = array.view().slice(offset as u64..(offset + items.len()) as u64).unwrap();
            let found = scan(&gpu, on, view, (n as u64, inner as u64), (k + 2 * f) % 4);
            let expected = cpu.scan_lines(items, n as u64, inner as u64).unwrap();
            assert_eq!(differs(&found, &expected), None, "{outer} x {n} x {inner}, {:?}", on.form());
        }
    }
    let mut random = Random::new(11);
    let mut length = |most: u64| random.below(most) as usize;
    let long = [5, 3 * tile + 100, 0, 0, 70 * tile + 3, 1, tile, tile + 1, 2 * tile, 17, tile - 1, 0];
    let lists = [
        (0..30_000).map(|_| length(7)).collect(),
        (0..3000).map(|_| length(100)).collect(),
        (0..300).map(|_| length(3000)).collect(),
        // More tiles than are at work at once.
        (0..3000).map(|_| length(tile as u64 * 2 / 5)).collect(),
        (0..200).map(|k| if k % 7 == 0 { length(30_000) } else { length(5) }).collect(),
        long.to_vec(),
    ];
    for (k, lengths) in lists.iter().enumerate() {
        let mut offsets = vec![3 + k as u64];
        lengths.iter().for_each(|&n| offsets.push(offsets[offsets.len() - 1] + n as u64));
        let (first, end) = (3 + k, offsets[lengths.len()] as usize);
        let all: Vec<Op::Item> = ordinary(end + 5, k as u64);
        let array = DeviceArray::from_slice(&gpu, &all).unwrap();
        let places = DeviceArray::from_slice(&gpu, &offsets).unwrap();
        let plan = SegmentPlan::from_offsets(&offsets).unwrap();
        for (on, cpu) in on.iter().zip(&cpu) {
            let expected = cpu.scan_segments(&all, &plan).unwrap();
            let found = on.scan_segments(&all, &plan).unwrap();
            assert_eq!(differs(bytes(&found), &expected), None, "segments {k}, {:?}", on.form());
            let size = size_of::<Op::Output>();
            let output = DeviceArray::from_slice(&gpu, &vec![GUARD_BYTE; all.len() * size]).unwrap();
            // SAFETY: within the array, which lives until the results have been copied, which waits.
            unsafe {
                let mut results = DeviceViewMut::from_raw(output.address(), all.len() as u64);
                on.enqueue_segments(&array, &places, None, &mut results, StreamRef::default_stream())
                    .unwrap();
            }
            let found = output.to_vec().unwrap();
            let guards = found[..first * size].iter().chain(&found[end * size..]);
            assert!(guards.copied().all(|byte| byte == GUARD_BYTE), "segments {k}: a guard was overwritten");
            let found = &found[first * size..end * size];
            assert_eq!(differs(found, &expected), None, "segments {k} on the device, {:?}", on.form());
        }
    }
}

#[test]
fn lines_of_sums_of_floats() {
    check_lines(Sum::<f32>::new());
    check_lines(Sum::<f64>::new());
}

#[test]
fn lines_of_sums_of_integers() {
    check_lines(Sum::<u8, u32>::new());
    check_lines(Sum::<i64>::new());
}

#[test]
fn lines_of_functions_and_maxima() {
    check_lines(Compose::<f32>::new());
    check_lines(Max::<f32>::new());
}
