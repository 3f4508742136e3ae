//! Regular segmented reductions of the Futhark thesis: `[m][length]` items of `i32`, 2^20 or 2^26 in all.
//!
//! Columns of `thesis.csv`: the table; the operator (`sum` in any order, `ordered`: a sum that keeps to the order, `mss`: the
//! maximum segment sum); logarithms of the number of items and of segments; the strategy; threads of a group; groups of a
//! segment; items of a thread; microseconds without transposing (`raw_us`, the thesis's figures 5.6 and 5.7) and with
//! (`final_us`, figures 5.10 and 5.11). Arrays shorter than L2 are read from memory: calls rotate over copies. But what was just
//! transposed is still in L2, so that a short array may take less time with its transpose than without.
//!
//! | table | rows |
//! | --- | --- |
//! | `segments` | all strategies over m; one segment is the reduction of an array, chapter 4 |
//! | `left_out` | a call would take longer than two seconds; twice the time of half as long segments |
//! | `chunks` | one segment, cut among numbers of groups around what the card holds at once (5.2.2's tail effect); the first step alone, without its transpose, is `raw_us` |
//! | `combine` | one segment, by how a group combines its values: what divergence costs; the first step alone is `raw_us` |
//!
//! Strategies are named after their kernels. `large` takes as many groups as the card holds at once, and where order matters chunks
//! that are powers of two, transposed; `large_chunk_1` a thread for each item, where that is another thing; `scan` is the baseline.
//! `loop_in_map` of up to 128 segments, which are a single group, has rows of groups of 256 alone. In `chunks`, where order matters,
//! zeros fill the last chunks up, since rows are transposed whole: `groups * group * chunk` items. A call that takes longer than
//! 0.1 s is timed once.
//!
//! `thesis_chooser.csv` has what a choice after listing 5.4 loses against the best of `large`, `small` and `loop_in_map` with groups of
//! 256: the mean (geometric) and the worst of the quotients over m. Thresholds are `thesis` (segments up to half a group are short,
//! and many are as many as the card holds threads) and `fitted` (those with the least mean).

use std::{ptr, thread};

use warpfold_gpu_kernels::ladder::thesis::{
    CONTIGUOUS, STRIDED, ScanParams, Strategy, TRANSPOSED, ThesisParams, Thresholds, choose, room_bytes,
    segments_of_group, split,
};
use warpfold_monoid::{MaxSegmentSum, Monoid, Ordered, Sum};

use crate::{
    harness::{Array, Failure, Gpu, Kernel, Report, values},
    transpose::Transposer,
};

/// Microseconds of a sample.
const SAMPLE: f64 = 2e3;

/// What would take longer, in microseconds, is not called.
const TOO_LONG: f64 = 2e6;

/// Group sizes of the tables.
const GROUPS: [u32; 4] = [128, 256, 512, 1024];

/// The group size at which strategies are chosen between.
const CHOICE: u32 = 256;

/// An operator whose strategies are exported.
pub trait Exported: Monoid<Item = i32, Output = i32> + Default {
    /// Its name in the tables.
    const NAME: &str;
    /// Its module.
    const MODULE: &str;
    /// The result of a segment, by another way than the operator's own.
    fn oracle(segment: &[i32]) -> i32;
}

impl Exported for Sum<i32> {
    const NAME: &str = "sum";
    const MODULE: &str = "thesis_sum";
    fn oracle(segment: &[i32]) -> i32 {
        crate::harness::sum(segment)
    }
}

impl Exported for Ordered<Sum<i32>> {
    const NAME: &str = "ordered";
    const MODULE: &str = "thesis_ordered";
    fn oracle(segment: &[i32]) -> i32 {
        crate::harness::sum(segment)
    }
}

impl Exported for MaxSegmentSum<i32> {
    const NAME: &str = "mss";
    const MODULE: &str = "thesis_mss";
    /// Kadane's algorithm.
    fn oracle(segment: &[i32]) -> i32 {
        let (mut best, mut here) = (0_i32, 0_i32);
        for &item in segment {
            here = here.wrapping_add(item).max(0);
            best = best.max(here);
        }
        best
    }
}

