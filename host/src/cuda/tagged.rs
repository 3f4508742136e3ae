//! Streams of tagged items folded on a GPU.

use std::{fmt, mem, mem::ManuallyDrop};

use cust::sys::{CUdeviceptr, CUstream};
use warpfold_monoid::Monoid;

use super::{
    TagLauncher,
    context::apart_from_captures,
    driver::{self, Doing},
    memory::Memory,
    tags::Into,
    transfer::{Event, Ring},
};
use crate::{Error, Tag, sink::tagged::PIECE};

/// What has come of a stream: the values that there are, and the first item whose tag was out of range.
type Found<A> = (Vec<Option<A>>, Option<u64>);

/// The values of a stream's tags.
///
/// As of other streams the work is on one CUDA stream at a time.
pub(crate) struct CudaTags {
    launcher: TagLauncher,
    /// The first tag out of range, the values, and whether they are there.
    state: ManuallyDrop<Memory>,
    kept: CUdeviceptr,
    held: CUdeviceptr,
    own: CUstream,
    last: CUstream,
    moved: ManuallyDrop<Event>,
    ring: ManuallyDrop<Ring>,
    /// Bytes of the part of a buffer that tags have.
    tag_bytes: usize,
}

// SAFETY: stream handles may be used from any thread.
unsafe impl Send for CudaTags {}

impl fmt::Debug for CudaTags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaTags").field("state", &self.state).finish_non_exhaustive()
    }
}

