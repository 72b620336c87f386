//! Several answers to one request. `direct` takes the first that passes; otherwise it keeps the best one and
//! asks for repairs of it. This module decides which attempt comes next and which candidate is best; the
//! stage runner makes the attempts, and `completion/sample_files.rs` puts the files back that an attempt
//! changed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fusee_journal::event::{Sample, TaskStatus};
use fusee_text::test_report::TestReport;
use serde::{Deserialize, Serialize};

use crate::agent::FinishedTask;

/// Samples and repairs of a small model, unless configured.
pub(crate) const SMALL_MODEL_SAMPLES: u32 = 6;
pub(crate) const SMALL_MODEL_REPAIRS: u32 = 2;

/// Temperature of further samples, unless configured.
pub(crate) const SAMPLE_TEMPERATURE: f64 = 0.7;

/// Files of a candidate: new content by path.
pub(crate) type CandidateFiles = BTreeMap<String, String>;

/// A file before the first attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OriginalFile {
    /// It did not exist.
    Absent,
    /// It had this content.
    Text(String),
    /// It is no text, or too large; it cannot be put back.
    Other,
}

/// How many answers may be taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sampling {
    /// Maximum number of answers to the same prompt.
    pub(crate) samples: u32,
    /// Maximum number of repairs of the best one.
    pub(crate) repairs: u32,
    /// Temperature of all samples but the first.
    pub(crate) temperature: f64,
}

/// How well a candidate does. Greater is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Score {
    /// Whether its tests ran at all.
    ran: bool,
    passed: u32,
    failed: Reverse<u32>,
}

impl Score {
    /// The score of a candidate whose verification gave this report; `None` if the output is no report.
    pub(crate) fn new(report: Option<&TestReport>) -> Self {
        let (passed, failed) = report.map_or((0, u32::MAX), |report| (report.passed, report.failed));
        Self { ran: report.is_some(), passed, failed: Reverse(failed) }
    }

    /// Tests passed and failed, if they ran.
    pub(crate) fn counts(self) -> Option<(u32, u32)> {
        self.ran.then_some((self.passed, self.failed.0))
    }
}

/// A candidate that did not pass.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Candidate {
    /// Number of the attempt it came from.
    pub(crate) n: u32,
    /// Path and new content of each file it changes.
    pub(crate) files: CandidateFiles,
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
}

/// What the workspace holds after an attempt that does not pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// The files as they were before the first attempt, for another sample.
    #[default]
    Original,
    /// The best candidate so far, for a repair or for the user.
    Best,
}

/// What an attempt knows of those before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampleRules {
    /// Files that earlier attempts changed, as they were.
    pub(crate) originals: BTreeMap<String, OriginalFile>,
    /// The best candidate so far.
    pub(crate) best: Option<Candidate>,
    /// Files of the earlier answers.
    pub(crate) tried: Vec<CandidateFiles>,
    /// What to leave behind.
    pub(crate) afterwards: Afterwards,
    /// Whether the best candidate is in the workspace, to be repaired.
    pub(crate) repairs: bool,
    /// Sampling temperature, if not the configured one.
    pub(crate) temperature: Option<f64>,
}

/// An attempt that ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampleResult {
    /// Its files, if its answer had any.
    pub(crate) files: Option<CandidateFiles>,
    /// All files known to have been changed, as they were at first.
    pub(crate) originals: BTreeMap<String, OriginalFile>,
    /// The score, if it was verified.
    pub(crate) score: Option<Score>,
    /// Whether an earlier answer had the same files.
    pub(crate) duplicate: bool,
    /// What is wrong with it, if it was verified.
    pub(crate) failure: Option<String>,
}

/// What to ask the model for after the attempts so far.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NextAttempt {
    /// Another answer to the same prompt, at this temperature if not the configured one.
    Sample { temperature: Option<f64>, afterwards: Afterwards },
    /// A repair of the best candidate, which is told what is wrong with it.
    Repair { failure: String },
    /// No further attempt.
    Stop,
}

