//! Segments at regular distances: some axes of an array are reduced, the others are kept.

use crate::Error;

/// One axis: so many items, so far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Axis {
    /// Items along it.
    pub len: u64,
    /// Items in memory from one to the next: negative on a reversed axis, 0 on a broadcast one.
    pub stride: i64,
}

/// An array whose items are reduced along some of its axes: a value for every position on the others.
///
/// Both lists have the outermost axis first. Axes of length 1 are left out, and neighbours in one list that are a
/// single axis in memory are one. Segment `k` is at the `k`-th position on the kept axes, item `i` of a segment at the
/// `i`-th on the reduced ones, the last axis running fastest.
///
/// ```
/// use warpfold_host::segments::{Axis, Layout};
///
/// # fn main() -> Result<(), warpfold_host::Error> {
/// // The rows, the columns and the middle axis of arrays that lie in C's order.
/// let rows = Layout::new(&[100, 8], &[8, 1], &[1])?;
/// assert_eq!(rows, Layout::rows(100, 8));
/// let columns = Layout::new(&[100, 8], &[8, 1], &[0])?;
/// assert_eq!(columns.reduced, [Axis { len: 100, stride: 8 }]);
/// assert_eq!(columns.kept, [Axis { len: 8, stride: 1 }]);
/// let middle = Layout::new(&[3, 100, 2, 4], &[800, 8, 4, 1], &[1])?;
/// assert_eq!(middle.kept, [Axis { len: 3, stride: 800 }, Axis { len: 8, stride: 1 }]);
/// assert_eq!((middle.segments(), middle.segment_len()), (24, 100));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Layout {
    /// The axes that stay.
    pub kept: Vec<Axis>,
    /// The axes that are reduced.
    pub reduced: Vec<Axis>,
}

impl Layout {
    /// The array of that shape, its axes so many items apart, to be reduced along `axes`, which may be named in any
    /// order: items keep the order of the array's own axes.
    ///
    /// # Errors
    ///
    /// [`Error::StrideCount`], [`Error::NoAxis`], [`Error::AxisOutOfRange`], [`Error::AxisTwice`], and
    /// [`Error::ShapeTooLarge`] where 63 bits do not count the segments, the items of one, or the distances.
    pub fn new(shape: &[usize], strides: &[isize], axes: &[usize]) -> Result<Layout, Error> {
        let dimensions = shape.len();
        if strides.len() != dimensions {
            return Err(Error::StrideCount { axes: dimensions, strides: strides.len() });
        }
        if axes.is_empty() {
            return Err(Error::NoAxis { dimensions });
        }
        let mut is_reduced = vec![false; dimensions];
        for &axis in axes {
            let seen = is_reduced.get_mut(axis).ok_or(Error::AxisOutOfRange { axis, dimensions })?;
            if std::mem::replace(seen, true) {
                return Err(Error::AxisTwice { axis });
            }
        }
        let mut layout = Layout::default();
        for ((&len, &stride), is_reduced) in shape.iter().zip(strides).zip(is_reduced) {
            let list = if is_reduced { &mut layout.reduced } else { &mut layout.kept };
            push(list, Axis { len: len as u64, stride: stride as i64 });
        }
        let fits = [&layout.kept, &layout.reduced].into_iter().all(|axes| {
            let count = count(axes).filter(|&count| count <= i64::MAX as u64);
            let extent = axes.iter().try_fold(0u64, |extent, axis| {
                axis.stride.unsigned_abs().checked_mul(axis.len.saturating_sub(1))?.checked_add(extent)
            });
            count.is_some() && extent.is_some_and(|extent| extent <= i64::MAX as u64 / 2)
        });
        if fits { Ok(layout) } else { Err(Error::ShapeTooLarge { shape: shape.to_vec() }) }
    }

    /// `m` rows of `n` items, side by side.
    pub fn rows(m: u64, n: u64) -> Layout {
        let mut layout = Layout::default();
        push(&mut layout.kept, Axis { len: m, stride: n as i64 });
        push(&mut layout.reduced, Axis { len: n, stride: 1 });
        layout
    }

    /// How many segments there are.
    pub fn segments(&self) -> u64 {
        count(&self.kept).unwrap_or(u64::MAX)
    }

