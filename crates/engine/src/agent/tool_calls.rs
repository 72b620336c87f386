//! Executes the tool calls of one reply, in order, each as one step. Every call gets exactly one result,
//! whether it ran, was refused, was interrupted by a crash or was aborted by the user.

pub(crate) mod ask_user;
pub(crate) mod command_effects;
pub(crate) mod control_tools;
pub(crate) mod read_cache;
pub(crate) mod subtask_tool;
pub(crate) mod tool_executor;
pub(crate) mod user_wait;

use std::sync::Arc;

use fusee_journal::event::{CallFate, Event, ToolResult};
use fusee_journal::{RunAborted, StepKind, StepMeta};
use fusee_model::{Image, Message, ToolCall};
use fusee_tools::tool::arguments;
use fusee_tools::tool::provider_tools;
use fusee_tools::{CallLimits, RetrySafety, Tool, ToolDefinition, ToolOutput};
use serde_json::{Value, json};

use crate::agent::tool_calls::tool_executor::{CallRecord, ToolExecutor};

use super::facts::change_of;
use super::machine::{CallResults, CallVerdict, FinishCall, GuardedCall};
use super::review_policy::ReviewRuling;
use super::runner::TaskRunner;
use crate::agent::conversation::sectioned_prompt::Expansion;
use crate::agent::flow::Feedback;
use crate::approval::{ApprovalDecision, ApprovalMode, ApprovalPolicy, ApprovalQuestion};

/// Maximum characters of the model's explanation shown in an approval question.
const EXPLANATION_CHARACTERS: usize = 400;

/// How a call is handled.
pub(crate) enum CallRoute {
    /// Not executed: the output is the result.
    Answer { output: ToolOutput, sort: &'static str },
    /// A control tool.
    Control { output: ToolOutput, finish: Option<FinishCall> },
    /// A call about prompt sections.
    Section { output: ToolOutput, expansion: Option<Expansion> },
    /// A subtask, with its arguments.
    Spawn(Value),
    /// A question to the user.
    Question(String),
    /// A call to a tool.
    Tool { tool: Arc<dyn Tool>, arguments: Value },
}

impl TaskRunner<'_> {
    /// Executes all calls and returns what the turn machine needs to know about them.
    pub(crate) async fn make_calls(&mut self, planned: Vec<GuardedCall>) -> Result<CallResults, RunAborted> {
        let mut answered = CallResults::default();
        let ids: Vec<String> = planned.iter().map(|planned| planned.call.id.clone()).collect();
        for GuardedCall { call, verdict } in planned {
            let call = self.as_ours(call);
            self.apply_policy_changes();
            self.emit_call(&call);
            if answered.aborted {
                let (called, recorded) = self.answer_step(&call, CallRecord::stopped()).await?;
                self.conclude_call(call, called, recorded.duration_ms, false, &mut answered);
                continue;
            }
            self.verify_before_finish(&call).await?;
            let resolved = self.resolve(&call, &verdict, &ids);
            let (called, recorded) = self.make(&call, resolved, &mut answered).await?;
            self.passed(&recorded);
            self.conclude_call(
                call,
                called,
                recorded.duration_ms,
                verdict == CallVerdict::Run,
                &mut answered,
            );
            self.advance_stage(false);
            self.follow_phase();
        }
        self.rebind();
        Ok(answered)
    }

    /// Maps a call of a provider-defined tool to our own tool. The conversation keeps the call as the model
    /// made it.
    fn as_ours(&self, call: ToolCall) -> ToolCall {
        let ours = match self.session().toolbox.find(&call.name) {
            Some(tool) if tool.definition().name != "shell" => None,
            _ => provider_tools::as_ours(&call.name, &call.arguments),
        };
        match ours {
            Some((name, arguments)) => ToolCall { id: call.id, name: name.to_owned(), arguments },
            None => call,
        }
    }

    pub(crate) fn emit_call(&self, call: &ToolCall) {
        let arguments =
            serde_json::from_str(&call.arguments).unwrap_or_else(|_| call.arguments.clone().into());
        let (call_id, name) = (call.id.clone(), call.name.clone());
        self.emit(Event::ToolCall { call_id, name, arguments });
    }

    /// Emits a result, preceded by the files it changed.
    pub(crate) fn emit_result(&self, call: &ToolCall, called: &CallRecord, duration_ms: u64) {
        let CallRecord { output, fate, .. } = called;
        for change in &output.changed {
            if let Some(sort) = change_of(change) {
                self.emit(Event::FileChanged { path: change.path.clone(), change: sort });
            }
        }
        self.emit(Event::ToolResult(ToolResult {
            call_id: call.id.clone(),
            ok: output.ok,
            content: output.content.clone(),
            truncated: output.truncated,
            duration_ms,
            exit_code: output.exit_code,
            fate: *fate,
        }));
    }

