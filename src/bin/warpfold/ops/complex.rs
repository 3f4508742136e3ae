//! Operators on complex numbers. One is a NaN if either part is.

use num_complex::Complex;
use warpfold::monoid::{
    All, Any, Count, Dot, Float, GreatestMagnitude, L1, L2, Linf, Magnitudes, Map, MapFn, MaybeNan, Number,
    Plain, Product, Products, Squares, SquaresUnderRoot, Sum, SumSquares, Summed, Truth,
};

use super::found::{Finding, Simple};
use super::{Found, Op, Run};
use crate::args::NanRule;
use crate::error::Error;
use crate::input::Stored;

/// Evaluates an operator; `None` if there is none for these types.
pub fn evaluate<P>(run: &Run<'_, Complex<P>>, op: Op) -> Option<Result<Found, Error>>
where
    P: Float + Simple + MaybeNan + Truth,
    Complex<P>: Stored + Number,
    Complex<P>: Summed<Squares, Output: Finding> + Summed<Magnitudes, Output: Finding>,
    Complex<P>: Summed<SquaresUnderRoot, Output: Finding> + Summed<GreatestMagnitude, Output: Finding>,
    [Complex<P>; 2]: Summed<Products, Output: Finding>,
{
    Some(match op {
        Op::Sum => match run.options.nan {
            NanRule::Propagate => run.of(Sum::<Complex<P>>::new()),
            NanRule::Ignore => run.of(Map::new(Sum::<Complex<P>>::new(), NanAs::new(P::ZERO))),
        },
        Op::Product => match run.options.nan {
            NanRule::Propagate => run.of(Product::<Complex<P>>::new()),
            NanRule::Ignore => run.of(Map::new(Product::<Complex<P>>::new(), NanAs::new(P::ONE))),
        },
        Op::All => run.either(All::<Complex<P>>::new()),
        Op::Any => run.either(Any::<Complex<P>>::new()),
        Op::Count => run.either(Count::<Complex<P>>::new()),
        Op::SumSq => run.either(SumSquares::<Complex<P>>::new()),
        Op::L1 => run.either(L1::<Complex<P>>::new()),
        Op::L2 => run.either(L2::<Complex<P>>::new()),
        Op::Linf => run.either(Linf::<Complex<P>>::new()),
        Op::Dot => run.either_pairs(Dot::<Complex<P>>::new()),
        // TODO Op::Mean => run.either(Mean::<Complex<P>>::new()),
        // TODO Op::Var => run.either(Variance::<Complex<P>>::new(run.options.ddof)),
        // TODO Op::Std => run.either(StdDev::<Complex<P>>::new(run.options.ddof)),
        Op::Min | Op::Max | Op::MinMax | Op::ArgMin | Op::ArgMax => return None,
        Op::And | Op::Or | Op::Xor | Op::LogSumExp | Op::Mss | Op::Mean | Op::Var | Op::Std => return None,
    })
}

/// Puts a real number where a NaN is, as `NanSum` and `NanProduct` do for floats.
#[repr(C)]
#[derive(Clone, Copy, Plain)]
struct NanAs<P> {
    number: P,
}

impl<P: Float> NanAs<P> {
    fn new(number: P) -> Self {
        NanAs { number }
    }
}

impl<P: Float + MaybeNan> MapFn for NanAs<P> {
    type From = Complex<P>;
    type To = Complex<P>;
    #[inline(always)]
    fn map(&self, from: Complex<P>, _index: u64) -> Complex<P> {
        if from.is_nan_value() { Complex::new(self.number, P::ZERO) } else { from }
    }
}
