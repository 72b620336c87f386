//! A client of `fusee mcp` or `fusee acp` that sends requests and never reads an answer: what it can make the process hold is
//! bounded, because nothing more is read from it.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fusee_testkit::project::Project;
use serde_json::{Value, json};

use crate::support::binary;

/// Bytes of requests, far more than a pipe and every buffer on the way hold.
const FLOOD: usize = 200 << 20;

fn start(project: &Project, command: &str) -> Child {
    Command::new(binary())
        .args([command, "--model", &project.script(&[])])
        .env_clear()
        .envs(project.environment())
        .current_dir(project.dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Resident memory in bytes.
fn memory(child: &Child) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

fn flood(command: &str, hello: &Value, request: &Value) {
    let project = Project::new();
    let mut child = start(&project, command);
    let mut input = child.stdin.take().unwrap();
    input.write_all(format!("{hello}\n").as_bytes()).unwrap();
    let written = Arc::new(AtomicUsize::new(0));
    let (count, mut request) = (Arc::clone(&written), request.clone());
    let writer = std::thread::spawn(move || {
        for id in 1_u32.. {
            request["id"] = json!(id);
            let line = format!("{request}\n");
            if count.load(Ordering::Relaxed) >= FLOOD || input.write_all(line.as_bytes()).is_err() {
                return;
            }
            count.fetch_add(line.len(), Ordering::Relaxed);
        }
    });
    // The writer is blocked once nothing was taken from it for some time.
    let (mut last, mut since) = (0, Instant::now());
    while !writer.is_finished() && since.elapsed() < Duration::from_secs(3) {
        let now = written.load(Ordering::Relaxed);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let (taken, held) = (written.load(Ordering::Relaxed), memory(&child));
    child.kill().unwrap();
    child.wait().unwrap();
    writer.join().unwrap();
    assert!(taken < FLOOD, "all {taken} bytes were read");
    assert!(held < 150 << 20, "{held} bytes are held after {taken} bytes of requests");
}

#[test]
fn a_client_of_mcp_that_never_reads_is_not_read_either() {
    let hello = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        },
    });
    flood("mcp", &hello, &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
}

#[test]
fn a_client_of_acp_that_never_reads_is_not_read_either() {
    let hello =
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": 1 } });
    flood("acp", &hello, &hello);
}
