//! Which text of an editor is used, and when the editor is not asked at all.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tempfile::TempDir;

use super::OpenDocuments;
use crate::workspace::Workspace;

/// An editor that has this text in every file, and does something while it is asked.
struct Editor {
    text: &'static str,
    asked: Mutex<Vec<PathBuf>>,
    meanwhile: Box<dyn Fn() + Send + Sync>,
}

impl OpenDocuments for Editor {
    fn text(&self, path: &Path) -> Option<String> {
        self.asked.lock().push(path.to_owned());
        (self.meanwhile)();
        Some(self.text.to_owned())
    }
}

fn editor(text: &'static str, meanwhile: impl Fn() + Send + Sync + 'static) -> Arc<Editor> {
    Arc::new(Editor { text, asked: Mutex::default(), meanwhile: Box::new(meanwhile) })
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/a.txt"), "one\n").unwrap();
    folder
}

fn unsaved(folder: &TempDir, editor: &Arc<Editor>, path: &str, on_disk: &[u8]) -> Option<String> {
    let documents = Arc::clone(editor) as Arc<dyn OpenDocuments>;
    let workspace = Workspace::open(folder.path()).unwrap().with_documents(Some(documents));
    workspace.unsaved_text(&workspace.locate(path).unwrap(), on_disk)
}

#[test]
fn text_that_is_not_on_disk_is_unsaved() {
    let folder = folder();
    let editor = editor("two\n", || {});
    assert_eq!(unsaved(&folder, &editor, "src/a.txt", b"one\n"), Some("two\n".to_owned()));
    assert_eq!(*editor.asked.lock(), [folder.path().join("src/a.txt")]);
}

#[test]
fn line_endings_and_the_last_newline_make_no_difference() {
    let folder = folder();
    let editor = editor("one\ntwo", || {});
    for on_disk in ["one\r\ntwo\r\n", "one\ntwo\n", "\u{feff}one\ntwo"] {
        assert_eq!(unsaved(&folder, &editor, "src/a.txt", on_disk.as_bytes()), None, "{on_disk:?}");
    }
    assert!(unsaved(&folder, &editor, "src/a.txt", b"one\n").is_some());
}

#[test]
fn the_editor_is_not_asked_for_links_and_binary_files() {
    let folder = folder();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "s").unwrap();
    symlink(outside.path().join("secret"), folder.path().join("link")).unwrap();
    symlink(outside.path(), folder.path().join("folder")).unwrap();
    let editor = editor("two\n", || {});
    for path in ["link", "folder/secret", "missing", "src"] {
        assert_eq!(unsaved(&folder, &editor, path, b"one\n"), None, "{path}");
    }
    assert_eq!(unsaved(&folder, &editor, "src/a.txt", &[0xff, 0xfe]), None);
    assert!(editor.asked.lock().is_empty());
}

#[test]
fn an_answer_about_a_file_that_was_swapped_meanwhile_is_not_used() {
    let folder = folder();
    let path = folder.path().to_owned();
    let editor = editor("a secret\n", move || {
        // What a command would do to make the editor read another file.
        std::fs::rename(path.join("src/a.txt"), path.join("src/b.txt")).unwrap();
        symlink("/etc/hostname", path.join("src/a.txt")).unwrap();
        std::fs::rename(path.join("src/b.txt"), path.join("src/a.txt")).unwrap();
    });
    assert_eq!(unsaved(&folder, &editor, "src/a.txt", b"one\n"), None);
    assert_eq!(editor.asked.lock().len(), 1);
}
