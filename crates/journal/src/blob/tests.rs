//! Folding is lossless, including for values that look like references or exceed the depth JSON readers
//! accept.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{BlobError, hash, hex, unfold, write};

fn fold(value: &Value) -> (Value, HashMap<String, String>) {
    let mut kept = HashMap::new();
    let text = write(value, &mut |text| {
        let hash = hash(text);
        kept.insert(hex(&hash), text.to_owned());
        hash
    });
    (serde_json::from_str(&text).expect("it is JSON"), kept)
}

fn round_trip(value: &Value) -> Value {
    let (folded, kept) = fold(value);
    match unfold::<()>(folded, &mut |hash| Ok(kept.get(hash).cloned())) {
        Ok(value) => value,
        Err(_) => panic!("every reference is known"),
    }
}

#[test]
fn long_strings_are_taken_out_and_short_ones_stay() {
    let (folded, kept) = fold(&json!({"long": "a".repeat(512), "short": "b".repeat(511)}));
    assert_eq!(folded["short"], json!("b".repeat(511)));
    assert_eq!(folded["long"], json!({ "$blob": hex(&hash(&"a".repeat(512))) }));
    assert_eq!(kept.into_values().collect::<Vec<_>>(), ["a".repeat(512)]);
}

#[test]
fn objects_that_look_like_references_survive() {
    for value in [
        json!({"$blob": "x"}),
        json!({"$blob": ["x"]}),
        json!({"$blob": {"$blob": "y"}}),
        json!({"$blob": "z".repeat(2000)}),
        json!({"$blob": null, "more": 1}),
        json!([{"$blob": {"$blob": {"$blob": [{"$blob": 1}]}}}]),
    ] {
        assert_eq!(round_trip(&value), value);
    }
}

#[test]
fn any_depth_survives() {
    for depth in [63, 64, 65, 127, 128, 129, 300] {
        let value = (0..depth).fold(json!(1), |inner, n| match n % 3 {
            0 => json!([inner]),
            1 => json!({ "$blob": inner }),
            _ => json!({ "a": inner, "b": "c" }),
        });
        assert_eq!(round_trip(&value), value, "at depth {depth}");
    }
}

#[test]
fn a_missing_blob_is_named() {
    let (folded, _) = fold(&json!(["a".repeat(600)]));
    let unfolded = unfold::<()>(folded, &mut |_| Ok(None));
    assert!(matches!(unfolded, Err(BlobError::Missing(missing)) if missing == hex(&hash(&"a".repeat(600)))));
}

#[test]
fn what_was_not_written_here_is_malformed() {
    for value in
        [json!({"$blob": 1}), json!({"$blob": []}), json!({"$blob": [1]}), json!({"$blob": ["known"]})]
    {
        let unfolded = unfold::<()>(value.clone(), &mut |_| Ok(Some("no JSON".to_owned())));
        assert!(matches!(unfolded, Err(BlobError::Malformed)), "{value}");
    }
    // A blob that refers to itself terminates.
    let around = unfold::<()>(json!({"$blob": ["x"]}), &mut |_| Ok(Some(r#"{"$blob":["x"]}"#.to_owned())));
    assert!(matches!(around, Err(BlobError::Malformed)));
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z$]{0,8}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        (500_usize..530).prop_map(|n| Value::from("é".repeat(n / 2))),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop_oneof![Just("$blob".to_owned()), any::<String>()], inner), 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn folding_and_unfolding_is_identity(value in value()) {
        prop_assert_eq!(round_trip(&value), value);
    }
}
