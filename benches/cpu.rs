//! Reductions of one array on the CPU, against ndarray, rayon and numpy.
//!
//! `cargo bench --bench cpu`; numpy joins in if the Python that `WARPFOLD_PYTHON` names (`python3` if unset) has it.
//! Every sample times all libraries one after the other, so that a busy moment meets all of them. Criterion reports
//! ours; the table at the end has everybody's best and median sample, ratios of the best, and for sums the error against
//! the exact value. A whole run also writes `benches/record/cpu/<date>-reduce.csv`.

use std::{
    cell::RefCell,
    error::Error,
    fs,
    hint::black_box,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use criterion::{Criterion, Throughput};
use ndarray::aview1;
use rayon::prelude::*;
use warpfold::{Element, Engine, Max, Min, Monoid, Reducer, Sum};

const SIZES: [usize; 4] = [1_000, 100_000, 10_000_000, 100_000_000];
const LONGEST: usize = SIZES[SIZES.len() - 1];
const LIBRARIES: [&str; 4] = ["warpfold", "ndarray", "rayon", "numpy"];
const COMMAND: &str = "cargo bench --bench cpu";

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let mut bench = Bench {
        criterion: Criterion::default()
            .warm_up_time(Duration::from_millis(50))
            .measurement_time(Duration::from_millis(150))
            .sample_size(10)
            .without_plots()
            .configure_from_args(),
        engine: Engine::cpu(),
        numpy: Numpy::start(),
        rows: Vec::new(),
    };
    bench.of_type::<f32>()?;
    bench.of_type::<f64>()?;
    bench.of_type::<i32>()?;
    if !bench.rows.is_empty() {
        bench.report()?;
    }
    Ok(())
}

/// A type to reduce, and how the other libraries do that.
trait Number: Element + warpfold::Number + PartialEq + Into<f64> {
    const NAME: &'static str;
    /// Bits of a significand; 0 for integers.
    const DIGITS: i32;
    /// Item `i`, and for floats its value in units of `2^-DIGITS`.
    fn item(i: u64) -> (Self, u64);
    fn ndarray_sum(items: &[Self]) -> Self;
    fn rayon_sum(items: &[Self]) -> Self;
    fn lesser(self, other: Self) -> Self;
    fn greater(self, other: Self) -> Self;
}

