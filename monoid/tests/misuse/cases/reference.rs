use warpfold_monoid::Plain;

#[repr(C)]
#[derive(Clone, Copy, Plain)]
pub struct Lookup {
    //~ a reference is not plain data: the device cannot follow it
    table: &'static [f32],
}

fn main() {}
