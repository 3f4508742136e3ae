//! The dot product: pairs of elements of two files.

use half::{bf16, f16};
use serde_json::{Value, json};

use super::{Files, Npy, column, fails, le, number, reduce, succeeds};

fn dot(left: &std::path::Path, right: &std::path::Path, options: &[&str]) -> Value {
    let options = [&["--with", right.to_str().unwrap()], options].concat();
    reduce(left, "dot", &options)["results"]["dot"].clone()
}

/// Integers, exactly, wrapping in 64 bits.
#[test]
fn integers() {
    let n = 4097;
    let (left, right) = (|i: i64| (i * 37) % 101 - 50, |i: i64| (i * 53) % 97 - 48);
    let expected: i64 = (0..n).map(|i| left(i) * right(i)).sum();
    let unsigned: i64 = (0..n).map(|i| (left(i) * right(i)).abs()).sum();
    let files = Files::new();
    for (size, sign) in [1, 2, 4, 8].into_iter().flat_map(|size| [(size, '<'), (size, '>')]) {
        for (kind, expected) in [("i", expected), ("u", unsigned)] {
            let body = |item: &dyn Fn(i64) -> i64| -> Vec<u8> {
                (0..n)
                    .flat_map(|i| {
                        let item = if kind == "u" { item(i).abs() } else { item(i) };
                        let mut bytes = item.to_le_bytes()[..size].to_vec();
                        if sign == '>' {
                            bytes.reverse();
                        }
                        bytes
                    })
                    .collect()
            };
            let (descr, shape) = (format!("{sign}{kind}{size}"), format!("({n},)"));
            let a = files.write("a.npy", Npy::new(&descr, &shape, body(&left)).bytes());
            let b = files.write("b.npy", Npy::new(&descr, &shape, body(&right)).bytes());
            assert_eq!(dot(&a, &b, &[]), json!(expected), "{descr}");
        }
    }
    let a = column(&files, "a.npy", "|i1", &[[100], [0xff]]);
    let b = column(&files, "b.npy", "|i1", &[[100], [5]]);
    assert_eq!(dot(&a, &b, &[]), json!(9995));
    let a = column(&files, "a.npy", "<u8", &[u64::MAX, 3].map(u64::to_le_bytes));
    let b = column(&files, "b.npy", "<u8", &[2, 1].map(u64::to_le_bytes));
    assert_eq!(dot(&a, &b, &[]), json!(1));
}

/// Floats of every width; a NaN in either array takes its pair out.
#[test]
fn floats() {
    let files = Files::new();
    let (left, right) = ([1.5, f64::NAN, -2.0, 8.0], [4.0, 1.0, f64::NAN, 0.25]);
    let files = &files;
    let check = |a: std::path::PathBuf, b: std::path::PathBuf, options: &[&str]| {
        assert_eq!(dot(&a, &b, options), json!("NaN"));
        assert_eq!(dot(&a, &b, &[options, &["--nan", "ignore"]].concat()), json!(8.0));
    };
    let f64s = |name: &str, items: [f64; 4]| column(files, name, ">f8", &items.map(f64::to_be_bytes));
    check(f64s("a.npy", left), f64s("b.npy", right), &[]);
    let f32s =
        |name: &str, items: [f64; 4]| column(files, name, "<f4", &items.map(|x| (x as f32).to_le_bytes()));
    check(f32s("a.npy", left), f32s("b.npy", right), &[]);
    let f16s = |name: &str, items: [f64; 4]| {
        column(files, name, "<f2", &items.map(|x| f16::from_f64(x).to_le_bytes()))
    };
    check(f16s("a.npy", left), f16s("b.npy", right), &[]);
    let bf16s = |name: &str, items: [f64; 4]| {
        column(files, name, "<V2", &items.map(|x| bf16::from_f64(x).to_le_bytes()))
    };
    check(bf16s("a.npy", left), bf16s("b.npy", right), &["--dtype", "bf16"]);
}

/// What a sum of rounded products loses.
#[test]
fn products_of_floats_do_not_round() {
    let files = Files::new();
    // (1 + e)(1 - e) - 1 = -e^2.
    let e = 2f64.powi(-30);
    let a = column(&files, "a.npy", "<f8", &[1.0 + e, -1.0].map(f64::to_le_bytes));
    let b = column(&files, "b.npy", "<f8", &[1.0 - e, 1.0].map(f64::to_le_bytes));
    assert_eq!(number(&dot(&a, &b, &[])), -e * e);
}

