//! What the kernels for segments are given: how the segments lie, and their parameters.

use std::ptr;

use warpfold_gpu_kernels::segments::gather::{self, MAX_AXES};

use super::{Axis, Layout};
use crate::{
    Error,
    erased::{ColumnHead, Erased, GatherHead, NOTHING, Params, RowHead},
    plan::segments::{Arrangement, SegmentStrategy, SegmentsPlan},
};

/// Segments of one length, sorted by what their arrangement allows.
///
/// ```text
/// rows      reduced [(n, 1)]        kept [(m, stride)]
/// columns   reduced [(n, stride)]   kept [(outer, outer_stride), (inner, 1)]
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) m: u64,
    pub(crate) n: u64,
    pub(crate) arrangement: Arrangement,
    /// From one item of a segment to the next, and from one group of columns to the next, for columns.
    strides: [i64; 2],
    layout: Layout,
    /// The least and the greatest distance of an item from the first, if there are items.
    pub(crate) extent: Option<(i64, i64)>,
}

impl Problem {
    pub(crate) fn of(layout: &Layout) -> Result<Problem, Error> {
        let most = layout.kept.len().max(layout.reduced.len());
        if most > MAX_AXES {
            return Err(Error::TooManyAxes { axes: most, limit: MAX_AXES });
        }
        let (m, n) = (layout.segments(), layout.segment_len());
        let mut strides = [0; 2];
        let arrangement = match (&layout.kept[..], &layout.reduced[..]) {
            _ if n == 0 => Arrangement::Axes,
            ([], [Axis { stride: 1, .. }]) => Arrangement::Rows { stride: n as i64 },
            ([Axis { stride, .. }], [Axis { stride: 1, .. }] | []) => Arrangement::Rows { stride: *stride },
            ([], []) => Arrangement::Rows { stride: 1 },
            ([Axis { len, stride: 1 }], [Axis { stride, .. }]) => {
                strides = [*stride, 0];
                Arrangement::Columns { inner: *len, dense: *stride == *len as i64 }
            }
            ([outer, Axis { len, stride: 1 }], [Axis { stride, .. }]) => {
                strides = [*stride, outer.stride];
                let dense = *stride == *len as i64 && outer.stride == stride.saturating_mul(n as i64);
                Arrangement::Columns { inner: *len, dense }
            }
            _ => Arrangement::Axes,
        };
        let mut extent = (m > 0 && n > 0).then_some((0, 0));
        if let Some((least, greatest)) = &mut extent {
            for axis in layout.kept.iter().chain(&layout.reduced) {
                let span = axis.stride * (axis.len as i64 - 1);
                *least += span.min(0);
                *greatest += span.max(0);
            }
        }
        Ok(Problem { m, n, arrangement, strides, layout: layout.clone(), extent })
    }

    /// The kernel's parameters; addresses of `partials` and `tickets` matter only if the plan has any.
    pub(crate) fn params(&self, op: Erased<'_>, plan: &SegmentsPlan, places: &Places) -> Params {
        let shape = plan.shape;
        let input = ptr::with_exposed_provenance(places.input);
        let output = ptr::with_exposed_provenance_mut(places.output);
        let partials = ptr::with_exposed_provenance_mut(places.partials);
        let tickets = ptr::with_exposed_provenance_mut::<u32>(places.tickets);
        // At most 256.
        let chunks = shape.chunks as u32;
        let Problem { m, n, .. } = *self;
        match (plan.strategy, self.arrangement) {
            (
                SegmentStrategy::Columns
                | SegmentStrategy::Flat
                | SegmentStrategy::Narrow
                | SegmentStrategy::Wide,
                Arrangement::Columns { inner, .. },
            ) => op.params(ColumnHead {
                input,
                stride: self.strides[0],
                outer_stride: self.strides[1],
                outer: m / inner.max(1),
                inner,
                n,
                output,
                partials,
                tickets,
                chunk: shape.chunk,
                chunks,
                groups: shape.groups,
                width: plan.width,
                parts: plan.parts,
                splits: plan.splits,
                padding: 0,
                tiles: inner.div_ceil(plan.width.max(1) as u64),
                op: NOTHING,
            }),
            (SegmentStrategy::Gather, _) => op.params(GatherHead {
                input,
                m,
                n,
                output,
                partials,
                tickets,
                chunk: shape.chunk,
                chunks,
                groups: shape.groups,
                kept: axes(&self.layout.kept),
                reduced: axes(&self.layout.reduced),
                op: NOTHING,
            }),
            (_, arrangement) => op.params(RowHead {
                input,
                stride: if let Arrangement::Rows { stride } = arrangement { stride } else { n as i64 },
                m,
                n,
                output,
                partials,
                tickets,
                chunk: shape.chunk,
                chunks,
                groups: shape.groups,
                rows: plan.rows_a_tile,
                chunks_a_block: plan.chunks_a_block,
                op: NOTHING,
            }),
        }
    }
}

/// Where a launch's memory is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) input: usize,
    pub(crate) output: usize,
    pub(crate) partials: usize,
    pub(crate) tickets: usize,
}

fn axes(list: &[Axis]) -> gather::Axes {
    let mut axes = gather::Axes { count: list.len() as u32, ..gather::Axes::default() };
    for (to, from) in axes.axes.iter_mut().zip(list) {
        *to = gather::Axis { len: from.len, stride: from.stride };
    }
    axes
}
