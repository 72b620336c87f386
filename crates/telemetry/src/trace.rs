//! Turns the events of a run into spans: `invoke_workflow` › `invoke_agent` › `chat MODEL` and `execute_tool NAME`.

use std::collections::HashMap;

use fusee::journal::event::{CallFate, Event, EventRecord, Role, TaskComplete, TaskStatus, ToolResult};
use fusee::journal::{Branch, Journal, JournalError, RunId};
use serde_json::{Value, json};

use crate::attribute::{
    AGENT_NAME, Attribute, AttributeValue, CACHED_TOKENS, CONVERSATION, ERROR_TYPE, FINISH_REASONS,
    FIRST_CHUNK, INPUT_MESSAGES, INPUT_TOKENS, OPERATION, OUTPUT_MESSAGES, OUTPUT_TOKENS, PROVIDER,
    REQUEST_MODEL, SERVER_ADDRESS, SERVER_PORT, TOOL_ARGUMENTS, TOOL_CALL_ID, TOOL_NAME, TOOL_RESULT,
    TOOL_TYPE, WORKFLOW_NAME,
};
use crate::id::{SpanId, TraceContext};
use crate::span::{SpanKind, TraceSpan};

/// Name of the agent.
const AGENT: &str = "fusee";
/// Bytes of a captured text.
const MAX_CONTENT: usize = 32 << 10;
/// Events read from a journal at a time.
const PAGE: usize = 256;
/// Retries noted in one span.
const MAX_EVENTS: usize = 64;

/// Facts about a run that its events do not contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedRun {
    /// Id of the run.
    pub run: String,
    /// Name of the workflow, if it runs one.
    pub workflow: Option<String>,
    /// Base URL of the model's server, if one is given.
    pub base_url: Option<String>,
}

/// Converts the events of a run into spans.
#[derive(Debug)]
pub struct RunTrace {
    run: TracedRun,
    context: TraceContext,
    content: bool,
    tasks: HashMap<Branch, OpenTask>,
    calls: HashMap<String, OpenCall>,
    root_start_ms: Option<i64>,
}

/// A task without an end.
#[derive(Debug, Default)]
struct OpenTask {
    start_ms: i64,
    parent: Option<Branch>,
    model: String,
    chat: Option<OpenChat>,
    /// Messages since the last request, if content is captured.
    input: Vec<Value>,
}

/// A model request, with all its retries.
#[derive(Debug)]
struct OpenChat {
    turn: String,
    start_ms: i64,
    end_ms: Option<i64>,
    first_chunk_s: Option<f64>,
    input_tokens: u64,
    input: Vec<Value>,
    /// Parts of the reply, if content is captured.
    output: Vec<Value>,
    calls_tools: bool,
    retries: Vec<(i64, &'static str, Vec<Attribute>)>,
}

#[derive(Debug)]
struct OpenCall {
    task: Branch,
    name: String,
    start_ms: i64,
    arguments: Option<String>,
}

impl RunTrace {
    /// A run in this trace. `content` also records what was said.
    #[must_use]
    pub fn new(run: TracedRun, context: TraceContext, content: bool) -> Self {
        let (tasks, calls) = (HashMap::new(), HashMap::new());
        Self { run, context, content, tasks, calls, root_start_ms: None }
    }

    /// The span under which the commands of the run appear.
    #[must_use]
    pub fn agent_span(run: &str) -> SpanId {
        SpanId::derive(run, &["task", "main"])
    }

    /// Takes in what the journal holds of the run; returns the spans that have ended.
    pub fn read(&mut self, journal: &Journal, run: &RunId) -> Result<Vec<TraceSpan>, JournalError> {
        let (mut spans, mut after) = (Vec::new(), 0);
        loop {
            let page = journal.events(run, after, u64::MAX, PAGE)?;
            for record in &page {
                spans.extend(self.apply(record));
                after = record.seq;
            }
            if page.len() < PAGE {
                return Ok(spans);
            }
        }
    }

