//! Reductions, scans and sorts within a block: [`reduce`], [`scan`], [`scan_exclusive`], [`broadcast`] and [`sort_pairs`], for
//! kernels of one's own too.
//!
//! All threads of a one-dimensional block call together: 1 to 1024 of them, a multiple of 32 or not. The first
//! `present` hold a value (a partial tile); what the others bring is never combined. `present` may differ from block to
//! block, not within one.
//!
//! Every function takes any [`Monoid`], whether it commutes or not: a left operand always comes from lower threads than
//! the right one, and no operand is the identity. Which values are grouped is a function of their threads alone, so the
//! bits do not depend on the size of the block or on the device: 200 values reduced by 200 threads give what they
//! give as a partial tile of 1024.
//!
//! | function | value of thread `t` | waits at barriers | combines on the longest way |
//! | --- | --- | --- | --- |
//! | [`reduce`] | thread 0: all; others `None` | 1 | 10 |
//! | [`scan`] | the values of threads `0..=t` | 2 | 11 |
//! | [`scan_exclusive`] | the values of threads `0..t`; thread 0 `None` | 2 | 11 |
//! | [`broadcast`] | that of one thread | 1 | 0 |
//!
//! A block of one warp passes no barrier in the first three. In between, [`warp`]s shuffle: 5 times, and 5 times more in
//! the first warp.
//!
//! # Shared memory
//!
//! The caller declares it, once for all calls of one accumulator: [`SHARED`] slots serve every block size, and
//! `block_dim_x().div_ceil(32)` are enough. A function may still read its slots when it returns. Whoever uses them next,
//! be it the same function, passes a barrier ([`sync_threads`]) in between:
//!
//! ```
//! use warpfold_gpu_kernels::block;
//! use warpfold_monoid::{Max, Sum};
//! use warpfold_simt::sim::{self, Buffer, Launch, Options};
//! use warpfold_simt::{global, shared, thread};
//!
//! # fn main() -> Result<(), sim::Fault> {
//! /// How far each of up to 1024 values has come of the sum of all, and the greatest value.
//! unsafe fn progress(values: *const u64, n: u32, sums: *mut u64, greatest: *mut u64) {
//!     let slots = shared!([u64; block::SHARED]);
//!     let t = thread::thread_idx_x();
//!     // Threads past the end bring what they like.
//!     // SAFETY: `n` values.
//!     let value = if t < n { unsafe { global::load(values.wrapping_add(t as usize)) } } else { 0 };
//!
//!     // SAFETY: the whole block calls, and nothing used the slots before.
//!     if let Some(sum) = unsafe { block::scan(&Sum::<u64>::new(), value, Some(n), slots) } {
//!         // SAFETY: `n` sums, one a thread.
//!         unsafe { global::store(sums.wrapping_add(t as usize), sum) };
//!     }
//!     thread::sync_threads();
//!     // SAFETY: the whole block calls; the barrier keeps the uses of the slots apart.
//!     if let Some(max) = unsafe { block::reduce(&Max::<u64>::new(), value, Some(n), slots) } {
//!         // SAFETY: thread 0 alone.
//!         unsafe { global::store(greatest, max) };
//!     }
//! }
//!
//! let values: Vec<u64> = (0..70).map(|i| i * 31 % 70).collect();
//! let (mut sums, mut greatest) = (vec![0_u64; 70], [0_u64]);
//! let options = Options::default()
//!     .buffer(Buffer::read_only("values", &values))
//!     .buffer(Buffer::writable("sums", &mut sums))
//!     .buffer(Buffer::writable("greatest", &mut greatest));
//! let (input, output) = (values.as_ptr() as usize, sums.as_mut_ptr() as usize);
//! let max = greatest.as_mut_ptr() as usize;
//! sim::launch(&Launch::new("progress", 1, 100), &options, || {
//!     // SAFETY: 70 values, 70 sums, a block of 100.
//!     unsafe { progress(input as *const u64, 70, output as *mut u64, max as *mut u64) }
//! })?;
//! assert_eq!(sums[69], 69 * 70 / 2);
//! assert_eq!(greatest, [69]);
//! # Ok(())
//! # }
//! ```

use warpfold_monoid::{Monoid, Plain};
use warpfold_simt::{
    shared::Shared,
    thread::{block_dim_x, sync_threads, thread_idx_x},
};

use crate::warp::{self, Present};

pub use crate::sink::{Meeting, Sink, TaggedSink};

/// Slots of shared memory that serve every block size: one a warp. [`crate::lanes::unshift_block`] needs as many.
pub const SHARED: usize = 32;

