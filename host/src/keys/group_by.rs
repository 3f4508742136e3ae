//! Group by: runs wherever they stand.

use std::{collections::HashMap, fmt, hash::Hash};

use warpfold_monoid::{Monoid, Plain};

use super::by_tag::same_lengths;
use crate::{Engine, Error, Input, SegmentPlan, SegmentReducer, segments::side_by_side};

/// What items are grouped by: integers, `bool`, `char`, floats, strings, pairs and arrays of them; one's own types by naming what
/// tells them apart.
///
/// ```
/// use warpfold_host::keys::GroupKey;
///
/// #[derive(Clone)]
/// struct Station { country: String, number: u32, height: f32 }
///
/// impl GroupKey for Station {
///     type Id<'a> = (&'a str, u32);
///     fn id(&self) -> (&str, u32) { (&self.country, self.number) }
/// }
/// ```
pub trait GroupKey: Clone {
    /// What tells groups apart, and in which order they are [sorted](GroupReducer::sorted).
    type Id<'a>: Hash + Ord + Clone
    where
        Self: 'a;
    /// That of a key.
    fn id(&self) -> Self::Id<'_>;
}

macro_rules! plain_keys {
    ($($type:ty)*) => {$(
        impl GroupKey for $type {
            type Id<'a> = $type;
            #[inline]
            fn id(&self) -> $type { *self }
        }
    )*};
}
plain_keys! { u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize bool char }

/// Floats in their order: zeros of both signs are one group, and so are all NaNs, which come last.
macro_rules! float_keys {
    ($($type:ty, $bits:ty;)*) => {$(
        impl GroupKey for $type {
            type Id<'a> = $bits;
            #[inline]
            fn id(&self) -> $bits {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                let bits = if self.is_nan() { <$type>::NAN.to_bits() & !SIGN } else { (*self + 0.0).to_bits() };
                if bits & SIGN == 0 { bits | SIGN } else { !bits }
            }
        }
    )*};
}
float_keys! { f32, u32; f64, u64; }

impl GroupKey for String {
    type Id<'a> = &'a str;
    fn id(&self) -> &str {
        self
    }
}

impl GroupKey for &str {
    type Id<'a>
        = &'a str
    where
        Self: 'a;
    fn id(&self) -> &str {
        self
    }
}

impl<A: GroupKey, B: GroupKey> GroupKey for (A, B) {
    type Id<'a>
        = (A::Id<'a>, B::Id<'a>)
    where
        Self: 'a;
    fn id(&self) -> Self::Id<'_> {
        (self.0.id(), self.1.id())
    }
}

impl<T: GroupKey, const N: usize> GroupKey for [T; N] {
    type Id<'a>
        = [T::Id<'a>; N]
    where
        Self: 'a;
    fn id(&self) -> Self::Id<'_> {
        std::array::from_fn(|k| self[k].id())
    }
}

/// The groups of a group-by: the first key of each, and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups<K, V> {
    /// A key for each group.
    pub keys: Vec<K>,
    /// As many results.
    pub values: Vec<V>,
}

/// Reduces items that have equal keys, wherever they stand, with one operator on one engine. Cheap to clone, usable from any thread.
///
/// Made by [`Engine::group_by`]. A group's result has the bits of a reduction of its items alone, in the order in which they stand
/// in the array: so the operator need not commute, and its index is the item's position in the group.
///
/// The host finds the groups, by a hash table, and brings the values into their order; the engine reduces them as
/// [segments](SegmentReducer).
#[derive(Clone)]
pub struct GroupReducer<Op: Monoid> {
    segments: SegmentReducer<Op>,
    sorted: bool,
}

impl<Op: Monoid> fmt::Debug for GroupReducer<Op> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupReducer<{}> on {}", std::any::type_name::<Op>(), self.engine().backend())
    }
}

impl<Op: Monoid> GroupReducer<Op> {
    pub(crate) fn new(segments: SegmentReducer<Op>) -> Self {
        GroupReducer { segments, sorted: false }
    }

