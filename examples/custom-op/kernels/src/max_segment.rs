//! The greatest sum of neighbours: an operator without an identity, for no values have no neighbours.

use warpfold_monoid::{Plain, Semigroup};

/// A piece's sums, as far as a neighbour can still change them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Plain)]
pub struct Sums {
    total: i64,
    /// The greatest sum of values from the start on.
    prefix: i64,
    /// The greatest sum of values up to the end.
    suffix: i64,
    best: i64,
}

/// The greatest sum of one or more values that stand side by side. An operator as `NonEmpty(MaxSegmentSum)`.
#[derive(Clone, Copy, Debug, Plain)]
pub struct MaxSegmentSum;

impl Semigroup for MaxSegmentSum {
    type Item = i32;
    type Acc = Sums;
    type Output = i64;
    const COMMUTATIVE: bool = false;

    fn lift(&self, item: i32, _index: u64) -> Sums {
        let item = item.into();
        Sums { total: item, prefix: item, suffix: item, best: item }
    }

    fn combine(&self, left: Sums, right: Sums) -> Sums {
        Sums {
            total: left.total + right.total,
            prefix: left.prefix.max(left.total + right.prefix),
            suffix: right.suffix.max(left.suffix + right.total),
            best: left.best.max(right.best).max(left.suffix + right.prefix),
        }
    }

    fn finish(&self, acc: Sums) -> i64 {
        acc.best
    }
}
