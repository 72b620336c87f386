//! The commands, one per file, each with its arguments and its help text.

#[cfg(feature = "acp")]
pub(crate) mod acp;
pub(crate) mod adopt;
pub(crate) mod approvals;
pub(crate) mod attach;
pub(crate) mod bench;
pub(crate) mod cancel;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod detach;
pub(crate) mod docs;
pub(crate) mod doctor;
#[cfg(feature = "restate")]
pub(crate) mod engine;
pub(crate) mod fmt;
pub(crate) mod fork;
pub(crate) mod init;
pub(crate) mod launcher;
pub(crate) mod manual;
pub(crate) mod match_templates;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
pub(crate) mod mcp_login;
pub(crate) mod memory;
pub(crate) mod models;
pub(crate) mod prompt;
pub(crate) mod replay;
pub(crate) mod resume;
pub(crate) mod review;
pub(crate) mod rewind;
pub(crate) mod run;
pub(crate) mod run_export;
pub(crate) mod run_session;
pub(crate) mod run_setup;
pub(crate) mod runs;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod task;
pub(crate) mod templates;
pub(crate) mod trust;
pub(crate) mod unstarted_run;
pub(crate) mod version;
pub(crate) mod workflows;

use clap::Subcommand;
use fusee::engine::run::ExitStatus;

use crate::config::flags::DetachFlag;
use crate::process::Process;
use crate::process::error::CliError;

/// All subcommands.
#[derive(Subcommand)]
pub(crate) enum Command {
    Demo(demo::DemoArgs),
    Run(run::RunArgs),
    Task(task::TaskArgs),
    Review(review::ReviewArgs),
    Resume(resume::ResumeArgs),
    Attach(attach::AttachArgs),
    Cancel(cancel::CancelArgs),
    Rewind(rewind::RewindArgs),
    Fork(fork::ForkArgs),
    Adopt(adopt::AdoptArgs),
    Runs(runs::RunsArgs),
    Show(show::ShowArgs),
    Replay(replay::ReplayArgs),
    #[cfg(feature = "serve")]
    Serve(serve::ServeArgs),
    #[cfg(feature = "restate")]
    Answer(engine::answer::AnswerArgs),
    #[cfg(feature = "restate")]
    Pull(engine::pull::PullArgs),
    #[cfg(feature = "restate")]
    Worker(engine::worker::WorkerArgs),
    #[cfg(feature = "restate")]
    DevEngine(engine::dev_engine::DevEngineArgs),
    Prompt(prompt::PromptArgs),
    Templates(templates::TemplatesArgs),
    Workflows(workflows::WorkflowsArgs),
    Match(match_templates::MatchArgs),
    Memory(memory::MemoryArgs),
    Bench(bench::BenchArgs),
    #[cfg(feature = "mcp")]
    Mcp(mcp::McpArgs),
    McpLogin(mcp_login::McpLoginArgs),
    #[cfg(feature = "acp")]
    Acp(acp::AcpArgs),
    Check(check::CheckArgs),
    Fmt(fmt::FmtArgs),
    Init(init::InitArgs),
    Config(config::ConfigArgs),
    Doctor(doctor::DoctorArgs),
    Trust(trust::TrustArgs),
    Approvals(approvals::ApprovalsArgs),
    Models(models::ModelsArgs),
    Completions(completions::CompletionsArgs),
    #[command(name = "docs")]
    Manual(manual::ManualArgs),
    #[command(name = "__complete", hide = true)]
    Complete(completions::CompleteArgs),
    #[command(name = "__docs", hide = true)]
    Docs(docs::DocsArgs),
}

impl Command {
    /// Whether the command needs the fork server for tools.
    pub(crate) fn tools(&self) -> ToolUse {
        match self {
            _ if self.background_run().detach => ToolUse::None,
            Self::Demo(_)
            | Self::Run(_)
            | Self::Task(_)
            | Self::Review(_)
            | Self::Resume(_)
            | Self::Fork(_)
            | Self::Bench(_) => ToolUse::Run,
            #[cfg(feature = "serve")]
            Self::Serve(_) => ToolUse::Run,
            #[cfg(feature = "mcp")]
            Self::Mcp(_) => ToolUse::Run,
            #[cfg(feature = "acp")]
            Self::Acp(_) => ToolUse::Run,
            #[cfg(feature = "restate")]
            Self::Worker(_) => ToolUse::Run,
            #[cfg(feature = "restate")]
            Self::Answer(_) | Self::Pull(_) | Self::DevEngine(_) => ToolUse::None,
            Self::Doctor(_) => ToolUse::Probed,
            Self::Attach(_)
            | Self::Cancel(_)
            | Self::Rewind(_)
            | Self::Adopt(_)
            | Self::Runs(_)
            | Self::Show(_)
            | Self::Replay(_)
            | Self::Prompt(_)
            | Self::Templates(_)
            | Self::Workflows(_)
            | Self::Match(_)
            | Self::Memory(_)
            | Self::Check(_)
            | Self::Fmt(_)
            | Self::Init(_)
            | Self::Config(_)
            | Self::Trust(_)
            | Self::McpLogin(_)
            | Self::Approvals(_)
            | Self::Models(_)
            | Self::Completions(_)
            | Self::Manual(_)
            | Self::Complete(_)
            | Self::Docs(_) => ToolUse::None,
        }
    }
}

