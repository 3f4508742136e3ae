//! The operators of the command, and how one is evaluated over an array of any type.

use warpfold::{Engine, Max, Min, Monoid, NanMax, NanMin, NanProduct, NanSum, Product, Sum, Value};

use crate::args::{BackendChoice, NanRule};
use crate::error::Error;
use crate::input::Data;

/// An operator by its name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Sum,
    Product,
    Min,
    Max,
}

impl Op {
    /// Every operator, in the order in which they are listed.
    pub const ALL: [Op; 4] = [Op::Sum, Op::Product, Op::Min, Op::Max];

    /// The name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Op::Sum => "sum",
            Op::Product => "product",
            Op::Min => "min",
            Op::Max => "max",
        }
    }

    /// The names of all operators, for messages.
    pub fn known() -> String {
        Op::ALL.map(Op::name).join(", ")
    }
}

/// Reads `--op`: names separated by commas, each once; the option itself may be repeated.
pub fn parse_list(args: &[String]) -> Result<Vec<Op>, Error> {
    let mut list = Vec::new();
    for name in args.iter().flat_map(|arg| arg.split(',')).map(str::trim) {
        let Some(op) = Op::ALL.into_iter().find(|op| op.name() == name) else {
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

/// One result. Integers of every width are held in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    Int(i64),
    Uint(u64),
    F32(f32),
    F64(f64),
    /// The minimum or maximum of no elements.
    Nothing,
}

macro_rules! scalar_from {
    ($($type:ty => $variant:ident),*) => {$(
        impl From<$type> for Scalar {
            fn from(value: $type) -> Scalar { Scalar::$variant(value.into()) }
        }
    )*};
}
scalar_from!(i32 => Int, i64 => Int, u32 => Uint, u64 => Uint, f32 => F32, f64 => F64);

impl<T: Into<Scalar>> From<Option<T>> for Scalar {
    fn from(value: Option<T>) -> Scalar {
        value.map_or(Scalar::Nothing, Into::into)
    }
}

/// An element type, and which operator type stands behind each name for it.
trait Reduce: Sized {
    fn reduce(engine: &Engine, op: Op, nan: NanRule, items: &[Self]) -> Result<Scalar, Error>;
}

macro_rules! reduce_integer {
    ($($type:ty, $wide:ty;)*) => {$(
        impl Reduce for $type {
            fn reduce(engine: &Engine, op: Op, _nan: NanRule, items: &[Self]) -> Result<Scalar, Error> {
                match op {
                    Op::Sum => run(engine, Sum::<$type, $wide>::new(), items).map(Scalar::from),
                    Op::Product => run(engine, Product::<$type, $wide>::new(), items).map(Scalar::from),
                    Op::Min => run(engine, Min::<$type>::new(), items).map(Scalar::from),
                    Op::Max => run(engine, Max::<$type>::new(), items).map(Scalar::from),
                }
            }
        }
    )*};
}
reduce_integer! {
    i32, i64;
    u32, u64;
    i64, i64;
    u64, u64;
}

macro_rules! reduce_float {
    ($($type:ty),*) => {$(
        impl Reduce for $type {
            fn reduce(engine: &Engine, op: Op, nan: NanRule, items: &[Self]) -> Result<Scalar, Error> {
                match (op, nan) {
                    (Op::Sum, NanRule::Propagate) => run(engine, Sum::<$type>::new(), items).map(Scalar::from),
                    (Op::Sum, NanRule::Ignore) => run(engine, NanSum::<$type>::new(), items).map(Scalar::from),
                    (Op::Product, NanRule::Propagate) => {
                        run(engine, Product::<$type>::new(), items).map(Scalar::from)
                    }
                    (Op::Product, NanRule::Ignore) => {
                        run(engine, NanProduct::<$type>::new(), items).map(Scalar::from)
                    }
                    (Op::Min, NanRule::Propagate) => run(engine, Min::<$type>::new(), items).map(Scalar::from),
                    (Op::Min, NanRule::Ignore) => run(engine, NanMin::<$type>::new(), items).map(Scalar::from),
                    (Op::Max, NanRule::Propagate) => run(engine, Max::<$type>::new(), items).map(Scalar::from),
                    (Op::Max, NanRule::Ignore) => run(engine, NanMax::<$type>::new(), items).map(Scalar::from),
                }
            }
        }
    )*};
}
reduce_float!(f32, f64);

/// Evaluates one operator over an array.
pub fn evaluate(engine: &Engine, op: Op, nan: NanRule, data: &Data) -> Result<Scalar, Error> {
    match data {
        Data::Int32(items) => Reduce::reduce(engine, op, nan, items.as_slice()),
        Data::Uint32(items) => Reduce::reduce(engine, op, nan, items.as_slice()),
        Data::Int64(items) => Reduce::reduce(engine, op, nan, items.as_slice()),
        Data::Uint64(items) => Reduce::reduce(engine, op, nan, items.as_slice()),
        Data::Float32(items) => Reduce::reduce(engine, op, nan, items.as_slice()),
        Data::Float64(items) => Reduce::reduce(engine, op, nan, items.as_slice()),
    }
}

/// Makes the engine that `--backend` asks for.
pub fn engine(choice: BackendChoice) -> Result<Engine, Error> {
    match choice {
        BackendChoice::Auto => Ok(Engine::new()?),
        BackendChoice::Cpu => Ok(Engine::cpu()),
        BackendChoice::Cuda => Engine::cuda(0).map_err(Error::NoCuda),
    }
}

/// Runs one operator over host memory.
fn run<M: Monoid>(engine: &Engine, op: M, items: &[M::Item]) -> Result<Value<M>, Error> {
    Ok(engine.reducer(op)?.reduce(items)?)
}
