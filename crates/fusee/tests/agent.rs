//! Agents and runs as a program sees them: ids, wire formats and keys, deltas, approvals, cancelling, resuming,
//! replaying, and mistakes.
#![expect(clippy::unwrap_used, reason = "a test panics when it fails")]

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fusee::model::ResolveError;
use fusee::prompt::{Prompt, PromptSection, TaskSection};
use fusee::template::{InputType, Template, TemplateInput};
use fusee::{
    Agent, AgentBuilder, ApprovalMode, Effects, Error, Event, Task, TaskState, TaskStatus, Wire, tool,
};
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Server};
use serde_json::json;

const KEY: &str = "sk-secret-0123456789abcdef";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

fn scripted(directory: &Path, lines: &[Line]) -> AgentBuilder {
    let text: String = lines.iter().map(|line| format!("{}\n", line.to_json())).collect();
    let script = directory.join("script.jsonl");
    std::fs::write(&script, text).unwrap();
    Agent::builder(format!("script:{}", script.display())).workspace(directory)
}

fn write_call() -> Line {
    Line::call("write_file", json!({"path": "a.txt", "content": "x"}))
}

#[tokio::test]
async fn tasks_started_in_the_same_millisecond_have_ids_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let lines: Vec<Line> = (0..40).map(|_| Line::text("Done.")).collect();
    let agent = scripted(directory.path(), &lines).build().unwrap();
    let started = (0..40).map(|n| agent.start(format!("task {n}")));
    let runs = futures_util::future::try_join_all(started).await.unwrap();
    let ids: HashSet<String> = runs.iter().map(|run| run.id().to_string()).collect();
    assert_eq!(ids.len(), 40);
    for run in runs {
        assert_eq!(run.outcome().await.unwrap().status, TaskStatus::Completed);
    }
}

#[tokio::test]
async fn hosted_models_get_their_wire_format_and_key() {
    for (model, wire, path, header) in [
        ("openai:m", None, "/v1/responses", "authorization"),
        ("openai:m", Some(Wire::Chat), "/v1/chat/completions", "authorization"),
        ("anthropic:m", None, "/v1/messages", "x-api-key"),
    ] {
        let message = Message::text("A first, a second and a third word.").usage(10, 5);
        let reply = match path {
            "/v1/responses" => message.responses(),
            "/v1/messages" => message.anthropic(),
            _ => message.stream(),
        };
        let server = Server::start([reply].into_iter().collect::<fusee_testkit::server::Script>());
        let directory = tempfile::tempdir().unwrap();
        let mut agent =
            Agent::builder(model).workspace(directory.path()).base_url(server.base_url()).api_key(KEY);
        if let Some(wire) = wire {
            agent = agent.wire(wire);
        }
        let mut run = agent.build().unwrap().start("Say something.").await.unwrap();
        let mut deltas = String::new();
        while let Some(event) = run.next().await {
            if let Event::MessageDelta { text } = event {
                deltas.push_str(&text);
            }
        }
        let outcome = run.outcome().await.unwrap();
        assert_eq!(outcome.answer, "A first, a second and a third word.", "{path}");
        assert_eq!(deltas, outcome.answer, "{path}");
        let requests = server.requests();
        assert_eq!(requests[0].arrived.path, path);
        let sent = requests[0].arrived.header(header).unwrap_or_default();
        assert!(sent.ends_with(KEY), "{path}: {header}: {sent}");
    }
}

#[tokio::test]
async fn a_call_waits_for_approval_and_is_told_the_answer() {
    for approved in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let agent = scripted(directory.path(), &[write_call(), Line::text("Done.")]);
        let agent = agent.approval(ApprovalMode::Ask).build().unwrap();
        let mut run = agent.start("write").await.unwrap();
        let mut result = None;
        while let Some(event) = run.next().await {
            match event {
                Event::ApprovalRequested { call_id, .. } if approved => run.approve(&call_id),
                Event::ApprovalRequested { call_id, .. } => run.deny(&call_id, "not today"),
                Event::ToolResult(called) => result = Some(called),
                _ => {}
            }
        }
        let result = result.unwrap();
        assert_eq!((result.ok, directory.path().join("a.txt").exists()), (approved, approved));
        assert_eq!(result.content.contains("not today"), !approved, "{}", result.content);
    }
}

