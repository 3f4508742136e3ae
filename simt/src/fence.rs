//! Memory fences under their PTX names: order (`acq_rel`, `sc`) and scope (`cta` a block, `gpu` a device, `sys` all).
//!
//! A fence orders the calling thread's own accesses; no thread waits for another. Writing data, then a release
//! fence, then a flag by a relaxed access, lets a thread that has read the flag and passed an acquire fence see the
//! data. The simulator runs memory in order and cannot miss a fence; tests of the PTX hold those.

use crate::imp;

/// `fence.acq_rel.cta`: acquire and release among the threads of a block.
#[inline(always)]
pub fn acq_rel_cta() {
    imp::fence_acq_rel_cta()
}

/// `fence.acq_rel.gpu`: acquire and release among all threads of the device. The fence on both sides of a
/// last-block ticket.
#[inline(always)]
pub fn acq_rel_gpu() {
    imp::fence_acq_rel_gpu()
}

/// `fence.acq_rel.sys`: acquire and release among all devices and the host.
#[inline(always)]
pub fn acq_rel_sys() {
    imp::fence_acq_rel_sys()
}

/// `fence.sc.cta`: sequential consistency among the threads of a block.
#[inline(always)]
pub fn sc_cta() {
    imp::fence_sc_cta()
}

/// `fence.sc.gpu`: sequential consistency among all threads of the device.
#[inline(always)]
pub fn sc_gpu() {
    imp::fence_sc_gpu()
}

/// `fence.sc.sys`: sequential consistency among all devices and the host.
#[inline(always)]
pub fn sc_sys() {
    imp::fence_sc_sys()
}
