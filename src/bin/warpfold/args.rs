//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::input::Dtype;
use crate::ops::Op;

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
  2  the command line is at fault (unknown option or operator, an operator that does not take
     the file's type)";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Reduce all elements of a file to one value per operator
    Reduce(Reduce),
    /// Write the running results of all elements of a file, or along an axis, to another
    Scan(Scan),
    /// Reduce values by key: runs of equal keys in .npy files, rows with equal keys in a .csv file
    ByKey(ByKey),
    /// Reduce values by tag: integers below a number, in any order
    ByTag(ByTag),
    /// List the operators: what each takes, gives and does in doubt
    Ops(Ops),
    /// Show the backends, their devices, and what was built in
    Info(Info),
}

/// `warpfold reduce`.
#[derive(Debug, clap::Args)]
#[command(after_help = reduce_help())]
pub struct Reduce {
    /// An array in numpy's .npy format, or a .csv file with a header row
    pub file: PathBuf,

    /// Operators, separated by commas (see below; warpfold ops says what each does)
    #[arg(long, value_name = "OPS", required = true)]
    pub op: Vec<String>,

    /// The column of a .csv file to reduce; may be left out if there is only one
    #[arg(long, value_name = "NAME")]
    pub column: Option<String>,

    /// The second array of --op dot: a file like the first, with elements of the same type and number
    #[arg(long, value_name = "FILE")]
    pub with: Option<PathBuf>,

    /// What the elements of a .npy file are. Needed for bfloat16, which numpy has no type for
    #[arg(long, value_name = "TYPE", value_parser = parse_dtype)]
    pub dtype: Option<Dtype>,

    /// What var and std take from the number of elements that they divide by, as numpy's ddof [default: 0]
    #[arg(long, value_name = "NUMBER", value_parser = parse_ddof, allow_negative_numbers = true)]
    pub ddof: Option<f64>,

    /// An axis to reduce, counted from 0, or backwards from -1; may be repeated
    #[arg(long, value_name = "K", allow_negative_numbers = true, conflicts_with = "offsets")]
    pub axis: Vec<i64>,

    /// A file of integers, where segments begin and the last one ends: a result for each
    #[arg(long, value_name = "FILE")]
    pub offsets: Option<PathBuf>,

    /// A .npy file to write the results of --axis or --offsets to, of one operator
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Where to compute; auto takes the GPU if there is one that has kernels for all of it, else the CPU
    #[arg(long, value_enum, default_value_t = BackendChoice::Auto)]
    pub backend: BackendChoice,

    /// What a NaN does: propagate makes every result NaN, ignore leaves NaNs out
    #[arg(long, value_enum, default_value_t = NanRule::Propagate)]
    pub nan: NanRule,

