//! The operators whose reductions by tag and by key are compiled ahead, and the sorts that grouping takes.

use warpfold_gpu_kernels::{key_kernels, sort_kernels, tag_kernels};
use warpfold_monoid::{
    ArgMax, Compose, Fast, Max, Mean, Sum,
    keyed::{Heads, RunEnds},
};

tag_kernels! {
    /// The exports of reductions by tag.
    pub static TAGS:
    sum_i32_tags => Sum<i32>,
    sum_i64_tags => Sum<i64>,
    sum_f32_tags => Sum<f32>,
    sum_f64_tags => Sum<f64>,
    fast_sum_f32_tags => Fast<Sum<f32>>,
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
    sum_f32_by_i64 => (i64, Sum<f32>),
    arg_max_f32_by_i64 => (i64, ArgMax<f32>),
    ends_by_i32 => (i32, RunEnds),
    ends_by_i64 => (i64, RunEnds),
    ends_by_flag => (u8, RunEnds, Heads),
}

sort_kernels! {
    /// The exports of sorts, which serve all operators.
    pub static SORTS:
    sort_u32_u32 => (u32, u32),
    sort_u32_u64 => (u32, u64),
    sort_u64_u32 => (u64, u32),
    sort_u64_u64 => (u64, u64),
}
