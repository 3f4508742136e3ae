//! Global memory: loads and stores that say which instruction they are.
//!
//! Every function takes pointers to *global* memory and nothing else. The simulator checks each access against the
//! buffers that the launch registered, if it registered any.

use core::mem::MaybeUninit;

use warpfold_monoid::Plain;

use crate::atomic::Word;
use crate::imp;

/// How a load treats the caches: a type argument of [`load_with`] and [`load_vector_with`].
pub mod hint {
    mod sealed {
        pub trait Sealed {}
    }

    /// One of the hints of this module.
    pub trait Hint: sealed::Sealed + crate::imp::Loads {}

    macro_rules! hints {
        ($($(#[$doc:meta])* $name:ident;)*) => {$(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            pub struct $name;
            impl sealed::Sealed for $name {}
            impl Hint for $name {}
        )*};
    }

    hints! {
        /// `ld.global`: cached at all levels.
        Plainly;
        /// `ld.global.cg`: cached at L2 only. Sees what other blocks wrote before a fence.
        Cg;
        /// `ld.global.cs`: streaming, likely used once.
        Cs;
        /// `ld.global.lu`: last use of the line.
        Lu;
        /// `ld.global.nc`: through the read-only path; nothing may write the memory while the kernel runs.
        Nc;
        /// `ld.global.L1::no_allocate`: leaves L1 to others. PTX 7.4.
        NoAllocate;
        /// `ld.global.nc.L1::no_allocate`: read-only path, leaves L1 to others. PTX 7.4.
        NcNoAllocate;
        /// `ld.global.L2::128B`: has L2 fetch 128 bytes. PTX 7.4.
        L2Prefetch128;
        /// `ld.global.L2::256B`: has L2 fetch 256 bytes (128 before sm_80). PTX 7.4.
        L2Prefetch256;
    }
}

use hint::{Cg, Cs, Hint, Plainly};

/// Reads a `T`, in pieces as wide as its alignment allows.
///
/// # Safety
///
/// `ptr` points to a `T` in global memory and is aligned for it; no thread writes it at the same time.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn load<T: Plain>(ptr: *const T) -> T {
    // SAFETY: the caller's promise.
    unsafe { imp::load::<T, Plainly>(ptr) }
}

/// [`load`] with a cache hint: `load_with::<hint::Cs, _>(ptr)`.
///
/// # Safety
///
/// As for [`load`], and what the hint asks.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn load_with<H: Hint, T: Plain>(ptr: *const T) -> T {
    // SAFETY: the caller's promise.
    unsafe { imp::load::<T, H>(ptr) }
}

/// [`load`] past L1 (`ld.global.cg`): how the last block reads what the others wrote before their fence.
///
/// The compiler may merge two such loads of one address with no fence, barrier or write between them. To poll, use
/// [`load_relaxed_gpu`].
///
/// # Safety
///
/// As for [`load`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn load_cg<T: Plain>(ptr: *const T) -> T {
    // SAFETY: the caller's promise.
    unsafe { imp::load::<T, Cg>(ptr) }
}

const fn check_vector<T, const V: usize>() {
    assert!(is_vector::<T, V>(), "a vector is 1, 2, 4, 8 or 16 bytes");
}

/// Reads `V` values with one instruction of 2 to 16 bytes: `load_vector::<f32, 4>` is `ld.global.v4`.
///
/// `V * size_of::<T>()` is a power of two up to 16, or the code does not compile:
///
/// ```compile_fail,E0080
/// let data = [0.0f32; 3];
/// let three: [f32; 3] = unsafe { warpfold_simt::global::load_vector(data.as_ptr()) };
/// ```
///
/// # Safety
///
/// `ptr` points to `V` values in global memory and is aligned to `V * size_of::<T>()` bytes; no thread writes them
/// at the same time.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn load_vector<T: Plain, const V: usize>(ptr: *const T) -> [T; V] {
    const { check_vector::<T, V>() }
    // SAFETY: the caller's promise.
    unsafe { imp::load_vector::<T, V, Plainly>(ptr) }
}

