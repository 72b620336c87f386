//! Path confinement, by the kernel's resolution and by the manual walk, and file changes.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

const MAX_BYTES: u64 = 1 << 20;

fn opened(root: &Path) -> [Workspace; 2] {
    [Workspace::open(root).unwrap(), Workspace::open(root).unwrap().by_hand()]
}

fn text(workspace: &Workspace, path: &str) -> Result<String, String> {
    let path = workspace.locate(path).map_err(|problem| problem.to_string())?;
    let problem = match workspace.open_to_read(&path).map_err(|problem| problem.to_string())? {
        OpenedPath::File { file, .. } => return Ok(io::read_to_string(file).unwrap()),
        OpenedPath::Directory(_) => PathProblem::Directory { path },
        OpenedPath::Special(kind) => PathProblem::Special { path, kind },
    };
    Err(problem.to_string())
}

fn write(workspace: &Workspace, path: &str, content: &str) -> Result<(), String> {
    let path = workspace.locate(path).map_err(|problem| problem.to_string())?;
    let current = workspace.current(&path, MAX_BYTES).map_err(|problem| problem.to_string())?;
    let before = current.map(|current| ContentHash::of(&current.content));
    let change = FileWrite { path, before, after: Some(content.into()), mode: None };
    workspace.change(&[change], "call", MAX_BYTES).map_err(|problem| problem.to_string())
}

/// Creates a workspace `inside` with a sibling directory `outside`.
fn neighbours() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("inside/sub/deep")).unwrap();
    fs::create_dir(directory.path().join("outside")).unwrap();
    fs::write(directory.path().join("outside/secret"), "secret").unwrap();
    fs::write(directory.path().join("inside/plain"), "plain").unwrap();
    fs::write(directory.path().join("inside/sub/file"), "below").unwrap();
    directory
}

#[test]
fn the_kernel_resolution_is_the_one_used_here() {
    let directory = neighbours();
    assert_eq!(Workspace::open(directory.path()).unwrap().resolution, confined_open::Resolution::Kernel);
}

#[test]
fn paths_are_relative_or_absolute_inside() {
    let directory = neighbours();
    let root = directory.path().join("inside");
    for workspace in opened(&root) {
        for path in ["sub/file", "./sub//file", "sub/deep/../file", root.join("sub/file").to_str().unwrap()] {
            assert_eq!(text(&workspace, path), Ok("below".to_owned()), "{path}");
        }
    }
}

#[test]
fn a_root_given_through_a_link_is_known_by_both_names() {
    let directory = neighbours();
    symlink("inside", directory.path().join("alias")).unwrap();
    for workspace in opened(&directory.path().join("alias")) {
        assert_eq!(workspace.root(), directory.path().join("inside").canonicalize().unwrap());
        for root in ["alias", "inside"] {
            let path = directory.path().join(root).join("plain");
            assert_eq!(text(&workspace, path.to_str().unwrap()), Ok("plain".to_owned()));
        }
    }
}

#[test]
fn paths_that_leave_by_their_text_are_refused() {
    let directory = neighbours();
    for workspace in opened(&directory.path().join("inside")) {
        for path in ["../outside/secret", "/etc/passwd", "sub/../../outside/secret", "a\0b"] {
            let refused = text(&workspace, path).unwrap_err();
            assert_eq!(
                refused,
                format!(
                    "`{path}` is outside the workspace. Use a path relative to the workspace root, such as `src/main.rs`; `.` is the root itself."
                )
            );
        }
    }
}

