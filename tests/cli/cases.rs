//! Small arrays that other libraries' reductions got wrong, each as one of its kind.

use half::{bf16, f16};
use serde_json::{Value, json};

use super::{Files, Npy, column, le, number, reduce};

/// Reduces one axis of elements.
fn of<const SIZE: usize>(descr: &str, items: &[[u8; SIZE]], ops: &str, options: &[&str]) -> Value {
    let files = Files::new();
    let path = column(&files, "a.npy", descr, items);
    reduce(&path, ops, options)["results"].take()
}

fn f32s(items: &[f32], ops: &str, options: &[&str]) -> Value {
    of("<f4", &items.iter().map(|item| item.to_le_bytes()).collect::<Vec<_>>(), ops, options)
}

fn f64s(items: &[f64], ops: &str, options: &[&str]) -> Value {
    of("<f8", &items.iter().map(|item| item.to_le_bytes()).collect::<Vec<_>>(), ops, options)
}

fn f16s(items: &[f64], ops: &str) -> Value {
    of("<f2", &items.iter().map(|&item| f16::from_f64(item).to_le_bytes()).collect::<Vec<_>>(), ops, &[])
}

fn bf16s(items: &[f64], ops: &str) -> Value {
    let items: Vec<_> = items.iter().map(|&item| bf16::from_f64(item).to_le_bytes()).collect();
    of("<V2", &items, ops, &["--dtype", "bf16"])
}

const IGNORE: &[&str] = &["--nan", "ignore"];

/// A partial result that is NaN must not swallow one that holds the minimum.
#[test]
fn a_few_nans_hide_no_minimum() {
    let mut items = vec![0.0; 10_000];
    for at in [100, 200, 300] {
        items[at] = f64::NAN;
    }
    (items[44], items[705]) = (-1.0, -0.5);
    assert_eq!(f64s(&items, "min", &[]), json!({"min": "NaN"}));
    assert_eq!(
        f64s(&items, "min,argmin", IGNORE),
        json!({"min": -1.0, "argmin": {"index": 44, "value": -1.0}})
    );
}

/// One rule wherever the NaN stands.
#[test]
fn the_place_of_a_nan_does_not_matter() {
    let nan = f32::NAN;
    for items in [[1.0, nan, 3.0], [nan, 1.0, 3.0], [1.0, 3.0, nan], [3.0, nan, 1.0]] {
        let propagated = json!({"min": "NaN", "max": "NaN", "minmax": {"min": "NaN", "max": "NaN"}});
        assert_eq!(f32s(&items, "min,max,minmax", &[]), propagated);
        let ignored = json!({"min": 1.0, "max": 3.0, "minmax": {"min": 1.0, "max": 3.0}});
        assert_eq!(f32s(&items, "min,max,minmax", IGNORE), ignored);
    }
}

/// No index that stands for "none yet" may come out.
#[test]
fn arg_operators_have_an_index_or_none() {
    let nans = vec![f32::NAN; 100];
    let nan = |index| json!({"index": index, "value": "NaN"});
    let both = |place: Value| json!({"argmin": place, "argmax": place});
    assert_eq!(f32s(&nans, "argmin,argmax", &[]), both(nan(0)));
    assert_eq!(f32s(&nans, "argmin,argmax", IGNORE), both(Value::Null));
    let zero = |index| json!({"index": index, "value": 0.0});
    let last = [vec![f32::NAN; 50], vec![0.0; 50]].concat();
    assert_eq!(f32s(&last, "argmin,argmax", &[]), both(nan(0)));
    assert_eq!(f32s(&last, "argmin,argmax", IGNORE), both(zero(50)));
    let first = [vec![0.0; 50], vec![f32::NAN; 50]].concat();
    assert_eq!(f32s(&first, "argmin,argmax", &[]), both(nan(50)));
    assert_eq!(f32s(&first, "argmin,argmax", IGNORE), both(zero(0)));
    assert_eq!(f32s(&[], "argmin,argmax", &[]), both(Value::Null));
}

/// The extreme and the one with an index agree, NaN or not.
#[test]
fn an_extreme_and_its_place_agree() {
    let nan = f32::NAN;
    for (items, ignored, index) in [([1.0, nan, 5.0, 0.1], 0.1, 3), ([nan, -0.5, nan, 0.0], -0.5, 1)] {
        let found = f32s(&items, "min,argmin", IGNORE);
        assert_eq!(found, json!({"min": ignored, "argmin": {"index": index, "value": ignored}}));
        let first = items.iter().position(|item| item.is_nan());
        let found = f32s(&items, "min,argmin", &[]);
        assert_eq!(found, json!({"min": "NaN", "argmin": {"index": first, "value": "NaN"}}));
    }
    let found = f32s(&[1.0, 2.0, nan, 3.0], "max,argmax", &[]);
    assert_eq!(found, json!({"max": "NaN", "argmax": {"index": 2, "value": "NaN"}}));
    let found = f32s(&[1.0, 2.0, nan, 3.0], "max,argmax", IGNORE);
    assert_eq!(found, json!({"max": 3.0, "argmax": {"index": 3, "value": 3.0}}));
    // Zeros of both signs: the element at the index is the maximum, to the bit.
    for n in [4, 70_000] {
        let mut items = vec![-3.0; n];
        items[..4].copy_from_slice(&[-1.0, -0.0, 0.0, -2.0]);
        let found = f32s(&items, "max,argmax", &[]);
        let index = found["argmax"]["index"].as_u64().unwrap() as usize;
        for value in [&found["max"], &found["argmax"]["value"]] {
            assert_eq!((number(value) as f32).to_bits(), items[index].to_bits());
        }
        assert_eq!(index, 2);
    }
}

