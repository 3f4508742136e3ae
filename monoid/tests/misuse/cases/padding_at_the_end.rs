use warpfold_monoid::Plain;

//~ `Reading` cannot be `Plain`: it has 1 byte of padding at its end; put the larger fields first, or fill the gap with
#[repr(C)]
#[derive(Clone, Copy, Plain)]
pub struct Reading([u32; 2], [u8; 3]);

fn main() {}
