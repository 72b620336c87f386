//! The VS Code extension: its snippets are valid, its problem matcher reads what `fusee check` prints, and the files that
//! it packs exist.

use std::path::{Path, PathBuf};

use fusee_testkit::project::Project;
use serde_json::Value;

use crate::support::binary;

fn extension() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../editors/vscode")
}

fn json(file: &str) -> Value {
    let text = std::fs::read_to_string(extension().join(file)).expect(file);
    serde_json::from_str(&text).expect(file)
}

/// The text that a snippet inserts if no placeholder is changed.
fn inserted(snippet: &Value) -> String {
    let lines: Vec<&str> =
        snippet["body"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    let mut text = String::new();
    let body = lines.join("\n") + "\n";
    let mut rest = body.as_str();
    while let Some((before, after)) = rest.split_once("${") {
        let (placeholder, after) = after.split_once('}').unwrap();
        text.push_str(before);
        text.push_str(placeholder.split_once(':').unwrap().1);
        rest = after;
    }
    text + rest
}

#[test]
fn every_snippet_passes_the_check() {
    for (file, name) in
        [("snippets/workflow.json", "snippet.fusee"), ("snippets/template.json", "snippet.xml")]
    {
        let snippets = json(file);
        for (title, snippet) in snippets.as_object().unwrap() {
            let project = Project::new().with(name, &inserted(snippet));
            let outcome = project.command(binary()).args(["check", name]).run();
            assert_eq!(outcome.code, Some(0), "{title}:\n{}\n{}", inserted(snippet), outcome.stderr);
        }
    }
}

#[test]
fn the_problem_matcher_reads_every_problem_that_check_prints() {
    let manifest = json("package.json");
    let patterns = manifest["contributes"]["problemMatchers"][0]["pattern"].as_array().unwrap();
    let patterns: Vec<regex::Regex> = patterns
        .iter()
        .map(|pattern| regex::Regex::new(pattern["regexp"].as_str().unwrap()).unwrap())
        .collect();
    let project = Project::new().with("bad.fusee", "(define a 1)\n(undefined-task (x 1))\n(nth 1)\n");
    let outcome = project.command(binary()).args(["check", "bad.fusee"]).run().exits(1);
    let printed = outcome.stdout + &outcome.stderr;
    let lines: Vec<&str> = printed.lines().collect();
    let matched: Vec<(&str, &str)> = lines
        .windows(2)
        .filter_map(|pair| {
            let message = patterns[0].captures(pair[0])?.get(3)?;
            let line = patterns[1].captures(pair[1])?.get(2)?;
            Some((message.as_str(), line.as_str()))
        })
        .collect();
    let problems =
        lines.iter().filter(|line| line.starts_with("error[") || line.starts_with("warning[")).count();
    assert!(problems >= 2, "{printed}");
    assert_eq!(matched.len(), problems, "{printed}");
}

#[test]
fn what_the_extension_packs_exists_or_is_copied_before_packing() {
    let manifest = json("package.json");
    let copies = manifest["scripts"]["vscode:prepublish"].as_str().unwrap();
    for source in copies.split_whitespace().filter(|word| word.starts_with("../")) {
        assert!(extension().join(source).is_file(), "{source}");
    }
    for file in manifest["files"].as_array().unwrap() {
        let file = file.as_str().unwrap();
        assert!(extension().join(file).exists() || copies.contains(file), "{file}");
    }
}
