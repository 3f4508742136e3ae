//! Operators on floats, with either rule for NaNs.

use warpfold::monoid::fused::Parts2;
use warpfold::monoid::{
    All, Any, ArgMax, ArgMin, Averaged, Count, Dot, Float, GreatestMagnitude, IgnoreNan, L1, L2, Linf,
    LogSumExp, Magnitudes, Max, MaxSegmentSum, MaybeNan, Mean, Min, MinMax, Moments, NanMax, NanMin,
    NanMinMax, NanProduct, NanSum, NeutralIdentity, Product, Products, SegmentAccumulator, Segmented,
    Squares, SquaresUnderRoot, StdDev, Sum, SumSquares, Summed, Truth, Value, Variance,
};

use super::found::{Finding, Simple};
use super::{Findings, Op, Run};
use crate::args::NanRule;
use crate::error::Error;
use crate::input::Stored;

/// Evaluates an operator; `None` if there is none for these types.
pub fn evaluate<T>(run: &Run<'_, T>, op: Op) -> Option<Result<Findings, Error>>
where
    T: Stored<Raw = T> + Float + MaybeNan + Simple + Truth,
    T: Averaged<Mean: Finding>
        + Moments<Output: Finding>
        + Segmented<Acc: SegmentAccumulator<T, Output: Finding>>,
    T: Summed<Squares, Output: Finding> + Summed<Magnitudes, Output: Finding>,
    T: Summed<SquaresUnderRoot, Output: Finding> + Summed<GreatestMagnitude, Output: Finding>,
    [T; 2]: Summed<Products, Output: Finding>,
{
    Some(match (op, run.options.nan) {
        (Op::Sum, NanRule::Propagate) => run.of(Sum::<T>::new()),
        (Op::Sum, NanRule::Ignore) => run.of(NanSum::<T>::new()),
        (Op::Product, NanRule::Propagate) => run.of(Product::<T>::new()),
        (Op::Product, NanRule::Ignore) => run.of(NanProduct::<T>::new()),
        (Op::Min, NanRule::Propagate) => run.of(Min::<T>::new()),
        (Op::Min, NanRule::Ignore) => run.of(NanMin::<T>::new()),
        (Op::Max, NanRule::Propagate) => run.of(Max::<T>::new()),
        (Op::Max, NanRule::Ignore) => run.of(NanMax::<T>::new()),
        (Op::MinMax, NanRule::Propagate) => run.of(MinMax::<T>::new()),
        (Op::MinMax, NanRule::Ignore) => run.of(NanMinMax::<T>::new()),
        (Op::ArgMin, _) => run.either(ArgMin::<T>::new()),
        (Op::ArgMax, _) => run.either(ArgMax::<T>::new()),
        (Op::All, _) => run.either(All::<T>::new()),
        (Op::Any, _) => run.either(Any::<T>::new()),
        (Op::Count, _) => run.either(Count::<T>::new()),
        (Op::SumSq, _) => run.either(SumSquares::<T>::new()),
        (Op::L1, _) => run.either(L1::<T>::new()),
        (Op::L2, _) => run.either(L2::<T>::new()),
        (Op::Linf, _) => run.either(Linf::<T>::new()),
        (Op::Dot, _) => run.either_pairs(Dot::<T>::new()),
        (Op::Mean, _) => run.either(Mean::<T>::new()),
        (Op::Var, _) => run.either(Variance::<T>::new(run.options.ddof)),
        (Op::Std, _) => run.either(StdDev::<T>::new(run.options.ddof).as_variance()),
        (Op::LogSumExp, _) => run.either(LogSumExp::<T>::new()),
        (Op::Mss, _) => run.either(MaxSegmentSum::<T>::new()),
        (Op::And | Op::Or | Op::Xor, _) => return None,
    })
}

impl<T: Stored + MaybeNan> Run<'_, T> {
    /// Reduces the array, or what in it is not a NaN.
    pub fn either<M>(&self, op: M) -> Result<Findings, Error>
    where
        M: NeutralIdentity<Item = T, Output: Finding>,
        Value<M>: Finding,
    {
        match self.options.nan {
            NanRule::Propagate => self.of(op),
            NanRule::Ignore => self.of(IgnoreNan(op)),
        }
    }

    /// Reduces the pairs of the two arrays, or those without a NaN.
    pub fn either_pairs<M>(&self, op: M) -> Result<Findings, Error>
    where
        T: Stored<Raw = T>,
        M: NeutralIdentity<Item = Parts2<T, T>, Output: Finding>,
        Value<M>: Finding,
    {
        match self.options.nan {
            NanRule::Propagate => self.of_pairs(op),
            NanRule::Ignore => self.of_pairs(IgnoreNan(op)),
        }
    }
}
