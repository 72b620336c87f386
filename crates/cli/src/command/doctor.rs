//! `fusee doctor`: what works here, and how to fix the rest. Each group of checks is in its own file.

mod journal;
mod models;
mod probe;
mod profile;
mod programs;
pub(crate) mod sandbox;

use clap::Args;
use fusee::engine::run::ExitStatus;
use serde::Serialize;

use crate::config::flags::DirectoryFlag;
use crate::config::{Config, Value};
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::ui::line::{Style, StyledLine};
use crate::ui::{UiOptions, colour};

#[cfg(test)]
mod tests;

/// Check what works here and how to fix the rest.
///
/// Checks every source of models and asks the free ones for one reply (not with --quick), the sandbox support
/// of the system, the journal, and the programs that tasks need. Exits with 0 if a task could run here,
/// otherwise with 1.
///
/// With MODEL, tests that model instead: a tool call, a whole file in a fenced block, a constrained reply and a
/// long reply. Shows the resulting profile; --write adds it to your profiles.toml.
#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// Test this model and show its profile
    #[arg(value_name = "MODEL")]
    model: Option<String>,
    /// Base URL of the model's server
    #[arg(long, value_name = "URL", requires = "model")]
    base_url: Option<String>,
    /// Write the profile to profiles.toml in your configuration folder
    #[arg(long, requires = "model")]
    write: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// Do not request a reply from any model
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    directory: DirectoryFlag,
}

/// Names wider than this do not move the column of the details.
const WIDEST_NAME: usize = 28;

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckState {
    /// Present and working.
    Ready,
    /// Not available.
    Absent,
    /// Present but not working.
    Broken,
}

/// One checked item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DoctorCheck {
    pub(crate) name: String,
    pub(crate) state: CheckState,
    pub(crate) detail: String,
}

impl DoctorCheck {
    pub(crate) fn new(name: &str, state: CheckState, detail: impl Into<String>) -> Self {
        Self { name: name.to_owned(), state, detail: detail.into() }
    }
}

/// All results.
#[derive(Debug, Serialize)]
struct DoctorReport {
    /// Whether a task could run.
    ok: bool,
    models: Vec<DoctorCheck>,
    sandbox: Vec<DoctorCheck>,
    journal: Vec<DoctorCheck>,
    programs: Vec<DoctorCheck>,
    /// Suggested next steps.
    next: Vec<String>,
}

/// Runs the command.
pub(crate) async fn doctor(args: &DoctorArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let environment = &process.environment;
    let project = Project::find(args.directory.directory.as_deref(), environment)?;
    let base_url = args.base_url.clone().map(|url| ("base_url", Value::Text(url)));
    let config = Config::gather(Some(&project.config_file()), environment, base_url.into_iter().collect())?;
    let show = UiOptions::new(args.json, &config, environment);
    show.warn(&config);
    if let Some(model) = &args.model {
        return test_model(model, args, &config, process).await;
    }
    let report = DoctorReport::new(
        models::check(&config, environment, args.quick).await,
        sandbox::check(process).await,
        journal::check(&project),
        programs::check(environment),
    );
    if args.json {
        let value = serde_json::to_value(&report).unwrap_or_default();
        stdio::print_json(&format!("{value:#}\n"))?;
    } else {
        let colour = colour(&config, environment, environment.terminals().stdout);
        let painted = report.lines().into_iter().map(|line| line.paint(colour).trim_end().to_owned() + "\n");
        stdio::print_styled(&painted.collect::<String>())?;
    }
    Ok(if report.ok { ExitStatus::Completed } else { ExitStatus::Failed })
}

