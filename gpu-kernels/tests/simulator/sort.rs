//! Sorts of pairs against the standard library's stable one, at every size around a tile's, whatever the order of blocks.

use std::{fmt::Debug, ptr};

use warpfold_gpu_kernels::{
    export::Family,
    sort::{self, FirstParams, GATHER_TILE, GatherParams, Key, Payload, SortParams, THREADS, TILE, kind},
    sort_kernels,
};
use warpfold_simt::sim::{self, Buffer, Launch, Options, Schedule};

sort_kernels! {
    static SORTS:
    words => (u32, u32),
    longs => (u64, u32),
    long_values => (u32, u64),
}

/// One launch of an export's kernel.
fn launch<P>(export: &str, kernel: &'static str, grid: u32, params: &P, options: &Options) {
    let export = SORTS.exports.iter().find(|found| found.name == export).unwrap();
    assert_eq!(export.family, Family::Sorts);
    let entry = export.entries.iter().find(|entry| entry.kernel == kernel).unwrap();
    let address = ptr::from_ref(params).expose_provenance();
    let done = sim::launch(&Launch::new(kernel, grid, THREADS), options, || {
        // SAFETY: parameters that outlive the launch, whose memory is that of the buffers.
        unsafe { (entry.simulate)(ptr::with_exposed_provenance(address)) }
    });
    done.unwrap_or_else(|fault| panic!("{kernel}: {fault:?}"));
}

/// Sorts, and says how many passes moved pairs. One workspace serves several sorts.
fn sorted<K: Key, V: Payload>(
    export: &str,
    schedule: Schedule,
    kind: u32,
    keys: &[K],
    values: Option<&[V]>,
    (counter, records): (&mut [u64], &mut [[u64; 2]]),
) -> (Vec<K>, Vec<V>, usize) {
    let n = keys.len();
    let mut places = [(); 2].map(|()| (vec![K::LAST; n], vec![V::of_index(0); n]));
    let bins = K::DIGITS as usize * sort::BINS;
    let (mut counts, mut offsets) = (vec![0_u32; bins], vec![u32::MAX; bins]);
    let mut steps = vec![u32::MAX; sort::steps::<K>()];
    let tiles = (n as u64).div_ceil(TILE as u64) as u32;
    let mut buffers = vec![
        Buffer::read_only("keys", keys),
        Buffer::writable("counts", &mut counts),
        Buffer::writable("offsets", &mut offsets),
        Buffer::writable("steps", &mut steps),
        Buffer::writable("counter", counter),
        Buffer::writable("records", records),
    ];
    buffers.extend(values.map(|values| Buffer::read_only("values", values)));
    for (keys, values) in &mut places {
        buffers.extend([Buffer::writable("sorted keys", keys), Buffer::writable("sorted values", values)]);
    }
    let [(keys_0, values_0), (keys_1, values_1)] = &mut places;
    let mut params = SortParams::<K, V> {
        keys: keys.as_ptr(),
        values: values.map_or(ptr::null(), <[V]>::as_ptr),
        n: n as u64,
        sorted_keys: [keys_0.as_mut_ptr(), keys_1.as_mut_ptr()],
        sorted_values: [values_0.as_mut_ptr(), values_1.as_mut_ptr()],
        counts: counts.as_mut_ptr(),
        offsets: offsets.as_mut_ptr(),
        steps: steps.as_mut_ptr(),
        counter: counter.as_mut_ptr(),
        records: records.as_mut_ptr(),
        capacity: records.len() as u64,
        tiles,
        digit: 0,
        kind,
        all: 0,
    };
    let options = Options { schedule, buffers, ..Options::default() };
    launch(export, "histogram", tiles.min(3), &params, &options);
    launch(export, "offsets", 1, &params, &options);
    let mut pass = |digit, all| {
        (params.digit, params.all) = (digit, all);
        launch(export, "pass", tiles, &params, &options);
        // SAFETY: the launch is over.
        let counted = unsafe { params.counter.read() };
        assert_eq!(counted as u32, 0, "the next launch counts tiles from 0");
    };
    (K::UPPER..K::DIGITS).for_each(|digit| pass(digit, 0));
    launch(export, "check", tiles, &params, &options);
    let mut pass = |digit, all| {
        (params.digit, params.all) = (digit, all);
        launch(export, "pass", tiles, &params, &options);
    };
    (0..K::DIGITS).for_each(|digit| pass(digit, 1));
    let count = |steps: &[u32]| steps.iter().filter(|&&step| step != 0).count();
    let (by_upper, by_all) = steps.split_at(K::DIGITS as usize);
    let again = by_all[K::DIGITS as usize] != 0;
    let moved = count(by_upper) + if again { count(&by_all[..K::DIGITS as usize]) } else { 0 };
    let [(keys, values), _] = places;
    (keys, values, moved)
}

