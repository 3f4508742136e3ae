//! Block-wide reductions by key: sums of `i32`, 16 keys.

use warpfold_gpu_kernels::{
    block::{self, SortRoom},
    ladder::keyed::{KeyedParams, SinkParams, per_key, sink, sorted_tree, warp_sorted},
};
use warpfold_monoid::Sum;
use warpfold_simt::shared;

type Params = KeyedParams<Sum<i32>>;

/// Of a block of 1024.
const WARPS: usize = 32;
const KEYS: usize = 16;

entry! {
    keyed__sorted_tree(params: Params) up to 1024, {
        let room = SortRoom {
            keys: shared!([u32; 1024]),
            values: shared!([i32; 1024]),
            from: shared!([u32; 1024]),
        };
        sorted_tree(&params, room, shared!([i32; KEYS]))
    }
}
entry! {
    keyed__warp_sorted(params: Params) up to 1024, {
        let (warps, slots) = (shared!([i32; WARPS * KEYS]), shared!([i32; block::SHARED]));
        warp_sorted(&params, warps, slots, shared!([i32; KEYS]))
    }
}
entry! {
    keyed__per_key(params: Params) up to 1024, {
        per_key(&params, shared!([i32; block::SHARED]), shared!([i32; KEYS]))
    }
}
entry! {
    keyed__sink(params: SinkParams<Sum<i32>>) up to 1024, {
        sink(&params, shared!([i32; WARPS * KEYS]), shared!([u32; WARPS * KEYS]), shared!([u32; 1]))
    }
}
