//! Complete runs through the library: started, interrupted, resumed, replayed, many at once.
#![expect(clippy::expect_used, reason = "a test stops where it fails")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use fusee_engine::agent::ReviewPolicy;
use fusee_engine::prompt::{Prompt, PromptSection, TaskSection};
use fusee_engine::run::{self, ExitStatus, RunBuilder, RunOutcome, RunSpec, SandboxMode};
use fusee_journal::event::{CallFate, Event, TaskStatus};
use fusee_journal::{Clock, EventRecord, Journal, JournalOptions, RunId};
use fusee_model::{
    BoxFuture, CancellationToken, Conversation, Dialect, Model, ModelError, Models, Reply, ReplyDelta,
    RequestOptions,
};
use parking_lot::Mutex;

/// A clock that advances one millisecond per reading, so that runs are reproducible.
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now_ms(&self) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

struct World {
    directory: tempfile::TempDir,
    journal: Journal,
}

impl World {
    fn new(script: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("script.jsonl"), script).expect("the script");
        let clock = Arc::new(Ticking(AtomicI64::new(1_700_000_000_000)));
        let path = directory.path().join(".fusee/journal.db");
        let journal = Journal::open(&path, JournalOptions::default(), clock).expect("a journal");
        Self { directory, journal }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn model_name(&self) -> String {
        format!("script:{}", self.path().join("script.jsonl").display())
    }

    fn settings(&self, request: &str) -> RunSpec {
        RunSpec {
            sandbox: SandboxMode::Off,
            sandbox_state: "off".into(),
            commands_preapproved: true,
            ..RunSpec::new(request, self.model_name(), self.path())
        }
    }

    fn model(&self) -> Arc<dyn Model> {
        let models = Models::new(|| std::time::UNIX_EPOCH);
        models.open(&self.model_name(), &fusee_model::Connection::default()).expect("a script")
    }

    fn builder(&self, settings: RunSpec) -> RunBuilder {
        self.builder_with(settings, self.model())
    }

    fn builder_with(&self, settings: RunSpec, model: Arc<dyn Model>) -> RunBuilder {
        RunBuilder::new(RunSpec { commands_preapproved: true, ..settings }, self.journal.clone(), model)
    }

    async fn replay(&self, id: &str) -> RunOutcome {
        let run = run_id(id);
        let recorded = RunBuilder::recorded(&self.journal, &run).expect("settings");
        recorded.replay(&run).await.expect("it replays")
    }

    async fn run(&self, id: &str, settings: RunSpec) -> (RunOutcome, Vec<Arc<EventRecord>>) {
        let running = self.builder(settings).start(&run_id(id)).await.expect("it starts");
        let mut reader = running.events();
        let mut events = Vec::new();
        while let Some(event) = reader.next().await.expect("readable") {
            events.push(event);
        }
        (running.outcome().await, events)
    }
}

fn run_id(id: &str) -> RunId {
    id.parse().expect("a run id")
}

fn names(events: &[Arc<EventRecord>]) -> Vec<String> {
    events
        .iter()
        .map(|event| {
            serde_json::to_value(&event.event).expect("JSON")["type"].as_str().expect("a type").to_owned()
        })
        .filter(|name| !name.ends_with("_delta"))
        .collect()
}

const EDITING: &str = r#"{"text":"I will look.","tool_calls":[{"name":"write_file","arguments":{"path":"a.txt","content":"one\n"}}],"usage":{"input_tokens":900,"output_tokens":12}}
{"tool_calls":[{"name":"read_file","arguments":{"path":"a.txt"}},{"name":"edit_file","arguments":{"path":"a.txt","old":"one","new":"two"}}]}
{"text":"Done."}
"#;

