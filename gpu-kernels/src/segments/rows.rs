//! Rows: segments of one length at one distance, `[m][n]`.

use core::mem::MaybeUninit;

use warpfold_monoid::{
    Monoid, Plain,
    tree::{MAX_GROUPS, VECTOR_BYTES, VECTORS_A_GROUP, vector_len},
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
    unsafe { staged::<Op, V>(params, 1, words) }
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
    // SAFETY: the caller's promise.
    unsafe { staged::<Op, V>(params, params.groups.max(2), words) }
}

/// Both of these.
///
/// # Safety
///
/// As there.
#[inline(always)]
unsafe fn staged<Op: Monoid, const V: usize>(params: &RowParams<Op>, groups: u32, words: Shared<Word>) {
    grid::wait_for_previous();
    let (thread, n) = (thread_idx_x(), params.n as u32);
    let (at, group) = (thread >> groups.trailing_zeros(), thread & (groups - 1));
    let rows_a_pass = THREADS >> groups.trailing_zeros();
    let rows = params.rows as u64;
    let step = grid_dim_x() as u64 * rows;
    let mut first = block_idx_x() as u64 * rows;
    while first < params.m {
        nounroll();
        let here = rows.min(params.m - first) as u32;
        // SAFETY: the whole block; the rows fit the tile, which nobody reads any more.
        let tile = unsafe { Tile::fill::<V>(params.row(first), here * n, thread, THREADS, words) };
        sync_threads();
        let in_words = tile.in_words::<V>(n);
        let present = tile::present::<Op, V>(n, groups, in_words);
        let mut pass = 0;
        while pass < here {
            nounroll();
            let row = pass + at;
            let op = &operator(&params.op, first + row as u64, row < here);
            let mut acc = op.identity();
            if row < here {
                // SAFETY: written before the barrier; a row of the tile.
                acc = unsafe { tile::group_value::<Op, V>(op, &tile, row * n, n, group, groups, in_words) };
            }
            if groups > 1 {
                let present = if Op::COMMUTATIVE && groups == present { None } else { Some(present) };
                // SAFETY: the whole warp is here.
                acc = unsafe { warps::reduce_width(op, acc, thread % 32, groups, present) };
            }
            if group == 0 && row < here {
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

/// Rows of several chunks, a block for one or some of them; the last of a row's to finish folds the chunks' values.
///
/// `groups` is that of the row's [`Shape`](warpfold_monoid::tree::Shape); kernels give it as a constant.
///
/// # Safety
///
/// `m` times `chunks.div_ceil(chunks_a_block)` blocks of `groups` threads; the rows' items are readable and `m` results
/// writable; `partials` and `tickets` are as they say and belong to this launch alone. `shared` has two slots a warp.
#[inline(always)]
pub unsafe fn large<Op: Monoid, const V: usize, const U: usize>(
    params: &RowParams<Op>,
    groups: u32,
    shared: Shared<Op::Acc>,
) {
    grid::wait_for_previous();
    // Blocks of long chunks have one each: a loop over several would cost registers, and so blocks at once.
    let chunks_a_block = if groups == MAX_GROUPS { 1 } else { params.chunks_a_block };
    let blocks_a_row = params.chunks.div_ceil(chunks_a_block);
    let row = block_idx_x() / blocks_a_row;
    let mut k = (block_idx_x() - row * blocks_a_row) * chunks_a_block;
    let end = params.chunks.min(k + chunks_a_block);
    let done = end - k;
    let array = params.array(row as u64);
    let mut slots = 0;
    loop {
        nounroll();
        let start = k as u64 * params.chunk;
        let len = params.chunk.min(params.n - start);
        // One chunk's slots are read while the next one's are written; a barrier lies between every other use.
        let shared = shared.from(slots);
        slots ^= blocks::SHARED;
        let acc = if Op::ANY_ORDER || !Op::COMMUTATIVE || groups == MAX_GROUPS {
            // SAFETY: the caller's promise.
            unsafe {
                device::chunk_value::<Op, V, U>(&array, start, len, groups, groups == MAX_GROUPS, shared)
            }
        } else {
            // SAFETY: the caller's promise.
            unsafe {
                in_place::<Op, V>(&array.op, params.reach(), array.input, start, len as u32, groups, shared)
            }
        };
        if thread_idx_x() == 0 {
            // SAFETY: one block, one chunk, one partial.
            unsafe { global::store(array.partials.wrapping_add(k as usize), acc) };
        }
        k += 1;
        if groups == MAX_GROUPS || k >= end {
            break;
        }
    }
    let_next_start();
    // SAFETY: the whole block; so many more chunks are done, by its thread 0.
    unsafe { finish_chunks(&array, done) };
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
