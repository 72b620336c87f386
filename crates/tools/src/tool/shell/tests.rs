//! Tests that run no command. The others are in `tests/commands.rs`, whose `main` starts the fork server
//! first.

use insta::assert_snapshot;
use serde_json::json;

use crate::test_support::TestWorkspace;
use crate::tool::InterruptedOutcome;

#[test]
fn without_a_keeper_a_command_is_refused_in_words() {
    let trial = TestWorkspace::new(&[]);
    assert_snapshot!(trial.refusal("shell", json!({"command": "true"})), @"Commands cannot be run here: the process that starts them was not set up (fusee_tools::sandbox::init, first in main). Use the file tools.");
}

#[test]
fn a_wrong_place_or_job_is_refused_before_anything_runs() {
    let trial = TestWorkspace::new(&[("src/a.rs", "")]);
    assert_snapshot!(trial.refusal("shell", json!({"command": "true", "workdir": "src/a.rs"})), @"`src/a.rs` is not a directory; `workdir` must be one.");
    assert_snapshot!(trial.refusal("shell", json!({"command": "true", "workdir": "sr"})), @"`sr` does not exist. Did you mean `src`?");
    assert_snapshot!(trial.refusal("shell", json!({"command": "true", "workdir": "/tmp"})), @"`/tmp` is outside the workspace. Use a path relative to the workspace root, such as `src/main.rs`; `.` is the root itself.");
    assert_snapshot!(trial.refusal("shell_poll", json!({"job": "job_1"})), @"There is no job `job_1`: none runs. Jobs end when a run is interrupted or over.");
}

#[test]
fn an_interrupted_command_is_never_run_again() {
    let trial = TestWorkspace::new(&[]);
    let arguments = json!({"command": "make"});
    let InterruptedOutcome::Unknown(output) =
        trial.settle("shell", &arguments, &json!({"command": "make", "workdir": "."}))
    else {
        panic!("it must be unknown");
    };
    assert!(!output.ok && output.aborted);
    assert_snapshot!(output.content, @"The run was interrupted while `make` was running. The command was ended with everything it had started; what it had done until then is not known, and its output is lost. It was not run again: check the current state first.");
}
