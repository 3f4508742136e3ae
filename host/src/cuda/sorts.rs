//! Launching sorts of pairs, and what makes groups of them.

use std::{marker::PhantomData, ptr, sync::Arc};

use cust::sys::{CUdeviceptr, CUstream};
use warpfold_gpu_kernels::sort::{Payload, THREADS};
use warpfold_monoid::{
    Monoid,
    keyed::{Equal, Runs},
};

use super::{
    RunLauncher,
    driver::{self, Doing},
    gpu::Gpu,
    kernels::Loaded,
    reduce::aligned_to,
    runs::RECORDS,
    tags::From,
    workspace::Block,
};
use crate::{
    Error,
    keys::group_by::{Found, RunKey, Travels},
    plan::{
        DeviceFacts,
        sorts::{SortPlaces, SortPlan, firsts, gather},
    },
    segments::room,
};

/// The kernels that sort keys of a width with what travels with them, ready to launch.
#[derive(Clone, Debug)]
pub(crate) struct SortLauncher<K> {
    gpu: Arc<Gpu>,
    loaded: Arc<Loaded>,
    facts: DeviceFacts,
    key: PhantomData<fn() -> K>,
}

/// The kernels that group pairs by keys of a width, ready to launch.
#[derive(Clone, Debug)]
pub(crate) struct GroupLauncher<K> {
    gpu: Arc<Gpu>,
    sorts: SortLauncher<K>,
    runs: RunLauncher,
    /// What the sorts' kernels move with the keys.
    travels: Travels,
}

/// Where keys and values lie.
pub(super) type Pair = (CUdeviceptr, CUdeviceptr);

/// What a group-by leaves on the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sorted {
    keys: CUdeviceptr,
    /// Of values or positions.
    travelled: CUdeviceptr,
}

impl<K: RunKey> SortLauncher<K> {
    pub(crate) fn new(gpu: Arc<Gpu>, loaded: Arc<Loaded>, facts: DeviceFacts) -> Self {
        debug_assert!(loaded.is_of(&gpu.context));
        SortLauncher { gpu, loaded, facts, key: PhantomData }
    }

    fn plan<V: Payload>(&self, n: u64) -> Result<SortPlan, Error> {
        SortPlan::new::<K, V>(n, &self.facts)
    }

    /// Enqueues a sort.
    ///
    /// # Safety
    ///
    /// As for [`GroupLauncher::enqueue_in`], of pairs of keys and `V`.
    unsafe fn sort<V: Payload>(
        &self,
        plan: &SortPlan,
        kind: u32,
        (keys, values): Pair,
        room: CUdeviceptr,
        workspace: u64,
        stream: CUstream,
    ) -> Result<Sorted, Error> {
        let gpu = &self.gpu;
        // SAFETY: a live stream, by the caller's promise; the context is current.
        let (block, captured) = unsafe { gpu.workspace(&gpu.scan_pool, stream, workspace)? };
        let (base, bytes) = block.as_ref().map_or((0, RECORDS), |block| (block.address(), block.bytes()));
        let at = SortPlaces {
            keys: keys as usize,
            values: values as usize,
            room: room as usize,
            counter: base as usize,
            records: (base + RECORDS) as usize,
            capacity: (bytes - RECORDS) / size_of::<[u64; 2]>() as u64,
        };
        let launch = |kernel, grid, pass| {
            let params = plan.params::<K, V>(&at, kind, pass);
            // SAFETY: the parameters of these kernels; what they point to is the caller's promise and the workspace's size.
            unsafe { self.launch(kernel, grid, plan.n, ptr::from_ref(&params).cast(), stream) }
        };
        let enqueue = || {
            let bytes = plan.count_bytes() as usize;
            // SAFETY: the room's counts.
            unsafe { driver::cuMemsetD8Async(room, 0, bytes, stream) }.doing(|| "counting from zero")?;
            plan.launches().try_for_each(|(kernel, grid, pass)| launch(kernel, grid, pass))
        };
        let enqueued: Result<(), Error> = enqueue();
        // SAFETY: as above.
        enqueued.inspect_err(|_| unsafe { gpu.discard(&gpu.scan_pool, stream, captured) })?;
        let (keys, travelled) = plan.sorted();
        Ok(Sorted { keys: room + keys, travelled: room + travelled })
    }

