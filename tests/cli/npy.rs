//! `.npy` files: what is read, in every layout, and what is refused.

use serde_json::json;

use super::{ALL, Files, Npy, be, fails, le, reduce};

#[test]
fn every_type_in_both_byte_orders() {
    let files = Files::new();
    let cases = [
        ("i1", "int8", le!(i8; -7, 3, 5), be!(i8; -7, 3, 5), json!([1, -105, -7, 5])),
        ("u1", "uint8", le!(u8; 7, 3, 5), be!(u8; 7, 3, 5), json!([15, 105, 3, 7])),
        ("i2", "int16", le!(i16; -7, 3, 500), be!(i16; -7, 3, 500), json!([496, -10500, -7, 500])),
        ("u2", "uint16", le!(u16; 7, 3, 500), be!(u16; 7, 3, 500), json!([510, 10500, 3, 500])),
        (
            "f2",
            "float16",
            // -7, 3, 0.5
            le!(u16; 0xc700, 0x4200, 0x3800),
            be!(u16; 0xc700, 0x4200, 0x3800),
            json!([-3.5, -10.5, -7.0, 3.0]),
        ),
        ("i4", "int32", le!(i32; -7, 3, 5), be!(i32; -7, 3, 5), json!([1, -105, -7, 5])),
        ("u4", "uint32", le!(u32; 7, 3, 5), be!(u32; 7, 3, 5), json!([15, 105, 3, 7])),
        ("i8", "int64", le!(i64; -7, 3, 5), be!(i64; -7, 3, 5), json!([1, -105, -7, 5])),
        ("u8", "uint64", le!(u64; 7, 3, 5), be!(u64; 7, 3, 5), json!([15, 105, 3, 7])),
        (
            "f4",
            "float32",
            le!(f32; -7.0, 3.0, 0.5),
            be!(f32; -7.0, 3.0, 0.5),
            json!([-3.5, -10.5, -7.0, 3.0]),
        ),
        (
            "f8",
            "float64",
            le!(f64; -7.0, 3.0, 0.5),
            be!(f64; -7.0, 3.0, 0.5),
            json!([-3.5, -10.5, -7.0, 3.0]),
        ),
    ];
    for (code, dtype, little, big, expected) in cases {
        for (sign, body) in [("<", &little), (">", &big)] {
            let path = files.write("a.npy", Npy::new(&format!("{sign}{code}"), "(3,)", &body[..]).bytes());
            let found = reduce(&path, ALL, &[]);
            assert_eq!(found["dtype"], json!(dtype));
            assert_eq!(found["n"], json!(3));
            let results = &found["results"];
            let values = json!([results["sum"], results["product"], results["min"], results["max"]]);
            assert_eq!(values, expected, "{sign}{code}");
        }
    }
}

#[test]
fn native_order_without_a_sign_or_by_equals() {
    let files = Files::new();
    let body: Vec<u8> = [1.5f64, 2.0].iter().flat_map(|value| value.to_ne_bytes()).collect();
    for descr in ["f8", "=f8", "|f8"] {
        let path = files.write("a.npy", Npy::new(descr, "(2,)", &body[..]).bytes());
        assert_eq!(reduce(&path, "sum", &[])["results"]["sum"], json!(3.5));
    }
}

/// Header lengths that leave the elements unaligned force the converting path, the others the mapped one.
#[test]
fn every_version_at_every_alignment() {
    let files = Files::new();
    for version in [1, 2, 3] {
        for align in [1, 2, 4, 8, 16, 64] {
            for slack in 0..8 {
                let body = le!(i64; 1 << 40, -5, 9);
                let shape = format!("(3,{})", " ".repeat(slack));
                let npy = Npy { version, align, ..Npy::new("<i8", &shape, body) };
                let path = files.write("a.npy", npy.bytes());
                let results = &reduce(&path, "sum,min,max", &[])["results"];
                assert_eq!(results, &json!({"sum": (1i64 << 40) + 4, "min": -5, "max": 1i64 << 40}));
            }
        }
    }
}

