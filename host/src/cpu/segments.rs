//! Segments: many short ones a task, long ones chunk by chunk.
//!
//! What knows the operator is behind [`Fold`] and small. How segments are found, gathered and spread over threads is
//! compiled for each type of items, not for each operator.

use std::ops::Range;

use warpfold_monoid::{Monoid, Plain, tree::Shape, zeroed};

use super::{
    ByReference, Chunks, Level, TASK_BYTES, fold,
    tasks::{self, Places},
    walk::{Piece, Scratch, values},
};
use crate::{
    Items, Strided,
    segments::{Axis, Layout, SegmentPlan, Segments, Walk},
};

/// Bytes of input from which on several threads are worth waking: less than for a whole array, since short segments
/// cost more than memory does.
const PARALLEL_BYTES: u64 = 512 << 10;

/// Segments whose values a thread keeps until it finishes them.
const BATCH: u64 = 256;

/// Bytes of gathered items that stay in the caches next to a core.
const TILE_BYTES: u64 = 128 << 10;

/// The same where reading whole lines of memory, and several of them in a page, is worth more.
const LARGE_TILE_BYTES: u64 = 2 << 20;

/// The most segments that are gathered together.
const WIDEST_TILE: u64 = 4096;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Lines side by side that are read where segments are long: each row is in a page of its own.
const LINES: u64 = 4;

/// The operators of the segments.
pub(crate) enum Operators<'a, Op> {
    /// One for all.
    Same(&'a Op),
    /// Each its own.
    Each(&'a (dyn Fn(u64) -> Op + Sync)),
}

/// Reduces segments to `results`, one for each.
///
/// # Safety
///
/// Every item that the segments lead to may be read.
pub(crate) unsafe fn reduce_segments<Op: Monoid>(
    operators: Operators<'_, Op>,
    segments: Segments<'_, Op::Item>,
    results: &mut [Op::Output],
) {
    // SAFETY: the caller's promise.
    unsafe { reduce_numbered(operators, segments, None, results) }
}

/// The same of some segments of more: their numbers among all, which their operators and results go by.
///
/// # Safety
///
/// As for [`reduce_segments`].
pub(crate) unsafe fn reduce_numbered<Op: Monoid>(
    operators: Operators<'_, Op>,
    segments: Segments<'_, Op::Item>,
    numbers: Option<&[u64]>,
    results: &mut [Op::Output],
) {
    let folder = Folder { level: Level::best(), operators, numbers, results: Places::new(results) };
    // SAFETY: the caller's promise.
    unsafe { reduce_each(&folder, segments) }
}

/// # Safety
///
/// As for [`reduce_segments`].
unsafe fn reduce_each<T: Plain>(folder: &dyn Fold<T>, segments: Segments<'_, T>) {
    match segments {
        // SAFETY: the caller's promise.
        Segments::Regular { first, layout } => unsafe { of_layout(folder, first, layout) },
        Segments::Irregular { items, plan } => of_plan(folder, items, plan),
    }
}

/// An operator at work on segments, for those who know its items only.
trait Fold<T>: Sync {
    /// What a thread has of its own.
    fn worker<'a>(&'a self) -> Box<dyn Worker<T> + 'a>;
    /// Reduces `width` segments of several chunks, of `n` items each: `first`, `first + step`, ...; chunks in parallel.
    fn long(&self, chunks: Chunks<'_, T>, n: u64, width: u64, first: u64, step: u64);
}

trait Worker<T> {
    /// Reduces segments `first`, `first + step`, ..., none longer than a chunk. Empty ones get the value of nothing.
    fn segments(&mut self, items: &dyn Items<T>, pieces: &[Piece], first: u64, step: u64);
}

struct Folder<'a, Op: Monoid> {
    level: Level,
    operators: Operators<'a, Op>,
    /// Of each segment among all, if there are more.
    numbers: Option<&'a [u64]>,
    results: Places<'a, Op::Output>,
}

