//! Scans of columns: of lines whose items lie apart, and side by side with those of other lines.
//!
//! Neighbouring threads have neighbouring columns, a strip each, so that memory is read and written in runs. A block has as
//! many strips of a column as one of its warps can scan (a *window*, what a warp has in a tile of a row), fewer where columns
//! are shorter, and columns enough for its threads. The values of the strips change hands in shared memory, where a warp
//! takes those of a column, scans them, and looks back at the windows of the tile, the tiles of the group and the groups
//! before. So each column has the order, and the bits, of being scanned alone.

use core::{marker::PhantomData, mem::MaybeUninit};

use warpfold_monoid::{
    Monoid, Plain,
    scan::{GROUP, LANES, Reversed, Tiling},
    tree::vector_len,
};
use warpfold_simt::{
    global::{self, hint::NoAllocate},
    grid,
    hint::{nounroll, opaque},
    shared::STATIC_LIMIT,
    thread::{block_idx_x, sync_threads, thread_idx_x},
    warp::{FULL, shuffle_idx, warp_vote_ballot},
};

use super::{
    Ledger, Place, Room, Word,
    copy::{empty, fill},
    draw, get, inverse, look_back, neighbours, peek, publish, put, quotient, record, record_pairs, unrelated,
    value_tag,
};

/// The parameters of the kernels. The host fills it, the kernel receives it by value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ColumnParams<Op: Monoid> {
    /// The first item of the first column; aligned to the item.
    pub input: *const Op::Item,
    /// Where its result goes. May be the input.
    pub output: *mut Op::Output,
    /// Items of a column, at least 1.
    pub n: u64,
    /// Columns side by side, at least 1: so many items lie between neighbours of a column.
    pub inner: u64,
    /// Sets of so many columns, one behind the other.
    pub outer: u64,
    /// As of [`ScanParams`](super::ScanParams); unused where a column is one window.
    pub counter: *mut u64,
    /// [`column_pairs`] for each column.
    pub records: *mut [u64; 2],
    /// Pairs of words that there is room for, used or not.
    pub capacity: u64,
    /// The block's [`Shape`].
    pub shape: Shape,
    /// Windows of a column.
    pub windows: u32,
    /// 1 if a result leaves out its own item.
    pub exclusive: u32,
    /// 1 if `initial` stands before the first item of each column.
    pub has_initial: u32,
    /// The start value.
    pub initial: Op::Acc,
    /// The operator.
    pub op: Op,
}

/// What a block's threads have: powers of two, whose product is [`THREADS`] or, of narrow columns, [`NARROW_THREADS`].
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Columns side by side.
    pub columns: u32,
    /// Strips of a column, at most a warp's.
    pub strips: u32,
    /// How many windows of these columns; or, where a column is one window, how many sets of columns.
    pub sets: u32,
}

/// Bytes of stack that an entry may use: strips in registers leave few for a look-back.
pub const STACK: u32 = 256;

/// Threads of a block.
pub const THREADS: u32 = 512;

/// Those of a block that has all columns there are side by side, and so items that lie side by side: it reads and writes them by
/// way of shared memory, where a column's own would be a few bytes here and there.
pub const NARROW_THREADS: u32 = 256;

/// Columns side by side that are narrow, at most: of more, and a window of each would still make a block, 32 bytes of each of
/// their items are read at a time.
const NARROW: u64 = (NARROW_THREADS / LANES) as u64 - 1;

impl Shape {
    /// That of columns of `n` items, `inner` of them side by side.
    pub const fn of<Op: Monoid>(n: u64, inner: u64) -> Shape {
        let strips = n.div_ceil(Tiling::of::<Op>().strip as u64);
        let strips = if strips < LANES as u64 { (strips as u32).next_power_of_two() } else { LANES };
        let narrow = inner <= NARROW && stages::<Op>();
        let most = if narrow { NARROW_THREADS } else { THREADS } / strips;
        let columns = if inner < most as u64 { (inner as u32).next_power_of_two() } else { most };
        Shape { columns, strips, sets: most / columns }
    }

