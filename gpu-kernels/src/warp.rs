//! Reductions within a warp.

use warpfold_monoid::Monoid;
use warpfold_simt::warp::shuffle_down;

/// All lanes of a warp.
pub const FULL: u32 = u32::MAX;

/// Which of a group's threads hold a value: all of them (`None`), or only the first so many.
pub type Present = Option<u32>;

/// Combines the values of `width` neighbouring lanes pairwise, neighbours first; the result is in the first lane of
/// each such group. The values of lanes of the group that `present` leaves out are never combined.
///
/// `width` is a power of two up to 32, the same in all lanes; all 32 lanes must call.
#[inline(always)]
pub fn reduce<Op: Monoid>(op: &Op, mut acc: Op::Acc, lane: u32, width: u32, present: Present) -> Op::Acc {
    let position = lane & (width - 1);
    let mut distance = 1;
    while distance < width {
        let other = shuffle_down(FULL, acc, distance);
        // Where all are present, the lanes between combine too, harmlessly: nobody reads them.
        let take = match present {
            None => true,
            Some(present) => position & (2 * distance - 1) == 0 && position + distance < present,
        };
        if take {
            acc = op.combine(acc, other);
        }
        distance *= 2;
    }
    acc
}
