//! The built-in operators.

use crate::{
    Atomic, Element, Float, GivesIdentity, GivesNone, Monoid, NeutralIdentity, Number, ProductAccumulator,
    SumAccumulator,
};

macro_rules! operator {
    ($(#[$doc:meta])* $name:ident<$($param:ident $(= $default:ty)?),+>, $tag:expr) => {
        $(#[$doc])*
        #[repr(C)]
        pub struct $name<$($param $(= $default)?),+>(core::marker::PhantomData<fn() -> ($($param,)+)>);

        impl<$($param),+> $name<$($param),+> {
            /// The operator.
            pub const fn new() -> Self { $name(core::marker::PhantomData) }
        }
        impl<$($param),+> Default for $name<$($param),+> {
            fn default() -> Self { Self::new() }
        }
        impl<$($param),+> Clone for $name<$($param),+> {
            fn clone(&self) -> Self { *self }
        }
        impl<$($param),+> Copy for $name<$($param),+> {}
        impl<$($param),+> core::fmt::Debug for $name<$($param),+> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(stringify!($name))
            }
        }
        // SAFETY: zero bytes.
        unsafe impl<$($param: 'static),+> $crate::Plain for $name<$($param),+> {
            const LAYOUT: u64 = $crate::fingerprint(&[$tag]);
        }
    };
}

pub(crate) use operator;

operator! {
    /// The sum.
    ///
    /// `Sum<T>` accumulates as [`Number`] says: integers wrap in their own width, `f32` sums are taken in `f64` and
    /// `f64` sums in [`DoubleDouble`](crate::DoubleDouble). `Sum<i32, i64>` and `Sum<u32, u64>` widen;
    /// `Sum<f32, DoubleDouble>` rounds the exact sum correctly even where it lies next to the midpoint of two `f32`. The
    /// sum of nothing is 0. A NaN, or infinities of both signs, give the canonical quiet NaN; -0.0 comes out only if every
    /// item is -0.0 (or, in a sum of `f32`, if the value rounds to it).
    ///
    /// ```
    /// use warpfold_monoid::{Sum, tree};
    ///
    /// assert_eq!(tree::reduce(&Sum::<i32>::new(), &[i32::MAX, 1]), i32::MIN);
    /// assert_eq!(tree::reduce(&Sum::<i32, i64>::new(), &[i32::MAX, 1]), 1 << 31);
    /// assert_eq!(tree::reduce(&Sum::<f32>::new(), &[16777216.0, 1.0, 1.0]), 16777218.0);
    /// ```
    Sum<T, A = <T as Number>::SumAcc>, 1
}

impl<T: Number, A: SumAccumulator<T>> Monoid for Sum<T, A> {
    type Item = T;
    type Acc = A;
    type Output = A::Output;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    const USES_INDEX: bool = false;
    const ANY_ORDER: bool = A::ANY_ORDER;
    const ATOMIC: Atomic = A::ATOMIC;
    const VECTORISE: bool = true;
    #[inline(always)]
    fn identity(&self) -> A {
        A::ZERO
    }
    #[inline(always)]
    fn lift(&self, item: T, _index: u64) -> A {
        A::lift(item)
    }
    #[inline(always)]
    fn combine(&self, left: A, right: A) -> A {
        left.merge(right)
    }
    #[inline(always)]
    fn push(&self, acc: A, item: T, _index: u64) -> A {
        acc.push(item)
    }
    #[inline(always)]
    fn fold_many<const N: usize>(&self, items: [T; N], _index: u64) -> A {
        A::lift_many(items)
    }
    #[inline(always)]
    fn finish(&self, acc: A) -> A::Output {
        acc.finish()
    }
}

impl<T: Number, A: SumAccumulator<T>> NeutralIdentity for Sum<T, A> {}

operator! {
    /// The product.
    ///
    /// Integers wrap in their own width, `Product<i32, i64>` and `Product<u32, u64>` widen; `f32` and `f64` products
    /// are taken in `f64`, one rounding a step. The product of nothing is 1. A NaN, or zero times infinity, gives the
    /// canonical quiet NaN.
    ///
    /// ```
    /// use warpfold_monoid::{Product, tree};
    ///
    /// assert_eq!(tree::reduce(&Product::<u32>::new(), &[1 << 16, 1 << 16]), 0);
    /// assert_eq!(tree::reduce(&Product::<f32>::new(), &[1e30, 1e30, 1e-30]), 1e30);
    /// ```
    Product<T, A = <T as Number>::ProductAcc>, 2
}

