//! The operators whose scans of short rows, columns and segments of any lengths are kernels that are compiled ahead. The
//! other scans' are right without, and slower.

use warpfold_gpu_kernels::scan_line_kernels;
use warpfold_monoid::{Compose, Max, Sum};

scan_line_kernels! {
    /// Their exports.
    pub static TABLE:
    sum_i32_lines => Sum<i32>,
    sum_i64_lines => Sum<i64>,
    sum_u8_u32_lines => Sum<u8, u32>,
    sum_f32_lines => Sum<f32>,
    sum_f64_lines => Sum<f64>,
    max_f32_lines => Max<f32>,
    compose_f32_lines => Compose<f32>,
}
