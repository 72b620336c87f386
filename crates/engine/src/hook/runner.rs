//! Runs the hooks of an event as one journal step: concurrently, and the strictest decision wins. A resumed or replayed
//! run takes the recorded answers; a run that was killed before its hooks had answered runs them again.

use std::path::{Path, PathBuf};

use fusee_journal::event::{Event, HookDecision, HookRun};
use fusee_journal::{Branch, DurableRun, RunAborted, StepKind, StepRequest};
use fusee_model::CancellationToken;
use fusee_tools::{CommandSettings, ContentHash, Secrets};
use futures_util::future::join_all;
use serde_json::{Map, Value, json};

use super::answer::HookAnswer;
use super::input::HookInput;
use super::matcher::{Fit, HookMatcher};
use super::process::{self, HookFailure};
use super::{HookEvent, HookSpec};

/// Maximum bytes of a file of a hook that is compared with its content at the start of the run.
const MAX_FILE: u64 = 16 << 20;

/// The hooks of a run.
pub(crate) struct HookRunner {
    hooks: Vec<(HookSpec, HookMatcher)>,
    commands: CommandSettings,
    place: HookPlace,
    /// Fields that every hook reads.
    base: Map<String, Value>,
}

/// Where hooks run.
pub(crate) struct HookPlace {
    /// Directory of the run, and of its hooks.
    pub(crate) directory: PathBuf,
    /// Directory of the project.
    pub(crate) root: PathBuf,
    /// Whether the project's own hooks may run.
    pub(crate) trusts_project: bool,
}

/// Where in a run hooks run.
#[derive(Clone, Copy)]
pub(crate) struct HookScope<'a> {
    pub(crate) engine: &'a dyn DurableRun,
    pub(crate) branch: &'a Branch,
    pub(crate) cancel: &'a CancellationToken,
}

/// What the hooks of an event decided together.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct HookOutcome {
    pub(crate) decision: HookDecision,
    /// Reasons of those that decided so.
    pub(crate) reason: String,
    /// Context for the model.
    pub(crate) context: Vec<String>,
    /// New arguments of the call.
    pub(crate) updated_input: Option<Value>,
}

impl HookOutcome {
    /// Whether the action must not happen.
    pub(crate) fn is_blocked(&self) -> bool {
        self.decision >= HookDecision::Deny
    }

    /// Whether the task has to end.
    pub(crate) fn stops_task(&self) -> bool {
        self.decision == HookDecision::Stop
    }
}

impl HookRunner {
    /// The hooks of a run. A matcher that is not valid matches nothing; the files were checked when they were read.
    pub(crate) fn new(
        hooks: &[HookSpec],
        commands: CommandSettings,
        place: HookPlace,
        base: Map<String, Value>,
    ) -> Self {
        let compiled = |hook: &HookSpec| {
            let matcher = HookMatcher::new(hook.matcher.as_deref()).ok()?;
            Some((hook.clone(), matcher))
        };
        let hooks = hooks.iter().filter_map(compiled).collect();
        Self { hooks, commands, place, base }
    }

    /// Whether an event has any hooks.
    pub(crate) fn has(&self, event: HookEvent) -> bool {
        self.hooks.iter().any(|(hook, _)| hook.event == event)
    }

    /// Runs the hooks of an event. Without any, no step is recorded.
    pub(crate) async fn run(
        &self,
        scope: HookScope<'_>,
        input: HookInput,
    ) -> Result<HookOutcome, RunAborted> {
        let hooks = self.matching(&input);
        if hooks.is_empty() {
            return Ok(HookOutcome::default());
        }
        let commands: Vec<&str> = hooks.iter().map(|(hook, _)| hook.command.as_str()).collect();
        let args = json!({ "hooks": commands, "input": input.fields });
        let request = StepRequest::new(scope.branch, StepKind::Hook, input.event.name()).with_args(args);
        let (asked, running) = (&input, &hooks);
        let body = async move {
            let runs = running.iter().map(|(hook, fit)| self.ask(hook, *fit, asked, scope));
            join_all(runs).await
        };
        let (answers, meta) = scope.engine.step::<Vec<HookAnswer>>(request, body).await?.split();
        for ((hook, _), answer) in hooks.iter().zip(&answers) {
            emit(scope, &input, hook, answer, meta.duration_ms);
        }
        Ok(merge(answers))
    }

