//! Segments of any lengths.

use std::{iter, ops::Range};

use crate::Error;

/// An integer that counts items: of any width, signed or not.
pub trait Offset: Copy + sealed::Sealed {
    /// The number.
    fn number(self) -> i128;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! offset {
    ($($type:ty)*) => {$(
        impl sealed::Sealed for $type {}
        impl Offset for $type {
            #[inline(always)]
            fn number(self) -> i128 { self as i128 }
        }
    )*};
}
offset! { i8 i16 i32 i64 isize u8 u16 u32 u64 usize }

/// Where segments of any lengths begin and end in an array: made once, from one of several descriptions, and used for
/// many reductions.
///
/// Whatever it is made from is checked then, and the error says where the first fault is.
///
/// ```
/// use warpfold_host::{Engine, segments::SegmentPlan};
/// use warpfold_monoid::Sum;
///
/// # fn main() -> Result<(), warpfold_host::Error> {
/// let plan = SegmentPlan::from_offsets(&[0, 2, 2, 5])?;
/// assert_eq!((plan.segments(), plan.items(), plan.range(2)), (3, 5, 2..5));
/// assert_eq!(SegmentPlan::from_lengths(&[2u8, 0, 3])?, plan);
/// let sum = Engine::cpu().segments(Sum::<i32>::new())?;
/// assert_eq!(sum.reduce_segments(&[1, 2, 3, 4, 5], &plan)?, [3, 0, 12]);
///
/// let error = SegmentPlan::from_offsets(&[0, 4, 3]).unwrap_err();
/// assert_eq!(error.to_string(), "offset 2 is 3, less than the 4 before it: offsets never decrease");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentPlan {
    bounds: Bounds,
    items: u64,
    end: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Bounds {
    /// Each ends where the next begins: one number more than there are segments.
    Offsets(Vec<u64>),
    Ranges {
        begins: Vec<u64>,
        ends: Vec<u64>,
    },
}

impl SegmentPlan {
    /// Segment `k` is `offsets[k] .. offsets[k + 1]`: one number more than there are segments, none less than the one
    /// before it. The first may be more than 0 and the last less than the array's length.
    ///
    /// # Errors
    ///
    /// [`Error::NoOffsets`], [`Error::NegativeOffset`], [`Error::OffsetDecreases`].
    pub fn from_offsets<I: Offset>(offsets: &[I]) -> Result<SegmentPlan, Error> {
        let offsets = positions("offset", offsets)?;
        let (Some(&first), Some(&end)) = (offsets.first(), offsets.last()) else {
            return Err(Error::NoOffsets);
        };
        if let Some(at) = offsets.windows(2).position(|pair| pair[1] < pair[0]) {
            let (before, value) = (offsets[at], offsets[at + 1]);
            return Err(Error::OffsetDecreases { index: at as u64 + 1, value, before });
        }
        // Without segments no item is needed, wherever the only offset points.
        let end = if offsets.len() > 1 { end } else { 0 };
        let items = if offsets.len() > 1 { end - first } else { 0 };
        Ok(SegmentPlan { bounds: Bounds::Offsets(offsets), items, end })
    }

    /// Segment `k` is `begins[k] .. ends[k]`: in any order, with gaps, overlapping if need be. An empty one may lie
    /// anywhere within the array.
    ///
    /// # Errors
    ///
    /// [`Error::SegmentCounts`], [`Error::NegativeOffset`], [`Error::EndsBeforeBegin`], and [`Error::TooManyItems`] where
    /// 64 bits do not count the items of all segments.
    pub fn from_ranges<I: Offset>(begins: &[I], ends: &[I]) -> Result<SegmentPlan, Error> {
        if begins.len() != ends.len() {
            return Err(Error::SegmentCounts { begins: begins.len() as u64, ends: ends.len() as u64 });
        }
        let (begins, ends) = (positions("begin", begins)?, positions("end", ends)?);
        let (mut items, mut last) = (0u64, 0);
        for (index, (&begin, &end)) in (0..).zip(begins.iter().zip(&ends)) {
            let len = end.checked_sub(begin).ok_or(Error::EndsBeforeBegin { index, begin, end })?;
            items = items.checked_add(len).ok_or(Error::TooManyItems { index })?;
            last = last.max(end);
        }
        Ok(SegmentPlan { bounds: Bounds::Ranges { begins, ends }, items, end: last })
    }

