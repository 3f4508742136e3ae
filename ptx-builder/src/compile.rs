//! The inner cargo: which files a kernel crate is made of, and its bitcode.

use std::collections::{BTreeSet, HashMap};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::toolchain::Toolchain;
use crate::{Arch, Error};

/// The device target.
pub(crate) const TARGET: &str = "nvptx64-nvidia-cuda";

/// Settings of cargo itself (where crates come from, colours) that the inner cargo shares with the outer one.
const KEPT: [&str; 7] = [
    "CARGO_HOME",
    "CARGO_NET_",
    "CARGO_HTTP_",
    "CARGO_TERM_",
    "CARGO_REGISTR",
    "CARGO_SOURCE_",
    "CARGO_CACHE_",
];

/// Removes what an outer cargo, rustup or the user set for the host's build.
pub(crate) fn clean_environment(command: &mut Command) {
    let kept = |name: &str| KEPT.iter().any(|prefix| name.starts_with(prefix));
    let foreign = |name: &str| {
        (name.starts_with("CARGO") && !kept(name))
            || (name.starts_with("RUSTC") || name.starts_with("RUSTDOC") || name.starts_with("CLIPPY_"))
            || matches!(
                name,
                "RUSTFLAGS"
                    | "RUSTUP_TOOLCHAIN"
                    | "RUST_RECURSION_COUNT"
                    | "__CARGO_FIX_PLZ"
                    | "TARGET"
                    | "HOST"
                    | "OUT_DIR"
                    | "PROFILE"
                    | "OPT_LEVEL"
                    | "DEBUG"
                    | "NUM_JOBS"
                    | "MAKEFLAGS"
                    | "MFLAGS"
            )
    };
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(foreign) {
            command.env_remove(name);
        }
    }
    // The outer toolchain's own libraries must not be loaded into another rustc.
    if let Some(list) = env::var_os("LD_LIBRARY_PATH") {
        let foreign = |folder: &PathBuf| {
            fs::read_dir(folder).is_ok_and(|mut entries| {
                entries
                    .any(|e| e.is_ok_and(|e| e.file_name().to_string_lossy().starts_with("librustc_driver")))
            })
        };
        let rest = env::split_paths(&list).filter(|folder| !foreign(folder));
        match env::join_paths(rest) {
            Ok(list) if !list.is_empty() => command.env("LD_LIBRARY_PATH", list),
            _ => command.env_remove("LD_LIBRARY_PATH"),
        };
    }
}

/// A cargo of the device toolchain with a clean environment, run in the kernel crate's folder.
fn cargo(toolchain: &Toolchain, folder: &Path) -> Command {
    let mut command = Command::new(&toolchain.cargo);
    clean_environment(&mut command);
    command
        .current_dir(folder)
        .env("RUSTC", &toolchain.rustc)
        .env("RUSTC_BOOTSTRAP", "1")
        // Set but empty: configuration files may name wrappers and flags meant for the host.
        .env("RUSTC_WRAPPER", "")
        .env("RUSTC_WORKSPACE_WRAPPER", "")
        .env("CARGO_ENCODED_RUSTFLAGS", "");
    command
}

/// How the kernel crate is built, whatever the architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Profile {
    pub release: bool,
    pub default_features: bool,
    pub features: Vec<String>,
    pub immediate_abort: bool,
    /// Of the kernel crate.
    pub opt_level: u8,
    /// The groups that become modules, if not all.
    pub groups: Option<Vec<String>>,
}

impl Profile {
    fn feature_arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        if !self.default_features {
            arguments.push("--no-default-features".to_owned());
        }
        if !self.features.is_empty() {
            arguments.push(format!("--features={}", self.features.join(",")));
        }
        arguments
    }
}

/// What `cargo metadata` says about the kernel crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelCrate {
    pub name: String,
    /// The library's file stem.
    pub library: String,
    /// Files and folders whose change asks for a rebuild: those of the crate and of its path dependencies.
    pub inputs: Vec<PathBuf>,
}

