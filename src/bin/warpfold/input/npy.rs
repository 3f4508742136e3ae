//! numpy's `.npy` format, versions 1.0 to 3.0: a signature, a header (a Python dictionary as text), the elements.
//!
//! The header parser is our own because a header may lie: the readers on crates.io multiply the shape without a check
//! and take exponential time on nested brackets. It reads the three keys that numpy writes and nothing else.

use std::fs::File;

use memmap2::Mmap;

use super::{Array, Data, Dtype, InputError, quoted};

/// What every `.npy` file starts with.
pub const SIGNATURE: &[u8; 6] = b"\x93NUMPY";

/// What can be wrong with a `.npy` file.
#[derive(Debug, thiserror::Error)]
pub enum NpyError {
    #[error("cannot map the file: {0}")]
    Map(std::io::Error),
    #[error("is not a .npy file: it does not start with numpy's signature")]
    Signature,
    #[error("is a .npy file of format version {major}.{minor}; known are 1.0, 2.0 and 3.0")]
    Version { major: u8, minor: u8 },
    #[error("is truncated: it needs {needed} bytes for the .npy header, and has {found}")]
    TruncatedHeader { needed: u64, found: u64 },
    #[error("has a .npy header that is no description of an array: {problem} (at byte {at} of the file)")]
    Header { problem: &'static str, at: usize },
    #[error("elements of type {0} are not supported; supported are {known}", known = Dtype::known())]
    Unsupported(String),
    #[error(
        "elements are {size} bytes that numpy has no type for ({descr}); say with --dtype what they are, such as \
         --dtype {example}"
    )]
    Untyped { size: usize, descr: String, example: &'static str },
    #[error("elements are {size} bytes each ({descr}), and {dtype}, as --dtype says, takes {needed}")]
    OtherSize { size: usize, descr: String, dtype: &'static str, needed: usize },
    #[error("claims the shape {shape} of {dtype}, which is more bytes than 64 bits can count")]
    Overflow { shape: String, dtype: &'static str },
    #[error(
        "is truncated: shape {shape} of {dtype} takes {expected} bytes after the header of {header} bytes, \
         and the file has {found} there"
    )]
    Truncated { shape: String, dtype: &'static str, expected: u64, header: usize, found: u64 },
    #[error(
        "goes on after its array: shape {shape} of {dtype} takes {expected} bytes after the header of {header} bytes, \
         and the file has {found} there"
    )]
    Trailing { shape: String, dtype: &'static str, expected: u64, header: usize, found: u64 },
}

/// Reads the array, leaving it in the mapped file where its bytes can be used as they are. `wanted` is what `--dtype` says.
pub fn read(file: &File, wanted: Option<Dtype>) -> Result<Array, InputError> {
    // SAFETY: the mapping is read-only. That no other program truncates or rewrites the file meanwhile is what every
    // mapping rests on; the command documents that its input must not change while it runs. Whatever bytes are there are
    // values of the types that elements are stored as.
    let map = unsafe { Mmap::map(file) }.map_err(NpyError::Map)?;
    let header = Header::parse(&map)?;
    let (dtype, order) = element_type(&header.descr, wanted)?;
    check_length(&header, dtype, (map.len() - header.data_start) as u64)?;
    let dtype = dtype.checked(wanted)?;
    let data = Data::of_file(map, header.data_start, dtype, order != NATIVE);
    Ok(Array::new(data, header.shape, header.fortran_order))
}

/// Are the bytes after the header, `found` of them, those that it promises?
fn check_length(header: &Header, dtype: Dtype, found: u64) -> Result<(), NpyError> {
    let (shape, start, dtype, size) =
        (shape_text(&header.shape), header.data_start, dtype.name(), dtype.size() as u64);
    let Some(expected) = element_count(&header.shape).and_then(|n| n.checked_mul(size)) else {
        return Err(NpyError::Overflow { shape, dtype });
    };
    if found < expected {
        return Err(NpyError::Truncated { shape, dtype, expected, header: start, found });
    }
    if found > expected {
        return Err(NpyError::Trailing { shape, dtype, expected, header: start, found });
    }
    Ok(())
}

