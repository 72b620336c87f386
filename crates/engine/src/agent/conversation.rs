//! The conversation with the model: what fits into its window, compaction, continued conversations, changed
//! files. [`Conversation`] is that of one running task.

pub(crate) mod carry_over;
pub(crate) mod compaction;
pub(crate) mod context_usage;
pub(crate) mod external_changes;
mod history_window;
pub(crate) mod known_files;
pub(crate) mod sectioned_prompt;

use fusee_journal::event::{Event, Role};
use fusee_journal::{RunAborted, StepKind, StepRequest};
use fusee_model::{Message, Reply, ToolSpec};
use serde_json::{Value, json};

use super::execution::Execution;
use super::flow::FlowState;
use super::limits::SummaryBy;
use super::machine::TurnEvent;
use super::model_request::{model_summary, to_message};
use super::task::AgentTask;
use super::tool_calls::subtask_tool;
use compaction::CompactionRetention;
use context_usage::{ContextUsage, size};
use history_window::HistoryWindow;
use sectioned_prompt::{Expansion, RenderedPrompt};

/// Below this size the server's context size cannot matter, so it is not queried: short tasks start faster.
const ASK_CONTEXT_FROM: u64 = 3_000;

/// Fraction of the limit that a compaction aims for.
const COMPACT_TO: f64 = 0.4;

/// Fraction of the context that a conversation may fill after the server rejected a larger one; the rest is for
/// the reply and for the inaccuracy of the estimate.
const FIT_TO: f64 = 0.8;

/// Fraction of the limit within which the newest turns are kept verbatim.
const KEEP_RECENT: f64 = 0.2;

/// Maximum characters of the model's explanation of a call.
const EXPLANATION_CHARACTERS: usize = 400;

/// The conversation of a running task.
pub(crate) struct Conversation<'t> {
    pub(crate) history: HistoryWindow,
    pub(crate) usage: ContextUsage,
    /// The prompt, if it has sections that open.
    pub(crate) prompt: Option<RenderedPrompt<'t>>,
    /// The phase text in the system prompt.
    phase: Option<String>,
    /// Number of messages contained in earlier requests.
    sent: usize,
    /// Context size of the model, if its server reports it.
    context_tokens: Option<u64>,
    context_asked: bool,
    /// Tokens that the server accepts, if it rejected a larger conversation.
    pub(crate) accepted_tokens: Option<u64>,
}

impl<'t> Conversation<'t> {
    pub(crate) fn new(task: &'t AgentTask, flow: &FlowState) -> Self {
        let prompt = task.sectioned_prompt.as_ref().map(RenderedPrompt::new);
        let phase = flow.phase_in_system().map(str::to_owned);
        let (system, tools) = frame(task, flow, prompt.as_ref(), phase.as_deref());
        let dialect = task.session.model.dialect();
        let mut history = HistoryWindow::new(dialect, system, tools, task.rules.history);
        task.input.iter().for_each(|message| history.push(message.clone()));
        let usage = ContextUsage::default();
        Self {
            history,
            usage,
            prompt,
            phase,
            sent: 0,
            context_tokens: None,
            context_asked: false,
            accepted_tokens: task.rules.accepted_tokens,
        }
    }

    /// Tokens in the next request.
    pub(crate) fn tokens(&self) -> u64 {
        self.usage.now(self.history.encoded_len())
    }

    /// Sends a message of the user's side with the next request.
    pub(crate) fn say(&mut self, run: &Execution<'_>, text: &str) {
        run.emit(Event::Message { role: Role::User, text: text.to_owned() });
        self.history.push(Message::user(text.to_owned()));
    }

    /// Marks all messages as sent.
    pub(crate) fn mark_sent(&mut self) {
        self.sent = self.history.messages().len();
    }

    /// Adds the reply. Returns its estimated tokens.
    pub(crate) fn add_reply(&mut self, reply: &Reply) -> u64 {
        let before = self.history.encoded_len();
        self.history.push(to_message(reply));
        self.mark_sent();
        let added = self.history.encoded_len().saturating_sub(before);
        self.usage.replied(before, added, reply.usage.as_ref());
        self.usage.estimate(added)
    }