    /// Takes in an event; returns the spans that it ends.
    pub fn apply(&mut self, record: &EventRecord) -> Vec<TraceSpan> {
        let (task, at_ms) = (&record.task, record.ts_ms);
        match &record.event {
            Event::TaskStarted(started) => {
                self.root_start_ms.get_or_insert(at_ms);
                let input = if self.content { vec![message("user", &started.request)] } else { Vec::new() };
                let parent = started.parent.as_deref().map(Branch::from);
                let model = started.model.clone();
                let open = OpenTask { start_ms: at_ms, parent, model, input, ..OpenTask::default() };
                self.tasks.insert(task.clone(), open);
                Vec::new()
            }
            Event::TurnStart { turn_id, input_tokens, .. } => {
                self.begin_chat(task, turn_id, *input_tokens, at_ms)
            }
            Event::Retry { attempt, after_ms, reason } => {
                if let Some(chat) = self.chat(task).filter(|chat| chat.retries.len() < MAX_EVENTS) {
                    let attributes: Vec<Attribute> = vec![
                        ("fusee.retry.attempt", u64::from(*attempt).into()),
                        ("fusee.retry.after_ms", (*after_ms).into()),
                        ("fusee.retry.reason", reason.as_str().into()),
                    ];
                    chat.retries.push((at_ms, "retry", attributes));
                }
                Vec::new()
            }
            Event::Message { role: Role::Assistant, text } => {
                let content = self.content;
                if let Some(chat) = self.chat(task) {
                    chat.end_ms = Some(at_ms);
                    chat.output.extend(content.then(|| text_part(text)));
                }
                Vec::new()
            }
            Event::Reasoning { text } if self.content => {
                if let Some(chat) = self.chat(task) {
                    chat.output.push(json!({ "type": "reasoning", "content": bounded(text) }));
                }
                Vec::new()
            }
            Event::ToolCall { call_id, name, arguments } => {
                self.begin_call(task, call_id, name, arguments, at_ms);
                Vec::new()
            }
            Event::ToolResult(result) => self.end_call(result, at_ms).into_iter().collect(),
            Event::TurnComplete { output_tokens, cached_tokens, wait_ms, .. } => {
                if let (Some(chat), Some(wait_ms)) = (self.chat(task), wait_ms) {
                    chat.first_chunk_s = Some(*wait_ms as f64 / 1000.0);
                }
                self.end_chat(task, at_ms, Some((*output_tokens, *cached_tokens)), None).into_iter().collect()
            }
            Event::TaskComplete(end) => self.end_task(task, end, at_ms),
            _ => Vec::new(),
        }
    }

    fn chat(&mut self, task: &Branch) -> Option<&mut OpenChat> {
        self.tasks.get_mut(task)?.chat.as_mut()
    }

    fn begin_chat(&mut self, task: &Branch, turn: &str, input_tokens: u64, at_ms: i64) -> Vec<TraceSpan> {
        // A request that was interrupted by a crash has no end of its own.
        let former = self.end_chat(task, at_ms, None, Some("interrupted"));
        let open = self
            .tasks
            .entry(task.clone())
            .or_insert_with(|| OpenTask { start_ms: at_ms, ..OpenTask::default() });
        self.root_start_ms.get_or_insert(at_ms);
        open.chat = Some(OpenChat {
            turn: turn.to_owned(),
            start_ms: at_ms,
            end_ms: None,
            first_chunk_s: None,
            input_tokens,
            input: std::mem::take(&mut open.input),
            output: Vec::new(),
            calls_tools: false,
            retries: Vec::new(),
        });
        former.into_iter().collect()
    }

    fn begin_call(&mut self, task: &Branch, call_id: &str, name: &str, arguments: &Value, at_ms: i64) {
        let content = self.content;
        if let Some(chat) = self.chat(task) {
            chat.end_ms.get_or_insert(at_ms);
            chat.calls_tools = true;
            if content {
                let part =
                    json!({ "type": "tool_call", "id": call_id, "name": name, "arguments": arguments });
                chat.output.push(part);
            }
        }
        let arguments = content.then(|| bounded(&arguments.to_string()));
        let call = OpenCall { task: task.clone(), name: name.to_owned(), start_ms: at_ms, arguments };
        self.calls.insert(call_id.to_owned(), call);
    }

