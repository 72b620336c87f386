//! A task is executed one turn at a time.

use fusee_journal::Branch;
use fusee_journal::event::TurnType;
use serde_json::json;

use super::*;
use crate::agent::test_support;

#[tokio::test]
async fn a_task_is_executed_turn_by_turn() {
    let directory = tempfile::tempdir().expect("a directory");
    let replies = [
        json!({ "tool_calls": [{ "name": "list_dir", "arguments": {} }] }),
        json!({ "error": { "status": 503, "message": "away" } }),
        json!({ "text": "" }),
        json!({ "text": "Done." }),
    ];
    let session = test_support::session(directory.path(), &replies);
    let engine = test_support::new_run(directory.path()).await;
    let task = AgentTask::new(
        session,
        engine,
        Branch::main(),
        "test".to_owned(),
        "You look.".to_owned(),
        "What is here?".to_owned(),
        TurnType::User,
    );
    let mut turns = TurnManager::new(&task, 0);
    let mut event = turns.start().await.expect("it starts");
    let mut lengths = Vec::new();
    let end = loop {
        match turns.execute_turn(event).await.expect("the journal works") {
            TurnResult::Complete(next) => event = next,
            TurnResult::End(end) => break end,
        }
        lengths.push((turns.machine.turn_index(), turns.conversation.history.messages().len()));
    };
    // Each turn leaves its messages in the conversation: the request, a call and its result; an empty reply and what
    // is said to it; the answer. The failed attempt is part of its turn.
    assert_eq!(lengths, [(1, 3), (2, 5), (3, 6)]);
    assert!(matches!(end, TaskEnd::Completed { answer } if answer == "Done."));
}
