//! The contract of the agent specification: a task of a session, its status and listeners, and the types around it.
#![expect(clippy::unwrap_used, reason = "a test panics when it fails")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fusee::approval::{ApprovalAnswer, ApprovalQuestion, Approver};
use fusee::model::BoxFuture;
use fusee::task_event::{Compaction, Error as TaskFailed, TaskComplete, TurnComplete, TurnStart};
use fusee::{
    Agent, AgentBuilder, AgentTask, ApprovalMode, Error, ErrorCode, Event, EventEmitter, Limits,
    ResponseItem, ReviewPolicy, RunId, Session, Submission, Task, TaskEvent, TaskRunner, TaskState,
    TaskStatus,
};
use fusee_testkit::script::Line;
use parking_lot::Mutex;
use serde_json::json;

fn scripted(directory: &Path, lines: &[Line]) -> AgentBuilder {
    let text: String = lines.iter().map(|line| format!("{}\n", line.to_json())).collect();
    let script = directory.join("script.jsonl");
    std::fs::write(&script, text).unwrap();
    Agent::builder(format!("script:{}", script.display())).workspace(directory)
}

fn session(directory: &Path, lines: &[Line]) -> Session {
    Session::new(scripted(directory, lines).build().unwrap())
}

fn id(name: &str) -> RunId {
    name.parse().unwrap()
}

fn user(text: &str) -> ResponseItem {
    ResponseItem::user(text)
}

fn task(session: &Session, name: &str, request: &str) -> AgentTask {
    AgentTask::new(session.clone(), id(name), vec![user(request)], EventEmitter::new(), false)
}

/// Collects what a listener is given.
fn heard<E: TaskEvent<Payload: Clone + Send>>(task: &AgentTask, event: E) -> Arc<Mutex<Vec<E::Payload>>> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&heard);
    task.on(event, move |payload| kept.lock().push(payload.clone()));
    heard
}

#[tokio::test]
async fn should_coordinate_multiple_turns() {
    let directory = tempfile::tempdir().unwrap();
    let lines = [
        Line::call("list_dir", json!({})).and_call("list_dir", json!({"path": "."})).usage(10, 5),
        Line::text("Done.").usage(20, 1),
    ];
    let task = task(&session(directory.path(), &lines), "turns", "look");
    let (started, completed) = (heard(&task, TurnStart), heard(&task, TurnComplete));
    let (ended, failed) = (heard(&task, TaskComplete), heard(&task, TaskFailed));
    assert_eq!((task.status(), task.current_turn_index()), (TaskState::Pending, 0));

    assert_eq!(task.run().await.unwrap().answer, "Done.");

    assert_eq!((task.status(), task.current_turn_index()), (TaskState::Completed, 2));
    assert_eq!((task.token_usage().input_tokens, task.token_usage().output_tokens), (30, 6));
    let (started, completed) = (started.lock().clone(), completed.lock().clone());
    let turns = |turns: &[fusee::Turn]| {
        turns.iter().map(|turn| (turn.turn_index, turn.turn_id.clone())).collect::<Vec<_>>()
    };
    assert_eq!(turns(&started), [(0, "main:0".to_owned()), (1, "main:1".to_owned())]);
    assert_eq!(turns(&completed), turns(&started));
    let figures: Vec<_> = completed.iter().map(|turn| (turn.output_tokens, turn.tool_calls)).collect();
    assert_eq!(figures, [(5, 2), (1, 0)]);
    for (start, end) in started.iter().zip(&completed) {
        assert!(start.input_tokens > 0);
        assert_eq!(start.input_tokens, end.input_tokens);
    }
    let ended = ended.lock().clone();
    let figures: Vec<_> = ended
        .iter()
        .map(|end| (end.submission_id.as_str(), end.total_turns, end.total_tokens, end.status))
        .collect();
    assert_eq!(figures, [("turns", 2, 36, TaskStatus::Completed)]);
    assert!(failed.lock().is_empty());
    assert!(matches!(task.run().await, Err(Error::AlreadyRun(_))));
    assert_eq!(task.status(), TaskState::Completed);
}

