//! What a machine with a GPU, a driver and no Rust needs to test and measure this workspace.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use warpfold_ptx_builder::ptxas;

use crate::workspace::Workspace;
use crate::{peers, setup, stub};

/// What a bundle may weigh.
const MAX_BYTES: u64 = 64 << 20;

/// Runs everything; part of every bundle.
const RUN: &str = include_str!("run.sh");

/// Options of `cargo xtask gpu-bundle`.
#[derive(clap::Args)]
pub struct Options {
    /// Where to put it [default: target/gpu-bundle]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Leave out the benches
    #[arg(long)]
    no_benches: bool,
}

/// Runs `cargo xtask gpu-bundle`.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let ptxas = setup::run(workspace, &mut |line| println!("{line}"))?;
    let stub = stub::build(workspace, None)?;
    let out = options.out.clone().unwrap_or_else(|| workspace.target.join("gpu-bundle"));
    if out.exists() {
        // Only what is a bundle is replaced.
        ensure!(out.join("run.sh").is_file(), "{} exists and is no bundle: remove it first", out.display());
        fs::remove_dir_all(&out).with_context(|| format!("cannot remove {}", out.display()))?;
    }
    let bin = out.join("bin");
    fs::create_dir_all(&bin).with_context(|| format!("cannot create {}", bin.display()))?;
    // First of all, so that what a failed build leaves is known for a bundle by the next.
    write_script(&out)?;

    let cargo = |arguments: &[&str]| {
        let mut command = workspace.cargo(arguments);
        command.args([
            "--features",
            "cuda,machine-code",
            "--package",
            "warpfold",
            "--message-format",
            "json-render-diagnostics",
        ]);
        command.env("CUDA_LIBRARY_PATH", &stub.root);
        setup::name_ptxas(workspace, &ptxas, &mut command);
        command
    };
    let mut programs = Vec::new();
    programs.extend(executables(&mut cargo(&["build", "--release", "--bin", "warpfold"]), "bin", "")?);
    programs.extend(executables(
        &mut cargo(&["test", "--release", "--no-run", "--test", "*", "--features", "every-operator"]),
        "test",
        "test-",
    )?);
    programs.extend(examples(workspace, &stub.root, &ptxas)?);
    let benches = !options.no_benches && workspace.has_target("warpfold", "bench");
    if benches {
        programs.extend(executables(&mut cargo(&["bench", "--no-run", "--bench", "*"]), "bench", "bench-")?);
    }
    for (name, program) in peers::programs(workspace) {
        match program.is_file() {
            true => programs.push((format!("peer-{name}"), program)),
            false => println!("no peer-{name} in the bundle: `cargo xtask peers` builds it"),
        }
    }
    for (name, path) in &programs {
        strip(path, &bin.join(name))?;
    }
    copy_folder(&workspace.root.join("data"), &out.join("data"))?;

    let files = sizes(&out)?;
    for (path, bytes) in &files {
        println!("{:>10.2} MiB  {}", mebibytes(*bytes), path.strip_prefix(&out).unwrap_or(path).display());
    }
    let total: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    println!("{:>10.2} MiB  in all, in {}", mebibytes(total), out.display());
    ensure!(
        total <= MAX_BYTES,
        "the bundle weighs {:.2} MiB and may weigh {:.0}: leave out the benches (--no-benches), or build for fewer architectures",
        mebibytes(total),
        mebibytes(MAX_BYTES)
    );
    println!("on the GPU machine: ./run.sh [all|test|bench|peers|sanitize]");
    Ok(())
}

/// The tests of the projects in examples/, each a workspace of its own, built for GPUs.
fn examples(workspace: &Workspace, stub: &Path, ptxas: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut programs = Vec::new();
    for folder in workspace.examples()? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = workspace.cargo(&["test", "--release", "--no-run", "--features", "cuda"]);
        command.args(["--message-format", "json-render-diagnostics"]).current_dir(&folder);
        command.env("CARGO_TARGET_DIR", workspace.target.join("examples"));
        // They bring kernels of their own.
        command.env("CUDA_LIBRARY_PATH", stub).env("WARPFOLD_WITHOUT_KERNELS", "1");
        command.env(ptxas::VARIABLE, ptxas);
        println!("in examples/{name}:");
        programs.extend(executables(&mut command, "test", &format!("test-{name}-"))?);
    }
    Ok(programs)
}

