//! What confinement costs: a command in the sandbox against the same without it and against a bare `sh -c`, in one
//! run, medians. A room is made once for a run; that is measured as well.
#![expect(clippy::unwrap_used, reason = "a bench program")]

use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use fusee_tools::sandbox::{Allowance, CommandRequest, Network, Policy, Surroundings, init};
use fusee_tools::{Environment, Sandbox};

const ROUNDS: usize = 300;
const ROOMS: usize = 40;

fn main() {
    let keeper = init().unwrap();
    let environment = Environment::allowed(std::env::vars_os());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let workspace = tempfile::tempdir().unwrap();
    let workspace = workspace.path().canonicalize().unwrap();
    std::fs::create_dir_all(workspace.join(".git/hooks")).unwrap();
    std::fs::write(workspace.join(".git/config"), "").unwrap();
    let policy = || {
        let surroundings = Surroundings {
            workspace: &workspace,
            environment: &environment,
            own: &[],
            network: Network::Own,
        };
        Sandbox::namespaces(Policy::usual(&surroundings).unwrap())
    };
    let run = |sandbox: &Sandbox| {
        let directory = std::fs::File::open(&workspace).unwrap().into();
        let request = CommandRequest {
            command: "true",
            directory,
            input: None,
            environment: &environment,
            sandbox,
            allowance: Allowance::usual(),
        };
        runtime.block_on(keeper.run(request, |_| {}, std::future::pending())).unwrap();
    };
    let (mut bare, mut kept, mut confined, mut first) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROOMS {
        let sandbox = policy();
        first.push(timed(|| run(&sandbox)));
    }
    let sandbox = policy();
    run(&sandbox);
    for _ in 0..ROUNDS {
        bare.push(timed(|| {
            #[expect(clippy::disallowed_methods, reason = "the floor that is measured against")]
            let output = Command::new("/bin/sh").args(["-c", "true"]).output().unwrap();
            assert!(output.status.success());
        }));
        kept.push(timed(|| run(&Sandbox::Off)));
        confined.push(timed(|| run(&sandbox)));
    }
    let mut out = std::io::stdout();
    let floor = median(&mut bare);
    for (name, times) in [
        ("bare sh -c true", &mut bare),
        ("under the keeper", &mut kept),
        ("in the sandbox", &mut confined),
        ("first in a room", &mut first),
    ] {
        let p50 = median(times);
        let p90 = times[times.len() * 9 / 10];
        let more = p50.saturating_sub(floor);
        writeln!(out, "{name:18} p50 {p50:>9.1?}  p90 {p90:>9.1?}  {more:>9.1?} more than bare").unwrap();
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
