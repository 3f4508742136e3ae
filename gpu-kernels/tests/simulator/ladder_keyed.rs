//! Block-wide reductions by key: blocks of every size, few keys and as many as threads, keys that nobody has, and functions whose
//! order within a key shows.

use std::ptr;

use warpfold_gpu_kernels::block::{self, Meeting, SortRoom};
use warpfold_gpu_kernels::ladder::keyed::{KeyedParams, SinkParams, per_key, sink, sorted_tree, warp_sorted};
use warpfold_monoid::Monoid;
use warpfold_simt::{
    shared,
    sim::{self, Buffer, Launch, Options, Schedule},
};

use super::{Affine, Compose};

type Op = Compose<false>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    SortedTree,
    WarpSorted,
    PerKey,
    Sink,
}

const BLOCKS: u32 = 2;
const SETS: u32 = 2;

fn check(how: How, threads: u32, k: u32, keys_of: impl Fn(u32) -> u32) {
    let op: Op = Compose;
    let n = BLOCKS * SETS * threads;
    let keys: Vec<u32> = (0..n).map(keys_of).collect();
    let items: Vec<Affine> =
        (0..n).map(|i| Affine { a: i.wrapping_mul(0x9e37_79b9) | 1, b: i ^ 0x55 }).collect();
    let mut values = vec![Affine { a: 0, b: 0 }; (BLOCKS * SETS * k) as usize];
    let mut cycles = vec![u64::MAX; (BLOCKS * SETS) as usize];
    let mut flushed = vec![u64::MAX; BLOCKS as usize];
    let (mut partials, mut present) =
        (vec![op.identity(); (BLOCKS * k) as usize], vec![0_u32; (BLOCKS * k) as usize]);
    let (mut ticket, mut output) = ([0_u32], vec![Affine { a: 0, b: 0 }; k as usize]);
    let params = KeyedParams::<Op> {
        keys: keys.as_ptr(),
        items: items.as_ptr(),
        values: values.as_mut_ptr(),
        cycles: cycles.as_mut_ptr(),
        sets: SETS,
        k,
        op,
    };
    let meeting = Meeting::<Op> {
        partials: partials.as_mut_ptr(),
        present: present.as_mut_ptr(),
        ticket: ticket.as_mut_ptr(),
        output: output.as_mut_ptr(),
    };
    let options = Options::with_schedule(Schedule::Seeded(threads as u64))
        .buffer(Buffer::read_only("keys", &keys))
        .buffer(Buffer::read_only("items", &items))
        .buffer(Buffer::writable("values", &mut values))
        .buffer(Buffer::writable("cycles", &mut cycles))
        .buffer(Buffer::writable("flushed", &mut flushed))
        .buffer(Buffer::writable("partials", &mut partials))
        .buffer(Buffer::writable("present", &mut present))
        .buffer(Buffer::writable("ticket", &mut ticket))
        .buffer(Buffer::writable("output", &mut output));
    let params = SinkParams { sets: params, meeting, flushed: flushed.as_mut_ptr() };
    let at = ptr::from_ref(&params).expose_provenance();
    let what = format!("{how:?}, {threads} threads, {k} keys");
    sim::launch(&Launch::new(&what, BLOCKS, threads), &options, || {
        let table = shared!([Affine; 64]);
        let slots = shared!([Affine; block::SHARED]);
        let room = SortRoom {
            keys: shared!([u32; 1024]),
            values: shared!([Affine; 1024]),
            from: shared!([u32; 1024]),
        };
        let warps = shared!([Affine; 32 * 32]);
        // SAFETY: parameters that outlive the launch; shared memory as is asked for.
        unsafe {
            let with_sink = &*ptr::with_exposed_provenance::<SinkParams<Op>>(at);
            let params = &with_sink.sets;
            match how {
                How::SortedTree => sorted_tree(params, room, table),
                How::WarpSorted => warp_sorted(params, warps, slots, table),
                How::PerKey => per_key(params, slots, table),
                How::Sink => sink(with_sink, warps, shared!([u32; 32 * 16]), shared!([u32; 1])),
            }
        }
    })
    .unwrap_or_else(|fault| panic!("{what}: {fault:?}"));
    assert!(cycles.iter().all(|&cycles| cycles < u64::MAX), "{what}: every set's cycles");
    let folded = |places: &mut dyn Iterator<Item = u32>, key: u32| {
        let mut lifted =
            places.filter(|&i| keys[i as usize] == key).map(|i| op.lift(items[i as usize], i as u64));
        lifted.next().map_or(op.identity(), |first| lifted.fold(first, |l, r| op.combine(l, r)))
    };
    for key in 0..k {
        if how == How::Sink {
            // Warps one after the other, each with all of its sets, then blocks.
            let mut order = (0..BLOCKS).flat_map(|block| {
                (0..threads / 32).flat_map(move |warp| {
                    (0..SETS).flat_map(move |set| {
                        (0..32).map(move |lane| (block * SETS + set) * threads + warp * 32 + lane)
                    })
                })
            });
            assert_eq!(output[key as usize], folded(&mut order, key), "{what}, key {key}");
            continue;
        }
        for set in 0..BLOCKS * SETS {
            let found = values[(set * k + key) as usize];
            let expected = folded(&mut (set * threads..(set + 1) * threads), key);
            assert_eq!(found, expected, "{what}, set {set}, key {key}");
        }
    }
}

#[test]
fn every_key_of_a_set_is_folded_in_order() {
    for threads in [32, 96, 128, 1024] {
        for how in [How::SortedTree, How::WarpSorted, How::PerKey, How::Sink] {
            // Two arrays of the sink need a slot for each warp and key.
            let k = if how == How::Sink { 16 } else { 32 };
            for k in [1, 16, k] {
                check(how, threads, k, |i| (i.wrapping_mul(0x9e37_79b1) >> 9) % k);
                check(how, threads, k, |i| i % 7 % k);
            }
            check(how, threads, 16, |_| 11);
        }
    }
}
