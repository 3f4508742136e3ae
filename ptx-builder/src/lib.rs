//! Builds a Rust kernel crate to PTX modules from a build script.

