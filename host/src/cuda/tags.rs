//! Launching reductions by tag.

use std::{ptr, sync::Arc};

use cust::sys::{CUdeviceptr, CUstream};
use warpfold_gpu_kernels::{
    sort::kind,
    tags::{TagParams, sorted},
};
use warpfold_monoid::Monoid;

use super::{
    CudaTags, GroupLauncher,
    driver::{self, Doing},
    gpu::Gpu,
    kernels::Loaded,
    reduce::aligned_to,
    workspace::Block,
};
use crate::{
    Error, Tag,
    plan::{
        DeviceFacts, PARAMETER_BYTES,
        tags::{Places, SortedPlaces, SortedPlan, TagPlan},
    },
};

/// An operator's kernels for reductions by tag, ready to launch.
#[derive(Clone, Debug)]
pub(crate) struct TagLauncher {
    pub(super) gpu: Arc<Gpu>,
    loaded: Arc<Loaded>,
    facts: DeviceFacts,
    /// What sorts and reduces runs, where it takes that, or why nothing does.
    groups: Option<Result<GroupLauncher<u32>, Error>>,
}

/// Tags and values: host memory, which is copied, or device memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum From<'a, T> {
    Host(&'a [T]),
    Device(CUdeviceptr, u64),
}

impl<T> From<'_, T> {
    pub(super) fn len(&self) -> u64 {
        match *self {
            From::Host(items) => items.len() as u64,
            From::Device(_, len) => len,
        }
    }

    /// Bytes that have to be copied, rounded up so that others may follow.
    pub(crate) fn copied(&self) -> usize {
        match *self {
            From::Host(items) => size_of_val(items).next_multiple_of(256),
            From::Device(..) => 0,
        }
    }

    /// Where it lies on the device: at `room`, to which it is copied, if it does not yet.
    ///
    /// # Safety
    ///
    /// `room` has [`copied`](From::copied) bytes, which nothing else uses; the copy is waited for while the slice is there. The
    /// context is current.
    pub(super) unsafe fn enqueue(&self, room: CUdeviceptr, stream: CUstream) -> Result<CUdeviceptr, Error> {
        match *self {
            From::Host(items) if size_of_val(items) == 0 => Ok(room),
            From::Host(items) => {
                let bytes = size_of_val(items);
                // SAFETY: the caller's promise.
                unsafe { driver::cuMemcpyHtoDAsync_v2(room, items.as_ptr().cast(), bytes, stream) }
                    .doing(|| format!("copying {bytes} bytes to the device"))?;
                Ok(room)
            }
            From::Device(address, _) => Ok(address),
        }
    }
}

/// Where results go, and where the first tag out of range is noted; 0 for neither. In place of results, values that are added
/// to, and whether they are there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Into {
    pub(super) output: CUdeviceptr,
    pub(super) first_bad: CUdeviceptr,
    /// The index of the first item.
    pub(super) base: u64,
    pub(super) kept: CUdeviceptr,
    pub(super) held: CUdeviceptr,
}

/// Where things lie behind a sort's room, or in it, and where all ends.
#[derive(Clone, Copy, Debug)]
struct SortedRoom {
    run_keys: u64,
    run_values: u64,
    keys: u64,
    count: u64,
    bytes: u64,
}

impl SortedRoom {
    /// That of a reduction whose tags have to be made keys, or not.
    fn of<Op: Monoid>(groups: &GroupLauncher<u32>, n: u64, makes_keys: bool) -> Result<Self, Error> {
        const ALIGN: u64 = 256;
        let mut end = groups.room_bytes::<Op>(n)?.next_multiple_of(ALIGN);
        let mut more = |bytes: u64| {
            let at = end;
            end = end.saturating_add(bytes.next_multiple_of(ALIGN));
            at
        };
        let (run_keys, mut run_values, bytes) = groups.aside(n)?;
        if size_of::<Op::Output>() > bytes {
            run_values = more(n.saturating_mul(size_of::<Op::Output>() as u64));
        }
        let keys = if makes_keys { more(n * size_of::<u32>() as u64) } else { 0 };
        let count = more(size_of::<u64>() as u64);
        Ok(SortedRoom { run_keys, run_values, keys, count, bytes: end })
    }
}