#[tokio::test]
async fn a_task_runs_to_its_end_with_one_terminal_event() {
    let world = World::new(EDITING);
    let (outcome, events) = world.run("first", world.settings("change a")).await;
    assert_eq!(outcome.exit(), ExitStatus::Completed);
    assert_eq!(std::fs::read_to_string(world.path().join("a.txt")).expect("a"), "two\n");
    let expected = "task_started turn_start message tool_call file_changed tool_result turn_complete \
                    turn_start tool_call tool_result tool_call file_changed tool_result turn_complete \
                    turn_start message turn_complete task_report task_complete";
    assert_eq!(names(&events).join(" "), expected);
    let Event::TaskComplete(complete) = &events.last().expect("events").event else { panic!("terminal") };
    assert_eq!((complete.status, complete.answer.as_str()), (TaskStatus::Completed, "Done."));
    assert_eq!((complete.total_turns, complete.total_tokens), (3, 912));
}

#[tokio::test]
async fn a_finished_run_replays_without_model_and_workspace_and_resumes_to_the_same_result() {
    let world = World::new(EDITING);
    world.run("kept", world.settings("change a")).await;
    std::fs::remove_file(world.path().join("a.txt")).expect("gone");
    let settings = run::settings_of(&world.journal, &run_id("kept")).expect("settings");
    let replayed = world.replay("kept").await;
    match &replayed {
        RunOutcome::Ended(outcome) => assert_eq!(outcome.answer, "Done."),
        other => panic!("{other:?}"),
    }
    let again = world.builder(settings).resume(&run_id("kept")).expect("it resumes").outcome().await;
    assert_eq!(again.exit(), ExitStatus::Completed);
    assert!(!world.path().join("a.txt").exists(), "nothing ran again");
}

/// A customer inquiry.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Inquiry {
    request: String,
    background: Option<String>,
    articles: Vec<String>,
}

#[tokio::test]
async fn a_prompt_made_in_rust_drives_a_run_that_replays_without_it() {
    let world = World::new(
        r#"{"tool_calls":[{"name":"open_sections","arguments":{"section_keys":["terms"],"reason":"they decide it"}}]}
{"text":"Yes, for 5 dollars."}
"#,
    );
    let prompt: Prompt<Inquiry> = Prompt::builder()
        .section(PromptSection::text("guidance", "Guidance", "You answer those who bought ${articles}."))
        .section(PromptSection::literal("terms", "Terms", "It costs $5.").summarised("What holds."))
        .section(TaskSection::default())
        .build()
        .expect("a prompt");
    let task = Inquiry {
        request: "Can I give it back?".to_owned(),
        background: Some("Bought yesterday.".to_owned()),
        articles: vec!["a lamp".to_owned(), "a $bulb".to_owned()],
    };
    let settings = RunSpec::prompted(&prompt, &task, world.model_name(), world.path()).expect("bound");
    let (outcome, events) = world.run("typed", settings).await;
    assert_eq!(outcome.exit(), ExitStatus::Completed);
    assert_eq!(names(&events).iter().filter(|name| *name == "expansion").count(), 1);
    let steps = world.journal.steps(&run_id("typed")).expect("steps");
    let shown: Vec<&str> = steps.iter().filter_map(|step| step.args["system"].as_str()).collect();
    assert_eq!(
        shown[1],
        "## 1. Guidance\n\nYou answer those who bought a lamp, a $bulb.\n\n## 2. Terms\n\nIt costs $5.\n\n\
         ## 3. Task\n\n**Expansion Context:** Sections expanded: `terms`. Reason: they decide it. Continue with your \
         task using the newly visible content.\n\n---\n\nCan I give it back?\n\n- **articles:** a lamp, a $bulb\n\n\
         **Background:** Bought yesterday."
    );
    let again = world.replay("typed").await;
    assert_eq!(again.exit(), ExitStatus::Completed);
}

#[tokio::test]
async fn a_replay_of_other_settings_shows_where_they_part() {
    let world = World::new(EDITING);
    world.run("kept", world.settings("change a")).await;
    let mut recorded = RunBuilder::recorded(&world.journal, &run_id("kept")).expect("settings");
    recorded.spec.model = "another".into();
    let outcome = recorded.replay(&run_id("kept")).await.expect("it begins");
    let RunOutcome::Stopped(stop) = outcome else { panic!("{outcome:?}") };
    let text = stop.to_string();
    assert!(text.contains("event 0 of main") || text.contains("main step"), "{text}");
    assert!(text.contains("another"), "{text}");
}