    /// Items in a segment.
    pub fn segment_len(&self) -> u64 {
        count(&self.reduced).unwrap_or(u64::MAX)
    }
}

/// The positions on some axes; `None` if 64 bits do not count them. An empty axis leaves none, however long the others.
fn count(axes: &[Axis]) -> Option<u64> {
    if axes.iter().any(|axis| axis.len == 0) {
        return Some(0);
    }
    axes.iter().try_fold(1u64, |count, axis| count.checked_mul(axis.len))
}

/// Adds an inner axis.
fn push(axes: &mut Vec<Axis>, inner: Axis) {
    if inner.len == 1 {
        return;
    }
    match axes.last_mut() {
        // A step along the outer one is all the steps along the inner one.
        Some(outer)
            if i128::from(outer.stride) == i128::from(inner.stride) * i128::from(inner.len)
                && let Some(len) = outer.len.checked_mul(inner.len) =>
        {
            *outer = Axis { len, stride: inner.stride };
        }
        _ => axes.push(inner),
    }
}

/// A walk over the positions on some axes, the last one running fastest.
#[derive(Clone, Debug)]
pub(crate) struct Walk<'a> {
    axes: &'a [Axis],
    at: Vec<u64>,
    offset: i64,
}

impl<'a> Walk<'a> {
    /// From the position of that number, which exists.
    pub(crate) fn from(axes: &'a [Axis], number: u64) -> Self {
        let mut walk = Walk { axes, at: vec![0; axes.len()], offset: 0 };
        walk.go(number);
        walk
    }

    /// To the position of that number.
    pub(crate) fn go(&mut self, number: u64) {
        let mut rest = number;
        self.offset = 0;
        for i in (0..self.axes.len()).rev() {
            let (at, axis) = (&mut self.at[i], &self.axes[i]);
            *at = rest % axis.len;
            rest /= axis.len;
            self.offset += *at as i64 * axis.stride;
        }
    }

    /// How far its item is from the first one.
    #[inline]
    pub(crate) fn offset(&self) -> i64 {
        self.offset
    }

    /// Steps left on the innermost axis, this one included, and the items from one to the next.
    #[inline]
    pub(crate) fn run(&self) -> (u64, i64) {
        match (self.axes.last(), self.at.last()) {
            (Some(axis), Some(at)) => (axis.len - at, axis.stride),
            _ => (1, 0),
        }
    }

