//! Simulated scans.

use std::ptr;

use warpfold_gpu_kernels::{export::Export, scan::ScanParams};
use warpfold_monoid::Monoid;
use warpfold_simt::sim::{self, Buffer, Fault, Launch, Options};

use super::{SimOptions, check_descriptor, filled};
use crate::{
    Error,
    plan::{DeviceFacts, PARAMETER_BYTES, scans::ScanPlan},
    scans::{Lines, Setting},
};

/// An operator's kernels for scans, ready to be simulated.
#[derive(Clone, Debug)]
pub(crate) struct ScanSimulator {
    options: SimOptions,
    export: &'static Export,
    facts: DeviceFacts,
}

impl ScanSimulator {
    pub(crate) fn new<Op: Monoid>(
        options: SimOptions,
        export: &'static Export,
        facts: DeviceFacts,
    ) -> Result<Self, Error> {
        let bytes = size_of::<ScanParams<Op>>();
        if bytes > PARAMETER_BYTES {
            return Err(Error::OperatorTooLarge { bytes, limit: PARAMETER_BYTES });
        }
        check_descriptor::<Op>(export)?;
        Ok(ScanSimulator { options, export, facts })
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
        let kernel = setting.kernel();
        let launch = Launch::new(format!("{}__{kernel}", self.export.name), plan.grid, plan.block);
        let failed = |fault: String| Error::Simulator {
            kernel: launch.name.clone(),
            grid: plan.grid,
            block: plan.block,
            n: lines.items(),
            fault,
        };
        let entry = self.export.entries.iter().find(|entry| entry.kernel == kernel);
        let entry = entry.ok_or_else(|| failed("the export has no such kernel".into()))?;
        // Arrays of one tile need no workspace, and get none.
        let mut counter = filled(plan.chained().into(), Some(0_u64))?;
        let mut records = filled(plan.pairs, Some([0_u64; 2]))?;
        let SimOptions { schedule, resident_blocks, stack_bytes } = self.options;
        let mut options = Options { schedule, resident_blocks, stack_bytes, ..Options::default() }
            .buffer(Buffer::writable("output", results))
            .buffer(Buffer::writable("counter", &mut counter))
            .buffer(Buffer::writable("records", &mut records));
        let output = results.as_mut_ptr();
        let mut input = output.cast_const().cast();
        if let Some(items) = items {
            options = options.buffer(Buffer::read_only("input", items));
            input = items.as_ptr();
        }
        let params = setting.params(
            op,
            lines,
            &plan,
            (input, output),
            counter.as_mut_ptr(),
            (records.as_mut_ptr(), plan.pairs),
        );
        // An address travels where a pointer may not.
        let address = (&raw const params).expose_provenance();
        sim::launch(&launch, &options, || {
            // SAFETY: the parameters of this operator's kernel, whose descriptor was compared; the plan gives it what their
            // documentation asks for. They outlive the launch.
            unsafe { (entry.simulate)(ptr::with_exposed_provenance(address)) }
        })
        .map_err(|Fault { place, kind, .. }| {
            failed(place.map_or_else(|| kind.to_string(), |place| format!("{place}: {kind}")))
        })?;
        match counter[..] {
            [left] if left as u32 != 0 => {
                Err(failed(format!("it leaves the next tile at {}, the next launch needs 0", left as u32)))
            }
            _ => Ok(()),
        }
    }
}
