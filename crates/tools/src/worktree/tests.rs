//! Working copies with and without git.

use std::process::Command;

use super::*;

fn sh(directory: &Path, script: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "a test prepares its repository")]
    let output = Command::new("sh").args(["-ec", script]).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_copy_has_the_files_as_they_are_and_leaves_the_original_alone() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    std::fs::create_dir_all(project.join("sub")).unwrap();
    sh(
        &project,
        "echo a > sub/a; chmod 750 sub/a; ln -s a sub/link; echo out > ignored; echo ignored > .ignore",
    );
    let plain = Worktree::create(&project, &folder.path().join("plain")).unwrap();
    assert!(!plain.is_git);
    assert_eq!(sh(&plain.workspace, "cat sub/a sub/link; stat -c %a sub/a; ls"), "a\na\n750\nsub\n");
    let commit = "git -c user.name=n -c user.email=e commit -qm first";
    sh(&project, &format!("git init -q; echo ignored > .gitignore; rm .ignore; git add -A; {commit}"));
    sh(
        &project,
        "printf '#!/bin/sh\\ntouch ../hooked' > .git/hooks/post-checkout; chmod 755 .git/hooks/post-checkout",
    );
    sh(&project, "echo changed > sub/a; echo new > new.txt; rm sub/link");
    let before = sh(&project, "git status --porcelain");
    let root = folder.path().join("tree");
    let made = Worktree::create(&project.join("sub"), &root).unwrap();
    assert!(made.is_git);
    assert_eq!(made.workspace, root.canonicalize().unwrap().join("sub"));
    assert_eq!(sh(&made.root, "git status --porcelain"), before);
    assert_eq!(sh(&made.root, "cat sub/a new.txt; ls"), "changed\nnew\nnew.txt\nsub\n");
    assert!(!folder.path().join("hooked").exists(), "a hook of the repository ran");
    sh(&made.workspace, "echo more >> a");
    assert_eq!(sh(&project, "cat sub/a; git status --porcelain"), format!("changed\n{before}"));
    Worktree::remove(&project, &root);
    assert_eq!(sh(&project, "git worktree list | wc -l").trim(), "1");
}
