//! Atomic reads, writes and updates of words in global memory, with the order and scope that the PTX carries.
//!
//! Orders and scopes are values, spelled as PTX spells them: `fetch_add(ptr, 1, AcqRel, Gpu)` is
//! `atom.acq_rel.gpu.global.add`. (rustc's own atomics compile to relaxed read-modify-writes on this target, whatever
//! order they are given.) Loads and stores with order are in [`global`](crate::global).
//!
//! ```
//! use warpfold_simt::atomic::{self, Gpu, Relaxed};
//! use warpfold_simt::sim::{self, Launch, Options};
//!
//! # fn main() -> Result<(), sim::Fault> {
//! let mut count = 0u32;
//! let ptr = &raw mut count as usize;
//! sim::launch(&Launch::new("count", 4, 64), &Options::default(), || {
//!     // SAFETY: an aligned word that lives as long as the launch.
//!     unsafe { atomic::fetch_add(ptr as *mut u32, 1, Relaxed, Gpu) };
//! })?;
//! assert_eq!(count, 4 * 64);
//! # Ok(())
//! # }
//! ```
//!
//! A type without an instruction does not compile:
//!
//! ```compile_fail,E0277
//! use warpfold_simt::atomic::{self, Gpu, Relaxed};
//!
//! let mut byte = 0u8;
//! unsafe { atomic::fetch_add(&raw mut byte, 1, Relaxed, Gpu) };
//! ```

use crate::imp;

/// An order, as a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderKind {
    /// Atomic, ordering nothing else.
    Relaxed,
    /// What follows stays after it.
    Acquire,
    /// What precedes stays before it.
    Release,
    /// Both.
    AcqRel,
}

/// A scope, as a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeKind {
    /// The block.
    Cta,
    /// The device.
    Gpu,
    /// All devices and the host.
    Sys,
}

mod sealed {
    pub trait Sealed {}
}

/// The order of an atomic update: [`Relaxed`], [`Acquire`], [`Release`] or [`AcqRel`].
pub trait MemoryOrder: sealed::Sealed {
    /// Which of them.
    const KIND: OrderKind;
}

/// The threads among which an update is atomic: [`Cta`], [`Gpu`] or [`Sys`].
pub trait MemoryScope: sealed::Sealed {
    /// Which of them.
    const KIND: ScopeKind;
}

macro_rules! markers {
    ($trait:ident, $kind:ident: $($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name;
        impl sealed::Sealed for $name {}
        impl $trait for $name {
            const KIND: $kind = $kind::$name;
        }
    )*};
}

markers! { MemoryOrder, OrderKind:
    /// `.relaxed`: atomic, ordering nothing else.
    Relaxed;
    /// `.acquire`: what follows in the program stays after it.
    Acquire;
    /// `.release`: what precedes in the program stays before it.
    Release;
    /// `.acq_rel`: both.
    AcqRel;
}

markers! { MemoryScope, ScopeKind:
    /// `.cta`: among the threads of the block.
    Cta;
    /// `.gpu`: among the threads of the device.
    Gpu;
    /// `.sys`: among all devices and the host.
    Sys;
}

/// A word that can be exchanged: `u32`, `i32`, `f32`, `u64`, `i64`, `f64`.
pub trait Word: imp::Words {}
impl<T: imp::Words> Word for T {}

/// A word that can be added to: all of them.
pub trait Additive: imp::Adds {}
impl<T: imp::Adds> Additive for T {}

/// A word with a minimum, a maximum and bits: `u32`, `i32`, `u64`, `i64`.
pub trait Integer: imp::Integers {}
impl<T: imp::Integers> Integer for T {}

macro_rules! updates {
    ($($(#[$doc:meta])* $name:ident: $bound:ident, $imp:ident::$method:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// Returns the value from before.
        ///
        /// # Safety
        ///
        /// `ptr` is an aligned word of global memory, and every concurrent access to it is atomic.
        #[inline(always)]
        #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
        pub unsafe fn $name<T: $bound>(ptr: *mut T, value: T, order: impl MemoryOrder, scope: impl MemoryScope) -> T {
            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            unsafe fn run<T: $bound, O: MemoryOrder, S: MemoryScope>(ptr: *mut T, value: T, _: O, _: S) -> T {
                // SAFETY: the caller's promise.
                unsafe { <T as imp::$imp>::$method::<O, S>(ptr, value) }
            }
            // SAFETY: the caller's promise.
            unsafe { run(ptr, value, order, scope) }
        }
    )*};
}

updates! {
    /// Adds `value`; integers wrap.
    fetch_add: Additive, Adds::add;
    /// Puts the lesser of the two in its place.
    fetch_min: Integer, Integers::min;
    /// Puts the greater of the two in its place.
    fetch_max: Integer, Integers::max;
    /// Keeps the bits that are also in `value`.
    fetch_and: Integer, Integers::and;
    /// Sets the bits of `value`.
    fetch_or: Integer, Integers::or;
    /// Flips the bits of `value`.
    fetch_xor: Integer, Integers::xor;
    /// Puts `value` in its place.
    exchange: Word, Words::exchange;
}

/// Puts `new` in place of `old` if the bits there are those of `old`; succeeded if the result has the bits of `old`.
///
/// Returns the value from before.
///
/// # Safety
///
/// `ptr` is an aligned word of global memory, and every concurrent access to it is atomic.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn compare_exchange<T: Word, O: MemoryOrder, S: MemoryScope>(
    ptr: *mut T,
    old: T,
    new: T,
    _order: O,
    _scope: S,
) -> T {
    // SAFETY: the caller's promise.
    unsafe { T::compare_exchange::<O, S>(ptr, old, new) }
}

/// Counts from 0 to `limit` and over again: puts 0 in place of a value of `limit` or more, else adds 1.
///
/// Returns the value from before. A ticket counter that takes the number of blocks less one as its limit is back at
/// zero when the last block has drawn, without anyone resetting it.
///
/// # Safety
///
/// `ptr` is an aligned word of global memory, and every concurrent access to it is atomic.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn increment_wrapping<O: MemoryOrder, S: MemoryScope>(
    ptr: *mut u32,
    limit: u32,
    _order: O,
    _scope: S,
) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { imp::increment_wrapping::<O, S>(ptr, limit) }
}

/// [`fetch_add`], relaxed, among the threads of the device.
///
/// # Safety
///
/// As for [`fetch_add`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn fetch_add_relaxed_gpu<T: Additive>(ptr: *mut T, value: T) -> T {
    // SAFETY: the caller's promise.
    unsafe { T::add::<Relaxed, Gpu>(ptr, value) }
}

/// [`fetch_add`], acquire and release, among the threads of the device: the ticket of a last-block reduction.
///
/// # Safety
///
/// As for [`fetch_add`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn fetch_add_acq_rel_gpu<T: Additive>(ptr: *mut T, value: T) -> T {
    // SAFETY: the caller's promise.
    unsafe { T::add::<AcqRel, Gpu>(ptr, value) }
}
