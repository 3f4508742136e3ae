use warpfold_monoid::{GivesNone, Monoid, Plain};

/// The sum of some values, and how many they are.
#[repr(C)]
#[derive(Clone, Copy, Debug, Plain)]
pub struct Total {
    sum: f64,
    count: u64,
}

/// The mean; of no values there is none.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Mean;

impl Monoid for Mean {
    type Item = f32;
    type Acc = Total;
    type Output = f64;
    type Empty = GivesNone;
    const COMMUTATIVE: bool = true;

    fn identity(&self) -> Total {
        Total { sum: 0.0, count: 0 }
    }

    fn lift(&self, item: f32, _index: u64) -> Total {
        Total { sum: item.into(), count: 1 }
    }

    fn combine(&self, left: Total, right: Total) -> Total {
        Total { sum: left.sum + right.sum, count: left.count + right.count }
    }

    fn finish(&self, acc: Total) -> f64 {
        acc.sum / acc.count as f64
    }
}
