//! What cargo knows of this workspace.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The workspace's folders and packages.
pub struct Workspace {
    /// The folder of the root `Cargo.toml`.
    pub root: PathBuf,
    /// Where cargo puts what it builds.
    pub target: PathBuf,
    metadata: Value,
}

impl Workspace {
    /// Asks cargo, with every feature on, so that optional dependencies count.
    pub fn load() -> Result<Workspace> {
        // Cargo runs this program from wherever its user stands, which may be another workspace (examples/custom-op).
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
        let mut command = Command::new(cargo_path());
        command
            .args(["metadata", "--format-version", "1", "--all-features", "--manifest-path"])
            .arg(&manifest);
        let output = command.output().context("cargo metadata could not be started")?;
        if !output.status.success() {
            bail!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr));
        }
        let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
        let folder = |key: &str| {
            metadata[key].as_str().map(PathBuf::from).with_context(|| format!("cargo metadata has no {key}"))
        };
        Ok(Workspace { root: folder("workspace_root")?, target: folder("target_directory")?, metadata })
    }

    fn packages(&self) -> impl Iterator<Item = &Value> {
        self.metadata["packages"].as_array().into_iter().flatten()
    }

    /// The folder of a package's sources.
    pub fn package_folder(&self, name: &str) -> Result<PathBuf> {
        let package = self.packages().find(|package| package["name"] == name);
        let manifest = package.and_then(|package| package["manifest_path"].as_str());
        let manifest =
            manifest.with_context(|| format!("no package {name} among the workspace's dependencies"))?;
        Ok(Path::new(manifest).parent().expect("a manifest lies in a folder").to_path_buf())
    }

    fn own_packages(&self) -> impl Iterator<Item = &Value> {
        let members = self.metadata["workspace_members"].as_array();
        self.packages().filter(move |package| members.is_some_and(|members| members.contains(&package["id"])))
    }

    /// Whether a package has a target of this kind (`test`, `bench`, ...).
    pub fn has_target(&self, package: &str, kind: &str) -> bool {
        let package = self.packages().find(|each| each["name"] == package);
        let targets = package.and_then(|package| package["targets"].as_array()).into_iter().flatten();
        let mut kinds = targets.flat_map(|target| target["kind"].as_array().into_iter().flatten());
        kinds.any(|each| each == kind)
    }

    /// The names of the workspace's integration tests, sorted, each once.
    pub fn tests(&self) -> Vec<String> {
        let targets =
            self.own_packages().flat_map(|package| package["targets"].as_array().into_iter().flatten());
        let tests = targets
            .filter(|target| target["kind"].as_array().is_some_and(|kinds| kinds.contains(&"test".into())));
        let mut names: Vec<String> =
            tests.filter_map(|test| test["name"].as_str().map(str::to_owned)).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The folders of the projects in examples/, each a workspace of its own; sorted.
    pub fn examples(&self) -> Result<Vec<PathBuf>> {
        let folder = self.root.join("examples");
        let mut examples = Vec::new();
        if folder.is_dir() {
            for entry in
                std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?
            {
                let path = entry?.path();
                if path.join("Cargo.toml").is_file() {
                    examples.push(path);
                }
            }
        }
        examples.sort();
        Ok(examples)
    }

    /// `cargo` with the workspace's root as its folder.
    pub fn cargo(&self, arguments: &[&str]) -> Command {
        cargo_in(&self.root, arguments)
    }
}

/// `cargo` with this folder as its own.
pub fn cargo_in(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(cargo_path());
    command.args(arguments).current_dir(folder).env("CARGO_TERM_COLOR", "never");
    command
}

fn cargo_path() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
