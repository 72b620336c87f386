//! Runs the commands of the README and the guides that need a model, with replies from a file in its place: whatever the
//! stand-in answers, they must not end as wrong usage, an unreachable model or a crash. `specs` runs all other commands,
//! and parses these.

use std::path::{Path, PathBuf};

use fusee_testkit::project::Project;

use crate::support::binary;

/// What cannot be run with a stand-in: a server or a login that waits for somebody, runs and approvals that a new project
/// does not have, programs and ports of this machine, a model inside the process, and benchmarks, which `bench` runs.
const ONLY_PARSED: [&str; 17] = [
    "fusee serve",
    "--serve",
    "--detach",
    "--continue",
    "fusee mcp-login",
    "fusee resume",
    "fusee rewind",
    "fusee fork",
    "fusee runs undo",
    "fusee runs export",
    "fusee show",
    "fusee approvals revoke",
    "fusee doctor",
    "fusee models",
    "fusee demo -m",
    "local:",
    "fusee bench",
];

#[test]
fn commands_that_need_a_model_run_with_a_stand_in() {
    let (project, stand_in) = project();
    let mut count = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for command in commands(&text) {
            count += 1;
            let path = format!(
                "{}:{}",
                Path::new(binary()).parent().unwrap().display(),
                std::env::var("PATH").unwrap()
            );
            let shell = project.command("sh").args(["-c", &command]).env("PATH", path);
            let outcome = shell.env("FUSEE_MODEL", &stand_in).stdin("").run();
            let ended = matches!(outcome.code, Some(0 | 1 | 3 | 5));
            assert!(ended, "{}: {command}\n{:?}\n{}", page.display(), outcome.code, outcome.stderr);
        }
    }
    assert!(count > 25, "only {count} commands were found");
}

/// A repository with the files that the pages name, and a change; and the name of the stand-in.
fn project() -> (Project, String) {
    let project = Project::new()
        .with("Makefile", "test:\n\ttrue\n")
        .with("src/price.py", "def price(x):\n    return round(x)\n")
        .with("src/price.rs", "pub fn price(x: f64) -> f64 { x }\n")
        .with("src/parser.rs", "pub fn parse() {}\n")
        .with("leap.py", "def is_leap(year):\n    return year % 4 == 0\n")
        .with("docs/rules/style.md", "# Style\n\nPlain.\n");
    let agents = root().join("agents");
    for file in std::fs::read_dir(agents).unwrap().map(|entry| entry.unwrap()) {
        let name = format!("agents/{}", file.file_name().display());
        project.write(&name, &std::fs::read_to_string(file.path()).unwrap());
    }
    let reply = "{\"text\":\"{\\\"summary\\\":\\\"Done.\\\",\\\"findings\\\":[]}\"}\n";
    let replies = project.scratch("stand-in.jsonl");
    std::fs::write(&replies, reply.repeat(12)).unwrap();
    let git = "git init -qb main && git add src && git -c user.name=me -c user.email=me@example.org commit -qm first";
    project.command("sh").args(["-c", git]).run().exits(0);
    (project, format!("script:{}", replies.display()))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    pages.push(root().join("README.md"));
    pages
}

/// The commands of the blocks marked `sh model`, without their model and its server: the environment names the stand-in.
fn commands(page: &str) -> Vec<String> {
    let blocks = page.split("```sh model\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut commands = Vec::new();
    for block in blocks {
        let joined = block.replace("\\\n", " ");
        let lines = joined.lines().filter(|line| !line.starts_with('#'));
        for line in lines.filter_map(|line| line.find("fusee ").map(|start| &line[start..])) {
            if !ONLY_PARSED.iter().any(|words| line.contains(words)) && !line.trim_end().ends_with("fusee") {
                commands.push(without_model(line));
            }
        }
    }
    commands
}

fn without_model(line: &str) -> String {
    let mut words = line.split(' ').peekable();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        if word == "-m" || word == "--base-url" {
            words.next();
        } else {
            kept.push(word);
        }
    }
    kept.join(" ")
}
