//! Phase control: which phase a task is in, decided by the facts or by a model. It is a side channel: nothing
//! of it enters the conversation. Pure functions of the facts or an answer; `phase_tracker.rs` asks the model
//! and emits the events.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::settings::{FlowSettings, PhaseControl, PhaseMode, PhasePlace};
use crate::agent::Facts;

/// Default system prompt of the probe.
const SYSTEM: &str =
    "You say which phase a piece of work is in. Answer with the name of one phase and nothing else.";

/// Default question of the probe.
const QUESTION: &str = "The phases, in order: {states}.\nThe phase so far: {phase}.\n\nThe last turn of the work:\n\
                        {activity}\n\nWhich phase is the work in now?";

/// Phase state of a task.
#[derive(Clone, Debug)]
pub(crate) struct Phases {
    control: Arc<PhaseControl>,
    place: PhasePlace,
    /// Index of the current phase in the states.
    at: usize,
    /// Files read by earlier stages.
    read_before: BTreeSet<String>,
    /// Plans seen in this stage; `planned` says whether there was one before.
    plans: u32,
    planned: bool,
    /// File state when the plan was replaced: only later changes start the implementation again.
    replanned_at: Option<u64>,
    /// Whether a rule applied in this turn.
    ruled: bool,
}

/// A transition between phases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PhaseTransition {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) reason: String,
}

impl Phases {
    /// The initial state; `None` if phase control is off.
    pub(crate) fn begin(flow: &FlowSettings) -> Option<Self> {
        let control = &flow.phase_control;
        if control.mode == PhaseMode::Off || control.states.is_empty() {
            return None;
        }
        let first = control.default.as_deref().and_then(|name| position(control, name));
        Some(Self {
            control: Arc::new(control.clone()),
            place: flow.phase_prompt_at,
            at: first.unwrap_or(0),
            read_before: BTreeSet::new(),
            plans: 0,
            planned: false,
            replanned_at: None,
            ruled: false,
        })
    }

    /// The state for the next stage.
    pub(crate) fn carried_over(mut self, facts: &Facts) -> Self {
        self.read_before.extend(facts.files_read().cloned());
        (self.plans, self.replanned_at, self.ruled) = (0, None, false);
        self
    }

    /// Name of the current phase.
    pub(crate) fn name(&self) -> &str {
        self.control.states.get(self.at).map_or("", String::as_str)
    }

    /// Prompt of the current phase.
    pub(crate) fn prompt(&self) -> Option<&str> {
        let prompt = self.control.prompts.get(self.name())?.trim();
        (!prompt.is_empty()).then_some(prompt)
    }

    /// The prompt, if it goes at the end of the system prompt.
    pub(crate) fn system(&self) -> Option<&str> {
        self.prompt().filter(|_| self.place == PhasePlace::System)
    }

    /// The prompt, if it goes after the last message of a request.
    pub(crate) fn tail(&self) -> Option<&str> {
        self.prompt().filter(|_| self.place == PhasePlace::Tail)
    }

    /// Starts a new turn.
    pub(crate) fn turn(&mut self) {
        self.ruled = false;
    }

    /// Moves to the phase that the facts call for, if it is a different one.
    pub(crate) fn follow(&mut self, facts: &Facts) -> Option<PhaseTransition> {
        if self.control.mode == PhaseMode::Llm {
            return None;
        }
        let made = facts.plans() > self.plans;
        self.plans = facts.plans();
        let (plan, implement) = (self.target("plan"), self.target("implement"));
        let rules = &self.control.rules;
        let changes = || facts.has_changes() && self.replanned_at != Some(facts.state());
        let (to, reason) = if made && self.planned && rules.write_to_implement {
            self.replanned_at = Some(facts.state());
            (plan, "a new plan was made".to_owned())
        } else if made {
            self.planned = true;
            (implement, "a plan was made".to_owned())
        } else if self.at != implement && rules.write_to_implement && changes() {
            (implement, "a file changed".to_owned())
        } else if self.at != plan && self.at != implement && rules.auto_plan_after_read {
            let read = self.files_read(facts);
            if read < rules.min_files_read_for_plan as usize {
                return None;
            }
            (plan, if read == 1 { "1 file was read".to_owned() } else { format!("{read} files were read") })
        } else {
            return None;
        };
        self.ruled = true;
        self.go(to, reason)
    }

    /// Whether a model is asked after this turn.
    pub(crate) fn asks(&self) -> bool {
        match self.control.mode {
            PhaseMode::Off | PhaseMode::Rules => false,
            PhaseMode::Llm => true,
            PhaseMode::Hybrid => !self.ruled,
        }
    }

    /// The configuration.
    pub(crate) fn control(&self) -> &PhaseControl {
        &self.control
    }

    /// The system prompt and the question of the probe about a turn.
    pub(crate) fn question(&self, activity: &str) -> (String, String) {
        let probe = &self.control.probe;
        let filled = |text: &str| {
            text.replace("{states}", &self.control.states.join(", "))
                .replace("{phase}", self.name())
                .replace("{activity}", activity)
        };
        (
            filled(probe.system_prompt.as_deref().unwrap_or(SYSTEM)),
            filled(probe.user_prompt.as_deref().unwrap_or(QUESTION)),
        )
    }

    /// Applies the model's answer. An answer that names no phase or more than one is an error.
    pub(crate) fn answered(&mut self, answer: &str) -> Result<Option<PhaseTransition>, String> {
        let named: BTreeSet<usize> = match position(&self.control, answer.trim()) {
            Some(at) => BTreeSet::from([at]),
            None => words_of(answer).filter_map(|word| position(&self.control, word)).collect(),
        };
        match named.into_iter().collect::<Vec<_>>().as_slice() {
            [at] => Ok(self.go(*at, "reported by the model".to_owned())),
            named => {
                let states = self.control.states.join(", ");
                let which = if named.is_empty() { "none" } else { "more than one" };
                let cut: String = answer.trim().chars().take(100).collect();
                Err(format!("the answer {cut:?} names {which} of the phases {states}"))
            }
        }
    }

    fn go(&mut self, to: usize, reason: String) -> Option<PhaseTransition> {
        let from = self.name().to_owned();
        if to == self.at {
            return None;
        }
        self.at = to;
        Some(PhaseTransition { from, to: self.name().to_owned(), reason })
    }

    /// The state for a stage: by default the first, the last but one, and the last.
    fn target(&self, stage: &str) -> usize {
        let last = self.control.states.len().saturating_sub(1);
        let named = self.control.rules.targets.get(stage).and_then(|name| position(&self.control, name));
        named.unwrap_or(match stage {
            "context" => 0,
            "plan" => last.saturating_sub(1),
            _ => last,
        })
    }

    fn files_read(&self, facts: &Facts) -> usize {
        let new = facts.files_read().filter(|path| !self.read_before.contains(*path)).count();
        self.read_before.len() + new
    }
}

fn position(control: &PhaseControl, name: &str) -> Option<usize> {
    let states = &control.states;
    states
        .iter()
        .position(|state| state == name)
        .or_else(|| states.iter().position(|state| state.eq_ignore_ascii_case(name)))
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests;
