//! Executes one tool call as journal steps of a branch: the approval question, the call itself, and recovery
//! after a crash. `tool_calls.rs` uses it for a model's calls, the workflow driver for those of a program.

use std::sync::Arc;
use std::time::Duration;

use fusee_journal::event::{CallFate, Event, EventDelta};
use fusee_journal::{
    BoxFuture, Branch, DurableRun, Intention, OnceOutcome, RunAborted, StepKind, StepMeta, StepRequest,
    step_body,
};
use fusee_model::CancellationToken;
use fusee_tools::diagnostics::BeforeEdit;
use fusee_tools::{CallContext, InterruptedOutcome, PreparedCall, RetrySafety, Secrets, Tool, ToolOutput};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agent::conversation::sectioned_prompt::Expansion;
use crate::agent::flow::{ProtectedTests, protected_answer};
use crate::agent::session::Session;
use crate::agent::tool_calls::call_hooks;
use crate::agent::tool_calls::command_effects::{
    perform, recover_interrupted, restore, save_backup, within as within_time,
};
use crate::approval::rules::ApprovalRule;
use crate::approval::{ASK_USER, ApprovalQuestion, ApprovalScope, NoAnswer, UserWait};

/// The result of a call, as stored in the journal.
#[derive(Serialize, Deserialize)]
pub(crate) struct CallRecord {
    #[serde(flatten)]
    pub(crate) output: ToolOutput,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fate: Option<CallFate>,
    /// Prompt sections opened by the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expansion: Option<Expansion>,
    /// Protected files the call tried to change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) protected: Vec<String>,
}

impl CallRecord {
    /// A call that ran to completion.
    pub(crate) fn plain(output: ToolOutput) -> Self {
        Self { output, fate: None, expansion: None, protected: Vec::new() }
    }

    /// A call that ended with another fate.
    pub(crate) fn ended(output: ToolOutput, fate: CallFate) -> Self {
        Self { fate: Some(fate), ..Self::plain(output) }
    }

    /// A call cancelled before it started.
    pub(crate) fn stopped() -> Self {
        Self::ended(ToolOutput::aborted("Not run: it was cancelled before it began."), CallFate::Aborted)
    }

    /// A call that was refused, with the reason.
    pub(crate) fn refused(why: &str) -> Self {
        Self::ended(ToolOutput::error(format!("Not run: {why}.")), CallFate::Refused)
    }
}

/// Everything needed to execute calls on one branch.
pub(crate) struct ToolExecutor<'a> {
    pub(crate) session: &'a Session,
    pub(crate) engine: &'a Arc<dyn DurableRun>,
    pub(crate) branch: &'a Branch,
    pub(crate) cancel: &'a CancellationToken,
    /// Remaining working time, if limited.
    pub(crate) left_ms: Option<u64>,
    /// Step kind of effectful calls: the runtime's own calls differ from a model's.
    pub(crate) kind: StepKind,
    /// Files that no call may change.
    pub(crate) protected: Option<Arc<ProtectedTests>>,
    /// Maximum bytes of images in one result; 0 if the model takes no images.
    pub(crate) image_bytes: usize,
}

