//! Reductions by key: the runs of neighbours that have the same key, in one pass over the data.
//!
//! It is a scan of [`Runs`], whose result at an item says how many runs have begun before it, and what the last of these has come
//! to. Where a run begins, its key and the value of the run before it are written at their places. A thread walks its strip once, and
//! lays both side by side in shared memory, where a warp's neighbouring lanes write them from, however many there are; what it cannot
//! say yet is the value of the run that goes on from before its strip. The order is that of [`warpfold_monoid::keyed`],
//! whichever block runs when.

use warpfold_monoid::{
    keyed::{Equality, RunTiling, Runs, RunsSoFar},
    zeroed,
};

use warpfold_simt::warp::warp_vote_any;

use super::*;

/// The parameters of the kernel. The host fills it, the kernel receives it by value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RunParams<K: Plain, E: Equality<K>, Op: Monoid> {
    /// The keys; aligned to one, of as many bytes as [`key_bytes`](RunParams::key_bytes) says.
    pub keys: *const K,
    /// As many values; aligned to the item.
    pub values: *const Op::Item,
    /// How many, at least 1.
    pub n: u64,
    /// Null, or the index of each item that the operator is told in place of its position.
    pub indices: *const u32,
    /// Receives the first key of each run, of as many bytes; null if they are not wanted.
    pub out_keys: *mut K,
    /// Receives the result of each run.
    pub out_values: *mut Op::Output,
    /// Receives the number of runs.
    pub count: *mut u64,
    /// As in [`ScanParams::counter`].
    pub counter: *mut u64,
    /// [`row_pairs`] of [`RunsSoFar`].
    pub records: *mut [u64; 2],
    /// Pairs of words that there is room for, used or not.
    pub capacity: u64,
    /// Tiles.
    pub tiles: u32,
    /// Bytes of a key in memory: its size, or, of integers of 4 bytes, the 1 or 2 lowest of them, the others being 0.
    pub key_bytes: u32,
    /// The operator, and which keys are the same.
    pub op: Runs<K, E, Op>,
}

/// What shared memory a block has.
#[derive(Clone, Copy, Debug)]
pub struct RunRoom<A: Plain> {
    /// [`key_words`] for each warp.
    pub keys: Shared<Word>,
    /// [`value_words`] for each warp.
    pub values: Shared<Word>,
    /// [`run_sums`].
    pub sums: Shared<RunsSoFar<A>>,
    /// One: what has been drawn from the counter.
    pub drawn: Shared<u64>,
}

/// Words of shared memory in which a warp's strips of keys lie, and later those of its runs.
pub const fn key_words<K, Op: Monoid>() -> usize {
    let strip = RunTiling::of::<K, Op>().strip as usize;
    words(pitch::<K>(strip) * LANES as usize * size_of::<K>(), padded_len(strip) * size_of::<K>())
}

/// The same of values, and of results.
pub const fn value_words<K, Op: Monoid>() -> usize {
    let strip = RunTiling::of::<K, Op>().strip as usize;
    let items = pitch::<Op::Item>(strip) * LANES as usize * size_of::<Op::Item>();
    words(items, padded_len(strip) * size_of::<Op::Output>())
}

const fn words(a: usize, b: usize) -> usize {
    (if a > b { a } else { b }).div_ceil(size_of::<Word>())
}

/// Places for what the runs that begin in a warp's strips have, one in 32 being left out.
const fn padded_len(strip: usize) -> usize {
    (LANES as usize + 1) * strip
}

/// Where that of run `r` lies: so that strips of which all items begin a run find theirs in different banks.
#[inline(always)]
fn padded(r: u32) -> usize {
    (r + r / LANES) as usize
}

/// Accumulators in shared memory: the warps' values, and what stands before each warp and behind the last.
pub const fn run_sums<K, Op: Monoid>() -> usize {
    2 * RunTiling::of::<K, Op>().warps() as usize + 1
}

/// Warps of a block.
pub const fn run_warps<K, Op: Monoid>() -> usize {
    RunTiling::of::<K, Op>().warps() as usize
}

/// Vectors in a strip of values of so many bytes.
pub const fn run_vectors<K, Op: Monoid>(bytes: usize) -> usize {
    RunTiling::of::<K, Op>().strip as usize / vector_len(bytes)
}

/// The kernel's launch bounds.
pub const fn run_bounds<K, Op: Monoid>() -> u32 {
    let threads = RunTiling::of::<K, Op>().threads;
    match size_of::<Op::Acc>() {
        0..=8 if size_of::<K>() <= 8 => threads | 4 << 16,
        0..=16 if size_of::<K>() <= 8 => threads | 2 << 16,
        _ => threads,
    }
}

