//! The element types that can be read.

use super::InputError;

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Float16,
    Bfloat16,
    Float32,
    Float64,
    Complex64,
    Complex128,
}

/// Types that the same operators take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Bool,
    Signed,
    Unsigned,
    Float,
    Complex,
}

impl Class {
    /// Every class, in the order in which their types are listed.
    pub const ALL: [Class; 5] = [Class::Bool, Class::Signed, Class::Unsigned, Class::Float, Class::Complex];

    /// Its types.
    pub fn dtypes(self) -> impl Iterator<Item = Dtype> {
        Dtype::ALL.into_iter().filter(move |dtype| dtype.class() == self)
    }
}

impl Dtype {
    /// Every type, in the order in which they are listed.
    pub const ALL: [Dtype; 15] = [
        Dtype::Bool,
        Dtype::Int8,
        Dtype::Int16,
        Dtype::Int32,
        Dtype::Int64,
        Dtype::Uint8,
        Dtype::Uint16,
        Dtype::Uint32,
        Dtype::Uint64,
        Dtype::Float16,
        Dtype::Bfloat16,
        Dtype::Float32,
        Dtype::Float64,
        Dtype::Complex64,
        Dtype::Complex128,
    ];

    /// numpy's name, or that of its extension ml_dtypes.
    pub const fn name(self) -> &'static str {
        match self {
            Dtype::Bool => "bool",
            Dtype::Int8 => "int8",
            Dtype::Int16 => "int16",
            Dtype::Int32 => "int32",
            Dtype::Int64 => "int64",
            Dtype::Uint8 => "uint8",
            Dtype::Uint16 => "uint16",
            Dtype::Uint32 => "uint32",
            Dtype::Uint64 => "uint64",
            Dtype::Float16 => "float16",
            Dtype::Bfloat16 => "bfloat16",
            Dtype::Float32 => "float32",
            Dtype::Float64 => "float64",
            Dtype::Complex64 => "complex64",
            Dtype::Complex128 => "complex128",
        }
    }

    /// Bytes per element.
    pub const fn size(self) -> usize {
        match self {
            Dtype::Bool | Dtype::Int8 | Dtype::Uint8 => 1,
            Dtype::Int16 | Dtype::Uint16 | Dtype::Float16 | Dtype::Bfloat16 => 2,
            Dtype::Int32 | Dtype::Uint32 | Dtype::Float32 => 4,
            Dtype::Int64 | Dtype::Uint64 | Dtype::Float64 | Dtype::Complex64 => 8,
            Dtype::Complex128 => 16,
        }
    }

    /// Bytes of a number: byte orders apply to each part of a complex number by itself, and so does alignment.
    pub const fn number(self) -> usize {
        match self.class() {
            Class::Complex => self.size() / 2,
            _ => self.size(),
        }
    }

    /// What it is among the types.
    pub const fn class(self) -> Class {
        match self {
            Dtype::Bool => Class::Bool,
            Dtype::Int8 | Dtype::Int16 | Dtype::Int32 | Dtype::Int64 => Class::Signed,
            Dtype::Uint8 | Dtype::Uint16 | Dtype::Uint32 | Dtype::Uint64 => Class::Unsigned,
            Dtype::Float16 | Dtype::Bfloat16 | Dtype::Float32 | Dtype::Float64 => Class::Float,
            Dtype::Complex64 | Dtype::Complex128 => Class::Complex,
        }
    }

    /// The type of a `--dtype`: its name, or for floats Rust's short one.
    ///
    /// Not so for integers: `i8` is one byte in Rust and eight in numpy.
    pub fn parse(name: &str) -> Option<Dtype> {
        Some(match name {
            "f16" => Dtype::Float16,
            "bf16" => Dtype::Bfloat16,
            "f32" => Dtype::Float32,
            "f64" => Dtype::Float64,
            _ => Dtype::ALL.into_iter().find(|dtype| dtype.name() == name)?,
        })
    }

    /// The names of all types, for messages.
    pub fn known() -> String {
        Dtype::ALL.map(Dtype::name).join(", ")
    }

    /// Is it what `--dtype` says, if that says anything?
    pub fn checked(self, wanted: Option<Dtype>) -> Result<Dtype, InputError> {
        match wanted {
            Some(wanted) if wanted != self => Err(InputError::OtherDtype { found: self, wanted }),
            _ => Ok(self),
        }
    }
}
