//! Operators that pick an item: the extremes together, and where an extreme stands.

use core::fmt;

use crate::{
    Element, Float, GivesNone, MapFn, MaybeNan, Monoid, NeutralIdentity, OnEmpty, Plain, Rank, fingerprint,
    math, ops::operator,
};

/// The least and the greatest item: what [`MinMax`] gives.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent<T> {
    /// The least.
    pub min: T,
    /// The greatest.
    pub max: T,
}

// SAFETY: repr(C), two fields of one type: no padding.
unsafe impl<T: Plain> Plain for Extent<T> {
    const LAYOUT: u64 = fingerprint(&[19, T::LAYOUT, T::LAYOUT, size_of::<T>() as u64]);
}

macro_rules! extent {
    ($name:ident, $bound:ident, $identity_min:expr, $identity_max:expr, $min:ident, $max:ident, $least:ident, $greatest:ident) => {
        impl<T: $bound> Monoid for $name<T> {
            type Item = T;
            type Acc = Extent<T>;
            type Output = Extent<T>;
            type Empty = GivesNone;
            const COMMUTATIVE: bool = true;
            const USES_INDEX: bool = false;
            const ANY_ORDER: bool = true;
            const VECTORISE: bool = false;
            #[inline(always)]
            fn identity(&self) -> Extent<T> {
                Extent { min: $identity_min, max: $identity_max }
            }
            #[inline(always)]
            fn lift(&self, item: T, _index: u64) -> Extent<T> {
                Extent { min: item, max: item }
            }
            #[inline(always)]
            fn combine(&self, left: Extent<T>, right: Extent<T>) -> Extent<T> {
                Extent { min: left.min.$min(right.min), max: left.max.$max(right.max) }
            }
            #[inline(always)]
            fn fold_many<const N: usize>(&self, items: [T; N], _index: u64) -> Extent<T> {
                Extent { min: T::$least([items]), max: T::$greatest([items]) }
            }
            #[inline(always)]
            fn fold_vectors<const N: usize, const U: usize>(
                &self,
                vectors: [[T; N]; U],
                _count: u32,
                _index: u64,
                _stride: u64,
            ) -> Extent<T> {
                // Copies of the first vector change nothing.
                Extent { min: T::$least(vectors), max: T::$greatest(vectors) }
            }
            #[inline(always)]
            fn finish(&self, acc: Extent<T>) -> Extent<T> {
                Extent { min: acc.min.canonical(), max: acc.max.canonical() }
            }
        }
    };
}

operator! {
    /// The minimum and the maximum in one pass, each as [`Min`](crate::Min) and [`Max`](crate::Max) give it. `None` for no
    /// items; device memory then receives the type's highest and lowest value.
    ///
    /// ```
    /// use warpfold_monoid::{Extent, MinMax, tree};
    ///
    /// assert_eq!(tree::reduce(&MinMax::<i8>::new(), &[3, -7, 5]), Some(Extent { min: -7, max: 5 }));
    /// assert_eq!(tree::reduce(&MinMax::<i8>::new(), &[]), None);
    /// ```
    MinMax<T>, 20
}
extent!(MinMax, Element, T::HIGHEST, T::LOWEST, minimum, maximum, least_of, greatest_of);

operator! {
    /// The minimum and the maximum of what is not a NaN; NaNs only if there is nothing else, `None` if there is nothing.
    ///
    /// ```
    /// use warpfold_monoid::{Extent, NanMinMax, tree};
    ///
    /// let extent = tree::reduce(&NanMinMax::<f32>::new(), &[f32::NAN, 3.0, 5.0]);
    /// assert_eq!(extent, Some(Extent { min: 3.0, max: 5.0 }));
    /// ```
    NanMinMax<T>, 21
}
extent!(
    NanMinMax,
    Float,
    T::NAN,
    T::NAN,
    minimum_number,
    maximum_number,
    least_number_of,
    greatest_number_of
);

/// A value and its position: what the arg-operators give.
#[repr(C, packed)]
#[derive(Clone, Copy)]
pub struct Indexed<T> {
    index: u64,
    value: T,
}

impl<T: Copy> Indexed<T> {
    /// A value at a position.
    pub const fn new(index: u64, value: T) -> Self {
        Indexed { index, value }
    }

    /// The position, counted from 0.
    #[inline(always)]
    pub const fn index(&self) -> u64 {
        self.index
    }

