//! A device, its context, and how a thread enters it.

use std::{
    ffi::{c_int, c_uint},
    fmt,
    marker::PhantomData,
    ptr,
    sync::Arc,
};

use cust::sys::{CUcontext, CUdevice, CUdevice_attribute as Attribute, CUpointer_attribute, CUstream};

use super::driver::{self, Doing, Failure, LaunchKernelEx};
use crate::{DeviceInfo, Error, plan::DeviceFacts};

/// The relaxed stream capture mode.
const RELAXED: c_uint = 2;
/// An ordinary stream: its work waits for what was enqueued on the default stream before. Blocking copies go there,
/// and those from pageable memory may return before their data has arrived.
const ORDINARY: c_uint = 0;

type StreamGetId = unsafe extern "C" fn(CUstream, *mut u64) -> u32;

/// A device's context, usable from any thread through [`enter`](Context::enter).
pub(crate) struct Context {
    raw: CUcontext,
    device: CUdevice,
    /// Whether dropping this releases a reference to the primary context.
    retained: bool,
    /// For copies of our own, each waited for.
    io: CUstream,
    /// Tells streams apart for good, where the driver has it (CUDA 12.0): handles come again.
    stream_get_id: Option<StreamGetId>,
    /// Launches kernels that overlap with what is ahead of them, where graphs can hold such launches too (CUDA 12.3).
    pub(crate) launch_overlapping: Option<LaunchKernelEx>,
    pub(crate) info: DeviceInfo,
    pub(crate) facts: DeviceFacts,
}

// SAFETY: context and stream handles may be used from any thread.
unsafe impl Send for Context {}
// SAFETY: as above; the driver locks.
unsafe impl Sync for Context {}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("device", &self.info.ordinal).field("raw", &self.raw).finish()
    }
}

/// Starts the driver.
fn init() -> Result<(), Error> {
    // SAFETY: may be called any number of times.
    unsafe { driver::cuInit(0) }.map_err(|failure| match failure.code {
        driver::NO_DEVICE => Error::NoDevice,
        driver::STUB_LIBRARY => Error::NoDriver,
        _ => failure.doing("starting the CUDA driver"),
    })
}

fn device_count() -> Result<u32, Error> {
    let mut count = 0;
    // SAFETY: a valid place for the answer.
    unsafe { driver::cuDeviceGetCount(&mut count) }.doing(|| "counting devices")?;
    Ok(count as u32)
}

/// The devices that the driver offers.
pub(crate) fn devices() -> Result<Vec<DeviceInfo>, Error> {
    init()?;
    (0..device_count()?).map(|ordinal| Ok(describe(device(ordinal)?)?.0)).collect()
}

/// Device number `ordinal`.
fn device(ordinal: u32) -> Result<CUdevice, Error> {
    let count = device_count()?;
    if count == 0 {
        return Err(Error::NoDevice);
    }
    if ordinal >= count {
        return Err(Error::NoSuchDevice { ordinal, count });
    }
    let mut device = 0;
    // SAFETY: a valid place for the answer, an ordinal in range.
    unsafe { driver::cuDeviceGet(&mut device, ordinal as c_int) }
        .doing(|| format!("opening device {ordinal}"))?;
    Ok(device)
}

/// What the driver says of a device.
fn describe(device: CUdevice) -> Result<(DeviceInfo, DeviceFacts), Error> {
    let attribute = |attribute: Attribute| -> Result<u32, Error> {
        let mut value = 0;
        // SAFETY: a valid place for the answer.
        unsafe { driver::cuDeviceGetAttribute(&mut value, attribute as c_uint, device) }
            .doing(|| format!("reading {attribute:?} of device {device}"))?;
        Ok(value as u32)
    };
    let facts = DeviceFacts {
        compute_capability: (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        max_threads_per_multiprocessor: attribute(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
        )?,
        max_threads_per_block: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        max_grid_x: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
        shared_bytes_per_block: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
        most_shared_bytes_per_block: attribute(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )?,
        shared_bytes_per_multiprocessor: attribute(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        )?,
    };
    let mut name = [0u8; 256];
    // SAFETY: the length is that of the buffer; the driver ends the name with a NUL within it.
    unsafe { driver::cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as c_int, device) }
        .doing(|| format!("reading the name of device {device}"))?;
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    let mut bytes = 0;
    // SAFETY: a valid place for the answer.
    unsafe { driver::cuDeviceTotalMem_v2(&mut bytes, device) }
        .doing(|| format!("reading the memory of device {device}"))?;
    let mut version = 0;
    // SAFETY: a valid place for the answer.
    unsafe { driver::cuDriverGetVersion(&mut version) }.doing(|| "reading the driver's version")?;
    let info = DeviceInfo {
        ordinal: device as u32,
        name: String::from_utf8_lossy(name).into_owned(),
        compute_capability: facts.compute_capability,
        memory_bytes: bytes as u64,
        multiprocessors: facts.multiprocessors,
        driver: (version as u32 / 1000, version as u32 % 1000 / 10),
    };
    Ok((info, facts))
}

