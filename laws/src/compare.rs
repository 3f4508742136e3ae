//! When two results are the same.

use warpfold_monoid::Plain;
use warpfold_monoid::fused::{
    Fused2, Fused3, Fused4, Fused5, Fused6, Fused7, Fused8, Parts2, Parts3, Parts4, Parts5, Parts6, Parts7,
    Parts8,
};

/// Results are the same if they are equal (so a NaN never is).
///
/// ```
/// assert!(warpfold_laws::equal(&0.0, &-0.0));
/// ```
pub fn equal<T: PartialEq>(left: &T, right: &T) -> bool {
    left == right
}

/// Results are the same if their bytes are: tells -0.0 from 0.0, and finds a NaN the same as itself.
///
/// ```
/// assert!(!warpfold_laws::same_bits(&0.0, &-0.0));
/// assert!(warpfold_laws::same_bits(&f32::NAN, &f32::NAN));
/// ```
pub fn same_bits<T: Plain>(left: &T, right: &T) -> bool {
    bytes(left) == bytes(right)
}

pub(crate) fn bytes<T: Plain>(value: &T) -> &[u8] {
    const { T::LAYOUT };
    // SAFETY: plain data has no padding, so all its bytes are initialised.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast(), size_of::<T>()) }
}

/// Results are the same if they differ by at most `absolute`, or by at most `relative` times the larger magnitude. Two NaNs
/// are the same, and so are equal infinities. Applies to each number of an array or of fused operators' results; integers
/// must be equal.
///
/// ```
/// let same = warpfold_laws::within(1e-6, 0.0);
/// assert!(same(&1.0f32, &1.0000001));
/// assert!(!same(&1.0f32, &1.00001));
/// ```
pub fn within<T: Approx>(relative: f64, absolute: f64) -> impl Fn(&T, &T) -> bool {
    move |left, right| left.is_within(right, relative, absolute)
}

/// A result that can be compared [`within`] a tolerance.
pub trait Approx {
    /// Is every number of `self` close enough to that of `other`?
    fn is_within(&self, other: &Self, relative: f64, absolute: f64) -> bool;
}

impl Approx for f64 {
    fn is_within(&self, other: &f64, relative: f64, absolute: f64) -> bool {
        if self == other || (self.is_nan() && other.is_nan()) {
            return true;
        }
        let error = (self - other).abs();
        error.is_finite() && (error <= absolute || error <= relative * self.abs().max(other.abs()))
    }
}

impl Approx for f32 {
    fn is_within(&self, other: &f32, relative: f64, absolute: f64) -> bool {
        f64::from(*self).is_within(&f64::from(*other), relative, absolute)
    }
}

macro_rules! exact {
    ($($type:ty),*) => {$(
        impl Approx for $type {
            fn is_within(&self, other: &$type, _relative: f64, _absolute: f64) -> bool {
                self == other
            }
        }
    )*};
}

exact!((), bool, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

impl<T: Approx, const N: usize> Approx for [T; N] {
    fn is_within(&self, other: &[T; N], relative: f64, absolute: f64) -> bool {
        self.iter().zip(other).all(|(left, right)| left.is_within(right, relative, absolute))
    }
}

macro_rules! parts {
    ($($parts:ident, $fused:ident: $($part:ident $left:ident $right:ident),+;)*) => {$(
        parts!(@one $parts: $($part $left $right),+);
        parts!(@one $fused: $($part $left $right),+);
    )*};
    (@one $parts:ident: $($part:ident $left:ident $right:ident),+) => {
        impl<$($part: Approx + Copy),+> Approx for $parts<$($part),+> {
            fn is_within(&self, other: &Self, relative: f64, absolute: f64) -> bool {
                let ($($left,)+) = self.get();
                let ($($right,)+) = other.get();
                $($left.is_within(&$right, relative, absolute))&&+
            }
        }
    };
}

parts! {
    Parts2, Fused2: A a0 b0, B a1 b1;
    Parts3, Fused3: A a0 b0, B a1 b1, C a2 b2;
    Parts4, Fused4: A a0 b0, B a1 b1, C a2 b2, D a3 b3;
    Parts5, Fused5: A a0 b0, B a1 b1, C a2 b2, D a3 b3, E a4 b4;
    Parts6, Fused6: A a0 b0, B a1 b1, C a2 b2, D a3 b3, E a4 b4, F a5 b5;
    Parts7, Fused7: A a0 b0, B a1 b1, C a2 b2, D a3 b3, E a4 b4, F a5 b5, G a6 b6;
    Parts8, Fused8: A a0 b0, B a1 b1, C a2 b2, D a3 b3, E a4 b4, F a5 b5, G a6 b6, H a7 b7;
}
