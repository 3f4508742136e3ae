//! Operators on bits and truth values.

use crate::{Atomic, GivesIdentity, Map, Monoid, NeutralIdentity, Plain, Truth, ops::operator};

/// A type whose bits can be combined: integers and `bool`.
pub trait Bits: Plain {
    /// No bit set.
    const ZERO: Self;
    /// Every bit set.
    const ONES: Self;
    /// The bits set in both.
    fn and(self, other: Self) -> Self;
    /// The bits set in either.
    fn or(self, other: Self) -> Self;
    /// The bits set in one of the two.
    fn xor(self, other: Self) -> Self;
}

macro_rules! bits {
    ($($type:ty, $zero:expr;)*) => {$(
        impl Bits for $type {
            const ZERO: $type = $zero;
            const ONES: $type = !$zero;
            #[inline(always)]
            fn and(self, other: $type) -> $type { self & other }
            #[inline(always)]
            fn or(self, other: $type) -> $type { self | other }
            #[inline(always)]
            fn xor(self, other: $type) -> $type { self ^ other }
        }
    )*};
}
bits! {
    i8, 0; u8, 0; i16, 0; u16, 0; i32, 0; u32, 0; i64, 0; u64, 0; bool, false;
}

macro_rules! bitwise {
    ($name:ident, $identity:ident, $combine:ident) => {
        impl<T: Bits> Monoid for $name<T> {
            type Item = T;
            type Acc = T;
            type Output = T;
            type Empty = GivesIdentity;
            const COMMUTATIVE: bool = true;
            const USES_INDEX: bool = false;
            const ANY_ORDER: bool = true;
            const ATOMIC: Atomic = Atomic::Combine.of_size(size_of::<T>());
            const VECTORISE: bool = false;
            #[inline(always)]
            fn identity(&self) -> T {
                T::$identity
            }
            #[inline(always)]
            fn lift(&self, item: T, _index: u64) -> T {
                item
            }
            #[inline(always)]
            fn combine(&self, left: T, right: T) -> T {
                left.$combine(right)
            }
            #[inline(always)]
            fn finish(&self, acc: T) -> T {
                acc
            }
        }
        impl<T: Bits> NeutralIdentity for $name<T> {}
    };
}

operator! {
    /// The bits that are set in every item. All bits of nothing (`true`; -1 for signed integers).
    ///
    /// ```
    /// use warpfold_monoid::{And, tree};
    ///
    /// assert_eq!(tree::reduce(&And::<u8>::new(), &[0b110, 0b011]), 0b010);
    /// ```
    And<T>, 30
}
bitwise!(And, ONES, and);

operator! {
    /// The bits that are set in any item. No bits of nothing.
    ///
    /// ```
    /// use warpfold_monoid::{Or, tree};
    ///
    /// assert_eq!(tree::reduce(&Or::<u8>::new(), &[0b110, 0b011]), 0b111);
    /// ```
    Or<T>, 31
}
bitwise!(Or, ZERO, or);

operator! {
    /// The bits that are set in an odd number of items. No bits of nothing.
    ///
    /// ```
    /// use warpfold_monoid::{Xor, tree};
    ///
    /// assert_eq!(tree::reduce(&Xor::<u8>::new(), &[0b110, 0b011]), 0b101);
    /// ```
    Xor<T>, 32
}
bitwise!(Xor, ZERO, xor);

#[inline(always)]
fn are_all_true<T: Truth, const N: usize>(items: [T; N]) -> u32 {
    let mut all = items[0].is_true() as u32;
    let mut i = 1;
    while i < N {
        all &= items[i].is_true() as u32;
        i += 1;
    }
    all
}

#[inline(always)]
fn is_any_true<T: Truth, const N: usize>(items: [T; N]) -> u32 {
    let mut any = items[0].is_true() as u32;
    let mut i = 1;
    while i < N {
        any |= items[i].is_true() as u32;
        i += 1;
    }
    any
}

macro_rules! truth {
    ($name:ident, $acc:ty, $output:ty, $identity:expr, $of:expr, $combine:expr, $of_many:expr, $finish:expr) => {
        impl<T: Truth> Monoid for $name<T> {
            type Item = T;
            type Acc = $acc;
            type Output = $output;
            type Empty = GivesIdentity;
            const COMMUTATIVE: bool = true;
            const USES_INDEX: bool = false;
            const ANY_ORDER: bool = true;
            const ATOMIC: Atomic = Atomic::Combine.of_size(size_of::<$acc>());
            const VECTORISE: bool = false;
            #[inline(always)]
            fn identity(&self) -> $acc {
                $identity
            }
            #[inline(always)]
            fn lift(&self, item: T, _index: u64) -> $acc {
                $of(item.is_true() as u32)
            }
            #[inline(always)]
            fn combine(&self, left: $acc, right: $acc) -> $acc {
                $combine(left, right)
            }
            #[inline(always)]
            fn fold_many<const N: usize>(&self, items: [T; N], _index: u64) -> $acc {
                $of($of_many(items))
            }
            #[inline(always)]
            fn finish(&self, acc: $acc) -> $output {
                $finish(acc)
            }
        }
        impl<T: Truth> NeutralIdentity for $name<T> {}
    };
}

operator! {
    /// Is every item true? Zero is false and everything else is true, NaNs too. True of nothing.
    ///
    /// ```
    /// use warpfold_monoid::{All, tree};
    ///
    /// assert!(tree::reduce(&All::<f32>::new(), &[0.5, f32::NAN]));
    /// assert!(!tree::reduce(&All::<f32>::new(), &[0.5, -0.0]));
    /// ```
    All<T>, 33
}
truth!(All, u32, bool, 1, |x: u32| x, |a, b| a & b, are_all_true, |acc: u32| acc != 0);

operator! {
    /// Is any item true? Zero is false and everything else is true, NaNs too. False of nothing.
    ///
    /// ```
    /// use warpfold_monoid::{Any, tree};
    ///
    /// assert!(tree::reduce(&Any::<u8>::new(), &[0, 128, 128]));
    /// ```
    Any<T>, 34
}
truth!(Any, u32, bool, 0, |x: u32| x, |a, b| a | b, is_any_true, |acc: u32| acc != 0);

operator! {
    /// How many items are true: not zero (NaNs count).
    ///
    /// ```
    /// use warpfold_monoid::{Count, tree};
    ///
    /// assert_eq!(tree::reduce(&Count::<i32>::new(), &[0, -1, 256]), 2);
    /// ```
    Count<T>, 35
}
truth!(Count, u64, u64, 0, |x: u32| x as u64, |a, b| a + b, T::count_true, |acc| acc);

/// How many items satisfy a predicate: a [`MapFn`](crate::MapFn) to `bool`, run-time parameters included.
///
/// ```
/// use warpfold_monoid::{Count, CountIf, Map, MapFn, Plain, tree};
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Plain)]
/// struct Over { threshold: f32 }
///
/// impl MapFn for Over {
///     type From = f32;
///     type To = bool;
///     fn map(&self, from: f32, _index: u64) -> bool { from > self.threshold }
/// }
///
/// let op: CountIf<Over> = Map::new(Count::new(), Over { threshold: 1.0 });
/// assert_eq!(tree::reduce(&op, &[0.5, 1.5, 2.5]), 2);
/// ```
pub type CountIf<F> = Map<Count<bool>, F>;
