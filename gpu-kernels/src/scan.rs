//! Scans: every prefix of an array, or of each row of many, in one pass over the data.
//!
//! The order is that of [`warpfold_monoid::scan`], whichever block runs when. A block draws the number of its tile, so that
//! all tiles before it are at work already, and none waits for one that is not. It folds its strips, publishes the tile's
//! value, and looks back (decoupled look-back: D. Merrill and M. Garland, Single-pass Parallel Prefix Scan with Decoupled
//! Look-back, NVIDIA NVR-2016-002, 2016): at the values of its group's tiles, which it scans, and at the 32 groups before, of
//! which the nearest that knows all before it begins a chain that goes on, left to right, with the values of those between.
//! Blocks find different mixes of values; the chain that they make of them is the same.
//!
//! **What is published validates itself.** A record is one or more words of 64 bits, half of each a part of the value,
//! half the launch's epoch and what kind of value it is. A reader takes a record whose words all say the same; so words may
//! arrive in any order, and no fence is needed. Epoch and numbers of tiles come from one counter in device memory, which
//! the block that draws the last number sets for the next launch: nothing is reset from the host, in replays of a graph
//! either. Epochs come again after 2^31 - 1 launches. Until then each launch has wiped one more pair of words behind its own records,
//! so that none so old is left.

use core::{marker::PhantomData, mem::MaybeUninit, ptr};

use warpfold_monoid::{
    Monoid, Plain,
    scan::{GROUP, LANES, Reversed, Tiling},
    tree::{VECTOR_BYTES, vector_len},
};
use warpfold_simt::{
    atomic::{self, Gpu, Relaxed},
    global::{self, hint::NoAllocate},
    grid,
    hint::{cold_path, mul_hi, nounroll, opaque},
    shared::Shared,
    thread::{block_idx_x, grid_dim_x, sync_threads, thread_idx_x},
    warp::{FULL, shuffle_down, shuffle_idx, shuffle_up, sync_warp, warp_vote_ballot},
};

pub mod columns;
mod copy;
pub mod flags;
pub mod persistent;
pub mod segments;

pub use crate::segments::tile::Word;

pub mod runs;

pub use persistent::{PersistentRoom, persistent_forward, persistent_reverse};

/// Where the rows of an array lie, in items: row `k` begins at `k / inner * outer_stride + k % inner * inner_stride`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// From one item of a row to the next.
    pub stride: i64,
    /// From one row to the next, `inner` times.
    pub inner_stride: i64,
    /// From one set of `inner` rows to the next.
    pub outer_stride: i64,
    /// Rows in such a set, at least 1.
    pub inner: u64,
}

// SAFETY: repr(C), 8-byte fields only.
unsafe impl Plain for Rows {}

/// The parameters of the kernels. The host fills it, the kernel receives it by value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ScanParams<Op: Monoid> {
    /// The first item of the first row; aligned to the item.
    pub input: *const Op::Item,
    /// Where its result goes. May be the input.
    pub output: *mut Op::Output,
    /// Items of a row, at least 1.
    pub n: u64,
    /// Where the items lie, and the results.
    pub rows: Rows,
    /// The epoch's number in the upper half, the next tile's in the lower, which is 0 between launches; unused where a row
    /// is one tile.
    pub counter: *mut u64,
    /// [`row_pairs`] for each row.
    pub records: *mut [u64; 2],
    /// Pairs of words that there is room for, used or not.
    pub capacity: u64,
    /// Tiles of a row.
    pub tiles: u32,
    /// Tiles of all rows.
    pub total: u32,
    /// 1 if a result leaves out its own item.
    pub exclusive: u32,
    /// 1 if `initial` stands before the first item of each row.
    pub has_initial: u32,
    /// The start value.
    pub initial: Op::Acc,
    /// The operator.
    pub op: Op,
}

/// Pairs of words in a record of values of so many bytes.
pub const fn record_pairs(acc_bytes: usize) -> usize {
    let pairs = acc_bytes.div_ceil(8);
    if pairs == 0 { 1 } else { pairs }
}

/// Pairs of words that a row of so many tiles, more than one, needs: a record for each tile, and one for each group.
pub const fn row_pairs(acc_bytes: usize, tiles: u32) -> u64 {
    (tiles as u64 + tiles.div_ceil(GROUP) as u64) * record_pairs(acc_bytes) as u64
}

/// The last epoch before the first.
const EPOCHS: u64 = (1 << 31) - 1;

/// Items that a thread asks for at once where strips are not whole.
const IN_FLIGHT: usize = 4;

/// Items from one strip to the next in shared memory: an odd number of vectors where they are vectors, so that the threads
/// of a warp find theirs in different banks.
const fn pitch<T>(strip: usize) -> usize {
    let size = size_of::<T>();
    if is_word::<T>() { ((strip * size / VECTOR_BYTES) | 1) * (VECTOR_BYTES / size) } else { strip }
}

/// Are some items a vector?
const fn is_word<T>() -> bool {
    vector_len(size_of::<T>()) * size_of::<T>() == VECTOR_BYTES
}

/// Words of shared memory in which the block's strips of items, and later of results, lie.
pub const fn stage_words<Op: Monoid>() -> usize {
    Tiling::of::<Op>().warps() as usize * warp_words::<Op>()
}

const fn warp_words<Op: Monoid>() -> usize {
    let (items, results) = (strip_words::<Op, Op::Item>(), strip_words::<Op, Op::Output>());
    if items > results { items } else { results }
}

/// Words of a warp's strips of items, or of results.
const fn strip_words<Op: Monoid, T>() -> usize {
    let strip = Tiling::of::<Op>().strip as usize;
    (pitch::<T>(strip) * size_of::<T>() * LANES as usize).div_ceil(size_of::<Word>())
}

/// Accumulators in shared memory: the warps' values, and what stands before each warp and behind the last.
pub const fn sums<Op: Monoid>() -> usize {
    2 * Tiling::of::<Op>().warps() as usize + 1
}

/// Vectors in a strip of items of so many bytes, as the kernels' `U` and `UO`.
pub const fn vectors<Op: Monoid>(bytes: usize) -> usize {
    Tiling::of::<Op>().strip as usize / vector_len(bytes)
}

/// The kernels' launch bounds: a block's threads, and how many blocks a multiprocessor is to hold where accumulators leave
/// registers for it.
pub const fn launch_bounds<Op: Monoid>() -> u32 {
    let Tiling { threads, strip } = Tiling::of::<Op>();
    let small = strip as usize * size_of::<Op::Output>() <= 64;
    let blocks = match size_of::<Op::Acc>() {
        0..=4 if small => 5,
        // Two items of a strip a vector: less is held at a time.
        5..=8 if size_of::<Op::Item>() == 8 && !Op::ANY_ORDER => 5,
        0..=8 => 4,
        9..=16 => 3,
        _ => 0,
    };
    threads | blocks << 16
}

/// What shared memory a block has.
#[derive(Clone, Copy, Debug)]
pub struct Room<A> {
    /// [`stage_words`].
    pub stage: Shared<Word>,
    /// [`sums`].
    pub sums: Shared<A>,
    /// One: what has been drawn from the counter.
    pub drawn: Shared<u64>,
}

