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

/// A repository of files older than its index, one of them changed without a trace in its size and times.
fn repository(folder: &Path, options: &str) -> PathBuf {
    let project = folder.join("project");
    std::fs::create_dir_all(project.join("deep/er")).unwrap();
    sh(
        &project,
        &format!(
            "umask 022; echo a > a; echo b > deep/b; echo c > deep/er/c; echo s > staged; echo x > run; chmod 775 run
             head -c 300000 /dev/zero > large; : > empty; ln -s a link; touch -d 2020-01-01 a deep/b deep/er/c large
             git init -q; git add -A; {options}; git -c user.name=n -c user.email=e commit -qm first
             sleep 1.1; echo S > staged; touch -d 2020-01-02 staged; git add staged; git update-index -q --refresh
             echo B > deep/b; touch -d 2020-01-01 deep/b; mkfifo pipe; echo '*.o' > .gitignore; echo o > out.o"
        ),
    );
    project
}

#[test]
fn git_knows_without_reading_them_which_copies_are_unchanged() {
    for options in ["true", "git update-index --index-version 4"] {
        let folder = tempfile::tempdir().unwrap();
        let project = repository(folder.path(), options);
        let copy = Worktree::create(&project, &folder.path().join("copy")).unwrap().root;
        // The plumbing command compares stamps only, and lists every file whose stamp differs.
        assert_eq!(sh(&copy, "git diff-files --name-only"), "deep/b\nlink\n", "{options}");
        assert_eq!(sh(&copy, "git status --porcelain"), sh(&project, "git status --porcelain"), "{options}");
        assert_eq!(sh(&copy, "git status --porcelain"), " M deep/b\nM  staged\n?? .gitignore\n", "{options}");
        // Verifies the checksum of the index.
        sh(&copy, "git fsck --no-progress");
        let listing =
            "stat -c '%n %a %s %Y' a deep/b run large empty staged; cksum large; readlink link; ls -A deep";
        assert_eq!(sh(&copy, listing), sh(&project, listing));
        assert!(!copy.join("pipe").exists() && !copy.join("out.o").exists());
    }
}

#[test]
fn an_index_in_two_files_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let project = repository(folder.path(), "true");
    sh(&project, "git update-index --split-index; ls .git/sharedindex.*");
    let copy = Worktree::create(&project, &folder.path().join("copy")).unwrap().root;
    assert_eq!(sh(&copy, "git status --porcelain"), " M deep/b\n M staged\n?? .gitignore\n");
}

#[test]
fn what_is_deleted_in_the_original_is_not_in_the_copy() {
    let folder = tempfile::tempdir().unwrap();
    let project = repository(folder.path(), "true");
    sh(&project, "rm -r deep a");
    let copy = Worktree::create(&project, &folder.path().join("copy")).unwrap().root;
    assert_eq!(sh(&copy, "git status --porcelain"), sh(&project, "git status --porcelain"));
    assert!(!copy.join("a").exists() && !copy.join("deep").exists());
}
