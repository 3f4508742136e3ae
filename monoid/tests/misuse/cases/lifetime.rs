use std::marker::PhantomData;
use warpfold_monoid::Plain;

#[repr(C)]
#[derive(Clone, Copy, Plain)]
//~ plain data borrows nothing
pub struct Borrowed<'a> {
    of: PhantomData<&'a f32>,
}

fn main() {}
