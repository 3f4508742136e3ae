//! The operators whose short reductions are worth an image of their own for each architecture.

use warpfold_gpu_kernels::kernels;
use warpfold_monoid::{
    Compose, DoubleDouble, Max, MaxSegmentSum, Min, NanMax, NanMin, NanProduct, NanSum, Product, Sum,
};

kernels! {
    /// Their exports.
    pub static TABLE:
    // Sums and products.
    sum_i32_i64 => Sum<i32, i64>,
    sum_u32 => Sum<u32>,
    sum_u32_u64 => Sum<u32, u64>,
    sum_u64 => Sum<u64>,
    sum_f32 => Sum<f32>,
    sum_f64 => Sum<f64>,
    sum_f32_exact => Sum<f32, DoubleDouble>,
    nansum_f32 => NanSum<f32>,
    nansum_f64 => NanSum<f64>,
    product_i32_i64 => Product<i32, i64>,
    product_u32 => Product<u32>,
    product_u32_u64 => Product<u32, u64>,
    product_u64 => Product<u64>,
    product_f32 => Product<f32>,
    product_f64 => Product<f64>,
    nanproduct_f32 => NanProduct<f32>,
    nanproduct_f64 => NanProduct<f64>,
    // Extremes, and where they stand.
    min_i32 => Min<i32>,
    min_u32 => Min<u32>,
    min_i64 => Min<i64>,
    min_u64 => Min<u64>,
    min_f32 => Min<f32>,
    min_f64 => Min<f64>,
    nanmin_f32 => NanMin<f32>,
    nanmin_f64 => NanMin<f64>,
    max_i32 => Max<i32>,
    max_u32 => Max<u32>,
    max_i64 => Max<i64>,
    max_u64 => Max<u64>,
    max_f32 => Max<f32>,
    max_f64 => Max<f64>,
    nanmax_f32 => NanMax<f32>,
    nanmax_f64 => NanMax<f64>,
    // Where order matters.
    mss_i32 => MaxSegmentSum<i32>,
    mss_i32_i64 => MaxSegmentSum<i32, i64>,
    mss_i64 => MaxSegmentSum<i64>,
    compose_f32 => Compose<f32>,
    compose_f64 => Compose<f64>,
    // Several in one pass.
    summinmax_f32 => (Sum<f32>, Min<f32>, Max<f32>),
}
