//! Columns side by side without gaps, as the one array that they are: `[outer][n][inner]`, reduced along `n`.
//!
//! The next item of a lane lies as many whole rows further as there are lanes, at the same place in a vector. So where lanes of
//! all columns are folded at once, a thread reads aligned vectors and keeps an accumulator for each of their slots, whatever
//! number of columns there is: a slot is a lane of a column. The lanes of a column meet in shared memory.

use core::mem::MaybeUninit;

use warpfold_monoid::{
    Monoid, Plain,
    tree::{VECTORS_A_GROUP, vector_len},
};
use warpfold_simt::{
    global::{
        self,
        hint::{NoAllocate, Plainly},
    },
    grid,
    hint::{cold_path, nounroll, opaque},
    shared::Shared,
    thread::{block_dim_x, block_idx_x, sync_threads, thread_idx_x},
};

use super::{
    columns::{ColumnParams, Place, divided},
    let_next_start, operator,
    wide::{self, Piece},
};
use crate::{export, lanes};

/// Threads in a block at most: a few more than a power of two, for columns a few more than one, where shared memory has room.
pub const fn threads(acc_bytes: usize) -> u32 {
    if acc_bytes > 8 { 240 } else { 288 }
}

/// Rounds of a block, at most: its lanes over those that it folds at once.
pub const MAX_ROUNDS: u32 = 1 << (LEVELS - 1);

/// The most items of a row of all columns.
pub const MAX_INNER: u64 = 1 << 18;

/// Threads that read a row of so many columns, of which there are more beside them.
pub const fn a_row(width: u32, vector: u32) -> u32 {
    (width + 2 * vector - 2) / vector
}

/// The most blocks that share a chunk.
pub const MAX_SPLITS: u32 = 32;

/// Levels of the counter that rounds' values meet in.
const LEVELS: usize = 7;

/// Rows of each lane that are asked for at once, at most.
const AHEAD: usize = 4;

/// The same: fewer where accumulators are small, which leaves registers for more blocks.
const fn ahead_of<Op: Monoid>() -> usize {
    if size_of::<Op::Acc>() > 8 { AHEAD } else { AHEAD / 2 }
}

/// Those rows, of each a vector.
type Ahead<T, const V: usize> = [MaybeUninit<[T; V]>; AHEAD];

/// Rows of a lane that are asked for at once where all have as many.
const BATCH: usize = VECTORS_A_GROUP as usize;

/// Those rows, of each a vector.
type Batch<T, const V: usize> = [MaybeUninit<[T; V]>; BATCH];

/// Is there such a kernel for items in vectors of so many, and such accumulators?
pub const fn serves(vector: u32, acc_bytes: usize, commutative: bool) -> bool {
    commutative && matches!(vector, 2 | 4 | 8) && acc_bytes <= 16 && vector as usize * acc_bytes <= 64
}

/// [`serves`] an operator.
const fn serves_op<Op: Monoid>(vector: usize) -> bool {
    serves(vector as u32, size_of::<Op::Acc>(), Op::COMMUTATIVE)
}

/// From the values of one slot of a vector to those of the next, so that threads of a warp read and write other banks.
const fn apart(acc_bytes: usize, vector: usize) -> usize {
    let a_row = if acc_bytes == 0 || acc_bytes > 128 { 1 } else { 128 / acc_bytes };
    let skew = if a_row > vector { a_row / vector } else { 1 };
    (threads(acc_bytes) as usize).next_multiple_of(a_row) + skew
}

/// Values in shared memory: one for each slot of a thread's vector, one of each thread, and the counter's of each.
pub const fn slots<Op: Monoid>(vector: usize) -> usize {
    let acc = size_of::<Op::Acc>();
    if serves_op::<Op>(vector) {
        vector * apart(acc, vector) + (1 + LEVELS) * threads(acc) as usize
    } else {
        1
    }
}

/// The largest blocks that a multiprocessor is to hold: four, where vectors are of four items and accumulators small.
const fn largest(vector: u32, acc_bytes: usize) -> u32 {
    if vector == 4 && acc_bytes <= 8 { 4 } else { 2 }
}

