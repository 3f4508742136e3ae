//! Segments on the GPU give the bits of the canonical tree of each alone: every strategy, every kind of operator, around every boundary, from every
//! start, on streams and in graphs, and with guards around what is read and written.

use std::ptr;

use warpfold::{
    Affine, ArgMax, Compose, Dot, Engine, Error, Max, MaxSegmentSum, Mean, Min, Monoid, Plain, SegmentPlan,
    Sum,
    cuda::{
        DeviceArray, DeviceView, DeviceViewMut, StreamRef,
        cust::{
            context::Context,
            device::Device,
            stream::{Stream, StreamFlags},
            sys::{self, CUgraph, CUgraphExec, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL},
        },
    },
    plan::segments::{SegmentSettings, SegmentStrategy},
    segments::{Axis, Layout, Side},
    tree,
};

use crate::support::{Random, apart, bytes, gpu, matrix::Data, ordinary};

/// Results before and after.
const GUARD: usize = 16;
/// What they are filled with.
const GUARD_BYTE: u8 = 0xa5;

/// A device array of results with guards on both sides.
struct Guarded<'a> {
    bytes: DeviceArray<u8>,
    engine: &'a Engine,
}

impl<'a> Guarded<'a> {
    fn new(engine: &'a Engine, len: usize) -> Self {
        let all = vec![GUARD_BYTE; len + 2 * GUARD];
        Guarded { bytes: DeviceArray::from_slice(engine, &all).unwrap(), engine }
    }

    fn view<T: Plain>(&mut self, len: u64) -> DeviceViewMut<'_, T> {
        // SAFETY: within the array, as long as it is borrowed.
        unsafe { DeviceViewMut::from_raw(self.bytes.address() + GUARD as u64, len) }
    }

    /// What lies between the guards, which are checked and everything made new.
    fn take(&mut self) -> Vec<u8> {
        let all = self.bytes.to_vec().unwrap();
        let (front, rest) = all.split_at(GUARD);
        let (results, back) = rest.split_at(rest.len() - GUARD);
        assert!(front.iter().chain(back).all(|&byte| byte == GUARD_BYTE), "a guard was overwritten");
        let results = results.to_vec();
        *self = Guarded::new(self.engine, results.len());
        results
    }
}

fn forced(strategy: Option<SegmentStrategy>) -> SegmentSettings {
    let mut settings = SegmentSettings::default();
    settings.strategy = strategy;
    settings
}

/// The value of a segment.
fn alone<Op: Monoid>(op: &Op, n: u64, item: &dyn Fn(u64) -> Op::Item) -> Op::Output {
    // The definition, which is little code: the CPU's fast ways are tested against it elsewhere.
    match tree::fold(op, n, item) {
        Some(acc) => op.finish(acc),
        None => op.finish_empty(),
    }
}

/// Every segment on its own.
fn defined<Op: Monoid>(op: &Op, items: &[Op::Item], first: usize, layout: &Layout) -> Vec<Op::Output> {
    let place = |axes: &[Axis], number: u64| {
        let (mut rest, mut at) = (number, 0);
        for axis in axes.iter().rev() {
            at += (rest % axis.len) as i64 * axis.stride;
            rest /= axis.len;
        }
        at
    };
    (0..layout.segments())
        .map(|k| {
            let start = first as i64 + place(&layout.kept, k);
            alone(op, layout.segment_len(), &|i| items[(start + place(&layout.reduced, i)) as usize])
        })
        .collect()
}

/// The same for segments of any lengths.
fn defined_irregular<Op: Monoid>(op: &Op, items: &[Op::Item], plan: &SegmentPlan) -> Vec<Op::Output> {
    (0..plan.segments())
        .map(|k| {
            let range = plan.range(k);
            alone(op, range.end - range.start, &|i| items[(range.start + i) as usize])
        })
        .collect()
}

