//! The simulator backend: the kernels' own source on simulated threads, every access checked.

use std::ptr;

use warpfold_gpu_kernels::{
    device::ReduceParams,
    export::{Descriptor, Export},
};
use warpfold_monoid::{Monoid, Plain};
pub use warpfold_simt::sim::Schedule;
use warpfold_simt::sim::{self, Buffer, Fault, Launch, Options};

use crate::{
    Error, Items,
    plan::{DeviceFacts, OperatorLayout, PARAMETER_BYTES, ReducePlan, Strategy},
};

mod scans;
mod segments;

pub(crate) use scans::ScanSimulator;
pub(crate) use segments::SegmentSimulator;

/// Items that are read at once where they do not lie side by side.
const PIECE: u64 = 1 << 12;

/// How a simulator engine runs kernels. No result depends on it.
///
/// ```
/// use warpfold_host::{Engine, Schedule, SimOptions};
///
/// let options = SimOptions { schedule: Schedule::Concurrent { seed: 7 }, ..SimOptions::default() };
/// println!("{}", Engine::sim_with(options).info());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimOptions {
    /// In which order blocks, warps and lanes run.
    pub schedule: Schedule,
    /// How many blocks are on the device at once under [`Schedule::Concurrent`].
    pub resident_blocks: usize,
    /// Bytes of stack for each simulated thread. An operator that overflows it crashes the process.
    pub stack_bytes: usize,
}

impl Default for SimOptions {
    fn default() -> Self {
        let Options { schedule, resident_blocks, stack_bytes, .. } = Options::default();
        SimOptions { schedule, resident_blocks, stack_bytes }
    }
}

/// An operator's kernels, ready to be simulated.
#[derive(Clone, Debug)]
pub(crate) struct Simulator {
    options: SimOptions,
    export: &'static Export,
    facts: DeviceFacts,
}

impl Simulator {
    pub(crate) fn new<Op: Monoid>(
        options: SimOptions,
        export: &'static Export,
        facts: DeviceFacts,
    ) -> Result<Self, Error> {
        let bytes = size_of::<ReduceParams<Op>>();
        if bytes > PARAMETER_BYTES {
            return Err(Error::OperatorTooLarge { bytes, limit: PARAMETER_BYTES });
        }
        check_descriptor::<Op>(export)?;
        Ok(Simulator { options, export, facts })
    }

    pub(crate) fn plan<Op: Monoid>(&self, n: u64) -> Result<ReducePlan, Error> {
        ReducePlan::new(n, OperatorLayout::of::<Op>(), &self.facts)
    }

    /// Reduces items, which are copied first unless they lie side by side.
    pub(crate) fn reduce_items<Op: Monoid, S: Items<Op::Item> + ?Sized>(
        &self,
        op: Op,
        items: &S,
    ) -> Result<Op::Output, Error> {
        if let Some(items) = items.as_slice() {
            return self.reduce(op, items, Vec::new());
        }
        let n = items.len();
        let mut copy = filled(n, None)?;
        let (mut next, mut scratch) = (0, Vec::new());
        while next < n {
            let end = n.min(next.saturating_add(PIECE));
            copy.extend_from_slice(items.run(next..end, &mut scratch));
            next = end;
        }
        self.reduce(op, &copy, Vec::new())
    }

