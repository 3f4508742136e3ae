//! Every operator on complex numbers, whose parts are quarters of small integers.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::layout::{file, layout};
use super::{Files, Npy, ON_COMPLEX, column, compensated, fails, is_near, number, reduce};

/// Is that `[re, im]`, rounded to the type of the parts?
#[track_caller]
fn is_complex(found: &Value, (re, im): (f64, f64), part: f64) {
    let parts = found.as_array().expect("two parts");
    assert_eq!(parts.len(), 2);
    is_near(&parts[0], re, part);
    is_near(&parts[1], im, part);
}

#[track_caller]
fn check(found: &Value, items: &[Option<(i64, i64)>], part: f64, ignore: bool) {
    let numbers: Vec<(i64, i64)> = items.iter().copied().flatten().collect();
    let n = if ignore { numbers.len() } else { items.len() };
    let poisoned = n > numbers.len();
    let nan = f64::NAN;
    let (re, im) = numbers.iter().fold((0, 0), |(re, im), item| (re + item.0, im + item.1));
    let squares: i64 = numbers.iter().map(|(re, im)| re * re + im * im).sum();
    let moduli = || numbers.iter().map(|&(re, im)| ((re * re + im * im) as f64 / 16.0).sqrt());
    let truth = |item: &Option<(i64, i64)>| *item != Some((0, 0));
    let kept: Vec<_> = items.iter().copied().filter(|item| !ignore || item.is_some()).collect();
    assert_eq!(found["count"], json!(kept.iter().filter(|item| truth(item)).count()));
    assert_eq!(found["all"], json!(kept.iter().all(truth)));
    assert_eq!(found["any"], json!(kept.iter().any(truth)));
    let deviations = i128::from(squares) * n as i128 - i128::from(re * re + im * im);
    let variance = deviations as f64 / 16.0 / (n * n) as f64;
    let reals = [
        ("sumsq", squares as f64 / 16.0),
        ("l1", compensated(moduli())),
        ("l2", (squares as f64 / 16.0).sqrt()),
        ("linf", moduli().fold(0.0, f64::max)),
    ];
    for (op, expected) in reals {
        is_near(&found[op], if poisoned { nan } else { expected }, part);
    }
    for (op, expected) in [("var", variance), ("std", variance.sqrt())] {
        match items.len() {
            0 => assert_eq!(found[op], Value::Null),
            _ => is_near(&found[op], if poisoned { nan } else { expected }, part.max(1e-12)),
        }
    }
    let mean = (re as f64 / 4.0 / n as f64, im as f64 / 4.0 / n as f64);
    // The NaNs here have one in the real part alone, which a product spreads to both and a sum does not.
    if !poisoned {
        is_complex(&found["sum"], (re as f64 / 4.0, im as f64 / 4.0), part);
        match items.len() {
            0 => assert_eq!(found["mean"], Value::Null),
            _ => is_complex(&found["mean"], mean, part),
        }
        if numbers.len() <= 6 {
            let product =
                numbers.iter().fold((1, 0), |(a, b): (i64, i64), (c, d)| (a * c - b * d, a * d + b * c));
            let scale = 4f64.powi(numbers.len() as i32);
            is_complex(&found["product"], (product.0 as f64 / scale, product.1 as f64 / scale), part);
        }
    } else {
        assert_eq!((&found["sum"][0], &found["mean"][0]), (&json!("NaN"), &json!("NaN")));
        assert!(number(&found["sum"][1]).is_finite());
        assert_eq!(found["product"][0], json!("NaN"));
        assert!(items.len() == 1 || found["product"][1] == json!("NaN"));
    }
}

macro_rules! complex {
    ($($name:ident, $part:ty, $code:literal, $bytes:literal, $tolerance:expr;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $name(
                    numbers in prop_oneof![
                        prop::collection::vec((-9..10i64, -9..10i64), 0..7),
                        prop::collection::vec((-127..128i64, -127..128i64), 0..3000),
                    ],
                    nans in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
                    layout in layout(),
                ) {
                    let mut items: Vec<Option<(i64, i64)>> = numbers.into_iter().map(Some).collect();
                    for at in &nans {
                        items.insert(at.index(items.len() + 1), None);
                    }
                    let bytes: Vec<[u8; $bytes]> = items
                        .iter()
                        .map(|item| {
                            let (re, im) = item.map_or((f64::NAN, 0.5), |(re, im)| (re as f64 / 4.0, im as f64 / 4.0));
                            let parts = [re as $part, im as $part].map(<$part>::to_le_bytes);
                            parts.concat().try_into().unwrap()
                        })
                        .collect();
                    let files = Files::new();
                    let path = files.write("a.npy", file($code, &bytes, 2, &layout));
                    for (rule, ignore) in [("propagate", false), ("ignore", true)] {
                        let found = reduce(&path, ON_COMPLEX, &["--nan", rule]);
                        prop_assert_eq!((&found["n"], &found["dtype"]), (&json!(items.len()), &json!(stringify!($name))));
                        check(&found["results"], &items, $tolerance, ignore);
                    }
                }
            )*
        }
    };
}

complex! {
    complex64, f32, "c8", 8, 1.3e-7;
    complex128, f64, "c16", 16, 4e-15;
}

fn of_parts(files: &Files, items: &[[f64; 2]]) -> std::path::PathBuf {
    let bytes: Vec<[u8; 16]> =
        items.iter().map(|parts| parts.map(f64::to_le_bytes).concat().try_into().unwrap()).collect();
    column(files, "a.npy", "<c16", &bytes)
}

/// An odd number of `i` multiplied.
#[test]
fn powers_of_i() {
    let files = Files::new();
    let path = of_parts(&files, &[[0.0, 1.0]; 1001]);
    let product = &reduce(&path, "product", &[])["results"]["product"];
    assert_eq!((number(&product[0]), number(&product[1])), (0.0, 1.0));
}

#[test]
fn a_table_shows_both_parts() {
    let files = Files::new();
    let path = of_parts(&files, &[[1.0, -2.5], [0.5, 0.0]]);
    let stdout = super::succeeds(["reduce", "--op", "sum,var", path.to_str().unwrap()]);
    assert!(stdout.contains("sum      1.5-2.5i\n"), "{stdout}");
    let path = of_parts(&files, &[[f64::NAN, f64::INFINITY]]);
    let stdout = super::succeeds(["reduce", "--op", "sum", path.to_str().unwrap()]);
    assert!(stdout.contains("sum      NaN+infi\n"), "{stdout}");
}

#[test]
fn complex_numbers_have_no_order() {
    let files = Files::new();
    let path = files.write("a.npy", Npy::new("<c8", "(1,)", [0; 8]).bytes());
    for op in ["min", "max", "minmax", "argmin", "argmax"] {
        let words = [op, "complex64", "it takes bool, int8 to int64, uint8 to uint64, float16"];
        fails(["reduce", "--op", op, path.to_str().unwrap()], 2, &words);
    }
    for op in ["xor", "mss", "logsumexp"] {
        fails(["reduce", "--op", op, path.to_str().unwrap()], 2, &[op, "complex64"]);
    }
}
