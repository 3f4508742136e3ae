use warpfold_monoid::Plain;

#[repr(C)]
#[derive(Clone, Copy, Plain)]
pub struct Lookup {
    //~ a pointer is not plain data
    table: *const f32,
}

fn main() {}
