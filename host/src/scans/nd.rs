//! Arrays and views of `ndarray`.

use ndarray::{Array, ArrayRef, Axis, Dimension};
use warpfold_monoid::Monoid;

use super::{Lines, Scanner};
use crate::{Error, segments::room};

impl<Op: Monoid> Scanner<Op> {
    /// Scans an array or a view along one of its axes. The result has its shape, in C's order.
    ///
    /// Any strides will do; what does not lie in C's order is copied to it first.
    ///
    /// # Errors
    ///
    /// [`Error::AxisOutOfRange`], and as for [`scan`](Scanner::scan).
    ///
    /// ```
    /// use ndarray::{Axis, array};
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sum = Engine::cpu().scanner(Sum::<i32>::new())?;
    /// let matrix = array![[1, 2, 3], [10, 20, 30]];
    /// assert_eq!(sum.scan_axis(&matrix, Axis(1))?, array![[1, 3, 6], [10, 30, 60]]);
    /// assert_eq!(sum.scan_axis(&matrix.view(), Axis(0))?, array![[1, 2, 3], [11, 22, 33]]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scan_axis<D: Dimension>(
        &self,
        array: &ArrayRef<Op::Item, D>,
        axis: Axis,
    ) -> Result<Array<Op::Output, D>, Error> {
        let (shape, len) = (array.shape(), array.len() as u64);
        let out = Error::AxisOutOfRange { axis: axis.0, dimensions: shape.len() };
        let n = *shape.get(axis.0).ok_or(out)? as u64;
        let inner: usize = shape[axis.0 + 1..].iter().product();
        let lines = Lines::inner(len / n.max(1), n, inner as u64);
        let mut results = room(len)?;
        match array.as_slice() {
            Some(items) => self.slice(items, &lines, &mut results)?,
            None => {
                let needed = len.saturating_mul(size_of::<Op::Item>() as u64);
                let mut items = Vec::new();
                items.try_reserve_exact(array.len()).map_err(|_| Error::HostMemory { needed })?;
                items.extend(array.iter().copied());
                self.slice(&items, &lines, &mut results)?;
            }
        }
        Ok(Array::from_shape_vec(array.raw_dim(), results).expect("a result for every item"))
    }
}
