//! Reductions of whole arrays.

#[cfg(feature = "cuda")]
use std::sync::Arc;
use std::{fmt, mem::MaybeUninit, ops::Range};

use warpfold_monoid::{Monoid, Value, tree::Shape};
use warpfold_simt::sim::Buffer;

#[cfg(feature = "cuda")]
use crate::cuda::{CudaArray, CudaStream, DeviceInput, DeviceOutput, Launcher, StreamRef, Workspace};
use crate::{
    Engine, Error, Input, Items, Source, chunks,
    cpu::{self, stream::Stream},
    erased::{Erased, Lent, bytes_of, bytes_of_mut},
    plan::{OperatorLayout, ReducePlan},
    sim::{SimArray, SimStream, Simulator},
    sink,
};

/// Reduces arrays with one operator on one engine. Cheap to clone, usable from any thread.
///
/// Made by [`Engine::reducer`].
#[derive(Clone)]
pub struct Reducer<Op: Monoid> {
    engine: Engine,
    op: Op,
    place: Place,
}

/// Where it runs, with what it needs there at hand.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Cpu,
    Sim(Simulator),
    #[cfg(feature = "cuda")]
    Cuda(Launcher),
}

impl<Op: Monoid> fmt::Debug for Reducer<Op> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reducer<{}> on {}", std::any::type_name::<Op>(), self.engine.backend())
    }
}

impl<Op: Monoid> Reducer<Op> {
    pub(crate) fn new(engine: Engine, op: Op, place: Place) -> Self {
        Reducer { engine, op, place }
    }

    /// The operator.
    pub fn operator(&self) -> &Op {
        &self.op
    }

    /// The engine that it runs on.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What a reduction of `n` items will do.
    ///
    /// # Errors
    ///
    /// As for [`ReducePlan::new`].
    pub fn plan(&self, n: u64) -> Result<ReducePlan, Error> {
        match &self.place {
            Place::Cpu => ReducePlan::cpu(n, OperatorLayout::of::<Op>()),
            Place::Sim(simulator) => simulator.plan(n, OperatorLayout::of::<Op>()),
            #[cfg(feature = "cuda")]
            Place::Cuda(launcher) => launcher.plan(n, OperatorLayout::of::<Op>()),
        }
    }

    /// Reduces an array to a value on the host, and waits for it.
    ///
    /// On a GPU, host memory is copied there first. Device memory is reduced in place, after what was enqueued on the
    /// context's default stream (blocking copies, for instance); work on another stream that writes to it has to be
    /// waited for before, or use `reduce_on` with that stream.
    ///
    /// # Errors
    ///
    /// [`Error::NeedsCuda`] for device memory on the host. On a GPU [`Error::NotDeviceMemory`], [`Error::OtherDevice`],
    /// [`Error::DeviceMemory`], those of [`plan`](Reducer::plan), and what the driver says. In the simulator those of
    /// [`plan`](Reducer::plan), [`Error::HostMemory`], and [`Error::Simulator`] for what it finds wrong.
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::{Max, Sum};
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let engine = Engine::cpu();
    /// let values = vec![3.0f32, 4.0, 5.0];
    /// assert_eq!(engine.reducer(Sum::<f32>::new())?.reduce(&values)?, 12.0);
    /// assert_eq!(engine.reducer(Max::<f32>::new())?.reduce(&values[..2])?, Some(4.0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn reduce<I: Input<Op::Item> + ?Sized>(&self, input: &I) -> Result<Value<Op>, Error> {
        match input.source()? {
            Source::Host(items) => self.reduce_items(items),
            Source::Strided(items) => self.reduce_items(&items),
            #[cfg(feature = "cuda")]
            Source::Device(view) => Ok(value::<Op>(self.launcher()?.reduce(self.op, view)?, view.is_empty())),
        }
    }

    /// Reduces items that are read one by one: strided, byte-swapped, computed. Same order, same bits as
    /// [`reduce`](Reducer::reduce) of a slice of them.
    ///
    /// # Errors
    ///
    /// None on the CPU. On a GPU or in the simulator, to which the items are copied, those of
    /// [`reduce`](Reducer::reduce).
    pub fn reduce_items<S: Items<Op::Item> + ?Sized>(&self, items: &S) -> Result<Value<Op>, Error> {
        self.reduce_with(items, Vec::new())
    }

    /// The same, the simulator with more buffers than the items to check accesses against.
    pub(crate) fn reduce_with<S: Items<Op::Item> + ?Sized>(
        &self,
        items: &S,
        buffers: Vec<Buffer>,
    ) -> Result<Value<Op>, Error> {
        let Some(elsewhere) = self.place.elsewhere() else {
            return Ok(cpu::reduce(&self.op, items));
        };
        let mut scratch = Vec::new();
        let mut run = |range: Range<u64>| items.run(range, &mut scratch).as_ptr().cast();
        let lent = Lent { n: items.len(), as_one: items.as_slice().is_some(), run: &mut run };
        let identity = self.op.identity();
        let mut output = MaybeUninit::new(self.op.finish(identity));
        // SAFETY: the place is this operator's, whose values they are.
        unsafe {
            elsewhere.reduce_lent(
                Erased::of(&self.op),
                bytes_of(&identity),
                lent,
                buffers,
                bytes_of_mut(&mut output),
            )?;
        }
        // SAFETY: an output was there before, and a kernel writes no other values.
        Ok(value::<Op>(unsafe { output.assume_init() }, items.is_empty()))
    }
}

