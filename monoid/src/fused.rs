//! Several operators over one pass of the data.
//!
//! A tuple of two to eight operators with the same item is an operator: each keeps its own accumulator, the data is read
//! once, and the result is a tuple of the results.
//!
//! ```
//! use warpfold_monoid::{Max, Min, Sum, tree};
//!
//! let op = (Sum::<f32>::new(), Min::<f32>::new(), Max::<f32>::new());
//! assert_eq!(tree::reduce(&op, &[1.5, -2.0, 4.0]), (3.5, Some(-2.0), Some(4.0)));
//! assert_eq!(tree::reduce(&op, &[]), (0.0, None, None));
//! ```
//!
//! It is commutative if all its parts are, and has any order if all have.
//!
//! # Operators with parameters
//!
//! Where a Rust tuple keeps its fields is up to the compiler, and host and device have different ones. So a bare tuple
//! takes operators of zero bytes only (most are), and does not compile with others. [`fused`] takes any: its result
//! [`Fused2`] to [`Fused8`] has a layout.
//!
//! ```
//! use warpfold_monoid::{Max, WithInitial, fused, fused::Fused2, tree};
//!
//! type Op = Fused2<WithInitial<Max<i32>>, Max<i32>>;
//! let op: Op = fused((WithInitial::new(Max::new(), 10), Max::new()));
//! assert_eq!(tree::reduce(&op, &[3, 7]), (10, Some(7)));
//! ```
//!
//! # Accumulators without gaps
//!
//! Accumulators lie side by side in [`Parts2`] to [`Parts8`], aligned to 4 bytes at most, and so do outputs. There must be
//! no gap: accumulators of 4, 8, 12, ... bytes always fit, smaller ones fit if they stand together and fill words. A tuple
//! that does not fit does not compile; [`Unaligned`] makes it fit, at the price of single-byte accesses where accumulators
//! pass through memory (a few for each block of threads, none for each item).

use core::fmt;
use core::marker::PhantomData;

use crate::{Monoid, OnEmpty, Plain, Value, fingerprint};

/// Makes one operator of a tuple of two to eight, with or without parameters: see the [module](self).
///
/// ```
/// use warpfold_monoid::{Product, Sum, fused, tree};
///
/// let op = fused((Sum::<u64>::new(), Product::<u64>::new()));
/// assert_eq!(tree::reduce(&op, &[2, 3, 4]), (9, 24));
/// ```
#[inline(always)]
pub fn fused<T: Fuse>(operators: T) -> T::Fused {
    operators.fuse()
}

/// A tuple that [`fused`] takes.
pub trait Fuse {
    /// The operator that it becomes.
    type Fused;
    /// See [`fused`].
    fn fuse(self) -> Self::Fused;
}

/// What a tuple of operators gives for no items: what each of them gives.
pub struct EachEmpty<T>(PhantomData<fn() -> T>);

/// Fused operators whose accumulators or outputs do not fill 4-byte words: kept without alignment instead.
///
/// Wraps a tuple or what [`fused`] gives.
///
/// ```
/// use warpfold_monoid::{Monoid, NonEmpty, Semigroup, Plain, Sum, Unaligned, tree};
///
/// /// The last item's lowest byte: an accumulator of one byte.
/// #[derive(Clone, Copy, Plain)]
/// struct LastByte;
/// impl Semigroup for LastByte {
///     type Item = u32;
///     type Acc = u8;
///     type Output = u8;
///     const COMMUTATIVE: bool = false;
///     fn lift(&self, item: u32, _index: u64) -> u8 { item as u8 }
///     fn combine(&self, _left: u8, right: u8) -> u8 { right }
///     fn finish(&self, acc: u8) -> u8 { acc }
/// }
///
/// let op = Unaligned((NonEmpty(LastByte), Sum::<u32>::new()));
/// assert_eq!(tree::reduce(&op, &[0x102, 0x203]), (Some(3), 0x305));
/// ```
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Unaligned<T>(pub T);

// SAFETY: repr(transparent) over plain data.
unsafe impl<T: Plain> Plain for Unaligned<T> {
    const LAYOUT: u64 = T::LAYOUT;
}

/// The operators of one of the shapes, as a tuple.
trait Operators {
    type Tuple;
    fn operators(&self) -> Self::Tuple;
    fn of(operators: Self::Tuple) -> Self;
}

impl<T: Operators> Operators for Unaligned<T> {
    type Tuple = T::Tuple;
    #[inline(always)]
    fn operators(&self) -> T::Tuple {
        self.0.operators()
    }
    #[inline(always)]
    fn of(operators: T::Tuple) -> Self {
        Unaligned(T::of(operators))
    }
}

