//! The reduction of S. Baxter's moderngpu 2.0 (2016), `kernel_reduce.hxx` and `cta_reduce.hxx`.
//!
//! A block of `NT` threads reduces a tile of `NT * VT` items: each thread folds `VT` of them, `NT` apart, in registers, and
//! [`cta_reduce`] folds what the threads have. There: one warp's worth of threads *rakes* shared memory, that is each folds every
//! 32nd slot, and then shuffles. The array's tiles leave a value each, which are reduced in the same way, recursively: 128
//! threads of 8 values first, then 512 of 4.
//!
//! Its shuffles, apart from each other as [`Shuffles`]:
//!
//! | form | step | order |
//! | --- | --- | --- |
//! | [`Ascending`] | 1, 2, 4, 8, 16 lanes on, checked against the count | kept |
//! | [`Descending`] | 16, 8, 4, 2, 1 lanes on, the same | lost: lane 0 combines with 16 first |
//! | [`Fused`] | as ascending, where the shuffle's own predicate says whether to combine, and no count is checked | kept |
//! | [`Redux`] | one instruction (`redux.sync`), of words that are added | none: exact |
//!
//! The predicate of the fused form, and the check against a full count, spare lanes work whose result nobody wants: lane 0 combines
//! with lanes in range alone.
//!
//! Raking by itself loses the order of operands (thread 0 folds slots 0, 32, 64, ...), and so does the fold of items `NT` apart:
//! whole arrays are for operators that commute. Groups of a warp or less have no need to rake: [`groups`] keeps the order where its
//! shuffles do.
//!
//! # Errata
//!
//! moderngpu's test is a sum, which does not show that its kernel takes items out of order while its documentation asks for
//! associativity alone.

use warpfold_monoid::Monoid;
use warpfold_simt::{
    global,
    shared::Shared,
    thread::{block_dim_x, block_idx_x, sync_threads, thread_idx_x},
    warp::{
        FULL, WarpReduceValue, WarpReductionOp, shuffle_down_width, sync_warp, warp_reduce, warp_shuffle_down,
    },
};

use super::pass::PassParams;

/// How a group of lanes folds what each has.
pub trait Shuffles<Op: Monoid> {
    /// Does [`reduce`](Self::reduce) skip lanes without a value?
    const PARTIAL: bool;

    /// The fold of the first `count` lanes of a group of `width`, in its first lane. `count` is from 1 to `width`, and is `width`
    /// unless [`PARTIAL`](Self::PARTIAL).
    ///
    /// # Safety
    ///
    /// All lanes of the warp call, with the same `width`, a power of two up to 32.
    unsafe fn reduce(op: &Op, value: Op::Acc, lane: u32, width: u32, count: u32) -> Op::Acc;
}

/// Offsets 1, 2, 4, ...: neighbours first.
#[derive(Clone, Copy, Debug)]
pub struct Ascending;

impl<Op: Monoid> Shuffles<Op> for Ascending {
    const PARTIAL: bool = true;

    #[inline(always)]
    unsafe fn reduce(op: &Op, mut value: Op::Acc, lane: u32, width: u32, count: u32) -> Op::Acc {
        let mut offset = 1;
        while offset < width {
            // SAFETY: the caller's promise.
            let right = unsafe { shuffle_down_width(FULL, value, offset, width) };
            // Other lanes combine too, what nobody wants: of lane 2k all that count are in range.
            if lane + offset < count {
                value = op.combine(value, right);
            }
            offset *= 2;
        }
        value
    }
}

/// Offsets 16, 8, 4, ...: halves on halves.
#[derive(Clone, Copy, Debug)]
pub struct Descending;

impl<Op: Monoid> Shuffles<Op> for Descending {
    const PARTIAL: bool = true;

    #[inline(always)]
    unsafe fn reduce(op: &Op, mut value: Op::Acc, lane: u32, width: u32, count: u32) -> Op::Acc {
        let mut offset = width / 2;
        while offset > 0 {
            // SAFETY: the caller's promise.
            let right = unsafe { shuffle_down_width(FULL, value, offset, width) };
            if lane < offset && lane + offset < count {
                value = op.combine(value, right);
            }
            offset /= 2;
        }
        value
    }
}

/// Offsets 1, 2, 4, ..., a combination behind the predicate that the shuffle itself returns.
#[derive(Clone, Copy, Debug)]
pub struct Fused;

impl<Op: Monoid> Shuffles<Op> for Fused {
    const PARTIAL: bool = false;

    #[inline(always)]
    unsafe fn reduce(op: &Op, mut value: Op::Acc, _lane: u32, width: u32, _count: u32) -> Op::Acc {
        let mut offset = 1;
        while offset < width {
            // SAFETY: the caller's promise.
            let (right, in_range) = unsafe { warp_shuffle_down(FULL, value, offset, width) };
            if in_range {
                value = op.combine(value, right);
            }
            offset *= 2;
        }
        value
    }
}

/// `redux.sync`: for operators that add words.
#[derive(Clone, Copy, Debug)]
pub struct Redux;

impl<Op: Monoid<Acc: WarpReduceValue>> Shuffles<Op> for Redux {
    const PARTIAL: bool = false;

    #[inline(always)]
    unsafe fn reduce(_: &Op, value: Op::Acc, _lane: u32, width: u32, _count: u32) -> Op::Acc {
        // The lanes of the group, of which a warp may have several.
        let mask = if width == 32 { FULL } else { ((1 << width) - 1) << (lane_in_warp() / width * width) };
        // SAFETY: all lanes of the group call with its mask.
        unsafe { warp_reduce(mask, value, WarpReductionOp::Add) }
    }
}

