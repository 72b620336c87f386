//! Several answers to one request. `direct` takes the first that passes: an answer, repairs of it, then other answers
//! and repairs of the best of those; otherwise it keeps the best one. This module decides which attempt comes next and
//! which candidate is best; `sampler.rs` makes the attempts, and `completion/candidate.rs` judges each answer in a copy of
//! the workspace.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fusee_journal::event::{Sample, TaskStatus};
use fusee_text::test_report::TestReport;

use crate::agent::FinishedTask;

/// Samples and repairs of a small model, unless configured.
pub(crate) const SMALL_MODEL_SAMPLES: u32 = 6;
pub(crate) const SMALL_MODEL_REPAIRS: u32 = 2;

/// Temperature of further samples, unless configured.
pub(crate) const SAMPLE_TEMPERATURE: f64 = 0.7;

/// Maximum number of samples that vote if there is no verification.
const MAX_VOTES: u32 = 3;

/// Files of a candidate: new content by path.
pub(crate) type CandidateTexts = BTreeMap<String, String>;

/// How many answers may be taken.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sampling {
    /// Maximum number of answers to the same prompt.
    pub(crate) samples: u32,
    /// Maximum number of repairs of the best one.
    pub(crate) repairs: u32,
    /// Temperature of all samples but the first.
    pub(crate) temperature: f64,
    /// Model that gets one attempt after all others failed.
    pub(crate) escalate: Option<String>,
}

/// Result of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It passes the verification.
    Passed,
    /// It does not pass.
    Failed,
    /// There is no verification.
    Unverified,
    /// An earlier answer had the same files.
    Duplicate,
    /// Its files are those of the workspace.
    Unchanged,
    /// A file of it has a syntax error.
    NotParsed,
    /// It has no files.
    NoEdit,
    /// It was not verified, because the task ended before.
    #[default]
    Refused,
}

impl Verdict {
    /// Name in events and reports.
    fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Unverified => "unverified",
            Self::Duplicate => "duplicate",
            Self::Unchanged => "unchanged",
            Self::NotParsed => "not_parsed",
            Self::NoEdit => "no_edit",
            Self::Refused => "refused",
        }
    }
}

/// How well a candidate does. Greater is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Score {
    /// Whether its tests ran at all.
    ran: bool,
    passed: u32,
    failed: Reverse<u32>,
}

impl Score {
    /// The score of a candidate whose verification gave this report; `None` if the output is no report.
    pub(crate) fn new(report: Option<&TestReport>) -> Self {
        // A module that cannot be loaded counts as one failed test, and would look better than many.
        let report = report.filter(|report| !report.is_load_failure());
        let (passed, failed) = report.map_or((0, u32::MAX), |report| (report.passed, report.failed));
        Self { ran: report.is_some(), passed, failed: Reverse(failed) }
    }

    /// Tests passed and failed, if they ran.
    pub(crate) fn counts(self) -> Option<(u32, u32)> {
        self.ran.then_some((self.passed, self.failed.0))
    }
}

/// An answer with files.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Candidate {
    /// Number of the attempt it came from.
    pub(crate) n: u32,
    /// Path and new content of each file it changes.
    pub(crate) files: CandidateTexts,
    /// How well it does.
    pub(crate) score: Score,
    /// What is wrong with it.
    pub(crate) failure: String,
}

impl Candidate {
    /// Describes the candidate that was kept, after this many attempts.
    pub(crate) fn describe(&self, attempts: u32) -> String {
        let tests = self.score.counts().map(|(passed, failed)| {
            format!(", which passes {passed} of {} tests", u64::from(passed) + u64::from(failed))
        });
        let tests = tests.unwrap_or_default();
        format!("none of {attempts} answers passes; the files are those of answer {}{tests}", self.n)
    }

    /// The first line of what is wrong with it.
    pub(crate) fn first_failure(&self) -> Option<&str> {
        self.failure.lines().map(str::trim).find(|line| !line.is_empty())
    }
}

/// What an attempt knows of those before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampleRules {
    /// Files of the earlier answers.
    pub(crate) tried: Vec<CandidateTexts>,
    /// The candidate that is repaired.
    pub(crate) repaired: Option<Candidate>,
    /// Sampling temperature, if not the configured one.
    pub(crate) temperature: Option<f64>,
}

