//! Reductions by tag: `tags[i] < k` says to which of `k` results item `i` belongs, in any order.
//!
//! The order is that of [`warpfold_monoid::keyed`]. A warp takes a chunk and keeps a value for each tag in shared memory, of which
//! no other warp knows: [`few`] tags have a column for each lane, so that lanes never meet; of [`many`] there is one for the whole warp,
//! whose lanes find those that have the same tag, combine, and let the first of them add what they have. Either writes the chunk's
//! values, and [`fold`], a launch of its own that starts as the first ends, combines those of all chunks. No value depends on
//! which warp ran when.
//!
//! Operators whose order is free have another way: [`gather`](mod@gather), and for very many tags [`partition`]. More tags than a warp keeps
//! values of are [`sorted`].

use warpfold_monoid::{
    Atomic, Monoid, Plain,
    keyed::{FOLD_LANES, LANES, TAG_STRIP, table_bytes},
};
use warpfold_simt::{
    atomic::{self, Gpu, Relaxed},
    global::{self, hint::NoAllocate},
    grid,
    hint::{cold_path, nounroll, pinned},
    shared::{Shared, dynamic_shared},
    thread::{block_dim_x, block_idx_x, sync_threads, thread_idx_x},
    warp::{
        FULL, shuffle_down, shuffle_idx, sync_warp, warp_match_any, warp_vote_all, warp_vote_any,
        warp_vote_ballot,
    },
};

use crate::export::bounds;
pub use crate::segments::tile::Word;

pub mod gather;
pub mod partition;
pub mod sorted;

/// The parameters of all kernels. The host fills it, the kernel receives it by value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TagParams<Op: Monoid> {
    /// The tags, of [`width`](TagParams::width); aligned to it.
    pub tags: *const u8,
    /// As many values; aligned to the item.
    pub values: *const Op::Item,
    /// How many.
    pub n: u64,
    /// A result for each tag.
    pub output: *mut Op::Output,
    /// A value for each tag and chunk: those of a tag lie side by side. A value for each tag, where they are [gathered](gather).
    pub partials: *mut Op::Acc,
    /// Whether it is there. The room of [lists](partition::Lists), where pairs are split.
    pub present: *mut u8,
    /// `u64::MAX`, or nothing: receives the least index of a tag that is out of range.
    pub first_bad: *mut u64,
    /// Items of a chunk.
    pub chunk: u64,
    /// Tags, less than 2^31.
    pub k: u32,
    /// Chunks.
    pub chunks: u32,
    /// Tags of a range, whose values a warp keeps: at least 1.
    pub range: u32,
    /// Which integers the tags are: one of [`width`].
    pub width: u32,
    /// Copies of a block's table, as a power of two, where values are [gathered](gather).
    pub copies: u32,
    /// 1 if such a table has places for floats that are out of scale.
    pub floats: u32,
    /// Lists of as many tags as a range has, where pairs are [split](partition); 0 elsewhere.
    pub lists: u32,
    /// The index of the first item, as operators are told and as tags out of range are noted.
    pub base: u64,
    /// Null, or a value for each tag that what is found is added to, on its right, in place of a result.
    pub kept: *mut Op::Acc,
    /// Whether it is there.
    pub held: *mut u8,
    /// The operator.
    pub op: Op,
}

/// The integers that tags may be.
pub mod width {
    /// `u8`.
    pub const U8: u32 = 0;
    /// `u16`.
    pub const U16: u32 = 1;
    /// `u32` or `i32`, whose negative numbers are beyond all tags.
    pub const WORD: u32 = 2;
    /// `u64` or `i64`.
    pub const LONG: u32 = 3;
    /// `i8`.
    pub const I8: u32 = 4;
    /// `i16`.
    pub const I16: u32 = 5;
}

/// Items that a lane takes at once.
const STRIP: usize = TAG_STRIP as usize;

/// Strips that it has in flight, as the kernel's `F`: as many as registers allow.
pub const fn strips<Op: Monoid>() -> usize {
    if size_of::<Op::Item>() <= 4 { 4 } else { 2 }
}

/// Rows whose items a warp takes at once where tags have no columns, as the kernel's `R`: as many as registers allow.
pub const fn rows<Op: Monoid>() -> usize {
    if size_of::<Op::Item>() <= 4 { 4 } else { 3 }
}

/// As many tags are told apart bit by bit.
const MATCHED: u32 = 1024;