/// Every strategy that takes a layout, which starts at item `first` of the array; on the device and through host memory.
fn check<Op: Monoid>(gpu: &Engine, op: Op, items: &[Op::Item], first: usize, layout: &Layout) -> usize {
    let expected = defined(&op, items, first, layout);
    let reducer = gpu.segments(op).unwrap();
    let on_device = DeviceArray::from_slice(gpu, items).unwrap();
    let mut results = Guarded::new(gpu, size_of_val(&expected[..]));
    let mut taken = 0;
    for strategy in [None].into_iter().chain(SegmentStrategy::ALL.map(Some)) {
        let reducer = reducer.with_settings(forced(strategy));
        let plan = match reducer.plan(layout) {
            Ok(plan) => plan,
            Err(_) if strategy.is_some() => continue,
            Err(error) => panic!("{error}"),
        };
        let stream = StreamRef::default_stream();
        // SAFETY: all of it is left alone until the results have been copied, which waits.
        unsafe {
            let mut output = results.view(layout.segments());
            reducer.enqueue(&on_device, first as u64, layout, &mut output, stream)
        }
        .unwrap_or_else(|error| panic!("{plan}\n{error}"));
        let found = results.take();
        let differs = found.iter().zip(bytes(&expected)).position(|(found, expected)| found != expected);
        assert_eq!(differs.map(|at| at / size_of::<Op::Output>()), None, "first result that differs; {plan}");
        taken += 1;
    }
    // SAFETY: as above.
    let copied = unsafe { reducer.reduce_layout(items.as_ptr().wrapping_add(first), layout) }.unwrap();
    assert_eq!(bytes(&copied), bytes(&expected), "from host memory");
    taken
}

/// Rows of lengths around every boundary of items of that size.
fn lengths(item_bytes: usize) -> Vec<usize> {
    let vector = tree::vector_len(item_bytes);
    let mut lengths = vec![1, 2, 3, 5, 7];
    for groups in [1, 2, 4, 8, 16, 32, 64, 256] {
        let most = 4 * vector * groups;
        lengths.extend([most - 1, most, most + 1, most / 2 + vector]);
    }
    for chunk in [1024, 2048] {
        let most = chunk * vector;
        lengths.extend([most - 1, most, most + 1, 3 * most + 70]);
    }
    lengths.push(70 * 1024 * vector + 3);
    lengths.sort();
    lengths.dedup();
    lengths
}

fn all_kinds<Op: Monoid>(op: Op)
where
    Op::Item: Data,
{
    let Some(gpu) = gpu() else { return };
    let mut taken = 0;
    for n in lengths(size_of::<Op::Item>()) {
        let m = (40_000 / n).clamp(3, 5000);
        let items = ordinary::<Op::Item>(m * (n + 3) + 16, n as u64);
        for first in [0, 1, 3, 7] {
            taken += check(&gpu, op, &items, first, &Layout::rows(m as u64, n as u64));
        }
        let gaps = Layout {
            kept: vec![Axis { len: m as u64, stride: n as i64 + 3 }],
            reduced: vec![Axis { len: n as u64, stride: 1 }],
        };
        taken += check(&gpu, op, &items, 2, &gaps);
    }
    let vector = tree::vector_len(size_of::<Op::Item>());
    for (outer, n, inner) in [
        (1, 7, 3000),
        (5, 4 * vector + 1, 65),
        (2, 64 * vector + 3, 33),
        (3, 700 * vector, 8),
        (1, 2048 * vector + 5, 5),
        (2, 9000 * vector, 2),
        (40, 40, 40),
        // Taken as one array: 4 MiB, vectors that columns share, a last chunk that ends within one.
        (1, 35_001, 33),
        // In tiles of columns; and so many columns of several hundred items that threads of several warps share each.
        (2, 3_501, 333),
        (1, 132 * vector, 16_386),
    ] {
        let items = ordinary::<Op::Item>(outer * n * inner + 1, n as u64);
        let strides = [(n * inner) as isize, inner as isize, 1];
        let layout = Layout::new(&[outer, n, inner], &strides, &[1]).unwrap();
        for first in [0, 1] {
            taken += check(&gpu, op, &items, first, &layout);
        }
    }
    let items = ordinary::<Op::Item>(5 * 6 * 70 * 3, 1);
    let (shape, strides) = ([5, 6, 70, 3], [6 * 70 * 3, -70 * 3, 3, -1]);
    for reduced in [&[0][..], &[1], &[2], &[3], &[0, 2], &[1, 3], &[0, 1, 2], &[0, 1, 2, 3]] {
        let layout = Layout::new(&shape, &strides, reduced).unwrap();
        taken += check(&gpu, op, &items, 5 * 70 * 3 + 2, &layout);
    }
    for (shape, strides) in [([4, 100], [0, 1]), ([4, 100], [1, 0]), ([4, 0], [1, 1]), ([0, 4], [1, 1])] {
        taken += check(&gpu, op, &items, 7, &Layout::new(&shape, &strides, &[1]).unwrap());
    }
    assert!(taken > 500, "only {taken} launches");
    irregular(&gpu, op);
}

