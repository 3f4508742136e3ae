//! Reductions within a warp.

use warpfold_monoid::Monoid;
use warpfold_simt::warp::shuffle_down;

/// All lanes of a warp.
pub const FULL: u32 = u32::MAX;

/// Combines the values of `width` neighbouring lanes pairwise, neighbours first; the result is in the first lane of
/// each such group. `present` is how many lanes of the own group hold a value (a prefix of the group); the others'
/// values are never combined.
///
/// `width` is a power of two up to 32, the same in all lanes; all 32 lanes must call.
#[inline(always)]
pub fn reduce<Op: Monoid>(op: &Op, mut acc: Op::Acc, lane: u32, width: u32, present: u32) -> Op::Acc {
    let position = lane & (width - 1);
    let mut distance = 1;
    while distance < width {
        let other = shuffle_down(FULL, acc, distance);
        if position & (2 * distance - 1) == 0 && position + distance < present {
            acc = op.combine(acc, other);
        }
        distance *= 2;
    }
    acc
}
