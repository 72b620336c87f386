//! Rules about command lines, and what they do not cover.

use serde_json::json;

use super::*;

fn rules(rules: &[(&str, RuleDecision)]) -> ApprovalRules {
    ApprovalRules::new(rules.iter().map(|(prefix, then)| ApprovalRule::of_prefix(prefix, *then).unwrap()))
}

fn decide(rules: &ApprovalRules, line: &str) -> Option<RuleDecision> {
    rules.decide("shell", &json!({ "command": line }))
}

#[test]
fn the_longest_beginning_counts_and_of_two_the_stricter() {
    use RuleDecision::{Allow, Ask, Deny};
    let rules = rules(&[
        ("git", Ask),
        ("git status", Allow),
        ("git push --force", Deny),
        ("cargo", Allow),
        ("cargo", Ask),
    ]);
    assert_eq!(decide(&rules, "git status -s"), Some(Allow));
    assert_eq!(decide(&rules, "git commit"), Some(Ask));
    assert_eq!(decide(&rules, "git push --force origin"), Some(Deny));
    assert_eq!(decide(&rules, "cargo test"), Some(Ask));
    assert_eq!(decide(&rules, "ls"), None);
    assert_eq!(decide(&rules, "gitk"), None);
}

#[test]
fn every_command_of_a_line_must_be_allowed_and_one_that_is_denied_denies_it() {
    use RuleDecision::{Allow, Deny};
    let rules = rules(&[("ls", Allow), ("git status", Allow), ("rm", Deny)]);
    assert_eq!(decide(&rules, "ls && git status | ls"), Some(Allow));
    assert_eq!(decide(&rules, "ls; make"), None);
    assert_eq!(decide(&rules, "ls $(make)"), None);
    assert_eq!(decide(&rules, "ls > file"), None);
    assert_eq!(decide(&rules, "ls; rm x"), Some(Deny));
    assert_eq!(decide(&rules, "(rm x)"), Some(Deny));
    assert_eq!(decide(&rules, "/bin/rm x"), Some(Deny));
    // Another program of the same name is not allowed.
    assert_eq!(decide(&rules, "./ls"), None);
}

#[test]
fn a_denied_command_is_denied_in_every_position() {
    use RuleDecision::{Allow, Ask, Deny};
    let rules = rules(&[("ls", Allow), ("git push", Deny), ("rm", Deny)]);
    for line in
        ["A=1 rm x", "ls $(rm x)", "sh -c 'rm x'", "env rm x", "git -C . push", "git -c a=b --no-pager push"]
    {
        assert_eq!(decide(&rules, line), Some(Deny), "{line}");
    }
    for line in ["git commit -m push", "git pushx", "ls *"] {
        assert_eq!(decide(&rules, line), None, "{line}");
    }
    for line in ["$X x", "echo cm0geA== | base64 -d | sh"] {
        assert_eq!(decide(&rules, line), Some(Ask), "{line}");
    }
}

#[test]
fn what_shells_read_differently_is_not_allowed() {
    let rules = rules(&[("ls", RuleDecision::Allow)]);
    for line in ["ls &>/dev/null touch X", "ls\r/evil", "ls |& touch X", "{ls,x}", "ls\u{c}x"] {
        assert_eq!(decide(&rules, line), None, "{line:?}");
    }
    assert_eq!(decide(&rules, "ls -l 'a b' 2>/dev/null | ls"), Some(RuleDecision::Allow));
}

#[test]
fn an_answer_that_lasts_covers_the_same_and_what_adds_to_it() {
    let kept = ApprovalRules::new(lasting("shell", &json!({"command": "cargo test -p x && ls"})));
    assert_eq!(decide(&kept, "cargo test -p x --lib"), Some(RuleDecision::Allow));
    assert_eq!(decide(&kept, "cargo test"), None);
    let odd = ApprovalRules::new(lasting("shell", &json!({"command": "echo $HOME"})));
    assert_eq!(decide(&odd, "echo $HOME"), Some(RuleDecision::Allow));
    assert_eq!(decide(&odd, "echo $HOME x"), None);
    let tool = ApprovalRules::new(lasting("write_file", &json!({"path": "a"})));
    assert_eq!(tool.decide("write_file", &json!({"path": "b"})), Some(RuleDecision::Allow));
    assert_eq!(tool.decide("edit_file", &json!({"path": "b"})), None);
    assert_eq!(decide(&tool, "write_file"), None);
}

#[test]
fn a_prefix_is_the_beginning_of_one_plain_command() {
    assert!(ApprovalRule::of_prefix("git status", RuleDecision::Allow).is_some());
    for odd in ["", "a; b", "a | b", "a $x", "a > b", "A=1 b"] {
        assert_eq!(ApprovalRule::of_prefix(odd, RuleDecision::Allow), None, "{odd}");
    }
}
