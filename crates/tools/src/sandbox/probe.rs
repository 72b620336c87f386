//! Which layers of the sandbox hold on this machine: found by trying, once.

use std::fmt::Write;

use super::running::{CommandFailure, CommandRequest, Ending};
use super::{Allowance, Environment, Keeper, Policy, Sandbox};

/// What is tried: that a program runs, that its filter is on, and that it has no privilege left.
const TRIAL: &str = "while read -r name value; do case $name in Seccomp:|NoNewPrivs:|CapEff:|CapBnd:) echo \"$name$value\";; esac; done < /proc/self/status";
const EXPECTED: &str = "CapEff:0000000000000000\nCapBnd:0000000000000000\nNoNewPrivs:1\nSeccomp:2\n";

/// Settings of the system that forbid user namespaces: where, what they say then, and what to do.
const FORBIDDING: [(&str, &str, &str); 3] = [
    ("/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces is 0"),
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

/// What holds here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Each layer, the outermost first.
    pub layers: Vec<Layer>,
}

/// One layer of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// `namespaces`, `seccomp`.
    pub name: &'static str,
    /// What it does.
    pub does: &'static str,
    /// Why it does not hold, and what could be done about it; `None` if it holds.
    pub missing: Option<String>,
}

impl Probe {
    /// Whether commands can be confined.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.layers.iter().all(|layer| layer.missing.is_none())
    }

    /// In one word, for events: `namespaces` or `none`.
    #[must_use]
    pub fn state(&self) -> &'static str {
        if self.holds() { "namespaces" } else { "none" }
    }

    /// Why commands cannot be confined, for the warning at a run's start.
    #[must_use]
    pub fn complaint(&self) -> Option<String> {
        self.layers.iter().find_map(|layer| layer.missing.clone())
    }
}

/// Tries, once for a keeper, whether a command can be confined.
pub async fn probe(keeper: &Keeper) -> Probe {
    keeper.probed().get_or_init(|| attempt(keeper)).await.clone()
}

async fn attempt(keeper: &Keeper) -> Probe {
    let missing = match trial(keeper).await {
        Ok(output) if output == EXPECTED => None,
        Ok(output) => Some(format!("a command in it was not confined as it should be: it saw {output:?}")),
        Err(failure) => Some(explained(&failure)),
    };
    let layers = [
        (
            "namespaces",
            "the system and toolchains read-only, the workspace writable, credentials and other processes invisible, no network but a loopback of its own",
        ),
        ("seccomp", "no mounts, namespaces, key rings, kernel interfaces or foreign socket families"),
    ];
    Probe { layers: layers.map(|(name, does)| Layer { name, does, missing: missing.clone() }).into() }
}

async fn trial(keeper: &Keeper) -> Result<String, CommandFailure> {
    let sandbox = Sandbox::namespaces(Policy::bare());
    let request = CommandRequest {
        command: TRIAL,
        directory: std::fs::File::open("/usr")?.into(),
        input: None,
        environment: &Environment::default(),
        sandbox: &sandbox,
        allowance: Allowance::default(),
    };
    let mut output = Vec::new();
    let finished =
        keeper.run(request, |bytes| output.extend_from_slice(bytes), std::future::pending()).await?;
    let mut output = String::from_utf8_lossy(&output).into_owned();
    if finished.ending != Ending::Exited(0) {
        let _ = write!(output, "({:?})", finished.ending);
    }
    Ok(output)
}

/// What went wrong, with what is known to be behind it.
fn explained(failure: &CommandFailure) -> String {
    let mut words = match failure {
        CommandFailure::NotConfined(words) => words.clone(),
        other => other.to_string(),
    };
    let says = |path: &str, value: &str| std::fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    for (_, _, hint) in FORBIDDING.iter().filter(|(path, value, _)| says(path, value)) {
        let _ = write!(words, " ({hint})");
    }
    words
}
