//! The order of reductions by tag and by key: which operands combine into which result.
//!
//! # By tag
//!
//! `tags[i] < k` says to which of `k` results item `i` belongs. The order is a function of the number of items, of `k` and of
//! the operator alone: a [`TagShape`].
//!
//! The items are cut into [chunks](TagShape::chunks). Few tags of an operator that commutes have a column for each of [`LANES`]
//! lanes: item `j` of a chunk belongs to lane `j / 4 % 32`, and each lane folds its items of a tag in order,
//! [`lift`](Monoid::lift) for the first and [`push`](Monoid::push) for the rest; then the lanes combine pairwise, neighbours first.
//!
//! Otherwise a chunk is cut into rows of [`LANES`] items. The items of a row that have one tag are lifted and combine pairwise,
//! neighbours first, and the rows' values combine from left to right. So no operand ever stands to the left of one before it.
//!
//! Of a tag, the chunks' values are cut into [runs](TagShape::run), one for each of [`fold_lanes`](TagShape::fold_lanes) lanes,
//! which combine them from left to right; and these lanes combine pairwise, neighbours first.
//!
//! More tags than a warp keeps values of ([`range`](TagShape::range)) are [sorted](TagShape::sorted): the order is that of a reduction
//! by group, by keys of 4 bytes, of the items whose tags are in range. Only a stream's pieces, and arrays that no sort takes, are cut as above, a
//! range of tags at a time.
//!
//! Operators whose bits no order changes ([`ANY_ORDER`](Monoid::ANY_ORDER)), and those that give theirs up ([`Fast`](crate::Fast)), may be
//! combined in another.
//!
//! What is not there, in a lane, a row or a chunk, is skipped: lanes keep their places, and nothing is ever combined with an
//! identity.
//!
//! # By key
//!
//! A run is neighbouring items whose keys are the [same](Equality). The order is that of a [scan](crate::scan) of [`Runs`] over
//! [`RunTiling`]'s strips and tiles, but for its last step: what stands before a strip is combined with what the strip itself has
//! folded, where a run ends that began before, instead of taking the strip's items in one by one. Integers of 1 and 2 bytes are
//! cut as those of 4 are.
//!
//! # By group
//!
//! The pairs are sorted by their keys, stably, and their runs reduced by key: with [`RunTiling`]'s strips and tiles for keys of 8 bytes
//! where the keys are integers or floats of 8 bytes, and of 4 bytes for all others. The index is the item's position before the sort.

use core::{any::TypeId, marker::PhantomData};

use crate::{GivesIdentity, Monoid, Plain, fingerprint, fused::Fused2, tree::vector_len};

/// The threads of a warp.
pub const LANES: u32 = 32;

/// Neighbouring items of one lane, where tags have columns.
pub const TAG_STRIP: u64 = 4;

/// The most tags that have columns.
pub const FEW_TAGS: u64 = 64;

/// Bytes of shared memory in which a block keeps tags' values.
pub const TAG_BYTES: usize = 48 << 10;

/// The most lanes that combine chunks' values.
pub const FOLD_LANES: u32 = 256;

/// The most warps of a block.
const BLOCK_WARPS: usize = 8;

/// Bytes of shared memory that a multiprocessor is thought to have, and what it keeps of them for each block; warps with columns and
/// without, and warps with wide accumulators, for which it has registers; and how many multiprocessors are to have work. A long
/// array has as many chunks: one more than all of them hold at once would take as long as the others together.
const RESIDENT_BYTES: usize = 224 << 10;
const BLOCK_BYTES: usize = 1 << 10;
const RESIDENT_COLUMNS: usize = 24;
const RESIDENT_ROWS: usize = 32;
const RESIDENT_WIDE: usize = 24;
const MULTIPROCESSORS: u64 = 128;

/// Items of a chunk that is not the last, at least.
const LEAST_CHUNK: u64 = 2048;

/// Items that are sorted, at most.
const MOST_SORTED: u64 = u32::MAX as u64;

/// Values of chunks, of all tags, that there are at most, unless one chunk's are more.
const MAX_PARTIALS: u64 = 1 << 22;

