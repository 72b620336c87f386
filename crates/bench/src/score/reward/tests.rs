//! Rewards that Harbor accepts and rejects.

use super::*;

fn reading(files: &[(&str, &str)]) -> Result<f64, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    read(folder.path())
}

#[test]
fn numbers_are_read() {
    assert_eq!(reading(&[("reward.txt", "1\n")]), Ok(1.0));
    assert_eq!(reading(&[("reward.txt", " 0.25 ")]), Ok(0.25));
    assert_eq!(reading(&[("reward.txt", "0"), ("reward.json", r#"{"reward": 1.0, "style": 0.5}"#)]), Ok(1.0));
    assert_eq!(reading(&[("reward.json", r#"{"a": 1, "b": 0}"#)]), Ok(0.5));
}

#[test]
fn anything_else_is_broken() {
    for (name, text) in [
        ("reward.txt", "NaN"),
        ("reward.txt", "inf"),
        ("reward.txt", "yes"),
        ("reward.txt", ""),
        ("reward.json", "{}"),
        ("reward.json", "[1]"),
        ("reward.json", r#"{"reward": true}"#),
        ("reward.json", r#"{"reward": "1"}"#),
        ("reward.json", r#"{"reward": NaN}"#),
    ] {
        let error = reading(&[(name, text)]).unwrap_err();
        assert!(error.contains(name), "{text}: {error}");
    }
    assert!(reading(&[]).unwrap_err().contains("no reward"));
}