#[tokio::test]
async fn a_question_of_the_model_is_answered() {
    let directory = tempfile::tempdir().unwrap();
    let question = Line::call("ask_user", json!({"question": "Which colour?"}));
    let agent = scripted(directory.path(), &[question, Line::text("Done.").matching("green")]);
    let agent = agent.approval(ApprovalMode::Ask).build().unwrap();
    let mut run = agent.start("paint it").await.unwrap();
    while let Some(event) = run.next().await {
        if let Event::ApprovalRequested { name, .. } = event {
            assert_eq!(name, "ask_user");
            run.answer("green");
        }
    }
    assert_eq!(run.outcome().await.unwrap().answer, "Done.");
}

#[tokio::test]
async fn a_run_is_cancelled_and_reports_its_progress() {
    let directory = tempfile::tempdir().unwrap();
    let lines = [Line::call("list_dir", json!({})).usage(10, 5), Line::text("late").delay_ms(60_000)];
    let agent = scripted(directory.path(), &lines).build().unwrap();
    let mut run = agent.start("x").await.unwrap();
    assert_eq!(run.status(), TaskState::Running);
    while let Some(event) = run.next().await {
        if matches!(event, Event::TurnStart { turn_index: 1, .. }) {
            assert_eq!((run.current_turn_index(), run.token_usage().output_tokens), (1, 5));
            run.cancel();
        }
    }
    assert_eq!(run.status(), TaskState::Cancelled);
    assert_eq!(run.outcome().await.unwrap().status, TaskStatus::Cancelled);
}

#[tokio::test]
async fn a_finished_run_replays_and_continues() {
    let directory = tempfile::tempdir().unwrap();
    let lines = [write_call(), Line::text("It is written."), Line::text("Because.")];
    let agent = scripted(directory.path(), &lines).build().unwrap();
    let run = agent.start(Task::request("write").run_id("first".parse().unwrap())).await.unwrap();
    let id = run.id().clone();
    let outcome = run.outcome().await.unwrap();
    std::fs::remove_file(directory.path().join("a.txt")).unwrap();
    assert_eq!(agent.replay(&id).await.unwrap(), outcome);
    assert!(!directory.path().join("a.txt").exists(), "a replay has no effect");
    let again = agent.resume(&id).await.unwrap().outcome().await.unwrap();
    assert_eq!(again.answer, "It is written.");
    let next = agent.start(Task::request("Why?").continues(&id)).await.unwrap();
    assert_eq!(next.outcome().await.unwrap().answer, "Because.");
}

/// Starts a run whose tool never returns, drops the process around it, and resumes it. Returns how often the tool
/// was called, and what the model was told.
fn interrupted(effects: Effects) -> (usize, String) {
    let directory = tempfile::tempdir().unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let agent = || {
        let lines = [Line::call("add", json!({"a": 1, "b": 2})), Line::text("Done.")];
        let calls = Arc::clone(&calls);
        let add = tool("add", "Adds two numbers.", move |Add { a, b }| {
            let first = calls.fetch_add(1, Ordering::Relaxed) == 0;
            async move {
                if first {
                    std::future::pending::<()>().await;
                }
                Ok(a + b)
            }
        });
        scripted(directory.path(), &lines).tool(add.effects(effects)).build().unwrap()
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let id = runtime.block_on(async {
        let run = agent().start("add").await.unwrap();
        while calls.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        run.id().clone()
    });
    runtime.shutdown_timeout(Duration::from_secs(10));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let output = runtime.block_on(async {
        let mut run = agent().resume(&id).await.unwrap();
        let mut output = String::new();
        while let Some(event) = run.next().await {
            if let Event::ToolResult(result) = event {
                output = result.content;
            }
        }
        assert_eq!(run.outcome().await.unwrap().answer, "Done.");
        output
    });
    (calls.load(Ordering::Relaxed), output)
}

#[test]
fn after_a_crash_a_tool_is_called_again_only_if_that_is_safe() {
    for effects in [Effects::ReadOnly, Effects::Idempotent] {
        assert_eq!(interrupted(effects), (2, "3".to_owned()), "{effects:?}");
    }
    let (calls, output) = interrupted(Effects::Once);
    assert_eq!(calls, 1);
    assert!(output.contains("unknown"), "{output}");
}

/// A customer inquiry.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Inquiry {
    request: String,
    articles: Vec<String>,
}

