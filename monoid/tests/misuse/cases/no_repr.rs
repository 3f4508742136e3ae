use warpfold_monoid::Plain;

//~ `Pair` needs `#[repr(C)]`
#[derive(Clone, Copy, Plain)]
pub struct Pair {
    key: u32,
    value: f32,
}

fn main() {}
