//! `fusee serve` from outside: the API by raw HTTP against the real binary, with runs of this server and of other
//! processes. `attacks` has what must be refused.

mod attacks;
mod client;

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::{fusee, run};
use client::Site;

/// A project with a script for its model.
fn project(lines: &[Line]) -> (Project, String) {
    let project = Project::new().with("notes.txt", "one\n");
    let model = project.script(lines);
    (project, model)
}

#[test]
fn a_run_is_started_watched_and_shown() {
    let (project, model) = project(&[
        Line::call("read_file", json!({ "path": "notes.txt" })).usage(100, 10),
        Line::text("It says one.").usage(120, 5),
    ]);
    let site = Site::start(&project, &["-m", &model]);
    let started = site.post("/api/runs", &json!({ "request": "What do the notes say?" }));
    assert_eq!(started.status, 201, "{started:?}");
    let id = started.json()["run"].as_str().unwrap().to_owned();

    let streamed = site.stream(&format!("/api/runs/{id}/stream?from=0")).rest();
    let listed = site.get(&format!("/api/runs/{id}/events?from=0")).json();
    let kinds = |events: &[Value]| -> Vec<String> {
        let is_kept = |kind: &&str| !kind.ends_with("_delta") && *kind != "gap" && *kind != "tool_output";
        events.iter().filter_map(|event| event["type"].as_str()).filter(is_kept).map(str::to_owned).collect()
    };
    assert_eq!(kinds(&streamed), kinds(listed.as_array().unwrap()));
    assert_eq!(kinds(&streamed).first().unwrap(), "task_started");
    assert_eq!(kinds(&streamed).last().unwrap(), "task_complete");

    let shown = site.get(&format!("/api/runs/{id}")).json();
    assert_eq!(shown["state"], "completed");
    assert_eq!(shown["end"]["answer"], "It says one.");
    assert_eq!(shown["totals"]["turns"], 2);
    assert_eq!(shown["totals"]["tools"]["read_file"]["calls"], 1);
    let runs = site.get("/api/runs").json();
    assert_eq!(runs[0]["run"], id.as_str());
    assert_eq!(runs[0]["turns"], 2);

    let timeline = site.get(&format!("/api/runs/{id}/timeline")).json();
    let spans = timeline["spans"].as_array().unwrap().iter().map(|span| span["kind"].as_str().unwrap());
    // The time in which a reply arrived may be too short to be seen.
    let spans: Vec<&str> = spans.filter(|kind| *kind != "output").collect();
    assert_eq!(spans, ["model", "tool", "model"]);
    // The same events as the command line shows.
    let printed = fusee(&project).args(["show", &id, "--json"]).run().exits(0);
    let printed: Vec<Value> =
        printed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(listed, Value::from(printed));
}

#[test]
fn events_are_paged_filtered_and_searched() {
    let (project, model) = project(&[
        Line::call("read_file", json!({ "path": "notes.txt" })),
        Line::call("read_file", json!({ "path": "absent.txt" })),
        Line::text("Done with Notes."),
    ]);
    run(&project, &model).args(["--run-id", "paged"]).run().exits(0);
    let site = Site::start(&project, &[]);
    let all = site.get("/api/runs/paged/events?limit=1000").json();
    let all = all.as_array().unwrap();
    let mut paged: Vec<Value> = Vec::new();
    let mut from = 0;
    loop {
        let page = site.get(&format!("/api/runs/paged/events?from={from}&limit=3"));
        paged.extend(page.json().as_array().unwrap().iter().cloned());
        match page.header("fusee-next") {
            Some(next) => from = next.parse().unwrap(),
            None => break,
        }
    }
    assert_eq!(&paged, all);
    let numbers = |query: &str| -> Vec<String> {
        let found = site.get(&format!("/api/runs/paged/events?{query}")).json();
        let name = |event: &Value| format!("{} {}", event["type"].as_str().unwrap(), event["ok"]);
        found.as_array().unwrap().iter().map(name).collect()
    };
    let failed = numbers("kind=failed");
    assert_eq!(failed.iter().filter(|name| name.starts_with("tool_result")).count(), 1, "{failed:?}");
    assert_eq!(numbers("kind=tool:read_file").len(), 4);
    assert_eq!(numbers("text=done%20with%20notes&kind=messages").len(), 2);
    assert_eq!(numbers("text=nowhere"), Vec::<String>::new());
    assert_eq!(site.get("/api/runs/paged/events?kind=odd").status, 400);
    let index = site.get("/api/runs/paged/index?every=10").json();
    assert_eq!(index["count"], all.len());
    assert_eq!(index["starts"][0], all[0]["seq"]);
    assert_eq!(index["starts"][1], all[10]["seq"]);
}

