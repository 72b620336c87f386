//! The input and environment of a command, and how its output and its end are reported.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fusee_tools::ToolOutput;
use serde_json::json;

use crate::stage::{Stage, Test};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("output_and_exit_code_are_told", output_and_exit_code_are_told),
    ("both_streams_come_in_order", both_streams_come_in_order),
    ("input_is_given_and_is_otherwise_empty", input_is_given_and_is_otherwise_empty),
    ("a_command_runs_where_it_is_told", a_command_runs_where_it_is_told),
    ("the_environment_is_an_allow_list", the_environment_is_an_allow_list),
    ("a_signal_is_named", a_signal_is_named),
    ("huge_output_is_kept_at_both_ends", huge_output_is_kept_at_both_ends),
    ("binary_output_is_named", binary_output_is_named),
    ("nothing_of_ours_is_open_in_a_command", nothing_of_ours_is_open_in_a_command),
    ("signals_are_as_a_program_expects_them", signals_are_as_a_program_expects_them),
    ("progress_is_shown_but_not_too_often", progress_is_shown_but_not_too_often),
    ("a_command_that_is_too_long_is_refused", a_command_that_is_too_long_is_refused),
    ("a_long_command_and_large_input_get_through", a_long_command_and_large_input_get_through),
    ("aliases_and_milliseconds_are_understood", aliases_and_milliseconds_are_understood),
];

fn output_and_exit_code_are_told(stage: &Stage) {
    let ok = ToolOutput { exit_code: Some(0), ..ToolOutput::done("hello\n[exit code 0]") };
    assert_eq!(stage.run(json!({"command": "echo hello"})), ok);
    let silent = ToolOutput { exit_code: Some(0), ..ToolOutput::done("(no output)\n[exit code 0]") };
    assert_eq!(stage.run(json!({"command": "true"})), silent);
    let failed = ToolOutput { exit_code: Some(3), ..ToolOutput::error("no newline\n[exit code 3]") };
    assert_eq!(stage.run(json!({"command": "printf 'no newline'; exit 3"})), failed);
    let unknown = stage.run(json!({"command": "no_such_command_here"}));
    assert_eq!(unknown.exit_code, Some(127));
    assert!(
        unknown.content.ends_with("not found\n[exit code 127: a command was not found]"),
        "{}",
        unknown.content
    );
}

fn both_streams_come_in_order(stage: &Stage) {
    let output = stage.run(json!({"command": "for i in 1 2 3; do echo out $i; echo err $i >&2; done"}));
    assert_eq!(output.content, "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n[exit code 0]");
}

fn input_is_given_and_is_otherwise_empty(stage: &Stage) {
    assert_eq!(stage.run(json!({"command": "cat; echo end"})).content, "end\n[exit code 0]");
    assert_eq!(
        stage.run(json!({"command": "tr a-z A-Z", "stdin": "given\n"})).content,
        "GIVEN\n[exit code 0]"
    );
}

fn a_command_runs_where_it_is_told(stage: &Stage) {
    std::fs::create_dir(stage.path("sub")).unwrap();
    let root = stage.context.workspace.root().display().to_string();
    assert_eq!(stage.run(json!({"command": "pwd"})).content, format!("{root}\n[exit code 0]"));
    assert_eq!(
        stage.run(json!({"command": "pwd", "workdir": "sub"})).content,
        format!("{root}/sub\n[exit code 0]")
    );
    assert!(!stage.run(json!({"command": "pwd", "workdir": ".."})).ok);
}

fn the_environment_is_an_allow_list(stage: &Stage) {
    let output = stage.run(json!({"command": "env"}));
    let names: Vec<&str> =
        output.content.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    assert!(names.contains(&"PATH") && names.contains(&"TERM"), "{names:?}");
    assert!(
        !names.iter().any(|name| name.starts_with("NEXTEST") || name.starts_with("CARGO_PKG")),
        "{names:?}"
    );
    assert!(output.content.contains("TERM=dumb\n"));
}

fn a_signal_is_named(stage: &Stage) {
    let output = stage.run(json!({"command": "kill -SEGV $$"}));
    assert_eq!(
        (output.content.as_str(), output.exit_code),
        ("(no output)\n[ended by signal 11 (SIGSEGV)]", None)
    );
}