#[test]
fn any_number_of_dimensions_in_either_order() {
    let files = Files::new();
    let body: Vec<u8> = (1..=12i32).flat_map(i32::to_le_bytes).collect();
    for order in ["True", "False"] {
        for shape in [
            "(12,)",
            "(3, 4)",
            "(2, 3, 2)",
            "(1, 12, 1, 1)",
            "(2, 1, 2, 1, 3)",
            "(12L,)",
            "( 3 ,4 )",
            "(3,4,)",
        ] {
            let path = files.write("a.npy", Npy { order, ..Npy::new("<i4", shape, &body[..]) }.bytes());
            let found = reduce(&path, ALL, &[]);
            assert_eq!(found["n"], json!(12), "{shape}");
            assert_eq!(found["results"], json!({"sum": 78, "product": 479001600, "min": 1, "max": 12}));
        }
    }
}

#[test]
fn no_dimension_is_one_element() {
    let files = Files::new();
    let path = files.write("a.npy", Npy::new("<f8", "()", le!(f64; 2.25)).bytes());
    let found = reduce(&path, ALL, &[]);
    assert_eq!(found["n"], json!(1));
    assert_eq!(found["results"], json!({"sum": 2.25, "product": 2.25, "min": 2.25, "max": 2.25}));
}

#[test]
fn nothing_has_a_sum_and_a_product() {
    let files = Files::new();
    for shape in ["(0,)", "(3, 0)", "(0, 5, 18446744073709551615)", "(18446744073709551615, 2, 0)"] {
        let path = files.write("a.npy", Npy::new("<i4", shape, []).bytes());
        let found = reduce(&path, ALL, &[]);
        assert_eq!(found["n"], json!(0));
        assert_eq!(found["results"], json!({"sum": 0, "product": 1, "min": null, "max": null}), "{shape}");
        let path = files.write("a.npy", Npy::new(">f4", shape, []).bytes());
        for nan in ["propagate", "ignore"] {
            let results = &reduce(&path, ALL, &["--nan", nan])["results"];
            assert_eq!(results, &json!({"sum": 0.0, "product": 1.0, "min": null, "max": null}), "{shape}");
        }
    }
}

/// `np.save` of `np.asfortranarray(np.array([[1, -2], [3, 4]], dtype=">i4"))`, by numpy 2.4.
fn by_numpy_fortran_big() -> Vec<u8> {
    [
        b"\x93NUMPY\x01\x00v\x00{'descr': '>i4', 'fortran_order': True, 'shape': (2, 2), }".as_slice(),
        &[b' '; 59],
        b"\n\x00\x00\x00\x01\x00\x00\x00\x03\xff\xff\xff\xfe\x00\x00\x00\x04",
    ]
    .concat()
}

/// `np.lib.format.write_array` of `np.array(0.1, dtype="f4")` in version (3, 0), by numpy 2.4.
fn by_numpy_scalar_version_3() -> Vec<u8> {
    [
        b"\x93NUMPY\x03\x00t\x00\x00\x00{'descr': '<f4', 'fortran_order': False, 'shape': (), }".as_slice(),
        &[b' '; 60],
        b"\n\xcd\xcc\xcc=",
    ]
    .concat()
}

#[test]
fn bytes_that_numpy_wrote() {
    let files = Files::new();
    let path = files.write("a.npy", by_numpy_fortran_big());
    let found = reduce(&path, ALL, &[]);
    assert_eq!((&found["n"], &found["dtype"]), (&json!(4), &json!("int32")));
    assert_eq!(found["results"], json!({"sum": 6, "product": -24, "min": -2, "max": 4}));
    let path = files.write("a.npy", by_numpy_scalar_version_3());
    assert_eq!(reduce(&path, "sum", &[])["results"], json!({"sum": 0.1}));
}