    /// Threads of its blocks.
    pub const fn threads(&self) -> u32 {
        self.columns * self.strips * self.sets
    }

    /// Is it one of narrow columns?
    pub const fn is_narrow(&self) -> bool {
        self.threads() < THREADS
    }
}

/// Words of shared memory for the items of narrow columns, and later for the results.
pub const fn stage_words<Op: Monoid>() -> usize {
    if stages::<Op>() { narrow_words::<Op>() } else { 1 }
}

/// Of columns that are not narrow: they do without.
pub const fn no_words<Op: Monoid>() -> usize {
    1
}

const fn narrow_words<Op: Monoid>() -> usize {
    let strip = Tiling::of::<Op>().strip as usize;
    let (items, results) = (narrow_bytes::<Op::Item>(strip), narrow_bytes::<Op::Output>(strip));
    (if items > results { items } else { results }).div_ceil(size_of::<Word>())
}

/// Bytes of all strips of as many columns as take the most: two more vectors than a strip has for each, at most.
const fn narrow_bytes<T>(strip: usize) -> usize {
    NARROW_THREADS as usize * (strip + 2 * vector_len(size_of::<T>())) * size_of::<T>()
}

/// Is there room for narrow columns in shared memory, and are strips held in registers?
const fn stages<Op: Monoid>() -> bool {
    let bytes =
        narrow_words::<Op>() * size_of::<Word>() + values_of(NARROW_THREADS) * size_of::<Op::Acc>() + 64;
    fits::<Op>() && is_held::<Op>() && bytes <= STATIC_LIMIT
}

/// The places of a narrow block's items in shared memory. Items of a strip of all columns are a group; groups are an odd number of
/// times as many places apart as columns, rounded up to a power of two: so threads find theirs in different banks.
#[derive(Clone, Copy)]
struct Places<const REVERSE: bool> {
    /// Items of a group, and places.
    group: u32,
    pitch: u32,
    /// Items of a set of columns, or of all windows of a block, and how many groups that is at most.
    unit: u32,
    groups: u32,
}

impl<const REVERSE: bool> Places<REVERSE> {
    #[inline(always)]
    fn new<T>(inner: u32, columns: u32, strip: u32, unit: u32, groups: u32) -> Self {
        let vector = vector_len(size_of::<T>()) as u32;
        let step = if columns > vector { columns } else { vector };
        let group = strip * inner;
        Places { group, pitch: (group.div_ceil(step) | 1) * step, unit, groups }
    }

    /// That of item `i`, in the order of memory, given what divides by a unit and a group.
    #[inline(always)]
    fn of(&self, i: u32, (by_unit, by_group): (u32, u32)) -> usize {
        let Places { group, pitch, unit, groups } = *self;
        let set = quotient(i, by_unit);
        let within = i - set * unit;
        let more = pitch - group;
        let over = if REVERSE {
            groups * group - unit + (groups - 1 - quotient(unit - 1 - within, by_group)) * more
        } else {
            quotient(within, by_group) * more
        };
        (set * groups * pitch + within + over) as usize
    }

    /// That of the first item of a column's strip, and how far the next one is.
    #[inline(always)]
    fn strip(&self, set: u32, group: u32, column: u32, inner: u32) -> (u32, i32) {
        let first = set * self.groups * self.pitch;
        if REVERSE {
            let groups = self.groups - group;
            let last = first + groups * self.group + (groups - 1) * (self.pitch - self.group);
            (last - inner + column, -(inner as i32))
        } else {
            (first + group * self.pitch + column, inner as i32)
        }
    }

    /// Are vectors of so many items that lie side by side in memory vectors there too?
    #[inline(always)]
    fn by_vectors(&self, head: u32, vector: u32) -> bool {
        head == 0 && self.unit.is_multiple_of(vector) && self.group.is_multiple_of(vector)
    }

    /// What [`of`](Self::of) is told: products with them are quotients.
    #[inline(always)]
    fn inverses(&self) -> (u32, u32) {
        (inverse(self.unit), inverse(self.group))
    }
}

