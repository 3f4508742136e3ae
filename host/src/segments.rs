//! Segments: many reductions at once, of the rows of an array, along any of its axes, or of ranges of any lengths.
//!
//! **A segment's result has the bits of reducing that segment alone**, whatever its neighbours, the layout in memory or
//! the backend. An operator is told an item's position within its segment. An empty segment gives the operator's value
//! of nothing, [`finish_empty`](Monoid::finish_empty): results are [`Monoid::Output`]s, not the `Option`s that a
//! [`Reducer`](crate::Reducer) gives for minima.
//!
//! ```
//! use warpfold_host::{Engine, segments::SegmentPlan};
//! use warpfold_monoid::Min;
//!
//! # fn main() -> Result<(), warpfold_host::Error> {
//! let min = Engine::cpu().segments(Min::<i32>::new())?;
//! let items = [3, 1, 2, 9, 7, 8];
//! assert_eq!(min.reduce_rows(&items, 3)?, [1, 7]);
//! let plan = SegmentPlan::from_lengths(&[1, 0, 5])?;
//! assert_eq!(min.reduce_segments(&items, &plan)?, [3, i32::MAX, 1]);
//! # Ok(())
//! # }
//! ```

use std::{
    alloc::{self, Layout as Allocation},
    fmt,
    mem::MaybeUninit,
};

use warpfold_monoid::{Monoid, Plain};
use warpfold_simt::sim::Buffer;

#[cfg(feature = "cuda")]
use crate::cuda::SegmentLauncher;
use crate::{
    Engine, Error, Input, Items, Source,
    cpu::{self, Operators},
    erased::{Erased, bytes_of},
    plan::{
        OperatorLayout,
        segments::{SegmentSettings, SegmentsPlan},
    },
    sim::SegmentSimulator,
};

mod beside;
#[cfg(feature = "cuda")]
mod device;
mod elsewhere;
mod irregular;
mod layout;
#[cfg(feature = "ndarray")]
mod nd;
mod problem;
mod tables;

pub use beside::{Attached, ByAxes, ByItem, ByPlace, BySegment, SegmentsBeside, Side, Sides, SidesMut};
use elsewhere::Left;
pub use irregular::{Offset, SegmentPlan};
pub(crate) use layout::Walk;
pub use layout::{Axis, Layout};
pub(crate) use problem::{Places, Problem};
pub(crate) use tables::{Class, Tables};

/// Reduces segments of arrays with one operator on one engine. Cheap to clone, usable from any thread.
///
/// Made by [`Engine::segments`].
#[derive(Clone)]
pub struct SegmentReducer<Op: Monoid> {
    engine: Engine,
    op: Op,
    settings: SegmentSettings,
    place: Place,
}

/// Where it runs, with what it needs there at hand.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Cpu,
    Sim(SegmentSimulator),
    #[cfg(feature = "cuda")]
    Cuda(SegmentLauncher),
}

/// Segments of items in host memory.
#[derive(Clone, Copy)]
pub(crate) enum Segments<'a, T> {
    /// Of an array of this layout, `first` being the item at index 0 of every axis.
    Regular { first: *const T, layout: &'a Layout },
    /// Of a slice that the plan suits.
    Irregular { items: &'a [T], plan: &'a SegmentPlan },
}

impl<'a, T> Segments<'a, T> {
    fn rows(items: &'a [T], layout: &'a Layout) -> Self {
        Segments::Regular { first: items.as_ptr(), layout }
    }

    fn irregular(items: &'a [T], plan: &'a SegmentPlan) -> Result<Self, Error> {
        plan.check(items.len() as u64)?;
        Ok(Segments::Irregular { items, plan })
    }

    fn count(&self) -> u64 {
        match self {
            Segments::Regular { layout, .. } => layout.segments(),
            Segments::Irregular { plan, .. } => plan.segments(),
        }
    }
}

impl<Op: Monoid> fmt::Debug for SegmentReducer<Op> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SegmentReducer<{}> on {}", std::any::type_name::<Op>(), self.engine.backend())
    }
}