/// Combines the values of the first `present` threads; the result is in thread 0, if there is a value at all. All
/// other threads receive `None`.
///
/// Threads combine pairwise, neighbours first: 0 with 1, 2 with 3, ...; then 0 with 2, 4 with 6, ... An operand that is
/// not there is skipped: `present - 1` combines in all, none for a single value. To give the result to all threads, see
/// [`broadcast`].
///
/// # Safety
///
/// All threads of the block call together, with the same `present`, and the block has one dimension. `shared` has a
/// slot a warp, which are not in use: between every other use of them, be it an earlier call, and this one lies a
/// barrier. A `present` beyond the block's size counts as that.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn reduce<Op: Monoid>(
    op: &Op,
    value: Op::Acc,
    present: Present,
    shared: Shared<Op::Acc>,
) -> Option<Op::Acc> {
    let at = Place::here(present);
    // SAFETY: all threads call, so all lanes of this warp do.
    let total = unsafe { warp::reduce(op, value, at.lanes, Some(at.present_in_warp())) };
    if at.threads <= 32 {
        return total;
    }
    if let Some(total) = total {
        // SAFETY: the first lane of a warp, its own slot; the caller keeps other uses a barrier away.
        unsafe { shared.write(at.warp as usize, total) };
    }
    sync_threads();
    let warps = at.present.div_ceil(32);
    if at.warp > 0 || warps == 0 {
        return None;
    }
    // SAFETY: written before the barrier, by the warps with a value.
    let total = unsafe { shared.read(at.lane.min(warps - 1) as usize) };
    // SAFETY: the whole first warp, which has 32 lanes, is here.
    unsafe { warp::reduce(op, total, 32, Some(warps)) }
}

/// Gives each of the first `present` threads the values up to and including its own, combined in order. The other
/// threads receive `None`.
///
/// Warps scan their values as [`warp::scan`] does, the first warp then scans the warps' totals the same way, and each
/// thread puts the total of all warps before its own in front. In threads `2^k - 1` that is the grouping of [`reduce`].
///
/// # Safety
///
/// As for [`reduce`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn scan<Op: Monoid>(
    op: &Op,
    value: Op::Acc,
    present: Present,
    shared: Shared<Op::Acc>,
) -> Option<Op::Acc> {
    let at = Place::here(present);
    // SAFETY: all threads call, so all lanes of this warp do.
    let own = unsafe { warp::scan(op, value, at.lanes, Some(at.present_in_warp())) };
    // SAFETY: the caller's promise.
    unsafe { scan_totals(op, own, &at, shared) };
    let own = own?;
    if at.warp == 0 {
        return Some(own);
    }
    // The last lane's result is the total of the warps up to its own, which is there already. Taking it, and not
    // combining once more, is what makes the result that `scan_exclusive` gives the next warp.
    let last = at.lane == 31;
    // SAFETY: these warps are full, and their totals were written before the barrier.
    let before = unsafe { shared.read((if last { at.warp } else { at.warp - 1 }) as usize) };
    Some(if last { before } else { op.combine(before, own) })
}

/// Gives each of the first `present` threads the values before its own, combined in order: the bits that [`scan`]
/// gives the thread before. Thread 0, which has none before it, and the threads past `present` receive `None`.
///
/// # Safety
///
/// As for [`reduce`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn scan_exclusive<Op: Monoid>(
    op: &Op,
    value: Op::Acc,
    present: Present,
    shared: Shared<Op::Acc>,
) -> Option<Op::Acc> {
    let at = Place::here(present);
    // SAFETY: all threads call, so all lanes of this warp do.
    let own = unsafe { warp::scan(op, value, at.lanes, Some(at.present_in_warp())) };
    // SAFETY: all lanes of the warp are here.
    let left = unsafe { warp::before(own, value, at.lanes) };
    // SAFETY: the caller's promise.
    unsafe { scan_totals(op, own, &at, shared) };
    if own.is_none() || at.warp == 0 {
        return left;
    }
    // SAFETY: the warps before one with a value are full, and their totals were written before the barrier.
    let before = unsafe { shared.read(at.warp as usize - 1) };
    Some(left.map_or(before, |left| op.combine(before, left)))
}

