//! Sinks inside a running kernel: [`Sink`] and [`TaggedSink`], for the end of a pipeline whose threads have something to give
//! now and then.
//!
//! A sink is pushed to while the kernel runs, by threads that have an item, as many as there are. At its end the whole grid
//! [flushes](Sink::flush): each block combines what its threads have, and the last block to come combines the blocks' values
//! and writes the results. One launch, no second pass.
//!
//! | sink | accumulators | who pushes |
//! | --- | --- | --- |
//! | [`Sink`] | in registers, one a thread | any thread, by itself |
//! | [`TaggedSink`] | in shared memory, one for each tag and warp | a warp, each lane with an item or without |
//!
//! Operands that are not there are skipped, never replaced by the identity. Values combine in the order of pushes within a
//! thread (a warp, whose lanes come in their order), then of threads (warps), then of blocks: the bits depend on who pushed
//! what, not on timing. An operator that commutes gives a result whoever pushed what.
//!
//! ```
//! use warpfold_gpu_kernels::{block::{self, Meeting, TaggedSink}, monoid::Sum};
//! use warpfold_simt::sim::{self, Buffer, Launch, Options};
//! use warpfold_simt::{global, shared, thread};
//!
//! # fn main() -> Result<(), sim::Fault> {
//! /// Sums odd numbers by their last digit.
//! unsafe fn odd(numbers: *const u64, n: usize, meeting: &Meeting<Sum<u64>>) {
//!     let (accs, there) = (shared!([u64; 2 * 10]), shared!([u32; 2 * 10]));
//!     let op = Sum::<u64>::new();
//!     // SAFETY: room for ten tags of two warps.
//!     let mut sink = unsafe { TaggedSink::new(&op, 10, accs, there) };
//!     let step = (thread::grid_dim_x() * thread::block_dim_x()) as usize;
//!     let mut first = 0;
//!     // Whole warps go round, also where some lanes have no number.
//!     while first < n {
//!         let i = first + thread::index_1d() as usize;
//!         // SAFETY: a number that there is.
//!         let number = if i < n { unsafe { global::load(numbers.wrapping_add(i)) } } else { 0 };
//!         let item = (number % 2 == 1).then_some(((number % 10) as u32, number));
//!         // SAFETY: the whole warp.
//!         unsafe { sink.push(item, i as u64) };
//!         first += step;
//!     }
//!     // SAFETY: the whole grid, whose memory this is.
//!     unsafe { sink.flush(meeting, shared!([u32; 1])) };
//! }
//!
//! let numbers: Vec<u64> = (0..1000).collect();
//! let (mut partials, mut present) = ([0_u64; 3 * 10], [0_u32; 3 * 10]);
//! let (mut ticket, mut sums) = ([0_u32], [7_u64; 10]);
//! let meeting = Meeting::<Sum<u64>> {
//!     partials: partials.as_mut_ptr(),
//!     present: present.as_mut_ptr(),
//!     ticket: ticket.as_mut_ptr(),
//!     output: sums.as_mut_ptr(),
//! };
//! let options = Options::default()
//!     .buffer(Buffer::read_only("numbers", &numbers))
//!     .buffer(Buffer::writable("partials", &mut partials))
//!     .buffer(Buffer::writable("present", &mut present))
//!     .buffer(Buffer::writable("ticket", &mut ticket))
//!     .buffer(Buffer::writable("sums", &mut sums));
//! let (from, meeting) = (numbers.as_ptr() as usize, &meeting as *const _ as usize);
//! sim::launch(&Launch::new("odd", 3, 64), &options, || {
//!     // SAFETY: 1000 numbers, and room for three blocks.
//!     unsafe { odd(from as *const u64, 1000, &*(meeting as *const Meeting<Sum<u64>>)) }
//! })?;
//! assert_eq!(sums, [0, 49600, 0, 49800, 0, 50000, 0, 50200, 0, 50400]);
//! # Ok(())
//! # }
//! ```

