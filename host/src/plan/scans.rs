//! The launch of a scan.

use warpfold_gpu_kernels::scan::{
    columns::{self, Shape, column_pairs},
    flags::{self, flag_pairs},
    persistent, row_pairs,
    segments::{self, Packing, cell, cell_pairs},
};
use warpfold_monoid::{Monoid, scan::Tiling};

use super::DeviceFacts;
use crate::{Error, scans::Lines};

/// Bytes of shared memory that a multiprocessor takes for each block.
const BLOCK_BYTES: u32 = 1024;

/// Tiles of each block that stays from which on that is worth while.
const WORTH_STAYING: u32 = 4;

/// Tiles of a row from which on it is: the last one, which is not whole, is waited for where it is folded. On an H200 rows of two to
/// five tiles took 2 to 11 % longer, those of ten 16 % less.
const WORTH_LOOKING: u32 = 8;

/// What is scanned.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work<'a> {
    Lines(&'a Lines),
    /// Segments of an array of so many items that follow one another.
    Segments {
        len: u64,
        segments: Bounds,
    },
}

/// Where segments begin and end, in the memory of whoever scans them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The address of the first of their 64-bit offsets, of which there is one more than segments.
    pub(crate) offsets: u64,
    /// How many segments there are.
    pub(crate) count: Count,
}

/// A number, or the address of one of 64 bits.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code))]
pub(crate) enum Count {
    Known(u64),
    At(u64),
}

impl Work<'_> {
    /// All items.
    pub(crate) fn items(&self) -> u64 {
        match self {
            Work::Lines(lines) => lines.items(),
            Work::Segments { len, .. } => *len,
        }
    }
}

/// How a scan is done: which kernel does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// A tile of a row to a block.
    Tiles,
    /// Tile after tile to each of fewer blocks.
    Persistent,
    /// Several rows to a block.
    Rows(Packing),
    /// A cell of the array to a block, whatever the segments' lengths are.
    Cells,
    /// A tile to a block, with a flag where a segment begins; and so many scouts.
    Flags(u32),
    /// Columns side by side.
    Columns(Shape),
}

/// What a scan launches, and what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScanPlan {
    pub(crate) strategy: Strategy,
    /// Blocks.
    pub(crate) grid: u32,
    /// Threads of a block.
    pub(crate) block: u32,
    /// Tiles of a row, or windows of a column.
    pub(crate) tiles: u32,
    /// Tiles of all rows.
    pub(crate) total: u32,
    /// Bytes of dynamic shared memory.
    pub(crate) shared: u32,
    /// Pairs of words of workspace.
    pub(crate) pairs: u64,
    /// Do blocks wait for others?
    pub(crate) chained: bool,
}

impl ScanPlan {
    /// The launch for work of at least one item, `by_lines` if there are kernels for many lines at once.
    pub(crate) fn new<Op: Monoid>(
        work: &Work<'_>,
        facts: &DeviceFacts,
        by_lines: bool,
    ) -> Result<ScanPlan, Error> {
        let tiling = const { Tiling::of::<Op>() };
        let acc = size_of::<Op::Acc>();
        let tile = tiling.tile();
        let packs = by_lines && const { segments::fits::<Op>() };
        let (strategy, blocks, row_tiles, pairs) = match *work {
            Work::Segments { len, .. } if const { flags::fits::<Op>() } => {
                let tiles = tiling.tiles(len);
                let scouts = flags::scouts::<Op>(tiles);
                let pairs = flag_pairs(acc, tiles.min(u32::MAX as u64));
                (Strategy::Flags(scouts.min(u32::MAX as u64) as u32), tiles.saturating_add(scouts), 1, pairs)
            }
            Work::Segments { len, .. } => {
                let cells = len.div_ceil(const { cell::<Op>() });
                (Strategy::Cells, cells, 1, cells.saturating_mul(cell_pairs(acc)))
            }
            Work::Lines(lines) if packs && lines.count > 1 && lines.n <= tile / 2 && lines.are_rows() => {
                let packing = Packing::of::<Op>(lines.n);
                (Strategy::Rows(packing), lines.count.div_ceil(packing.rows as u64), 1, 0)
            }
            Work::Lines(lines) if by_lines && lines.rows.inner > 1 && const { columns::fits::<Op>() } => {
                let inner = lines.rows.inner;
                let (shape, outer) = (Shape::of::<Op>(lines.n, inner), lines.count / inner);
                let windows = lines.n.div_ceil(tiling.warp() as u64).min(u32::MAX as u64) as u32;
                let (sets, others) = if windows > 1 { (windows as u64, outer) } else { (outer, 1) };
                let abreast = inner.div_ceil(shape.columns as u64);
                let blocks = sets.div_ceil(shape.sets as u64).saturating_mul(others).saturating_mul(abreast);
                let pairs = if windows > 1 { lines.count * column_pairs(acc, tiling, windows) } else { 0 };
                (Strategy::Columns(shape), blocks, windows, pairs)
            }
            Work::Lines(lines) => {
                let tiles = tiling.tiles(lines.n);
                let pairs = if tiles > 1 { lines.count * row_pairs(acc, tiles as u32) } else { 0 };
                (Strategy::Tiles, tiles.saturating_mul(lines.count), tiles as u32, pairs)
            }
        };
        let n = work.items();
        if blocks > facts.max_grid_x as u64 {
            return Err(Error::GridTooLarge { n, blocks, limit: facts.max_grid_x });
        }
        let threads = if let Strategy::Columns(shape) = strategy { shape.threads() } else { tiling.threads };
        if threads > facts.max_threads_per_block {
            let limit = facts.max_threads_per_block;
            return Err(Error::BlockTooLarge { n, threads, limit });
        }
        let chained = matches!(strategy, Strategy::Cells | Strategy::Flags(_)) || row_tiles > 1;
        let total = blocks as u32;
        let (mut grid, mut threads, mut shared, mut strategy) = (total, threads, 0, strategy);
        if strategy == Strategy::Tiles && row_tiles >= WORTH_LOOKING && const { persistent::worth::<Op>() } {
            let bytes = const { persistent::stage_bytes::<Op>() } as u32;
            let own = const { persistent::own_bytes::<Op>() } as u32 + BLOCK_BYTES;
            let resident =
                (facts.shared_bytes_per_multiprocessor / (bytes + own)).min(persistent::resident::<Op>());
            let slots = facts.multiprocessors.saturating_mul(resident);
            // Blocks ask for items without waiting for them; PTX for what is older, which built-in kernels have for 8.x too, waits.
            let has_copies = facts.compute_capability >= (9, 0);
            if has_copies
                && resident >= 2
                && bytes + own <= facts.most_shared_bytes_per_block
                && total / WORTH_STAYING >= slots
            {
                (strategy, grid, shared) = (Strategy::Persistent, slots, bytes);
                threads = const { persistent::threads::<Op>() };
            }
        }
        Ok(ScanPlan { strategy, grid, block: threads, tiles: row_tiles, total, shared, pairs, chained })
    }