/// Asks cargo about the kernel crate in `folder`.
pub(crate) fn describe(
    toolchain: &Toolchain,
    folder: &Path,
    profile: &Profile,
) -> Result<KernelCrate, Error> {
    let manifest = folder.join("Cargo.toml");
    let manifest = manifest.canonicalize().map_err(|source| Error::io("read", &manifest, source))?;
    let mut command = cargo(toolchain, folder);
    command.args(["metadata", "--format-version", "1", "--filter-platform", TARGET]);
    command.args(profile.feature_arguments()).arg("--manifest-path").arg(&manifest);
    let output =
        command.stderr(Stdio::piped()).output().map_err(|e| Error::io("run", &toolchain.cargo, e))?;
    let refused = |reason: String| Error::KernelCrate { folder: folder.to_path_buf(), reason };
    if !output.status.success() {
        return Err(refused(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let metadata: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| refused(error.to_string()))?;
    parse_metadata(&metadata, &manifest).map_err(refused)
}

fn parse_metadata(metadata: &Value, manifest: &Path) -> Result<KernelCrate, String> {
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages: HashMap<String, Value> = items(&metadata["packages"])
        .into_iter()
        .filter_map(|package| Some((package["id"].as_str()?.to_owned(), package)))
        .collect();
    let root = packages
        .iter()
        .find(|(_, package)| {
            package["manifest_path"].as_str().is_some_and(|path| Path::new(path) == manifest)
        })
        .ok_or("it is no package (a workspace root without one?)")?;
    let is_library = |target: &Value| {
        let kinds = ["lib", "rlib", "cdylib", "dylib", "staticlib"];
        items(&target["kind"]).iter().any(|kind| kind.as_str().is_some_and(|kind| kinds.contains(&kind)))
    };
    let library = items(&root.1["targets"]).into_iter().find(is_library).ok_or("it has no library target")?;
    let library = library["name"].as_str().unwrap_or_default().replace('-', "_");

    let mut edges: HashMap<String, Vec<String>> = HashMap::new();
    for node in items(&metadata["resolve"]["nodes"]) {
        let id = node["id"].as_str().unwrap_or_default().to_owned();
        let is_used =
            |dep: &Value| items(&dep["dep_kinds"]).iter().any(|kind| kind["kind"].as_str() != Some("dev"));
        let deps = items(&node["deps"]).into_iter().filter(is_used);
        edges.insert(id, deps.filter_map(|dep| Some(dep["pkg"].as_str()?.to_owned())).collect());
    }
    let (mut todo, mut seen, mut inputs) = (vec![root.0.clone()], BTreeSet::new(), BTreeSet::new());
    while let Some(id) = todo.pop() {
        if !seen.insert(id.clone()) {
            continue;
        }
        todo.extend(edges.get(&id).cloned().unwrap_or_default());
        let Some(package) = packages.get(&id).filter(|package| package["source"].is_null()) else { continue };
        inputs.extend(package["manifest_path"].as_str().map(PathBuf::from));
        for target in items(&package["targets"]) {
            let kinds = items(&target["kind"]);
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            if kinds.iter().any(|kind| matches!(*kind, "test" | "bench" | "example" | "bin")) {
                continue;
            }
            let Some(source) = target["src_path"].as_str().map(PathBuf::from) else { continue };
            let package_folder = package["manifest_path"].as_str().map(Path::new).and_then(Path::parent);
            match source.parent() {
                // A root file beside the manifest (build.rs): not the whole folder, which may hold `target`.
                Some(parent) if Some(parent) != package_folder => inputs.insert(parent.to_path_buf()),
                _ => inputs.insert(source),
            };
        }
    }
    if let Some(workspace) = metadata["workspace_root"].as_str().map(Path::new) {
        let files = ["Cargo.toml", "Cargo.lock"].map(|file| workspace.join(file));
        inputs.extend(files.into_iter().filter(|file| file.is_file()));
    }
    Ok(KernelCrate {
        name: root.1["name"].as_str().unwrap_or_default().to_owned(),
        library,
        inputs: inputs.into_iter().collect(),
    })
}

/// Bitcode of a kernel crate and what it stands on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bitcode {
    /// The kernel crate's own objects.
    pub own: Vec<PathBuf>,
    /// The rlibs of its dependencies.
    pub dependencies: Vec<PathBuf>,
    /// `core` and its helpers, compiled once for all architectures.
    pub core: Vec<PathBuf>,
}

/// What stands in for a linker: it keeps the objects (rustc deletes them afterwards) and the paths of the rlibs.
const KEEP_INPUTS: &str = r#"#!/bin/sh
# Called by rustc as the linker of a kernel crate: keeps what it is given for the real link.
set -e
kept="${0%/*}/kept"
rm -rf "$kept"
mkdir -p "$kept"
out=
for argument in "$@"; do
    case "$argument" in
        *.o) cp "$argument" "$kept/" ;;
        *.rlib) printf '%s\n' "$argument" >>"$kept/rlibs" ;;
    esac
    if [ "$previous" = -o ]; then out="$argument"; fi
    previous="$argument"