/// How a reduction by tag is cut.
///
/// ```
/// use warpfold_monoid::{Sum, keyed::TagShape};
///
/// let few = TagShape::of::<Sum<f32>>(1 << 26, 64);
/// assert_eq!((few.few, few.warps, few.chunks), (true, 3, 1534));
/// let many = TagShape::of::<Sum<f32>>(1 << 26, 4096);
/// assert_eq!((many.few, many.warps, many.chunks), (false, 1, 768));
/// assert!(!many.sorted && TagShape::of::<Sum<f32>>(1 << 26, 1 << 20).sorted);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TagShape {
    /// Items.
    pub n: u64,
    /// Tags.
    pub k: u64,
    /// Are the items of an array sorted by their tags, and their runs reduced? What follows is then how a stream's pieces are cut.
    pub sorted: bool,
    /// Do tags have columns?
    pub few: bool,
    /// Tags whose values one warp keeps: it meets all items once for each so many.
    pub range: u64,
    /// Warps of a block, a chunk each. No bits depend on it.
    pub warps: u32,
    /// Items of a chunk (in all but the last).
    pub chunk: u64,
    /// Chunks; 0 for no items.
    pub chunks: u64,
}

impl TagShape {
    /// That of an operator.
    pub const fn of<Op: Monoid>(n: u64, k: u64) -> TagShape {
        TagShape::new(n, k, size_of::<Op::Acc>(), Op::COMMUTATIVE)
    }

    /// That of operators with accumulators of so many bytes.
    pub const fn new(n: u64, k: u64, acc: usize, commutative: bool) -> TagShape {
        let few = commutative && k <= FEW_TAGS && table_bytes(k, acc, true) <= TAG_BYTES;
        let most_tags = (TAG_BYTES / (acc + 1)) as u64 / LANES as u64 * LANES as u64;
        let range = if few || k < most_tags { if k == 0 { 1 } else { k } } else { most_tags };
        let table = table_bytes(range, acc, few);
        let warps = fit(TAG_BYTES, table, BLOCK_WARPS);
        let most_warps = match (few, acc) {
            (true, _) => RESIDENT_COLUMNS,
            (false, ..=8) => RESIDENT_ROWS,
            (false, _) => RESIDENT_WIDE,
        };
        let resident = warps * fit(RESIDENT_BYTES, warps * table + BLOCK_BYTES, most_warps / warps);
        let most = MAX_PARTIALS / if k == 0 { 1 } else { k };
        let most = if most == 0 { 1 } else { most };
        let wanted = MULTIPROCESSORS * resident as u64;
        let share = n.div_ceil(if wanted < most { wanted } else { most });
        let worth = if 2 * range > LEAST_CHUNK { 2 * range } else { LEAST_CHUNK };
        let row = LANES as u64 * TAG_STRIP;
        let chunk = if share > worth { share } else { worth }.div_ceil(row) * row;
        // What combines runs takes accumulators of whole words.
        let sorted = k > range && n <= MOST_SORTED && acc.is_multiple_of(size_of::<u32>());
        TagShape { n, k, sorted, few, range, warps: warps as u32, chunk, chunks: n.div_ceil(chunk) }
    }

    /// How many times a warp meets a chunk: once for each [range](TagShape::range) of tags.
    pub const fn ranges(&self) -> u64 {
        if self.k <= self.range { 1 } else { self.k.div_ceil(self.range) }
    }

    /// Lanes that combine chunks' values.
    pub const fn fold_lanes(&self) -> u32 {
        if self.chunks > 16 * LANES as u64 { FOLD_LANES } else { LANES }
    }

    /// Neighbouring chunks whose values one lane combines.
    pub const fn run(&self) -> u64 {
        self.chunks.div_ceil(self.fold_lanes() as u64)
    }

    /// The first item of chunk `c`, and the first behind it.
    pub const fn chunk_ends(&self, c: u64) -> (u64, u64) {
        let (start, end) = (c * self.chunk, (c + 1) * self.chunk);
        (start, if end < self.n { end } else { self.n })
    }
}

/// Bytes of shared memory in which a warp keeps the values of so many tags: where they have no columns, with a byte for each that
/// says whether there is one.
pub const fn table_bytes(tags: u64, acc: usize, few: bool) -> usize {
    let tags = tags as usize;
    if few {
        return (tags * LANES as usize * acc).next_multiple_of(16);
    }
    (tags * acc).next_multiple_of(16) + tags.next_multiple_of(16)
}

/// How many times, from once up to `most`, so many bytes fit.
const fn fit(room: usize, bytes: usize, most: usize) -> usize {
    match room.checked_div(bytes) {
        Some(0) => 1,
        Some(times) if times < most => times,
        _ => most,
    }
}

