//! `fusee fmt`.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use fusee::engine::lang;
use fusee::engine::run::ExitStatus;
use fusee::engine::text::render::{self, Colour};
use fusee::engine::text::{Diagnostic, Source};
use fusee::engine::workflow::{MAX_BYTES, WorkflowLoader};

use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::source_files;

/// Format workflows.
///
/// Files are rewritten in place and keep their comments; a file that cannot be parsed is left unchanged and
/// its errors are reported. In a directory, all `.fusee` files that are not ignored are formatted. `-`
/// formats stdin to stdout.
#[derive(Args)]
pub(crate) struct FmtArgs {
    /// Workflow files, directories, or `-` [default: the current directory]
    #[arg(value_name = "FILES")]
    files: Vec<PathBuf>,
    /// Change nothing; list the files that would change, and exit with 1 if there are any
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub(crate) fn fmt(args: &FmtArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let here = process.environment.directory();
    if let [only] = args.files.as_slice()
        && only.as_os_str() == "-"
    {
        return stdin(args.check);
    }
    let given = if args.files.is_empty() { vec![PathBuf::from(".")] } else { args.files.clone() };
    let (mut changed, mut failed) = (Vec::new(), false);
    for file in source_files::files(here, &given, |file| file.extension().is_some_and(|end| end == "fusee")) {
        match one(&here.join(&file), &file, args.check) {
            Ok(true) => changed.push(file),
            Ok(false) => {}
            Err(text) => {
                failed = true;
                stdio::error(&text);
            }
        }
    }
    if args.check {
        let names: String = changed.iter().map(|file| format!("{}\n", file.display())).collect();
        stdio::print(&names)?;
    }
    Ok(if failed || (args.check && !changed.is_empty()) { ExitStatus::Failed } else { ExitStatus::Completed })
}

/// Formats one file; returns whether it changes, or its rendered errors.
fn one(path: &Path, name: &Path, check: bool) -> Result<bool, String> {
    let shown = name.display().to_string();
    let unreadable =
        |why: String| render_problems(&[Diagnostic::file_error("unreadable", shown.as_str(), why)], None);
    let text =
        WorkflowLoader::read(path).map_err(|why| unreadable(format!("cannot read this file: {why}")))?;
    let source = Source::new(shown.as_str(), text);
    let laid_out =
        lang::format(&source).map_err(|problems| render_problems(&problems.into_sorted(), Some(&source)))?;
    let differs = laid_out != source.text();
    if differs && !check {
        replace(path, &laid_out).map_err(|error| unreadable(format!("cannot write this file: {error}")))?;
    }
    Ok(differs)
}

/// Replaces a file atomically: a concurrent reader gets the old or the new text.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let path = path.canonicalize()?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = folder.join(format!(".{name}.fusee-fmt"));
    let written = (|| {
        let mut file = std::fs::File::create(&beside)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(std::fs::metadata(&path)?.permissions())?;
        std::fs::rename(&beside, &path)
    })();
    if written.is_err() {
        // It may not have been created.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

fn stdin(check: bool) -> Result<ExitStatus, CliError> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(MAX_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| CliError::failed(format!("cannot read the workflow from stdin: {error}")))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(CliError::failed(format!(
            "the workflow on stdin is larger than {} MiB",
            MAX_BYTES >> 20
        )));
    }
    let source = Source::new("<stdin>", text);
    match lang::format(&source) {
        Ok(laid_out) if check => {
            let differs = laid_out != source.text();
            stdio::print(if differs { "<stdin>\n" } else { "" })?;
            Ok(if differs { ExitStatus::Failed } else { ExitStatus::Completed })
        }
        Ok(laid_out) => stdio::print_exact(&laid_out).map(|()| ExitStatus::Completed),
        Err(problems) => {
            stdio::error(&render_problems(&problems.into_sorted(), Some(&source)));
            Ok(ExitStatus::Failed)
        }
    }
}

fn render_problems(problems: &[Diagnostic], source: Option<&Source>) -> String {
    render::terminal(problems, |_| source, Colour::Never)
}
