//! Reductions by tag, by key and by group on a GPU: by CUDA events on a stream.
//!
//! `cargo bench --features cuda --bench keys`, or `bin/bench-keys` of a bundle; words after `--` choose sections (`tags`, `many_tags`,
//! `tag_ops`, `keys`, `groups`). All calls of a line read the same arrays, which at 2^26 pairs are ten times a cache. CSV goes to standard output,
//! and to `keys.csv` in the folder that `WARPFOLD_OUT` names. The limit is what `benches/peers/cub.cu` measures in the same call, whose
//! section `keys` has runs of equal keys too. Groups are checked before they are timed; what other libraries take for them
//! `benches/peers/groupby.py` measures.

use std::{error::Error, fmt::Write as _, io::Write as _, ptr};

use device::{Done, Events, copy, describe, wants};
use warpfold::{
    Engine, Fast, Max, Mean, Monoid, Sum,
    cuda::{
        DeviceArray, DeviceView, DeviceViewMut, StreamRef,
        cust::sys::{self, CUstream},
    },
};

#[path = "support/device.rs"]
mod device;

/// Pairs, at most.
const N: usize = 1 << 26;

fn main() -> Result<(), Box<dyn Error>> {
    let Some((engine, _context)) = device::gpu()? else { return Ok(()) };
    let mut bench = Bench::new(&engine)?;
    if wants("tags") {
        for k in [1, 16, 64, 256, 1024, 4096] {
            bench.tags_are(|random| ((random as u64 * k) >> 32) as i32)?;
            bench.tags("uniform", "sum_f32", Sum::<f32>::new(), k, N)?;
            bench.tags("uniform", "sum_f32", Sum::<f32>::new(), k, 1 << 20)?;
            bench.tags("uniform", "fast_sum_f32", Fast(Sum::<f32>::new()), k, N)?;
            bench.tags("uniform", "fast_sum_f32", Fast(Sum::<f32>::new()), k, 1 << 20)?;
            bench.tags_are(|_| (k / 2) as i32)?;
            bench.tags("one", "sum_f32", Sum::<f32>::new(), k, N)?;
            bench.tags("one", "fast_sum_f32", Fast(Sum::<f32>::new()), k, N)?;
            // Half of the items have one tag.
            bench.tags_are(|random| if random & 1 == 0 { 0 } else { ((random as u64 * k) >> 32) as i32 })?;
            bench.tags("half", "sum_f32", Sum::<f32>::new(), k, N)?;
            bench.tags("half", "fast_sum_f32", Fast(Sum::<f32>::new()), k, N)?;
        }
    }
    if wants("many_tags") {
        for k in [1 << 14, 1 << 16, 1 << 20] {
            let any = |random: u32| ((random as u64 * k) >> 32) as i32;
            bench.tags_are(any)?;
            bench.many_tags("uniform", k)?;
            bench.tags("uniform", "sum_f32", Sum::<f32>::new(), k, N)?;
            bench.tags_are(|_| (k / 2) as i32)?;
            bench.many_tags("one", k)?;
            bench.tags_are(|random| if random & 1 == 0 { 0 } else { any(random) })?;
            bench.many_tags("half", k)?;
            let mut i = 0;
            bench.tags_are(|_| {
                i += 1;
                ((i - 1) * k / N as u64) as i32
            })?;
            bench.many_tags("sorted", k)?;
        }
    }
    if wants("tag_ops") {
        for k in [16, 64, 256, 4096] {
            bench.tags_are(|random| ((random as u64 * k) >> 32) as i32)?;
            bench.tags("uniform", "sum_i32", Sum::<i32>::new(), k, N)?;
            bench.tags("uniform", "max_f32", Max::<f32>::new(), k, N)?;
            bench.tags("uniform", "mean_f32", Mean::<f32>::new(), k, N)?;
            bench.tags("uniform", "sum_f64", Sum::<f64>::new(), k, N / 2)?;
        }
    }
    if wants("keys") {
        for log in [0, 1, 2, 4, 6, 10, 16, 20, 26] {
            let mut i = 0_u64;
            bench.tags_are(|_| {
                i += 1;
                ((i - 1) >> log) as i32
            })?;
            bench.keys("sum_f32_by_i32", 1 << log, N)?;
            if log < 20 {
                bench.keys("sum_f32_by_i32", 1 << log, 1 << 20)?;
            }
        }
        // Runs of any lengths, 8 on average.
        let mut key = 0;
        bench.tags_are(|random| {
            key += (random >> 29 == 0) as i32;
            key
        })?;
        bench.keys("sum_f32_by_i32_random", 8, N)?;
    }
    if wants("groups") {
        bench.groups()?;
    }
    bench.report()
}

