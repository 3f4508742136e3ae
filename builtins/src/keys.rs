//! The operators whose reductions by tag and by key are compiled ahead.

use warpfold_gpu_kernels::{key_kernels, tag_kernels};
use warpfold_monoid::{Compose, Max, Mean, Sum};

tag_kernels! {
    /// The exports of reductions by tag.
    pub static TAGS:
    sum_i32_tags => Sum<i32>,
    sum_i64_tags => Sum<i64>,
    sum_f32_tags => Sum<f32>,
    sum_f64_tags => Sum<f64>,
    max_f32_tags => Max<f32>,
    mean_f32_tags => Mean<f32>,
}

key_kernels! {
    /// The exports of reductions by key.
    pub static KEYS:
    sum_f32_by_i32 => (i32, Sum<f32>),
    sum_i64_by_i64 => (i64, Sum<i64>),
    mean_f32_by_i32 => (i32, Mean<f32>),
    compose_f32_by_i32 => (i32, Compose<f32>),
}