done
: >"$out"
printf '%s\n' "$out" >"$kept/done"
"#;

/// Held by who looks after cargo's output and has cargo write it.
static TURN: Mutex<()> = Mutex::new(());

/// Compiles the kernel crate for one architecture. `folder` is this variant's own; `target_dir` is shared.
pub(crate) fn compile(
    toolchain: &Toolchain,
    crate_folder: &Path,
    description: &KernelCrate,
    profile: &Profile,
    arch: Arch,
    folder: &Path,
    target_dir: &Path,
) -> Result<Bitcode, Error> {
    let linker = folder.join("keep-inputs.sh");
    write_script(&linker)?;
    let kept = folder.join("kept");
    let profile_name = if profile.release { "release" } else { "dev" };
    let output_folder = target_dir.join(TARGET).join(if profile.release { "release" } else { "debug" });
    // Builds with other features write the same output, so that it may not be taken for this one's.
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if !kept.join("done").is_file() {
        // What cargo thinks is fresh would not be linked again, and our copy of the objects is gone: a missing
        // output makes cargo call the linker.
        let output = output_folder.join("deps").join(format!("{}.ptx", description.library));
        match fs::remove_file(&output) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &output, error));
            }
            _ => {}
        }
    }

    let mut command = cargo(toolchain, crate_folder);
    command.args(["rustc", "--lib", "--crate-type", "cdylib", "--target", TARGET, "-Zbuild-std=core"]);
    command.args(["--profile", profile_name]).args(profile.feature_arguments());
    command.arg("--manifest-path").arg(crate_folder.join("Cargo.toml")).arg("--target-dir").arg(target_dir);
    // Flags go through the profile, so that `core`, by far the largest crate, is built once and not for each
    // architecture. The kernel crate and its dependencies stay unoptimised here: LLVM must not reason about
    // shared statics before they are in their own address space, where it knows that other threads write them. Nor is
    // `core` optimised: the few functions that a group takes of it are optimised with the group.
    let mut settings = vec![
        "opt-level=3".to_owned(),
        "debug=0".to_owned(),
        "lto=\"off\"".to_owned(),
        "codegen-units=1".to_owned(),
        "incremental=false".to_owned(),
        format!("panic=\"{}\"", if profile.immediate_abort { "immediate-abort" } else { "abort" }),
        // To rustc a barrier is a call like any other: where what is known before it decides a branch behind it, its jump
        // threading makes one barrier of each way, and a warp whose threads go both waits for itself for ever.
        format!(
            "rustflags=[\"-Ctarget-cpu={arch}\",\"-Cno-prepopulate-passes\",\"-Zmir-enable-passes=-JumpThreading\"]"
        ),
        // What the workspace says of the crate is about its build for the host.
        format!("package.\"{}\".opt-level={}", description.name, profile.opt_level),
        "package.core.rustflags=[\"-Cno-prepopulate-passes\"]".to_owned(),
        "package.compiler_builtins.rustflags=[\"-Cno-prepopulate-passes\"]".to_owned(),
    ];
    // Build scripts and proc macros run on the host and see none of the above.
    settings.push("build-override.rustflags=[]".to_owned());
    for setting in settings {
        command.arg("--config").arg(format!("profile.{profile_name}.{setting}"));
    }
    command.args(["-Zprofile-rustflags", "-Zpanic-immediate-abort"]);
    command.arg("--").arg(format!("-Clinker={}", linker.display()));
    // Standard output of a build script is cargo's protocol; standard error is the user's.
    let status = command.stdout(Stdio::null()).status().map_err(|e| Error::io("run", &toolchain.cargo, e))?;
    drop(turn);
    if !status.success() {
        return Err(Error::Compile { name: description.name.clone(), arch, status: status.to_string() });
    }
    if !kept.join("done").is_file() {
        return Err(Error::KernelCrate {
            folder: crate_folder.to_path_buf(),
            reason: format!("cargo succeeded without linking it (looked in {})", kept.display()),
        });
    }
    read_kept(&kept)
}

