//! Hints to the compilers. None changes what a kernel computes.

/// Marks the path that reaches it as the unlikely one, so that its code is laid out apart.
#[inline(always)]
pub fn cold_path() {
    #[cfg(target_arch = "nvptx64")]
    core::hint::cold_path();
}

/// At the top of a loop's body: asks `ptxas` to leave the loop rolled. Short kernels are bound by fetching their
/// instructions.
#[inline(always)]
pub fn nounroll() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: a directive to the assembler, no instruction.
    unsafe {
        core::arch::asm!(".pragma \"nounroll\";", options(nomem, nostack, preserves_flags));
    }
}
