//! Simulated scans.

use std::ptr;

use warpfold_gpu_kernels::{export::Export, scan::ScanParams};
use warpfold_monoid::Monoid;
use warpfold_simt::sim::Buffer;

use super::{Bodies, Name, Room, SimOptions};
use crate::{
    Error,
    erased::{Types, bytes_of},
    plan::{DeviceFacts, scans::ScanPlan},
    scans::{Lines, Setting},
};

/// An operator's kernels for scans, ready to be simulated.
#[derive(Clone, Debug)]
pub(crate) struct ScanSimulator {
    bodies: Bodies,
    facts: DeviceFacts,
}

impl ScanSimulator {
    pub(crate) fn new<Op: Monoid>(
        options: SimOptions,
        export: &'static Export,
        facts: DeviceFacts,
    ) -> Result<Self, Error> {
        let bodies = Bodies::new(options, export, Types::of::<Op>(), size_of::<ScanParams<Op>>())?;
        Ok(ScanSimulator { bodies, facts })
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
        let plan = ScanPlan::new::<Op>(lines, &self.facts)?;
        let name = Name { kernel: setting.kernel(), grid: plan.grid, block: plan.block, n: lines.items() };
        // Arrays of one tile need no workspace, and get none.
        let mut counter = Room::filled(plan.chained().into(), bytes_of(&0_u64))?;
        let mut records = Room::filled(plan.pairs, bytes_of(&[0_u64; 2]))?;
        let mut buffers =
            vec![Buffer::writable("output", results), counter.buffer("counter"), records.buffer("records")];
        let output = results.as_mut_ptr();
        let mut input = output.cast_const().cast();
        if let Some(items) = items {
            buffers.push(Buffer::read_only("input", items));
            input = items.as_ptr();
        }
        let params = setting.params(
            op,
            lines,
            &plan,
            (input, output),
            ptr::with_exposed_provenance_mut(counter.address()),
            (ptr::with_exposed_provenance_mut(records.address()), plan.pairs),
        );
        let options = self.bodies.options(buffers);
        // SAFETY: the parameters of this operator's kernel; the plan gives it what its documentation asks for.
        unsafe { self.bodies.launch(&name, &options, ptr::from_ref(&params).cast())? };
        // The half that counts tiles; the other one, the epoch, stays.
        match counter.first_u32() {
            None | Some(0) => Ok(()),
            Some(left) => Err(self
                .bodies
                .failed(&name, format!("it leaves the next tile at {left}, the next launch needs 0"))),
        }
    }
}
