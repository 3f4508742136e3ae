//! The values of chunks, and of segments that are one chunk: lanes as one array of accumulators, which vectorises for
//! any operator.
//!
//! Everything here is inlined into one function for each [`Level`], where the compiler vectorises it with that level's
//! instructions.

use std::ops::Range;

use warpfold_monoid::{
    Monoid,
    tree::{self, Shape},
};

#[cfg(target_arch = "x86_64")]
use super::sums;
use super::{Level, pairwise};
use crate::Items;

/// Rows that one pass over the lanes takes in.
const ROWS: usize = 4;

/// Places in memory that are read side by side where any order suits. One alone would not keep memory busy: processors
/// fetch ahead up to the end of a page only.
const STREAMS: usize = 4;

/// Accumulators of each stream.
const WIDTH: usize = 8;

/// Items of a stream that one step takes in, two for each accumulator. With one, compilers see a loop over rows whose
/// lanes they may shuffle together, and do for integers, at a loss.
const ROW: usize = 2 * WIDTH;

/// Items that are read at once where any order suits.
const RUN: u64 = 16384;

/// Items that a large accumulator takes in together.
const NEIGHBOURS: usize = 16;

/// Bytes to which the streams are aligned: the loads of most levels then never straddle two cache lines.
const ALIGNMENT: usize = 32;

/// The most bytes of an accumulator whose lanes are kept in registers where a segment is so short that they fit.
const SMALL: usize = 32;

/// What a thread reuses from chunk to chunk.
pub(super) struct Scratch<Op: Monoid> {
    lanes: Vec<Op::Acc>,
    pairs: Vec<Op::Acc>,
    parts: Vec<Op::Acc>,
    items: Vec<Op::Item>,
}

impl<Op: Monoid> Scratch<Op> {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Scratch { lanes: Vec::new(), pairs: Vec::new(), parts: Vec::new(), items: Vec::new() }
    }
}

/// Items that lie side by side and have one value: a chunk of an array, or a segment that is one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where the first one lies.
    pub(super) start: u64,
    /// How many there are.
    pub(super) len: u64,
    /// What the operator is told as the first one's position.
    pub(super) index: u64,
}

impl Piece {
    fn range(&self) -> Range<u64> {
        self.start..self.start + self.len
    }
}

/// The values of some pieces: of chunks of an array whose shape is `whole`, else of segments of one chunk each. There is
/// none for an empty piece.
#[inline]
pub(super) fn values<Op: Monoid>(
    level: Level,
    op: &Op,
    items: &dyn Items<Op::Item>,
    pieces: &[Piece],
    whole: Option<&Shape>,
    scratch: &mut Scratch<Op>,
    values: &mut [Op::Acc],
) {
    if const { !Op::VECTORISE || !Op::COMMUTATIVE } {
        return each_base(op, items, pieces, whole, scratch, values);
    }
    match level {
        Level::Base => each_base(op, items, pieces, whole, scratch, values),
        // SAFETY: a level is only used where the machine has it.
        #[cfg(target_arch = "x86_64")]
        Level::V3 => unsafe { each_v3(op, items, pieces, whole, scratch, values) },
        // Wider vectors pay where arithmetic binds: in sums of floats. Elsewhere memory does, and a third copy of every
        // operator's code would cost more to compile than it saves.
        // SAFETY: a level is only used where the machine has it, and all below it.
        #[cfg(target_arch = "x86_64")]
        Level::V4 => unsafe {
            if const { sums::may_be::<Op>() } {
                each_v4(op, items, pieces, whole, scratch, values)
            } else {
                each_v3(op, items, pieces, whole, scratch, values)
            }
        },
    }
}

