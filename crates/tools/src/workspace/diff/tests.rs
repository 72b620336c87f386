//! Changes found by content, against a real git.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;

struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[expect(clippy::disallowed_methods, reason = "compares with the real git")]
    fn sh(&self, script: &str) {
        let status = Command::new("sh").args(["-ec", script]).current_dir(self.path()).status().unwrap();
        assert!(status.success(), "{script}");
    }

    fn git(&self) {
        self.sh("git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm x");
        // Files as recent as the index are not trusted.
        std::thread::sleep(std::time::Duration::from_millis(30));
        self.sh("git update-index -q --refresh; touch .git/index");
    }

    fn tracker(&self) -> WorkspaceTracker {
        begin(&self.path())
    }
}

fn begin(root: &Path) -> WorkspaceTracker {
    copied(root, 0, 0).0
}

/// Takes an initial snapshot with limits on the bytes and number of copies.
fn copied(root: &Path, bytes: u64, files: usize) -> (WorkspaceTracker, InitialSnapshot) {
    let except = |path: &str| path == "kept-elsewhere.txt";
    WorkspaceTracker::begin(root, &CopyLimits { file_bytes: 100, bytes, files, except: &except }).unwrap()
}

fn outline(changes: &[FileChange]) -> Vec<String> {
    let sort = |change: &FileChange| match (change.before, change.after) {
        (None, Some(_)) => "+",
        (Some(_), None) => "-",
        _ => "~",
    };
    changes.iter().map(|change| format!("{}{}", sort(change), change.path)).collect()
}

fn everything(tree: &Tree) {
    let mut tracker = tree.tracker();
    assert_eq!(outline(&tracker.scan()), [""; 0]);
    tree.sh("touch a.txt; cp b.txt x && cp x b.txt && rm x; mv dir/c.txt dir/d.txt; mkdir -p new/deep; echo n > new/deep/n.txt; echo i > ignored.log; echo .fusee; mkdir -p .fusee __pycache__; echo j > .fusee/journal; echo p > __pycache__/a.pyc; echo more >> e.txt; ln -s e.txt link; chmod +x a.txt");
    assert_eq!(outline(&tracker.scan()), ["-dir/c.txt", "+dir/d.txt", "~e.txt", "+link", "+new/deep/n.txt"]);
    assert_eq!(outline(&tracker.scan()), [""; 0]);
    tree.sh("mv dir/d.txt dir/c.txt; rm -r new; printf 'e\\n' > e.txt; ln -sf a.txt link; echo new > a.tmp && mv a.tmp a.txt");
    assert_eq!(
        outline(&tracker.scan()),
        ["~a.txt", "+dir/c.txt", "-dir/d.txt", "~e.txt", "~link", "-new/deep/n.txt"]
    );
}

fn filled() -> Tree {
    let tree = Tree::new();
    for path in ["a.txt", "b.txt", "dir/c.txt", "e.txt"] {
        tree.write(path, &format!("{}\n", path.trim_end_matches(".txt")));
    }
    tree.write(".gitignore", "*.log\n");
    tree
}

#[test]
fn changes_renames_and_new_directories_are_found_and_touches_are_not() {
    everything(&filled());
}

#[test]
fn the_same_holds_where_git_says_what_files_held() {
    let tree = filled();
    tree.git();
    let index = tracked_files::read(&tree.path()).unwrap();
    assert_eq!(index.paths().count(), 5);
    let tracker = tree.tracker();
    let known = &tracker.directories[""].files[&OsString::from("a.txt")];
    assert_eq!(known.content.hash().to_string()[..24], "0".repeat(24), "it was read although git knows it");
    everything(&tree);
}

#[test]
fn other_forms_of_the_index_say_the_same_or_are_not_used() {
    let tree = filled();
    tree.git();
    let paths = |tree: &Tree| {
        let index = tracked_files::read(&tree.path())?;
        let mut paths: Vec<String> = index.paths().map(str::to_owned).collect();
        paths.sort();
        Some(paths)
    };
    let plain = paths(&tree).unwrap();
    tree.sh("git update-index --index-version 4");
    assert_eq!(paths(&tree), Some(plain));
    tree.sh("echo '* text=auto' > .gitattributes");
    assert_eq!(paths(&tree), None);
    tree.sh("rm .gitattributes; git update-index --split-index");
    assert_eq!(paths(&tree), None);
}

