//! Scans: the running results of an array, of each row of many, along any axis, of segments of any lengths.
//!
//! Result `i` of an inclusive scan is the reduction of items `0..=i`, of an exclusive one that of items `0..i`; of a reverse
//! scan, of the items from `i` on, in the order in which they stand. **Its bits depend on those items and the operator
//! alone**: not on what follows them, nor on the backend, the launch or its timing ([`warpfold_monoid::scan`] says in which
//! order they combine). An exclusive scan has the bits of the inclusive one, a position later.
//!
//! ```
//! use warpfold_host::Engine;
//! use warpfold_monoid::{Max, Sum};
//!
//! # fn main() -> Result<(), warpfold_host::Error> {
//! let engine = Engine::cpu();
//! let sum = engine.scanner(Sum::<u8, u64>::new())?;
//! assert_eq!(sum.scan(&[200, 100, 50])?, [200, 300, 350]);
//! assert_eq!(sum.exclusive().scan(&[200, 100, 50])?, [0, 200, 300]);
//! assert_eq!(engine.scanner(Max::<i32>::new())?.reverse().scan(&[1, 5, 2])?, [5, 5, 2]);
//! # Ok(())
//! # }
//! ```

use std::{fmt, ptr};

use warpfold_gpu_kernels::scan::{
    Rows, ScanParams,
    columns::ColumnParams,
    segments::{Packing, SegmentParams},
};
use warpfold_monoid::{Monoid, Plain, scan::Form};

use crate::{
    Engine, Error, Input, SegmentPlan, cpu,
    plan::scans::{Bounds, Count, ScanPlan, Strategy, Work},
    segments::{room, side_by_side},
    sim::ScanSimulator,
};
#[cfg(feature = "cuda")]
use crate::{Source, cuda::ScanLauncher};

mod by_key;
#[cfg(feature = "cuda")]
mod device;
#[cfg(feature = "ndarray")]
mod nd;

pub use by_key::KeyScanner;

/// Scans arrays with one operator on one engine. Cheap to clone, usable from any thread.
///
/// Made by [`Engine::scanner`], inclusive and from the first item on; [`exclusive`](Scanner::exclusive),
/// [`reverse`](Scanner::reverse) and [`with_initial`](Scanner::with_initial) make others of it.
#[derive(Clone)]
pub struct Scanner<Op: Monoid> {
    engine: Engine,
    op: Op,
    setting: Setting<Op::Acc>,
    place: Place,
}

/// Where it runs, with what it needs there at hand.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Cpu,
    Sim(ScanSimulator),
    #[cfg(feature = "cuda")]
    Cuda(ScanLauncher),
}

/// Which scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<A> {
    pub(crate) form: Form,
    /// What stands before the first item.
    pub(crate) initial: Option<A>,
}

/// The memory that a launch works on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory<T, R> {
    pub(crate) input: *const T,
    pub(crate) output: *mut R,
    pub(crate) counter: *mut u64,
    /// Room for as many pairs as the plan says, or more.
    pub(crate) records: *mut [u64; 2],
    pub(crate) capacity: u64,
}

/// The parameters of a launch.
pub(crate) enum Params<Op: Monoid> {
    Tiles(ScanParams<Op>),
    Segments(SegmentParams<Op>),
    Columns(ColumnParams<Op>),
}

impl<Op: Monoid> Params<Op> {
    /// The most bytes that they have.
    pub(crate) const BYTES: usize = {
        let (a, b) = (size_of::<ScanParams<Op>>(), size_of::<SegmentParams<Op>>());
        let (most, c) = (if a > b { a } else { b }, size_of::<ColumnParams<Op>>());
        if c > most { c } else { most }
    };

    /// Where they lie.
    pub(crate) fn as_ptr(&self) -> *const u8 {
        match self {
            Params::Tiles(params) => ptr::from_ref(params).cast(),
            Params::Segments(params) => ptr::from_ref(params).cast(),
            Params::Columns(params) => ptr::from_ref(params).cast(),
        }
    }
}

