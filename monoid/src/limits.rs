//! What an operator may be: the sizes up to which every backend works, checked when an operator is compiled.

use crate::{Monoid, Plain};

/// The largest item, in bytes.
pub const MAX_ITEM: usize = 256;

/// The largest accumulator, in bytes: threads exchange it through registers and shared memory.
pub const MAX_ACC: usize = 256;

/// The largest output, in bytes.
pub const MAX_OUTPUT: usize = 256;

/// The largest operator (its run-time parameters), in bytes: it travels in a kernel's parameters.
pub const MAX_OPERATOR: usize = 1024;

/// The largest alignment of any of them, in bytes.
pub const MAX_ALIGN: usize = 16;

/// Stops the compilation if `Op` is beyond the limits, or if one of its types turns out not to be plain data.
///
/// Exporting an operator and reducing with it call this. An operator's own crate can, to hear of it sooner:
///
/// ```
/// use warpfold_monoid::{Sum, limits};
///
/// const _: () = limits::check::<Sum<f32>>();
/// ```
pub const fn check<Op: Monoid>() {
    check_room::<Op>(MAX_ACC);
}

/// The same of an operator that the library makes of another, whose accumulators and items may be wider: those of
/// [`Runs`](crate::keyed::Runs) have a count and a flag.
pub const fn check_derived<Op: Monoid>() {
    check_room::<Op>(MAX_ACC + size_of::<u64>());
}

const fn check_room<Op: Monoid>(acc: usize) {
    let _ = (Op::LAYOUT, Op::Item::LAYOUT, Op::Acc::LAYOUT, Op::Output::LAYOUT);
    assert!(
        size_of::<Op::Item>() <= MAX_ITEM + (acc - MAX_ACC),
        "this operator's item (`Monoid::Item`) is larger than 256 bytes: reduce an array of the fields that it needs, \
         or of indices"
    );
    assert!(
        size_of::<Op::Acc>() <= acc,
        "this operator's accumulator (`Monoid::Acc`) is larger than 256 bytes, the most that threads exchange: split it \
         into several operators"
    );
    assert!(
        size_of::<Op::Output>() <= acc,
        "this operator's output (`Monoid::Output`) is larger than 256 bytes: split it into several operators"
    );
    assert!(
        size_of::<Op>() <= MAX_OPERATOR,
        "this operator is larger than 1024 bytes, the most that a kernel's parameters hold: keep its table in the items"
    );
    assert!(
        align_of::<Op>() <= MAX_ALIGN
            && align_of::<Op::Item>() <= MAX_ALIGN
            && align_of::<Op::Acc>() <= MAX_ALIGN
            && align_of::<Op::Output>() <= MAX_ALIGN,
        "this operator, its item, accumulator or output is aligned to more than 16 bytes, the most that memory and \
         kernel parameters keep"
    );
    assert!(
        Op::COMMUTATIVE || !Op::ANY_ORDER,
        "this operator says that any order of operands will do (`Monoid::ANY_ORDER`) and that they must not be reordered \
         (`Monoid::COMMUTATIVE` is false)"
    );
}
