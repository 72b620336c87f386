//! Cache hits, and what evicts entries.

use std::fs;
use std::time::Duration;

use super::*;

const LATER: i128 = i128::MAX;

fn content(text: &str) -> CachedContent {
    CachedContent { bytes: text.as_bytes().into(), hash: ContentHash::of(text.as_bytes()) }
}

fn stamp_of(path: &std::path::Path) -> CacheStamp {
    CacheStamp::read(&File::open(path).unwrap()).unwrap()
}

#[test]
fn size_time_and_inode_each_drop_an_entry() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "one\n").unwrap();
    let first = stamp_of(&path);
    let known = || {
        let mut remembered = ReadCache::default();
        remembered.insert("a", first, &content("one\n"), LATER);
        assert!(remembered.find("a", &first).is_some());
        remembered
    };
    std::thread::sleep(Duration::from_millis(20));
    fs::write(&path, "two\n").unwrap();
    assert!(known().find("a", &stamp_of(&path)).is_none(), "another time");
    assert!(known().find("a", &CacheStamp { size: 9, ..first }).is_none(), "another size");
    fs::write(folder.path().join("b"), "one\n").unwrap();
    fs::rename(folder.path().join("b"), &path).unwrap();
    assert!(known().find("a", &stamp_of(&path)).is_none(), "another inode");
    assert!(known().find("a", &CacheStamp { inode: 1, ..first }).is_none());
    let mut written = known();
    written.remove("a");
    assert!(written.find("a", &first).is_none() && written.bytes == 0, "a write of our own");
}

#[test]
fn what_may_change_under_its_stamp_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "one\n").unwrap();
    let stamp = stamp_of(&path);
    let mut remembered = ReadCache::default();
    remembered.insert("a", stamp, &content("one\n"), stamp.ctime_ns + 1_000_000);
    assert!(remembered.find("a", &stamp).is_none());
    remembered.insert("a", CacheStamp { size: 3, ..stamp }, &content("one\n"), LATER);
    assert!(remembered.find("a", &CacheStamp { size: 3, ..stamp }).is_none(), "it grew while it was read");
}

#[test]
fn the_least_recently_read_go_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "").unwrap();
    let large = "x".repeat(MAX_FILE);
    let stamp = CacheStamp { size: MAX_FILE as u64, ..stamp_of(&path) };
    let mut remembered = ReadCache::default();
    let names: Vec<String> = (0..MAX_BYTES / MAX_FILE + 1).map(|n| n.to_string()).collect();
    for name in &names {
        remembered.insert(name, stamp, &content(&large), LATER);
        remembered.find("0", &stamp);
    }
    assert!(remembered.find("0", &stamp).is_some(), "it was used all the time");
    assert!(remembered.find("1", &stamp).is_none());
    assert_eq!(remembered.bytes, MAX_BYTES);
}
