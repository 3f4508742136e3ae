//! The logarithm of a sum of exponentials.

use crate::{Float, GivesIdentity, Monoid, NeutralIdentity, Plain, fingerprint, math, ops::operator};

/// `sum * exp(greatest)` is the sum of the items' exponentials.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaledSum {
    /// The greatest item.
    greatest: f64,
    /// The sum of `exp(x - greatest)`: at least 1, at most the number of items.
    sum: f64,
}

// SAFETY: repr(C), two f64.
unsafe impl Plain for ScaledSum {
    const LAYOUT: u64 = fingerprint(&[60, f64::LAYOUT]);
}

operator! {
    /// `ln(sum of exp(x))`, in one pass and without overflow: each sum is kept relative to its greatest item (M. Milakov and
    /// N. Gimelshein, Online normalizer calculation for softmax, arXiv:1805.02867), in `f64`, with
    /// [`math::exp`](crate::math::exp) and [`math::ln`](crate::math::ln). Minus infinity of nothing, and of items that all
    /// are; a plus infinity gives plus infinity, unless there is a NaN, which gives NaN.
    ///
    /// ```
    /// use warpfold_monoid::{LogSumExp, tree};
    ///
    /// let op = LogSumExp::<f64>::new();
    /// assert_eq!(tree::reduce(&op, &[1000.0, 1000.0]), 1000.0 + 2.0_f64.ln());
    /// assert_eq!(tree::reduce(&op, &[f64::NEG_INFINITY; 3]), f64::NEG_INFINITY);
    /// ```
    LogSumExp<T>, 61
}

/// `exp(a - b)`, 1 where they are equal: infinities too.
#[inline(always)]
fn ratio(a: f64, b: f64) -> f64 {
    if a == b { 1.0 } else { math::exp(a - b) }
}

impl<T: Float> Monoid for LogSumExp<T> {
    type Item = T;
    type Acc = ScaledSum;
    type Output = T;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    const USES_INDEX: bool = false;
    // And what the exponential takes.
    const LANE_BYTES: usize = 28;
    #[inline(always)]
    fn identity(&self) -> ScaledSum {
        ScaledSum { greatest: f64::NEG_INFINITY, sum: 0.0 }
    }
    #[inline(always)]
    fn lift(&self, item: T, _index: u64) -> ScaledSum {
        ScaledSum { greatest: Float::to_f64(item), sum: 1.0 }
    }
    #[inline(always)]
    fn combine(&self, left: ScaledSum, right: ScaledSum) -> ScaledSum {
        // One exponential: the greater one's sum keeps its scale. A NaN is carried on as the greatest.
        let (greater, lesser) = if right.greatest > left.greatest || right.greatest.is_nan() {
            (right, left)
        } else {
            (left, right)
        };
        ScaledSum {
            greatest: greater.greatest,
            sum: greater.sum + lesser.sum * ratio(lesser.greatest, greater.greatest),
        }
    }
    #[inline(always)]
    fn push(&self, acc: ScaledSum, item: T, _index: u64) -> ScaledSum {
        let item = Float::to_f64(item);
        let new = item > acc.greatest || item.is_nan();
        let (greatest, lesser) = if new { (item, acc.greatest) } else { (acc.greatest, item) };
        let ratio = ratio(lesser, greatest);
        ScaledSum { greatest, sum: if new { acc.sum * ratio + 1.0 } else { acc.sum + ratio } }
    }
    #[inline(always)]
    fn finish(&self, acc: ScaledSum) -> T {
        // Of nothing the sum is 0, whose logarithm is what is wanted.
        T::of_f64(if acc.sum == 0.0 { f64::NEG_INFINITY } else { acc.greatest + math::ln(acc.sum) })
    }
}
impl<T: Float> NeutralIdentity for LogSumExp<T> {}
