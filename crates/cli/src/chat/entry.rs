//! `fusee` without a command: the chat.

use std::io::BufRead as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use fusee::engine::run::ExitStatus;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::chat::session::{Chat, ChatOptions};
use crate::chat::{plain, terminal};
use crate::config::flags::{ApprovalFlags, DirectoryFlag, LimitFlags, ModelFlags};
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;

/// How long to wait for piped input to begin; `--plain` waits indefinitely.
const FIRST_INPUT_TIMEOUT: Duration = Duration::from_millis(250);

/// Arguments of the chat.
#[derive(Args, Clone, Default)]
pub(crate) struct ChatArgs {
    /// Use plain lines instead of the terminal UI, for pipes and screen readers
    #[arg(long)]
    pub(crate) plain: bool,
    /// Continue the conversation of an earlier run [default: choose from the conversations in this directory, or with
    /// `--plain` the newest finished one]
    #[arg(long = "continue", value_name = "RUN", num_args = 0..=1, default_missing_value = "")]
    pub(crate) continues: Option<String>,
    /// Prompt file for the tasks: sections, some closed until the model or `/sections` opens them
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) directory: DirectoryFlag,
    #[command(flatten)]
    pub(crate) model: ModelFlags,
    #[command(flatten)]
    pub(crate) approval: ApprovalFlags,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
}

/// Runs the chat, or prints `help` if there is neither a terminal nor input.
pub(crate) async fn chat(args: ChatArgs, help: String, process: &Process) -> Result<ExitStatus, CliError> {
    let terminals = process.environment.terminals();
    if !terminals.stdin && !args.plain && !stdin_has_input() {
        return stdio::print(&help).map(|()| ExitStatus::Completed);
    }
    let here = process.environment.directory();
    let prompt = args.prompt.map(|file| crate::command::run::prompt_text(&here.join(file))).transpose()?;
    let beginning = ChatOptions {
        prompt,
        directory: args.directory.directory.as_deref(),
        flags: [args.model.values(), args.approval.values(), args.limits.values()].concat(),
        continues: args.continues.as_deref(),
    };
    let mut session = Chat::open(beginning, process).await?;
    let dumb = process.environment.text("TERM") == Some("dumb");
    if args.plain || dumb || !terminals.stdin || !terminals.stdout {
        plain::chat(&mut session, terminals).await
    } else {
        Box::pin(terminal::chat(&mut session, &process.environment)).await
    }
}

/// Whether stdin delivers input: false for an empty file or pipe, and for one that stays silent.
fn stdin_has_input() -> bool {
    let stdin = std::io::stdin();
    let wait = Timespec { tv_sec: 0, tv_nsec: FIRST_INPUT_TIMEOUT.subsec_nanos().into() };
    let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
    let ready = poll(&mut watched, Some(&wait)).is_ok_and(|ready| ready > 0);
    ready && stdin.lock().fill_buf().is_ok_and(|bytes| !bytes.is_empty())
}
