//! Overhead of confinement: a command in the namespace sandbox and in the Landlock sandbox, against the same
//! command without a sandbox and against a bare `sh -c`, in one run. Prints one line each, with the median in
//! milliseconds. A namespace sandbox is created once per run; its creation is measured as well. `cargo xtask
//! bench sandbox` runs this and knows the target.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark that also starts its baseline"
)]

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use fusee_tools::sandbox::{
    CommandRequest, Network, Policy, ResourceLimits, SandboxInputs, SandboxStrength, init, probe,
};
use fusee_tools::{CommandEnvironment, Sandbox};

const ROUNDS: usize = 300;
const ROOMS: usize = 40;

/// Directories of the larger workspace: ten, with ten in each, with ten in each.
const BRANCHES: usize = 10;

fn main() {
    let fork_server = init().unwrap();
    let environment = CommandEnvironment::allowed(std::env::vars_os());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let workspace = tempfile::tempdir().unwrap();
    let workspace = workspace.path().canonicalize().unwrap();
    std::fs::create_dir_all(workspace.join(".git/hooks")).unwrap();
    std::fs::write(workspace.join(".git/config"), "").unwrap();
    let large = tempfile::tempdir().unwrap();
    let large = large.path().canonicalize().unwrap();
    for n in 0..BRANCHES * BRANCHES * BRANCHES {
        let path = format!("{}/{}/{}", n % BRANCHES, n / BRANCHES % BRANCHES, n / BRANCHES / BRANCHES);
        std::fs::create_dir_all(large.join(path)).unwrap();
    }
    let policy = |workspace: &Path| {
        let surroundings =
            SandboxInputs { workspace, environment: &environment, own: &[], network: Network::Own };
        Policy::defaults(&surroundings).unwrap()
    };
    let holds = runtime.block_on(probe(&fork_server)).strength;
    let run_in = |sandbox: &Sandbox, workspace: &Path| {
        let directory = std::fs::File::open(workspace).unwrap().into();
        let request = CommandRequest {
            command: "true",
            directory,
            input: None,
            environment: &environment,
            sandbox,
            limits: ResourceLimits::defaults(),
        };
        runtime.block_on(fork_server.run(request, |_| {}, std::future::pending())).unwrap();
    };
    let run = |sandbox: &Sandbox| run_in(sandbox, &workspace);
    let [mut bare, mut kept, mut confined, mut wide, mut fenced, mut first] = [const { Vec::new() }; 6];
    let (room, fence) = (Sandbox::namespaces(policy(&workspace)), Sandbox::landlock(policy(&workspace)));
    let larger = Sandbox::namespaces(policy(&large));
    if holds == SandboxStrength::Namespaces {
        for _ in 0..ROOMS {
            let sandbox = Sandbox::namespaces(policy(&workspace));
            first.push(timed(|| run(&sandbox)));
        }
        run(&room);
        run_in(&larger, &large);
    }
    for _ in 0..ROUNDS {
        bare.push(timed(|| {
            let output = Command::new("/bin/sh").args(["-c", "true"]).output().unwrap();
            assert!(output.status.success());
        }));
        kept.push(timed(|| run(&Sandbox::Off)));
        if holds == SandboxStrength::Namespaces {
            confined.push(timed(|| run(&room)));
            wide.push(timed(|| run_in(&larger, &large)));
        }
        if holds != SandboxStrength::None {
            fenced.push(timed(|| run(&fence)));
        }
    }
    let mut out = std::io::stdout();
    for (name, times) in [
        ("bare sh -c true", &mut bare),
        ("under the fork server", &mut kept),
        ("in the namespace sandbox", &mut confined),
        ("in a workspace of a thousand directories", &mut wide),
        ("in the Landlock sandbox", &mut fenced),
        ("as the first in its sandbox", &mut first),
    ] {
        if !times.is_empty() {
            writeln!(out, "{name}\t{:.4}", median(times).as_secs_f64() * 1000.0).unwrap();
        }
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}