/// [`load_vector`] with a cache hint: `load_vector_with::<hint::NoAllocate, f32, 4>(ptr)`.
///
/// # Safety
///
/// As for [`load_vector`], and what the hint asks.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn load_vector_with<H: Hint, T: Plain, const V: usize>(ptr: *const T) -> [T; V] {
    const { check_vector::<T, V>() }
    // SAFETY: the caller's promise.
    unsafe { imp::load_vector::<T, V, H>(ptr) }
}

/// [`load_vector`] of data that is read once (`ld.global.cs`).
///
/// # Safety
///
/// As for [`load_vector`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn load_vector_streaming<T: Plain, const V: usize>(ptr: *const T) -> [T; V] {
    const { check_vector::<T, V>() }
    // SAFETY: the caller's promise.
    unsafe { imp::load_vector::<T, V, Cs>(ptr) }
}

/// Reads `V` neighbours of any size: with one instruction if they are a vector ([`load_vector`]), else each as
/// [`load`] does. For code that is generic over the item.
///
/// ```
/// use warpfold_simt::global;
///
/// assert!(global::is_vector::<f32, 4>() && !global::is_vector::<[f32; 3], 1>());
/// ```
///
/// # Safety
///
/// `ptr` points to `V` values in global memory, aligned to all of them if they are a vector, else to one; no thread
/// writes them at the same time.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn load_neighbours<T: Plain, const V: usize>(ptr: *const T) -> [T; V] {
    // SAFETY: the caller's promise.
    unsafe { load_neighbours_with::<Plainly, T, V>(ptr) }
}

/// [`load_neighbours`] with a cache hint, where they are a vector.
///
/// # Safety
///
/// As for [`load_neighbours`], and what the hint asks.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn load_neighbours_with<H: Hint, T: Plain, const V: usize>(ptr: *const T) -> [T; V] {
    if const { is_vector::<T, V>() } {
        // SAFETY: the caller's promise.
        unsafe { imp::load_vector::<T, V, H>(ptr) }
    } else {
        // Neighbours share cache lines, which L1 must keep meanwhile.
        // SAFETY: the caller's promise.
        core::array::from_fn(|i| unsafe { imp::load::<T, Plainly>(ptr.wrapping_add(i)) })
    }
}

/// [`load_with`] if `wanted`, else any bits: one instruction behind a predicate, not behind a branch, for which later
/// loads would wait. The compiler leaves it where it stands.
///
/// # Safety
///
/// If `wanted`, as for [`load_with`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn load_if<H: Hint, T: Plain>(wanted: bool, ptr: *const T) -> MaybeUninit<T> {
    // SAFETY: the caller's promise.
    unsafe { imp::load_if::<T, H>(wanted, ptr) }
}

/// [`load_neighbours_with`] if `wanted`, else any bits; on how see [`load_if`].
///
/// # Safety
///
/// If `wanted`, as for [`load_neighbours_with`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn load_neighbours_if<H: Hint, T: Plain, const V: usize>(
    wanted: bool,
    ptr: *const T,
) -> MaybeUninit<[T; V]> {
    if const { is_vector::<T, V>() } {
        // SAFETY: the caller's promise.
        unsafe { imp::load_vector_if::<T, V, H>(wanted, ptr) }
    } else {
        // Neighbours share cache lines, which L1 must keep meanwhile. In pieces as the items' alignment allows.
        // SAFETY: the caller's promise.
        unsafe { imp::load_if::<[T; V], Plainly>(wanted, ptr.cast()) }
    }
}

/// Can `V` values be read with one instruction, where they are aligned to their size?
pub const fn is_vector<T, const V: usize>() -> bool {
    let size = size_of::<[T; V]>();
    V.is_power_of_two() && size.is_power_of_two() && size <= 16
}

/// Writes a `T`, in pieces as wide as its alignment allows.
///
/// # Safety
///
/// `ptr` points to a `T` in global memory and is aligned for it; no other thread accesses it at the same time.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn store<T: Plain>(ptr: *mut T, value: T) {
    // SAFETY: the caller's promise.
    unsafe { imp::store::<T, false>(ptr, value) }
}

/// [`store`] of data that is not read again soon (`st.global.cs`).
///
/// # Safety
///
/// As for [`store`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn store_streaming<T: Plain>(ptr: *mut T, value: T) {
    // SAFETY: the caller's promise.
    unsafe { imp::store::<T, true>(ptr, value) }
}

