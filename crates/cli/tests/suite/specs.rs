//! Runs every example of the manuals of tasks, templates, prompts and flows: `spec/agent`, `spec/template`, `spec/prompt`,
//! `spec/flow`.
//!
//! Each heading is an example in a new project. A block marked `LANGUAGE PATH` is a file of the project. A block
//! marked `console` holds commands (`$ fusee …`, run by a shell with the real binary) and what they print on
//! stdout; an exit code other than 0 is a last line `[exit code N]`. `| json PATH …` prints these fields of a JSON
//! object, `| events TYPE(FIELD,…) …` the events of these types with these fields. Any difference fails the test;
//! `UPDATE_SPECS=1` corrects the pages instead, to be read again before they are committed.

use std::fmt::Write as _;
use std::path::Path;

use fusee_testkit::project::Project;
use serde_json::{Map, Value};

use crate::support::binary;

#[test]
fn every_example_of_the_agent_manual_does_what_the_manual_says() {
    check_pages("agent");
}

#[test]
fn every_example_of_the_template_manual_does_what_the_manual_says() {
    check_pages("template");
}

#[test]
fn every_example_of_the_prompt_manual_does_what_the_manual_says() {
    check_pages("prompt");
}

#[test]
fn every_example_of_the_flow_manual_does_what_the_manual_says() {
    check_pages("flow");
}

fn check_pages(folder: &str) {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec").join(folder);
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in std::fs::read_dir(&pages).unwrap().map(|entry| entry.unwrap().path()) {
        let written = std::fs::read_to_string(&page).unwrap();
        let actual = rewritten(&written);
        count += 1;
        if actual != written && std::env::var_os("UPDATE_SPECS").is_some() {
            std::fs::write(&page, &actual).unwrap();
        } else if actual != written {
            wrong.push(format!("{}: {}", page.display(), first_difference(&written, &actual)));
        }
    }
    assert!(count > 0, "no pages in {}", pages.display());
    assert!(wrong.is_empty(), "{}\nUPDATE_SPECS=1 corrects the pages", wrong.join("\n"));
}

fn first_difference(written: &str, actual: &str) -> String {
    let mut lines = written.lines().zip(actual.lines()).enumerate();
    match lines.find(|(_, (one, two))| one != two) {
        Some((line, (one, two))) => format!("line {}\n  written: {one}\n  actual:  {two}", line + 1),
        None => "one has more lines than the other".to_owned(),
    }
}

/// The page with the actual output of each command.
fn rewritten(page: &str) -> String {
    let mut out = String::new();
    let mut example = Example::default();
    let mut commands = 0;
    let mut lines = page.split_inclusive('\n');
    while let Some(line) = lines.next() {
        if line.starts_with('#') {
            example.assert_run();
            example = Example::default();
        }
        out.push_str(line);
        let Some(mark) = line.trim_end().strip_prefix("```") else { continue };
        let body: String = lines.by_ref().take_while(|line| line.trim_end() != "```").collect();
        match mark.split_once(' ') {
            Some((_, path)) => {
                example.project.write(path, &body);
                example.files_unused = true;
                out.push_str(&body);
            }
            None if mark == "console" => {
                for command in body.lines().filter_map(|line| line.strip_prefix("$ ")) {
                    let _ = write!(out, "$ {command}\n{}", example.run(command));
                    commands += 1;
                }
            }
            None => out.push_str(&body),
        }
        out.push_str("```\n");
    }
    example.assert_run();
    assert!(commands > 0, "a page without a command:\n{page}");
    out
}

/// The project under one heading.
#[derive(Default)]
struct Example {
    project: Project,
    files_unused: bool,
}

impl Example {
    /// Output of a command as the page shows it.
    fn run(&mut self, command: &str) -> String {
        self.files_unused = false;
        let (command, filter) = match command.rsplit_once(" | ") {
            Some((command, filter)) if filter.starts_with("json ") || filter.starts_with("events ") => {
                (command, filter)
            }
            _ => (command, ""),
        };
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", Path::new(binary()).parent().unwrap().display());
        let outcome = self.project.command("sh").args(["-c", command]).env("PATH", path).run();
        let mut shown = match filter.split_once(' ') {
            Some(("json", paths)) => fields(paths, &outcome.stdout),
            Some((_, wanted)) => only(wanted, &outcome.events()),
            None => outcome.stdout.replace(&self.project.dir().display().to_string(), "/project"),
        };
        if !shown.is_empty() && !shown.ends_with('\n') {
            shown.push('\n');
        }
        assert_eq!(outcome.signal, None, "`{command}` was killed:\n{}", outcome.stderr);
        if let Some(code) = outcome.code.filter(|code| *code != 0) {
            let _ = writeln!(shown, "[exit code {code}]");
        }
        shown
    }

    fn assert_run(&self) {
        assert!(
            !self.files_unused,
            "files without a command that uses them, in {}",
            self.project.dir().display()
        );
    }
}

/// The fields at these dotted paths, one per line; a missing one is null.
fn fields(paths: &str, text: &str) -> String {
    let object: Value = serde_json::from_str(text).expect(text);
    let field = |path: &str| format!("{path}: {}\n", path.split('.').fold(&object, |value, key| &value[key]));
    paths.split(' ').map(field).collect()
}

/// Events of the wanted types, one JSON object per line, with the wanted fields in the wanted order.
fn only(wanted: &str, events: &[Value]) -> String {
    let wanted: Vec<(&str, Vec<&str>)> = wanted
        .split(' ')
        .map(|word| match word.split_once('(') {
            Some((kind, fields)) => (kind, fields.trim_end_matches(')').split(',').collect()),
            None => (word, Vec::new()),
        })
        .collect();
    for (kind, _) in &wanted {
        assert!(events.iter().any(|event| event["type"] == *kind), "there is no event {kind}");
    }
    let mut shown = String::new();
    for event in events {
        let Some((kind, fields)) = wanted.iter().find(|(kind, _)| event["type"] == *kind) else { continue };
        let mut object = Map::from_iter([("type".to_owned(), (*kind).into())]);
        object.extend(fields.iter().map(|field| ((*field).to_owned(), event[*field].clone())));
        let _ = writeln!(shown, "{}", Value::Object(object));
    }
    shown
}
