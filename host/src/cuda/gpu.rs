//! What an engine keeps for its device: loaded kernels, workspaces, places for results.

use std::{
    any::TypeId,
    collections::HashMap,
    ffi::{c_uint, c_void},
    fmt,
    mem::{ManuallyDrop, MaybeUninit},
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cust::sys::{CUdeviceptr, CUstream};

use super::{
    array::Pump,
    context::Context,
    driver::{self, Doing},
    kernels::Loaded,
    memory::Memory,
    transfer::Ring,
    workspace::{Block, Pool},
};
use warpfold_gpu_kernels::export::{Export, Family};

use crate::{Error, module::Kernels};

/// Pinned memory that any context and the device can reach.
const PORTABLE_AND_MAPPED: c_uint = 1 | 2;
/// A place for a result has at least this many bytes.
const RESULT_BYTES: usize = 256;
/// Input buffers up to this many bytes are kept for the next host slice.
pub(super) const KEPT_BYTES: usize = 64 << 20;
/// Idle rings that are kept.
const KEPT_RINGS: usize = 2;

/// A device with what an engine keeps for it.
pub(crate) struct Gpu {
    pub(crate) pool: Pool,
    /// Those of segments, whose counters are more.
    pub(crate) segment_pool: Pool,
    /// Those of reductions by tag, which leave anything in them.
    pub(crate) tag_pool: Pool,
    /// Those of scans and reductions by key, all of whose memory is zero at first.
    pub(crate) scan_pool: Pool,
    /// Held while several launches that share a stream's workspace are enqueued: another thread's on that stream come before or behind.
    together: Mutex<()>,
    kernels: Mutex<HashMap<(TypeId, Family), Arc<Loaded>>>,
    results: Mutex<Vec<HostResult>>,
    lanes: Mutex<Vec<Lane>>,
    pumps: Mutex<Vec<Pump>>,
    rings: Mutex<Vec<Ring>>,
    // Last, so that it outlives what was made in it.
    pub(crate) context: Arc<Context>,
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gpu").field("context", &self.context).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that panics runs while one is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gpu {
    pub(crate) fn new(context: Arc<Context>) -> Arc<Gpu> {
        Arc::new(Gpu {
            pool: Pool::default(),
            segment_pool: Pool::default(),
            tag_pool: Pool::default(),
            scan_pool: Pool::all_zero(),
            together: Mutex::default(),
            kernels: Mutex::default(),
            results: Mutex::default(),
            lanes: Mutex::default(),
            pumps: Mutex::default(),
            rings: Mutex::default(),
            context,
        })
    }

    /// Until it is dropped, no other thread's launches come between those that use a stream's workspace one after the other.
    pub(crate) fn together(&self) -> MutexGuard<'_, ()> {
        lock(&self.together)
    }

    /// The kernels of a family for an operator type, loaded on first use.
    pub(crate) fn kernels(
        &self,
        operator: TypeId,
        family: Family,
        find: &dyn Fn() -> Result<(Kernels, &'static Export), Error>,
    ) -> Result<Arc<Loaded>, Error> {
        // Held while loading: two threads that want the same operator load it once.
        let mut loaded = lock(&self.kernels);
        if let Some(kernels) = loaded.get(&(operator, family)) {
            return Ok(kernels.clone());
        }
        let (kernels, export) = find()?;
        let module = kernels.modules.iter().find(|module| module.name == export.name);
        let module = module.ok_or(Error::NotCompiled { krate: kernels.table.krate, export: export.name })?;
        let fresh = Arc::new(Loaded::new(&self.context, export, module)?);
        loaded.insert((operator, family), fresh.clone());
        Ok(fresh)
    }

    /// Runs `launch` with a place that the device can write so many bytes to, waits as `launch` says, and copies them to
    /// `value`.
    ///
    /// # Safety
    ///
    /// If `launch` returns `Ok`, the bytes have been written to the address that it was given, and all device work that
    /// uses the address is done; if it returns `Err`, none is pending but what the driver has given up.
    pub(crate) unsafe fn receive(
        &self,
        value: &mut [MaybeUninit<u8>],
        launch: impl FnOnce(CUdeviceptr) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let bytes = value.len();
        let kept = lock(&self.results).pop_if(|result| result.bytes >= bytes);
        let result = match kept {
            Some(result) => result,
            None => HostResult::new(&self.context, bytes.max(RESULT_BYTES))?,
        };
        launch(result.device)?;
        // SAFETY: written, by the caller's promise.
        unsafe { result.host.cast::<MaybeUninit<u8>>().copy_to_nonoverlapping(value.as_mut_ptr(), bytes) };
        lock(&self.results).push(result);
        Ok(())
    }

    /// Runs `body` with a lane: a stream of our own, and a buffer of at least `bytes` bytes. The stream is idle before
    /// and must be idle after; after an error, the lane is dropped.
    pub(crate) fn with_lane<R>(
        &self,
        bytes: usize,
        body: impl FnOnce(&Lane) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let kept = lock(&self.lanes).pop();
        let mut lane = match kept {
            Some(lane) => lane,
            None => Lane { stream: self.context.new_stream()?, buffer: None, context: self.context.clone() },
        };
        if lane.buffer.as_ref().is_none_or(|buffer| buffer.bytes < bytes) {
            // Freed before the larger one is asked for.
            lane.buffer = None;
            lane.buffer = Some(Memory::new(&self.context, bytes)?);
        }
        let result = body(&lane)?;
        if bytes > KEPT_BYTES {
            lane.buffer = None;
        }
        lock(&self.lanes).push(lane);
        Ok(result)
    }

    /// One of the idle pumps that will do, the others freed.
    pub(super) fn take_pump(&self, serves: impl Fn(&Pump) -> bool) -> Option<Pump> {
        let idle = std::mem::take(&mut *lock(&self.pumps));
        let mut found = None;
        for pump in idle {
            if found.is_none() && serves(&pump) {
                found = Some(pump);
            }
        }
        found
    }

    /// Keeps an idle pump for the next array, unless there is another: they take much memory.
    pub(super) fn keep_pump(&self, pump: Pump) {
        let mut idle = lock(&self.pumps);
        if idle.is_empty() {
            idle.push(pump);
        }
    }

    /// A ring of buffers of so many bytes, here and on the device: an idle one, or a new one.
    pub(super) fn take_ring(&self, bytes: usize) -> Ring {
        let mut idle = lock(&self.rings);
        match idle.iter().position(|ring| ring.bytes_on_device() == Some(bytes)) {
            Some(at) => idle.swap_remove(at),
            None => Ring::new(&self.context, bytes, true),
        }
    }

    /// Keeps a ring whose work is done for the next stream, unless there are others: pinning memory takes longer than sending it.
    pub(super) fn keep_ring(&self, ring: Ring) {
        let mut idle = lock(&self.rings);
        if idle.len() < KEPT_RINGS {
            idle.push(ring);
        }
    }

    /// Frees idle pumps and rings.
    pub(crate) fn trim_pumps(&self) {
        drop(self.take_pump(|_| false));
        drop(std::mem::take(&mut *lock(&self.rings)));
    }

    /// A workspace of a pool for a launch on a stream (none for no bytes), and whether the stream is being captured: then the
    /// workspace belongs to the graph.
    ///
    /// # Safety
    ///
    /// A live stream of the context; the context is current.
    pub(crate) unsafe fn workspace(
        self: &Arc<Gpu>,
        pool: &Pool,
        stream: CUstream,
        bytes: u64,
    ) -> Result<(Option<Arc<Block>>, bool), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            if self.context.is_capturing(stream)? {
                let take = |capture| match bytes {
                    0 => Ok(None),
                    _ => pool.of_capture(stream, capture, bytes).map(Some),
                };
                return Ok((self.give_to_graph(stream, take)?, true));
            }
            match bytes {
                0 => Ok((None, false)),
                _ => Ok((Some(pool.of_stream(&self.context, stream, bytes)?), false)),
            }
        }
    }

    /// Forgets the workspace of a stream on which a launch failed.
    ///
    /// # Safety
    ///
    /// As for [`workspace`](Gpu::workspace).
    pub(crate) unsafe fn discard(&self, pool: &Pool, stream: CUstream, captured: bool) {
        if captured {
            pool.discard_captured(stream);
        } else {
            // SAFETY: the caller's promise.
            unsafe { pool.discard(&self.context, stream) };
        }
    }

    /// Has the graph under capture on `stream` keep the engine and a workspace alive as long as it, or an executable
    /// made from it, lives. Returns the capture's id by way of `block`.
    ///
    /// # Safety
    ///
    /// A live stream that is being captured; the context is current.
    pub(crate) unsafe fn give_to_graph(
        self: &Arc<Gpu>,
        stream: CUstream,
        block: impl FnOnce(u64) -> Result<Option<Arc<Block>>, Error>,
    ) -> Result<Option<Arc<Block>>, Error> {
        let (mut status, mut id, mut graph) = (0, 0, ptr::null_mut());
        let doing = || "having a captured graph keep its workspace";
        // SAFETY: valid places for the answers that are wanted.
        unsafe {
            driver::cuStreamGetCaptureInfo_v2(
                stream,
                &mut status,
                &mut id,
                &mut graph,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        }
        .doing(doing)?;
        if status != ACTIVE {
            return Err(Error::CaptureInvalidated);
        }
        let block = block(id)?;
        let kept = Box::into_raw(Box::new(Kept { gpu: self.clone(), block: block.clone() }));
        let mut object = ptr::null_mut();
        // SAFETY: `let_go` takes back the box, once.
        let created =
            unsafe { driver::cuUserObjectCreate(&mut object, kept.cast(), let_go, 1, NO_DESTRUCTOR_SYNC) };
        if let Err(failure) = created {
            // SAFETY: the driver did not take it.
            drop(unsafe { Box::from_raw(kept) });
            return Err(failure.doing(doing()));
        }
        // SAFETY: a graph under capture, an object with one reference, which moves.
        let moved = unsafe { driver::cuGraphRetainUserObject(graph, object, 1, MOVE) };
        if let Err(failure) = moved {
            // SAFETY: the reference is still ours.
            let _ = unsafe { driver::cuUserObjectRelease(object, 1) };
            return Err(failure.doing(doing()));
        }
        Ok(block)
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // Work that was enqueued may still run; nothing of it is freed before it is done.
        // SAFETY: the context is current.
        let done = self.context.enter().and_then(|_current| unsafe { driver::cuCtxSynchronize() });
        // A capture elsewhere forbids waiting. Leaking is the safe way out; other errors are the context's end.
        if done.is_err_and(|failure| failure.is_capture()) {
            self.pool.leak();
            self.segment_pool.leak();
            self.tag_pool.leak();
            self.scan_pool.leak();
            std::mem::forget(std::mem::take(&mut *lock(&self.kernels)));
        }
    }
}