    fn end_call(&mut self, result: &ToolResult, at_ms: i64) -> Option<TraceSpan> {
        let call = self.calls.remove(&result.call_id)?;
        if self.content
            && let Some(task) = self.tasks.get_mut(&call.task)
        {
            let part = json!({
                "type": "tool_call_response", "id": result.call_id, "result": bounded(&result.content),
            });
            task.input.push(json!({ "role": "tool", "parts": [part] }));
        }
        let reason = match result.fate {
            Some(CallFate::Aborted) => "aborted",
            Some(CallFate::Interrupted) => "interrupted",
            Some(CallFate::Refused) => "refused",
            None => "tool_error",
        };
        let failure = (!result.ok).then_some(reason);
        let mut attributes: Vec<Attribute> = vec![
            (OPERATION, "execute_tool".into()),
            (TOOL_NAME, call.name.as_str().into()),
            (TOOL_TYPE, "function".into()),
            (TOOL_CALL_ID, result.call_id.as_str().into()),
        ];
        attributes.extend(call.arguments.map(|arguments| (TOOL_ARGUMENTS, arguments.into())));
        attributes.extend(self.content.then(|| (TOOL_RESULT, bounded(&result.content).into())));
        attributes.extend(failure.map(|failure| (ERROR_TYPE, failure.into())));
        Some(TraceSpan {
            trace: self.context.trace,
            id: SpanId::derive(&self.run.run, &["call", &result.call_id]),
            parent: Some(self.task_span(&call.task)),
            name: format!("execute_tool {}", call.name),
            kind: SpanKind::Internal,
            start_ms: call.start_ms,
            end_ms: at_ms,
            attributes,
            events: Vec::new(),
            error: failure.map(str::to_owned),
        })
    }

    fn end_chat(
        &mut self,
        task: &Branch,
        at_ms: i64,
        tokens: Option<(u64, u64)>,
        failure: Option<&str>,
    ) -> Option<TraceSpan> {
        let open = self.tasks.get_mut(task)?;
        let chat = open.chat.take()?;
        let model = open.model.clone();
        let name = model.split_once(':').map_or(model.as_str(), |(_, name)| name);
        let mut attributes: Vec<Attribute> = vec![(OPERATION, "chat".into())];
        attributes.push((PROVIDER, provider(&model).into()));
        attributes.push((REQUEST_MODEL, name.into()));
        attributes.extend(server(self.run.base_url.as_deref()));
        attributes.push((CONVERSATION, self.run.run.as_str().into()));
        attributes.push((INPUT_TOKENS, chat.input_tokens.into()));
        let reason = if chat.calls_tools { "tool_call" } else { "stop" };
        if let Some((output, cached)) = tokens {
            attributes.push((OUTPUT_TOKENS, output.into()));
            if cached > 0 {
                attributes.push((CACHED_TOKENS, cached.into()));
            }
            attributes.push((FINISH_REASONS, AttributeValue::Texts(vec![reason.to_owned()])));
        }
        attributes.extend(chat.first_chunk_s.map(|seconds| (FIRST_CHUNK, seconds.into())));
        if self.content {
            attributes.push((INPUT_MESSAGES, Value::Array(chat.input).to_string().into()));
            let reason = if tokens.is_some() { reason } else { "error" };
            let reply = json!([{ "role": "assistant", "parts": chat.output, "finish_reason": reason }]);
            attributes.push((OUTPUT_MESSAGES, reply.to_string().into()));
        }
        attributes.extend(failure.map(|failure| (ERROR_TYPE, failure.into())));
        Some(TraceSpan {
            trace: self.context.trace,
            id: SpanId::derive(&self.run.run, &["chat", task.as_str(), &chat.turn]),
            parent: Some(self.task_span(task)),
            name: format!("chat {name}"),
            kind: SpanKind::Client,
            start_ms: chat.start_ms,
            end_ms: chat.end_ms.unwrap_or(at_ms),
            attributes,
            events: chat.retries,
            error: failure.map(str::to_owned),
        })
    }

