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

/// The value itself, which the compiler knows nothing about: what depends on it stays as it is written.
#[inline(always)]
pub fn opaque(value: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let mut value = value;
        // SAFETY: no instruction.
        unsafe {
            core::arch::asm!("/* {} */", inout(reg32) value, options(pure, nomem, nostack, preserves_flags))
        }
        value
    }
    #[cfg(not(target_arch = "nvptx64"))]
    value
}

/// The upper half of a product, by one instruction.
#[inline(always)]
pub fn mul_hi(a: u32, b: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let high: u32;
        // SAFETY: arithmetic alone.
        unsafe {
            core::arch::asm!(
                "mul.hi.u32 {}, {}, {};",
                out(reg32) high,
                in(reg32) a,
                in(reg32) b,
                options(pure, nomem, nostack, preserves_flags)
            )
        }
        high
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        ((u64::from(a) * u64::from(b)) >> 32) as u32
    }
}

/// The value itself, which is there from here on: what it is computed from is not kept for later instead.
#[inline(always)]
pub fn pinned(value: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let mut value = value;
        // SAFETY: no instruction. Not `pure`, so that it stays where it stands.
        unsafe { core::arch::asm!("/* {} */", inout(reg32) value, options(nomem, nostack, preserves_flags)) }
        value
    }
    #[cfg(not(target_arch = "nvptx64"))]
    value
}