    /// Segments of these lengths, side by side from the array's first item on.
    ///
    /// # Errors
    ///
    /// [`Error::NegativeOffset`], and [`Error::TooManyItems`] where 64 bits do not count the items.
    pub fn from_lengths<I: Offset>(lengths: &[I]) -> Result<SegmentPlan, Error> {
        let mut offsets = Vec::with_capacity(lengths.len() + 1);
        let mut end = 0u64;
        offsets.push(0);
        for (index, length) in (0..).zip(positions("length", lengths)?) {
            end = end.checked_add(length).ok_or(Error::TooManyItems { index })?;
            offsets.push(end);
        }
        Ok(SegmentPlan { bounds: Bounds::Offsets(offsets), items: end, end })
    }

    /// A segment begins at each item that is marked, and at the first one. None is empty; no items are no segments.
    ///
    /// ```
    /// use warpfold_host::segments::SegmentPlan;
    ///
    /// let plan = SegmentPlan::from_heads(&[false, false, true, true, false]);
    /// assert_eq!(plan, SegmentPlan::from_lengths(&[2, 1, 2])?);
    /// # Ok::<(), warpfold_host::Error>(())
    /// ```
    pub fn from_heads(heads: &[bool]) -> SegmentPlan {
        SegmentPlan::of_heads(heads.len(), |at| heads[at])
    }

    /// Neighbours with equal keys are a segment. A key that comes again later, after another, begins another segment.
    ///
    /// ```
    /// use warpfold_host::segments::SegmentPlan;
    ///
    /// let plan = SegmentPlan::from_keys(&["a", "a", "b", "a"]);
    /// assert_eq!(plan, SegmentPlan::from_lengths(&[2, 1, 1])?);
    /// # Ok::<(), warpfold_host::Error>(())
    /// ```
    pub fn from_keys<K: PartialEq>(keys: &[K]) -> SegmentPlan {
        SegmentPlan::of_heads(keys.len(), |at| keys[at] != keys[at - 1])
    }

    fn of_heads(len: usize, is_head: impl Fn(usize) -> bool) -> SegmentPlan {
        let first = (len > 0).then_some(0);
        let rest = (1..len).filter(|&at| is_head(at)).map(|at| at as u64);
        let offsets: Vec<u64> = first.into_iter().chain(rest).chain(iter::once(len as u64)).collect();
        SegmentPlan { bounds: Bounds::Offsets(offsets), items: len as u64, end: len as u64 }
    }

    /// How many segments there are.
    pub fn segments(&self) -> u64 {
        match &self.bounds {
            Bounds::Offsets(offsets) => offsets.len() as u64 - 1,
            Bounds::Ranges { begins, .. } => begins.len() as u64,
        }
    }

    /// The items of segment `k`.
    ///
    /// # Panics
    ///
    /// If there are not so many segments.
    #[inline]
    pub fn range(&self, k: u64) -> Range<u64> {
        let k = k as usize;
        match &self.bounds {
            Bounds::Offsets(offsets) => offsets[k]..offsets[k + 1],
            Bounds::Ranges { begins, ends } => begins[k]..ends[k],
        }
    }

    /// The items of all segments together; those of several count for each.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// The items that an array must have at least.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The segments' bounds where each ends where the next begins: one more than there are segments.
    pub fn offsets(&self) -> Option<&[u64]> {
        match &self.bounds {
            Bounds::Offsets(offsets) => Some(offsets),
            Bounds::Ranges { .. } => None,
        }
    }

    /// Where each segment begins and where it ends, one list of each.
    pub(crate) fn bounds(&self) -> (&[u64], &[u64]) {
        match &self.bounds {
            Bounds::Offsets(offsets) => (&offsets[..offsets.len() - 1], &offsets[1..]),
            Bounds::Ranges { begins, ends } => (begins, ends),
        }
    }

    /// Some of the segments, of the items from `start` to `end` alone, within which they lie unless they are empty.
    pub(crate) fn part(&self, segments: Range<u64>, (start, end): (u64, u64)) -> SegmentPlan {
        let bound = |at: &u64| (*at).clamp(start, end) - start;
        let (first, last) = (segments.start as usize, segments.end as usize);
        let items = segments.map(|k| self.range(k)).map(|range| range.end - range.start).sum();
        let bounds = match &self.bounds {
            Bounds::Offsets(offsets) => Bounds::Offsets(offsets[first..=last].iter().map(bound).collect()),
            Bounds::Ranges { begins, ends } => Bounds::Ranges {
                begins: begins[first..last].iter().map(bound).collect(),
                ends: ends[first..last].iter().map(bound).collect(),
            },
        };
        SegmentPlan { bounds, items, end: end - start }
    }

