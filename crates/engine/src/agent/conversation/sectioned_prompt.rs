//! A prompt whose sections can be opened during the task: `open_sections` and `read_section` in the agent
//! loop.
//!
//! [`crate::prompt`] defines sections and what opening them means. This module binds a checked prompt to its
//! task, renders it, and renders it again after an expansion, the only event that replaces the system prompt
//! already sent.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use fusee_model::{ToolCall, ToolSpec};
use fusee_tools::tool::arguments;
use fusee_tools::{Access, ToolDefinition, ToolOutput};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agent::tool_calls::CallRoute;
use crate::prompt::{
    AnyTask, BoundPrompt, DelegationPrompt, OpenProblem, Outlined, Prompt, RenderProblem, RenderedText,
    TaskFields, build_expansion_instructions, open_sections,
};

/// Maximum bytes returned by `read_section`; more would crowd out the work.
const READ_BYTES: usize = 48 * 1024;

/// A prompt bound to its task.
#[derive(Clone)]
pub struct SectionedPrompt {
    prompt: Prompt<AnyTask>,
    task: AnyTask,
    opened: BTreeSet<String>,
    first: RenderedText,
}

impl SectionedPrompt {
    /// Binds a prompt to a task, with the sections an earlier run opened. Renders every section once as a
    /// check, so that no later expansion fails.
    pub fn new<T: TaskFields>(
        prompt: &Prompt<T>,
        task: &T,
        opened: BTreeSet<String>,
    ) -> Result<Self, RenderProblem> {
        let bound = prompt.bind(task)?;
        let all = bound.render(&opened)?.closed;
        bound.render(&opened.iter().cloned().chain(all).collect())?;
        let first = bound.render(&opened)?;
        let task = bound.fields();
        Ok(Self { prompt: prompt.for_any_task(), task, opened, first })
    }

    /// Opens more sections, if the result can be rendered; otherwise unchanged.
    pub(crate) fn with_opened(mut self, more: &BTreeSet<String>) -> Self {
        if more.is_subset(&self.opened) {
            return self;
        }
        let opened: BTreeSet<String> = self.opened.union(more).cloned().collect();
        let first = self.bound().and_then(|bound| bound.render_after(&self.first, &opened));
        if let Ok(first) = first {
            (self.first, self.opened) = (first, opened);
        }
        self
    }

    /// The text the model sees first.
    pub fn text(&self) -> &str {
        &self.first.text
    }

    /// All sections, open and closed.
    pub(crate) fn outline(&self) -> Result<Vec<Outlined>, RenderProblem> {
        self.bound()?.outline(&self.opened)
    }

    /// The sections to open so that `key` becomes visible; the error says why that is impossible.
    pub(crate) fn opening(&self, key: &str) -> Result<BTreeSet<String>, String> {
        let bound = self.bound().map_err(|problem| problem.to_string())?;
        let required = open_sections(&bound, &self.opened, &[key.to_owned()], "the user opened it");
        let opened = required.map(|required| required.requested_overrides.into_keys().collect());
        opened.map_err(|problem| problem.message)
    }

    /// The prompt for delegated tasks, if the prompt delegates.
    pub(crate) fn delegation(&self) -> Option<&DelegationPrompt> {
        self.prompt.delegation()
    }

    fn bound(&self) -> Result<BoundPrompt<'_>, RenderProblem> {
        self.prompt.bind(&self.task)
    }
}

/// The sections that one call opened, as stored in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Expansion {
    pub(crate) section_keys: Vec<String>,
    pub(crate) reason: String,
    pub(crate) opened: BTreeSet<String>,
}

/// The prompt of a running task.
pub(crate) struct RenderedPrompt<'t> {
    sectioned_prompt: &'t SectionedPrompt,
    open: BTreeSet<String>,
    now: RenderedText,
    /// Expansions of the current turn.
    fresh: Vec<Expansion>,
}

