//! Results on disk: one line of `results.jsonl` per trial, and the files of a trial's folder.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fusee::engine::run::FailureClass;
use serde::{Deserialize, Serialize};

/// Result of a trial: one attempt of one variant at one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialResult {
    /// The case, by the name of its folder.
    pub case: String,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Tries used.
    pub tries: u32,
    /// Whether the tests pass after the last try.
    pub passed: bool,
    /// Reward of the last try; 0 or 1 where the tests give none.
    pub reward: f64,
    /// Class of the failure of the last run or of its tests, if there was one.
    pub cause: Option<FailureClass>,
    /// Model, as given.
    pub model: String,
    /// Flow that was used.
    pub flow: String,
    /// Replies of the model.
    pub turns: u32,
    /// Input and output tokens.
    pub tokens: u64,
    /// Cost in US dollars; null if the price is not known.
    pub cost_usd: Option<f64>,
    /// Working time of the runs, without the tests.
    pub seconds: f64,
    /// Id of the last run.
    pub run: String,
    /// What failed, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Agent file, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Language of the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Runs of all tries, in order.
    #[serde(default)]
    pub runs: Vec<String>,
    /// Part of `tokens` that the model wrote.
    #[serde(default)]
    pub output_tokens: u64,
    /// Calls that the model requested, including refused ones.
    #[serde(default)]
    pub tool_calls: u32,
    /// Failed tool calls by tool.
    #[serde(default)]
    pub tool_errors: BTreeMap<String, u32>,
    /// Whether the last tests were stopped at their time limit.
    #[serde(default)]
    pub test_timeout: bool,
    /// Tool calls whose arguments could not be read.
    #[serde(default)]
    pub malformed_calls: u32,
    /// Questions to the user, all of them unanswered.
    #[serde(default)]
    pub user_asks: u32,
    /// Comments in the changes that stand for code that was left out.
    #[serde(default)]
    pub lazy_comments: u32,
    /// Syntax errors in the output of the last tests.
    #[serde(default)]
    pub syntax_errors: u32,
    /// Indentation errors in the output of the last tests.
    #[serde(default)]
    pub indentation_errors: u32,
    /// Position of the variant in the job, from 0.
    #[serde(default)]
    pub variant: usize,
}

impl TrialResult {
    /// Whether the result counts as a measurement.
    pub fn is_graded(&self) -> bool {
        self.cause.is_none_or(FailureClass::is_graded)
    }

    /// Model, flow and agent, as a name for tables.
    pub fn label(&self) -> String {
        let agent = self.agent.as_deref().map(|agent| format!(" · {agent}")).unwrap_or_default();
        format!("{} · {}{agent}", self.model, self.flow)
    }
}

/// Why a folder of results cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {message}", file.display())]
pub struct ResultsError {
    file: PathBuf,
    message: String,
}

/// Reads the results of a job: its folder, or a `results.jsonl`. A last line without its end is left out: a job that is
/// killed may leave one, and `fusee bench resume` writes it again.
pub fn read(path: &Path) -> Result<Vec<TrialResult>, ResultsError> {
    let file = if path.is_dir() { path.join("results.jsonl") } else { path.to_owned() };
    let fault = |message: String| ResultsError { file: file.clone(), message };
    let text = fs::read_to_string(&file).map_err(|error| fault(error.to_string()))?;
    let mut results = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str(line) {
            Ok(result) => results.push(result),
            Err(_) if !text.ends_with('\n') && number + 1 == text.lines().count() => {}
            Err(error) => return Err(fault(format!("line {}: {error}", number + 1))),
        }
    }
    Ok(results)
}

/// Renders results as `results.jsonl`.
pub(crate) fn to_lines(results: &[TrialResult]) -> String {
    results.iter().filter_map(|result| serde_json::to_string(result).ok()).map(|line| line + "\n").collect()
}

/// Writes a file completely or not at all.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = folder.join(name);
    fs::write(&partial, content)?;
    fs::rename(partial, path)
}

/// Writes a value as indented JSON.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
    text.push('\n');
    write_whole(path, text.as_bytes())
}
