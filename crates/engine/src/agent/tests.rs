//! Property test: whatever a model and its server do, every request sent is one that a server accepts.

use std::sync::Arc;

use fusee_journal::{Journal, JournalOptions};
use fusee_model::{
    BoxFuture, CancellationToken, Conversation, Dialect, Message, Model, ModelError, Models, Reply,
    ReplyDelta, RequestOptions,
};
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::Limits;
use super::test_support::TickingClock;
use crate::agent::conversation::compaction::validity::check_conversation;
use crate::run::{RunBuilder, RunOutcome, RunSpec, SandboxMode};

/// Forwards requests and records what is invalid about them.
struct Judge {
    model: Arc<dyn Model>,
    problems: Mutex<Vec<String>>,
}

impl Model for Judge {
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
        let messages = conversation.messages();
        let mut problems = self.problems.lock();
        problems.extend(check_conversation(messages).err());
        if !matches!(messages.first(), Some(Message::User { text, .. }) if text == "the goal") {
            problems.push("the goal is not first".to_owned());
        }
        drop(problems);
        self.model.send(conversation, options, sink, cancel)
    }
}

fn line() -> impl Strategy<Value = Value> {
    let call = prop_oneof![
        Just(json!({ "name": "list_dir", "arguments": {} })),
        "[a-c]".prop_map(|name| json!({ "name": "write_file", "arguments": { "path": name, "content": "x\n".repeat(400) } })),
        "[a-c]".prop_map(|name| json!({ "name": "read_file", "arguments": { "path": name } })),
        Just(json!({ "name": "nothing_like_it", "arguments": {} })),
        Just(json!({ "name": "read_file", "arguments": "{\"path\": " })),
        Just(json!({ "name": "plan_tasks", "arguments": { "action": "create", "tasks": [{ "description": "go on" }] } })),
    ];
    let calls = (prop::collection::vec(call, 1..4), "[a-z ]{0,300}")
        .prop_map(|(calls, text)| json!({ "text": text, "tool_calls": calls }));
    prop_oneof![
        6 => calls,
        1 => Just(json!({ "text": "" })),
        1 => Just(json!({ "error": { "status": 503, "message": "down" } })),
        1 => Just(json!({ "error": { "status": 400, "message": "maximum context length is 100 tokens" } })),
        1 => Just(json!({ "cut_after": 3, "text": "a stream that breaks off" })),
    ]
}

async fn problems(lines: Vec<Value>, max_tokens: u64) -> Result<Vec<String>, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let script: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let file = directory.path().join("script.jsonl");
    std::fs::write(&file, script).map_err(|error| error.to_string())?;
    let name = format!("script:{}", file.display());
    let model = Models::new(|| std::time::UNIX_EPOCH)
        .open(&name, &fusee_model::Connection::default())
        .map_err(|error| error.to_string())?;
    let judge = Arc::new(Judge { model, problems: Mutex::default() });
    let clock = TickingClock::new();
    let journal =
        Journal::open(&directory.path().join(".fusee/journal.db"), JournalOptions::default(), clock)
            .map_err(|error| error.to_string())?;
    let mut limits = Limits { max_tokens, ..Limits::default() };
    limits.retry_policy.backoff_ms = 0;
    let settings = RunSpec {
        limits,
        sandbox: SandboxMode::Off,
        sandbox_state: "off".into(),
        commands_preapproved: true,
        ..RunSpec::new("the goal", name, directory.path())
    };
    let model = Arc::clone(&judge) as Arc<dyn Model>;
    let builder = || RunBuilder::new(settings.clone(), journal.clone(), Arc::clone(&model));
    let run = "any".parse()?;
    let outcome = builder().start(&run).await.map_err(|error| error.to_string())?.outcome().await;
    let RunOutcome::Ended(ended) = outcome else { return Err(format!("{outcome:?}")) };
    let replayed = builder().replay(&run).await.map_err(|error| error.to_string())?;
    let RunOutcome::Ended(again) = replayed else { return Err(format!("replay: {replayed:?}")) };
    if again != ended {
        return Err(format!("{ended:?} was replayed as {again:?}"));
    }
    let problems = judge.problems.lock().clone();
    Ok(problems)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_legal_and_every_run_replays(
        lines in prop::collection::vec(line(), 1..25),
        max_tokens in 2_500_u64..8_000,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        prop_assert_eq!(runtime.block_on(problems(lines, max_tokens)), Ok(Vec::new()));
    }
}
