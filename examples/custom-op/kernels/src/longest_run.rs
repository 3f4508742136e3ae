//! The longest run of equal values: an operator whose accumulator describes a whole piece of the input.

use warpfold_monoid::{GivesIdentity, Monoid, Plain};

/// The runs of a piece of the input, as far as a neighbour can still change them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Plain)]
pub struct Runs {
    first: i32,
    last: i32,
    /// Values in the piece.
    len: u64,
    /// Length of the run that begins it.
    prefix: u64,
    /// Length of the run that ends it.
    suffix: u64,
    longest: u64,
}

/// How many equal values stand side by side, at most. Of no values: 0.
#[derive(Clone, Copy, Debug, Plain)]
pub struct LongestRun;

impl Monoid for LongestRun {
    type Item = i32;
    type Acc = Runs;
    type Output = u64;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = false;

    fn identity(&self) -> Runs {
        Runs { first: 0, last: 0, len: 0, prefix: 0, suffix: 0, longest: 0 }
    }

    fn lift(&self, item: i32, _index: u64) -> Runs {
        Runs { first: item, last: item, len: 1, prefix: 1, suffix: 1, longest: 1 }
    }

    // The identity is never combined, so both sides have values.
    fn combine(&self, left: Runs, right: Runs) -> Runs {
        let joined = left.last == right.first;
        let grown = |run: u64, whole: bool, more: u64| if joined && whole { run + more } else { run };
        let across = if joined { left.suffix + right.prefix } else { 0 };
        Runs {
            first: left.first,
            last: right.last,
            len: left.len + right.len,
            prefix: grown(left.prefix, left.prefix == left.len, right.prefix),
            suffix: grown(right.suffix, right.suffix == right.len, left.suffix),
            longest: left.longest.max(right.longest).max(across),
        }
    }

    fn finish(&self, acc: Runs) -> u64 {
        acc.longest
    }
}