    /// So many steps on, no more than [`run`](Walk::run) says; from the last position, to the first.
    #[inline]
    pub(crate) fn step(&mut self, steps: u64) {
        let mut steps = steps;
        for i in (0..self.axes.len()).rev() {
            let (at, axis) = (&mut self.at[i], &self.axes[i]);
            *at += steps;
            self.offset += steps as i64 * axis.stride;
            if *at < axis.len {
                return;
            }
            self.offset -= *at as i64 * axis.stride;
            *at = 0;
            steps = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(axes: &[(u64, i64)]) -> Vec<Axis> {
        axes.iter().map(|&(len, stride)| Axis { len, stride }).collect()
    }

    #[track_caller]
    fn check(
        shape: &[usize],
        strides: &[isize],
        reduce: &[usize],
        kept: &[(u64, i64)],
        reduced: &[(u64, i64)],
    ) {
        let layout = Layout::new(shape, strides, reduce).unwrap();
        assert_eq!(layout, Layout { kept: axes(kept), reduced: axes(reduced) });
    }

    #[test]
    fn rows_columns_and_middles() {
        check(&[5, 7], &[7, 1], &[1], &[(5, 7)], &[(7, 1)]);
        check(&[5, 7], &[7, 1], &[0], &[(7, 1)], &[(5, 7)]);
        check(&[5, 7], &[1, 5], &[0], &[(7, 5)], &[(5, 1)]);
        check(&[2, 3, 4], &[12, 4, 1], &[1], &[(2, 12), (4, 1)], &[(3, 4)]);
        check(&[2, 3, 4], &[12, 4, 1], &[1, 2], &[(2, 12)], &[(12, 1)]);
        check(&[2, 3, 4], &[12, 4, 1], &[2, 0], &[(3, 4)], &[(2, 12), (4, 1)]);
        check(&[2, 3, 4], &[12, 4, 1], &[0, 1, 2], &[], &[(24, 1)]);
    }

    #[test]
    fn axes_of_one_item_and_joined_ones_are_left_out() {
        check(&[5, 1, 7], &[7, 99, 1], &[1], &[(35, 1)], &[]);
        check(&[5, 1, 7], &[7, 99, 1], &[1, 2], &[(5, 7)], &[(7, 1)]);
        check(&[5, 7, 3], &[-21, -3, -1], &[2], &[(35, -3)], &[(3, -1)]);
        check(&[5, 7, 3], &[0, 0, 1], &[2], &[(35, 0)], &[(3, 1)]);
        check(&[5, 7, 3], &[0, 3, 1], &[2], &[(5, 0), (7, 3)], &[(3, 1)]);
        check(&[2, 3, 4, 5], &[60, 20, 5, 1], &[1, 2], &[(2, 60), (5, 1)], &[(12, 5)]);
        check(&[1], &[1], &[0], &[], &[]);
        assert_eq!(Layout::rows(1, 9), Layout { kept: vec![], reduced: axes(&[(9, 1)]) });
        assert_eq!(Layout::rows(9, 1), Layout { kept: axes(&[(9, 1)]), reduced: vec![] });
        assert_eq!(Layout::rows(9, 4), Layout { kept: axes(&[(9, 4)]), reduced: axes(&[(4, 1)]) });
    }

    #[test]
    fn counts() {
        let counts = |shape: &[usize], reduce: &[usize]| {
            let layout = Layout::new(shape, &vec![0; shape.len()], reduce).unwrap();
            (layout.segments(), layout.segment_len())
        };
        assert_eq!(counts(&[5, 7], &[1]), (5, 7));
        assert_eq!(counts(&[5, 0], &[1]), (5, 0));
        assert_eq!(counts(&[5, 0], &[0]), (0, 5));
        assert_eq!(counts(&[usize::MAX, 0, 9], &[0, 1]), (9, 0));
        assert_eq!(counts(&[70_000, 3, 70_000], &[1]), (4_900_000_000, 3));
        assert_eq!(counts(&[1 << 31, 2], &[1]), (1 << 31, 2));
        assert_eq!((Layout::rows(0, 3).segments(), Layout::rows(3, 0).segment_len()), (0, 0));
    }

    #[test]
    fn errors_name_the_axis() {
        let new = |axes: &[usize]| Layout::new(&[5, 7], &[7, 1], axes).unwrap_err();
        assert_eq!(new(&[]), Error::NoAxis { dimensions: 2 });
        assert_eq!(new(&[0, 2]), Error::AxisOutOfRange { axis: 2, dimensions: 2 });
        assert_eq!(new(&[1, 0, 1]), Error::AxisTwice { axis: 1 });
        assert_eq!(Layout::new(&[5], &[], &[0]), Err(Error::StrideCount { axes: 1, strides: 0 }));
        let shape = vec![1 << 40, 1 << 40, 3];
        assert_eq!(Layout::new(&shape, &[0, 0, 1], &[2]), Err(Error::ShapeTooLarge { shape }));
        let shape = vec![1 << 40, 3];
        assert_eq!(Layout::new(&shape, &[1 << 40, 1], &[0]), Err(Error::ShapeTooLarge { shape }));
    }

    #[test]
    fn walks_are_nested_loops() {
        let axes = axes(&[(2, -100), (3, 0), (4, 7)]);
        let mut expected = vec![];
        for a in 0..2 {
            for _ in 0..3 {
                for c in 0..4 {
                    expected.push(-100 * a + 7 * c);
                }
            }
        }
        for start in 0..24 {
            let mut walk = Walk::from(&axes, start);
            for &offset in expected.iter().cycle().skip(start as usize).take(30) {
                assert_eq!(walk.offset(), offset);
                walk.step(1);
            }
        }
        let mut walk = Walk::from(&axes, 5);
        assert_eq!(walk.run(), (3, 7));
        walk.step(3);
        assert_eq!((walk.offset(), walk.run()), (expected[8], (4, 7)));
        assert_eq!(Walk::from(&[], 0).run(), (1, 0));
    }
}
