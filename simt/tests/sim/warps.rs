//! Shuffles of types of every size, votes, matches and reductions, against what the words of the PTX manual say.

use proptest::prelude::*;
use warpfold_monoid::Plain;
use warpfold_simt::thread;
use warpfold_simt::warp::{self, FULL, WarpReductionOp};

use crate::common::{Ptr, run};

/// Runs `f` on the lanes of `mask` of one warp, and returns what each made of its number.
fn each_lane<R: Copy + Send>(mask: u32, f: impl Fn(u32) -> R + Sync) -> [Option<R>; 32] {
    let mut out = [None; 32];
    let ptr = Ptr::of(&mut out);
    run(1, 32, || {
        let lane = thread::thread_idx_x();
        if mask >> lane & 1 == 1 {
            let result = f(lane);
            // SAFETY: one element a lane.
            unsafe { *ptr.at(lane as usize) = Some(result) };
        }
    });
    out
}

/// The lane that each kind of shuffle reads: in the segment of `width` lanes, or the caller's own.
fn source(mode: &str, lane: u32, operand: u32, width: u32) -> (u32, bool) {
    let first = lane / width * width;
    let at = i64::from(lane - first);
    let operand = i64::from(operand);
    let (target, ok) = match mode {
        "up" => (at - operand, at - operand >= 0),
        "down" => (at + operand, at + operand < i64::from(width)),
        // A butterfly may reach back into an earlier segment, never into a later one.
        "xor" => {
            let target = i64::from(lane) ^ operand;
            (target - i64::from(first), target < i64::from(first + width))
        }
        _ => (operand % i64::from(width), true),
    };
    if ok { ((i64::from(first) + target) as u32, true) } else { (lane, false) }
}

