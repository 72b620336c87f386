//! Maps the events of a run to session updates: live, and when a session is loaded. Both give the client the same
//! conversation; live text comes in fragments.

use std::collections::HashMap;
use std::path::PathBuf;

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, Cost, ImageContent, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus,
    SessionUpdate, TextContent, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
    UsageUpdate,
};
use fusee::journal::Branch;
use fusee::journal::event::{Event, EventRecord, Role, TaskComplete, ToolResult};
use fusee::model::Image;
use serde_json::json;

use crate::tool_call;

/// Tool whose call is a question to the user.
pub(crate) const ASK_USER: &str = "ask_user";

/// Bytes of a running command's output that are shown.
const MAX_OUTPUT: usize = 16 << 10;

/// Whether a client has seen the user's message already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Viewing {
    /// The client has just sent it.
    Live,
    /// The session is loaded.
    Replay,
}

/// Maps the events of one run.
pub(crate) struct UpdateMapper {
    workspace: PathBuf,
    viewing: Viewing,
    images: Vec<Image>,
    /// Text sent for the message and the reasoning that a task is writing.
    text: HashMap<Branch, String>,
    thoughts: HashMap<Branch, String>,
    calls: HashMap<String, RunningCall>,
    last_message: String,
    context_tokens: u64,
    context_size: u64,
}

/// A call without a result.
struct RunningCall {
    name: String,
    diffs: Vec<ToolCallContent>,
    output: String,
}

impl UpdateMapper {
    pub(crate) fn new(workspace: PathBuf, viewing: Viewing) -> Self {
        Self {
            workspace,
            viewing,
            images: Vec::new(),
            text: HashMap::new(),
            thoughts: HashMap::new(),
            calls: HashMap::new(),
            last_message: String::new(),
            context_tokens: 0,
            context_size: 0,
        }
    }

    /// The images of the user's message, which are no part of an event.
    pub(crate) fn with_images(self, images: Vec<Image>) -> Self {
        Self { images, ..self }
    }

    /// From now on the client sees the run live.
    pub(crate) fn go_live(&mut self) {
        self.viewing = Viewing::Live;
    }

    /// The updates that an event causes.
    pub(crate) fn updates(&mut self, record: &EventRecord) -> Vec<SessionUpdate> {
        let is_main = record.task == Branch::main();
        match &record.event {
            Event::TaskStarted(started) if is_main && self.viewing == Viewing::Replay => {
                let picture = |image: Image| {
                    let content = ImageContent::new(&*image.data, image.media_type);
                    ContentChunk::new(ContentBlock::Image(content))
                };
                let images = std::mem::take(&mut self.images).into_iter().map(picture);
                let chunks = std::iter::once(chunk(&started.request)).chain(images);
                chunks.map(SessionUpdate::UserMessageChunk).collect()
            }
            Event::MessageDelta { text } => {
                self.text.entry(record.task.clone()).or_default().push_str(text);
                vec![SessionUpdate::AgentMessageChunk(chunk(text))]
            }
            Event::ReasoningDelta { text } => {
                self.thoughts.entry(record.task.clone()).or_default().push_str(text);
                vec![SessionUpdate::AgentThoughtChunk(chunk(text))]
            }
            Event::Message { role: Role::Assistant, text } => {
                let sent = self.text.remove(&record.task).unwrap_or_default();
                self.last_message.clone_from(text);
                unsent(&sent, text).map(SessionUpdate::AgentMessageChunk).into_iter().collect()
            }
            Event::Reasoning { text } => {
                let sent = self.thoughts.remove(&record.task).unwrap_or_default();
                unsent(&sent, text).map(SessionUpdate::AgentThoughtChunk).into_iter().collect()
            }
            Event::ToolCall { call_id, name, arguments } => {
                let diffs = tool_call::diffs(name, arguments, &self.workspace);
                let call = RunningCall { name: name.clone(), diffs, output: String::new() };
                self.calls.insert(call_id.clone(), call);
                vec![SessionUpdate::ToolCall(tool_call::started(call_id, name, arguments, &self.workspace))]
            }
            Event::ToolOutput { call_id, text } => self.output(call_id, text).into_iter().collect(),
            Event::ToolResult(result) => self.result(result),
            Event::ApprovalRequested { name, arguments, reason, .. } if name == ASK_USER => {
                let question = arguments.get("question").and_then(serde_json::Value::as_str);
                vec![SessionUpdate::AgentMessageChunk(chunk(question.unwrap_or(reason)))]
            }
            Event::TurnStart { input_tokens, max_input_tokens, .. } if is_main => {
                self.context_tokens = *input_tokens;
                self.context_size = max_input_tokens.unwrap_or_default();
                Vec::new()
            }
            Event::TurnComplete { output_tokens, .. } if is_main => {
                self.context_tokens += output_tokens;
                self.usage(None).into_iter().collect()
            }
            Event::TaskComplete(end) if is_main => self.end(end),
            _ => Vec::new(),
        }
    }

