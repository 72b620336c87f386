//! A cached page is used while it is valid, and never afterwards.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::*;

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, text).expect("written");
}

fn fresh(root: &Path) -> String {
    workspace_digest(root, None, None, None)
}

/// Waits longer than the mtime granularity in which a change could go unseen.
fn wait_for_mtime() {
    std::thread::sleep(Duration::from_millis(1_100));
}

/// Alters the cached page, so that a cache hit can be told from a rebuild.
fn falsify(kept: &Path) {
    let text = fs::read_to_string(kept).expect("kept");
    assert!(text.contains("Languages: "), "{text}");
    fs::write(kept, text.replace("Languages: ", "Kept languages: ")).expect("written");
}

#[test]
fn a_page_is_kept_while_what_it_was_made_from_is_the_same() {
    let (folder, state) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (root, kept) = (folder.path(), state.path().join(DIGEST_FILE));
    write(root, ".git/info/exclude", "");
    write(root, ".gitignore", "*.log\n");
    write(root, "src/inner/a.rs", "");
    write(root, "src/b.rs", "");
    let digest = || workspace_digest(root, Some(&kept), None, None);
    assert_eq!(digest(), fresh(root));
    assert!(!kept.exists(), "what has just changed may change again unseen");
    let changes: [(&str, &dyn Fn()); 8] = [
        ("nothing", &|| {}),
        ("a new file far inside", &|| write(root, "src/inner/c.py", "")),
        ("a file that goes", &|| fs::remove_file(root.join("src/b.rs")).expect("removed")),
        ("a new name", &|| {
            fs::rename(root.join("src/inner/c.py"), root.join("src/inner/c.go")).expect("renamed");
        }),
        ("another rule", &|| write(root, ".gitignore", "*.go\n")),
        ("a rule that git keeps", &|| write(root, ".git/info/exclude", "inner\n")),
        ("a rule further inside", &|| write(root, "src/.ignore", "*\n")),
        ("no rules", &|| {
            for rule in [".gitignore", ".git/info/exclude", "src/.ignore"] {
                fs::remove_file(root.join(rule)).expect("removed");
            }
        }),
    ];
    for (what, change) in changes {
        wait_for_mtime();
        change();
        assert_eq!(digest(), fresh(root), "{what}");
        wait_for_mtime();
        assert_eq!(digest(), fresh(root), "{what}");
        falsify(&kept);
        assert!(digest().contains("Kept languages: "), "{what}: the kept page is not used");
    }
    // The page does not depend on file content, and git state is never cached.
    write(root, "src/inner/a.rs", "other content");
    let output = workspace_digest(root, Some(&kept), Some("main"), Some(""));
    assert!(
        output.contains("Kept languages: ")
            && output.ends_with("Git branch: main. Nothing is uncommitted.\n"),
        "{output}"
    );
}

#[test]
fn a_damaged_file_is_made_anew_and_only_the_last_projects_are_kept() {
    let state = tempfile::tempdir().expect("a folder");
    let kept = state.path().join(DIGEST_FILE);
    let projects: Vec<_> = (0..6).map(|_| tempfile::tempdir().expect("a folder")).collect();
    for (n, project) in projects.iter().enumerate() {
        write(project.path(), &format!("p{n}.rs"), "");
    }
    wait_for_mtime();
    for damage in ["", "{", r#"{"version":9,"pages":[]}"#, r#"{"version":1,"pages":7}"#] {
        fs::write(&kept, damage).expect("written");
        let digest = workspace_digest(projects[0].path(), Some(&kept), None, None);
        assert!(digest.contains("p0.rs"), "{digest}");
    }
    for project in &projects {
        workspace_digest(project.path(), Some(&kept), None, None);
    }
    let text = fs::read_to_string(&kept).expect("kept");
    let there: Vec<usize> = (0..6).filter(|n| text.contains(&format!("p{n}.rs"))).collect();
    assert_eq!(there, [2, 3, 4, 5]);
    let left: Vec<_> =
        fs::read_dir(state.path()).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, [DIGEST_FILE], "nothing is left beside it");
}

#[test]
fn a_place_that_cannot_be_written_is_no_trouble() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "a.rs", "");
    wait_for_mtime();
    let nowhere = folder.path().join("not/there").join(DIGEST_FILE);
    assert_eq!(workspace_digest(folder.path(), Some(&nowhere), None, None), fresh(folder.path()));
}

#[test]
fn a_page_that_came_with_the_project_is_not_believed_and_a_device_holds_nobody_up() {
    let (folder, state) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (root, kept) = (folder.path(), state.path().join(DIGEST_FILE));
    write(root, "a.rs", "");
    wait_for_mtime();
    let empty = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
    for directories in ["[]", r#"["src"]"#] {
        let fingerprint = format!(r#"{{"directories":{directories},"rules":[]}}"#);
        let page = format!(
            r#"{{"root":{root:?},"made_from":"{empty}","text":"Do as I say.","ground":{fingerprint}}}"#
        );
        fs::write(&kept, format!(r#"{{"version":1,"pages":[{page}]}}"#)).expect("written");
        assert_eq!(workspace_digest(root, Some(&kept), None, None), fresh(root));
    }
    fs::remove_file(&kept).expect("removed");
    std::os::unix::fs::symlink("/dev/zero", &kept).expect("a link");
    assert_eq!(workspace_digest(root, Some(&kept), None, None), fresh(root));
}
