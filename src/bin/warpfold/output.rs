//! How results are printed.

use std::fmt::Write;

use serde::{Serialize, Serializer};

use crate::error::Error;
use crate::ops::Scalar;

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
pub struct Results(pub Vec<(&'static str, Scalar)>);

impl Serialize for Results {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Scalar::Int(value) => serializer.serialize_i64(value),
            Scalar::Uint(value) => serializer.serialize_u64(value),
            Scalar::F32(value) if value.is_finite() => serializer.serialize_f32(value),
            Scalar::F64(value) if value.is_finite() => serializer.serialize_f64(value),
            // JSON has no such numbers; Rust's own spelling is "NaN", "inf", "-inf".
            Scalar::F32(value) => serializer.serialize_str(&value.to_string()),
            Scalar::F64(value) => serializer.serialize_str(&value.to_string()),
            Scalar::Nothing => serializer.serialize_none(),
        }
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
        rows.extend(self.results.0.iter().map(|&(op, value)| (op, plain(value))));
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

/// Any value as JSON, on a line of its own.
pub fn json_line(value: &impl Serialize) -> Result<String, Error> {
    let text = serde_json::to_string(value).map_err(|error| Error::Output(error.into()))?;
    Ok(text + "\n")
}

/// A value as people read it: integers exact, floats the shortest decimal that reads back.
fn plain(value: Scalar) -> String {
    match value {
        Scalar::Int(value) => value.to_string(),
        Scalar::Uint(value) => value.to_string(),
        Scalar::F32(value) => format!("{value:?}"),
        Scalar::F64(value) => format!("{value:?}"),
        Scalar::Nothing => "none (no elements)".to_string(),
    }
}
