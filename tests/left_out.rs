//! Without the feature `cuda` no test touches a GPU. A run that leaves one out says so, and a run that must not leave
//! it out fails: a green result may not look like more than it is.

use std::io::Write;
use std::path::Path;

/// What to tell someone on a machine with these properties, if anything.
fn notice(has_driver: bool, gpu_required: bool) -> Result<Option<&'static str>, &'static str> {
    match (has_driver, gpu_required) {
        (_, true) => {
            Err("WARPFOLD_REQUIRE_GPU is set, but these tests were built without the feature `cuda`: \
             run `cargo test --features cuda`")
        }
        (true, false) => Ok(Some(
            "skipped: every GPU test: this machine has an NVIDIA driver, but these tests were built without the \
             feature `cuda`: run `cargo test --features cuda`",
        )),
        (false, false) => Ok(None),
    }
}

#[test]
fn a_gpu_that_is_left_out_is_spoken_of() {
    assert_eq!(notice(false, false), Ok(None));
    assert!(notice(true, false).unwrap().unwrap().contains("cargo test --features cuda"));
    assert!(notice(true, true).is_err() && notice(false, true).is_err());

    let signs = ["/dev/nvidiactl", "/proc/driver/nvidia/version", "/usr/lib/wsl/lib/libcuda.so.1"];
    let has_driver = signs.iter().any(|sign| Path::new(sign).exists());
    let required = std::env::var_os("WARPFOLD_REQUIRE_GPU").is_some_and(|value| value == "1");
    if let Some(line) = notice(has_driver, required).expect("no GPU is required of a build without `cuda`") {
        // Past the capture of passing tests' output.
        writeln!(std::io::stderr(), "{line}").expect("standard error takes a line");
    }
}