/// Reduces runs, a tile to a block.
///
/// `VK` keys are a vector and a strip has `UK` vectors of them; `V` and `U` say the same of items.
///
/// # Safety
///
/// The whole block of [`RunTiling::threads`] calls, and the grid has `tiles` blocks. Keys, values and indices are readable; the outputs
/// have room for as many runs as there are, and overlap nothing. `counter` and `records` belong to this launch alone. `room` is not in
/// use.
#[inline(always)]
pub unsafe fn runs<K, E, Op, const VK: usize, const UK: usize, const V: usize, const U: usize>(
    params: &RunParams<K, E, Op>,
    room: RunRoom<Op::Acc>,
) where
    K: Plain,
    E: Equality<K>,
    Op: Monoid,
{
    let tiling = const { RunTiling::of::<K, Op>() };
    let (op, strip, warps) = (&params.op, tiling.strip, tiling.warps());
    let thread = thread_idx_x();
    let (warp, lane) = (thread / LANES, thread % LANES);
    let sums = room.sums;
    let chained = params.tiles > 1;
    if !chained {
        grid::let_next_start();
    }
    grid::wait_for_previous();
    let (mut tile, mut epoch) = (0, 0);
    if chained {
        let end = row_pairs(size_of::<RunsSoFar<Op::Acc>>(), params.tiles);
        // SAFETY: the launch's own; the whole block is here.
        (tile, epoch) = unsafe { draw(params.counter, (params.records, params.capacity), end, room.drawn) };
    }

    // This warp's keys and items.
    let start = tile as u64 * tiling.tile() + (warp * tiling.warp()) as u64;
    let count = if start < params.n { (params.n - start).min(tiling.warp() as u64) as u32 } else { 0 };
    let whole = count == tiling.warp();
    let piece = Piece { first: start as i64, count, stride: 1 };
    let (key_words, value_words) = const { (key_words::<K, Op>(), value_words::<K, Op>()) };
    let keys = room.keys.from(warp as usize * key_words).first(key_words);
    let values = room.values.from(warp as usize * value_words).first(value_words);
    let index = |i: u32| {
        let position = start + (lane * strip + i) as u64;
        if params.indices.is_null() {
            return position;
        }
        // SAFETY: asked of items that there are.
        unsafe { global::load(params.indices.wrapping_add(position as usize)) as u64 }
    };
    let mine = count.saturating_sub(lane * strip).min(strip);
    let narrow = const { size_of::<K>() == size_of::<u32>() } && params.key_bytes < size_of::<u32>() as u32;
    // The key before the warp's first.
    let mut earlier = zeroed::<K>();
    if lane == 0 && start > 0 && count > 0 {
        // SAFETY: a key that there is.
        earlier = unsafe { load_key(params, narrow, start - 1) };
    }
    let first = start == 0 && lane == 0;

    // The strips' values, scanned; how many runs begin in the warp, and before the strip; and what stands in the strip before the
    // first that begins there.
    let mut scanned = op.identity();
    let (mut heads, mut here, mut run) = (0_u32, 0, 0);
    let mut leading = op.op.identity();
    if whole {
        // SAFETY: the warp's own; all lanes are here, and have what they staged before any of it is replaced.
        unsafe {
            let (from_keys, from_values) =
                (params.keys.wrapping_add(start as usize), params.values.wrapping_add(start as usize));
            let mut any = true;
            let no_values = const { size_of::<Op::Item>() == 0 };
            if !narrow && by_vectors(from_keys, 1) && (no_values || by_vectors(from_values, 1)) {
                // All asked for before any is staged.
                let asked_keys: [[K; VK]; UK] = ask(from_keys, lane);
                if !no_values {
                    let asked: [[Op::Item; V]; U] = ask(from_values, lane);
                    stage_whole(&asked, strip, lane, values);
                }
                // Keys are wanted in strips only where a run begins.
                let begins = begins_among(&op.equality, &asked_keys, earlier, lane);
                any = warp_vote_any(FULL, begins || first);
                if any {
                    stage_whole(&asked_keys, strip, lane, keys);
                }
            } else {
                if narrow {
                    load_narrow(params, start, count, strip, lane, keys);
                } else {
                    load_whole::<K, VK, UK>(params.keys, piece, strip, lane, keys);
                }
                load_whole::<Op::Item, V, U>(params.values, piece, strip, lane, values);
            }
            sync_warp(FULL);
            let item = staged_vectors::<Op::Item, V, U>(values, lane, strip);
            let mut value = op.op.lift(item[0][0], index(0));
            let with_the_rest = |mut value: Op::Acc| {
                let mut i = 1;
                while i < U * V {
                    value = op.op.push(value, item[i / V][i % V], index(i as u32));
                    i += 1;
                }
                value
            };
            if !any {
                // Most warps, where runs are long.
                value = with_the_rest(value);
            } else {
                let key = staged_vectors::<K, VK, UK>(keys, lane, strip);
                let below = shuffle_up(FULL, key[UK - 1][VK - 1], 1);
                if lane > 0 {
                    earlier = below;
                }
                let mut i = 0;
                while i < UK * VK {
                    let key = key[i / VK][i % VK];
                    if (i == 0 && first) || !op.equality.same(earlier, key) {
                        heads |= 1 << i;
                    }
                    earlier = key;
                    i += 1;
                }
                (run, here) = before_lane(heads.count_ones(), lane);
                sync_warp(FULL);
                if here == 0 {
                    value = with_the_rest(value);
                } else {
                    let mut place = run;
                    if heads & 1 != 0 {
                        put(keys, padded(place), key[0][0]);
                        place += 1;
                    }
                    let mut i = 1;
                    while i < U * V {
                        let (item, index) = (item[i / V][i % V], index(i as u32));
                        if heads >> i & 1 != 0 {
                            put(keys, padded(place), key[i / VK][i % VK]);
                            if place > run {
                                put(values, padded(place), op.op.finish(value));
                            } else {
                                leading = value;
                            }
                            place += 1;
                            value = op.op.lift(item, index);
                        } else {
                            value = op.op.push(value, item, index);
                        }
                        i += 1;
                    }
                }
            }
            scanned = neighbours(op, RunsSoFar::new(heads.count_ones() as u64, value), lane, LANES, LANES);
        }
    } else if count > 0 {
        cold_path();
        // SAFETY: as above.
        unsafe {
            if narrow {
                load_narrow(params, start, count, strip, lane, keys);
            } else {
                load_some::<K, false>(params.keys, piece, strip, lane, keys);
            }
            load_some::<Op::Item, false>(params.values, piece, strip, lane, values);
            sync_warp(FULL);
        }
        let mut i = 0;
        while i < mine {
            nounroll();
            // SAFETY: keys and items that there are.
            let (key, item) = unsafe {
                if i == 0 && lane > 0 {
                    earlier = get::<K>(keys, place::<K, false>(lane - 1, strip - 1, strip));
                }
                (
                    get::<K>(keys, place::<K, false>(lane, i, strip)),
                    get::<Op::Item>(values, place::<Op::Item, false>(lane, i, strip)),
                )
            };
            let begins = (i == 0 && first) || !op.equality.same(earlier, key);
            earlier = key;
            let value = if i == 0 || begins {
                op.op.lift(item, index(i))
            } else {
                op.op.push(scanned.value(), item, index(i))
            };
            if begins && heads == 0 && i > 0 {
                leading = scanned.value();
            }
            heads |= (begins as u32) << i;
            scanned = RunsSoFar::new(heads.count_ones() as u64, value);
            i += 1;
        }
        // SAFETY: all lanes are here; the first ones have a value.
        scanned = unsafe { neighbours(op, scanned, lane, LANES, count.div_ceil(strip)) };
    }
    if count > 0 && lane == count.div_ceil(strip) - 1 {
        // SAFETY: one warp, one slot.
        unsafe { sums.write(warp as usize, scanned) };
    }
    sync_threads();

    // What stands before the tile, before each of its warps, and behind the last.
    let befores = sums.from(warps as usize);
    let begun = tile > 0;
    if warp == 0 {
        let left = params.n - tile as u64 * tiling.tile();
        let present = if left < tiling.tile() { (left as u32).div_ceil(tiling.warp()) } else { warps };
        // SAFETY: written before the barrier by the warps that have items; all lanes are here.
        let totals = unsafe {
            let total = sums.read(lane.min(present - 1) as usize);
            neighbours(op, total, lane, warps, present)
        };
        // SAFETY: all lanes are here.
        let value = unsafe { shuffle_idx(FULL, totals, present - 1) };
        let (mut before, mut behind) = (value, value);
        if chained {
            let at = Place { tile, last: tile + 1 == params.tiles, whole: true, lane, epoch, ahead: false };
            let ledger = RowLedger::<RunsSoFar<Op::Acc>> {
                first: params.records,
                tiles: params.tiles,
                acc: PhantomData,
            };
            // SAFETY: the whole warp is here, and the tiles before this one have been drawn before it.
            (before, behind) = unsafe { look_back(op, ledger, at, None, value) };
        }
        if lane < present {
            let warp_behind = if lane == warps - 1 {
                behind
            } else if begun {
                op.combine(before, totals)
            } else {
                totals
            };
            // SAFETY: slots that nothing else uses.
            unsafe { befores.write(lane as usize + 1, warp_behind) };
        }
        if lane == 0 {
            if begun {
                // SAFETY: as above.
                unsafe { befores.write(0, before) };
            }
            if tile + 1 == params.tiles {
                // The last run ends with the array.
                // SAFETY: the caller's promise.
                unsafe {
                    global::store(params.count, behind.heads());
                    let last = params.out_values.wrapping_add(behind.heads() as usize - 1);
                    global::store(last, op.op.finish(behind.value()));
                }
            }
        }
    }
    sync_threads();
    if chained {
        grid::let_next_start();
    }
    if count == 0 {
        return;
    }

    // What stands before each strip; from there it goes on alone.
    let there = begun || warp > 0;
    let (mut behind, mut before) = (scanned, RunsSoFar::new(0, scanned.value()));
    if there {
        // SAFETY: written before the barrier.
        before = unsafe { befores.read(warp as usize) };
        if mine > 0 {
            behind = op.combine(before, scanned);
        }
    }
    // SAFETY: all lanes are here.
    let neighbour = unsafe { shuffle_up(FULL, behind, 1) };
    let running = if lane == 0 { before } else { neighbour };
    // What the run has come to that ends where the first one begins in the strip.
    let ended =
        if heads != 0 && heads & 1 == 0 { op.op.combine(running.value(), leading) } else { running.value() };
    if whole {
        if here == 0 {
            return;
        }
        if heads != 0 && !first {
            // SAFETY: the run's own place.
            unsafe { put(values, padded(run), op.op.finish(ended)) };
        }
        // SAFETY: all lanes are here.
        unsafe { sync_warp(FULL) };
        let base = before.heads();
        let out_values = params.out_values.wrapping_add(base as usize);
        let mut r = lane;
        while r < here {
            nounroll();
            // SAFETY: staged, and a barrier lies since; but for the first run's, which no run is before. The runs' own places.
            unsafe {
                store_key(params, narrow, base + r as u64, get::<K>(keys, padded(r)));
                if base > 0 || r > 0 {
                    let result = get::<Op::Output>(values, padded(r));
                    global::store(out_values.wrapping_add(r as usize).wrapping_sub(1), result);
                }
            }
            r += LANES;
        }
    } else {
        cold_path();
        let (mut run, mut value) = (running.heads(), ended);
        let mut i = 0;
        while i < mine {
            nounroll();
            let begins = heads >> i & 1 != 0;
            // SAFETY: an item that there is.
            let item = unsafe { get::<Op::Item>(values, place::<Op::Item, false>(lane, i, strip)) };
            if begins {
                // SAFETY: a key that there is; the runs' own places.
                unsafe {
                    let key = get::<K>(keys, place::<K, false>(lane, i, strip));
                    store_key(params, narrow, run, key);
                    if run > 0 {
                        let result = op.op.finish(value);
                        global::store(params.out_values.wrapping_add(run as usize - 1), result);
                    }
                }
                run += 1;
                value = op.op.lift(item, index(i));
            } else if run > running.heads() {
                value = op.op.push(value, item, index(i));
            }
            i += 1;
        }
    }
}

