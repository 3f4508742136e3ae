//! The canonical tree: in which order a reduction combines.
//!
//! The order is a function of the number of items and of the operator (the size of its item) alone. Every backend and
//! every strategy realises it, so bits never depend on the device, the launch, alignment or timing.
//! `docs/numerics.md` says the same in words.
//!
//! 1. The input is cut into [`chunks`](Shape::chunks) of [`chunk`](Shape::chunk) items; the last may be shorter.
//! 2. Item `i` of a chunk belongs to lane `i % lanes`; each lane folds its items in order, [`lift`](Monoid::lift)
//!    for the first and [`push`](Monoid::push) for the rest.
//! 3. The lanes of a chunk combine pairwise, neighbours first: 0 with 1, 2 with 3, ...; then 0 with 2, 4 with 6, ...
//! 4. The chunks' values fold the same way over [`FOLD_LANES`] lanes: value `k` belongs to lane `k % FOLD_LANES`,
//!    each lane combines its values in order, then the lanes combine pairwise, neighbours first.
//!
//! An operator that is not [commutative](Monoid::COMMUTATIVE) has the same chunks and another order within and over
//! them, in which every operand stands to the right of all before it:
//!
//! 1. A chunk is cut into [parts](Shape::part), a part into [tiles](Shape::tile). [`FOLD_LANES`] lanes share a tile:
//!    each folds `VECTORS_A_GROUP` vectors that lie side by side, item by item, and the lanes combine pairwise,
//!    neighbours first.
//! 2. A part combines its tiles' values from left to right, and the parts' values combine pairwise, neighbours first.
//! 3. The chunks' values are cut into [runs](Shape::run), one for each of at most [`FOLD_LANES`] lanes. A lane
//!    combines its run from left to right, and the lanes combine pairwise, neighbours first.
//!
//! An operand that is not there is skipped; nothing is ever combined with an identity.
//!
//! A [stream](fold_stream), whose length shows at its end, is cut into pieces of a fixed length, each folded as above with
//! [chunks of one length](Shape::of_piece), and their values combine from left to right.

use core::ops::Range;

use crate::{Monoid, OnEmpty, limits, monoid::Value};

/// Bytes that one thread loads at once; a lane group is this wide.
pub const VECTOR_BYTES: usize = 16;

/// Vectors that a lane group takes in before there are more groups: what a thread has in flight.
pub const VECTORS_A_GROUP: u64 = 4;

/// The most lane groups in a chunk: the threads of the largest block.
pub const MAX_GROUPS: u32 = 512;

/// Lane groups in a chunk of an array of middling length: more and smaller blocks start sooner.
pub const SHORT_GROUPS: u32 = 256;

/// Vectors up to which an array is one chunk.
const ONE_CHUNK: u64 = MAX_GROUPS as u64 * VECTORS_A_GROUP;

/// Vectors in the chunks of an array of middling length.
const SHORT_CHUNK: u64 = SHORT_GROUPS as u64 * VECTORS_A_GROUP;

/// The most chunks: enough to fill a device, few enough to fold quickly.
pub const MAX_CHUNKS: u64 = 256;

/// Chunks in a piece of a stream.
pub const PIECE_CHUNKS: u64 = 2048;

/// Lanes over which the chunks' values fold, and which share a tile of operands that keep their order.
pub const FOLD_LANES: u32 = 32;

/// The canonical tree of one array length.
///
/// ```
/// use warpfold_monoid::tree::Shape;
///
/// let short = Shape::new(100, 4);
/// assert_eq!((short.lanes(), short.chunks), (32, 1));
/// let long = Shape::new(1 << 20, 4);
/// assert_eq!((long.lanes(), long.chunk, long.chunks), (1024, 4096, 256));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Items in all.
    pub n: u64,
    /// Items in a vector: 16 bytes' worth for items of 1, 2, 4, 8 or 16 bytes, else 1.
    pub vector: u32,
    /// Groups of `vector` neighbouring lanes, a power of two: one thread holds a group.
    pub groups: u32,
    /// Items in a chunk (in all but the last).
    pub chunk: u64,
    /// Chunks; 0 for an empty array.
    pub chunks: u64,
}

impl Shape {
    /// The tree for `n` items of `item_size` bytes.
    pub const fn new(n: u64, item_size: usize) -> Shape {
        let vector = vector_len(item_size) as u32;
        let vectors = n.div_ceil(vector as u64);
        let (groups, chunk_vectors) = if vectors <= ONE_CHUNK {
            ((vectors.div_ceil(VECTORS_A_GROUP) as u32).next_power_of_two(), ONE_CHUNK)
        } else if vectors <= SHORT_CHUNK * MAX_CHUNKS {
            (SHORT_GROUPS, SHORT_CHUNK)
        } else {
            let mut chunk_vectors = ONE_CHUNK;
            while vectors.div_ceil(chunk_vectors) > MAX_CHUNKS {
                chunk_vectors *= 2;
            }
            (MAX_GROUPS, chunk_vectors)
        };
        let chunk = chunk_vectors * vector as u64;
        Shape { n, vector, groups, chunk, chunks: n.div_ceil(chunk) }
    }

