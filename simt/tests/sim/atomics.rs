//! Atomics and ordered accesses, each against the plain operation, and the counter that resets itself.

use warpfold_simt::atomic::{self, AcqRel, Acquire, Cta, Gpu, Relaxed, Release, Sys};
use warpfold_simt::sim::{self, Launch, Options};
use warpfold_simt::{global, thread};

use crate::common::{Ptr, run, schedules};

#[test]
fn each_returns_the_value_from_before() {
    let mut words = [10_u32, 10, 10, 0b1100, 0b1100, 0b1100, 10, 10, 10, 3, 4];
    let mut signed = [-5_i64, -5];
    let mut floats = [1.5_f64];
    let (u, i, f) = (Ptr::of(&mut words), Ptr::of(&mut signed), Ptr::of(&mut floats));
    run(1, 1, || {
        // SAFETY: one thread, words of its own.
        unsafe {
            assert_eq!(atomic::fetch_add(u.at(0), u32::MAX, Relaxed, Gpu), 10);
            assert_eq!(atomic::fetch_min(u.at(1), 7, Acquire, Cta), 10);
            assert_eq!(atomic::fetch_max(u.at(2), 7, Release, Sys), 10);
            assert_eq!(atomic::fetch_and(u.at(3), 0b1010, AcqRel, Gpu), 0b1100);
            assert_eq!(atomic::fetch_or(u.at(4), 0b1010, AcqRel, Gpu), 0b1100);
            assert_eq!(atomic::fetch_xor(u.at(5), 0b1010, AcqRel, Gpu), 0b1100);
            assert_eq!(atomic::exchange(u.at(6), 99, Relaxed, Gpu), 10);
            assert_eq!(atomic::compare_exchange(u.at(7), 10, 98, Relaxed, Gpu), 10);
            assert_eq!(atomic::compare_exchange(u.at(8), 11, 97, Relaxed, Gpu), 10);
            assert_eq!(atomic::increment_wrapping(u.at(9), 4, Relaxed, Gpu), 3);
            assert_eq!(atomic::increment_wrapping(u.at(10), 4, Relaxed, Gpu), 4);
            assert_eq!(atomic::fetch_min(i.at(0), -7, Relaxed, Gpu), -5);
            assert_eq!(atomic::fetch_max(i.at(1), -7, Relaxed, Gpu), -5);
            assert_eq!(atomic::fetch_add(f.at(0), 0.25, Relaxed, Gpu), 1.5);
            assert_eq!(atomic::fetch_add_relaxed_gpu(u.at(0), 1), 9);
            assert_eq!(atomic::fetch_add_acq_rel_gpu(u.at(0), 1), 10);
        }
    });
    assert_eq!(words, [11, 7, 10, 0b1000, 0b1110, 0b0110, 99, 98, 10, 4, 0]);
    assert_eq!((signed, floats), ([-7, -5], [1.75]));
}

#[test]
fn a_comparison_is_of_bits() {
    let mut floats = [f32::NAN, -0.0];
    let f = Ptr::of(&mut floats);
    run(1, 1, || {
        // SAFETY: one thread, words of its own.
        unsafe {
            atomic::compare_exchange(f.at(0), f32::NAN, 1.0, Relaxed, Gpu);
            atomic::compare_exchange(f.at(1), 0.0, 1.0, Relaxed, Gpu);
        }
    });
    assert_eq!(floats.map(f32::to_bits), [1.0_f32.to_bits(), (-0.0_f32).to_bits()]);
}

#[test]
fn a_ticket_tells_one_last_block_and_resets_itself() {
    for schedule in schedules() {
        let (mut ticket, mut last) = ([0_u32], [0_u32]);
        let (ticket_ptr, last_ptr) = (Ptr::of(&mut ticket), Ptr::of(&mut last));
        for round in 1..=3 {
            sim::launch(&Launch::new("ticket", 19, 32), &Options::with_schedule(schedule), || {
                // SAFETY: words that live on; thread 0 of the last block alone counts.
                unsafe {
                    if thread::thread_idx_x() == 0
                        && atomic::increment_wrapping(ticket_ptr.at(0), 18, AcqRel, Gpu) == 18
                    {
                        global::store(last_ptr.at(0), global::load(last_ptr.at(0)) + 1);
                    }
                }
            })
            .unwrap();
            assert_eq!(last, [round]);
            assert_eq!(ticket, [0]);
        }
    }
}

#[test]
fn vectors_hints_and_ordered_accesses_move_the_right_bytes() {
    let input: Vec<u32> = (0..64).collect();
    let mut source = input.clone();
    let mut out = vec![0_u32; 64];
    let mut pair = [[1_u64, 2]];
    let (from, to, two) = (Ptr::of(&mut source), Ptr::of(&mut out), Ptr::of(&mut pair));
    // Vec<u32> is aligned to 4 only: find the first element that is aligned to 16.
    let first = (0..4).find(|&i| from.at(i).addr() % 16 == 0).unwrap();
    let out_first = (0..4).find(|&i| to.at(i).addr() % 16 == 0).unwrap();
    run(1, 1, || {
        use global::hint::{Cg, Cs, L2Prefetch128, L2Prefetch256, Lu, Nc, NcNoAllocate, NoAllocate};
        // SAFETY: 16 aligned elements on both sides, one thread.
        unsafe {
            let p = from.at(first);
            let v: [u32; 4] = global::load_vector(p);
            assert_eq!(v, global::load_vector_streaming(p));
            assert_eq!(v, global::load_vector_with::<Cg, u32, 4>(p));
            assert_eq!(v, global::load_vector_with::<Cs, u32, 4>(p));
            assert_eq!(v, global::load_vector_with::<Lu, u32, 4>(p));
            assert_eq!(v, global::load_vector_with::<Nc, u32, 4>(p));
            assert_eq!(v, global::load_vector_with::<NoAllocate, u32, 4>(p));
            assert_eq!(v, global::load_vector_with::<NcNoAllocate, u32, 4>(p));
            assert_eq!(v, global::load_vector_with::<L2Prefetch128, u32, 4>(p));
            assert_eq!(v, global::load_vector_with::<L2Prefetch256, u32, 4>(p));
            assert_eq!(global::load_with::<Cs, [u32; 3]>(p.add(1).cast()), [v[1], v[2], v[3]]);
            assert_eq!(global::load_cg(p), v[0]);
            let q = to.at(out_first);
            global::store_vector(q, v);
            global::store_vector_streaming(q.add(4), v);
            global::store_streaming(q.add(8), v[3]);
            global::store_volatile(q.add(9), global::load_volatile(p.add(9)));
            global::store_relaxed_gpu(q.add(10), global::load_relaxed_gpu(p.add(10)));
            global::store_release_gpu(q.add(11), global::load_acquire_gpu(p.add(11)));
        }
    });
    let expected = [0, 1, 2, 3, 0, 1, 2, 3, 3, 9, 10, 11].map(|i: usize| input[first + i]);
    assert_eq!(&out[out_first..out_first + 12], expected);
    if two.at(0).addr() % 16 == 0 {
        run(1, 1, || {
            // SAFETY: aligned to 16, as just seen.
            unsafe {
                let [a, b] = global::load_pair_relaxed_gpu(two.at(0));
                global::store_pair_relaxed_gpu(two.at(0), [b, a]);
            }
        });
        assert_eq!(pair, [[2, 1]]);
    }
}
