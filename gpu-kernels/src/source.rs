//! Reductions whose items are not one array: several arrays read side by side, a range of numbers, and a mapped array
//! that the same pass writes.
//!
//! A [`Source`] says what item `i` is; [`Over`] makes of an operator and a source an operator over positions, which any
//! backend reduces like any other: its items, [`Position`], take no memory, and it is exported like any other:
//!
//! ```
//! use warpfold_gpu_kernels::{kernels, source::{Array, Over, Zip2}};
//! use warpfold_monoid::{Map, MapFn, Plain, Sum, fused::Parts2};
//!
//! /// The product of a pair.
//! #[derive(Clone, Copy, Plain)]
//! struct Times;
//! impl MapFn for Times {
//!     type From = Parts2<f32, f32>;
//!     type To = f32;
//!     fn map(&self, pair: Parts2<f32, f32>, _index: u64) -> f32 {
//!         let (a, b) = pair.get();
//!         a * b
//!     }
//! }
//! type Dot = Map<Sum<f32>, Times>;
//!
//! kernels! {
//!     /// The kernels of this crate.
//!     pub static TABLE:
//!     dot => Over<Dot, Zip2<Array<f32>, Array<f32>>>,
//! }
//! ```
//!
//! On the host, `Engine::reduce_columns` and `Engine::map_reduce_columns` of `warpfold-host` do the rest. The literature
//! calls a map whose results are both written and reduced a *redomap* (T. Henriksen, Design and Implementation of the
//! Futhark Programming Language, 2017).

use core::marker::PhantomData;

use warpfold_monoid::{GivesIdentity, MapFn, Monoid, Plain, fingerprint, fused, tree::vector_len};
use warpfold_simt::{
    global::{self, hint::Nc},
    hint::{nounroll, opaque},
};

/// A place in an array, by its number alone: no bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position;

// SAFETY: no bytes.
unsafe impl Plain for Position {}

impl Position {
    /// The positions before `n`.
    ///
    /// ```
    /// assert_eq!(warpfold_gpu_kernels::source::Position::before(5).len(), 5);
    /// ```
    pub const fn before(n: usize) -> &'static [Position] {
        // SAFETY: items without bytes lie at any aligned address, as many as one likes.
        unsafe { core::slice::from_raw_parts(core::ptr::dangling(), n) }
    }
}

/// What item `i` is.
pub trait Source: Plain {
    /// The items.
    type Item: Plain;

    /// Is [`for_segment`](Source::for_segment) anything but the source itself?
    const PER_SEGMENT: bool = false;

    /// What it is for segment `k`: see [`Monoid::for_segment`].
    #[inline(always)]
    fn for_segment(&self, _k: u64) -> Self {
        *self
    }

    /// Item `index`. A reduction asks for each item once, in no promised order.
    ///
    /// # Safety
    ///
    /// The source's arrays have more than `index` items, which may be read (and, where the source says so, written).
    unsafe fn get(&self, index: u64) -> Self::Item;

    /// How many neighbouring items are best asked for at once: a power of two.
    const AT_ONCE: usize = 1;

    /// Items `index ..`, as many as the array has.
    ///
    /// # Safety
    ///
    /// As for [`get`](Source::get) of each of them.
    #[inline(always)]
    unsafe fn get_many<const N: usize>(&self, index: u64) -> [Self::Item; N] {
        // SAFETY: the caller's promise.
        core::array::from_fn(|i| unsafe { self.get(index + i as u64) })
    }

    /// Can [`get_vector`](Source::get_vector) read `N` items from here on?
    #[inline(always)]
    fn has_vector<const N: usize>(&self, _index: u64) -> bool {
        true
    }

    /// [`get_many`](Source::get_many), without asking how the items lie.
    ///
    /// # Safety
    ///
    /// As there; and [`has_vector`](Source::has_vector) says so.
    #[inline(always)]
    unsafe fn get_vector<const N: usize>(&self, index: u64) -> [Self::Item; N] {
        // SAFETY: the caller's promise.
        unsafe { self.get_many(index) }
    }
}

/// Rows of items one by one that are asked for together where they are no vectors.
const FEW_ROWS: usize = 8;

/// Where items go.
pub trait Sink: Plain {
    /// The items.
    type Item: Plain;

    /// Is [`for_segment`](Sink::for_segment) anything but the sink itself?
    const PER_SEGMENT: bool = false;