impl Context {
    /// The primary context of device `ordinal`.
    pub(crate) fn primary(ordinal: u32) -> Result<Arc<Context>, Error> {
        init()?;
        let device = device(ordinal)?;
        let raw = retain(device)?;
        Context::new(raw, device, true)
    }

    /// A context that the program already made.
    ///
    /// # Safety
    ///
    /// `raw` is a live context. If it is not its device's primary context, it outlives every use of this one.
    pub(crate) unsafe fn adopt(raw: CUcontext) -> Result<Arc<Context>, Error> {
        init()?;
        let mut device = 0;
        {
            let _current = enter(raw).doing(|| "entering the program's context")?;
            // SAFETY: a valid place for the answer; a context is current.
            unsafe { driver::cuCtxGetDevice(&mut device) }.doing(|| "finding the context's device")?;
        }
        let primary = retain(device)?;
        if primary == raw {
            return Context::new(raw, device, true);
        }
        // SAFETY: undoes the retain above.
        unsafe { driver::cuDevicePrimaryCtxRelease_v2(device) }
            .doing(|| format!("releasing the primary context of device {device}"))?;
        Context::new(raw, device, false)
    }

    fn new(raw: CUcontext, device: CUdevice, retained: bool) -> Result<Arc<Context>, Error> {
        // Owns the reference from here on, so that an error below releases it.
        let mut context = Context {
            raw,
            device,
            retained,
            io: ptr::null_mut(),
            stream_get_id: stream_get_id(),
            launch_overlapping: None,
            info: DeviceInfo {
                ordinal: device as u32,
                name: String::new(),
                compute_capability: (0, 0),
                memory_bytes: 0,
                multiprocessors: 0,
                driver: (0, 0),
            },
            facts: DeviceFacts::H100,
        };
        (context.info, context.facts) = describe(device)?;
        context.launch_overlapping = launch_kernel_ex().filter(|_| context.info.driver >= (12, 3));
        context.io = context.new_stream()?;
        Ok(Arc::new(context))
    }

    /// Makes the context current in this thread until the guard is dropped.
    #[inline]
    pub(crate) fn enter(&self) -> Result<Current<'_>, Failure> {
        enter(self.raw)
    }

    /// The same, with the error made up.
    #[inline]
    pub(crate) fn enter_or_error(&self) -> Result<Current<'_>, Error> {
        self.enter().doing(|| format!("entering the context of device {}", self.device))
    }

    /// Is it an address of this device's memory? The context is current.
    pub(crate) fn check_address(&self, address: u64) -> Result<(), Error> {
        let mut ordinal: c_int = -1;
        let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL as u32;
        // SAFETY: a valid place for the answer; any address may be asked about.
        let asked =
            unsafe { driver::cuPointerGetAttribute(ptr::from_mut(&mut ordinal).cast(), attribute, address) };
        match asked {
            Err(_) => Err(Error::NotDeviceMemory { address }),
            // Negative: managed memory that lies with the host for now.
            Ok(()) if ordinal >= 0 && ordinal != self.device => {
                Err(Error::OtherDevice { address, expected: self.device as u32, found: ordinal as u32 })
            }
            Ok(()) => Ok(()),
        }
    }

    /// The stream of our own copies. Whoever uses it waits for it.
    pub(crate) fn io(&self) -> CUstream {
        self.io
    }

    /// A new ordinary stream; the caller destroys it.
    pub(crate) fn new_stream(&self) -> Result<CUstream, Error> {
        let _current = self.enter_or_error()?;
        let mut stream = ptr::null_mut();
        // SAFETY: a valid place for the answer; the context is current.
        unsafe { driver::cuStreamCreate(&mut stream, ORDINARY) }.doing(|| "creating a stream")?;
        Ok(stream)
    }

    /// A number that stands for a stream as long as the program runs.
    ///
    /// # Safety
    ///
    /// A live stream, or one of the default ones; the context is current.
    #[inline]
    pub(crate) unsafe fn stream_key(&self, stream: CUstream) -> u64 {
        if let Some(get_id) = self.stream_get_id {
            let mut id = 0;
            // SAFETY: a valid place for the answer, a live stream.
            if unsafe { get_id(stream, &mut id) } == 0 {
                return id;
            }
        }
        stream as u64
    }

    /// Waits for a stream.
    ///
    /// # Safety
    ///
    /// A live stream of this context, or the default one; the context is current.
    pub(crate) unsafe fn synchronize(
        &self,
        stream: CUstream,
        doing: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        apart_from_captures(|| unsafe { driver::cuStreamSynchronize(stream) }).doing(doing)
    }

    /// Is the stream being captured?
    ///
    /// # Safety
    ///
    /// As for [`stream_key`](Context::stream_key).
    #[inline]
    pub(crate) unsafe fn is_capturing(&self, stream: CUstream) -> Result<bool, Error> {
        let mut status = 0;
        // SAFETY: a valid place for the answer, a live stream.
        unsafe { driver::cuStreamIsCapturing(stream, &mut status) }
            .doing(|| "asking whether the stream is being captured")?;
        Ok(status != 0)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.io.is_null()
            && let Ok(_current) = self.enter()
        {
            // SAFETY: our own stream, not used after. A failure leaves nothing to do.
            let _ = unsafe { driver::cuStreamDestroy_v2(self.io) };
        }
        if self.retained {
            // SAFETY: undoes the one retain that this value owns. A failure leaves nothing to do.
            let _ = unsafe { driver::cuDevicePrimaryCtxRelease_v2(self.device) };
        }
    }
}

