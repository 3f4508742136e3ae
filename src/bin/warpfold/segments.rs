//! What `--axis` and `--offsets` say.

use std::path::Path;

use warpfold::segments::SegmentPlan;

use crate::args::Reduce;
use crate::error::Error;
use crate::input::{self, Array, Dtype, Reading, shape_text};
use crate::ops::Over;

/// What is to be reduced, and the shape of the results if there may be several.
pub fn find(args: &Reduce, array: &Array) -> Result<(Over, Option<Vec<u64>>), Error> {
    if let Some(path) = &args.offsets {
        let plan = open_offsets(path, array.data.len() as u64)?;
        let shape = vec![plan.segments()];
        return Ok((Over::Plan(plan), Some(shape)));
    }
    if args.axis.is_empty() {
        return Ok((Over::All, None));
    }
    let dimensions = array.shape.len();
    let mut axes = Vec::with_capacity(args.axis.len());
    for &named in &args.axis {
        let axis = axis(named, &array.shape)?;
        if axes.contains(&axis) {
            return Err(Error::Usage(format!("--axis {named}: axis {axis} is named twice")));
        }
        axes.push(axis);
    }
    let kept = (0..dimensions).filter(|axis| !axes.contains(axis)).map(|axis| array.shape[axis]).collect();
    Ok((Over::Axes(axes), Some(kept)))
}

/// The axis of an array of that shape that `--axis` names, backwards from -1.
pub fn axis(named: i64, shape: &[u64]) -> Result<usize, Error> {
    let dimensions = shape.len();
    let axis = if named < 0 { named.checked_add(dimensions as i64) } else { Some(named) };
    let axis = axis.and_then(|axis| usize::try_from(axis).ok()).filter(|&axis| axis < dimensions);
    axis.ok_or_else(|| {
        let shape = shape_text(shape);
        Error::Usage(format!("--axis {named}: the array has {dimensions} axes, its shape is {shape}"))
    })
}

/// Reads offsets, which must suit an array of `n` elements.
fn open_offsets(path: &Path, n: u64) -> Result<SegmentPlan, Error> {
    let file = input::open(path, Reading { column: None, dtype: None })?;
    let data = &file.data;
    let not_offsets = |found: String| Error::NoOffsets { path: path.to_path_buf(), found };
    if file.shape.len() != 1 {
        return Err(not_offsets(format!("an array of shape {}", shape_text(&file.shape))));
    }
    let plan = match data.dtype() {
        Dtype::Int8 => SegmentPlan::from_offsets(data.raw::<i8>()),
        Dtype::Int16 => SegmentPlan::from_offsets(data.raw::<i16>()),
        Dtype::Int32 => SegmentPlan::from_offsets(data.raw::<i32>()),
        Dtype::Int64 => SegmentPlan::from_offsets(data.raw::<i64>()),
        Dtype::Uint8 => SegmentPlan::from_offsets(data.raw::<u8>()),
        Dtype::Uint16 => SegmentPlan::from_offsets(data.raw::<u16>()),
        Dtype::Uint32 => SegmentPlan::from_offsets(data.raw::<u32>()),
        Dtype::Uint64 => SegmentPlan::from_offsets(data.raw::<u64>()),
        dtype => return Err(not_offsets(format!("elements of type {}", dtype.name()))),
    };
    let plan = plan.and_then(|plan| plan.check(n).map(|()| plan));
    plan.map_err(|source| Error::Offsets { path: path.to_path_buf(), source })
}

/// Which segments are empty.
#[derive(Debug)]
pub enum Empty {
    All,
    None,
    /// Those of a plan that are.
    Some(SegmentPlan),
}

impl Empty {
    pub fn of(over: Over, array: &Array) -> Empty {
        match over {
            Over::Axes(axes) if axes.iter().any(|&axis| array.shape[axis] == 0) => Empty::All,
            Over::Plan(plan) => Empty::Some(plan),
            Over::All | Over::Axes(_) => Empty::None,
        }
    }

    /// Is segment `k`?
    pub fn is(&self, k: usize) -> bool {
        match self {
            Empty::All => true,
            Empty::None => false,
            Empty::Some(plan) => plan.range(k as u64).is_empty(),
        }
    }
}