    /// Arguments of a request's step: what it adds to the previous one. That is enough to tell requests apart
    /// and to show how they differ, at a cost proportional to what the turn added.
    pub(crate) fn request_args(&self, tail: Option<&str>) -> Value {
        let messages = self.history.messages();
        let mut args = json!({ "messages": &messages[self.sent.min(messages.len())..] });
        if self.sent == 0 {
            let tools: Vec<_> = self.history.tools().iter().map(|tool| tool.name.as_str()).collect();
            args["system"] = self.history.system().into();
            args["tools"] = tools.into();
        }
        if let Some(tail) = tail {
            args["tail"] = tail.into();
        }
        args
    }

    /// The text of the reply that made the current calls, truncated for a question.
    pub(crate) fn explanation(&self) -> Option<&str> {
        let text = self.history.messages().iter().rev().find_map(|message| match message {
            Message::Assistant { text, .. } => Some(text.trim()),
            Message::User { .. } | Message::Tool { .. } => None,
        })?;
        let end = text.char_indices().nth(EXPLANATION_CHARACTERS).map_or(text.len(), |(end, _)| end);
        (!text.is_empty()).then(|| &text[..end])
    }

    /// Inserts text before the request, because small models follow best what comes last.
    pub(crate) fn insert_before_request(&mut self, mut pieces: Vec<String>) {
        let mut messages = self.history.messages().to_vec();
        if let Some(Message::User { text, .. }) = messages.last_mut() {
            pieces.push(std::mem::take(text));
            *text = pieces.join("\n\n");
        }
        self.history.rewrite(messages);
    }

    /// Rebuilds the system prompt and the tools after the prompt changed.
    fn set_frame(&mut self, task: &AgentTask, flow: &FlowState) {
        let (system, tools) = frame(task, flow, self.prompt.as_ref(), self.phase.as_deref());
        self.history.set_frame(system, tools);
        self.sent = 0;
    }

    /// Updates the phase text at the end of the system prompt, if it belongs there and has changed.
    pub(crate) fn show_phase(&mut self, task: &AgentTask, flow: &FlowState) {
        if flow.phase_in_system() != self.phase.as_deref() {
            self.phase = flow.phase_in_system().map(str::to_owned);
            self.set_frame(task, flow);
        }
    }

    /// Records the sections that a call opened.
    pub(crate) fn expand(&mut self, run: &Execution<'_>, expansion: Expansion) {
        run.emit(Event::Expansion {
            section_keys: expansion.section_keys.clone(),
            reason: expansion.reason.clone(),
            opened: expansion.opened.iter().cloned().collect(),
        });
        if let Some(prompt) = &mut self.prompt {
            prompt.add(expansion);
        }
    }

    /// Renders the prompt again if the turn opened sections.
    pub(crate) fn rebind(&mut self, task: &AgentTask, flow: &FlowState) {
        if self.prompt.as_mut().and_then(RenderedPrompt::rebind).is_some() {
            self.set_frame(task, flow);
        }
    }

    /// The context limit: `limit`, capped at the context size of the model's server.
    pub(crate) fn max_tokens(&self, limit: u64) -> u64 {
        limit.min(self.context_tokens.unwrap_or(u64::MAX))
    }

    /// The size to keep the context below: the limit, or what the server accepts if that is less.
    pub(crate) fn context_size(&self, limit: u64) -> u64 {
        self.max_tokens(limit).min(self.accepted_tokens.unwrap_or(u64::MAX))
    }

    /// Approximate number of bytes that still fit into a context of `max_tokens`.
    pub(crate) fn room_bytes(&self, max_tokens: u64) -> usize {
        self.usage.bytes(max_tokens.saturating_sub(self.tokens()))
    }

    /// Reports a moved history window as a compaction event; `tokens` is the size before.
    pub(crate) fn report_moves(&mut self, run: &Execution<'_>, turn_index: u32, tokens: u64) {
        let moves = self.history.moved();
        if moves > 0 {
            self.usage.rewritten();
            self.report_compaction(run, turn_index, tokens, moves);
        }
    }

