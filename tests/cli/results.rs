//! Values: exact integers, floats that read back, the spelling of what JSON lacks, and real data.

use proptest::prelude::*;
use serde_json::json;

use super::layout::{file, layout};
use super::{ALL, Files, Npy, le, number, reduce, succeeds};

/// The object's keys, and each of its values' kind.
#[test]
fn one_object_with_these_keys() {
    let files = Files::new();
    let path = files.write("a.npy", Npy::new("<i4", "(2,)", le!(i32; 1, 2)).bytes());
    let found = reduce(&path, "max,sum", &[]);
    let object = found.as_object().unwrap();
    let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["backend", "dtype", "elapsed_ms", "file", "n", "results"]);
    assert_eq!(object["file"], json!(path.to_str().unwrap()));
    assert_eq!(object["backend"], json!("cpu"));
    assert!(object["elapsed_ms"].as_f64().unwrap() >= 0.0);
    // Results keep the order asked for.
    let stdout =
        succeeds(["reduce", "--json", "--backend", "cpu", "--op", "max,sum", path.to_str().unwrap()]);
    assert!(stdout.contains(r#""results":{"max":2,"sum":3}"#), "{stdout}");
}

#[test]
fn a_table_for_people() {
    let files = Files::new();
    let path = files.write("a.npy", Npy::new("<f4", "(2,)", le!(f32; 0.1, f32::INFINITY)).bytes());
    let path = path.to_str().unwrap();
    let stdout = succeeds(["reduce", "--backend", "cpu", "--op", "sum,min", path]);
    let rows: Vec<Vec<&str>> = stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["file", path]);
    assert_eq!(rows[1], ["n", "2"]);
    assert_eq!(rows[2], ["dtype", "float32"]);
    assert_eq!(rows[3], ["backend", "cpu"]);
    assert_eq!((rows[4][0], rows[4][2]), ("elapsed", "ms"));
    assert!(rows[5].is_empty());
    assert_eq!(&rows[6..], [["sum", "inf"], ["min", "0.1"]]);
    let path = files.write("b.npy", Npy::new("<i4", "(0,)", []).bytes());
    let stdout = succeeds(["reduce", "--op", "min", path.to_str().unwrap()]);
    assert!(stdout.contains("min      none (no elements)\n"), "{stdout}");
    let path = files.write("c.npy", Npy::new("<i4", "(3,)", le!(i32; 5, -2, 9)).bytes());
    let stdout = succeeds(["reduce", "--op", "minmax,argmax,any", path.to_str().unwrap()]);
    for row in ["minmax   -2 to 9\n", "argmax   9 at 2\n", "any      true\n"] {
        assert!(stdout.contains(row), "{row:?} is not in {stdout}");
    }
}

#[test]
fn integers_widen_and_stay_exact() {
    let files = Files::new();
    let cases = [
        (
            "<i4",
            le!(i32; i32::MAX, i32::MAX, 1),
            json!({"sum": 4294967295u64, "product": 4611686014132420609u64}),
        ),
        (
            "<i4",
            le!(i32; i32::MIN, i32::MIN),
            json!({"sum": -4294967296i64, "product": 4611686018427387904u64}),
        ),
        (
            "<u4",
            le!(u32; u32::MAX, u32::MAX),
            json!({"sum": 8589934590u64, "product": 18446744065119617025u64}),
        ),
        ("<i8", le!(i64; i64::MAX), json!({"sum": i64::MAX, "product": i64::MAX})),
        ("<i8", le!(i64; i64::MIN), json!({"sum": i64::MIN, "product": i64::MIN})),
        ("<i8", le!(i64; i64::MAX, 1), json!({"sum": i64::MIN, "product": i64::MAX})),
        ("<u8", le!(u64; u64::MAX), json!({"sum": u64::MAX, "product": u64::MAX})),
        ("<u8", le!(u64; u64::MAX, 2), json!({"sum": 1, "product": u64::MAX - 1})),
    ];
    for (descr, body, expected) in cases {
        let size: usize = descr[2..].parse().unwrap();
        let path = files.write("a.npy", Npy::new(descr, &format!("({},)", body.len() / size), body).bytes());
        for nan in ["propagate", "ignore"] {
            assert_eq!(reduce(&path, "sum,product", &["--nan", nan])["results"], expected, "{descr}");
        }
    }
}

