//! What the benches of a GPU share: driver calls, events, memory.

use std::{
    error::Error,
    ffi::{CStr, c_char},
    ptr,
};

use warpfold::{
    Engine, Plain,
    cuda::cust::{
        context::Context,
        device::Device,
        sys::{self, CUevent, CUstream},
    },
};

/// The first GPU, and its context, which is current on this thread until it is dropped: events and streams belong to it. Where
/// there is none, says so.
pub fn gpu() -> Result<Option<(Engine, Context)>, Box<dyn Error>> {
    match Engine::cuda(0) {
        Ok(engine) => Ok(Some((engine, Context::new(Device::get_device(0)?)?))),
        Err(error) => {
            println!("skipped: {error}");
            Ok(None)
        }
    }
}

/// Is a section asked for on the command line? All are where none is named.
#[allow(dead_code, reason = "some benches have no sections")]
pub fn wants(section: &str) -> bool {
    let mut sections = std::env::args().skip(1).filter(|word| !word.starts_with('-')).peekable();
    sections.peek().is_none() || sections.any(|word| word == section)
}

/// Copies a slice to device memory.
///
/// # Safety
///
/// `address` leads to as much device memory, which nothing else uses.
pub unsafe fn copy<T: Plain>(address: u64, items: &[T]) -> Result<(), Box<dyn Error>> {
    // SAFETY: the caller's promise.
    unsafe { sys::cuMemcpyHtoD_v2(address, items.as_ptr().cast(), size_of_val(items)) }.done()
}

/// The card and the driver.
pub fn describe() -> Result<String, Box<dyn Error>> {
    let mut version = 0;
    let mut name: [c_char; 128] = [0; 128];
    // SAFETY: valid places for the answers; the driver ends the name with a zero.
    let card = unsafe {
        sys::cuDriverGetVersion(&mut version).done()?;
        sys::cuDeviceGetName(name.as_mut_ptr(), name.len() as i32, 0).done()?;
        CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned()
    };
    Ok(format!("card: {card}; CUDA of the driver: {}.{}", version / 1000, version % 1000 / 10))
}

/// Time on the device, between two events on a stream.
pub struct Events([CUevent; 2]);

impl Events {
    /// Two events of the current context.
    pub fn new() -> Result<Self, Box<dyn Error>> {
        let mut events = [ptr::null_mut(); 2];
        for event in &mut events {
            // SAFETY: a valid place for the answer.
            unsafe { sys::cuEventCreate(event, 0) }.done()?;
        }
        Ok(Events(events))
    }

    /// Records the first or the second.
    pub fn record(&self, which: usize, stream: CUstream) {
        // SAFETY: a live event and stream.
        unsafe { sys::cuEventRecord(self.0[which], stream) }.done().expect("a live stream");
    }

    /// From the first to the second, for which it waits.
    pub fn nanoseconds(&self) -> f64 {
        let mut milliseconds = 0f32;
        // SAFETY: both were recorded; a valid place for the answer.
        unsafe {
            sys::cuEventSynchronize(self.0[1]).done().expect("recorded");
            sys::cuEventElapsedTime(&mut milliseconds, self.0[0], self.0[1]).done().expect("recorded");
        }
        milliseconds as f64 * 1e6
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        for event in self.0 {
            // SAFETY: ours; a failure while tearing down has nobody to tell.
            let _ = unsafe { sys::cuEventDestroy_v2(event) };
        }
    }
}

/// A driver call that says what went wrong.
pub trait Done {
    /// `Ok` if it succeeded.
    fn done(self) -> Result<(), Box<dyn Error>>;
}

impl Done for sys::CUresult {
    fn done(self) -> Result<(), Box<dyn Error>> {
        match self {
            sys::CUresult::CUDA_SUCCESS => Ok(()),
            code => Err(format!("the driver answered {code:?}").into()),
        }
    }
}
