//! Where a launch keeps its chunks' values and its ticket.
//!
//! A workspace is used by one launch at a time. The pool sees to that by giving each stream its own: launches on one
//! stream follow each other. A launch that is captured runs later, on any stream, so it has a workspace that belongs
//! to the graph.

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use cust::sys::CUstream;

use super::{
    context::Context,
    driver::{self, Doing},
    gpu::Gpu,
    memory::Memory,
};
use crate::Error;

/// The least that is allocated at once, in bytes: enough for the most chunks of values of up to 64 bytes. So much is zero
/// at first.
pub(super) const LEAST: u64 = 32 << 10;

/// Memory with a ticket (zero between launches) at its start and chunks' values behind.
#[derive(Debug)]
pub(crate) struct Block {
    memory: Memory,
}

impl Block {
    /// Allocates, and enqueues the zeroing of the ticket on `stream`.
    ///
    /// # Safety
    ///
    /// A live stream of the context, not being captured; the context is current.
    unsafe fn new(context: &Arc<Context>, bytes: u64, stream: CUstream) -> Result<Arc<Block>, Error> {
        // SAFETY: the caller's promise.
        unsafe { Block::zeroed(context, bytes, LEAST, stream) }
    }

    /// The same with so many bytes zero at its start, or all.
    ///
    /// # Safety
    ///
    /// As for [`new`](Block::new).
    unsafe fn zeroed(
        context: &Arc<Context>,
        bytes: u64,
        zero: u64,
        stream: CUstream,
    ) -> Result<Arc<Block>, Error> {
        let memory = Memory::new(context, bytes.max(LEAST).next_power_of_two() as usize)?;
        let zero = memory.bytes.min(zero as usize);
        // SAFETY: our own memory, of at least that size. Whoever launches on the stream comes after.
        unsafe { driver::cuMemsetD8Async(memory.address, 0, zero, stream) }
            .doing(|| "zeroing a workspace")?;
        Ok(Arc::new(Block { memory }))
    }

    /// One that is zero throughout, for any stream. The context is current.
    pub(crate) fn new_all_zero(context: &Arc<Context>, bytes: u64) -> Result<Arc<Block>, Error> {
        // SAFETY: our own stream, which nobody captures.
        unsafe {
            let block = Block::zeroed(context, bytes, u64::MAX, context.io())?;
            context.synchronize(context.io(), || "zeroing a workspace".into())?;
            Ok(block)
        }
    }

    /// The same, and waits for the zeroing, so that any stream may use it next. The context is current.
    pub(crate) fn new_zeroed(context: &Arc<Context>, bytes: u64) -> Result<Arc<Block>, Error> {
        // SAFETY: our own stream, which nobody captures.
        unsafe {
            let block = Block::new(context, bytes, context.io())?;
            context.synchronize(context.io(), || "zeroing a workspace's ticket".into())?;
            Ok(block)
        }
    }

    pub(crate) fn address(&self) -> u64 {
        self.memory.address
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.memory.bytes as u64
    }
}

/// A workspace of one's own, for launches that the pool cannot serve: see
/// [`Reducer::reduce_into_with`](crate::Reducer::reduce_into_with).
///
/// Made by [`Reducer::workspace`](crate::Reducer::workspace). A graph that captures it keeps it alive.
#[derive(Debug)]
pub struct Workspace {
    pub(crate) block: Arc<Block>,
    pub(crate) gpu: Arc<Gpu>,
}

impl Workspace {
    /// Its size in bytes: it serves any plan that needs no more.
    pub fn bytes(&self) -> u64 {
        self.block.bytes()
    }
}

/// The workspaces of an engine.
#[derive(Debug)]
pub(crate) struct Pool {
    shelves: Mutex<Shelves>,
    /// Bytes that are zero at first.
    zero: u64,
}

impl Default for Pool {
    fn default() -> Self {
        Pool { shelves: Mutex::default(), zero: LEAST }
    }
}

#[derive(Debug, Default)]
struct Shelves {
    /// The workspace of each stream.
    streams: HashMap<u64, Arc<Block>>,
    /// Replaced ones, which launches may still be using.
    retired: Vec<Arc<Block>>,
    /// Ready for captures.
    spare: Vec<Arc<Block>>,
    /// Given to a capture (by its id) on a stream: work on one stream is in order within a graph, too.
    captured: HashMap<(u64, usize), Weak<Block>>,
}

