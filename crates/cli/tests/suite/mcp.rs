//! Tools of MCP servers in a run: over stdio and HTTP, exits and restarts, and which servers a project may
//! not start.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::{fusee, run_json};

/// A server that echoes its input, can exit, and offers a tool that is too large to use.
const SERVER: &str = r#"
import json, os, sys
def send(message): sys.stdout.write(json.dumps(message) + "\n"); sys.stdout.flush()
sys.stderr.write("a line that is no message\n")
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message: continue
    method, answer = message.get("method"), None
    if method == "initialize":
        answer = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
    elif method == "tools/list":
        send({"jsonrpc": "2.0", "id": "s1", "method": "ping"})
        answer = {"tools": [
            {"name": "say", "description": "Says it.", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}, "annotations": {"readOnlyHint": True}},
            {"name": "die", "inputSchema": {"type": "object"}},
            {"name": "hidden", "inputSchema": {"type": "object"}},
            {"name": "huge", "inputSchema": {"type": "object", "description": "x" * 20000}},
        ]}
    elif method == "tools/call":
        name, arguments = message["params"]["name"], message["params"]["arguments"]
        if name == "die": os._exit(3)
        text = arguments["text"] + " " + os.environ.get("TOKEN", "-") + " " + str(os.getpid() > 0)
        answer = {"content": [{"type": "text", "text": text}]}
    if method is not None and answer is not None: send({"jsonrpc": "2.0", "id": message["id"], "result": answer})
    elif method is not None: send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "what?"}})
"#;

fn with_user_settings(project: Project, text: &str) -> Project {
    let folder = project.home().join(".config/fusee");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), text).unwrap();
    project
}