#[test]
fn the_name_does_not_matter_if_the_signature_is_there() {
    let files = Files::new();
    for name in ["array", "array.bin", "ARRAY.NPY", "table.csv"] {
        let path = files.write(name, Npy::new("<i4", "(2,)", le!(i32; 1, 2)).bytes());
        assert_eq!(reduce(&path, "max", &[])["results"], json!({"max": 2}));
    }
}

/// Reducing that file must fail with code 1, naming the file and the words.
#[track_caller]
fn refuses(files: &Files, bytes: &[u8], words: &[&str]) {
    let path = files.write("bad.npy", bytes);
    let mut all = vec!["bad.npy: "];
    all.extend(words);
    fails(["reduce", "--op", "sum", path.to_str().unwrap()], 1, &all);
}

#[test]
fn unsupported_types_are_named() {
    let files = Files::new();
    let cases = [
        ("'<f16'", "longdouble"),
        ("'<c32'", "clongdouble"),
        ("'|S5'", "bytes"),
        ("'<U5'", "str"),
        ("'<M8[ns]'", "datetime64"),
        ("'<m8'", "timedelta64"),
        ("'|V3'", "void"),
        ("'|V22'", "void"),
        ("'|O'", "object"),
        ("'<q4'", "<q4"),
        ("'<b2'", "<b2"),
        ("''", "\"\""),
        ("'<'", "\"<\""),
        ("[('x', '<f8'), ('y', '<f8', (2, 3))]", "structured"),
        ("[('[', [('(', '<i4')])]", "structured"),
        ("('<f8', (2,))", "structured"),
    ];
    let known = "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, \
                 complex64, complex128";
    for (descr, name) in cases {
        let npy = Npy { descr: descr.to_string(), ..Npy::new("", "(2,)", [0; 16]) };
        refuses(&files, &npy.bytes(), &["not supported", name, known]);
    }
}

/// numpy has no bfloat16; its extensions save two bytes without a type.
#[test]
fn bytes_without_a_type_need_one() {
    let files = Files::new();
    // 1, -3.5, 0.15625
    let (little, big) = (le!(u16; 0x3f80, 0xc060, 0x3e20), be!(u16; 0x3f80, 0xc060, 0x3e20));
    for (descr, body) in [("<V2", &little), ("|V2", &little), ("V2", &little), (">V2", &big)] {
        let npy = Npy::new(descr, "(3,)", &body[..]);
        let path = files.write("a.npy", npy.bytes());
        for name in ["bf16", "bfloat16"] {
            let found = reduce(&path, ALL, &["--dtype", name]);
            assert_eq!(found["dtype"], json!("bfloat16"));
            let expected = json!({"sum": -2.34, "product": -0.547, "min": -3.5, "max": 1.0});
            assert_eq!(found["results"], expected, "{descr}");
        }
        refuses(&files, &npy.bytes(), &["2 bytes", &format!("\"{descr}\""), "--dtype bf16"]);
    }
    let path = files.write("a.npy", Npy::new("|V2", "(3,)", &little[..]).bytes());
    assert_eq!(reduce(&path, "max", &["--dtype", "uint16"])["results"]["max"], json!(0xc060));
    let path = files.write("a.npy", Npy::new("|V16", "(1,)", le!(f64; 1.0, -2.0)).bytes());
    assert_eq!(reduce(&path, "sum", &["--dtype", "complex128"])["results"]["sum"], json!([1.0, -2.0]));
    let path = path.to_str().unwrap();
    let words = ["a.npy: ", "16 bytes", "\"|V16\"", "float32, as --dtype says, takes 4"];
    fails(["reduce", "--op", "sum", "--dtype", "f32", path], 1, &words);
}

