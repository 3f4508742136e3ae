//! Segments with arrays beside them: parameters of each, inputs of lower rank, results of a fused map.

use std::ops::Range;

use warpfold_gpu_kernels::{
    beside::{self, Along, AlongMut, OwnOperator, PerSegment, Ragged, RaggedMut, Writing, WritingBeside},
    source::{Array, ArrayMut, Sink, Source, Zip2, Zip3, Zip4, Zip5, Zip6, Zip7, Zip8},
};
use warpfold_monoid::{MapFn, Monoid, Plain};

use super::{Axis, Layout, SegmentPlan, SegmentReducer, Segments, Work, rows_of, side_by_side};
use crate::{
    Columns, ColumnsMut, Engine, Error, Input, Preparation,
    plan::segments::{SegmentSettings, SegmentsPlan},
};

/// An array that lies beside the items of segments, and which of its items is beside which: `x[k][i]` with ...
///
/// It is a slice, a vector, a device array or a view (mutably borrowed, if it is written).
///
/// ```
/// use warpfold_host::{Engine, segments::Side};
/// use warpfold_monoid::{Map, MapFn, Plain, Sum, fused::Parts2};
///
/// /// `x * b + c`.
/// #[derive(Clone, Copy, Plain)]
/// struct Affine;
/// impl MapFn for Affine {
///     type From = Parts2<i32, Parts2<i32, i32>>;
///     type To = i32;
///     fn map(&self, item: Parts2<i32, Parts2<i32, i32>>, _index: u64) -> i32 {
///         let (x, beside) = item.get();
///         let (b, c) = beside.get();
///         x * b + c
///     }
/// }
///
/// # fn main() -> Result<(), warpfold_host::Error> {
/// // The rows' items, each with a factor of its column and a summand of its row.
/// let (factors, summands) = ([1, 10, 100], [0, 1000]);
/// let op = Map::new(Sum::<i32>::new(), Affine);
/// let beside = (Side::items(&factors[..]), Side::segments(&summands[..]));
/// let mut sums = Engine::cpu().segments_beside(op, beside)?;
/// assert_eq!(sums.reduce_rows(&[1, 2, 3, 4, 5, 6], 3)?, [321, 3654]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Side<C, P> {
    array: C,
    place: P,
}

/// Item `i` of the array for item `i` of every segment: see [`Side::items`].
#[derive(Clone, Copy, Debug)]
pub struct ByItem;

/// Item `k` of the array for segment `k`: see [`Side::segments`].
#[derive(Clone, Copy, Debug)]
pub struct BySegment;

/// Wherever axes lead: see [`Side::axes`].
#[derive(Clone, Copy, Debug)]
pub struct ByAxes<const AXES: usize> {
    kept: [Axis; AXES],
    reduced: [Axis; AXES],
}

/// At the item's own place: see [`Side::places`].
#[derive(Clone, Copy, Debug)]
pub struct ByPlace<'a> {
    plan: &'a SegmentPlan,
}

impl<C> Side<C, ByItem> {
    /// ... `array[i]`: as many items as the longest segment has.
    pub fn items(array: C) -> Self {
        Side { array, place: ByItem }
    }
}

impl<C> Side<C, BySegment> {
    /// ... `array[k]`: an item for each segment.
    pub fn segments(array: C) -> Self {
        Side { array, place: BySegment }
    }
}

impl<C> Side<C, ByAxes<1>> {
    /// ... `array[k * n + i]`: an array of `m` rows of `n` items, side by side.
    pub fn rows(array: C, m: u64, n: u64) -> Self {
        let kept = [Axis { len: m, stride: n as i64 }];
        Side { array, place: ByAxes { kept, reduced: [Axis { len: n, stride: 1 }] } }
    }
}

impl<C, const AXES: usize> Side<C, ByAxes<AXES>> {
    /// ... what the strides lead to for position `k` on the kept axes and `i` on the reduced ones, the last axis of either
    /// running fastest; a stride of 0 broadcasts along an axis. Axes that are not needed come first, with length 1.
    pub fn axes(array: C, kept: [Axis; AXES], reduced: [Axis; AXES]) -> Self {
        Side { array, place: ByAxes { kept, reduced } }
    }
}