/// The status of a capture that goes on.
const ACTIVE: c_uint = 1;
/// No wait for destructors in the driver.
const NO_DESTRUCTOR_SYNC: c_uint = 1;
/// The graph takes over the caller's reference.
const MOVE: c_uint = 1;

/// What a graph keeps alive.
struct Kept {
    gpu: Arc<Gpu>,
    block: Option<Arc<Block>>,
}

/// The driver's call when a graph and all its executables are gone. It may not call the driver, so what frees device
/// memory happens on a thread of its own.
unsafe extern "C" fn let_go(kept: *mut c_void) {
    // SAFETY: the box that was given with this function, once.
    let kept = ManuallyDrop::new(unsafe { Box::from_raw(kept.cast::<Kept>()) });
    // If no thread can be had, the memory stays until the process ends.
    let _ = std::thread::Builder::new().name("warpfold-let-go".into()).spawn(move || {
        let kept = *ManuallyDrop::into_inner(kept);
        drop(kept.block);
        drop(kept.gpu);
    });
}

/// A stream of our own with a buffer for host slices.
pub(crate) struct Lane {
    pub(crate) stream: CUstream,
    buffer: Option<Memory>,
    context: Arc<Context>,
}

// SAFETY: stream handles may be used from any thread.
unsafe impl Send for Lane {}

