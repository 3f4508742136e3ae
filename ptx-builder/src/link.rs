//! From the bitcode of a kernel crate to PTX: link, rewrite, one module a group.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compile::{Bitcode, TARGET};
use crate::ir::{self, Group};
use crate::split::Module;
use crate::toolchain::Toolchain;
use crate::{Arch, Error};

/// Runs an LLVM tool; its standard error goes into the error.
fn tool<I: Into<OsString>>(
    toolchain: &Toolchain,
    name: &'static str,
    arguments: impl IntoIterator<Item = I>,
) -> Result<(), Error> {
    let path = toolchain.tool(name).unwrap_or(Path::new(name));
    let mut command = Command::new(path);
    command.args(arguments.into_iter().map(Into::into));
    let output = command.output().map_err(|source| Error::io("run", path, source))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Tool { tool: path.to_path_buf(), status: output.status.to_string(), message })
}

/// Unpacks the objects of rlibs into `folder`, one folder an rlib.
fn unpack(toolchain: &Toolchain, rlibs: &[PathBuf], folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut objects = Vec::new();
    for (index, rlib) in rlibs.iter().enumerate() {
        let folder = folder.join(index.to_string());
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &folder, error));
            }
            _ => {}
        }
        fs::create_dir_all(&folder).map_err(|source| Error::io("create", &folder, source))?;
        let output = format!("--output={}", folder.display());
        tool(toolchain, "llvm-ar", [OsString::from("x"), output.into(), rlib.into()])?;
        let entries = fs::read_dir(&folder).map_err(|source| Error::io("read", &folder, source))?;
        let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        found.retain(|path| path.extension().is_some_and(|extension| extension == "o"));
        found.sort();
        objects.extend(found);
    }
    Ok(objects)
}

fn link(toolchain: &Toolchain, objects: &[PathBuf], output: &Path) -> Result<(), Error> {
    let arguments = [OsString::from("-o"), output.into()].into_iter();
    tool(toolchain, "llvm-link", arguments.chain(objects.iter().map(OsString::from)))
}

/// The linked kernels for one architecture, shared statics in their address space.
#[derive(Debug)]
pub(crate) struct Linked {
    pub module: Module,
    pub groups: Vec<Group>,
    pub allowances: BTreeMap<String, u32>,
    pub bounds: BTreeMap<String, u32>,
    pub zeroed: Vec<String>,
}

/// Links the bitcode of one architecture in `folder`.
pub(crate) fn link_kernels(
    toolchain: &Toolchain,
    bitcode: &Bitcode,
    arch: Arch,
    folder: &Path,
) -> Result<Linked, Error> {
    fs::create_dir_all(folder).map_err(|source| Error::io("create", folder, source))?;
    let own = match &bitcode.own[..] {
        [object] => object.clone(),
        objects => {
            let own = folder.join("own.bc");
            link(toolchain, objects, &own)?;
            own
        }
    };
    // What it stands on, as one module: of that, only what something calls is taken.
    let core = link_core(toolchain, &bitcode.core, folder.parent().unwrap_or(folder))?;
    let mut objects = unpack(toolchain, &bitcode.dependencies, &folder.join("dependencies"))?;
    objects.push(core);
    let rest = folder.join("rest.bc");
    link(toolchain, &objects, &rest)?;
    // As text, and with it what the crate exports: the option, which is about all modules but the first, has the linker take
    // nothing that nobody calls, so no kernel or static that only a dependency exports.
    let all = folder.join("all.ll");
    let only_needed = ["-S", "--only-needed", "-o"].map(OsString::from);
    tool(toolchain, "llvm-link", only_needed.into_iter().chain([&all, &own, &rest].map(OsString::from)))?;
    let text = fs::read_to_string(&all).map_err(|source| Error::io("read", &all, source))?;
    let groups = ir::groups(ir::entries(&text), &ir::exported_globals(&text));
    let allowances = ir::allowances(&text);
    let bounds = ir::launch_bounds(&text);
    let rewritten = ir::rewrite(&text, &arch.to_string())?;
    let module = Module::new(ir::bound_launches(&rewritten.text, &bounds));
    Ok(Linked { module, groups, allowances, bounds, zeroed: rewritten.zeroed })
}

/// `core` and its helpers as one module, kept in `folder` as long as the rlibs are the same files.
fn link_core(toolchain: &Toolchain, rlibs: &[PathBuf], folder: &Path) -> Result<PathBuf, Error> {
    let mut hasher = DefaultHasher::new();
    for rlib in rlibs {
        let data = fs::metadata(rlib).map_err(|source| Error::io("read", rlib, source))?;
        (rlib, data.len(), data.modified().ok()).hash(&mut hasher);
    }
    let module = folder.join(format!("core-{:016x}.bc", hasher.finish()));
    if !module.is_file() {
        let partial = folder.join("core-partial.bc");
        link(toolchain, &unpack(toolchain, rlibs, &folder.join("core"))?, &partial)?;
        fs::rename(&partial, &module).map_err(|source| Error::io("write", &module, source))?;
    }
    Ok(module)
}

/// The PTX ISA version asked for where nobody asks: 7.4 has the cache hints of loads, 7.8 knows sm_89 and sm_90.
pub(crate) fn least_ptx(arch: Arch) -> u32 {
    if arch.number() < 89 { 74 } else { 78 }
}

/// Optimises one group of the linked kernels and lowers it to PTX at `ptx`.
pub(crate) fn lower(
    toolchain: &Toolchain,
    linked: &Linked,
    group: &Group,
    arch: Arch,
    ptx_version: Option<u32>,
    ptx: &Path,
) -> Result<(), Error> {
    let (text, bitcode) = (ptx.with_extension("ll"), ptx.with_extension("bc"));
    let part = linked.module.part(group.entries.iter().chain(&group.globals));
    fs::write(&text, part).map_err(|source| Error::io("write", &text, source))?;
    let public = group.entries.iter().chain(&group.globals).cloned().collect::<Vec<_>>().join(",");
    let mut target = vec![format!("-mtriple={TARGET}"), format!("-mcpu={arch}")];
    // Architectures from sm_89 on need a later version anyway.
    let least = (arch.number() < 89).then(|| least_ptx(arch));
    if let Some(version) = ptx_version.or(least) {
        target.push(format!("-mattr=+ptx{version}"));
    }
    let mut arguments: Vec<OsString> = target.iter().map(OsString::from).collect();
    arguments.push("-passes=internalize,globaldce,default<O3>".into());
    // Loops over the lanes of a thread have constant ends, and must be unrolled for lanes to be registers, however
    // large the operator in them is.
    arguments.push("-unroll-threshold=3000".into());
    arguments.push(format!("-internalize-public-api-list={public}").into());
    arguments.extend([OsString::from("-o"), bitcode.clone().into(), text.clone().into()]);
    tool(toolchain, "opt", arguments)?;
    // No contraction of a * b + c: the host rounds twice, and so must the device.
    let mut arguments: Vec<OsString> = target.iter().map(OsString::from).collect();
    arguments.extend(["-O3", "-fp-contract=off", "-o"].map(OsString::from));
    arguments.extend([OsString::from(ptx), bitcode.clone().into()]);
    tool(toolchain, "llc", arguments)?;
    for file in [&text, &bitcode] {
        fs::remove_file(file).map_err(|source| Error::io("remove", file, source))?;
    }
    Ok(())
}
