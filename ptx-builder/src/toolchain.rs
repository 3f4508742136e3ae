//! Finding a compiler for the device and the LLVM tools that go with it.
//!
//! Three things must come together: rustc and cargo of at least [`MINIMUM_RUSTC`], the sources of `core`, and the
//! LLVM tools [`TOOLS`] of the LLVM major version that rustc was built with (bitcode of a newer LLVM cannot be read
//! by an older one).

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable that names the device toolchain: a folder with `bin/rustc`, or a rustup toolchain.
pub const VARIABLE: &str = "WARPFOLD_DEVICE_TOOLCHAIN";

/// The oldest rustc that builds kernels.
pub const MINIMUM_RUSTC: Version = Version { major: 1, minor: 96, patch: 0 };

/// The LLVM tools that are called.
pub const TOOLS: [&str; 4] = ["llvm-ar", "llvm-link", "opt", "llc"];

/// The commands that install a device toolchain, one a line.
pub const INSTALL: &str = "    Debian:  apt-get install -y rustc-web rust-web-src rust-web-llvm\n    \
     rustup:  rustup toolchain install stable --profile minimal --component rust-src,llvm-tools";

/// A release of rustc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

impl Version {
    /// Reads `1.96.0`, `1.97.0-nightly` and the like.
    ///
    /// ```
    /// use warpfold_ptx_builder::toolchain::{MINIMUM_RUSTC, Version};
    /// assert!(Version::parse("1.97.0-nightly").unwrap() > MINIMUM_RUSTC);
    /// assert!(Version::parse("nonsense").is_none());
    /// ```
    pub fn parse(text: &str) -> Option<Version> {
        let mut numbers = text.split(['.', '-']).map(|part| part.parse::<u32>().ok());
        let mut next = || numbers.next().flatten();
        Some(Version { major: next()?, minor: next()?, patch: next()? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A compiler for the device with its LLVM tools, all by full path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Toolchain {
    /// Where it was found, in words.
    pub origin: String,
    /// The compiler.
    pub rustc: PathBuf,
    /// The cargo beside it.
    pub cargo: PathBuf,
    /// The compiler's release.
    pub version: Version,
    /// The major version of the compiler's LLVM and of the tools.
    pub llvm: u32,
    /// The tools, in the order of [`TOOLS`].
    tools: [PathBuf; TOOLS.len()],
}

impl Toolchain {
    /// Finds the device toolchain: the one that the variable [`VARIABLE`] names (and then no other), else the newest
    /// rustup toolchain that has all parts, else the system's `/usr/bin/rustc`.
    ///
    /// # Errors
    ///
    /// [`NotFound`] lists every candidate with the reason why it does not serve, and the commands that install one.
    pub fn find() -> Result<Toolchain, NotFound> {
        Search::from_env().run()
    }

    /// The full path of an LLVM tool; `None` unless `name` is one of [`TOOLS`].
    pub fn tool(&self, name: &str) -> Option<&Path> {
        let at = TOOLS.iter().position(|tool| *tool == name)?;
        Some(&self.tools[at])
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        [&self.rustc, &self.cargo].into_iter().chain(&self.tools).map(PathBuf::as_path)
    }
}

/// A toolchain that was looked at and does not serve.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejection {
    /// The candidate's place.
    pub candidate: String,
    /// Why it does not serve.
    pub reason: Reason,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.candidate, self.reason)
    }
}

/// Why a toolchain does not serve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// A file is not there.
    #[error("there is no {}", .0.display())]
    Missing(PathBuf),
    /// The override names neither a folder nor a rustup toolchain.
    #[error("it is neither a folder nor a toolchain in {}", .rustup.display())]
    Unknown {
        /// The folder of rustup's toolchains.
        rustup: PathBuf,
    },
    /// rustc could not be run, or its answer could not be read.
    #[error("`{} -vV` failed: {why}", .rustc.display())]
    Unusable {
        /// The compiler.
        rustc: PathBuf,
        /// What happened.
        why: String,
    },
    /// The compiler is too old.
    #[error("rustc is {found}, and kernels need {needed} or later")]
    TooOld {
        /// What is there.
        found: Version,
        /// What is needed.
        needed: Version,
    },
    /// `core`'s sources are not installed.
    #[error("the sources of `core` are missing at {} (rustup component add rust-src, or package rust-web-src)", .0.display())]
    NoSources(PathBuf),
    /// LLVM tools of the right version are missing.
    #[error("LLVM {llvm} tools are missing: {} (rustup component add llvm-tools, or package llvm-{llvm})", .missing.join(", "))]
    NoTools {
        /// The major version that rustc asks for.
        llvm: u32,
        /// The tools that were not found.
        missing: Vec<String>,
    },
}

