//! `warpfold by-key` and `warpfold by-tag`: elements that belong together are brought side by side, and reduced as segments.
//!
//! So every operator and type of `warpfold reduce` is there, and none is compiled once more; and each result has the bits of its elements
//! alone, on every backend. A GPU sorts the keys or tags, and reduces the segments of what operators it has kernels of.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use half::{bf16, f16};
use warpfold::segments::SegmentPlan;
use warpfold::{Backend, Engine, Float};

use crate::args::{ByKey, ByTag, Keyed};
use crate::error::Error;
use crate::input::{self, Array, Data, Dtype, Reading, Stored, Texts};
use crate::npy_out;
use crate::ops::{self, Evaluated, Findings, Op, Options, Over, Scalar};
use crate::output::{self, Key, Report};
use crate::segments::Empty;

/// Reduces by key; the text to print.
pub fn by_key(args: &ByKey) -> Result<String, Error> {
    let list = operators(&args.keyed)?;
    let (labels, values) = open("key", &args.files, args.key.as_deref(), args.keyed.value.as_deref())?;
    let engine = ops::engine(args.keyed.backend)?;
    let start = Instant::now();
    let runs = args.runs || !(args.group || args.sort || input::is_csv(&args.files[0]));
    let groups = if runs { labels.runs() } else { labels.groups(&engine, args.sort)? };
    let Groups { first, places, offsets } = groups;
    let keys = first.iter().map(|&place| labels.key(labels.codes[place])).collect();
    let picked = if runs { None } else { Some(values.pick(&places)) };
    let found = Found { keys, values, picked, offsets, start };
    report(&args.keyed, engine, &args.files, &list, found)
}

/// Reduces by tag; the text to print.
pub fn by_tag(args: &ByTag) -> Result<String, Error> {
    let list = operators(&args.keyed)?;
    let (labels, values) = open("tag", &args.files, args.tag.as_deref(), args.keyed.value.as_deref())?;
    let engine = ops::engine(args.keyed.backend)?;
    let start = Instant::now();
    let no_tags = || Error::NoTags { path: args.files[0].clone(), found: labels.kind() };
    let mut counts = Vec::new();
    if counts.try_reserve_exact(args.tags.saturating_add(1) as usize).is_err() {
        return Err(Error::Backend(warpfold::Error::HostMemory { needed: args.tags.saturating_mul(8) }));
    }
    counts.resize(args.tags as usize + 1, 0_u64);
    let (mut kept, mut tags) = (Vec::new(), Vec::with_capacity(labels.codes.len()));
    for (index, &code) in labels.codes.iter().enumerate() {
        let tag = labels.integer(code).ok_or_else(no_tags)?;
        let place = u64::try_from(tag).ok().filter(|&tag| tag < args.tags);
        if place.is_none() && !args.ignore_out_of_range {
            let (path, tags) = (args.files[0].clone(), args.tags);
            return Err(Error::Tag { path, index: index as u64, tag, tags });
        }
        if let Some(tag) = place {
            kept.push(index as u64);
            tags.push(tag);
            counts[tag as usize + 1] += 1;
        }
    }
    let offsets = offsets(counts);
    let order = match sorted_there(&engine, &tags)? {
        Some(order) => order,
        None => in_order(&tags, &offsets),
    };
    let places: Vec<u64> = order.into_iter().map(|place| kept[place as usize]).collect();
    let keys = (0..args.tags).map(|tag| Key::Number(Scalar::Uint(tag))).collect();
    let picked = Some(values.pick(&places));
    let found = Found { keys, values, picked, offsets, start };
    report(&args.keyed, engine, &args.files, &list, found)
}

/// Reads `--op`, and checks what goes with it.
fn operators(args: &Keyed) -> Result<Vec<Op>, Error> {
    let list = ops::parse_list(&args.op)?;
    if list.iter().any(|op| op.takes_two()) {
        return Err(Error::Usage("--op dot takes two arrays; there is one of values here".to_string()));
    }
    if args.ddof.is_some() && !list.iter().any(|op| op.takes_ddof()) {
        return Err(Error::Usage("--ddof is for --op var and --op std".to_string()));
    }
    match &args.out {
        Some(path) if !input::is_csv(path) && list.len() != 1 => Err(Error::Usage(format!(
            "--out takes the results of several operators in a .csv file; --op names {}",
            list.len()
        ))),
        _ => Ok(list),
    }
}

