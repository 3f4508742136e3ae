//! Launching scans.

use std::{ptr, sync::Arc};

use cust::sys::{CUdeviceptr, CUstream};
use warpfold_gpu_kernels::scan::ScanParams;
use warpfold_monoid::Monoid;

use super::{
    driver::{self, Doing},
    gpu::Gpu,
    kernels::Loaded,
    reduce::aligned_to,
    workspace::Block,
};
use crate::{
    Error,
    plan::{DeviceFacts, PARAMETER_BYTES, scans::ScanPlan},
    scans::{Lines, Setting},
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
    facts: DeviceFacts,
}

impl ScanLauncher {
    pub(crate) fn new<Op: Monoid>(
        gpu: Arc<Gpu>,
        loaded: Arc<Loaded>,
        facts: DeviceFacts,
    ) -> Result<Self, Error> {
        let bytes = size_of::<ScanParams<Op>>();
        if bytes > PARAMETER_BYTES {
            return Err(Error::OperatorTooLarge { bytes, limit: PARAMETER_BYTES });
        }
        debug_assert!(loaded.is_of(&gpu.context));
        Ok(ScanLauncher { gpu, loaded, facts })
    }

    fn workspace_bytes(plan: &ScanPlan) -> u64 {
        plan.pairs.saturating_mul(PAIR).saturating_add(RECORDS)
    }

    /// Lays a workspace ready for one capture.
    pub(crate) fn warm_up<Op: Monoid>(&self, lines: &Lines) -> Result<(), Error> {
        let gpu = &self.gpu;
        let plan = ScanPlan::new::<Op>(lines, &self.facts)?;
        let _current = gpu.context.enter_or_error()?;
        gpu.scan_pool.add_spare(Block::new_all_zero(&gpu.context, Self::workspace_bytes(&plan))?);
        Ok(())
    }

    /// Enqueues a scan of lines that begin at `input`, the first result going to `output`.
    ///
    /// # Safety
    ///
    /// `stream` is a live stream of the context (or the default one). Until the work has finished (in every run of the
    /// graph, if the stream is being captured) all items are readable and not written, and all results writable and not
    /// used otherwise; they are the same memory, item for item, or do not overlap.
    pub(crate) unsafe fn enqueue<Op: Monoid>(
        &self,
        op: Op,
        setting: &Setting<Op::Acc>,
        input: CUdeviceptr,
        output: CUdeviceptr,
        lines: &Lines,
        stream: CUstream,
    ) -> Result<(), Error> {
        aligned_to(input, align_of::<Op::Item>())?;
        aligned_to(output, align_of::<Op::Output>())?;
        if lines.items() == 0 {
            return Ok(());
        }
        let plan = ScanPlan::new::<Op>(lines, &self.facts)?;
        let (gpu, context, bytes) = (&self.gpu, &self.gpu.context, Self::workspace_bytes(&plan));
        let _current = context.enter_or_error()?;
        // SAFETY: a live stream, by the caller's promise; the context is current.
        let capturing = unsafe { context.is_capturing(stream)? };
        // SAFETY: as above.
        let block = unsafe {
            match (capturing, plan.chained()) {
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
        let room = block.as_ref().map_or(0, |block| (block.bytes() - RECORDS) / PAIR);
        let ends =
            (ptr::with_exposed_provenance(input as usize), ptr::with_exposed_provenance_mut(output as usize));
        let counter = ptr::with_exposed_provenance_mut(base as usize);
        let records = ptr::with_exposed_provenance_mut((base + RECORDS) as usize);
        let params = setting.params(op, lines, &plan, ends, counter, (records, room));
        let (shape, n, bytes) = ((plan.grid, plan.block), lines.items(), size_of::<Op::Item>());
        let over = || format!(" over {n} items of {bytes} bytes");
        // SAFETY: the parameters of this operator's kernel, whose descriptor was compared; what they point to is the caller's
        // promise and the workspace's size.
        let launched = unsafe {
            self.loaded.launch(setting.kernel(), shape, ptr::from_ref(&params).cast(), stream, true, over)
        };
        launched.inspect_err(|_| {
            if capturing {
                gpu.scan_pool.discard_captured(stream);
            } else if plan.chained() {
                // SAFETY: a live stream, by the caller's promise.
                unsafe { gpu.scan_pool.discard(context, stream) };
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
                let done = self.enqueue(op, setting, from, to, lines, lane.stream);
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
                let done = self.enqueue(op, setting, at, at, lines, lane.stream);
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
