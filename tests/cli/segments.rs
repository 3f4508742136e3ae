//! Segments: `--axis`, `--offsets`, `--out`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{
    Files, Npy, ON_BOOL, ON_COMPLEX, ON_FLOATS, ON_INTEGERS, be, fails, le, number, reduce, succeeds,
};

/// Results and their shape.
fn along(path: &Path, op: &str, options: &[&str]) -> (Value, Value) {
    let mut report = reduce(path, op, options);
    (report["shape"].take(), report["results"].take())
}

/// `[[[0, 1, 2], [3, 4, 5]], [[6, 7, 8], [9, 10, 11]]]`, stored in either order.
fn cube(files: &Files, descr: &str, fortran: bool) -> PathBuf {
    let big = descr.starts_with('>');
    let size: usize = descr[2..].parse().unwrap();
    let stored: Vec<u64> =
        if fortran { vec![0, 6, 3, 9, 1, 7, 4, 10, 2, 8, 5, 11] } else { (0..12).collect() };
    let body: Vec<u8> = stored
        .iter()
        .flat_map(|item| {
            let mut bytes = item.to_le_bytes()[..size].to_vec();
            if big {
                bytes.reverse();
            }
            bytes
        })
        .collect();
    let order = if fortran { "True" } else { "False" };
    files.write("cube.npy", Npy { order, ..Npy::new(descr, "(2, 2, 3)", body) }.bytes())
}

#[test]
fn axes_of_every_order_and_type() {
    let files = Files::new();
    for (descr, fortran) in [("|u1", false), ("<i2", true), (">i4", false), (">u8", true), ("<i8", false)] {
        let path = cube(&files, descr, fortran);
        let check = |options: &[&str], shape: Value, sums: Value, places: Value| {
            let (found, results) = along(&path, "sum,argmax", options);
            assert_eq!((found, &results["sum"]), (shape, &sums), "{descr} {options:?}");
            let found: Value =
                results["argmax"].as_array().unwrap().iter().map(|place| place["index"].clone()).collect();
            assert_eq!(found, places, "{descr} {options:?}");
        };
        check(&["--axis", "0"], json!([2, 3]), json!([6, 8, 10, 12, 14, 16]), json!([1, 1, 1, 1, 1, 1]));
        check(&["--axis", "1"], json!([2, 3]), json!([3, 5, 7, 15, 17, 19]), json!([1, 1, 1, 1, 1, 1]));
        check(&["--axis", "2"], json!([2, 2]), json!([3, 12, 21, 30]), json!([2, 2, 2, 2]));
        check(&["--axis", "-1"], json!([2, 2]), json!([3, 12, 21, 30]), json!([2, 2, 2, 2]));
        check(&["--axis", "-3"], json!([2, 3]), json!([6, 8, 10, 12, 14, 16]), json!([1, 1, 1, 1, 1, 1]));
        check(&["--axis", "0", "--axis", "2"], json!([2]), json!([24, 42]), json!([5, 5]));
        check(&["--axis", "-1", "--axis", "0"], json!([2]), json!([24, 42]), json!([5, 5]));
        check(&["--axis", "0", "--axis", "1", "--axis", "2"], json!([]), json!([66]), json!([11]));
    }
}

