//! Harris's last kernel, sums of `i32`, for each size of a block.

use warpfold_gpu_kernels::ladder::{harris::unrolled, pass::PassParams};
use warpfold_monoid::Sum;
use warpfold_simt::shared;

type Params = PassParams<Sum<i32>>;

macro_rules! blocks {
    ($($name:ident, $threads:literal;)*) => {$(
        entry! {
            $name(params: Params) up to $threads, {
                unrolled::<_, $threads>(&params, shared!([i32; $threads]))
            }
        }
    )*};
}

blocks! {
    harris__unrolled_128, 128;
    harris__unrolled_256, 256;
    harris__unrolled_512, 512;
    harris__unrolled_1024, 1024;
}