    fn report_compaction(&self, run: &Execution<'_>, turn_index: u32, before: u64, items_removed: u32) {
        run.emit(Event::Compaction {
            timestamp: run.meter.last_ms,
            turn_index,
            tokens_before: before,
            tokens_after: self.tokens(),
            items_removed,
        });
    }

    /// Compacts the conversation, if that saves enough. `rejected` is set if the server rejected it: the tokens
    /// that it accepts, from now on.
    pub(crate) async fn compact(
        &mut self,
        run: &mut Execution<'_>,
        turn_index: u32,
        rejected: Option<u64>,
    ) -> Result<TurnEvent, RunAborted> {
        self.accepted_tokens = rejected.or(self.accepted_tokens);
        let (before, max_tokens) = (self.tokens(), self.context_size(run.policy.limits.max_tokens));
        let limit = max_tokens as f64;
        let keep = CompactionRetention {
            first_user_messages: 1,
            request: run.task.input.last().map(Message::text),
            recent_tokens: (limit * KEEP_RECENT) as u64,
        };
        // System prompt and tools stay unchanged: the rest of the target is for the messages.
        let messages: usize = self.history.messages().iter().map(size).sum();
        let overhead = self.usage.estimate(self.history.encoded_len().saturating_sub(messages));
        let target = ((limit * COMPACT_TO) as u64).saturating_sub(overhead);
        let count = |message: &Message| self.usage.estimate(size(message));
        let compacted = compaction::compact(self.history.messages(), &keep, target, &count);
        let compacted = match rejected {
            None => compacted,
            Some(tokens) => {
                let limit = ((tokens as f64 * FIT_TO) as u64).saturating_sub(overhead);
                compaction::fit(self.history.messages(), compacted, limit, &count)
            }
        };
        let Some(mut compacted) = compacted else { return Ok(TurnEvent::Compacted { smaller: false }) };
        if run.session().limits.compaction_summary == SummaryBy::Model {
            model_summary::summarise(run, self, max_tokens, &mut compacted).await?;
        }
        self.history.rewrite(compacted.messages);
        self.usage.rewritten();
        self.sent = 0;
        self.report_compaction(run, turn_index, before, compacted.items_removed);
        Ok(TurnEvent::Compacted { smaller: true })
    }

    /// Queries the server's context size once, as soon as it can matter. Returns whether it became known.
    pub(crate) async fn probe_context_size(&mut self, run: &Execution<'_>) -> Result<bool, RunAborted> {
        if self.context_asked || self.tokens() < ASK_CONTEXT_FROM {
            return Ok(false);
        }
        self.context_asked = true;
        let model = &run.session().model;
        let call = StepRequest::new(&run.task.branch, StepKind::Environment, "context_tokens");
        let recorded = run.engine().step(call, async move { model.context_tokens().await }).await?;
        let known = recorded.value.filter(|tokens| *tokens > 0);
        self.context_tokens = known.or(self.context_tokens);
        Ok(known.is_some())
    }

    /// Queries the context size again, if it is unknown: a server that was loading could not report it.
    pub(crate) fn forget_context_probe(&mut self) {
        self.context_asked = self.context_tokens.is_some();
    }
}

/// Builds the system prompt and the tools, in the order the model sees them.
fn frame(
    task: &AgentTask,
    flow: &FlowState,
    prompt: Option<&RenderedPrompt<'_>>,
    phase: Option<&str>,
) -> (String, Vec<ToolSpec>) {
    let mut tools = task.session.specs(|definition| flow.offers(definition));
    tools.extend(task.spawn.iter().map(|_| subtask_tool::spec()));
    let mut system = task.system.clone();
    if let Some(prompt) = prompt {
        tools.retain(|tool| prompt.hides(&tool.name).is_none());
        tools.extend(prompt.specs());
        prompt.text().clone_into(&mut system);
    }
    if let Some(phase) = phase {
        system.truncate(system.trim_end().len());
        system.push_str("\n\n");
        system.push_str(phase);
    }
    (system, tools)
}

#[cfg(test)]
mod tests;
