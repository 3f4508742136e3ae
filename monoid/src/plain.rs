//! Plain data: what may lie in GPU memory and travel between threads.

/// Data that can be copied byte by byte between host, device and threads.
///
/// # Safety
///
/// The implementor promises that the type
///
/// - has a layout that both compilers agree on: a primitive, an array of plain data, or a `#[repr(C)]` or
///   `#[repr(transparent)]` struct of plain fields;
/// - has **no padding**: every byte of every value is initialised;
/// - holds no pointer or reference into host memory that device code would follow.
///
/// A struct that would have padding can carry an explicit field in its place.
///
/// ```
/// use warpfold_monoid::Plain;
///
/// #[repr(C)]
/// #[derive(Clone, Copy)]
/// struct Pair { key: u32, value: f32 }
///
/// // SAFETY: repr(C), two 4-byte fields without padding, no pointers.
/// unsafe impl Plain for Pair {}
/// ```
pub unsafe trait Plain: Copy + Send + Sync + 'static {
    /// A fingerprint of the layout inside the type, compared between host and device before the first launch.
    /// The default knows size and alignment only.
    const LAYOUT: u64 = fingerprint(&[size_of::<Self>() as u64, align_of::<Self>() as u64]);
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
