//! The command line itself: operators, help, exit codes, backends, pipes.

use std::process::Stdio;

use serde_json::json;

use super::{ALL, Files, Npy, fails, le, reduce, run, succeeds, text, warpfold};

fn small(files: &Files) -> String {
    let path = files.write("a.npy", Npy::new("<i4", "(2,)", le!(i32; 1, 2)).bytes());
    path.to_str().unwrap().to_string()
}

#[test]
fn unknown_and_repeated_operators_name_the_known_ones() {
    let files = Files::new();
    let path = small(&files);
    let known = "known are sum, product, min, max, minmax, argmin, argmax, and, or, xor, all, any, count, sumsq, l1, l2, \
                 linf, dot, mean, var, std, logsumexp, mss";
    for (op, named) in [
        ("median", "\"median\""),
        ("sum,average", "\"average\""),
        ("Sum", "\"Sum\""),
        ("", "\"\""),
        ("sum,", "\"\""),
        ("sum,,min", "\"\""),
        ("sum;\nmin", "\"sum;\\nmin\""),
    ] {
        fails(["reduce", "--op", op, &path], 2, &["unknown operator", named, known]);
    }
    fails(["reduce", "--op", "sum,min,sum", &path], 2, &["\"sum\"", "twice", known]);
    fails(["reduce", "--op", "sum", "--op", "sum", &path], 2, &["\"sum\"", "twice", known]);
}

#[test]
fn operators_may_come_in_one_option_or_in_several() {
    let files = Files::new();
    let path = small(&files);
    let one = reduce(path.as_ref(), "min, sum", &[]);
    let several = reduce(path.as_ref(), "min", &["--op", "sum"]);
    assert_eq!(one["results"], json!({"min": 1, "sum": 3}));
    assert_eq!(one["results"], several["results"]);
}

#[test]
fn a_wrong_command_line_is_one_line_and_code_2() {
    let files = Files::new();
    let path = small(&files);
    fails(["reduce", &path], 2, &["--op"]);
    fails(["reduce", "--op", "sum"], 2, &["<FILE>"]);
    fails(["reduce", "--op", "sum", &path, &path], 2, &["unexpected argument"]);
    fails(["reduce", "--op", "sum", "--nan", "zero", &path], 2, &["zero", "propagate, ignore"]);
    fails(["reduce", "--op", "sum", "--backend", "tpu", &path], 2, &["tpu", "auto, cpu, cuda, sim"]);
    fails(["reduce", "--op", "sum", "--frob", &path], 2, &["--frob"]);
    fails(["reduce", "--op", "var", "--ddof", "-1", &path], 2, &["--ddof", "-1"]);
    fails(["reduce", "--op", "var", "--ddof", "nan", &path], 2, &["--ddof", "nan", "not negative"]);
    fails(["reduce", "--op", "sum", "--ddof", "1", &path], 2, &["--ddof is for --op var and --op std"]);
    fails(["fold"], 2, &["fold"]);
    fails(["info", "--frob"], 2, &["--frob"]);
}

#[test]
fn what_is_no_file_is_named() {
    let files = Files::new();
    let folder = files.0.path().join("folder.npy");
    std::fs::create_dir(&folder).unwrap();
    let missing = files.0.path().join("missing.npy");
    let text = files.write("a.txt", "1\n2\n");
    let args = |path: &std::path::Path| ["reduce", "--op", "sum", path.to_str().unwrap()].map(str::to_string);
    fails(args(&folder), 1, &["folder.npy: is a directory"]);
    fails(args(&missing), 1, &["missing.npy: No such file"]);
    fails(args(&text), 1, &["a.txt: ", "neither .npy nor .csv"]);
    fails(args(&files.0.path().join("two\nlines.npy")), 1, &["two lines.npy: No such file"]);
    #[cfg(unix)]
    fails(args("/dev/null".as_ref()), 1, &["/dev/null: is not a regular file"]);
}

#[test]
fn help_and_version_are_complete() {
    let help = succeeds(["--help"]);
    for word in ["reduce", "ops", "info", "Exit codes", "  0  ", "  1  ", "  2  "] {
        assert!(help.contains(word), "{word:?} is not in: {help}");
    }
    let help = succeeds(["reduce", "--help"]);
    for word in [
        "--op",
        "--column",
        "--with",
        "--dtype",
        "--axis",
        "--offsets",
        "--out",
        "--ddof",
        "--backend",
        "--nan",
        "--json",
        "sum, product, min, max",
        "logsumexp, mss",
        "null",
        "\"NaN\"",
    ] {
        assert!(help.contains(word), "{word:?} is not in: {help}");
    }
    for line in help.lines() {
        assert!(line.chars().count() <= 110, "a long line: {line}");
    }
    assert_eq!(succeeds(["--version"]), concat!("warpfold ", env!("CARGO_PKG_VERSION"), "\n"));
    let output = run::<&str>([]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("Usage: warpfold <COMMAND>"));
}

