//! All exports in one table.

use core::any::{TypeId, type_name};

use half::{bf16, f16};
use num_complex::Complex;
use warpfold_gpu_kernels::export::{Export, Table};
use warpfold_monoid::{IgnoreNan, Monoid, StdDev};

use crate::{core as first, more};

/// Every operator that is compiled ahead.
pub static TABLE: Table = Table { krate: env!("CARGO_PKG_NAME"), exports: &EXPORTS };

/// Operators that run another one's kernels: the two differ in a run-time parameter only, and look alike otherwise.
static SHARED: [Export; 16] = [
    shared::<StdDev<i8>>("var_i8"),
    shared::<StdDev<u8>>("var_u8"),
    shared::<StdDev<i16>>("var_i16"),
    shared::<StdDev<u16>>("var_u16"),
    shared::<StdDev<i32>>("var_i32"),
    shared::<StdDev<u32>>("var_u32"),
    shared::<StdDev<i64>>("var_i64"),
    shared::<StdDev<u64>>("var_u64"),
    shared::<StdDev<f16>>("var_f16"),
    shared::<StdDev<bf16>>("var_bf16"),
    shared::<StdDev<f32>>("var_f32"),
    shared::<IgnoreNan<StdDev<f32>>>("nanvar_f32"),
    shared::<StdDev<f64>>("var_f64"),
    shared::<IgnoreNan<StdDev<f64>>>("nanvar_f64"),
    shared::<StdDev<Complex<f32>>>("var_c32"),
    shared::<StdDev<Complex<f64>>>("var_c64"),
];

const COUNT: usize = first::TABLE.exports.len() + more::TABLE.exports.len() + SHARED.len();

static EXPORTS: [Export; COUNT] = {
    let mut all = [first::TABLE.exports[0]; COUNT];
    let mut next = 0;
    let lists: [&[Export]; 3] = [first::TABLE.exports, more::TABLE.exports, &SHARED];
    let mut list = 0;
    while list < lists.len() {
        let mut i = 0;
        while i < lists[list].len() {
            all[next] = lists[list][i];
            next += 1;
            i += 1;
        }
        list += 1;
    }
    all
};

/// `Op` with the kernels exported under that name.
const fn shared<Op: Monoid>(name: &str) -> Export {
    let exports = more::TABLE.exports;
    let mut i = 0;
    while !same(exports[i].name, name) {
        i += 1;
    }
    Export { operator: TypeId::of::<Op>(), type_name: type_name::<Op>, ..exports[i] }
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}
