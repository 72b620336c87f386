//! Lines that can be parsed, and lines that must not be misread.

use super::*;

fn commands(text: &str) -> Vec<String> {
    CommandLine::read(text).commands.iter().map(|words| words.join("·")).collect()
}

#[test]
fn a_line_is_split_into_its_commands() {
    let line = "cd x && git status -s; ls|wc -l & make\ncargo test || true";
    assert_eq!(commands(line), ["cd·x", "git·status·-s", "ls", "wc·-l", "make", "cargo·test", "true"]);
    assert!(CommandLine::read(line).whole);
}

#[test]
fn quotes_and_backslashes_are_the_shells() {
    assert_eq!(commands(r#"echo 'a; b' "c \"d\" \x" e\ f '' g\;"#), [r#"echo·a; b·c "d" \x·e f··g;"#]);
    assert_eq!(commands("git com\\\nmit"), ["git·commit"]);
    assert_eq!(commands("echo a # rm b\nls"), ["echo·a", "ls"]);
    assert_eq!(commands("echo a#b"), ["echo·a#b"]);
}

#[test]
fn what_only_a_shell_knows_makes_a_line_not_whole() {
    for line in [
        "echo $(rm x)",
        "echo `rm x`",
        "echo \"$(rm x)\"",
        "echo $HOME",
        "cat < x",
        "echo x > y",
        "(rm x)",
        "A=b make",
        "if true; then rm x; fi",
        "for a in b; do rm x; done",
        "{ rm x; }",
        "! rm x",
        "echo 'x",
        "echo \"x",
        "echo \\",
        "echo x >> /dev/nullx",
        "diff <(a) b",
    ] {
        assert!(!CommandLine::read(line).whole, "{line}");
    }
}

#[test]
fn redirections_that_lead_nowhere_do_not_count() {
    let line = CommandLine::read("cargo test 2>&1 | tail -5 2>/dev/null; ls >/dev/null");
    assert_eq!(
        (commands("cargo test 2>&1 | tail -5"), line.whole),
        (vec!["cargo·test".into(), "tail·-5".into()], true)
    );
}

#[test]
fn a_command_inside_of_something_else_is_still_seen() {
    assert!(commands("(rm -rf x)").contains(&"rm·-rf·x".to_owned()));
    assert!(commands("echo $(rm -rf x)").iter().any(|command| command.contains("rm")));
}
