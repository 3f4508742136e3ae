//! How a file lays out its elements: none of it may matter, not even to what looks at positions.

use proptest::prelude::*;
use serde_json::json;

use super::{Files, Npy, reduce};

/// A layout of test files.
#[derive(Clone, Debug)]
pub struct Layout {
    version: u8,
    big: bool,
    fortran: bool,
    align: usize,
}

pub fn layout() -> impl Strategy<Value = Layout> {
    (1..=3u8, any::<bool>(), any::<bool>(), prop_oneof![Just(1), Just(4), Just(16), Just(64)])
        .prop_map(|(version, big, fortran, align)| Layout { version, big, fortran, align })
}

/// Elements, in logical order and little-endian, as a file of the layout: two rows of them where that is possible. Each is
/// made of `numbers` numbers.
pub fn file<const SIZE: usize>(code: &str, items: &[[u8; SIZE]], numbers: usize, layout: &Layout) -> Vec<u8> {
    let n = items.len();
    let rows = if n.is_multiple_of(2) { 2 } else { 1 };
    let place = |i: usize| if layout.fortran { i % rows * (n / rows) + i / rows } else { i };
    let body: Vec<u8> = (0..n)
        .flat_map(|i| {
            let mut bytes = items[place(i)];
            if layout.big {
                bytes.chunks_mut(SIZE / numbers).for_each(<[u8]>::reverse);
            }
            bytes
        })
        .collect();
    let shape = if rows == 2 { format!("(2, {})", n / 2) } else { format!("({n},)") };
    let sign = if layout.big { '>' } else { '<' };
    Npy {
        version: layout.version,
        order: if layout.fortran { "True" } else { "False" },
        align: layout.align,
        ..Npy::new(&format!("{sign}{code}"), &shape, body)
    }
    .bytes()
}

/// `[[3, 1], [4, 2]]`, of every size of element.
#[test]
fn positions_are_logical() {
    let files = Files::new();
    let expected = json!({"argmax": {"index": 2, "value": 4}, "argmin": {"index": 1, "value": 1}});
    for size in [1, 2, 4, 8] {
        for (order, items) in [("False", [3, 1, 4, 2]), ("True", [3, 4, 1, 2])] {
            let body: Vec<u8> =
                items.iter().flat_map(|item: &u64| item.to_le_bytes()[..size].to_vec()).collect();
            let npy = Npy { order, ..Npy::new(&format!("<u{size}"), "(2, 2)", body) };
            let path = files.write("a.npy", npy.bytes());
            assert_eq!(reduce(&path, "argmax,argmin", &[])["results"], expected, "{size} bytes, {order}");
        }
    }
}

/// Of equal elements the first in logical order counts, which may come late in the file.
#[test]
fn ties_are_broken_in_logical_order() {
    let files = Files::new();
    // Columns (0, 0, 9), (9, 0, 9).
    let npy = Npy { order: "True", ..Npy::new("|u1", "(3, 2)", [0, 0, 9, 9, 0, 9]) };
    let path = files.write("a.npy", npy.bytes());
    let expected = json!({"argmax": {"index": 1, "value": 9}, "argmin": {"index": 0, "value": 0}});
    assert_eq!(reduce(&path, "argmax,argmin", &[])["results"], expected);
}

/// Neighbours are those of the last axis. Axes of length 1 are none, and neither is an empty array.
#[test]
fn neighbours_are_logical() {
    let files = Files::new();
    // [[5, -9, 5], [-9, 5, 5]] is [5, -9, 5, -9, 5, 5] to mss; in the file's order 5, 5 stand together too but not at
    // the end: [5, -9, -9, 5, 5, 5].
    let items: [i8; 6] = [5, -9, -9, 5, 5, 5];
    let body = items.map(|item| item as u8);
    for (order, shape, expected) in [
        ("True", "(2, 3)", 10),
        ("False", "(2, 3)", 15),
        ("True", "(1, 6, 1)", 15),
        ("True", "(6,)", 15),
        ("True", "(2, 1, 3)", 10),
    ] {
        let path = files.write("a.npy", Npy { order, ..Npy::new("|i1", shape, body) }.bytes());
        let results = &reduce(&path, "mss,sum", &[])["results"];
        assert_eq!(results, &json!({"mss": expected, "sum": 2}), "{order} {shape}");
    }
    let path = files.write("a.npy", Npy { order: "True", ..Npy::new("|i1", "(3, 0, 2)", []) }.bytes());
    assert_eq!(reduce(&path, "mss,argmin", &[])["results"], json!({"mss": 0, "argmin": null}));
}
