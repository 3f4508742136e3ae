//! Reductions by tag where any order will do, with more tags than blocks keep tables of: pairs are [split] by the upper bits of their
//! tags into lists, whose tags fit into a table, and then each list is [summed](sum).
//!
//! **Splitting** takes a tile after the other. A block counts how many of the tile's pairs go to each list, brings them into that order in shared
//! memory, and writes them where the tile has its place, the lower bits of tags in 16 bits. What a tile has of a list is a piece, and a word
//! for each piece says where it starts and how long it is. So nothing is reserved, and no list is longer than there is room for.
//!
//! **Summing** shares a list among as many blocks as its length asks for, every so many tiles apart: equal tags stand side by side in many
//! arrays, and so their pieces do. A block gathers what it finds as [`gather`](mod@super::gather) does.
//!
//! **Tags that repeat** at neighbouring places have it easier where they are: a warp keeps the values of one in registers. So the launch before
//! has a look at a sample, and what it notes decides on the device whether a launch gathers pairs where they are, or others split and sum them.

use warpfold_monoid::{Atomic, Monoid, Sum, keyed::LANES};
use warpfold_simt::{
    atomic::{self, Gpu, Relaxed},
    global::{self, hint::NoAllocate},
    grid,
    hint::{cold_path, mul_hi, nounroll, pinned},
    shared::{Shared, dynamic_shared},
    thread::{block_dim_x, block_idx_x, grid_dim_x, sync_threads, thread_idx_x},
    warp::{FULL, WarpReductionOp, shuffle_idx, shuffle_up, warp_reduce, warp_vote_ballot},
};

use super::{
    NONE, STRIP, TagParams, Word,
    gather::{self, LIKES, Scale, Table, bits, bits_beyond, entry_bytes, flush, liked},
    load_tag, load_values, note_bad, width,
};
use crate::block;

/// The kernels, which ask for more shared memory than every block has.
pub const KERNELS: [&str; 2] = ["split", "sum"];

/// Bytes of shared memory, at most, that a block has beside.
pub const STATIC_BYTES: u32 = 2 << 10;

/// Lists, at most.
pub const MOST_LISTS: u32 = 256;

/// Tags of a list, at most: their lower bits take 16.
pub const MOST_RANGE: u64 = 1 << 16;

/// Threads of a block that splits, more than there are lists.
pub const SPLIT_THREADS: u32 = 384;

/// Strips of each, as many as registers allow.
pub const fn strips<Op: Monoid>() -> usize {
    if size_of::<Op::Item>() <= 4 { 4 } else { 3 }
}

/// Tiles that such a block takes one after the other: it waits less for memory, and blocks that have nothing to do cost time, too.
pub const TILES: u64 = 4;

/// Such blocks that a multiprocessor is to hold.
pub const RESIDENT: u32 = 2;

/// Threads of a block that sums, as many.
pub const SUM_THREADS: u32 = 1024;

/// Pairs of a tile, less than 2^15.
pub const fn tile<Op: Monoid>() -> u64 {
    (SPLIT_THREADS as usize * strips::<Op>() * STRIP) as u64
}

/// Places that each thread looks at to learn whether tags repeat.
const LOOKS: usize = 8;

/// How far on it looks for the same tag: at the strip of the last lane, if as few as are worth it have one tag.
const APART: u64 = (LIKES as u64 - 1) * STRIP as u64;

/// Strips that a thread which sums has in flight beside the one that it takes in: two took 154 in place of 149 microseconds where values are floats, and
/// 112 in place of 132 where they are integers, which need fewer instructions (`benches/record/h200/2026-11-29-tags-skew.csv`).
pub const fn in_flight<Op: Monoid>() -> usize {
    if matches!(Op::ATOMIC, Atomic::AddFloat) || size_of::<Op::Item>() > 4 { 1 } else { 2 }
}

/// Are pairs of this operator split? Positions do not travel with them. Where values are combined, global memory is as fast, because
/// most change nothing there.
pub const fn serves<Op: Monoid>() -> bool {
    gather::serves::<Op>()
        && !matches!(Op::ATOMIC, Atomic::Combine)
        && !Op::USES_INDEX
        && matches!(size_of::<Op::Item>(), 1 | 2 | 4 | 8)
}

