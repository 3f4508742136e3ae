//! The programs that we are measured against.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::pip;
use crate::workspace::Workspace;

/// The compiler with its headers and runtime, and a CUB that is newer than CUDA 13.0's own.
const WHEELS: [&str; 5] = [
    "nvidia-cuda-nvcc==13.0.*",
    "nvidia-cuda-crt==13.0.*",
    "nvidia-cuda-runtime==13.0.*",
    "nvidia-nvvm==13.0.*",
    "nvidia-cuda-cccl==13.3.5.0.6",
];

/// Options of `cargo xtask peers`.
#[derive(clap::Args)]
pub struct Options {
    /// Architectures to build for, as sm_90 [default: sm_90]
    #[arg(long = "arch", value_name = "ARCH")]
    archs: Vec<String>,
    /// A folder with bin/nvcc, include/cccl and lib [default: PyPI's wheels, installed into target/nvcc]
    #[arg(long, value_name = "DIR")]
    cuda: Option<PathBuf>,
}

/// The programs, as `benches/peers/NAME.cu`: CUB's algorithms for whole devices, and for blocks.
const PROGRAMS: [&str; 2] = ["cub", "block"];

/// The programs' names, and where they lie once they are built.
pub fn programs(workspace: &Workspace) -> impl Iterator<Item = (&'static str, PathBuf)> {
    PROGRAMS.into_iter().map(|name| (name, workspace.target.join("peers").join(name)))
}

/// Builds the programs.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let cuda = match &options.cuda {
        Some(folder) => folder.clone(),
        None => installed(&workspace.target.join("nvcc"))?,
    };
    std::fs::create_dir_all(workspace.target.join("peers")).context("cannot create target/peers")?;
    for (name, program) in programs(workspace) {
        let mut command = Command::new(cuda.join("bin/nvcc"));
        command.args(["-O3", "-std=c++17", "--extended-lambda"]).args(targets(&options.archs)?);
        for include in ["include/cccl", "include"] {
            command.arg("-I").arg(cuda.join(include));
        }
        command
            .arg("-L")
            .arg(cuda.join("lib"))
            .arg("-o")
            .arg(&program)
            .arg(workspace.root.join(format!("benches/peers/{name}.cu")));
        let output = command
            .output()
            .with_context(|| format!("{} could not be started", cuda.join("bin/nvcc").display()))?;
        if !output.status.success() {
            bail!("{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
        }
        println!("built {}", program.display());
    }
    Ok(())
}

/// The wheels' folder, with the wheels in it.
fn installed(folder: &Path) -> Result<PathBuf> {
    let cuda = folder.join("nvidia/cu13");
    if !cuda.join("bin/nvcc").is_file() || !cuda.join("include/cccl").is_dir() {
        println!("no nvcc: installing {} into {}", WHEELS.join(" "), folder.display());
        pip::install(folder, &WHEELS)?;
    }
    ensure!(cuda.join("bin/nvcc").is_file(), "the wheels brought no {}", cuda.join("bin/nvcc").display());
    Ok(cuda)
}

/// nvcc's arguments for the architectures: machine code for each.
fn targets(archs: &[String]) -> Result<Vec<String>> {
    let default = ["sm_90".to_owned()];
    let archs = if archs.is_empty() { &default[..] } else { archs };
    let one = |arch: &String| {
        let number = arch.strip_prefix("sm_").unwrap_or(arch);
        ensure!(
            number.starts_with(|c: char| c.is_ascii_digit()),
            "`{arch}` is no architecture such as sm_90"
        );
        Ok(format!("-gencode=arch=compute_{number},code=sm_{number}"))
    };
    archs.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_become_gencode_arguments() {
        assert_eq!(targets(&[]).unwrap(), ["-gencode=arch=compute_90,code=sm_90"]);
        let two = targets(&["sm_80".into(), "90".into()]).unwrap();
        assert_eq!(two, ["-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90"]);
        assert!(targets(&["hopper".into()]).is_err());
    }
}