/// Against the library's sort, with positions and with values.
fn check<K: Key + Debug, V: Payload + Debug + PartialEq>(
    export: &str,
    schedule: Schedule,
    kind: u32,
    keys: &[K],
    value: impl Fn(u32) -> V,
    passes: Option<usize>,
) {
    let n = keys.len();
    let mut counter = [0_u64];
    let mut records = vec![[0_u64; 2]; sort::record_pairs((n as u64).div_ceil(TILE as u64)) as usize];
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by_key(|&i| keys[i as usize].ordered(kind));
    let values: Vec<V> = (0..n as u32).map(&value).collect();
    for given in [Some(&values[..]), None] {
        let workspace = (&mut counter[..], &mut records[..]);
        let (found, found_values, moved) = sorted(export, schedule, kind, keys, given, workspace);
        let place = format!("{export}, {n}, {schedule:?}, kind {kind}, values {}", given.is_some());
        for (at, &i) in order.iter().enumerate() {
            let key = keys[i as usize].ordered(kind).native(kind);
            let expected = if given.is_some() { values[i as usize] } else { V::of_index(i) };
            assert_eq!((found[at], found_values[at]), (key, expected), "{place}, at {at}");
        }
        if let Some(passes) = passes {
            assert_eq!(moved, passes, "{place}");
        }
    }
}

fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ state >> 29
    }
}

const BEHIND_TILE: usize = TILE as usize + 1;

#[test]
fn random_keys_around_lanes_warps_and_tiles() {
    let part = TILE as usize / 8;
    for n in [1, 2, 31, 32, 33, part - 1, part, part + 1, BEHIND_TILE - 2, BEHIND_TILE - 1, BEHIND_TILE, 9000]
    {
        let mut next = random(n as u64);
        let keys: Vec<u32> = (0..n).map(|_| next() as u32 & 0x00ff_0ff0).collect();
        check::<u32, u32>("words", Schedule::default(), kind::UNSIGNED, &keys, |i| i ^ 0x5555, None);
    }
}

#[test]
fn adversarial_orders_of_blocks_neither_hang_nor_change_anything() {
    let n = 5 * TILE as usize + 1234;
    let mut next = random(7);
    let keys: Vec<u32> = (0..n).map(|_| (next() % 3000) as u32 * 77).collect();
    for schedule in [
        Schedule::Seeded(1),
        Schedule::Seeded(2),
        Schedule::Concurrent { seed: 1 },
        Schedule::Concurrent { seed: 2 },
        Schedule::Concurrent { seed: 3 },
    ] {
        check::<u32, u64>("long_values", schedule, kind::UNSIGNED, &keys, |i| (i as u64) << 33 | 1, Some(3));
    }
}

#[test]
fn orders_that_are_not_random_and_digits_that_are_the_same() {
    let n = 2 * TILE as usize + 77;
    let schedule = Schedule::Concurrent { seed: 9 };
    let sorted = |key: &dyn Fn(u64) -> u64, passes| {
        let keys: Vec<u64> = (0..n as u64).map(key).collect();
        check::<u64, u32>("longs", schedule, kind::UNSIGNED, &keys, |i| !i, Some(passes));
    };
    sorted(&|_| 0, 1);
    sorted(&|_| u64::MAX, 1);
    sorted(&|i| i, 2);
    sorted(&|i| n as u64 - i, 2);
    sorted(&|i| (i * 37 % 256) << 56, 1);
    sorted(&|i| (i % 3) << 24 | (i % 5) << 40, 2);
}

#[test]
fn random_keys_of_64_bits_by_their_upper_digits_if_these_tell_them_apart() {
    let n = TILE as usize + 99;
    let schedule = Schedule::Concurrent { seed: 4 };
    let mut next = random(11);
    let few: Vec<u64> = (0..600).map(|_| next() ^ next() << 32).collect();
    let keys: Vec<u64> = (0..n).map(|_| few[(next() % 600) as usize]).collect();
    check::<u64, u32>("longs", schedule, kind::UNSIGNED, &keys, |i| !i, Some(5));
    check::<u64, u32>("longs", schedule, kind::FLOAT, &keys, |i| !i, Some(5));
    // Keys that the lower digits alone tell apart.
    let keys: Vec<u64> = keys.iter().map(|key| key & !0xff_ffff | next() & 0xff_ffff).collect();
    check::<u64, u32>("longs", schedule, kind::SIGNED, &keys, |i| !i, Some(13));
}

