//! The blob store in a bucket of an S3 server (moto, from PyPI).

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::json;

use crate::engine::{Engine, free_port, fusee, installed, worker_with};

/// An S3 server with a bucket.
struct Storage {
    child: Child,
    url: String,
}

impl Storage {
    fn start() -> Self {
        let port = free_port();
        let child = Command::new(installed().join("s3/bin/moto_server"))
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("moto starts");
        let storage = Self { child, url: format!("http://127.0.0.1:{port}") };
        let begun = Instant::now();
        while ureq::put(format!("{}/fusee", storage.url)).send_empty().is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "moto does not answer");
            std::thread::sleep(Duration::from_millis(100));
        }
        storage
    }

    fn variables(&self) -> [(&'static str, &str); 5] {
        [
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test-secret-0123456789"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ENDPOINT_URL", &self.url),
            ("AWS_ALLOW_HTTP", "true"),
        ]
    }

    fn keys(&self) -> String {
        let listed = ureq::get(format!("{}/fusee?list-type=2", self.url)).call();
        listed.expect("a list").body_mut().read_to_string().expect("a text")
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs the servers that `cargo xtask suites restate` installs"]
fn workers_and_clients_share_a_bucket() {
    let (engine, storage) = (Engine::start(), Storage::start());
    let project = Project::new().with("a.txt", "a\n");
    let blobs = ["--blobs", "s3://fusee/team/one"];
    let variables = storage.variables();
    let _worker = worker_with(&project, &engine, &blobs, &variables);
    let model = project.script(&[
        Line::call("write_file", json!({"path": "new.txt", "content": "x\n".repeat(6000)})),
        Line::text("Finished."),
    ]);
    let here = |args: &[&str], blobs: &[&str]| {
        let command = fusee(&project, &engine, args).args(blobs);
        variables.iter().fold(command, |command, (name, value)| command.env(name, value)).run()
    };
    let ended = here(&["run", "--run-id", "s", "-m", &model, "x"], &blobs).exits(0);
    assert_eq!(ended.stdout, "Finished.\n");
    here(&["pull", "s"], &blobs).exits(0);
    assert_eq!(project.read("new.txt"), "x\n".repeat(6000));
    assert!(storage.keys().contains("<Key>team/one/blobs/"), "{}", storage.keys());

    let elsewhere = here(&["pull", "s"], &["--blobs", "s3://fusee/other"]).exits(1);
    assert!(elsewhere.stderr.contains("blob store s3://fusee/other"), "{}", elsewhere.stderr);
    assert!(elsewhere.stderr.contains("is missing"), "{}", elsewhere.stderr);
    let none = here(&["run", "-m", &model, "x"], &["--blobs", "s3://no-such-bucket"]).exits(1);
    assert!(none.stderr.contains("blob store s3://no-such-bucket"), "{}", none.stderr);
    let wrong = here(&["run", "-m", &model, "x"], &["--blobs", "s3:///x"]).exits(1);
    assert!(wrong.stderr.contains("s3://BUCKET/PREFIX"), "{}", wrong.stderr);
}
