//! Host memory on its way to the device, through pinned buffers: what the copies and the kernels do meanwhile is in the order
//! of streams.

use std::{ffi::c_void, ptr, sync::Arc};

use cust::sys::{CUdeviceptr, CUevent, CUstream};
use rayon::prelude::*;

use super::{
    context::{Context, apart_from_captures},
    driver::{self, Doing},
    memory::Memory,
};
use crate::Error;

/// `CU_EVENT_DISABLE_TIMING`.
const NO_TIMING: u32 = 2;

/// `CU_MEMHOSTALLOC_PORTABLE`.
const PORTABLE: u32 = 1;

/// Bytes that one thread copies at once: few, so that those that wake first do more.
const SHARE: usize = 64 << 10;

/// A point in a stream's work.
#[derive(Debug)]
pub(super) struct Event {
    raw: CUevent,
    context: Arc<Context>,
}

// SAFETY: event handles may be used from any thread.
unsafe impl Send for Event {}

impl Event {
    /// One that has happened. The context is current.
    pub(super) fn new(context: &Arc<Context>) -> Result<Event, Error> {
        let mut raw = ptr::null_mut();
        // SAFETY: a valid place for the answer; the context is current.
        unsafe { driver::cuEventCreate(&mut raw, NO_TIMING) }.doing(|| "creating an event")?;
        Ok(Event { raw, context: context.clone() })
    }

    /// Puts it behind what a stream has been given so far.
    ///
    /// # Safety
    ///
    /// A live stream of the context, which is current.
    pub(super) unsafe fn record(&self, stream: CUstream) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { driver::cuEventRecord(self.raw, stream) }.doing(|| "recording an event")
    }

    /// Has a stream wait for it.
    ///
    /// # Safety
    ///
    /// As for [`record`](Event::record).
    pub(super) unsafe fn hold(&self, stream: CUstream) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { driver::cuStreamWaitEvent(stream, self.raw, 0) }.doing(|| "having a stream wait")
    }

    /// Waits for it. The context is current.
    pub(super) fn wait(&self) -> Result<(), Error> {
        // SAFETY: a live event; the context is current.
        apart_from_captures(|| unsafe { driver::cuEventSynchronize(self.raw) })
            .doing(|| "waiting for a copy to the device")
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: our own event, not used after. A failure leaves nothing to do.
            let _ = unsafe { driver::cuEventDestroy_v2(self.raw) };
        }
    }
}

/// Pinned host memory, which the device copies from without the driver's help.
#[derive(Debug)]
pub(super) struct Pinned {
    address: *mut c_void,
    pub(super) bytes: usize,
    context: Arc<Context>,
}

// SAFETY: owned memory.
unsafe impl Send for Pinned {}

impl Pinned {
    /// Allocates, uninitialised. The context is current.
    pub(super) fn new(context: &Arc<Context>, bytes: usize) -> Result<Pinned, Error> {
        let mut pinned = Pinned { address: ptr::null_mut(), bytes, context: context.clone() };
        // SAFETY: a valid place for the answer; the context is current.
        apart_from_captures(|| unsafe {
            driver::cuMemHostAlloc(&mut pinned.address, bytes.max(1), PORTABLE)
        })
        .doing(|| format!("allocating {bytes} bytes of pinned memory"))?;
        Ok(pinned)
    }

    /// Copies bytes into it from `at` on, on several threads if they are many.
    ///
    /// # Safety
    ///
    /// They are readable, and no copy to the device is reading the place.
    pub(super) unsafe fn fill(&mut self, at: usize, from: *const u8, bytes: usize) {
        assert!(at <= self.bytes && bytes <= self.bytes - at);
        let to = self.address.cast::<u8>().wrapping_add(at).expose_provenance();
        let from = from.expose_provenance();
        let copy = |start: usize| {
            let count = SHARE.min(bytes - start);
            let from = ptr::with_exposed_provenance::<u8>(from + start);
            // SAFETY: within both; the buffer is ours.
            unsafe { from.copy_to_nonoverlapping(ptr::with_exposed_provenance_mut(to + start), count) };
        };
        if bytes < 16 * SHARE {
            (0..bytes).step_by(SHARE).for_each(copy);
        } else {
            (0..bytes.div_ceil(SHARE)).into_par_iter().with_max_len(1).for_each(|share| copy(share * SHARE));
        }
    }

    /// Enqueues a copy of bytes from `at` on to the device.
    ///
    /// # Safety
    ///
    /// They have been filled, and stay until the copy is done; there is room for them at `to`; a live stream of the context,
    /// which is current.
    pub(super) unsafe fn send(
        &self,
        at: usize,
        bytes: usize,
        to: CUdeviceptr,
        stream: CUstream,
    ) -> Result<(), Error> {
        assert!(at <= self.bytes && bytes <= self.bytes - at);
        let from = self.address.cast::<u8>().wrapping_add(at);
        // SAFETY: the caller's promise.
        unsafe { driver::cuMemcpyHtoDAsync_v2(to, from.cast(), bytes, stream) }
            .doing(|| format!("copying {bytes} bytes to the device"))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if !self.address.is_null()
            && let Ok(_current) = self.context.enter()
        {
            // SAFETY: our own memory, not used after. A failure means that the context is gone.
            let _ = apart_from_captures(|| unsafe { driver::cuMemFreeHost(self.address) });
        }
    }
}

/// A pinned buffer and when it may be filled again.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) pinned: Pinned,
    pub(super) sent: Event,
    /// Room for the same on the device, where that is wanted.
    pub(super) device: Option<Memory>,
}

/// Pinned buffers, used in turn, as many as it takes to fill one while others are copied from.
#[derive(Debug)]
pub(super) struct Ring {
    slots: Vec<Slot>,
    at: usize,
    bytes: usize,
    on_device: bool,
    context: Arc<Context>,
}

/// Buffers in a ring.
const SLOTS: usize = 4;

impl Ring {
    /// Of buffers of so many bytes, each with as much device memory if wanted. Allocates as they are asked for.
    pub(super) fn new(context: &Arc<Context>, bytes: usize, on_device: bool) -> Ring {
        Ring { slots: Vec::new(), at: 0, bytes, on_device, context: context.clone() }
    }

    /// The buffer whose turn it is, free to be filled. The context is current.
    pub(super) fn slot(&mut self) -> Result<&mut Slot, Error> {
        if self.at == self.slots.len() {
            let pinned = Pinned::new(&self.context, self.bytes)?;
            let device = match self.on_device {
                true => Some(Memory::new(&self.context, self.bytes)?),
                false => None,
            };
            self.slots.push(Slot { pinned, sent: Event::new(&self.context)?, device });
        } else {
            self.slots[self.at].sent.wait()?;
        }
        Ok(&mut self.slots[self.at])
    }

    /// The same, as it is.
    pub(super) fn current(&mut self) -> Option<&mut Slot> {
        self.slots.get_mut(self.at)
    }

    /// Goes on to the next one.
    pub(super) fn next(&mut self) {
        self.at = (self.at + 1) % SLOTS;
    }
}
