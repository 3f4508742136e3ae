//! Sums, products and extremes of a user's own number types, by the traits of `num-traits`.

use core::ops::{Add, Mul};

use num_traits::{Bounded, One, Zero};

use crate::{GivesIdentity, GivesNone, Monoid, Plain, ops::operator};

operator! {
    /// The sum of a type that adds up by its own `+`, taken to be associative and commutative.
    ///
    /// ```
    /// use std::ops::Add;
    /// use warpfold_monoid::{Plain, SumOf, tree};
    ///
    /// /// Centimes.
    /// #[repr(C)]
    /// #[derive(Clone, Copy, Debug, PartialEq, Plain)]
    /// struct Money { centimes: i64 }
    ///
    /// impl Add for Money {
    ///     type Output = Money;
    ///     fn add(self, other: Money) -> Money { Money { centimes: self.centimes + other.centimes } }
    /// }
    /// impl num_traits::Zero for Money {
    ///     fn zero() -> Money { Money { centimes: 0 } }
    ///     fn is_zero(&self) -> bool { self.centimes == 0 }
    /// }
    ///
    /// let purse = [Money { centimes: 250 }, Money { centimes: -50 }];
    /// assert_eq!(tree::reduce(&SumOf::<Money>::new(), &purse), Money { centimes: 200 });
    /// ```
    SumOf<T>, 80
}

impl<T: Plain + Zero + Add<Output = T>> Monoid for SumOf<T> {
    type Item = T;
    type Acc = T;
    type Output = T;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    const USES_INDEX: bool = false;
    #[inline(always)]
    fn identity(&self) -> T {
        T::zero()
    }
    #[inline(always)]
    fn lift(&self, item: T, _index: u64) -> T {
        item
    }
    #[inline(always)]
    fn combine(&self, left: T, right: T) -> T {
        left + right
    }
    #[inline(always)]
    fn finish(&self, acc: T) -> T {
        acc
    }
}

operator! {
    /// The product of a type that multiplies by its own `*`, taken to be associative and **not** commutative (matrices).
    ///
    /// ```
    /// use warpfold_monoid::{ProductOf, tree};
    ///
    /// assert_eq!(tree::reduce(&ProductOf::<u64>::new(), &[2, 3, 7]), 42);
    /// ```
    ProductOf<T>, 81
}

impl<T: Plain + One + Mul<Output = T>> Monoid for ProductOf<T> {
    type Item = T;
    type Acc = T;
    type Output = T;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = false;
    const USES_INDEX: bool = false;
    #[inline(always)]
    fn identity(&self) -> T {
        T::one()
    }
    #[inline(always)]
    fn lift(&self, item: T, _index: u64) -> T {
        item
    }
    #[inline(always)]
    fn combine(&self, left: T, right: T) -> T {
        left * right
    }
    #[inline(always)]
    fn finish(&self, acc: T) -> T {
        acc
    }
}

macro_rules! bounded {
    ($name:ident, $identity:ident, $takes_right:tt) => {
        impl<T: Plain + Bounded + PartialOrd> Monoid for $name<T> {
            type Item = T;
            type Acc = T;
            type Output = T;
            type Empty = GivesNone;
            // Of values that compare equal the left one stays.
            const COMMUTATIVE: bool = false;
            const USES_INDEX: bool = false;
            #[inline(always)]
            fn identity(&self) -> T {
                T::$identity()
            }
            #[inline(always)]
            fn lift(&self, item: T, _index: u64) -> T {
                item
            }
            #[inline(always)]
            fn combine(&self, left: T, right: T) -> T {
                if right $takes_right left { right } else { left }
            }
            #[inline(always)]
            fn finish(&self, acc: T) -> T {
                acc
            }
        }
    };
}

operator! {
    /// The least item of a type with an order of its own, the first of equal ones. The order must be total over the items
    /// that occur. `None` for no items; device memory then receives the type's highest value.
    ///
    /// ```
    /// use warpfold_monoid::{MinOf, tree};
    ///
    /// assert_eq!(tree::reduce(&MinOf::<i128>::new(), &[3, -7, 5]), Some(-7));
    /// ```
    MinOf<T>, 82
}
bounded!(MinOf, max_value, <);

operator! {
    /// The greatest item of a type with an order of its own, the first of equal ones: see [`MinOf`].
    ///
    /// ```
    /// use warpfold_monoid::{MaxOf, tree};
    ///
    /// assert_eq!(tree::reduce(&MaxOf::<i128>::new(), &[3, -7, 5]), Some(5));
    /// ```
    MaxOf<T>, 83
}
bounded!(MaxOf, min_value, >);
