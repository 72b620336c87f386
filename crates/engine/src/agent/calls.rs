//! Makes the calls of one reply, in order, each as one step. Every call gets exactly one result, whether it
//! ran, was refused, was interrupted by a crash or aborted by a person.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fusee_journal::event::{Delta, Event, Fate, ToolResult};
use fusee_journal::{BoxFuture, Call, Intention, Kind, Outcome, Recorded, Stop};
use fusee_model::{Message, ToolCall};
use fusee_tools::{CallContext, Definition, Prepared, Repeat, Settled, Tool, ToolOutput, arguments};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::control;
use super::disclosure::Expanded;
use super::driver::{Driver, to_value};
use super::facts::change_of;
use super::review::Ruling;
use super::turns::{Answered, Finish, Planned, Planning};
use crate::approval::{Answer, Approve, Gate, Gatekeeper, Question};

/// The result of a call, as the journal keeps it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Called {
    #[serde(flatten)]
    pub(crate) output: ToolOutput,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fate: Option<Fate>,
    /// The sections that it opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expansion: Option<Expanded>,
}

impl Called {
    /// A call that came to its end.
    fn plain(output: ToolOutput) -> Self {
        Self { output, fate: None, expansion: None }
    }

    /// One that ended in another way.
    fn ended(output: ToolOutput, fate: Fate) -> Self {
        Self { fate: Some(fate), ..Self::plain(output) }
    }
}

/// What a call turned out to be.
pub(crate) enum Resolved {
    /// Nothing to run: this is the answer.
    Answer { output: ToolOutput, sort: &'static str },
    /// A call that steers the task.
    Control { output: ToolOutput, finish: Option<Finish> },
    /// A call about sections of the prompt.
    Section { output: ToolOutput, expansion: Option<Expanded> },
    /// A call to a tool.
    Tool { tool: Arc<dyn Tool>, arguments: Value },
}

impl Driver<'_> {
    /// Makes them all; what the machine needs to know of them is returned.
    pub(crate) async fn make_calls(&mut self, planned: Vec<Planned>) -> Result<Answered, Stop> {
        let mut answered = Answered::default();
        let ids: Vec<String> = planned.iter().map(|planned| planned.call.id.clone()).collect();
        for Planned { call, verdict } in planned {
            self.take_terms();
            let arguments =
                serde_json::from_str(&call.arguments).unwrap_or_else(|_| call.arguments.clone().into());
            let (call_id, name) = (call.id.clone(), call.name.clone());
            self.emit(Event::ToolCall { call_id, name, arguments });
            let resolved = self.resolve(&call, &verdict, &ids);
            let (called, recorded) = self.make(&call, resolved, &mut answered).await?;
            self.passed(&recorded);
            self.conclude_call(call, called, recorded.duration_ms, verdict == Planning::Run, &mut answered);
        }
        self.rebind();
        Ok(answered)
    }

    fn resolve(&mut self, call: &ToolCall, verdict: &Planning, ids: &[String]) -> Resolved {
        match verdict {
            Planning::Run => {}
            Planning::Duplicate(first) => {
                let first = ids.get(*first).map(String::as_str).unwrap_or_default();
                let content =
                    format!("The same call stands earlier in this reply ({first}); see its result.");
                return Resolved::Answer { output: ToolOutput::error(content), sort: "duplicate_call" };
            }
            Planning::Circling(times) => {
                let content = format!(
                    "Not run: this is the same call for the {times}th time in a row, and its result was the same. \
                     Do something else: read another file, change something, or finish."
                );
                return Resolved::Answer { output: ToolOutput::error(content), sort: "repeated_call" };
            }
        }
        if let Some(resolved) = self.section_call(call) {
            return resolved;
        }
        if let Some(definition) =
            control::definitions().iter().find(|definition| definition.name == call.name)
        {
            return match arguments::parse(&call.arguments, definition) {
                Ok(arguments) => {
                    let controlled = control::answer(&call.name, arguments, &mut self.plan);
                    Resolved::Control { output: controlled.output, finish: controlled.finish }
                }
                Err(complaint) => malformed(complaint),
            };
        }
        match self.session().toolbox.find(&call.name) {
            None => self.unknown(&call.name),
            Some(tool) => match arguments::parse(&call.arguments, tool.definition()) {
                Ok(arguments) => Resolved::Tool { tool: Arc::clone(tool), arguments },
                Err(complaint) => malformed(complaint),
            },
        }
    }

    fn unknown(&self, name: &str) -> Resolved {
        let names = || self.session().definitions().map(|definition: &Definition| definition.name.as_ref());
        let near = fusee_text::near::nearest(name, names());
        let hint = if near.is_empty() {
            format!("The tools are: {}.", names().collect::<Vec<_>>().join(", "))
        } else {
            format!("Did you mean {}?", near.join(" or "))
        };
        let output = ToolOutput::error(format!("There is no tool `{name}`. {hint}"));
        Resolved::Answer { output, sort: "unknown_tool" }
    }

