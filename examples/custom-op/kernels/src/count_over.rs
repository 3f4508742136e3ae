//! How many values are over a threshold: an operator with a run-time parameter.

use warpfold_monoid::{GivesIdentity, Monoid, Plain};

/// How many values are greater than [`threshold`](CountOver::threshold). A NaN is not.
#[repr(C)]
#[derive(Clone, Copy, Debug, Plain)]
pub struct CountOver {
    /// Given at call time: the operator travels in the kernel's parameters.
    pub threshold: f32,
}

impl Monoid for CountOver {
    type Item = f32;
    type Acc = u64;
    type Output = u64;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    // Counts are exact in any order, so a backend may take the fastest.
    const ANY_ORDER: bool = true;

    fn identity(&self) -> u64 {
        0
    }

    fn lift(&self, item: f32, _index: u64) -> u64 {
        (item > self.threshold).into()
    }

    fn combine(&self, left: u64, right: u64) -> u64 {
        left + right
    }

    fn finish(&self, acc: u64) -> u64 {
        acc
    }
}