/// A struct of `$name`'s arity with a getter and conversions, for plain parts.
macro_rules! parts {
    ($(#[$meta:meta])* $name:ident: $($part:ident $value:ident),+) => {
        $(#[$meta])*
        #[derive(Clone, Copy)]
        pub struct $name<$($part),+>($($part),+);

        impl<$($part: Copy),+> $name<$($part),+> {
            /// From its parts.
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            pub const fn new($($value: $part),+) -> Self {
                $name($($value),+)
            }

            /// Its parts.
            #[inline(always)]
            pub const fn get(&self) -> ($($part,)+) {
                let $name($($value),+) = *self;
                ($($value,)+)
            }
        }

        impl<$($part: Copy),+> From<($($part,)+)> for $name<$($part),+> {
            #[inline(always)]
            fn from(($($value,)+): ($($part,)+)) -> Self {
                $name($($value),+)
            }
        }

        impl<$($part: Copy),+> From<$name<$($part),+>> for ($($part,)+) {
            #[inline(always)]
            fn from(parts: $name<$($part),+>) -> Self {
                parts.get()
            }
        }

        impl<$($part: Copy + PartialEq),+> PartialEq for $name<$($part),+> {
            fn eq(&self, other: &Self) -> bool {
                self.get() == other.get()
            }
        }

        impl<$($part: Copy + fmt::Debug),+> fmt::Debug for $name<$($part),+> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.get().fmt(f)
            }
        }
    };
}

/// The operator that a tuple, or a struct with a tuple's parts, is.
macro_rules! fused_monoid {
    ($self:ty, $parts:ident: $first:ident $(, $rest:ident)*; $($part:ident $op:ident $left:ident $right:ident),+) => {
        impl<$first: Monoid $(, $rest: Monoid<Item = $first::Item>)*> Monoid for $self {
            type Item = $first::Item;
            type Acc = $parts<$($part::Acc),+>;
            type Output = $parts<$($part::Output),+>;
            type Empty = EachEmpty<($($part,)+)>;
            const COMMUTATIVE: bool = $($part::COMMUTATIVE)&&+;
            const USES_INDEX: bool = $($part::USES_INDEX)||+;
            const ANY_ORDER: bool = $($part::ANY_ORDER)&&+;
            const PER_SEGMENT: bool = $($part::PER_SEGMENT)||+;
            #[inline(always)]
            fn for_segment(&self, k: u64) -> Self {
                let ($($op,)+) = self.operators();
                <Self as Operators>::of(($($op.for_segment(k),)+))
            }
            #[inline(always)]
            fn identity(&self) -> Self::Acc {
                let ($($op,)+) = self.operators();
                $parts($($op.identity()),+)
            }
            #[inline(always)]
            fn lift(&self, item: Self::Item, index: u64) -> Self::Acc {
                let ($($op,)+) = self.operators();
                $parts($($op.lift(item, index)),+)
            }
            #[inline(always)]
            fn combine(&self, left: Self::Acc, right: Self::Acc) -> Self::Acc {
                let ($($op,)+) = self.operators();
                let ($($left,)+) = left.get();
                let ($($right,)+) = right.get();
                $parts($($op.combine($left, $right)),+)
            }
            #[inline(always)]
            fn push(&self, acc: Self::Acc, item: Self::Item, index: u64) -> Self::Acc {
                let ($($op,)+) = self.operators();
                let ($($left,)+) = acc.get();
                $parts($($op.push($left, item, index)),+)
            }
            #[inline(always)]
            fn fold_many<const N: usize>(&self, items: [Self::Item; N], index: u64) -> Self::Acc {
                let ($($op,)+) = self.operators();
                $parts($($op.fold_many(items, index)),+)
            }
            #[inline(always)]
            fn finish(&self, acc: Self::Acc) -> Self::Output {
                let ($($op,)+) = self.operators();
                let ($($left,)+) = acc.get();
                $parts($($op.finish($left)),+)
            }
            #[inline(always)]
            fn finish_empty(&self) -> Self::Output {
                let ($($op,)+) = self.operators();
                $parts($($op.finish_empty()),+)
            }
        }
    };
}