    async fn make(
        &mut self,
        call: &ToolCall,
        resolved: Resolved,
        answered: &mut Answered,
    ) -> Result<(Called, Recorded), Stop> {
        match resolved {
            Resolved::Answer { output, sort } => {
                self.facts.fed_back(sort);
                self.answer_step(call, Called::ended(output, Fate::Refused)).await
            }
            Resolved::Control { output, finish } => {
                answered.finished = finish.or(answered.finished.take());
                self.answer_step(call, Called::plain(output)).await
            }
            Resolved::Section { output, expansion } => {
                self.answer_step(call, Called { expansion, ..Called::plain(output) }).await
            }
            Resolved::Tool { tool, arguments } => match self.gate(call, &*tool, &arguments).await? {
                Some(refusal) => {
                    self.facts.fed_back("refused_call");
                    self.answer_step(call, refusal).await
                }
                None if tool.repeat() == Repeat::Harmless => self.harmless(call, &tool, arguments).await,
                None => self.effectful(call, &tool, arguments).await,
            },
        }
    }

    /// Whether a call may run: first the rules of a review, then the user's policy.
    fn judge(&self, tool: &dyn Tool) -> Gate {
        let (definition, session) = (tool.definition(), self.session());
        let policy = Gatekeeper::judge(&self.terms, definition.category, tool.repeat() == Repeat::Never);
        let Some(review) = &session.review else { return policy };
        match review.judge(&definition.name, definition.category, self.facts.calls_total()) {
            Ruling::Allowed => policy,
            Ruling::AskFirst => match self.terms.approve {
                Approve::Never => Gate::Shut("a review only looks".to_owned()),
                Approve::Auto | Approve::Ask => {
                    Gate::Ask("a review only looks unless a person allows more".to_owned())
                }
            },
            Ruling::NotInReview => Gate::Shut("a review only looks".to_owned()),
            Ruling::TooMany => Gate::Shut(format!(
                "the review has used its {} calls; answer now with what you found",
                review.max_tool_calls
            )),
        }
    }

    /// Asks whoever must be asked. The answer is a step of its own.
    async fn gate(
        &mut self,
        call: &ToolCall,
        tool: &dyn Tool,
        arguments: &Value,
    ) -> Result<Option<Called>, Stop> {
        let gatekeeper = &self.session().gatekeeper;
        let reason = match self.judge(tool) {
            Gate::Open => return Ok(None),
            Gate::Shut(reason) => return Ok(Some(refusal(&reason))),
            Gate::Ask(reason) => reason,
        };
        let (call_id, name) = (call.id.clone(), call.name.clone());
        let question = Question { call_id, name, arguments: arguments.clone(), reason };
        self.emit(Event::ApprovalRequested {
            call_id: question.call_id.clone(),
            name: question.name.clone(),
            arguments: question.arguments.clone(),
            reason: question.reason.clone(),
        });
        let step = Call {
            branch: self.task.branch.clone(),
            kind: Kind::Wait,
            callee: "approval".to_owned(),
            args: to_value(&question),
        };
        let (approver, cancel) = (&gatekeeper.approver, &self.task.cancel);
        let body = Box::new(move || {
            let ask = async move {
                let answer = cancel.run_until_cancelled(approver.ask(&question)).await;
                to_value(&answer.unwrap_or(Answer { approved: false, reason: Some("cancelled".to_owned()) }))
            };
            Box::pin(ask) as BoxFuture<'_, Value>
        });
        // Waiting for a person is not working time, so the step's duration is not counted.
        let answer: Answer = self.engine().step(step, body).await?.read()?;
        self.emit(Event::ApprovalResolved {
            call_id: call.id.clone(),
            approved: answer.approved,
            reason: answer.reason.clone(),
        });
        let why = answer.reason.as_deref().unwrap_or("a person said no");
        Ok((!answer.approved).then(|| refusal(why)))
    }