#[tokio::test]
async fn limits_and_failures_have_their_exit_codes() {
    let endless = r#"{"tool_calls":[{"name":"list_dir","arguments":{}}]}"#.to_owned() + "\n";
    let world = World::new(&endless.repeat(3));
    let mut settings = world.settings("go on");
    settings.limits.max_turns = 2;
    assert_eq!(world.run("turns", settings).await.0.exit(), ExitStatus::Limit);

    let world = World::new(r#"{"error":{"status":401,"message":"no key"}}"#);
    assert_eq!(world.run("auth", world.settings("x")).await.0.exit(), ExitStatus::Failed);

    let mut down = String::new();
    for _ in 0..5 {
        down.push_str("{\"error\":{\"status\":503,\"message\":\"down\"}}\n");
    }
    let world = World::new(&down);
    let mut settings = world.settings("x");
    settings.limits.retry_policy.backoff_ms = 1;
    let (outcome, events) = world.run("down", settings).await;
    assert_eq!(outcome.exit(), ExitStatus::Unreachable);
    assert_eq!(names(&events).iter().filter(|name| *name == "retry").count(), 4);
}

#[tokio::test]
async fn a_blocked_task_fails_and_exits_with_one() {
    let script =
        r#"{"tool_calls":[{"name":"finish","arguments":{"status":"blocked","summary":"no access"}}]}"#;
    let world = World::new(script);
    let (outcome, _) = world.run("blocked", world.settings("x")).await;
    assert_eq!(outcome.exit(), ExitStatus::Failed);
    let RunOutcome::Ended(outcome) = outcome else { panic!("ended") };
    assert_eq!((outcome.status, outcome.answer.as_str()), (TaskStatus::Failed, "no access"));
    assert_eq!(outcome.error.unwrap().reason, "blocked");
}

#[tokio::test]
async fn every_call_is_answered_whatever_was_wrong_with_it() {
    let script = r#"{"tool_calls":[{"name":"raed_file","arguments":{}},{"name":"read_file","arguments":"{nonsense"},{"name":"read_file","arguments":{"path":"../../etc/passwd"}},{"name":"shell","arguments":{"command":"true"}}]}
{"text":"I give up."}"#;
    let world = World::new(script);
    let (outcome, events) = world.run("odd", world.settings("x")).await;
    assert_eq!(outcome.exit(), ExitStatus::Completed);
    let answers: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.event {
            Event::ToolResult(result) => Some((result.call_id.as_str(), result.ok)),
            _ => None,
        })
        .collect();
    assert_eq!(answers, [("call_1_0", false), ("call_1_1", false), ("call_1_2", false), ("call_1_3", false)]);
}