macro_rules! arity {
    ($n:literal, $fused:ident, $parts:ident, $names:tt; $($part:ident $op:ident $left:ident $right:ident),+) => {
        parts! {
            #[doc = concat!(stringify!($n), " operators with a layout, as [`fused`] makes them; also what [`Unaligned`] \
                             accumulates in.")]
            ///
            /// Not aligned, and so without gaps whatever its parts are.
            #[repr(C, packed)]
            $fused: $($part $op),+
        }

        // SAFETY: repr(C, packed), plain parts: no padding.
        unsafe impl<$($part: Plain),+> Plain for $fused<$($part),+> {
            const LAYOUT: u64 = fingerprint(&[1, $(size_of::<$part>() as u64, $part::LAYOUT),+]);
        }

        parts! {
            #[doc = concat!("The accumulators, or the outputs, of ", stringify!($n), " operators side by side.")]
            ///
            /// Aligned to at most 4 bytes. Plain data only where that leaves no gaps.
            #[repr(C, packed(4))]
            $parts: $($part $op),+
        }

        // SAFETY: repr(C), plain parts, and `LAYOUT` compiles only without padding.
        unsafe impl<$($part: Plain),+> Plain for $parts<$($part),+> {
            const LAYOUT: u64 = {
                assert!(
                    size_of::<Self>() == 0 $(+ size_of::<$part>())+,
                    "the accumulators or outputs of these fused operators leave gaps between them: they must fill whole \
                     4-byte words; let the small ones stand together, or wrap the operators: `Unaligned((a, b))`"
                );
                fingerprint(&[4, $(size_of::<$part>() as u64, $part::LAYOUT),+])
            };
        }

        // SAFETY: `LAYOUT` compiles only for tuples of zero bytes.
        unsafe impl<$($part: Monoid),+> Plain for ($($part,)+) {
            const LAYOUT: u64 = {
                assert!(
                    size_of::<Self>() == 0,
                    "a bare tuple fuses operators without parameters (of zero bytes) only, because its layout is the \
                     compiler's own; use `fused((a, b))`, of type `Fused2<A, B>`"
                );
                fingerprint(&[0, $($part::LAYOUT),+])
            };
        }

        impl<$($part: Copy),+> Fuse for ($($part,)+) {
            type Fused = $fused<$($part),+>;
            #[inline(always)]
            fn fuse(self) -> Self::Fused {
                self.into()
            }
        }

        impl<$($part: Monoid),+> Operators for ($($part,)+) {
            type Tuple = Self;
            #[inline(always)]
            fn operators(&self) -> Self {
                *self
            }
            #[inline(always)]
            fn of(operators: Self) -> Self {
                operators
            }
        }

        impl<$($part: Monoid),+> Operators for $fused<$($part),+> {
            type Tuple = ($($part,)+);
            #[inline(always)]
            fn operators(&self) -> ($($part,)+) {
                self.get()
            }
            #[inline(always)]
            fn of(operators: ($($part,)+)) -> Self {
                operators.into()
            }
        }

        arity!(@empty $parts; $($part $op),+);
        arity!(@empty $fused; $($part $op),+);
        arity!(@monoid ($($part,)+), $parts, $names; $($part $op $left $right),+);
        arity!(@monoid $fused<$($part),+>, $parts, $names; $($part $op $left $right),+);
        arity!(@monoid Unaligned<($($part,)+)>, $fused, $names; $($part $op $left $right),+);
        arity!(@monoid Unaligned<$fused<$($part),+>>, $fused, $names; $($part $op $left $right),+);
    };
    (@empty $parts:ident; $($part:ident $value:ident),+) => {
        impl<$($part: Monoid),+> OnEmpty<$parts<$($part::Output),+>> for EachEmpty<($($part,)+)> {
            type Value = ($(Value<$part>,)+);
            #[inline(always)]
            fn value(output: $parts<$($part::Output),+>, empty: bool) -> Self::Value {
                let ($($value,)+) = output.get();
                ($($part::Empty::value($value, empty),)+)
            }
        }
    };
    (@monoid $self:ty, $parts:ident, ($($name:ident),+); $($rest:tt)+) => {
        fused_monoid!($self, $parts: $($name),+; $($rest)+);
    };
}

arity!(2, Fused2, Parts2, (A, B); A a l0 r0, B b l1 r1);
arity!(3, Fused3, Parts3, (A, B, C); A a l0 r0, B b l1 r1, C c l2 r2);
arity!(4, Fused4, Parts4, (A, B, C, D); A a l0 r0, B b l1 r1, C c l2 r2, D d l3 r3);
arity!(5, Fused5, Parts5, (A, B, C, D, E); A a l0 r0, B b l1 r1, C c l2 r2, D d l3 r3, E e l4 r4);
arity!(6, Fused6, Parts6, (A, B, C, D, E, F);
    A a l0 r0, B b l1 r1, C c l2 r2, D d l3 r3, E e l4 r4, F f l5 r5);
arity!(7, Fused7, Parts7, (A, B, C, D, E, F, G);
    A a l0 r0, B b l1 r1, C c l2 r2, D d l3 r3, E e l4 r4, F f l5 r5, G g l6 r6);
arity!(8, Fused8, Parts8, (A, B, C, D, E, F, G, H);
    A a l0 r0, B b l1 r1, C c l2 r2, D d l3 r3, E e l4 r4, F f l5 r5, G g l6 r6, H h l7 r7);
