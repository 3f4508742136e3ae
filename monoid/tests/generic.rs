//! Operators of a user's own number types: order is kept, the first of equal ones stays.

use std::cmp::Ordering;
use std::ops::{Add, Mul};

use crate::data::{Random, SIZES};
use num_traits::{Bounded, One, Zero};
use warpfold_monoid::{MaxOf, MinOf, Plain, ProductOf, SumOf, tree};

/// Matrices of two by two over the integers modulo 2^32.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Plain)]
struct Matrix([u32; 4]);

impl Mul for Matrix {
    type Output = Matrix;
    fn mul(self, other: Matrix) -> Matrix {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        let dot = |a: u32, e: u32, b: u32, g: u32| a.wrapping_mul(e).wrapping_add(b.wrapping_mul(g));
        Matrix([dot(a, e, b, g), dot(a, f, b, h), dot(c, e, d, g), dot(c, f, d, h)])
    }
}

impl One for Matrix {
    fn one() -> Matrix {
        Matrix([1, 0, 0, 1])
    }
}

impl Add for Matrix {
    type Output = Matrix;
    fn add(self, other: Matrix) -> Matrix {
        Matrix(std::array::from_fn(|i| self.0[i].wrapping_add(other.0[i])))
    }
}

impl Zero for Matrix {
    fn zero() -> Matrix {
        Matrix([0; 4])
    }
    fn is_zero(&self) -> bool {
        self.0 == [0; 4]
    }
}

/// A version with a note that does not count in the order.
#[repr(C)]
#[derive(Clone, Copy, Debug, Plain)]
struct Version {
    major: u32,
    minor: u32,
    note: u32,
}

impl PartialEq for Version {
    fn eq(&self, other: &Version) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Version) -> Option<Ordering> {
        (self.major, self.minor).partial_cmp(&(other.major, other.minor))
    }
}

impl Bounded for Version {
    fn min_value() -> Version {
        Version { major: 0, minor: 0, note: u32::MAX }
    }
    fn max_value() -> Version {
        Version { major: u32::MAX, minor: u32::MAX, note: u32::MAX }
    }
}

#[test]
fn matrices_multiply_in_order() {
    let mut random = Random(1);
    for n in SIZES {
        let x: Vec<Matrix> =
            (0..n).map(|_| Matrix(std::array::from_fn(|_| random.bits() as u32 | 1))).collect();
        let product = x.iter().fold(Matrix::one(), |product, &x| product * x);
        assert_eq!(tree::reduce(&ProductOf::<Matrix>::new(), &x), product, "{n} items");
        let sum = x.iter().fold(Matrix::zero(), |sum, &x| sum + x);
        assert_eq!(tree::reduce(&SumOf::<Matrix>::new(), &x), sum, "{n} items");
    }
}

#[test]
fn the_first_of_equal_versions_stays() {
    let mut random = Random(2);
    for n in SIZES {
        let x: Vec<Version> = (0..n as u32)
            .map(|note| Version { major: random.below(3) as u32, minor: random.below(4) as u32, note })
            .collect();
        // `min_by` keeps the first, `max_by` the last.
        let least = x.iter().min_by(|a, b| a.partial_cmp(b).unwrap());
        let greatest = x.iter().rev().max_by(|a, b| a.partial_cmp(b).unwrap());
        assert_eq!(
            tree::reduce(&MinOf::<Version>::new(), &x).map(|x| x.note),
            least.map(|x| x.note),
            "{n} items"
        );
        assert_eq!(
            tree::reduce(&MaxOf::<Version>::new(), &x).map(|x| x.note),
            greatest.map(|x| x.note),
            "{n} items"
        );
        // Values equal to the bound that stands for nothing.
        let x: Vec<Version> = (0..n as u32).map(|note| Version { note, ..Version::max_value() }).collect();
        assert_eq!(tree::reduce(&MinOf::<Version>::new(), &x).map(|x| x.note), x.first().map(|x| x.note));
    }
}

#[test]
fn wide_integers() {
    let x: Vec<i128> = (1..=30).collect();
    assert_eq!(tree::reduce(&ProductOf::<i128>::new(), &x), 265_252_859_812_191_058_636_308_480_000_000);
    assert_eq!(tree::reduce(&SumOf::<i128>::new(), &[i128::MAX - 1, 1]), i128::MAX);
    assert_eq!(tree::reduce(&MinOf::<u128>::new(), &[]), None);
}