    /// GPU memory that a long file's elements may take at a time, as 64M or 2G [default: 128M]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub device_memory: Option<u64>,

    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

/// What `warpfold reduce --help` ends with.
fn reduce_help() -> String {
    let mut operators = String::new();
    let mut column = 0;
    for name in Op::known().split_inclusive(", ") {
        if column + name.len() > 90 {
            operators.push_str("\n  ");
            column = 0;
        }
        operators.push_str(name);
        column += name.len();
    }
    format!("Operators:\n  {operators}\n\n{REDUCE_HELP}")
}

const REDUCE_HELP: &str = "\
Files:
  .npy  bool, int8 to int64, uint8 to uint64, float16, float32, float64, complex64 or complex128,
        either byte order, C or Fortran order, any number of dimensions. Two bytes without a type
        (|V2) are bfloat16 with --dtype bf16. Elements are reduced in the order in which they are
        stored, by argmin, argmax and mss in logical order, the last axis running fastest.
  .csv  One column, comma-separated, first row = names. The column is int64 if it has cells and
        every one is an integer that fits, else float64; an empty cell is NaN. Spaces around a
        cell do not count, lines without any character are skipped.

Results:
  Sums and products of integers keep their sign and have 64 bits, wrapping on overflow. Floats keep
  their type and are computed in a wider one. A minimum of nothing is none (JSON: null).
  With --nan ignore NaNs are left out. Integers have no NaN.
  warpfold ops lists the rules of every operator.

Long files:
  A GPU is sent the file piece by piece while it folds what came before, so a file may be larger
  than its memory. The results have the same bits with any --device-memory. If the file takes long,
  a bar on the terminal says how far it is.

Segments:
  --axis leaves out the axes that it names, as numpy does; positions (argmin, argmax) count along
  them. --offsets reduces elements offsets[k] to offsets[k + 1], in logical order. Every result has
  the bits of reducing its elements alone. They are computed on the CPU (--backend cpu).
  --out writes them with numpy's type of the result (warpfold ops): of argmin and argmax the
  position as int64, of minmax one more axis of two. There the minimum or maximum of nothing is the
  highest or lowest value, its position -1, and a mean NaN.

JSON:
  {\"file\", \"n\", \"dtype\", \"backend\", \"elapsed_ms\", \"results\": {OP: VALUE, ...}}
  With --axis or --offsets each value is a list, the last axis running fastest, and there is
  \"shape\", the results' shape; with --out there is \"out\" in place of results.
  n counts all elements, NaNs too. Integers are exact, floats short decimals that read back as the
  same value of their type; NaN and infinities are the strings \"NaN\", \"inf\", \"-inf\". minmax is
  {\"min\", \"max\"}, argmin and argmax are {\"index\", \"value\"}, a complex number is [re, im].
  elapsed_ms is the time of the reductions, without that of opening the file and the device.

Examples:
  warpfold reduce --op sum,min,max data/co2.npy --nan ignore
  warpfold reduce --op dot a.npy --with b.npy
  warpfold reduce --op mean --axis 0 --axis -1 a.npy --out means.npy
  warpfold reduce --op sum,max --offsets rows.npy values.npy --json";

fn parse_dtype(name: &str) -> Result<Dtype, String> {
    Dtype::parse(name).ok_or_else(|| format!("known are {}", Dtype::known()))
}

/// A number of bytes, with K, M or G for powers of 1024.
fn parse_bytes(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().next_back() {
        Some((at, 'K' | 'k')) => (&text[..at], 1 << 10),
        Some((at, 'M' | 'm')) => (&text[..at], 1 << 20),
        Some((at, 'G' | 'g')) => (&text[..at], 1 << 30),
        _ => (text, 1_u64),
    };
    let bytes = digits.parse().ok().and_then(|number: u64| number.checked_mul(unit));
    bytes.ok_or_else(|| "it is a number of bytes, or one with K, M or G".to_string())
}

fn parse_ddof(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ddof) if ddof.is_finite() && ddof >= 0.0 => Ok(ddof),
        _ => Err("it is a number that is not negative".to_string()),
    }
}

/// `warpfold scan`.
#[derive(Debug, clap::Args)]
#[command(after_help = SCAN_HELP)]
pub struct Scan {
    /// An array in numpy's .npy format, or a .csv file with one column
    pub file: PathBuf,

    /// The .npy file to write the results to; it may be the one that is read
    pub out: PathBuf,

    /// The operator: sum, product, min or max
    #[arg(long, value_name = "OP")]
    pub op: String,

    /// Leave out of each result the element at its own place
    #[arg(long)]
    pub exclusive: bool,

    /// From the last element to the first
    #[arg(long)]
    pub reverse: bool,

    /// The axis to go along, counted from 0, or backwards from -1 [default: all elements in logical order]
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub axis: Option<i64>,

