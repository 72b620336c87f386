//! Confinement on other kinds of machines: for a normal user, for root without user namespaces, in containers
//! without them, on kernels without Landlock, and where nothing can confine commands.

use std::io::Write;
use std::process::{Command, ExitCode};

use fusee_tools::sandbox::{SandboxProbe, SandboxStrength, probe};

use crate::stage::{SECRET, Stage, Test, is_root};

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("this_machine_confines_commands", this_machine_confines_commands),
    ("an_ordinary_user_cannot_get_out_either", an_ordinary_user_cannot_get_out_either),
    (
        "an_ordinary_user_cannot_get_out_with_the_network_either",
        an_ordinary_user_cannot_get_out_with_the_network_either,
    ),
    ("a_normal_user_is_confined", a_normal_user_is_confined),
    ("root_works_for_the_owner_of_the_workspace", root_works_for_the_owner_of_the_workspace),
    ("root_is_confined_without_user_namespaces", root_is_confined_without_user_namespaces),
    ("a_container_without_user_namespaces_has_a_fence", a_container_without_user_namespaces_has_a_fence),
    (
        "where_namespaces_are_refused_a_normal_user_has_a_fence",
        where_namespaces_are_refused_a_normal_user_has_a_fence,
    ),
    ("without_openat2_settings_stay_untouched", without_openat2_settings_stay_untouched),
    ("without_landlock_namespaces_hold", without_landlock_namespaces_hold),
    ("landlock_holds_under_namespaces", landlock_holds_under_namespaces),
    ("where_nothing_holds_nothing_runs", where_nothing_holds_nothing_runs),
];

/// Tried on every kind of machine. After the user id and `made`, each of these lines that does not begin with
/// `no` is a hole.
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

/// Runs in a copy of this program on a simulated machine.
pub(crate) fn say_what_holds(stage: &Stage) -> ExitCode {
    let mut out = std::io::stdout();
    let probed = stage.runtime.block_on(probe(&stage.fork_server));
    let _ = writeln!(out, "{}", probed.state());
    if let Some(complaint) = probed.missing_reason() {
        let _ = writeln!(out, "{complaint}");
    }
    std::fs::create_dir_all(stage.path(".git/hooks")).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let tries = TRIES
        .replace("$OUTSIDE", &stage.outside("").display().to_string())
        .replace("$KEEPER", &stage.fork_server.process_id().to_string())
        .replace("$PORT", &listener.local_addr().unwrap().port().to_string());
    let sandbox = if probed.strength == SandboxStrength::Landlock { stage.fence() } else { stage.sandbox() };
    let outcome = stage.run(&sandbox, &tries);
    let _ = out.write_all(outcome.output.as_bytes());
    if let Err(failure) = outcome.result {
        let _ = writeln!(out, "{failure}");
    }
    ExitCode::SUCCESS
}

