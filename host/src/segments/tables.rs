//! How the work on segments of any lengths is cut for a device: once, on the host.

use std::ops::Range;

use warpfold_gpu_kernels::segments::{
    irregular::{TILE_SEGMENTS, Tile, Unit, short_limit, tile_limit},
    tile::TILE_BYTES,
};
use warpfold_monoid::tree::{MAX_GROUPS, Shape};

/// Chunks of long segments that blocks of one size fold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Class {
    /// Threads that share a chunk.
    pub(crate) groups: u32,
    pub(crate) units: Vec<Unit>,
}

/// Neighbours of which it is asked at once whether tiles take the longest that they can.
const WINDOW: u64 = 256;

/// The most items of a segment in a tile among these: the lower of two limits where nearly all items that tiles could take are in
/// segments above it. One of those among many shorter ones would end a tile and begin another.
fn limit_of(ranges: impl Iterator<Item = Range<u64>>, [low, high]: [u64; 2]) -> u64 {
    let (mut below, mut between) = (0_u64, 0_u64);
    for Range { start, end } in ranges {
        match end - start {
            n if n <= low => below += n,
            n if n <= high => between += n,
            _ => {}
        }
    }
    if between > 7 * below { low } else { high }
}

/// The tables of a launch for items of one size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tables {
    pub(crate) tiles: Vec<Tile>,
    /// By their number of groups; none without units.
    pub(crate) classes: Vec<Class>,
    /// Counters: segments of several chunks.
    pub(crate) tickets: u64,
    /// Values of chunks.
    pub(crate) partials: u64,
}

impl Tables {
    /// Cuts segments `0 .. count`, which lie where `range` says, for items of that size.
    ///
    /// Every segment is in one tile or has units for all its chunks.
    pub(crate) fn new(count: u64, range: &dyn Fn(u64) -> Range<u64>, item_bytes: usize) -> Tables {
        let limits = [short_limit(item_bytes), tile_limit(item_bytes)];
        let mut limit = 0;
        let room = (TILE_BYTES / item_bytes.max(1)) as u64;
        let mut tables = Tables::default();
        let mut by_groups: Vec<Vec<Unit>> = vec![Vec::new(); MAX_GROUPS.ilog2() as usize + 1];
        let mut open: Option<Tile> = None;
        for segment in 0..count {
            if segment % WINDOW == 0 {
                limit = limit_of((segment..count.min(segment + WINDOW)).map(range), limits);
            }
            let Range { start, end } = range(segment);
            let n = end - start;
            if n <= limit {
                if let Some(tile) = &mut open {
                    let follows = n == 0 || start == tile.start + tile.items as u64;
                    let fits = tile.items as u64 + n <= room && (tile.segments as usize) < TILE_SEGMENTS;
                    // The tile's segments are neighbours in number, too.
                    let next = tile.segment + tile.segments as u64 == segment;
                    if fits && next && (follows || tile.items == 0) {
                        if tile.items == 0 && n > 0 {
                            tile.start = start;
                        }
                        tile.items += n as u32;
                        tile.segments += 1;
                        continue;
                    }
                    tables.tiles.push(*tile);
                }
                open = Some(Tile { segment, start, items: n as u32, segments: 1 });
                continue;
            }
            let shape = Shape::new(n, item_bytes);
            let partials = tables.partials;
            let ticket = tables.tickets as u32;
            if shape.chunks > 1 {
                tables.partials += shape.chunks;
                tables.tickets += 1;
            }
            let units = &mut by_groups[shape.groups.ilog2() as usize];
            units.extend((0..shape.chunks).map(|index| Unit {
                segment,
                start,
                n,
                chunk: shape.chunk,
                partials,
                index: index as u32,
                chunks: shape.chunks as u32,
                ticket,
                padding: 0,
            }));
        }
        tables.tiles.extend(open);
        tables.classes = by_groups
            .into_iter()
            .zip(0..)
            .filter(|(units, _)| !units.is_empty())
            .map(|(units, log)| Class { groups: 1 << log, units })
            .collect();
        tables
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lengths: &[u64], item_bytes: usize) -> Tables {
        let mut offsets = vec![0];
        lengths.iter().for_each(|n| offsets.push(offsets[offsets.len() - 1] + n));
        Tables::new(lengths.len() as u64, &|k| offsets[k as usize]..offsets[k as usize + 1], item_bytes)
    }

    #[test]
    fn every_segment_is_somewhere_once() {
        let lengths: Vec<u64> =
            (0..5000).map(|k| [0, 1, 3, 17, 500, 513, 9000, 0][k % 8] + (k as u64 % 3)).collect();
        let tables = of(&lengths, 4);
        let mut seen = vec![0; lengths.len()];
        for tile in &tables.tiles {
            let segments = tile.segment..tile.segment + tile.segments as u64;
            assert_eq!(segments.clone().map(|k| lengths[k as usize]).sum::<u64>(), tile.items as u64);
            assert!(tile.items as usize * 4 <= TILE_BYTES && tile.segments as usize <= TILE_SEGMENTS);
            segments.for_each(|k| seen[k as usize] += 1);
        }
        for class in &tables.classes {
            for unit in &class.units {
                let shape = Shape::new(lengths[unit.segment as usize], 4);
                assert_eq!((shape.groups, shape.chunks), (class.groups, unit.chunks as u64));
                seen[unit.segment as usize] += (unit.index == 0) as i32;
            }
        }
        assert!(seen.iter().all(|&times| times == 1));
        let several = lengths.iter().filter(|&&n| n > 8192);
        assert_eq!(tables.tickets, several.clone().count() as u64);
        assert_eq!(tables.partials, several.map(|&n| Shape::new(n, 4).chunks).sum::<u64>());
    }

    #[test]
    fn what_a_warp_can_have_to_itself_joins_tiles_only_among_shorter_ones() {
        let units = |lengths: &[u64]| of(lengths, 4).classes.iter().map(|c| c.units.len()).sum::<usize>();
        assert_eq!(units(&[300; 256]), 256);
        let mut mixed = vec![20; 256];
        mixed[7] = 300;
        assert_eq!((units(&mixed), of(&mixed, 4).tiles.len()), (0, 2));
        // A window each.
        mixed.extend([300; 256]);
        assert_eq!((units(&mixed), of(&mixed, 4).tiles.len()), (256, 2));
        mixed[300] = 0;
        assert_eq!((units(&mixed), of(&mixed, 4).tiles.len()), (255, 3));
    }

    #[test]
    fn nothing_makes_no_tables_and_gaps_end_tiles() {
        assert_eq!(of(&[], 4), Tables::default());
        let ranges = [0..5, 5..10, 12..13, 3..4, 4..4, 90..90, 4..9];
        let tables = Tables::new(ranges.len() as u64, &|k| ranges[k as usize].clone(), 4);
        let tiles: Vec<_> = tables.tiles.iter().map(|t| (t.segment, t.start, t.items, t.segments)).collect();
        assert_eq!(tiles, [(0, 0, 10, 2), (2, 12, 1, 1), (3, 3, 6, 4)]);
        let empties = of(&[0; 3000], 8);
        assert_eq!(empties.tiles.iter().map(|tile| tile.segments).collect::<Vec<_>>(), [1023, 1023, 954]);
    }
}
