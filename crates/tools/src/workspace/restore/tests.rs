//! Restoring files and symlinks over whatever exists there.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

const MAX_BYTES: u64 = 1 << 20;
const LINK: u32 = 0o120777;

struct Place {
    dir: tempfile::TempDir,
    workspace: Workspace,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(dir.path()).unwrap();
        Self { dir, workspace }
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.dir.path().join(path), text).unwrap();
    }

    fn link(&self, target: &str, path: &str) {
        symlink(target, self.dir.path().join(path)).unwrap();
    }

    /// Describes a path: text and permissions of a file, or the target of a symlink.
    fn shows(&self, path: &str) -> String {
        let full = self.dir.path().join(path);
        if let Ok(target) = fs::read_link(&full) {
            return format!("-> {}", target.display());
        }
        match fs::read_to_string(&full) {
            Ok(text) => format!("{text} {:o}", fs::metadata(&full).unwrap().permissions().mode() & 0o777),
            Err(_) => "nothing".to_owned(),
        }
    }

    fn back(&self, path: &str, before: Option<(&str, u32)>) -> RestoreStep {
        let before = before.map(|(content, mode)| (content.as_bytes().to_vec(), mode));
        RestoreStep {
            path: path.to_owned(),
            now: self.workspace.file_state(path, MAX_BYTES).unwrap(),
            before,
        }
    }
}

#[test]
fn files_and_links_take_each_others_places() {
    let place = Place::new();
    place.write("file-was-link", "x");
    place.link("elsewhere", "link-was-file");
    place.link("new", "retargeted");
    place.link("made", "was-nothing");
    place.write("changed", "new");
    let files = [
        place.back("file-was-link", Some(("target", LINK))),
        place.back("link-was-file", Some(("text", 0o100755))),
        place.back("retargeted", Some(("old", LINK))),
        place.back("was-nothing", None),
        place.back("gone/link", Some(("../changed", LINK))),
        place.back("changed", Some(("old", 0o600))),
    ];
    place.workspace.restore(&files, "t", MAX_BYTES).unwrap();
    let shown = files.iter().map(|file| place.shows(&file.path)).collect::<Vec<_>>();
    assert_eq!(shown, ["-> target", "text 755", "-> old", "nothing", "-> ../changed", "old 600"]);
}

#[test]
fn nothing_is_put_back_when_something_moved_meanwhile() {
    let place = Place::new();
    place.link("a", "first");
    place.link("b", "second");
    place.write("third", "x");
    let files = [place.back("first", None), place.back("second", None), place.back("third", None)];
    place.write("third", "somebody else's");
    let problem = place.workspace.restore(&files, "t", MAX_BYTES).unwrap_err();
    assert!(problem.contains("third"), "{problem}");
    assert_eq!(["first", "second"].map(|path| place.shows(path)), ["-> a", "-> b"]);
    fs::remove_file(place.dir.path().join("second")).unwrap();
    place.link("moved", "second");
    let problem = place.workspace.restore(&files[..2], "t", MAX_BYTES).unwrap_err();
    assert!(problem.contains("second"), "{problem}");
    assert_eq!(["first", "second"].map(|path| place.shows(path)), ["-> a", "-> moved"]);
}

#[test]
fn content_is_known_by_each_of_its_names() {
    let place = Place::new();
    place.write("a", "text");
    let state = place.workspace.file_state("a", MAX_BYTES).unwrap().unwrap();
    assert!(state.is(ContentHash::of(b"text")) && state.is(ContentHash::git_blob_of(b"text")));
    assert!(!state.is(ContentHash::of(b"other")));
    place.link("a", "l");
    assert_eq!(place.workspace.file_state("l", MAX_BYTES).unwrap(), Some(FileState::Link("a".to_owned())));
    assert_eq!(place.workspace.file_state_behind_link("l", MAX_BYTES).unwrap(), Some(state));
    assert_eq!(place.workspace.file_state("none", MAX_BYTES).unwrap(), None);
    assert_eq!(place.workspace.real_name("l").as_deref(), Some("a"));
}

#[test]
fn links_among_what_belongs_to_git_are_left() {
    let place = Place::new();
    fs::create_dir(place.dir.path().join(".git")).unwrap();
    place.link("x", ".git/link");
    let problem = place.workspace.restore(&[place.back(".git/link", None)], "t", MAX_BYTES).unwrap_err();
    assert!(problem.contains("belongs to git"), "{problem}");
    assert_eq!(place.shows(".git/link"), "-> x");
}
