//! Sinks with a result for each tag.

use std::{
    borrow::Cow,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use warpfold_monoid::Monoid;

use super::save;
#[cfg(feature = "cuda")]
use crate::cuda::{CudaTags, DeviceInput, StreamRef};
use crate::{Engine, Error, Input, Tag, cpu, keys::same_lengths, segments::side_by_side, sim::SimTags};

/// Items that are folded together: longer batches are cut.
pub(crate) const PIECE: u64 = 1 << 20;

/// Folds a stream of tagged items that comes in batches into a result for each tag: see [`Engine::tagged_sink`].
///
/// Tags out of range are an error of the batch that has them, of which nothing is taken in then, unless they are
/// [ignored](TaggedSink::ignore_out_of_range).
///
/// **Bits.** With an operator that any order gives the same bits they do not depend on how the stream was cut into batches.
/// Elsewhere they depend on the items, their order and the cuts: each batch is cut into pieces of 2^20 items, a tag's value in a
/// piece is that of a [reduction by tag](crate::TagReducer) of the piece, and the pieces' values combine from left to right. All
/// backends give the same. The index that the operator is told is the item's position in the stream.
///
/// On a GPU the accumulators stay there.
pub struct TaggedSink<Op: Monoid> {
    engine: Engine,
    op: Op,
    k: u64,
    ignore: bool,
    state: Mutex<State<Op>>,
}

struct State<Op: Monoid> {
    place: Place<Op>,
    /// Items that have come.
    position: u64,
    /// What broke it.
    broken: Option<Error>,
}

/// Where the tags' values are.
pub(crate) enum Place<Op: Monoid> {
    Cpu(Vec<Option<Op::Acc>>),
    Sim(Box<SimTags>),
    #[cfg(feature = "cuda")]
    Cuda(Box<CudaTags>),
}

impl<Op: Monoid> fmt::Debug for TaggedSink<Op> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (op, backend) = (std::any::type_name::<Op>(), self.engine.backend());
        write!(f, "TaggedSink<{op}> of {} tags on {backend}", self.k)
    }
}

impl<Op: Monoid> TaggedSink<Op> {
    pub(crate) fn new(engine: Engine, op: Op, k: u64, place: Place<Op>) -> Self {
        let state = Mutex::new(State { place, position: 0, broken: None });
        TaggedSink { engine, op, k, ignore: false, state }
    }

    /// The same, but items whose tags are negative, or not below the number of tags, are left out.
    #[must_use = "the sink is moved"]
    pub fn ignore_out_of_range(self) -> Self {
        TaggedSink { ignore: true, ..self }
    }

    /// How many tags there are, and results.
    pub fn tags(&self) -> u64 {
        self.k
    }

    /// The operator.
    pub fn operator(&self) -> &Op {
        &self.op
    }

    /// The engine that it runs on.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Takes in a batch of host memory: as many tags as values, which have been copied when the call returns.
    ///
    /// # Errors
    ///
    /// [`Error::ColumnLengths`] if there are not as many tags as values, [`Error::TagOutOfRange`] unless ignored,
    /// [`Error::NeedsCuda`] for device memory, of which `push_on` takes; those of [`TagReducer::reduce`](crate::TagReducer::reduce), after which a sink is
    /// broken and gives the same error ever after.
    pub fn push<T, I, V>(&self, tags: &I, values: &V) -> Result<(), Error>
    where
        T: Tag,
        I: Input<T> + ?Sized,
        V: Input<Op::Item> + ?Sized,
    {
        same_lengths(tags.source()?.count(), values.source()?.count())?;
        let (mut tags_copy, mut values_copy) = (Vec::new(), Vec::new());
        let tags = side_by_side(tags, &mut tags_copy)?;
        let values = side_by_side(values, &mut values_copy)?;
        if !self.ignore {
            let bad = tags.iter().position(|tag| u64::from(tag.index()) >= self.k);
            if let Some(index) = bad {
                let (index, tag) = (index as u64, tags[index].number());
                return Err(Error::TagOutOfRange { index, tag, tags: self.k });
            }
        }
        let mut state = self.lock();
        if let Some(error) = &state.broken {
            return Err(error.clone());
        }
        // An operator that panics leaves it half done.
        state.broken = Some(Error::SinkPanicked);
        let State { place, position, .. } = &mut *state;
        let pieces = tags.chunks(PIECE as usize).zip(values.chunks(PIECE as usize));
        let pushed = pieces.into_iter().try_for_each(|(tags, values)| {
            match place {
                Place::Cpu(kept) => {
                    cpu::tags::add(&self.op, self.k, tags, values, *position, kept)?;
                }
                Place::Sim(sink) => sink.push(self.op, self.k, tags, values, *position)?,
                #[cfg(feature = "cuda")]
                Place::Cuda(sink) => sink.push(self.op, self.k, tags, values, *position)?,
            }
            *position += values.len() as u64;
            Ok(())
        });
        state.broken = pushed.clone().err();
        pushed
    }