impl TagLauncher {
    pub(crate) fn new<Op: Monoid>(
        gpu: Arc<Gpu>,
        loaded: Arc<Loaded>,
        facts: DeviceFacts,
        groups: Option<Result<GroupLauncher<u32>, Error>>,
    ) -> Result<Self, Error> {
        let bytes = size_of::<TagParams<Op>>();
        if bytes > PARAMETER_BYTES {
            return Err(Error::OperatorTooLarge { bytes, limit: PARAMETER_BYTES });
        }
        debug_assert!(loaded.is_of(&gpu.context));
        Ok(TagLauncher { gpu, loaded, facts, groups })
    }

    /// Bytes of the chunks' values, and of all that a launch needs.
    fn workspace_bytes<Op: Monoid>(plan: &TagPlan) -> (u64, u64) {
        let values = plan.partials.saturating_mul(size_of::<Op::Acc>() as u64).next_multiple_of(256);
        (values, values.saturating_add(plan.present))
    }

    /// Room for the values of `k` tags of a stream.
    pub(crate) fn sink<Op: Monoid>(&self, k: u64) -> Result<CudaTags, Error> {
        CudaTags::new::<Op>(self, k)
    }

    /// Lays a workspace ready for one capture.
    pub(crate) fn warm_up<Op: Monoid>(&self, n: u64, k: u64) -> Result<(), Error> {
        // Fewer items may go the other way.
        let bytes = TagPlan::new::<Op>(n, k, &self.facts)
            .and_then(|plan| Ok([plan, TagPlan::in_order::<Op>(n, k, &self.facts)?]))?
            .map(|plan| Self::workspace_bytes::<Op>(&plan).1);
        let _current = self.gpu.context.enter_or_error()?;
        let mut most = bytes[0].max(bytes[1]);
        // Of so many at most, and fewer may be sorted where all are not.
        let sorted = n.min(u32::MAX.into());
        if SortedPlan::of::<Op>(sorted, k, &self.facts).is_some() {
            let groups = self.groups()?;
            most = most.max(SortedRoom::of::<Op>(groups, sorted, true)?.bytes);
            groups.warm_up_workspace::<Op>(sorted)?;
        }
        let block = Block::new_zeroed(&self.gpu.context, most)?;
        self.gpu.tag_pool.add_spare(block);
        Ok(())
    }

    fn groups(&self) -> Result<&GroupLauncher<u32>, Error> {
        match &self.groups {
            Some(groups) => groups.as_ref().map_err(Error::clone),
            // Only where nothing is sorted.
            None => Err(Error::NotCompiled { krate: "", export: self.loaded.export.name }),
        }
    }

    /// Enqueues a reduction of `n` values by as many tags into `k` results at `output`; `first_bad`, unless it is 0, receives the index
    /// of the first tag that is out of range, or `u64::MAX`.
    ///
    /// # Safety
    ///
    /// `stream` is a live stream of the context (or the default one). Until the work has finished (in every run of the
    /// graph, if the stream is being captured) tags and values are readable and not written, and `output` and `first_bad` writable
    /// and not used otherwise.
    pub(crate) unsafe fn enqueue<T: Tag, Op: Monoid>(
        &self,
        op: Op,
        (n, k): (u64, u64),
        (tags, values): (CUdeviceptr, CUdeviceptr),
        (output, first_bad): (CUdeviceptr, CUdeviceptr),
        stream: CUstream,
    ) -> Result<(), Error> {
        aligned_to(output, align_of::<Op::Output>())?;
        aligned_to(first_bad, align_of::<u64>())?;
        if first_bad != 0 {
            let _current = self.gpu.context.enter_or_error()?;
            // SAFETY: the caller's promise.
            unsafe { driver::cuMemsetD8Async(first_bad, 0xff, 8, stream) }
                .doing(|| "making ready where the first tag out of range is noted")?;
        }
        let into = Into { output, first_bad, ..Into::default() };
        // SAFETY: the caller's promise.
        unsafe { self.enqueue_into::<T, Op>(op, (n, k), (tags, values), into, stream) }
    }

