//! Segments of any lengths where any order of combination will do: one scan of items and flags.
//!
//! A tile marks which of its items begin a segment, a bit each, and folds with them: a flag makes what stands before it
//! irrelevant. A tile that has a flag knows what those behind it need as soon as it has folded its own items, and waits only for
//! its own first ones: the more segments there are, the less is waited for. Not of operators that are told positions, since those
//! are counted from a segment's beginning.
//!
//! Where a tile begins among the segments is a search of several steps, each of which waits for memory. So the first blocks of a
//! large launch are scouts, which search for all tiles at once, and lay what they find beside the tiles' records; a tile that comes
//! before them searches for itself.

use core::{marker::PhantomData, mem::MaybeUninit};

use warpfold_monoid::{
    Monoid,
    scan::{LANES, Tiling},
    zeroed,
};
use warpfold_simt::{
    global, grid,
    hint::{cold_path, nounroll, pinned},
    shared::Shared,
    thread::{grid_dim_x, sync_threads, thread_idx_x},
    warp::{FULL, shuffle_idx, shuffle_up, sync_warp, warp_vote_ballot},
};

use super::{
    Ledger, Piece, Room, RowLedger, Word, before_in_any_order, by_vectors, draw, get, item, load_whole,
    memory, peek, place, place_of, prefix_tag, publish, put, record_pairs,
    runs::{ask, stage_whole},
    segments::{Bounds, SegmentParams, SegmentRoom},
    stage_vector, staged_vectors, store_whole, unrelated, value_tag, warp_words,
};

/// Tiles that are at work at once, or more: where there are no others, each searches for itself.
const AT_ONCE: u64 = 512;

/// Are an operator's segments scanned so?
pub const fn fits<Op: Monoid>() -> bool {
    Op::ANY_ORDER && !Op::USES_INDEX && Tiling::of::<Op>().strip <= 32 && size_of::<Op::Acc>() <= 8
}

/// Blocks of a launch of so many tiles that search for the others.
pub const fn scouts<Op: Monoid>(tiles: u64) -> u64 {
    if tiles <= AT_ONCE { 0 } else { (tiles + 1).div_ceil(Tiling::of::<Op>().threads as u64) }
}

/// Pairs of words that they need: a record for each tile's value, and one for where each begins and the last ends.
pub const fn flag_pairs(acc_bytes: usize, tiles: u64) -> u64 {
    tiles * record_pairs(acc_bytes) as u64 + tiles + 1
}

/// # Safety
///
/// As for [`segments_forward`](super::segments::segments_forward), but that the grid has [`SegmentParams::rows`] scouts, as many as
/// [`scouts`] says, and a block for each tile, and there are [`flag_pairs`]; `op` combines as segments are walked.
#[inline(always)]
pub(super) unsafe fn scan<
    Op,
    O,
    const V: usize,
    const U: usize,
    const VO: usize,
    const UO: usize,
    const REVERSE: bool,
