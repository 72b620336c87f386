//! The `shell` tool: runs a command line in the workspace, in the foreground or in the background.
//!
//! The sandbox starts and ends commands; `capture` keeps the part of their output that a model can use; `job`
//! manages background commands.

mod candidate;
mod capture;
mod job;
mod network;
mod settings;
mod spool;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::sandbox::{
    CommandEnd, CommandFailure, CommandRequest, ExceededLimit, FinishedCommand, ForkServer, ProtectionReport,
    Sandbox,
};
use crate::tool::read_file::explain;
use crate::tool::read_tool::{run_blocking, typed};
use crate::tool::{
    Access, CallContext, InterruptedOutcome, PreparedCall, RetrySafety, Tool, ToolDefinition, ToolOutput,
};
use crate::workspace::{OpenedPath, WorkspacePath};

pub use candidate::{CandidateFiles, candidate_shell, copy_kind};
use capture::{Capture, ReportedOutput};
pub(crate) use job::{Jobs, shell_kill, shell_poll};
pub use network::NETWORK_BLOCKED;
pub use settings::CommandSettings;
use spool::Spool;

/// Interval of progress updates on the output of a running command.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

pub(crate) fn shell(settings: CommandSettings) -> impl Tool {
    shell_tool(settings)
}

fn shell_tool(settings: CommandSettings) -> Shell {
    let definition = ToolDefinition {
        name: Cow::Borrowed("shell"),
        description: Cow::Borrowed(
            "Runs a command line. It is ended after `timeout` seconds (120); with `background` it goes on as a job.",
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "command": { "type": "string", "minLength": 1, "description": "Command line for /bin/sh. Both streams are shown in order, of long output the first and last 16 KB" },
                "workdir": { "type": "string", "description": "Directory to run in; the workspace root if left out" },
                "stdin": { "type": "string", "description": "What the command reads from its input" },
                "background": { "type": "boolean", "description": "Do not wait for its end: the answer names a job for shell_poll and shell_kill" },
                "timeout": { "type": "number", "minimum": 0.001, "maximum": 3600, "description": "Most seconds to run (120 if left out); then it is ended together with everything it started" }
            },
            "required": ["command"],
            "additionalProperties": false
        }),
        category: Access::Write,
        aliases: &[
            "system:shell",
            "bash",
            "sh",
            "run_command",
            "execute_command",
            "run_shell_command",
            "exec",
            "terminal",
        ],
        parameter_aliases: &[
            ("cmd", "command"),
            ("cwd", "workdir"),
            ("working_directory", "workdir"),
            ("input", "stdin"),
            ("run_in_background", "background"),
            ("timeout_ms", "timeout"),
        ],
    };
    Shell { definition, settings }
}

struct Shell {
    definition: ToolDefinition,
    settings: CommandSettings,
}

#[derive(Deserialize)]
struct Arguments {
    command: String,
    workdir: Option<String>,
    stdin: Option<String>,
    #[serde(default)]
    background: bool,
    timeout: Option<f64>,
}

/// A validated command.
struct CheckedCommand {
    command: String,
    input: Option<String>,
    directory: std::os::fd::OwnedFd,
    background: bool,
    time: Duration,
    fork_server: ForkServer,
}

/// How a command ended, and why it was killed if it was.
type CommandOutcome = (Result<FinishedCommand, CommandFailure>, Option<EndCause>);

impl CheckedCommand {
    /// Runs the command to its end, or kills it when it is cancelled or its time is up.
    async fn run(
        self,
        settings: &CommandSettings,
        sandbox: &Sandbox,
        cancel: &CancellationToken,
        output: impl FnMut(&[u8]),
    ) -> CommandOutcome {
        let Self { command, input, directory, time, fork_server, .. } = self;
        let cause = OnceLock::new();
        let stop = async {
            let came = tokio::select! {
                () = cancel.cancelled() => EndCause::Cancelled,
                () = tokio::time::sleep(time) => EndCause::Timeout(time),
            };
            let _ = cause.set(came);
        };
        let request = CommandRequest {
            command: &command,
            directory,
            input: input.as_deref().map(str::as_bytes),
            environment: &settings.environment,
            sandbox,
            limits: settings.limits,
        };
        let result = fork_server.run(request, output, stop).await;
        (result, cause.get().copied())
    }
}

impl Shell {
    fn plan(
        &self,
        arguments: Arguments,
        directory: std::os::fd::OwnedFd,
        context: &CallContext,
    ) -> Result<CheckedCommand, ToolOutput> {
        let Some(fork_server) = self.settings.fork_server.clone() else {
            return Err(ToolOutput::error(
                "Commands cannot be run here: the process that starts them was not set up (fusee_tools::sandbox::init, first in main). Use the file tools.",
            ));
        };
        if arguments.command.trim().is_empty() {
            return Err(ToolOutput::error("`command` is empty."));
        }
        let limits = &context.limits;
        let default = if arguments.background { limits.max_command_time } else { limits.command_time };
        let asked = arguments.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let time = asked.unwrap_or(default).min(limits.max_command_time);
        Ok(CheckedCommand {
            command: arguments.command,
            input: arguments.stdin,
            directory,
            background: arguments.background,
            time,
            fork_server,
        })
    }

