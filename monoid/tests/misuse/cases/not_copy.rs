use warpfold_monoid::Plain;

//~ `Copy` is not implemented for `Pair`
#[repr(C)]
#[derive(Plain)]
pub struct Pair {
    key: u32,
    value: f32,
}

fn main() {}
