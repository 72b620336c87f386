//! `fusee review`: the code reviewer. It is a run with the reviewer's prompt, by the same road as `fusee run`.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, ValueEnum};
use fusee_engine::dispatch;
use fusee_engine::review::{CodeReview, Format, Severity};
use fusee_engine::run::{self, Exit};

use super::Process;
use super::run::RunArgs;
use crate::arguments::shared::{GateFlags, LimitFlags, ModelFlags, NewRun, Place};
use crate::failure::Failure;
use crate::project::Project;
use crate::selection;

/// Have a model review this project, some files of it, or what changed.
///
/// The model reads and searches, and changes nothing. It is shown a digest of the project, and documents from
/// .fusee/reference that it can open. Its findings (file, line, severity, claim, suggestion) are held to the files: one
/// about a line that does not exist is not accepted. `fusee review --continue 'a question'` goes on with the
/// conversation.
#[derive(Args)]
pub(crate) struct ReviewArgs {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    place: Place,
    /// What is good to know for it
    #[arg(long, value_name = "TEXT")]
    background: Option<String>,
    /// How to write the findings
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<FormatWord>,
    /// Exit with 1 if there is a finding of this severity or above
    #[arg(long, value_enum, value_name = "SEVERITY")]
    fail_on: Option<SeverityWord>,
    /// Go on with an earlier review: the newest that has ended here, or the one named; anything else is a question
    #[arg(long = "continue", value_name = "RUN|QUESTION", num_args = 0..=1, default_missing_value = "")]
    continues: Option<String>,
    /// Print events as JSON Lines instead of the findings
    #[arg(long)]
    json: bool,
    /// Record the model's replies into a cassette, for `--model replay:FILE`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    name: NewRun,
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    gates: GateFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

/// What is reviewed. The same after `/review` in the conversation.
#[derive(Args, Default)]
struct Subject {
    /// Files and folders to look at; the whole project if none is given
    #[arg(value_name = "PATHS")]
    paths: Vec<PathBuf>,
    /// Review what changed since this revision
    #[arg(long, value_name = "REV")]
    base: Option<String>,
    /// What to look for above all: security, performance, …
    #[arg(long, value_name = "FOCUS")]
    focus: Option<String>,
    /// Ask this instead of a review
    #[arg(long, value_name = "QUESTION")]
    ask: Option<String>,
    /// A folder with documents to review against; may be given several times
    #[arg(long, value_name = "DIR")]
    reference: Vec<PathBuf>,
}

/// What stands after `/review`.
#[derive(Parser)]
#[command(name = "/review", no_binary_name = true, disable_help_flag = true)]
struct Line {
    #[command(flatten)]
    subject: Subject,
}

impl Subject {
    /// What the reviewer is told to look at, over what it looked at before.
    fn over(self, mut review: CodeReview, project: &Project, here: &Path) -> Result<CodeReview, Failure> {
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

/// The review that a line after `/review` asks for, and its request.
pub(crate) fn of_line(
    line: &str,
    project: &Project,
    process: &Process,
) -> Result<(CodeReview, String), Failure> {
    let words = dispatch::split(line).map_err(|problem| Failure::usage(format!("/review: {problem}")))?;
    let Line { mut subject } = Line::try_parse_from(words)
        .map_err(|error| Failure::rendered(error.render().to_string().trim_end().to_owned()))?;
    let ask = subject.ask.take();
    let review = subject.over(CodeReview::default(), project, process.environment.directory())?;
    let request = ask.unwrap_or_else(|| review.request());
    Ok((review, request))
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatWord {
    Text,
    Json,
    Sarif,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SeverityWord {
    Info,
    Minor,
    Major,
    Critical,
}

/// Reviews.
pub(crate) async fn review(args: ReviewArgs, process: &Process) -> Result<Exit, Failure> {
    let project = Project::find(args.place.directory.as_deref(), &process.environment)?;
    let (earlier, question) = earlier(args.continues.as_deref(), &project)?;
    let before = match &earlier {
        Some(name) => settings_of(name, &project)?,
        None => CodeReview::default(),
    };
    let mut subject = args.subject;
    let ask = subject.ask.take();
    let mut review = subject.over(before, &project, process.environment.directory())?;
    review.format = match args.format {
        Some(FormatWord::Text) => Format::Text,
        Some(FormatWord::Sarif) => Format::Sarif,
        Some(FormatWord::Json) => Format::Json,
        // Who reads the events reads JSON.
        None if args.json => Format::Json,
        None => Format::Text,
    };
    review.fail_on = args.fail_on.map(severity);
    let request = ask.or(question).unwrap_or_else(|| review.request());
    let args = RunArgs {
        request: Some(request),
        place: args.place,
        background: args.background,
        continues: earlier,
        json: args.json,
        record: args.record,
        name: args.name,
        model: args.model,
        gates: args.gates,
        limits: args.limits,
        ..RunArgs::default()
    };
    super::run::run_as(args, Some(review), process).await
}

/// The run to continue, and the question if that is what stands after `--continue`.
fn earlier(continued: Option<&str>, project: &Project) -> Result<(Option<String>, Option<String>), Failure> {
    let Some(word) = continued else { return Ok((None, None)) };
    let journal = project.journal_with_runs()?;
    if !word.is_empty()
        && let Ok(row) = selection::named(&journal, word)
    {
        return Ok((Some(row.id.to_string()), None));
    }
    let is_review = |settings: &run::Settings| settings.code_review.is_some();
    let row = selection::newest_ended(&journal, &project.directory, is_review)?;
    Ok((Some(row.id.to_string()), (!word.is_empty()).then(|| word.to_owned())))
}

/// What the earlier run reviewed.
fn settings_of(name: &str, project: &Project) -> Result<CodeReview, Failure> {
    let journal = project.journal_with_runs()?;
    let row = selection::named(&journal, name)?;
    Ok(run::settings_of(&journal, &row.id)?.code_review.unwrap_or_default())
}

/// A path as it stands in the project.
fn inside(path: &Path, directory: &Path) -> Result<String, Failure> {
    let whole = directory.join(path);
    let real = whole
        .canonicalize()
        .map_err(|error| Failure::usage(format!("{} cannot be reviewed: {error}", whole.display())))?;
    let within = real.strip_prefix(directory).map_err(|_| {
        Failure::usage(format!("{} is not in {}", path.display(), directory.display()))
            .help("name the project with -C, and paths from there")
    })?;
    let text = within
        .to_str()
        .ok_or_else(|| Failure::usage(format!("{} has a name that is not text", path.display())))?;
    Ok(if text.is_empty() { ".".to_owned() } else { text.to_owned() })
}

fn severity(word: SeverityWord) -> Severity {
    match word {
        SeverityWord::Info => Severity::Info,
        SeverityWord::Minor => Severity::Minor,
        SeverityWord::Major => Severity::Major,
        SeverityWord::Critical => Severity::Critical,
    }
}