/// Blocks of so many threads that it has at once then: as many as leave each its registers, and no more than shared memory has room for.
pub const fn resident(vector: u32, acc_bytes: usize, threads_a_block: u32) -> u32 {
    let most = largest(vector, acc_bytes) * threads(acc_bytes) / threads_a_block.next_multiple_of(32);
    match most {
        0 => 1,
        1..=7 => most,
        _ => 7,
    }
}

/// The launch bounds.
pub const fn bounds<Op: Monoid>() -> u32 {
    let acc = size_of::<Op::Acc>();
    export::resident::<Op>(threads(acc), largest(vector_len(size_of::<Op::Item>()) as u32, acc))
}

/// Columns without gaps, those of a tile by the same threads. Does nothing where order matters.
///
/// # Safety
///
/// There are `outer * chunks * splits * tiles` blocks, of at most [`threads`] threads; `width` is `inner`, `tiles` 1, and a block has
/// `parts * width` threads; or there are several tiles, and it has `parts * V * a_row(width, V)`. `stride` is `inner`, at most
/// [`MAX_INNER`], and `parts` a power of two, of which `groups / splits` are no less, and no more than [`MAX_ROUNDS`]
/// times as many. Items are readable and results writable; chunks and groups are those of a column's
/// [`Shape`](warpfold_monoid::tree::Shape). Partials and tickets are as for [`wide()`](wide::wide). `slots` has [`slots`], `flag` one.
#[inline(always)]
pub unsafe fn flat<Op: Monoid, const V: usize>(
    params: &ColumnParams<Op>,
    slots: Shared<Op::Acc>,
    flag: Shared<u32>,
) {
    grid::wait_for_previous();
    if !serves_op::<Op>(V) {
        return;
    }
    let (thread, width, parts) = (thread_idx_x(), params.width, params.parts);
    // As a thread that folds values of a column: which neighbours.
    let (part, x) = (thread / width, thread % width);
    let place =
        Place { x, part, width, parts, slots: slots.from(V * const { apart(size_of::<Op::Acc>(), V) }) };
    let pieces = params.chunks * params.splits;
    let (rest, tile) = divided(block_idx_x() as u64, params.tiles, 0);
    let (outer, piece) = divided(rest, pieces as u64, 0);
    let (k, split) = (piece as u32 / params.splits, piece as u32 % params.splits);
    let start = k as u64 * params.chunk;
    let len = params.chunk.min(params.n - start);
    let lanes = params.groups * V as u32;
    let lanes_there = (lanes as u64).min(len) as u32;
    let a_split = lanes / params.splits;
    let first_lane = split * a_split;
    let present = lanes_there.saturating_sub(first_lane).min(a_split);
    let first = (outer as i64).wrapping_mul(params.outer_stride);
    let inner = params.inner as u32;
    let items = params.input.wrapping_offset(first as isize).wrapping_add((start * params.inner) as usize);
    let aligned = items.addr().is_multiple_of(size_of::<[Op::Item; V]>());
    let first_column = tile as u32 * width;
    let column = first_column + x;
    let there = column < inner && part < parts;
    let op = &operator(&params.op, outer * params.inner + column as u64, there);
    // Rows of a tile begin within vectors, each lane of a group's elsewhere in one.
    let cut = params.tiles > 1;
    let row = a_row(width, V as u32);
    let rows = Rows {
        pitch: if cut { row * V as u32 } else { width },
        first: if cut && aligned { first_column } else { 0 },
        step: if cut && aligned { inner } else { 0 },
    };
    let (lane, vector) = if cut { (thread / row, thread % row) } else { (0, thread) };
    let first_slot = lane * inner + first_column + vector * V as u32 - rows.phase::<V>(lane);
    // Of this thread's slots.
    let ops: [Op; V] = core::array::from_fn(|slot| {
        let column = (first_slot + slot as u32) % inner;
        operator(&params.op, outer * params.inner + column as u64, true)
    });
    let slot = Slots {
        items,
        at: first_lane * inner + first_slot,
        apart: lanes as usize * inner as usize,
        whole: (len / lanes as u64) as u32,
        rest: (len % lanes as u64) as u32 * inner,
    };
    let everything = if lanes_there == lanes { None } else { Some(lanes_there) };
    let rounds =
        Rounds { place, slots, slot, rows, inner, first_slot, start, first_lane, present, lanes, everything };
    // Lanes all have items, and as many in all but the last chunk: nobody asks which are there then. A tile's last vector may reach into
    // the next row. Of few columns, a group of each has too few items side by side; and of the four schedulers, one would have twice
    // the work of each of the others where a block has five warps. (64 arrays of 131 columns of 8001 items, whose lanes have three or
    // four, by eight blocks each take 77 us in place of 73.)
    let side_by_side = width as usize * size_of::<[Op::Item; V]>();
    // Eight accumulators beside as many vectors do not fit a thread's registers.
    let alone = const { V <= 4 }
        && everything.is_none()
        && slot.whole + (slot.rest > 0) as u32 <= BATCH as u32
        && (side_by_side >= 512 || side_by_side >= 256 && side_by_side.is_multiple_of(128))
        && block_dim_x().div_ceil(32) != 5
        && (slot.whole == BATCH as u32 || pieces == 1 || params.chunks > 1);
    let all = slot.whole == BATCH as u32 && (!cut || k + 1 < params.chunks || outer + 1 < params.outer);
    // SAFETY: the whole block; items of the chunk, and aligned vectors, or not.
    let acc = unsafe {
        if alone {
            let before = if cut { lane / V as u32 } else { place.part };
            rounds.fold_alone::<Op, V>(op, &ops, (aligned, all), a_split / V as u32, before)
        } else if aligned {
            rounds.fold::<Op, V, true>(op, &ops)
        } else {
            cold_path();
            rounds.fold::<Op, V, false>(op, &ops)
        }
    };
    let piece = Piece { outer, tile, k, split, column: column as u64, there, some: present > 0 };
    // SAFETY: the whole block; barriers as there.
    unsafe { wide::finish::<Op, V, true>(params, &place, op, acc, &piece, flag) };
    let_next_start();
}