/// A segment's result is that of a file of its own.
#[test]
fn every_operator_and_type_as_if_alone() {
    let files = Files::new();
    let floats: Vec<f64> = (0..24).map(|i| f64::from((i * 37) % 23) / 8.0 - 1.0).collect();
    let f32s: Vec<u8> = floats.iter().flat_map(|&x| (x as f32).to_le_bytes()).collect();
    let f64s: Vec<u8> = floats.iter().flat_map(|x| x.to_le_bytes()).collect();
    let f16s: Vec<u8> = floats.iter().flat_map(|&x| half::f16::from_f64(x).to_le_bytes()).collect();
    let bf16s: Vec<u8> = floats.iter().flat_map(|&x| half::bf16::from_f64(x).to_le_bytes()).collect();
    let ints: Vec<u8> = (0..192u32).map(|i| ((i * 7919) >> 3) as u8).collect();
    let bools: Vec<u8> = (0..24).map(|i| u8::from(i % 5 != 0) * 3).collect();
    let both = |a: &[u8], size: usize| -> Vec<u8> {
        a.iter().copied().chain(a.iter().rev().copied()).take(24 * size).collect()
    };
    type Case = (&'static str, usize, Vec<u8>, &'static str, &'static [&'static str]);
    let cases: Vec<Case> = vec![
        ("|b1", 1, bools, ON_BOOL, &[]),
        ("|i1", 1, ints[..24].to_vec(), ON_INTEGERS, &[]),
        ("<u2", 2, ints[..48].to_vec(), ON_INTEGERS, &[]),
        ("<i4", 4, ints[..96].to_vec(), ON_INTEGERS, &[]),
        ("<u8", 8, ints.clone(), ON_INTEGERS, &[]),
        ("<f2", 2, f16s, ON_FLOATS, &[]),
        ("<V2", 2, bf16s, ON_FLOATS, &["--dtype", "bf16"]),
        ("<f4", 4, f32s.clone(), ON_FLOATS, &[]),
        ("<f8", 8, f64s.clone(), ON_FLOATS, &["--nan", "ignore"]),
        ("<c8", 8, both(&f32s, 8), ON_COMPLEX, &[]),
        ("<c16", 16, both(&f64s, 16), ON_COMPLEX, &["--nan", "ignore"]),
    ];
    for (descr, size, body, ops, options) in cases {
        let path = files.write("a.npy", Npy::new(descr, "(4, 6)", &body[..]).bytes());
        let with = |more: &[&'static str]| [options, more].concat();
        let (shape, rows) = along(&path, ops, &with(&["--axis", "1"]));
        assert_eq!(shape, json!([4]));
        let offsets = files.write("o.npy", Npy::new("<i4", "(5,)", le!(i32; 0, 6, 12, 18, 24)).bytes());
        let options_of = [options, &["--offsets", offsets.to_str().unwrap()]].concat();
        let (_, by_offsets) = along(&path, ops, &options_of);
        assert_eq!(rows, by_offsets, "{descr}");
        for row in 0..4 {
            let alone =
                files.write("row.npy", Npy::new(descr, "(6,)", &body[6 * size * row..][..6 * size]).bytes());
            let alone = reduce(&alone, ops, options);
            for op in ops.split(',') {
                assert_eq!(rows[op][row], alone["results"][op], "{op} of {descr}, row {row}");
            }
        }
    }
}

#[test]
fn dot_products_of_rows() {
    let files = Files::new();
    let a = files.write("a.npy", Npy::new("<i4", "(2, 2)", le!(i32; 1, 2, 3, 4)).bytes());
    let b = files
        .write("b.npy", Npy { order: "True", ..Npy::new("<i4", "(2, 2)", le!(i32; 5, 7, 6, 8)) }.bytes());
    let with = ["--with", b.to_str().unwrap()];
    let dot = |options: &[&str]| along(&a, "dot", &[&with[..], options].concat()).1["dot"].take();
    assert_eq!(dot(&["--axis", "1"]), json!([17, 53]));
    assert_eq!(dot(&["--axis", "0"]), json!([26, 44]));
    let offsets = files.write("o.npy", Npy::new("|u1", "(3,)", [0, 1, 4]).bytes());
    assert_eq!(dot(&["--offsets", offsets.to_str().unwrap()]), json!([5, 65]));
    let flat = files.write("c.npy", Npy::new("<i4", "(4,)", le!(i32; 5, 6, 7, 8)).bytes());
    let args =
        ["reduce", "--op", "dot", "--axis", "0", a.to_str().unwrap(), "--with", flat.to_str().unwrap()];
    fails(args, 1, &["c.npy", "shape (4,), not (2, 2)"]);
}

#[test]
fn offsets_of_any_integer_type() {
    let files = Files::new();
    let path = files.write("a.npy", Npy::new("<f4", "(5,)", le!(f32; 1.0, 2.0, -3.0, 4.5, 0.5)).bytes());
    let offsets: [(&str, Vec<u8>); 6] = [
        ("|u1", vec![0, 2, 2, 5]),
        ("|i1", vec![0, 2, 2, 5]),
        ("<i2", le!(i16; 0, 2, 2, 5)),
        (">u4", be!(u32; 0, 2, 2, 5)),
        ("<i8", le!(i64; 0, 2, 2, 5)),
        (">u8", be!(u64; 0, 2, 2, 5)),
    ];
    for (descr, body) in offsets {
        let offsets = files.write("o.npy", Npy::new(descr, "(4,)", body).bytes());
        let found = along(&path, "sum,min,argmin,mean", &["--offsets", offsets.to_str().unwrap()]);
        let at = |index: u64, value: f64| json!({"index": index, "value": value});
        let expected = json!({
            "sum": [3.0, 0.0, 2.0],
            "min": [1.0, null, -3.0],
            "argmin": [at(0, 1.0), null, at(0, -3.0)],
            "mean": [1.5, null, number(&found.1["mean"][2])],
        });
        assert_eq!(found, (json!([3]), expected), "{descr}");
    }
}

