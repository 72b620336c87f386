//! Real commands in the sandbox: what they can do, what they cannot, and how they end.
//!
//! Every escape attempt is first shown to succeed without the sandbox; otherwise its failure inside would
//! prove nothing.
#![expect(
    clippy::unwrap_used,
    reason = "a test program; the lints' exception for tests covers only the standard harness"
)]

#[path = "confined/ends.rs"]
mod ends;
#[path = "confined/escapes.rs"]
mod escapes;
#[path = "confined/fence.rs"]
mod fence;
#[path = "confined/influence.rs"]
mod influence;
#[path = "confined/limits.rs"]
mod limits;
#[path = "confined/machines.rs"]
mod machines;
#[path = "confined/poison.rs"]
mod poison;
#[path = "confined/stage.rs"]
mod stage;
#[path = "confined/toolchains.rs"]
mod toolchains;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};

use escapes::Within;
use stage::Stage;

fn main() -> ExitCode {
    let fork_server = fusee_tools::sandbox::init().unwrap();
    let words: Vec<String> = std::env::args().collect();
    if let [_, mode, directory] = words.as_slice() {
        match mode.as_str() {
            "--victim" => return ends::be_killed(&Stage::at(fork_server, directory.as_ref())),
            "--abstract" => {
                return machines::say_what_is_connected(&Stage::at(fork_server, directory.as_ref()));
            }
            "--attempts" | "--attempts-with-network" => {
                let sandboxes = match mode.as_str() {
                    "--attempts" => Within::WITHOUT_NETWORK,
                    _ => Within::WITH_NETWORK,
                };
                return escapes::all_fail(&Stage::at(fork_server, directory.as_ref()), &sandboxes);
            }
            "--restored" => {
                return machines::say_what_is_restored(&Stage::at(fork_server, directory.as_ref()));
            }
            "--machine" => return machines::say_what_holds(&Stage::at(fork_server, directory.as_ref())),
            _ => {}
        }
    }
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for (name, test) in toolchains::TESTS
        .iter()
        .chain(ends::TESTS)
        .chain(machines::TESTS)
        .chain(limits::TESTS)
        .chain(fence::TESTS)
    {
        let fork_server = fork_server.clone();
        trials.push(Trial::test(*name, move || {
            test(&Stage::new(fork_server));
            Ok::<(), Failed>(())
        }));
    }
    trials.push(Trial::test("more_than_forty_ways_out_are_tried", || {
        let attempts = escapes::attempts();
        let names: std::collections::BTreeSet<&str> = attempts.iter().map(|attempt| attempt.name).collect();
        assert_eq!(names.len(), attempts.len(), "two attempts have one name");
        let [rooms, fences] = [Within::Namespaces, Within::Landlock]
            .map(|within| attempts.iter().filter(|attempt| attempt.is_tried_in(within)).count());
        assert!(rooms >= 40 && fences >= 40, "{rooms} in namespaces, {fences} behind a fence");
        Ok::<(), Failed>(())
    }));
    for (name, within) in [
        ("nothing_gets_out_with_the_network", Within::NamespacesWithNetwork),
        ("nothing_gets_out_behind_a_fence_with_the_network", Within::LandlockWithNetwork),
    ] {
        let fork_server = fork_server.clone();
        trials.push(Trial::test(name, move || {
            assert_eq!(escapes::failed_in(&Stage::new(fork_server), &[within]), Vec::<String>::new());
            Ok::<(), Failed>(())
        }));
    }
    for attempt in escapes::attempts() {
        let attempt = Arc::new(attempt);
        for within in Within::WITHOUT_NETWORK.into_iter().filter(|within| attempt.is_tried_in(*within)) {
            let (fork_server, attempt) = (fork_server.clone(), Arc::clone(&attempt));
            trials.push(Trial::test(format!("{}{}", attempt.name, within.suffix()), move || {
                attempt.fails_only_in_the_sandbox(&Stage::new(fork_server), within);
                Ok::<(), Failed>(())
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
