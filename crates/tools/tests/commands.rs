//! Real commands, run through the fork server, which this program starts first in its `main`.
//!
//! The main property under test: no process of a command outlives it, however the command or the main process
//! ends.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test program; the lints' exception for tests covers only the standard harness"
)]

#[path = "commands/ends.rs"]
mod ends;
#[path = "commands/jobs.rs"]
mod jobs;
#[path = "commands/output.rs"]
mod output;
#[path = "commands/stage.rs"]
mod stage;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use stage::Stage;

fn main() -> ExitCode {
    let fork_server = fusee_tools::sandbox::init().unwrap();
    let words: Vec<String> = std::env::args().collect();
    if let [_, mode, directory] = words.as_slice() {
        match mode.as_str() {
            "--victim" => return ends::be_killed(&Stage::at(fork_server, directory.as_ref())),
            "--lose-fork-servers" => {
                return ends::lose_fork_servers(&Stage::at(fork_server, directory.as_ref()));
            }
            _ => {}
        }
    }
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for (name, test) in output::TESTS.iter().chain(ends::TESTS).chain(jobs::TESTS) {
        let fork_server = fork_server.clone();
        trials.push(Trial::test(*name, move || {
            test(&Stage::new(fork_server));
            Ok::<(), Failed>(())
        }));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
