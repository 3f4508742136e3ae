//! Rows: segments of one length at one distance, `[m][n]`.

use core::mem::MaybeUninit;

use warpfold_monoid::{
    Monoid, Plain,
    tree::{FOLD_LANES, MAX_GROUPS, SHORT_GROUPS, VECTOR_BYTES, VECTORS_A_GROUP, vector_len},
};
use warpfold_simt::{
    atomic::{self, AcqRel, Gpu},
    global::{
        self,
        hint::{NoAllocate, Plainly},
    },
    grid,
    hint::{cold_path, nounroll},
    shared::Shared,
    thread::{block_dim_x, block_idx_x, grid_dim_x, sync_threads, thread_idx_x},
    warp::{FULL, shuffle_down, shuffle_idx, shuffle_xor, sync_warp},
};

use super::{
    THREADS, let_next_start, operator,
    tile::{self, Tile, Word},
};
use crate::{
    block as blocks,
    device::{self, ReduceParams, VECTORS_IN_FLIGHT},
    export,
    lanes::{self, Reach},
    ordered, warp as warps,
};

/// The parameters of the kernels of rows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RowParams<Op: Monoid> {
    /// The first item of the first row; aligned to the item.
    pub input: *const Op::Item,
    /// Items from one row's first to the next one's; may be negative.
    pub stride: i64,
    /// Rows.
    pub m: u64,
    /// Items in each, at least 1.
    pub n: u64,
    /// Where the results go, a row's after the other.
    pub output: *mut Op::Output,
    /// One value for each chunk of each row, for [`large`].
    pub partials: *mut Op::Acc,
    /// For each row how many of its chunks are done: 0 before and after every launch; for [`large`].
    pub tickets: *mut u32,
    /// Items in a chunk: [`Shape::chunk`](warpfold_monoid::tree::Shape::chunk).
    pub chunk: u64,
    /// Chunks in a row.
    pub chunks: u32,
    /// Threads that share a chunk: [`Shape::groups`](warpfold_monoid::tree::Shape::groups).
    pub groups: u32,
    /// Rows in a tile, for [`thread`] and [`small`].
    pub rows: u32,
    /// Chunks that a block folds one after the other, for [`large`].
    pub chunks_a_block: u32,
    /// The operator.
    pub op: Op,
}

impl<Op: Monoid> RowParams<Op> {
    /// The first item of a row.
    #[inline(always)]
    fn row(&self, row: u64) -> *const Op::Item {
        self.input.wrapping_offset((row as i64).wrapping_mul(self.stride) as isize)
    }

    /// What may be read around the rows.
    #[inline(always)]
    fn reach(&self) -> Reach {
        let (first, last) = (self.input, self.row(self.m - 1));
        let (least, greatest) = if self.stride < 0 { (last, first) } else { (first, last) };
        Reach { start: least.addr(), end: greatest.wrapping_add(self.n as usize).addr() }
    }

    /// One row as an array of its own.
    #[inline(always)]
    fn array(&self, row: u64) -> ReduceParams<Op> {
        ReduceParams {
            input: self.row(row),
            n: self.n,
            output: self.output.wrapping_add(row as usize),
            partials: self.partials.wrapping_add((row * self.chunks as u64) as usize),
            ticket: self.tickets.wrapping_add(row as usize),
            chunk: self.chunk,
            chunks: self.chunks,
            groups: self.groups,
            part: device::Part::WHOLE,
            op: operator(&self.op, row, true),
        }
    }
}

/// Contiguous rows of at most `4 * V` items, a thread each.
///
/// # Safety
///
/// Blocks of [`THREADS`]; `stride` is `n`; `m * n` items are readable and `m` results writable, `groups` is 1 and
/// `rows` rows fit a tile.
#[inline(always)]
pub unsafe fn thread<Op: Monoid, const V: usize>(params: &RowParams<Op>, words: Shared<Word>) {
    if in_vectors::<Op, V>(params) {
        // SAFETY: the caller's promise; vectors of whole rows.
        return unsafe {
            match params.n {
                1 => direct::<Op, V, 1, 1>(params),
                2 => direct::<Op, V, 2, 1>(params),
                3 if V == 4 => direct::<Op, V, 3, 3>(params),
                _ => direct::<Op, V, 4, 1>(params),
            }
        };
    }
    // SAFETY: the caller's promise.
    unsafe { staged::<Op, V, false>(params, 1, words) }
}

/// Are rows so short that one vector, or three, are made of whole ones, and lie where vectors can be loaded?
#[inline(always)]
fn in_vectors<Op: Monoid, const V: usize>(params: &RowParams<Op>) -> bool {
    let n = params.n;
    size_of::<[Op::Item; V]>() == VECTOR_BYTES
        && !Op::PER_SEGMENT
        && (n == 1 || n == 2 && V >= 2 || n == 3 && V == 4 || n == 4 && V >= 4)
        && params.input.addr().is_multiple_of(VECTOR_BYTES)
}

