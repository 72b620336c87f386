//! What the runtime finds out before the first answer of `direct`: whether the test command works, what fails, and
//! which files the request is about. Everything is a step of the main task.

use std::collections::VecDeque;
use std::sync::Arc;

use fusee_journal::event::{Event, FilesLocated};
use fusee_journal::{RunAborted, StepKind, StepRequest};
use fusee_text::test_report::TestReport;
use fusee_tools::copy_kind;

use super::auto::{self, is_unusable};
use super::location::{Located, locate};
use super::preload::{self, TargetCertainty};
use super::run_flow::examine_step;
use super::settings::FlowSettings;
use super::stage_runner::StageRunner;
use crate::agent::completion::runtime_actions::FileEffects;
use crate::agent::turn_manager::TurnManager;
use crate::agent::{AgentTask, Spent};

/// What was found out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preparation {
    /// The command that verifies the answers, if one works here.
    pub(crate) verify: Option<String>,
    /// The commands to try if that one cannot run; empty if it was tried.
    pub(crate) alternatives: Vec<String>,
    /// The first failure before any change, with the command, if it was used to locate the files.
    pub(crate) failure: Option<String>,
    /// The located files, if the request names none.
    pub(crate) located: Option<Arc<Located>>,
    /// Whether answers can be verified in copies of the workspace.
    pub(crate) copies: bool,
    /// Time limit of the verification in seconds, if shorter than that of other commands.
    pub(crate) verify_time_s: Option<u64>,
}

/// The result of the verification before any change.
struct Baseline {
    command: String,
    passed: bool,
    output: String,
    duration_ms: u64,
}

/// Shortest time limit of a verification in seconds, and that of any command.
const SHORTEST_VERIFY_S: u64 = 30;
const COMMAND_S: u64 = 120;

/// How many times longer than before any change a verification may take.
const VERIFY_SLOWDOWN: u64 = 10;

/// Prepares the answers to a request.
pub(crate) async fn prepare(
    main: &AgentTask,
    flow: &FlowSettings,
    stages: &mut StageRunner<'_>,
) -> Result<Preparation, RunAborted> {
    let (workspace, request) = (Arc::clone(&main.session.workspace), main.request.clone());
    // The user's own choice of files needs no location.
    let chosen = !flow.before.read.is_empty();
    let TargetCertainty { named, only_one } = match chosen {
        true => TargetCertainty { named: true, only_one: false },
        false => {
            examine_step(main, "clarity", move || preload::target_certainty(&request, &workspace)).await?
        }
    };
    let clear = named || only_one;
    let mut found = Preparation {
        verify: flow.verify.clone(),
        alternatives: flow.verify_alternatives.clone(),
        ..Preparation::default()
    };
    let mut output = None;
    // Several answers may each run forever, so that it matters how long the tests take.
    if flow.verify_found || !clear || flow.sampling().is_some() {
        let baseline = run_baseline(main, flow, stages).await?;
        if flow.verify.is_some() {
            // Commands that cannot run here are not tried again.
            found.verify = baseline.as_ref().map(|baseline| baseline.command.clone());
            found.alternatives.clear();
        }
        if let Some(Baseline { command, passed: true, .. }) = &baseline {
            let message = format!(
                "`{command}` passes before the change, so it cannot show that the change is complete"
            );
            stages.emit(Event::Warning { code: "verify_passed_before".to_owned(), message });
        }
        found.verify_time_s = baseline.as_ref().and_then(Baseline::time_limit_s);
        output = baseline.filter(|baseline| !baseline.passed);
    }
    if !clear {
        let (workspace, request) = (Arc::clone(&main.session.workspace), main.request.clone());
        let failing = output.as_ref().map(|baseline| baseline.output.clone());
        let located =
            examine_step(main, "locate", move || locate(&request, &workspace, failing.as_deref())).await?;
        let (files, tests) = (located.targets.clone(), located.tests.clone());
        stages.emit(Event::FilesLocated(FilesLocated { files, tests }));
        found.located = Some(Arc::new(located));
    }
    if !named {
        // A request that names no file may say no more than that something fails.
        let root = main.session.workspace.shown_root().display().to_string();
        found.failure = output.as_ref().and_then(|baseline| baseline.first_failure(&root));
    }
    found.copies = found.verify.is_none() || can_copy(main, stages).await?;
    Ok(found)
}

