//! Timcheck's sets of 1024 integers.

use warpfold_gpu_kernels::ladder::timcheck::{
    SET, SetParams, library, library_pieces, library_unrolled, naive, non_divergent, sequential_global,
    sequential_shared, shuffles, shuffles_atomic,
};
use warpfold_simt::shared;

const HALF: usize = SET as usize / 2;

entry! { timcheck__naive(params: SetParams) up to 1024, { naive(&params) } }
entry! { timcheck__non_divergent(params: SetParams) up to 1024, { non_divergent(&params) } }
entry! { timcheck__sequential_global(params: SetParams) up to 1024, { sequential_global(&params) } }
entry! { timcheck__sequential_shared(params: SetParams) up to 1024, { sequential_shared(&params, shared!([i32; HALF])) } }
entry! { timcheck__shuffles(params: SetParams) up to 1024, { shuffles(&params, shared!([i32; HALF / 32])) } }
entry! { timcheck__shuffles_atomic(params: SetParams) up to 1024, { shuffles_atomic(&params) } }
entry! { timcheck__library_pieces(params: SetParams) up to 1024, { library_pieces(&params, shared!([i32; 32])) } }
entry! { timcheck__library(params: SetParams) up to 1024, { library(&params, shared!([i32; 32])) } }

macro_rules! unrolled {
    ($($name:ident, $threads:literal;)*) => {$(
        entry! {
            $name(params: SetParams) up to $threads, {
                library_unrolled::<{ SET as usize / $threads }>(&params, shared!([i32; 32]))
            }
        }
    )*};
}

unrolled! {
    timcheck__library_unrolled_32, 32;
    timcheck__library_unrolled_64, 64;
    timcheck__library_unrolled_128, 128;
    timcheck__library_unrolled_256, 256;
    timcheck__library_unrolled_512, 512;
    timcheck__library_unrolled_1024, 1024;
}
