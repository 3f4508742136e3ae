//! The launch of a reduction by key.

use warpfold_gpu_kernels::scan::{row_pairs, runs::RunParams};
use warpfold_monoid::{
    Monoid, Plain,
    keyed::{Equality, RunTiling, Runs, RunsSoFar},
};

use super::DeviceFacts;
use crate::Error;

/// What a reduction by key launches, and what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunPlan {
    pub(crate) n: u64,
    /// Blocks: a tile each.
    pub(crate) grid: u32,
    /// Threads of a block.
    pub(crate) block: u32,
    /// Pairs of words of workspace.
    pub(crate) pairs: u64,
}

impl RunPlan {
    /// The launch for at least one item.
    pub(crate) fn new<K: Plain, E: Equality<K>, Op: Monoid>(
        n: u64,
        facts: &DeviceFacts,
    ) -> Result<RunPlan, Error> {
        let tiling = RunTiling::of_keys::<K, E, Op>();
        let blocks = tiling.tiles(n);
        if blocks > facts.max_grid_x as u64 {
            return Err(Error::GridTooLarge { n, blocks, limit: facts.max_grid_x });
        }
        if tiling.threads > facts.max_threads_per_block {
            let limit = facts.max_threads_per_block;
            return Err(Error::BlockTooLarge { n, threads: tiling.threads, limit });
        }
        let pairs = if blocks > 1 { row_pairs(size_of::<RunsSoFar<Op::Acc>>(), blocks as u32) } else { 0 };
        Ok(RunPlan { n, grid: blocks as u32, block: tiling.threads, pairs })
    }

    /// Do tiles wait for others?
    pub(crate) fn chained(&self) -> bool {
        self.grid > 1
    }

    /// The parameters of the kernel; `capacity` pairs of words lie at `records`.
    pub(crate) fn params<K: Plain, E: Equality<K>, Op: Monoid>(
        &self,
        op: Runs<K, E, Op>,
        at: &RunPlaces,
        capacity: u64,
    ) -> RunParams<K, E, Op> {
        let place = std::ptr::with_exposed_provenance_mut::<u8>;
        RunParams {
            keys: place(at.keys).cast(),
            values: place(at.values).cast(),
            n: self.n,
            indices: place(at.indices).cast(),
            out_keys: place(at.out_keys).cast(),
            out_values: place(at.out_values).cast(),
            count: place(at.count).cast(),
            counter: place(at.counter).cast(),
            records: place(at.records).cast(),
            capacity,
            tiles: self.grid,
            key_bytes: size_of::<K>() as u32,
            op,
        }
    }
}

/// Where things lie: addresses, with provenance exposed where they are the host's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunPlaces {
    pub(crate) keys: usize,
    pub(crate) values: usize,
    /// 0 for none.
    pub(crate) indices: usize,
    pub(crate) out_keys: usize,
    pub(crate) out_values: usize,
    pub(crate) count: usize,
    pub(crate) counter: usize,
    pub(crate) records: usize,
}
