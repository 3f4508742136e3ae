//! The trait every operator implements, and what a reduction of nothing gives.

use crate::{MaybeNan, Plain};

/// An associative operator with an identity, and the map in front of it.
///
/// A reduction of `x[0], x[1], ...` is `finish(lift(x[0], 0) ∘ lift(x[1], 1) ∘ ...)` where `∘` is
/// [`combine`](Monoid::combine). The grouping is the library's choice (the [canonical tree](crate::tree), a function
/// of the number of items and of the operator alone), and so is the order if the operator says that it is
/// [commutative](Monoid::COMMUTATIVE).
///
/// # Laws
///
/// - `combine` is associative: `(a ∘ b) ∘ c` and `a ∘ (b ∘ c)` mean the same. Floating-point operators satisfy
///   this up to rounding; the fixed tree is what makes their bits reproducible.
/// - `identity` is the value of nothing. It is **never combined**: absent operands are skipped, so an operator whose
///   identity is not neutral to the last bit (`0.0 + -0.0`) still gives exact results.
/// - `push(acc, item, i)` means `combine(acc, lift(item, i))`. It may round differently (it is part of the
///   canonical order) but must not change the meaning.
/// - If `COMMUTATIVE`, `combine(a, b)` and `combine(b, a)` mean the same. An operator that looks at `index` may be
///   commutative: an item keeps its index wherever it is combined.
///
/// The crate `warpfold-laws` tests them. Sizes have [limits](crate::limits); an operator without an identity, a start
/// value, a map in front and several operators in one pass are [adapters](crate::adapters) and [tuples](mod@crate::fused).
///
/// # Example
///
/// The number of values over a threshold chosen at run time:
///
/// ```
/// use warpfold_monoid::{GivesIdentity, Monoid, Plain};
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Plain)]
/// struct Over { threshold: f32 }
///
/// impl Monoid for Over {
///     type Item = f32;
///     type Acc = u64;
///     type Output = u64;
///     type Empty = GivesIdentity;
///     const COMMUTATIVE: bool = true;
///     fn identity(&self) -> u64 { 0 }
///     fn lift(&self, item: f32, _index: u64) -> u64 { (item > self.threshold) as u64 }
///     fn combine(&self, left: u64, right: u64) -> u64 { left + right }
///     fn finish(&self, acc: u64) -> u64 { acc }
/// }
///
/// let op = Over { threshold: 1.0 };
/// let items = [0.5, 1.5, 2.5];
/// assert_eq!(warpfold_monoid::tree::reduce(&op, &items), 2);
/// ```
pub trait Monoid: Plain {
    /// What lies in memory.
    type Item: Plain;
    /// What is combined.
    type Acc: Plain;
    /// What a reduction writes to device memory.
    type Output: Plain;
    /// What the host API returns for no items: [`GivesIdentity`] or [`GivesNone`].
    type Empty: OnEmpty<Self::Output>;
    /// May operands be reordered? Associativity is always assumed.
    const COMMUTATIVE: bool;
    /// Has the finished result the same bits in **any** order and grouping of the operands, and with `push` for
    /// `combine` of a `lift`?
    ///
    /// True of integers that wrap and of minima; not of floating-point sums, nor of an operator that is not
    /// [`COMMUTATIVE`](Monoid::COMMUTATIVE). A backend may then leave the canonical tree where another order is
    /// faster. The default, `false`, is always right.
    const ANY_ORDER: bool = false;

    /// How may accumulators be gathered in memory that many threads update, where any order will do
    /// ([`ANY_ORDER`](Monoid::ANY_ORDER))? Reductions by tag ask. The default, [`Atomic::No`], is always right.
    const ATOMIC: Atomic = Atomic::No;

    /// Do [`lift`](Monoid::lift) and [`push`](Monoid::push) look at `index`?
    ///
    /// Where they do not, a group-by need not carry items' positions along as it sorts. The default, `true`, is always right.
    const USES_INDEX: bool = true;

