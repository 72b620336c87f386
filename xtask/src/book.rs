//! `cargo xtask book`: builds the documentation site with mdBook and checks every link in it.
//!
//! The sources keep their places (`docs/`, `spec/`, the pages at the top), so that their links work in the repository
//! too; they are copied, with the files they link to, and the table of contents is made from `docs/README.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::{Outcome, prerequisites, root, step, target_dir};

const SETTINGS: &str = "\
[book]
title = \"Fusee\"
language = \"en\"
[build]
build-dir = \"site\"
# README.md stays README.html, as the pages link to it.
use-default-preprocessors = false
[output.html]
default-theme = \"light\"
preferred-dark-theme = \"navy\"
no-section-label = true
[output.html.fold]
enable = true
[output.html.print]
enable = false
";

/// Builds the site in `target/book/site`.
pub(crate) fn run() -> Outcome {
    let mdbook = prerequisites::own_tool("mdbook", MDBOOK)?;
    let book = target_dir().join("book");
    let _ = fs::remove_dir_all(&book);
    let pages = gather(&book.join("src"))?;
    write(&book.join("book.toml"), SETTINGS)?;
    step::run("site", mdbook, ["build".as_ref(), book.as_os_str()])?;
    let count = check_links(&book.join("site"))?;
    println!("{}: {} pages, {count} links", book.join("site/index.html").display(), pages.len());
    Ok(())
}

/// Without the server and the watcher, and not optimised: it builds one small book.
const MDBOOK: &[&str] =
    &["mdbook", "--version", "0.5.4", "--debug", "--no-default-features", "--features", "search"];

/// Copies the pages and what they link to, writes the table of contents, and returns the pages.
fn gather(source: &Path) -> Result<Vec<PathBuf>, String> {
    let mut pages = Vec::new();
    for folder in ["docs", "spec"] {
        find(&root().join(folder), "md", &mut pages)?;
    }
    for name in ["README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG", "SECURITY"] {
        pages.push(root().join(name).with_extension("md"));
    }
    let mut files = BTreeSet::new();
    for page in &pages {
        let text = read(page)?;
        let folder = page.parent().unwrap_or(Path::new("."));
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        let pictures = text.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next());
        files.extend(
            links.chain(pictures).map(|link| normal(&folder.join(link))).filter(|path| path.is_file()),
        );
    }
    for file in files.iter().chain(&pages) {
        let Ok(inside) = file.strip_prefix(root()) else { continue };
        let target = source.join(inside);
        let folder = target.parent().unwrap_or(source);
        fs::create_dir_all(folder)
            .and_then(|()| fs::copy(file, &target))
            .map_err(|error| format!("cannot copy {}: {error}", file.display()))?;
    }
    write(&source.join("SUMMARY.md"), &summary(&read(&root().join("docs/README.md"))?))?;
    Ok(pages)
}

/// The table of contents: the lists of the index under their headings, one entry per link.
fn summary(index: &str) -> String {
    let mut text = String::from("# Summary\n\n[Fusee](README.md)\n[Documentation](docs/README.md)\n");
    for line in index.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            text.push_str(&format!("\n# {heading}\n\n"));
            continue;
        }
        let Some((indent, item)) = line.split_once("- ").filter(|(indent, _)| indent.trim().is_empty())
        else {
            continue;
        };
        if !item.contains("](") {
            text.push_str(&format!("{indent}- [{item}]()\n"));
        }
        for link in item.split('[').skip(1) {
            if let Some((title, rest)) = link.split_once("](")
                && let Some(path) = rest.split(')').next().filter(|path| path.ends_with(".md"))
            {
                let path = path.strip_prefix("../").map_or_else(|| format!("docs/{path}"), str::to_owned);
                text.push_str(&format!("{indent}- [{title}]({path})\n"));
            }
        }
    }
    text
}

/// Checks that every link within the site leads to a file and, with a fragment, to an element of it. Returns the
/// number of links.
fn check_links(site: &Path) -> Result<usize, String> {
    let mut files = Vec::new();
    find(site, "html", &mut files)?;
    let texts: BTreeMap<&PathBuf, String> =
        files.iter().map(|file| Ok((file, read(file)?))).collect::<Result<_, String>>()?;
    let (mut count, mut broken) = (0, BTreeSet::new());
    for (file, text) in &texts {
        let folder = file.parent().unwrap_or(site);
        let attributes = ["href=\"", "src=\""].into_iter().flat_map(|name| text.split(name).skip(1));
        for link in attributes.filter_map(|rest| rest.split('"').next()) {
            if link.contains(':') || link.is_empty() {
                continue;
            }
            count += 1;
            let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { (*file).clone() } else { normal(&folder.join(path)) };
            let is_there = match texts.get(&target) {
                Some(text) => fragment.is_empty() || text.contains(&format!("id=\"{fragment}\"")),
                None => target.is_file(),
            };
            // The page for unknown addresses has links relative to wherever it is shown.
            if !is_there && !file.ends_with("404.html") {
                broken.insert(format!("{}: {link}", file.strip_prefix(site).unwrap_or(file).display()));
            }
        }
    }
    match broken.is_empty() {
        true => Ok(count),
        false => Err(format!("broken links:\n{}", broken.into_iter().collect::<Vec<_>>().join("\n"))),
    }
}

/// Files below a folder with this extension.
fn find(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) -> Outcome {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            find(&path, extension, found)?;
        } else if path.extension().is_some_and(|given| given == extension) {
            found.push(path);
        }
    }
    Ok(())
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = normal.pop(),
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Outcome {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