fn write_script(path: &Path) -> Result<(), Error> {
    if fs::read_to_string(path).is_ok_and(|text| text == KEEP_INPUTS) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|source| Error::io("create", folder, source))?;
    fs::write(path, KEEP_INPUTS).map_err(|source| Error::io("write", path, source))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(path, mode).map_err(|source| Error::io("make executable", path, source))?;
    }
    Ok(())
}

fn read_kept(kept: &Path) -> Result<Bitcode, Error> {
    let mut bitcode = Bitcode::default();
    let entries = fs::read_dir(kept).map_err(|source| Error::io("read", kept, source))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension() == Some(OsStr::new("o")) {
            bitcode.own.push(path);
        }
    }
    bitcode.own.sort();
    // rustc names compiler_builtins twice; a crate without dependencies still has core.
    let rlibs = fs::read_to_string(kept.join("rlibs")).unwrap_or_default();
    for rlib in rlibs.lines().map(PathBuf::from) {
        let name = rlib.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_core = ["libcore-", "libcompiler_builtins-"].iter().any(|prefix| name.starts_with(prefix));
        let list = if is_core { &mut bitcode.core } else { &mut bitcode.dependencies };
        if !list.contains(&rlib) {
            list.push(rlib);
        }
    }
    Ok(bitcode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_those_of_path_dependencies_only() {
        let package = |name: &str, path: &str, source: Option<&str>, kind: &str| {
            serde_json::json!({
                "id": name, "name": name, "source": source, "manifest_path": format!("{path}/Cargo.toml"),
                "targets": [
                    {"name": name, "kind": [kind], "src_path": format!("{path}/src/lib.rs")},
                    {"name": "t", "kind": ["test"], "src_path": format!("{path}/tests/t.rs")},
                    {"name": "build-script-build", "kind": ["custom-build"], "src_path": format!("{path}/build.rs")},
                ],
            })
        };
        let dep =
            |name: &str, kind: Option<&str>| serde_json::json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = serde_json::json!({
            "workspace_root": "/no/such/workspace",
            "packages": [
                package("my-kernels", "/w/k", None, "lib"), package("simt", "/w/simt", None, "lib"),
                package("macros", "/w/macros", None, "proc-macro"), package("half", "/r/half", Some("registry"), "lib"),
                package("tester", "/w/tester", None, "lib"), package("other", "/w/other", None, "lib"),
            ],
            "resolve": {"nodes": [
                {"id": "my-kernels", "deps": [dep("simt", None), dep("half", None), dep("tester", Some("dev"))]},
                {"id": "simt", "deps": [dep("macros", None)]}, {"id": "other", "deps": [dep("my-kernels", None)]},
            ]},
        });
        let found = parse_metadata(&metadata, Path::new("/w/k/Cargo.toml")).unwrap();
        assert_eq!((found.name.as_str(), found.library.as_str()), ("my-kernels", "my_kernels"));
        let mut expected: Vec<PathBuf> = Vec::new();
        for package in ["k", "macros", "simt"] {
            expected.extend(
                ["Cargo.toml", "build.rs", "src"].map(|file| Path::new("/w").join(package).join(file)),
            );
        }
        assert_eq!(found.inputs, expected);
        assert!(parse_metadata(&metadata, Path::new("/w/none/Cargo.toml")).is_err());
    }
}
