//! NVIDIA's assembler: finding it, calling it, reading its report.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Arch, Error};

/// The environment variable that names `ptxas`.
pub const VARIABLE: &str = "WARPFOLD_PTXAS";

/// Finds `ptxas`: the file that the variable [`VARIABLE`] names, else the first on `PATH`, else
/// `/usr/local/cuda/bin/ptxas`, else `nvidia/cu13/bin/ptxas` somewhere below one of `folders` (where the PyPI wheel
/// `nvidia-cuda-nvcc` puts it).
///
/// The variable, when set and not empty, is taken at its word: if no such file exists, the answer is `None`.
///
/// ```
/// let nowhere = std::env::temp_dir().join("no such folder");
/// if let Some(ptxas) = warpfold_ptx_builder::ptxas::find(&[nowhere]) {
///     assert!(ptxas.is_file());
/// }
/// ```
pub fn find(folders: &[PathBuf]) -> Option<PathBuf> {
    let exe = format!("ptxas{}", env::consts::EXE_SUFFIX);
    if let Some(named) = env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        return Some(PathBuf::from(named)).filter(|path| path.is_file());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|folder| folder.join(&exe));
    let fixed = PathBuf::from("/usr/local/cuda/bin").join(&exe);
    let found = on_path.chain([fixed]).find(|path| path.is_file());
    // A wheel lies at most this deep in a virtual environment: <venv>/lib/python3.x/site-packages/nvidia/...
    found.or_else(|| {
        folders.iter().find_map(|folder| below(folder, &Path::new("nvidia/cu13/bin").join(&exe), 5))
    })
}

fn below(folder: &Path, tail: &Path, depth: u32) -> Option<PathBuf> {
    let here = folder.join(tail);
    if here.is_file() {
        return Some(here);
    }
    if depth == 0 {
        return None;
    }
    let mut folders: Vec<PathBuf> = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    folders.iter().find_map(|folder| below(folder, tail, depth - 1))
}

/// What one function takes of a multiprocessor, as `ptxas -v` reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resources {
    /// The function's name.
    pub function: String,
    /// Whether it is an entry point; else it is a function that entries call.
    pub is_entry: bool,
    /// Registers a thread (0 for functions that are not entries).
    pub registers: u32,
    /// Static shared memory a block, in bytes.
    pub shared_bytes: u32,
    /// Stack a thread, in bytes: the function's own frame or, where reported and larger, with its callees'.
    pub stack_bytes: u32,
    /// Bytes stored because registers ran out.
    pub spill_store_bytes: u32,
    /// Bytes loaded back.
    pub spill_load_bytes: u32,
    /// Barriers that a block uses.
    pub barriers: u32,
}

/// Assembles `ptx` for `arch` into `cubin` and returns the report.
pub(crate) fn assemble(ptxas: &Path, ptx: &Path, arch: Arch, cubin: &Path) -> Result<Vec<Resources>, Error> {
    let mut command = Command::new(ptxas);
    command.args(["-v", "-O3"]).arg(format!("-arch={arch}")).arg("-o").arg(cubin).arg(ptx);
    let output = command.output().map_err(|source| Error::io("run", ptxas, source))?;
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        return Err(Error::Assemble { ptx: ptx.to_path_buf(), arch, message: text.trim().to_owned() });
    }
    Ok(parse_report(&text))
}

/// The number before `unit` in a comma-separated list such as `Used 16 registers, 128 bytes smem`.
fn number(text: &str, unit: &str) -> Option<u32> {
    let part = text.split(',').find(|part| part.trim_end().ends_with(unit))?;
    part.trim_end().strip_suffix(unit)?.split_whitespace().next_back()?.parse().ok()
}

/// Reads the report of `ptxas -v`.
pub(crate) fn parse_report(report: &str) -> Vec<Resources> {
    let mut found: Vec<Resources> = Vec::new();
    let mut entry = String::new();
    for line in report.lines() {
        let text =
            line.split_once("ptxas info").map_or(line, |(_, text)| text.trim_start_matches([' ', ':']));
        if let Some(rest) = text.strip_prefix("Compiling entry function '") {
            entry = rest.split('\'').next().unwrap_or("").to_owned();
        } else if let Some(name) = text.strip_prefix("Function properties for ") {
            let function = name.trim().to_owned();
            let is_entry = function == entry;
            found.push(Resources { function, is_entry, ..Resources::default() });
        } else if let (Some(stack), Some(last)) = (number(text, "bytes stack frame"), found.last_mut()) {
            last.stack_bytes = stack;
            last.spill_store_bytes = number(text, "bytes spill stores").unwrap_or(0);
            last.spill_load_bytes = number(text, "bytes spill loads").unwrap_or(0);
        } else if let Some(registers) = number(text, "registers") {
            // Belongs to the entry being compiled, even where a callee's properties came in between.
            if let Some(last) = found.iter_mut().rev().find(|function| function.function == entry) {
                last.registers = registers;
                last.shared_bytes = number(text, "bytes smem").unwrap_or(0);
                last.barriers = number(text, "barriers").unwrap_or(0);
                last.stack_bytes =
                    last.stack_bytes.max(number(text, "bytes cumulative stack size").unwrap_or(0));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_read() {
        let report = "ptxas info    : 0 bytes gmem\n\
            ptxas info    : Compiling entry function 'sum__one' for 'sm_90'\n\
            ptxas info    : Function properties for sum__one\n    \
            8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n\
            ptxas info    : Function properties for helper\n    \
            24 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
            ptxas info    : Used 17 registers, used 1 barriers, 32 bytes cumulative stack size, 128 bytes smem, 380 bytes cmem[0]\n\
            ptxas info    : Compile time = 2.5 ms\n\
            ptxas info    : Compiling entry function 'plain' for 'sm_90'\n\
            ptxas info    : Function properties for plain\n    \
            0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
            ptxas info    : Used 4 registers, used 0 barriers, 360 bytes cmem[0]\n";
        let found = parse_report(report);
        let names: Vec<_> = found.iter().map(|f| (f.function.as_str(), f.is_entry, f.stack_bytes)).collect();
        assert_eq!(names, [("sum__one", true, 32), ("helper", false, 24), ("plain", true, 0)]);
        let one = &found[0];
        assert_eq!((one.registers, one.shared_bytes, one.barriers), (17, 128, 1));
        assert_eq!((one.spill_store_bytes, one.spill_load_bytes), (4, 12));
        assert_eq!((found[2].registers, found[2].shared_bytes), (4, 0));
    }

    #[test]
    fn a_wheel_is_found_below_a_folder() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("venv/lib/python3.11/site-packages/nvidia/cu13/bin");
        assert_eq!(below(root.path(), Path::new("nvidia/cu13/bin/ptxas"), 5), None);
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join("ptxas"), "").unwrap();
        assert_eq!(below(root.path(), Path::new("nvidia/cu13/bin/ptxas"), 5), Some(bin.join("ptxas")));
    }
}
