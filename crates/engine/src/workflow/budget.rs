//! Remaining budget of a branch: the limits of the run, and those of every enclosing `with-limits`
//! region.
//!
//! Elements of a `pmap` share the usage of their enclosing regions, so a region's limit applies to all
//! of them together.
//! What is left for a task thus depends on what runs in parallel; it is granted by a step and read back
//! on replay.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fusee_lang::{EffectFailure, LimitsId, ResumeInput, RunLimits};
use serde::{Deserialize, Serialize};

use crate::agent::Remaining;

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
    spent: Arc<RegionSpent>,
}

#[derive(Default)]
struct RegionSpent {
    turns: AtomicU64,
    tokens: AtomicU64,
    micros: AtomicU64,
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

/// Budget of one task, as journaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskGrant {
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

impl TaskGrant {
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

    /// Returns what the task may use, if anything is limited.
    pub(super) fn remaining(&self) -> Option<Remaining> {
        (*self != Self::default()).then(|| Remaining {
            turns: self.turns.map_or(u32::MAX, |share| u32::try_from(share.left).unwrap_or(u32::MAX)),
            ms: self.ms.map(|share| share.left),
            usd: self.micros.map(|share| share.left as f64 / 1e6),
        })
    }
}

/// Converts US dollars to millionths.
pub(super) fn micros(usd: f64) -> u64 {
    (usd * 1e6).round() as u64
}

impl Budget {
    /// Creates the budget of the run's own limits, if any; they apply to all its tasks together.
    pub(super) fn of_the_run(seconds: Option<u64>, usd: Option<f64>) -> Self {
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
    pub(super) fn grant(&self, now_ms: u64) -> TaskGrant {
        let least = |limited: LimitKind| {
            let shares = self.regions.iter().enumerate();
            shares
                .filter_map(|(region, of)| {
                    of.left(limited, now_ms).map(|left| RemainingShare { left, region })
                })
                .min()
        };
        TaskGrant {
            turns: least(LimitKind::Turns),
            tokens: least(LimitKind::Tokens),
            ms: least(LimitKind::Time),
            micros: least(LimitKind::Money),
        }
    }

    /// Returns the remaining active time. It belongs to this branch alone, so parallel branches do not
    /// affect it.
    pub(super) fn left_ms(&self, now_ms: u64) -> Option<u64> {
        self.grant(now_ms).ms.map(|share| share.left)
    }

    /// Returns the failure to raise if the time is used up.
    pub(super) fn out_of_time(&self, now_ms: u64) -> Option<ResumeInput> {
        let share = self.grant(now_ms).ms.filter(|share| share.left == 0)?;
        Some(self.reached(share, LimitKind::Time))
    }

    /// Records what a task used.
    pub(super) fn spend(&self, turns: u64, tokens: u64, micros: u64) {
        for region in &self.regions {
            region.spent.turns.fetch_add(turns, Ordering::Relaxed);
            region.spent.tokens.fetch_add(tokens, Ordering::Relaxed);
            region.spent.micros.fetch_add(micros, Ordering::Relaxed);
        }
    }

    /// Returns the failure to raise if a share is used up.
    pub(super) fn reached(&self, share: RemainingShare, limited: LimitKind) -> ResumeInput {
        let Some(region) = self.regions.get(share.region) else {
            return ResumeInput::LimitReached(None, failure("the workflow", "budget", limited));
        };
        let limits = &region.limits;
        let what = match limited {
            LimitKind::Turns => format!("{} turns", limits.turns.unwrap_or_default()),
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
        let (limit, spent) = match limited {
            LimitKind::Turns => (self.limits.turns?, self.spent.turns.load(Ordering::Relaxed)),
            LimitKind::Tokens => (self.limits.tokens?, self.spent.tokens.load(Ordering::Relaxed)),
            LimitKind::Money => (micros(self.limits.usd?), self.spent.micros.load(Ordering::Relaxed)),
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
