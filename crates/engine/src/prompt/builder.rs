//! Builder for a tree of sections, which is checked as a whole and numbered once: expanding or disabling a
//! section never renumbers the others.

use std::collections::{BTreeMap, HashSet};
use std::marker::PhantomData;

use serde_json::Value;

use super::delegation::DelegationPrompt;
use super::placeholder::{PlaceholderText, trim};
use super::render::{BoundPrompt, RenderProblem};
use super::section::{Condition, PromptSection, SectionBody, Visibility};
use super::section_key::{SectionPath, normalise};
use super::task_fields::{AnyTask, Fields, TaskFields};

/// Maximum nesting depth: section headings start at level two, and Markdown has six levels.
const MAX_DEPTH: usize = 5;

/// A problem found while checking a prompt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", at.as_ref().map(|at| format!("section `{at}`: ")).unwrap_or_default())]
pub struct PromptProblem {
    /// Stable code of the problem kind.
    pub code: &'static str,
    /// Path of the affected section, if any.
    pub at: Option<String>,
    /// Description of the problem.
    pub message: String,
}

/// A checked prompt for tasks of one type.
#[derive(Clone)]
pub struct Prompt<T = AnyTask> {
    pub(crate) sections: Vec<PromptNode>,
    delegation: Option<DelegationPrompt>,
    task: PhantomData<fn(T)>,
}

/// A section in its position. The tree is flattened in document order.
#[derive(Clone)]
pub(crate) struct PromptNode {
    pub(crate) path: SectionPath,
    pub(crate) number: String,
    pub(crate) depth: usize,
    pub(crate) title: String,
    pub(crate) body: NodeBody,
    pub(crate) summary: Option<PlaceholderText>,
    pub(crate) visibility: Visibility,
    pub(crate) enabled: Option<Condition<bool>>,
    pub(crate) params: BTreeMap<String, Value>,
    pub(crate) tools: Vec<String>,
    /// Number of following nodes that are descendants of this one.
    pub(crate) inside: usize,
}

#[derive(Clone)]
pub(crate) enum NodeBody {
    Text(PlaceholderText),
    Task,
}

/// Collects the sections of a [`Prompt`].
pub struct PromptBuilder<T> {
    sections: Vec<PromptSection>,
    task: PhantomData<fn(T)>,
}

impl<T: TaskFields> Prompt<T> {
    /// Starts an empty prompt.
    pub fn builder() -> PromptBuilder<T> {
        PromptBuilder { sections: Vec::new(), task: PhantomData }
    }

    /// Binds the prompt to a task.
    pub fn bind(&self, task: &T) -> Result<BoundPrompt<'_>, RenderProblem> {
        let fields =
            Fields::from_task(task).map_err(|message| RenderProblem::new("invalid_task", None, message))?;
        if self.has_task_section() && fields.set("request").is_none() {
            let message = "the task has no `request`".to_owned();
            return Err(RenderProblem::new("missing_request", None, message));
        }
        Ok(BoundPrompt::new(&self.sections, fields))
    }
}

impl<T> Prompt<T> {
    /// Converts the prompt for tasks whose fields are known only when it is bound.
    pub fn for_any_task(&self) -> Prompt<AnyTask> {
        Prompt { sections: self.sections.clone(), delegation: self.delegation.clone(), task: PhantomData }
    }

    /// Returns the prompt of delegated tasks, if the prompt has a delegation section.
    pub fn delegation(&self) -> Option<&DelegationPrompt> {
        self.delegation.as_ref()
    }

    /// Returns the path of the first section that provides this tool.
    pub(crate) fn section_with(&self, tool: &str) -> Option<&str> {
        let carries = |node: &&PromptNode| node.tools.iter().any(|name| name == tool);
        self.sections.iter().find(carries).map(|node| node.path.as_str())
    }

    /// Whether the prompt has a task section.
    pub fn has_task_section(&self) -> bool {
        self.sections.iter().any(|node| matches!(node.body, NodeBody::Task))
    }
}

impl<T: TaskFields> PromptBuilder<T> {
    /// Appends a top-level section.
    #[must_use]
    pub fn section(mut self, section: impl Into<PromptSection>) -> Self {
        self.sections.push(section.into());
        self
    }

    /// Checks the sections and returns the prompt, or all problems found.
    pub fn build(self) -> Result<Prompt<T>, Vec<PromptProblem>> {
        let mut build = Build::default();
        build.add_all(self.sections, None, "", 0);
        let tasks = build.nodes.iter().filter(|node| matches!(node.body, NodeBody::Task)).count();
        if tasks > 1 {
            build.problem(
                "several_tasks",
                None,
                format!("a prompt can have only one task section, found {tasks}"),
            );
        }
        build.check_names(&field_names::<T>());
        if build.problems.is_empty() {
            Ok(Prompt { sections: build.nodes, delegation: build.delegation, task: PhantomData })
        } else {
            Err(build.problems)
        }
    }
}

/// Returns the field names of a task type from its schema; empty if they are known only at run time.
fn field_names<T: TaskFields>() -> Vec<String> {
    let schema = schemars::schema_for!(T);
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.map(|properties| properties.keys().cloned().collect()).unwrap_or_default()
}