    /// What it is for segment `k`: see [`Monoid::for_segment`].
    #[inline(always)]
    fn for_segment(&self, _k: u64) -> Self {
        *self
    }

    /// Writes item `index`.
    ///
    /// # Safety
    ///
    /// The sink's arrays have more than `index` items, and nothing else uses that one meanwhile.
    unsafe fn put(&self, index: u64, item: Self::Item);
}

/// Where an array lies, and whether the simulator is to check accesses to it.
macro_rules! array {
    ($(#[$meta:meta])* $name:ident, $($pointer:tt)+) => {
        $(#[$meta])*
        #[repr(C)]
        pub struct $name<T> {
            address: u64,
            checked: u64,
            items: PhantomData<fn() -> T>,
        }

        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $name<T> {}

        impl<T> core::fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.address)
            }
        }

        // SAFETY: repr(C), two words.
        unsafe impl<T: Plain> Plain for $name<T> {
            const LAYOUT: u64 = fingerprint(&[T::LAYOUT, size_of::<T>() as u64]);
        }

        impl<T: Plain> $name<T> {
            /// The array at an address: of the device, or of the host with its provenance exposed.
            pub const fn at(address: u64) -> Self {
                $name { address, checked: 0, items: PhantomData }
            }

            /// The same for a launch of the simulator, which is to check accesses.
            pub const fn checked(self) -> Self {
                $name { checked: 1, ..self }
            }

            /// The same from an item on that is so far away.
            #[inline(always)]
            pub(crate) fn moved(self, items: i64) -> Self {
                let bytes = items.wrapping_mul(size_of::<T>() as i64);
                $name { address: self.address.wrapping_add_signed(bytes), ..self }
            }

            #[inline(always)]
            fn item(&self, index: u64) -> $($pointer)+ T {
                let address = self.address + index * size_of::<T>() as u64;
                array!(@pointer address $($pointer)+)
            }

            /// Through the instructions of the device (or their simulation)?
            #[inline(always)]
            fn on_device(&self) -> bool {
                cfg!(target_arch = "nvptx64") || self.checked != 0
            }
        }
    };
    (@pointer $address:ident *const) => { core::ptr::with_exposed_provenance($address as usize) };
    (@pointer $address:ident *mut) => { core::ptr::with_exposed_provenance_mut($address as usize) };
}

array! {
    /// An array to read from. Nothing may write it while a reduction reads it.
    Array, *const
}

array! {
    /// An array to write to.
    ArrayMut, *mut
}

impl<T: Plain> Source for Array<T> {
    type Item = T;
    #[inline(always)]
    unsafe fn get(&self, index: u64) -> T {
        let item = self.item(index);
        if self.on_device() {
            // SAFETY: the caller's promise; nothing writes the array.
            unsafe { global::load_with::<Nc, T>(item) }
        } else {
            // SAFETY: the caller's promise.
            unsafe { item.read() }
        }
    }
    const AT_ONCE: usize = vector_len(size_of::<T>());
    #[inline(always)]
    unsafe fn get_many<const N: usize>(&self, index: u64) -> [T; N] {
        if N > 1 && self.has_vector::<N>(index) {
            // SAFETY: the caller's promise.
            return unsafe { self.get_vector(index) };
        }
        // SAFETY: the caller's promise.
        core::array::from_fn(|i| unsafe { self.get(index + i as u64) })
    }
    #[inline(always)]
    fn has_vector<const N: usize>(&self, index: u64) -> bool {
        self.on_device()
            && global::is_vector::<T, N>()
            && self.item(index).addr().is_multiple_of(size_of::<[T; N]>())
    }
    #[inline(always)]
    unsafe fn get_vector<const N: usize>(&self, index: u64) -> [T; N] {
        // SAFETY: the caller's promise; nothing writes the array.
        unsafe { global::load_neighbours_with::<Nc, T, N>(self.item(index)) }
    }
}

impl<T: Plain> Sink for ArrayMut<T> {
    type Item = T;
    #[inline(always)]
    unsafe fn put(&self, index: u64, value: T) {
        let item = self.item(index);
        if self.on_device() {
            // SAFETY: the caller's promise.
            unsafe { global::store(item, value) }
        } else {
            // SAFETY: the caller's promise.
            unsafe { item.write(value) }
        }
    }
}

