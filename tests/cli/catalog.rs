//! `warpfold ops`, and that its list of operators and types is what `warpfold reduce` does.

use serde_json::{Value, json};

use super::{Files, Npy, ON_BOOL, ON_COMPLEX, ON_FLOATS, ON_INTEGERS, fails, reduce, run, succeeds, text};

const NAMES: [&str; 23] = [
    "sum",
    "product",
    "min",
    "max",
    "minmax",
    "argmin",
    "argmax",
    "and",
    "or",
    "xor",
    "all",
    "any",
    "count",
    "sumsq",
    "l1",
    "l2",
    "linf",
    "dot",
    "mean",
    "var",
    "std",
    "logsumexp",
    "mss",
];

/// numpy's code of each type, its name, and which operators on one array it has.
const TYPES: [(&str, &str, &str); 15] = [
    ("|b1", "bool", ON_BOOL),
    ("|i1", "int8", ON_INTEGERS),
    ("<i2", "int16", ON_INTEGERS),
    ("<i4", "int32", ON_INTEGERS),
    ("<i8", "int64", ON_INTEGERS),
    ("|u1", "uint8", ON_INTEGERS),
    ("<u2", "uint16", ON_INTEGERS),
    ("<u4", "uint32", ON_INTEGERS),
    ("<u8", "uint64", ON_INTEGERS),
    ("<f2", "float16", ON_FLOATS),
    ("|V2", "bfloat16", ON_FLOATS),
    ("<f4", "float32", ON_FLOATS),
    ("<f8", "float64", ON_FLOATS),
    ("<c8", "complex64", ON_COMPLEX),
    ("<c16", "complex128", ON_COMPLEX),
];

fn catalog() -> Vec<Value> {
    let stdout = succeeds(["ops", "--json"]);
    assert_eq!((stdout.matches('\n').count(), stdout.ends_with('\n')), (1, true), "{stdout}");
    serde_json::from_str(&stdout).expect("one JSON array")
}

#[test]
fn every_operator_has_its_rules() {
    let catalog = catalog();
    let names: Vec<&str> = catalog.iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(names, NAMES);
    for entry in &catalog {
        let rules = &entry["rules"];
        for words in [&entry["meaning"], &rules["arithmetic"], &rules["nan"], &rules["nothing"]] {
            assert!(!words.as_str().unwrap().is_empty(), "{entry}");
        }
    }
    let table = succeeds(["ops"]);
    for name in NAMES {
        assert!(table.lines().any(|line| line.split(' ').next() == Some(name)), "{name} is not in: {table}");
    }
    for line in table.lines() {
        assert!(line.len() <= 100 && line.trim_end() == line, "{line:?}");
    }
    fails(["ops", "--json", "--markdown"], 2, &["--json"]);
}

#[test]
fn the_page_is_what_the_command_writes() {
    let page = include_str!("../../docs/operators.md");
    assert!(
        succeeds(["ops", "--markdown"]) == page,
        "warpfold ops --markdown > docs/operators.md brings it up to date"
    );
}

/// The kind of a result of that type.
#[track_caller]
fn is_of_type(found: &Value, given: &str, taken: &str) {
    match given {
        _ if given.starts_with("{index") => {
            assert!(found["index"].is_u64(), "{found}");
            is_of_type(&found["value"], taken, taken);
        }
        _ if given.starts_with("{min") => {
            is_of_type(&found["min"], taken, taken);
            is_of_type(&found["max"], taken, taken);
        }
        "bool" => assert!(found.is_boolean(), "{found}"),
        "complex64" | "complex128" => assert_eq!(found.as_array().map(Vec::len), Some(2), "{found}"),
        _ if given.starts_with("uint") => assert!(found.is_u64(), "{found}"),
        _ if given.starts_with("int") => assert!(found.is_i64(), "{found}"),
        _ => {
            assert!(given.starts_with("float") || given == "bfloat16", "{given}");
            assert!(found.is_f64(), "{found}");
        }
    }
}