    /// # Safety
    ///
    /// As for [`Loaded::launch`], of blocks of [`THREADS`].
    unsafe fn launch(
        &self,
        kernel: &'static str,
        grid: u32,
        n: u64,
        params: *const u8,
        stream: CUstream,
    ) -> Result<(), Error> {
        let over = || format!(" over {n} pairs");
        // SAFETY: the caller's promise.
        unsafe { self.loaded.launch(kernel, (grid, THREADS), params, stream, true, over) }
    }

    /// The positions of keys in the order of the keys. Waits.
    ///
    /// # Safety
    ///
    /// Keys in device memory are readable and not written meanwhile.
    pub(crate) unsafe fn order(&self, kind: u32, keys: From<'_, K>) -> Result<Vec<u32>, Error> {
        let n = keys.len();
        let mut positions = room::<u32>(n)?;
        if n == 0 {
            return Ok(positions);
        }
        let plan = self.plan::<u32>(n)?;
        let keys_bytes = keys.copied();
        let all = keys_bytes.saturating_add(usize::try_from(plan.bytes()).unwrap_or(usize::MAX));
        let context = &self.gpu.context;
        let _current = context.enter_or_error()?;
        self.gpu.with_lane(all, |lane| {
            let (room_at, stream) = (lane.address() + keys_bytes as u64, lane.stream);
            let bytes = size_of_val(&positions[..]);
            let mut enqueue = || {
                // SAFETY: the lane's buffer has room for all of it, the workspace's size is the plan's; waited for below.
                unsafe {
                    let from = (keys.enqueue(lane.address(), stream)?, 0);
                    let sorted =
                        self.sort::<u32>(&plan, kind, from, room_at, workspace_bytes(&plan), stream)?;
                    let to = positions.as_mut_ptr().cast();
                    driver::cuMemcpyDtoHAsync_v2(to, sorted.travelled, bytes, stream)
                        .doing(|| format!("copying {bytes} bytes from the device"))
                }
            };
            let done: Result<(), Error> = enqueue();
            // SAFETY: the lane's own stream; the context is current.
            unsafe {
                context.synchronize(stream, || format!("waiting for {}", self.loaded.export.name))?;
            }
            done
        })?;
        Ok(positions)
    }
}

/// Bytes of a workspace that is zero at first, for a sort.
fn workspace_bytes(plan: &SortPlan) -> u64 {
    RECORDS + plan.pairs * size_of::<[u64; 2]>() as u64
}

impl<K: RunKey> GroupLauncher<K> {
    pub(crate) fn new(sorts: SortLauncher<K>, runs: RunLauncher, travels: Travels) -> Self {
        GroupLauncher { gpu: sorts.gpu.clone(), sorts, runs, travels }
    }

    fn plan(&self, n: u64) -> Result<SortPlan, Error> {
        match self.travels {
            Travels::Long => self.sorts.plan::<u64>(n),
            Travels::Word | Travels::Position => self.sorts.plan::<u32>(n),
        }
    }

    /// Bytes of the values in order, where they have not travelled.
    fn gathered_bytes<Op: Monoid>(&self, n: u64) -> u64 {
        match self.travels {
            Travels::Position => n.saturating_mul(size_of::<Op::Item>() as u64).next_multiple_of(256),
            Travels::Word | Travels::Long => 0,
        }
    }

    /// Bytes of room that a group-by of so many pairs takes, which leaves anything in it.
    pub(super) fn room_bytes<Op: Monoid>(&self, n: u64) -> Result<u64, Error> {
        if n == 0 {
            return Ok(0);
        }
        Ok(self.plan(n)?.bytes().saturating_add(self.gathered_bytes::<Op>(n)))
    }

    /// From the room's begin to where its runs may write keys, and as many values of up to so many bytes.
    pub(super) fn aside(&self, n: u64) -> Result<(u64, u64, usize), Error> {
        let (keys, values) = self.plan(n)?.aside();
        let bytes = match self.travels {
            Travels::Long => size_of::<u64>(),
            Travels::Word | Travels::Position => size_of::<u32>(),
        };
        Ok((keys, values, bytes))
    }

    /// Bytes of a workspace that is zero at first.
    fn workspace_bytes<Op: Monoid>(&self, n: u64) -> Result<u64, Error> {
        if n == 0 {
            return Ok(0);
        }
        let sort = workspace_bytes(&self.plan(n)?);
        Ok(sort.max(self.runs.bytes::<K::Run, Equal, Op>(n)?))
    }

