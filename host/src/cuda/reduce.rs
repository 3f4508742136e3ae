//! Launching reductions.

use std::{ffi::c_void, ptr, sync::Arc};

use cust::sys::{CUdeviceptr, CUstream};
use warpfold_gpu_kernels::device::ReduceParams;
use warpfold_monoid::Monoid;

use super::{
    DeviceView, Workspace,
    driver::{self, Doing, LaunchAttribute, LaunchConfig},
    gpu::Gpu,
    kernels::Loaded,
};
use crate::{
    Error, Items,
    plan::{DeviceFacts, OperatorLayout, PARAMETER_BYTES, ReducePlan, Strategy, partials_offset},
};

/// Bytes that items are read and copied in, where they do not lie side by side.
const PIECE_BYTES: usize = 4 << 20;

/// An operator's kernels, ready to launch.
#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    pub(crate) gpu: Arc<Gpu>,
    loaded: Arc<Loaded>,
    facts: DeviceFacts,
}

impl Launcher {
    pub(crate) fn new<Op: Monoid>(
        gpu: Arc<Gpu>,
        loaded: Arc<Loaded>,
        facts: DeviceFacts,
    ) -> Result<Self, Error> {
        let bytes = size_of::<ReduceParams<Op>>();
        if bytes > PARAMETER_BYTES {
            return Err(Error::OperatorTooLarge { bytes, limit: PARAMETER_BYTES });
        }
        debug_assert!(loaded.is_of(&gpu.context));
        Ok(Launcher { gpu, loaded, facts })
    }

    pub(crate) fn plan<Op: Monoid>(&self, n: u64) -> Result<ReducePlan, Error> {
        ReducePlan::new(n, OperatorLayout::of::<Op>(), &self.facts)
    }

    /// Reduces device memory on a stream of our own, waits, and returns the output.
    pub(crate) fn reduce<Op: Monoid>(
        &self,
        op: Op,
        input: DeviceView<'_, Op::Item>,
    ) -> Result<Op::Output, Error> {
        // SAFETY: the lane's own stream.
        self.gpu.with_lane(0, |lane| unsafe { self.reduce_on(op, input, lane.stream) })
    }

    /// Reduces device memory on a stream, waits, and returns the output.
    ///
    /// # Safety
    ///
    /// A live stream of the context, or the default one.
    pub(crate) unsafe fn reduce_on<Op: Monoid>(
        &self,
        op: Op,
        input: DeviceView<'_, Op::Item>,
        stream: CUstream,
    ) -> Result<Op::Output, Error> {
        let context = &self.gpu.context;
        let _current = context.enter_or_error()?;
        self.check_address(input)?;
        // SAFETY: a live stream; the input is borrowed until the wait, the output is a result's place; on an error
        // nothing was launched, or the driver has given up.
        unsafe {
            if context.is_capturing(stream)? {
                return Err(Error::Capturing);
            }
            self.gpu.receive(|output| {
                self.enqueue(op, input.address, input.len, output, stream, None)?;
                context.synchronize(stream, || self.describe(input.len))
            })
        }
    }

    /// Copies items to the device, reduces them there, waits, and returns the output.
    pub(crate) fn reduce_items<Op: Monoid, S: Items<Op::Item> + ?Sized>(
        &self,
        op: Op,
        items: &S,
    ) -> Result<Op::Output, Error> {
        let context = &self.gpu.context;
        let (n, item_bytes) = (items.len(), size_of::<Op::Item>());
        let too_large = Error::DeviceMemory { needed: u64::MAX, free: 0, total: context.info.memory_bytes };
        let bytes = n.checked_mul(item_bytes as u64).and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.ok_or(too_large)?;
        let _current = context.enter_or_error()?;
        self.gpu.with_lane(bytes, |lane| {
            let wait = || {
                // SAFETY: the lane's own stream.
                unsafe { context.synchronize(lane.stream, || self.describe(n)) }
            };
            let mut scratch = Vec::new();
            // A borrowed run may be as long as the array; one that is read, only a piece.
            let piece = match items.as_slice() {
                Some(_) => n,
                None => (PIECE_BYTES / item_bytes.max(1)).max(1) as u64,
            };
            let mut next = 0;
            while next < n && bytes > 0 {
                let end = n.min(next.saturating_add(piece));
                let run = items.run(next..end, &mut scratch);
                let to = lane.address() + next * item_bytes as u64;
                let count = size_of_val(run);
                // SAFETY: the buffer has room for all items; the run is waited for before it goes.
                let copied =
                    unsafe { driver::cuMemcpyHtoDAsync_v2(to, run.as_ptr().cast(), count, lane.stream) };
                let waited = wait();
                copied.doing(|| format!("copying {count} bytes to the device"))?;
                waited?;
                next = end;
            }
            // SAFETY: the buffer holds the items; as in `reduce`.
            unsafe {
                self.gpu.receive(|output| {
                    self.enqueue(op, lane.address(), n, output, lane.stream, None)?;
                    wait()
                })
            }
        })
    }