/// The positions themselves: item `i` is `i`.
///
/// ```
/// use warpfold_gpu_kernels::source::{Count, Over, Position};
/// use warpfold_monoid::{Sum, tree};
///
/// // SAFETY: no arrays.
/// let op = unsafe { Over::new(Sum::<u64>::new(), Count) };
/// assert_eq!(tree::reduce(&op, Position::before(101)), 5050);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Count;

// SAFETY: no bytes.
unsafe impl Plain for Count {}

impl Source for Count {
    type Item = u64;
    #[inline(always)]
    unsafe fn get(&self, index: u64) -> u64 {
        index
    }
}

const fn least(numbers: &[usize]) -> usize {
    let mut least = numbers[0];
    let mut i = 1;
    while i < numbers.len() {
        if numbers[i] < least {
            least = numbers[i];
        }
        i += 1;
    }
    least
}

macro_rules! zip {
    ($n:literal, $zip:ident, $parts:ident; $($part:ident $value:ident),+) => {
        #[doc = concat!(stringify!($n), " sources read side by side, or as many sinks written: items are [`", stringify!($parts),
                        "`](fused::", stringify!($parts), ").")]
        #[repr(C, packed)]
        #[derive(Clone, Copy)]
        pub struct $zip<$($part),+>($($part),+);

        impl<$($part: Copy),+> $zip<$($part),+> {
            /// Side by side.
            #[allow(clippy::too_many_arguments)]
            pub const fn new($($value: $part),+) -> Self {
                $zip($($value),+)
            }
        }

        impl<$($part: Copy + core::fmt::Debug),+> core::fmt::Debug for $zip<$($part),+> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let $zip($($value),+) = *self;
                f.debug_tuple(stringify!($zip))$(.field(&$value))+.finish()
            }
        }

        // SAFETY: repr(C, packed), plain parts: no padding.
        unsafe impl<$($part: Plain),+> Plain for $zip<$($part),+> {
            const LAYOUT: u64 = fingerprint(&[$n, $(size_of::<$part>() as u64, $part::LAYOUT),+]);
        }

        impl<$($part: Source),+> Source for $zip<$($part),+> {
            type Item = fused::$parts<$($part::Item),+>;
            const PER_SEGMENT: bool = $($part::PER_SEGMENT)||+;
            #[inline(always)]
            fn for_segment(&self, k: u64) -> Self {
                let $zip($($value),+) = *self;
                $zip($($value.for_segment(k)),+)
            }
            #[inline(always)]
            unsafe fn get(&self, index: u64) -> Self::Item {
                let $zip($($value),+) = *self;
                // SAFETY: the caller's promise.
                unsafe { fused::$parts::new($($value.get(index)),+) }
            }
            const AT_ONCE: usize = least(&[$($part::AT_ONCE),+]);
            #[inline(always)]
            unsafe fn get_many<const N: usize>(&self, index: u64) -> [Self::Item; N] {
                let $zip($($value),+) = *self;
                // SAFETY: the caller's promise.
                $(let $value = unsafe { $value.get_many::<N>(index) };)+
                core::array::from_fn(|i| fused::$parts::new($($value[i]),+))
            }
            #[inline(always)]
            fn has_vector<const N: usize>(&self, index: u64) -> bool {
                let $zip($($value),+) = *self;
                $($value.has_vector::<N>(index))&&+
            }
            #[inline(always)]
            unsafe fn get_vector<const N: usize>(&self, index: u64) -> [Self::Item; N] {
                let $zip($($value),+) = *self;
                // SAFETY: the caller's promise.
                $(let $value = unsafe { $value.get_vector::<N>(index) };)+
                core::array::from_fn(|i| fused::$parts::new($($value[i]),+))
            }
        }

        impl<$($part: Sink),+> Sink for $zip<$($part),+> {
            type Item = fused::$parts<$($part::Item),+>;
            const PER_SEGMENT: bool = $($part::PER_SEGMENT)||+;
            #[inline(always)]
            fn for_segment(&self, k: u64) -> Self {
                let $zip($($value),+) = *self;
                $zip($($value.for_segment(k)),+)
            }
            #[inline(always)]
            #[allow(non_snake_case)]
            unsafe fn put(&self, index: u64, item: Self::Item) {
                let $zip($($value),+) = *self;
                let ($($part,)+) = item.get();
                // SAFETY: the caller's promise.
                unsafe { $($value.put(index, $part);)+ }
            }
        }
    };
}

