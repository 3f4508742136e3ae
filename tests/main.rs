//! Tests through what users see: the library's public API and the command. One binary, a module per theme.

#[cfg(feature = "cli")]
mod cli;

#[cfg(not(feature = "cuda"))]
mod left_out;
