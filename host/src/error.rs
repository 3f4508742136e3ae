//! What can go wrong, with the numbers and with what to do about it.

/// An error of an engine, a plan or a reduction.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The plan has more blocks than the device's grid can have.
    #[error("{n} items need {blocks} blocks, the device's grid holds {limit}: reduce the array in pieces")]
    GridTooLarge {
        /// Items.
        n: u64,
        /// Blocks that the plan wants.
        blocks: u64,
        /// Blocks that a grid may have.
        limit: u32,
    },
    /// The plan has more threads in a block than the device allows.
    #[error("{n} items need blocks of {threads} threads, the device allows {limit}: use the CPU backend")]
    BlockTooLarge {
        /// Items.
        n: u64,
        /// Threads in a block that the plan wants.
        threads: u32,
        /// Threads that a block may have.
        limit: u32,
    },
    /// An array view whose items do not lie side by side in ascending order.
    #[error(
        "an array of shape {shape:?} with strides {strides:?} is not contiguous: copy it first \
         (`as_standard_layout`, `to_owned`)"
    )]
    NotContiguous {
        /// Items along each axis.
        shape: Vec<usize>,
        /// Steps in items along each axis.
        strides: Vec<isize>,
    },
    /// A CUDA engine was asked for, and the crate was built without the feature `cuda`.
    #[error("built without the feature `cuda`: build with `--features cuda` to use a GPU")]
    CudaNotBuilt,
}