impl<'t> RenderedPrompt<'t> {
    pub(crate) fn new(sectioned_prompt: &'t SectionedPrompt) -> Self {
        let (open, now) = (sectioned_prompt.opened.clone(), sectioned_prompt.first.clone());
        Self { sectioned_prompt, open, now, fresh: Vec::new() }
    }

    /// The sections opened so far.
    pub(crate) fn opened(&self) -> BTreeSet<String> {
        self.open.clone()
    }

    /// The current text of the prompt.
    pub(crate) fn text(&self) -> &str {
        &self.now.text
    }

    /// The tools for opening further sections, as long as there are any.
    pub(crate) fn specs(&self) -> impl Iterator<Item = ToolSpec> {
        self.offered().map(|definition| ToolSpec {
            name: definition.name.to_string(),
            description: definition.description.to_string(),
            parameters: definition.short_parameters(),
        })
    }

    /// Names of those tools. No gate closes them: they only show more of the task's own prompt.
    pub(crate) fn openers(&self) -> impl Iterator<Item = &'static str> {
        self.offered().map(|definition| definition.name.as_ref())
    }

    fn offered(&self) -> impl Iterator<Item = &'static ToolDefinition> {
        let is_offered =
            |definition: &&ToolDefinition| self.now.tools.iter().any(|tool| *tool == definition.name);
        definitions().iter().filter(is_offered)
    }

    /// The section that must be opened before this tool can be called.
    pub(crate) fn hides(&self, tool: &str) -> Option<&str> {
        if self.now.tools.iter().any(|open| open == tool) {
            return None;
        }
        self.sectioned_prompt.prompt.section_with(tool)
    }

    fn open(&self, keys: &[String], reason: &str, room: usize) -> Result<Expansion, OpenProblem> {
        let problem = |code, message| OpenProblem { code, message, section_path: None };
        let bound = self.sectioned_prompt.bound().map_err(rendering)?;
        let open: BTreeSet<String> = self.open_now().cloned().collect();
        let required = open_sections(&bound, &open, keys, reason)?;
        let next = required.applied_to(&open);
        let grows = bound
            .render_after(&self.now, &next)
            .map_err(rendering)?
            .text
            .len()
            .saturating_sub(self.now.text.len());
        if grows > room {
            let message = format!(
                "Not opened: it would add {grows} bytes to the prompt, and only about {room} fit. Open less, or \
                 look at the beginning of a section with `read_section`."
            );
            return Err(problem("too_large", message));
        }
        let opened = required.requested_overrides.into_keys().collect();
        Ok(Expansion { section_keys: required.section_keys, reason: required.reason, opened })
    }

    fn open_now(&self) -> impl Iterator<Item = &String> {
        self.open.iter().chain(self.fresh.iter().flat_map(|expanded| &expanded.opened))
    }

    fn read(&self, path: &str) -> Result<ToolOutput, RenderProblem> {
        let bound = self.sectioned_prompt.bound()?;
        let open = self.open_now().cloned().collect();
        bound.may_read(path, &open)?;
        let mut text = bound.read_section(path)?;
        let whole = text.len();
        if whole <= READ_BYTES {
            return Ok(ToolOutput::done(text));
        }
        let mut end = READ_BYTES;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(&format!("\n[cut here: {} of {whole} bytes are shown]", end));
        Ok(ToolOutput { truncated: true, ..ToolOutput::done(text) })
    }

    /// Records the sections that a call opened, for the end of the turn.
    pub(super) fn add(&mut self, expansion: Expansion) {
        self.fresh.push(expansion);
    }

    /// Answers a call about sections; `None` if the call is about something else. `check_expansion` says whether
    /// sections may still be opened, and `room` is the number of bytes that still fit into the context.
    pub(crate) fn route(
        &self,
        call: &ToolCall,
        check_expansion: impl FnOnce() -> Result<(), String>,
        room: impl FnOnce() -> usize,
    ) -> Option<CallRoute> {
        if let Some(section) = self.hides(&call.name) {
            let content = format!(
                "`{}` belongs to the section `{section}`, which is closed: open it first with `open_sections`.",
                call.name
            );
            return Some(CallRoute::refuse(content, "closed_section"));
        }
        let definition = definitions().iter().find(|definition| definition.name == call.name)?;
        Some(match arguments::parse(&call.arguments, definition) {
            Ok(arguments) => {
                let (output, expansion) = self.answer(&call.name, arguments, check_expansion(), room());
                CallRoute::Section { output, expansion }
            }
            Err(problem) => CallRoute::malformed(problem),
        })
    }

    fn answer(
        &self,
        name: &str,
        arguments: Value,
        check_expansion: Result<(), String>,
        room: usize,
    ) -> (ToolOutput, Option<Expansion>) {
        #[derive(Deserialize)]
        struct Asked {
            #[serde(default)]
            section_keys: Vec<String>,
            #[serde(default)]
            reason: String,
            #[serde(default)]
            section_key: String,
        }
        let asked: Asked = match serde_json::from_value(arguments) {
            Ok(asked) => asked,
            Err(error) => return (ToolOutput::error(error.to_string()), None),
        };
        if name == "read_section" {
            let read = self.read(&asked.section_key);
            return (read.unwrap_or_else(|problem| ToolOutput::error(problem.to_string())), None);
        }
        if let Err(message) = check_expansion {
            return (ToolOutput::error(message), None);
        }
        match self.open(&asked.section_keys, &asked.reason, room) {
            Ok(expanded) => {
                let keys: Vec<_> = expanded.section_keys.iter().map(|key| format!("`{key}`")).collect();
                let content = format!("Opened {}: the prompt shows the whole text now.", keys.join(", "));
                (ToolOutput::done(content), Some(expanded))
            }
            Err(problem) => (ToolOutput::error(problem.message), None),
        }
    }

    /// Applies the expansions of the turn. `None` if there were none.
    pub(super) fn rebind(&mut self) -> Option<()> {
        let fresh = std::mem::take(&mut self.fresh);
        if fresh.is_empty() {
            return None;
        }
        let keys: Vec<String> = fresh.iter().flat_map(|expanded| expanded.section_keys.clone()).collect();
        let mut reasons: Vec<&str> = fresh.iter().map(|expanded| expanded.reason.trim()).collect();
        reasons.dedup();
        let instructions = build_expansion_instructions(&keys, &reasons.join("; "));
        self.open.extend(fresh.iter().flat_map(|expanded| expanded.opened.iter().cloned()));
        let bound = self.sectioned_prompt.bound().ok()?;
        // Rendering was checked when the prompt was bound and when the call was answered.
        self.now = bound.expanded(instructions).render_after(&self.now, &self.open).ok()?;
        Some(())
    }
}