    /// The value.
    #[inline(always)]
    pub const fn value(&self) -> T {
        self.value
    }
}

impl<T: Copy + PartialEq> PartialEq for Indexed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.index() == other.index() && self.value() == other.value()
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for Indexed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Indexed").field("index", &self.index()).field("value", &self.value()).finish()
    }
}

// SAFETY: repr(C, packed), plain fields: no padding.
unsafe impl<T: Plain> Plain for Indexed<T> {
    const LAYOUT: u64 = fingerprint(&[22, T::LAYOUT, size_of::<T>() as u64]);
}

/// Where no item counts (there are none, or all are NaNs that an operator ignores) an arg-operator gives `None`; device
/// memory then receives [`NOWHERE`] as the index.
pub enum GivesPlace {}

/// The index of no item.
pub const NOWHERE: u64 = u64::MAX;

impl<T: Copy> OnEmpty<Indexed<T>> for GivesPlace {
    type Value = Option<Indexed<T>>;
    #[inline(always)]
    fn value(output: Indexed<T>, empty: bool) -> Option<Indexed<T>> {
        (!empty && output.index() != NOWHERE).then_some(output)
    }
}

/// The best item so far: the greatest key, and of equal ones the lowest index.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate<K> {
    /// The lower and the upper half of the index, so that there is no padding whatever the key.
    index: [u32; 2],
    key: K,
}

// SAFETY: repr(C), eight bytes and a `u32` or a `u64`: no padding.
unsafe impl<K: Rank> Plain for Candidate<K> {
    const LAYOUT: u64 = fingerprint(&[23, K::LAYOUT, size_of::<K>() as u64]);
}

impl<K: Rank> Candidate<K> {
    const NONE: Self = Candidate { index: [u32::MAX; 2], key: K::ZERO };

    #[inline(always)]
    fn new(index: u64, key: K) -> Self {
        Candidate { index: [index as u32, (index >> 32) as u32], key }
    }

    #[inline(always)]
    fn index(&self) -> u64 {
        self.index[0] as u64 | (self.index[1] as u64) << 32
    }

    #[inline(always)]
    fn better(self, other: Self) -> Self {
        let other_wins = other.key > self.key || (other.key == self.key && other.index() < self.index());
        if other_wins { other } else { self }
    }

    /// The best of some vectors of items, of which `index` is the first's position, by their keys.
    #[inline(always)]
    fn of_vectors<T: Copy, const N: usize, const U: usize>(
        vectors: [[T; N]; U],
        index: u64,
        stride: u64,
        key: impl Fn(T) -> K,
    ) -> Self {
        let (mut best, mut place) = (key(vectors[0][0]), 0);
        let mut i = 1;
        while i < U * N {
            let key = key(vectors[i / N][i % N]);
            if key > best {
                (best, place) = (key, i as u32);
            }
            i += 1;
        }
        Candidate::new(position::<N>(place, index, stride), best)
    }
}

/// The position of an item of some vectors, which start `stride` apart.
#[inline(always)]
fn position<const N: usize>(place: u32, index: u64, stride: u64) -> u64 {
    index + (place / N as u32) as u64 * stride + (place % N as u32) as u64
}

/// The best of some vectors of items of one or two bytes by `S`, of which `index` is the first's position: for no other items.
#[inline(always)]
fn best_of_narrow<S: Sought, T: Element, const N: usize, const U: usize>(
    vectors: [[T; N]; U],
    index: u64,
    stride: u64,
) -> Option<Candidate<T::Rank>> {
    let size = size_of::<T>();
    if size > 2 || !(N * size).is_multiple_of(4) || U * N > 256 {
        return None;
    }
    // Key and place in one word, the key on top: the greatest word has the greatest key, the first place. What lies below
    // decides nothing.
    let mut best = 0;
    let mut i = 0;
    while i < U * N {
        let mut word = 0;
        let mut k = 0;
        while k < 4 / size {
            word |= vectors[i / N][i % N + k].low_bits() << (8 * size * k);
            k += 1;
        }
        let keys = S::keys::<T>(word);
        // The places of the items that the word may have.
        let places = (0x0101_0101 * (255 - i as u32)).wrapping_sub(0x0302_0100);
        let mut k = 0;
        while k < 4 / size {
            let (key, place) = ((size * k) as u32, 4 + k as u32);
            let numbers =
                if size == 1 { key << 12 | place << 8 } else { (key + 1) << 12 | key << 8 | place << 4 };
            best = math::pick_bytes(keys, places, numbers).max(best);
            k += 1;
        }
        i += 4 / size;
    }
    let bits = 8 * size as u32;
    let place = 255 - (best >> (24 - bits) & 255);
    Some(Candidate::new(position::<N>(place, index, stride), T::Rank::of_low(best >> (32 - bits))))
}

