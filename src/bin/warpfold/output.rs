//! How results are printed.

use std::fmt::Write;
use std::fs::File;
use std::io;
use std::path::Path;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use warpfold::Float;

use crate::error::Error;
use crate::input::shape_text;
use crate::ops::{Findings, Found, Scalar, Segments};
use crate::segments::Empty;

/// What one `warpfold reduce` found, in the order in which JSON gives it.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The file as named on the command line.
    pub file: String,
    /// All elements, NaNs included.
    pub n: u64,
    /// numpy's name of the element type.
    pub dtype: &'static str,
    /// Where it ran.
    pub backend: String,
    /// Milliseconds that the reductions took.
    pub elapsed_ms: f64,
    /// The results' shape, where there may be several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<u64>>,
    /// What the results belong to, if that has names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<Key>>,
    /// The file that they were written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out: Option<String>,
    /// What each operator gave, if no file has it.
    #[serde(skip_serializing_if = "Results::is_empty")]
    pub results: Results,
}

/// What a result belongs to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Key {
    Number(Scalar),
    Text(String),
}

impl Key {
    /// As people read it.
    pub fn plain(&self) -> String {
        match self {
            Key::Number(value) => plain_scalar(*value),
            Key::Text(text) => text.clone(),
        }
    }
}

/// Operators and what they gave, in the order asked for.
#[derive(Debug)]
pub struct Results {
    /// Of each, one value or several.
    pub found: Vec<(&'static str, Findings)>,
    /// Which segments are empty.
    pub empty: Empty,
}

impl Results {
    fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

impl Serialize for Results {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = self.found.iter().map(|(op, findings)| (op, List { findings, empty: &self.empty }));
        serializer.collect_map(entries)
    }
}

/// What one operator gave.
struct List<'a> {
    findings: &'a Findings,
    empty: &'a Empty,
}

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.findings {
            Findings::One(found) => found.serialize(serializer),
            Findings::Many(segments) => {
                serializer.collect_seq((0..segments.len()).map(|k| segments.found(k, self.empty.is(k))))
            }
        }
    }
}

impl Serialize for Found {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Found::One(value) => value.serialize(serializer),
            Found::Complex(re, im) => [re, im].serialize(serializer),
            Found::Extent { min, max } => serializer.collect_map([("min", min), ("max", max)]),
            Found::Indexed { index, value } => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("index", &index)?;
                map.serialize_entry("value", &value)?;
                map.end()
            }
            Found::Nothing => serializer.serialize_none(),
        }
    }
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Scalar::Bool(value) => serializer.serialize_bool(value),
            Scalar::Int(value) => serializer.serialize_i64(value),
            Scalar::Uint(value) => serializer.serialize_u64(value),
            Scalar::F16(value) => serialize_float(shortest(value), serializer),
            Scalar::Bf16(value) => serialize_float(shortest(value), serializer),
            Scalar::F32(value) if survives_f64(value) => serializer.serialize_f32(value),
            Scalar::F32(value) => serialize_float(value.into(), serializer),
            Scalar::F64(value) => serialize_float(value, serializer),
        }
    }
}

fn serialize_float<S: Serializer>(value: f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() {
        serializer.serialize_f64(value)
    } else {
        // JSON has no such numbers; Rust's own spelling is "NaN", "inf", "-inf".
        serializer.serialize_str(&value.to_string())
    }
}

/// Segments whose results a table shows at its start, and as many at its end.
const SHOWN: usize = 20;

