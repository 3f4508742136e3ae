//! Tests through the public API, in one binary that also runs where there is a GPU and no compiler.
//!
//! Most run on every backend at hand (see `support::engines`). Where a GPU is missing, its tests say so and do
//! nothing; with `WARPFOLD_REQUIRE_GPU=1` they fail.

mod support;

#[cfg(feature = "cli")]
mod cli;
mod reduce_errors;
mod reduce_exact;
#[cfg(feature = "cuda")]
mod reduce_gpu;
mod reduce_inputs;
mod reduce_rules;
