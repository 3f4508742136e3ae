//! `.csv` files: which cells a column has, what type it takes, and what is refused.

use serde_json::json;

use super::{ALL, Files, fails, reduce};

#[test]
fn a_column_of_integers_is_exact() {
    let files = Files::new();
    let path = files.write("a.csv", "id,x\n1,9007199254740993\n2,9007199254740992\n3,-4\n");
    let found = reduce(&path, "sum,min,max", &["--column", "x"]);
    assert_eq!((&found["n"], &found["dtype"]), (&json!(3), &json!("int64")));
    assert_eq!(found["results"], json!({"sum": 18014398509481981u64, "min": -4, "max": 9007199254740993u64}));
}

#[test]
fn one_other_cell_makes_floats() {
    let files = Files::new();
    let cases = [
        ("1\n2.5\n-4\n", json!(-0.5)),
        ("1\n2\n3e0\n", json!(6.0)),
        ("9223372036854775807\n1\n9223372036854775808\n", json!(18446744073709551616.0)),
        ("inf\n1\n", json!("inf")),
        ("-Infinity\n1\n", json!("-inf")),
        ("1\nnan\n", json!("NaN")),
        ("1\ninf\n-inf\n", json!("NaN")),
        (".5\n+2\n5.\n1E2\n", json!(107.5)),
    ];
    for (cells, sum) in cases {
        let path = files.write("a.csv", format!("x\n{cells}"));
        let found = reduce(&path, "sum", &[]);
        assert_eq!((&found["dtype"], &found["results"]["sum"]), (&json!("float64"), &sum), "{cells:?}");
    }
    let path = files.write("a.csv", "x\n0\n-0\n");
    let found = reduce(&path, "min", &[]);
    assert_eq!((&found["dtype"], &found["results"]["min"].to_string()[..]), (&json!("float64"), "-0.0"));
}

#[test]
fn an_empty_cell_is_nan() {
    let files = Files::new();
    let path = files.write("a.csv", "t,x,y\n1,2,a\n2,,b\n3,4,\n4,  ,d\n");
    let found = reduce(&path, ALL, &["--column", "x"]);
    assert_eq!((&found["n"], &found["dtype"]), (&json!(4), &json!("float64")));
    assert_eq!(found["results"], json!({"sum": "NaN", "product": "NaN", "min": "NaN", "max": "NaN"}));
    let found = reduce(&path, ALL, &["--column", "x", "--nan", "ignore"]);
    assert_eq!(found["n"], json!(4));
    assert_eq!(found["results"], json!({"sum": 6.0, "product": 8.0, "min": 2.0, "max": 4.0}));
    let path = files.write("a.csv", "x,y\n,1\n,2\n");
    let found = reduce(&path, ALL, &["--column", "x", "--nan", "ignore"]);
    assert_eq!(found["results"], json!({"sum": 0.0, "product": 1.0, "min": "NaN", "max": "NaN"}));
}

#[test]
fn a_header_alone_is_nothing() {
    let files = Files::new();
    for text in ["x,y\n", "x,y", "x,y\r\n\r\n"] {
        let path = files.write("a.csv", text);
        let found = reduce(&path, ALL, &["--column", "y"]);
        assert_eq!((&found["n"], &found["dtype"]), (&json!(0), &json!("float64")));
        assert_eq!(found["results"], json!({"sum": 0.0, "product": 1.0, "min": null, "max": null}));
    }
}

#[test]
fn quotes_byte_order_marks_and_line_ends() {
    let files = Files::new();
    let texts = [
        "x,y\n1,2\n3,4\n",
        "x,y\n1,2\n3,4",
        "x,y\r\n1,2\r\n3,4\r\n",
        "\u{feff}x,y\r\n1,2\r\n3,4",
        "\"x\",\"y\"\n\"1\",\"2\"\n\"3\",\"4\"\n",
        "\u{feff}\"x\",\"y\"\n1,2\n3,4\n",
        " x , y \n 1 , 2 \n 3\t,4\n",
        "x,y\n\n1,2\n\n\n3,4\n\n",
    ];
    for text in texts {
        let path = files.write("a.csv", text);
        let found = reduce(&path, "sum", &["--column", "x"]);
        assert_eq!((&found["n"], &found["results"]["sum"]), (&json!(2), &json!(4)), "{text:?}");
    }
    let path = files.write("a.csv", "\"a, \"\"b\"\"\nc\",x\n\"1\n2\",5\n3,6\n");
    assert_eq!(reduce(&path, "sum", &["--column", "x"])["results"]["sum"], json!(11));
    let path = files.write("a.CSV", "a;b\n7\n");
    assert_eq!(reduce(&path, "sum", &["--column", "a;b"])["results"]["sum"], json!(7));
}