/// Operator by operator and type by type: what is listed is computed, and what is not is refused.
#[test]
fn what_is_listed_is_what_is_done() {
    let catalog = catalog();
    let files = Files::new();
    for (descr, dtype, ops) in TYPES {
        let size: usize = descr[2..].parse().unwrap();
        let one = match dtype {
            "bool" => vec![1],
            "float16" => vec![0, 0x3c],
            "bfloat16" => vec![0x80, 0x3f],
            "float32" | "complex64" => 1f32.to_le_bytes().to_vec(),
            "float64" | "complex128" => 1f64.to_le_bytes().to_vec(),
            _ => 1u64.to_le_bytes()[..size].to_vec(),
        };
        let mut body = [one.clone(), one].concat();
        body.resize(2 * size, 0);
        let path = files.write("a.npy", Npy::new(descr, "(2,)", body).bytes());
        let path = path.to_str().unwrap();
        let all = if dtype == "bool" { ops.to_string() } else { format!("{ops},dot") };
        let options: &[&str] = if dtype == "bool" { &[] } else { &["--with", path] };
        let options = [options, &["--dtype", dtype]].concat();
        let found = reduce(path.as_ref(), &all, &options);
        assert_eq!(found["dtype"], json!(dtype));
        let has: Vec<&str> = all.split(',').collect();
        for entry in &catalog {
            let name = entry["name"].as_str().unwrap();
            let given = entry["types"].get(dtype);
            assert_eq!(given.is_some(), has.contains(&name), "{name} of {dtype}");
            match given {
                Some(given) => is_of_type(&found["results"][name], given.as_str().unwrap(), dtype),
                None => {
                    let with: &[&str] = if name == "dot" { &["--with", path] } else { &[] };
                    let args = [&["reduce", "--op", name, path, "--dtype", dtype], with].concat();
                    let named = format!("--op {name} does not take elements of type {dtype}; it takes ");
                    fails(args, 2, &[&named]);
                }
            }
        }
    }
}

/// What is listed for no elements is what comes out.
#[test]
fn nothing_is_listed_too() {
    let files = Files::new();
    for (descr, dtype, ops) in TYPES {
        let path = files.write("a.npy", Npy::new(descr, "(0,)", []).bytes());
        let found = reduce(&path, ops, &["--dtype", dtype]);
        for entry in catalog() {
            let name = entry["name"].as_str().unwrap();
            let found = &found["results"][name];
            if !ops.split(',').any(|op| op == name) {
                continue;
            }
            let listed = entry["rules"]["nothing"].as_str().unwrap();
            let shown = match found {
                Value::Array(parts) => parts[0].to_string(),
                Value::String(word) => word.clone(),
                _ => found.to_string(),
            };
            let shown = shown.trim_end_matches(".0");
            let of_bits = ["and", "or", "xor"].contains(&name);
            assert!(of_bits || shown == listed, "{name} of no {dtype}: {shown}, not {listed}");
        }
    }
    // All bits, and none.
    for (descr, and) in
        [("|i1", json!(-1)), ("<i8", json!(-1)), ("|u1", json!(255)), ("<u8", json!(u64::MAX))]
    {
        let path = files.write("a.npy", Npy::new(descr, "(0,)", []).bytes());
        assert_eq!(reduce(&path, "and,or,xor", &[])["results"], json!({"and": and, "or": 0, "xor": 0}));
    }
}

/// The simulator and the CPU give the same results where the simulator has the kernel, and the simulator says so where not.
#[test]
fn other_backends_compute_or_name_the_kernel_that_is_missing() {
    let files = Files::new();
    for (descr, dtype, ops) in TYPES {
        let size: usize = descr[2..].parse().unwrap();
        let path = files.write("a.npy", Npy::new(descr, "(3,)", vec![0; 3 * size]).bytes());
        let path = path.to_str().unwrap();
        let expected = reduce(path.as_ref(), ops, &["--dtype", dtype]);
        for op in ops.split(',') {
            let output = run(["reduce", "--op", op, "--backend", "sim", "--json", "--dtype", dtype, path]);
            if output.status.success() {
                let found: Value = serde_json::from_slice(&output.stdout).unwrap();
                assert_eq!(found["results"][op], expected["results"][op], "{op} of {dtype}");
            } else {
                assert_eq!(output.status.code(), Some(1));
                let stderr = text(&output.stderr);
                assert!(stderr.contains("no kernel"), "{op} of {dtype}: {stderr}");
            }
        }
    }
}