fn contents(events: &[Value]) -> Vec<String> {
    of_type(events, "tool_result")
        .iter()
        .map(|result| result["content"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_programs_tools_are_used_and_it_is_started_again_when_it_ends() {
    let settings = "[mcp.test]\ncommand = \"python3\"\nargs = [\"server.py\"]\nenv = { TOKEN = \"$MY_VALUE\" }\nblock = [\"hidden\"]\n";
    let project = with_user_settings(Project::new().with("server.py", SERVER), settings);
    let script = project.script(&[
        Line::call("test_say", json!({"text": "one"})),
        Line::call("test_die", json!({})),
        Line::call("mcp__test__say", json!({"text": "two"})),
        Line::call("test_hidden", json!({})),
        Line::text("Done."),
    ]);
    let ran =
        run_json(&project, &script).args(["--run-id", "r"]).env("MY_VALUE", "a-value-of-mine").run().exits(0);
    assert!(ran.stderr.contains("skipped `huge`: its schema has 20"), "{}", ran.stderr);
    let said = contents(&ran.events());
    // Variables passed to the server's environment are treated as secrets.
    assert_eq!(said[0], "one [redacted] True");
    assert!(said[1].contains("it ended with code 3; it said: a line that is no message"), "{}", said[1]);
    assert_eq!(said[2], "two [redacted] True");
    assert!(said[3].contains("There is no tool `test_hidden`"), "{}", said[3]);
    // The replay needs no server.
    std::fs::remove_file(project.dir().join("server.py")).unwrap();
    fusee(&project).args(["replay", "r"]).run().exits(0);
    project.assert_no_process_left();
}

#[test]
fn a_server_that_cannot_be_started_is_told_and_the_run_goes_on() {
    let settings =
        "[mcp.gone]\ncommand = \"no-such-program-here\"\n[mcp.off]\nurl = \"http://127.0.0.1:9/mcp\"\n";
    let project = with_user_settings(Project::new(), settings);
    let script = project.script(&[Line::text("Done.")]);
    let ran = run_json(&project, &script).run().exits(0);
    assert!(
        ran.stderr.contains("the MCP server `gone` cannot be used: the program was not found"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("the MCP server `off` cannot be used: http://127.0.0.1:9/mcp cannot be reached"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_stranger_cannot_have_a_program_started() {
    let project = Project::new()
        .with("evil.sh", "echo x > started\n")
        .with("fusee.toml", "[mcp.evil]\ncommand = [\"sh\", \"evil.sh\"]\n");
    let script = project.script(&[Line::text("Done.")]);
    let ran = run_json(&project, &script).run().exits(0);
    assert!(ran.stderr.contains("`mcp.evil` is ignored"), "{}", ran.stderr);
    assert!(!project.dir().join("started").exists());
}

/// Starts an HTTP server: the first answer as JSON, later ones as events, with a session. Counts the sessions that are
/// ended.
fn address() -> (String, Arc<AtomicUsize>) {
    let ended = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ended);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().take(50) {
            let (mut stream, ended) = (stream.unwrap(), Arc::clone(&counted));
            std::thread::spawn(move || while answer(&mut stream, &ended).is_some() {});
        }
    });
    (url, ended)
}

fn answer(stream: &mut std::net::TcpStream, ended: &AtomicUsize) -> Option<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    if head.starts_with("delete") {
        let is_ours =
            head.contains("mcp-session-id: s-1") && head.contains("mcp-protocol-version: 2025-06-18");
        ended.fetch_add(usize::from(is_ours), Ordering::SeqCst);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()?;
        return Some(());
    }
    let length: usize = head.split("content-length: ").nth(1)?.split("\r\n").next()?.parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    let message: Value = serde_json::from_slice(&body).unwrap();
    let known = head.contains("mcp-session-id: s-1");
    let result = match message["method"].as_str() {
        Some("initialize") => {
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}})
        }
        Some("tools/list") => json!({"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}),
        Some("tools/call") => {
            json!({"content": [{"type": "text", "text": format!("{known} {} {}", head.contains("x-key: k-123456789"), head.contains("mcp-protocol-version: 2025-06-18"))}]})
        }
        _ => {
            stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").ok()?;
            return Some(());
        }
    };
    let text = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    let (kind, text) = if message["method"] == "tools/call" {
        (
            "text/event-stream",
            format!(
                "event: message\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}}\n\nevent: message\ndata: {text}\n\n"
            ),
        )
    } else {
        ("application/json", text)
    };
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nmcp-session-id: s-1\r\ncontent-length: {}\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(answer.as_bytes()).ok()
}

#[test]
fn an_addresss_tools_are_used_within_a_session() {
    let (url, ended) = address();
    let settings = format!("[mcp.web]\nurl = \"{url}\"\nheaders = {{ X-Key = \"k-123456789\" }}\n");
    let project = with_user_settings(Project::new(), &settings);
    let script = project.script(&[Line::call("web_add", json!({})), Line::text("Done.")]);
    let ran = run_json(&project, &script).run().exits(0);
    assert_eq!(contents(&ran.events()), ["true true true"], "{}", ran.stderr);
    assert!(!ran.stdout.contains("k-123456789"));
    assert_eq!(ended.load(Ordering::SeqCst), 1);
}

#[test]
fn the_runs_of_a_conversation_share_the_servers_tools() {
    let settings = "[mcp.test]\ncommand = \"python3\"\nargs = [\"server.py\"]\n";
    let project = with_user_settings(Project::new().with("server.py", SERVER), settings);
    let script = project.script(&[
        Line::call("test_say", json!({"text": "one"})),
        Line::text("First."),
        Line::call("test_say", json!({"text": "two"})),
        Line::text("Second."),
    ]);
    let talk =
        |lines: &str| fusee(&project).args(["--plain", "--model", &script, "--sandbox", "off"]).stdin(lines);
    let outcome = talk("say one\nsay two\n").run().exits(0);
    assert_eq!(outcome.stdout, "First.\nSecond.\n", "{}", outcome.stderr);
    assert_eq!(outcome.stderr.matches("> test_say").count(), 2, "{}", outcome.stderr);
    let listed = fusee(&project).args(["runs", "--json"]).run().exits(0).stdout;
    let runs: Vec<Value> = serde_json::from_str(&listed).unwrap();
    std::fs::remove_file(project.dir().join("server.py")).unwrap();
    for (run, said) in runs.iter().zip(["two - True", "one - True"]) {
        let id = run["run"].as_str().unwrap();
        let shown = fusee(&project).args(["show", "--json", id]).run().exits(0);
        let events = fusee_testkit::events::read_checked(&shown.stdout, fusee_testkit::events::Part::Whole);
        assert_eq!(contents(&events), [said]);
        fusee(&project).args(["replay", id]).run().exits(0);
    }
    project.assert_no_process_left();
}

#[test]
fn a_template_may_name_the_tools_of_a_server() {
    let settings = "[mcp.test]\ncommand = \"python3\"\nargs = [\"server.py\"]\n";
    let template = "<task name=\"speak\" type=\"atomic\"><description>d</description><instructions>i</instructions>\
                    <tools allow=\"test_say\"/></task>";
    let project = Project::new().with("server.py", SERVER).with(".fusee/templates/speak.xml", template);
    let project = with_user_settings(project, settings);
    let script = project.script(&[Line::call("test_say", json!({"text": "one"})), Line::text("Done.")]);
    let task = |project: &Project| fusee(project).args(["task", "speak", "-m", &script, "--json"]).run();
    let result: Value = serde_json::from_str(&task(&project).exits(0).stdout).unwrap();
    assert_eq!((&result["status"], &result["content"]), (&json!("COMPLETE"), &json!("Done.")), "{result}");
    // Without the server the tool is missing, which is reported before any model request.
    let project = with_user_settings(project, "");
    let refused: Value = serde_json::from_str(&task(&project).exits(2).stdout).unwrap();
    assert_eq!(refused["notes"]["error"]["reason"], "configuration_error", "{refused}");
    assert!(refused["notes"]["error"]["message"].as_str().unwrap().contains("`test_say`"), "{refused}");
}

/// A server that answers every call with an error of a megabyte, and `initialize` only after some seconds.
const HOSTILE: &str = r#"
import json, sys, time
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message: continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        time.sleep(float(sys.argv[1]))
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
    elif message["method"] == "tools/list":
        answer["result"] = {"tools": [{"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]}
    else:
        answer["error"] = {"code": -1, "message": "no " * 400000}
    print(json.dumps(answer), flush=True)
"#;

fn hostile(delay: &str, timeout_s: u32) -> Project {
    let settings = format!(
        "[mcp.test]\ncommand = \"python3\"\nargs = [\"server.py\", \"{delay}\"]\ntimeout_s = {timeout_s}\n"
    );
    with_user_settings(Project::new().with("server.py", HOSTILE), &settings)
}

#[test]
fn an_error_message_of_a_server_is_bounded() {
    let project = hostile("0", 30);
    let script = project.script(&[Line::call("test_look", json!({})), Line::text("Done.")]);
    let result = contents(&run_json(&project, &script).run().exits(0).events()).remove(0);
    assert!(result.starts_with("The server `test` refused: no no no"), "{result:.80}");
    assert!(result.len() < 3000 && result.contains("(1200000 bytes)"), "{} bytes", result.len());
}

#[test]
fn a_server_that_is_slow_to_start_is_given_the_configured_time_only() {
    let project = hostile("50", 1);
    let script = project.script(&[Line::text("Done.")]);
    let started = std::time::Instant::now();
    let ran = run_json(&project, &script).run().exits(0);
    assert!(ran.stderr.contains("`test` cannot be used: no answer within 1 s"), "{}", ran.stderr);
    assert!(started.elapsed() < std::time::Duration::from_secs(40), "{:?}", started.elapsed());
}

#[test]
fn a_new_server_delays_a_start_by_ten_seconds_at_most() {
    let project = hostile("50", 60);
    let started = std::time::Instant::now();
    let ran = run_json(&project, &project.script(&[Line::text("Done.")])).run().exits(0);
    assert!(ran.stderr.contains("`test` cannot be used: it is not ready after 10 s"), "{}", ran.stderr);
    assert!(started.elapsed() < std::time::Duration::from_secs(40), "{:?}", started.elapsed());
    project.assert_no_process_left();
}

#[test]
fn a_server_that_was_quick_once_never_delays_a_start_again() {
    let project = hostile("0", 60);
    let done = || run_json(&project, &project.script(&[Line::text("Done.")]));
    done().run().exits(0);
    // The same server, now as slow as a download.
    project.write("server.py", &HOSTILE.replace("sys.argv[1]", "'50'"));
    let started = std::time::Instant::now();
    let ran = done().run().exits(0);
    assert!(
        ran.stderr.contains("`test` is slow to start; using the tools it offered last time"),
        "{}",
        ran.stderr
    );
    assert!(started.elapsed() < std::time::Duration::from_secs(40), "{:?}", started.elapsed());
}

#[test]
fn a_revision_that_nobody_knows_is_refused() {
    let project = hostile("0", 30);
    project.write("server.py", &HOSTILE.replace("2025-06-18", "1999-01-01"));
    let ran = run_json(&project, &project.script(&[Line::text("Done.")])).run().exits(0);
    assert!(ran.stderr.contains("`test` cannot be used: it speaks revision `1999-01-01`"), "{}", ran.stderr);
}

#[test]
fn a_server_that_calls_its_tool_read_only_is_asked_about_all_the_same() {
    let project = hostile("0", 30);
    let script = project.script(&[Line::call("test_look", json!({})), Line::text("Done.")]);
    let events = run_json(&project, &script).args(["--approve", "ask"]).run().events();
    assert_eq!(of_type(&events, "approval_requested").len(), 1, "{events:#?}");
}
