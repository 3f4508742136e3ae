//! Every operator that is compiled ahead, on every type: simulator, CPU and GPU give the bits of the definition.

use std::any::TypeId;
use std::collections::BTreeSet;
use std::fmt::Debug;
#[cfg(feature = "cuda")]
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

#[cfg(feature = "cuda")]
use warpfold::cuda::{DeviceArray, DeviceView, DeviceViewMut, StreamRef};
use warpfold::{
    BUILTINS, Dot, Engine, Monoid, OnEmpty, Plain, Schedule, SimOptions, Value,
    monoid::{fused::Parts2, tree},
    source::{Array, Over, Zip2},
};

use crate::support::{
    Random,
    matrix::{Data, Visit, every},
};
#[cfg(feature = "cuda")]
use crate::support::{gpu, sizes};

/// Words before and after uploaded items, which no result may depend on.
#[cfg(feature = "cuda")]
const GUARD: usize = 16;

fn bytes<T: Plain>(value: &T) -> Vec<u8> {
    const { T::LAYOUT };
    // SAFETY: every byte of plain data is initialised.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast(), size_of::<T>()) }.to_vec()
}

/// Which items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ordinary,
    Special,
}

/// Items of one type, in memory whose alignment is known.
struct Stored {
    words: Vec<u128>,
    item_bytes: usize,
}

impl Stored {
    fn of<T: Plain>(n: usize, mut item: impl FnMut() -> T) -> Stored {
        let mut words = vec![0_u128; (n * size_of::<T>()).div_ceil(16)];
        for i in 0..n {
            // SAFETY: room for `n` items, aligned to 16 bytes, which is a multiple of their alignment.
            unsafe { words.as_mut_ptr().cast::<T>().add(i).write(item()) };
        }
        Stored { words, item_bytes: size_of::<T>() }
    }

    /// # Safety
    ///
    /// They are items of that type.
    unsafe fn items<T: Plain>(&self, start: usize, n: usize) -> &[T] {
        assert!(size_of::<T>() == self.item_bytes && (start + n) * self.item_bytes <= 16 * self.words.len());
        // SAFETY: in bounds, and the caller's promise.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast::<T>().add(start), n) }
    }
}

/// A result: its bytes (none where the host does not get to see them) and the value in words.
#[derive(Debug, PartialEq, Eq)]
struct Output {
    bytes: Vec<u8>,
    value: String,
}

fn result<Op: Monoid>(output: Op::Output, n: usize) -> Output
where
    Value<Op>: Debug,
{
    Output { bytes: bytes(&output), value: words(<Op::Empty as OnEmpty<Op::Output>>::value(output, n == 0)) }
}

/// What can be asked about one operator without naming its types. All stored items are those that `make` made.
struct Probe {
    name: &'static str,
    operator: TypeId,
    item_bytes: usize,
    make: fn(usize, Kind, u64) -> Stored,
    /// By the definition of the canonical tree, one item at a time.
    defined: fn(&Stored, usize, usize) -> Output,
    /// The value in words, by an engine on host memory.
    value: fn(&Engine, &Stored, usize, usize) -> String,
    #[cfg(feature = "cuda")]
    upload: fn(&Engine, &Stored) -> Vec<DeviceArray<u64>>,
    #[cfg(feature = "cuda")]
    gpu: fn(&Engine, &[DeviceArray<u64>], usize, usize) -> Output,
}

fn make<T: Data>(name: &str) -> fn(usize, Kind, u64) -> Stored {
    fn with<T: Data>(n: usize, seed: u64, item: fn(&mut Random) -> T) -> Stored {
        let mut random = Random::new(seed);
        Stored::of(n, || item(&mut random))
    }
    match name.contains("product") {
        false => |n, kind, seed| with(n, seed, if kind == Kind::Ordinary { T::ordinary } else { T::special }),
        true => |n, kind, seed| with(n, seed, if kind == Kind::Ordinary { T::factor } else { T::special }),
    }
}

fn words<T: Debug>(value: T) -> String {
    format!("{value:?}")
}

#[cfg(feature = "cuda")]
fn upload(engine: &Engine, stored: &Stored) -> DeviceArray<u64> {
    // Guard bytes of all ones before and after: NaNs, and far from 0.
    let mut words = vec![u64::MAX; GUARD];
    words.extend(stored.words.iter().flat_map(|word| [*word as u64, (*word >> 64) as u64]));
    words.extend([u64::MAX; GUARD]);
    DeviceArray::from_slice(engine, &words).unwrap()
}

/// Items of an uploaded array.
#[cfg(feature = "cuda")]
fn view<T: Plain>(array: &DeviceArray<u64>, start: usize, n: usize) -> DeviceView<'_, T> {
    let address = array.address() + (8 * GUARD + start * size_of::<T>()) as u64;
    // SAFETY: a part of the array, which lives as long as the view; items that `make` made.
    unsafe { DeviceView::from_raw(address, n as u64) }
}

