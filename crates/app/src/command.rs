//! The commands, one a file. A command's arguments and its manual stand beside what it does.

pub(crate) mod demo;
pub(crate) mod replay;
pub(crate) mod resume;
pub(crate) mod run;

use clap::Subcommand;
use fusee_engine::run::Exit;
use fusee_tools::Keeper;

use crate::arguments::{self, Typed};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output;

/// What a command has from its process.
pub(crate) struct Process {
    /// Where it runs.
    pub(crate) environment: Environment,
    /// Starts commands for tools; only commands that run tools have it.
    pub(crate) keeper: Option<Keeper>,
}

/// All of them.
#[derive(Subcommand)]
pub(crate) enum Command {
    Demo(demo::DemoArgs),
    Run(run::RunArgs),
    Resume(resume::ResumeArgs),
    Replay(replay::ReplayArgs),
}

impl Command {
    /// Whether it may run a model's tools.
    pub(crate) fn runs_tools(&self) -> bool {
        match self {
            Self::Demo(_) | Self::Run(_) | Self::Resume(_) => true,
            Self::Replay(_) => false,
        }
    }
}

/// Does what was typed.
pub(crate) async fn perform(typed: Typed, process: &Process) -> Result<Exit, Failure> {
    match typed.command {
        None => output::print(&arguments::short_help_text()).map(|()| Exit::Completed),
        Some(Command::Demo(args)) => demo::demo(args, process).await,
        Some(Command::Run(args)) => run::run(args, process).await,
        Some(Command::Resume(args)) => resume::resume(args, process).await,
        Some(Command::Replay(args)) => replay::replay(args, process).await,
    }
}