/// How the slots of lanes lie: from one lane's to the next, and how many before a lane's first are none of the tile.
#[derive(Clone, Copy)]
struct Rows {
    pitch: u32,
    first: u32,
    step: u32,
}

impl Rows {
    #[inline(always)]
    fn phase<const V: usize>(&self, lane: u32) -> u32 {
        (self.first + lane * self.step) % V as u32
    }
}

/// A piece of a chunk: what a block folds.
struct Rounds<T, A> {
    place: Place<A>,
    slots: Shared<A>,
    /// The first round's.
    slot: Slots<T>,
    rows: Rows,
    /// Items of a row, and the first of this thread's slots, where the first lane's row begins.
    inner: u32,
    first_slot: u32,
    /// The chunk's first row, the piece's first lane, how many of its lanes have items, and how many lanes there are.
    start: u64,
    first_lane: u32,
    present: u32,
    lanes: u32,
    /// Lanes of the chunk that have items, if not all do.
    everything: Option<u32>,
}

impl<T: Plain, A: Plain> Rounds<T, A> {
    /// Folds the rounds; the value of each column is in the first of its threads.
    ///
    /// # Safety
    ///
    /// The whole block calls, and all slots are free; the items are there, in aligned vectors if `ALIGNED`.
    #[inline(always)]
    unsafe fn fold<Op: Monoid<Item = T, Acc = A>, const V: usize, const ALIGNED: bool>(
        &self,
        op: &Op,
        ops: &[Op; V],
    ) -> A {
        let Rounds { place, slots, slot: first, rows, inner, first_slot, .. } = *self;
        let Rounds { start, first_lane, present, lanes, everything, .. } = *self;
        let Place { x, part, width, parts, .. } = place;
        let thread = thread_idx_x();
        let skewed = const { apart(size_of::<A>(), V) };
        let tally = slots.from(V * skewed + threads(size_of::<A>()) as usize);
        // A counter to base two in shared memory, a thread's own digits: level, and the value of the lanes there.
        let digit = |level: u32| (level * width + x) as usize;
        // Which of the lanes that are folded at once this thread's slots are.
        let lanes_of: [u32; V] = core::array::from_fn(|slot| (first_slot + slot as u32) / inner);
        let a_round = parts * V as u32;
        let rounds = present.div_ceil(a_round);
        let steps = first.whole + (first.rest > 0) as u32;
        let mut slot = first;
        let mut left = if rounds > 0 { slot.vectors::<V>() } else { 0 };
        let mut next = slot.first();
        // SAFETY: the first rows.
        let mut ahead = unsafe { slot.ask::<Op, V, ALIGNED>(next, left) };
        let mut round = 0;
        while round < rounds {
            nounroll();
            let mut acc = [op.identity(); V];
            let mut begun = false;
            let lane = first_lane + round * a_round;
            // Of a slot's item in that row.
            let index =
                |slot: usize, row: u32| start + (lane + lanes_of[slot]) as u64 + row as u64 * lanes as u64;
            let after = Slots { at: slot.at + a_round * inner, ..slot };
            let mut row = 0;
            while row < steps {
                nounroll();
                let batch = ahead;
                let (here, this) = (left, row);
                row += ahead_of::<Op>() as u32;
                if row < steps {
                    next = next.wrapping_add(ahead_of::<Op>() * slot.apart);
                    left = left.saturating_sub(ahead_of::<Op>() as u32);
                } else {
                    next = after.first();
                    left = if round + 1 < rounds { after.vectors::<V>() } else { 0 };
                }
                // SAFETY: the next rows of these lanes, or the first of the next round's.
                ahead = unsafe { slot.ask::<Op, V, ALIGNED>(next, left) };
                // SAFETY: asked for.
                unsafe {
                    if here >= ahead_of::<Op>() as u32 {
                        push::<Op, V, true>(ops, &mut acc, begun, &batch, here, |slot, u| {
                            index(slot, this + u)
                        });
                    } else {
                        cold_path();
                        push::<Op, V, false>(ops, &mut acc, begun, &batch, here, |slot, u| {
                            index(slot, this + u)
                        });
                    }
                }
                // Not known to be true, or else the first rows would get a body of their own.
                begun = opaque(1) != 0;
            }
            if slot.is_cut::<V>() {
                cold_path();
                // SAFETY: the items of the last row that are no vector.
                unsafe { slot.fold_items(ops, &mut acc, &index) };
            }
            slot = after;
            let mut s = 0;
            while s < V {
                // SAFETY: one thread, one slot; what was there has been read before a barrier.
                unsafe { slots.write(s * skewed + thread as usize, acc[s]) };
                s += 1;
            }
            sync_threads();
            // This thread's neighbours among the lanes of its column.
            // (What a tile has of threads more than those of its columns get values that nobody takes.)
            let mine = part.min(parts - 1) * V as u32;
            // A loop, as a closure of so much would be a call.
            let mut values = [op.identity(); V];
            let mut i = 0;
            while i < V {
                let at = (mine + i as u32) * rows.pitch + x + rows.phase::<V>(i as u32);
                // SAFETY: written before the barrier.
                values[i] =
                    unsafe { slots.read((at % V as u32) as usize * skewed + (at / V as u32) as usize) };
                i += 1;
            }
            let value = lanes::combine_slots(op, values, (lane + mine) / V as u32, everything);
            let here = (present - round * a_round).min(a_round).div_ceil(V as u32);
            // SAFETY: the whole block; what was in the slots has been read before a barrier.
            let value = unsafe { place.combine(op, value, here) };
            if part == 0 {
                let (mut value, mut level) = (value, 0);
                while round >> level & 1 != 0 {
                    nounroll();
                    // SAFETY: written by this thread.
                    value = op.combine(unsafe { tally.read(digit(level)) }, value);
                    level += 1;
                }
                // SAFETY: this thread's place.
                unsafe { tally.write(digit(level), value) };
            }
            round += 1;
            if parts == 1 && round < rounds {
                sync_threads();
            }
        }
        let mut acc = op.identity();
        if part == 0 && rounds > 0 {
            let mut level = rounds.trailing_zeros();
            // SAFETY: written by this thread, as are those of all digits that are set.
            acc = unsafe { tally.read(digit(level)) };
            while rounds >> level > 1 {
                nounroll();
                level += 1;
                if rounds >> level & 1 != 0 {
                    // SAFETY: as above.
                    acc = op.combine(unsafe { tally.read(digit(level)) }, acc);
                }
            }
        }
        acc
    }