/// Scans rows from left to right, a tile to a block.
///
/// `V` items are a vector and a strip has `U` vectors of them; `VO` and `UO` say the same of results.
///
/// # Safety
///
/// The whole block of [`Tiling::threads`] calls, and the grid has `tiles` blocks for each row. The items are readable and
/// the results writable; unless they are the same memory, item for item, they do not overlap. `counter` and `records`
/// belong to this launch alone. `room` is not in use.
#[inline(always)]
pub unsafe fn forward<Op: Monoid, const V: usize, const U: usize, const VO: usize, const UO: usize>(
    params: &ScanParams<Op>,
    room: Room<Op::Acc>,
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
    room: Room<Op::Acc>,
) {
    // SAFETY: the caller's promise.
    unsafe { scan::<Op, Reversed<Op>, V, U, VO, UO, true>(params, &Reversed(params.op), room) }
}

/// A warp's part of a row.
#[derive(Clone, Copy)]
struct Piece {
    /// From the row's first item to that of the lowest strip: of a reverse scan, it may lie before the row.
    first: i64,
    /// Items that there are: the lowest, or in a reverse scan the highest.
    count: u32,
    /// From one item of the row to the next.
    stride: i64,
}

/// # Safety
///
/// As for [`forward`]; `op` combines as the row is walked.
#[inline(always)]
unsafe fn scan<Op, O, const V: usize, const U: usize, const VO: usize, const UO: usize, const REVERSE: bool>(
    params: &ScanParams<Op>,
    op: &O,
    room: Room<Op::Acc>,
) where
    Op: Monoid,
    O: Monoid<Item = Op::Item, Acc = Op::Acc, Output = Op::Output>,
{
    let chained = params.tiles > 1;
    if !chained {
        grid::let_next_start();
    }
    grid::wait_for_previous();

    let (mut number, mut epoch) = (block_idx_x(), 0);
    if chained {
        let rows = (grid_dim_x() / params.tiles) as u64;
        let end = rows * row_pairs(size_of::<Op::Acc>(), params.tiles);
        // SAFETY: the launch's own counter and records; the whole block is here.
        (number, epoch) = unsafe { draw(params.counter, (params.records, params.capacity), end, room.drawn) };
    }
    let one_row = grid_dim_x() == params.tiles;
    let (row, tile) = if one_row { (0, number) } else { (number / params.tiles, number % params.tiles) };
    let begin = begin(&params.rows, row);
    let part = Part {
        items: params.input.wrapping_offset(begin),
        results: params.output.wrapping_offset(begin),
        n: params.n,
        stride: params.rows.stride,
        tile,
        tiles: params.tiles,
        epoch,
    };
    // A row has a record for each tile, and behind them one for each group.
    let groups = params.tiles.div_ceil(GROUP);
    let first = record::<Op::Acc>(params.records, row as u64 * (params.tiles + groups) as u64);
    let ledger = RowLedger::<Op::Acc> { first, tiles: params.tiles, acc: PhantomData };
    let form = Form {
        exclusive: params.exclusive != 0,
        has_initial: params.has_initial != 0,
        initial: params.initial,
        ends_early: chained,
    };
    // SAFETY: the caller's promise, and the number drawn.
    unsafe { scan_tile::<Op, O, _, V, U, VO, UO, REVERSE>(op, form, part, ledger, room) }
}

/// What the whole block knows of a ticket that its first thread draws: a tile's number, all lower ones having been drawn before, and
/// the launch's epoch.
///
/// # Safety
///
/// The whole block calls; `drawn` is not in use.
#[inline(always)]
unsafe fn shared_ticket(drawn: Shared<u64>, draw: impl Fn() -> u64) -> (u32, u32) {
    if thread_idx_x() == 0 {
        // SAFETY: one thread, a slot that is not in use.
        unsafe { drawn.write(0, draw()) };
    }
    sync_threads();
    // SAFETY: written before the barrier.
    let ticket = unsafe { drawn.read(0) };
    (ticket as u32, (ticket >> 32) as u32 + 1)
}

/// Draws a number, in the lower half, and the launch's epoch less 1. Who draws number `last` sets the counter for the next launch,
/// and wipes one more pair of those from `end` on.
///
/// # Safety
///
/// The counter and the pairs, so many, are the launch's own, which uses none from `end` on, and of which nobody draws more.
#[inline(always)]
unsafe fn ticket(counter: *mut u64, records: (*mut [u64; 2], u64), end: u64, last: u32) -> u64 {
    // SAFETY: the launch's own counter and records.
    unsafe {
        let ticket = atomic::fetch_add(counter, 1_u64, Relaxed, Gpu);
        settle(ticket, counter, records, end, last);
        ticket
    }
}

/// What is done for the next launch when a number has been drawn, if it is the `last`.
///
/// # Safety
///
/// As for [`ticket`].
#[inline(always)]
unsafe fn settle(
    ticket: u64,
    counter: *mut u64,
    (records, capacity): (*mut [u64; 2], u64),
    end: u64,
    last: u32,
) {
    // Before any barrier: where a condition comes again behind one, LLVM 22 threads the jump through it and leaves two
    // barriers, at which the threads of one warp wait for each other for ever.
    if ticket as u32 == last {
        // Nobody draws after this, and nobody reads a record behind its own.
        let epoch = (ticket >> 32) + 1;
        // In 32 bits: division of 64 takes a subroutine, and its registers.
        let stale = if epoch < capacity { epoch } else { (epoch as u32 % capacity as u32) as u64 };
        // SAFETY: the launch's own counter and records.
        unsafe {
            global::store_relaxed_gpu(counter, if epoch < EPOCHS { epoch << 32 } else { 0 });
            if stale >= end {
                global::store_pair_relaxed_gpu(records.wrapping_add(stale as usize), [0; 2]);
            }
        }
    }
}

/// Draws a block's number, all lower ones having been drawn before, and the launch's epoch. The block that draws the last
/// one sets the counter for the next launch, and wipes one more pair of those from `end` on.
///
/// # Safety
///
/// The whole block calls, once; the counter and the pairs, so many, are the launch's own, and it uses none from `end` on; `drawn`
/// is not in use.
#[inline(always)]
pub(crate) unsafe fn draw(
    counter: *mut u64,
    records: (*mut [u64; 2], u64),
    end: u64,
    drawn: Shared<u64>,
) -> (u32, u32) {
    // SAFETY: the caller's promise.
    unsafe { shared_ticket(drawn, || ticket(counter, records, end, grid_dim_x() - 1)) }
}

/// A tile of a row.
#[derive(Clone, Copy)]
struct Part<T, R> {
    /// The row's first item, and its result.
    items: *const T,
    results: *mut R,
    /// Items of the row.
    n: u64,
    /// From one to the next.
    stride: i64,
    /// Which of its tiles, and how many there are.
    tile: u32,
    tiles: u32,
    /// The launch's, where there are several.
    epoch: u32,
}

/// What a result is, and what stands before the first item.
#[derive(Clone, Copy)]
struct Form<A> {
    exclusive: bool,
    has_initial: bool,
    initial: A,
    /// May the next launch start once what stands before the tile is known?
    ends_early: bool,
}

