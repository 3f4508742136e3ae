//! Unit tests of the parts of the command that read files and show progress. They are compiled here, so that the command itself,
//! which has code for every operator and type, need not be compiled a second time for them.

#![allow(dead_code, unused_imports, reason = "the rest of the command is what uses it")]

#[path = "../src/bin/warpfold/error.rs"]
mod error;
#[path = "../src/bin/warpfold/input/mod.rs"]
mod input;
#[path = "../src/bin/warpfold/progress.rs"]
mod progress;
