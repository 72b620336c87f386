//! Remaining budget of a branch: the limits of the run, and those of every enclosing `with-limits`
//! region.
//!
//! Elements of a `pmap` share the usage of their enclosing regions, so a region's limit applies to all
//! of them together.
//! What is left for a task thus depends on what runs in parallel; it is granted by a step and read back
//! on replay.

use std::sync::Arc;

use fusee_lang::{EffectFailure, LimitsId, ResumeInput, RunLimits};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::agent::{Remaining, Spent};

/// The regions of a branch, outermost first.
#[derive(Clone, Default)]
pub(super) struct Budget {
    regions: Vec<LimitRegion>,
}

#[derive(Clone)]
struct LimitRegion {
    /// `None` for the whole run.
    id: Option<LimitsId>,
    limits: RunLimits,
    /// Active time at which the region was entered.
    began_ms: u64,
    /// Shared by parallel branches.
    spent: Arc<Mutex<Spent>>,
}

/// Limited resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitKind {
    Turns,
    Tokens,
    Time,
    Money,
}

/// Remaining amount of a resource, and the region that has the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct RemainingShare {
    pub(super) left: u64,
    region: usize,
}

/// What remains for one task, as journaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RemainingShares {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) turns: Option<RemainingShare>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tokens: Option<RemainingShare>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ms: Option<RemainingShare>,
    /// Millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) micros: Option<RemainingShare>,
}

impl RemainingShares {
    /// Returns a resource of which nothing is left.
    pub(super) fn used_up(&self) -> Option<(RemainingShare, LimitKind)> {
        let shares = [
            (self.turns, LimitKind::Turns),
            (self.tokens, LimitKind::Tokens),
            (self.ms, LimitKind::Time),
            (self.micros, LimitKind::Money),
        ];
        shares
            .into_iter()
            .find_map(|(share, limited)| Some((share.filter(|share| share.left == 0)?, limited)))
    }

    /// Returns what the task may use; `context_tokens` is what the model's server accepts, if that is known.
    pub(super) fn for_task(&self, context_tokens: Option<u64>) -> Remaining {
        Remaining {
            turns: self.turns.map_or(u32::MAX, |share| u32::try_from(share.left).unwrap_or(u32::MAX)),
            ms: self.ms.map(|share| share.left),
            usd: self.micros.map(|share| share.left as f64 / 1e6),
            context_tokens,
        }
    }
}

/// Converts US dollars to millionths.
fn micros(usd: f64) -> u64 {
    (usd * 1e6).round() as u64
}

impl Budget {
    /// Creates the budget of the run's own limits, if any; they apply to all its tasks together.
    pub(super) fn from_run_limits(seconds: Option<u64>, usd: Option<f64>) -> Self {
        if seconds.is_none() && usd.is_none() {
            return Self::default();
        }
        let limits =
            RunLimits { seconds: seconds.map(|seconds| seconds as f64), usd, ..RunLimits::default() };
        Self { regions: vec![LimitRegion { id: None, limits, began_ms: 0, spent: Arc::default() }] }
    }

    pub(super) fn enter(&mut self, id: LimitsId, limits: RunLimits, now_ms: u64) {
        self.regions.push(LimitRegion { id: Some(id), limits, began_ms: now_ms, spent: Arc::default() });
    }

    pub(super) fn leave(&mut self, id: LimitsId) {
        self.regions.retain(|region| region.id != Some(id));
    }

    /// Returns the remaining amount of every resource.
    pub(super) fn remaining(&self, now_ms: u64) -> RemainingShares {
        let least = |limited: LimitKind| {
            let shares = self.regions.iter().enumerate();
            shares
                .filter_map(|(region, of)| {
                    of.left(limited, now_ms).map(|left| RemainingShare { left, region })
                })
                .min()
        };
        RemainingShares {
            turns: least(LimitKind::Turns),
            tokens: least(LimitKind::Tokens),
            ms: least(LimitKind::Time),
            micros: least(LimitKind::Money),
        }
    }

    /// Returns the remaining active time. It belongs to this branch alone, so parallel branches do not
    /// affect it.
    pub(super) fn left_ms(&self, now_ms: u64) -> Option<u64> {
        self.remaining(now_ms).ms.map(|share| share.left)
    }

    /// Returns the failure to raise if the time is used up.
    pub(super) fn out_of_time(&self, now_ms: u64) -> Option<ResumeInput> {
        let share = self.remaining(now_ms).ms.filter(|share| share.left == 0)?;
        Some(self.reached(share, LimitKind::Time))
    }

    /// Records what a task used.
    pub(super) fn spend(&self, spent: &Spent) {
        self.regions.iter().for_each(|region| region.spent.lock().add(spent));
    }

    /// Returns the failure to raise if a share is used up.
    pub(super) fn reached(&self, share: RemainingShare, limited: LimitKind) -> ResumeInput {
        let Some(region) = self.regions.get(share.region) else {
            return ResumeInput::LimitReached(None, failure("the workflow", "budget", limited));
        };
        let limits = &region.limits;
        let what = match limited {
            LimitKind::Turns => fusee_text::count(limits.turns.unwrap_or_default(), "turn"),
            LimitKind::Tokens => format!("{} tokens", limits.tokens.unwrap_or_default()),
            LimitKind::Time => format!("{} seconds", limits.seconds.unwrap_or_default()),
            LimitKind::Money => format!("{} USD", limits.usd.unwrap_or_default()),
        };
        let whose = if region.id.is_some() { "this part of the workflow" } else { "the workflow" };
        ResumeInput::LimitReached(region.id, failure(whose, &what, limited))
    }
}

impl LimitRegion {
    fn left(&self, limited: LimitKind, now_ms: u64) -> Option<u64> {
        let used = self.spent.lock();
        let (limit, spent) = match limited {
            LimitKind::Turns => (self.limits.turns?, u64::from(used.turns)),
            LimitKind::Tokens => (self.limits.tokens?, used.tokens()),
            LimitKind::Money => (micros(self.limits.usd?), micros(used.charges.known_usd())),
            LimitKind::Time => ((self.limits.seconds? * 1000.0) as u64, now_ms.saturating_sub(self.began_ms)),
        };
        Some(limit.saturating_sub(spent))
    }
}

fn failure(whose: &str, what: &str, limited: LimitKind) -> EffectFailure {
    let reason = match limited {
        LimitKind::Turns => "turns",
        LimitKind::Tokens => "context",
        LimitKind::Time => "time",
        LimitKind::Money => "cost",
    };
    EffectFailure {
        kind: "RESOURCE_EXHAUSTION".to_owned(),
        reason: Some(reason.to_owned()),
        message: format!("{whose} has used up its {what}"),
        cause: None,
    }
}
