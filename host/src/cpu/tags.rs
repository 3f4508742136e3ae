//! Reductions by tag: chunks side by side, and then their values.

use rayon::slice::ParallelSliceMut;
use warpfold_monoid::{
    Monoid,
    keyed::{Equal, FOLD_LANES, LANES, TAG_STRIP, TagShape, both, pairwise_present},
};

use super::{runs, tasks};
use crate::{Error, keys::Tag, segments::room};

/// Bytes of values and tags from which on several threads are worth waking.
const PARALLEL_BYTES: u64 = 256 << 10;

/// What a chunk makes of its items: a value for each tag that it has, and the first item whose tag is out of range.
type ChunkValue<A> = (Vec<Option<A>>, Option<u64>);

/// Reduces by tag into `k` results; returns the first item, if there is one, whose tag is out of range, and which is left out.
pub(crate) fn reduce<T: Tag, Op: Monoid>(
    op: &Op,
    k: u64,
    tags: &[T],
    values: &[Op::Item],
    results: &mut [Op::Output],
) -> Result<Option<u64>, Error> {
    let finish = |value: Option<Op::Acc>, _: Op::Output| match value {
        Some(value) => op.finish(value),
        None => op.finish_empty(),
    };
    // Where any order gives the same bits the other way is faster here.
    if TagShape::of::<Op>(values.len() as u64, k).sorted && !Op::ANY_ORDER {
        return sorted(op, k, tags, values, results);
    }
    reduce_with(op, k, tags, values, 0, results, &finish)
}

/// The same by sorting what is in range, and reducing runs.
fn sorted<T: Tag, Op: Monoid>(
    op: &Op,
    k: u64,
    tags: &[T],
    values: &[Op::Item],
    results: &mut [Op::Output],
) -> Result<Option<u64>, Error> {
    let in_range = |tag: &T| u64::from(tag.index()) < k;
    let bad = tags.iter().position(|tag| !in_range(tag)).map(|index| index as u64);
    let there = tags.iter().filter(|tag| in_range(tag)).count();
    // Tags with the places of their items, of which there are less than 2^32: no two are the same, and so any sort is stable.
    let mut pairs = room::<u64>(there as u64)?;
    let found = tags.iter().enumerate().filter(|(_, tag)| in_range(tag));
    let packed = found.map(|(i, tag)| (tag.index() as u64) << 32 | i as u64);
    pairs.iter_mut().zip(packed).for_each(|(pair, packed)| *pair = packed);
    pairs.par_sort_unstable();
    let (mut keys, mut order) = (room::<i32>(there as u64)?, room::<usize>(there as u64)?);
    let mut in_order = room::<Op::Item>(there as u64)?;
    for (at, &pair) in pairs.iter().enumerate() {
        (keys[at], order[at]) = ((pair >> 32) as i32, pair as u32 as usize);
        in_order[at] = values[order[at]];
    }
    drop(pairs);
    let (keys, reduced) = runs::reduce(Equal, *op, &keys, &in_order, Some(&order))?;
    results.fill(op.finish_empty());
    keys.iter().zip(reduced).for_each(|(&tag, result)| results[tag as usize] = result);
    Ok(bad)
}

/// Adds to the values of `k` tags what there is of each, on its right; the first item has that index. Else the same.
pub(crate) fn add<T: Tag, Op: Monoid>(
    op: &Op,
    k: u64,
    tags: &[T],
    values: &[Op::Item],
    index: u64,
    kept: &mut [Option<Op::Acc>],
) -> Result<Option<u64>, Error> {
    reduce_with(op, k, tags, values, index, kept, &|value, before| both(op, before, value))
}

