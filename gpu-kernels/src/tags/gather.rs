//! Reductions by tag where any order will do: values are gathered by atomic updates ([`Monoid::ATOMIC`]).
//!
//! A block takes a chunk of the items and keeps a table of all tags, or of a [range](TagParams::range) of them, in shared memory, as
//! often as there is room for: each lane of a warp has its copy, so that lanes of one tag meet in no word. What a block has it adds
//! to one value for each tag in global memory. More tags than a few ranges hold are added there at once. [`clear`] makes the values ready,
//! and [`settle`] finishes them.
//!
//! **A tag that many items have** would have all lanes wait for each other. Each warp looks at one item in each row: the tag of the lane
//! whose turn it is, if at least `LIKES` have it, is kept in registers from then on, a value a lane, until twice as many have another.
//!
//! **Sums of floats.** Cards add integers in shared memory at once, and floats only by trying again and again. So sums in `f64` are
//! kept in fixed point, 64 bits, and those of a block are exact: the block chooses the unit by the greatest of the first items that its
//! threads see, 2^-40 of it or so. What is not a multiple of the unit, or more than four times as large, is added as `f64`: of numbers of
//! 24 bits those less than 2^-16 of the greatest.

use core::mem::transmute_copy;

use warpfold_monoid::{Atomic, Monoid, Plain, keyed::LANES};
use warpfold_simt::{
    atomic::{self, Gpu, Relaxed},
    global::{self, hint::NoAllocate},
    grid,
    hint::{cold_path, nounroll, pinned},
    shared::{Shared, dynamic_shared},
    thread::{block_dim_x, block_idx_x, grid_dim_x, sync_threads, thread_idx_x},
    warp::{FULL, WarpReductionOp, shuffle_down, shuffle_idx, sync_warp, warp_reduce, warp_vote_ballot},
};

use super::{NONE, STRIP, TagParams, Word, load_tag, load_values, note_bad, partition, width};

/// The kernels that ask for more shared memory than every block has: of a multiprocessor, several blocks share it or one has it alone.
pub const KERNELS: [&str; 2] = ["gather", "sweep"];

/// Threads of a block that has a multiprocessor alone.
pub const LONE_THREADS: u32 = 1024;

/// Bytes of shared memory that it has beside its table.
pub const STATIC_BYTES: u32 = 16;

/// Threads of a block: as many as registers allow with [`RESIDENT`] of them.
pub const fn threads<Op: Monoid>() -> u32 {
    if size_of::<Op::Acc>() <= 4 || matches!(Op::ATOMIC, Atomic::AddFloat) { 1024 } else { 768 }
}

/// Threads of a block that has no table.
pub const SCATTER_THREADS: u32 = 512;

/// Blocks that a multiprocessor is to hold.
pub const RESIDENT: u32 = 2;

/// Threads of a block of [`clear`] and [`settle`].
pub const SIMPLE_THREADS: u32 = 256;

/// Its warps.
pub const SIMPLE_WARPS: usize = (SIMPLE_THREADS / LANES) as usize;

/// The most items of a chunk: as many as fixed-point sums have bits for.
pub const MOST_ITEMS: u64 = 1 << 20;

/// Bits of a fixed-point item but for its sign.
const ITEM_BITS: u32 = 42;

/// Lanes, at least, that have a tag which is worth keeping in registers.
pub(super) const LIKES: u32 = 8;

/// Are values of this operator gathered by atomic updates?
pub const fn serves<Op: Monoid>() -> bool {
    Op::ANY_ORDER && !matches!(Op::ATOMIC.of_size(size_of::<Op::Acc>()), Atomic::No)
}

/// Bytes that a tag has in a block's table for each copy, with or without a value for floats that are out of scale.
pub const fn entry_bytes<Op: Monoid>(floats: bool) -> usize {
    let floats = floats && matches!(Op::ATOMIC, Atomic::AddFloat);
    if floats { 2 * size_of::<Op::Acc>() } else { size_of::<Op::Acc>() }
}

/// What values of 4 or 8 bytes are in bits.
#[inline(always)]
pub(super) fn bits<A: Plain>(value: A) -> u64 {
    // SAFETY: plain data of that size.
    unsafe {
        match size_of::<A>() {
            4 => transmute_copy::<A, u32>(&value) as u64,
            8 => transmute_copy::<A, u64>(&value),
            _ => 0,
        }
    }
}

