//! Faults put into the kernels on purpose, one at a time: do the simulator's tests find each?
//!
//! Works on a copy in `target/mutants`, so that the tree is never touched.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::workspace::{Workspace, cargo_in};

/// Options of `cargo xtask mutants`.
#[derive(clap::Args)]
pub struct Options {
    /// Only the faults whose name contains one of these
    filters: Vec<String>,
    /// Seconds after which a test run counts as hanging, and the fault as caught
    #[arg(long, default_value_t = 120)]
    timeout: u64,
}

/// The faults.
const LIST: &str = include_str!("../mutants.toml");

/// The folder whose sources the faults are put into.
const FOLDER: &str = "gpu-kernels";

/// The folders that tests are built from, development dependencies of workspace members included.
const FOLDERS: [&str; 7] = ["monoid", "monoid-derive", "simt", "simt-macros", "ptx-builder", FOLDER, "host"];

/// Tests that must find faults.
struct Suite {
    /// What cargo builds.
    build: &'static [&'static str],
    /// Where the programs run.
    folder: &'static str,
}

/// The kernels' own.
const KERNELS: Suite = Suite { build: &["--package", "warpfold-gpu-kernels"], folder: FOLDER };

/// Those of segments, whose work the host cuts.
const SEGMENTS: Suite = Suite {
    build: &["--package", "warpfold-host", "--no-default-features", "--test", "segments_sim"],
    folder: "host",
};

/// Those of reductions by tag and by key.
const KEYS: Suite = Suite {
    build: &["--package", "warpfold-host", "--no-default-features", "--test", "keys_sim"],
    folder: "host",
};

/// Those of streams and of arrays in parts.
const SINKS: Suite = Suite {
    build: &["--package", "warpfold-host", "--no-default-features", "--test", "sinks"],
    folder: "host",
};

/// Those of scans.
const SCANS: Suite = Suite {
    build: &["--package", "warpfold-host", "--no-default-features", "--test", "scan_sim"],
    folder: "host",
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Mutant>,
}

/// One fault.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutant {
    name: String,
    /// What sort of fault.
    kind: String,
    /// The file in the kernels' `src`.
    file: String,
    /// The text that is replaced.
    find: String,
    replace: String,
    /// How often the text occurs.
    #[serde(default = "one")]
    of: usize,
    /// Which occurrence is replaced, from 1.
    #[serde(default = "one")]
    nth: usize,
    /// Is it about parts of more, which the tests of sinks find?
    #[serde(default)]
    part: bool,
}

fn one() -> usize {
    1
}

impl Mutant {
    /// The tests that must find it.
    fn suite(&self) -> &'static Suite {
        match self.file.as_str() {
            _ if self.part => &SINKS,
            "tags.rs" | "tags/gather.rs" | "tags/partition.rs" | "scan/runs.rs" => &KEYS,
            "beside.rs" => &SEGMENTS,
            file if file.starts_with("segments/") => &SEGMENTS,
            file if file.starts_with("scan") => &SCANS,
            _ => &KERNELS,
        }
    }

    /// The source with the fault in it.
    fn apply(&self, source: &str) -> Result<String> {
        let places: Vec<usize> = source.match_indices(&self.find).map(|(at, _)| at).collect();
        ensure!(
            places.len() == self.of && (1..=self.of).contains(&self.nth),
            "{}: the text occurs {} times in {}, and the list takes number {} of {}; correct xtask/mutants.toml",
            self.name,
            places.len(),
            self.file,
            self.nth,
            self.of
        );
        let (before, rest) = source.split_at(places[self.nth - 1]);
        Ok(format!("{before}{}{}", self.replace, &rest[self.find.len()..]))
    }
}

/// How the tests took a fault.
enum Outcome {
    /// Some test failed.
    Caught(String),
    /// All tests passed.
    Survived,
    /// It could not be tried.
    Broken(String),
}

/// How one run of the tests ended.
enum Tests {
    Passed,
    Failed(String),
    NotBuilt(String),
}

