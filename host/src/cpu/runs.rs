//! Reductions by key: tile by tile, in the order of a scan.

use warpfold_monoid::{
    Monoid, Plain,
    fused::Fused2,
    keyed::{Equality, LANES, RunTiling, Runs, RunsSoFar},
    scan::{Chain, neighbours},
};

use super::tasks;
use crate::{Error, segments::room};

/// Bytes of keys and values from which on several threads are worth waking.
const PARALLEL_BYTES: usize = 256 << 10;

/// The most warps of a tile.
const WARPS: usize = 8;

/// Keys and values, and which runs they are.
struct Pairs<'a, K, E, Op: Monoid> {
    runs: Runs<K, E, Op>,
    keys: &'a [K],
    values: &'a [Op::Item],
    /// What the operator is told in place of positions.
    indices: Option<&'a [usize]>,
}

/// A tile's strips within their warps, and its warps, scanned.
struct Scanned<A> {
    strips: [[RunsSoFar<A>; LANES as usize]; WARPS],
    warps: [RunsSoFar<A>; WARPS],
    count: usize,
}

impl<K: Plain, E: Equality<K>, Op: Monoid> Pairs<'_, K, E, Op> {
    #[inline(always)]
    fn tiling() -> RunTiling {
        RunTiling::of_keys::<K, E, Op>()
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    /// The index that the operator is told.
    #[inline(always)]
    fn index(&self, i: usize) -> u64 {
        self.indices.map_or(i, |indices| indices[i]) as u64
    }

    /// Does a run begin there?
    #[inline(always)]
    fn begins(&self, i: usize) -> bool {
        i == 0 || !self.runs.equality.same(self.keys[i - 1], self.keys[i])
    }

    #[inline(always)]
    fn item(&self, i: usize) -> Fused2<u8, Op::Item> {
        Fused2::new(self.begins(i) as u8, self.values[i])
    }

    /// The strips of the tile that begins at `start`.
    fn scanned(&self, start: usize) -> Scanned<Op::Acc> {
        let (tiling, op) = (Self::tiling(), &self.runs);
        let end = self.len().min(start + tiling.tile() as usize);
        let (warp_items, strip_items) = (tiling.warp() as usize, tiling.strip as usize);
        let nothing = op.identity();
        let mut strips = [[nothing; LANES as usize]; WARPS];
        let mut warps = [nothing; WARPS];
        let count = (end - start).div_ceil(warp_items);
        let mut at = start;
        for (warp, strips) in warps.iter_mut().zip(&mut strips).take(count) {
            let last = end.min(at + warp_items);
            let there = (last - at).div_ceil(strip_items);
            for strip in &mut strips[..there] {
                let to = last.min(at + strip_items);
                let mut value = op.lift(self.item(at), self.index(at));
                for i in at + 1..to {
                    value = op.push(value, self.item(i), self.index(i));
                }
                *strip = value;
                at = to;
            }
            neighbours(op, &mut strips[..there]);
            *warp = strips[there - 1];
        }
        neighbours(op, &mut warps[..count]);
        Scanned { strips, warps, count }
    }

    /// Tells the runs that begin in the tile at `start`, by number, before which `before` stands: first of each that ends there, what
    /// it has come to, and then where the next begins.
    fn tile(
        &self,
        start: usize,
        before: Option<RunsSoFar<Op::Acc>>,
        mut each: impl FnMut(u64, Option<Op::Acc>, usize),
    ) {
        let (tiling, op) = (Self::tiling(), &self.runs);
        let end = self.len().min(start + tiling.tile() as usize);
        let scanned = self.scanned(start);
        let join = |before: Option<RunsSoFar<Op::Acc>>, value| match before {
            Some(before) => op.combine(before, value),
            None => value,
        };
        let mut before_warp = before;
        for w in 0..scanned.count {
            let mut running = before_warp;
            for (s, &strip) in scanned.strips[w].iter().enumerate() {
                let at = start + w * tiling.warp() as usize + s * tiling.strip as usize;
                if at >= end {
                    break;
                }
                let mut inside = None;
                for i in at..end.min(at + tiling.strip as usize) {
                    let item = self.item(i);
                    if self.begins(i) {
                        let ended = match inside {
                            Some(inside) => Some(join(running, inside)),
                            None => running,
                        };
                        each(ended.map_or(0, |ended| ended.heads()), ended.map(|ended| ended.value()), i);
                    }
                    inside = Some(match inside {
                        Some(inside) => op.push(inside, item, self.index(i)),
                        None => op.lift(item, self.index(i)),
                    });
                }
                running = Some(join(before_warp, strip));
            }
            before_warp = Some(join(before, scanned.warps[w]));
        }
    }
}

/// Reduces runs: their first keys, and their results. The operator is told the items' positions, or these indices.
pub(crate) fn reduce<K: Plain, E: Equality<K>, Op: Monoid>(
    equality: E,
    op: Op,
    keys: &[K],
    values: &[Op::Item],
    indices: Option<&[usize]>,
) -> Result<(Vec<K>, Vec<Op::Output>), Error> {
    let pairs = &Pairs { runs: Runs::new(equality, op), keys, values, indices };
    let tile = Pairs::<K, E, Op>::tiling().tile() as usize;
    let tiles = keys.len().div_ceil(tile);
    // The tiles' values, and then what stands behind each.
    let mut behind = vec![pairs.runs.identity(); tiles];
    let parallel = size_of_val(keys) + size_of_val(values) >= PARALLEL_BYTES;
    let least = if parallel { 1 } else { tiles.max(1) };
    let places = tasks::Places::new(&mut behind);
    tasks::each(tiles, least, &|| {
        Box::new(move |t| {
            let scanned = pairs.scanned(t * tile);
            // SAFETY: the tile's own place.
            unsafe { places.put(t, scanned.warps[scanned.count - 1]) };
        })
    });
    let mut chain = Chain::new(&pairs.runs, None);
    behind.iter_mut().for_each(|value| *value = chain.push(&pairs.runs, *value));
    let count = behind.last().map_or(0, RunsSoFar::heads);
    let (mut run_keys, mut results) = (room::<K>(count)?, room::<Op::Output>(count)?);
    if let Some(last) = behind.last() {
        results[count as usize - 1] = op.finish(last.value());
    }
    let (to_keys, to_results) = (tasks::Places::new(&mut run_keys), tasks::Places::new(&mut results));
    let behind = &behind;
    tasks::each(tiles, least, &|| {
        Box::new(move |t| {
            let before = t.checked_sub(1).map(|t| behind[t]);
            pairs.tile(t * tile, before, |run, ended, head| {
                // SAFETY: each run begins once, and ends once.
                unsafe {
                    to_keys.put(run as usize, pairs.keys[head]);
                    if let Some(value) = ended {
                        to_results.put(run as usize - 1, op.finish(value));
                    }
                }
            });
        })
    });
    Ok((run_keys, results))
}
