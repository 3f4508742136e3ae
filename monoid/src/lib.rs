//! The algebra of warpfold: plain data, associative operators, the canonical reduction tree.
#![no_std]

mod plain;

pub use plain::{Plain, fingerprint};
