//! Simulated reductions of segments.

use std::ptr;

use warpfold_gpu_kernels::{export::Export, segments::irregular::IrregularParams};
use warpfold_monoid::Monoid;
use warpfold_simt::sim::{self, Buffer, Fault, Launch, Options};

use super::{SimOptions, check_descriptor, filled};
use crate::{
    Error,
    plan::{
        DeviceFacts, OperatorLayout, PARAMETER_BYTES,
        segments::{SegmentPlanner, SegmentSettings, SegmentsPlan},
    },
    segments::{Layout, Params, Places, Problem, Tables},
};

/// An operator's kernels for segments, ready to be simulated.
#[derive(Clone, Debug)]
pub(crate) struct SegmentSimulator {
    options: SimOptions,
    export: &'static Export,
    facts: DeviceFacts,
    /// More memory that the operator accesses.
    pub(crate) buffers: Vec<Buffer>,
}

/// What a launch is called, and how it is described if it fails.
struct Name<'a> {
    kernel: &'a str,
    grid: u32,
    block: u32,
    n: u64,
}

impl SegmentSimulator {
    pub(crate) fn new<Op: Monoid>(
        options: SimOptions,
        export: &'static Export,
        facts: DeviceFacts,
    ) -> Result<Self, Error> {
        let bytes = Params::<Op>::BYTES.max(size_of::<IrregularParams<Op>>());
        if bytes > PARAMETER_BYTES {
            return Err(Error::OperatorTooLarge { bytes, limit: PARAMETER_BYTES });
        }
        check_descriptor::<Op>(export)?;
        Ok(SegmentSimulator { options, export, facts, buffers: Vec::new() })
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
        // What lies between the least and the greatest item may be of other arrays.
        let items = match problem.extent {
            Some((least, greatest)) => {
                (first.wrapping_offset(least as isize), (greatest - least + 1) as usize)
            }
            None => (first, 0),
        };
        let mut partials = filled(plan.partials, Some(op.identity()))?;
        let mut tickets = filled(plan.tickets, Some(0_u32))?;
        let places = Places {
            input: first.expose_provenance(),
            output: output.as_mut_ptr().expose_provenance(),
            partials: partials.as_mut_ptr().expose_provenance(),
            tickets: tickets.as_mut_ptr().expose_provenance(),
        };
        let name =
            Name { kernel: plan.kernel(), grid: plan.grid, block: plan.block, n: problem.m * problem.n };
        let options = self
            .options()
            .buffer(Buffer {
                name: "input".into(),
                start: items.0.addr(),
                bytes: items.1 * size_of::<Op::Item>(),
                writable: false,
            })
            .buffer(Buffer::writable("output", output))
            .buffer(Buffer::writable("partials", &mut partials))
            .buffer(Buffer::writable("tickets", &mut tickets));
        let params = problem.params(op, &plan, &places);
        self.launch(&name, &options, params.as_ptr())?;
        self.check(&name, &tickets)
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
        let mut partials = filled(tables.partials, Some(op.identity()))?;
        let mut tickets = filled(tables.tickets, Some(0_u32))?;
        let mut params = IrregularParams::<Op> {
            input: items.as_ptr(),
            len: items.len() as u64,
            begins: begins.as_ptr(),
            ends: ends.as_ptr(),
            output: output.as_mut_ptr(),
            tiles: tables.tiles.as_ptr(),
            units: ptr::null(),
            count: tables.tiles.len() as u64,
            partials: partials.as_mut_ptr(),
            tickets: tickets.as_mut_ptr(),
            groups: 1,
            padding: 0,
            op,
        };
        let n = items.len() as u64;
        let most = self.facts.max_grid_x as usize;
        let options = self
            .options()
            .buffer(Buffer::read_only("input", items))
            .buffer(Buffer::read_only("begins", begins))
            .buffer(Buffer::read_only("ends", ends))
            .buffer(Buffer::read_only("tiles", &tables.tiles))
            .buffer(Buffer::writable("output", output))
            .buffer(Buffer::writable("partials", &mut partials))
            .buffer(Buffer::writable("tickets", &mut tickets));
        if !tables.tiles.is_empty() {
            let grid = tables.tiles.len().min(most) as u32;
            let name = Name { kernel: "tiles", grid, block: warpfold_gpu_kernels::segments::THREADS, n };
            self.launch(&name, &options, ptr::from_ref(&params).cast())?;
        }
        for class in &tables.classes {
            params.units = class.units.as_ptr();
            params.count = class.units.len() as u64;
            params.groups = class.groups;
            let grid = class.units.len() as u32;
            let name = Name { kernel: "units", grid, block: class.groups.max(32), n };
            let mut options = options.clone();
            options.buffers.push(Buffer::read_only("units", &class.units));
            self.launch(&name, &options, ptr::from_ref(&params).cast())?;
            self.check(&name, &tickets)?;
        }
        Ok(())
    }

    fn options(&self) -> Options {
        let SimOptions { schedule, resident_blocks, stack_bytes } = self.options;
        let buffers = self.buffers.clone();
        Options { schedule, resident_blocks, stack_bytes, buffers, ..Options::default() }
    }

    fn failed(&self, name: &Name, fault: String) -> Error {
        Error::Simulator {
            kernel: format!("{}__{}", self.export.name, name.kernel),
            grid: name.grid,
            block: name.block,
            n: name.n,
            fault,
        }
    }

    fn launch(&self, name: &Name, options: &Options, params: *const u8) -> Result<(), Error> {
        let entry = self.export.entries.iter().find(|entry| entry.kernel == name.kernel);
        let entry = entry.ok_or_else(|| self.failed(name, "the export has no such kernel".into()))?;
        let launch = Launch::new(format!("{}__{}", self.export.name, name.kernel), name.grid, name.block);
        // An address travels where a pointer may not.
        let address = params.expose_provenance();
        sim::launch(&launch, options, || {
            // SAFETY: the parameters of that kernel of this operator, whose descriptor was compared; the plan and the
            // tables give it what their documentation asks for. They outlive the launch.
            unsafe { (entry.simulate)(ptr::with_exposed_provenance(address)) }
        })
        .map(|_| ())
        .map_err(|Fault { place, kind, .. }| {
            self.failed(name, place.map_or_else(|| kind.to_string(), |place| format!("{place}: {kind}")))
        })
    }

    /// Are all tickets as the next launch needs them?
    fn check(&self, name: &Name, tickets: &[u32]) -> Result<(), Error> {
        match tickets.iter().position(|&ticket| ticket != 0) {
            None => Ok(()),
            Some(at) => Err(self
                .failed(name, format!("it leaves ticket {at} at {}, the next launch needs 0", tickets[at]))),
        }
    }
}