/// Pairs of words that a column of so many windows, more than one, needs: a record for each window, each tile, each group.
pub const fn column_pairs(acc_bytes: usize, tiling: Tiling, windows: u32) -> u64 {
    let tiles = windows.div_ceil(tiling.warps());
    (windows as u64 + tiles as u64 + tiles.div_ceil(GROUP) as u64) * record_pairs(acc_bytes) as u64
}

/// Are accumulators small enough for these kernels? Other operators have only their names.
pub const fn fits<Op: Monoid>() -> bool {
    size_of::<Op::Acc>() <= 16
}

/// Accumulators in shared memory: of each strip, one more for each warp, and what stands before each window.
pub const fn values<Op: Monoid>() -> usize {
    if fits::<Op>() { values_of(THREADS) } else { 1 }
}

/// Those of narrow columns.
pub const fn narrow_values<Op: Monoid>() -> usize {
    if fits::<Op>() { values_of(NARROW_THREADS) } else { 1 }
}

const fn values_of(threads: u32) -> usize {
    (2 * threads + threads / LANES) as usize
}

/// The kernels' launch bounds.
pub const fn launch_bounds<Op: Monoid>() -> u32 {
    let registers = Tiling::of::<Op>().strip as usize * size_of::<Op::Item>().div_ceil(4);
    let blocks = if size_of::<Op::Acc>() <= 8 && registers <= 28 { 2 } else { 1 };
    THREADS | blocks << 16
}

/// Those of kernels for narrow columns.
pub const fn narrow_bounds<Op: Monoid>() -> u32 {
    let blocks = if size_of::<Op::Acc>() <= 8 { 4 } else { 3 };
    NARROW_THREADS | blocks << 16
}

/// Does a thread keep its strip in registers? Longer ones are read twice, the second time from a cache.
const fn is_held<Op: Monoid>() -> bool {
    Tiling::of::<Op>().strip <= 32
}

/// The records of a column.
#[derive(Clone, Copy)]
struct ColumnLedger<A> {
    first: *mut [u64; 2],
    windows: u32,
    tiles: u32,
    acc: PhantomData<A>,
}

impl<A: Plain> ColumnLedger<A> {
    #[inline(always)]
    fn window(&self, window: u32) -> *mut [u64; 2] {
        record::<A>(self.first, window as u64)
    }
}

impl<A: Plain> Ledger for ColumnLedger<A> {
    #[inline(always)]
    fn tile(&self, tile: u32) -> *mut [u64; 2] {
        record::<A>(self.first, (self.windows + tile) as u64)
    }
    #[inline(always)]
    fn group(&self, group: u32) -> *mut [u64; 2] {
        record::<A>(self.first, (self.windows + self.tiles + group) as u64)
    }
}

/// Scans columns from their first items on.
///
/// # Safety
///
/// The operator [`fits`]. The whole block of [`Shape::threads`] calls, and the grid has as many blocks as the columns, their windows
/// and the sets have [`Shape`]s. The items are readable and the results writable; unless they are the same memory, item for
/// item, they do not overlap. `counter` and `records` belong to this launch alone. Shared memory is not in use.
#[inline(always)]
pub unsafe fn columns_forward<Op: Monoid, const V: usize, const U: usize, const VO: usize>(
    params: &ColumnParams<Op>,
    room: Room<Op::Acc>,
) {
    // SAFETY: the caller's promise.
    unsafe { columns::<Op, Op, V, U, VO, false, false>(params, &params.op, room) }
}

/// The same from their last items.
///
/// # Safety
///
/// As for [`columns_forward`].
#[inline(always)]
pub unsafe fn columns_reverse<Op: Monoid, const V: usize, const U: usize, const VO: usize>(
    params: &ColumnParams<Op>,
    room: Room<Op::Acc>,
) {
    // SAFETY: the caller's promise.
    unsafe { columns::<Op, Reversed<Op>, V, U, VO, true, false>(params, &Reversed(params.op), room) }
}

