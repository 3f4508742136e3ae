//! Operators whose order matters, against plain loops from left to right, over several tiles, chunks and waves of blocks.

use warpfold::{Affine, Compose, MaxSegmentSum};

use crate::support::{Random, engines, sizes, takes};

/// Items in all.
const MOST: usize = 3_000_000;

#[test]
fn compositions_apply_the_first_function_first() {
    let mut random = Random::new(41);
    // Reflections and whole shifts: exact in any grouping, wrong in any other order.
    let items: Vec<Affine<f64>> = (0..MOST)
        .map(|_| Affine { scale: [1.0, -1.0][random.below(2) as usize], shift: random.below(1000) as f64 })
        .collect();
    let mut expected = vec![Affine { scale: 1.0, shift: 0.0 }];
    for step in &items {
        let last = expected[expected.len() - 1];
        expected.push(Affine { scale: step.scale * last.scale, shift: step.scale * last.shift + step.shift });
    }
    for engine in engines() {
        let reducer = engine.reducer(Compose::<f64>::new()).unwrap();
        for n in
            sizes(16, MOST as u64).into_iter().map(|n| n as usize).filter(|&n| n <= MOST && takes(&engine, n))
        {
            assert_eq!(
                reducer.reduce(&items[..n]).unwrap(),
                expected[n],
                "{n} items on {}",
                engine.backend()
            );
        }
    }
}

#[test]
fn maximum_segment_sums_are_those_of_one_pass() {
    let mut random = Random::new(43);
    let items: Vec<i32> = (0..MOST).map(|_| random.bits() as i32 >> 8).collect();
    // J. Kadane's pass, as Bentley gives it.
    let (mut best, mut ending_here) = (0i64, 0i64);
    let mut expected = vec![0];
    for &item in &items {
        ending_here = (ending_here + i64::from(item)).max(0);
        best = best.max(ending_here);
        expected.push(best);
    }
    for engine in engines() {
        let wide = engine.reducer(MaxSegmentSum::<i32, i64>::new()).unwrap();
        let narrow = engine.reducer(MaxSegmentSum::<i32>::new()).unwrap();
        for n in
            sizes(4, MOST as u64).into_iter().map(|n| n as usize).filter(|&n| n <= MOST && takes(&engine, n))
        {
            assert_eq!(wide.reduce(&items[..n]).unwrap(), expected[n], "{n} items on {}", engine.backend());
            // As long as nothing wraps.
            if n <= 200 {
                let narrow = narrow.reduce(&items[..n]).unwrap();
                assert_eq!(i64::from(narrow), expected[n], "{n} items on {}", engine.backend());
            }
        }
        assert_eq!(narrow.reduce(&[-1; 1000]).unwrap(), 0);
    }
}
