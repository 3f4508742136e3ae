//! Every operator that is compiled ahead, one a line, for tests and benches that go through them all; and items for
//! them.

use std::fmt::Debug;

use half::{bf16, f16};
use num_complex::Complex;
use warpfold::{
    Affine, All, And, Any, ArgMax, ArgMin, CheckedSum, Compose, Count, Dot, DoubleDouble, IgnoreNan, L1, L2,
    Linf, LogSumExp, Max, MaxSegmentSum, Mean, Min, MinMax, Monoid, NanMax, NanMin, NanMinMax, NanProduct,
    NanSum, Or, Plain, Product, StdDev, Sum, SumSquares, Value, Variance, Xor, monoid::fused::Parts2,
};

use super::random::Random;

/// What is done with every operator.
pub trait Visit {
    /// An operator over one array, exported under that name.
    fn op<Op: Monoid<Item: Data> + Default>(&mut self, name: &'static str)
    where
        Value<Op>: Debug;
    /// The dot product of two arrays.
    fn dot<T: Data>(&mut self, name: &'static str)
    where
        Dot<T>: Monoid<Item = Parts2<T, T>>,
        Value<Dot<T>>: Debug;
}

/// An item type with data that shows faults.
pub trait Data: Plain {
    /// Values of both signs and, for floats, of many magnitudes.
    fn ordinary(random: &mut Random) -> Self;
    /// Values of which many can be multiplied.
    fn factor(random: &mut Random) -> Self {
        Self::ordinary(random)
    }
    /// Ordinary values and, now and then, an extreme one.
    fn special(random: &mut Random) -> Self;
}

macro_rules! integer_data {
    ($($type:ident)*) => {$(
        impl Data for $type {
            fn ordinary(random: &mut Random) -> Self {
                random.bits() as $type
            }
            fn factor(random: &mut Random) -> Self {
                // Odd, so that products do not become zero.
                random.bits() as $type | 1
            }
            fn special(random: &mut Random) -> Self {
                match random.below(100) {
                    0 => $type::MAX,
                    1 => $type::MIN,
                    2..50 => 0,
                    _ => random.bits() as $type,
                }
            }
        }
    )*};
}
integer_data! { i8 u8 i16 u16 i32 u32 i64 u64 }

impl Data for bool {
    fn ordinary(random: &mut Random) -> Self {
        random.bits() & 1 == 1
    }
    fn special(random: &mut Random) -> Self {
        random.below(1000) != 0
    }
}

macro_rules! float_data {
    ($($type:ident $spread:literal, $of:expr;)*) => {$(
        impl Data for $type {
            fn ordinary(random: &mut Random) -> Self {
                $of(random.spread($spread))
            }
            fn factor(random: &mut Random) -> Self {
                let factor = (0.2 * (random.unit() - 0.5)).exp2();
                $of(if random.bits() & 1 == 0 { factor } else { -factor })
            }
            fn special(random: &mut Random) -> Self {
                match random.below(30_000) {
                    0 => $type::from_bits($type::NAN.to_bits() | 1 | 1 << (8 * size_of::<$type>() - 1)),
                    1 => $type::INFINITY,
                    2 => $type::NEG_INFINITY,
                    3 => $type::MAX,
                    4..1000 => $of(f64::from($type::MIN_POSITIVE) * random.unit()),
                    1000..5000 => $of(0.0),
                    5000..10_000 => $of(-0.0),
                    _ => $of(random.spread(3)),
                }
            }
        }
    )*};
}
float_data! {
    f16 6, f16::from_f64;
    bf16 20, bf16::from_f64;
    f32 20, |x: f64| x as f32;
    f64 20, |x: f64| x;
}

impl<T: Data> Data for Complex<T> {
    fn ordinary(random: &mut Random) -> Self {
        Complex { re: T::ordinary(random), im: T::ordinary(random) }
    }
    fn factor(random: &mut Random) -> Self {
        Complex { re: T::factor(random), im: T::factor(random) }
    }
    fn special(random: &mut Random) -> Self {
        Complex { re: T::special(random), im: T::special(random) }
    }
}

macro_rules! affine_data {
    ($($type:ident)*) => {$(
        impl Data for Affine<$type> {
            fn ordinary(random: &mut Random) -> Self {
                // Of many factors near one the product does not run away.
                let scale = 1.0 + (random.unit() as $type - 0.5) / 4096.0;
                Affine { scale: if random.bits() & 1 == 0 { scale } else { -scale }, shift: $type::ordinary(random) }
            }
            fn special(random: &mut Random) -> Self {
                Affine { scale: $type::factor(random), shift: $type::special(random) }
            }
        }
    )*};
}
affine_data! { f32 f64 }

impl<T: Data> Data for Parts2<T, T> {
    fn ordinary(random: &mut Random) -> Self {
        Parts2::new(T::ordinary(random), T::ordinary(random))
    }
    fn special(random: &mut Random) -> Self {
        Parts2::new(T::special(random), T::special(random))
    }
}

/// Visits every operator that is compiled ahead.
#[rustfmt::skip]
pub fn every(visit: &mut impl Visit) {
    // Sums and products.
    visit.op::<Sum<i8>>("sum_i8");
    visit.op::<Sum<i8, i64>>("sum_i8_i64");
    visit.op::<Sum<u8>>("sum_u8");
    visit.op::<Sum<u8, u64>>("sum_u8_u64");
    visit.op::<Sum<i16>>("sum_i16");
    visit.op::<Sum<i16, i64>>("sum_i16_i64");
    visit.op::<Sum<u16>>("sum_u16");
    visit.op::<Sum<u16, u64>>("sum_u16_u64");
    visit.op::<Sum<i32>>("sum_i32");
    visit.op::<Sum<i32, i64>>("sum_i32_i64");
    visit.op::<Sum<u32>>("sum_u32");
    visit.op::<Sum<u32, u64>>("sum_u32_u64");
    visit.op::<Sum<i64>>("sum_i64");
    visit.op::<Sum<u64>>("sum_u64");
    visit.op::<Sum<f16>>("sum_f16");
    visit.op::<Sum<bf16>>("sum_bf16");
    visit.op::<Sum<f32>>("sum_f32");
    visit.op::<Sum<f64>>("sum_f64");
    visit.op::<Sum<f32, DoubleDouble>>("sum_f32_exact");
    visit.op::<Sum<Complex<f32>>>("sum_c32");
    visit.op::<Sum<Complex<f64>>>("sum_c64");
    visit.op::<NanSum<f16>>("nansum_f16");
    visit.op::<NanSum<bf16>>("nansum_bf16");
    visit.op::<NanSum<f32>>("nansum_f32");
    visit.op::<NanSum<f64>>("nansum_f64");
    visit.op::<Product<i8, i64>>("product_i8_i64");
    visit.op::<Product<u8, u64>>("product_u8_u64");
    visit.op::<Product<i16, i64>>("product_i16_i64");
    visit.op::<Product<u16, u64>>("product_u16_u64");
    visit.op::<Product<i32>>("product_i32");
    visit.op::<Product<i32, i64>>("product_i32_i64");
    visit.op::<Product<u32>>("product_u32");
    visit.op::<Product<u32, u64>>("product_u32_u64");
    visit.op::<Product<i64>>("product_i64");
    visit.op::<Product<u64>>("product_u64");
    visit.op::<Product<f16>>("product_f16");
    visit.op::<Product<bf16>>("product_bf16");
    visit.op::<Product<f32>>("product_f32");
    visit.op::<Product<f64>>("product_f64");
    visit.op::<Product<Complex<f32>>>("product_c32");
    visit.op::<Product<Complex<f64>>>("product_c64");
    visit.op::<NanProduct<f16>>("nanproduct_f16");
    visit.op::<NanProduct<bf16>>("nanproduct_bf16");
    visit.op::<NanProduct<f32>>("nanproduct_f32");
    visit.op::<NanProduct<f64>>("nanproduct_f64");
    visit.op::<CheckedSum<i32>>("checkedsum_i32");
    visit.op::<CheckedSum<u32>>("checkedsum_u32");
    visit.op::<CheckedSum<i64>>("checkedsum_i64");
    visit.op::<CheckedSum<u64>>("checkedsum_u64");
    // Extremes, and where they stand.
    visit.op::<Min<i8>>("min_i8");
    visit.op::<Min<u8>>("min_u8");
    visit.op::<Min<i16>>("min_i16");
    visit.op::<Min<u16>>("min_u16");
    visit.op::<Min<i32>>("min_i32");
    visit.op::<Min<u32>>("min_u32");
    visit.op::<Min<i64>>("min_i64");
    visit.op::<Min<u64>>("min_u64");
    visit.op::<Min<f16>>("min_f16");
    visit.op::<Min<bf16>>("min_bf16");
    visit.op::<Min<f32>>("min_f32");
    visit.op::<Min<f64>>("min_f64");
    visit.op::<Min<bool>>("min_bool");
    visit.op::<NanMin<f16>>("nanmin_f16");
    visit.op::<NanMin<bf16>>("nanmin_bf16");
    visit.op::<NanMin<f32>>("nanmin_f32");
    visit.op::<NanMin<f64>>("nanmin_f64");
    visit.op::<Max<i8>>("max_i8");
    visit.op::<Max<u8>>("max_u8");
    visit.op::<Max<i16>>("max_i16");
    visit.op::<Max<u16>>("max_u16");
    visit.op::<Max<i32>>("max_i32");
    visit.op::<Max<u32>>("max_u32");
    visit.op::<Max<i64>>("max_i64");
    visit.op::<Max<u64>>("max_u64");
    visit.op::<Max<f16>>("max_f16");
    visit.op::<Max<bf16>>("max_bf16");
    visit.op::<Max<f32>>("max_f32");
    visit.op::<Max<f64>>("max_f64");
    visit.op::<Max<bool>>("max_bool");
    visit.op::<NanMax<f16>>("nanmax_f16");
    visit.op::<NanMax<bf16>>("nanmax_bf16");
    visit.op::<NanMax<f32>>("nanmax_f32");
    visit.op::<NanMax<f64>>("nanmax_f64");
    visit.op::<MinMax<i8>>("minmax_i8");
    visit.op::<MinMax<u8>>("minmax_u8");
    visit.op::<MinMax<i16>>("minmax_i16");
    visit.op::<MinMax<u16>>("minmax_u16");
    visit.op::<MinMax<i32>>("minmax_i32");
    visit.op::<MinMax<u32>>("minmax_u32");
    visit.op::<MinMax<i64>>("minmax_i64");
    visit.op::<MinMax<u64>>("minmax_u64");
    visit.op::<MinMax<f16>>("minmax_f16");
    visit.op::<MinMax<bf16>>("minmax_bf16");
    visit.op::<MinMax<f32>>("minmax_f32");
    visit.op::<MinMax<f64>>("minmax_f64");
    visit.op::<MinMax<bool>>("minmax_bool");
    visit.op::<NanMinMax<f32>>("nanminmax_f32");
    visit.op::<NanMinMax<f64>>("nanminmax_f64");
    visit.op::<ArgMin<i8>>("argmin_i8");
    visit.op::<ArgMin<u8>>("argmin_u8");
    visit.op::<ArgMin<i16>>("argmin_i16");
    visit.op::<ArgMin<u16>>("argmin_u16");
    visit.op::<ArgMin<i32>>("argmin_i32");
    visit.op::<ArgMin<u32>>("argmin_u32");
    visit.op::<ArgMin<i64>>("argmin_i64");
    visit.op::<ArgMin<u64>>("argmin_u64");
    visit.op::<ArgMin<f16>>("argmin_f16");
    visit.op::<ArgMin<bf16>>("argmin_bf16");
    visit.op::<ArgMin<f32>>("argmin_f32");
    visit.op::<ArgMin<f64>>("argmin_f64");
    visit.op::<ArgMin<bool>>("argmin_bool");
    visit.op::<IgnoreNan<ArgMin<f32>>>("nanargmin_f32");
    visit.op::<IgnoreNan<ArgMin<f64>>>("nanargmin_f64");
    visit.op::<ArgMax<i8>>("argmax_i8");
    visit.op::<ArgMax<u8>>("argmax_u8");
    visit.op::<ArgMax<i16>>("argmax_i16");
    visit.op::<ArgMax<u16>>("argmax_u16");
    visit.op::<ArgMax<i32>>("argmax_i32");
    visit.op::<ArgMax<u32>>("argmax_u32");
    visit.op::<ArgMax<i64>>("argmax_i64");
    visit.op::<ArgMax<u64>>("argmax_u64");
    visit.op::<ArgMax<f16>>("argmax_f16");
    visit.op::<ArgMax<bf16>>("argmax_bf16");
    visit.op::<ArgMax<f32>>("argmax_f32");
    visit.op::<ArgMax<f64>>("argmax_f64");
    visit.op::<ArgMax<bool>>("argmax_bool");
    visit.op::<IgnoreNan<ArgMax<f32>>>("nanargmax_f32");
    visit.op::<IgnoreNan<ArgMax<f64>>>("nanargmax_f64");
    // Bits and truth.
    visit.op::<And<i8>>("and_i8");
    visit.op::<And<u8>>("and_u8");
    visit.op::<And<i16>>("and_i16");
    visit.op::<And<u16>>("and_u16");
    visit.op::<And<i32>>("and_i32");
    visit.op::<And<u32>>("and_u32");
    visit.op::<And<i64>>("and_i64");
    visit.op::<And<u64>>("and_u64");
    visit.op::<And<bool>>("and_bool");
    visit.op::<Or<i8>>("or_i8");
    visit.op::<Or<u8>>("or_u8");
    visit.op::<Or<i16>>("or_i16");
    visit.op::<Or<u16>>("or_u16");
    visit.op::<Or<i32>>("or_i32");
    visit.op::<Or<u32>>("or_u32");
    visit.op::<Or<i64>>("or_i64");
    visit.op::<Or<u64>>("or_u64");
    visit.op::<Or<bool>>("or_bool");
    visit.op::<Xor<i8>>("xor_i8");
    visit.op::<Xor<u8>>("xor_u8");
    visit.op::<Xor<i16>>("xor_i16");
    visit.op::<Xor<u16>>("xor_u16");
    visit.op::<Xor<i32>>("xor_i32");
    visit.op::<Xor<u32>>("xor_u32");
    visit.op::<Xor<i64>>("xor_i64");
    visit.op::<Xor<u64>>("xor_u64");
    visit.op::<Xor<bool>>("xor_bool");
    visit.op::<All<i8>>("all_i8");
    visit.op::<All<u8>>("all_u8");
    visit.op::<All<i16>>("all_i16");
    visit.op::<All<u16>>("all_u16");
    visit.op::<All<i32>>("all_i32");
    visit.op::<All<u32>>("all_u32");
    visit.op::<All<i64>>("all_i64");
    visit.op::<All<u64>>("all_u64");
    visit.op::<All<f16>>("all_f16");
    visit.op::<All<bf16>>("all_bf16");
    visit.op::<All<f32>>("all_f32");
    visit.op::<All<f64>>("all_f64");
    visit.op::<All<bool>>("all_bool");
    visit.op::<All<Complex<f32>>>("all_c32");
    visit.op::<All<Complex<f64>>>("all_c64");
    visit.op::<Any<i8>>("any_i8");
    visit.op::<Any<u8>>("any_u8");
    visit.op::<Any<i16>>("any_i16");
    visit.op::<Any<u16>>("any_u16");
    visit.op::<Any<i32>>("any_i32");
    visit.op::<Any<u32>>("any_u32");
    visit.op::<Any<i64>>("any_i64");
    visit.op::<Any<u64>>("any_u64");
    visit.op::<Any<f16>>("any_f16");
    visit.op::<Any<bf16>>("any_bf16");
    visit.op::<Any<f32>>("any_f32");
    visit.op::<Any<f64>>("any_f64");
    visit.op::<Any<bool>>("any_bool");
    visit.op::<Any<Complex<f32>>>("any_c32");
    visit.op::<Any<Complex<f64>>>("any_c64");
    visit.op::<Count<i8>>("count_i8");
    visit.op::<Count<u8>>("count_u8");
    visit.op::<Count<i16>>("count_i16");
    visit.op::<Count<u16>>("count_u16");
    visit.op::<Count<i32>>("count_i32");
    visit.op::<Count<u32>>("count_u32");
    visit.op::<Count<i64>>("count_i64");
    visit.op::<Count<u64>>("count_u64");
    visit.op::<Count<f16>>("count_f16");
    visit.op::<Count<bf16>>("count_bf16");
    visit.op::<Count<f32>>("count_f32");
    visit.op::<Count<f64>>("count_f64");
    visit.op::<Count<bool>>("count_bool");
    visit.op::<Count<Complex<f32>>>("count_c32");
    visit.op::<Count<Complex<f64>>>("count_c64");
    // Norms and dot products.
    visit.op::<SumSquares<i8>>("sumsq_i8");
    visit.op::<SumSquares<u8>>("sumsq_u8");
    visit.op::<SumSquares<i16>>("sumsq_i16");
    visit.op::<SumSquares<u16>>("sumsq_u16");
    visit.op::<SumSquares<i32>>("sumsq_i32");
    visit.op::<SumSquares<u32>>("sumsq_u32");
    visit.op::<SumSquares<i64>>("sumsq_i64");
    visit.op::<SumSquares<u64>>("sumsq_u64");
    visit.op::<SumSquares<f16>>("sumsq_f16");
    visit.op::<SumSquares<bf16>>("sumsq_bf16");
    visit.op::<SumSquares<f32>>("sumsq_f32");
    visit.op::<IgnoreNan<SumSquares<f32>>>("nansumsq_f32");
    visit.op::<SumSquares<f64>>("sumsq_f64");
    visit.op::<IgnoreNan<SumSquares<f64>>>("nansumsq_f64");
    visit.op::<SumSquares<Complex<f32>>>("sumsq_c32");
    visit.op::<SumSquares<Complex<f64>>>("sumsq_c64");
    visit.op::<L1<i8>>("l1_i8");
    visit.op::<L1<u8>>("l1_u8");
    visit.op::<L1<i16>>("l1_i16");
    visit.op::<L1<u16>>("l1_u16");
    visit.op::<L1<i32>>("l1_i32");
    visit.op::<L1<u32>>("l1_u32");
    visit.op::<L1<i64>>("l1_i64");
    visit.op::<L1<u64>>("l1_u64");
    visit.op::<L1<f16>>("l1_f16");
    visit.op::<L1<bf16>>("l1_bf16");
    visit.op::<L1<f32>>("l1_f32");
    visit.op::<IgnoreNan<L1<f32>>>("nanl1_f32");
    visit.op::<L1<f64>>("l1_f64");
    visit.op::<IgnoreNan<L1<f64>>>("nanl1_f64");
    visit.op::<L1<Complex<f32>>>("l1_c32");
    visit.op::<L1<Complex<f64>>>("l1_c64");
    visit.op::<L2<i8>>("l2_i8");
    visit.op::<L2<u8>>("l2_u8");
    visit.op::<L2<i16>>("l2_i16");
    visit.op::<L2<u16>>("l2_u16");
    visit.op::<L2<i32>>("l2_i32");
    visit.op::<L2<u32>>("l2_u32");
    visit.op::<L2<i64>>("l2_i64");
    visit.op::<L2<u64>>("l2_u64");
    visit.op::<L2<f16>>("l2_f16");
    visit.op::<L2<bf16>>("l2_bf16");
    visit.op::<L2<f32>>("l2_f32");
    visit.op::<IgnoreNan<L2<f32>>>("nanl2_f32");
    visit.op::<L2<f64>>("l2_f64");
    visit.op::<IgnoreNan<L2<f64>>>("nanl2_f64");
    visit.op::<L2<Complex<f32>>>("l2_c32");
    visit.op::<L2<Complex<f64>>>("l2_c64");
    visit.op::<Linf<i8>>("linf_i8");
    visit.op::<Linf<u8>>("linf_u8");
    visit.op::<Linf<i16>>("linf_i16");
    visit.op::<Linf<u16>>("linf_u16");
    visit.op::<Linf<i32>>("linf_i32");
    visit.op::<Linf<u32>>("linf_u32");
    visit.op::<Linf<i64>>("linf_i64");
    visit.op::<Linf<u64>>("linf_u64");
    visit.op::<Linf<f16>>("linf_f16");
    visit.op::<Linf<bf16>>("linf_bf16");
    visit.op::<Linf<f32>>("linf_f32");
    visit.op::<IgnoreNan<Linf<f32>>>("nanlinf_f32");
    visit.op::<Linf<f64>>("linf_f64");
    visit.op::<IgnoreNan<Linf<f64>>>("nanlinf_f64");
    visit.op::<Linf<Complex<f32>>>("linf_c32");
    visit.op::<Linf<Complex<f64>>>("linf_c64");
    visit.dot::<i8>("dot_i8");
    visit.dot::<u8>("dot_u8");
    visit.dot::<i16>("dot_i16");
    visit.dot::<u16>("dot_u16");
    visit.dot::<i32>("dot_i32");
    visit.dot::<u32>("dot_u32");
    visit.dot::<i64>("dot_i64");
    visit.dot::<u64>("dot_u64");
    visit.dot::<f16>("dot_f16");
    visit.dot::<bf16>("dot_bf16");
    visit.dot::<f32>("dot_f32");
    visit.dot::<f64>("dot_f64");
    visit.dot::<Complex<f32>>("dot_c32");
    visit.dot::<Complex<f64>>("dot_c64");
    // Moments.
    visit.op::<Mean<i8>>("mean_i8");
    visit.op::<Mean<u8>>("mean_u8");
    visit.op::<Mean<i16>>("mean_i16");
    visit.op::<Mean<u16>>("mean_u16");
    visit.op::<Mean<i32>>("mean_i32");
    visit.op::<Mean<u32>>("mean_u32");
    visit.op::<Mean<i64>>("mean_i64");
    visit.op::<Mean<u64>>("mean_u64");
    visit.op::<Mean<f16>>("mean_f16");
    visit.op::<Mean<bf16>>("mean_bf16");
    visit.op::<Mean<f32>>("mean_f32");
    visit.op::<IgnoreNan<Mean<f32>>>("nanmean_f32");
    visit.op::<Mean<f64>>("mean_f64");
    visit.op::<IgnoreNan<Mean<f64>>>("nanmean_f64");
    visit.op::<Mean<Complex<f32>>>("mean_c32");
    visit.op::<Mean<Complex<f64>>>("mean_c64");
    visit.op::<Variance<i8>>("var_i8");
    visit.op::<Variance<u8>>("var_u8");
    visit.op::<Variance<i16>>("var_i16");
    visit.op::<Variance<u16>>("var_u16");
    visit.op::<Variance<i32>>("var_i32");
    visit.op::<Variance<u32>>("var_u32");
    visit.op::<Variance<i64>>("var_i64");
    visit.op::<Variance<u64>>("var_u64");
    visit.op::<Variance<f16>>("var_f16");
    visit.op::<Variance<bf16>>("var_bf16");
    visit.op::<Variance<f32>>("var_f32");
    visit.op::<IgnoreNan<Variance<f32>>>("nanvar_f32");
    visit.op::<Variance<f64>>("var_f64");
    visit.op::<IgnoreNan<Variance<f64>>>("nanvar_f64");
    visit.op::<Variance<Complex<f32>>>("var_c32");
    visit.op::<Variance<Complex<f64>>>("var_c64");
    visit.op::<StdDev<i8>>("std_i8");
    visit.op::<StdDev<u8>>("std_u8");
    visit.op::<StdDev<i16>>("std_i16");
    visit.op::<StdDev<u16>>("std_u16");
    visit.op::<StdDev<i32>>("std_i32");
    visit.op::<StdDev<u32>>("std_u32");
    visit.op::<StdDev<i64>>("std_i64");
    visit.op::<StdDev<u64>>("std_u64");
    visit.op::<StdDev<f16>>("std_f16");
    visit.op::<StdDev<bf16>>("std_bf16");
    visit.op::<StdDev<f32>>("std_f32");
    visit.op::<IgnoreNan<StdDev<f32>>>("nanstd_f32");
    visit.op::<StdDev<f64>>("std_f64");
    visit.op::<IgnoreNan<StdDev<f64>>>("nanstd_f64");
    visit.op::<StdDev<Complex<f32>>>("std_c32");
    visit.op::<StdDev<Complex<f64>>>("std_c64");
    visit.op::<Mean<bool>>("mean_bool");
    // Sums of exponentials.
    visit.op::<LogSumExp<f16>>("logsumexp_f16");
    visit.op::<LogSumExp<bf16>>("logsumexp_bf16");
    visit.op::<LogSumExp<f32>>("logsumexp_f32");
    visit.op::<IgnoreNan<LogSumExp<f32>>>("nanlogsumexp_f32");
    visit.op::<LogSumExp<f64>>("logsumexp_f64");
    visit.op::<IgnoreNan<LogSumExp<f64>>>("nanlogsumexp_f64");
    // Where order matters.
    visit.op::<MaxSegmentSum<i16, i64>>("mss_i16_i64");
    visit.op::<MaxSegmentSum<u16, u64>>("mss_u16_u64");
    visit.op::<MaxSegmentSum<i32>>("mss_i32");
    visit.op::<MaxSegmentSum<i32, i64>>("mss_i32_i64");
    visit.op::<MaxSegmentSum<u32, u64>>("mss_u32_u64");
    visit.op::<MaxSegmentSum<i64>>("mss_i64");
    visit.op::<MaxSegmentSum<u64>>("mss_u64");
    visit.op::<MaxSegmentSum<f16>>("mss_f16");
    visit.op::<MaxSegmentSum<bf16>>("mss_bf16");
    visit.op::<MaxSegmentSum<f32>>("mss_f32");
    visit.op::<MaxSegmentSum<f64>>("mss_f64");
    visit.op::<Compose<f32>>("compose_f32");
    visit.op::<Compose<f64>>("compose_f64");
    // Several in one pass.
    visit.op::<(Sum<f32>, Min<f32>, Max<f32>)>("summinmax_f32");
}
