//! Launching reductions.

use std::{mem::MaybeUninit, ptr, sync::Arc};

use cust::sys::{CUdeviceptr, CUstream};
use warpfold_gpu_kernels::device::Part;
use warpfold_monoid::Monoid;

use super::{
    CudaArray, DeviceView, Workspace,
    driver::{self, Doing},
    gpu::{Gpu, KEPT_BYTES},
    kernels::Loaded,
};
use crate::{
    Error,
    erased::{ArrayHead, Erased, Lent, NOTHING, Types, bytes_of_mut},
    plan::{DeviceFacts, OperatorLayout, PARAMETER_BYTES, ReducePlan, Strategy, partials_offset},
};

/// Bytes that items are read and copied in, where they do not lie side by side.
const PIECE_BYTES: usize = 4 << 20;

/// An operator's kernels, ready to launch.
#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    pub(crate) gpu: Arc<Gpu>,
    pub(super) loaded: Arc<Loaded>,
    facts: DeviceFacts,
    /// Device memory that host arrays may take, if it is limited.
    pub(super) device_bytes: Option<u64>,
}

impl Launcher {
    pub(crate) fn new(
        gpu: Arc<Gpu>,
        loaded: Arc<Loaded>,
        facts: DeviceFacts,
        types: &Types,
        device_bytes: Option<u64>,
    ) -> Result<Self, Error> {
        let bytes = types.array_bytes;
        if bytes > PARAMETER_BYTES {
            return Err(Error::OperatorTooLarge { bytes, limit: PARAMETER_BYTES });
        }
        debug_assert!(loaded.is_of(&gpu.context));
        Ok(Launcher { gpu, loaded, facts, device_bytes })
    }

    pub(crate) fn plan(&self, n: u64, layout: OperatorLayout) -> Result<ReducePlan, Error> {
        ReducePlan::new(n, layout, &self.facts)
    }

    /// Reduces device memory on a stream of our own, waits, and returns the output.
    pub(crate) fn reduce<Op: Monoid>(
        &self,
        op: Op,
        input: DeviceView<'_, Op::Item>,
    ) -> Result<Op::Output, Error> {
        let mut output = MaybeUninit::uninit();
        // SAFETY: the lane's own stream; an output's place; the view's items.
        unsafe {
            let input = (input.address, input.len);
            self.wait_for(Erased::of(&op), input, None, bytes_of_mut(&mut output))?;
            Ok(output.assume_init())
        }
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
        let mut output = MaybeUninit::uninit();
        // SAFETY: the caller's promise; an output's place; the view's items.
        unsafe {
            let input = (input.address, input.len);
            self.wait_for(Erased::of(&op), input, Some(stream), bytes_of_mut(&mut output))?;
            Ok(output.assume_init())
        }
    }

    /// Reduces `n` items at an address on a stream, else on one of our own, and waits. If there is no error, the output has
    /// been written.
    ///
    /// # Safety
    ///
    /// A live stream of the context, or the default one; items and an output of the operator's types.
    unsafe fn wait_for(
        &self,
        op: Erased<'_>,
        input: (CUdeviceptr, u64),
        stream: Option<CUstream>,
        output: &mut [MaybeUninit<u8>],
    ) -> Result<(), Error> {
        let Some(stream) = stream else {
            // SAFETY: the caller's promise; the lane's own stream.
            return self
                .gpu
                .with_lane(0, |lane| unsafe { self.wait_for(op, input, Some(lane.stream), output) });
        };
        let context = &self.gpu.context;
        let _current = context.enter_or_error()?;
        self.check_address(input, op.types.layout.item_bytes)?;
        // SAFETY: a live stream; the input is borrowed until the wait, the output is a result's place; on an error
        // nothing was launched, or the driver has given up.
        unsafe {
            if context.is_capturing(stream)? {
                return Err(Error::Capturing);
            }
            self.gpu.receive(output, |output| {
                self.enqueue(op, input, output, stream, None)?;
                context.synchronize(stream, || self.describe(input.1))
            })
        }
    }