/// Bytes of shared memory that a pair has while it is split.
pub const fn pair_bytes<Op: Monoid>() -> usize {
    size_of::<Op::Item>() + size_of::<u16>()
}

/// Places of a tile of so many pairs: each piece begins where a strip does. A multiple of 16 if the tile is.
#[inline(always)]
pub const fn tile_places(tile: u64, lists: u64) -> u64 {
    tile + (lists * (STRIP as u64 - 1)).next_multiple_of(16)
}

/// A strip's tags and values.
type Pairs<Op> = ([u32; STRIP], [<Op as Monoid>::Item; STRIP]);

/// Where things lie in the room of lists, in bytes, and where all ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lists {
    /// The length of each list, of 32 bits, zero at first.
    pub lengths: u64,
    /// A word that says whether pairs stay where they are.
    pub choice: u64,
    /// A word for each piece: where it starts in its tile, and its length in the upper half. Those of a list lie side by side.
    pub pieces: u64,
    /// Items, those of each tile side by side.
    pub items: u64,
    /// The lower bits of as many tags.
    pub lows: u64,
    /// Where all ends.
    pub bytes: u64,
}

impl Lists {
    /// That of so many lists of tiles, with items of that size.
    #[inline(always)]
    pub const fn of(lists: u64, tiles: u64, tile: u64, item: u64) -> Lists {
        let choice = 4 * lists;
        let pieces = Lists::pieces(lists);
        let items = pieces + (4 * lists * tiles).next_multiple_of(256);
        let places = tiles * tile_places(tile, lists);
        let lows = items + (places * item).next_multiple_of(256);
        Lists { lengths: 0, choice, pieces, items, lows, bytes: lows + 2 * places }
    }

    /// Where pieces are noted.
    #[inline(always)]
    const fn pieces(lists: u64) -> u64 {
        (4 * lists + 4).next_multiple_of(256)
    }

    #[inline(always)]
    fn of_params<Op: Monoid>(params: &TagParams<Op>) -> Lists {
        Lists::of(params.lists as u64, params.chunks as u64, params.chunk, size_of::<Op::Item>() as u64)
    }
}

/// Notes whether many tags [repeat](repeats) at neighbouring places, of the block's look at places all over the array: more than one of eight.
///
/// # Safety
///
/// All threads of a block call, no more than 1024; `seen` has room for a word of each warp. [`split`]'s parameters.
#[inline(always)]
pub(super) unsafe fn look<Op: Monoid>(params: &TagParams<Op>, seen: Shared<u32>) {
    let (thread, threads) = (thread_idx_x(), block_dim_x());
    let looks = threads * LOOKS as u32;
    let step = (params.n / looks as u64).max(1) as u32;
    let last = params.n.saturating_sub(1 + APART);
    let found: [bool; LOOKS] = core::array::from_fn(|u| {
        let i = u as u32 * threads + thread;
        // Not equally far apart, lest a pattern shows each of them the same of its places.
        let place = i as u64 * step as u64 + mul_hi(i.wrapping_mul(0x9e37_79b9), step) as u64;
        let place = place.min(last);
        // SAFETY: tags that there are, if one is.
        unsafe {
            let tag = |place| load_tag(params.tags, params.width, place);
            tag(place) == tag((place + APART).min(params.n - 1))
        }
    });
    let mine = found.iter().fold(0, |sum, &found| sum + found as u32);
    // SAFETY: all threads are here; each warp has its word.
    unsafe {
        let all = warp_reduce(FULL, mine, WarpReductionOp::Add);
        if thread % LANES == 0 {
            seen.write((thread / LANES) as usize, all);
        }
        sync_threads();
        if thread == 0 {
            let mut sum = 0;
            let mut warp = 0;
            while warp < threads / LANES {
                nounroll();
                sum += seen.read(warp as usize);
                warp += 1;
            }
            global::store(choice(params), (8 * sum > looks) as u32);
        }
    }
}

/// Where it is noted.
#[inline(always)]
fn choice<Op: Monoid>(params: &TagParams<Op>) -> *mut u32 {
    params.present.wrapping_add(Lists::of_params(params).choice as usize).cast()
}