#[test]
fn a_call_is_allowed_and_another_denied() {
    let (project, model) = project(&[
        Line::call("write_file", json!({ "path": "a.txt", "content": "a" })),
        Line::call("write_file", json!({ "path": "b.txt", "content": "b" })),
        Line::text("One of two."),
    ]);
    let site = Site::start(&project, &["-m", &model]);
    let started = site.post("/api/runs", &json!({ "request": "Write both.", "approve": "ask" })).json();
    let id = started["run"].as_str().unwrap().to_owned();
    let first = site.wait_for_question();
    assert_eq!(
        (&first["run"], &first["kind"], &first["tool"]),
        (&json!(id), &json!("approval"), &json!("write_file"))
    );
    let approve = |question: &Value, decision: &str| {
        let path = format!("/api/runs/{}/approve", question["run"].as_str().unwrap());
        site.post(&path, &json!({ "id": question["id"], "decision": decision }))
    };
    let taken = approve(&first, "allow");
    assert_eq!((taken.status, taken.json()["state"].clone()), (200, json!("taken")));
    // The first answer counts.
    assert_eq!(approve(&first, "deny").status, 409);
    let second = site.wait_for_question();
    assert_eq!(second["arguments"]["path"], "b.txt");
    assert_eq!(approve(&second, "deny").status, 200);
    site.stream(&format!("/api/runs/{id}/stream")).rest();
    assert_eq!(project.read("a.txt"), "a");
    assert!(!project.dir().join("b.txt").exists());
    assert_eq!(site.get("/api/approvals").json(), json!([]));
}

#[test]
fn a_question_of_another_process_is_answered_here() {
    let (project, model) = project(&[
        Line::call("ask_user", json!({ "question": "Which colour?" })),
        Line::call("write_file", json!({ "path": "a.txt", "content": "a" })),
        Line::text("Done."),
    ]);
    let site = Site::start(&project, &[]);
    let line = format!("run 'Paint it.' -m {model} --run-id elsewhere --approve ask");
    let running = crate::support::at_terminal(&project, &line);
    let asked = site.wait_for_question();
    assert_eq!(
        (&asked["kind"], &asked["arguments"]["question"]),
        (&json!("question"), &json!("Which colour?"))
    );
    assert_eq!(asked["working"], true);
    let answered = site.post("/api/runs/elsewhere/answer", &json!({ "text": "blue" }));
    assert_eq!((answered.status, answered.json()["state"].clone()), (200, json!("taken")), "{answered:?}");
    let second = site.wait_for_question();
    let denied = site.post(
        "/api/runs/elsewhere/approve",
        &json!({ "id": second["id"], "decision": "deny", "reason": "not now" }),
    );
    assert_eq!(denied.status, 200, "{denied:?}");
    // The terminal goes on without having been asked.
    let shown = running.wait().exits(0).stdout;
    assert!(shown.contains("not now"), "{shown}");
    let events = site.get("/api/runs/elsewhere/events?limit=1000").json();
    let said: Vec<&Value> =
        events.as_array().unwrap().iter().filter(|event| event["type"] == "approval_resolved").collect();
    assert_eq!((said[0]["reason"].as_str(), said[1]["reason"].as_str()), (Some("blue"), Some("not now")));
}

