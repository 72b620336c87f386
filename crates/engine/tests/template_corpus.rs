//! A corpus of templates on which our parser and xmllint with our XSD agree; `beyond` holds what an XSD
//! cannot express.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test stops where it fails, and starts another program"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fusee_engine::template::{Template, shipped, xsd};

fn corpus(folder: &str) -> Vec<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/templates").join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn ours(file: &Path) -> bool {
    let (template, _, problems) = Template::from_bytes("t.xml", &fs::read(file).unwrap());
    assert_eq!(template.is_some(), !problems.has_errors(), "{}", file.display());
    template.is_some()
}

fn xmllint(file: &Path) -> bool {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/task-template-1.0.xsd");
    let run =
        Command::new("xmllint").arg("--nonet").arg("--noout").arg("--schema").arg(schema).arg(file).output();
    let run = run.expect("xmllint is there: `cargo xtask test` installs it");
    let said = String::from_utf8_lossy(&run.stderr);
    // Exit code 5 is a schema that does not compile; then no verdict is valid.
    assert_ne!(run.status.code(), Some(5), "{said}");
    run.status.success()
}

fn verdicts(folder: &str) -> Vec<(String, bool, bool)> {
    let name = |file: &Path| file.file_stem().unwrap().to_string_lossy().into_owned();
    corpus(folder).iter().map(|file| (name(file), ours(file), xmllint(file))).collect()
}

#[test]
fn good_templates_are_good_to_both() {
    let wrong: Vec<_> = verdicts("good").into_iter().filter(|(_, ours, theirs)| !ours || !theirs).collect();
    assert!(wrong.is_empty(), "(file, ours, xmllint): {wrong:?}");
}

#[test]
fn bad_templates_are_bad_to_both() {
    let wrong: Vec<_> = verdicts("bad").into_iter().filter(|(_, ours, theirs)| *ours || *theirs).collect();
    assert!(wrong.is_empty(), "(file, ours, xmllint): {wrong:?}");
}

#[test]
fn what_the_xsd_cannot_say_is_found_by_us() {
    let wrong: Vec<_> = verdicts("beyond").into_iter().filter(|(_, ours, theirs)| *ours || !theirs).collect();
    assert!(wrong.is_empty(), "(file, ours, xmllint): {wrong:?}");
}

#[test]
fn shipped_templates_are_valid_to_both() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|end| end == "xml")).collect();
    assert_eq!(files.len(), shipped().len());
    for file in files {
        let (_, _, problems) = Template::from_bytes("t.xml", &fs::read(&file).unwrap());
        assert!(problems.is_empty(), "{}: {problems:?}", file.display());
        assert!(xmllint(&file), "{}", file.display());
    }
}

#[test]
fn the_schema_file_is_what_the_table_says() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/task-template-1.0.xsd");
    let written = fs::read_to_string(&file).unwrap_or_default();
    assert!(written == xsd(), "schema/task-template-1.0.xsd is old: `cargo xtask docs` writes it anew");
}
