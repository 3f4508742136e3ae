//! Sums and products of integers that tell when they overflow.

use core::fmt;

use crate::{
    Integer, Monoid, OnEmpty, Plain, fingerprint,
    norms::{Words, of_words, words},
    ops::operator,
};

/// A result that its type cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// The result itself, where it is known.
    pub exact: Option<i128>,
    /// Bits of the type.
    pub bits: u32,
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exact {
            Some(exact) => {
                write!(f, "the result is {exact}, which an integer of {} bits cannot hold", self.bits)
            }
            None => write!(f, "the result is too large for an integer of {} bits", self.bits),
        }
    }
}

impl core::error::Error for Overflow {}

/// A checked result as device memory receives it: [`get`](Checked::get) tells it from an overflow.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked<T> {
    /// The exact result's lower and upper half, if it has 128 bits at most.
    exact: Words,
    /// Has it more?
    beyond: u64,
    of: core::marker::PhantomData<fn() -> T>,
}

// SAFETY: repr(C), three u64.
unsafe impl<T: Integer> Plain for Checked<T> {
    const LAYOUT: u64 = fingerprint(&[70, u64::LAYOUT]);
}

impl<T: Integer> Checked<T> {
    /// The result, if its type holds it.
    ///
    /// # Errors
    ///
    /// [`Overflow`] if it does not.
    pub fn get(&self) -> Result<T, Overflow> {
        let bits = 8 * size_of::<T>() as u32;
        let exact = of_words(self.exact);
        if self.beyond != 0 {
            Err(Overflow { exact: None, bits })
        } else if exact < T::LOWEST.to_i128() || exact > T::HIGHEST.to_i128() {
            Err(Overflow { exact: Some(exact), bits })
        } else {
            Ok(T::wrap(exact as u64))
        }
    }
}

/// A checked operator gives a `Result` on the host.
pub enum GivesChecked {}

impl<T: Integer> OnEmpty<Checked<T>> for GivesChecked {
    type Value = Result<T, Overflow>;
    #[inline(always)]
    fn value(output: Checked<T>, _empty: bool) -> Result<T, Overflow> {
        output.get()
    }
}

operator! {
    /// The sum of integers, or an [`Overflow`] with the exact sum if their type cannot hold it. Sums are taken in 128 bits, so
    /// only the whole counts: partial sums may go anywhere.
    ///
    /// ```
    /// use warpfold_monoid::{CheckedSum, tree};
    ///
    /// let op = CheckedSum::<i8>::new();
    /// assert_eq!(tree::reduce(&op, &[100, 100, -100]), Ok(100));
    /// assert_eq!(tree::reduce(&op, &[100, 100]).unwrap_err().exact, Some(200));
    /// ```
    CheckedSum<T>, 71
}

impl<T: Integer> Monoid for CheckedSum<T> {
    type Item = T;
    type Acc = Words;
    type Output = Checked<T>;
    type Empty = GivesChecked;
    const COMMUTATIVE: bool = true;
    const USES_INDEX: bool = false;
    const ANY_ORDER: bool = true;
    #[inline(always)]
    fn identity(&self) -> Words {
        [0, 0]
    }
    #[inline(always)]
    fn lift(&self, item: T, _index: u64) -> Words {
        words(item.to_i128())
    }
    #[inline(always)]
    fn combine(&self, left: Words, right: Words) -> Words {
        words(of_words(left) + of_words(right))
    }
    #[inline(always)]
    fn finish(&self, acc: Words) -> Checked<T> {
        Checked { exact: acc, beyond: 0, of: core::marker::PhantomData }
    }
}

/// A product's magnitude and sign.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedMagnitude {
    magnitude: u64,
    negative: u32,
    /// Did the magnitude of some product without a zero pass 64 bits?
    beyond: u32,
}

// SAFETY: repr(C), 8 and twice 4 bytes: no padding.
unsafe impl Plain for SignedMagnitude {
    const LAYOUT: u64 = fingerprint(&[72, u64::LAYOUT, u32::LAYOUT]);
}

operator! {
    /// The product of integers, or an [`Overflow`] if their type cannot hold it. Magnitudes never shrink but by a zero, so
    /// the order does not matter; a zero makes the product 0 whatever the others are.
    ///
    /// ```
    /// use warpfold_monoid::{CheckedProduct, tree};
    ///
    /// let op = CheckedProduct::<i64>::new();
    /// assert_eq!(tree::reduce(&op, &[1 << 62, 2, -1]), Ok(i64::MIN));
    /// assert!(tree::reduce(&op, &[1 << 62, 2]).is_err());
    /// assert_eq!(tree::reduce(&op, &[1 << 62, 1 << 62, 0]), Ok(0));
    /// ```
    CheckedProduct<T>, 73
}

impl<T: Integer> Monoid for CheckedProduct<T> {
    type Item = T;
    type Acc = SignedMagnitude;
    type Output = Checked<T>;
    type Empty = GivesChecked;
    const COMMUTATIVE: bool = true;
    const USES_INDEX: bool = false;
    const ANY_ORDER: bool = true;
    #[inline(always)]
    fn identity(&self) -> SignedMagnitude {
        SignedMagnitude { magnitude: 1, negative: 0, beyond: 0 }
    }
    #[inline(always)]
    fn lift(&self, item: T, _index: u64) -> SignedMagnitude {
        SignedMagnitude { magnitude: item.magnitude_u64(), negative: (item < T::wrap(0)) as u32, beyond: 0 }
    }
    #[inline(always)]
    fn combine(&self, left: SignedMagnitude, right: SignedMagnitude) -> SignedMagnitude {
        let zero = |part: SignedMagnitude| part.magnitude == 0 && part.beyond == 0;
        if zero(left) || zero(right) {
            return SignedMagnitude { magnitude: 0, negative: 0, beyond: 0 };
        }
        let (magnitude, over) = left.magnitude.overflowing_mul(right.magnitude);
        let beyond = left.beyond | right.beyond | over as u32;
        // What lies beyond has no magnitude, so that the order leaves no trace.
        let magnitude = if beyond != 0 { 0 } else { magnitude };
        SignedMagnitude { magnitude, negative: left.negative ^ right.negative, beyond }
    }
    #[inline(always)]
    fn finish(&self, acc: SignedMagnitude) -> Checked<T> {
        let magnitude = acc.magnitude as i128;
        let exact = words(if acc.negative != 0 { -magnitude } else { magnitude });
        Checked { exact, beyond: acc.beyond as u64, of: core::marker::PhantomData }
    }
}
