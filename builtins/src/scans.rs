//! The operators whose scans are kernels that are compiled ahead.

use warpfold_gpu_kernels::scan_kernels;
use warpfold_monoid::{ArgMax, ArgMin, Compose, Fast, Max, Min, Product, Sum};

scan_kernels! {
    /// Their exports.
    pub static TABLE:
    sum_i32_scan => Sum<i32>,
    sum_u32_scan => Sum<u32>,
    sum_i64_scan => Sum<i64>,
    sum_u64_scan => Sum<u64>,
    sum_i32_i64_scan => Sum<i32, i64>,
    sum_u32_u64_scan => Sum<u32, u64>,
    sum_u8_u32_scan => Sum<u8, u32>,
    sum_u8_u64_scan => Sum<u8, u64>,
    sum_f32_scan => Sum<f32>,
    sum_f64_scan => Sum<f64>,
    product_i64_scan => Product<i64>,
    product_u64_scan => Product<u64>,
    product_f32_scan => Product<f32>,
    product_f64_scan => Product<f64>,
    min_i32_scan => Min<i32>,
    min_i64_scan => Min<i64>,
    min_u64_scan => Min<u64>,
    min_f32_scan => Min<f32>,
    min_f64_scan => Min<f64>,
    max_i32_scan => Max<i32>,
    max_i64_scan => Max<i64>,
    max_u64_scan => Max<u64>,
    max_f32_scan => Max<f32>,
    max_f64_scan => Max<f64>,
    argmin_f32_scan => ArgMin<f32>,
    argmax_f32_scan => ArgMax<f32>,
    compose_f32_scan => Compose<f32>,
    compose_i32_scan => Compose<i32>,
    fast_sum_f32_scan => Fast<Sum<f32>>,
    fast_sum_f64_scan => Fast<Sum<f64>>,
}

/// Words that are written and read once a tile and do not find room among the registers that let five blocks stay, or four that
/// scan tile after tile: bytes in wider types gain 5 % by the fourth.
#[cfg(target_arch = "nvptx64")]
const _: () = {
    #[unsafe(export_name = "compose_i32_scan__forward__allow_stack")]
    static COMPOSE_I32: u32 = 16;
    #[unsafe(export_name = "compose_i32_scan__reverse__allow_stack")]
    static COMPOSE_I32_REVERSE: u32 = 8;
    #[unsafe(export_name = "sum_u8_u32_scan__persistent_reverse__allow_stack")]
    static SUM_U8_U32_REVERSE: u32 = 16;
    #[unsafe(export_name = "sum_u8_u64_scan__persistent_forward__allow_stack")]
    static SUM_U8_U64: u32 = 40;
    #[unsafe(export_name = "sum_u8_u64_scan__persistent_reverse__allow_stack")]
    static SUM_U8_U64_REVERSE: u32 = 40;
};
