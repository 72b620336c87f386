//! A key is found in every place where a command may leave one.

use super::*;

fn environment(name: &str, value: &str) -> Vec<(OsString, OsString)> {
    vec![(name.into(), value.into())]
}

#[test]
fn a_key_that_was_not_there_before_is_found() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("deep")).unwrap();
    fs::write(root.path().join("planted"), "sk-0123456789").unwrap();
    let watch = SecretScan::over(root.path(), &environment("ANY_API_KEY", "sk-0123456789"));
    watch.assert_kept("run");
    fs::write(root.path().join("deep/journal"), b"\0\xffsk-0123456789\0").unwrap();
    let said = std::panic::catch_unwind(|| watch.assert_kept("run")).unwrap_err();
    let said = said.downcast_ref::<String>().unwrap();
    assert!(said.contains("left a key in") && said.contains("deep/journal"), "{said}");
    assert!(!said.contains("planted"), "{said}");
}

#[test]
fn what_is_no_key_is_not_searched_for() {
    let root = tempfile::tempdir().unwrap();
    let watches = [("EDITOR", "0123456789"), ("SHORT_KEY", "abc")]
        .map(|(name, value)| SecretScan::over(root.path(), &environment(name, value)));
    fs::write(root.path().join("file"), "abc 0123456789").unwrap();
    watches.iter().for_each(|watch| watch.assert_kept("run"));
}