zip!(2, Zip2, Parts2; A a, B b);
zip!(3, Zip3, Parts3; A a, B b, C c);
zip!(4, Zip4, Parts4; A a, B b, C c, D d);
zip!(5, Zip5, Parts5; A a, B b, C c, D d, E e);
zip!(6, Zip6, Parts6; A a, B b, C c, D d, E e, F f);
zip!(7, Zip7, Parts7; A a, B b, C c, D d, E e, F f, G g);
zip!(8, Zip8, Parts8; A a, B b, C c, D d, E e, F f, G g, H h);

/// A source whose items are mapped, and the results written, on their way into a reduction: *map-out*.
///
/// The reduction is of the items as they were; let the operator be a [`Map`](warpfold_monoid::Map) with the same function
/// to reduce the results.
#[repr(C, packed)]
#[derive(Clone, Copy, Debug)]
pub struct MapOut<S, F, D> {
    // Addresses first: behind parameters of four bytes they would not be aligned.
    source: S,
    sink: D,
    map: F,
}

impl<S: Source, F: MapFn<From = S::Item>, D: Sink<Item = F::To>> MapOut<S, F, D> {
    /// Writes what `map` makes of the items of `source` to `sink`.
    pub const fn new(source: S, map: F, sink: D) -> Self {
        MapOut { source, sink, map }
    }
}

// SAFETY: repr(C, packed), plain parts: no padding.
unsafe impl<S: Plain, F: Plain, D: Plain> Plain for MapOut<S, F, D> {
    const LAYOUT: u64 =
        fingerprint(&[size_of::<S>() as u64, S::LAYOUT, size_of::<D>() as u64, D::LAYOUT, F::LAYOUT]);
}

impl<S: Source, F: MapFn<From = S::Item>, D: Sink<Item = F::To>> Source for MapOut<S, F, D> {
    type Item = S::Item;
    const PER_SEGMENT: bool = S::PER_SEGMENT || F::PER_SEGMENT || D::PER_SEGMENT;
    #[inline(always)]
    fn for_segment(&self, k: u64) -> Self {
        let MapOut { source, sink, map } = *self;
        MapOut { source: source.for_segment(k), sink: sink.for_segment(k), map: map.for_segment(k) }
    }
    #[inline(always)]
    unsafe fn get(&self, index: u64) -> S::Item {
        let MapOut { source, sink, map } = *self;
        // SAFETY: the caller's promise.
        let item = unsafe { source.get(index) };
        // SAFETY: the caller's promise; each item is asked for once.
        unsafe { sink.put(index, map.map(item, index)) };
        item
    }
}

/// An operator over a source: an operator over [`Position`]s.
///
/// The canonical tree is that of items of no size (vectors of one), so bits may differ from those of the same items in
/// one array.
#[repr(C, packed)]
#[derive(Clone, Copy, Debug)]
pub struct Over<Op, S> {
    // Addresses first: behind parameters of four bytes they would not be aligned.
    source: S,
    op: Op,
}

impl<Op: Monoid, S: Source<Item = Op::Item>> Over<Op, S> {
    /// `op` over what `source` reads.
    ///
    /// # Safety
    ///
    /// Whenever this is reduced, over `n` positions, the source's arrays have at least `n` items, in memory of the
    /// reducing backend, which nothing writes meanwhile; and nothing else uses those that it writes. The same holds of
    /// every index that `lift`, `push` and `fold_many` are called with.
    pub const unsafe fn new(op: Op, source: S) -> Self {
        Over { source, op }
    }
}

// SAFETY: repr(C, packed), plain parts: no padding.
unsafe impl<Op: Plain, S: Plain> Plain for Over<Op, S> {
    const LAYOUT: u64 = fingerprint(&[size_of::<S>() as u64, S::LAYOUT, Op::LAYOUT]);
}