impl<A: Plain> Setting<A> {
    /// The parameters of a launch that has been planned.
    pub(crate) fn params<Op: Monoid<Acc = A>>(
        &self,
        op: Op,
        work: &Work<'_>,
        plan: &ScanPlan,
        memory: Memory<Op::Item, Op::Output>,
    ) -> Params<Op> {
        let Memory { input, output, counter, records, capacity } = memory;
        let (exclusive, has_initial) = (self.form.exclusive.into(), self.initial.is_some().into());
        let initial = self.initial.unwrap_or_else(|| op.identity());
        let segments = |len, n, bounds: Option<Bounds>, packing: Packing, segments| SegmentParams {
            input,
            output,
            len,
            offsets: bounds.map_or(ptr::null(), |it| ptr::with_exposed_provenance(it.offsets as usize)),
            count: match bounds {
                Some(Bounds { count: Count::At(address), .. }) => {
                    ptr::with_exposed_provenance(address as usize)
                }
                _ => ptr::null(),
            },
            segments,
            n,
            counter,
            records,
            capacity,
            rows: packing.rows,
            exclusive,
            has_initial,
            unit: packing.unit,
            initial,
            op,
        };
        match (*work, plan.strategy) {
            (Work::Segments { len, segments: bounds }, strategy) => {
                let count = if let Count::Known(count) = bounds.count { count } else { 0 };
                let rows = if let Strategy::Flags(scouts) = strategy { scouts } else { 0 };
                Params::Segments(segments(len, 0, Some(bounds), Packing { rows, unit: 0 }, count))
            }
            (Work::Lines(lines), Strategy::Rows(packing)) => {
                Params::Segments(segments(lines.items(), lines.n, None, packing, lines.count))
            }
            (Work::Lines(lines), Strategy::Columns(shape)) => Params::Columns(ColumnParams {
                input,
                output,
                n: lines.n,
                inner: lines.rows.inner,
                outer: lines.count / lines.rows.inner,
                counter,
                records,
                capacity,
                shape,
                windows: plan.tiles,
                exclusive,
                has_initial,
                initial,
                op,
            }),
            (Work::Lines(lines), _) => Params::Tiles(ScanParams {
                input,
                output,
                n: lines.n,
                rows: lines.rows,
                counter,
                records,
                capacity,
                tiles: plan.tiles,
                total: plan.total,
                exclusive,
                has_initial,
                initial,
                op,
            }),
        }
    }
}

/// Rows of an array, and where they lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    /// Items of a row.
    pub(crate) n: u64,
    /// Rows.
    pub(crate) count: u64,
    /// In items.
    pub(crate) rows: Rows,
}

impl Lines {
    /// Rows of `n` items side by side.
    pub(crate) fn rows(count: u64, n: u64) -> Lines {
        Lines::inner(count, n, 1)
    }

    /// The lines along an axis of `n` items of an array in C's order, `inner` items side by side at each of its positions.
    pub(crate) fn inner(count: u64, n: u64, inner: u64) -> Lines {
        let inner = inner.max(1);
        let rows = Rows {
            stride: inner as i64,
            inner_stride: 1,
            outer_stride: n.saturating_mul(inner) as i64,
            inner,
        };
        Lines { n, count, rows }
    }

    /// The same of so many items in all.
    pub(crate) fn of(items: u64, n: u64, inner: u64) -> Result<Lines, Error> {
        match n.checked_mul(inner) {
            Some(set) if set > 0 && items.is_multiple_of(set) => Ok(Lines::inner(items / n, n, inner)),
            _ => Err(Error::RaggedRows { items, n: n.saturating_mul(inner) }),
        }
    }

    /// Do they lie side by side, and their items?
    pub(crate) fn are_rows(&self) -> bool {
        self.n == 1 || self.rows.inner == 1
    }

    /// All items.
    pub(crate) fn items(&self) -> u64 {
        self.n.saturating_mul(self.count)
    }

    /// Where row `k` starts.
    pub(crate) fn start(&self, k: u64) -> i64 {
        let Rows { inner_stride, outer_stride, inner, .. } = self.rows;
        (k / inner) as i64 * outer_stride + (k % inner) as i64 * inner_stride
    }
}

impl<Op: Monoid> fmt::Debug for Scanner<Op> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scanner<{}> on {}", std::any::type_name::<Op>(), self.engine.backend())
    }
}

impl<Op: Monoid> Scanner<Op> {
    pub(crate) fn new(engine: Engine, op: Op, place: Place) -> Self {
        Scanner { engine, op, setting: Setting { form: Form::default(), initial: None }, place }
    }

    /// The same, but each result leaves out the item at its own position. What nothing stands before has the operator's
    /// value of nothing, [`finish_empty`](Monoid::finish_empty), unless there is a [start value](Scanner::with_initial).
    #[must_use = "the scanner itself does not change"]
    pub fn exclusive(&self) -> Self {
        let mut scanner = self.clone();
        scanner.setting.form.exclusive = true;
        scanner
    }