/// No device toolchain serves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotFound {
    /// What was looked at, in order.
    pub rejections: Vec<Rejection>,
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "no toolchain for GPU kernels (rustc {MINIMUM_RUSTC} or later, core's sources, LLVM tools)"
        )?;
        for rejection in &self.rejections {
            writeln!(f, "  looked at {rejection}")?;
        }
        writeln!(f, "  install one of these:\n{INSTALL}")?;
        write!(f, "  or name one with {VARIABLE} (a folder with bin/rustc, or a rustup toolchain)")
    }
}

impl std::error::Error for NotFound {}

/// Where to look; apart from the environment so that tests can use folders of their own.
struct Search {
    named: Option<OsString>,
    rustup_toolchains: Option<PathBuf>,
    system: PathBuf,
    /// Folders that may hold `opt-22` and the like.
    path: Vec<PathBuf>,
    /// The parent of `llvm-22/bin`.
    llvm_parent: PathBuf,
}

impl Search {
    fn from_env() -> Search {
        let home = || env::var_os("HOME").or_else(|| env::var_os("USERPROFILE")).map(PathBuf::from);
        let rustup = env::var_os("RUSTUP_HOME").map(PathBuf::from).or_else(|| Some(home()?.join(".rustup")));
        Search {
            named: env::var_os(VARIABLE).filter(|value| !value.is_empty()),
            rustup_toolchains: rustup.map(|home| home.join("toolchains")),
            system: PathBuf::from("/usr"),
            path: env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default(),
            llvm_parent: PathBuf::from("/usr/lib"),
        }
    }

    fn run(&self) -> Result<Toolchain, NotFound> {
        let mut rejections = Vec::new();
        if let Some(named) = &self.named {
            let candidate = format!("{VARIABLE}={}", named.display());
            let found = match self.named_folder(named) {
                Some(folder) => self.examine(&folder, &candidate),
                None => Err(Reason::Unknown { rustup: self.rustup_toolchains.clone().unwrap_or_default() }),
            };
            return found.map_err(|reason| NotFound { rejections: vec![Rejection { candidate, reason }] });
        }
        let mut best: Option<Toolchain> = None;
        for folder in self.rustup_folders() {
            let name = folder.file_name().unwrap_or_default().display().to_string();
            let candidate = format!("rustup toolchain {name}");
            match self.examine(&folder, &candidate) {
                Ok(found) if best.as_ref().is_none_or(|best| found.version > best.version) => {
                    best = Some(found)
                }
                Ok(_) => {}
                Err(reason) => rejections.push(Rejection { candidate, reason }),
            }
        }
        if let Some(best) = best {
            return Ok(best);
        }
        let candidate = format!("system toolchain {}", self.system.join("bin/rustc").display());
        self.examine(&self.system, &candidate).map_err(|reason| {
            rejections.push(Rejection { candidate, reason });
            NotFound { rejections }
        })
    }

    /// The rustup toolchains, sorted by name; what rustup would list.
    fn rustup_folders(&self) -> Vec<PathBuf> {
        let entries = self.rustup_toolchains.as_ref().and_then(|folder| fs::read_dir(folder).ok());
        let mut folders: Vec<PathBuf> =
            entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        folders.sort();
        folders
    }

    /// The folder that the override means: a path, a full rustup name, or one without the host triple.
    fn named_folder(&self, named: &OsStr) -> Option<PathBuf> {
        let folder = Path::new(named);
        if folder.is_dir() {
            return Some(folder.to_path_buf());
        }
        let prefix = format!("{}-", named.to_str()?);
        let matches = |folder: &PathBuf| {
            folder.file_name().is_some_and(|name| name == named)
                || folder.file_name().and_then(OsStr::to_str).is_some_and(|name| {
                    name.strip_prefix(&prefix)
                        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
                })
        };
        let mut folders = self.rustup_folders();
        folders.sort_by_key(|folder| folder.as_os_str().len());
        folders.into_iter().find(matches)
    }

