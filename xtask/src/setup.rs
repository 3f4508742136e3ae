//! Installs what building kernels takes, where it is missing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use warpfold_ptx_builder::{ptxas, toolchain::Toolchain};

use crate::pip;
use crate::workspace::Workspace;

/// Debian's packages: rustc and cargo of 1.96 or later, the sources of `core`, LLVM's tools. Cargo comes as a
/// recommendation of rustc's, which not every machine follows.
const PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "rust-web-llvm"];

/// The wheel that holds `ptxas`.
const PTXAS_WHEEL: &str = "nvidia-cuda-nvcc==13.0.*";

/// Finds the tools, installs those that are missing, and says in a line what is there. Returns `ptxas`.
pub fn run(workspace: &Workspace, say: &mut dyn FnMut(String)) -> Result<PathBuf> {
    let toolchain = match Toolchain::find() {
        Ok(found) => found,
        Err(missing)
            if std::env::var_os(warpfold_ptx_builder::toolchain::VARIABLE).is_none() && has_apt() =>
        {
            say(format!("no device toolchain: installing {}", PACKAGES.join(" ")));
            apt_install(&PACKAGES).with_context(|| missing.to_string())?;
            Toolchain::find()?
        }
        Err(missing) => return Err(missing.into()),
    };
    let folders = [workspace.target.join("ptxas")];
    let ptxas = match ptxas::find(&folders) {
        Some(found) => found,
        None => {
            say(format!("no ptxas: installing the wheel {PTXAS_WHEEL} into {}", folders[0].display()));
            pip::install(&folders[0], &[PTXAS_WHEEL])?;
            ptxas::find(&folders).with_context(|| {
                let variable = ptxas::VARIABLE;
                format!("there is still no ptxas in {}, nor where {variable} says", folders[0].display())
            })?
        }
    };
    let (rustc, version, llvm) = (toolchain.rustc.display(), toolchain.version, toolchain.llvm);
    say(format!("device toolchain: rustc {version} ({rustc}), LLVM {llvm}; ptxas: {}", ptxas.display()));
    Ok(ptxas)
}

/// Tells the build script which `ptxas` to use, where it would not find it itself: it looks into `target/ptxas`.
pub fn name_ptxas(workspace: &Workspace, ptxas: &Path, command: &mut Command) {
    if workspace.target != workspace.root.join("target") {
        command.env(ptxas::VARIABLE, ptxas);
    }
}

/// Whether Debian's package manager is there.
pub fn has_apt() -> bool {
    pip::answers("apt-get", &["--version"])
}

/// Installs Debian packages, through sudo unless this is root already.
pub fn apt_install(packages: &[&str]) -> Result<()> {
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    let prefix: &[&str] = match (root, pip::answers("sudo", &["-n", "true"])) {
        (true, _) => &[],
        (false, true) => &["sudo", "-n"],
        (false, false) => bail!(
            "neither root nor sudo without a password; run this yourself:\n    sudo apt-get update && sudo apt-get install -y {}",
            packages.join(" ")
        ),
    };
    for arguments in [vec!["update"], [vec!["install", "-y"], packages.to_vec()].concat()] {
        let line = [prefix, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"], &arguments].concat();
        let output = Command::new(line[0]).args(&line[1..]).stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("`{}` could not be started", line.join(" ")))?;
        if !output.status.success() {
            bail!("`{}` failed:\n{}", line.join(" "), String::from_utf8_lossy(&output.stderr));
        }
    }
    Ok(())
}