/// The value of those bits.
///
/// # Safety
///
/// A value had them.
#[inline(always)]
pub(super) unsafe fn of_bits<A: Plain>(bits: u64) -> A {
    // SAFETY: the caller's promise.
    unsafe {
        if size_of::<A>() == 4 {
            transmute_copy::<u32, A>(&(bits as u32))
        } else {
            transmute_copy::<u64, A>(&bits)
        }
    }
}

/// Fixed point: which numbers are kept in it, and how.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    /// One and a half times 2^52 units: the last place of what is added to it is the unit.
    magic: f64,
    /// Upper words of so many units are too large, of either sign.
    most: u32,
}

/// Bits of fixed-point items, beyond those that [`MOST_ITEMS`] leave, that sums of so many need.
#[inline(always)]
pub(super) const fn bits_beyond(items: u64) -> u32 {
    let mut beyond = 0;
    while items > MOST_ITEMS << beyond {
        beyond += 1;
    }
    beyond
}

impl Scale {
    /// That for numbers with a greatest exponent, as `f64` have it; 0 if none is known. So many bits [more](bits_beyond) are for sums.
    #[inline(always)]
    pub(super) fn of(exponent: u32, beyond: u32) -> Scale {
        let exponent = if exponent == 0 { 1023 } else { exponent.clamp(100, 1900) };
        // Four times the greatest is below 2^ITEM_BITS units.
        let item_bits = ITEM_BITS - beyond;
        let unit = exponent + 3 - item_bits;
        Scale { magic: 1.5 * f64::from_bits((unit as u64 + 52) << 52), most: 1 << (item_bits - 32) }
    }

    /// The number in units; the flag says whether it is so many, and fewer than 2^ITEM_BITS.
    #[inline(always)]
    fn units(&self, value: f64) -> (u64, bool) {
        let moved = value + self.magic;
        // The lower word of the magic number is zero.
        let upper = ((moved.to_bits() >> 32) as u32).wrapping_sub((self.magic.to_bits() >> 32) as u32);
        let units = (upper as u64) << 32 | moved.to_bits() as u32 as u64;
        // Of what is too large, or not finite, the exponent differs, and with it the upper word by far more.
        let small = upper.wrapping_add(self.most) < 2 * self.most;
        (units, small & (moved - self.magic == value))
    }

    /// So many units.
    #[inline(always)]
    fn value(&self, units: u64) -> f64 {
        let unit = self.magic * f64::from_bits((1023 - 52) << 52) / 1.5;
        units as i64 as f64 * unit
    }
}

/// Where a block gathers values.
pub(super) struct Table<'a, Op: Monoid> {
    pub(super) op: &'a Op,
    /// Those of all tags.
    pub(super) state: *mut Op::Acc,
    /// The first of the tags that the block has.
    pub(super) lowest: u32,
    /// In shared memory.
    pub(super) words: Shared<Word>,
    /// Copies of a value there, as a power of two.
    pub(super) copies: u32,
    /// Values of all copies.
    pub(super) places: u32,
    /// Do numbers that are out of scale have a place there?
    pub(super) floats: bool,
    pub(super) scale: Scale,
}

