//! The sum of squares of one field: a map in front of a built-in operator, fused into its loads.

use warpfold_monoid::{Map, MapFn, Plain, Sum};

/// What lies in memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Plain)]
pub struct Particle {
    /// Its mass.
    pub mass: f32,
    /// Where it is; the height comes last.
    pub position: [f32; 3],
}

/// A particle's height, squared.
#[derive(Clone, Copy, Debug, Default, Plain)]
pub struct SquaredHeight;

impl MapFn for SquaredHeight {
    type From = Particle;
    type To = f32;

    fn map(&self, from: Particle, _index: u64) -> f32 {
        from.position[2] * from.position[2]
    }
}

/// No array of squares is ever written.
pub type SumOfSquaredHeights = Map<Sum<f32>, SquaredHeight>;