/// A tag that is out of range whatever the range.
const NONE: u32 = u32::MAX;

/// Threads of the kernel that combines chunks' values.
pub const FOLD_THREADS: u32 = FOLD_LANES;

/// Its warps.
pub const FOLD_WARPS: usize = (FOLD_THREADS / LANES) as usize;

/// Bytes of shared memory, at most, that a block has beside its dynamic ones, for kernels that ask for more of those than every block has.
pub fn static_bytes(kernel: &str) -> Option<u32> {
    if gather::KERNELS.contains(&kernel) {
        Some(gather::STATIC_BYTES)
    } else if partition::KERNELS.contains(&kernel) {
        Some(partition::STATIC_BYTES)
    } else {
        None
    }
}

/// Tags of which a block combines the chunks' values.
pub const fn fold_tags(lanes: u32) -> u32 {
    FOLD_THREADS / lanes
}

/// The most threads of a block.
pub const THREADS: u32 = 256;

/// The kernels' launch bounds: a block's threads, and how many blocks a multiprocessor is to hold where accumulators leave
/// registers for it.
pub const fn launch_bounds<Op: Monoid>() -> u32 {
    if size_of::<Op::Acc>() <= 8 { THREADS | 3 << 16 } else { bounds::<Op>(THREADS) }
}

/// The same for [`many`]: fewer registers, as it waits less for memory than for what it computes.
pub const fn many_bounds<Op: Monoid>() -> u32 {
    if size_of::<Op::Acc>() <= 8 { THREADS | 4 << 16 } else { bounds::<Op>(THREADS) }
}

/// A tag as an index: what is negative, or needs more than 32 bits, is beyond all tags.
///
/// # Safety
///
/// It is there.
#[inline(always)]
unsafe fn load_tag(tags: *const u8, kind: u32, i: u64) -> u32 {
    let i = i as usize;
    // SAFETY: the caller's promise, of a tag that there is.
    unsafe {
        match kind {
            width::U8 => global::load(tags.wrapping_add(i)) as u32,
            width::U16 => global::load(tags.cast::<u16>().wrapping_add(i)) as u32,
            width::WORD => global::load(tags.cast::<u32>().wrapping_add(i)),
            width::LONG => narrowed(global::load(tags.cast::<u64>().wrapping_add(i))),
            width::I8 => global::load(tags.cast::<i8>().wrapping_add(i)) as i32 as u32,
            _ => global::load(tags.cast::<i16>().wrapping_add(i)) as i32 as u32,
        }
    }
}

#[inline(always)]
fn narrowed(tag: u64) -> u32 {
    if tag >> 32 == 0 { tag as u32 } else { NONE }
}

/// The values of a strip.
///
/// # Safety
///
/// They are there, and the first lies where a vector may.
#[inline(always)]
unsafe fn load_values<T: Plain>(values: *const T, i: u64) -> [T; STRIP] {
    let first = values.wrapping_add(i as usize);
    // SAFETY: the caller's promise.
    unsafe {
        if const { global::is_vector::<T, STRIP>() } {
            return global::load_neighbours_with::<NoAllocate, T, STRIP>(first);
        }
        if const { global::is_vector::<T, 2>() } {
            let [a, b] = global::load_neighbours_with::<NoAllocate, T, 2>(first);
            let [c, d] = global::load_neighbours_with::<NoAllocate, T, 2>(first.wrapping_add(2));
            return [a, b, c, d];
        }
        core::array::from_fn(|s| global::load(first.wrapping_add(s)))
    }
}

/// Notes that a tag is out of range.
///
/// # Safety
///
/// `first_bad` is the launch's, or null.
#[inline(always)]
unsafe fn note_bad(first_bad: *mut u64, index: u64) {
    cold_path();
    if !first_bad.is_null() {
        // SAFETY: the caller's promise. Most come too late, and spare the others their wait.
        unsafe {
            if global::load_relaxed_gpu(first_bad.cast_const()) > index {
                atomic::fetch_min(first_bad, index, Relaxed, Gpu);
            }
        }
    }
}

/// A warp's part of the block's shared memory.
///
/// # Safety
///
/// The launch has as much for each warp.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn table(bytes: usize, warp: u32) -> Shared<Word> {
    let words = bytes / size_of::<Word>();
    // SAFETY: the caller's promise.
    let all = unsafe { dynamic_shared::<Word>((block_dim_x() / LANES) as usize * words) };
    all.from(warp as usize * words).first(words)
}

