//! Names of promises, which a worker and a client must derive alike.

use fusee::journal::{Branch, Event, EventRecord};
use serde_json::json;

use super::QuestionList;

fn record(seq: u64, task: &Branch, event: Event) -> EventRecord {
    EventRecord { seq, ts_ms: 0, run: "r".parse().expect("an id"), task: task.clone(), event }
}

fn requested(call_id: &str) -> Event {
    Event::ApprovalRequested {
        call_id: call_id.to_owned(),
        name: "shell".to_owned(),
        arguments: json!({}),
        reason: String::new(),
    }
}

fn resolved(call_id: &str) -> Event {
    Event::ApprovalResolved { call_id: call_id.to_owned(), approved: true, reason: None }
}

#[test]
fn a_question_that_is_asked_again_keeps_its_name_and_one_about_the_same_call_later_has_another() {
    let main = Branch::main();
    let mut list = QuestionList::default();
    let names = |list: &QuestionList| list.open().iter().map(|open| open.promise()).collect::<Vec<_>>();
    list.add(&record(1, &main, requested("c")));
    assert_eq!(names(&list), ["answer 0 main c"]);
    list.add(&record(2, &main, requested("c")));
    assert_eq!(names(&list), ["answer 0 main c"], "after a takeover");
    list.add(&record(3, &main.child("1"), requested("c")));
    assert_eq!(names(&list), ["answer 0 main c", "answer 0 main/1 c"], "the same id in another task");
    list.add(&record(4, &main, resolved("c")));
    assert_eq!(names(&list), ["answer 0 main/1 c"]);
    list.add(&record(5, &main, requested("c")));
    assert_eq!(names(&list), ["answer 0 main/1 c", "answer 1 main c"]);
}