/// Key number `at`.
///
/// # Safety
///
/// It is there.
#[inline(always)]
unsafe fn load_key<K: Plain, E: Equality<K>, Op: Monoid>(
    params: &RunParams<K, E, Op>,
    narrow: bool,
    at: u64,
) -> K {
    let (keys, at) = (params.keys, at as usize);
    // SAFETY: the caller's promise; where keys are narrow, any 4 bytes are one.
    unsafe {
        if !narrow {
            return global::load(keys.wrapping_add(at));
        }
        let word: u32 = if params.key_bytes == 1 {
            global::load(keys.cast::<u8>().wrapping_add(at)).into()
        } else {
            global::load(keys.cast::<u16>().wrapping_add(at)).into()
        };
        core::mem::transmute_copy(&word)
    }
}

/// Writes the key of run `at`.
///
/// # Safety
///
/// It has a place, if keys are wanted.
#[inline(always)]
unsafe fn store_key<K: Plain, E: Equality<K>, Op: Monoid>(
    params: &RunParams<K, E, Op>,
    narrow: bool,
    at: u64,
    key: K,
) {
    let (keys, at) = (params.out_keys, at as usize);
    if keys.is_null() {
        return;
    }
    // SAFETY: the caller's promise; narrow keys have 4 bytes.
    unsafe {
        if !narrow {
            return global::store(keys.wrapping_add(at), key);
        }
        let word = core::mem::transmute_copy::<K, u32>(&key);
        if params.key_bytes == 1 {
            global::store(keys.cast::<u8>().wrapping_add(at), word as u8);
        } else {
            global::store(keys.cast::<u16>().wrapping_add(at), word as u16);
        }
    }
}

