//! Operators that show faults which a sum hides.

use warpfold_monoid::{GivesIdentity, GivesNone, Monoid, Plain};

/// Numbers without a pattern, the same in every run.
pub fn numbers(n: usize) -> Vec<u32> {
    (0..n as u32).map(|i| i.wrapping_mul(2_654_435_761).rotate_left(7) ^ 0x9e37).collect()
}

/// Lengths of less than one chunk of 4-byte items, up to all the lanes and past them.
pub const LENGTHS: [usize; 11] = [1, 2, 3, 4, 5, 17, 31, 64, 129, 1000, 2048];

/// Counts how it was called: by `lift`, by `push`, and the items weighted with their indices.
///
/// `push` is not what the law asks for, on purpose: an adapter that lifts and combines instead is found out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Plain)]
pub struct Calls;

/// What [`Calls`] counted.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Plain)]
pub struct Counts {
    pub lifts: u32,
    pub pushes: u32,
    pub weighted: u64,
}

impl Monoid for Calls {
    type Item = u32;
    type Acc = Counts;
    type Output = Counts;
    type Empty = GivesNone;
    const COMMUTATIVE: bool = true;
    fn identity(&self) -> Counts {
        Counts { lifts: 0, pushes: 0, weighted: 0 }
    }
    fn lift(&self, item: u32, index: u64) -> Counts {
        Counts { lifts: 1, pushes: 0, weighted: index.wrapping_mul(item as u64) }
    }
    fn combine(&self, a: Counts, b: Counts) -> Counts {
        Counts {
            lifts: a.lifts + b.lifts,
            pushes: a.pushes + b.pushes,
            weighted: a.weighted.wrapping_add(b.weighted),
        }
    }
    fn push(&self, acc: Counts, item: u32, index: u64) -> Counts {
        let weighted = acc.weighted.wrapping_add(index.wrapping_mul(item as u64));
        Counts { pushes: acc.pushes + 1, weighted, ..acc }
    }
    fn finish(&self, acc: Counts) -> Counts {
        acc
    }
}

/// What [`Calls`] must count for items of less than one chunk: a lane lifts its first item and pushes the others.
pub fn counts(items: &[u32], item_size: usize) -> Counts {
    let shape = warpfold_monoid::tree::Shape::new(items.len() as u64, item_size);
    assert!(shape.chunks <= 1);
    let lifts = shape.lanes().min(items.len() as u64) as u32;
    Counts {
        lifts,
        pushes: items.len() as u32 - lifts,
        weighted: items.iter().enumerate().fold(0, |sum, (i, &x)| sum.wrapping_add(i as u64 * x as u64)),
    }
}

/// The same where operands keep their order: a lane lifts the first item of its strip.
pub fn counts_in_order(items: &[u32]) -> Counts {
    let shape = warpfold_monoid::tree::Shape::new(items.len() as u64, 4);
    let lifts = items.len().div_ceil(shape.strip() as usize) as u32;
    Counts { lifts, pushes: items.len() as u32 - lifts, ..counts(items, 4) }
}

/// Composition of `x -> scale * x + shift` over the integers modulo 2^32: not commutative. Its identity is a lie, which
/// shows if it is ever combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Plain)]
pub struct Affine;

impl Monoid for Affine {
    type Item = [u32; 2];
    type Acc = [u32; 2];
    type Output = [u32; 2];
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = false;
    fn identity(&self) -> [u32; 2] {
        [0, 0xdead]
    }
    fn lift(&self, item: [u32; 2], _index: u64) -> [u32; 2] {
        item
    }
    fn combine(&self, [a, b]: [u32; 2], [c, d]: [u32; 2]) -> [u32; 2] {
        [a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d)]
    }
    fn finish(&self, acc: [u32; 2]) -> [u32; 2] {
        acc
    }
}

/// How many items are over a threshold: an operator with a parameter of one byte.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Plain)]
pub struct Over {
    pub threshold: u8,
}

impl Monoid for Over {
    type Item = u32;
    type Acc = u32;
    type Output = u32;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    fn identity(&self) -> u32 {
        0
    }
    fn lift(&self, item: u32, _index: u64) -> u32 {
        (item > self.threshold as u32) as u32
    }
    fn combine(&self, left: u32, right: u32) -> u32 {
        left + right
    }
    fn finish(&self, acc: u32) -> u32 {
        acc
    }
}

/// The bitwise or of the lowest bytes: an accumulator of one byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Plain)]
pub struct OrOfBytes;

impl Monoid for OrOfBytes {
    type Item = u32;
    type Acc = u8;
    type Output = u8;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    fn identity(&self) -> u8 {
        0
    }
    fn lift(&self, item: u32, _index: u64) -> u8 {
        item as u8
    }
    fn combine(&self, left: u8, right: u8) -> u8 {
        left | right
    }
    fn finish(&self, acc: u8) -> u8 {
        acc
    }
}
