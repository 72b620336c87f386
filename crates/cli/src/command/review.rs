//! `fusee review`: the code reviewer, which is a run with the reviewer's prompt and shares its code with
//! `fusee run`.

use std::path::{Path, PathBuf};

use clap::{Args, Parser};
use fusee::engine::dispatch;
use fusee::engine::journal::event::TurnType;
use fusee::engine::review::{CodeReview, FindingSeverity, FindingsFormat};
use fusee::engine::run::{self, ExitStatus};

use super::run::RunArgs;
use super::unstarted_run::UnstartedRun;
use crate::config::flags::{
    ApprovalFlags, DetachFlag, DirectoryFlag, LimitFlags, ModelFlags, RunIdFlag, words,
};
use crate::process::Process;
use crate::process::error::CliError;
use crate::project::Project;
use crate::project::find_run;

/// Names of [`FindingSeverity`].
const SEVERITIES: [&str; 4] = ["info", "minor", "major", "critical"];

/// Review this project, some of its files, or recent changes.
///
/// The model reads and searches but changes nothing. It gets a digest of the project, and documents from
/// .fusee/reference that it can open. Its findings (file, line, severity, claim, suggestion) are checked
/// against the files: a finding about a line that does not exist is rejected. `fusee review --continue 'a
/// question'` continues the conversation.
#[derive(Args)]
pub(crate) struct ReviewArgs {
    #[command(flatten)]
    subject: ReviewScope,
    #[command(flatten)]
    directory: DirectoryFlag,
    /// Additional context for the review
    #[arg(long, value_name = "TEXT")]
    background: Option<String>,
    /// Output format of the findings
    #[arg(long, value_name = "FORMAT", value_parser = words::<FindingsFormat>(["text", "json", "sarif"]))]
    format: Option<FindingsFormat>,
    /// Exit with 5 if there is a finding of this severity or above
    #[arg(long, value_name = "SEVERITY", value_parser = words::<FindingSeverity>(SEVERITIES))]
    fail_on: Option<FindingSeverity>,
    /// Continue an earlier review [default: the newest finished one]; a value that names no run is a question
    #[arg(long = "continue", value_name = "RUN|QUESTION", num_args = 0..=1, default_missing_value = "")]
    continues: Option<String>,
    /// Print events as JSON Lines instead of the findings
    #[arg(long)]
    json: bool,
    /// Record the model's replies into a cassette, for `--model replay:FILE`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) background_run: DetachFlag,
    #[command(flatten)]
    name: RunIdFlag,
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    approval: ApprovalFlags,
    #[command(flatten)]
    limits: LimitFlags,
    #[cfg(feature = "restate")]
    #[command(flatten)]
    engine: crate::config::flags::NewRunEngineFlags,
}

/// The subject of a review. Also the arguments of `/review` in the chat.
#[derive(Args, Default)]
struct ReviewScope {
    /// Files and folders to review [default: the whole project]
    #[arg(value_name = "PATHS")]
    paths: Vec<PathBuf>,
    /// Review the changes since this revision
    #[arg(long, value_name = "REV")]
    base: Option<String>,
    /// Aspect to focus on, such as security or performance
    #[arg(long, value_name = "FOCUS")]
    focus: Option<String>,
    /// Ask this question instead of a review
    #[arg(long, value_name = "QUESTION")]
    ask: Option<String>,
    /// Folder with documents to review against; can be repeated
    #[arg(long, value_name = "DIR")]
    reference: Vec<PathBuf>,
}

/// The arguments of `/review`.
#[derive(Parser)]
#[command(name = "/review", no_binary_name = true, disable_help_flag = true)]
struct ReviewLine {
    #[command(flatten)]
    subject: ReviewScope,
}

impl ReviewScope {
    /// Applies the arguments on top of an earlier review's settings.
    fn over(self, mut review: CodeReview, project: &Project, here: &Path) -> Result<CodeReview, CliError> {
        if !self.paths.is_empty() {
            let paths = self.paths.iter().map(|path| inside(path, &project.directory));
            review.paths = paths.collect::<Result<_, _>>()?;
        }
        review.base = self.base.or(review.base);
        review.focus = self.focus.or(review.focus);
        review.references.extend(self.reference.iter().map(|folder| here.join(folder)));
        Ok(review)
    }
}