    /// Lays workspaces ready for one capture.
    pub(crate) fn warm_up<Op: Monoid>(&self, n: u64) -> Result<(), Error> {
        let room = self.room_bytes::<Op>(n)?;
        let context = &self.gpu.context;
        let _current = context.enter_or_error()?;
        self.warm_up_workspace::<Op>(n)?;
        self.gpu.tag_pool.add_spare(Block::new_zeroed(context, room)?);
        Ok(())
    }

    /// Lays a workspace ready for one capture, but no room. The context is current.
    pub(super) fn warm_up_workspace<Op: Monoid>(&self, n: u64) -> Result<(), Error> {
        let block = Block::new_all_zero(&self.gpu.context, self.workspace_bytes::<Op>(n)?)?;
        self.gpu.scan_pool.add_spare(block);
        Ok(())
    }

    /// Enqueues a group-by of `n` pairs in room of the stream's; keys, results and their count go to the three outputs, groups in the
    /// order of their keys.
    ///
    /// # Safety
    ///
    /// `stream` is a live stream of the context (or the default one). Until the work has finished (in every run of the
    /// graph, if the stream is being captured) keys and values are readable and not written, and the outputs, which have room for
    /// as many groups as there are, writable and not used otherwise.
    pub(crate) unsafe fn enqueue<Op: Monoid>(
        &self,
        op: Op,
        (n, kind): (u64, u32),
        from: Pair,
        to: (CUdeviceptr, CUdeviceptr, CUdeviceptr),
        stream: CUstream,
    ) -> Result<(), Error> {
        let bytes = self.room_bytes::<Op>(n)?;
        let _current = self.gpu.context.enter_or_error()?;
        let _together = self.gpu.together();
        // SAFETY: a live stream, by the caller's promise; the context is current.
        let (block, captured) = unsafe { self.gpu.workspace(&self.gpu.tag_pool, stream, bytes)? };
        let room = block.as_ref().map_or(0, |block| block.address());
        // SAFETY: the caller's promise, and room of the stream's.
        let enqueued = unsafe { self.enqueue_in(op, (n, kind), from, to, room, stream) };
        // SAFETY: as above.
        enqueued
            .map(|_| ())
            .inspect_err(|_| unsafe { self.gpu.discard(&self.gpu.tag_pool, stream, captured) })
    }

    /// The same in [`room_bytes`](GroupLauncher::room_bytes) at `room`. The context is current.
    ///
    /// # Safety
    ///
    /// As there; the room, aligned to 256 bytes, is not used otherwise, but that keys and results may go [aside](GroupLauncher::aside).
    pub(super) unsafe fn enqueue_in<Op: Monoid>(
        &self,
        op: Op,
        (n, kind): (u64, u32),
        from: Pair,
        to: (CUdeviceptr, CUdeviceptr, CUdeviceptr),
        room: CUdeviceptr,
        stream: CUstream,
    ) -> Result<Sorted, Error> {
        aligned_to(from.0, align_of::<K>())?;
        aligned_to(from.1, align_of::<Op::Item>())?;
        let op = Runs::new(Equal, op);
        if n == 0 {
            // SAFETY: the caller's promise.
            unsafe { self.runs.enqueue::<K::Run, Equal, Op>(op, 0, (0, 0, 0), to, stream)? };
            return Ok(Sorted { keys: room, travelled: room });
        }
        let least = self.workspace_bytes::<Op>(n)?;
        let plan = self.plan(n)?;
        let position = self.travels == Travels::Position;
        let sources = (from.0, if position { 0 } else { from.1 });
        // SAFETY: the caller's promise; where values travel, they are of the payload's size and alignment.
        let sorted = unsafe {
            match self.travels {
                Travels::Long => self.sorts.sort::<u64>(&plan, kind, sources, room, least, stream)?,
                Travels::Word | Travels::Position => {
                    self.sorts.sort::<u32>(&plan, kind, sources, room, least, stream)?
                }
            }
        };
        let (mut values, mut indices) = (sorted.travelled, 0);
        if position {
            values = room + plan.bytes();
            if Op::USES_INDEX {
                indices = sorted.travelled;
            }
            let layout = (size_of::<Op::Item>(), align_of::<Op::Item>());
            if layout.0 > 0 {
                let at = (from.1 as usize, sorted.travelled as usize, values as usize);
                let (params, grid) = gather(layout, n, at);
                // SAFETY: the parameters of this kernel; positions that there are, and room for as many items.
                unsafe { self.sorts.launch("gather", grid, n, ptr::from_ref(&params).cast(), stream)? };
            }
        }
        // SAFETY: as many sorted keys, of the same bits as the runs' keys, and values.
        unsafe { self.runs.enqueue::<K::Run, Equal, Op>(op, n, (sorted.keys, values, indices), to, stream)? };
        Ok(sorted)
    }

