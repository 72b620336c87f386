//! Checks the claims of the README and related pages: commands parse, links and paths resolve. The examples of the
//! README and the guides are run by `suite/specs.rs`.
#![expect(clippy::expect_used, reason = "a test panics when it fails")]

use std::path::{Path, PathBuf};

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
fn every_command_within_the_text_of_the_readme_is_understood() {
    let text = page("README.md");
    let commands: Vec<Vec<String>> =
        code(&text).1.into_iter().filter_map(|line| line.strip_prefix("fusee ")).map(words).collect();
    assert!(commands.len() > 5, "{commands:?}");
    let project = Project::new();
    for command in commands {
        // --help is handled after the arguments before it are parsed, and nothing is executed.
        let outcome = project.command(env!("CARGO_BIN_EXE_fusee")).args(&command).args(["--help"]).run();
        assert_eq!(outcome.code, Some(0), "fusee {}: {}", command.join(" "), outcome.stderr);
    }
}

/// Markdown files of the repository that a reader may follow links in.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut folders = vec![root().join("docs"), root().join("spec")];
    let top = std::fs::read_dir(root()).expect("the repository");
    pages.extend(top.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file()));
    pages.push(root().join("editors/vscode/README.md"));
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path())
        {
            if path.is_dir() { folders.push(path) } else { pages.push(path) }
        }
    }
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages
}

/// The text outside of code, where links are.
fn prose(text: &str) -> String {
    let outside = text.split("\n```").step_by(2);
    outside.flat_map(|part| part.split('`').step_by(2)).collect()
}

/// Anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.split("\n```").step_by(2).flat_map(str::lines).filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let kept = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-' || *c == '_');
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_leads_to_a_file_and_its_anchor_to_a_heading() {
    let pages = pages();
    assert!(pages.len() > 40, "{}", pages.len());
    let mut broken = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page");
        let prose = prose(&text);
        let folder = page.parent().expect("a folder");
        let links = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let pictures = prose.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next());
        for link in links.chain(pictures).filter(|link| !link.starts_with("https://")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { page.clone() } else { folder.join(path) };
            let is_there = match anchor {
                "" => target.exists(),
                anchor => {
                    let text = std::fs::read_to_string(&target).unwrap_or_default();
                    anchors(&text).iter().any(|known| known == anchor)
                }
            };
            if !is_there {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
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
            // Created by building or running, or a file of the user's project.
            let elsewhere =
                ["target/", ".fusee/", ".git/", ".hg/"].iter().any(|start| path.starts_with(start));
            if !known && !elsewhere {
                missing.push(format!("{name}: {path}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}