/// An attempt that ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampleResult {
    /// Its result.
    pub(crate) verdict: Verdict,
    /// Details of the verdict.
    pub(crate) reason: Option<String>,
    /// Its files, if its answer had any.
    pub(crate) files: Option<CandidateTexts>,
    /// The score, if it was verified.
    pub(crate) score: Option<Score>,
    /// What is wrong with it, if it was verified.
    pub(crate) failure: Option<String>,
}

/// What to ask the model for after the attempts so far.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NextAttempt {
    /// So many answers to the same prompt, at this temperature if not the configured one.
    Samples { count: u32, temperature: Option<f64> },
    /// A repair of the best candidate, which is told what is wrong with it.
    Repair { failure: String },
    /// An answer of a larger model, which is told what is wrong with the best candidate.
    Escalate { model: String, failure: Option<String> },
    /// The model chooses among the candidates.
    Choose,
    /// No further attempt.
    Stop,
}

/// The attempts made so far.
#[derive(Debug)]
pub(crate) struct Candidates {
    sampling: Sampling,
    samples: u32,
    /// Repairs since the last sample.
    repairs: u32,
    escalated: bool,
    /// Whether the last attempt was a sample, or a repair that is better than what it repaired.
    progress: bool,
    /// The candidate whose repairs are over.
    repaired: Option<u32>,
    best: Option<Candidate>,
    tried: Vec<CandidateTexts>,
    /// Candidates without a verification.
    unverified: Vec<Candidate>,
    /// Number of the candidate that was taken.
    chosen: Option<u32>,
}

impl Candidates {
    /// No attempt yet.
    pub(crate) fn new(sampling: Sampling) -> Self {
        Self {
            sampling,
            samples: 0,
            repairs: 0,
            escalated: false,
            progress: true,
            repaired: None,
            best: None,
            tried: Vec::new(),
            unverified: Vec::new(),
            chosen: None,
        }
    }

    /// The next attempt, after all earlier ones failed. At most `parallel` samples are taken at once.
    pub(crate) fn next(&mut self, parallel: u32) -> NextAttempt {
        let Sampling { samples, repairs, temperature, .. } = self.sampling;
        if !self.unverified.is_empty() {
            return self.next_vote(samples.min(MAX_VOTES), temperature);
        }
        if self.samples == 0 {
            // The first answer passes most often, so that it is taken alone.
            self.samples = 1;
            return NextAttempt::Samples { count: 1, temperature: None };
        }
        let all = self.samples >= samples;
        if let Some(best) = &self.best
            && (self.samples == 1 || all)
            && self.repaired != Some(best.n)
        {
            if self.repairs < repairs && self.progress {
                self.repairs += 1;
                return NextAttempt::Repair { failure: best.failure.clone() };
            }
            self.repaired = Some(best.n);
        }
        if !all {
            let count = parallel.clamp(1, samples - self.samples);
            self.samples += count;
            (self.repairs, self.progress) = (0, true);
            return NextAttempt::Samples { count, temperature: Some(temperature) };
        }
        let failure = self.best.as_ref().map(|best| best.failure.clone());
        match self.sampling.escalate.clone().filter(|_| !self.escalated) {
            Some(model) => {
                self.escalated = true;
                NextAttempt::Escalate { model, failure }
            }
            None => NextAttempt::Stop,
        }
    }

    /// Without a verification, answers vote: two that agree are enough.
    fn next_vote(&mut self, most: u32, temperature: f64) -> NextAttempt {
        if self.chosen.is_some() || self.agreed().is_some() {
            return NextAttempt::Stop;
        }
        if self.samples < most {
            self.samples += 1;
            return NextAttempt::Samples { count: 1, temperature: Some(temperature) };
        }
        if self.unverified.len() > 1 { NextAttempt::Choose } else { NextAttempt::Stop }
    }

    /// The rules of an attempt.
    pub(crate) fn rules(&self, next: &NextAttempt) -> SampleRules {
        let (temperature, repairs) = match next {
            NextAttempt::Samples { temperature, .. } => (*temperature, false),
            NextAttempt::Repair { .. } | NextAttempt::Escalate { .. } => (None, true),
            NextAttempt::Choose | NextAttempt::Stop => (None, false),
        };
        let repaired = self.best.clone().filter(|_| repairs);
        SampleRules { tried: self.tried.clone(), repaired, temperature }
    }