>(
    params: &SegmentParams<Op>,
    op: &O,
    room: SegmentRoom<Op::Acc>,
) where
    Op: Monoid,
    O: Monoid<Item = Op::Item, Acc = Op::Acc, Output = Op::Output>,
{
    grid::wait_for_previous();
    let tiling = const { Tiling::of::<Op>() };
    let (strip, size) = (tiling.strip, tiling.tile());
    let thread = thread_idx_x();
    let (warp, lane) = (thread / LANES, thread % LANES);
    let SegmentRoom { tile: Room { stage, sums, drawn }, marks, warps: warp_heads, found, .. } = room;
    let SegmentParams { input, output, len, rows: scouts, .. } = *params;
    let tiles = grid_dim_x() - scouts;
    let bounds = Bounds::<REVERSE>::of(params);
    let (exclusive, has_initial, initial) = (params.exclusive != 0, params.has_initial != 0, params.initial);

    // SAFETY: the thread's own word; the launch's own counter and records; the whole block is here. There are as many bounds.
    let (low, high, (number, epoch)) = unsafe {
        marks.write(thread as usize, 0);
        let (low, high) = (bounds.at(0), bounds.at(bounds.count));
        let end = flag_pairs(size_of::<Op::Acc>(), tiles as u64);
        (low, high, draw(params.counter, (params.records, params.capacity), end, drawn))
    };
    let ledger = RowLedger::<Op::Acc> { first: params.records, tiles, acc: PhantomData };
    // Behind the tiles' records: which segment is the first that begins in a tile or later.
    let first_in =
        |tile: u32| RowLedger::<u64> { first: ledger.tile(tiles), tiles, acc: PhantomData }.tile(tile);
    if number < scouts {
        let tile = number * tiling.threads + thread;
        if tile <= tiles {
            // SAFETY: a record of the thread's own.
            unsafe {
                let first = bounds.first_from_alone(tile as u64 * size);
                publish(first_in(tile), first, value_tag(epoch));
            }
        }
        return;
    }
    let tile = number - scouts;
    let begin = tile as u64 * size;
    if low >= high || begin >= high || begin + size <= low {
        return;
    }

    // The items that belong to segments, of the tile and of this warp: of all warps but two, all or none.
    let (earlier, later) = (low < begin, high > begin + size);
    let (low, high) = (low.saturating_sub(begin) as u32, (high - begin).min(size) as u32);
    let within = |position: u32| position.saturating_sub(warp * tiling.warp()).min(tiling.warp());
    let (lo, hi) = (within(low), within(high));
    let start = begin + (warp * tiling.warp()) as u64;
    let whole = lo == 0 && hi == tiling.warp();
    let first = if REVERSE { len.wrapping_sub(start + tiling.warp() as u64) } else { start } as i64;
    let piece = Piece { first, count: hi, stride: 1 };
    let words = const { warp_words::<Op>() };
    let stage = stage.from(warp as usize * words).first(words);
    let line = if REVERSE { LANES - 1 - lane } else { lane };
    let from = input.wrapping_offset(first as isize);
    let at_once = whole && by_vectors(from, 1);
    let mut asked = [[zeroed(); V]; U];
    if at_once {
        // Asked for before it is known where segments begin.
        // SAFETY: aligned vectors of the warp's.
        asked = unsafe { ask::<Op::Item, V, U>(from, lane) };
    }

    // Where they do.
    let mut which = warp;
    while which < 2 {
        nounroll();
        // SAFETY: the whole warp is here; a record of the launch's; a slot of the warp's own.
        unsafe {
            let (mut next, mut tag) = (0, 0);
            if scouts > 0 {
                (next, tag) = peek::<u64>(first_in(tile + which));
            }
            if warp_vote_ballot(FULL, tag != value_tag(epoch)) != 0 {
                next = bounds.first_from(begin + which as u64 * size, lane);
            }
            if lane == 0 {
                found.write(which as usize, next);
            }
        }
        which += tiling.warps();
    }
    sync_threads();
    // SAFETY: written before the barrier.
    let (mut j, to) = unsafe { (found.read(0), found.read(1).min(bounds.count)) };
    // Does one begin here?
    let some = j < to;
    j += thread as u64;
    // One at a time: registers are worth more.
    while j < to {
        nounroll();
        // SAFETY: `to` is at most the count. Of an item that one segment begins at, a bit of a word that was written before the barrier.
        unsafe {
            let (at, next) = (bounds.at(j), bounds.at(j + 1));
            if at < next {
                let place = (at - begin) as u32;
                marks.add((place / strip) as usize, 1_u32 << (place % strip));
            }
        }
        j += tiling.threads as u64;
    }
    if some {
        sync_threads();
    }
    // SAFETY: the thread's own word; where others have marks in it, they are written before the barrier. All lanes are here.
    let (heads, lanes) = unsafe {
        let heads = marks.read(thread as usize);
        (heads, warp_vote_ballot(FULL, heads != 0))
    };
    // SAFETY: the warp's own items and strips; all lanes are here.
    unsafe {
        if at_once {
            stage_whole(&asked, strip, lane, stage);
        } else if whole {
            load_whole::<Op::Item, V, U>(input, piece, strip, lane, stage);
        } else {
            cold_path();
            let mut j = lo + lane;
            while j < hi {
                nounroll();
                let m = memory::<REVERSE>(j, strip);
                let item = global::load(from.wrapping_add(m as usize));
                put(stage, place_of::<Op::Item>(m, strip), item);
                j += LANES;
            }
        }
        sync_warp(FULL);
    }

    // The values of its strips since their last flags, scanned.
    let of_lane = |j: u32| j.saturating_sub(lane * strip).min(strip);
    let (mine, behind_mine) = (of_lane(lo), of_lane(hi));
    let there = mine < behind_mine;
    let mut scanned = initial;
    if whole {
        // SAFETY: written before the barrier.
        let vectors = unsafe { staged_vectors::<Op::Item, V, U>(stage, line, strip) };
        scanned = op.lift(item::<_, V, U, REVERSE>(&vectors, 0), 0);
        let mut i = 1;
        if lanes == 0 {
            // Most warps, where segments are long.
            while i < U * V {
                scanned = op.push(scanned, item::<_, V, U, REVERSE>(&vectors, i), 0);
                i += 1;
            }
        } else {
            while i < U * V {
                let item = unrelated(item::<_, V, U, REVERSE>(&vectors, i));
                scanned = if heads >> i & 1 != 0 { op.lift(item, 0) } else { op.push(scanned, item, 0) };
                i += 1;
            }
        }
    } else {
        cold_path();
        let mut i = mine;
        while i < behind_mine {
            nounroll();
            // SAFETY: an item that there is.
            let item = unsafe { get::<Op::Item>(stage, place::<Op::Item, REVERSE>(lane, i, strip)) };
            let anew = i == mine || heads >> i & 1 != 0;
            scanned = if anew { op.lift(item, 0) } else { op.push(scanned, item, 0) };
            i += 1;
        }
    }
    if has_initial && heads != 0 {
        scanned = op.combine(initial, scanned);
    }
    // SAFETY: all lanes are here; slots of the warp's own.
    let open = unsafe {
        let up_to = lanes & u32::MAX >> (LANES - 1 - lane);
        scanned = since_flag(op, scanned, there, lane, up_to, LANES);
        if lo < hi && lane == (hi - 1) / strip {
            sums.write(warp as usize, scanned);
        }
        if lane == 0 {
            warp_heads.write(warp as usize, lanes);
        }
        up_to == 0
    };
    sync_threads();

    // What goes on into the tile, and into each of its warps.
    let befores = sums.from(tiling.warps() as usize);
    if warp == 0 {
        let (lowest, last) = (low / tiling.warp(), (high - 1) / tiling.warp());
        let present = lane >= lowest && lane <= last;
        let at = lane.max(lowest).min(last) as usize;
        // SAFETY: written before the barrier by the warps that have items; all lanes are here.
        unsafe {
            let (total, theirs) = (sums.read(at), warp_heads.read(at));
            let flagged = warp_vote_ballot(FULL, present && theirs != 0);
            let up_to = flagged & u32::MAX >> (LANES - 1 - lane);
            let totals = since_flag(op, total, present, lane, up_to, tiling.warps());
            let value = shuffle_idx(FULL, totals, last);
            let closed = flagged != 0;
            let enters = earlier && marks.read(0) & 1 == 0;
            let tells = later && lane == 0;
            if tells {
                let tag = if closed { prefix_tag(epoch) } else { value_tag(epoch) };
                publish(ledger.tile(tile), value, tag);
            }
            if enters {
                // The tile that the first segment begins in has a flag, and all from there on have been drawn.
                let before = before_in_any_order(op, ledger, tile, lane, epoch);
                if tells && !closed {
                    publish(ledger.tile(tile), op.combine(before, value), prefix_tag(epoch));
                }
                if lane == 0 {
                    befores.write(0, before);
                }
                if present && up_to == 0 {
                    befores.write(lane as usize + 1, op.combine(before, totals));
                }
            }
            if present && up_to != 0 {
                befores.write(lane as usize + 1, totals);
            }
        }
    }
    sync_threads();
    grid::let_next_start();
    if lo >= hi {
        return;
    }

    // What goes on into each strip; from there it goes on alone.
    // SAFETY: all lanes are here; written before the barrier where something goes on.
    let mut running = unsafe {
        let enters = lo == 0 && shuffle_idx(FULL, heads, 0) & 1 == 0;
        let (mut behind, mut before) = (scanned, scanned);
        if enters {
            before = befores.read(warp as usize);
            if open && there {
                behind = op.combine(before, scanned);
            }
        }
        let neighbour = shuffle_up(FULL, behind, 1);
        if lane == 0 { before } else { neighbour }
    };
    // Each bit is looked at anew, rather than kept since.
    let form = Flags { heads: pinned(heads), exclusive };
    let initial = if has_initial { Some(initial) } else { None };
    if whole {
        // SAFETY: the warp's own; all lanes are here. All slots of a vector are written, and a barrier lies between those that have read
        // the items and what is written in their place.
        unsafe {
            let vectors = staged_vectors::<Op::Item, V, U>(stage, line, strip);
            sync_warp(FULL);
            // Once for each: there is less to choose for each item.
            let at = (stage, line, strip);
            match initial {
                None => walk::<O, V, U, VO, UO, REVERSE>(op, form, None, running, &vectors, at),
                Some(_) => walk::<O, V, U, VO, UO, REVERSE>(op, form, initial, running, &vectors, at),
            }
            sync_warp(FULL);
            store_whole::<Op::Output, VO, UO>(output, piece, strip, lane, stage);
        }
    } else {
        cold_path();
        let mut i = mine;
        while i < behind_mine {
            nounroll();
            // Once more: in shared memory, unless another lane's results may lie there by now.
            // SAFETY: an item that there is. Where its result goes to the same place, that is not written yet.
            let item = unsafe {
                if const { size_of::<Op::Item>() == size_of::<Op::Output>() } {
                    get::<Op::Item>(stage, place::<Op::Item, REVERSE>(lane, i, strip))
                } else {
                    global::load(from.wrapping_add(memory::<REVERSE>(lane * strip + i, strip) as usize))
                }
            };
            let (with, result) = form.step(op, initial, running, i, item);
            // SAFETY: the lane's own place; barriers lie between this and the reads of the items.
            unsafe { put(stage, place::<Op::Output, REVERSE>(lane, i, strip), result) };
            running = with;
            i += 1;
        }
        // SAFETY: results that there are, staged before the barrier.
        unsafe {
            sync_warp(FULL);
            let mut j = lo + lane;
            while j < hi {
                nounroll();
                let m = memory::<REVERSE>(j, strip);
                let result = get::<Op::Output>(stage, place_of::<Op::Output>(m, strip));
                global::store(output.wrapping_offset(first as isize).wrapping_add(m as usize), result);
                j += LANES;
            }
        }
    }
}

