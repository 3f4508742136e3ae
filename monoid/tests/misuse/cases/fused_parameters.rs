use warpfold_monoid::{GivesIdentity, Monoid, Plain, Sum, fused::Fused2, limits};

#[repr(C)]
#[derive(Clone, Copy, Plain)]
pub struct Over {
    threshold: u32,
}

impl Monoid for Over {
    type Item = u32;
    type Acc = [u8; 4];
    type Output = [u8; 4];
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    fn identity(&self) -> [u8; 4] {
        [0; 4]
    }
    fn lift(&self, _item: u32, _index: u64) -> [u8; 4] {
        [1; 4]
    }
    fn combine(&self, left: [u8; 4], _right: [u8; 4]) -> [u8; 4] {
        left
    }
    fn finish(&self, acc: [u8; 4]) -> [u8; 4] {
        acc
    }
}

//~ a bare tuple fuses operators without parameters
//~ use `fused((a, b))`
const _: () = limits::check::<(Over, Sum<u32>)>();

const _: () = limits::check::<Fused2<Over, Sum<u32>>>();

fn main() {}
