//! Simulated scans.

use std::ptr;

use warpfold_gpu_kernels::{export::Export, scan::segments::fits};
use warpfold_monoid::Monoid;
use warpfold_simt::sim::Buffer;

use super::{Bodies, Name, Room, SimOptions};
use crate::{
    Error,
    erased::{Types, bytes_of},
    plan::{
        DeviceFacts,
        scans::{Bounds, Count, ScanPlan, Work},
    },
    scans::{Lines, Memory, Params, Setting},
};

/// An operator's kernels for scans, ready to be simulated.
#[derive(Clone, Debug)]
pub(crate) struct ScanSimulator {
    bodies: Bodies,
    /// Those for many lines.
    lines: Option<Bodies>,
    facts: DeviceFacts,
}

impl ScanSimulator {
    pub(crate) fn new<Op: Monoid>(
        options: SimOptions,
        export: &'static Export,
        lines: Option<&'static Export>,
        facts: DeviceFacts,
    ) -> Result<Self, Error> {
        let bodies = |export| Bodies::new(options, export, Types::of::<Op>(), Params::<Op>::BYTES);
        Ok(ScanSimulator { bodies: bodies(export)?, lines: lines.map(bodies).transpose()?, facts })
    }

    /// Are there kernels for segments of any lengths?
    pub(crate) fn scans_segments<Op: Monoid>(&self) -> bool {
        self.lines.is_some() && const { fits::<Op>() }
    }

    /// Scans lines of items, or without any of the results' own memory.
    pub(crate) fn scan<Op: Monoid>(
        &self,
        op: Op,
        setting: &Setting<Op::Acc>,
        items: Option<&[Op::Item]>,
        lines: &Lines,
        results: &mut [Op::Output],
    ) -> Result<(), Error> {
        self.run(op, setting, items, &Work::Lines(lines), results, Vec::new())
    }

    /// Scans segments of items.
    pub(crate) fn segments<Op: Monoid>(
        &self,
        op: Op,
        setting: &Setting<Op::Acc>,
        items: &[Op::Item],
        offsets: &[u64],
        results: &mut [Op::Output],
    ) -> Result<(), Error> {
        let buffers = vec![Buffer::read_only("offsets", offsets)];
        let segments = Bounds {
            offsets: offsets.as_ptr().expose_provenance() as u64,
            count: Count::Known(offsets.len() as u64 - 1),
        };
        let work = Work::Segments { len: items.len() as u64, segments };
        self.run(op, setting, Some(items), &work, results, buffers)
    }

    fn run<Op: Monoid>(
        &self,
        op: Op,
        setting: &Setting<Op::Acc>,
        items: Option<&[Op::Item]>,
        work: &Work<'_>,
        results: &mut [Op::Output],
        mut buffers: Vec<Buffer>,
    ) -> Result<(), Error> {
        let plan = ScanPlan::new::<Op>(work, &self.facts, self.lines.is_some())?;
        let (kernel, by_lines) = plan.kernel(setting.form.reverse);
        let bodies = if by_lines { self.lines.as_ref().unwrap_or(&self.bodies) } else { &self.bodies };
        let name = Name { kernel, grid: plan.grid, block: plan.block, n: work.items() };
        // Blocks that do not wait for others need no workspace, and get none.
        let mut counter = Room::filled(plan.chained.into(), bytes_of(&0_u64))?;
        let mut records = Room::filled(plan.pairs, bytes_of(&[0_u64; 2]))?;
        buffers.extend([
            Buffer::writable("output", results),
            counter.buffer("counter"),
            records.buffer("records"),
        ]);
        let output = results.as_mut_ptr();
        let mut input = output.cast_const().cast();
        if let Some(items) = items {
            buffers.push(Buffer::read_only("input", items));
            input = items.as_ptr();
        }
        let memory = Memory {
            input,
            output,
            counter: ptr::with_exposed_provenance_mut(counter.address()),
            records: ptr::with_exposed_provenance_mut(records.address()),
            capacity: plan.pairs,
        };
        let params = setting.params(op, work, &plan, memory);
        let options = bodies.options(buffers);
        // SAFETY: the parameters of this operator's kernel; the plan gives it what its documentation asks for.
        unsafe { bodies.launch_with(&name, plan.shared as usize, &options, params.as_ptr())? };
        // The half that counts blocks; the other one, the epoch, stays.
        match counter.first_u32() {
            None | Some(0) => Ok(()),
            Some(left) => {
                Err(bodies
                    .failed(&name, format!("it leaves the next tile at {left}, the next launch needs 0")))
            }
        }
    }
}
