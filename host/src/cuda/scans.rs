//! Launching scans.

use std::{any::TypeId, ptr, sync::Arc};

use cust::sys::{CUdeviceptr, CUstream};
use warpfold_gpu_kernels::{
    export::{Export, Family},
    scan::{record_pairs, segments::fits},
};
use warpfold_monoid::{
    Monoid, Plain,
    keyed::{Equality, RunEnds, Runs},
    scan::Tiling,
};

use super::{
    driver::{self, Doing},
    gpu::Gpu,
    kernels::Loaded,
    reduce::aligned_to,
    runs::RunLauncher,
    workspace::Block,
};
use crate::{
    Error,
    module::Kernels,
    plan::{
        DeviceFacts, PARAMETER_BYTES,
        scans::{Bounds, Count, ScanPlan, Work},
    },
    scans::{Lines, Memory, Params, Setting},
};

/// Where a workspace's records begin: the counter has the bytes before to itself.
const RECORDS: u64 = 256;

/// Bytes of a pair of words.
const PAIR: u64 = size_of::<[u64; 2]>() as u64;

/// An operator's kernels for scans, ready to launch.
#[derive(Clone, Debug)]
pub(crate) struct ScanLauncher {
    pub(crate) gpu: Arc<Gpu>,
    loaded: Arc<Loaded>,
    /// Those for many lines, which are loaded when they are needed first.
    lines: Option<(Kernels, &'static Export)>,
    facts: DeviceFacts,
}

impl ScanLauncher {
    pub(crate) fn new<Op: Monoid>(
        gpu: Arc<Gpu>,
        loaded: Arc<Loaded>,
        lines: Option<(Kernels, &'static Export)>,
        facts: DeviceFacts,
    ) -> Result<Self, Error> {
        let bytes = Params::<Op>::BYTES;
        if bytes > PARAMETER_BYTES {
            return Err(Error::OperatorTooLarge { bytes, limit: PARAMETER_BYTES });
        }
        debug_assert!(loaded.is_of(&gpu.context));
        // A table may list what was not built for devices.
        let built = |(kernels, export): &(Kernels, &'static Export)| {
            kernels.modules.iter().any(|module| module.name == export.name)
        };
        Ok(ScanLauncher { gpu, loaded, lines: lines.filter(built), facts })
    }

    /// Are there kernels for segments of any lengths?
    pub(crate) fn scans_segments<Op: Monoid>(&self) -> bool {
        self.lines.is_some() && const { fits::<Op>() }
    }

    fn workspace_bytes(pairs: u64) -> u64 {
        pairs.saturating_mul(PAIR).saturating_add(RECORDS)
    }

    /// Lays a workspace ready for one capture of any scan of up to `n` items.
    pub(crate) fn warm_up<Op: Monoid>(&self, n: u64) -> Result<(), Error> {
        let gpu = &self.gpu;
        // The most that columns of a window and an item need: two windows, a tile and a group.
        let windows = n.div_ceil(const { Tiling::of::<Op>() }.warp() as u64);
        let each = record_pairs(size_of::<Op::Acc>()) as u64;
        let pairs = windows.saturating_add(1).saturating_mul(4 * each);
        let _current = gpu.context.enter_or_error()?;
        gpu.scan_pool.add_spare(Block::new_all_zero(&gpu.context, Self::workspace_bytes(pairs))?);
        Ok(())
    }

    /// Enqueues a scan of what begins at `input`, the first result going to `output`.
    ///
    /// # Safety
    ///
    /// `stream` is a live stream of the context (or the default one). Until the work has finished (in every run of the
    /// graph, if the stream is being captured) all items, and segments' bounds, are readable and not written, and all results
    /// writable and not used otherwise; they are the same memory, item for item, or do not overlap. Offsets never decrease,
    /// and none is more than the array's length.
    pub(crate) unsafe fn enqueue<Op: Monoid>(
        &self,
        op: Op,
        setting: &Setting<Op::Acc>,
        input: CUdeviceptr,
        output: CUdeviceptr,
        work: &Work<'_>,
        stream: CUstream,
    ) -> Result<(), Error> {
        aligned_to(input, align_of::<Op::Item>())?;
        aligned_to(output, align_of::<Op::Output>())?;
        if work.items() == 0 {
            return Ok(());
        }
        let plan = ScanPlan::new::<Op>(work, &self.facts, self.lines.is_some())?;
        let (gpu, context, bytes) = (&self.gpu, &self.gpu.context, Self::workspace_bytes(plan.pairs));
        let (kernel, by_lines) = plan.kernel(setting.form.reverse);
        let _current = context.enter_or_error()?;
        let loaded = match self.lines.filter(|_| by_lines) {
            Some(lines) => &gpu.kernels(TypeId::of::<Op>(), Family::ScanLines, &|| Ok(lines))?,
            None => &self.loaded,
        };
        // SAFETY: a live stream, by the caller's promise; the context is current.
        let capturing = unsafe { context.is_capturing(stream)? };
        // SAFETY: as above.
        let block = unsafe {
            match (capturing, plan.chained) {
                (true, chained) => gpu.give_to_graph(stream, |capture| {
                    if chained {
                        gpu.scan_pool.of_capture(stream, capture, bytes).map(Some)
                    } else {
                        Ok(None)
                    }
                })?,
                (false, true) => Some(gpu.scan_pool.of_stream(context, stream, bytes)?),
                (false, false) => None,
            }
        };
        let base = block.as_ref().map_or(0, |block| block.address());
        let memory = Memory {
            input: ptr::with_exposed_provenance(input as usize),
            output: ptr::with_exposed_provenance_mut(output as usize),
            counter: ptr::with_exposed_provenance_mut(base as usize),
            records: ptr::with_exposed_provenance_mut((base + RECORDS) as usize),
            capacity: block.as_ref().map_or(0, |block| (block.bytes() - RECORDS) / PAIR),
        };
        let params = setting.params(op, work, &plan, memory);
        let (shape, n, bytes) = ((plan.grid, plan.block, plan.shared), work.items(), size_of::<Op::Item>());
        let over = || format!(" over {n} items of {bytes} bytes");
        // SAFETY: the parameters of this operator's kernel, whose descriptor was compared; what they point to is the caller's
        // promise and the workspace's size.
        let launched = unsafe { loaded.launch_with(kernel, shape, params.as_ptr(), stream, true, over) };
        launched.inspect_err(|_| {
            if capturing {
                gpu.scan_pool.discard_captured(stream);
            } else if plan.chained {
                // SAFETY: a live stream, by the caller's promise.
                unsafe { gpu.scan_pool.discard(context, stream) };
            }
        })
    }

    /// Bytes of the room for offsets and their count, and of the workspace that both launches of a scan by key share.
    fn run_bytes<K: Plain, E: Equality<K>, Op: Monoid>(
        &self,
        runs: &RunLauncher,
        n: u64,
    ) -> Result<(u64, u64), Error> {
        let segments = Bounds { offsets: 0, count: Count::Known(0) };
        let plan = ScanPlan::new::<Op>(&Work::Segments { len: n, segments }, &self.facts, true)?;
        let both = runs.bytes::<K, E, RunEnds>(n)?.max(Self::workspace_bytes(plan.pairs));
        Ok((n.saturating_add(2).saturating_mul(8), both))
    }

    /// Lays workspaces ready for one capture of a scan by key.
    pub(crate) fn warm_up_runs<K: Plain, E: Equality<K>, Op: Monoid>(
        &self,
        runs: &RunLauncher,
        n: u64,
    ) -> Result<(), Error> {
        let (room, workspace) = self.run_bytes::<K, E, Op>(runs, n)?;
        let (gpu, context) = (&self.gpu, &self.gpu.context);
        let _current = context.enter_or_error()?;
        gpu.scan_pool.add_spare(Block::new_all_zero(context, workspace)?);
        gpu.tag_pool.add_spare(Block::new_zeroed(context, room)?);
        Ok(())
    }

    /// Enqueues a scan of each run of `n` keys and items, the first result going to `output`.
    ///
    /// # Safety
    ///
    /// As for [`enqueue`](ScanLauncher::enqueue), of the keys too.
    pub(crate) unsafe fn enqueue_runs<K: Plain, E: Equality<K>, Op: Monoid>(
        &self,
        op: Op,
        setting: &Setting<Op::Acc>,
        (runs, ends): (&RunLauncher, Runs<K, E, RunEnds>),
        n: u64,
        (keys, input, output): (CUdeviceptr, CUdeviceptr, CUdeviceptr),
        stream: CUstream,
    ) -> Result<(), Error> {
        aligned_to(keys, align_of::<K>())?;
        aligned_to(input, align_of::<Op::Item>())?;
        aligned_to(output, align_of::<Op::Output>())?;
        if n == 0 {
            return Ok(());
        }
        let (bytes, both) = self.run_bytes::<K, E, Op>(runs, n)?;
        let gpu = &self.gpu;
        let _current = gpu.context.enter_or_error()?;
        let _together = gpu.together();
        // SAFETY: a live stream, by the caller's promise; the context is current. A capture's workspace is taken once, for the launch
        // that needs more.
        let (block, captured) = unsafe {
            gpu.workspace(&gpu.scan_pool, stream, both)?;
            gpu.workspace(&gpu.tag_pool, stream, bytes)?
        };
        // The count, and the offsets, of which the first is 0.
        let count = block.as_ref().map_or(0, |block| block.address());
        let segments = Bounds { offsets: count + 8, count: Count::At(count) };
        let work = Work::Segments { len: n, segments };
        // SAFETY: the caller's promise, and room of the stream's: there are as many runs as keys at most. They end where they say, the
        // last one behind the last item.
        unsafe {
            driver::cuMemsetD8Async(count, 0, 16, stream)
                .doing(|| "beginning a list of offsets")
                .and_then(|()| runs.enqueue(ends, n, (keys, keys, 0), (0, count + 16, count), stream))
                .and_then(|()| self.enqueue(op, setting, input, output, &work, stream))
                .inspect_err(|_| gpu.discard(&gpu.tag_pool, stream, captured))
        }
    }

    /// Scans segments of items, which are copied to the device with their offsets, and copies the results back.
    pub(crate) fn segments<Op: Monoid>(
        &self,
        op: Op,
        setting: &Setting<Op::Acc>,
        items: &[Op::Item],
        offsets: &[u64],
        results: &mut [Op::Output],
    ) -> Result<(), Error> {
        let (bytes, offset_bytes) = (size_of_val(items), size_of_val(offsets));
        let at_offsets = bytes.next_multiple_of(256);
        let at = at_offsets + offset_bytes.next_multiple_of(256);
        let _current = self.gpu.context.enter_or_error()?;
        self.gpu.with_lane(at + size_of_val(results), |lane| {
            let from = lane.address();
            let (bounds, to) = (from + at_offsets as u64, from + at as u64);
            let segments = Bounds { offsets: bounds, count: Count::Known(offsets.len() as u64 - 1) };
            let work = Work::Segments { len: items.len() as u64, segments };
            // SAFETY: the buffer has room for all of them, which outlive the wait.
            unsafe {
                driver::cuMemcpyHtoDAsync_v2(from, items.as_ptr().cast(), bytes, lane.stream)
                    .doing(|| format!("copying {bytes} bytes to the device"))?;
                driver::cuMemcpyHtoDAsync_v2(bounds, offsets.as_ptr().cast(), offset_bytes, lane.stream)
                    .doing(|| format!("copying {offset_bytes} bytes of offsets to the device"))?;
                let done = self.enqueue(op, setting, from, to, &work, lane.stream);
                self.fetch(done, to, results, lane.stream)
            }
        })
    }

    /// Scans lines on a stream of our own and copies the results back: of `items`, which are copied to the device first, or of
    /// what lies at `input`.
    ///
    /// # Safety
    ///
    /// Without items, what lies at `input` may be read and is not written meanwhile.
    pub(crate) unsafe fn on_device<Op: Monoid>(
        &self,
        op: Op,
        setting: &Setting<Op::Acc>,
        items: Option<&[Op::Item]>,
        input: CUdeviceptr,
        lines: &Lines,
        results: &mut [Op::Output],
    ) -> Result<(), Error> {
        let (bytes, results_bytes) = (items.map_or(0, size_of_val), size_of_val(results));
        let at = bytes.next_multiple_of(256);
        let _current = self.gpu.context.enter_or_error()?;
        self.gpu.with_lane((at + results_bytes).max(1), |lane| {
            let from = items.map_or(input, |_| lane.address());
            let to = lane.address() + at as u64;
            // SAFETY: the buffer has room for items and results, which outlive the wait.
            unsafe {
                if let Some(items) = items.filter(|_| bytes > 0) {
                    driver::cuMemcpyHtoDAsync_v2(from, items.as_ptr().cast(), bytes, lane.stream)
                        .doing(|| format!("copying {bytes} bytes to the device"))?;
                }
                let done = self.enqueue(op, setting, from, to, &Work::Lines(lines), lane.stream);
                self.fetch(done, to, results, lane.stream)
            }
        })
    }

    /// Copies items to the device, scans their lines where they lie, and copies the results back.
    pub(crate) fn in_place<T, Op: Monoid<Item = T, Output = T>>(
        &self,
        op: Op,
        setting: &Setting<Op::Acc>,
        lines: &Lines,
        items: &mut [T],
    ) -> Result<(), Error> {
        let bytes = size_of_val(items);
        let _current = self.gpu.context.enter_or_error()?;
        self.gpu.with_lane(bytes.max(1), |lane| {
            let at = lane.address();
            // SAFETY: the buffer has room for the items, which outlive the wait.
            unsafe {
                if bytes > 0 {
                    driver::cuMemcpyHtoDAsync_v2(at, items.as_ptr().cast(), bytes, lane.stream)
                        .doing(|| format!("copying {bytes} bytes to the device"))?;
                }
                let done = self.enqueue(op, setting, at, at, &Work::Lines(lines), lane.stream);
                self.fetch(done, at, items, lane.stream)
            }
        })
    }

    /// Copies results back, if they have been enqueued, and waits.
    ///
    /// # Safety
    ///
    /// A live stream, after whose work as many results lie at `from`. The context is current.
    unsafe fn fetch<T>(
        &self,
        done: Result<(), Error>,
        from: CUdeviceptr,
        results: &mut [T],
        stream: CUstream,
    ) -> Result<(), Error> {
        let bytes = size_of_val(results);
        // SAFETY: the caller's promise.
        unsafe {
            if done.is_ok() && bytes > 0 {
                driver::cuMemcpyDtoHAsync_v2(results.as_mut_ptr().cast(), from, bytes, stream)
                    .doing(|| format!("copying {bytes} bytes from the device"))?;
            }
            self.gpu.context.synchronize(stream, || format!("waiting for {}", self.loaded.export.name))?;
        }
        done
    }
}
