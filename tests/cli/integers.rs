//! Every operator on integers of every width, against exact arithmetic.

use num_bigint::BigInt;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::layout::{file, layout};
use super::{Files, ON_INTEGERS, column, fails, is_near, reduce};

/// The nearest `f64`.
fn to_f64(value: &BigInt) -> f64 {
    value.to_string().parse().expect("digits")
}

/// The lowest 64 bits, signed or not.
fn cut(value: &BigInt, signed: bool) -> Value {
    let modulus = BigInt::from(1) << 64;
    let low = ((value % &modulus) + &modulus) % &modulus;
    let low = u64::try_from(low).expect("64 bits");
    if signed { json!(low as i64) } else { json!(low) }
}

/// The greatest sum of neighbours (J. B. Kadane).
fn greatest_segment(items: &[i128]) -> i128 {
    items
        .iter()
        .fold((0, 0), |(best, here): (i128, i128), item| {
            let here = (here + item).max(0);
            (best.max(here), here)
        })
        .0
}

/// Checks every operator, `bits` being the type's width.
#[track_caller]
fn check(found: &Value, items: &[i128], signed: bool, bits: u32, ddof: u64) {
    let n = items.len();
    let big: Vec<BigInt> = items.iter().map(|&item| BigInt::from(item)).collect();
    let sum: BigInt = big.iter().sum();
    let squares: BigInt = big.iter().map(|item| item * item).sum();
    let magnitudes: BigInt = items.iter().map(|item| BigInt::from(item.abs())).sum();
    let product = big.iter().fold(BigInt::from(1), |product, item| product * item % (BigInt::from(1) << 64));
    let is = |op: &str, expected: Value| assert_eq!(found[op], expected, "{op}");
    is("sum", cut(&sum, signed));
    is("product", cut(&product, signed));
    is("sumsq", cut(&squares, false));
    is("l1", cut(&magnitudes, false));
    is("linf", cut(&BigInt::from(items.iter().map(|item| item.abs()).max().unwrap_or(0)), false));
    // What wraps on the way depends on which sums are compared.
    if magnitudes < BigInt::from(i64::MAX) {
        is("mss", cut(&BigInt::from(greatest_segment(items)), signed));
    }
    is("count", json!(items.iter().filter(|&&item| item != 0).count()));
    is("all", json!(items.iter().all(|&item| item != 0)));
    is("any", json!(items.iter().any(|&item| item != 0)));
    let value = |item: i128| cut(&BigInt::from(item), signed);
    let (min, max) = (items.iter().min(), items.iter().max());
    is("min", min.map_or(Value::Null, |&min| value(min)));
    is("max", max.map_or(Value::Null, |&max| value(max)));
    is(
        "minmax",
        min.zip(max).map_or(Value::Null, |(&min, &max)| json!({"min": value(min), "max": value(max)})),
    );
    let place = |best: Option<&i128>| {
        best.map_or(Value::Null, |best| {
            let index = items.iter().position(|item| item == best);
            json!({"index": index, "value": value(*best)})
        })
    };
    is("argmin", place(min));
    is("argmax", place(max));
    // Two's complement of the type's width, whose sign goes on for ever.
    let ones = if signed { -1 } else { (1 << bits) - 1 };
    is("and", value(items.iter().fold(ones, |bits, item| bits & item)));
    is("or", value(items.iter().fold(0, |bits, item| bits | item)));
    is("xor", value(items.iter().fold(0, |bits, item| bits ^ item)));
    is_near(&found["l2"], to_f64(&squares).sqrt(), 1e-15);
    if n == 0 {
        for op in ["mean", "var", "std"] {
            is(op, Value::Null);
        }
        return;
    }
    is_near(&found["mean"], to_f64(&sum) / n as f64, 1e-15);
    // n times the sum of squared deviations is an integer.
    let deviations = BigInt::from(n) * &squares - &sum * &sum;
    let variance =
        if n as u64 > ddof { to_f64(&deviations) / (n as f64 * (n as u64 - ddof) as f64) } else { f64::NAN };
    let part = if bits == 64 { 1e-12 } else { 4e-15 };
    is_near(&found["var"], variance, part);
    is_near(&found["std"], variance.sqrt(), part);
}

