//! What can be reduced.

use std::ops::Range;

use warpfold_monoid::Plain;

use crate::Error;

mod strided;

pub use strided::Strided;

/// Where the items of an [`Input`] lie.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Source<'a, T> {
    /// In the host's memory, side by side.
    Host(&'a [T]),
    /// In the host's memory, at regular distances.
    Strided(Strided<'a, T>),
    /// In a device's memory, side by side.
    #[cfg(feature = "cuda")]
    Device(crate::cuda::DeviceView<'a, T>),
}

impl<T: Plain> Source<'_, T> {
    /// How many items there are.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Source::Host(items) => items.len() as u64,
            Source::Strided(items) => items.len(),
            #[cfg(feature = "cuda")]
            Source::Device(view) => view.len(),
        }
    }
}

/// An array of items that [`Reducer::reduce`](crate::Reducer::reduce) takes.
///
/// Slices, vectors, arrays, and with the feature `ndarray` its arrays and views, of any number of axes and with any
/// strides. Where their items lie side by side in memory, in whatever order of the axes, they are reduced **in memory
/// order**: for a Fortran-ordered array that is not its logical order, and the indices that an operator sees are
/// positions in memory. All other views (with gaps, reversed, broadcast) are reduced in logical order, the last axis
/// running fastest, and not copied as a whole. With the feature
/// `cuda`, also the engine's `DeviceArray` and cust's `DeviceBuffer`, `DeviceSlice` and `DeviceBox`.
pub trait Input<T: Plain> {
    /// Where the items lie.
    ///
    /// # Errors
    ///
    /// None for what is built in.
    fn source(&self) -> Result<Source<'_, T>, Error>;
}

impl<T: Plain, I: Input<T> + ?Sized> Input<T> for &I {
    fn source(&self) -> Result<Source<'_, T>, Error> {
        (**self).source()
    }
}

impl<T: Plain> Input<T> for [T] {
    fn source(&self) -> Result<Source<'_, T>, Error> {
        Ok(Source::Host(self))
    }
}

impl<T: Plain, const N: usize> Input<T> for [T; N] {
    fn source(&self) -> Result<Source<'_, T>, Error> {
        Ok(Source::Host(self))
    }
}

impl<T: Plain> Input<T> for Vec<T> {
    fn source(&self) -> Result<Source<'_, T>, Error> {
        Ok(Source::Host(self))
    }
}

#[cfg(feature = "ndarray")]
mod nd {
    use ndarray::{ArrayBase, ArrayRef, Data, Dimension};
    use warpfold_monoid::Plain;

    use super::{Input, Source, Strided};
    use crate::Error;

    impl<T: Plain, D: Dimension> Input<T> for ArrayRef<T, D> {
        fn source(&self) -> Result<Source<'_, T>, Error> {
            if let (0 | 1, items) = (self.len(), self.first()) {
                return Ok(Source::Host(items.map_or(&[], std::slice::from_ref)));
            }
            // ndarray also calls a reversed axis contiguous; its memory order would run backwards.
            let forward =
                self.shape().iter().zip(self.strides()).all(|(&len, &stride)| len <= 1 || stride > 0);
            Ok(match self.as_slice_memory_order() {
                Some(items) if forward => Source::Host(items),
                // SAFETY: ndarray's own view of memory that is borrowed as long as `self`.
                _ => Source::Strided(unsafe {
                    Strided::from_raw_parts(self.as_ptr(), self.shape(), self.strides())
                }),
            })
        }
    }

    impl<T: Plain, S: Data<Elem = T>, D: Dimension> Input<T> for ArrayBase<S, D> {
        fn source(&self) -> Result<Source<'_, T>, Error> {
            Input::<T>::source(&**self)
        }
    }
}

/// Items that are read rather than lent: strided, byte-swapped, computed.
///
/// [`Reducer::reduce_items`](crate::Reducer::reduce_items) takes them. Reading item `i` must give the same value every
/// time.
///
/// ```
/// use warpfold_host::{Engine, Items};
/// use warpfold_monoid::Sum;
///
/// struct BigEndian<'a>(&'a [u8]);
///
/// impl Items<u32> for BigEndian<'_> {
///     fn len(&self) -> u64 { (self.0.len() / 4) as u64 }
///     fn get(&self, index: u64) -> u32 {
///         let at = 4 * index as usize;
///         u32::from_be_bytes(self.0[at..at + 4].try_into().unwrap())
///     }
/// }
///
/// # fn main() -> Result<(), warpfold_host::Error> {
/// let sum = Engine::cpu().reducer(Sum::<u32>::new())?;
/// assert_eq!(sum.reduce_items(&BigEndian(&[0, 0, 0, 1, 0, 0, 1, 0]))?, 257);
/// # Ok(())
/// # }
/// ```
pub trait Items<T: Plain>: Sync {
    /// How many there are.
    fn len(&self) -> u64;

    /// Are there none?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Item `index`, which is less than [`len`](Items::len).
    fn get(&self, index: u64) -> T;

    /// All of them, if they lie side by side in memory.
    fn as_slice(&self) -> Option<&[T]> {
        None
    }

    /// A run of items: borrowed where they lie side by side, else read into `scratch`. The range lies within
    /// `0..len`; unless [`as_slice`](Items::as_slice) has them all, it is short (a few MiB at most).
    #[inline]
    fn run<'a>(&'a self, range: Range<u64>, scratch: &'a mut Vec<T>) -> &'a [T] {
        scratch.clear();
        scratch.extend(range.map(|index| self.get(index)));
        scratch
    }
}

impl<T: Plain> Items<T> for [T] {
    #[inline]
    fn len(&self) -> u64 {
        self.len() as u64
    }

    #[inline]
    fn get(&self, index: u64) -> T {
        self[index as usize]
    }

    fn as_slice(&self) -> Option<&[T]> {
        Some(self)
    }

    #[inline]
    fn run<'a>(&'a self, range: Range<u64>, _scratch: &'a mut Vec<T>) -> &'a [T] {
        &self[range.start as usize..range.end as usize]
    }
}