/// Contiguous rows of `N` items, those of `U` vectors a thread at a time: no item goes through shared memory.
///
/// # Safety
///
/// As for [`thread`]; `n` is `N`, of which `U * V` items are whole rows, no more than `V`, and the rows start where vectors do.
#[inline(always)]
unsafe fn direct<Op: Monoid, const V: usize, const N: usize, const U: usize>(params: &RowParams<Op>) {
    grid::wait_for_previous();
    let op = &params.op;
    let together = (U * V / N).clamp(1, V);
    // Rows that fill no vectors go to a thread each.
    let units = params.m / together as u64;
    let left = (params.m % together as u64) as u32;
    let at_once = (VECTORS_IN_FLIGHT / U) as u64 * THREADS as u64;
    let mut next = block_idx_x() as u64 * at_once + thread_idx_x() as u64;
    while next < units {
        nounroll();
        let batch: [_; VECTORS_IN_FLIGHT] = core::array::from_fn(|k| {
            let w = next + (k / U) as u64 * THREADS as u64;
            let from = params.input.wrapping_add((w as usize * U + k % U) * V);
            let wanted = k < VECTORS_IN_FLIGHT / U * U && w < units;
            // SAFETY: an aligned vector of the rows. Nothing is read twice, but for the rest of a line that neighbours share.
            unsafe {
                if U == 1 {
                    global::load_neighbours_if::<NoAllocate, Op::Item, V>(wanted, from)
                } else {
                    global::load_neighbours_if::<Plainly, Op::Item, V>(wanted, from)
                }
            }
        });
        let mut u = 0;
        while u < VECTORS_IN_FLIGHT / U {
            let w = next + u as u64 * THREADS as u64;
            if w < units {
                // SAFETY: loaded under the same condition.
                let vectors: [[Op::Item; V]; U] =
                    core::array::from_fn(|k| unsafe { batch[u * U + k].assume_init() });
                let results: [Op::Output; V] = core::array::from_fn(|k| {
                    let first = if k < together { k * N } else { 0 };
                    let row = core::array::from_fn(|i| vectors[(first + i) / V % U][(first + i) % V]);
                    op.finish(row_value::<Op, N>(op, row))
                });
                // SAFETY: one thread, its vectors' rows.
                unsafe { store_first(params.output.wrapping_add(w as usize * together), results, together) };
            }
            u += 1;
        }
        next += grid_dim_x() as u64 * at_once;
    }
    if block_idx_x() == 0 && thread_idx_x() < left {
        cold_path();
        let row = units * together as u64 + thread_idx_x() as u64;
        // SAFETY: a row's items.
        let items = core::array::from_fn(|i| unsafe { global::load(params.row(row).wrapping_add(i)) });
        // SAFETY: one thread, one row.
        unsafe {
            global::store(params.output.wrapping_add(row as usize), op.finish(row_value::<Op, N>(op, items)));
        }
    }
    let_next_start();
}

/// The value of a row of at most a vector's items, as one thread's lanes or strip have it.
#[inline(always)]
fn row_value<Op: Monoid, const N: usize>(op: &Op, items: [Op::Item; N]) -> Op::Acc {
    if Op::ANY_ORDER {
        return op.fold_many(items, 0);
    }
    if !Op::COMMUTATIVE {
        let mut acc = op.lift(items[0], 0);
        let mut i = 1;
        while i < N {
            acc = op.push(acc, items[i], i as u64);
            i += 1;
        }
        return acc;
    }
    lanes::combine_slots(op, core::array::from_fn::<_, N, _>(|i| op.lift(items[i], i as u64)), 0, None)
}

/// Stores the first `count` values, at once where they fill a vector or half of one.
///
/// # Safety
///
/// As many are writable there, and nothing else accesses them.
#[inline(always)]
unsafe fn store_first<T: Plain, const V: usize>(to: *mut T, values: [T; V], count: usize) {
    let bytes = count * size_of::<T>();
    let aligned = to.addr().is_multiple_of(bytes.max(1));
    if bytes == VECTOR_BYTES && aligned {
        // SAFETY: the first 16 bytes of the values; an aligned place for them.
        unsafe {
            global::store_neighbours(to.cast::<u32>(), core::mem::transmute_copy::<_, [u32; 4]>(&values))
        };
    } else if bytes == VECTOR_BYTES / 2 && aligned {
        // SAFETY: the same of 8 bytes.
        unsafe {
            global::store_neighbours(to.cast::<u32>(), core::mem::transmute_copy::<_, [u32; 2]>(&values))
        };
    } else {
        let mut k = 0;
        while k < V {
            if k < count {
                // SAFETY: the caller's promise.
                unsafe { global::store(to.wrapping_add(k), values[k]) };
            }
            k += 1;
        }
    }
}

/// Contiguous rows of at most `128 * V` items, `groups` threads each (2 to 32, a power of two).
///
/// # Safety
///
/// As for [`thread`], with that many `groups`: those of the row's [`Shape`](warpfold_monoid::tree::Shape).
#[inline(always)]
pub unsafe fn small<Op: Monoid, const V: usize>(params: &RowParams<Op>, words: Shared<Word>) {
    if fills_groups::<Op, V>(params) {
        // SAFETY: the caller's promise.
        return unsafe { transposed::<Op, V>(params) };
    }
    let groups = params.groups.max(2);
    let in_words = params.n.is_multiple_of(V as u64) && params.input.addr().is_multiple_of(VECTOR_BYTES);
    // SAFETY: the caller's promise.
    unsafe {
        if Op::COMMUTATIVE && !Op::ANY_ORDER && params.rows * groups > THREADS && !in_words {
            staged::<Op, V, true>(params, groups, words)
        } else {
            staged::<Op, V, false>(params, groups, words)
        }
    }
}

/// Groups of a row that a thread of [`small`] folds, where they would take the block's threads twice.
const GROUPS_A_THREAD: u32 = 4;

