//! Forecast of a workflow for `--dry-run`: follows it as far as nothing has to be performed, and counts the calls it
//! would make. The elements of a `pmap` are followed one by one, so their number is exact where it does not depend on
//! the result of a call.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use fusee::engine::lang::{
    Effect, EffectFailure, EffectKind, EvaluationLimits, Machine, ResumeInput, TaskCall, TaskTarget, Value,
    Yield,
};
use fusee::engine::template::LoadedTemplates;
use serde_json::{Map, Value as Json, json};

use super::dry_run::prompt_of;
use super::template;
use super::workflow_source::CheckedWorkflow;
use crate::project::Project;
use crate::ui::format;

/// Maximum number of effects that are followed.
const MAX_EFFECTS: usize = 10_000;

/// What is known about the calls of a workflow before it runs.
#[derive(Default)]
pub(super) struct Forecast {
    /// Calls that are certain.
    least: CallCount,
    /// Calls if every task fails, so that each is repeated as often as `retry` allows.
    retried: CallCount,
    /// The `pmap`s that are certain, with their number of elements.
    pmaps: Vec<(String, usize)>,
    /// Calls whose results decide what follows.
    decided_by: Vec<(String, String)>,
}

/// Calls and the size of their first prompts: system prompt and request, without the definitions of tools.
#[derive(Default)]
struct CallCount {
    calls: BTreeMap<String, usize>,
    prompt_tokens: usize,
    /// Calls of tasks whose prompts are not known.
    unknown_prompts: usize,
    /// Whether [`MAX_EFFECTS`] was reached.
    is_cut: bool,
}

/// What a call is answered with while it is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scenario {
    /// Nothing: the path ends at the call.
    Unanswered,
    /// Every task fails; the path ends at any other call.
    Failing,
}

/// Follows a workflow in one scenario.
struct Follower {
    scenario: Scenario,
    effects: usize,
    tasks: Vec<TaskCall>,
    calls: BTreeMap<String, usize>,
    pmaps: Vec<(String, usize)>,
    decided_by: Vec<(String, String)>,
}

impl Forecast {
    /// Follows the workflow with these inputs.
    pub(super) async fn estimate(
        checked: &CheckedWorkflow,
        inputs: &Map<String, Json>,
        loaded: &LoadedTemplates,
        project: &Project,
    ) -> Option<Self> {
        let follow = |scenario| {
            let mut machine = Machine::start(&checked.program, inputs, EvaluationLimits::default()).ok()?;
            let mut follower = Follower::new(scenario);
            follower.follow(&mut machine);
            Some(follower)
        };
        let (mut first, failing) = (follow(Scenario::Unanswered)?, follow(Scenario::Failing)?);
        let (pmaps, decided_by) = (std::mem::take(&mut first.pmaps), std::mem::take(&mut first.decided_by));
        let mut known = HashMap::new();
        let least = first.count(loaded, project, &mut known).await;
        let retried = failing.count(loaded, project, &mut known).await;
        Some(Self { least, retried, pmaps, decided_by })
    }

    /// The forecast as lines of text; nothing for a workflow without calls.
    pub(super) fn as_text(&self) -> String {
        let mut text = String::new();
        for (at, elements) in &self.pmaps {
            let _ = writeln!(text, "{at}  pmap over {}", format::count(*elements as u64, "element"));
        }
        if self.least.calls.is_empty() {
            return text;
        }
        let (least, most) = (self.least.total(), self.most_calls());
        let (tokens, most_tokens) = (self.least.prompt_tokens, self.most_tokens());
        let names: Vec<&str> = self.least.calls.keys().map(String::as_str).collect();
        let more = if self.least.is_cut { "more than " } else { "" };
        let _ = write!(text, "certain: {more}{} of {}", range(least, most, "call"), names.join(", "));
        if tokens > 0 {
            let tokens = range(tokens, most_tokens, "prompt token");
            let _ = write!(text, ", {tokens} in the first turn of each without the definitions of tools");
        }
        if self.least.unknown_prompts > 0 {
            let _ = write!(
                text,
                " (not counted: {} whose prompt is not known)",
                format::count(self.least.unknown_prompts as u64, "call")
            );
        }
        if most > least {
            text.push_str("; the higher number if every task fails and is retried");
        }
        text.push('\n');
        if let Some((at, callee)) = self.decided_by.first() {
            let _ = writeln!(
                text,
                "not known before the run: what follows from the result of {callee} at {at}{}",
                match self.decided_by.len() - 1 {
                    0 => String::new(),
                    more => format!(" and of {} more", format::count(more as u64, "call")),
                }
            );
        }
        text
    }