impl<Op: Monoid> Table<'_, Op> {
    #[inline(always)]
    fn small(&self) -> Shared<u32> {
        // SAFETY: plain data; what is read as one type has been written as it.
        unsafe { self.words.cast() }
    }

    #[inline(always)]
    fn large(&self) -> Shared<u64> {
        // SAFETY: the same.
        unsafe { self.words.cast() }
    }

    /// Combines what is in a place of shared memory.
    ///
    /// # Safety
    ///
    /// There is that place, and it has a value.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn combine_at(&self, place: usize, value: Op::Acc) {
        let new = |old: u64| {
            // SAFETY: of a value.
            bits(self.op.combine(unsafe { of_bits(old) }, value))
        };
        // SAFETY: the caller's promise.
        unsafe {
            if size_of::<Op::Acc>() == 4 {
                self.small().update(place, |old| new(old as u64) as u32);
            } else {
                self.large().update(place, new);
            }
        }
    }

    /// Where a lane's copy of a value is.
    #[inline(always)]
    fn place(&self, slot: u32, lane: u32) -> usize {
        ((slot << self.copies) + (lane & ((1 << self.copies) - 1))) as usize
    }

    /// Takes a value in.
    ///
    /// # Safety
    ///
    /// Among the block's tags.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub(super) unsafe fn put<const SHARED: bool>(&self, slot: u32, lane: u32, value: Op::Acc) {
        let place = self.place(slot, lane);
        // SAFETY: the caller's promise; all places have values since a barrier.
        unsafe {
            match Op::ATOMIC {
                _ if !SHARED => self.put_global(slot, value),
                Atomic::Add if size_of::<Op::Acc>() == 4 => self.small().add(place, bits(value) as u32),
                Atomic::Add => self.large().add(place, bits(value)),
                Atomic::AddFloat => {
                    let float = f64::from_bits(bits(value));
                    let (units, exact) = self.scale.units(float);
                    if exact {
                        self.large().add(place, units);
                    } else {
                        cold_path();
                        if self.floats {
                            self.large().from(self.places as usize).cast::<f64>().add(place, float);
                        } else {
                            self.put_global(slot, value);
                        }
                    }
                }
                _ => self.combine_at(place, value),
            }
        }
    }

    /// Takes a value in where all blocks do.
    ///
    /// # Safety
    ///
    /// Among the block's tags.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn put_global(&self, slot: u32, value: Op::Acc) {
        let place = self.state.wrapping_add((self.lowest + slot) as usize);
        // SAFETY: the launch's own, which all update atomically.
        unsafe {
            match Op::ATOMIC {
                Atomic::Add if size_of::<Op::Acc>() == 4 => {
                    atomic::fetch_add(place.cast::<u32>(), bits(value) as u32, Relaxed, Gpu);
                }
                Atomic::Add => {
                    atomic::fetch_add(place.cast::<u64>(), bits(value), Relaxed, Gpu);
                }
                Atomic::AddFloat => {
                    atomic::fetch_add(place.cast::<f64>(), f64::from_bits(bits(value)), Relaxed, Gpu);
                }
                _ if size_of::<Op::Acc>() == 4 => {
                    self.combine_global(place.cast::<u32>(), value, |bits| bits as u32)
                }
                _ => self.combine_global(place.cast::<u64>(), value, |bits| bits),
            }
        }
    }

    /// # Safety
    ///
    /// A word that all update atomically.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn combine_global<W: atomic::Word + Into<u64> + PartialEq>(
        &self,
        place: *mut W,
        value: Op::Acc,
        word: impl Fn(u64) -> W,
    ) {
        // SAFETY: the caller's promise; the bits are those of values.
        unsafe {
            let mut old = global::load_relaxed_gpu(place.cast_const());
            loop {
                nounroll();
                let new = word(bits(self.op.combine(of_bits(old.into()), value)));
                if new == old {
                    return;
                }
                let found = atomic::compare_exchange(place, old, new, Relaxed, Gpu);
                if found == old {
                    return;
                }
                old = found;
            }
        }
    }

    /// Makes all places ready.
    ///
    /// # Safety
    ///
    /// All threads of the block call; a barrier follows.
    #[inline(always)]
    pub(super) unsafe fn fill(&self, thread: u32) {
        let floats = matches!(Op::ATOMIC, Atomic::AddFloat);
        let nothing = bits(self.op.identity());
        let places = if self.floats { 2 * self.places } else { self.places };
        let mut place = thread;
        while place < places {
            nounroll();
            // SAFETY: a place of the table.
            unsafe {
                if size_of::<Op::Acc>() == 4 {
                    self.small().write(place as usize, nothing as u32);
                } else {
                    let fixed = floats && place < self.places;
                    self.large().write(place as usize, if fixed { 0 } else { nothing });
                }
            }
            place += block_dim_x();
        }
    }

    /// What all copies of a tag have.
    ///
    /// # Safety
    ///
    /// Among the block's tags, behind a barrier.
    #[inline(always)]
    unsafe fn total(&self, slot: u32, lane: u32) -> Op::Acc {
        let last = (1 << self.copies) - 1;
        let mut sum = self.op.identity();
        let mut units = 0_u64;
        let mut copy = 0;
        while copy <= last {
            nounroll();
            // Each lane begins with its own, so that they do not share a bank.
            let place = ((slot << self.copies) + ((copy + lane) & last)) as usize;
            // SAFETY: the caller's promise.
            unsafe {
                let read = |place: usize| {
                    if size_of::<Op::Acc>() == 4 {
                        of_bits(self.small().read(place) as u64)
                    } else {
                        of_bits(self.large().read(place))
                    }
                };
                if matches!(Op::ATOMIC, Atomic::AddFloat) {
                    units = units.wrapping_add(self.large().read(place));
                    if self.floats {
                        sum = self.op.combine(sum, read(self.places as usize + place));
                    }
                } else {
                    sum = self.op.combine(sum, read(place));
                }
            }
            copy += 1;
        }
        if matches!(Op::ATOMIC, Atomic::AddFloat) {
            // SAFETY: of an `f64`, as these accumulators are.
            sum = self.op.combine(sum, unsafe { of_bits(self.scale.value(units).to_bits()) });
        }
        sum
    }

    /// Adds what the block has of its tags to the values of all blocks.
    ///
    /// # Safety
    ///
    /// All threads of the block call, behind a barrier.
    #[inline(always)]
    pub(super) unsafe fn add_up(&self, tags: u32, thread: u32) {
        let mut slot = thread;
        while slot < tags {
            nounroll();
            // SAFETY: among the block's tags, behind a barrier.
            unsafe {
                let total = self.total(slot, thread % LANES);
                if bits(total) != bits(self.op.identity()) {
                    self.put_global(slot, total);
                }
            }
            slot += block_dim_x();
        }
    }
}

