//! What the papers' reductions of whole arrays share: one launch of several, each of which leaves a value for each block.

use warpfold_monoid::Monoid;
use warpfold_simt::global;

/// The parameters of one launch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PassParams<Op: Monoid> {
    /// The items; null if `values` are reduced.
    pub items: *const Op::Item,
    /// What an earlier launch left, if there are no items.
    pub values: *const Op::Acc,
    /// Where each block's value goes: memory of its own, since other blocks may not have read theirs yet.
    pub results: *mut Op::Acc,
    /// How many items or values there are.
    pub n: u64,
    /// The operator.
    pub op: Op,
}

impl<Op: Monoid> PassParams<Op> {
    /// The value at a place, or of nothing behind the last.
    ///
    /// # Safety
    ///
    /// The items, or the values, are readable.
    #[inline(always)]
    pub unsafe fn value(&self, i: u64) -> Op::Acc {
        if i >= self.n {
            return self.op.identity();
        }
        // SAFETY: below `n`.
        unsafe { self.value_inside(i) }
    }

    /// The value at a place.
    ///
    /// # Safety
    ///
    /// As for [`value`](Self::value), and the place is below `n`.
    #[inline(always)]
    pub unsafe fn value_inside(&self, i: u64) -> Op::Acc {
        // SAFETY: the caller's promise.
        unsafe { value_at(&self.op, self.items, self.values, i) }
    }

    /// Writes a block's value.
    ///
    /// # Safety
    ///
    /// There is a place for it, which one thread writes.
    #[inline(always)]
    pub unsafe fn put(&self, block: u32, value: Op::Acc) {
        // SAFETY: the caller's promise.
        unsafe { global::store(self.results.wrapping_add(block as usize), value) }
    }
}

/// The item at a place, lifted; if there are none, the value there.
///
/// # Safety
///
/// The one that is read is readable.
#[inline(always)]
pub(super) unsafe fn value_at<Op: Monoid>(
    op: &Op,
    items: *const Op::Item,
    values: *const Op::Acc,
    i: u64,
) -> Op::Acc {
    // SAFETY: the caller's promise.
    unsafe {
        if items.is_null() {
            global::load(values.wrapping_add(i as usize))
        } else {
            op.lift(global::load(items.wrapping_add(i as usize)), i)
        }
    }
}
