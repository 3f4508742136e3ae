//! Builds the fixture's kernels with the real toolchain and reads the PTX: what must be in it, and what must not.
//! Needs a device toolchain; without one the tests fail with the message that says how to install it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use warpfold_ptx_builder::{Arch, Build, CudaBuilder, Error, ImageKind};

/// The inner cargo locks its target folder anyway; taking turns keeps the timing of one test free of another's build.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixture")
}

/// A builder whose output starts empty while `core` is kept between runs of the tests.
fn builder(folder: &Path, test: &str) -> CudaBuilder {
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let out = temporary.join(test);
    let _ = fs::remove_dir_all(&out);
    CudaBuilder::new(folder)
        .out_dir(out)
        .target_dir(temporary.parent().unwrap().join("warpfold-ptx"))
        .ptxas_search(temporary.ancestors().nth(1).unwrap().join("ptxas"))
        .cargo_directives(false)
}

fn copy_fixture(to: &Path) {
    for file in ["Cargo.toml", "src/lib.rs", "helper/Cargo.toml", "helper/src/lib.rs"] {
        fs::create_dir_all(to.join(file).parent().unwrap()).unwrap();
        fs::copy(fixture().join(file), to.join(file)).unwrap();
    }
}

fn names(build: &Build) -> Vec<(&str, Vec<&str>)> {
    build.modules.iter().map(|m| (m.group.as_str(), m.entries.iter().map(String::as_str).collect())).collect()
}

#[test]
fn the_fixture_becomes_the_right_ptx() {
    let _turn = turn();
    let archs = [Arch::Sm75, Arch::Sm80, Arch::Sm90];
    let build = builder(&fixture(), "ptx")
        .archs(archs)
        .cubin([Arch::Sm90])
        .assemble_only([Arch::Sm75, Arch::Sm80, Arch::Sm86, Arch::Sm100, Arch::Sm120])
        .strict(true)
        .build()
        .unwrap();
    let expected = [
        ("axpy", vec!["axpy__one", "axpy__scale"]),
        ("dynamic", vec!["dynamic"]),
        ("once", vec!["once__barrier"]),
        ("rev_f32", vec!["rev_f32__block", "rev_f32__flag"]),
        ("stack", vec!["stack__allowed"]),
    ];
    assert_eq!(names(&build), expected);
    assert_eq!(build.module("axpy").unwrap().globals, ["axpy__descriptor"]);
    assert!(!build.reused);

    for arch in archs {
        for (group, entries) in &expected {
            let ptx = build.ptx(group, arch).unwrap();
            assert!(ptx.contains(&format!(".target {arch}\n")), "{ptx}");
            let found: Vec<&str> =
                ptx.lines().filter_map(|l| l.strip_prefix(".visible .entry ")?.strip_suffix('(')).collect();
            let mut sorted = found.clone();
            sorted.sort_unstable();
            assert_eq!(&sorted, entries, "{ptx}");
            assert!(!ptx.contains("allow_stack"), "{ptx}");
        }

        let reverse = build.ptx("rev_f32", arch).unwrap();
        for needed in ["st.shared.b32", "ld.shared.b32", "bar.sync", ".shared .align 4 .b8"] {
            assert!(reverse.contains(needed), "no {needed} in {reverse}");
        }
        // Both shared statics and nothing of the other groups'.
        assert_eq!(
            reverse.matches("\n.shared ").count() + reverse.matches("\t.shared ").count(),
            2,
            "{reverse}"
        );
        let flag = &reverse[reverse.find(".entry rev_f32__flag").unwrap()..];
        assert_eq!(flag.matches("st.shared").count(), 2, "{flag}");
        assert_eq!(flag.matches("ld.shared").count(), 1, "{flag}");

        let once = build.ptx("once", arch).unwrap();
        assert_eq!(once.matches("bar.sync").count(), 1, "{once}");

        let dynamic = build.ptx("dynamic", arch).unwrap();
        assert!(dynamic.contains(".extern .shared .align 16 .b8"), "{dynamic}");
        assert!(dynamic.contains("ld.shared") && dynamic.contains("st.shared"), "{dynamic}");

        let axpy = build.ptx("axpy", arch).unwrap();
        for needed in [
            "mul.rn.f32",
            "add.rn.f32",
            "mul.rn.f64",
            "add.rn.f64",
            ".visible .global .align 4 .b8 axpy__descriptor[8]",
        ] {
            assert!(axpy.contains(needed), "no {needed} in {axpy}");
        }
        assert!(!axpy.contains("fma."), "{axpy}");
        assert!(axpy.contains(&(arch.number() * 1000 + 1).to_string()), "{axpy}");

        assert!(build.ptx("stack", arch).unwrap().contains(".local"), "the fixture no longer uses a stack");
    }
    let missing = build.ptx("axpy", Arch::Sm86).unwrap_err();
    assert!(missing.to_string().contains("axpy (sm_80)"), "{missing}");

    match &build.ptxas {
        None => {
            eprintln!("SKIPPED: assembling the fixture's PTX; no ptxas found (set WARPFOLD_PTXAS)");
            assert_eq!(build.warnings.len(), 1, "{:?}", build.warnings);
        }
        Some(_) => {
            assert_eq!(build.warnings, [] as [&str; 0]);
            let reverse = build.module("rev_f32").unwrap();
            let cubins: Vec<_> =
                reverse.images.iter().filter(|image| image.kind == ImageKind::Cubin).collect();
            assert_eq!(cubins.len(), 1);
            assert_eq!(&fs::read(&cubins[0].path).unwrap()[..4], b"\x7fELF");
            let (_, block) = reverse
                .resources
                .iter()
                .find(|(arch, used)| *arch == Arch::Sm90 && used.function == "rev_f32__block")
                .unwrap();
            assert!(block.is_entry && block.registers > 0);
            assert_eq!((block.shared_bytes, block.stack_bytes, block.barriers), (1024, 0, 1));
            let assembled: Vec<u32> = reverse.resources.iter().map(|(arch, _)| arch.number()).collect();
            assert_eq!(assembled, [75, 75, 80, 80, 86, 86, 90, 90, 100, 100, 120, 120]);
        }
    }
    embeds(&build);
}

