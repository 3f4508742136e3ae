//! Streams folded on a GPU.

use std::{fmt, mem, mem::MaybeUninit, ptr, sync::Arc};

use cust::sys::{CUdeviceptr, CUstream};
use warpfold_monoid::Monoid;

use super::{
    Launcher,
    driver::{self, Doing},
    gpu::Gpu,
    kernels::Loaded,
    memory::Memory,
    reduce::aligned_to,
    transfer::{Event, Pieces, Ring},
};
use crate::{
    Error,
    cpu::stream::Stream,
    erased::{Erased, Params, Types},
    sink::{
        Parts,
        flow::{BLOCK, Flow, KERNEL, Machine},
    },
};

/// Bytes of host memory that are sent to the device at once.
const SLOT_BYTES: u64 = 8 << 20;

/// A stream that a GPU folds.
///
/// Its work is on one CUDA stream at a time: its own for host memory, those of callers for theirs. Where it moves to another,
/// that one waits for what is on the last.
pub(crate) struct CudaStream {
    gpu: Arc<Gpu>,
    loaded: Arc<Loaded>,
    types: &'static Types,
    /// The state, addresses of chunks behind it.
    state: mem::ManuallyDrop<Memory>,
    flow: Flow,
    own: CUstream,
    last: CUstream,
    moved: mem::ManuallyDrop<Event>,
    /// Copies of host memory, beside the kernels.
    copies: CUstream,
    ring: mem::ManuallyDrop<Ring>,
    /// Items in the ring's current buffer, and how many it takes.
    waiting: u64,
    room: u64,
}

// SAFETY: stream handles may be used from any thread.
unsafe impl Send for CudaStream {}

impl fmt::Debug for CudaStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaStream").field("flow", &self.flow).finish_non_exhaustive()
    }
}

/// One call's work. The context is current.
struct Work<'a> {
    loaded: &'a Loaded,
    /// Where addresses of chunks go.
    table: CUdeviceptr,
    stream: CUstream,
}

impl Machine for Work<'_> {
    fn copy(&mut self, from: u64, to: u64, bytes: u64) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the flow copies from the call's items to the state.
        unsafe { driver::cuMemcpyDtoDAsync_v2(to, from, bytes as usize, self.stream) }
            .doing(|| format!("copying {bytes} bytes of a stream's chunk"))
    }

    fn table(&mut self, addresses: &[u64]) -> Result<u64, Error> {
        let bytes = size_of_val(addresses);
        // So few bytes of memory that is not pinned the driver takes before it returns.
        // SAFETY: there is room for a piece's addresses; whoever read what was there before comes before.
        unsafe { driver::cuMemcpyHtoDAsync_v2(self.table, addresses.as_ptr().cast(), bytes, self.stream) }
            .doing(|| format!("copying {bytes} bytes of addresses to the device"))?;
        Ok(self.table)
    }

    fn launch(&mut self, grid: u32, params: &Params, n: u64) -> Result<(), Error> {
        let over = || format!(" over {n} items of a stream");
        // SAFETY: the flow's parameters are those of this operator's kernel.
        unsafe { self.loaded.launch(KERNEL, (grid, BLOCK), params.as_ptr(), self.stream, true, over) }
    }
}

impl CudaStream {
    /// A new one for the operator of these kernels.
    pub(crate) fn new(launcher: &Launcher, op: Erased<'_>) -> Result<CudaStream, Error> {
        let gpu = launcher.gpu.clone();
        let context = &gpu.context;
        let layout = Flow::layout(op.types);
        let table = 8 * warpfold_monoid::tree::PIECE_CHUNKS;
        let state = Memory::new(context, (layout.bytes.next_multiple_of(8) + table) as usize)?;
        let _current = context.enter_or_error()?;
        let moved = Event::new(context)?;
        let flow = Flow::new(op.types, state.address);
        let room = flow.chunk * (SLOT_BYTES / (flow.chunk * op.types.layout.item_bytes as u64).max(1)).max(1);
        let ring = gpu.take_ring(room as usize * op.types.layout.item_bytes);
        let (own, copies) = (context.new_stream()?, context.new_stream()?);
        let stream = CudaStream {
            loaded: launcher.loaded.clone(),
            types: op.types,
            flow,
            own,
            last: own,
            moved: mem::ManuallyDrop::new(moved),
            copies,
            ring: mem::ManuallyDrop::new(ring),
            waiting: 0,
            room,
            state: mem::ManuallyDrop::new(state),
            gpu: gpu.clone(),
        };
        // SAFETY: our own memory and stream.
        unsafe { driver::cuMemsetD8Async(stream.state.address, 0, 4, own) }
            .doing(|| "zeroing a stream's ticket")?;
        Ok(stream)
    }

    /// How many items have come.
    pub(crate) fn len(&self) -> u64 {
        self.flow.position + self.waiting
    }