/// [`columns_forward`] of narrow columns, where [`Shape::is_narrow`].
///
/// # Safety
///
/// As there, with [`narrow_values`] for the values and [`stage_words`] for the stage.
#[inline(always)]
pub unsafe fn narrow_forward<Op: Monoid, const V: usize, const U: usize, const VO: usize>(
    params: &ColumnParams<Op>,
    room: Room<Op::Acc>,
) {
    // SAFETY: the caller's promise.
    unsafe { columns::<Op, Op, V, U, VO, false, true>(params, &params.op, room) }
}

/// The same from their last items.
///
/// # Safety
///
/// As for [`narrow_forward`].
#[inline(always)]
pub unsafe fn narrow_reverse<Op: Monoid, const V: usize, const U: usize, const VO: usize>(
    params: &ColumnParams<Op>,
    room: Room<Op::Acc>,
) {
    // SAFETY: the caller's promise.
    unsafe { columns::<Op, Reversed<Op>, V, U, VO, true, true>(params, &Reversed(params.op), room) }
}

/// # Safety
///
/// As for [`columns_forward`]; `op` combines as columns are walked.
#[inline(always)]
unsafe fn columns<
    Op,
    O,
    const V: usize,
    const U: usize,
    const VO: usize,
    const REVERSE: bool,
    const NARROW: bool,
