//! The driver's functions, each call checked.
//!
//! They are declared here, not taken from `cust::sys`, for one reason: the bindings return a Rust enum of the codes
//! that CUDA 11.4 knew, and a newer driver returns others, which as values of that enum would be undefined behaviour.
//! Here a result is a number. Types and link directives are those of `cust::sys`.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    ptr,
};

use cust::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphNode, CUmodule, CUstream,
    CUuserObject,
};

use crate::Error;

/// A driver call that failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    call: &'static str,
    pub(crate) code: u32,
}

/// What the driver returns when no device is there, or only the linker's stub of the driver.
pub(crate) const NO_DEVICE: u32 = 100;
/// What the stub library of a CUDA toolkit returns.
pub(crate) const STUB_LIBRARY: u32 = 34;
/// Not enough device memory.
pub(crate) const OUT_OF_MEMORY: u32 = 2;

impl Failure {
    /// Is it that something was done that a stream capture forbids?
    pub(crate) fn is_capture(self) -> bool {
        (900..=908).contains(&self.code)
    }

    /// The driver's name for the code.
    pub(crate) fn name(self) -> String {
        text(raw::cuGetErrorName, self.code)
    }

    /// The error, with what was being done.
    pub(crate) fn doing(self, what: impl Into<String>) -> Error {
        Error::Driver {
            call: self.call,
            code: self.code,
            name: self.name(),
            description: text(raw::cuGetErrorString, self.code),
            doing: what.into(),
        }
    }
}

/// Adds to a failure what was being done.
pub(crate) trait Doing<T> {
    /// The error, with what was being done.
    fn doing<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T, Error>;
}

impl<T> Doing<T> for Result<T, Failure> {
    #[inline]
    fn doing<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T, Error> {
        self.map_err(|failure| failure.doing(what()))
    }
}

