//! Sinks: streams of batches, folded as they come.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use warpfold_monoid::{Monoid, OnEmpty, Value};

#[cfg(feature = "cuda")]
use crate::cuda::{CudaStream, DeviceInput, StreamRef};
use crate::{Engine, Error, Input, Items, Source, cpu::stream::Stream, erased::Erased, sim::SimStream};

pub(crate) mod flow;
mod save;
pub(crate) mod tagged;

pub use tagged::TaggedSink;

use flow::{Flow, Layout};

/// Items that are read at once where they do not lie side by side.
const PIECE: u64 = 1 << 14;

/// Folds a stream of items that comes in batches: see [`Engine::sink`].
///
/// Batches are [pushed](Sink::push) from any number of threads; the stream is their items in the order in which the calls got
/// hold of the sink. What has come of it is readable [at any time](Sink::result).
///
/// **Bits.** They depend on the stream's items and their order alone, not on how it was cut into batches, on where those lay,
/// or on the backend: a stream has a tree of its own, [`fold_stream`](warpfold_monoid::tree::fold_stream). It is not the tree
/// of an array of as many items, whose chunks are longer if there are more of them: a floating-point sum of a stream may
/// differ from the array's in its last bit, where accumulators round. With an operator that any order gives the same
/// bits they are those of a reduction.
///
/// On a GPU the accumulators stay there, and pushing host memory waits for nothing but room in a buffer.
pub struct Sink<Op: Monoid> {
    engine: Engine,
    op: Op,
    state: Mutex<State<Op>>,
}

struct State<Op: Monoid> {
    place: Place<Op>,
    /// What broke it.
    broken: Option<Error>,
}

pub(crate) enum Place<Op: Monoid> {
    Cpu(Stream<Op>),
    Sim(SimStream),
    #[cfg(feature = "cuda")]
    Cuda(CudaStream),
}

impl<Op: Monoid> fmt::Debug for Sink<Op> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sink<{}> on {}", std::any::type_name::<Op>(), self.engine.backend())
    }
}

/// What a stream on a device consists of.
pub(crate) struct Parts {
    pub(crate) layout: Layout,
    pub(crate) pieces: u64,
    pub(crate) chunks: u64,
    pub(crate) tail: u64,
    pub(crate) tail_at: u64,
    pub(crate) position: u64,
}

impl Parts {
    pub(crate) fn of(flow: &Flow) -> Parts {
        Parts {
            layout: flow.layout,
            pieces: flow.pieces(),
            chunks: flow.chunks(),
            tail: flow.tail(),
            tail_at: flow.tail_at(),
            position: flow.position,
        }
    }
}

impl<Op: Monoid> Sink<Op> {
    pub(crate) fn new(engine: Engine, op: Op, place: Place<Op>) -> Self {
        Sink { engine, op, state: Mutex::new(State { place, broken: None }) }
    }

    /// The operator.
    pub fn operator(&self) -> &Op {
        &self.op
    }

    /// The engine that it runs on.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Takes in a batch: a slice, a vector, an `ndarray` view, or device memory.
    ///
    /// Host memory has been copied when the call returns, and is folded on a GPU some time after. Device memory is read after
    /// what was enqueued on the context's default stream, and has been folded when the call returns; `push_on` does not wait.
    ///
    /// # Errors
    ///
    /// As for [`Reducer::reduce`](crate::Reducer::reduce). After an error a sink is broken: it gives the same error ever
    /// after.
    pub fn push<I: Input<Op::Item> + ?Sized>(&self, batch: &I) -> Result<(), Error> {
        match batch.source()? {
            Source::Host(items) => self.push_items(items),
            Source::Strided(items) => {
                // Under one lock, so that no other batch comes in between.
                let (mut scratch, mut next, len) = (Vec::new(), 0, items.len());
                self.with(|place, op| {
                    while next < len {
                        let end = len.min(next + PIECE);
                        push_host(place, op, &[items.run(next..end, &mut scratch)])?;
                        next = end;
                    }
                    Ok(())
                })
            }
            #[cfg(feature = "cuda")]
            Source::Device(view) => self.with(|place, op| match place {
                Place::Cuda(stream) => stream.push_and_wait(Erased::of(op), (view.address, view.len)),
                Place::Cpu(_) | Place::Sim(_) => Err(Error::NeedsCuda { what: "device memory" }),
            }),
        }
    }

    fn push_items(&self, items: &[Op::Item]) -> Result<(), Error> {
        self.push_slices(&[items])
    }

    /// Takes in several batches of host memory, which are copied together.
    pub(crate) fn push_slices(&self, batches: &[&[Op::Item]]) -> Result<(), Error> {
        self.with(|place, op| push_host(place, op, batches))
    }