    /// The same from the last item to the first: each result is that of the items from its position on, which combine in
    /// the order in which they stand.
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::{Affine, Compose};
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let compose = Engine::cpu().scanner(Compose::<i32>::new())?.reverse();
    /// let (double, increment) = (Affine { scale: 2, shift: 0 }, Affine { scale: 1, shift: 1 });
    /// // First doubled, then incremented.
    /// assert_eq!(compose.scan(&[double, increment])?, [Affine { scale: 2, shift: 1 }, increment]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "the scanner itself does not change"]
    pub fn reverse(&self) -> Self {
        let mut scanner = self.clone();
        scanner.setting.form.reverse = true;
        scanner
    }

    /// The same with a start value, such as an earlier scan's last accumulator, that stands before the first item of each
    /// array or row (in reverse scans behind the last).
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let offsets = Engine::cpu().scanner(Sum::<u64>::new())?.exclusive().with_initial(1000);
    /// assert_eq!(offsets.scan(&[5, 7, 9])?, [1000, 1005, 1012]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "the scanner itself does not change"]
    pub fn with_initial(&self, initial: Op::Acc) -> Self {
        let mut scanner = self.clone();
        scanner.setting.initial = Some(initial);
        scanner
    }

    /// Which scan it does.
    pub fn form(&self) -> Form {
        self.setting.form
    }

    /// The operator.
    pub fn operator(&self) -> &Op {
        &self.op
    }

    /// The engine that it runs on.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Scans an array, and waits for the results: one for each item.
    ///
    /// Device memory is scanned after what was enqueued on the context's default stream, as in
    /// [`Reducer::reduce`](crate::Reducer::reduce).
    ///
    /// # Errors
    ///
    /// [`Error::HostMemory`], [`Error::NeedsCuda`] for device memory on the host. On a GPU and in the simulator
    /// [`Error::GridTooLarge`], [`Error::BlockTooLarge`], [`Error::Simulator`], or what the driver says.
    pub fn scan<I: Input<Op::Item> + ?Sized>(&self, input: &I) -> Result<Vec<Op::Output>, Error> {
        self.collect(input, |items| Ok(Lines::rows(1, items)))
    }

    /// [`scan`](Scanner::scan) of host memory into a slice with a place for each result.
    ///
    /// # Errors
    ///
    /// As there, and [`Error::OutputLength`].
    pub fn scan_into<I: Input<Op::Item> + ?Sized>(
        &self,
        input: &I,
        results: &mut [Op::Output],
    ) -> Result<(), Error> {
        let mut copy = Vec::new();
        let items = side_by_side(input, &mut copy)?;
        self.slice(items, &Lines::rows(1, items.len() as u64), results)
    }