fn irregular<Op: Monoid>(gpu: &Engine, op: Op)
where
    Op::Item: Data,
{
    let vector = tree::vector_len(size_of::<Op::Item>());
    let mut random = Random::new(5);
    let mut lengths: Vec<usize> =
        (0..20_000).map(|_| (random.below(50)) as usize * (random.below(3)) as usize).collect();
    lengths.extend((0..3000).map(|_| 0));
    lengths.extend([300, 2048, 2049, 5000, 40_000].map(|vectors| vectors * vector + 1));
    lengths.extend((0..200).map(|_| (random.below(3000)) as usize));
    lengths.extend([0, 0, 4 * vector * 32, 1]);
    let items = ordinary::<Op::Item>(lengths.iter().sum::<usize>() + 9, 9);
    let begins: Vec<usize> = (0..3000).map(|k| k * 37 % 1500).collect();
    let ends: Vec<usize> = (0..3000).map(|k| k * 37 % 1500 + k % 5 * k).collect();
    let plans =
        [SegmentPlan::from_lengths(&lengths).unwrap(), SegmentPlan::from_ranges(&begins, &ends).unwrap()];
    let reducer = gpu.segments(op).unwrap();
    let on_device = DeviceArray::from_slice(gpu, &items).unwrap();
    for plan in plans {
        let prepared = reducer.prepare(&plan).unwrap();
        let mut results = Guarded::new(gpu, plan.segments() as usize * size_of::<Op::Output>());
        for first in [0u64, 1, 5] {
            let expected = defined_irregular(&op, &items[first as usize..], &plan);
            let view = on_device.view().slice(first..).unwrap();
            // SAFETY: as in `check`.
            unsafe {
                let mut output = results.view(plan.segments());
                reducer.enqueue_segments(&view, &prepared, &mut output, StreamRef::default_stream()).unwrap();
            }
            assert_eq!(results.take(), bytes(&expected), "from item {first}");
        }
        let expected = defined_irregular(&op, &items, &plan);
        assert_eq!(bytes(&reducer.reduce_segments(&on_device, &plan).unwrap()), bytes(&expected));
        assert_eq!(bytes(&reducer.reduce_segments(&items, &plan).unwrap()), bytes(&expected));
    }
}

#[test]
fn float_sums() {
    all_kinds(Sum::<f32>::new());
    all_kinds(Sum::<f64>::new());
}

#[test]
fn narrow_items() {
    all_kinds(Sum::<u8, u64>::new());
    all_kinds(Sum::<half::f16>::new());
}

#[test]
fn any_order() {
    all_kinds(Max::<f32>::new());
    all_kinds(Sum::<i32>::new());
    all_kinds(ArgMax::<f32>::new());
}