impl Place {
    fn elsewhere(&self) -> Option<Elsewhere<'_>> {
        match self {
            Place::Cpu => None,
            Place::Sim(simulator) => Some(Elsewhere::Sim(simulator)),
            #[cfg(feature = "cuda")]
            Place::Cuda(launcher) => Some(Elsewhere::Cuda(launcher)),
        }
    }
}

/// Where kernels run, not the host's own code.
enum Elsewhere<'a> {
    Sim(&'a Simulator),
    #[cfg(feature = "cuda")]
    Cuda(&'a Launcher),
}

impl Elsewhere<'_> {
    /// Reduces items in host memory to an output.
    ///
    /// # Safety
    ///
    /// The place is the operator's, whose items, all readable, they are; `identity` and `output` are values of its other types.
    unsafe fn reduce_lent(
        &self,
        op: Erased<'_>,
        identity: &[MaybeUninit<u8>],
        items: Lent<'_>,
        buffers: Vec<Buffer>,
        output: &mut [MaybeUninit<u8>],
    ) -> Result<(), Error> {
        match self {
            // SAFETY: the caller's promise.
            Elsewhere::Sim(simulator) => unsafe {
                simulator.reduce_lent(op, identity, items, buffers, output)
            },
            #[cfg(feature = "cuda")]
            // SAFETY: the caller's promise.
            Elsewhere::Cuda(launcher) => unsafe { launcher.reduce_lent(op, items, output) },
        }
    }
}

impl<Op: Monoid> Reducer<Op> {
    /// A new stream where it runs.
    pub(crate) fn stream(&self) -> Result<sink::Place<Op>, Error> {
        Ok(match &self.place {
            Place::Cpu => sink::Place::Cpu(Stream::new()),
            Place::Sim(simulator) => sink::Place::Sim(SimStream::new(simulator, Erased::of(&self.op))?),
            #[cfg(feature = "cuda")]
            Place::Cuda(launcher) => sink::Place::Cuda(CudaStream::new(launcher, Erased::of(&self.op))?),
        })
    }