/// Reduces chunks of items with few tags, a warp each.
///
/// # Safety
///
/// The grid has warps for all chunks, of blocks that are whole warps with [`table_bytes`] of dynamic shared memory for each. Tags and
/// values are readable, `partials` and `present` writable and, like `first_bad`, this launch's alone. The operator commutes.
#[inline(always)]
pub unsafe fn few<Op: Monoid, const F: usize>(params: &TagParams<Op>) {
    grid::wait_for_previous();
    let (op, k, thread) = (&params.op, params.k, thread_idx_x());
    let (warp, lane) = (thread / LANES, thread % LANES);
    let chunk = block_idx_x() * (block_dim_x() / LANES) + warp;
    if chunk >= params.chunks {
        return;
    }
    let bytes = table_bytes(params.range as u64, size_of::<Op::Acc>(), true);
    // SAFETY: the caller's promise; a column for each lane.
    let column = unsafe { table(bytes, warp).cast::<Op::Acc>() }.from(lane as usize);
    let mut tag = 0;
    while tag < params.range {
        nounroll();
        // Read where nothing else may be, so that no read waits for a branch, and combined only if it is neutral.
        // SAFETY: the lane's own column.
        unsafe { column.write((tag * LANES) as usize, start_of(op)) };
        tag += 1;
    }

    let start = chunk as u64 * params.chunk;
    let len = params.chunk.min(params.n - start);
    let mut seen = 0_u64;
    let row = (LANES as usize * STRIP) as u64;
    let first = start + (lane as usize * STRIP) as u64;
    let mine = (lane as usize * STRIP) as u64;
    // The strip at `at`, whatever there is of it, tags of any width.
    let slowly = |seen: &mut u64, at: u64| {
        let there = (len - at - mine).min(STRIP as u64) as u32;
        let index = first + at;
        // The last item stands in for those that are not there.
        // SAFETY: items that there are.
        let (tags, items): ([u32; STRIP], [Op::Item; STRIP]) = unsafe {
            let place = |s: usize| index + (s as u32).min(there - 1) as u64;
            (
                core::array::from_fn(|s| load_tag(params.tags, params.width, place(s))),
                core::array::from_fn(|s| global::load(params.values.wrapping_add(place(s) as usize))),
            )
        };
        // SAFETY: the lane's own column.
        unsafe { take_some(params, column, seen, tags, items, there, index) };
    };
    let tags_aligned = params.tags.addr().is_multiple_of(16);
    let values_aligned = params.values.addr().is_multiple_of(16);
    // Rows whose strips are all there. Chunks are whole rows, and so their vectors are aligned as the first is.
    let whole =
        if tags_aligned && values_aligned && params.width == width::WORD { len - len % row } else { 0 };
    let mut at = 0;
    if whole > 0 {
        // The last row stands in for those behind it.
        let load = |at: u64| {
            let from = first + at.min(whole - row);
            // SAFETY: strips that there are.
            unsafe {
                let tags = params.tags.cast::<u32>().wrapping_add(from as usize);
                let tags = global::load_neighbours_with::<NoAllocate, u32, STRIP>(tags);
                (tags, load_values(params.values, from))
            }
        };
        // Each strip is asked for as another is taken in, a round before its turn: tags that are looked at before values are asked for
        // would have a warp wait for memory twice.
        let mut strips: [_; F] = core::array::from_fn(|u| load(u as u64 * row));
        while at < whole {
            nounroll();
            let mut u = 0;
            while u < F {
                let (tags, items) = strips[u];
                let most = tags.iter().fold(0, |most, &tag| if tag > most { tag } else { most });
                // SAFETY: the lane's own column.
                unsafe {
                    if (most < k) & (at < whole) {
                        take_strip(op, column, &mut seen, tags, items, params.base + first + at);
                    } else {
                        cold_path();
                        let there = if at < whole { STRIP as u32 } else { 0 };
                        take_some(params, column, &mut seen, tags, items, there, first + at);
                    }
                }
                strips[u] = load(at + F as u64 * row);
                at += row;
                u += 1;
            }
        }
        at = whole;
    }
    while at + mine < len {
        nounroll();
        slowly(&mut seen, at);
        at += row;
    }

    grid::let_next_start();
    let mut tag = 0;
    while tag < k {
        // All lanes of some tags at once, so that their shuffles overlap.
        const ABREAST: usize = 4;
        let mut has = [0_u32; ABREAST];
        let mut values: [Op::Acc; ABREAST] = core::array::from_fn(|t| {
            // SAFETY: the lane's own column, of a tag that there is.
            unsafe { column.read(((tag + t as u32).min(k - 1) * LANES) as usize) }
        });
        let mut t = 0;
        while t < ABREAST {
            let differs =
                const { starts_neutral::<Op>() } && gather::bits(values[t]) != gather::bits(start_of(op));
            let seen = differs | (seen >> (tag + t as u32).min(k - 1) & 1 != 0);
            // SAFETY: all lanes are here.
            has[t] = unsafe { warp_vote_ballot(FULL, seen) };
            t += 1;
        }
        let mut there = has;
        let mut distance = 1;
        while distance < LANES {
            let mut t = 0;
            while t < ABREAST {
                // SAFETY: all lanes are here.
                unsafe { (values[t], there[t]) = combine_at(op, values[t], there[t], lane, distance) };
                t += 1;
            }
            distance *= 2;
        }
        if lane == 0 {
            let mut t = 0;
            while t < ABREAST {
                if tag + (t as u32) < k {
                    // SAFETY: the chunk's own place.
                    unsafe { put_partial(params, tag + t as u32, chunk, has[t] != 0, values[t]) };
                }
                t += 1;
            }
        }
        tag += ABREAST as u32;
    }
}