    /// Enqueues a reduction of `n` items at `input` into the one at `output`.
    ///
    /// # Safety
    ///
    /// `stream` is a live stream of the context (or the default one). Until the work has finished, `input` is readable
    /// and not written, `output` writable and not used otherwise, and `workspace` not used by other work. If the
    /// stream is being captured, all this holds for every run of the graph; an explicit workspace is used by one run
    /// at a time.
    pub(crate) unsafe fn enqueue<Op: Monoid>(
        &self,
        op: Op,
        input: CUdeviceptr,
        n: u64,
        output: CUdeviceptr,
        stream: CUstream,
        workspace: Option<&Workspace>,
    ) -> Result<(), Error> {
        aligned::<Op::Item>(input)?;
        aligned::<Op::Output>(output)?;
        let plan = self.plan::<Op>(n)?;
        let (gpu, context, bytes) = (&self.gpu, &self.gpu.context, plan.workspace_bytes);
        if let Some(workspace) = workspace {
            if !Arc::ptr_eq(&workspace.gpu.context, context) {
                return Err(Error::ForeignWorkspace);
            }
            if workspace.bytes() < bytes {
                return Err(Error::WorkspaceTooSmall { needed: bytes, available: workspace.bytes() });
            }
        }
        let _current = context.enter_or_error()?;
        // SAFETY: a live stream, by the caller's promise; the context is current.
        let capturing = unsafe { context.is_capturing(stream)? };
        // SAFETY: as above.
        let block = unsafe {
            if capturing {
                gpu.give_to_graph(stream, |capture| match workspace {
                    Some(workspace) => Ok(Some(workspace.block.clone())),
                    None if bytes == 0 => Ok(None),
                    None => gpu.pool.of_capture(stream, capture, bytes).map(Some),
                })?
            } else {
                match workspace {
                    Some(workspace) => Some(workspace.block.clone()),
                    None if bytes == 0 => None,
                    None => Some(gpu.pool.of_stream(context, stream, bytes)?),
                }
            }
        };
        let base = block.as_ref().map_or(0, |block| block.address());
        let mut params = ReduceParams::<Op> {
            input: ptr::with_exposed_provenance(input as usize),
            n,
            output: ptr::with_exposed_provenance_mut(output as usize),
            partials: ptr::with_exposed_provenance_mut(
                (base + partials_offset(align_of::<Op::Acc>())) as usize,
            ),
            ticket: ptr::with_exposed_provenance_mut(base as usize),
            chunk: plan.shape.chunk,
            chunks: plan.grid,
            groups: plan.shape.groups,
            op,
        };
        let function = match plan.strategy {
            Strategy::ShortChunks => self.loaded.reduce_short,
            Strategy::LongChunks => self.loaded.reduce_long,
            Strategy::OneBlock | Strategy::Cpu => self.loaded.reduce_one,
        };
        let mut arguments = [ptr::from_mut(&mut params).cast::<c_void>()];
        // Captured, long reductions gain nothing by it, and lose up to 2 %.
        let early = self.loaded.wait && !(capturing && plan.strategy == Strategy::LongChunks);
        let overlapping = context.launch_overlapping.filter(|_| early);
        // SAFETY: the kernel of this operator, whose descriptor was compared, with its one parameter; what that points
        // to is the caller's promise and the workspace's size. A kernel that is launched early waits before it touches
        // any of that.
        let launched = unsafe {
            match overlapping {
                Some(launch) => {
                    let attribute = LaunchAttribute::OVERLAP;
                    let config = LaunchConfig {
                        grid: [plan.grid, 1, 1],
                        block: [plan.block, 1, 1],
                        shared_bytes: 0,
                        stream,
                        attributes: &attribute,
                        attribute_count: 1,
                    };
                    driver::launched(launch(&config, function, arguments.as_mut_ptr(), ptr::null_mut()))
                }
                None => driver::cuLaunchKernel(
                    function,
                    plan.grid,
                    1,
                    1,
                    plan.block,
                    1,
                    1,
                    0,
                    stream,
                    arguments.as_mut_ptr(),
                    ptr::null_mut(),
                ),
            }
        };
        launched.map_err(|failure| {
            if capturing {
                gpu.pool.discard_captured(stream);
            } else if workspace.is_none() {
                // SAFETY: a live stream, by the caller's promise.
                unsafe { gpu.pool.discard(context, stream) };
            }
            let kernel = plan.strategy.kernel();
            failure.doing(format!(
                "launching {}__{kernel}<<<{}, {}>>> over {n} items of {} bytes",
                self.loaded.export.name, plan.grid, plan.block, plan.item_bytes
            ))
        })
    }

    /// The same on memory that is checked to be the device's.
    ///
    /// # Safety
    ///
    /// As for [`enqueue`](Launcher::enqueue).
    pub(crate) unsafe fn enqueue_checked<Op: Monoid>(
        &self,
        op: Op,
        input: DeviceView<'_, Op::Item>,
        output: DeviceView<'_, Op::Output>,
        stream: CUstream,
    ) -> Result<(), Error> {
        let _current = self.gpu.context.enter_or_error()?;
        self.check_address(input)?;
        self.check_address(output)?;
        // SAFETY: the caller's promise.
        unsafe { self.enqueue(op, input.address, input.len, output.address, stream, None) }
    }

    /// Is it memory of this device? The context is current.
    fn check_address<T>(&self, view: DeviceView<'_, T>) -> Result<(), Error> {
        if view.len == 0 || size_of::<T>() == 0 {
            return Ok(());
        }
        self.gpu.context.check_address(view.address)
    }

    fn describe(&self, n: u64) -> String {
        format!("waiting for {} over {n} items", self.loaded.export.name)
    }
}

pub(super) fn aligned<T>(address: u64) -> Result<(), Error> {
    if address.is_multiple_of(align_of::<T>() as u64) {
        Ok(())
    } else {
        Err(Error::Misaligned { address, align: align_of::<T>() })
    }
}
