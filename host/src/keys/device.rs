//! Reductions by tag, by key and by group on a GPU.

use warpfold_monoid::{
    Monoid, Plain,
    keyed::{Equality, Runs},
};

use super::{
    DeviceKey, GroupReducer, KeyReducer, Tag, TagReducer,
    by_key::Place as KeyPlace,
    by_tag::{Place as TagPlace, same_lengths},
    group_by::Travels,
};
use crate::{
    Error,
    cuda::{DeviceInput, DeviceOutput, RunLauncher, StreamRef, TagLauncher},
};

impl<Op: Monoid> TagReducer<Op> {
    /// Enqueues a reduction of device memory on a stream; the result of tag `k` goes to item `k` of `output`. Items whose tags are out of
    /// range are left out: [`enqueue_checked`](TagReducer::enqueue_checked) says which is the first.
    ///
    /// Neither waits nor, once a stream has had one that needs as much room, allocates. A stream that is being captured
    /// takes workspaces that [`warm_up`](TagReducer::warm_up) laid ready.
    ///
    /// # Errors
    ///
    /// As for [`reduce`](TagReducer::reduce), [`Error::NeedsCuda`] without a GPU, [`Error::OutputLength`], [`Error::Misaligned`], and
    /// [`Error::WarmUpFirst`]. After an error nothing has been enqueued that writes results.
    ///
    /// # Safety
    ///
    /// As for [`Reducer::reduce_into`](crate::Reducer::reduce_into): until the work has finished (in every run of the
    /// graph, if the stream is being captured) tags and values stay alive and are not written, and the output stays alive and is
    /// not used otherwise.
    pub unsafe fn enqueue<'s, T, I, V, O>(
        &self,
        tags: &I,
        values: &V,
        output: &mut O,
        stream: impl Into<StreamRef<'s>>,
    ) -> Result<(), Error>
    where
        T: Tag,
        I: DeviceInput<T> + ?Sized,
        V: DeviceInput<Op::Item> + ?Sized,
        O: DeviceOutput<Op::Output> + ?Sized,
    {
        // SAFETY: the caller's promise.
        unsafe { self.enqueue_at(tags, values, output, 0, stream.into()) }
    }

    /// [`enqueue`](TagReducer::enqueue), and writes to `first` the index of the first item whose tag is out of range; `u64::MAX` if all
    /// are in range.
    ///
    /// # Errors
    ///
    /// As there, and [`Error::NoRoomForResult`].
    ///
    /// # Safety
    ///
    /// As there; what is said of the output holds for `first` too.
    pub unsafe fn enqueue_checked<'s, T, I, V, O, F>(
        &self,
        tags: &I,
        values: &V,
        output: &mut O,
        first: &mut F,
        stream: impl Into<StreamRef<'s>>,
    ) -> Result<(), Error>
    where
        T: Tag,
        I: DeviceInput<T> + ?Sized,
        V: DeviceInput<Op::Item> + ?Sized,
        O: DeviceOutput<Op::Output> + ?Sized,
        F: DeviceOutput<u64> + ?Sized,
    {
        let first = first.device_view_mut();
        if first.is_empty() {
            return Err(Error::NoRoomForResult);
        }
        // SAFETY: the caller's promise.
        unsafe { self.enqueue_at(tags, values, output, first.address(), stream.into()) }
    }

    /// # Safety
    ///
    /// As for [`enqueue_checked`](TagReducer::enqueue_checked).
    unsafe fn enqueue_at<T, I, V, O>(
        &self,
        tags: &I,
        values: &V,
        output: &mut O,
        first: u64,
        stream: StreamRef<'_>,
    ) -> Result<(), Error>
    where
        T: Tag,
        I: DeviceInput<T> + ?Sized,
        V: DeviceInput<Op::Item> + ?Sized,
        O: DeviceOutput<Op::Output> + ?Sized,
    {
        let launcher = self.tag_launcher()?;
        let (tags, values, output) = (tags.device_view(), values.device_view(), output.device_view_mut());
        same_lengths(tags.len(), values.len())?;
        if output.len() < self.tags() {
            return Err(Error::OutputLength { segments: self.tags(), room: output.len() });
        }
        let (from, to) = ((tags.address(), values.address()), (output.address(), first));
        let sizes = (values.len(), self.tags());
        // SAFETY: the caller's promise.
        unsafe { launcher.enqueue::<T, Op>(*self.operator(), sizes, from, to, stream.raw) }
    }

    /// Lays a workspace ready for one capture of reductions of up to `n` items, as
    /// [`Reducer::warm_up`](crate::Reducer::warm_up) does.
    ///
    /// # Errors
    ///
    /// [`Error::NeedsCuda`], [`Error::DeviceMemory`], or what the driver says.
    pub fn warm_up(&self, n: u64) -> Result<(), Error> {
        self.tag_launcher()?.warm_up::<Op>(n, self.tags())
    }

    fn tag_launcher(&self) -> Result<&TagLauncher, Error> {
        match self.place() {
            TagPlace::Cuda(launcher) => Ok(launcher),
            _ => Err(Error::NeedsCuda { what: "device memory" }),
        }
    }
}

