//! The thesis's future work: sums of `i32` and maximum segment sums by other kernels, sums of other types with and without vectors.

use half::f16;
use warpfold_gpu_kernels::ladder::{
    future::{PartsParams, large_vectors, loop_in_map_parts, small_by_flags, small_by_index},
    thesis::{ThesisParams, WAVES, large},
};
use warpfold_monoid::{MaxSegmentSum, Monoid, Sum};

type Int = Sum<i32>;
type Mss = MaxSegmentSum<i32>;

entry! { future__sum_small_by_flags(params: ThesisParams<Int>) up to 1024, { small_by_flags(&params) } }
entry! { future__sum_small_by_index(params: ThesisParams<Int>) up to 1024, { small_by_index(&params) } }
entry! { future__sum_parts(params: PartsParams<Int>) up to 1024, { loop_in_map_parts(&params) } }
entry! { future__mss_small_by_flags(params: ThesisParams<Mss>) up to 1024, { small_by_flags(&params) } }
entry! { future__mss_small_by_index(params: ThesisParams<Mss>) up to 1024, { small_by_index(&params) } }
entry! { future__mss_parts(params: PartsParams<Mss>) up to 1024, { loop_in_map_parts(&params) } }

entry! { future__f64_items(params: ThesisParams<Sum<f64>>) up to 512, { items(&params) } }
entry! { future__f64_vectors(params: ThesisParams<Sum<f64>>) up to 512, { large_vectors::<_, 2>(&params) } }
entry! { future__i32_items(params: ThesisParams<Int>) up to 512, { items(&params) } }
entry! { future__i32_vectors(params: ThesisParams<Int>) up to 512, { large_vectors::<_, 4>(&params) } }
entry! { future__f16_items(params: ThesisParams<Sum<f16>>) up to 512, { items(&params) } }
entry! { future__f16_vectors(params: ThesisParams<Sum<f16>>) up to 512, { large_vectors::<_, 8>(&params) } }
entry! { future__u8_items(params: ThesisParams<Sum<u8>>) up to 512, { items(&params) } }
entry! { future__u8_vectors(params: ThesisParams<Sum<u8>>) up to 512, { large_vectors::<_, 16>(&params) } }
entry! { future__f64_partials(params: ThesisParams<Sum<f64>>) up to 512, { second(&params) } }
entry! { future__i32_partials(params: ThesisParams<Int>) up to 512, { second(&params) } }
entry! { future__f16_partials(params: ThesisParams<Sum<f16>>) up to 512, { second(&params) } }
entry! { future__u8_partials(params: ThesisParams<Sum<u8>>) up to 512, { second(&params) } }

/// An item a load.
///
/// # Safety
///
/// As for [`large`].
#[inline(always)]
unsafe fn items<Op: Monoid>(params: &ThesisParams<Op>) {
    // SAFETY: the caller's promise.
    unsafe { large::<Op, false, WAVES>(params) }
}

/// The second step: what groups have left.
///
/// # Safety
///
/// As for [`large`].
#[inline(always)]
unsafe fn second<Op: Monoid>(params: &ThesisParams<Op>) {
    // SAFETY: the caller's promise.
    unsafe { large::<Op, true, WAVES>(params) }
}