    /// The hooks that match, each command once.
    fn matching(&self, input: &HookInput) -> Vec<(&HookSpec, Fit)> {
        let mut found: Vec<(&HookSpec, Fit)> = Vec::new();
        for (hook, matcher) in self.hooks.iter().filter(|(hook, _)| hook.event == input.event) {
            let fit = match input.event.has_matchers() {
                true => matcher.fit(&input.subject, input.mcp_name.as_deref()),
                false => Some(Fit::Own),
            };
            if let Some(fit) = fit
                && !found.iter().any(|(known, _)| known.command == hook.command)
            {
                found.push((hook, fit));
            }
        }
        found
    }

    async fn ask(&self, hook: &HookSpec, fit: Fit, input: &HookInput, scope: HookScope<'_>) -> HookAnswer {
        if hook.of_project && !self.place.trusts_project {
            return HookAnswer::failed("it was not run, because the project is no longer trusted");
        }
        if let Some(file) = changed_file(hook) {
            let reason = format!(
                "the hook `{}` was not run, because {} has changed since the run began",
                hook.command,
                file.display()
            );
            return HookAnswer::blocked(input.event, reason);
        }
        let document = input.document(&self.base, fit).to_string();
        let end = process::run(hook, &self.commands, &self.place, document.as_bytes(), scope.cancel).await;
        let mut answer = match end {
            Ok(end) => HookAnswer::read(input.event, &end),
            Err(HookFailure::Failed(reason)) => HookAnswer::failed(reason),
            Err(HookFailure::Cancelled) => HookAnswer::blocked(input.event, "cancelled"),
        };
        answer.updated_input = answer.updated_input.map(|arguments| input.to_ours(arguments, fit));
        clean(&self.commands.secrets, &mut answer);
        answer
    }
}

/// The first file of a hook that is not as it was when the run started.
fn changed_file(hook: &HookSpec) -> Option<&PathBuf> {
    let is_same = |(file, hash): &(&PathBuf, &String)| content_hash(file).as_ref() == Some(hash);
    hook.files.iter().find(|entry| !is_same(entry)).map(|(file, _)| file)
}

/// Hash of a file's content; `None` if it cannot be read or is too large.
pub fn content_hash(file: &Path) -> Option<String> {
    let known = std::fs::metadata(file).ok().filter(|found| found.is_file() && found.len() <= MAX_FILE);
    known.and_then(|_| std::fs::read(file).ok()).map(|content| ContentHash::of(&content).to_string())
}

/// Removes known secrets from a hook's answer.
fn clean(secrets: &Secrets, answer: &mut HookAnswer) {
    let texts = [&mut answer.reason, &mut answer.message, &mut answer.context];
    texts.into_iter().flatten().for_each(|text| secrets.remove_from(text));
}

fn emit(scope: HookScope<'_>, input: &HookInput, hook: &HookSpec, answer: &HookAnswer, duration_ms: u64) {
    let HookAnswer { decision, reason, message, .. } = answer.clone();
    if let Some(message) = message {
        scope.engine.emit(scope.branch, Event::Warning { code: "hook_message".to_owned(), message });
    }
    scope.engine.emit(
        scope.branch,
        Event::Hook(HookRun {
            event: input.event.name().to_owned(),
            command: hook.command.clone(),
            decision,
            call_id: input.call_id.clone(),
            reason,
            duration_ms,
        }),
    );
}

/// The strictest decision, and everything else that was said.
fn merge(answers: Vec<HookAnswer>) -> HookOutcome {
    let strictest = answers.iter().map(|answer| answer.decision).max().unwrap_or_default();
    let mut outcome = HookOutcome { decision: strictest, ..HookOutcome::default() };
    let mut reasons = Vec::new();
    for answer in answers {
        let decides =
            answer.decision == strictest || (outcome.is_blocked() && answer.decision >= HookDecision::Deny);
        if decides {
            reasons.extend(answer.reason);
        }
        outcome.context.extend(answer.context);
        outcome.updated_input = answer.updated_input.or(outcome.updated_input);
    }
    outcome.reason = reasons.join("; ");
    outcome
}
