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
        // Shells differ about these.
        "ls &>/dev/null touch x",
        "ls &> /dev/null touch x",
        "ls |& touch x",
        "ls 2>&1& >x",
        "ls\r/evil",
        "ls\u{b}x",
        "'ls\r'",
        "{ls,x}",
        "ls {a,b}",
        "ls *",
        "ls a?",
        "ls;; x",
        "ls $'x'",
        "cat <<x\nx",
        "time ls",
        "function ls { touch x; }",
        "ls() { touch x; }",
    ] {
        assert!(!CommandLine::read(line).whole, "{line}");
    }
}

#[test]
fn redirections_that_lead_nowhere_do_not_count() {
    let line = CommandLine::read("cargo test 2>&1 | tail -5 2>/dev/null; ls >/dev/null; >/dev/null make x");
    assert_eq!(
        (line.commands.iter().map(|words| words.join("·")).collect::<Vec<_>>(), line.whole),
        (["cargo·test", "tail·-5", "ls", "make·x"].map(str::to_owned).to_vec(), true)
    );
}

#[test]
fn a_command_is_seen_in_every_position() {
    for line in [
        "rm x",
        "(rm x)",
        "echo $(rm x)",
        "echo \"a $(echo b; rm x)\"",
        "echo `rm x`",
        "echo ${a:-$(rm x)}",
        "echo $((1 + $(rm x)))",
        "A=1 rm x",
        "A=1 B='2 3' rm x",
        "{ rm x; }",
        "! rm x",
        "if rm x; then :; fi",
        "if :; then rm x; fi",
        "while :; do rm x; done",
        "for a in b; do rm x; done",
        "case a in a) rm x;; esac",
        "f() { rm x; }; f",
        "function f { rm x; }; f",
        "function f if rm x; then :; fi",
        "for a in b; do function f { rm x; }; f; done",
        "coproc rm x",
        "coproc f { rm x; }",
        "bash -c 'ls `function f { rm x; }; f`'",
        "ls && rm x",
        "ls || rm x",
        "ls | rm x",
        "ls & rm x",
        "ls\nrm x",
        ">/dev/null rm x",
        "2>/dev/null rm x",
        "ls &>/dev/null rm x",
        "ls &> f; rm x",
        "< /dev/null rm x",
        "'r'\"m\" x",
        "r\\m x",
        "r\\\nm x",
        "/bin/../bin/rm x",
        "env rm x",
        "env -i A=1 rm x",
        "env -u HOME rm x",
        "env -S 'rm x'",
        "command rm x",
        "exec rm x",
        "nohup rm x",
        "nice -n 5 rm x",
        "timeout -s KILL 5s rm x",
        "sudo -u bob rm x",
        "xargs rm x",
        "echo x | xargs -n 1 -I {} rm x",
        "find . -name a -exec rm x ;",
        "sh -c 'rm x'",
        "bash -lc 'ls; rm x'",
        "sh -e -c 'rm x'",
        "env sh -c \"nice rm x\"",
        "eval rm x",
        "eval 'rm x'",
        "busybox rm x",
        "sh <<E\nrm x\nE",
        "cat <<E\n$(rm x)\nE",
        "cat <(rm x)",
        "time rm x",
        "time -p rm x",
    ] {
        let read = CommandLine::read(line);
        let found = read.effective.iter().any(|words| {
            words.first().is_some_and(|program| program.ends_with("rm"))
                && words.get(1).is_some_and(|word| word == "x")
        });
        assert!(found, "{line}: {read:?}");
    }
}

#[test]
fn what_is_not_a_command_is_not_taken_for_one() {
    for line in [
        "echo rm x",
        "echo 'rm x'",
        "echo a # rm x",
        "cat <<E\nrm x\nE",
        "for rm in rm x; do ls; done",
        "timeout 5 grep rm x",
        "git commit -m 'rm x'",
        "find . -name rm x",
    ] {
        let read = CommandLine::read(line);
        assert!(!read.effective.iter().any(|words| words[0] == "rm"), "{line}: {read:?}");
    }
}

#[test]
fn what_cannot_be_told_is_opaque() {
    for line in [
        "$X x",
        "\"$X\" x",
        "`echo rm` x",
        "/bin/r? x",
        "{rm,x}",
        "echo rm | sh",
        "sh script",
        ". script",
        "eval $X",
        "env $X",
        "sh -c \"$X\"",
        "nice -n 5 $X",
    ] {
        assert!(CommandLine::read(line).opaque, "{line}");
    }
    for line in [
        "echo $X",
        "ls *",
        "cat <<E\nx\nE",
        "sh -c 'echo x'",
        "{ ls; }",
        "find . -name 'a*'",
        "[ -f x ] && ls",
        "[[ -f x ]]",
    ] {
        assert!(!CommandLine::read(line).opaque, "{line}");
    }
}