#[test]
fn a_turn_is_stopped_and_goes_on_with_a_message() {
    let (project, model) =
        project(&[Line::text("This takes far too long.").delay_ms(600_000), Line::text("As you wish.")]);
    let site = Site::start(&project, &["-m", &model]);
    let started = site.post("/api/runs", &json!({ "request": "Think." })).json();
    let id = started["run"].as_str().unwrap().to_owned();
    site.wait_for_event(&id, "turn_start");
    let stopped = site.post(&format!("/api/runs/{id}/stop"), &json!({}));
    assert_eq!(stopped.status, 200, "{stopped:?}");
    assert_eq!(site.wait_for_question()["kind"], "stopped");
    let said = site.post(&format!("/api/runs/{id}/message"), &json!({ "text": "Be brief." }));
    assert_eq!((said.status, said.json()["run"].clone()), (201, json!(id)));
    let events = site.stream(&format!("/api/runs/{id}/stream")).rest();
    assert!(events.iter().any(|event| event["type"] == "message" && event["text"] == "Be brief."));
    assert_eq!(events.last().unwrap()["answer"], "As you wish.");

    // A message to an ended run continues its conversation in a new one.
    let next = site.post(&format!("/api/runs/{id}/message"), &json!({ "text": "Thank you." }));
    assert_eq!(next.status, 201, "{next:?}");
    let next = next.json()["run"].as_str().unwrap().to_owned();
    assert_ne!(next, id);
    site.wait_for_event(&next, "task_started");
    assert_eq!(site.get(&format!("/api/runs/{next}")).json()["start"]["continues"], id.as_str());
}

#[test]
fn a_run_without_a_terminal_goes_on_after_a_message_and_after_a_stopped_turn() {
    let slow = || Line::text("This takes far too long.").delay_ms(600_000);
    let (project, model) = project(&[slow(), slow(), Line::text("As you wish.")]);
    let running = run(&project, &model).args(["--json", "--run-id", "piped"]).start();
    let site = Site::start(&project, &[]);
    site.wait_for_event("piped", "turn_start");
    let said = site.post("/api/runs/piped/message", &json!({ "text": "Be brief." }));
    assert_eq!((said.status, said.json()["run"].clone()), (201, json!("piped")), "{said:?}");
    site.wait_for_event("piped", "message");
    let stopped = site.post("/api/runs/piped/stop", &json!({}));
    assert_eq!(stopped.status, 200, "{stopped:?}");
    assert_eq!(site.wait_for_question()["kind"], "stopped");
    let answered = site.post("/api/runs/piped/answer", &json!({ "text": "" }));
    assert_eq!(answered.status, 200, "{answered:?}");
    let events = running.wait().exits(0).events();
    assert!(events.iter().any(|event| event["type"] == "message" && event["text"] == "Be brief."));
    assert_eq!(events.last().unwrap()["answer"], "As you wish.");
}

#[test]
fn a_run_is_cancelled() {
    let (project, model) = project(&[Line::text("Too long.").delay_ms(600_000)]);
    let site = Site::start(&project, &["-m", &model]);
    let started = site.post("/api/runs", &json!({ "request": "Think." })).json();
    let id = started["run"].as_str().unwrap().to_owned();
    site.wait_for_event(&id, "turn_start");
    assert_eq!(site.post(&format!("/api/runs/{id}/cancel"), &json!({})).status, 200);
    let events = site.stream(&format!("/api/runs/{id}/stream")).rest();
    assert_eq!(events.last().unwrap()["status"], "cancelled");
    assert_eq!(site.post(&format!("/api/runs/{id}/cancel"), &json!({})).status, 409);
}