/// Writes `V` values with one instruction of up to 16 bytes.
///
/// # Safety
///
/// `ptr` points to `V` values in global memory and is aligned to `V * size_of::<T>()` bytes; no other thread
/// accesses them at the same time.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn store_vector<T: Plain, const V: usize>(ptr: *mut T, value: [T; V]) {
    const { check_vector::<T, V>() }
    // SAFETY: the caller's promise.
    unsafe { imp::store_vector::<T, V, false>(ptr, value) }
}

/// [`store_vector`] of data that is not read again soon (`st.global.cs`).
///
/// # Safety
///
/// As for [`store_vector`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn store_vector_streaming<T: Plain, const V: usize>(ptr: *mut T, value: [T; V]) {
    const { check_vector::<T, V>() }
    // SAFETY: the caller's promise.
    unsafe { imp::store_vector::<T, V, true>(ptr, value) }
}

/// Writes `V` neighbours of any size: with one instruction if they are a vector ([`store_vector`]), else each as [`store`]
/// does. For code that is generic over the item.
///
/// # Safety
///
/// `ptr` points to `V` values in global memory, aligned to all of them if they are a vector ([`is_vector`]), else to each;
/// no other thread accesses them at the same time.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn store_neighbours<T: Plain, const V: usize>(ptr: *mut T, values: [T; V]) {
    if const { is_vector::<T, V>() } {
        // SAFETY: the caller's promise.
        unsafe { imp::store_vector::<T, V, false>(ptr, values) }
    } else {
        let mut i = 0;
        while i < V {
            // SAFETY: the caller's promise.
            unsafe { imp::store::<T, false>(ptr.wrapping_add(i), values[i]) };
            i += 1;
        }
    }
}

macro_rules! ordered {
    ($($(#[$doc:meta])* load $name:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// `ptr` is an aligned word of global memory, and every concurrent write to it is atomic.
        #[inline(always)]
        #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
        pub unsafe fn $name<T: Word>(ptr: *const T) -> T {
            // SAFETY: the caller's promise.
            unsafe { T::$name(ptr) }
        }
    )*};
    ($($(#[$doc:meta])* store $name:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// `ptr` is an aligned word of global memory, and every concurrent access to it is atomic.
        #[inline(always)]
        #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
        pub unsafe fn $name<T: Word>(ptr: *mut T, value: T) {
            // SAFETY: the caller's promise.
            unsafe { T::$name(ptr, value) }
        }
    )*};
}

ordered! {
    /// Reads a word anew each time (`ld.volatile.global`). Fit for polling.
    load load_volatile;
    /// Reads a word atomically among the device's threads, ordering nothing else (`ld.relaxed.gpu`). Fit for
    /// polling.
    load load_relaxed_gpu;
    /// Reads a word atomically; what follows stays after it (`ld.acquire.gpu`). Fit for polling.
    load load_acquire_gpu;
}

ordered! {
    /// Writes a word each time (`st.volatile.global`).
    store store_volatile;
    /// Writes a word atomically among the device's threads, ordering nothing else (`st.relaxed.gpu`).
    store store_relaxed_gpu;
    /// Writes a word atomically; what precedes stays before it (`st.release.gpu`).
    store store_release_gpu;
}

/// Reads two words with one instruction (`ld.relaxed.gpu.global.v2.u64`). Fit for polling.
///
/// PTX promises atomicity for each word, not for the pair. Every card from sm_70 on moves the aligned 16 bytes as
/// one; code that must not rely on that keeps a check in each word.
///
/// # Safety
///
/// `ptr` is in global memory and aligned to 16 bytes, and every concurrent write to it is atomic.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn load_pair_relaxed_gpu(ptr: *const [u64; 2]) -> [u64; 2] {
    // SAFETY: the caller's promise.
    unsafe { imp::load_pair_relaxed_gpu(ptr) }
}

/// Writes two words with one instruction (`st.relaxed.gpu.global.v2.u64`). On atomicity see
/// [`load_pair_relaxed_gpu`].
///
/// # Safety
///
/// `ptr` is in global memory and aligned to 16 bytes, and every concurrent access to it is atomic.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn store_pair_relaxed_gpu(ptr: *mut [u64; 2], value: [u64; 2]) {
    // SAFETY: the caller's promise.
    unsafe { imp::store_pair_relaxed_gpu(ptr, value) }
}