    fn examine(&self, folder: &Path, origin: &str) -> Result<Toolchain, Reason> {
        let exe = |name: &str| folder.join("bin").join(format!("{name}{}", env::consts::EXE_SUFFIX));
        let (rustc, cargo) = (exe("rustc"), exe("cargo"));
        for file in [&rustc, &cargo] {
            if !file.is_file() {
                return Err(Reason::Missing(file.clone()));
            }
        }
        let report = ask(&rustc, &["-vV"])?;
        let field = |name: &str| report.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let unreadable =
            |what: &str| Reason::Unusable { rustc: rustc.clone(), why: format!("no {what} in its answer") };
        let version = field("release:").and_then(Version::parse).ok_or_else(|| unreadable("release"))?;
        if version < MINIMUM_RUSTC {
            return Err(Reason::TooOld { found: version, needed: MINIMUM_RUSTC });
        }
        let llvm = field("LLVM version:").and_then(|text| text.split('.').next()?.parse().ok());
        let llvm: u32 = llvm.ok_or_else(|| unreadable("LLVM version"))?;
        let host = field("host:").ok_or_else(|| unreadable("host"))?;
        let sysroot = PathBuf::from(ask(&rustc, &["--print", "sysroot"])?.trim());
        let sources = sysroot.join("lib/rustlib/src/rust/library/core/src/lib.rs");
        if !sources.is_file() {
            return Err(Reason::NoSources(sources));
        }
        let own = sysroot.join("lib/rustlib").join(host).join("bin");
        let (mut tools, mut missing) = (Vec::new(), Vec::new());
        for name in TOOLS {
            match self.locate(name, llvm, &own) {
                Some(path) => tools.push(path),
                None => missing.push(name.to_owned()),
            }
        }
        let Ok(tools) = <[PathBuf; TOOLS.len()]>::try_from(tools) else {
            return Err(Reason::NoTools { llvm, missing });
        };
        Ok(Toolchain { origin: origin.to_owned(), rustc, cargo, version, llvm, tools })
    }

    /// A tool of LLVM `major`: rustup's own, the distribution's LLVM folder, then versioned names on the path.
    fn locate(&self, name: &str, major: u32, own: &Path) -> Option<PathBuf> {
        let plain = format!("{name}{}", env::consts::EXE_SUFFIX);
        let versioned = format!("{name}-{major}{}", env::consts::EXE_SUFFIX);
        let llvm = self.llvm_parent.join(format!("llvm-{major}/bin"));
        let mut places = vec![own.join(&plain), llvm.join(&plain)];
        places.extend(self.path.iter().map(|folder| folder.join(&versioned)));
        places.into_iter().find(|path| path.is_file())
    }
}

