//! Scans of long rows: blocks that stay, and scan tile after tile.
//!
//! **Tiles are in several states at once.** In a step a block folds a tile, whose items it asked for two steps ago, and publishes its
//! value; takes in the values of the other tiles of the group of the one before that; and looks further back for the one before
//! that, scans it and writes its results, in whose place the items of a tile to come will lie. So what a tile waits for
//! was published at the latest a step ago by blocks that keep up, and none stands still for the slowest of those beside it.
//! Where a multiprocessor has no room for that, or no block has more than one tile, a step does all of that to one tile.
//!
//! **No block waits for a tile that nobody works at.** A block goes through its tiles in the order in which it drew them, and waits for
//! lower ones only. The lowest tile of all that are not told yet belongs to a block which has told all that it drew before that.
//! So it need not be known how many blocks run at once.

use core::marker::PhantomData;

use warpfold_monoid::{
    Monoid,
    scan::{GROUP, LANES, Reversed, Tiling},
};
use warpfold_simt::{
    grid,
    hint::{nounroll, pinned},
    shared::{Shared, commit_copies, dynamic_shared, wait_copies},
    thread::{block_idx_x, grid_dim_x, sync_threads, thread_idx_x},
    warp::{FULL, shuffle_idx, sync_warp},
};

use super::{
    Form, Part, Place, RowLedger, ScanParams, Word, before_tile, begin, by_vectors, fold_strips, launch_bounds,
    peek_groups, piece_of, present, publish_tile, record, row_pairs, shared_ticket, spread_strips, strip_words,
    sums, tell_warps, ticket, warp_totals, within_group, word_of,
};

/// Tiles that a block has in hand where it has several: one that is on its way, and one in each state. A power of two.
pub const DEPTH: u32 = 4;

/// Bytes of dynamic shared memory of a block that has so many tiles in hand.
pub const fn stage_bytes<Op: Monoid>(stages: u32) -> usize {
    let words = stages as usize * item_words::<Op>() + result_words::<Op>();
    words * Tiling::of::<Op>().warps() as usize * size_of::<Word>()
}

/// Words of a warp's items.
const fn item_words<Op: Monoid>() -> usize {
    strip_words::<Op, Op::Item>()
}

/// Words of a warp's results, if they do not find room in place of the items.
const fn result_words<Op: Monoid>() -> usize {
    let words = strip_words::<Op, Op::Output>();
    if words > item_words::<Op>() { words } else { 0 }
}

/// Bytes of shared memory that a block has beside its [stages](stage_bytes).
pub const fn own_bytes<Op: Monoid>() -> usize {
    sums::<Op>() * size_of::<Op::Acc>() + 2 * size_of::<u64>()
}

/// The most of them.
pub const STATIC_BYTES: u32 = (2 * 256 / LANES + 1) * 256 + 32;

/// Bytes of shared memory that a multiprocessor of compute capability 9.0 has, and that it takes for each block.
const MULTIPROCESSOR_BYTES: usize = 228 << 10;
const BLOCK_BYTES: usize = 1 << 10;

/// Blocks that a multiprocessor is to hold.
pub const fn resident<Op: Monoid>() -> u32 {
    let room = MULTIPROCESSOR_BYTES / (stage_bytes::<Op>(DEPTH) + own_bytes::<Op>() + BLOCK_BYTES);
    match room {
        0 | 1 => 1,
        2 => 2,
        _ => 3,
    }
}

/// The kernels' launch bounds.
pub const fn tile_bounds<Op: Monoid>() -> u32 {
    let bounds = launch_bounds::<Op>();
    if bounds >> 16 == 0 { bounds } else { bounds & 0xffff | resident::<Op>() << 16 }
}

/// What shared memory a block has beside its stages, which are dynamic.
#[derive(Clone, Copy, Debug)]
pub struct TileRoom<A> {
    /// [`sums`].
    pub sums: Shared<A>,
    /// One: what has been drawn from the counter.
    pub drawn: Shared<u64>,
}

/// Scans rows from left to right, a tile to a block at a time.
///
/// `V` items are a vector and a strip has `U` vectors of them; `VO` and `UO` say the same of results.
///
/// # Safety
///
/// The whole block of [`Tiling::threads`] calls, with [`stage_bytes`] of dynamic shared memory. The items are readable and the results
/// writable; unless they are the same memory, item for item, they do not overlap. `counter` and `records` belong to this
/// launch alone. `room` is not in use.
#[inline(always)]
pub unsafe fn forward<Op: Monoid, const V: usize, const U: usize, const VO: usize, const UO: usize>(
    params: &ScanParams<Op>,
    room: TileRoom<Op::Acc>,
) {
    // SAFETY: the caller's promise.
    unsafe { scan::<Op, Op, V, U, VO, UO, false>(params, &params.op, room) }
}

/// The same from right to left: each result is of the items from its own on to the end, in the order in which they stand.
///
/// # Safety
///
/// As for [`forward`].
#[inline(always)]
pub unsafe fn reverse<Op: Monoid, const V: usize, const U: usize, const VO: usize, const UO: usize>(
    params: &ScanParams<Op>,
    room: TileRoom<Op::Acc>,
) {
    // SAFETY: the caller's promise.
    unsafe { scan::<Op, Reversed<Op>, V, U, VO, UO, true>(params, &Reversed(params.op), room) }
}

