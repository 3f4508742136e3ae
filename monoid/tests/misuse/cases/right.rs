use warpfold_monoid::{Max, Min, Plain, Sum, limits};

#[repr(C)]
#[derive(Clone, Copy, Plain)]
pub struct Pair {
    key: u32,
    value: f32,
}

const _: () = limits::check::<(Sum<f32>, Min<f32>, Max<f32>)>();

fn main() {}
