//! Background jobs: named commands, read with `shell_poll` and ended with `shell_kill`.
//!
//! Jobs belong to the run's workspace and end with it. A limited number of finished jobs is kept, so that
//! their results can still be read.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{CheckedCommand, CommandOutcome, CommandSettings, SharedCapture, answer, closed};
use crate::suggestions;
use crate::tool::read_tool::typed;
use crate::tool::shell::capture::Capture;
use crate::tool::{Access, CallContext, PreparedCall, RetrySafety, Tool, ToolDefinition, ToolOutput};

/// Maximum number of running jobs per run; more are refused.
const MAX_RUNNING: usize = 16;
/// Maximum number of finished jobs that are kept; the oldest are removed first.
const MAX_FINISHED: usize = 32;
/// Maximum time that a poll waits for new output.
const POLL_WAIT: Duration = Duration::from_secs(2);
/// Time that a start waits for an early end, which usually means a mistake in the command line.
const START_WAIT: Duration = Duration::from_millis(150);
/// Maximum time to wait for a killed job.
const END_WAIT: Duration = Duration::from_secs(5);

/// The jobs of one run.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    jobs: Mutex<VecDeque<Arc<Job>>>,
}

#[derive(Debug)]
struct Job {
    name: String,
    command: String,
    kill: CancellationToken,
    /// Output since the last poll.
    capture: SharedCapture,
    outcome: Mutex<Option<CommandOutcome>>,
    /// Notified when output arrives and when the job ends.
    news: Notify,
    limits: (usize, usize),
    /// The workspace, to which paths in answers are relative.
    root: std::path::PathBuf,
}

impl Jobs {
    fn find(&self, name: &str) -> Result<Arc<Job>, String> {
        let jobs = self.jobs.lock();
        if let Some(job) = jobs.iter().find(|job| job.name == name) {
            return Ok(Arc::clone(job));
        }
        let mut answer = format!("There is no job `{name}`");
        match suggestions::names(name, jobs.iter().map(|job| job.name.as_str()), 3).as_slice() {
            [] if jobs.is_empty() => {
                answer.push_str(": none runs. Jobs end when a run is interrupted or over.")
            }
            [] => {
                let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
                let _ = write!(answer, ". There are: {}.", names.join(", "));
            }
            near => {
                let _ = write!(answer, ". Did you mean {}?", near.join(" or "));
            }
        }
        Err(answer)
    }

    /// Kills the running jobs and waits for their end.
    pub(crate) async fn end_all(&self) {
        let running: Vec<Arc<Job>> =
            self.jobs.lock().iter().filter(|job| job.is_running()).cloned().collect();
        running.iter().for_each(|job| job.kill.cancel());
        for job in running {
            job.wait_for_end(END_WAIT).await;
        }
    }

    fn add(&self, job: &Arc<Job>) -> Result<(), String> {
        let mut jobs = self.jobs.lock();
        if jobs.iter().filter(|job| job.is_running()).count() >= MAX_RUNNING {
            return Err(format!(
                "There are {MAX_RUNNING} jobs running already. End one with shell_kill first."
            ));
        }
        // A retried call replaces its first attempt.
        jobs.retain(|known| known.name != job.name);
        while jobs.len() >= MAX_RUNNING + MAX_FINISHED {
            let Some(oldest) = jobs.iter().position(|job| !job.is_running()) else { break };
            jobs.remove(oldest);
        }
        jobs.push_back(Arc::clone(job));
        Ok(())
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        for job in self.jobs.get_mut() {
            job.kill.cancel();
        }
    }
}

impl Job {
    fn is_running(&self) -> bool {
        self.outcome.lock().is_none()
    }

    /// The output since the last poll, and the result if the job has ended.
    fn new_output(&self) -> ToolOutput {
        let capture = {
            let mut capture = self.capture.lock();
            std::mem::replace(&mut *capture, Capture::new(self.limits.0, self.limits.1))
        };
        let outcome = self.outcome.lock();
        match outcome.as_ref() {
            None => {
                let (text, truncated) = capture.text();
                let text = if capture.is_empty() { "(no new output)".to_owned() } else { text };
                ToolOutput {
                    truncated,
                    ..ToolOutput::done(closed(text, &format!("{} is running", self.name)))
                }
            }
            Some((result, cause)) => answer(result.as_ref(), *cause, &capture, &self.root),
        }
    }

    async fn wait(&self, most: Duration, cancel: &CancellationToken) {
        let deadline = tokio::time::sleep(most);
        tokio::pin!(deadline);
        loop {
            let news = self.news.notified();
            if !self.is_running() || !self.capture.lock().is_empty() {
                return;
            }
            tokio::select! {
                () = news => {}
                () = &mut deadline => return,
                () = cancel.cancelled() => return,
            }
        }
    }