/// Runs rustc free of the variables that an outer cargo or rustup set.
fn ask(rustc: &Path, arguments: &[&str]) -> Result<String, Reason> {
    let failed = |why: String| Reason::Unusable { rustc: rustc.to_path_buf(), why };
    let mut command = Command::new(rustc);
    crate::compile::clean_environment(&mut command);
    let output = command.args(arguments).output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Writes a toolchain whose rustc is a script that answers as told.
    fn fake(folder: &Path, release: &str, sources: bool, tools: &[&str]) {
        let write = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        let script = format!(
            "#!/bin/sh\nif [ \"$1\" = -vV ]; then echo 'host: h-h-h'; echo 'release: {release}'; \
             echo 'LLVM version: 22.1.0'; else echo '{}'; fi\n",
            folder.display()
        );
        write(folder.join("bin/rustc"), &script);
        write(folder.join("bin/cargo"), "#!/bin/sh\n");
        if sources {
            write(folder.join("lib/rustlib/src/rust/library/core/src/lib.rs"), "");
        }
        for tool in tools {
            write(folder.join("lib/rustlib/h-h-h/bin").join(tool), "");
        }
    }

    fn search(root: &Path, named: Option<&str>) -> Search {
        Search {
            named: named.map(OsString::from),
            rustup_toolchains: Some(root.join("rustup")),
            system: root.join("usr"),
            path: vec![root.join("path")],
            llvm_parent: root.join("usr/lib"),
        }
    }

    #[test]
    fn every_rejection_is_told_with_its_numbers_and_the_cure() {
        let root = tempfile::tempdir().unwrap();
        fake(&root.path().join("rustup/a-old"), "1.95.0", true, &TOOLS);
        fake(&root.path().join("rustup/b-no-src"), "1.96.1", false, &TOOLS);
        fake(&root.path().join("rustup/c-no-tools"), "1.97.0-nightly", true, &["llvm-ar", "opt"]);
        fs::create_dir_all(root.path().join("rustup/d-empty")).unwrap();
        let error = search(root.path(), None).run().unwrap_err();
        let reasons: Vec<_> = error.rejections.iter().map(|rejection| rejection.reason.clone()).collect();
        let old = Version { major: 1, minor: 95, patch: 0 };
        assert_eq!(reasons[0], Reason::TooOld { found: old, needed: MINIMUM_RUSTC });
        assert!(matches!(&reasons[1], Reason::NoSources(_)));
        assert_eq!(reasons[2], Reason::NoTools { llvm: 22, missing: vec!["llvm-link".into(), "llc".into()] });
        assert!(matches!(&reasons[3], Reason::Missing(_)));
        assert_eq!(reasons[4], Reason::Missing(root.path().join("usr/bin/rustc")));
        let text = error.to_string();
        for part in
            ["1.95.0", "1.96.0", "rustc-web rust-web-src rust-web-llvm", "rust-src,llvm-tools", VARIABLE]
        {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn the_newest_complete_rustup_toolchain_wins_over_the_system() {
        let root = tempfile::tempdir().unwrap();
        fake(&root.path().join("rustup/stable"), "1.96.0", true, &TOOLS);
        fake(&root.path().join("rustup/nightly"), "1.98.0-nightly", true, &TOOLS);
        fake(&root.path().join("rustup/beta"), "1.99.0", false, &TOOLS);
        fake(&root.path().join("usr"), "2.0.0", true, &TOOLS);
        let found = search(root.path(), None).run().unwrap();
        assert_eq!(found.rustc, root.path().join("rustup/nightly/bin/rustc"));
        assert_eq!(found.tool("llc"), Some(&*root.path().join("rustup/nightly/lib/rustlib/h-h-h/bin/llc")));
        assert_eq!(found.tool("lld"), None);
    }

    #[test]
    fn the_system_toolchain_takes_llvm_tools_of_the_right_major_version() {
        let root = tempfile::tempdir().unwrap();
        fake(&root.path().join("usr"), "1.96.0", true, &[]);
        for file in ["usr/lib/llvm-22/bin/opt", "usr/lib/llvm-21/bin/llc", "path/llvm-ar-22"] {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let error = search(root.path(), None).run().unwrap_err();
        let missing = vec!["llvm-link".to_owned(), "llc".to_owned()];
        assert_eq!(error.rejections[0].reason, Reason::NoTools { llvm: 22, missing });
        for tool in ["llvm-link", "llc"] {
            fs::write(root.path().join(format!("path/{tool}-22")), "").unwrap();
        }
        let found = search(root.path(), None).run().unwrap();
        assert_eq!(found.tool("opt"), Some(&*root.path().join("usr/lib/llvm-22/bin/opt")));
        assert_eq!(found.tool("llc"), Some(&*root.path().join("path/llc-22")));
    }

    #[test]
    fn the_override_is_a_folder_or_a_rustup_name_and_nothing_else_is_tried() {
        let root = tempfile::tempdir().unwrap();
        fake(&root.path().join("rustup/1.96.0-h-h-h"), "1.96.0", true, &TOOLS);
        fake(&root.path().join("own"), "1.97.0", true, &TOOLS);
        fake(&root.path().join("usr"), "1.96.0", true, &TOOLS);
        let own = root.path().join("own");
        let found = search(root.path(), own.to_str()).run().unwrap();
        assert_eq!(found.rustc, own.join("bin/rustc"));
        let found = search(root.path(), Some("1.96.0")).run().unwrap();
        assert_eq!(found.version, MINIMUM_RUSTC);
        let error = search(root.path(), Some("1.9")).run().unwrap_err();
        assert_eq!(error.rejections.len(), 1);
        assert!(matches!(error.rejections[0].reason, Reason::Unknown { .. }), "{error}");
    }
}
