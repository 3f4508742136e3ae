//! Reductions of several arrays read side by side, and maps that are written in the same pass.

#[cfg(feature = "cuda")]
use std::any::Any;

use warpfold_gpu_kernels::source::{
    Array, ArrayMut, MapOut, Over, Position, Sink, Source, Zip2, Zip3, Zip4, Zip5, Zip6, Zip7, Zip8,
};
use warpfold_monoid::{MapFn, Monoid, Plain, Value};
use warpfold_simt::sim::Buffer;

#[cfg(feature = "cuda")]
use crate::cuda::{DeviceArray, DeviceView, DeviceViewMut};
use crate::{Backend, Engine, Error};

/// What a reduction over columns needs until it is done: how long they are, copies of them, and what to do after.
#[derive(Default)]
pub struct Preparation<'a> {
    len: Option<u64>,
    buffers: Vec<Buffer>,
    #[cfg(feature = "cuda")]
    copies: Vec<Box<dyn Any>>,
    after: Vec<Box<dyn FnMut() -> Result<(), Error> + 'a>>,
}

impl Preparation<'_> {
    /// The length of what was prepared last; what comes next may have another.
    pub(crate) fn take_len(&mut self) -> u64 {
        self.len.take().unwrap_or(0)
    }

    /// What the simulator is to let kernels access.
    pub(crate) fn buffers(&self) -> Vec<Buffer> {
        self.buffers.clone()
    }

    /// Gets what was written to where it belongs.
    pub(crate) fn conclude(&mut self) -> Result<(), Error> {
        self.after.iter_mut().try_for_each(|after| after())
    }

    /// Takes note of a column's length, which must be that of all.
    fn note(&mut self, len: u64) -> Result<(), Error> {
        match *self.len.get_or_insert(len) {
            first if first == len => Ok(()),
            first => Err(Error::ColumnLengths { first, other: len }),
        }
    }
}

/// One or several arrays of one length, read side by side: a slice, a device array or view, or a tuple of two to eight
/// of them. A slice's items are its own; a tuple's are [`Parts2`](warpfold_monoid::fused::Parts2) to `Parts8`.
///
/// # Safety
///
/// What [`prepare`](Columns::prepare) gives reads only memory that the engine's backend can read, that has as many items
/// as every column, and that nothing writes as long as `'a` and the preparation last.
pub unsafe trait Columns<'a> {
    /// How kernels read them.
    type Source: Source;

    /// Gets them to where the engine computes.
    ///
    /// # Errors
    ///
    /// [`Error::ColumnLengths`]; [`Error::NeedsCuda`] for device memory elsewhere; what copying to a device gives.
    fn prepare(self, engine: &Engine, preparation: &mut Preparation<'a>) -> Result<Self::Source, Error>;
}

/// One or several arrays of one length, written side by side: like [`Columns`], but mutable slices and views.
///
/// # Safety
///
/// As for [`Columns`], of memory that nothing else uses as long as `'a` and the preparation last.
pub unsafe trait ColumnsMut<'a> {
    /// How kernels write them.
    type Sink: Sink;

    /// Makes room for them where the engine computes.
    ///
    /// # Errors
    ///
    /// As for [`Columns::prepare`].
    fn prepare(self, engine: &Engine, preparation: &mut Preparation<'a>) -> Result<Self::Sink, Error>;
}

// SAFETY: a borrow of all items, or a copy of them that the preparation keeps.
unsafe impl<'a, T: Plain> Columns<'a> for &'a [T] {
    type Source = Array<T>;

    fn prepare(self, engine: &Engine, preparation: &mut Preparation<'a>) -> Result<Array<T>, Error> {
        preparation.note(self.len() as u64)?;
        let here = Array::at(self.as_ptr().expose_provenance() as u64);
        match engine.backend() {
            Backend::Cpu => Ok(here),
            Backend::Sim => {
                let name = format!("column {}", preparation.buffers.len());
                preparation.buffers.push(Buffer::read_only(name, self));
                Ok(here.checked())
            }
            #[cfg(feature = "cuda")]
            Backend::Cuda => {
                let copy = DeviceArray::from_slice(engine, self)?;
                let there = Array::at(copy.address());
                preparation.copies.push(Box::new(copy));
                Ok(there)
            }
            #[cfg(not(feature = "cuda"))]
            Backend::Cuda => Err(Error::CudaNotBuilt),
        }
    }
}

// SAFETY: a borrow of all items, or a copy of them that the preparation keeps.
unsafe impl<'a, T: Plain> Columns<'a> for &'a Vec<T> {
    type Source = Array<T>;

    fn prepare(self, engine: &Engine, preparation: &mut Preparation<'a>) -> Result<Array<T>, Error> {
        self.as_slice().prepare(engine, preparation)
    }
}