/// Combines what there is of the values of some lanes pairwise, neighbours first: an absent one is skipped, and the others keep
/// their places.
///
/// The definition, and what the CPU runs.
#[inline(always)]
pub fn pairwise_present<Op: Monoid>(op: &Op, lanes: &mut [Option<Op::Acc>]) -> Option<Op::Acc> {
    let mut distance = 1;
    while distance < lanes.len() {
        let mut lane = 0;
        while lane + distance < lanes.len() {
            lanes[lane] = both(op, lanes[lane], lanes[lane + distance]);
            lane += 2 * distance;
        }
        distance *= 2;
    }
    if lanes.is_empty() { None } else { lanes[0] }
}

/// Combines what there is of two neighbours.
#[inline(always)]
pub fn both<Op: Monoid>(op: &Op, left: Option<Op::Acc>, right: Option<Op::Acc>) -> Option<Op::Acc> {
    match (left, right) {
        (Some(left), Some(right)) => Some(op.combine(left, right)),
        (Some(one), None) | (None, Some(one)) => Some(one),
        (None, None) => None,
    }
}

/// Which keys are the same.
///
/// # Laws
///
/// Only neighbours are compared, `earlier` with the one right behind it. A relation that is no equivalence is no mistake ("less than
/// 5 apart"): a run goes on as long as each key is the same as the one before it.
///
/// ```
/// use warpfold_monoid::{Plain, keyed::Equality};
///
/// /// The same hour.
/// #[derive(Clone, Copy, Plain)]
/// struct Hour;
///
/// impl Equality<u64> for Hour {
///     fn same(&self, earlier: u64, later: u64) -> bool { earlier / 3600 == later / 3600 }
/// }
/// assert!(Hour.same(3599, 1) && !Hour.same(3599, 3600));
/// ```
pub trait Equality<K: Plain>: Plain {
    /// Is `later` the same key as `earlier`, which stands before it?
    fn same(&self, earlier: K, later: K) -> bool;
}

/// What `==` says: of floats, zeros of both signs are the same, and no NaN is the same as anything.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Equal;

// SAFETY: zero bytes.
unsafe impl Plain for Equal {
    const LAYOUT: u64 = fingerprint(&[70]);
}

impl<K: Plain + PartialEq> Equality<K> for Equal {
    #[inline(always)]
    fn same(&self, earlier: K, later: K) -> bool {
        earlier == later
    }
}

/// Flags in place of keys: one that is not zero begins a run. So does the first item, whatever its flag is.
///
/// ```
/// use warpfold_monoid::keyed::{Equality, Heads};
///
/// assert!(Heads.same(1, 0) && !Heads.same(1, 1));
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heads;

// SAFETY: zero bytes.
unsafe impl Plain for Heads {
    const LAYOUT: u64 = fingerprint(&[73]);
}

impl Equality<u8> for Heads {
    #[inline(always)]
    fn same(&self, _earlier: u8, later: u8) -> bool {
        later == 0
    }
}

/// Which kernels serve keys that are compared by [`Equal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyClass {
    /// Those of their own type.
    Own,
    /// Integers of 4 bytes, `char`: those of `i32`, if there are none of their own.
    Word,
    /// Integers of 1 or 2 bytes, `bool`: those of `i32`, which widen them.
    Narrow,
    /// Integers of 8 bytes: those of `i64`, if there are none of their own.
    Long,
}

impl KeyClass {
    /// That of a type.
    #[inline(always)]
    pub fn of<K: 'static>() -> KeyClass {
        let key = TypeId::of::<K>();
        let is = |types: &[TypeId]| types.contains(&key);
        let integer =
            is(&[TypeId::of::<u8>(), TypeId::of::<u16>(), TypeId::of::<u32>(), TypeId::of::<u64>()])
                || is(&[TypeId::of::<i8>(), TypeId::of::<i16>(), TypeId::of::<i32>(), TypeId::of::<i64>()])
                || is(&[
                    TypeId::of::<usize>(),
                    TypeId::of::<isize>(),
                    TypeId::of::<bool>(),
                    TypeId::of::<char>(),
                ]);
        match size_of::<K>() {
            1 | 2 if integer => KeyClass::Narrow,
            4 if integer => KeyClass::Word,
            8 if integer => KeyClass::Long,
            _ => KeyClass::Own,
        }
    }
}

