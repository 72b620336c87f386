//! One-page digest of a project: languages, layout, build files, git state. Its size is bounded for any
//! project. `cache.rs` caches the file-based part until the files change.

use std::collections::BTreeMap;
use std::path::Path;

use fusee_tools::workspace::walk::{self, WalkFingerprint};

mod cache;
#[cfg(test)]
mod tests;

/// Name of the digest cache, stored next to the journal.
pub const DIGEST_FILE: &str = "memory.digest";

/// Maximum number of files scanned. Larger projects are described by the first ones, and the digest says so.
const MAX_FILES: usize = 20_000;

/// Maximum number of rows in each part.
const LANGUAGES: usize = 8;
const FOLDERS: usize = 24;
const BUILD_FILES: usize = 12;

const NAMES: &[(&str, &str)] = &[
    ("rs", "Rust"),
    ("py", "Python"),
    ("ts", "TypeScript"),
    ("tsx", "TypeScript"),
    ("js", "JavaScript"),
    ("jsx", "JavaScript"),
    ("mjs", "JavaScript"),
    ("go", "Go"),
    ("java", "Java"),
    ("kt", "Kotlin"),
    ("swift", "Swift"),
    ("c", "C"),
    ("h", "C"),
    ("cc", "C++"),
    ("cpp", "C++"),
    ("hpp", "C++"),
    ("cs", "C#"),
    ("rb", "Ruby"),
    ("php", "PHP"),
    ("scala", "Scala"),
    ("ex", "Elixir"),
    ("hs", "Haskell"),
    ("ml", "OCaml"),
    ("lua", "Lua"),
    ("sh", "Shell"),
    ("sql", "SQL"),
    ("html", "HTML"),
    ("css", "CSS"),
    ("md", "Markdown"),
    ("toml", "TOML"),
    ("yaml", "YAML"),
    ("yml", "YAML"),
    ("json", "JSON"),
];

const BUILDS: &[&str] = &[
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "requirements.txt",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "CMakeLists.txt",
    "Makefile",
    "meson.build",
    "Gemfile",
    "composer.json",
    "mix.exs",
    "Package.swift",
    "Dockerfile",
    "justfile",
    "tox.ini",
];

/// Returns the digest of a project; `branch` and `changed` come from git. The file-based part is cached in
/// the file `cache`, if one is given, until the files change.
pub fn workspace_digest(
    root: &Path,
    kept: Option<&Path>,
    branch: Option<&str>,
    changed: Option<&str>,
) -> String {
    let mut text = match kept {
        Some(file) => cache::page(file, root),
        None => page(root).0,
    };
    if let Some(branch) = branch {
        text.push_str(&format!("\nGit branch: {branch}."));
        match changed.map(str::trim_end) {
            Some("") => text.push_str(" Nothing is uncommitted.\n"),
            Some(changed) => text.push_str(&format!(" Uncommitted:\n{changed}\n")),
            None => text.push('\n'),
        }
    }
    text
}

/// Describes the files, and returns the fingerprint of the scan for the cache.
fn page(root: &Path) -> (String, WalkFingerprint) {
    let (files, fingerprint) = walk::tree_under(root, MAX_FILES);
    let more = if files.len() == MAX_FILES { " (the first of more)" } else { "" };
    let mut text = format!("{} files{more}.\n", files.len());
    text.push_str(&format!("\nLanguages: {}.\n", languages(&files)));
    text.push_str(&format!("\nLayout:\n{}", layout(&files)));
    let builds = builds(&files);
    if !builds.is_empty() {
        text.push_str(&format!("\nBuild files: {}.\n", builds.join(", ")));
    }
    (text, fingerprint)
}

fn languages(files: &[String]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files {
        let extension = file.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, it)| it);
        let known = NAMES.iter().find(|(known, _)| Some(*known) == extension);
        if let Some((_, language)) = known {
            *counts.entry(language).or_default() += 1;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let known: Vec<_> =
        counts.iter().take(LANGUAGES).map(|(name, count)| format!("{name} ({count})")).collect();
    if known.is_empty() { "none that is known".to_owned() } else { known.join(", ") }
}

/// Lists the first two levels of folders with their file counts, and the top-level files.
fn layout(files: &[String]) -> String {
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    let mut top = Vec::new();
    for file in files {
        let parts: Vec<&str> = file.split('/').collect();
        match parts.as_slice() {
            [name] => top.push(*name),
            [first, .., _] => {
                *folders.entry(format!("{first}/")).or_default() += 1;
                if let [first, second, _, ..] = parts.as_slice() {
                    *folders.entry(format!("{first}/{second}/")).or_default() += 1;
                }
            }
            [] => {}
        }
    }
    let shown = |(folder, count): (&String, &usize)| format!("- {folder} ({count})\n");
    // If not all fit, outer folders come first; otherwise each is followed by its children.
    let mut in_order: Vec<_> = folders.iter().collect();
    if folders.len() > FOLDERS {
        in_order.sort_by_key(|(folder, _)| folder.matches('/').count());
    }
    let mut text: String = in_order.into_iter().take(FOLDERS).map(shown).collect();
    if folders.len() > FOLDERS {
        text.push_str(&format!("- and {} more folders\n", folders.len() - FOLDERS));
    }
    if !top.is_empty() {
        let more = if top.len() > FOLDERS { ", …" } else { "" };
        top.truncate(FOLDERS);
        text.push_str(&format!("- at the top: {}{more}\n", top.join(", ")));
    }
    text
}

fn builds(files: &[String]) -> Vec<&str> {
    let is_build = |file: &&String| BUILDS.contains(&file.rsplit('/').next().unwrap_or_default());
    let mut found: Vec<&str> = files.iter().filter(is_build).map(String::as_str).collect();
    found.sort_by_key(|file| file.matches('/').count());
    found.truncate(BUILD_FILES);
    found
}
