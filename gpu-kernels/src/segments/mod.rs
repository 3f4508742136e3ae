//! Reductions of many segments at once: of rows, of columns, of whatever an array's axes single out, of runs of any
//! lengths.
//!
//! A segment's value has the bits of reducing that segment alone: it has the canonical tree of its own length
//! ([`warpfold_monoid::tree`]), whatever its neighbours are and whichever kernel folds it. Indices that an operator sees
//! count within the segment.
//!
//! | kernel | a segment is folded by | where its items come from |
//! | --- | --- | --- |
//! | [`rows::thread`] | one thread | a tile of rows in shared memory |
//! | [`rows::small`] | up to 32 neighbouring threads | a tile of rows in shared memory; rows that fill few groups: global memory |
//! | [`rows::warp`] | 1 to 32 neighbouring threads | global memory |
//! | [`rows::block()`] | one block | global memory |
//! | [`rows::large`] | one block or several, some chunks each; the last to finish folds their values | global memory |
//! | [`rows::long`] | several blocks, a chunk each, of any length | global memory |
//! | [`columns::columns`] | threads of a block, one column each at a time | global memory, rows of neighbouring columns |
//! | [`columns::short`] | one thread | the same |
//! | [`columns::few`] | one thread several neighbours | the same, by vectors |
//! | [`narrow::narrow`] | as `warp`, `block` or `large`, several columns at once | global memory |
//! | [`flat::flat`] | threads of a block, vectors of memory each | global memory, rows of columns without gaps |
//! | [`wide::wide`] | threads of a block, several neighbours each | global memory, rows of neighbours by vectors |
//! | [`gather::gather`] | as `warp`, `block` or `large` | global memory, wherever the axes lead |
//! | [`irregular::tiles`] | one thread or several | a tile of segments in shared memory |
//! | [`irregular::units`] | a block a chunk | global memory |
//!
//! The names of the first five and the idea to have them all and to choose are those of R. W. Larsen and T. Henriksen,
//! *Strategies for Regular Segmented Reductions on GPU* (FHPC 2017); staging rows in shared memory so that loads are
//! wide and coalesced whatever the length is what they call an on-the-fly transpose.

use warpfold_monoid::Monoid;
use warpfold_simt::{grid, thread::grid_dim_x};

pub mod columns;
pub mod flat;
pub mod gather;
pub mod irregular;
pub mod narrow;
pub mod rows;
pub mod tile;
pub mod wide;

/// Threads in a block of the kernels whose blocks have one size.
pub const THREADS: u32 = 256;

/// Blocks up to which a grid says when the next one may start: saying so takes the device as long as starting a small
/// block, and only short grids gain by it. Others' blocks say it by ending.
const SHORT_GRID: u32 = 1 << 13;

/// Lets the next grid of the stream start early, if this one is short.
#[inline(always)]
fn let_next_start() {
    if grid_dim_x() <= SHORT_GRID {
        grid::let_next_start();
    }
}

/// The operator of a segment, if that is there.
#[inline(always)]
pub(crate) fn operator<Op: Monoid>(op: &Op, segment: u64, there: bool) -> Op {
    if Op::PER_SEGMENT && there { op.for_segment(segment) } else { *op }
}