/// How the items of a reduction by key are cut: a function of the sizes of key, item and result alone.
///
/// ```
/// use warpfold_monoid::{Sum, keyed::RunTiling};
///
/// let tiling = RunTiling::of::<i32, Sum<f32>>();
/// assert_eq!((tiling.strip, tiling.threads, tiling.tile()), (16, 256, 4096));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunTiling {
    /// Items of a strip, which one thread folds.
    pub strip: u32,
    /// Strips of a tile, whole warps.
    pub threads: u32,
}

/// Bytes of keys and items that a strip has at most, unless one vector's worth are more.
const RUN_STRIP_BYTES: usize = 128;

/// Bytes of shared memory that the strips of a block may take.
const RUN_BLOCK_BYTES: usize = 40 << 10;

/// The most threads of a block.
const RUN_THREADS: usize = 256;

impl RunTiling {
    /// That of an operator's kernel for keys of a type.
    pub const fn of<K, Op: Monoid>() -> RunTiling {
        RunTiling::new(size_of::<K>(), size_of::<Op::Item>(), size_of::<Op::Output>())
    }

    /// The same for any keys and equality: narrow integers that are compared by [`Equal`] are cut as wider ones are, whose kernels
    /// they have.
    ///
    /// ```
    /// use warpfold_monoid::{Sum, keyed::{Equal, Heads, RunTiling}};
    ///
    /// assert_eq!(RunTiling::of_keys::<u8, Equal, Sum<f64>>(), RunTiling::of::<u32, Sum<f64>>());
    /// assert_eq!(RunTiling::of_keys::<u8, Heads, Sum<f64>>(), RunTiling::of::<u8, Sum<f64>>());
    /// ```
    #[inline(always)]
    pub fn of_keys<K: 'static, E: 'static, Op: Monoid>() -> RunTiling {
        match KeyClass::of::<K>() {
            KeyClass::Narrow if TypeId::of::<E>() == TypeId::of::<Equal>() => {
                const { RunTiling::of::<i32, Op>() }
            }
            _ => const { RunTiling::of::<K, Op>() },
        }
    }

    /// That of keys, items and results of so many bytes.
    pub const fn new(key: usize, item: usize, output: usize) -> RunTiling {
        let (a, b) = (vector_len(key), vector_len(item));
        let unit = if a > b { a } else { b };
        let wide = key + if item > output { item } else { output };
        let bytes = if wide == 0 { 1 } else { unit * wide };
        let units = if RUN_STRIP_BYTES < bytes { 1 } else { RUN_STRIP_BYTES / bytes };
        let most_units = 32 / unit;
        let strip = unit * if units < most_units { units } else { most_units };
        let most = RUN_BLOCK_BYTES / (strip * wide + 16);
        let mut threads = RUN_THREADS;
        while threads > most && threads > LANES as usize {
            threads /= 2;
        }
        RunTiling { strip: strip as u32, threads: threads as u32 }
    }

    /// Items of a warp's strips.
    pub const fn warp(&self) -> u32 {
        self.strip * LANES
    }

    /// Warps of a tile.
    pub const fn warps(&self) -> u32 {
        self.threads / LANES
    }

    /// Items of a tile.
    pub const fn tile(&self) -> u64 {
        self.strip as u64 * self.threads as u64
    }

    /// Tiles of `n` items.
    pub const fn tiles(&self, n: u64) -> u64 {
        n.div_ceil(self.tile())
    }
}

/// What is known of some neighbouring items: how many runs begin among them, and the value of those from the last such
/// beginning on (of all of them, if none begins).
#[repr(C, packed(4))]
#[derive(Clone, Copy, Debug)]
pub struct RunsSoFar<A> {
    heads: u64,
    value: A,
}

// SAFETY: repr(C), and `LAYOUT` compiles only without padding.
unsafe impl<A: Plain> Plain for RunsSoFar<A> {
    const LAYOUT: u64 = {
        assert!(
            size_of::<Self>() == 8 + size_of::<A>(),
            "the accumulator of a reduction by key fills whole 4-byte words: make it wider"
        );
        fingerprint(&[71, size_of::<A>() as u64, A::LAYOUT])
    };
}

impl<A: Plain> RunsSoFar<A> {
    /// Of so many beginnings, and with that value since the last.
    #[inline(always)]
    pub const fn new(heads: u64, value: A) -> Self {
        RunsSoFar { heads, value }
    }

    /// How many runs begin.
    #[inline(always)]
    pub const fn heads(&self) -> u64 {
        self.heads
    }

