//! Kernels of the papers, for `benches/ladder.rs`: built only when they are asked for by name.

use warpfold_gpu_kernels::ladder_kernels;
use warpfold_monoid::Sum;

ladder_kernels! {
    sum_i32_ladder => Sum<i32>,
}