impl Lane {
    /// The buffer's address.
    pub(crate) fn address(&self) -> CUdeviceptr {
        self.buffer.as_ref().map_or(0, |buffer| buffer.address)
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: our own stream, waited for, not used after. Failures leave nothing to do.
            unsafe {
                let _ = driver::cuStreamSynchronize(self.stream);
                let _ = driver::cuStreamDestroy_v2(self.stream);
            }
        }
    }
}

/// Host memory that the device writes a result to.
struct HostResult {
    host: *mut c_void,
    device: CUdeviceptr,
    bytes: usize,
    context: Arc<Context>,
}

// SAFETY: owned memory.
unsafe impl Send for HostResult {}

impl HostResult {
    fn new(context: &Arc<Context>, bytes: usize) -> Result<HostResult, Error> {
        let _current = context.enter_or_error()?;
        let doing = || format!("allocating {bytes} bytes of pinned memory for results");
        super::context::apart_from_captures(|| {
            let mut result = HostResult { host: ptr::null_mut(), device: 0, bytes, context: context.clone() };
            // SAFETY: valid places for the answers; the context is current.
            unsafe {
                driver::cuMemHostAlloc(&mut result.host, bytes, PORTABLE_AND_MAPPED).doing(doing)?;
                driver::cuMemHostGetDevicePointer_v2(&mut result.device, result.host, 0).doing(doing)?;
            }
            Ok(result)
        })
    }
}

impl Drop for HostResult {
    fn drop(&mut self) {
        if !self.host.is_null()
            && let Ok(_current) = self.context.enter()
        {
            // SAFETY: our own memory, not used after. A failure means that the context is gone.
            let _ = super::context::apart_from_captures(|| unsafe { driver::cuMemFreeHost(self.host) });
        }
    }
}