/// Gives every thread the value of thread `from`.
///
/// The usual end of a reduction whose result all threads go on with:
///
/// ```
/// use warpfold_gpu_kernels::block;
/// use warpfold_monoid::Sum;
/// use warpfold_simt::sim::{self, Launch, Options};
/// use warpfold_simt::{shared, thread};
///
/// # fn main() -> Result<(), sim::Fault> {
/// sim::launch(&Launch::new("share", 1, 77), &Options::default(), || {
///     let (op, slots) = (Sum::<u32>::new(), shared!([u32; block::SHARED]));
///     let sum = shared!([u32; 1]);
///     // SAFETY: the whole block calls, and nothing used the slots before.
///     let total = unsafe { block::reduce(&op, 1, None, slots) };
///     // SAFETY: the same; 77 values have a sum, in thread 0.
///     let total = unsafe { block::broadcast(total.unwrap_or(0), 0, sum) };
///     assert_eq!(total, 77);
/// })?;
/// # Ok(())
/// # }
/// ```
///
/// # Safety
///
/// All threads of the block call together, with the same `from`, which is below the block's size, and the block has
/// one dimension. `shared` has a slot, which is not in use: a barrier lies in between. (So the slots of a [`reduce`]
/// just before will not do without one.)
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn broadcast<T: Plain>(value: T, from: u32, shared: Shared<T>) -> T {
    if thread_idx_x() == from {
        // SAFETY: one thread; the caller keeps other uses a barrier away.
        unsafe { shared.write(0, value) };
    }
    sync_threads();
    // SAFETY: written before the barrier.
    unsafe { shared.read(0) }
}

/// Where a block keeps the pairs that it [sorts](sort_pairs): a slot a thread in each.
#[derive(Clone, Copy, Debug)]
pub struct SortRoom<K, V> {
    /// Keys.
    pub keys: Shared<K>,
    /// Values.
    pub values: Shared<V>,
    /// Where the pairs come from.
    pub from: Shared<u32>,
}

/// Sorts pairs by their keys: thread `i` receives the pair that stands at place `i` of the first `present`, in ascending order; the
/// other threads keep theirs.
///
/// Stable, and by the network of [`warp::sort_pairs`], which see; what partners of other warps have goes through shared memory: at
/// two barriers for each of 1, 3, 6, 10 or 15 comparisons of 64, 128, 256, 512 or 1024 threads.
///
/// ```
/// use warpfold_gpu_kernels::block::{self, SortRoom};
/// use warpfold_simt::sim::{self, Buffer, Launch, Options};
/// use warpfold_simt::{global, shared, thread};
///
/// # fn main() -> Result<(), sim::Fault> {
/// let mut keys: Vec<i32> = (0..100).map(|i| i * 37 % 101 - 50).collect();
/// let options = Options::default().buffer(Buffer::writable("keys", &mut keys));
/// let at = keys.as_mut_ptr() as usize;
/// sim::launch(&Launch::new("sort", 1, 100), &options, || {
///     let room = SortRoom { keys: shared!([i32; 100]), values: shared!([u32; 100]), from: shared!([u32; 100]) };
///     let thread = thread::thread_idx_x();
///     let place = (at as *mut i32).wrapping_add(thread as usize);
///     // SAFETY: as many keys and slots as threads, all of which call.
///     unsafe {
///         let key = global::load(place.cast_const());
///         let (key, _whence) = block::sort_pairs(key, thread, None, |a, b| a < b, room);
///         global::store(place, key);
///     }
/// })?;
/// assert!(keys.is_sorted());
/// # Ok(())
/// # }
/// ```
///
/// # Safety
///
/// As for [`reduce`], with a slot for each thread.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn sort_pairs<K: Plain, V: Plain>(
    key: K,
    value: V,
    present: Present,
    before: impl Fn(K, K) -> bool,
    room: SortRoom<K, V>,
) -> (K, V) {
    let at = Place::here(present);
    let thread = at.warp * 32 + at.lane;
    let first = at.warp * 32;
    let mut pair = warp::Pair { key, value, from: thread };
    let mut size = 2;
    // As far as there are threads: what is not there stands behind all others, in its place.
    while size < 2 * at.threads {
        let mut flip = size - 1;
        while flip > 0 {
            let partner = thread ^ flip;
            if flip < 32 {
                // SAFETY: all threads call, so all lanes of this warp do.
                pair = unsafe {
                    let partner = partner - first;
                    warp::sort_step(pair, at.lane, partner, at.lanes, at.present, &before)
                };
            } else {
                let slot = thread as usize;
                // SAFETY: a slot a thread; barriers lie before and behind what others read.
                unsafe {
                    room.keys.write(slot, pair.key);
                    room.values.write(slot, pair.value);
                    room.from.write(slot, pair.from);
                }
                sync_threads();
                if partner < at.threads {
                    let slot = partner as usize;
                    // SAFETY: as above.
                    let other = unsafe {
                        warp::Pair {
                            key: room.keys.read(slot),
                            value: room.values.read(slot),
                            from: room.from.read(slot),
                        }
                    };
                    if pair.stands_before(&other, at.present, &before) != (thread < partner) {
                        pair = other;
                    }
                }
                sync_threads();
            }
            flip = if flip == size - 1 { size / 4 } else { flip / 2 };
        }
        size *= 2;
    }
    (pair.key, pair.value)
}