impl ToolExecutor<'_> {
    /// Asks for approval of a call; the answer is a step of its own. Returns the call's result if it was
    /// refused.
    pub(crate) async fn ask(&self, question: ApprovalQuestion) -> Result<Option<CallRecord>, RunAborted> {
        self.ask_with_rules(question).await.map(|(refusal, _)| refusal)
    }

    /// Like [`Self::ask`], and also returns the rules that a lasting approval adds.
    pub(crate) async fn ask_with_rules(
        &self,
        question: ApprovalQuestion,
    ) -> Result<(Option<CallRecord>, Vec<ApprovalRule>), RunAborted> {
        let (call_id, asked) = (question.call_id.clone(), question.clone());
        self.engine.emit(
            self.branch,
            Event::ApprovalRequested {
                call_id: call_id.clone(),
                name: question.name.clone(),
                arguments: question.arguments.clone(),
                reason: question.reason.clone(),
            },
        );
        call_hooks::notify(self, &question).await?;
        let wait = UserWait {
            engine: &**self.engine,
            branch: self.branch,
            call_id: &call_id,
            limit: Duration::from_secs(self.session.limits.approval_timeout_s),
            cancel: self.cancel,
        };
        let (answer, unanswered) = wait.approval(&*self.session.approval.approver, question).await?;
        let (approved, reason) = (answer.approved, answer.reason.clone());
        self.engine.emit(self.branch, Event::ApprovalResolved { call_id, approved, reason });
        if unanswered == Some(NoAnswer::Cancelled) {
            return Ok((Some(CallRecord::stopped()), Vec::new()));
        }
        let why = answer.reason.as_deref().unwrap_or("the user declined");
        let lasts = answer.approved && answer.lasts != ApprovalScope::Once;
        let lasting = if lasts { asked.lasting(answer.extent) } else { Vec::new() };
        Ok(((!answer.approved).then(|| CallRecord::refused(why)), lasting))
    }

    /// Records a result that needs no execution. It is still a step, because every call has exactly one.
    pub(crate) async fn answer(
        &self,
        callee: &str,
        args: Value,
        called: CallRecord,
    ) -> Result<(CallRecord, StepMeta), RunAborted> {
        let step = self.step(StepKind::Tool, callee, args);
        Ok(self.engine.step(step, async move { called }).await?.split())
    }

    /// Executes the call, and asks the user what it asks on the way.
    pub(crate) async fn make(
        &self,
        call_id: &str,
        tool: &Arc<dyn Tool>,
        arguments: Value,
    ) -> Result<(CallRecord, StepMeta), RunAborted> {
        let (mut made, mut tool) = (self.make_once(call_id, tool, arguments).await?, Arc::clone(tool));
        while made.0.output.asks_user {
            let answer = self.ask_text(call_id, &made.0.output.content).await?;
            let Some(rest) = tool.answered(call_id, answer.clone()) else { break };
            let duration_ms = made.1.duration_ms;
            made = self.make_once(call_id, &rest, json!({ "answer": answer })).await?;
            made.1.duration_ms += duration_ms;
            tool = rest;
        }
        Ok(made)
    }

    /// Asks the user a question of a running call; `None` if nobody answers.
    async fn ask_text(&self, call_id: &str, question: &str) -> Result<Option<String>, RunAborted> {
        let arguments = json!({ "question": question });
        let (name, reason) = (ASK_USER.to_owned(), "a server has a question".to_owned());
        let asked = Event::ApprovalRequested {
            call_id: call_id.to_owned(),
            name,
            arguments: arguments.clone(),
            reason,
        };
        self.engine.emit(self.branch, asked);
        let wait = UserWait {
            engine: &**self.engine,
            branch: self.branch,
            call_id,
            limit: Duration::from_secs(self.session.limits.approval_timeout_s),
            cancel: self.cancel,
        };
        let ask = async { self.session.approval.approver.ask_user(question).await };
        let answer = wait.text(ASK_USER, arguments, ask).await?.ok().flatten();
        let (approved, reason) =
            (answer.is_some(), answer.clone().or_else(|| Some("nobody answered".to_owned())));
        let resolved = Event::ApprovalResolved { call_id: call_id.to_owned(), approved, reason };
        self.engine.emit(self.branch, resolved);
        Ok(answer)
    }

    async fn make_once(
        &self,
        call_id: &str,
        tool: &Arc<dyn Tool>,
        arguments: Value,
    ) -> Result<(CallRecord, StepMeta), RunAborted> {
        match tool.repeat() {
            RetrySafety::Idempotent => self.harmless(call_id, tool, arguments).await,
            RetrySafety::Verifiable | RetrySafety::Never => self.effectful(call_id, tool, arguments).await,
        }
    }

    async fn harmless(
        &self,
        call_id: &str,
        tool: &Arc<dyn Tool>,
        arguments: Value,
    ) -> Result<(CallRecord, StepMeta), RunAborted> {
        let step = self.step(StepKind::Tool, &tool.definition().name, arguments.clone());
        let (context, left) = (self.context(call_id), self.left_ms);
        let secrets = &self.session.secrets;
        let body = async move {
            self.prepare_diagnostics(&**tool, &arguments, &context).await;
            let output = match tool.prepare(arguments, &context).await {
                Ok(prepared) => within_time(left, &context, tool.perform(prepared, &context)).await,
                Err(answer) => answer,
            };
            CallRecord::plain(clean(secrets, output))
        };
        Ok(self.engine.step(step, body).await?.split())
    }

    async fn effectful(
        &self,
        call_id: &str,
        tool: &Arc<dyn Tool>,
        arguments: Value,
    ) -> Result<(CallRecord, StepMeta), RunAborted> {
        let step = self.step(self.kind, &tool.definition().name, arguments.clone());
        let (context, left) = (self.context(call_id), self.left_ms);
        let secrets = &self.session.secrets;
        let guarded = self.protected.clone();
        let plan: Mutex<Option<PreparedCall>> = Mutex::new(None);
        let (context_now, plan_now, asked) = (&context, &plan, arguments.clone());
        let intend = Box::new(move || {
            let prepare = async move {
                match tool.prepare(asked, context_now).await {
                    Err(output) => Intention::Resolved(to_value(&CallRecord::plain(clean(secrets, output)))),
                    Ok(prepared) if !self.protected_in(&prepared.intent).is_empty() => {
                        let protected = self.protected_in(&prepared.intent);
                        let output = ToolOutput::error(format!("Not run. {}", protected_answer(&protected)));
                        let called = CallRecord { protected, ..CallRecord::ended(output, CallFate::Refused) };
                        Intention::Resolved(to_value(&called))
                    }
                    Ok(prepared) => {
                        let mut intent = prepared.intent.clone();
                        let warning = save_backup(&**tool, &mut intent, &context_now.workspace).await;
                        if let Some(message) = warning {
                            let event = Event::Warning { code: "not_undoable".to_owned(), message };
                            self.engine.note(self.branch, event);
                        }
                        withhold(secrets, &mut intent);
                        *plan_now.lock() = Some(prepared);
                        Intention::Proceed(intent)
                    }
                }
            };
            Box::pin(prepare) as BoxFuture<'_, Intention>
        });
        let body = async move {
            let prepared = plan_now.lock().take();
            let paths =
                prepared.iter().flat_map(|call| changed_paths(&call.intent)).map(str::to_owned).collect();
            let edit = self.before_edit(&**tool, paths, context_now).await;
            let mut called = perform(&**tool, prepared, context_now, left, guarded).await;
            self.add_diagnostics(&mut called.output, edit, context_now).await;
            CallRecord { output: clean(secrets, called.output), ..called }
        };
        match self.engine.once(step, intend, step_body(body)).await? {
            OnceOutcome::Done(recorded) => Ok(recorded.typed()?.split()),
            OnceOutcome::Interrupted { key, intent } => {
                let (arguments, context) = (&arguments, &context);
                let guarded = self.protected.clone();
                let body = async move {
                    let mut called = settle(&**tool, arguments, &intent, context).await;
                    restore(&mut called, guarded.as_ref(), &context.workspace).await;
                    recover_interrupted(&**tool, &mut called, &context.workspace).await;
                    CallRecord { output: clean(secrets, called.output), ..called }
                };
                Ok(self.engine.conclude(key, step_body(body)).await?.typed()?.split())
            }
        }
    }

    /// The protected files that a prepared change would touch.
    fn protected_in(&self, intent: &Value) -> Vec<String> {
        let Some(protected) = &self.protected else { return Vec::new() };
        changed_paths(intent).filter(|path| protected.covers(path)).map(str::to_owned).collect()
    }

    /// Looks at the files that a call of the model is about to edit, if they are to be checked.
    async fn before_edit(
        &self,
        tool: &dyn Tool,
        paths: Vec<String>,
        context: &CallContext,
    ) -> Option<BeforeEdit> {
        let is_edit = tool.repeat() == RetrySafety::Verifiable && self.kind == StepKind::Tool;
        let diagnostics = self.session.diagnostics.as_ref().filter(|_| is_edit)?;
        context.cancel.run_until_cancelled(diagnostics.before(&context.workspace, &paths)).await
    }

    /// Starts the checker of a file that is read, which may be edited next.
    async fn prepare_diagnostics(&self, tool: &dyn Tool, arguments: &Value, context: &CallContext) {
        let path = arguments["path"].as_str().filter(|_| tool.definition().name == "read_file");
        if let (Some(diagnostics), Some(path)) = (&self.session.diagnostics, path) {
            diagnostics.file_is_read(&context.workspace, path).await;
        }
    }

    /// Adds the errors that an edit brought to its result.
    async fn add_diagnostics(
        &self,
        output: &mut ToolOutput,
        edit: Option<BeforeEdit>,
        context: &CallContext,
    ) {
        let (Some(diagnostics), Some(edit), true) = (&self.session.diagnostics, edit, output.ok) else {
            return;
        };
        let check = diagnostics.after(&context.workspace, edit);
        if let Some(Some(note)) = context.cancel.run_until_cancelled(check).await {
            output.content.push_str(&note);
        }
    }

    fn step(&self, kind: StepKind, callee: &str, args: Value) -> StepRequest {
        StepRequest { branch: self.branch.clone(), kind, callee: callee.to_owned(), args }
    }

    /// Builds the context passed to the tool along with its arguments.
    pub(crate) fn context(&self, call_id: &str) -> CallContext {
        let (engine, branch) = (Arc::clone(self.engine), self.branch.clone());
        let (call_id, secrets) = (call_id.to_owned(), self.session.secrets.clone());
        CallContext {
            workspace: Arc::clone(&self.session.workspace),
            call_id: call_id.clone(),
            cancel: self.cancel.child_token(),
            progress: Arc::new(move |text| {
                let mut text = text.to_owned();
                secrets.remove_from(&mut text);
                engine.publish_delta(&branch, EventDelta::Output { call_id: call_id.clone(), text });
            }),
            trace_parent: self
                .session
                .commands
                .environment
                .value("TRACEPARENT")
                .map(|parent| parent.to_string_lossy().into_owned()),
            limits: fusee_tools::CallLimits {
                source: match self.kind {
                    StepKind::Environment => fusee_tools::tool::CommandSource::Project,
                    _ => fusee_tools::tool::CommandSource::Model,
                },
                image_bytes: self.image_bytes,
                ..fusee_tools::CallLimits::default()
            },
        }
    }
}