impl<'a, C> Side<C, ByPlace<'a>> {
    /// ... `array[begin of segment k + i]`, of the segments of a plan: the item at the same place, as it were.
    pub fn places(array: C, plan: &'a SegmentPlan) -> Self {
        Side { array, place: ByPlace { plan } }
    }
}

/// For which segments arrays have items.
#[derive(Clone, Copy, Debug)]
enum Covers<'a> {
    Items(u64),
    Segments(u64),
    Positions { segments: u64, items: u64 },
    Plan(&'a SegmentPlan),
}

/// What lies beside segments, where the engine computes.
#[derive(Default)]
pub struct Attached<'a> {
    preparation: Preparation<'a>,
    covers: Vec<Covers<'a>>,
}

impl<'a> Attached<'a> {
    fn read<T: Plain, C: Columns<'a, Source = Array<T>>>(
        &mut self,
        engine: &Engine,
        array: C,
    ) -> Result<(Array<T>, u64), Error> {
        let source = array.prepare(engine, &mut self.preparation)?;
        Ok((source, self.preparation.take_len()))
    }

    fn written<T: Plain, C: ColumnsMut<'a, Sink = ArrayMut<T>>>(
        &mut self,
        engine: &Engine,
        array: C,
    ) -> Result<(ArrayMut<T>, u64), Error> {
        let sink = array.prepare(engine, &mut self.preparation)?;
        Ok((sink, self.preparation.take_len()))
    }

    /// Have all arrays something for `m` segments of which the longest has `n` items?
    fn check(&self, m: u64, n: u64, plan: Option<&SegmentPlan>) -> Result<(), Error> {
        for (number, covers) in self.covers.iter().enumerate() {
            let unfit = |what, has, needed| Err(Error::BesideUnfit { number, what, has, needed });
            match *covers {
                Covers::Items(has) if has < n || (plan.is_none() && has != n && m > 0) => {
                    return unfit("items of a segment", has, n);
                }
                Covers::Segments(has) if has != m => return unfit("segments", has, m),
                Covers::Positions { segments, .. } if segments != m => {
                    return unfit("segments", segments, m);
                }
                Covers::Positions { items, .. } if items < n || (plan.is_none() && items != n && m > 0) => {
                    return unfit("items of a segment", items, n);
                }
                Covers::Plan(own) if plan.is_none_or(|plan| own != plan) => {
                    return Err(Error::BesideOtherSegments { number });
                }
                _ => (),
            }
        }
        Ok(())
    }
}

/// Arrays that are read beside segments: a [`Side`], or a tuple of two to eight of them, whose items are
/// [`Parts2`](warpfold_monoid::fused::Parts2) to `Parts8`.
///
/// # Safety
///
/// What [`attach`](Sides::attach) gives has something for the segments that it notes.
pub unsafe trait Sides<'a> {
    /// How kernels read them.
    type Source: Source;

    /// Gets them to where the engine computes.
    ///
    /// # Errors
    ///
    /// [`Error::BesideUnfit`] for axes that lead out of their array, and as for [`Columns::prepare`].
    fn attach(self, engine: &Engine, attached: &mut Attached<'a>) -> Result<Self::Source, Error>;
}

/// Arrays that are written beside segments: a [`Side`] of one that is borrowed mutably.
///
/// # Safety
///
/// As for [`Sides`]; no two positions share a place.
pub unsafe trait SidesMut<'a> {
    /// How kernels write them.
    type Sink: Sink;

    /// Makes room for them where the engine computes.
    ///
    /// # Errors
    ///
    /// As for [`Sides::attach`], and [`Error::SharedPlaces`].
    fn attach(self, engine: &Engine, attached: &mut Attached<'a>) -> Result<Self::Sink, Error>;
}