/// Do many tags repeat at neighbouring places? Then pairs stay where they are, and values are gathered at once: a warp that
/// meets a tag often keeps it in registers.
///
/// # Safety
///
/// A launch before has had a [look].
#[inline(always)]
pub(super) unsafe fn repeats<Op: Monoid>(params: &TagParams<Op>) -> bool {
    // SAFETY: the caller's promise.
    unsafe { global::load(choice(params).cast_const()) != 0 }
}

/// Splits tiles, a block one after the other, of `S` strips a thread, unless many tags repeat.
///
/// # Safety
///
/// Blocks of [`SPLIT_THREADS`], or a multiple of 32 that is more than there are lists, no more than the `chunks` tiles, whose `chunk` pairs are as
/// many as threads and strips; [`pair_bytes`] of dynamic shared memory for each of [`tile_places`]. `range` is a power of two, and `lists` ranges
/// have all tags. At `present` is room for [`Lists`], aligned to 16 bytes, this launch's alone as `first_bad` is, and
/// [cleared](super::gather::clear), which has had a look at the tags. Tags and values are readable. `counts` has room for one more than there
/// are lists.
#[inline(always)]
pub unsafe fn split<Op: Monoid, const S: usize>(
    params: &TagParams<Op>,
    counts: Shared<u32>,
    sums: Shared<u32>,
) {
    let (thread, threads) = (thread_idx_x(), block_dim_x());
    let lists = params.lists;
    let shift = params.range.trailing_zeros();
    let size = tile_places(params.chunk, lists as u64) as usize;
    // SAFETY: the caller's promise.
    let words = unsafe { dynamic_shared::<Word>(size * pair_bytes::<Op>() / size_of::<Word>()) };
    let item_words = size * size_of::<Op::Item>() / size_of::<Word>();
    // SAFETY: plain data, written before it is read.
    let (items, lows) =
        unsafe { (words.first(item_words).cast::<Op::Item>(), words.from(item_words).cast::<u16>()) };
    grid::wait_for_previous();
    // SAFETY: the caller's promise; what has been noted by the launch before.
    if unsafe { repeats(params) } {
        return;
    }
    if thread < lists {
        // SAFETY: the thread's own; a barrier follows.
        unsafe { counts.write(thread as usize, 0) };
    }
    let mut tile = block_idx_x();
    // SAFETY: a tile that there is.
    let mut strips = unsafe { pairs_of::<Op, S>(params, tile) };
    loop {
        nounroll();
        // What is computed from it is not kept from tile to tile: registers are too few.
        let thread = pinned(thread_idx_x());
        let lane = thread % LANES;
        sync_threads();
        // Which of its list's pairs each is: any order will do. Two of them share a register.
        let mut ranks = [[0_u32; STRIP / 2]; S];
        let mut s = 0;
        while s < S {
            let numbers = strips[s].0;
            // SAFETY: all lanes are here.
            let (list, likes) = unsafe { liked(numbers[0] >> shift, 0) };
            let many = likes >= LIKES && list < lists;
            let mut i = 0;
            while i < STRIP {
                let mut alone = numbers[i] < params.k;
                if many {
                    // Those of one list are numbered at once: they would wait for each other.
                    let alike = alone && numbers[i] >> shift == list;
                    alone &= !alike;
                    // SAFETY: all lanes are here, and go the same way.
                    let rank = unsafe { numbered(counts, list, alike, lane) };
                    ranks[s][i / 2] |= rank << (16 * (i % 2));
                }
                if alone {
                    // SAFETY: a list that there is.
                    let rank = unsafe { counts.fetch_add((numbers[i] >> shift) as usize, 1) };
                    ranks[s][i / 2] |= rank << (16 * (i % 2));
                }
                i += 1;
            }
            let bad = core::array::from_fn::<bool, STRIP, _>(|i| numbers[i] >= params.k);
            if bad[0] | bad[1] | bad[2] | bad[3] {
                cold_path();
                let mut i = 0;
                while i < STRIP {
                    let place = (pinned(s as u32) * threads + thread) * STRIP as u32 + i as u32;
                    let index = pinned(tile) as u64 * params.chunk + place as u64;
                    if bad[i] && index < params.n {
                        // SAFETY: the caller's promise.
                        unsafe { note_bad(params.first_bad, params.base + index) };
                    }
                    i += 1;
                }
            }
            s += 1;
        }
        sync_threads();
        // SAFETY: a list's own count; all threads are here.
        let count = if thread < lists { unsafe { counts.read(thread as usize) } } else { 0 };
        // SAFETY: all threads are here.
        let before = unsafe {
            let strips = count.next_multiple_of(STRIP as u32);
            block::scan_exclusive(&Sum::<u32>::new(), strips, None, sums)
        };
        let before = before.unwrap_or(0);
        if thread < lists {
            // SAFETY: a list's own, between barriers: that of the scan, and the next. Any item fills its last strip.
            unsafe {
                counts.write(thread as usize, before);
                let (mut place, end) = (before + count, (before + count).next_multiple_of(STRIP as u32));
                if thread == lists - 1 {
                    counts.write(lists as usize, end);
                }
                while place < end {
                    nounroll();
                    items.write(place as usize, strips[0].1[0]);
                    lows.write(place as usize, 0);
                    place += 1;
                }
                let room = Lists::of_params(params);
                let piece = thread as usize * params.chunks as usize + tile as usize;
                let pieces = params.present.wrapping_add(room.pieces as usize).cast::<u32>();
                global::store(pieces.wrapping_add(piece), before | count << 16);
                if count > 0 {
                    let lengths = params.present.wrapping_add(room.lengths as usize).cast::<u32>();
                    atomic::fetch_add(lengths.wrapping_add(thread as usize), count, Relaxed, Gpu);
                }
            }
        }
        sync_threads();
        let mut s = 0;
        while s < S {
            let mut i = 0;
            while i < STRIP {
                let number = strips[s].0[i];
                if number < params.k {
                    // SAFETY: each pair has its own place.
                    unsafe {
                        let rank = ranks[s][i / 2] >> (16 * (i % 2)) & 0xffff;
                        let place = (counts.read((number >> shift) as usize) + rank) as usize;
                        items.write(place, strips[s].1[i]);
                        lows.write(place, (number & (params.range - 1)) as u16);
                    }
                }
                i += 1;
            }
            s += 1;
        }
        sync_threads();
        let done = tile;
        tile += grid_dim_x();
        if tile < params.chunks {
            // While what has been brought into order is written.
            // SAFETY: a tile that there is. Nobody reads the counts but the last by now, and a barrier follows.
            unsafe {
                strips = pairs_of::<Op, S>(params, tile);
                if thread < lists {
                    counts.write(thread as usize, 0);
                }
            }
        } else {
            grid::let_next_start();
        }
        // SAFETY: behind a barrier; what has been written, to the tile's own places.
        unsafe {
            let lists = pinned(params.lists);
            let item = size_of::<Op::Item>() as u64;
            let room = Lists::of(lists as u64, pinned(params.chunks) as u64, params.chunk, item);
            let total = counts.read(lists as usize) as usize;
            let place = done as usize * tile_places(params.chunk, lists as u64) as usize;
            let at = params.present.wrapping_add(room.items as usize).cast::<Op::Item>();
            copy(items, total, at.wrapping_add(place));
            let at = params.present.wrapping_add(room.lows as usize).cast::<u16>();
            copy(lows, total, at.wrapping_add(place));
        }
        if tile >= params.chunks {
            return;
        }
    }
}

