//! Many sessions of one `fusee acp`.

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::json;

use crate::acp::{begin, connect, open};

/// Sessions of the test.
const SESSIONS: usize = 100;
/// Prompts of each session.
const ROUNDS: usize = 3;
/// Maximum kilobytes of memory.
const MAX_KB: u64 = 100 * 1024;

/// A field of `/proc/PID/status`, in kilobytes.
fn memory(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// All sessions work at once, each in a project of its own. The memory of the process itself is compared: the code of a
/// binary without optimization takes twice the space of the released one.
#[test]
fn a_hundred_sessions_need_less_than_a_hundred_megabytes() {
    let home = Project::new();
    let turn = [
        Line::call("read_file", json!({"path": "a.txt"})),
        Line::call("shell", json!({"command": "echo hi"})),
        Line::text(&"Done. ".repeat(200)),
    ];
    // Sessions take replies in any order, and each ends its turn with a text.
    let mut lines = Vec::new();
    for _ in 0..SESSIONS * ROUNDS {
        lines.extend(turn.clone());
    }
    lines.extend((0..SESSIONS).map(|_| turn[2].clone()));
    let mut peer = connect(&home, &home.script(&lines), &[]);
    let projects: Vec<Project> =
        (0..SESSIONS).map(|_| Project::new().with("a.txt", &"x\n".repeat(100))).collect();
    let sessions: Vec<String> = projects.iter().map(|project| open(&mut peer, project)).collect();
    for _ in 0..ROUNDS {
        let prompts: Vec<u64> = sessions.iter().map(|id| begin(&mut peer, id, "Go on.")).collect();
        for id in prompts {
            assert_eq!(peer.response(id)["stopReason"], "end_turn");
        }
    }
    let pid = peer.process().id();
    let (own, all) = (memory(pid, "RssAnon"), memory(pid, "VmRSS"));
    println!("{SESSIONS} sessions: RssAnon {} MB, VmRSS {} MB", own / 1024, all / 1024);
    assert!(own < MAX_KB, "{own} kB");
    peer.close().exits(0);
}