/// The greatest or the least is sought: a NaN beats both.
trait Sought {
    fn key<T: Element>(item: T) -> T::Rank;
    /// The keys of the items of one or two bytes in a word, each in its place.
    fn keys<T: Element>(word: u32) -> u32;
    fn value<T: Element>(key: T::Rank) -> T;
}

enum Greatest {}

impl Sought for Greatest {
    #[inline(always)]
    fn key<T: Element>(item: T) -> T::Rank {
        if item.is_nan() { T::TOP } else { item.rank() }
    }
    #[inline(always)]
    fn keys<T: Element>(word: u32) -> u32 {
        T::ranks_in(word) | T::nans_in(word)
    }
    #[inline(always)]
    fn value<T: Element>(key: T::Rank) -> T {
        T::of_rank(key).canonical()
    }
}

enum Least {}

impl Sought for Least {
    #[inline(always)]
    fn key<T: Element>(item: T) -> T::Rank {
        if item.is_nan() { T::TOP } else { item.rank() ^ T::TOP }
    }
    #[inline(always)]
    fn keys<T: Element>(word: u32) -> u32 {
        (T::ranks_in(word) ^ T::TOPS) | T::nans_in(word)
    }
    #[inline(always)]
    fn value<T: Element>(key: T::Rank) -> T {
        T::of_rank(key ^ T::TOP).canonical()
    }
}

macro_rules! arg {
    ($name:ident, $by:ident, $sought:ident) => {
        impl<T: Element> Monoid for $name<T> {
            type Item = T;
            type Acc = Candidate<T::Rank>;
            type Output = Indexed<T>;
            type Empty = GivesPlace;
            const COMMUTATIVE: bool = true;
            const ANY_ORDER: bool = true;
            const VECTORISE: bool = false;
            #[inline(always)]
            fn identity(&self) -> Self::Acc {
                Candidate::NONE
            }
            #[inline(always)]
            fn lift(&self, item: T, index: u64) -> Self::Acc {
                Candidate::new(index, $sought::key(item))
            }
            #[inline(always)]
            fn combine(&self, left: Self::Acc, right: Self::Acc) -> Self::Acc {
                left.better(right)
            }
            #[inline(always)]
            fn fold_many<const N: usize>(&self, items: [T; N], index: u64) -> Self::Acc {
                self.fold_vectors([items], 1, index, 0)
            }
            #[inline(always)]
            fn fold_vectors<const N: usize, const U: usize>(
                &self,
                vectors: [[T; N]; U],
                _count: u32,
                index: u64,
                stride: u64,
            ) -> Self::Acc {
                // A copy of the first vector behind it is no better.
                match best_of_narrow::<$sought, T, N, U>(vectors, index, stride) {
                    Some(best) => best,
                    None => Candidate::of_vectors(vectors, index, stride, $sought::key),
                }
            }
            #[inline(always)]
            fn finish(&self, acc: Self::Acc) -> Indexed<T> {
                Indexed::new(acc.index(), $sought::value(acc.key))
            }
        }
        impl<T: Element> NeutralIdentity for $name<T> {
            #[inline(always)]
            fn fold_numbers<const N: usize, const U: usize>(
                &self,
                vectors: [[T; N]; U],
                _count: u32,
                index: u64,
                stride: u64,
            ) -> Self::Acc
            where
                T: MaybeNan,
            {
                // No number has the key 0.
                let key = |item: T| if item.is_nan() { Rank::ZERO } else { $sought::key(item) };
                let best = Candidate::of_vectors(vectors, index, stride, key);
                if best.key == Rank::ZERO { Candidate::NONE } else { best }
            }
        }

        impl<F> $by<F> {
            /// By the keys that `key` makes of the items.
            pub const fn new(key: F) -> Self {
                $by { key }
            }
        }

        // SAFETY: repr(transparent) over plain data.
        unsafe impl<F: Plain> Plain for $by<F> {
            const LAYOUT: u64 = F::LAYOUT;
        }

        impl<F: MapFn<From: Element, To: Element>> Monoid for $by<F> {
            type Item = F::From;
            type Acc = KeyedCandidate<<F::To as Element>::Rank, <F::From as Element>::Rank>;
            type Output = Indexed<F::From>;
            type Empty = GivesPlace;
            const COMMUTATIVE: bool = true;
            const ANY_ORDER: bool = true;
            const VECTORISE: bool = false;
            #[inline(always)]
            fn identity(&self) -> Self::Acc {
                KeyedCandidate { index: NOWHERE, key: Rank::ZERO, value: Rank::ZERO }
            }
            #[inline(always)]
            fn lift(&self, item: F::From, index: u64) -> Self::Acc {
                let key = $sought::key(self.key.map(item, index));
                KeyedCandidate { index, key, value: item.rank() }
            }
            #[inline(always)]
            fn combine(&self, left: Self::Acc, right: Self::Acc) -> Self::Acc {
                left.better(right)
            }
            #[inline(always)]
            fn finish(&self, acc: Self::Acc) -> Indexed<F::From> {
                Indexed::new(acc.index, F::From::of_rank(acc.value).canonical())
            }
        }
        impl<F: MapFn<From: Element, To: Element>> NeutralIdentity for $by<F> {}
    };
}