/// Definitions of the section tools, in the order the model sees them.
pub(crate) fn definitions() -> &'static [ToolDefinition] {
    static DEFINITIONS: LazyLock<[ToolDefinition; 2]> = LazyLock::new(|| {
        let define = |name: &'static str, description: &'static str, parameters| ToolDefinition {
            name: name.into(),
            description: description.into(),
            parameters,
            category: Access::Control,
            aliases: &[],
            parameter_aliases: &[],
        };
        [
            define(
                "read_section",
                "Read the whole text of a summarised section once, as the answer to this call.",
                json!({
                    "type": "object",
                    "properties": { "section_key": { "type": "string" } },
                    "required": ["section_key"],
                    "additionalProperties": false
                }),
            ),
            define(
                "open_sections",
                "Open summarised sections for good: the prompt then shows their whole text and offers their tools.",
                json!({
                    "type": "object",
                    "properties": {
                        "section_keys": { "type": "array", "items": { "type": "string" } },
                        "reason": { "type": "string" }
                    },
                    "required": ["section_keys", "reason"],
                    "additionalProperties": false
                }),
            ),
        ]
    });
    &*DEFINITIONS
}

fn rendering(problem: RenderProblem) -> OpenProblem {
    let message = problem.to_string();
    OpenProblem { code: problem.code, message, section_path: problem.section_path }
}