    /// Moves the stream's work.
    ///
    /// # Safety
    ///
    /// A live stream of the context, which is current.
    unsafe fn move_to(&mut self, stream: CUstream) -> Result<(), Error> {
        if stream != self.last {
            // SAFETY: the caller's promise; the last one lives until this returns.
            unsafe {
                self.moved.record(self.last)?;
                self.moved.hold(stream)?;
            }
            self.last = stream;
        }
        Ok(())
    }

    /// Takes in items of host memory, of which so many lie side by side each.
    ///
    /// # Safety
    ///
    /// They are readable items of the operator, which is the stream's.
    pub(crate) unsafe fn push_host(
        &mut self,
        op: Erased<'_>,
        items: &[(*const u8, u64)],
    ) -> Result<(), Error> {
        let size = self.types.layout.item_bytes;
        let gpu = self.gpu.clone();
        let _current = gpu.context.enter_or_error()?;
        let mut pieces = Pieces::new(items, size);
        while !pieces.is_empty() {
            // So many that the next buffer begins with a chunk.
            let room = self.room - self.flow.tail() - self.waiting;
            let (here, count) = pieces.take(room);
            let at = self.waiting as usize * size;
            let slot = match self.waiting {
                0 => Some(self.ring.slot()?),
                _ => self.ring.current(),
            };
            if let Some(slot) = slot {
                // SAFETY: the caller's promise; the buffer's last copy has been waited for.
                unsafe { slot.pinned.fill(at, &here) };
            }
            self.waiting += count;
            if count == room {
                self.flush(op)?;
            }
        }
        Ok(())
    }

    /// Sends what waits to the device, and folds it there. The context is current.
    fn flush(&mut self, op: Erased<'_>) -> Result<(), Error> {
        let n = mem::take(&mut self.waiting);
        if n == 0 {
            return Ok(());
        }
        let own = self.own;
        // SAFETY: our own stream.
        unsafe { self.move_to(own)? };
        let CudaStream { loaded, flow, state, types, copies, ring, .. } = self;
        let Some(slot) = ring.current() else { return Ok(()) };
        let address = slot.device.as_ref().map_or(0, |device| device.address);
        let bytes = n as usize * types.layout.item_bytes;
        // SAFETY: filled; the copy waits for what read the device's buffer before, and its kernels for the copy.
        unsafe {
            slot.read.hold(*copies)?;
            slot.pinned.send(0, bytes, address, *copies)?;
            slot.sent.record(*copies)?;
            slot.sent.hold(own)?;
        }
        let table = state.address + flow.layout.bytes.next_multiple_of(8);
        let pushed = flow.push(&mut Work { loaded, table, stream: own }, op, address, n);
        // SAFETY: our own stream.
        let recorded = unsafe { slot.read.record(own) };
        ring.next();
        pushed.and(recorded)
    }

