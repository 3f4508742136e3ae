//! From arguments to what is printed.

use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command, Reduce};
use crate::error::Error;
use crate::input::{Array, Reading};
use crate::ops::{Evaluated, Findings, Op, Options};
use crate::output::Report;
use crate::{args, catalog, info, input, keys, npy_out, ops, output, scan, segments};

/// Does what the arguments say.
pub fn run() -> ExitCode {
    let outcome = match Args::try_parse() {
        Ok(args) => execute(&args),
        Err(error) if !error.use_stderr() => {
            // Help and version texts are no errors; nobody is told if the reader of stdout has gone.
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        Err(error) if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            return ExitCode::from(2);
        }
        Err(error) => Err(Error::Usage(args::complaint(&error))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Output(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            // Where stderr is closed the exit code still tells.
            let _ = writeln!(io::stderr(), "warpfold: error: {}", one_line(&error.to_string()));
            ExitCode::from(error.exit_code())
        }
    }
}

/// A message on one line, whatever is in it: a path may hold a line break, a driver's log has many.
fn one_line(message: &str) -> String {
    message.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

fn execute(args: &Args) -> Result<(), Error> {
    let text = match &args.command {
        Command::Reduce(reduce) => run_reduce(reduce)?,
        Command::Scan(scan) => scan::run(scan)?,
        Command::ByKey(by_key) => keys::by_key(by_key)?,
        Command::ByTag(by_tag) => keys::by_tag(by_tag)?,
        Command::Ops(options) => catalog::report(options)?,
        Command::Info(options) => info::report(options.json)?,
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Error::Output)
}

/// Reduces one file; the text to print.
fn run_reduce(args: &Reduce) -> Result<String, Error> {
    let list = ops::parse_list(&args.op)?;
    check_options(args, &list)?;
    let reading = Reading { column: args.column.as_deref(), dtype: args.dtype };
    let array = input::open(&args.file, reading)?;
    let with = args.with.as_deref().map(|path| open_with(args, path, reading, &array)).transpose()?;
    let dtype = array.data.dtype();
    if let Some(&op) = list.iter().find(|op| !op.takes(dtype)) {
        return Err(ops::refusal(op, dtype));
    }
    let n = array.data.len() as u64;
    let (over, shape) = segments::find(args, &array)?;
    let options = Options { nan: args.nan, ddof: args.ddof.unwrap_or(0.0) };
    let mut engine = ops::engine(args.backend)?;
    if let Some(limit) = args.device_memory {
        engine = engine.with_device_bytes(limit);
    }
    let evaluated = ops::evaluate_all((engine, args.backend), &list, options, &over, &array, with.as_ref())?;
    let Evaluated { backend, elapsed_ms, found: mut results } = evaluated;
    if let (Some(path), [op], [(_, Findings::Many(found))], Some(shape)) =
        (&args.out, &list[..], &results[..], &shape)
    {
        npy_out::write(path, *op, dtype, shape, found)?;
        results.clear();
    }
    let report = Report {
        file: args.file.to_string_lossy().into_owned(),
        n,
        dtype: dtype.name(),
        backend,
        elapsed_ms,
        shape,
        keys: None,
        out: args.out.as_ref().map(|path| path.to_string_lossy().into_owned()),
        results: output::Results { found: results, empty: segments::Empty::of(over, &array) },
    };
    if args.json { output::json_line(&report) } else { Ok(report.table()) }
}

/// Are there options that no operator of the list heeds, or is one missing?
fn check_options(args: &Reduce, list: &[Op]) -> Result<(), Error> {
    let usage = |message: &str| Err(Error::Usage(message.to_string()));
    let two = list.iter().any(|op| op.takes_two());
    if two && args.with.is_none() {
        return usage("--op dot takes two arrays: name the file of the second with --with");
    }
    if !two && args.with.is_some() {
        return usage("--with is for --op dot; the other operators take one array");
    }
    if args.ddof.is_some() && !list.iter().any(|op| op.takes_ddof()) {
        return usage("--ddof is for --op var and --op std");
    }
    if args.out.is_some() && args.axis.is_empty() && args.offsets.is_none() {
        return usage("--out is for the results of --axis or --offsets; one value is printed");
    }
    if args.out.is_some() && list.len() != 1 {
        return usage(&format!("--out takes the results of one operator; --op names {}", list.len()));
    }
    Ok(())
}

/// Opens the second file, which must go with the first.
fn open_with(args: &Reduce, path: &Path, reading: Reading<'_>, array: &Array) -> Result<Array, Error> {
    let with = input::open(path, reading)?;
    let mismatch =
        |problem: String| Error::Mismatch { file: args.file.clone(), with: path.to_path_buf(), problem };
    let (found, expected) = (with.data.dtype().name(), array.data.dtype().name());
    if found != expected {
        return Err(mismatch(format!("{found} elements, not {expected}")));
    }
    let (found, expected) = (with.data.len(), array.data.len());
    if found != expected {
        return Err(mismatch(format!("{found} elements, not {expected}")));
    }
    if !args.axis.is_empty() && with.shape != array.shape {
        let [found, expected] = [&with.shape, &array.shape].map(|shape| input::shape_text(shape));
        return Err(mismatch(format!("an array of shape {found}, not {expected}")));
    }
    Ok(with)
}
