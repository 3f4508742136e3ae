//! The simulator through the public API: what it computes, what it finds, how fast it is.

// Kernels written to cuda_std's API import it by that name.
extern crate warpfold_simt as cuda_std;

mod atomics;
mod common;
mod counts;
mod cuda_style;
mod detect;
mod schedules;
mod shared_memory;
mod speed;
mod threads;
mod warps;