    /// The same into any places, of which `first_bad` has been made ready.
    ///
    /// # Safety
    ///
    /// As for [`enqueue`](TagLauncher::enqueue).
    pub(super) unsafe fn enqueue_into<T: Tag, Op: Monoid>(
        &self,
        op: Op,
        (n, k): (u64, u64),
        (tags, values): (CUdeviceptr, CUdeviceptr),
        into: Into,
        stream: CUstream,
    ) -> Result<(), Error> {
        aligned_to(tags, align_of::<T>())?;
        aligned_to(values, align_of::<Op::Item>())?;
        if into.kept == 0
            && let Some(plan) = SortedPlan::of::<Op>(n, k, &self.facts)
        {
            // SAFETY: the caller's promise.
            return unsafe { self.enqueue_sorted::<T, Op>(op, (n, &plan), (tags, values), into, stream) };
        }
        let plan = match into.kept {
            0 => TagPlan::new::<Op>(n, k, &self.facts)?,
            _ => TagPlan::in_order::<Op>(n, k, &self.facts)?,
        };
        let (value_bytes, bytes) = Self::workspace_bytes::<Op>(&plan);
        let gpu = &self.gpu;
        let _current = gpu.context.enter_or_error()?;
        let _together = gpu.together();
        // SAFETY: a live stream, by the caller's promise; the context is current.
        let (block, captured) = unsafe { gpu.workspace(&gpu.tag_pool, stream, bytes)? };
        let base = block.as_ref().map_or(0, |block| block.address());
        let places = Places {
            tags: tags as usize,
            width: T::WIDTH,
            values: values as usize,
            output: into.output as usize,
            partials: base as usize,
            present: (base + value_bytes) as usize,
            first_bad: into.first_bad as usize,
            base: into.base,
            kept: into.kept as usize,
            held: into.held as usize,
        };
        let over = || format!(" over {n} items of {} bytes, by {k} tags", size_of::<Op::Item>());
        // SAFETY: the parameters of this operator's kernels, whose descriptor was compared; what they point to is the caller's
        // promise and the workspace's size.
        let launched = unsafe {
            plan.launches.iter().try_for_each(|launch| {
                let shape = (launch.grid, launch.block, launch.shared);
                let params = plan.params(launch, op, &places);
                let at = ptr::from_ref(&params).cast();
                self.loaded.launch_with(launch.kernel, shape, at, stream, true, over)
            })
        };
        // SAFETY: as above.
        launched.inspect_err(|_| unsafe { gpu.discard(&gpu.tag_pool, stream, captured) })
    }