    /// The result of all that has been pushed, after which more may be.
    ///
    /// On a GPU it waits for what has been pushed, and so do calls of other threads meanwhile.
    ///
    /// # Errors
    ///
    /// What broke it, or what the driver says.
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Max;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sink = Engine::cpu().sink(Max::<i32>::new())?;
    /// assert_eq!(sink.result()?, None);
    /// sink.push(&[3, 9])?;
    /// assert_eq!(sink.result()?, Some(9));
    /// sink.push(&[12])?;
    /// assert_eq!((sink.len(), sink.finish()?), (3, Some(12)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn result(&self) -> Result<Value<Op>, Error> {
        let stream = self.with(read)?;
        let empty = stream.position == 0;
        let output = stream.value(&self.op).map_or_else(|| self.op.finish_empty(), |acc| self.op.finish(acc));
        Ok(Op::Empty::value(output, empty))
    }

    /// The result of all that has been pushed.
    ///
    /// # Errors
    ///
    /// As for [`result`](Sink::result).
    pub fn finish(self) -> Result<Value<Op>, Error> {
        self.result()
    }

    /// How many items have been pushed.
    pub fn len(&self) -> u64 {
        match &self.lock().place {
            Place::Cpu(stream) => stream.position,
            Place::Sim(stream) => stream.len(),
            #[cfg(feature = "cuda")]
            Place::Cuda(stream) => stream.len(),
        }
    }

    /// Have none been?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All that [`Engine::restore_sink`] needs to go on from here, on whichever backend: operator and types by their names
    /// and layouts, how many items came, and what has come of them.
    ///
    /// # Errors
    ///
    /// As for [`result`](Sink::result).
    pub fn save(&self) -> Result<Vec<u8>, Error> {
        let stream = self.with(read)?;
        Ok(save::write(&self.op, &stream))
    }

    fn lock(&self) -> MutexGuard<'_, State<Op>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the stream, unless it is broken; an error breaks it.
    fn with<R>(&self, work: impl FnOnce(&mut Place<Op>, &Op) -> Result<R, Error>) -> Result<R, Error> {
        let mut state = self.lock();
        if let Some(error) = &state.broken {
            return Err(error.clone());
        }
        // An operator that panics leaves it half done.
        state.broken = Some(Error::SinkPanicked);
        let result = work(&mut state.place, &self.op);
        state.broken = match &result {
            Ok(_) => None,
            // Found before anything was done.
            Err(
                Error::NeedsCuda { .. }
                | Error::Misaligned { .. }
                | Error::NotDeviceMemory { .. }
                | Error::OtherDevice { .. }
                | Error::Capturing,
            ) => None,
            Err(error) => Some(error.clone()),
        };
        result
    }
}

fn push_host<Op: Monoid>(place: &mut Place<Op>, op: &Op, batches: &[&[Op::Item]]) -> Result<(), Error> {
    match place {
        Place::Cpu(stream) => batches.iter().for_each(|items| stream.push(op, items)),
        Place::Sim(stream) => {
            for items in batches {
                let batch = (items.as_ptr().expose_provenance() as u64, items.len() as u64);
                // SAFETY: a slice of items; the operator is the stream's.
                unsafe { stream.push(Erased::of(op), &[batch], false)? };
            }
        }
        #[cfg(feature = "cuda")]
        Place::Cuda(stream) => {
            let pieces: Vec<_> =
                batches.iter().map(|items| (items.as_ptr().cast(), items.len() as u64)).collect();
            // SAFETY: slices of items; the operator is the stream's.
            unsafe { stream.push_host(Erased::of(op), &pieces)? };
        }
    }
    Ok(())
}

#[cfg_attr(not(feature = "cuda"), allow(unused_variables, reason = "a GPU is sent what waits first"))]
fn read<Op: Monoid>(place: &mut Place<Op>, op: &Op) -> Result<Stream<Op>, Error> {
    match place {
        Place::Cpu(stream) => Ok(stream.clone()),
        Place::Sim(stream) => Ok(stream.read()),
        #[cfg(feature = "cuda")]
        Place::Cuda(stream) => stream.read(op),
    }
}

