//! Actions of the runtime itself within a task: reading files for the model, running commands, applying edits
//! found in an answer. Each one is a journal step and emits events; none counts as a call of the model.

use std::sync::Arc;

use fusee_journal::event::CallFate;
use fusee_journal::{RunAborted, StepKind, StepRequest};
use fusee_model::ToolCall;
use fusee_tools::{SeenVersion, Tool, ToolOutput};
use serde_json::{Value, json};

use crate::agent::conversation::Conversation;
use crate::agent::conversation::known_files::KnownFiles;
use crate::agent::execution::Execution;
use crate::agent::flow::{
    Feedback, FlowEditFormat, FlowState, PreloadedFile, RuntimeAction, edits, read_before, render_before,
};
use crate::agent::tool_calls::call_gate::{self, CallHistory};
use crate::agent::tool_calls::call_hooks::{self, Admission};
use crate::agent::tool_calls::tool_executor::CallRecord;
use crate::agent::tool_calls::{emit_call, emit_result};

/// Feedback kind for edits in an answer that could not be applied.
pub(crate) const EDIT_REFUSED: &str = "edit_refused";

/// How to treat the files changed by a command of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileEffects {
    /// Part of the work.
    Recorded,
    /// Side effects of a check, such as caches and logs.
    Ignored,
}

/// The parts of a task that the runtime acts on.
pub(crate) struct RuntimeActions<'a, 't> {
    pub(crate) run: &'a mut Execution<'t>,
    pub(crate) flow: &'a mut FlowState,
    pub(crate) files: &'a mut KnownFiles,
    pub(crate) conversation: &'a mut Conversation<'t>,
}

impl RuntimeActions<'_, '_> {
    /// Runs the configured preparation before the first model request, and inserts its output before the
    /// request.
    pub(crate) async fn preload(&mut self) -> Result<(), RunAborted> {
        let before = &self.run.task.rules.before;
        let mut pieces = Vec::new();
        if !before.read.is_empty() {
            let materials = self.read_for_model(&before.read).await?;
            if !materials.is_empty() {
                pieces.push(format!("The files:\n\n{}", render_before(&materials)));
            }
            let targets = materials.into_iter().filter(|file| file.target);
            (self.files.targets, self.files.target_texts) =
                targets.map(|file| (file.path, file.text)).unzip();
        }
        if let Some(command) = &before.run {
            let output = self.run_command("before-run", command, FileEffects::Recorded).await?;
            pieces.push(format!("`{command}` says:\n\n{}", output.content.trim_end()));
        }
        if !pieces.is_empty() {
            self.conversation.insert_before_request(pieces);
        }
        Ok(())
    }

    /// Runs a configured command after the work. It does not affect how the task ended.
    pub(crate) async fn run_after(&mut self, after: &RuntimeAction) -> Result<(), RunAborted> {
        if let Some(command) = &after.run {
            self.run_command("after-run", command, FileEffects::Recorded).await?;
        }
        Ok(())
    }

    async fn read_for_model(&mut self, named: &[String]) -> Result<Vec<PreloadedFile>, RunAborted> {
        let task = self.run.task;
        let call = StepRequest::new(&task.branch, StepKind::Environment, "before")
            .with_args(json!({ "read": named }));
        let request = task.rules.request.as_ref().unwrap_or(&task.request).clone();
        let (workspace, named) = (task.session.workspace.clone(), named.to_vec());
        let located = task.rules.located.clone();
        let body = async move {
            let read = tokio::task::spawn_blocking(move || {
                read_before(&named, &request, located.as_deref(), &workspace)
            })
            .await;
            read.unwrap_or_default()
        };
        let recorded = self.run.engine().step(call, body).await?;
        self.run.meter.record(&recorded);
        let mut materials: Vec<PreloadedFile> = recorded.value;
        let repaired = task.rules.sample.as_ref().and_then(|sample| sample.repaired.as_ref());
        let proposed = repaired.map(|repaired| &repaired.files);
        for (n, file) in materials.iter().enumerate() {
            let call = ToolCall {
                id: format!("before-{}", n + 1),
                name: "read_file".to_owned(),
                arguments: json!({ "path": file.path }).to_string(),
            };
            emit_call(self.run, &call);
            let seen = SeenVersion { path: file.path.clone(), hash: file.hash };
            let output = ToolOutput { seen: vec![seen], truncated: file.cut, ..ToolOutput::done(&file.text) };
            self.run.session().workspace.record_output(&output);
            self.files.seen.learn(&output);
            self.flow.facts.record_read(&file.path);
            emit_result(self.run, &call, &CallRecord::plain(output), 0);
        }
        // A repair is shown the answer that it repairs.
        proposed
            .into_iter()
            .flatten()
            .for_each(|(path, text)| PreloadedFile::replace(&mut materials, path, text));
        Ok(materials)
    }

