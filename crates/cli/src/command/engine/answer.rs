//! `fusee answer`, and the questions of a run on an engine that is watched here.

use std::sync::Arc;

use clap::Args;
use fusee::engine::approval::{ApprovalAnswer, Approver, OutsideAnswer};
use fusee::engine::journal::{EventStream, RunId};
use fusee::engine::run::ExitStatus;
use fusee_restate::{QuestionList, RemoteQuestion, RemoteRun};
use serde_json::{Value, json};

use super::{OpenEngine, required};
use crate::config::flags::EngineFlags;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::ui::format;

/// Maximum number of characters of a question in a list.
const SHOWN: usize = 200;

/// State of a workflow that has ended.
const ENDED: &str = "completed";

/// Answer a question of a run on an engine, or list the open questions.
///
/// A run with an open question waits for an answer from any machine, for up to `approval_timeout_s`. The first answer
/// counts. Without `--allow`, `--deny` or `--text`, lists the open questions of the run, or of all unfinished runs.
#[derive(Args)]
pub(crate) struct AnswerArgs {
    /// Run id, or a unique prefix of it
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Id of the question, from the list [default: the oldest question that takes this kind of answer]
    #[arg(long, value_name = "ID", requires = "run")]
    question: Option<String>,
    /// Allow the call once
    #[arg(long, requires = "run", conflicts_with_all = ["deny", "text"])]
    allow: bool,
    /// Refuse the call, with a reason for the model
    #[arg(
        long, value_name = "REASON", num_args = 0..=1, default_missing_value = "", requires = "run",
        conflicts_with = "text"
    )]
    deny: Option<String>,
    /// Answer a question from the model or a workflow
    #[arg(long, value_name = "TEXT", requires = "run")]
    text: Option<String>,
    /// Print the list as JSON
    #[arg(long, conflicts_with_all = ["allow", "deny", "text"])]
    json: bool,
    #[command(flatten)]
    engine: EngineFlags,
}

impl AnswerArgs {
    fn answer(&self) -> Option<OutsideAnswer> {
        let refusal = |reason: &str| match reason {
            "" => "the user said no".to_owned(),
            reason => format!("the user said no: {reason}"),
        };
        match (&self.deny, &self.text) {
            (Some(reason), _) => Some(OutsideAnswer::Approval(ApprovalAnswer::no(refusal(reason)))),
            (None, Some(text)) => Some(OutsideAnswer::Text(text.clone())),
            (None, None) => self.allow.then(|| OutsideAnswer::Approval(ApprovalAnswer::yes())),
        }
    }
}

/// Runs the command.
pub(crate) async fn answer(args: &AnswerArgs, process: &Process) -> Result<ExitStatus, CliError> {
    required(&args.engine)?;
    let Some(engine) = OpenEngine::open(&args.engine, process).await? else { return Ok(ExitStatus::Usage) };
    let runs = match &args.run {
        Some(run) => vec![engine.named(Some(run)).await?],
        None => {
            let open = engine.engine.runs().await?.into_iter().filter(|listed| listed.status != ENDED);
            open.map(|listed| listed.run.parse().map_err(CliError::failed)).collect::<Result<_, _>>()?
        }
    };
    let mut open = Vec::new();
    for run in runs {
        let (run, journal, _copy) = engine.copy(Some(run.as_str())).await?;
        open.extend(
            QuestionList::read(&journal, &run)?.open().iter().map(|open| (run.clone(), open.clone())),
        );
    }
    if let Some(id) = &args.question {
        open.retain(|(_, open)| open.question.call_id == *id);
    }
    match args.answer() {
        Some(answer) => give(&engine, &open, &answer).await,
        None => list(&open, args.json),
    }
}

async fn give(
    engine: &OpenEngine,
    open: &[(RunId, RemoteQuestion)],
    answer: &OutsideAnswer,
) -> Result<ExitStatus, CliError> {
    let is_text = matches!(answer, OutsideAnswer::Text(_));
    let Some((run, question)) = open.iter().find(|(_, open)| open.is_text() == is_text) else {
        let error = CliError::failed("no such question is open: it may have been answered");
        return Err(match open.first() {
            Some((_, other)) if other.is_text() => {
                error.help("the open question is answered with --text TEXT")
            }
            Some(_) => error.help("the open question is answered with --allow or --deny"),
            None => error,
        });
    };
    if !engine.remote(run).answer(question, answer).await? {
        return Err(CliError::failed("this question was answered elsewhere first, or its time is over"));
    }
    stdio::error(&format!("answered: {}\n", line(question)));
    Ok(ExitStatus::Completed)
}

fn list(open: &[(RunId, RemoteQuestion)], as_json: bool) -> Result<ExitStatus, CliError> {
    if as_json {
        let row = |(run, open): &(RunId, RemoteQuestion)| {
            let asked = &open.question;
            json!({
                "run": run.as_str(), "question": asked.call_id, "task": open.task.as_str(), "name": asked.name,
                "arguments": asked.arguments, "reason": asked.reason,
            })
        };
        stdio::print_json(&format!("{:#}\n", Value::from(open.iter().map(row).collect::<Vec<_>>())))?;
        return Ok(ExitStatus::Completed);
    }
    if open.is_empty() {
        stdio::error("no question is open\n");
    }
    let text = open.iter().map(|(run, open)| format!("{run}  {}  {}\n", open.question.call_id, line(open)));
    stdio::print(&text.collect::<String>())?;
    Ok(ExitStatus::Completed)
}

/// A question on one line.
fn line(open: &RemoteQuestion) -> String {
    let asked = &open.question;
    if open.is_text() {
        return format::one_line(asked.arguments["question"].as_str().unwrap_or_default(), SHOWN);
    }
    let gist = format::summarize_arguments(&asked.name, &asked.arguments);
    format::one_line(format!("{} {gist}", asked.name).trim_end(), SHOWN)
}

/// Puts the questions of a run to the user of this terminal, or says how they can be answered.
pub(super) fn converse(remote: RemoteRun, events: EventStream, approver: Option<Arc<dyn Approver>>) {
    tokio::spawn(async move {
        let Some(approver) = approver else { return announce(&remote, events).await };
        if let Err(error) = remote.converse(events, approver).await {
            stdio::error(&format!("error: the answer did not reach the run: {error}\n"));
        }
    });
}

async fn announce(remote: &RemoteRun, mut events: EventStream) {
    let mut list = QuestionList::default();
    while let Ok(Some(event)) = events.next().await {
        let before = list.open().len();
        list.add(&event);
        if list.open().len() > before {
            stdio::error(&format!(
                "the run waits for an answer: `fusee answer {} --engine {}` lists its questions\n",
                remote.run,
                remote.engine.url()
            ));
        }
    }
}