#[test]
fn large_accumulators_and_order() {
    all_kinds(Mean::<f64>::new());
    all_kinds(MaxSegmentSum::<i32>::new());
}

#[test]
fn functions_in_their_order() {
    let Some(gpu) = gpu() else { return };
    let op = Compose::<f32>::new();
    let mut random = Random::new(3);
    let mut item = || Affine { scale: f32::factor(&mut random), shift: f32::ordinary(&mut random) };
    let items: Vec<_> = (0..200_000).map(|_| item()).collect();
    for (m, n) in [(2000, 7), (2000, 33), (300, 129), (60, 1025), (5, 9000), (2, 100_000)] {
        check(&gpu, op, &items, 0, &Layout::rows(m, n));
        check(&gpu, op, &items, 0, &Layout::new(&[n as usize, m as usize], &[m as isize, 1], &[0]).unwrap());
    }
}

#[test]
fn streams_and_graphs_repeat_their_bits() {
    let _apart = apart();
    let Some(gpu) = gpu() else { return };
    let _context = Context::new(Device::get_device(0).unwrap()).unwrap();
    let items = ordinary::<f32>(1 << 22, 4);
    let on_device = DeviceArray::from_slice(&gpu, &items).unwrap();
    let reducer = gpu.segments(Sum::<f32>::new()).unwrap();
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None).unwrap();
    for layout in [
        Layout::rows(3, 1 << 20),
        Layout::rows(1 << 18, 16),
        Layout::new(&[1 << 20, 4], &[4, 1], &[0]).unwrap(),
    ] {
        let expected = defined(reducer.operator(), &items, 0, &layout);
        let mut results = Guarded::new(&gpu, expected.len() * 4);
        for _ in 0..3 {
            // SAFETY: waited for below.
            unsafe {
                let mut output = results.view(layout.segments());
                for _ in 0..5 {
                    reducer.enqueue(&on_device, 0, &layout, &mut output, &stream).unwrap();
                }
            }
            stream.synchronize().unwrap();
            assert_eq!(results.take(), bytes(&expected));
        }
        let needs_room = reducer.plan(&layout).unwrap().tickets > 0;
        let (mut graph, mut executable): (CUgraph, CUgraphExec) = (ptr::null_mut(), ptr::null_mut());
        let raw = stream.as_inner();
        // SAFETY: a live stream, valid places for the answers, all left alone until the wait.
        unsafe {
            let mut output = results.view(layout.segments());
            let begun = sys::cuStreamBeginCapture_v2(raw, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
            assert_eq!(begun, sys::CUresult::CUDA_SUCCESS);
            let cold = reducer.enqueue(&on_device, 0, &layout, &mut output, &stream);
            assert_eq!(matches!(cold, Err(Error::WarmUpFirst { .. })), needs_room, "{cold:?}");
            sys::cuStreamEndCapture(raw, &mut graph);
            sys::cuGraphDestroy(graph);
            reducer.warm_up(&layout).unwrap();
            assert_eq!(
                sys::cuStreamBeginCapture_v2(raw, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                sys::CUresult::CUDA_SUCCESS
            );
            for _ in 0..3 {
                reducer.enqueue(&on_device, 0, &layout, &mut output, &stream).unwrap();
            }
            assert_eq!(sys::cuStreamEndCapture(raw, &mut graph), sys::CUresult::CUDA_SUCCESS);
            assert_eq!(
                sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0),
                sys::CUresult::CUDA_SUCCESS
            );
            for _ in 0..3 {
                assert_eq!(sys::cuGraphLaunch(executable, raw), sys::CUresult::CUDA_SUCCESS);
            }
        }
        stream.synchronize().unwrap();
        assert_eq!(results.take(), bytes(&expected), "in a graph");
        // SAFETY: ours, and done.
        unsafe {
            sys::cuGraphExecDestroy(executable);
            sys::cuGraphDestroy(graph);
        }
    }
}

