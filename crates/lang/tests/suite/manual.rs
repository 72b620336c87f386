//! Runs every example of the language manual, `spec/language/*.md`.
//!
//! A block marked `fusee` is a workflow; the blocks after it contain the expected outcome: `result` the
//! printed value, `error` the fault or the diagnostics, `warnings` the diagnostics of a program that runs,
//! `effects` the effects it requested, in order. Blocks marked `file NAME` are files it can load. Any
//! difference fails the test, and the corrected page is written to the test's temporary directory.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::world::World;
use fusee_lang::EvaluationLimits;
use fusee_text::Severity;
use serde_json::Map as JsonMap;

#[test]
fn every_example_of_the_manual_does_what_the_manual_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/language");
    let mut pages: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    assert!(!pages.is_empty(), "no pages in {}", folder.display());
    let mut wrong = Vec::new();
    for page in pages {
        let written = std::fs::read_to_string(&page).unwrap();
        let (actual, examples) = Page::read(&written).rewritten();
        assert!(examples > 0, "{} has no examples", page.display());
        if actual != written {
            let name = page.file_name().unwrap();
            let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
            std::fs::write(&kept, &actual).unwrap();
            let difference = first_difference(&written, &actual);
            wrong.push(format!(
                "{}\n{difference}\n(the page as it should read: {})",
                page.display(),
                kept.display()
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
}

fn first_difference(written: &str, actual: &str) -> String {
    let lines = written.lines().zip(actual.lines()).enumerate().find(|(_, (one, two))| one != two);
    match lines {
        Some((line, (one, two))) => format!("line {}\n  written: {one}\n  actual:  {two}", line + 1),
        None => "one has more lines than the other".to_owned(),
    }
}

/// A page split into text and fenced blocks.
struct Page {
    parts: Vec<Part>,
}

enum Part {
    Text(String),
    Block { mark: String, body: String },
}

impl Page {
    fn read(text: &str) -> Page {
        let mut parts = vec![Part::Text(String::new())];
        let mut lines = text.split_inclusive('\n');
        while let Some(line) = lines.next() {
            match line.trim_end().strip_prefix("```") {
                Some(mark) => {
                    let body: String = lines.by_ref().take_while(|line| line.trim_end() != "```").collect();
                    parts.push(Part::Block { mark: mark.to_owned(), body });
                    parts.push(Part::Text(String::new()));
                }
                None => {
                    if let Some(Part::Text(text)) = parts.last_mut() {
                        text.push_str(line);
                    }
                }
            }
        }
        Page { parts }
    }

    /// The page with the actual outcome of each example, and the number of examples.
    fn rewritten(&self) -> (String, usize) {
        let mut out = String::new();
        let mut examples = 0;
        let mut files: Vec<(String, String)> = Vec::new();
        let mut last: Option<Example> = None;
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Block { mark, body } => {
                    let body = match (mark.as_str(), &last) {
                        ("fusee", previous) => {
                            assert!(
                                previous.as_ref().is_none_or(|example| example.asserted),
                                "an example says nothing:\n{body}"
                            );
                            examples += 1;
                            last = Some(Example::run(body, &files));
                            body.clone()
                        }
                        ("result" | "error" | "warnings" | "effects", Some(example)) => example.block(mark),
                        _ => {
                            files.extend(
                                mark.strip_prefix("file ").map(|name| (name.to_owned(), body.clone())),
                            );
                            body.clone()
                        }
                    };
                    if let (Some(example), true) = (&mut last, mark == "result" || mark == "error") {
                        example.asserted = true;
                    }
                    let _ = write!(out, "```{mark}\n{body}```\n");
                }
            }
        }
        assert!(last.is_none_or(|example| example.asserted), "the last example says nothing");
        (out, examples)
    }
}

/// Outcome of an example.
struct Example {
    value: Option<String>,
    error: String,
    warnings: String,
    effects: String,
    asserted: bool,
}

impl Example {
    fn run(text: &str, files: &[(String, String)]) -> Example {
        let mut world = World { files: files.iter().cloned().collect(), ..World::default() };
        let compiled = world.compile(text);
        let mut example = Example {
            value: None,
            error: String::new(),
            warnings: String::new(),
            effects: String::new(),
            asserted: false,
        };
        for problem in compiled.diagnostics.into_sorted() {
            let into = match problem.severity {
                Severity::Error => &mut example.error,
                Severity::Warning => &mut example.warnings,
            };
            let _ = writeln!(into, "{} {}: {}", problem.start, problem.code, problem.message);
            if let Some(help) = &problem.help {
                let _ = writeln!(into, "    {help}");
            }
        }
        if let Some(program) = compiled.program {
            match world.run(&program, &JsonMap::new(), EvaluationLimits::default()) {
                Ok(value) => example.value = Some(value.display(10_000)),
                Err(fault) => example.error = format!("{fault}\n"),
            }
        }
        for effect in world.effects {
            let _ = writeln!(example.effects, "{effect}");
        }
        example
    }

    fn block(&self, mark: &str) -> String {
        match (mark, &self.value) {
            ("result", Some(value)) => format!("{value}\n"),
            ("result", None) => format!("FAILED\n{}", self.error),
            ("error", Some(value)) => format!("NO ERROR BUT\n{value}\n"),
            ("error", None) => self.error.clone(),
            ("warnings", _) => self.warnings.clone(),
            _ => self.effects.clone(),
        }
    }
}
