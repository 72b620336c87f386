//! Rules of the source tree: which crate may depend on which, how long a file is, how it begins, what it is
//! called.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Allowed dependencies between crates, as drawn in ARCHITECTURE.md.
const ARROWS: &[(&str, &[&str])] = &[
    ("fusee-cli", &["fusee-engine"]),
    ("fusee", &["fusee-engine"]),
    ("fusee-engine", &["fusee-journal", "fusee-lang", "fusee-model", "fusee-text", "fusee-tools"]),
    ("fusee-lang", &["fusee-text"]),
    ("fusee-model", &[]),
    ("fusee-tools", &[]),
    ("fusee-journal", &[]),
    ("fusee-text", &[]),
    ("fusee-testkit", &[]),
    ("xtask", &[]),
];

/// Names that say nothing about the content.
const EMPTY_NAMES: &[&str] = &["utils", "util", "common", "helpers", "misc", "manager", "types"];

const LONGEST_FILE: usize = 600;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Files that git tracks or would add.
fn files() -> Vec<String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let files = String::from_utf8(listed.stdout).unwrap();
    files.lines().filter(|file| root().join(file).is_file()).map(str::to_owned).collect()
}

fn rust_files() -> Vec<String> {
    let ours = |file: &String| ["crates/", "xtask/", "testkit/"].iter().any(|dir| file.starts_with(dir));
    let files: Vec<String> = files().into_iter().filter(|file| file.ends_with(".rs")).filter(ours).collect();
    assert!(files.len() > 50, "only {} source files were found", files.len());
    files
}

fn read(file: &str) -> String {
    String::from_utf8_lossy(&std::fs::read(root().join(file)).unwrap()).into_owned()
}

#[track_caller]
fn assert_none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

/// Dependencies whose names start with `fusee`, from all dependency tables except dev-dependencies.
fn known_crates(manifest: &toml::Table) -> Vec<String> {
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let per_target =
        targets.into_iter().flat_map(|targets| targets.values()).filter_map(toml::Value::as_table);
    std::iter::once(manifest)
        .chain(per_target)
        .flat_map(|table| ["dependencies", "build-dependencies"].map(|key| table.get(key)))
        .filter_map(|table| table?.as_table())
        .flat_map(|table| table.keys())
        .filter(|name| name.starts_with("fusee"))
        .cloned()
        .collect()
}

#[test]
fn crates_know_only_what_the_architecture_draws() {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let manifests: Vec<String> = files().into_iter().filter(|file| file.ends_with("Cargo.toml")).collect();
    let mut wrong = Vec::new();
    for file in manifests.iter().filter(|file| *file != "Cargo.toml" && !file.starts_with("fuzz/")) {
        let manifest: toml::Table = read(file).parse().unwrap();
        let name = manifest["package"]["name"].as_str().unwrap().to_owned();
        match allowed.get(name.as_str()) {
            None => wrong.push(format!("{name} ({file}) is not in the architecture")),
            Some(arrows) => wrong.extend(
                known_crates(&manifest)
                    .iter()
                    .filter(|known| !arrows.contains(&known.as_str()))
                    .map(|known| format!("{name} knows {known}")),
            ),
        }
    }
    assert_none("arrows that the architecture does not draw", &wrong);
    assert!(manifests.len() > ARROWS.len(), "manifests are missing: {manifests:?}");
}

#[test]
fn no_source_file_is_too_long() {
    let long: Vec<String> = rust_files()
        .iter()
        .map(|file| (file, read(file).lines().count()))
        .filter(|(_, lines)| *lines > LONGEST_FILE)
        .map(|(file, lines)| format!("{file}: {lines} lines, at most {LONGEST_FILE}"))
        .collect();
    assert_none("files that are too long", &long);
}

#[test]
fn every_source_file_begins_by_saying_what_it_is() {
    let silent: Vec<String> =
        rust_files().into_iter().filter(|file| !read(file).starts_with("//! ")).collect();
    assert_none("files that do not begin with `//! `", &silent);
}

#[test]
fn no_file_or_folder_has_an_empty_name() {
    let is_empty_name = |part: &str| EMPTY_NAMES.contains(&part.trim_end_matches(".rs"));
    let empty: Vec<String> =
        rust_files().into_iter().filter(|file| file.split('/').any(is_empty_name)).collect();
    assert_none("names that say nothing", &empty);
}

#[test]
fn no_file_names_a_path_of_this_machine() {
    let home = std::env::home_dir().unwrap_or_default();
    // In pieces, so that this file does not contain what it searches for.
    let mut paths = vec![
        root().display().to_string(),
        ["/work", "main"].join("/"),
        ["/work", "shared"].join("/"),
        home.join(".cargo").display().to_string(),
    ];
    paths.retain(|path| path.len() > 4);
    let found: Vec<String> = files()
        .iter()
        .flat_map(|file| {
            let text = read(file);
            let named = paths.iter().filter(|path| text.contains(path.as_str()));
            named.map(|path| format!("{file}: {path}")).collect::<Vec<_>>()
        })
        .collect();
    assert_none("files with a path of this machine", &found);
}

#[test]
fn every_test_module_of_this_suite_is_part_of_it() {
    let main = read("crates/cli/tests/suite/main.rs");
    let forgotten: Vec<String> = files()
        .into_iter()
        .filter_map(|file| {
            Some(file.strip_prefix("crates/cli/tests/suite/")?.strip_suffix(".rs")?.to_owned())
        })
        .filter(|module| module != "main" && !module.contains('/'))
        .filter(|module| !main.contains(&format!("mod {module};")))
        .collect();
    assert_none("modules that no test program includes", &forgotten);
}