/// A chunk's tags and values.
struct Chunk<'a, Op: Monoid> {
    params: &'a TagParams<Op>,
    /// Ranges of tags.
    ranges: u32,
    /// Items of the chunk, and where its values, and tags of 32 bits, are.
    len: u32,
    values: *const Op::Item,
    numbers: *const u32,
    /// The first of the tags that the block has.
    lowest: u32,
    /// Does a vector begin where a strip does?
    vectors: bool,
}

impl<Op: Monoid> Chunk<'_, Op> {
    /// A strip of the chunk, whatever there is of it: slots, [`NONE`] or beyond for those that are not there, and items.
    ///
    /// # Safety
    ///
    /// The chunk has an item.
    #[inline(always)]
    unsafe fn strip(&self, first: u32) -> ([u32; STRIP], [Op::Item; STRIP]) {
        let len = self.len;
        // SAFETY: items that there are. Chunks are whole strips, and so vectors are aligned as the first is.
        let (numbers, items) = unsafe {
            if self.vectors && first + STRIP as u32 <= len {
                let from = self.numbers.wrapping_add(first as usize);
                (
                    global::load_neighbours_with::<NoAllocate, u32, STRIP>(from),
                    load_values(self.values, first as u64),
                )
            } else {
                cold_path();
                // Nothing of this is computed ahead: registers are too few to keep it.
                let first = pinned(first);
                let start = self.params.chunk * pinned(block_idx_x() / self.ranges) as u64;
                let values = self.params.values.wrapping_add(start as usize);
                // The last item of all stands in for those that are not there.
                let mut numbers = [NONE; STRIP];
                let mut s = 0;
                while s < STRIP {
                    let place = first + s as u32;
                    if place < len {
                        numbers[s] = load_tag(self.params.tags, self.params.width, start + place as u64);
                    }
                    s += 1;
                }
                let place = |s: usize| (first + s as u32).min(len - 1) as usize;
                (numbers, core::array::from_fn(|s| global::load(values.wrapping_add(place(s)))))
            }
        };
        (numbers.map(|number| number.wrapping_sub(self.lowest)), items)
    }
}

