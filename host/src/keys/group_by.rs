//! Group by: runs wherever they stand.

use std::{borrow::Cow, collections::HashMap, fmt, hash::Hash};

use warpfold_gpu_kernels::sort::{self, kind};
use warpfold_monoid::{
    Monoid, Plain,
    keyed::{Equal, Runs},
};

#[cfg(feature = "cuda")]
use super::by_tag::placed;
use super::{by_key::Place, by_tag::same_lengths};
#[cfg(feature = "cuda")]
use crate::cuda::{DeviceArray, DeviceView, From};
use crate::{Engine, Error, Input, cpu, segments::side_by_side, sim::SortSimulator};

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

    /// As kernels have such keys, if they sort them.
    #[doc(hidden)]
    fn plain(_keys: &[Self]) -> Option<PlainKeys<'_>> {
        None
    }
    /// The key of what they have sorted.
    #[doc(hidden)]
    fn of_native(_bits: u64) -> Option<Self> {
        None
    }
    /// Do kernels have 8 bytes for it?
    #[doc(hidden)]
    const LONG: bool = false;
    /// The key that stands for all that are equal to it, if one does.
    #[doc(hidden)]
    fn canonical(&self) -> Self {
        self.clone()
    }
}

/// Keys as kernels sort them.
#[doc(hidden)]
#[derive(Debug)]
pub enum PlainKeys<'a> {
    /// 4 bytes, and of which [`kind`].
    Words(Cow<'a, [u32]>, u32),
    /// 8 bytes.
    Longs(Cow<'a, [u64]>, u32),
}

/// The bits of keys as reductions by key have them.
pub(crate) trait RunKey: sort::Key {
    /// Integers of as many bits.
    type Run: Plain + PartialEq;
    fn run(number: usize) -> Self::Run;
    fn runs(keys: &[Self]) -> &[Self::Run];
    fn of_runs(runs: Vec<Self::Run>) -> Vec<Self>;
    fn widened(self) -> u64;
}

macro_rules! run_keys {
    ($($bits:ty: $run:ty;)*) => {$(
        impl RunKey for $bits {
            type Run = $run;
            fn run(number: usize) -> $run {
                number as $run
            }
            fn runs(keys: &[$bits]) -> &[$run] {
                cast(keys)
            }
            fn of_runs(runs: Vec<$run>) -> Vec<$bits> {
                runs.into_iter().map(|run| run as $bits).collect()
            }
            fn widened(self) -> u64 {
                self as u64
            }
        }
    )*};
}
run_keys! { u32: i32; u64: i64; }

/// The same bits as another type of that size.
fn cast<T: Plain, U: Plain>(items: &[T]) -> &[U] {
    const { assert!(size_of::<T>() == size_of::<U>() && align_of::<T>() >= align_of::<U>()) };
    // SAFETY: as many, no more aligned; any bits are a value of the numbers for which it is called.
    unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), items.len()) }
}

macro_rules! plain_keys {
    ($($type:ty: $keys:ident, $kind:ident, $long:literal, |$all:ident| $plain:expr, |$bits:ident| $native:expr;)*) => {$(
        impl GroupKey for $type {
            type Id<'a> = $type;
            #[inline]
            fn id(&self) -> $type { *self }
            fn plain($all: &[Self]) -> Option<PlainKeys<'_>> {
                Some(PlainKeys::$keys($plain, kind::$kind))
            }
            fn of_native($bits: u64) -> Option<Self> { $native }
            const LONG: bool = $long;
        }
    )*};
}
plain_keys! {
    u8: Words, UNSIGNED, false, |keys| keys.iter().map(|&key| key.into()).collect(), |bits| Some(bits as u8);
    u16: Words, UNSIGNED, false, |keys| keys.iter().map(|&key| key.into()).collect(), |bits| Some(bits as u16);
    u32: Words, UNSIGNED, false, |keys| keys.into(), |bits| Some(bits as u32);
    i8: Words, SIGNED, false, |keys| keys.iter().map(|&key| key as u32).collect(), |bits| Some(bits as i8);
    i16: Words, SIGNED, false, |keys| keys.iter().map(|&key| key as u32).collect(), |bits| Some(bits as i16);
    i32: Words, SIGNED, false, |keys| cast(keys).into(), |bits| Some(bits as i32);
    bool: Words, UNSIGNED, false, |keys| keys.iter().map(|&key| key.into()).collect(), |bits| Some(bits != 0);
    char: Words, UNSIGNED, false, |keys| keys.iter().map(|&key| key.into()).collect(), |bits| char::from_u32(bits as u32);
    u64: Longs, UNSIGNED, true, |keys| keys.into(), |bits| Some(bits);
    i64: Longs, SIGNED, true, |keys| cast(keys).into(), |bits| Some(bits as i64);
    usize: Longs, UNSIGNED, true, |keys| keys.iter().map(|&key| key as u64).collect(), |bits| Some(bits as usize);
    isize: Longs, SIGNED, true, |keys| keys.iter().map(|&key| key as u64).collect(), |bits| Some(bits as isize);
}

