//! Table of flows: every mode with several settings, and a model that obeys, skips, loops, names the wrong
//! stage, refuses or dies. Each row is one run against a server, its events rendered in a compact form; the
//! snapshots are the table.
//!
//! In all rows, every call of every request has exactly one result, and every refusal, hint and retry is
//! counted in `feedback_counts`.

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::server::{Message, Reply, Script, Server};
use serde_json::{Value, json};

use crate::flows::report;
use crate::support::{fusee, with_key};

/// Model behaviours.
const BEHAVIOURS: [&str; 6] = ["obeys", "skips", "loops", "wrong stage", "refuses", "dies"];

/// Settings with which every mode is tried.
const KNOBS: [(&str, &str); 3] = [
    ("usual", ""),
    ("retries", "flow_stage_retries = 1\ntask_replan_max = 1\nflow_retry_hints = false\n"),
    (
        "short history, verified",
        "flow_history_mode = \"tail\"\nflow_history_max_messages = 4\nhistory_tool_truncate_chars = 20\n\
         history_strip_thinking = true\nverify = \"grep -q new a.txt\"\n",
    ),
];

const STAGES: &str = "[[flow]]\nid = \"look\"\nprompt = \"Look.\"\nrequire_files_read = 1\ntools_block = [\"write_file\"]\n\n\
                      [[flow]]\nid = \"change\"\nprompt = \"Change.\"\nrequire_code_change = true\n";

fn read() -> Message {
    Message::call("read_file", json!({"path": "a.txt"})).reasoning("Reading comes first.")
}

fn write() -> Message {
    Message::call("write_file", json!({"path": "a.txt", "content": "new\n"}))
}

fn plan() -> Message {
    Message::call("plan_tasks", json!({"action": "create", "tasks": [{"description": "Change a.txt"}]}))
}

fn done(stage: &str) -> Message {
    Message::call("flow_stage_done", json!({"stage": stage, "summary": "Done."}))
}

fn say(words: &str) -> Message {
    Message::text(words)
}

/// Replies of a model that follows its instructions.
fn obedient(mode: &str) -> Vec<Message> {
    match mode {
        "flat" => vec![read(), write(), say("Done.")],
        "staged" => vec![read(), plan(), write(), say("Done.")],
        "staged3" => vec![read(), say("Seen."), plan(), say("Planned."), write(), say("Done.")],
        "branched" => vec![read(), plan(), write(), say("Done.")],
        "direct" => vec![say("a.txt\n```\nnew\n```")],
        stages => {
            assert_eq!(stages, "flow");
            vec![read(), done("look"), write(), done("change")]
        }
    }
}

fn script(mode: &str, behaviour: &str) -> Script {
    let all = |messages: Vec<Message>| messages.into_iter().collect::<Script>();
    match behaviour {
        "obeys" => all(obedient(mode)),
        "skips" => all(vec![write(), say("All done.")]).then_always(say("It is done.")),
        // The same call over and over, each with its own id.
        "loops" => all((0..12).map(|_| read()).collect()).then_always(say("Enough.")),
        "wrong stage" => {
            let wrong = done("nowhere").and_call("read_file", json!({"path": "a.txt"}));
            all([wrong].into_iter().chain(obedient(mode)).collect()).then_always(say("Done."))
        }
        "refuses" => Script::new().then_always(say("I cannot help with that.")),
        dies => {
            assert_eq!(dies, "dies");
            let first = obedient(mode).into_iter().take(2).take(obedient(mode).len() - 1);
            first.fold(Script::new(), Script::then).then_always(Reply::error(500, "the machine is on fire"))
        }
    }
}

/// Renders all events, one line per run of consecutive events of a task.
fn output(events: &[Value]) -> String {
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for event in events {
        let task = event["task"].as_str().unwrap().to_owned();
        let Some(word) = word(event) else { continue };
        match lines.last_mut() {
            Some((last, words)) if *last == task => words.push(word),
            _ => lines.push((task, vec![word])),
        }
    }
    lines.iter().map(|(task, words)| format!("  {task}: {}\n", words.join(" "))).collect()
}