    /// The forecast as JSON.
    pub(super) fn as_json(&self) -> Json {
        json!({
            "calls": { "least": self.least.total(), "with_retries": self.most_calls() },
            "prompt_tokens": { "least": self.least.prompt_tokens, "with_retries": self.most_tokens() },
            "unknown_prompts": self.least.unknown_prompts,
            "pmaps": self.pmaps.iter().map(|(at, count)| json!({ "at": at, "elements": count })).collect::<Vec<_>>(),
            "decided_by": self.decided_by.iter().map(|(at, callee)| json!({ "at": at, "callee": callee })).collect::<Vec<_>>(),
        })
    }

    fn most_calls(&self) -> usize {
        self.retried.total().max(self.least.total())
    }

    fn most_tokens(&self) -> usize {
        self.retried.prompt_tokens.max(self.least.prompt_tokens)
    }
}

fn range(least: usize, most: usize, what: &str) -> String {
    match most > least {
        true => format!("{least} to {}", format::count(most as u64, what)),
        false => format::count(least as u64, what),
    }
}

impl CallCount {
    fn total(&self) -> usize {
        self.calls.values().sum()
    }
}

impl Follower {
    fn new(scenario: Scenario) -> Self {
        let (calls, tasks) = (BTreeMap::new(), Vec::new());
        Self { scenario, effects: 0, tasks, calls, pmaps: Vec::new(), decided_by: Vec::new() }
    }

    /// Follows a machine to its end; `None` if that depends on the result of a call.
    fn follow(&mut self, machine: &mut Machine) -> Option<ResumeInput> {
        let mut input = ResumeInput::Go;
        loop {
            input = match machine.resume(input) {
                Yield::Done(value) => return Some(ResumeInput::Branches(vec![value])),
                Yield::Fault(fault) => return Some(ResumeInput::BranchFailed(fault)),
                Yield::Pause => ResumeInput::Go,
                Yield::Effect(effect) => {
                    self.effects += 1;
                    if self.effects > MAX_EFFECTS {
                        return None;
                    }
                    self.perform(effect)?
                }
            };
        }
    }

    fn perform(&mut self, effect: Effect) -> Option<ResumeInput> {
        let (at, callee) = (effect.location.to_string(), effect.kind.callee().to_owned());
        match effect.kind {
            EffectKind::Log { .. }
            | EffectKind::Wait { .. }
            | EffectKind::EnterLimits { .. }
            | EffectKind::LeaveLimits { .. } => Some(ResumeInput::Go),
            EffectKind::FanOut(fan_out) => {
                self.pmaps.push((at, fan_out.len()));
                let ends: Vec<Option<ResumeInput>> = (0..fan_out.len())
                    .map(|index| fan_out.machine(index).and_then(|mut machine| self.follow(&mut machine)))
                    .collect();
                let mut values: Vec<Value> = Vec::new();
                for end in ends {
                    match end? {
                        ResumeInput::Branches(value) => values.extend(value),
                        failed => return Some(failed),
                    }
                }
                Some(ResumeInput::Branches(values))
            }
            EffectKind::Task(call) => {
                *self.calls.entry(callee.clone()).or_default() += 1;
                self.tasks.push(*call);
                match self.scenario {
                    Scenario::Unanswered => self.end_at(at, callee),
                    Scenario::Failing => Some(ResumeInput::Failed(EffectFailure {
                        kind: "TASK_FAILURE".to_owned(),
                        reason: None,
                        message: "the task fails in this forecast".to_owned(),
                        cause: None,
                    })),
                }
            }
            EffectKind::Tool(_) | EffectKind::Context(_) | EffectKind::AskUser { .. } => {
                *self.calls.entry(callee.clone()).or_default() += 1;
                self.end_at(at, callee)
            }
        }
    }

    fn end_at(&mut self, at: String, callee: String) -> Option<ResumeInput> {
        if !self.decided_by.iter().any(|(known, _)| *known == at) {
            self.decided_by.push((at, callee));
        }
        None
    }

    /// Adds the sizes of the prompts; `known` holds those of templates with the same inputs.
    async fn count(
        self,
        loaded: &LoadedTemplates,
        project: &Project,
        known: &mut HashMap<String, Option<usize>>,
    ) -> CallCount {
        let is_cut = self.effects > MAX_EFFECTS;
        let mut count = CallCount { calls: self.calls, is_cut, ..CallCount::default() };
        for call in &self.tasks {
            let tokens = match &call.target {
                TaskTarget::Atom(atom) if call.settings.is_empty() => {
                    let inputs: Vec<_> =
                        call.inputs.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect();
                    Some(prompt_of(atom, &inputs).0)
                }
                TaskTarget::Named(name) if call.settings.is_empty() => {
                    let key = json!([&**name, call.inputs]).to_string();
                    match known.get(&key) {
                        Some(tokens) => *tokens,
                        None => {
                            let tokens = template::prompt_tokens(name, &call.inputs, loaded, project).await;
                            known.insert(key, tokens);
                            tokens
                        }
                    }
                }
                _ => None,
            };
            match tokens {
                Some(tokens) => count.prompt_tokens += tokens,
                None => count.unknown_prompts += 1,
            }
        }
        count
    }
}