macro_rules! wide_keys {
    ($($type:ty)*) => {$(
        impl GroupKey for $type {
            type Id<'a> = $type;
            #[inline]
            fn id(&self) -> $type { *self }
        }
    )*};
}
wide_keys! { u128 i128 }

/// Floats in their order: zeros of both signs are one group, and so are all NaNs, which come last. Its key is a positive zero, or NaN.
macro_rules! float_keys {
    ($($type:ty, $bits:ty, $keys:ident, $long:literal;)*) => {$(
        impl GroupKey for $type {
            type Id<'a> = $bits;
            #[inline]
            fn id(&self) -> $bits {
                sort::Key::ordered(self.to_bits(), kind::FLOAT)
            }
            fn plain(keys: &[Self]) -> Option<PlainKeys<'_>> {
                Some(PlainKeys::$keys(cast(keys).into(), kind::FLOAT))
            }
            fn of_native(bits: u64) -> Option<Self> {
                Some(<$type>::from_bits(bits as $bits))
            }
            const LONG: bool = $long;
            fn canonical(&self) -> Self {
                <$type>::from_bits(sort::Key::native(self.id(), kind::FLOAT))
            }
        }
    )*};
}
float_keys! { f32, u32, Words, false; f64, u64, Longs, true; }

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

/// Keys of a group-by: slices, vectors and arrays in host memory, of any [`GroupKey`]; and device memory, of integers and floats of 4 or
/// 8 bytes ([`DeviceKey`]).
pub trait GroupInput {
    /// What they are.
    type Key: GroupKey;
    /// Where they are.
    #[doc(hidden)]
    fn group_keys(&self) -> GroupKeys<'_, Self::Key>;
}

/// Where keys are.
#[doc(hidden)]
#[derive(Debug)]
pub enum GroupKeys<'a, K> {
    /// In host memory.
    Host(&'a [K]),
    /// At an address of a device, so many.
    Device {
        /// Where the first is.
        address: u64,
        /// How many.
        len: u64,
        /// Of which [`kind`].
        kind: u32,
    },
}

impl<K> GroupKeys<'_, K> {
    fn len(&self) -> u64 {
        match *self {
            GroupKeys::Host(keys) => keys.len() as u64,
            GroupKeys::Device { len, .. } => len,
        }
    }
}

impl<K: GroupKey> GroupInput for [K] {
    type Key = K;
    fn group_keys(&self) -> GroupKeys<'_, K> {
        GroupKeys::Host(self)
    }
}

impl<K: GroupKey> GroupInput for Vec<K> {
    type Key = K;
    fn group_keys(&self) -> GroupKeys<'_, K> {
        GroupKeys::Host(self)
    }
}

impl<K: GroupKey, const N: usize> GroupInput for [K; N] {
    type Key = K;
    fn group_keys(&self) -> GroupKeys<'_, K> {
        GroupKeys::Host(self)
    }
}

/// A key that may lie in device memory: an integer or a float of 4 or 8 bytes.
///
/// Sealed: kernels know these.
pub trait DeviceKey: GroupKey + Plain + sealed::Sealed {
    /// What kernels call it.
    #[doc(hidden)]
    const KIND: u32;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! device_keys {
    ($($type:ty: $kind:ident;)*) => {$(
        impl sealed::Sealed for $type {}
        impl DeviceKey for $type {
            const KIND: u32 = kind::$kind;
        }
    )*};
}
device_keys! { u32: UNSIGNED; u64: UNSIGNED; i32: SIGNED; i64: SIGNED; f32: FLOAT; f64: FLOAT; }

#[cfg(feature = "cuda")]
impl<K: DeviceKey> GroupInput for DeviceView<'_, K> {
    type Key = K;
    fn group_keys(&self) -> GroupKeys<'_, K> {
        GroupKeys::Device { address: self.address(), len: self.len(), kind: K::KIND }
    }
}

