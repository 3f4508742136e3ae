//! Launches as those see them that do not know the operator's type: what plans, finds memory and launches is compiled once,
//! not for each operator.

use std::{
    mem::{MaybeUninit, offset_of},
    ops::Range,
};

use warpfold_gpu_kernels::{
    device::ReduceParams,
    export::Descriptor,
    segments::{columns::ColumnParams, gather::GatherParams, irregular::IrregularParams, rows::RowParams},
};
use warpfold_monoid::{Monoid, Sum};

use crate::plan::{OperatorLayout, PARAMETER_BYTES};

/// The operator of [`Head`]s: it has no bytes.
type Nothing = Sum<u8>;

/// What launches need to know of an operator's types.
#[derive(Debug)]
pub(crate) struct Types {
    pub(crate) layout: OperatorLayout,
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub(crate) item_align: usize,
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub(crate) output_bytes: usize,
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub(crate) output_align: usize,
    pub(crate) descriptor: Descriptor,
    /// Bytes of the parameters of kernels for arrays, and the most of those for segments.
    pub(crate) array_bytes: usize,
    pub(crate) segment_bytes: usize,
    /// Where the operator lies in each kind of parameters.
    places: [usize; 5],
}

impl Types {
    pub(crate) const fn of<Op: Monoid>() -> &'static Types {
        const {
            let sizes = [
                size_of::<RowParams<Op>>(),
                size_of::<ColumnParams<Op>>(),
                size_of::<GatherParams<Op>>(),
                size_of::<IrregularParams<Op>>(),
            ];
            let (mut segment_bytes, mut kind) = (0, 0);
            while kind < sizes.len() {
                segment_bytes = if sizes[kind] > segment_bytes { sizes[kind] } else { segment_bytes };
                kind += 1;
            }
            // Buffers for values of the types are aligned to 16 bytes.
            assert!(align_of::<Op>() <= 16 && align_of::<Op::Acc>() <= 16 && align_of::<Op::Output>() <= 16);
            &Types {
                layout: OperatorLayout::of::<Op>(),
                item_align: align_of::<Op::Item>(),
                output_bytes: size_of::<Op::Output>(),
                output_align: align_of::<Op::Output>(),
                descriptor: Descriptor::of::<Op>(),
                array_bytes: size_of::<ReduceParams<Op>>(),
                segment_bytes,
                places: [
                    offset_of!(ReduceParams<Op>, op),
                    offset_of!(RowParams<Op>, op),
                    offset_of!(ColumnParams<Op>, op),
                    offset_of!(GatherParams<Op>, op),
                    offset_of!(IrregularParams<Op>, op),
                ],
            }
        }
    }
}

/// An operator whose type is forgotten.
#[derive(Clone, Copy)]
pub(crate) struct Erased<'a> {
    pub(crate) types: &'static Types,
    op: &'a [MaybeUninit<u8>],
}

impl<'a> Erased<'a> {
    pub(crate) fn of<Op: Monoid>(op: &'a Op) -> Self {
        Erased { types: Types::of::<Op>(), op: bytes_of(op) }
    }

    /// A kernel's parameters, whose fields but the operator are given.
    pub(crate) fn params<H: Head>(&self, head: H) -> Params {
        let at = self.types.places[H::KIND];
        let mut params = Params([const { MaybeUninit::uninit() }; PARAMETER_BYTES / UNIT]);
        let start = params.0.as_mut_ptr().cast::<u8>();
        assert!(size_of::<H>() <= PARAMETER_BYTES && at + self.op.len() <= PARAMETER_BYTES);
        // SAFETY: within the units, by the line above, and aligned as they are. `repr(C)` puts the same fields at the same
        // places whatever the operator that follows them.
        unsafe {
            start.cast::<H>().write(head);
            let op = self.op.as_ptr().cast::<u8>();
            op.copy_to_nonoverlapping(start.add(at), self.op.len());
        }
        params
    }
}

/// Items in host memory, of whatever type.
pub(crate) struct Lent<'a> {
    pub(crate) n: u64,
    /// Do they lie side by side?
    pub(crate) as_one: bool,
    /// Where some of them lie, until the next are asked for.
    pub(crate) run: &'a mut dyn FnMut(Range<u64>) -> *const u8,
}

/// Parameters without an operator.
pub(crate) trait Head {
    /// Its place in [`Types::places`].
    const KIND: usize;
}

macro_rules! heads {
    ($($kind:literal $name:ident: $params:ident, $last:ident;)*) => {$(
        pub(crate) type $name = $params<Nothing>;
        impl Head for $name {
            const KIND: usize = $kind;
        }
        const _: () = assert!(offset_of!($name, $last) < offset_of!($name, op));
    )*};
}
heads! {
    0 ArrayHead: ReduceParams, part;
    1 RowHead: RowParams, chunks_a_block;
    2 ColumnHead: ColumnParams, tiles;
    3 GatherHead: GatherParams, reduced;
    4 IrregularHead: IrregularParams, follows;
}

/// The operator of a head.
pub(crate) const NOTHING: Nothing = Sum::new();

const UNIT: usize = 16;

/// Aligned for every operator.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Unit([MaybeUninit<u8>; UNIT]);

/// A kernel's parameters.
pub(crate) struct Params([MaybeUninit<Unit>; PARAMETER_BYTES / UNIT]);

impl Params {
    /// Where they lie.
    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.0.as_ptr().cast()
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

/// The bytes of places for values.
#[cfg(feature = "cuda")]
pub(crate) fn bytes_of_all<T>(places: &mut [T]) -> &mut [MaybeUninit<u8>] {
    // SAFETY: their own bytes, to which only values of their type are written.
    unsafe { std::slice::from_raw_parts_mut(places.as_mut_ptr().cast(), size_of_val(places)) }
}

#[cfg(test)]
mod tests {
    use warpfold_gpu_kernels::device::Part;
    use warpfold_monoid::{Max, Variance, WithInitial};

    use super::*;

    #[test]
    fn what_is_filled_in_is_what_the_kernel_reads() {
        fn check<Op: Monoid>(op: Op) {
            let params = Erased::of(&op).params(ArrayHead {
                input: std::ptr::without_provenance(16),
                n: 2,
                output: std::ptr::without_provenance_mut(32),
                partials: std::ptr::without_provenance_mut(48),
                ticket: std::ptr::without_provenance_mut(64),
                chunk: 6,
                chunks: 7,
                groups: 8,
                part: Part { base: 9, table: std::ptr::null(), first: 10, end: 11 },
                op: NOTHING,
            });
            // SAFETY: parameters of that operator.
            let read = unsafe { params.as_ptr().cast::<ReduceParams<Op>>().read() };
            assert_eq!((read.input.addr(), read.n, read.output.addr()), (16, 2, 32));
            assert_eq!((read.partials.addr(), read.ticket.addr()), (48, 64));
            assert_eq!((read.chunk, read.chunks, read.groups), (6, 7, 8));
            assert_eq!((read.part.base, read.part.first, read.part.end), (9, 10, 11));
            // SAFETY: plain data, without padding.
            let bytes = |op: &Op| unsafe {
                std::slice::from_raw_parts(std::ptr::from_ref(op).cast::<u8>(), size_of::<Op>()).to_vec()
            };
            assert_eq!(bytes(&read.op), bytes(&op));
        }
        check(Sum::<f32>::new());
        check(WithInitial::new(Max::<u8>::new(), 7));
        check(Variance::<f64>::new(1.5));
        check((Sum::<f32>::new(), Max::<f32>::new()));
    }
}
