//! The operators of the command, and how one is evaluated over an array of any type.
//!
//! [`table`] says which there are and what each takes and gives. The other modules say, class by class of types, which
//! operator of the library stands behind a name. Each operator and type meets the engine in one function,
//! [`Run::of`] or [`Run::of_pairs`], that the compiler makes once for it: it is large, so nothing that is known only at
//! run time may multiply it. Whether there are segments, and which, is known at run time only.

mod bools;
mod complex;
mod floats;
mod found;
mod integers;
mod table;

use std::borrow::Cow;
use std::time::Instant;

use half::{bf16, f16};
use num_complex::Complex;
use warpfold::monoid::Integer;
use warpfold::monoid::fused::Parts2;
use warpfold::segments::{Layout, SegmentPlan};
use warpfold::{Engine, Monoid, Value};

pub use self::found::{Finding, Findings, Found, Scalar, Segments};
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

/// What is reduced to one value.
#[derive(Debug)]
pub enum Over {
    /// The whole array.
    All,
    /// The elements along these axes.
    Axes(Vec<usize>),
    /// Each segment of elements in logical order.
    Plan(SegmentPlan),
}

/// What operators found, by their names.
pub struct Evaluated {
    pub backend: String,
    /// Milliseconds that it took.
    pub elapsed_ms: f64,
    pub found: Vec<(&'static str, Findings)>,
}

/// Evaluates operators over an array on an engine, which is the one that was chosen so.
pub fn evaluate_all(
    (mut engine, choice): (Engine, BackendChoice),
    list: &[Op],
    options: Options,
    over: &Over,
    array: &Array,
    with: Option<&Array>,
) -> Result<Evaluated, Error> {
    let mut start = Instant::now();
    let evaluate = |engine: &Engine| -> Result<Vec<_>, Error> {
        let found = |&op: &Op| Ok((op.name(), evaluate(engine, op, options, over, array, with)?));
        list.iter().map(found).collect()
    };
    let mut found = evaluate(&engine);
    if choice == BackendChoice::Auto && found.as_ref().is_err_and(Error::is_no_kernel) {
        // The choice is ours, and the CPU has all operators: for all of them, so that one backend is what is reported.
        engine = Engine::cpu();
        start = Instant::now();
        found = evaluate(&engine);
    }
    let found = found?;
    let elapsed_ms = start.elapsed().as_nanos() as f64 / 1e6;
    Ok(Evaluated { backend: engine.backend().to_string(), elapsed_ms, found })
}

/// Evaluates one operator over an array; over it and another of the same type and length if the operator takes two.
pub fn evaluate(
    engine: &Engine,
    op: Op,
    options: Options,
    over: &Over,
    array: &Array,
    with: Option<&Array>,
) -> Result<Findings, Error> {
    let dtype = array.data.dtype();
    if !op.takes(dtype) {
        return Err(refusal(op, dtype));
    }
    let with = with.filter(|_| op.takes_two());
    let logical = match over {
        Over::All => op.sees_positions(),
        Over::Axes(_) => false,
        Over::Plan(_) => true,
    };
    let (data, with) = match with {
        Some(with) if logical => (array.in_logical_order(), Some(with.in_logical_order())),
        Some(with) => {
            let (left, right) = array.paired_with(with);
            (left, Some(right))
        }
        None if logical => (array.in_logical_order(), None),
        None => (&array.data, None),
    };
    let segments = match over {
        Over::All => Segmentation::None,
        Over::Axes(axes) => Segmentation::Layout(array.layout(data, axes)?),
        Over::Plan(plan) => Segmentation::Plan(plan),
    };
    let call = Call { engine, options, segments: &segments, data, with };
    dispatch(op, &call).unwrap_or_else(|| Err(refusal(op, dtype)))
}

/// Which elements are reduced to one value.
enum Segmentation<'a> {
    /// All.
    None,
    Layout(Layout),
    Plan(&'a SegmentPlan),
}

/// An operator and a type that do not go together.
pub fn refusal(op: Op, dtype: Dtype) -> Error {
    let (name, dtype, taken) = (op.name(), dtype.name(), op.operator().taken());
    Error::Usage(format!("--op {name} does not take elements of type {dtype}; it takes {taken}"))
}

/// Finds the operator for the elements' type; `None` if there is none.
fn dispatch(op: Op, call: &Call<'_>) -> Option<Result<Findings, Error>> {
    // Bits have no sign: the code for unsigned integers serves both.
    macro_rules! integer {
        ($signed:ty) => {{
            let bits = integers::evaluate_bits(&call.run_as::<<$signed as Integer>::Unsigned>(), op);
            let signed = |found| match found {
                Found::One(Scalar::Uint(bits)) => Found::One(Scalar::Int(bits as $signed as i64)),
                _ => found,
            };
            match bits {
                Some(found) if <$signed>::MIN != 0 && op.gives_bits() => {
                    Some(found.map(|found| found.then(signed)))
                }
                Some(found) => Some(found),
                None => integers::evaluate(&call.run::<$signed>(), op),
            }
        }};
    }
    match call.data.dtype() {
        Dtype::Bool => bools::evaluate(&call.run::<bool>(), op),
        Dtype::Int8 => integer!(i8),
        Dtype::Int16 => integer!(i16),
        Dtype::Int32 => integer!(i32),
        Dtype::Int64 => integer!(i64),
        Dtype::Uint8 => integer!(u8),
        Dtype::Uint16 => integer!(u16),
        Dtype::Uint32 => integer!(u32),
        Dtype::Uint64 => integer!(u64),
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
    segments: &'a Segmentation<'a>,
    data: &'a Data,
    with: Option<&'a Data>,
}

impl<'a> Call<'a> {
    fn run<T: Stored>(&self) -> Run<'a, T> {
        self.with(self.data.raw::<T>(), self.with.map_or(&[], Data::raw::<T>))
    }

    /// The same of integers taken for another type of as many bits; of one array.
    fn run_as<T: Stored>(&self) -> Run<'a, T> {
        self.with(self.data.bits_as::<T>(), &[])
    }