/// Does a column start with a value that what is combined with it leaves as it is, to the bit?
const fn starts_neutral<Op: Monoid>() -> bool {
    matches!(Op::ATOMIC, Atomic::AddFloat) && size_of::<Op::Acc>() == size_of::<f64>()
}

/// What stands in a column before anything is: of sums of floats the negative zero.
#[inline(always)]
fn start_of<Op: Monoid>(op: &Op) -> Op::Acc {
    if const { starts_neutral::<Op>() } {
        // SAFETY: these accumulators are an `f64`.
        unsafe { gather::of_bits((-0.0_f64).to_bits()) }
    } else {
        op.identity()
    }
}

/// Takes a strip's items, of which the first has `index`, into a lane's column, in order; `seen` has a bit for each tag that has a value
/// there, unless that [differs](start_of) from what stood there first.
///
/// # Safety
///
/// The tags are less than the column's.
#[inline(always)]
unsafe fn take_strip<Op: Monoid>(
    op: &Op,
    column: Shared<Op::Acc>,
    seen: &mut u64,
    tags: [u32; STRIP],
    items: [Op::Item; STRIP],
    index: u64,
) {
    let place = |s: usize| tags[s] as usize * LANES as usize;
    // All read before any is written, so that they wait together; what a strip's own item changes goes from register to register.
    // SAFETY: the lane's own column.
    let old: [Op::Acc; STRIP] = core::array::from_fn(|s| unsafe { column.read(place(s)) });
    let mut new = old;
    let lifted: [Op::Acc; STRIP] = core::array::from_fn(|s| op.lift(items[s], index + s as u64));
    if const { starts_neutral::<Op>() } {
        // Only what is neutral itself may leave no trace.
        let start = gather::bits(start_of(op));
        let traceless = |s: usize| gather::bits(lifted[s]) == start;
        if traceless(0) | traceless(1) | traceless(2) | traceless(3) {
            cold_path();
            *seen |= 1 << tags[0] | 1 << tags[1] | 1 << tags[2] | 1 << tags[3];
        }
    }
    let mut s = 0;
    while s < STRIP {
        // Conditions choose between values that are there already: a branch here would cost more than they do.
        let mut value = old[s];
        let mut earlier = 0;
        while earlier < s {
            value = if tags[earlier] == tags[s] { new[earlier] } else { value };
            earlier += 1;
        }
        new[s] = if const { starts_neutral::<Op>() } {
            op.push(value, items[s], index + s as u64)
        } else {
            let has = *seen >> tags[s] & 1 != 0;
            *seen |= 1 << tags[s];
            pushed(op, value, has, lifted[s], items[s], index + s as u64)
        };
        s += 1;
    }
    let mut s = 0;
    while s < STRIP {
        // SAFETY: as above.
        unsafe { column.write(place(s), new[s]) };
        s += 1;
    }
}

