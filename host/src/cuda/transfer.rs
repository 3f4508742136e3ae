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

    /// Copies pieces of so many bytes into it side by side, from `at` on, on several threads if they are many.
    ///
    /// # Safety
    ///
    /// They are readable, and no copy to the device is reading the place.
    pub(super) unsafe fn fill(&mut self, at: usize, pieces: &[(*const u8, usize)]) {
        let bytes: usize = pieces.iter().map(|&(_, bytes)| bytes).sum();
        assert!(at <= self.bytes && bytes <= self.bytes - at);
        let mut to = self.address.cast::<u8>().wrapping_add(at).expose_provenance();
        let mut shares = Vec::with_capacity(pieces.len() + bytes / SHARE);
        for &(from, bytes) in pieces {
            let from = from.expose_provenance();
            shares.extend((0..bytes).step_by(SHARE).map(|at| (from + at, to + at, SHARE.min(bytes - at))));
            to += bytes;
        }
        let copy = |&(from, to, count): &(usize, usize, usize)| {
            let from = ptr::with_exposed_provenance::<u8>(from);
            // SAFETY: within both; the buffer is ours.
            unsafe { from.copy_to_nonoverlapping(ptr::with_exposed_provenance_mut(to), count) };
        };
        if bytes < 16 * SHARE {
            shares.iter().for_each(copy);
        } else {
            shares.par_iter().with_max_len(1).for_each(copy);
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

/// Items of some size in host memory that come one behind the other, and how many of them have been taken.
#[derive(Debug)]
pub(super) struct Pieces<'a> {
    left: &'a [(*const u8, u64)],
    taken: u64,
    size: usize,
}

impl<'a> Pieces<'a> {
    /// Of so many bytes each: where some lie, and how many.
    pub(super) fn new(pieces: &'a [(*const u8, u64)], size: usize) -> Pieces<'a> {
        Pieces { left: pieces, taken: 0, size }
    }

    /// Are there none left?
    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// The next ones, up to so many: where they lie, and their bytes; and how many they are.
    pub(super) fn take(&mut self, most: u64) -> (Vec<(*const u8, usize)>, u64) {
        let (mut taken, mut count) = (Vec::new(), 0);
        while let Some((&(first, n), rest)) = self.left.split_first() {
            let here = (most - count).min(n - self.taken);
            if here > 0 {
                taken.push((first.wrapping_add(self.taken as usize * self.size), here as usize * self.size));
            }
            self.taken += here;
            count += here;
            if self.taken < n {
                break;
            }
            (self.left, self.taken) = (rest, 0);
        }
        (taken, count)
    }
}

/// A pinned buffer and when it may be filled again.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) pinned: Pinned,
    pub(super) sent: Event,
    /// Room for the same on the device, where that is wanted, and whatever reads it.
    pub(super) device: Option<Memory>,
    pub(super) read: Event,
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

    /// Bytes of a buffer, if they have room on the device too.
    pub(super) fn bytes_on_device(&self) -> Option<usize> {
        self.on_device.then_some(self.bytes)
    }

    /// The buffer whose turn it is, free to be filled. The context is current.
    pub(super) fn slot(&mut self) -> Result<&mut Slot, Error> {
        if self.at == self.slots.len() {
            let pinned = Pinned::new(&self.context, self.bytes)?;
            let device = match self.on_device {
                true => Some(Memory::new(&self.context, self.bytes)?),
                false => None,
            };
            let (sent, read) = (Event::new(&self.context)?, Event::new(&self.context)?);
            self.slots.push(Slot { pinned, sent, device, read });
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