    /// Takes in an attempt.
    pub(crate) fn add(&mut self, n: u32, result: SampleResult) {
        let repaired = self.repairs > 0;
        let Some(files) = result.files.filter(|files| !self.tried.contains(files)) else {
            self.progress = !repaired;
            return;
        };
        let failure = result.failure.unwrap_or_default();
        let score = result.score.unwrap_or(Score::new(None));
        let candidate = Candidate { n, files, score, failure };
        let passes_first = result.verdict == Verdict::Passed && self.chosen.is_none();
        match result.verdict {
            Verdict::Passed | Verdict::Failed => {}
            Verdict::Unverified => return self.unverified.push(candidate),
            _ => {
                self.progress = !repaired;
                return;
            }
        }
        self.tried.push(candidate.files.clone());
        // Of answers that were requested at once, one that fails may end after the one that passes.
        let better = passes_first || (self.chosen.is_none() && is_better(score, self.best.as_ref()));
        if passes_first {
            self.chosen = Some(n);
        }
        self.progress = !repaired || better;
        if better {
            self.best = Some(candidate);
        }
    }

    /// Takes the model's choice among the unverified candidates, counted from 1; the first if it made none.
    pub(crate) fn choose(&mut self, number: Option<usize>) {
        let at = number.and_then(|number| number.checked_sub(1)).unwrap_or_default();
        self.chosen = self.unverified.get(at).or(self.unverified.first()).map(|candidate| candidate.n);
    }

    /// The candidate whose files are to be kept, and why.
    pub(crate) fn winner(&self) -> Option<(&Candidate, &'static str)> {
        if let Some(chosen) = self.chosen {
            let all = self.unverified.iter().chain(&self.best);
            let why = if self.unverified.is_empty() { "it passes" } else { "the model chose it" };
            return all.into_iter().find(|candidate| candidate.n == chosen).map(|winner| (winner, why));
        }
        if let Some(agreed) = self.agreed() {
            return Some((agreed, "two answers agree"));
        }
        let first = self.unverified.first().map(|first| (first, "it is the only answer"));
        first.or_else(|| self.best.as_ref().map(|best| (best, "it passes more tests than the others")))
    }

    /// Candidates that were not verified.
    pub(crate) fn unverified(&self) -> &[Candidate] {
        &self.unverified
    }

    /// The best verified candidate so far.
    pub(crate) fn best(&self) -> Option<&Candidate> {
        self.best.as_ref()
    }

    /// The first of two unverified candidates that are the same but for blank lines and spaces at line ends.
    fn agreed(&self) -> Option<&Candidate> {
        let all: Vec<_> = self.unverified.iter().map(|candidate| normalised(&candidate.files)).collect();
        let has_twin = |at: &usize| all[at + 1..].contains(&all[*at]);
        (0..all.len()).find(has_twin).map(|at| &self.unverified[at])
    }
}

/// The verdict on attempt `n`, for events and reports.
pub(crate) fn judged(n: u32, rules: &SampleRules, ended: &FinishedTask) -> Sample {
    let SampleResult { verdict, reason, score, .. } = &ended.sample;
    let (passed, failed) = score.and_then(Score::counts).unzip();
    let usage = ended.outcome.usage();
    let stopped = ended.outcome.status == TaskStatus::Cancelled;
    Sample {
        n,
        verdict: if stopped { "stopped" } else { verdict.name() }.to_owned(),
        reason: reason.clone(),
        repairs: rules.repaired.as_ref().map(|repaired| repaired.n),
        passed,
        failed,
        tokens: usage.input_tokens + usage.output_tokens,
        duration_ms: ended.outcome.spent.active_ms,
    }
}

/// Whether a candidate with this score replaces the best one. The earlier of two equal ones stays.
fn is_better(score: Score, best: Option<&Candidate>) -> bool {
    best.is_none_or(|best| score > best.score)
}

/// Files without blank lines and spaces at line ends.
fn normalised(files: &CandidateTexts) -> BTreeMap<&str, Vec<&str>> {
    fn lines(text: &str) -> Vec<&str> {
        text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect()
    }
    files.iter().map(|(path, text)| (path.as_str(), lines(text))).collect()
}

#[cfg(test)]
mod tests;
