//! What a reduction will do, as data: computed from the problem and the device's facts, without touching a device.

use std::fmt;

use warpfold_monoid::{
    Monoid,
    tree::{SHORT_GROUPS, Shape},
};

use crate::Error;

pub(crate) mod runs;
pub(crate) mod scans;
pub mod segments;
pub(crate) mod sorts;
pub(crate) mod tags;

/// What a plan may depend on about a GPU.
///
/// The facts can be forged, to see what another device would do. They never change the bits of a result: the order of
/// combination is the plan's [`shape`](ReducePlan::shape), which knows nothing of devices.
///
/// ```
/// use warpfold_host::plan::DeviceFacts;
///
/// let mut small = DeviceFacts::H100;
/// small.multiprocessors = 20;
/// assert_eq!(small.max_grid_x, (1 << 31) - 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct DeviceFacts {
    /// Compute capability, major and minor.
    pub compute_capability: (u32, u32),
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Threads that a multiprocessor holds at once.
    pub max_threads_per_multiprocessor: u32,
    /// Threads that a block may have.
    pub max_threads_per_block: u32,
    /// Blocks that a grid may have along x.
    pub max_grid_x: u32,
    /// Bytes of shared memory that a block has without asking for more.
    pub shared_bytes_per_block: u32,
    /// Bytes that it has if it asks.
    pub most_shared_bytes_per_block: u32,
    /// Bytes that a multiprocessor has for all its blocks, each of which takes 1024 more than it asks for.
    pub shared_bytes_per_multiprocessor: u32,
}

impl DeviceFacts {
    /// An H100 (SXM): what to start from when forging.
    pub const H100: DeviceFacts = DeviceFacts {
        compute_capability: (9, 0),
        multiprocessors: 132,
        max_threads_per_multiprocessor: 2048,
        max_threads_per_block: 1024,
        max_grid_x: (1 << 31) - 1,
        shared_bytes_per_block: 48 << 10,
        most_shared_bytes_per_block: 227 << 10,
        shared_bytes_per_multiprocessor: 228 << 10,
    };
}

/// The sizes of an operator's types that a plan depends on.
///
/// ```
/// use warpfold_host::plan::OperatorLayout;
/// use warpfold_monoid::Sum;
///
/// let layout = OperatorLayout::of::<Sum<f32>>();
/// assert_eq!((layout.item_bytes, layout.acc_bytes), (4, 8));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct OperatorLayout {
    /// Bytes of an item.
    pub item_bytes: usize,
    /// Bytes of an accumulator.
    pub acc_bytes: usize,
    /// Alignment of an accumulator in bytes.
    pub acc_align: usize,
    /// May operands be reordered?
    pub commutative: bool,
    /// Does any order give the same bits?
    pub any_order: bool,
}

impl OperatorLayout {
    /// The layout of `Op`.
    pub const fn of<Op: Monoid>() -> OperatorLayout {
        OperatorLayout {
            item_bytes: size_of::<Op::Item>(),
            acc_bytes: size_of::<Op::Acc>(),
            acc_align: align_of::<Op::Acc>(),
            commutative: Op::COMMUTATIVE,
            any_order: Op::ANY_ORDER,
        }
    }
}

/// How a reduction runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strategy {
    /// On the CPU, chunks as tasks.
    Cpu,
    /// One block alone: the array is one chunk.
    OneBlock,
    /// A block a chunk, of an array of middling length; the last one to finish folds the chunks' values.
    ShortChunks,
    /// The same with larger blocks, for long arrays.
    LongChunks,
}

impl Strategy {
    /// The kernel that runs it, the last part of an entry point's name; `"cpu"` on the CPU.
    pub const fn kernel(self) -> &'static str {
        match self {
            Strategy::Cpu => "cpu",
            Strategy::OneBlock => "reduce_one",
            Strategy::ShortChunks => "reduce_short",
            Strategy::LongChunks => "reduce_long",
        }
    }
}

/// Bytes that a kernel's parameters may have on every device.
pub(crate) const PARAMETER_BYTES: usize = 4096;

/// Where in a workspace the chunks' values begin: after the ticket, which has a cache line to itself.
pub const PARTIALS_OFFSET: u64 = 128;