fn check_shuffles<T: Plain + PartialEq + std::fmt::Debug>(make: impl Fn(u32) -> T + Sync) {
    for width in [1, 2, 4, 8, 16, 32] {
        for operand in [0, 1, 2, 3, 5, 8, 15, 16, 17, 31] {
            let results = each_lane(FULL, |lane| {
                let value = make(lane);
                // SAFETY: all lanes are here.
                unsafe {
                    let narrow = [
                        warp::warp_shuffle_up(FULL, value, operand, width),
                        warp::warp_shuffle_down(FULL, value, operand, width),
                        warp::warp_shuffle_xor(FULL, value, operand, width),
                        warp::warp_shuffle_idx(FULL, value, operand, width),
                    ];
                    let same = [
                        warp::shuffle_up_width(FULL, value, operand, width),
                        warp::shuffle_down_width(FULL, value, operand, width),
                        warp::shuffle_xor_width(FULL, value, operand, width),
                        warp::shuffle_idx_width(FULL, value, operand, width),
                    ];
                    assert!(narrow.iter().map(|n| n.0).eq(same));
                    if width == 32 {
                        let full = [
                            warp::shuffle_up(FULL, value, operand),
                            warp::shuffle_down(FULL, value, operand),
                            warp::shuffle_xor(FULL, value, operand),
                            warp::shuffle_idx(FULL, value, operand),
                        ];
                        assert_eq!(full, same);
                    }
                    narrow
                }
            });
            for (lane, result) in (0..).zip(results) {
                let expected = ["up", "down", "xor", "idx"].map(|mode| {
                    let (from, ok) = source(mode, lane, operand, width);
                    (make(from), ok)
                });
                assert_eq!(result, Some(expected), "lane {lane}, operand {operand}, width {width}");
            }
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Twelve {
    a: u32,
    b: f32,
    c: [u16; 2],
}
// SAFETY: repr(C), 4 + 4 + 4 bytes, no padding.
unsafe impl Plain for Twelve {}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Twenty([u8; 20]);
// SAFETY: bytes.
unsafe impl Plain for Twenty {}

#[test]
fn shuffles_move_values_of_every_size() {
    check_shuffles(|lane| lane as u8 ^ 0x5a);
    check_shuffles(|lane| lane % 3 == 0);
    check_shuffles(|lane| lane as u16 * 1999);
    check_shuffles(|lane| [lane as u8, !lane as u8, 7]);
    check_shuffles(|lane| lane as f32 * 0.1);
    check_shuffles(|lane| f64::from(lane).sqrt());
    check_shuffles(|lane| Twelve { a: lane, b: -(lane as f32), c: [1, lane as u16] });
    check_shuffles(|lane| Twenty(std::array::from_fn(|i| (lane as u8).wrapping_mul(31) ^ i as u8)));
    check_shuffles(|lane| [u128::from(lane) << 99, 3, u128::MAX]);
    check_shuffles(|_| ());
}

#[test]
fn two_groups_of_lanes_shuffle_apart() {
    let results = each_lane(FULL, |lane| {
        let mask = if lane < 16 { 0xffff } else { 0xffff_0000 };
        // Each half loops a different number of times.
        let mut sum = lane;
        for _ in 0..1 + lane / 16 {
            // SAFETY: each half is complete at each of its turns.
            sum += unsafe { warp::shuffle_xor_width(mask, sum, 1, 16) };
        }
        sum
    });
    for (lane, result) in (0..32_u32).zip(results) {
        let pair = lane + (lane ^ 1);
        assert_eq!(result, Some(if lane < 16 { pair } else { 2 * pair }));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn votes_and_matches(mask in 1_u32.., predicates: u32, values in prop::array::uniform32(0_u64..4)) {
        let same = |a: u64, b: u64| a == b;
        let results = each_lane(mask, |lane| {
            let (holds, value) = (predicates >> lane & 1 == 1, values[lane as usize]);
            // SAFETY: the lanes of the mask are here.
            unsafe {
                (
                    [warp::warp_vote_all(mask, holds), warp::warp_vote_any(mask, holds), warp::warp_vote_uni(mask, holds)],
                    warp::warp_vote_ballot(mask, holds),
                    // Values that differ in the upper half alone, too.
                    warp::warp_match_any(mask, value << 32),
                    warp::warp_match_any(mask, value as i32),
                    warp::warp_match_all(mask, value as f32),
                    warp::activemask() & mask,
                )
            }
        });
        for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
            let named = (0..32).filter(|l| mask >> l & 1 == 1);
            let holding = named.clone().filter(|l| predicates >> l & 1 == 1).count();
            let count = named.clone().count();
            let equal: u32 = named.clone().filter(|&l| same(values[l], values[lane])).map(|l| 1 << l).sum();
            let expected = (
                [holding == count, holding > 0, holding == 0 || holding == count],
                predicates & mask,
                equal,
                equal,
                (equal == mask).then_some(mask),
                mask,
            );
            let (votes, ballot, wide, narrow, all, active) = results[lane].unwrap();
            prop_assert_eq!((votes, ballot, wide, narrow, all), (expected.0, expected.1, expected.2, expected.3, expected.4));
            prop_assert!(active & 1 << lane != 0);
        }
    }

    #[test]
    fn reductions_of_lanes(mask in 1_u32.., values: [u32; 32]) {
        let results = each_lane(mask, |lane| {
            let value = values[lane as usize];
            // SAFETY: the lanes of the mask are here.
            unsafe {
                (
                    [WarpReductionOp::Add, WarpReductionOp::Min, WarpReductionOp::Max, WarpReductionOp::And,
                     WarpReductionOp::Or, WarpReductionOp::Xor].map(|op| warp::warp_reduce(mask, value, op)),
                    [WarpReductionOp::Min, WarpReductionOp::Max].map(|op| warp::warp_reduce(mask, value as i32, op)),
                )
            }
        });
        let named = || (0..32).filter(|l| mask >> l & 1 == 1).map(|l| values[l as usize]);
        let signed = || named().map(|v| v as i32);
        let expected = (
            [
                named().map(u64::from).sum::<u64>() as u32,
                named().min().unwrap(),
                named().max().unwrap(),
                named().fold(u32::MAX, |a, b| a & b),
                named().fold(0, |a, b| a | b),
                named().fold(0, |a, b| a ^ b),
            ],
            [signed().min().unwrap(), signed().max().unwrap()],
        );
        for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
            prop_assert_eq!(results[lane as usize], Some(expected));
        }
    }
}
