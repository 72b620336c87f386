//! The code reviewer: what it is told, what it is shown of a project, and what its findings must be.
//!
//! A review is a run like any other, in review mode and with a prompt of sections. [`material`] is what the runtime
//! looks up for it, as one step; [`prompt`] puts that into sections; [`finding`] checks the answer against the files;
//! [`report`] writes it for people and programs.

mod finding;
mod material;
mod prompt;
mod report;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use finding::{Finding, Findings, FindingsCheck, Severity, findings_schema};
pub(crate) use material::{Material, Place};
pub use prompt::CodeReviewTask;
pub(crate) use prompt::{OVERRIDABLE, disclosure};
pub use report::Format;

/// What is reviewed, and how it is reported: part of a run's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CodeReview {
    /// Files and folders to look at, from the workspace; all if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// A revision: the review is about what changed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// What to look for above all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// Folders with documents to review against.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<PathBuf>,
    /// How the findings are written.
    pub format: Format,
    /// Findings of this severity or above make the run fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_on: Option<Severity>,
}

impl CodeReview {
    /// What is asked if nobody says anything else.
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
