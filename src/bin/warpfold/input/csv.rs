//! One column of a comma-separated file with a header row.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::str::FromStr;

use csv::{ByteRecord, ErrorKind, Position, ReaderBuilder, Trim};

use super::{Data, quoted};

/// What can be wrong with a `.csv` file.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    #[error("{0}")]
    Read(csv::Error),
    #[error("has no header row to take column names from")]
    NoHeader,
    #[error("has {count} columns; choose one with --column: {names}")]
    ColumnNeeded { count: usize, names: String },
    #[error("has no column {name}; its columns are {names}")]
    UnknownColumn { name: String, names: String },
    #[error("has {count} columns named {name} (columns {places}); rename all but one")]
    AmbiguousColumn { name: String, count: usize, places: String },
    #[error("line {line} has {found} cells where the header row has {expected}")]
    Ragged { line: u64, found: u64, expected: u64 },
    #[error("line {line}, column {column}: {cell} is not a number")]
    NotANumber { line: u64, column: String, cell: String },
}

/// The numbers read so far: integers until the first cell that is none.
enum Numbers {
    Integers(Vec<i64>),
    Floats(Vec<f64>),
}

impl Numbers {
    /// Takes a cell, if it is a number.
    fn push(&mut self, cell: &[u8]) -> Option<()> {
        if let Numbers::Integers(integers) = self {
            match integer(cell) {
                Some(value) => {
                    integers.push(value);
                    return Some(());
                }
                None => *self = Numbers::Floats(integers.iter().map(|&value| value as f64).collect()),
            }
        }
        if let Numbers::Floats(floats) = self {
            floats.push(float(cell)?);
        }
        Some(())
    }

    fn data(self) -> Data {
        match self {
            Numbers::Integers(integers) if !integers.is_empty() => Data::of_integers(integers),
            Numbers::Integers(_) => Data::of_floats(Vec::new()),
            Numbers::Floats(floats) => Data::of_floats(floats),
        }
    }
}

/// Reads the named column, or the only one.
///
/// The column is int64 if it has cells and every one is an integer that fits, else float64 with NaN for empty cells.
/// (`-0` is no integer here: float64 keeps its sign.)
pub fn read(file: &File, column: Option<&str>) -> Result<Data, CsvError> {
    let mut numbers = Numbers::Integers(Vec::new());
    read_rows(file, &[column], &mut |cells| numbers.push(cells[0]).ok_or(0))?;
    Ok(numbers.data())
}

/// Reads a column of keys, whatever they are, and one of numbers.
pub fn read_by_key(file: &File, key: &str, value: &str) -> Result<(Texts, Data), CsvError> {
    let (mut keys, mut numbers) = (Texts::default(), Numbers::Integers(Vec::new()));
    read_rows(file, &[Some(key), Some(value)], &mut |cells| {
        keys.push(cells[0]);
        numbers.push(cells[1]).ok_or(1)
    })?;
    Ok((keys, numbers.data()))
}

/// Cells of which many are equal.
#[derive(Debug, Default)]
pub struct Texts {
    /// The different ones, in the order in which they are first seen.
    pub texts: Vec<String>,
    /// Which of them each cell is.
    pub cells: Vec<u64>,
    numbers: HashMap<Vec<u8>, u64>,
}

impl Texts {
    fn push(&mut self, cell: &[u8]) {
        let number = match self.numbers.get(cell) {
            Some(&number) => number,
            None => {
                let number = self.texts.len() as u64;
                self.texts.push(String::from_utf8_lossy(cell).into_owned());
                self.numbers.insert(cell.to_vec(), number);
                number
            }
        };
        self.cells.push(number);
    }

    /// Every different cell as a number, if all are.
    pub fn numbers<T: FromStr>(&self) -> Option<Vec<T>> {
        self.texts.iter().map(|text| text.parse().ok()).collect()
    }
}

/// What is done with the fields of a row; an error names the field at fault.
type Take<'a> = dyn FnMut(&[&[u8]]) -> Result<(), usize> + 'a;

/// Hands out the named columns' cells, row by row. A cell that is not taken, counted among the columns, is not a number.
fn read_rows(file: &File, columns: &[Option<&str>], take: &mut Take<'_>) -> Result<(), CsvError> {
    let mut reader = ReaderBuilder::new().trim(Trim::All).from_reader(file);
    let header = reader.byte_headers().map_err(CsvError::Read)?.clone();
    let found = columns.iter().map(|&column| find_column(&header, column));
    let places = found.collect::<Result<Vec<_>, _>>()?;
    let mut record = ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(|error| read_error(error, file))? {
        let cells: Vec<&[u8]> = places.iter().map(|&place| &record[place]).collect();
        take(&cells).map_err(|which| CsvError::NotANumber {
            line: line(record.position(), file),
            column: quoted(&header[places[which]]),
            cell: quoted(cells[which]),
        })?;
    }
    Ok(())
}

fn read_error(error: csv::Error, file: &File) -> CsvError {
    match error.kind() {
        ErrorKind::UnequalLengths { pos, expected_len, len } => {
            CsvError::Ragged { line: line(pos.as_ref(), file), found: *len, expected: *expected_len }
        }
        _ => CsvError::Read(error),
    }
}

/// The line on which a row starts. The reader's own count is of where the row before ended: blank lines, and the
/// second half of a CRLF, still lie between. Moves the file; for use before an error ends the reading.
fn line(position: Option<&Position>, mut file: &File) -> u64 {
    let Some(position) = position else { return 0 };
    let skipped = file.seek(SeekFrom::Start(position.byte())).map_or(0, |_| {
        let blank =
            BufReader::new(file).bytes().map_while(Result::ok).take_while(|byte| b"\r\n".contains(byte));
        blank.filter(|&byte| byte == b'\n').count()
    });
    position.line() + skipped as u64
}

fn find_column(header: &ByteRecord, column: Option<&str>) -> Result<usize, CsvError> {
    if header.is_empty() {
        return Err(CsvError::NoHeader);
    }
    let Some(name) = column else {
        return match header.len() {
            1 => Ok(0),
            count => Err(CsvError::ColumnNeeded { count, names: names(header) }),
        };
    };
    let wanted = name.trim_ascii();
    let places: Vec<usize> = (0..header.len()).filter(|&i| &header[i] == wanted.as_bytes()).collect();
    match places[..] {
        [place] => Ok(place),
        [] => Err(CsvError::UnknownColumn { name: quoted(name.as_bytes()), names: names(header) }),
        _ => Err(CsvError::AmbiguousColumn {
            name: quoted(wanted.as_bytes()),
            count: places.len(),
            places: places.iter().map(|place| (place + 1).to_string()).collect::<Vec<_>>().join(", "),
        }),
    }
}

/// The column names for a message.
fn names(header: &ByteRecord) -> String {
    const MOST: usize = 20;
    let mut text = header.iter().take(MOST).map(quoted).collect::<Vec<_>>().join(", ");
    if header.len() > MOST {
        text += &format!(" and {} more", header.len() - MOST);
    }
    text
}

fn parse<T: FromStr>(cell: &[u8]) -> Option<T> {
    str::from_utf8(cell).ok()?.parse().ok()
}

fn integer(cell: &[u8]) -> Option<i64> {
    parse(cell).filter(|&value| value != 0 || !cell.starts_with(b"-"))
}

fn float(cell: &[u8]) -> Option<f64> {
    if cell.is_empty() { Some(f64::NAN) } else { parse(cell) }
}