impl<Op: Monoid> SegmentReducer<Op> {
    pub(crate) fn new(engine: Engine, op: Op, place: Place) -> Self {
        SegmentReducer { engine, op, settings: SegmentSettings::default(), place }
    }

    /// The same with a strategy, or what its kernels may vary, forced. No setting changes a result.
    ///
    /// On the CPU there is nothing to force.
    #[must_use]
    pub fn with_settings(&self, settings: SegmentSettings) -> Self {
        SegmentReducer { settings, ..self.clone() }
    }

    /// The same, whose operator accesses more memory: the simulator is to let it.
    fn with_buffers(mut self, buffers: Vec<Buffer>) -> Self {
        if let Place::Sim(simulator) = &mut self.place {
            simulator.buffers = buffers;
        }
        self
    }

    /// What a reduction of an array's segments will do, whose every strategy gives the same bits.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyAxes`], and those of [`SegmentPlanner::plan`](crate::plan::segments::SegmentPlanner::plan).
    ///
    /// ```
    /// use warpfold_host::{Engine, segments::Layout};
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sum = Engine::cpu().segments(Sum::<f32>::new())?;
    /// println!("{}", sum.plan(&Layout::rows(1000, 100))?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn plan(&self, layout: &Layout) -> Result<SegmentsPlan, Error> {
        match &self.place {
            Place::Cpu => {
                let Problem { m, n, arrangement, .. } = Problem::of(layout)?;
                Ok(SegmentsPlan::cpu(m, n, arrangement, OperatorLayout::of::<Op>()))
            }
            Place::Sim(simulator) => simulator.plan(layout, self.settings, OperatorLayout::of::<Op>()),
            #[cfg(feature = "cuda")]
            Place::Cuda(launcher) => launcher.plan(layout, self.settings, OperatorLayout::of::<Op>()),
        }
    }

    /// The operator.
    pub fn operator(&self) -> &Op {
        &self.op
    }

    /// The engine that it runs on.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Reduces each row of `n` items of an array whose rows lie side by side.
    ///
    /// # Errors
    ///
    /// [`Error::RaggedRows`] if the array is not made of whole rows, [`Error::HostMemory`],
    /// [`Error::NeedsCuda`] for device memory on the host.
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::{ArgMax, Sum};
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let engine = Engine::cpu();
    /// let items = [1.0f32, 2.0, 4.0, 8.0, 4.0, 6.0];
    /// assert_eq!(engine.segments(Sum::<f32>::new())?.reduce_rows(&items, 3)?, [7.0, 18.0]);
    /// let greatest = engine.segments(ArgMax::<f32>::new())?.reduce_rows(&items, 3)?;
    /// assert_eq!(greatest.iter().map(|found| found.index()).collect::<Vec<_>>(), [2, 0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reduce_rows<I: Input<Op::Item> + ?Sized>(
        &self,
        items: &I,
        n: u64,
    ) -> Result<Vec<Op::Output>, Error> {
        #[cfg(feature = "cuda")]
        if let (Source::Device(view), Place::Cuda(_)) = (items.source()?, &self.place) {
            return self.reduce_device(&view, 0, &rows_of(view.len(), n)?);
        }
        let mut copy = Vec::new();
        let items = side_by_side(items, &mut copy)?;
        // SAFETY: the rows are the slice's.
        unsafe { self.collect(Segments::rows(items, &rows_of(items.len() as u64, n)?)) }
    }

    /// [`reduce_rows`](SegmentReducer::reduce_rows) into a slice with a place for each row.
    ///
    /// # Errors
    ///
    /// As there, and [`Error::OutputLength`].
    pub fn reduce_rows_into<I: Input<Op::Item> + ?Sized>(
        &self,
        items: &I,
        n: u64,
        results: &mut [Op::Output],
    ) -> Result<(), Error> {
        let mut copy = Vec::new();
        let items = side_by_side(items, &mut copy)?;
        // SAFETY: the rows are the slice's.
        unsafe { self.run(Work::Segments(Segments::rows(items, &rows_of(items.len() as u64, n)?)), results) }
    }

    /// Reduces each row of `n` items with an operator of its own: row `k` with `operator(k)`.
    ///
    /// The simulator and a GPU get them as an array, and need an export of
    /// [`OwnOperator<Op>`](crate::beside::OwnOperator).
    ///
    /// # Errors
    ///
    /// As for [`reduce_rows`](SegmentReducer::reduce_rows), and those of [`Engine::segments`].
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::{Max, WithInitial};
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// // The greatest item of each row, but no less than the row's own floor.
    /// let floors = [0, 5];
    /// let floor = |k: u64| WithInitial::new(Max::<i32>::new(), floors[k as usize]);
    /// let max = Engine::cpu().segments(floor(0))?;
    /// assert_eq!(max.reduce_rows_with(&[1, 2, 3, 4], 2, floor)?, [2, 5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reduce_rows_with<I: Input<Op::Item> + ?Sized>(
        &self,
        items: &I,
        n: u64,
        operator: impl Fn(u64) -> Op + Sync,
    ) -> Result<Vec<Op::Output>, Error> {
        let layout = rows_of(items.source()?.count(), n)?;
        let mut results = room(layout.segments())?;
        match &self.place {
            Place::Cpu => {
                let mut copy = Vec::new();
                let rows = Segments::rows(side_by_side(items, &mut copy)?, &layout);
                // SAFETY: the rows are the slice's.
                unsafe { cpu::reduce_segments(Operators::Each(&operator), rows, &mut results) }
            }
            _ => self.reduce_rows_own(items, &layout, &operator, &mut results)?,
        }
        Ok(results)
    }

    /// Reduces an array of any shape and strides in host memory; `first` is the item at index 0 of every axis.
    ///
    /// # Errors
    ///
    /// [`Error::HostMemory`].
    ///
    /// # Safety
    ///
    /// Every item that the layout leads to lies in memory that may be read, and is not written meanwhile. An array
    /// without segments, or whose segments are empty, has none.
    ///
    /// ```
    /// use warpfold_host::{Engine, segments::Layout};
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sum = Engine::cpu().segments(Sum::<i32>::new())?;
    /// let items = [1, 2, 3, 10, 20, 30];
    /// let columns = Layout::new(&[2, 3], &[3, 1], &[0])?;
    /// // SAFETY: two rows of three items.
    /// assert_eq!(unsafe { sum.reduce_layout(items.as_ptr(), &columns)? }, [11, 22, 33]);
    /// # Ok(())
    /// # }
    /// ```
    pub unsafe fn reduce_layout(
        &self,
        first: *const Op::Item,
        layout: &Layout,
    ) -> Result<Vec<Op::Output>, Error> {
        // SAFETY: the caller's promise.
        unsafe { self.collect(Segments::Regular { first, layout }) }
    }

    /// [`reduce_layout`](SegmentReducer::reduce_layout) into a slice with a place for each segment.
    ///
    /// # Errors
    ///
    /// [`Error::OutputLength`].
    ///
    /// # Safety
    ///
    /// As there.
    pub unsafe fn reduce_layout_into(
        &self,
        first: *const Op::Item,
        layout: &Layout,
        results: &mut [Op::Output],
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.run(Work::Segments(Segments::Regular { first, layout }), results) }
    }

    /// Reduces segments of any lengths.
    ///
    /// # Errors
    ///
    /// [`Error::SegmentOutOfRange`] with the first segment that does not lie within the array, [`Error::HostMemory`],
    /// [`Error::NeedsCuda`] for device memory on the host.
    ///
    /// ```
    /// use warpfold_host::{Engine, segments::SegmentPlan};
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sum = Engine::cpu().segments(Sum::<u64>::new())?;
    /// let by_key = SegmentPlan::from_keys(&["a", "a", "b"]);
    /// assert_eq!(sum.reduce_segments(&[1, 2, 3], &by_key)?, [3, 3]);
    /// let error = sum.reduce_segments(&[1, 2], &by_key).unwrap_err();
    /// assert_eq!(error.to_string(), "segment 1 is 2..3, beyond the end of the array, which has 2 items");
    /// # Ok(())
    /// # }
    /// ```
    pub fn reduce_segments<I: Input<Op::Item> + ?Sized>(
        &self,
        items: &I,
        plan: &SegmentPlan,
    ) -> Result<Vec<Op::Output>, Error> {
        let mut results = room(plan.segments())?;
        // SAFETY: the segments are those of the items, which are borrowed.
        unsafe { self.run(Work::Of(items.source()?, plan), &mut results)? };
        Ok(results)
    }

    /// [`reduce_segments`](SegmentReducer::reduce_segments) into a slice with a place for each segment.
    ///
    /// # Errors
    ///
    /// As there, and [`Error::OutputLength`].
    pub fn reduce_segments_into<I: Input<Op::Item> + ?Sized>(
        &self,
        items: &I,
        plan: &SegmentPlan,
        results: &mut [Op::Output],
    ) -> Result<(), Error> {
        // SAFETY: the segments are those of the items, which are borrowed.
        unsafe { self.run(Work::Of(items.source()?, plan), results) }
    }

    /// # Safety
    ///
    /// As for [`run`](SegmentReducer::run).
    unsafe fn collect(&self, segments: Segments<'_, Op::Item>) -> Result<Vec<Op::Output>, Error> {
        let mut results = room(segments.count())?;
        // SAFETY: the caller's promise.
        unsafe { self.run(Work::Segments(segments), &mut results)? };
        Ok(results)
    }

    /// Reduces segments to a result each.
    ///
    /// # Safety
    ///
    /// Every item that the segments lead to may be read, and is not written meanwhile.
    unsafe fn run(&self, work: Work<'_, Op::Item>, results: &mut [Op::Output]) -> Result<(), Error> {
        let (places, count) = (results.as_mut_ptr(), results.len());
        let identity = self.op.identity();
        let on_host = |segments: Segments<'_, Op::Item>, numbers: Option<&[u64]>| {
            // SAFETY: the slice's own places, which nobody else uses meanwhile; the caller's promise.
            unsafe {
                let results = std::slice::from_raw_parts_mut(places, count);
                cpu::reduce_numbered(Operators::Same(&self.op), segments, numbers, results);
            }
        };
        let job = Job {
            engine: &self.engine,
            settings: self.settings,
            place: &self.place,
            op: Erased::of(&self.op),
            identity: bytes_of(&identity),
            places: places.cast(),
            count,
            on_host: &on_host,
        };
        // SAFETY: the place is this operator's, and so are identity and places; the caller's promise.
        unsafe { job.run(work) }
    }
}