#[derive(Default)]
struct Build {
    nodes: Vec<PromptNode>,
    problems: Vec<PromptProblem>,
    delegation: Option<DelegationPrompt>,
}

impl Build {
    fn problem(&mut self, code: &'static str, at: Option<&SectionPath>, message: String) {
        self.problems.push(PromptProblem { code, at: at.map(ToString::to_string), message });
    }

    fn add_all(
        &mut self,
        sections: Vec<PromptSection>,
        parent: Option<&SectionPath>,
        number: &str,
        depth: usize,
    ) {
        let mut keys = HashSet::new();
        for (n, section) in sections.into_iter().enumerate() {
            let key = match normalise(&section.key) {
                Ok(key) => key,
                Err(message) => {
                    let path = parent.map(|parent| format!("{parent}.")).unwrap_or_default() + &section.key;
                    let at = (!section.key.is_empty()).then_some(path).or(parent.map(ToString::to_string));
                    self.problems.push(PromptProblem { code: "invalid_key", at, message });
                    continue;
                }
            };
            let path = SectionPath::new(parent, &key);
            if !keys.insert(key) {
                self.problem(
                    "duplicate_key",
                    Some(&path),
                    "a sibling section already has this key".to_owned(),
                );
            }
            self.add(section, path, format!("{number}{}", n + 1), depth);
        }
    }

    fn add(&mut self, section: PromptSection, path: SectionPath, number: String, depth: usize) {
        if depth >= MAX_DEPTH {
            self.problem(
                "too_deep",
                Some(&path),
                format!("sections can be nested at most {MAX_DEPTH} levels deep"),
            );
            return;
        }
        let title = trim(&section.title).to_owned();
        if title.is_empty() {
            self.problem("missing_title", Some(&path), "the title is empty".to_owned());
        }
        let body = match &section.body {
            SectionBody::Task => NodeBody::Task,
            SectionBody::Literal(text) => NodeBody::Text(PlaceholderText::literal(text)),
            SectionBody::Template(text) => NodeBody::Text(self.template(&path, "body", text)),
        };
        if let Some(delegation) = section.delegation.clone() {
            self.delegate(delegation, &path);
        }
        let summary = section.summary.as_deref().map(|text| self.template(&path, "summary", text));
        self.check_summary(&section, &path);
        let at = self.nodes.len();
        self.nodes.push(PromptNode {
            path: path.clone(),
            number: number.clone(),
            depth,
            title,
            body,
            summary,
            visibility: section.visibility,
            enabled: section.enabled,
            params: section.params,
            tools: section.tools,
            inside: 0,
        });
        self.add_all(section.children, Some(&path), &format!("{number}."), depth + 1);
        let inside = self.nodes.len() - at - 1;
        if let Some(node) = self.nodes.get_mut(at) {
            node.inside = inside;
        }
    }

    fn delegate(&mut self, delegation: DelegationPrompt, path: &SectionPath) {
        self.problems.extend(delegation.problems(path.as_str()));
        if self.delegation.replace(delegation).is_some() {
            let message = "a prompt can have only one delegation section".to_owned();
            self.problem("several_delegations", Some(path), message);
        }
    }

    fn template(&mut self, path: &SectionPath, part: &str, text: &str) -> PlaceholderText {
        PlaceholderText::parse(text).unwrap_or_else(|problem| {
            self.problem("invalid_placeholder", Some(path), format!("{part}: {problem}"));
            PlaceholderText::literal("")
        })
    }

    /// Reports placeholders that neither a task field nor a parameter can fill.
    fn check_names(&mut self, fields: &[String]) {
        if fields.is_empty() {
            return;
        }
        let mut problems = Vec::new();
        for node in &self.nodes {
            let body = match &node.body {
                NodeBody::Text(template) => Some(template),
                NodeBody::Task => None,
            };
            for name in body.into_iter().chain(&node.summary).flat_map(PlaceholderText::names) {
                if !node.params.contains_key(name) && !fields.iter().any(|field| field == name) {
                    let near = fusee_text::suggest::nearest(name, fields.iter().map(String::as_str));
                    let hint =
                        near.first().map(|near| format!("; did you mean `${{{near}}}`?")).unwrap_or_default();
                    let message =
                        format!("`${{{name}}}` is neither a parameter nor a field of the task{hint}");
                    problems.push((node.path.clone(), message));
                }
            }
        }
        for (path, message) in problems {
            self.problem("unknown_placeholder", Some(&path), message);
        }
    }

    fn check_summary(&mut self, section: &PromptSection, path: &SectionPath) {
        let may_close =
            !matches!(section.visibility, Visibility::Fixed(super::section::SectionDisplay::Full));
        let summary = section.summary.as_deref().map(trim).unwrap_or_default();
        if matches!(section.body, SectionBody::Task) {
            if may_close || section.summary.is_some() {
                let message = "the task section cannot be summarised".to_owned();
                self.problem("summarised_task", Some(path), message);
            }
            if !section.children.is_empty() {
                self.problem(
                    "task_with_children",
                    Some(path),
                    "the task section cannot have child sections".to_owned(),
                );
            }
        } else if may_close && summary.is_empty() {
            self.problem(
                "missing_summary",
                Some(path),
                "a section that can be closed needs a summary".to_owned(),
            );
        }
    }
}