    async fn wait_to_end(&self, plan: CheckedCommand, context: &CallContext) -> ToolOutput {
        let sandbox = match self.settings.sandbox_for(context.limits.source) {
            Ok(sandbox) => sandbox,
            Err(failure) => return ToolOutput::error(failure.to_string()),
        };
        let (head, tail) = (context.limits.output_head, context.limits.output_tail);
        let spool = Spool::create(context.workspace.held(), &context.call_id, head + tail);
        let capture = Mutex::new(Capture::new(head, tail).saved_to(spool));
        let push = |bytes: &[u8]| capture.lock().push(bytes);
        let mut run = Box::pin(plan.run(&self.settings, sandbox, &context.cancel, push));
        let mut tick = tokio::time::interval_at(tokio::time::Instant::now() + PROGRESS_EVERY, PROGRESS_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut reported = ReportedOutput::default();
        let (result, cause) = loop {
            tokio::select! {
                outcome = &mut run => break outcome,
                _ = tick.tick() => {
                    let new = capture.lock().unreported(&mut reported);
                    if let Some(new) = new {
                        (context.progress)(&new);
                    }
                }
            }
        };
        drop(run);
        let saved = capture.lock().finish();
        let mut output = answer(result.as_ref(), cause, &capture.lock(), context.workspace.root());
        if output.exit_code.is_some_and(|code| code != 0) {
            network::explain_block(sandbox.network(), &mut output.content);
        }
        if let Some(saved) = saved.filter(|_| output.truncated) {
            output.content.push_str(&format!("\n[{}]", saved.describe()));
        }
        output
    }
}

impl Tool for Shell {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn repeat(&self) -> RetrySafety {
        RetrySafety::Never
    }

    fn prepare<'a>(
        &'a self,
        arguments: Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolOutput>> {
        Box::pin(async move {
            let arguments = typed::<Arguments>(arguments)?;
            let workdir = arguments.workdir.clone().unwrap_or_default();
            let (path, directory) = if workdir.is_empty() {
                // The workspace directory is already open, so this does not block.
                open_directory(&workdir, context)?
            } else {
                run_blocking(context, move |context| open_directory(&workdir, context)).await?
            };
            let mut intent = json!({ "command": arguments.command, "workdir": path.to_string() });
            if arguments.background {
                intent["background"] = Value::Bool(true);
            }
            Ok(PreparedCall::new(intent, self.plan(arguments, directory, context)?))
        })
    }

    fn perform<'a>(&'a self, prepared: PreparedCall, context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let plan = match prepared.into_plan::<CheckedCommand>() {
                Ok(plan) => plan,
                Err(output) => return output,
            };
            if context.cancel.is_cancelled() {
                return ToolOutput::aborted("Cancelled before it began.");
            }
            if plan.background {
                return job::start(plan, &self.settings, context).await;
            }
            Box::pin(self.wait_to_end(plan, context)).await
        })
    }

    fn settle<'a>(
        &'a self,
        _arguments: &'a Value,
        intent: &'a Value,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, InterruptedOutcome> {
        let command = intent.get("command").and_then(Value::as_str).unwrap_or("the command");
        let answer = format!(
            "The run was interrupted while `{command}` was running. The command was ended with everything it had started; what it had done until then is not known, and its output is lost. It was not run again: check the current state first."
        );
        Box::pin(async move {
            InterruptedOutcome::Unknown(ToolOutput { aborted: true, ..ToolOutput::error(answer) })
        })
    }
}

fn open_directory(
    given: &str,
    context: &CallContext,
) -> Result<(WorkspacePath, std::os::fd::OwnedFd), ToolOutput> {
    let path = context.workspace.locate(given).map_err(|problem| ToolOutput::error(problem.to_string()))?;
    match context.workspace.open_to_read(&path) {
        Ok(OpenedPath::Directory(directory)) => Ok((path, directory)),
        Ok(_) => Err(ToolOutput::error(format!("`{path}` is not a directory; `workdir` must be one."))),
        Err(problem) => Err(ToolOutput::error(explain(&problem, context))),
    }
}

/// Why a command was killed.
#[derive(Clone, Copy, Debug)]
enum EndCause {
    Cancelled,
    Timeout(Duration),
}