/// Gathers the values of chunks, a block for each and for each range of tags: in `SHARED` memory, or at once where all
/// blocks do. A thread has `F` strips in flight.
///
/// # Safety
///
/// The grid has a block for each chunk and range, of whole warps, with room for [`entry_bytes`] of each tag of a range and copy in dynamic
/// shared memory if that is used; a range is all tags if not. The values at `partials` have been [cleared](clear) and are, like `first_bad`,
/// this launch's alone. Tags and values are readable. `top` has room for a word. If there are `lists`, and memory is not `SHARED`,
/// [`clear`] has had a look at the tags, and nothing is done unless they [repeat](partition).
#[inline(always)]
pub unsafe fn gather<Op: Monoid, const SHARED: bool, const F: usize>(
    params: &TagParams<Op>,
    top: Shared<u32>,
) {
    let (op, thread, threads) = (&params.op, thread_idx_x(), block_dim_x());
    let lane = thread % LANES;
    let ranges = params.k.div_ceil(params.range);
    let (range, chunk) = (block_idx_x() % ranges, block_idx_x() / ranges);
    let lowest = range * params.range;
    let tags = params.range.min(params.k - lowest);
    let start = chunk as u64 * params.chunk;
    // No more than `MOST_ITEMS`: places in a chunk are of 32 bits.
    let len = params.chunk.min(params.n - start) as u32;
    let row_items = threads * STRIP as u32;
    let mine = thread * STRIP as u32;
    let values = params.values.wrapping_add(start as usize);
    let base = params.base + start;
    let places = params.range << params.copies;
    let floats = params.floats != 0;
    let bytes = places as usize * entry_bytes::<Op>(floats);
    // SAFETY: the caller's promise.
    let words = unsafe { dynamic_shared::<Word>(if SHARED { bytes.div_ceil(size_of::<Word>()) } else { 0 }) };
    let (state, copies) = (params.partials, params.copies);
    let mut table = Table { op, state, lowest, words, copies, places, floats, scale: Scale::of(0, 0) };
    if !SHARED && params.lists > 0 {
        // Most often there is nothing to do here.
        grid::let_next_start();
        grid::wait_for_previous();
        // SAFETY: the caller's promise.
        if !unsafe { partition::repeats(params) } {
            return;
        }
    }
    if SHARED {
        // SAFETY: all threads call, and a barrier follows.
        unsafe {
            table.fill(thread);
            if thread == 0 {
                top.write(0, 0);
            }
        }
    }
    grid::wait_for_previous();
    if SHARED {
        sync_threads();
    }
    if SHARED && matches!(Op::ATOMIC, Atomic::AddFloat) {
        let mut exponent = 0;
        if mine < len {
            // SAFETY: an item that there is.
            let item = unsafe { global::load(values.wrapping_add(mine as usize)) };
            let found = (bits(op.lift(item, base + mine as u64)) >> 52) as u32 & 0x7ff;
            exponent = if found == 0x7ff { 0 } else { found };
        }
        // SAFETY: all lanes are here; a word that has been written before a barrier.
        unsafe {
            let greatest = warp_reduce(FULL, exponent, WarpReductionOp::Max);
            if lane == 0 {
                top.update(0, |old| old.max(greatest));
            }
        }
        sync_threads();
        // SAFETY: behind a barrier.
        table.scale = Scale::of(unsafe { top.read(0) }, 0);
    }

    let vectors = params.width == width::WORD
        && params.tags.addr().is_multiple_of(16)
        && params.values.addr().is_multiple_of(16);
    let mut kept = op.identity();
    let numbers = params.tags.cast::<u32>().wrapping_add(start as usize);
    let items = Chunk { params, ranges, len, lowest, values, numbers, vectors };
    // Of the first row all lanes have their turn, lest a tag of half of the items begins in memory.
    let first_slot = if mine < len {
        // SAFETY: an item that there is.
        unsafe { load_tag(params.tags, params.width, start + mine as u64) }.wrapping_sub(lowest)
    } else {
        NONE
    };
    let (mut hot, mut most, mut turn) = (NONE, LIKES - 1, 0);
    while turn < LANES {
        nounroll();
        // SAFETY: all lanes are here.
        let (candidate, likes) = unsafe { liked(first_slot, turn) };
        if candidate < tags && likes > most {
            (hot, most) = (candidate, likes);
        }
        turn += 1;
    }
    let mut row = 0;
    while row < len {
        nounroll();
        let first: [u32; F] = core::array::from_fn(|u| row + u as u32 * row_items + mine);
        // SAFETY: there is an item.
        let strips: [_; F] = core::array::from_fn(|u| unsafe { items.strip(first[u]) });
        let mut u = 0;
        while u < F {
            let (slots, items) = strips[u];
            // SAFETY: all lanes are here, and go the same way.
            unsafe {
                let (candidate, likes) = liked(slots[0], (row >> 10) % LANES);
                if candidate < tags && candidate != hot && likes >= LIKES {
                    let before = warp_vote_ballot(FULL, slots[0] == hot).count_ones();
                    if likes > 2 * before {
                        flush::<Op, SHARED>(&table, hot, &mut kept, lane);
                        hot = candidate;
                    }
                }
            }
            let mut s = 0;
            while s < STRIP {
                let (slot, place) = (slots[s], first[u] + s as u32);
                let index = base + place as u64;
                if slot < tags {
                    if slot == hot {
                        kept = op.push(kept, items[s], index);
                    } else {
                        // SAFETY: among the block's tags.
                        unsafe { table.put::<SHARED>(slot, lane, op.lift(items[s], index)) };
                    }
                } else if range == 0 && slot >= params.k && place < len {
                    // SAFETY: the caller's promise.
                    unsafe {
                        note_bad(
                            params.first_bad,
                            params.base + params.chunk * pinned(chunk) as u64 + place as u64,
                        )
                    };
                }
                if matches!(Op::ATOMIC, Atomic::Combine) {
                    // Lanes that try again would go their own way up to the end of the strip.
                    // SAFETY: all lanes are here.
                    unsafe { sync_warp(FULL) };
                }
                s += 1;
            }
            u += 1;
        }
        row += F as u32 * row_items;
    }
    grid::let_next_start();
    // SAFETY: all lanes are here.
    unsafe { flush::<Op, SHARED>(&table, hot, &mut kept, lane) };
    if SHARED {
        sync_threads();
        // SAFETY: all threads call, behind a barrier.
        unsafe { table.add_up(tags, thread) };
    }
}

