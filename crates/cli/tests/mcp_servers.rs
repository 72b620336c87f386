//! The product with published MCP servers: the reference servers from npm, over stdio and over HTTP. `cargo
//! xtask test` installs them and runs these tests; a plain test run lists them as ignored.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test panics when it fails, and does not go through the product's seams"
)]

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use fusee_testkit::events::of_type;
use fusee_testkit::project::{Outcome, Project};
use fusee_testkit::script::Line;
use serde_json::{Value, json};

/// Path of an installed server.
fn server(name: &str) -> String {
    let folder = std::env::var_os("FUSEE_MCP_SERVERS")
        .expect("FUSEE_MCP_SERVERS: run `cargo xtask test`, which installs them");
    PathBuf::from(folder).join("node_modules/.bin").join(name).display().to_string()
}

/// Creates a project with these servers in the user's configuration.
fn with_servers(settings: &str) -> Project {
    let project = Project::new();
    let folder = project.home().join(".config/fusee");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    project
}

fn run(project: &Project, lines: &[Line]) -> Outcome {
    let script = project.script(lines);
    let line = ["run", "x", "--json", "--sandbox", "off", "--run-id", "r", "--model", &script];
    project.command(env!("CARGO_BIN_EXE_fusee")).args(line).limit(Duration::from_secs(90)).run().exits(0)
}

fn contents(events: &[Value]) -> Vec<String> {
    let content = |result: &&Value| result["content"].as_str().unwrap().to_owned();
    of_type(events, "tool_result").iter().map(content).collect()
}

#[test]
#[ignore = "needs the servers that `cargo xtask test` installs"]
fn the_server_with_everything_is_used_over_its_streams() {
    let settings = format!(
        "[mcp.every]\ncommand = {:?}\nargs = [\"stdio\"]\nblock = [\"get-env\"]\n",
        server("mcp-server-everything")
    );
    let project = with_servers(&settings);
    let ran = run(
        &project,
        &[
            Line::call("every_echo", json!({"message": "hello"})),
            Line::call("every_get-sum", json!({"a": 2, "b": 40})),
            Line::call("every_get-structured-content", json!({"location": "Chicago"})),
            Line::call("every_get-tiny-image", json!({})),
            Line::call("every_get-sum", json!({"a": "two"})),
            Line::call("every_get-env", json!({})),
            Line::text("Done."),
        ],
    );
    let said = contents(&ran.events());
    assert_eq!(said[..2], ["Echo: hello", "The sum of 2 and 40 is 42."]);
    assert!(said[2].contains("temperature") && said[2].contains("humidity"), "{}", said[2]);
    // An image is described, not dumped.
    assert!(said[3].contains("image") && said[3].len() < 2_000, "{}", said[3]);
    assert!(said[4].contains('b'), "{}", said[4]);
    assert!(said[5].contains("There is no tool `every_get-env`"), "{}", said[5]);
    project.command(env!("CARGO_BIN_EXE_fusee")).args(["replay", "r"]).run().exits(0);
    project.assert_no_process_left();
}

#[test]
#[ignore = "needs the servers that `cargo xtask test` installs"]
fn the_server_of_files_works_where_it_may_and_says_where_it_may_not() {
    let server = server("mcp-server-filesystem");
    let project = with_servers("");
    let settings = format!("[mcp.files]\ncommand = {server:?}\nargs = [{:?}]\n", project.dir());
    std::fs::write(project.home().join(".config/fusee/config.toml"), settings).unwrap();
    project.write("a.txt", "one\ntwo\n");
    let path = |name: &str| project.dir().canonicalize().unwrap().join(name).display().to_string();
    let edits = json!([{"oldText": "two", "newText": "three"}]);
    let ran = run(
        &project,
        &[
            Line::call("files_read_text_file", json!({"path": path("a.txt"), "head": 1})),
            Line::call("files_edit_file", json!({"path": path("a.txt"), "edits": edits})),
            Line::call("files_write_file", json!({"path": path("new.txt"), "content": "made\n"})),
            Line::call("files_list_directory", json!({"path": path("")})),
            Line::call("files_read_text_file", json!({"path": "/etc/hostname"})),
            Line::text("Done."),
        ],
    );
    let events = ran.events();
    let said = contents(&events);
    assert_eq!(said[0], "one");
    assert_eq!((project.read("a.txt"), project.read("new.txt")), ("one\nthree\n".into(), "made\n".into()));
    assert!(said[3].contains("[FILE] a.txt") && said[3].contains("[FILE] new.txt"), "{}", said[3]);
    assert!(said[4].contains("Access denied"), "{}", said[4]);
    assert_eq!(of_type(&events, "tool_result")[4]["ok"], json!(false));
    project.command(env!("CARGO_BIN_EXE_fusee")).args(["replay", "r"]).run().exits(0);
    project.assert_no_process_left();
}

/// A listening server process, killed on drop.
struct Listening(Child);

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs the servers that `cargo xtask test` installs"]
fn the_server_with_everything_is_used_over_http() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let child = Process::new(server("mcp-server-everything"))
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _listening = Listening(child);
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the server did not come up");
        std::thread::sleep(Duration::from_millis(50));
    }
    let project = with_servers(&format!("[mcp.every]\nurl = \"http://127.0.0.1:{port}/mcp\"\n"));
    let ran = run(
        &project,
        &[
            Line::call("every_echo", json!({"message": "over http"})),
            Line::call("every_get-sum", json!({"a": 1, "b": 2})),
            Line::text("Done."),
        ],
    );
    assert_eq!(contents(&ran.events()), ["Echo: over http", "The sum of 1 and 2 is 3."]);
}