/// Not conjugated.
#[test]
fn complex() {
    let files = Files::new();
    // (1 + 2i)(3 + 4i) + i i
    let (left, right) = ([1.0, 2.0, 0.0, 1.0], [3.0, 4.0, 0.0, 1.0]);
    let wide = |name: &str, items: [f64; 4]| {
        files.write(name, Npy::new("<c16", "(2,)", items.map(f64::to_le_bytes).concat()).bytes())
    };
    assert_eq!(dot(&wide("a.npy", left), &wide("b.npy", right), &[]), json!([-6.0, 10.0]));
    let narrow = |name: &str, items: [f64; 4]| {
        files.write(name, Npy::new(">c8", "(2,)", items.map(|x| (x as f32).to_be_bytes()).concat()).bytes())
    };
    assert_eq!(dot(&narrow("a.npy", left), &narrow("b.npy", right), &[]), json!([-6.0, 10.0]));
}

/// Elements at the same logical position meet, however each file stores them.
#[test]
fn pairs_are_logical() {
    let files = Files::new();
    let write = |name: &str, order, shape: &str, body: [u8; 6]| {
        files.write(name, Npy { order, ..Npy::new("|u1", shape, body) }.bytes())
    };
    // [[1, 2, 3], [4, 5, 6]] both ways, and [[1, 2], [3, 4], [5, 6]] both ways.
    let expected = json!(1 + 4 + 9 + 16 + 25 + 36);
    let c = write("c.npy", "False", "(2, 3)", [1, 2, 3, 4, 5, 6]);
    let fortran = write("f.npy", "True", "(2, 3)", [1, 4, 2, 5, 3, 6]);
    let tall = write("tall.npy", "True", "(3, 2)", [1, 3, 5, 2, 4, 6]);
    let flat = write("flat.npy", "False", "(6,)", [1, 2, 3, 4, 5, 6]);
    for left in [&c, &fortran, &tall, &flat] {
        for right in [&c, &fortran, &tall, &flat] {
            assert_eq!(dot(left, right, &[]), expected, "{left:?} {right:?}");
        }
    }
}

#[test]
fn beside_other_operators_and_in_columns() {
    let files = Files::new();
    let a = files.write("a.csv", "x,y\n1,7\n2,7\n3,7\n");
    let b = files.write("b.csv", "y,x\n0,10\n0,20\n0,30\n");
    let found = reduce(&a, "sum,dot,max", &["--with", b.to_str().unwrap(), "--column", "x"]);
    assert_eq!(found["results"], json!({"sum": 6, "dot": 140, "max": 3}));
    let empty = files.write("empty.npy", Npy::new("<f4", "(0,)", []).bytes());
    assert_eq!(dot(&empty, &empty, &[]), json!(0.0));
    let stdout = succeeds([
        "reduce",
        "--op",
        "dot",
        "--with",
        a.to_str().unwrap(),
        "--column",
        "x",
        a.to_str().unwrap(),
    ]);
    assert!(stdout.contains("dot      14\n"), "{stdout}");
}

#[test]
fn files_that_do_not_go_together() {
    let files = Files::new();
    let a = files.write("a.npy", Npy::new("<i4", "(2,)", le!(i32; 1, 2)).bytes());
    let short = files.write("short.npy", Npy::new("<i4", "(1,)", le!(i32; 1)).bytes());
    let wide = files.write("wide.npy", Npy::new("<i8", "(2,)", le!(i64; 1, 2)).bytes());
    let [a, short, wide] = [&a, &short, &wide].map(|path| path.to_str().unwrap());
    fails(
        ["reduce", "--op", "dot", a, "--with", short],
        1,
        &["short.npy: holds 1 elements, not 2 as ", "a.npy does"],
    );
    fails(
        ["reduce", "--op", "dot", a, "--with", wide],
        1,
        &["wide.npy: holds int64 elements, not int32 as "],
    );
    fails(["reduce", "--op", "dot", a, "--with", "missing.npy"], 1, &["missing.npy: No such file"]);
    fails(["reduce", "--op", "sum,dot", a], 2, &["--op dot takes two arrays", "--with"]);
    fails(["reduce", "--op", "sum", a, "--with", a], 2, &["--with is for --op dot"]);
    let bits = files.write("bits.npy", Npy::new("|b1", "(1,)", [1]).bytes());
    let bits = bits.to_str().unwrap();
    fails(
        ["reduce", "--op", "dot", bits, "--with", bits],
        2,
        &["--op dot does not take elements of type bool"],
    );
}