/// Renders an event in a word or two; stream deltas are not journaled and so not rendered.
fn word(event: &Value) -> Option<String> {
    let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
    let short = |key: &str| text(key).split_whitespace().take(6).collect::<Vec<_>>().join(" ");
    Some(match event["type"].as_str()? {
        "message_delta" | "reasoning_delta" | "tool_output" => return None,
        "task_started" => "[".to_owned(),
        "turn_start" => format!("t{}", event["turn_index"]),
        "turn_complete" => format!(".{}", event["tool_calls"]),
        "message" => format!("{}<{}>", text("role"), short("text")),
        "reasoning" => "thinks".to_owned(),
        "tool_call" => text("name"),
        "tool_result" => match event["fate"].as_str() {
            Some(fate) => fate.to_uppercase(),
            None if event["ok"] == true => "ok".to_owned(),
            None => "FAILED".to_owned(),
        },
        "file_changed" => format!("{}:{}", text("change"), text("path")),
        "compaction" => format!("compaction({})", event["items_removed"]),
        "retry" => format!("retry{}", event["attempt"]),
        "warning" => format!("warning:{}", text("code")),
        "error" => format!("error:{}", text("code")),
        "stage_started" => format!("stage:{}#{}", text("stage"), event["attempt"]),
        "stage_complete" => format!("stage-over:{}:{}", text("stage"), text("status")),
        "flow_stage_report" => format!(
            "stage-report:{}:{}#{} read{} changed{}",
            text("stage"),
            text("status"),
            event["attempts"],
            event["files_read"],
            event["files_changed"]
        ),
        "phase_state" => format!("phase:{}", text("phase")),
        "phase_transition" => format!("{}->{}", text("from"), text("to")),
        "task_report" => format!(
            "report:{} attempts={} calls={} errors={} read{} changed{} plan={} feedback{}",
            text("status"),
            event["attempts"],
            event["tool_calls_total"],
            event["tool_errors_total"],
            event["files_read"],
            event["files_changed"],
            event["plan_steps"],
            event["feedback_counts"]
        ),
        "task_complete" => match event["error"]["reason"].as_str() {
            Some(reason) => format!("]{}({reason})", text("status")),
            None => format!("]{}", text("status")),
        },
        other => format!("{other}!"),
    })
}

/// Asserts that every call of every request has exactly one result, before any other message.
fn all_calls_are_answered(server: &Server, row: &str) {
    for request in server.requests() {
        let body = request.arrived.json();
        let messages = body["messages"].as_array().unwrap();
        for (at, message) in messages.iter().enumerate() {
            let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
            let asked: Vec<&Value> = calls.iter().map(|call| &call["id"]).collect();
            let answers = messages[at + 1..].iter().take_while(|message| message["role"] == "tool");
            let answered: Vec<&Value> = answers.map(|answer| &answer["tool_call_id"]).collect();
            assert!(message["role"] != "assistant" || asked == answered, "{row}: {messages:#?}");
        }
    }
}

/// Asserts that the report counts every refusal, hint and retry, and nothing else.
fn all_feedback_is_counted(events: &[Value], mode: &str, row: &str) {
    let counts = &report(events)["feedback_counts"];
    let counted: u64 = counts.as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    let refused = of_type(events, "tool_result").iter().filter(|result| result["fate"] == "refused").count();
    let unchanged = of_type(events, "tool_result")
        .iter()
        .filter(|result| result["content"].as_str().unwrap().starts_with("[Not changed since"))
        .count();
    let hints = of_type(events, "message").iter().filter(|message| message["role"] == "user").count();
    let again = of_type(events, "stage_started").iter().filter(|stage| stage["attempt"] != 1).count();
    // In `direct` mode an insufficient answer ends the attempt without feedback to the model.
    let given_up = if mode == "direct" {
        of_type(events, "task_complete")
            .iter()
            .filter(|end| end["task"] != "main")
            .filter(|end| {
                let reason = end["error"]["reason"].as_str();
                ["output_format_failure", "tool_execution_error"].map(Some).contains(&reason)
            })
            .count()
    } else {
        0
    };
    let happened = refused + unchanged + hints + again + given_up;
    assert_eq!(counted, happened as u64, "{row}: {counts}\n{}", output(events));
}

fn table(mode: &str) {
    let mut rows = String::new();
    for (name, knobs) in KNOBS {
        for behaviour in BEHAVIOURS {
            let row = format!("{mode}, {name}, {behaviour}");
            let stages = if mode == "flow" { STAGES } else { "" };
            let quick = "max_turns = 8\nretry_policy.max_retries = 1\nretry_policy.backoff_ms = 1\n";
            let project =
                Project::new().with("a.txt", "one\n").with("fusee.toml", &format!("{quick}{knobs}{stages}"));
            let server = Server::start(script(mode, behaviour));
            let command = fusee(&project)
                .args(["run", "Fix a.txt.", "--model", "openai:scripted", "--api", "chat", "--json"])
                .args(["--base-url", &server.base_url(), "--sandbox", "off"]);
            let command = if mode == "flow" { command } else { command.args(["--flow", mode]) };
            let outcome = with_key(command).run();
            let events = outcome.events();
            all_calls_are_answered(&server, &row);
            all_feedback_is_counted(&events, mode, &row);
            rows.push_str(&format!("{row}: exit {}\n{}", outcome.code.unwrap(), output(&events)));
        }
    }
    insta::assert_snapshot!(format!("table_{mode}"), rows);
}

#[test]
fn flat() {
    table("flat");
}

#[test]
fn staged() {
    table("staged");
}

#[test]
fn staged3() {
    table("staged3");
}

#[test]
fn branched() {
    table("branched");
}

#[test]
fn direct() {
    table("direct");
}

#[test]
fn stages_of_ones_own() {
    table("flow");
}
