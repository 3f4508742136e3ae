//! How results are printed.

use std::fmt::Write;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use warpfold::Float;

use crate::error::Error;
use crate::ops::{Found, Scalar};

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
    /// One value per operator.
    pub results: Results,
}

/// Operators and their values, in the order asked for.
#[derive(Debug)]
pub struct Results(pub Vec<(&'static str, Found)>);

impl Serialize for Results {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
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
        let facts = rows.len();
        rows.extend(self.results.0.iter().map(|&(op, found)| (op, plain(found, self.n))));
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        let mut text = String::new();
        for (i, (name, value)) in rows.iter().enumerate() {
            if i == facts {
                text.push('\n');
            }
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name:width$}  {value}");
        }
        text
    }
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
