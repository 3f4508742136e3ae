//! Regular segmented reductions: sums of `i32`, in any order and in order, and maximum segment sums.

use warpfold_gpu_kernels::ladder::thesis::{
    COMPACT, INTERLEAVED, SHUFFLES, ScanParams, ThesisParams, WAVES, gather, large, loop_in_map, mark,
    propagate, scan_runs, small,
};
use warpfold_monoid::{MaxSegmentSum, Ordered, Sum};

type Commutative = Sum<i32>;
type InOrder = Ordered<Sum<i32>>;
type Mss = MaxSegmentSum<i32>;

macro_rules! strategies {
    ($op:ty: $large:ident, $large_partials:ident, $small:ident, $small_partials:ident, $loop_in_map:ident, $mark:ident,
        $scan:ident, $propagate:ident, $gather:ident) => {
        entry! { $large(params: ThesisParams<$op>) up to 1024, { large::<$op, false, WAVES>(&params) } }
        entry! { $large_partials(params: ThesisParams<$op>) up to 1024, { large::<$op, true, WAVES>(&params) } }
        entry! { $small(params: ThesisParams<$op>) up to 1024, { small::<$op, false>(&params) } }
        entry! { $small_partials(params: ThesisParams<$op>) up to 1024, { small::<$op, true>(&params) } }
        entry! { $loop_in_map(params: ThesisParams<$op>) up to 1024, { loop_in_map(&params) } }
        entry! { $mark(params: ScanParams<$op>) up to 1024, { mark(&params) } }
        entry! { $scan(params: ScanParams<$op>) up to 1024, { scan_runs(&params) } }
        entry! { $propagate(params: ScanParams<$op>) up to 1024, { propagate(&params) } }
        entry! { $gather(params: ScanParams<$op>) up to 1024, { gather(&params) } }
    };
}

strategies! {
    Commutative: thesis_sum__large, thesis_sum__large_partials, thesis_sum__small, thesis_sum__small_partials,
    thesis_sum__loop_in_map, thesis_sum__mark, thesis_sum__scan_runs, thesis_sum__propagate, thesis_sum__gather
}

entry! {
    thesis_sum__large_interleaved(params: ThesisParams<Commutative>) up to 1024, {
        large::<Commutative, false, INTERLEAVED>(&params)
    }
}
entry! {
    thesis_sum__large_compact(params: ThesisParams<Commutative>) up to 1024, {
        large::<Commutative, false, COMPACT>(&params)
    }
}
entry! {
    thesis_sum__large_shuffles(params: ThesisParams<Commutative>) up to 1024, {
        large::<Commutative, false, SHUFFLES>(&params)
    }
}

strategies! {
    InOrder: thesis_ordered__large, thesis_ordered__large_partials, thesis_ordered__small,
    thesis_ordered__small_partials, thesis_ordered__loop_in_map, thesis_ordered__mark, thesis_ordered__scan_runs,
    thesis_ordered__propagate, thesis_ordered__gather
}

strategies! {
    Mss: thesis_mss__large, thesis_mss__large_partials, thesis_mss__small, thesis_mss__small_partials,
    thesis_mss__loop_in_map, thesis_mss__mark, thesis_mss__scan_runs, thesis_mss__propagate, thesis_mss__gather
}