>(
    params: &ColumnParams<Op>,
    op: &O,
    room: Room<Op::Acc>,
) where
    Op: Monoid,
    O: Monoid<Item = Op::Item, Acc = Op::Acc, Output = Op::Output>,
{
    if !const { fits::<Op>() && (!NARROW || stages::<Op>()) } {
        return;
    }
    grid::wait_for_previous();
    // `values` in the place of what tiles of rows keep there.
    let Room { stage, sums: values, drawn } = room;
    let tiling = const { Tiling::of::<Op>() };
    let (strip, window_len) = (tiling.strip, tiling.warp() as u64);
    let ColumnParams { n, inner, outer, windows, shape, .. } = *params;
    let chained = windows > 1;
    let (mut number, mut epoch) = (block_idx_x(), 0);
    if chained {
        let each = column_pairs(size_of::<Op::Acc>(), tiling, windows);
        let end = inner * outer * each;
        // SAFETY: the launch's own counter and records; the whole block is here.
        (number, epoch) = unsafe { draw(params.counter, (params.records, params.capacity), end, drawn) };
    }
    // Blocks of neighbouring columns follow one another, and windows only then: what is at work at a time lies together.
    let abreast = inner.div_ceil(shape.columns as u64);
    let (block_column, rest) = (number as u64 % abreast, number as u64 / abreast);
    let first_column = block_column * shape.columns as u64;
    let (first_set, first_window) = if chained {
        (rest % outer, (rest / outer) as u32 * shape.sets)
    } else {
        (rest * shape.sets as u64, 0)
    };
    // Of which column is the set's number so much, and which of its windows?
    let line = |set: u32, column: u32| {
        let column = first_column + column as u64;
        let (outer_at, window) =
            if chained { (first_set, first_window + set) } else { (first_set + set as u64, 0) };
        (outer_at, column, window, column < inner && outer_at < outer && window < windows)
    };

    // Each thread folds a strip of a column.
    let thread = thread_idx_x();
    let (column, over) = (thread % shape.columns, thread / shape.columns);
    let (k, set) = (over % shape.strips, over / shape.strips);
    let (outer_at, at_column, window, there) = line(set, column);
    let start = window as u64 * window_len + (k * strip) as u64;
    let mine = if there && start < n { (n - start).min(strip as u64) as u32 } else { 0 };
    let origin = (outer_at * n * inner + at_column) as usize;
    let step = if REVERSE { (inner as isize).wrapping_neg() } else { inner as isize };
    let index = |i: usize| {
        let position = start + i as u64;
        // Of threads without items, anything.
        if REVERSE { (n - 1).wrapping_sub(position) } else { position }
    };
    let from = origin.wrapping_add(index(0).wrapping_mul(inner) as usize);
    let (input, output) = (params.input.wrapping_add(from), params.output.wrapping_add(from));
    // Narrow columns lie side by side, those of all sets or windows of a block.
    let width = inner as u32;
    let (range, groups, at_set) = if chained {
        let first = first_window as u64 * window_len;
        (first, LANES * shape.sets, 0)
    } else {
        (0, shape.strips, set)
    };
    let block_len = if chained { window_len * shape.sets as u64 } else { n };
    let lines = (n - range).min(block_len);
    let unit = (lines * inner) as u32;
    let sets = if chained { 1 } else { (outer - first_set).min(shape.sets as u64) as u32 };
    let block_first = {
        let lowest = if REVERSE { n - range - lines } else { range };
        (first_set * n + lowest) * inner
    } as usize;
    let count = unit * sets;
    let group = if chained { set * LANES + k } else { k };
    let places = Places::<REVERSE>::new::<Op::Item>(width, shape.columns, strip, unit.max(1), groups);
    if NARROW {
        let inverses = places.inverses();
        // SAFETY: the block's own items; shared memory is not in use.
        unsafe {
            let from = params.input.wrapping_add(block_first);
            let whole = |head, vector| places.by_vectors(head, vector);
            fill::<Op::Item, V>(from, count, whole, |i| places.of(i, inverses), stage);
        }
        sync_threads();
    }
    let (mut at, at_step) = places.strip(at_set, group, column, width);
    let mut next = input;
    // Items have their results' places, or are read before any result is written.
    let in_place = const { size_of::<Op::Item>() == size_of::<Op::Output>() };
    let staged_item = |at: u32, i: usize| {
        let mut item = MaybeUninit::uninit();
        if (i as u32) < mine {
            // SAFETY: an item that there is, written before the barrier.
            item.write(unsafe { get::<Op::Item>(stage, at as usize) });
        }
        item
    };
    let mut load = |i: usize| {
        // SAFETY: an item that there is, if it is asked for.
        let item = unsafe { global::load_if::<NoAllocate, Op::Item>((i as u32) < mine, next) };
        next = next.wrapping_offset(step);
        item
    };
    let mut held = [[const { MaybeUninit::<Op::Item>::uninit() }; V]; U];
    let mut value = op.identity();
    if NARROW {
        let mut u = 0;
        while u < U {
            if in_place {
                nounroll();
            }
            let vector: [MaybeUninit<Op::Item>; V] = core::array::from_fn(|slot| {
                let item = staged_item(at, u * V + slot);
                at = at.wrapping_add_signed(at_step);
                item
            });
            if !in_place {
                held[u] = vector;
            }
            value = fold_some(op, value, &vector, u * V, mine, &index);
            u += 1;
        }
    } else {
        let mut u = 0;
        while u < U {
            if !const { is_held::<Op>() } {
                nounroll();
            }
            let vector: [MaybeUninit<Op::Item>; V] = core::array::from_fn(|slot| load(u * V + slot));
            if const { is_held::<Op>() } {
                held[u] = vector;
            } else {
                value = fold_some(op, value, &vector, u * V, mine, &index);
            }
            u += 1;
        }
    }
    if !NARROW && const { is_held::<Op>() } {
        let mut u = 0;
        while u < U {
            value = fold_some(op, value, &held[u], u * V, mine, &index);
            u += 1;
        }
    }

    // A warp takes the strips of a column, or of some.
    let threads = if NARROW { NARROW_THREADS } else { THREADS };
    let befores = values.from((threads + threads / LANES) as usize);
    let slot = |line: u32, k: u32| {
        let at = line * shape.strips + k;
        (at + at / LANES) as usize
    };
    let own_line = set * shape.columns + column;
    if mine > 0 {
        // SAFETY: the thread's own slot.
        unsafe { values.write(slot(own_line, k), value) };
    }
    sync_threads();
    {
        let (k, of_line) = (thread % shape.strips, thread / shape.strips);
        let (set, column) = (of_line / shape.columns, of_line % shape.columns);
        let (outer_at, at_column, window, there) = line(set, column);
        let start = window as u64 * window_len;
        let left = if there && start < n { n - start } else { 0 };
        let present = left.min(window_len).div_ceil(strip as u64) as u32;
        let mut scanned = op.identity();
        if k < present {
            // SAFETY: written before the barrier.
            scanned = unsafe { values.read(slot(of_line, k)) };
        }
        let has_initial = params.has_initial != 0;
        let (mut before, mut behind, mut begun) = (params.initial, params.initial, has_initial);
        if chained {
            // A column to a warp.
            if present > 0 {
                // SAFETY: all lanes are here.
                unsafe {
                    scanned = neighbours(op, scanned, k, LANES, present);
                    let value = shuffle_idx(FULL, scanned, present - 1);
                    let tiles = windows.div_ceil(tiling.warps());
                    let each = column_pairs(size_of::<Op::Acc>(), tiling, windows);
                    let number = (outer_at * inner + at_column) * each;
                    let first = params.records.wrapping_add(number as usize);
                    let ledger = ColumnLedger::<Op::Acc> { first, windows, tiles, acc: PhantomData };
                    let initial = if has_initial { Some(params.initial) } else { None };
                    (before, behind) = look_back_windows(op, ledger, window, k, epoch, initial, value);
                    begun |= window > 0;
                }
            }
        } else {
            let mut distance = 1;
            while distance < shape.strips {
                nounroll();
                let source = (thread % LANES).wrapping_sub(distance) % LANES;
                // SAFETY: all lanes are here.
                let left = unsafe { shuffle_idx(FULL, scanned, source) };
                if k >= distance && k < present {
                    scanned = op.combine(left, scanned);
                }
                distance *= 2;
            }
        }
        if k < present {
            // Only the last strip of a window that others follow may stand before another window.
            let behind = if chained && k == LANES - 1 {
                behind
            } else if begun {
                op.combine(before, scanned)
            } else {
                scanned
            };
            // SAFETY: the slots that this thread alone has read, or that are this window's.
            unsafe {
                values.write(slot(of_line, k), behind);
                if k == 0 && begun {
                    befores.write(of_line as usize, before);
                }
            }
        }
    }
    sync_threads();
    // What stands before the strip, and behind it; in between it goes alone.
    let begun = k > 0 || window > 0 || params.has_initial != 0;
    let (mut running, mut behind) = (value, value);
    // SAFETY: written before the barrier: strips before this one are there.
    unsafe {
        if mine == 0 {
            // Nothing to do but to help copying.
        } else if k > 0 {
            running = values.read(slot(own_line, k - 1));
        } else if begun {
            running = befores.read(own_line as usize);
        }
        if mine == strip {
            behind = values.read(slot(own_line, k));
        }
    }
    let exclusive = params.exclusive != 0;
    // Not known to be the same, lest the distances of all items be kept in registers from their loads on.
    let step = {
        let step = step as u64;
        ((opaque((step >> 32) as u32) as u64) << 32 | opaque(step as u32) as u64) as isize
    };
    let (mut next, mut result_to) = (input, output);
    let result_places =
        Places::<REVERSE>::new::<Op::Output>(width, shape.columns, strip, unit.max(1), groups);
    let (at, at_step) = result_places.strip(at_set, group, column, width);
    // Nor those of all places.
    let (mut at, at_step) = (opaque(at), opaque(at_step as u32) as i32);
    let mut u = 0;
    while u < U {
        if !const { is_held::<Op>() } || NARROW && in_place {
            nounroll();
        }
        let vector: [MaybeUninit<Op::Item>; V] = if NARROW && in_place {
            let mut at = at;
            core::array::from_fn(|slot| {
                let item = staged_item(at, u * V + slot);
                at = at.wrapping_add_signed(at_step);
                item
            })
        } else if const { is_held::<Op>() } {
            held[u].map(unrelated)
        } else {
            core::array::from_fn(|slot| {
                // SAFETY: as before.
                let item =
                    unsafe { global::load_if::<NoAllocate, Op::Item>(((u * V + slot) as u32) < mine, next) };
                next = next.wrapping_offset(step);
                item
            })
        };
        let mut slot = 0;
        while slot < V {
            let i = u * V + slot;
            if (i as u32) < mine {
                // SAFETY: loaded under the same condition.
                let item = unsafe { vector[slot].assume_init() };
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
                // SAFETY: the item's result, which is the thread's; its place is that of an item which has been read.
                unsafe {
                    if NARROW {
                        put(stage, at as usize, result);
                    } else {
                        global::store(result_to, result);
                    }
                }
                running = with;
            }
            if NARROW {
                at = at.wrapping_add_signed(at_step);
            } else {
                result_to = result_to.wrapping_offset(step);
            }
            slot += 1;
        }
        u += 1;
    }
    if NARROW {
        sync_threads();
        let inverses = result_places.inverses();
        // SAFETY: the block's own results, all of them written before the barrier.
        unsafe {
            let to = params.output.wrapping_add(block_first);
            let whole = |head, vector| result_places.by_vectors(head, vector);
            empty::<Op::Output, VO>(to, count, whole, |i| result_places.of(i, inverses), stage);
        }
    }
}