struct Probes(Vec<Probe>);

impl Visit for Probes {
    fn op<Op: Monoid<Item: Data> + Default>(&mut self, name: &'static str)
    where
        Value<Op>: Debug,
    {
        self.0.push(Probe {
            name,
            operator: TypeId::of::<Op>(),
            item_bytes: size_of::<Op::Item>(),
            make: make::<Op::Item>(name),
            defined: |stored, start, n| {
                // SAFETY: items that `make` made.
                let items = unsafe { stored.items::<Op::Item>(start, n) };
                let op = Op::default();
                let acc = tree::fold(&op, n as u64, &|i| items[i as usize]);
                result::<Op>(acc.map_or_else(|| op.finish_empty(), |acc| op.finish(acc)), n)
            },
            value: |engine, stored, start, n| {
                // SAFETY: as above.
                let items = unsafe { stored.items::<Op::Item>(start, n) };
                words(engine.reducer(Op::default()).unwrap().reduce(items).unwrap_or_else(|e| panic!("{e}")))
            },
            #[cfg(feature = "cuda")]
            upload: |engine, stored| vec![upload(engine, stored)],
            #[cfg(feature = "cuda")]
            gpu: |engine, arrays, start, n| {
                let reducer = engine.reducer(Op::default()).unwrap();
                let size = size_of::<Op::Output>();
                let mut output = DeviceArray::from_slice(engine, &vec![0xa5_u8; size + 32]).unwrap();
                let address = output.view_mut().address() + 16;
                let view = view::<Op::Item>(&arrays[0], start, n);
                // SAFETY: the middle of the output, which is left alone until the scope has waited.
                let mut middle = unsafe { DeviceViewMut::<Op::Output>::from_raw(address, 1) };
                let stream = StreamRef::default_stream();
                engine
                    .scope(stream, |scope| scope.reduce_into(&reducer, &view, &mut middle))
                    .unwrap()
                    .unwrap();
                let found = output.to_vec().unwrap();
                let (before, rest) = found.split_at(16);
                let (written, after) = rest.split_at(size);
                assert!(
                    before.iter().chain(after).all(|&byte| byte == 0xa5),
                    "a result's neighbours were written"
                );
                // SAFETY: the kernel has written an output there.
                let output = unsafe { written.as_ptr().cast::<Op::Output>().read_unaligned() };
                result::<Op>(output, n)
            },
        });
    }

    fn dot<T: Data>(&mut self, name: &'static str)
    where
        Dot<T>: Monoid<Item = Parts2<T, T>>,
        Value<Dot<T>>: Debug,
    {
        fn split<T: Data>(stored: &Stored, start: usize, n: usize) -> (Vec<T>, Vec<T>) {
            // SAFETY: items that `make` made.
            unsafe { stored.items::<Parts2<T, T>>(start, n) }.iter().map(Parts2::get).unzip()
        }
        self.0.push(Probe {
            name,
            operator: TypeId::of::<Over<Dot<T>, Zip2<Array<T>, Array<T>>>>(),
            item_bytes: size_of::<T>(),
            make: make::<Parts2<T, T>>(name),
            defined: |stored, start, n| {
                // Positions have no bytes: the tree of one lane a thread.
                let (a, b) = split::<T>(stored, start, n);
                let fold = tree::fold_shape(&Dot::<T>::new(), &tree::Shape::new(n as u64, 0), &|i| {
                    Parts2::new(a[i as usize], b[i as usize])
                });
                let op = Dot::<T>::new();
                let output = fold.map_or_else(|| op.finish_empty(), |acc| op.finish(acc));
                Output { bytes: Vec::new(), ..result::<Dot<T>>(output, n) }
            },
            value: |engine, stored, start, n| {
                let (a, b) = split::<T>(stored, start, n);
                words(engine.reduce_columns(Dot::<T>::new(), (&a, &b)).unwrap_or_else(|e| panic!("{e}")))
            },
            #[cfg(feature = "cuda")]
            upload: |engine, stored| {
                let n = stored.words.len() * 16 / (2 * size_of::<T>());
                let (a, b) = split::<T>(stored, 0, n);
                [a, b]
                    .map(|items| {
                        upload(
                            engine,
                            &Stored::of(n, {
                                let mut i = 0..;
                                move || items[i.next().unwrap()]
                            }),
                        )
                    })
                    .into()
            },
            #[cfg(feature = "cuda")]
            gpu: |engine, arrays, start, n| {
                let columns = (view::<T>(&arrays[0], start, n), view::<T>(&arrays[1], start, n));
                let value = words(engine.reduce_columns(Dot::<T>::new(), columns).unwrap());
                Output { bytes: Vec::new(), value }
            },
        });
    }
}

fn probes() -> Vec<Probe> {
    let mut probes = Probes(Vec::new());
    every(&mut probes);
    probes.0
}

#[test]
fn every_export_is_tested_and_nothing_else() {
    let probes = probes();
    let tested: BTreeSet<TypeId> = probes.iter().map(|probe| probe.operator).collect();
    let exported: BTreeSet<TypeId> = BUILTINS.table.exports.iter().map(|export| export.operator).collect();
    let left_out = BUILTINS.table.exports.iter().find(|export| !tested.contains(&export.operator));
    assert!(left_out.is_none(), "{left_out:?}");
    let missing = probes.iter().find(|probe| !exported.contains(&probe.operator));
    assert!(missing.is_none(), "{} is not exported", missing.map_or("", |probe| probe.name));
    assert_eq!((exported.len(), tested.len()), (BUILTINS.table.exports.len(), probes.len()), "twice there");
}

#[test]
fn the_cpu_gives_the_bits_of_the_definition() {
    for probe in probes() {
        for kind in [Kind::Ordinary, Kind::Special] {
            let items = (probe.make)(9000, kind, 1);
            for n in [0, 1, 2, 5, 31, 33, 100, 1000, 8193] {
                let found = (probe.value)(&Engine::cpu(), &items, n % 3, n);
                let defined = (probe.defined)(&items, n % 3, n).value;
                assert_eq!(found, defined, "{} of {n} items, {kind:?}", probe.name);
            }
        }
    }
}

#[test]
fn the_simulator_gives_the_values_of_the_cpu() {
    let engines = [Schedule::Sequential, Schedule::Seeded(3), Schedule::Concurrent { seed: 4 }]
        .map(|schedule| Engine::sim_with(SimOptions { schedule, ..SimOptions::default() }));
    for probe in probes() {
        let slots = 16 / probe.item_bytes.min(16);
        let items = (probe.make)(3000 * slots, Kind::Special, 2);
        let sizes = [0, 1, 2, 5, 17, 33, 16 * slots + 1, 130 * slots - 1, 2049 * slots + 3];
        for (i, n) in sizes.into_iter().enumerate() {
            for start in [0, 1 + i % slots] {
                let found = (probe.value)(&engines[i % 3], &items, start, n);
                let expected = (probe.value)(&Engine::cpu(), &items, start, n);
                assert_eq!(found, expected, "{} of {n} items from {start}", probe.name);
            }
        }
    }
}

/// The GPU's results are the CPU's, over lengths and starts.
#[cfg(feature = "cuda")]
fn compare(
    engine: &Engine,
    probe: &Probe,
    items: &Stored,
    arrays: &[DeviceArray<u64>],
    start: usize,
    n: usize,
) {
    let found = (probe.gpu)(engine, arrays, start, n);
    let expected = match n {
        // One item at a time: for short ones.
        ..1000 => (probe.defined)(items, start, n),
        _ => Output { bytes: found.bytes.clone(), value: (probe.value)(&Engine::cpu(), items, start, n) },
    };
    assert_eq!(found, expected, "{} of {n} items from {start}", probe.name);
}

/// Some operators at a time: most of the time goes to the CPU.
#[cfg(feature = "cuda")]
fn on_threads(work: impl Fn(&Probe) + Sync) {
    let (probes, next) = (probes(), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some(probe) = probes.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(probe);
                }
            });
        }
    });
}

