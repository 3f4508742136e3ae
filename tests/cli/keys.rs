//! `warpfold by-key` and `warpfold by-tag`: what belongs together, in which order, and what it gives.

use std::path::Path;

use serde_json::{Value, json};

use super::{Files, Npy, column, fails, le, succeeds};

/// Runs a subcommand on the CPU with `--json`; the object.
fn run(command: &str, options: &[&str], files: &[&Path]) -> Value {
    run_on("cpu", command, options, files)
}

fn run_on(backend: &str, command: &str, options: &[&str], files: &[&Path]) -> Value {
    let mut args = vec![command, "--backend", backend, "--json"];
    args.extend(options);
    args.extend(files.iter().map(|file| file.to_str().expect("a UTF-8 path")));
    serde_json::from_str(&succeeds(args)).expect("one JSON object")
}

fn bytes<const SIZE: usize, T>(items: &[T], bytes: fn(&T) -> [u8; SIZE]) -> Vec<[u8; SIZE]> {
    items.iter().map(bytes).collect()
}

#[test]
fn runs_of_equal_keys() {
    let files = Files::new();
    // A key that comes again is a run again.
    let keys = column(&files, "k.npy", "<u4", &bytes(&[1_u32, 3, 3, 3, 2, 2, 1], |key| key.to_le_bytes()));
    let values = column(&files, "v.npy", "|u1", &bytes(&[9_u8, 8, 7, 6, 5, 4, 3], |value| [*value]));
    let found = run("by-key", &["--op", "sum,mean,argmax"], &[&keys, &values]);
    assert_eq!(found["keys"], json!([1, 3, 2, 1]));
    assert_eq!(found["results"]["sum"], json!([9, 21, 9, 3]));
    assert_eq!(found["results"]["mean"], json!([9.0, 7.0, 4.5, 3.0]));
    assert_eq!(found["results"]["argmax"][1], json!({"index": 0, "value": 8}));
    assert_eq!(
        (&found["n"], &found["dtype"], &found["backend"]),
        (&json!(7), &json!("uint8"), &json!("cpu"))
    );
    // Together wherever they stand, as first seen and sorted.
    let grouped = run("by-key", &["--op", "sum", "--group"], &[&keys, &values]);
    assert_eq!((&grouped["keys"], &grouped["results"]["sum"]), (&json!([1, 3, 2]), &json!([12, 21, 9])));
    let sorted = run("by-key", &["--op", "sum", "--sort"], &[&keys, &values]);
    assert_eq!((&sorted["keys"], &sorted["results"]["sum"]), (&json!([1, 2, 3]), &json!([12, 9, 21])));
    let table = succeeds(["by-key", "--op", "sum", keys.to_str().unwrap(), values.to_str().unwrap()]);
    assert!(table.ends_with("\n1    9\n3   21\n2    9\n1    3\n"), "{table}");
}