    /// The same of chunks of which every lane has items, in `groups` groups: a thread takes those that lie side by side one after the
    /// other and combines their values alone, so that threads of a column meet once, at the end.
    ///
    /// # Safety
    ///
    /// As there; items are in aligned vectors if `aligned`, and every lane has a batch of them if `all`, else no more; `groups` is a power of
    /// two, and no less than `parts`. This thread's slots are those of part `before`.
    #[inline(always)]
    unsafe fn fold_alone<Op: Monoid<Item = T, Acc = A>, const V: usize>(
        &self,
        op: &Op,
        ops: &[Op; V],
        (aligned, all): (bool, bool),
        groups: u32,
        before: u32,
    ) -> A {
        let Rounds { place, slots, mut slot, rows, inner, first_slot, start, first_lane, lanes, .. } = *self;
        let Place { x, part, parts, .. } = place;
        let thread = thread_idx_x();
        let skewed = const { apart(size_of::<A>(), V) };
        let most = const { threads(size_of::<A>()) as usize };
        let tally = slots.from(V * skewed + most + thread as usize);
        let rounds = groups / parts;
        // A round's slots of this thread are those of a group, the next round's of the next.
        let skipped = before * (rounds - 1) * V as u32;
        let lanes_of: [u32; V] =
            core::array::from_fn(|slot| first_lane + skipped + (first_slot + slot as u32) / inner);
        slot.at += skipped * inner;
        // Where the values of this thread's neighbours are.
        // (What a tile has of threads more than those of its columns get values that nobody takes.)
        let mine = part.min(parts - 1) * V as u32;
        let at: [Shared<A>; V] = core::array::from_fn(|i| {
            let at = (mine + i as u32) * rows.pitch + x + rows.phase::<V>(i as u32);
            slots.from((at % V as u32) as usize * skewed + (at / V as u32) as usize)
        });
        let vectors = |slot: &Slots<T>| if all { BATCH as u32 } else { slot.vectors::<V>() };
        let mut left = vectors(&slot);
        // SAFETY: the first rows.
        let mut batch = unsafe { slot.ask_all(slot.first(), left, aligned) };
        let mut round = 0;
        while round < rounds {
            nounroll();
            let mut acc = [op.identity(); V];
            let index = |slot: usize, row: u32| {
                start + (lanes_of[slot] + round * V as u32) as u64 + row as u64 * lanes as u64
            };
            // SAFETY: asked for, as many as are left.
            unsafe { push_all(ops, &mut acc, &batch, left, all, index) };
            let after = Slots { at: slot.at + V as u32 * inner, ..slot };
            left = if round + 1 < rounds { vectors(&after) } else { 0 };
            // Not earlier: asked for row by row in the place of those that are used, they all came later (69 us to 75).
            // SAFETY: the next group's first rows.
            batch = unsafe { slot.ask_all(after.first(), left, aligned) };
            if !all && slot.is_cut::<V>() {
                cold_path();
                // SAFETY: the items of the last row that are no vector.
                unsafe { slot.fold_items(ops, &mut acc, index) };
            }
            slot = after;
            let mut s = 0;
            while s < V {
                // SAFETY: one thread, one slot; what was there has been read before a barrier.
                unsafe { slots.write(s * skewed + thread as usize, acc[s]) };
                s += 1;
            }
            sync_threads();
            let mut values = [op.identity(); V];
            let mut i = 0;
            while i < V {
                // SAFETY: written before the barrier.
                values[i] = unsafe { at[i].read(0) };
                i += 1;
            }
            let mut value = lanes::combine_slots(op, values, 0, None);
            // A counter to base two, a thread's own digits.
            let mut level = 0;
            while round >> level & 1 != 0 {
                nounroll();
                // SAFETY: written by this thread.
                value = op.combine(unsafe { tally.read(level * most) }, value);
                level += 1;
            }
            // SAFETY: this thread's place.
            unsafe { tally.write(level * most, value) };
            round += 1;
            sync_threads();
        }
        // SAFETY: written by this thread.
        let value = unsafe { tally.read(rounds.trailing_zeros() as usize * most) };
        // SAFETY: the whole block; its slots have not been used.
        unsafe { place.combine(op, value, parts) }
    }
}

