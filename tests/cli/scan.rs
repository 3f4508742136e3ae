//! `warpfold scan`: running results, written byte by byte as expected.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Files, Npy, be, fails, le, succeeds};

/// Scans a file on the CPU; the report and the written file.
fn scan(files: &Files, file: &Path, options: &[&str]) -> (Value, Vec<u8>) {
    let out = files.write("out.npy", "");
    let (file, name) = (file.to_str().unwrap(), out.to_str().unwrap());
    let mut args = vec!["scan", "--backend", "cpu", "--json", file, name];
    args.extend(options);
    let report = serde_json::from_str(&succeeds(args)).expect("one JSON object");
    (report, std::fs::read(out).unwrap())
}

fn integers(files: &Files) -> PathBuf {
    files.write("a.npy", Npy::new("|i1", "(2, 3)", [100, 100, 100, 255, 2, 254]).bytes())
}

#[test]
fn integer_sums_keep_64_bits_and_their_sign() {
    let files = Files::new();
    let path = integers(&files);
    let (report, written) = scan(&files, &path, &["--op", "sum"]);
    assert!(written == Npy::new("<i8", "(6,)", le!(i64; 100, 200, 300, 299, 301, 299)).bytes());
    assert_eq!((&report["n"], &report["dtype"], &report["shape"]), (&json!(6), &json!("int8"), &json!([6])));
    assert_eq!(report["backend"], "cpu");
    let (_, written) = scan(&files, &path, &["--op", "sum", "--exclusive", "--reverse"]);
    assert!(written == Npy::new("<i8", "(6,)", le!(i64; 199, 99, -1, 0, -2, 0)).bytes());
    let (_, written) = scan(&files, &path, &["--op", "min"]);
    assert!(written == Npy::new("|i1", "(6,)", [100, 100, 100, 255, 255, 254]).bytes());
    let (_, written) = scan(&files, &path, &["--op", "max", "--exclusive", "--axis", "1"]);
    assert!(written == Npy::new("|i1", "(2, 3)", [128, 100, 100, 128, 255, 2]).bytes());
}

#[test]
fn axes_of_either_order() {
    let files = Files::new();
    let path = integers(&files);
    for (axis, sums) in [("0", [100, 100, 100, 99, 102, 98]), ("-1", [100, 200, 300, -1, 1, -1])] {
        let (report, written) = scan(&files, &path, &["--op", "sum", "--axis", axis]);
        let sums: Vec<u8> = sums.into_iter().flat_map(i64::to_le_bytes).collect();
        assert!(written == Npy::new("<i8", "(2, 3)", sums).bytes(), "axis {axis}");
        assert_eq!(report["shape"], json!([2, 3]));
    }
    // The same array as Fortran and a big-endian machine have it.
    let body = be!(u16; 1, 4, 2, 5, 3, 6);
    let path = files.write("f.npy", Npy { order: "True", ..Npy::new(">u2", "(2, 3)", body) }.bytes());
    let (_, written) = scan(&files, &path, &["--op", "product", "--axis", "0"]);
    assert!(written == Npy::new("<u8", "(2, 3)", le!(u64; 1, 2, 3, 4, 10, 18)).bytes());
    let (_, written) = scan(&files, &path, &["--op", "sum"]);
    assert!(written == Npy::new("<u8", "(6,)", le!(u64; 1, 3, 6, 10, 15, 21)).bytes());
}

#[test]
fn floats_and_nothing() {
    let files = Files::new();
    let path = files.write("a.npy", Npy::new("<f4", "(4,)", le!(f32; 0.5, f32::NAN, 2.0, 1.0)).bytes());
    let (_, written) = scan(&files, &path, &["--op", "max"]);
    let nan = f32::NAN;
    assert!(written == Npy::new("<f4", "(4,)", le!(f32; 0.5, nan, nan, nan)).bytes());
    let path = files.write("d.npy", Npy::new("<f8", "(3,)", le!(f64; 0.5, 1.25, 2.5)).bytes());
    let (_, written) = scan(&files, &path, &["--op", "sum", "--exclusive"]);
    assert!(written == Npy::new("<f8", "(3,)", le!(f64; 0.0, 0.5, 1.75)).bytes());
    for (shape, options) in
        [("(0,)", vec![]), ("(3, 0)", vec!["--axis", "0"]), ("(3, 0)", vec!["--axis", "1"])]
    {
        let path = files.write("none.npy", Npy::new("<i4", shape, []).bytes());
        let (_, written) = scan(&files, &path, &[&["--op", "sum"], &options[..]].concat());
        assert!(written == Npy::new("<i8", shape, []).bytes(), "{shape} {options:?}");
    }
}

/// A file may be replaced by its own scan.
#[test]
fn in_the_place_of_the_file() {
    let files = Files::new();
    let path = files.write("a.npy", Npy::new("<u8", "(3,)", le!(u64; 1, 2, 3)).bytes());
    let name = path.to_str().unwrap();
    let text = succeeds(["scan", "--op", "sum", "--backend", "cpu", name, name]);
    assert!(text.contains("shape    (3,)"), "{text}");
    assert!(std::fs::read(&path).unwrap() == Npy::new("<u8", "(3,)", le!(u64; 1, 3, 6)).bytes());
}

#[test]
fn the_simulator_writes_the_same_bytes() {
    let files = Files::new();
    let body: Vec<u8> = (0..9000_u32).flat_map(|i| ((i * 37 % 101) as f32 / 7.0).to_le_bytes()).collect();
    let path = files.write("a.npy", Npy::new("<f4", "(9000,)", body).bytes());
    let (_, expected) = scan(&files, &path, &["--op", "sum"]);
    let out = files.write("sim.npy", "");
    let (name, to) = (path.to_str().unwrap(), out.to_str().unwrap());
    succeeds(["scan", "--op", "sum", "--backend", "sim", name, to]);
    assert!(std::fs::read(out).unwrap() == expected);
}

#[test]
fn what_is_refused() {
    let files = Files::new();
    let path = integers(&files);
    let out = files.write("out.npy", "before");
    let (name, to) = (path.to_str().unwrap(), out.to_str().unwrap());
    fails(["scan", "--op", "mean", name, to], 2, &["mean", "there are scans of sum, product, min, max"]);
    fails(["scan", "--op", "sum", "--axis", "2", name, to], 2, &["--axis 2", "2 axes", "(2, 3)"]);
    fails(["scan", "--op", "sum", name], 2, &["<OUT>"]);
    let halves = files.write("h.npy", Npy::new("<f2", "(1,)", [0, 0]).bytes());
    fails(["scan", "--op", "sum", halves.to_str().unwrap(), to], 2, &["float16", "float32 and float64"]);
    assert_eq!(std::fs::read(&out).unwrap(), b"before");
}