use warpfold_monoid::{Monoid, tree::FOLD_LANES};
use warpfold_simt::{
    atomic::{self, AcqRel, Gpu},
    global,
    hint::nounroll,
    shared::Shared,
    thread::{block_dim_x, block_idx_x, grid_dim_x, sync_threads, thread_idx_x},
    warp::{FULL, shuffle_down, shuffle_idx, sync_warp, warp_match_any, warp_vote_any},
};

/// Where the blocks of a grid meet at its end: memory of one launch at a time.
#[repr(C)]
#[derive(Debug)]
pub struct Meeting<Op: Monoid> {
    /// Room for a value for each block and tag (one tag for a [`Sink`]).
    pub partials: *mut Op::Acc,
    /// Room for a word for each of them.
    pub present: *mut u32,
    /// 0 before and after every launch.
    pub ticket: *mut u32,
    /// Room for a result for each tag.
    pub output: *mut Op::Output,
}

impl<Op: Monoid> Clone for Meeting<Op> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<Op: Monoid> Copy for Meeting<Op> {}

/// Takes what threads push, each by itself, into one result. See the [module](self).
#[derive(Debug)]
pub struct Sink<'a, Op: Monoid> {
    op: &'a Op,
    acc: Op::Acc,
    there: bool,
}

impl<'a, Op: Monoid> Sink<'a, Op> {
    /// One that has nothing yet.
    #[inline(always)]
    pub fn new(op: &'a Op) -> Self {
        Sink { op, acc: op.identity(), there: false }
    }

    /// Takes in an item; `index` is what the operator is told as its position.
    #[inline(always)]
    pub fn push(&mut self, item: Op::Item, index: u64) {
        self.acc = if self.there { self.op.push(self.acc, item, index) } else { self.op.lift(item, index) };
        self.there = true;
    }

    /// Combines what all threads of the grid have pushed, and writes the result: that of nothing, if nobody did.
    ///
    /// # Safety
    ///
    /// All threads of the grid call, once; grid and block have one dimension, and blocks are whole warps. `meeting` leads to
    /// room for the grid and one tag, which nothing else uses. Nothing in the block uses `accs` and `there`, of
    /// [`SHARED`](crate::block::SHARED) slots each, or `last`, of one.
    #[inline(always)]
    pub unsafe fn flush(
        self,
        meeting: &Meeting<Op>,
        accs: Shared<Op::Acc>,
        there: Shared<u32>,
        last: Shared<u32>,
    ) {
        let thread = thread_idx_x();
        let (warp, lane) = (thread / 32, thread % 32);
        // SAFETY: whole warps are here.
        let (acc, is) = unsafe { reduce_present(self.op, self.acc, self.there) };
        if lane == 0 {
            // SAFETY: a slot a warp.
            unsafe {
                accs.write(warp as usize, acc);
                there.write(warp as usize, is as u32);
            }
        }
        sync_threads();
        if warp == 0 {
            let warps = block_dim_x() / 32;
            let slot = lane.min(warps - 1) as usize;
            // SAFETY: written before the barrier; the whole first warp is here.
            let (acc, is) = unsafe {
                let is = there.read(slot) != 0 && lane < warps;
                reduce_present(self.op, accs.read(slot), is)
            };
            if lane == 0 {
                // SAFETY: the block's own place.
                unsafe { put(meeting, block_idx_x() as usize, acc, is) };
            }
        }
        // SAFETY: the caller's promise.
        unsafe { meet(self.op, meeting, 1, last) };
    }
}

/// Takes what warps push into a result for each tag. See the [module](self).
#[derive(Debug)]
pub struct TaggedSink<'a, Op: Monoid> {
    op: &'a Op,
    tags: u32,
    /// A slot for each warp and tag.
    accs: Shared<Op::Acc>,
    there: Shared<u32>,
}

