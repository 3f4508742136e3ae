//! Operators on complex numbers. One is a NaN if either part is.

use num_complex::Complex;
use warpfold::monoid::{
    All, Any, Averaged, Count, Dot, Float, GreatestMagnitude, L1, L2, Linf, Magnitudes, MaybeNan, Mean,
    Moments, Number, Product, Products, Squares, SquaresUnderRoot, StdDev, Sum, SumSquares, Summed, Truth,
    Variance,
};

use super::found::{Finding, Simple};
use super::{Findings, Op, Run};
use crate::error::Error;
use crate::input::Stored;

/// Evaluates an operator; `None` if there is none for these types.
pub fn evaluate<P>(run: &Run<'_, Complex<P>>, op: Op) -> Option<Result<Findings, Error>>
where
    P: Float + Simple + MaybeNan + Truth,
    Complex<P>: Stored<Raw = Complex<P>> + Number + Averaged<Mean: Finding> + Moments<Output: Finding>,
    Complex<P>: Summed<Squares, Output: Finding> + Summed<Magnitudes, Output: Finding>,
    Complex<P>: Summed<SquaresUnderRoot, Output: Finding> + Summed<GreatestMagnitude, Output: Finding>,
    [Complex<P>; 2]: Summed<Products, Output: Finding>,
{
    Some(match op {
        Op::Sum => run.either(Sum::<Complex<P>>::new()),
        Op::Product => run.either(Product::<Complex<P>>::new()),
        Op::All => run.either(All::<Complex<P>>::new()),
        Op::Any => run.either(Any::<Complex<P>>::new()),
        Op::Count => run.either(Count::<Complex<P>>::new()),
        Op::SumSq => run.either(SumSquares::<Complex<P>>::new()),
        Op::L1 => run.either(L1::<Complex<P>>::new()),
        Op::L2 => run.either(L2::<Complex<P>>::new()),
        Op::Linf => run.either(Linf::<Complex<P>>::new()),
        Op::Dot => run.either_pairs(Dot::<Complex<P>>::new()),
        Op::Mean => run.either(Mean::<Complex<P>>::new()),
        Op::Var => run.either(Variance::<Complex<P>>::new(run.options.ddof)),
        Op::Std => run.either(StdDev::<Complex<P>>::new(run.options.ddof).as_variance()),
        Op::Min | Op::Max | Op::MinMax | Op::ArgMin | Op::ArgMax => return None,
        Op::And | Op::Or | Op::Xor | Op::LogSumExp | Op::Mss => return None,
    })
}
