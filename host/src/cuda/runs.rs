//! Launching reductions by key.

use std::{ptr, sync::Arc};

use cust::sys::{CUdeviceptr, CUstream};
use warpfold_gpu_kernels::scan::runs::RunParams;
use warpfold_monoid::{
    Monoid, Plain,
    keyed::{Equality, Runs},
};

use super::{
    driver::{self, Doing},
    gpu::Gpu,
    kernels::Loaded,
    reduce::aligned_to,
    tags::From,
    workspace::Block,
};
use crate::{
    ByKey, Error,
    plan::{
        DeviceFacts, PARAMETER_BYTES,
        runs::{RunPlaces, RunPlan},
    },
    segments::room,
};

/// Where a workspace's records begin: the counter has the bytes before to itself, as that of scans, whose workspaces these are.
pub(super) const RECORDS: u64 = 256;

/// Bytes of a pair of words.
const PAIR: u64 = size_of::<[u64; 2]>() as u64;

/// The kernel for reductions by key of an operator, ready to launch.
#[derive(Clone, Debug)]
pub(crate) struct RunLauncher {
    gpu: Arc<Gpu>,
    loaded: Arc<Loaded>,
    facts: DeviceFacts,
}

impl RunLauncher {
    pub(crate) fn new<K: Plain, E: Equality<K>, Op: Monoid>(
        gpu: Arc<Gpu>,
        loaded: Arc<Loaded>,
        facts: DeviceFacts,
    ) -> Result<Self, Error> {
        let bytes = size_of::<RunParams<K, E, Op>>();
        if bytes > PARAMETER_BYTES {
            return Err(Error::OperatorTooLarge { bytes, limit: PARAMETER_BYTES });
        }
        debug_assert!(loaded.is_of(&gpu.context));
        Ok(RunLauncher { gpu, loaded, facts })
    }

    fn workspace_bytes(plan: &RunPlan) -> u64 {
        if plan.chained() { plan.pairs.saturating_mul(PAIR).saturating_add(RECORDS) } else { 0 }
    }

    /// Bytes of the workspace for so many items.
    pub(super) fn bytes<K: Plain, E: Equality<K>, Op: Monoid>(&self, n: u64) -> Result<u64, Error> {
        Ok(Self::workspace_bytes(&RunPlan::new::<K, E, Op>(n, &self.facts)?))
    }

    /// Lays a workspace ready for one capture.
    pub(crate) fn warm_up<K: Plain, E: Equality<K>, Op: Monoid>(&self, n: u64) -> Result<(), Error> {
        let bytes = self.bytes::<K, E, Op>(n)?;
        let _current = self.gpu.context.enter_or_error()?;
        self.gpu.scan_pool.add_spare(Block::new_all_zero(&self.gpu.context, bytes)?);
        Ok(())
    }

