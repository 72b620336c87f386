//! Judges one of several answers (`flow/samples.rs`): first without running anything, then by the verification in a
//! copy of the workspace. The workspace itself is not touched; the winner is written when all answers are judged.

use std::collections::BTreeMap;
use std::path::Path;

use fusee_journal::{RunAborted, StepKind, StepRequest};
use fusee_model::{Message, ToolCall};
use fusee_text::test_report::TestReport;
use fusee_tools::{ToolOutput, Workspace, candidate_shell};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::runtime_actions::{FileEffects, RuntimeActions};
use crate::agent::flow::{
    CandidateTexts, Feedback, SampleResult, Score, Verdict, asks_for_tests, edits, is_test, read_text,
    unnamed_edits,
};
use crate::agent::tool_calls::call_gate::{self, CallHistory};
use crate::agent::tool_calls::call_hooks::Admission;
use crate::agent::tool_calls::{emit_call, emit_result};
use crate::memory;

/// What is wrong with an answer whose tests had to be stopped.
const ENDLESS: &str =
    "The tests do not come to an end: for some input, the code loops forever or is far too slow.";

/// What a look at the files of a candidate shows.
#[derive(Default, Serialize, Deserialize)]
struct CandidateCheck {
    /// Whether all files are as they are in the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unchanged: bool,
    /// The first syntax error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    syntax: Option<String>,
}

impl SampleResult {
    /// Takes in the result of a verification.
    pub(crate) fn verified(&mut self, passed: bool, output: &str, root: &Path) {
        // Small models repeat absolute paths where a path of the project is asked for.
        let output = &output.replace(&format!("{}/", root.display()), "");
        let report = TestReport::parse(output);
        let first = report.as_ref().and_then(|report| report.failures.first());
        let failure = match first {
            Some(failure) => failure.describe(),
            // What a model can do about it is not what a user can.
            None if output.contains("timed out after ") => ENDLESS.to_owned(),
            None => output.trim().to_owned(),
        };
        self.verdict = if passed { Verdict::Passed } else { Verdict::Failed };
        (self.score, self.failure) = (Some(Score::new(report.as_ref())), Some(failure));
    }

    /// Drops the answer without verifying it.
    fn drop_answer(&mut self, verdict: Verdict, reason: Option<String>, text: &str) -> Feedback {
        (self.verdict, self.reason) = (verdict, reason);
        Feedback { text: text.to_owned(), kind: "answer_dropped" }
    }
}

impl RuntimeActions<'_, '_> {
    /// The files of an answer, unless it is not worth verifying: then why.
    pub(crate) async fn candidate(
        &mut self,
        answer: &str,
    ) -> Result<Result<CandidateTexts, Feedback>, RunAborted> {
        let task = self.run.task;
        let sample = &mut self.files.sample;
        let rules = task.rules.sample.clone().unwrap_or_default();
        let found = edits(answer, task.rules.edit_format, &self.files.targets);
        let shown: Vec<(&str, &str)> = {
            let paths = self.files.targets.iter().map(String::as_str);
            paths.zip(self.files.target_texts.iter().map(String::as_str)).collect()
        };
        let edits = match found.or_else(|text| unnamed_edits(answer, &shown).ok_or(text)) {
            Ok(edits) => edits,
            Err(text) => {
                sample.verdict = Verdict::NoEdit;
                return Ok(Err(Feedback { text, kind: "no_edit" }));
            }
        };
        let request = task.rules.request.as_ref().unwrap_or(&task.request);
        let mut files = rules.repaired.map(|repaired| repaired.files).unwrap_or_default();
        let written = edits.iter().filter_map(|edit| {
            let text = |name: &str| edit.arguments[name].as_str().map(str::to_owned);
            text("path").zip(text("content"))
        });
        let first = self.conversation.history.request().messages().first().map(Message::text);
        files.extend(intended(written.collect(), &self.files.targets, first.unwrap_or_default()));
        let protected = task.rules.protected.as_ref();
        // An answer that changes what verifies it proves nothing.
        let keeps_tests = task.rules.verify.is_some() && !asks_for_tests(request);
        files.retain(|path, _| {
            let is_kept = keeps_tests && is_test(path) || protected.is_some_and(|tests| tests.covers(path));
            !is_kept
        });
        if files.is_empty() {
            let reason = Some("it changes only tests".to_owned());
            return Ok(Err(sample.drop_answer(Verdict::NoEdit, reason, "The tests must not be changed.")));
        }
        if rules.tried.contains(&files) {
            let text = "The answer is the same as an earlier one.";
            return Ok(Err(sample.drop_answer(Verdict::Duplicate, None, text)));
        }
        let call = StepRequest::new(&task.branch, StepKind::Environment, "candidate")
            .with_args(json!({ "paths": files.keys().collect::<Vec<_>>() }));
        let (workspace, looked_at) = (task.session.workspace.clone(), files.clone());
        let body = async move {
            tokio::task::spawn_blocking(move || check(&workspace, &looked_at)).await.unwrap_or_default()
        };
        let recorded = self.run.engine().step(call, body).await?;
        self.run.meter.record(&recorded);
        let CandidateCheck { unchanged, syntax } = recorded.value;
        let sample = &mut self.files.sample;
        if unchanged {
            let text = "The answer changes nothing.";
            return Ok(Err(sample.drop_answer(Verdict::Unchanged, None, text)));
        }
        if let Some(error) = syntax {
            let text = format!("The answer does not parse: {error}.");
            return Ok(Err(sample.drop_answer(Verdict::NotParsed, Some(error), &text)));
        }
        sample.files = Some(files.clone());
        sample.verdict = Verdict::Unverified;
        Ok(Ok(files))
    }

