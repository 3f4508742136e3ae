//! What operators give, whatever their type.

use std::fmt;

use half::{bf16, f16};
use num_complex::Complex;
use warpfold::monoid::{Extent, Indexed, OnEmpty};

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

/// What an operator gives: one result, or one for each segment.
#[derive(Debug)]
pub enum Findings {
    One(Found),
    Many(Segments),
}

impl Findings {
    /// The same, with a change to every result.
    pub fn then(self, change: fn(Found) -> Found) -> Findings {
        match self {
            Findings::One(found) => Findings::One(change(found)),
            Findings::Many(segments) => Findings::Many(Segments { change, ..segments }),
        }
    }
}

/// The results of segments, as they lie in memory.
pub struct Segments {
    len: usize,
    /// A segment's result; as people are told it, if it is said whether the segment is empty.
    get: Box<dyn Fn(usize, Option<bool>) -> Found>,
    change: fn(Found) -> Found,
}

impl fmt::Debug for Segments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} segments", self.len)
    }
}

impl Segments {
    /// Results `T`, of which nothing is told as `E` says.
    pub fn new<T, E>(results: Vec<T>) -> Segments
    where
        T: Finding + Copy + 'static,
        E: OnEmpty<T, Value: Finding> + 'static,
    {
        let len = results.len();
        let get = move |k: usize, empty: Option<bool>| match empty {
            Some(empty) => E::value(results[k], empty).found(),
            None => results[k].found(),
        };
        Segments { len, get: Box::new(get), change: |found| found }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The result of a segment that is empty or not: of nothing there may be none.
    pub fn found(&self, k: usize, empty: bool) -> Found {
        (self.change)((self.get)(k, Some(empty)))
    }

    /// The operator's own result.
    pub fn raw(&self, k: usize) -> Found {
        (self.change)((self.get)(k, None))
    }
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
