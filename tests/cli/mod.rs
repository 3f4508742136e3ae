//! The command `warpfold`, run as a user runs it.
//!
//! Inputs are written byte by byte here, or are bytes that numpy wrote; expected values come from exact integer
//! arithmetic. Every failure must be one line that names what is wrong, and the right exit code.

mod bools;
mod cases;
mod catalog;
mod complex;
mod csv;
mod dot;
mod floats;
mod integers;
mod keys;
mod layout;
mod npy;
mod results;
mod scan;
mod segments;
mod usage;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// The command under test. `WARPFOLD_BIN` names it where the tests run apart from the build.
fn warpfold() -> Command {
    let built = || env!("CARGO_BIN_EXE_warpfold").into();
    Command::new(std::env::var_os("WARPFOLD_BIN").unwrap_or_else(built))
}

fn run<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Output {
    warpfold().args(args).output().expect("the command starts")
}

/// Runs the command, which must succeed; what it printed.
fn succeeds<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> String {
    let output = run(args);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{:?}: {stderr}", output.status);
    assert_eq!(stderr, "");
    stdout
}

/// Runs the command, which must fail with that code and one line that has all the words; the line.
fn fails<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>, code: i32, words: &[&str]) -> String {
    let output = run(args);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{stdout}{stderr}");
    assert_eq!(stdout, "");
    assert!(stderr.starts_with("warpfold: error: "), "{stderr}");
    assert_eq!((stderr.matches('\n').count(), stderr.ends_with('\n')), (1, true), "{stderr}");
    for word in words {
        assert!(stderr.contains(word), "{word:?} is not in: {stderr}");
    }
    stderr
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the command prints UTF-8")
}

/// A folder for one test's files.
struct Files(TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().expect("a temporary folder"))
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).expect("a temporary file");
        path
    }
}

const ALL: &str = "sum,product,min,max";

/// Every operator on one array, by the types that it takes.
const ON_INTEGERS: &str = "sum,product,min,max,minmax,argmin,argmax,and,or,xor,all,any,count,sumsq,l1,l2,linf,mean,var,\
                           std,mss";
const ON_FLOATS: &str = "sum,product,min,max,minmax,argmin,argmax,all,any,count,sumsq,l1,l2,linf,mean,var,std,\
                         logsumexp,mss";
const ON_COMPLEX: &str = "sum,product,all,any,count,sumsq,l1,l2,linf,mean,var,std";
const ON_BOOL: &str = "sum,product,min,max,minmax,argmin,argmax,and,or,xor,all,any,count,mean";

/// Writes an array of one axis.
fn column<const SIZE: usize>(files: &Files, name: &str, descr: &str, items: &[[u8; SIZE]]) -> PathBuf {
    files.write(name, Npy::new(descr, &format!("({},)", items.len()), items.concat()).bytes())
}

/// A result that is a number, or one of the words that stand for those that JSON lacks.
fn number(value: &Value) -> f64 {
    match value {
        Value::String(word) => word.parse().expect("NaN, inf or -inf"),
        _ => value.as_f64().unwrap_or_else(|| panic!("{value} is not a number")),
    }
}

/// The sum of some positive numbers, with what each addition loses added at the end (A. Neumaier).
fn compensated(numbers: impl Iterator<Item = f64>) -> f64 {
    let (sum, lost) = numbers.fold((0.0, 0.0), |(sum, lost): (f64, f64), number| {
        let next = sum + number;
        let (large, small) = if sum >= number { (sum, number) } else { (number, sum) };
        (next, lost + (large - next + small))
    });
    sum + lost
}

/// Is it that number, but for so small a part of it?
#[track_caller]
fn is_near(found: &Value, expected: f64, part: f64) {
    let found = number(found);
    let near = (found - expected).abs() <= part * expected.abs();
    assert!(
        near || found == expected || (found.is_nan() && expected.is_nan()),
        "{found:e}, not {expected:e}"
    );
}

/// Reduces a file on the CPU with `--json` and further options; the object.
fn reduce(path: &std::path::Path, op: &str, options: &[&str]) -> Value {
    let path = path.to_str().expect("a UTF-8 path");
    let mut args = vec!["reduce", "--backend", "cpu", "--json", "--op", op, path];
    args.extend(options);
    let stdout = succeeds(args);
    assert_eq!((stdout.matches('\n').count(), stdout.ends_with('\n')), (1, true), "{stdout}");
    serde_json::from_str(&stdout).expect("one JSON object")
}

/// A `.npy` file to be, with a header that may lie.
struct Npy {
    version: u8,
    descr: String,
    order: &'static str,
    shape: String,
    /// The header's length is a multiple of this, signature included.
    align: usize,
    body: Vec<u8>,
}

impl Npy {
    fn new(descr: &str, shape: &str, body: impl Into<Vec<u8>>) -> Npy {
        let descr = format!("'{descr}'");
        Npy { version: 1, descr, order: "False", shape: shape.to_string(), align: 64, body: body.into() }
    }

    fn bytes(&self) -> Vec<u8> {
        let (descr, order, shape) = (&self.descr, self.order, &self.shape);
        self.with_header(&format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"))
    }

    /// The file with any text as its header, padded with spaces and ended by a newline.
    fn with_header(&self, text: &str) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY".to_vec();
        bytes.extend([self.version, 0]);
        let fixed = if self.version == 1 { 10 } else { 12 };
        let len = (fixed + text.len() + 1).next_multiple_of(self.align) - fixed;
        match self.version {
            1 => bytes.extend((len as u16).to_le_bytes()),
            _ => bytes.extend((len as u32).to_le_bytes()),
        }
        bytes.extend(text.bytes());
        bytes.resize(fixed + len - 1, b' ');
        bytes.push(b'\n');
        bytes.extend(&self.body);
        bytes
    }
}

/// Bytes of numbers, little-endian.
macro_rules! le {
    ($type:ty; $($item:expr),*) => { [$(&<$type>::to_le_bytes($item)[..]),*].concat() };
}
/// Bytes of numbers, big-endian.
macro_rules! be {
    ($type:ty; $($item:expr),*) => { [$(&<$type>::to_be_bytes($item)[..]),*].concat() };
}
use {be, le};