/// PTX for an older architecture is the newer one's but for its head and what only the newer has, and assembles.
#[test]
fn ptx_for_older_architectures_is_made_from_the_newer_ones() {
    let _turn = turn();
    let base = builder(&fixture(), "older").features(["waiting"]).arch(Arch::Sm90);
    let build = base.clone().older([Arch::Sm80, Arch::Sm75]).assemble_only([Arch::Sm75, Arch::Sm90]);
    let build = build.strict(true).build().unwrap();
    let (new, old) = (build.ptx("waits", Arch::Sm90).unwrap(), build.ptx("waits", Arch::Sm75).unwrap());
    assert!(new.contains("griddepcontrol.wait;") && !old.contains("griddepcontrol"), "{old}");
    assert!(old.contains(".version 7.4\n") && old.contains(".target sm_75\n"), "{old}");
    let differing = new.lines().zip(old.lines()).filter(|(new, old)| new != old);
    assert_eq!((differing.count(), new.lines().count()), (3, old.lines().count()), "{new}\n{old}");
    assert!(build.ptx("waits", Arch::Sm80).unwrap().contains(".target sm_80\n"));
    let kinds: Vec<_> = build.module("waits").unwrap().images.iter().map(|image| image.arch).collect();
    assert_eq!(kinds, [Arch::Sm75, Arch::Sm80, Arch::Sm90]);
    if build.ptxas.is_some() {
        assert_eq!(build.module("waits").unwrap().resources.len(), 2);
    }
    // What the older has no other way for is told, and so is one that is not older.
    let error = base.clone().features(["newest"]).older([Arch::Sm75]).build().unwrap_err().to_string();
    assert!(error.contains("barrier.cluster.arrive") && error.contains("sm_75"), "{error}");
    let error = base.older([Arch::Sm90]).build().unwrap_err().to_string();
    assert!(error.contains("sm_90 is not older than sm_90"), "{error}");
}