operator! {
    /// The least item and where it stands: the first of equal ones. The order is that of [`Min`](crate::Min), with which it
    /// always agrees: any NaN makes the first NaN the result, and -0.0 is less than +0.0. `None` for no items.
    ///
    /// ```
    /// use warpfold_monoid::{ArgMin, Indexed, tree};
    ///
    /// assert_eq!(tree::reduce(&ArgMin::<f32>::new(), &[3.0, -7.0, 5.0, -7.0]), Some(Indexed::new(1, -7.0)));
    /// let nan = tree::reduce(&ArgMin::<f32>::new(), &[3.0, f32::NAN, -7.0]).unwrap();
    /// assert!(nan.index() == 1 && nan.value().is_nan());
    /// ```
    ArgMin<T>, 24
}

operator! {
    /// The greatest item and where it stands: the first of equal ones. The order is that of [`Max`](crate::Max), with which
    /// it always agrees: any NaN makes the first NaN the result, and +0.0 is greater than -0.0. `None` for no items.
    ///
    /// ```
    /// use warpfold_monoid::{ArgMax, Indexed, tree};
    ///
    /// assert_eq!(tree::reduce(&ArgMax::<u8>::new(), &[3, 9, 5, 9]), Some(Indexed::new(1, 9)));
    /// assert_eq!(tree::reduce(&ArgMax::<u8>::new(), &[]), None);
    /// ```
    ArgMax<T>, 25
}

/// The item with the least key, and where it stands: see [`ArgMaxBy`].
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ArgMinBy<F> {
    key: F,
}

/// The item with the greatest key, and where it stands: the first of those with equal keys. Keys compare as in
/// [`ArgMax`]; the value is the item's own, any NaN as the canonical one.
///
/// ```
/// use warpfold_monoid::{ArgMaxBy, Indexed, Magnitude, tree};
///
/// let op = ArgMaxBy::new(Magnitude::<i16>::new());
/// assert_eq!(tree::reduce(&op, &[5, i16::MIN, i16::MAX]), Some(Indexed::new(1, i16::MIN)));
/// ```
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ArgMaxBy<F> {
    key: F,
}

/// The best item so far with its own value's rank.
#[repr(C, packed(4))]
#[derive(Clone, Copy)]
pub struct KeyedCandidate<K, V> {
    index: u64,
    key: K,
    value: V,
}

// SAFETY: repr(C, packed(4)), fields of 4 or 8 bytes: no padding.
unsafe impl<K: Rank, V: Rank> Plain for KeyedCandidate<K, V> {
    const LAYOUT: u64 = fingerprint(&[26, K::LAYOUT, V::LAYOUT]);
}

impl<K: Rank, V: Rank> KeyedCandidate<K, V> {
    #[inline(always)]
    fn better(self, other: Self) -> Self {
        let (key, other_key) = (self.key, other.key);
        let (index, other_index) = (self.index, other.index);
        let other_wins = other_key > key || (other_key == key && other_index < index);
        if other_wins { other } else { self }
    }
}

