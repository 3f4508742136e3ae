//! Scans on a GPU.

use warpfold_gpu_kernels::export::Family;
use warpfold_monoid::{
    Monoid, Plain,
    keyed::{Equality, RunEnds, Runs},
};

use super::{KeyScanner, Lines, Place, Scanner};
use crate::{
    Error,
    cuda::{DeviceInput, DeviceOutput, DeviceView, RunLauncher, ScanLauncher, StreamRef},
    keys::same_lengths,
    plan::scans::{Bounds, Count, Work},
};

impl<Op: Monoid> Scanner<Op> {
    /// Enqueues a scan of device memory on a stream; result `k` goes to item `k` of `output`.
    ///
    /// Neither waits nor, once a stream has had one that needs as much room, allocates. A stream that is being captured
    /// takes workspaces that [`warm_up`](Scanner::warm_up) laid ready; arrays of one tile need none.
    ///
    /// # Errors
    ///
    /// As for [`scan`](Scanner::scan), [`Error::NeedsCuda`] without a GPU, [`Error::ResultsLength`],
    /// [`Error::Misaligned`], and [`Error::WarmUpFirst`]. After an error nothing has been enqueued.
    ///
    /// # Safety
    ///
    /// As for [`Reducer::reduce_into`](crate::Reducer::reduce_into): until the work has finished (in every run of the
    /// graph, if the stream is being captured) the array stays alive and is not written, and the output stays alive and is
    /// not used otherwise. They do not overlap.
    ///
    /// ```no_run
    /// use cust::stream::{Stream, StreamFlags};
    /// use warpfold_host::{Engine, cuda::DeviceArray};
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::cuda(0)?;
    /// let sum = engine.scanner(Sum::<f32>::new())?;
    /// let items = DeviceArray::from_slice(&engine, &[1.0f32, 2.0, 3.0])?;
    /// let mut sums = DeviceArray::from_slice(&engine, &[0.0f32; 3])?;
    /// let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    /// // SAFETY: both are left alone until the stream has been waited for.
    /// unsafe { sum.enqueue(&items, &mut sums, &stream)? };
    /// stream.synchronize()?;
    /// assert_eq!(sums.to_vec()?, [1.0, 3.0, 6.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub unsafe fn enqueue<'s, I, O>(
        &self,
        input: &I,
        output: &mut O,
        stream: impl Into<StreamRef<'s>>,
    ) -> Result<(), Error>
    where
        I: DeviceInput<Op::Item> + ?Sized,
        O: DeviceOutput<Op::Output> + ?Sized,
    {
        let n = input.device_view().len();
        // SAFETY: the caller's promise.
        unsafe { self.enqueue_lines(input, output, &Lines::rows(1, n), stream.into()) }
    }

    /// [`enqueue`](Scanner::enqueue) for each line along an axis of `n` items of an array in C's order, whose positions on
    /// the axis are `inner` items apart: rows with an `inner` of 1, columns of a matrix with the number of its columns.
    ///
    /// # Errors
    ///
    /// As there, and [`Error::RaggedRows`].
    ///
    /// # Safety
    ///
    /// As there.
    pub unsafe fn enqueue_axis<'s, I, O>(
        &self,
        input: &I,
        n: u64,
        inner: u64,
        output: &mut O,
        stream: impl Into<StreamRef<'s>>,
    ) -> Result<(), Error>
    where
        I: DeviceInput<Op::Item> + ?Sized,
        O: DeviceOutput<Op::Output> + ?Sized,
    {
        let lines = Lines::of(input.device_view().len(), n, inner)?;
        // SAFETY: the caller's promise.
        unsafe { self.enqueue_lines(input, output, &lines, stream.into()) }
    }

    /// # Safety
    ///
    /// As for [`enqueue`](Scanner::enqueue).
    unsafe fn enqueue_lines<I, O>(
        &self,
        input: &I,
        output: &mut O,
        lines: &Lines,
        stream: StreamRef<'_>,
    ) -> Result<(), Error>
    where
        I: DeviceInput<Op::Item> + ?Sized,
        O: DeviceOutput<Op::Output> + ?Sized,
    {
        let launcher = self.scan_launcher()?;
        let (input, output) = (input.device_view(), output.device_view_mut());
        if output.len() < input.len() {
            return Err(Error::ResultsLength { items: input.len(), room: output.len() });
        }
        let (from, to) = (input.address(), output.address());
        // SAFETY: the caller's promise; the lines are the array's.
        unsafe { launcher.enqueue(self.op, &self.setting, from, to, &Work::Lines(lines), stream.raw) }
    }

    /// Enqueues a scan of segments of device memory, one launch whatever their lengths are; the result of item `k` goes to
    /// item `k` of `output`, and items that belong to no segment are not touched.
    ///
    /// Segment `k` is `offsets[k] .. offsets[k + 1]`, as in [`SegmentPlan::from_offsets`](crate::SegmentPlan::from_offsets);
    /// there is one more offset than segments. With a `count`, an array of one number, so many segments there are, and
    /// offsets behind the last one's end are not looked at: both may be what earlier work on the stream finds
    /// out.
    ///
    /// # Errors
    ///
    /// As for [`enqueue`](Scanner::enqueue), [`Error::NoOffsets`], and [`Error::NoKernel`] without
    /// [kernels for many lines](warpfold_gpu_kernels::scan_line_kernels), or for accumulators of more than 16 bytes.
    ///
    /// # Safety
    ///
    /// As for [`enqueue`](Scanner::enqueue), of the offsets and the count too. Offsets never decrease, none is more than
    /// the array's length, and there is one more than `count` says.
    pub unsafe fn enqueue_segments<'s, I, S, O>(
        &self,
        input: &I,
        offsets: &S,
        count: Option<DeviceView<'_, u64>>,
        output: &mut O,
        stream: impl Into<StreamRef<'s>>,
    ) -> Result<(), Error>
    where
        I: DeviceInput<Op::Item> + ?Sized,
        S: DeviceInput<u64> + ?Sized,
        O: DeviceOutput<Op::Output> + ?Sized,
    {
        let launcher = self.segment_launcher()?;
        let (input, output) = (input.device_view(), output.device_view_mut());
        let offsets = offsets.device_view();
        let known = offsets.len().checked_sub(1).ok_or(Error::NoOffsets)?;
        if output.len() < input.len() {
            return Err(Error::ResultsLength { items: input.len(), room: output.len() });
        }
        let count = match count {
            Some(count) if count.is_empty() => return Err(Error::NoOffsets),
            Some(count) => Count::At(count.address()),
            None if known == 0 => return Ok(()),
            None => Count::Known(known),
        };
        let segments = Bounds { offsets: offsets.address(), count };
        let work = Work::Segments { len: input.len(), segments };
        let (from, to) = (input.address(), output.address());
        // SAFETY: the caller's promise.
        unsafe { launcher.enqueue(self.op, &self.setting, from, to, &work, stream.into().raw) }
    }

    /// Enqueues a scan of device memory whose items the results replace.
    ///
    /// # Errors
    ///
    /// As for [`enqueue`](Scanner::enqueue).
    ///
    /// # Safety
    ///
    /// As there.
    pub unsafe fn enqueue_in_place<'s, O>(
        &self,
        array: &mut O,
        stream: impl Into<StreamRef<'s>>,
    ) -> Result<(), Error>
    where
        Op: Monoid<Output = <Op as Monoid>::Item>,
        O: DeviceOutput<Op::Item> + ?Sized,
    {
        let launcher = self.scan_launcher()?;
        let array = array.device_view_mut();
        let (at, lines) = (array.address(), Lines::rows(1, array.len()));
        // SAFETY: the caller's promise; item for item the same memory.
        unsafe { launcher.enqueue(self.op, &self.setting, at, at, &Work::Lines(&lines), stream.into().raw) }
    }

    /// Lays a workspace ready for one capture of scans of up to `n` items, of whatever shape, as
    /// [`Reducer::warm_up`](crate::Reducer::warm_up) does.
    ///
    /// # Errors
    ///
    /// [`Error::NeedsCuda`], [`Error::DeviceMemory`], or what the driver says.
    pub fn warm_up(&self, n: u64) -> Result<(), Error> {
        self.scan_launcher()?.warm_up::<Op>(n)
    }

    /// One that has kernels for segments of any lengths.
    fn segment_launcher(&self) -> Result<&ScanLauncher, Error> {
        let launcher = self.scan_launcher()?;
        if !launcher.scans_segments::<Op>() {
            return Err(self.engine.without_kernels::<Op>(Family::ScanLines));
        }
        Ok(launcher)
    }

    fn scan_launcher(&self) -> Result<&ScanLauncher, Error> {
        match &self.place {
            Place::Cuda(launcher) => Ok(launcher),
            _ => Err(Error::NeedsCuda { what: "device memory" }),
        }
    }
}

