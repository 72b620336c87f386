//! The committed pages match the tables.

use std::fs;
use std::path::Path;

use crate::command::docs;

/// With `UPDATE_SCHEMA=1` it rewrites the files, as the test of the event schema does.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test can rewrite the files it compares")]
fn the_pages_and_schemas_in_the_repository_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let update = std::env::var_os("UPDATE_SCHEMA").is_some();
    for (path, text) in docs::files() {
        let file = root.join(&path);
        if update {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &text).unwrap();
        }
        let found = fs::read_to_string(&file).unwrap_or_default();
        assert!(found == text, "{} is out of date: run `cargo xtask docs`", path.display());
    }
}