// SAFETY: as many items as are noted.
unsafe impl<'a, T: Plain, C: Columns<'a, Source = Array<T>>> Sides<'a> for Side<C, ByItem> {
    type Source = Along<T>;

    fn attach(self, engine: &Engine, attached: &mut Attached<'a>) -> Result<Along<T>, Error> {
        let (array, len) = attached.read(engine, self.array)?;
        attached.covers.push(Covers::Items(len));
        Ok(Along::items(array))
    }
}

// SAFETY: as many items as are noted.
unsafe impl<'a, T: Plain, C: Columns<'a, Source = Array<T>>> Sides<'a> for Side<C, BySegment> {
    type Source = PerSegment<T>;

    fn attach(self, engine: &Engine, attached: &mut Attached<'a>) -> Result<PerSegment<T>, Error> {
        let (array, len) = attached.read(engine, self.array)?;
        attached.covers.push(Covers::Segments(len));
        Ok(PerSegment::new(array))
    }
}

// SAFETY: all positions that are noted lie within the array.
unsafe impl<'a, T: Plain, C: Columns<'a, Source = Array<T>>, const AXES: usize> Sides<'a>
    for Side<C, ByAxes<AXES>>
{
    type Source = Along<T, AXES>;

    fn attach(self, engine: &Engine, attached: &mut Attached<'a>) -> Result<Along<T, AXES>, Error> {
        let (array, len) = attached.read(engine, self.array)?;
        let ByAxes { kept, reduced } = self.place;
        attached.covers.push(self.place.covers(attached.covers.len(), len)?);
        Ok(Along::new(array, kept.map(kernels), reduced.map(kernels)))
    }
}

// SAFETY: the plan is noted, whose segments all lie within the array.
unsafe impl<'a, T: Plain, C: Columns<'a, Source = Array<T>>> Sides<'a> for Side<C, ByPlace<'a>> {
    type Source = Ragged<T>;

    fn attach(self, engine: &Engine, attached: &mut Attached<'a>) -> Result<Ragged<T>, Error> {
        let (array, len) = attached.read(engine, self.array)?;
        let plan = self.place.plan;
        plan.check(len)?;
        attached.covers.push(Covers::Plan(plan));
        Ok(Ragged::new(array, attached.read(engine, plan.bounds().0)?.0))
    }
}

// SAFETY: all positions that are noted lie within the array, each at a place of its own.
unsafe impl<'a, T: Plain, C: ColumnsMut<'a, Sink = ArrayMut<T>>, const AXES: usize> SidesMut<'a>
    for Side<C, ByAxes<AXES>>
{
    type Sink = AlongMut<T, AXES>;

    fn attach(self, engine: &Engine, attached: &mut Attached<'a>) -> Result<AlongMut<T, AXES>, Error> {
        let (array, len) = attached.written(engine, self.array)?;
        let ByAxes { kept, reduced } = self.place;
        attached.covers.push(self.place.covers(attached.covers.len(), len)?);
        let mut axes: Vec<Axis> = kept.into_iter().chain(reduced).filter(|axis| axis.len > 1).collect();
        axes.sort_by_key(|axis| axis.stride.unsigned_abs());
        let mut span = 0;
        for axis in axes {
            // A step must lead past all that the finer axes reach.
            if axis.stride.unsigned_abs() <= span {
                return Err(Error::SharedPlaces { what: "axis steps", at: axis.stride.unsigned_abs() });
            }
            span += axis.stride.unsigned_abs() * (axis.len - 1);
        }
        Ok(AlongMut::new(array, kept.map(kernels), reduced.map(kernels)))
    }
}

// SAFETY: the plan is noted, whose segments all lie within the array, and none overlap.
unsafe impl<'a, T: Plain, C: ColumnsMut<'a, Sink = ArrayMut<T>>> SidesMut<'a> for Side<C, ByPlace<'a>> {
    type Sink = RaggedMut<T>;

