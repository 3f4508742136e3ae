//! Launching reductions of segments.

use std::{mem::MaybeUninit, ptr, sync::Arc};

use cust::sys::{CUdeviceptr, CUstream};
use warpfold_gpu_kernels::segments::{
    THREADS,
    irregular::{Listed, Task, Tile, Unit},
};

use super::{
    DeviceArray,
    driver::{self, Doing},
    gpu::Gpu,
    kernels::Loaded,
    reduce::aligned_to,
    workspace::{Block, LEAST},
};
use crate::{
    Error,
    erased::{Erased, IrregularHead, NOTHING, Types},
    plan::{
        DeviceFacts, OperatorLayout, PARAMETER_BYTES,
        segments::{SegmentPlanner, SegmentSettings, SegmentsPlan},
    },
    segments::{Layout, Places, Problem, SegmentPlan, Tables},
};

/// An operator's kernels for segments, ready to launch.
#[derive(Clone, Debug)]
pub(crate) struct SegmentLauncher {
    pub(crate) gpu: Arc<Gpu>,
    loaded: Arc<Loaded>,
    facts: DeviceFacts,
}

/// Segments of any lengths whose tables lie on a device: prepared once, for many reductions of items of one size.
///
/// Made by [`SegmentReducer::prepare`](crate::SegmentReducer::prepare).
#[derive(Debug)]
pub struct DeviceSegments {
    count: u64,
    tiles: DeviceArray<Tile>,
    listed: DeviceArray<Listed>,
    tasks: DeviceArray<Task>,
    units: DeviceArray<Unit>,
    /// Groups and number of units of each class, one behind the other.
    classes: Vec<(u32, u64)>,
    tickets: u64,
    partials: u64,
    item_bytes: usize,
    /// The least number of items that the array has.
    end: u64,
    gpu: Arc<Gpu>,
}

impl DeviceSegments {
    /// How many segments there are.
    pub fn segments(&self) -> u64 {
        self.count
    }
}

/// Where a launch's counters and values lie.
#[derive(Clone, Copy)]
struct Room {
    tickets: u64,
    partials: u64,
}

impl SegmentLauncher {
    pub(crate) fn new(
        gpu: Arc<Gpu>,
        loaded: Arc<Loaded>,
        facts: DeviceFacts,
        types: &Types,
    ) -> Result<Self, Error> {
        let bytes = types.segment_bytes;
        if bytes > PARAMETER_BYTES {
            return Err(Error::OperatorTooLarge { bytes, limit: PARAMETER_BYTES });
        }
        debug_assert!(loaded.is_of(&gpu.context));
        Ok(SegmentLauncher { gpu, loaded, facts })
    }

    pub(crate) fn plan(
        &self,
        layout: &Layout,
        settings: SegmentSettings,
        operator: OperatorLayout,
    ) -> Result<SegmentsPlan, Error> {
        let Problem { m, n, arrangement, .. } = Problem::of(layout)?;
        SegmentPlanner::new(operator, &self.facts).with(settings).plan(m, n, arrangement)
    }

    /// Bytes of workspace for so many counters and values.
    fn workspace_bytes(tickets: u64, partials: u64, acc_bytes: usize) -> u64 {
        let values = LEAST + partials.saturating_mul(acc_bytes as u64);
        if tickets * 4 <= LEAST { values } else { values.next_multiple_of(16).saturating_add(tickets * 4) }
    }

    /// Lays a workspace ready for one capture.
    pub(crate) fn warm_up(&self, plan: &SegmentsPlan, acc_bytes: usize) -> Result<(), Error> {
        let gpu = &self.gpu;
        let _current = gpu.context.enter_or_error()?;
        let bytes = Self::workspace_bytes(plan.tickets, plan.partials, acc_bytes);
        gpu.segment_pool.add_spare(Block::new_zeroed(&gpu.context, bytes)?);
        Ok(())
    }

