//! Reductions by tag.

use std::fmt;

use warpfold_gpu_kernels::tags::width;
use warpfold_monoid::{Monoid, Plain, keyed::TagShape};

use crate::{
    Engine, Error, Input, TaggedSink, cpu,
    segments::{room, side_by_side},
    sim::TagSimulator,
    sink,
};
#[cfg(feature = "cuda")]
use crate::{
    Source,
    cuda::{From, TagLauncher},
};

/// A number that says which result an item belongs to: an integer of 8 to 64 bits.
///
/// Sealed: kernels know these.
pub trait Tag: Plain + sealed::Sealed {
    /// The tag as a number.
    fn number(self) -> i128;
    /// The tag as an index; what is negative or beyond all tags is `u32::MAX`.
    #[doc(hidden)]
    fn index(self) -> u32;
    /// What kernels call it.
    #[doc(hidden)]
    const WIDTH: u32;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! tags {
    ($($type:ty: $width:ident;)*) => {$(
        impl sealed::Sealed for $type {}
        impl Tag for $type {
            #[inline(always)]
            fn number(self) -> i128 { self as i128 }
            #[inline(always)]
            fn index(self) -> u32 { u32::try_from(self).unwrap_or(u32::MAX) }
            const WIDTH: u32 = width::$width;
        }
    )*};
}
tags! {
    u8: U8; u16: U16; u32: WORD; u64: LONG;
    i8: I8; i16: I16; i32: WORD; i64: LONG;
}

/// Reduces arrays by tag with one operator on one engine. Cheap to clone, usable from any thread.
///
/// Made by [`Engine::by_tag`]. Item `i` belongs to result `tags[i]`; the index that the operator is told is `i`. A tag without items
/// has what a reduction of nothing gives, [`finish_empty`](Monoid::finish_empty).
#[derive(Clone)]
pub struct TagReducer<Op: Monoid> {
    engine: Engine,
    op: Op,
    k: u64,
    ignore: bool,
    place: Place,
}

/// Where it runs, with what it needs there at hand.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Cpu,
    Sim(TagSimulator),
    #[cfg(feature = "cuda")]
    Cuda(TagLauncher),
}

impl<Op: Monoid> fmt::Debug for TagReducer<Op> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (op, backend) = (std::any::type_name::<Op>(), self.engine.backend());
        write!(f, "TagReducer<{op}> of {} tags on {backend}", self.k)
    }
}

impl<Op: Monoid> TagReducer<Op> {
    pub(crate) fn new(engine: Engine, op: Op, k: u64, place: Place) -> Self {
        TagReducer { engine, op, k, ignore: false, place }
    }

    /// The same, but items whose tags are negative, or not below the number of tags, are left out. They are an error otherwise.
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let count = Engine::cpu().by_tag(Sum::<u32>::new(), 2)?;
    /// let (tags, values) = ([0, -1, 1, 5, 1], [1; 5]);
    /// assert_eq!(
    ///     count.reduce(&tags, &values).unwrap_err().to_string(),
    ///     "tag 1 is -1, not below 2: ask for more tags, or have `ignore_out_of_range` leave such items out",
    /// );
    /// assert_eq!(count.ignore_out_of_range().reduce(&tags, &values)?, [1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "the reducer itself does not change"]
    pub fn ignore_out_of_range(&self) -> Self {
        TagReducer { ignore: true, ..self.clone() }
    }

    /// How many tags there are, and results.
    pub fn tags(&self) -> u64 {
        self.k
    }

    /// The operator.
    pub fn operator(&self) -> &Op {
        &self.op
    }

    #[cfg(feature = "cuda")]
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// The engine that it runs on.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// How arrays of `n` items are cut: on it, and on the data, the bits of the results depend.
    pub fn shape(&self, n: u64) -> TagShape {
        TagShape::of::<Op>(n, self.k)
    }

    /// Reduces an array, and waits for the results: one for each tag.
    ///
    /// # Errors
    ///
    /// [`Error::ColumnLengths`] if there are not as many tags as values, [`Error::TagOutOfRange`] unless
    /// [ignored](TagReducer::ignore_out_of_range), [`Error::HostMemory`]; [`Error::NeedsCuda`] for device memory on the host. On a GPU and in the simulator
    /// [`Error::GridTooLarge`], [`Error::BlockTooLarge`], [`Error::Simulator`], or what the driver says.
    pub fn reduce<T, I, V>(&self, tags: &I, values: &V) -> Result<Vec<Op::Output>, Error>
    where
        T: Tag,
        I: Input<T> + ?Sized,
        V: Input<Op::Item> + ?Sized,
    {
        same_lengths(tags.source()?.count(), values.source()?.count())?;
        let (mut tags_copy, mut values_copy) = (Vec::new(), Vec::new());
        let mut results = room(self.k)?;
        #[cfg(feature = "cuda")]
        if let Place::Cuda(launcher) = &self.place {
            let tags = placed(tags, &mut tags_copy)?;
            let values = placed(values, &mut values_copy)?;
            let checked = self.engine.check_device_bytes((tags.copied() + values.copied()) as u64);
            // SAFETY: borrowed until the call returns, which waits.
            let reduced =
                checked.and_then(|()| unsafe { launcher.reduce(self.op, tags, values, &mut results) });
            if let (Err(Error::DeviceMemory { .. }), From::Host(tags), From::Host(values)) =
                (&reduced, tags, values)
            {
                return self.reduce_long(launcher, tags, values, results);
            }
            self.check(reduced?)?;
            return Ok(results);
        }
        let tags = side_by_side(tags, &mut tags_copy)?;
        let values = side_by_side(values, &mut values_copy)?;
        let bad = match &self.place {
            Place::Cpu => cpu::tags::reduce(&self.op, self.k, tags, values, &mut results)?,
            Place::Sim(simulator) => simulator.reduce(self.op, self.k, tags, values, &mut results)?,
            // Above.
            #[cfg(feature = "cuda")]
            Place::Cuda(_) => None,
        };
        self.check(bad.map(|index| (index, tags[index as usize].number())))?;
        Ok(results)
    }