/// Both of these; with `SEVERAL`, a thread folds up to [`GROUPS_A_THREAD`] groups, item by item, of operators that commute: what it takes
/// beside its items is more than those.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn staged<Op: Monoid, const V: usize, const SEVERAL: bool>(
    params: &RowParams<Op>,
    groups: u32,
    words: Shared<Word>,
) {
    grid::wait_for_previous();
    let (thread, n) = (thread_idx_x(), params.n as u32);
    let mine = if SEVERAL { groups.min(GROUPS_A_THREAD) } else { 1 };
    let threads = groups >> mine.trailing_zeros();
    let (at, part) = (thread >> threads.trailing_zeros(), thread & (threads - 1));
    let rows_a_pass = THREADS >> threads.trailing_zeros();
    let rows = params.rows as u64;
    let step = grid_dim_x() as u64 * rows;
    let mut first = block_idx_x() as u64 * rows;
    while first < params.m {
        nounroll();
        let here = rows.min(params.m - first) as u32;
        // SAFETY: the whole block; the rows fit the tile, which nobody reads any more.
        let tile = unsafe { Tile::fill::<V>(params.row(first), here * n, thread, THREADS, words) };
        sync_threads();
        let in_words = !SEVERAL && tile.in_words::<V>(n);
        let present = tile::present::<Op, V>(n, groups, in_words);
        let mut pass = 0;
        while pass < here {
            nounroll();
            let row = pass + at;
            let op = &operator(&params.op, first + row as u64, row < here);
            let mut acc = op.identity();
            if row < here {
                let value = |group: u32| {
                    // SAFETY: written before the barrier; a row of the tile.
                    unsafe { tile::group_value::<Op, V>(op, &tile, row * n, n, group, groups, in_words) }
                };
                acc = if SEVERAL { several_groups(op, part * mine, mine, value) } else { value(part) };
            }
            if threads > 1 {
                let present = if Op::COMMUTATIVE && groups == present { None } else { Some(present) };
                // SAFETY: the whole warp is here.
                acc = unsafe { warps::reduce_width(op, acc, thread % 32, threads, present) };
            }
            if part == 0 && row < here {
                // SAFETY: one thread a row.
                unsafe {
                    global::store(params.output.wrapping_add((first + row as u64) as usize), op.finish(acc))
                };
            }
            pass += rows_a_pass;
        }
        first += step;
        if first < params.m {
            sync_threads();
        }
    }
    let_next_start();
}

/// The values of `count` groups, a power of two up to [`GROUPS_A_THREAD`], combined pairwise as they come.
#[inline(always)]
fn several_groups<Op: Monoid>(op: &Op, first: u32, count: u32, value: impl Fn(u32) -> Op::Acc) -> Op::Acc {
    let mut levels = [op.identity(); GROUPS_A_THREAD.trailing_zeros() as usize];
    let mut acc = op.identity();
    let mut k = 0;
    while k < count {
        nounroll();
        acc = value(first + k);
        // As a counter carries; after the last one all levels that there are have met.
        let mut carries = true;
        let mut level = 0;
        while level < levels.len() {
            if carries {
                carries = k >> level & 1 != 0;
                if carries {
                    acc = op.combine(levels[level], acc);
                } else {
                    levels[level] = acc;
                }
            }
            level += 1;
        }
        k += 1;
    }
    acc
}

/// Rows of at most `128 * V` items, `groups` threads each (a power of two up to 32), straight from global memory.
///
/// # Safety
///
/// As many blocks of [`THREADS`] as all rows take; the rows' items are readable and `m` results writable; `groups` is that of
/// the row's [`Shape`](warpfold_monoid::tree::Shape).
#[inline(always)]
pub unsafe fn warp<Op: Monoid, const V: usize, const U: usize>(params: &RowParams<Op>) {
    grid::wait_for_previous();
    let (thread, groups, n) = (thread_idx_x(), params.groups, params.n);
    let (lane, group) = (thread % 32, thread & (groups - 1));
    let rows_a_block = (THREADS >> groups.trailing_zeros()) as u64;
    let row = block_idx_x() as u64 * rows_a_block + (thread >> groups.trailing_zeros()) as u64;
    let there = row < params.m;
    let op = &operator(&params.op, row, there);
    let items = params.row(row);
    let acc = if Op::ANY_ORDER {
        let mut acc = op.identity();
        if there {
            // SAFETY: a row.
            acc = unsafe { any_order::<Op, V, U>(op, items, n, group, groups) };
        }
        // SAFETY: the whole warp is here.
        unsafe { warps::reduce_width(op, acc, lane, groups, Some((groups as u64).min(n) as u32)) }
    } else if Op::COMMUTATIVE {
        let mut acc = [op.identity(); V];
        if there {
            // SAFETY: a row.
            acc = unsafe {
                lanes::fold_in_place::<Op, V>(op, params.reach(), items, 0, n as u32, group, groups)
            };
        }
        // Several groups all have their lanes: `n` is more than twice those.
        if groups > 1 {
            let acc = lanes::combine_slots(op, acc, group, None);
            // SAFETY: the whole warp is here.
            unsafe { warps::reduce_width(op, acc, lane, groups, None) }
        } else {
            lanes::combine_slots(op, acc, group, Some(n.min(V as u64) as u32))
        }
    } else {
        let mut acc = op.identity();
        let strip = VECTORS_A_GROUP * V as u64;
        let start = group as u64 * strip;
        if there && start < n {
            // SAFETY: a part of a row.
            acc = unsafe { ordered::strip::<Op, V, U>(op, items, start, strip.min(n - start)) };
        }
        // SAFETY: the whole warp is here.
        unsafe { warps::reduce_width(op, acc, lane, groups, Some(n.div_ceil(strip) as u32)) }
    };
    let_next_start();
    if group == 0 && there {
        // SAFETY: one thread a row.
        unsafe { global::store(params.output.wrapping_add(row as usize), op.finish(acc)) };
    }
}

/// Groups up to which a load of a whole warp has vectors of several rows, or of several of a group.
const MAX_TRANSPOSED: u32 = 8;

/// Vectors of a group that is full.
const FULL_GROUP: usize = VECTORS_A_GROUP as usize;

