//! The plan as text that the user edits: one line per task, followed by its details.

use super::{MAX_TASKS, Plan, PlanStatus, PlannedTask};

#[cfg(test)]
mod tests;

/// Explanation at the top of the file.
const HEAD: &str = "\
# One task per line: [ ] pending, [~] in progress, [x] completed, [!] failed; then a number and a description.
# A task may be followed by \"goal: …\", \"priority: N\" and \"note: …\". Lines that begin with # are ignored.
";

impl Plan {
    /// Writes the plan as editable text.
    pub fn written(&self) -> String {
        let mut text = format!("{HEAD}\n");
        for task in &self.tasks {
            let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            text.push_str(&format!("{} {}. {}\n", task.status.mark(), task.id, one_line(&task.description)));
            let priority = task.priority.map(|priority| priority.to_string());
            for (name, value) in [("goal", &task.goal), ("priority", &priority), ("note", &task.summary)] {
                if let Some(value) = value {
                    text.push_str(&format!("    {name}: {}\n", one_line(value)));
                }
            }
        }
        text
    }

    /// Parses an edited text into a new plan, or returns all problems found. A text without tasks gives an
    /// empty plan.
    pub fn rewritten(&self, text: &str) -> Result<Self, Vec<String>> {
        let (mut tasks, mut problems) = (Vec::<PlannedTask>::new(), Vec::new());
        let lines = text.lines().map(str::trim).enumerate();
        for (n, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let parsed = match tasks.last_mut().map(|task| more(task, line)) {
                Some(Some(parsed)) => parsed,
                _ => self.task(line, &tasks).map(|task| tasks.push(task)),
            };
            problems.extend(parsed.err().map(|problem| format!("line {}: {problem}", n + 1)));
        }
        if tasks.len() > MAX_TASKS {
            problems.push(format!("a plan has at most {MAX_TASKS} tasks; this one has {}", tasks.len()));
        }
        if problems.is_empty() { Ok(Self { tasks }) } else { Err(problems) }
    }

    /// The id of the task with this description.
    fn named(&self, description: &str) -> Option<String> {
        self.tasks.iter().find(|task| task.description == description).map(|task| task.id.clone())
    }

    /// Parses a task line. A leading number is its id, as is a word that was an id before.
    fn task(&self, line: &str, before: &[PlannedTask]) -> Result<PlannedTask, String> {
        let line = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).unwrap_or(line).trim_start();
        let (status, rest) = match line.get(..3).and_then(PlanStatus::marked) {
            Some(status) => (status, line[3..].trim_start()),
            None => (PlanStatus::Pending, line),
        };
        let known = |id: &str| self.tasks.iter().any(|task| task.id == id);
        let is_number = |id: &str| !id.is_empty() && id.chars().all(|c| c.is_ascii_digit());
        let named = rest.split_once('.').filter(|(id, _)| is_number(id) || known(id));
        let (id, description) = match named {
            Some((id, description)) => (id.to_owned(), description.trim()),
            None => (self.named(rest).unwrap_or_else(|| free(before, &self.tasks)), rest),
        };
        if description.is_empty() {
            return Err(format!("task {id} has no description"));
        }
        if before.iter().any(|task| task.id == id) {
            return Err(format!("duplicate task id {id}"));
        }
        let (description, goal) = (description.to_owned(), None);
        Ok(PlannedTask { id, description, goal, status, priority: None, summary: None })
    }
}

/// Parses a detail line of a task; `None` if the line is something else.
fn more(task: &mut PlannedTask, line: &str) -> Option<Result<(), String>> {
    let (name, value) = line.split_once(':')?;
    let value = value.trim();
    match name {
        "goal" => task.goal = Some(value.to_owned()),
        "note" => task.summary = Some(value.to_owned()),
        "priority" => match value.parse() {
            Ok(priority) => task.priority = Some(priority),
            Err(_) => return Some(Err(format!("the priority `{value}` is not an integer"))),
        },
        _ => return None,
    }
    Some(Ok(()))
}

/// The lowest unused number.
fn free(before: &[PlannedTask], known: &[PlannedTask]) -> String {
    let taken = |id: &String| before.iter().chain(known).any(|task| task.id == *id);
    (1..).map(|n: u32| n.to_string()).find(|id| !taken(id)).unwrap_or_default()
}
