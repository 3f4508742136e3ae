//! Launches of whole arrays as those see them that do not know the operator's type. What plans, finds memory and launches is
//! compiled once, not for each operator.

use std::{
    marker::PhantomData,
    mem::{MaybeUninit, offset_of},
};

use warpfold_gpu_kernels::device::ReduceParams;
use warpfold_monoid::{Monoid, Sum};

use crate::plan::OperatorLayout;

/// Sizes and alignments that a launch depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Types {
    pub(crate) layout: OperatorLayout,
    #[cfg(feature = "cuda")]
    pub(crate) item_align: usize,
    #[cfg(feature = "cuda")]
    pub(crate) output_bytes: usize,
    #[cfg(feature = "cuda")]
    pub(crate) output_align: usize,
}

impl Types {
    pub(crate) const fn of<Op: Monoid>() -> Types {
        Types {
            layout: OperatorLayout::of::<Op>(),
            #[cfg(feature = "cuda")]
            item_align: align_of::<Op::Item>(),
            #[cfg(feature = "cuda")]
            output_bytes: size_of::<Op::Output>(),
            #[cfg(feature = "cuda")]
            output_align: align_of::<Op::Output>(),
        }
    }
}

/// The parameters of a kernel without the operator, which comes last: they lie at the same places in those of every
/// operator.
pub(crate) type Head = ReduceParams<Sum<u8>>;

/// The parameters of an operator's kernels, all but the operator yet to be filled in.
pub(crate) struct Params<Op: Monoid>(MaybeUninit<ReduceParams<Op>>);

impl<Op: Monoid> Params<Op> {
    pub(crate) fn new(op: Op) -> Self {
        const {
            assert!(offset_of!(ReduceParams<Op>, groups) == offset_of!(Head, groups));
            assert!(offset_of!(ReduceParams<Op>, op) >= offset_of!(Head, op));
        };
        let mut params = MaybeUninit::<ReduceParams<Op>>::zeroed();
        // SAFETY: a field of it.
        unsafe { (&raw mut (*params.as_mut_ptr()).op).write(op) };
        Params(params)
    }

    /// The same for those who do not know the operator.
    pub(crate) fn erased(&mut self) -> Erased<'_> {
        Erased { types: Types::of::<Op>(), head: self.0.as_mut_ptr().cast(), params: PhantomData }
    }
}

/// An operator's parameters, and what else a launch depends on.
pub(crate) struct Erased<'a> {
    pub(crate) types: Types,
    head: *mut Head,
    params: PhantomData<&'a mut [u8]>,
}

impl Erased<'_> {
    /// Fills in everything but the operator; the address of the whole.
    pub(crate) fn fill(&mut self, head: Head) -> *const u8 {
        // SAFETY: the fields of the whole, each at its place.
        unsafe {
            let place = self.head;
            (&raw mut (*place).input).write(head.input);
            (&raw mut (*place).n).write(head.n);
            (&raw mut (*place).output).write(head.output);
            (&raw mut (*place).partials).write(head.partials);
            (&raw mut (*place).ticket).write(head.ticket);
            (&raw mut (*place).chunk).write(head.chunk);
            (&raw mut (*place).chunks).write(head.chunks);
            (&raw mut (*place).groups).write(head.groups);
        }
        self.head.cast_const().cast()
    }
}

/// The bytes of a value.
pub(crate) fn bytes_of<T>(value: &T) -> &[MaybeUninit<u8>] {
    // SAFETY: its own bytes, which may be uninitialised.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// The bytes of a place for a value.
pub(crate) fn bytes_of_mut<T>(place: &mut MaybeUninit<T>) -> &mut [MaybeUninit<u8>] {
    // SAFETY: its own bytes, which may be uninitialised.
    unsafe { std::slice::from_raw_parts_mut(place.as_mut_ptr().cast(), size_of::<T>()) }
}

#[cfg(test)]
mod tests {
    use warpfold_monoid::{MaxSegmentSum, Variance};

    use super::*;

    #[test]
    fn what_is_filled_in_is_what_the_kernel_reads() {
        fn check<Op: Monoid>(op: Op) {
            let mut params = Params::new(op);
            let mut erased = params.erased();
            let address = erased.fill(Head {
                input: std::ptr::without_provenance(16),
                n: 2,
                output: std::ptr::without_provenance_mut(32),
                partials: std::ptr::without_provenance_mut(48),
                ticket: std::ptr::without_provenance_mut(64),
                chunk: 6,
                chunks: 7,
                groups: 8,
                op: Sum::new(),
            });
            // SAFETY: parameters that have just been filled in.
            let read = unsafe { address.cast::<ReduceParams<Op>>().read() };
            assert_eq!((read.input.addr(), read.n, read.output.addr()), (16, 2, 32));
            assert_eq!((read.partials.addr(), read.ticket.addr()), (48, 64));
            assert_eq!((read.chunk, read.chunks, read.groups), (6, 7, 8));
        }
        check(Sum::<f32>::new());
        check(Variance::<f64>::new(1.0));
        check((MaxSegmentSum::<f32>::new(), Variance::<f32>::new(0.0)));
    }
}
