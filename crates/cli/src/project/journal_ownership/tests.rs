//! Ownership of journals.

use super::*;

#[test]
fn a_journal_is_known_where_it_was_made_and_a_copy_is_not() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let ownership = JournalOwnership::stored_in(Some(at("state")));
    for name in ["mine", "theirs"] {
        fs::write(at(name), "journal").unwrap();
    }
    assert!(!ownership.covers(&at("theirs")), "a missing list proves nothing");
    ownership.add(&at("mine")).unwrap();
    fs::copy(at("mine"), at("copy")).unwrap();
    fs::rename(at("mine"), at("moved")).unwrap();
    let covered = ["moved", "copy", "theirs", "missing"].map(|name| ownership.covers(&at(name)));
    assert_eq!(covered, [true, false, false, false]);
    fs::create_dir_all(at("state/projects")).unwrap();
    fs::write(at("state/projects/journal.db"), "").unwrap();
    assert!(ownership.covers(&at("state/projects/journal.db")));
    assert!(!ownership.revoke(&at("moved")).unwrap() && ownership.covers(&at("moved")), "the user's own");
    ownership.trust(&at("theirs")).unwrap();
    assert!(ownership.covers(&at("theirs")));
    assert!(ownership.revoke(&at("theirs")).unwrap() && !ownership.covers(&at("theirs")));
    assert!(!JournalOwnership::stored_in(None).covers(&at("theirs")));
}

#[test]
fn a_long_list_loses_its_older_half() {
    let place = tempfile::tempdir().unwrap();
    let ownership = JournalOwnership::stored_in(Some(place.path().join("state")));
    fs::create_dir_all(place.path().join("state")).unwrap();
    let lines: String = (0..60_000).map(|line| format!("{line} 0000\n")).collect();
    fs::write(place.path().join("state/own-runs"), lines).unwrap();
    let journal = place.path().join("mine");
    fs::write(&journal, "").unwrap();
    ownership.add(&journal).unwrap();
    assert!(ownership.covers(&journal));
    assert_eq!(ownership.lines().len(), 30_001);
    assert_eq!(ownership.lines()[0], "30000 0000");
}