#[inline(never)]
fn each_base<Op: Monoid>(
    op: &Op,
    items: &dyn Items<Op::Item>,
    pieces: &[Piece],
    whole: Option<&Shape>,
    scratch: &mut Scratch<Op>,
    values: &mut [Op::Acc],
) {
    each(op, pieces, whole, values, |piece, shape| {
        // On x86-64 every machine worth a GPU has more instructions than these: for the others, the one walk that serves
        // all shapes and sizes, rather than a second copy of all walks of every operator.
        if const { cfg!(target_arch = "x86_64") && Op::VECTORISE && Op::COMMUTATIVE } {
            let shift = piece.index.wrapping_sub(piece.start);
            return walk_lanes(op, items, piece.range(), shift, shape.lanes(), scratch);
        }
        walk(op, items, piece, shape, scratch)
    });
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt")]
fn each_v3<Op: Monoid>(
    op: &Op,
    items: &dyn Items<Op::Item>,
    pieces: &[Piece],
    whole: Option<&Shape>,
    scratch: &mut Scratch<Op>,
    values: &mut [Op::Acc],
) {
    each(
        op,
        pieces,
        whole,
        values,
        #[inline(always)]
        |piece, shape| {
            if const { sums::may_be::<Op>() }
                && let Some(value) =
                    sums::chunk_value::<Op>(items, piece.range(), shape.lanes(), &mut scratch.items)
            {
                return value;
            }
            walk(op, items, piece, shape, scratch)
        },
    );
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,avx512f,avx512bw,avx512dq,avx512vl")]
fn each_v4<Op: Monoid>(
    op: &Op,
    items: &dyn Items<Op::Item>,
    pieces: &[Piece],
    whole: Option<&Shape>,
    scratch: &mut Scratch<Op>,
    values: &mut [Op::Acc],
) {
    each(
        op,
        pieces,
        whole,
        values,
        #[inline(always)]
        |piece, shape| {
            if const { sums::may_be::<Op>() }
                && let Some(value) =
                    sums::chunk_value::<Op>(items, piece.range(), shape.lanes(), &mut scratch.items)
            {
                return value;
            }
            walk(op, items, piece, shape, scratch)
        },
    );
}

/// Piece by piece, each with its shape.
#[inline(always)]
fn each<Op: Monoid>(
    _op: &Op,
    pieces: &[Piece],
    whole: Option<&Shape>,
    values: &mut [Op::Acc],
    mut value: impl FnMut(&Piece, &Shape) -> Op::Acc,
) {
    let mut shape = whole.copied().unwrap_or(Shape::new(0, size_of::<Op::Item>()));
    for (piece, place) in pieces.iter().zip(values) {
        if piece.len == 0 {
            continue;
        }
        if whole.is_none() && shape.n != piece.len {
            shape = Shape::new(piece.len, size_of::<Op::Item>());
        }
        *place = value(piece, &shape);
    }
}

/// The value of one piece, which has at least one item.
#[inline(always)]
fn walk<Op: Monoid>(
    op: &Op,
    items: &dyn Items<Op::Item>,
    piece: &Piece,
    shape: &Shape,
    scratch: &mut Scratch<Op>,
) -> Op::Acc {
    let range = piece.range();
    // From where an item lies to its index.
    let shift = piece.index.wrapping_sub(piece.start);
    if const { !Op::COMMUTATIVE } {
        walk_in_order(op, items, range, shift, shape, scratch)
    } else if const { Op::ANY_ORDER } {
        walk_in_any_order(op, items, range, shift, scratch)
    } else if const { size_of::<Op::Acc>() <= SMALL } && shape.groups == 1 {
        walk_one_group(op, items.run(range, &mut scratch.items), piece.index)
    } else {
        walk_lanes(op, items, range, shift, shape.lanes(), scratch)
    }
}

/// Lanes of one group, four rows of them at most: all in registers.
#[inline(always)]
fn walk_one_group<Op: Monoid>(op: &Op, items: &[Op::Item], index: u64) -> Op::Acc {
    let width = const { tree::vector_len(size_of::<Op::Item>()) };
    let mut acc = [op.identity(); tree::VECTOR_BYTES];
    let present = items.len().min(width);
    let mut rows = items.chunks(width);
    let mut next = index;
    if let Some(row) = rows.next() {
        if row.len() == width {
            for lane in 0..width {
                acc[lane] = op.lift(row[lane], next + lane as u64);
            }
        } else {
            for (lane, &item) in row.iter().enumerate() {
                acc[lane] = op.lift(item, next + lane as u64);
            }
        }
    }
    for row in rows {
        next += width as u64;
        if row.len() == width {
            for lane in 0..width {
                acc[lane] = op.push(acc[lane], row[lane], next + lane as u64);
            }
        } else {
            for (lane, &item) in row.iter().enumerate() {
                acc[lane] = op.push(acc[lane], item, next + lane as u64);
            }
        }
    }
    if present == width {
        let mut len = width;
        while len > 1 {
            len /= 2;
            for lane in 0..len {
                acc[lane] = op.combine(acc[2 * lane], acc[2 * lane + 1]);
            }
        }
    } else {
        let mut len = present;
        while len > 1 {
            for lane in 0..len / 2 {
                acc[lane] = op.combine(acc[2 * lane], acc[2 * lane + 1]);
            }
            acc[len / 2] = acc[len - 1];
            len = len.div_ceil(2);
        }
    }
    acc[0]
}

/// Every operand in its place: tile by tile, a tile's strips as lanes that combine pairwise.
#[inline(always)]
fn walk_in_order<Op: Monoid>(
    op: &Op,
    items: &dyn Items<Op::Item>,
    range: Range<u64>,
    shift: u64,
    shape: &Shape,
    scratch: &mut Scratch<Op>,
) -> Op::Acc {
    let Scratch { lanes, pairs, parts, items: read } = scratch;
    let strip_len = shape.strip() as usize;
    parts.clear();
    let mut next = range.start;
    while next < range.end {
        let end = range.end.min(next + shape.part());
        let mut part = None;
        while next < end {
            let tile_end = end.min(next + shape.tile());
            let tile = items.run(next..tile_end, read);
            let mut first = next.wrapping_add(shift);
            lanes.clear();
            lanes.extend(tile.chunks(strip_len).map(|strip| {
                let mut acc = op.lift(strip[0], first);
                for (&item, index) in strip[1..].iter().zip(first + 1..) {
                    acc = op.push(acc, item, index);
                }
                first += strip.len() as u64;
                acc
            }));
            let value = pairwise(op, lanes, pairs);
            part = Some(match part {
                Some(part) => op.combine(part, value),
                None => value,
            });
            next = tile_end;
        }
        parts.extend(part);
    }
    pairwise(op, parts, pairs)
}

#[inline(always)]
fn walk_lanes<Op: Monoid>(
    op: &Op,
    items: &dyn Items<Op::Item>,
    range: Range<u64>,
    shift: u64,
    lanes: u64,
    scratch: &mut Scratch<Op>,
) -> Op::Acc {
    let Scratch { lanes: acc, pairs, items: read, .. } = scratch;
    let block = ROWS as u64 * lanes;
    let mut next = range.start;
    let index = |next: u64| next.wrapping_add(shift);
    let present = lanes.min(range.end - next) as usize;
    if acc.len() < present {
        acc.resize(present, op.identity());
    }
    let acc = &mut acc[..present];
    if range.end - next >= block {
        lift_rows(op, acc, items.run(next..next + block, read), index(next));
        next += block;
    } else {
        let end = next + present as u64;
        let row = &items.run(next..end, read)[..present];
        let first = index(next);
        for lane in 0..present {
            acc[lane] = op.lift(row[lane], first + lane as u64);
        }
        next = end;
    }
    while range.end - next >= block {
        push_rows(op, acc, items.run(next..next + block, read), index(next));
        next += block;
    }
    while next < range.end {
        let end = range.end.min(next + lanes);
        push_lanes(op, acc, items.run(next..end, read), index(next));
        next = end;
    }
    pairwise(op, acc, pairs)
}

/// Four equal parts: the rows of a block of [`ROWS`] rows, or the [`STREAMS`].
#[inline(always)]
fn split_rows<T>(rows: &[T]) -> [&[T]; 4] {
    let lanes = rows.len() / 4;
    let (a, rest) = rows.split_at(lanes);
    let (b, rest) = rest.split_at(lanes);
    let (c, d) = rest.split_at(lanes);
    [a, b, c, &d[..lanes]]
}

/// Pushes items each into its accumulator, of which there are as many or more.
#[inline(always)]
fn push_lanes<Op: Monoid>(op: &Op, acc: &mut [Op::Acc], items: &[Op::Item], index: u64) {
    let acc = &mut acc[..items.len()];
    for lane in 0..items.len() {
        acc[lane] = op.push(acc[lane], items[lane], index + lane as u64);
    }
}

/// Pushes [`ROWS`] whole rows, so that an accumulator is loaded and stored once for all of them.
#[inline(always)]
fn push_rows<Op: Monoid>(op: &Op, acc: &mut [Op::Acc], rows: &[Op::Item], index: u64) {
    let lanes = acc.len();
    let [a, b, c, d] = split_rows(rows);
    let (a, b, c, d) = (&a[..lanes], &b[..lanes], &c[..lanes], &d[..lanes]);
    let step = lanes as u64;
    for lane in 0..lanes {
        let index = index + lane as u64;
        let mut value = op.push(acc[lane], a[lane], index);
        value = op.push(value, b[lane], index + step);
        value = op.push(value, c[lane], index + 2 * step);
        acc[lane] = op.push(value, d[lane], index + 3 * step);
    }
}

/// Lifts the first of [`ROWS`] whole rows and pushes the others.
#[inline(always)]
fn lift_rows<Op: Monoid>(op: &Op, acc: &mut [Op::Acc], rows: &[Op::Item], index: u64) {
    let lanes = acc.len();
    let [a, b, c, d] = split_rows(rows);
    let (a, b, c, d) = (&a[..lanes], &b[..lanes], &c[..lanes], &d[..lanes]);
    let step = lanes as u64;
    for lane in 0..lanes {
        let index = index + lane as u64;
        let mut value = op.lift(a[lane], index);
        value = op.push(value, b[lane], index + step);
        value = op.push(value, c[lane], index + 2 * step);
        acc[lane] = op.push(value, d[lane], index + 3 * step);
    }
}

#[inline(always)]
fn walk_in_any_order<Op: Monoid>(
    op: &Op,
    items: &dyn Items<Op::Item>,
    range: Range<u64>,
    shift: u64,
    scratch: &mut Scratch<Op>,
) -> Op::Acc {
    let mut next = range.start;
    let mut total: Option<Op::Acc> = None;
    while next < range.end {
        let end = range.end.min(next + RUN);
        let run = items.run(next..end, &mut scratch.items);
        let index = next.wrapping_add(shift);
        let value = if const { size_of::<Op::Acc>() <= 8 } {
            run_value(op, run, index)
        } else {
            run_value_of_large(op, run, index)
        };
        total = Some(match total {
            Some(total) => op.combine(total, value),
            None => value,
        });
        next = end;
    }
    total.unwrap_or_else(|| op.identity())
}

/// The value of some items, at least one.
#[inline(always)]
fn run_value<Op: Monoid>(op: &Op, items: &[Op::Item], index: u64) -> Op::Acc {
    let Some((first, rest)) = items.split_first_chunk::<{ STREAMS * WIDTH }>() else {
        let mut acc = op.lift(items[0], index);
        for (&item, index) in items.iter().zip(index..).skip(1) {
            acc = op.push(acc, item, index);
        }
        return acc;
    };
    let mut acc = [op.identity(); STREAMS * WIDTH];
    for lane in 0..STREAMS * WIDTH {
        acc[lane] = op.lift(first[lane], index + lane as u64);
    }
    let index = index + first.len() as u64;
    let (head, rest) = rest.split_at(rest.as_ptr().align_offset(ALIGNMENT).min(rest.len()));
    push_in_turn(op, &mut acc, head, index);
    let index = index + head.len() as u64;
    let (streams, tail) = rest.split_at(rest.len() / (STREAMS * ROW) * (STREAMS * ROW));
    let step = (streams.len() / STREAMS) as u64;
    let [a, b, c, d] = split_rows(streams);
    let (a, b, c, d) =
        (a.as_chunks::<ROW>().0, b.as_chunks::<ROW>().0, c.as_chunks::<ROW>().0, d.as_chunks::<ROW>().0);
    let rows = a.len();
    let (b, c, d) = (&b[..rows], &c[..rows], &d[..rows]);
    let (lanes, _) = acc.as_chunks_mut::<WIDTH>();
    if let [acc_a, acc_b, acc_c, acc_d] = lanes {
        for row in 0..rows {
            let index = index + (row * ROW) as u64;
            push_row(op, acc_a, &a[row], index);
            push_row(op, acc_b, &b[row], index + step);
            push_row(op, acc_c, &c[row], index + 2 * step);
            push_row(op, acc_d, &d[row], index + 3 * step);
        }
    }
    push_in_turn(op, &mut acc, tail, index + streams.len() as u64);
    let mut width = STREAMS * WIDTH / 2;
    while width > 0 {
        for lane in 0..width {
            acc[lane] = op.combine(acc[lane], acc[lane + width]);
        }
        width /= 2;
    }
    acc[0]
}

/// The same where accumulators are too large for many of them: one.
#[inline(always)]
fn run_value_of_large<Op: Monoid>(op: &Op, items: &[Op::Item], index: u64) -> Op::Acc {
    let (many, rest) = items.as_chunks::<NEIGHBOURS>();
    let mut next = index;
    let mut acc = None;
    for &neighbours in many {
        let value = op.fold_many(neighbours, next);
        acc = Some(match acc {
            Some(acc) => op.combine(acc, value),
            None => value,
        });
        next += NEIGHBOURS as u64;
    }
    for &item in rest {
        acc = Some(match acc {
            Some(acc) => op.push(acc, item, next),
            None => op.lift(item, next),
        });
        next += 1;
    }
    acc.unwrap_or_else(|| op.identity())
}

/// Pushes two items into each accumulator of a stream.
#[inline(always)]
fn push_row<Op: Monoid>(op: &Op, acc: &mut [Op::Acc; WIDTH], row: &[Op::Item; ROW], index: u64) {
    for lane in 0..WIDTH {
        acc[lane] = op.push(acc[lane], row[lane], index + lane as u64);
    }
    for lane in 0..WIDTH {
        acc[lane] = op.push(acc[lane], row[WIDTH + lane], index + (WIDTH + lane) as u64);
    }
}

/// Pushes items into the accumulators, one after the other and again from the first.
#[inline(always)]
fn push_in_turn<Op: Monoid>(op: &Op, acc: &mut [Op::Acc], items: &[Op::Item], index: u64) {
    let mut next = 0;
    while next < items.len() {
        let end = items.len().min(next + acc.len());
        push_lanes(op, acc, &items[next..end], index + next as u64);
        next = end;
    }
}
