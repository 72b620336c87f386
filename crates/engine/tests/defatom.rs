//! Tasks that a workflow defines itself run like templates: formats, schema files, context.
#![expect(clippy::expect_used, reason = "a test stops where it fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use fusee_engine::run::{RunBuilder, RunKind, RunOutcome, RunSpec, SandboxMode, WorkflowRun};
use fusee_journal::{Clock, Journal, JournalOptions, RunId, StepKind};
use fusee_model::Models;
use serde_json::{Value, json};

struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now_ms(&self) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Result of a workflow, with the requests and tool names sent to the model.
struct Ran {
    result: Value,
    asked: Vec<String>,
    tools: Vec<Value>,
}

async fn ran(text: &str, answers: &[&str], files: &[(&str, &str)]) -> Ran {
    let directory = tempfile::tempdir().expect("a directory");
    for (path, content) in files {
        std::fs::write(directory.path().join(path), content).expect("a file");
    }
    let outside = tempfile::tempdir().expect("a directory");
    let lines: String = answers.iter().map(|answer| format!("{}\n", json!({ "text": answer }))).collect();
    let script = outside.path().join("script.jsonl");
    std::fs::write(&script, lines).expect("a script");
    let clock = Arc::new(Ticking(AtomicI64::new(1_700_000_000_000)));
    let journal = Journal::open(&outside.path().join("journal.db"), JournalOptions::default(), clock);
    let journal = journal.expect("a journal");
    let model = format!("script:{}", script.display());
    let work = WorkflowRun { name: "w".to_owned(), text: text.to_owned(), ..WorkflowRun::default() };
    let settings = RunSpec {
        work: RunKind::Workflow(Box::new(work)),
        sandbox: SandboxMode::Off,
        commands_preapproved: true,
        ..RunSpec::new("w", model.as_str(), directory.path())
    };
    let models = Models::new(|| std::time::UNIX_EPOCH);
    let model = models.open(&model, &fusee_model::Connection::default()).expect("a script");
    let builder = || RunBuilder::new(settings.clone(), journal.clone(), Arc::clone(&model));
    let id = "w".parse::<RunId>().expect("an id");
    let running = builder().start(&id).await.expect("it starts");
    let RunOutcome::Ended(ended) = running.outcome().await else { unreachable!("it ends") };
    let replayed = builder().replay(&id).await.expect("it replays");
    let RunOutcome::Ended(again) = replayed else { unreachable!("it ends") };
    assert_eq!(again.answer, ended.answer);
    let steps = journal.steps(&id).expect("its steps");
    let steps = || steps.iter().filter(|step| step.kind == StepKind::Model);
    let asked = steps().map(|step| step.args["messages"][0]["text"].as_str().unwrap_or_default().to_owned());
    let tools = steps().flat_map(|step| step.args["tools"].as_array().cloned().unwrap_or_default());
    let result = serde_json::to_value(ended.result.expect("a result")).expect("JSON");
    Ran { asked: asked.collect(), tools: tools.collect(), result }
}

const COUNTED: &str = "(defatom count (params (what string))
  (instructions \"Count {{what}}.\")
  (output_format ((type \"json\") (schema \"count.json\"))))\n";

const SCHEMA: &str = r#"{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}"#;

#[tokio::test]
async fn an_answer_must_fit_the_schema_file_that_its_task_names() {
    let text = format!("{COUNTED} (count (what \"files\"))");
    let files = [("count.json", SCHEMA)];
    let fits = ran(&text, &[r#"{"n": 3}"#], &files).await;
    assert_eq!(fits.result["status"], "COMPLETE");
    assert_eq!(fits.result["parsedContent"], json!({ "n": 3 }));

    let other = ran(&text, &[r#"{"n": "three"}"#, r#"{"n": "3"}"#], &files).await;
    assert_eq!(other.result["status"], "FAILED");
    let error = &other.result["notes"]["error"];
    assert_eq!(error["reason"], "output_format_failure", "{error:#}");
    assert!(error.to_string().contains("/n"), "{error:#}");

    let absent = ran(&text, &[r#"{"n": 3}"#], &[]).await;
    assert_eq!(absent.result["notes"]["error"]["reason"], "configuration_error");
    assert_eq!(absent.asked, [""; 0], "nothing is spent on a task that cannot end well");
}

#[tokio::test]
async fn the_request_is_the_filled_in_instructions_and_subtasks_are_not_offered() {
    let text = "(defatom judge (params (answers string) (hint any)) (system \"Be brief.\")
      (instructions \"Choose: {{answers}}{{hint}} {{{{x}}\") (output_format ((type \"json\") (schema \"number\"))))
      (judge (answers \"{{a}}\") (hint nil))";
    let done = ran(text, &["```json\n2\n```"], &[]).await;
    let output = "Answer with a JSON number and nothing else: no words around it, no code fence.";
    assert_eq!(done.asked, [format!("Choose: {{{{a}}}} {{{{x}}}}\n\n{output}")]);
    assert_eq!(done.result["parsedContent"], 2);
    assert_eq!(done.result["notes"]["template_used"], "judge");
    assert!(!done.tools.is_empty() && !done.tools.contains(&json!("spawn_subtask")), "{:?}", done.tools);
}

#[tokio::test]
async fn a_task_described_in_words_is_given_its_inputs() {
    let text = "(call-atomic-task \"tell a {{story}}\" (about \"a clock\") (length 3))";
    let done = ran(text, &["Once."], &[]).await;
    assert_eq!(done.asked, ["tell a {{story}}\n\nabout:\na clock\n\nlength:\n3"]);
    assert_eq!(done.result["content"], "Once.");
}

#[tokio::test]
async fn files_and_context_are_part_of_the_request() {
    let text = "(defatom look (params) (instructions \"Look.\"))
      (look (files (list \"a.txt\")) (context \"It is late.\"))";
    let done = ran(text, &["Seen."], &[("a.txt", "alpha\n")]).await;
    assert_eq!(done.result["notes"]["context_files_count"], 1);
    let asked = done.asked.concat();
    assert!(
        asked.starts_with("Look.") && asked.contains("alpha") && asked.contains("It is late."),
        "{asked}"
    );
}

#[tokio::test]
async fn a_placeholder_in_computed_instructions_is_checked_before_anything_is_spent() {
    let text = "(atomic-task (instructions (string-append \"Say {{ f(x) }} \" \"{{y}}\")) (x \"1\"))";
    let done = ran(text, &["Said."], &[]).await;
    let error = &done.result["notes"]["error"];
    assert_eq!(error["reason"], "input_validation_failure", "{error:#}");
    assert!(error["message"].as_str().is_some_and(|said| said.contains("{{ f(x) }}")), "{error:#}");
    assert_eq!(done.asked, [""; 0]);
}