    /// Where to compute; auto takes the GPU if there is one that has kernels for it, else the CPU
    #[arg(long, value_enum, default_value_t = BackendChoice::Auto)]
    pub backend: BackendChoice,

    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

const SCAN_HELP: &str = "\
Elements:
  Integers, float32 and float64, in either byte order, C or Fortran order.

Results:
  Sums and products of integers keep their sign and have 64 bits, wrapping on overflow; all else has
  the elements' type. Without --axis there is one axis of all elements, with it the array's shape. An
  exclusive scan begins with the sum, product, minimum or maximum of nothing: 0, 1, and the highest
  and the lowest value. A NaN makes every later result NaN.
  The bits of a result depend on the elements up to its own alone.

JSON:
  {\"file\", \"n\", \"dtype\", \"backend\", \"elapsed_ms\", \"shape\", \"out\"}

Examples:
  warpfold scan --op sum a.npy totals.npy
  warpfold scan --op max --reverse --axis -1 a.npy later.npy";

/// What `warpfold by-key` and `by-tag` have in common.
#[derive(Debug, clap::Args)]
pub struct Keyed {
    /// Operators, separated by commas (warpfold ops says what each does)
    #[arg(long, value_name = "OPS", required = true)]
    pub op: Vec<String>,

    /// The column of a .csv file whose cells are the values
    #[arg(long, value_name = "NAME")]
    pub value: Option<String>,

    /// What var and std take from the number of elements that they divide by, as numpy's ddof [default: 0]
    #[arg(long, value_name = "NUMBER", value_parser = parse_ddof, allow_negative_numbers = true)]
    pub ddof: Option<f64>,

    /// A .csv file to write all results to, or a .npy file for those of one operator
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Where to compute; auto takes the GPU if there is one that has kernels for all of it, else the CPU
    #[arg(long, value_enum, default_value_t = BackendChoice::Auto)]
    pub backend: BackendChoice,

    /// What a NaN among the values does: propagate makes its result NaN, ignore leaves NaNs out
    #[arg(long, value_enum, default_value_t = NanRule::Propagate)]
    pub nan: NanRule,

    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

/// `warpfold by-key`.
#[derive(Debug, clap::Args)]
#[command(after_help = BY_KEY_HELP)]
pub struct ByKey {
    /// Two .npy files, of the keys and of the values, or one .csv file
    #[arg(num_args = 1..=2, required = true, value_names = ["KEYS", "VALUES"])]
    pub files: Vec<PathBuf>,

    /// The column of a .csv file whose cells are the keys
    #[arg(long, value_name = "NAME")]
    pub key: Option<String>,

    /// Neighbours with equal keys belong together: the rule for .npy files
    #[arg(long, conflicts_with_all = ["group", "sort"])]
    pub runs: bool,

    /// All with equal keys belong together, in the order of their first: the rule for .csv files
    #[arg(long)]
    pub group: bool,

    /// The same, in the order of the keys
    #[arg(long)]
    pub sort: bool,

    /// The rest.
    #[command(flatten)]
    pub keyed: Keyed,
}

const BY_KEY_HELP: &str = "\
Keys:
  .npy  bool, integers or floats. Zeros of both signs are equal; NaNs are equal in groups, and each
        is a run of its own.
  .csv  int64 if every cell is an integer that fits, float64 if every cell is a number, else text.

Results:
  Those of warpfold reduce on a run's or group's values alone, in their order, to the last bit on
  every backend; positions (argmin, argmax) count among them. A GPU sorts the keys of groups.

JSON:
  {\"file\", \"n\", \"dtype\", \"backend\", \"elapsed_ms\", \"keys\": [KEY, ...],
   \"results\": {OP: [VALUE, ...], ...}}
  with \"out\" in place of keys and results if they go to a file.

Examples:
  warpfold by-key --op sum,mean keys.npy values.npy
  warpfold by-key --op mean --key species --value body_mass_g --sort penguins.csv";

/// `warpfold by-tag`.
#[derive(Debug, clap::Args)]
#[command(after_help = BY_TAG_HELP)]
pub struct ByTag {
    /// Two .npy files, of the tags and of the values, or one .csv file
    #[arg(num_args = 1..=2, required = true, value_names = ["TAGS", "VALUES"])]
    pub files: Vec<PathBuf>,

    /// How many tags there are, from 0
    #[arg(long, value_name = "K")]
    pub tags: u64,

    /// The column of a .csv file whose cells are the tags
    #[arg(long, value_name = "NAME")]
    pub tag: Option<String>,

    /// Leave out values whose tags are negative or not below K; else the first is an error
    #[arg(long)]
    pub ignore_out_of_range: bool,

    /// The rest.
    #[command(flatten)]
    pub keyed: Keyed,
}

const BY_TAG_HELP: &str = "\
Results:
  One for each tag, of the values with that tag in their order, as warpfold reduce gives of them
  alone, to the last bit on every backend; of a tag without values that of nothing. n counts all
  values. A GPU sorts the tags.

JSON:
  As warpfold by-key, where the keys are the tags.

Examples:
  warpfold by-tag --op sum --tags 16 tags.npy values.npy
  warpfold by-tag --op max,count --tags 24 --tag hour --value speed trips.csv";

/// `warpfold ops`.
#[derive(Debug, clap::Args)]
pub struct Ops {
    /// Print one JSON array instead of text
    #[arg(long)]
    pub json: bool,

    /// Print the page docs/operators.md
    #[arg(long, hide = true, conflicts_with = "json")]
    pub markdown: bool,
}

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
    /// The GPU if there is one that has kernels for all of it, else the CPU
    Auto,
    /// All cores of this machine
    Cpu,
    /// The first NVIDIA GPU
    Cuda,
    /// The GPU's kernels on simulated threads: slow, every access checked
    Sim,
}

/// `--nan`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NanRule {
    /// A NaN makes the result NaN
    Propagate,
    /// NaNs are left out
    Ignore,
}

/// What clap complains of: its first paragraph, without clap's own prefix, and where to read more.
pub fn complaint(error: &clap::Error) -> String {
    let rendered = error.to_string();
    let paragraph = rendered.split("\n\n").next().unwrap_or_default();
    format!("{} (see warpfold --help)", paragraph.strip_prefix("error: ").unwrap_or(paragraph).trim_end())
}
