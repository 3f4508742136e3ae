//! Compiles the operators for GPUs, with the feature `cuda`.

#[cfg(not(feature = "cuda"))]
fn main() {}

#[cfg(feature = "cuda")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use warpfold_ptx_builder::{Arch, CudaBuilder};

    // PTX for sm_80 runs on every later card too. Machine code, where ptxas is found, spares the driver compiling it.
    let build = CudaBuilder::new("kernels").archs([Arch::Sm80]).cubin([Arch::Sm80, Arch::Sm90]).build()?;
    build.write_modules(std::env::var("OUT_DIR")? + "/modules.rs", "warpfold::module")?;
    Ok(())
}
