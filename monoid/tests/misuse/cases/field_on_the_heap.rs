use warpfold_monoid::Plain;

#[repr(C)]
#[derive(Clone, Copy, Plain)]
pub struct Named {
    //~ `String` is not plain data
    //~ with `#[derive(Clone, Copy, Plain)]`
    name: String,
}

fn main() {}
