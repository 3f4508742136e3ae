//! Patel's versions, sums of `i32`: with the block's threads covering the array, and in strides of the grid.

use warpfold_gpu_kernels::ladder::{
    pass::PassParams,
    patel::{MAX_THREADS, version1, version2, version3, version4, version5},
};
use warpfold_monoid::Sum;
use warpfold_simt::shared;

type Params = PassParams<Sum<i32>>;

macro_rules! versions {
    ($($version:ident, $covered:ident, $strided:ident;)*) => {$(
        entry! {
            $covered(params: Params) up to MAX_THREADS as u32, {
                $version::<_, false>(&params, shared!([i32; MAX_THREADS]))
            }
        }
        entry! {
            $strided(params: Params) up to MAX_THREADS as u32, {
                $version::<_, true>(&params, shared!([i32; MAX_THREADS]))
            }
        }
    )*};
}

versions! {
    version1, patel__version1, patel__version1_strided;
    version2, patel__version2, patel__version2_strided;
    version3, patel__version3, patel__version3_strided;
    version4, patel__version4, patel__version4_strided;
    version5, patel__version5, patel__version5_strided;
}