/// Runs a copy of this program through other programs that simulate a machine, and returns its output.
#[expect(clippy::disallowed_methods, reason = "runs through programs that simulate another machine")]
fn on_a_machine(stage: &Stage, around: &str) -> String {
    let program = stage.base.join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let script = format!("{around} \"$0\" --machine \"$1\"");
    let output =
        Command::new("/bin/sh").arg("-c").arg(script).arg(&program).arg(&stage.base).output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn this_machine_confines_commands(stage: &Stage) {
    let probed: SandboxProbe = stage.runtime.block_on(probe(&stage.fork_server));
    assert_eq!(probed.missing_reason(), None);
    assert_eq!((probed.strength, probed.state()), (SandboxStrength::Namespaces, "namespaces"));
    assert_eq!(probed.landlock_guarantees(), None);
    let names: Vec<&str> = probed.layers.iter().map(|layer| layer.name).collect();
    assert_eq!(names, ["namespaces", "landlock", "seccomp"]);
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

fn an_ordinary_user_cannot_get_out_either(stage: &Stage) {
    attempts_of_an_ordinary_user_fail(stage, "--attempts");
}

fn an_ordinary_user_cannot_get_out_with_the_network_either(stage: &Stage) {
    attempts_of_an_ordinary_user_fail(stage, "--attempts-with-network");
}

/// Runs a copy of this program as another user, with this argument.
fn attempts_of_an_ordinary_user_fail(stage: &Stage, attempts: &str) {
    if !is_root() {
        return;
    }
    stage.bare("chown -R 65534:65534 ..");
    let program = stage.base.join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let said = stage.bare(&format!(
        "{}={base} HOME={base}/home exec setpriv --reuid 65534 --regid 65534 --clear-groups {base}/program {attempts} {base}",
        crate::stage::BASE_VARIABLE,
        base = stage.base.display()
    ));
    assert!(said.ends_with("failed: []\n"), "{said}");
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
    assert_eq!(outcome.result.unwrap().killed_leftovers, 1);
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

/// In a Landlock sandbox: the same, except that the hook is created and set aside when the command has ended,
/// and that the machine's routes and temporary files may or may not be visible.
const FENCE_HOLDS: &str = "made
no secret
no writing outside
no writing to the system
no mounting
no namespaces
no other processes
no settings of the kernel
no network
";

fn assert_fenced(stage: &Stage, said: &str, user: u32, why: &str) {
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..3], ["landlock", why, &user.to_string()], "{said}");
    let rest: String = lines[3..].iter().take(9).map(|line| format!("{line}\n")).collect();
    assert_eq!(rest, FENCE_HOLDS, "{said}");
    assert!(!said.contains("tmp\ntmp"), "{said}");
    assert!(!stage.path(".git/hooks/pre-commit").exists());
    assert!(stage.path(".git/hooks/pre-commit.refused").exists());
    assert_eq!(std::fs::read_to_string(stage.outside("secret")).unwrap(), SECRET);
}

const NO_USER_NAMESPACES: &str = "exec unshare --user --map-root-user sh -c 'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"' sh";

fn a_container_without_user_namespaces_has_a_fence(stage: &Stage) {
    let said = on_a_machine(stage, NO_USER_NAMESPACES);
    let why = "creating a user namespace: No space left on device (os error 28) (sysctl user.max_user_namespaces is 0; raise it)";
    assert_fenced(stage, &said, 0, why);
}

/// Makes system calls with these numbers fail with an error, as the seccomp filters of container engines do.
const WITHOUT_CALL: &str = "exec python3 -c 'import ctypes, os, struct, sys
calls, error = [int(word) for word in sys.argv[1].split(\",\")], int(sys.argv[2])
steps = [(0x20, 0, 0, 0)]
for call in calls: steps += [(0x15, 0, 1, call), (0x06, 0, 0, 0x50000 | error)]
steps.append((0x06, 0, 0, 0x7fff0000))
code = b\"\".join(struct.pack(\"HBBI\", *step) for step in steps)
buffer = ctypes.create_string_buffer(code)
program = struct.pack(\"HxxxxxxP\", len(steps), ctypes.addressof(buffer))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.create_string_buffer(program), 0, 0) == 0
os.execvp(sys.argv[3], sys.argv[3:])'";

fn without_calls(calls: &[libc::c_long], error: i32) -> String {
    let calls: Vec<String> = calls.iter().map(ToString::to_string).collect();
    format!("{WITHOUT_CALL} {} {error}", calls.join(","))
}

fn where_namespaces_are_refused_a_normal_user_has_a_fence(stage: &Stage) {
    if !is_root() {
        return;
    }
    stage.bare("chown -R 65534:65534 ..");
    let refused = without_calls(&[libc::SYS_unshare], libc::EPERM);
    let said = on_a_machine(stage, &format!("{refused} setpriv --reuid 65534 --regid 65534 --clear-groups"));
    assert_fenced(stage, &said, 65534, "creating a user namespace: Operation not permitted (os error 1)");
}

/// Runs in a copy of this program: says whether a harmless command in the Landlock sandbox had settings restored.
pub(crate) fn say_what_is_restored(stage: &Stage) -> ExitCode {
    for command in ["echo x > file", "git status --short", "echo '[user]' >> .git/config"] {
        let protection = stage.run(&stage.fence(), command).result.unwrap().protection;
        let _ = writeln!(std::io::stdout(), "{command}: {}", protection.is_empty());
    }
    ExitCode::SUCCESS
}

/// Kernels before 5.6 and some containers have no openat2. Settings that a command did not touch are not written there
/// either, and nothing is reported.
fn without_openat2_settings_stay_untouched(stage: &Stage) {
    use std::os::unix::fs::MetadataExt as _;
    stage.bare("git init -q .; echo 'max_turns = 3' > fusee.toml");
    let hook = stage.path(".git/hooks/pre-commit.sample");
    let state = || {
        [stage.path("fusee.toml"), hook.clone()].map(|path| {
            let found = std::fs::metadata(path).unwrap();
            (found.ino(), found.ctime(), found.ctime_nsec())
        })
    };
    let before = state();
    let without = without_calls(&[libc::SYS_openat2], libc::ENOSYS);
    let said = stage.bare(&format!("{without} {} --restored {}", own_program(), stage.base.display()));
    assert_eq!(said, "echo x > file: true\ngit status --short: true\necho '[user]' >> .git/config: false\n");
    assert_eq!(state(), before);
}

fn without_landlock_namespaces_hold(stage: &Stage) {
    let said = on_a_machine(stage, &without_calls(&[libc::SYS_landlock_create_ruleset], libc::ENOSYS));
    assert_eq!(said, format!("namespaces\n{}\n{ALL_HOLDS}", rustix::process::geteuid().as_raw()));
}

/// With the machine's network, an abstract socket is reachable for anyone. The second layer (Landlock) stops it, and
/// without it there are no sockets of that kind.
fn landlock_holds_under_namespaces(stage: &Stage) {
    let said = stage.bare(&format!("{} --abstract {}", own_program(), stage.base.display()));
    assert_eq!(said, "off: connected\nin the room: Operation not permitted\ninside: connected\n");
    let without = without_calls(&[libc::SYS_landlock_create_ruleset], libc::ENOSYS);
    let said = stage.bare(&format!("{without} {} --abstract {}", own_program(), stage.base.display()));
    let refused = "Address family not supported by protocol";
    assert_eq!(said, format!("off: connected\nin the room: {refused}\ninside: {refused}\n"));
}

fn own_program() -> String {
    std::env::current_exe().unwrap().display().to_string()
}

/// Runs in a copy of this program: connects to an abstract socket of the machine, and to one of its own.
pub(crate) fn say_what_is_connected(stage: &Stage) -> ExitCode {
    let name = format!("fusee-{}", std::process::id());
    let address =
        <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&name);
    let _listener = std::os::unix::net::UnixListener::bind_addr(&address.unwrap()).unwrap();
    let connect = |name: &str| {
        format!(
            "python3 -c 'import socket\ntry: socket.socket(socket.AF_UNIX).connect(\"\\0{name}\"); print(\"connected\")\nexcept OSError as error: print(error.strerror)'"
        )
    };
    let mut policy = stage.policy(&stage.environment());
    policy.network = fusee_tools::sandbox::Network::Machine;
    let room = fusee_tools::Sandbox::namespaces(policy);
    let own = format!(
        "rm -f listens; python3 -c 'import socket; server = socket.socket(socket.AF_UNIX); server.bind(\"\\0own-{name}\"); server.listen(); print(\"listens\", flush=True); server.accept()' > listens 2>&1 & while ! [ -s listens ]; do sleep 0.02; done; {}",
        connect(&format!("own-{name}"))
    );
    let mut out = std::io::stdout();
    for (where_from, sandbox, command) in [
        ("off", &fusee_tools::Sandbox::Off, connect(&name)),
        ("in the room", &room, connect(&name)),
        ("inside", &room, own),
    ] {
        let _ = write!(out, "{where_from}: {}", stage.run(sandbox, &command).output);
    }
    ExitCode::SUCCESS
}

fn where_nothing_holds_nothing_runs(stage: &Stage) {
    let refused = without_calls(&[libc::SYS_unshare, libc::SYS_landlock_create_ruleset], libc::ENOSYS);
    let said = on_a_machine(stage, &refused);
    // Root does without a user namespace if none can be created, and fails at the next one.
    let step =
        if is_root() { "creating mount, IPC and network namespaces" } else { "creating a user namespace" };
    let why = "Function not implemented (os error 38)";
    let refusal = "The command was not run, because its sandbox could not be set up";
    assert_eq!(
        said,
        format!("none\n{step}: {why}; this kernel has no Landlock: {why}\n{refusal}: {step}: {why}.\n")
    );
    assert!(!stage.path("made").exists());
}