/// The order of the bytes in a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrder {
    Little,
    Big,
}

const NATIVE: ByteOrder = if cfg!(target_endian = "little") { ByteOrder::Little } else { ByteOrder::Big };

/// The number of elements; `None` if it does not fit. An empty axis makes any shape empty.
fn element_count(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1u64, |n, &axis| n.checked_mul(axis))
}

/// A shape as Python writes it.
pub fn shape_text(shape: &[u64]) -> String {
    match shape {
        [one] => format!("({one},)"),
        _ => format!("({})", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// The element type and byte order of a type string such as `<f8`. Bytes without a type (`|V2`) are of the wanted one.
fn element_type(descr: &Descr, wanted: Option<Dtype>) -> Result<(Dtype, ByteOrder), NpyError> {
    let descr = match descr {
        Descr::Plain(text) => text,
        Descr::Structured => return Err(NpyError::Unsupported("structured (a list of fields)".to_string())),
    };
    let (order, kind) = match descr.as_bytes() {
        [b'<', kind @ ..] => (ByteOrder::Little, kind),
        [b'>', kind @ ..] => (ByteOrder::Big, kind),
        [b'=' | b'|', kind @ ..] | kind => (NATIVE, kind),
    };
    let dtype = match kind {
        b"b1" => Dtype::Bool,
        b"i1" => Dtype::Int8,
        b"i2" => Dtype::Int16,
        b"i4" => Dtype::Int32,
        b"i8" => Dtype::Int64,
        b"u1" => Dtype::Uint8,
        b"u2" => Dtype::Uint16,
        b"u4" => Dtype::Uint32,
        b"u8" => Dtype::Uint64,
        b"f2" => Dtype::Float16,
        b"f4" => Dtype::Float32,
        b"f8" => Dtype::Float64,
        b"c8" => Dtype::Complex64,
        b"c16" => Dtype::Complex128,
        b"V1" => untyped(1, descr, wanted)?,
        b"V2" => untyped(2, descr, wanted)?,
        b"V4" => untyped(4, descr, wanted)?,
        b"V8" => untyped(8, descr, wanted)?,
        b"V16" => untyped(16, descr, wanted)?,
        _ => {
            let code = quoted(descr.as_bytes());
            return Err(NpyError::Unsupported(match numpy_name(kind) {
                Some(name) => format!("{name} ({code})"),
                None => code,
            }));
        }
    };
    Ok((dtype, order))
}

/// The type of elements of which numpy knows the size only. ml_dtypes saves bfloat16 so.
fn untyped(size: usize, descr: &str, wanted: Option<Dtype>) -> Result<Dtype, NpyError> {
    let descr = quoted(descr.as_bytes());
    match wanted {
        Some(dtype) if dtype.size() == size => Ok(dtype),
        Some(dtype) => Err(NpyError::OtherSize { size, descr, dtype: dtype.name(), needed: dtype.size() }),
        None => {
            let example = match size {
                1 => "int8",
                2 => "bf16",
                4 => "float32",
                8 => "float64",
                _ => "complex128",
            };
            Err(NpyError::Untyped { size, descr, example })
        }
    }
}

/// numpy's name for the types of its own that are not supported.
fn numpy_name(kind: &[u8]) -> Option<&'static str> {
    Some(match kind {
        b"f16" => "longdouble",
        b"c32" => "clongdouble",
        [b'O', ..] => "object (pickled Python objects)",
        [b'S' | b'a', ..] => "bytes",
        [b'U', ..] => "str",
        [b'M', ..] => "datetime64",
        [b'm', ..] => "timedelta64",
        [b'V', ..] => "void",
        _ => return None,
    })
}

/// The element type as the header gives it.
#[derive(Debug, PartialEq)]
enum Descr {
    /// A type string.
    Plain(String),
    /// A list or tuple of fields.
    Structured,
}

/// A parsed header.
#[derive(Debug)]
struct Header {
    descr: Descr,
    fortran_order: bool,
    shape: Vec<u64>,
    data_start: usize,
}

impl Header {
    fn parse(file: &[u8]) -> Result<Header, NpyError> {
        let found = file.len() as u64;
        if !file.starts_with(SIGNATURE) {
            return Err(NpyError::Signature);
        }
        let truncated = |needed: u64| NpyError::TruncatedHeader { needed, found };
        let &[major, minor] = file.get(6..8).and_then(|bytes| bytes.first_chunk()).ok_or(truncated(10))?;
        let (text_start, text_len) = match (major, minor) {
            (1, 0) => {
                let bytes = file.get(8..10).and_then(|bytes| bytes.first_chunk()).ok_or(truncated(10))?;
                (10, u64::from(u16::from_le_bytes(*bytes)))
            }
            (2 | 3, 0) => {
                let bytes = file.get(8..12).and_then(|bytes| bytes.first_chunk()).ok_or(truncated(12))?;
                (12, u64::from(u32::from_le_bytes(*bytes)))
            }
            _ => return Err(NpyError::Version { major, minor }),
        };
        let needed = text_start as u64 + text_len;
        if needed > found {
            return Err(truncated(needed));
        }
        let data_start = needed as usize;
        Dictionary { bytes: &file[..data_start], at: text_start }.parse(data_start)
    }
}

/// A reader of the header's text: one Python dictionary of known keys, then blanks.
struct Dictionary<'a> {
    /// The file up to the end of the header.
    bytes: &'a [u8],
    /// The next byte.
    at: usize,
}

impl Dictionary<'_> {
    fn parse(mut self, data_start: usize) -> Result<Header, NpyError> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect(b'{', "it does not start with a dictionary")?;
        while !self.eat(b'}') {
            let key_at = self.at;
            let key = self.string("a key is not a string")?;
            self.expect(b':', "no colon after a key")?;
            match key.as_str() {
                "descr" => descr = Some(self.descr()?),
                "fortran_order" => fortran_order = Some(self.boolean()?),
                "shape" => shape = Some(self.shape()?),
                _ => {
                    let problem = "a key is none of 'descr', 'fortran_order' and 'shape'";
                    return Err(NpyError::Header { problem, at: key_at });
                }
            }
            if !self.eat(b',') {
                self.expect(b'}', "neither a comma nor the dictionary's end after a value")?;
                break;
            }
        }
        if self.peek().is_some() {
            return Err(self.error("text follows the dictionary"));
        }
        let descr = descr.ok_or_else(|| self.error("'descr' is missing"))?;
        let fortran_order = fortran_order.ok_or_else(|| self.error("'fortran_order' is missing"))?;
        let shape = shape.ok_or_else(|| self.error("'shape' is missing"))?;
        Ok(Header { descr, fortran_order, shape, data_start })
    }

    fn error(&self, problem: &'static str) -> NpyError {
        NpyError::Header { problem, at: self.at }
    }

    /// The next byte that is not blank, left in place.
    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, byte: u8, problem: &'static str) -> Result<(), NpyError> {
        if self.eat(byte) { Ok(()) } else { Err(self.error(problem)) }
    }

    fn eat_word(&mut self, word: &[u8]) -> bool {
        self.peek();
        let there = self.bytes[self.at..].starts_with(word);
        self.at += if there { word.len() } else { 0 };
        there
    }

    /// A string in either kind of quotes. A backslash keeps its neighbour from ending the string and is kept: no key
    /// and no type string has one.
    fn string(&mut self, problem: &'static str) -> Result<String, NpyError> {
        let quote = match self.peek() {
            Some(quote @ (b'\'' | b'"')) => quote,
            _ => return Err(self.error(problem)),
        };
        let start = self.at + 1;
        let mut end = start;
        loop {
            match self.bytes.get(end) {
                None => return Err(self.error("a string does not end")),
                Some(b'\\') => end += 2,
                Some(&byte) if byte == quote => break,
                Some(_) => end += 1,
            }
        }
        self.at = end + 1;
        Ok(String::from_utf8_lossy(&self.bytes[start..end]).into_owned())
    }

    fn boolean(&mut self) -> Result<bool, NpyError> {
        if self.eat_word(b"True") {
            Ok(true)
        } else if self.eat_word(b"False") {
            Ok(false)
        } else {
            Err(self.error("'fortran_order' is neither True nor False"))
        }
    }

    /// A tuple of integers.
    fn shape(&mut self) -> Result<Vec<u64>, NpyError> {
        const PROBLEM: &str = "'shape' is not a tuple of integers from 0 to 2^64 - 1";
        let mut shape = Vec::new();
        self.expect(b'(', PROBLEM)?;
        while !self.eat(b')') {
            self.peek();
            let digits = self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let text = str::from_utf8(&self.bytes[self.at..self.at + digits]).unwrap_or_default();
            shape.push(text.parse().map_err(|_| self.error(PROBLEM))?);
            self.at += digits;
            // Python 2 wrote some integers with this suffix.
            if self.bytes.get(self.at) == Some(&b'L') {
                self.at += 1;
            }
            if !self.eat(b',') {
                self.expect(b')', PROBLEM)?;
                // `(5)` is an integer, not a tuple.
                return if shape.len() == 1 { Err(self.error(PROBLEM)) } else { Ok(shape) };
            }
        }
        Ok(shape)
    }

    fn descr(&mut self) -> Result<Descr, NpyError> {
        match self.peek() {
            Some(b'[' | b'(') => {
                self.skip_nested()?;
                Ok(Descr::Structured)
            }
            _ => self.string("'descr' is not a type").map(Descr::Plain),
        }
    }

    /// Steps over a list or tuple whatever is in it.
    fn skip_nested(&mut self) -> Result<(), NpyError> {
        let mut depth = 0u64;
        loop {
            match self.peek() {
                None => return Err(self.error("a list does not end")),
                Some(b'\'' | b'"') => {
                    self.string("")?;
                    continue;
                }
                Some(b'[' | b'(') => depth += 1,
                Some(b']' | b')') => depth -= 1,
                Some(_) => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    //! What the command's output cannot show: whether elements were copied.

    use std::io::Write;

    use super::*;

    fn float64(order: &str, header_len: usize) -> Data {
        let mut file = tempfile::tempfile().unwrap();
        let header = format!("{{'descr': '{order}f8', 'fortran_order': False, 'shape': (1000,)}}");
        file.write_all(b"\x93NUMPY\x01\x00").unwrap();
        file.write_all(&((header_len - 10) as u16).to_le_bytes()).unwrap();
        write!(file, "{header:0$}", header_len - 10).unwrap();
        for i in 0..1000 {
            let value = f64::from(i);
            file.write_all(&if order == "<" { value.to_le_bytes() } else { value.to_be_bytes() }).unwrap();
        }
        let data = read(&file, None).unwrap().data;
        assert!(data.raw::<f64>().iter().enumerate().all(|(i, &item)| item == i as f64));
        data
    }

    #[test]
    fn elements_are_copied_only_where_they_must_be() {
        let native = if cfg!(target_endian = "little") { "<" } else { ">" };
        let foreign = if cfg!(target_endian = "little") { ">" } else { "<" };
        assert!(float64(native, 128).is_mapped());
        assert!(float64(native, 80).is_mapped());
        assert!(!float64(native, 81).is_mapped());
        assert!(!float64(native, 84).is_mapped());
        assert!(!float64(foreign, 128).is_mapped());
    }
}