#[test]
fn a_killed_run_is_resumed_and_its_stream_goes_on_where_it_was() {
    let (project, model) =
        project(&[Line::call("shell", json!({ "command": "sleep 600" })), Line::text("Resumed and done.")]);
    let running = run(&project, &model).args(["--run-id", "killed"]).start();
    let site = Site::start(&project, &[]);
    site.wait_for_event("killed", "tool_call");
    let mut stream = site.stream("/api/runs/killed/stream?from=0");
    let before = stream.until(|event| event["type"] == "tool_call");
    running.signal(rustix::process::Signal::KILL);
    assert!(running.wait().was_killed());
    assert_eq!(site.get("/api/runs/killed").json()["state"], "interrupted");
    let resumed = site.post("/api/runs/killed/resume", &json!({}));
    assert_eq!(resumed.status, 200, "{resumed:?}");
    // The stream of the killed process is still open, and has every event once.
    let after = stream.rest();
    let seen: Vec<u64> = before.iter().chain(&after).filter_map(|event| event["seq"].as_u64()).collect();
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
    let listed = site.get("/api/runs/killed/events?limit=1000").json();
    let missing: Vec<&Value> = listed
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| !seen.contains(&event["seq"].as_u64().unwrap()))
        .collect();
    assert_eq!(missing, Vec::<&Value>::new());
    assert_eq!(after.last().unwrap()["answer"], "Resumed and done.");
}

#[test]
fn inputs_of_a_template_are_checked_field_by_field() {
    let template = r#"<task name="greet" type="atomic">
  <description>Greets someone</description>
  <inputs><input name="who"/><input name="times" type="number" default="1"/></inputs>
  <instructions>Greet {{who}} {{times}} times.</instructions>
</task>"#;
    let (project, model) = project(&[Line::text("Hello, Ada.")]);
    project.write(".fusee/templates/greet.xml", template);
    let site = Site::start(&project, &["-m", &model]);
    let known = site.get("/api/templates").json();
    let greet =
        known.as_array().unwrap().iter().find(|task| task["name"] == "greet").expect("greet is listed");
    assert_eq!(greet["inputs"][0]["name"], "who");
    let wrong =
        site.post("/api/runs", &json!({ "template": "greet", "inputs": { "times": "often", "tone": 1 } }));
    assert_eq!(wrong.status, 422);
    assert_eq!(
        wrong.json()["error"]["fields"],
        json!({
            "times": "this must be of type number",
            "tone": "there is no such input",
            "who": "this input is required",
        })
    );
    assert_eq!(site.get("/api/runs").json(), json!([]));
    let right =
        site.post("/api/runs", &json!({ "template": "greet", "inputs": { "who": "Ada", "times": 2 } }));
    assert_eq!(right.status, 201, "{right:?}");
    let id = right.json()["run"].as_str().unwrap().to_owned();
    site.stream(&format!("/api/runs/{id}/stream")).rest();
    assert_eq!(site.get(&format!("/api/runs/{id}")).json()["state"], "completed");
    let program = site.get(&format!("/api/runs/{id}/program")).json();
    assert_eq!((&program["kind"], &program["inputs"]["who"]), (&json!("template"), &json!("Ada")));
}

#[test]
fn runs_of_other_projects_are_shown_and_answered() {
    let (project, model) = project(&[Line::text("Done elsewhere.")]);
    let other = project.scratch("other-project");
    std::fs::create_dir_all(other.join(".fusee")).unwrap();
    let place = other.to_str().unwrap();
    run(&project, &model).args(["-C", place, "--run-id", "there"]).run().exits(0);
    let site = Site::start(&project, &[]);
    let shown = site.get("/api/runs/there").json();
    assert_eq!((&shown["project"], &shown["end"]["answer"]), (&json!(place), &json!("Done elsewhere.")));
    assert_eq!(site.get("/api/session").json()["projects"][1], place);
    assert_eq!(site.get("/api/runs").json()[0]["run"], "there");
    // What is no longer there is no longer shown.
    std::fs::remove_dir_all(&other).unwrap();
    assert_eq!(site.get("/api/runs/there").status, 404);
}

