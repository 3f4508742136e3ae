//! Simulated reductions by tag.

use std::ptr;

use warpfold_gpu_kernels::{
    export::Export,
    tags::{FOLD_THREADS, TagParams},
};
use warpfold_monoid::Monoid;
use warpfold_simt::sim::Buffer;

use super::{Bodies, Name, Room, SimOptions};
use crate::{
    Error, Tag,
    erased::{Types, bytes_of},
    plan::{
        DeviceFacts,
        tags::{Places, TagPlan},
    },
};

/// An operator's kernels for reductions by tag, ready to be simulated.
#[derive(Clone, Debug)]
pub(crate) struct TagSimulator {
    bodies: Bodies,
    facts: DeviceFacts,
}

impl TagSimulator {
    pub(crate) fn new<Op: Monoid>(
        options: SimOptions,
        export: &'static Export,
        facts: DeviceFacts,
    ) -> Result<Self, Error> {
        let bodies = Bodies::new(options, export, Types::of::<Op>(), size_of::<TagParams<Op>>())?;
        Ok(TagSimulator { bodies, facts })
    }

    /// Reduces by tag; returns the first item, if there is one, whose tag is out of range.
    pub(crate) fn reduce<T: Tag, Op: Monoid>(
        &self,
        op: Op,
        k: u64,
        tags: &[T],
        values: &[Op::Item],
        results: &mut [Op::Output],
    ) -> Result<Option<u64>, Error> {
        let n = values.len() as u64;
        let plan = TagPlan::new::<Op>(n, k, &self.facts)?;
        let mut partials = Room::filled(plan.partials, bytes_of(&op.identity()))?;
        let mut present = Room::filled(plan.partials, bytes_of(&0_u8))?;
        let mut first_bad = Room::filled(1, bytes_of(&u64::MAX))?;
        let buffers = vec![
            Buffer::read_only("tags", tags),
            Buffer::read_only("values", values),
            Buffer::writable("output", results),
            partials.buffer("partials"),
            present.buffer("present"),
            first_bad.buffer("first_bad"),
        ];
        let params = plan.params(
            op,
            &Places {
                tags: tags.as_ptr().expose_provenance(),
                width: T::WIDTH,
                values: values.as_ptr().expose_provenance(),
                output: results.as_mut_ptr().expose_provenance(),
                partials: partials.address(),
                present: present.address(),
                first_bad: first_bad.address(),
            },
        );
        let options = self.bodies.options(buffers);
        let params = ptr::from_ref(&params).cast();
        // SAFETY: the parameters of this operator's kernels; the plan gives them what their documentation asks for.
        unsafe {
            if plan.grid > 0 {
                let name = Name { kernel: plan.kernel, grid: plan.grid, block: plan.block, n };
                self.bodies.launch_with(&name, plan.shared as usize, &options, params)?;
            }
            if plan.fold > 0 {
                let name = Name { kernel: "fold", grid: plan.fold, block: FOLD_THREADS, n };
                self.bodies.launch(&name, &options, params)?;
            }
        }
        Ok(first_bad.first_u64().filter(|&index| index != u64::MAX))
    }
}
