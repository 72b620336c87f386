//! The files of one sample (`flow/samples.rs`): they are recorded before an answer changes them, and put back
//! when the answer does not pass. Everything is a step, so that a killed run resumes with the files as they
//! should be.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use fusee_journal::event::Event;
use fusee_journal::{RunAborted, StepKind, StepRequest};
use fusee_text::test_report::TestReport;
use fusee_tools::Workspace;
use fusee_tools::workspace::{OpenedPath, PathProblem};
use serde_json::json;

use super::runtime_actions::RuntimeActions;
use crate::agent::flow::{
    Afterwards, AnswerEdit, CandidateFiles, Feedback, OriginalFile, SampleResult, SampleRules, Score,
    is_better,
};

/// Larger files are not put back.
const MAX_BYTES: u64 = 4 << 20;

/// What is known of the sample that is being verified.
#[derive(Debug, Default)]
pub(crate) struct SampleFiles {
    /// Files before the first change, in this attempt and earlier ones.
    originals: BTreeMap<String, OriginalFile>,
    /// Files of the answer, on top of the candidate that it repairs.
    files: Option<CandidateFiles>,
    duplicate: bool,
    verified: Option<Verified>,
}

/// The last verification of a sample.
#[derive(Clone, Debug)]
struct Verified {
    passed: bool,
    score: Score,
    failure: String,
}

impl SampleFiles {
    /// Takes in the result of a verification.
    pub(crate) fn verified(&mut self, passed: bool, output: &str) {
        let report = TestReport::parse(output);
        let first = report.as_ref().and_then(|report| report.failures.first());
        let failure = first.map_or_else(|| output.trim().to_owned(), |failure| failure.describe());
        self.verified = Some(Verified { passed, score: Score::new(report.as_ref()), failure });
    }

    /// The result of the attempt, for the choice among all attempts.
    pub(crate) fn result(self) -> SampleResult {
        let Self { originals, files, duplicate, verified } = self;
        let (score, failure) = verified.map(|verified| (verified.score, verified.failure)).unzip();
        SampleResult { files, originals, score, duplicate, failure }
    }
}

impl RuntimeActions<'_, '_> {
    /// Records the files that an answer is about to change. Returns feedback if the answer is not worth
    /// verifying because an earlier one was the same.
    pub(crate) async fn begin_sample(
        &mut self,
        edits: &[AnswerEdit],
    ) -> Result<Option<Feedback>, RunAborted> {
        let Some(rules) = self.run.task.rules.sample.as_ref() else { return Ok(None) };
        let text = |edit: &AnswerEdit, name: &str| edit.arguments[name].as_str().map(str::to_owned);
        let edited = edits.iter().filter_map(|edit| Some((text(edit, "path")?, text(edit, "content")?)));
        let mut files = in_place(rules);
        files.extend(edited);
        if rules.tried.contains(&files) {
            self.files.sample.duplicate = true;
            let text = "The answer is the same as an earlier one.".to_owned();
            return Ok(Some(Feedback { text, kind: "duplicate_answer" }));
        }
        let mut originals = rules.originals.clone();
        let unknown: Vec<String> =
            files.keys().filter(|path| !originals.contains_key(*path)).cloned().collect();
        if !unknown.is_empty() {
            let task = self.run.task;
            let call = StepRequest::new(&task.branch, StepKind::Environment, "originals")
                .with_args(json!({ "paths": unknown }));
            let workspace = task.session.workspace.clone();
            let body = async move {
                let read = move || -> BTreeMap<String, OriginalFile> {
                    unknown.into_iter().map(|path| (path.clone(), original(&workspace, &path))).collect()
                };
                tokio::task::spawn_blocking(read).await.unwrap_or_default()
            };
            let recorded = self.run.engine().step(call, body).await?;
            self.run.meter.record(&recorded);
            originals.extend(recorded.value);
        }
        self.files.sample.originals = originals;
        self.files.sample.files = Some(files);
        Ok(None)
    }

    /// Puts the files back after a sample that did not pass.
    pub(crate) async fn end_sample(&mut self) -> Result<(), RunAborted> {
        let Some(rules) = self.run.task.rules.sample.clone() else { return Ok(()) };
        let sample = &mut self.files.sample;
        if sample.originals.is_empty() {
            sample.originals = rules.originals.clone();
        }
        let passed = sample.verified.as_ref().is_some_and(|verified| verified.passed);
        let score = sample.verified.as_ref().map(|verified| verified.score);
        let is_best =
            score.is_some_and(|score| is_better(score, rules.best.as_ref())) && sample.files.is_some();
        if passed || (rules.afterwards == Afterwards::Best && is_best) {
            return Ok(());
        }
        let now = sample.files.clone().unwrap_or_else(|| in_place(&rules));
        let then = match (rules.afterwards, &rules.best) {
            (Afterwards::Best, Some(best)) => best.files.clone(),
            _ => CandidateFiles::default(),
        };
        let originals = sample.originals.clone();
        let paths: BTreeSet<&String> = now.keys().chain(then.keys()).collect();
        for path in paths {
            if now.get(path) == then.get(path) {
                continue;
            }
            let (tool, arguments) = match (then.get(path), originals.get(path)) {
                (Some(content), _) | (None, Some(OriginalFile::Text(content))) => {
                    ("write_file", json!({ "path": path, "content": content }))
                }
                (None, Some(OriginalFile::Absent)) => {
                    let patch = format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n");
                    ("apply_patch", json!({ "patch": patch }))
                }
                (None, Some(OriginalFile::Other) | None) => continue,
            };
            self.files.answer_edits += 1;
            let id = format!("restore-{}", self.files.answer_edits);
            let output = self.restore(&id, tool, arguments).await?;
            if !output.ok {
                let message = format!("`{path}` could not be put back: {}", output.content.trim());
                self.run.emit(Event::Warning { code: "restore_failed".to_owned(), message });
            }
        }
        Ok(())
    }
}

/// Files of the candidate that is in the workspace when an attempt starts.
fn in_place(rules: &SampleRules) -> CandidateFiles {
    rules.best.as_ref().filter(|_| rules.repairs).map(|best| best.files.clone()).unwrap_or_default()
}

/// The file as it is now.
fn original(workspace: &Workspace, path: &str) -> OriginalFile {
    let Ok(located) = workspace.locate(path) else { return OriginalFile::Other };
    match workspace.open_to_read(&located) {
        Ok(OpenedPath::File { file, size }) if size <= MAX_BYTES => {
            let mut text = String::new();
            match file.take(MAX_BYTES).read_to_string(&mut text) {
                Ok(_) => OriginalFile::Text(text),
                Err(_) => OriginalFile::Other,
            }
        }
        Ok(_) => OriginalFile::Other,
        Err(PathProblem::Missing { .. }) => OriginalFile::Absent,
        Err(_) => OriginalFile::Other,
    }
}