/// Runs `cargo xtask mutants`.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let mutants = list()?;
    let asked = |mutant: &&Mutant| {
        options.filters.is_empty()
            || options.filters.iter().any(|filter| mutant.name.contains(filter.as_str()))
    };
    let mutants: Vec<&Mutant> = mutants.iter().filter(asked).collect();
    ensure!(!mutants.is_empty(), "no fault has a name with {:?} in it", options.filters);
    let copy = Copy::new(workspace)?;
    let limit = Duration::from_secs(options.timeout);

    for suite in [&KERNELS, &SEGMENTS, &SCANS, &KEYS, &SINKS] {
        if !mutants.iter().any(|mutant| std::ptr::eq(mutant.suite(), suite)) {
            continue;
        }
        print!("tests in {} without a fault ... ", suite.folder);
        io::stdout().flush().ok();
        let start = Instant::now();
        match copy.test(suite, "none", limit)? {
            Tests::Passed => println!("passed, {:.1} s", start.elapsed().as_secs_f64()),
            Tests::Failed(how) => {
                bail!("the tests fail without a fault: {how}; see {}", copy.log("none").display())
            }
            Tests::NotBuilt(why) => bail!("the copy does not build: {why}"),
        }
    }

    println!("\n| fault | kind | caught by | s |");
    println!("| --- | --- | --- | ---: |");
    let (mut caught, mut wrong) = (0, Vec::new());
    for mutant in &mutants {
        let start = Instant::now();
        let outcome = copy.try_mutant(mutant, limit)?;
        let text = match &outcome {
            Outcome::Caught(how) => how.clone(),
            Outcome::Survived => "**nothing**".into(),
            Outcome::Broken(why) => format!("**not tried**: {why}"),
        };
        let seconds = start.elapsed().as_secs_f64();
        println!("| `{}` | {} | {text} | {seconds:.1} |", mutant.name, mutant.kind);
        match outcome {
            Outcome::Caught(_) => caught += 1,
            _ => wrong.push(mutant.name.as_str()),
        }
    }
    println!("\n{caught} of {} caught", mutants.len());
    ensure!(wrong.is_empty(), "not caught: {}; logs in {}", wrong.join(", "), copy.logs.display());
    Ok(())
}

fn list() -> Result<Vec<Mutant>> {
    let list: List = toml::from_str(LIST).context("xtask/mutants.toml")?;
    Ok(list.mutant)
}

/// A copy of what the kernels' tests are built from, as a workspace of its own.
struct Copy {
    root: PathBuf,
    target: PathBuf,
    logs: PathBuf,
}

impl Copy {
    fn new(workspace: &Workspace) -> Result<Copy> {
        let folder = workspace.target.join("mutants");
        let copy =
            Copy { root: folder.join("source"), target: folder.join("target"), logs: folder.join("logs") };
        // What was built before stays, the sources do not: an interrupted run leaves a fault in them.
        for old in [&copy.root, &copy.logs] {
            if old.exists() {
                fs::remove_dir_all(old).with_context(|| format!("cannot empty {}", old.display()))?;
            }
            fs::create_dir_all(old).with_context(|| format!("cannot create {}", old.display()))?;
        }
        let manifest = fs::read_to_string(workspace.root.join("Cargo.toml"))?;
        fs::write(copy.root.join("Cargo.toml"), small_workspace(&manifest)?)?;
        fs::copy(workspace.root.join("Cargo.lock"), copy.root.join("Cargo.lock"))?;
        for name in FOLDERS {
            copy_folder(&workspace.root.join(name), &copy.root.join(name))?;
        }
        Ok(copy)
    }

    fn log(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{name}.log"))
    }

    /// Puts a fault in, runs the tests, takes it out.
    fn try_mutant(&self, mutant: &Mutant, limit: Duration) -> Result<Outcome> {
        let path = self.root.join(FOLDER).join("src").join(&mutant.file);
        let source = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let changed = match mutant.apply(&source) {
            Ok(changed) => changed,
            Err(error) => return Ok(Outcome::Broken(error.to_string())),
        };
        fs::write(&path, changed)?;
        let tests = self.test(mutant.suite(), &mutant.name, limit);
        fs::write(&path, source)?;
        Ok(match tests? {
            Tests::Passed => Outcome::Survived,
            Tests::Failed(how) => Outcome::Caught(how),
            Tests::NotBuilt(why) => Outcome::Broken(format!("does not compile: {why}")),
        })
    }

