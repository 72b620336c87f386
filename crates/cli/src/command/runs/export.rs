//! `fusee runs export`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use fusee::engine::journal::{Journal, RunRow, StepRow};
use fusee::engine::run::{self, ExitStatus};
use serde_json::{Value, json};

use super::super::run_export::cassette;
use super::as_json;
use crate::config::flags::{DirectoryFlag, RunArg};
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::find_run;
use crate::ui::event_pages;

/// Export a run to a file.
///
/// Writes JSON Lines: the run, its steps, its events, one object per line under `run`, `step` or `event`.
/// With --cassette, writes only the model's replies, for use with `--model replay:FILE`, which turns a run
/// into a test. With --otlp, sends the run as a trace to the endpoint in OTEL_EXPORTER_OTLP_ENDPOINT.
#[derive(Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    run: RunArg,
    /// Write a cassette instead
    #[arg(long)]
    cassette: bool,
    /// Send a trace to the OpenTelemetry endpoint instead
    #[cfg(feature = "telemetry")]
    #[arg(long, conflicts_with_all = ["cassette", "output"])]
    otlp: bool,
    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    directory: DirectoryFlag,
}

/// Runs the command.
pub(crate) fn export(args: &ExportArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let journal = project.journal_with_runs()?;
    let row = find_run::named_or_newest(&journal, args.run.run.as_deref())?;
    let mut lines =
        LineOutput::open(args.output.as_ref().map(|path| process.environment.directory().join(path)))?;
    if args.cassette {
        let settings = run::settings_of(&journal, &row.id)?;
        for line in cassette::lines(&settings, &journal.steps(&row.id)?)? {
            lines.add(&line)?;
        }
    } else {
        whole(&journal, &row, &mut lines)?;
    }
    lines.end()?;
    Ok(ExitStatus::Completed)
}

#[cfg(feature = "telemetry")]
impl ExportArgs {
    pub(super) fn is_otlp(&self) -> bool {
        self.otlp
    }
}

/// Sends a run as a trace.
#[cfg(feature = "telemetry")]
pub(crate) async fn export_otlp(args: &ExportArgs, process: &Process) -> Result<ExitStatus, CliError> {
    use crate::config::Config;
    use crate::process::telemetry;
    use fusee_telemetry::{Exporter, RunTrace, TraceContext};

    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let journal = project.journal_with_runs()?;
    let row = find_run::named_or_newest(&journal, args.run.run.as_deref())?;
    let config = Config::gather(Some(&project.config_file()), &process.environment, Vec::new())?;
    let settings =
        telemetry::settings(&process.environment, config.text("otlp_endpoint")).ok_or_else(|| {
            CliError::usage("no OpenTelemetry endpoint is set").help(
                "set OTEL_EXPORTER_OTLP_ENDPOINT or the key otlp_endpoint, such as http://127.0.0.1:4318",
            )
        })?;
    let traced = telemetry::traced(&row.id, &run::settings_of(&journal, &row.id)?);
    let context = settings.context.unwrap_or_else(|| TraceContext::of_run(row.id.as_str()));
    let mut trace = RunTrace::new(traced, context, settings.content);
    let spans = trace.read(&journal, &row.id)?;
    Exporter::send(&settings, &spans).await.map_err(|error| CliError::failed(error.to_string()))?;
    stdio::error(&format!("sent {} spans of run {} to {}\n", spans.len(), row.id, settings.traces));
    Ok(ExitStatus::Completed)
}

fn whole(journal: &Journal, row: &RunRow, lines: &mut LineOutput) -> Result<(), CliError> {
    let report = journal.report(row)?;
    lines.add(&json!({ "run": as_json(row, report.and_then(|report| report.verified)) }))?;
    for step in journal.steps(&row.id)? {
        lines.add(&json!({ "step": step_as_json(&step) }))?;
    }
    event_pages::for_each_event(journal, &row.id, |event| lines.add(&json!({ "event": event })))
}

fn step_as_json(step: &StepRow) -> Value {
    json!({
        "branch": step.key.branch,
        "n": step.key.n,
        "kind": step.kind,
        "callee": step.callee,
        "args": step.args,
        "intent": step.intent,
        "result": step.result,
        "at_ms": step.at_ms,
        "duration_ms": step.duration_ms,
    })
}

/// An output and its name for error messages.
struct LineOutput {
    out: Box<dyn Write>,
    name: String,
    /// Whether the reader closed the pipe; the rest is dropped, which is not an error.
    gone: bool,
}

impl LineOutput {
    fn open(path: Option<PathBuf>) -> Result<Self, CliError> {
        let (out, name): (Box<dyn Write>, String) = match path {
            None => (Box::new(io::stdout()), "stdout".to_owned()),
            Some(path) => {
                let name = path.display().to_string();
                let file = File::create(&path)
                    .map_err(|error| CliError::usage(format!("cannot write {name}: {error}")))?;
                (Box::new(file), name)
            }
        };
        Ok(Self { out: Box::new(BufWriter::new(out)), name, gone: false })
    }

    fn add(&mut self, line: &Value) -> Result<(), CliError> {
        if self.gone {
            return Ok(());
        }
        // The same JSON, but a terminal does not act on it.
        let written = writeln!(self.out, "{}", stdio::escaped_json(&line.to_string()));
        self.written(written)
    }

    fn end(&mut self) -> Result<(), CliError> {
        let flushed = if self.gone { Ok(()) } else { self.out.flush() };
        self.written(flushed)
    }

    fn written(&mut self, result: io::Result<()>) -> Result<(), CliError> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.gone = true;
                Ok(())
            }
            Err(error) => Err(CliError::failed(format!("cannot write {}: {error}", self.name))),
            Ok(()) => Ok(()),
        }
    }
}
