//! Simulated reductions of segments.

use std::{mem::MaybeUninit, ptr};

use warpfold_gpu_kernels::{export::Export, segments::THREADS};
use warpfold_simt::sim::Buffer;

use super::{Bodies, Name, Room, SimOptions};
use crate::{
    Error,
    erased::{Erased, IrregularHead, NOTHING, Types, bytes_of},
    plan::{
        DeviceFacts, OperatorLayout,
        segments::{SegmentPlanner, SegmentSettings, SegmentsPlan},
    },
    segments::{Class, Layout, Places, Problem, Tables},
};

/// An operator's kernels for segments, ready to be simulated.
#[derive(Clone, Debug)]
pub(crate) struct SegmentSimulator {
    bodies: Bodies,
    facts: DeviceFacts,
    /// More memory that the operator accesses.
    pub(crate) buffers: Vec<Buffer>,
}

impl SegmentSimulator {
    pub(crate) fn new(
        options: SimOptions,
        export: &'static Export,
        facts: DeviceFacts,
        types: &Types,
    ) -> Result<Self, Error> {
        let bodies = Bodies::new(options, export, types, types.segment_bytes)?;
        Ok(SegmentSimulator { bodies, facts, buffers: Vec::new() })
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

    /// Reduces the segments of an array, `first` being the address of the item at index 0 of every axis, to `output`, which
    /// has room for exactly that many.
    ///
    /// # Safety
    ///
    /// The export is that operator's, `identity` one of its accumulators, and every item that the layout leads to may be
    /// read.
    pub(crate) unsafe fn reduce(
        &self,
        op: Erased<'_>,
        identity: &[MaybeUninit<u8>],
        first: usize,
        layout: &Layout,
        settings: SegmentSettings,
        output: Buffer,
    ) -> Result<(), Error> {
        let problem = Problem::of(layout)?;
        let plan = self.plan(layout, settings, op.types.layout)?;
        if problem.m == 0 {
            return Ok(());
        }
        let mut partials = Room::filled(plan.partials, identity)?;
        let mut tickets = Room::filled(plan.tickets, bytes_of(&0_u32))?;
        let places = Places {
            input: first,
            output: output.start,
            partials: partials.address(),
            tickets: tickets.address(),
        };
        // What lies between the least and the greatest item may be of other arrays.
        let item_bytes = op.types.layout.item_bytes;
        let (least, items) = match problem.extent {
            Some((least, greatest)) => (least as isize, (greatest - least + 1) as usize),
            None => (0, 0),
        };
        let input = Buffer {
            name: "input".into(),
            start: first.wrapping_add_signed(least.wrapping_mul(item_bytes as isize)),
            bytes: items * item_bytes,
            writable: false,
        };
        let name =
            Name { kernel: plan.kernel(), grid: plan.grid, block: plan.block, n: problem.m * problem.n };
        let mut buffers = self.buffers.clone();
        buffers.extend([input, output, partials.buffer("partials"), tickets.buffer("tickets")]);
        let params = problem.params(op, &plan, &places);
        // SAFETY: the parameters of that kernel of this operator; the plan gives it what its documentation asks for.
        unsafe { self.bodies.launch(&name, &self.bodies.options(buffers), params.as_ptr())? };
        self.bodies.check(&name, &tickets)
    }

    /// Reduces segments of any lengths of `len` items to `output`, which has room for exactly that many.
    ///
    /// # Safety
    ///
    /// The export is that operator's, `identity` one of its accumulators, and the input has its items.
    pub(crate) unsafe fn reduce_irregular(
        &self,
        op: Erased<'_>,
        identity: &[MaybeUninit<u8>],
        (input, len): (Buffer, u64),
        tables: &Tables,
        output: Buffer,
    ) -> Result<(), Error> {
        let mut partials = Room::filled(tables.partials, identity)?;
        let mut tickets = Room::filled(tables.tickets, bytes_of(&0_u32))?;
        let mut head = IrregularHead {
            input: ptr::with_exposed_provenance(input.start),
            len,
            output: ptr::with_exposed_provenance_mut(output.start),
            tiles: tables.tiles.as_ptr(),
            listed: tables.listed.as_ptr(),
            tasks: tables.tasks.as_ptr(),
            units: ptr::null(),
            partials: ptr::with_exposed_provenance_mut(partials.address()),
            tickets: ptr::with_exposed_provenance_mut(tickets.address()),
            groups: 1,
            follows: 0,
            op: NOTHING,
        };
        let mut buffers = self.buffers.clone();
        buffers.extend([
            input,
            output,
            Buffer::read_only("tiles", &tables.tiles),
            Buffer::read_only("listed", &tables.listed),
            Buffer::read_only("tasks", &tables.tasks),
            partials.buffer("partials"),
            tickets.buffer("tickets"),
        ]);
        let options = self.bodies.options(buffers);
        let most = self.facts.max_grid_x as usize;
        for Class { groups, units } in tables.classes.iter().rev() {
            head.groups = *groups;
            for units in units.chunks(most) {
                head.units = units.as_ptr();
                let (grid, block) = (units.len() as u32, (*groups).max(32));
                let name = Name { kernel: "units", grid, block, n: len };
                let options = options.clone().buffer(Buffer::read_only("units", units));
                // SAFETY: the parameters of that kernel of this operator; the tables give it what its documentation asks for.
                unsafe { self.bodies.launch(&name, &options, op.params(head).as_ptr())? };
                self.bodies.check(&name, &tickets)?;
                head.follows = 1;
            }
        }
        for tiles in tables.tiles.chunks(most) {
            head.tiles = tiles.as_ptr();
            let name = Name { kernel: "tiles", grid: tiles.len() as u32, block: THREADS, n: len };
            // SAFETY: as above.
            unsafe { self.bodies.launch(&name, &options, op.params(head).as_ptr())? };
            head.follows = 1;
        }
        Ok(())
    }
}