/// The first of equal elements.
#[test]
fn ties_go_to_the_first() {
    for k in -10i64..10 {
        let place = json!({"index": 0, "value": k});
        let found = of("<i8", &[k.to_le_bytes(); 16], "argmax,argmin", &[]);
        assert_eq!(found, json!({"argmax": place, "argmin": place}));
    }
    let mut items = vec![0f32; 1_000_000];
    (items[1], items[163_840]) = (1.0, 1.0);
    assert_eq!(f32s(&items, "argmax", &[])["argmax"], json!({"index": 1, "value": 1.0}));
    let mut items = vec![0i32; 200_000];
    for at in [31, 32, 255, 256, 1023, 1024, 65_535, 65_536] {
        items[at] = 9;
    }
    let bytes = |sign: i32| items.iter().map(|item| (sign * item).to_le_bytes()).collect::<Vec<_>>();
    assert_eq!(of("<i4", &bytes(1), "argmax", &[])["argmax"], json!({"index": 31, "value": 9}));
    assert_eq!(of("<i4", &bytes(-1), "argmin", &[])["argmin"], json!({"index": 31, "value": -9}));
}

/// No detour through floats.
#[test]
fn large_integers_are_exact() {
    let u64s = |items: &[u64]| {
        of("<u8", &items.iter().map(|item| item.to_le_bytes()).collect::<Vec<_>>(), "max,argmax", &[])
    };
    for (items, index) in [
        (vec![0, 9_223_372_036_854_775], 1),
        (vec![1 << 63, (1 << 63) + 1], 1),
        (vec![u64::MAX - 1, u64::MAX, u64::MAX - 1], 1),
    ] {
        let max = items[index];
        assert_eq!(u64s(&items), json!({"max": max, "argmax": {"index": index, "value": max}}));
    }
}

/// What an accumulator starts with must not win.
#[test]
fn no_seed_shows() {
    let infinities = [f64::INFINITY; 10];
    let negated = infinities.map(|x| -x);
    assert_eq!(f64s(&infinities, "min", &[]), json!({"min": "inf"}));
    assert_eq!(f64s(&negated, "max", &[]), json!({"max": "-inf"}));
    assert_eq!(f32s(&[f32::INFINITY; 10], "min", &[]), json!({"min": "inf"}));
    assert_eq!(f32s(&[f32::NEG_INFINITY; 10], "max", &[]), json!({"max": "-inf"}));
    assert_eq!(
        (f16s(&infinities, "min"), f16s(&negated, "max")),
        (json!({"min": "inf"}), json!({"max": "-inf"}))
    );
    assert_eq!(
        (bf16s(&infinities, "min"), bf16s(&negated, "max")),
        (json!({"min": "inf"}), json!({"max": "-inf"}))
    );

    let both = |value: Value| {
        let place = json!({"index": 0, "value": value});
        json!({"argmax": place, "argmin": place})
    };
    assert_eq!(of("<u4", &[[0; 4]; 3], "argmax,argmin", &[]), both(json!(0)));
    assert_eq!(f64s(&[f64::MAX; 3], "argmax,argmin", &[]), both(json!(f64::MAX)));
    assert_eq!(of("|i1", &[[0x80]; 3], "argmax,argmin", &[]), both(json!(-128)));

    let counting: Vec<_> = (0..64u32).map(u32::to_le_bytes).collect();
    assert_eq!(of("<u4", &counting, "min", &[]), json!({"min": 0}));
    let counting: Vec<_> = (0..64u64).map(u64::to_le_bytes).collect();
    assert_eq!(of("<u8", &counting, "min", &[]), json!({"min": 0}));

    // Nothing is greater than the negative numbers, zero included.
    assert_eq!(f16s(&[-3.0, -1.0, -2.0], "argmax"), json!({"argmax": {"index": 1, "value": -1.0}}));
    let mut many = vec![-3.0; 40_000];
    many[1] = -1.0;
    assert_eq!(f16s(&many, "argmax"), json!({"argmax": {"index": 1, "value": -1.0}}));
    for n in [4, 5, 37, 4097] {
        let item = |i: i32| -(3 + i * 5 % 11);
        let floats: Vec<f32> = (0..n).map(|i| item(i) as f32).collect();
        assert_eq!(f32s(&floats, "max", &[]), json!({"max": -3.0}));
        let integers: Vec<_> = (0..n).map(|i| item(i).to_le_bytes()).collect();
        assert_eq!(of("<i4", &integers, "max", &[]), json!({"max": -3}));
    }
}