/// Values whose segment sums stay within `i32`, and whose maximum segment sums are none of the trivial ones.
pub fn small_values(n: usize) -> Vec<i32> {
    values(n).into_iter().map(|value| value % 17).collect()
}

/// Every segment's result.
pub fn oracles<Op: Exported>(items: &[i32], segments: usize) -> Vec<i32> {
    let length = items.len() / segments;
    let part = segments.div_ceil(16);
    let mut results = vec![0; segments];
    if segments < 16 {
        for (result, segment) in results.iter_mut().zip(items.chunks(length)) {
            *result = Op::oracle(segment);
        }
        return results;
    }
    thread::scope(|scope| {
        for (results, items) in results.chunks_mut(part).zip(items.chunks(part * length)) {
            scope.spawn(move || {
                for (result, segment) in results.iter_mut().zip(items.chunks(length)) {
                    *result = Op::oracle(segment);
                }
            });
        }
    });
    results
}

/// The kernels of an operator, an array, and room for whatever they leave.
pub struct Bench<'a, Op: Exported> {
    pub gpu: &'a Gpu,
    pub n: u64,
    pub host: Vec<i32>,
    pub copies: Vec<Array<i32>>,
    turned: Vec<Array<i32>>,
    pub partials: Array<Op::Acc>,
    pub output: Array<i32>,
    flags: Array<u8>,
    scanned: Array<Op::Acc>,
    transposer: Transposer<'a>,
}

/// A reduction, of one launch or more, that can be called again and again.
pub struct Plan<'a, Op: Exported> {
    bench: &'a Bench<'a, Op>,
    /// As how many rows of how many items the array is transposed, if it is.
    turn: Option<[u64; 2]>,
    /// What is launched: kernel, blocks, threads, bytes of shared memory, parameters.
    steps: Vec<Step<'a, Op>>,
}

pub struct Step<'a, Op: Exported> {
    pub kernel: Kernel<'a>,
    pub blocks: u64,
    pub threads: u32,
    pub shared: usize,
    pub params: Params<Op>,
}

/// Parameters of an entry.
#[derive(Clone, Copy)]
pub enum Params<Op: Exported> {
    /// Of a reduction.
    Reduce(ThesisParams<Op>),
    /// Of a reduction by several threads a segment.
    Parts(warpfold_gpu_kernels::ladder::future::PartsParams<Op>),
    /// Of what is around a scan.
    Scan(ScanParams<Op>),
    /// Of a run in order.
    Runs(warpfold_gpu_kernels::ladder::ordered::OrderedParams<Op>),
}

impl<'a, Op: Exported> Bench<'a, Op> {
    pub fn new(gpu: &'a Gpu, log: u32) -> Result<Self, Failure> {
        Self::padded(gpu, log, 0)
    }

    /// With so many zeros behind the items.
    fn padded(gpu: &'a Gpu, log: u32, zeros: usize) -> Result<Self, Failure> {
        let n = 1_usize << log;
        let mut host = small_values(n);
        host.resize(n + zeros, 0);
        let copies = gpu.rotation(&host)?;
        let turned = copies.iter().map(|_| gpu.zeros(n + zeros)).collect::<Result<_, _>>()?;
        host.truncate(n);
        Ok(Bench {
            gpu,
            n: n as u64,
            copies,
            turned,
            partials: gpu.zeros((n / 32).max(1 << 14))?,
            output: gpu.zeros(n)?,
            flags: gpu.zeros(n + (1 << 14))?,
            scanned: gpu.zeros(n + (1 << 14))?,
            transposer: Transposer::new(gpu, "32_by_4")?,
            host,
        })
    }