#[cfg(feature = "cuda")]
impl<K: DeviceKey> GroupInput for DeviceArray<K> {
    type Key = K;
    fn group_keys(&self) -> GroupKeys<'_, K> {
        GroupKeys::Device { address: self.view().address(), len: self.view().len(), kind: K::KIND }
    }
}

/// The groups of a group-by: a key for each, and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups<K, V> {
    /// That of each group's first item; of floats a positive zero for zeros of both signs, and one NaN for all.
    pub keys: Vec<K>,
    /// As many results.
    pub values: Vec<V>,
}

/// What travels with the keys as they are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Travels {
    /// Values of 4 bytes.
    Word,
    /// Values of 8.
    Long,
    /// The items' positions, by which values are then brought into order.
    Position,
}

impl Travels {
    pub(crate) fn of<Op: Monoid>(asks_firsts: bool) -> Travels {
        let (size, align) = (size_of::<Op::Item>(), align_of::<Op::Item>());
        match (size, align) {
            (4, 4) if !Op::USES_INDEX && !asks_firsts => Travels::Word,
            (8, 8) if !Op::USES_INDEX && !asks_firsts => Travels::Long,
            _ => Travels::Position,
        }
    }
}

/// Groups in the order of their keys, with the position of each one's first item if they were asked for.
#[derive(Debug)]
pub(crate) struct Found<K, V> {
    pub(crate) keys: Vec<K>,
    pub(crate) values: Vec<V>,
    pub(crate) firsts: Vec<u32>,
}

/// Reduces items that have equal keys, wherever they stand, with one operator on one engine. Cheap to clone, usable from any thread.
///
/// Made by [`Engine::group_by`]. The result of a group is that of its run in a [reduction by key](crate::KeyReducer) of all pairs, sorted
/// by their keys, those with equal keys in the order in which they stand: so the operator need not commute. The index that it is told is
/// the item's position in the array as it is given.
///
/// On a GPU integers, `bool`, `char` and floats are sorted there; keys of other types, and of 16 bytes, are numbered and brought into order on the
/// host, whose hash table the CPU works with too. No bits depend on it.
#[derive(Clone)]
pub struct GroupReducer<Op: Monoid> {
    engine: Engine,
    op: Op,
    sorted: bool,
}

impl<Op: Monoid> fmt::Debug for GroupReducer<Op> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupReducer<{}> on {}", std::any::type_name::<Op>(), self.engine().backend())
    }
}

impl<Op: Monoid> GroupReducer<Op> {
    pub(crate) fn new(engine: Engine, op: Op) -> Self {
        GroupReducer { engine, op, sorted: false }
    }

    /// The same with the groups in the order of their keys, instead of that in which they are first seen. On a GPU it takes less time.
    #[must_use = "the reducer itself does not change"]
    pub fn sorted(&self) -> Self {
        GroupReducer { sorted: true, ..self.clone() }
    }

    /// The operator.
    pub fn operator(&self) -> &Op {
        &self.op
    }

    /// The engine that it runs on.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Reduces each group of an array, and waits for the results.
    ///
    /// # Errors
    ///
    /// [`Error::ColumnLengths`] if there are not as many keys as values, [`Error::HostMemory`]; [`Error::NeedsCuda`] for device
    /// memory on the host. On a GPU and in the simulator [`Error::NoKernel`] if no kernels are loaded for reductions by key of the operator
    /// and `i64`, if keys are of 8 bytes, or else `i32`; [`Error::TooManyToSort`] from 2^32 items on; [`Error::GridTooLarge`],
    /// [`Error::BlockTooLarge`], [`Error::Simulator`], or what the driver says.
    pub fn reduce<I, V>(&self, keys: &I, values: &V) -> Result<Groups<I::Key, Op::Output>, Error>
    where
        I: GroupInput + ?Sized,
        V: Input<Op::Item> + ?Sized,
    {
        let keys = keys.group_keys();
        same_lengths(keys.len(), values.source()?.count())?;
        let keys = match keys {
            GroupKeys::Host(keys) => keys,
            #[cfg(feature = "cuda")]
            GroupKeys::Device { address, len, kind } if self.engine.gpu("device memory").is_ok() => {
                return if I::Key::LONG {
                    self.launched(kind, From::<u64>::Device(address, len), values)
                } else {
                    self.launched(kind, From::<u32>::Device(address, len), values)
                };
            }
            GroupKeys::Device { .. } => return Err(Error::NeedsCuda { what: "device memory" }),
        };
        let plain = if self.engine.sorts() { GroupKey::plain(keys) } else { None };
        let groups = match plain {
            Some(PlainKeys::Words(keys, kind)) => self.sorted_there(kind, &keys[..], values),
            Some(PlainKeys::Longs(keys, kind)) => self.sorted_there(kind, &keys[..], values),
            None if I::Key::LONG => self.sorted_here::<u64, _, _>(keys, values),
            None => self.sorted_here::<u32, _, _>(keys, values),
        };
        match groups {
            // More than fits into the device's memory; the bits are the same.
            Err(Error::DeviceMemory { .. }) => {
                GroupReducer { engine: Engine::cpu(), ..self.clone() }.reduce(keys, values)
            }
            groups => groups,
        }
    }