#[tokio::test]
async fn should_auto_compact_when_threshold_reached() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("long.txt"), "a line of text that is read\n".repeat(400)).unwrap();
    let read = |n: u32| Line::call("read_file", json!({"path": "long.txt", "offset": n}));
    let lines = [read(1), read(2), read(3), read(4), Line::text("Done.")];
    let agent = scripted(directory.path(), &lines);
    let limits = Limits { max_tokens: 12_000, compaction_threshold: 0.75, ..Limits::default() };
    let task = task(&Session::new(agent.limits(limits).build().unwrap()), "compact", "read");
    let compactions = heard(&task, Compaction);

    task.run().await.unwrap();

    assert_eq!(task.status(), TaskState::Completed);
    let compactions = compactions.lock().clone();
    assert!(!compactions.is_empty());
    for event in compactions {
        assert!(event.tokens_before > 9_000, "{event:?}");
        assert!(event.tokens_after < event.tokens_before && event.items_removed > 0, "{event:?}");
    }
}

#[tokio::test]
async fn a_task_is_running_until_it_is_cancelled() {
    let directory = tempfile::tempdir().unwrap();
    let lines = [Line::call("list_dir", json!({})), Line::text("late").delay_ms(60_000)];
    let session = session(directory.path(), &lines);
    let slow = Arc::new(task(&session, "slow", "x"));
    let ended = heard(&slow, TaskComplete);
    let (second_turn, reached) = tokio::sync::mpsc::unbounded_channel();
    slow.on(TurnStart, move |turn| {
        if turn.turn_index == 1 {
            second_turn.send(()).unwrap();
        }
    });
    let running = tokio::spawn({
        let slow = Arc::clone(&slow);
        async move { slow.run().await }
    });
    let mut reached = reached;
    reached.recv().await.unwrap();
    assert_eq!((slow.status(), slow.current_turn_index()), (TaskState::Running, 1));
    slow.cancel().await;
    assert_eq!(slow.status(), TaskState::Cancelled);
    assert_eq!(running.await.unwrap().unwrap().status, TaskStatus::Cancelled);
    let ended: Vec<_> = ended.lock().iter().map(|end| (end.status, end.total_turns)).collect();
    assert_eq!(ended, [(TaskStatus::Cancelled, 1)]);
}

#[tokio::test]
async fn a_task_cancelled_before_it_runs_sends_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let session = session(directory.path(), &[Line::text("late").delay_ms(60_000)]);
    let never = task(&session, "never", "x");
    let ended = heard(&never, TaskComplete);
    never.cancel().await;
    assert_eq!(never.status(), TaskState::Cancelled);
    assert_eq!(never.run().await.unwrap().status, TaskStatus::Cancelled);
    assert_eq!(never.status(), TaskState::Cancelled);
    assert_eq!(ended.lock().len(), 1);
}