    /// The value since the last beginning.
    #[inline(always)]
    pub const fn value(&self) -> A {
        self.value
    }
}

/// An item of no bytes: what operators take that look at positions alone.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nothing;

// SAFETY: zero bytes.
unsafe impl Plain for Nothing {
    const LAYOUT: u64 = fingerprint(&[74]);
}

/// Where runs end: behind the last item. With a 0 in front, a reduction by key gives the runs' offsets.
///
/// ```
/// use warpfold_monoid::{keyed::{Nothing, RunEnds}, tree};
///
/// assert_eq!(tree::reduce(&RunEnds, &[Nothing; 5]), 5);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunEnds;

// SAFETY: zero bytes.
unsafe impl Plain for RunEnds {
    const LAYOUT: u64 = fingerprint(&[75]);
}

impl Monoid for RunEnds {
    type Item = Nothing;
    type Acc = u64;
    type Output = u64;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = false;
    #[inline(always)]
    fn identity(&self) -> u64 {
        0
    }
    #[inline(always)]
    fn lift(&self, _item: Nothing, index: u64) -> u64 {
        index + 1
    }
    #[inline(always)]
    fn combine(&self, _left: u64, right: u64) -> u64 {
        right
    }
    #[inline(always)]
    fn finish(&self, acc: u64) -> u64 {
        acc
    }
}

/// A reduction by key as a scan: what is known of items `0..=i` says which run item `i` belongs to, and what its run has come to.
///
/// An item goes with 1 if it begins a run and with 0 if it does not. The combination of two neighbours counts the beginnings of
/// both and has the right one's value if any run begins there, else the values of both combined. It is associative and does not
/// commute. The scan itself is that of [`crate::scan`], but that its strips and tiles are [`RunTiling`]'s.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Runs<K, E, Op> {
    /// Which keys are the same.
    pub equality: E,
    /// The operator.
    pub op: Op,
    key: PhantomData<fn() -> K>,
}

// SAFETY: repr(C), and `LAYOUT` compiles only without padding.
unsafe impl<K: Plain, E: Plain, Op: Plain> Plain for Runs<K, E, Op> {
    const LAYOUT: u64 = {
        assert!(
            size_of::<Self>() == size_of::<E>() + size_of::<Op>(),
            "an equality and an operator with parameters leave a gap between them: pad the smaller one"
        );
        fingerprint(&[72, size_of::<E>() as u64, K::LAYOUT, E::LAYOUT, Op::LAYOUT])
    };
}

impl<K, E, Op> Runs<K, E, Op> {
    /// Of keys that are the same as `equality` says.
    pub const fn new(equality: E, op: Op) -> Self {
        Runs { equality, op, key: PhantomData }
    }
}

impl<K: Plain, E: Equality<K>, Op: Monoid> Monoid for Runs<K, E, Op> {
    type Item = Fused2<u8, Op::Item>;
    type Acc = RunsSoFar<Op::Acc>;
    type Output = RunsSoFar<Op::Acc>;
    type Empty = GivesIdentity;
    const COMMUTATIVE: bool = false;
    #[inline(always)]
    fn identity(&self) -> RunsSoFar<Op::Acc> {
        RunsSoFar::new(0, self.op.identity())
    }
    #[inline(always)]
    fn lift(&self, item: Fused2<u8, Op::Item>, index: u64) -> RunsSoFar<Op::Acc> {
        let (begins, item) = item.get();
        RunsSoFar::new(begins as u64, self.op.lift(item, index))
    }
    #[inline(always)]
    fn combine(&self, left: RunsSoFar<Op::Acc>, right: RunsSoFar<Op::Acc>) -> RunsSoFar<Op::Acc> {
        let value = if right.heads > 0 { right.value } else { self.op.combine(left.value, right.value) };
        RunsSoFar::new(left.heads + right.heads, value)
    }
    #[inline(always)]
    fn push(&self, acc: RunsSoFar<Op::Acc>, item: Fused2<u8, Op::Item>, index: u64) -> RunsSoFar<Op::Acc> {
        let (begins, item) = item.get();
        let value = if begins > 0 { self.op.lift(item, index) } else { self.op.push(acc.value, item, index) };
        RunsSoFar::new(acc.heads + begins as u64, value)
    }
    #[inline(always)]
    fn finish(&self, acc: RunsSoFar<Op::Acc>) -> RunsSoFar<Op::Acc> {
        acc
    }
}