#[test]
fn a_request_that_is_sent_twice_with_one_key_starts_one_run() {
    let (project, model) = project(&[Line::text("One."), Line::text("Two.")]);
    let site = Site::start(&project, &["-m", &model]);
    let send =
        |key: &str| site.post_with("/api/runs", &json!({ "request": "Count." }), &[("Idempotency-Key", key)]);
    let (first, again, other) = (send("a"), send("a"), send("b"));
    assert_eq!((first.status, again.status, other.status), (201, 201, 201));
    assert_eq!(first.json(), again.json());
    assert_ne!(first.json(), other.json());
    assert_eq!(site.get("/api/runs").json().as_array().unwrap().len(), 2);
}

#[test]
fn two_runs_are_compared_by_their_actions() {
    let read = |path: &str| Line::call("read_file", json!({ "path": path }));
    let (project, one) = project(&[read("notes.txt"), Line::text("One.")]);
    run(&project, &one).args(["--run-id", "first"]).run().exits(0);
    let other = project.scratch("other.jsonl");
    let lines = [read("notes.txt"), read("absent.txt"), Line::text("Two.")];
    let text: String = lines.iter().map(|line| line.to_json() + "\n").collect();
    std::fs::write(&other, text).unwrap();
    run(&project, &format!("script:{}", other.display())).args(["--run-id", "second"]).run().exits(0);
    let site = Site::start(&project, &[]);
    let compared = site.get("/api/compare?a=first&b=second").json();
    let row = |row: &Value| (row["a"]["text"].clone(), row["b"]["text"].clone(), row["same"].clone());
    let rows: Vec<_> = compared["actions"].as_array().unwrap().iter().map(row).collect();
    assert_eq!(rows[0], (json!("notes.txt"), json!("notes.txt"), json!(true)));
    assert_eq!((&rows[1].1, compared["first_difference"].as_u64()), (&json!("absent.txt"), Some(1)));
    assert_eq!(compared["b"]["totals"]["tools"]["read_file"]["errors"], 1);
    assert_eq!(compared["settings"][0]["name"], "model");
    assert_eq!(compared["prompt_diff"], "");
}

#[test]
fn the_changes_of_a_run_are_undone() {
    let (project, model) = project(&[
        Line::call("read_file", json!({ "path": "notes.txt" })),
        Line::call("write_file", json!({ "path": "notes.txt", "content": "two\n" })),
        Line::text("Done."),
    ]);
    run(&project, &model).args(["--run-id", "changes"]).run().exits(0);
    let site = Site::start(&project, &[]);
    let plan = site.post("/api/runs/changes/undo?dry_run=true", &json!({})).json();
    assert_eq!((&plan["done"], &plan["files"]), (&json!(false), &json!(["notes.txt"])));
    assert_eq!(project.read("notes.txt"), "two\n");
    assert_eq!(site.post("/api/runs/changes/undo", &json!({})).json()["done"], true);
    assert_eq!(project.read("notes.txt"), "one\n");
}