fn mixed(i: u64) -> u64 {
    (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

macro_rules! float {
    ($type:ident, $digits:expr) => {
        impl Number for $type {
            const NAME: &'static str = stringify!($type);
            const DIGITS: i32 = $digits;
            fn item(i: u64) -> ($type, u64) {
                let units = mixed(i) >> (64 - $digits);
                (units as $type * (2.0 as $type).powi(-$digits), units)
            }
            fn ndarray_sum(items: &[$type]) -> $type {
                aview1(items).sum()
            }
            fn rayon_sum(items: &[$type]) -> $type {
                items.par_iter().sum()
            }
            fn lesser(self, other: $type) -> $type {
                self.min(other)
            }
            fn greater(self, other: $type) -> $type {
                self.max(other)
            }
        }
    };
}

float!(f32, 24);
float!(f64, 53);

impl Number for i32 {
    const NAME: &'static str = "i32";
    const DIGITS: i32 = 0;
    fn item(i: u64) -> (i32, u64) {
        ((mixed(i) >> 32) as i32, 0)
    }
    fn ndarray_sum(items: &[i32]) -> i32 {
        aview1(items).fold(0, |a: i32, &b| a.wrapping_add(b))
    }
    fn rayon_sum(items: &[i32]) -> i32 {
        items.par_iter().copied().reduce(|| 0, i32::wrapping_add)
    }
    fn lesser(self, other: i32) -> i32 {
        Ord::min(self, other)
    }
    fn greater(self, other: i32) -> i32 {
        Ord::max(self, other)
    }
}

/// How one library did on one task.
struct Row {
    operation: &'static str,
    kind: &'static str,
    items: usize,
    library: &'static str,
    best_ns: f64,
    median_ns: f64,
    /// Our best time over this library's.
    ratio: f64,
    result: f64,
    /// Distance from the exact sum in units in its last place.
    error_ulps: Option<f64>,
}

struct Bench {
    criterion: Criterion,
    engine: Engine,
    numpy: Option<Numpy>,
    rows: Vec<Row>,
}

impl Bench {
    fn of_type<T: Number>(&mut self) -> Outcome {
        let items: Vec<T> = (0..LONGEST as u64).into_par_iter().map(|i| T::item(i).0).collect();
        if let Some(numpy) = &self.numpy {
            numpy.ask(&format!("prepare {} {LONGEST}", T::NAME))?;
        }
        for n in SIZES {
            let exact = (0..n as u64).into_par_iter().map(|i| T::item(i).1 as u128).sum();
            let exact = (T::DIGITS > 0).then_some(exact);
            let sum = self.engine.reducer(Sum::<T>::new())?;
            let items = &items[..n];
            self.task("sum", items, exact, &sum, |sum| sum, T::ndarray_sum, T::rayon_sum)?;
            let min = self.engine.reducer(Min::<T>::new())?;
            self.task(
                "min",
                items,
                None,
                &min,
                |v| v.unwrap_or(T::HIGHEST),
                by_ndarray(T::lesser),
                by_rayon(T::lesser),
            )?;
            let max = self.engine.reducer(Max::<T>::new())?;
            self.task(
                "max",
                items,
                None,
                &max,
                |v| v.unwrap_or(T::LOWEST),
                by_ndarray(T::greater),
                by_rayon(T::greater),
            )?;
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "one for each library")]
    fn task<T: Number, Op: Monoid<Item = T>>(
        &mut self,
        operation: &'static str,
        items: &[T],
        exact: Option<u128>,
        ours: &Reducer<Op>,
        value: impl Fn(warpfold::Value<Op>) -> T,
        ndarray: impl Fn(&[T]) -> T,
        rayon: impl Fn(&[T]) -> T,
    ) -> Outcome {
        let ours = |items: &[T]| ours.reduce(items).map(&value).expect("the CPU reduces anything");
        let numpy = |calls: u64| -> Option<(Duration, f64)> {
            let answer =
                self.numpy.as_ref()?.ask(&format!("{operation} {} {} {calls}", T::NAME, items.len()));
            let answer = answer.expect("numpy answers");
            let (seconds, bits) = answer.trim().split_once(' ')?;
            Some((Duration::from_secs_f64(seconds.parse().ok()?), f64::from_bits(bits.parse().ok()?)))
        };
        let samples: RefCell<[Vec<f64>; 4]> = RefCell::default();
        let mut group = self.criterion.benchmark_group(format!("{operation} {}", T::NAME));
        group.throughput(Throughput::Bytes(size_of_val(items) as u64));
        group.bench_function(items.len().to_string(), |bencher| {
            bencher.iter_custom(|calls| {
                let mut samples = samples.borrow_mut();
                let mine = time(calls, || ours(black_box(items)));
                samples[0].push(mine.as_nanos() as f64 / calls as f64);
                // As long for each of the others, be they faster or slower.
                let mut other = |library: usize, run: &dyn Fn(u64) -> Option<Duration>| {
                    let Some(once) = run(1) else { return };
                    let calls = ((mine.as_nanos() / once.as_nanos().max(1)) as u64).clamp(1, calls);
                    let time = if calls == 1 { once } else { run(calls).unwrap_or(once) };
                    samples[library].push(time.as_nanos() as f64 / calls as f64);
                };
                other(1, &|calls| Some(time(calls, || ndarray(black_box(items)))));
                other(2, &|calls| Some(time(calls, || rayon(black_box(items)))));
                other(3, &|calls| numpy(calls).map(|(time, _)| time));
                mine
            });
        });
        group.finish();
        let results = [
            Some(ours(items).into()),
            Some(ndarray(items).into()),
            Some(rayon(items).into()),
            numpy(1).map(|(_, result)| result),
        ];
        let [mine, ..] = results;
        let samples = samples.into_inner();
        let best = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
        for ((library, times), result) in LIBRARIES.into_iter().zip(&samples).zip(results) {
            let (Some(result), false) = (result, times.is_empty()) else { continue };
            if exact.is_none() && Some(result) != mine {
                return Err(
                    format!("{library}'s {operation} of {} {}: {result}", items.len(), T::NAME).into()
                );
            }
            let mut sorted = times.clone();
            sorted.sort_by(f64::total_cmp);
            self.rows.push(Row {
                operation,
                kind: T::NAME,
                items: items.len(),
                library,
                best_ns: best(times),
                median_ns: sorted[sorted.len() / 2],
                ratio: best(&samples[0]) / best(times),
                result,
                error_ulps: exact.map(|exact| error_ulps(result, exact, T::DIGITS)),
            });
        }
        Ok(())
    }

    fn report(&self) -> Outcome {
        println!(
            "\n{:4} {:4} {:>10} {:9} {:>12} {:>12} {:>7} {:>12}",
            "", "", "items", "", "best us", "median us", "ratio", "error ulps"
        );
        for row in &self.rows {
            let error = row.error_ulps.map_or("-".into(), |error| format!("{error:.2}"));
            println!(
                "{:4} {:4} {:>10} {:9} {:>12.3} {:>12.3} {:>7.2} {error:>12}",
                row.operation,
                row.kind,
                row.items,
                row.library,
                row.best_ns / 1e3,
                row.median_ns / 1e3,
                row.ratio
            );
        }
        // A run of some benchmarks only is not a record.
        if std::env::args().skip(1).ne(["--bench".to_string()]) {
            return Ok(());
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/record/cpu");
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}-reduce.csv", output("date", &["+%F"])));
        let mut file = fs::File::create(&path)?;
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
        writeln!(
            file,
            "# machine: {}, {} threads",
            model.trim_matches([':', ' ', '\t']),
            self.engine.info().threads
        )?;
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        writeln!(file, "# load at the end: {}", load.trim())?;
        writeln!(file, "# rustc: {}", output("rustc", &["--version"]))?;
        let numpy = self.numpy.as_ref().map(|numpy| numpy.ask("version")).transpose()?;
        writeln!(file, "# numpy: {}", numpy.as_deref().map_or("not there", str::trim))?;
        writeln!(file, "# command: {COMMAND}")?;
        writeln!(
            file,
            "# ratio: our best time over this library's; error: of a sum, in units in the last place"
        )?;
        writeln!(file, "operation,type,items,library,best_ns,median_ns,ratio,result,error_ulps")?;
        for row in &self.rows {
            writeln!(
                file,
                "{},{},{},{},{:.1},{:.1},{:.3},{},{}",
                row.operation,
                row.kind,
                row.items,
                row.library,
                row.best_ns,
                row.median_ns,
                row.ratio,
                row.result,
                row.error_ulps.map_or(String::new(), |error| format!("{error:.3}"))
            )?;
        }
        println!("\nwritten: {}", path.display());
        Ok(())
    }
}

fn by_ndarray<T: Number>(choose: fn(T, T) -> T) -> impl Fn(&[T]) -> T {
    move |items| aview1(items).fold(items[0], |a, &b| choose(a, b))
}

fn by_rayon<T: Number>(choose: fn(T, T) -> T) -> impl Fn(&[T]) -> T {
    move |items| items.par_iter().copied().reduce(|| items[0], choose)
}

fn time<R>(calls: u64, mut call: impl FnMut() -> R) -> Duration {
    let start = Instant::now();
    for _ in 0..calls {
        black_box(call());
    }
    start.elapsed()
}

/// How far a sum is from `exact * 2^-digits`, in units in the last place of that.
fn error_ulps(result: f64, exact: u128, digits: i32) -> f64 {
    let units = (result * 2f64.powi(digits)) as u128;
    let top = exact.ilog2() as i32;
    units.abs_diff(exact) as f64 / 2f64.powi(top + 1 - digits)
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map_or("unknown".into(), |output| String::from_utf8_lossy(&output.stdout).trim().into())
}

/// A Python that times numpy in the same rounds.
struct Numpy {
    pipes: RefCell<(ChildStdin, BufReader<ChildStdout>)>,
    _child: Child,
}

impl Numpy {
    fn start() -> Option<Numpy> {
        let python = std::env::var("WARPFOLD_PYTHON").unwrap_or("python3".into());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/cpu_numpy.py");
        let child = Command::new(&python).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let numpy = child.ok().and_then(|mut child| {
            let pipes = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
            Some(Numpy { pipes: RefCell::new(pipes), _child: child })
        });
        let numpy = numpy.filter(|numpy| numpy.ask("version").is_ok_and(|version| !version.is_empty()));
        if numpy.is_none() {
            println!("without numpy: {python} has none (WARPFOLD_PYTHON names another)");
        }
        numpy
    }

    fn ask(&self, request: &str) -> std::io::Result<String> {
        let (stdin, stdout) = &mut *self.pipes.borrow_mut();
        writeln!(stdin, "{request}")?;
        stdin.flush()?;
        let mut answer = String::new();
        stdout.read_line(&mut answer)?;
        Ok(answer)
    }
}