impl<Op: Monoid, S: Source<Item = Op::Item>> Monoid for Over<Op, S> {
    type Item = Position;
    type Acc = Op::Acc;
    type Output = Op::Output;
    type Empty = Op::Empty;
    const COMMUTATIVE: bool = Op::COMMUTATIVE;
    const ANY_ORDER: bool = Op::ANY_ORDER;
    const AT_ONCE: usize = S::AT_ONCE;
    const LANE_BYTES: usize = Op::LANE_BYTES;
    const PER_SEGMENT: bool = Op::PER_SEGMENT || S::PER_SEGMENT;
    #[inline(always)]
    fn for_segment(&self, k: u64) -> Self {
        let Over { op, source } = *self;
        Over { op: op.for_segment(k), source: source.for_segment(k) }
    }
    #[inline(always)]
    fn identity(&self) -> Op::Acc {
        let Over { op, .. } = *self;
        op.identity()
    }
    #[inline(always)]
    fn lift(&self, _: Position, index: u64) -> Op::Acc {
        let Over { op, source } = *self;
        // SAFETY: promised when this was made.
        op.lift(unsafe { source.get(index) }, index)
    }
    #[inline(always)]
    fn combine(&self, left: Op::Acc, right: Op::Acc) -> Op::Acc {
        let Over { op, .. } = *self;
        op.combine(left, right)
    }
    #[inline(always)]
    fn push(&self, acc: Op::Acc, _: Position, index: u64) -> Op::Acc {
        let Over { op, source } = *self;
        // SAFETY: promised when this was made.
        op.push(acc, unsafe { source.get(index) }, index)
    }
    #[inline(always)]
    fn fold_rows<const V: usize, const U: usize>(
        &self,
        lanes: Option<[Op::Acc; V]>,
        _: [[Position; V]; U],
        index: u64,
        stride: u64,
    ) -> [Op::Acc; V] {
        let Over { op, source } = *self;
        // All are asked for before the first is used.
        if V > 1 && source.has_vector::<V>(index) && stride.is_multiple_of(V as u64) {
            // SAFETY: promised when this was made; each item is asked for once, and whole vectors lie apart.
            let rows = core::array::from_fn(|u| unsafe { source.get_vector::<V>(index + u as u64 * stride) });
            return op.fold_rows::<V, U>(lanes, rows, index, stride);
        }
        // SAFETY: promised when this was made; each item is asked for once.
        let item = |place: u64| unsafe { source.get(index + place) };
        if V == 1 || !U.is_multiple_of(FEW_ROWS) {
            let rows = core::array::from_fn(|u| core::array::from_fn(|i| item(u as u64 * stride + i as u64)));
            return op.fold_rows::<V, U>(lanes, rows, index, stride);
        }
        // A few at once.
        let rows = |u: u64| {
            core::array::from_fn(|k| core::array::from_fn(|i| item((u + k as u64) * stride + i as u64)))
        };
        let mut lanes = op.fold_rows::<V, FEW_ROWS>(lanes, rows(0), index, stride);
        let (mut u, end) = (FEW_ROWS as u64, opaque(U as u32) as u64);
        while u < end {
            nounroll();
            lanes = op.fold_rows::<V, FEW_ROWS>(Some(lanes), rows(u), index + u * stride, stride);
            u += FEW_ROWS as u64;
        }
        lanes
    }
    #[inline(always)]
    fn fold_vectors<const N: usize, const U: usize>(
        &self,
        _: [[Position; N]; U],
        count: u32,
        index: u64,
        stride: u64,
    ) -> Op::Acc {
        let Over { op, source } = *self;
        if count == U as u32 && source.has_vector::<N>(index) {
            // All are asked for before the first is used.
            // SAFETY: promised when this was made; each item is asked for once, and whole vectors lie apart.
            let vectors =
                core::array::from_fn(|u| unsafe { source.get_vector::<N>(index + u as u64 * stride) });
            return op.fold_vectors::<N, U>(vectors, count, index, stride);
        }
        let value = |u: u32| {
            let index = index + u as u64 * stride;
            // SAFETY: promised when this was made; each item is asked for once.
            op.fold_many(unsafe { source.get_many::<N>(index) }, index)
        };
        // Seldom, and so in little code.
        let (mut acc, mut u, end) = (value(0), 1, opaque(count));
        while u < end {
            nounroll();
            acc = op.combine(acc, value(u));
            u += 1;
        }
        acc
    }
    #[inline(always)]
    fn fold_many<const N: usize>(&self, _: [Position; N], index: u64) -> Op::Acc {
        let Over { op, source } = *self;
        // SAFETY: promised when this was made; each item is asked for once.
        op.fold_many(unsafe { source.get_many::<N>(index) }, index)
    }
    #[inline(always)]
    fn finish(&self, acc: Op::Acc) -> Op::Output {
        let Over { op, .. } = *self;
        op.finish(acc)
    }
    #[inline(always)]
    fn finish_empty(&self) -> Op::Output {
        let Over { op, .. } = *self;
        op.finish_empty()
    }
}