    /// The tree for `n` items of a stream that begin a piece of it: at most [`PIECE_CHUNKS`] chunks, all as the chunks of the
    /// shortest long array.
    ///
    /// ```
    /// use warpfold_monoid::tree::Shape;
    ///
    /// let piece = Shape::of_piece(20_000, 4);
    /// assert_eq!((piece.lanes(), piece.chunk, piece.chunks), (2048, 8192, 3));
    /// ```
    pub const fn of_piece(n: u64, item_size: usize) -> Shape {
        let vector = vector_len(item_size) as u32;
        let chunk = ONE_CHUNK * vector as u64;
        Shape { n, vector, groups: MAX_GROUPS, chunk, chunks: n.div_ceil(chunk) }
    }

    /// Lanes in a chunk.
    pub const fn lanes(&self) -> u64 {
        self.groups as u64 * self.vector as u64
    }

    /// Where operands keep their order: items that one lane folds side by side.
    pub const fn strip(&self) -> u64 {
        VECTORS_A_GROUP * self.vector as u64
    }

    /// Where operands keep their order: items in a tile, which [`FOLD_LANES`] lanes share.
    pub const fn tile(&self) -> u64 {
        self.strip() * FOLD_LANES as u64
    }

    /// Where operands keep their order: items in a part of a chunk, whole tiles.
    pub const fn part(&self) -> u64 {
        if self.chunks <= 1 { self.tile() } else { self.part_of_many() }
    }

    /// The same of a chunk that is one of several, or may become so.
    const fn part_of_many(&self) -> u64 {
        self.chunk / (self.groups / FOLD_LANES) as u64
    }

    /// Where operands keep their order: neighbouring chunks whose values one lane combines.
    pub const fn run(&self) -> u64 {
        self.chunks.div_ceil(FOLD_LANES as u64)
    }

    /// The items of chunk `k`, as a range of indices.
    pub const fn chunk_range(&self, k: u64) -> Range<u64> {
        let start = k * self.chunk;
        let end = start + self.chunk;
        start..if end < self.n { end } else { self.n }
    }
}

/// Items of `item_size` bytes in one vector.
pub const fn vector_len(item_size: usize) -> usize {
    match item_size {
        1 | 2 | 4 | 8 | 16 => VECTOR_BYTES / item_size,
        _ => 1,
    }
}

/// Folds `len` present values over lanes that combine pairwise, neighbours first.
///
/// `value(i)` gives the value of lane `i < len`; `len` must be at least 1. This is the definition that backends are
/// tested against, not a fast way.
pub fn pairwise<Op: Monoid>(op: &Op, len: u64, value: &dyn Fn(u64) -> Op::Acc) -> Op::Acc {
    node(op, 0, len.next_power_of_two(), len, value)
}

/// The node over lanes `low .. low + width`, of which the first `len - low` are present.
fn node<Op: Monoid>(op: &Op, low: u64, width: u64, len: u64, value: &dyn Fn(u64) -> Op::Acc) -> Op::Acc {
    if width == 1 {
        return value(low);
    }
    let half = width / 2;
    let left = node(op, low, half, len, value);
    if low + half < len {
        let right = node(op, low + half, half, len, value);
        op.combine(left, right)
    } else {
        left
    }
}

/// The unfinished value of a whole array, `None` for no items; `item(i)` reads item `i < n`.
///
/// The plain definition of the canonical order, one item at a time.
pub fn fold<Op: Monoid>(op: &Op, n: u64, item: &dyn Fn(u64) -> Op::Item) -> Option<Op::Acc> {
    fold_shape(op, &Shape::new(n, size_of::<Op::Item>()), item)
}

/// The same with a shape of one's own making, for tests.
pub fn fold_shape<Op: Monoid>(op: &Op, shape: &Shape, item: &dyn Fn(u64) -> Op::Item) -> Option<Op::Acc> {
    fold_from(op, shape, shape.part(), 0, item)
}

/// The same of items whose indices count from `base`, chunks in parts of so many items where operands keep their order.
fn fold_from<Op: Monoid>(
    op: &Op,
    shape: &Shape,
    part: u64,
    base: u64,
    item: &dyn Fn(u64) -> Op::Item,
) -> Option<Op::Acc> {
    const { limits::check::<Op>() };
    if shape.n == 0 {
        return None;
    }
    Some(if Op::COMMUTATIVE {
        fold_lanes(op, shape, base, item)
    } else {
        fold_in_order(op, shape, part, base, item)
    })
}