/// Asks the driver for the words to a code.
fn text(ask: unsafe extern "C" fn(u32, *mut *const c_char) -> u32, code: u32) -> String {
    let mut text = ptr::null();
    // SAFETY: a valid place for the answer.
    let result = unsafe { ask(code, &mut text) };
    if result != 0 || text.is_null() {
        return "unknown to this driver".into();
    }
    // SAFETY: the driver's answers are strings of static duration.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

macro_rules! functions {
    ($(fn $name:ident($($arg:ident: $type:ty),* $(,)?);)*) => {
        mod raw {
            use super::*;
            #[link(name = "cuda")]
            unsafe extern "C" {
                $(pub fn $name($($arg: $type),*) -> u32;)*
                pub fn cuGetErrorName(error: u32, text: *mut *const c_char) -> u32;
                pub fn cuGetErrorString(error: u32, text: *mut *const c_char) -> u32;
            }
        }
        $(
            /// The driver's function of that name, checked.
            ///
            /// # Safety
            ///
            /// As the CUDA driver API documents.
            #[allow(non_snake_case, clippy::too_many_arguments)]
            #[inline]
            pub(crate) unsafe fn $name($($arg: $type),*) -> Result<(), Failure> {
                // SAFETY: the caller's promise.
                match unsafe { raw::$name($($arg),*) } {
                    0 => Ok(()),
                    code => Err(Failure { call: stringify!($name), code }),
                }
            }
        )*
    };
}

functions! {
    fn cuInit(flags: c_uint);
    fn cuDriverGetVersion(version: *mut c_int);
    fn cuDeviceGetCount(count: *mut c_int);
    fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    fn cuDeviceGetName(name: *mut c_char, len: c_int, device: CUdevice);
    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_uint, device: CUdevice);
    fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    fn cuDevicePrimaryCtxRelease_v2(device: CUdevice);
    fn cuCtxGetCurrent(context: *mut CUcontext);
    fn cuCtxPushCurrent_v2(context: CUcontext);
    fn cuCtxPopCurrent_v2(context: *mut CUcontext);
    fn cuCtxGetDevice(device: *mut CUdevice);
    fn cuCtxSynchronize();
    fn cuModuleLoadDataEx(
        module: *mut CUmodule,
        image: *const c_void,
        count: c_uint,
        options: *mut c_uint,
        values: *mut *mut c_void,
    );
    fn cuModuleUnload(module: CUmodule);
    fn cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    fn cuFuncSetAttribute(function: CUfunction, attribute: c_uint, value: c_int);
    fn cuModuleGetGlobal_v2(
        address: *mut CUdeviceptr,
        bytes: *mut usize,
        module: CUmodule,
        name: *const c_char,
    );
    fn cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize);
    fn cuMemFree_v2(address: CUdeviceptr);
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    fn cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, flags: c_uint);
    fn cuMemFreeHost(address: *mut c_void);
    fn cuMemHostGetDevicePointer_v2(address: *mut CUdeviceptr, host: *mut c_void, flags: c_uint);
    fn cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    fn cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
    fn cuEventCreate(event: *mut CUevent, flags: c_uint);
    fn cuEventDestroy_v2(event: CUevent);
    fn cuEventRecord(event: CUevent, stream: CUstream);
    fn cuEventSynchronize(event: CUevent);
    fn cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
    fn cuMemsetD8Async(address: CUdeviceptr, value: u8, count: usize, stream: CUstream);
    fn cuPointerGetAttribute(value: *mut c_void, attribute: c_uint, address: CUdeviceptr);
    fn cuStreamCreate(stream: *mut CUstream, flags: c_uint);
    fn cuStreamDestroy_v2(stream: CUstream);
    fn cuStreamSynchronize(stream: CUstream);
    fn cuStreamIsCapturing(stream: CUstream, status: *mut c_uint);
    fn cuStreamGetCaptureInfo_v2(
        stream: CUstream,
        status: *mut c_uint,
        id: *mut u64,
        graph: *mut CUgraph,
        dependencies: *mut *const CUgraphNode,
        count: *mut usize,
    );
    fn cuThreadExchangeStreamCaptureMode(mode: *mut c_uint);
    fn cuLaunchKernel(
        function: CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared_bytes: c_uint,
        stream: CUstream,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    );
    fn cuUserObjectCreate(
        object: *mut CUuserObject,
        data: *mut c_void,
        destroy: unsafe extern "C" fn(*mut c_void),
        references: c_uint,
        flags: c_uint,
    );
    fn cuUserObjectRelease(object: CUuserObject, count: c_uint);
    fn cuGraphRetainUserObject(graph: CUgraph, object: CUuserObject, count: c_uint, flags: c_uint);
    fn cuGetProcAddress(symbol: *const c_char, function: *mut *mut c_void, version: c_int, flags: u64);
}

/// A launch in full: `CUlaunchConfig` of CUDA 11.8 and later.
#[repr(C)]
pub(crate) struct LaunchConfig {
    pub(crate) grid: [c_uint; 3],
    pub(crate) block: [c_uint; 3],
    pub(crate) shared_bytes: c_uint,
    pub(crate) stream: CUstream,
    pub(crate) attributes: *const LaunchAttribute,
    pub(crate) attribute_count: c_uint,
}

/// `CUlaunchAttribute`: a number for what it is, and a union of 64 bytes.
#[repr(C, align(8))]
pub(crate) struct LaunchAttribute {
    id: c_uint,
    _gap: c_uint,
    value: [c_int; 16],
}

impl LaunchAttribute {
    /// The kernel may start before the work ahead of it in the stream is done:
    /// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
    pub(crate) const OVERLAP: LaunchAttribute = LaunchAttribute {
        id: 6,
        _gap: 0,
        value: {
            let mut value = [0; 16];
            value[0] = 1;
            value
        },
    };
}

/// `cuLaunchKernelEx`, which drivers before CUDA 11.8 do not have.
pub(crate) type LaunchKernelEx =
    unsafe extern "C" fn(*const LaunchConfig, CUfunction, *mut *mut c_void, *mut *mut c_void) -> u32;

/// What a call of [`LaunchKernelEx`] returned.
pub(crate) fn launched(code: u32) -> Result<(), Failure> {
    match code {
        0 => Ok(()),
        code => Err(Failure { call: "cuLaunchKernelEx", code }),
    }
}
