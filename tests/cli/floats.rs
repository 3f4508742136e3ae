//! Every operator on floats of every width, with both rules for NaNs.
//!
//! Elements are quarters of small integers, so that what is expected is exact arithmetic on integers, rounded.

use half::{bf16, f16};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::layout::{file, layout};
use super::{Files, Npy, ON_FLOATS, column, compensated, is_near, number, reduce};

/// A type under test.
#[derive(Clone, Copy)]
struct Kind {
    round: fn(f64) -> f64,
    /// The relative error of one rounding, and of some in `f64`.
    part: f64,
    /// The absolute one, where numbers are subnormal.
    least: f64,
}

const F16: Kind = Kind { round: nearest_f16, part: 4.89e-4, least: 3e-8 };
const BF16: Kind = Kind { round: nearest_bf16, part: 3.92e-3, least: 0.0 };
const F32: Kind = Kind { round: |x| f64::from(x as f32), part: 6e-8, least: 0.0 };
const F64: Kind = Kind { round: |x| x, part: 4e-15, least: 0.0 };

/// `half` rounds the upper half of an `f64`, which is off where the lower decides: one of that float and its neighbours.
fn nearest(x: f64, bits: u16, float: impl Fn(u16) -> f64) -> f64 {
    if !float(bits).is_finite() || bits & 0x7fff == 0 {
        return float(bits);
    }
    let near = [bits - 1, bits, bits + 1].into_iter().filter(|&bits| float(bits).is_finite());
    // Differences of neighbours are exact; of two as near, the even one.
    let key = |bits: u16| ((float(bits) - x).abs(), bits & 1);
    near.map(|bits| (key(bits), float(bits))).min_by(|a, b| a.0.partial_cmp(&b.0).unwrap()).unwrap().1
}

fn nearest_f16(x: f64) -> f64 {
    nearest(x, f16::from_f64(x).to_bits(), |bits| f16::from_bits(bits).to_f64())
}

fn nearest_bf16(x: f64) -> f64 {
    nearest(x, bf16::from_f64(x).to_bits(), |bits| bf16::from_bits(bits).to_f64())
}

/// Checks every operator on quarters; `None` is a NaN.
#[track_caller]
fn check(found: &Value, items: &[Option<i64>], kind: Kind, ignore: bool, ddof: u64) {
    let round = kind.round;
    let float = |item: Option<i64>| item.map_or(f64::NAN, |item| item as f64 / 4.0);
    let is = |op: &str, expected: Value| assert_eq!(found[op], expected, "{op}");
    let rounds_to = |found: &Value, expected: f64| {
        let (found, expected) = (round(number(found)), round(expected));
        assert!(found == expected || (found.is_nan() && expected.is_nan()), "{found:e}, not {expected:e}");
    };
    let near = |op: &str, expected: f64, part: f64| {
        let difference = (number(&found[op]) - expected).abs();
        if difference.is_nan() || difference > part * expected.abs() + kind.least {
            rounds_to(&found[op], expected);
        }
    };
    let numbers: Vec<i64> = items.iter().copied().flatten().collect();
    let kept: Vec<Option<i64>> = items.iter().copied().filter(|item| !ignore || item.is_some()).collect();
    let n = kept.len();
    let poisoned = n > numbers.len();
    let if_clean = |value: f64| if poisoned { f64::NAN } else { value };
    let sum: i64 = numbers.iter().sum();
    let squares: i64 = numbers.iter().map(|item| item * item).sum();
    let greatest = numbers.iter().map(|item| item.abs()).max().unwrap_or(0);

    rounds_to(&found["sum"], if_clean(sum as f64 / 4.0));
    rounds_to(&found["sumsq"], if_clean(squares as f64 / 16.0));
    rounds_to(&found["l1"], if_clean(numbers.iter().map(|item| item.abs()).sum::<i64>() as f64 / 4.0));
    rounds_to(&found["linf"], if_clean(greatest as f64 / 4.0));
    near("l2", if_clean((squares as f64 / 16.0).sqrt()), kind.part);
    if numbers.len() <= 7 {
        // 49 bits at most: no order rounds.
        rounds_to(&found["product"], if_clean(numbers.iter().map(|&item| item as f64 / 4.0).product()));
    }
    let segment = numbers.iter().fold((0, 0), |(best, here): (i64, i64), item| {
        let here = (here + item).max(0);
        (best.max(here), here)
    });
    rounds_to(&found["mss"], if_clean(segment.0 as f64 / 4.0));
    let truth = |item: &Option<i64>| *item != Some(0);
    is("count", json!(kept.iter().filter(|item| truth(item)).count()));
    is("all", json!(kept.iter().all(truth)));
    is("any", json!(kept.iter().any(truth)));

    // Of nothing there is no extreme, of nothing but NaNs it is NaN.
    let (min, max) = (numbers.iter().min().copied(), numbers.iter().max().copied());
    if items.is_empty() {
        for op in ["min", "max", "minmax", "argmin", "argmax", "mean", "var", "std"] {
            is(op, Value::Null);
        }
        is("logsumexp", json!("-inf"));
        return;
    }
    let extreme = |best: Option<i64>| if_clean(float(best));
    rounds_to(&found["min"], extreme(min));
    rounds_to(&found["max"], extreme(max));
    rounds_to(&found["minmax"]["min"], extreme(min));
    rounds_to(&found["minmax"]["max"], extreme(max));
    for (op, best) in [("argmin", min), ("argmax", max)] {
        let sought = if poisoned { None } else { best };
        if n == 0 {
            is(op, Value::Null);
        } else {
            let index = items.iter().position(|&item| item == sought);
            assert_eq!(found[op]["index"], json!(index), "{op}");
            rounds_to(&found[op]["value"], float(sought));
        }
    }
    near("mean", if_clean(sum as f64 / 4.0 / n as f64), kind.part);
    let deviations = i128::from(squares) * n as i128 - i128::from(sum) * i128::from(sum);
    let variance = if n as u64 > ddof {
        if_clean(deviations as f64 / 16.0 / (n as f64 * (n as u64 - ddof) as f64))
    } else {
        f64::NAN
    };
    near("var", variance, kind.part.max(1e-12));
    near("std", variance.sqrt(), kind.part.max(1e-12));
    let top = float(max);
    let scaled = compensated(numbers.iter().map(|&item| (item as f64 / 4.0 - top).exp()));
    let logarithm = if n == 0 { f64::NEG_INFINITY } else { if_clean(top + scaled.ln()) };
    let difference = (number(&found["logsumexp"]) - logarithm).abs();
    if difference.is_nan() || difference > kind.part * logarithm.abs() + 1e-13 {
        rounds_to(&found["logsumexp"], logarithm);
    }
}