    async fn wait_for_end(&self, most: Duration) {
        let deadline = tokio::time::sleep(most);
        tokio::pin!(deadline);
        loop {
            let news = self.news.notified();
            if !self.is_running() {
                return;
            }
            tokio::select! {
                () = news => {}
                () = &mut deadline => return,
            }
        }
    }
}

/// Starts a job. Answers with its name, or with its result if it ends at once.
pub(super) async fn start(
    plan: CheckedCommand,
    settings: &CommandSettings,
    context: &CallContext,
) -> ToolOutput {
    let limits = (context.limits.output_head, context.limits.output_tail);
    let job = Arc::new(Job {
        name: name(&context.call_id),
        command: plan.command.clone(),
        kill: CancellationToken::new(),
        capture: Arc::new(Mutex::new(Capture::new(limits.0, limits.1))),
        outcome: Mutex::new(None),
        news: Notify::new(),
        limits,
        root: context.workspace.root().to_owned(),
    });
    if let Err(refusal) = context.workspace.jobs().add(&job) {
        return ToolOutput::error(refusal);
    }
    tokio::spawn(Box::pin(run(Arc::clone(&job), plan, settings.clone())));
    job.wait_for_end(START_WAIT).await;
    if !job.is_running() {
        return job.new_output();
    }
    ToolOutput::done(format!(
        "Started as {name}. shell_poll with job {name} shows its output, shell_kill ends it.",
        name = job.name
    ))
}

async fn run(job: Arc<Job>, plan: CheckedCommand, settings: CommandSettings) {
    let push = |bytes: &[u8]| {
        job.capture.lock().push(bytes);
        job.news.notify_waiters();
    };
    let outcome = plan.run(&settings, &settings.sandbox, &job.kill, push).await;
    *job.outcome.lock() = Some(outcome);
    job.news.notify_waiters();
}

/// Derived from the call id, so that a resumed run never gives an old job's name to a new one.
fn name(call_id: &str) -> String {
    format!("job_{}", &blake3::hash(call_id.as_bytes()).to_hex()[..6])
}

pub(crate) fn shell_poll() -> impl Tool {
    JobTool {
        act: JobAction::Poll,
        definition: definition("shell_poll", "Shows new output of a job.", Access::Read),
    }
}

pub(crate) fn shell_kill() -> impl Tool {
    JobTool { act: JobAction::Kill, definition: definition("shell_kill", "Ends a job.", Access::Write) }
}

fn definition(name: &'static str, description: &'static str, category: Access) -> ToolDefinition {
    ToolDefinition {
        name: Cow::Borrowed(name),
        description: Cow::Borrowed(description),
        parameters: json!({
            "type": "object",
            "properties": { "job": { "type": "string", "description": "The job's name, as shell answered it. A poll waits up to two seconds for news and shows the exit code once there is one; a kill ends everything the job started and shows its last output" } },
            "required": ["job"],
            "additionalProperties": false
        }),
        category,
        aliases: &[],
        parameter_aliases: &[("job_id", "job"), ("id", "job"), ("handle", "job")],
    }
}

struct JobTool {
    act: JobAction,
    definition: ToolDefinition,
}

#[derive(Clone, Copy)]
enum JobAction {
    Poll,
    Kill,
}

#[derive(Deserialize)]
struct Arguments {
    job: String,
}

impl Tool for JobTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// Jobs do not outlive this process: after a crash, a repeated call only reports that the job is gone.
    fn repeat(&self) -> RetrySafety {
        RetrySafety::Idempotent
    }

    fn prepare<'a>(
        &'a self,
        arguments: Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolOutput>> {
        Box::pin(async {
            let arguments = typed::<Arguments>(arguments)?;
            let job = context.workspace.jobs().find(&arguments.job).map_err(ToolOutput::error)?;
            Ok(PreparedCall::new(Value::Null, job))
        })
    }

    fn perform<'a>(&'a self, prepared: PreparedCall, context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async {
            let job = match prepared.into_plan::<Arc<Job>>() {
                Ok(job) => job,
                Err(output) => return output,
            };
            match self.act {
                JobAction::Poll => job.wait(POLL_WAIT, &context.cancel).await,
                JobAction::Kill => {
                    job.kill.cancel();
                    job.wait_for_end(POLL_WAIT).await;
                    return ended(&job);
                }
            }
            job.new_output()
        })
    }
}

/// The answer of `shell_kill`. Ending the job is the purpose of the call, so the answer is not a failure.
fn ended(job: &Job) -> ToolOutput {
    let news = job.new_output();
    let content = format!("{}\n[{} (`{}`) is over]", news.content, job.name, job.command);
    ToolOutput {
        ok: !job.is_running(),
        content,
        exit_code: news.exit_code,
        truncated: news.truncated,
        stops_task: news.stops_task,
        ..ToolOutput::default()
    }
}