#[test]
fn a_run_goes_back_to_a_turn_and_is_forked() {
    let write = |text: &str| Line::call("write_file", json!({ "path": "made.txt", "content": text }));
    let (project, model) = project(&[write("one\n"), write("two\n"), Line::text("Done.")]);
    run(&project, &model).args(["--run-id", "r"]).run().exits(0);
    let site = Site::start(&project, &["-m", &model]);
    assert_eq!(site.post("/api/runs/r/rewind", &json!({ "turn": 9 })).status, 422);
    let plan = site.post("/api/runs/r/rewind", &json!({ "turn": 1, "dry_run": true })).json();
    assert_eq!((&plan["files"], &plan["run"]), (&json!(["made.txt"]), &Value::Null));
    assert_eq!(project.read("made.txt"), "two\n");
    let done = site.post("/api/runs/r/rewind", &json!({ "turn": 1 })).json();
    assert_eq!(project.read("made.txt"), "one\n");
    let id = done["run"].as_str().unwrap();
    let events = site.get(&format!("/api/runs/{id}/events?from=0")).json();
    let last = events.as_array().unwrap().last().unwrap();
    assert_eq!((&last["type"], &last["turn"]), (&json!("rewound"), &json!(1)));
    // The fork goes on with the second reply of the script, in its own copy.
    let forked = site.post("/api/runs/r/fork", &json!({ "turn": 1, "worktree": true }));
    assert_eq!(forked.status, 201, "{forked:?}");
    let id = forked.json()["run"].as_str().unwrap().to_owned();
    site.stream(&format!("/api/runs/{id}/stream?from=0")).rest();
    assert_eq!(site.get(&format!("/api/runs/{id}")).json()["end"]["answer"], "Done.");
    assert_eq!(project.read("made.txt"), "one\n");
    fusee(&project).args(["adopt", &id, "--yes"]).run().exits(0);
    assert_eq!(project.read("made.txt"), "two\n");
}

#[test]
fn benchmark_jobs_are_read_from_their_results() {
    let (project, _) = project(&[]);
    let trial = |case: &str, passed: bool, cause: Option<&str>| {
        json!({ "case": case, "attempt": 1, "tries": 1, "passed": passed, "reward": f64::from(u8::from(passed)),
                "cause": cause, "model": "m", "flow": "flat", "turns": 3, "tokens": 1000, "cost_usd": 0.01,
                "seconds": 2.5, "run": "r" })
    };
    let lines = [trial("a", true, None), trial("b", false, None), trial("c", false, Some("sandbox"))];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    // The last line is being written.
    project.write("bench/first/results.jsonl", &format!("{text}{{\"case\": \"d"));
    let site = Site::start(&project, &[]);
    let jobs = site.get("/api/bench/jobs").json();
    assert_eq!(jobs[0]["job"], "bench~first");
    assert_eq!(
        (&jobs[0]["trials"], &jobs[0]["graded"], &jobs[0]["passed"]),
        (&json!(3), &json!(2), &json!(1))
    );
    assert_eq!(jobs[0]["causes"], json!({ "sandbox": 1, "wrong answer": 1 }));
    let detail = site.get("/api/bench/jobs/bench~first").json();
    assert_eq!(detail["results"].as_array().unwrap().len(), 3);
    assert_eq!(site.get("/api/bench/jobs/..~..~etc").status, 404);
}

#[test]
fn variants_of_a_job_are_listed_and_compared_as_on_the_command_line() {
    let (project, _) = project(&[]);
    project.write("suite/a.txt", "a\n");
    let case = |name: &str| format!("[[case]]\nname = \"{name}\"\nprompt = \"Write {name}.\"\n");
    let suite = format!("test = \"test -e made.txt\"\n{}{}", case("one"), case("two"));
    project.write("suite/suite.toml", &suite);
    let write = Line::call("write_file", json!({"path": "made.txt", "content": "x\n"}));
    let good = project.script(&[write, Line::text("Done.")]);
    let bad = project.script(&[Line::text("No."), Line::text("No.")]);
    let args = ["bench", "run", "suite", "-m", &good, "-m", &bad, "--out", "bench/both", "--attempts", "2"];
    fusee(&project).args(args).run().exits(0);
    let site = Site::start(&project, &[]);
    let jobs = site.get("/api/bench/jobs").json();
    let shown: Vec<_> =
        jobs.as_array().unwrap().iter().map(|job| (&job["job"], &job["passed"], &job["planned"])).collect();
    assert_eq!(
        shown,
        [(&json!("bench~both@1"), &json!(4), &json!(4)), (&json!("bench~both@2"), &json!(0), &json!(4))]
    );
    assert_eq!(jobs[0]["running"], false);
    let compared = site.get("/api/bench/compare?a=bench~both@1&b=bench~both@2").json();
    let printed =
        fusee(&project).args(["bench", "compare", "bench/both@1", "bench/both@2", "--json"]).run().exits(0);
    assert_eq!(compared, serde_json::from_str::<serde_json::Value>(&printed.stdout).unwrap());
    assert_eq!((&compared["difference"], &compared["attempts"]), (&json!(1.0), &json!(2)));
    assert_eq!(site.get("/api/bench/compare?a=bench~both@1&b=bench~none").status, 404);
}