#[test]
fn kinds_of_keys_in_their_order() {
    let n = 3000;
    let mut next = random(3);
    let bits: Vec<u32> = (0..n).map(|_| next() as u32).collect();
    for kind in [kind::SIGNED, kind::FLOAT] {
        check::<u32, u32>("words", Schedule::default(), kind, &bits, |i| i, Some(4));
    }
    assert!((-5_i32 as u32).ordered(kind::SIGNED) < 3_u32.ordered(kind::SIGNED));
    let floats = [f32::NEG_INFINITY, -1.0, -1e-40, 0.0, 1e-40, 2.0, f32::INFINITY, f32::NAN];
    assert!(floats.map(|x| x.to_bits().ordered(kind::FLOAT)).is_sorted_by(|a, b| a < b));
    let one = |a: f64, b: f64| a.to_bits().ordered(kind::FLOAT) == b.to_bits().ordered(kind::FLOAT);
    assert!(
        one(0.0, -0.0) && one(f64::NAN, -f64::NAN) && one(f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001))
    );
    assert_eq!((-0.0_f64).to_bits().ordered(kind::FLOAT).native(kind::FLOAT), 0);
    assert_eq!((-2.5_f32).to_bits().ordered(kind::FLOAT).native(kind::FLOAT), (-2.5_f32).to_bits());
}

#[test]
fn items_in_an_order_and_the_first_of_each_key() {
    fn gathered<T: warpfold_monoid::Plain + PartialEq + Debug>(items: &[T], unit: usize, index: &[u32]) {
        let mut found = vec![warpfold_monoid::zeroed::<T>(); index.len()];
        let options = Options {
            buffers: vec![
                Buffer::read_only("items", items),
                Buffer::read_only("index", index),
                Buffer::writable("found", &mut found),
            ],
            ..Options::default()
        };
        let params = GatherParams {
            from: items.as_ptr().cast(),
            to: found.as_mut_ptr().cast(),
            index: index.as_ptr(),
            n: index.len() as u64,
            unit: unit as u32,
            units: (size_of::<T>() / unit) as u32,
        };
        launch("words", "gather", index.len().div_ceil(GATHER_TILE as usize) as u32, &params, &options);
        let expected: Vec<T> = index.iter().map(|&i| items[i as usize]).collect();
        assert_eq!(found, expected, "units of {unit}");
    }
    let mut next = random(1);
    let index: Vec<u32> = (0..GATHER_TILE + 300).map(|_| next() as u32 % 50).collect();
    gathered(&(0..50_u8).collect::<Vec<_>>(), 1, &index);
    gathered(&(0..50_u16).map(|i| [i, i * 3, i * 7]).collect::<Vec<_>>(), 2, &index);
    gathered(&(0..50_u32).map(|i| [i, !i]).collect::<Vec<_>>(), 4, &index[..1]);
    gathered(&(0..50_u64).map(|i| [i << 40, i]).collect::<Vec<_>>(), 8, &index[..33]);

    let keys: Vec<u32> = [-9, -9, -4, 0, 0, 0, 5, 7, 7].map(|key: i32| key as u32).to_vec();
    let index: Vec<u32> = vec![3, 4, 8, 0, 2, 7, 1, 5, 6];
    let groups: Vec<u32> = [-9, -4, 0, 5, 7].map(|key: i32| key as u32).to_vec();
    let mut firsts = vec![u32::MAX; 5];
    let options = Options {
        buffers: vec![
            Buffer::read_only("keys", &keys),
            Buffer::read_only("index", &index),
            Buffer::read_only("groups", &groups),
            Buffer::writable("firsts", &mut firsts),
        ],
        ..Options::default()
    };
    let params = FirstParams::<u32> {
        keys: keys.as_ptr(),
        index: index.as_ptr(),
        n: 9,
        groups: groups.as_ptr(),
        count: 5,
        firsts: firsts.as_mut_ptr(),
        kind: kind::SIGNED,
        padding: 0,
    };
    launch("words", "firsts", 1, &params, &options);
    assert_eq!(firsts, [3, 8, 0, 1, 5]);
}
