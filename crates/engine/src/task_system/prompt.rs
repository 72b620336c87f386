//! Composes the prompt of a template's task from its filled-in texts and the prepared context. It is pure, so
//! `fusee task --dry-run` shows exactly the bytes a model would receive.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use fusee_lang::TaskResult;
use fusee_model::Message;
use serde_json::{Map, Value};

use super::lookup::ExecutionPath;
use super::request::{ContextPart, InheritedContext};
use crate::agent::SectionedPrompt;
use crate::prompt::{
    AnyTask, DelegationPrompt, EnvironmentSnapshot, Prompt, PromptKind, PromptProblem, PromptSection, Recap,
    SectionDisplay, Visibility, default_sections, default_system,
};
use crate::template::{AccumulationFormat, OutputFormat, SectionText, Template};

/// A file's content as read by the handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Path of the file.
    pub path: String,
    /// Content as shown by the read tool.
    pub content: String,
}

/// Context prepared for a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PreparedContext {
    /// Context from the parent and from earlier tasks.
    pub inherited: InheritedContext,
    /// Files, in display order.
    pub files: Vec<SourceFile>,
    /// Whether files were searched for.
    pub searched: bool,
    /// Whether files were listed.
    pub listed: bool,
    /// Number of conversation turns included, if the request asked for history.
    pub history_turns: Option<usize>,
}

impl PreparedContext {
    /// Adds the results of earlier tasks whose content or notes `keeps` accepts.
    pub fn accumulate(
        &mut self,
        earlier: &[(String, TaskResult)],
        format: AccumulationFormat,
        keeps: impl Fn(&str) -> bool,
    ) {
        let kept = earlier.iter().filter(|(_, result)| keeps(&result.content) || keeps(&noted(result)));
        let parts = kept.map(|(name, result)| {
            let text = match format {
                AccumulationFormat::FullOutput => result.content.clone(),
                AccumulationFormat::NotesOnly => noted(result),
            };
            ContextPart { source: format!("the earlier task `{name}`"), text }
        });
        self.inherited.parts.extend(parts);
    }

    /// Returns the context that subtasks may inherit: what this task was given.
    pub fn for_subtasks(&self) -> InheritedContext {
        let files = self.files.iter().map(|file| file.path.clone()).collect();
        InheritedContext { parts: self.inherited.parts.clone(), files }
    }

    /// Names the sources of the context, for the notes.
    pub fn source(&self) -> String {
        let named = [
            (!self.inherited.parts.is_empty(), "inherited"),
            (self.listed, "files"),
            (self.searched, "fresh"),
        ];
        let names: Vec<&str> = named.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
        if names.is_empty() { "none".to_owned() } else { names.join("+") }
    }

    /// Notes in a result how the task was run and what it was given.
    pub(super) fn note_in(&self, result: &mut TaskResult, template: &str, path: ExecutionPath) {
        result.note("template_used", template);
        result.note("context_source", self.source());
        result.note("context_files_count", self.files.len());
        result.note("execution_path", path);
        if let Some(turns) = self.history_turns {
            result.note("history_turns", turns);
        }
    }
}

/// What a handler sends first, independent of the provider; the adapters of `fusee_model` give it a wire format.
#[derive(Clone, Debug)]
pub struct HandlerPayload {
    /// Role and instructions, before the conversation.
    pub system_prompt: SystemPrompt,
    /// Conversation so far: the request of the task.
    pub messages: Vec<Message>,
    /// Context of the task, which is part of the request.
    pub context: PreparedContext,
    /// Names of the tools on offer.
    pub tools: Vec<String>,
    /// Facts that the model does not see: `template`, `subtype`, `task` and `run`.
    pub metadata: Map<String, Value>,
}

/// How the instructions are held: fixed, or expandable.
#[derive(Clone)]
pub enum SystemPrompt {
    /// A fixed text.
    Text(String),
    /// Sections that can be opened while the task runs.
    Sections(Box<SectionedPrompt>),
}

impl SystemPrompt {
    /// The text of the first request.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Sections(sections) => sections.text(),
        }
    }
}

impl std::fmt::Debug for SystemPrompt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SystemPrompt").field(&self.text()).finish()
    }
}

/// The texts of a task's first request.
#[derive(Clone, Debug)]
pub struct ComposedPrompt {
    /// Role and instructions, before the conversation.
    pub system: SystemPrompt,
    /// First user message.
    pub request: String,
}