    /// Shall programs have this for every width of vectors that their CPU may have, and not for the least alone?
    ///
    /// It changes no bits. It makes a loop faster whose data is in caches, if it is simple enough for the compiler to
    /// vectorise, and takes three times the code and the time to compile. The default: where an accumulator is of 8 bytes
    /// at most.
    const VECTORISE: bool = size_of::<Self::Acc>() <= 8;

    /// How many neighbouring items a thread had best [fold at once](Monoid::fold_many) where the order does not matter: a
    /// vector's worth, a power of two. Operators whose items only say where to read from know better.
    const AT_ONCE: usize = crate::tree::vector_len(size_of::<Self::Item>());

    /// How many bytes of a thread's registers a lane's accumulator takes, beside what it has in common with others that have taken
    /// in as many items: their number. Kernels ask, and it changes no bits.
    const LANE_BYTES: usize = size_of::<Self::Acc>();

    /// Is [`for_segment`](Monoid::for_segment) anything but the operator itself?
    const PER_SEGMENT: bool = false;

    /// The operator of segment `k`, where many segments are reduced at once: one with a parameter for each has it here.
    ///
    /// Every method is then called on what this returned; the original is asked for identities that nobody combines, and
    /// by reductions of whole arrays. Called where [`PER_SEGMENT`](Monoid::PER_SEGMENT) says so, with the numbers of
    /// segments that are there, any number of times.
    ///
    /// ```
    /// use warpfold_monoid::{GivesIdentity, Monoid, Plain};
    ///
    /// /// How many items of segment `k` are at least `k`.
    /// #[derive(Clone, Copy, Plain)]
    /// #[repr(C)]
    /// struct AtLeast { least: u64 }
    ///
    /// impl Monoid for AtLeast {
    ///     type Item = u64;
    ///     type Acc = u64;
    ///     type Output = u64;
    ///     type Empty = GivesIdentity;
    ///     const COMMUTATIVE: bool = true;
    ///     const PER_SEGMENT: bool = true;
    ///     fn for_segment(&self, k: u64) -> Self { AtLeast { least: k } }
    ///     fn identity(&self) -> u64 { 0 }
    ///     fn lift(&self, item: u64, _index: u64) -> u64 { (item >= self.least) as u64 }
    ///     fn combine(&self, left: u64, right: u64) -> u64 { left + right }
    ///     fn finish(&self, acc: u64) -> u64 { acc }
    /// }
    ///
    /// let op = AtLeast { least: 0 };
    /// assert_eq!(warpfold_monoid::tree::reduce(&op.for_segment(2), &[1, 2, 3]), 2);
    /// ```
    #[inline(always)]
    fn for_segment(&self, _k: u64) -> Self {
        *self
    }

    /// The value of nothing, and nothing else.
    fn identity(&self) -> Self::Acc;

    /// Maps one item; `index` is its position in the segment being reduced.
    fn lift(&self, item: Self::Item, index: u64) -> Self::Acc;

    /// Combines two neighbouring values, `left` standing before `right` in the input.
    fn combine(&self, left: Self::Acc, right: Self::Acc) -> Self::Acc;

    /// Takes one item into an accumulator that already holds at least one.
    #[inline(always)]
    fn push(&self, acc: Self::Acc, item: Self::Item, index: u64) -> Self::Acc {
        self.combine(acc, self.lift(item, index))
    }