    /// Parts of neighbouring segments whose items, with all between them, are no more than `most`; those of a single segment may be
    /// more. Each with where its items begin and end.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "all of them are on the host"))]
    pub(crate) fn parts(&self, most: u64) -> Vec<(Range<u64>, (u64, u64))> {
        let mut parts: Vec<(Range<u64>, (u64, u64))> = Vec::new();
        for k in 0..self.segments() {
            let Range { start, end } = self.range(k);
            if let Some((segments, bounds)) = parts.last_mut() {
                let both = match (bounds.0 == bounds.1, start == end) {
                    (_, true) => *bounds,
                    (true, false) => (start, end),
                    (false, false) => (bounds.0.min(start), bounds.1.max(end)),
                };
                if both.1 - both.0 <= most {
                    (segments.end, *bounds) = (k + 1, both);
                    continue;
                }
            }
            parts.push((k..k + 1, (start, end)));
        }
        parts
    }

    /// Does it suit an array of `len` items?
    ///
    /// # Errors
    ///
    /// [`Error::SegmentOutOfRange`] with the first segment that does not lie within the array.
    pub fn check(&self, len: u64) -> Result<(), Error> {
        if self.end <= len {
            return Ok(());
        }
        let ranges = (0..self.segments()).map(|k| (k, self.range(k)));
        let beyond = ranges.filter(|(_, range)| range.end > len);
        match beyond.map(|(index, Range { start, end })| (index, start, end)).next() {
            Some((index, start, end)) => Err(Error::SegmentOutOfRange { index, start, end, len }),
            None => Ok(()),
        }
    }
}

/// Numbers as positions in an array.
fn positions<I: Offset>(what: &'static str, numbers: &[I]) -> Result<Vec<u64>, Error> {
    let position = |(index, number): (u64, &I)| {
        let value = number.number();
        u64::try_from(value).map_err(|_| Error::NegativeOffset { what, index, value })
    };
    (0..).zip(numbers).map(position).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(plan: &SegmentPlan) -> Vec<Range<u64>> {
        (0..plan.segments()).map(|k| plan.range(k)).collect()
    }

    #[test]
    fn every_description_of_the_same_segments_is_one_plan() {
        let plan = SegmentPlan::from_offsets(&[0i8, 3, 4, 9]).unwrap();
        assert_eq!(ranges(&plan), [0..3, 3..4, 4..9]);
        assert_eq!((plan.items(), plan.end(), plan.offsets()), (9, 9, Some(&[0, 3, 4, 9][..])));
        assert_eq!(SegmentPlan::from_offsets(&[0u64, 3, 4, 9]).unwrap(), plan);
        assert_eq!(SegmentPlan::from_lengths(&[3i64, 1, 5]).unwrap(), plan);
        let heads = [true, false, false, true, true, false, false, false, false];
        assert_eq!(SegmentPlan::from_heads(&heads), plan);
        assert_eq!(SegmentPlan::from_keys(&[7, 7, 7, 1, 7, 7, 7, 7, 7]), plan);
        let by_range = SegmentPlan::from_ranges(&[0, 3, 4], &[3, 4, 9]).unwrap();
        assert_eq!((ranges(&by_range), by_range.items(), by_range.end()), (ranges(&plan), 9, 9));
    }

    #[test]
    fn parts_hold_so_many_items() {
        let parts = |plan: &SegmentPlan, most| -> Vec<_> {
            let part = |(segments, bounds)| (ranges(&plan.part(segments, bounds)), bounds);
            plan.parts(most).into_iter().map(part).collect()
        };
        let plan = SegmentPlan::from_offsets(&[1, 3, 3, 4, 9, 9, 10]).unwrap();
        assert_eq!(
            parts(&plan, 4),
            [
                (vec![0..2, 2..2, 2..3], (1, 4)),
                (ranges(&SegmentPlan::from_lengths(&[5]).unwrap()), (4, 9)),
                (vec![0..0, 0..1], (9, 10)),
            ]
        );
        assert_eq!(parts(&plan, 100), [(vec![0..2, 2..2, 2..3, 3..8, 8..8, 8..9], (1, 10))]);
        let plan = SegmentPlan::from_ranges(&[50, 8, 0, 2], &[50, 9, 4, 3]).unwrap();
        let expected = [(vec![1..1, 0..1], (8, 9)), (vec![0..4, 2..3], (0, 4))];
        assert_eq!(parts(&plan, 5), expected);
    }

    #[test]
    fn nothing_is_no_segment() {
        for plan in [
            SegmentPlan::from_offsets(&[0]).unwrap(),
            SegmentPlan::from_offsets(&[77]).unwrap(),
            SegmentPlan::from_lengths::<u8>(&[]).unwrap(),
            SegmentPlan::from_ranges::<u8>(&[], &[]).unwrap(),
            SegmentPlan::from_heads(&[]),
            SegmentPlan::from_keys::<u8>(&[]),
        ] {
            assert_eq!((plan.segments(), plan.items(), plan.end()), (0, 0, 0));
            assert_eq!(plan.check(0), Ok(()));
        }
    }

    #[test]
    fn gaps_overlaps_and_empties() {
        let plan = SegmentPlan::from_ranges(&[8, 0, 2, 50], &[9, 4, 3, 50]).unwrap();
        assert_eq!(ranges(&plan), [8..9, 0..4, 2..3, 50..50]);
        assert_eq!((plan.items(), plan.end(), plan.offsets()), (6, 50, None));
        let plan = SegmentPlan::from_offsets(&[5, 5, 7, 7]).unwrap();
        assert_eq!((ranges(&plan), plan.items(), plan.end()), (vec![5..5, 5..7, 7..7], 2, 7));
    }

    #[test]
    fn the_first_fault_is_named() {
        assert_eq!(SegmentPlan::from_offsets::<u8>(&[]), Err(Error::NoOffsets));
        let decreases = Error::OffsetDecreases { index: 3, value: 4, before: 5 };
        assert_eq!(SegmentPlan::from_offsets(&[0, 2, 5, 4, 1]), Err(decreases));
        let negative = |what, index, value| Err(Error::NegativeOffset { what, index, value });
        assert_eq!(SegmentPlan::from_offsets(&[0, 3, -2, -5]), negative("offset", 2, -2));
        assert_eq!(SegmentPlan::from_lengths(&[1, i64::MIN]), negative("length", 1, i64::MIN as i128));
        assert_eq!(SegmentPlan::from_ranges(&[0, -1], &[0, 1]), negative("begin", 1, -1));
        assert_eq!(SegmentPlan::from_ranges(&[0], &[-1]), negative("end", 0, -1));
        let counts = Error::SegmentCounts { begins: 2, ends: 1 };
        assert_eq!(SegmentPlan::from_ranges(&[0, 1], &[2]), Err(counts));
        let overflow = Error::TooManyItems { index: 1 };
        assert_eq!(SegmentPlan::from_lengths(&[u64::MAX, 1]), Err(overflow.clone()));
        assert_eq!(SegmentPlan::from_ranges(&[0, 0], &[u64::MAX, 1]), Err(overflow));
    }

    /// Number OF01 of the cases that other libraries got wrong.
    #[test]
    fn of01_an_end_before_its_begin_is_no_huge_length() {
        let backwards = Error::EndsBeforeBegin { index: 1, begin: 5, end: 2 };
        assert_eq!(SegmentPlan::from_ranges(&[0, 5, 3], &[3, 2, 6]), Err(backwards));
        assert_eq!(ranges(&SegmentPlan::from_ranges(&[0, 5, 3], &[3, 5, 6]).unwrap()), [0..3, 5..5, 3..6]);
    }

    #[test]
    fn segments_beyond_an_array_are_named() {
        let plan = SegmentPlan::from_offsets(&[0, 3, 8, 9]).unwrap();
        assert_eq!(plan.check(9), Ok(()));
        let beyond = |index, start, end, len| Err(Error::SegmentOutOfRange { index, start, end, len });
        assert_eq!(plan.check(8), beyond(2, 8, 9, 8));
        assert_eq!(plan.check(5), beyond(1, 3, 8, 5));
        let plan = SegmentPlan::from_ranges(&[1, 7, 0], &[2, 7, 9]).unwrap();
        assert_eq!(plan.check(6), beyond(1, 7, 7, 6));
    }
}