/// Do rows lie side by side, and is each as many vectors as its groups hold, which are so few?
#[inline(always)]
fn fills_groups<Op: Monoid, const V: usize>(params: &RowParams<Op>) -> bool {
    let can = const { size_of::<[Op::Item; V]>() == VECTOR_BYTES && Op::COMMUTATIVE && !Op::ANY_ORDER };
    can && params.groups <= MAX_TRANSPOSED
        && params.n == (params.groups as usize * V * FULL_GROUP) as u64
        && params.stride == params.n as i64
        && params.input.addr().is_multiple_of(VECTOR_BYTES)
}

/// Rows that [fill their groups](fills_groups): a warp loads vectors that lie side by side, and its lanes exchange them, so that each has
/// a group's. (Loaded by the lanes that fold them, vectors of several lines of memory come at once, in as many steps; and by way of
/// shared memory, their reading has conflicts of banks.)
///
/// # Safety
///
/// As for [`small`].
#[inline(always)]
unsafe fn transposed<Op: Monoid, const V: usize>(params: &RowParams<Op>) {
    grid::wait_for_previous();
    let (thread, groups) = (thread_idx_x(), params.groups);
    let (lane, group, log) = (thread % 32, thread & (groups - 1), groups.trailing_zeros());
    let rows = 32 >> log;
    let step = grid_dim_x() as u64 * ((THREADS / 32) * rows) as u64;
    let mut first_row = (block_idx_x() as u64 * (THREADS / 32) as u64 + (thread / 32) as u64) * rows as u64;
    while first_row < params.m {
        nounroll();
        // Those that are not there are stood in for by the last.
        let there = (params.m - first_row).min(rows as u64) as u32;
        let last = there * groups * FULL_GROUP as u32 - 1;
        let from = params.row(first_row).cast::<[u32; 4]>();
        let mut vectors: [[u32; 4]; FULL_GROUP] = core::array::from_fn(|k| {
            let at = (k as u32 * 32 + lane).min(last);
            // SAFETY: an aligned vector of the rows. Nothing is read twice, but by those without a row.
            unsafe { global::load_vector_with::<NoAllocate, u32, 4>(from.wrapping_add(at as usize).cast()) }
        });
        // Number `k * 32 + lane` is a row's vector: bits from the lowest on are the group, its vector, and the row. So lanes have the bits of
        // what vector of the group it is, and the registers `k` some of the row.
        let mut bit = 0;
        while bit < 2 {
            let distance = groups << bit;
            let upper = lane & distance != 0;
            let mut k = 0;
            while k < FULL_GROUP {
                if k >> bit & 1 == 0 {
                    let other = k | 1 << bit;
                    let sent = if upper { vectors[k] } else { vectors[other] };
                    // SAFETY: the whole warp is here: all its lanes have the same first row.
                    let got = unsafe { shuffle_xor(FULL, sent, distance) };
                    if upper {
                        vectors[k] = got;
                    } else {
                        vectors[other] = got;
                    }
                }
                k += 1;
            }
            bit += 1;
        }
        // Now the lane's bits in the place of the vector's are the row's upper ones.
        let place = ((lane >> log & 3) << (3 - log)) | lane >> (log + 2);
        let row = first_row + place as u64;
        let there = place < there;
        let op = &operator(&params.op, row, there);
        let mut acc = op.identity();
        if there {
            let mut lanes = [acc; V];
            let mut k = 0;
            while k < FULL_GROUP {
                // SAFETY: 16 bytes of plain data, which are `V` items.
                let items = unsafe { core::mem::transmute_copy::<[u32; 4], [Op::Item; V]>(&vectors[k]) };
                let mut slot = 0;
                while slot < V {
                    let index = ((k as u32 * groups + group) * V as u32 + slot as u32) as u64;
                    let item = items[slot];
                    lanes[slot] =
                        if k == 0 { op.lift(item, index) } else { op.push(lanes[slot], item, index) };
                    slot += 1;
                }
                k += 1;
            }
            acc = lanes::combine_slots(op, lanes, group, None);
        }
        // SAFETY: the whole warp is here.
        let acc = unsafe { warps::reduce_width(op, acc, lane, groups, None) };
        if group == 0 && there {
            // SAFETY: one thread a row.
            unsafe { global::store(params.output.wrapping_add(row as usize), op.finish(acc)) };
        }
        first_row += step;
    }
    let_next_start();
}

/// A group's share of a row whose order does not matter; the first `n` groups have one.
///
/// # Safety
///
/// `items` are `n` readable ones.
#[inline(always)]
unsafe fn any_order<Op: Monoid, const V: usize, const U: usize>(
    op: &Op,
    items: *const Op::Item,
    n: u64,
    group: u32,
    groups: u32,
) -> Op::Acc {
    let n = n as u32;
    let mut acc = op.identity();
    let mut begun = false;
    let in_vectors =
        V > 1 && n >= groups * V as u32 && items.addr().is_multiple_of(size_of::<[Op::Item; V]>());
    let mut single = 0;
    if in_vectors {
        let vectors = n / V as u32;
        let batch: [_; U] = core::array::from_fn(|u| {
            let w = group + u as u32 * groups;
            // SAFETY: an aligned vector of the row.
            unsafe {
                global::load_neighbours_if::<Plainly, Op::Item, V>(
                    w < vectors,
                    items.wrapping_add(w as usize * V),
                )
            }
        });
        let mut u = 0;
        while u < U {
            let w = group + u as u32 * groups;
            if w < vectors {
                // SAFETY: loaded under the same condition.
                let value = op.fold_many(unsafe { batch[u].assume_init() }, w as u64 * V as u64);
                acc = if u == 0 { value } else { op.combine(acc, value) };
            }
            u += 1;
        }
        begun = true;
        single = vectors * V as u32;
    } else {
        cold_path();
    }
    let mut i = single + group;
    while i < n {
        nounroll();
        // SAFETY: within the row.
        let item = unsafe { global::load(items.wrapping_add(i as usize)) };
        acc = if begun { op.push(acc, item, i as u64) } else { op.lift(item, i as u64) };
        begun = true;
        i += groups;
    }
    acc
}

