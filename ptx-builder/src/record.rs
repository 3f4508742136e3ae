//! The record of a finished build, by which the next one knows that nothing has changed.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::{Value, json};

use crate::{Arch, Build, CudaBuilder, Error, Image, ImageKind, Module, Resources, toolchain};

/// This crate's own code is an input of a build like any other.
const OWN_SOURCE: [&str; 7] = [
    include_str!("lib.rs"),
    include_str!("compile.rs"),
    include_str!("link.rs"),
    include_str!("ir.rs"),
    include_str!("ptxas.rs"),
    include_str!("record.rs"),
    include_str!("split.rs"),
];

pub(crate) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Everything that a build is told, as one string.
pub(crate) fn options_key(builder: &CudaBuilder, ptxas: Option<&Path>) -> String {
    let named = std::env::var_os(toolchain::VARIABLE);
    format!("{:016x}", hash(&(format!("{builder:?} {ptxas:?} {named:?}"), OWN_SOURCE)))
}

/// A fingerprint of the contents of all files in `inputs` and below.
pub(crate) fn stamp(inputs: &[PathBuf]) -> String {
    let mut hasher = DefaultHasher::new();
    for input in inputs {
        stamp_into(input, &mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

fn stamp_into(path: &Path, hasher: &mut DefaultHasher) {
    path.hash(hasher);
    match fs::read_dir(path) {
        Ok(entries) => {
            let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            paths.sort();
            paths.iter().for_each(|path| stamp_into(path, hasher));
        }
        Err(_) => fs::read(path).ok().hash(hasher),
    }
}

/// A fingerprint of a program or an image: its size and time, for reading it whole would take longer than is saved.
pub(crate) fn file_stamp(path: &Path) -> String {
    let data = fs::metadata(path).ok();
    let time = data.as_ref().and_then(|data| data.modified().ok()?.duration_since(UNIX_EPOCH).ok());
    format!("{:?} {:?}", data.map(|data| data.len()), time)
}

pub(crate) fn store(
    file: &Path,
    options: &str,
    stamp: &str,
    tools: &[PathBuf],
    build: &Build,
) -> Result<(), Error> {
    let paths =
        |paths: &[PathBuf]| paths.iter().map(|path| path.to_string_lossy().into_owned()).collect::<Vec<_>>();
    let modules = build.modules.iter().map(|module| {
        let images = module.images.iter().map(|image| {
            json!({"arch": image.arch.number(), "cubin": image.kind == ImageKind::Cubin, "path": image.path.to_string_lossy()})
        });
        let resources = module.resources.iter().map(|(arch, used)| {
            json!({
                "arch": arch.number(), "function": used.function, "entry": used.is_entry,
                "numbers": [used.registers, used.shared_bytes, used.stack_bytes, used.spill_store_bytes,
                            used.spill_load_bytes, used.barriers],
            })
        });
        json!({
            "group": module.group, "entries": module.entries, "globals": module.globals,
            "images": images.collect::<Vec<_>>(), "resources": resources.collect::<Vec<_>>(),
        })
    });
    let tools = tools.iter().map(|tool| json!([tool.to_string_lossy(), file_stamp(tool)]));
    let record = json!({
        "options": options, "stamp": stamp, "tools": tools.collect::<Vec<_>>(), "inputs": paths(&build.inputs),
        "modules": modules.collect::<Vec<_>>(), "warnings": build.warnings,
        "ptxas": build.ptxas.as_ref().map(|path| path.to_string_lossy()), "toolchain": build.toolchain,
    });
    // Renamed into place: a build that is cut off leaves no half a record.
    let partial = file.with_extension("partial");
    fs::write(&partial, record.to_string()).map_err(|source| Error::io("write", &partial, source))?;
    fs::rename(&partial, file).map_err(|source| Error::io("write", file, source))
}

/// The recorded build, if it still holds: same options, same inputs, same tools, all files there.
pub(crate) fn load(file: &Path, options: &str) -> Option<Build> {
    let record: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    if record["options"] != options {
        return None;
    }
    for tool in record["tools"].as_array()? {
        if tool[1] != file_stamp(Path::new(tool[0].as_str()?)) {
            return None;
        }
    }
    let inputs: Vec<PathBuf> = strings(&record["inputs"])?.into_iter().map(PathBuf::from).collect();
    if record["stamp"] != stamp(&inputs) {
        return None;
    }
    let modules: Option<Vec<Module>> = record["modules"].as_array()?.iter().map(module).collect();
    let modules = modules?;
    if !modules.iter().flat_map(|module| &module.images).all(|image| image.path.is_file()) {
        return None;
    }
    Some(Build {
        modules,
        warnings: strings(&record["warnings"])?,
        ptxas: record["ptxas"].as_str().map(PathBuf::from),
        toolchain: record["toolchain"].as_str()?.to_owned(),
        reused: true,
        inputs,
    })
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| Some(item.as_str()?.to_owned())).collect()
}

fn arch(value: &Value) -> Option<Arch> {
    let number = value.as_u64()?;
    Arch::ALL.iter().copied().find(|arch| u64::from(arch.number()) == number)
}

fn module(value: &Value) -> Option<Module> {
    let image = |value: &Value| {
        let kind = if value["cubin"].as_bool()? { ImageKind::Cubin } else { ImageKind::Ptx };
        Some(Image { arch: arch(&value["arch"])?, kind, path: PathBuf::from(value["path"].as_str()?) })
    };
    let resources = |value: &Value| {
        let number = |at: usize| u32::try_from(value["numbers"][at].as_u64()?).ok();
        let used = Resources {
            function: value["function"].as_str()?.to_owned(),
            is_entry: value["entry"].as_bool()?,
            registers: number(0)?,
            shared_bytes: number(1)?,
            stack_bytes: number(2)?,
            spill_store_bytes: number(3)?,
            spill_load_bytes: number(4)?,
            barriers: number(5)?,
        };
        Some((arch(&value["arch"])?, used))
    };
    Some(Module {
        group: value["group"].as_str()?.to_owned(),
        entries: strings(&value["entries"])?,
        globals: strings(&value["globals"])?,
        images: value["images"].as_array()?.iter().map(image).collect::<Option<_>>()?,
        resources: value["resources"].as_array()?.iter().map(resources).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_holds_until_something_changes() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::create_dir(path("src")).unwrap();
        for name in ["src/lib.rs", "image.ptx", "tool"] {
            fs::write(path(name), "one").unwrap();
        }
        let image = Image { arch: Arch::Sm80, kind: ImageKind::Cubin, path: path("image.ptx") };
        let used =
            Resources { function: "f__g".into(), is_entry: true, registers: 3, ..Resources::default() };
        let module = Module {
            group: "f".into(),
            entries: vec!["f__g".into()],
            globals: vec!["f__d".into()],
            images: vec![image],
            resources: vec![(Arch::Sm120, used)],
        };
        let mut build = Build {
            modules: vec![module],
            warnings: vec!["careful".into()],
            ptxas: Some(path("tool")),
            toolchain: "t".into(),
            reused: false,
            inputs: vec![path("src")],
        };
        let (file, tools) = (path("build.json"), [path("tool")]);
        let save = |build: &Build| store(&file, "key", &stamp(&build.inputs), &tools, build).unwrap();
        save(&build);
        build.reused = true;
        assert_eq!(load(&file, "key"), Some(build.clone()));
        assert_eq!(load(&file, "other"), None);
        for (name, text) in [("src/lib.rs", "two"), ("tool", "other size"), ("src/new.rs", "")] {
            fs::write(path(name), text).unwrap();
            assert_eq!(load(&file, "key"), None, "{name} changed");
            save(&build);
            assert!(load(&file, "key").is_some());
        }
        fs::remove_file(path("image.ptx")).unwrap();
        assert_eq!(load(&file, "key"), None);
    }
}
