//! Functions that give the same bits on every GPU and on the CPU: one implementation for all.
//!
//! Plain IEEE 754 operations in a fixed order, errors of about one unit in the last place. Logarithms, and the functions of
//! `f32`, are those of the crate `libm` (a port of musl's, in turn from FreeBSD's msun) without any per-target code. The
//! exponential of `f64`, which operators call for each item, has no branches, no tables and no division. Square roots are
//! correctly rounded everywhere, and so may be the machine's own instruction.
//!
//! ```
//! use warpfold_monoid::math;
//!
//! assert_eq!(math::sqrt(9.0), 3.0);
//! assert_eq!(math::exp(0.0), 1.0);
//! assert_eq!(math::ln(1.0), 0.0);
//! ```

/// The exponential function: `2^k exp(r)` with `|r|` at most half of ln 2, whose series is taken as far as an `f64` sees.
///
/// ```
/// use warpfold_monoid::math::exp;
///
/// assert_eq!((exp(-0.0), exp(-1000.0), exp(1000.0)), (1.0, 0.0, f64::INFINITY));
/// assert!((exp(1.0) - core::f64::consts::E).abs() < 5e-16 && exp(f64::NAN).is_nan());
/// ```
// A function of its own on a GPU: in line, each lane of a thread would bring a copy.
#[cfg_attr(target_arch = "nvptx64", inline(never))]
#[cfg_attr(not(target_arch = "nvptx64"), inline)]
pub fn exp(x: f64) -> f64 {
    /// Added and taken off again, it leaves an integer.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    /// The leading bits of ln 2, so few that multiples of it are exact, and the rest (fdlibm's).
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    /// The reciprocals of the factorials from 13 down to 2.
    const SERIES: [f64; 12] = [
        1.6059043836821613e-10,
        2.08767569878681e-09,
        2.505210838544172e-08,
        2.755731922398589e-07,
        2.7557319223985893e-06,
        2.48015873015873e-05,
        0.0001984126984126984,
        0.001388888888888889,
        0.008333333333333333,
        0.041666666666666664,
        0.16666666666666666,
        0.5,
    ];
    // Beyond, the result is infinite or 0 whatever the rest does. A NaN stays one.
    let x = if x > 710.0 { 710.0 } else { x };
    let x = if x < -746.0 { -746.0 } else { x };
    let k = (x * core::f64::consts::LOG2_E + ROUND) - ROUND;
    let high = x - k * LN2_HIGH;
    let low = k * LN2_LOW;
    let r = high - low;
    let mut series = SERIES[0];
    let mut i = 1;
    while i < SERIES.len() {
        series = series * r + SERIES[i];
        i += 1;
    }
    // What rounding took from `r` counts too.
    let lost = (high - r) - low;
    let value = 1.0 + (r + (r * r * series + lost));
    // In two steps, for neither power alone may be a number.
    let k = k as i32;
    let power = |k: i32| f64::from_bits(((1023 + k) as u64) << 52);
    value * power(k / 2) * power(k - k / 2)
}

/// The natural logarithm.
#[cfg_attr(target_arch = "nvptx64", inline(never))]
#[cfg_attr(not(target_arch = "nvptx64"), inline)]
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

/// `a * b + c`, rounded once: for errors of products, which are exact with it.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn fused_multiply_add(a: f64, b: f64, c: f64) -> f64 {
    unsafe extern "C" {
        #[link_name = "llvm.fma.f64"]
        fn fused(a: f64, b: f64, c: f64) -> f64;
    }
    // SAFETY: no memory is touched; LLVM lowers it to `fma.rn.f64`.
    unsafe { fused(a, b, c) }
}

