//! What stands in the repository is what the tables say now.

use std::fs;
use std::path::Path;

use crate::command::docs;

/// Like the schema of events: `UPDATE_SCHEMA=1` writes the files anew.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test may be told to write what it would compare")]
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
        assert!(found == text, "{} is out of date: `cargo xtask docs` writes it anew", path.display());
    }
}