    /// Takes in device memory on a stream.
    ///
    /// # Safety
    ///
    /// As [`Sink::push_on`](crate::Sink::push_on) says.
    pub(crate) unsafe fn push_on(
        &mut self,
        op: Erased<'_>,
        (address, n): (CUdeviceptr, u64),
        stream: CUstream,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.begin_on(op, stream, |flow, work| flow.push(work, op, address, n), &[(address, n)]) }
    }

    /// Takes in several batches of device memory on a stream.
    ///
    /// # Safety
    ///
    /// As [`Sink::push_all_on`](crate::Sink::push_all_on) says.
    pub(crate) unsafe fn push_all_on(
        &mut self,
        op: Erased<'_>,
        batches: &mut dyn Iterator<Item = (u64, u64)>,
        stream: CUstream,
    ) -> Result<(), Error> {
        let batches: Vec<_> = batches.collect();
        let push =
            |flow: &mut Flow, work: &mut Work<'_>| flow.push_all(work, op, &mut batches.iter().copied());
        // SAFETY: the caller's promise.
        unsafe { self.begin_on(op, stream, push, &batches) }
    }

    /// # Safety
    ///
    /// As for [`push_on`](CudaStream::push_on).
    unsafe fn begin_on(
        &mut self,
        op: Erased<'_>,
        stream: CUstream,
        push: impl FnOnce(&mut Flow, &mut Work<'_>) -> Result<(), Error>,
        batches: &[(u64, u64)],
    ) -> Result<(), Error> {
        for &(address, n) in batches {
            if n > 0 {
                aligned_to(address, self.types.item_align)?;
            }
        }
        let gpu = self.gpu.clone();
        let _current = gpu.context.enter_or_error()?;
        // SAFETY: a live stream of the context, which is current.
        unsafe {
            if gpu.context.is_capturing(stream)? {
                return Err(Error::Capturing);
            }
            self.flush(op)?;
            self.move_to(stream)?;
        }
        let CudaStream { loaded, flow, state, .. } = self;
        let table = state.address + flow.layout.bytes.next_multiple_of(8);
        push(flow, &mut Work { loaded, table, stream })
    }

    /// Takes in device memory, and waits until it has been folded.
    pub(crate) fn push_and_wait(&mut self, op: Erased<'_>, batch: (CUdeviceptr, u64)) -> Result<(), Error> {
        if batch.1 == 0 {
            return Ok(());
        }
        let gpu = self.gpu.clone();
        let _current = gpu.context.enter_or_error()?;
        gpu.context.check_address(batch.0)?;
        let own = self.own;
        // SAFETY: borrowed memory of the device, and our own stream, which is waited for.
        unsafe {
            let pushed = self.push_on(op, batch, own);
            let waited = gpu.context.synchronize(own, || "waiting for a batch of a stream".into());
            pushed.and(waited)
        }
    }

    /// What has come of it. Waits.
    pub(crate) fn read<Op: Monoid>(&mut self, op: &Op) -> Result<Stream<Op>, Error> {
        let gpu = self.gpu.clone();
        let _current = gpu.context.enter_or_error()?;
        self.flush(Erased::of(op))?;
        let Parts { layout, pieces, chunks, tail, tail_at, position } = Parts::of(&self.flow);
        let mut acc = MaybeUninit::<Op::Acc>::uninit();
        let mut values = Vec::<Op::Acc>::with_capacity(chunks as usize);
        let mut items = Vec::<Op::Item>::with_capacity(tail as usize);
        // SAFETY: room for as many; what is copied was written by launches before, on the last stream or one that it waited
        // for.
        unsafe {
            let download = |to: *mut u8, at: u64, bytes: usize| {
                if bytes == 0 {
                    return Ok(());
                }
                driver::cuMemcpyDtoHAsync_v2(to.cast(), self.state.address + at, bytes, self.last)
                    .doing(|| "reading what has come of a stream")
            };
            let copied = if pieces > 0 {
                download(acc.as_mut_ptr().cast(), layout.acc, size_of::<Op::Acc>())
            } else {
                Ok(())
            };
            let copied = copied
                .and_then(|()| {
                    let bytes = chunks as usize * size_of::<Op::Acc>();
                    download(values.as_mut_ptr().cast(), layout.chunks, bytes)
                })
                .and_then(|()| {
                    let bytes = tail as usize * size_of::<Op::Item>();
                    download(items.as_mut_ptr().cast(), tail_at, bytes)
                });
            let waited =
                gpu.context.synchronize(self.last, || "waiting for what has come of a stream".into());
            copied?;
            waited?;
            values.set_len(chunks as usize);
            items.set_len(tail as usize);
            // All is done: the caller's stream may go.
            self.last = self.own;
            let acc = (pieces > 0).then(|| acc.assume_init());
            Ok(Stream { position, acc, chunks: values, tail: items })
        }
    }

    /// Makes it what another was, and waits for that.
    pub(crate) fn write<Op: Monoid>(&mut self, stream: &Stream<Op>) -> Result<(), Error> {
        let gpu = self.gpu.clone();
        let _current = gpu.context.enter_or_error()?;
        self.flow.position = stream.position;
        let Parts { layout, chunks, tail_at, .. } = Parts::of(&self.flow);
        let ticket = [chunks as u32];
        let upload = |from: *const u8, at: u64, bytes: usize| {
            if bytes == 0 {
                return Ok(());
            }
            // SAFETY: there is room for the parts of a stream; waited for below.
            unsafe {
                driver::cuMemcpyHtoDAsync_v2(self.state.address + at, from.cast(), bytes, self.own)
                    .doing(|| "restoring a stream")
            }
        };
        let acc = stream.acc.as_slice();
        let copied = upload(ticket.as_ptr().cast(), 0, size_of_val(&ticket))
            .and_then(|()| upload(acc.as_ptr().cast(), layout.acc, size_of_val(acc)))
            .and_then(|()| {
                upload(stream.chunks.as_ptr().cast(), layout.chunks, size_of_val(&stream.chunks[..]))
            })
            .and_then(|()| upload(stream.tail.as_ptr().cast(), tail_at, size_of_val(&stream.tail[..])));
        // SAFETY: our own stream; the context is current.
        let waited = unsafe { gpu.context.synchronize(self.own, || "restoring a stream".into()) };
        copied.and(waited)
    }
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        let Ok(_current) = self.gpu.context.enter() else { return };
        // Nothing is freed before the work is done. Where a capture forbids to wait, it is not freed at all.
        // SAFETY: the context is current; our own stream, not used after.
        let done = super::context::apart_from_captures(|| unsafe { driver::cuCtxSynchronize() });
        let idle = done.is_ok();
        if done.is_err_and(|failure| failure.is_capture()) {
            return;
        }
        // SAFETY: dropped once, and not used after.
        unsafe {
            let ring = mem::ManuallyDrop::take(&mut self.ring);
            if idle {
                self.gpu.keep_ring(ring);
            }
            mem::ManuallyDrop::drop(&mut self.moved);
            mem::ManuallyDrop::drop(&mut self.state);
            let _ = driver::cuStreamDestroy_v2(self.own);
            let _ = driver::cuStreamDestroy_v2(self.copies);
        }
        (self.own, self.copies) = (ptr::null_mut(), ptr::null_mut());
    }
}
