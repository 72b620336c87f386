//! Flags shared by several commands.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fusee_engine::approval::ApprovalMode;
use fusee_engine::journal::RunId;
use fusee_engine::run::SandboxMode;

use crate::config::{FlagValue, Value};

/// Upper bound for timeouts; larger than any practical value and still representable in milliseconds.
const MOST_SECONDS: u64 = u32::MAX as u64;

/// The working directory.
#[derive(Args, Clone, Default)]
pub(crate) struct DirectoryFlag {
    /// Run as if started in DIR [default: the current directory]
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

/// The model and its server.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelFlags {
    /// Model to use: PROVIDER:MODEL, a configured name, local:FILE.gguf, script:FILE or replay:FILE
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Base URL of the model server, including the version path, such as http://127.0.0.1:8080/v1
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// API spoken by the server
    #[arg(long, value_name = "API")]
    pub(crate) api: Option<Api>,
}

impl ModelFlags {
    /// The configuration values set by these flags.
    pub(crate) fn values(&self) -> Vec<FlagValue> {
        let text = |name, value: Option<String>| value.map(|value| (name, Value::Text(value)));
        [
            text("model", self.model.clone()),
            text("base_url", self.base_url.clone()),
            text(
                "api",
                self.api.and_then(|api| api.to_possible_value()).map(|word| word.get_name().to_owned()),
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// How the task is worked through.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Flow")]
pub(crate) struct FlowFlags {
    /// Load agent settings from this TOML or JSON file
    #[arg(long, value_name = "FILE")]
    pub(crate) agent: Option<PathBuf>,
    /// How to work through the task: flat, staged, staged3, branched or direct
    #[arg(long, value_name = "MODE")]
    pub(crate) flow: Option<String>,
    /// Command that verifies the work: runs after each change, and the task ends when it exits with 0
    #[arg(long, value_name = "COMMAND")]
    pub(crate) verify: Option<String>,
    /// Benchmark mode: print one line to stdout, `Finished Try1` (Try2 with --continue) or `Failed Try1: …`,
    /// and forbid changes to tests; FUSEE_BENCHMARK and LOCALCODE_BENCHMARK also enable it
    #[arg(long)]
    pub(crate) benchmark: bool,
}

impl FlowFlags {
    /// The configuration values set by these flags.
    pub(crate) fn values(&self) -> Vec<FlagValue> {
        let text = |name, value: &Option<String>| value.clone().map(|value| (name, Value::Text(value)));
        [text("task_flow_mode", &self.flow), text("verify", &self.verify)].into_iter().flatten().collect()
    }
}

/// Approval and sandbox.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Approval and sandbox")]
pub(crate) struct GateFlags {
    /// When to ask for approval: auto (only for calls that are not sandboxed, never with --sandbox off), ask
    /// (before every change), never (refuse instead of asking)
    #[arg(long, value_name = "WHEN")]
    pub(crate) approve: Option<ApproveValue>,
    /// Whether to run commands in the sandbox; `off` runs them unsandboxed
    #[arg(long, value_name = "on|off")]
    pub(crate) sandbox: Option<SandboxValue>,
    /// Allow sandboxed commands to access the network
    #[arg(long)]
    pub(crate) allow_net: bool,
}

impl GateFlags {
    /// The configuration values set by these flags.
    pub(crate) fn values(&self) -> Vec<FlagValue> {
        let word = |name, value: Option<clap::builder::PossibleValue>| {
            value.map(|value| (name, Value::Text(value.get_name().to_owned())))
        };
        [
            word("approve", self.approve.and_then(|word| word.to_possible_value())),
            word("sandbox", self.sandbox.and_then(|word| word.to_possible_value())),
            self.allow_net.then(|| ("sandbox.network", Value::Text("on".to_owned()))),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Limits of a task.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitFlags {
    /// Maximum number of model replies
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,
    /// Maximum number of tokens in the conversation
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=i64::MAX as u64))]
    pub(crate) max_tokens: Option<u64>,
    /// Maximum working time of the task in seconds, not counting time spent waiting for the user
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=MOST_SECONDS))]
    pub(crate) timeout: Option<u64>,
    /// Maximum cost of the task in US dollars, computed from the model's known price
    #[arg(long, value_name = "USD")]
    pub(crate) budget_usd: Option<f64>,
}

impl LimitFlags {
    /// The configuration values set by these flags.
    pub(crate) fn values(&self) -> Vec<FlagValue> {
        let whole = |name, value: Option<u64>| value.map(|value| (name, Value::Whole(value)));
        [
            whole("max_turns", self.max_turns.map(u64::from)),
            whole("max_tokens", self.max_tokens),
            whole("task_timeout_s", self.timeout),
            self.budget_usd.map(|usd| ("budget_usd", Value::Text(usd.to_string()))),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// A run, by its id or a unique prefix of it.
#[derive(Args, Clone)]
pub(crate) struct RunArg {
    /// Run id, or a unique prefix of it
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
}

/// The id of a new run.
#[derive(Args, Clone, Default)]
pub(crate) struct NewRun {
    /// Id of the new run: 1 to 64 of A-Z a-z 0-9 . _ - [default: a new UUID]
    #[arg(long, value_name = "ID")]
    pub(crate) run_id: Option<RunId>,
}

/// Wire formats of model servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Api {
    /// OpenAI chat completions, supported by almost every server
    Chat,
    /// OpenAI responses
    Responses,
    /// Anthropic messages; the base URL needs no version path
    Anthropic,
}

impl From<Api> for fusee_engine::model::Wire {
    fn from(api: Api) -> Self {
        match api {
            Api::Chat => Self::Chat,
            Api::Responses => Self::Responses,
            Api::Anthropic => Self::Anthropic,
        }
    }
}

/// Flag values of [`ApprovalMode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApproveValue {
    Auto,
    Ask,
    Never,
}

impl From<ApproveValue> for ApprovalMode {
    fn from(word: ApproveValue) -> Self {
        match word {
            ApproveValue::Auto => Self::Auto,
            ApproveValue::Ask => Self::Ask,
            ApproveValue::Never => Self::Never,
        }
    }
}

/// Flag values of [`SandboxMode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxValue {
    On,
    Off,
}

impl From<SandboxValue> for SandboxMode {
    fn from(word: SandboxValue) -> Self {
        match word {
            SandboxValue::On => Self::On,
            SandboxValue::Off => Self::Off,
        }
    }
}