#[test]
fn a_directory_of_a_repository_is_looked_at_by_itself() {
    let tree = filled();
    tree.git();
    let mut tracker = begin(&tree.path().join("dir"));
    tree.sh("echo x >> dir/c.txt; echo x >> a.txt");
    assert_eq!(outline(&tracker.scan()), ["~c.txt"]);
}

#[test]
fn files_that_git_follows_count_although_they_are_ignored() {
    let tree = filled();
    tree.write("kept.log", "k\n");
    tree.sh("git init -q . && git add -f kept.log");
    let mut tracker = tree.tracker();
    tree.sh("echo x >> kept.log; echo x > other.log");
    assert_eq!(outline(&tracker.scan()), ["~kept.log"]);
}

#[test]
fn what_our_own_tools_did_is_not_told_again() {
    let tree = filled();
    let mut tracker = tree.tracker();
    tree.write("a.txt", "ours\n");
    tree.write("fresh/f.txt", "ours\n");
    fs::remove_file(tree.path().join("b.txt")).unwrap();
    let ours = Some(ContentHash::of(b"ours\n"));
    tracker.record_own_change("a.txt", ours);
    tracker.record_own_change("fresh/f.txt", ours);
    tracker.record_own_change("b.txt", None);
    assert_eq!(outline(&tracker.scan()), [""; 0]);
    tree.write("fresh/f.txt", "theirs\n");
    assert_eq!(outline(&tracker.scan()), ["~fresh/f.txt"]);
}

#[test]
fn a_change_of_the_same_size_right_after_a_look_is_found() {
    let tree = filled();
    let mut tracker = tree.tracker();
    for n in 0..50 {
        tree.write("a.txt", &format!("{}\n", n % 10));
        assert_eq!(outline(&tracker.scan()), ["~a.txt"], "change {n}");
    }
}

#[test]
fn at_a_glance_only_that_nothing_moved_is_seen() {
    let tree = Tree::new();
    tree.write("a.txt", "a\n");
    tree.write("dir/b.txt", "b\n");
    let settled = || std::thread::sleep(std::time::Duration::from_millis(60));
    settled();
    let mut tracker = tree.tracker();
    assert!(tracker.is_unchanged());
    for (script, expected) in [
        ("echo more >> a.txt", vec!["~a.txt"]),
        ("echo new > dir/c.txt", vec!["+dir/c.txt"]),
        ("rm dir/b.txt", vec!["-dir/b.txt"]),
        ("rm -r dir", vec!["-dir/c.txt"]),
    ] {
        tree.sh(script);
        assert!(!tracker.is_unchanged(), "{script}");
        assert_eq!(outline(&tracker.scan()), expected);
        settled();
        tracker.scan();
        assert!(tracker.is_unchanged(), "after {script}");
    }
    (0..FEW_FILES).for_each(|n| tree.write(&format!("many/{n}"), ""));
    settled();
    tracker.scan();
    assert!(!tracker.is_unchanged(), "of many files nothing is said at a glance");
}

#[test]
fn a_first_look_outlives_its_process() {
    let tree = Tree::new();
    for (path, text) in [("a.txt", "a\n"), ("b.txt", "b\n"), ("dir/c.txt", "c\n"), ("dir/d.txt", "d\n")] {
        tree.write(path, text);
    }
    std::thread::sleep(std::time::Duration::from_millis(30));
    let kept = tempfile::tempdir().unwrap();
    let file = kept.path().join("looks/run.look");
    assert!(WorkspaceTracker::load(&tree.path(), &file).is_none());
    tree.tracker().save(&file).unwrap();
    tree.sh("echo more >> a.txt; rm dir/c.txt; echo n > dir/n.txt; touch b.txt");
    let mut again = WorkspaceTracker::load(&tree.path(), &file).unwrap();
    // A change recorded from the journal is not reported again.
    again.record_own_change("dir/n.txt", Some(ContentHash::of(b"n\n")));
    assert_eq!(outline(&again.scan()), ["~a.txt", "-dir/c.txt"]);
    assert_eq!(outline(&again.scan()), [""; 0]);
    let whole = fs::read(&file).unwrap();
    for length in [0, 10, whole.len() / 2, whole.len() - 1] {
        fs::write(&file, &whole[..length]).unwrap();
        assert!(WorkspaceTracker::load(&tree.path(), &file).is_none(), "cut off at {length}");
    }
    let mut damaged = whole;
    damaged[40] ^= 1;
    fs::write(&file, damaged).unwrap();
    assert!(WorkspaceTracker::load(&tree.path(), &file).is_none());
}

