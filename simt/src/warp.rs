//! The 32 threads of a warp: shuffles, votes, matches.
//!
//! Every function with a `mask` is a meeting: each lane named in the mask must call the same function with the same
//! mask, and the caller must be in it. Where lanes have left (by return or in another branch), name only those that
//! stayed. Shuffles, votes and matches order no memory: what one lane wrote, another reads only after [`sync_warp`]
//! or a barrier.
//!
//! ```
//! use warpfold_simt::sim::{self, Launch, Options};
//! use warpfold_simt::{global, thread, warp};
//!
//! # fn main() -> Result<(), sim::Fault> {
//! let mut sum = 0u32;
//! let out = &raw mut sum as usize;
//! sim::launch(&Launch::new("sum_of_lanes", 1, 32), &Options::default(), || {
//!     let mut value = thread::thread_idx_x();
//!     let mut delta = 16;
//!     while delta > 0 {
//!         // SAFETY: all 32 lanes are here.
//!         value += unsafe { warp::shuffle_down(warp::FULL, value, delta) };
//!         delta /= 2;
//!     }
//!     if thread::thread_idx_x() == 0 {
//!         // SAFETY: one thread writes the one result.
//!         unsafe { global::store(out as *mut u32, value) }
//!     }
//! })?;
//! assert_eq!(sum, 31 * 32 / 2);
//! # Ok(())
//! # }
//! ```

use warpfold_monoid::Plain;

use crate::imp;

/// The mask that names all 32 lanes.
pub const FULL: u32 = u32::MAX;

/// How a shuffle finds the lane it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Up,
    Down,
    Xor,
    Idx,
}

/// What a lane-wise reduction folds with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redux {
    Add,
    MinU32,
    MaxU32,
    MinI32,
    MaxI32,
    And,
    Or,
    Xor,
}

impl Redux {
    #[cfg(not(target_feature = "sm_80"))]
    #[inline(always)]
    pub(crate) fn combine(self, a: u32, b: u32) -> u32 {
        match self {
            Redux::Add => a.wrapping_add(b),
            Redux::MinU32 => a.min(b),
            Redux::MaxU32 => a.max(b),
            Redux::MinI32 => (a as i32).min(b as i32) as u32,
            Redux::MaxI32 => (a as i32).max(b as i32) as u32,
            Redux::And => a & b,
            Redux::Or => a | b,
            Redux::Xor => a ^ b,
        }
    }
}

/// This thread's lane in its warp, 0 to 31.
#[inline(always)]
pub fn lane_id() -> u32 {
    imp::lane_id()
}

/// The lanes that run together with this one at this moment. A snapshot and no meeting: it says nothing of which
/// lanes *could* be here. In the simulator, the lanes that have not returned.
#[inline(always)]
pub fn activemask() -> u32 {
    imp::active_mask()
}

/// Waits for the lanes of `mask`, and orders their memory accesses: what one wrote before, the others see after.
///
/// # Safety
///
/// Each lane of `mask` calls `sync_warp` with this mask, and the caller is one of them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn sync_warp(mask: u32) {
    // SAFETY: the caller's promise.
    unsafe { imp::sync_warp(mask) }
}

/// The clamp operand of `shfl.sync`: segment mask and last lane, packed.
#[inline(always)]
const fn clamp(mode: Mode, width: u32) -> u32 {
    (32 - width) << 8 | if matches!(mode, Mode::Up) { 0 } else { 31 }
}

/// Whether the lane a shuffle asks for lies in the caller's segment, as `shfl.sync` reports it.
#[inline(always)]
fn in_range(mode: Mode, operand: u32, width: u32) -> bool {
    let (lane, operand) = (lane_id(), operand & 31);
    let at = lane & (width - 1);
    match mode {
        Mode::Up => at >= operand,
        Mode::Down => at + operand < width,
        Mode::Xor => lane ^ operand <= lane | (width - 1),
        Mode::Idx => true,
    }
}