/// The written Rust file compiles, and its bytes are the images.
fn embeds(build: &Build) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("modules.rs");
    build.write_modules(&file, "crate::module").unwrap();
    let written = fs::metadata(&file).unwrap().modified().unwrap();
    build.write_modules(&file, "crate::module").unwrap();
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), written);
    let program = "pub mod module {
            pub struct Module { pub name: &'static str, pub entries: &'static [&'static str], pub images: &'static [Image] }
            pub struct Image { pub arch: u32, pub kind: ImageKind, pub deflated: &'static [u8], pub len: usize }
            #[derive(Debug)] pub enum ImageKind { Ptx, Cubin }
        }
        include!(\"modules.rs\");
        fn main() {
            for module in MODULES {
                for image in module.images {
                    println!(\"{} {:?} {} {:?} {}\", module.name, module.entries, image.arch, image.kind, image.len);
                }
            }
        }";
    fs::write(folder.path().join("main.rs"), program).unwrap();
    let exe = folder.path().join("embeds");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let status = Command::new(rustc)
        .args(["--edition", "2024", "-Awarnings", "-o"])
        .arg(&exe)
        .arg(folder.path().join("main.rs"))
        .status()
        .unwrap();
    assert!(status.success());
    let output = String::from_utf8(Command::new(exe).output().unwrap().stdout).unwrap();
    let mut expected = String::new();
    for module in &build.modules {
        for image in &module.images {
            let bytes = fs::read(&image.path).unwrap();
            let length = bytes.len();
            let name = format!("{}-{}-{:?}", module.group, image.arch.number(), image.kind);
            let deflated = fs::read(folder.path().join("modules.images").join(name)).unwrap();
            assert!(deflated.len() < length);
            assert_eq!(miniz_oxide::inflate::decompress_to_vec(&deflated).unwrap(), bytes);
            let (name, entries, arch) = (&module.group, &module.entries, image.arch.number());
            expected.push_str(&format!("{name} {entries:?} {arch} {:?} {length}\n", image.kind));
        }
    }
    assert_eq!(output, expected);
}

#[test]
fn nothing_changed_is_fast_and_every_change_is_seen() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    copy_fixture(folder.path());
    let base = builder(folder.path(), "noop");
    let first = base.clone().build().unwrap();
    assert!(!first.reused);
    let inside: Vec<_> = first
        .inputs
        .iter()
        .filter_map(|path| path.strip_prefix(folder.path().canonicalize().unwrap()).ok())
        .collect();
    for input in ["src", "Cargo.toml", "helper/src", "helper/Cargo.toml"] {
        assert!(inside.contains(&Path::new(input)), "{input} is not watched: {inside:?}");
    }

    let start = Instant::now();
    let second = base.clone().build().unwrap();
    let elapsed = start.elapsed();
    assert!(second.reused);
    assert_eq!(second.modules, first.modules);
    assert!(elapsed.as_secs_f64() < 1.0, "{elapsed:?}");
    eprintln!("no-op rebuild: {elapsed:?}");

    // A dependency's source.
    let helper = folder.path().join("helper/src/lib.rs");
    let text = fs::read_to_string(&helper).unwrap();
    fs::write(&helper, text.replace("x * 3.0", "x * 5.0")).unwrap();
    let start = Instant::now();
    let third = base.clone().build().unwrap();
    eprintln!("rebuild after an edit: {:?}", start.elapsed());
    assert!(!third.reused);
    let five = "0f40A00000";
    assert!(third.ptx("axpy", Arch::Sm80).unwrap().to_uppercase().contains(&five.to_uppercase()));

    // An option, and back: both variants keep their own bitcode.
    let extra = base.clone().features(["extra"]).build().unwrap();
    assert_eq!(extra.module("stack").unwrap().entries, ["stack__allowed", "stack__excess"]);
    let back = base.clone().build().unwrap();
    assert!(back.reused);
    assert_eq!(back.module("stack").unwrap().entries, ["stack__allowed"]);

    // A lost output, even with cargo's own folder untouched.
    let lost = back.modules[0].images[0].path.clone();
    fs::remove_dir_all(lost.parent().unwrap().parent().unwrap()).unwrap();
    let again = base.clone().build().unwrap();
    assert!(!again.reused && lost.is_file());
    assert_eq!(again.ptx("axpy", Arch::Sm80).unwrap(), third.ptx("axpy", Arch::Sm80).unwrap());
}

#[test]
fn local_memory_beyond_the_allowance_is_an_error_when_strict() {
    let _turn = turn();
    let base = builder(&fixture(), "strict").features(["extra"]).assemble_only([Arch::Sm90]);
    match base.clone().strict(true).build() {
        Ok(build) if build.ptxas.is_none() => {
            eprintln!("SKIPPED: stack check; no ptxas found (set WARPFOLD_PTXAS)")
        }
        Ok(build) => panic!("accepted: {:?}", build.module("stack")),
        Err(error @ Error::LocalMemory(_)) => {
            let text = error.to_string();
            assert!(
                text.contains("`stack__excess` on sm_90: 256 bytes") && !text.contains("stack__allowed"),
                "{text}"
            );
            let allowed = base.clone().strict(true).allow_stack("stack__excess", 256).build().unwrap();
            assert_eq!(allowed.warnings, [] as [&str; 0]);
            let warned = base.build().unwrap();
            assert!(warned.warnings[0].contains("`stack__excess`"), "{:?}", warned.warnings);
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn compile_errors_reach_the_user() {
    if env::var_os("FIXTURE_CHILD").is_some() {
        let error = builder(&fixture(), "broken").features(["broken"]).build().unwrap_err();
        eprintln!("RETURNED {error}");
        return;
    }
    let _turn = turn();
    // In a process of its own, for the compiler writes straight to standard error.
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "compile_errors_reach_the_user", "--nocapture"])
        .env("FIXTURE_CHILD", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains("error[E0308]: mismatched types") && text.contains("this does not compile"),
        "{text}"
    );
    assert!(text.contains("RETURNED kernel crate `fixture-kernels` does not compile for sm_80"), "{text}");
}

#[test]
fn a_folder_without_a_crate_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let error = builder(folder.path(), "empty").build().unwrap_err();
    assert!(error.to_string().contains("Cargo.toml"), "{error}");
}
