//! Runs the main task of a run in the configured shape: in one session, or in stages that are tasks of their
//! own. Stages run one after the other, each on its own journal branch, so a killed run resumes within the
//! stage it was in.

use std::sync::Arc;

use fusee_journal::{RunAborted, StepKind, StepRequest};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::preparation::{self, Preparation};
use super::protected_tests::ProtectedTests;
use super::request_files::RequestFiles;
use super::settings::{FlowEditFormat, FlowMode, FlowSettings, RuntimeAction};
use super::stage::Stage;
use super::stage_runner::{StageNecessity, StageRunner, StageSpec};
use super::task_rules::{FlowShape, StageRequirements, StageSignal, TaskRules};
use super::{branched, fallback, tool_gate};
use crate::agent::{AgentTask, TaskOutcome, task_hooks};

const CONTEXT: &str = "This is the first of three stages: context. Find out what matters for the request: list, search \
    and read files. Nothing can be changed yet. When you know enough, answer in a few sentences, without a call: which \
    files matter, what they do, what has to change.";
const PLAN: &str = "This is the second of three stages: plan. Call plan_tasks with action \"create\" and a short list of \
    tasks; only planning is open. Then answer in one sentence, without a call.";
const IMPLEMENT: &str = "This is the last of three stages: implement. Carry out the plan: change the files now, and verify \
    what you did. When it is done, answer in a few sentences, without a call.";
const DIRECT: &str = "the complete new content of each file that has to change: first the file's path on a \
    line of its own, then the whole file in a fenced block. Leave out files that stay as they are.";

/// Runs the task.
pub(crate) async fn work(
    mut main: AgentTask,
    flow: &FlowSettings,
    started_ms: i64,
) -> Result<TaskOutcome, RunAborted> {
    main.rules.chosen = flow.chosen.clone();
    main = match task_hooks::begin(main, started_ms).await? {
        Ok(main) => main,
        Err(ended) => return Ok(*ended),
    };
    if flow.benchmark.is_some_and(|benchmark| benchmark.protects_tests) {
        let (workspace, named) = (main.session.workspace.clone(), flow.protected_files.clone());
        let protected =
            examine_step(&main, "protected", move || ProtectedTests::take(&workspace, &named)).await?;
        main.rules.protected = Some(Arc::new(protected));
    }
    let shape = match (flow.stages.is_empty(), flow.mode) {
        (false, _) => return StageRunner::new(&main, flow, started_ms).run_all(stages(flow)).await,
        (true, FlowMode::Auto | FlowMode::Flat) => FlowShape::Free,
        (true, FlowMode::Staged) => {
            let request_files = request_files(&main).await?;
            FlowShape::Staged(request_files.required(flow.phase_control.rules.min_files_read_for_plan))
        }
        (true, FlowMode::Staged3) => {
            return StageRunner::new(&main, flow, started_ms).run_all(staged3(flow)).await;
        }
        (true, FlowMode::Branched) => return Box::pin(branched::work(&main, flow, started_ms)).await,
        (true, FlowMode::Direct) => return Box::pin(answer_directly(&main, flow, started_ms)).await,
    };
    let TaskRules { protected, parent, chosen, .. } = main.rules.clone();
    let rules = TaskRules { protected, parent, chosen, ..TaskRules::for_session(flow, shape) };
    let task = main.with_rules(rules);
    match flow.second_method {
        Some(method) => Box::pin(fallback::run(&task, flow, method, started_ms)).await,
        None => task.run(started_ms).await,
    }
}

/// `direct`: one answer, or several of which the best is kept.
async fn answer_directly(
    main: &AgentTask,
    flow: &FlowSettings,
    started_ms: i64,
) -> Result<TaskOutcome, RunAborted> {
    let stages = StageRunner::new(main, flow, started_ms);
    stages.begin();
    Box::pin(finish_directly(stages, main, flow)).await
}

