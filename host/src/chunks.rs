//! Reductions of what is not in memory as a whole.

use warpfold_monoid::{
    Monoid, Value,
    tree::{MAX_GROUPS, Shape},
};

#[cfg(feature = "cuda")]
use crate::cuda::CudaArray;
#[cfg(feature = "cuda")]
use crate::erased::{Erased, bytes_of_mut};
use crate::{
    Backend, Engine, Error, Reducer, SegmentPlan, SegmentReducer, Sink, cpu::stream, reducer, segments::room,
    sim::SimArray,
};

/// Bytes of chunks that are folded together on the host, where the array comes in less than a chunk at a time.
const TOGETHER: u64 = 32 << 20;

/// Where the chunks of a long array are folded.
pub(crate) enum Place<Op: Monoid> {
    Cpu(Vec<Op::Acc>),
    Sim(SimArray),
    #[cfg(feature = "cuda")]
    Cuda(CudaArray),
}

impl<Op: Monoid> Reducer<Op> {
    /// Reduces what comes in chunks, of any lengths, and of which no more is in memory than one at a time (for a GPU, than there is
    /// in 32 MiB, if one is shorter): from an iterator over a file's parts, a decoder, a channel.
    ///
    /// How many items will come need not be known, and so this is the result of a [stream](Sink): its bits depend on the items
    /// and not on the chunks. With [`reduce_chunks_of`](Reducer::reduce_chunks_of) they are those of
    /// [`reduce`](Reducer::reduce).
    ///
    /// On a GPU chunks are copied to pinned memory, and from there to the device while the next ones come and the ones before
    /// are folded.
    ///
    /// # Errors
    ///
    /// As for [`Sink::push`].
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let chunks = (0..100u64).map(|i| vec![i; 1000]);
    /// assert_eq!(Engine::cpu().reducer(Sum::<u64>::new())?.reduce_chunks(chunks)?, 4_950_000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reduce_chunks<C>(&self, chunks: C) -> Result<Value<Op>, Error>
    where
        C: IntoIterator<Item: AsRef<[Op::Item]>>,
    {
        let sink = Sink::new(self.engine().clone(), *self.operator(), self.stream()?);
        together(self.engine(), chunks, |chunks| sink.push_slices(chunks))?;
        sink.finish()
    }

    /// Reduces `n` items that come in chunks of any lengths: the bits of [`reduce`](Reducer::reduce) of all of them.
    ///
    /// Kept in memory are at most a few hundredths of them: an array has up to 256 chunks of its own, which are put together
    /// from those that come. On a GPU this is how long host memory is always reduced; transfers run beside kernels.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if fewer or more than `n` items come, and those of [`reduce`](Reducer::reduce).
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let values: Vec<f32> = (0..3_000_000).map(|i| 1.0 / (i + 1) as f32).collect();
    /// let sum = Engine::cpu().reducer(Sum::<f32>::new())?;
    /// assert_eq!(sum.reduce_chunks_of(3_000_000, values.chunks(1000))?, sum.reduce(&values)?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reduce_chunks_of<C>(&self, n: u64, chunks: C) -> Result<Value<Op>, Error>
    where
        C: IntoIterator<Item: AsRef<[Op::Item]>>,
    {
        let shape = Shape::new(n, size_of::<Op::Item>());
        if shape.chunks <= 1 || shape.groups < MAX_GROUPS {
            let mut all = Vec::with_capacity(n as usize);
            for chunk in chunks {
                let chunk = chunk.as_ref();
                fits(n, all.len() as u64, chunk.len())?;
                all.extend_from_slice(chunk);
            }
            complete(n, all.len() as u64)?;
            return self.reduce(&all);
        }
        let mut array = self.array(n)?;
        let mut come = 0;
        together(self.engine(), chunks, |chunks| {
            for chunk in chunks {
                fits(n, come, chunk.len())?;
                come += chunk.len() as u64;
            }
            array.push(chunks)
        })?;
        complete(n, come)?;
        Ok(reducer::value::<Op>(array.finish()?, false))
    }
}

impl<Op: Monoid> Reducer<Op> {
    /// An array of `n` items that come one after the other: of several chunks.
    fn array(&self, n: u64) -> Result<Array<Op>, Error> {
        self.plan(n)?;
        let shape = Shape::new(n, size_of::<Op::Item>());
        Ok(Array { op: *self.operator(), shape, place: self.chunks(shape)?, buffer: Vec::new(), done: 0 })
    }
}

/// Bytes of chunks that are copied to a GPU at once: many threads have to be woken for it.
const AT_ONCE: usize = 32 << 20;

/// Chunks that are, at most.
const MOST_AT_ONCE: usize = 4096;