    /// Runs the verification on the files of a candidate, in a copy of the workspace.
    pub(crate) async fn run_on_candidate(
        &mut self,
        id: &str,
        command: &str,
        files: CandidateTexts,
    ) -> Result<ToolOutput, RunAborted> {
        let run = &mut *self.run;
        let mut arguments = json!({ "command": command });
        if let Some(limit) = run.task.rules.verify_time_s {
            arguments["timeout"] = json!(limit);
        }
        let call = ToolCall { id: id.to_owned(), name: "shell".to_owned(), arguments: arguments.to_string() };
        let fixed = run.task.rules.protected.as_ref().map(|tests| tests.contents()).unwrap_or_default();
        let candidate = fusee_tools::CandidateFiles { files: files.into_iter().collect(), fixed };
        let tool = candidate_shell(run.session().commands.clone(), candidate);
        emit_call(run, &call);
        let calls = self.flow.facts.calls_run();
        let history = CallHistory { calls, explanation: self.conversation.explanation() };
        let arguments = match call_gate::admit(run, history, &call, &*tool, arguments).await? {
            Admission::Run { arguments, .. } => arguments,
            Admission::Refused(refusal) => {
                emit_result(run, &call, &refusal, 0);
                return Ok(refusal.output);
            }
        };
        self.perform(&call, &tool, arguments, FileEffects::Ignored).await
    }

    /// Writes the files of the winner to the workspace. Returns what went wrong.
    pub(crate) async fn write_candidate(
        &mut self,
        files: &CandidateTexts,
    ) -> Result<Vec<String>, RunAborted> {
        let mut problems = Vec::new();
        for (path, content) in files {
            self.files.answer_edits += 1;
            let id = format!("answer-{}", self.files.answer_edits);
            let arguments = json!({ "path": path, "content": content });
            let output = self.make(&id, "write_file", arguments, FileEffects::Recorded).await?;
            problems.extend((!output.ok).then_some(output.content));
        }
        Ok(problems)
    }
}

/// The files that an answer means. Small models make up names (`solution.py`): a lone file whose name is not in the
/// prompt is the only file that the task is about, if it is of the same kind.
fn intended(mut written: CandidateTexts, targets: &[String], prompt: &str) -> CandidateTexts {
    let split = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.rsplit_once('.').map(|(stem, end)| (stem.to_owned(), end.to_owned()))
    };
    let sources: Vec<&String> = written.keys().filter(|path| !is_test(path)).collect();
    if let ([target], [lone]) = (targets, sources.as_slice())
        && let (Some((_, wanted)), Some((stem, end))) = (split(target), split(lone))
        && *lone != target
        && end == wanted
        && !prompt.contains(&stem)
    {
        let lone = (*lone).clone();
        if let Some(content) = written.remove(&lone) {
            written.insert(target.clone(), content);
        }
    }
    written
}

/// Looks at the files of a candidate.
fn check(workspace: &Workspace, files: &CandidateTexts) -> CandidateCheck {
    let now: BTreeMap<&String, Option<String>> =
        files.keys().map(|path| (path, read_text(workspace, path))).collect();
    let is_same = |(path, content): (&String, &String)| now[path].as_ref() == Some(content);
    let syntax = files.iter().find_map(|(path, content)| {
        let error = memory::syntax_error(path, content)?;
        // A grammar that does not know the original either cannot tell.
        let knows = now[path].as_ref().is_none_or(|original| memory::syntax_error(path, original).is_none());
        knows.then(|| format!("{path}: {error}"))
    });
    CandidateCheck { unchanged: files.iter().all(is_same), syntax }
}
