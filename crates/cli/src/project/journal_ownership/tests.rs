//! Ownership of journals.

use fusee::engine::journal::JournalOptions;

use super::*;

fn journal(path: &Path, owner: Option<OwnerKey>) {
    let options = JournalOptions { owner, ..JournalOptions::default() };
    drop(Journal::open(path, options, Arc::new(SystemClock)).unwrap());
}

#[test]
fn a_journal_is_owned_where_it_was_made_and_moved_to_and_a_copy_is_not() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let ownership = JournalOwnership::stored_in(Some(at("state")));
    journal(&at("theirs"), None);
    assert!(!ownership.covers(&at("theirs")), "an absent key proves nothing");
    journal(&at("mine"), ownership.key());
    assert!(ownership.covers(&at("mine")));
    fs::copy(at("mine"), at("copy")).unwrap();
    fs::rename(at("mine"), at("moved")).unwrap();
    let covered = ["moved", "copy", "theirs", "missing"].map(|name| ownership.covers(&at(name)));
    assert_eq!(covered, [true, false, false, false]);
    let stranger = JournalOwnership::stored_in(Some(at("other")));
    assert!(!stranger.covers(&at("moved")), "the key of another user");
    assert!(!JournalOwnership::stored_in(None).covers(&at("moved")));
    fs::create_dir_all(at("state/projects")).unwrap();
    journal(&at("state/projects/journal.db"), None);
    assert!(ownership.covers(&at("state/projects/journal.db")));
}

#[test]
fn only_trust_is_taken_back() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let ownership = JournalOwnership::stored_in(Some(at("state")));
    journal(&at("theirs"), None);
    journal(&at("mine"), ownership.key());
    ownership.add(&at("theirs"), Ownership::Trusted).unwrap();
    assert!(ownership.covers(&at("theirs")));
    assert_eq!(["theirs", "mine"].map(|name| ownership.revoke(&at(name)).unwrap()), [true, false]);
    assert_eq!(["theirs", "mine"].map(|name| ownership.covers(&at(name))), [false, true]);
}

#[test]
fn a_journal_on_the_list_of_an_earlier_version_is_signed() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let ownership = JournalOwnership::stored_in(Some(at("state")));
    for name in ["listed", "unlisted"] {
        journal(&at(name), None);
    }
    fs::create_dir_all(at("state")).unwrap();
    fs::write(at("state/own-runs"), format!("1 2\n{}\n", file_identity(&at("listed")).unwrap())).unwrap();
    assert_eq!(["listed", "unlisted"].map(|name| ownership.covers(&at(name))), [true, false]);
    fs::remove_file(at("state/own-runs")).unwrap();
    assert!(ownership.covers(&at("listed")), "the signature is enough");
}

#[test]
fn a_key_that_others_can_read_or_replace_is_not_used() {
    let place = tempfile::tempdir().unwrap();
    let state = place.path().join("state");
    let ownership = JournalOwnership::stored_in(Some(state.clone()));
    let key = ownership.key().unwrap();
    assert_eq!(fs::metadata(state.join("journal-key")).unwrap().mode() & 0o777, 0o600);
    assert!(ownership.key() == Some(key), "it is created once");
    assert_eq!(fs::read_dir(&state).unwrap().count(), 1, "nothing is left beside it");
    let path = state.join("journal-key");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(ownership.key(), None);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&path, "short").unwrap();
    assert_eq!(ownership.key(), None);
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    assert_eq!(ownership.key(), None);
}
