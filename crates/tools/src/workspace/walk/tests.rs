//! Walks past files that would block forever.

use std::path::Path;

use super::tree_under;

fn pipe(path: &Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
}

#[test]
fn ignore_files_that_are_no_files_are_not_read() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let folders = ["plain", "pipe", "zero", "large", "pointer", "repository/.git/info"];
    for folder in folders {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    for file in ["plain", "pipe", "zero", "large", "pointer", "repository"] {
        std::fs::write(root.join(file).join("file"), "").unwrap();
    }
    std::fs::write(root.join("plain/.gitignore"), "left-out\n").unwrap();
    std::fs::write(root.join("plain/left-out"), "").unwrap();
    pipe(&root.join("pipe/.gitignore"));
    std::os::unix::fs::symlink("/dev/zero", root.join("zero/.ignore")).unwrap();
    std::fs::File::create(root.join("large/.gitignore")).unwrap().set_len(1 << 40).unwrap();
    std::fs::write(root.join("pointer/.git"), "gitdir: .\n").unwrap();
    pipe(&root.join("pointer/commondir"));
    pipe(&root.join("repository/.git/info/exclude"));
    assert_eq!(tree_under(&root, 100).0, ["plain/file"]);
    // The start directory cannot be skipped; its ignore files are disabled instead.
    std::fs::create_dir_all(root.join("plain/.git/info")).unwrap();
    pipe(&root.join("plain/.git/info/exclude"));
    assert_eq!(tree_under(&root.join("plain"), 100).0, ["file", "left-out"]);
}