/// Regenerate with `UPDATE_SCHEMA=1 cargo nextest run -p fusee-cli openapi`.
#[test]
fn the_openapi_document_is_current() {
    let (project, _) = project(&[]);
    let site = Site::start(&project, &[]);
    let served = format!("{:#}\n", site.get("/api/openapi.json").json());
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/openapi.json");
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&file, &served).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == served,
        "schema/openapi.json is not current: UPDATE_SCHEMA=1 cargo nextest run -p fusee-cli openapi"
    );
}

#[test]
fn a_run_in_the_background_is_answered_told_something_and_cancelled() {
    let (project, model) = project(&[
        Line::call("write_file", json!({ "path": "a.txt", "content": "a" })),
        Line::text("Never said.").delay_ms(60_000),
        Line::text("Never said either.").delay_ms(60_000),
    ]);
    run(&project, &model).args(["--detach", "--approve", "ask", "--run-id", "far"]).run().exits(0);
    let site = Site::start(&project, &[]);
    let question = site.wait_for_question();
    assert_eq!((&question["run"], &question["working"]), (&json!("far"), &json!(true)));
    let allow = json!({ "id": question["id"], "decision": "allow" });
    assert_eq!(site.post("/api/runs/far/approve", &allow).json()["state"], "taken");
    assert_eq!(site.post("/api/runs/far/approve", &allow).status, 409, "it is answered");
    site.wait_for_event("far", "tool_result");
    assert_eq!(project.read("a.txt"), "a");
    let output = site.post("/api/runs/far/message", &json!({ "text": "Hurry up." }));
    assert_eq!(output.status, 201, "{output:?}");
    assert_eq!(output.json()["run"], "far");
    site.wait_for_event("far", "message");
    assert_eq!(site.post("/api/runs/far/cancel", &json!({})).status, 200);
    site.wait_for_event("far", "task_complete");
    let shown = site.get("/api/runs/far").json();
    assert_eq!(shown["state"], "cancelled");
    assert_eq!(site.post("/api/runs/far/cancel", &json!({})).status, 409, "it has ended");
}

#[test]
fn watchers_share_a_feed_and_late_ones_miss_nothing() {
    let words = "Some words that arrive in many pieces while others watch. ".repeat(20);
    let mut lines = vec![Line::call("write_file", json!({ "path": "a.txt", "content": "a" }))];
    lines.extend((0..40).map(|n| {
        let line = Line::call("search_text", json!({ "pattern": format!("word {n}") }));
        line.with_text(&words).delay_ms(5)
    }));
    lines.push(Line::text("Done."));
    let (project, model) = project(&lines);
    let site = Site::start(&project, &["-m", &model]);
    let started = site.post("/api/runs", &json!({ "request": "Read on.", "approve": "ask" })).json();
    let id = started["run"].as_str().unwrap().to_owned();
    let question = site.wait_for_question();
    let path = |from: u64| format!("/api/runs/{id}/stream?from={from}");
    // Watchers from before the work are at the same place, and are sent everything that follows.
    let mut streams: Vec<(u64, Vec<Value>, client::Events)> = Vec::new();
    for from in [0, 0, 1, 3] {
        let mut events = site.stream(&path(from));
        let seen = events.until(|event| event["type"] == "approval_requested");
        streams.push((from, seen, events));
    }
    let early = streams.len();
    let approve = format!("/api/runs/{id}/approve");
    assert_eq!(site.post(&approve, &json!({ "id": question["id"], "decision": "allow" })).status, 200);
    // While the run works, from its beginning and from the middle of what has been sent.
    for from in [0, 7, 50, 200, 201] {
        streams.push((from, Vec::new(), site.stream(&path(from))));
    }
    let streamed: Vec<(u64, Vec<Value>)> =
        streams.into_iter().map(|(from, seen, mut events)| (from, [seen, events.rest()].concat())).collect();
    let listed = site.get(&format!("/api/runs/{id}/events?limit=1000")).json();
    let listed = listed.as_array().unwrap();
    let is_recorded = |event: &&Value| {
        let kind = event["type"].as_str().unwrap();
        !kind.ends_with("_delta") && kind != "gap" && kind != "tool_output"
    };
    for (n, (from, events)) in streamed.into_iter().enumerate() {
        let recorded: Vec<&Value> = events.iter().filter(is_recorded).collect();
        let expected: Vec<&Value> =
            listed.iter().filter(|event| event["seq"].as_u64().unwrap() >= from).collect();
        assert_eq!(recorded, expected, "from {from}");
        // Every number is an event or in a gap, once. What was only published is not in the journal, from which a watcher
        // reads who comes after the end.
        let mut next = from.max(1);
        for event in events.iter().filter(|_| n < early) {
            let first = if event["type"] == "gap" { &event["from"] } else { &event["seq"] };
            assert_eq!(first.as_u64().unwrap(), next, "from {from}: {event}");
            next = event["seq"].as_u64().unwrap() + 1;
        }
    }
}