    /// Scans each row of `n` items of an array whose rows lie side by side. A row has the bits of being scanned alone.
    ///
    /// # Errors
    ///
    /// As for [`scan`](Scanner::scan), and [`Error::RaggedRows`].
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sum = Engine::cpu().scanner(Sum::<i32>::new())?;
    /// assert_eq!(sum.scan_rows(&[1, 2, 3, 10, 20, 30], 3)?, [1, 3, 6, 10, 30, 60]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scan_rows<I: Input<Op::Item> + ?Sized>(
        &self,
        input: &I,
        n: u64,
    ) -> Result<Vec<Op::Output>, Error> {
        self.scan_lines(input, n, 1)
    }

    /// Scans each line along an axis of `n` items of an array in C's order, whose positions on the axis are `inner` items
    /// apart: rows with an `inner` of 1, columns of a matrix with the number of its columns.
    ///
    /// # Errors
    ///
    /// As for [`scan_rows`](Scanner::scan_rows).
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sum = Engine::cpu().scanner(Sum::<i32>::new())?;
    /// assert_eq!(sum.scan_lines(&[1, 2, 3, 10, 20, 30], 2, 3)?, [1, 2, 3, 11, 22, 33]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scan_lines<I: Input<Op::Item> + ?Sized>(
        &self,
        input: &I,
        n: u64,
        inner: u64,
    ) -> Result<Vec<Op::Output>, Error> {
        self.collect(input, |items| Lines::of(items, n, inner))
    }

    /// Scans each of many segments of any lengths: their results follow one another in the segments' order. A segment has the
    /// bits of being scanned alone.
    ///
    /// On a GPU and in the simulator this is one launch for all segments that follow one another without gaps, if the
    /// operator has kernels for [many lines](warpfold_gpu_kernels::scan_line_kernels), else one for each run of them that
    /// have one length.
    ///
    /// # Errors
    ///
    /// As for [`scan`](Scanner::scan), and [`Error::SegmentOutOfRange`].
    ///
    /// ```
    /// use warpfold_host::{Engine, SegmentPlan};
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sum = Engine::cpu().scanner(Sum::<i32>::new())?;
    /// let by_key = SegmentPlan::from_keys(&["a", "a", "b", "b", "b"]);
    /// assert_eq!(sum.scan_segments(&[1, 2, 3, 4, 5], &by_key)?, [1, 3, 3, 7, 12]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scan_segments<I: Input<Op::Item> + ?Sized>(
        &self,
        input: &I,
        plan: &SegmentPlan,
    ) -> Result<Vec<Op::Output>, Error> {
        let mut copy = Vec::new();
        let items = side_by_side(input, &mut copy)?;
        plan.check(items.len() as u64)?;
        let total = (0..plan.segments()).fold(0u64, |sum, k| {
            let range = plan.range(k);
            sum.saturating_add(range.end - range.start)
        });
        let mut results = room(total)?;
        let (mut k, mut at) = (0, 0);
        let at_once = self.scans_segments();
        while k < plan.segments() {
            let first = plan.range(k);
            let n = first.end - first.start;
            let (mut count, mut end) = (1, first.end);
            while k + count < plan.segments() {
                let next = plan.range(k + count);
                if next.start != end || !at_once && next.end - next.start != n {
                    break;
                }
                (count, end) = (count + 1, next.end);
            }
            let (from, len) = (first.start as usize, (end - first.start) as usize);
            let (items, results) = (&items[from..from + len], &mut results[at..at + len]);
            if !at_once || count == 1 {
                self.slice(items, &Lines::rows(count, n), results)?;
            } else if len > 0 {
                let offsets = (k..k + count).map(|k| plan.range(k).start).chain([end]);
                let offsets: Vec<u64> = offsets.map(|offset| offset - first.start).collect();
                self.segments(items, &offsets, results)?;
            }
            (k, at) = (k + count, at + len);
        }
        Ok(results)
    }

    /// Are there kernels for segments of any lengths?
    fn scans_segments(&self) -> bool {
        match &self.place {
            Place::Cpu => false,
            Place::Sim(simulator) => simulator.scans_segments::<Op>(),
            #[cfg(feature = "cuda")]
            Place::Cuda(launcher) => launcher.scans_segments::<Op>(),
        }
    }

    /// Scans all segments of a slice, which they fill.
    fn segments(&self, items: &[Op::Item], offsets: &[u64], results: &mut [Op::Output]) -> Result<(), Error> {
        match &self.place {
            Place::Cpu => unreachable!("the CPU takes them one by one"),
            Place::Sim(simulator) => simulator.segments(self.op, &self.setting, items, offsets, results),
            #[cfg(feature = "cuda")]
            Place::Cuda(launcher) => {
                let bytes = (size_of_val(items) + size_of_val(results)) as u64;
                let scanned = self
                    .engine
                    .check_device_bytes(bytes)
                    .and_then(|()| launcher.segments(self.op, &self.setting, items, offsets, results));
                if let Err(Error::DeviceMemory { .. }) = scanned {
                    // The same bits.
                    for range in offsets.windows(2).map(|pair| pair[0] as usize..pair[1] as usize) {
                        let lines = Lines::rows(1, range.len() as u64);
                        if !range.is_empty() {
                            self.on_host(&items[range.clone()], &lines, &mut results[range]);
                        }
                    }
                    return Ok(());
                }
                scanned
            }
        }
    }

    /// Scans what comes in chunks, of any lengths: for each, the results of its items. All of them together are those of
    /// [`scan`](Scanner::scan) of all items, to the bit, however many will come.
    ///
    /// It runs on the host's cores on every backend: items and results would have to be copied both ways, which takes longer than to scan
    /// them. Up to a tile of items ([`Tiling`](warpfold_monoid::scan::Tiling)) is kept, and scanned anew with the next chunk: chunks of some
    /// tiles or more are scanned fastest.
    ///
    /// # Errors
    ///
    /// [`Error::ReverseOfChunks`] of a [reverse](Scanner::reverse) scan; each of the iterator's items is [`Error::HostMemory`] if there is no
    /// memory for its results.
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sum = Engine::cpu().scanner(Sum::<i32>::new())?;
    /// let scanned: Result<Vec<_>, _> = sum.scan_chunks([vec![1, 2], vec![3], vec![4, 5]])?.collect();
    /// assert_eq!(scanned?, [vec![1, 3], vec![6], vec![10, 15]]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scan_chunks<C>(
        &self,
        chunks: C,
    ) -> Result<impl Iterator<Item = Result<Vec<Op::Output>, Error>> + use<C, Op>, Error>
    where
        C: IntoIterator<Item: AsRef<[Op::Item]>>,
    {
        if self.setting.form.reverse {
            return Err(Error::ReverseOfChunks);
        }
        let (op, mut running) = (self.op, cpu::scans::Running::new(&self.op, &self.setting));
        Ok(chunks.into_iter().map(move |chunk| {
            let chunk = chunk.as_ref();
            let mut results = room(chunk.len() as u64)?;
            running.push(&op, chunk, &mut results);
            Ok(results)
        }))
    }

    fn collect<I: Input<Op::Item> + ?Sized>(
        &self,
        input: &I,
        lines: impl Fn(u64) -> Result<Lines, Error>,
    ) -> Result<Vec<Op::Output>, Error> {
        #[cfg(feature = "cuda")]
        if let (Source::Device(view), Place::Cuda(launcher)) = (input.source()?, &self.place) {
            let mut results = room(view.len())?;
            let lines = lines(view.len())?;
            // SAFETY: nothing is copied; the lines are the array's, which is borrowed until the wait.
            unsafe {
                launcher.on_device(self.op, &self.setting, None, view.address(), &lines, &mut results)?
            };
            return Ok(results);
        }
        let mut copy = Vec::new();
        let items = side_by_side(input, &mut copy)?;
        let mut results = room(items.len() as u64)?;
        self.slice(items, &lines(items.len() as u64)?, &mut results)?;
        Ok(results)
    }

    /// Scans the lines of a slice, all of whose items they are.
    fn slice(&self, items: &[Op::Item], lines: &Lines, results: &mut [Op::Output]) -> Result<(), Error> {
        let (segments, room) = (items.len() as u64, results.len() as u64);
        if segments != room {
            return Err(Error::ResultsLength { items: segments, room });
        }
        if lines.items() == 0 {
            return Ok(());
        }
        match &self.place {
            Place::Cpu => {
                self.on_host(items, lines, results);
                Ok(())
            }
            Place::Sim(simulator) => simulator.scan(self.op, &self.setting, Some(items), lines, results),
            #[cfg(feature = "cuda")]
            Place::Cuda(launcher) => {
                let bytes = (size_of_val(items) + size_of_val(results)) as u64;
                // SAFETY: the slice's items, which are copied.
                let scanned = self.engine.check_device_bytes(bytes).and_then(|()| unsafe {
                    launcher.on_device(self.op, &self.setting, Some(items), 0, lines, results)
                });
                if let Err(Error::DeviceMemory { .. }) = scanned {
                    // The same bits.
                    self.on_host(items, lines, results);
                    return Ok(());
                }
                scanned
            }
        }
    }

    /// Scans the lines of as many items as there are results.
    fn on_host(&self, items: &[Op::Item], lines: &Lines, results: &mut [Op::Output]) {
        assert!(lines.items() == items.len() as u64 && items.len() == results.len());
        let (input, output) = (items.as_ptr(), results.as_mut_ptr());
        // SAFETY: the lines are the slices'.
        unsafe { cpu::scans::scan(&self.op, &self.setting, lines, input, output) };
    }
}

