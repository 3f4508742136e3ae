use warpfold_monoid::Plain;

#[repr(C)]
#[derive(Clone, Copy, Plain)]
pub struct Reading {
    valid: u8,
    //~ `Reading` cannot be `Plain`: it has 3 bytes of padding before its field `value`
    //~ `_pad: [u8; 3]`
    //~ value: f32
    value: f32,
}

fn main() {}
