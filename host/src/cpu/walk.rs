//! One chunk's value: its lanes as one array of accumulators, which vectorises for any operator.
//!
//! Everything here is inlined into one function for each [`Level`], where the compiler vectorises it with that level's
//! instructions.

use std::ops::Range;

use warpfold_monoid::{Monoid, tree::Shape};

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
const PIECE: u64 = 16384;

/// Items that a large accumulator takes in together.
const NEIGHBOURS: usize = 16;

/// Bytes to which the streams are aligned: the loads of most levels then never straddle two cache lines.
const ALIGNMENT: usize = 32;

/// What a thread reuses from chunk to chunk.
pub(super) struct Scratch<Op: Monoid> {
    lanes: Vec<Op::Acc>,
    pairs: Vec<Op::Acc>,
    items: Vec<Op::Item>,
}

impl<Op: Monoid> Scratch<Op> {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Scratch { lanes: Vec::new(), pairs: Vec::new(), items: Vec::new() }
    }
}

/// The value of one chunk, which has at least one item.
#[inline]
pub(super) fn chunk_value<Op: Monoid>(
    level: Level,
    op: &Op,
    items: &dyn Items<Op::Item>,
    range: Range<u64>,
    shape: &Shape,
    scratch: &mut Scratch<Op>,
) -> Op::Acc {
    if const { !Op::VECTORISE || !Op::COMMUTATIVE } {
        return walk(op, items, range, shape, scratch);
    }
    match level {
        Level::Base => walk(op, items, range, shape, scratch),
        // SAFETY: a level is only used where the machine has it.
        #[cfg(target_arch = "x86_64")]
        Level::V3 => unsafe { walk_v3(op, items, range, shape, scratch) },
        // SAFETY: a level is only used where the machine has it.
        #[cfg(target_arch = "x86_64")]
        Level::V4 => unsafe { walk_v4(op, items, range, shape, scratch) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt")]
fn walk_v3<Op: Monoid>(
    op: &Op,
    items: &dyn Items<Op::Item>,
    range: Range<u64>,
    shape: &Shape,
    scratch: &mut Scratch<Op>,
) -> Op::Acc {
    if const { sums::may_be::<Op>() }
        && let Some(value) = sums::chunk_value::<Op>(items, range.clone(), shape.lanes(), &mut scratch.items)
    {
        return value;
    }
    walk(op, items, range, shape, scratch)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,avx512f,avx512bw,avx512dq,avx512vl")]
fn walk_v4<Op: Monoid>(
    op: &Op,
    items: &dyn Items<Op::Item>,
    range: Range<u64>,
    shape: &Shape,
    scratch: &mut Scratch<Op>,
) -> Op::Acc {
    if const { sums::may_be::<Op>() }
        && let Some(value) = sums::chunk_value::<Op>(items, range.clone(), shape.lanes(), &mut scratch.items)
    {
        return value;
    }
    walk(op, items, range, shape, scratch)
}

#[inline(always)]
fn walk<Op: Monoid>(
    op: &Op,
    items: &dyn Items<Op::Item>,
    range: Range<u64>,
    shape: &Shape,
    scratch: &mut Scratch<Op>,
) -> Op::Acc {
    if const { !Op::COMMUTATIVE } {
        walk_in_order(op, items, range, shape, scratch)
    } else if const { Op::ANY_ORDER } {
        walk_in_any_order(op, items, range, scratch)
    } else {
        walk_lanes(op, items, range, shape.lanes(), scratch)
    }
}

/// Every operand in its place: tile by tile, a tile's strips as lanes that combine pairwise.
#[inline(always)]
fn walk_in_order<Op: Monoid>(
    op: &Op,
    items: &dyn Items<Op::Item>,
    range: Range<u64>,
    shape: &Shape,
    scratch: &mut Scratch<Op>,
) -> Op::Acc {
    let Scratch { lanes, pairs, items: read } = scratch;
    let mut parts = Vec::with_capacity((range.end - range.start).div_ceil(shape.part()) as usize);
    let mut next = range.start;
    while next < range.end {
        let end = range.end.min(next + shape.part());
        let mut part = None;
        while next < end {
            let tile_end = end.min(next + shape.tile());
            let tile = items.run(next..tile_end, read);
            lanes.clear();
            lanes.extend(
                tile.chunks(shape.strip() as usize).zip((next..).step_by(shape.strip() as usize)).map(
                    |(strip, first)| {
                        let mut acc = op.lift(strip[0], first);
                        for (&item, index) in strip[1..].iter().zip(first + 1..) {
                            acc = op.push(acc, item, index);
                        }
                        acc
                    },
                ),
            );
            let value = pairwise(op, lanes, pairs);
            part = Some(match part {
                Some(part) => op.combine(part, value),
                None => value,
            });
            next = tile_end;
        }
        parts.extend(part);
    }
    pairwise(op, &mut parts, pairs)
}

#[inline(always)]
fn walk_lanes<Op: Monoid>(
    op: &Op,
    items: &dyn Items<Op::Item>,
    range: Range<u64>,
    lanes: u64,
    scratch: &mut Scratch<Op>,
) -> Op::Acc {
    let Scratch { lanes: acc, pairs, items: read } = scratch;
    let block = ROWS as u64 * lanes;
    let mut next = range.start;
    acc.clear();
    if range.end - next >= block {
        lift_rows(op, acc, items.run(next..next + block, read), next);
        next += block;
    } else {
        let end = range.end.min(next + lanes);
        let row = items.run(next..end, read);
        acc.extend(row.iter().zip(next..).map(|(&item, index)| op.lift(item, index)));
        next = end;
    }
    while range.end - next >= block {
        push_rows(op, acc, items.run(next..next + block, read), next);
        next += block;
    }
    while next < range.end {
        let end = range.end.min(next + lanes);
        let row = items.run(next..end, read);
        for ((acc, &item), index) in acc.iter_mut().zip(row).zip(next..) {
            *acc = op.push(*acc, item, index);
        }
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

/// Pushes [`ROWS`] whole rows, so that an accumulator is loaded and stored once for all of them.
#[inline(always)]
fn push_rows<Op: Monoid>(op: &Op, acc: &mut [Op::Acc], rows: &[Op::Item], index: u64) {
    let step = acc.len() as u64;
    let [a, b, c, d] = split_rows(rows);
    let rows = a.iter().zip(b).zip(c.iter().zip(d));
    for ((acc, ((&a, &b), (&c, &d))), index) in acc.iter_mut().zip(rows).zip(index..) {
        let mut value = op.push(*acc, a, index);
        value = op.push(value, b, index + step);
        value = op.push(value, c, index + 2 * step);
        *acc = op.push(value, d, index + 3 * step);
    }
}

/// Lifts the first of [`ROWS`] whole rows and pushes the others.
#[inline(always)]
fn lift_rows<Op: Monoid>(op: &Op, acc: &mut Vec<Op::Acc>, rows: &[Op::Item], index: u64) {
    let step = (rows.len() / ROWS) as u64;
    let [a, b, c, d] = split_rows(rows);
    let rows = a.iter().zip(b).zip(c.iter().zip(d));
    acc.extend(rows.zip(index..).map(|(((&a, &b), (&c, &d)), index)| {
        let mut value = op.lift(a, index);
        value = op.push(value, b, index + step);
        value = op.push(value, c, index + 2 * step);
        op.push(value, d, index + 3 * step)
    }));
}

#[inline(always)]
fn walk_in_any_order<Op: Monoid>(
    op: &Op,
    items: &dyn Items<Op::Item>,
    range: Range<u64>,
    scratch: &mut Scratch<Op>,
) -> Op::Acc {
    let mut next = range.start;
    let mut total: Option<Op::Acc> = None;
    while next < range.end {
        let end = range.end.min(next + PIECE);
        let run = items.run(next..end, &mut scratch.items);
        let value = if const { size_of::<Op::Acc>() <= 8 } {
            piece(op, run, next)
        } else {
            piece_of_large(op, run, next)
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
fn piece<Op: Monoid>(op: &Op, items: &[Op::Item], index: u64) -> Op::Acc {
    let Some((first, rest)) = items.split_first_chunk::<{ STREAMS * WIDTH }>() else {
        let mut acc = op.lift(items[0], index);
        for (&item, index) in items.iter().zip(index..).skip(1) {
            acc = op.push(acc, item, index);
        }
        return acc;
    };
    let mut acc: [Op::Acc; STREAMS * WIDTH] =
        std::array::from_fn(|lane| op.lift(first[lane], index + lane as u64));
    let index = index + first.len() as u64;
    let (head, rest) = rest.split_at(rest.as_ptr().align_offset(ALIGNMENT).min(rest.len()));
    push_in_turn(op, &mut acc, head, index);
    let index = index + head.len() as u64;
    let (streams, tail) = rest.split_at(rest.len() / (STREAMS * ROW) * (STREAMS * ROW));
    let step = (streams.len() / STREAMS) as u64;
    let [a, b, c, d] = split_rows(streams).map(|stream| stream.as_chunks::<ROW>().0);
    let (lanes, _) = acc.as_chunks_mut::<WIDTH>();
    if let [acc_a, acc_b, acc_c, acc_d] = lanes {
        for (row, (((a, b), c), d)) in a.iter().zip(b).zip(c).zip(d).enumerate() {
            let index = index + (row * ROW) as u64;
            push_row(op, acc_a, a, index);
            push_row(op, acc_b, b, index + step);
            push_row(op, acc_c, c, index + 2 * step);
            push_row(op, acc_d, d, index + 3 * step);
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
fn piece_of_large<Op: Monoid>(op: &Op, items: &[Op::Item], index: u64) -> Op::Acc {
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
    let mut index = index;
    for row in items.chunks(acc.len()) {
        for (acc, &item) in acc.iter_mut().zip(row) {
            *acc = op.push(*acc, item, index);
            index += 1;
        }
    }
}
