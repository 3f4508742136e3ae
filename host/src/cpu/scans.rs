//! Scans: many rows side by side, a long one tile by tile.

use warpfold_monoid::{
    Monoid,
    scan::{Chain, Positions, Reversed, Tiling, tile_results, tile_value},
};

use super::tasks;
use crate::scans::{Lines, Setting};

/// Bytes of input from which on several threads are worth waking.
const PARALLEL_BYTES: u64 = 256 << 10;

/// Rows for each thread from which on each is one thread's.
const ROWS_A_THREAD: u64 = 4;

/// One row: its items, from the end that its scan begins at, and where its results go.
struct Line<Op: Monoid> {
    items: *const Op::Item,
    results: *mut Op::Output,
    stride: i64,
    n: u64,
    reverse: bool,
    /// Items that come before those that are there.
    base: u64,
}

impl<Op: Monoid> Clone for Line<Op> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Op: Monoid> Copy for Line<Op> {}

// SAFETY: plain data; whoever makes one sees to it that no thread writes what another reads.
unsafe impl<Op: Monoid> Sync for Line<Op> {}

impl<Op: Monoid> Positions<Op::Item> for Line<Op> {
    #[inline(always)]
    fn item(&self, position: u64) -> Op::Item {
        // SAFETY: whoever makes one promises that its items may be read.
        unsafe { self.items.offset(self.at(position)).read() }
    }
    #[inline(always)]
    fn index(&self, position: u64) -> u64 {
        if self.reverse { self.n - 1 - position } else { position }
    }
}

impl<Op: Monoid> Line<Op> {
    /// The row that lies so many items on.
    fn moved(&self, by: i64) -> Self {
        Line {
            items: self.items.wrapping_offset(by as isize),
            results: self.results.wrapping_offset(by as isize),
            ..*self
        }
    }

    /// Where a position lies.
    #[inline(always)]
    fn at(&self, position: u64) -> isize {
        ((self.index(position) - self.base) as i64 * self.stride) as isize
    }

    /// Writes the results of the tile that begins at `start`, given what stands before it and, once its value is known,
    /// behind it; returns the latter.
    ///
    /// # Safety
    ///
    /// The results may be written, and whoever reads what lies there has read it.
    #[inline]
    unsafe fn tile(
        &self,
        op: &Op,
        start: u64,
        before: Option<Op::Acc>,
        behind: impl FnOnce(Op::Acc) -> Op::Acc,
        exclusive: bool,
    ) -> Op::Acc {
        // SAFETY: the caller's promise.
        let put = |position: u64, result| unsafe { self.results.offset(self.at(position)).write(result) };
        if !Op::ANY_ORDER {
            return tile_results(op, self, (start, self.n), before, behind, exclusive, put);
        }
        // The same bits.
        let end = self.n.min(start + const { Tiling::of::<Op>() }.tile());
        let (item, index) = (self.item(start), self.index(start));
        let mut running = match before {
            Some(before) => op.push(before, item, index),
            None => op.lift(item, index),
        };
        let first = match before {
            _ if !exclusive => op.finish(running),
            Some(before) => op.finish(before),
            None => op.finish_empty(),
        };
        put(start, first);
        for i in start + 1..end {
            let with = op.push(running, self.item(i), self.index(i));
            put(i, op.finish(if exclusive { running } else { with }));
            running = with;
        }
        running
    }

    /// The value of the tile that begins at `start`.
    fn tile_value(&self, op: &Op, start: u64) -> Op::Acc {
        if !Op::ANY_ORDER {
            return tile_value(op, self, start, self.n);
        }
        let end = self.n.min(start + const { Tiling::of::<Op>() }.tile());
        let mut value = op.lift(self.item(start), self.index(start));
        for i in start + 1..end {
            value = op.push(value, self.item(i), self.index(i));
        }
        value
    }
}

/// Scans rows.
///
/// # Safety
///
/// Every item of the lines may be read from `input` on, and every result written from `output` on, which is the same memory
/// or does not overlap.
pub(crate) unsafe fn scan<Op: Monoid>(
    op: &Op,
    setting: &Setting<Op::Acc>,
    lines: &Lines,
    input: *const Op::Item,
    output: *mut Op::Output,
) {
    let (stride, n, reverse) = (lines.rows.stride, lines.n, setting.form.reverse);
    // SAFETY: the caller's promise.
    unsafe {
        if reverse {
            let line = Line::<Reversed<Op>> { items: input, results: output, stride, n, reverse, base: 0 };
            rows(&Reversed(*op), setting, lines, line);
        } else {
            let line = Line::<Op> { items: input, results: output, stride, n, reverse, base: 0 };
            rows(op, setting, lines, line);
        }
    }
}