#[test]
fn what_json_lacks_is_spelled_out() {
    let files = Files::new();
    let cases = [
        (vec![f64::NAN], "propagate", json!({"sum": "NaN", "product": "NaN", "min": "NaN", "max": "NaN"})),
        (vec![f64::NAN], "ignore", json!({"sum": 0.0, "product": 1.0, "min": "NaN", "max": "NaN"})),
        (
            vec![-f64::NAN, 2.0],
            "propagate",
            json!({"sum": "NaN", "product": "NaN", "min": "NaN", "max": "NaN"}),
        ),
        (vec![-f64::NAN, 2.0], "ignore", json!({"sum": 2.0, "product": 2.0, "min": 2.0, "max": 2.0})),
        (
            vec![f64::INFINITY, 2.0],
            "ignore",
            json!({"sum": "inf", "product": "inf", "min": 2.0, "max": "inf"}),
        ),
        (
            vec![f64::NEG_INFINITY, 2.0],
            "ignore",
            json!({"sum": "-inf", "product": "-inf", "min": "-inf", "max": 2.0}),
        ),
        (
            vec![f64::NEG_INFINITY, f64::INFINITY],
            "ignore",
            json!({"sum": "NaN", "product": "-inf", "min": "-inf", "max": "inf"}),
        ),
        (
            vec![f64::MAX, f64::MAX],
            "propagate",
            json!({"sum": "inf", "product": "inf", "min": f64::MAX, "max": f64::MAX}),
        ),
    ];
    for (items, nan, expected) in cases {
        let wide: Vec<u8> = items.iter().flat_map(|item| item.to_le_bytes()).collect();
        let narrow: Vec<u8> = items.iter().flat_map(|&item| (item as f32).to_be_bytes()).collect();
        let shape = format!("({},)", items.len());
        let path = files.write("a.npy", Npy::new("<f8", &shape, wide).bytes());
        assert_eq!(reduce(&path, ALL, &["--nan", nan])["results"], expected, "{items:?}");
        if !items.contains(&f64::MAX) {
            let path = files.write("a.npy", Npy::new(">f4", &shape, narrow).bytes());
            assert_eq!(reduce(&path, ALL, &["--nan", nan])["results"], expected, "{items:?} as float32");
        }
    }
}