/// The plan of one reduction: a pure function of the number of items, the operator's layout and the device's facts.
///
/// ```
/// use warpfold_host::plan::{DeviceFacts, OperatorLayout, ReducePlan, Strategy};
/// use warpfold_monoid::Sum;
///
/// # fn main() -> Result<(), warpfold_host::Error> {
/// let plan = ReducePlan::new(1 << 20, OperatorLayout::of::<Sum<f32>>(), &DeviceFacts::H100)?;
/// assert_eq!(plan.strategy, Strategy::ShortChunks);
/// assert_eq!((plan.grid as u64, plan.block), (plan.shape.chunks, plan.shape.groups));
/// println!("{plan}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ReducePlan {
    /// In which order items combine.
    pub shape: Shape,
    /// How it runs.
    pub strategy: Strategy,
    /// Blocks (tasks on the CPU).
    pub grid: u32,
    /// Threads in a block (1 on the CPU).
    pub block: u32,
    /// Bytes of an item.
    pub item_bytes: usize,
    /// Does every operand stand to the right of all before it? See [`tree`](warpfold_monoid::tree).
    pub in_order: bool,
    /// Device memory needed beside input and output, in bytes; 0 for one block and on the CPU.
    pub workspace_bytes: u64,
}

impl ReducePlan {
    /// Plans a reduction of `n` items on a GPU.
    ///
    /// # Errors
    ///
    /// [`Error::GridTooLarge`] or [`Error::BlockTooLarge`] if the device cannot run that many blocks or threads.
    pub fn new(n: u64, layout: OperatorLayout, facts: &DeviceFacts) -> Result<ReducePlan, Error> {
        let shape = Shape::new(n, layout.item_bytes);
        let (strategy, grid, block) = if shape.chunks <= 1 {
            (Strategy::OneBlock, 1, shape.groups.max(32))
        } else {
            let too_large = Error::GridTooLarge { n, blocks: shape.chunks, limit: facts.max_grid_x };
            let grid = u32::try_from(shape.chunks).map_err(|_| too_large)?;
            let short = shape.groups <= SHORT_GROUPS;
            (if short { Strategy::ShortChunks } else { Strategy::LongChunks }, grid, shape.groups)
        };
        if grid > facts.max_grid_x {
            return Err(Error::GridTooLarge { n, blocks: grid as u64, limit: facts.max_grid_x });
        }
        if block > facts.max_threads_per_block {
            return Err(Error::BlockTooLarge { n, threads: block, limit: facts.max_threads_per_block });
        }
        let workspace_bytes = match strategy {
            Strategy::ShortChunks | Strategy::LongChunks => {
                partials_offset(layout.acc_align) + grid as u64 * layout.acc_bytes as u64
            }
            Strategy::OneBlock | Strategy::Cpu => 0,
        };
        let OperatorLayout { item_bytes, commutative, .. } = layout;
        Ok(ReducePlan { shape, strategy, grid, block, item_bytes, in_order: !commutative, workspace_bytes })
    }

    /// Plans a reduction of `n` items on the CPU.
    ///
    /// # Errors
    ///
    /// [`Error::GridTooLarge`] if there would be more than `u32::MAX` tasks.
    pub fn cpu(n: u64, layout: OperatorLayout) -> Result<ReducePlan, Error> {
        let shape = Shape::new(n, layout.item_bytes);
        let grid = u32::try_from(shape.chunks).map_err(|_| Error::GridTooLarge {
            n,
            blocks: shape.chunks,
            limit: u32::MAX,
        })?;
        let OperatorLayout { item_bytes, commutative, .. } = layout;
        let in_order = !commutative;
        let strategy = Strategy::Cpu;
        Ok(ReducePlan { shape, strategy, grid, block: 1, item_bytes, in_order, workspace_bytes: 0 })
    }

    /// Bytes of workspace that serve every reduction of no more items than this one. A shorter array can have more
    /// chunks, up to twice as many: chunks are merged in pairs where there would be too many.
    pub const fn workspace_bytes_up_to(&self) -> u64 {
        2 * self.workspace_bytes
    }

    /// The plan in words, for people: what [`Display`](fmt::Display) prints.
    pub fn explain(&self) -> String {
        self.to_string()
    }
}

/// Where the chunks' values begin in a workspace, for accumulators of that alignment.
pub(crate) const fn partials_offset(acc_align: usize) -> u64 {
    PARTIALS_OFFSET.next_multiple_of(acc_align as u64)
}

