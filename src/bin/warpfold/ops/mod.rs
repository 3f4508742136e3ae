//! The operators of the command, and how one is evaluated over an array of any type.
//!
//! [`table`] says which there are and what each takes and gives. The other modules say, class by class of types, which
//! operator of the library stands behind a name. Each operator and type meets the engine in one function,
//! [`Run::of`] or [`Run::of_pairs`], that the compiler makes once for it: it is large, so nothing that is known only at
//! run time may multiply it.

mod bools;
mod complex;
mod floats;
mod found;
mod integers;
mod table;

use half::{bf16, f16};
use num_complex::Complex;
use warpfold::monoid::fused::Parts2;
use warpfold::{Engine, Monoid, Value};

use self::found::Finding;
pub use self::found::{Found, Scalar};
pub use self::table::{Op, Operator, TABLE, class_names};
use crate::args::{BackendChoice, NanRule};
use crate::error::Error;
use crate::input::{Array, Data, Dtype, Stored};
use crate::progress::Elements;

/// Reads `--op`: names separated by commas, each once; the option itself may be repeated.
pub fn parse_list(args: &[String]) -> Result<Vec<Op>, Error> {
    let mut list = Vec::new();
    for name in args.iter().flat_map(|arg| arg.split(',')).map(str::trim) {
        let Some(op) = Op::parse(name) else {
            let known = Op::known();
            return Err(Error::Usage(format!("unknown operator {name:?} in --op; known are {known}")));
        };
        if list.contains(&op) {
            let known = Op::known();
            return Err(Error::Usage(format!(
                "operator {name:?} is named twice in --op; name each once (known are {known})"
            )));
        }
        list.push(op);
    }
    Ok(list)
}

/// Makes the engine that `--backend` asks for.
pub fn engine(choice: BackendChoice) -> Result<Engine, Error> {
    match choice {
        BackendChoice::Auto => Ok(Engine::new()?),
        BackendChoice::Cpu => Ok(Engine::cpu()),
        BackendChoice::Cuda => Engine::cuda(0).map_err(Error::NoCuda),
        BackendChoice::Sim => Ok(Engine::sim()),
    }
}

/// What operators are told beside the elements.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What a NaN does.
    pub nan: NanRule,
    /// What a variance divides by is the number of elements less this.
    pub ddof: f64,
}

/// Evaluates one operator over an array; over it and another of the same type and length if the operator takes two.
pub fn evaluate(
    engine: &Engine,
    op: Op,
    options: Options,
    array: &Array,
    with: Option<&Array>,
) -> Result<Found, Error> {
    let dtype = array.data.dtype();
    if !op.takes(dtype) {
        return Err(refusal(op, dtype));
    }
    let (data, with) = match with {
        Some(with) if op.takes_two() => {
            let (left, right) = array.paired_with(with);
            (left, Some(right))
        }
        _ if op.sees_positions() => (array.in_logical_order(), None),
        _ => (&array.data, None),
    };
    dispatch(engine, op, options, data, with).unwrap_or_else(|| Err(refusal(op, dtype)))
}

/// An operator and a type that do not go together.
pub fn refusal(op: Op, dtype: Dtype) -> Error {
    let (name, dtype, taken) = (op.name(), dtype.name(), op.operator().taken());
    Error::Usage(format!("--op {name} does not take elements of type {dtype}; it takes {taken}"))
}

/// Finds the operator for the elements' type; `None` if there is none.
fn dispatch(
    engine: &Engine,
    op: Op,
    options: Options,
    data: &Data,
    with: Option<&Data>,
) -> Option<Result<Found, Error>> {
    let call = Call { engine, options, data, with };
    match data.dtype() {
        Dtype::Bool => bools::evaluate(&call.run::<bool>(), op),
        Dtype::Int8 => integers::evaluate(&call.run::<i8>(), op),
        Dtype::Int16 => integers::evaluate(&call.run::<i16>(), op),
        Dtype::Int32 => integers::evaluate(&call.run::<i32>(), op),
        Dtype::Int64 => integers::evaluate(&call.run::<i64>(), op),
        Dtype::Uint8 => integers::evaluate(&call.run::<u8>(), op),
        Dtype::Uint16 => integers::evaluate(&call.run::<u16>(), op),
        Dtype::Uint32 => integers::evaluate(&call.run::<u32>(), op),
        Dtype::Uint64 => integers::evaluate(&call.run::<u64>(), op),
        Dtype::Float16 => floats::evaluate(&call.run::<f16>(), op),
        Dtype::Bfloat16 => floats::evaluate(&call.run::<bf16>(), op),
        Dtype::Float32 => floats::evaluate(&call.run::<f32>(), op),
        Dtype::Float64 => floats::evaluate(&call.run::<f64>(), op),
        Dtype::Complex64 => complex::evaluate(&call.run::<Complex<f32>>(), op),
        Dtype::Complex128 => complex::evaluate(&call.run::<Complex<f64>>(), op),
    }
}

/// One evaluation, of elements of any type.
struct Call<'a> {
    engine: &'a Engine,
    options: Options,
    data: &'a Data,
    with: Option<&'a Data>,
}

impl<'a> Call<'a> {
    fn run<T: Stored>(&self) -> Run<'a, T> {
        Run {
            engine: self.engine,
            options: self.options,
            raw: self.data.raw::<T>(),
            with: self.with.map_or(&[], Data::raw::<T>),
        }
    }
}

/// One evaluation, of elements of a known type.
struct Run<'a, T: Stored> {
    engine: &'a Engine,
    options: Options,
    raw: &'a [T::Raw],
    /// The second array, of an operator that takes two.
    with: &'a [T::Raw],
}

impl<T: Stored> Run<'_, T> {
    /// Reduces the array.
    fn of<M>(&self, op: M) -> Result<Found, Error>
    where
        M: Monoid<Item = T>,
        Value<M>: Finding,
    {
        self.value(op).map(Finding::found)
    }

    /// Reduces the array, to a value that there is more to do with.
    fn value<M: Monoid<Item = T>>(&self, op: M) -> Result<Value<M>, Error> {
        let elements = Elements::<T>::new(self.engine, self.raw);
        Ok(self.engine.reducer(op)?.reduce_items(&elements)?)
    }

    /// Reduces the pairs of the two arrays, read side by side: of types that lie in files as they are.
    fn of_pairs<M>(&self, op: M) -> Result<Found, Error>
    where
        T: Stored<Raw = T>,
        M: Monoid<Item = Parts2<T, T>>,
        Value<M>: Finding,
    {
        Ok(self.engine.reduce_columns(op, (self.raw, self.with))?.found())
    }
}
