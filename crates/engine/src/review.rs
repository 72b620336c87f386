//! The code reviewer: its prompt, its view of the project, and the checks on its findings.
//!
//! A review is an ordinary run in review mode with a sectioned prompt. `review_context` collects its context in
//! one step, `prompt` puts it into sections, `finding` checks the answer against the files, and
//! `report` formats it for users and programs.

mod finding;
mod prompt;
mod report;
mod review_context;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use finding::{Finding, FindingSeverity, Findings, FindingsCheck, findings_schema};
pub use prompt::CodeReviewTask;
pub(crate) use prompt::sectioned_prompt;
pub use report::FindingsFormat;
pub(crate) use review_context::{ReviewContext, ReviewSources};

/// Scope and output of a review; part of a run's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CodeReview {
    /// Files and folders to review, relative to the workspace; everything if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Base revision; the review covers the changes since then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Main focus of the review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// Folders with documents to review against.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<PathBuf>,
    /// Output format of the findings.
    pub format: FindingsFormat,
    /// Severity at or above which findings make the run fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_on: Option<FindingSeverity>,
}

impl CodeReview {
    /// Returns the default request.
    pub fn request(&self) -> String {
        let what = if self.paths.is_empty() { "this project".to_owned() } else { self.paths.join(", ") };
        match &self.base {
            Some(base) => format!("Review what changed in {what} since `{base}`."),
            None => format!("Review {what}."),
        }
    }
}

#[cfg(test)]
mod tests;
