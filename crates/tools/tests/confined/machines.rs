//! What holds on machines of other kinds: for a normal user, for root where there are no user namespaces, and where
//! there is nothing to confine commands with.

use std::io::Write;
use std::process::{Command, ExitCode};

use fusee_tools::sandbox::{Probe, probe};

use crate::stage::{SECRET, Stage, Test, is_root};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("this_machine_confines_commands", this_machine_confines_commands),
    ("a_normal_user_is_confined", a_normal_user_is_confined),
    ("root_works_for_the_owner_of_the_workspace", root_works_for_the_owner_of_the_workspace),
    ("root_is_confined_without_user_namespaces", root_is_confined_without_user_namespaces),
    ("where_nothing_holds_nothing_runs", where_nothing_holds_nothing_runs),
];

/// Tried on every kind of machine. Each line that does not begin with `no` is a hole.
const TRIES: &str = "id -u; echo made > made && cat made
cat $OUTSIDE/secret 2>/dev/null || echo no secret
echo x 2>/dev/null > $OUTSIDE/made || echo no writing outside
echo x 2>/dev/null > /etc/fusee-escape || echo no writing to the system
mkdir m; mount -t tmpfs none m 2>/dev/null || echo no mounting
unshare --user true 2>/dev/null || echo no namespaces
kill -0 $KEEPER 2>/dev/null || echo no other processes
echo evil 2>/dev/null > .git/hooks/pre-commit || echo no hooks
cat /proc/sys/kernel/core_pattern > pattern; cat pattern 2>/dev/null > /proc/sys/kernel/core_pattern || echo no settings of the kernel
python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", $PORT), 2)' 2>/dev/null || echo no network
grep -c . /proc/net/route
echo tmp > /tmp/x && cat /tmp/x
";

const ALL_HOLDS: &str = "made
no secret
no writing outside
no writing to the system
no mounting
no namespaces
no other processes
no hooks
no settings of the kernel
no network
1
tmp
";

/// In a copy of this program that runs on such a machine.
pub(crate) fn say_what_holds(stage: &Stage) -> ExitCode {
    let mut out = std::io::stdout();
    let probed = stage.runtime.block_on(probe(&stage.keeper));
    let _ = writeln!(out, "{}", probed.state());
    if let Some(complaint) = probed.complaint() {
        let _ = writeln!(out, "{complaint}");
    }
    std::fs::create_dir_all(stage.path(".git/hooks")).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let tries = TRIES
        .replace("$OUTSIDE", &stage.outside("").display().to_string())
        .replace("$KEEPER", &stage.keeper.process_id().to_string())
        .replace("$PORT", &listener.local_addr().unwrap().port().to_string());
    let outcome = stage.run(&stage.sandbox(), &tries);
    let _ = out.write_all(outcome.output.as_bytes());
    if let Err(failure) = outcome.result {
        let _ = writeln!(out, "{failure}");
    }
    ExitCode::SUCCESS
}

/// Runs a copy of this program by way of other programs, and returns what it says.
#[expect(clippy::disallowed_methods, reason = "another machine is made around it")]
fn on_a_machine(stage: &Stage, around: &str) -> String {
    let program = stage.base.join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let script = format!("{around} \"$0\" --machine \"$1\"");
    let output =
        Command::new("/bin/sh").arg("-c").arg(script).arg(&program).arg(&stage.base).output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn this_machine_confines_commands(stage: &Stage) {
    let probed: Probe = stage.runtime.block_on(probe(&stage.keeper));
    assert_eq!(probed.complaint(), None);
    assert!(probed.holds());
    assert_eq!(probed.state(), "namespaces");
    let names: Vec<&str> = probed.layers.iter().map(|layer| layer.name).collect();
    assert_eq!(names, ["namespaces", "seccomp"]);
}

fn a_normal_user_is_confined(stage: &Stage) {
    if !is_root() {
        return;
    }
    stage.bare("chown -R 65534:65534 ..");
    let said = on_a_machine(stage, "exec setpriv --reuid 65534 --regid 65534 --clear-groups");
    assert_eq!(said, format!("namespaces\n65534\n{ALL_HOLDS}"));
    assert_eq!(std::fs::read_to_string(stage.outside("secret")).unwrap(), SECRET);
}

fn root_works_for_the_owner_of_the_workspace(stage: &Stage) {
    if !is_root() {
        return;
    }
    stage.bare("chown -R 65534:65534 .");
    let sandbox = stage.sandbox();
    let command = "id -u; id -g; id -G; echo made > made; echo t > /tmp/told; echo h > ~/h; cat ~/.gitconfig; grep Cap /proc/self/status | cut -f2 | sort -u; sleep 60 & sleep 0.1";
    let outcome = stage.run(&sandbox, command);
    assert_eq!(outcome.output, "65534\n65534\n65534\n[safe]\n\tdirectory = *\n0000000000000000\n");
    assert_eq!(outcome.result.unwrap().ended, 1);
    let made = std::fs::metadata(stage.path("made")).unwrap();
    assert_eq!((std::os::unix::fs::MetadataExt::uid(&made), stage.line_of("made").as_str()), (65534, "made"));
}

fn root_is_confined_without_user_namespaces(stage: &Stage) {
    let said = on_a_machine(
        stage,
        "exec unshare --user --map-root-user sh -c 'echo 0 > /proc/sys/user/max_user_namespaces; exec \"$@\"' sh",
    );
    assert_eq!(said, format!("namespaces\n0\n{ALL_HOLDS}"));
}

fn where_nothing_holds_nothing_runs(stage: &Stage) {
    let said = on_a_machine(
        stage,
        "exec unshare --user --map-root-user sh -c 'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"' sh",
    );
    assert_eq!(
        said,
        "none
making a user namespace: No space left on device (os error 28) (sysctl user.max_user_namespaces is 0)
The command was not run, because its sandbox could not be set up: making a user namespace: No space left on device (os error 28).
"
    );
    assert!(!stage.path("made").exists());
}
