//! What must not compile does not, and says why in words that lead on.
//!
//! Each file in `cases/` is a program with one mistake. A line `//~ TEXT` says what an error there must contain; a file
//! without such lines must compile. Only these words are compared, not the whole output, so that another release of the
//! compiler passes. All cases are checked by one `cargo` in a scratch workspace beside the test's own build folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().expect("a file in a folder")).expect("scratch folder");
    // Untouched files keep their time, so that a second run has nothing to build.
    if fs::read_to_string(&path).ok().as_deref() != Some(text) {
        fs::write(&path, text).expect("scratch file");
    }
}

/// A workspace of the cases and, for the derive macro's search, of crates that know the trait by other names.
fn scratch(root: &Path, monoid: &Path, cases: &[PathBuf]) {
    let bins: String = cases
        .iter()
        .map(|case| {
            format!("[[bin]]\nname = {:?}\npath = {case:?}\n", case.file_stem().expect("a file name"))
        })
        .collect();
    let package = |name: &str, dependency: &str| {
        format!(
            "[package]\nname = {name:?}\nversion = \"0.0.0\"\nedition = \"2024\"\n[dependencies]\n{dependency}\n"
        )
    };
    let monoid = format!("path = {monoid:?}");
    let members = "[workspace]\nresolver = \"3\"\nmembers = [\"cases\", \"renamed\", \"facade\", \"user\"]\n";
    write(root.join("Cargo.toml"), members);
    let manifest = package("cases", &format!("warpfold-monoid = {{ {monoid} }}"));
    write(root.join("cases/Cargo.toml"), &(manifest + &bins));

    let derived = |krate: &str| {
        format!(
            "use {krate}::Plain;\n#[repr(C)]\n#[derive(Clone, Copy, Plain)]\npub struct S {{ pub a: u32, pub b: f32 }}\n"
        )
    };
    let renamed = package("renamed", &format!("algebra = {{ package = \"warpfold-monoid\", {monoid} }}"));
    write(root.join("renamed/Cargo.toml"), &renamed);
    write(root.join("renamed/src/lib.rs"), &derived("algebra"));
    // Stands in for the facade: what matters is its name and the module `monoid`.
    let facade = package("warpfold", &format!("warpfold-monoid = {{ {monoid} }}"));
    write(root.join("facade/Cargo.toml"), &facade);
    write(
        root.join("facade/src/lib.rs"),
        "pub use warpfold_monoid as monoid;\npub use warpfold_monoid::Plain;\n",
    );
    write(root.join("user/Cargo.toml"), &package("user", "warpfold = { path = \"../facade\" }"));
    write(root.join("user/src/lib.rs"), &derived("warpfold"));
}

#[test]
fn mistakes_are_explained() {
    let monoid = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = monoid.join("tests/misuse/cases");
    let mut cases: Vec<PathBuf> =
        fs::read_dir(&folder).expect("cases").map(|entry| entry.expect("a case").path()).collect();
    cases.sort();
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("misuse");
    scratch(&root, monoid, &cases);
    // The versions that this test was built with are at hand.
    fs::copy(monoid.join("../Cargo.lock"), root.join("Cargo.lock")).expect("the workspace's lock file");

    let output = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["check", "--offline", "--workspace", "--keep-going", "--message-format", "json"])
        .current_dir(&root)
        .env("CARGO_TARGET_DIR", root.join("target"))
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .expect("cargo runs");
    let log = String::from_utf8_lossy(&output.stderr);

    let mut errors = BTreeMap::<PathBuf, String>::new();
    let mut finished = false;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
        match message["reason"].as_str() {
            Some("build-finished") => finished = true,
            Some("compiler-message") if message["message"]["level"] == "error" => {
                let source = PathBuf::from(message["target"]["src_path"].as_str().unwrap_or_default());
                let text = message["message"]["rendered"].as_str().unwrap_or_default();
                errors.entry(source).or_default().push_str(text);
            }
            _ => {}
        }
    }
    assert!(finished, "cargo did not come to its end:\n{log}");

    let mut wrong = String::new();
    for case in &cases {
        let source = fs::read_to_string(case).expect("a case");
        let said = errors.remove(case).unwrap_or_default();
        let expected: Vec<&str> =
            source.lines().filter_map(|line| line.split_once("//~ ")).map(|(_, text)| text).collect();
        if expected.is_empty() != said.is_empty() {
            wrong += &format!(
                "{} should {}compile:\n{said}\n",
                case.display(),
                if expected.is_empty() { "" } else { "not " }
            );
        }
        for text in expected.iter().filter(|text| !said.contains(*text)) {
            wrong += &format!("{}: no error says {text:?}:\n{said}\n", case.display());
        }
    }
    // What is left are errors outside the cases: the crates under other names, or the library itself.
    for (source, said) in errors {
        wrong += &format!("{} should compile:\n{said}\n", source.display());
    }
    assert!(wrong.is_empty(), "{wrong}");
}