    /// Output of a running command: the client shows the newest part.
    fn output(&mut self, call_id: &str, text: &str) -> Option<SessionUpdate> {
        let call = self.calls.get_mut(call_id)?;
        call.output.push_str(text);
        if call.output.len() > MAX_OUTPUT {
            let from = call.output.ceil_char_boundary(call.output.len() - MAX_OUTPUT);
            call.output.drain(..from);
        }
        let content = vec![tool_call::text_content(&call.output)];
        let fields = ToolCallUpdateFields::new().content(content);
        Some(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call_id.to_owned(), fields)))
    }

    fn result(&mut self, result: &ToolResult) -> Vec<SessionUpdate> {
        let call = self.calls.remove(&result.call_id);
        let status = if result.ok { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
        let (name, diffs) = call.map(|call| (call.name, call.diffs)).unwrap_or_default();
        // A diff says more than the confirmation of its success.
        let content = match result.ok && !diffs.is_empty() {
            true => diffs,
            false => vec![tool_call::text_content(&result.content)],
        };
        let mut fields = ToolCallUpdateFields::new().status(status).content(content);
        if let Some(code) = result.exit_code {
            fields = fields.raw_output(json!({ "exit_code": code }));
        }
        let update = SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(result.call_id.clone(), fields));
        let plan = (name == "plan_tasks" && result.ok).then(|| plan(&result.content)).flatten();
        std::iter::once(update).chain(plan.map(SessionUpdate::Plan)).collect()
    }

    fn end(&mut self, end: &TaskComplete) -> Vec<SessionUpdate> {
        // The result of a template or workflow may be something that no message said.
        let unsaid = !end.answer.is_empty() && end.answer.trim() != self.last_message.trim();
        let answer = unsaid.then(|| SessionUpdate::AgentMessageChunk(chunk(&end.answer)));
        let cost = end.cost_usd.and_then(|usd| self.usage(Some(usd)));
        answer.into_iter().chain(cost).collect()
    }

    fn usage(&self, cost_usd: Option<f64>) -> Option<SessionUpdate> {
        if self.context_size == 0 {
            return None;
        }
        let usage = UsageUpdate::new(self.context_tokens, self.context_size);
        Some(SessionUpdate::UsageUpdate(match cost_usd {
            Some(usd) => usage.cost(Cost::new(usd, "USD")),
            None => usage,
        }))
    }
}

/// A message as an update.
pub(crate) fn chunk(text: &str) -> ContentChunk {
    ContentChunk::new(ContentBlock::Text(TextContent::new(text)))
}

/// The rest of a message whose beginning was streamed.
fn unsent(sent: &str, whole: &str) -> Option<ContentChunk> {
    let rest = match whole.strip_prefix(sent) {
        Some(rest) => rest.to_owned(),
        // A reply that broke off was requested again and came out differently.
        None => format!("\n\n{whole}"),
    };
    (!rest.is_empty()).then(|| chunk(&rest))
}

/// The plan as the tool `plan_tasks` renders it.
fn plan(text: &str) -> Option<Plan> {
    let entry = |line: &str| {
        let (mark, rest) = line.split_at_checked(3)?;
        let status = match mark {
            "[ ]" => PlanEntryStatus::Pending,
            "[~]" => PlanEntryStatus::InProgress,
            "[x]" | "[!]" => PlanEntryStatus::Completed,
            _ => return None,
        };
        let text = rest.trim_start().split_once(". ").map_or(rest, |(_, text)| text);
        Some(PlanEntry::new(text, PlanEntryPriority::Medium, status))
    };
    let entries: Vec<PlanEntry> = text.lines().filter_map(entry).collect();
    (!entries.is_empty()).then(|| Plan::new(entries))
}

#[cfg(test)]
mod tests;
