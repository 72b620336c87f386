//! Arguments of the fixed tools. Their JSON Schemas are what clients show to models.

use std::path::PathBuf;
use std::time::Duration;

use fusee::launch::LaunchLimits;
use schemars::JsonSchema;
use serde::Deserialize;

/// Default time to wait for a result: below the 60 s after which common clients give up.
const WAIT_S: u64 = 50;
/// Longest time that one call waits.
const MAX_WAIT_S: u64 = 3600;
/// Default number of listed runs.
const RUNS: usize = 20;

fn wait_s() -> u64 {
    WAIT_S
}

fn runs() -> usize {
    RUNS
}

/// How long a call with this `wait_s` waits.
pub(crate) fn wait(seconds: u64) -> Duration {
    Duration::from_secs(seconds.min(MAX_WAIT_S))
}

/// How long a call waits that does not say.
pub(crate) fn default_wait() -> Duration {
    Duration::from_secs(WAIT_S)
}

/// Arguments of `fusee_run`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunArguments {
    /// What to do, in plain words
    pub(crate) request: String,
    /// Directory to work in [default: where the server was started]
    pub(crate) directory: Option<PathBuf>,
    /// Model, such as PROVIDER:MODEL [default: the configured one]
    pub(crate) model: Option<String>,
    /// How to work through the task: auto, flat, staged, staged3, branched or direct
    pub(crate) flow: Option<String>,
    /// Command that verifies the work; the task ends when it exits with 0
    pub(crate) verify: Option<String>,
    /// Limits of the run
    pub(crate) limits: Option<LaunchLimits>,
    /// Seconds to wait for the result. A run that takes longer continues; get its result with fusee_wait
    #[serde(default = "wait_s")]
    #[schemars(range(min = 0, max = 3600))]
    pub(crate) wait_s: u64,
}

/// Arguments of `fusee_wait`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitArguments {
    /// Id of the run, or a unique prefix of it
    pub(crate) run: String,
    /// Directory of the run's project [default: where the server was started]
    pub(crate) directory: Option<PathBuf>,
    /// Seconds to wait for the result
    #[serde(default = "wait_s")]
    #[schemars(range(min = 0, max = 3600))]
    pub(crate) wait_s: u64,
}

/// Arguments of `fusee_status` and `fusee_cancel`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedRunArguments {
    /// Id of the run, or a unique prefix of it
    pub(crate) run: String,
    /// Directory of the run's project [default: where the server was started]
    pub(crate) directory: Option<PathBuf>,
}

/// Arguments of `fusee_reply`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplyArguments {
    /// Id of the ended run whose conversation is continued
    pub(crate) run: String,
    /// The next message of the conversation
    pub(crate) request: String,
    /// Directory of the run's project [default: where the server was started]
    pub(crate) directory: Option<PathBuf>,
    /// Seconds to wait for the result
    #[serde(default = "wait_s")]
    #[schemars(range(min = 0, max = 3600))]
    pub(crate) wait_s: u64,
}

/// Arguments of `fusee_answer`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerArguments {
    /// Id of the run
    pub(crate) run: String,
    /// Id of the call that the question is about [default: the oldest question]
    pub(crate) call: Option<String>,
    /// Whether the call may run, for an approval
    pub(crate) approve: Option<bool>,
    /// Answer to a question, or the reason of a refusal
    pub(crate) text: Option<String>,
    /// Directory of the run's project [default: where the server was started]
    pub(crate) directory: Option<PathBuf>,
    /// Seconds to wait for the result after answering
    #[serde(default)]
    #[schemars(range(min = 0, max = 3600))]
    pub(crate) wait_s: u64,
}

/// Arguments of `fusee_runs`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunsArguments {
    /// Directory of the project [default: where the server was started]
    pub(crate) directory: Option<PathBuf>,
    /// Maximum number of runs, newest first
    #[serde(default = "runs")]
    #[schemars(range(min = 1, max = 200))]
    pub(crate) limit: usize,
}

/// Arguments of `fusee_review`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReviewArguments {
    /// What to look at in particular
    pub(crate) request: Option<String>,
    /// Commit to compare with [default: review the whole project]
    pub(crate) base: Option<String>,
    /// Files or folders to review [default: all]
    #[serde(default)]
    pub(crate) paths: Vec<String>,
    /// Directory to work in [default: where the server was started]
    pub(crate) directory: Option<PathBuf>,
    /// Model, such as PROVIDER:MODEL [default: the configured one]
    pub(crate) model: Option<String>,
    /// Seconds to wait for the result
    #[serde(default = "wait_s")]
    #[schemars(range(min = 0, max = 3600))]
    pub(crate) wait_s: u64,
}