/// Can a thread of [`block()`] hold the lanes of two groups? Where they take few registers.
pub const fn takes_two(item_bytes: usize, acc_bytes: usize) -> bool {
    vector_len(item_bytes) * acc_bytes <= 32
}

/// Are rows of `n` items little more than half of what their groups hold, so that a thread of [`block()`] has two groups, and then as
/// much in flight as if groups were full? Five vectors a thread, at most. (Threads of [`warp`] would need more than the 32 registers
/// with which a multiprocessor is full.)
pub const fn is_half(n: u64, groups: u32, vector: u32) -> bool {
    groups >= 64 && 2 * n <= 5 * groups as u64 * vector as u64
}

/// The values of two groups of a row that [`is_half`], `thread` and `thread + threads` of twice as many: all items are asked for before
/// any is used. (Asked for one group after the other, half as much is in flight: rows of 1025 and 4097 `f32` took 70 to 96 us, by the card, in
/// place of 61.)
///
/// # Safety
///
/// `items` points to the row's `len` items, which are more than half of what the groups hold; all of `reach` is readable.
#[inline(always)]
unsafe fn two_groups<Op: Monoid, const V: usize>(
    op: &Op,
    reach: Reach,
    items: *const Op::Item,
    len: u32,
    thread: u32,
    threads: u32,
) -> [Op::Acc; 2] {
    // As many rounds of vectors are whole; then the first group may have another.
    const WHOLE: usize = VECTORS_IN_FLIGHT;
    let in_vectors =
        !global::is_vector::<Op::Item, V>() || items.addr().is_multiple_of(size_of::<[Op::Item; V]>());
    if !in_vectors && size_of::<Op::Item>() < 4 {
        cold_path();
        return [thread, thread + threads].map(|group| {
            // SAFETY: the caller's promise.
            let acc = unsafe { lanes::fold_in_place::<Op, V>(op, reach, items, 0, len, group, 2 * threads) };
            // All lanes have an item.
            lanes::combine_slots(op, acc, group, None)
        });
    }
    let stride = threads as usize * V;
    let first = thread as usize * V;
    let next = items.wrapping_add(first);
    let last = first + WHOLE * stride;
    let load_rest = || -> [_; V] {
        core::array::from_fn(|slot| {
            let there = ((last + slot) as u32) < len;
            // SAFETY: an item of the row, if it is there.
            unsafe { global::load_if::<Plainly, Op::Item>(there, items.wrapping_add(last + slot)) }
        })
    };
    let fold = |rounds: [[Op::Item; V]; WHOLE], rest: [MaybeUninit<Op::Item>; V]| -> [Op::Acc; 2] {
        let mut acc: [[Op::Acc; V]; 2] = core::array::from_fn(|which| {
            core::array::from_fn(|slot| op.lift(rounds[which][slot], (first + which * stride + slot) as u64))
        });
        let mut round = 2;
        while round < WHOLE {
            let mut slot = 0;
            while slot < V {
                let to = &mut acc[round % 2][slot];
                *to = op.push(*to, rounds[round][slot], (first + round * stride + slot) as u64);
                slot += 1;
            }
            round += 1;
        }
        let mut slot = 0;
        while slot < V {
            if ((last + slot) as u32) < len {
                // SAFETY: loaded under the same condition.
                acc[0][slot] =
                    op.push(acc[0][slot], unsafe { rest[slot].assume_init() }, (last + slot) as u64);
            }
            slot += 1;
        }
        // All lanes have an item.
        [
            lanes::combine_slots(op, acc[0], thread, None),
            lanes::combine_slots(op, acc[1], thread + threads, None),
        ]
    };
    if in_vectors {
        let rounds: [[Op::Item; V]; WHOLE] = core::array::from_fn(|round| {
            // SAFETY: an aligned vector of the row. Nothing is read twice.
            unsafe {
                global::load_neighbours_with::<NoAllocate, Op::Item, V>(next.wrapping_add(round * stride))
            }
        });
        fold(rounds, load_rest())
    } else {
        let rounds: [[Op::Item; V]; WHOLE] = core::array::from_fn(|round| {
            // SAFETY: an item of the row.
            core::array::from_fn(|slot| unsafe { global::load(next.wrapping_add(round * stride + slot)) })
        });
        fold(rounds, load_rest())
    }
}

/// Combines what the threads of a warp have of two groups each, as [`two_groups`] gives them: even lanes go on with the first groups, odd
/// ones with the second, so that both take no longer than one. Lane 0 has the value of the first groups, and lane 1 that of the second.
///
/// # Safety
///
/// All 32 lanes of the warp call.
#[inline(always)]
unsafe fn combine_two<Op: Monoid>(op: &Op, [first, second]: [Op::Acc; 2], lane: u32) -> Op::Acc {
    let odd = lane & 1 != 0;
    // SAFETY: all lanes are here.
    let other = unsafe { shuffle_xor(FULL, if odd { first } else { second }, 1) };
    let acc = if odd { op.combine(other, second) } else { op.combine(first, other) };
    // SAFETY: as above.
    unsafe { combine_every_other(op, acc, 32) }
}

/// Combines the values of even lanes pairwise, neighbours first, and those of odd ones, of the first `width` lanes; all are there.
///
/// # Safety
///
/// All 32 lanes of the warp call.
#[inline(always)]
unsafe fn combine_every_other<Op: Monoid>(op: &Op, mut acc: Op::Acc, width: u32) -> Op::Acc {
    let mut distance = 2;
    while distance < width {
        // Lanes between combine too, harmlessly: nobody reads them.
        // SAFETY: all lanes are here.
        acc = op.combine(acc, unsafe { shuffle_down(FULL, acc, distance) });
        distance *= 2;
    }
    acc
}