/// The answers of `direct` for a task that has been announced, and its end.
pub(super) async fn finish_directly(
    mut stages: StageRunner<'_>,
    main: &AgentTask,
    flow: &FlowSettings,
) -> Result<TaskOutcome, RunAborted> {
    let preparation = preparation::prepare(main, flow, &mut stages).await?;
    let copies = preparation.copies;
    let mut stage = direct(flow, preparation);
    if !copies {
        stage.attempts = stage.attempts.max(flow.repairs.unwrap_or_default() + 1);
    }
    // Only whole files can be compared and tried in copies.
    let whole = stage.rules.edit_format == FlowEditFormat::Whole && copies;
    let ended = match flow.sampling().filter(|_| whole) {
        Some(sampling) => stages.run_sampled(stage, sampling).await?,
        None => stages.run_stage(stage).await?,
    };
    match ended {
        Ok(()) => {
            let done = stages.completed();
            stages.end(done).await
        }
        Err(failed) => stages.end(*failed).await,
    }
}

/// Applies the settings that concern every task: tools on offer, history and phases.
pub(crate) fn with_settings(task: AgentTask, flow: &FlowSettings) -> AgentTask {
    let TaskRules { access, history, phases, .. } = TaskRules::for_session(flow, FlowShape::Free);
    let rules = TaskRules { access, history, phases, ..task.rules.clone() };
    task.with_rules(rules)
}

/// The files the request is about, looked up once.
async fn request_files(main: &AgentTask) -> Result<RequestFiles, RunAborted> {
    let (workspace, request) = (main.session.workspace.clone(), main.request.clone());
    examine_step(main, "subject", move || RequestFiles::find(&request, &workspace)).await
}

/// Examines the workspace once, as a step.
pub(super) async fn examine_step<T: Default + Serialize + DeserializeOwned + Send + 'static>(
    main: &AgentTask,
    what: &str,
    find: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RunAborted> {
    let call = StepRequest::new(&main.branch, StepKind::Environment, what);
    let body = async move {
        let found = tokio::task::spawn_blocking(find).await;
        found.unwrap_or_default()
    };
    Ok(main.engine.step(call, body).await?.value)
}

/// The configured stages.
fn stages(flow: &FlowSettings) -> Vec<StageSpec> {
    let count = flow.stages.len();
    let spec = |(n, stage): (usize, &Stage)| {
        let mut rules = TaskRules::of_stage(flow, stage, Default::default());
        rules.edit_format = stage.edit_format.unwrap_or(flow.edit_format);
        rules.before = merged(&flow.before, &stage.before, n == 0);
        rules.after = merged(&flow.after, &stage.after, n + 1 == count);
        if n + 1 == count && rules.verify.is_none() {
            rules.verify = flow.verify.clone();
            rules.verify_alternatives = flow.verify_alternatives.clone();
        }
        let signal = stage.done_hint.clone().unwrap_or_else(|| {
            format!(
                "When this stage is done, call flow_stage_done with stage \"{}\" and a short summary.",
                stage.id
            )
        });
        let title = format!("Stage {} of {count}: {}", n + 1, stage.shown());
        let task = [stage.prompt.trim(), signal.trim()].join("\n\n");
        StageSpec {
            label: stage.shown().to_owned(),
            description: stage.shown().to_owned(),
            notes_window: stage.context_window.unwrap_or(flow.context_window),
            necessity: if flow.stage_required { StageNecessity::Required } else { StageNecessity::Optional },
            model: stage.model.clone(),
            gives_answer: n + 1 == count,
            ..StageSpec::new(&stage.id, format!("{title}\n\n{}", task.trim()), rules, flow)
        }
    };
    flow.stages.iter().enumerate().map(spec).collect()
}

/// Adds the flow's actions to those of its first or last stage.
fn merged(flow: &RuntimeAction, stage: &RuntimeAction, here: bool) -> RuntimeAction {
    if !here || flow.is_empty() {
        return stage.clone();
    }
    RuntimeAction {
        read: [flow.read.as_slice(), stage.read.as_slice()].concat(),
        run: stage.run.clone().or_else(|| flow.run.clone()),
    }
}

