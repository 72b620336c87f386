//! What must still work in the sandbox.

use crate::stage::{Stage, Test};

pub(crate) const TESTS: &[(&str, Test)] = &[("a_command_runs", a_command_runs)];

fn a_command_runs(stage: &Stage) {
    let sandbox = stage.sandbox();
    let output = stage.good(&sandbox, "echo hello | tr a-z A-Z; pwd; id -u; ls -la / /dev /proc/self/fd /tmp ~; cat /proc/self/status | grep -i 'cap\\|secc\\|priv'; cat /proc/self/mountinfo; ps aux; touch here; ls -la");
    println!("{output}");
}