/// A thread's slots: places in the rows that all lanes of a chunk have an item in.
#[derive(Clone, Copy)]
struct Slots<T> {
    /// The chunk's first item.
    items: *const T,
    /// The first slot.
    at: u32,
    /// From an item of a slot to the next.
    apart: usize,
    /// Items that every slot has.
    whole: u32,
    /// Slots that have one more: so many of the first.
    rest: u32,
}

impl<T: Plain> Slots<T> {
    #[inline(always)]
    fn first(&self) -> *const T {
        self.items.wrapping_add(self.at as usize)
    }

    /// Rows that the vector of these slots is whole in for sure, and slots of that row's beginning that are there in the next: a vector
    /// that reaches into the row of the next items is cut where that is.
    #[inline(always)]
    fn ends<const V: usize>(&self) -> (u32, u32) {
        if self.at + V as u32 > self.apart as u32 && self.whole > 0 {
            (self.whole - 1, self.rest + self.apart as u32)
        } else {
            (self.whole, self.rest)
        }
    }

    /// Whole vectors that there are of these slots.
    #[inline(always)]
    fn vectors<const V: usize>(&self) -> u32 {
        let (whole, rest) = self.ends::<V>();
        whole + (self.at + V as u32 <= rest) as u32
    }

    /// Is the last row's vector not whole, but some of its items there?
    #[inline(always)]
    fn is_cut<const V: usize>(&self) -> bool {
        let rest = self.ends::<V>().1;
        self.at < rest && self.at + V as u32 > rest
    }

