//! The order of a scan: which operands combine into which prefix.
//!
//! A scan gives each position the combination of all items up to it. Its order is a function of the operator's types
//! alone, and what stands at a position depends on nothing behind it: **the first results of a long scan are the results
//! of the short one**, to the bit.
//!
//! 1. The items are cut into tiles of [`Tiling::tile`] items, a tile into warps of 32 strips, a warp into strips of
//!    [`Tiling::strip`] items. A strip folds its items in order, [`lift`](Monoid::lift) for the first and
//!    [`push`](Monoid::push) for the rest.
//! 2. The 32 strips of a warp are scanned by distances of 1, 2, 4, 8, 16: what is there so far combines with what is there
//!    so far at that distance to its left (W. D. Hillis and G. L. Steele, Data Parallel Algorithms, 1986). So are the values
//!    of a tile's warps.
//! 3. So are the values of a group of [`GROUP`] tiles. **The groups' values combine strictly from left to right**: what stands
//!    before group `i + 1` is what stands before group `i`, combined with the value of group `i`. A start value, where there is
//!    one, stands before group 0.
//! 4. What stands before a tile is what stands before its group, combined with the scan of the tiles before it; what stands
//!    before a warp is what stands before its tile, combined with the scan of the warps before it; what stands before a strip
//!    is what stands before its warp, combined with the scan of the strips before it.
//! 5. From there a strip pushes its items one by one. Behind its last item, if it is whole, stands what stands before the
//!    next strip: so an exclusive scan has the bits of the inclusive one, a position later.
//!
//! What is not there is skipped; nothing is ever combined with an identity.
//!
//! The groups are those of a single pass with decoupled look-back (D. Merrill and M. Garland, Single-pass Parallel Prefix
//! Scan with Decoupled Look-back, NVIDIA NVR-2016-002, 2016). There a tile adds up whichever sums of its predecessors it
//! finds; here it scans those of its group, and the groups' chain has one order, so that bits do not depend on who found what.
//! A chain of all tiles would be as fixed, but its every step waits for the one before: an H200 took 1.3 times as long.

use crate::{Monoid, Plain, limits, tree::vector_len};

/// The threads of a warp, and the strips of one.
pub const LANES: u32 = 32;

/// Tiles of a group.
pub const GROUP: u32 = LANES;

/// Bytes of items, or of results if those are wider, that a strip has at most, unless one vector's worth are more.
const STRIP_BYTES: usize = 112;

/// Bytes of shared memory that the strips of a block may take.
const BLOCK_BYTES: usize = 40 << 10;

/// The most threads of a block.
const MAX_THREADS: usize = 256;

/// How a scan's items are cut: a function of the sizes of item and result alone.
///
/// ```
/// use warpfold_monoid::{Sum, scan::Tiling};
///
/// let tiling = Tiling::of::<Sum<f32>>();
/// assert_eq!((tiling.strip, tiling.threads), (28, 256));
/// assert_eq!(tiling.tiles(100_000), 14);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tiling {
    /// Items of a strip, which one thread folds.
    pub strip: u32,
    /// Strips of a tile, whole warps.
    pub threads: u32,
}

impl Tiling {
    /// That of an operator.
    pub const fn of<Op: Monoid>() -> Tiling {
        Tiling::new(size_of::<Op::Item>(), size_of::<Op::Output>())
    }

    /// That of operators with items and results of so many bytes.
    pub const fn new(item: usize, output: usize) -> Tiling {
        let (a, b) = (vector_len(item), vector_len(output));
        let unit = if a > b { a } else { b };
        let wide = if item > output { item } else { output };
        let bytes = if wide == 0 { 1 } else { unit * wide };
        let units = if STRIP_BYTES < bytes { 1 } else { STRIP_BYTES / bytes };
        let strip = unit * units;
        let most = BLOCK_BYTES / (strip * wide + 16);
        let mut threads = MAX_THREADS;
        while threads > most {
            threads /= 2;
        }
        Tiling { strip: strip as u32, threads: threads as u32 }
    }

