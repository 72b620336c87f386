//! Executes the tool calls of one reply, in order, each as one step. Every call gets exactly one result,
//! whether it ran, was refused, was interrupted by a crash or was aborted by the user.

pub(crate) mod ask_user;
pub(crate) mod call_gate;
pub(crate) mod call_hooks;
pub(crate) mod command_effects;
pub(crate) mod control_tools;
pub(crate) mod read_cache;
pub(crate) mod subtask_tool;
pub(crate) mod tool_executor;

use std::sync::Arc;

use fusee_journal::event::{CallFate, Event, ToolResult};
use fusee_journal::{RunAborted, StepMeta};
use fusee_model::{Image, Message, ToolCall};
use fusee_tools::mcp::deferral;
use fusee_tools::tool::arguments;
use fusee_tools::tool::provider_tools;
use fusee_tools::{RetrySafety, Tool, ToolOutput, Toolbox};
use serde_json::Value;

use super::conversation::sectioned_prompt::Expansion;
use super::execution::Execution;
use super::facts::change_of;
use super::flow::Feedback;
use super::machine::{CallResults, CallVerdict, FinishCall, GuardedCall};
use super::turn_manager::TurnManager;
use crate::approval::ASK_USER;
use crate::approval::{NOBODY_TO_ASK, REFUSED_UNASKED};
use call_gate::CallHistory;
use call_hooks::Admission;
use tool_executor::CallRecord;

