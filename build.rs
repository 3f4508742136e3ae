//! Compiles the built-in operators for GPUs, with the feature `cuda`.

#[cfg(not(feature = "cuda"))]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}

/// The largest part: operators and types that are used less.
#[cfg(feature = "cuda")]
const MORE: &str = "more";

/// What a sampled build compiles of the other parts: an operator for each kind of item and accumulator, and of order.
#[cfg(feature = "cuda")]
const SAMPLE: &[&str] = &[
    "sum_i32_i64",
    "sum_f32",
    "sum_f64",
    "sum_f32_exact",
    "nansum_f32",
    "product_f64",
    "max_u32",
    "min_f64",
    "mss_i32",
    "compose_f64",
    "summinmax_f32",
    "sum_f16_segments",
    "sum_f32_segments",
    "sum_f64_segments",
    "sum_u8_u64_segments",
    "argmax_f32_segments",
    "any_bool_segments",
    "mss_f32_segments",
    "compose_f32_segments",
    "dot_f32_along_segments",
    "sum_u8_u32_scan",
    "sum_f32_scan",
    "sum_f64_scan",
    "max_i64_scan",
    "argmax_f32_scan",
    "compose_f32_scan",
    "fast_sum_f64_scan",
    "sum_u8_u32_lines",
    "sum_f32_lines",
    "sum_f64_lines",
    "compose_f32_lines",
    "sum_i64_tags",
    "sum_f64_tags",
    "fast_sum_f32_tags",
    "max_f32_tags",
    "mean_f32_by_i32",
    "compose_f32_by_i32",
    "arg_max_f32_by_i64",
    "ends_by_flag",
    "sort_u32_u64",
    "sort_u64_u32",
];

#[cfg(feature = "cuda")]
const NO_MODULES: &str = "pub static MODULES: &[warpfold_host::module::Module] = &[];\n";

#[cfg(feature = "cuda")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::error::Error;
    use std::sync::{Mutex, PoisonError};
    use std::thread;

    use warpfold_ptx_builder::{Arch, CudaBuilder};

    println!("cargo:rerun-if-changed=build.rs");
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
    // Documentation and lints read the host's side only, and docs.rs has no device toolchain.
    let without = ["DOCS_RS", "WARPFOLD_WITHOUT_KERNELS"];
    without.iter().for_each(|name| println!("cargo:rerun-if-env-changed={name}"));
    if without.iter().any(|name| std::env::var_os(name).is_some()) {
        for part in ["core.rs", "more.rs", "segments.rs", "scans.rs", "keys.rs", "lines.rs"] {
            std::fs::write(out.join(part), NO_MODULES)?;
        }
        return Ok(());
    }
    // sm_75 is the oldest that current drivers support, and its PTX runs on everything later; kernels compiled for sm_90
    // may start before what is ahead of them has ended, which short reductions gain by, and their text without that serves
    // the older. All are compiled for the one, so that what they stand on is compiled once. Machine code spares the cards that
    // most programs meet the driver's compiler. How much is built follows from a budget: docs/toolchain.md.
    let (old, new) = (Arch::Sm75, Arch::Sm90);
    // The largest first.
    let parts = [
        // Machine code of these takes a tenth of the kernels' processor time.
        (MORE, if cfg!(feature = "machine-code") { vec![new] } else { Vec::new() }),
        ("segments", vec![new]),
        ("scans", vec![new]),
        ("core", vec![Arch::Sm80, new]),
        ("keys", vec![new]),
        ("lines", vec![new]),
    ];
    // Where nothing runs them, a sample of the operators of each part will do, and none of `more`, by far the largest: they go
    // through the same kernels as those of the others, and the host compiles all of them.
    println!("cargo:rerun-if-env-changed=WARPFOLD_KERNELS_SAMPLED");
    let sampled = std::env::var_os("WARPFOLD_KERNELS_SAMPLED").is_some();
    // Some of the parts alone, for who works on their kernels and does not want to wait for the others'.
    println!("cargo:rerun-if-env-changed=WARPFOLD_KERNEL_PARTS");
    let wanted = std::env::var("WARPFOLD_KERNEL_PARTS").ok();
    let build = |(part, mut cubin): (&str, Vec<Arch>)| -> Result<(), Box<dyn Error + Send + Sync>> {
        if sampled {
            cubin.retain(|arch| *arch == new);
        }
        let is_wanted = match &wanted {
            Some(names) => names.split(',').any(|name| name == part),
            None => !(sampled && part == MORE),
        };
        let modules = out.join(format!("{part}.rs"));
        if !is_wanted {
            return Ok(std::fs::write(modules, NO_MODULES)?);
        }
        let mut builder = CudaBuilder::new("builtins")
            .no_default_features()
            .features([part])
            .arch(new)
            .older([old])
            .cubin(cubin)
            .strict(true)
            // How the kernels were timed.
            .opt_level(1)
            // Where `cargo xtask setup` puts it.
            .ptxas_search("target/ptxas");
        if sampled && wanted.is_none() {
            // Of the sample what is made for older cards is assembled, too.
            builder = builder.groups(SAMPLE.iter().copied()).assemble_only([old]);
        }
        Ok(builder.build()?.write_modules(modules, "warpfold_host::module")?)
    };
    // Two at a time: rustc compiles one on one core while the other's kernels are lowered.
    let parts = Mutex::new(parts.into_iter());
    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        let all = || std::iter::from_fn(next).try_for_each(build);
        let other = scope.spawn(all);
        let ours = all();
        other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).and(ours)
    })
    .map_err(|error| -> Box<dyn Error> { error })
}
