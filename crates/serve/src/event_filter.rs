//! Which events of a run are listed: by kind, by tool, by text.

use std::collections::HashMap;

use fusee::engine::journal::event::TaskStatus;
use fusee::journal::{Event, EventRecord};

/// Tools that change files.
const EDITS: &[&str] = &["apply_patch", "edit_file", "write_file"];

/// Tools that run commands.
const COMMANDS: &[&str] = &["shell", "shell_kill", "shell_poll"];

/// Which events the page asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// All events.
    #[default]
    All,
    /// Events that report a failure.
    Failed,
    /// Changes of files.
    Edits,
    /// Calls that run a program, and their output.
    Commands,
    /// Messages and answers.
    Messages,
    /// Calls of one tool.
    Tool(String),
}

impl EventKind {
    /// Reads `all`, `failed`, `edits`, `commands`, `messages` or `tool:NAME`.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "all" | "" => Self::All,
            "failed" => Self::Failed,
            "edits" => Self::Edits,
            "commands" => Self::Commands,
            "messages" => Self::Messages,
            _ => Self::Tool(word.strip_prefix("tool:")?.to_owned()),
        })
    }
}

/// A filter that is shown events in their order.
#[derive(Default)]
pub(crate) struct EventFilter {
    kind: EventKind,
    text: String,
    task: Option<String>,
    /// Tools of the calls seen so far, by call.
    calls: HashMap<String, String>,
}

impl EventFilter {
    /// A filter by kind, by text (anywhere in an event, without regard to case) and by task.
    pub(crate) fn new(kind: EventKind, text: &str, task: Option<String>) -> Self {
        Self { kind, text: text.to_lowercase(), task, calls: HashMap::new() }
    }

    /// Whether it lets everything through.
    pub(crate) fn is_open(&self) -> bool {
        self.kind == EventKind::All && self.text.is_empty() && self.task.is_none()
    }

    /// Whether an event is listed.
    pub(crate) fn takes(&mut self, record: &EventRecord) -> bool {
        if let Event::ToolCall { call_id, name, .. } = &record.event {
            self.calls.insert(call_id.clone(), name.clone());
        }
        let is_task = self.task.as_ref().is_none_or(|task| task == record.task.as_str());
        is_task && self.is_kind(&record.event) && self.has_text(record)
    }

    fn is_kind(&self, event: &Event) -> bool {
        let of_tool = |wanted: &dyn Fn(&str) -> bool| match event {
            Event::ToolCall { name, .. } | Event::ApprovalRequested { name, .. } => wanted(name),
            Event::ToolResult(result) => self.calls.get(&result.call_id).is_some_and(|name| wanted(name)),
            _ => false,
        };
        match &self.kind {
            EventKind::All => true,
            EventKind::Failed => match event {
                Event::ToolResult(result) => !result.ok,
                Event::TaskComplete(complete) => complete.status == TaskStatus::Failed,
                Event::Error { .. } | Event::Retry { .. } | Event::Warning { .. } => true,
                _ => false,
            },
            EventKind::Edits => {
                matches!(event, Event::FileChanged { .. }) || of_tool(&|name| EDITS.contains(&name))
            }
            EventKind::Commands => of_tool(&|name| COMMANDS.contains(&name)),
            EventKind::Messages => {
                matches!(event, Event::Message { .. } | Event::TaskStarted(_) | Event::TaskComplete(_))
            }
            EventKind::Tool(tool) => of_tool(&|name| name == tool),
        }
    }

    fn has_text(&self, record: &EventRecord) -> bool {
        // Searching the JSON finds names of tools and files as well as texts; escapes hide line ends and quotes only.
        self.text.is_empty()
            || serde_json::to_string(&record.event).is_ok_and(|json| json.to_lowercase().contains(&self.text))
    }
}