/// Folds those of a strip's items from number `first` on that are there.
#[inline(always)]
fn fold_some<Op: Monoid, const V: usize>(
    op: &Op,
    mut value: Op::Acc,
    items: &[MaybeUninit<Op::Item>; V],
    first: usize,
    mine: u32,
    index: &impl Fn(usize) -> u64,
) -> Op::Acc {
    let mut slot = 0;
    while slot < V {
        let i = first + slot;
        if (i as u32) < mine {
            // SAFETY: loaded under the same condition.
            let item = unsafe { items[slot].assume_init() };
            value = if i == 0 { op.lift(item, index(i)) } else { op.push(value, item, index(i)) };
        }
        slot += 1;
    }
    value
}

/// What stands before a window of that value, if anything does, and behind it; tells those that come after.
///
/// # Safety
///
/// The whole warp calls; all windows before this one of its column have been drawn, or are the block's.
#[inline(always)]
unsafe fn look_back_windows<Op: Monoid>(
    op: &Op,
    ledger: ColumnLedger<Op::Acc>,
    window: u32,
    lane: u32,
    epoch: u32,
    initial: Option<Op::Acc>,
    value: Op::Acc,
) -> (Op::Acc, Op::Acc) {
    let warps = const { Tiling::of::<Op>() }.warps();
    let (tile, place) = (window / warps, window % warps);
    let (last, closes) = (window + 1 == ledger.windows, place == warps - 1);
    if !closes && !last && lane == 0 {
        // SAFETY: the window's own record.
        unsafe { publish(ledger.window(window), value, value_tag(epoch)) };
    }
    let mut scanned = value;
    if place > 0 {
        let theirs = ledger.window(tile * warps + lane.min(place));
        let mut waits = lane < place;
        loop {
            if waits {
                // SAFETY: a record of the launch's.
                let (found, tag) = unsafe { peek::<Op::Acc>(theirs) };
                if tag == value_tag(epoch) {
                    scanned = found;
                    waits = false;
                }
            }
            // SAFETY: all lanes are here.
            if unsafe { warp_vote_ballot(FULL, waits) } == 0 {
                break;
            }
        }
        // SAFETY: all lanes are here.
        scanned = unsafe { neighbours(op, scanned, lane, LANES, place + 1) };
    }
    // SAFETY: all lanes are here.
    let (inclusive, exclusive) =
        unsafe { (shuffle_idx(FULL, scanned, place), shuffle_idx(FULL, scanned, place.saturating_sub(1))) };
    let at = Place { tile, last: tile + 1 == ledger.tiles, whole: closes, lane, epoch, ahead: false };
    // SAFETY: the whole warp is here, and the tiles before are of windows before.
    let (before_tile, behind_tile) = unsafe { look_back(op, ledger, at, initial, inclusive) };
    let begun = tile > 0 || initial.is_some();
    let before = match (begun, place > 0) {
        (true, true) => op.combine(before_tile, exclusive),
        (true, false) => before_tile,
        (false, _) => exclusive,
    };
    let behind = if closes || !begun { behind_tile } else { op.combine(before_tile, inclusive) };
    (before, behind)
}