    /// Enqueues a reduction of the runs of `n` keys and values; keys (unless their output is 0), results and their count go to the
    /// three outputs. The operator is told the items' positions, or, unless that is 0, the `u32` at `indices`.
    ///
    /// # Safety
    ///
    /// `stream` is a live stream of the context (or the default one). Until the work has finished (in every run of the
    /// graph, if the stream is being captured) keys and values are readable and not written, and the outputs, which have room for
    /// as many runs as there are, writable and not used otherwise.
    pub(crate) unsafe fn enqueue<K: Plain, E: Equality<K>, Op: Monoid>(
        &self,
        op: Runs<K, E, Op>,
        n: u64,
        (keys, values, indices): (CUdeviceptr, CUdeviceptr, CUdeviceptr),
        (out_keys, out_values, count): (CUdeviceptr, CUdeviceptr, CUdeviceptr),
        stream: CUstream,
    ) -> Result<(), Error> {
        for address in [keys, out_keys] {
            aligned_to(address, align_of::<K>())?;
        }
        aligned_to(values, align_of::<Op::Item>())?;
        aligned_to(out_values, align_of::<Op::Output>())?;
        aligned_to(count, align_of::<u64>())?;
        let gpu = &self.gpu;
        let _current = gpu.context.enter_or_error()?;
        if n == 0 {
            // SAFETY: the caller's promise.
            return unsafe { driver::cuMemsetD8Async(count, 0, 8, stream) }.doing(|| "counting no runs");
        }
        let plan = RunPlan::new::<K, E, Op>(n, &self.facts)?;
        // SAFETY: a live stream, by the caller's promise; the context is current.
        let (block, captured) =
            unsafe { gpu.workspace(&gpu.scan_pool, stream, Self::workspace_bytes(&plan))? };
        let base = block.as_ref().map_or(0, |block| block.address());
        let capacity = block.as_ref().map_or(0, |block| (block.bytes() - RECORDS) / PAIR);
        let at = RunPlaces {
            keys: keys as usize,
            values: values as usize,
            indices: indices as usize,
            out_keys: out_keys as usize,
            out_values: out_values as usize,
            count: count as usize,
            counter: base as usize,
            records: (base + RECORDS) as usize,
        };
        let params = plan.params(op, &at, capacity);
        let (shape, bytes) = ((plan.grid, plan.block), size_of::<K>() + size_of::<Op::Item>());
        let over = || format!(" over {n} keys and values of {bytes} bytes");
        // SAFETY: the parameters of this operator's kernel, whose descriptor was compared; what they point to is the caller's
        // promise and the workspace's size.
        let launched =
            unsafe { self.loaded.launch("runs", shape, ptr::from_ref(&params).cast(), stream, true, over) };
        // SAFETY: as above.
        launched.inspect_err(|_| unsafe { gpu.discard(&gpu.scan_pool, stream, captured) })
    }

    /// Reduces on a stream of our own, and copies the runs back. The operator is told the items' positions, or these indices.
    ///
    /// # Safety
    ///
    /// Keys and values in device memory, as many of each, are readable and not written meanwhile.
    pub(crate) unsafe fn reduce<K: Plain, E: Equality<K>, Op: Monoid>(
        &self,
        op: Runs<K, E, Op>,
        keys: From<'_, K>,
        values: From<'_, Op::Item>,
        indices: Option<&[u32]>,
    ) -> Result<ByKey<K, Op::Output>, Error> {
        let n = values.len();
        let bytes = |size: usize| (n as usize).saturating_mul(size).next_multiple_of(256);
        let indices = indices.map(From::Host);
        let index_bytes = indices.map_or(0, |indices| indices.copied());
        let results = [bytes(size_of::<K>()), bytes(size_of::<Op::Output>())];
        let at = [keys.copied(), values.copied(), index_bytes, results[0], results[1]];
        let context = &self.gpu.context;
        let _current = context.enter_or_error()?;
        self.gpu.with_lane(at.iter().sum::<usize>() + 256, |lane| {
            let mut place = lane.address();
            let [keys_at, values_at, indices_at, out_keys, out_values] = at.map(|bytes| {
                let at = place;
                place += bytes as u64;
                at
            });
            let stream = lane.stream;
            let waiting = || format!("waiting for {}", self.loaded.export.name);
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
                    let indices = indices.map(|indices| indices.enqueue(indices_at, stream)).transpose()?;
                    let (keys, values) = (keys.enqueue(keys_at, stream)?, values.enqueue(values_at, stream)?);
                    let from = (keys, values, indices.unwrap_or(0));
                    self.enqueue(op, n, from, (out_keys, out_values, place), stream)?;
                    copy(ptr::from_mut(&mut count).cast(), place, 8)
                };
                let done: Result<(), Error> = enqueue();
                context.synchronize(stream, waiting)?;
                done?;
                let (mut keys, mut values) = (room::<K>(count)?, room::<Op::Output>(count)?);
                let done = copy(keys.as_mut_ptr().cast(), out_keys, size_of_val(&keys[..]))
                    .and_then(|()| copy(values.as_mut_ptr().cast(), out_values, size_of_val(&values[..])));
                context.synchronize(stream, waiting)?;
                done?;
                Ok(ByKey { keys, values })
            }
        })
    }
}