/// What is to be reduced.
enum Work<'a, T> {
    /// Segments in host memory.
    Segments(Segments<'a, T>),
    /// Segments of any lengths of items wherever they are.
    Of(Source<'a, T>, &'a SegmentPlan),
}

/// Reduces segments on the host: all, or some of more, by their numbers.
type OnHost<'a, T> = dyn Fn(Segments<'_, T>, Option<&[u64]>) + 'a;

/// A reducer and places for its results as those see them that know its items only: compiled once for each type of items, not for
/// each operator.
struct Job<'a, T> {
    engine: &'a Engine,
    settings: SegmentSettings,
    place: &'a Place,
    op: Erased<'a>,
    identity: &'a [MaybeUninit<u8>],
    /// Places for `count` results.
    places: *mut MaybeUninit<u8>,
    count: usize,
    on_host: &'a OnHost<'a, T>,
}

impl<T: Plain> Job<'_, T> {
    /// # Safety
    ///
    /// The place is the operator's, `identity` one of its accumulators, and the places are for its outputs and not used otherwise.
    /// Every item that the segments lead to may be read, and is not written meanwhile.
    unsafe fn run(&self, work: Work<'_, T>) -> Result<(), Error> {
        let bytes = self.count * self.op.types.output_bytes;
        // SAFETY: the places' own bytes; the host writes there only when the slice is no longer used.
        let results = unsafe { std::slice::from_raw_parts_mut(self.places, bytes) };
        let mut copy = Vec::new();
        let segments = match work {
            Work::Segments(segments) => segments,
            Work::Of(items, plan) => {
                #[cfg(feature = "cuda")]
                if let (Source::Device(view), Place::Cuda(launcher)) = (&items, self.place) {
                    plan.check(view.len())?;
                    has_room(plan.segments(), self.count)?;
                    // SAFETY: the view's items, which are borrowed until the wait.
                    return unsafe {
                        launcher.reduce_irregular_at(self.op, (view.address(), view.len()), plan, results)
                    };
                }
                Segments::irregular(copied_if_apart(items, &mut copy)?, plan)?
            }
        };
        has_room(segments.count(), self.count)?;
        let Some(elsewhere) = self.place.elsewhere() else {
            (self.on_host)(segments, None);
            return Ok(());
        };
        let limit = self.engine.device_bytes();
        // SAFETY: the caller's promise.
        let left = unsafe {
            elsewhere.run(self.op, self.identity, segments.lying(), self.settings, limit, results)?
        };
        // More than fits into the device's memory; the bits are the same.
        match (&left, segments) {
            (Left::Nothing, _) => {}
            (Left::Some { plan, numbers }, Segments::Irregular { items, .. }) => {
                (self.on_host)(Segments::irregular(items, plan)?, Some(numbers));
            }
            (_, segments) => (self.on_host)(segments, None),
        }
        Ok(())
    }
}