    /// By kernels that sort.
    fn sorted_there<B: RunKey, K: GroupKey, V: Input<Op::Item> + ?Sized>(
        &self,
        kind: u32,
        keys: &[B],
        values: &V,
    ) -> Result<Groups<K, Op::Output>, Error> {
        let travels = Travels::of::<Op>(!self.sorted);
        let Place::Sim(runs) = self.engine.run_place::<B::Run, Op>()? else {
            #[cfg(feature = "cuda")]
            return self.launched(kind, From::Host(keys), values);
            #[cfg(not(feature = "cuda"))]
            return Err(Error::CudaNotBuilt);
        };
        let mut copy = Vec::new();
        let values = side_by_side(values, &mut copy)?;
        let op = Runs::new(Equal, self.op);
        let found = match travels {
            Travels::Position => {
                let sort: SortSimulator = self.engine.sort_simulator::<B, u32>()?;
                let (keys, index) = sort.sort::<B, u32>(kind, keys, None)?;
                let values = sort.gather(values, &index)?;
                let indices = Op::USES_INDEX.then_some(&index[..]);
                let found = runs.reduce(op, B::runs(&keys), &values, indices)?;
                let groups = B::of_runs(found.keys);
                let firsts =
                    if self.sorted { Vec::new() } else { sort.firsts(kind, (&keys, &index), &groups)? };
                Found { keys: groups, values: found.values, firsts }
            }
            Travels::Word => self.simulated::<B, u32>(kind, keys, values)?,
            Travels::Long => self.simulated::<B, u64>(kind, keys, values)?,
        };
        self.groups(found)
    }

    /// In the simulator, where values travel with keys.
    fn simulated<B: RunKey, P: sort::Payload>(
        &self,
        kind: u32,
        keys: &[B],
        values: &[Op::Item],
    ) -> Result<Found<B, Op::Output>, Error> {
        let Place::Sim(runs) = self.engine.run_place::<B::Run, Op>()? else {
            return Err(Error::NeedsCuda { what: "sorting on a device" });
        };
        let sort = self.engine.sort_simulator::<B, P>()?;
        // SAFETY: as large and as aligned as the payload; plain data has no uninitialised byte.
        let values = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<P>(), values.len()) };
        let (keys, values) = sort.sort(kind, keys, Some(values))?;
        // SAFETY: the values that were given, in another order.
        let values = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<Op::Item>(), values.len()) };
        let found = runs.reduce(Runs::new(Equal, self.op), B::runs(&keys), values, None)?;
        Ok(Found { keys: B::of_runs(found.keys), values: found.values, firsts: Vec::new() })
    }

    /// On a GPU.
    #[cfg(feature = "cuda")]
    fn launched<B: RunKey, K: GroupKey, V: Input<Op::Item> + ?Sized>(
        &self,
        kind: u32,
        keys: From<'_, B>,
        values: &V,
    ) -> Result<Groups<K, Op::Output>, Error> {
        let mut copy = Vec::new();
        let values = placed(values, &mut copy)?;
        self.engine.check_device_bytes((keys.copied() + values.copied()) as u64)?;
        let launcher = self.engine.group_launcher::<B, Op>(Travels::of::<Op>(!self.sorted))?;
        // SAFETY: borrowed until the call returns, which waits.
        let found = unsafe { launcher.reduce(self.op, kind, keys, values, !self.sorted)? };
        self.groups(found)
    }

    /// The groups in the order that is asked for, of what has been found in that of the keys.
    fn groups<B: RunKey, K: GroupKey>(
        &self,
        found: Found<B, Op::Output>,
    ) -> Result<Groups<K, Op::Output>, Error> {
        // All bits that come back went in as keys.
        let keys: Vec<K> = found.keys.iter().filter_map(|bits| K::of_native(bits.widened())).collect();
        if self.sorted {
            return Ok(Groups { keys, values: found.values });
        }
        Ok(first_seen(keys, found.values, &found.firsts))
    }

    /// By numbers that the host gives to groups.
    fn sorted_here<B: RunKey, K: GroupKey, V: Input<Op::Item> + ?Sized>(
        &self,
        keys: &[K],
        values: &V,
    ) -> Result<Groups<K, Op::Output>, Error> {
        let mut copy = Vec::new();
        let values = side_by_side(values, &mut copy)?;
        let mut groups = grouped(keys)?;
        groups.sort(keys);
        let order = groups.order()?;
        let mut in_order = space(values.len())?;
        in_order.extend(order.iter().map(|&i| values[i]));
        let mut runs: Vec<B::Run> = space(values.len())?;
        runs.extend(order.iter().map(|&i| B::run(groups.group[i])));
        let values = self.reduce_runs(&runs, &in_order, &order)?;
        let keys = groups.first.iter().map(|&i| keys[i].canonical()).collect();
        if self.sorted {
            return Ok(Groups { keys, values });
        }
        Ok(first_seen(keys, values, &groups.first))
    }

    /// Reduces runs of items that stand in that order.
    fn reduce_runs<R: Plain + PartialEq>(
        &self,
        runs: &[R],
        values: &[Op::Item],
        order: &[usize],
    ) -> Result<Vec<Op::Output>, Error> {
        let narrow = || {
            let limit = u32::MAX as u64;
            if order.len() as u64 > limit {
                return Err(Error::TooManyToSort { items: order.len() as u64, limit });
            }
            Ok(Op::USES_INDEX.then(|| order.iter().map(|&i| i as u32).collect::<Vec<u32>>()))
        };
        let op = Runs::new(Equal, self.op);
        Ok(match self.engine.run_place::<R, Op>()? {
            Place::Cpu => cpu::runs::reduce(Equal, self.op, runs, values, Some(order))?.1,
            Place::Sim(simulator) => simulator.reduce(op, runs, values, narrow()?.as_deref())?.values,
            #[cfg(feature = "cuda")]
            Place::Cuda(launcher) => {
                let (runs, values) = (From::Host(runs), From::Host(values));
                // SAFETY: borrowed until the call returns, which waits.
                unsafe { launcher.reduce(op, runs, values, narrow()?.as_deref())? }.values
            }
        })
    }
}

