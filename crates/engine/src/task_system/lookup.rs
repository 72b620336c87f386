//! Finds the template of a request: given with the task, or looked up by name, subtype or description, as a
//! step, so that a run ends on the text it started with.

use fusee_journal::{RunAborted, StepKind, StepRequest};
use fusee_text::Source;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::error::{Reason, TaskError};
use super::pipeline::{TaskScope, TaskSystem};
use super::request::SubtaskRequest;
use crate::agent::SPAWN_SUBTASK;
use crate::template::{MatchOptions, Template, TemplateText, shown};

/// Minimum score for a description alone to select a template.
const WORDS_THRESHOLD: f64 = 0.5;

/// Where the template of a task comes from.
#[derive(Clone, Debug)]
pub enum TemplateOrigin {
    /// The registry: the request names or describes it.
    Registry,
    /// This text, which the run was started with.
    Text(TemplateText),
    /// A value that has no text, such as a `defatom`.
    Value(Box<Template>),
}

/// How a request was resolved, for the notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionPath {
    /// To a workflow.
    SExpression,
    /// A registered template runs.
    Template,
    /// The name is that of a tool, which is called directly.
    Tool,
    /// No template fits; the description itself is the task.
    Plain,
}

/// Result of a template lookup, as journaled.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LookupRecord {
    Template(TemplateText),
    Missing(String),
    /// No template matches; the description is the task.
    Plain(String),
}

impl TaskSystem {
    /// Returns the template of a request. A lookup sets the start time and the path of the scope.
    pub(super) async fn template(
        &self,
        origin: TemplateOrigin,
        request: &SubtaskRequest,
        scope: &mut TaskScope,
    ) -> Result<Result<Template, TaskError>, RunAborted> {
        let found = match origin {
            TemplateOrigin::Value(template) => return Ok(Ok(*template)),
            TemplateOrigin::Text(text) => LookupRecord::Template(text),
            TemplateOrigin::Registry => self.look_up(request, scope).await?,
        };
        Ok(match found {
            LookupRecord::Missing(message) => Err(TaskError::failure(Reason::TemplateNotFound, message)),
            LookupRecord::Plain(words) => {
                // A program decides alone what runs next, and a delegated task does not delegate.
                let blocked = scope.handover.is_some() || scope.path == ExecutionPath::Plain;
                scope.path = ExecutionPath::Plain;
                Ok(plain(words, request, scope.handover.is_some(), blocked))
            }
            LookupRecord::Template(text) => {
                scope.path = ExecutionPath::Template;
                read(&text)
            }
        })
    }

    async fn look_up(
        &self,
        request: &SubtaskRequest,
        scope: &mut TaskScope,
    ) -> Result<LookupRecord, RunAborted> {
        let found = match (&scope.handover, &request.name, &request.subtype, &request.description) {
            // A delegated description is the task itself, even if a template matches.
            (Some(_), None, None, Some(words)) => LookupRecord::Plain(words.clone()),
            _ => self.find(request),
        };
        let call = StepRequest::new(&scope.branch, StepKind::Environment, "template").with_args(
            json!({ "name": request.name, "subtype": request.subtype, "description": request.description }),
        );
        let recorded = self.engine.step(call, async move { found }).await?;
        scope.started_ms = scope.started_ms.max(recorded.at_ms);
        Ok(recorded.value)
    }

    fn find(&self, request: &SubtaskRequest) -> LookupRecord {
        let by_subtype = request.subtype.as_ref().map(|subtype| format!("atomic:{subtype}"));
        let identifier = request.name.clone().or(by_subtype);
        let words = request.description.as_deref().filter(|_| request.name.is_none());
        match (identifier.map(|identifier| self.registry.find_template(&identifier)), words) {
            (Some(Ok(found)), _) => LookupRecord::Template(found.text.clone()),
            (None | Some(Err(_)), Some(words)) => {
                let matching = MatchOptions { threshold: WORDS_THRESHOLD, limit: 1 };
                match self.registry.find_matching_tasks(words, &matching).first() {
                    Some(found) => LookupRecord::Template(found.registered.text.clone()),
                    None => LookupRecord::Plain(words.to_owned()),
                }
            }
            (Some(Err(missing)), None) => LookupRecord::Missing(missing.to_string()),
            (None, None) => LookupRecord::Missing(
                "the request names no template: set `name`, `subtype` or `description`".to_owned(),
            ),
        }
    }
}

/// The template of a task that is described in words alone. Its inputs are listed after the words, unless they are
/// fields of a delegated task.
fn plain(words: String, request: &SubtaskRequest, delegated: bool, blocked: bool) -> Template {
    let fields = request.inputs.iter().filter(|_| !delegated);
    let fields = fields.map(|(name, value)| format!("\n\n{name}:\n{}", shown(value)));
    let text = std::iter::once(words.clone()).chain(fields).collect();
    Template {
        name: "plain".to_owned(),
        subtype: Some("subtask".to_owned()),
        description: Template::of_words(words).description,
        blocked_tools: if blocked { vec![SPAWN_SUBTASK.to_owned()] } else { Vec::new() },
        ..Template::of_words(text)
    }
}

fn read(text: &TemplateText) -> Result<Template, TaskError> {
    let source = Source::new(text.file.as_str(), text.text.as_str());
    let (template, problems) = Template::read(&source);
    template.ok_or_else(|| {
        let messages: Vec<String> = problems
            .iter()
            .map(|problem| format!("{}:{}: {}", problem.file, problem.start, problem.message))
            .collect();
        TaskError::invalid(Reason::XmlValidationFailure, messages.join("; "))
    })
}
