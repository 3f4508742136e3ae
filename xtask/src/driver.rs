//! Which CUDA driver this machine has, asked of the driver itself.

use std::ffi::{c_int, c_uint};

use libloading::{Library, Symbol};

/// What the loader finds under `libcuda.so.1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Driver {
    /// No such library.
    Absent,
    /// A library, but no GPU that it would use; the code that `cuInit` answered.
    NoDevice(i32),
    /// A working driver with this many GPUs.
    Devices(i32),
}

/// Loads the driver library as any program would and counts its devices.
pub fn probe() -> Driver {
    // SAFETY: loading the driver library runs its initialisers, as every CUDA program does; both functions have had
    // these types since the first driver.
    unsafe {
        let Ok(library) = Library::new("libcuda.so.1") else { return Driver::Absent };
        let init: Result<Symbol<unsafe extern "C" fn(c_uint) -> c_int>, _> = library.get("cuInit");
        let count: Result<Symbol<unsafe extern "C" fn(*mut c_int) -> c_int>, _> =
            library.get("cuDeviceGetCount");
        let (Ok(init), Ok(count)) = (init, count) else { return Driver::Absent };
        let code = init(0);
        if code != 0 {
            return Driver::NoDevice(code);
        }
        let mut devices = 0;
        match count(&mut devices) {
            0 if devices > 0 => Driver::Devices(devices),
            code => Driver::NoDevice(code),
        }
    }
}
