//! File sources of a task's context, each a step: the command that lists files, and reading a listed file.
//!
//! Both use the model's tools with the same approval and sandbox. But a model reads in pages and sees both
//! output streams, while a template's files are included in full and only stdout lists them.

use std::sync::Arc;

use fusee_journal::{BoxFuture, RunAborted, StepKind, StepRequest};
use fusee_tools::{
    CallContext, CallLimits, InterruptedOutcome, NotShown, PreparedCall, RetrySafety, Secrets, SeenVersion,
    Tool, ToolDefinition, ToolOutput, read_whole,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::run_script::RunScript;
use crate::agent::ToolExecutor;

/// Maximum stdout size of a file-listing command.
pub(super) const LISTING_BYTES: usize = 256 * 1024;

/// The shell tool with stdout separate from stderr, and an output limit for file lists.
pub(super) struct ListingShell {
    shell: Arc<dyn Tool>,
    script: RunScript,
}

impl ListingShell {
    pub(super) fn new(shell: &Arc<dyn Tool>) -> Self {
        Self { shell: Arc::clone(shell), script: RunScript(Arc::clone(shell)) }
    }
}

impl Tool for ListingShell {
    fn definition(&self) -> &ToolDefinition {
        self.shell.definition()
    }

    fn repeat(&self) -> RetrySafety {
        self.shell.repeat()
    }

    fn prepare<'a>(
        &'a self,
        arguments: Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolOutput>> {
        self.script.prepare(arguments, context)
    }

    fn perform<'a>(&'a self, prepared: PreparedCall, context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let limits = CallLimits { output_head: LISTING_BYTES, ..context.limits };
            let context = CallContext { limits, ..context.clone() };
            self.script.perform(prepared, &context).await
        })
    }

    fn settle<'a>(
        &'a self,
        arguments: &'a Value,
        intent: &'a Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, InterruptedOutcome> {
        self.script.settle(arguments, intent, context)
    }
}

/// A listed file, as journaled.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ListedFile {
    ok: bool,
    /// The text, or why it cannot be included.
    pub(super) content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    seen: Vec<SeenVersion>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_shown: Option<SkipReason>,
}

/// Why a file is not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SkipReason {
    NotText,
    TooLarge,
    Unread,
}

impl ListedFile {
    /// Reads a file and removes known secrets.
    pub(super) async fn read(path: &str, most: usize, context: &CallContext, secrets: &Secrets) -> Self {
        let refused = |why, content| Self { ok: false, content, seen: Vec::new(), not_shown: Some(why) };
        match read_whole(path, most as u64, context).await {
            Ok(file) => {
                let mut content = file.text;
                secrets.remove_from(&mut content);
                Self { ok: true, content, seen: vec![file.seen], not_shown: None }
            }
            Err(NotShown::NotText(said)) => refused(SkipReason::NotText, said),
            Err(NotShown::TooLarge(bytes)) => refused(SkipReason::TooLarge, format!("it has {bytes} bytes")),
            Err(NotShown::Unread(said)) => refused(SkipReason::Unread, said),
        }
    }

    /// Reads a file as a step.
    pub(super) async fn step(
        calling: &ToolExecutor<'_>,
        path: &str,
        most: usize,
    ) -> Result<Self, RunAborted> {
        let call =
            StepRequest::new(calling.branch, StepKind::Tool, "read_file").with_args(json!({ "path": path }));
        let (context, secrets) = (calling.context("context"), &calling.session.secrets);
        let body = async move { Self::read(path, most, &context, secrets).await };
        Ok(calling.engine.step(call, body).await?.value)
    }

    /// Returns why the file is not included, if it is not.
    pub(super) fn not_shown(&self) -> Option<SkipReason> {
        self.not_shown.or((!self.ok).then_some(SkipReason::Unread))
    }
}
