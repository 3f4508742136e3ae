//! `#[derive(Plain)]` must accept every layout without gaps, and its fingerprint must tell layouts apart that have the
//! same size. What it must refuse is in `misuse`.

use std::marker::PhantomData;

use warpfold_monoid::{Monoid, Plain, Sum, zeroed};

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Plain)]
struct Reading {
    time: u64,
    value: f32,
    flags: [u8; 4],
}

#[repr(C)]
#[derive(Clone, Copy, Plain)]
struct Swapped {
    time: u64,
    flags: [u8; 4],
    value: f32,
}

#[repr(C)]
#[derive(Clone, Copy, Plain)]
struct OtherType {
    time: u64,
    value: u32,
    flags: [u8; 4],
}

#[repr(C)]
#[derive(Clone, Copy, Plain)]
struct Nested {
    reading: Reading,
    more: [Reading; 2],
}

#[repr(C)]
#[derive(Clone, Copy, Plain)]
struct NestedSwapped {
    reading: Swapped,
    more: [Swapped; 2],
}

#[repr(transparent)]
#[derive(Clone, Copy, Plain)]
struct Meters(f32);

#[repr(C, packed)]
#[derive(Clone, Copy, Plain)]
struct Packed {
    byte: u8,
    word: u32,
}

#[repr(C, align(16))]
#[derive(Clone, Copy, Plain)]
struct Aligned([f32; 4]);

#[derive(Clone, Copy, Plain)]
struct Unit;

#[repr(C)]
#[derive(Clone, Copy, Plain)]
struct Pair<K, V>
where
    V: Send,
{
    key: K,
    value: V,
}

#[repr(C)]
#[derive(Clone, Copy, Plain)]
struct Window<T, const N: usize = 3> {
    items: [T; N],
    unit: PhantomData<T>,
}

/// A field whose type is an associated type of the parameter.
#[repr(C)]
#[derive(Clone, Copy, Plain)]
struct Kept<Op: Monoid> {
    acc: Op::Acc,
    op: Op,
}

#[repr(C)]
#[derive(Clone, Copy, Plain)]
#[plain(crate = ::warpfold_monoid)]
struct Named {
    op: Sum<f32>,
    factor: f64,
}

fn layout<T: Plain>() -> u64 {
    const { T::LAYOUT }
}

#[test]
fn layouts_are_told_apart() {
    let layouts = [
        layout::<Reading>(),
        layout::<Swapped>(),
        layout::<OtherType>(),
        layout::<Nested>(),
        layout::<NestedSwapped>(),
        layout::<Meters>(),
        layout::<Packed>(),
        layout::<Aligned>(),
        layout::<Unit>(),
        layout::<Pair<u32, f32>>(),
        layout::<Pair<f32, u32>>(),
        layout::<Window<u32, 3>>(),
        layout::<Window<u32, 4>>(),
        layout::<Named>(),
    ];
    for (i, one) in layouts.iter().enumerate() {
        for (k, other) in layouts.iter().enumerate().skip(i + 1) {
            assert_ne!(one, other, "layouts {i} and {k}");
        }
    }
}

#[test]
fn the_same_layout_under_another_name_is_the_same() {
    #[repr(C)]
    #[derive(Clone, Copy, Plain)]
    struct Record {
        a: u64,
        b: f32,
        c: [u8; 4],
    }
    assert_eq!(layout::<Record>(), layout::<Reading>());
    let record = Record { a: 1, b: 2.0, c: [3; 4] };
    assert_eq!((record.a, record.b, record.c), (1, 2.0, [3; 4]));
}

#[test]
fn generic_structs_are_plain_where_their_fields_are() {
    fn plain<T: Plain>() -> usize {
        size_of::<T>()
    }
    assert_eq!(plain::<Pair<u32, [f32; 2]>>(), 12);
    assert_eq!(plain::<Window<u16>>(), 6);
    assert_eq!(plain::<Kept<Sum<f32>>>(), 8);
}

#[test]
fn zeroed_is_all_zeros() {
    assert_eq!(zeroed::<Reading>(), Reading { time: 0, value: 0.0, flags: [0; 4] });
    assert_eq!(zeroed::<Window<i16>>().items, [0; 3]);
}