impl Command {
    /// Whether the command starts a process in the background, or is one.
    pub(crate) fn background_run(&self) -> DetachFlag {
        match self {
            Self::Run(args) => args.background_run,
            Self::Task(args) => args.background_run,
            Self::Review(args) => args.background_run,
            Self::Resume(args) => args.background_run,
            _ => DetachFlag::default(),
        }
    }

    /// Whether the command answers requests while runs work.
    pub(crate) fn serves(&self) -> bool {
        match self {
            #[cfg(feature = "serve")]
            Self::Serve(_) => true,
            #[cfg(feature = "restate")]
            Self::Worker(_) => true,
            _ => false,
        }
    }
}

/// How a command uses tools, which decides whether the fork server is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolUse {
    /// Not at all: no fork server, so the command starts faster.
    None,
    /// Runs tools; a fork server that cannot start is an error.
    Run,
    /// Reports whether tools could run; a missing fork server is tolerated.
    Probed,
}

impl Command {
    /// Runs the command.
    pub(crate) async fn perform(self, process: &Process) -> Result<ExitStatus, CliError> {
        if self.background_run().detach {
            return detach::start(process).await;
        }
        match self {
            Self::Demo(args) => demo::demo(args, process).await,
            Self::Run(args) => run::run(args, process).await,
            Self::Task(args) => task::task(args, process).await,
            Self::Review(args) => review::review(args, process).await,
            Self::Bench(args) => Box::pin(bench::bench(args, process)).await,
            Self::Resume(args) => Box::pin(resume::resume(args, process)).await,
            Self::Attach(args) => Box::pin(attach::attach(args, process)).await,
            Self::Cancel(args) => cancel::cancel(args, process).await,
            Self::Rewind(args) => Box::pin(rewind::rewind(args, process)).await,
            Self::Fork(args) => Box::pin(fork::fork(args, process)).await,
            Self::Adopt(args) => adopt::adopt(&args, process),
            Self::Runs(args) => runs::runs(args, process).await,
            Self::Show(args) => show::show(&args, process).await,
            Self::Replay(args) => replay::replay(args, process).await,
            #[cfg(feature = "serve")]
            Self::Serve(args) => Box::pin(serve::serve(args, process)).await,
            #[cfg(feature = "restate")]
            Self::Answer(args) => Box::pin(engine::answer::answer(&args, process)).await,
            #[cfg(feature = "restate")]
            Self::Pull(args) => Box::pin(engine::pull::pull(&args, process)).await,
            #[cfg(feature = "restate")]
            Self::Worker(args) => Box::pin(engine::worker::worker(args, process)).await,
            #[cfg(feature = "restate")]
            Self::DevEngine(args) => engine::dev_engine::dev_engine(&args, process).await,
            Self::Prompt(args) => prompt::prompt(&args, process),
            Self::Templates(args) => templates::templates(args, process),
            Self::Workflows(args) => workflows::workflows(&args, process),
            Self::Match(args) => match_templates::matching(&args, process),
            Self::Memory(args) => memory::memory(&args, process),
            #[cfg(feature = "mcp")]
            Self::Mcp(args) => Box::pin(mcp::mcp(args, process)).await,
            #[cfg(feature = "acp")]
            Self::Acp(args) => Box::pin(acp::acp(args, process)).await,
            Self::Check(args) => check::check(&args, process),
            Self::Fmt(args) => fmt::fmt(&args, process),
            Self::Init(args) => init::init(&args, process),
            Self::Config(args) => config::config(&args, process),
            Self::Models(args) => models::models(&args, process).await,
            Self::Doctor(args) => doctor::doctor(&args, process).await,
            Self::Trust(args) => trust::trust(&args, process),
            Self::McpLogin(args) => mcp_login::login(&args, process).await,
            Self::Approvals(args) => approvals::approvals(&args, process),
            Self::Completions(args) => completions::completions(&args),
            Self::Manual(args) => manual::manual(&args, process),
            Self::Complete(args) => completions::complete(&args, process).await,
            Self::Docs(args) => docs::docs(&args),
        }
    }
}