/// Kernels that sort, and those of segments, on simulated threads; on a GPU too, where there is one.
#[test]
fn devices_sort_keys_and_give_the_same_bits() {
    let files = Files::new();
    let numbers =
        |salt: u64| (0..3000_u64).map(move |i| (i + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40);
    let keys: Vec<i16> = numbers(1).map(|number| (number % 23) as i16 - 11).collect();
    let tags: Vec<u8> = numbers(2).map(|number| (number % 20) as u8).collect();
    let values: Vec<f32> = numbers(3).map(|number| number as f32 * 2_f32.powi(number as i32 % 30)).collect();
    let keys = column(&files, "k.npy", "<i2", &bytes(&keys, |key| key.to_le_bytes()));
    let tags = column(&files, "t.npy", "|u1", &bytes(&tags, |tag| [*tag]));
    let values = column(&files, "v.npy", "<f4", &bytes(&values, |value| value.to_le_bytes()));
    let text: String = numbers(4)
        .map(|number| format!("{},{}\n", ["b", "a", "", "c d"][number as usize % 4], number))
        .collect();
    let csv = files.write("t.csv", format!("k,v\n{text}"));
    let by_tag = ["--op", "sum,mean", "--tags", "16", "--ignore-out-of-range"];
    let calls: [(&str, &[&str], &[&Path]); 5] = [
        ("by-key", &["--op", "sum,argmax", "--group"], &[&keys, &values]),
        ("by-key", &["--op", "sum,mean", "--sort"], &[&keys, &values]),
        ("by-key", &["--op", "sum"], &[&keys, &values]),
        ("by-tag", &by_tag, &[&tags, &values]),
        ("by-key", &["--op", "sum", "--key", "k", "--value", "v"], &[&csv]),
    ];
    for (command, options, paths) in calls {
        let expected = run(command, options, paths);
        for backend in ["sim", "auto"] {
            let found = run_on(backend, command, options, paths);
            assert_eq!((&found["keys"], &found["results"]), (&expected["keys"], &expected["results"]));
        }
        assert_eq!(run_on("sim", command, options, paths)["backend"], json!("sim"));
    }
}

#[test]
fn floats_as_keys() {
    let files = Files::new();
    let keys = [0.0, -0.0, f64::NAN, f64::NAN, -1.5, 0.0];
    let keys = column(&files, "k.npy", "<f8", &bytes(&keys, |key: &f64| key.to_le_bytes()));
    let values =
        column(&files, "v.npy", "<i4", &bytes(&[1, 2, 4, 8, 16, 32], |value: &i32| value.to_le_bytes()));
    let runs = run("by-key", &["--op", "sum"], &[&keys, &values]);
    assert_eq!(runs["keys"], json!([0.0, "NaN", "NaN", -1.5, 0.0]));
    assert_eq!(runs["results"]["sum"], json!([3, 4, 8, 16, 32]));
    let sorted = run("by-key", &["--op", "sum,max", "--sort"], &[&keys, &values]);
    assert_eq!(sorted["keys"], json!([-1.5, 0.0, "NaN"]));
    assert_eq!(sorted["results"], json!({"sum": [16, 35, 12], "max": [16, 32, 8]}));
}

#[test]
fn rows_of_a_csv_file_with_equal_keys() {
    let files = Files::new();
    let path = files.write(
        "birds.csv",
        "species,island,mass\nGentoo,Biscoe,5000\nAdelie,Dream,3250.5\nGentoo,Biscoe,\n\"Chin, strap\",Dream,3500\n\
         Adelie,Biscoe,3700\n",
    );
    let by = ["--key", "species", "--value", "mass"];
    let with =
        |more: &[&'static str]| -> Vec<&str> { by.iter().copied().chain(more.iter().copied()).collect() };
    let found = run("by-key", &with(&["--op", "mean,count", "--nan", "ignore"]), &[&path]);
    assert_eq!(found["keys"], json!(["Gentoo", "Adelie", "Chin, strap"]));
    assert_eq!(found["results"]["mean"], json!([5000.0, 3475.25, 3500.0]));
    let sorted = run("by-key", &with(&["--op", "mean", "--sort"]), &[&path]);
    assert_eq!(sorted["keys"], json!(["Adelie", "Chin, strap", "Gentoo"]));
    assert_eq!(sorted["results"]["mean"], json!([3475.25, 3500.0, "NaN"]));
    let runs = run("by-key", &with(&["--op", "max", "--runs", "--nan", "ignore"]), &[&path]);
    assert_eq!(runs["keys"].as_array().map(Vec::len), Some(5));
    assert_eq!(runs["results"]["max"], json!([5000.0, 3250.5, "NaN", 3500.0, 3700.0]));
    // All results in a file.
    let out = files.write("out.csv", "");
    let name = out.to_str().unwrap().to_owned();
    let report = run(
        "by-key",
        &[&with(&["--op", "sum,min", "--nan", "ignore", "--out"])[..], &[&name]].concat(),
        &[&path],
    );
    assert_eq!((&report["out"], report.get("keys"), report.get("results")), (&json!(name), None, None));
    let written = std::fs::read_to_string(&out).unwrap();
    assert_eq!(
        written,
        "key,sum,min\nGentoo,5000.0,5000.0\nAdelie,6950.5,3250.5\n\"Chin, strap\",3500.0,3500.0\n"
    );
}

#[test]
fn keys_of_a_csv_file_are_numbers_if_all_are() {
    let files = Files::new();
    for (cells, keys) in [
        (["7", "07", "-1"], json!([7, -1])),
        (["7", "7.0", "1e3"], json!([7.0, 1000.0])),
        (["7", "", "x"], json!(["7", "", "x"])),
    ] {
        let text = format!("k,v\n{},1\n{},2\n{},4\n", cells[0], cells[1], cells[2]);
        let path = files.write("a.csv", text);
        let found = run("by-key", &["--op", "sum", "--key", "k", "--value", "v"], &[&path]);
        assert_eq!(found["keys"], keys, "{cells:?}");
    }
}

#[test]
fn tags_in_any_order() {
    let files = Files::new();
    let tags = column(&files, "t.npy", "|i1", &bytes(&[2_i8, 0, 2, 2, 0], |tag| tag.to_le_bytes()));
    let values =
        column(&files, "v.npy", "<f4", &bytes(&[1.5_f32, 2.0, 4.0, 8.0, 16.0], |value| value.to_le_bytes()));
    let found = run("by-tag", &["--op", "sum,min", "--tags", "4"], &[&tags, &values]);
    assert_eq!(found["keys"], json!([0, 1, 2, 3]));
    assert_eq!(found["results"]["sum"], json!([18.0, 0.0, 13.5, 0.0]));
    assert_eq!(found["results"]["min"], json!([2.0, null, 1.5, null]));
    // One operator's results as numpy reads them.
    let out = files.write("out.npy", "");
    let name = out.to_str().unwrap().to_owned();
    run("by-tag", &["--op", "sum", "--tags", "4", "--out", &name], &[&tags, &values]);
    assert!(std::fs::read(&out).unwrap() == Npy::new("<f4", "(4,)", le!(f32; 18.0, 0.0, 13.5, 0.0)).bytes());
    let names = [tags.to_str().unwrap(), values.to_str().unwrap()];
    fails(
        ["by-tag", "--op", "sum", "--tags", "2", names[0], names[1]],
        1,
        &["t.npy", "tag 0 is 2", "--tags 2"],
    );
    let some = run("by-tag", &["--op", "sum", "--tags", "2", "--ignore-out-of-range"], &[&tags, &values]);
    assert_eq!((&some["results"]["sum"], &some["n"]), (&json!([18.0, 0.0]), &json!(5)));
    let nothing = run("by-tag", &["--op", "sum", "--tags", "0", "--ignore-out-of-range"], &[&tags, &values]);
    assert_eq!((&nothing["keys"], &nothing["results"]["sum"]), (&json!([]), &json!([])));
}

#[test]
fn no_values() {
    let files = Files::new();
    let keys = files.write("k.npy", Npy::new("<i8", "(0,)", []).bytes());
    let values = files.write("v.npy", Npy::new("<f8", "(0,)", []).bytes());
    let found = run("by-key", &["--op", "sum"], &[&keys, &values]);
    assert_eq!((&found["keys"], &found["results"]["sum"]), (&json!([]), &json!([])));
    let found = run("by-tag", &["--op", "sum,max", "--tags", "2"], &[&keys, &values]);
    assert_eq!(found["results"], json!({"sum": [0.0, 0.0], "max": [null, null]}));
}

#[test]
fn how_much_device_memory_is_a_number_of_bytes() {
    let files = Files::new();
    let path = column(&files, "a.npy", "|i1", &[[1], [2]]);
    for bytes in ["0", "4096", "64M", "2g"] {
        let found = super::reduce(&path, "sum", &["--device-memory", bytes]);
        assert_eq!(found["results"]["sum"], json!(3));
    }
    let path = path.to_str().unwrap();
    for bytes in ["", "M", "-1", "3.5G", "99999999999G"] {
        let option = format!("--device-memory={bytes}");
        fails(["reduce", "--op", "sum", &option, path], 2, &["--device-memory"]);
    }
}

#[test]
fn what_does_not_go_together_is_said() {
    let files = Files::new();
    let three = column(&files, "three.npy", "|i1", &[[1], [2], [3]]);
    let two = column(&files, "two.npy", "|i1", &[[1], [2]]);
    let floats = column(&files, "floats.npy", "<f2", &[[0, 0], [0, 0]]);
    let complex = column(&files, "complex.npy", "<c8", &[[0; 8], [0; 8]]);
    let csv = files.write("a.csv", "k,v\n1,x\n");
    let [three, two, floats, complex, csv] =
        [&three, &two, &floats, &complex, &csv].map(|path| path.to_str().unwrap());
    fails(["by-key", "--op", "sum", three, two], 1, &["two.npy", "2 elements, not 3"]);
    fails(["by-key", "--op", "sum", complex, two], 1, &["complex.npy", "complex64", "keys are"]);
    fails(["by-tag", "--op", "sum", "--tags", "2", floats, two], 1, &["floats.npy", "floats", "integers"]);
    fails(["by-key", "--op", "sum", two], 2, &["two .npy files"]);
    fails(["by-key", "--op", "sum", csv], 2, &["--key", "--value"]);
    fails(["by-key", "--op", "sum", "--key", "k", two, two], 2, &["one .csv file"]);
    fails(["by-key", "--op", "sum", "--key", "z", "--value", "v", csv], 1, &["no column \"z\""]);
    fails(["by-key", "--op", "sum", "--key", "k", "--value", "v", csv], 1, &["line 2", "\"v\"", "\"x\""]);
    fails(["by-key", "--op", "dot", two, two], 2, &["dot"]);
    fails(["by-key", "--op", "sum,max", "--out", "x.npy", two, two], 2, &[".csv", "2"]);
    fails(["by-key", "--op", "sum", "--ddof", "1", two, two], 2, &["--ddof"]);
    fails(["by-key", "--op", "logsumexp", two, two], 2, &["logsumexp", "int8"]);
}
