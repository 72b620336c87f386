//! Runs every example of the manuals of tasks, templates, prompts and flows (`spec/agent`, `spec/template`, `spec/prompt`,
//! `spec/flow`) and every command of the README and the guides (`docs/*.md`).
//!
//! In a manual, each heading is an example in a new project; a guide has one project from its beginning to its end. A
//! block marked `LANGUAGE PATH` is a file of the project. A block marked `console` holds commands (`$ fusee …`, run by a
//! shell with the real binary) and what they print on stdout; an exit code other than 0 is a last line `[exit code N]`.
//! `| json PATH …` prints these fields of a JSON object, `| events TYPE(FIELD,…) …` the events of these types with these
//! fields. Any difference fails the test; `UPDATE_SPECS=1` corrects the pages instead, to be read again before they are
//! committed.
//!
//! In a guide, a block marked `sh` is run as a script that must succeed; its output is not compared. A block marked
//! `sh model` needs a real model, a network or other software: its `fusee` commands are only parsed, like those of a
//! `yaml` file.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fusee_testkit::project::{Outcome, Project};
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

#[test]
fn every_command_of_the_guides_does_what_they_say() {
    let commands = check(&guides(), Scope::Page);
    assert!(commands > 80, "only {commands} commands were found");
}

/// Commands in a block without a mark would not be checked by anything.
#[test]
fn every_block_of_commands_in_the_guides_is_marked() {
    for page in guides() {
        let text = std::fs::read_to_string(&page).unwrap();
        let mut mark = None;
        for (index, line) in text.lines().enumerate() {
            match (line.trim_start().strip_prefix("```"), &mark) {
                (Some(opened), None) => mark = Some(opened.to_owned()),
                (Some(_), Some(_)) => mark = None,
                (None, Some(mark)) => {
                    let is_command = line.trim_start().trim_start_matches("$ ").starts_with("fusee ");
                    let is_unchecked = ["", "bash", "shell", "yaml"].contains(&mark.as_str());
                    assert!(!(is_command && is_unchecked), "{}:{}: {line}", page.display(), index + 1);
                }
                (None, None) => {}
            }
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The README and the guides.
fn guides() -> Vec<PathBuf> {
    let mut pages = markdown_files(&root().join("docs"));
    pages.push(root().join("README.md"));
    pages
}

fn markdown_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

fn check_pages(folder: &str) {
    let pages = markdown_files(&root().join("spec").join(folder));
    assert!(check(&pages, Scope::Heading) >= pages.len(), "a page without a command");
}

/// What shares a project.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Heading,
    Page,
}

/// Runs the pages, fails on any difference, and returns the number of commands.
fn check(pages: &[PathBuf], scope: Scope) -> usize {
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages {
        let written = std::fs::read_to_string(page).unwrap();
        let (actual, commands) = rewritten(&written, scope);
        count += commands;
        if actual != written && std::env::var_os("UPDATE_SPECS").is_some() {
            std::fs::write(page, &actual).unwrap();
        } else if actual != written {
            wrong.push(format!("{}: {}", page.display(), first_difference(&written, &actual)));
        }
    }
    assert!(wrong.is_empty(), "{}\nUPDATE_SPECS=1 corrects the pages", wrong.join("\n"));
    count
}

fn first_difference(written: &str, actual: &str) -> String {
    let mut lines = written.lines().zip(actual.lines()).enumerate();
    match lines.find(|(_, (one, two))| one != two) {
        Some((line, (one, two))) => format!("line {}\n  written: {one}\n  actual:  {two}", line + 1),
        None => "one has more lines than the other".to_owned(),
    }
}

/// The page with the actual output of each command, and the number of commands.
fn rewritten(page: &str, scope: Scope) -> (String, usize) {
    let mut out = String::new();
    let mut example = Example::default();
    let mut commands = 0;
    let mut lines = page.split_inclusive('\n');
    while let Some(line) = lines.next() {
        if line.starts_with('#') && scope == Scope::Heading {
            example.assert_run();
            example = Example::default();
        }
        out.push_str(line);
        let Some(mark) = line.trim_end().strip_prefix("```") else { continue };
        let body: String = lines.by_ref().take_while(|line| line.trim_end() != "```").collect();
        match mark.split_once(' ') {
            Some(("sh", "model")) => {
                commands += example.parse(&body);
                out.push_str(&body);
            }
            Some((language, path)) => {
                if language == "yaml" {
                    commands += example.parse(&body);
                }
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
            None if mark == "sh" && scope == Scope::Page => {
                example.run_script(&body);
                commands += 1;
                out.push_str(&body);
            }
            None => out.push_str(&body),
        }
        out.push_str("```\n");
    }
    example.assert_run();
    (out, commands)
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
        let outcome = self.shell(command, Path::new(binary()).parent().unwrap());
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

    fn shell(&self, script: &str, programs: &Path) -> Outcome {
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        self.project.command("sh").args(["-c", script]).env("PATH", path).run()
    }

    /// Runs a block whose output is not compared.
    fn run_script(&mut self, script: &str) {
        self.files_unused = false;
        let outcome = self.shell(&format!("set -e\n{script}"), Path::new(binary()).parent().unwrap());
        assert_eq!(outcome.code, Some(0), "{script}\n{}\n{}", outcome.stdout, outcome.stderr);
    }

    /// Parses the commands of a block without running them, and returns their number.
    fn parse(&self, block: &str) -> usize {
        // --help is handled after the arguments before it are parsed, and nothing is executed.
        let programs = self.project.scratch("parse-only");
        std::fs::create_dir(&programs).unwrap();
        let fusee = programs.join("fusee");
        std::fs::write(&fusee, format!("#!/bin/sh\nexec {} \"$@\" --help\n", binary())).unwrap();
        std::fs::set_permissions(&fusee, std::fs::Permissions::from_mode(0o755)).unwrap();
        let joined = block.replace("\\\n", " ");
        let commands = joined.lines().filter(|line| !line.starts_with('#'));
        let commands: Vec<&str> =
            commands.filter_map(|line| line.find("fusee ").map(|start| &line[start..])).collect();
        for command in &commands {
            let outcome = self.shell(command, &programs);
            assert_eq!(outcome.code, Some(0), "{command}\n{}", outcome.stderr);
        }
        commands.len()
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