/// The value of a row of one chunk that [`is_half`], in thread 0, by half as many threads as it has groups.
///
/// # Safety
///
/// The whole block of `groups / 2` threads calls, at least 32; the row has more than half of the items that the groups hold; `shared` has
/// a slot for each 32 groups, which are not in use.
#[inline(always)]
unsafe fn two_each<Op: Monoid, const V: usize>(
    params: &RowParams<Op>,
    op: &Op,
    row: u64,
    shared: Shared<Op::Acc>,
) -> Op::Acc {
    let (thread, threads, len) = (thread_idx_x(), params.groups / 2, params.n as u32);
    let (warp, lane, warps) = (thread / 32, thread % 32, threads / 32);
    // SAFETY: the caller's promise; the whole warp is here.
    let mut acc = unsafe {
        let both = two_groups::<Op, V>(op, params.reach(), params.row(row), len, thread, threads);
        combine_two(op, both, lane)
    };
    if warps > 1 {
        if lane < 2 {
            // SAFETY: one thread, one slot.
            unsafe { shared.write((2 * warp + lane) as usize, acc) };
        }
        sync_threads();
        if warp > 0 {
            return acc;
        }
        // SAFETY: written before the barrier, by warps that exist; the whole first warp is here.
        acc = unsafe {
            let slot = lane & (2 * warps - 1);
            combine_every_other(op, shared.read(slot as usize), 2 * warps)
        };
    }
    // SAFETY: the whole first warp, or the only one, is here.
    let second = unsafe { shuffle_down(FULL, acc, 1) };
    op.combine(acc, second)
}

/// Rows of one chunk, a block each.
///
/// # Safety
///
/// `m` blocks of `max(groups, 32)` threads, or, where a thread [`takes_two`], the row [`is_half`], of half as many; the rows' items are readable and `m` results writable; `groups` is that of the row's
/// [`Shape`](warpfold_monoid::tree::Shape). `shared` has a slot for each 32 groups.
#[inline(always)]
pub unsafe fn block<Op: Monoid, const V: usize, const U: usize>(
    params: &RowParams<Op>,
    shared: Shared<Op::Acc>,
) {
    grid::wait_for_previous();
    let row = block_idx_x() as u64;
    let op = &operator(&params.op, row, true);
    let acc = if takes_two(size_of::<Op::Item>(), size_of::<Op::Acc>())
        && Op::COMMUTATIVE
        && !Op::ANY_ORDER
        && block_dim_x() < params.groups
    {
        // SAFETY: the caller's promise.
        unsafe { two_each::<Op, V>(params, op, row, shared) }
    } else {
        // SAFETY: the caller's promise.
        unsafe { chunk_value::<Op, V, U>(params, op, row, 0, params.n, params.groups, shared) }
    };
    let_next_start();
    if thread_idx_x() == 0 {
        // SAFETY: one thread a row.
        unsafe { global::store(params.output.wrapping_add(row as usize), op.finish(acc)) };
    }
}

/// Warps' values that a block of [`large`] keeps: those of up to [`FOLD_LANES`] chunks, if accumulators are small.
pub const fn kept(acc_bytes: usize) -> u32 {
    let fit = (8 << 10) / if acc_bytes == 0 { 1 } else { acc_bytes };
    let most = (FOLD_LANES * MAX_GROUPS / 32) as usize;
    let fit = if fit < 2 * blocks::SHARED { 2 * blocks::SHARED } else { fit };
    1 << (if fit > most { most } else { fit }).ilog2()
}

/// Chunks of so many groups that a block of [`large`] folds at most.
pub const fn most_chunks(acc_bytes: usize, groups: u32) -> u32 {
    let most = kept(acc_bytes) / groups.div_ceil(32);
    if most > FOLD_LANES { FOLD_LANES } else { most }
}

/// May blocks of [`large`] have [`MAX_GROUPS`] threads, too? Where lanes take few registers.
pub const fn takes_most(item_bytes: usize, acc_bytes: usize, commutative: bool, any_order: bool) -> bool {
    commutative && !any_order && takes_two(item_bytes, acc_bytes)
}

/// The launch bounds of [`large`].
pub const fn large_bounds<Op: Monoid>() -> u32 {
    if takes_most(size_of::<Op::Item>(), size_of::<Op::Acc>(), Op::COMMUTATIVE, Op::ANY_ORDER) {
        export::few_lanes::<Op>(MAX_GROUPS, 2)
    } else {
        export::few_lanes::<Op>(SHORT_GROUPS, 4)
    }
}

/// Slots of shared memory of [`large`].
pub const fn slots<Op: Monoid>() -> usize {
    (kept(size_of::<Op::Acc>()) + FOLD_LANES) as usize
}

