//! Checks the claims of the README and related pages: commands parse, links resolve, examples work.
#![expect(clippy::expect_used, reason = "a test panics when it fails")]

use std::path::{Path, PathBuf};

use fusee_testkit::events::schema_path;
use fusee_testkit::project::Project;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).expect("a page of the project")
}

/// Text between backquotes, in blocks and within lines.
fn code(text: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut blocks, mut pieces) = (Vec::new(), Vec::new());
    for (at, part) in text.split("```").enumerate() {
        match at % 2 {
            1 => blocks.extend(part.lines().skip(1)),
            _ => pieces.extend(part.lines().flat_map(|line| line.split('`').skip(1).step_by(2))),
        }
    }
    (blocks, pieces)
}

/// Splits a command into words like a shell; text after two spaces is a remark.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut quoted, mut characters) = (false, command.chars().peekable());
    while let Some(character) = characters.next() {
        match character {
            '\'' => quoted = !quoted,
            ' ' if !quoted && characters.peek() == Some(&' ') => break,
            ' ' if !quoted => words.push(String::new()),
            other => words.last_mut().expect("a word").push(other),
        }
    }
    words
}

#[test]
fn every_command_of_the_readme_is_understood() {
    let text = page("README.md");
    let (blocks, pieces) = code(&text);
    let commands: Vec<Vec<String>> =
        blocks.into_iter().chain(pieces).filter_map(|line| line.strip_prefix("fusee ")).map(words).collect();
    assert!(commands.len() > 10, "{commands:?}");
    let project = Project::new();
    for command in commands {
        // --help is handled after the arguments before it are parsed, and nothing is executed.
        let outcome = project.command(env!("CARGO_BIN_EXE_fusee")).args(&command).args(["--help"]).run();
        assert_eq!(outcome.code, Some(0), "fusee {}: {}", command.join(" "), outcome.stderr);
    }
}

#[test]
fn the_templates_of_the_readme_take_what_it_gives_them() {
    let text = page("README.md");
    let tasks: Vec<Vec<String>> =
        code(&text).0.into_iter().filter_map(|line| line.strip_prefix("fusee task ")).map(words).collect();
    assert!(!tasks.is_empty());
    let project = Project::new().with("README.md", "# A page\n");
    for task in tasks {
        let fusee = project.command(env!("CARGO_BIN_EXE_fusee"));
        fusee.args(["task"]).args(&task).args(["--dry-run"]).run().exits(0);
    }
}

#[test]
fn the_workflow_of_the_readme_is_one() {
    let text = page("README.md");
    let workflow =
        text.split("```").find(|part| part.trim_start().starts_with("(params")).expect("a workflow");
    let project = Project::new().with("w.fusee", workflow);
    project.command(env!("CARGO_BIN_EXE_fusee")).args(["check", "w.fusee"]).run().exits(0);
    project.command(env!("CARGO_BIN_EXE_fusee")).args(["task", "w.fusee", "--dry-run"]).run().exits(0);
}

#[test]
fn the_readme_names_every_command_of_the_conversation_and_no_other() {
    let text = page("README.md");
    let is_command = |word: &&str| {
        word.starts_with('/') && word[1..].chars().all(|c| c.is_ascii_lowercase()) && word.len() > 1
    };
    let named = |line: &str| -> Vec<String> {
        let words = line.split_whitespace().map(|word| word.trim_end_matches(','));
        words.filter(is_command).map(str::to_owned).collect()
    };
    let blocks = code(&text).0.into_iter().filter(|line| line.starts_with('/'));
    let mut told: Vec<String> = blocks.flat_map(named).collect();
    told.sort();
    let project = Project::new();
    let script = project.script(&[]);
    let command =
        project.command(env!("CARGO_BIN_EXE_fusee")).args(["--plain", "-m", &script]).stdin("/help\n");
    let help = command.run().exits(0).stdout;
    let mut known: Vec<String> = help.lines().filter_map(|line| named(line).into_iter().next()).collect();
    known.sort();
    assert_eq!(told, known);
}

#[test]
fn the_script_of_the_readme_is_played_to_its_end() {
    let text = page("README.md");
    let lines: Vec<&str> = code(&text).0.into_iter().filter(|line| line.starts_with("{\"text\"")).collect();
    let project = Project::new().with("a.txt", "hello\n").with("replies.jsonl", &(lines.join("\n") + "\n"));
    let command = project.command(env!("CARGO_BIN_EXE_fusee"));
    let outcome = command.args(["run", "-m", "script:replies.jsonl", "look"]).run().exits(0);
    assert_eq!(outcome.stdout, "Done.\n");
}

#[test]
fn the_events_of_the_readme_are_events() {
    let schema = std::fs::read_to_string(schema_path()).expect("the schema");
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).expect("JSON")).expect("a schema");
    let text = page("README.md");
    let lines: Vec<&str> = code(&text).0.into_iter().filter(|line| line.starts_with("{\"seq\"")).collect();
    assert_eq!(lines.len(), 4);
    for line in lines {
        assert!(schema.is_valid(&serde_json::from_str(line).expect("JSON")), "{line}");
    }
}

#[test]
fn every_link_leads_to_a_file() {
    let pages =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs/README.md"];
    for name in pages {
        let text = page(name);
        let folder = root().join(name).parent().expect("a folder").to_owned();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let pictures = text.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next());
        for link in links.chain(pictures).filter(|link| !link.starts_with("https://")) {
            assert!(folder.join(link).exists(), "{name}: {link}");
        }
    }
}

#[test]
fn every_path_that_the_pages_name_is_there() {
    let named = |text: &str| -> Vec<String> {
        let pieces = code(text).1;
        let is_path = |piece: &&str| {
            piece.contains('/') && !piece.starts_with('/') && !piece.contains([' ', ':', '*', '<', '$', '!'])
        };
        pieces.into_iter().filter(is_path).map(str::to_owned).collect()
    };
    let mut missing = Vec::new();
    for name in ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"] {
        for path in named(&page(name)) {
            let known = [root(), root().join("crates")].iter().any(|base| base.join(&path).exists());
            // Created by building or running.
            if !known && !path.starts_with("target/") && !path.starts_with(".fusee/") {
                missing.push(format!("{name}: {path}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}
