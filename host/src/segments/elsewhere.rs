//! Segments reduced where the operator's type is not known: by the simulator, or on a GPU. Compiled once for all operators.

use std::mem::MaybeUninit;

use warpfold_simt::sim::Buffer;

use super::{Layout, Place, SegmentPlan, Segments, Tables};
#[cfg(feature = "cuda")]
use super::{Problem, Walk};
#[cfg(feature = "cuda")]
use crate::cuda::{DeviceSegments, SegmentLauncher};
use crate::{Error, erased::Erased, plan::segments::SegmentSettings, sim::SegmentSimulator};

/// A place that is not the CPU.
pub(super) enum Elsewhere<'a> {
    Sim(&'a SegmentSimulator),
    #[cfg(feature = "cuda")]
    Cuda(&'a SegmentLauncher),
}

impl Place {
    /// `None` on the CPU.
    pub(super) fn elsewhere(&self) -> Option<Elsewhere<'_>> {
        match self {
            Place::Cpu => None,
            Place::Sim(simulator) => Some(Elsewhere::Sim(simulator)),
            #[cfg(feature = "cuda")]
            Place::Cuda(launcher) => Some(Elsewhere::Cuda(launcher)),
        }
    }
}

/// Segments in host memory of items of whatever type.
#[derive(Clone, Copy)]
pub(super) enum Lying<'a> {
    Regular { first: *const u8, layout: &'a Layout },
    Irregular { first: *const u8, len: u64, plan: &'a SegmentPlan },
}

impl<'a, T> Segments<'a, T> {
    /// The same, whose type is forgotten.
    pub(super) fn lying(&self) -> Lying<'a> {
        match *self {
            Segments::Regular { first, layout } => Lying::Regular { first: first.cast(), layout },
            Segments::Irregular { items, plan } => {
                Lying::Irregular { first: items.as_ptr().cast(), len: items.len() as u64, plan }
            }
        }
    }
}

/// What of some segments is left to the host.
pub(super) enum Left {
    Nothing,
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "all is done"))]
    All,
    /// Those that have more items than fit into the device's memory, and their numbers among all.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "all is done"))]
    Some {
        plan: SegmentPlan,
        numbers: Vec<u64>,
    },
}

impl Elsewhere<'_> {
    /// Reduces segments to as many results, but for those that are left; items in device memory have no more bytes than `limit`, or
    /// than there are.
    ///
    /// # Safety
    ///
    /// The place is the operator's, `identity` one of its accumulators; every item that the segments lead to is one of its
    /// items, may be read and is not written meanwhile; `results` are places for an output a segment.
    pub(super) unsafe fn run(
        &self,
        op: Erased<'_>,
        identity: &[MaybeUninit<u8>],
        segments: Lying<'_>,
        settings: SegmentSettings,
        #[cfg_attr(not(feature = "cuda"), allow(unused_variables, reason = "of devices"))] limit: Option<u64>,
        results: &mut [MaybeUninit<u8>],
    ) -> Result<Left, Error> {
        let item_bytes = op.types.layout.item_bytes;
        match self {
            Elsewhere::Sim(simulator) => {
                let start = results.as_mut_ptr().expose_provenance();
                let output = Buffer { name: "output".into(), start, bytes: results.len(), writable: true };
                match segments {
                    // SAFETY: the caller's promise.
                    Lying::Regular { first, layout } => unsafe {
                        simulator.reduce(
                            op,
                            identity,
                            first.expose_provenance(),
                            layout,
                            settings,
                            output,
                        )?;
                    },
                    // SAFETY: the caller's promise.
                    Lying::Irregular { first, len, plan } => unsafe {
                        let tables = Tables::new(plan.segments(), &|k| plan.range(k), item_bytes);
                        let input = Buffer {
                            name: "input".into(),
                            start: first.expose_provenance(),
                            bytes: len as usize * item_bytes,
                            writable: false,
                        };
                        simulator.reduce_irregular(op, identity, (input, len), &tables, output)?;
                    },
                }
                Ok(Left::Nothing)
            }
            #[cfg(feature = "cuda")]
            Elsewhere::Cuda(launcher) => match segments {
                // SAFETY: the caller's promise.
                Lying::Regular { first, layout } => unsafe {
                    let Problem { m, n, .. } = Problem::of(layout)?;
                    let bytes = m.saturating_mul(n).saturating_mul(item_bytes as u64);
                    if limit.is_some_and(|limit| bytes > limit) {
                        return Ok(Left::All);
                    }
                    match copied(launcher, op, first, layout, settings, results) {
                        Err(Error::DeviceMemory { .. }) => Ok(Left::All),
                        done => done.map(|()| Left::Nothing),
                    }
                },
                // SAFETY: the caller's promise.
                Lying::Irregular { first, len, plan } => unsafe {
                    in_parts(launcher, op, (first, len), plan, limit, results)
                },
            },
        }
    }
}