macro_rules! floats {
    ($($name:ident, $type:ty, $of:expr, $code:literal, $dtype:literal, $options:expr, $kind:expr;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $name(
                    numbers in prop_oneof![
                        prop::collection::vec(-127..128i64, 0..8),
                        prop::collection::vec(-127..128i64, 0..3000),
                        prop::collection::vec(0..2i64, 5000..6000),
                    ],
                    nans in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
                    layout in layout(),
                    ddof in 0..3u64,
                ) {
                    let mut items: Vec<Option<i64>> = numbers.into_iter().map(Some).collect();
                    for at in &nans {
                        items.insert(at.index(items.len() + 1), None);
                    }
                    let bytes: Vec<_> = items
                        .iter()
                        .map(|item| $of(item.map_or(f64::NAN, |item| item as f64 / 4.0)).to_le_bytes())
                        .collect();
                    let files = Files::new();
                    let path = files.write("a.npy", file($code, &bytes, 1, &layout));
                    let ddof_text = ddof.to_string();
                    for (rule, ignore) in [("propagate", false), ("ignore", true)] {
                        let options: &[&str] = &$options;
                        let options = [options, &["--ddof", &ddof_text, "--nan", rule]].concat();
                        let found = reduce(&path, ON_FLOATS, &options);
                        prop_assert_eq!((&found["n"], &found["dtype"]), (&json!(items.len()), &json!($dtype)));
                        check(&found["results"], &items, $kind, ignore, ddof);
                    }
                }
            )*
        }
    };
}

floats! {
    float16, f16, f16::from_f64, "f2", "float16", [], F16;
    bfloat16, bf16, bf16::from_f64, "V2", "bfloat16", ["--dtype", "bf16"], BF16;
    float32, f32, |x: f64| x as f32, "f4", "float32", [], F32;
    float64, f64, |x: f64| x, "f8", "float64", [], F64;
}

/// Halves come back as the shortest decimals that round to them.
#[test]
fn halves_are_short_and_read_back() {
    let files = Files::new();
    for (value, text) in [
        (0.1, "0.1"),
        (-1.0 / 3.0, "-0.3333"),
        (65504.0, "65500.0"),
        (6e-8, "6e-8"),
        (2048.0, "2048.0"),
        (-0.0, "-0.0"),
        (f64::INFINITY, "\"inf\""),
        (f64::NAN, "\"NaN\""),
    ] {
        let path = column(&files, "a.npy", "<f2", &[f16::from_f64(value).to_le_bytes()]);
        assert_eq!(reduce(&path, "max", &[])["results"]["max"].to_string(), text);
    }
    // The next values on both sides are no nearer. (A tie reads back as the even one.)
    let is_nearest = |found: &Value, [below, value, above]: [f64; 3]| {
        let found = number(found);
        assert!(
            (found - value).abs() <= (found - below).abs().min((found - above).abs()),
            "{found}, not {value}"
        );
    };
    for bits in (1..0x7bff).step_by(61) {
        let path = column(&files, "a.npy", "<f2", &[u16::to_le_bytes(bits)]);
        let around = [bits - 1, bits, bits + 1].map(|bits| f16::from_bits(bits).to_f64());
        is_nearest(&reduce(&path, "min", &[])["results"]["min"], around);
        if bits % 4 == 0 {
            let path = column(&files, "a.npy", "|V2", &[bits.to_le_bytes()]);
            let around = [bits - 1, bits, bits + 1].map(|bits| bf16::from_bits(bits).to_f64());
            is_nearest(&reduce(&path, "min", &["--dtype", "bf16"])["results"]["min"], around);
        }
    }
}

