use warpfold_monoid::Plain;

#[repr(C)]
#[derive(Clone, Copy, Plain)]
pub struct Pair<K, V> {
    key: K,
    value: V,
}

const _: u64 = <Pair<u32, f32>>::LAYOUT;
//~ `Pair` cannot be `Plain`: it has 6 bytes of padding before its field `value`
const _: u64 = <Pair<u16, f64>>::LAYOUT;

fn main() {}
