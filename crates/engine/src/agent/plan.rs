//! The plan a model keeps with `plan_tasks`. It belongs to the session and is a pure function of the calls
//! made, so it needs no storage of its own: replaying the journal rebuilds it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

mod text;

/// Maximum number of tasks; longer plans are not useful and would fill the context.
const MAX_TASKS: usize = 50;

/// Status of a planned task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Not started.
    Pending,
    /// Being worked on.
    InProgress,
    /// Completed successfully.
    Completed,
    /// Abandoned or failed.
    Failed,
}

impl PlanStatus {
    const ALL: [Self; 4] = [Self::Pending, Self::InProgress, Self::Completed, Self::Failed];

    /// The mark shown before a task with this status.
    fn mark(self) -> &'static str {
        match self {
            Self::Pending => "[ ]",
            Self::InProgress => "[~]",
            Self::Completed => "[x]",
            Self::Failed => "[!]",
        }
    }

    /// Parses a mark.
    fn marked(mark: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.mark().eq_ignore_ascii_case(mark))
    }
}

/// An entry of the model's plan, with its progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTask {
    /// Identifies the task in updates.
    pub id: String,
    /// Description of the work.
    pub description: String,
    /// Purpose of the task.
    pub goal: Option<String>,
    /// Current status.
    pub status: PlanStatus,
    /// Lower values come first.
    pub priority: Option<i64>,
    /// Result, in the model's words.
    pub summary: Option<String>,
}

/// The current plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Plan {
    tasks: Vec<PlannedTask>,
}

#[derive(Deserialize)]
struct PlanArguments {
    action: PlanAction,
    #[serde(default)]
    tasks: Vec<TaskDraft>,
    task_id: Option<String>,
    status: Option<PlanStatus>,
    summary: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum PlanAction {
    Create,
    Update,
    List,
}

#[derive(Deserialize)]
struct TaskDraft {
    id: Option<String>,
    description: Option<String>,
    goal: Option<String>,
    status: Option<PlanStatus>,
    priority: Option<i64>,
}

/// The changes of one `update`.
struct PlanUpdate {
    id: Option<String>,
    status: Option<PlanStatus>,
    description: Option<String>,
    summary: Option<String>,
}

impl Plan {
    /// The tasks, in order.
    pub fn tasks(&self) -> &[PlannedTask] {
        &self.tasks
    }

    /// Executes one `plan_tasks` call. Both the result and the error are worded for the model.
    pub(crate) fn call(&mut self, arguments: Value) -> Result<String, String> {
        let arguments: PlanArguments =
            serde_json::from_value(arguments).map_err(|error| error.to_string())?;
        match arguments.action {
            PlanAction::List => Ok(self.render()),
            // An update without an existing plan can only be meant as a creation.
            PlanAction::Update if self.tasks.is_empty() && !arguments.tasks.is_empty() => {
                self.create(arguments.tasks)
            }
            PlanAction::Create => self.create(arguments.tasks),
            PlanAction::Update => self.update(arguments),
        }
    }

    fn create(&mut self, drafts: Vec<TaskDraft>) -> Result<String, String> {
        if drafts.is_empty() {
            return Err("`create` needs `tasks`: a list of { description, goal?, priority? }.".to_owned());
        }
        if drafts.len() > MAX_TASKS {
            return Err(format!("A plan has at most {MAX_TASKS} tasks; this one has {}.", drafts.len()));
        }
        let mut tasks: Vec<PlannedTask> = Vec::with_capacity(drafts.len());
        for (n, draft) in drafts.into_iter().enumerate() {
            let description = draft.description.unwrap_or_default().trim().to_owned();
            if description.is_empty() {
                return Err(format!("Task {} has no description.", n + 1));
            }
            let id = free_id(draft.id.unwrap_or_else(|| (n + 1).to_string()), &tasks);
            let status = draft.status.unwrap_or(PlanStatus::Pending);
            let (goal, priority, summary) = (draft.goal, draft.priority, None);
            tasks.push(PlannedTask { id, description, goal, status, priority, summary });
        }
        self.tasks = tasks;
        Ok(self.render())
    }

    fn update(&mut self, arguments: PlanArguments) -> Result<String, String> {
        let mut changes: Vec<PlanUpdate> = arguments
            .tasks
            .into_iter()
            .map(|draft| PlanUpdate {
                id: draft.id,
                status: draft.status,
                description: draft.description,
                summary: None,
            })
            .collect();
        if arguments.task_id.is_some() || changes.is_empty() {
            let (id, status, summary) = (arguments.task_id, arguments.status, arguments.summary);
            changes.push(PlanUpdate { id, status, description: None, summary });
        }
        if self.tasks.is_empty() {
            return Err("There is no plan yet: make one with `create` and `tasks`.".to_owned());
        }
        let known = self.tasks.iter().map(|task| format!("`{}`", task.id)).collect::<Vec<_>>().join(", ");
        let mut tasks = self.tasks.clone();
        for PlanUpdate { id, status, description, summary } in changes {
            let id = id.ok_or_else(|| format!("`update` needs `task_id`, one of {known}."))?;
            let task = tasks
                .iter_mut()
                .find(|task| task.id == id)
                .ok_or_else(|| format!("There is no task `{id}` in the plan; there are {known}."))?;
            task.status = status.unwrap_or(task.status);
            if let Some(description) = description {
                task.description = description;
            }
            task.summary = summary.or_else(|| task.summary.take());
        }
        self.tasks = tasks;
        Ok(self.render())
    }

    /// Sets the status of a task, and its result in words if there is one.
    pub(crate) fn set_status(&mut self, id: &str, status: PlanStatus, summary: Option<String>) {
        if let Some(task) = self.tasks.iter_mut().find(|task| task.id == id) {
            task.status = status;
            task.summary = summary.or_else(|| task.summary.take());
        }
    }

    /// Renders the plan as text.
    pub fn render(&self) -> String {
        if self.tasks.is_empty() {
            return "There is no plan yet.".to_owned();
        }
        let lines = self.tasks.iter().map(|task| {
            let mark = task.status.mark();
            let part = |text: &Option<String>, form: fn(&str) -> String| {
                text.as_deref().map(form).unwrap_or_default()
            };
            let goal = part(&task.goal, |goal| format!(" Goal: {}.", goal.trim_end_matches('.')));
            let summary = part(&task.summary, |summary| format!(" ({summary})"));
            let priority =
                task.priority.map(|priority| format!(" [priority {priority}]")).unwrap_or_default();
            format!("{mark} {}. {}{goal}{priority}{summary}", task.id, task.description)
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}
/// Returns the id, or a variant of it if another task has it: rejecting a plan over an id is not worth it.
fn free_id(wanted: String, tasks: &[PlannedTask]) -> String {
    let is_free = |id: &String| tasks.iter().all(|task| task.id != *id);
    let others = (2..).map(|n| format!("{wanted}-{n}"));
    std::iter::once(wanted.clone()).chain(others).find(is_free).unwrap_or(wanted)
}