    /// Applies the edits in an answer, if the edit format puts them there. Returns failures as feedback for
    /// the model.
    pub(crate) async fn take_edits(&mut self, answer: &str) -> Result<Option<Feedback>, RunAborted> {
        let rules = &self.run.task.rules;
        if rules.edit_format == FlowEditFormat::Tools {
            return Ok(None);
        }
        let edits = match edits(answer, rules.edit_format, &self.files.targets) {
            Ok(edits) => edits,
            // Once files have changed, an answer in prose is acceptable.
            Err(_) if self.flow.facts.has_changes() && !rules.one_answer => return Ok(None),
            Err(text) => return Ok(Some(Feedback { text, kind: "no_edit" })),
        };
        let mut problems = Vec::new();
        for edit in edits {
            if self.run.session().toolbox.find(edit.tool).is_none() {
                continue;
            }
            self.files.answer_edits += 1;
            let id = format!("answer-{}", self.files.answer_edits);
            let output = self.make(&id, edit.tool, edit.arguments, FileEffects::Recorded).await?;
            problems.extend((!output.ok).then_some(output.content));
        }
        let text = problems.join("\n");
        Ok((!text.is_empty()).then_some(Feedback { text, kind: EDIT_REFUSED }))
    }

    /// Runs a command: sandboxed, as a step, reported in the events, and not counted as a call of the model.
    pub(crate) async fn run_command(
        &mut self,
        id: &str,
        command: &str,
        effects: FileEffects,
    ) -> Result<ToolOutput, RunAborted> {
        self.make(id, "shell", json!({ "command": command }), effects).await
    }

    /// Makes a call, after the user's approval if that is required.
    pub(crate) async fn make(
        &mut self,
        id: &str,
        name: &str,
        arguments: Value,
        effects: FileEffects,
    ) -> Result<ToolOutput, RunAborted> {
        let run = &mut *self.run;
        let call = ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_string() };
        let Some(tool) = run.session().toolbox.find(name) else {
            return Ok(ToolOutput::error("There is no shell to run it with."));
        };
        emit_call(run, &call);
        let calls = self.flow.facts.calls_run();
        let history = CallHistory { calls, explanation: self.conversation.explanation() };
        let arguments = match call_gate::admit(run, history, &call, &**tool, arguments).await? {
            Admission::Run { arguments, .. } => arguments,
            Admission::Refused(refusal) => {
                emit_result(run, &call, &refusal, 0);
                return Ok(refusal.output);
            }
        };
        self.perform(&call, tool, arguments, effects).await
    }

    /// Performs an admitted call and reports its result.
    pub(crate) async fn perform(
        &mut self,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        arguments: Value,
        effects: FileEffects,
    ) -> Result<ToolOutput, RunAborted> {
        let (run, id, name) = (&mut *self.run, call.id.as_str(), call.name.as_str());
        let (mut called, mut recorded) = run.runtime_executor().make(id, tool, arguments.clone()).await?;
        run.meter.record(&recorded);
        run.session().workspace.record_output(&called.output);
        if called.fate == Some(CallFate::Interrupted) && name == "shell" {
            if effects == FileEffects::Recorded {
                self.flow.facts.record_changes(&called.output);
            }
            // These commands are checks, so an interrupted one can be repeated.
            (called, recorded) = run.runtime_executor().make(id, tool, arguments.clone()).await?;
            run.meter.record(&recorded);
            run.session().workspace.record_output(&called.output);
        }
        if name != "shell" {
            let executor = run.runtime_executor();
            call_hooks::after(&executor, id, &**tool, &arguments, &mut called, Vec::new()).await?;
        }
        match effects {
            FileEffects::Recorded => {
                self.flow.facts.commands |= name == "shell";
                self.flow.facts.record_changes(&called.output);
                self.files.seen.learn(&called.output);
            }
            FileEffects::Ignored => {
                called.output.changed.clear();
                // The result only counts if the tests were the originals all the time.
                called.output.ok &= called.protected.is_empty();
            }
        }
        emit_result(run, call, &called, recorded.duration_ms);
        Ok(called.output)
    }
}