/// The pairs of a tile that a thread takes, whatever there is of them: tags that are not there are [`NONE`].
///
/// # Safety
///
/// There is that tile, with [`split`]'s parameters and blocks.
#[inline(always)]
unsafe fn pairs_of<Op: Monoid, const S: usize>(params: &TagParams<Op>, tile: u32) -> [Pairs<Op>; S] {
    let (thread, threads) = (pinned(thread_idx_x()), block_dim_x());
    let start = tile as u64 * params.chunk;
    let len = params.chunk.min(params.n - start) as u32;
    let vectors = params.width == width::WORD
        && params.tags.addr().is_multiple_of(16)
        && params.values.addr().is_multiple_of(16);
    let tags_at = params.tags.cast::<u32>().wrapping_add(start as usize);
    let values_at = params.values.wrapping_add(start as usize);
    let mut strips = [([NONE; STRIP], [warpfold_monoid::zeroed::<Op::Item>(); STRIP]); S];
    let mut s = 0;
    while s < S {
        let first = (s as u32 * threads + thread) * STRIP as u32;
        // SAFETY: pairs that there are. Tiles are whole strips, and so vectors are aligned as the first is.
        unsafe {
            if vectors && first + STRIP as u32 <= len {
                let numbers = tags_at.wrapping_add(first as usize);
                strips[s] = (
                    global::load_neighbours_with::<NoAllocate, u32, STRIP>(numbers),
                    load_values(values_at, first as u64),
                );
            } else {
                cold_path();
                let at = pinned(first);
                let mut i = 0;
                while i < STRIP {
                    let place = at + i as u32;
                    if place < len {
                        strips[s].0[i] = load_tag(params.tags, params.width, start + place as u64);
                        strips[s].1[i] = global::load(values_at.wrapping_add(place as usize));
                    }
                    i += 1;
                }
            }
        }
        s += 1;
    }
    strips
}