impl<K: Plain, Op: Monoid, E: Equality<K>> KeyScanner<K, Op, E> {
    /// Enqueues a scan of each run of keys and items in device memory; the result of item `k` goes to item `k` of `output`.
    ///
    /// Two launches, of which the first finds where runs end. Neither waits nor, once a stream has had one that needs as much room,
    /// allocates; 8 bytes for each item stay with the stream. A stream that is being captured takes workspaces that
    /// [`warm_up`](KeyScanner::warm_up) laid ready.
    ///
    /// # Errors
    ///
    /// As for [`Scanner::enqueue_segments`], and [`Error::ColumnLengths`] if there are not as many keys as items.
    ///
    /// # Safety
    ///
    /// As for [`Scanner::enqueue`], of the keys too.
    ///
    /// ```no_run
    /// use cust::stream::{Stream, StreamFlags};
    /// use warpfold_host::{Engine, cuda::DeviceArray};
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::cuda(0)?;
    /// let sum = engine.scanner(Sum::<f32>::new())?.by_key()?;
    /// let keys = DeviceArray::from_slice(&engine, &[7, 7, 3])?;
    /// let items = DeviceArray::from_slice(&engine, &[1.0f32, 2.0, 3.0])?;
    /// let mut sums = DeviceArray::from_slice(&engine, &[0.0f32; 3])?;
    /// let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    /// // SAFETY: all are left alone until the stream has been waited for.
    /// unsafe { sum.enqueue(&keys, &items, &mut sums, &stream)? };
    /// stream.synchronize()?;
    /// assert_eq!(sums.to_vec()?, [1.0, 3.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub unsafe fn enqueue<'s, I, V, O>(
        &self,
        keys: &I,
        items: &V,
        output: &mut O,
        stream: impl Into<StreamRef<'s>>,
    ) -> Result<(), Error>
    where
        I: DeviceInput<K> + ?Sized,
        V: DeviceInput<Op::Item> + ?Sized,
        O: DeviceOutput<Op::Output> + ?Sized,
    {
        let (runs, launcher) = self.launchers()?;
        let (keys, items, output) = (keys.device_view(), items.device_view(), output.device_view_mut());
        let n = items.len();
        same_lengths(keys.len(), n)?;
        if output.len() < n {
            return Err(Error::ResultsLength { items: n, room: output.len() });
        }
        let op = Runs::new(*self.runs.equality(), RunEnds);
        let at = (keys.address(), items.address(), output.address());
        let Scanner { op: each, setting, .. } = &self.scanner;
        // SAFETY: the caller's promise.
        unsafe { launcher.enqueue_runs(*each, setting, (runs, op), n, at, stream.into().raw) }
    }

    /// Lays workspaces ready for one capture of scans of up to `n` items, as [`Scanner::warm_up`] does.
    ///
    /// # Errors
    ///
    /// As there, and as for [`enqueue`](KeyScanner::enqueue).
    pub fn warm_up(&self, n: u64) -> Result<(), Error> {
        let (runs, launcher) = self.launchers()?;
        launcher.warm_up_runs::<K, E, Op>(runs, n)
    }

    fn launchers(&self) -> Result<(&RunLauncher, &ScanLauncher), Error> {
        let launcher = self.scanner.segment_launcher()?;
        Ok((self.runs.run_launcher()?, launcher))
    }
}