    /// A place for the chunks of a long array, where it runs.
    pub(crate) fn chunks(&self, shape: Shape) -> Result<chunks::Place<Op>, Error> {
        Ok(match &self.place {
            Place::Cpu => chunks::Place::Cpu(Vec::new()),
            Place::Sim(simulator) => chunks::Place::Sim(SimArray::new(simulator, &self.op, shape)?),
            #[cfg(feature = "cuda")]
            Place::Cuda(launcher) => {
                chunks::Place::Cuda(CudaArray::new(launcher, Erased::of(&self.op), shape)?)
            }
        })
    }
}

pub(crate) fn value<Op: Monoid>(output: Op::Output, empty: bool) -> Value<Op> {
    <Op::Empty as warpfold_monoid::OnEmpty<Op::Output>>::value(output, empty)
}

#[cfg(feature = "cuda")]
impl<Op: Monoid> Reducer<Op> {
    pub(crate) fn launcher(&self) -> Result<&Launcher, Error> {
        match &self.place {
            Place::Cpu | Place::Sim(_) => Err(Error::NeedsCuda { what: "device memory" }),
            Place::Cuda(launcher) => Ok(launcher),
        }
    }

    /// Reduces device memory to a value on the host as part of a stream's work, after what was enqueued there before,
    /// and waits for it.
    ///
    /// # Errors
    ///
    /// As for [`reduce`](Reducer::reduce), and [`Error::Capturing`] if the stream is being captured.
    pub fn reduce_on<'s, I: DeviceInput<Op::Item> + ?Sized>(
        &self,
        input: &I,
        stream: impl Into<StreamRef<'s>>,
    ) -> Result<Value<Op>, Error> {
        let view = input.device_view();
        // SAFETY: a borrowed stream is live; if it belongs to another context, the driver refuses it.
        let output = unsafe { self.launcher()?.reduce_on(self.op, view, stream.into().raw)? };
        Ok(value::<Op>(output, view.is_empty()))
    }

    /// Enqueues a reduction on a stream; the result goes to the first item of `output` in device memory. The result
    /// of nothing is the finished identity.
    ///
    /// Neither waits nor allocates: a stream's first reduction of several chunks allocates the stream's workspace,
    /// later ones use it again, and replace it if they need a larger one.
    ///
    /// **Capture.** If the stream is being captured, the reduction becomes part of the graph. Where it needs a
    /// workspace (a [`plan`](Reducer::plan) of several chunks), it takes one that [`warm_up`](Reducer::warm_up) laid
    /// ready, which from then on belongs to the graph and to the executables made from it, and is freed after them;
    /// reductions captured on one stream of one capture share it. Engine and reducer may be dropped before the graph.
    ///
    /// # Errors
    ///
    /// [`Error::NeedsCuda`] without a GPU, [`Error::NoRoomForResult`] for an empty output, [`Error::WarmUpFirst`] in a
    /// capture without a workspace at hand, [`Error::Misaligned`], those of [`plan`](Reducer::plan), or what the
    /// driver says. After an error nothing has been enqueued.
    ///
    /// # Safety
    ///
    /// The work runs after the call returns, when borrows no longer protect what it uses. Until it has finished (the
    /// stream, or an event behind it, has been waited for):
    ///
    /// - the input stays allocated and is not written, the output stays allocated and is not read, written or dropped;
    ///   other work on the same stream may use both, since it comes after;
    /// - input and output are memory that the engine's device can reach, and do not overlap;
    /// - the stream belongs to the engine's context.
    ///
    /// In a capture this holds for every run of the graph, and two executables made from one graph, which would share
    /// output and workspace, do not run at the same time.
    ///
    /// [`Engine::scope`] is the safe way.
    ///
    /// ```no_run
    /// use cust::stream::{Stream, StreamFlags};
    /// use warpfold_host::{Engine, cuda::DeviceArray};
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = Engine::cuda(0)?;
    /// let sum = engine.reducer(Sum::<f32>::new())?;
    /// let values = DeviceArray::from_slice(&engine, &[1.0f32, 2.0])?;
    /// let mut total = DeviceArray::from_slice(&engine, &[0.0f32])?;
    /// let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    /// // SAFETY: both arrays are left alone until the stream has been waited for.
    /// unsafe { sum.reduce_into(&values, &mut total, &stream)? };
    /// stream.synchronize()?;
    /// assert_eq!(total.to_vec()?, [3.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub unsafe fn reduce_into<'s, I, O>(
        &self,
        input: &I,
        output: &mut O,
        stream: impl Into<StreamRef<'s>>,
    ) -> Result<(), Error>
    where
        I: DeviceInput<Op::Item> + ?Sized,
        O: DeviceOutput<Op::Output> + ?Sized,
    {
        // SAFETY: the caller's promise.
        unsafe { self.enqueue(input, output, stream.into(), None) }
    }

    /// [`reduce_into`](Reducer::reduce_into) with a workspace of one's own, in place of the stream's or the graph's.
    ///
    /// # Errors
    ///
    /// As there, and [`Error::WorkspaceTooSmall`] or [`Error::ForeignWorkspace`].
    ///
    /// # Safety
    ///
    /// As there. The workspace is used by one launch at a time: work that uses it runs on one stream, or one after the
    /// other by events; a graph that captured it does not run at the same time as other users of it. Dropping it early
    /// is safe only for graphs, which keep it alive: else it is dropped after the work has finished.
    pub unsafe fn reduce_into_with<'s, I, O>(
        &self,
        input: &I,
        output: &mut O,
        stream: impl Into<StreamRef<'s>>,
        workspace: &Workspace,
    ) -> Result<(), Error>
    where
        I: DeviceInput<Op::Item> + ?Sized,
        O: DeviceOutput<Op::Output> + ?Sized,
    {
        // SAFETY: the caller's promise.
        unsafe { self.enqueue(input, output, stream.into(), Some(workspace)) }
    }

    /// # Safety
    ///
    /// As for [`reduce_into_with`](Reducer::reduce_into_with).
    #[inline]
    unsafe fn enqueue<I, O>(
        &self,
        input: &I,
        output: &mut O,
        stream: StreamRef<'_>,
        workspace: Option<&Workspace>,
    ) -> Result<(), Error>
    where
        I: DeviceInput<Op::Item> + ?Sized,
        O: DeviceOutput<Op::Output> + ?Sized,
    {
        let (input, output) = (input.device_view(), output.device_view_mut());
        if output.is_empty() {
            return Err(Error::NoRoomForResult);
        }
        // SAFETY: the caller's promise.
        unsafe {
            let (address, len) = (input.address, input.len);
            self.launcher()?.enqueue(
                Erased::of(&self.op),
                (address, len),
                output.address,
                stream.raw,
                workspace,
            )
        }
    }

    /// A workspace for reductions of up to `n` items with this operator; for others too, where their plans need no
    /// more bytes.
    ///
    /// # Errors
    ///
    /// [`Error::NeedsCuda`] without a GPU, [`Error::DeviceMemory`], those of [`plan`](Reducer::plan), or what the driver
    /// says.
    pub fn workspace(&self, n: u64) -> Result<Workspace, Error> {
        let launcher = self.launcher()?;
        let gpu = &launcher.gpu;
        let _current = gpu.context.enter_or_error()?;
        let block = crate::cuda::Block::new_zeroed(&gpu.context, self.plan(n)?.workspace_bytes_up_to())?;
        Ok(Workspace { block, gpu: Arc::clone(gpu) })
    }

    /// Lays a workspace ready for one capture of reductions of up to `n` items: call it before the capture begins, once
    /// for each stream that it will have.
    ///
    /// # Errors
    ///
    /// As for [`workspace`](Reducer::workspace).
    pub fn warm_up(&self, n: u64) -> Result<(), Error> {
        let Workspace { block, gpu } = self.workspace(n)?;
        gpu.pool.add_spare(block);
        Ok(())
    }
}