/// Reads the labels (keys or tags, as the option is called) and the values, of which there are as many.
fn open(
    option: &str,
    files: &[PathBuf],
    label: Option<&str>,
    value: Option<&str>,
) -> Result<(Labels, Data), Error> {
    let usage = |message: String| Err(Error::Usage(message));
    match files {
        [file] if input::is_csv(file) => {
            let (Some(label), Some(value)) = (label, value) else {
                return usage(format!("of a .csv file name the columns, with --{option} and --value"));
            };
            let (texts, values) = input::open_by_key(file, label, value)?;
            Ok((Labels::of_texts(texts), values))
        }
        [_] => usage(format!("name two .npy files, of the {option}s and of the values, or one .csv file")),
        _ if label.is_some() || value.is_some() => {
            usage(format!("--{option} and --value name columns of one .csv file; there are two files"))
        }
        files => {
            let open = |path: &Path| input::open(path, Reading { column: None, dtype: None });
            let (labels, values) = (open(&files[0])?, open(&files[1])?);
            let (found, expected) = (values.data.len(), labels.data.len());
            if found != expected {
                let problem = format!("{found} elements, not {expected}");
                return Err(Error::Mismatch { file: files[0].clone(), with: files[1].clone(), problem });
            }
            let labels = Labels::of_data(labels.in_logical_order())
                .ok_or_else(|| Error::NoKeys { path: files[0].clone(), found: labels.data.dtype().name() })?;
            let values = if values.fortran { values.in_logical_order().copied() } else { values.data };
            Ok((labels, values))
        }
    }
}

/// What is to be reduced.
struct Found {
    keys: Vec<Key>,
    values: Data,
    /// The values in the order of the keys, unless that is theirs.
    picked: Option<Data>,
    /// Where each key's begin and the last one's end.
    offsets: Vec<u64>,
    start: Instant,
}

/// Reduces, and writes what was found.
fn report(
    args: &Keyed,
    engine: Engine,
    files: &[PathBuf],
    list: &[Op],
    found: Found,
) -> Result<String, Error> {
    let Found { keys, values, picked, offsets, start } = found;
    let (n, dtype) = (values.len() as u64, values.dtype());
    if let Some(&op) = list.iter().find(|op| !op.takes(dtype)) {
        return Err(ops::refusal(op, dtype));
    }
    let array = Array::column(picked.unwrap_or(values));
    let over = Over::Plan(SegmentPlan::from_offsets(&offsets)?);
    let options = Options { nan: args.nan, ddof: args.ddof.unwrap_or(0.0) };
    let sorting_ms = start.elapsed().as_nanos() as f64 / 1e6;
    let Evaluated { backend, elapsed_ms, found } =
        ops::evaluate_all((engine, args.backend), list, options, &over, &array, None)?;
    let shape = vec![keys.len() as u64];
    let results = output::Results { found, empty: Empty::of(over, &array) };
    let mut report = Report {
        file: files.last().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default(),
        n,
        dtype: dtype.name(),
        backend,
        elapsed_ms: sorting_ms + elapsed_ms,
        shape: None,
        keys: Some(keys),
        out: None,
        results,
    };
    if let Some(path) = &args.out {
        match (&report.results.found[..], list) {
            ([(_, Findings::Many(results))], [op]) if !input::is_csv(path) => {
                npy_out::write(path, *op, dtype, &shape, results)?;
            }
            _ => npy_out::whole(path, |path| report.write_csv(path))?,
        }
        report.out = Some(path.to_string_lossy().into_owned());
        report.keys = None;
        report.results.found.clear();
    }
    if args.json {
        return output::json_line(&report);
    }
    report.shape = Some(shape);
    Ok(report.table())
}

/// What belongs together.
struct Groups {
    /// The first place of each.
    first: Vec<usize>,
    /// All places, those that belong together side by side. None for runs, whose order is that of the places.
    places: Vec<u64>,
    /// Where each begins there, and the last one ends.
    offsets: Vec<u64>,
}

/// Keys or tags, each a code: equal ones have equal codes.
struct Labels {
    codes: Vec<u64>,
    names: Names,
}

/// What codes stand for.
enum Names {
    Bool,
    Signed,
    Unsigned,
    /// The bits of a `f64`, of a zero without its sign and of one NaN for all, that was of another type.
    Float(Dtype),
    Text(Vec<String>),
}