macro_rules! shuffles {
    ($($mode:ident, $full:ident, $width:ident, $cuda:ident, $operand:ident, $what:literal;)*) => {$(
        #[doc = concat!("The value of ", $what, ".")]
        ///
        /// Where that lane lies outside the warp, the caller's own value.
        ///
        /// # Safety
        ///
        /// Each lane of `mask` calls this function with this mask, and both the caller and the lane it reads are
        /// named in it.
        #[inline(always)]
        #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
        pub unsafe fn $full<T: Plain>(mask: u32, value: T, $operand: u32) -> T {
            // SAFETY: the caller's promise.
            unsafe { imp::shuffle(Mode::$mode, mask, value, $operand, clamp(Mode::$mode, 32)) }
        }

        #[doc = concat!("[`", stringify!($full), "`] within segments of `width` lanes.")]
        ///
        /// Where the lane lies outside the caller's segment, the caller's own value.
        ///
        /// # Safety
        ///
        #[doc = concat!("As for [`", stringify!($full), "`]; `width` is a power of two from 1 to 32.")]
        #[inline(always)]
        #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
        pub unsafe fn $width<T: Plain>(mask: u32, value: T, $operand: u32, width: u32) -> T {
            // SAFETY: the caller's promise.
            unsafe { imp::shuffle(Mode::$mode, mask, value, $operand, clamp(Mode::$mode, width)) }
        }

        #[doc = concat!("[`", stringify!($width), "`], which also says whether the lane was within the segment.")]
        ///
        /// The flag is that of `shfl.sync`: it tests the range, not whether the lane takes part. Of a value of four
        /// bytes it is the one that the instruction returns.
        ///
        /// # Safety
        ///
        #[doc = concat!("As for [`", stringify!($width), "`].")]
        #[inline(always)]
        #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
        pub unsafe fn $cuda<T: Plain>(mask: u32, value: T, $operand: u32, width: u32) -> (T, bool) {
            let c = clamp(Mode::$mode, width);
            // SAFETY: the caller's promise.
            let (value, flag) = unsafe { imp::shuffle_flagged(Mode::$mode, mask, value, $operand, c) };
            (value, flag.unwrap_or_else(|| in_range(Mode::$mode, $operand, width)))
        }
    )*};
}

shuffles! {
    Down, shuffle_down, shuffle_down_width, warp_shuffle_down, delta, "the lane `delta` (0 to 31) above";
    Up, shuffle_up, shuffle_up_width, warp_shuffle_up, delta, "the lane `delta` (0 to 31) below";
    Xor, shuffle_xor, shuffle_xor_width, warp_shuffle_xor, lane_mask, "the lane whose number is the caller's xor `lane_mask`";
    Idx, shuffle_idx, shuffle_idx_width, warp_shuffle_idx, lane, "lane `lane` modulo the width";
}

/// Whether `predicate` holds in every lane of `mask`.
///
/// # Safety
///
/// Each lane of `mask` calls this function with this mask, and the caller is one of them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn warp_vote_all(mask: u32, predicate: bool) -> bool {
    // SAFETY: the caller's promise.
    unsafe { imp::vote_all(mask, predicate) }
}

/// Whether `predicate` holds in any lane of `mask`.
///
/// # Safety
///
/// Each lane of `mask` calls this function with this mask, and the caller is one of them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn warp_vote_any(mask: u32, predicate: bool) -> bool {
    // SAFETY: the caller's promise.
    unsafe { imp::vote_any(mask, predicate) }
}

/// Whether `predicate` is the same in every lane of `mask`.
///
/// # Safety
///
/// Each lane of `mask` calls this function with this mask, and the caller is one of them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn warp_vote_uni(mask: u32, predicate: bool) -> bool {
    // SAFETY: the caller's promise.
    unsafe { imp::vote_uni(mask, predicate) }
}

/// The lanes of `mask` in which `predicate` holds, one bit each.
///
/// # Safety
///
/// Each lane of `mask` calls this function with this mask, and the caller is one of them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn warp_vote_ballot(mask: u32, predicate: bool) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { imp::vote_ballot(mask, predicate) }
}

