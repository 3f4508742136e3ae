//! Threads, warps and blocks of a GPU kernel: PTX on the device, a simulator on the host.
//!
//! A kernel is written once against this crate. Built for `nvptx64-nvidia-cuda` each call is the PTX instruction it
//! is named after; built for the host the same source runs on the threads of a [simulator](sim), which finds what a
//! GPU hides: shuffles that name absent lanes, barriers that some threads miss, races and unwritten reads in shared
//! memory, accesses out of bounds, deadlocks.
//!
//! Names and paths are those of `cuda_std`, so that a small kernel written for it builds with this crate under that
//! name.
//!
//! ```
//! use warpfold_simt::prelude::*;
//! use warpfold_simt::sim::{self, Launch, Options};
//!
//! /// Adds two arrays element by element.
//! #[kernel]
//! pub unsafe fn add(a: *const f32, b: *const f32, out: *mut f32, n: usize) {
//!     let i = thread::index_1d() as usize;
//!     if i < n {
//!         // SAFETY: `i` is within the three arrays of `n` elements, and no other thread writes element `i`.
//!         unsafe { global::store(out.add(i), global::load(a.add(i)) + global::load(b.add(i))) }
//!     }
//! }
//!
//! # fn main() -> Result<(), sim::Fault> {
//! let (a, b) = (vec![1.0f32; 1000], vec![2.0f32; 1000]);
//! let mut out = vec![0.0f32; 1000];
//! let (a, b, out_ptr) = (a.as_ptr() as usize, b.as_ptr() as usize, out.as_mut_ptr() as usize);
//! sim::launch(&Launch::new("add", 8, 128), &Options::default(), || {
//!     // SAFETY: the arrays outlive the launch and hold 1000 elements each.
//!     unsafe { add(a as *const f32, b as *const f32, out_ptr as *mut f32, 1000) }
//! })?;
//! assert!(out.iter().all(|&x| x == 3.0));
//! # Ok(())
//! # }
//! ```
#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(stdarch_nvptx, link_llvm_intrinsics, asm_experimental_arch, abi_unadjusted)
)]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]

// The seam: one of these two modules stands under everything public.
#[cfg(target_arch = "nvptx64")]
#[path = "device.rs"]
mod imp;
#[cfg(not(target_arch = "nvptx64"))]
use sim::primitives as imp;

pub mod atomic;
pub mod fence;
pub mod global;
pub mod grid;
pub mod hint;
pub mod shared;
#[cfg(not(target_arch = "nvptx64"))]
pub mod sim;
pub mod thread;
pub mod warp;

pub use warpfold_simt_macros::kernel;

/// What a kernel needs, in one import.
pub mod prelude {
    pub use crate::shared::Shared;
    pub use crate::{atomic, fence, global, kernel, shared, shared_array, thread, warp};
}

/// Defines the panic handler of a kernel crate: a panic stops the grid with a trap. Use it once, in the crate that is
/// built for the device; on the host it expands to nothing.
///
/// ```
/// warpfold_simt::device_panic_handler!();
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! device_panic_handler {
    () => {
        #[cfg(target_arch = "nvptx64")]
        #[panic_handler]
        fn panic(_: &::core::panic::PanicInfo) -> ! {
            $crate::thread::trap()
        }
    };
}
