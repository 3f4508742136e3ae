//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Reductions with the same bits on every GPU and on the CPU.
#[derive(Debug, Parser)]
#[command(name = "warpfold", version, after_help = EXIT_CODES)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the file or the backend is at fault (missing, truncated or foreign file, unknown column,
     unsupported type, no such device)
  2  the command line is at fault (unknown option or operator)";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Reduce all elements of a file to one value per operator
    Reduce(Reduce),
    /// Show the backends, their devices, and what was built in
    Info(Info),
}

/// `warpfold reduce`.
#[derive(Debug, clap::Args)]
#[command(after_help = REDUCE_HELP)]
pub struct Reduce {
    /// An array in numpy's .npy format, or a .csv file with a header row
    pub file: PathBuf,

    /// Operators, separated by commas: sum, product, min, max
    #[arg(long, value_name = "OPS", required = true)]
    pub op: Vec<String>,

    /// The column of a .csv file to reduce; may be left out if there is only one
    #[arg(long, value_name = "NAME")]
    pub column: Option<String>,

    /// Where to compute; auto takes the GPU if there is one
    #[arg(long, value_enum, default_value_t = BackendChoice::Auto)]
    pub backend: BackendChoice,

    /// What a NaN does: propagate makes every result NaN, ignore leaves NaNs out
    #[arg(long, value_enum, default_value_t = NanRule::Propagate)]
    pub nan: NanRule,

    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

const REDUCE_HELP: &str = "\
Files:
  .npy  int32, uint32, int64, uint64, float32 or float64, either byte order, C or Fortran order,
        any number of dimensions. Elements are reduced in the order in which they are stored.
  .csv  One column, comma-separated, first row = names. The column is int64 if it has cells and
        every one is an integer that fits, else float64; an empty cell is NaN. Spaces around a
        cell do not count, lines without any character are skipped.

Results:
  sum, product  Integers keep their sign and have 64 bits, wrapping on overflow. Floats keep their
                type; float32 is computed in float64, a sum of float64 in twice its precision.
                The sum of nothing is 0, the product of nothing 1.
  min, max      The element itself; -0.0 counts as less than 0.0. Of nothing: none (JSON: null).
  With --nan ignore a NaN counts as 0 in a sum and as 1 in a product; min and max of nothing but
  NaNs are NaN. Integers have no NaN.

JSON:
  {\"file\", \"n\", \"dtype\", \"backend\", \"elapsed_ms\", \"results\": {OP: VALUE, ...}}
  n counts all elements, NaNs too. Integers are exact, floats are the shortest decimals that read
  back as the same value of their type; NaN and infinities are the strings \"NaN\", \"inf\", \"-inf\".
  elapsed_ms is the time of the reductions, without that of opening the file and the device.

Example:
  warpfold reduce --op sum,min,max data/co2.npy --nan ignore";

/// `warpfold info`.
#[derive(Debug, clap::Args)]
pub struct Info {
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// `--backend`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendChoice {
    /// The GPU if there is one, else the CPU
    Auto,
    /// All cores of this machine
    Cpu,
    /// The first NVIDIA GPU
    Cuda,
}

/// `--nan`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NanRule {
    /// A NaN makes the result NaN
    Propagate,
    /// NaNs are left out
    Ignore,
}

/// clap's complaint as one line: its first paragraph, without clap's own prefix, and where to read more.
pub fn one_line(error: &clap::Error) -> String {
    let rendered = error.to_string();
    let paragraph = rendered.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = paragraph.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let text = words.join(" ");
    format!("{} (see warpfold --help)", text.strip_prefix("error: ").unwrap_or(&text))
}
