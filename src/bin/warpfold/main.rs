//! The command `warpfold`: reductions of files, on the GPU or the CPU.
#![cfg_attr(test, allow(dead_code, unused_imports, reason = "its users are left out"))]

// A test build has the modules with unit tests alone. The operators are most of the command's code, and would be compiled
// once more for nothing: tests/cli/ runs them.
#[cfg(not(test))]
mod args;
#[cfg(not(test))]
mod catalog;
#[cfg(not(test))]
mod command;
mod error;
#[cfg(not(test))]
mod info;
mod input;
#[cfg(not(test))]
mod keys;
#[cfg(not(test))]
mod npy_out;
#[cfg(not(test))]
mod ops;
#[cfg(not(test))]
mod output;
mod progress;
#[cfg(not(test))]
mod scan;
#[cfg(not(test))]
mod segments;

#[cfg(not(test))]
fn main() -> std::process::ExitCode {
    command::run()
}