#[cfg(feature = "cuda")]
impl<Op: Monoid> Sink<Op> {
    /// Takes in device memory as part of a stream's work, after what was enqueued there before, and does not wait.
    ///
    /// Whole chunks (32 KiB of items of 1, 2, 4, 8 or 16 bytes, else 2048 items) are folded where they lie by one launch. Where
    /// a batch begins within a chunk that others began, or ends within one, there is a copy or two and a launch more: batches
    /// of whole chunks are pushed fastest.
    ///
    /// # Errors
    ///
    /// As for [`push`](Sink::push), [`Error::NeedsCuda`] without a GPU, and [`Error::Capturing`] if the stream is being
    /// captured.
    ///
    /// # Safety
    ///
    /// Until the work has finished (the stream, or an event behind it, has been waited for, or a [`result`](Sink::result)
    /// has been read) the batch stays allocated and is not written. The stream belongs to the engine's context, and lives
    /// until a later call of this sink that waits or pushes elsewhere has returned, or the sink has been dropped.
    pub unsafe fn push_on<'s, I: DeviceInput<Op::Item> + ?Sized>(
        &self,
        batch: &I,
        stream: impl Into<StreamRef<'s>>,
    ) -> Result<(), Error> {
        let (view, raw) = (batch.device_view(), stream.into().raw);
        self.with(|place, op| match place {
            // SAFETY: the caller's promise.
            Place::Cuda(stream) => unsafe { stream.push_on(Erased::of(op), (view.address, view.len), raw) },
            Place::Cpu(_) | Place::Sim(_) => Err(Error::NeedsCuda { what: "device memory" }),
        })
    }

    /// Takes in several batches at once, by a launch for every 2048 chunks, and else as [`push_on`](Sink::push_on).
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Safety
    ///
    /// As there, for all of them.
    pub unsafe fn push_all_on<'s, 'b, I: DeviceInput<Op::Item> + 'b>(
        &self,
        batches: impl IntoIterator<Item = &'b I>,
        stream: impl Into<StreamRef<'s>>,
    ) -> Result<(), Error> {
        let raw = stream.into().raw;
        let mut batches = batches.into_iter().map(|batch| {
            let view = batch.device_view();
            (view.address, view.len)
        });
        self.with(|place, op| match place {
            // SAFETY: the caller's promise.
            Place::Cuda(stream) => unsafe { stream.push_all_on(Erased::of(op), &mut batches, raw) },
            Place::Cpu(_) | Place::Sim(_) => Err(Error::NeedsCuda { what: "device memory" }),
        })
    }
}

impl Engine {
    /// A sink for an operator: folds a stream of batches as they come.
    ///
    /// # Errors
    ///
    /// As for [`reducer`](Engine::reducer), and on a GPU [`Error::DeviceMemory`].
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sink = Engine::cpu().sink(Sum::<f32>::new())?;
    /// std::thread::scope(|scope| {
    ///     for batch in [[1.0, 2.0], [3.0, 4.0]] {
    ///         let sink = &sink;
    ///         scope.spawn(move || sink.push(&batch).unwrap());
    ///     }
    /// });
    /// assert_eq!(sink.finish()?, 10.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sink<Op: Monoid>(&self, op: Op) -> Result<Sink<Op>, Error> {
        let place = self.reducer(op)?.stream()?;
        Ok(Sink::new(self.clone(), op, place))
    }

    /// The sink of which these bytes are what [`save`](Sink::save) gave, on whichever backend that was.
    ///
    /// # Errors
    ///
    /// As for [`sink`](Engine::sink); [`Error::SavedOperator`] if it was of another operator, of one with other parameters,
    /// or of other types; [`Error::SavedBytes`] if the bytes are none of a sink, of another version, cut off or damaged.
    ///
    /// # Safety
    ///
    /// The bytes are what `save` returned in a program with the same types. Damage by chance is found, values that are none of
    /// the operator's types (a `bool` of 2) are not.
    ///
    /// ```
    /// use warpfold_host::{Engine, Error};
    /// use warpfold_monoid::{Max, Sum};
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let engine = Engine::cpu();
    /// let sink = engine.sink(Sum::<i64>::new())?;
    /// sink.push(&[1, 2])?;
    /// let saved = sink.save()?;
    /// // SAFETY: saved by the same program.
    /// let restored = unsafe { engine.restore_sink(Sum::<i64>::new(), &saved)? };
    /// restored.push(&[3])?;
    /// assert_eq!(restored.finish()?, 6);
    /// // SAFETY: as above.
    /// let other = unsafe { engine.restore_sink(Max::<i64>::new(), &saved) };
    /// assert!(matches!(other, Err(Error::SavedOperator { .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub unsafe fn restore_sink<Op: Monoid>(&self, op: Op, saved: &[u8]) -> Result<Sink<Op>, Error> {
        // SAFETY: the caller's promise.
        let stream = unsafe { save::read(&op, saved)? };
        let mut place = self.reducer(op)?.stream()?;
        match &mut place {
            Place::Cpu(place) => *place = stream,
            Place::Sim(place) => place.write(&stream),
            #[cfg(feature = "cuda")]
            Place::Cuda(place) => place.write(&stream)?,
        }
        Ok(Sink::new(self.clone(), op, place))
    }
}