    /// Asks for the next vectors, as many as there are; item by item, where they are not aligned: what one load of a warp leaves of the
    /// lines that it touches, the next ones find in L1. The loads stand behind predicates, or else the assembler would move each to the
    /// branch that uses it.
    ///
    /// # Safety
    ///
    /// `left` vectors may be read, which are aligned if `ALIGNED`.
    #[inline(always)]
    unsafe fn ask<Op: Monoid, const V: usize, const ALIGNED: bool>(
        &self,
        from: *const T,
        left: u32,
    ) -> Ahead<T, V> {
        core::array::from_fn(|u| {
            if u >= ahead_of::<Op>() {
                return MaybeUninit::uninit();
            }
            let from = from.wrapping_add(u * self.apart);
            let there = (u as u32) < left;
            if ALIGNED {
                // SAFETY: the caller's promise. Nothing is read twice.
                return unsafe { global::load_neighbours_if::<NoAllocate, T, V>(there, from) };
            }
            let items: [MaybeUninit<T>; V] = core::array::from_fn(|slot| {
                // SAFETY: the caller's promise.
                unsafe { global::load_if::<Plainly, T>(there, from.wrapping_add(slot)) }
            });
            // SAFETY: the same bytes, which need not be anything.
            unsafe { core::mem::transmute_copy::<[MaybeUninit<T>; V], MaybeUninit<[T; V]>>(&items) }
        })
    }

