//! What operators give, whatever their type.

use half::{bf16, f16};
use num_complex::Complex;
use warpfold::monoid::{Extent, Indexed};

/// A number or truth value. Integers of every width are held in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    Uint(u64),
    F16(f16),
    Bf16(bf16),
    F32(f32),
    F64(f64),
}

/// One result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    One(Scalar),
    /// The real and the imaginary part.
    Complex(Scalar, Scalar),
    /// The least and the greatest element.
    Extent {
        min: Scalar,
        max: Scalar,
    },
    /// An element and its position.
    Indexed {
        index: u64,
        value: Scalar,
    },
    /// The minimum or maximum of no elements.
    Nothing,
}

/// What a reduction gives.
pub trait Finding {
    fn found(self) -> Found;
}

/// What a [`Scalar`] holds.
pub trait Simple: Finding {
    fn scalar(self) -> Scalar;
}

macro_rules! simple {
    ($($type:ty => $variant:ident,)*) => {$(
        impl Simple for $type {
            fn scalar(self) -> Scalar { Scalar::$variant(self.into()) }
        }
        impl Finding for $type {
            fn found(self) -> Found { Found::One(self.scalar()) }
        }
    )*};
}
simple! {
    bool => Bool,
    i8 => Int,
    i16 => Int,
    i32 => Int,
    i64 => Int,
    u8 => Uint,
    u16 => Uint,
    u32 => Uint,
    u64 => Uint,
    f16 => F16,
    bf16 => Bf16,
    f32 => F32,
    f64 => F64,
}

impl<T: Simple> Finding for Complex<T> {
    fn found(self) -> Found {
        Found::Complex(self.re.scalar(), self.im.scalar())
    }
}

impl<T: Simple> Finding for Extent<T> {
    fn found(self) -> Found {
        Found::Extent { min: self.min.scalar(), max: self.max.scalar() }
    }
}

impl<T: Simple + Copy> Finding for Indexed<T> {
    fn found(self) -> Found {
        Found::Indexed { index: self.index(), value: self.value().scalar() }
    }
}

impl<F: Finding> Finding for Option<F> {
    fn found(self) -> Found {
        self.map_or(Found::Nothing, Finding::found)
    }
}