arg!(ArgMin, ArgMinBy, Least);
arg!(ArgMax, ArgMaxBy, Greatest);

operator! {
    /// The distance from 0, as a key for [`ArgMaxBy`] and [`ArgMinBy`] or a map in front of an operator. That of a signed
    /// integer is unsigned, so that the lowest value has one too.
    ///
    /// ```
    /// use warpfold_monoid::{Magnitude, MapFn};
    ///
    /// assert_eq!(Magnitude::<i8>::new().map(-128, 0), 128_u8);
    /// assert_eq!(Magnitude::<f32>::new().map(-1.5, 0), 1.5);
    /// ```
    Magnitude<T>, 27
}

macro_rules! magnitude {
    ($($trait:ident: $($type:ty => $to:ty),*;)*) => {$($(
        impl MapFn for Magnitude<$type> {
            type From = $type;
            type To = $to;
            #[inline(always)]
            fn map(&self, from: $type, _index: u64) -> $to {
                crate::$trait::magnitude(from)
            }
        }
    )*)*};
}
magnitude! {
    Integer: i8 => u8, i16 => u16, i32 => u32, i64 => u64, u8 => u8, u16 => u16, u32 => u32, u64 => u64;
    Float: half::f16 => half::f16, half::bf16 => half::bf16, f32 => f32, f64 => f64;
}

/// An operator that passes over NaNs, as if they were not there; an item keeps its index.
///
/// Of nothing but NaNs the result is that of the identity: 0 for a sum, `None` for an arg-operator, NaN for a mean. A NaN
/// that the operator itself makes (opposite infinities in a sum) stays one.
///
/// ```
/// use warpfold_monoid::{ArgMin, IgnoreNan, Indexed, Mean, tree};
///
/// let data = [f64::NAN, 3.0, 1.0];
/// assert_eq!(tree::reduce(&IgnoreNan(Mean::<f64>::new()), &data), Some(2.0));
/// assert_eq!(tree::reduce(&IgnoreNan(ArgMin::<f64>::new()), &data), Some(Indexed::new(2, 1.0)));
/// ```
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoreNan<Op>(pub Op);

// SAFETY: repr(transparent) over plain data.
unsafe impl<Op: Plain> Plain for IgnoreNan<Op> {
    const LAYOUT: u64 = Op::LAYOUT;
}

impl<Op: NeutralIdentity<Item: MaybeNan>> Monoid for IgnoreNan<Op> {
    type Item = Op::Item;
    type Acc = Op::Acc;
    type Output = Op::Output;
    type Empty = Op::Empty;
    const COMMUTATIVE: bool = Op::COMMUTATIVE;
    const USES_INDEX: bool = Op::USES_INDEX;
    const ANY_ORDER: bool = Op::ANY_ORDER;
    const PER_SEGMENT: bool = Op::PER_SEGMENT;
    #[inline(always)]
    fn for_segment(&self, k: u64) -> Self {
        IgnoreNan(self.0.for_segment(k))
    }
    #[inline(always)]
    fn identity(&self) -> Op::Acc {
        self.0.identity()
    }
    #[inline(always)]
    fn lift(&self, item: Op::Item, index: u64) -> Op::Acc {
        if item.is_nan_value() { self.0.identity() } else { self.0.lift(item, index) }
    }
    #[inline(always)]
    fn combine(&self, left: Op::Acc, right: Op::Acc) -> Op::Acc {
        self.0.combine(left, right)
    }
    #[inline(always)]
    fn push(&self, acc: Op::Acc, item: Op::Item, index: u64) -> Op::Acc {
        self.0.push_number(acc, item, index)
    }
    #[inline(always)]
    fn fold_many<const N: usize>(&self, items: [Op::Item; N], index: u64) -> Op::Acc {
        self.0.fold_numbers([items], 1, index, 0)
    }
    #[inline(always)]
    fn fold_vectors<const N: usize, const U: usize>(
        &self,
        vectors: [[Op::Item; N]; U],
        count: u32,
        index: u64,
        stride: u64,
    ) -> Op::Acc {
        self.0.fold_numbers(vectors, count, index, stride)
    }
    #[inline(always)]
    fn finish(&self, acc: Op::Acc) -> Op::Output {
        self.0.finish(acc)
    }
    #[inline(always)]
    fn finish_empty(&self) -> Op::Output {
        self.0.finish_empty()
    }
}
