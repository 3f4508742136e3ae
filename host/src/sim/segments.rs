//! Simulated reductions of segments.

use std::ptr;

use warpfold_gpu_kernels::{
    export::{Descriptor, Export},
    segments::irregular::IrregularParams,
};
use warpfold_monoid::Monoid;
use warpfold_simt::sim::Buffer;

use super::{Bodies, Name, Room, SimOptions};
use crate::{
    Error,
    erased::bytes_of,
    plan::{
        DeviceFacts, OperatorLayout,
        segments::{SegmentPlanner, SegmentSettings, SegmentsPlan},
    },
    segments::{Class, Layout, Params, Places, Problem, Tables},
};

/// An operator's kernels for segments, ready to be simulated.
#[derive(Clone, Debug)]
pub(crate) struct SegmentSimulator {
    bodies: Bodies,
    facts: DeviceFacts,
}

impl SegmentSimulator {
    pub(crate) fn new<Op: Monoid>(
        options: SimOptions,
        export: &'static Export,
        facts: DeviceFacts,
    ) -> Result<Self, Error> {
        let bytes = Params::<Op>::BYTES.max(size_of::<IrregularParams<Op>>());
        Ok(SegmentSimulator { bodies: Bodies::new(options, export, Descriptor::of::<Op>(), bytes)?, facts })
    }

    pub(crate) fn plan<Op: Monoid>(
        &self,
        layout: &Layout,
        settings: SegmentSettings,
    ) -> Result<SegmentsPlan, Error> {
        let Problem { m, n, arrangement, .. } = Problem::of(layout)?;
        SegmentPlanner::new(OperatorLayout::of::<Op>(), &self.facts).with(settings).plan(m, n, arrangement)
    }

    /// Reduces the segments of an array to `output`, which has room for exactly that many.
    ///
    /// # Safety
    ///
    /// Every item that the layout leads to from `first` may be read.
    pub(crate) unsafe fn reduce<Op: Monoid>(
        &self,
        op: Op,
        first: *const Op::Item,
        layout: &Layout,
        settings: SegmentSettings,
        output: &mut [Op::Output],
    ) -> Result<(), Error> {
        let problem = Problem::of(layout)?;
        let plan = self.plan::<Op>(layout, settings)?;
        if problem.m == 0 {
            return Ok(());
        }
        let mut partials = Room::filled(plan.partials, bytes_of(&op.identity()))?;
        let mut tickets = Room::filled(plan.tickets, bytes_of(&0_u32))?;
        let places = Places {
            input: first.expose_provenance(),
            output: output.as_mut_ptr().expose_provenance(),
            partials: partials.address(),
            tickets: tickets.address(),
        };
        let output = Buffer::writable("output", output);
        let params = problem.params(op, &plan, &places);
        // SAFETY: the parameters of that kernel of this operator; the plan gives it what its documentation asks for.
        unsafe {
            self.run(
                (&problem, &plan),
                (first.addr(), size_of::<Op::Item>()),
                output,
                [&mut partials, &mut tickets],
                params.as_ptr(),
            )
        }
    }

    /// # Safety
    ///
    /// As for [`Bodies::launch`].
    unsafe fn run(
        &self,
        (problem, plan): (&Problem, &SegmentsPlan),
        (first, item_bytes): (usize, usize),
        output: Buffer,
        [partials, tickets]: [&mut Room; 2],
        params: *const u8,
    ) -> Result<(), Error> {
        // What lies between the least and the greatest item may be of other arrays.
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
        let buffers = vec![input, output, partials.buffer("partials"), tickets.buffer("tickets")];
        // SAFETY: the caller's promise.
        unsafe { self.bodies.launch(&name, &self.bodies.options(buffers), params)? };
        self.bodies.check(&name, tickets)
    }

    /// Reduces segments of any lengths to `output`, which has room for exactly that many.
    pub(crate) fn reduce_irregular<Op: Monoid>(
        &self,
        op: Op,
        items: &[Op::Item],
        begins: &[u64],
        ends: &[u64],
        tables: &Tables,
        output: &mut [Op::Output],
    ) -> Result<(), Error> {
        let mut partials = Room::filled(tables.partials, bytes_of(&op.identity()))?;
        let mut tickets = Room::filled(tables.tickets, bytes_of(&0_u32))?;
        let mut params = IrregularParams::<Op> {
            input: items.as_ptr(),
            len: items.len() as u64,
            begins: begins.as_ptr(),
            ends: ends.as_ptr(),
            output: output.as_mut_ptr(),
            tiles: tables.tiles.as_ptr(),
            units: ptr::null(),
            count: tables.tiles.len() as u64,
            partials: ptr::with_exposed_provenance_mut(partials.address()),
            tickets: ptr::with_exposed_provenance_mut(tickets.address()),
            groups: 1,
            padding: 0,
            op,
        };
        let buffers = vec![
            Buffer::read_only("input", items),
            Buffer::read_only("begins", begins),
            Buffer::read_only("ends", ends),
            Buffer::writable("output", output),
        ];
        let mut params_of = |class: Option<&Class>| {
            if let Some(class) = class {
                params.units = class.units.as_ptr();
                params.count = class.units.len() as u64;
                params.groups = class.groups;
            }
            ptr::from_ref(&params).cast()
        };
        // SAFETY: the parameters of this operator's kernels; the tables give them what their documentation asks for.
        unsafe {
            self.run_irregular(
                tables,
                items.len() as u64,
                buffers,
                [&mut partials, &mut tickets],
                &mut params_of,
            )
        }
    }

    /// Runs the kernel for tiles, if there are any, and that for units once a class, with the parameters for each.
    ///
    /// # Safety
    ///
    /// As for [`Bodies::launch`].
    unsafe fn run_irregular(
        &self,
        tables: &Tables,
        n: u64,
        mut buffers: Vec<Buffer>,
        [partials, tickets]: [&mut Room; 2],
        params: &mut dyn FnMut(Option<&Class>) -> *const u8,
    ) -> Result<(), Error> {
        buffers.extend([
            Buffer::read_only("tiles", &tables.tiles),
            partials.buffer("partials"),
            tickets.buffer("tickets"),
        ]);
        let options = self.bodies.options(buffers);
        if !tables.tiles.is_empty() {
            let grid = tables.tiles.len().min(self.facts.max_grid_x as usize) as u32;
            let name = Name { kernel: "tiles", grid, block: warpfold_gpu_kernels::segments::THREADS, n };
            // SAFETY: the caller's promise.
            unsafe { self.bodies.launch(&name, &options, params(None))? };
        }
        for class in &tables.classes {
            let grid = class.units.len() as u32;
            let name = Name { kernel: "units", grid, block: class.groups.max(32), n };
            let options = options.clone().buffer(Buffer::read_only("units", &class.units));
            // SAFETY: the caller's promise.
            unsafe { self.bodies.launch(&name, &options, params(Some(class)))? };
            self.bodies.check(&name, tickets)?;
        }
        Ok(())
    }
}