impl<T: Number, A: ProductAccumulator<T>> Monoid for Product<T, A> {
    type Item = T;
    type Acc = A;
    type Output = A::Output;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    const USES_INDEX: bool = false;
    const ANY_ORDER: bool = A::ANY_ORDER;
    const ATOMIC: Atomic = Atomic::Combine.of_size(size_of::<A>());
    const VECTORISE: bool = true;
    #[inline(always)]
    fn identity(&self) -> A {
        A::ONE
    }
    #[inline(always)]
    fn lift(&self, item: T, _index: u64) -> A {
        A::lift(item)
    }
    #[inline(always)]
    fn combine(&self, left: A, right: A) -> A {
        left.merge(right)
    }
    #[inline(always)]
    fn fold_many<const N: usize>(&self, items: [T; N], _index: u64) -> A {
        A::lift_many(items)
    }
    #[inline(always)]
    fn finish(&self, acc: A) -> A::Output {
        acc.finish()
    }
}

impl<T: Number, A: ProductAccumulator<T>> NeutralIdentity for Product<T, A> {}

/// An operator on one number type that only ever picks or maps values of that type.
macro_rules! selection {
    ($name:ident, $bound:ident, $identity:expr, $combine:expr, $of_many:ident) => {
        impl<T: $bound> Monoid for $name<T> {
            type Item = T;
            type Acc = T;
            type Output = T;
            type Empty = GivesNone;
            const COMMUTATIVE: bool = true;
            const USES_INDEX: bool = false;
            const ANY_ORDER: bool = true;
            const ATOMIC: Atomic = Atomic::Combine.of_size(size_of::<T>());
            #[inline(always)]
            fn identity(&self) -> T {
                $identity
            }
            #[inline(always)]
            fn lift(&self, item: T, _index: u64) -> T {
                item
            }
            #[inline(always)]
            fn combine(&self, left: T, right: T) -> T {
                $combine(left, right)
            }
            #[inline(always)]
            fn fold_many<const N: usize>(&self, items: [T; N], _index: u64) -> T {
                T::$of_many([items])
            }
            #[inline(always)]
            fn fold_vectors<const N: usize, const U: usize>(
                &self,
                vectors: [[T; N]; U],
                _count: u32,
                _index: u64,
                _stride: u64,
            ) -> T {
                // Copies of the first vector change nothing.
                T::$of_many(vectors)
            }
            #[inline(always)]
            fn finish(&self, acc: T) -> T {
                acc.canonical()
            }
        }
    };
}

operator! {
    /// The minimum: IEEE 754-2019 `minimum` for floats. Any NaN makes the result the canonical quiet NaN, wherever it
    /// stands; -0.0 is less than +0.0. The minimum of nothing is `None` on the host; device memory receives the
    /// type's highest value (infinity for floats).
    ///
    /// ```
    /// use warpfold_monoid::{Min, tree};
    ///
    /// assert_eq!(tree::reduce(&Min::<i64>::new(), &[3, -7, 5]), Some(-7));
    /// assert_eq!(tree::reduce(&Min::<i64>::new(), &[]), None);
    /// assert!(tree::reduce(&Min::<f32>::new(), &[3.0, f32::NAN, -7.0]).unwrap().is_nan());
    /// ```
    Min<T>, 3
}
selection!(Min, Element, T::HIGHEST, T::minimum, least_of);

operator! {
    /// The maximum: IEEE 754-2019 `maximum` for floats. Any NaN makes the result the canonical quiet NaN, wherever it
    /// stands; +0.0 is greater than -0.0. The maximum of nothing is `None` on the host; device memory receives the
    /// type's lowest value (minus infinity for floats).
    ///
    /// ```
    /// use warpfold_monoid::{Max, tree};
    ///
    /// assert_eq!(tree::reduce(&Max::<u32>::new(), &[3, 7, 5]), Some(7));
    /// assert_eq!(tree::reduce(&Max::<f64>::new(), &[-0.0, 0.0]).map(f64::to_bits), Some(0));
    /// ```
    Max<T>, 4
}
selection!(Max, Element, T::LOWEST, T::maximum, greatest_of);