    /// The same with the groups in the order of their keys, instead of that in which they are first seen.
    #[must_use = "the reducer itself does not change"]
    pub fn sorted(&self) -> Self {
        GroupReducer { sorted: true, ..self.clone() }
    }

    /// The engine that it runs on.
    pub fn engine(&self) -> &Engine {
        self.segments.engine()
    }

    /// Reduces each group of an array, and waits for the results.
    ///
    /// # Errors
    ///
    /// [`Error::ColumnLengths`] if there are not as many keys as values, [`Error::HostMemory`], [`Error::NeedsCuda`] for device memory,
    /// which the host cannot group; and those of [`SegmentReducer::reduce_segments`].
    pub fn reduce<K, V>(&self, keys: &[K], values: &V) -> Result<Groups<K, Op::Output>, Error>
    where
        K: GroupKey,
        V: Input<Op::Item> + ?Sized,
    {
        same_lengths(keys.len() as u64, values.source()?.count())?;
        let mut copy = Vec::new();
        let values = side_by_side(values, &mut copy)?;
        let mut groups = grouped(keys)?;
        if self.sorted {
            groups.sort(keys);
        }
        let values = groups.gathered(values)?;
        let plan = SegmentPlan::from_lengths(&groups.lengths)?;
        let keys = groups.first.iter().map(|&i| keys[i].clone()).collect();
        Ok(Groups { keys, values: self.segments.reduce_segments(&values, &plan)? })
    }
}

/// Which items are grouped.
struct Grouped {
    /// The group of each item.
    group: Vec<usize>,
    /// The first item of each group.
    first: Vec<usize>,
    /// How many items each has.
    lengths: Vec<u64>,
}

/// Groups numbered as they are first seen.
fn grouped<K: GroupKey>(keys: &[K]) -> Result<Grouped, Error> {
    let mut group = space(keys.len())?;
    let (mut first, mut lengths) = (Vec::new(), Vec::<u64>::new());
    let mut numbers = HashMap::new();
    // Neighbours often belong together.
    let mut last: Option<(K::Id<'_>, usize)> = None;
    for (i, key) in keys.iter().enumerate() {
        let id = key.id();
        let number = match last {
            Some((ref before, number)) if *before == id => number,
            _ => {
                let number = *numbers.entry(id.clone()).or_insert_with(|| {
                    first.push(i);
                    lengths.push(0);
                    first.len() - 1
                });
                last = Some((id, number));
                number
            }
        };
        lengths[number] += 1;
        group.push(number);
    }
    Ok(Grouped { group, first, lengths })
}

impl Grouped {
    /// Numbers the groups in the order of their keys instead.
    fn sort<K: GroupKey>(&mut self, keys: &[K]) {
        let mut order: Vec<usize> = (0..self.first.len()).collect();
        order.sort_by(|&a, &b| keys[self.first[a]].id().cmp(&keys[self.first[b]].id()));
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(to, &from)| place[from] = to);
        self.group.iter_mut().for_each(|group| *group = place[*group]);
        self.first = order.iter().map(|&from| self.first[from]).collect();
        self.lengths = order.iter().map(|&from| self.lengths[from]).collect();
    }

    /// The values of the groups side by side, each group's in the order in which they stand.
    fn gathered<T: Plain>(&self, values: &[T]) -> Result<Vec<T>, Error> {
        let mut next = Vec::with_capacity(self.lengths.len());
        let mut at = 0;
        for length in &self.lengths {
            next.push(at);
            at += *length as usize;
        }
        let mut places = space(values.len())?;
        places.resize(values.len(), 0);
        for (i, &group) in self.group.iter().enumerate() {
            places[next[group]] = i;
            next[group] += 1;
        }
        let mut gathered = space(values.len())?;
        gathered.extend(places.iter().map(|&i| values[i]));
        Ok(gathered)
    }
}

/// A vector with room for so many.
fn space<T>(len: usize) -> Result<Vec<T>, Error> {
    let mut vector = Vec::new();
    let needed = len.saturating_mul(size_of::<T>()) as u64;
    vector.try_reserve_exact(len).map_err(|_| Error::HostMemory { needed })?;
    Ok(vector)
}