    /// Takes rows of items into neighbouring lanes: slot `i` of a row goes into lane `i`, the rows one after the other. `lanes`
    /// holds what they have already, at least an item each, or nothing. `index` is the position of the first row's first item, the
    /// others start `stride` apart.
    ///
    /// An operator that knows a faster way to take in several rows puts it here. The bits must be those of the default, which
    /// [lifts](Monoid::lift) a lane's first item and [pushes](Monoid::push) the others one by one.
    #[inline(always)]
    fn fold_rows<const V: usize, const U: usize>(
        &self,
        lanes: Option<[Self::Acc; V]>,
        rows: [[Self::Item; V]; U],
        index: u64,
        stride: u64,
    ) -> [Self::Acc; V] {
        let first = lanes.is_none() as usize;
        let mut lanes =
            lanes.unwrap_or_else(|| core::array::from_fn(|i| self.lift(rows[0][i], index + i as u64)));
        let mut u = first;
        while u < U {
            let mut i = 0;
            while i < V {
                lanes[i] = self.push(lanes[i], rows[u][i], index + u as u64 * stride + i as u64);
                i += 1;
            }
            u += 1;
        }
        lanes
    }

    /// The value of items that lie side by side, all of some vectors, of which `index` is the position of the first.
    ///
    /// An operator whose operands keep their order and that knows a faster way to fold several puts it here. The bits must be
    /// those of the default, which lifts the first item and pushes the others.
    #[inline(always)]
    fn fold_strip<const V: usize, const U: usize>(
        &self,
        vectors: [[Self::Item; V]; U],
        index: u64,
    ) -> Self::Acc {
        item_by_item(self, vectors, index)
    }

    /// The value of some neighbouring items, at least one, of which `index` is the position of the first.
    ///
    /// Backends may use it where the order does not matter ([`ANY_ORDER`](Monoid::ANY_ORDER)): an operator that says so
    /// and knows a faster way to fold what one thread loads at once (items of a byte, say) puts it here. The finished
    /// bits must be those of the default, which lifts the first item and pushes the others.
    #[inline(always)]
    fn fold_many<const N: usize>(&self, items: [Self::Item; N], index: u64) -> Self::Acc {
        let mut acc = self.lift(items[0], index);
        let mut i = 1;
        while i < N {
            acc = self.push(acc, items[i], index + i as u64);
            i += 1;
        }
        acc
    }

    /// The value of the first `count` vectors of neighbouring items, at least one; the others are copies of the first. `index`
    /// is the position of the first vector's first item, the others start `stride` apart, a multiple of `N`.
    ///
    /// As [`fold_many`](Monoid::fold_many), for operators that do better with all that a thread has at once. The default combines
    /// the vectors' values.
    #[inline(always)]
    fn fold_vectors<const N: usize, const U: usize>(
        &self,
        vectors: [[Self::Item; N]; U],
        count: u32,
        index: u64,
        stride: u64,
    ) -> Self::Acc {
        let mut acc = self.fold_many(vectors[0], index);
        let mut u = 1;
        while u < U {
            if (u as u32) < count {
                acc = self.combine(acc, self.fold_many(vectors[u], index + u as u64 * stride));
            }
            u += 1;
        }
        acc
    }

    /// Turns the last accumulator into the result.
    fn finish(&self, acc: Self::Acc) -> Self::Output;

    /// The result of a reduction of no items, which device memory receives and the host's [`Value`] is made from: the
    /// finished identity, unless an adapter knows better (a start value).
    #[inline(always)]
    fn finish_empty(&self) -> Self::Output {
        self.finish(self.identity())
    }
}

/// The value of items that lie side by side: the first is lifted, the others are pushed.
#[inline(always)]
pub(crate) fn item_by_item<Op: Monoid, const V: usize, const U: usize>(
    op: &Op,
    vectors: [[Op::Item; V]; U],
    index: u64,
) -> Op::Acc {
    let mut acc = op.lift(vectors[0][0], index);
    let mut i = 1;
    while i < U * V {
        acc = op.push(acc, vectors[i / V][i % V], index + i as u64);
        i += 1;
    }
    acc
}

