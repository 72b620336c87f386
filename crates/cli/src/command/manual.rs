//! `fusee docs`: the manual, from an archive that the build script makes of `docs/` and `spec/`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use fusee::engine::run::ExitStatus;
use fusee::engine::text::suggest;

use crate::cli;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::ui::{markdown, terminal};

#[cfg(test)]
mod tests;

/// Compressed by the build script: for each page a line with its path and length in bytes, then its text.
const ARCHIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/manual.bin"));

/// Upper bound of the uncompressed archive, a protection against a damaged binary.
const LARGEST: usize = 16 << 20;

/// Columns beyond which lines of text become hard to read.
const WIDEST: usize = 100;

/// Read the manual.
///
/// Without PAGE, lists all pages. A page is named by its path (`reference/config`) or the last part of it
/// (`config`). Markdown is rendered for a terminal; a pipe gets the source. Needs no network and no files.
#[derive(Args)]
pub(crate) struct ManualArgs {
    /// Page to print
    page: Option<String>,
    /// List the lines that contain these words, ignoring case
    #[arg(long, value_name = "WORDS", conflicts_with = "page")]
    search: Option<String>,
    /// Write man pages of all commands into this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["page", "search"])]
    man: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn manual(args: &ManualArgs, process: &Process) -> Result<ExitStatus, CliError> {
    if let Some(folder) = &args.man {
        return man_pages(&process.environment.directory().join(folder));
    }
    let pages = pages().ok_or_else(|| CliError::failed("the manual in this binary is damaged"))?;
    match (&args.page, &args.search) {
        (Some(name), _) => {
            let page = find(&pages, name)?;
            stdio::print_styled(&shown(&page.text, process))?;
        }
        (None, Some(words)) => {
            let found = search(&pages, words);
            stdio::print(&found)?;
            if found.is_empty() {
                return Ok(ExitStatus::Failed);
            }
        }
        (None, None) => stdio::print(&listing(&pages))?,
    }
    Ok(ExitStatus::Completed)
}

/// One page of `docs/`, as embedded in the binary.
#[derive(Debug)]
struct ManualPage {
    /// Path without `docs/` and `.md`.
    name: String,
    text: String,
}

impl ManualPage {
    /// Text of the first heading.
    fn title(&self) -> &str {
        self.text.lines().next().unwrap_or_default().trim_start_matches('#').trim()
    }
}

/// Names and titles of all pages.
pub(crate) fn page_titles() -> Vec<(String, String)> {
    let pages = pages().unwrap_or_default();
    pages.into_iter().map(|page| (page.name.clone(), page.title().to_owned())).collect()
}

/// All pages, guides first; `None` if the archive is damaged.
fn pages() -> Option<Vec<ManualPage>> {
    let archive = miniz_oxide::inflate::decompress_to_vec_with_limit(ARCHIVE, LARGEST).ok()?;
    let mut rest = archive.as_slice();
    let mut pages = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let (path, length) = std::str::from_utf8(&rest[..end]).ok()?.split_once(' ')?;
        let (text, after) = rest[end + 1..].split_at_checked(length.parse().ok()?)?;
        rest = after;
        let name = path.strip_prefix("docs/").unwrap_or(path).trim_end_matches(".md");
        pages.push(ManualPage { name: name.to_owned(), text: String::from_utf8(text.to_vec()).ok()? });
    }
    pages.sort_by_key(|page| page.name.contains('/'));
    Some(pages)
}

/// The page of this name, or the only one whose path ends with it.
fn find<'a>(pages: &'a [ManualPage], name: &str) -> Result<&'a ManualPage, CliError> {
    let name = name.trim_end_matches(".md").trim_start_matches("docs/");
    if let Some(page) = pages.iter().find(|page| page.name == name) {
        return Ok(page);
    }
    let ending = format!("/{name}");
    let mut fitting = pages.iter().filter(|page| page.name.ends_with(&ending));
    match (fitting.next(), fitting.next()) {
        (Some(page), None) => Ok(page),
        (Some(one), Some(other)) => {
            Err(CliError::usage(format!("`{name}` names several pages of the manual"))
                .help(format!("use `fusee docs {}` or `fusee docs {}`", one.name, other.name)))
        }
        (None, _) => {
            let last = |page: &'a ManualPage| page.name.rsplit('/').next().unwrap_or_default();
            let near = suggest::did_you_mean(name, pages.iter().map(last));
            Err(CliError::usage(format!("the manual has no page `{name}`"))
                .help(near.unwrap_or_else(|| "run `fusee docs` to list the pages".to_owned())))
        }
    }
}

fn listing(pages: &[ManualPage]) -> String {
    let width = pages.iter().map(|page| page.name.len()).max().unwrap_or_default();
    let mut text: String =
        pages.iter().map(|page| format!("{:<width$}  {}\n", page.name, page.title())).collect();
    text.push_str("\nfusee docs PAGE prints a page, fusee docs --search WORDS finds lines\n");
    text
}

/// Lines that contain all words, as `page:line: text`.
fn search(pages: &[ManualPage], words: &str) -> String {
    let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
    let mut found = String::new();
    for page in pages {
        for (index, line) in page.text.lines().enumerate() {
            let lower = line.to_lowercase();
            if !words.is_empty() && words.iter().all(|word| lower.contains(word)) {
                found.push_str(&format!("{}:{}: {}\n", page.name, index + 1, line.trim()));
            }
        }
    }
    found
}

/// The page as the terminal or the pipe gets it.
fn shown(text: &str, process: &Process) -> String {
    let environment = &process.environment;
    if !environment.terminals().stdout {
        return text.to_owned();
    }
    let colour = environment.variable("NO_COLOR").is_none() && environment.text("TERM") != Some("dumb");
    let rows = markdown::rows(text, terminal::columns_of_stdout().min(WIDEST));
    rows.iter().map(|row| row.paint(colour).trim_end().to_owned() + "\n").collect()
}

/// Writes `fusee.1` and a page for each command, such as `fusee-run.1`.
fn man_pages(folder: &Path) -> Result<ExitStatus, CliError> {
    fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(cli::command(), folder)).map_err(
        |error| CliError::failed(format!("cannot write man pages to {}: {error}", folder.display())),
    )?;
    Ok(ExitStatus::Completed)
}
