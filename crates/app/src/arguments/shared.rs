//! Flags that mean the same on every command that has them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fusee_engine::approval::Approve;
use fusee_engine::journal::RunId;
use fusee_engine::run::SandboxMode;

use crate::config::{FlagValue, Value};

/// Longer than anybody waits, and still countable in milliseconds.
const MOST_SECONDS: u64 = u32::MAX as u64;

/// Where.
#[derive(Args, Clone, Default)]
pub(crate) struct Place {
    /// Work in this directory instead of the current one
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

/// Who answers.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelFlags {
    /// The model: PROVIDER:MODEL, a name from the configuration, local:FILE.gguf, script:FILE or replay:FILE
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Where the model's server is, version path included (http://127.0.0.1:8080/v1)
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// What the server speaks
    #[arg(long, value_name = "API")]
    pub(crate) api: Option<Api>,
}

impl ModelFlags {
    /// What of the configuration they set.
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

/// How.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Flow")]
pub(crate) struct FlowFlags {
    /// Take the settings of an agent from this file, TOML or JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) agent: Option<PathBuf>,
    /// How the task is worked through: flat, staged, staged3, branched, direct
    #[arg(long, value_name = "MODE")]
    pub(crate) flow: Option<String>,
    /// A command that tells whether the work is done: run after each change, green ends the task
    #[arg(long, value_name = "COMMAND")]
    pub(crate) verify: Option<String>,
    /// For scripts that measure: stdout gets one line, `Finished Try1` (Try2 with --continue) or `Failed Try1: …`, and
    /// tests cannot be changed. The variables FUSEE_BENCHMARK and LOCALCODE_BENCHMARK say the same
    #[arg(long)]
    pub(crate) benchmark: bool,
}

impl FlowFlags {
    /// What of the configuration they set.
    pub(crate) fn values(&self) -> Vec<FlagValue> {
        let text = |name, value: &Option<String>| value.clone().map(|value| (name, Value::Text(value)));
        [text("task_flow_mode", &self.flow), text("verify", &self.verify)].into_iter().flatten().collect()
    }
}

/// What may happen without a person.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Gates")]
pub(crate) struct GateFlags {
    /// When a person is asked: auto (not for what the sandbox confines, nor with --sandbox off), ask (before
    /// anything changes), never (what would be asked is refused)
    #[arg(long, value_name = "WHEN")]
    pub(crate) approve: Option<ApproveWord>,
    /// Whether commands are confined; off is your word that they may run free
    #[arg(long, value_name = "on|off")]
    pub(crate) sandbox: Option<SandboxWord>,
    /// Let confined commands reach the network
    #[arg(long)]
    pub(crate) allow_net: bool,
}

impl GateFlags {
    /// What of the configuration they set.
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

/// How much.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitFlags {
    /// Replies of the model
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,
    /// Tokens that the conversation may hold at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=i64::MAX as u64))]
    pub(crate) max_tokens: Option<u64>,
    /// Working time of the whole task, in seconds; waiting for a person does not count
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=MOST_SECONDS))]
    pub(crate) timeout: Option<u64>,
    /// Money for the whole task, in US dollars; kept by what the model's price is known to be
    #[arg(long, value_name = "USD")]
    pub(crate) budget_usd: Option<f64>,
}

impl LimitFlags {
    /// What of the configuration they set.
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

/// A run, by its id or the beginning of it.
#[derive(Args, Clone)]
pub(crate) struct RunArg {
    /// The run: its id, or a beginning of it that no other run has
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
}

/// A name for a new run.
#[derive(Args, Clone, Default)]
pub(crate) struct NewRun {
    /// Name the run: 1 to 64 of A-Z a-z 0-9 . _ -  (a new UUID if not given)
    #[arg(long, value_name = "ID")]
    pub(crate) run_id: Option<RunId>,
}

/// The formats that servers speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Api {
    /// OpenAI chat completions, which almost every server speaks
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

/// See [`Approve`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApproveWord {
    Auto,
    Ask,
    Never,
}

impl From<ApproveWord> for Approve {
    fn from(word: ApproveWord) -> Self {
        match word {
            ApproveWord::Auto => Self::Auto,
            ApproveWord::Ask => Self::Ask,
            ApproveWord::Never => Self::Never,
        }
    }
}

/// See [`SandboxMode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxWord {
    On,
    Off,
}

impl From<SandboxWord> for SandboxMode {
    fn from(word: SandboxWord) -> Self {
        match word {
            SandboxWord::On => Self::On,
            SandboxWord::Off => Self::Off,
        }
    }
}