fn answer(
    result: Result<&FinishedCommand, &CommandFailure>,
    cause: Option<EndCause>,
    capture: &Capture,
    root: &Path,
) -> ToolOutput {
    let (text, truncated) = capture.text();
    let finished = match result {
        Ok(finished) => finished,
        Err(CommandFailure::SupervisorGone(protection)) => {
            let mut closing = CommandFailure::SupervisorGone(ProtectionReport::default()).to_string();
            push_protection(&mut closing, protection, root);
            let stops_task = !protection.unrestored.is_empty();
            return ToolOutput { truncated, stops_task, ..ToolOutput::error(closed(text, &closing)) };
        }
        // Nothing can be run any more, so the work cannot be finished either.
        Err(failure @ CommandFailure::ForkServerGone) => {
            return ToolOutput { stops_task: true, ..ToolOutput::error(failure.to_string()) };
        }
        Err(failure) => return ToolOutput::error(failure.to_string()),
    };
    let cause = cause.filter(|_| finished.stopped);
    let mut closing = match (cause, finished.exceeded) {
        (None, Some(what)) => exceeded_words(what).to_owned(),
        (None, None) => ending_words(finished.ending),
        (Some(EndCause::Cancelled), _) => "cancelled; it was ended with everything it had started".to_owned(),
        (Some(EndCause::Timeout(time)), _) => format!(
            "timed out after {} s and was ended with everything it had started; give a longer `timeout`, or run it with `background`",
            time.as_secs_f64()
        ),
    };
    let was_ended = cause.is_some() || finished.exceeded.is_some();
    push_leftovers(&mut closing, finished, was_ended, root);
    let stops_task = !finished.protection.unrestored.is_empty();
    let exit_code = match finished.ending {
        CommandEnd::Exited(code) if !was_ended => Some(code),
        _ => None,
    };
    ToolOutput {
        ok: exit_code == Some(0) && !stops_task,
        content: closed(text, &closing),
        truncated,
        exit_code,
        aborted: matches!(cause, Some(EndCause::Cancelled)),
        stops_task,
        ..ToolOutput::default()
    }
}

fn push_leftovers(closing: &mut String, finished: &FinishedCommand, was_stopped: bool, root: &Path) {
    if finished.killed_leftovers > 0 && !was_stopped {
        let _ = write!(
            closing,
            "; {} it had left running {} ended: use `background` for what is to go on",
            count_of(finished.killed_leftovers, "process", "processes"),
            if finished.killed_leftovers == 1 { "was" } else { "were" },
        );
    }
    push_protection(closing, &finished.protection, root);
    if finished.unkillable > 0 {
        let _ =
            write!(closing, "; {} could not be ended", count_of(finished.unkillable, "process", "processes"));
    }
}

fn push_protection(closing: &mut String, protection: &ProtectionReport, root: &Path) {
    if !protection.reverted.is_empty() {
        let named = |path: &PathBuf| path.strip_prefix(root).unwrap_or(path).display().to_string();
        let names: Vec<String> = protection.reverted.iter().map(named).collect();
        let _ = write!(
            closing,
            "; what it made or changed at .git, .fusee or fusee.toml would decide over programs outside of the sandbox and was put back, or set aside with `.refused` behind its name: {}",
            names.join(", ")
        );
    }
    if !protection.unrestored.is_empty() {
        let named = |(path, reason): &(PathBuf, String)| format!("{} ({reason})", path.display());
        let names: Vec<String> = protection.unrestored.iter().map(named).collect();
        let _ = write!(
            closing,
            "; it changed settings that decide what runs outside the sandbox, and they could not be restored: {}; check them before you run anything there, git included",
            names.join(", ")
        );
    }
}

fn count_of(count: u32, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Appends the closing note to the output, on a line of its own.
fn closed(mut text: String, closing: &str) -> String {
    if text.is_empty() {
        text.push_str("(no output)");
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push('[');
    text.push_str(closing);
    text.push(']');
    text
}

/// The closing note for a command that exceeded a limit.
fn exceeded_words(what: ExceededLimit) -> &'static str {
    match what {
        ExceededLimit::Cpu => {
            "ended with everything it had started: it used up its processor time (sandbox.cpu_s); do less at once"
        }
        ExceededLimit::Memory => {
            "ended with everything it had started: it used more memory than a command may (sandbox.memory_mb); do less at once"
        }
        ExceededLimit::Processes => {
            "ended with everything it had started: it had more processes and threads than a command may (sandbox.processes); start fewer at once"
        }
    }
}

fn ending_words(ending: CommandEnd) -> String {
    match ending {
        CommandEnd::Exited(127) => "exit code 127: a command was not found".to_owned(),
        CommandEnd::Exited(code) => format!("exit code {code}"),
        CommandEnd::Signalled(signal) => format!("ended by signal {signal}{}", signal_name(signal)),
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL, perhaps out of memory)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        24 => " (SIGXCPU)",
        25 => " (SIGXFSZ)",
        _ => "",
    }
}

/// Shared between a job and the calls that poll it.
type SharedCapture = Arc<Mutex<Capture>>;