#[test]
fn arrays_on_the_device_have_rows_too() {
    let Some(gpu) = gpu() else { return };
    let reducer = gpu.segments(Min::<f32>::new()).unwrap();
    let items = DeviceArray::from_slice(&gpu, &[3.0f32, 1.0, 2.0, 5.0]).unwrap();
    assert_eq!(reducer.reduce_rows(&items, 2).unwrap(), [1.0, 2.0]);
    let ragged = reducer.reduce_rows(&items, 3).unwrap_err();
    assert_eq!(ragged, Error::RaggedRows { items: 4, n: 3 });
}

#[test]
fn what_does_not_fit_is_refused() {
    let Some(gpu) = gpu() else { return };
    let reducer = gpu.segments(Min::<f32>::new()).unwrap();
    let items = DeviceArray::from_slice(&gpu, &[1.0f32; 10]).unwrap();
    let error = reducer.reduce_device(&items, 1, &Layout::rows(5, 2)).unwrap_err();
    assert!(matches!(error, Error::LayoutOutOfRange { least: 1, greatest: 10, len: 10 }), "{error}");
    let mut one = DeviceArray::from_slice(&gpu, &[0.0f32]).unwrap();
    let view = DeviceView::<f32>::clone(&items.view());
    // SAFETY: nothing is launched.
    let error = unsafe {
        reducer.enqueue(&view, 0, &Layout::rows(5, 2), &mut one, StreamRef::default_stream()).unwrap_err()
    };
    assert_eq!(error, Error::OutputLength { segments: 5, room: 1 });
    let unfit = reducer
        .with_settings(forced(Some(SegmentStrategy::Thread)))
        .plan(&Layout::rows(5, 1000))
        .unwrap_err();
    assert!(matches!(unfit, Error::StrategyUnfit { strategy: "thread", n: 1000, .. }), "{unfit}");
    let prepared = reducer.prepare(&SegmentPlan::from_lengths(&[20]).unwrap()).unwrap();
    // SAFETY: nothing is launched.
    let error = unsafe {
        reducer.enqueue_segments(&items, &prepared, &mut one, StreamRef::default_stream()).unwrap_err()
    };
    assert!(matches!(error, Error::LayoutOutOfRange { greatest: 19, len: 10, .. }), "{error}");
}

/// A matrix times a vector, by kernels that are compiled ahead: the exact sums of small numbers, and the CPU's bits of others.
#[test]
fn products_with_what_lies_beside() {
    let Some(engine) = gpu() else { return };
    let on = |engine: &Engine, matrix: &[f32], vector: &[f32]| {
        let mut dots = engine.segments_beside(Dot::<f32>::new(), Side::items(vector)).unwrap();
        dots.reduce_rows(matrix, vector.len() as u64).unwrap()
    };
    for (m, n) in [(1, 1), (300, 7), (4097, 2), (40, 100), (9, 513), (3, 9001), (2, 70_000), (0, 5)] {
        let small = |k: usize| (k % 19) as f32 - 9.0;
        let matrix: Vec<f32> = (0..m * n).map(small).collect();
        let vector: Vec<f32> = (0..n).map(|i| small(7 * i)).collect();
        let exact =
            |row: &[f32]| row.iter().zip(&vector).map(|(&x, &b)| x as i64 * b as i64).sum::<i64>() as f32;
        let expected: Vec<f32> = matrix.chunks(n).map(exact).collect();
        assert_eq!(on(&engine, &matrix, &vector), expected, "{m} rows of {n}");
        let (matrix, vector) = (ordinary::<f32>(m * n, (m + n) as u64), ordinary::<f32>(n, 9));
        let (ours, theirs) = (on(&engine, &matrix, &vector), on(&Engine::cpu(), &matrix, &vector));
        assert_eq!(bytes(&ours), bytes(&theirs), "{m} rows of {n}");
    }
}