/// Puts `run.sh` into the bundle.
fn write_script(out: &Path) -> Result<()> {
    let script = out.join("run.sh");
    fs::write(&script, RUN).context("cannot write run.sh")?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))
        .context("cannot make run.sh executable")?;
    Ok(())
}

/// Runs cargo and returns the executables of `kind` that it made, with their names in the bundle.
fn executables(command: &mut Command, kind: &str, prefix: &str) -> Result<Vec<(String, PathBuf)>> {
    println!(
        "{}",
        command.get_args().map(|argument| argument.to_string_lossy()).collect::<Vec<_>>().join(" ")
    );
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cargo could not be started")?;
    if !output.status.success() {
        bail!("{command:?} ended with {}", output.status);
    }
    let found = parse_executables(&String::from_utf8_lossy(&output.stdout), kind, prefix);
    ensure!(!found.is_empty(), "{command:?} made no executable of kind {kind}");
    Ok(found)
}

fn parse_executables(messages: &str, kind: &str, prefix: &str) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let target = &message["target"];
        let kinds = target["kind"].as_array().into_iter().flatten();
        let Some(executable) = message["executable"].as_str() else { continue };
        if kinds.into_iter().any(|each| each == kind) {
            found.push((
                format!("{prefix}{}", target["name"].as_str().unwrap_or("?")),
                PathBuf::from(executable),
            ));
        }
    }
    found
}

/// Copies a program without its symbols and debug information.
fn strip(from: &Path, to: &Path) -> Result<()> {
    let output = Command::new("strip").arg("-o").arg(to).arg(from).output();
    let output = output.context("`strip` could not be started (Debian: apt-get install -y binutils)")?;
    if !output.status.success() {
        bail!("strip {}: {}", from.display(), String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let (path, target) = (entry?.path(), to);
        let target = target.join(path.file_name().context("an entry without a name")?);
        if path.is_dir() {
            copy_folder(&path, &target)?;
        } else {
            fs::copy(&path, &target).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    Ok(())
}

/// Every file below a folder with its size, sorted by path.
fn sizes(folder: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(sizes(&path)?);
        } else {
            files.push((path.clone(), fs::metadata(&path)?.len()));
        }
    }
    files.sort();
    Ok(files)
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_of_the_kind_asked_for_are_found() {
        let messages = r#"
{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"warpfold"},"executable":null}
{"reason":"compiler-artifact","target":{"kind":["bin"],"name":"warpfold"},"executable":"/t/release/warpfold"}
{"reason":"compiler-artifact","target":{"kind":["test"],"name":"gpu"},"executable":"/t/release/deps/gpu-1"}
{"reason":"build-finished","success":true}
not json"#;
        let found = parse_executables(messages, "test", "test-");
        assert_eq!(found, [("test-gpu".to_owned(), PathBuf::from("/t/release/deps/gpu-1"))]);
    }

    #[test]
    fn folders_are_copied_and_weighed() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("deep")).unwrap();
        fs::write(from.join("deep/a"), "12345").unwrap();
        fs::write(from.join("b"), "1").unwrap();
        copy_folder(&from, &to).unwrap();
        assert_eq!(sizes(&to).unwrap(), [(to.join("b"), 1), (to.join("deep/a"), 5)]);
        copy_folder(&folder.path().join("absent"), &to).unwrap();
    }

    #[test]
    fn the_script_is_sound_bash() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("run.sh");
        fs::write(&script, RUN).unwrap();
        assert!(Command::new("bash").arg("-n").arg(&script).status().unwrap().success());
        // A stand-in for a bundle: one test that demands its variables, one that fails.
        let program = |name: &str, text: &str| {
            let path = folder.path().join("bin").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        program("warpfold", "exit 0");
        program(
            "test-a",
            "[ \"$WARPFOLD_REQUIRE_GPU\" = 1 ] && [ -n \"$WARPFOLD_DATA\" ] && echo \"ran $1\"",
        );
        let go = |what: &str| Command::new("bash").arg(&script).args([what, "some_filter"]).output().unwrap();
        let good = go("test");
        assert!(good.status.success());
        assert!(String::from_utf8_lossy(&good.stdout).contains("ran some_filter"));
        assert!(folder.path().join("out/test-a.log").is_file());
        program("test-b", "exit 3");
        let bad = go("test");
        assert_eq!(bad.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&bad.stdout).contains("FAILED: test-b"));
        assert_eq!(go("nonsense").status.code(), Some(2));
    }
}
