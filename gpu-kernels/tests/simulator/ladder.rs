//! The literature's scans, at every size around a tile's and a tile of tiles', of functions whose order shows.

use std::ptr;

use warpfold_gpu_kernels::ladder::scan::{
    LadderParams, PADDED, SWEEP_THREADS, TILE, blelloch, blelloch_padded, hillis_steele, propagate,
    warp_shuffle,
};
use warpfold_monoid::Monoid;
use warpfold_simt::{
    shared,
    sim::{self, Buffer, Launch, Options, Schedule},
};

use super::{Affine, Compose};

type Op = Compose<false>;

const OP: Op = Compose;

/// `shared!` has a name of its own that is [`TILE`].
const ITEMS: usize = TILE;

#[derive(Clone, Copy, Debug)]
enum Kernel {
    HillisSteele,
    Blelloch,
    BlellochPadded,
    WarpShuffle,
    Propagate,
}

/// One launch over what the parameters name.
fn launch(kernel: Kernel, params: &LadderParams<Op>, buffers: Vec<Buffer>) {
    let threads = match kernel {
        Kernel::Blelloch | Kernel::BlellochPadded => SWEEP_THREADS,
        _ => TILE as u32,
    };
    let options = Options { schedule: Schedule::Seeded(params.n), buffers, ..Options::default() };
    let address = ptr::from_ref(params).expose_provenance();
    let tiles = params.n.div_ceil(TILE as u64) as u32;
    let done = sim::launch(&Launch::new(format!("{kernel:?}"), tiles, threads), &options, || {
        // SAFETY: parameters that outlive the launch, whose memory is that of the buffers; shared memory as is asked for.
        unsafe {
            let params = &*ptr::with_exposed_provenance::<LadderParams<Op>>(address);
            match kernel {
                Kernel::HillisSteele => hillis_steele(params, shared!([Affine; 2 * ITEMS])),
                Kernel::Blelloch => blelloch(params, shared!([Affine; ITEMS])),
                Kernel::BlellochPadded => blelloch_padded(params, shared!([Affine; PADDED])),
                Kernel::WarpShuffle => warp_shuffle(params, shared!([Affine; ITEMS / 32])),
                Kernel::Propagate => propagate(params),
            }
        }
    });
    done.unwrap_or_else(|fault| panic!("{kernel:?} over {}: {fault:?}", params.n));
}

const EMPTY: LadderParams<Op> = LadderParams {
    items: ptr::null(),
    values: ptr::null(),
    output: ptr::null_mut(),
    totals: ptr::null_mut(),
    befores: ptr::null(),
    n: 0,
    op: OP,
};

/// Scan, then propagate; the tiles' values in the same way. With `reduces`, reduce, then scan.
fn scan(kernel: Kernel, items: Option<&[Affine]>, values: &mut [Affine], reduces: bool) {
    let (n, tiles) = (values.len(), values.len().div_ceil(TILE));
    let mut totals = vec![OP.identity(); tiles];
    let mut params = EMPTY;
    params.n = n as u64;
    let mut buffers = Vec::new();
    if let Some(items) = items {
        params.items = items.as_ptr();
        buffers.push(Buffer::read_only("items", items));
    }
    buffers.push(Buffer::writable("values", values));
    buffers.push(Buffer::writable("totals", &mut totals));
    let place = values.as_mut_ptr();
    (params.values, params.output) = (place, place);
    params.totals = totals.as_mut_ptr();
    if reduces {
        params.output = ptr::null_mut();
    }
    launch(kernel, &params, buffers.clone());
    if tiles > 1 {
        scan(kernel, None, &mut totals, reduces);
    } else if !reduces {
        return;
    }
    (params.output, params.totals, params.befores) = (place, ptr::null_mut(), totals.as_ptr());
    if reduces {
        launch(kernel, &params, buffers);
    } else {
        params.items = ptr::null();
        launch(Kernel::Propagate, &params, buffers);
    }
}

#[test]
fn the_literature_s_scans_are_right_at_every_size() {
    let kernels = [Kernel::HillisSteele, Kernel::Blelloch, Kernel::BlellochPadded, Kernel::WarpShuffle];
    for n in [1, 2, 31, 33, TILE - 1, TILE, TILE + 1, 3 * TILE + 5, TILE * TILE + 1] {
        let items: Vec<Affine> =
            (0..n as u32).map(|i| Affine { a: i.wrapping_mul(0x9e37_79b9) | 1, b: i ^ 0x55 }).collect();
        let mut running = OP.identity();
        let expected: Vec<Affine> = items
            .iter()
            .zip(0..)
            .map(|(&item, i)| {
                running = OP.combine(running, OP.lift(item, i));
                running
            })
            .collect();
        for (k, kernel) in kernels.into_iter().enumerate() {
            for reduces in [false, true] {
                // The largest takes a while.
                if n > 4 * TILE && (k % 2 == 0) != reduces {
                    continue;
                }
                let mut found = vec![OP.identity(); n];
                scan(kernel, Some(&items), &mut found, reduces);
                let differs = found.iter().zip(&expected).position(|(found, expected)| found != expected);
                assert_eq!(differs, None, "{kernel:?}, {n} items, reduces: {reduces}");
            }
        }
    }
}