/// Numbers those lanes that have a pair of one list, at once; 0 for the others.
///
/// # Safety
///
/// All lanes of the warp call, with the same list.
#[inline(always)]
unsafe fn numbered(counts: Shared<u32>, list: u32, mine: bool, lane: u32) -> u32 {
    // SAFETY: all lanes are here; a list that there is.
    unsafe {
        let peers = warp_vote_ballot(FULL, mine);
        let mut first = 0;
        if lane == 0 {
            first = counts.fetch_add(list as usize, peers.count_ones());
        }
        let rank = shuffle_idx(FULL, first, 0) + (peers & ((1 << lane) - 1)).count_ones();
        if mine { rank } else { 0 }
    }
}

/// Copies what all threads have put side by side to global memory.
///
/// # Safety
///
/// All threads of the block call. So many are there, behind a barrier; `to` is writable, and aligned to 16 bytes as `from` is.
#[inline(always)]
unsafe fn copy<T: warpfold_monoid::Plain>(from: Shared<T>, count: usize, to: *mut T) {
    let (thread, threads) = (thread_idx_x() as usize, block_dim_x() as usize);
    let a_word = size_of::<Word>() / size_of::<T>();
    let whole = count / a_word;
    // SAFETY: the caller's promise: words that are there.
    let words = unsafe { from.cast::<Word>() };
    let mut word = thread;
    while word < whole {
        nounroll();
        // SAFETY: the same.
        unsafe { global::store(to.cast::<Word>().wrapping_add(word), words.read(word)) };
        word += threads;
    }
    let rest = whole * a_word + thread;
    if rest < count {
        // SAFETY: the same.
        unsafe { global::store(to.wrapping_add(rest), from.read(rest)) };
    }
}