/// Where a thread stands in a block of one dimension, of which the first `present` threads hold a value.
struct Place {
    threads: u32,
    present: u32,
    warp: u32,
    lane: u32,
    /// Lanes that its warp has.
    lanes: u32,
}

impl Place {
    #[inline(always)]
    fn here(present: Present) -> Place {
        let (threads, thread) = (block_dim_x(), thread_idx_x());
        let (warp, lane) = (thread / 32, thread % 32);
        let present = present.unwrap_or(threads).min(threads);
        Place { threads, present, warp, lane, lanes: (threads - warp * 32).min(32) }
    }

    /// How many of its warp's lanes hold a value, 32 for more.
    #[inline(always)]
    fn present_in_warp(&self) -> u32 {
        self.present.saturating_sub(self.warp * 32).min(32)
    }
}

/// Leaves in slot `w` the total of warps `0..=w`, for every warp all of whose 32 lanes have a value; `own` is what
/// each lane has of its warp's scan. Nothing happens in a block of one warp. Slots may be read afterwards.
///
/// # Safety
///
/// As for [`reduce`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn scan_totals<Op: Monoid>(op: &Op, own: Option<Op::Acc>, at: &Place, shared: Shared<Op::Acc>) {
    if at.threads <= 32 {
        return;
    }
    if at.lane == 31
        && let Some(total) = own
    {
        // SAFETY: the last lane of a full warp, its own slot; the caller keeps other uses a barrier away.
        unsafe { shared.write(at.warp as usize, total) };
    }
    sync_threads();
    // Only whole warps have something behind them.
    let full = at.present / 32;
    if at.warp == 0
        && full > 1
        && let Some(own) = own
    {
        // A lane reads the slot that it writes and no other, so that no read meets another lane's write.
        // SAFETY: written before the barrier, by the full warps.
        let total = if at.lane < full { unsafe { shared.read(at.lane as usize) } } else { own };
        // SAFETY: the first warp, which is full too, is here with all its lanes.
        if let Some(totals) = unsafe { warp::scan(op, total, 32, Some(full)) } {
            // SAFETY: its own slot.
            unsafe { shared.write(at.lane as usize, totals) };
        }
    }
    sync_threads();
}

/// Combines the values of the block's first `width` threads pairwise, neighbours first; the result is in thread 0.
/// The values of threads that `present` leaves out are never combined.
///
/// What the kernels of whole arrays use: their blocks are whole warps, and where no thread is absent this takes fewer
/// instructions than [`reduce`].
///
/// `width` is a power of two, at most the block's size; where it is less than 32, `present` must not be `None`.
///
/// # Safety
///
/// All threads of the block call, with the same `width`; the block is a whole number of warps; and `shared` has a
/// slot a warp, which are not in use (a barrier apart from earlier uses).
#[inline(always)]
pub(crate) unsafe fn reduce_width<Op: Monoid>(
    op: &Op,
    acc: Op::Acc,
    thread: u32,
    width: u32,
    present: Present,
    shared: Shared<Op::Acc>,
) -> Op::Acc {
    let (warp_index, lane) = (thread / 32, thread % 32);
    let here = present.map(|count| if thread < width { count.saturating_sub(warp_index * 32) } else { 0 });
    // SAFETY: all threads call, so all lanes of this warp do.
    let acc = unsafe { warp::reduce_width(op, acc, lane, width.min(32), here) };
    if width <= 32 {
        return acc;
    }
    if lane == 0 {
        // SAFETY: one warp, one slot; the caller keeps earlier uses a barrier away.
        unsafe { shared.write(warp_index as usize, acc) };
    }
    sync_threads();
    if warp_index != 0 {
        return acc;
    }
    let warps = width / 32;
    // SAFETY: written before the barrier by warps that exist.
    let acc = unsafe { shared.read((lane & (warps - 1)) as usize) };
    let here = present.map(|count| if lane < warps { count.div_ceil(32) } else { 0 });
    // SAFETY: the whole first warp is here.
    unsafe { warp::reduce_width(op, acc, lane, warps, here) }
}