/// Prepares the answers to a planned task that names its files and has tests of its own. `None` for other tasks.
pub(crate) async fn prepare_planned_task(
    main: &AgentTask,
    description: &str,
    stages: &StageRunner<'_>,
) -> Result<Option<Preparation>, RunAborted> {
    let (workspace, wanted) = (Arc::clone(&main.session.workspace), description.to_owned());
    let found: Option<(String, Located)> =
        examine_step(main, "part_tests", move || auto::own_tests(&wanted, &workspace)).await?;
    let Some((command, located)) = found else { return Ok(None) };
    let located = Some(Arc::new(located));
    let copies = can_copy(main, stages).await?;
    Ok(copies.then(|| Preparation { verify: Some(command), located, copies, ..Preparation::default() }))
}

/// Whether commands can run in copies of the workspace; if not, the user is told why.
async fn can_copy(main: &AgentTask, stages: &StageRunner<'_>) -> Result<bool, RunAborted> {
    let call = StepRequest::new(&main.branch, StepKind::Environment, "copies");
    let session = &main.session;
    let body = async { copy_kind(&session.commands, session.workspace.root()).await.err() };
    let problem: Option<String> = main.engine.step(call, body).await?.value;
    if let Some(problem) = &problem {
        let message = format!("answers are tried one at a time, directly in the workspace: {problem}");
        stages.emit(Event::Warning { code: "no_copies".to_owned(), message });
    }
    Ok(problem.is_none())
}

/// Runs the verification before any change. `None` if there is no command that works here.
async fn run_baseline(
    main: &AgentTask,
    flow: &FlowSettings,
    stages: &mut StageRunner<'_>,
) -> Result<Option<Baseline>, RunAborted> {
    let mut commands: VecDeque<String> =
        flow.verify.iter().chain(&flow.verify_alternatives).cloned().collect();
    let mut runs = 0;
    let mut actions = TurnManager::new(main, stages.last_ms());
    let (mut baseline, mut misplaced) = (None, None);
    while let Some(command) = commands.pop_front() {
        runs += 1;
        let id = format!("baseline-{runs}");
        let before = actions.run.meter.spent.active_ms;
        let output = actions.runtime().run_command(&id, &command, FileEffects::Ignored).await?;
        // What the user asked for is used, whatever it says.
        if !output.ok && flow.verify_found && is_unusable(&output.content) {
            continue;
        }
        let duration_ms = actions.run.meter.spent.active_ms - before;
        let result = Baseline { command, passed: output.ok, output: output.content, duration_ms };
        if flow.verify_found && !commands.is_empty() && result.is_misplaced(main).await? {
            misplaced = misplaced.or(Some(result));
            continue;
        }
        baseline = Some(result);
        break;
    }
    let baseline = baseline.or(misplaced);
    let (spent, last_ms): (Spent, i64) = (actions.run.meter.spent.clone(), actions.run.meter.last_ms);
    stages.add_spent(&spent, last_ms);
    Ok(baseline)
}

impl Baseline {
    /// Whether the tests were started in the wrong directory: a module that they do not find is in the project.
    async fn is_misplaced(&self, main: &AgentTask) -> Result<bool, RunAborted> {
        let Some(module) = auto::missing_module(&self.output).filter(|_| !self.passed) else {
            return Ok(false);
        };
        let (workspace, module) = (Arc::clone(&main.session.workspace), module.to_owned());
        examine_step(main, "missing_module", move || auto::has_module(&workspace, &module)).await
    }

    /// How long the tests of an answer may take, in seconds. `None` if no test ran, so that nothing is known.
    fn time_limit_s(&self) -> Option<u64> {
        let report = TestReport::parse(&self.output)?;
        let ran = report.passed + report.failed > 0 && !report.is_load_failure();
        let limit = (self.duration_ms * VERIFY_SLOWDOWN / 1000).max(SHORTEST_VERIFY_S);
        (ran && limit < COMMAND_S).then_some(limit)
    }

    /// The command and its first failure, for the prompt.
    fn first_failure(&self, root: &str) -> Option<String> {
        let report = TestReport::parse(&self.output)?;
        let first = report.failures.first()?.describe().replace(&format!("{root}/"), "");
        Some(format!("`{}` does not pass yet:\n\n{first}", self.command))
    }
}
