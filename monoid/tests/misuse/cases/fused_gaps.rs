use warpfold_monoid::{GivesIdentity, Monoid, Plain, Sum, Unaligned, limits};

/// An accumulator of one byte.
#[derive(Clone, Copy, Plain)]
pub struct Small;

impl Monoid for Small {
    type Item = u32;
    type Acc = [u8; 1];
    type Output = u8;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    fn identity(&self) -> [u8; 1] {
        [0; 1]
    }
    fn lift(&self, _item: u32, _index: u64) -> [u8; 1] {
        [1; 1]
    }
    fn combine(&self, left: [u8; 1], _right: [u8; 1]) -> [u8; 1] {
        left
    }
    fn finish(&self, acc: [u8; 1]) -> u8 {
        acc[0]
    }
}

//~ leave gaps between them
//~ `Unaligned((a, b))`
const _: () = limits::check::<(Small, Sum<u32>)>();
const _: () = limits::check::<Unaligned<(Small, Sum<u32>)>>();

fn main() {}
