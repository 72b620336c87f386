//! The index of the specifications: `spec/README.md` is generated from `spec/sections.toml`, and every place that it names
//! exists.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

#[derive(Deserialize)]
struct Index {
    documents: Vec<Document>,
}

#[derive(Deserialize)]
struct Document {
    title: String,
    sections: Vec<Section>,
}

#[derive(Deserialize)]
struct Section {
    heading: String,
    /// What the section requires, and the places that show it.
    requirements: Vec<Vec<String>>,
}

const INTRODUCTION: &str = "# Specifications

The pages of this folder are manual and test suite at once: every example runs in the tests and prints what the page says.
Together they state the five documents that Fusee implements. The tables are generated from [sections.toml](sections.toml):
one row for each requirement, with the examples that show it, or the test where only a program can see it.
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The anchor of a heading, as Markdown viewers form it.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Headings of a page outside of its examples.
fn headings(page: &str) -> Vec<String> {
    let mut fenced = false;
    let heading = |line: &str| {
        fenced ^= line.starts_with("```");
        let text = line.trim_start_matches('#');
        (!fenced && text.len() < line.len()).then(|| text.trim().to_owned())
    };
    page.lines().filter_map(heading).collect()
}

/// A link to a place, or why there is none.
fn link(place: &str) -> Result<String, String> {
    if let Some(remark) = place.strip_prefix("- ") {
        return Ok(remark.to_owned());
    }
    let (file, part) = place.split_once('#').unwrap_or((place, ""));
    let is_outside = ["crates/", "docs/", "testkit/"].iter().any(|folder| file.starts_with(folder));
    let (folder, up) = if is_outside { ("", "../") } else { ("spec", "") };
    let text = std::fs::read_to_string(root().join(folder).join(file))
        .map_err(|error| format!("{file}: {error}"))?;
    if file.ends_with(".rs") {
        return match text.contains(&format!("fn {part}(")) || part.is_empty() {
            true => Ok(format!("[`{}`]({up}{file})", if part.is_empty() { file } else { part })),
            false => Err(format!("{file} has no test {part}")),
        };
    }
    let headings = headings(&text);
    let wanted = |heading: &&String| part.is_empty() || anchor(heading) == part;
    let heading = headings.iter().find(wanted).ok_or_else(|| format!("{file} has no heading #{part}"))?;
    Ok(format!("[{heading}]({up}{place})"))
}

/// A row of the table; problems are added to `wrong`.
fn row(section: &str, requirement: &[String], wrong: &mut Vec<String>) -> String {
    let [text, places @ ..] = requirement else {
        wrong.push(format!("{section}: an empty requirement"));
        return String::new();
    };
    if places.is_empty() {
        wrong.push(format!("{section}, {text}: no place"));
    }
    let mut links = Vec::new();
    for place in places {
        match link(place) {
            Ok(link) => links.push(link),
            Err(problem) => wrong.push(format!("{section}, {text}: {problem}")),
        }
    }
    format!("{} | {}", text.replace('<', "&lt;").replace('|', "\\|"), links.join(", "))
}

#[test]
fn the_index_names_a_place_for_every_requirement() {
    let index: Index =
        toml::from_str(&std::fs::read_to_string(root().join("spec/sections.toml")).unwrap()).unwrap();
    let mut page = INTRODUCTION.to_owned();
    let mut wrong = Vec::new();
    for Document { title, sections } in &index.documents {
        let _ = write!(page, "\n## {title}\n\n| section | requirement | stated in |\n|---|---|---|\n");
        for Section { heading, requirements } in sections {
            if requirements.is_empty() {
                wrong.push(format!("{title}, {heading}: no requirement"));
            }
            for (index, requirement) in requirements.iter().enumerate() {
                let row = row(&format!("{title}, {heading}"), requirement, &mut wrong);
                let shown = if index == 0 { heading.replace('<', "&lt;") } else { String::new() };
                let _ = writeln!(page, "| {shown} | {row} |");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(index.documents.len(), 5);
    let file = root().join("spec/README.md");
    if std::env::var_os("UPDATE_SPECS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == page,
        "spec/README.md is out of date: UPDATE_SPECS=1 cargo nextest run -p fusee-cli spec_sections"
    );
}