/// Has `take` take in all chunks: one by one, or for a GPU as many at a time as are worth copying together.
fn together<C, T>(
    engine: &Engine,
    chunks: C,
    mut take: impl FnMut(&[&[T]]) -> Result<(), Error>,
) -> Result<(), Error>
where
    C: IntoIterator<Item: AsRef<[T]>>,
{
    let most = if engine.backend() == Backend::Cuda { AT_ONCE } else { 0 };
    let mut take_all = |held: &mut Vec<C::Item>| {
        let slices: Vec<&[T]> = held.iter().map(AsRef::as_ref).collect();
        take(&slices)?;
        held.clear();
        Ok(())
    };
    let (mut held, mut bytes) = (Vec::new(), 0);
    for chunk in chunks {
        bytes += size_of_val(chunk.as_ref());
        held.push(chunk);
        if bytes >= most || held.len() == MOST_AT_ONCE {
            take_all(&mut held)?;
            bytes = 0;
        }
    }
    take_all(&mut held)
}

/// Are more items no more than there should be?
fn fits(n: u64, come: u64, more: usize) -> Result<(), Error> {
    match come.checked_add(more as u64) {
        Some(all) if all <= n => Ok(()),
        all => Err(Error::LengthMismatch { expected: n, found: all.unwrap_or(u64::MAX) }),
    }
}

fn complete(n: u64, come: u64) -> Result<(), Error> {
    if come == n { Ok(()) } else { Err(Error::LengthMismatch { expected: n, found: come }) }
}

/// A segment that began before the chunk that is at hand.
struct Open<Op: Monoid> {
    k: u64,
    /// Items that are to come.
    left: u64,
    items: Held<Op>,
}

enum Held<Op: Monoid> {
    Short(Vec<Op::Item>),
    /// Too many to wait for.
    Long(Box<Array<Op>>),
}

impl<Op: Monoid> SegmentReducer<Op> {
    /// Reduces segments of what comes in chunks, of any lengths, that have nothing to do with the segments: the bits of
    /// [`reduce_segments`](SegmentReducer::reduce_segments) of all of it.
    ///
    /// Segments that lie within a chunk are reduced with it. Of one that goes on in the next, up to 32 MiB of items are kept, and a longer
    /// one is folded as it comes, as [`Reducer::reduce_chunks_of`] does. Items of no segment are passed over.
    ///
    /// # Errors
    ///
    /// [`Error::SegmentsNotInOrder`] if a segment that has items begins before the one before it ends; [`Error::SegmentOutOfRange`] if less
    /// items come than there should be; and those of [`reduce_segments`](SegmentReducer::reduce_segments).
    ///
    /// ```
    /// use warpfold_host::{Engine, segments::SegmentPlan};
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sum = Engine::cpu().segments(Sum::<i32>::new())?;
    /// let plan = SegmentPlan::from_lengths(&[1, 4, 0, 1])?;
    /// assert_eq!(sum.reduce_chunks(&plan, [vec![1, 2], vec![], vec![3, 4, 5, 6]])?, [1, 14, 0, 6]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reduce_chunks<C>(&self, plan: &SegmentPlan, chunks: C) -> Result<Vec<Op::Output>, Error>
    where
        C: IntoIterator<Item: AsRef<[Op::Item]>>,
    {
        let segments = plan.segments();
        let mut end = 0;
        for index in 0..segments {
            let range = plan.range(index);
            if range.is_empty() {
                continue;
            }
            if range.start < end {
                return Err(Error::SegmentsNotInOrder { index, start: range.start, end });
            }
            end = range.end;
        }
        let mut results = room(segments)?;
        let (mut next, mut come) = (0, 0);
        let mut open: Option<Open<Op>> = None;
        for chunk in chunks {
            let chunk = chunk.as_ref();
            let end = come + chunk.len() as u64;
            let mut at = come;
            if let Some(mut segment) = open.take() {
                let here = segment.left.min(chunk.len() as u64);
                segment.push(&chunk[..here as usize])?;
                at += here;
                match segment.left {
                    0 => {
                        let k = segment.k as usize;
                        results[k] = self.close(segment)?;
                    }
                    _ => open = Some(segment),
                }
            }
            let first = next;
            let inside = |k: u64| plan.range(k).is_empty() || plan.range(k).end <= end;
            while open.is_none() && next < segments && inside(next) {
                next += 1;
            }
            if first < next {
                let (from, to) = (first as usize, next as usize);
                let part = plan.part(first..next, (at, end));
                self.reduce_segments_into(&chunk[(at - come) as usize..], &part, &mut results[from..to])?;
            }
            if open.is_none() && next < segments && plan.range(next).start < end {
                let range = plan.range(next);
                let mut segment = self.open(next, range.end - range.start)?;
                segment.push(&chunk[(range.start - come) as usize..])?;
                open = Some(segment);
                next += 1;
            }
            come = end;
        }
        plan.check(come)?;
        // Without items, they may lie behind the last of all.
        if next < segments {
            let part = plan.part(next..segments, (come, come));
            let nothing: &[Op::Item] = &[];
            self.reduce_segments_into(nothing, &part, &mut results[next as usize..])?;
        }
        Ok(results)
    }

