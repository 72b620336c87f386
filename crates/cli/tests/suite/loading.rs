//! A server that is still loading its model: the run waits up to the configured time and informs the user,
//! independently of the retry policy.

use std::time::Duration;

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::server::{Message, Reply, Script, Server};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{fusee, run_on, with_key};

/// The error llama.cpp sends.
fn loading() -> Reply {
    let error = json!({"code": 503, "message": "Loading model", "type": "unavailable_error"});
    Reply::json(503, &json!({ "error": error })).header("retry-after-ms", "20")
}

/// A project without retries, so that any wait is due to loading.
fn project(limit_s: u64) -> Project {
    let text = format!("loading_timeout_s = {limit_s}\n[retry_policy]\nmax_retries = 0\n");
    Project::new().with("fusee.toml", &text)
}

fn done() -> Reply {
    Message::text("Loaded and done.").stream()
}

#[test]
fn a_model_that_loads_is_waited_for_beyond_all_retries() {
    let project = project(60);
    let server = Server::start(std::iter::repeat_with(loading).take(12).chain([done()]).collect::<Script>());
    let events = run_on(&project, &server).args(["--run-id", "waits"]).run().exits(0).events();
    let tries: Vec<&Value> = of_type(&events, "retry").iter().map(|retry| &retry["attempt"]).collect();
    assert_eq!(tries, (1..=12).map(|n| json!(n)).collect::<Vec<_>>().iter().collect::<Vec<_>>());
    let warnings = of_type(&events, "warning");
    let output: Vec<&Value> = warnings.iter().map(|warning| &warning["message"]).collect();
    let expected = "the server is still loading its model; retrying for up to 60 s (`loading_timeout_s`)";
    assert_eq!(output, [expected], "once, however long it takes");
    fusee(&project).args(["replay", "waits"]).run().exits(0);
}

#[test]
fn a_model_that_never_loads_ends_the_task_with_what_allows_more() {
    let project = project(1);
    let server = Server::start(Script::new().then_always(loading()));
    let outcome = run_on(&project, &server).run().exits(4);
    assert!(outcome.elapsed < Duration::from_secs(20), "{:?}", outcome.elapsed);
    let events = outcome.events();
    let message = events.last().unwrap()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("Loading model (") && message.contains("`loading_timeout_s`"), "{message}");
    assert!(of_type(&events, "retry").len() > 5, "{}", outcome.stdout);
}

#[test]
fn a_failure_after_the_loading_has_all_its_retries() {
    let project = Project::new().with("fusee.toml", "[retry_policy]\nmax_retries = 1\nbackoff_ms = 10\n");
    let fault = || Reply::error(500, "oops");
    let server = Server::start([loading(), loading(), fault(), done()]);
    run_on(&project, &server).run().exits(0);
    let server = Server::start([loading(), fault(), loading(), fault(), done()]);
    run_on(&project, &server).run().exits(4);
}

#[test]
fn the_wait_can_be_cancelled_and_survives_a_kill() {
    let slow = || Reply::error(503, "the model is loading").header("retry-after", "600");
    let waits = |project: &Project, server: &Server| {
        let mut running = run_on(project, server).args(["--run-id", "waits"]).start();
        running.wait_for_stdout("retry", |out| out.contains("\"type\":\"retry\""));
        running
    };
    let cancelled = project(3600);
    let running = waits(&cancelled, &Server::start([slow()]));
    running.signal(Signal::INT);
    running.wait().exits(130);

    let killed = project(60);
    let server = Server::start(std::iter::repeat_with(loading).take(60).chain([done()]).collect::<Script>());
    let running = waits(&killed, &server);
    running.signal(Signal::KILL);
    assert!(running.wait().was_killed());
    let resumed = with_key(fusee(&killed).args(["resume", "waits", "--json"])).run().exits(0);
    resumed.events_after_resume();
    fusee(&killed).args(["replay", "waits"]).run().exits(0);
}