#[test]
fn links_that_stay_inside_are_followed_and_others_are_not() {
    let directory = neighbours();
    let root = directory.path().join("inside");
    symlink("sub/file", root.join("good")).unwrap();
    symlink("../plain", root.join("sub/up")).unwrap();
    symlink("sub", root.join("directory")).unwrap();
    symlink("../outside/secret", root.join("relative")).unwrap();
    symlink(directory.path().join("outside/secret"), root.join("absolute")).unwrap();
    symlink("../outside", root.join("away")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("/proc/self/root/etc/passwd", root.join("magic")).unwrap();
    for workspace in opened(&root) {
        assert_eq!(text(&workspace, "good"), Ok("below".to_owned()));
        assert_eq!(text(&workspace, "sub/up"), Ok("plain".to_owned()));
        assert_eq!(text(&workspace, "directory/file"), Ok("below".to_owned()));
        for path in ["relative", "absolute", "away/secret", "magic"] {
            let expected = format!(
                "`{path}` leads out of the workspace through a symbolic link; only what is inside can be used."
            );
            assert_eq!(text(&workspace, path).unwrap_err(), expected);
            assert_eq!(write(&workspace, path, "overwritten").unwrap_err(), expected);
        }
        assert_eq!(text(&workspace, "loop").unwrap_err(), "`loop`: too many symbolic links on the way.");
    }
    assert_eq!(fs::read_to_string(directory.path().join("outside/secret")).unwrap(), "secret");
}

#[test]
fn directories_pipes_and_missing_files_are_named() {
    let directory = neighbours();
    let root = directory.path().join("inside");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("pipe"),
        FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    for workspace in opened(&root) {
        assert_eq!(
            text(&workspace, "sub").unwrap_err(),
            "`sub` is a directory. Use list_dir to see what is in it."
        );
        assert_eq!(
            text(&workspace, ".").unwrap_err(),
            "`.` is a directory. Use list_dir to see what is in it."
        );
        assert_eq!(text(&workspace, "pipe").unwrap_err(), "`pipe` is a named pipe, not a file.");
        assert_eq!(text(&workspace, "none/at/all").unwrap_err(), "`none/at/all` does not exist.");
        assert_eq!(
            text(&workspace, "plain/x").unwrap_err(),
            "`plain/x` cannot exist: a part of this path is a file, not a directory."
        );
    }
}

#[test]
fn a_written_file_keeps_mode_owner_and_the_link_that_leads_to_it() {
    let directory = neighbours();
    let root = directory.path().join("inside");
    symlink("../plain", root.join("sub/link")).unwrap();
    fs::set_permissions(root.join("plain"), fs::Permissions::from_mode(0o751)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(root.join("plain"), Some(1234), Some(2345)).unwrap();
    }
    let before = fs::metadata(root.join("plain")).unwrap();
    let workspace = Workspace::open(&root).unwrap();
    write(&workspace, "sub/link", "new").unwrap();
    let after = fs::metadata(root.join("plain")).unwrap();
    assert_eq!(fs::read_to_string(root.join("plain")).unwrap(), "new");
    assert!(fs::symlink_metadata(root.join("sub/link")).unwrap().is_symlink());
    assert_eq!((before.mode(), before.uid(), before.gid()), (after.mode(), after.uid(), after.gid()));
    assert_eq!(names(&root), ["plain", "sub"]);
}

#[test]
fn missing_directories_are_made() {
    let directory = neighbours();
    let root = directory.path().join("inside");
    let workspace = Workspace::open(&root).unwrap();
    write(&workspace, "new/er/file", "x").unwrap();
    assert_eq!(fs::read_to_string(root.join("new/er/file")).unwrap(), "x");
    assert_eq!(
        write(&workspace, "plain/file", "x").unwrap_err(),
        "`plain/file` cannot exist: a part of this path is a file, not a directory."
    );
}

#[test]
fn our_own_files_and_gits_cannot_be_written() {
    let directory = neighbours();
    let root = directory.path().join("inside");
    fs::create_dir(root.join(".fusee")).unwrap();
    fs::create_dir_all(root.join(".git/hooks")).unwrap();
    fs::write(root.join("fusee.toml"), "").unwrap();
    symlink(".fusee", root.join("innocent")).unwrap();
    symlink("../.git", root.join("sub/repository")).unwrap();
    symlink("fusee.toml", root.join("settings.toml")).unwrap();
    let workspace = Workspace::open(&root).unwrap();
    for (path, reason) in [
        (".fusee/journal.db", "it belongs to Fusee itself"),
        (".FUSEE/x", "it belongs to Fusee itself"),
        ("innocent/x", "it belongs to Fusee itself"),
        (".git/hooks/pre-commit", "it belongs to git; use git commands in the shell"),
        (".git", "it belongs to git; use git commands in the shell"),
        ("sub/repository/config", "it belongs to git; use git commands in the shell"),
        ("fusee.toml", "it says what tools may do; ask the user to change it"),
        ("settings.toml", "it says what tools may do; ask the user to change it"),
        ("sub/fusee.toml", "it says what tools may do; ask the user to change it"),
    ] {
        assert_eq!(
            write(&workspace, path, "x").unwrap_err(),
            format!("`{path}` cannot be changed by tools: {reason}.")
        );
    }
}

#[test]
fn a_file_that_changed_since_is_left_alone() {
    let directory = neighbours();
    let root = directory.path().join("inside");
    let workspace = Workspace::open(&root).unwrap();
    let path = workspace.locate("plain").unwrap();
    for before in [None, Some(ContentHash::of(b"other"))] {
        let change = FileWrite { path: path.clone(), before, after: Some(b"new".to_vec()), mode: None };
        let error = workspace.change(&[change], "call", MAX_BYTES).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`plain` was changed by something else while this call was on its way. Read it again."
        );
    }
    assert_eq!(fs::read_to_string(root.join("plain")).unwrap(), "plain");
    assert_eq!(names(&root), ["plain", "sub"]);
}

