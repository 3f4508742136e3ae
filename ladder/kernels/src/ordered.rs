//! Reading in order: sums of `i32`, and maximum segment sums, of an array.

use warpfold_gpu_kernels::{
    block,
    ladder::ordered::{OrderedParams, in_block, sliding},
};
use warpfold_monoid::{MaxSegmentSum, Ordered, SegmentSums, Sum};
use warpfold_simt::shared;

type InOrder = Ordered<Sum<i32>>;
type Mss = MaxSegmentSum<i32>;
type OfSum = OrderedParams<InOrder>;
type OfMss = OrderedParams<Mss>;

entry! { ordered__sum_in_block_7(params: OfSum) up to 1024, { in_block::<InOrder, 7>(&params) } }
entry! { ordered__sum_in_block_8(params: OfSum) up to 1024, { in_block::<InOrder, 8>(&params) } }
entry! { ordered__sum_in_block_11(params: OfSum) up to 1024, { in_block::<InOrder, 11>(&params) } }
entry! { ordered__sum_sliding(params: OfSum) up to 1024, { sliding(&params, shared!([i32; block::SHARED])) } }
entry! { ordered__mss_in_block_7(params: OfMss) up to 1024, { in_block::<Mss, 7>(&params) } }
entry! { ordered__mss_in_block_8(params: OfMss) up to 1024, { in_block::<Mss, 8>(&params) } }
entry! { ordered__mss_in_block_11(params: OfMss) up to 1024, { in_block::<Mss, 11>(&params) } }
entry! {
    ordered__mss_sliding(params: OfMss) up to 1024, { sliding(&params, shared!([SegmentSums<i32>; block::SHARED])) }
}
