//! Finds out which layers of the sandbox work on this machine, by trying them once.

use std::fmt::Write;

use super::{SandboxLayer, SandboxProbe, SandboxStrength};
use crate::sandbox::command::{CommandEnd, CommandFailure, CommandRequest};
use crate::sandbox::landlock::sandbox;
use crate::sandbox::{CommandEnvironment, ForkServer, Policy, ResourceLimits, Sandbox};

/// Trial command: checks that a program runs, with a seccomp filter and without capabilities.
const TRIAL: &str = "while read -r name value; do case $name in Seccomp:|NoNewPrivs:|CapEff:|CapBnd:) echo \"$name$value\";; esac; done < /proc/self/status";
const EXPECTED: &str = "CapEff:0000000000000000\nCapBnd:0000000000000000\nNoNewPrivs:1\nSeccomp:2\n";

/// The same in a Landlock sandbox, and that Landlock is in force. The bounding set is not checked, because
/// only root in a namespace can empty it.
const LANDLOCK_TRIAL: &str = "while read -r name value; do case $name in Seccomp:|NoNewPrivs:|CapEff:) echo \"$name$value\";; esac; done < /proc/self/status; for name in /*; do case $name in /\\*) echo fenced;; esac; done";
const LANDLOCK_EXPECTED: &str = "CapEff:0000000000000000\nNoNewPrivs:1\nSeccomp:2\nfenced\n";

/// Sysctls that disable user namespaces: path, the value that disables them, and a hint.
const FORBIDDING: [(&str, &str, &str); 3] = [
    ("/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces is 0; raise it"),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "sysctl kernel.unprivileged_userns_clone is 0; set it to 1",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns is 1; set it to 0, or give fusee an AppArmor profile with `userns`",
    ),
];

/// Probes, once per fork server, how commands can be confined.
pub async fn probe(fork_server: &ForkServer) -> SandboxProbe {
    fork_server.probed().get_or_init(|| attempt(fork_server)).await.clone()
}

async fn attempt(fork_server: &ForkServer) -> SandboxProbe {
    let sandbox = Sandbox::namespaces(Policy::minimal());
    let namespaces = failed_trial(try_command(fork_server, &sandbox, TRIAL).await, EXPECTED).map(with_causes);
    let version = sandbox::usable_version();
    let landlock = match (&version, &namespaces) {
        (Err(why), _) => Some(why.clone()),
        (Ok(_), None) => None,
        (Ok(_), Some(_)) => {
            let sandbox = Sandbox::landlock(Policy::minimal());
            failed_trial(try_command(fork_server, &sandbox, LANDLOCK_TRIAL).await, LANDLOCK_EXPECTED)
        }
    };
    let strength = match (&namespaces, &landlock) {
        (None, _) => SandboxStrength::Namespaces,
        (Some(_), None) => SandboxStrength::Landlock,
        (Some(_), Some(_)) => SandboxStrength::None,
    };
    let filter = if strength == SandboxStrength::None { namespaces.clone() } else { None };
    let does = match (strength, version) {
        (SandboxStrength::Landlock, Ok(version)) => sandbox::guarantees(version),
        (SandboxStrength::Namespaces, Ok(_)) => {
            "second layer: repeats the file policy and confines abstract sockets"
        }
        _ => "replaces namespaces where they are not available, with weaker guarantees",
    };
    let layers = vec![
        SandboxLayer {
            name: "namespaces",
            does: "the system and toolchains read-only, the workspace writable, credentials and other processes invisible, no network except a private loopback",
            missing: namespaces,
        },
        SandboxLayer { name: "landlock", does, missing: landlock },
        SandboxLayer {
            name: "seccomp",
            does: "no mounts, namespaces, key rings, rarely used kernel interfaces or uncommon socket families",
            missing: filter,
        },
    ];
    SandboxProbe { strength, layers }
}

async fn try_command(
    fork_server: &ForkServer,
    sandbox: &Sandbox,
    command: &str,
) -> Result<String, CommandFailure> {
    let request = CommandRequest {
        command,
        directory: std::fs::File::open("/usr")?.into(),
        input: None,
        environment: &CommandEnvironment::default(),
        sandbox,
        limits: ResourceLimits::default(),
    };
    let mut output = Vec::new();
    let finished =
        fork_server.run(request, |bytes| output.extend_from_slice(bytes), std::future::pending()).await?;
    let mut output = String::from_utf8_lossy(&output).into_owned();
    if finished.ending != CommandEnd::Exited(0) {
        let _ = write!(output, "({:?})", finished.ending);
    }
    Ok(output)
}

/// The reason why a trial failed, if it did.
fn failed_trial(trial: Result<String, CommandFailure>, expected: &str) -> Option<String> {
    match trial {
        Ok(output) if output == expected => None,
        Ok(output) => Some(format!("a test command was not confined as expected: it printed {output:?}")),
        Err(CommandFailure::NotConfined(words)) => Some(words),
        Err(other) => Some(other.to_string()),
    }
}

/// Appends hints about sysctls that are known to disable user namespaces.
fn with_causes(mut words: String) -> String {
    let says = |path: &str, value: &str| std::fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    for (_, _, hint) in FORBIDDING.iter().filter(|(path, value, _)| says(path, value)) {
        let _ = write!(words, " ({hint})");
    }
    words
}
