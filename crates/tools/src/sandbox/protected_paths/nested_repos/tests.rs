//! Repositories in a work tree after a command.

use std::path::{Path, PathBuf};

use super::*;
use crate::sandbox::protected_paths::submodules::git;

const EVIL: &str = "git config core.fsmonitor 'touch ../ran'; echo evil > .git/hooks/pre-commit";

fn tree(script: &str) -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let top = place.path().canonicalize().unwrap().join("top");
    std::fs::create_dir(&top).unwrap();
    git(&top, &format!("git init -q; {script}"));
    (place, top)
}

fn make(path: &str) -> String {
    format!(
        "mkdir -p {path}; (cd {path}; git init -q; echo x > x; git add x; git commit -qm x); git add {path} 2>/dev/null"
    )
}

fn sanitized(top: &Path, kept: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut report = ProtectionReport::default();
    sanitize_nested(top, kept, &mut report);
    assert_eq!(report.unrestored, []);
    report.reverted
}

fn settings(top: &Path, path: &str) -> String {
    std::fs::read_to_string(top.join(path).join(".git/config")).unwrap()
}

#[test]
fn what_the_index_links_to_is_tamed_however_deep() {
    let inner = make("two").replace("git add two", "git add two; git commit -qm two");
    let (_place, top) =
        tree(&format!("{}; (cd one; {inner}; {EVIL}; cd two; {EVIL}); git add one", make("one")));
    assert!(!sanitized(&top, &|_| false).is_empty());
    for path in ["one", "one/two"] {
        assert!(!settings(&top, path).contains("fsmonitor"), "{path}");
        assert!(!top.join(path).join(".git/hooks/pre-commit").exists(), "{path}");
    }
    assert!(sanitized(&top, &|_| false).is_empty());
}

#[test]
fn what_was_kept_or_says_nothing_stays() {
    let (_place, top) = tree(&format!("{}; (cd one; {EVIL})", make("one")));
    assert!(sanitized(&top, &|git| git.ends_with("one/.git")).is_empty());
    assert!(settings(&top, "one").contains("fsmonitor"));
    let (_place, top) = tree(&make("plain"));
    assert!(sanitized(&top, &|_| false).is_empty());
}

#[test]
fn a_submodule_leads_to_where_submodules_are() {
    let (_place, top) = tree(&format!(
        "mkdir ../other; (cd ../other; {}); git -c protocol.file.allow=always submodule --quiet add ../other/one sub",
        make("one").replace("&& git add one", "").replace("mkdir -p one", "git init -q; mkdir -p one")
    ));
    assert!(sanitized(&top, &|_| false).is_empty());
    let pointer = std::fs::read_to_string(top.join("sub/.git")).unwrap();
    assert_eq!(pointer, "gitdir: ../.git/modules/sub\n");
    git(&top, "cp -r .git/modules/sub evil; echo 'gitdir: ../evil' > sub/.git");
    assert!(!sanitized(&top, &|_| false).is_empty());
    assert!(!top.join("sub/.git").exists() && top.join("sub/.git.refused").exists());
}
