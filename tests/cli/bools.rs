//! Every operator on `bool`, whatever bytes a file holds for true.

use serde_json::{Value, json};

use super::{Files, Npy, ON_BOOL, fails, reduce};

fn results(bytes: &[u8]) -> Value {
    let files = Files::new();
    let path = files.write("a.npy", Npy::new("|b1", &format!("({},)", bytes.len()), bytes).bytes());
    let found = reduce(&path, ON_BOOL, &[]);
    assert_eq!((&found["n"], &found["dtype"]), (&json!(bytes.len()), &json!("bool")));
    found["results"].clone()
}

#[test]
fn every_operator() {
    // A byte that numpy would not write is true, in every operator alike.
    for one in [1, 2, 0x80, 0xff] {
        assert_eq!(
            results(&[one, 0, one, 1, 0]),
            json!({
                "sum": 3, "product": 0, "min": false, "max": true, "minmax": {"min": false, "max": true},
                "argmin": {"index": 1, "value": false}, "argmax": {"index": 0, "value": true},
                "and": false, "or": true, "xor": true, "all": false, "any": true, "count": 3, "mean": 0.6,
            })
        );
        assert_eq!(
            results(&[one, 1]),
            json!({
                "sum": 2, "product": 1, "min": true, "max": true, "minmax": {"min": true, "max": true},
                "argmin": {"index": 0, "value": true}, "argmax": {"index": 0, "value": true},
                "and": true, "or": true, "xor": false, "all": true, "any": true, "count": 2, "mean": 1.0,
            })
        );
    }
}

#[test]
fn nothing() {
    assert_eq!(
        results(&[]),
        json!({
            "sum": 0, "product": 1, "min": null, "max": null, "minmax": null, "argmin": null, "argmax": null,
            "and": true, "or": false, "xor": false, "all": true, "any": false, "count": 0, "mean": null,
        })
    );
}

/// Long enough for several pieces and for vectors; every 251st is true by another byte.
#[test]
fn many() {
    let bytes: Vec<u8> =
        (0..100_003u32).map(|i| if i % 251 == 7 { 1 + (i % 255) as u8 } else { 0 }).collect();
    let count = bytes.iter().filter(|&&byte| byte != 0).count();
    let found = results(&bytes);
    assert_eq!((&found["sum"], &found["count"]), (&json!(count), &json!(count)));
    assert_eq!(found["xor"], json!(count % 2 == 1));
    assert_eq!(found["argmax"], json!({"index": 7, "value": true}));
    assert_eq!(found["mean"], json!(count as f64 / bytes.len() as f64));
}

#[test]
fn norms_are_of_numbers() {
    let files = Files::new();
    let path = files.write("a.npy", Npy::new("|b1", "(1,)", [1]).bytes());
    for op in ["l1", "var", "sumsq", "mss", "logsumexp"] {
        let named = format!("--op {op} does not take elements of type bool");
        fails(["reduce", "--op", op, path.to_str().unwrap()], 2, &[&named, "it takes "]);
    }
}