#[tokio::test]
async fn a_task_whose_future_is_dropped_is_cancelled() {
    let directory = tempfile::tempdir().unwrap();
    let session = session(directory.path(), &[Line::text("late").delay_ms(60_000)]);
    let dropped = task(&session, "dropped", "x");
    let cut = tokio::time::timeout(Duration::from_millis(300), dropped.run()).await;
    assert!(cut.is_err());
    assert_eq!(dropped.status(), TaskState::Cancelled);
    dropped.cancel().await;
    let journal = session.agent().journal();
    // The run ends on its own, and its journal says how.
    for _ in 0..500 {
        if journal.run("dropped").unwrap().status == fusee::journal::RunStatus::Cancelled {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the run of a dropped task goes on");
}

#[tokio::test]
async fn a_failed_task_tells_its_error_before_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits { max_turns: 1, ..Limits::default() };
    let agent = scripted(directory.path(), &[Line::call("list_dir", json!({}))]).limits(limits);
    let short = task(&Session::new(agent.build().unwrap()), "short", "x");
    let order = Arc::new(Mutex::new(Vec::new()));
    let (errors, ends) = (Arc::clone(&order), Arc::clone(&order));
    short.on(TaskFailed, move |error| errors.lock().push(format!("{:?}", error.code)));
    short.on(TaskComplete, move |end| ends.lock().push(format!("{:?}", end.status)));
    assert_eq!(short.run().await.unwrap().status, TaskStatus::Failed);
    assert_eq!(short.status(), TaskState::Failed);
    assert_eq!(*order.lock(), ["MaxTurns", "Failed"]);
}

#[tokio::test]
async fn a_task_that_cannot_start_fails_with_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    let session = session(directory.path(), &[Line::text("Done.")]);
    let reply = ResponseItem::Assistant { text: "Hm.".to_owned(), reasoning: None, tool_calls: Vec::new() };
    let result = ResponseItem::Tool {
        call_id: "7".to_owned(),
        name: "list_dir".to_owned(),
        content: String::new(),
        ok: true,
        images: Vec::new(),
    };
    for (name, input, problem) in [
        ("empty", vec![], "no request"),
        ("last", vec![user("a"), reply.clone()], "last input item must be a user message"),
        ("first", vec![reply, user("a")], "the first message is not the user's"),
        ("result", vec![user("a"), result, user("b")], "message 1 is a result of `7`"),
    ] {
        let task = AgentTask::new(session.clone(), id(name), input, EventEmitter::new(), false);
        let (errors, ends) = (heard(&task, TaskFailed), heard(&task, TaskComplete));
        let error = task.run().await.unwrap_err();
        assert!(error.to_string().contains(problem), "{name}: {error}");
        assert_eq!(task.status(), TaskState::Failed);
        let errors: Vec<_> = errors.lock().iter().map(|error| error.code).collect();
        let ends: Vec<_> = ends.lock().iter().map(|end| (end.submission_id.clone(), end.status)).collect();
        assert_eq!(
            (errors, ends),
            (vec![ErrorCode::InitFailed], vec![(name.to_owned(), TaskStatus::Failed)])
        );
    }
}

#[tokio::test]
async fn a_task_begins_with_the_conversation_it_is_given() {
    let directory = tempfile::tempdir().unwrap();
    let lines = [Line::text("Ann."), Line::text("Ann, still.")];
    let session = session(directory.path(), &lines);
    let reply =
        ResponseItem::Assistant { text: "Hello!".to_owned(), reasoning: None, tool_calls: Vec::new() };
    let input = vec![user("My name is Ann."), reply, user("What is my name?")];
    let first = AgentTask::new(session.clone(), id("first"), input, EventEmitter::new(), false);
    let outcome = first.run().await.unwrap();
    assert_eq!(outcome.answer, "Ann.");
    assert_eq!(session.agent().replay(&id("first")).await.unwrap(), outcome);

    // The next task of the session continues the conversation.
    let second = task(&session, "second", "And now?");
    assert_eq!(second.run().await.unwrap().answer, "Ann, still.");
    let said = |run: &str| {
        let steps = session.agent().journal().steps(&id(run)).unwrap();
        let sent = steps.iter().find(|step| step.kind == fusee::journal::StepKind::Model).unwrap();
        let messages = sent.args["messages"].as_array().unwrap();
        messages.iter().map(|message| message["text"].clone()).collect::<serde_json::Value>()
    };
    assert_eq!(said("first"), json!(["My name is Ann.", "Hello!", "What is my name?"]));
    assert_eq!(said("second"), json!(["My name is Ann.", "Hello!", "What is my name?", "Ann.", "And now?"]));
}