    /// The results of all that has been pushed, after which more may be: one for each tag, that of nothing for one without items.
    ///
    /// # Errors
    ///
    /// What broke it, [`Error::HostMemory`], or what the driver says.
    pub fn results(&self) -> Result<Vec<Op::Output>, Error> {
        let mut state = self.lock();
        if let Some(error) = &state.broken {
            return Err(error.clone());
        }
        let finish = |value: &Option<Op::Acc>| match *value {
            Some(value) => self.op.finish(value),
            None => self.op.finish_empty(),
        };
        Ok(self.read(&mut state)?.iter().map(finish).collect())
    }

    /// The tags' values.
    fn read<'s>(&self, state: &'s mut State<Op>) -> Result<Cow<'s, [Option<Op::Acc>]>, Error> {
        match &mut state.place {
            Place::Cpu(kept) => Ok(Cow::Borrowed(kept)),
            Place::Sim(sink) => Ok(Cow::Owned(sink.read::<Op>(self.k))),
            #[cfg(feature = "cuda")]
            Place::Cuda(sink) => {
                let (kept, first_bad) = sink.read::<Op>(self.k)?;
                if let Some(index) = first_bad.filter(|_| !self.ignore) {
                    let error = Error::TagOfStream { index, tags: self.k };
                    state.broken = Some(error.clone());
                    return Err(error);
                }
                Ok(Cow::Owned(kept))
            }
        }
    }

    /// All that [`Engine::restore_tagged_sink`] needs to go on from here, on whichever backend: operator and types by their names and
    /// layouts, how many items came, and the values of the tags that have any.
    ///
    /// # Errors
    ///
    /// As for [`results`](TaggedSink::results).
    pub fn save(&self) -> Result<Vec<u8>, Error> {
        let mut state = self.lock();
        if let Some(error) = &state.broken {
            return Err(error.clone());
        }
        let position = state.position;
        Ok(save::write_tagged(&self.op, &self.read(&mut state)?, position))
    }

    /// The results of all that has been pushed.
    ///
    /// # Errors
    ///
    /// As for [`results`](TaggedSink::results).
    pub fn finish(self) -> Result<Vec<Op::Output>, Error> {
        self.results()
    }

    /// How many items have been pushed.
    pub fn len(&self) -> u64 {
        self.lock().position
    }

    /// Have none been?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, State<Op>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(feature = "cuda")]
