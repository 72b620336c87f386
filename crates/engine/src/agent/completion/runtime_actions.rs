//! Actions of the runtime itself within a task: reading files for the model, running commands, applying edits
//! found in an answer. Each one is a journal step and emits events; none counts as a call of the model.

use fusee_journal::event::{ErrorCode, ErrorDetail};
use fusee_journal::{RunAborted, StepKind, StepRequest};
use fusee_model::{Message, ToolCall};
use fusee_tools::{SeenVersion, ToolOutput};
use serde_json::json;

use crate::agent::completion::verification::FileEffects;
use crate::agent::flow::{Feedback, FlowEditFormat, PreloadedFile, edits, read_before, shown_before};
use crate::agent::machine::TaskEnd;
use crate::agent::runner::TaskRunner;
use crate::agent::tool_calls::tool_executor::CallRecord;

/// Feedback kind for edits in an answer that could not be applied.
pub(crate) const EDIT_REFUSED: &str = "edit_refused";

impl TaskRunner<'_> {
    /// Runs the configured preparation before the first model request. Its output is inserted before the
    /// request text, because small models follow best what comes last.
    pub(crate) async fn run_preload(&mut self) -> Result<(), RunAborted> {
        let before = self.task.rules.before.clone();
        let mut pieces = Vec::new();
        if !before.read.is_empty() {
            let materials = self.read_for_model(&before.read).await?;
            if !materials.is_empty() {
                pieces.push(format!("The files:\n\n{}", shown_before(&materials)));
            }
            self.targets = materials.into_iter().filter(|file| file.target).map(|file| file.path).collect();
        }
        if let Some(command) = &before.run {
            let output = self.run_command("before-run", command, FileEffects::Counted).await?;
            pieces.push(format!("`{command}` says:\n\n{}", output.content.trim_end()));
        }
        if !pieces.is_empty() {
            let mut messages = self.conversation.messages().to_vec();
            if let Some(Message::User { text }) = messages.last_mut() {
                pieces.push(std::mem::take(text));
                *text = pieces.join("\n\n");
            }
            self.conversation.rewrite(messages);
        }
        Ok(())
    }

    /// Runs the configured command after the task. It does not affect how the task ended.
    pub(crate) async fn run_postload(&mut self) -> Result<(), RunAborted> {
        if let Some(command) = self.task.rules.after.run.clone() {
            self.run_command("after-run", &command, FileEffects::Counted).await?;
        }
        Ok(())
    }

    async fn read_for_model(&mut self, named: &[String]) -> Result<Vec<PreloadedFile>, RunAborted> {
        let call = StepRequest::new(&self.task.branch, StepKind::Environment, "before")
            .with_args(json!({ "read": named }));
        let request = self.task.rules.request.clone().unwrap_or_else(|| self.task.request.clone());
        let (workspace, named) = (self.session().workspace.clone(), named.to_vec());
        let body = async move {
            let read = tokio::task::spawn_blocking(move || read_before(&named, &request, &workspace)).await;
            read.unwrap_or_default()
        };
        let recorded = self.engine().step(call, body).await?;
        self.passed(&recorded);
        let materials: Vec<PreloadedFile> = recorded.value;
        for (n, file) in materials.iter().enumerate() {
            let call = ToolCall {
                id: format!("before-{}", n + 1),
                name: "read_file".to_owned(),
                arguments: json!({ "path": file.path }).to_string(),
            };
            self.emit_call(&call);
            let seen = SeenVersion { path: file.path.clone(), hash: file.hash };
            let output = ToolOutput { seen: vec![seen], truncated: file.cut, ..ToolOutput::done(&file.text) };
            self.session().workspace.record_output(&output);
            self.known.learn(&output);
            self.facts.read(&file.path);
            self.emit_result(&call, &CallRecord::plain(output), 0);
        }
        Ok(materials)
    }

    /// Applies the edits in the last answer, if the edit format puts them there. Returns failures as feedback
    /// for the model.
    pub(crate) async fn take_edits(&mut self) -> Result<Option<Feedback>, RunAborted> {
        let format = self.task.rules.edit_format;
        if format == FlowEditFormat::Tools {
            return Ok(None);
        }
        let edits = match edits(&self.turns.answer, format, &self.targets) {
            Ok(edits) => edits,
            // Once files have changed, an answer in prose is acceptable.
            Err(_) if self.facts.has_changes() && !self.task.rules.one_answer => return Ok(None),
            Err(text) => return Ok(Some(Feedback { text, sort: "no_edit" })),
        };
        let mut complaints = Vec::new();
        for edit in edits {
            let Some(tool) = self.session().toolbox.find(edit.tool).cloned() else { continue };
            self.answer_edits += 1;
            let call = ToolCall {
                id: format!("answer-{}", self.answer_edits),
                name: edit.tool.to_owned(),
                arguments: edit.arguments.to_string(),
            };
            self.emit_call(&call);
            if let Some(refusal) = self.gate(&call, &*tool, &edit.arguments).await? {
                complaints.push(refusal.output.content.clone());
                self.emit_result(&call, &refusal, 0);
                continue;
            }
            let (called, recorded) = self.runtime_executor().make(&call.id, &tool, edit.arguments).await?;
            self.passed(&recorded);
            self.session().workspace.record_output(&called.output);
            self.known.learn(&called.output);
            self.facts.changed_by_runtime(&called.output);
            if !called.output.ok {
                complaints.push(called.output.content.clone());
            }
            self.emit_result(&call, &called, recorded.duration_ms);
        }
        let text = complaints.join("\n");
        Ok((!text.is_empty()).then_some(Feedback { text, sort: EDIT_REFUSED }))
    }

    /// Ends a task that allows a single answer after that answer was rejected.
    pub(crate) fn reject_final(&mut self, feedback: Feedback) -> TaskEnd {
        self.facts.fed_back(feedback.sort);
        let error = ErrorDetail {
            code: ErrorCode::TurnFailed,
            reason: "output_format_failure".to_owned(),
            message: feedback.text,
        };
        let reason =
            if feedback.sort == "verify_failed" { "tool_execution_error" } else { error.reason.as_str() };
        let error = ErrorDetail { reason: reason.to_owned(), ..error };
        TaskEnd::Failed { error, unreachable: false }
    }
}