    /// Enqueues a reduction of the segments that a layout leads to from `input` into `output`.
    ///
    /// # Safety
    ///
    /// `stream` is a live stream of the context (or the default one). Until the work has finished (in every run of the
    /// graph, if the stream is being captured) all items are readable and not written, and as many outputs as there are
    /// segments are writable and not used otherwise.
    pub(crate) unsafe fn enqueue(
        &self,
        op: Erased<'_>,
        input: CUdeviceptr,
        layout: &Layout,
        settings: SegmentSettings,
        output: CUdeviceptr,
        stream: CUstream,
    ) -> Result<(), Error> {
        aligned_to(input, op.types.item_align)?;
        aligned_to(output, op.types.output_align)?;
        let problem = Problem::of(layout)?;
        let plan = self.plan(layout, settings, op.types.layout)?;
        if problem.m == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe {
            self.with_room((plan.tickets, plan.partials), op.types.layout.acc_bytes, stream, &mut |room| {
                let places = Places {
                    input: input as usize,
                    output: output as usize,
                    partials: room.partials as usize,
                    tickets: room.tickets as usize,
                };
                let params = problem.params(op, &plan, &places);
                self.launch(plan.kernel(), plan.grid, plan.block, params.as_ptr(), stream)
            })
        }
    }

    /// Enqueues a reduction of segments of any lengths.
    ///
    /// # Safety
    ///
    /// As for [`enqueue`](SegmentLauncher::enqueue); the tables stay alive as long.
    pub(crate) unsafe fn enqueue_irregular(
        &self,
        op: Erased<'_>,
        (input, len): (CUdeviceptr, u64),
        segments: &DeviceSegments,
        output: CUdeviceptr,
        stream: CUstream,
    ) -> Result<(), Error> {
        aligned_to(input, op.types.item_align)?;
        aligned_to(output, op.types.output_align)?;
        if !Arc::ptr_eq(&segments.gpu.context, &self.gpu.context) {
            return Err(Error::ForeignWorkspace);
        }
        let item = op.types.layout.item_bytes;
        if segments.item_bytes != item {
            return Err(Error::PreparedForOthers { prepared: segments.item_bytes, item });
        }
        if segments.end > len {
            let greatest = segments.end as i64 - 1;
            return Err(Error::LayoutOutOfRange { least: 0, greatest, len });
        }
        // SAFETY: the caller's promise.
        unsafe {
            let values = (segments.tickets, segments.partials);
            self.with_room(values, op.types.layout.acc_bytes, stream, &mut |room| {
                let mut head = IrregularHead {
                    input: ptr::with_exposed_provenance(input as usize),
                    len,
                    output: ptr::with_exposed_provenance_mut(output as usize),
                    tiles: ptr::with_exposed_provenance(segments.tiles.address() as usize),
                    listed: ptr::with_exposed_provenance(segments.listed.address() as usize),
                    tasks: ptr::with_exposed_provenance(segments.tasks.address() as usize),
                    units: ptr::with_exposed_provenance(segments.units.address() as usize),
                    partials: ptr::with_exposed_provenance_mut(room.partials as usize),
                    tickets: ptr::with_exposed_provenance_mut(room.tickets as usize),
                    groups: 1,
                    follows: 0,
                    op: NOTHING,
                };
                let most = self.facts.max_grid_x as u64;
                // The longest first: what is short fills up the multiprocessors at the end.
                for &(groups, mut left) in &segments.classes {
                    head.groups = groups;
                    while left > 0 {
                        let grid = left.min(most);
                        self.launch("units", grid as u32, groups.max(32), op.params(head).as_ptr(), stream)?;
                        head.units = head.units.wrapping_add(grid as usize);
                        head.follows = 1;
                        left -= grid;
                    }
                }
                let mut left = segments.tiles.len() as u64;
                while left > 0 {
                    let grid = left.min(most);
                    self.launch("tiles", grid as u32, THREADS, op.params(head).as_ptr(), stream)?;
                    head.tiles = head.tiles.wrapping_add(grid as usize);
                    head.follows = 1;
                    left -= grid;
                }
                Ok(())
            })
        }
    }

    /// Puts tables on the device.
    pub(crate) fn upload(
        &self,
        tables: &Tables,
        plan: &SegmentPlan,
        item_bytes: usize,
    ) -> Result<DeviceSegments, Error> {
        let context = &self.gpu.context;
        let units: Vec<Unit> =
            tables.classes.iter().rev().flat_map(|class| class.units.iter().copied()).collect();
        let _current = context.enter_or_error()?;
        Ok(DeviceSegments {
            count: plan.segments(),
            tiles: DeviceArray::copied(context, &tables.tiles)?,
            listed: DeviceArray::copied(context, &tables.listed)?,
            tasks: DeviceArray::copied(context, &tables.tasks)?,
            units: DeviceArray::copied(context, &units)?,
            classes: tables
                .classes
                .iter()
                .rev()
                .map(|class| (class.groups, class.units.len() as u64))
                .collect(),
            tickets: tables.tickets,
            partials: tables.partials,
            item_bytes,
            end: plan.end(),
            gpu: self.gpu.clone(),
        })
    }