#[test]
fn auto_and_cpu_give_the_same_results() {
    let files = Files::new();
    let path = small(&files);
    let auto = succeeds(["reduce", "--op", "sum,min", "--json", &path]);
    assert!(auto.contains(r#""results":{"sum":3,"min":1}"#), "{auto}");
    assert_eq!(reduce(path.as_ref(), "sum", &[])["backend"], json!("cpu"));
}

#[test]
fn the_simulator_gives_the_same_results_when_asked_for() {
    let files = Files::new();
    let path = small(&files);
    let args = ["reduce", "--op", ALL, "--json", "--backend", "sim", &path];
    let found: serde_json::Value = serde_json::from_str(&succeeds(args)).unwrap();
    let expected = reduce(path.as_ref(), ALL, &[]);
    assert_eq!((&found["backend"], &found["results"]), (&json!("sim"), &expected["results"]));
    let auto: serde_json::Value =
        serde_json::from_str(&succeeds(["reduce", "--op", "sum", "--json", &path])).unwrap();
    assert_ne!(auto["backend"], json!("sim"));
}

#[cfg(not(feature = "cuda"))]
#[test]
fn a_build_without_cuda_says_how_to_get_it() {
    let files = Files::new();
    let path = small(&files);
    fails(["reduce", "--op", "sum", "--backend", "cuda", &path], 1, &["--features cuda", "--backend cpu"]);
}

#[cfg(feature = "cuda")]
#[test]
fn the_cuda_backend_computes_or_says_why_not() {
    let files = Files::new();
    let path = small(&files);
    let info: serde_json::Value = serde_json::from_str(&succeeds(["info", "--json"])).unwrap();
    let args = ["reduce", "--op", "sum,min", "--json", "--backend", "cuda", &path];
    if info["devices"].as_array().unwrap().is_empty() {
        assert!(
            std::env::var_os("WARPFOLD_REQUIRE_GPU").is_none_or(|value| value != "1"),
            "no device: {info}"
        );
        fails(args, 1, &["--backend cuda: ", "--backend cpu"]);
    } else {
        let found: serde_json::Value = serde_json::from_str(&succeeds(args)).unwrap();
        assert_eq!((&found["backend"], &found["results"]), (&json!("cuda"), &json!({"sum": 3, "min": 1})));
    }
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let files = Files::new();
    let path = small(&files);
    for args in [
        vec!["reduce", "--op", "sum", &path],
        vec!["info"],
        vec!["ops"],
        vec!["--help"],
        vec!["reduce", "--help"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = warpfold().args(&args).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn results_that_cannot_be_written_are_an_error() {
    let files = Files::new();
    let path = small(&files);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = warpfold().args(["reduce", "--op", "sum", &path]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot write the results"));
}

#[test]
fn info_lists_backends_operators_and_types() {
    let json: serde_json::Value = serde_json::from_str(&succeeds(["info", "--json"])).unwrap();
    assert_eq!(json["version"], json!(env!("CARGO_PKG_VERSION")));
    let (operators, dtypes) = (json["operators"].as_array().unwrap(), json["dtypes"].as_array().unwrap());
    assert_eq!((operators.len(), dtypes.len()), (23, 15));
    assert_eq!((&operators[0], &operators[22]), (&json!("sum"), &json!("mss")));
    assert_eq!((&dtypes[0], &dtypes[14]), (&json!("bool"), &json!("complex128")));
    let backends = json["backends"].as_array().unwrap();
    assert_eq!((&backends[0]["name"], &backends[0]["available"]), (&json!("cpu"), &json!(true)));
    assert_eq!(
        (&backends[1]["name"], &backends[1]["built"]),
        (&json!("cuda"), &json!(cfg!(feature = "cuda")))
    );
    assert_eq!((&backends[2]["name"], &backends[2]["available"]), (&json!("sim"), &json!(true)));
    let devices = json["devices"].as_array().unwrap();
    assert_eq!(backends[1]["available"], json!(!devices.is_empty()));
    let kernels = json["kernels"].as_array().unwrap();
    assert_eq!(kernels.iter().any(|kernel| kernel["name"] == "sum_f32"), cfg!(feature = "cuda"));
    let table = succeeds(["info"]);
    assert_eq!(table.contains("GPU kernels   none\n"), !cfg!(feature = "cuda"), "{table}");
    for word in ["backend cpu ", "backend cuda", "backend sim ", "sum, product, min, max", "float64"] {
        assert!(table.contains(word), "{word:?} is not in: {table}");
    }
    assert_eq!(table.contains("--features cuda"), !cfg!(feature = "cuda"), "{table}");
}
