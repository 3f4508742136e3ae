//! One map after the other: an operator whose order matters.

use warpfold_monoid::{GivesIdentity, Monoid, Plain};

/// `x -> scale * x + shift`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Plain)]
pub struct AffineMap {
    /// The factor.
    pub scale: f32,
    /// What is added.
    pub shift: f32,
}

/// The composition of affine maps, the first item applied first. Of none: the map that changes nothing.
#[derive(Clone, Copy, Debug, Plain)]
pub struct Compose;

impl Monoid for Compose {
    type Item = AffineMap;
    type Acc = AffineMap;
    type Output = AffineMap;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = false;

    fn identity(&self) -> AffineMap {
        AffineMap { scale: 1.0, shift: 0.0 }
    }

    fn lift(&self, item: AffineMap, _index: u64) -> AffineMap {
        item
    }

    fn combine(&self, left: AffineMap, right: AffineMap) -> AffineMap {
        AffineMap { scale: left.scale * right.scale, shift: left.shift * right.scale + right.shift }
    }

    fn finish(&self, acc: AffineMap) -> AffineMap {
        acc
    }
}