// SAFETY: a borrow of all items, or a copy of them that the preparation keeps.
unsafe impl<'a, T: Plain> ColumnsMut<'a> for &'a mut [T] {
    type Sink = ArrayMut<T>;

    fn prepare(self, engine: &Engine, preparation: &mut Preparation<'a>) -> Result<ArrayMut<T>, Error> {
        preparation.note(self.len() as u64)?;
        match engine.backend() {
            Backend::Cpu => Ok(ArrayMut::at(self.as_mut_ptr().expose_provenance() as u64)),
            Backend::Sim => {
                let name = format!("column {}", preparation.buffers.len());
                preparation.buffers.push(Buffer::writable(name, self));
                Ok(ArrayMut::at(self.as_mut_ptr().expose_provenance() as u64).checked())
            }
            #[cfg(feature = "cuda")]
            Backend::Cuda => {
                let there = std::sync::Arc::new(DeviceArray::from_slice(engine, self)?);
                let sink = ArrayMut::at(there.address());
                preparation.after.push(Box::new(move || there.copy_to_slice(self)));
                Ok(sink)
            }
            #[cfg(not(feature = "cuda"))]
            Backend::Cuda => Err(Error::CudaNotBuilt),
        }
    }
}

// SAFETY: a borrow of all items, or a copy of them that the preparation keeps.
unsafe impl<'a, T: Plain> ColumnsMut<'a> for &'a mut Vec<T> {
    type Sink = ArrayMut<T>;

    fn prepare(self, engine: &Engine, preparation: &mut Preparation<'a>) -> Result<ArrayMut<T>, Error> {
        self.as_mut_slice().prepare(engine, preparation)
    }
}

// SAFETY: a borrow of all items, or a copy of them that the preparation keeps.
#[cfg(feature = "cuda")]
unsafe impl<'a, T: Plain> Columns<'a> for DeviceView<'a, T> {
    type Source = Array<T>;

    fn prepare(self, engine: &Engine, preparation: &mut Preparation<'a>) -> Result<Array<T>, Error> {
        preparation.note(self.len())?;
        engine.check_address(self.address(), self.len(), size_of::<T>(), align_of::<T>())?;
        Ok(Array::at(self.address()))
    }
}

// SAFETY: a borrow of all items, or a copy of them that the preparation keeps.
#[cfg(feature = "cuda")]
unsafe impl<'a, T: Plain> Columns<'a> for &'a DeviceArray<T> {
    type Source = Array<T>;

    fn prepare(self, engine: &Engine, preparation: &mut Preparation<'a>) -> Result<Array<T>, Error> {
        self.view().prepare(engine, preparation)
    }
}

// SAFETY: a borrow of all items, or a copy of them that the preparation keeps.
#[cfg(feature = "cuda")]
unsafe impl<'a, T: Plain> ColumnsMut<'a> for DeviceViewMut<'a, T> {
    type Sink = ArrayMut<T>;

    fn prepare(self, engine: &Engine, preparation: &mut Preparation<'a>) -> Result<ArrayMut<T>, Error> {
        preparation.note(self.len())?;
        engine.check_address(self.address(), self.len(), size_of::<T>(), align_of::<T>())?;
        Ok(ArrayMut::at(self.address()))
    }
}

// SAFETY: a borrow of all items, or a copy of them that the preparation keeps.
#[cfg(feature = "cuda")]
unsafe impl<'a, T: Plain> ColumnsMut<'a> for &'a mut DeviceArray<T> {
    type Sink = ArrayMut<T>;

    fn prepare(self, engine: &Engine, preparation: &mut Preparation<'a>) -> Result<ArrayMut<T>, Error> {
        self.view_mut().prepare(engine, preparation)
    }
}

macro_rules! tuple {
    ($zip:ident; $($part:ident $value:ident),+) => {
        // SAFETY: that of the parts, whose lengths are the same.
        unsafe impl<'a, $($part: Columns<'a>),+> Columns<'a> for ($($part,)+) {
            type Source = $zip<$($part::Source),+>;

            fn prepare(self, engine: &Engine, preparation: &mut Preparation<'a>) -> Result<Self::Source, Error> {
                let ($($value,)+) = self;
                Ok($zip::new($($value.prepare(engine, preparation)?),+))
            }
        }

        // SAFETY: that of the parts, whose lengths are the same.
        unsafe impl<'a, $($part: ColumnsMut<'a>),+> ColumnsMut<'a> for ($($part,)+) {
            type Sink = $zip<$($part::Sink),+>;

            fn prepare(self, engine: &Engine, preparation: &mut Preparation<'a>) -> Result<Self::Sink, Error> {
                let ($($value,)+) = self;
                Ok($zip::new($($value.prepare(engine, preparation)?),+))
            }
        }
    };
}

