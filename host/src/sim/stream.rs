//! Simulated streams, and arrays that are not there as a whole.

use std::{mem::MaybeUninit, ptr};

use warpfold_gpu_kernels::device::{FINISH, Part};
use warpfold_monoid::{Monoid, tree::Shape};
use warpfold_simt::sim::Buffer;

use super::{Bodies, Name, Room, Simulator};
use crate::{
    Error,
    cpu::stream::Stream,
    erased::{ArrayHead, Erased, NOTHING, Params, bytes_of, bytes_of_mut},
    sink::{
        Parts,
        flow::{BLOCK, Flow, KERNEL, Machine},
    },
};

/// A stream that the simulator folds.
#[derive(Debug)]
pub(crate) struct SimStream {
    bodies: Bodies,
    state: Room,
    flow: Flow,
}

/// One call's work.
struct Work<'a> {
    bodies: Bodies,
    state: &'a mut Room,
    input: (u64, u64),
    table: Vec<u64>,
}

impl Machine for Work<'_> {
    fn copy(&mut self, from: u64, to: u64, bytes: u64) -> Result<(), Error> {
        let from = ptr::with_exposed_provenance::<MaybeUninit<u8>>(from as usize);
        // SAFETY: the flow copies from the call's items to the state, which are apart.
        unsafe {
            from.copy_to_nonoverlapping(ptr::with_exposed_provenance_mut(to as usize), bytes as usize);
        }
        Ok(())
    }

    fn table(&mut self, addresses: &[u64]) -> Result<u64, Error> {
        self.table = addresses.to_vec();
        Ok(self.table.as_ptr().expose_provenance() as u64)
    }

    fn launch(&mut self, grid: u32, params: &Params, n: u64) -> Result<(), Error> {
        let (start, bytes) = self.input;
        let input =
            Buffer { name: "input".into(), start: start as usize, bytes: bytes as usize, writable: false };
        let buffers = vec![input, self.state.buffer("state"), Buffer::read_only("table", &self.table)];
        let name = Name { kernel: KERNEL, grid, block: BLOCK, n };
        // SAFETY: the flow's parameters are those of this operator's kernel, and point to the state, and to items.
        unsafe { self.bodies.launch(&name, &self.bodies.options(buffers), params.as_ptr()) }
    }
}

impl SimStream {
    /// A new one for the operator of these kernels.
    pub(crate) fn new(simulator: &Simulator, op: Erased<'_>) -> Result<SimStream, Error> {
        let mut state = Room::filled(Flow::layout(op.types).bytes, bytes_of(&0_u8))?;
        let flow = Flow::new(op.types, state.address() as u64);
        Ok(SimStream { bodies: simulator.bodies, state, flow })
    }

    /// Takes in batches, each the address of items and their number.
    ///
    /// # Safety
    ///
    /// They are readable items of the operator, which is the stream's.
    pub(crate) unsafe fn push(
        &mut self,
        op: Erased<'_>,
        batches: &[(u64, u64)],
        together: bool,
    ) -> Result<(), Error> {
        let size = op.types.layout.item_bytes as u64;
        // All of them, and what lies between.
        let start = batches.iter().map(|batch| batch.0).min().unwrap_or(0);
        let end = batches.iter().map(|batch| batch.0 + batch.1 * size).max().unwrap_or(0);
        let SimStream { bodies, state, flow } = self;
        let mut work = Work { bodies: *bodies, state, input: (start, end - start), table: Vec::new() };
        if together {
            return flow.push_all(&mut work, op, &mut batches.iter().copied());
        }
        batches.iter().try_for_each(|&(address, n)| flow.push(&mut work, op, address, n))
    }

    /// How many items have come.
    pub(crate) fn len(&self) -> u64 {
        self.flow.position
    }

    /// What has come of it.
    pub(crate) fn read<Op: Monoid>(&mut self) -> Stream<Op> {
        let Parts { layout, pieces, chunks, tail, tail_at, position } = Parts::of(&self.flow);
        let state = self.state.address();
        // SAFETY: the launches are over, and wrote as many values; the items were copied there. Aligned as the layout is.
        unsafe {
            let at = |offset: u64| ptr::with_exposed_provenance::<u8>(state + offset as usize);
            let acc = at(layout.acc).cast::<Op::Acc>();
            let chunks = std::slice::from_raw_parts(at(layout.chunks).cast(), chunks as usize);
            let tail = std::slice::from_raw_parts(at(tail_at).cast(), tail as usize);
            let acc = (pieces > 0).then(|| acc.read());
            Stream { position, acc, chunks: chunks.to_vec(), tail: tail.to_vec() }
        }
    }

    /// Makes it what another was.
    pub(crate) fn write<Op: Monoid>(&mut self, stream: &Stream<Op>) {
        self.flow.position = stream.position;
        let Parts { layout, chunks, tail_at, .. } = Parts::of(&self.flow);
        let state = self.state.address();
        // SAFETY: within the state, which has room for that many.
        unsafe {
            let at = |offset: u64| ptr::with_exposed_provenance_mut::<u8>(state + offset as usize);
            at(0).cast::<u32>().write(chunks as u32);
            if let Some(acc) = stream.acc {
                at(layout.acc).cast::<Op::Acc>().write(acc);
            }
            let values = at(layout.chunks).cast::<Op::Acc>();
            values.copy_from_nonoverlapping(stream.chunks.as_ptr(), stream.chunks.len());
            at(tail_at).cast::<Op::Item>().copy_from_nonoverlapping(stream.tail.as_ptr(), stream.tail.len());
        }
    }
}

