//! The simulator backend: the kernels' own source on simulated threads, every access checked.

use std::{mem::MaybeUninit, ptr};

use warpfold_gpu_kernels::{device::Part, export::Export};
pub use warpfold_simt::sim::Schedule;
use warpfold_simt::sim::{self, Buffer, Fault, Launch, Options};

use crate::{
    Error,
    erased::{ArrayHead, Erased, Lent, NOTHING, Types, bytes_of},
    plan::{DeviceFacts, OperatorLayout, PARAMETER_BYTES, ReducePlan, Strategy},
};

mod room;
mod runs;
mod scans;
mod segments;
mod sorts;
mod stream;
mod tags;

use room::Room;
pub(crate) use runs::RunSimulator;
pub(crate) use scans::ScanSimulator;
pub(crate) use segments::SegmentSimulator;
pub(crate) use sorts::SortSimulator;
pub(crate) use stream::{SimArray, SimStream};
pub(crate) use tags::{SimTags, TagSimulator};

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
    /// How many blocks are on the device at once under [`Schedule::Concurrent`] and [`Schedule::Late`].
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
    bodies: Bodies,
    facts: DeviceFacts,
}

/// What a launch is called, and how it is described if it fails.
struct Name<'a> {
    kernel: &'a str,
    grid: u32,
    block: u32,
    n: u64,
}

/// An export's kernels, whatever its operator.
#[derive(Clone, Copy, Debug)]
struct Bodies {
    options: SimOptions,
    export: &'static Export,
}

impl Bodies {
    /// The bodies of an export made for the operator as the host lays it out, if parameters of so many bytes fit.
    fn new(options: SimOptions, export: &'static Export, types: &Types, bytes: usize) -> Result<Self, Error> {
        if bytes > PARAMETER_BYTES {
            return Err(Error::OperatorTooLarge { bytes, limit: PARAMETER_BYTES });
        }
        // One compiler laid out both. The kernels may be another operator's that does the same to the same bits.
        if !export.descriptor.alike(&types.descriptor) {
            return Err(Error::LayoutMismatch {
                export: export.name,
                operator: (export.type_name)(),
                host: Box::new(types.descriptor),
                device: Box::new(export.descriptor),
            });
        }
        Ok(Bodies { options, export })
    }

    /// The options of a launch that may access these buffers.
    fn options(&self, buffers: Vec<Buffer>) -> Options {
        let SimOptions { schedule, resident_blocks, stack_bytes } = self.options;
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

    /// Runs a kernel.
    ///
    /// # Safety
    ///
    /// At `params` lie parameters of that kernel of the export's operator, which give it what its documentation asks
    /// for and outlive the launch.
    unsafe fn launch(&self, name: &Name, options: &Options, params: *const u8) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.launch_with(name, 0, options, params) }
    }

    /// The same with so many bytes of dynamic shared memory for each block.
    ///
    /// # Safety
    ///
    /// As for [`launch`](Bodies::launch).
    unsafe fn launch_with(
        &self,
        name: &Name,
        shared: usize,
        options: &Options,
        params: *const u8,
    ) -> Result<(), Error> {
        let at = self.export.position(name.kernel);
        let at = at.ok_or_else(|| self.failed(name, "the export has no such kernel".into()))?;
        let entry = &self.export.entries[at];
        let name = &Name { kernel: entry.kernel, ..*name };
        let launch = Launch::new(format!("{}__{}", self.export.name, name.kernel), name.grid, name.block)
            .with_dynamic_shared(shared);
        // An address travels where a pointer may not.
        let address = params.expose_provenance();
        sim::launch(&launch, options, || {
            // SAFETY: the caller's promise.
            unsafe { (entry.simulate)(ptr::with_exposed_provenance(address)) }
        })
        .map(|_| ())
        .map_err(|Fault { place, kind, .. }| {
            self.failed(name, place.map_or_else(|| kind.to_string(), |place| format!("{place}: {kind}")))
        })
    }

    /// Are all tickets as the next launch needs them?
    fn check(&self, name: &Name, tickets: &Room) -> Result<(), Error> {
        match tickets.first_nonzero() {
            None => Ok(()),
            Some((at, left)) => {
                Err(self.failed(name, format!("it leaves ticket {at} at {left}, the next launch needs 0")))
            }
        }
    }
}