    /// Groups on a stream of our own, and copies the groups back, with the position of each one's first item if they are asked for.
    ///
    /// # Safety
    ///
    /// Keys and values in device memory, as many of each, are readable and not written meanwhile. Firsts are asked for only where
    /// positions travel.
    pub(crate) unsafe fn reduce<Op: Monoid>(
        &self,
        op: Op,
        kind: u32,
        keys: From<'_, K>,
        values: From<'_, Op::Item>,
        asks_firsts: bool,
    ) -> Result<Found<K, Op::Output>, Error> {
        let n = keys.len();
        let bytes = |size: usize| (n as usize).saturating_mul(size).next_multiple_of(256);
        let room_bytes = usize::try_from(self.room_bytes::<Op>(n)?).unwrap_or(usize::MAX);
        let at = [
            keys.copied(),
            values.copied(),
            bytes(size_of::<K>()),
            bytes(size_of::<Op::Output>()),
            bytes(size_of::<u32>()),
            room_bytes,
        ];
        let context = &self.gpu.context;
        let _current = context.enter_or_error()?;
        let all = at.iter().fold(256, |sum: usize, &bytes| sum.saturating_add(bytes));
        self.gpu.with_lane(all, |lane| {
            let mut place = lane.address();
            let [keys_at, values_at, out_keys, out_values, firsts_at, room_at] = at.map(|bytes| {
                let at = place;
                place += bytes as u64;
                at
            });
            let stream = lane.stream;
            let waiting = || format!("waiting for {}", self.sorts.loaded.export.name);
            let copy = |to: *mut u8, from: CUdeviceptr, bytes: usize| {
                if bytes == 0 {
                    return Ok(());
                }
                // SAFETY: the places of both sides have that many bytes, and are there until the wait.
                unsafe { driver::cuMemcpyDtoHAsync_v2(to.cast(), from, bytes, stream) }
                    .doing(|| format!("copying {bytes} bytes from the device"))
            };
            let mut count = 0_u64;
            // SAFETY: the buffer has room for all of it, which outlives the waits.
            unsafe {
                let mut enqueue = || {
                    let from = (keys.enqueue(keys_at, stream)?, values.enqueue(values_at, stream)?);
                    let to = (out_keys, out_values, place);
                    let sorted = self.enqueue_in(op, (n, kind), from, to, room_at, stream)?;
                    copy(ptr::from_mut(&mut count).cast(), place, 8)?;
                    Ok(sorted)
                };
                let done: Result<Sorted, Error> = enqueue();
                context.synchronize(stream, waiting)?;
                let sorted = done?;
                let (mut keys, mut values) = (room::<K>(count)?, room::<Op::Output>(count)?);
                let mut first = room::<u32>(if asks_firsts { count } else { 0 })?;
                let mut enqueue = || {
                    copy(keys.as_mut_ptr().cast(), out_keys, size_of_val(&keys[..]))?;
                    copy(values.as_mut_ptr().cast(), out_values, size_of_val(&values[..]))?;
                    if !first.is_empty() {
                        let from = (sorted.keys as usize, sorted.travelled as usize, n);
                        let groups = (out_keys as usize, count);
                        let (params, grid) = firsts::<K>(from, groups, firsts_at as usize, kind);
                        self.sorts.launch("firsts", grid, count, ptr::from_ref(&params).cast(), stream)?;
                        copy(first.as_mut_ptr().cast(), firsts_at, size_of_val(&first[..]))?;
                    }
                    Ok(())
                };
                let done: Result<(), Error> = enqueue();
                context.synchronize(stream, waiting)?;
                done?;
                Ok(Found { keys, values, firsts: first })
            }
        })
    }
}
