//! `fusee` without a command: the conversation.

use std::io::BufRead as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use fusee_engine::run::Exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Process;
use crate::arguments::shared::{GateFlags, LimitFlags, ModelFlags, Place};
use crate::arguments::{self};
use crate::failure::Failure;
use crate::output;
use crate::tui::session::{Beginning, Session};
use crate::tui::{plain, terminal};

/// How long piped input may take to begin; `--plain` waits for as long as it takes.
const INPUT_BEGINS: Duration = Duration::from_millis(250);

/// What the conversation can be told when it is opened.
#[derive(Args, Clone, Default)]
pub(crate) struct ConverseArgs {
    /// Hold the conversation in plain lines: for pipes and screen readers
    #[arg(long)]
    pub(crate) plain: bool,
    /// Go on with the conversation of an earlier run: the newest that has ended here, or the one named
    #[arg(long = "continue", value_name = "RUN", num_args = 0..=1, default_missing_value = "")]
    pub(crate) continues: Option<String>,
    /// The prompt that drives its tasks: a file of sections, some closed until the model or `/sections` opens them
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) model: ModelFlags,
    #[command(flatten)]
    pub(crate) gates: GateFlags,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
}

/// Holds the conversation. Where nobody is at a terminal and nothing comes in, the short help is all there is to say.
pub(crate) async fn converse(args: ConverseArgs, process: &Process) -> Result<Exit, Failure> {
    let terminals = process.environment.terminals();
    if !terminals.stdin && !args.plain && !input_comes() {
        return output::print(&arguments::short_help_text()).map(|()| Exit::Completed);
    }
    let here = process.environment.directory();
    let prompt = args.prompt.map(|file| super::run::prompt_text(&here.join(file))).transpose()?;
    let beginning = Beginning {
        prompt,
        directory: args.place.directory.as_deref(),
        flags: [args.model.values(), args.gates.values(), args.limits.values()].concat(),
        continues: args.continues.as_deref(),
    };
    let mut session = Session::open(beginning, process).await?;
    let dumb = process.environment.text("TERM") == Some("dumb");
    if args.plain || dumb || !terminals.stdin || !terminals.stdout {
        plain::converse(&mut session, terminals).await
    } else {
        terminal::converse(&mut session, &process.environment).await
    }
}

/// Whether somebody writes to stdin: not a file or a pipe that is empty, nor one that stays silent.
fn input_comes() -> bool {
    let stdin = std::io::stdin();
    let wait = Timespec { tv_sec: 0, tv_nsec: INPUT_BEGINS.subsec_nanos().into() };
    let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
    let ready = poll(&mut watched, Some(&wait)).is_ok_and(|ready| ready > 0);
    ready && stdin.lock().fill_buf().is_ok_and(|bytes| !bytes.is_empty())
}