impl Labels {
    /// Elements of a file; none if they are neither integers nor floats nor truth values.
    fn of_data(data: &Data) -> Option<Labels> {
        fn codes<T: Stored>(data: &Data, code: impl Fn(T) -> u64) -> Vec<u64> {
            data.raw::<T>().iter().map(|&raw| code(T::read(raw))).collect()
        }
        let dtype = data.dtype();
        let (codes, names) = match dtype {
            Dtype::Bool => (codes(data, |key: bool| key.into()), Names::Bool),
            Dtype::Int8 => (codes(data, |key: i8| key as u64), Names::Signed),
            Dtype::Int16 => (codes(data, |key: i16| key as u64), Names::Signed),
            Dtype::Int32 => (codes(data, |key: i32| key as u64), Names::Signed),
            Dtype::Int64 => (codes(data, |key: i64| key as u64), Names::Signed),
            Dtype::Uint8 => (codes(data, |key: u8| key.into()), Names::Unsigned),
            Dtype::Uint16 => (codes(data, |key: u16| key.into()), Names::Unsigned),
            Dtype::Uint32 => (codes(data, |key: u32| key.into()), Names::Unsigned),
            Dtype::Uint64 => (codes(data, |key: u64| key), Names::Unsigned),
            Dtype::Float16 => (codes(data, |key: f16| float(key.into())), Names::Float(dtype)),
            Dtype::Bfloat16 => (codes(data, |key: bf16| float(key.into())), Names::Float(dtype)),
            Dtype::Float32 => (codes(data, |key: f32| float(key.into())), Names::Float(dtype)),
            Dtype::Float64 => (codes(data, float), Names::Float(dtype)),
            Dtype::Complex64 | Dtype::Complex128 => return None,
        };
        Some(Labels { codes, names })
    }

    /// Cells of a column: integers if all are, else floats if all are, else texts.
    fn of_texts(texts: Texts) -> Labels {
        let recode = |codes: Vec<u64>| texts.cells.iter().map(|&cell| codes[cell as usize]).collect();
        if let Some(integers) = texts.numbers::<i64>() {
            return Labels {
                codes: recode(integers.into_iter().map(|key| key as u64).collect()),
                names: Names::Signed,
            };
        }
        if let Some(floats) = texts.numbers::<f64>() {
            let codes = recode(floats.into_iter().map(float).collect());
            return Labels { codes, names: Names::Float(Dtype::Float64) };
        }
        Labels { codes: texts.cells, names: Names::Text(texts.texts) }
    }