impl<Op: Monoid> TaggedSink<Op> {
    /// Takes in device memory as part of a stream's work, after what was enqueued there before, and does not wait.
    ///
    /// A tag out of range is an error of the next call of [`results`](TaggedSink::results), which breaks the sink, unless
    /// ignored.
    ///
    /// # Errors
    ///
    /// As for [`push`](TaggedSink::push), [`Error::NeedsCuda`] without a GPU, [`Error::Misaligned`], and [`Error::Capturing`] if
    /// the stream is being captured.
    ///
    /// # Safety
    ///
    /// As for [`Sink::push_on`](super::Sink::push_on), of the tags too.
    pub unsafe fn push_on<'s, T, I, V>(
        &self,
        tags: &I,
        values: &V,
        stream: impl Into<StreamRef<'s>>,
    ) -> Result<(), Error>
    where
        T: Tag,
        I: DeviceInput<T> + ?Sized,
        V: DeviceInput<Op::Item> + ?Sized,
    {
        let (tags, values, stream) = (tags.device_view(), values.device_view(), stream.into().raw);
        same_lengths(tags.len, values.len)?;
        let mut state = self.lock();
        if let Some(error) = &state.broken {
            return Err(error.clone());
        }
        let State { place, position, .. } = &mut *state;
        let Place::Cuda(sink) = place else { return Err(Error::NeedsCuda { what: "device memory" }) };
        let at = (tags.address, values.address);
        // SAFETY: the caller's promise.
        let pushed = unsafe { sink.push_on::<T, Op>(self.op, (values.len, self.k), at, *position, stream) };
        match pushed {
            Ok(()) => *position += values.len,
            // Found before anything was done.
            Err(Error::Misaligned { .. } | Error::Capturing) => {}
            Err(ref error) => state.broken = Some(error.clone()),
        }
        pushed
    }
}

impl Engine {
    /// A sink for an operator with `k` tags: folds a stream of tagged items as they come.
    ///
    /// # Errors
    ///
    /// As for [`by_tag`](Engine::by_tag), [`Error::HostMemory`], and on a GPU [`Error::DeviceMemory`].
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sink = Engine::cpu().tagged_sink(Sum::<u32>::new(), 3)?;
    /// sink.push(&[2u8, 0, 2], &[1, 10, 100])?;
    /// assert_eq!(sink.results()?, [10, 0, 101]);
    /// sink.push(&[1i64], &[7])?;
    /// assert_eq!(sink.finish()?, [10, 7, 101]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn tagged_sink<Op: Monoid>(&self, op: Op, k: u64) -> Result<TaggedSink<Op>, Error> {
        let place = self.by_tag(op, k)?.sink()?;
        Ok(TaggedSink::new(self.clone(), op, k, place))
    }

    /// The sink of which these bytes are what [`save`](TaggedSink::save) gave, on whichever backend that was. Whether it
    /// [ignores](TaggedSink::ignore_out_of_range) tags out of range has to be said again.
    ///
    /// # Errors
    ///
    /// As for [`tagged_sink`](Engine::tagged_sink); [`Error::SavedOperator`] if it was of another operator, of one with other
    /// parameters, of other types, or no tagged one; [`Error::SavedTags`] if it had another number of tags; [`Error::SavedBytes`] if the
    /// bytes are none of a sink, of another version, cut off or damaged.
    ///
    /// # Safety
    ///
    /// As for [`restore_sink`](Engine::restore_sink).
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let engine = Engine::cpu();
    /// let sink = engine.tagged_sink(Sum::<u32>::new(), 3)?;
    /// sink.push(&[2u8, 0, 2], &[1, 10, 100])?;
    /// let saved = sink.save()?;
    /// // SAFETY: saved by the same program.
    /// let restored = unsafe { engine.restore_tagged_sink(Sum::<u32>::new(), 3, &saved)? };
    /// restored.push(&[1u8], &[7])?;
    /// assert_eq!(restored.finish()?, [10, 7, 101]);
    /// # Ok(())
    /// # }
    /// ```
    pub unsafe fn restore_tagged_sink<Op: Monoid>(
        &self,
        op: Op,
        k: u64,
        saved: &[u8],
    ) -> Result<TaggedSink<Op>, Error> {
        // SAFETY: the caller's promise.
        let (kept, position) = unsafe { save::read_tagged(&op, k, saved)? };
        let mut place = self.by_tag(op, k)?.sink()?;
        match &mut place {
            Place::Cpu(place) => *place = kept,
            Place::Sim(place) => place.write::<Op>(&kept),
            #[cfg(feature = "cuda")]
            Place::Cuda(place) => place.write(&op, &kept)?,
        }
        let state = Mutex::new(State { place, position, broken: None });
        Ok(TaggedSink { engine: self.clone(), op, k, ignore: false, state })
    }
}