/// # Safety
///
/// As for [`scan`]; `first` is the first row.
unsafe fn rows<Op: Monoid>(op: &Op, setting: &Setting<Op::Acc>, lines: &Lines, first: Line<Op>) {
    let (exclusive, initial) = (setting.form.exclusive, setting.initial);
    let bytes = lines.items().saturating_mul(size_of::<Op::Item>() as u64);
    let threads = rayon::current_num_threads() as u64;
    let parallel = bytes >= PARALLEL_BYTES && threads > 1;
    let tiling = const { Tiling::of::<Op>() };
    if parallel && tiling.tiles(lines.n) > 1 && lines.count < ROWS_A_THREAD * threads {
        for k in 0..lines.count {
            // SAFETY: the caller's promise.
            unsafe { long(op, &first.moved(lines.start(k)), exclusive, &mut Chain::new(op, initial)) };
        }
        return;
    }
    let least = if parallel { (lines.count / (8 * threads)).max(1) } else { lines.count };
    tasks::each(lines.count as usize, least as usize, &|| {
        let first = &first;
        Box::new(move |k| {
            let line = first.moved(lines.start(k as u64));
            let (mut chain, mut before, mut start) = (Chain::new(op, initial), initial, 0);
            while start < line.n {
                let behind = |value| chain.push(op, value);
                // SAFETY: the caller's promise; a row is one thread's.
                before = Some(unsafe { line.tile(op, start, before, behind, exclusive) });
                start += tiling.tile();
            }
        })
    });
}

/// Scans one row, or what is there of it from a tile's first item on, its tiles on several threads: their values, the chain of these,
/// which goes on, and all over again with what stands before each.
///
/// # Safety
///
/// As for [`scan`].
unsafe fn long<Op: Monoid>(op: &Op, line: &Line<Op>, exclusive: bool, chain: &mut Chain<Op::Acc>) {
    let tiling = const { Tiling::of::<Op>() };
    let tiles = tiling.tiles(line.n - line.base) as usize;
    // The tiles' values, and then what stands behind each.
    let mut behind = vec![op.identity(); tiles];
    let values = tasks::Places::new(&mut behind);
    tasks::each(tiles, 1, &|| {
        Box::new(move |t| {
            let value = line.tile_value(op, line.base + t as u64 * tiling.tile());
            // SAFETY: the tile's own place.
            unsafe { values.put(t, value) };
        })
    });
    let first = chain.behind();
    for value in &mut behind {
        *value = chain.push(op, *value);
    }
    let behind = &behind;
    tasks::each(tiles, 1, &|| {
        Box::new(move |t| {
            let before = if t > 0 { Some(behind[t - 1]) } else { first };
            // SAFETY: the caller's promise; a tile is one thread's.
            unsafe { line.tile(op, line.base + t as u64 * tiling.tile(), before, |_| behind[t], exclusive) };
        })
    });
}

/// A row whose items come one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Running<Op: Monoid> {
    exclusive: bool,
    /// All whole tiles that have come.
    chain: Chain<Op::Acc>,
    /// Items of these.
    done: u64,
    /// The items since, less than a tile.
    tail: Vec<Op::Item>,
}

impl<Op: Monoid> Running<Op> {
    pub(crate) fn new(op: &Op, setting: &Setting<Op::Acc>) -> Self {
        let Setting { form, initial } = *setting;
        Running { exclusive: form.exclusive, chain: Chain::new(op, initial), done: 0, tail: Vec::new() }
    }

    /// The results of the next items, as many.
    pub(crate) fn push(&mut self, op: &Op, mut items: &[Op::Item], mut results: &mut [Op::Output]) {
        let tile = const { Tiling::of::<Op>() }.tile() as usize;
        if !self.tail.is_empty() {
            let here = items.len().min(tile - self.tail.len());
            self.take_some(op, &items[..here], &mut results[..here]);
            (items, results) = (&items[here..], &mut results[here..]);
        }
        let (whole, some) = items.split_at(items.len() / tile * tile);
        let (of_whole, of_some) = results.split_at_mut(whole.len());
        if !whole.is_empty() {
            let line = self.line(whole, of_whole);
            // SAFETY: as many results as items.
            unsafe { long(op, &line, self.exclusive, &mut self.chain) };
            self.done += whole.len() as u64;
        }
        if !some.is_empty() {
            self.take_some(op, some, of_some);
        }
    }

    /// The same of no more than the tile has room for: all of the tile is scanned anew.
    fn take_some(&mut self, op: &Op, items: &[Op::Item], results: &mut [Op::Output]) {
        let tile = const { Tiling::of::<Op>() }.tile() as usize;
        let from = self.tail.len();
        self.tail.extend_from_slice(items);
        let mut all = vec![op.finish_empty(); self.tail.len()];
        let line = self.line(&self.tail, &mut all);
        // Of a tile that is not whole the chain knows nothing yet.
        let mut chain = self.chain;
        let before = chain.behind();
        // SAFETY: as many results as items.
        let behind =
            unsafe { line.tile(op, self.done, before, |value| chain.push(op, value), self.exclusive) };
        if Op::ANY_ORDER {
            // Nobody has asked for the tile's own value.
            chain = Chain::new(op, Some(behind));
        }
        results.copy_from_slice(&all[from..]);
        if self.tail.len() == tile {
            self.chain = chain;
            self.done += tile as u64;
            self.tail.clear();
        }
    }

    /// Items behind those that are done, and their results.
    fn line(&self, items: &[Op::Item], results: &mut [Op::Output]) -> Line<Op> {
        let (base, n) = (self.done, self.done + items.len() as u64);
        Line { items: items.as_ptr(), results: results.as_mut_ptr(), stride: 1, n, reverse: false, base }
    }
}
