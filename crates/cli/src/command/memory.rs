//! `fusee memory`: the file index, and queries on it.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use fusee::engine::memory::{FileEntry, MemoryQuery, MemorySystem};
use fusee::engine::run::ExitStatus;
use fusee::engine::task_system::file_reader;
use fusee::engine::tools::Workspace;

use crate::config::flags::DirectoryFlag;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::ui::format;

/// Index the files of this project and search the index.
///
/// The index holds no file contents, only paths, languages, sizes, definitions and a summary from the start
/// of each file. It is stored beside the journal and updated incrementally. Ignore files are respected.
#[derive(Args)]
pub(crate) struct MemoryArgs {
    #[command(subcommand)]
    command: MemoryCommand,
}

#[derive(Subcommand)]
enum MemoryCommand {
    /// Update the index
    Index(IndexArgs),
    /// Find files by words
    Query(QueryArgs),
    /// Show the index entry of a file, or of all files
    Show(ShowArgs),
}

#[derive(Args)]
struct IndexArgs {
    #[command(flatten)]
    directory: DirectoryFlag,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct QueryArgs {
    /// Words to search for; a complete path among them always matches
    #[arg(value_name = "WORDS", required = true)]
    words: Vec<String>,
    #[command(flatten)]
    directory: DirectoryFlag,
    /// Maximum number of files to list
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct ShowArgs {
    /// Path of the file, relative to this directory
    path: Option<String>,
    #[command(flatten)]
    directory: DirectoryFlag,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn memory(args: &MemoryArgs, process: &Process) -> Result<ExitStatus, CliError> {
    match &args.command {
        MemoryCommand::Index(args) => index(args, process),
        MemoryCommand::Query(args) => query(args, process),
        MemoryCommand::Show(args) => show(args, process),
    }
}

fn open(directory: &DirectoryFlag, process: &Process) -> Result<MemorySystem, CliError> {
    let project = Project::find(directory.directory.as_deref(), &process.environment)?;
    // Index the whole project, from whatever subdirectory.
    let workspace = Workspace::open(project.home()).map_err(|error| CliError::usage(error.to_string()))?;
    Ok(file_reader::memory(&Arc::new(workspace), Some(project.memory_file(project.home()))))
}

fn index(args: &IndexArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let updated = open(&args.directory, process)?.update().map_err(CliError::failed)?;
    if updated.cut {
        stdio::error(
            "warning: too many files, so some are not indexed; exclude unimportant ones in .ignore\n",
        );
    }
    let text = if args.json {
        serde_json::to_string(&updated).unwrap_or_default()
    } else {
        let files = format::count(updated.files as u64, "file");
        format!("{files}, {} read, {} removed", updated.read, updated.removed)
    };
    stdio::print_as(args.json, &format!("{text}\n"))?;
    Ok(ExitStatus::Completed)
}

fn query(args: &QueryArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let query = MemoryQuery { words: args.words.join(" "), limit: args.limit };
    let answer = open(&args.directory, process)?.relevant_context_for(&query).map_err(CliError::failed)?;
    if args.json {
        stdio::print_json(&format!("{}\n", serde_json::to_string(&answer).unwrap_or_default()))?;
    } else if answer.matches.is_empty() {
        stdio::error("no matching file\n");
    } else {
        let lines = answer
            .matches
            .iter()
            .map(|found| format!("{:.3}  {}  {}\n", found.score, found.path, found.reason));
        stdio::print(&lines.collect::<String>())?;
    }
    Ok(ExitStatus::Completed)
}

fn show(args: &ShowArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let memory = open(&args.directory, process)?;
    memory.update().map_err(CliError::failed)?;
    let entries = match &args.path {
        None => memory.global_index().map_err(CliError::failed)?,
        Some(path) => match memory
            .entry(&known_as(path, &project.directory, project.home()))
            .map_err(CliError::failed)?
        {
            Some(entry) => vec![entry],
            None => {
                return Err(CliError::usage(format!("`{path}` is not indexed"))
                    .help("pass a complete path; ignored files are not indexed"));
            }
        },
    };
    let text = match (args.json, &args.path) {
        (true, None) => format!("{}\n", serde_json::to_string(&entries).unwrap_or_default()),
        (true, Some(_)) => format!("{}\n", serde_json::to_string(&entries.first()).unwrap_or_default()),
        (false, _) => entries.iter().map(line).collect(),
    };
    stdio::print_as(args.json, &text)?;
    Ok(ExitStatus::Completed)
}

/// A path as it appears in the index: relative to the project, without `.` and `..`.
fn known_as(given: &str, directory: &Path, home: &Path) -> String {
    let mut whole = PathBuf::new();
    for part in directory.join(given).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                whole.pop();
            }
            part => whole.push(part),
        }
    }
    // A directory reached through a symbolic link has two absolute paths.
    let real = || fs::canonicalize(&whole).ok()?.strip_prefix(home).map(Path::to_owned).ok();
    let inside = whole.strip_prefix(home).map(Path::to_owned).ok().or_else(real);
    inside.map_or_else(|| given.to_owned(), |path| path.to_string_lossy().into_owned())
}

fn line(entry: &FileEntry) -> String {
    let symbols: Vec<&str> = entry.symbols.iter().take(8).map(String::as_str).collect();
    let more = if entry.symbols.len() > symbols.len() { " …" } else { "" };
    format!(
        "{}  {}  {} bytes  {}  [{}{more}]\n",
        entry.path,
        entry.language,
        entry.size,
        entry.summary,
        symbols.join(" ")
    )
}
