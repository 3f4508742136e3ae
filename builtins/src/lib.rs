//! The built-in operators of warpfold, exported as GPU kernels: the leaf crate that the facade compiles for the
//! device, and the table by which its host side finds them.
//!
//! What is compiled ahead follows from a budget, a few minutes on two cores for all of it (`docs/toolchain.md`). For the
//! device a feature chooses which part of the crate is compiled; the host's tables have all.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

#[cfg(any(feature = "core", not(target_arch = "nvptx64")))]
mod core;
#[cfg(any(feature = "keys", not(target_arch = "nvptx64")))]
mod keys;
#[cfg(any(feature = "lines", not(target_arch = "nvptx64")))]
mod lines;
#[cfg(any(feature = "more", not(target_arch = "nvptx64")))]
mod more;
#[cfg(any(feature = "scans", not(target_arch = "nvptx64")))]
mod scans;
#[cfg(any(feature = "segments", not(target_arch = "nvptx64")))]
mod segments;
#[cfg(not(target_arch = "nvptx64"))]
mod table;

#[cfg(not(target_arch = "nvptx64"))]
pub use keys::{KEYS, SORTS, TAGS};
#[cfg(not(target_arch = "nvptx64"))]
pub use lines::TABLE as SCAN_LINES;
#[cfg(not(target_arch = "nvptx64"))]
pub use scans::TABLE as SCANS;
#[cfg(not(target_arch = "nvptx64"))]
pub use segments::TABLE as SEGMENTS;
#[cfg(not(target_arch = "nvptx64"))]
pub use table::TABLE;

#[cfg(target_arch = "nvptx64")]
warpfold_simt::device_panic_handler!();