#[inline(always)]
fn lane_in_warp() -> u32 {
    thread_idx_x() % 32
}

/// Folds what the first `count` threads of a block of `nt` have; the result is thread 0's.
///
/// # Safety
///
/// The whole block calls, of `nt` threads: a multiple of 32. The operator commutes, unless `nt` is 32. `slots` has one a thread,
/// not in use. `count` is 1 or more.
#[inline(always)]
pub unsafe fn cta_reduce<Op: Monoid, How: Shuffles<Op>>(
    op: &Op,
    value: Op::Acc,
    thread: u32,
    nt: u32,
    count: u32,
    slots: Shared<Op::Acc>,
) -> Op::Acc {
    let group = 32;
    let mut value = value;
    // SAFETY: slots below `nt`, read behind a barrier; the first warp is whole.
    unsafe {
        slots.write(thread as usize, value);
        sync_threads();
        if thread < group {
            let mut at = thread + group;
            while at < nt {
                if at < count {
                    value = op.combine(value, slots.read(at as usize));
                }
                at += group;
            }
            // A count that is not the group's is rare: only there is it looked at.
            if count >= group {
                value = How::reduce(op, value, thread, group, group);
            } else if How::PARTIAL {
                value = How::reduce(op, value, thread, group, count);
            } else {
                value = Ascending::reduce(op, value, thread, group, count);
            }
        }
    }
    value
}

/// Items of a tile.
pub const fn tile(nt: u32, vt: u32) -> u64 {
    nt as u64 * vt as u64
}

/// Reduces a tile of `NT * VT` items.
///
/// # Safety
///
/// The whole block calls, of `NT` threads, a multiple of 32; a block for each tile of the array. The operator commutes;
/// the parameters' memory is as their documentation has it; `slots` has one a thread, not in use.
#[inline(always)]
pub unsafe fn reduce<Op: Monoid, How: Shuffles<Op>, const NT: u32, const VT: u32>(
    params: &PassParams<Op>,
    slots: Shared<Op::Acc>,
) {
    let (thread, op) = (thread_idx_x(), &params.op);
    let first = u64::from(block_idx_x()) * tile(NT, VT) + u64::from(thread);
    let here = params.n - u64::from(block_idx_x()) * tile(NT, VT);
    // SAFETY: places below the array's end; the whole block calls.
    unsafe {
        let mut value = op.identity();
        if here >= tile(NT, VT) {
            // All loads before the first combination needs one.
            let mut values = [value; 16];
            let mut v = 0;
            while v < VT {
                values[v as usize] = params.value_inside(first + u64::from(v * NT));
                v += 1;
            }
            value = values[0];
            let mut v = 1;
            while v < VT {
                value = op.combine(value, values[v as usize]);
                v += 1;
            }
        } else {
            let mut v = 0;
            while v < VT {
                let at = first + u64::from(v * NT);
                if at < params.n {
                    let next = params.value_inside(at);
                    value = if v == 0 { next } else { op.combine(value, next) };
                }
                v += 1;
            }
        }
        let count = if here < u64::from(NT) { here as u32 } else { NT };
        let value = cta_reduce::<Op, How>(op, value, thread, NT, count, slots);
        if thread == 0 {
            params.put(block_idx_x(), value);
        }
    }
}

/// The parameters of [`groups`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GroupParams<Op: Monoid> {
    /// The items, `count` for each group.
    pub items: *const Op::Item,
    /// Where each group's value goes.
    pub results: *mut Op::Acc,
    /// How many groups there are.
    pub groups: u64,
    /// Items of each group, from 1 to the group's lanes.
    pub count: u32,
    /// How often each group is reduced, for who measures: the sum goes into its first item, so that one waits for the other.
    pub rounds: u32,
    /// The operator.
    pub op: Op,
}

/// Groups of `WIDTH` lanes each fold `count` items of theirs, in order. With more than one round the result of one round is the
/// first lane's value of the next.
///
/// # Safety
///
/// Whole warps call, and there are lanes enough for all groups. The parameters' memory is as their documentation has it. `How`
/// skips what is not there, or there are as many items as lanes.
#[inline(always)]
pub unsafe fn groups<Op: Monoid, How: Shuffles<Op>, const WIDTH: u32>(params: &GroupParams<Op>) {
    let (op, lane) = (&params.op, lane_in_warp() % WIDTH);
    let thread = u64::from(block_idx_x()) * u64::from(block_dim_x()) + u64::from(thread_idx_x());
    let group = thread / u64::from(WIDTH);
    // SAFETY: items and a result of groups that there are; all lanes of the warp are at each shuffle.
    unsafe {
        let mut own = op.identity();
        let there = group < params.groups;
        if there && lane < params.count {
            let at = group * u64::from(params.count) + u64::from(lane);
            own = op.lift(global::load(params.items.wrapping_add(at as usize)), u64::from(lane));
        }
        let mut value = own;
        let mut round = 0;
        loop {
            let folded = How::reduce(op, value, lane, WIDTH, params.count);
            round += 1;
            if round >= params.rounds {
                value = folded;
                break;
            }
            value = if lane == 0 { folded } else { own };
            sync_warp(FULL);
        }
        if there && lane == 0 {
            global::store(params.results.wrapping_add(group as usize), value);
        }
    }
}
