//! Compiles this crate's kernels for GPUs too, with the feature `cuda`.

#[cfg(not(feature = "cuda"))]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}

#[cfg(feature = "cuda")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use warpfold_ptx_builder::{Arch, CudaBuilder};

    println!("cargo:rerun-if-changed=build.rs");
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
    // PTX for sm_80 runs on every later card too. Where ptxas is found, it says whether a kernel needs a stack.
    let build = CudaBuilder::new(".").arch(Arch::Sm80).assemble_only([Arch::Sm80]).strict(true).build()?;
    for kernel in ["softmax", "pipeline"] {
        std::fs::write(out.join(kernel).with_extension("ptx"), build.ptx(kernel, Arch::Sm80)?)?;
    }
    Ok(())
}
