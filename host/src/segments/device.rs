//! Segments of arrays on a GPU.

use warpfold_monoid::Monoid;

use super::{Layout, Place, Problem, SegmentPlan, SegmentReducer, room};
use crate::{
    Error,
    cuda::{DeviceInput, DeviceOutput, DeviceSegments, DeviceView, SegmentLauncher, StreamRef},
    erased::{Erased, bytes_of_all},
};

impl<Op: Monoid> SegmentReducer<Op> {
    /// Reduces segments of an array in device memory, and waits for the results. Item `first` of it is the one at index 0
    /// of every axis.
    ///
    /// It comes after what was enqueued on the context's default stream, as in [`Reducer::reduce`](crate::Reducer::reduce).
    ///
    /// # Errors
    ///
    /// [`Error::NeedsCuda`] without a GPU, [`Error::LayoutOutOfRange`], those of [`plan`](SegmentReducer::plan),
    /// [`Error::HostMemory`], or what the driver says.
    ///
    /// ```no_run
    /// use warpfold_host::{Engine, cuda::DeviceArray, segments::Layout};
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let engine = Engine::cuda(0)?;
    /// let sum = engine.segments(Sum::<f32>::new())?;
    /// let matrix = DeviceArray::from_slice(&engine, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// assert_eq!(sum.reduce_device(&matrix, 0, &Layout::new(&[2, 3], &[3, 1], &[0])?)?, [5.0, 7.0, 9.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reduce_device<I: DeviceInput<Op::Item> + ?Sized>(
        &self,
        input: &I,
        first: u64,
        layout: &Layout,
    ) -> Result<Vec<Op::Output>, Error> {
        let launcher = self.segment_launcher()?;
        let at = place(input.device_view(), first, layout)?;
        let mut results = room(layout.segments())?;
        // SAFETY: the layout leads to items of the array, which is borrowed until the wait.
        unsafe {
            launcher.reduce_at(
                Erased::of(&self.op),
                at,
                layout,
                self.settings,
                bytes_of_all(&mut results),
            )?;
        }
        Ok(results)
    }

    /// Enqueues a reduction of segments of device memory on a stream; result `k` goes to item `k` of `output`.
    ///
    /// Neither waits nor, once a stream has had one that needs as much room, allocates. A stream that is being captured
    /// takes workspaces that [`warm_up`](SegmentReducer::warm_up) laid ready; plans without counters need none.
    ///
    /// # Errors
    ///
    /// As for [`reduce_device`](SegmentReducer::reduce_device), [`Error::OutputLength`], and [`Error::WarmUpFirst`].
    ///
    /// # Safety
    ///
    /// As for [`Reducer::reduce_into`](crate::Reducer::reduce_into): until the work has finished (in every run of the
    /// graph, if the stream is being captured) the array stays alive and is not written, and the output stays alive and is
    /// not used otherwise.
    pub unsafe fn enqueue<'s, I, O>(
        &self,
        input: &I,
        first: u64,
        layout: &Layout,
        output: &mut O,
        stream: impl Into<StreamRef<'s>>,
    ) -> Result<(), Error>
    where
        I: DeviceInput<Op::Item> + ?Sized,
        O: DeviceOutput<Op::Output> + ?Sized,
    {
        let launcher = self.segment_launcher()?;
        let at = place(input.device_view(), first, layout)?;
        let output = output.device_view_mut();
        if output.len() < layout.segments() {
            return Err(Error::OutputLength { segments: layout.segments(), room: output.len() });
        }
        // SAFETY: the caller's promise; the layout leads to items of the array.
        unsafe {
            let stream = stream.into().raw;
            launcher.enqueue(Erased::of(&self.op), at, layout, self.settings, output.address(), stream)
        }
    }

    /// Lays a workspace ready for one capture of reductions of such segments, as
    /// [`Reducer::warm_up`](crate::Reducer::warm_up) does.
    ///
    /// # Errors
    ///
    /// [`Error::NeedsCuda`], those of [`plan`](SegmentReducer::plan), or what the driver says.
    pub fn warm_up(&self, layout: &Layout) -> Result<(), Error> {
        self.segment_launcher()?.warm_up(&self.plan(layout)?, size_of::<Op::Acc>())
    }

    /// Prepares segments of any lengths for the GPU: cuts the work, once, for many reductions.
    ///
    /// # Errors
    ///
    /// [`Error::NeedsCuda`], [`Error::DeviceMemory`], or what the driver says.
    ///
    /// ```no_run
    /// use cust::stream::{Stream, StreamFlags};
    /// use warpfold_host::{Engine, cuda::DeviceArray, segments::SegmentPlan};
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::cuda(0)?;
    /// let sum = engine.segments(Sum::<f32>::new())?;
    /// let prepared = sum.prepare(&SegmentPlan::from_offsets(&[0, 2, 2, 5])?)?;
    /// let items = DeviceArray::from_slice(&engine, &[1.0f32, 2.0, 3.0, 4.0, 5.0])?;
    /// let mut sums = DeviceArray::from_slice(&engine, &[0.0f32; 3])?;
    /// let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    /// // SAFETY: all of them are left alone until the stream has been waited for.
    /// unsafe { sum.enqueue_segments(&items, &prepared, &mut sums, &stream)? };
    /// stream.synchronize()?;
    /// assert_eq!(sums.to_vec()?, [3.0, 0.0, 12.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepare(&self, plan: &SegmentPlan) -> Result<DeviceSegments, Error> {
        self.segment_launcher()?.prepare(plan, size_of::<Op::Item>())
    }

    /// Enqueues a reduction of prepared segments; result `k` goes to item `k` of `output`.
    ///
    /// # Errors
    ///
    /// [`Error::NeedsCuda`], [`Error::OutputLength`], [`Error::LayoutOutOfRange`] if the array has fewer items than the
    /// segments need, [`Error::PreparedForOthers`], [`Error::ForeignWorkspace`] for segments of another device, or what the
    /// driver says.
    ///
    /// # Safety
    ///
    /// As for [`enqueue`](SegmentReducer::enqueue); the segments stay alive as long.
    pub unsafe fn enqueue_segments<'s, I, O>(
        &self,
        input: &I,
        segments: &DeviceSegments,
        output: &mut O,
        stream: impl Into<StreamRef<'s>>,
    ) -> Result<(), Error>
    where
        I: DeviceInput<Op::Item> + ?Sized,
        O: DeviceOutput<Op::Output> + ?Sized,
    {
        let launcher = self.segment_launcher()?;
        let output = output.device_view_mut();
        if output.len() < segments.segments() {
            return Err(Error::OutputLength { segments: segments.segments(), room: output.len() });
        }
        let (view, stream) = (input.device_view(), stream.into().raw);
        // SAFETY: the caller's promise.
        unsafe {
            let input = (view.address(), view.len());
            launcher.enqueue_irregular(Erased::of(&self.op), input, segments, output.address(), stream)
        }
    }

    fn segment_launcher(&self) -> Result<&SegmentLauncher, Error> {
        match &self.place {
            Place::Cuda(launcher) => Ok(launcher),
            _ => Err(Error::NeedsCuda { what: "device memory" }),
        }
    }
}

/// The address of item `first`, from which a layout leads to items of the array alone.
fn place<T: warpfold_monoid::Plain>(
    view: DeviceView<'_, T>,
    first: u64,
    layout: &Layout,
) -> Result<u64, Error> {
    if let Some((least, greatest)) = Problem::of(layout)?.extent {
        let (least, greatest) =
            (least.saturating_add_unsigned(first), greatest.saturating_add_unsigned(first));
        if least < 0 || greatest as u64 >= view.len() {
            return Err(Error::LayoutOutOfRange { least, greatest, len: view.len() });
        }
    }
    Ok(view.address() + first * size_of::<T>() as u64)
}
