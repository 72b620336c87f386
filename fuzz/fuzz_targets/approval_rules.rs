//! Fuzzes the reader of command lines behind approval rules: no line makes it panic, and a line that a rule
//! allows has no shell syntax outside of quotes other than the operators between commands.
#![no_main]

use fusee_engine::approval::ApprovalQuestion;
use fusee_engine::approval::rules::{ApprovalRule, ApprovalRules, RuleDecision};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|line: &str| {
    let rule = |command: &str, then| ApprovalRule::of_prefix(command, then).expect("a plain command");
    let allowed = ApprovalRules::new([rule("ls", RuleDecision::Allow)]);
    let question = ApprovalQuestion {
        call_id: "1".to_owned(),
        name: "shell".to_owned(),
        arguments: json!({ "command": line }),
        reason: String::new(),
    };
    if allowed.allow(&question) {
        let outside = without_quoted(line);
        assert!(!outside.contains(['$', '`', '<', '>', '(', ')', '{', '}', '*', '?', '[', '~', '#', '\r']), "{line:?}");
        assert!(!outside.contains("|&") && !outside.contains("&>"), "{line:?}");
    }
    let _ = rule("rm", RuleDecision::Deny).matches(line);
    let _ = ApprovalRule::of_prefix(line, RuleDecision::Ask);
});

/// The line without what is in single quotes, and in double quotes without expansions.
fn without_quoted(line: &str) -> String {
    let (mut outside, mut quote) = (String::new(), None);
    let mut characters = line.chars();
    while let Some(next) = characters.next() {
        match (quote, next) {
            (None, '\'' | '"') => quote = Some(next),
            (None, '\\') => drop(characters.next()),
            (None, other) => outside.push(other),
            (Some('"'), '\\') => drop(characters.next()),
            (Some('"'), '$' | '`') => outside.push(next),
            (Some(open), _) if open == next => quote = None,
            (Some(_), _) => {}
        }
    }
    outside
}