/// Where the records of a row's tiles are, and those of its groups of tiles.
trait Ledger: Copy {
    fn tile(&self, tile: u32) -> *mut [u64; 2];
    fn group(&self, group: u32) -> *mut [u64; 2];
}

/// Those of a row by themselves.
#[derive(Clone, Copy)]
struct RowLedger<A> {
    first: *mut [u64; 2],
    tiles: u32,
    acc: PhantomData<A>,
}

impl<A: Plain> Ledger for RowLedger<A> {
    #[inline(always)]
    fn tile(&self, tile: u32) -> *mut [u64; 2] {
        record::<A>(self.first, tile as u64)
    }
    #[inline(always)]
    fn group(&self, group: u32) -> *mut [u64; 2] {
        record::<A>(self.first, (self.tiles + group) as u64)
    }
}

/// A block scans a tile.
///
/// # Safety
///
/// The whole block calls, with the same arguments; `op` combines as the row is walked. The tile's items are readable and its
/// results writable; unless they are the same memory, item for item, they do not overlap. The tiles before it of its row
/// have been drawn before it, and the ledger's records are theirs. `room`, but for `drawn`, is not in use.
#[inline(always)]
unsafe fn scan_tile<
    Op,
    O,
    L,
    const V: usize,
    const U: usize,
    const VO: usize,
    const UO: usize,
    const REVERSE: bool,
>(
    op: &O,
    form: Form<Op::Acc>,
    part: Part<Op::Item, Op::Output>,
    ledger: L,
    room: Room<Op::Acc>,
) where
    Op: Monoid,
    O: Monoid<Item = Op::Item, Acc = Op::Acc, Output = Op::Output>,
    L: Ledger,
{
    let tiling = const { Tiling::of::<Op>() };
    let thread = thread_idx_x();
    let (warp, lane) = (thread / LANES, thread % LANES);
    let Room { stage, sums, .. } = room;
    let Part { n, tile, tiles, epoch, .. } = part;
    let Form { has_initial, initial, ends_early, .. } = form;
    let chained = tiles > 1;
    let words = const { warp_words::<Op>() };
    let stage = stage.from(warp as usize * words).first(words);
    // SAFETY: the caller's promise; the warp's own part of the stage.
    let scanned = unsafe { fold_strips::<Op, O, V, U, REVERSE, false>(op, &part, stage, sums, (warp, lane)) };
    sync_threads();

    // What stands before the tile, before each of its warps, and behind the last.
    let warps = tiling.warps();
    let befores = sums.from(warps as usize);
    if warp == 0 {
        let present = present(tiling, tile, n);
        // SAFETY: written before the barrier by the warps that have items; all lanes are here.
        let (totals, value) = unsafe { warp_totals(op, sums, lane, warps, present) };
        let (before, behind) = if chained {
            let at = Place { tile, last: tile + 1 == tiles, whole: true, lane, epoch, ahead: true };
            let initial = if has_initial { Some(initial) } else { None };
            // SAFETY: the whole warp is here, and the tiles before this one of its row have been drawn before it.
            unsafe { look_back(op, ledger, at, initial, value) }
        } else if has_initial {
            (initial, op.combine(initial, value))
        } else {
            (initial, value)
        };
        // SAFETY: slots that nothing else uses.
        unsafe {
            tell_warps(op, befores, tile > 0 || has_initial, (before, totals, behind), lane, warps, present);
        }
    }
    sync_threads();
    if ends_early {
        grid::let_next_start();
    }
    // SAFETY: the caller's promise; written before the barrier.
    unsafe {
        spread_strips::<Op, O, V, U, VO, UO, REVERSE>(
            op,
            form,
            &part,
            (stage, stage),
            befores,
            scanned,
            (warp, lane),
        );
    }
}

/// Warps of a tile that have items.
#[inline(always)]
fn present(tiling: Tiling, tile: u32, n: u64) -> u32 {
    let left = n - tile as u64 * tiling.tile();
    if left < tiling.tile() { (left as u32).div_ceil(tiling.warp()) } else { tiling.warps() }
}

/// The values of a tile's warps, scanned, a lane for each; and that of the tile.
///
/// # Safety
///
/// A whole warp calls; the first `present` have been written, and a barrier lies since.
#[inline(always)]
unsafe fn warp_totals<O: Monoid>(
    op: &O,
    sums: Shared<O::Acc>,
    lane: u32,
    warps: u32,
    present: u32,
) -> (O::Acc, O::Acc) {
    // SAFETY: the caller's promise.
    unsafe {
        let total = sums.read(lane.min(present - 1) as usize);
        let totals = neighbours(op, total, lane, warps, present);
        (totals, shuffle_idx(FULL, totals, present - 1))
    }
}

/// Writes what stands before each of a tile's warps, and behind the last, of what stands before and behind the tile.
///
/// # Safety
///
/// A whole warp calls; `befores` has a slot more than there are warps, which nothing else uses.
#[inline(always)]
unsafe fn tell_warps<O: Monoid>(
    op: &O,
    befores: Shared<O::Acc>,
    begun: bool,
    (before, totals, behind): (O::Acc, O::Acc, O::Acc),
    lane: u32,
    warps: u32,
    present: u32,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if lane < present {
            let warp_behind = if lane == warps - 1 {
                behind
            } else if begun {
                op.combine(before, totals)
            } else {
                totals
            };
            befores.write(lane as usize + 1, warp_behind);
        }
        if lane == 0 && begun {
            befores.write(0, before);
        }
    }
}

/// A warp's items of a tile.
#[inline(always)]
fn piece_of<T, R, const REVERSE: bool>(tiling: Tiling, part: &Part<T, R>, warp: u32) -> (u64, Piece) {
    let Part { n, stride, tile, .. } = *part;
    let start = tile as u64 * tiling.tile() + (warp * tiling.warp()) as u64;
    let count = if start < n { (n - start).min(tiling.warp() as u64) as u32 } else { 0 };
    let first = if REVERSE { n.wrapping_sub(start + tiling.warp() as u64) } else { start } as i64;
    (start, Piece { first, count, stride })
}