/// Tests one model and shows its profile.
async fn test_model(
    model: &str,
    args: &DoctorArgs,
    config: &Config,
    process: &Process,
) -> Result<ExitStatus, CliError> {
    let environment = &process.environment;
    let mut report = profile::test(model, config, environment).await?;
    let works = !report.profile.is_empty();
    if works && args.write {
        report.written = Some(profile::write(&report, environment)?);
    }
    if args.json {
        let value = serde_json::to_value(&report).unwrap_or_default();
        stdio::print_json(&format!("{value:#}\n"))?;
    } else {
        let colour = colour(config, environment, environment.terminals().stdout);
        let width = report.checks.iter().map(DoctorCheck::name_width).max().unwrap_or_default();
        let mut lines = vec![StyledLine::styled(Style::Bold, &report.model)];
        lines.extend(report.checks.iter().flat_map(|check| check.lines(width)));
        lines.push(StyledLine::new());
        lines.extend(report.profile.lines().map(|line| StyledLine::styled(Style::Plain, line)));
        lines.extend(match &report.written {
            Some(file) => Some(StyledLine::styled(Style::Good, &format!("written to {file}"))),
            None if works => Some(StyledLine::styled(Style::Dim, "save this profile with --write")),
            None => None,
        });
        let painted = lines.into_iter().map(|line| line.paint(colour).trim_end().to_owned() + "\n");
        stdio::print_styled(&painted.collect::<String>())?;
    }
    Ok(if works { ExitStatus::Completed } else { ExitStatus::Failed })
}

impl DoctorReport {
    fn new(
        models: models::ModelChecks,
        sandbox: Vec<DoctorCheck>,
        journal: Vec<DoctorCheck>,
        programs: Vec<DoctorCheck>,
    ) -> Self {
        let mut next = models.next;
        let fit =
            |findings: &[DoctorCheck]| findings.iter().all(|finding| finding.state != CheckState::Broken);
        for broken in journal.iter().chain(&programs).filter(|finding| finding.state == CheckState::Broken) {
            next.push(format!("{}: {}", broken.name, broken.detail));
        }
        let ok = models.usable && fit(&journal) && fit(&programs);
        Self { ok, models: models.findings, sandbox, journal, programs, next }
    }

    fn lines(&self) -> Vec<StyledLine> {
        let parts = [
            ("models", &self.models),
            ("sandbox", &self.sandbox),
            ("journal", &self.journal),
            ("programs", &self.programs),
        ];
        let names = parts.iter().flat_map(|(_, findings)| findings.iter().map(DoctorCheck::name_width));
        let width = names.filter(|width| *width <= WIDEST_NAME).max().unwrap_or_default();
        let mut lines = Vec::new();
        for (title, findings) in parts {
            lines.push(StyledLine::styled(Style::Bold, title));
            lines.extend(findings.iter().flat_map(|finding| finding.lines(width)));
            lines.push(StyledLine::new());
        }
        let (style, verdict) = match self.ok {
            true => (Style::Good, "a task can run here"),
            false => (Style::Bad, "no task can run here yet"),
        };
        lines.push(StyledLine::styled(style, verdict));
        lines.extend(self.next.iter().map(|step| StyledLine::styled(Style::Plain, &format!("  {step}"))));
        lines
    }
}

impl DoctorCheck {
    fn name_width(&self) -> usize {
        StyledLine::styled(Style::Plain, &self.name).width()
    }

    /// The name, padded to `width` columns, and the detail; after a longer name, the detail has its own line in the same
    /// column.
    fn lines(&self, width: usize) -> Vec<StyledLine> {
        let (mark, style) = match self.state {
            CheckState::Ready => ("ok", Style::Good),
            CheckState::Absent => ("no", Style::Dim),
            CheckState::Broken => ("!!", Style::Bad),
        };
        let detail = if self.state == CheckState::Absent { Style::Dim } else { Style::Plain };
        let name = StyledLine::styled(style, &format!("  {mark} ")).and(Style::Plain, &self.name);
        match width.checked_sub(self.name_width()) {
            Some(missing) => vec![name.and(Style::Plain, &" ".repeat(missing + 2)).and(detail, &self.detail)],
            None => {
                vec![name, StyledLine::styled(Style::Plain, &" ".repeat(width + 7)).and(detail, &self.detail)]
            }
        }
    }
}
