//! Reading arrays from files.

mod csv;
mod data;
mod dtype;
mod npy;

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

pub use self::csv::Texts;
pub use self::data::{Array, Data, Stored};
pub use self::dtype::{Class, Dtype};
pub use self::npy::{SIGNATURE, shape_text};
use crate::error::Error;

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
    #[error("--dtype is for .npy files; a .csv file's column is int64 or float64, as its cells are")]
    DtypeOfCsv,
    #[error("holds elements of type {found}, and --dtype says {wanted}", found = found.name(), wanted = wanted.name())]
    OtherDtype { found: Dtype, wanted: Dtype },
    #[error("{0}")]
    Npy(#[from] npy::NpyError),
    #[error("{0}")]
    Csv(#[from] csv::CsvError),
}

/// What the command line says of a file.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// The column of a `.csv` file.
    pub column: Option<&'a str>,
    /// What the elements of a `.npy` file are.
    pub dtype: Option<Dtype>,
}

/// Opens a file and reads the array in it, mapping it into memory where its bytes can be used as they are.
///
/// A file is a .npy file if it starts with numpy's signature or is named so, else a .csv file if it is named so.
pub fn open(path: &Path, reading: Reading<'_>) -> Result<Array, Error> {
    open_array(path, reading).map_err(|source| Error::Input { path: path.to_path_buf(), source })
}

fn open_array(path: &Path, Reading { column, dtype }: Reading<'_>) -> Result<Array, InputError> {
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
        let array = npy::read(&file, dtype)?;
        if column.is_some() { Err(InputError::ColumnOfNpy) } else { Ok(array) }
    } else if named("csv") {
        let data = csv::read(&file, column)?;
        if dtype.is_some() { Err(InputError::DtypeOfCsv) } else { Ok(Array::column(data)) }
    } else {
        Err(InputError::UnknownFormat)
    }
}

/// Is it a .csv file by its name?
pub fn is_csv(path: &Path) -> bool {
    path.extension().is_some_and(|have| have.eq_ignore_ascii_case("csv"))
}

/// Opens a .csv file and reads a column of keys and one of numbers.
pub fn open_by_key(path: &Path, key: &str, value: &str) -> Result<(Texts, Data), Error> {
    let read = || {
        if std::fs::metadata(path)?.is_dir() {
            return Err(InputError::Directory);
        }
        Ok(csv::read_by_key(&File::open(path)?, key, value)?)
    };
    read().map_err(|source| Error::Input { path: path.to_path_buf(), source })
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