/// A warp folds its strips of a tile, scans their values, and writes the last one's. If it has `ASKED` for them, they have arrived.
///
/// # Safety
///
/// All lanes call; the warp's part of the stage is not in use, but for what it has asked for, nor is its slot.
#[inline(always)]
unsafe fn fold_strips<Op, O, const V: usize, const U: usize, const REVERSE: bool, const ASKED: bool>(
    op: &O,
    part: &Part<Op::Item, Op::Output>,
    stage: Shared<Word>,
    sums: Shared<Op::Acc>,
    (warp, lane): (u32, u32),
) -> Op::Acc
where
    Op: Monoid,
    O: Monoid<Item = Op::Item, Acc = Op::Acc, Output = Op::Output>,
{
    let tiling = const { Tiling::of::<Op>() };
    let strip = tiling.strip;
    let items = part.items;
    let (start, piece) = piece_of::<_, _, REVERSE>(tiling, part, warp);
    let count = piece.count;
    let line = if REVERSE { LANES - 1 - lane } else { lane };
    let index = |i: usize| {
        let position = start + (lane * strip) as u64 + i as u64;
        if REVERSE { part.n - 1 - position } else { position }
    };
    let mut scanned = op.identity();
    if count == tiling.warp() {
        // SAFETY: the warp's own items and strips; all lanes are here.
        let vectors = unsafe {
            if !ASKED {
                load_whole::<Op::Item, V, U>(items, piece, strip, lane, stage);
            } else if !by_vectors(items.wrapping_offset((piece.first * piece.stride) as isize), piece.stride)
            {
                load_items(items, piece, strip, lane, stage);
            }
            sync_warp(FULL);
            staged_vectors::<Op::Item, V, U>(stage, line, strip)
        };
        scanned = op.lift(item::<_, V, U, REVERSE>(&vectors, 0), index(0));
        let mut i = 1;
        while i < U * V {
            scanned = op.push(scanned, item::<_, V, U, REVERSE>(&vectors, i), index(i));
            i += 1;
        }
        // SAFETY: all lanes are here, and all have a value.
        scanned = unsafe { neighbours(op, scanned, lane, LANES, LANES) };
    } else if count > 0 {
        cold_path();
        // SAFETY: as above.
        unsafe {
            load_some::<Op::Item, REVERSE>(items, piece, strip, lane, stage);
            sync_warp(FULL);
        }
        let mine = count.saturating_sub(lane * strip).min(strip);
        let mut i = 0;
        while i < mine {
            nounroll();
            // SAFETY: an item that there is.
            let item = unsafe { get::<Op::Item>(stage, place::<Op::Item, REVERSE>(lane, i, strip)) };
            let index = index(i as usize);
            scanned = if i == 0 { op.lift(item, index) } else { op.push(scanned, item, index) };
            i += 1;
        }
        // SAFETY: all lanes are here; the first ones have a value.
        scanned = unsafe { neighbours(op, scanned, lane, LANES, count.div_ceil(strip)) };
    }
    if count > 0 && lane == count.div_ceil(strip) - 1 {
        // SAFETY: one warp, one slot.
        unsafe { sums.write(warp as usize, scanned) };
    }
    scanned
}

/// A warp writes its results, of its items, which it has folded, and of what stands before each warp.
///
/// # Safety
///
/// All lanes call, with what [`fold_strips`] gave them; the items are in their stage still; that of the results, the warp's own, is
/// the same or not in use; `befores` has been written, and a barrier lies since.
#[inline(always)]
unsafe fn spread_strips<
    Op,
    O,
    const V: usize,
    const U: usize,
    const VO: usize,
    const UO: usize,
    const REVERSE: bool,
>(
    op: &O,
    form: Form<Op::Acc>,
    part: &Part<Op::Item, Op::Output>,
    (stage, out): (Shared<Word>, Shared<Word>),
    befores: Shared<Op::Acc>,
    scanned: Op::Acc,
    (warp, lane): (u32, u32),
) where
    Op: Monoid,
    O: Monoid<Item = Op::Item, Acc = Op::Acc, Output = Op::Output>,
{
    let tiling = const { Tiling::of::<Op>() };
    let strip = tiling.strip;
    let Form { exclusive, has_initial, .. } = form;
    let Part { items, results, .. } = *part;
    let (start, piece) = piece_of::<_, _, REVERSE>(tiling, part, warp);
    let count = piece.count;
    if count == 0 {
        return;
    }
    let whole = count == tiling.warp();
    let line = if REVERSE { LANES - 1 - lane } else { lane };
    let index = |i: usize| {
        let position = start + (lane * strip) as u64 + i as u64;
        if REVERSE { part.n - 1 - position } else { position }
    };
    let mine = count.saturating_sub(lane * strip).min(strip);

    // What stands before each strip; from there it goes on alone.
    let there = part.tile > 0 || has_initial || warp > 0;
    let (mut behind, mut before) = (scanned, scanned);
    if there {
        // SAFETY: written before the barrier.
        before = unsafe { befores.read(warp as usize) };
        if mine > 0 {
            behind = op.combine(before, scanned);
        }
    }
    // SAFETY: all lanes are here.
    let neighbour = unsafe { shuffle_up(FULL, behind, 1) };
    let mut running = if lane == 0 { before } else { neighbour };
    if whole && lane == LANES - 1 {
        // SAFETY: written before the barrier.
        behind = unsafe { befores.read(warp as usize + 1) };
    }
    let begun = there || lane > 0;
    let step = |running: Op::Acc, i: usize, item: Op::Item| {
        let with = if i + 1 == strip as usize {
            behind
        } else if i > 0 || begun {
            op.push(running, item, index(i))
        } else {
            op.lift(item, index(i))
        };
        let result = if !exclusive {
            op.finish(with)
        } else if i > 0 || begun {
            op.finish(running)
        } else {
            op.finish_empty()
        };
        (with, result)
    };
    if whole {
        // Once more: in the meantime registers are worth more than shared memory's time.
        // SAFETY: the warp's own; all lanes are here.
        let vectors = unsafe {
            let vectors = staged_vectors::<Op::Item, V, U>(stage, line, strip);
            sync_warp(FULL);
            vectors
        };
        let mut u = 0;
        while u < UO {
            let mut vector = [MaybeUninit::<Op::Output>::uninit(); VO];
            let mut slot = 0;
            while slot < VO {
                let i = u * VO + slot;
                let (with, result) = step(running, i, item::<_, V, U, REVERSE>(&vectors, i));
                vector[if REVERSE { VO - 1 - slot } else { slot }].write(result);
                running = with;
                slot += 1;
            }
            let at = if REVERSE { UO - 1 - u } else { u };
            // SAFETY: all slots are written. All lanes have their items, and a barrier lies between.
            unsafe {
                let vector = core::mem::transmute_copy::<_, [Op::Output; VO]>(&vector);
                stage_vector::<Op::Output, VO>(out, line, at, strip, vector);
            }
            u += 1;
        }
        // SAFETY: the warp's own results; all lanes are here.
        unsafe {
            sync_warp(FULL);
            store_whole::<Op::Output, VO, UO>(results, piece, strip, lane, out);
        }
    } else {
        cold_path();
        let mut i = 0;
        while i < mine {
            nounroll();
            // Once more: in shared memory, unless another lane's results may lie there by now.
            let item = if const { size_of::<Op::Item>() == size_of::<Op::Output>() } {
                // SAFETY: an item that there is, in the place of its result.
                unsafe { get::<Op::Item>(stage, place::<Op::Item, REVERSE>(lane, i, strip)) }
            } else {
                let at = piece.first + memory::<REVERSE>(lane * strip + i, strip) as i64;
                // SAFETY: an item that there is. Where its result goes to the same place, that is not written yet.
                unsafe { global::load(items.wrapping_offset((at * piece.stride) as isize)) }
            };
            let (with, result) = step(running, i as usize, item);
            // SAFETY: the lane's own place; barriers lie between this and the reads of the items.
            unsafe { put(out, place::<Op::Output, REVERSE>(lane, i, strip), result) };
            running = with;
            i += 1;
        }
        // SAFETY: as above.
        unsafe {
            sync_warp(FULL);
            store_some::<Op::Output, REVERSE>(results, piece, strip, lane, out);
        }
    }
}