    /// Reduces what does not fit into the device's memory: piece by piece where the order makes no difference, else on the host.
    #[cfg(feature = "cuda")]
    fn reduce_long<T: Tag>(
        &self,
        launcher: &TagLauncher,
        tags: &[T],
        values: &[Op::Item],
        mut results: Vec<Op::Output>,
    ) -> Result<Vec<Op::Output>, Error> {
        if !Op::ANY_ORDER {
            let bad = cpu::tags::reduce(&self.op, self.k, tags, values, &mut results)?;
            self.check(bad.map(|index| (index, tags[index as usize].number())))?;
            return Ok(results);
        }
        let place = sink::tagged::Place::Cuda(Box::new(launcher.sink::<Op>(self.k)?));
        let sink = self.tagged_sink(place);
        sink.push(tags, values)?;
        sink.finish()
    }

    /// Reduces pairs that come in chunks of any lengths, as many tags as values in each: what a [tagged sink](crate::TaggedSink) gives of
    /// them. Where any order gives the same bits it is the result of [`reduce`](TagReducer::reduce) of all of them; else the bits depend on
    /// the chunks.
    ///
    /// # Errors
    ///
    /// Those of [`TaggedSink::push`](crate::TaggedSink::push); of a tag out of range the index is that within its chunk.
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sum = Engine::cpu().by_tag(Sum::<i32>::new(), 2)?;
    /// assert_eq!(sum.reduce_chunks([([0u8, 1], [1, 10]), ([1, 1], [100, 1000])])?, [1, 1110]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reduce_chunks<T, I, V, C>(&self, chunks: C) -> Result<Vec<Op::Output>, Error>
    where
        T: Tag,
        I: AsRef<[T]>,
        V: AsRef<[Op::Item]>,
        C: IntoIterator<Item = (I, V)>,
    {
        let sink = self.tagged_sink(self.sink()?);
        chunks.into_iter().try_for_each(|(tags, values)| sink.push(tags.as_ref(), values.as_ref()))?;
        sink.finish()
    }

    fn tagged_sink(&self, place: sink::tagged::Place<Op>) -> TaggedSink<Op> {
        let sink = TaggedSink::new(self.engine.clone(), self.op, self.k, place);
        if self.ignore { sink.ignore_out_of_range() } else { sink }
    }

    /// Room for a stream's values, where it runs.
    pub(crate) fn sink(&self) -> Result<sink::tagged::Place<Op>, Error> {
        Ok(match &self.place {
            Place::Cpu => {
                let (mut kept, k) = (Vec::new(), self.k as usize);
                let needed = self.k.saturating_mul(size_of::<Option<Op::Acc>>() as u64);
                kept.try_reserve_exact(k).map_err(|_| Error::HostMemory { needed })?;
                kept.resize(k, None);
                sink::tagged::Place::Cpu(kept)
            }
            Place::Sim(simulator) => sink::tagged::Place::Sim(Box::new(simulator.sink::<Op>(self.k)?)),
            #[cfg(feature = "cuda")]
            Place::Cuda(launcher) => sink::tagged::Place::Cuda(Box::new(launcher.sink::<Op>(self.k)?)),
        })
    }

    /// Is there a tag out of range, and is that an error?
    fn check(&self, bad: Option<(u64, i128)>) -> Result<(), Error> {
        match bad.filter(|_| !self.ignore) {
            Some((index, tag)) => Err(Error::TagOutOfRange { index, tag, tags: self.k }),
            None => Ok(()),
        }
    }
}

/// Are there as many tags, or keys, as values?
pub(crate) fn same_lengths(first: u64, other: u64) -> Result<(), Error> {
    if first == other { Ok(()) } else { Err(Error::ColumnLengths { first, other }) }
}

/// Where an array lies: what is not side by side is copied.
#[cfg(feature = "cuda")]
pub(super) fn placed<'a, T: Plain, I: Input<T> + ?Sized>(
    input: &'a I,
    copy: &'a mut Vec<T>,
) -> Result<From<'a, T>, Error> {
    match input.source()? {
        Source::Device(view) => Ok(From::Device(view.address(), view.len())),
        _ => Ok(From::Host(side_by_side(input, copy)?)),
    }
}