fn huge_output_is_kept_at_both_ends(stage: &Stage) {
    let begun = Instant::now();
    let output = stage.run(json!({"command": "seq 1 3000000"}));
    assert!(output.truncated && output.content.len() < 34 * 1024, "{}", output.content.len());
    assert!(output.content.starts_with("1\n2\n3\n"));
    assert!(output.content.ends_with("\n2999999\n3000000\n[exit code 0]"));
    let cut = output.content.lines().find(|line| line.starts_with("[… ")).unwrap();
    let kept = output.content.lines().count() - 2;
    assert!(cut.ends_with(&format!(" {} lines cut …]", 3_000_000 - kept)), "{cut}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

fn binary_output_is_named(stage: &Stage) {
    let output = stage.run(json!({"command": "head -c 100000 /dev/zero"}));
    assert!(output.content.starts_with("(binary output of 100000 bytes, not shown"), "{}", output.content);
    let lossy = stage.run(json!({"command": r"printf 'caf\351\n'"}));
    assert_eq!(lossy.content, "caf\u{fffd}\n[exit code 0]");
}

fn nothing_of_ours_is_open_in_a_command(stage: &Stage) {
    let output = stage.run(json!({"command": "ls /proc/$$/fd"}));
    // The shell keeps none open; the descriptor that ls opens for the directory is its own.
    assert_eq!(output.content, "0\n1\n2\n[exit code 0]");
}

fn signals_are_as_a_program_expects_them(stage: &Stage) {
    let output = stage.run(json!({"command": "grep -E '^Sig(Blk|Ign)' /proc/self/status"}));
    assert_eq!(output.content, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n[exit code 0]");
}

fn progress_is_shown_but_not_too_often(stage: &Stage) {
    let begun = Instant::now();
    stage.run(json!({"command": "for i in $(seq 1 60); do echo tick $i; sleep 0.01; done; sleep 0.2"}));
    let most = begun.elapsed().as_millis() / 100 + 1;
    let progress = stage.progress.lock().clone();
    assert!(progress.len() >= 2 && progress.len() as u128 <= most, "{} of {most}", progress.len());
    // Each piece is new output: together they are all of it.
    let all: String = (1..=60).map(|tick| format!("tick {tick}\n")).collect();
    assert_eq!(progress.concat(), all);
}

fn a_command_that_is_too_long_is_refused(stage: &Stage) {
    let output = stage.run(json!({"command": format!("true {}", "x".repeat(300_000))}));
    assert_eq!(
        output.content,
        "The command cannot be run: with its environment it has more than 196608 bytes; write it to a file and run that."
    );
    // Longer than the kernel accepts for one argument, but short enough for a message.
    let output = stage.run(json!({"command": format!("true {}", "x".repeat(140_000))}));
    assert!(
        output.content.starts_with("The command could not be started: Argument list too long"),
        "{}",
        output.content
    );
    let output = stage.run(json!({"command": "true\u{0}false"}));
    assert_eq!(output.content, "The command cannot be run: it contains a NUL character.");
}

fn a_long_command_and_large_input_get_through(stage: &Stage) {
    let output = stage.run(json!({"command": format!("echo {} | wc -c", "x".repeat(120_000))}));
    assert_eq!(output.content, "120001\n[exit code 0]");
    let output = stage.run(json!({"command": "wc -c", "stdin": "y".repeat(5_000_000)}));
    assert_eq!(output.content, "5000000\n[exit code 0]");
}

fn aliases_and_milliseconds_are_understood(stage: &Stage) {
    let tool = stage.toolbox.find("bash").map(Arc::clone).unwrap();
    let arguments =
        fusee_tools::tool::arguments::parse(r#"{"cmd":"sleep 5","timeout_ms":"200"}"#, tool.definition())
            .unwrap();
    assert_eq!(arguments, json!({"command": "sleep 5", "timeout": 0.2}));
    let output = stage.run(arguments);
    assert!(output.content.contains("timed out after 0.2 s"), "{}", output.content);
}