impl Report {
    /// A table for people.
    pub fn table(&self) -> String {
        let mut rows = vec![
            ("file", self.file.clone()),
            ("n", self.n.to_string()),
            ("dtype", self.dtype.to_string()),
            ("backend", self.backend.clone()),
            ("elapsed", format!("{:.3} ms", self.elapsed_ms)),
        ];
        rows.extend(self.shape.as_ref().map(|shape| ("shape", shape_text(shape))));
        rows.extend(self.out.as_ref().map(|out| ("out", out.clone())));
        let facts = rows.len();
        let (mut names, mut columns) = (vec![], vec![]);
        for (op, findings) in &self.results.found {
            match findings {
                Findings::One(found) => rows.push((op, plain(*found, self.n))),
                Findings::Many(segments) => {
                    names.push(*op);
                    columns.push(segments);
                }
            }
        }
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        let mut text = String::new();
        for (i, (name, value)) in rows.iter().enumerate() {
            if i == facts {
                text.push('\n');
            }
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name:width$}  {value}");
        }
        if let (false, Some(shape)) = (names.is_empty(), &self.shape) {
            text.push('\n');
            self.segments(&mut text, shape, &names, &columns);
        }
        text
    }

    /// Writes a row for each key: the key, and what each operator gave.
    pub fn write_csv(&self, path: &Path) -> io::Result<()> {
        let mut file = csv::Writer::from_writer(File::create_new(path)?);
        let names = self.results.found.iter().map(|(name, _)| *name);
        file.write_record(["key"].into_iter().chain(names))?;
        for (k, key) in self.keys.iter().flatten().enumerate() {
            let empty = self.results.empty.is(k);
            let found = self.results.found.iter().filter_map(|(_, findings)| match findings {
                Findings::One(_) => None,
                Findings::Many(segments) => Some(match segments.found(k, empty) {
                    Found::Nothing => String::new(),
                    found => plain(found, u64::from(!empty)),
                }),
            });
            file.write_record([key.plain()].into_iter().chain(found))?;
        }
        file.flush()
    }

    /// A line for each segment, of which a long table leaves out the middle.
    fn segments(&self, text: &mut String, shape: &[u64], names: &[&str], columns: &[&Segments]) {
        let count = columns.first().map_or(0, |segments| segments.len());
        let shown = if count <= 2 * SHOWN { count } else { SHOWN };
        let ends = (0..shown).chain(count.max(shown + SHOWN) - SHOWN..count.max(shown));
        let line = |k: usize| {
            let found = columns.iter().map(|segments| {
                let empty = self.results.empty.is(k);
                plain(segments.found(k, empty), u64::from(!empty))
            });
            let name = match &self.keys {
                // On one line, whatever a cell holds.
                Some(keys) => keys[k].plain().split_whitespace().collect::<Vec<_>>().join(" "),
                None => position(k, shape),
            };
            [name].into_iter().chain(found).collect::<Vec<_>>()
        };
        let head = [""].iter().chain(names).map(|name| name.to_string()).collect();
        let lines: Vec<Vec<String>> =
            std::iter::once(head).chain(ends.filter(|&k| k < count).map(line)).collect();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..=names.len()).map(width).collect();
        for (i, line) in lines.iter().enumerate() {
            if i == SHOWN + 1 && count > shown {
                let _ = writeln!(text, "... {} more", count - 2 * SHOWN);
            }
            let cells: Vec<String> =
                line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}")).collect();
            let _ = writeln!(text, "{}", cells.join("  "));
        }
    }
}

/// Where result `k` stands in an array of results.
fn position(k: usize, shape: &[u64]) -> String {
    let mut rest = k as u64;
    let mut places: Vec<String> = shape
        .iter()
        .rev()
        .map(|&axis| {
            let place = rest % axis.max(1);
            rest /= axis.max(1);
            place.to_string()
        })
        .collect();
    places.reverse();
    places.join(",")
}

/// Does the shortest decimal of a float32 still give that float32 to a reader who takes it for a float64 first, as
/// JSON's readers do? The second rounding spoils it for one magnitude of all: 7.038531e-26.
fn survives_f64(value: f32) -> bool {
    value.is_finite() && value.to_string().parse::<f64>().is_ok_and(|wide| wide as f32 == value)
}

/// The number with the fewest digits that rounds to a float of 16 bits.
fn shortest<T: Float>(value: T) -> f64 {
    let exact = value.to_f64();
    (0..9)
        .filter_map(|digits| format!("{exact:.digits$e}").parse().ok())
        .find(|&short| T::of_f64(short).to_f64() == exact)
        .unwrap_or(exact)
}

/// Any value as JSON, on a line of its own.
pub fn json_line(value: &impl Serialize) -> Result<String, Error> {
    let text = serde_json::to_string(value).map_err(|error| Error::Output(error.into()))?;
    Ok(text + "\n")
}

/// A result of `n` elements as people read it.
fn plain(found: Found, n: u64) -> String {
    match found {
        Found::One(value) => plain_scalar(value),
        Found::Complex(re, im) => {
            let (re, im) = (plain_scalar(re), plain_scalar(im));
            let sign = if im.starts_with('-') { "" } else { "+" };
            format!("{re}{sign}{im}i")
        }
        Found::Extent { min, max } => format!("{} to {}", plain_scalar(min), plain_scalar(max)),
        Found::Indexed { index, value } => format!("{} at {index}", plain_scalar(value)),
        Found::Nothing if n == 0 => "none (no elements)".to_string(),
        Found::Nothing => "none (nothing but NaNs)".to_string(),
    }
}

/// A value as people read it: integers exact, floats the shortest decimal that reads back.
fn plain_scalar(value: Scalar) -> String {
    match value {
        Scalar::Bool(value) => value.to_string(),
        Scalar::Int(value) => value.to_string(),
        Scalar::Uint(value) => value.to_string(),
        Scalar::F16(value) => format!("{:?}", shortest(value)),
        Scalar::Bf16(value) => format!("{:?}", shortest(value)),
        Scalar::F32(value) => format!("{value:?}"),
        Scalar::F64(value) => format!("{value:?}"),
    }
}
