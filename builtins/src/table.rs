//! All exports in one table.

use core::any::{TypeId, type_name};

use half::{bf16, f16};
use num_complex::Complex;
use warpfold_gpu_kernels::{
    export::{Descriptor, Export, Table},
    source::{Array, Over, Zip2},
};
use warpfold_monoid::{
    All, And, Any, Count, Dot, IgnoreNan, L1, Linf, Max, Monoid, Or, Product, StdDev, Sum, SumSquares, Xor,
};

use crate::{core as first, more};

/// Every operator that is compiled ahead.
pub static TABLE: Table = Table { krate: env!("CARGO_PKG_NAME"), exports: &EXPORTS };

/// Operators that run another one's kernels: of the same layout, they do the same to the same bits (in integers that wrap, and
/// truth values that are bytes of 0 and 1), or differ in a run-time parameter only.
static SHARED: [Export; 62] = [
    shared::<Sum<i8>>("sum_u8"),
    shared::<Sum<i16>>("sum_u16"),
    shared::<And<i8>>("and_u8"),
    shared::<And<i16>>("and_u16"),
    shared::<And<i32>>("and_u32"),
    shared::<And<i64>>("and_u64"),
    shared::<Or<i8>>("or_u8"),
    shared::<Or<i16>>("or_u16"),
    shared::<Or<i32>>("or_u32"),
    shared::<Or<i64>>("or_u64"),
    shared::<Xor<i8>>("xor_u8"),
    shared::<Xor<i16>>("xor_u16"),
    shared::<Xor<i32>>("xor_u32"),
    shared::<Xor<i64>>("xor_u64"),
    shared::<All<i8>>("all_u8"),
    shared::<All<i16>>("all_u16"),
    shared::<All<i32>>("all_u32"),
    shared::<All<i64>>("all_u64"),
    shared::<Any<i8>>("any_u8"),
    shared::<Any<i16>>("any_u16"),
    shared::<Any<i32>>("any_u32"),
    shared::<Any<i64>>("any_u64"),
    shared::<Count<i8>>("count_u8"),
    shared::<Count<i16>>("count_u16"),
    shared::<Count<i32>>("count_u32"),
    shared::<Count<i64>>("count_u64"),
    shared::<Or<bool>>("or_u8"),
    shared::<Xor<bool>>("xor_u8"),
    shared::<All<bool>>("all_u8"),
    shared::<Any<bool>>("any_u8"),
    shared::<Count<bool>>("count_u8"),
    shared::<Max<bool>>("max_u8"),
    shared::<SumSquares<i64>>("sumsq_u64"),
    shared::<Over<Dot<i64>, Zip2<Array<i64>, Array<i64>>>>("dot_u64"),
    shared::<L1<u8>>("sum_u8_u64"),
    shared::<Linf<u8>>("max_u8"),
    shared::<L1<u16>>("sum_u16_u64"),
    shared::<Linf<u16>>("max_u16"),
    shared::<L1<u32>>("sum_u32_u64"),
    shared::<Linf<u32>>("max_u32"),
    shared::<L1<u64>>("sum_u64"),
    shared::<Linf<u64>>("max_u64"),
    shared::<Sum<i32>>("sum_u32"),
    shared::<Sum<i64>>("sum_u64"),
    shared::<Product<i32>>("product_u32"),
    shared::<Product<i64>>("product_u64"),
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

/// Those with kernels of their own.
static OWN: [Export; first::TABLE.exports.len() + more::TABLE.exports.len()] =
    joined([first::TABLE.exports, more::TABLE.exports]);

static EXPORTS: [Export; OWN.len() + SHARED.len()] = joined([&OWN, &SHARED]);

/// Two lists as one.
const fn joined<const N: usize>(lists: [&[Export]; 2]) -> [Export; N] {
    let mut all = [first::TABLE.exports[0]; N];
    let (mut next, mut list) = (0, 0);
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
}

/// `Op` with the kernels exported under that name.
const fn shared<Op: Monoid>(name: &str) -> Export {
    let mut i = 0;
    while i < OWN.len() {
        if same(OWN[i].name, name) {
            let there = OWN[i].descriptor;
            assert!(there.alike(&Descriptor::of::<Op>()), "kernels of operators that look alike");
            return Export { operator: TypeId::of::<Op>(), type_name: type_name::<Op>, ..OWN[i] };
        }
        i += 1;
    }
    panic!("no kernels of that name")
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}