#[cfg(feature = "cuda")]
#[test]
fn a_gpu_gives_the_bits_of_the_cpu_at_every_boundary() {
    let Some(engine) = gpu() else { return };
    on_threads(|probe| {
        let most = (1 << 23) / probe.item_bytes;
        let items = (probe.make)(most, Kind::Ordinary, 3);
        let arrays = (probe.upload)(&engine, &items);
        for n in sizes(probe.item_bytes, most as u64) {
            // The CPU takes its time for the long ones: some of them.
            if n < 300_000 || n % 3 == 0 || n == most as u64 {
                compare(&engine, probe, &items, &arrays, 0, n as usize);
            }
        }
    });
}

#[cfg(feature = "cuda")]
#[test]
fn a_gpu_gives_the_bits_of_the_cpu_from_every_start() {
    let Some(engine) = gpu() else { return };
    on_threads(|probe| {
        let items = (probe.make)(200_020, Kind::Ordinary, 4);
        let arrays = (probe.upload)(&engine, &items);
        for n in [1, 2, 5, 15, 16, 17, 33, 100, 129, 1000, 2047, 8193, 32_769, 200_001] {
            for start in 0..17 {
                compare(&engine, probe, &items, &arrays, start, n);
            }
        }
    });
}

#[cfg(feature = "cuda")]
#[test]
fn special_values_have_the_same_bits_on_a_gpu() {
    let Some(engine) = gpu() else { return };
    on_threads(|probe| {
        let items = (probe.make)(300_000, Kind::Special, 5);
        let arrays = (probe.upload)(&engine, &items);
        for n in [0, 1, 2, 5, 33, 300, 3000, 10_000, 100_000] {
            for k in 0..20 {
                compare(&engine, probe, &items, &arrays, k * 10_007, n);
            }
        }
    });
}