impl<Op: Monoid> Folder<'_, Op> {
    #[inline]
    fn number(&self, k: u64) -> u64 {
        self.numbers.map_or(k, |numbers| numbers[k as usize])
    }

    #[inline]
    fn operator(&self, k: u64) -> Op {
        let k = self.number(k);
        match self.operators {
            Operators::Same(op) if Op::PER_SEGMENT => op.for_segment(k),
            Operators::Same(op) => *op,
            Operators::Each(of) => of(k).for_segment(k),
        }
    }

    #[inline]
    fn put(&self, k: u64, result: Op::Output) {
        // SAFETY: each segment is one thread's, once.
        unsafe { self.results.put(self.number(k) as usize, result) }
    }
}

impl<Op: Monoid> Fold<Op::Item> for Folder<'_, Op> {
    fn worker<'a>(&'a self) -> Box<dyn Worker<Op::Item> + 'a> {
        Box::new(Hand { folder: self, scratch: Scratch::new(), values: Vec::new() })
    }

    fn long(&self, chunks: Chunks<'_, Op::Item>, n: u64, width: u64, first: u64, step: u64) {
        let shape = Shape::new(n, size_of::<Op::Item>());
        let mut operators = Vec::with_capacity(width as usize);
        for j in 0..width {
            operators.push(self.operator(first + j * step));
        }
        let finish = &mut |j: usize, acc| self.put(first + j as u64 * step, operators[j].finish(acc));
        fold(self.level, &operators, &shape, chunks, finish);
    }
}

struct Hand<'a, Op: Monoid> {
    folder: &'a Folder<'a, Op>,
    scratch: Scratch<Op>,
    values: Vec<Op::Acc>,
}

impl<Op: Monoid> Worker<Op::Item> for Hand<'_, Op> {
    fn segments(&mut self, items: &dyn Items<Op::Item>, pieces: &[Piece], first: u64, step: u64) {
        let level = self.folder.level;
        let at_once = match self.folder.operators {
            Operators::Same(_) if !Op::PER_SEGMENT => BATCH as usize,
            _ => 1,
        };
        let mut k = first;
        for pieces in pieces.chunks(at_once) {
            let op = self.folder.operator(k);
            if self.values.len() < pieces.len() {
                self.values.resize(pieces.len(), op.identity());
            }
            values(level, &op, items, pieces, None, &mut self.scratch, &mut self.values);
            for (piece, &acc) in pieces.iter().zip(&self.values) {
                let result = if piece.len == 0 { op.finish_empty() } else { op.finish(acc) };
                self.folder.put(k, result);
                k += step;
            }
        }
    }
}

/// The most items in a segment of one chunk.
fn longest_chunk<T>() -> u64 {
    Shape::new(1, size_of::<T>()).chunk
}

/// So many pieces of work of so many bytes in all: the least number of them in a task.
fn least(count: u64, bytes: u64) -> usize {
    if bytes < PARALLEL_BYTES {
        return count as usize;
    }
    (TASK_BYTES / (bytes / count).max(1)).clamp(1, count) as usize
}

/// How many segments to do at once, so that every thread has several times as many.
fn block(segments: u64, most: u64) -> u64 {
    segments.div_ceil(8 * rayon::current_num_threads() as u64).min(most).max(1)
}

fn bytes<T>(items: u64) -> u64 {
    items.saturating_mul(size_of::<T>() as u64)
}

fn of_plan<T: Plain>(folder: &dyn Fold<T>, items: &[T], plan: &SegmentPlan) {
    let segments = plan.segments();
    let block = block(segments, BATCH);
    let blocks = segments.div_ceil(block);
    let all = bytes::<T>(plan.items()).saturating_add(16 * segments);
    let worker = || -> Box<dyn FnMut(usize) + '_> {
        let (mut worker, mut pieces) = (folder.worker(), Vec::new());
        Box::new(move |number| {
            let mut first = number as u64 * block;
            for k in number as u64 * block..segments.min((number as u64 + 1) * block) {
                let Range { start, end } = plan.range(k);
                if end - start <= longest_chunk::<T>() {
                    pieces.push(Piece { start, len: end - start, index: 0 });
                    continue;
                }
                worker.segments(&ByReference(items), &pieces, first, 1);
                pieces.clear();
                let long = ByReference(&items[start as usize..end as usize]);
                folder.long(Chunks::Of(&long), end - start, 1, k, 1);
                first = k + 1;
            }
            worker.segments(&ByReference(items), &pieces, first, 1);
            pieces.clear();
        })
    };
    // Lengths differ: threads take one block at a time.
    let least = if all < PARALLEL_BYTES { blocks } else { 1 };
    tasks::each(blocks as usize, least as usize, &worker);
}