    /// An answer that needs nothing from outside. It is a step all the same: each call has one.
    async fn answer_step(&self, call: &ToolCall, called: Called) -> Result<(Called, Recorded), Stop> {
        let step = self.step_of(&call.name, json!(call.arguments));
        let body = Box::new(move || Box::pin(async move { to_value(&called) }) as BoxFuture<'_, Value>);
        read(self.engine().step(step, body).await?)
    }

    async fn harmless(
        &self,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        arguments: Value,
    ) -> Result<(Called, Recorded), Stop> {
        let step = self.step_of(&tool.definition().name, arguments.clone());
        let (context, left) = (self.context(call), self.left_ms());
        let body = Box::new(move || {
            let run = async move {
                let output = match tool.prepare(arguments, &context).await {
                    Ok(prepared) => within(left, &context, tool.perform(prepared, &context)).await,
                    Err(answer) => answer,
                };
                to_value(&Called::plain(output))
            };
            Box::pin(run) as BoxFuture<'_, Value>
        });
        read(self.engine().step(step, body).await?)
    }

    async fn effectful(
        &self,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        arguments: Value,
    ) -> Result<(Called, Recorded), Stop> {
        let step = self.step_of(&tool.definition().name, arguments.clone());
        let (context, left) = (self.context(call), self.left_ms());
        let plan: Mutex<Option<Prepared>> = Mutex::new(None);
        let (context_now, plan_now, asked) = (&context, &plan, arguments.clone());
        let intend = Box::new(move || {
            let prepare = async move {
                match tool.prepare(asked, context_now).await {
                    Err(output) => Intention::Answer(to_value(&Called::plain(output))),
                    Ok(prepared) => {
                        let intent = prepared.intent.clone();
                        *plan_now.lock().unwrap_or_else(PoisonError::into_inner) = Some(prepared);
                        Intention::Go(intent)
                    }
                }
            };
            Box::pin(prepare) as BoxFuture<'_, Intention>
        });
        let body = Box::new(move || {
            let perform = async move {
                let prepared = plan_now.lock().unwrap_or_else(PoisonError::into_inner).take();
                let output = match prepared {
                    Some(prepared) => within(left, context_now, tool.perform(prepared, context_now)).await,
                    None => ToolOutput::error("the call was not prepared"),
                };
                to_value(&Called::plain(output))
            };
            Box::pin(perform) as BoxFuture<'_, Value>
        });
        match self.engine().once(step, intend, body).await? {
            Outcome::Done(recorded) => read(recorded),
            Outcome::Interrupted { key, intent } => {
                let (arguments, context) = (&arguments, &context);
                let body = Box::new(move || {
                    Box::pin(async move { to_value(&settle(&**tool, arguments, &intent, context).await) })
                        as BoxFuture<'_, Value>
                });
                read(self.engine().conclude(key, body).await?)
            }
        }
    }

    fn step_of(&self, callee: &str, args: Value) -> Call {
        Call { branch: self.task.branch.clone(), kind: Kind::Tool, callee: callee.to_owned(), args }
    }

    fn context(&self, call: &ToolCall) -> CallContext {
        let (engine, branch) = (Arc::clone(&self.task.engine), self.task.branch.clone());
        let call_id = call.id.clone();
        CallContext {
            workspace: Arc::clone(&self.session().workspace),
            call_id: call_id.clone(),
            cancel: self.task.cancel.child_token(),
            progress: Arc::new(move |text| {
                engine.pass(&branch, Delta::Output { call_id: call_id.clone(), text: text.to_owned() });
            }),
            limits: fusee_tools::Limits::default(),
        }
    }

    /// Everything that follows from a result: events, facts, the workspace's memory, the conversation.
    fn conclude_call(
        &mut self,
        call: ToolCall,
        called: Called,
        duration_ms: u64,
        ran: bool,
        answered: &mut Answered,
    ) {
        let Called { output, fate, expansion } = called;
        // A command that a crash ended counts as interrupted: nobody cancelled the task.
        let fate = fate.or(output.aborted.then_some(Fate::Aborted));
        self.session().workspace.recall(&output);
        self.known.learn(&output);
        if fate != Some(Fate::Refused) {
            self.facts.called(&call.name, &output);
        }
        if ran {
            self.turns.ran(&output.content, !output.changed.is_empty());
        }
        answered.aborted |= fate == Some(Fate::Aborted) && self.left_ms() != Some(0);
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
            fate,
        }));
        self.conversation.push(Message::Tool {
            call_id: call.id,
            name: call.name,
            content: output.content,
            ok: output.ok,
        });
        if let Some(expansion) = expansion {
            self.expanded(expansion);
        }
    }
}

/// Cancels the call when the task's time is over, and still takes what it has to say.
async fn within(left_ms: Option<u64>, context: &CallContext, call: BoxFuture<'_, ToolOutput>) -> ToolOutput {
    let Some(left) = left_ms else { return call.await };
    let mut call = call;
    tokio::select! {
        output = &mut call => output,
        () = tokio::time::sleep(Duration::from_millis(left)) => {
            context.cancel.cancel();
            call.await
        }
    }
}

fn read(mut recorded: Recorded) -> Result<(Called, Recorded), Stop> {
    let value = std::mem::take(&mut recorded.value);
    let called = serde_json::from_value(value).map_err(|error| Stop::Unreadable(error.to_string()))?;
    Ok((called, recorded))
}

fn malformed(complaint: String) -> Resolved {
    Resolved::Answer { output: ToolOutput::error(complaint), sort: "malformed_arguments" }
}

fn refusal(why: &str) -> Called {
    Called::ended(ToolOutput::error(format!("Not run: {why}.")), Fate::Refused)
}

/// Finds out what became of a call that a crash cut off, and finishes it where that is safe.
async fn settle(tool: &dyn Tool, arguments: &Value, intent: &Value, context: &CallContext) -> Called {
    match tool.settle(arguments, intent, context).await {
        Settled::Done(output) => Called::plain(output),
        Settled::Unknown(output) => Called::ended(output, Fate::Interrupted),
        Settled::Redo => {
            let output = match tool.prepare(arguments.clone(), context).await {
                Ok(prepared) => tool.perform(prepared, context).await,
                Err(answer) => answer,
            };
            Called::plain(output)
        }
    }
}