/// Elsewhere `--dtype` may only say what the file says.
#[test]
fn a_type_that_is_not_the_files_is_refused() {
    let files = Files::new();
    let path = files.write("a.npy", Npy::new("<f4", "(1,)", le!(f32; 0.5)).bytes());
    for name in ["float32", "f32"] {
        assert_eq!(reduce(&path, "sum", &["--dtype", name])["results"]["sum"], json!(0.5));
    }
    let path = path.to_str().unwrap();
    let args = |name| ["reduce", "--op", "sum", "--dtype", name, path];
    fails(args("int32"), 1, &["a.npy: ", "float32", "--dtype says int32"]);
    fails(args("bf16"), 1, &["a.npy: ", "float32", "--dtype says bfloat16"]);
    fails(args("i8"), 2, &["i8", "--dtype", "known are bool, int8", "complex128"]);
    let path = files.write("a.csv", "x\n1\n");
    fails(
        ["reduce", "--op", "sum", "--dtype", "int64", path.to_str().unwrap()],
        1,
        &["a.csv", "--dtype is for .npy"],
    );
}

/// Each part of a complex number has its own byte order and need not be aligned to the whole.
#[test]
fn complex_numbers_of_both_byte_orders() {
    let files = Files::new();
    for align in [1, 4, 8, 64] {
        for (descr, dtype, body) in [
            ("<c8", "complex64", le!(f32; 1.5, -2.0, 0.25, 8.0)),
            (">c8", "complex64", be!(f32; 1.5, -2.0, 0.25, 8.0)),
            ("<c16", "complex128", le!(f64; 1.5, -2.0, 0.25, 8.0)),
            (">c16", "complex128", be!(f64; 1.5, -2.0, 0.25, 8.0)),
        ] {
            let path = files.write("a.npy", Npy { align, ..Npy::new(descr, "(2,)", body) }.bytes());
            let found = reduce(&path, "sum,product", &[]);
            assert_eq!((&found["n"], &found["dtype"]), (&json!(2), &json!(dtype)));
            assert_eq!(found["results"], json!({"sum": [1.75, 6.0], "product": [16.375, 11.5]}), "{descr}");
        }
    }
}

#[test]
fn missing_bytes_are_counted() {
    let files = Files::new();
    let whole = Npy::new("<f8", "(10, 20)", vec![0; 1600]).bytes();
    let numbers = ["truncated", "(10, 20)", "float64", "1600 bytes", "128 bytes"];
    for left in [1599, 1592, 1000, 1, 0] {
        let found = format!("has {left} there");
        refuses(&files, &whole[..128 + left], &[&numbers[..], &[&found]].concat());
    }
    refuses(&files, &whole[..127], &["truncated", "128 bytes", "has 127"]);
    refuses(&files, &whole[..11], &["truncated", "128 bytes", "has 11"]);
    for cut in 6..10 {
        refuses(&files, &whole[..cut], &["truncated", "10 bytes", &format!("has {cut}")]);
    }
    let version_2 = Npy { version: 2, ..Npy::new("<f8", "(1,)", vec![0; 8]) }.bytes();
    refuses(&files, &version_2[..11], &["truncated", "12 bytes", "has 11"]);
    refuses(&files, b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}", &["truncated", "4294967307 bytes", "has 14"]);
}

#[test]
fn extra_bytes_are_counted() {
    let files = Files::new();
    refuses(&files, &Npy::new("<i4", "(3,)", [0; 13]).bytes(), &["(3,)", "12 bytes", "has 13 there"]);
    refuses(&files, &Npy::new("<i4", "(0,)", [0; 1]).bytes(), &["(0,)", "0 bytes", "has 1 there"]);
    refuses(&files, &Npy::new("<f4", "()", [0; 8]).bytes(), &["shape ()", "4 bytes", "has 8 there"]);
}

#[test]
fn shapes_that_overflow_are_refused() {
    let files = Files::new();
    for shape in [
        "(4294967296, 4294967296)",
        "(18446744073709551615, 18446744073709551615, 3)",
        "(2305843009213693952,)",
    ] {
        refuses(&files, &Npy::new("<f8", shape, [0; 8]).bytes(), &[shape, "float64", "64 bits"]);
    }
    // One short of overflow: an honest count of bytes that are not there.
    let bytes = Npy::new("<f8", "(2305843009213693951,)", [0; 8]).bytes();
    refuses(&files, &bytes, &["truncated", "18446744073709551608 bytes", "has 8 there"]);
}