#[test]
fn other_columns_may_hold_anything() {
    let files = Files::new();
    let path = files.write("a.csv", b"caf\xe9,x\n\xff\xfe,1\n\0,2\n");
    assert_eq!(reduce(&path, "sum", &["--column", "x"])["results"]["sum"], json!(3));
}

#[test]
fn the_only_column_needs_no_name() {
    let files = Files::new();
    let path = files.write("a.csv", "x\n5\n\"\"\n6\n");
    let found = reduce(&path, "sum", &["--nan", "ignore"]);
    assert_eq!((&found["n"], &found["results"]["sum"]), (&json!(3), &json!(11.0)));
}

#[track_caller]
fn refuses(bytes: &[u8], options: &[&str], words: &[&str]) {
    let files = Files::new();
    let path = files.write("bad.csv", bytes);
    let mut args = vec!["reduce", "--op", "sum", path.to_str().unwrap()];
    args.extend(options);
    let mut all = vec!["bad.csv: "];
    all.extend(words);
    fails(args, 1, &all);
}

#[test]
fn the_column_must_be_named_and_there() {
    let text = b"date,co2,\"odd\nname\"\n1,2,3\n";
    let names = "\"date\", \"co2\", \"odd\\nname\"";
    refuses(text, &[], &["3 columns", "--column", names]);
    refuses(text, &["--column", "CO2"], &["no column \"CO2\"", names]);
    refuses(text, &["--column", ""], &["no column \"\"", names]);
    let wide: Vec<String> = (0..100).map(|i| format!("c{i}")).collect();
    refuses(wide.join(",").as_bytes(), &["--column", "x"], &["\"c0\"", "\"c19\" and 80 more"]);
    refuses(b"a,b,a\n1,2,3\n", &["--column", "a"], &["2 columns named \"a\"", "1, 3"]);
    let long = "x".repeat(1000);
    refuses(long.as_bytes(), &["--column", "y"], &[&format!("\"{}\"...", &long[..40])]);
}

#[test]
fn ragged_rows_are_refused_with_their_line() {
    refuses(b"a,b\n1,2\n3\n", &["--column", "a"], &["line 3", "1 cells", "2"]);
    refuses(b"a,b\r\n1,2\r\n3,4,5\r\n", &["--column", "a"], &["line 3", "3 cells", "2"]);
    refuses(
        "\u{feff}a,b\r\n\r\n\r\n1,2\r\n\n3,4,5\r\n".as_bytes(),
        &["--column", "a"],
        &["line 6", "3 cells"],
    );
    refuses(b"\n\na,b\n1,2\n\n\n3", &["--column", "a"], &["line 7", "1 cells"]);
    refuses(b"a,b\n\"1\n1\",2\n3,4\n5\n", &["--column", "b"], &["line 5", "1 cells"]);
}

#[test]
fn cells_that_are_no_number_are_refused_with_their_line() {
    let cases: [(&[u8], &str); 8] = [
        (b"abc", "\"abc\""),
        (b"1,5", "\"1,5\""),
        (b"1 000", "\"1 000\""),
        (b"0x10", "\"0x10\""),
        (b"NA", "\"NA\""),
        (b"-", "\"-\""),
        (b"\xff", "\"\u{fffd}\""),
        (b"tab\there\nand on", "\"tab\\there\\nand on\""),
    ];
    for (cell, named) in cases {
        let text = [b"t,x\n1,1\n2,2.5\n3,\"".as_slice(), cell, b"\"\n"].concat();
        refuses(&text, &["--column", "x"], &["line 4", "column \"x\"", named, "not a number"]);
        let text = [b"t,x\r\n1,1\r\n\r\n3,\"".as_slice(), cell, b"\""].concat();
        refuses(&text, &["--column", "x"], &["line 4", "column \"x\"", named, "not a number"]);
    }
}

#[test]
fn files_without_a_header_are_refused() {
    refuses(b"", &["--column", "x"], &["empty"]);
    refuses(b"\n\n", &["--column", "x"], &["no header row"]);
    refuses(b"\x7fELF\x02\x01\x01\0\0\0", &["--column", "x"], &["no column \"x\""]);
}
