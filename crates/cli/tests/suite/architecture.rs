//! Rules of the source tree: which crate may depend on which, how long a file is, how it begins, what it is
//! called.

mod doc_comments;
mod security_page;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Allowed dependencies between crates, as drawn in ARCHITECTURE.md.
const ARROWS: &[(&str, &[&str])] = &[
    (
        "fusee-cli",
        &[
            "fusee",
            "fusee-acp",
            "fusee-bench",
            "fusee-mcp-server",
            "fusee-restate",
            "fusee-serve",
            "fusee-telemetry",
        ],
    ),
    ("fusee-acp", &["fusee"]),
    ("fusee-bench", &["fusee"]),
    ("fusee-mcp-server", &["fusee"]),
    ("fusee-restate", &["fusee"]),
    ("fusee-serve", &["fusee", "fusee-bench"]),
    ("fusee-telemetry", &["fusee"]),
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

/// Modules whose names are participles because that is the field's own term.
const PARTICIPLES: &[&str] = &[
    "branched",      // the name of a flow
    "event_feed",    // a feed of events
    "fenced",        // fenced code blocks
    "finding",       // findings of a review
    "model_ranking", // ranking by a model
    "reasoning",     // what a model thinks before it answers
    "sampling",      // choosing the next token
    "shell_quoting", // quoting rules of a shell
    "tagged",        // tagged calls in text
    "unified",       // unified diffs
];

/// Pairs of modules of one crate that may depend on each other, with the reason.
const MODULE_CYCLES: &[(&str, &str, &str)] = &[
    // A value can be a function, a builtin, a result or an error, and each of these holds values.
    ("lang", "builtin", "value"),
    ("lang", "function", "value"),
    ("lang", "result", "value"),
    ("lang", "runtime_error", "value"),
    // Builtins that call functions are continued by the machine, and an effect may start a machine per element.
    ("lang", "builtin", "machine"),
    ("lang", "effect", "machine"),
    // The parser lists the commands; completions, reference pages and the demo use the parser.
    ("cli", "cli", "command"),
    // The workspace owns the background jobs of a run, and jobs are made of tool parts.
    ("tools", "tool", "workspace"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Files that git tracks or would add, without the exercises, which are written for models.
fn files() -> Vec<String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let files = String::from_utf8(listed.stdout).unwrap();
    let ours = |file: &&str| !file.starts_with("testkit/exercises/") && root().join(file).is_file();
    files.lines().filter(ours).map(str::to_owned).collect()
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

/// The code of a file without its comments, which may name any module.
fn without_comments(text: &str) -> String {
    let code = |line: &str| line.split_once("//").map_or(line, |(code, _)| code).to_owned();
    text.lines().map(code).collect::<Vec<_>>().join("\n")
}

/// Texts of the libraries that name a command or flag of the binary, or of another program, with the reason.
const COMMANDS_IN_LIBRARIES: &[(&str, &str)] = &[
    ("crates/engine/src/review/review_context.rs", "commands of git that the review runs"),
    ("crates/engine/src/template/reference.rs", "the reference page of templates"),
    ("crates/engine/src/template/schema.rs", "the reference page of templates"),
    ("crates/engine/src/template/xsd.rs", "the comment in the generated schema of templates"),
    ("crates/journal/src/event/schema.rs", "the description in the generated schema of events"),
    ("crates/model/src/open.rs", "how to build the binary with in-process models"),
    ("crates/tools/src/diagnostics/server.rs", "flags of language servers"),
    ("crates/tools/src/tool/apply_patch/unified.rs", "the header of a diff by git"),
];

/// Crates that talk to users, and may name commands and flags.
const FRONT_ENDS: &[&str] = &["acp", "bench", "cli", "mcp-server", "serve", "telemetry"];

#[test]
fn hints_about_commands_and_flags_are_given_by_the_cli_alone() {
    let excepted = |file: &str| COMMANDS_IN_LIBRARIES.iter().any(|(name, _)| file == *name);
    let mut found = Vec::new();
    let mut named = BTreeSet::new();
    for file in rust_files() {
        let is_front_end = FRONT_ENDS.iter().any(|name| file.starts_with(&format!("crates/{name}/")));
        let library = file.starts_with("crates/") && !is_front_end && file.contains("/src/");
        if !library || file.contains("/tests") || file.ends_with("properties.rs") {
            continue;
        }
        for literal in literals(&read(&file)).into_iter().filter(|literal| names_a_command(literal)) {
            match excepted(&file) {
                true => drop(named.insert(file.clone())),
                false => found.push(format!("{file}: {literal}")),
            }
        }
    }
    assert_none(
        "library texts that name a command or flag; return an error kind and hint in the CLI",
        &found,
    );
    assert_eq!(named.len(), COMMANDS_IN_LIBRARIES.len(), "exceptions that are no longer needed: {named:?}");
}

/// The string literals of a source file.
fn literals(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['"', '/']) {
        let (before, from) = rest.split_at(at);
        let raw = before.len() - before.trim_end_matches('#').len();
        if from.starts_with("//") {
            rest = from.split_once('\n').map_or("", |(_, next)| next);
        } else if from.starts_with('/') || before.ends_with('\'') || before.ends_with("'\\") {
            rest = &from[1..];
        } else if before.trim_end_matches('#').ends_with('r') {
            let (literal, next) = from[1..].split_once(&format!("\"{}", "#".repeat(raw))).unwrap();
            found.push(literal);
            rest = next;
        } else {
            let mut escaped = false;
            let end = from[1..].find(|c| {
                let end = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                end
            });
            let (literal, next) = from[1..].split_at(end.unwrap());
            found.push(literal);
            rest = &next[1..];
        }
    }
    found
}

fn names_a_command(text: &str) -> bool {
    let flag = |start: &str| {
        let mut rest = text.match_indices(start).map(|(at, _)| &text[at + start.len()..]);
        rest.any(|rest| rest.starts_with(|first: char| first.is_ascii_lowercase()))
    };
    text.contains("`fusee ") || flag(" --") || flag("`--") || text.contains(" with -m")
}

/// The names that follow `crate::`, also as a list in braces.
fn crate_names(code: &str) -> BTreeSet<String> {
    let word = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut names = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            Some(list) => {
                let mut depth = 0;
                let ends = |c: char| {
                    depth += i32::from(c == '{') - i32::from(c == '}');
                    depth < 0
                };
                let end = list.find(ends).unwrap_or(list.len());
                let mut depth = 0;
                let split = |c: char| {
                    depth += i32::from(c == '{') - i32::from(c == '}');
                    c == ',' && depth == 0
                };
                names.extend(list[..end].split(split).map(word));
            }
            None => {
                names.insert(word(rest));
            }
        }
    }
    names
}