impl fmt::Display for ReducePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { n, vector, groups, chunk, chunks } = self.shape;
        writeln!(f, "{n} items of {} bytes", self.item_bytes)?;
        match chunks {
            0 => writeln!(f, "order      nothing to combine")?,
            _ if self.in_order => writeln!(
                f,
                "order      that of the items: {chunks} {} of {} items in tiles of {}",
                if chunks == 1 { "chunk" } else { "chunks" },
                chunk.min(n),
                self.shape.tile()
            )?,
            1 => writeln!(f, "order      1 chunk, {groups} x {vector} lanes, neighbours first")?,
            _ => writeln!(
                f,
                "order      {chunks} chunks of {chunk} items, {groups} x {vector} lanes, neighbours first"
            )?,
        }
        match self.strategy {
            Strategy::Cpu => write!(f, "runs as    {} tasks on the CPU", self.grid),
            _ => {
                writeln!(f, "runs as    {}<<<{}, {}>>>", self.strategy.kernel(), self.grid, self.block)?;
                write!(f, "workspace  {} bytes", self.workspace_bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpfold_monoid::{Max, Sum};

    const LAYOUT: OperatorLayout = OperatorLayout::of::<Sum<f32>>();

    #[test]
    fn short_arrays_take_one_block_of_whole_warps() {
        for n in [0, 1, 31, 32, 33, 100, 1000, 8192] {
            let plan = ReducePlan::new(n, LAYOUT, &DeviceFacts::H100).unwrap();
            assert_eq!(plan.strategy, Strategy::OneBlock, "n = {n}");
            assert_eq!((plan.grid, plan.workspace_bytes), (1, 0), "n = {n}");
            assert!(plan.block >= 32 && plan.block.is_multiple_of(32), "n = {n}: {plan}");
        }
    }

    #[test]
    fn long_arrays_take_a_block_a_chunk_and_room_for_their_values() {
        for n in [8193, 1 << 20, (1 << 22) + 5, 1 << 40] {
            let plan = ReducePlan::new(n, LAYOUT, &DeviceFacts::H100).unwrap();
            let strategy = if n < 1 << 22 { Strategy::ShortChunks } else { Strategy::LongChunks };
            assert_eq!(plan.strategy, strategy, "n = {n}");
            assert!([256, 512].contains(&plan.block), "n = {n}");
            assert_eq!(plan.grid as u64, plan.shape.chunks);
            assert_eq!(plan.grid as u64, n.div_ceil(plan.shape.chunk));
            assert_eq!(plan.workspace_bytes, 128 + 8 * plan.grid as u64);
        }
    }

    #[test]
    fn a_workspace_for_many_serves_fewer() {
        let plan = |n| ReducePlan::new(n, LAYOUT, &DeviceFacts::H100).unwrap();
        let (mut most, mut n) = (0, 1u64);
        while n < 1 << 34 {
            most = most.max(plan(n).workspace_bytes);
            assert!(plan(n).workspace_bytes_up_to() >= most, "n = {n}");
            n += n / 1000 + 1;
        }
    }

    #[test]
    fn facts_do_not_change_the_order() {
        for n in [100, 10_000, 1 << 24] {
            let reference = ReducePlan::new(n, LAYOUT, &DeviceFacts::H100).unwrap();
            for multiprocessors in [1, 20, 80, 132, 144] {
                for threads in [1024, 1536, 2048] {
                    let facts = DeviceFacts {
                        multiprocessors,
                        max_threads_per_multiprocessor: threads,
                        ..DeviceFacts::H100
                    };
                    assert_eq!(ReducePlan::new(n, LAYOUT, &facts).unwrap().shape, reference.shape);
                }
            }
        }
    }

    #[test]
    fn limits_are_errors_with_numbers() {
        let facts = DeviceFacts { max_grid_x: 10, ..DeviceFacts::H100 };
        let error = ReducePlan::new(1 << 20, LAYOUT, &facts).unwrap_err();
        assert!(matches!(error, Error::GridTooLarge { n: 1048576, blocks: 256, limit: 10 }), "{error:?}");
        let facts = DeviceFacts { max_threads_per_block: 128, ..DeviceFacts::H100 };
        let error = ReducePlan::new(1 << 20, LAYOUT, &facts).unwrap_err();
        assert!(matches!(error, Error::BlockTooLarge { threads: 256, limit: 128, .. }), "{error:?}");
    }

    #[test]
    fn the_largest_array_has_a_plan() {
        let plan = ReducePlan::new(u64::MAX, OperatorLayout::of::<Max<u32>>(), &DeviceFacts::H100).unwrap();
        assert!(plan.grid > 1 && plan.shape.chunk.checked_mul(plan.grid as u64 - 1).is_some(), "{plan}");
    }

    #[test]
    fn the_explanation_names_kernel_and_sizes() {
        let text = ReducePlan::new(1 << 20, LAYOUT, &DeviceFacts::H100).unwrap().explain();
        assert!(text.contains("1048576 items of 4 bytes"), "{text}");
        assert!(text.contains("reduce_short<<<256, 256>>>"), "{text}");
        assert!(text.contains("2176 bytes"), "{text}");
    }
}