#[test]
fn several_files_change_together_or_not_at_all() {
    let directory = neighbours();
    let root = directory.path().join("inside");
    let workspace = Workspace::open(&root).unwrap();
    let change = |path: &str, before: Option<&str>, after: Option<&str>| FileWrite {
        path: workspace.locate(path).unwrap(),
        before: before.map(|text| ContentHash::of(text.as_bytes())),
        after: after.map(Into::into),
        mode: None,
    };
    let good = [
        change("sub/file", Some("below"), None),
        change("plain", Some("plain"), Some("changed")),
        change("fresh/one", None, Some("one")),
    ];
    // The last one's directory cannot be created because a file is in the way, but only after that file is
    // written.
    let mut bad = good.to_vec();
    bad.push(change("fresh/one/two", None, Some("two")));
    workspace.change(&bad, "call", MAX_BYTES).unwrap_err();
    assert_eq!(fs::read_to_string(root.join("plain")).unwrap(), "plain");
    assert_eq!(names(&root), ["plain", "sub"]);
    assert_eq!(names(&root.join("sub")), ["deep", "file"]);

    workspace.change(&good, "call", MAX_BYTES).unwrap();
    assert_eq!(fs::read_to_string(root.join("plain")).unwrap(), "changed");
    assert_eq!(fs::read_to_string(root.join("fresh/one")).unwrap(), "one");
    assert_eq!(names(&root.join("sub")), ["deep"]);
}

#[test]
fn what_was_renamed_is_put_back_when_a_later_file_fails() {
    let directory = neighbours();
    let root = directory.path().join("inside");
    let workspace = Workspace::open(&root).unwrap();
    let fresh = |path: &str| FileWrite {
        path: workspace.locate(path).unwrap(),
        before: None,
        after: Some(b"x".to_vec()),
        mode: None,
    };
    let update = FileWrite {
        path: workspace.locate("plain").unwrap(),
        before: Some(ContentHash::of(b"plain")),
        after: Some(b"changed".to_vec()),
        mode: None,
    };
    // Both pass the check while nothing exists; then the first one's directory occupies the path of the
    // second.
    let error = workspace.change(&[update, fresh("new/file"), fresh("new")], "call", MAX_BYTES).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`new` was changed by something else while this call was on its way. Read it again."
    );
    assert_eq!(fs::read_to_string(root.join("plain")).unwrap(), "plain");
    assert_eq!(names(&root), ["plain", "sub"]);
}

#[test]
fn a_temporary_file_left_by_a_crash_is_replaced_and_swept() {
    let directory = neighbours();
    let root = directory.path().join("inside");
    let workspace = Workspace::open(&root).unwrap();
    let path = workspace.locate("plain").unwrap();
    write(&workspace, "plain", "probe").unwrap();
    let leftover = leftover_name(&workspace, &path, &root);
    fs::write(root.join(&leftover), "half").unwrap();
    write(&workspace, "plain", "whole").unwrap();
    assert_eq!(names(&root), ["plain", "sub"]);
    fs::write(root.join(&leftover), "half").unwrap();
    workspace.remove_temporary(&path, "call");
    assert_eq!(names(&root), ["plain", "sub"]);
}

/// Discovers the temporary name by watching the directory during a change.
fn leftover_name(workspace: &Workspace, path: &WorkspacePath, root: &Path) -> String {
    let seen = Arc::new(AtomicBool::new(false));
    let watcher = {
        let (seen, root) = (Arc::clone(&seen), root.to_owned());
        std::thread::spawn(move || {
            loop {
                for name in names(&root) {
                    if name.ends_with(".tmp") {
                        seen.store(true, Ordering::Relaxed);
                        return name;
                    }
                }
            }
        })
    };
    let big = vec![b'x'; MAX_BYTES as usize];
    while !seen.load(Ordering::Relaxed) {
        let before =
            workspace.current(path, MAX_BYTES).unwrap().map(|current| ContentHash::of(&current.content));
        let change = FileWrite { path: path.clone(), before, after: Some(big.clone()), mode: None };
        workspace.change(&[change], "call", MAX_BYTES).unwrap();
    }
    watcher.join().unwrap()
}