impl<'a, Op: Monoid> TaggedSink<'a, Op> {
    /// One of so many tags (less than 2^32 - 1) that has nothing yet.
    ///
    /// # Safety
    ///
    /// The whole block calls, of whole warps and one dimension. `accs` and `there` have a slot for each warp and tag, which
    /// nothing else uses.
    #[inline(always)]
    pub unsafe fn new(op: &'a Op, tags: u32, accs: Shared<Op::Acc>, there: Shared<u32>) -> Self {
        let (warp, lane) = (thread_idx_x() / 32, thread_idx_x() % 32);
        let mut tag = lane;
        while tag < tags {
            nounroll();
            // SAFETY: the warp's own slots.
            unsafe { there.write((warp * tags + tag) as usize, 0) };
            tag += 32;
        }
        // SAFETY: the whole warp is here.
        unsafe { sync_warp(FULL) };
        TaggedSink { op, tags, accs, there }
    }

    /// Takes in the items that the warp's lanes have, each with its tag; `index` is what the operator is told as the item's
    /// position. An item whose tag is too large is left out.
    ///
    /// # Safety
    ///
    /// The whole warp calls.
    #[inline(always)]
    pub unsafe fn push(&mut self, item: Option<(u32, Op::Item)>, index: u64) {
        let lane = thread_idx_x() % 32;
        let (tag, mut acc) = match item {
            Some((tag, item)) if tag < self.tags => (tag, self.op.lift(item, index)),
            _ => (u32::MAX, self.op.identity()),
        };
        let has = tag != u32::MAX;
        // SAFETY: the whole warp is here.
        if !unsafe { warp_vote_any(FULL, has) } {
            return;
        }
        // SAFETY: as above.
        let peers = unsafe { warp_match_any(FULL, tag) };
        // Peers combine pairwise, neighbours first: each knows the next one of those that still have a value of their own.
        let below = (1_u32 << lane) - 1;
        let mut rank = (peers & below).count_ones();
        let first = rank == 0;
        let above = peers & !below & !(1 << lane);
        let mut next = if has && above != 0 { above.trailing_zeros() } else { 32 };
        let mut alive = has;
        // SAFETY: the whole warp is here, and agrees.
        while unsafe { warp_vote_any(FULL, alive && next < 32) } {
            nounroll();
            let from = if next < 32 { next } else { lane };
            // SAFETY: as above.
            let (other, after) = unsafe { (shuffle_idx(FULL, acc, from), shuffle_idx(FULL, next, from)) };
            if next < 32 {
                if alive && rank.is_multiple_of(2) {
                    acc = self.op.combine(acc, other);
                }
                next = after;
            }
            alive = alive && rank.is_multiple_of(2);
            rank /= 2;
        }
        if has && first {
            let slot = (thread_idx_x() / 32 * self.tags + tag) as usize;
            // SAFETY: the warp's own slots, and one lane for each tag.
            unsafe {
                let acc =
                    if self.there.read(slot) != 0 { self.op.combine(self.accs.read(slot), acc) } else { acc };
                self.accs.write(slot, acc);
                self.there.write(slot, 1);
            }
        }
        // SAFETY: the whole warp is here.
        unsafe { sync_warp(FULL) };
    }

    /// Combines what all warps of the grid have pushed, and writes a result for each tag: that of nothing, if nobody pushed it.
    ///
    /// # Safety
    ///
    /// All threads of the grid call, once; grids and blocks have one dimension. `meeting` leads to room for the grid and these
    /// tags, which nothing else uses; nothing in the block uses `last`, of one slot.
    #[inline(always)]
    pub unsafe fn flush(self, meeting: &Meeting<Op>, last: Shared<u32>) {
        sync_threads();
        let (threads, block) = (block_dim_x(), block_idx_x() as usize);
        let mut tag = thread_idx_x();
        while tag < self.tags {
            nounroll();
            let (mut acc, mut is) = (self.op.identity(), false);
            let mut warp = 0;
            while warp < threads / 32 {
                nounroll();
                let slot = (warp * self.tags + tag) as usize;
                // SAFETY: written before the barrier.
                unsafe {
                    if self.there.read(slot) != 0 {
                        let value = self.accs.read(slot);
                        acc = if is { self.op.combine(acc, value) } else { value };
                        is = true;
                    }
                }
                warp += 1;
            }
            // SAFETY: the block's own places, a thread each.
            unsafe { put(meeting, block * self.tags as usize + tag as usize, acc, is) };
            tag += threads;
        }
        // SAFETY: the caller's promise.
        unsafe { meet(self.op, meeting, self.tags, last) };
    }
}

