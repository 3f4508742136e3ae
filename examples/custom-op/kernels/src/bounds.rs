//! The box around points: an accumulator of 20 bytes, a size that no load or shuffle has.

use warpfold_monoid::{GivesNone, Monoid, Plain};

/// The box around points, and how many there are.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Plain)]
pub struct Seen {
    /// The least x and the least y; infinity if there are no points.
    pub low: [f32; 2],
    /// The greatest x and the greatest y; minus infinity if there are no points.
    pub high: [f32; 2],
    /// Points, modulo 2^32.
    pub points: u32,
}

/// The box around points `[x, y]`. A point with a NaN is none.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Bounds;

impl Monoid for Bounds {
    type Item = [f32; 2];
    type Acc = Seen;
    type Output = Seen;
    type Empty = GivesNone;
    const COMMUTATIVE: bool = true;

    fn identity(&self) -> Seen {
        Seen { low: [f32::INFINITY; 2], high: [f32::NEG_INFINITY; 2], points: 0 }
    }

    fn lift(&self, [x, y]: [f32; 2], _index: u64) -> Seen {
        match x.is_nan() || y.is_nan() {
            true => self.identity(),
            false => Seen { low: [x, y], high: [x, y], points: 1 },
        }
    }

    fn combine(&self, left: Seen, right: Seen) -> Seen {
        // Not `f32::min`, which may take either of 0.0 and -0.0: host and device would differ in a bit.
        let less = |a: f32, b: f32| if b < a { b } else { a };
        let more = |a: f32, b: f32| if b > a { b } else { a };
        Seen {
            low: [less(left.low[0], right.low[0]), less(left.low[1], right.low[1])],
            high: [more(left.high[0], right.high[0]), more(left.high[1], right.high[1])],
            points: left.points.wrapping_add(right.points),
        }
    }

    fn finish(&self, acc: Seen) -> Seen {
        acc
    }
}