/// The unfinished value of a stream of `n` items, `None` for no items; `item(i)` reads item `i < n`.
///
/// How the items came, in which batches, is not asked.
pub fn fold_stream<Op: Monoid>(op: &Op, n: u64, item: &dyn Fn(u64) -> Op::Item) -> Option<Op::Acc> {
    let size = size_of::<Op::Item>();
    let piece = PIECE_CHUNKS * Shape::of_piece(0, size).chunk;
    let mut acc = None;
    let mut base = 0;
    while base < n {
        let len = if piece < n - base { piece } else { n - base };
        let shape = Shape::of_piece(len, size);
        let value = fold_from(op, &shape, shape.part_of_many(), base, &|i| item(base + i));
        acc = match (acc, value) {
            (Some(acc), Some(value)) => Some(op.combine(acc, value)),
            (acc, value) => acc.or(value),
        };
        base += len;
    }
    acc
}

/// Any order of operands will do: lanes take every so many items.
fn fold_lanes<Op: Monoid>(op: &Op, shape: &Shape, base: u64, item: &dyn Fn(u64) -> Op::Item) -> Op::Acc {
    let chunk_value = |k: u64| {
        let range = shape.chunk_range(k);
        let lanes = shape.lanes();
        let present = lanes.min(range.end - range.start);
        pairwise(op, present, &|lane| {
            let first = range.start + lane;
            let mut acc = op.lift(item(first), base + first);
            let mut i = first + lanes;
            while i < range.end {
                acc = op.push(acc, item(i), base + i);
                i += lanes;
            }
            acc
        })
    };
    let fold_lanes = FOLD_LANES as u64;
    pairwise(op, fold_lanes.min(shape.chunks), &|lane| {
        let mut acc = chunk_value(lane);
        let mut k = lane + fold_lanes;
        while k < shape.chunks {
            acc = op.combine(acc, chunk_value(k));
            k += fold_lanes;
        }
        acc
    })
}

/// Operands keep their order.
fn fold_in_order<Op: Monoid>(
    op: &Op,
    shape: &Shape,
    part: u64,
    base: u64,
    item: &dyn Fn(u64) -> Op::Item,
) -> Op::Acc {
    // The pieces of `start..end`, `len` long each, that there are, and number `k` of them.
    let pieces = |range: &Range<u64>, len: u64| (range.end - range.start).div_ceil(len);
    let piece = |range: &Range<u64>, len: u64, k: u64| {
        let start = range.start + k * len;
        start..range.end.min(start + len)
    };
    let strip_value = |strip: Range<u64>| {
        let mut acc = op.lift(item(strip.start), base + strip.start);
        for i in strip.start + 1..strip.end {
            acc = op.push(acc, item(i), base + i);
        }
        acc
    };
    let tile_value = |tile: Range<u64>| {
        let len = shape.strip();
        pairwise(op, pieces(&tile, len), &|lane| strip_value(piece(&tile, len, lane)))
    };
    let part_value = |part: Range<u64>| {
        let len = shape.tile();
        let mut acc = tile_value(piece(&part, len, 0));
        for k in 1..pieces(&part, len) {
            acc = op.combine(acc, tile_value(piece(&part, len, k)));
        }
        acc
    };
    let chunk_value = |k: u64| {
        let (chunk, len) = (shape.chunk_range(k), part);
        pairwise(op, pieces(&chunk, len), &|k| part_value(piece(&chunk, len, k)))
    };
    let chunks = 0..shape.chunks;
    pairwise(op, pieces(&chunks, shape.run()), &|lane| {
        let run = piece(&chunks, shape.run(), lane);
        let mut acc = chunk_value(run.start);
        for k in run.start + 1..run.end {
            acc = op.combine(acc, chunk_value(k));
        }
        acc
    })
}

/// Reduces a slice in the canonical order, one item at a time: the definition, usable anywhere.
///
/// ```
/// use warpfold_monoid::{Sum, tree};
///
/// assert_eq!(tree::reduce(&Sum::<u64>::new(), &[1, 2, 3]), 6);
/// ```
pub fn reduce<Op: Monoid>(op: &Op, items: &[Op::Item]) -> Value<Op> {
    let acc = fold(op, items.len() as u64, &|i| items[i as usize]);
    let output = match acc {
        Some(acc) => op.finish(acc),
        None => op.finish_empty(),
    };
    Op::Empty::value(output, items.is_empty())
}
