//! Items at regular distances in memory.

use std::{fmt, marker::PhantomData, ops::Range};

use warpfold_monoid::Plain;

use crate::Items;

/// A view of an n-dimensional array whose items do not lie side by side: strided, reversed, broadcast.
///
/// Its items in logical order: the last axis runs fastest.
#[derive(Clone)]
pub struct Strided<'a, T> {
    first: *const T,
    len: u64,
    /// Outermost first. The last one is there even if the array has no axes.
    axes: Vec<Axis>,
    memory: PhantomData<&'a [T]>,
}

/// One axis: so many items, so far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    len: usize,
    stride: isize,
}

// SAFETY: a shared borrow of items of `T`, which may be shared between threads.
unsafe impl<T: Sync> Send for Strided<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Strided<'_, T> {}

impl<T> fmt::Debug for Strided<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Strided").field("len", &self.len).field("axes", &self.axes).finish_non_exhaustive()
    }
}

impl<T: Plain> Strided<'_, T> {
    /// A view of an array with so many items along each axis, so many items apart, outermost axis first. `first` is
    /// the item at index 0 of every axis.
    ///
    /// # Safety
    ///
    /// `shape` and `strides` are of the same length, the product of `shape` fits `isize`, and every item that they
    /// lead to lies in memory that may be read, and is not written, for the lifetime of the view.
    ///
    /// ```
    /// use warpfold_host::{Engine, Strided};
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let values = [1, 10, 2, 20, 3, 30];
    /// // SAFETY: items 0, 2 and 4 of six.
    /// let every_second = unsafe { Strided::from_raw_parts(values.as_ptr(), &[3], &[2]) };
    /// assert_eq!(Engine::cpu().reducer(Sum::<i32>::new())?.reduce_items(&every_second)?, 6);
    /// # Ok(())
    /// # }
    /// ```
    pub unsafe fn from_raw_parts(first: *const T, shape: &[usize], strides: &[isize]) -> Self {
        let len = shape.iter().map(|&len| len as u64).product();
        let mut axes: Vec<Axis> = Vec::with_capacity(shape.len() + 1);
        for (&len, &stride) in shape.iter().zip(strides).filter(|&(&len, _)| len != 1) {
            match axes.last_mut() {
                // The two axes are one: a step along the outer one is all the steps along the inner one.
                Some(outer) if outer.stride == stride.wrapping_mul(len as isize) => {
                    *outer = Axis { len: outer.len * len, stride };
                }
                _ => axes.push(Axis { len, stride }),
            }
        }
        if axes.is_empty() {
            axes.push(Axis { len: 1, stride: 1 });
        }
        Strided { first, len, axes, memory: PhantomData }
    }

    /// Where on each axis item `index < len` is.
    fn position(&self, index: u64) -> Vec<usize> {
        let mut rest = index as usize;
        let mut position = vec![0; self.axes.len()];
        for (at, axis) in position.iter_mut().zip(&self.axes).rev() {
            *at = rest % axis.len;
            rest /= axis.len;
        }
        position
    }

    /// How far the item at a position is from the first one.
    fn offset(&self, position: &[usize]) -> isize {
        position.iter().zip(&self.axes).map(|(&at, axis)| at as isize * axis.stride).sum()
    }

    /// Moves a position to the start of the next row; from the last row, to the first.
    fn next_row(&self, position: &mut [usize]) {
        let (inner, outer) = position.split_last_mut().expect("there is an axis");
        *inner = 0;
        for (at, axis) in outer.iter_mut().zip(&self.axes).rev() {
            *at += 1;
            if *at < axis.len {
                return;
            }
            *at = 0;
        }
    }
}

impl<T: Plain> Items<T> for Strided<'_, T> {
    fn len(&self) -> u64 {
        self.len
    }

    fn get(&self, index: u64) -> T {
        assert!(index < self.len, "item {index} of {}", self.len);
        // SAFETY: an item of the array, which the maker of the view has vouched for.
        unsafe { self.first.offset(self.offset(&self.position(index))).read() }
    }

    fn run<'a>(&'a self, range: Range<u64>, scratch: &'a mut Vec<T>) -> &'a [T] {
        assert!(range.start <= range.end && range.end <= self.len, "items {range:?} of {}", self.len);
        scratch.clear();
        let mut rest = (range.end - range.start) as usize;
        if rest == 0 {
            return scratch;
        }
        let Some(&Axis { len, stride }) = self.axes.last() else { return scratch };
        let mut position = self.position(range.start);
        let at = position[position.len() - 1];
        if stride == 1 && rest <= len - at {
            // SAFETY: items `at .. at + rest` of one row, which lie side by side.
            return unsafe { std::slice::from_raw_parts(self.first.offset(self.offset(&position)), rest) };
        }
        scratch.reserve(rest);
        while rest > 0 {
            let take = rest.min(len - position[position.len() - 1]);
            // SAFETY: an item of the array; so are the `take` from there on along the row.
            let row = unsafe { self.first.offset(self.offset(&position)) };
            if stride == 1 {
                // SAFETY: they lie side by side.
                scratch.extend_from_slice(unsafe { std::slice::from_raw_parts(row, take) });
            } else {
                // SAFETY: as above.
                scratch.extend((0..take as isize).map(|i| unsafe { row.offset(i * stride).read() }));
            }
            rest -= take;
            self.next_row(&mut position);
        }
        scratch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(shape: &[usize], strides: &[isize]) -> Vec<(usize, isize)> {
        // SAFETY: never read.
        let view = unsafe { Strided::<u8>::from_raw_parts(std::ptr::dangling(), shape, strides) };
        view.axes.iter().map(|axis| (axis.len, axis.stride)).collect()
    }

    #[test]
    fn axes_that_are_one_are_joined() {
        assert_eq!(axes(&[2, 3, 4], &[24, 4, 1]), [(2, 24), (12, 1)]);
        assert_eq!(axes(&[2, 3, 4], &[12, 4, 1]), [(24, 1)]);
        assert_eq!(axes(&[2, 1, 4], &[8, 99, 2]), [(8, 2)]);
        assert_eq!(axes(&[3, 4], &[-4, -1]), [(12, -1)]);
        assert_eq!(axes(&[3, 4], &[0, 0]), [(12, 0)]);
        assert_eq!(axes(&[3, 4], &[0, 1]), [(3, 0), (4, 1)]);
        assert_eq!(axes(&[], &[]), [(1, 1)]);
    }
}
