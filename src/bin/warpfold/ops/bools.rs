//! Operators on `bool`: true counts as 1.

use warpfold::monoid::{All, And, Any, ArgMax, ArgMin, Count, Max, Mean, Min, MinMax, Or, Xor};

use super::{Findings, Found, Op, Run, Scalar};
use crate::error::Error;

/// Evaluates an operator; `None` if there is none for this type.
pub fn evaluate(run: &Run<'_, bool>, op: Op) -> Option<Result<Findings, Error>> {
    Some(match op {
        Op::Sum | Op::Count => run.of(Count::<bool>::new()),
        Op::Product => run.of(All::<bool>::new()).map(|all| all.then(as_number)),
        Op::Mean => run.of(Mean::<bool>::new()),
        Op::Min => run.of(Min::<bool>::new()),
        Op::Max => run.of(Max::<bool>::new()),
        Op::MinMax => run.of(MinMax::<bool>::new()),
        Op::ArgMin => run.of(ArgMin::<bool>::new()),
        Op::ArgMax => run.of(ArgMax::<bool>::new()),
        Op::And => run.of(And::<bool>::new()),
        Op::Or => run.of(Or::<bool>::new()),
        Op::Xor => run.of(Xor::<bool>::new()),
        Op::All => run.of(All::<bool>::new()),
        Op::Any => run.of(Any::<bool>::new()),
        Op::SumSq | Op::L1 | Op::L2 | Op::Linf | Op::Dot => return None,
        Op::Var | Op::Std | Op::LogSumExp | Op::Mss => return None,
    })
}

/// A truth value as a number.
fn as_number(found: Found) -> Found {
    match found {
        Found::One(Scalar::Bool(value)) => Found::One(Scalar::Uint(value.into())),
        _ => found,
    }
}
