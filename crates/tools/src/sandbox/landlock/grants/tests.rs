//! The siblings of hidden paths are granted, and the hidden paths are not.

use super::*;

fn names(grants: &[(PathBuf, PathGrant)], base: &Path) -> Vec<(String, PathGrant)> {
    let inside = |path: &PathBuf| path.strip_prefix(base).ok().map(|path| path.display().to_string());
    grants.iter().filter_map(|(path, grant)| Some((inside(path)?, *grant))).collect()
}

fn tree() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    for name in ["read/a/b", "read/c", "work/deep"] {
        std::fs::create_dir_all(base.join(name)).unwrap();
    }
    for name in ["read/a/b/secret", "read/a/b/plain", "read/c/file", "work/key"] {
        std::fs::write(base.join(name), "x").unwrap();
    }
    std::os::unix::fs::symlink("a/b/secret", base.join("read/link")).unwrap();
    (directory, base)
}

#[test]
fn what_is_around_something_hidden_is_granted_piece_by_piece() {
    let (_directory, base) = tree();
    let policy = Policy {
        read: vec![base.join("read"), base.join("gone")],
        write: vec![base.join("work")],
        hidden: vec![base.join("read/link"), base.join("read/none")],
        ..Policy::default()
    };
    let grants = for_policy(&policy, &[base.join("own")]).unwrap();
    assert_eq!(
        names(&grants, &base),
        [
            ("own".to_owned(), PathGrant::Write),
            ("read".to_owned(), PathGrant::List),
            ("read/a".to_owned(), PathGrant::List),
            ("read/a/b".to_owned(), PathGrant::List),
            ("read/a/b/plain".to_owned(), PathGrant::Read),
            ("read/c".to_owned(), PathGrant::Read),
            ("work".to_owned(), PathGrant::Write),
        ]
    );
    assert!(grants.contains(&("/dev/null".into(), PathGrant::Device)));
}

#[test]
fn what_is_hidden_in_the_workspace_makes_a_fence_impossible() {
    let (_directory, base) = tree();
    let policy =
        Policy { write: vec![base.join("work")], hidden: vec![base.join("work/key")], ..Policy::default() };
    let refusal = for_policy(&policy, &[]).unwrap_err();
    assert_eq!(
        refusal,
        format!(
            "{0}/work/key cannot be hidden without namespaces, because it is in {0}/work, which commands can write to",
            base.display()
        )
    );
}

#[test]
fn a_place_that_others_use_is_not_shared() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(unused(directory.path()).as_deref(), Some(directory.path()));
    std::fs::write(directory.path().join("of-another"), "x").unwrap();
    assert_eq!(unused(directory.path()), None);
    assert_eq!(unused(&directory.path().join("missing")), None);
}