/// What a lane has, and how many lanes have the same.
///
/// # Safety
///
/// All lanes of the warp call, with the same turn.
#[inline(always)]
pub(super) unsafe fn liked(slot: u32, turn: u32) -> (u32, u32) {
    // SAFETY: all lanes are here.
    unsafe {
        let candidate = shuffle_idx(FULL, slot, turn);
        (candidate, warp_vote_ballot(FULL, slot == candidate).count_ones())
    }
}

/// Takes in what the lanes have kept of a tag, if it is one.
///
/// # Safety
///
/// All lanes of the warp call, with the same tag.
#[inline(always)]
pub(super) unsafe fn flush<Op: Monoid, const SHARED: bool>(
    table: &Table<'_, Op>,
    hot: u32,
    kept: &mut Op::Acc,
    lane: u32,
) {
    if hot == NONE {
        return;
    }
    let mut value = *kept;
    let mut distance = LANES / 2;
    while distance > 0 {
        nounroll();
        // SAFETY: all lanes are here.
        value = table.op.combine(value, unsafe { shuffle_down(FULL, value, distance) });
        distance /= 2;
    }
    if lane == 0 {
        // SAFETY: among the block's tags.
        unsafe { table.put::<SHARED>(hot, 0, value) };
    }
    *kept = table.op.identity();
}

/// Makes the values of all tags ready.
///
/// # Safety
///
/// `partials` has a value for each tag, and they are this launch's alone. So are the lengths of lists, if there are any, and what says whether
/// pairs are split into them; then tags are readable. `seen` has room for a word for each warp of a block.
#[inline(always)]
pub unsafe fn clear<Op: Monoid>(params: &TagParams<Op>, seen: Shared<u32>) {
    grid::wait_for_previous();
    grid::let_next_start();
    if block_idx_x() == 0 {
        let mut list = thread_idx_x();
        while list < params.lists {
            nounroll();
            // SAFETY: the list's own.
            unsafe { global::store(params.present.cast::<u32>().wrapping_add(list as usize), 0) };
            list += block_dim_x();
        }
        if params.lists > 0 {
            // The other blocks have begun with their tags.
            // SAFETY: all threads of the block are here.
            unsafe { partition::look(params, seen) };
        }
    }
    let mut tag = block_idx_x() * block_dim_x() + thread_idx_x();
    while tag < params.k {
        nounroll();
        // SAFETY: the tag's own.
        unsafe { global::store(params.partials.wrapping_add(tag as usize), params.op.identity()) };
        tag += grid_dim_x() * block_dim_x();
    }
}

/// Writes the results.
///
/// # Safety
///
/// The values at `partials` have been gathered by launches before; `output` is writable.
#[inline(always)]
pub unsafe fn settle<Op: Monoid>(params: &TagParams<Op>) {
    grid::let_next_start();
    grid::wait_for_previous();
    let mut tag = block_idx_x() * block_dim_x() + thread_idx_x();
    while tag < params.k {
        nounroll();
        // SAFETY: the tag's own.
        unsafe {
            let value = global::load(params.partials.wrapping_add(tag as usize).cast_const());
            global::store(params.output.wrapping_add(tag as usize), params.op.finish(value));
        }
        tag += grid_dim_x() * block_dim_x();
    }
}