fn retain(device: CUdevice) -> Result<CUcontext, Error> {
    let mut raw = ptr::null_mut();
    // SAFETY: a valid place for the answer, a valid device.
    unsafe { driver::cuDevicePrimaryCtxRetain(&mut raw, device) }
        .doing(|| format!("retaining the primary context of device {device}"))?;
    Ok(raw)
}

/// The driver's `cuStreamGetId`, if it has one.
fn stream_get_id() -> Option<StreamGetId> {
    let mut function = ptr::null_mut();
    // SAFETY: a string, a valid place for the answer.
    unsafe { driver::cuGetProcAddress(c"cuStreamGetId".as_ptr(), &mut function, 12000, 0) }.ok()?;
    if function.is_null() {
        return None;
    }
    // SAFETY: the driver's function of that name and version has this signature.
    Some(unsafe { std::mem::transmute::<*mut std::ffi::c_void, StreamGetId>(function) })
}

/// The driver's `cuLaunchKernelEx`, if it has one.
fn launch_kernel_ex() -> Option<LaunchKernelEx> {
    let mut function = ptr::null_mut();
    // SAFETY: a string, a valid place for the answer.
    unsafe { driver::cuGetProcAddress(c"cuLaunchKernelEx".as_ptr(), &mut function, 11080, 0) }.ok()?;
    if function.is_null() {
        return None;
    }
    // SAFETY: the driver's function of that name and version has this signature.
    Some(unsafe { std::mem::transmute::<*mut std::ffi::c_void, LaunchKernelEx>(function) })
}

/// Keeps a context current in this thread.
pub(crate) struct Current<'a> {
    pushed: bool,
    // The context stack belongs to a thread: this may not leave it.
    _context: PhantomData<(&'a Context, *const ())>,
}

#[inline]
fn enter<'a>(raw: CUcontext) -> Result<Current<'a>, Failure> {
    let mut current = ptr::null_mut();
    // SAFETY: a valid place for the answer.
    unsafe { driver::cuCtxGetCurrent(&mut current) }?;
    let pushed = current != raw;
    if pushed {
        // SAFETY: a live context.
        unsafe { driver::cuCtxPushCurrent_v2(raw) }?;
    }
    Ok(Current { pushed, _context: PhantomData })
}

impl Drop for Current<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.pushed {
            let mut popped = ptr::null_mut();
            // SAFETY: pops what was pushed. It can fail only if the driver is gone.
            let _ = unsafe { driver::cuCtxPopCurrent_v2(&mut popped) };
        }
    }
}

/// Runs calls that have nothing to do with any capture (allocating, freeing, loading, waiting for other streams) so that they neither disturb nor
/// are refused by captures that go on elsewhere.
pub(crate) fn apart_from_captures<R>(body: impl FnOnce() -> R) -> R {
    let mut mode = RELAXED;
    // SAFETY: a valid mode in and out; affects this thread alone.
    let exchanged = unsafe { driver::cuThreadExchangeStreamCaptureMode(&mut mode) }.is_ok();
    let result = body();
    if exchanged {
        // SAFETY: puts back the mode that was there.
        let _ = unsafe { driver::cuThreadExchangeStreamCaptureMode(&mut mode) };
    }
    result
}
