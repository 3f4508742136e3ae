//! Arrays and views of `ndarray`.

use ndarray::{Array, ArrayD, ArrayRef, Axis, Dimension, RemoveAxis};
use warpfold_monoid::Monoid;

use super::{Layout, SegmentReducer, SegmentsBeside};
use crate::{Error, Reducer};

impl<Op: Monoid> SegmentReducer<Op> {
    /// Reduces an array or a view along one of its axes, which the result then lacks. Any strides will do: Fortran
    /// order, gaps, reversed and broadcast axes.
    ///
    /// # Errors
    ///
    /// [`Error::AxisOutOfRange`], [`Error::ShapeTooLarge`], [`Error::HostMemory`].
    ///
    /// ```
    /// use ndarray::{Axis, array};
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sum = Engine::cpu().segments(Sum::<i32>::new())?;
    /// let matrix = array![[1, 2, 3], [10, 20, 30]];
    /// assert_eq!(sum.reduce_axis(&matrix, Axis(1))?, array![6, 60]);
    /// assert_eq!(sum.reduce_axis(&matrix.view(), Axis(0))?, array![11, 22, 33]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reduce_axis<D: RemoveAxis>(
        &self,
        array: &ArrayRef<Op::Item, D>,
        axis: Axis,
    ) -> Result<Array<Op::Output, D::Smaller>, Error> {
        let layout = Layout::new(array.shape(), array.strides(), &[axis.0])?;
        // SAFETY: ndarray's own description of memory that is borrowed meanwhile.
        let results = unsafe { self.reduce_layout(array.as_ptr(), &layout)? };
        let kept = array.raw_dim().remove_axis(axis);
        Ok(Array::from_shape_vec(kept, results).expect("a result for every position on the kept axes"))
    }

    /// Reduces an array or a view along some of its axes, in whatever order they are named: the last one runs fastest.
    /// The result lacks them.
    ///
    /// # Errors
    ///
    /// [`Error::NoAxis`], [`Error::AxisTwice`], and as for [`reduce_axis`](SegmentReducer::reduce_axis).
    ///
    /// ```
    /// use ndarray::{Array, Axis, array};
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Max;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let max = Engine::cpu().segments(Max::<i32>::new())?;
    /// let cube = Array::from_shape_fn((2, 3, 4), |(a, b, c)| (100 * a + 10 * b + c) as i32);
    /// assert_eq!(max.reduce_axes(&cube, &[Axis(0), Axis(2)])?, array![103, 113, 123].into_dyn());
    /// # Ok(())
    /// # }
    /// ```
    pub fn reduce_axes<D: Dimension>(
        &self,
        array: &ArrayRef<Op::Item, D>,
        axes: &[Axis],
    ) -> Result<ArrayD<Op::Output>, Error> {
        let layout = layout(array, axes)?;
        // SAFETY: ndarray's own description of memory that is borrowed meanwhile.
        let results = unsafe { self.reduce_layout(array.as_ptr(), &layout)? };
        let kept: Vec<usize> = (0..array.ndim())
            .filter(|&axis| !axes.contains(&Axis(axis)))
            .map(|axis| array.shape()[axis])
            .collect();
        Ok(Array::from_shape_vec(kept, results).expect("a result for every position on the kept axes"))
    }

    /// [`reduce_axes`](SegmentReducer::reduce_axes) into a slice with a place for each result, the last kept axis running
    /// fastest.
    ///
    /// # Errors
    ///
    /// As there, and [`Error::OutputLength`].
    pub fn reduce_axes_into<D: Dimension>(
        &self,
        array: &ArrayRef<Op::Item, D>,
        axes: &[Axis],
        results: &mut [Op::Output],
    ) -> Result<(), Error> {
        // SAFETY: ndarray's own description of memory that is borrowed meanwhile.
        unsafe { self.reduce_layout_into(array.as_ptr(), &layout(array, axes)?, results) }
    }
}

impl<Op: Monoid> SegmentsBeside<'_, Op> {
    /// [`SegmentReducer::reduce_axis`]: segment `k` is at the `k`-th position on the axes that stay, the last one running
    /// fastest.
    ///
    /// # Errors
    ///
    /// As there, and as for [`reduce_rows`](SegmentsBeside::reduce_rows).
    ///
    /// ```
    /// use ndarray::{Axis, array};
    /// use warpfold_host::{Engine, segments::Side};
    /// use warpfold_monoid::{Max, MapFn, Plain};
    ///
    /// #[derive(Clone, Copy, Plain)]
    /// struct Same;
    /// impl MapFn for Same {
    ///     type From = i32;
    ///     type To = i32;
    ///     fn map(&self, item: i32, _index: u64) -> i32 { item }
    /// }
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// // The columns' maxima, and the matrix transposed in the same pass.
    /// let matrix = array![[1, 5, 3], [4, 2, 6]];
    /// let mut transposed = vec![0; 6];
    /// let out = Side::rows(&mut transposed, 3, 2);
    /// let greatest = Engine::cpu().segments_writing(Max::<i32>::new(), Same, out)?.reduce_axis(&matrix, Axis(0))?;
    /// assert_eq!((greatest, transposed), (array![4, 5, 6], vec![1, 4, 5, 2, 3, 6]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn reduce_axis<D: RemoveAxis>(
        &mut self,
        array: &ArrayRef<Op::Item, D>,
        axis: Axis,
    ) -> Result<Array<Op::Output, D::Smaller>, Error> {
        let layout = Layout::new(array.shape(), array.strides(), &[axis.0])?;
        // SAFETY: ndarray's own description of memory that is borrowed meanwhile.
        let results = unsafe { self.reduce_layout(array.as_ptr(), &layout)? };
        let kept = array.raw_dim().remove_axis(axis);
        Ok(Array::from_shape_vec(kept, results).expect("a result for every position on the kept axes"))
    }
}

impl<Op: Monoid> Reducer<Op> {
    /// Reduces an array or a view along one of its axes: [`SegmentReducer::reduce_axis`]. The result of nothing is the
    /// operator's [`finish_empty`](Monoid::finish_empty).
    ///
    /// # Errors
    ///
    /// As there, and as for [`Engine::segments`](crate::Engine::segments).
    ///
    /// ```
    /// use ndarray::{Axis, array};
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sum = Engine::cpu().reducer(Sum::<f32>::new())?;
    /// let matrix = array![[1.0f32, 2.0], [3.0, 4.0]];
    /// assert_eq!(sum.reduce_axis(&matrix.view(), Axis(1))?, array![3.0, 7.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reduce_axis<D: RemoveAxis>(
        &self,
        array: &ArrayRef<Op::Item, D>,
        axis: Axis,
    ) -> Result<Array<Op::Output, D::Smaller>, Error> {
        self.engine().segments(*self.operator())?.reduce_axis(array, axis)
    }
}

fn layout<T, D: Dimension>(array: &ArrayRef<T, D>, axes: &[Axis]) -> Result<Layout, Error> {
    let axes: Vec<usize> = axes.iter().map(|axis| axis.0).collect();
    Layout::new(array.shape(), array.strides(), &axes)
}