    /// Items of a warp's strips.
    pub const fn warp(&self) -> u32 {
        self.strip * LANES
    }

    /// Warps of a tile.
    pub const fn warps(&self) -> u32 {
        self.threads / LANES
    }

    /// Items of a tile.
    pub const fn tile(&self) -> u64 {
        self.strip as u64 * self.threads as u64
    }

    /// Tiles of `n` items.
    pub const fn tiles(&self, n: u64) -> u64 {
        n.div_ceil(self.tile())
    }
}

/// An operator whose operands stand in the reverse order: its scan from the left is the other's from the right.
///
/// ```
/// use warpfold_monoid::{Affine, Compose, Monoid, scan::Reversed};
///
/// let (op, f, g) = (Compose::<i32>::new(), Affine { scale: 2, shift: 1 }, Affine { scale: 3, shift: 0 });
/// assert_eq!(Reversed(op).combine(f, g), op.combine(g, f));
/// ```
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Reversed<Op>(pub Op);

// SAFETY: transparent.
unsafe impl<Op: Plain> Plain for Reversed<Op> {
    const LAYOUT: u64 = Op::LAYOUT;
}

impl<Op: Monoid> Monoid for Reversed<Op> {
    type Item = Op::Item;
    type Acc = Op::Acc;
    type Output = Op::Output;
    type Empty = Op::Empty;
    const COMMUTATIVE: bool = Op::COMMUTATIVE;
    const ANY_ORDER: bool = Op::ANY_ORDER;
    #[inline(always)]
    fn identity(&self) -> Op::Acc {
        self.0.identity()
    }
    #[inline(always)]
    fn lift(&self, item: Op::Item, index: u64) -> Op::Acc {
        self.0.lift(item, index)
    }
    #[inline(always)]
    fn combine(&self, left: Op::Acc, right: Op::Acc) -> Op::Acc {
        self.0.combine(right, left)
    }
    #[inline(always)]
    fn push(&self, acc: Op::Acc, item: Op::Item, index: u64) -> Op::Acc {
        // Where operands may change places, an item may be pushed from the other side too.
        if Op::COMMUTATIVE {
            self.0.push(acc, item, index)
        } else {
            self.0.combine(self.0.lift(item, index), acc)
        }
    }
    #[inline(always)]
    fn finish(&self, acc: Op::Acc) -> Op::Output {
        self.0.finish(acc)
    }
    #[inline(always)]
    fn finish_empty(&self) -> Op::Output {
        self.0.finish_empty()
    }
}

/// The most warps of a tile.
const MAX_WARPS: usize = MAX_THREADS / LANES as usize;

/// Scans the values of neighbours: by distances of 1, 2, 4, ...
#[inline(always)]
pub fn neighbours<Op: Monoid>(op: &Op, values: &mut [Op::Acc]) {
    let mut step = 1;
    while step < values.len() {
        let mut i = values.len() - 1;
        while i >= step {
            values[i] = op.combine(values[i - step], values[i]);
            i -= 1;
        }
        step *= 2;
    }
}

/// Items in the order of a scan; and the index that the operator is told of each.
pub trait Positions<T> {
    /// The item at a position.
    fn item(&self, position: u64) -> T;
    /// Its index in the array.
    fn index(&self, position: u64) -> u64;
}

/// Scans the strips of one warp, of items `start .. end`, and returns how many there are.
#[inline(always)]
fn scan_strips<Op: Monoid>(
    op: &Op,
    strip: u64,
    items: &impl Positions<Op::Item>,
    start: u64,
    end: u64,
    values: &mut [Op::Acc; LANES as usize],
) -> usize {
    let strips = (end - start).div_ceil(strip) as usize;
    let mut at = start;
    for value in &mut values[..strips] {
        let last = end.min(at + strip);
        let mut acc = op.lift(items.item(at), items.index(at));
        for i in at + 1..last {
            acc = op.push(acc, items.item(i), items.index(i));
        }
        *value = acc;
        at = last;
    }
    neighbours(op, &mut values[..strips]);
    strips
}

