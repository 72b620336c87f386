//! `--patience`: how long run, task, review and resume wait for a model that cannot be reached.

use std::time::Duration;

use fusee_testkit::events::of_type;
use fusee_testkit::project::{Command, Project};
use fusee_testkit::server::{ClosedPort, Message, Reply, Script, Server};
use rustix::process::Signal;

use crate::support::{fusee, run_http, with_key};

const TEMPLATE: &str = "<task name=\"say\" type=\"atomic\"><description>Say it</description>\
    <instructions>Say something.</instructions></task>";

/// A project in which retries alone would be over at once, or take minutes.
fn project(max_retries: u32, backoff_ms: u32) -> Project {
    let text = format!("[retry_policy]\nmax_retries = {max_retries}\nbackoff_ms = {backoff_ms}\n");
    Project::new()
        .with("fusee.toml", &text)
        .with("a.py", "x = 1\n")
        .with(".fusee/templates/say.xml", TEMPLATE)
}

fn command<'p>(project: &'p Project, args: &[&str], url: &str) -> Command<'p> {
    with_key(fusee(project)).args(args).args(["--json", "--model", "openai:some", "--base-url", url])
}

#[test]
fn it_bounds_the_wait_of_run_task_and_review() {
    for args in [&["run", "Say something."][..], &["task", "say"], &["review", "a.py"]] {
        for (max_retries, backoff_ms) in [(0, 100), (1000, 60_000)] {
            let (project, port) = (project(max_retries, backoff_ms), ClosedPort::reserve());
            let outcome = command(&project, args, &port.base_url()).args(["--patience", "2"]).run().exits(4);
            let elapsed = outcome.elapsed;
            assert!(elapsed >= Duration::from_secs(2) && elapsed < Duration::from_secs(20), "{elapsed:?}");
        }
    }
}

#[test]
fn a_model_that_comes_back_in_time_is_used_and_no_patience_is_one_attempt() {
    let (project, port) = (project(0, 20), ClosedPort::reserve());
    let mut running = run_http(&project, &port.base_url()).args(["--patience", "60"]).start();
    running.wait_for_stdout("retry", |out| out.contains("\"type\":\"retry\""));
    let _server = port.open(Message::text("Here."));
    running.wait().exits(0);
    let outcome = command(&project, &["run", "x"], &ClosedPort::reserve().base_url())
        .args(["--patience", "0"])
        .run()
        .exits(4);
    assert_eq!(of_type(&outcome.events(), "retry").len(), 0, "{}", outcome.stdout);
    let outcome = command(&project, &["run", "x"], "http://127.0.0.1:1/v1").env("FUSEE_PATIENCE_S", "1");
    assert!(outcome.run().exits(4).elapsed >= Duration::from_secs(1));
}

#[test]
fn a_server_that_fails_is_waited_for_as_well_but_not_beyond_what_it_asks_for() {
    let project = project(0, 100);
    let fails = Server::start(Script::new().then_always(Reply::error(503, "out of order")));
    let outcome =
        command(&project, &["run", "x"], &fails.base_url()).args(["--patience", "1"]).run().exits(4);
    assert!(fails.requests().len() > 2 && outcome.elapsed >= Duration::from_secs(1), "{:?}", outcome.elapsed);
    let busy = Server::start([Reply::error(429, "busy").header("retry-after", "600")]);
    let outcome = command(&project, &["run", "x"], &busy.base_url()).args(["--patience", "5"]).run().exits(4);
    assert!(outcome.elapsed < Duration::from_secs(4), "{:?}", outcome.elapsed);
    let error = || Reply::error(503, "the model is loading");
    let loading = Server::start(Script::new().then_always(error()));
    let outcome =
        command(&project, &["run", "x"], &loading.base_url()).args(["--patience", "1"]).run().exits(4);
    assert!(outcome.elapsed < Duration::from_secs(20), "{:?}", outcome.elapsed);
    assert!(outcome.stdout.contains("retrying for up to 1 s (`patience_s`)"), "{}", outcome.stdout);
}

#[test]
fn a_resume_keeps_the_patience_of_its_run_or_is_given_another() {
    let (project, port) = (project(0, 20), ClosedPort::reserve());
    let mut running =
        run_http(&project, &port.base_url()).args(["--run-id", "waits", "--patience", "300"]).start();
    running.wait_for_stdout("retry", |out| out.contains("\"type\":\"retry\""));
    running.signal(Signal::KILL);
    assert!(running.wait().was_killed());
    let mut resumed = with_key(fusee(&project)).args(["resume", "waits", "--json"]).start();
    resumed.wait_for_stdout("retry", |out| out.matches("\"type\":\"retry\"").count() > 3);
    resumed.signal(Signal::KILL);
    assert!(resumed.wait().was_killed());
    let ended =
        with_key(fusee(&project)).args(["resume", "waits", "--json", "--patience", "1"]).run().exits(4);
    assert!(ended.elapsed < Duration::from_secs(30), "{:?}", ended.elapsed);
    fusee(&project).args(["replay", "waits"]).run().exits(0);
}