/// Stages a warp's `count` keys from number `start` on, widened.
///
/// # Safety
///
/// As for [`load_whole`].
#[inline(always)]
unsafe fn load_narrow<K: Plain, E: Equality<K>, Op: Monoid>(
    params: &RunParams<K, E, Op>,
    start: u64,
    count: u32,
    strip: u32,
    lane: u32,
    stage: Shared<Word>,
) {
    cold_path();
    let mut next = lane;
    while next < count {
        nounroll();
        // All asked for before any is used; the last stands in for those that are not there.
        let batch: [K; IN_FLIGHT] = core::array::from_fn(|k| {
            let at = (next + k as u32 * LANES).min(count - 1);
            // SAFETY: a key that there is.
            unsafe { load_key(params, true, start + at as u64) }
        });
        let mut k = 0;
        while k < IN_FLIGHT {
            let at = next + k as u32 * LANES;
            if at < count {
                // SAFETY: a place of the warp's.
                unsafe { put(stage, place_of::<K>(at, strip), batch[k]) };
            }
            k += 1;
        }
        next += IN_FLIGHT as u32 * LANES;
    }
}

/// A warp's neighbouring vectors.
///
/// # Safety
///
/// They are readable, and aligned as vectors.
#[inline(always)]
pub(super) unsafe fn ask<T: Plain, const V: usize, const U: usize>(
    first: *const T,
    lane: u32,
) -> [[T; V]; U] {
    core::array::from_fn(|u| {
        let w = u * LANES as usize + lane as usize;
        // SAFETY: the caller's promise.
        unsafe { global::load_neighbours_with::<NoAllocate, T, V>(first.wrapping_add(w * V)) }
    })
}

