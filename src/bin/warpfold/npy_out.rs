//! Writing results as a `.npy` file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::input::{Dtype, SIGNATURE, shape_text};
use crate::ops::{Found, Op, Scalar, Segments};

/// Writes an operator's results. The file appears as a whole: it may be one of those that are read.
pub fn write(path: &Path, op: Op, dtype: Dtype, shape: &[u64], results: &Segments) -> Result<(), Error> {
    whole(path, |path| write_file(path, op, dtype, shape, results))
}

/// Has a file written beside its place, and puts it there when it is whole.
pub fn whole(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), Error> {
    let error = |source| Error::Out { path: path.to_path_buf(), source };
    let mut beside = path.as_os_str().to_os_string();
    beside.push(format!(".{}.part", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = write(&beside).and_then(|()| fs::rename(&beside, path));
    written.map_err(|source| {
        // What is there of it is of no use; that it cannot be removed, if so, is the lesser problem.
        let _ = fs::remove_file(&beside);
        error(source)
    })
}

fn write_file(path: &Path, op: Op, dtype: Dtype, shape: &[u64], results: &Segments) -> io::Result<()> {
    let given = op.operator().gives(dtype).and_then(|gives| gives.stored(dtype));
    let (stored, numbers) = given.ok_or(io::ErrorKind::Unsupported)?;
    let mut shape = shape.to_vec();
    if numbers > 1 {
        shape.push(numbers);
    }
    let mut file = BufWriter::with_capacity(1 << 16, File::create_new(path)?);
    file.write_all(&header(stored, &shape))?;
    for k in 0..results.len() {
        match results.raw(k) {
            Found::One(value) => scalar(&mut file, value, stored)?,
            Found::Complex(re, im) => {
                scalar(&mut file, re, stored)?;
                scalar(&mut file, im, stored)?;
            }
            Found::Extent { min, max } => {
                scalar(&mut file, min, stored)?;
                scalar(&mut file, max, stored)?;
            }
            // The index of nothing, all ones, is -1.
            Found::Indexed { index, .. } => file.write_all(&index.to_le_bytes())?,
            Found::Nothing => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
    file.flush()
}

/// Format version 1.0, or 2.0 if the header is long.
fn header(stored: Dtype, shape: &[u64]) -> Vec<u8> {
    let text =
        format!("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr(stored), shape_text(shape));
    let short = text.len() < 65_000;
    let start = if short { 10 } else { 12 };
    let len = (start + text.len() + 1).next_multiple_of(64) - start;
    let mut bytes = SIGNATURE.to_vec();
    if short {
        bytes.extend([1, 0]);
        bytes.extend((len as u16).to_le_bytes());
    } else {
        bytes.extend([2, 0]);
        bytes.extend((len as u32).to_le_bytes());
    }
    bytes.extend(text.bytes());
    bytes.resize(start + len - 1, b' ');
    bytes.push(b'\n');
    bytes
}

/// numpy's name of a type, little-endian.
fn descr(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Bool => "|b1",
        Dtype::Int8 => "|i1",
        Dtype::Int16 => "<i2",
        Dtype::Int32 => "<i4",
        Dtype::Int64 => "<i8",
        Dtype::Uint8 => "|u1",
        Dtype::Uint16 => "<u2",
        Dtype::Uint32 => "<u4",
        Dtype::Uint64 => "<u8",
        Dtype::Float16 => "<f2",
        // As ml_dtypes writes it: numpy knows its size only.
        Dtype::Bfloat16 => "<V2",
        Dtype::Float32 => "<f4",
        Dtype::Float64 => "<f8",
        Dtype::Complex64 => "<c8",
        Dtype::Complex128 => "<c16",
    }
}

fn scalar(file: &mut impl Write, value: Scalar, stored: Dtype) -> io::Result<()> {
    let size = stored.number();
    match value {
        Scalar::Bool(value) => file.write_all(&[value.into()]),
        Scalar::Int(value) => file.write_all(&value.to_le_bytes()[..size]),
        Scalar::Uint(value) => file.write_all(&value.to_le_bytes()[..size]),
        Scalar::F16(value) => file.write_all(&value.to_le_bytes()),
        Scalar::Bf16(value) => file.write_all(&value.to_le_bytes()),
        Scalar::F32(value) => file.write_all(&value.to_le_bytes()),
        Scalar::F64(value) => file.write_all(&value.to_le_bytes()),
    }
}
