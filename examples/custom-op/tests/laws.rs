//! The operators keep the laws that a reduction relies on, and one that does not is found out.

use custom_op::ops::{
    AffineMap, Bounds, Compose, CountOver, LongestRun, Matrix, MatrixProduct, MaxSegmentSum, Mean, Particle,
    SumOfSquaredHeights,
};
use proptest::prelude::*;
use warpfold::{GivesIdentity, Monoid, NonEmpty, Plain};
use warpfold_laws::{self as laws, Law, Violation};

#[test]
fn composition() {
    // Powers of two and whole numbers: exact.
    let scales = prop::sample::select(&[-2.0f32, -1.0, 0.5, 1.0, 2.0][..]);
    let maps = (scales, -8..8i8).prop_map(|(scale, shift)| AffineMap { scale, shift: shift.into() });
    let laws = laws::Laws::new().longest(8).neutral_identity(true);
    let report = laws.check(&Compose, maps, laws::equal).unwrap();
    assert!(!report.looks_commutative);
}

#[test]
fn bounds() {
    let numbers = prop_oneof![9 => -1e3f32..1e3, 1 => Just(f32::NAN)];
    laws::check(&Bounds, [numbers.clone(), numbers], laws::equal).unwrap();
}

#[test]
fn count_over() {
    laws::check(&CountOver { threshold: 0.5 }, any::<f32>(), laws::equal).unwrap();
}

#[test]
fn sum_of_squared_heights() {
    let particles = (-100..100i8).prop_map(|z| Particle { mass: 1.0, position: [0.0, 0.0, z.into()] });
    laws::check(&SumOfSquaredHeights::default(), particles, laws::equal).unwrap();
}

#[test]
fn longest_run() {
    let report = laws::check(&LongestRun, 0..3i32, laws::equal).unwrap();
    assert!(!report.looks_commutative);
}

#[test]
fn matrices() {
    let report = laws::check(&MatrixProduct, any::<[[u32; 2]; 2]>().prop_map(Matrix), laws::equal).unwrap();
    assert!(!report.looks_commutative);
}

#[test]
fn max_segment() {
    let report = laws::check(&NonEmpty(MaxSegmentSum), any::<i32>(), laws::equal).unwrap();
    assert!(!report.looks_commutative);
}

#[test]
fn mean() {
    laws::check(&Mean, 0.0f32..1e3, laws::within(1e-9, 0.0)).unwrap();
}

/// The distance between two values, which looks symmetric enough to reduce with.
#[derive(Clone, Copy, Debug, Plain)]
struct Distance;

impl Monoid for Distance {
    type Item = i64;
    type Acc = i64;
    type Output = i64;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;

    fn identity(&self) -> i64 {
        0
    }

    fn lift(&self, item: i64, _index: u64) -> i64 {
        item
    }

    fn combine(&self, left: i64, right: i64) -> i64 {
        (left - right).abs()
    }

    fn finish(&self, acc: i64) -> i64 {
        acc
    }
}

#[test]
fn an_operator_that_is_not_associative_is_caught() {
    let violation = laws::check(&Distance, 0..100i64, laws::equal).unwrap_err();
    assert!(matches!(violation, Violation::Broken { law: Law::Associativity, .. }), "{violation}");
}