/// An item pushed onto a value, if there `is` one.
#[inline(always)]
fn pushed<Op: Monoid>(
    op: &Op,
    value: Op::Acc,
    is: bool,
    lifted: Op::Acc,
    item: Op::Item,
    index: u64,
) -> Op::Acc {
    // On a GPU also onto what stands where nothing is: nobody reads what comes of it.
    let pushed = if is | cfg!(target_arch = "nvptx64") { op.push(value, item, index) } else { lifted };
    if is { pushed } else { lifted }
}

/// As [`take_strip`], of the first `there` items those whose tags are in range, and notes the first other.
///
/// # Safety
///
/// As there, and for [`note_bad`].
#[inline(always)]
unsafe fn take_some<Op: Monoid>(
    params: &TagParams<Op>,
    column: Shared<Op::Acc>,
    seen: &mut u64,
    tags: [u32; STRIP],
    items: [Op::Item; STRIP],
    there: u32,
    index: u64,
) {
    let (op, index) = (&params.op, params.base + index);
    let mut s = 0;
    let mut bad = STRIP;
    while s < STRIP {
        if (s as u32) < there {
            if tags[s] < params.k {
                let (place, index) = (tags[s] as usize * LANES as usize, index + s as u64);
                let lifted = op.lift(items[s], index);
                // SAFETY: the lane's own column.
                unsafe {
                    let has = const { starts_neutral::<Op>() } || *seen >> tags[s] & 1 != 0;
                    column.write(place, pushed(op, column.read(place), has, lifted, items[s], index));
                }
                *seen |= 1 << tags[s];
            } else {
                bad = if s < bad { s } else { bad };
            }
        }
        s += 1;
    }
    if bad < STRIP {
        // SAFETY: the caller's promise.
        unsafe { note_bad(params.first_bad, index + bad as u64) };
    }
}

/// One level of combining lanes pairwise, of which those in `there` have a value; returns which have one after.
///
/// # Safety
///
/// All lanes of the warp call, with the same `there`.
#[inline(always)]
unsafe fn combine_at<Op: Monoid>(
    op: &Op,
    value: Op::Acc,
    there: u32,
    lane: u32,
    distance: u32,
) -> (Op::Acc, u32) {
    // SAFETY: all lanes are here.
    let other = unsafe { shuffle_down(FULL, value, distance) };
    let (mine, theirs) = (there >> lane & 1 != 0, there >> lane >> distance & 1 != 0);
    let value = match (mine, theirs) {
        (true, true) => op.combine(value, other),
        (false, true) => other,
        _ => value,
    };
    (value, there | there >> distance)
}

/// Writes what a chunk has of a tag.
///
/// # Safety
///
/// The chunk's own place.
#[inline(always)]
unsafe fn put_partial<Op: Monoid>(params: &TagParams<Op>, tag: u32, chunk: u32, has: bool, value: Op::Acc) {
    let at = tag as usize * params.chunks as usize + chunk as usize;
    // SAFETY: the caller's promise.
    unsafe {
        global::store(params.present.wrapping_add(at), has as u8);
        if has {
            global::store(params.partials.wrapping_add(at), value);
        }
    }
}

