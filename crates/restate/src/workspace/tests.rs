//! Storing, restoring and pulling real directories.

use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use super::{FileTree, Scan, changes, restore, store, write_changes};
use crate::workspace::pull::PullError;
use crate::{BlobStore, EngineError};

fn folders() -> (tempfile::TempDir, BlobStore) {
    let folder = tempfile::tempdir().expect("a folder");
    let blobs = BlobStore::directory(&folder.path().join("blobs")).expect("a store");
    (folder, blobs)
}

fn fill(directory: &Path) {
    fs::create_dir_all(directory.join("src/empty")).expect("folders");
    fs::write(directory.join("src/main.rs"), "fn main() {}").expect("a file");
    fs::write(directory.join("run.sh"), "#!/bin/sh\n").expect("a script");
    fs::set_permissions(directory.join("run.sh"), Permissions::from_mode(0o755)).expect("a mode");
    fs::write(directory.join("secret"), "x").expect("a file");
    fs::set_permissions(directory.join("secret"), Permissions::from_mode(0o600)).expect("a mode");
    symlink("src/main.rs", directory.join("link")).expect("a link");
    symlink("/nowhere/at/all", directory.join("broken")).expect("a link");
    fs::write(directory.join(std::ffi::OsStr::from_bytes(b"name-\xff")), "odd").expect("an odd name");
    fs::create_dir_all(directory.join(".fusee")).expect("a folder");
    fs::write(directory.join(".fusee/journal.db"), "own").expect("a file");
    fs::write(directory.join(".fusee/config.toml"), "").expect("a file");
}

#[tokio::test]
async fn a_restored_workspace_is_the_same_as_the_stored_one() {
    let (folder, blobs) = folders();
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    fill(&one);
    let hash = store(&one, &blobs).await.expect("stored");
    let tree = FileTree::read(&hash, &blobs).await.expect("a tree");
    restore(&tree, &other, &blobs).await.expect("restored");
    assert_eq!(store(&other, &blobs).await.expect("stored"), hash);
    let mut scan = Scan::of_restored(&other, &tree).await.expect("scanned");
    assert_eq!(scan.store(&other, &blobs).await.expect("stored"), hash);
    assert_eq!(fs::read_link(other.join("broken")).expect("a link"), Path::new("/nowhere/at/all"));
    assert_eq!(fs::metadata(other.join("run.sh")).expect("a file").permissions().mode() & 0o777, 0o755);
    assert!(other.join("src/empty").is_dir() && !other.join(".fusee/journal.db").exists());
}

#[tokio::test]
async fn a_second_scan_finds_every_kind_of_change() {
    let (folder, blobs) = folders();
    let directory = folder.path().join("w");
    fill(&directory);
    let mut scan = Scan::default();
    let before = scan.store(&directory, &blobs).await.expect("stored");
    assert_eq!(scan.store(&directory, &blobs).await.expect("stored"), before);
    // The same length, and written at once: only the times tell.
    fs::write(directory.join("src/main.rs"), "fn main() {;").expect("written");
    fs::remove_file(directory.join("link")).expect("removed");
    fs::set_permissions(directory.join("secret"), Permissions::from_mode(0o640)).expect("a mode");
    fs::write(directory.join("new"), "new").expect("written");
    let after = scan.store(&directory, &blobs).await.expect("stored");
    assert_eq!(after, store(&directory, &blobs).await.expect("stored"));
    let (before, after) = (
        FileTree::read(&before, &blobs).await.expect("a tree"),
        FileTree::read(&after, &blobs).await.expect("a tree"),
    );
    let found: Vec<(String, &str)> = changes(&before, &after)
        .into_iter()
        .map(|change| (change.path.display().to_string(), change.what))
        .collect();
    let expected = [("link", "removed"), ("new", "added"), ("secret", "changed"), ("src/main.rs", "changed")];
    assert_eq!(found, expected.map(|(path, what)| (path.to_owned(), what)));
}

#[tokio::test]
async fn a_scan_of_a_restored_workspace_finds_what_is_changed_at_once() {
    let (folder, blobs) = folders();
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    fill(&one);
    let hash = store(&one, &blobs).await.expect("stored");
    let tree = FileTree::read(&hash, &blobs).await.expect("a tree");
    restore(&tree, &other, &blobs).await.expect("restored");
    let mut scan = Scan::of_restored(&other, &tree).await.expect("scanned");
    // Times of files are as coarse as the clock of the kernel; the same length tells nothing.
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    fs::write(other.join("src/main.rs"), "fn main() {;").expect("written");
    let changed = scan.store(&other, &blobs).await.expect("stored");
    assert_eq!(changed, store(&other, &blobs).await.expect("stored"));
    assert_ne!(changed, hash);
}

#[tokio::test]
async fn changes_are_written_unless_the_user_has_changed_the_same_file() {
    let (folder, blobs) = folders();
    let (user, worker) = (folder.path().join("user"), folder.path().join("worker"));
    fill(&user);
    let before = store(&user, &blobs).await.expect("stored");
    let before = FileTree::read(&before, &blobs).await.expect("a tree");
    restore(&before, &worker, &blobs).await.expect("restored");
    fs::write(worker.join("src/main.rs"), "changed").expect("written");
    fs::remove_file(worker.join("run.sh")).expect("removed");
    fs::remove_dir(worker.join("src/empty")).expect("removed");
    fs::write(worker.join("src/empty"), "a file now").expect("written");
    let after = store(&worker, &blobs).await.expect("stored");
    let after = FileTree::read(&after, &blobs).await.expect("a tree");

    fs::write(user.join("secret"), "of the user").expect("written");
    fs::write(user.join("run.sh"), "changed too").expect("written");
    let refused = write_changes(&before, &after, &user, false, &blobs).await;
    assert!(matches!(&refused, Err(PullError::Conflicts(paths)) if *paths == [Path::new("run.sh")]));
    assert_eq!(fs::read_to_string(user.join("src/main.rs")).expect("a file"), "fn main() {}");

    write_changes(&before, &after, &user, true, &blobs).await.expect("written");
    assert_eq!(fs::read_to_string(user.join("src/main.rs")).expect("a file"), "changed");
    assert_eq!(fs::read_to_string(user.join("src/empty")).expect("a file"), "a file now");
    assert!(!user.join("run.sh").exists());
    assert_eq!(fs::read_to_string(user.join("secret")).expect("a file"), "of the user");
}

#[tokio::test]
async fn a_tree_cannot_lead_out_of_the_workspace() {
    let (folder, blobs) = folders();
    for path in ["../x", "/tmp/x", "a/../../x", ""] {
        let tree = format!(r#"{{"{path}":{{"directory":{{"mode":493}}}}}}"#);
        let tree: FileTree = serde_json::from_str(&tree).expect("a tree");
        let restored = restore(&tree, &folder.path().join("w"), &blobs).await;
        assert!(matches!(restored, Err(EngineError::Unreadable(_))), "{path}");
    }
}

#[tokio::test]
async fn a_missing_or_damaged_blob_is_named() {
    let (folder, blobs) = folders();
    let hash = blobs.put("content".into()).await.expect("stored");
    let found = walk(&folder.path().join("blobs"));
    let [file] = found.as_slice() else { panic!("one file: {found:?}") };
    fs::write(file, "other").expect("written");
    assert!(blobs.get(&hash).await.expect_err("damaged").to_string().ends_with("is damaged"));
    fs::remove_file(file).expect("removed");
    assert!(
        blobs
            .get(&hash)
            .await
            .expect_err("missing")
            .to_string()
            .contains("is missing; all workers and clients must use the same blob store")
    );
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
