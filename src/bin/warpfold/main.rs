//! The command `warpfold`: reductions of files, on the GPU or the CPU.

mod args;
mod error;
mod info;
mod input;
mod ops;
mod output;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

use crate::args::{Args, Command, Reduce};
use crate::error::Error;
use crate::output::Report;

fn main() -> ExitCode {
    let outcome = match Args::try_parse() {
        Ok(args) => run(&args),
        Err(error) if !error.use_stderr() => {
            // Help and version texts are no errors; nobody is told if the reader of stdout has gone.
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        Err(error) if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            return ExitCode::from(2);
        }
        Err(error) => Err(Error::Usage(args::one_line(&error))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Output(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            // Where stderr is closed the exit code still tells.
            let _ = writeln!(io::stderr(), "warpfold: error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(args: &Args) -> Result<(), Error> {
    let text = match &args.command {
        Command::Reduce(reduce) => run_reduce(reduce)?,
        Command::Info(options) => info::report(options.json)?,
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Error::Output)
}

/// Reduces one file; the text to print.
fn run_reduce(args: &Reduce) -> Result<String, Error> {
    let list = ops::parse_list(&args.op)?;
    let array = input::open(&args.file, args.column.as_deref())?;
    let engine = ops::engine(args.backend)?;
    let start = Instant::now();
    let mut results = Vec::with_capacity(list.len());
    for op in list {
        let value = ops::evaluate(&engine, op, args.nan, &array.data)?;
        results.push((op.name(), value));
    }
    let elapsed_ms = start.elapsed().as_nanos() as f64 / 1e6;
    let report = Report {
        file: args.file.to_string_lossy().into_owned(),
        n: array.data.len() as u64,
        dtype: array.data.dtype().name(),
        backend: engine.backend().to_string(),
        elapsed_ms,
        results: output::Results(results),
    };
    if args.json { output::json_line(&report) } else { Ok(report.table()) }
}