/// Reduces chunks of items with any number of tags, a warp for each chunk and range of tags, which has the items of `R` rows in flight.
///
/// # Safety
///
/// As for [`few`], but that the operator need not commute.
#[inline(always)]
pub unsafe fn many<Op: Monoid, const R: usize>(params: &TagParams<Op>) {
    grid::wait_for_previous();
    let (op, thread) = (&params.op, thread_idx_x());
    let (warp, lane) = (thread / LANES, thread % LANES);
    let unit = block_idx_x() * (block_dim_x() / LANES) + warp;
    let (range, chunk) = (unit / params.chunks, unit % params.chunks);
    if range > 0 && range >= params.k.div_ceil(params.range) {
        return;
    }
    let lowest = range * params.range;
    let tags = params.range.min(params.k - lowest);
    let bytes = table_bytes(params.range as u64, size_of::<Op::Acc>(), false);
    // SAFETY: the caller's promise.
    let table = unsafe { table(bytes, warp) };
    let values_bytes = (params.range as usize * size_of::<Op::Acc>()).next_multiple_of(16);
    // SAFETY: plain data; what is read as one type has been written as it.
    let (values, has) =
        unsafe { (table.cast::<Op::Acc>(), table.from(values_bytes / size_of::<Word>()).cast::<u8>()) };
    let mut tag = lane;
    while tag < tags {
        nounroll();
        // SAFETY: the warp's own; lanes are a barrier apart from other uses.
        unsafe { has.write(tag as usize, 0) };
        tag += LANES;
    }
    // SAFETY: all lanes are here.
    unsafe { sync_warp(FULL) };

    let group = R as u32 * LANES;
    let start = chunk as u64 * params.chunk;
    let len = params.chunk.min(params.n - start);
    // The rows from `at` on, all of which are there.
    let load = |at: u64| -> ([u32; R], [Op::Item; R]) {
        let first = (start + at + lane as u64) as usize;
        let row = |u: usize| first + u * LANES as usize;
        // SAFETY: items that there are.
        unsafe {
            (
                core::array::from_fn(|u| global::load(params.tags.cast::<u32>().wrapping_add(row(u)))),
                core::array::from_fn(|u| global::load(params.values.wrapping_add(row(u)))),
            )
        }
    };
    // Where so many items are left, rows are asked for a round before their turn.
    let early = |left: u64| left >= group as u64 && pinned(params.width) == width::WORD;
    let mut ahead = ([0; R], [warpfold_monoid::zeroed::<Op::Item>(); R]);
    if early(len) {
        ahead = load(0);
    }
    let mut at = 0;
    while at < len {
        nounroll();
        // What is computed from it is not kept from round to round: registers are too few.
        let lane = pinned(lane);
        let left = (len - at).min(group as u64) as u32;
        let (mut number, mut item) = ahead;
        if !early(len - at) {
            // The last item stands in for those that are not there.
            let first = pinned(chunk) as u64 * params.chunk + at;
            let place = |u: usize| first + (u as u32 * LANES + lane).min(left - 1) as u64;
            // SAFETY: items that there are.
            unsafe {
                number = core::array::from_fn(|u| load_tag(params.tags, params.width, place(u)));
                item = core::array::from_fn(|u| global::load(params.values.wrapping_add(place(u) as usize)));
            }
        } else if early(len - at - group as u64) {
            ahead = load(at + group as u64);
        }
        let mut slot = [0_u32; R];
        let mut mine = [false; R];
        let mut value: [Op::Acc; R] = core::array::from_fn(|_| op.identity());
        let mut strange = false;
        let mut u = 0;
        while u < R {
            let place = u as u32 * LANES + lane;
            slot[u] = number[u].wrapping_sub(lowest);
            mine[u] = (place < left) & (slot[u] < tags);
            strange |= !mine[u];
            if mine[u] | cfg!(target_arch = "nvptx64") {
                value[u] = op.lift(item[u], params.base + start + at + place as u64);
            }
            u += 1;
        }
        if strange && range == 0 {
            cold_path();
            let mut u = 0;
            while u < R {
                let place = pinned(u as u32 * LANES) + lane;
                if place < left && number[u] >= params.k {
                    let start = pinned(chunk) as u64 * params.chunk;
                    // SAFETY: the caller's promise.
                    unsafe { note_bad(params.first_bad, params.base + start + at + place as u64) };
                    break;
                }
                u += 1;
            }
        }
        // SAFETY: all lanes are here, and go the same way; the warp's own table.
        unsafe {
            let one = shuffle_idx(FULL, slot[0], 0);
            if warp_vote_all(FULL, !strange & slot.iter().fold(true, |same, &slot| same & (slot == one))) {
                take_one(op, values, has, one as usize, value, lane);
            } else {
                take_rows(op, values, has, tags, slot, mine, value, lane);
            }
        }
        at += group as u64;
    }

    grid::let_next_start();
    let mut tag = pinned(lane);
    while tag < tags {
        nounroll();
        let place = tag as usize;
        // SAFETY: behind a barrier; the chunk's own places.
        unsafe {
            let has = has.read(place) != 0;
            let value = if has { values.read(place) } else { op.identity() };
            put_partial(params, lowest + tag, chunk, has, value);
        }
        tag += LANES;
    }
}

