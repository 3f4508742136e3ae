//! The launches of a reduction by tag.

use warpfold_gpu_kernels::tags::{FOLD_THREADS, TagParams, fold_tags};
use warpfold_monoid::{
    Monoid,
    keyed::{LANES, TagShape, table_bytes},
};

use super::DeviceFacts;
use crate::Error;

/// What a reduction by tag launches, and what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TagPlan {
    pub(crate) shape: TagShape,
    /// The kernel that reduces chunks, its blocks (none for no items), a block's threads and shared memory.
    pub(crate) kernel: &'static str,
    pub(crate) grid: u32,
    pub(crate) block: u32,
    pub(crate) shared: u32,
    /// Blocks of the kernel that combines what they have.
    pub(crate) fold: u32,
    /// Values of chunks.
    pub(crate) partials: u64,
}

impl TagPlan {
    pub(crate) fn new<Op: Monoid>(n: u64, k: u64, facts: &DeviceFacts) -> Result<TagPlan, Error> {
        let shape = TagShape::of::<Op>(n, k);
        let units = shape.chunks.saturating_mul(shape.ranges());
        let blocks = units.div_ceil(shape.warps as u64);
        let fold = k.div_ceil(fold_tags(shape.fold_lanes()) as u64);
        if let Some(&blocks) = [blocks, fold].iter().find(|&&blocks| blocks > facts.max_grid_x as u64) {
            return Err(Error::GridTooLarge { n, blocks, limit: facts.max_grid_x });
        }
        let block = shape.warps * LANES;
        let threads = block.max(FOLD_THREADS);
        if threads > facts.max_threads_per_block {
            return Err(Error::BlockTooLarge { n, threads, limit: facts.max_threads_per_block });
        }
        let table = table_bytes(shape.range, size_of::<Op::Acc>(), shape.few);
        Ok(TagPlan {
            shape,
            kernel: if shape.few { "few" } else { "many" },
            grid: blocks as u32,
            block,
            shared: shape.warps * table as u32,
            fold: fold as u32,
            partials: k * shape.chunks,
        })
    }

    /// The parameters of its kernels.
    pub(crate) fn params<Op: Monoid>(&self, op: Op, at: &Places) -> TagParams<Op> {
        let place = std::ptr::with_exposed_provenance_mut::<u8>;
        TagParams {
            tags: place(at.tags),
            values: place(at.values).cast(),
            n: self.shape.n,
            output: place(at.output).cast(),
            partials: place(at.partials).cast(),
            present: place(at.present),
            first_bad: place(at.first_bad).cast(),
            chunk: self.shape.chunk,
            k: self.shape.k as u32,
            chunks: self.shape.chunks as u32,
            range: self.shape.range as u32,
            width: at.width,
            base: at.base,
            kept: place(at.kept).cast(),
            held: place(at.held),
            op,
        }
    }
}

/// Where things lie: addresses, with provenance exposed where they are the host's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) tags: usize,
    pub(crate) width: u32,
    pub(crate) values: usize,
    pub(crate) output: usize,
    pub(crate) partials: usize,
    pub(crate) present: usize,
    pub(crate) first_bad: usize,
    /// Items before the first.
    pub(crate) base: u64,
    /// Values that what is found is added to, and whether they are there; 0 for results.
    pub(crate) kept: usize,
    pub(crate) held: usize,
}