    fn attach(self, engine: &Engine, attached: &mut Attached<'a>) -> Result<RaggedMut<T>, Error> {
        let (array, len) = attached.written(engine, self.array)?;
        let plan = self.place.plan;
        plan.check(len)?;
        if plan.offsets().is_none() {
            let mut ranges: Vec<Range<u64>> =
                (0..plan.segments()).map(|k| plan.range(k)).filter(|range| !range.is_empty()).collect();
            ranges.sort_by_key(|range| range.start);
            if let Some(pair) = ranges.windows(2).find(|pair| pair[0].end > pair[1].start) {
                return Err(Error::SharedPlaces { what: "segments meet at item", at: pair[1].start });
            }
        }
        attached.covers.push(Covers::Plan(plan));
        Ok(RaggedMut::new(array, attached.read(engine, plan.bounds().0)?.0))
    }
}

fn kernels(axis: Axis) -> beside::Axis {
    beside::Axis { len: axis.len, stride: axis.stride }
}

impl<const AXES: usize> ByAxes<AXES> {
    /// What they cover, if they all lead into an array of `len` items.
    fn covers<'a>(&self, number: usize, len: u64) -> Result<Covers<'a>, Error> {
        let layout = Layout { kept: self.kept.to_vec(), reduced: self.reduced.to_vec() };
        let (segments, items) = (layout.segments(), layout.segment_len());
        let (mut least, mut greatest) = (0_i128, 0_i128);
        for Axis { len, stride } in layout.kept.iter().chain(&layout.reduced) {
            let span = i128::from(*stride) * i128::from(len.saturating_sub(1));
            least += span.min(0);
            greatest += span.max(0);
        }
        let empty = segments == 0 || items == 0;
        if !empty && (least < 0 || greatest >= i128::from(len)) {
            let needed = if least < 0 { u64::MAX } else { u64::try_from(greatest + 1).unwrap_or(u64::MAX) };
            return Err(Error::BesideUnfit { number, what: "places of its axes", has: len, needed });
        }
        Ok(Covers::Positions { segments, items })
    }
}

macro_rules! tuple {
    ($zip:ident; $($part:ident $value:ident),+) => {
        // SAFETY: that of the parts, each of which notes what it has.
        unsafe impl<'a, $($part: Sides<'a>),+> Sides<'a> for ($($part,)+) {
            type Source = $zip<$($part::Source),+>;

            fn attach(self, engine: &Engine, attached: &mut Attached<'a>) -> Result<Self::Source, Error> {
                let ($($value,)+) = self;
                Ok($zip::new($($value.attach(engine, attached)?),+))
            }
        }
    };
}

tuple!(Zip2; A a, B b);
tuple!(Zip3; A a, B b, C c);
tuple!(Zip4; A a, B b, C c, D d);
tuple!(Zip5; A a, B b, C c, D d, E e);
tuple!(Zip6; A a, B b, C c, D d, E e, F f);
tuple!(Zip7; A a, B b, C c, D d, E e, F f, G g);
tuple!(Zip8; A a, B b, C c, D d, E e, F f, G g, H h);

/// Reduces segments with arrays beside their items, which are borrowed (or copied to the device) as long as this lives.
///
/// Made by [`Engine::segments_beside`] and [`Engine::segments_writing`]. Each reduction checks that every array has as
/// many items as its segments need.
pub struct SegmentsBeside<'a, Op: Monoid> {
    reducer: SegmentReducer<Op>,
    attached: Attached<'a>,
}

impl<Op: Monoid> std::fmt::Debug for SegmentsBeside<'_, Op> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} with {:?}", self.reducer, self.attached.covers)
    }
}

impl<'a, Op: Monoid> SegmentsBeside<'a, Op> {
    fn new(engine: &Engine, op: Op, attached: Attached<'a>) -> Result<Self, Error> {
        let reducer = engine.segments(op)?.with_buffers(attached.preparation.buffers());
        Ok(SegmentsBeside { reducer, attached })
    }

    /// The same with a strategy, or what its kernels may vary, forced: [`SegmentReducer::with_settings`].
    #[must_use]
    pub fn with_settings(self, settings: SegmentSettings) -> Self {
        SegmentsBeside { reducer: self.reducer.with_settings(settings), ..self }
    }