#[test]
fn headers_that_describe_no_array_are_refused() {
    let files = Files::new();
    let npy = Npy::new("", "", [0; 8]);
    let (descr, order, shape) = ("'descr': '<f8'", "'fortran_order': False", "'shape': (1,)");
    let cases = [
        (String::new(), "dictionary"),
        ("[1, 2]".to_string(), "dictionary"),
        ("{".to_string(), "key"),
        ("{}".to_string(), "'descr' is missing"),
        (format!("{{{order}, {shape}}}"), "'descr' is missing"),
        (format!("{{{descr}, {shape}}}"), "'fortran_order' is missing"),
        (format!("{{{descr}, {order}}}"), "'shape' is missing"),
        (format!("{{{descr}, {order}, {shape}"), "end"),
        (format!("{{{descr}, {order}, {shape}}} 5"), "text follows"),
        (format!("{{{descr} {order}, {shape}}}"), "comma"),
        (format!("{{{descr}, 'fortran_order': 1, {shape}}}"), "True nor False"),
        (format!("{{{descr}, {order}, 'shape': 5}}"), "tuple"),
        (format!("{{{descr}, {order}, 'shape': (5)}}"), "tuple"),
        (format!("{{{descr}, {order}, 'shape': (-5,)}}"), "tuple"),
        (format!("{{{descr}, {order}, 'shape': (1.5,)}}"), "tuple"),
        (format!("{{{descr}, {order}, 'shape': (,)}}"), "tuple"),
        (format!("{{{descr}, {order}, 'shape': (1"), "tuple"),
        (format!("{{{descr}, {order}, 'shape': (18446744073709551616,)}}"), "tuple"),
        (format!("{{{descr}, {order}, {shape}, 'more': 1}}"), "key"),
        (format!("{{{descr}, {order}, 5: 1}}"), "key"),
        (format!("{{'descr' '<f8', {order}, {shape}}}"), "colon"),
        (format!("{{'descr': 5, {order}, {shape}}}"), "'descr'"),
        ("{'descr': '<f8, True".to_string(), "string does not end"),
        ("{'descr\\".to_string(), "string does not end"),
        (format!("{{'descr': [('x', '<f8'), {order}, {shape}}}"), "does not end"),
        (format!("{{'descr': {}", "[(".repeat(30_000)), "does not end"),
    ];
    for (header, word) in cases {
        refuses(&files, &npy.with_header(&header), &["header", word, "at byte"]);
    }
    let mut bytes = Npy::new("<f8", "(1,)", [0; 8]).bytes();
    bytes[20..30].fill(0xff);
    refuses(&files, &bytes, &["header"]);
}

#[test]
fn foreign_files_are_refused() {
    let files = Files::new();
    refuses(&files, b"", &["is empty"]);
    refuses(&files, b"\x93NUMP", &["signature"]);
    refuses(&files, b"\x89PNG\r\n\x1a\n.............", &["signature"]);
    refuses(&files, b"date,co2\n1,2\n", &["signature"]);
    refuses(&files, &[0; 4096], &["signature"]);
    refuses(&files, b"PK\x03\x04............", &["zip", ".npz"]);
    for (major, minor) in [(0, 0), (4, 0), (1, 1), (255, 255)] {
        let mut bytes = Npy::new("<f8", "(1,)", [0; 8]).bytes();
        bytes[6..8].copy_from_slice(&[major, minor]);
        refuses(&files, &bytes, &[&format!("version {major}.{minor}"), "1.0, 2.0 and 3.0"]);
    }
}

#[test]
fn columns_are_for_csv() {
    let files = Files::new();
    let path = files.write("a.npy", Npy::new("<i4", "(2,)", le!(i32; 1, 2)).bytes());
    let path = path.to_str().unwrap();
    fails(["reduce", "--op", "sum", "--column", "x", path], 1, &["a.npy", "--column", ".csv"]);
}
