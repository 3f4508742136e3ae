//! Functions that give the same bits on every GPU and on the CPU: one implementation for all.
//!
//! They are those of the crate `libm` (a port of musl's, in turn from FreeBSD's msun) without any per-target code: plain
//! IEEE 754 operations in a fixed order, errors under one unit in the last place. Square roots are correctly rounded
//! everywhere, and so may be the machine's own instruction.
//!
//! ```
//! use warpfold_monoid::math;
//!
//! assert_eq!(math::sqrt(9.0), 3.0);
//! assert_eq!(math::exp(0.0), 1.0);
//! assert_eq!(math::ln(1.0), 0.0);
//! ```

/// The exponential function.
#[inline]
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// The natural logarithm.
#[inline]
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// The exponential function.
#[inline]
pub fn expf(x: f32) -> f32 {
    libm::expf(x)
}

/// The natural logarithm.
#[inline]
pub fn lnf(x: f32) -> f32 {
    libm::logf(x)
}

/// The square root, correctly rounded.
#[inline(always)]
pub fn sqrt(x: f64) -> f64 {
    #[cfg(target_arch = "nvptx64")]
    {
        unsafe extern "C" {
            #[link_name = "llvm.sqrt.f64"]
            fn square_root(x: f64) -> f64;
        }
        // SAFETY: no memory is touched; LLVM lowers it to `sqrt.rn.f64`.
        unsafe { square_root(x) }
    }
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_mm_cvtsd_f64, _mm_set_sd, _mm_sqrt_sd};
        // SAFETY: every x86-64 has SSE2.
        unsafe {
            let x = _mm_set_sd(x);
            _mm_cvtsd_f64(_mm_sqrt_sd(x, x))
        }
    }
    #[cfg(not(any(target_arch = "nvptx64", target_arch = "x86_64")))]
    {
        libm::sqrt(x)
    }
}

/// The square root, correctly rounded.
#[inline(always)]
pub fn sqrtf(x: f32) -> f32 {
    // Rounding the f64 root of an f32 once more rounds as if at once: f64 has more than twice the bits.
    sqrt(x as f64) as f32
}

/// The modulus of a complex number: no overflow and no underflow on the way, an error of about one unit in the last place.
/// A NaN if either part is one, even if the other is an infinity (unlike C's `hypot`).
///
/// ```
/// let big = 2.0_f64.powi(700);
/// assert_eq!(warpfold_monoid::math::modulus(3.0 * big, -4.0 * big), 5.0 * big);
/// ```
#[inline(always)]
pub fn modulus(re: f64, im: f64) -> f64 {
    let (re, im) = (re.abs(), im.abs());
    let greater = if re > im { re } else { im };
    let (scale, back) = if greater > HUGE {
        (DOWN, UP)
    } else if greater < TINY {
        (UP, DOWN)
    } else {
        (1.0, 1.0)
    };
    let (re, im) = (re * scale, im * scale);
    sqrt(re * re + im * im) * back
}

/// From here on, squares of numbers are scaled down before they are added up: 2^480.
pub(crate) const HUGE: f64 = f64::from_bits((1023 + 480) << 52);

/// Under this, they are scaled up: 2^-450.
pub(crate) const TINY: f64 = f64::from_bits((1023 - 450) << 52);

/// 2^600.
pub(crate) const UP: f64 = f64::from_bits((1023 + 600) << 52);

/// 2^-600.
pub(crate) const DOWN: f64 = f64::from_bits((1023 - 600) << 52);