#[test]
fn looks_of_runs_that_nobody_goes_on_with_are_few() {
    let tree = Tree::new();
    let kept = tempfile::tempdir().unwrap();
    let tracker = tree.tracker();
    for n in 0..40 {
        tracker.save(&kept.path().join(format!("{n}.look"))).unwrap();
    }
    let names: Vec<_> = fs::read_dir(kept.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 16, "{names:?}");
    assert!(kept.path().join("39.look").exists());
}

#[test]
fn what_git_cannot_give_back_is_copied_the_smallest_first() {
    let tree = filled();
    tree.git();
    tree.write("a.txt", "a dirty file\n");
    tree.write("small.txt", "small\n");
    tree.write("middle.txt", &"m".repeat(60));
    tree.write("large.txt", &"l".repeat(101));
    tree.write("kept-elsewhere.txt", "x\n");
    tree.sh("ln -s small.txt link; chmod 755 small.txt; chmod 644 a.txt middle.txt");
    let names = |first: &InitialSnapshot| -> Vec<String> {
        let shown = |(path, mode, content): &(String, u32, Vec<u8>)| {
            format!("{path} {mode:o} {}", String::from_utf8_lossy(content).trim_end())
        };
        first.kept.iter().map(shown).collect()
    };
    let all = ["a.txt 100644 a dirty file", "link 120777 small.txt", "small.txt 100755 small"];
    let (_, mut first) = copied(&tree.path(), 50, 10);
    first.kept.sort();
    assert_eq!((names(&first), first.left), (all.map(str::to_owned).to_vec(), (2, 161)));
    let (_, mut first) = copied(&tree.path(), 100, 10);
    first.kept.sort();
    assert_eq!(names(&first)[2], format!("middle.txt 100644 {}", "m".repeat(60)));
    assert_eq!(first.left, (1, 101));
    let (_, few) = copied(&tree.path(), 100, 2);
    assert_eq!(few.kept.len(), 2);
    let (_, none) = copied(&tree.path(), 0, 0);
    assert_eq!((none.kept.len(), none.left.0), (0, 5));
}

#[test]
fn a_change_tells_what_kind_of_file_it_was() {
    let tree = filled();
    tree.sh("chmod 755 b.txt; chmod 644 a.txt; ln -s a.txt link");
    let mut tracker = tree.tracker();
    tree.sh("rm b.txt; ln -sf e.txt link; echo more >> a.txt; echo n > n.txt");
    let modes: Vec<_> = tracker.scan().into_iter().map(|change| (change.path, change.mode)).collect();
    let expected =
        [("a.txt", Some(0o100644)), ("b.txt", Some(0o100755)), ("link", Some(0o120777)), ("n.txt", None)];
    assert_eq!(modes, expected.map(|(path, mode)| (path.to_owned(), mode)));
}

#[test]
fn a_large_file_is_told_once() {
    let tree = Tree::new();
    let mut tracker = tree.tracker();
    tree.sh("head -c 17000000 /dev/zero > large.bin");
    assert_eq!(outline(&tracker.scan()), ["+large.bin"]);
    assert_eq!(outline(&tracker.scan()), [""; 0]);
    tree.sh("echo more >> large.bin");
    assert_eq!(outline(&tracker.scan()), ["~large.bin"]);
    assert_eq!(outline(&tracker.scan()), [""; 0]);
}
