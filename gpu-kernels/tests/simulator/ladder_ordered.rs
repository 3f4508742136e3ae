//! Runs of items in order, through shared memory and by a sliding window: lengths around those of windows and tiles.

use std::ptr;

use warpfold_gpu_kernels::block;
use warpfold_gpu_kernels::ladder::ordered::{OrderedParams, in_block, sliding, tile_bytes};
use warpfold_monoid::Monoid;
use warpfold_simt::{
    shared,
    sim::{self, Buffer, Launch, Options, Schedule},
};

use super::{Affine, Compose};

type Op = Compose<false>;

fn check(vt: usize, threads: u32, n: u64, groups: u64) {
    let op: Op = Compose;
    let items: Vec<Affine> =
        (0..n as u32).map(|i| Affine { a: i.wrapping_mul(0x9e37_79b9) | 1, b: i ^ 0x55 }).collect();
    let run = n.div_ceil(groups);
    let groups = n.div_ceil(run);
    let mut values = vec![Affine { a: 0, b: 0 }; groups as usize];
    let params = OrderedParams::<Op> { items: items.as_ptr(), values: values.as_mut_ptr(), n, run, op };
    let address = ptr::from_ref(&params).expose_provenance();
    let options = Options::with_schedule(Schedule::Seeded(n))
        .buffer(Buffer::read_only("items", &items))
        .buffer(Buffer::writable("values", &mut values));
    let what = format!("{vt} a thread, {n} items, {groups} groups of {threads}");
    let launch = Launch::new(&what, groups as u32, threads)
        .with_dynamic_shared(tile_bytes::<Op>(threads as usize, vt));
    sim::launch(&launch, &options, || {
        // SAFETY: parameters that outlive the launch, and the shared memory that the kernels ask for.
        unsafe {
            let params = &*ptr::with_exposed_provenance::<OrderedParams<Op>>(address);
            match vt {
                7 => in_block::<Op, 7>(params),
                8 => in_block::<Op, 8>(params),
                _ => sliding(params, shared!([Affine; block::SHARED])),
            }
        }
    })
    .unwrap_or_else(|fault| panic!("{what}: {fault:?}"));
    let mut i = 0;
    for (group, items) in items.chunks(run as usize).enumerate() {
        let mut lifted = items.iter().map(|&item| {
            i += 1;
            op.lift(item, i - 1)
        });
        let first = lifted.next().unwrap();
        assert_eq!(values[group], lifted.fold(first, |l, r| op.combine(l, r)), "{what}, group {group}");
    }
}

#[test]
fn runs_are_folded_in_order() {
    for threads in [32, 128] {
        for vt in [1, 7, 8] {
            let tile = threads as u64 * vt as u64;
            for n in [1, 31, tile - 1, tile, tile + 1, 2 * tile + 9, 5 * tile] {
                for groups in [1, 3] {
                    check(vt, threads, n, groups);
                }
            }
        }
    }
}