/// Approves the calls of one tool.
struct Only(&'static str);

impl Approver for Only {
    fn ask<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        let approved = question.name == self.0;
        Box::pin(async move { if approved { ApprovalAnswer::yes() } else { ApprovalAnswer::no("not that") } })
    }

    fn ask_user<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async { None })
    }
}

#[tokio::test]
async fn a_runner_runs_submissions_and_its_emitter_hears_all() {
    let directory = tempfile::tempdir().unwrap();
    let write = |path: &str| Line::call("write_file", json!({"path": path, "content": "x"}));
    let remove = Line::call("edit_file", json!({"path": "a.txt", "old": "x", "new": "y"}));
    let lines = [write("a.txt"), Line::text("One."), write("b.txt"), remove, Line::text("Two.")];
    let agent = scripted(directory.path(), &lines)
        .approval(ApprovalMode::Auto)
        .approver(Arc::new(Only("write_file")))
        .review(ReviewPolicy { max_tool_calls: 5, ..ReviewPolicy::default() });
    let (events, ended) = (EventEmitter::new(), Arc::new(Mutex::new(Vec::new())));
    let kept = Arc::clone(&ended);
    events.on(TaskComplete, move |end| kept.lock().push(end.submission_id.clone()));
    let session = Session::new(agent.build().unwrap());
    let runner = TaskRunner::new(session.clone(), events);

    let plain = Submission::new("write").unwrap().with_id(id("plain"));
    assert_eq!(runner.run_task(plain).await.unwrap().answer, "One.");
    let review = Submission::new("review").unwrap().with_id(id("review")).review();
    assert_eq!(runner.run_task(review).await.unwrap().answer, "Two.");
    assert_eq!(*ended.lock(), ["plain", "review"]);

    let events = session.agent().journal().events(&id("review"), 0, u64::MAX, 1000).unwrap();
    let asked: Vec<_> = events
        .iter()
        .filter_map(|record| match &record.event {
            Event::ApprovalRequested { name, .. } => Some(name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(asked, ["write_file", "edit_file"]);
    assert!(directory.path().join("b.txt").exists());
    assert_eq!(std::fs::read_to_string(directory.path().join("a.txt")).unwrap(), "x");
    let first = events.iter().find_map(|record| match &record.event {
        Event::TaskStarted(started) => Some(started.turn_type),
        _ => None,
    });
    assert_eq!(first, Some(fusee::journal::event::TurnType::Review));
}

#[tokio::test]
async fn a_session_has_a_turn_context_and_an_environment() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("AGENTS.md"), "Be kind.").unwrap();
    let lines = [Line::call("list_dir", json!({})), Line::text("Done.")];
    let session = session(directory.path(), &lines);
    let environment = session.environment();
    assert_eq!(environment.directory, directory.path().canonicalize().unwrap().display().to_string());
    assert!(environment.instructions.unwrap().contains("Be kind."));
    let mut context = session.turn_context();
    assert_eq!((context.limits.max_turns, context.approval), (50, ApprovalMode::Never));
    context.limits.max_turns = 1;
    session.set_turn_context(context);
    let outcome = task(&session, "short", "x").run().await.unwrap();
    assert_eq!(outcome.error.unwrap().code, ErrorCode::MaxTurns);
    assert_eq!(session.last_task(), Some(id("short")));
}

#[tokio::test]
async fn a_listener_may_add_listeners_and_workflows_are_tasks_too() {
    let directory = tempfile::tempdir().unwrap();
    let agent = scripted(directory.path(), &[Line::text("Done.")]).build().unwrap();
    let task = Arc::new(agent.task(Task::workflow("(+ 1 2)")).unwrap());
    let again = Arc::downgrade(&task);
    task.on(TaskComplete, move |_| again.upgrade().unwrap().on(TaskComplete, |_| {}));
    assert_eq!(task.run().await.unwrap().answer, "3");
    assert_eq!(task.status(), TaskState::Completed);
}