    pub fn kernel(&self, name: &str) -> Result<Kernel<'a>, Failure> {
        self.gpu.kernel(Op::MODULE, name)
    }

    pub fn params(&self, segments: u64) -> ThesisParams<Op> {
        ThesisParams {
            items: ptr::null(),
            partials: ptr::null(),
            output: self.output.ptr(),
            values: ptr::null_mut(),
            segments,
            length: self.n / segments,
            groups: 1,
            chunk: self.n / segments,
            loading: CONTIGUOUS,
            op: Op::default(),
        }
    }

    /// *Large*, its first step by a kernel of that name, and its second step, if there are several groups a segment.
    pub fn large(
        &self,
        name: &str,
        segments: u64,
        threads: u32,
        (groups, chunk): (u64, u64),
        loading: u32,
    ) -> Result<Plan<'_, Op>, Failure> {
        let mut params = self.params(segments);
        (params.groups, params.chunk, params.loading) = (groups, chunk, loading);
        let shared = room_bytes::<Op::Acc>(threads as usize);
        if groups > 1 {
            (params.output, params.values) = (ptr::null_mut(), self.partials.ptr());
            let needed = (segments * groups) as usize;
            if needed > self.partials.len() {
                return Err(format!("{needed} partial values").into());
            }
        }
        let kernel = self.kernel(name)?;
        let blocks = segments * groups;
        let mut steps = vec![Step { kernel, blocks, threads, shared, params: Params::Reduce(params) }];
        if groups > 1 {
            steps.push(self.second(segments, groups, threads)?);
        }
        Ok(Plan { bench: self, turn: (loading == TRANSPOSED).then_some([self.n / chunk, chunk]), steps })
    }

    /// The second step: few partial values share a group, as many as half of one or more have a group.
    pub fn second(&self, segments: u64, groups: u64, threads: u32) -> Result<Step<'a, Op>, Failure> {
        let mut params = self.params(segments);
        params.partials = self.partials.ptr();
        params.length = groups;
        params.chunk = groups.div_ceil(threads as u64);
        let shared = room_bytes::<Op::Acc>(threads as usize);
        let (name, blocks) = if groups <= threads as u64 / 2 {
            ("small_partials", segments.div_ceil(segments_of_group(threads as u64, groups)))
        } else {
            ("large_partials", segments)
        };
        Ok(Step { kernel: self.kernel(name)?, blocks, threads, shared, params: Params::Reduce(params) })
    }

    /// A strategy of one launch.
    pub fn single(
        &self,
        kernel: Kernel<'a>,
        segments: u64,
        (threads, of_group): (u32, u64),
        loading: u32,
        shared: usize,
    ) -> Plan<'_, Op> {
        let mut params = self.params(segments);
        params.loading = loading;
        let blocks = segments.div_ceil(of_group);
        let turn = (loading == TRANSPOSED).then_some([segments, params.length]);
        let steps = vec![Step { kernel, blocks, threads, shared, params: Params::Reduce(params) }];
        Plan { bench: self, turn, steps }
    }

    /// The scan with flags, and what is around it.
    fn scan(&self, segments: u64, threads: u32) -> Result<Plan<'_, Op>, Failure> {
        let shared = room_bytes::<Op::Acc>(threads as usize);
        let scan = self.kernel("scan_runs")?;
        // As many groups as the card holds at once, of whole windows.
        let held = scan.resident_with(threads, shared)? as u64 * self.gpu.multiprocessors as u64;
        let run = self.n.div_ceil(held.min(1 << 13)).next_multiple_of(threads as u64);
        let groups = self.n.div_ceil(run);
        let n = self.n as usize;
        let params = ScanParams {
            items: ptr::null(),
            flags: self.flags.ptr(),
            values: self.scanned.ptr(),
            totals: self.scanned.ptr().wrapping_add(n),
            total_flags: self.flags.ptr().wrapping_add(n),
            output: self.output.ptr(),
            n: self.n,
            length: self.n / segments,
            run,
            op: Op::default(),
        };
        let of_totals = ScanParams {
            flags: params.total_flags,
            values: params.totals,
            totals: ptr::null_mut(),
            n: groups,
            run: groups,
            ..params
        };
        let step = |name: &str, blocks, params| -> Result<Step<'a, Op>, Failure> {
            Ok(Step { kernel: self.kernel(name)?, blocks, threads, shared, params: Params::Scan(params) })
        };
        let mut steps = vec![step("mark", 1056.min(self.n.div_ceil(threads as u64)), params)?];
        steps.push(step("scan_runs", groups, params)?);
        if groups > 1 {
            steps.push(step("scan_runs", 1, of_totals)?);
            steps.push(step("propagate", groups, params)?);
        }
        steps.push(step("gather", segments.div_ceil(threads as u64), params)?);
        Ok(Plan { bench: self, turn: None, steps })
    }
}