impl CudaTags {
    /// Of `k` tags, none of which has a value.
    pub(crate) fn new<Op: Monoid>(launcher: &TagLauncher, k: u64) -> Result<CudaTags, Error> {
        const ALIGN: u64 = 256;
        let context = &launcher.gpu.context;
        let bytes = k.saturating_mul(size_of::<Op::Acc>() as u64).next_multiple_of(ALIGN);
        let all = usize::try_from(bytes.saturating_add(k).saturating_add(ALIGN)).unwrap_or(usize::MAX);
        let state = Memory::new(context, all)?;
        let _current = context.enter_or_error()?;
        let moved = Event::new(context)?;
        let tag_bytes = PIECE as usize * size_of::<u64>();
        let ring = Ring::new(context, tag_bytes + PIECE as usize * size_of::<Op::Item>(), true);
        let own = context.new_stream()?;
        let address = state.address;
        let tags = CudaTags {
            launcher: launcher.clone(),
            kept: address + ALIGN,
            held: address + ALIGN + bytes,
            state: ManuallyDrop::new(state),
            own,
            last: own,
            moved: ManuallyDrop::new(moved),
            ring: ManuallyDrop::new(ring),
            tag_bytes,
        };
        // SAFETY: our own memory and stream.
        unsafe {
            driver::cuMemsetD8Async(address, 0xff, 8, own)
                .and_then(|()| driver::cuMemsetD8Async(tags.held, 0, (k as usize).max(1), own))
                .doing(|| "making ready the values of tags")?;
        }
        Ok(tags)
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

    fn places(&self, base: u64) -> Into {
        Into { first_bad: self.state.address, base, kept: self.kept, held: self.held, output: 0 }
    }

    /// Takes in host memory, no more items than a piece, of which the first has that index.
    pub(crate) fn push<T: Tag, Op: Monoid>(
        &mut self,
        op: Op,
        k: u64,
        tags: &[T],
        values: &[Op::Item],
        index: u64,
    ) -> Result<(), Error> {
        let gpu = self.launcher.gpu.clone();
        let _current = gpu.context.enter_or_error()?;
        let (own, into, tag_bytes) = (self.own, self.places(index), self.tag_bytes);
        // SAFETY: our own stream.
        unsafe { self.move_to(own)? };
        let slot = self.ring.slot()?;
        let device = slot.device.as_ref().map_or(0, |device| device.address);
        let at = (device, device + tag_bytes as u64);
        // SAFETY: the buffer's last copy has been waited for, and takes a piece; what read the device's before is ahead on a
        // stream that this one has waited for.
        unsafe {
            slot.pinned.fill(0, &[(tags.as_ptr().cast(), size_of_val(tags))]);
            slot.pinned.fill(tag_bytes, &[(values.as_ptr().cast(), size_of_val(values))]);
            slot.pinned.send(0, size_of_val(tags), at.0, own)?;
            slot.pinned.send(tag_bytes, size_of_val(values), at.1, own)?;
            slot.sent.record(own)?;
            self.ring.next();
            self.launcher.enqueue_into::<T, Op>(op, (values.len() as u64, k), at, into, own)
        }
    }

    /// Takes in device memory on a stream, of which the first item has that index.
    ///
    /// # Safety
    ///
    /// As [`TaggedSink::push_on`](crate::TaggedSink::push_on) says.
    pub(crate) unsafe fn push_on<T: Tag, Op: Monoid>(
        &mut self,
        op: Op,
        (n, k): (u64, u64),
        (tags, values): (CUdeviceptr, CUdeviceptr),
        index: u64,
        stream: CUstream,
    ) -> Result<(), Error> {
        let gpu = self.launcher.gpu.clone();
        let _current = gpu.context.enter_or_error()?;
        // SAFETY: the caller's promise.
        unsafe {
            if gpu.context.is_capturing(stream)? {
                return Err(Error::Capturing);
            }
            self.move_to(stream)?;
            let mut done = 0;
            while done < n {
                let count = (n - done).min(PIECE);
                let at = (tags + done * size_of::<T>() as u64, values + done * size_of::<Op::Item>() as u64);
                let into = self.places(index + done);
                self.launcher.enqueue_into::<T, Op>(op, (count, k), at, into, stream)?;
                done += count;
            }
        }
        Ok(())
    }

    /// The values that there are, and the first item whose tag was out of range. Waits.
    pub(crate) fn read<Op: Monoid>(&mut self, k: u64) -> Result<Found<Op::Acc>, Error> {
        let k = k as usize;
        let needed = Error::HostMemory { needed: (k as u64).saturating_mul(size_of::<Op::Acc>() as u64) };
        let (mut kept, mut held) = (Vec::<Op::Acc>::new(), vec![0_u8; k]);
        kept.try_reserve_exact(k).map_err(|_| needed)?;
        let mut first_bad = u64::MAX;
        let gpu = self.launcher.gpu.clone();
        let _current = gpu.context.enter_or_error()?;
        let download = |to: *mut u8, from: CUdeviceptr, bytes: usize| match bytes {
            0 => Ok(()),
            // SAFETY: both have as many bytes; waited for below.
            _ => unsafe { driver::cuMemcpyDtoHAsync_v2(to.cast(), from, bytes, self.last) },
        };
        let copied = download(std::ptr::from_mut(&mut first_bad).cast(), self.state.address, 8)
            .and_then(|()| download(kept.as_mut_ptr().cast(), self.kept, k * size_of::<Op::Acc>()))
            .and_then(|()| download(held.as_mut_ptr(), self.held, k));
        // SAFETY: a live stream, by the promise of whoever pushed on it.
        let waited =
            unsafe { gpu.context.synchronize(self.last, || "waiting for the values of tags".into()) };
        copied.doing(|| "reading the values of tags")?;
        waited?;
        // All is done: the caller's stream may go.
        self.last = self.own;
        let value = |tag: usize| {
            let place = kept.as_ptr().wrapping_add(tag);
            // SAFETY: in the buffer, and a value where the device says so.
            (held[tag] != 0).then(|| unsafe { place.read() })
        };
        Ok(((0..k).map(value).collect(), Some(first_bad).filter(|&index| index != u64::MAX)))
    }
}

impl CudaTags {
    /// Makes them these, of which there are as many as tags. Waits.
    pub(crate) fn write<Op: Monoid>(&mut self, op: &Op, values: &[Option<Op::Acc>]) -> Result<(), Error> {
        let held: Vec<u8> = values.iter().map(|value| value.is_some().into()).collect();
        let kept: Vec<Op::Acc> = values.iter().map(|value| value.unwrap_or(op.identity())).collect();
        let gpu = self.launcher.gpu.clone();
        let _current = gpu.context.enter_or_error()?;
        let upload = |to: CUdeviceptr, from: *const u8, bytes: usize| match bytes {
            0 => Ok(()),
            // SAFETY: both have as many bytes; waited for below.
            _ => unsafe { driver::cuMemcpyHtoDAsync_v2(to, from.cast(), bytes, self.own) },
        };
        let copied = upload(self.kept, kept.as_ptr().cast(), size_of_val(&kept[..]))
            .and_then(|()| upload(self.held, held.as_ptr(), held.len()));
        // SAFETY: our own stream; the context is current.
        let waited = unsafe { gpu.context.synchronize(self.own, || "restoring the values of tags".into()) };
        copied.doing(|| "restoring the values of tags")?;
        waited
    }
}

impl Drop for CudaTags {
    fn drop(&mut self) {
        let Ok(_current) = self.launcher.gpu.context.enter() else { return };
        // Nothing is freed before the work is done. Where a capture forbids to wait, it is not freed at all.
        // SAFETY: the context is current.
        let done = apart_from_captures(|| unsafe { driver::cuCtxSynchronize() });
        if done.is_err_and(|failure| failure.is_capture()) {
            return;
        }
        // SAFETY: dropped once, and not used after; our own stream.
        unsafe {
            ManuallyDrop::drop(&mut self.ring);
            ManuallyDrop::drop(&mut self.moved);
            ManuallyDrop::drop(&mut self.state);
            let _ = driver::cuStreamDestroy_v2(mem::replace(&mut self.own, std::ptr::null_mut()));
        }
    }
}