/// How accumulators of 4 or 8 bytes are gathered by atomic updates ([`Monoid::ATOMIC`]).
///
/// All but [`No`](Atomic::No) promise that the identity is neutral, as [`NeutralIdentity`] says, and that, finished, it is what a
/// reduction of nothing gives.
///
/// ```
/// use warpfold_monoid::{Atomic, Fast, Max, Mean, Monoid, Sum};
///
/// assert_eq!((Sum::<i64>::ATOMIC, Max::<f32>::ATOMIC), (Atomic::Add, Atomic::Combine));
/// assert_eq!((Fast::<Sum<f32>>::ATOMIC, Mean::<f32>::ATOMIC), (Atomic::AddFloat, Atomic::No));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomic {
    /// Not at all.
    No,
    /// By [`combine`](Monoid::combine), as often as it takes until nobody came between.
    Combine,
    /// They are integers, and combining is adding, which wraps.
    Add,
    /// They are `f64`, and combining is adding; so is pushing, of what lifting gives.
    AddFloat,
}

impl Atomic {
    /// That, of accumulators of so many bytes; of other sizes than 4 and 8 none.
    pub const fn of_size(self, bytes: usize) -> Atomic {
        if bytes == 4 || bytes == 8 { self } else { Atomic::No }
    }
}

/// An operator whose identity may stand for items that do not count: combining it with a value gives that value (but a
/// zero may lose its minus), and pushing an item onto it is lifting the item.
///
/// No reduction needs this; [`IgnoreNan`](crate::IgnoreNan) does.
pub trait NeutralIdentity: Monoid {
    /// [`push`](Monoid::push) of an item that is not a NaN; what is there already if it is. Finished, it has the bits of the
    /// default.
    #[inline(always)]
    fn push_number(&self, acc: Self::Acc, item: Self::Item, index: u64) -> Self::Acc
    where
        Self::Item: MaybeNan,
    {
        let pushed = self.push(acc, item, index);
        if item.is_nan_value() { acc } else { pushed }
    }

    /// [`fold_vectors`](Monoid::fold_vectors) of those items that are not NaNs; the identity if all are. Finished, it has the bits
    /// of the default.
    #[inline(always)]
    fn fold_numbers<const N: usize, const U: usize>(
        &self,
        vectors: [[Self::Item; N]; U],
        count: u32,
        index: u64,
        stride: u64,
    ) -> Self::Acc
    where
        Self::Item: MaybeNan,
    {
        let mut acc = self.identity();
        let mut i = 0;
        while i < U * N {
            if i < N || ((i / N) as u32) < count {
                let item = vectors[i / N][i % N];
                let index = index + (i / N) as u64 * stride + (i % N) as u64;
                let pushed = if i == 0 { self.lift(item, index) } else { self.push(acc, item, index) };
                acc = if item.is_nan_value() { acc } else { pushed };
            }
            i += 1;
        }
        acc
    }
}

/// What a reduction of no items is on the host, for an operator with output `T`. Device memory always receives
/// [`finish_empty`](Monoid::finish_empty).
pub trait OnEmpty<T> {
    /// The host's result type.
    type Value;
    /// Wraps a finished output; `empty` says that there were no items.
    fn value(output: T, empty: bool) -> Self::Value;
}

/// The reduction of nothing is the identity (a sum: 0).
pub enum GivesIdentity {}

impl<T> OnEmpty<T> for GivesIdentity {
    type Value = T;
    #[inline(always)]
    fn value(output: T, _empty: bool) -> T {
        output
    }
}

/// The reduction of nothing is `None` (a minimum has no value then).
pub enum GivesNone {}

impl<T> OnEmpty<T> for GivesNone {
    type Value = Option<T>;
    #[inline(always)]
    fn value(output: T, empty: bool) -> Option<T> {
        if empty { None } else { Some(output) }
    }
}

/// The host's result type of an operator: its output, or an `Option` of it.
pub type Value<Op> = <<Op as Monoid>::Empty as OnEmpty<<Op as Monoid>::Output>>::Value;
