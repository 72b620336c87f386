//! Flags shared by several commands.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use fusee::engine::approval::ApprovalMode;
use fusee::engine::journal::RunId;
use fusee::engine::model::Wire;
use fusee::engine::run::SandboxMode;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::config::{self, APIS, APPROVALS, FlagValue, SANDBOX_MODES, Value};

/// Upper bound for timeouts; larger than any practical value and still representable in milliseconds.
const MAX_SECONDS: u64 = u32::MAX as u64;

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
    #[arg(long, value_name = "API", value_parser = apis())]
    pub(crate) api: Option<Wire>,
}

impl ModelFlags {
    /// The configuration values set by these flags.
    pub(crate) fn values(&self) -> Vec<FlagValue> {
        let text = |name, value: Option<String>| value.map(|value| (name, Value::Text(value)));
        [
            text("model", self.model.clone()),
            text("base_url", self.base_url.clone()),
            text("api", self.api.map(name_of)),
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
    /// How to work through the task: auto (the default), flat, staged, staged3, branched or direct
    #[arg(long, value_name = "MODE")]
    pub(crate) flow: Option<String>,
    /// Command that verifies the work: runs after each change, and the task ends when it exits with 0;
    /// `auto` finds the project's own tests, `off` runs none
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
pub(crate) struct ApprovalFlags {
    /// When to ask for approval: auto (only for calls that are not sandboxed, never with --sandbox off), ask
    /// (before every change), never (refuse instead of asking)
    #[arg(long, value_name = "WHEN", value_parser = words::<ApprovalMode>(APPROVALS))]
    pub(crate) approve: Option<ApprovalMode>,
    /// Whether to run commands in the sandbox; `off` runs them unsandboxed
    #[arg(long, value_name = "on|off", value_parser = words::<SandboxMode>(SANDBOX_MODES))]
    pub(crate) sandbox: Option<SandboxMode>,
    /// Allow sandboxed commands to access the network
    #[arg(long)]
    pub(crate) allow_net: bool,
}

impl ApprovalFlags {
    /// The configuration values set by these flags.
    pub(crate) fn values(&self) -> Vec<FlagValue> {
        let text = |name, value: Option<String>| value.map(|value| (name, Value::Text(value)));
        [
            text("approve", self.approve.map(name_of)),
            text("sandbox", self.sandbox.map(name_of)),
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
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=MAX_SECONDS))]
    pub(crate) timeout: Option<u64>,
    /// How long to wait for an unreachable model, in seconds; 0 does not retry [default: a few retries, within
    /// seconds]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=MAX_SECONDS))]
    pub(crate) patience: Option<u64>,
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
            whole("patience_s", self.patience),
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
    /// Run id, a unique prefix of it, `last` or `last~N` [default: the newest run]
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
}

/// The engine that works on a run, and the store it shares with its clients.
#[cfg(feature = "restate")]
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Engine")]
pub(crate) struct EngineFlags {
    /// Use the Restate server whose admin API is at URL, such as http://127.0.0.1:9070
    #[arg(long, value_name = "URL")]
    pub(crate) engine: Option<String>,
    /// Directory or s3://BUCKET/PREFIX for large results and workspaces, shared by workers and clients [default: in the
    /// state folder]
    #[arg(long, value_name = "PLACE")]
    pub(crate) blobs: Option<String>,
}

/// Where a new run works, and for whom.
#[cfg(feature = "restate")]
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Engine")]
pub(crate) struct NewRunEngineFlags {
    #[command(flatten)]
    pub(crate) place: EngineFlags,
    /// Tenant of the run; a worker can limit concurrent runs per tenant (`fusee worker --tenant-limit`)
    #[arg(long, value_name = "NAME", requires = "engine", value_parser = tenant)]
    pub(crate) tenant: Option<String>,
}

#[cfg(feature = "restate")]
fn tenant(name: &str) -> Result<String, String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    match name.len() {
        1..=64 if name.chars().all(is_plain) => Ok(name.to_owned()),
        _ => Err("1 to 64 of A-Z a-z 0-9 . _ -".to_owned()),
    }
}

/// `--run-id`, for commands that start a run.
#[derive(Args, Clone, Default)]
pub(crate) struct RunIdFlag {
    /// Id of the new run: 1 to 64 of A-Z a-z 0-9 . _ - [default: a new UUID]
    #[arg(long, value_name = "ID")]
    pub(crate) run_id: Option<RunId>,
}

/// Whether the run works in the background.
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct DetachFlag {
    /// Run in the background: print the run's id and return; `fusee attach` watches the run and answers its
    /// questions
    #[arg(long, conflicts_with = "json")]
    #[cfg_attr(feature = "restate", arg(conflicts_with = "engine"))]
    pub(crate) detach: bool,
    /// Set in the process that `--detach` starts.
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
}

/// Parses a flag whose values are the names of an engine type.
pub(crate) fn words<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    names: impl IntoIterator<Item = impl Into<PossibleValue>>,
) -> impl TypedValueParser<Value = T> {
    // Every name is one of the type's; a test reads them all.
    PossibleValuesParser::new(names).try_map(|name| config::word::<T>(&name).ok_or("unknown name"))
}

/// The name of a value, as given to its flag.
pub(crate) fn name_of(value: impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

fn apis() -> impl TypedValueParser<Value = Wire> {
    let doc = |name: &&str| match *name {
        "chat" => "OpenAI chat completions, supported by almost every server",
        "responses" => "OpenAI responses",
        _ => "Anthropic messages; the base URL needs no version path",
    };
    words(APIS.iter().map(move |name| PossibleValue::new(*name).help(doc(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_a_flag_is_one_of_its_type() {
        let all = |names: &[&str], parse: fn(&str) -> bool| names.iter().all(|name| parse(name));
        assert!(all(APIS, |name| config::word::<Wire>(name).is_some()));
        assert!(all(APPROVALS, |name| config::word::<ApprovalMode>(name).is_some()));
        assert!(all(SANDBOX_MODES, |name| config::word::<SandboxMode>(name).is_some()));
    }
}