/// What a strip's results are.
#[derive(Clone, Copy)]
struct Flags {
    /// Its items that begin a segment.
    heads: u32,
    exclusive: bool,
}

impl Flags {
    /// What stands behind item `i`, and its result.
    #[inline(always)]
    fn step<Op: Monoid>(
        self,
        op: &Op,
        initial: Option<Op::Acc>,
        running: Op::Acc,
        i: u32,
        item: Op::Item,
    ) -> (Op::Acc, Op::Output) {
        let begins = self.heads >> i & 1 != 0;
        if let Some(initial) = initial {
            let before = if begins { initial } else { running };
            let with = op.push(before, item, 0);
            return (with, op.finish(if self.exclusive { before } else { with }));
        }
        let with = if begins { op.lift(item, 0) } else { op.push(running, item, 0) };
        let result = if !self.exclusive {
            op.finish(with)
        } else if begins {
            op.finish_empty()
        } else {
            op.finish(running)
        };
        (with, result)
    }
}

/// Stages the results of a strip that is whole.
///
/// # Safety
///
/// The thread's own line, which no other uses without a barrier in between.
#[inline(always)]
unsafe fn walk<
    Op: Monoid,
    const V: usize,
    const U: usize,
    const VO: usize,
    const UO: usize,
    const REVERSE: bool,
