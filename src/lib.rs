//! GPU reductions in Rust, with the same bits on every GPU and on the CPU.
