//! Copies hold the files of the workspace, take changes, and leave nothing behind.

use super::*;

fn workspace() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("src/deep")).unwrap();
    std::fs::create_dir_all(directory.path().join(".git")).unwrap();
    std::fs::write(directory.path().join(".git/HEAD"), "ref").unwrap();
    std::fs::write(directory.path().join("src/deep/a.py"), "x = 1\n").unwrap();
    std::fs::write(directory.path().join("run.sh"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(directory.path().join("run.sh"), std::fs::Permissions::from_mode(0o755))
        .unwrap();
    std::os::unix::fs::symlink("src/deep/a.py", directory.path().join("link.py")).unwrap();
    directory
}

#[test]
fn a_copy_of_files_is_complete_and_apart() {
    let directory = workspace();
    let root = directory.path().canonicalize().unwrap();
    let copy = WorkspaceCopy::create(&root, CopyKind::Files).unwrap();
    let inside = copy.root();
    assert_eq!(std::fs::read_to_string(inside.join("src/deep/a.py")).unwrap(), "x = 1\n");
    assert_eq!(std::fs::read_link(inside.join("link.py")).unwrap(), Path::new("src/deep/a.py"));
    assert!(!inside.join(".git").exists());
    assert_eq!(inside.join("run.sh").metadata().unwrap().mode() & 0o777, 0o755);
    let time = |path: PathBuf| path.metadata().unwrap().modified().unwrap();
    assert_eq!(time(inside.join("run.sh")), time(root.join("run.sh")));

    copy.write("src/deep/a.py", b"x = 2\n").unwrap();
    copy.write("src/new/b.py", b"y = 1\n").unwrap();
    assert!(copy.differs("src/deep/a.py", b"x = 1\n") && !copy.differs("run.sh", b"#!/bin/sh\n"));
    assert_eq!(std::fs::read_to_string(root.join("src/deep/a.py")).unwrap(), "x = 1\n");
    assert!(!root.join("src/new").exists());
    drop(copy);
    assert!(!inside.exists());
}

#[test]
fn an_overlay_holds_only_what_differs_with_the_permissions_of_the_original() {
    let directory = workspace();
    let root = directory.path().canonicalize().unwrap();
    let copy = WorkspaceCopy::create(&root, CopyKind::Overlay).unwrap();
    copy.write("run.sh", b"#!/bin/sh\nexit 1\n").unwrap();
    let inside = copy.root();
    assert_eq!(inside.join("run.sh").metadata().unwrap().mode() & 0o777, 0o755);
    assert!(!inside.join("src").exists());
    assert!(!copy.differs("src/deep/a.py", b"x = 1\n"));
    assert_eq!(std::fs::read_to_string(root.join("run.sh")).unwrap(), "#!/bin/sh\n");
}

#[test]
fn a_path_does_not_lead_out_of_a_copy() {
    let directory = workspace();
    let outside = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    std::os::unix::fs::symlink(outside.path(), root.join("out")).unwrap();
    let copy = WorkspaceCopy::create(&root, CopyKind::Files).unwrap();
    assert!(copy.write("../x", b"").is_err());
    assert!(copy.write("out/x", b"").is_err());
    assert!(!outside.path().join("x").exists());
}
