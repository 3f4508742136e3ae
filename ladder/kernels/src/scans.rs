//! Scans: sums of `i32`.

use warpfold_gpu_kernels::ladder::scan::{
    LadderParams, PADDED, TILE as ITEMS, blelloch, blelloch_padded, hillis_steele, propagate, warp_shuffle,
};
use warpfold_monoid::Sum;
use warpfold_simt::shared;

type Params = LadderParams<Sum<i32>>;

entry! { scans__hillis_steele(params: Params) { hillis_steele(&params, shared!([i32; 2 * ITEMS])) } }
entry! { scans__blelloch(params: Params) { blelloch(&params, shared!([i32; ITEMS])) } }
entry! { scans__blelloch_padded(params: Params) { blelloch_padded(&params, shared!([i32; PADDED])) } }
entry! { scans__warp_shuffle(params: Params) { warp_shuffle(&params, shared!([i32; ITEMS / 32])) } }
entry! { scans__propagate(params: Params) { propagate(&params) } }