/// A tile's strips within their warps, and its warps, scanned.
struct Scanned<A> {
    strips: [[A; LANES as usize]; MAX_WARPS],
    warps: [A; MAX_WARPS],
    count: usize,
}

impl<A: Plain> Scanned<A> {
    /// The tile that begins at `start`, of `n` items in all.
    #[inline(always)]
    fn new<Op: Monoid<Acc = A>>(op: &Op, items: &impl Positions<Op::Item>, start: u64, n: u64) -> Self {
        let tiling = const { Tiling::of::<Op>() };
        let (len, end) = (tiling.warp() as u64, n.min(start + tiling.tile()));
        let count = (end - start).div_ceil(len) as usize;
        let nothing = op.identity();
        let mut strips = [[nothing; LANES as usize]; MAX_WARPS];
        let mut warps = [nothing; MAX_WARPS];
        let mut at = start;
        for (warp, strips) in warps.iter_mut().zip(&mut strips).take(count) {
            let last = end.min(at + len);
            let there = scan_strips(op, tiling.strip as u64, items, at, last, strips);
            *warp = strips[there - 1];
            at = last;
        }
        neighbours(op, &mut warps[..count]);
        Scanned { strips, warps, count }
    }
}

/// The value of the tile that begins at `start`, of `n` items in all.
pub fn tile_value<Op: Monoid>(op: &Op, items: &impl Positions<Op::Item>, start: u64, n: u64) -> Op::Acc {
    const { limits::check::<Op>() };
    let scanned = Scanned::new(op, items, start, n);
    scanned.warps[scanned.count - 1]
}

/// What stands behind tile after tile.
#[derive(Clone, Copy, Debug)]
pub struct Chain<A> {
    before_group: Option<A>,
    values: [A; GROUP as usize],
    count: usize,
    behind: Option<A>,
}

impl<A: Plain> Chain<A> {
    /// Before the first tile, where there may be a start value.
    pub fn new<Op: Monoid<Acc = A>>(op: &Op, initial: Option<A>) -> Self {
        let values = [op.identity(); GROUP as usize];
        Chain { before_group: initial, values, count: 0, behind: initial }
    }

    /// What stands behind all tiles so far, if anything does.
    pub fn behind(&self) -> Option<A> {
        self.behind
    }

    /// Takes in the next tile's value, and returns what stands behind that tile.
    pub fn push<Op: Monoid<Acc = A>>(&mut self, op: &Op, value: A) -> A {
        self.values[self.count] = value;
        self.count += 1;
        let mut scanned = self.values;
        neighbours(op, &mut scanned[..self.count]);
        let behind = after(op, self.before_group, scanned[self.count - 1]);
        if self.count == GROUP as usize {
            (self.before_group, self.count) = (Some(behind), 0);
        }
        self.behind = Some(behind);
        behind
    }
}

/// What stands behind a value before which something may stand.
#[inline(always)]
fn after<Op: Monoid>(op: &Op, before: Option<Op::Acc>, value: Op::Acc) -> Op::Acc {
    match before {
        Some(before) => op.combine(before, value),
        None => value,
    }
}

