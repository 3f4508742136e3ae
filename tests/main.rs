//! Tests through what users see: the library's public API and the command. One binary, a module per theme; it also
//! runs where there is a GPU and no compiler.
//!
//! Most run on every backend at hand (see `support::engines`). Where a GPU is missing, its tests say so and do
//! nothing; with `WARPFOLD_REQUIRE_GPU=1` they fail.

#[cfg_attr(
    feature = "device-tests-only",
    allow(dead_code, unused_macros, unused_imports, reason = "for the tests that are left out")
)]
mod support;

#[cfg(not(feature = "device-tests-only"))]
mod cases;
#[cfg(feature = "cli")]
mod cli;
#[cfg(not(feature = "device-tests-only"))]
mod keys;
#[cfg(feature = "cuda")]
mod keys_gpu;
#[cfg(not(feature = "cuda"))]
mod left_out;
#[cfg(feature = "every-operator")]
mod operators;
mod reduce_errors;
#[cfg(not(feature = "device-tests-only"))]
mod reduce_exact;
#[cfg(feature = "cuda")]
mod reduce_gpu;
#[cfg(not(feature = "device-tests-only"))]
mod reduce_inputs;
#[cfg(not(feature = "device-tests-only"))]
mod reduce_order;
#[cfg(not(feature = "device-tests-only"))]
mod reduce_rules;
#[cfg(not(feature = "device-tests-only"))]
mod reduce_sim;
#[cfg(not(feature = "device-tests-only"))]
mod scans;
#[cfg(feature = "cuda")]
mod scans_gpu;
#[cfg(not(feature = "device-tests-only"))]
mod segments;
#[cfg(not(feature = "device-tests-only"))]
mod segments_cases;
#[cfg(feature = "cuda")]
mod segments_gpu;
#[cfg(feature = "cuda")]
mod sinks_gpu;
#[cfg(feature = "cuda")]
mod tags_gpu;
