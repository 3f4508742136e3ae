//! The launch of a scan.

use warpfold_gpu_kernels::scan::row_pairs;
use warpfold_monoid::{Monoid, scan::Tiling};

use super::DeviceFacts;
use crate::{Error, scans::Lines};

/// What a scan launches, and what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScanPlan {
    /// Blocks: a tile each.
    pub(crate) grid: u32,
    /// Threads of a block.
    pub(crate) block: u32,
    /// Tiles of a row.
    pub(crate) tiles: u32,
    /// Pairs of words of workspace.
    pub(crate) pairs: u64,
}

impl ScanPlan {
    /// The launch for lines with at least one item.
    pub(crate) fn new<Op: Monoid>(lines: &Lines, facts: &DeviceFacts) -> Result<ScanPlan, Error> {
        let tiling = const { Tiling::of::<Op>() };
        let (tiles, n) = (tiling.tiles(lines.n), lines.items());
        let blocks = tiles.saturating_mul(lines.count);
        if blocks > facts.max_grid_x as u64 {
            return Err(Error::GridTooLarge { n, blocks, limit: facts.max_grid_x });
        }
        if tiling.threads > facts.max_threads_per_block {
            let limit = facts.max_threads_per_block;
            return Err(Error::BlockTooLarge { n, threads: tiling.threads, limit });
        }
        let (grid, tiles) = (blocks as u32, tiles as u32);
        let pairs = if tiles > 1 { lines.count * row_pairs(size_of::<Op::Acc>(), tiles) } else { 0 };
        Ok(ScanPlan { grid, block: tiling.threads, tiles, pairs })
    }

    /// Do tiles wait for others?
    pub(crate) fn chained(&self) -> bool {
        self.tiles > 1
    }
}
