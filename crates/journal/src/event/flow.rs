//! Payloads of the events about flows: located files, judged answers, reports on stages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::StageStatus;

/// Payload of [`super::Event::FilesLocated`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesLocated {
    /// Files to change, most likely first.
    pub files: Vec<LocatedFile>,
    /// Tests that matter for the request.
    pub tests: Vec<String>,
}

/// A file that the runtime located.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LocatedFile {
    /// Path, relative to the workspace.
    pub path: String,
    /// Why this file was chosen.
    pub reason: String,
}

/// Payload of [`super::Event::Sample`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Number of the answer, from 1.
    pub n: u32,
    /// Verdict: `passed`, `failed`, `unverified` (there is no verification), `duplicate`, `unchanged`,
    /// `not_parsed`, `no_edit`, `stopped` (another passed first) or `refused`.
    pub verdict: String,
    /// Why the answer was dropped, if the verdict does not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of the answer that this one repairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs: Option<u32>,
    /// Tests that passed, if the output of the verification says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<u32>,
    /// Tests that failed, if the output of the verification says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u32>,
    /// Tokens of its request and its reply.
    #[serde(default)]
    pub tokens: u64,
    /// Time that the answer and its verification took, in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
}

/// Payload of [`super::Event::FlowStageReport`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowStageReport {
    /// Name of the stage.
    pub stage: String,
    /// Display name of the stage.
    pub label: String,
    /// Outcome of the stage.
    pub status: StageStatus,
    /// Number of attempts made.
    pub attempts: u32,
    /// Files that were actually read in the stage, sorted by path.
    pub files_read: Vec<String>,
    /// Files changed by the stage, sorted by path.
    pub files_changed: Vec<String>,
    /// Short summary of the outcome.
    pub summary: String,
    /// Payload the model passed to `flow_stage_done`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
}