#[tokio::test]
async fn a_task_of_ones_own_type_fills_its_prompt() {
    let prompt = Prompt::builder()
        .section(PromptSection::text("guidance", "Guidance", "Customers bought ${articles}."))
        .section(TaskSection::default())
        .build()
        .unwrap();
    let inquiry = Inquiry { request: "Can I give it back?".to_owned(), articles: vec!["a lamp".to_owned()] };
    let directory = tempfile::tempdir().unwrap();
    let agent = scripted(directory.path(), &[Line::text("Yes.").matching("Can I give it back")]);
    let task = Task::prompted(&prompt, &inquiry).unwrap();
    let run = agent.build().unwrap().start(task).await.unwrap();
    assert_eq!(run.outcome().await.unwrap().answer, "Yes.");
}

#[tokio::test]
async fn mistakes_are_errors_of_their_own_kind() {
    let directory = tempfile::tempdir().unwrap();
    let here = || scripted(directory.path(), &[Line::text("Hm."), Line::text("Hm.")]);
    assert!(matches!(
        Agent::builder("openai:gpt-5").build(),
        Err(Error::Model(ResolveError::MissingKey { .. }))
    ));
    assert!(matches!(Agent::builder("gpt-5").build(), Err(Error::Model(ResolveError::NoServer { .. }))));
    let nowhere = here().workspace(directory.path().join("missing")).build();
    assert!(matches!(nowhere, Err(Error::Start(_))));
    let number = tool("add", "Adds.", |n: i64| async move { Ok(n) });
    assert!(matches!(here().tool(number).build(), Err(Error::Tool { .. })));
    let taken = tool("read_file", "Reads.", |Add { a, .. }| async move { Ok(a) });
    assert!(matches!(here().tool(taken).build(), Err(Error::Tool { .. })));
    assert!(matches!(here().template("<task/>").build(), Err(Error::Template(_))));
    let agent = here().build().unwrap();
    let wrong = agent.start(Task::workflow("(no_such_tool)")).await.unwrap_err();
    assert!(matches!(&wrong, Error::Workflow(text) if text.contains("no_such_tool")), "{wrong}");
    let answer = agent.ask::<Vec<u8>>("Count.").await.unwrap_err();
    assert!(matches!(answer, Error::NoAnswer(_) | Error::WrongAnswer { .. }), "{answer}");
}

#[tokio::test]
async fn a_template_built_by_a_program_runs_by_itself_and_from_a_workflow() {
    let directory = tempfile::tempdir().unwrap();
    let template = Template {
        name: "greet".to_owned(),
        subtype: Some("greeting".to_owned()),
        description: "Greet a person".to_owned(),
        instructions: Some("Greet {{who}} & <all>.".to_owned()),
        inputs: vec![TemplateInput {
            name: "who".to_owned(),
            kind: InputType::String,
            default: None,
            description: None,
        }],
        ..Template::default()
    };
    let reply = || Line::text("Hello.").matching("^Greet Ann & <all>\\.$");
    let agent = scripted(directory.path(), &[reply(), reply()]).template(template.clone()).build().unwrap();
    let outcome = agent
        .start(Task::template(template.clone()).input("who", "Ann"))
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap();
    assert_eq!(outcome.answer, "Hello.");
    let outcome = agent
        .start(Task::workflow("(call-atomic-task \"atomic:greeting\" (who \"Ann\"))"))
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap();
    assert_eq!(outcome.answer, "Hello.");
    let wrong = Template { instructions: Some("Greet {{nobody}}.".to_owned()), ..template };
    let refused = scripted(directory.path(), &[]).template(wrong).build().err().unwrap();
    assert!(refused.to_string().contains("nobody"), "{refused}");
}