/// Rows of several chunks of no more vectors than threads have in flight, a block for one or some of them. A block that has all chunks of a
/// row folds their values, too; else the last of a row's to finish does.
///
/// The warps of a block fold their parts of one chunk after the other, without a barrier, and leave their values in shared memory.
///
/// # Safety
///
/// `m` times `chunks.div_ceil(chunks_a_block)` blocks of `groups` threads, [`most_chunks`] to a block at most; the rows' items are
/// readable and `m` results writable; `partials` and `tickets` are as they say and belong to this launch alone. `shared` has
/// [`slots`].
#[inline(always)]
pub unsafe fn large<Op: Monoid, const V: usize, const U: usize>(
    params: &RowParams<Op>,
    shared: Shared<Op::Acc>,
) {
    grid::wait_for_previous();
    let (groups, thread) = (params.groups, thread_idx_x());
    let blocks_a_row = params.chunks.div_ceil(params.chunks_a_block);
    let row = block_idx_x() / blocks_a_row;
    let first = (block_idx_x() - row * blocks_a_row) * params.chunks_a_block;
    let done = (params.chunks - first).min(params.chunks_a_block);
    let array = params.array(row as u64);
    if Op::ANY_ORDER || !Op::COMMUTATIVE {
        let mut slots = 0;
        let mut k = 0;
        while k < done {
            nounroll();
            let start = (first + k) as u64 * params.chunk;
            let len = params.chunk.min(params.n - start);
            // One chunk's slots are read while the next one's are written; a barrier lies between every other use.
            let shared = shared.from(slots);
            slots ^= blocks::SHARED;
            // SAFETY: the caller's promise.
            let acc =
                unsafe { device::chunk_value::<Op, V, U>(&array, start, len, SHORT_GROUPS, false, shared) };
            if thread == 0 {
                // SAFETY: one block, one chunk, one partial.
                unsafe { global::store(array.partials.wrapping_add((first + k) as usize), acc) };
            }
            k += 1;
        }
        let_next_start();
        // SAFETY: the whole block; so many more chunks are done, by its thread 0.
        return unsafe { finish_chunks(&array, done) };
    }
    let (op, lanes) = (&array.op, groups * V as u32);
    let (warp, lane, warps) = (thread / 32, thread % 32, groups / 32);
    // Of a chunk that has not all lanes, the last of a row, as many threads have some.
    let present = |len: u32| (len < lanes).then(|| len.div_ceil(V as u32));
    let mut k = 0;
    // Of whole chunks of aligned vectors the next one's are asked for before the last one's are used.
    if global::is_vector::<Op::Item, V>() && array.input.addr().is_multiple_of(VECTOR_BYTES) {
        let start = first as u64 * params.chunk;
        let whole = done.min(((params.n - start) / params.chunk) as u32);
        let chunk = |k: u32| {
            array
                .input
                .wrapping_add((start + k as u64 * params.chunk) as usize + (thread * V as u32) as usize)
        };
        let ask = |k: u32| -> [_; VECTORS_IN_FLIGHT] {
            let from = chunk(k);
            core::array::from_fn(|u| {
                // SAFETY: an aligned vector of a chunk that is whole. Nothing is read twice.
                unsafe {
                    global::load_neighbours_if::<NoAllocate, Op::Item, V>(
                        k < whole,
                        from.wrapping_add(u * lanes as usize),
                    )
                }
            })
        };
        let mut next = ask(0);
        while k < whole {
            nounroll();
            let now = next;
            next = ask(k + 1);
            let mut index = start + k as u64 * params.chunk + (thread * V as u32) as u64;
            let mut acc = [op.identity(); V];
            let mut u = 0;
            while u < VECTORS_IN_FLIGHT {
                // SAFETY: loaded: the chunk is whole.
                let vector = unsafe { now[u].assume_init() };
                acc = if u == 0 {
                    lanes::lift_vector(op, vector, index)
                } else {
                    lanes::push_vector(op, acc, vector, index)
                };
                index += lanes as u64;
                u += 1;
            }
            // SAFETY: all lanes of the warp are here.
            let acc = unsafe {
                warps::reduce_width(op, lanes::combine_slots(op, acc, thread, None), lane, 32, None)
            };
            if lane == 0 {
                // SAFETY: one warp, one slot a chunk.
                unsafe { shared.write((k * warps + warp) as usize, acc) };
            }
            k += 1;
        }
    }
    let mut threads = None;
    while k < done {
        nounroll();
        let start = (first + k) as u64 * params.chunk;
        let len = params.chunk.min(params.n - start) as u32;
        threads = present(len);
        // SAFETY: the caller's promise.
        let acc = unsafe {
            let items = array.input.wrapping_add(start as usize);
            lanes::fold_in_place::<Op, V>(op, params.reach(), items, start, len, thread, groups)
        };
        // SAFETY: all lanes of the warp are here.
        let acc = unsafe {
            if threads.is_none() {
                warps::reduce_width(op, lanes::combine_slots(op, acc, thread, None), lane, 32, None)
            } else {
                cold_path();
                let here = threads.map(|threads| threads.saturating_sub(32 * warp));
                let acc = lanes::combine_slots(op, acc, thread, Some(len));
                warps::reduce_width(op, acc, lane, 32, here)
            }
        };
        if lane == 0 {
            // SAFETY: one warp, one slot a chunk.
            unsafe { shared.write((k * warps + warp) as usize, acc) };
        }
        k += 1;
    }
    let_next_start();
    sync_threads();
    // Each warp combines the values of as many chunks as its lanes hold, in the first of them.
    let together = 32 / warps;
    if warp > 0 && done <= together {
        return;
    }
    let (at, last) = (warp * 32 + lane, done * warps - 1);
    // SAFETY: written before the barrier; all lanes of the warp are here.
    let mut value = unsafe {
        let acc = shared.read(at.min(last) as usize);
        // All warps have some of all chunks but the row's last.
        let here = threads.map(|threads| if at / warps + 1 == done { threads.div_ceil(32) } else { warps });
        warps::reduce_width(op, acc, lane, warps, here)
    };
    // SAFETY: as above.
    value = unsafe { shuffle_idx(FULL, value, (lane * warps) & 31) };
    if done > together {
        let values = shared.from(kept(size_of::<Op::Acc>()) as usize);
        let chunk = warp * together + lane;
        if lane < together && chunk < done {
            // SAFETY: one thread, one slot.
            unsafe { values.write(chunk as usize, value) };
        }
        sync_threads();
        if warp != 0 {
            return;
        }
        // SAFETY: written before the barrier.
        value = unsafe { values.read(lane.min(done - 1) as usize) };
    }
    if done == params.chunks {
        // SAFETY: the whole first warp is here.
        let acc = unsafe { warps::reduce_width(op, value, lane, FOLD_LANES, Some(done)) };
        if lane == 0 {
            // SAFETY: one thread an array.
            unsafe { global::store(array.output, op.finish(acc)) };
        }
        return;
    }
    if lane < done {
        // SAFETY: one block, one chunk, one partial.
        unsafe { global::store(array.partials.wrapping_add((first + lane) as usize), value) };
    }
    // SAFETY: the whole first warp is here, whose lanes have written so many partials.
    unsafe {
        sync_warp(FULL);
        finish_chunks(&array, done);
    }
}

