//! Strategies for one array, sums of `i32` and of `f32` in `f64`.

use warpfold_gpu_kernels::ladder::{
    moderngpu::{Ascending, reduce},
    one_array::{LastBlockParams, atomics, blocks, last_block},
    pass::PassParams,
};
use warpfold_monoid::Sum;
use warpfold_simt::shared;

/// Threads of a block, at most, and how many blocks a multiprocessor is to hold: left alone, the assembler may spare registers
/// for a fourth and have one load wait for the other.
const BOUNDS: u32 = 512 | 2 << 16;

macro_rules! strategies {
    ($item:ty, $acc:ty: $last:ident, $blocks:ident, $atomics:ident, $tiles:ident, $rest:ident) => {
        entry! {
            $last(params: LastBlockParams<Sum<$item>>) up to BOUNDS, {
                last_block::<_, 4>(&params, shared!([$acc; 32]), shared!([u32; 1]))
            }
        }
        entry! {
            $blocks(params: PassParams<Sum<$item>>) up to BOUNDS, {
                blocks::<_, 4>(&params, shared!([$acc; 32]))
            }
        }
        entry! {
            $atomics(params: PassParams<Sum<$item>>) up to BOUNDS, {
                atomics::<_, 4>(&params, shared!([$acc; 32]))
            }
        }
        entry! {
            $tiles(params: PassParams<Sum<$item>>) up to 128, {
                reduce::<_, Ascending, 128, 8>(&params, shared!([$acc; 128]))
            }
        }
        entry! {
            $rest(params: PassParams<Sum<$item>>) up to 512, {
                reduce::<_, Ascending, 512, 4>(&params, shared!([$acc; 512]))
            }
        }
    };
}

strategies!(i32, i32: one_array__last_block_i32, one_array__blocks_i32, one_array__atomics_i32,
    one_array__tiles_i32, one_array__tiles_of_values_i32);
strategies!(f32, f64: one_array__last_block_f32, one_array__blocks_f32, one_array__atomics_f32,
    one_array__tiles_f32, one_array__tiles_of_values_f32);