#[test]
fn zeros_keep_their_sign() {
    let files = Files::new();
    for (items, expected) in [
        ([-0.0, -0.0], r#"{"sum":-0.0,"product":0.0,"min":-0.0,"max":-0.0}"#),
        ([0.0, -0.0], r#"{"sum":0.0,"product":-0.0,"min":-0.0,"max":0.0}"#),
        ([-0.0, 0.0], r#"{"sum":0.0,"product":-0.0,"min":-0.0,"max":0.0}"#),
    ] {
        for descr in ["<f8", "<f4"] {
            let body: Vec<u8> = match descr {
                "<f8" => items.iter().flat_map(|item: &f64| item.to_le_bytes()).collect(),
                _ => items.iter().flat_map(|&item| (item as f32).to_le_bytes()).collect(),
            };
            let path = files.write("a.npy", Npy::new(descr, "(2,)", body).bytes());
            let stdout = succeeds(["reduce", "--json", "--op", ALL, path.to_str().unwrap()]);
            assert!(stdout.contains(expected), "{descr} {items:?}: {stdout}");
        }
    }
}

/// The one float32 whose shortest decimal, read as float64 and then rounded, is its neighbour.
#[test]
fn float32_survives_a_reader_of_float64() {
    let files = Files::new();
    for bits in [0x15ae_43fd, 0x95ae_43fd] {
        let value = f32::from_bits(bits);
        let shortest: f64 = value.to_string().parse().unwrap();
        assert_ne!((shortest as f32).to_bits(), bits);
        let path = files.write("a.npy", Npy::new("<f4", "()", value.to_le_bytes()).bytes());
        let found = number(&reduce(&path, "max", &[])["results"]["max"]);
        assert_eq!((found as f32).to_bits(), bits);
    }
}

/// The series itself, added up in tenths of a ppmv.
#[test]
fn the_co2_series() {
    const CSV: &str = include_str!("../../data/co2.csv");
    const NPY: &[u8] = include_bytes!("../../data/co2.npy");
    let (mut rows, mut tenths) = (0, Vec::new());
    for line in CSV.lines().skip(1) {
        rows += 1;
        let (_, cell) = line.split_once(',').unwrap();
        if !cell.is_empty() {
            let (whole, tenth) = cell.split_once('.').unwrap_or((cell, "0"));
            assert_eq!(tenth.len(), 1);
            tenths.push(whole.parse::<u64>().unwrap() * 10 + tenth.parse::<u64>().unwrap());
        }
    }
    assert_eq!((rows, tenths.len()), (2284, 2225));
    let decimal = |tenths: u64| tenths as f64 / 10.0;
    let expected = json!({
        "sum": decimal(tenths.iter().sum()),
        "min": decimal(*tenths.iter().min().unwrap()),
        "max": decimal(*tenths.iter().max().unwrap()),
    });
    let files = Files::new();
    let npy = files.write("co2.npy", NPY);
    let csv = files.write("co2.csv", CSV);
    for (path, options) in [(npy, vec![]), (csv, vec!["--column", "co2"])] {
        let found = reduce(&path, "sum,min,max", &[&options[..], &["--nan", "ignore"]].concat());
        assert_eq!((&found["n"], &found["dtype"]), (&json!(rows), &json!("float64")));
        assert_eq!(found["results"], expected);
        let results = &reduce(&path, "sum,min,max", &options)["results"];
        assert_eq!(results, &json!({"sum": "NaN", "min": "NaN", "max": "NaN"}));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Multiples of 2^-10 below 2^10: every sum is exact in f64, so the right f32 is that sum rounded once.
    #[test]
    fn float_sums_round_once(
        parts in prop::collection::vec(-(1i64 << 20)..(1 << 20), 1..3000),
        nans in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
        layout in layout(),
    ) {
        let exact: i128 = parts.iter().map(|&part| part as i128).sum();
        let scaled = |part: i128| part as f64 / 1024.0;
        let (least, greatest) = (*parts.iter().min().unwrap() as i128, *parts.iter().max().unwrap() as i128);
        let mut items: Vec<f64> = parts.iter().map(|&part| scaled(part as i128)).collect();
        for at in &nans {
            items.insert(at.index(items.len()), f64::NAN);
        }
        let files = Files::new();
        let wide: Vec<_> = items.iter().map(|item| item.to_le_bytes()).collect();
        let narrow: Vec<_> = items.iter().map(|&item| (item as f32).to_le_bytes()).collect();
        let wide = files.write("wide.npy", file("f8", &wide, 1, &layout));
        let narrow = files.write("narrow.npy", file("f4", &narrow, 1, &layout));
        let results = reduce(&wide, "sum,min,max", &["--nan", "ignore"])["results"].take();
        prop_assert_eq!(results, json!({"sum": scaled(exact), "min": scaled(least), "max": scaled(greatest)}));
        let results = reduce(&narrow, "sum,min,max", &["--nan", "ignore"])["results"].take();
        prop_assert_eq!(number(&results["sum"]) as f32, scaled(exact) as f32);
        prop_assert_eq!(number(&results["min"]) as f32, scaled(least) as f32);
        prop_assert_eq!(number(&results["max"]) as f32, scaled(greatest) as f32);
        if !nans.is_empty() {
            for path in [&wide, &narrow] {
                let results = reduce(path, "sum,min,max", &[])["results"].take();
                prop_assert_eq!(results, json!({"sum": "NaN", "min": "NaN", "max": "NaN"}));
            }
        }
    }

    /// One element of any bits comes back as it went in.
    #[test]
    fn floats_read_back(bits in any::<u64>()) {
        let files = Files::new();
        let (wide, narrow) = (f64::from_bits(bits), f32::from_bits(bits as u32));
        let path = files.write("a.npy", Npy::new("<f8", "()", wide.to_le_bytes()).bytes());
        let found = &reduce(&path, "max", &[])["results"]["max"];
        if wide.is_finite() {
            prop_assert_eq!(number(found).to_bits(), wide.to_bits());
        } else {
            prop_assert_eq!(found, &json!(wide.to_string()));
        }
        let path = files.write("a.npy", Npy::new("<f4", "()", narrow.to_le_bytes()).bytes());
        let found = &reduce(&path, "max", &[])["results"]["max"];
        if narrow.is_finite() {
            prop_assert_eq!((number(found) as f32).to_bits(), narrow.to_bits());
        } else {
            prop_assert_eq!(found, &json!(narrow.to_string()));
        }
    }
}