/// A sum plus the four products of the bytes of two words, with a sign or without: wraps.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn plus_products_of_bytes(sum: i32, a: u32, b: u32, signed: bool) -> i32 {
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.idp4a.s.s"]
        fn of_signed(a: u32, b: u32, sum: i32) -> i32;
        #[link_name = "llvm.nvvm.idp4a.u.u"]
        fn of_unsigned(a: u32, b: u32, sum: i32) -> i32;
    }
    // SAFETY: no memory is touched; LLVM lowers them to `dp4a`.
    unsafe { if signed { of_signed(a, b, sum) } else { of_unsigned(a, b, sum) } }
}

/// A sum plus the four bytes of a word.
#[inline(always)]
pub(crate) fn plus_bytes(sum: u32, word: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    return plus_products_of_bytes(sum as i32, word, 0x0101_0101, false) as u32;
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let pairs = (word & 0x00ff_00ff) + (word >> 8 & 0x00ff_00ff);
        sum + (pairs & 0xffff) + (pairs >> 16)
    }
}

/// For [`pick_bytes`]: the sign of each half of the first word, in all its bits.
pub(crate) const SIGNS_OF_HALVES: u32 = 0xbb99;

/// Four of the eight bytes of two words: byte `i` of the result is the one whose number stands in the `i`-th four bits, or, if
/// 8 is added to it, that byte's sign in all bits.
#[inline(always)]
pub(crate) fn pick_bytes(low: u32, high: u32, numbers: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        unsafe extern "C" {
            #[link_name = "llvm.nvvm.prmt"]
            fn permute(low: u32, high: u32, numbers: u32) -> u32;
        }
        // SAFETY: no memory is touched; LLVM lowers it to `prmt.b32`.
        unsafe { permute(low, high, numbers) }
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let bytes = low as u64 | (high as u64) << 32;
        let byte = |i: u32| {
            let number = numbers >> (4 * i);
            let byte = (bytes >> (8 * (number & 7))) as u8;
            (if number & 8 == 0 { byte } else { (byte as i8 >> 7) as u8 }) as u32
        };
        byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24
    }
}

/// The bits of the lesser of two `f32`; of a NaN if either is one; -0.0 is less than +0.0.
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
#[inline(always)]
pub(crate) fn least_f32(a: u32, b: u32) -> u32 {
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.fmin.nan.f"]
        fn least(a: f32, b: f32) -> f32;
    }
    // SAFETY: no memory is touched; LLVM lowers it to `min.NaN.f32`.
    unsafe { least(f32::from_bits(a), f32::from_bits(b)) }.to_bits()
}

/// The bits of the greater of two `f32`; of a NaN if either is one; +0.0 is greater than -0.0.
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
#[inline(always)]
pub(crate) fn greatest_f32(a: u32, b: u32) -> u32 {
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.fmax.nan.f"]
        fn greatest(a: f32, b: f32) -> f32;
    }
    // SAFETY: no memory is touched; LLVM lowers it to `max.NaN.f32`.
    unsafe { greatest(f32::from_bits(a), f32::from_bits(b)) }.to_bits()
}

/// The lesser of two numbers, of which a NaN is none; -0.0 is less than +0.0.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn least_number_f32(a: f32, b: f32) -> f32 {
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.fmin.f"]
        fn least(a: f32, b: f32) -> f32;
    }
    // SAFETY: no memory is touched; LLVM lowers it to `min.f32`.
    unsafe { least(a, b) }
}

/// The greater of two numbers, of which a NaN is none; +0.0 is greater than -0.0.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn greatest_number_f32(a: f32, b: f32) -> f32 {
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.fmax.f"]
        fn greatest(a: f32, b: f32) -> f32;
    }
    // SAFETY: no memory is touched; LLVM lowers it to `max.f32`.
    unsafe { greatest(a, b) }
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

/// The value of an `f16` with these bits.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn f16_to_f64(bits: u16) -> f64 {
    f16::from_bits(bits) as f64
}

/// The value of an `f16` with these bits.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    f16::from_bits(bits) as f32
}

/// The bits of the `f16` nearest to a value.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn f32_to_f16(value: f32) -> u16 {
    (value as f16).to_bits()
}
