//! Operators on integers. There are no NaNs.

use warpfold::monoid::{
    All, And, Any, ArgMax, ArgMin, Bits, Count, Dot, GreatestMagnitude, Integer, L1, L2, Linf, Magnitudes,
    Max, Min, MinMax, Or, Product, Products, Squares, SquaresUnderRoot, Sum, SumSquares, Summed, Truth, Xor,
};

use super::found::{Finding, Simple};
use super::{Found, Op, Run};
use crate::error::Error;
use crate::input::Stored;

/// Evaluates an operator; `None` if there is none for these types.
pub fn evaluate<T>(run: &Run<'_, T>, op: Op) -> Option<Result<Found, Error>>
where
    T: Stored + Integer<Wide: Simple> + Simple + Bits + Truth,
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
        Op::And => run.of(And::<T>::new()),
        Op::Or => run.of(Or::<T>::new()),
        Op::Xor => run.of(Xor::<T>::new()),
        Op::All => run.of(All::<T>::new()),
        Op::Any => run.of(Any::<T>::new()),
        Op::Count => run.of(Count::<T>::new()),
        Op::SumSq => run.of(SumSquares::<T>::new()),
        Op::L1 => run.of(L1::<T>::new()),
        Op::L2 => run.of(L2::<T>::new()),
        Op::Linf => run.of(Linf::<T>::new()),
        Op::Dot => run.of_pairs(Dot::<T>::new()),
        // TODO Op::Mean => run.of(Mean::<T>::new()),
        // TODO Op::Var => run.of(Variance::<T>::new(run.options.ddof)),
        // TODO Op::Std => run.of(StdDev::<T>::new(run.options.ddof)),
        // TODO Op::Mss => run.of(MaxSegmentSum::<T, T::Wide>::new()),
        Op::LogSumExp | Op::Mean | Op::Var | Op::Std | Op::Mss => return None,
    })
}
