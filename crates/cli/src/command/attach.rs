//! `fusee attach`: watches a run of another process through its journal. `console` answers its questions and sends it
//! messages.

mod console;
mod renderer;

use std::collections::VecDeque;
use std::sync::Arc;

use clap::Args;
use fusee::engine::journal::{EventRecord, EventTail, Journal, JournalError, RunId, RunRow, RunStatus};
use fusee::engine::run::{self, ExitStatus};
use tokio::signal::unix::{SignalKind, signal};

use self::console::Console;
use self::renderer::{AttachRenderer, AttachedRun};
use super::resume::finished_run;
use crate::config::Config;
use crate::config::flags::DirectoryFlag;
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::project::Project;
use crate::project::find_run;
use crate::project::saved_rules::SavedRules;
use crate::ui::activity::RunActivity;
use crate::ui::notifier::NotificationUi;
use crate::ui::{self, EventSource, JsonLines, PlainUi, RunHeader, Ui, UiOptions, event_pages, format};

/// Watch a run of another process, answer its questions and send it messages.
///
/// Shows what the run has done so far in one line, then its events as they are recorded, and ends with its exit code.
/// Several terminals can watch a run. A question is answered once: the first answer counts, and later ones are rejected.
///
/// At a terminal, a line answers the oldest open question. If there is none, it is a message to the model: the turn
/// stops, and the model continues with the message. `/stop` stops the turn, `/cancel` ends the run. ctrl-c, ctrl-d and
/// `/detach` detach; the run continues. From a pipe, each line answers one question, in order.
#[cfg_attr(feature = "restate", doc = "")]
#[cfg_attr(
    feature = "restate",
    doc = "With --engine, all events of the run are shown from its beginning, at a terminal its questions can be answered, and ctrl-c cancels the run."
)]
#[derive(Args)]
pub(crate) struct AttachArgs {
    /// Run id, a unique prefix of it, `last` or `last~N` [default: the newest active run]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Print all events as JSON Lines, starting with past ones
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    directory: DirectoryFlag,
    #[cfg(feature = "restate")]
    #[command(flatten)]
    engine: crate::config::flags::EngineFlags,
}

/// Runs the command.
pub(crate) async fn attach(args: AttachArgs, process: &Process) -> Result<ExitStatus, CliError> {
    #[cfg(feature = "restate")]
    if args.engine.engine.is_some() {
        return super::engine::attach::follow(&args.engine, args.run.as_deref(), args.json, process).await;
    }
    let environment = &process.environment;
    let project = Project::find(args.directory.directory.as_deref(), environment)?;
    let journal = project.journal_with_runs()?;
    project.check_owner()?;
    let row = match &args.run {
        Some(name) => find_run::named(&journal, name)?,
        None => find_run::newest_worked_on(&journal)?,
    };
    let config = Config::gather(Some(&project.config_file()), environment, Vec::new())?;
    let settings = run::settings_of(&journal, &row.id)?;
    if row.status != RunStatus::Open {
        let ui_options = UiOptions::new(args.json, &config, environment);
        return Box::pin(finished_run::repeat(&journal, &row.id, settings, &ui_options, false)).await;
    }
    if !journal.is_active(&row.id) {
        return Err(interrupted(&row.id));
    }
    drop(journal);
    // Answers and messages are written.
    let open = || project.open_journal(config.journal());
    let journal = process.journals.get_or_open(&project.journal, open)?;
    let header = RunHeader::from_spec(&settings);
    if args.json {
        let events = EventTail::new(journal.clone(), row.id.clone(), 0);
        let watching = ui::watch(Box::new(JsonLines::new(std::io::stdout())), events)?;
        watching.ended().await?;
        return end_of(&journal, &row.id).await;
    }
    let approvals = SavedRules::new(&project, environment);
    let is_terminal = environment.terminals().stdin;
    let attached = AttachedRun::new(row.id.clone(), settings.workspace.clone(), is_terminal);
    let (past, events) = begin(&journal, &row, &attached)?;
    let mut ui = PlainUi::new(stdio::ExactStdout, std::io::BufWriter::new(std::io::stderr()), header);
    past.iter().for_each(|event| ui.note_rendered(event));
    let ui_options = UiOptions::new(false, &config, environment);
    // The process of the run runs the command itself.
    let notifications = NotificationUi::new(ui_options.notifier(&config).without_command());
    let ui = AttachRenderer { ui, notifications, attached: attached.clone() };
    let mut watching = ui::watch(Box::new(ui), events)?;
    let mut console = Console::listen(attached, journal.clone(), approvals)?;
    let mut interrupt = signal(SignalKind::interrupt())
        .map_err(|error| CliError::failed(format!("cannot listen for signals: {error}")))?;
    let ended = tokio::select! {
        ended = watching.until_ended() => Some(ended),
        () = console.converse() => None,
        _ = interrupt.recv() => None,
    };
    let Some(ended) = ended else {
        watching.stop().await;
        return Ok(left(&row.id));
    };
    ended?;
    end_of(&journal, &row.id).await
}