/// Makes something of each tag's value and of what is in its place.
fn reduce_with<T: Tag, Op: Monoid, R: Copy + Send>(
    op: &Op,
    k: u64,
    tags: &[T],
    values: &[Op::Item],
    index: u64,
    results: &mut [R],
    finish: &(dyn Fn(Option<Op::Acc>, R) -> R + Sync),
) -> Result<Option<u64>, Error> {
    let shape = TagShape::of::<Op>(values.len() as u64, k);
    let entry = size_of::<Option<Op::Acc>>() as u64;
    let needed = k.saturating_mul(shape.chunks).saturating_mul(entry);
    let mut chunks: Vec<Option<ChunkValue<Op::Acc>>> = vec![None; shape.chunks as usize];
    let bytes = (values.len() * (size_of::<T>() + size_of::<Op::Item>())) as u64;
    let least = if bytes < PARALLEL_BYTES { chunks.len().max(1) } else { 1 };
    let mut failed = vec![false; chunks.len()];
    {
        let (chunks, failed) = (&tasks::Slots::new(&mut chunks), &tasks::Slots::new(&mut failed));
        let shape = &shape;
        tasks::each(shape.chunks as usize, least, &|| {
            Box::new(move |c| {
                let (start, end) = shape.chunk_ends(c as u64);
                let (at, to) = (start as usize, end as usize);
                let chunk = chunk_value(op, shape, index + start, &tags[at..to], &values[at..to]);
                // SAFETY: the chunk's own places.
                unsafe {
                    failed.put(c, chunk.is_none());
                    chunks.put(c, chunk);
                }
            })
        });
    }
    if failed.contains(&true) {
        return Err(Error::HostMemory { needed });
    }
    let chunks: Vec<ChunkValue<Op::Acc>> = chunks.into_iter().flatten().collect();
    let run = shape.run().max(1) as usize;
    let least = if (k * shape.chunks) < (1 << 16) { results.len().max(1) } else { 64 };
    let places = tasks::Places::new(results);
    let folded = &chunks;
    tasks::each(k as usize, least, &|| {
        Box::new(move |tag| {
            let mut lanes = [None; FOLD_LANES as usize];
            let runs = folded.chunks(run);
            let count = runs.len();
            for (lane, run) in lanes.iter_mut().zip(runs) {
                *lane = run.iter().fold(None, |value, (chunk, _)| both(op, value, chunk[tag]));
            }
            let value = pairwise_present(op, &mut lanes[..count]);
            // SAFETY: the tag's own place.
            unsafe { places.put(tag, finish(value, places.get(tag))) };
        })
    });
    Ok(chunks.iter().find_map(|&(_, bad)| bad))
}

/// A chunk whose first item has the index `start`; `None` without memory for it.
fn chunk_value<T: Tag, Op: Monoid>(
    op: &Op,
    shape: &TagShape,
    start: u64,
    tags: &[T],
    values: &[Op::Item],
) -> Option<ChunkValue<Op::Acc>> {
    let mut bad = None;
    let mut index = |i: usize| -> Option<usize> {
        let tag = tags[i].index() as u64;
        if tag < shape.k {
            return Some(tag as usize);
        }
        bad = bad.or(Some(start + i as u64));
        None
    };
    let mut chunk = nothing(shape.k as usize)?;
    if shape.few {
        const COLUMNS: usize = LANES as usize;
        let mut table = nothing(COLUMNS * shape.k as usize)?;
        for (i, &item) in values.iter().enumerate() {
            if let Some(tag) = index(i) {
                let value = &mut table[tag * COLUMNS + i / TAG_STRIP as usize % COLUMNS];
                let at = start + i as u64;
                *value = Some(match *value {
                    Some(value) => op.push(value, item, at),
                    None => op.lift(item, at),
                });
            }
        }
        let lanes = table.chunks_mut(COLUMNS);
        chunk.iter_mut().zip(lanes).for_each(|(value, lanes)| *value = pairwise_present(op, lanes));
        return Some((chunk, bad));
    }
    let mut row = 0;
    while row < values.len() {
        let len = (values.len() - row).min(LANES as usize);
        let mut row_tags = [None; LANES as usize];
        (0..len).for_each(|lane| row_tags[lane] = index(row + lane));
        for lane in 0..len {
            let Some(tag) = row_tags[lane] else { continue };
            let mut peers = [None; LANES as usize];
            let mut count = 0;
            for other in lane..len {
                if row_tags[other] == Some(tag) {
                    row_tags[other] = None;
                    peers[count] = Some(op.lift(values[row + other], start + (row + other) as u64));
                    count += 1;
                }
            }
            chunk[tag] = both(op, chunk[tag], pairwise_present(op, &mut peers[..count]));
        }
        row += len;
    }
    Some((chunk, bad))
}

/// So many values that are not there; `None` without memory for them.
fn nothing<A: Copy>(count: usize) -> Option<Vec<Option<A>>> {
    let mut values = Vec::new();
    values.try_reserve_exact(count).ok()?;
    values.resize(count, None);
    Some(values)
}
