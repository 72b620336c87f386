//! `branched` mode: makes a plan, then runs each planned task as a stage of its own, in order of priority.

use fusee_journal::RunAborted;

use super::preparation::{self, Preparation};
use super::run_flow;
use super::samples::Sampling;
use super::settings::{FlowSettings, PlanMode, RuntimeAction};
use super::stage_notes;
use super::stage_runner::{StageRunner, StageSpec, is_final};
use super::task_rules::{FlowShape, StageRequirements, StageSignal, TaskRules};
use crate::agent::{AgentTask, PlanStatus, PlannedTask, TaskOutcome};

/// Verbs of read-only tasks.
const READ_ONLY_VERBS: &str = "analyse analyze browse examine explore find identify inspect investigate list locate look open \
    read review search study understand view";

/// Words that mark a task as more than read-only, whatever it begins with.
const CHANGE_VERBS: &str = "add change correct create delete edit fix implement install insert modify move patch refactor \
    remove rename replace rewrite run update write";

/// Makes the plan and runs it.
pub(crate) async fn work(
    main: &AgentTask,
    flow: &FlowSettings,
    started_ms: i64,
) -> Result<TaskOutcome, RunAborted> {
    let mut stages = StageRunner::new(main, flow, started_ms);
    stages.begin();
    if let Err(failed) = stages.run_stage(planning(flow)).await? {
        return stages.end(*failed).await;
    }
    let mut tasks = stages.plan.tasks().to_vec();
    tasks.sort_by_key(|task| task.priority.unwrap_or(i64::MAX));
    let count = tasks.len();
    let skipping =
        |task: &PlannedTask| flow.skip_readonly.then(|| read_only_verb(&task.description)).flatten();
    // The last task that is worked on answers for all. If the answer must have a form, somebody has to give it.
    let working = tasks.iter().rposition(|task| skipping(task).is_none());
    let last = working.or_else(|| main.check.as_ref().and(count.checked_sub(1)));
    for (n, task) in tasks.iter().enumerate() {
        let (stage, label) = (format!("task-{}", n + 1), stage_notes::one_line(&task.description, 80));
        if let Some(verb) = skipping(task).filter(|_| last != Some(n)) {
            let why = format!("skipped: read-only task (`{verb}`)");
            stages.skipped(&stage, &label, &why);
            stages.plan.set_status(&task.id, task.status, Some(why));
            continue;
        }
        stages.plan.set_status(&task.id, PlanStatus::InProgress, None);
        let place = PlannedPlace { n, count, last: last == Some(n) };
        let spec = planned(flow, task, &stage, &label, place);
        let tested = own_tests(main, flow, task, &stages).await?;
        let is_tested = tested.is_some();
        let ended = match tested {
            Some((sampling, preparation)) => {
                stages.run_sampled(answered(flow, spec, preparation), sampling).await?
            }
            None => stages.run_stage(spec).await?,
        };
        let status = if ended.is_ok() { PlanStatus::Completed } else { PlanStatus::Failed };
        stages.plan.set_status(&task.id, status, None);
        if let Err(failed) = ended {
            // Its tests may need what a later task does; its best answer is kept.
            let goes_on = is_tested && last != Some(n) && !is_final(&failed);
            if !goes_on {
                return stages.end(*failed).await;
            }
        }
    }
    let done = stages.completed();
    stages.end(done).await
}

fn planning(flow: &FlowSettings) -> StageSpec {
    let how = match flow.plan_mode {
        PlanMode::First => "Nothing but planning is open.",
        PlanMode::Explore => "You may look first; nothing can be changed yet.",
        PlanMode::None => "You may look first.",
    };
    let mut rules = TaskRules::for_session(flow, FlowShape::Planning(flow.plan_mode));
    rules.verify = None;
    rules.before = flow.before.clone();
    let task = format!(
        "First make a plan: call plan_tasks with action \"create\" and a short list of tasks. Each task is then \
         worked on by itself. {how}"
    );
    StageSpec::new("plan", task, rules, flow)
}

/// Where a planned task stands in the plan.
#[derive(Clone, Copy)]
struct PlannedPlace {
    n: usize,
    count: usize,
    /// Whether no other task is worked on after it.
    last: bool,
}

fn planned(
    flow: &FlowSettings,
    task: &PlannedTask,
    stage: &str,
    label: &str,
    PlannedPlace { n, count, last }: PlannedPlace,
) -> StageSpec {
    let shape =
        StageRequirements { id: task.id.clone(), signal: StageSignal::None, ..StageRequirements::default() };
    let mut rules = TaskRules::for_session(flow, FlowShape::Stage(shape));
    rules.verify = flow.verify.clone().filter(|_| last);
    rules.after = if last { flow.after.clone() } else { RuntimeAction::default() };
    rules.edit_format = flow.edit_format;
    rules.further_attempts = flow.replan_max;
    let mut words = format!(
        "Work on task {} of {count} of the plan now, and on nothing else: {}",
        n + 1,
        task.description
    );
    if let Some(goal) = &task.goal {
        words.push_str(&format!("\nIts goal: {goal}"));
    }
    if let Some(priority) = task.priority {
        words.push_str(&format!("\nIts priority: {priority}"));
    }
    words.push_str("\nWhen it is done, answer in one or two sentences, without a call.");
    StageSpec {
        label: label.to_owned(),
        description: task.description.clone(),
        gives_answer: last,
        attempts: flow.replan_max + 1,
        ..StageSpec::new(stage, words, rules, flow)
    }
}

/// How answers to a planned task are verified, if it has tests of its own and the model is to give several.
async fn own_tests(
    main: &AgentTask,
    flow: &FlowSettings,
    task: &PlannedTask,
    stages: &StageRunner<'_>,
) -> Result<Option<(Sampling, Preparation)>, RunAborted> {
    let Some(sampling) = flow.sampling() else { return Ok(None) };
    let prepared = preparation::prepare_planned_task(main, &task.description, stages).await?;
    Ok(prepared.map(|preparation| (sampling, preparation)))
}

/// A planned task that the model answers with the new files.
fn answered(flow: &FlowSettings, planned: StageSpec, preparation: Preparation) -> StageSpec {
    let answer = run_flow::direct(flow, preparation);
    let words = planned.task.rsplit_once('\n').map_or(planned.task.as_str(), |(words, _)| words);
    StageSpec {
        id: planned.id,
        label: planned.label,
        description: planned.description,
        task: format!("{words}\n\n{}", answer.task),
        retry_instructions: answer.retry_instructions.map(|retry| format!("{words}\n\n{retry}")),
        notes_window: planned.notes_window,
        ..answer
    }
}

/// The verb that marks a task as read-only, if it is.
pub(crate) fn read_only_verb(description: &str) -> Option<&'static str> {
    let words: Vec<String> = description
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let first = words.first()?;
    let verb = READ_ONLY_VERBS.split(' ').find(|verb| verb == first)?;
    (!words.iter().any(|word| CHANGE_VERBS.split(' ').any(|verb| verb == word))).then_some(verb)
}

#[cfg(test)]
mod tests;
