use warpfold_monoid::{GivesIdentity, Monoid, Plain, limits};

#[derive(Clone, Copy, Plain)]
pub struct Histogram;

impl Monoid for Histogram {
    type Item = u32;
    type Acc = [u64; 33];
    type Output = u8;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    fn identity(&self) -> [u64; 33] {
        [0; 33]
    }
    fn lift(&self, _item: u32, _index: u64) -> [u64; 33] {
        [1; 33]
    }
    fn combine(&self, left: [u64; 33], _right: [u64; 33]) -> [u64; 33] {
        left
    }
    fn finish(&self, acc: [u64; 33]) -> u8 {
        acc[0] as u8
    }
}

//~ accumulator (`Monoid::Acc`) is larger than 256 bytes
//~ Histogram
const _: () = limits::check::<Histogram>();

fn main() {}