/// Takes rows in whose items all have one tag, in order.
///
/// # Safety
///
/// All lanes of the warp call; the tag has a place in its table.
#[inline(always)]
unsafe fn take_one<Op: Monoid, const R: usize>(
    op: &Op,
    values: Shared<Op::Acc>,
    has: Shared<u8>,
    place: usize,
    mut value: [Op::Acc; R],
    lane: u32,
) {
    let mut distance = 1;
    while distance < LANES {
        let mut u = 0;
        while u < R {
            // SAFETY: all lanes are here.
            let other = unsafe { shuffle_down(FULL, value[u], distance) };
            // On a GPU all lanes do, and nobody reads what comes of it in the others.
            if lane.is_multiple_of(2 * distance) || cfg!(target_arch = "nvptx64") {
                value[u] = op.combine(value[u], other);
            }
            u += 1;
        }
        distance *= 2;
    }
    if lane == 0 {
        // SAFETY: the warp's own, between barriers.
        unsafe {
            let mut all = value[0];
            if has.read(place) != 0 {
                all = op.combine(values.read(place), all);
            } else {
                has.write(place, 1);
            }
            let mut u = 1;
            while u < R {
                all = op.combine(all, value[u]);
                u += 1;
            }
            values.write(place, all);
        }
    }
    // SAFETY: all lanes are here.
    unsafe { sync_warp(FULL) };
}

/// Takes rows in, one after the other: those of a row's items that are `mine` and have the same slot combine pairwise, and the first of their lanes
/// adds what they have to the slot's value.
///
/// # Safety
///
/// All lanes of the warp call; the slots of what is `mine` are less than `tags`, which have places in its table.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn take_rows<Op: Monoid, const R: usize>(
    op: &Op,
    values: Shared<Op::Acc>,
    has: Shared<u8>,
    tags: u32,
    slot: [u32; R],
    mine: [bool; R],
    mut value: [Op::Acc; R],
    lane: u32,
) {
    // Who has another slot, bit by bit: `match` takes its time for each that differs, and less only than many bits.
    let mut differ = [0_u32; R];
    if tags > MATCHED {
        let mut u = 0;
        while u < R {
            // SAFETY: all lanes are here.
            differ[u] = unsafe { !warp_match_any(FULL, slot[u]) };
            u += 1;
        }
    } else {
        let mut bit = 1;
        while bit < tags {
            nounroll();
            let mut u = 0;
            while u < R {
                let set = slot[u] & bit != 0;
                // SAFETY: all lanes are here.
                differ[u] |= unsafe { warp_vote_ballot(FULL, set) } ^ if set { FULL } else { 0 };
                u += 1;
            }
            bit *= 2;
        }
    }
    // Of those that have a lane's slot: whether it is the first, how many are behind it, and where the next one is.
    let mut first = [false; R];
    let mut behind = [0_u32; R];
    let mut next = [0_u32; R];
    let mut most = 0;
    let mut u = 0;
    while u < R {
        // SAFETY: all lanes are here.
        let peers = unsafe { warp_vote_ballot(FULL, mine[u]) } & !differ[u];
        let above = peers & (u32::MAX - 1) << lane;
        first[u] = mine[u] & (peers & !(u32::MAX << lane) == 0);
        behind[u] = if mine[u] { above.count_ones() } else { 0 };
        next[u] = above.trailing_zeros() % LANES;
        most = if behind[u] > most { behind[u] } else { most };
        u += 1;
    }
    // They combine pairwise, neighbours first: each takes the next one's value, then that of the second next, and so on. What comes of it is read of
    // every second one, then of every fourth: of the others it does no harm, and costs nothing.
    let mut distance = 1;
    // SAFETY: all lanes are here.
    while unsafe { warp_vote_any(FULL, most >= distance) } {
        nounroll();
        let mut u = 0;
        while u < R {
            // SAFETY: all lanes are here.
            let other = unsafe { shuffle_idx(FULL, value[u], next[u]) };
            if behind[u] >= distance {
                value[u] = op.combine(value[u], other);
            }
            // SAFETY: all lanes are here.
            next[u] = unsafe { shuffle_idx(FULL, next[u], next[u]) };
            u += 1;
        }
        distance *= 2;
    }
    let mut u = 0;
    while u < R {
        if first[u] {
            let place = slot[u] as usize;
            // SAFETY: the warp's own; a place for each such lane, and barriers between rows.
            unsafe {
                if has.read(place) != 0 {
                    value[u] = op.combine(values.read(place), value[u]);
                } else {
                    has.write(place, 1);
                }
                values.write(place, value[u]);
            }
        }
        // SAFETY: all lanes are here.
        unsafe { sync_warp(FULL) };
        u += 1;
    }
}