/// Combines what there is of a warp's values pairwise, neighbours first; the value, if there is one, is in lane 0.
///
/// # Safety
///
/// The whole warp calls.
#[inline(always)]
unsafe fn reduce_present<Op: Monoid>(op: &Op, mut acc: Op::Acc, mut there: bool) -> (Op::Acc, bool) {
    let lane = thread_idx_x() % 32;
    let mut distance = 1;
    while distance < 32 {
        nounroll();
        // SAFETY: the whole warp is here.
        let (other, is) =
            unsafe { (shuffle_down(FULL, acc, distance), shuffle_down(FULL, there as u32, distance)) };
        // Only lanes at multiples of twice the distance are read from again.
        if is != 0 && lane + distance < 32 && lane.is_multiple_of(2 * distance) {
            acc = if there { op.combine(acc, other) } else { other };
            there = true;
        }
        distance *= 2;
    }
    (acc, there)
}

/// Puts down a value for the last block to find.
///
/// # Safety
///
/// The place is this thread's.
#[inline(always)]
unsafe fn put<Op: Monoid>(meeting: &Meeting<Op>, place: usize, acc: Op::Acc, there: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        global::store(meeting.partials.wrapping_add(place), acc);
        global::store(meeting.present.wrapping_add(place), there as u32);
    }
}

/// Has the last block to come here combine all blocks' values and write the results.
///
/// # Safety
///
/// As for [`TaggedSink::flush`].
#[inline(always)]
unsafe fn meet<Op: Monoid>(op: &Op, meeting: &Meeting<Op>, tags: u32, last: Shared<u32>) {
    let (thread, blocks) = (thread_idx_x(), grid_dim_x());
    sync_threads();
    if thread == 0 {
        // Release: what the block put down before the barrier is visible before the ticket is. Acquire: whoever takes the last
        // ticket sees what all did.
        // SAFETY: the caller's promise.
        let finished = unsafe { atomic::fetch_add(meeting.ticket, 1, AcqRel, Gpu) };
        // SAFETY: the block's slot.
        unsafe { last.write(0, (finished == blocks - 1) as u32) };
    }
    sync_threads();
    // SAFETY: written before the barrier.
    if unsafe { last.read(0) } == 0 {
        return;
    }
    // A warp takes a tag, and a lane a run of neighbouring blocks.
    let (lane, warps) = (thread % 32, block_dim_x() / 32);
    let run = blocks.div_ceil(FOLD_LANES);
    let mut tag = thread / 32;
    while tag < tags {
        nounroll();
        let (mut acc, mut there) = (op.identity(), false);
        let mut block = lane * run;
        while block < blocks.min((lane + 1) * run) {
            nounroll();
            let place = block as usize * tags as usize + tag as usize;
            // SAFETY: every block has put it down.
            unsafe {
                if global::load_cg(meeting.present.cast_const().wrapping_add(place)) != 0 {
                    let value = global::load_cg(meeting.partials.cast_const().wrapping_add(place));
                    acc = if there { op.combine(acc, value) } else { value };
                    there = true;
                }
            }
            block += 1;
        }
        // SAFETY: the whole warp is here.
        let (acc, there) = unsafe { reduce_present(op, acc, there) };
        if lane == 0 {
            let output = if there { op.finish(acc) } else { op.finish_empty() };
            // SAFETY: the tag's place.
            unsafe { global::store(meeting.output.wrapping_add(tag as usize), output) };
        }
        tag += warps;
    }
    if thread == 0 {
        // SAFETY: no other block is left to take one.
        unsafe { global::store(meeting.ticket, 0) };
    }
}
