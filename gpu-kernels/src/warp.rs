//! Reductions within a warp.

use warpfold_monoid::Monoid;
use warpfold_simt::warp::{FULL, shuffle_down};

/// Which of a group's threads hold a value: all of them (`None`), or only the first so many.
pub type Present = Option<u32>;

/// Combines the values of `width` neighbouring lanes pairwise, neighbours first; the result is in the first lane of
/// each such group. The values of lanes of the group that `present` leaves out are never combined.
///
/// `width` is a power of two up to 32, the same in all lanes.
///
/// # Safety
///
/// All 32 lanes of the warp call, together.
#[inline(always)]
pub unsafe fn reduce<Op: Monoid>(
    op: &Op,
    mut acc: Op::Acc,
    lane: u32,
    width: u32,
    present: Present,
) -> Op::Acc {
    let position = lane & (width - 1);
    let mut distance = 1;
    while distance < width {
        // SAFETY: all lanes are here.
        let other = unsafe { shuffle_down(FULL, acc, distance) };
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