#[test]
fn a_plan_starts_nothing() {
    let (project, model) = project(&[Line::text("Done.")]);
    project.write("AGENTS.md", "Always answer in verse.\n");
    let site = Site::start(&project, &["-m", &model, "--max-turns", "7"]);
    let plan = site.post("/api/plan", &json!({ "request": "Look around.", "approve": "never" }));
    assert_eq!(plan.status, 200, "{plan:?}");
    let plan = plan.json();
    assert_eq!(
        (&plan["model"], &plan["approve"], &plan["sandbox"]),
        (&json!(model), &json!("never"), &json!("off"))
    );
    assert_eq!(plan["limits"]["max_turns"], 7);
    let text = plan["prompt"].to_string();
    assert!(text.contains("Always answer in verse.") && text.contains("Look around."), "{text}");
    assert!(plan["prompt_tokens"].as_u64().unwrap() > 100, "{plan}");
    // What could not be started cannot be planned, for the same reason.
    for body in
        [json!({ "request": " " }), json!({ "workflow": "(nothing" }), json!({ "template": "absent" })]
    {
        let (plan, start) = (site.post("/api/plan", &body), site.post("/api/runs", &body));
        assert_eq!((plan.status, &plan.body), (start.status, &start.body), "{body}");
        assert!((400..500).contains(&plan.status), "{plan:?}");
    }
    let prompt = site.get("/api/prompt").json();
    assert!(prompt["sections"].to_string().contains("Always answer in verse."), "{prompt}");
    assert_eq!(site.get("/api/prompt?project=/etc").status, 400);
    assert_eq!(site.get("/api/runs").json(), json!([]));
}

#[test]
fn a_run_is_exported_for_other_tools() {
    let (project, model) = project(&[
        Line::call("read_file", json!({ "path": "notes.txt" })).usage(100, 10),
        Line::text("It says one.").usage(120, 5),
    ]);
    run(&project, &model).args(["--run-id", "origin"]).run().exits(0);
    let site = Site::start(&project, &[]);
    let export = |format: &str| site.get(&format!("/api/runs/origin/export?format={format}")).body;
    let cassette = fusee(&project).args(["runs", "export", "origin", "--cassette"]).run().exits(0);
    assert_eq!(export("cassette"), cassette.stdout);
    let trajectory = fusee(&project).args(["bench", "export", "origin"]).run().exits(0);
    assert_eq!(export("atif"), trajectory.stdout);
    assert_eq!(site.get("/api/runs/origin/export?format=pdf").status, 400);
}