    fn open(&self, k: u64, n: u64) -> Result<Open<Op>, Error> {
        let items = if n.saturating_mul(size_of::<Op::Item>() as u64) <= AT_ONCE as u64 {
            Held::Short(Vec::with_capacity(n as usize))
        } else {
            // The same bits, wherever there are kernels.
            let reducer = match self.engine().reducer(*self.operator()) {
                Err(Error::NoKernel { .. } | Error::NotCompiled { .. }) => {
                    Engine::cpu().reducer(*self.operator())?
                }
                reducer => reducer?,
            };
            Held::Long(Box::new(reducer.array(n)?))
        };
        Ok(Open { k, left: n, items })
    }

    fn close(&self, segment: Open<Op>) -> Result<Op::Output, Error> {
        match segment.items {
            Held::Short(items) => {
                let mut result = room(1)?;
                self.reduce_rows_into(&items, items.len() as u64, &mut result)?;
                Ok(result[0])
            }
            Held::Long(array) => array.finish(),
        }
    }
}

impl<Op: Monoid> Open<Op> {
    fn push(&mut self, items: &[Op::Item]) -> Result<(), Error> {
        self.left -= items.len() as u64;
        match &mut self.items {
            Held::Short(held) => held.extend_from_slice(items),
            Held::Long(array) => array.push(&[items])?,
        }
        Ok(())
    }
}

/// A long array whose items come one after the other.
struct Array<Op: Monoid> {
    op: Op,
    shape: Shape,
    place: Place<Op>,
    /// Items that have come and are not in `done`.
    buffer: Vec<Op::Item>,
    /// Items of chunks that have been folded.
    done: u64,
}

impl<Op: Monoid> Array<Op> {
    fn push(&mut self, chunks: &[&[Op::Item]]) -> Result<(), Error> {
        #[cfg(feature = "cuda")]
        if let Place::Cuda(array) = &mut self.place {
            let pieces: Vec<_> =
                chunks.iter().map(|items| (items.as_ptr().cast(), items.len() as u64)).collect();
            // SAFETY: items of the operator, which is the array's.
            return unsafe { array.push(Erased::of(&self.op), &pieces) };
        }
        chunks.iter().try_for_each(|items| self.push_here(items))
    }

    fn push_here(&mut self, mut items: &[Op::Item]) -> Result<(), Error> {
        let chunk = self.shape.chunk;
        let bytes = chunk * size_of::<Op::Item>() as u64;
        let together = chunk * (TOGETHER / bytes.max(1)).max(1);
        while !items.is_empty() {
            let left = self.shape.n - self.done;
            let here = items.len() as u64;
            if self.buffer.is_empty() && (here >= chunk || here == left) {
                let whole = if here == left { here } else { here / chunk * chunk };
                let (whole, rest) = items.split_at(whole as usize);
                fold(&self.op, &self.shape, &mut self.place, whole, self.done)?;
                self.done += whole.len() as u64;
                items = rest;
                continue;
            }
            let room = together.min(left) - self.buffer.len() as u64;
            let (some, rest) = items.split_at(room.min(here) as usize);
            self.buffer.extend_from_slice(some);
            items = rest;
            if some.len() as u64 == room {
                fold(&self.op, &self.shape, &mut self.place, &self.buffer, self.done)?;
                self.done += self.buffer.len() as u64;
                self.buffer.clear();
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Op::Output, Error> {
        match self.place {
            Place::Cpu(values) => Ok(self.op.finish(stream::value_of_chunks(&self.op, values, &self.shape))),
            Place::Sim(array) => array.finish::<Op>(),
            #[cfg(feature = "cuda")]
            Place::Cuda(array) => {
                let mut output = std::mem::MaybeUninit::uninit();
                // SAFETY: an output's place, which is written if there is no error.
                unsafe {
                    array.finish(Erased::of(&self.op), bytes_of_mut(&mut output))?;
                    Ok(output.assume_init())
                }
            }
        }
    }
}

/// Folds chunks, whole but for the array's last, of which the first item has that index.
fn fold<Op: Monoid>(
    op: &Op,
    shape: &Shape,
    place: &mut Place<Op>,
    items: &[Op::Item],
    index: u64,
) -> Result<(), Error> {
    match place {
        Place::Cpu(values) => {
            let first = values.len();
            values.resize(first + items.len().div_ceil(shape.chunk as usize), op.identity());
            stream::chunk_values(op, shape, items, index, &mut values[first..]);
            Ok(())
        }
        Place::Sim(array) => array.push(op, items),
        #[cfg(feature = "cuda")]
        Place::Cuda(_) => Ok(()),
    }
}
