use warpfold_monoid::Plain;

#[repr(C)]
#[derive(Clone, Copy, Plain)]
//~ the union `Either` cannot be `Plain`
pub union Either {
    byte: u8,
    word: u32,
}

fn main() {}