/// The files that an intent changes.
fn changed_paths(intent: &Value) -> impl Iterator<Item = &str> {
    let changes = intent.get("changes").and_then(Value::as_array);
    changes.into_iter().flatten().filter_map(|change| change["path"].as_str())
}

fn to_value(value: &impl Serialize) -> Value {
    // Our own types have string keys and finite numbers; nothing else can make this fail.
    serde_json::to_value(value).unwrap_or_default()
}

/// Removes known secrets from the output of a tool and from the versions of files stored with it.
fn clean(secrets: &Secrets, mut output: ToolOutput) -> ToolOutput {
    secrets.remove_from(&mut output.content);
    output.effects.versions.iter_mut().for_each(|version| version.withhold(secrets));
    output
}

/// Removes known secrets from an intent before it is written to the journal.
fn withhold(secrets: &Secrets, value: &mut Value) {
    match value {
        Value::String(text) => secrets.remove_from(text),
        Value::Array(items) => items.iter_mut().for_each(|item| withhold(secrets, item)),
        Value::Object(fields) => fields.values_mut().for_each(|field| withhold(secrets, field)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Determines the outcome of a call interrupted by a crash, and completes it where that is safe.
async fn settle(tool: &dyn Tool, arguments: &Value, intent: &Value, context: &CallContext) -> CallRecord {
    match tool.settle(arguments, intent, context).await {
        InterruptedOutcome::Done(output) => CallRecord::plain(output),
        InterruptedOutcome::Unknown(output) => CallRecord::ended(output, CallFate::Interrupted),
        InterruptedOutcome::Redo => {
            let output = match tool.prepare(arguments.clone(), context).await {
                Ok(prepared) => tool.perform(prepared, context).await,
                Err(answer) => answer,
            };
            CallRecord::plain(output)
        }
    }
}
