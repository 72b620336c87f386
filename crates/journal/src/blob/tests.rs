//! Folding keeps every value, also one that looks like a reference.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Blob, Cache, hex, unfold, write};

fn fold(value: &Value) -> (Value, Vec<Blob>) {
    let (mut text, mut blobs) = (String::new(), Vec::new());
    write(value, &mut text, &mut blobs);
    (serde_json::from_str(&text).expect("it is JSON"), blobs)
}

fn round_trip(value: &Value) -> Value {
    let (folded, blobs) = fold(value);
    let cache: Cache = blobs.into_iter().map(|blob| (hex(&blob.hash), blob.text)).collect();
    unfold(folded, &mut |hash| cache.get(hash).cloned()).expect("every reference is known")
}

#[test]
fn objects_that_look_like_references_survive() {
    for value in [json!({"$blob": "x"}), json!({"$blob": {"$blob": "y"}}), json!({"$blob": "z".repeat(2000)})]
    {
        assert_eq!(round_trip(&value), value);
    }
}

#[test]
fn a_missing_blob_is_named() {
    let (folded, blobs) = fold(&json!(["a".repeat(600)]));
    assert_eq!(unfold(folded, &mut |_| None), Err(hex(&blobs[0].hash)));
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        "[a-z$]{0,8}".prop_map(Value::from),
        (500_usize..530).prop_map(|n| Value::from("é".repeat(n / 2))),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop_oneof![Just("$blob".to_owned()), "[a-z]{1,3}"], inner), 0..3)
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
