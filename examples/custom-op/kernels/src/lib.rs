//! Operators for warpfold: ordinary Rust, compiled for the host and for GPUs.
//!
//! One module an operator, one line each in `kernels!`. Compositions and segment sums are built in too; here they show how
//! such operators are written.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

#[cfg(target_arch = "nvptx64")]
warpfold_simt::device_panic_handler!();

mod affine;
mod bounds;
mod columns;
mod count_over;
mod heights;
mod longest_run;
mod matrix;
mod max_segment;
mod mean;

pub use affine::{AffineMap, Compose};
pub use bounds::{Bounds, Seen};
pub use columns::{Axpy, AxpyAndNorm, NormOfPairs, Pairs, Squared, SquaredNorm};
pub use count_over::CountOver;
pub use heights::{Particle, SquaredHeight, SumOfSquaredHeights};
pub use longest_run::{LongestRun, Runs};
pub use matrix::{Matrix, MatrixProduct};
pub use max_segment::{MaxSegmentSum, Sums};
pub use mean::{Mean, Total};
use warpfold_gpu_kernels::{kernels, source::InitialAt};
use warpfold_monoid::NonEmpty;

kernels! {
    /// What the host finds the kernels by.
    pub static TABLE:
    affine => Compose,
    affine_after => InitialAt<Compose>,
    axpy_and_norm => AxpyAndNorm,
    bounds => Bounds,
    count_over => CountOver,
    heights => SumOfSquaredHeights,
    longest_run => LongestRun,
    matrix => MatrixProduct,
    max_segment => NonEmpty<MaxSegmentSum>,
    mean => Mean,
    norm => NormOfPairs,
}
