//! Reductions, scans and sorts within a warp: [`reduce`], [`scan`], [`scan_exclusive`] and [`sort_pairs`], for kernels of one's own
//! too.
//!
//! The first `lanes` lanes of the warp call together: 32, or fewer in the last warp of a block whose size is no multiple
//! of 32 ([`lanes_here`] says how many there are). Of these the first `present` hold a value; what the others bring is
//! never combined.
//!
//! Every function takes any [`Monoid`], whether it commutes or not: a left operand always comes from lower lanes than
//! the right one, and no operand is the identity. Which values are grouped is a function of their lanes alone, so the
//! bits do not depend on `lanes`, on the warp or on the device.
//!
//! | function | value of lane `i` | combines in all, `n` present | shuffles |
//! | --- | --- | --- | --- |
//! | [`reduce`] | lane 0: all `n`; others `None` | `n - 1` | 5 |
//! | [`scan`] | the values of lanes `0..=i` | up to 129 | 5 |
//! | [`scan_exclusive`] | the values of lanes `0..i`; lane 0 `None` | up to 129 | 6 |
//!
//! A shuffle here moves one accumulator: an instruction for each of its 4-byte words. Nothing waits for other warps, and
//! no shared memory is used.
//!
//! ```
//! use warpfold_gpu_kernels::warp;
//! use warpfold_monoid::Max;
//! use warpfold_simt::sim::{self, Buffer, Launch, Options};
//! use warpfold_simt::{global, thread};
//!
//! # fn main() -> Result<(), sim::Fault> {
//! // 45 values, 45 threads: the second warp has 13 lanes.
//! let values: Vec<i32> = (0..45).map(|i| i * 7 % 45).collect();
//! let mut greatest = [0; 2];
//! let options = Options::default()
//!     .buffer(Buffer::read_only("values", &values))
//!     .buffer(Buffer::writable("greatest", &mut greatest));
//! let (input, output) = (values.as_ptr() as usize, greatest.as_mut_ptr() as usize);
//! sim::launch(&Launch::new("greatest", 1, 45), &options, || {
//!     let thread = thread::thread_idx_x();
//!     // SAFETY: as many values as threads.
//!     let value = unsafe { global::load((input as *const i32).wrapping_add(thread as usize)) };
//!     // SAFETY: every lane that the warp has calls.
//!     if let Some(max) = unsafe { warp::reduce(&Max::<i32>::new(), value, warp::lanes_here(), None) } {
//!         // SAFETY: one value a warp, from its first lane.
//!         unsafe { global::store((output as *mut i32).wrapping_add(thread as usize / 32), max) };
//!     }
//! })?;
//! assert_eq!(greatest, [*values[..32].iter().max().unwrap(), *values[32..].iter().max().unwrap()]);
//! # Ok(())
//! # }
//! ```

use warpfold_monoid::{Monoid, Plain};
use warpfold_simt::{
    thread::{block_dim, thread_idx},
    warp::{FULL, lane_id, shuffle_down, shuffle_idx, shuffle_up},
};

/// Which of a group's threads hold a value: all of them (`None`), or only the first so many.
pub type Present = Option<u32>;

/// How many lanes this thread's warp has: 32, or fewer in the last warp of a block whose size is no multiple of 32.
///
/// Fit for `lanes` where no lane has returned or is in another branch. Of a block of any shape; where that is known at
/// compile time, a constant spares a few instructions.
#[inline(always)]
pub fn lanes_here() -> u32 {
    let (dim, at) = (block_dim(), thread_idx());
    let thread = (at.z * dim.y + at.y) * dim.x + at.x;
    (dim.x * dim.y * dim.z - thread / 32 * 32).min(32)
}