/// The review requested by a `/review` line, and its request.
pub(crate) fn of_line(
    line: &str,
    project: &Project,
    process: &Process,
) -> Result<(CodeReview, String), CliError> {
    let words = dispatch::split(line).map_err(|problem| CliError::usage(format!("/review: {problem}")))?;
    let ReviewLine { mut subject } = ReviewLine::try_parse_from(words)
        .map_err(|error| CliError::rendered(error.render().to_string().trim_end().to_owned()))?;
    let ask = subject.ask.take();
    let review = subject.over(CodeReview::default(), project, process.environment.directory())?;
    let request = ask.unwrap_or_else(|| review.request());
    Ok((review, request))
}

/// Runs the command. With `--json`, the events of a review are printed even if it could not start.
pub(crate) async fn review(args: ReviewArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let unstarted = args.json.then(|| UnstartedRun {
        benchmark_try: None,
        id: args.name.run_id.clone(),
        request: args.subject.ask.clone().unwrap_or_else(|| CodeReview::default().request()),
        model: args.model.model.clone().unwrap_or_default(),
        turn_type: TurnType::Review,
    });
    super::run::report_if_unstarted(unstarted, perform(args, process).await)
}

async fn perform(args: ReviewArgs, process: &Process) -> Result<ExitStatus, CliError> {
    let project = Project::find(args.directory.directory.as_deref(), &process.environment)?;
    let (earlier, question) = earlier(args.continues.as_deref(), &project)?;
    let before = match &earlier {
        Some(name) => settings_of(name, &project)?,
        None => CodeReview::default(),
    };
    let mut subject = args.subject;
    let ask = subject.ask.take();
    let mut review = subject.over(before, &project, process.environment.directory())?;
    // Readers of events expect JSON findings.
    let usual = if args.json { FindingsFormat::Json } else { FindingsFormat::Text };
    review.format = args.format.unwrap_or(usual);
    review.fail_on = args.fail_on;
    let request = ask.or(question).unwrap_or_else(|| review.request());
    let args = RunArgs {
        request: Some(request),
        directory: args.directory,
        background: args.background,
        continues: earlier,
        json: args.json,
        record: args.record,
        background_run: args.background_run,
        name: args.name,
        model: args.model,
        approval: args.approval,
        limits: args.limits,
        #[cfg(feature = "restate")]
        engine: args.engine,
        ..RunArgs::default()
    };
    super::run::review(args, review, process).await
}

/// The run to continue, and the question if the value of `--continue` is one.
fn earlier(continued: Option<&str>, project: &Project) -> Result<(Option<String>, Option<String>), CliError> {
    let Some(word) = continued else { return Ok((None, None)) };
    let journal = project.journal_with_runs()?;
    project.check_owner()?;
    if !word.is_empty()
        && let Ok(row) = find_run::named(&journal, word)
    {
        return Ok((Some(row.id.to_string()), None));
    }
    let is_review = |settings: &run::RunSpec| settings.code_review.is_some();
    let row = find_run::newest_ended(&journal, &project.directory, is_review)?;
    Ok((Some(row.id.to_string()), (!word.is_empty()).then(|| word.to_owned())))
}

/// The review settings of an earlier run.
fn settings_of(name: &str, project: &Project) -> Result<CodeReview, CliError> {
    let journal = project.journal_with_runs()?;
    let row = find_run::named(&journal, name)?;
    Ok(run::settings_of(&journal, &row.id)?.code_review.unwrap_or_default())
}

/// A path relative to the project.
fn inside(path: &Path, directory: &Path) -> Result<String, CliError> {
    let whole = directory.join(path);
    let real = whole
        .canonicalize()
        .map_err(|error| CliError::usage(format!("cannot review {}: {error}", whole.display())))?;
    let within = real.strip_prefix(directory).map_err(|_| {
        CliError::usage(format!("{} is not in {}", path.display(), directory.display()))
            .help("select the project with -C and give paths relative to it")
    })?;
    let text = within
        .to_str()
        .ok_or_else(|| CliError::usage(format!("the path {} is not valid UTF-8", path.display())))?;
    Ok(if text.is_empty() { ".".to_owned() } else { text.to_owned() })
}