/// Combines the chunks' values of each tag: in a warp, or if `lanes` are more, in a block.
///
/// # Safety
///
/// Blocks of [`FOLD_THREADS`], as many as tags take at [`fold_tags`] a block. The chunks' values have been written by launches before,
/// and the output is writable. `slots` and `there` have room for a value for each warp.
#[inline(always)]
pub unsafe fn fold<Op: Monoid>(params: &TagParams<Op>, slots: Shared<Op::Acc>, there: Shared<u32>) {
    grid::let_next_start();
    grid::wait_for_previous();
    let (op, thread, chunks) = (&params.op, thread_idx_x(), params.chunks);
    let (warp, lane) = (thread / LANES, thread % LANES);
    let wide = chunks > 16 * LANES;
    let (tag, place, lanes) = if wide {
        (block_idx_x(), thread, FOLD_LANES)
    } else {
        (block_idx_x() * (FOLD_THREADS / LANES) + warp, lane, LANES)
    };
    if tag >= params.k {
        return;
    }
    let run = chunks.div_ceil(lanes);
    let (mut next, end) = ((place * run).min(chunks), ((place + 1) * run).min(chunks));
    let first = tag as usize * chunks as usize;
    let (mut value, mut has) = (op.identity(), false);
    while next < end {
        nounroll();
        const BATCH: usize = 8;
        // SAFETY: written before this launch; the last stands in for those that are not there.
        let (present, batch): ([u8; BATCH], [Op::Acc; BATCH]) = unsafe {
            let at = |b: usize| first + (next + b as u32).min(end - 1) as usize;
            (
                core::array::from_fn(|b| global::load(params.present.wrapping_add(at(b)).cast_const())),
                core::array::from_fn(|b| global::load(params.partials.wrapping_add(at(b)).cast_const())),
            )
        };
        let mut b = 0;
        while b < BATCH {
            if next + (b as u32) < end && present[b] != 0 {
                value = if has { op.combine(value, batch[b]) } else { batch[b] };
                has = true;
            }
            b += 1;
        }
        next += BATCH as u32;
    }
    // SAFETY: all lanes of the warp are here: they have one tag.
    let (value, has) = unsafe { combine_lanes(op, value, has, lane) };
    if !wide {
        if lane == 0 {
            // SAFETY: the tag's own result.
            unsafe { put_result(params, tag, value, has) };
        }
        return;
    }
    if lane == 0 {
        // SAFETY: a warp's own slot.
        unsafe {
            slots.write(warp as usize, value);
            there.write(warp as usize, has as u32);
        }
    }
    sync_threads();
    if warp > 0 {
        return;
    }
    let slot = lane.min(FOLD_LANES / LANES - 1) as usize;
    // SAFETY: written before the barrier; all lanes are here.
    let (value, has) = unsafe {
        let has = lane < FOLD_LANES / LANES && there.read(slot) != 0;
        combine_lanes(op, slots.read(slot), has, lane)
    };
    if lane == 0 {
        // SAFETY: the tag's own result.
        unsafe { put_result(params, tag, value, has) };
    }
}

/// Combines what the lanes of a warp have pairwise, neighbours first; the result is in lane 0.
///
/// # Safety
///
/// All lanes of the warp call.
#[inline(always)]
unsafe fn combine_lanes<Op: Monoid>(op: &Op, mut value: Op::Acc, has: bool, lane: u32) -> (Op::Acc, bool) {
    // SAFETY: all lanes are here.
    let mut there = unsafe { warp_vote_ballot(FULL, has) };
    let any = there != 0;
    let mut distance = 1;
    while distance < LANES {
        // SAFETY: all lanes are here.
        unsafe { (value, there) = combine_at(op, value, there, lane, distance) };
        distance *= 2;
    }
    (value, any)
}

/// # Safety
///
/// The tag's own result.
#[inline(always)]
unsafe fn put_result<Op: Monoid>(params: &TagParams<Op>, tag: u32, value: Op::Acc, has: bool) {
    if !params.kept.is_null() {
        if has {
            let (kept, held) =
                (params.kept.wrapping_add(tag as usize), params.held.wrapping_add(tag as usize));
            // SAFETY: the caller's promise.
            unsafe {
                let value = if global::load(held.cast_const()) != 0 {
                    params.op.combine(global::load(kept.cast_const()), value)
                } else {
                    value
                };
                global::store(kept, value);
                global::store(held, 1);
            }
        }
        return;
    }
    let result = if has { params.op.finish(value) } else { params.op.finish_empty() };
    // SAFETY: the caller's promise.
    unsafe { global::store(params.output.wrapping_add(tag as usize), result) };
}