/// Rows of several chunks of any length, a block for each; the last of a row's to finish folds the chunks' values.
///
/// # Safety
///
/// As for [`large`], with [`MAX_GROUPS`] groups and a chunk to a block; `shared` has a slot a warp.
#[inline(always)]
pub unsafe fn long<Op: Monoid, const V: usize, const U: usize>(
    params: &RowParams<Op>,
    shared: Shared<Op::Acc>,
) {
    grid::wait_for_previous();
    let row = block_idx_x() / params.chunks;
    let k = block_idx_x() - row * params.chunks;
    let array = params.array(row as u64);
    let start = k as u64 * params.chunk;
    let len = params.chunk.min(params.n - start);
    // SAFETY: the caller's promise.
    let acc = unsafe { device::chunk_value::<Op, V, U>(&array, start, len, MAX_GROUPS, true, shared) };
    if thread_idx_x() == 0 {
        // SAFETY: one block, one chunk, one partial.
        unsafe { global::store(array.partials.wrapping_add(k as usize), acc) };
    }
    let_next_start();
    // SAFETY: the whole block; one more chunk is done, by its thread 0.
    unsafe { finish_chunks(&array, 1) };
}

/// The value of a chunk of at most [`VECTORS_IN_FLIGHT`] vectors for each thread, in thread 0.
///
/// # Safety
///
/// The whole block calls; items `start .. start + len` of the row are readable; `op` is the row's operator.
#[inline(always)]
unsafe fn chunk_value<Op: Monoid, const V: usize, const U: usize>(
    params: &RowParams<Op>,
    op: &Op,
    row: u64,
    start: u64,
    len: u64,
    groups: u32,
    shared: Shared<Op::Acc>,
) -> Op::Acc {
    if Op::ANY_ORDER || !Op::COMMUTATIVE {
        // SAFETY: the caller's promise.
        return unsafe {
            device::chunk_value::<Op, V, U>(&params.array(row), start, len, groups, false, shared)
        };
    }
    // SAFETY: the caller's promise.
    unsafe { in_place::<Op, V>(op, params.reach(), params.row(row), start, len as u32, groups, shared) }
}

/// The value of items `start .. start + len` of an array, in thread 0: of at most [`VECTORS_IN_FLIGHT`] vectors for each
/// thread.
///
/// # Safety
///
/// The whole block of `max(groups, 32)` threads calls; the items are readable, and so is all of `reach`; `shared` has a
/// slot a warp, which are not in use.
#[inline(always)]
pub(super) unsafe fn in_place<Op: Monoid, const V: usize>(
    op: &Op,
    reach: Reach,
    array: *const Op::Item,
    start: u64,
    len: u32,
    groups: u32,
    shared: Shared<Op::Acc>,
) -> Op::Acc {
    let thread = thread_idx_x();
    let mut acc = [op.identity(); V];
    if thread < groups {
        let items = array.wrapping_add(start as usize);
        // SAFETY: the caller's promise.
        acc = unsafe { lanes::fold_in_place::<Op, V>(op, reach, items, start, len, thread, groups) };
    }
    let lanes = groups * V as u32;
    if len >= lanes && groups >= 32 {
        let acc = lanes::combine_slots(op, acc, thread, None);
        // SAFETY: the whole block.
        return unsafe { blocks::reduce_width(op, acc, thread, groups, None, shared) };
    }
    cold_path();
    let present = len.min(lanes);
    let acc = lanes::combine_slots(op, acc, thread, Some(present));
    // SAFETY: the whole block.
    unsafe { blocks::reduce_width(op, acc, thread, groups, Some(present.div_ceil(V as u32)), shared) }
}

/// Counts `done` chunks of an array as done; whoever counts the last folds all their values into the array's result.
///
/// # Safety
///
/// The whole block calls, and its thread 0 has written the partials of `done` chunks.
#[inline(always)]
pub(super) unsafe fn finish_chunks<Op: Monoid>(array: &ReduceParams<Op>, done: u32) {
    let thread = thread_idx_x();
    if thread >= 32 {
        return;
    }
    let mut finished = 0;
    if thread == 0 {
        // Release: the partials are visible before the ticket is. Acquire: whoever takes the last ticket sees all.
        // SAFETY: a ticket of this launch.
        finished = unsafe { atomic::fetch_add(array.ticket, done, AcqRel, Gpu) };
    }
    // SAFETY: the whole first warp is here.
    if unsafe { shuffle_idx(FULL, finished, 0) } + done != array.chunks {
        return;
    }
    // What thread 0 acquired, its warp may read from here on.
    // SAFETY: the whole first warp is here.
    unsafe { sync_warp(FULL) };
    // SAFETY: all chunks' values are written.
    let acc = unsafe { device::fold_partials(&array.op, array.partials, array.chunks, thread) };
    if thread == 0 {
        // SAFETY: one thread an array.
        unsafe {
            global::store(array.output, array.op.finish(acc));
            global::store(array.ticket, 0);
        }
    }
}

// What a thread of `warp` has in flight is what a group takes in at most.
const _: () = assert!(VECTORS_IN_FLIGHT as u64 == VECTORS_A_GROUP && VECTOR_BYTES == size_of::<Word>());