    fn end_task(&mut self, task: &Branch, end: &TaskComplete, at_ms: i64) -> Vec<TraceSpan> {
        let failure = match end.status {
            TaskStatus::Completed => None,
            TaskStatus::Cancelled => Some("cancelled".to_owned()),
            TaskStatus::Failed => Some(end.error.as_ref().map_or_else(
                || "failed".to_owned(),
                |error| {
                    let code = serde_json::to_value(error.code).unwrap_or_default();
                    code.as_str().unwrap_or("failed").to_ascii_lowercase()
                },
            )),
        };
        let mut spans: Vec<TraceSpan> =
            self.end_chat(task, at_ms, None, failure.as_deref()).into_iter().collect();
        let open =
            self.tasks.remove(task).unwrap_or_else(|| OpenTask { start_ms: at_ms, ..OpenTask::default() });
        let message = end.error.as_ref().map(|error| error.message.clone()).or_else(|| failure.clone());
        let is_main = *task == Branch::main();
        let parent = match &open.parent {
            Some(parent) => Some(self.task_span(parent)),
            None => self.enclosing_task(task).map(|parent| self.task_span(&parent)),
        };
        let parent = parent.or_else(|| match self.run.workflow {
            Some(_) => Some(self.workflow_span()),
            None => self.context.parent,
        });
        let mut attributes: Vec<Attribute> = vec![
            (OPERATION, "invoke_agent".into()),
            (AGENT_NAME, AGENT.into()),
            (CONVERSATION, self.run.run.as_str().into()),
        ];
        if !open.model.is_empty() {
            attributes.push((PROVIDER, provider(&open.model).into()));
            let name = open.model.split_once(':').map_or(open.model.as_str(), |(_, name)| name);
            attributes.push((REQUEST_MODEL, name.into()));
        }
        attributes.extend(end.cost_usd.map(|usd| ("fusee.cost_usd", usd.into())));
        attributes.extend(failure.clone().map(|failure| (ERROR_TYPE, failure.into())));
        spans.push(TraceSpan {
            trace: self.context.trace,
            id: self.task_span(task),
            parent,
            name: format!("invoke_agent {AGENT}"),
            kind: SpanKind::Internal,
            start_ms: open.start_ms,
            end_ms: at_ms,
            attributes,
            events: Vec::new(),
            error: message.clone(),
        });
        if let (true, Some(workflow)) = (is_main, self.run.workflow.clone()) {
            let mut attributes: Vec<Attribute> =
                vec![(OPERATION, "invoke_workflow".into()), (WORKFLOW_NAME, workflow.as_str().into())];
            attributes.extend(failure.map(|failure| (ERROR_TYPE, failure.into())));
            spans.push(TraceSpan {
                trace: self.context.trace,
                id: self.workflow_span(),
                parent: self.context.parent,
                name: format!("invoke_workflow {workflow}"),
                kind: SpanKind::Internal,
                start_ms: self.root_start_ms.unwrap_or(open.start_ms),
                end_ms: at_ms,
                attributes,
                events: Vec::new(),
                error: message,
            });
        }
        spans
    }

    /// The nearest task around this one.
    fn enclosing_task(&self, task: &Branch) -> Option<Branch> {
        let mut path = task.as_str();
        while let Some((above, _)) = path.rsplit_once('/') {
            let branch = Branch::from(above);
            if self.tasks.contains_key(&branch) {
                return Some(branch);
            }
            path = above;
        }
        None
    }

    fn task_span(&self, task: &Branch) -> SpanId {
        SpanId::derive(&self.run.run, &["task", task.as_str()])
    }

    fn workflow_span(&self) -> SpanId {
        SpanId::derive(&self.run.run, &["workflow"])
    }
}

fn message(role: &str, text: &str) -> Value {
    json!({ "role": role, "parts": [text_part(text)] })
}

fn text_part(text: &str) -> Value {
    json!({ "type": "text", "content": bounded(text) })
}

fn bounded(text: &str) -> String {
    match text.len() {
        ..=MAX_CONTENT => text.to_owned(),
        _ => format!("{}…", &text[..text.floor_char_boundary(MAX_CONTENT)]),
    }
}

/// The provider as the conventions name it.
fn provider(model: &str) -> String {
    let prefix = model.split_once(':').map_or("openai", |(provider, _)| provider);
    match prefix {
        "mistral" => "mistral_ai".to_owned(),
        "gemini" | "google" => "gcp.gemini".to_owned(),
        "xai" => "x_ai".to_owned(),
        other => other.to_owned(),
    }
}

fn server(base_url: Option<&str>) -> Vec<Attribute> {
    let Some((scheme, rest)) = base_url.and_then(|url| url.split_once("://")) else { return Vec::new() };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => (host, port.parse().unwrap_or_default()),
        _ => (authority, if scheme == "https" { 443_u16 } else { 80 }),
    };
    vec![(SERVER_ADDRESS, host.into()), (SERVER_PORT, u64::from(port).into())]
}

#[cfg(test)]
mod tests;
