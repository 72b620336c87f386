//! Matrix of fault × moment × recovery: its parts, and the number of combinations each one runs.
//!
//! The parts are tested in other modules: `http_faults` within a reply, `compacting` while a summary is
//! requested, `approval_and_command_faults` while waiting for the user, a command or a connection.

use std::path::Path;

use fusee_testkit::server::{Framing, Reply, ReplyPosition};

/// Each part with its number of combinations.
const PARTS: &[(&str, usize)] = &[
    ("within a reply, retried", 52),
    ("instead of a reply, retried", 22),
    ("within a reply, cancelled", 13),
    ("within a reply, killed and resumed", 13),
    ("for a summary, left to the rule", 19),
    ("for a summary, cancelled or killed and resumed", 8),
    ("around an approval, retried", 32),
    ("during an approval, the server gone", 8),
    ("during an approval, cancelled", 8),
    ("during an approval, killed and resumed", 14),
    ("during a tool, the server gone", 2),
    ("during a tool, cancelled", 4),
    ("during a tool, killed and resumed", 8),
    ("while connecting, retried, cancelled, killed and resumed", 3),
];

/// A name, and a function that injects the fault into a reply at a position.
pub(crate) type Fault = (&'static str, fn(Reply, ReplyPosition) -> Reply);

/// Faults within a reply.
pub(crate) const CUTS: &[Fault] = &[
    ("reset", |reply, at| reply.resetting(at)),
    ("closed", |reply, at| reply.closing(at)),
    ("closed without framing", |reply, at| reply.framed(Framing::UntilClose).closing(at)),
    ("silent", |reply, at| reply.hanging(at)),
];

/// Asserts that a part ran the declared number of combinations.
#[track_caller]
pub(crate) fn ran(part: &str, combinations: usize) {
    assert_eq!(PARTS.iter().find(|(name, _)| *name == part), Some(&(part, combinations)));
}

#[test]
fn every_part_is_run_and_contributing_says_how_many_combinations_there_are() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite");
    let files = std::fs::read_dir(&suite).unwrap().map(|entry| entry.unwrap().path());
    let texts: String = files.filter_map(|path| std::fs::read_to_string(path).ok()).collect();
    for (part, _) in PARTS {
        assert_eq!(texts.matches(&format!("ran(\"{part}\"")).count(), 1, "{part}");
    }
    let all: usize = PARTS.iter().map(|(_, combinations)| combinations).sum();
    let contributing = std::fs::read_to_string(suite.join("../../../../CONTRIBUTING.md")).unwrap();
    assert!(contributing.contains(&format!("{all} combinations")), "there are {all} combinations");
}