impl<T, Op: Monoid<Item = T, Output = T>> Scanner<Op> {
    /// Scans a slice, whose items the results replace.
    ///
    /// # Errors
    ///
    /// As for [`scan`](Scanner::scan).
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Min;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let mut items = [3, 1, 2];
    /// Engine::cpu().scanner(Min::<i32>::new())?.scan_in_place(&mut items)?;
    /// assert_eq!(items, [3, 1, 1]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scan_in_place(&self, items: &mut [T]) -> Result<(), Error> {
        let lines = Lines::rows(1, items.len() as u64);
        if items.is_empty() {
            return Ok(());
        }
        match &self.place {
            Place::Cpu => {
                self.in_place_on_host(items);
                Ok(())
            }
            Place::Sim(simulator) => simulator.scan(self.op, &self.setting, None, &lines, items),
            #[cfg(feature = "cuda")]
            Place::Cuda(launcher) => {
                let scanned = self
                    .engine
                    .check_device_bytes(size_of_val(items) as u64)
                    .and_then(|()| launcher.in_place(self.op, &self.setting, &lines, items));
                if let Err(Error::DeviceMemory { .. }) = scanned {
                    // The same bits.
                    self.in_place_on_host(items);
                    return Ok(());
                }
                scanned
            }
        }
    }

    fn in_place_on_host(&self, items: &mut [T]) {
        let (lines, output) = (Lines::rows(1, items.len() as u64), items.as_mut_ptr());
        // SAFETY: the slice's own places, item for item.
        unsafe { cpu::scans::scan(&self.op, &self.setting, &lines, output, output) };
    }
}
