//! Hints to the compilers: they change the instructions, never the result.

/// In a loop's body: has `ptxas` leave the loop rolled (`.pragma "nounroll"`). Short kernels are bound by the
/// instructions that they fetch.
#[inline(always)]
pub fn nounroll() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: a directive, no instruction.
    unsafe {
        core::arch::asm!(".pragma \"nounroll\";", options(nomem, nostack, preserves_flags))
    }
}

/// In a branch: says that it is rarely taken, so that the other one is laid out straight.
#[inline(always)]
pub fn cold_path() {
    #[cfg(target_arch = "nvptx64")]
    core::hint::cold_path();
}
