//! Two arrays read side by side, with and without a third that is written in the same pass.

use warpfold_gpu_kernels::source::{Array, ArrayMut, MapOut, Over, Zip2};
use warpfold_monoid::{Map, MapFn, Plain, Sum, fused::Parts2};

/// Two arrays of `f32`, read side by side.
pub type Pairs = Zip2<Array<f32>, Array<f32>>;

/// `factor * x + y`, rounded twice.
#[repr(C)]
#[derive(Clone, Copy, Debug, Plain)]
pub struct Axpy {
    /// What `x` is multiplied by.
    pub factor: f32,
}

impl MapFn for Axpy {
    type From = Parts2<f32, f32>;
    type To = f32;

    fn map(&self, pair: Parts2<f32, f32>, _index: u64) -> f32 {
        let (x, y) = pair.get();
        self.factor * x + y
    }
}

/// The square of [`Axpy`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Plain)]
pub struct Squared(pub Axpy);

impl MapFn for Squared {
    type From = Parts2<f32, f32>;
    type To = f32;

    fn map(&self, pair: Parts2<f32, f32>, index: u64) -> f32 {
        let value = self.0.map(pair, index);
        value * value
    }
}

/// The sum of the squares of `factor * x + y`.
pub type SquaredNorm = Map<Sum<f32>, Squared>;

/// [`SquaredNorm`] of two arrays.
pub type NormOfPairs = Over<SquaredNorm, Pairs>;

/// The same, which also writes `factor * x + y` to a third array.
pub type AxpyAndNorm = Over<SquaredNorm, MapOut<Pairs, Axpy, ArrayMut<f32>>>;
