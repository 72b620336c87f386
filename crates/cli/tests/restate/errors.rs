//! Engines that are not there, are something else, or lack something: each is told, and nothing is lost.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;

use crate::engine::{Engine, FUSEE, free_port, fusee, worker, worker_with};

/// Answers every request with this body.
fn impostor(status: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
        }
    });
    url
}

#[test]
#[ignore = "runs with the others of `cargo xtask suites restate`"]
fn an_engine_that_cannot_be_used_is_told_before_anything_happens() {
    let project = Project::new();
    let model = project.script(&[Line::text("never")]);
    let nowhere = format!("http://127.0.0.1:{}", free_port());
    let cases = [
        (nowhere, 4, "cannot reach the engine at http://127.0.0.1:"),
        (impostor("404 Not Found", ""), 2, "is not the admin API of a Restate server"),
        (impostor("200 OK", "<html>"), 2, "is not the admin API of a Restate server"),
        (
            impostor("200 OK", r#"{"version":"1.3.2","ingress_endpoint":"http://127.0.0.1:1/"}"#),
            2,
            "has version 1.3.2; 1.5 or newer is needed",
        ),
    ];
    for (url, code, message) in cases {
        let run = project.command(FUSEE).args(["run", "--engine", &url, "-m", &model, "x"]).run().exits(code);
        assert!(run.stderr.contains(message) && run.stderr.contains("error: "), "{}", run.stderr);
        let worker = project.command(FUSEE).args(["worker", "--engine", &url]).run().exits(code);
        assert!(worker.stderr.contains(message), "{}", worker.stderr);
    }
    let missing = project.command(FUSEE).args(["pull", "x"]).run().exits(2);
    assert!(missing.stderr.contains("missing --engine URL"), "{}", missing.stderr);
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn a_missing_worker_run_key_or_blob_is_told() {
    let engine = Engine::start();
    let project = Project::new().with("a.txt", "a\n");
    let model = project.script(&[Line::text("ok")]);
    let alone = fusee(&project, &engine, &["run", "-m", &model, "x"]).run().exits(4);
    assert!(alone.stderr.contains("has no fusee workers"), "{}", alone.stderr);

    let _worker = worker(&project, &engine);
    let unknown = fusee(&project, &engine, &["show", "nothing"]).run().exits(2);
    assert!(unknown.stderr.contains("no such run on the engine: `nothing`"), "{}", unknown.stderr);
    fusee(&project, &engine, &["run", "--run-id", "r", "-m", &model, "x"]).run().exits(0);
    let elsewhere = project.home().join("other-blobs");
    let elsewhere = elsewhere.display().to_string();
    let lacking = fusee(&project, &engine, &["pull", "r", "--blobs", &elsewhere]).run().exits(1);
    assert!(
        lacking.stderr.contains("is missing") && lacking.stderr.contains("--blobs"),
        "{}",
        lacking.stderr
    );

    // The client has a key, the worker has none: the run ends with the reason.
    let keyed = fusee(&project, &engine, &["run", "-m", "anthropic:claude-x", "x"]);
    let keyed = keyed.env("ANTHROPIC_API_KEY", "sk-client-only-0123456789").run();
    assert!(keyed.stderr.contains("the worker cannot start the run"), "{}", keyed.stderr);
    assert_eq!(keyed.code, Some(2), "{}", keyed.stderr);
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn a_worker_without_the_blobs_is_told_and_the_run_ends_on_one_that_has_them() {
    let engine = Engine::start();
    let project = Project::new().with("a.txt", "a\n");
    let model = project.script(&[
        Line::call("write_file", serde_json::json!({"path": "b.txt", "content": "b\n"})),
        Line::text("Finished."),
    ]);
    let elsewhere = project.home().join("other-blobs").display().to_string();
    let lacking = worker_with(&project, &engine, &["--allow-unsandboxed", "--blobs", &elsewhere], &[]);
    let running = fusee(&project, &engine, &["run", "--run-id", "r", "-m", &model, "x"]).start();
    let begun = std::time::Instant::now();
    while !running.stderr_so_far().contains("is missing") {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{}", running.stderr_so_far());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let told = running.stderr_so_far();
    assert!(told.contains("warning: run r waits") && told.contains("--blobs"), "{told}");

    let _having = worker(&project, &engine);
    drop(lacking);
    let ended = running.wait().exits(0);
    assert_eq!(ended.stdout, "Finished.\n");
    fusee(&project, &engine, &["pull", "r"]).run().exits(0);
    assert_eq!(project.read("b.txt"), "b\n");
}