impl Pool {
    /// One whose workspaces are zero throughout, at first.
    pub(crate) fn all_zero() -> Pool {
        Pool { zero: u64::MAX, ..Pool::default() }
    }

    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        // Nothing panics while it is held.
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The workspace of a stream, of at least that many bytes. The caller keeps it until after its launch.
    ///
    /// # Safety
    ///
    /// A live stream of the context, not being captured; the context is current.
    pub(crate) unsafe fn of_stream(
        &self,
        context: &Arc<Context>,
        stream: CUstream,
        bytes: u64,
    ) -> Result<Arc<Block>, Error> {
        // SAFETY: the caller's promise.
        let key = unsafe { context.stream_key(stream) };
        let mut shelves = self.shelves();
        if let Some(block) = shelves.streams.get(&key)
            && block.bytes() >= bytes
        {
            return Ok(block.clone());
        }
        // SAFETY: the caller's promise.
        let block = unsafe { Block::zeroed(context, bytes, self.zero, stream)? };
        if let Some(old) = shelves.streams.insert(key, block.clone()) {
            shelves.retired.push(old);
        }
        Ok(block)
    }

    /// Forgets the workspaces of a capture on a stream on which a launch failed.
    pub(crate) fn discard_captured(&self, stream: CUstream) {
        self.shelves().captured.retain(|&(_, captured), _| captured != stream.addr());
    }

    /// Forgets the workspace of a stream on which a launch failed.
    ///
    /// # Safety
    ///
    /// As for [`of_stream`](Pool::of_stream).
    pub(crate) unsafe fn discard(&self, context: &Context, stream: CUstream) {
        // SAFETY: the caller's promise.
        let key = unsafe { context.stream_key(stream) };
        let mut shelves = self.shelves();
        if let Some(block) = shelves.streams.remove(&key) {
            shelves.retired.push(block);
        }
    }

    /// The workspace of a captured stream: the one this capture already has there, else a spare one.
    pub(crate) fn of_capture(&self, stream: CUstream, capture: u64, bytes: u64) -> Result<Arc<Block>, Error> {
        // By the stream's handle: asking for its id would invalidate the capture, and no other stream has the handle
        // while this capture goes on.
        let key = (capture, stream.addr());
        let mut shelves = self.shelves();
        let held = shelves.captured.get(&key).and_then(Weak::upgrade);
        if let Some(block) = held.filter(|block| block.bytes() >= bytes) {
            return Ok(block);
        }
        let spare = shelves.spare.iter().position(|block| block.bytes() >= bytes);
        let block = spare.map(|at| shelves.spare.swap_remove(at)).ok_or(Error::WarmUpFirst { bytes })?;
        shelves.captured.retain(|_, block| block.strong_count() > 0);
        shelves.captured.insert(key, Arc::downgrade(&block));
        Ok(block)
    }

    /// Adds a workspace that a capture can take.
    pub(crate) fn add_spare(&self, block: Arc<Block>) {
        self.shelves().spare.push(block);
    }

    /// Frees what no launch needs: waits for the device. The context is current.
    pub(crate) fn trim(&self) -> Result<(), Error> {
        let mut shelves = self.shelves();
        let all = mem::take(&mut *shelves);
        let streams = all.streams.into_values();
        // A thread that holds one has it for a launch to come.
        let (free, busy): (Vec<_>, Vec<_>) =
            streams.chain(all.retired).partition(|block| Arc::strong_count(block) == 1);
        shelves.retired = busy;
        shelves.captured = all.captured;
        // SAFETY: a context is current. Launches with what is about to be freed have all been enqueued.
        let waited =
            unsafe { driver::cuCtxSynchronize() }.doing(|| "waiting for the device to free workspaces");
        if let Err(error) = waited {
            shelves.retired.extend(free);
            shelves.spare = all.spare;
            return Err(error);
        }
        Ok(())
    }

    /// Gives up everything without freeing it, where the device cannot be waited for.
    pub(crate) fn leak(&self) {
        mem::forget(mem::take(&mut *self.shelves()));
    }
}
