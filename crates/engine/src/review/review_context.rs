//! Context collected before a review starts: project digest, reference documents, and the diff since a
//! revision. It is journaled as one step, so a replay sees what the model saw, even if the project has
//! changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fusee_tools::{CallContext, CallLimits, Tool, Workspace};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::CodeReview;
use crate::prompt::{self, Document, workspace_digest};

/// Maximum size of the diff shown; the model can read the files for the rest.
const DIFF_BYTES: usize = 64 * 1024;

/// Folder of the project's own reference documents.
const REFERENCE: &str = ".fusee/reference";

/// Context shown to the reviewer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReviewContext {
    pub(crate) digest: String,
    #[serde(default)]
    pub(crate) references: Vec<Document>,
    #[serde(default)]
    pub(crate) diff: Option<String>,
    /// Files that git does not track, which no diff shows; listed only beside a diff.
    #[serde(default)]
    pub(crate) untracked: Option<String>,
    /// Why the review cannot be done.
    #[serde(default)]
    pub(crate) problem: Option<String>,
}

/// Inputs for collecting the context.
pub(crate) struct ReviewSources {
    pub(crate) directory: PathBuf,
    /// Path of the digest cache.
    pub(crate) digests: PathBuf,
    pub(crate) branch: Option<String>,
    pub(crate) workspace: Arc<Workspace>,
    /// Runs git, sandboxed like any command.
    pub(crate) shell: Option<Arc<dyn Tool>>,
    pub(crate) cancel: CancellationToken,
}

impl ReviewContext {
    /// Collects the context of a review.
    pub(crate) async fn gather(review: &CodeReview, place: &ReviewSources) -> Self {
        let root = &place.directory;
        let missing: Vec<String> = review
            .paths
            .iter()
            .filter(|path| !root.join(path).exists())
            .map(|path| format!("`{path}`"))
            .collect();
        if !missing.is_empty() {
            let problem = format!("no such path: {} in {}", missing.join(", "), root.display());
            return Self { problem: Some(problem), ..Self::default() };
        }
        let diff = match &review.base {
            None => None,
            Some(base) => match place.git(&diff_arguments(base, &review.paths)).await {
                Ok(diff) => Some(shortened(diff)),
                Err(problem) => {
                    let problem = format!("cannot diff against `{base}`: {problem}");
                    return Self { problem: Some(problem), ..Self::default() };
                }
            },
        };
        let untracked = match &diff {
            None => None,
            Some(_) => place.git(&untracked_arguments(&review.paths)).await.ok().map(first_lines),
        };
        let changed = match &place.branch {
            Some(_) => place.git("status --porcelain").await.ok(),
            None => None,
        };
        let folders: Vec<PathBuf> = std::iter::once(Path::new(REFERENCE).to_owned())
            .chain(review.references.iter().cloned())
            .map(|folder| root.join(folder))
            .collect();
        Self {
            digest: workspace_digest(
                root,
                Some(&place.digests),
                place.branch.as_deref(),
                changed.map(first_lines).as_deref(),
            ),
            references: prompt::references(&folders),
            diff,
            untracked: untracked.filter(|listed| !listed.is_empty()),
            problem: None,
        }
    }

    /// Whether the review is of changes and there are none.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.diff.as_ref().is_some_and(|diff| diff.trim().is_empty()) && self.untracked.is_none()
    }
}

impl ReviewSources {
    /// Runs git and returns its output. Programs named in the repository's configuration are not run.
    async fn git(&self, arguments: &str) -> Result<String, String> {
        let shell = self.shell.as_ref().ok_or("commands are not available")?;
        let command = format!("git -c core.fsmonitor=false -c color.ui=false --no-pager {arguments} 2>&1");
        let context = CallContext {
            workspace: Arc::clone(&self.workspace),
            call_id: "review".to_owned(),
            cancel: self.cancel.child_token(),
            progress: Arc::new(|_| {}),
            limits: CallLimits { output_head: DIFF_BYTES, output_tail: 1024, ..CallLimits::default() },
            trace_parent: None,
        };
        let output = match shell.prepare(json!({ "command": command }), &context).await {
            Ok(prepared) => shell.perform(prepared, &context).await,
            Err(answer) => answer,
        };
        let text = output.content;
        let said =
            text.rsplit_once("[exit code").map_or(text.as_str(), |(said, _)| said).trim_end().to_owned();
        // What the tool says of a command without output.
        let said = if said == "(no output)" { String::new() } else { said };
        if output.exit_code == Some(0) { Ok(said) } else { Err(first_lines(said).trim_end().to_owned()) }
    }
}

fn diff_arguments(base: &str, paths: &[String]) -> String {
    let paths: String = paths.iter().map(|path| format!(" {}", quoted(path))).collect();
    format!("diff --no-ext-diff --no-textconv --end-of-options {} --{paths}", quoted(base))
}

fn untracked_arguments(paths: &[String]) -> String {
    let paths: String = paths.iter().map(|path| format!(" {}", quoted(path))).collect();
    format!("ls-files --others --exclude-standard --{paths}")
}

/// Quotes one word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn shortened(mut diff: String) -> String {
    if diff.len() > DIFF_BYTES {
        let mut end = DIFF_BYTES;
        while !diff.is_char_boundary(end) {
            end -= 1;
        }
        diff.truncate(end);
        diff.push_str("\n[cut here: read the files for the rest]");
    }
    diff
}

/// Keeps the first lines of a long listing.
fn first_lines(text: String) -> String {
    let most = 40;
    let lines = text.lines().count();
    if lines <= most {
        return text;
    }
    let first: String = text.lines().take(most).map(|line| format!("{line}\n")).collect();
    format!("{first}and {} more", lines - most)
}
