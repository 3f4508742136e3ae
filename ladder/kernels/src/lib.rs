//! The kernels of the papers (`gpu-kernels/src/ladder`), exported for GPUs: a module a paper, and its entries' group is named
//! after it.
//!
//! `ladder/build.rs` compiles it. On the host there is nothing here.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

/// An entry point: `entry! { group__kernel(params: Params) { body } }`. The launch promises what the documentation of the
/// parameters asks for, so the body may call what is unsafe. With `up to THREADS` in front of the body the kernel is
/// compiled for blocks of that size at most.
#[cfg(target_arch = "nvptx64")]
macro_rules! entry {
    ($name:ident($params:ident: $ty:ty) $(up to $threads:expr,)? $body:block) => {
        const _: () = {
            #[unsafe(export_name = stringify!($name))]
            unsafe extern "ptx-kernel" fn entry($params: $ty) {
                // SAFETY: the launch promises what the parameters' documentation asks for.
                unsafe { $body }
            }
            $(
                #[unsafe(export_name = concat!(stringify!($name), "__launch_bounds"))]
                static LAUNCH_BOUNDS: u32 = $threads;
            )?
        };
    };
}

#[cfg(target_arch = "nvptx64")]
mod future;
#[cfg(target_arch = "nvptx64")]
mod harris;
#[cfg(target_arch = "nvptx64")]
mod keyed;
#[cfg(target_arch = "nvptx64")]
mod moderngpu;
#[cfg(target_arch = "nvptx64")]
mod one_array;
#[cfg(target_arch = "nvptx64")]
mod ordered;
#[cfg(target_arch = "nvptx64")]
mod patel;
#[cfg(target_arch = "nvptx64")]
mod scans;
#[cfg(target_arch = "nvptx64")]
mod thesis;
#[cfg(target_arch = "nvptx64")]
mod timcheck;
#[cfg(target_arch = "nvptx64")]
mod transpose;

#[cfg(target_arch = "nvptx64")]
warpfold_simt::device_panic_handler!();
