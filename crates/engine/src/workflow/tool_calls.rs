//! Tool calls of a program: the same approval, intents and settling as a model's calls, with a result in the
//! language's form.

use std::sync::Arc;

use fusee_journal::event::{CallFate, Event, ToolResult};
use fusee_journal::{RunAborted, StepKind};
use fusee_lang::{ResumeInput, Status, TaskResult, ToolEffect};
use fusee_tools::tool::arguments;
use fusee_tools::{RetrySafety, Tool, ToolOutput};
use serde_json::{Map, Value as Json, json};

use super::driver::{EffectAnswer, WorkflowDriver};
use crate::agent::{Admission, CallRecord, ReviewRuling, ToolExecutor, call_hooks, change_of};
use crate::approval::{ApprovalDecision, ApprovalMode};
use crate::hook::HookOutcome;
use crate::task_system::run_script::{self, RunScript};

impl WorkflowDriver<'_> {
    pub(super) async fn tool(&mut self, call: ToolEffect) -> Result<EffectAnswer, RunAborted> {
        let call_id = format!("{}:{}", self.branch, self.effects);
        let ToolEffect { name, arguments } = call;
        let asked = Json::Object(arguments);
        let (id, tool_name) = (call_id.clone(), name.to_string());
        self.emit(Event::ToolCall { call_id: id, name: tool_name, arguments: asked.clone() });
        let left_ms = self.budget.left_ms(self.active_ms);
        let (called, recorded) = {
            let calling = ToolExecutor {
                kind: StepKind::Tool,
                protected: None,
                image_bytes: 0,
                session: &self.context.session,
                engine: &self.context.engine,
                branch: &self.branch,
                cancel: &self.cancel,
                left_ms,
            };
            match self.find(&name, &asked) {
                Err(problem) => {
                    let refused = CallRecord::ended(ToolOutput::error(problem), CallFate::Refused);
                    calling.answer(&name, asked, refused).await?
                }
                Ok((tool, arguments)) => {
                    let name = &tool.definition().name;
                    let decide =
                        |arguments: &Json, hooks: &HookOutcome| self.decide(&*tool, arguments, hooks);
                    match Box::pin(call_hooks::admit(&calling, &call_id, &*tool, arguments, &decide)).await? {
                        Admission::Refused(refusal) => calling.answer(name, asked, refusal).await?,
                        Admission::Run { arguments, context, .. } => {
                            let (mut called, meta) = calling.make(&call_id, &tool, arguments.clone()).await?;
                            call_hooks::after(&calling, &call_id, &*tool, &arguments, &mut called, context)
                                .await?;
                            (called, meta)
                        }
                    }
                }
            }
        };
        self.passed(&recorded);
        let CallRecord { output, fate, .. } = called;
        let aborted = fate == Some(CallFate::Aborted) || (output.aborted && fate.is_none());
        let fate = fate.or(aborted.then_some(CallFate::Aborted));
        match fate {
            Some(CallFate::Refused) => self.facts.record_refusal(&name),
            _ => self.facts.record_call(&name, &output),
        }
        self.conclude(&call_id, &output, fate, recorded.duration_ms);
        if aborted && self.budget.left_ms(self.active_ms) != Some(0) {
            return Ok(EffectAnswer::Cancelled);
        }
        Ok(EffectAnswer::Go(ResumeInput::Reply(reply(&name, output, fate))))
    }

    /// Returns the tool and its parsed arguments, or what is wrong with the call.
    fn find(&self, name: &str, arguments: &Json) -> Result<(Arc<dyn Tool>, Json), String> {
        let toolbox = &self.context.session.toolbox;
        let tool: Arc<dyn Tool> = match toolbox.find(name) {
            Some(tool) => Arc::clone(tool),
            None if name == run_script::definition().name => {
                let shell = toolbox.find("shell").ok_or("commands are not available in this run")?;
                Arc::new(RunScript(Arc::clone(shell)))
            }
            None => {
                let names = toolbox.definitions().map(|definition| definition.name.as_ref());
                let near = fusee_text::suggest::did_you_mean(name, names).unwrap_or_default();
                return Err(format!("unknown tool `{name}`; {near}"));
            }
        };
        let arguments = arguments::parse(&arguments.to_string(), tool.definition())?;
        Ok((tool, arguments))
    }

    /// Decides about a call by the approval policy and what the hooks said.
    fn decide(&self, tool: &dyn Tool, arguments: &Json, hooks: &HookOutcome) -> ApprovalDecision {
        let definition = tool.definition();
        let session = &self.context.session;
        let in_force = session.policy_at(&self.branch, self.context.engine.position(&self.branch));
        let decided = session.approval.rules.decide(&definition.name, arguments);
        let policy = in_force.decide(definition.category, tool.repeat() == RetrySafety::Never);
        let policy = policy.allowed_by_hook(hooks.decision).with_rules(decided, in_force.approve);
        // Nobody explains a workflow's call or counts it, so review mode only asks whether it may run at all.
        let policy =
            match session.review.as_ref().map(|it| it.decide(&definition.name, definition.category, 0)) {
                None | Some(ReviewRuling::Allowed) => policy,
                Some(ReviewRuling::AskFirst) if in_force.approve != ApprovalMode::Never => {
                    ApprovalDecision::Ask("a review is read-only; other calls need approval".to_owned())
                }
                Some(_) => ApprovalDecision::Deny("a review or plan mode changes nothing".to_owned()),
            };
        policy.asked_by_hook(hooks, in_force.approve)
    }

    /// Emits the events of a result and updates the workspace.
    fn conclude(&mut self, call_id: &str, output: &ToolOutput, fate: Option<CallFate>, duration_ms: u64) {
        self.context.session.workspace.record_output(output);
        for change in &output.changed {
            if let Some(kind) = change_of(change) {
                self.emit(Event::FileChanged { path: change.path.clone(), change: kind });
            }
        }
        self.emit(Event::ToolResult(ToolResult {
            call_id: call_id.to_owned(),
            ok: output.ok,
            content: output.content.clone(),
            truncated: output.truncated,
            duration_ms,
            exit_code: output.exit_code,
            fate,
        }));
    }
}

/// Converts a tool's output to a result.
fn reply(name: &str, output: ToolOutput, fate: Option<CallFate>) -> TaskResult {
    let mut notes = Map::new();
    notes.insert("execution_path".to_owned(), "tool".into());
    notes.insert("tool".to_owned(), name.into());
    if let Some(code) = output.exit_code {
        notes.insert("exit_code".to_owned(), code.into());
    }
    if output.truncated {
        notes.insert("truncated".to_owned(), true.into());
    }
    let mut content = output.content.clone();
    if name == run_script::definition().name && output.exit_code.is_some() {
        let printed = run_script::printed(&output);
        notes.insert("stdout".to_owned(), printed.stdout.clone().into());
        notes.insert("stderr".to_owned(), printed.stderr.into());
        content = printed.stdout;
    }
    if !output.ok {
        let message = match (output.exit_code, fate) {
            (Some(code), _) => format!("the command exited with code {code}"),
            (None, _) => output.content.lines().next().unwrap_or("it failed").to_owned(),
        };
        let error = json!({ "type": "TASK_FAILURE", "reason": "tool_execution_error", "message": message });
        notes.insert("error".to_owned(), error);
    }
    TaskResult {
        status: if output.ok { Status::Complete } else { Status::Failed },
        content,
        parsed_content: None,
        notes,
    }
}