    /// Reduces a slice where it lies, with the kernel that the plan names. The operator may access more buffers.
    pub(crate) fn reduce<Op: Monoid>(
        &self,
        op: Op,
        items: &[Op::Item],
        buffers: Vec<Buffer>,
    ) -> Result<Op::Output, Error> {
        let plan = self.plan::<Op>(items.len() as u64)?;
        let launch =
            Launch::new(format!("{}__{}", self.export.name, plan.strategy.kernel()), plan.grid, plan.block);
        let failed = |fault: String| Error::Simulator {
            kernel: launch.name.clone(),
            grid: plan.grid,
            block: plan.block,
            n: plan.shape.n,
            fault,
        };
        let entry = self.export.entries.iter().find(|entry| entry.kernel == plan.strategy.kernel());
        let entry = entry.ok_or_else(|| failed("the export has no such kernel".into()))?;
        // Each in an allocation of its own, so that what lies between is in none of them.
        let mut output = filled(1, Some(op.finish(op.identity())))?;
        // One block needs no workspace, and gets none.
        let in_chunks = plan.strategy != Strategy::OneBlock;
        let mut partials = filled(if in_chunks { plan.grid.into() } else { 0 }, Some(op.identity()))?;
        let mut ticket = filled(in_chunks.into(), Some(0_u32))?;
        let SimOptions { schedule, resident_blocks, stack_bytes } = self.options;
        let options = Options { schedule, resident_blocks, stack_bytes, buffers, ..Options::default() }
            .buffer(Buffer::read_only("input", items))
            .buffer(Buffer::writable("output", &mut output))
            .buffer(Buffer::writable("partials", &mut partials))
            .buffer(Buffer::writable("ticket", &mut ticket));
        let params = ReduceParams::<Op> {
            input: items.as_ptr(),
            n: plan.shape.n,
            output: output.as_mut_ptr(),
            partials: partials.as_mut_ptr(),
            ticket: ticket.as_mut_ptr(),
            chunk: plan.shape.chunk,
            chunks: plan.grid,
            groups: plan.shape.groups,
            op,
        };
        // An address travels where a pointer may not.
        let address = (&raw const params).expose_provenance();
        sim::launch(&launch, &options, || {
            // SAFETY: the parameters of this operator's kernels, whose descriptor was compared, with what their
            // documentation asks for: readable items, a writable output, a workspace of this launch alone. They
            // outlive the launch.
            unsafe { (entry.simulate)(ptr::with_exposed_provenance(address)) }
        })
        .map_err(|Fault { place, kind, .. }| {
            failed(place.map_or_else(|| kind.to_string(), |place| format!("{place}: {kind}")))
        })?;
        match ticket[..] {
            [] | [0] => Ok(output[0]),
            [left, ..] => Err(failed(format!("it leaves the ticket at {left}, the next launch needs 0"))),
        }
    }
}

/// Was the export made for the operator as the host lays it out?
fn check_descriptor<Op: Monoid>(export: &Export) -> Result<(), Error> {
    let host = Descriptor::of::<Op>();
    if export.descriptor == host {
        return Ok(());
    }
    Err(Error::LayoutMismatch {
        export: export.name,
        operator: (export.type_name)(),
        host: Box::new(host),
        device: Box::new(export.descriptor),
    })
}

