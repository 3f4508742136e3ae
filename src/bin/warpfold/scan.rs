//! `warpfold scan`: running results of a file, written to another.

use std::time::Instant;

use warpfold::{Engine, Max, Min, Monoid, Product, Scanner, Sum, Value};

use crate::args::{BackendChoice, Scan};
use crate::error::Error;
use crate::input::{Array, Data, Dtype, Reading, Stored};
use crate::ops::{self, Finding, Op, Segments};
use crate::output::{self, Report, Results};
use crate::{input, npy_out, segments};

/// The operators that there are scans of.
const OPERATORS: [Op; 4] = [Op::Sum, Op::Product, Op::Min, Op::Max];

/// Scans one file; the text to print.
pub fn run(args: &Scan) -> Result<String, Error> {
    let op = parse(&args.op)?;
    let array = input::open(&args.file, Reading { column: None, dtype: None })?;
    let dtype = array.data.dtype();
    let n = array.data.len() as u64;
    let (shape, lines) = lines(args, &array)?;
    let mut engine = ops::engine(args.backend)?;
    let mut start = Instant::now();
    let mut results = dispatch(&engine, op, args, &array, lines);
    if args.backend == BackendChoice::Auto && results.as_ref().is_err_and(Error::is_no_kernel) {
        engine = Engine::cpu();
        start = Instant::now();
        results = dispatch(&engine, op, args, &array, lines);
    }
    let results = results?;
    let elapsed_ms = start.elapsed().as_nanos() as f64 / 1e6;
    npy_out::write(&args.out, op, dtype, &shape, &results)?;
    let report = Report {
        file: args.file.to_string_lossy().into_owned(),
        n,
        dtype: dtype.name(),
        backend: engine.backend().to_string(),
        elapsed_ms,
        shape: Some(shape),
        keys: None,
        out: Some(args.out.to_string_lossy().into_owned()),
        results: Results { found: Vec::new(), empty: segments::Empty::None },
    };
    if args.json { output::json_line(&report) } else { Ok(report.table()) }
}

/// Reads `--op`.
fn parse(name: &str) -> Result<Op, Error> {
    Op::parse(name).filter(|op| OPERATORS.contains(op)).ok_or_else(|| {
        let known = OPERATORS.map(Op::name).join(", ");
        Error::Usage(format!("--op {name:?}: there are scans of {known}"))
    })
}

/// The shape of the results; the elements of a line, and how many lie side by side at each place of it.
fn lines(args: &Scan, array: &Array) -> Result<(Vec<u64>, (u64, u64)), Error> {
    let n = array.data.len() as u64;
    match args.axis {
        None => Ok((vec![n], (n, 1))),
        Some(named) => {
            let axis = segments::axis(named, &array.shape)?;
            let inner = array.shape[axis + 1..].iter().product();
            Ok((array.shape.clone(), (array.shape[axis], inner)))
        }
    }
}

/// Scans elements of any type. There are kernels for the widest ones, which the others fit into.
fn dispatch(
    engine: &Engine,
    op: Op,
    args: &Scan,
    array: &Array,
    lines: (u64, u64),
) -> Result<Segments, Error> {
    let data = array.in_logical_order();
    let job = Job { engine, op, args, lines };
    match data.dtype() {
        Dtype::Int8 => job.signed(wide::<i8, i64>(data), i8::MIN.into(), i8::MAX.into()),
        Dtype::Int16 => job.signed(wide::<i16, i64>(data), i16::MIN.into(), i16::MAX.into()),
        Dtype::Int32 => job.signed(wide::<i32, i64>(data), i32::MIN.into(), i32::MAX.into()),
        Dtype::Int64 => job.signed(wide::<i64, i64>(data), i64::MIN, i64::MAX),
        Dtype::Uint8 => job.unsigned(wide::<u8, u64>(data), u8::MIN.into(), u8::MAX.into()),
        Dtype::Uint16 => job.unsigned(wide::<u16, u64>(data), u16::MIN.into(), u16::MAX.into()),
        Dtype::Uint32 => job.unsigned(wide::<u32, u64>(data), u32::MIN.into(), u32::MAX.into()),
        Dtype::Uint64 => job.unsigned(wide::<u64, u64>(data), u64::MIN, u64::MAX),
        Dtype::Float32 => match op {
            Op::Sum => job.run(Sum::<f32>::new(), data.raw::<f32>()),
            Op::Product => job.run(Product::<f32>::new(), data.raw::<f32>()),
            Op::Min => job.run(Min::<f32>::new(), data.raw::<f32>()),
            _ => job.run(Max::<f32>::new(), data.raw::<f32>()),
        },
        Dtype::Float64 => match op {
            Op::Sum => job.run(Sum::<f64>::new(), data.raw::<f64>()),
            Op::Product => job.run(Product::<f64>::new(), data.raw::<f64>()),
            Op::Min => job.run(Min::<f64>::new(), data.raw::<f64>()),
            _ => job.run(Max::<f64>::new(), data.raw::<f64>()),
        },
        dtype => Err(Error::Usage(format!(
            "scan does not take elements of type {}; it takes integers, float32 and float64",
            dtype.name()
        ))),
    }
}

/// The elements in a type that they fit into.
fn wide<T: Stored<Raw = T>, W: From<T>>(data: &Data) -> Vec<W> {
    data.raw::<T>().iter().map(|&element| W::from(element)).collect()
}

/// What is known whatever the type.
struct Job<'a> {
    engine: &'a Engine,
    op: Op,
    args: &'a Scan,
    lines: (u64, u64),
}

impl Job<'_> {
    /// Elements of a type with these ends, which the extremes of nothing are.
    fn signed(&self, items: Vec<i64>, lowest: i64, highest: i64) -> Result<Segments, Error> {
        match self.op {
            Op::Sum => self.run(Sum::<i64>::new(), &items),
            Op::Product => self.run(Product::<i64>::new(), &items),
            Op::Min => self.run_from(Min::<i64>::new(), Some(highest), &items),
            _ => self.run_from(Max::<i64>::new(), Some(lowest), &items),
        }
    }

    /// Elements of a type with these ends, which the extremes of nothing are.
    fn unsigned(&self, items: Vec<u64>, lowest: u64, highest: u64) -> Result<Segments, Error> {
        match self.op {
            Op::Sum => self.run(Sum::<u64>::new(), &items),
            Op::Product => self.run(Product::<u64>::new(), &items),
            Op::Min => self.run_from(Min::<u64>::new(), Some(highest), &items),
            _ => self.run_from(Max::<u64>::new(), Some(lowest), &items),
        }
    }

    fn run<M>(&self, op: M, items: &[M::Item]) -> Result<Segments, Error>
    where
        M: Monoid<Output: Finding>,
        Value<M>: Finding,
    {
        self.run_from(op, None, items)
    }

    fn run_from<M>(&self, op: M, initial: Option<M::Acc>, items: &[M::Item]) -> Result<Segments, Error>
    where
        M: Monoid<Output: Finding>,
        Value<M>: Finding,
    {
        let mut scanner: Scanner<M> = self.engine.scanner(op)?;
        if let Some(initial) = initial {
            scanner = scanner.with_initial(initial);
        }
        if self.args.exclusive {
            scanner = scanner.exclusive();
        }
        if self.args.reverse {
            scanner = scanner.reverse();
        }
        let (n, inner) = self.lines;
        let results = if items.is_empty() { Vec::new() } else { scanner.scan_lines(items, n, inner)? };
        Ok(Segments::new::<M::Output, M::Empty>(results))
    }
}