/// A number that all bits of a smaller one decide, each number another.
fn mixed(number: u64) -> u64 {
    let a = (number.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let b = (a ^ a >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    b ^ b >> 31
}

/// Enqueues a call.
type Enqueue<'a> = dyn Fn(&Bench<'_>) -> Result<(), Box<dyn Error>> + 'a;

/// What the measurements share.
struct Bench<'a> {
    engine: &'a Engine,
    tags: DeviceArray<i32>,
    values: DeviceArray<f32>,
    outputs: [DeviceArray<u64>; 2],
    count: DeviceArray<u64>,
    host: Vec<i32>,
    stream: CUstream,
    events: Events,
    text: String,
}

impl<'a> Bench<'a> {
    fn new(engine: &'a Engine) -> Result<Self, Box<dyn Error>> {
        let mut random = generator();
        let block: Vec<f32> = (0..N).map(|_| (random() >> 16) as f32 / (1 << 15) as f32 - 1.0).collect();
        // SAFETY: filled before anything reads them; results are written before they are read.
        let (tags, outputs) = unsafe {
            let uninit = || DeviceArray::<u64>::uninit(engine, N);
            (DeviceArray::<i32>::uninit(engine, N)?, [uninit()?, uninit()?])
        };
        let values = DeviceArray::from_slice(engine, &block)?;
        let count = DeviceArray::from_slice(engine, &[0_u64])?;
        let mut stream = ptr::null_mut();
        // SAFETY: a valid place for the answer; a context is current.
        unsafe { sys::cuStreamCreate(&mut stream, 1) }.done()?;
        let text = "section,operation,shape,n,k_or_run,stream_us\n".to_owned();
        let (events, host) = (Events::new()?, vec![0; N]);
        Ok(Bench { engine, tags, values, outputs, count, host, stream, events, text })
    }

    /// Fills the tags, or keys, each from a random number.
    fn tags_are(&mut self, mut tag: impl FnMut(u32) -> i32) -> Result<(), Box<dyn Error>> {
        let mut random = generator();
        self.host.iter_mut().for_each(|place| *place = tag(random()));
        // SAFETY: the array's own memory, which no work uses by now.
        unsafe { copy(self.tags.address(), &self.host) }
    }

    fn tags<Op: Monoid>(
        &mut self,
        shape: &str,
        name: &str,
        op: Op,
        k: u64,
        n: usize,
    ) -> Result<(), Box<dyn Error>> {
        let reducer = self.engine.by_tag(op, k)?;
        let us = self.time(&|bench| {
            // SAFETY: within the arrays, which live as long; nobody looks meanwhile. Any bits are values.
            unsafe {
                let tags = DeviceView::<i32>::from_raw(bench.tags.address(), n as u64);
                let values = DeviceView::<Op::Item>::from_raw(bench.values.address(), n as u64);
                let mut results = DeviceViewMut::<Op::Output>::from_raw(bench.outputs[0].address(), k);
                Ok(reducer.enqueue::<i32, _, _, _>(
                    &tags,
                    &values,
                    &mut results,
                    StreamRef::from_raw(bench.stream),
                )?)
            }
        })?;
        writeln!(self.text, "tags,{name},{shape},{n},{k},{us:.2}")?;
        Ok(())
    }