#[test]
fn zeros_have_an_order() {
    let files = Files::new();
    let path = column(&files, "a.npy", "<f8", &[0.0, -0.0, 0.0, -0.0].map(f64::to_le_bytes));
    let results = reduce(&path, "argmin,argmax,minmax,linf,l1,any", &[])["results"].to_string();
    let value: Value = serde_json::from_str(&results).unwrap();
    assert_eq!((&value["argmin"]["index"], &value["argmax"]["index"]), (&json!(1), &json!(0)));
    for part in [r#""value":-0.0"#, r#""min":-0.0"#, r#""max":0.0"#, r#""linf":0.0"#, r#""l1":0.0"#] {
        assert!(results.contains(part), "{part} is not in {results}");
    }
    assert_eq!(value["any"], json!(false));
}

/// A mean far from zero, which sums of squares lose.
#[test]
fn variances_far_from_zero_keep_their_digits() {
    let files = Files::new();
    // 1e8 + i mod 7, of which the variance is that of 0 to 6: 4.
    let items: Vec<_> = (0..70_000).map(|i| (1e8 + f64::from(i % 7)).to_le_bytes()).collect();
    let path = column(&files, "a.npy", "<f8", &items);
    let results = &reduce(&path, "mean,var,std", &[])["results"];
    is_near(&results["mean"], 1e8 + 3.0, 1e-15);
    is_near(&results["var"], 4.0, 1e-12);
    is_near(&results["std"], 2.0, 1e-12);
    let narrow: Vec<_> = (0..70_000).map(|i| (1e6 + (i % 7) as f32).to_le_bytes()).collect();
    let path = column(&files, "a.npy", "<f4", &narrow);
    assert_eq!(reduce(&path, "mean,var", &[])["results"], json!({"mean": 1000003.0, "var": 4.0}));
}

/// Squares and exponentials that would overflow or vanish on the way.
#[test]
fn norms_and_logarithms_do_not_overflow_on_the_way() {
    let files = Files::new();
    for scale in [1e300, 1e-300, 1.0] {
        let path = column(&files, "a.npy", "<f8", &[3.0 * scale, -4.0 * scale].map(f64::to_le_bytes));
        is_near(&reduce(&path, "l2", &[])["results"]["l2"], 5.0 * scale, 1e-15);
    }
    for shift in [1000.0, -1000.0, 0.0] {
        let path = column(&files, "a.npy", "<f8", &[shift, shift].map(f64::to_le_bytes));
        let found = reduce(&path, "logsumexp", &[]);
        is_near(&found["results"]["logsumexp"], shift + 2f64.ln(), 1e-15);
    }
    let path = column(&files, "a.npy", "<f8", &[f64::INFINITY, 0.0].map(f64::to_le_bytes));
    assert_eq!(reduce(&path, "logsumexp,l2", &[])["results"], json!({"logsumexp": "inf", "l2": "inf"}));
}

/// `ddof` may be a fraction, and may leave nothing to divide by.
#[test]
fn ddof_is_numpys() {
    let files = Files::new();
    let path = column(&files, "a.npy", "<f8", &[1.0, 2.0, 3.0, 6.0].map(f64::to_le_bytes));
    for (ddof, variance) in [("0", 3.5), ("1", 14.0 / 3.0), ("0.5", 4.0), ("4", f64::NAN)] {
        is_near(&reduce(&path, "var", &["--ddof", ddof])["results"]["var"], variance, 1e-15);
    }
    let path = files.write("a.csv", "x\n1\n2\n3\n\n\"\"\n6\n");
    let results = &reduce(&path, "var,mean,argmax", &["--nan", "ignore"])["results"];
    is_near(&results["var"], 3.5, 1e-15);
    assert_eq!((&results["mean"], &results["argmax"]), (&json!(3.0), &json!({"index": 4, "value": 6.0})));
}

/// Nothing but NaNs, and nothing at all.
#[test]
fn what_is_left_of_nothing() {
    let files = Files::new();
    let one_nan = Npy::new("<f4", "(1,)", f32::NAN.to_le_bytes());
    let path = files.write("a.npy", one_nan.bytes());
    let results = &reduce(&path, ON_FLOATS, &["--nan", "ignore"])["results"];
    let expected = json!({
        "sum": 0.0, "product": 1.0, "min": "NaN", "max": "NaN", "minmax": {"min": "NaN", "max": "NaN"},
        "argmin": null, "argmax": null, "all": true, "any": false, "count": 0, "sumsq": 0.0, "l1": 0.0, "l2": 0.0,
        "linf": 0.0, "mean": "NaN", "var": "NaN", "std": "NaN", "logsumexp": "-inf", "mss": 0.0,
    });
    assert_eq!(results, &expected);
}
