//! Simulated reductions by tag.

use std::ptr;

use warpfold_gpu_kernels::{
    export::Export,
    sort::{Payload, kind},
    tags::{TagParams, sorted},
};
use warpfold_monoid::{
    Monoid,
    keyed::{Equal, Runs},
};
use warpfold_simt::sim::Buffer;

use super::{Bodies, Name, Room, RunSimulator, SimOptions, SortSimulator};
use crate::{
    ByKey, Error, Tag,
    erased::{Types, bytes_of},
    keys::{RunKey, Travels},
    plan::{
        DeviceFacts,
        tags::{Places, SortedPlaces, SortedPlan, TagPlan},
    },
    segments::room,
};

/// An operator's kernels for reductions by tag, ready to be simulated.
#[derive(Clone, Debug)]
pub(crate) struct TagSimulator {
    bodies: Bodies,
    facts: DeviceFacts,
    /// What sorts, or why nothing does.
    sorts: Result<SortSimulator, Error>,
}

impl TagSimulator {
    pub(crate) fn new<Op: Monoid>(
        options: SimOptions,
        export: &'static Export,
        facts: DeviceFacts,
        sorts: Result<SortSimulator, Error>,
    ) -> Result<Self, Error> {
        let bodies = Bodies::new(options, export, Types::of::<Op>(), size_of::<TagParams<Op>>())?;
        Ok(TagSimulator { bodies, facts, sorts })
    }

    /// Room for the values of `k` tags of a stream.
    pub(crate) fn sink<Op: Monoid>(&self, k: u64) -> Result<SimTags, Error> {
        let kept = Room::filled(k, bytes_of(&warpfold_monoid::zeroed::<Op::Acc>()))?;
        Ok(SimTags { simulator: self.clone(), kept, held: Room::filled(k, bytes_of(&0_u8))? })
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
        if let Some(plan) = SortedPlan::of::<Op>(values.len() as u64, k, &self.facts) {
            return self.reduce_sorted(op, &plan, tags, values, results);
        }
        let first_bad =
            self.run(op, k, (tags, values), 0, vec![Buffer::writable("output", results)], |at| {
                at.output = results.as_mut_ptr().expose_provenance();
            })?;
        Ok(first_bad)
    }

    /// The same by sorting.
    fn reduce_sorted<T: Tag, Op: Monoid>(
        &self,
        op: Op,
        plan: &SortedPlan,
        tags: &[T],
        values: &[Op::Item],
        results: &mut [Op::Output],
    ) -> Result<Option<u64>, Error> {
        let n = values.len() as u64;
        let mut first_bad = Room::filled(1, bytes_of(&u64::MAX))?;
        let mut made = room::<u32>(if SortedPlan::makes_keys::<T>() { n } else { 0 })?;
        let mut at = SortedPlaces {
            tags: tags.as_ptr().expose_provenance(),
            width: T::WIDTH,
            keys: if made.is_empty() { 0 } else { made.as_mut_ptr().expose_provenance() },
            output: results.as_mut_ptr().expose_provenance(),
            first_bad: first_bad.address(),
            run_keys: 0,
            run_values: 0,
            count: 0,
        };
        let launch = |kernel, grid, at: &SortedPlaces, buffers| {
            let params = plan.params(op, at);
            let name = Name { kernel, grid, block: sorted::THREADS, n };
            let options = self.bodies.options(buffers);
            // SAFETY: the parameters of these kernels; the plan gives them what their documentation asks for.
            unsafe { self.bodies.launch(&name, &options, ptr::from_ref(&params).cast()) }
        };
        let mut buffers = vec![
            Buffer::read_only("tags", tags),
            Buffer::writable("output", results),
            first_bad.buffer("first_bad"),
        ];
        if !made.is_empty() {
            buffers.push(Buffer::writable("keys", &mut made));
        }
        launch("number", plan.number, &at, buffers)?;

        let keys: &[u32] = if SortedPlan::makes_keys::<T>() {
            &made
        } else {
            // SAFETY: integers of 32 bits.
            unsafe { std::slice::from_raw_parts(tags.as_ptr().cast(), tags.len()) }
        };
        let ByKey { keys: run_keys, values: run_values } = match Travels::of::<Op>(false) {
            Travels::Word => self.runs_sorted::<u32, Op>(op, keys, values)?,
            Travels::Long => self.runs_sorted::<u64, Op>(op, keys, values)?,
            Travels::Position => {
                let sorts = self.sorts.clone()?;
                let (keys, index) = sorts.sort::<u32, u32>(kind::UNSIGNED, keys, None)?;
                let values = sorts.gather(values, &index)?;
                let indices = Op::USES_INDEX.then_some(&index[..]);
                self.runs().reduce(Runs::new(Equal, op), u32::runs(&keys), &values, indices)?
            }
        };

        let count = [run_keys.len() as u64];
        at.run_keys = run_keys.as_ptr().expose_provenance();
        at.run_values = run_values.as_ptr().expose_provenance();
        at.count = count.as_ptr().expose_provenance();
        let buffers = vec![
            Buffer::read_only("run_keys", &run_keys),
            Buffer::read_only("run_values", &run_values),
            Buffer::read_only("count", &count),
            Buffer::writable("output", results),
        ];
        launch("spread", plan.spread, &at, buffers)?;
        Ok(first_bad.first_u64().filter(|&index| index != u64::MAX))
    }

