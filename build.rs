//! Compiles the built-in operators for GPUs, with the feature `cuda`.

#[cfg(not(feature = "cuda"))]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}

#[cfg(feature = "cuda")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use warpfold_ptx_builder::{Arch, CudaBuilder};

    println!("cargo:rerun-if-changed=build.rs");
    let modules = std::path::PathBuf::from(std::env::var("OUT_DIR")?).join("modules.rs");
    // Documentation and lints read the host's side only, and docs.rs has no device toolchain.
    let without = ["DOCS_RS", "WARPFOLD_WITHOUT_KERNELS"];
    without.iter().for_each(|name| println!("cargo:rerun-if-env-changed={name}"));
    if without.iter().any(|name| std::env::var_os(name).is_some()) {
        std::fs::write(modules, "pub static MODULES: &[warpfold_host::module::Module] = &[];\n")?;
        return Ok(());
    }
    // sm_75 is the oldest that current drivers support. The kernels use nothing of sm_80, but from sm_90 on they let
    // the next grid start early. The machine code, for sm_80 from the PTX of sm_75, spares the cards that most programs
    // meet the driver's compiler.
    let build = CudaBuilder::new("builtins")
        .archs([Arch::Sm75, Arch::Sm90])
        .cubin([Arch::Sm80, Arch::Sm90])
        .strict(true)
        // Where `cargo xtask setup` puts it.
        .ptxas_search("target/ptxas")
        .build()?;
    build.write_modules(modules, "warpfold_host::module")?;
    Ok(())
}
