use warpfold_monoid::Plain;

//~ the option is `crate = ::path::to::warpfold_monoid`
#[repr(C)]
#[derive(Clone, Copy, Plain)]
#[plain(krate = ::warpfold_monoid)]
pub struct Meters(f32);

fn main() {}