    /// Builds the tests, then runs them: what does not compile is not caught by a test.
    fn test(&self, suite: &Suite, name: &str, limit: Duration) -> Result<Tests> {
        let target = self.target.display().to_string();
        let mut build = cargo_in(&self.root, &["test", "--no-run", "--target-dir", &target]);
        build.args(suite.build).arg("--message-format=json-render-diagnostics").stdin(Stdio::null());
        // Half of the time goes into building: without debug information that is shorter.
        build.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_TEST_DEBUG", "0");
        let output = build.output().context("cargo could not be started")?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            fs::write(self.log(name), &*text)?;
            let first = text.lines().find(|line| line.starts_with("error")).unwrap_or("no error line");
            return Ok(Tests::NotBuilt(first.to_owned()));
        }
        let programs = test_programs(&String::from_utf8_lossy(&output.stdout));
        ensure!(!programs.is_empty(), "cargo names no test program of {}", suite.folder);
        let mut log = File::create(self.log(name)).context("cannot create a log")?;
        let start = Instant::now();
        for program in programs {
            writeln!(log, "$ {program}")?;
            // The programs themselves, not through cargo, so that a hanging one can be stopped.
            let mut child = Command::new(&program)
                .current_dir(self.root.join(suite.folder))
                .env("RUST_BACKTRACE", "0")
                .stdin(Stdio::null())
                .stdout(log.try_clone()?)
                .stderr(log.try_clone()?)
                .spawn()
                .with_context(|| format!("{program} could not be started"))?;
            let status = loop {
                if let Some(status) = child.try_wait()? {
                    break Some(status);
                }
                if start.elapsed() > limit {
                    child.kill().ok();
                    child.wait()?;
                    break None;
                }
                thread::sleep(Duration::from_millis(20));
            };
            match status {
                Some(status) if status.success() => {}
                Some(status) => {
                    let text = fs::read(self.log(name))?;
                    let how = how_caught(&String::from_utf8_lossy(&text));
                    return Ok(Tests::Failed(how.unwrap_or_else(|| format!("the program ended: {status}"))));
                }
                None => return Ok(Tests::Failed(format!("hangs: stopped after {} s", limit.as_secs()))),
            }
        }
        Ok(Tests::Passed)
    }
}

/// The root manifest without its package and with the members that are copied.
fn small_workspace(manifest: &str) -> Result<String> {
    let mut table: toml::Table = manifest.parse().context("the root Cargo.toml")?;
    table.retain(|key, _| matches!(key, "workspace" | "profile"));
    let workspace = table.get_mut("workspace").and_then(toml::Value::as_table_mut);
    let workspace = workspace.context("the root Cargo.toml has no [workspace]")?;
    workspace.insert("members".into(), FOLDERS.to_vec().into());
    workspace.remove("exclude");
    Ok(table.to_string())
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "target" {
                copy_folder(&path, &to)?;
            }
        } else {
            fs::copy(&path, &to).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    Ok(())
}

/// The test programs that cargo's messages name.
fn test_programs(messages: &str) -> Vec<String> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let tests = messages.filter(|message| message["profile"]["test"] == true);
    tests.filter_map(|message| message["executable"].as_str().map(str::to_owned)).collect()
}

/// The simulator's detectors, by words of their reports; earlier entries are more specific.
const DETECTORS: [(&str, &str); 18] = [
    ("does not name the calling lane", "caller not in the mask"),
    ("which the mask", "shuffle from an unnamed lane"),
    (" names lane ", "absent lane"),
    ("threads wait here, but", "barrier not reached by all"),
    ("was never written", "unwritten shared memory"),
    ("with no barrier between", "shared-memory race"),
    (" of a shared array of ", "shared index out of bounds"),
    (" bytes at 0x", "global access out of bounds"),
    ("is not a multiple of", "misaligned access"),
    ("deadlock: ", "deadlock"),
    ("without once waiting or polling", "runaway loop"),
    ("panic: an absent operand", "absent operand combined"),
    ("panic: ", "panic in the kernel"),
    ("the ticket is reset", "ticket left behind"),
    (" failed: n = ", "wrong bits"),
    (" segments of ", "wrong bits"),
    (" items, ", "wrong bits"),
    (", line ", "wrong bits"),
];