#[test]
fn modules_of_a_crate_do_not_depend_on_each_other_in_circles() {
    let mut arrows: BTreeSet<(String, String, String)> = BTreeSet::new();
    for file in rust_files() {
        let Some((name, path)) = file.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"))
        else {
            continue;
        };
        let module = path.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        if ["lib", "main"].contains(&module) || path.contains("tests") || path.contains("properties") {
            continue;
        }
        for other in crate_names(&without_comments(&read(&file))) {
            let is_module = ["", "/mod"]
                .iter()
                .any(|tail| root().join(format!("crates/{name}/src/{other}{tail}.rs")).is_file());
            if is_module && other != module {
                arrows.insert((name.to_owned(), module.to_owned(), other));
            }
        }
    }
    assert!(arrows.len() > 50, "only {} arrows were found", arrows.len());
    let circles: Vec<String> = arrows
        .iter()
        .filter(|(_, from, to)| from < to)
        .filter(|(name, from, to)| arrows.contains(&(name.clone(), to.clone(), from.clone())))
        .filter(|(name, from, to)| !MODULE_CYCLES.contains(&(name.as_str(), from.as_str(), to.as_str())))
        .map(|(name, from, to)| format!("{name}: {from} and {to}"))
        .collect();
    assert_none("modules that depend on each other", &circles);
}

#[test]
fn modules_are_nouns() {
    let named: Vec<String> = rust_files()
        .into_iter()
        .filter(|file| file.contains("/src/"))
        .filter(|file| {
            let module = file.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
            (module.ends_with("ing") || module.ends_with("ed")) && !PARTICIPLES.contains(&module)
        })
        .collect();
    assert_none("modules named by a participle", &named);
}

#[test]
fn no_two_crates_export_a_type_of_the_same_name() {
    let mut exported: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in rust_files() {
        let Some((name, _)) = file.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/")) else {
            continue;
        };
        // `fusee` is a facade over the engine and chooses its names for embedders.
        if ["cli", "fusee"].contains(&name) || file.contains("/tests") {
            continue;
        }
        for line in read(&file).lines() {
            let declared = ["pub struct ", "pub enum ", "pub trait "]
                .iter()
                .find_map(|keyword| line.strip_prefix(keyword))
                .map(|rest| rest.chars().take_while(char::is_ascii_alphanumeric).collect::<String>());
            if let Some(declared) = declared {
                exported.entry(declared).or_default().insert(name.to_owned());
            }
        }
    }
    let twice: Vec<String> = exported
        .iter()
        .filter(|(_, crates)| crates.len() > 1)
        .map(|(name, crates)| format!("{name}: {crates:?}"))
        .collect();
    assert_none("types that two crates export", &twice);
}