/// How a call is handled.
pub(crate) enum CallRoute {
    /// Not executed: the output is the result.
    Answer { output: ToolOutput, kind: &'static str },
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

impl CallRoute {
    /// A call that is answered with an error; `kind` is counted in the report.
    pub(crate) fn refuse(content: impl Into<String>, kind: &'static str) -> Self {
        Self::Answer { output: ToolOutput::error(content), kind }
    }

    /// A call whose arguments do not match the tool's definition.
    pub(crate) fn malformed(problem: String) -> Self {
        Self::refuse(problem, "malformed_arguments")
    }
}

impl TurnManager<'_> {
    /// Executes all calls and returns what the turn machine needs to know about them.
    pub(super) async fn make_calls(&mut self, calls: Vec<GuardedCall>) -> Result<CallResults, RunAborted> {
        let mut results = CallResults::default();
        let ids: Vec<String> = calls.iter().map(|guarded| guarded.call.id.clone()).collect();
        for GuardedCall { call, verdict } in calls {
            let call = to_own_call(&self.run.session().toolbox, call);
            self.refresh_policy();
            emit_call(&self.run, &call);
            if results.aborted || results.failure.is_some() {
                let (called, recorded) = self.run.answer(&call, CallRecord::stopped()).await?;
                self.conclude_call(call, called, recorded.duration_ms, false);
                continue;
            }
            if call.name == "finish" && self.flow.may_end().is_ok() {
                let (verification, mut runtime) = self.verification();
                verification.run(&mut runtime).await?;
            }
            let route = match &verdict {
                CallVerdict::Run => self.route(&call),
                CallVerdict::Duplicate(first) => duplicate(ids.get(*first)),
                CallVerdict::Repeated(times) => repeated_call(*times),
            };
            let (called, recorded) = self.make(&call, route, &mut results).await?;
            self.run.meter.record(&recorded);
            let ran = verdict == CallVerdict::Run;
            if called.output.stops_task {
                let reason = called.output.content.lines().last().unwrap_or_default();
                results.failure.get_or_insert_with(|| reason.trim_matches(['[', ']']).to_owned());
            }
            results.aborted |= self.conclude_call(call, called, recorded.duration_ms, ran);
            self.advance_flow();
            self.phases().follow();
        }
        self.conversation.rebind(self.run.task, &self.flow);
        Ok(results)
    }

    fn route(&mut self, call: &ToolCall) -> CallRoute {
        let (task, session) = (self.run.task, self.run.session());
        if let Err(Feedback { text, kind }) = self.flow.open(session, &call.name) {
            return CallRoute::refuse(text, kind);
        }
        let room = || {
            let max_tokens = self.conversation.context_size(self.run.policy.limits.max_tokens);
            self.conversation.room_bytes(max_tokens)
        };
        let check_expansion = || self.machine.check_expansion();
        let section =
            self.conversation.prompt.as_ref().and_then(|prompt| prompt.route(call, check_expansion, room));
        if let Some(route) = section.or_else(|| subtask_tool::route(task, call)) {
            return route;
        }
        if let Some(definition) =
            control_tools::definitions().iter().find(|definition| definition.name == call.name)
        {
            return match arguments::parse(&call.arguments, definition) {
                Ok(arguments) => self.control(&call.name, arguments),
                Err(problem) => CallRoute::malformed(problem),
            };
        }
        match session.toolbox.find(&call.name) {
            None => self.unknown(&call.name),
            Some(tool) => match arguments::parse(&call.arguments, tool.definition()) {
                Ok(arguments) => CallRoute::Tool { tool: Arc::clone(tool), arguments },
                Err(problem) => CallRoute::malformed(problem),
            },
        }
    }

    /// Answers a call of an unknown tool. Only tools that are offered are named.
    fn unknown(&self, name: &str) -> CallRoute {
        let names = || self.conversation.history.tools().iter().map(|tool| tool.name.as_str());
        let near = fusee_text::suggest::nearest(name, names());
        let hint = if near.is_empty() {
            format!("The tools are: {}.", names().collect::<Vec<_>>().join(", "))
        } else {
            format!("Did you mean {}?", near.join(" or "))
        };
        CallRoute::refuse(format!("There is no tool `{name}`. {hint}"), "unknown_tool")
    }

    /// Answers a call of a control tool.
    fn control(&mut self, name: &str, arguments: Value) -> CallRoute {
        let flow = &mut self.flow;
        match name {
            ASK_USER => {
                return CallRoute::Question(arguments["question"].as_str().unwrap_or_default().to_owned());
            }
            "flow_stage_done" => {
                return match flow.signal(arguments) {
                    Ok(output) => CallRoute::Control { output, finish: None },
                    Err(Feedback { text, kind }) => CallRoute::refuse(text, kind),
                };
            }
            // A blocker can always be reported; done is only what is verified.
            "finish" if arguments["status"] != "blocked" => {
                if let Some(Feedback { text, kind }) = self.verification.unfinished(flow) {
                    return CallRoute::refuse(text, kind);
                }
            }
            _ => {}
        }
        let plans = name == "plan_tasks"
            && (arguments["action"] == "create"
                || (arguments["action"] == "update" && flow.plan.tasks().is_empty()));
        let controlled = control_tools::answer(name, arguments, &mut flow.plan);
        if plans && controlled.output.ok {
            flow.facts.record_plan();
        }
        CallRoute::Control { output: controlled.output, finish: controlled.finish }
    }

    async fn make(
        &mut self,
        call: &ToolCall,
        route: CallRoute,
        results: &mut CallResults,
    ) -> Result<(CallRecord, StepMeta), RunAborted> {
        let run = &mut self.run;
        match route {
            CallRoute::Answer { output, kind } => {
                self.flow.facts.count_feedback(kind);
                run.answer(call, CallRecord::ended(output, CallFate::Refused)).await
            }
            CallRoute::Control { output, finish } => {
                results.finished = finish.or(results.finished.take());
                run.answer(call, CallRecord::plain(output)).await
            }
            CallRoute::Section { output, expansion } => {
                run.answer(call, CallRecord { expansion, ..CallRecord::plain(output) }).await
            }
            CallRoute::Spawn(arguments) => {
                let turns = self.machine.turn_index();
                subtask_tool::spawn(run, &mut self.flow, &self.conversation, turns, call, arguments).await
            }
            CallRoute::Question(question) => ask_user::ask(run, call, question).await,
            CallRoute::Tool { tool, arguments } => {
                let calls = self.flow.facts.calls_run();
                let history = CallHistory { calls, explanation: self.conversation.explanation() };
                match call_gate::admit(run, history, call, &*tool, arguments).await? {
                    Admission::Refused(refusal) => {
                        if refusal.fate == Some(CallFate::Refused) {
                            self.flow.facts.count_feedback("refused_call");
                            if refusal.output.content.contains(NOBODY_TO_ASK) {
                                self.flow.facts.count_feedback(REFUSED_UNASKED);
                            }
                        }
                        run.answer(call, refusal).await
                    }
                    Admission::Run { arguments, context, .. } => {
                        let executor = run.executor();
                        let (mut called, meta) = executor.make(&call.id, &tool, arguments.clone()).await?;
                        call_hooks::after(&executor, &call.id, &*tool, &arguments, &mut called, context)
                            .await?;
                        Ok((called, meta))
                    }
                }
            }
        }
    }

    /// Applies the consequences of a result: events, facts, known file contents, the conversation. Returns
    /// whether the call was aborted.
    fn conclude_call(&mut self, call: ToolCall, called: CallRecord, duration_ms: u64, ran: bool) -> bool {
        // A command ended by a crash counts as interrupted, not aborted: the task was not cancelled.
        let fate = called.fate.or(called.output.aborted.then_some(CallFate::Aborted));
        let mut called = CallRecord { fate, ..called };
        let (run, flow, output) = (&self.run, &mut self.flow, &called.output);
        run.session().workspace.record_output(output);
        // Changes by an interrupted call are reported to the model as changed meanwhile, if it knew the
        // files.
        if fate != Some(CallFate::Interrupted) {
            self.files.seen.learn(output);
        }
        if !called.protected.is_empty() {
            flow.facts.count_feedback("test_edit_blocked");
        }
        if fate == Some(CallFate::Refused) {
            flow.facts.record_refusal(&call.name);
        } else {
            let tool = run.session().toolbox.find(&call.name);
            flow.facts.commands |= tool.is_some_and(|tool| tool.repeat() == RetrySafety::Never);
            flow.facts.record_call(&call.name, output);
        }
        if ran {
            self.machine.record_call(&output.content, !output.changed.is_empty());
        }
        let sent = self.conversation.history.request().messages();
        if self.files.dedup_read(&call, &mut called.output, sent) {
            flow.facts.count_feedback("unchanged_read");
        }
        emit_result(run, &call, &called, duration_ms);
        self.conversation.history.push(Message::Tool {
            call_id: call.id,
            name: call.name,
            content: called.output.content,
            ok: called.output.ok,
            images: images(called.output.images),
        });
        if let Some(expansion) = called.expansion {
            self.machine.record_expansion();
            self.conversation.expand(run, expansion);
        }
        fate == Some(CallFate::Aborted)
    }
}

/// Maps a call of a provider-defined tool, or one through `call_tool`, to the tool that is meant. The conversation keeps
/// the call as the model made it.
fn to_own_call(toolbox: &Toolbox, call: ToolCall) -> ToolCall {
    if let Some((name, arguments)) = deferral::inner_call(toolbox, &call.name, &call.arguments) {
        return ToolCall { id: call.id, name, arguments };
    }
    let ours = match toolbox.find(&call.name) {
        Some(tool) if tool.definition().name != "shell" => None,
        _ => provider_tools::to_own_call(&call.name, &call.arguments),
    };
    match ours {
        Some((name, arguments)) => ToolCall { id: call.id, name: name.to_owned(), arguments },
        None => call,
    }
}

fn duplicate(first: Option<&String>) -> CallRoute {
    let first = first.map(String::as_str).unwrap_or_default();
    let content = format!("The same call stands earlier in this reply ({first}); see its result.");
    CallRoute::refuse(content, "duplicate_call")
}

fn repeated_call(times: u32) -> CallRoute {
    let content = format!(
        "Not run: the same call was made {times} times in a row, with the same result. \
         Do something else: read another file, change something, or finish."
    );
    CallRoute::refuse(content, "repeated_call")
}

pub(crate) fn emit_call(run: &Execution<'_>, call: &ToolCall) {
    let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| call.arguments.clone().into());
    let (call_id, name) = (call.id.clone(), call.name.clone());
    run.emit(Event::ToolCall { call_id, name, arguments });
}

/// Emits a result, preceded by the files it changed.
pub(crate) fn emit_result(run: &Execution<'_>, call: &ToolCall, called: &CallRecord, duration_ms: u64) {
    let CallRecord { output, fate, .. } = called;
    for change in &output.changed {
        if let Some(kind) = change_of(change) {
            run.emit(Event::FileChanged { path: change.path.clone(), change: kind });
        }
    }
    run.emit(Event::ToolResult(ToolResult {
        call_id: call.id.clone(),
        ok: output.ok,
        content: output.content.clone(),
        truncated: output.truncated,
        duration_ms,
        exit_code: output.exit_code,
        fate: *fate,
    }));
}

/// Converts the images of a tool result to those of the conversation.
pub(crate) fn images(shown: Box<[fusee_tools::ToolImage]>) -> Vec<Image> {
    shown.into_iter().map(|fusee_tools::ToolImage { media_type, data }| Image { media_type, data }).collect()
}