/// From where the rows begin to where row `row` does.
#[inline(always)]
fn begin(rows: &Rows, row: u32) -> isize {
    let (outer, inner) = match rows.inner {
        1 => (row, 0),
        many if many > row as u64 => (0, row),
        many => (row / many as u32, row % many as u32),
    };
    (outer as i64 * rows.outer_stride + inner as i64 * rows.inner_stride) as isize
}

/// Item `i` of a strip in the order of the scan.
#[inline(always)]
fn item<T: Plain, const V: usize, const U: usize, const REVERSE: bool>(vectors: &[[T; V]; U], i: usize) -> T {
    let i = if REVERSE { U * V - 1 - i } else { i };
    vectors[i / V][i % V]
}

/// An item, of which the compiler does not know that it has seen it: what has been computed from it, such as its
/// conversion to a wider type, is computed again rather than kept.
#[inline(always)]
fn unrelated<T: Copy>(item: T) -> T {
    if !cfg!(target_arch = "nvptx64") || size_of::<T>() != 4 {
        return item;
    }
    // SAFETY: 4 bytes either way; what is not there is any bits of a register, as `load_if` has it on the device.
    unsafe { core::mem::transmute_copy(&opaque(core::mem::transmute_copy(&item))) }
}

/// What [`quotient`] multiplies by in place of dividing by `divisor`, at least 2.
#[inline(always)]
fn inverse(divisor: u32) -> u32 {
    (u32::MAX / divisor).wrapping_add(1)
}

/// The quotient of a number and of what [`inverse`] was told, of a product less than 2^32.
///
/// With the upper half of a product of 64 bits in its place, kernels that CUDA 13.0's `ptxas` had assembled stopped at an illegal
/// instruction on an H200.
#[inline(always)]
fn quotient(number: u32, inverse: u32) -> u32 {
    mul_hi(number, inverse)
}

/// Scans the values of the first `present` of `width` lanes, by distances of 1, 2, 4, ...
///
/// # Safety
///
/// All lanes of the warp call, with the same `width` and `present`.
#[inline(always)]
unsafe fn neighbours<Op: Monoid>(
    op: &Op,
    mut value: Op::Acc,
    lane: u32,
    width: u32,
    present: u32,
) -> Op::Acc {
    let mut step = 1;
    while step < width {
        // SAFETY: all lanes are here.
        let left = unsafe { shuffle_up(FULL, value, step) };
        if lane >= step && lane < present {
            value = op.combine(left, value);
        }
        step *= 2;
    }
    value
}

/// A tile among others.
#[derive(Clone, Copy)]
struct Place {
    /// Its number in its row.
    tile: u32,
    /// Does none follow?
    last: bool,
    /// Is the value that of the whole tile, which those that follow wait for?
    whole: bool,
    lane: u32,
    epoch: u32,
    /// Are the groups asked before the group's own tiles have answered? That takes registers.
    ahead: bool,
}

impl Place {
    /// Does any tile wait for what this one has?
    #[inline(always)]
    fn tells(&self) -> bool {
        self.whole && !self.last
    }
    /// Is it the last of its group, and others follow?
    #[inline(always)]
    fn closes(&self) -> bool {
        self.tile % GROUP == GROUP - 1 && self.tells()
    }
}

/// What stands before a tile of that value, if anything does, and behind it; tells those that come after.
///
/// # Safety
///
/// The whole warp calls; the tiles before this one of its row have been drawn before it.
#[inline(always)]
unsafe fn look_back<Op: Monoid, L: Ledger>(
    op: &Op,
    ledger: L,
    at: Place,
    initial: Option<Op::Acc>,
    value: Op::Acc,
) -> (Op::Acc, Op::Acc) {
    if const { Op::ANY_ORDER } {
        // SAFETY: the caller's promise.
        return unsafe { look_back_in_any_order(op, ledger, at, initial, value) };
    }
    // SAFETY: the caller's promise.
    unsafe {
        publish_tile(ledger, at, value);
        let groups = if at.ahead && at.lane < at.tile / GROUP { peek_groups(ledger, at) } else { (value, 0) };
        let within = within_group(op, ledger, at, value, (value, 0));
        publish_group(ledger, at, within.0);
        before_tile(op, ledger, at, initial, within, groups)
    }
}

/// A tile tells its value, unless it is the last of its group, which tells that of the group.
///
/// # Safety
///
/// As for [`look_back`].
#[inline(always)]
unsafe fn publish_tile<A: Plain, L: Ledger>(ledger: L, at: Place, value: A) {
    if at.tile % GROUP < GROUP - 1 && at.tells() && at.lane == 0 {
        // SAFETY: the tile's own record.
        unsafe { publish(ledger.tile(at.tile), value, value_tag(at.epoch)) };
    }
}

/// The first look at the records of the other tiles of a tile's group: a lane for each, those that have none at the tile's own.
///
/// # Safety
///
/// As for [`look_back`].
#[inline(always)]
unsafe fn peek_tiles<A: Plain, L: Ledger>(ledger: L, at: Place) -> (A, u32) {
    let (group, place) = (at.tile / GROUP, at.tile % GROUP);
    // SAFETY: a record of the launch's.
    unsafe { peek(ledger.tile(group * GROUP + at.lane.min(place))) }
}

/// The first look at the records of the groups before, or, if there are none, at that of the tile's own.
///
/// # Safety
///
/// As for [`look_back`].
#[inline(always)]
unsafe fn peek_groups<A: Plain, L: Ledger>(ledger: L, at: Place) -> (A, u32) {
    let group = at.tile / GROUP;
    // SAFETY: a record of the launch's.
    let (value, tag) = unsafe { peek(back(|group| ledger.group(group), group.max(1), at.lane)) };
    // Lanes beyond the first group have seen its record too, if not at the same time.
    (value, if at.lane < group { tag } else { 0 })
}

/// The values of the group up to and with a tile, and before it, of which the first look has been had.
///
/// # Safety
///
/// As for [`look_back`].
#[inline(always)]
unsafe fn within_group<Op: Monoid, L: Ledger>(
    op: &Op,
    ledger: L,
    at: Place,
    value: Op::Acc,
    (mut found, mut tag): (Op::Acc, u32),
) -> (Op::Acc, Op::Acc) {
    let Place { tile, lane, epoch, .. } = at;
    let (group, place) = (tile / GROUP, tile % GROUP);
    // A lane for each.
    let mut scanned = value;
    if place > 0 {
        let theirs = ledger.tile(group * GROUP + lane.min(place));
        let others = lane < place;
        loop {
            // SAFETY: all lanes are here.
            if unsafe { warp_vote_ballot(FULL, others && tag != value_tag(epoch)) } == 0 {
                break;
            }
            if others && tag != value_tag(epoch) {
                // SAFETY: a record of the launch's.
                (found, tag) = unsafe { peek::<Op::Acc>(theirs) };
            }
        }
        if others {
            scanned = found;
        }
        // SAFETY: all lanes are here.
        scanned = unsafe { neighbours(op, scanned, lane, LANES, place + 1) };
    }
    // SAFETY: all lanes are here.
    let (inclusive, exclusive) =
        unsafe { (shuffle_idx(FULL, scanned, place), shuffle_idx(FULL, scanned, place.saturating_sub(1))) };
    (inclusive, exclusive)
}

