//! Simulated reductions by key.

use std::ptr;

use warpfold_gpu_kernels::{export::Export, scan::runs::RunParams};
use warpfold_monoid::{
    Monoid, Plain,
    keyed::{Equality, Runs},
};
use warpfold_simt::sim::Buffer;

use super::{Bodies, Name, Room, SimOptions};
use crate::{
    ByKey, Error,
    erased::{Types, bytes_of},
    plan::{
        DeviceFacts,
        runs::{RunPlaces, RunPlan},
    },
    segments::room,
};

/// The kernel for reductions by key of an operator, ready to be simulated.
#[derive(Clone, Debug)]
pub(crate) struct RunSimulator {
    bodies: Bodies,
    facts: DeviceFacts,
}

impl RunSimulator {
    pub(crate) fn new<K: Plain, E: Equality<K>, Op: Monoid>(
        options: SimOptions,
        export: &'static Export,
        facts: DeviceFacts,
    ) -> Result<Self, Error> {
        let (types, bytes) = (Types::of::<Runs<K, E, Op>>(), size_of::<RunParams<K, E, Op>>());
        Ok(RunSimulator { bodies: Bodies::new(options, export, types, bytes)?, facts })
    }

    /// Of an export that was found by its type.
    pub(crate) fn of_export(options: SimOptions, export: &'static Export, facts: DeviceFacts) -> Self {
        RunSimulator { bodies: Bodies { options, export }, facts }
    }

    /// Reduces runs; the operator is told the items' positions, or these indices.
    pub(crate) fn reduce<K: Plain, E: Equality<K>, Op: Monoid>(
        &self,
        op: Runs<K, E, Op>,
        keys: &[K],
        values: &[Op::Item],
        indices: Option<&[u32]>,
    ) -> Result<ByKey<K, Op::Output>, Error> {
        let n = keys.len() as u64;
        if n == 0 {
            return Ok(ByKey { keys: Vec::new(), values: Vec::new() });
        }
        let plan = RunPlan::new::<K, E, Op>(n, &self.facts)?;
        let (mut out_keys, mut out_values) = (room::<K>(n)?, room::<Op::Output>(n)?);
        let mut count = Room::filled(1, bytes_of(&0_u64))?;
        // Arrays of one tile need no workspace, and get none.
        let mut counter = Room::filled(plan.chained().into(), bytes_of(&0_u64))?;
        let mut records = Room::filled(plan.pairs, bytes_of(&[0_u64; 2]))?;
        let mut buffers = vec![
            Buffer::read_only("keys", keys),
            Buffer::read_only("values", values),
            Buffer::writable("out_keys", &mut out_keys),
            Buffer::writable("out_values", &mut out_values),
            count.buffer("count"),
            counter.buffer("counter"),
            records.buffer("records"),
        ];
        buffers.extend(indices.map(|indices| Buffer::read_only("indices", indices)));
        let at = RunPlaces {
            keys: keys.as_ptr().expose_provenance(),
            values: values.as_ptr().expose_provenance(),
            indices: indices.map_or(0, |indices| indices.as_ptr().expose_provenance()),
            out_keys: out_keys.as_mut_ptr().expose_provenance(),
            out_values: out_values.as_mut_ptr().expose_provenance(),
            count: count.address(),
            counter: counter.address(),
            records: records.address(),
        };
        let params = plan.params(op, &at, plan.pairs);
        let options = self.bodies.options(buffers);
        let name = Name { kernel: "runs", grid: plan.grid, block: plan.block, n };
        // SAFETY: the parameters of this operator's kernel; the plan gives it what its documentation asks for.
        unsafe { self.bodies.launch(&name, &options, ptr::from_ref(&params).cast())? };
        // The half that counts tiles; the other one, the epoch, stays.
        if let Some(left) = counter.first_u32().filter(|&left| left != 0) {
            let fault = format!("it leaves the next tile at {left}, the next launch needs 0");
            return Err(self.bodies.failed(&name, fault));
        }
        let count = count.first_u64().unwrap_or(0) as usize;
        out_keys.truncate(count);
        out_values.truncate(count);
        Ok(ByKey { keys: out_keys, values: out_values })
    }
}