#[test]
fn bad_offsets_are_named() {
    let files = Files::new();
    let path = files.write("a.npy", Npy::new("|u1", "(5,)", [1; 5]).bytes());
    let check = |descr: &str, shape: &str, body: Vec<u8>, words: &[&str]| {
        let offsets = files.write("o.npy", Npy::new(descr, shape, body).bytes());
        let args = ["reduce", "--op", "sum", path.to_str().unwrap(), "--offsets", offsets.to_str().unwrap()];
        fails(args, 1, &[&["o.npy"], words].concat());
    };
    check("|i1", "(4,)", vec![0, 3, 2, 1], &["offset 2 is 2, less than the 3 before it"]);
    check("|i1", "(4,)", vec![0, 3, 0xfe, 5], &["offset 2 is -2", "never negative"]);
    check("|u1", "(4,)", vec![0, 3, 6, 7], &["segment 1 is 3..6", "has 5 items"]);
    check("<u8", "(2,)", le!(u64; 0, u64::MAX), &["segment 0 is 0..18446744073709551615"]);
    check("|u1", "(0,)", vec![], &["no offsets", "m + 1"]);
    check("<f4", "(1,)", le!(f32; 0.0), &["elements of type float32", "integers"]);
    check("|u1", "(1, 2)", vec![0, 5], &["shape (1, 2)", "one axis"]);
}

#[test]
fn bad_axes_are_named() {
    let files = Files::new();
    let path = cube(&files, "|u1", false);
    let path = path.to_str().unwrap();
    let check = |axes: &[&str], words: &[&str]| {
        fails([&["reduce", "--op", "sum", path], axes].concat(), 2, words);
    };
    check(&["--axis", "3"], &["--axis 3", "3 axes", "(2, 2, 3)"]);
    check(&["--axis", "-4"], &["--axis -4", "3 axes"]);
    check(&["--axis", "-9223372036854775808"], &["--axis -9223372036854775808"]);
    check(&["--axis", "1", "--axis", "-2"], &["--axis -2", "axis 1 is named twice"]);
    check(&["--axis", "x"], &["--axis", "x"]);
    check(&["--axis", "0", "--offsets", path], &["--axis", "--offsets"]);
    check(&["--out", "o.npy"], &["--out", "--axis or --offsets"]);
    let sum = ["reduce", "--op", "sum,min", path, "--axis", "0", "--out", "o.npy"];
    fails(sum, 2, &["--out", "one operator", "names 2"]);
}

/// What a result file holds.
fn written(path: &Path) -> (String, Vec<u8>) {
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert_eq!((start % 64, bytes[start - 1]), (0, b'\n'));
    (String::from_utf8(bytes[10..start].to_vec()).unwrap().trim_end().to_string(), bytes[start..].to_vec())
}

#[test]
fn results_are_written_with_their_type() {
    let files = Files::new();
    let out = files.0.path().join("out.npy");
    let check = |input: Npy, op: &str, options: &[&str], descr: &str, shape: &str, body: Vec<u8>| {
        let path = files.write("a.npy", input.bytes());
        let args = [
            "reduce",
            "--backend",
            "cpu",
            "--op",
            op,
            path.to_str().unwrap(),
            "--out",
            out.to_str().unwrap(),
        ];
        let printed = succeeds([&args[..], options].concat());
        assert!(printed.contains("shape ") && printed.contains("out.npy"), "{printed}");
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        assert_eq!(written(&out), (header, body), "{op}");
    };
    let ints = || Npy::new("<i2", "(2, 3)", le!(i16; 3, -1, 2, 7, 7, -9));
    let rows = &["--axis", "1"];
    check(ints(), "sum", rows, "<i8", "(2,)", le!(i64; 4, 5));
    check(ints(), "min", rows, "<i2", "(2,)", le!(i16; -1, -9));
    check(ints(), "minmax", &["--axis", "0"], "<i2", "(3, 2)", le!(i16; 3, 7, -1, 7, -9, 2));
    check(ints(), "argmax", rows, "<i8", "(2,)", le!(i64; 0, 0));
    check(ints(), "mean", &["--axis", "0", "--axis", "1"], "<f8", "()", le!(f64; 1.5));
    check(ints(), "linf", rows, "<u2", "(2,)", le!(u16; 3, 9));
    check(ints(), "all", rows, "|b1", "(2,)", vec![1, 1]);
    let f32s = || Npy::new(">f4", "(2, 2)", be!(f32; 1.5, 2.0, f32::NAN, -0.0));
    check(f32s(), "sum", rows, "<f4", "(2,)", le!(f32; 3.5, f32::NAN));
    check(f32s(), "max", &["--axis", "1", "--nan", "ignore"], "<f4", "(2,)", le!(f32; 2.0, -0.0));
    let nothing = || Npy::new("<f4", "(2, 0)", []);
    check(nothing(), "max", rows, "<f4", "(2,)", le!(f32; f32::NEG_INFINITY, f32::NEG_INFINITY));
    check(nothing(), "argmin", rows, "<i8", "(2,)", le!(i64; -1, -1));
    check(nothing(), "sum", &["--axis", "0"], "<f4", "(0,)", vec![]);
    let c8 = Npy::new("<c8", "(1, 2)", le!(f32; 1.0, 2.0, 3.0, 5.0));
    check(c8, "sum", rows, "<c8", "(1,)", le!(f32; 4.0, 7.0));
    let bf16 = Npy::new("<V2", "(1, 2)", [0x80, 0x3f, 0x00, 0x40]);
    check(bf16, "sum", &["--axis", "1", "--dtype", "bf16"], "<V2", "(1,)", vec![0x40, 0x40]);
}

