//! How the work on segments of any lengths is cut for a device: once, on the host.

use std::ops::Range;

use warpfold_gpu_kernels::segments::{
    irregular::{CLASSES, Listed, TILE_SEGMENTS, Task, Tile, Unit, WARPS, class, short_limit, tile_limit},
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
/// segments above it, and those that tiles cannot take lie so close that tiles would not even be half full.
fn limit_of(ranges: impl Iterator<Item = Range<u64>>, [low, high]: [u64; 2], room: u64) -> u64 {
    let (mut below, mut between, mut runs) = (0_u64, 0_u64, 1);
    for Range { start, end } in ranges {
        match end - start {
            n if n <= low => below += n,
            n if n <= high => between += n,
            _ => runs += 1,
        }
    }
    if between > 7 * below && 2 * (below + between) < runs * room { low } else { high }
}

/// The tables of a launch for items of one size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tables {
    pub(crate) tiles: Vec<Tile>,
    /// The tiles' segments.
    pub(crate) listed: Vec<Listed>,
    /// What the warps of tiles do.
    pub(crate) tasks: Vec<Task>,
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
        let mut open: Option<Open> = None;
        for segment in 0..count {
            if segment % WINDOW == 0 {
                limit = limit_of((segment..count.min(segment + WINDOW)).map(range), limits, room);
            }
            let Range { start, end } = range(segment);
            let n = end - start;
            if n <= limit {
                let tile = open.get_or_insert_with(|| Open::at(segment, start));
                if !tile.takes(segment, start, n, room) {
                    tables.close(tile);
                    tile.reopen(segment, start);
                }
                tile.take(start, n as u32, item_bytes);
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
        if let Some(tile) = &mut open {
            tables.close(tile);
        }
        tables.classes = by_groups
            .into_iter()
            .zip(0..)
            .filter(|(units, _)| !units.is_empty())
            .map(|(units, log)| Class { groups: 1 << log, units })
            .collect();
        tables
    }

    /// Adds a tile, and lists its segments: the largest first, so that the longest tasks begin first.
    fn close(&mut self, open: &Open) {
        let mut tile = Tile { listed: self.listed.len() as u64, task: self.tasks.len() as u64, ..open.tile };
        for (class, segments) in open.by_class.iter().enumerate().rev() {
            if class > 0 {
                for part in segments.chunks(32 >> class) {
                    let task = Task::new(tile.shared, class as u32, part.len() as u32);
                    match tile.first.get_mut(tile.tasks as usize) {
                        Some(first) => *first = task,
                        None => self.tasks.push(task),
                    }
                    tile.tasks += 1;
                    tile.shared += part.len() as u32;
                }
            }
            self.listed.extend_from_slice(segments);
        }
        self.tiles.push(tile);
    }
}

/// A tile that may take more segments.
struct Open {
    tile: Tile,
    by_class: [Vec<Listed>; CLASSES],
}

impl Open {
    fn at(segment: u64, start: u64) -> Open {
        let mut open = Open { tile: EMPTY, by_class: Default::default() };
        open.reopen(segment, start);
        open
    }

    /// Begins anew.
    fn reopen(&mut self, segment: u64, start: u64) {
        self.tile = Tile { segment, start, ..EMPTY };
        self.by_class.iter_mut().for_each(Vec::clear);
    }

    /// Is there room for that segment, which lies where a tile's next has to?
    fn takes(&self, segment: u64, start: u64, n: u64, room: u64) -> bool {
        let Tile { items, segments, .. } = self.tile;
        let follows = n == 0 || items == 0 || start == self.tile.start + items as u64;
        let fits = items as u64 + n <= room && (segments as usize) < TILE_SEGMENTS;
        // The tile's segments are neighbours in number, too.
        fits && follows && self.tile.segment + segments as u64 == segment
    }

    fn take(&mut self, start: u64, n: u32, item_bytes: usize) {
        let tile = &mut self.tile;
        if tile.items == 0 && n > 0 {
            tile.start = start;
        }
        let listed = Listed::new(tile.segments, if n > 0 { tile.items } else { 0 }, n);
        self.by_class[class(n, item_bytes) as usize].push(listed);
        tile.items += n;
        tile.segments += 1;
    }
}

const EMPTY: Tile = Tile {
    segment: 0,
    start: 0,
    listed: 0,
    task: 0,
    items: 0,
    segments: 0,
    shared: 0,
    tasks: 0,
    first: [Task::new(0, 0, 0); WARPS],
};

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
            let first = tile.first.iter().take(tile.tasks as usize);
            let others = tables.tasks[tile.task as usize..].iter();
            let tasks = first.chain(others.take((tile.tasks as usize).saturating_sub(WARPS)));
            let mut class_at = vec![0; tile.segments as usize];
            let mut place = 0;
            for task in tasks {
                assert_eq!(task.place(), place);
                assert!(task.class() > 0 && task.count() > 0 && task.count() << task.class() <= 32);
                class_at[place as usize..][..task.count() as usize].fill(task.class());
                place += task.count();
            }
            assert_eq!(place, tile.shared);
            let listed = &tables.listed[tile.listed as usize..][..tile.segments as usize];
            for (listed, class) in listed.iter().zip(class_at) {
                let k = tile.segment + listed.segment() as u64;
                let before = (tile.segment..k).map(|k| lengths[k as usize]).sum::<u64>();
                let n = lengths[k as usize];
                assert_eq!((listed.n() as u64, listed.first() as u64), (n, if n > 0 { before } else { 0 }));
                assert_eq!(1 << class, Shape::new(n, 4).groups.max(1));
                assert!(segments.contains(&k));
                seen[k as usize] += 1;
            }
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
    fn what_a_warp_can_have_to_itself_is_kept_from_tiles_that_would_be_nearly_empty() {
        let units = |lengths: &[u64]| of(lengths, 4).classes.iter().map(|c| c.units.len()).sum::<usize>();
        // Thirteen to a tile.
        assert_eq!((units(&[300; 240]), of(&[300; 240], 4).tiles.len()), (0, 19));
        // Every other one is too long for a tile.
        let alternating: Vec<u64> = [300, 600].repeat(120);
        assert_eq!((units(&alternating), of(&alternating, 4).tiles.len()), (240, 0));
        // The same of short ones: a warp would be idle nearly.
        let short: Vec<u64> = [100, 600].repeat(120);
        assert_eq!((units(&short), of(&short, 4).tiles.len()), (120, 120));
        // A window each.
        let both = [vec![300; 256], alternating].concat();
        assert_eq!((units(&both), of(&both, 4).tiles.len()), (240, 20));
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
