//! What a worker refuses: clients that want more than its sandbox gives, engines without its key, tenants at their
//! limit.

use std::time::{Duration, Instant};

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Server};
use serde_json::{Value, json};

use crate::engine::{Engine, FUSEE, free_port, fusee, worker_with};

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn a_client_cannot_turn_the_sandbox_of_a_worker_off_or_open_it() {
    let engine = Engine::start();
    let project = Project::new();
    let outside = project.home().join("effects");
    let effect = json!({"command": format!("echo x >> {}", outside.display())});
    let model = project.script(&[Line::call("shell", effect), Line::text("Finished.")]);
    let _worker = worker_with(&project, &engine, &[], &[]);
    let refused = fusee(&project, &engine, &["run", "--sandbox", "off", "-m", &model, "x"]).run().exits(2);
    assert!(refused.stderr.contains("--allow-unsandboxed"), "{}", refused.stderr);
    let open = project.home().display().to_string();
    let config = project.home().join(".config/fusee");
    std::fs::create_dir_all(&config).expect("a folder");
    std::fs::write(config.join("config.toml"), format!("[sandbox]\nwrite = [{open:?}]\n")).expect("written");
    let refused = fusee(&project, &engine, &["run", "-m", &model, "x"]).run().exits(2);
    assert!(refused.stderr.contains("paths outside the workspace"), "{}", refused.stderr);
    std::fs::remove_file(config.join("config.toml")).expect("removed");
    fusee(&project, &engine, &["run", "-m", &model, "x"]).run().exits(0);
    assert!(!outside.exists(), "the sandbox holds");
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn a_worker_does_not_send_its_key_to_a_server_that_a_client_names() {
    let engine = Engine::start();
    let project = Project::new();
    let server = Server::start(vec![Message::text("Finished.").stream()]);
    let _worker = worker_with(&project, &engine, &[], &[("OPENAI_API_KEY", "sk-of-the-worker-0123456789")]);
    let url = server.base_url();
    let run = ["run", "-m", "openai:m", "--api", "chat", "--base-url", &url, "x"];
    fusee(&project, &engine, &run).run().exits(0);
    let requests = format!("{:?}", server.requests());
    assert!(!requests.contains("sk-of-the-worker"), "{requests}");
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn a_worker_with_a_key_serves_only_the_engine_that_has_it() {
    let project = Project::new();
    let model = project.script(&[Line::text("ok")]);
    let (engine, key) = Engine::start_signing();
    let _worker = worker_with(&project, &engine, &["--identity-key", &key], &[]);
    fusee(&project, &engine, &["run", "-m", &model, "x"]).run().exits(0);

    let stranger = Engine::start();
    let listen = format!("127.0.0.1:{}", free_port());
    let worker = |key: &str| {
        let args = ["worker", "--engine", &stranger.url(), "--listen", &listen, "--identity-key", key];
        project.command(FUSEE).args(args).run()
    };
    let refused = worker(&key).exits(1);
    assert!(refused.stderr.contains("the engine refused the request"), "{}", refused.stderr);
    assert!(refused.stderr.contains("401"), "{}", refused.stderr);
    assert!(refused.stderr.contains("the public key that the engine logs"), "{}", refused.stderr);
    let wrong = worker("publickeyv1_x").exits(2);
    assert!(wrong.stderr.contains("is not a request identity key"), "{}", wrong.stderr);
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn runs_of_a_tenant_at_its_limit_wait_and_can_be_cancelled() {
    let engine = Engine::start();
    let project = Project::new();
    let _worker = worker_with(&project, &engine, &["--tenant-limit", "1"], &[]);
    let slow = project.script(&[Line::text("slow").delay_ms(60_000)]);
    let start = |run: &str, tenant: &str| {
        let args = ["run", "--json", "--run-id", run, "--tenant", tenant, "-m", &slow, "x"];
        fusee(&project, &engine, &args).start()
    };
    let mut first = start("first", "a");
    first.wait_for_stdout("a turn", |text| text.contains("turn_start"));
    let second = start("second", "a");
    let mut other = start("other", "b");
    other.wait_for_stdout("a turn", |text| text.contains("turn_start"));
    let mut third = start("third", "a");
    let begun = Instant::now();
    let listed = loop {
        let listed = fusee(&project, &engine, &["runs", "--json"]).run().exits(0);
        let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
        if listed
            .as_array()
            .is_some_and(|runs| runs.len() == 4 && runs.iter().all(|run| !run["tenant"].is_null()))
        {
            break listed;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{listed}");
    };
    assert!(listed.to_string().contains(r#""tenant":"b""#), "{listed}");
    assert!(!second.stdout_so_far().contains("turn_start"), "it waits");
    fusee(&project, &engine, &["cancel", "second"]).run().exits(0);
    let ended = second.wait().exits(130);
    assert!(ended.stdout.contains(r#""status":"cancelled""#), "{}", ended.stdout);
    assert!(!third.stdout_so_far().contains("turn_start"), "it waits");
    fusee(&project, &engine, &["cancel", "first"]).run().exits(0);
    third.wait_for_stdout("its turn", |text| text.contains("turn_start"));
    for run in ["third", "other"] {
        fusee(&project, &engine, &["cancel", run]).run().exits(0);
    }
    first.wait().exits(130);
    third.wait().exits(130);
    other.wait().exits(130);
}
