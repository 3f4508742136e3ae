//! The operators whose segments are folded by kernels that are compiled ahead.

use half::f16;
use warpfold_gpu_kernels::{
    beside::{Along, Beside},
    segment_kernels,
};
use warpfold_monoid::{Any, ArgMax, ArgMin, Compose, Dot, Max, MaxSegmentSum, Mean, Min, Product, Sum};

segment_kernels! {
    /// Their exports.
    pub static TABLE:
    sum_f16_segments => Sum<f16>,
    sum_f32_segments => Sum<f32>,
    sum_f64_segments => Sum<f64>,
    sum_i32_segments => Sum<i32>,
    sum_i32_i64_segments => Sum<i32, i64>,
    sum_i64_segments => Sum<i64>,
    sum_u8_u64_segments => Sum<u8, u64>,
    product_f32_segments => Product<f32>,
    min_f32_segments => Min<f32>,
    min_f64_segments => Min<f64>,
    min_i32_segments => Min<i32>,
    max_f32_segments => Max<f32>,
    max_f64_segments => Max<f64>,
    max_i32_segments => Max<i32>,
    argmin_f32_segments => ArgMin<f32>,
    argmax_f32_segments => ArgMax<f32>,
    any_bool_segments => Any<bool>,
    mean_f32_segments => Mean<f32>,
    mean_f64_segments => Mean<f64>,
    mss_i32_segments => MaxSegmentSum<i32>,
    mss_f32_segments => MaxSegmentSum<f32>,
    compose_f32_segments => Compose<f32>,
    // A matrix times a vector.
    dot_f32_along_segments => Beside<Dot<f32>, Along<f32>>,
}

/// What does not find room among the registers that let so many blocks stay: a word or two, read once a chunk.
#[cfg(target_arch = "nvptx64")]
const _: () = {
    #[unsafe(export_name = "sum_f16_segments__units__allow_stack")]
    static SUM_F16: u32 = 16;
    #[unsafe(export_name = "sum_f32_segments__units__allow_stack")]
    static SUM_F32: u32 = 16;
    #[unsafe(export_name = "product_f32_segments__units__allow_stack")]
    static PRODUCT_F32: u32 = 16;
    #[unsafe(export_name = "dot_f32_along_segments__narrow__allow_stack")]
    static DOT_F32: u32 = 16;
    #[unsafe(export_name = "dot_f32_along_segments__columns_few__allow_stack")]
    static DOT_F32_FEW: u32 = 32;
    #[unsafe(export_name = "dot_f32_along_segments__columns__allow_stack")]
    static DOT_F32_COLUMNS: u32 = 16;
    #[unsafe(export_name = "dot_f32_along_segments__flat__allow_stack")]
    static DOT_F32_FLAT: u32 = 16;
};