/// The last tile of a group tells the group's value, unless it is the first group, which tells what stands behind it.
///
/// # Safety
///
/// As for [`look_back`].
#[inline(always)]
unsafe fn publish_group<A: Plain, L: Ledger>(ledger: L, at: Place, value: A) {
    let group = at.tile / GROUP;
    if at.closes() && group > 0 && at.lane == 0 {
        // SAFETY: the group's record, which its last tile alone writes.
        unsafe { publish(ledger.group(group), value, value_tag(at.epoch)) };
    }
}

/// What stands before a tile, if anything does, and behind it, of [what its group has](within_group) and the [first
/// look](peek_groups) at those before; the last tile of a group tells what stands behind the group.
///
/// # Safety
///
/// As for [`look_back`].
#[inline(always)]
unsafe fn before_tile<Op: Monoid, L: Ledger>(
    op: &Op,
    ledger: L,
    at: Place,
    initial: Option<Op::Acc>,
    (inclusive, exclusive): (Op::Acc, Op::Acc),
    groups: (Op::Acc, u32),
) -> (Op::Acc, Op::Acc) {
    let Place { tile, lane, epoch, .. } = at;
    let (group, place) = (tile / GROUP, tile % GROUP);
    // The chain of the groups before.
    let before_group = if group > 0 {
        // SAFETY: the whole warp is here, and all tiles of these groups have been drawn.
        Some(unsafe { chain(op, ledger, group, lane, epoch, groups) })
    } else {
        initial
    };
    let (before, behind) = match before_group {
        Some(before) => {
            let behind = op.combine(before, inclusive);
            (if place > 0 { op.combine(before, exclusive) } else { before }, behind)
        }
        None => (exclusive, inclusive),
    };
    if at.closes() && lane == 0 {
        // SAFETY: as above.
        unsafe { publish(ledger.group(group), behind, prefix_tag(epoch)) };
    }
    (before, behind)
}

/// The same where any order gives the same bits, or the user has given them up: groups do not matter, and a tile takes
/// whatever its predecessors have published, each its own value or that of all up to it.
///
/// # Safety
///
/// As for [`look_back`].
#[inline(always)]
unsafe fn look_back_in_any_order<Op: Monoid, L: Ledger>(
    op: &Op,
    ledger: L,
    at: Place,
    initial: Option<Op::Acc>,
    value: Op::Acc,
) -> (Op::Acc, Op::Acc) {
    let Place { tile, last, whole, lane, epoch, .. } = at;
    let tells = whole && !last && lane == 0;
    if tile == 0 {
        let behind = initial.map_or(value, |initial| op.combine(initial, value));
        if tells {
            // SAFETY: the tile's own record.
            unsafe { publish(ledger.tile(tile), behind, prefix_tag(epoch)) };
        }
        return (initial.unwrap_or(value), behind);
    }
    if tells {
        // SAFETY: the tile's own record.
        unsafe { publish(ledger.tile(tile), value, value_tag(epoch)) };
    }
    // SAFETY: the caller's promise.
    let before = unsafe { before_in_any_order(op, ledger, tile, lane, epoch) };
    let behind = op.combine(before, value);
    if tells {
        // SAFETY: the tile's own record.
        unsafe { publish(ledger.tile(tile), behind, prefix_tag(epoch)) };
    }
    (before, behind)
}

/// What stands before a tile that is not the first: of the nearest tile that knows what stands behind it, and all between.
///
/// # Safety
///
/// As for [`look_back`]; there is such a tile, and all from there on say what they have.
#[inline(always)]
unsafe fn before_in_any_order<Op: Monoid, L: Ledger>(
    op: &Op,
    ledger: L,
    tile: u32,
    lane: u32,
    epoch: u32,
) -> Op::Acc {
    // Tiles that are still to be taken in; the first one's record holds all up to it.
    let (mut left, mut before) = (tile, op.identity());
    loop {
        // Lanes that find the first one's record again stand behind that which finds it first, which holds all.
        // SAFETY: records of the launch's.
        let (mut window, tag) = unsafe { peek::<Op::Acc>(back(|tile| ledger.tile(tile), left, lane)) };
        let is_prefix = tag == prefix_tag(epoch);
        // SAFETY: all lanes are here.
        let (known, prefixes) = unsafe {
            (warp_vote_ballot(FULL, is_prefix || tag == value_tag(epoch)), warp_vote_ballot(FULL, is_prefix))
        };
        let taken = (prefixes.trailing_zeros() + 1).min(LANES);
        if !known & (u32::MAX >> (LANES - taken)) != 0 {
            continue;
        }
        // Higher lanes stand further left.
        let mut step = 1;
        while step < LANES {
            // SAFETY: all lanes are here.
            let further = unsafe { shuffle_down(FULL, window, step) };
            if lane + step < taken {
                window = op.combine(further, window);
            }
            step *= 2;
        }
        // SAFETY: all lanes are here.
        window = unsafe { shuffle_idx(FULL, window, 0) };
        before = if left < tile { op.combine(window, before) } else { window };
        if prefixes != 0 {
            return before;
        }
        left -= LANES;
    }
}

/// The record of the nearest before `end`, for lane 0, of the one before that for lane 1, and so on; the first one's where there is
/// none.
#[inline(always)]
fn back(record: impl Fn(u32) -> *mut [u64; 2], end: u32, lane: u32) -> *mut [u64; 2] {
    record((end - 1).saturating_sub(lane))
}

/// The chain of all before a group, of whose records the first look has been had.
///
/// # Safety
///
/// The whole warp calls; there are groups before it, all of whose tiles have been drawn.
#[inline(always)]
unsafe fn chain<Op: Monoid, L: Ledger>(
    op: &Op,
    ledger: L,
    group: u32,
    lane: u32,
    epoch: u32,
    (mut value, mut tag): (Op::Acc, u32),
) -> Op::Acc {
    let theirs = back(|group| ledger.group(group), group, lane);
    loop {
        // SAFETY: all lanes are here.
        let (known, begins) = unsafe {
            (
                warp_vote_ballot(FULL, tag == value_tag(epoch) || tag == prefix_tag(epoch)),
                warp_vote_ballot(FULL, tag == prefix_tag(epoch)),
            )
        };
        // The nearest that knows all before it, and whether all between have said what they have.
        let nearest = begins.trailing_zeros();
        let missing = if begins == 0 { !known } else { !known & ((1 << nearest) - 1) };
        if begins == 0 || missing != 0 {
            // Those that have not told, and where none knows all before it, the furthest, which will be the first to.
            let furthest = group.min(LANES) - 1;
            if lane <= furthest && (missing >> lane & 1 != 0 || begins == 0 && lane == furthest) {
                // SAFETY: a record of the launch's.
                (value, tag) = unsafe { peek(theirs) };
            }
            continue;
        }
        // SAFETY: all lanes are here.
        let mut before = unsafe { shuffle_idx(FULL, value, nearest) };
        let mut left = nearest;
        while left > 0 {
            nounroll();
            left -= 1;
            // SAFETY: all lanes are here.
            before = op.combine(before, unsafe { shuffle_idx(FULL, value, left) });
        }
        return before;
    }
}

/// What a record says that holds the value of its tile alone.
#[inline(always)]
pub(crate) fn value_tag(epoch: u32) -> u32 {
    epoch << 1
}