impl<'a, Op: Exported> Plan<'a, Op> {
    pub fn of(bench: &'a Bench<'a, Op>, turn: Option<[u64; 2]>, steps: Vec<Step<'a, Op>>) -> Self {
        Plan { bench, turn, steps }
    }

    /// Of one segment that is transposed: with the zeros behind the items, so that there are so many chunks.
    fn padded(mut self, chunks: u64) -> Self {
        if let (Some([rows, chunk]), Params::Reduce(params)) = (&mut self.turn, &mut self.steps[0].params) {
            (*rows, params.length) = (chunks, chunks * *chunk);
        }
        self
    }

    /// Launches what reduces copy `number` of the array, and if `turns`, transposes it before.
    fn call(&self, number: usize, turns: bool, steps: usize) -> Result<(), Failure> {
        let bench = self.bench;
        let copy = number % bench.copies.len();
        let mut items: *const i32 = bench.copies[copy].ptr();
        if let Some([height, width]) = self.turn {
            let to = bench.turned[copy].ptr();
            if turns {
                bench.transposer.run(items, to, height, width)?;
            }
            items = to;
        }
        for (i, step) in self.steps[..steps].iter().enumerate() {
            let Step { kernel, blocks, threads, shared, params } = step;
            // SAFETY: the entries' parameters, whose memory is the bench's and as long as they say.
            unsafe {
                match *params {
                    Params::Reduce(mut params) => {
                        params.items = items;
                        kernel.launch_with(*blocks, *threads, *shared, &params)?;
                    }
                    Params::Parts(mut params) => {
                        params.of.items = items;
                        kernel.launch_with(*blocks, *threads, *shared, &params)?;
                    }
                    Params::Scan(mut params) => {
                        // The second scan is that of what the first one left.
                        params.items = if i == 2 { ptr::null() } else { items };
                        kernel.launch_with(*blocks, *threads, *shared, &params)?;
                    }
                    Params::Runs(mut params) => {
                        params.items = items;
                        kernel.launch_with(*blocks, *threads, *shared, &params)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks the results, and times the reduction without and with its transposes.
    pub fn times(&self, what: &str, expected: &[i32]) -> Result<[f64; 2], Failure> {
        self.check(what, expected)?;
        let all = self.steps.len();
        let bench = self.bench;
        let raw = bench.gpu.time_for(SAMPLE, &|number| self.call(number, false, all))?;
        let last = match self.turn {
            Some(_) => bench.gpu.time_for(SAMPLE, &|number| self.call(number, true, all))?,
            None => raw,
        };
        Ok([raw, last])
    }

    /// The time of the first step alone, and that of all with the transpose.
    pub fn first_and_all(&self, what: &str, expected: &[i32]) -> Result<[f64; 2], Failure> {
        self.check(what, expected)?;
        let gpu = self.bench.gpu;
        let first = gpu.time_for(SAMPLE, &|number| self.call(number, false, 1))?;
        Ok([first, gpu.time_for(SAMPLE, &|number| self.call(number, true, self.steps.len()))?])
    }

    /// All copies are reduced once, so that all are transposed; the last one's results must be right.
    fn check(&self, what: &str, expected: &[i32]) -> Result<(), Failure> {
        let bench = self.bench;
        bench.gpu.clear(&bench.output)?;
        for number in 0..bench.copies.len() {
            self.call(number, true, self.steps.len())?;
        }
        let found =
            bench.output.read(bench.gpu, 0, expected.len()).map_err(|error| format!("{what}: {error}"))?;
        match found.iter().zip(expected).position(|(found, expected)| found != expected) {
            None => Ok(()),
            Some(at) => {
                Err(format!("{what} is wrong: segment {at} is {}, not {}", found[at], expected[at]).into())
            }
        }
    }
}

pub fn run(gpu: &Gpu) -> Result<(), Failure> {
    let columns = "table,op,log2_n,log2_m,strategy,group,groups,chunk,raw_us,final_us";
    let what = "items of i32; microseconds a call, medians";
    let mut report = Report::new(gpu, "thesis", what, columns);
    let mut chooser = Vec::new();
    for log in [20, 26] {
        segments::<Sum<i32>>(gpu, log, &mut report, &mut chooser)?;
        segments::<Ordered<Sum<i32>>>(gpu, log, &mut report, &mut chooser)?;
        segments::<MaxSegmentSum<i32>>(gpu, log, &mut report, &mut chooser)?;
        chunks::<Sum<i32>>(gpu, log, &mut report)?;
        chunks::<Ordered<Sum<i32>>>(gpu, log, &mut report)?;
        chunks::<MaxSegmentSum<i32>>(gpu, log, &mut report)?;
        combine(gpu, log, &mut report)?;
    }
    report.finish()?;
    let columns = "op,log2_n,thresholds,many,short,mean,worst";
    let what = "what the choice of listing 5.4 takes beside the best strategy, groups of 256";
    let mut report = Report::new(gpu, "thesis_chooser", what, columns);
    for row in chooser {
        report.row(row);
    }
    report.finish()
}

/// Final times of the three strategies, where there are any, by number of segments.
type Times = Vec<(u64, [Option<f64>; 3])>;

fn segments<Op: Exported>(
    gpu: &Gpu,
    log: u32,
    report: &mut Report,
    chooser: &mut Vec<String>,
) -> Result<(), Failure> {
    let bench = Bench::<Op>::new(gpu, log)?;
    let mut times = Times::new();
    // What a thread a segment takes, of the last number of segments.
    let mut by_threads = 0.0;
    for log_m in (0..=log).rev() {
        let (m, length) = (1_u64 << log_m, bench.n >> log_m);
        let expected = oracles::<Op>(&bench.host, m as usize);
        let (mut of_choice, mut of_length) = ([None; 3], 0.0);
        let mut row = |strategy: &str, threads: u32, groups: u64, chunk: u64, plan: Plan<Op>| {
            let what = format!("{}, {m} of {length}, {strategy}, {threads}", Op::NAME);
            let [raw, last] = plan.times(&what, &expected)?;
            report.row(format_args!(
                "segments,{},{log},{log_m},{strategy},{threads},{groups},{chunk},{raw:.2},{last:.2}",
                Op::NAME
            ));
            if threads == CHOICE {
                match strategy {
                    "large" => of_choice[Strategy::Large as usize] = Some(last),
                    "small" => of_choice[Strategy::Small as usize] = Some(last),
                    "loop_in_map" => of_choice[Strategy::LoopInMap as usize] = Some(last),
                    _ => {}
                }
            }
            Ok::<f64, Failure>(last)
        };
        for threads in GROUPS {
            let size = threads as u64;
            let shared = room_bytes::<Op::Acc>(threads as usize);
            // As many groups as the card holds at once.
            let hint = held::<Op>(gpu, threads)?;
            let (mut groups, mut chunk) = split(m, length, size, hint);
            let mut loading = STRIDED;
            if !Op::COMMUTATIVE {
                // Transposed rows are whole: the chunk becomes a power of two, as the length is.
                chunk = chunk.next_power_of_two();
                groups = length.div_ceil(size * chunk);
                loading = if chunk > 1 { TRANSPOSED } else { CONTIGUOUS };
            }
            row(
                "large",
                threads,
                groups,
                chunk,
                bench.large("large", m, threads, (groups, chunk), loading)?,
            )?;
            let ones = length.div_ceil(size);
            if chunk > 1 && (m * ones) as usize <= bench.partials.len() {
                let plan = bench.large("large", m, threads, (ones, 1), CONTIGUOUS)?;
                row("large_chunk_1", threads, ones, 1, plan)?;
            }
            if length <= size {
                let of_group = segments_of_group(size, length);
                let plan = bench.single(bench.kernel("small")?, m, (threads, of_group), CONTIGUOUS, shared);
                row("small", threads, 1, 1, plan)?;
            }
            // Where one group has all segments its size is of no interest.
            if (m > GROUPS[0].into() || threads == CHOICE) && 2.0 * by_threads <= TOO_LONG {
                let plan = bench.single(bench.kernel("loop_in_map")?, m, (threads, size), TRANSPOSED, 0);
                let last = row("loop_in_map", threads, 1, length, plan)?;
                if threads == CHOICE {
                    of_length = last;
                }
            }
            row("scan", threads, 1, 1, bench.scan(m, threads)?)?;
        }
        if 2.0 * by_threads > TOO_LONG {
            of_length = 2.0 * by_threads;
            report.row(format_args!(
                "left_out,{},{log},{log_m},loop_in_map,{CHOICE},1,{length},{of_length:.0},{of_length:.0}",
                Op::NAME
            ));
        }
        by_threads = of_length;
        times.push((m, of_choice));
    }
    let n = bench.n;
    let thesis = Thresholds { many: 2048 * gpu.multiprocessors as u64, short: CHOICE as u64 / 2 };
    let mut best = (f64::INFINITY, thesis);
    for many in (0..=log + 1).map(|log| 1_u64 << log) {
        for short in (0..=CHOICE.ilog2()).map(|log| 1_u64 << log) {
            let at = Thresholds { many, short };
            if let Some([mean, _]) = regret(&times, n, at)
                && mean < best.0
            {
                best = (mean, at);
            }
        }
    }
    for (name, at) in [("thesis", thesis), ("fitted", best.1)] {
        let Some([mean, worst]) = regret(&times, n, at) else { continue };
        let Thresholds { many, short } = at;
        chooser.push(format!("{},{log},{name},{many},{short},{mean:.3},{worst:.3}", Op::NAME));
    }
    Ok(())
}

/// The mean and the worst quotient of the chosen strategy's time and the best one's; `None` if a strategy is chosen where it was
/// not measured.
fn regret(times: &Times, n: u64, at: Thresholds) -> Option<[f64; 2]> {
    let (mut logs, mut worst) = (0.0, 1.0_f64);
    for (m, of) in times {
        let best = of.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        let quotient = of[choose(*m, n / m, at) as usize]? / best;
        logs += quotient.ln();
        worst = worst.max(quotient);
    }
    Some([(logs / times.len() as f64).exp(), worst])
}

/// Numbers of groups of so many threads, around what the card holds at once.
fn group_counts(held: u64, most: u64) -> Vec<u64> {
    let mut counts = vec![
        held / 4,
        held / 2,
        held - 1,
        held,
        held + 1,
        held + held / 8,
        held + held / 2,
        2 * held,
        2 * held + 1,
        4 * held,
        16 * held,
    ];
    counts.retain(|groups| *groups < most);
    counts.push(most);
    counts
}

/// How many groups of so many threads the card holds at once.
fn held<Op: Exported>(gpu: &Gpu, threads: u32) -> Result<u64, Failure> {
    let shared = room_bytes::<Op::Acc>(threads as usize);
    let large = gpu.kernel(Op::MODULE, "large")?;
    Ok(large.resident_with(threads, shared)? as u64 * gpu.multiprocessors as u64)
}

/// One segment, by the number of groups.
fn chunks<Op: Exported>(gpu: &Gpu, log: u32, report: &mut Report) -> Result<(), Failure> {
    let n = 1_u64 << log;
    let mut shapes = Vec::new();
    for threads in GROUPS {
        let size = u64::from(threads);
        for groups in group_counts(held::<Op>(gpu, threads)?, n.div_ceil(size)) {
            shapes.push((threads, groups, n.div_ceil(groups * size)));
        }
    }
    let most = shapes.iter().map(|(threads, groups, chunk)| u64::from(*threads) * groups * chunk).max();
    let zeros = if Op::COMMUTATIVE { 0 } else { most.unwrap_or(n) - n };
    let bench = Bench::<Op>::padded(gpu, log, zeros as usize)?;
    let expected = oracles::<Op>(&bench.host, 1);
    for (threads, groups, chunk) in shapes {
        let loading = match (Op::COMMUTATIVE, chunk) {
            (true, _) => STRIDED,
            (false, 1) => CONTIGUOUS,
            _ => TRANSPOSED,
        };
        let plan = bench.large("large", 1, threads, (groups, chunk), loading)?;
        let plan = plan.padded(groups * u64::from(threads));
        let [first, all] =
            plan.first_and_all(&format!("{}, {groups} groups of {threads}", Op::NAME), &expected)?;
        report.row(format_args!(
            "chunks,{},{log},0,large,{threads},{groups},{chunk},{first:.2},{all:.2}",
            Op::NAME
        ));
    }
    Ok(())
}

/// One segment, by how groups combine.
fn combine(gpu: &Gpu, log: u32, report: &mut Report) -> Result<(), Failure> {
    let bench = Bench::<Sum<i32>>::new(gpu, log)?;
    let expected = oracles::<Sum<i32>>(&bench.host, 1);
    for threads in GROUPS {
        let (held, most) = (held::<Sum<i32>>(gpu, threads)?, bench.n.div_ceil(u64::from(threads)));
        for name in ["large", "large_interleaved", "large_compact", "large_shuffles"] {
            for groups in [held.min(most), most] {
                let chunk = bench.n.div_ceil(groups * u64::from(threads));
                let plan = bench.large(name, 1, threads, (groups, chunk), STRIDED)?;
                let what = format!("{name}, {groups} groups of {threads}");
                let [first, all] = plan.first_and_all(&what, &expected)?;
                report.row(format_args!(
                    "combine,sum,{log},0,{name},{threads},{groups},{chunk},{first:.2},{all:.2}"
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_regret_is_that_of_what_is_chosen() {
        let times: Times = vec![
            (1, [Some(2.0), None, None]),
            (1 << 10, [Some(4.0), Some(3.0), Some(1.0)]),
            (1 << 20, [Some(9.0), Some(2.0), Some(4.0)]),
        ];
        let n = 1 << 20;
        // The best, the second, the best.
        let found = regret(&times, n, Thresholds { many: 1 << 30, short: 1 << 10 }).unwrap();
        assert!((found[0] - 3.0_f64.cbrt()).abs() < 1e-12);
        assert_eq!(found[1], 3.0);
        // Not measured.
        assert_eq!(regret(&times, n, Thresholds { many: 1, short: 0 }), None);
    }

    #[test]
    fn groups_are_counted_up_to_one_for_each_item_of_a_thread() {
        assert_eq!(group_counts(8, 1000), [2, 4, 7, 8, 9, 9, 12, 16, 17, 32, 128, 1000]);
        assert_eq!(group_counts(8, 9), [2, 4, 7, 8, 9]);
    }

    #[test]
    fn oracles_agree_with_the_operators() {
        let items = small_values(1 << 10);
        for segments in [1, 4, 64, 1 << 10] {
            let by = |op: &dyn Fn(&[i32]) -> i32| -> Vec<i32> {
                items.chunks((1 << 10) / segments).map(op).collect()
            };
            let sum = Sum::<i32>::new();
            assert_eq!(
                oracles::<Sum<i32>>(&items, segments),
                by(&|s| warpfold_monoid::tree::reduce(&sum, s))
            );
            let mss = MaxSegmentSum::<i32>::default();
            assert_eq!(
                oracles::<MaxSegmentSum<i32>>(&items, segments),
                by(&|s| warpfold_monoid::tree::reduce(&mss, s))
            );
        }
    }
}
