use warpfold_monoid::Plain;

#[repr(u32)]
#[derive(Clone, Copy, Plain)]
//~ the enum `Kind` cannot be `Plain`
//~ `struct Kind(u32)`
pub enum Kind {
    Small,
    Large,
}

fn main() {}
