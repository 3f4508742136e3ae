//! Compiles the kernels of the papers for GPUs, with the feature `cuda`.

#[cfg(not(feature = "cuda"))]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}

#[cfg(feature = "cuda")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use warpfold_ptx_builder::{Arch, CudaBuilder};

    println!("cargo:rerun-if-changed=build.rs");
    let file = std::path::PathBuf::from(std::env::var("OUT_DIR")?).join("modules.rs");
    // Documentation and lints read the host's side only, and docs.rs has no device toolchain.
    let without = ["DOCS_RS", "WARPFOLD_WITHOUT_KERNELS"];
    without.iter().for_each(|name| println!("cargo:rerun-if-env-changed={name}"));
    if without.iter().any(|name| std::env::var_os(name).is_some()) {
        std::fs::write(file, "pub static MODULES: &[crate::harness::Module] = &[];\n")?;
        return Ok(());
    }
    // Where nothing runs them it is enough that they lower to PTX; `cargo xtask ptx --crate ladder/kernels --strict` assembles them.
    println!("cargo:rerun-if-env-changed=WARPFOLD_KERNELS_SAMPLED");
    let sampled = std::env::var_os("WARPFOLD_KERNELS_SAMPLED").is_some();
    let build = CudaBuilder::new("kernels")
        .arch(Arch::Sm90)
        .cubin((!sampled).then_some(Arch::Sm90))
        .strict(true)
        // Where `cargo xtask setup` puts it.
        .ptxas_search("../target/ptxas")
        .build()?;
    build.write_modules(file, "crate::harness")?;
    Ok(())
}