/// Composes the prompt of a template whose placeholders are filled in. The error names the invalid section.
pub fn compose(
    template: &Template,
    prepared: &PreparedContext,
    environment: &EnvironmentSnapshot,
) -> Result<ComposedPrompt, String> {
    let kind = PromptKind { direct: template.flow.as_deref() == Some("direct"), ..PromptKind::default() };
    let system = template.system.clone().unwrap_or_else(|| default_system(environment, kind));
    let request = request(template, prepared);
    if template.sections.is_empty() {
        return Ok(ComposedPrompt { system: SystemPrompt::Text(system), request });
    }
    let guidance = PromptSection::literal("guidance", "Guidance", system.as_str());
    let sections = template.sections.iter().map(section);
    let builder = std::iter::once(guidance)
        .chain(sections)
        .fold(Prompt::<AnyTask>::builder(), |builder, section| builder.section(section));
    let prompt = builder.build().map_err(problem_text)?;
    let task = AnyTask(Map::from_iter([("request".to_owned(), request.as_str().into())]));
    let sectioned_prompt =
        SectionedPrompt::new(&prompt, &task, BTreeSet::new()).map_err(|problem| problem.to_string())?;
    Ok(ComposedPrompt { system: SystemPrompt::Sections(Box::new(sectioned_prompt)), request })
}

/// A task delegated as text: its prompt, and a recap of the delegating task.
#[derive(Clone, Debug)]
pub struct Handover {
    /// Prompt of the delegated task.
    pub prompt: DelegationPrompt,
    /// Progress of the delegating task.
    pub recap: Recap,
}

/// Composes the prompt of a delegated task; its inputs become task fields.
pub(super) fn write_delegated(
    template: &Template,
    prepared: &PreparedContext,
    environment: &EnvironmentSnapshot,
    handover: &Handover,
    inputs: &Map<String, Value>,
) -> Result<ComposedPrompt, String> {
    let prompt =
        handover.prompt.prompt(&handover.recap, default_sections(environment)).map_err(problem_text)?;
    let mut fields = inputs.clone();
    fields.insert("request".to_owned(), template.description.as_str().into());
    let sectioned_prompt = SectionedPrompt::new(&prompt, &AnyTask(fields), BTreeSet::new())
        .map_err(|problem| problem.to_string())?;
    let request = request(template, prepared);
    Ok(ComposedPrompt { system: SystemPrompt::Sections(Box::new(sectioned_prompt)), request })
}

fn problem_text(problems: Vec<PromptProblem>) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn section(text: &SectionText) -> PromptSection {
    let own = PromptSection::literal(text.key.as_str(), text.title.as_str(), text.body.as_str());
    let own = match (&text.summary, text.closed) {
        // Escaped, because section summaries are templates, and a dollar sign in this text is literal.
        (Some(summary), closed) => {
            let shown = if closed { SectionDisplay::Summary } else { SectionDisplay::Full };
            own.with_summary(summary.replace('$', "$$"), Visibility::Fixed(shown))
        }
        (None, _) => own,
    };
    text.sections.iter().map(section).fold(own, PromptSection::child)
}

fn request(template: &Template, prepared: &PreparedContext) -> String {
    let mut text = template.instructions.clone().unwrap_or_else(|| template.description.clone());
    if let Some(criteria) = &template.criteria {
        let _ = write!(text, "\n\nA good answer: {criteria}");
    }
    if let Some(wanted) = template.output_format.as_ref().and_then(answer_form) {
        let _ = write!(text, "\n\n{wanted}");
    }
    for part in &prepared.inherited.parts {
        let _ = write!(text, "\n\n## Context from {}\n\n{}", part.source, part.text.trim());
    }
    for file in &prepared.files {
        let _ = write!(text, "\n\n## File {}\n\n{}", file.path, file.content.trim_end());
    }
    text
}

/// Describes the required answer format to the model.
pub(super) fn answer_form(format: &OutputFormat) -> Option<String> {
    if !format.is_json() {
        return None;
    }
    let kind = match format.schema.as_deref() {
        None => "JSON".to_owned(),
        Some("object") => "a JSON object".to_owned(),
        Some("array" | "[]") => "a JSON array".to_owned(),
        Some("string[]") => "a JSON array of strings".to_owned(),
        Some("number") => "a JSON number".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some(path) => format!("JSON that fits the schema {path}"),
    };
    Some(format!("Answer with {kind} and nothing else: no words around it, no code fence."))
}

/// Returns the status and the notes of an earlier task, without bookkeeping notes.
fn noted(result: &TaskResult) -> String {
    const BOOKKEEPING: &[&str] =
        &["template_used", "context_source", "context_files_count", "execution_path", "metrics", "recovery"];
    let status = serde_json::to_value(result.status).unwrap_or_default();
    let mut lines = vec![format!("status: {}", status.as_str().unwrap_or_default())];
    for (name, value) in result.notes.iter().filter(|(name, _)| !BOOKKEEPING.contains(&name.as_str())) {
        let shown = value.get("message").unwrap_or(value);
        lines.push(format!("{name}: {}", shown.as_str().map_or_else(|| shown.to_string(), str::to_owned)));
    }
    lines.join("\n")
}