    /// Sums whose order is free, checked.
    fn many_tags(&mut self, shape: &str, k: u64) -> Result<(), Box<dyn Error>> {
        let values = self.values.to_vec()?;
        let mut sums = vec![(0.0_f64, 0.0_f64, 0_i32); k as usize];
        for (&tag, &value) in self.host.iter().zip(&values) {
            let (sum, magnitude, bits) = &mut sums[tag as usize];
            *sum += value as f64;
            *magnitude += value.abs() as f64;
            *bits = bits.wrapping_add(value.to_bits() as i32);
        }
        self.tags(shape, "fast_sum_f32", Fast(Sum::<f32>::new()), k, N)?;
        let off = |&(&bits, sum): &(&u32, &(f64, f64, i32))| {
            let error = (f32::from_bits(bits) as f64 - sum.0).abs();
            error > 1.2e-7 * sum.0.abs() + 1e-12 * sum.1
        };
        let found = self.words(k as usize)?;
        if let Some(tag) = found.iter().zip(&sums).position(|pair| off(&pair)) {
            return Err(format!("tag {tag} of {k} is {}, {shape}", f32::from_bits(found[tag])).into());
        }
        self.tags(shape, "sum_i32", Sum::<i32>::new(), k, N)?;
        let found = self.words(k as usize)?;
        match found.iter().zip(&sums).position(|(&bits, sum)| bits as i32 != sum.2) {
            Some(tag) => Err(format!("tag {tag} of {k} is {}, {shape}", found[tag]).into()),
            None => Ok(()),
        }
    }

    /// The first words of the outputs, once what writes them has ended.
    fn words(&self, count: usize) -> Result<Vec<u32>, Box<dyn Error>> {
        let mut words = vec![0_u32; count];
        // SAFETY: as much has been written there, and the events after it have been waited for.
        unsafe {
            sys::cuMemcpyDtoH_v2(words.as_mut_ptr().cast(), self.outputs[0].address(), 4 * count).done()?
        };
        Ok(words)
    }

    fn keys(&mut self, name: &str, run: u64, n: usize) -> Result<(), Box<dyn Error>> {
        let reducer = self.engine.by_key::<i32, _>(Sum::<f32>::new())?;
        let us = self.time(&|bench| {
            // SAFETY: as above.
            unsafe {
                let keys = DeviceView::<i32>::from_raw(bench.tags.address(), n as u64);
                let values = DeviceView::<f32>::from_raw(bench.values.address(), n as u64);
                let mut out_keys = DeviceViewMut::<i32>::from_raw(bench.outputs[0].address(), n as u64);
                let mut results = DeviceViewMut::<f32>::from_raw(bench.outputs[1].address(), n as u64);
                let mut count = DeviceViewMut::<u64>::from_raw(bench.count.address(), 1);
                let stream = StreamRef::from_raw(bench.stream);
                Ok(reducer.enqueue(&keys, &values, &mut out_keys, &mut results, &mut count, stream)?)
            }
        })?;
        writeln!(self.text, "keys,{name},runs,{n},{run},{us:.2}")?;
        Ok(())
    }