    /// The kernel that does it, and whether it is one for many lines.
    pub(crate) fn kernel(&self, reverse: bool) -> (&'static str, bool) {
        match (self.strategy, reverse) {
            (Strategy::Tiles, false) => ("forward", false),
            (Strategy::Tiles, true) => ("reverse", false),
            (Strategy::Persistent, false) => ("persistent_forward", false),
            (Strategy::Persistent, true) => ("persistent_reverse", false),
            (Strategy::Rows(_), false) => ("rows_forward", true),
            (Strategy::Rows(_), true) => ("rows_reverse", true),
            (Strategy::Cells | Strategy::Flags(_), false) => ("segments_forward", true),
            (Strategy::Cells | Strategy::Flags(_), true) => ("segments_reverse", true),
            (Strategy::Columns(shape), false) if shape.is_narrow() => ("narrow_forward", true),
            (Strategy::Columns(shape), true) if shape.is_narrow() => ("narrow_reverse", true),
            (Strategy::Columns(_), false) => ("columns_forward", true),
            (Strategy::Columns(_), true) => ("columns_reverse", true),
        }
    }
}

#[cfg(test)]
mod tests {
    use warpfold_monoid::Sum;

    use super::*;

    #[test]
    fn short_rows_share_blocks_and_columns_have_blocks_of_their_shape() {
        let plan = |lines: &Lines, by_lines| {
            ScanPlan::new::<Sum<f32>>(&Work::Lines(lines), &DeviceFacts::H100, by_lines).unwrap()
        };
        let rows = Lines::rows(1 << 20, 64);
        // Three strips a row, 256 a block.
        assert_eq!(plan(&rows, true).strategy, Strategy::Rows(Packing { rows: 85, unit: 64 }));
        assert_eq!(plan(&rows, true).grid, 12337);
        assert_eq!((plan(&rows, false).strategy, plan(&rows, false).grid), (Strategy::Tiles, 1 << 20));
        let columns = plan(&Lines::inner(64, 1 << 20, 64), true);
        assert_eq!(columns.strategy, Strategy::Columns(Shape { columns: 16, strips: 32, sets: 1 }));
        assert_eq!((columns.tiles, columns.grid), (1171, 4 * 1171));
        // Of one item: rows, wherever they lie.
        let alone = Packing { rows: 7168, unit: 28 };
        assert_eq!(plan(&Lines::inner(6, 1, 2), true).strategy, Strategy::Rows(alone));
        // Two thirds of the most, by vectors; as many as there is room for.
        assert_eq!(Packing::of::<Sum<f32>>(9), Packing { rows: 768, unit: 27 });
        assert_eq!(Packing::of::<Sum<f32>>(5), Packing { rows: 1024, unit: 20 });
        let few = plan(&Lines::inner(6, 4, 2), true);
        assert_eq!(few.strategy, Strategy::Columns(Shape { columns: 2, strips: 1, sets: 128 }));
        assert_eq!(few.grid, 1);
    }

    #[test]
    fn segments_have_blocks_for_cells_or_for_tiles_and_scouts_where_there_are_many() {
        fn plan<Op: Monoid>(len: u64) -> (Strategy, u32, u64) {
            let segments = Bounds { offsets: 0, count: Count::Known(9) };
            let work = Work::Segments { len, segments };
            let plan = ScanPlan::new::<Op>(&work, &DeviceFacts::H100, true).unwrap();
            assert!(plan.chained);
            (plan.strategy, plan.grid, plan.pairs)
        }
        // A record for each tile's value, and one for where each begins and the last ends.
        assert_eq!(plan::<Sum<i32>>(512 * 7168), (Strategy::Flags(0), 512, 512 + 513));
        assert_eq!(plan::<Sum<i32>>(512 * 7168 + 1), (Strategy::Flags(3), 516, 513 + 514));
        assert_eq!(plan::<Sum<f32>>(6273), (Strategy::Cells, 2, 6));
    }
}