    /// The same by sorting, into results.
    ///
    /// # Safety
    ///
    /// As for [`enqueue`](TagLauncher::enqueue).
    unsafe fn enqueue_sorted<T: Tag, Op: Monoid>(
        &self,
        op: Op,
        (n, plan): (u64, &SortedPlan),
        (tags, values): (CUdeviceptr, CUdeviceptr),
        into: Into,
        stream: CUstream,
    ) -> Result<(), Error> {
        let (groups, gpu, makes) = (self.groups()?, &self.gpu, SortedPlan::makes_keys::<T>());
        let room = SortedRoom::of::<Op>(groups, n, makes)?;
        let _current = gpu.context.enter_or_error()?;
        let _together = gpu.together();
        // SAFETY: a live stream, by the caller's promise; the context is current.
        let (block, captured) = unsafe { gpu.workspace(&gpu.tag_pool, stream, room.bytes)? };
        let base = block.as_ref().map_or(0, |block| block.address());
        let at = |offset: u64| base + offset;
        let keys = if makes { at(room.keys) } else { 0 };
        let params = plan.params(
            op,
            &SortedPlaces {
                tags: tags as usize,
                width: T::WIDTH,
                keys: keys as usize,
                output: into.output as usize,
                first_bad: into.first_bad as usize,
                run_keys: at(room.run_keys) as usize,
                run_values: at(room.run_values) as usize,
                count: at(room.count) as usize,
            },
        );
        let over = || format!(" over {n} items of {} bytes", size_of::<Op::Item>());
        let params = ptr::from_ref(&params).cast();
        let launch = |kernel, grid| {
            // SAFETY: the parameters of these kernels of this operator, whose descriptor was compared; what they point to is the caller's
            // promise and the workspace's size.
            unsafe { self.loaded.launch(kernel, (grid, sorted::THREADS), params, stream, true, over) }
        };
        let from = (if makes { keys } else { tags }, values);
        let to = (at(room.run_keys), at(room.run_values), at(room.count));
        let launched = launch("number", plan.number)
            // SAFETY: the caller's promise; tags of 32 bits are keys. Room of the stream's.
            .and_then(|()| unsafe { groups.enqueue_in(op, (n, kind::UNSIGNED), from, to, base, stream) })
            .and_then(|_| launch("spread", plan.spread));
        // SAFETY: as above.
        launched.inspect_err(|_| unsafe { gpu.discard(&gpu.tag_pool, stream, captured) })
    }

    /// Reduces on a stream of our own, and copies the results back; returns the first item, if there is one, whose tag is out of range,
    /// and that tag.
    ///
    /// # Safety
    ///
    /// Tags and values in device memory, as many of each, are readable and not written meanwhile.
    pub(crate) unsafe fn reduce<T: Tag, Op: Monoid>(
        &self,
        op: Op,
        tags: From<'_, T>,
        values: From<'_, Op::Item>,
        results: &mut [Op::Output],
    ) -> Result<Option<(u64, i128)>, Error> {
        let (n, k, bytes) = (values.len(), results.len() as u64, size_of_val(results));
        let at = [tags.copied(), values.copied(), bytes.next_multiple_of(256)];
        let context = &self.gpu.context;
        let _current = context.enter_or_error()?;
        self.gpu.with_lane(at.iter().sum::<usize>() + 256, |lane| {
            let mut room = lane.address();
            let place = at.map(|bytes| {
                let place = room;
                room += bytes as u64;
                place
            });
            let mut first_bad = u64::MAX;
            let stream = lane.stream;
            let waiting = || format!("waiting for {}", self.loaded.export.name);
            // SAFETY: the buffer has room for all of it, which outlives the wait.
            unsafe {
                let mut enqueue = || {
                    let (tags, values) = (tags.enqueue(place[0], stream)?, values.enqueue(place[1], stream)?);
                    self.enqueue::<T, Op>(op, (n, k), (tags, values), (place[2], room), stream)?;
                    if bytes > 0 {
                        driver::cuMemcpyDtoHAsync_v2(results.as_mut_ptr().cast(), place[2], bytes, stream)
                            .doing(|| format!("copying {bytes} bytes from the device"))?;
                    }
                    driver::cuMemcpyDtoHAsync_v2(ptr::from_mut(&mut first_bad).cast(), room, 8, stream)
                        .doing(|| "copying 8 bytes from the device")?;
                    Ok(tags)
                };
                let done: Result<CUdeviceptr, Error> = enqueue();
                context.synchronize(stream, waiting)?;
                let tags_at = done?;
                if first_bad == u64::MAX {
                    return Ok(None);
                }
                if let From::Host(tags) = tags {
                    return Ok(Some((first_bad, tags[first_bad as usize].number())));
                }
                let mut tag = warpfold_monoid::zeroed::<T>();
                let from = tags_at + first_bad * size_of::<T>() as u64;
                let copied = driver::cuMemcpyDtoHAsync_v2(
                    ptr::from_mut(&mut tag).cast(),
                    from,
                    size_of::<T>(),
                    stream,
                );
                context.synchronize(stream, waiting)?;
                copied.doing(|| "copying a tag from the device")?;
                Ok(Some((first_bad, tag.number())))
            }
        })
    }
}