    /// Sums by random keys: numbers below that of the distinct ones, and random bits.
    fn groups(&mut self) -> Result<(), Box<dyn Error>> {
        let reducer = self.engine.group_by(Sum::<f32>::new())?;
        // SAFETY: filled before anything reads it.
        let keys = unsafe { DeviceArray::<i64>::uninit(self.engine, N)? };
        let values = self.values.to_vec()?;
        let mut host = vec![0_i64; N];
        for distinct in [10, 1000, 100_000, 10_000_000] {
            let mut random = generator();
            let numbers: Vec<u32> = (0..N).map(|_| ((random() as u64 * distinct) >> 32) as u32).collect();
            let mut sums = vec![(0.0, false); distinct as usize];
            numbers.iter().zip(&values).for_each(|(&number, &value)| {
                let (sum, seen) = &mut sums[number as usize];
                (*sum, *seen) = (*sum + value as f64, true);
            });
            for shape in ["numbers", "bits"] {
                let key = |number: u64| if shape == "bits" { mixed(number) as i64 } else { number as i64 };
                host.iter_mut().zip(&numbers).for_each(|(place, &number)| *place = key(number.into()));
                // SAFETY: the array's own memory, which no work uses by now.
                unsafe { copy(keys.view().address(), &host)? };
                let enqueue = |bench: &Bench<'_>| -> Result<(), Box<dyn Error>> {
                    // SAFETY: as above.
                    unsafe {
                        let values = DeviceView::<f32>::from_raw(bench.values.address(), N as u64);
                        let mut out_keys =
                            DeviceViewMut::<i64>::from_raw(bench.outputs[0].address(), N as u64);
                        let mut results =
                            DeviceViewMut::<f32>::from_raw(bench.outputs[1].address(), N as u64);
                        let mut count = DeviceViewMut::<u64>::from_raw(bench.count.address(), 1);
                        let stream = StreamRef::from_raw(bench.stream);
                        Ok(reducer.enqueue::<i64, _, _, _, _, _>(
                            &keys,
                            &values,
                            &mut out_keys,
                            &mut results,
                            &mut count,
                            stream,
                        )?)
                    }
                };
                let us = self.time(&enqueue)?;
                let mut expected: Vec<(i64, f64)> = (0..distinct)
                    .filter(|&number| sums[number as usize].1)
                    .map(|number| (key(number), sums[number as usize].0))
                    .collect();
                expected.sort_by_key(|group| group.0);
                self.check(&expected)?;
                writeln!(self.text, "groups,sum_f32_by_i64,{shape},{N},{distinct},{us:.2}")?;
            }
        }
        Ok(())
    }

    /// Are these the groups that lie in the outputs?
    fn check(&self, expected: &[(i64, f64)]) -> Result<(), Box<dyn Error>> {
        let count = self.count.to_vec()?[0] as usize;
        if count != expected.len() {
            return Err(format!("{count} groups, and not {}", expected.len()).into());
        }
        let (mut keys, mut sums) = (vec![0_i64; count], vec![0_f32; count]);
        // SAFETY: as much has been written there, and the events after it have been waited for.
        unsafe {
            let (from, bytes) = (&self.outputs, |size| count * size);
            sys::cuMemcpyDtoH_v2(keys.as_mut_ptr().cast(), from[0].address(), bytes(8)).done()?;
            sys::cuMemcpyDtoH_v2(sums.as_mut_ptr().cast(), from[1].address(), bytes(4)).done()?;
        }
        for (group, (key, sum)) in expected.iter().enumerate() {
            let found = (keys[group], sums[group]);
            if found.0 != *key || (found.1 as f64 - sum).abs() > 1e-6 * sum.abs() + 1e-9 {
                return Err(format!("group {group} is {found:?}, and not {:?}", (key, sum)).into());
            }
        }
        Ok(())
    }

    /// The median time of a call, in microseconds, of calls one behind the other.
    fn time(&self, enqueue: &Enqueue<'_>) -> Result<f64, Box<dyn Error>> {
        let some = |count: usize| -> Result<f64, Box<dyn Error>> {
            self.events.record(0, self.stream);
            for _ in 0..count {
                enqueue(self)?;
            }
            self.events.record(1, self.stream);
            Ok(self.events.nanoseconds() / 1e3 / count as f64)
        };
        some(1)?;
        let first = some(2)?;
        let count = ((5e3 / first) as usize).clamp(2, 500);
        let mut samples = Vec::new();
        for _ in 0..5 {
            samples.push(some(count)?);
        }
        samples.sort_by(f64::total_cmp);
        Ok(samples[samples.len() / 2])
    }

    fn report(&self) -> Result<(), Box<dyn Error>> {
        let text = format!("# {}; {}\n{}", describe()?, self.engine.info(), self.text);
        print!("{text}");
        if let Some(folder) = std::env::var_os("WARPFOLD_OUT") {
            let path = std::path::Path::new(&folder).join("keys.csv");
            std::fs::File::create(path)?.write_all(text.as_bytes())?;
        }
        Ok(())
    }
}

/// Random numbers, the same each time.
fn generator() -> impl FnMut() -> u32 {
    let mut state = 7_u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    }
}
