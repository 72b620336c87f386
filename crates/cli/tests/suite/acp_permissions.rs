//! Permissions over ACP: answered, refused or cancelled by the client, or answered in a terminal first. Each gives one
//! result, the right one.

use fusee_testkit::events::of_type;
use fusee_testkit::peer::Peer;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::acp::{begin, connect, open, prompt, text, updates};
use crate::support::fusee;

/// A session whose run asks for permission to write `a.txt`.
struct Asked {
    project: Project,
    peer: Peer,
    session: String,
    prompt: u64,
    request: Value,
}

fn ask() -> Asked {
    let project = Project::new();
    let model = project.script(&[
        Line::call("write_file", json!({"path": "a.txt", "content": "one\n"})),
        Line::text("Done."),
        Line::text("Again."),
    ]);
    let mut peer = connect(&project, &model, &["--approve", "ask"]);
    let session = open(&mut peer, &project);
    let prompt = begin(&mut peer, &session, "Write it.");
    let request = peer.method("session/request_permission");
    Asked { project, peer, session, prompt, request }
}

impl Asked {
    fn choose(&mut self, option: &str) {
        let chosen = json!({ "outcome": { "outcome": "selected", "optionId": option } });
        self.peer.answer(&self.request, chosen);
    }

    /// The answer and the result of the only call, from the journal; whether the file was written.
    fn result(&self) -> (Value, Value, bool) {
        let shown = fusee(&self.project).args(["show", &self.session, "--json"]).run().exits(0);
        let events = fusee_testkit::events::read_checked(&shown.stdout, fusee_testkit::events::Part::Whole);
        let (answers, results) = (of_type(&events, "approval_resolved"), of_type(&events, "tool_result"));
        assert_eq!((answers.len(), results.len()), (1, 1), "{events:#?}");
        let (answered, result) = (answers[0], results[0]);
        let fate = if result["fate"].is_null() { json!("run") } else { result["fate"].clone() };
        (answered["approved"].clone(), fate, self.project.dir().join("a.txt").exists())
    }

    /// What the client was told about the call: the status of its last update.
    fn status(&mut self) -> Value {
        let of_call = |update: &Value| {
            update["sessionUpdate"].as_str().unwrap().starts_with("tool_call") && !update["status"].is_null()
        };
        updates(&mut self.peer).into_iter().rfind(of_call).unwrap()["status"].take()
    }

    /// `fusee attach` in another terminal.
    fn in_terminal(&self, answer: &str) {
        fusee(&self.project).args(["attach", &self.session]).stdin(answer).run().exits(0);
    }
}

#[test]
fn the_client_allows_or_refuses() {
    for (option, approved, fate, written, status) in
        [("allow", true, "run", true, "completed"), ("reject", false, "refused", false, "failed")]
    {
        let mut asked = ask();
        asked.choose(option);
        assert_eq!(asked.peer.response(asked.prompt)["stopReason"], "end_turn");
        assert_eq!(asked.result(), (json!(approved), json!(fate), written), "{option}");
        assert_eq!(asked.status(), status, "{option}");
    }
}

#[test]
fn the_client_cancels_the_question() {
    let mut asked = ask();
    let request = asked.request.clone();
    asked.peer.answer(&request, json!({ "outcome": { "outcome": "cancelled" } }));
    assert_eq!(asked.peer.response(asked.prompt)["stopReason"], "end_turn");
    assert_eq!(asked.result(), (json!(false), json!("refused"), false));
}

#[test]
fn the_client_cancels_the_prompt_while_it_is_asked() {
    let mut asked = ask();
    let session = asked.session.clone();
    asked.peer.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(asked.peer.response(asked.prompt)["stopReason"], "cancelled");
    // A client answers every question when it cancels; that this comes late changes nothing.
    let request = asked.request.clone();
    asked.peer.answer(&request, json!({ "outcome": { "outcome": "cancelled" } }));
    assert!(!asked.project.dir().join("a.txt").exists());
    updates(&mut asked.peer);
    assert_eq!(prompt(&mut asked.peer, &session, "Go on.")["stopReason"], "end_turn");
    assert_eq!(text(&updates(&mut asked.peer), "agent_message_chunk"), "Done.");
    assert!(!asked.project.dir().join("a.txt").exists());
}

#[test]
fn a_terminal_answers_first() {
    for (typed, late, approved, fate, written) in
        [("y\n", "reject", true, "run", true), ("n\n", "allow", false, "refused", false)]
    {
        let mut asked = ask();
        asked.in_terminal(typed);
        let withdrawn = asked.peer.method("$/cancel_request");
        assert_eq!(withdrawn["params"]["requestId"], asked.request["id"]);
        assert_eq!(asked.peer.response(asked.prompt)["stopReason"], "end_turn");
        asked.choose(late);
        assert_eq!(prompt(&mut asked.peer, &asked.session.clone(), "Again.")["stopReason"], "end_turn");
        assert_eq!(asked.result(), (json!(approved), json!(fate), written), "{typed:?}");
    }
}

/// The answer of the terminal goes through the journal, so that it takes a while; the client answers before, about then,
/// and after.
#[test]
fn both_answer_at_the_same_time() {
    let mut seen = Vec::new();
    for delay_ms in [0, 100, 150, 200, 250, 300, 350, 400, 450, 2000] {
        let mut asked = ask();
        let mut terminal = fusee(&asked.project).args(["attach", &asked.session]).start();
        terminal.type_in("n\n");
        std::thread::sleep(std::time::Duration::from_millis(delay_ms));
        asked.choose("allow");
        assert_eq!(asked.peer.response(asked.prompt)["stopReason"], "end_turn");
        terminal.wait();
        let (approved, fate, written) = asked.result();
        let expected = if approved == true { ("run", true) } else { ("refused", false) };
        assert_eq!((fate.as_str().unwrap(), written), expected, "after {delay_ms} ms");
        seen.push(approved == true);
    }
    assert_eq!((seen.contains(&true), seen.last()), (true, Some(&false)), "{seen:?}");
}