/// What a record says that holds the value of all tiles up to its own.
#[inline(always)]
pub(crate) fn prefix_tag(epoch: u32) -> u32 {
    epoch << 1 | 1
}

/// The record of tile `number`.
#[inline(always)]
fn record<A>(records: *mut [u64; 2], number: u64) -> *mut [u64; 2] {
    records.wrapping_add(number as usize * const { record_pairs(size_of::<A>()) })
}

/// Four bytes of a value, or what is left of it.
///
/// # Safety
///
/// `at` is less than the value's size.
#[inline(always)]
unsafe fn word<A: Plain>(value: &A, at: usize) -> u32 {
    let from = ptr::from_ref(value).cast::<u8>().wrapping_add(at);
    // SAFETY: within the value, all of whose bytes are initialised.
    unsafe {
        match size_of::<A>() - at {
            1 => *from as u32,
            2 => from.cast::<u16>().read_unaligned() as u32,
            3 => from.cast::<u16>().read_unaligned() as u32 | (*from.wrapping_add(2) as u32) << 16,
            _ => from.cast::<u32>().read_unaligned(),
        }
    }
}

/// Puts them back.
///
/// # Safety
///
/// `at` is less than the value's size.
#[inline(always)]
unsafe fn set_word<A: Plain>(value: &mut MaybeUninit<A>, at: usize, word: u32) {
    let to = value.as_mut_ptr().cast::<u8>().wrapping_add(at);
    // SAFETY: within the value.
    unsafe {
        match size_of::<A>() - at {
            1 => *to = word as u8,
            2 => to.cast::<u16>().write_unaligned(word as u16),
            3 => {
                to.cast::<u16>().write_unaligned(word as u16);
                *to.wrapping_add(2) = (word >> 16) as u8;
            }
            _ => to.cast::<u32>().write_unaligned(word),
        }
    }
}

/// Writes a record.
///
/// # Safety
///
/// A record of values of that type, which no one else writes.
#[inline(always)]
unsafe fn publish<A: Plain>(record: *mut [u64; 2], value: A, tag: u32) {
    let size = const { size_of::<A>() };
    let half = |at: usize| {
        // SAFETY: within the value.
        let word = if at < size { unsafe { word(&value, at) } } else { 0 };
        (tag as u64) << 32 | word as u64
    };
    let mut pair = |j: usize| {
        // SAFETY: within the record.
        unsafe { global::store_pair_relaxed_gpu(record.wrapping_add(j), [half(8 * j), half(8 * j + 4)]) }
    };
    if size == 0 {
        pair(0);
    }
    each_pair::<A>(&mut pair);
}

/// Reads a record: the value and what it says, 0 unless all its words say the same.
///
/// # Safety
///
/// A record of values of that type.
#[inline(always)]
unsafe fn peek<A: Plain>(record: *const [u64; 2]) -> (A, u32) {
    let size = const { size_of::<A>() };
    let mut value = MaybeUninit::<A>::uninit();
    // SAFETY: within the record.
    let first = unsafe { global::load_pair_relaxed_gpu(record) };
    let tag = (first[0] >> 32) as u32;
    let mut same = true;
    let mut pair = |j: usize| {
        let [a, b] = match j {
            0 => first,
            // SAFETY: within the record.
            _ => unsafe { global::load_pair_relaxed_gpu(record.wrapping_add(j)) },
        };
        same &= (a >> 32) as u32 == tag && (b >> 32) as u32 == tag;
        // SAFETY: within the value.
        unsafe {
            set_word(&mut value, 8 * j, a as u32);
            if 8 * j + 4 < size {
                set_word(&mut value, 8 * j + 4, b as u32);
            }
        }
    };
    each_pair::<A>(&mut pair);
    // SAFETY: all bytes are written; plain data.
    (unsafe { value.assume_init() }, if same { tag } else { 0 })
}

/// Calls `body` for each pair of words of a value. The first are spelled out rather than looped over: with constant offsets
/// the value dissolves into registers, whatever the unroller thinks of the loop.
#[inline(always)]
fn each_pair<A>(body: &mut impl FnMut(usize)) {
    let size = const { size_of::<A>() };
    macro_rules! pairs {
        ($($j:literal)*) => {$(
            if size > 8 * $j {
                body($j);
            }
        )*};
    }
    pairs!(0 1 2 3 4 5 6 7);
    let mut j = 8;
    while 8 * j < size {
        body(j);
        j += 1;
    }
}

/// Are values accessed by words of 4 bytes, because their type has a lesser alignment than their places do?
///
/// Not for speed alone: the low byte of an `f32` in a register, stored by itself, comes out of CUDA 13.0's `ptxas` as the
/// number converted to an integer.
const fn by_words<T>() -> bool {
    size_of::<T>().is_multiple_of(4) && align_of::<T>() < 4
}

/// The value at a place of shared memory.
///
/// # Safety
///
/// It has been written as that type, and a barrier lies since, if another thread did.
#[inline(always)]
unsafe fn get<T: Plain>(stage: Shared<Word>, place: usize) -> T {
    // SAFETY: the caller's promise; plain data, aligned to 16 bytes at most.
    unsafe {
        if !by_words::<T>() {
            return stage.cast::<T>().read(place);
        }
        let (words, size) = (stage.cast::<u32>(), size_of::<T>());
        let mut value = MaybeUninit::<T>::uninit();
        let mut at = 0;
        while at < size {
            set_word(&mut value, at, words.read((place * size + at) / 4));
            at += 4;
        }
        value.assume_init()
    }
}

/// Writes it.
///
/// # Safety
///
/// A place that no other thread uses without a barrier in between.
#[inline(always)]
unsafe fn put<T: Plain>(stage: Shared<Word>, place: usize, value: T) {
    // SAFETY: as above.
    unsafe {
        if !by_words::<T>() {
            stage.cast::<T>().write(place, value);
            return;
        }
        let (words, size) = (stage.cast::<u32>(), size_of::<T>());
        let mut at = 0;
        while at < size {
            words.write((place * size + at) / 4, word(&value, at));
            at += 4;
        }
    }
}

/// Where position `j` of a warp's strips lies in memory, from the lowest strip's first item on.
#[inline(always)]
fn memory<const REVERSE: bool>(j: u32, strip: u32) -> u32 {
    if REVERSE { LANES * strip - 1 - j } else { j }
}

/// Where item `i` of a lane's strip lies in shared memory.
#[inline(always)]
fn place<T, const REVERSE: bool>(lane: u32, i: u32, strip: u32) -> usize {
    let pitch = pitch::<T>(strip as usize);
    if REVERSE {
        // Counted down in the width of addresses, so that an item can be read before the result of the one before it is written.
        ((LANES - 1 - lane) as usize * pitch + strip as usize - 1).wrapping_sub(i as usize)
    } else {
        lane as usize * pitch + i as usize
    }
}

/// The same of the item that lies at `m` in memory.
#[inline(always)]
fn place_of<T>(m: u32, strip: u32) -> usize {
    if pitch::<T>(strip as usize) == strip as usize {
        return m as usize;
    }
    (m / strip) as usize * pitch::<T>(strip as usize) + (m % strip) as usize
}