    /// Asks for a batch of vectors, as many as are `left`; item by item, if they are not aligned.
    ///
    /// # Safety
    ///
    /// They may be read, and are aligned if `aligned`.
    #[inline(always)]
    unsafe fn ask_all<const V: usize>(&self, from: *const T, left: u32, aligned: bool) -> Batch<T, V> {
        let row = |u: usize| ((u as u32) < left, from.wrapping_add(u * self.apart));
        if aligned {
            core::array::from_fn(|u| {
                let (there, from) = row(u);
                // SAFETY: the caller's promise. Nothing is read twice.
                unsafe { global::load_neighbours_if::<NoAllocate, T, V>(there, from) }
            })
        } else {
            cold_path();
            core::array::from_fn(|u| {
                let (there, from) = row(u);
                let items: [MaybeUninit<T>; V] = core::array::from_fn(|slot| {
                    // SAFETY: the caller's promise.
                    unsafe { global::load_if::<Plainly, T>(there, from.wrapping_add(slot)) }
                });
                // SAFETY: the same bytes, which need not be anything.
                unsafe { core::mem::transmute_copy::<[MaybeUninit<T>; V], MaybeUninit<[T; V]>>(&items) }
            })
        }
    }

    /// Folds the items of the last row where they [are no vector](Self::is_cut).
    ///
    /// # Safety
    ///
    /// Those that there are may be read.
    #[inline(always)]
    unsafe fn fold_items<Op: Monoid<Item = T>, const V: usize>(
        &self,
        ops: &[Op; V],
        acc: &mut [Op::Acc; V],
        index: impl Fn(usize, u32) -> u64,
    ) {
        let (whole, rest) = self.ends::<V>();
        let items = self.first().wrapping_add(whole as usize * self.apart);
        let (begun, there) = (whole > 0, rest.saturating_sub(self.at));
        let mut slot = 0;
        while slot < V {
            if (slot as u32) < there {
                // SAFETY: an item of the chunk.
                let item = unsafe { global::load(items.wrapping_add(slot)) };
                acc[slot] = if begun {
                    ops[slot].push(acc[slot], item, index(slot, whole))
                } else {
                    ops[slot].lift(item, index(slot, whole))
                };
            }
            slot += 1;
        }
    }
}

/// Takes the rows that were asked for into the slots' accumulators: of those `left`, `ALL` or not.
///
/// # Safety
///
/// They have been asked for.
#[inline(always)]
unsafe fn push<Op: Monoid, const V: usize, const ALL: bool>(
    ops: &[Op; V],
    acc: &mut [Op::Acc; V],
    begun: bool,
    rows: &Ahead<Op::Item, V>,
    left: u32,
    index: impl Fn(usize, u32) -> u64,
) {
    let mut u = 0;
    while u < ahead_of::<Op>() {
        if ALL || (u as u32) < left {
            // SAFETY: asked for.
            let items = unsafe { rows[u].assume_init() };
            let mut slot = 0;
            while slot < V {
                let index = index(slot, u as u32);
                acc[slot] = if begun || u > 0 {
                    ops[slot].push(acc[slot], items[slot], index)
                } else {
                    ops[slot].lift(items[slot], index)
                };
                slot += 1;
            }
        }
        u += 1;
    }
}

/// Takes a batch of rows into the slots' accumulators, which have nothing yet: `all`, or as many as are `left`.
///
/// # Safety
///
/// They have been asked for.
#[inline(always)]
unsafe fn push_all<Op: Monoid, const V: usize>(
    ops: &[Op; V],
    acc: &mut [Op::Acc; V],
    rows: &Batch<Op::Item, V>,
    left: u32,
    all: bool,
    index: impl Fn(usize, u32) -> u64,
) {
    let mut u = 0;
    while u < BATCH {
        if all || (u as u32) < left {
            // SAFETY: asked for.
            let items = unsafe { rows[u].assume_init() };
            let mut slot = 0;
            while slot < V {
                let index = index(slot, u as u32);
                acc[slot] = if u == 0 {
                    ops[slot].lift(items[slot], index)
                } else {
                    ops[slot].push(acc[slot], items[slot], index)
                };
                slot += 1;
            }
        }
        u += 1;
    }
}
