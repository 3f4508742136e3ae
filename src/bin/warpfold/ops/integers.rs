//! Operators on integers. There are no NaNs.

use warpfold::monoid::{
    All, And, Any, ArgMax, ArgMin, Averaged, Bits, Count, Dot, GreatestMagnitude, Integer, L1, L2, Linf,
    Magnitudes, Max, MaxSegmentSum, Mean, Min, MinMax, Moments, Or, Product, Products, SegmentAccumulator,
    Squares, SquaresUnderRoot, StdDev, Sum, SumSquares, Summed, Truth, Variance, Xor,
};

use super::found::{Finding, Simple};
use super::{Findings, Op, Run};
use crate::error::Error;
use crate::input::Stored;

/// Evaluates an operator of numbers; `None` if there is none for these types.
pub fn evaluate<T>(run: &Run<'_, T>, op: Op) -> Option<Result<Findings, Error>>
where
    T: Stored<Raw = T> + Integer<Wide: Simple + SegmentAccumulator<T, Output: Finding>> + Simple,
    T: Averaged<Mean: Finding> + Moments<Output: Finding>,
    T: Summed<Squares, Output: Finding> + Summed<Magnitudes, Output: Finding>,
    T: Summed<SquaresUnderRoot, Output: Finding> + Summed<GreatestMagnitude, Output: Finding>,
    [T; 2]: Summed<Products, Output: Finding>,
{
    Some(match op {
        Op::Sum => run.of(Sum::<T, T::Wide>::new()),
        Op::Product => run.of(Product::<T, T::Wide>::new()),
        Op::Min => run.of(Min::<T>::new()),
        Op::Max => run.of(Max::<T>::new()),
        Op::MinMax => run.of(MinMax::<T>::new()),
        Op::ArgMin => run.of(ArgMin::<T>::new()),
        Op::ArgMax => run.of(ArgMax::<T>::new()),
        Op::SumSq => run.of(SumSquares::<T>::new()),
        Op::L1 => run.of(L1::<T>::new()),
        Op::L2 => run.of(L2::<T>::new()),
        Op::Linf => run.of(Linf::<T>::new()),
        Op::Dot => run.of_pairs(Dot::<T>::new()),
        Op::Mean => run.of(Mean::<T>::new()),
        Op::Var => run.of(Variance::<T>::new(run.options.ddof)),
        Op::Std => run.of(StdDev::<T>::new(run.options.ddof).as_variance()),
        Op::Mss => run.of(MaxSegmentSum::<T, T::Wide>::new()),
        Op::And | Op::Or | Op::Xor | Op::All | Op::Any | Op::Count => return None,
        Op::LogSumExp => return None,
    })
}

/// Evaluates an operator of bits, for unsigned integers; `None` for others.
pub fn evaluate_bits<T>(run: &Run<'_, T>, op: Op) -> Option<Result<Findings, Error>>
where
    T: Stored<Raw = T> + Simple + Bits + Truth,
{
    Some(match op {
        Op::And => run.of(And::<T>::new()),
        Op::Or => run.of(Or::<T>::new()),
        Op::Xor => run.of(Xor::<T>::new()),
        Op::All => run.of(All::<T>::new()),
        Op::Any => run.of(Any::<T>::new()),
        Op::Count => run.of(Count::<T>::new()),
        _ => return None,
    })
}