/// The results of the tile that begins at `start`, of `n` items in all, given what stands before it and, once its value is
/// known, behind it; returns the latter. `each` is told the positions in order, with their results: before the item if
/// `exclusive`, else with it.
pub fn tile_results<Op: Monoid>(
    op: &Op,
    items: &impl Positions<Op::Item>,
    (start, n): (u64, u64),
    before: Option<Op::Acc>,
    behind: impl FnOnce(Op::Acc) -> Op::Acc,
    exclusive: bool,
    mut each: impl FnMut(u64, Op::Output),
) -> Op::Acc {
    const { limits::check::<Op>() };
    let tiling = const { Tiling::of::<Op>() };
    let (strip, len, end) = (tiling.strip as u64, tiling.warp() as u64, n.min(start + tiling.tile()));
    let scanned = Scanned::new(op, items, start, n);
    let behind = behind(scanned.warps[scanned.count - 1]);
    let mut before_warp = before;
    let warps = scanned.strips.iter().zip(scanned.warps).take(scanned.count);
    for (w, (strips, value)) in warps.enumerate() {
        let first = start + w as u64 * len;
        let last = w as u32 + 1 == tiling.warps();
        let behind_warp = if last { behind } else { after(op, before, value) };
        let mut running = before_warp;
        for (k, &scan) in strips.iter().enumerate() {
            let at = first + k as u64 * strip;
            for i in at..end.min(at + strip) {
                let with = if i + 1 - at == strip {
                    // What stands before the next strip, be it this warp's, the next one's or the next tile's.
                    if k as u32 + 1 == LANES { behind_warp } else { after(op, before_warp, scan) }
                } else {
                    match running {
                        Some(acc) => op.push(acc, items.item(i), items.index(i)),
                        None => op.lift(items.item(i), items.index(i)),
                    }
                };
                let result = match running {
                    _ if !exclusive => op.finish(with),
                    Some(acc) => op.finish(acc),
                    None => op.finish_empty(),
                };
                each(i, result);
                running = Some(with);
            }
        }
        before_warp = Some(behind_warp);
    }
    behind
}

/// Positions in the order of memory.
struct Forward<'a, T>(&'a [T]);

impl<T: Plain> Positions<T> for Forward<'_, T> {
    fn item(&self, position: u64) -> T {
        self.0[position as usize]
    }
    fn index(&self, position: u64) -> u64 {
        position
    }
}

/// The other way.
struct Backward<'a, T>(&'a [T]);

impl<T: Plain> Positions<T> for Backward<'_, T> {
    fn item(&self, position: u64) -> T {
        self.0[self.index(position) as usize]
    }
    fn index(&self, position: u64) -> u64 {
        self.0.len() as u64 - 1 - position
    }
}

/// Which scan of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Form {
    /// Each result leaves out the item at its own position.
    pub exclusive: bool,
    /// Each result is that of the items from its position to the end, in the order in which they stand.
    pub reverse: bool,
}

/// Scans a slice: the definition, usable anywhere.
///
/// `initial` stands before the first item (of a reverse scan: behind the last). Nothing stands before the first item of an
/// exclusive scan without one, whose result is [`finish_empty`](Monoid::finish_empty).
///
/// ```
/// use warpfold_monoid::{Sum, scan::{self, Form}};
///
/// let (op, mut sums) = (Sum::<u32>::new(), [0; 4]);
/// scan::scan(&op, &[1, 2, 3, 4], Form::default(), None, &mut sums);
/// assert_eq!(sums, [1, 3, 6, 10]);
/// scan::scan(&op, &[1, 2, 3, 4], Form { exclusive: true, reverse: true }, Some(10), &mut sums);
/// assert_eq!(sums, [19, 17, 14, 10]);
/// ```
///
/// # Panics
///
/// If the slices differ in length.
pub fn scan<Op: Monoid>(
    op: &Op,
    items: &[Op::Item],
    form: Form,
    initial: Option<Op::Acc>,
    results: &mut [Op::Output],
) {
    assert_eq!(items.len(), results.len(), "a result for each item");
    if form.reverse {
        let positions = Backward(items);
        let last = items.len().wrapping_sub(1) as u64;
        tiles(&Reversed(*op), &positions, items.len() as u64, form.exclusive, initial, |position, result| {
            results[(last - position) as usize] = result;
        });
    } else {
        let positions = Forward(items);
        tiles(op, &positions, items.len() as u64, form.exclusive, initial, |position, result| {
            results[position as usize] = result;
        });
    }
}

fn tiles<Op: Monoid>(
    op: &Op,
    items: &impl Positions<Op::Item>,
    n: u64,
    exclusive: bool,
    initial: Option<Op::Acc>,
    mut each: impl FnMut(u64, Op::Output),
) {
    let (mut chain, mut start) = (Chain::new(op, initial), 0);
    while start < n {
        let before = chain.behind();
        let behind = |value| chain.push(op, value);
        tile_results(op, items, (start, n), before, behind, exclusive, &mut each);
        start += const { Tiling::of::<Op>() }.tile();
    }
}
