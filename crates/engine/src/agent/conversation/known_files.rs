//! The files that the model knows: their content when it last saw them, the reads it has been sent, and the
//! files present at the start.

use fusee_journal::{RunAborted, StepKind, StepRequest};
use fusee_model::{Message, ToolCall, ToolFormat};
use fusee_tools::{ToolOutput, Workspace};
use serde::{Deserialize, Serialize};

use super::carry_over::PriorConversation;
use super::external_changes::FileSnapshot;
use crate::agent::execution::Execution;
use crate::agent::flow::SampleResult;
use crate::agent::tool_calls::read_cache::SentReads;

/// Maximum number of listed files: the grammar grows with them, and in a large tree the model has to search
/// anyway.
const FEW: usize = 40;

/// Files as the model knows them.
#[derive(Debug, Default)]
pub(crate) struct KnownFiles {
    /// Contents the model has seen or made.
    pub(crate) seen: FileSnapshot,
    /// Changes made by others that were reported to the model.
    pub(crate) reported: FileSnapshot,
    /// Texts the model has been sent.
    reads: SentReads,
    /// Files present at the start, if the grammar restricts paths to them.
    listed: Option<Vec<WorkspaceFile>>,
    /// The files the task is about, if the runtime searched for them.
    pub(crate) targets: Vec<String>,
    /// Their texts as the model was shown them, in the same order.
    pub(crate) target_texts: Vec<String>,
    /// Number of edits taken from answers so far.
    pub(crate) answer_edits: u32,
    /// Result of the answer, if it is one of several samples.
    pub(crate) sample: SampleResult,
}

/// A file present at the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkspaceFile {
    pub(crate) path: String,
    pub(crate) bytes: u64,
}

impl KnownFiles {
    /// The files known from an earlier conversation.
    pub(crate) fn new(earlier: &PriorConversation) -> Self {
        Self { seen: earlier.known.clone(), reported: earlier.reported.clone(), ..Self::default() }
    }

    /// Lists the files as a step, if replies follow a grammar and the files are few.
    pub(crate) async fn list(&mut self, run: &mut Execution<'_>) -> Result<(), RunAborted> {
        if run.session().model.dialect().traits.tool_format != ToolFormat::Schema {
            return Ok(());
        }
        let call = StepRequest::new(&run.task.branch, StepKind::Environment, "files");
        let workspace = run.session().workspace.clone();
        let body =
            async move { tokio::task::spawn_blocking(move || listed(&workspace)).await.unwrap_or_default() };
        let recorded = run.engine().step(call, body).await?;
        run.meter.record(&recorded);
        let files: Vec<WorkspaceFile> = recorded.value;
        self.listed = (1..=FEW).contains(&files.len()).then_some(files);
        Ok(())
    }

    /// The files present at the start, if they restrict the paths.
    pub(crate) fn listed(&self) -> Option<&[WorkspaceFile]> {
        self.listed.as_deref()
    }

    /// Whether files are listed and none exceeds `bytes`.
    pub(crate) fn all_smaller_than(&self, bytes: u64) -> bool {
        self.listed.as_ref().is_some_and(|files| files.iter().all(|file| file.bytes <= bytes))
    }

    /// Replaces the text of a repeated read by a reference, if `messages` still contain the text. Returns
    /// whether it did.
    pub(crate) fn dedup_read(
        &mut self,
        call: &ToolCall,
        output: &mut ToolOutput,
        messages: &[Message],
    ) -> bool {
        self.reads.dedup(call, output, messages)
    }

    /// Whether `messages` contain a result with the full text of a file.
    pub(crate) fn is_full_text_in(&self, path: &str, messages: &[Message]) -> bool {
        let Some((call, at)) = self.reads.whole(path) else { return false };
        messages
            .get(at)
            .is_some_and(|message| matches!(message, Message::Tool { call_id, .. } if call_id == call))
    }
}

fn listed(workspace: &Workspace) -> Vec<WorkspaceFile> {
    let bytes =
        |path: &str| std::fs::metadata(workspace.root().join(path)).map_or(u64::MAX, |file| file.len());
    let files = workspace.files(FEW + 1).into_iter();
    files.map(|path| WorkspaceFile { bytes: bytes(&path), path }).collect()
}

#[cfg(test)]
mod tests;
