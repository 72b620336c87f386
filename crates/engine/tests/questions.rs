//! Questions from a workflow to the user are asked once, even if the process is interrupted.
#![expect(clippy::expect_used, reason = "a test stops where it fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use fusee_engine::approval::{ApprovalAnswer, ApprovalQuestion, Approver, signal_name};
use fusee_engine::run::{RunBuilder, RunKind, RunOutcome, RunSpec, SandboxMode, WorkflowRun};
use fusee_journal::{Branch, Clock, Event, Journal, JournalOptions, RunId};
use fusee_model::{BoxFuture, Models};
use parking_lot::Mutex;

struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now_ms(&self) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// A user who answers the first `answers` questions and never the next.
#[derive(Default)]
struct Person {
    asked: Mutex<Vec<String>>,
    answers: usize,
}

impl Approver for Person {
    fn ask<'a>(&'a self, _question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async { ApprovalAnswer::yes() })
    }

    fn ask_user<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        let count = {
            let mut asked = self.asked.lock();
            asked.push(question.to_owned());
            asked.len()
        };
        let away = count > self.answers;
        Box::pin(async move {
            if away {
                std::future::pending::<()>().await;
            }
            Some(format!("answer {count}"))
        })
    }
}

const TEXT: &str = "(define first (ask-user \"which colour?\"))
(define second (ask-user \"and which shape?\"))
(list first second)";

struct World {
    directory: tempfile::TempDir,
    journal: Journal,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let clock = Arc::new(Ticking(AtomicI64::new(1_700_000_000_000)));
        let path = directory.path().join(".fusee/journal.db");
        let journal = Journal::open(&path, JournalOptions::default(), clock).expect("a journal");
        std::fs::write(directory.path().join("script.jsonl"), "").expect("a script");
        Self { directory, journal }
    }

    fn model_name(&self) -> String {
        format!("script:{}", self.directory.path().join("script.jsonl").display())
    }

    fn settings(&self) -> RunSpec {
        let work =
            WorkflowRun { name: "workflow".to_owned(), text: TEXT.to_owned(), ..WorkflowRun::default() };
        RunSpec {
            work: RunKind::Workflow(Box::new(work)),
            sandbox: SandboxMode::Off,
            commands_preapproved: true,
            ..RunSpec::new("ask", self.model_name(), self.directory.path())
        }
    }

    fn builder(&self, person: &Arc<Person>) -> RunBuilder {
        let models = Models::new(|| std::time::UNIX_EPOCH);
        let model = models.open(&self.model_name(), &fusee_model::Connection::default()).expect("a script");
        let mut builder = RunBuilder::new(self.settings(), self.journal.clone(), model);
        builder.deps.approver = Arc::clone(person) as Arc<dyn Approver>;
        builder
    }
}

/// Waits until a run has asked a question, and returns its task and call id.
async fn question(world: &World, run: &RunId) -> (Branch, String) {
    loop {
        let events = world.journal.events(run, 0, u64::MAX, 1000).expect("its events");
        let asked = events.into_iter().find_map(|record| match record.event {
            Event::ApprovalRequested { call_id, .. } => Some((Branch::from(record.task.as_str()), call_id)),
            _ => None,
        });
        match asked {
            Some(asked) => return asked,
            None => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
        }
    }
}

#[tokio::test]
async fn a_question_can_be_answered_from_another_process() {
    let world = World::new();
    let run = "remote".parse::<RunId>().expect("an id");
    let away = Arc::new(Person::default());
    let running = world.builder(&away).start(&run).await.expect("it starts");
    let (task, call_id) = question(&world, &run).await;
    assert_eq!((task.as_str(), &*call_id), ("main", "main:0"));
    let path = world.directory.path().join(".fusee/journal.db");
    let clock = Arc::new(Ticking(AtomicI64::new(1_700_000_000_000)));
    let other = Journal::open(&path, JournalOptions::default(), clock).expect("a second handle");
    for (call, answer) in [("main:0", "red"), ("main:1", "round")] {
        other.signal(&run, &signal_name(&task, call), &answer.into()).await.expect("left");
    }
    let RunOutcome::Ended(ended) = running.outcome().await else { unreachable!("it ends") };
    assert_eq!(ended.answer, "(\"red\" \"round\")");
}

#[tokio::test]
async fn a_question_that_was_answered_is_not_asked_again() {
    let world = World::new();
    let run = "asks".parse::<RunId>().expect("an id");
    let person = Arc::new(Person { answers: 1, ..Person::default() });
    let running = world.builder(&person).start(&run).await.expect("it starts");
    while person.asked.lock().len() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    running.cancel();
    running.outcome().await;

    let later = Arc::new(Person { answers: 1, ..Person::default() });
    let running = world.builder(&later).resume(&run).expect("it goes on");
    let RunOutcome::Ended(ended) = running.outcome().await else { unreachable!("it ends") };
    assert_eq!(ended.answer, "(\"answer 1\" \"answer 1\")");
    assert_eq!(*later.asked.lock(), ["and which shape?"]);

    let replayed = world.builder(&later).replay(&run).await.expect("it replays");
    let RunOutcome::Ended(again) = replayed else { unreachable!("it ends") };
    assert_eq!(again.answer, ended.answer);
    let events = world.journal.events(&run, 0, u64::MAX, 1000).expect("its events");
    let answers: Vec<Option<String>> = events
        .into_iter()
        .filter_map(|event| match event.event {
            Event::ApprovalResolved { reason, .. } => Some(reason),
            _ => None,
        })
        .collect();
    assert_eq!(answers, [Some("answer 1".to_owned()), Some("answer 1".to_owned())]);
}