/// The stages context, plan and implement.
fn staged3(flow: &FlowSettings) -> Vec<StageSpec> {
    let stages = [
        ("context", CONTEXT, tool_gate::StagedPhase::Explore),
        ("plan", PLAN, tool_gate::StagedPhase::Plan),
        ("implement", IMPLEMENT, tool_gate::StagedPhase::Implement),
    ];
    let spec = |(id, task, gates): (&str, &str, tool_gate::StagedPhase)| {
        let last = gates == tool_gate::StagedPhase::Implement;
        let shape = StageRequirements {
            id: id.to_owned(),
            signal: StageSignal::None,
            calls: 1,
            change: last,
            phase: Some(gates),
            ..StageRequirements::default()
        };
        let mut rules = TaskRules::for_session(flow, FlowShape::Stage(shape));
        rules.verify = flow.verify.clone().filter(|_| last);
        rules.before = if gates == tool_gate::StagedPhase::Explore {
            flow.before.clone()
        } else {
            RuntimeAction::default()
        };
        rules.after = if last { flow.after.clone() } else { RuntimeAction::default() };
        rules.edit_format = if last { flow.edit_format } else { FlowEditFormat::Tools };
        StageSpec { gives_answer: last, ..StageSpec::new(id, task.to_owned(), rules, flow) }
    };
    stages.into_iter().map(spec).collect()
}

/// The model answers once with the new file; each retry starts over with the failure.
pub(super) fn direct(flow: &FlowSettings, preparation: Preparation) -> StageSpec {
    let shape = StageRequirements {
        id: "direct".to_owned(),
        signal: StageSignal::None,
        change: true,
        ..StageRequirements::default()
    };
    let mut rules = TaskRules::for_session(flow, FlowShape::Stage(shape));
    rules.access.no_tools = true;
    rules.one_answer = true;
    rules.edit_format = match flow.edit_format {
        FlowEditFormat::Tools => FlowEditFormat::Whole,
        other => other,
    };
    rules.before = RuntimeAction {
        read: if flow.before.read.is_empty() {
            ["@target", "@tests"].map(str::to_owned).to_vec()
        } else {
            flow.before.read.clone()
        },
        run: flow.before.run.clone(),
    };
    rules.after = flow.after.clone();
    rules.further_attempts = flow.replan_max;
    let Preparation { verify, alternatives, failure, located, verify_time_s, .. } = preparation;
    (rules.verify, rules.verify_alternatives, rules.located) = (verify, alternatives, located);
    rules.verify_time_s = verify_time_s;
    let what = match rules.edit_format {
        FlowEditFormat::Blocks => {
            "search and replace blocks: the file's path on a line of its own, then <<<<<<< SEARCH, the old \
             lines, =======, the new lines, >>>>>>> REPLACE, each mark on a line of its own."
        }
        FlowEditFormat::Whole | FlowEditFormat::Tools => DIRECT,
    };
    let task = [failure, Some(format!("Answer with {what}"))].into_iter().flatten().collect::<Vec<_>>();
    let task = task.join("\n\n");
    StageSpec {
        // A small model that has to say what is wrong finds it more often.
        retry_instructions: Some(format!("First say in one sentence what is wrong. Then answer with {what}")),
        attempts: flow.replan_max + 1,
        notes_window: 0,
        ..StageSpec::new("direct", task, rules, flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instructions_of_direct_name_every_mark_of_its_edit_format() {
        let blocks = FlowSettings { edit_format: FlowEditFormat::Blocks, ..FlowSettings::default() };
        let task = direct(&blocks, Preparation::default()).task;
        for mark in ["<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"] {
            assert!(task.contains(mark), "{mark} is missing in: {task}");
        }
        assert!(direct(&FlowSettings::default(), Preparation::default()).task.contains("fenced block"));
    }
}