    /// What they are, for messages.
    fn kind(&self) -> &'static str {
        match self.names {
            Names::Bool => "truth values",
            Names::Signed | Names::Unsigned => "integers",
            Names::Float(_) => "floats",
            Names::Text(_) => "text",
        }
    }

    fn integer(&self, code: u64) -> Option<i128> {
        match self.names {
            Names::Signed => Some((code as i64).into()),
            Names::Unsigned => Some(code.into()),
            Names::Bool | Names::Float(_) | Names::Text(_) => None,
        }
    }

    fn key(&self, code: u64) -> Key {
        let float = f64::from_bits(code);
        match &self.names {
            Names::Bool => Key::Number(Scalar::Bool(code != 0)),
            Names::Signed => Key::Number(Scalar::Int(code as i64)),
            Names::Unsigned => Key::Number(Scalar::Uint(code)),
            Names::Float(Dtype::Float16) => Key::Number(Scalar::F16(Float::of_f64(float))),
            Names::Float(Dtype::Bfloat16) => Key::Number(Scalar::Bf16(Float::of_f64(float))),
            Names::Float(Dtype::Float32) => Key::Number(Scalar::F32(float as f32)),
            Names::Float(_) => Key::Number(Scalar::F64(float)),
            Names::Text(texts) => Key::Text(texts[code as usize].clone()),
        }
    }

    /// Neighbours with equal labels.
    fn runs(&self) -> Groups {
        let codes = &self.codes;
        let nan = |code: u64| matches!(self.names, Names::Float(_)) && f64::from_bits(code).is_nan();
        let begins = |&place: &usize| place == 0 || codes[place - 1] != codes[place] || nan(codes[place]);
        let first: Vec<usize> = (0..codes.len()).filter(begins).collect();
        let offsets = first.iter().copied().chain([codes.len()]).map(|place| place as u64).collect();
        Groups { first, places: Vec::new(), offsets }
    }

    /// All with equal labels, in the order in which they are first seen, or in their own.
    fn groups(&self, engine: &Engine, sort: bool) -> Result<Groups, Error> {
        Ok(match sorted_there(engine, &self.codes)? {
            Some(order) => self.groups_of_sorted(&order, sort),
            None => self.groups_by_table(sort),
        })
    }

    /// The same of places that have been sorted by their codes.
    fn groups_of_sorted(&self, order: &[u64], sort: bool) -> Groups {
        let code = |place: u64| self.codes[place as usize];
        let groups: Vec<&[u64]> = order.chunk_by(|&a, &b| code(a) == code(b)).collect();
        let first: Vec<usize> = groups.iter().map(|group| group[0] as usize).collect();
        let mut turn: Vec<usize> = (0..groups.len()).collect();
        if sort {
            turn.sort_by(|&a, &b| self.compare(self.codes[first[a]], self.codes[first[b]]));
        } else {
            turn.sort_unstable_by_key(|&group| first[group]);
        }
        let mut places = Vec::with_capacity(order.len());
        let mut offsets = vec![0];
        for &group in &turn {
            places.extend_from_slice(groups[group]);
            offsets.push(places.len() as u64);
        }
        Groups { first: turn.into_iter().map(|group| first[group]).collect(), places, offsets }
    }

    /// The same by a table of the codes.
    fn groups_by_table(&self, sort: bool) -> Groups {
        let mut known: HashMap<u64, u64> = HashMap::new();
        let mut first = Vec::new();
        let mut numbers: Vec<u64> = Vec::with_capacity(self.codes.len());
        for (place, &code) in self.codes.iter().enumerate() {
            let number = *known.entry(code).or_insert_with(|| {
                first.push(place);
                first.len() as u64 - 1
            });
            numbers.push(number);
        }
        if sort {
            let mut order: Vec<usize> = (0..first.len()).collect();
            order.sort_by(|&a, &b| self.compare(self.codes[first[a]], self.codes[first[b]]));
            let mut rank = vec![0; order.len()];
            order.iter().zip(0..).for_each(|(&number, place)| rank[number] = place);
            numbers.iter_mut().for_each(|number| *number = rank[*number as usize]);
            first = order.into_iter().map(|number| first[number]).collect();
        }
        let mut counts = vec![0; first.len() + 1];
        numbers.iter().for_each(|&number| counts[number as usize + 1] += 1);
        let offsets = offsets(counts);
        let places = in_order(&numbers, &offsets);
        Groups { first, places, offsets }
    }

    fn compare(&self, a: u64, b: u64) -> Ordering {
        match &self.names {
            Names::Signed => (a as i64).cmp(&(b as i64)),
            Names::Bool | Names::Unsigned => a.cmp(&b),
            Names::Float(_) => f64::from_bits(a).total_cmp(&f64::from_bits(b)),
            Names::Text(texts) => texts[a as usize].cmp(&texts[b as usize]),
        }
    }
}

/// A float's code.
fn float(key: f64) -> u64 {
    if key.is_nan() { f64::NAN.abs().to_bits() } else { (key + 0.0).to_bits() }
}

/// The places by their numbers, those with equal ones in their order, if there is a GPU (or a simulated one) that sorts.
fn sorted_there(engine: &Engine, numbers: &[u64]) -> Result<Option<Vec<u64>>, Error> {
    use warpfold::Error::{NoKernel, NotCompiled, TooManyToSort};
    if engine.backend() == Backend::Cpu {
        return Ok(None);
    }
    match engine.order(numbers) {
        // The order is the same wherever it is found.
        Err(NoKernel { .. } | NotCompiled { .. } | TooManyToSort { .. }) => Ok(None),
        order => Ok(Some(order?)),
    }
}

/// Where each number's places begin and the last one's end, of how many there are of number `k` in `counts[k + 1]`.
fn offsets(mut counts: Vec<u64>) -> Vec<u64> {
    for k in 1..counts.len() {
        counts[k] += counts[k - 1];
    }
    counts
}

/// The places by their numbers, those with equal ones in their order.
fn in_order(numbers: &[u64], offsets: &[u64]) -> Vec<u64> {
    let mut next = offsets.to_vec();
    let mut places = vec![0; numbers.len()];
    for (place, &number) in numbers.iter().enumerate() {
        let to = &mut next[number as usize];
        places[*to as usize] = place as u64;
        *to += 1;
    }
    places
}