/// The items side by side on the host; strided ones are copied.
pub(crate) fn side_by_side<'a, T: Plain, I: Input<T> + ?Sized>(
    input: &'a I,
    copy: &'a mut Vec<T>,
) -> Result<&'a [T], Error> {
    copied_if_apart(input.source()?, copy)
}

fn copied_if_apart<'a, T: Plain>(source: Source<'a, T>, copy: &'a mut Vec<T>) -> Result<&'a [T], Error> {
    match source {
        Source::Host(items) => Ok(items),
        Source::Strided(items) => {
            let len = items.len();
            let needed = len.saturating_mul(size_of::<T>() as u64);
            copy.try_reserve_exact(len as usize).map_err(|_| Error::HostMemory { needed })?;
            let mut piece = Vec::new();
            for start in (0..len).step_by(1 << 14) {
                copy.extend_from_slice(items.run(start..len.min(start + (1 << 14)), &mut piece));
            }
            Ok(copy)
        }
        #[cfg(feature = "cuda")]
        Source::Device(_) => Err(Error::NeedsCuda { what: "device memory" }),
    }
}

/// The rows of so many items.
fn rows_of(items: u64, n: u64) -> Result<Layout, Error> {
    if n == 0 || !items.is_multiple_of(n) {
        return Err(Error::RaggedRows { items, n });
    }
    Ok(Layout::rows(items / n, n))
}

fn has_room(segments: u64, room: usize) -> Result<(), Error> {
    let room = room as u64;
    if room == segments { Ok(()) } else { Err(Error::OutputLength { segments, room }) }
}

/// Memory for so many results.
pub(crate) fn room<T: Plain>(segments: u64) -> Result<Vec<T>, Error> {
    const { T::LAYOUT };
    let error = Error::HostMemory { needed: segments.saturating_mul(size_of::<T>() as u64) };
    let len = usize::try_from(segments).map_err(|_| error.clone())?;
    let allocation = Allocation::array::<T>(len).map_err(|_| error.clone())?;
    if allocation.size() == 0 {
        return Ok(vec![warpfold_monoid::zeroed(); len]);
    }
    // Pages of the system's own, which are zero: nothing is written twice.
    // SAFETY: of a size that is not zero.
    let first = unsafe { alloc::alloc_zeroed(allocation) }.cast::<T>();
    if first.is_null() {
        return Err(error);
    }
    // SAFETY: allocated as a vector's memory is; zero bytes are a value of every plain type.
    Ok(unsafe { Vec::from_raw_parts(first, len, len) })
}