>(
    op: &Op,
    form: Flags,
    initial: Option<Op::Acc>,
    mut running: Op::Acc,
    vectors: &[[Op::Item; V]; U],
    (stage, line, strip): (Shared<Word>, u32, u32),
) {
    let mut u = 0;
    while u < UO {
        let mut vector = [MaybeUninit::<Op::Output>::uninit(); VO];
        let mut slot = 0;
        while slot < VO {
            let i = u * VO + slot;
            let item = unrelated(item::<_, V, U, REVERSE>(vectors, i));
            let (with, result) = form.step(op, initial, running, i as u32, item);
            vector[if REVERSE { VO - 1 - slot } else { slot }].write(result);
            running = with;
            slot += 1;
        }
        let at = if REVERSE { UO - 1 - u } else { u };
        // SAFETY: all slots are written; the caller's promise.
        unsafe {
            let vector = core::mem::transmute_copy::<_, [Op::Output; VO]>(&vector);
            stage_vector::<Op::Output, VO>(stage, line, at, strip, vector);
        }
        u += 1;
    }
}

/// Scans what lanes have since their last flags, by distances of 1, 2, 4, ... `up_to` are the lanes up to this one that have flags:
/// from the last of them on values combine.
///
/// # Safety
///
/// All lanes of the warp call, with the same `width`. Those that are there are neighbours, and the first of them has a flag or is the
/// first lane.
#[inline(always)]
unsafe fn since_flag<Op: Monoid>(
    op: &Op,
    mut value: Op::Acc,
    there: bool,
    lane: u32,
    up_to: u32,
    width: u32,
) -> Op::Acc {
    let nearest = LANES - 1 - (up_to | 1).leading_zeros();
    let mut step = 1;
    while step < width {
        // SAFETY: all lanes are here.
        let left = unsafe { shuffle_up(FULL, value, step) };
        if there && lane >= nearest + step {
            value = op.combine(left, value);
        }
        step *= 2;
    }
    value
}