/// # Safety
///
/// As for [`reduce_segments`].
unsafe fn of_layout<T: Plain>(folder: &dyn Fold<T>, first: *const T, layout: &Layout) {
    let (segments, n) = (layout.segments(), layout.segment_len());
    if segments == 0 {
        return;
    }
    if n == 0 {
        let mut worker = folder.worker();
        let pieces = vec![Piece { start: 0, len: 0, index: 0 }; segments.min(BATCH) as usize];
        for k in (0..segments).step_by(BATCH as usize) {
            let some = &pieces[..(segments - k).min(BATCH) as usize];
            worker.segments(&ByReference(&[][..]), some, k, 1);
        }
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        match layout.reduced[..] {
            [] | [Axis { stride: 1, .. }] => in_place(folder, first, &layout.kept, segments, n),
            _ => gathered(folder, first, layout, segments, n),
        }
    }
}

/// Memory that a layout leads to, from its lowest address on.
struct Memory<T> {
    first: *const T,
    len: u64,
}

// SAFETY: its maker vouches for all reads, from any thread.
unsafe impl<T: Sync> Sync for Memory<T> {}

impl<T: Plain> Items<T> for Memory<T> {
    fn len(&self) -> u64 {
        self.len
    }

    fn get(&self, index: u64) -> T {
        assert!(index < self.len);
        // SAFETY: only items of the layout are asked for.
        unsafe { self.first.add(index as usize).read() }
    }

    #[inline]
    fn run<'a>(&'a self, range: Range<u64>, _scratch: &'a mut Vec<T>) -> &'a [T] {
        debug_assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: only items of one segment are asked for together, which lie side by side.
        unsafe {
            let first = self.first.add(range.start as usize);
            std::slice::from_raw_parts(first, (range.end - range.start) as usize)
        }
    }
}

/// Segments whose items lie side by side.
///
/// # Safety
///
/// As for [`reduce_segments`].
unsafe fn in_place<T: Plain>(folder: &dyn Fold<T>, first: *const T, kept: &[Axis], segments: u64, n: u64) {
    let steps = |axis: &Axis| axis.stride * (axis.len - 1) as i64;
    let lowest: i64 = kept.iter().map(steps).filter(|&steps| steps < 0).sum();
    let highest: i64 = kept.iter().map(steps).filter(|&steps| steps > 0).sum();
    // SAFETY: the position with the least offset is one of the layout's.
    let lowest_item = unsafe { first.offset(lowest as isize) };
    let memory = Memory { first: lowest_item, len: (highest - lowest) as u64 + n };
    let all = bytes::<T>(n).saturating_mul(segments);
    if n > longest_chunk::<T>() {
        let worker = || -> Box<dyn FnMut(usize) + '_> {
            let (mut walk, mut none) = (Walk::from(kept, 0), Vec::new());
            let memory = &memory;
            Box::new(move |k| {
                walk.go(k as u64);
                let start = (walk.offset() - lowest) as u64;
                let long = ByReference(memory.run(start..start + n, &mut none));
                folder.long(Chunks::Of(&long), n, 1, k as u64, 1);
            })
        };
        return tasks::each(segments as usize, least(segments, all), &worker);
    }
    let block = block(segments, (TASK_BYTES / bytes::<T>(n).max(1)).clamp(1, WIDEST_TILE));
    let blocks = segments.div_ceil(block);
    let worker = || -> Box<dyn FnMut(usize) + '_> {
        let (mut worker, mut pieces) = (folder.worker(), Vec::new());
        let mut walk = Walk::from(kept, 0);
        let memory = &memory;
        Box::new(move |number| {
            let mut k = number as u64 * block;
            let end = segments.min(k + block);
            walk.go(k);
            while k < end {
                let count = BATCH.min(end - k);
                pieces.clear();
                while (pieces.len() as u64) < count {
                    let (left, stride) = walk.run();
                    let take = left.min(count - pieces.len() as u64);
                    let start = walk.offset() - lowest;
                    let starts = (0..take as i64).map(|j| (start + j * stride) as u64);
                    pieces.extend(starts.map(|start| Piece { start, len: n, index: 0 }));
                    walk.step(take);
                }
                worker.segments(memory, &pieces, k, 1);
                k += count;
            }
        })
    };
    tasks::each(blocks as usize, least(blocks, all.saturating_add(16 * segments)), &worker);
}