#[tokio::test]
async fn cancelling_ends_a_waiting_model_and_says_so() {
    let world = World::new(r#"{"delay_ms":60000,"text":"late"}"#);
    let running = world.builder(world.settings("x")).start(&run_id("slow")).await.expect("it starts");
    let mut reader = running.events();
    while let Some(event) = reader.next().await.expect("readable") {
        if matches!(event.event, Event::TurnStart { .. }) {
            running.cancel();
        }
    }
    assert_eq!(running.outcome().await.exit(), ExitStatus::Cancelled);
    let replayed = world.replay("slow").await;
    assert_eq!(replayed.exit(), ExitStatus::Cancelled);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_tasks_share_one_process_and_lose_nothing() {
    const TASKS: usize = 500;
    let mut script = String::new();
    for n in 0..TASKS {
        script.push_str(&format!(
            "{{\"match\":\"task {n}$\",\"tool_calls\":[{{\"name\":\"list_dir\",\"arguments\":{{}}}}]}}\n"
        ));
    }
    script.push_str(&"{\"text\":\"done\"}\n".repeat(TASKS));
    let world = Arc::new(World::new(&script));
    let model = world.model();
    let tasks: Vec<_> = (0..TASKS)
        .map(|n| {
            let (world, model) = (Arc::clone(&world), Arc::clone(&model));
            tokio::spawn(async move {
                let id = format!("run-{n}");
                let settings = world.settings(&format!("task {n}"));
                let running =
                    world.builder_with(settings, model).start(&run_id(&id)).await.expect("it starts");
                let mut reader = running.events();
                let mut seen = Vec::new();
                while let Some(event) = reader.next().await.expect("readable") {
                    seen.push(event);
                }
                (names(&seen), running.outcome().await.exit())
            })
        })
        .collect();
    let expected = "task_started turn_start tool_call tool_result turn_complete turn_start message turn_complete \
                    task_report task_complete";
    for task in tasks {
        let (names, exit) = task.await.expect("it ends");
        assert_eq!((names.join(" ").as_str(), exit), (expected, ExitStatus::Completed));
    }
    assert_eq!(world.journal.runs().expect("listed").len(), TASKS);
}

#[tokio::test]
async fn a_review_may_look_and_is_refused_what_it_may_not_do() {
    let script = r#"{"tool_calls":[{"name":"list_dir","arguments":{}},{"name":"write_file","arguments":{"path":"x","content":"y"}}]}
{"text":"Nothing to find."}"#;
    let world = World::new(script);
    let mut settings = world.settings("review it");
    settings.review = Some(ReviewPolicy::default());
    let (outcome, events) = world.run("review", settings).await;
    assert_eq!(outcome.exit(), ExitStatus::Completed);
    assert!(!world.path().join("x").exists());
    let refused: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.event {
            Event::ToolResult(result) => Some((result.ok, result.fate)),
            _ => None,
        })
        .collect();
    assert_eq!(refused, [(true, None), (false, Some(CallFate::Refused))]);
    assert!(names(&events).contains(&"approval_requested".to_owned()));
    assert_eq!(world.replay("review").await.exit(), ExitStatus::Completed);
}

/// Forwards requests and records their bytes.
struct Spy {
    model: Arc<dyn Model>,
    bodies: Mutex<Vec<Vec<u8>>>,
}

impl Model for Spy {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn dialect(&self) -> Dialect {
        self.model.dialect()
    }

    fn send<'a>(
        &'a self,
        conversation: &'a Conversation,
        options: &'a RequestOptions,
        sink: &'a mut (dyn FnMut(ReplyDelta<'_>) + Send),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        self.bodies.lock().push(conversation.body(options).to_vec());
        self.model.send(conversation, options, sink, cancel)
    }
}

#[tokio::test]
async fn each_request_begins_with_the_bytes_of_the_one_before() {
    let script = format!(
        "{}{}",
        EDITING.replace("{\"text\":\"Done.\"}\n", ""),
        "{\"error\":{\"status\":503,\"message\":\"once\"}}\n{\"text\":\"\"}\n{\"text\":\"Done.\"}\n"
    );
    let world = World::new(&script);
    let spy = Arc::new(Spy { model: world.model(), bodies: Mutex::default() });
    let mut settings = world.settings("change a");
    settings.limits.retry_policy.backoff_ms = 1;
    let model = Arc::clone(&spy) as Arc<dyn Model>;
    let running = world.builder_with(settings, model).start(&run_id("spied")).await.expect("it starts");
    assert_eq!(running.outcome().await.exit(), ExitStatus::Completed);
    let bodies = spy.bodies.lock();
    assert_eq!(bodies.len(), 5);
    for pair in bodies.windows(2) {
        let text = String::from_utf8(pair[0].clone()).expect("JSON is text");
        let messages = text.rfind("],\"tools\"").expect("the tools follow the messages");
        assert!(pair[1].starts_with(&pair[0][..messages]), "{text}");
    }
}
