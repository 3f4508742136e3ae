//! Scans of long rows: blocks that stay, and scan tile after tile.
//!
//! **Tiles are in several states at once.** In a step, between two barriers, the warps of a block write the results of one tile, in
//! whose place they ask for the items of one to come, and fold the items of another, which they asked for a step ago. At the same time two
//! warps that have no items work for the tiles in between: one publishes the value of the tile that was folded a step ago; the other looks
//! back for the one before that, which will be written in the next step, at the values of its group's tiles, and of the groups before.
//! So what a tile waits for was published about a step ago by blocks that keep up, and the warps with items do not stand still meanwhile.
//!
//! **No block waits for a tile that nobody works at.** A block goes through its tiles in the order in which it drew them, and all that it
//! does for a tile waits for lower tiles only: for their values, and in the chain of groups, of which it looks at 32, for that of
//! one of those. Nor does what it does for a lower tile wait for anything that it does for a higher one in the same step: that is why
//! telling a group's value, for which the others of the group must have told theirs, and looking back are two warps' work. (By one warp, in
//! that order, an H200 hung: the chain that others waited for waited for the values of tiles that came after it.) So it need not be
//! known how many blocks run at once.

use core::marker::PhantomData;

use warpfold_monoid::{
    Monoid,
    scan::{GROUP, LANES, Reversed, Tiling},
};
use warpfold_simt::{
    atomic::{self, Gpu, Relaxed},
    grid,
    hint::{nounroll, pinned},
    shared::{Shared, commit_copies, dynamic_shared, wait_copies},
    thread::{grid_dim_x, sync_threads, thread_idx_x},
    warp::{FULL, sync_warp},
};

use super::{
    Form, Part, Place, RowLedger, ScanParams, Word, before_tile, begin, by_vectors, fold_strips, is_word,
    peek_groups, peek_tiles, piece_of, present, publish_group, publish_tile, record, row_pairs, settle,
    shared_ticket, spread_strips, strip_words, sums, tell_warps, ticket, warp_totals, within_group, word_of,
};

/// Tiles that a block has in hand: one in each state. The stage of the one that is written is that of the next to come. A power of two.
pub const DEPTH: u32 = 4;

/// Bytes of dynamic shared memory of a block: its stages.
pub const fn stage_bytes<Op: Monoid>() -> usize {
    let words = DEPTH as usize * item_words::<Op>() + result_words::<Op>();
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
    values::<Op>() * size_of::<Op::Acc>() + DRAWN * size_of::<u64>()
}

/// The most of them, for kernels that ask for more dynamic shared memory than every block has.
pub fn static_bytes(kernel: &str) -> Option<u32> {
    let most = (6 * 256 / LANES + 2) * 256 + 32;
    matches!(kernel, "persistent_forward" | "persistent_reverse").then_some(most)
}

/// Accumulators in shared memory, twice: the warps' values, what stands before each warp and behind the last, and the values scanned.
pub const fn values<Op: Monoid>() -> usize {
    2 * (sums::<Op>() + Tiling::of::<Op>().warps() as usize)
}

/// Numbers that have been drawn, and are not known to all yet.
pub const DRAWN: usize = 2;

/// Threads of a block: a strip for each, a warp that tells others what the tile has, and one that looks back.
pub const fn threads<Op: Monoid>() -> u32 {
    Tiling::of::<Op>().threads + 2 * LANES
}

/// Bytes of shared memory that a multiprocessor of compute capability 9.0 has, and that it takes for each block.
const MULTIPROCESSOR_BYTES: usize = 228 << 10;
const BLOCK_BYTES: usize = 1 << 10;

/// Blocks that a multiprocessor is to hold.
pub const fn resident<Op: Monoid>() -> u32 {
    let room = MULTIPROCESSOR_BYTES / (stage_bytes::<Op>() + own_bytes::<Op>() + BLOCK_BYTES);
    match room {
        0 | 1 => 1,
        2 => 2,
        3 => 3,
        _ => 4,
    }
}

/// The kernels' launch bounds.
pub const fn launch_bounds<Op: Monoid>() -> u32 {
    threads::<Op>() | resident::<Op>() << 16
}

/// Are there such kernels for an operator? On an H200 they take 0.72 to 0.94 times as long as a block a tile.
pub const fn worth<Op: Monoid>() -> bool {
    let fits = stage_bytes::<Op>() + own_bytes::<Op>() + BLOCK_BYTES <= MULTIPROCESSOR_BYTES / 2;
    fits && is_word::<Op::Item>() && size_of::<Op::Acc>() <= 16
}