/// Combines the values of the first `present` lanes; the result is in lane 0, if there is a value at all. All other
/// lanes receive `None`.
///
/// Lanes combine pairwise, neighbours first: 0 with 1, 2 with 3, ...; then 0 with 2, 4 with 6, ... An operand that is
/// not there is skipped: `present - 1` combines in all, none for a single value.
///
/// # Safety
///
/// The first `lanes` (1 to 32) lanes of the warp call together, and no others, with the same `lanes` and `present`. A
/// `present` beyond `lanes` counts as `lanes`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn reduce<Op: Monoid>(op: &Op, value: Op::Acc, lanes: u32, present: Present) -> Option<Op::Acc> {
    let (lane, present) = (lane_id(), present.unwrap_or(lanes).min(lanes));
    let mut total = value;
    let mut step = 1;
    while step < 32 {
        // The source is a lane that exists, whether its value is wanted or not.
        // SAFETY: the caller's promise; the source is below `lanes`.
        let right = unsafe { shuffle_idx(first_lanes(lanes), total, (lane + step).min(lanes - 1)) };
        if lane & (2 * step - 1) == 0 && lane + step < present {
            total = op.combine(total, right);
        }
        step *= 2;
    }
    (lane == 0 && present > 0).then_some(total)
}

/// Gives each of the first `present` lanes the values up to and including its own, combined in order. The other lanes
/// receive `None`.
///
/// Lane `i` combines with the result so far of lane `i - 1`, then `i - 2`, `i - 4`, ... (as in the scan of Hillis and
/// Steele). In lanes 0, 1, 3, 7, 15 and 31 that is the grouping of [`reduce`].
///
/// # Safety
///
/// As for [`reduce`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn scan<Op: Monoid>(op: &Op, value: Op::Acc, lanes: u32, present: Present) -> Option<Op::Acc> {
    let (lane, present) = (lane_id(), present.unwrap_or(lanes).min(lanes));
    let mut total = value;
    let mut step = 1;
    while step < 32 {
        // A lane without one so far below it reads itself.
        // SAFETY: the caller's promise; the source is below `lanes`.
        let left = unsafe { shuffle_up(first_lanes(lanes), total, step) };
        if lane >= step && lane < present {
            total = op.combine(left, total);
        }
        step *= 2;
    }
    (lane < present).then_some(total)
}

/// Gives each of the first `present` lanes the values before its own, combined in order: the bits that [`scan`] gives
/// the lane below. Lane 0, which has none before it, and the lanes past `present` receive `None`.
///
/// # Safety
///
/// As for [`reduce`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn scan_exclusive<Op: Monoid>(
    op: &Op,
    value: Op::Acc,
    lanes: u32,
    present: Present,
) -> Option<Op::Acc> {
    // SAFETY: the caller's promise.
    let own = unsafe { scan(op, value, lanes, present) };
    // SAFETY: the caller's promise.
    unsafe { before(own, value, lanes) }
}

/// Sorts pairs by their keys: lane `i` receives the pair that stands at place `i` of the first `present`, in ascending order; the
/// other lanes keep theirs.
///
/// `before` says whether a key stands before another, and is a strict weak order (floats with NaNs want one that knows where
/// they stand). Keys that stand at the same place keep their pairs' order: the sort is **stable**. It is K. E. Batcher's bitonic
/// network (Sorting networks and their applications, AFIPS 1968) with all comparisons in one direction, so that lanes that are
/// not there change nothing: 15 comparisons with a partner for 32 lanes.
///
/// ```
/// use warpfold_gpu_kernels::warp;
/// use warpfold_simt::sim::{self, Buffer, Launch, Options};
/// use warpfold_simt::{global, thread};
///
/// # fn main() -> Result<(), sim::Fault> {
/// let mut keys = [3_u32, 1, 2, 1, 9, 0];
/// let options = Options::default().buffer(Buffer::writable("keys", &mut keys));
/// let at = keys.as_mut_ptr() as usize;
/// sim::launch(&Launch::new("sort", 1, 6), &options, || {
///     let place = (at as *mut u32).wrapping_add(thread::thread_idx_x() as usize);
///     // SAFETY: as many keys as threads; every lane that the warp has calls.
///     unsafe {
///         let key = global::load(place.cast_const());
///         let (key, ()) = warp::sort_pairs(key, (), warp::lanes_here(), None, |a, b| a < b);
///         global::store(place, key);
///     }
/// })?;
/// assert_eq!(keys, [0, 1, 1, 2, 3, 9]);
/// # Ok(())
/// # }
/// ```
///
/// # Safety
///
/// As for [`reduce`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn sort_pairs<K: Plain, V: Plain>(
    key: K,
    value: V,
    lanes: u32,
    present: Present,
    before: impl Fn(K, K) -> bool,
) -> (K, V) {
    let (lane, present) = (lane_id(), present.unwrap_or(lanes).min(lanes));
    let mut pair = Pair { key, value, from: lane };
    let mut size = 2;
    while size <= 32 {
        let mut flip = size - 1;
        while flip > 0 {
            // SAFETY: the caller's promise.
            pair = unsafe { sort_step(pair, lane, lane ^ flip, lanes, present, &before) };
            // Mirrored first, and then by half the distance each time.
            flip = if flip == size - 1 { size / 4 } else { flip / 2 };
        }
        size *= 2;
    }
    (pair.key, pair.value)
}

