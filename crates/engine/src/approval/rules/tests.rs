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

fn kept(tool: &str, arguments: Value, extent: ApprovalExtent) -> ApprovalRules {
    ApprovalRules::new(lasting(tool, &arguments, extent))
}

#[test]
fn an_answer_that_lasts_covers_exactly_the_command_that_was_shown() {
    let shown = |line: &str| kept("shell", json!({ "command": line }), ApprovalExtent::Shown);
    for (line, other) in [
        ("rm -rf build", "rm -rf build keep"),
        ("find . -name a", "find . -name a -exec sh -c 'rm b' ;"),
        ("cargo test -p x && ls", "ls"),
        ("echo $HOME", "echo $HOME x"),
    ] {
        let rules = shown(line);
        assert_eq!(decide(&rules, line), Some(RuleDecision::Allow), "{line}");
        assert_eq!(decide(&rules, other), None, "{other}");
    }
    let rules = shown("sh");
    let slower = json!({"command": "sh", "timeout": 9});
    assert_eq!(rules.decide("shell", &slower), Some(RuleDecision::Allow));
    for more in [json!({"command": "sh", "stdin": "rm x"}), json!({"command": "sh", "workdir": "a"})] {
        assert_eq!(rules.decide("shell", &more), None, "{more}");
        let exact = kept("shell", more.clone(), ApprovalExtent::Shown);
        assert_eq!(exact.decide("shell", &more), Some(RuleDecision::Allow));
        assert_eq!(exact.decide("shell", &json!({"command": "sh"})), None);
    }
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
fn an_answer_about_a_change_covers_the_files_that_were_shown() {
    let rules = kept("write_file", json!({"path": "a", "content": "x"}), ApprovalExtent::Shown);
    assert_eq!(rules.decide("write_file", &json!({"path": "a", "content": "y"})), Some(RuleDecision::Allow));
    assert_eq!(rules.decide("write_file", &json!({"path": "b", "content": "x"})), None);
    assert_eq!(rules.decide("edit_file", &json!({"path": "a"})), None);
    let patch = |files: &[&str]| {
        let parts: String = files.iter().map(|file| format!("*** Add File: {file}\n+x\n")).collect();
        json!({ "patch": format!("*** Begin Patch\n{parts}*** End Patch\n") })
    };
    let rules = kept("apply_patch", patch(&["a", "b"]), ApprovalExtent::Shown);
    assert_eq!(rules.decide("apply_patch", &patch(&["b"])), Some(RuleDecision::Allow));
    assert_eq!(rules.decide("apply_patch", &patch(&["b", "c"])), None);
    // Any other tool: the same arguments.
    let rules = kept("remote", json!({"a": 1}), ApprovalExtent::Shown);
    assert_eq!(rules.decide("remote", &json!({"a": 1})), Some(RuleDecision::Allow));
    assert_eq!(rules.decide("remote", &json!({"a": 2})), None);
}

#[test]
fn a_wider_answer_covers_what_begins_alike_or_every_call_of_the_tool() {
    let wider = |line: &str| kept("shell", json!({ "command": line }), ApprovalExtent::Wider);
    let rules = wider("cargo test -p x && ls");
    assert_eq!(decide(&rules, "cargo test -p x --lib"), Some(RuleDecision::Allow));
    assert_eq!(decide(&rules, "cargo test"), None);
    assert!(wider("echo $HOME").is_empty(), "a line that is not plain words has no wider extent");
    let rules = kept("write_file", json!({"path": "a"}), ApprovalExtent::Wider);
    assert_eq!(rules.decide("write_file", &json!({"path": "b"})), Some(RuleDecision::Allow));
    assert_eq!(rules.decide("edit_file", &json!({"path": "b"})), None);
    assert_eq!(decide(&rules, "write_file"), None);
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
fn a_prefix_is_the_beginning_of_one_plain_command() {
    assert!(ApprovalRule::of_prefix("git status", RuleDecision::Allow).is_some());
    for odd in ["", "a; b", "a | b", "a $x", "a > b", "A=1 b"] {
        assert_eq!(ApprovalRule::of_prefix(odd, RuleDecision::Allow), None, "{odd}");
    }
}

#[test]
fn a_program_is_denied_at_execution_if_it_is_denied_whatever_its_arguments() {
    let rules: Vec<ApprovalRule> = [
        ("curl", RuleDecision::Deny),
        ("git push", RuleDecision::Deny),
        ("rm", RuleDecision::Deny),
        ("rm build", RuleDecision::Allow),
        ("env node", RuleDecision::Ask),
        ("node", RuleDecision::Deny),
        ("ls", RuleDecision::Allow),
    ]
    .into_iter()
    .filter_map(|(command, then)| ApprovalRule::of_prefix(command, then))
    .collect();
    assert_eq!(rules.len(), 7);
    assert_eq!(denied_programs(&rules), ["curl"]);
}

/// Found by `cargo xtask attack`.
#[test]
fn a_denied_program_is_not_hidden_by_traps_documents_and_input() {
    let rules = rules(&[("evil", RuleDecision::Deny)]);
    let hidden = [
        ("trap 'evil' EXIT", RuleDecision::Deny),
        ("trap -- 'safe; evil' 0", RuleDecision::Deny),
        ("safe <<E\nx\nE;\nsafe ${X:-$(evil)}", RuleDecision::Deny),
        ("safe <<E\n$(case a in a) evil;; esac)\nE", RuleDecision::Ask),
        ("safe \"$(safe # )\n evil)\"", RuleDecision::Ask),
        ("safe \"$(safe <<E\n)\nE\nevil)\"", RuleDecision::Ask),
        ("alias safe=evil\nsafe", RuleDecision::Ask),
        ("echo evil | xargs env", RuleDecision::Ask),
        ("echo evil | xargs -I{} {}", RuleDecision::Ask),
        ("find bin -name 'e*' -exec {} \\;", RuleDecision::Ask),
    ];
    for (line, decision) in hidden {
        assert_eq!(decide(&rules, line), Some(decision), "{line}");
    }
    for line in ["trap - EXIT", "trap 'safe' EXIT", "ls | xargs safe", "safe <<E\nevil\nE"] {
        assert_eq!(decide(&rules, line), None, "{line}");
    }
}
