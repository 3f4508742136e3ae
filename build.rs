//! Compiles the built-in operators for GPUs, with the feature `cuda`.

#[cfg(not(feature = "cuda"))]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}

#[cfg(feature = "cuda")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use warpfold_ptx_builder::{Arch, CudaBuilder};

    println!("cargo:rerun-if-changed=build.rs");
    // PTX of sm_90 runs on everything later, sm_75 is the oldest that current drivers support; the machine code
    // spares the cards that most programs meet the driver's compiler.
    let build = CudaBuilder::new("builtins")
        .archs([Arch::Sm75, Arch::Sm80, Arch::Sm90])
        .cubin([Arch::Sm80, Arch::Sm90])
        // Where `cargo xtask setup` puts it.
        .ptxas_search("target/ptxas")
        .build()?;
    let out = std::env::var("OUT_DIR")?;
    build.write_modules(std::path::Path::new(&out).join("modules.rs"), "warpfold_host::module")?;
    Ok(())
}