    fn resolve(&mut self, call: &ToolCall, verdict: &CallVerdict, ids: &[String]) -> CallRoute {
        match verdict {
            CallVerdict::Run => {}
            CallVerdict::Duplicate(first) => {
                let first = ids.get(*first).map(String::as_str).unwrap_or_default();
                let content =
                    format!("The same call stands earlier in this reply ({first}); see its result.");
                return CallRoute::Answer { output: ToolOutput::error(content), sort: "duplicate_call" };
            }
            CallVerdict::Circling(times) => {
                let content = format!(
                    "Not run: the same call was made {times} times in a row, with the same result. \
                     Do something else: read another file, change something, or finish."
                );
                return CallRoute::Answer { output: ToolOutput::error(content), sort: "repeated_call" };
            }
        }
        if let Err(Feedback { text, sort }) = self.open(&call.name) {
            return CallRoute::Answer { output: ToolOutput::error(text), sort };
        }
        if let Some(resolved) = self.section_call(call) {
            return resolved;
        }
        if let Some(resolved) = self.subtask_call(call) {
            return resolved;
        }
        if let Some(definition) =
            control_tools::definitions().iter().find(|definition| definition.name == call.name)
        {
            return match arguments::parse(&call.arguments, definition) {
                Ok(arguments) if call.name == control_tools::ASK_USER => {
                    CallRoute::Question(arguments["question"].as_str().unwrap_or_default().to_owned())
                }
                Ok(arguments) if call.name == "flow_stage_done" => self.stage_signal(arguments),
                Ok(arguments) if call.name == "finish" && !self.may_finish(&arguments) => {
                    self.finish_rejection()
                }
                Ok(arguments) => {
                    let plans = call.name == "plan_tasks"
                        && (arguments["action"] == "create"
                            || (arguments["action"] == "update" && self.plan.tasks().is_empty()));
                    let controlled = control_tools::answer(&call.name, arguments, &mut self.plan);
                    if plans && controlled.output.ok {
                        self.facts.plan_made();
                    }
                    CallRoute::Control { output: controlled.output, finish: controlled.finish }
                }
                Err(complaint) => malformed(complaint),
            };
        }
        match self.session().toolbox.find(&call.name) {
            None => self.unknown(&call.name),
            Some(tool) => match arguments::parse(&call.arguments, tool.definition()) {
                Ok(arguments) => CallRoute::Tool { tool: Arc::clone(tool), arguments },
                Err(complaint) => malformed(complaint),
            },
        }
    }

    fn unknown(&self, name: &str) -> CallRoute {
        let names =
            || self.session().definitions().map(|definition: &ToolDefinition| definition.name.as_ref());
        let near = fusee_text::suggest::nearest(name, names());
        let hint = if near.is_empty() {
            format!("The tools are: {}.", names().collect::<Vec<_>>().join(", "))
        } else {
            format!("Did you mean {}?", near.join(" or "))
        };
        let output = ToolOutput::error(format!("There is no tool `{name}`. {hint}"));
        CallRoute::Answer { output, sort: "unknown_tool" }
    }

    async fn make(
        &mut self,
        call: &ToolCall,
        resolved: CallRoute,
        answered: &mut CallResults,
    ) -> Result<(CallRecord, StepMeta), RunAborted> {
        match resolved {
            CallRoute::Answer { output, sort } => {
                self.facts.fed_back(sort);
                self.answer_step(call, CallRecord::ended(output, CallFate::Refused)).await
            }
            CallRoute::Control { output, finish } => {
                answered.finished = finish.or(answered.finished.take());
                self.answer_step(call, CallRecord::plain(output)).await
            }
            CallRoute::Section { output, expansion } => {
                self.answer_step(call, CallRecord { expansion, ..CallRecord::plain(output) }).await
            }
            CallRoute::Spawn(arguments) => self.spawn_subtask(call, arguments).await,
            CallRoute::Question(question) => self.ask_user_step(call, question).await,
            CallRoute::Tool { tool, arguments } => match self.gate(call, &*tool, &arguments).await? {
                Some(refusal) => {
                    if refusal.fate == Some(CallFate::Refused) {
                        self.facts.fed_back("refused_call");
                    }
                    self.answer_step(call, refusal).await
                }
                None => self.calling().make(&call.id, &tool, arguments).await,
            },
        }
    }

    /// Decides whether a call may run: review restrictions first, then the user's approval policy.
    fn judge(&self, tool: &dyn Tool, arguments: &Value) -> ApprovalDecision {
        let (definition, session) = (tool.definition(), self.session());
        let decided = self.rules.decide(&definition.name, arguments);
        let policy =
            ApprovalPolicy::judge(&self.terms, definition.category, tool.repeat() == RetrySafety::Never)
                .with_rules(decided, self.terms.approve);
        let Some(review) = &session.review else { return policy };
        match review.judge(&definition.name, definition.category, self.facts.calls_total()) {
            ReviewRuling::Allowed => policy,
            ReviewRuling::AskFirst if review.require_explanations && self.said_with_calls().is_none() => {
                ApprovalDecision::Shut(
                    "say in words what this call is for, and make it again in the same reply".to_owned(),
                )
            }
            ReviewRuling::AskFirst => match self.terms.approve {
                ApprovalMode::Never => ApprovalDecision::Shut("a review only looks".to_owned()),
                ApprovalMode::Auto | ApprovalMode::Ask => {
                    let words = self.said_with_calls().map(|words| format!("; the model says: {words}"));
                    let reason = "a review is read-only; other calls need approval";
                    ApprovalDecision::Ask(format!("{reason}{}", words.unwrap_or_default()))
                }
            },
            ReviewRuling::NotInReview => ApprovalDecision::Shut("a review only looks".to_owned()),
            ReviewRuling::TooMany => ApprovalDecision::Shut(format!(
                "the review has used its {} calls; answer now with what you found",
                review.max_tool_calls
            )),
        }
    }