/// A 32- or 64-bit value whose bits `match.sync` compares.
pub trait WarpMatchValue: Plain {
    /// The lanes of `mask` that hold the same bits.
    ///
    /// # Safety
    ///
    /// As for [`warp_match_any`].
    unsafe fn match_any(mask: u32, value: Self) -> u32;
}

macro_rules! match_values {
    ($($ty:ty, $imp:ident, $value:ident => $bits:expr;)*) => {$(
        impl WarpMatchValue for $ty {
            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            unsafe fn match_any(mask: u32, $value: Self) -> u32 {
                // SAFETY: the caller's promise.
                unsafe { imp::$imp(mask, $bits) }
            }
        }
    )*};
}

match_values! {
    u32, match_any_u32, value => value;
    i32, match_any_u32, value => value as u32;
    f32, match_any_u32, value => value.to_bits();
    u64, match_any_u64, value => value;
    i64, match_any_u64, value => value as u64;
    f64, match_any_u64, value => value.to_bits();
}

/// The lanes of `mask` that hold the same bits as the caller.
///
/// # Safety
///
/// Each lane of `mask` calls this function with this mask, and the caller is one of them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn warp_match_any<T: WarpMatchValue>(mask: u32, value: T) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { T::match_any(mask, value) }
}

/// `Some(mask)` if every lane of `mask` holds the same bits, else `None`.
///
/// # Safety
///
/// Each lane of `mask` calls this function with this mask, and the caller is one of them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn warp_match_all<T: WarpMatchValue>(mask: u32, value: T) -> Option<u32> {
    // `match.all` returns its result in a pair that no Rust declaration can name; each lane can tell from
    // `match.any` alone, in one instruction too.
    // SAFETY: the caller's promise.
    (unsafe { T::match_any(mask, value) } == mask).then_some(mask)
}

/// What [`warp_reduce`] folds with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarpReductionOp {
    /// The sum, which wraps.
    Add,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// The bits set in all.
    And,
    /// The bits set in any.
    Or,
    /// The bits set in an odd number.
    Xor,
}

/// A type that [`warp_reduce`] folds: `u32` or `i32`.
pub trait WarpReduceValue: Plain {
    /// The fold of the lanes of `mask`, in each of them.
    ///
    /// # Safety
    ///
    /// As for [`warp_reduce`].
    unsafe fn reduce(mask: u32, value: Self, op: WarpReductionOp) -> Self;
}

impl WarpReduceValue for u32 {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn reduce(mask: u32, value: u32, op: WarpReductionOp) -> u32 {
        let op = match op {
            WarpReductionOp::Add => Redux::Add,
            WarpReductionOp::Min => Redux::MinU32,
            WarpReductionOp::Max => Redux::MaxU32,
            WarpReductionOp::And => Redux::And,
            WarpReductionOp::Or => Redux::Or,
            WarpReductionOp::Xor => Redux::Xor,
        };
        // SAFETY: the caller's promise.
        unsafe { imp::redux(op, mask, value) }
    }
}

impl WarpReduceValue for i32 {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn reduce(mask: u32, value: i32, op: WarpReductionOp) -> i32 {
        let op = match op {
            WarpReductionOp::Add => Redux::Add,
            WarpReductionOp::Min => Redux::MinI32,
            WarpReductionOp::Max => Redux::MaxI32,
            WarpReductionOp::And => Redux::And,
            WarpReductionOp::Or => Redux::Or,
            WarpReductionOp::Xor => Redux::Xor,
        };
        // SAFETY: the caller's promise.
        unsafe { imp::redux(op, mask, value as u32) as i32 }
    }
}

/// Folds `value` over the lanes of `mask`; each of them receives the result.
///
/// One instruction (`redux.sync`) in code built for sm_80 or later; before that the lanes are gathered by shuffles,
/// one for each lane of the mask.
///
/// # Safety
///
/// Each lane of `mask` calls this function with this mask and operation, and the caller is one of them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn warp_reduce<T: WarpReduceValue>(mask: u32, value: T, op: WarpReductionOp) -> T {
    // SAFETY: the caller's promise.
    unsafe { T::reduce(mask, value, op) }
}