tuple!(Zip2; A a, B b);
tuple!(Zip3; A a, B b, C c);
tuple!(Zip4; A a, B b, C c, D d);
tuple!(Zip5; A a, B b, C c, D d, E e);
tuple!(Zip6; A a, B b, C c, D d, E e, F f);
tuple!(Zip7; A a, B b, C c, D d, E e, F f, G g);
tuple!(Zip8; A a, B b, C c, D d, E e, F f, G g, H h);

impl Engine {
    /// Reduces several arrays read side by side (a structure of arrays), and waits for the result.
    ///
    /// The operator's items are pairs, triples, ... of theirs ([`Parts2`](warpfold_monoid::fused::Parts2) to `Parts8`). A
    /// GPU and the simulator need an export of `Over<Op, Zip2<Array<A>, Array<B>>>`; host memory is copied to a GPU
    /// first. For a reduction that is enqueued, make that operator yourself ([`Over::new`]) and a reducer for it.
    ///
    /// # Errors
    ///
    /// [`Error::ColumnLengths`], and those of [`reducer`](Engine::reducer) and [`Reducer::reduce`](crate::Reducer::reduce).
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::{Map, MapFn, Plain, Sum, fused::Parts2};
    ///
    /// #[derive(Clone, Copy, Plain)]
    /// struct Times;
    /// impl MapFn for Times {
    ///     type From = Parts2<f32, f64>;
    ///     type To = f64;
    ///     fn map(&self, pair: Parts2<f32, f64>, _index: u64) -> f64 {
    ///         let (a, b) = pair.get();
    ///         a as f64 * b
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let dot = Map::new(Sum::<f64>::new(), Times);
    /// let (a, b) = (vec![1.0f32, 2.0], vec![10.0f64, 20.0]);
    /// assert_eq!(Engine::cpu().reduce_columns(dot, (&a, &b))?, 50.0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reduce_columns<'a, Op, C>(&self, op: Op, columns: C) -> Result<Value<Op>, Error>
    where
        Op: Monoid,
        C: Columns<'a, Source: Source<Item = Op::Item>>,
    {
        let mut preparation = Preparation::default();
        let source = columns.prepare(self, &mut preparation)?;
        // SAFETY: prepared for this engine and borrowed until the reduction is done.
        self.reduce_positions(unsafe { Over::new(op, source) }, preparation)
    }

    /// The same, and in the same pass writes what `map` makes of each item to an array, or to several: *map-out*.
    ///
    /// The reduction is of the items as they were; an operator that is a [`Map`](warpfold_monoid::Map) with the same
    /// function reduces the results instead. A GPU and the simulator need an export of
    /// `Over<Op, MapOut<Array<A>, F, ArrayMut<B>>>`, with `Zip2` and so on for several arrays.
    ///
    /// # Errors
    ///
    /// As for [`reduce_columns`](Engine::reduce_columns). After an error the outputs may be partly written.
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::{Max, MapFn, Plain};
    ///
    /// #[repr(C)]
    /// #[derive(Clone, Copy, Plain)]
    /// struct Scale { by: i32 }
    /// impl MapFn for Scale {
    ///     type From = i32;
    ///     type To = i32;
    ///     fn map(&self, item: i32, _index: u64) -> i32 { item * self.by }
    /// }
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let (items, mut scaled) = (vec![3, 9, 4], vec![0; 3]);
    /// let greatest = Engine::cpu().map_reduce_columns(Max::<i32>::new(), Scale { by: 10 }, &items, &mut scaled)?;
    /// assert_eq!((greatest, scaled), (Some(9), vec![30, 90, 40]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn map_reduce_columns<'a, Op, F, C, D>(
        &self,
        op: Op,
        map: F,
        columns: C,
        outputs: D,
    ) -> Result<Value<Op>, Error>
    where
        Op: Monoid,
        F: MapFn<From = Op::Item>,
        C: Columns<'a, Source: Source<Item = Op::Item>>,
        D: ColumnsMut<'a, Sink: Sink<Item = F::To>>,
    {
        let mut preparation = Preparation::default();
        let source = columns.prepare(self, &mut preparation)?;
        let sink = outputs.prepare(self, &mut preparation)?;
        // SAFETY: prepared for this engine and borrowed, the outputs mutably, until the reduction is done.
        self.reduce_positions(unsafe { Over::new(op, MapOut::new(source, map, sink)) }, preparation)
    }

    fn reduce_positions<Op: Monoid, S: Source<Item = Op::Item>>(
        &self,
        op: Over<Op, S>,
        mut preparation: Preparation<'_>,
    ) -> Result<Value<Op>, Error> {
        let n = preparation.len.unwrap_or(0);
        let n = usize::try_from(n).map_err(|_| Error::HostMemory { needed: n })?;
        let value = self.reducer(op)?.reduce_with(Position::before(n), preparation.buffers())?;
        preparation.conclude()?;
        Ok(value)
    }
}