/// What shared memory a block has beside its stages, which are dynamic.
#[derive(Clone, Copy, Debug)]
pub struct PersistentRoom<A> {
    /// [`values`].
    pub sums: Shared<A>,
    /// [`DRAWN`]: what has been drawn from the counter.
    pub drawn: Shared<u64>,
}

/// Scans rows of several tiles from left to right, in a grid of fewer blocks than there are tiles.
///
/// `V` items are a vector and a strip has `U` vectors of them; `VO` and `UO` say the same of results.
///
/// # Safety
///
/// The whole block of [`threads`] calls, with [`stage_bytes`] of dynamic shared memory; operators that are not [`worth`] it have no such
/// kernel, and nothing is done. The items are readable and the results writable; unless they are the same memory, item for item, they do
/// not overlap. `counter` and `records` belong to this launch alone. `room` is not in use.
#[inline(always)]
pub unsafe fn persistent_forward<
    Op: Monoid,
    const V: usize,
    const U: usize,
    const VO: usize,
    const UO: usize,
>(
    params: &ScanParams<Op>,
    room: PersistentRoom<Op::Acc>,
) {
    if const { !worth::<Op>() } {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { scan::<Op, Op, V, U, VO, UO, false>(params, &params.op, room) }
}

/// The same from right to left: each result is of the items from its own on to the end, in the order in which they stand.
///
/// # Safety
///
/// As for [`persistent_forward`].
#[inline(always)]
pub unsafe fn persistent_reverse<
    Op: Monoid,
    const V: usize,
    const U: usize,
    const VO: usize,
    const UO: usize,
>(
    params: &ScanParams<Op>,
    room: PersistentRoom<Op::Acc>,
) {
    if const { !worth::<Op>() } {
        return;
    }
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
/// As for [`persistent_forward`]; `op` combines as the row is walked.
#[inline(always)]
unsafe fn scan<Op, O, const V: usize, const U: usize, const VO: usize, const UO: usize, const REVERSE: bool>(
    params: &ScanParams<Op>,
    op: &O,
    room: PersistentRoom<Op::Acc>,
) where
    Op: Monoid,
    O: Monoid<Item = Op::Item, Acc = Op::Acc, Output = Op::Output>,
{
    let tiling = const { Tiling::of::<Op>() };
    let warps = tiling.warps();
    let (total, tiles, blocks) = (params.total, params.tiles, grid_dim_x());
    // SAFETY: the launch has asked for them.
    let all = unsafe { dynamic_shared::<Word>(const { stage_bytes::<Op>() / size_of::<Word>() }) };
    // Two of each: one that is written, and one that is read.
    let sums = |which: u32| room.sums.from((which * warps) as usize);
    let befores = |which: u32| room.sums.from((2 * warps + which * (warps + 1)) as usize);
    let totals = |which: u32| room.sums.from((4 * warps + 2 + which * warps) as usize);
    grid::wait_for_previous();

    let end = (total / tiles) as u64 * row_pairs(size_of::<Op::Acc>(), tiles);
    // All blocks draw until there is no tile left.
    let last = total + blocks - 1;
    let draw = || {
        // SAFETY: the launch's own counter and records.
        unsafe { ticket(params.counter, (params.records, params.capacity), end, last) }
    };
    let form = Form {
        exclusive: params.exclusive != 0,
        has_initial: params.has_initial != 0,
        initial: params.initial,
        ends_early: true,
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
        if slot.is_there() && warp < warps {
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

    // SAFETY: the whole block is here.
    let (number, epoch) = unsafe { shared_ticket(room.drawn, draw) };
    if number >= total {
        return;
    }
    // The tile that is folded next, the one after that, and those before.
    let mut now = Slot::of(number, total, tiles);
    let mut before = [Slot::NONE; 3];
    ask(now, 0);
    sync_threads();
    // SAFETY: the whole block is here, and has read what was drawn first.
    let (number, _) = unsafe { shared_ticket(room.drawn, draw) };
    let mut coming = Slot::of(number, total, tiles);
    // Of a strip, the values of the tiles before.
    let nothing = op.identity();
    let mut folded = [nothing; 4];
    // 1, which `ptxas` does not know: it would add for all lanes of a warp at once, and wait for the sum there.
    let one = tiles.min(1) as u64;
    let ledger = |slot: Slot| {
        let groups = tiles.div_ceil(GROUP);
        let first = record::<Op::Acc>(params.records, slot.row as u64 * (tiles + groups) as u64);
        RowLedger::<Op::Acc> { first, tiles, acc: PhantomData }
    };
    let at = |slot: Slot, lane: u32| {
        let tile = slot.tile;
        Place { tile, last: tile + 1 == tiles, whole: true, lane, epoch, ahead: true }
    };
    let mut step = 0;
    loop {
        nounroll();
        let (warp, lane) = place();
        let odd = step % 2;
        let [first, to_look, to_write] = before;
        let draws = coming.is_there();
        let mut drawn = 0;
        if warp < warps {
            if to_write.is_there() {
                let items = stage((step + 1) % DEPTH, warp);
                let results = match const { result_words::<Op>() } {
                    0 => items,
                    words => {
                        let first = (DEPTH * warps) as usize * const { item_words::<Op>() };
                        all.from(first + warp as usize * words).first(words)
                    }
                };
                // SAFETY: the caller's promise; written a barrier ago; the warp's own stages.
                unsafe {
                    spread_strips::<Op, O, V, U, VO, UO, REVERSE>(
                        op,
                        form,
                        &part(to_write),
                        (items, results),
                        befores(1 - odd),
                        folded[3],
                        (warp, lane),
                    );
                }
            }
            // SAFETY: all lanes of the warp are here: they have read their results from the stage.
            unsafe { sync_warp(FULL) };
            ask(coming, (step + 1) % DEPTH);
            wait_copies::<1>();
            if now.is_there() {
                // SAFETY: the caller's promise; the warp's own stage, for whose items it has waited.
                folded[0] = unsafe {
                    let stage = stage(step % DEPTH, warp);
                    fold_strips::<Op, O, V, U, REVERSE, true>(op, &part(now), stage, sums(odd), (warp, lane))
                };
            }
        } else if warp == warps {
            if first.is_there() {
                let (ledger, at) = (ledger(first), at(first, lane));
                let present = present(tiling, first.tile, params.n);
                // SAFETY: written before the last barrier; all lanes are here; the tile's own record; slots that were read a
                // barrier ago. The tiles before have been drawn.
                unsafe {
                    let (scanned, value) = warp_totals(op, sums(1 - odd), lane, warps, present);
                    publish_tile(ledger, at, value);
                    if lane < warps {
                        totals(odd).write(lane as usize, scanned);
                    }
                    if draws && lane == 0 {
                        drawn = atomic::fetch_add(params.counter, one, Relaxed, Gpu);
                    }
                    // The value of a group is told a step before its last tile looks back.
                    if at.closes() {
                        let (inclusive, _) = within_group(op, ledger, at, value, peek_tiles(ledger, at));
                        publish_group(ledger, at, inclusive);
                    }
                }
            } else if draws && lane == 0 {
                // SAFETY: the launch's own counter.
                drawn = unsafe { atomic::fetch_add(params.counter, one, Relaxed, Gpu) };
            }
            if draws && lane == 0 {
                // SAFETY: the launch's own counter and records; one thread, a slot that was read a barrier ago, the other one for what
                // is drawn first.
                unsafe {
                    settle(drawn, params.counter, (params.records, params.capacity), end, last);
                    room.drawn.write(1 - odd as usize, drawn);
                }
            }
        } else if to_look.is_there() {
            let (ledger, at) = (ledger(to_look), at(to_look, lane));
            let present = present(tiling, to_look.tile, params.n);
            // SAFETY: all lanes are here, and the tiles before have been drawn; totals were written before the last barrier, and the slots
            // for what stands before the warps were read a barrier ago.
            unsafe {
                // Both looks before either is waited for.
                let (tiles, groups) = (peek_tiles(ledger, at), peek_groups(ledger, at));
                let value = totals(1 - odd).read(present as usize - 1);
                let totals = totals(1 - odd).read(lane.min(present - 1) as usize);
                let within = within_group(op, ledger, at, value, tiles);
                let initial = if form.has_initial { Some(form.initial) } else { None };
                let (before, behind) = before_tile(op, ledger, at, initial, within, groups);
                let begun = to_look.tile > 0 || form.has_initial;
                tell_warps(op, befores(odd), begun, (before, totals, behind), lane, warps, present);
            }
        }
        sync_threads();
        let mut after = Slot::NONE;
        if draws {
            // SAFETY: written before the barrier.
            after = Slot::of(unsafe { room.drawn.read(1 - odd as usize) as u32 }, total, tiles);
        }
        before = [now, first, to_look];
        folded = [nothing, folded[0], folded[1], folded[2]];
        (now, coming) = (coming, after);
        if !now.is_there() && !before[0].is_there() && !before[1].is_there() {
            if !to_look.is_there() {
                return;
            }
            // What is left is to be written.
            grid::let_next_start();
        }
        step += 1;
    }
}

/// The calling thread's warp and lane. Pinned, so that the loop over tiles keeps none of the many places that depend on them.
#[inline(always)]
fn place() -> (u32, u32) {
    let thread = pinned(thread_idx_x());
    (thread / LANES, thread % LANES)
}