/// Reduces segments of any lengths on a device, part by part if all of them do not fit there; those that do not fit alone are left.
///
/// # Safety
///
/// As for [`Elsewhere::run`].
#[cfg(feature = "cuda")]
unsafe fn in_parts(
    launcher: &SegmentLauncher,
    op: Erased<'_>,
    (first, len): (*const u8, u64),
    plan: &SegmentPlan,
    limit: Option<u64>,
    results: &mut [MaybeUninit<u8>],
) -> Result<Left, Error> {
    let size = op.types.layout.item_bytes;
    let whole = |first: *const u8, len: u64, plan: &SegmentPlan, results: &mut [MaybeUninit<u8>]| {
        let prepared = launcher.prepare(plan, size)?;
        // SAFETY: the caller's promise; the segments live until the wait.
        unsafe {
            launcher.on_device(first, len as usize * size, results, &mut |input, output, stream| {
                launcher.enqueue_irregular(op, (input, len), &prepared, output, stream)
            })
        }
    };
    let bytes = len.saturating_mul(size as u64);
    let limit = match limit {
        Some(limit) if bytes > limit => limit,
        _ => match whole(first, len, plan, results) {
            // Half of it for items: tables and results are there too.
            Err(Error::DeviceMemory { free, .. }) => free / 2,
            done => return done.map(|()| Left::Nothing),
        },
    };
    let most = limit / size.max(1) as u64;
    let output = op.types.output_bytes;
    let (mut numbers, mut begins, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for (segments, (start, end)) in plan.parts(most) {
        if end - start > most {
            for k in segments {
                let range = plan.range(k);
                numbers.push(k);
                begins.push(range.start);
                ends.push(range.end);
            }
            continue;
        }
        let results = &mut results[segments.start as usize * output..segments.end as usize * output];
        let part = plan.part(segments, (start, end));
        whole(first.wrapping_add(start as usize * size), end - start, &part, results)?;
    }
    if numbers.is_empty() {
        return Ok(Left::Nothing);
    }
    Ok(Left::Some { plan: SegmentPlan::from_ranges(&begins, &ends)?, numbers })
}

/// Copies a host array to the device and reduces it there.
///
/// # Safety
///
/// As for [`Elsewhere::run`].
#[cfg(feature = "cuda")]
unsafe fn copied(
    launcher: &SegmentLauncher,
    op: Erased<'_>,
    first: *const u8,
    layout: &Layout,
    settings: SegmentSettings,
    results: &mut [MaybeUninit<u8>],
) -> Result<(), Error> {
    let bytes = op.types.layout.item_bytes;
    let Problem { m, n, extent, .. } = Problem::of(layout)?;
    let (least, greatest) = extent.unwrap_or((0, -1));
    let count = (greatest - least + 1) as usize;
    if count as u64 != m * n {
        // What lies in gaps is not ours to read: the items alone, one segment after the other.
        let needed = (m * n).saturating_mul(bytes as u64);
        let mut items: Vec<MaybeUninit<u8>> = Vec::new();
        items.try_reserve_exact(needed as usize).map_err(|_| Error::HostMemory { needed })?;
        let mut segment = Walk::from(&layout.kept, 0);
        for _ in 0..m {
            let mut item = Walk::from(&layout.reduced, 0);
            for _ in 0..n {
                let at = segment.offset() + item.offset();
                let from = first.wrapping_offset(at as isize * bytes as isize).cast();
                // SAFETY: the caller's promise.
                items.extend_from_slice(unsafe { std::slice::from_raw_parts(from, bytes) });
                item.step(1);
            }
            segment.step(1);
        }
        // SAFETY: rows of the items' own.
        return unsafe {
            copied(launcher, op, items.as_ptr().cast(), &Layout::rows(m, n), settings, results)
        };
    }
    // SAFETY: the caller's promise; there are no gaps.
    unsafe {
        launcher.on_device(
            first.wrapping_offset(least as isize * bytes as isize),
            count * bytes,
            results,
            &mut |input, output, stream| {
                let at = input.wrapping_add_signed(-least * bytes as i64);
                launcher.enqueue(op, at, layout, settings, output, stream)
            },
        )
    }
}

/// What a GPU does with arrays that lie on it.
#[cfg(feature = "cuda")]
impl SegmentLauncher {
    /// Cuts segments of any lengths, for many reductions.
    pub(super) fn prepare(&self, plan: &SegmentPlan, item_bytes: usize) -> Result<DeviceSegments, Error> {
        let tables = Tables::new(plan.segments(), &|k| plan.range(k), item_bytes);
        self.upload(&tables, plan, item_bytes)
    }

    /// Reduces segments, waits, and copies the results to the host.
    ///
    /// # Safety
    ///
    /// The kernels are the operator's; the layout leads from `at` to its items, which stay until the wait; `results` are
    /// places for an output a segment.
    pub(super) unsafe fn reduce_at(
        &self,
        op: Erased<'_>,
        at: u64,
        layout: &Layout,
        settings: SegmentSettings,
        results: &mut [MaybeUninit<u8>],
    ) -> Result<(), Error> {
        // SAFETY: nothing is copied; the caller's promise.
        unsafe {
            self.on_device(std::ptr::null(), 0, results, &mut |_, output, stream| {
                self.enqueue(op, at, layout, settings, output, stream)
            })
        }
    }

    /// The same of segments of any lengths.
    ///
    /// # Safety
    ///
    /// As for [`reduce_at`](SegmentLauncher::reduce_at), of `input`.
    pub(super) unsafe fn reduce_irregular_at(
        &self,
        op: Erased<'_>,
        input: (u64, u64),
        plan: &SegmentPlan,
        results: &mut [MaybeUninit<u8>],
    ) -> Result<(), Error> {
        let prepared = self.prepare(plan, op.types.layout.item_bytes)?;
        // SAFETY: nothing is copied; the caller's promise; the segments live until the wait.
        unsafe {
            self.on_device(std::ptr::null(), 0, results, &mut |_, output, stream| {
                self.enqueue_irregular(op, input, &prepared, output, stream)
            })
        }
    }
}
