//! Wheels from PyPI, unpacked into a folder of the target folder.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::setup::{apt_install, has_apt};

/// Installs the named requirements, without what they depend on, into `folder`.
pub fn install(folder: &Path, requirements: &[&str]) -> Result<()> {
    if !answers("python3", &["-m", "pip", "--version"]) {
        if !has_apt() {
            bail!("python3 with pip is needed for {requirements:?}: install it, or put the tool on PATH");
        }
        apt_install(&["python3-pip"])?;
    }
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]);
    command.args(["--root-user-action", "ignore", "--upgrade", "--target"]).arg(folder).args(requirements);
    let output = command.output().context("python3 could not be started")?;
    if !output.status.success() {
        bail!("{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// Whether the program starts and succeeds.
pub fn answers(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}