impl Simulator {
    pub(crate) fn new(
        options: SimOptions,
        export: &'static Export,
        facts: DeviceFacts,
        types: &Types,
    ) -> Result<Self, Error> {
        Ok(Simulator { bodies: Bodies::new(options, export, types, types.array_bytes)?, facts })
    }

    pub(crate) fn plan(&self, n: u64, layout: OperatorLayout) -> Result<ReducePlan, Error> {
        ReducePlan::new(n, layout, &self.facts)
    }

    /// Reduces items, where they lie or, unless they lie side by side, in a copy, with the kernel that the plan names. `output` is
    /// what lies at the kernel's output before, and after, the launch. The operator may access more buffers.
    ///
    /// # Safety
    ///
    /// The export is that operator's, whose items, all readable, they are; `identity` and `output` are values of its other
    /// types.
    pub(crate) unsafe fn reduce_lent(
        &self,
        op: Erased<'_>,
        identity: &[MaybeUninit<u8>],
        Lent { n, as_one, run }: Lent<'_>,
        buffers: Vec<Buffer>,
        output: &mut [MaybeUninit<u8>],
    ) -> Result<(), Error> {
        if as_one {
            // SAFETY: the caller's promise.
            return unsafe { self.run(op, (run(0..n), n), identity, output, buffers) };
        }
        let item_bytes = op.types.layout.item_bytes;
        let mut copy = Room::of_bytes(n, item_bytes)?;
        let to = ptr::with_exposed_provenance_mut::<u8>(copy.address());
        let mut next = 0;
        while next < n {
            let end = n.min(next.saturating_add(PIECE));
            let count = (end - next) as usize * item_bytes;
            // SAFETY: the room has as many items; a run of items until the next is asked for.
            unsafe { run(next..end).copy_to_nonoverlapping(to.add(next as usize * item_bytes), count) };
            next = end;
        }
        // SAFETY: the caller's promise; the copy of its items.
        unsafe { self.run(op, (to, n), identity, output, buffers) }
    }

    /// Reduces the items at an address. `output` is what lies at the kernel's output before, and after, the launch.
    ///
    /// # Safety
    ///
    /// The export is that operator's, whose items, all readable, they are; `identity` and `output` are values of its other
    /// types.
    unsafe fn run(
        &self,
        op: Erased<'_>,
        (input, n): (*const u8, u64),
        identity: &[MaybeUninit<u8>],
        output: &mut [MaybeUninit<u8>],
        mut buffers: Vec<Buffer>,
    ) -> Result<(), Error> {
        let (input, bytes) = (input.expose_provenance(), n as usize * op.types.layout.item_bytes);
        buffers.push(Buffer { name: "input".into(), start: input, bytes, writable: false });
        let plan = self.plan(n, op.types.layout)?;
        let mut result = Room::filled(1, output)?;
        // One block needs no workspace, and gets none.
        let in_chunks = plan.strategy != Strategy::OneBlock;
        let mut partials = Room::filled(if in_chunks { plan.grid.into() } else { 0 }, identity)?;
        let mut ticket = Room::filled(in_chunks.into(), bytes_of(&0_u32))?;
        let params = op.params(ArrayHead {
            input: ptr::with_exposed_provenance(input),
            n,
            output: ptr::with_exposed_provenance_mut(result.address()),
            partials: ptr::with_exposed_provenance_mut(partials.address()),
            ticket: ptr::with_exposed_provenance_mut(ticket.address()),
            chunk: plan.shape.chunk,
            chunks: plan.grid,
            groups: plan.shape.groups,
            part: Part::WHOLE,
            op: NOTHING,
        });
        let name = Name { kernel: plan.strategy.kernel(), grid: plan.grid, block: plan.block, n };
        buffers.extend([result.buffer("output"), partials.buffer("partials"), ticket.buffer("ticket")]);
        // SAFETY: the parameters of that kernel with what its documentation asks for: readable items, by the caller's
        // promise, a writable output, a workspace of this launch alone.
        unsafe { self.bodies.launch(&name, &self.bodies.options(buffers), params.as_ptr())? };
        self.bodies.check(&name, &ticket)?;
        output.copy_from_slice(result.first(output.len()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use warpfold_gpu_kernels::{
        device::ReduceParams,
        export::{Entry, Table},
        kernels,
    };
    use warpfold_monoid::{GivesIdentity, Monoid, Plain, Sum};
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
        assert!(text.contains("leaves ticket 0 at 3"), "{text}");
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