/// Sums lists, unless many tags repeat.
///
/// # Safety
///
/// Blocks of whole warps, more threads than there are lists; more blocks than there are lists. [`split`] has written the lists, whose room and
/// parameters these are; [`entry_bytes`] of dynamic shared memory for each tag of a list, of which there is one copy. The values at `partials` have been
/// [cleared](super::gather::clear) and are this launch's alone. `top` has room for four words.
#[inline(always)]
pub unsafe fn sum<Op: Monoid, const F: usize>(params: &TagParams<Op>, top: Shared<u32>, sums: Shared<u32>) {
    let (op, thread, threads) = (&params.op, thread_idx_x(), block_dim_x());
    let (warp, lane, warps) = (thread / LANES, thread % LANES, threads / LANES);
    let lists = params.lists;
    let places = params.range;
    let floats = params.floats != 0;
    let bytes = places as usize * entry_bytes::<Op>(floats);
    // SAFETY: the caller's promise.
    let words = unsafe { dynamic_shared::<Word>(bytes.div_ceil(size_of::<Word>())) };
    let (state, copies) = (params.partials, 0);
    let mut table = Table { op, state, lowest: 0, words, copies, places, floats, scale: Scale::of(0, 0) };
    grid::wait_for_previous();
    // SAFETY: all threads call, and a barrier follows; what a launch before has noted.
    unsafe {
        if repeats(params) {
            return;
        }
        table.fill(thread);
        if thread < 4 {
            top.write(thread as usize, 0);
        }
    }
    let room = Lists::of_params(params);
    // Lists have blocks as their lengths ask for, but each at least one; those at the end of the grid may have nothing to do.
    let share = (params.n.div_ceil((grid_dim_x() - lists) as u64) as u32).max(1);
    let mut length = 0;
    if thread < lists {
        let lengths = params.present.wrapping_add(room.lengths as usize).cast::<u32>();
        // SAFETY: written by the launch before.
        length = unsafe { global::load(lengths.wrapping_add(thread as usize).cast_const()) };
    }
    let blocks = if length == 0 { 0 } else { (length / share).clamp(1, params.chunks) };
    // SAFETY: all threads are here.
    let before = unsafe { block::scan_exclusive(&Sum::<u32>::new(), blocks, None, sums) }.unwrap_or(0);
    if block_idx_x() >= before && block_idx_x() - before < blocks {
        // SAFETY: one thread of them; behind the barrier of the scan, and before the next.
        unsafe {
            top.write(0, thread);
            top.write(1, block_idx_x() - before);
            top.write(2, blocks);
        }
    }
    sync_threads();
    // SAFETY: behind a barrier.
    let (list, part, parts) = unsafe { (top.read(0), top.read(1), top.read(2)) };
    if parts == 0 {
        return;
    }
    table.lowest = list * params.range;
    let tags = params.range.min(params.k - table.lowest);
    let tiles = (params.chunks - part).div_ceil(parts);
    let pieces = params.present.wrapping_add(room.pieces as usize).cast::<u32>().cast_const();
    let pieces = pieces.wrapping_add(list as usize * params.chunks as usize);
    let items = params.present.wrapping_add(room.items as usize).cast::<Op::Item>().cast_const();
    let lows = params.present.wrapping_add(room.lows as usize).cast::<u16>().cast_const();
    let tile_of = |i: u32| part + i * parts;

    if matches!(Op::ATOMIC, Atomic::AddFloat) {
        // The greatest of the first pairs of some pieces.
        let mut exponent = 0;
        if thread < tiles {
            let tile = tile_of(thread) as usize;
            // SAFETY: pieces that there are, and their items.
            unsafe {
                let piece = global::load(pieces.wrapping_add(tile));
                if piece >> 16 > 0 {
                    let at =
                        tile * tile_places(params.chunk, lists as u64) as usize + (piece & 0xffff) as usize;
                    let item = global::load(items.wrapping_add(at));
                    let found = (bits(op.lift(item, 0)) >> 52) as u32 & 0x7ff;
                    exponent = if found == 0x7ff { 0 } else { found };
                }
            }
        }
        // SAFETY: all lanes are here; a word that has been written before a barrier.
        unsafe {
            let greatest = warp_reduce(FULL, exponent, WarpReductionOp::Max);
            if lane == 0 {
                top.update(3, |old| old.max(greatest));
            }
        }
        sync_threads();
        // No more pairs than the list has, and the block's tiles.
        let lengths = params.present.wrapping_add(room.lengths as usize).cast::<u32>().cast_const();
        // SAFETY: behind a barrier; written by the launch before.
        let (greatest, most) = unsafe {
            let length = global::load(lengths.wrapping_add(list as usize)) as u64;
            (top.read(3), length.min(tiles as u64 * params.chunk))
        };
        table.scale = Scale::of(greatest, bits_beyond(most));
    }

    let (mut hot, mut kept) = (NONE, op.identity());
    let mut next = warp;
    while tile_of(next) < params.chunks {
        nounroll();
        // Each lane looks at a piece. The strips of all of them are shared among the lanes, one after the other.
        let tile = tile_of(next + lane * warps);
        let mut piece = 0;
        if tile < params.chunks {
            // Where it is noted is not kept from round to round: registers are too few.
            let first = pinned(list) as usize * params.chunks as usize;
            let from = params
                .present
                .wrapping_add(Lists::pieces(pinned(params.lists) as u64) as usize)
                .cast::<u32>();
            // SAFETY: a piece that there is.
            piece = unsafe { global::load(from.cast_const().wrapping_add(first + tile as usize)) };
        }
        // At least one, so that no two of them end at one place.
        let strips = (piece >> 16).div_ceil(STRIP as u32).max(1);
        let mut up_to = strips;
        let mut distance = 1;
        while distance < LANES {
            // SAFETY: all lanes are here.
            let before = unsafe { shuffle_up(FULL, up_to, distance) };
            if lane >= distance {
                up_to += before;
            }
            distance *= 2;
        }
        // SAFETY: all lanes are here.
        let all = unsafe { shuffle_idx(FULL, up_to, LANES - 1) };
        // Where the piece's strips would begin, and end in pairs, if those of all pieces had one number after the other.
        let before = up_to - strips;
        let size = tile_places(params.chunk, pinned(params.lists) as u64);
        let home = tile as u64 * size + (piece & 0xffff) as u64;
        let home = ((home / STRIP as u64) as u32).wrapping_sub(before);
        let end = (piece >> 16) + STRIP as u32 * before;
        // How many pieces end before the row that is asked for next.
        let mut ended = 0;
        // A lane's strip, as it is read: tags' lower bits, two a word, how many pairs are there, and items.
        let mut load = |row: u32| {
            let strip = row + lane;
            let place = up_to.wrapping_sub(row);
            // SAFETY: all lanes are here.
            let ends = unsafe {
                warp_reduce(FULL, if place < LANES { 1 << place } else { 0_u32 }, WarpReductionOp::Or)
            };
            let owner = (ended + (ends & (2_u32 << lane).wrapping_sub(1)).count_ones()) % LANES;
            ended += ends.count_ones();
            // SAFETY: all lanes are here.
            let (home, end) = unsafe { (shuffle_idx(FULL, home, owner), shuffle_idx(FULL, end, owner)) };
            let (mut low, mut there) = ([0_u32; STRIP / 2], 0);
            let mut items_of = [warpfold_monoid::zeroed::<Op::Item>(); STRIP];
            // A piece without pairs has a strip, too.
            if strip < all && end > STRIP as u32 * strip {
                there = end - STRIP as u32 * strip;
                let at = home.wrapping_add(strip) as usize * STRIP;
                // SAFETY: a strip that there is, whose words are aligned as it is.
                unsafe {
                    let from = lows.wrapping_add(at).cast::<u32>();
                    low = global::load_neighbours_with::<NoAllocate, u32, { STRIP / 2 }>(from);
                    items_of = load_values(items, at as u64);
                }
            }
            (low, there, items_of)
        };
        let mut flight: [_; F] = core::array::from_fn(|u| load(u as u32 * LANES));
        let mut row = 0;
        while row < all {
            nounroll();
            let mut u = 0;
            while u < F {
                let (low, there, items) = flight[u];
                // Asked for a round before its turn.
                flight[u] = load(row + F as u32 * LANES);
                let slots: [u32; STRIP] = core::array::from_fn(|i| low[i / 2] >> (16 * (i % 2)) & 0xffff);
                let first = if there > 0 { slots[0] } else { NONE };
                // SAFETY: all lanes are here, and go the same way.
                unsafe {
                    let (candidate, likes) = liked(first, (row >> 5) % LANES);
                    if candidate < tags && candidate != hot && likes >= LIKES {
                        let before = warp_vote_ballot(FULL, first == hot).count_ones();
                        if likes > 2 * before {
                            flush::<Op, true>(&table, hot, &mut kept, lane);
                            hot = candidate;
                        }
                    }
                }
                let mut i = 0;
                while i < STRIP {
                    // What fills up the last strip is left out.
                    if (i as u32) < there {
                        if slots[i] == hot {
                            kept = op.push(kept, items[i], 0);
                        } else {
                            // SAFETY: among the block's tags.
                            unsafe { table.put::<true>(slots[i], lane, op.lift(items[i], 0)) };
                        }
                    }
                    i += 1;
                }
                row += LANES;
                u += 1;
            }
        }
        next += LANES * warps;
    }
    grid::let_next_start();
    // SAFETY: all lanes are here.
    unsafe { flush::<Op, true>(&table, hot, &mut kept, lane) };
    sync_threads();
    // SAFETY: all threads call, behind a barrier.
    unsafe { table.add_up(tags, thread) };
}