    /// The text of the reply that made the current calls, truncated for a question.
    fn said_with_calls(&self) -> Option<String> {
        let replies = self.conversation.messages().iter().rev();
        let reply = replies.into_iter().find_map(|message| match message {
            Message::Assistant { text, .. } => Some(text.trim()),
            Message::User { .. } | Message::Tool { .. } => None,
        })?;
        (!reply.is_empty()).then(|| reply.chars().take(EXPLANATION_CHARACTERS).collect())
    }

    /// Applies the approval policy, asking the user if required. Returns the result of a refused call.
    pub(crate) async fn gate(
        &mut self,
        call: &ToolCall,
        tool: &dyn Tool,
        arguments: &Value,
    ) -> Result<Option<CallRecord>, RunAborted> {
        let reason = match self.judge(tool, arguments) {
            ApprovalDecision::Open => return Ok(None),
            ApprovalDecision::Shut(reason) => return Ok(Some(CallRecord::refused(&reason))),
            ApprovalDecision::Ask(reason) => reason,
        };
        let (call_id, name) = (call.id.clone(), call.name.clone());
        let question = ApprovalQuestion { call_id, name, arguments: arguments.clone(), reason };
        let (refusal, lasting) = self.calling().ask_for_longer(question).await?;
        lasting.into_iter().for_each(|rule| self.rules.add(rule));
        Ok(refusal)
    }

    /// Records a result that needs no execution.
    pub(crate) async fn answer_step(
        &self,
        call: &ToolCall,
        called: CallRecord,
    ) -> Result<(CallRecord, StepMeta), RunAborted> {
        self.calling().answer(&call.name, json!(call.arguments), called).await
    }

    pub(crate) fn calling(&self) -> ToolExecutor<'_> {
        ToolExecutor {
            session: self.session(),
            engine: &self.task.engine,
            branch: &self.task.branch,
            cancel: self.cancel(),
            left_ms: self.left_ms(),
            kind: StepKind::Tool,
            protected: self.task.rules.protected.clone(),
            image_bytes: if self.session().model.dialect().takes_images() {
                CallLimits::IMAGE_BYTES
            } else {
                0
            },
        }
    }

    /// Applies the consequences of a result: events, facts, known file contents, the conversation.
    fn conclude_call(
        &mut self,
        call: ToolCall,
        called: CallRecord,
        duration_ms: u64,
        ran: bool,
        answered: &mut CallResults,
    ) {
        // A command ended by a crash counts as interrupted, not aborted: the task was not cancelled.
        let fate = called.fate.or(called.output.aborted.then_some(CallFate::Aborted));
        let called = CallRecord { fate, ..called };
        let output = &called.output;
        self.session().workspace.record_output(output);
        // Changes by an interrupted call are reported to the model as changed meanwhile, if it knew the
        // files.
        if fate != Some(CallFate::Interrupted) {
            self.known.learn(output);
        }
        if !called.protected.is_empty() {
            self.facts.fed_back("test_edit_blocked");
        }
        if fate != Some(CallFate::Refused) {
            let tool = self.session().toolbox.find(&call.name);
            self.facts.commands |= tool.is_some_and(|tool| tool.repeat() == RetrySafety::Never);
            self.facts.called(&call.name, output);
        }
        if ran {
            self.turns.ran(&output.content, !output.changed.is_empty());
        }
        let called = CallRecord { output: self.dedup_read(&call, called.output), ..called };
        answered.aborted |= fate == Some(CallFate::Aborted) && self.left_ms() != Some(0);
        self.emit_result(&call, &called, duration_ms);
        self.conversation.push(Message::Tool {
            call_id: call.id,
            name: call.name,
            content: called.output.content,
            ok: called.output.ok,
            images: images(called.output.images),
        });
        if let Some(expansion) = called.expansion {
            self.expanded(expansion);
        }
    }
}

/// Converts the images of a tool result to those of the conversation.
pub(crate) fn images(shown: Box<[fusee_tools::Image]>) -> Vec<Image> {
    shown.into_iter().map(|fusee_tools::Image { media_type, data }| Image { media_type, data }).collect()
}

fn malformed(complaint: String) -> CallRoute {
    CallRoute::Answer { output: ToolOutput::error(complaint), sort: "malformed_arguments" }
}