/// Says that the run continues without this terminal.
fn left(run: &RunId) -> ExitStatus {
    stdio::error(&format!(
        "\ndetached; the run continues: `fusee attach {run}` returns to it, `fusee cancel {run}` ends it\n"
    ));
    ExitStatus::Cancelled
}

fn interrupted(run: &RunId) -> CliError {
    CliError::failed(format!("run {run} is no longer active")).help(format!(
        "run `fusee resume {run}` to continue it, `fusee resume --detach {run}` in the background"
    ))
}

/// The exit code of a run after its last event.
async fn end_of(journal: &Journal, run: &RunId) -> Result<ExitStatus, CliError> {
    match journal.run(run.as_str())?.status {
        RunStatus::Open => Err(interrupted(run)),
        _ => finished_run::exit_of(journal, run).await,
    }
}

/// Sums up what has happened so far. Returns the events that a summary at the end needs, and the events to show: the
/// start, the open questions, and what comes from now on.
fn begin(
    journal: &Journal,
    row: &RunRow,
    attached: &AttachedRun,
) -> Result<(Vec<EventRecord>, AttachedEvents), CliError> {
    use fusee::engine::journal::event::Event;
    let (mut activity, mut start, mut past) = (RunActivity::default(), None, Vec::new());
    event_pages::for_each_event(journal, &row.id, |event| {
        activity.add(&event);
        match &event.event {
            Event::TaskStarted(_) if start.is_none() => start = Some(Arc::new(event)),
            Event::FileChanged { .. } => past.push(event),
            _ => {}
        }
        Ok(())
    })?;
    let tail = EventTail::new(journal.clone(), row.id.clone(), activity.seq);
    let mut first: VecDeque<Arc<EventRecord>> = start.into_iter().collect();
    if activity.turns + activity.calls > 0 {
        let (turns, calls) =
            (format::count(activity.turns, "turn"), format::count(activity.calls, "tool call"));
        let doing = activity.describe();
        let now = if doing.is_empty() { String::new() } else { format!("; now: {doing}") };
        attached.set_summary(format!("so far: {turns}, {calls}{now}"));
    }
    first.extend(activity.questions.into_iter().map(|open| Arc::new(open.record)));
    Ok((past, AttachedEvents { first, tail }))
}

/// Events that are shown first, then those that follow.
struct AttachedEvents {
    first: VecDeque<Arc<EventRecord>>,
    tail: EventTail,
}

impl EventSource for AttachedEvents {
    async fn next(&mut self) -> Result<Option<Arc<EventRecord>>, JournalError> {
        match self.first.pop_front() {
            Some(event) => Ok(Some(event)),
            None => self.tail.next().await,
        }
    }
}