/// A tile of a row, or none.
#[derive(Clone, Copy)]
struct Slot {
    row: u32,
    tile: u32,
}

impl Slot {
    const NONE: Slot = Slot { row: 0, tile: u32::MAX };

    /// Tile number so many of all rows of that many tiles, if there is one.
    #[inline(always)]
    fn of(number: u32, total: u32, tiles: u32) -> Slot {
        if number >= total {
            Slot::NONE
        } else if total == tiles {
            Slot { row: 0, tile: number }
        } else {
            Slot { row: number / tiles, tile: number % tiles }
        }
    }

    #[inline(always)]
    fn is_there(self) -> bool {
        self.tile != u32::MAX
    }
}

/// # Safety
///
/// As for [`forward`]; `op` combines as the row is walked.
#[inline(always)]
unsafe fn scan<Op, O, const V: usize, const U: usize, const VO: usize, const UO: usize, const REVERSE: bool>(
    params: &ScanParams<Op>,
    op: &O,
    room: TileRoom<Op::Acc>,
) where
    Op: Monoid,
    O: Monoid<Item = Op::Item, Acc = Op::Acc, Output = Op::Output>,
{
    let tiling = const { Tiling::of::<Op>() };
    let (warps, words) = (tiling.warps(), const { item_words::<Op>() * Tiling::of::<Op>().warps() as usize });
    let (total, tiles, blocks) = (params.total, params.tiles, grid_dim_x());
    let chained = tiles > 1;
    let deep = params.stages > 1;
    // SAFETY: the launch has asked for them.
    let all = unsafe {
        dynamic_shared::<Word>(
            params.stages as usize * words + const { result_words::<Op>() } * warps as usize,
        )
    };
    let befores = room.sums.from(warps as usize);
    if !chained {
        grid::let_next_start();
    }
    grid::wait_for_previous();

    let end = (total / tiles) as u64 * row_pairs(size_of::<Op::Acc>(), tiles);
    // All blocks draw until there is no tile left, unless each has one.
    let more = total > blocks;
    let last = if more { total + blocks - 1 } else { total - 1 };
    let draw = || {
        // SAFETY: the launch's own counter and records.
        unsafe { ticket(params.counter, (params.records, params.capacity), end, last) }
    };
    let form = Form {
        exclusive: params.exclusive != 0,
        has_initial: params.has_initial != 0,
        initial: params.initial,
        ends_early: chained,
    };
    let part = |slot: Slot| {
        let begin = begin(&params.rows, slot.row);
        Part {
            items: params.input.wrapping_offset(begin),
            results: params.output.wrapping_offset(begin),
            n: params.n,
            stride: params.rows.stride,
            tile: slot.tile,
            tiles,
            epoch: 0,
        }
    };
    // A warp's part of a stage.
    let stage = |which: u32, warp: u32| {
        let words = const { item_words::<Op>() };
        all.from((which * warps + warp) as usize * words).first(words)
    };
    let ask = |slot: Slot, which: u32| {
        let (warp, lane) = place();
        if slot.is_there() {
            let (_, piece) = piece_of::<_, _, REVERSE>(tiling, &part(slot), warp);
            let first = part(slot).items.wrapping_offset(piece.first as isize);
            if piece.count == tiling.warp() && by_vectors(first, piece.stride) {
                let mut u = 0;
                while u < U as u32 {
                    let w = u * LANES + lane;
                    // SAFETY: an aligned vector of the warp's, and its word of a stage that is not in use.
                    unsafe {
                        let from = first.cast::<Word>().wrapping_add(w as usize);
                        stage(which, warp).copy_async(word_of::<Op::Item>(w, tiling.strip), from);
                    }
                    u += 1;
                }
            }
        }
        commit_copies();
    };

    let (mut number, mut epoch) = (block_idx_x(), 0);
    if chained {
        // SAFETY: the whole block is here.
        (number, epoch) = unsafe { shared_ticket(room.drawn, draw) };
        if number >= total {
            return;
        }
    }
    let mut now = Slot::of(number, total, tiles);
    ask(now, 0);
    // The tile after that; and those before, which have been folded, and whose group is known.
    let (mut coming, mut folded, mut grouped) = (Slot::NONE, Slot::NONE, Slot::NONE);
    if deep {
        if more {
            number += blocks;
            if chained {
                sync_threads();
                // SAFETY: the whole block is here, and has read what was drawn first.
                (number, _) = unsafe { shared_ticket(room.drawn, draw) };
            }
            coming = Slot::of(number, total, tiles);
        }
        ask(coming, 1);
    }
    // Of the tile and those before: a strip's value, and in the first warp that of each warp, both scanned.
    let nothing = op.identity();
    let mut scanned = [nothing; 3];
    let mut totals = [nothing; 3];
    let mut within = (nothing, nothing);
    let mut which = 0;
    loop {
        nounroll();
        if deep {
            wait_copies::<1>();
        } else {
            wait_copies::<0>();
        }
        let (warp, lane) = place();
        if now.is_there() {
            // SAFETY: the caller's promise; the warp's own stage, for whose items it has waited.
            scanned[0] = unsafe {
                let stage = stage(which, warp);
                fold_strips::<Op, O, V, U, REVERSE, true>(op, &part(now), stage, room.sums, (warp, lane))
            };
        }
        sync_threads();
        // Unless it is known that none is left.
        let draws = more && if deep { coming.is_there() } else { now.is_there() };
        if draws && chained && thread_idx_x() == tiling.threads - 1 {
            // SAFETY: one thread; all have read what was drawn before, a barrier ago.
            unsafe { room.drawn.write(0, draw()) };
        }
        let (to_group, to_write) = if deep { (folded, grouped) } else { (now, now) };
        if warp == 0 {
            let ledger = |slot: Slot| {
                let groups = tiles.div_ceil(GROUP);
                let first = record::<Op::Acc>(params.records, slot.row as u64 * (tiles + groups) as u64);
                RowLedger::<Op::Acc> { first, tiles, acc: PhantomData }
            };
            let at = |slot: Slot| {
                let tile = slot.tile;
                Place { tile, last: tile + 1 == tiles, whole: true, lane, epoch, ahead: true }
            };
            if now.is_there() {
                // SAFETY: written before the barrier; all lanes are here; the tile's own record.
                unsafe {
                    let present = present(tiling, now.tile, params.n);
                    let value;
                    (totals[0], value) = warp_totals(op, room.sums, lane, warps, present);
                    if chained {
                        publish_tile(ledger(now), at(now), value);
                    }
                }
            }
            let mut groups = (nothing, 0);
            if chained && to_write.is_there() {
                // SAFETY: all tiles before have been drawn.
                groups = unsafe { peek_groups(op, ledger(to_write), at(to_write)) };
            }
            let before = within;
            if chained && to_group.is_there() {
                // SAFETY: all lanes are here, and the tiles before have been drawn.
                within = unsafe {
                    let present = present(tiling, to_group.tile, params.n);
                    let totals = if deep { totals[1] } else { totals[0] };
                    let value = shuffle_idx(FULL, totals, present - 1);
                    within_group(op, ledger(to_group), at(to_group), value)
                };
            }
            if to_write.is_there() {
                let totals = if deep { totals[2] } else { totals[0] };
                // SAFETY: as above; the slots are not in use.
                unsafe {
                    let present = present(tiling, to_write.tile, params.n);
                    let (before, behind) = if chained {
                        let initial = if form.has_initial { Some(form.initial) } else { None };
                        let within = if deep { before } else { within };
                        before_tile(op, ledger(to_write), at(to_write), initial, within, groups)
                    } else {
                        let value = shuffle_idx(FULL, totals, present - 1);
                        let initial = form.initial;
                        if form.has_initial { (initial, op.combine(initial, value)) } else { (value, value) }
                    };
                    let begun = to_write.tile > 0 || form.has_initial;
                    tell_warps(op, befores, begun, (before, totals, behind), lane, warps, present);
                }
            }
        }
        sync_threads();
        let mut after = Slot::NONE;
        if draws {
            number = if chained {
                // SAFETY: written before the barrier.
                unsafe { room.drawn.read(0) as u32 }
            } else {
                number + blocks
            };
            after = Slot::of(number, total, tiles);
        }
        let left = after.is_there() || deep && (coming.is_there() || now.is_there() || folded.is_there());
        if chained && !left {
            grid::let_next_start();
        }
        let (warp, lane) = place();
        if to_write.is_there() {
            let scanned = if deep { scanned[2] } else { scanned[0] };
            let items = stage(if deep { (which + 2) % DEPTH } else { 0 }, warp);
            let results = match const { result_words::<Op>() } {
                0 => items,
                words => all.from(params.stages as usize * const { item_words::<Op>() } * warps as usize)
                    .from(warp as usize * words)
                    .first(words),
            };
            // SAFETY: the caller's promise; written before the barrier; the warp's own stages.
            unsafe {
                spread_strips::<Op, O, V, U, VO, UO, REVERSE>(
                    op,
                    form,
                    &part(to_write),
                    (items, results),
                    befores,
                    scanned,
                    (warp, lane),
                );
            }
        }
        if !left {
            return;
        }
        // SAFETY: all lanes of the warp are here: they have read their results from the stage.
        unsafe { sync_warp(FULL) };
        if deep {
            ask(after, (which + 2) % DEPTH);
            which = (which + 1) % DEPTH;
            (grouped, folded, now, coming) = (folded, now, coming, after);
            scanned = [nothing, scanned[0], scanned[1]];
            totals = [nothing, totals[0], totals[1]];
        } else {
            ask(after, 0);
            now = after;
        }
    }
}

/// The calling thread's warp and lane. Pinned, so that the loop over tiles keeps none of the many places that depend on them.
#[inline(always)]
fn place() -> (u32, u32) {
    let thread = pinned(thread_idx_x());
    (thread / LANES, thread % LANES)
}