/// Groups in the order of their first items.
fn first_seen<K: Clone, V: Copy, P: Copy + Ord>(keys: Vec<K>, values: Vec<V>, firsts: &[P]) -> Groups<K, V> {
    let mut order: Vec<usize> = (0..firsts.len()).collect();
    order.sort_unstable_by_key(|&group| firsts[group]);
    Groups {
        keys: order.iter().map(|&group| keys[group].clone()).collect(),
        values: order.iter().map(|&group| values[group]).collect(),
    }
}

/// Which items are grouped.
pub(super) struct Grouped {
    /// The group of each item.
    group: Vec<usize>,
    /// The first item of each group.
    first: Vec<usize>,
    /// How many items each has.
    lengths: Vec<u64>,
}

/// Groups numbered as they are first seen.
pub(super) fn grouped<K: GroupKey>(keys: &[K]) -> Result<Grouped, Error> {
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
    pub(super) fn sort<K: GroupKey>(&mut self, keys: &[K]) {
        let mut order: Vec<usize> = (0..self.first.len()).collect();
        order.sort_by(|&a, &b| keys[self.first[a]].id().cmp(&keys[self.first[b]].id()));
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(to, &from)| place[from] = to);
        self.group.iter_mut().for_each(|group| *group = place[*group]);
        self.first = order.iter().map(|&from| self.first[from]).collect();
        self.lengths = order.iter().map(|&from| self.lengths[from]).collect();
    }

    /// Which items stand where, group by group, each group's in the order in which they stand.
    pub(super) fn order(&self) -> Result<Vec<usize>, Error> {
        let mut next = Vec::with_capacity(self.lengths.len());
        let mut at = 0;
        for length in &self.lengths {
            next.push(at);
            at += *length as usize;
        }
        let mut order = space(self.group.len())?;
        order.resize(self.group.len(), 0);
        for (i, &group) in self.group.iter().enumerate() {
            order[next[group]] = i;
            next[group] += 1;
        }
        Ok(order)
    }
}

/// A vector with room for so many.
pub(super) fn space<T>(len: usize) -> Result<Vec<T>, Error> {
    let mut vector = Vec::new();
    let needed = len.saturating_mul(size_of::<T>()) as u64;
    vector.try_reserve_exact(len).map_err(|_| Error::HostMemory { needed })?;
    Ok(vector)
}