/// An array of several chunks whose items come one after the other.
#[derive(Debug)]
pub(crate) struct SimArray {
    bodies: Bodies,
    shape: Shape,
    partials: Room,
    ticket: Room,
    output: Room,
    /// Chunks that have come.
    chunks: u64,
}

impl SimArray {
    pub(crate) fn new<Op: Monoid>(simulator: &Simulator, op: &Op, shape: Shape) -> Result<SimArray, Error> {
        let identity = op.identity();
        Ok(SimArray {
            bodies: simulator.bodies,
            shape,
            partials: Room::filled(shape.chunks, bytes_of(&identity))?,
            ticket: Room::filled(1, bytes_of(&0_u32))?,
            output: Room::filled(1, bytes_of(&op.finish(identity)))?,
            chunks: 0,
        })
    }

    /// Takes in the next chunks, whole ones unless they are the last.
    pub(crate) fn push<Op: Monoid>(&mut self, op: &Op, items: &[Op::Item]) -> Result<(), Error> {
        let count = (items.len() as u64).div_ceil(self.shape.chunk);
        let params = Erased::of(op).params(ArrayHead {
            input: items.as_ptr().cast(),
            n: items.len() as u64,
            output: ptr::with_exposed_provenance_mut(self.output.address()),
            partials: ptr::with_exposed_provenance_mut(self.partials.address()),
            ticket: ptr::with_exposed_provenance_mut(self.ticket.address()),
            chunk: self.shape.chunk,
            chunks: self.shape.chunks as u32,
            groups: self.shape.groups,
            part: Part {
                base: self.chunks * self.shape.chunk,
                table: ptr::null(),
                first: self.chunks as u32,
                end: FINISH,
            },
            op: NOTHING,
        });
        let buffers = vec![
            Buffer::read_only("input", items),
            self.output.buffer("output"),
            self.partials.buffer("partials"),
            self.ticket.buffer("ticket"),
        ];
        let name = Name { kernel: KERNEL, grid: count as u32, block: BLOCK, n: items.len() as u64 };
        // SAFETY: the parameters of this operator's kernel, which point to readable items and room of their own.
        unsafe { self.bodies.launch(&name, &self.bodies.options(buffers), params.as_ptr())? };
        self.chunks += count;
        Ok(())
    }

    /// The result of all chunks.
    pub(crate) fn finish<Op: Monoid>(self) -> Result<Op::Output, Error> {
        let name = Name { kernel: KERNEL, grid: 0, block: BLOCK, n: self.shape.n };
        self.bodies.check(&name, &self.ticket)?;
        let mut output = MaybeUninit::<Op::Output>::uninit();
        let bytes = bytes_of_mut(&mut output);
        bytes.copy_from_slice(self.output.first(bytes.len()));
        // SAFETY: an output was there from the start, and the kernel writes no other values.
        Ok(unsafe { output.assume_init() })
    }
}

#[cfg(test)]
mod tests {
    use warpfold_gpu_kernels::kernels;
    use warpfold_monoid::{Sum, tree};

    use super::*;
    use crate::{Engine, module::Kernels, sink::Place};

    kernels! { static TABLE: sum_f32 => Sum<f32> }

    /// Batches that are queued are folded by tables of addresses, which only GPUs' sinks do: here in the simulator.
    #[test]
    fn queued_batches_fold_as_those_that_come_one_by_one() {
        let engine = Engine::sim();
        engine.load(Kernels { table: &TABLE, modules: &[] });
        let op = Sum::<f32>::new();
        let reducer = engine.reducer(op).unwrap();
        let items: Vec<f32> =
            (0..400_000_u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 7) as f32 * 0.37).collect();
        // Whole chunks of 8192, parts of some, more of those than are put together at once, and none.
        let mut cuts = vec![8192, 8192, 100, 8092, 0, 3 * 8192 + 5];
        cuts.extend([4000; 60]);
        cuts.push(2 * 8192 + 1);
        let Place::Sim(mut stream) = reducer.stream().unwrap() else { panic!("not simulated") };
        let mut start = 0;
        for group in cuts.chunks(29) {
            let batches: Vec<(u64, u64)> = group
                .iter()
                .map(|&cut| {
                    let batch = &items[start..start + cut];
                    start += cut;
                    (batch.as_ptr().expose_provenance() as u64, cut as u64)
                })
                .collect();
            // SAFETY: slices of the operator's items.
            unsafe { stream.push(Erased::of(&op), &batches, true).unwrap() };
            let expected = tree::fold_stream(&op, start as u64, &|i| items[i as usize]);
            let found = stream.read::<Sum<f32>>().value(&op);
            assert_eq!(found.map(f64::to_bits), expected.map(f64::to_bits), "{start} items");
        }
    }
}