#[test]
fn a_link_swapped_during_the_call_leads_nowhere() {
    let directory = neighbours();
    let root = directory.path().join("inside");
    fs::create_dir(root.join("real")).unwrap();
    fs::write(root.join("real/secret"), "harmless").unwrap();
    fs::rename(root.join("real"), root.join("swapped")).unwrap();
    symlink("../outside", root.join("trap")).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = {
        let (root, stop) = (root.clone(), Arc::clone(&stop));
        std::thread::spawn(move || {
            let (swapped, trap) = (root.join("swapped"), root.join("trap"));
            while !stop.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(
                    rustix::fs::CWD,
                    &swapped,
                    rustix::fs::CWD,
                    &trap,
                    rustix::fs::RenameFlags::EXCHANGE,
                )
                .unwrap();
            }
        })
    };
    let (mut read, mut refused) = (0, 0);
    let until = Instant::now() + Duration::from_millis(700);
    let workspaces = opened(&root);
    let mut round = 0u32;
    while Instant::now() < until {
        round += 1;
        for workspace in &workspaces {
            match text(workspace, "swapped/secret") {
                Ok(content) => {
                    assert_ne!(content, "secret");
                    read += 1;
                }
                Err(_) => refused += 1,
            }
            let _ = write(workspace, "swapped/secret", &format!("harmless {round}"));
            let _ = write(workspace, &format!("swapped/new{round}"), "x");
            if let Some(status) = workspace.stat_no_symlinks(&workspace.locate("swapped/secret").unwrap()) {
                assert_ne!(
                    status.st_ino,
                    fs::metadata(directory.path().join("outside/secret")).unwrap().ino()
                );
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert!(read > 0 && refused > 0, "the race was never run: {read} reads, {refused} refusals");
    assert_eq!(names(&directory.path().join("outside")), ["secret"]);
    assert_eq!(fs::read_to_string(directory.path().join("outside/secret")).unwrap(), "secret");
}

#[test]
fn what_was_seen_is_remembered_by_name_and_forgotten_at_the_bound() {
    let directory = neighbours();
    let workspace = Workspace::open(&directory.path().join("inside")).unwrap();
    let hash = |number: usize| ContentHash::of(number.to_string().as_bytes());
    for number in 0..5000 {
        workspace.record_seen(&SeenVersion { path: format!("file{number}"), hash: hash(number) });
    }
    let seen = |number: usize| workspace.last_seen(&workspace.locate(&format!("./file{number}")).unwrap());
    assert_eq!((seen(0), seen(4999)), (None, Some(hash(4999))));
    workspace.record_output(&ToolOutput {
        changed: vec![crate::FileChange {
            path: "file4999".to_owned(),
            before: Some(hash(4999)),
            after: None,
            mode: None,
        }],
        seen: vec![SeenVersion { path: "file0".to_owned(), hash: hash(1) }],
        ..ToolOutput::done("")
    });
    assert_eq!((seen(0), seen(4999)), (Some(hash(1)), None));
}

#[test]
fn a_missing_path_is_answered_with_what_may_be_meant() {
    let directory = neighbours();
    let root = directory.path().join("inside");
    fs::write(root.join("sub/deep/settings.rs"), "").unwrap();
    fs::write(root.join("sub/parser.rs"), "").unwrap();
    let workspace = Workspace::open(&root).unwrap();
    let suggestions = |path: &str| workspace.suggestions(&workspace.locate(path).unwrap());
    assert_eq!(suggestions("settings.rs"), ["sub/deep/settings.rs"]);
    assert_eq!(suggestions("sub/parsr.rs"), ["sub/parser.rs"]);
    assert_eq!(suggestions("quite/else"), Vec::<String>::new());
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

proptest! {
    #[test]
    fn both_resolutions_agree(path in "(a|b|l|m|\\.\\.|x)(/(a|b|l|m|\\.\\.|x)){0,4}") {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        fs::create_dir_all(root.join("a/b/a")).unwrap();
        fs::write(root.join("a/x"), "1").unwrap();
        fs::write(root.join("a/b/x"), "2").unwrap();
        fs::write(directory.path().join("x"), "out").unwrap();
        symlink("a/b", root.join("l")).unwrap();
        symlink("../..", root.join("a/b/m")).unwrap();
        symlink("../../..", root.join("a/b/l")).unwrap();
        symlink("b/./m/a", root.join("a/m")).unwrap();
        let [kernel, by_hand] = opened(&root);
        let (first, second) = (text(&kernel, &path), text(&by_hand, &path));
        prop_assert!(first.as_deref() != Ok("out"));
        prop_assert_eq!(first, second);
    }
}
