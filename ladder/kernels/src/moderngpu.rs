//! moderngpu's reduction, sums of `i32`: its tiles by their shape and their shuffles, and groups of lanes.

use warpfold_gpu_kernels::ladder::{
    moderngpu::{Ascending, Descending, Fused, GroupParams, Redux, groups, reduce},
    pass::PassParams,
};
use warpfold_monoid::Sum;
use warpfold_simt::shared;

type Params = PassParams<Sum<i32>>;

macro_rules! tiles {
    ($($name:ident, $how:ident, $nt:literal, $vt:literal;)*) => {$(
        entry! {
            $name(params: Params) up to $nt, {
                reduce::<_, $how, $nt, $vt>(&params, shared!([i32; $nt]))
            }
        }
    )*};
}

tiles! {
    moderngpu__ascending_128x7, Ascending, 128, 7;
    moderngpu__ascending_128x8, Ascending, 128, 8;
    moderngpu__ascending_128x9, Ascending, 128, 9;
    moderngpu__ascending_128x11, Ascending, 128, 11;
    moderngpu__descending_128x8, Descending, 128, 8;
    moderngpu__fused_128x8, Fused, 128, 8;
    moderngpu__redux_128x8, Redux, 128, 8;
    moderngpu__ascending_512x4, Ascending, 512, 4;
}

macro_rules! lanes {
    ($($name:ident, $how:ident, $width:literal;)*) => {$(
        entry! { $name(params: GroupParams<Sum<i32>>) { groups::<_, $how, $width>(&params) } }
    )*};
}

lanes! {
    moderngpu__groups_ascending_2, Ascending, 2;
    moderngpu__groups_ascending_4, Ascending, 4;
    moderngpu__groups_ascending_8, Ascending, 8;
    moderngpu__groups_ascending_16, Ascending, 16;
    moderngpu__groups_ascending_32, Ascending, 32;
    moderngpu__groups_descending_2, Descending, 2;
    moderngpu__groups_descending_4, Descending, 4;
    moderngpu__groups_descending_8, Descending, 8;
    moderngpu__groups_descending_16, Descending, 16;
    moderngpu__groups_descending_32, Descending, 32;
    moderngpu__groups_fused_2, Fused, 2;
    moderngpu__groups_fused_4, Fused, 4;
    moderngpu__groups_fused_8, Fused, 8;
    moderngpu__groups_fused_16, Fused, 16;
    moderngpu__groups_fused_32, Fused, 32;
    moderngpu__groups_redux_2, Redux, 2;
    moderngpu__groups_redux_4, Redux, 4;
    moderngpu__groups_redux_8, Redux, 8;
    moderngpu__groups_redux_16, Redux, 16;
    moderngpu__groups_redux_32, Redux, 32;
}
