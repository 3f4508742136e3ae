//! Plain data: what may lie in GPU memory and travel between threads.

/// Data that can be copied byte by byte between host, device and threads.
///
/// Primitives, arrays of plain data and `PhantomData` are plain. Structs become so by `#[derive(Plain)]`, which checks
/// everything below when it compiles, or by an `unsafe impl`, which takes the writer's word.
///
/// ```
/// use warpfold_monoid::Plain;
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Plain)]
/// struct Pair { key: u32, value: f32 }
/// ```
///
/// # Safety
///
/// The implementor promises that the type
///
/// - has a layout that both compilers agree on: a primitive, an array of plain data, or a `#[repr(C)]` or
///   `#[repr(transparent)]` struct of plain fields;
/// - has **no padding**: every byte of every value is initialised;
/// - is valid when all its bytes are zero (see [`zeroed`]);
/// - holds no pointer or reference into host memory that device code would follow.
///
/// A struct that would have padding can carry an explicit field in its place.
///
/// **Generic types.** Whether a generic struct has padding may only show with its arguments. An implementation for one
/// promises the above for the arguments with which [`LAYOUT`](Plain::LAYOUT) can be evaluated, and stops the
/// compilation there for all others. Unsafe code that relies on the promises therefore evaluates it first:
/// `const { T::LAYOUT };`. (Exporting or reducing does: [`limits::check`](crate::limits::check).)
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not plain data",
    label = "host, device and threads cannot exchange this byte by byte",
    note = "plain data is a number, a `bool`, an array of plain data, or a `#[repr(C)]` struct of them with \
            `#[derive(Clone, Copy, Plain)]`; never a reference, a pointer, an enum, a tuple of data or a heap type"
)]
pub unsafe trait Plain: Copy + Send + Sync + 'static {
    /// A fingerprint of the layout inside the type, compared between host and device before the first launch.
    /// The default knows size and alignment only; the derive macro mixes the fields' offsets and fingerprints.
    const LAYOUT: u64 = fingerprint(&[size_of::<Self>() as u64, align_of::<Self>() as u64]);
}

/// The value whose bytes are all zero: a placeholder where something must lie and nothing does.
///
/// ```
/// assert_eq!(warpfold_monoid::zeroed::<[f32; 2]>(), [0.0, 0.0]);
/// ```
#[inline(always)]
pub const fn zeroed<T: Plain>() -> T {
    const { T::LAYOUT };
    // SAFETY: zero bytes are a value of every plain type.
    unsafe { core::mem::MaybeUninit::zeroed().assume_init() }
}

/// Mixes numbers into one 64-bit fingerprint (FNV-1a over their little-endian bytes).
pub const fn fingerprint(parts: &[u64]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut i = 0;
    while i < parts.len() {
        let bytes = parts[i].to_le_bytes();
        let mut k = 0;
        while k < 8 {
            hash = (hash ^ bytes[k] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            k += 1;
        }
        i += 1;
    }
    hash
}

macro_rules! plain {
    ($($type:ty = $tag:expr),* $(,)?) => {$(
        // SAFETY: a primitive: one layout everywhere, no padding, no pointer.
        unsafe impl Plain for $type {
            const LAYOUT: u64 = fingerprint(&[$tag, size_of::<$type>() as u64]);
        }
    )*};
}

plain! {
    () = 0, bool = 1, u8 = 2, u16 = 3, u32 = 4, u64 = 5, u128 = 6, usize = 7,
    i8 = 8, i16 = 9, i32 = 10, i64 = 11, i128 = 12, isize = 13, f32 = 14, f64 = 15,
}

// SAFETY: an array has no padding beyond that of its elements, which have none.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {
    const LAYOUT: u64 = fingerprint(&[N as u64, T::LAYOUT]);
}

// SAFETY: zero bytes.
unsafe impl<T: ?Sized + 'static> Plain for core::marker::PhantomData<T> where Self: Send + Sync {}
