//! Reading arrays from files.

mod csv;
mod npy;

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use memmap2::Mmap;

use crate::error::Error;

/// An array from a file.
#[derive(Debug)]
pub struct Array {
    /// The elements, in the order in which the file stores them.
    pub data: Data,
}

/// Elements of one of the types that can be read.
#[derive(Debug)]
pub enum Data {
    Int32(Buffer<i32>),
    Uint32(Buffer<u32>),
    Int64(Buffer<i64>),
    Uint64(Buffer<u64>),
    Float32(Buffer<f32>),
    Float64(Buffer<f64>),
}

impl Data {
    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Data::Int32(items) => items.as_slice().len(),
            Data::Uint32(items) => items.as_slice().len(),
            Data::Int64(items) => items.as_slice().len(),
            Data::Uint64(items) => items.as_slice().len(),
            Data::Float32(items) => items.as_slice().len(),
            Data::Float64(items) => items.as_slice().len(),
        }
    }

    /// The type of the elements.
    pub fn dtype(&self) -> Dtype {
        match self {
            Data::Int32(_) => Dtype::Int32,
            Data::Uint32(_) => Dtype::Uint32,
            Data::Int64(_) => Dtype::Int64,
            Data::Uint64(_) => Dtype::Uint64,
            Data::Float32(_) => Dtype::Float32,
            Data::Float64(_) => Dtype::Float64,
        }
    }
}

/// The element types that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    Int32,
    Uint32,
    Int64,
    Uint64,
    Float32,
    Float64,
}

impl Dtype {
    /// Every type, in the order in which they are listed.
    pub const ALL: [Dtype; 6] =
        [Dtype::Int32, Dtype::Uint32, Dtype::Int64, Dtype::Uint64, Dtype::Float32, Dtype::Float64];

    /// numpy's name.
    pub const fn name(self) -> &'static str {
        match self {
            Dtype::Int32 => "int32",
            Dtype::Uint32 => "uint32",
            Dtype::Int64 => "int64",
            Dtype::Uint64 => "uint64",
            Dtype::Float32 => "float32",
            Dtype::Float64 => "float64",
        }
    }

    /// Bytes per element.
    pub const fn size(self) -> u64 {
        match self {
            Dtype::Int32 | Dtype::Uint32 | Dtype::Float32 => 4,
            Dtype::Int64 | Dtype::Uint64 | Dtype::Float64 => 8,
        }
    }

    /// The names of all types, for messages.
    fn known() -> String {
        Dtype::ALL.map(Dtype::name).join(", ")
    }
}

/// Elements, either where the file is mapped or in memory of their own.
#[derive(Debug)]
pub enum Buffer<T> {
    /// `len` bytes of the mapping from `start` on; they are aligned, whole elements in this machine's byte order.
    Mapped { map: Mmap, start: usize, len: usize },
    /// Converted elements.
    Owned(Vec<T>),
}

impl<T: bytemuck::Pod> Buffer<T> {
    /// The elements.
    pub fn as_slice(&self) -> &[T] {
        match self {
            Buffer::Mapped { map, start, len } => bytemuck::cast_slice(&map[*start..*start + *len]),
            Buffer::Owned(items) => items,
        }
    }
}

/// What can be wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("is a directory")]
    Directory,
    #[error("is not a regular file (copy what it yields to a file first)")]
    NotRegular,
    #[error("is empty (0 bytes)")]
    Empty,
    #[error("is a zip archive (.npz?); extract the .npy file of the array and name that")]
    Zip,
    #[error(
        "is neither .npy nor .csv: its name ends in neither, and it does not start with numpy's signature"
    )]
    UnknownFormat,
    #[error("--column is for .csv files; a .npy file has no columns")]
    ColumnOfNpy,
    #[error("{0}")]
    Npy(#[from] npy::NpyError),
    #[error("{0}")]
    Csv(#[from] csv::CsvError),
}

/// Opens a file and reads the array in it, mapping it into memory where its bytes can be used as they are.
///
/// A file is a .npy file if it starts with numpy's signature or is named so, else a .csv file if it is named so.
pub fn open(path: &Path, column: Option<&str>) -> Result<Array, Error> {
    open_array(path, column).map_err(|source| Error::Input { path: path.to_path_buf(), source })
}

fn open_array(path: &Path, column: Option<&str>) -> Result<Array, InputError> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(InputError::Directory);
    }
    if !metadata.is_file() {
        // Neither mapping nor checking the length works on a pipe or a device, and opening one may block.
        return Err(InputError::NotRegular);
    }
    let mut file = File::open(path)?;
    let mut start = Vec::new();
    Read::by_ref(&mut file).take(npy::SIGNATURE.len() as u64).read_to_end(&mut start)?;
    file.rewind()?;
    let named = |extension: &str| path.extension().is_some_and(|have| have.eq_ignore_ascii_case(extension));
    if start.is_empty() {
        Err(InputError::Empty)
    } else if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") {
        Err(InputError::Zip)
    } else if start == npy::SIGNATURE || named("npy") {
        let data = npy::read(&file)?;
        if column.is_some() { Err(InputError::ColumnOfNpy) } else { Ok(Array { data }) }
    } else if named("csv") {
        Ok(Array { data: csv::read(&file, column)? })
    } else {
        Err(InputError::UnknownFormat)
    }
}

/// A name or cell from a file as a message quotes it: in quotes, escaped, and cut if long, so that it stays on a line.
fn quoted(bytes: &[u8]) -> String {
    const LONGEST: usize = 40;
    let text = String::from_utf8_lossy(bytes);
    match text.char_indices().nth(LONGEST) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}...", &text[..end]),
    }
}
