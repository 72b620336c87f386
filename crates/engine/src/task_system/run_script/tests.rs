//! Streams of a script, split from the output of a real shell.
#![expect(clippy::disallowed_methods, reason = "a test starts the shell itself")]

use super::*;

/// Runs the wrapped command in `sh`, and formats its output like the shell tool.
fn run(command: &str) -> (ScriptOutput, i32) {
    let done = std::process::Command::new("sh").args(["-c", &apart(command)]).output().unwrap();
    let code = done.status.code().unwrap();
    let mut content = String::from_utf8(done.stdout).unwrap();
    if content.is_empty() {
        content.push_str("(no output)");
    }
    if !content.ends_with('\n') {
        content.push('\n');
    }
    content.push_str(&format!("[exit code {code}]"));
    assert_eq!(String::from_utf8(done.stderr).unwrap(), "");
    (printed(&ToolOutput { content, ..ToolOutput::default() }), code)
}

#[test]
fn streams_are_apart_and_the_exit_code_is_the_commands() {
    let cases = [
        ("echo out; echo err >&2; exit 3", "out\n", "err\n", 3),
        ("true", "", "", 0),
        ("echo 'it'\\''s'; printf '[x]\\n'", "it's\n[x]\n", "", 0),
        ("echo only >&2", "", "only\n", 0),
        ("echo a\necho b", "a\nb\n", "", 0),
    ];
    for (command, stdout, stderr, code) in cases {
        let expected = ScriptOutput { stdout: stdout.to_owned(), stderr: stderr.to_owned() };
        assert_eq!(run(command), (expected, code), "{command}");
    }
    let (printed, code) = run("echo (");
    assert!(code != 0 && printed.stderr.to_lowercase().contains("syntax"), "{printed:?}");
}