/// The same operator with a start value that lies in memory, such as an earlier reduction left there: it stands before
/// all items, is read when the reduction ends, and is combined exactly once.
///
/// [`WithInitial`](warpfold_monoid::WithInitial) is for a start value that the host knows. As there, a reduction of
/// nothing is the start value.
///
/// ```
/// use warpfold_gpu_kernels::source::{Array, InitialAt};
/// use warpfold_monoid::{Sum, tree};
///
/// let start = [40_u32];
/// let start = Array::at(start.as_ptr().expose_provenance() as u64);
/// // SAFETY: `start` outlives the reduction.
/// let op = unsafe { InitialAt::new(Sum::<u32>::new(), start) };
/// assert_eq!(tree::reduce(&op, &[1, 1]), 42);
/// ```
#[repr(C, packed)]
#[derive(Clone, Copy)]
pub struct InitialAt<Op: Monoid> {
    initial: Array<Op::Acc>,
    op: Op,
}

impl<Op: Monoid> core::fmt::Debug for InitialAt<Op> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let InitialAt { initial, .. } = *self;
        f.debug_struct("InitialAt").field("initial", &initial).finish_non_exhaustive()
    }
}

impl<Op: Monoid> InitialAt<Op> {
    /// `op`, starting from the accumulator at the beginning of `initial`.
    ///
    /// # Safety
    ///
    /// Whenever this is reduced, an accumulator lies there, in memory of the reducing backend and aligned; if it is
    /// written on the device, then by work that the reduction comes after.
    pub const unsafe fn new(op: Op, initial: Array<Op::Acc>) -> Self {
        InitialAt { initial, op }
    }

    #[inline(always)]
    fn parts(&self) -> (Op, Op::Acc) {
        let InitialAt { initial, op } = *self;
        // SAFETY: promised when this was made.
        (op, unsafe { initial.get(0) })
    }
}

// SAFETY: repr(C, packed), plain parts: no padding.
unsafe impl<Op: Monoid> Plain for InitialAt<Op> {
    const LAYOUT: u64 = fingerprint(&[Op::Acc::LAYOUT, Op::LAYOUT]);
}

impl<Op: Monoid> Monoid for InitialAt<Op> {
    type Item = Op::Item;
    type Acc = Op::Acc;
    type Output = Op::Output;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = Op::COMMUTATIVE;
    const ANY_ORDER: bool = Op::ANY_ORDER;
    const PER_SEGMENT: bool = Op::PER_SEGMENT;
    #[inline(always)]
    fn for_segment(&self, k: u64) -> Self {
        let InitialAt { op, initial } = *self;
        InitialAt { op: op.for_segment(k), initial }
    }
    #[inline(always)]
    fn identity(&self) -> Op::Acc {
        let InitialAt { op, .. } = *self;
        op.identity()
    }
    #[inline(always)]
    fn lift(&self, item: Op::Item, index: u64) -> Op::Acc {
        let InitialAt { op, .. } = *self;
        op.lift(item, index)
    }
    #[inline(always)]
    fn combine(&self, left: Op::Acc, right: Op::Acc) -> Op::Acc {
        let InitialAt { op, .. } = *self;
        op.combine(left, right)
    }
    #[inline(always)]
    fn push(&self, acc: Op::Acc, item: Op::Item, index: u64) -> Op::Acc {
        let InitialAt { op, .. } = *self;
        op.push(acc, item, index)
    }
    #[inline(always)]
    fn fold_many<const N: usize>(&self, items: [Op::Item; N], index: u64) -> Op::Acc {
        let InitialAt { op, .. } = *self;
        op.fold_many(items, index)
    }
    #[inline(always)]
    fn finish(&self, acc: Op::Acc) -> Op::Output {
        let (op, initial) = self.parts();
        op.finish(op.combine(initial, acc))
    }
    #[inline(always)]
    fn finish_empty(&self) -> Op::Output {
        let (op, initial) = self.parts();
        op.finish(initial)
    }
}