/// The attempts made so far.
#[derive(Debug)]
pub(crate) struct Candidates {
    sampling: Sampling,
    samples: u32,
    repairs: u32,
    /// Whether the last repair was better than what it repaired.
    progress: bool,
    rules: SampleRules,
}

impl Candidates {
    /// No attempt yet.
    pub(crate) fn new(sampling: Sampling) -> Self {
        Self { sampling, samples: 0, repairs: 0, progress: true, rules: SampleRules::default() }
    }

    /// The next attempt, after all earlier ones failed.
    pub(crate) fn next(&mut self) -> NextAttempt {
        let Sampling { samples, repairs, temperature } = self.sampling;
        if self.samples < samples {
            self.samples += 1;
            let last = self.samples == samples;
            return NextAttempt::Sample {
                temperature: (self.samples > 1).then_some(temperature),
                afterwards: if last { Afterwards::Best } else { Afterwards::Original },
            };
        }
        match &self.rules.best {
            Some(best) if self.repairs < repairs && self.progress => {
                self.repairs += 1;
                NextAttempt::Repair { failure: best.failure.clone() }
            }
            _ => NextAttempt::Stop,
        }
    }

    /// The verdict on an attempt, for events and reports.
    pub(crate) fn verdict(&self, n: u32, next: &NextAttempt, ended: &FinishedTask) -> Sample {
        let result = &ended.sample;
        let verdict = match result {
            _ if ended.outcome.status == TaskStatus::Completed && ended.missing.is_empty() => "passed",
            SampleResult { duplicate: true, .. } => "duplicate",
            SampleResult { files: None, .. } => "no_edit",
            SampleResult { score: None, .. } => "refused",
            SampleResult { .. } => "failed",
        };
        let repairs = matches!(next, NextAttempt::Repair { .. });
        let (passed, failed) = result.score.and_then(Score::counts).unzip();
        let usage = ended.outcome.usage();
        Sample {
            n,
            verdict: verdict.to_owned(),
            reason: None,
            repairs: self.best().filter(|_| repairs).map(|best| best.n),
            passed,
            failed,
            tokens: usage.input_tokens + usage.output_tokens,
            duration_ms: ended.outcome.spent.active_ms,
        }
    }

    /// The rules of an attempt.
    pub(crate) fn rules(&self, next: &NextAttempt) -> SampleRules {
        let (afterwards, temperature) = match next {
            NextAttempt::Sample { temperature, afterwards } => (*afterwards, *temperature),
            NextAttempt::Repair { .. } | NextAttempt::Stop => (Afterwards::Best, None),
        };
        let repairs = matches!(next, NextAttempt::Repair { .. });
        SampleRules { afterwards, temperature, repairs, ..self.rules.clone() }
    }

    /// Takes in an attempt that did not pass. Returns whether it is the best so far.
    pub(crate) fn add(&mut self, n: u32, result: SampleResult) -> bool {
        self.rules.originals = result.originals;
        let repaired = self.repairs > 0;
        let failure = result.failure.unwrap_or_default();
        let (Some(files), Some(score), false) = (result.files, result.score, result.duplicate) else {
            self.progress = !repaired;
            return false;
        };
        self.rules.tried.push(files.clone());
        let better = is_better(score, self.rules.best.as_ref());
        self.progress = !repaired || better;
        if better {
            self.rules.best = Some(Candidate { n, files, score, failure });
        }
        better
    }

    /// The best candidate so far.
    pub(crate) fn best(&self) -> Option<&Candidate> {
        self.rules.best.as_ref()
    }
}

/// Whether a candidate with this score replaces the best one. The earlier of two equal ones stays.
pub(crate) fn is_better(score: Score, best: Option<&Candidate>) -> bool {
    best.is_none_or(|best| score > best.score)
}

#[cfg(test)]
mod tests;