/// The word of shared memory in which vector `w` of a warp lies.
#[inline(always)]
fn word_of<T>(w: u32, strip: u32) -> usize {
    let vector = vector_len(size_of::<T>());
    let words = strip / vector as u32;
    if pitch::<T>(strip as usize) == strip as usize {
        return w as usize;
    }
    (w / words) as usize * (pitch::<T>(strip as usize) / vector) + (w % words) as usize
}

/// Can the strips be read and written by vectors from there on?
#[inline(always)]
fn by_vectors<T>(first: *const T, stride: i64) -> bool {
    is_word::<T>() && stride == 1 && first.addr().is_multiple_of(VECTOR_BYTES)
}

/// A warp copies its strips, which are whole, to shared memory.
///
/// # Safety
///
/// All lanes call; the items are readable, `stage` is theirs, and a barrier lies between this and what was there.
#[inline(always)]
unsafe fn load_whole<T: Plain, const V: usize, const U: usize>(
    items: *const T,
    piece: Piece,
    strip: u32,
    lane: u32,
    stage: Shared<Word>,
) {
    let first = items.wrapping_offset((piece.first * piece.stride) as isize);
    if by_vectors(first, piece.stride) {
        let batch: [[T; V]; U] = core::array::from_fn(|u| {
            let w = u * LANES as usize + lane as usize;
            // SAFETY: an aligned vector of the warp's; read once.
            unsafe { global::load_neighbours_with::<NoAllocate, T, V>(first.wrapping_add(w * V)) }
        });
        let mut u = 0;
        while u < U {
            // SAFETY: 16 bytes either way; a word of the warp's.
            unsafe {
                let word = core::mem::transmute_copy::<[T; V], Word>(&batch[u]);
                stage.write(word_of::<T>(u as u32 * LANES + lane, strip), word);
            }
            u += 1;
        }
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { load_items(items, piece, strip, lane, stage) };
}

/// The same of items that do not lie in vectors.
///
/// # Safety
///
/// As for [`load_whole`].
#[inline(always)]
unsafe fn load_items<T: Plain>(items: *const T, piece: Piece, strip: u32, lane: u32, stage: Shared<Word>) {
    cold_path();
    let first = items.wrapping_offset((piece.first * piece.stride) as isize);
    let mut k = 0;
    while k < strip {
        let m = k * LANES + lane;
        // SAFETY: an item of the warp's.
        unsafe {
            let item = global::load(first.wrapping_offset((m as i64 * piece.stride) as isize));
            put(stage, place_of::<T>(m, strip), item);
        }
        k += 1;
    }
}

/// The same of strips that are not all there.
///
/// # Safety
///
/// As for [`load_whole`].
#[inline(always)]
unsafe fn load_some<T: Plain, const REVERSE: bool>(
    items: *const T,
    piece: Piece,
    strip: u32,
    lane: u32,
    stage: Shared<Word>,
) {
    let mut next = lane;
    while next < piece.count {
        nounroll();
        // All asked for before any is used; the last stands in for those that are not there.
        let batch: [T; IN_FLIGHT] = core::array::from_fn(|k| {
            let j = (next + k as u32 * LANES).min(piece.count - 1);
            let at = (piece.first + memory::<REVERSE>(j, strip) as i64) * piece.stride;
            // SAFETY: an item that there is.
            unsafe { global::load(items.wrapping_offset(at as isize)) }
        });
        let mut k = 0;
        while k < IN_FLIGHT {
            let j = next + k as u32 * LANES;
            if j < piece.count {
                // SAFETY: a place of the warp's.
                unsafe { put(stage, place_of::<T>(memory::<REVERSE>(j, strip), strip), batch[k]) };
            }
            k += 1;
        }
        next += IN_FLIGHT as u32 * LANES;
    }
}

/// The other way: a warp copies whole strips of results from shared memory.
///
/// # Safety
///
/// All lanes call; the results are writable, have been staged, and a barrier lies since.
#[inline(always)]
unsafe fn store_whole<T: Plain, const V: usize, const U: usize>(
    results: *mut T,
    piece: Piece,
    strip: u32,
    lane: u32,
    stage: Shared<Word>,
) {
    let first = results.wrapping_offset((piece.first * piece.stride) as isize);
    if by_vectors(first, piece.stride) {
        let mut u = 0;
        while u < U {
            let w = u * LANES as usize + lane as usize;
            // SAFETY: 16 bytes either way; an aligned vector of the warp's.
            unsafe {
                let word = stage.read(word_of::<T>(w as u32, strip));
                global::store(first.wrapping_add(w * V).cast::<Word>(), word);
            }
            u += 1;
        }
        return;
    }
    cold_path();
    let mut k = 0;
    while k < strip {
        let m = k * LANES + lane;
        // SAFETY: a result of the warp's.
        unsafe {
            let result = get::<T>(stage, place_of::<T>(m, strip));
            global::store(first.wrapping_offset((m as i64 * piece.stride) as isize), result);
        }
        k += 1;
    }
}

/// The same of strips that are not all there.
///
/// # Safety
///
/// As for [`store_whole`].
#[inline(always)]
unsafe fn store_some<T: Plain, const REVERSE: bool>(
    results: *mut T,
    piece: Piece,
    strip: u32,
    lane: u32,
    stage: Shared<Word>,
) {
    let mut j = lane;
    while j < piece.count {
        nounroll();
        let from = if REVERSE { (LANES * strip - 1) as i64 - j as i64 } else { j as i64 };
        let at = (piece.first + from) * piece.stride;
        let staged = if pitch::<T>(strip as usize) == strip as usize {
            from as usize
        } else {
            place_of::<T>(from as u32, strip)
        };
        // SAFETY: a result that there is.
        unsafe {
            global::store(results.wrapping_offset(at as isize), get::<T>(stage, staged));
        }
        j += LANES;
    }
}

/// The vectors of a line of items in shared memory.
///
/// # Safety
///
/// They have been written, and a barrier lies since.
#[inline(always)]
unsafe fn staged_vectors<T: Plain, const V: usize, const U: usize>(
    stage: Shared<Word>,
    line: u32,
    strip: u32,
) -> [[T; V]; U] {
    let first = line as usize * pitch::<T>(strip as usize);
    core::array::from_fn(|u| {
        let first = first + u * V;
        // SAFETY: the caller's promise; words where items are vectors.
        unsafe {
            if is_word::<T>() {
                core::mem::transmute_copy::<Word, [T; V]>(&stage.read(first / V))
            } else {
                core::array::from_fn(|slot| get::<T>(stage, first + slot))
            }
        }
    })
}

/// Writes vector `u` of a line of results.
///
/// # Safety
///
/// The caller's line, and a barrier lies since another used it.
#[inline(always)]
unsafe fn stage_vector<T: Plain, const V: usize>(
    stage: Shared<Word>,
    line: u32,
    u: usize,
    strip: u32,
    vector: [T; V],
) {
    let first = line as usize * pitch::<T>(strip as usize) + u * V;
    // SAFETY: the caller's promise; words where results are vectors.
    unsafe {
        if is_word::<T>() {
            stage.write(first / V, core::mem::transmute_copy::<[T; V], Word>(&vector));
        } else {
            let mut slot = 0;
            while slot < V {
                put(stage, first + slot, vector[slot]);
                slot += 1;
            }
        }
    }
}
