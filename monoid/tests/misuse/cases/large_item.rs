use warpfold_monoid::{GivesIdentity, Monoid, Plain, limits};

#[derive(Clone, Copy, Plain)]
pub struct OfPages;

impl Monoid for OfPages {
    type Item = [u8; 257];
    type Acc = [u8; 1];
    type Output = u8;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    fn identity(&self) -> [u8; 1] {
        [0; 1]
    }
    fn lift(&self, _item: [u8; 257], _index: u64) -> [u8; 1] {
        [1; 1]
    }
    fn combine(&self, left: [u8; 1], _right: [u8; 1]) -> [u8; 1] {
        left
    }
    fn finish(&self, acc: [u8; 1]) -> u8 {
        acc[0]
    }
}

//~ item (`Monoid::Item`) is larger than 256 bytes
const _: () = limits::check::<OfPages>();

fn main() {}