/// Where the items of neighbouring segments lie that are gathered together.
struct Tile<'a, T> {
    first: *const T,
    width: u64,
    /// From a segment to the next.
    stride: i64,
    reduced: &'a [Axis],
    /// Are segments closer to each other than the items of one?
    across: bool,
}

// SAFETY: its maker vouches for all reads, from any thread.
unsafe impl<T: Sync> Sync for Tile<'_, T> {}

impl<T: Plain> Tile<'_, T> {
    /// Puts a range of each segment's items side by side; how far apart the segments then are.
    ///
    /// # Safety
    ///
    /// As for [`reduce_segments`].
    unsafe fn gather(&self, range: Range<u64>, gathered: &mut Vec<T>) -> u64 {
        let len = (range.end - range.start) as usize;
        // Powers of two would meet in the same sets of a cache.
        let pitch = if size_of::<T>() * len >= 1024 { len + LINE.div_ceil(size_of::<T>()) } else { len };
        let (width, stride) = (self.width as usize, self.stride as isize);
        if gathered.len() < width * pitch {
            gathered.resize(width * pitch, zeroed());
        }
        let mut walk = Walk::from(self.reduced, range.start);
        // From the last position it goes on at the first one, which is as good as any.
        let mut ahead = walk.clone();
        if self.across {
            (0..AHEAD).for_each(|_| ahead.step(1));
        }
        let mut done = 0;
        while done < len {
            let (left, inner) = walk.run();
            if self.across {
                // Item by item: a line of memory is read once, and the places written to, one in each segment, stay in
                // the cache for the items that follow.
                // SAFETY: items of the layout, as far as the width goes.
                unsafe { fetch(self.first.offset(ahead.offset() as isize), width, stride) };
                ahead.step(1);
                // SAFETY: an item of the layout.
                let item = unsafe { self.first.offset(walk.offset() as isize) };
                let place = gathered[done..].as_mut_ptr();
                for j in 0..width {
                    // SAFETY: an item of the layout; a place within `width` times `pitch`.
                    unsafe { place.add(j * pitch).write(item.offset(j as isize * stride).read()) };
                }
                walk.step(1);
                done += 1;
                continue;
            }
            let take = left.min((len - done) as u64) as usize;
            for j in 0..width {
                let places = &mut gathered[j * pitch + done..][..take];
                // SAFETY: an item of the layout; so are the `take` from there on along the axis.
                unsafe {
                    let row = self.first.offset(walk.offset() as isize + j as isize * stride);
                    if inner == 1 {
                        places.copy_from_slice(std::slice::from_raw_parts(row, take));
                    } else {
                        for (i, place) in (0..).zip(places) {
                            *place = row.offset(i * inner as isize).read();
                        }
                    }
                }
            }
            walk.step(take as u64);
            done += take;
        }
        pitch as u64
    }
}

/// Rows that are fetched before they are read: each may be in a page of its own, where processors fetch nothing ahead.
const AHEAD: usize = 8;

