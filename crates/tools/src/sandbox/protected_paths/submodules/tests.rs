//! Links in indexes written by git itself.

use std::path::Path;

use super::*;

#[expect(clippy::disallowed_methods, reason = "git writes the indexes under test")]
pub(crate) fn git(directory: &Path, script: &str) {
    let status = std::process::Command::new("sh")
        .args(["-ec", script])
        .current_dir(directory)
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@b")])
        .envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@b")])
        .status()
        .unwrap();
    assert!(status.success(), "{script}");
}

const ID: &str = "0123456789012345678901234567890123456789";

fn names(tree: &Path) -> Vec<String> {
    let inside = |path: PathBuf| path.strip_prefix(tree).unwrap().display().to_string();
    linked(tree).unwrap().into_iter().map(inside).collect()
}

#[test]
fn links_are_found_in_every_kind_of_index() {
    let place = tempfile::tempdir().unwrap();
    let tree = place.path().canonicalize().unwrap();
    let add = format!(
        "mkdir -p a/deep sub z; touch a/file; git add a/file; for path in a/deep sub missing z; do git update-index --add --cacheinfo 160000,{ID},$path; done"
    );
    git(&tree, &format!("git init -q; {add}"));
    let all = ["a/deep", "sub", "z"];
    assert_eq!(names(&tree), all);
    for kind in
        ["--index-version 4", "--index-version 3", "--split-index", "--index-version 2 --no-split-index"]
    {
        git(&tree, &format!("git update-index {kind}"));
        assert_eq!(names(&tree), all, "{kind}");
    }
    git(&tree, "git update-index --split-index; touch b; git add b");
    assert_eq!(names(&tree), all);
    let id = format!("{ID}{}", &ID[..24]);
    git(&tree, &format!("rm -rf .git; git init -q --object-format=sha256; {}", add.replace(ID, &id)));
    assert_eq!(names(&tree), all);
}

#[test]
fn no_link_leads_out_of_the_tree_or_round_in_it() {
    let place = tempfile::tempdir().unwrap();
    let tree = place.path().canonicalize().unwrap().join("tree");
    std::fs::create_dir_all(tree.join("inner")).unwrap();
    std::os::unix::fs::symlink(".", tree.join("round")).unwrap();
    for path in ["../tree", "/etc", "round", "round/inner", ".", ""] {
        assert_eq!(directory(&tree, path.as_bytes()).unwrap(), None, "{path}");
    }
    assert_eq!(directory(&tree, b"inner").unwrap(), Some(tree.join("inner")));
}

#[test]
fn an_index_that_is_no_file_is_named() {
    let place = tempfile::tempdir().unwrap();
    let tree = place.path().canonicalize().unwrap();
    assert_eq!(linked(&tree), Ok(vec![]));
    std::fs::create_dir(tree.join(".git")).unwrap();
    assert_eq!(linked(&tree), Ok(vec![]));
    std::os::unix::fs::symlink("/dev/zero", tree.join(".git/index")).unwrap();
    assert_eq!(linked(&tree), Err(UnreadableIndex(tree.join(".git/index"))));
}

#[test]
fn any_bytes_are_read_to_their_end() {
    let place = tempfile::tempdir().unwrap();
    let tree = place.path().canonicalize().unwrap();
    git(
        &tree,
        &format!(
            "git init -q; mkdir sub; touch a b c; git add -A; git update-index --add --cacheinfo 160000,{ID},sub --index-version 4"
        ),
    );
    let whole = std::fs::read(tree.join(".git/index")).unwrap();
    assert_eq!(links(&whole, 20), [b"sub".to_vec()]);
    for end in 0..whole.len() {
        for length in NAMES {
            let _ = links(&whole[..end], length);
            let mut other = whole.clone();
            other[end] ^= 0xff;
            let _ = links(&other, length);
        }
    }
}

#[test]
fn a_link_is_one_by_the_bits_that_git_looks_at() {
    let place = tempfile::tempdir().unwrap();
    let tree = place.path().canonicalize().unwrap();
    git(&tree, &format!("git init -q; mkdir sub; git update-index --add --cacheinfo 160000,{ID},sub"));
    let index = tree.join(".git/index");
    let mut bytes = std::fs::read(&index).unwrap();
    for mode in [0x0001_e000_u32, 0x0000_e1ff] {
        bytes[36..40].copy_from_slice(&mode.to_be_bytes());
        std::fs::write(&index, &bytes).unwrap();
        assert_eq!(names(&tree), ["sub"], "{mode:x}");
    }
}