    fn with<T: Stored>(&self, raw: &'a [T::Raw], with: &'a [T::Raw]) -> Run<'a, T> {
        let Call { engine, options, segments, .. } = *self;
        Run { engine, options, segments, raw, with }
    }
}

/// One evaluation, of elements of a known type.
struct Run<'a, T: Stored> {
    engine: &'a Engine,
    options: Options,
    segments: &'a Segmentation<'a>,
    raw: &'a [T::Raw],
    /// The second array, of an operator that takes two.
    with: &'a [T::Raw],
}

impl<T: Stored> Run<'_, T> {
    /// Reduces the array, or its segments.
    fn of<M>(&self, op: M) -> Result<Findings, Error>
    where
        M: Monoid<Item = T, Output: Finding>,
        Value<M>: Finding,
    {
        if let Segmentation::None = self.segments {
            let elements = Elements::<T>::new(self.engine, self.raw);
            return Ok(Findings::One(self.engine.reducer(op)?.reduce_items(&elements)?.found()));
        }
        self.of_segments(op, &self.items())
    }

    /// The elements.
    fn items(&self) -> Cow<'_, [T]> {
        match T::as_stored(self.raw) {
            Some(items) => Cow::Borrowed(items),
            None => self.raw.iter().map(|&raw| T::read(raw)).collect(),
        }
    }

    /// Reduces the pairs of the two arrays, read side by side: of types that lie in files as they are.
    fn of_pairs<M>(&self, op: M) -> Result<Findings, Error>
    where
        T: Stored<Raw = T>,
        M: Monoid<Item = Parts2<T, T>, Output: Finding>,
        Value<M>: Finding,
    {
        if let Segmentation::None = self.segments {
            return Ok(Findings::One(self.engine.reduce_columns(op, (self.raw, self.with))?.found()));
        }
        let pairs: Vec<_> =
            self.raw.iter().zip(self.with).map(|(&left, &right)| Parts2::new(left, right)).collect();
        self.of_segments(op, &pairs)
    }

    /// Reduces the segments of some items: the array's elements, in its order, or what is made from each.
    fn of_segments<M>(&self, op: M, items: &[M::Item]) -> Result<Findings, Error>
    where
        M: Monoid<Output: Finding>,
        Value<M>: Finding,
    {
        let reducer = self.engine.segments(op)?;
        let results = match self.segments {
            // SAFETY: the layout is that of the array, with as many elements.
            Segmentation::Layout(layout) => unsafe { reducer.reduce_layout(items.as_ptr(), layout)? },
            Segmentation::Plan(plan) => reducer.reduce_segments(items, plan)?,
            Segmentation::None => Vec::new(),
        };
        Ok(Findings::Many(Segments::new::<M::Output, M::Empty>(results)))
    }
}