/// Tells the processor that some lines, [`LINES`] at most, will be read.
///
/// # Safety
///
/// `width` items, `stride` apart, may be read.
#[inline(always)]
unsafe fn fetch<T>(first: *const T, width: usize, stride: isize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let a_line = (LINE / size_of::<T>().max(1) / stride.unsigned_abs().max(1)).max(1);
        for line in 0..LINES as usize {
            let j = line * a_line;
            if j >= width {
                break;
            }
            // SAFETY: one of the items.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(first.offset(j as isize * stride).cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (first, width, stride);
}

/// Segments whose items do not lie side by side: those that are neighbours in memory are gathered together, so that
/// cache lines are used as wholes.
///
/// # Safety
///
/// As for [`reduce_segments`].
unsafe fn gathered<T: Plain>(folder: &dyn Fold<T>, first: *const T, layout: &Layout, segments: u64, n: u64) {
    // Along which kept axis are neighbours closest? How many segments lie between them?
    let mut numbers = layout.kept.clone();
    let mut step = 1;
    for axis in numbers.iter_mut().rev() {
        axis.stride = step as i64;
        step *= axis.len;
    }
    let mut others = layout.kept.clone();
    let closest = (0..others.len()).rev().min_by_key(|&i| others[i].stride.unsigned_abs());
    let (line, step) = match closest {
        Some(closest) => (others.remove(closest), numbers.remove(closest).stride as u64),
        None => (Axis { len: 1, stride: 0 }, 1),
    };
    let finest = layout.reduced.iter().map(|axis| axis.stride.unsigned_abs()).min();
    let across = finest.is_some_and(|finest| line.stride.unsigned_abs() < finest);

    let long = n > longest_chunk::<T>();
    let segment_bytes = bytes::<T>(n.min(longest_chunk::<T>()));
    let one_line = LINE.div_ceil(size_of::<T>().max(1)) as u64;
    let whole_lines = (LINES * one_line).min(LARGE_TILE_BYTES / segment_bytes.max(1));
    let share = line.len.div_ceil(2 * rayon::current_num_threads() as u64);
    let width = (TILE_BYTES / segment_bytes.max(1))
        .max(if across { whole_lines } else { 1 })
        .min(WIDEST_TILE)
        .min(share.max(one_line))
        .clamp(1, line.len);
    let tiles_a_line = line.len.div_ceil(width);
    let tiles = segments / line.len * tiles_a_line;
    let all = bytes::<T>(n).saturating_mul(segments);
    let start = Start(first);

    let worker = || -> Box<dyn FnMut(usize) + '_> {
        let (mut worker, mut gathered, mut pieces) = (folder.worker(), Vec::new(), Vec::new());
        let (mut at, mut number) = (Walk::from(&others, 0), Walk::from(&numbers, 0));
        let start = &start;
        let reduced = &layout.reduced[..];
        Box::new(move |t| {
            let (other, along) = (t as u64 / tiles_a_line, t as u64 % tiles_a_line * width);
            at.go(other);
            number.go(other);
            let first = number.offset() as u64 + along * step;
            let offset = at.offset() + along as i64 * line.stride;
            let width = width.min(line.len - along);
            // SAFETY: an item of the layout.
            let here = unsafe { start.0.offset(offset as isize) };
            if long && width == 1 {
                let (shape, strides): (Vec<usize>, Vec<isize>) =
                    reduced.iter().map(|axis| (axis.len as usize, axis.stride as isize)).unzip();
                // SAFETY: the items of one segment, which are the layout's.
                let items = unsafe { Strided::from_raw_parts(here, &shape, &strides) };
                return folder.long(Chunks::Of(&items), n, 1, first, 1);
            }
            let tile = Tile { first: here, width, stride: line.stride, reduced, across };
            if long {
                // SAFETY: the caller's promise.
                let gather = |range: Range<u64>, items: &mut Vec<T>| unsafe { tile.gather(range, items) };
                return folder.long(Chunks::Gathered(&gather), n, width, first, step);
            }
            // SAFETY: the caller's promise.
            let pitch = unsafe { tile.gather(0..n, &mut gathered) };
            pieces.clear();
            pieces.extend((0..width).map(|j| Piece { start: j * pitch, len: n, index: 0 }));
            worker.segments(&ByReference(&gathered[..]), &pieces, first, step);
        })
    };
    tasks::each(tiles as usize, least(tiles, all), &worker);
}

/// A pointer that threads share.
struct Start<T>(*const T);

// SAFETY: what is read through it is shared between threads.
unsafe impl<T: Sync> Sync for Start<T> {}