    /// Copies items to the device, reduces them there, and waits. If there is no error, the output has been written.
    ///
    /// # Safety
    ///
    /// Items and an output of the operator's types.
    pub(crate) unsafe fn reduce_lent(
        &self,
        op: Erased<'_>,
        Lent { n, as_one, run }: Lent<'_>,
        output: &mut [MaybeUninit<u8>],
    ) -> Result<(), Error> {
        let context = &self.gpu.context;
        let item_bytes = op.types.layout.item_bytes;
        let too_large = Error::DeviceMemory { needed: u64::MAX, free: 0, total: context.info.memory_bytes };
        let bytes = n.checked_mul(item_bytes as u64).and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.ok_or(too_large)?;
        let plan = self.plan(n, op.types.layout)?;
        let most = self.device_bytes.map_or(KEPT_BYTES as u64, |limit| limit.min(KEPT_BYTES as u64));
        if plan.strategy == Strategy::LongChunks && bytes as u64 > most {
            let mut array = CudaArray::new(self, op, plan.shape)?;
            let piece = if as_one { n } else { (PIECE_BYTES / item_bytes.max(1)).max(1) as u64 };
            let mut next = 0;
            while next < n {
                let end = n.min(next.saturating_add(piece));
                // SAFETY: a run of items, copied before the next is asked for.
                unsafe { array.push(op, &[(run(next..end), end - next)])? };
                next = end;
            }
            // SAFETY: an output's place.
            return unsafe { array.finish(op, output) };
        }
        let _current = context.enter_or_error()?;
        self.gpu.with_lane(bytes, |lane| {
            let wait = || {
                // SAFETY: the lane's own stream.
                unsafe { context.synchronize(lane.stream, || self.describe(n)) }
            };
            // A borrowed run may be as long as the array; one that is read, only a piece.
            let piece = if as_one { n } else { (PIECE_BYTES / item_bytes.max(1)).max(1) as u64 };
            let mut next = 0;
            while next < n && bytes > 0 {
                let end = n.min(next.saturating_add(piece));
                let from = run(next..end);
                let to = lane.address() + next * item_bytes as u64;
                let count = (end - next) as usize * item_bytes;
                // SAFETY: the buffer has room for all items; the run is waited for before it goes.
                let copied = unsafe { driver::cuMemcpyHtoDAsync_v2(to, from.cast(), count, lane.stream) };
                let waited = wait();
                copied.doing(|| format!("copying {count} bytes to the device"))?;
                waited?;
                next = end;
            }
            // SAFETY: the buffer holds the items; as in `wait_for`.
            unsafe {
                self.gpu.receive(output, |output| {
                    self.enqueue(op, (lane.address(), n), output, lane.stream, None)?;
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
    pub(crate) unsafe fn enqueue(
        &self,
        op: Erased<'_>,
        (input, n): (CUdeviceptr, u64),
        output: CUdeviceptr,
        stream: CUstream,
        workspace: Option<&Workspace>,
    ) -> Result<(), Error> {
        aligned_to(input, op.types.item_align)?;
        aligned_to(output, op.types.output_align)?;
        let plan = self.plan(n, op.types.layout)?;
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
        let partials = base + partials_offset(op.types.layout.acc_align);
        let params = op.params(ArrayHead {
            input: ptr::with_exposed_provenance(input as usize),
            n,
            output: ptr::with_exposed_provenance_mut(output as usize),
            partials: ptr::with_exposed_provenance_mut(partials as usize),
            ticket: ptr::with_exposed_provenance_mut(base as usize),
            chunk: plan.shape.chunk,
            chunks: plan.grid,
            groups: plan.shape.groups,
            part: Part::WHOLE,
            op: NOTHING,
        });
        // Captured, long reductions gain nothing by an early start, and lose up to 2 %.
        let early = !(capturing && plan.strategy == Strategy::LongChunks);
        let ReducePlan { grid, block, item_bytes, .. } = plan;
        let over = || format!(" over {n} items of {item_bytes} bytes");
        // SAFETY: the parameters of this operator's kernel, whose descriptor was compared; what they point to is the
        // caller's promise and the workspace's size.
        let launched = unsafe {
            let kernel = plan.strategy.kernel();
            self.loaded.launch(kernel, (grid, block), params.as_ptr(), stream, early, over)
        };
        launched.inspect_err(|_| {
            if capturing {
                gpu.pool.discard_captured(stream);
            } else if workspace.is_none() {
                // SAFETY: a live stream, by the caller's promise.
                unsafe { gpu.pool.discard(context, stream) };
            }
        })
    }

    /// The same on memory that is checked to be the device's.
    ///
    /// # Safety
    ///
    /// As for [`enqueue`](Launcher::enqueue).
    pub(crate) unsafe fn enqueue_checked(
        &self,
        op: Erased<'_>,
        input: (CUdeviceptr, u64),
        output: CUdeviceptr,
        stream: CUstream,
    ) -> Result<(), Error> {
        let _current = self.gpu.context.enter_or_error()?;
        self.check_address(input, op.types.layout.item_bytes)?;
        self.check_address((output, 1), op.types.output_bytes)?;
        // SAFETY: the caller's promise.
        unsafe { self.enqueue(op, input, output, stream, None) }
    }

    /// Are so many items of so many bytes memory of this device? The context is current.
    fn check_address(&self, (address, len): (CUdeviceptr, u64), bytes: usize) -> Result<(), Error> {
        if len == 0 || bytes == 0 {
            return Ok(());
        }
        self.gpu.context.check_address(address)
    }

    fn describe(&self, n: u64) -> String {
        format!("waiting for {} over {n} items", self.loaded.export.name)
    }
}

pub(super) fn aligned_to(address: u64, align: usize) -> Result<(), Error> {
    if address.is_multiple_of(align as u64) { Ok(()) } else { Err(Error::Misaligned { address, align }) }
}