/// Magnitudes of unsigned numbers do not wrap.
#[test]
fn unsigned_numbers_have_magnitudes() {
    let found = of("<u4", &[3u32, 7, 2].map(u32::to_le_bytes), "linf,l1", &[]);
    assert_eq!(found, json!({"linf": 7, "l1": 12}));
}

/// One element.
#[test]
fn one_element_is_reduced() {
    let found = of("<i4", &[42i32.to_le_bytes()], "sum,max,argmax", &[]);
    assert_eq!(found, json!({"sum": 42, "max": 42, "argmax": {"index": 0, "value": 42}}));
}

/// Truth is not that of a byte, nor of a sum of bytes, and small numbers are not zero.
#[test]
fn truth_is_of_the_whole_number() {
    let yes = json!({"all": true, "any": true, "count": 4});
    assert_eq!(f32s(&[0.5; 4], "all,any,count", &[]), yes);
    assert_eq!(of("<i4", &[256i32.to_le_bytes(); 4], "all,any,count", &[]), yes);
    assert_eq!(f64s(&[1e-320; 4], "all,any,count", &[]), yes);
    assert_eq!(f32s(&[1e-40; 4], "all,any,count", &[]), yes);
    for n in [256, 65_536] {
        assert_eq!(of("|u1", &vec![[1]; n], "any,count", &[]), json!({"any": true, "count": n}));
        assert_eq!(
            of("|b1", &vec![[1]; n], "all,count,product", &[]),
            json!({"all": true, "count": n, "product": 1})
        );
    }
    for n in [1, 127, 128, 129, 255, 256, 257, 16_385] {
        assert_eq!(of("<u4", &vec![5u32.to_le_bytes(); n], "count", &[]), json!({"count": n}));
    }
}

/// What fits must come out, though what is summed on the way does not.
#[test]
fn means_and_variances_that_fit_come_out() {
    assert_eq!(f16s(&[40_000.0; 3], "mean"), json!({"mean": 40_000.0}));
    let items: Vec<f32> = (0..1000).map(|i| if i % 2 == 0 { 9e19 } else { 1.1e20 }).collect();
    let found = f32s(&items, "var,std", &[]);
    assert!((number(&found["var"]) / 1e38 - 1.0).abs() < 1e-5, "{found}");
    assert!((number(&found["std"]) / 1e19 - 1.0).abs() < 1e-5, "{found}");
}

/// Sums of finite halves that overflow say nothing of NaNs: the elements do.
#[test]
fn finite_halves_hold_no_nan() {
    let alternating: Vec<f64> = (0..10_000).map(|i| if i % 2 == 0 { 59.0 } else { -59.0 }).collect();
    assert_eq!(f16s(&alternating, "sum,max"), json!({"sum": 0.0, "max": 59.0}));
    assert_eq!(f16s(&vec![59.0; 10_000], "sum,mean"), json!({"sum": "inf", "mean": 59.0}));
}

/// The last elements count, whatever the length.
#[test]
fn tails_count() {
    for (n, at) in [(1500, 1400), (48, 40)] {
        let mut items = vec![0f32; n];
        items[at] = 1.0;
        assert_eq!(f32s(&items, "argmax", &[])["argmax"], json!({"index": at, "value": 1.0}));
    }
    for n in (1..600).step_by(37).chain([600, 4097, 100_003]) {
        let items: Vec<f64> = (0..n).map(|i| (7 * i % 1000) as f64 - 500.0).collect();
        let extreme = |best: fn(f64, f64) -> f64| items.iter().copied().reduce(best);
        let found = f16s(&items, "min,max");
        assert_eq!(
            (number(&found["min"]), number(&found["max"])),
            (extreme(f64::min).unwrap(), extreme(f64::max).unwrap())
        );
    }
    for n in [1, 16, 31, 33, 45, 48, 63, 65, 97, 1000] {
        let ones = f32s(&vec![1.0; n], "sum,count", &[]);
        assert_eq!(ones, json!({"sum": n as f64, "count": n}));
    }
}

/// Eight maxima add up beyond a half's range; the sum is infinite, not something finite.
#[test]
fn sums_of_halves_overflow_to_infinity() {
    assert_eq!(f16s(&[65504.0; 8], "sum,mean"), json!({"sum": "inf", "mean": 65500.0}));
    assert_eq!(f16s(&[65504.0, 65504.0, -65504.0], "sum"), json!({"sum": 65500.0}));
}

/// The bits of any NaN are the same NaN, also of one element.
#[test]
fn one_nan() {
    let files = Files::new();
    let path = files.write("a.npy", Npy::new("<f8", "()", le!(f64; -f64::NAN)).bytes());
    let found = reduce(&path, "sum,argmax,var", &[]);
    assert_eq!(found["results"], json!({"sum": "NaN", "argmax": {"index": 0, "value": "NaN"}, "var": "NaN"}));
}