    /// Copies an array to the device, has `enqueue` reduce it there, and copies the results back.
    ///
    /// `enqueue` is given where the items and the results are to be, and a stream.
    ///
    /// # Safety
    ///
    /// `items` bytes from `first` on may be read; what is copied back are values of the output's type.
    pub(crate) unsafe fn on_device(
        &self,
        first: *const u8,
        items: usize,
        output: &mut [MaybeUninit<u8>],
        enqueue: &mut dyn FnMut(CUdeviceptr, CUdeviceptr, CUstream) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let context = &self.gpu.context;
        let results = output.len();
        let at = items.next_multiple_of(256);
        let _current = context.enter_or_error()?;
        self.gpu.with_lane(at + results.max(1), |lane| {
            let waiting = || format!("waiting for {}", self.loaded.export.name);
            // SAFETY: the buffer has room for items and results, which outlive the wait.
            unsafe {
                if items > 0 {
                    driver::cuMemcpyHtoDAsync_v2(lane.address(), first.cast(), items, lane.stream)
                        .doing(|| format!("copying {items} bytes to the device"))?;
                }
                let done = enqueue(lane.address(), lane.address() + at as u64, lane.stream);
                if done.is_ok() && results > 0 {
                    driver::cuMemcpyDtoHAsync_v2(
                        output.as_mut_ptr().cast(),
                        lane.address() + at as u64,
                        results,
                        lane.stream,
                    )
                    .doing(|| format!("copying {results} bytes from the device"))?;
                }
                context.synchronize(lane.stream, waiting)?;
                done
            }
        })
    }

    /// Runs `body` with a workspace for that many counters, which are zero, and values.
    ///
    /// # Safety
    ///
    /// A live stream of the context.
    unsafe fn with_room(
        &self,
        (tickets, partials): (u64, u64),
        acc_bytes: usize,
        stream: CUstream,
        body: &mut dyn FnMut(Room) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (gpu, context) = (&self.gpu, &self.gpu.context);
        let _current = context.enter_or_error()?;
        if tickets == 0 && partials == 0 {
            return body(Room { tickets: 0, partials: 0 });
        }
        let bytes = Self::workspace_bytes(tickets, partials, acc_bytes);
        // SAFETY: the caller's promise; the context is current.
        let (capturing, block) = unsafe {
            let capturing = context.is_capturing(stream)?;
            let block = if capturing {
                gpu.give_to_graph(stream, |capture| {
                    gpu.segment_pool.of_capture(stream, capture, bytes).map(Some)
                })?
            } else {
                Some(gpu.segment_pool.of_stream(context, stream, bytes)?)
            };
            (capturing, block)
        };
        let base = block.as_ref().map_or(0, |block| block.address());
        let partials_at = base + LEAST;
        let mut room = Room { tickets: base, partials: partials_at };
        if tickets * 4 > LEAST {
            // More than are always zero: behind the values, where others' values may have been.
            room.tickets = (partials_at + partials * acc_bytes as u64).next_multiple_of(16);
            // SAFETY: the workspace's own memory.
            unsafe { driver::cuMemsetD8Async(room.tickets, 0, tickets as usize * 4, stream) }
                .doing(|| "zeroing the counters of segments")?;
        }
        body(room).inspect_err(|_| {
            if capturing {
                gpu.segment_pool.discard_captured(stream);
            } else {
                // SAFETY: the caller's promise.
                unsafe { gpu.segment_pool.discard(context, stream) };
            }
        })
    }

    /// Launches one kernel. The context is current.
    ///
    /// # Safety
    ///
    /// As the kernel asks; `params` are its parameters.
    unsafe fn launch(
        &self,
        kernel: &'static str,
        grid: u32,
        block: u32,
        params: *const u8,
        stream: CUstream,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.loaded.launch(kernel, (grid, block), params, stream, true, String::new) }
    }
}