/// Is one of this lane's keys, as they were asked for, not the same as the one before it? `earlier` is the one before the warp's first.
///
/// # Safety
///
/// All lanes of the warp call.
#[inline(always)]
unsafe fn begins_among<K: Plain, E: Equality<K>, const V: usize, const U: usize>(
    equality: &E,
    asked: &[[K; V]; U],
    earlier: K,
    lane: u32,
) -> bool {
    let (mut any, mut last, mut u) = (false, earlier, 0);
    while u < U {
        // SAFETY: all lanes are here.
        let below = unsafe { shuffle_up(FULL, asked[u][V - 1], 1) };
        let mut before = if lane == 0 { last } else { below };
        let mut v = 0;
        while v < V {
            any |= !equality.same(before, asked[u][v]);
            before = asked[u][v];
            v += 1;
        }
        // SAFETY: as above.
        last = unsafe { shuffle_idx(FULL, asked[u][V - 1], LANES - 1) };
        u += 1;
    }
    any
}

/// Stages vectors as [`load_whole`] does.
///
/// # Safety
///
/// As there.
#[inline(always)]
pub(super) unsafe fn stage_whole<T: Plain, const V: usize, const U: usize>(
    asked: &[[T; V]; U],
    strip: u32,
    lane: u32,
    stage: Shared<Word>,
) {
    let mut u = 0;
    while u < U {
        // SAFETY: 16 bytes either way; a word of the warp's.
        unsafe {
            let word = core::mem::transmute_copy::<[T; V], Word>(&asked[u]);
            stage.write(word_of::<T>(u as u32 * LANES + lane, strip), word);
        }
        u += 1;
    }
}

/// How many there are in the lanes before, and in all.
///
/// # Safety
///
/// All lanes of the warp call.
#[inline(always)]
unsafe fn before_lane(count: u32, lane: u32) -> (u32, u32) {
    let mut sum = count;
    let mut step = 1;
    while step < LANES {
        // SAFETY: all lanes are here.
        let left = unsafe { shuffle_up(FULL, sum, step) };
        if lane >= step {
            sum += left;
        }
        step *= 2;
    }
    // SAFETY: all lanes are here.
    (sum - count, unsafe { shuffle_idx(FULL, sum, LANES - 1) })
}