    /// What reduces runs of its operator, by 32 bits.
    fn runs(&self) -> RunSimulator {
        RunSimulator::of_export(self.bodies.options, self.bodies.export, self.facts)
    }

    /// Sorts pairs whose values travel with keys, and reduces their runs.
    fn runs_sorted<V: Payload, Op: Monoid>(
        &self,
        op: Op,
        keys: &[u32],
        values: &[Op::Item],
    ) -> Result<ByKey<i32, Op::Output>, Error> {
        // SAFETY: as large and as aligned as the payload; plain data has no uninitialised byte.
        let values = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<V>(), values.len()) };
        let (keys, values) = self.sorts.clone()?.sort(kind::UNSIGNED, keys, Some(values))?;
        // SAFETY: the values that were given, in another order.
        let values = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<Op::Item>(), values.len()) };
        self.runs().reduce(Runs::new(Equal, op), u32::runs(&keys), values, None)
    }

    /// Runs the kernels over items of which the first has that index, into what `into` says and these buffers are; the same.
    fn run<T: Tag, Op: Monoid>(
        &self,
        op: Op,
        k: u64,
        (tags, values): (&[T], &[Op::Item]),
        base: u64,
        mut buffers: Vec<Buffer>,
        into: impl FnOnce(&mut Places),
    ) -> Result<Option<u64>, Error> {
        let n = values.len() as u64;
        let mut at = Places {
            tags: tags.as_ptr().expose_provenance(),
            width: T::WIDTH,
            values: values.as_ptr().expose_provenance(),
            output: 0,
            partials: 0,
            present: 0,
            first_bad: 0,
            base,
            kept: 0,
            held: 0,
        };
        into(&mut at);
        let plan = match at.kept {
            0 => TagPlan::new::<Op>(n, k, &self.facts)?,
            _ => TagPlan::in_order::<Op>(n, k, &self.facts)?,
        };
        let mut partials = Room::filled(plan.partials, bytes_of(&op.identity()))?;
        let mut present = Room::filled(plan.present, bytes_of(&0_u8))?;
        let mut first_bad = Room::filled(1, bytes_of(&u64::MAX))?;
        buffers.extend([
            Buffer::read_only("tags", tags),
            Buffer::read_only("values", values),
            partials.buffer("partials"),
            present.buffer("present"),
            first_bad.buffer("first_bad"),
        ]);
        (at.partials, at.present, at.first_bad) =
            (partials.address(), present.address(), first_bad.address());
        let options = self.bodies.options(buffers);
        for launch in &plan.launches {
            let params = plan.params(launch, op, &at);
            let params = ptr::from_ref(&params).cast();
            let name = Name { kernel: launch.kernel, grid: launch.grid, block: launch.block, n };
            // SAFETY: the parameters of this operator's kernels; the plan gives them what their documentation asks for.
            unsafe { self.bodies.launch_with(&name, launch.shared as usize, &options, params)? };
        }
        Ok(first_bad.first_u64().filter(|&index| index != u64::MAX))
    }
}

/// The values of a stream's tags, and whether they are there.
#[derive(Debug)]
pub(crate) struct SimTags {
    simulator: TagSimulator,
    kept: Room,
    held: Room,
}

impl SimTags {
    /// Takes in items of which the first has that index.
    pub(crate) fn push<T: Tag, Op: Monoid>(
        &mut self,
        op: Op,
        k: u64,
        tags: &[T],
        values: &[Op::Item],
        index: u64,
    ) -> Result<(), Error> {
        let SimTags { simulator, kept, held } = self;
        let buffers = vec![kept.buffer("kept"), held.buffer("held")];
        let (kept, held) = (kept.address(), held.address());
        simulator.run(op, k, (tags, values), index, buffers, |at| (at.kept, at.held) = (kept, held))?;
        Ok(())
    }

    /// The values that there are.
    pub(crate) fn read<Op: Monoid>(&mut self, k: u64) -> Vec<Option<Op::Acc>> {
        let kept = ptr::with_exposed_provenance::<Op::Acc>(self.kept.address());
        let held = ptr::with_exposed_provenance::<u8>(self.held.address());
        // SAFETY: a value and a byte for each tag; the launches are over.
        (0..k as usize).map(|tag| unsafe { (*held.add(tag) != 0).then(|| kept.add(tag).read()) }).collect()
    }

    /// Makes them these.
    pub(crate) fn write<Op: Monoid>(&mut self, values: &[Option<Op::Acc>]) {
        let kept = ptr::with_exposed_provenance_mut::<Op::Acc>(self.kept.address());
        let held = ptr::with_exposed_provenance_mut::<u8>(self.held.address());
        for (tag, value) in values.iter().enumerate() {
            // SAFETY: a value and a byte for each tag.
            unsafe {
                held.add(tag).write(value.is_some().into());
                if let Some(value) = *value {
                    kept.add(tag).write(value);
                }
            }
        }
    }
}