/// Room for `n` values; if one is given, `n` of it.
fn filled<T: Plain>(n: u64, value: Option<T>) -> Result<Vec<T>, Error> {
    let needed = || Error::HostMemory { needed: n.saturating_mul(size_of::<T>() as u64) };
    let len = usize::try_from(n).map_err(|_| needed())?;
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| needed())?;
    if let Some(value) = value {
        values.resize(len, value);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use warpfold_gpu_kernels::{
        export::{Entry, Table},
        kernels,
    };
    use warpfold_monoid::{GivesIdentity, Sum};
    use warpfold_simt::{global, thread::thread_idx_x};

    use super::*;
    use crate::{Engine, module::Kernels};

    /// Adds, and refuses 13.
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Superstitious;

    // SAFETY: no bytes.
    unsafe impl Plain for Superstitious {}

    impl Monoid for Superstitious {
        type Item = u32;
        type Acc = u32;
        type Output = u32;
        type Empty = GivesIdentity;
        const COMMUTATIVE: bool = true;
        fn identity(&self) -> u32 {
            0
        }
        fn lift(&self, item: u32, index: u64) -> u32 {
            assert!(item != 13, "met 13 at index {index}");
            item
        }
        fn combine(&self, left: u32, right: u32) -> u32 {
            left + right
        }
        fn finish(&self, acc: u32) -> u32 {
            acc
        }
    }

    kernels! {
        static TABLE:
        sum_u32 => Sum<u32>,
        superstitious => Superstitious,
    }

    fn engine(table: &'static Table) -> Engine {
        let engine = Engine::sim();
        engine.load(Kernels { table, modules: &[] });
        engine
    }

    /// An engine whose sums run these bodies instead.
    fn broken(kernel: &'static str, simulate: unsafe fn(*const u8)) -> Engine {
        let entries: &[Entry] = vec![Entry { kernel, simulate }].leak();
        let exports = vec![Export::new::<Sum<u32>>("broken", entries)].leak();
        engine(Box::leak(Box::new(Table { krate: "tests", exports })))
    }

    fn fault(engine: &Engine, items: &[u32]) -> String {
        let error = engine.reducer(Sum::<u32>::new()).unwrap().reduce(items).unwrap_err();
        let Error::Simulator { kernel, n, fault, .. } = error else { panic!("{error}") };
        assert!(kernel.starts_with("broken__reduce_") && n == items.len() as u64, "{kernel}, {n}");
        fault
    }

    #[test]
    fn a_panic_in_an_operator_is_an_error_with_its_place() {
        let reducer = engine(&TABLE).reducer(Superstitious).unwrap();
        let mut items = vec![1; 10_000];
        assert_eq!(reducer.reduce(&items).unwrap(), 10_000);
        items[9_001] = 13;
        let text = reducer.reduce(&items).unwrap_err().to_string();
        assert!(text.contains("superstitious__reduce_short<<<3, 256>>> over 10000 items"), "{text}");
        assert!(
            text.contains("items: block (2, 0, 0), thread (") && text.contains("met 13 at index 9001"),
            "{text}"
        );
        assert!(text.contains("sim.rs:"), "{text}");
        items[9_001] = 12;
        assert_eq!(reducer.reduce(&items).unwrap(), 10_011, "the engine works on");
    }

    #[test]
    fn reads_past_the_input_are_found() {
        let engine = broken("reduce_one", |params| {
            // SAFETY: the parameters of a sum; the load is out of bounds, which the simulator stops.
            unsafe {
                let params = &*params.cast::<ReduceParams<Sum<u32>>>();
                global::load(params.input.wrapping_add(params.n as usize));
            }
        });
        // Behind it in memory, but not in it.
        let text = fault(&engine, &[1, 2, 3, 4][..3]);
        assert!(text.contains("they start at byte 12 of `input`, which has 12 bytes"), "{text}");
    }

    #[test]
    fn writes_to_the_input_and_past_the_partials_are_found() {
        let engine = broken("reduce_one", |params| {
            // SAFETY: as above.
            unsafe {
                let params = &*params.cast::<ReduceParams<Sum<u32>>>();
                global::store(params.input.cast_mut(), 0);
            }
        });
        let text = fault(&engine, &[1]);
        assert!(text.contains("byte 0 of `input`, which is read-only"), "{text}");
        let engine = broken("reduce_short", |params| {
            // SAFETY: as above.
            unsafe {
                let params = &*params.cast::<ReduceParams<Sum<u32>>>();
                global::store(params.partials.wrapping_add(params.chunks as usize), 0);
            }
        });
        let text = fault(&engine, &[1; 10_000]);
        assert!(text.contains("byte 12 of `partials`, which has 12 bytes"), "{text}");
    }

    #[test]
    fn a_ticket_that_is_left_is_found() {
        let engine = broken("reduce_short", |params| {
            // SAFETY: the parameters of a sum; one thread a block writes.
            unsafe {
                let params = &*params.cast::<ReduceParams<Sum<u32>>>();
                if thread_idx_x() == 0 {
                    global::store(params.ticket, 3);
                }
            }
        });
        let text = fault(&engine, &[1; 10_000]);
        assert!(text.contains("leaves the ticket at 3"), "{text}");
        let text = fault(&engine, &[1; 10]);
        assert!(text.contains("no such kernel"), "{text}");
    }

    #[test]
    fn operators_without_an_export_and_of_another_layout_are_refused() {
        let error = engine(&TABLE).reducer(Sum::<i64>::new()).unwrap_err();
        let Error::NoKernel { line, .. } = &error else { panic!("{error}") };
        assert_eq!(line, "my_operator => Sum<i64, i64>,");
        let mut export = TABLE.exports[0];
        export.descriptor.item[0] += 4;
        let table = Table { krate: "tests", exports: vec![export].leak() };
        let error = engine(Box::leak(Box::new(table))).reducer(Sum::<u32>::new()).unwrap_err();
        assert!(matches!(error, Error::LayoutMismatch { export: "sum_u32", .. }), "{error}");
    }

    #[test]
    fn plans_follow_forged_facts() {
        let engine = engine(&TABLE);
        assert_eq!(engine.facts(), Some(DeviceFacts::H100));
        let facts = DeviceFacts { max_grid_x: 2, ..DeviceFacts::H100 };
        let sum = engine.with_facts(facts).reducer(Sum::<u32>::new()).unwrap();
        let error = sum.reduce(&[1; 10_000]).unwrap_err();
        assert_eq!(error, Error::GridTooLarge { n: 10_000, blocks: 3, limit: 2 });
    }
}
