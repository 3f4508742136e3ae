use warpfold_monoid::{Min, Sum, limits};

//~ type mismatch resolving `<Min<f64> as Monoid>::Item == f32`
const _: () = limits::check::<(Sum<f32>, Min<f64>)>();

fn main() {}
