//! Products of 2x2 matrices: an operator whose order matters, with integers that wrap.

use warpfold_monoid::{GivesIdentity, Monoid, Plain};

/// Two rows of two.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
pub struct Matrix(pub [[u32; 2]; 2]);

/// The product of matrices modulo 2^32, the first item on the left. Of none: the unit matrix.
#[derive(Clone, Copy, Debug, Plain)]
pub struct MatrixProduct;

impl Monoid for MatrixProduct {
    type Item = Matrix;
    type Acc = Matrix;
    type Output = Matrix;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = false;

    fn identity(&self) -> Matrix {
        Matrix([[1, 0], [0, 1]])
    }

    fn lift(&self, item: Matrix, _index: u64) -> Matrix {
        item
    }

    fn combine(&self, Matrix(left): Matrix, Matrix(right): Matrix) -> Matrix {
        // Not `*` and `+`, which panic on overflow in a debug build.
        let dot = |[a, b]: [u32; 2], k: usize| {
            a.wrapping_mul(right[0][k]).wrapping_add(b.wrapping_mul(right[1][k]))
        };
        Matrix(left.map(|row| [dot(row, 0), dot(row, 1)]))
    }

    fn finish(&self, acc: Matrix) -> Matrix {
        acc
    }
}