/// Which tests failed and what found it, from the output of a test program; `None` if no test is named.
fn how_caught(output: &str) -> Option<String> {
    let failed: Vec<&str> =
        output.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED")).collect();
    // Reports are panic messages, the line after that of the place.
    let lines = output.lines().zip(output.lines().skip(1));
    let reports = lines.filter(|(place, _)| place.contains(" panicked at ")).map(|(_, report)| report);
    let found: BTreeSet<&str> = reports
        .map(|report| {
            let detector = DETECTORS.iter().find(|(words, _)| report.contains(words));
            detector.map_or("another panic", |(_, name)| name)
        })
        .collect();
    let found: Vec<&str> = found.into_iter().collect();
    let first = failed.iter().min()?;
    let more = match failed.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("{} (`{first}`{more})", found.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_still_applies() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(FOLDER).join("src");
        let mutants = list().unwrap();
        let names: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.name.as_str()).collect();
        assert_eq!(names.len(), mutants.len(), "a name occurs twice");
        assert!(mutants.len() >= 24, "{} faults", mutants.len());
        for mutant in &mutants {
            let source = fs::read_to_string(sources.join(&mutant.file)).unwrap();
            let changed = mutant.apply(&source).unwrap();
            assert_ne!(changed, source, "{} changes nothing", mutant.name);
        }
    }

    #[test]
    fn the_right_occurrence_is_replaced() {
        let mutant = |of, nth| Mutant {
            name: "m".into(),
            kind: "k".into(),
            file: "f.rs".into(),
            find: "ab".into(),
            replace: "x".into(),
            of,
            nth,
            part: false,
        };
        assert_eq!(mutant(2, 1).apply("ab-ab").unwrap(), "x-ab");
        assert_eq!(mutant(2, 2).apply("ab-ab").unwrap(), "ab-x");
        let error = mutant(1, 1).apply("ab-ab").unwrap_err().to_string();
        assert!(error.contains("occurs 2 times in f.rs"), "{error}");
        assert!(mutant(2, 3).apply("ab-ab").is_err());
        assert!(mutant(1, 1).apply("").is_err());
    }

    #[test]
    fn reports_are_told_apart() {
        let output = "running 3 tests\ntest b ... FAILED\ntest a ... FAILED\ntest c ... ok\n\n---- b stdout ----\n\n\
            thread 'b' (7) panicked at tests/simulator.rs:146:25:\n\
            n = 100: k__reduce_one: block (0, 0, 0): panic: an absent operand: 1 with 0\n\
            thread 'a' (8) panicked at tests/simulator.rs:9:9:\n\
            assertion `left == right` failed: n = 5, start + 0, Sequential\n  left: 1\n right: 2\n";
        assert_eq!(how_caught(output).unwrap(), "absent operand combined, wrong bits (`a` and 1 more)");
        assert_eq!(how_caught("running 3 tests\n"), None);
    }

    #[test]
    fn the_copy_is_a_workspace_without_a_package() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
        let table: toml::Table =
            small_workspace(&fs::read_to_string(root).unwrap()).unwrap().parse().unwrap();
        assert!(!table.contains_key("package") && !table.contains_key("dependencies"));
        assert_eq!(table["workspace"]["members"].as_array().unwrap().len(), FOLDERS.len());
        assert!(table["workspace"]["lints"].is_table() && table["profile"]["test"].is_table());
    }

    #[test]
    fn programs_are_read_from_cargo_messages() {
        let messages = "{\"reason\":\"compiler-artifact\",\"profile\":{\"test\":true},\"executable\":\"/t/a\"}\n\
            {\"reason\":\"compiler-artifact\",\"profile\":{\"test\":false},\"executable\":\"/t/b\"}\n\
            {\"reason\":\"compiler-artifact\",\"profile\":{\"test\":true},\"executable\":null}\nnot json\n";
        assert_eq!(test_programs(messages), ["/t/a"]);
    }
}