    /// What a reduction of an array's segments will do: [`SegmentReducer::plan`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn plan(&self, layout: &Layout) -> Result<SegmentsPlan, Error> {
        self.reducer.plan(layout)
    }

    /// [`SegmentReducer::reduce_rows`].
    ///
    /// # Errors
    ///
    /// As there, and [`Error::BesideUnfit`] or [`Error::BesideOtherSegments`] for an array beside that does not fit.
    pub fn reduce_rows<I: Input<Op::Item> + ?Sized>(
        &mut self,
        items: &I,
        n: u64,
    ) -> Result<Vec<Op::Output>, Error> {
        let m = rows_of(items.source()?.count(), n)?.segments();
        self.attached.check(m, n, None)?;
        let results = self.reducer.reduce_rows(items, n)?;
        self.attached.preparation.conclude()?;
        Ok(results)
    }

    /// [`SegmentReducer::reduce_segments`].
    ///
    /// # Errors
    ///
    /// As there, and as for [`reduce_rows`](SegmentsBeside::reduce_rows).
    pub fn reduce_segments<I: Input<Op::Item> + ?Sized>(
        &mut self,
        items: &I,
        plan: &SegmentPlan,
    ) -> Result<Vec<Op::Output>, Error> {
        let lengths = (0..plan.segments()).map(|k| plan.range(k)).map(|range| range.end - range.start);
        self.attached.check(plan.segments(), lengths.max().unwrap_or(0), Some(plan))?;
        let results = self.reducer.reduce_segments(items, plan)?;
        self.attached.preparation.conclude()?;
        Ok(results)
    }

    /// [`SegmentReducer::reduce_layout`].
    ///
    /// # Errors
    ///
    /// As there, and as for [`reduce_rows`](SegmentsBeside::reduce_rows).
    ///
    /// # Safety
    ///
    /// As there.
    pub unsafe fn reduce_layout(
        &mut self,
        first: *const Op::Item,
        layout: &Layout,
    ) -> Result<Vec<Op::Output>, Error> {
        self.attached.check(layout.segments(), layout.segment_len(), None)?;
        // SAFETY: the caller's promise.
        let results = unsafe { self.reducer.reduce_layout(first, layout)? };
        self.attached.preparation.conclude()?;
        Ok(results)
    }
}