operator! {
    /// The minimum of what is not a NaN (IEEE 754-2019 `minimumNumber`); a NaN only if there is nothing else, and
    /// `None` if there is nothing at all.
    ///
    /// ```
    /// use warpfold_monoid::{NanMin, tree};
    ///
    /// assert_eq!(tree::reduce(&NanMin::<f32>::new(), &[3.0, f32::NAN, 7.0]), Some(3.0));
    /// ```
    NanMin<T>, 5
}
selection!(NanMin, Float, T::NAN, T::minimum_number, least_number_of);

operator! {
    /// The maximum of what is not a NaN (IEEE 754-2019 `maximumNumber`); a NaN only if there is nothing else, and
    /// `None` if there is nothing at all.
    ///
    /// ```
    /// use warpfold_monoid::{NanMax, tree};
    ///
    /// assert_eq!(tree::reduce(&NanMax::<f64>::new(), &[3.0, f64::NAN, 7.0]), Some(7.0));
    /// ```
    NanMax<T>, 6
}
selection!(NanMax, Float, T::NAN, T::maximum_number, greatest_number_of);

operator! {
    /// The sum of what is not a NaN: each NaN counts as +0.0, so the sum of nothing but NaNs is 0. Accumulators as in
    /// [`Sum`]. Infinities of both signs still give NaN.
    ///
    /// ```
    /// use warpfold_monoid::{NanSum, tree};
    ///
    /// assert_eq!(tree::reduce(&NanSum::<f64>::new(), &[1.0, f64::NAN, 2.0]), 3.0);
    /// ```
    NanSum<T>, 7
}

impl<T: Float> NanSum<T> {
    #[inline(always)]
    fn keep(item: T) -> T {
        if item.is_nan() { T::ZERO } else { item }
    }
}

impl<T: Float> Monoid for NanSum<T> {
    type Item = T;
    type Acc = T::SumAcc;
    type Output = T;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    const USES_INDEX: bool = false;
    #[inline(always)]
    fn identity(&self) -> T::SumAcc {
        T::SumAcc::ZERO
    }
    #[inline(always)]
    fn lift(&self, item: T, _index: u64) -> T::SumAcc {
        T::SumAcc::lift(Self::keep(item))
    }
    #[inline(always)]
    fn combine(&self, left: T::SumAcc, right: T::SumAcc) -> T::SumAcc {
        left.merge(right)
    }
    #[inline(always)]
    fn push(&self, acc: T::SumAcc, item: T, _index: u64) -> T::SumAcc {
        acc.push(Self::keep(item))
    }
    #[inline(always)]
    fn finish(&self, acc: T::SumAcc) -> T {
        acc.finish()
    }
}

operator! {
    /// The product of what is not a NaN: each NaN counts as 1. Accumulators as in [`Product`]. Zero times infinity
    /// still gives NaN.
    ///
    /// ```
    /// use warpfold_monoid::{NanProduct, tree};
    ///
    /// assert_eq!(tree::reduce(&NanProduct::<f64>::new(), &[3.0, f64::NAN, 2.0]), 6.0);
    /// ```
    NanProduct<T>, 8
}

impl<T: Float> Monoid for NanProduct<T> {
    type Item = T;
    type Acc = T::ProductAcc;
    type Output = T;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = true;
    const USES_INDEX: bool = false;
    #[inline(always)]
    fn identity(&self) -> T::ProductAcc {
        T::ProductAcc::ONE
    }
    #[inline(always)]
    fn lift(&self, item: T, _index: u64) -> T::ProductAcc {
        T::ProductAcc::lift(if item.is_nan() { T::ONE } else { item })
    }
    #[inline(always)]
    fn combine(&self, left: T::ProductAcc, right: T::ProductAcc) -> T::ProductAcc {
        left.merge(right)
    }
    #[inline(always)]
    fn finish(&self, acc: T::ProductAcc) -> T {
        acc.finish()
    }
}