/// The file that is read may be the one that is written.
#[test]
fn results_may_replace_their_input() {
    let files = Files::new();
    let path = cube(&files, "<i8", false);
    let name = path.to_str().unwrap();
    let report = reduce(&path, "sum", &["--axis", "2", "--out", name]);
    assert_eq!(
        (&report["shape"], &report["out"], &report["results"]),
        (&json!([2, 2]), &json!(name), &Value::Null)
    );
    assert_eq!(written(&path).1, le!(i64; 3, 12, 21, 30));
    let nowhere = files.0.path().join("missing").join("o.npy");
    let args = ["reduce", "--op", "sum", "--axis", "0", name, "--out", nowhere.to_str().unwrap()];
    fails(args, 1, &["o.npy", "cannot be written"]);
    assert_eq!(std::fs::read_dir(files.0.path()).unwrap().count(), 1);
}

#[test]
fn nothing_along_an_empty_axis() {
    let files = Files::new();
    let path = files.write("a.npy", Npy::new("<f4", "(2, 0, 3)", []).bytes());
    let expected = json!({"sum": vec![0.0; 6], "max": vec![Value::Null; 6], "argmin": vec![Value::Null; 6]});
    assert_eq!(along(&path, "sum,max,argmin", &["--axis", "1"]), (json!([2, 3]), expected));
    assert_eq!(along(&path, "sum", &["--axis", "0"]), (json!([0, 3]), json!({"sum": []})));
}

#[test]
fn tables_leave_out_the_middle() {
    let files = Files::new();
    let body: Vec<u8> = (0..200).collect();
    let path = files.write("a.npy", Npy::new("|u1", "(20, 10, 1)", body).bytes());
    let table = |axis: &str| {
        succeeds(["reduce", "--backend", "cpu", "--op", "sum,argmax", path.to_str().unwrap(), "--axis", axis])
    };
    let long = table("2");
    assert!(long.contains("\n... 160 more\n"), "{long}");
    let line = |table: &str, start: &str| {
        table
            .lines()
            .find(|line| line.trim_start().starts_with(start))
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    assert_eq!(line(&long, "1,9 ").as_deref(), Some("1,9 19 19 at 0"));
    assert_eq!(line(&long, "18,0 ").as_deref(), Some("18,0 180 180 at 0"));
    assert_eq!((line(&long, "2,0 "), line(&long, "17,9 ")), (None, None));
    let short = table("0");
    assert!(!short.contains("more"), "{short}");
    assert_eq!(line(&short, "9,0 ").as_deref(), Some("9,0 2080 199 at 19"));
}

#[test]
fn a_column_of_text_has_one_axis() {
    let files = Files::new();
    let path = files.write("a.csv", "x\n1\n2\n3\n");
    assert_eq!(along(&path, "sum", &["--axis", "0"]), (json!([]), json!({"sum": [6]})));
    let offsets = files.write("o.csv", "at\n0\n1\n3\n");
    let found = along(&path, "sum", &["--offsets", offsets.to_str().unwrap()]);
    assert_eq!(found, (json!([2]), json!({"sum": [1, 5]})));
}