impl Engine {
    /// A reducer of segments whose items are combined with what lies beside them: `x[k][i]` with `bs[i]`, `c[k]` and so on,
    /// as [`Side`]s say.
    ///
    /// The operator's items are pairs of an item and what is beside it. A GPU and the simulator need an export
    /// of `Beside<Op, Along<f32>>`, with [`PerSegment`], [`Ragged`] and `Zip2` as the sides have it (`segment_kernels!`); host
    /// memory is copied to a GPU first. For reductions that are enqueued, make that operator yourself
    /// ([`Beside::new`](beside::Beside::new)) and a reducer for it.
    ///
    /// # Errors
    ///
    /// Those of [`segments`](Engine::segments), and [`Error::BesideUnfit`] for axes that lead out of their array.
    ///
    /// The example is [`Side`]'s.
    pub fn segments_beside<'a, Op, B>(
        &self,
        op: Op,
        beside: B,
    ) -> Result<SegmentsBeside<'a, beside::Beside<Op, B::Source>>, Error>
    where
        B: Sides<'a>,
        Op: Monoid,
        beside::Beside<Op, B::Source>: Monoid,
    {
        let mut attached = Attached::default();
        let source = beside.attach(self, &mut attached)?;
        // SAFETY: attached for this engine, and every reduction is checked against what the sides cover.
        SegmentsBeside::new(self, unsafe { beside::Beside::new(op, source) }, attached)
    }

    /// A reducer of segments that also writes what `map` makes of each item: *map-out* over segments.
    ///
    /// The reduction is of the items as they are; an operator that is a [`Map`](warpfold_monoid::Map) with the same function
    /// reduces the results instead. A GPU and the simulator need an export of `Writing<Op, F, AlongMut<f32>>`, or with
    /// [`RaggedMut`] for segments of any lengths.
    ///
    /// # Errors
    ///
    /// As for [`segments_beside`](Engine::segments_beside), and [`Error::SharedPlaces`]. After an error of a reduction the
    /// outputs may be partly written.
    ///
    /// ```
    /// use warpfold_host::{Engine, segments::Side};
    /// use warpfold_monoid::{Map, MapFn, Plain, Sum};
    ///
    /// #[derive(Clone, Copy, Plain)]
    /// struct Square;
    /// impl MapFn for Square {
    ///     type From = i32;
    ///     type To = i32;
    ///     fn map(&self, item: i32, _index: u64) -> i32 { item * item }
    /// }
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let mut squares = vec![0; 6];
    /// let op = Map::new(Sum::<i32>::new(), Square);
    /// let out = Side::rows(&mut squares, 2, 3);
    /// let norms = Engine::cpu().segments_writing(op, Square, out)?.reduce_rows(&[1, 2, 3, 4, 5, 6], 3)?;
    /// assert_eq!((norms, squares), (vec![14, 77], vec![1, 4, 9, 16, 25, 36]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn segments_writing<'a, Op, F, D>(
        &self,
        op: Op,
        map: F,
        outputs: D,
    ) -> Result<SegmentsBeside<'a, Writing<Op, F, D::Sink>>, Error>
    where
        Op: Monoid,
        F: MapFn<From = Op::Item>,
        D: SidesMut<'a, Sink: Sink<Item = F::To>>,
    {
        let mut attached = Attached::default();
        let sink = outputs.attach(self, &mut attached)?;
        // SAFETY: attached for this engine and borrowed mutably, and every reduction is checked against what they cover.
        SegmentsBeside::new(self, unsafe { Writing::new(op, map, sink) }, attached)
    }

    /// Both: the map has the pairs of an item and what is beside it.
    ///
    /// A GPU and the simulator need an export of `Beside<Writing<Op, F, AlongMut<f32>>, Along<f32>>` and the like.
    ///
    /// # Errors
    ///
    /// As for the two.
    #[allow(clippy::type_complexity)]
    pub fn segments_beside_writing<'a, Op, F, B, D>(
        &self,
        op: Op,
        map: F,
        beside: B,
        outputs: D,
    ) -> Result<SegmentsBeside<'a, WritingBeside<Op, F, D::Sink, B::Source>>, Error>
    where
        Op: Monoid,
        F: MapFn<From = Op::Item>,
        B: Sides<'a>,
        D: SidesMut<'a, Sink: Sink<Item = F::To>>,
        WritingBeside<Op, F, D::Sink, B::Source>: Monoid,
    {
        let mut attached = Attached::default();
        let source = beside.attach(self, &mut attached)?;
        let sink = outputs.attach(self, &mut attached)?;
        // SAFETY: as for either.
        let op = unsafe { beside::Beside::new(Writing::new(op, map, sink), source) };
        SegmentsBeside::new(self, op, attached)
    }
}

impl<Op: Monoid> SegmentReducer<Op> {
    /// Rows with an operator of each one's own, read from an array of them by the kernels of [`OwnOperator`].
    pub(super) fn reduce_rows_own<I: Input<Op::Item> + ?Sized>(
        &self,
        items: &I,
        layout: &Layout,
        operator: &dyn Fn(u64) -> Op,
        results: &mut [Op::Output],
    ) -> Result<(), Error> {
        let m = layout.segments();
        let mut operators = Vec::new();
        let needed = m.saturating_mul(size_of::<Op>() as u64);
        operators.try_reserve_exact(m as usize).map_err(|_| Error::HostMemory { needed })?;
        operators.extend((0..m).map(operator));
        let mut attached = Attached::default();
        let (array, _) = attached.read(&self.engine, &operators[..])?;
        // SAFETY: an operator for each row, where the engine computes.
        let op = unsafe { OwnOperator::new(self.op, array) };
        let reducer = self.engine.segments(op)?.with_settings(self.settings);
        let reducer = reducer.with_buffers(attached.preparation.buffers());
        let mut copy = Vec::new();
        let items = side_by_side(items, &mut copy)?;
        // SAFETY: the rows are the slice's.
        unsafe { reducer.run(Work::Segments(Segments::rows(items, layout)), results) }
    }
}