impl<K: Plain, Op: Monoid, E: Equality<K>> KeyReducer<K, Op, E> {
    /// Enqueues a reduction of device memory on a stream: the runs' first keys go to `out_keys`, their results to `out_values`, and how many
    /// there are to `count`.
    ///
    /// Neither waits nor, once a stream has had one that needs as much room, allocates. A stream that is being captured
    /// takes workspaces that [`warm_up`](KeyReducer::warm_up) laid ready; arrays of one tile need none.
    ///
    /// # Errors
    ///
    /// As for [`reduce`](KeyReducer::reduce), [`Error::NeedsCuda`] without a GPU, [`Error::ResultsLength`] if an output has less items
    /// than there are keys, [`Error::NoRoomForResult`], [`Error::Misaligned`], and [`Error::WarmUpFirst`]. After an error nothing has been
    /// enqueued.
    ///
    /// # Safety
    ///
    /// As for [`Reducer::reduce_into`](crate::Reducer::reduce_into): until the work has finished (in every run of the
    /// graph, if the stream is being captured) keys and values stay alive and are not written, and the outputs stay alive and are
    /// not used otherwise. Nothing overlaps.
    pub unsafe fn enqueue<'s, I, V, OK, OV, C>(
        &self,
        keys: &I,
        values: &V,
        out_keys: &mut OK,
        out_values: &mut OV,
        count: &mut C,
        stream: impl Into<StreamRef<'s>>,
    ) -> Result<(), Error>
    where
        I: DeviceInput<K> + ?Sized,
        V: DeviceInput<Op::Item> + ?Sized,
        OK: DeviceOutput<K> + ?Sized,
        OV: DeviceOutput<Op::Output> + ?Sized,
        C: DeviceOutput<u64> + ?Sized,
    {
        let launcher = self.run_launcher()?;
        let (keys, values) = (keys.device_view(), values.device_view());
        let (out_keys, out_values) = (out_keys.device_view_mut(), out_values.device_view_mut());
        let (count, n) = (count.device_view_mut(), keys.len());
        same_lengths(n, values.len())?;
        for room in [out_keys.len(), out_values.len()] {
            if room < n {
                return Err(Error::ResultsLength { items: n, room });
            }
        }
        if count.is_empty() {
            return Err(Error::NoRoomForResult);
        }
        let op = Runs::new(*self.equality(), *self.operator());
        let (from, to) = (
            (keys.address(), values.address(), 0),
            (out_keys.address(), out_values.address(), count.address()),
        );
        // SAFETY: the caller's promise.
        unsafe { launcher.enqueue(op, n, from, to, stream.into().raw) }
    }

    /// Lays a workspace ready for one capture of reductions of up to `n` items, as
    /// [`Reducer::warm_up`](crate::Reducer::warm_up) does.
    ///
    /// # Errors
    ///
    /// [`Error::NeedsCuda`], [`Error::DeviceMemory`], or what the driver says.
    pub fn warm_up(&self, n: u64) -> Result<(), Error> {
        self.run_launcher()?.warm_up::<K, E, Op>(n)
    }

    pub(crate) fn run_launcher(&self) -> Result<&RunLauncher, Error> {
        match self.place() {
            KeyPlace::Cuda(launcher) => Ok(launcher),
            _ => Err(Error::NeedsCuda { what: "device memory" }),
        }
    }
}