macro_rules! integers {
    ($($name:ident, $type:ty, $code:literal, $dtype:literal;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $name(
                    items in prop_oneof![
                        prop::collection::vec(any::<$type>(), 0..40),
                        prop::collection::vec((<$type>::MAX - 5)..=<$type>::MAX, 1..40),
                        prop::collection::vec(
                            prop_oneof![Just(<$type>::MIN), Just(<$type>::MAX), (0 as $type)..3],
                            0..5000,
                        ),
                    ],
                    layout in layout(),
                    ddof in 0..3u64,
                ) {
                    let files = Files::new();
                    let bytes: Vec<_> = items.iter().map(|item| item.to_le_bytes()).collect();
                    let path = files.write("a.npy", file($code, &bytes, 1, &layout));
                    let found = reduce(&path, ON_INTEGERS, &["--ddof", &ddof.to_string()]);
                    prop_assert_eq!((&found["n"], &found["dtype"]), (&json!(items.len()), &json!($dtype)));
                    let exact: Vec<i128> = items.iter().map(|&item| item as i128).collect();
                    #[allow(unused_comparisons)]
                    let signed = <$type>::MIN < 0;
                    check(&found["results"], &exact, signed, <$type>::BITS, ddof);
                }
            )*
        }
    };
}

integers! {
    int8, i8, "i1", "int8";
    int16, i16, "i2", "int16";
    int32, i32, "i4", "int32";
    int64, i64, "i8", "int64";
    uint8, u8, "u1", "uint8";
    uint16, u16, "u2", "uint16";
    uint32, u32, "u4", "uint32";
    uint64, u64, "u8", "uint64";
}

/// The lowest integer has a distance from 0 that its own type does not hold.
#[test]
fn the_lowest_integer_has_a_magnitude() {
    let files = Files::new();
    let path = column(&files, "a.npy", "|i1", &[[0x80], [0x7f]]);
    let results = &reduce(&path, "linf,l1,sumsq", &[])["results"];
    assert_eq!(results, &json!({"linf": 128, "l1": 255, "sumsq": 16384 + 16129}));
    let path = column(&files, "a.npy", "<i8", &[i64::MIN.to_le_bytes()]);
    let results = &reduce(&path, "linf,l1,l2", &[])["results"];
    assert_eq!(results, &json!({"linf": 1u64 << 63, "l1": 1u64 << 63, "l2": 9223372036854775808.0}));
}

/// 300 bytes of 200 are 60000, not 60000 mod 256.
#[test]
fn bytes_do_not_wrap() {
    let files = Files::new();
    let path = column(&files, "a.npy", "|u1", &[[200]; 300]);
    let results = &reduce(&path, "sum,l1,sumsq,mss,mean,dot", &["--with", path.to_str().unwrap()])["results"];
    let squares = 300 * 200 * 200;
    assert_eq!(
        results,
        &json!({"sum": 60000, "l1": 60000, "sumsq": squares, "mss": 60000, "mean": 200.0, "dot": squares})
    );
}

#[test]
fn logarithms_are_of_floats() {
    let files = Files::new();
    let path = column(&files, "a.npy", "|u1", &[[1]]);
    let words = ["--op logsumexp", "uint8", "it takes float16, bfloat16, float32 and float64"];
    fails(["reduce", "--op", "sum,logsumexp", path.to_str().unwrap()], 2, &words);
}

/// A square of a deviation takes 130 bits here.
#[test]
fn variances_of_far_numbers_keep_their_digits() {
    let files = Files::new();
    let far = 1u64 << 63;
    let path = column(&files, "a.npy", "<u8", &[1, 2, 3, 4].map(|near: u64| (far + near).to_le_bytes()));
    assert_eq!(reduce(&path, "var", &[])["results"]["var"], json!(1.25));
    let path = column(&files, "a.npy", "<u8", &[0, u64::MAX].map(u64::to_le_bytes));
    is_near(&reduce(&path, "std", &[])["results"]["std"], 9223372036854775807.5, 1e-15);
}