/// A pair, and the place that it comes from.
#[derive(Clone, Copy)]
pub(crate) struct Pair<K, V> {
    pub(crate) key: K,
    pub(crate) value: V,
    pub(crate) from: u32,
}

impl<K: Copy, V: Copy> Pair<K, V> {
    /// Of two pairs, which the lower place keeps. Pairs that do not count stand behind all others.
    #[inline(always)]
    pub(crate) fn stands_before(&self, other: &Self, present: u32, before: &impl Fn(K, K) -> bool) -> bool {
        let earlier = self.from < other.from;
        if self.from >= present || other.from >= present {
            return earlier;
        }
        before(self.key, other.key) || (earlier && !before(other.key, self.key))
    }
}

/// One comparison with the pair of another lane; none where that lane is not there.
///
/// # Safety
///
/// The first `lanes` lanes of the warp call together.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) unsafe fn sort_step<K: Plain, V: Plain>(
    pair: Pair<K, V>,
    lane: u32,
    partner: u32,
    lanes: u32,
    present: u32,
    before: &impl Fn(K, K) -> bool,
) -> Pair<K, V> {
    let (mask, source) = (first_lanes(lanes), if partner < lanes { partner } else { lane });
    // SAFETY: the caller's promise; the source is below `lanes`.
    let other = unsafe {
        Pair {
            key: shuffle_idx(mask, pair.key, source),
            value: shuffle_idx(mask, pair.value, source),
            from: shuffle_idx(mask, pair.from, source),
        }
    };
    let keeps = partner >= lanes || pair.stands_before(&other, present, before) == (lane < partner);
    if keeps { pair } else { other }
}

/// What the lane below has of a scan, for lanes that have something themselves. `any` stands in where nothing is.
///
/// # Safety
///
/// The first `lanes` lanes of the warp call together; those that hold something are the first of them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) unsafe fn before<A: Plain>(own: Option<A>, any: A, lanes: u32) -> Option<A> {
    // SAFETY: the caller's promise; lane 0 reads itself.
    let below = unsafe { shuffle_up(first_lanes(lanes), own.unwrap_or(any), 1) };
    (own.is_some() && lane_id() > 0).then_some(below)
}

/// The mask of the first `lanes` lanes, 1 to 32.
#[inline(always)]
fn first_lanes(lanes: u32) -> u32 {
    FULL >> (32 - lanes)
}

/// Combines the values of `width` neighbouring lanes pairwise, neighbours first; the result is in the first lane of
/// each such group. The values of lanes of the group that `present` leaves out are never combined.
///
/// What the kernels of whole arrays use: their warps are whole, and where no lane is absent this takes fewer
/// instructions than [`reduce`].
///
/// `width` is a power of two up to 32, the same in all lanes.
///
/// # Safety
///
/// All 32 lanes of the warp call, together.
#[inline(always)]
pub(crate) unsafe fn reduce_width<Op: Monoid>(
    op: &Op,
    mut acc: Op::Acc,
    lane: u32,
    width: u32,
    present: Present,
) -> Op::Acc {
    let position = lane & (width - 1);
    let mut distance = 1;
    while distance < width {
        // SAFETY: all lanes are here.
        let other = unsafe { shuffle_down(FULL, acc, distance) };
        // Where all are present, the lanes between combine too, harmlessly: nobody reads them.
        let take = match present {
            None => true,
            Some(present) => position & (2 * distance - 1) == 0 && position + distance < present,
        };
        if take {
            acc = op.combine(acc, other);
        }
        distance *= 2;
    }
    acc
}