impl<Op: Monoid> GroupReducer<Op> {
    /// Enqueues a group-by of device memory on a stream: the groups' keys go to `out_keys`, their results to `out_values`, and how many
    /// there are to `count`.
    ///
    /// The groups come in the order of their keys, whether [`sorted`](GroupReducer::sorted) or not. Neither waits nor, once a stream has had
    /// one that needs as much room, allocates: the stream keeps room for twice as many keys and values. A stream that is being captured
    /// takes workspaces that [`warm_up`](GroupReducer::warm_up) laid ready.
    ///
    /// # Errors
    ///
    /// As for [`reduce`](GroupReducer::reduce), [`Error::NeedsCuda`] without a GPU, [`Error::ResultsLength`] if an output has less items
    /// than there are keys, [`Error::NoRoomForResult`], [`Error::Misaligned`], [`Error::DeviceMemory`], and [`Error::WarmUpFirst`]. After an
    /// error nothing has been enqueued that writes results.
    ///
    /// # Safety
    ///
    /// As for [`KeyReducer::enqueue`].
    pub unsafe fn enqueue<'s, K, I, V, OK, OV, C>(
        &self,
        keys: &I,
        values: &V,
        out_keys: &mut OK,
        out_values: &mut OV,
        count: &mut C,
        stream: impl Into<StreamRef<'s>>,
    ) -> Result<(), Error>
    where
        K: DeviceKey,
        I: DeviceInput<K> + ?Sized,
        V: DeviceInput<Op::Item> + ?Sized,
        OK: DeviceOutput<K> + ?Sized,
        OV: DeviceOutput<Op::Output> + ?Sized,
        C: DeviceOutput<u64> + ?Sized,
    {
        let (keys, values) = (keys.device_view(), values.device_view());
        let (out_keys, out_values) = (out_keys.device_view_mut(), out_values.device_view_mut());
        let (count, n) = (count.device_view_mut(), keys.len());
        same_lengths(n, values.len())?;
        for room in [out_keys.len(), out_values.len()] {
            if room < n {
                return Err(Error::ResultsLength { items: n, room });
            }
        }
        if count.is_empty() {
            return Err(Error::NoRoomForResult);
        }
        let from = (keys.address(), values.address());
        let to = (out_keys.address(), out_values.address(), count.address());
        let (op, travels, stream) = (*self.operator(), Travels::of::<Op>(false), stream.into().raw);
        // SAFETY: the caller's promise.
        unsafe {
            if K::LONG {
                let launcher = self.engine().group_launcher::<u64, Op>(travels)?;
                launcher.enqueue(op, (n, K::KIND), from, to, stream)
            } else {
                let launcher = self.engine().group_launcher::<u32, Op>(travels)?;
                launcher.enqueue(op, (n, K::KIND), from, to, stream)
            }
        }
    }

    /// Lays workspaces ready for one capture of group-bys of up to `n` items by such keys, as
    /// [`Reducer::warm_up`](crate::Reducer::warm_up) does.
    ///
    /// # Errors
    ///
    /// [`Error::NeedsCuda`], [`Error::NoKernel`], [`Error::TooManyToSort`], [`Error::DeviceMemory`], or what the driver says.
    pub fn warm_up<K: DeviceKey>(&self, n: u64) -> Result<(), Error> {
        let travels = Travels::of::<Op>(false);
        if K::LONG {
            self.engine().group_launcher::<u64, Op>(travels)?.warm_up::<Op>(n)
        } else {
            self.engine().group_launcher::<u32, Op>(travels)?.warm_up::<Op>(n)
        }
    }
}
